"""Sufficient statistics: against rows, against brute force, and as sums and differences."""

from dataclasses import replace

import numpy as np
import pytest

from problems import make_objective, statistics_of
from rbfdiffnet.network import sufficient_statistics
from rbfdiffnet.network.centers import kmeans
from rbfdiffnet.network.choose import default_start
from rbfdiffnet.network.objective import TRACE, Weights
from rbfdiffnet.network.projection import newton_system, project
from rbfdiffnet.network.sufficient_statistics import MOST_COLUMNS, SufficientStatistics
from rbfdiffnet.network.trainers import minimize_varpro

CENTERS, BETA = np.array([[0.0, 1.0], [1.0, -1.0], [-1.0, 0.0]]), np.array([0.3, 0.5, 0.2])


@pytest.fixture
def data(rng):
    X = rng.normal(size=(150, 2))
    Y = np.stack([np.sin(2.0 * X[:, 0]), X[:, 0] * X[:, 1]], axis=1) + 0.1 * rng.normal(
        size=(150, 2)
    )
    return X, Y, rng.uniform(0.5, 2.0, 150)


def of_objective(objective):
    """Return the statistics of the rows of a training problem."""
    basis = objective.basis
    return statistics_of(
        basis.mu + basis.origin,
        basis.beta,
        objective.linear[:-1].T,
        objective.target.T,
        objective.weight,
        order=basis.order,
        order_zero=basis.order_zero,
        unit=basis.unit,
    )


def random_weights(statistics, rng):
    shape = len(statistics.beta), statistics.n_targets
    linear = rng.normal(size=(statistics.n_linear + 1, statistics.n_targets))
    return Weights(rng.normal(size=statistics.n_terms), rng.normal(size=shape), linear)


def minimize(statistics, cases):
    """Train from pairs of penalties and starts."""
    penalties, starts = map(np.array, zip(*cases, strict=True))
    products = statistics._inner_products()
    return sufficient_statistics.minimize_all(products, penalties, starts, max_iter=100, tol=1e-6)


def explicit_columns(X, order):
    """Terms of the basis functions by their formulas, with unit 1, functions within terms."""
    difference = X[:, None] - CENTERS
    phi = np.exp(-BETA * np.sum(difference**2, axis=2))
    u = -2.0 * BETA[:, None] * difference
    columns = [phi, *(u[:, :, i] * phi for i in range(2))]
    if order == 2:
        columns += [(u[:, :, i] ** 2 - 2.0 * BETA) * phi for i in range(2)]
    return np.column_stack([*columns, X, np.ones(len(X))])


@pytest.mark.parametrize("order", [1, 2])
def test_gram_is_that_of_the_explicit_columns(data, order, monkeypatch):
    monkeypatch.setattr("rbfdiffnet.network.sufficient_statistics._BLOCK", 64)
    X, Y, weight = data
    statistics = statistics_of(CENTERS, BETA, X, Y, weight, order=order, unit=1.0)
    columns = np.column_stack([explicit_columns(X, order), Y])
    np.testing.assert_allclose(statistics.gram, (columns.T * weight) @ columns, atol=1e-11)
    assert statistics.total == pytest.approx(weight.sum())


def test_projection_is_ridge_regression_on_explicit_columns(data, rng):
    X, Y, weight = data
    statistics = statistics_of(CENTERS, BETA, X, Y, weight, unit=1.0)
    a = rng.normal(size=3)
    a /= np.linalg.norm(a)
    columns = explicit_columns(X, 1)
    features = np.column_stack(
        [columns[:, :9].reshape(-1, 3, 3).swapaxes(1, 2) @ a, X, np.ones(150)]
    )
    ridge = weight.sum() * (np.array([0.1] * 3 + [0.02] * 2 + [0.0]) + TRACE)
    left = np.vstack([features * np.sqrt(weight)[:, None], np.diag(np.sqrt(ridge))])
    right = np.vstack([Y * np.sqrt(weight)[:, None], np.zeros((6, 2))])
    expected, squares, _, _ = np.linalg.lstsq(left, right, rcond=None)
    points = sufficient_statistics.project_all(
        statistics._inner_products(), np.array([[0.1, 0.02]]), a[None]
    )
    np.testing.assert_allclose(points.u[0], expected, atol=1e-9)
    assert points.value[0] == pytest.approx(0.5 * squares.sum(), rel=1e-10)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize(("order", "order_zero"), [(1, True), (1, False), (2, True)])
def test_same_values_gradients_and_hessians_as_on_rows(order, order_zero, n_outputs, rng):
    objective = make_objective(
        1, order=order, order_zero=order_zero, n_outputs=n_outputs, weighted=True, alpha=0.01
    )
    quadratic = objective.quadratic(None)
    products = of_objective(objective)._inner_products()
    ridge = np.tile([[0.01, 1e-4]], (4, 1))
    a = rng.normal(size=(4, objective.basis.n_terms))
    a /= np.linalg.norm(a, axis=1)[:, None]
    points = sufficient_statistics.project_all(products, ridge, a)
    gradients, hessians = sufficient_statistics.newton_systems(products, ridge, points)
    for b in range(4):
        point = project(objective, quadratic, a[b])
        slope, hessian = newton_system(objective, quadratic, point)
        assert points.value[b] == pytest.approx(point.value, rel=1e-10)
        np.testing.assert_allclose(gradients[b], slope, atol=1e-8 * np.abs(slope).max())
        np.testing.assert_allclose(hessians[b], hessian, atol=1e-7 * np.abs(hessian).max())


def test_gradient_and_hessian_agree_with_finite_differences(data):
    statistics = statistics_of(CENTERS, BETA, *data, order=2)
    products, ridge = statistics._inner_products(), np.array([[0.01, 1e-3]])

    def at(a):
        # The objective does not see the length of a, and is only defined at length 1.
        length = np.linalg.norm(a)
        points = sufficient_statistics.project_all(products, ridge, (a / length)[None])
        slope, hessian = sufficient_statistics.newton_systems(products, ridge, points)
        return points.value[0], slope[0] / length, hessian[0]

    a = np.array([0.5, -0.3, 0.2, 0.6, 0.1])
    a /= np.linalg.norm(a)
    _, slope, hessian = at(a)
    steps = 1e-5 * np.eye(5)
    by_value = [(at(a + e)[0] - at(a - e)[0]) / 2e-5 for e in steps]
    by_slope = [(at(a + e)[1] - at(a - e)[1]) / 2e-5 for e in steps]
    np.testing.assert_allclose(slope, by_value, atol=1e-6 * np.abs(slope).max())
    np.testing.assert_allclose(hessian, by_slope, atol=1e-6 * np.abs(hessian).max())


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_training_takes_the_same_path_as_on_rows(seed, n_outputs, rng):
    objective = make_objective(seed, n_outputs=n_outputs, weighted=True)
    starts = np.vstack([default_start(objective.basis), rng.normal(size=objective.basis.n_terms)])
    penalties = [(1e-3, 1e-4), (0.1, 1e-2), (1e9, 1.0)]
    cases = [(pair, start) for pair in penalties for start in starts]
    fits = minimize(of_objective(objective), cases)
    for (pair, start), fit in zip(cases, fits, strict=True):
        problem = objective.with_alpha(*pair)
        on_rows = minimize_varpro(problem, start)
        assert fit.converged == on_rows.converged
        assert fit.value == pytest.approx(on_rows.value, rel=1e-6)
        assert fit.value == pytest.approx(problem.value(fit.weights), rel=1e-9)
        _, gradient = problem.gradient(fit.weights)
        assert np.linalg.norm(gradient.flatten()) < 1e-5 * fit.value


def test_problems_do_not_depend_on_each_other(data, rng):
    statistics = statistics_of(CENTERS, BETA, *data)
    starts = rng.normal(size=(3, 3))
    cases = [(pair, start) for pair in [(1e-3, 1e-2), (1.0, 1e-4)] for start in starts]
    for case, fit in zip(cases, minimize(statistics, cases), strict=True):
        (alone,) = minimize(statistics, [case])
        assert fit.value == pytest.approx(alone.value, rel=1e-9)
        np.testing.assert_allclose(fit.weights.a, alone.weights.a, atol=1e-6)


def test_limit_on_the_steps(data):
    (fit,) = statistics_of(CENTERS, BETA, *data).solve([(1e-4, 1e-4)], max_iter=1)
    assert (fit.n_iter, fit.converged) == (1, False)


def test_loss_is_the_squared_error_of_any_weights(rng):
    objective = make_objective(3, n_outputs=2, weighted=True)
    statistics = of_objective(objective)
    weights = random_weights(statistics, rng)
    squares = (objective.target - objective.predict(weights)) ** 2 @ objective.weight
    np.testing.assert_allclose(statistics.squared_errors(weights), squares, rtol=1e-10)


def test_cross_validation_is_refitting_on_the_remaining_rows(data):
    X, Y, weight = data
    fold_of = np.arange(150) % 5
    basis = CENTERS, BETA
    folds = [statistics_of(*basis, X[m], Y[m], weight[m]) for m in (fold_of == k for k in range(5))]
    everything = folds[0] + folds[1] + folds[2] + folds[3] + folds[4]
    for k, fold in enumerate(folds):
        (quick,) = (everything - fold).solve([(1e-3, 1e-3)], tol=1e-9)
        rest = fold_of != k
        (slow,) = statistics_of(*basis, X[rest], Y[rest], weight[rest]).solve(
            [(1e-3, 1e-3)], tol=1e-9
        )
        assert quick.value == pytest.approx(slow.value, rel=1e-9)
        np.testing.assert_allclose(
            fold.squared_errors(quick.weights), fold.squared_errors(slow.weights), rtol=1e-6
        )


def test_parts_add_up_and_subtract(data):
    X, Y, weight = data
    nothing = SufficientStatistics.empty(CENTERS, BETA, n_targets=2)
    whole = statistics_of(CENTERS, BETA, X, Y, weight)
    first, second = (
        nothing.add(X[:70], Y[:70], weight[:70]),
        nothing.add(X[70:], Y[70:], weight[70:]),
    )
    for other in (first + second, second + first, first.add(X[70:], Y[70:], weight[70:])):
        np.testing.assert_allclose(other.gram, whole.gram, atol=1e-11)
    np.testing.assert_allclose((whole - second).gram, first.gram, atol=1e-11)
    np.testing.assert_array_equal(nothing.gram, 0.0)


def test_weights_are_counts(data, rng):
    X, Y, _ = data
    counts = rng.integers(0, 4, size=150)
    weighted = statistics_of(CENTERS, BETA, X, Y, counts.astype(float))
    repeated = statistics_of(
        CENTERS, BETA, np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0)
    )
    np.testing.assert_allclose(weighted.gram, repeated.gram, atol=1e-11)


def test_metric_and_linear_inputs_are_those_of_a_network(data):
    X, Y, weight = data
    wide = np.column_stack([7.0 * np.ones(150), X])
    some = statistics_of(
        CENTERS[:, 1:],
        BETA,
        wide,
        Y,
        weight,
        metric=np.array([0.0, 0.0, 0.5]),
        n_linear=2,
        unit=1.0,
    )
    plain = statistics_of(CENTERS[:, 1:], BETA, 0.5 * X[:, 1:], Y, weight, n_linear=0, unit=1.0)
    np.testing.assert_allclose(some.gram[:6, :6], plain.gram[:6, :6], atol=1e-12)
    np.testing.assert_allclose(some.gram[6:8, 6:8], (X.T * weight) @ X, atol=1e-11)


def test_arrays_go_through_a_file(data, tmp_path):
    statistics = statistics_of(CENTERS, BETA, *data, order=2, order_zero=False)
    np.savez(tmp_path / "part.npz", **statistics.to_arrays())
    with np.load(tmp_path / "part.npz") as arrays:
        restored = SufficientStatistics.from_arrays(arrays)
    assert (restored.order, restored.order_zero) == (2, False)
    np.testing.assert_array_equal((restored + statistics).gram, 2.0 * statistics.gram)


def test_narrow_functions_far_from_the_origin():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) + np.array([1e4, -1e4])
    y = np.sin(X[:, 0])
    centers, beta = kmeans(X, 4), np.full(4, 200.0)
    statistics = statistics_of(centers, beta, X, y, n_linear=0)
    moved = statistics_of(centers - X[0], beta, X - X[0], y, n_linear=0)
    np.testing.assert_allclose(statistics.gram, moved.gram, atol=1e-7 * np.abs(moved.gram).max())


def test_errors_say_what_to_do(data):
    X, Y, weight = data
    some = statistics_of(CENTERS, BETA, X, Y, weight)
    with pytest.raises(ValueError, match="different bases cannot be combined: beta must"):
        some + replace(some, beta=2.0 * BETA)
    with pytest.raises(ValueError, match="n_targets must be the same"):
        some - statistics_of(CENTERS, BETA, X, Y[:, 0], weight)
    with pytest.raises(ValueError, match="cannot be taken out of rows of weight"):
        some - (some + some)
    with pytest.raises(ValueError, match=f"more than {MOST_COLUMNS}; use fewer centers"):
        SufficientStatistics.empty(np.zeros((100, 20)), np.ones(100))
    with pytest.raises(ValueError, match="the metric has 1 inputs that count"):
        SufficientStatistics.empty(CENTERS, BETA, metric=np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match=r"shapes \(150, 1\)"):
        some.add(X[:, :1], Y)
    with pytest.raises(ValueError, match="subtract the rows"):
        some.add(X, Y, -weight)
    with pytest.raises(ValueError, match="must be finite"):
        some.add(X, Y * np.nan)
    with pytest.raises(ValueError, match="pairs of numbers"):
        some.solve([1e-3, 1e-2])
    with pytest.raises(ValueError, match="no rows to train on"):
        (some - some).solve([(1e-3, 1e-2)])
