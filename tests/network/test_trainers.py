"""Trainers: gradients, monotone descent, and the same minimum by independent paths."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize
from sklearn.linear_model import Lasso, Ridge

from problems import make_objective
from rbfdiffnet.network.choose import default_start
from rbfdiffnet.network.losses import Loss
from rbfdiffnet.network.objective import TRACE, Weights
from rbfdiffnet.network.projection import newton_system, project
from rbfdiffnet.network.trainers import (
    SOLVERS,
    assign_folds,
    lasso,
    minimize_als,
    minimize_bfgs,
    minimize_varpro,
    taylor_start,
)

LOSSES = [
    Loss(),
    Loss("huber", delta=0.5),
    Loss("absolute"),
    Loss("quantile", quantile=0.7),
]


def random_weights(objective, rng):
    n_outputs = len(objective.target)
    return Weights(
        rng.normal(size=objective.basis.n_terms),
        rng.normal(size=(len(objective.basis.phi), n_outputs)),
        rng.normal(size=(len(objective.linear), n_outputs)),
    )


def numeric_gradient(function, x, step=1e-6):
    return np.array(
        [(function(x + step * e) - function(x - step * e)) / (2 * step) for e in np.eye(len(x))]
    )


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("penalty", ["ridge", "lasso"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
def test_gradient_of_the_objective(loss, penalty, n_outputs, rng):
    objective = make_objective(
        1, loss=loss, penalty=penalty, n_outputs=n_outputs, weighted=True, alpha=0.01
    )
    weights = random_weights(objective, rng)
    value, gradient = objective.gradient(weights)
    assert value == pytest.approx(objective.value(weights), rel=1e-12)
    numeric = numeric_gradient(lambda x: objective.value(weights.unflatten(x)), weights.flatten())
    np.testing.assert_allclose(gradient.flatten(), numeric, atol=1e-7 * np.abs(numeric).max())


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("penalty", ["ridge", "lasso"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
def test_projected_gradient_and_hessian(loss, penalty, n_outputs, rng):
    objective = make_objective(
        2, loss=loss, penalty=penalty, n_outputs=n_outputs, weighted=True, alpha=0.01
    )
    quadratic = objective.quadratic(random_weights(objective, rng))
    a = rng.normal(size=objective.basis.n_terms)

    def value(x):
        return project(objective, quadratic, x).value

    def gradient(x):
        point = project(objective, quadratic, x)
        return newton_system(objective, quadratic, point)[0]

    point = project(objective, quadratic, a)
    slope, hessian = newton_system(objective, quadratic, point)
    numeric = numeric_gradient(value, a)
    np.testing.assert_allclose(slope, numeric, atol=1e-6 * np.abs(numeric).max())
    curvature = numeric_gradient(gradient, a)
    np.testing.assert_allclose(hessian, curvature, atol=1e-6 * np.abs(curvature).max())


@pytest.mark.parametrize("penalty", ["ridge", "lasso"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
def test_quadratic_touches_the_objective_from_above(loss, penalty, rng):
    objective = make_objective(3, loss=loss, penalty=penalty, alpha=0.01, weighted=True)

    def gap(quadratic, weights):
        residual = quadratic.target - objective.predict(weights)
        above = quadratic.value(weights, residual) / objective.total
        return above - objective.value(weights)

    for _ in range(20):
        here, there = random_weights(objective, rng), random_weights(objective, rng)
        quadratic = objective.quadratic(here)
        assert gap(quadratic, there) >= gap(quadratic, here) - 1e-9


def test_projection_is_ridge_regression(rng):
    objective = make_objective(4, weighted=True, alpha=0.02)
    a = rng.normal(size=objective.basis.n_terms)
    a /= np.linalg.norm(a)
    point = project(objective, objective.quadratic(None), a)
    strength = (
        objective.total * np.concatenate([np.full(7, 0.02), np.full(3, 1e-4), [0.0]])
        + objective.total * TRACE
    )
    features = point.rows[:11] / np.sqrt(strength)[:, None]
    ridge = Ridge(1.0, fit_intercept=False)
    ridge.fit(features.T, objective.target[0], sample_weight=objective.weight)
    coefficients = np.concatenate([point.weights.w, point.weights.linear]).ravel()
    np.testing.assert_allclose(coefficients, ridge.coef_ / np.sqrt(strength), rtol=1e-6)


def start_of(objective, solver):
    a = default_start(objective.basis)
    if solver is minimize_bfgs:
        w = project(objective, objective.quadratic(None), a).weights.w
        return taylor_start(objective, w)
    return project(objective, objective.quadratic(None), a).weights


@pytest.mark.parametrize("solver", [solver for solver, _ in SOLVERS.values()], ids=SOLVERS)
@pytest.mark.parametrize("penalty", ["ridge", "lasso"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
def test_no_trainer_ends_above_its_start(solver, penalty, loss):
    objective = make_objective(5, loss=loss, penalty=penalty, alpha=0.003)
    start = start_of(objective, solver)
    solution = solver(objective, start, max_iter=60)
    assert solution.value <= objective.value(start) * (1.0 + 1e-12)
    assert solution.value < 0.99 * objective.value(start)
    assert solution.value == pytest.approx(objective.value(solution.weights), rel=1e-9)


@pytest.mark.parametrize("penalty", ["ridge", "lasso"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
def test_trainers_end_where_a_general_optimizer_finds_nothing_better(penalty, loss):
    objective = make_objective(6, loss=loss, penalty=penalty, alpha=0.003, order=1)
    solution = minimize_varpro(objective, default_start(objective.basis), max_iter=400, tol=1e-8)

    def flat(x):
        value, gradient = objective.gradient(solution.weights.unflatten(x))
        return value, gradient.flatten()

    polished = optimize.minimize(flat, solution.weights.flatten(), jac=True, method="L-BFGS-B")
    assert solution.value <= polished.fun * (1.0 + 2e-3)


def test_gradient_vanishes_at_the_end():
    for seed in range(5):
        objective = make_objective(seed, n_outputs=1 + seed % 2)
        solution = minimize_varpro(objective, default_start(objective.basis))
        _, gradient = objective.gradient(solution.weights)
        assert solution.converged
        assert np.abs(gradient.flatten()).max() < 1e-5 * solution.value


def test_als_and_bfgs_reach_the_minimum_of_varpro():
    objective = make_objective(7, order=1, c=5)
    reference = minimize_varpro(objective, default_start(objective.basis))
    near = replace(reference.weights, a=reference.weights.a + 0.05)
    for solver in (minimize_als, minimize_bfgs):
        solution = solver(objective, near, max_iter=5000, tol=1e-10)
        assert solution.value == pytest.approx(reference.value, rel=1e-4)


def test_a_perfect_fit_and_a_zero_target_end_cleanly():
    objective = make_objective(8)
    zero = replace(objective, target=np.zeros_like(objective.target))
    for solver in (minimize_varpro, minimize_als):
        solution = solver(zero, default_start(zero.basis))
        assert solution.value == 0.0
        assert np.all(np.isfinite(solution.weights.flatten()))


def test_balanced_weights_are_the_same_network(rng):
    objective = make_objective(9)
    weights = random_weights(objective, rng)
    balanced = weights.with_unit_a()
    assert np.linalg.norm(balanced.a) == pytest.approx(1.0)
    np.testing.assert_allclose(objective.predict(balanced), objective.predict(weights))
    silent = replace(weights, a=np.zeros_like(weights.a)).with_unit_a()
    assert np.all(silent.w == 0.0)


def test_taylor_start_is_the_papers():
    objective = make_objective(10, order=2, order_zero=False)
    unit = objective.basis.unit
    start = taylor_start(objective, np.ones((7, 1)))
    np.testing.assert_allclose(start.a, np.repeat([1e-3 / unit, 0.5e-6 / unit**2], 3))
    np.testing.assert_allclose(start.linear.ravel(), [1 / 3, 1 / 3, 1 / 3, 0.0])


def test_lasso_agrees_with_scikit_learn_on_repeated_rows(rng):
    features = rng.normal(size=(4, 30))
    target = (features[0] - 2.0 * features[2])[None]
    counts = rng.integers(1, 4, size=30)
    w, bias, _ = lasso(features, target, counts.astype(float), alpha=0.1)
    reference = Lasso(0.1, max_iter=10_000).fit(
        np.repeat(features.T, counts, axis=0), np.repeat(target[0], counts)
    )
    np.testing.assert_allclose(w[:, 0], reference.coef_, atol=1e-3)
    np.testing.assert_allclose(bias, reference.intercept_, atol=1e-3)


def test_folds_keep_copies_together_and_ignore_order(rng):
    X = rng.integers(0, 3, size=(60, 2)).astype(float)
    folds = assign_folds(X)
    for row in np.unique(X, axis=0):
        assert len(set(folds[np.all(row == X, axis=1)])) == 1
    order = rng.permutation(60)
    np.testing.assert_array_equal(assign_folds(X[order]), folds[order])
    assert set(folds) == set(range(5))


@pytest.mark.slow
def test_five_starts_find_the_best_of_twenty_by_a_general_optimizer():
    from rbfdiffnet.network.choose import Candidate
    from rbfdiffnet.network.train import Settings, _starts

    excess = []
    for seed in range(10):
        rng = np.random.default_rng(1000 + seed)
        objective = make_objective(
            seed,
            n=int(rng.choice([150, 300])),
            d=int(rng.choice([2, 4, 8, 14])),
            c=int(rng.choice([6, 12, 28])),
            order=int(rng.choice([1, 2])),
            order_zero=bool(rng.integers(2)),
            alpha=float(rng.choice([1e-5, 1e-4, 1e-3])),
            factor=float(rng.choice([1.0, 2.0, 4.0])),
            noise=float(rng.choice([0.05, 0.3, 1.0])),
        )
        quadratic = objective.quadratic(None)
        general = min(
            minimize_bfgs(objective, project(objective, quadratic, a).weights).value
            for a in rng.normal(size=(20, objective.basis.n_terms))
        )
        first = project(objective, quadratic, default_start(objective.basis)).weights
        candidate = Candidate(np.empty(0), 1.0, np.ones(1), objective, first)
        starts = _starts(objective, candidate, None, Settings(28, n_starts=5))
        solutions = [minimize_varpro(objective, start) for start in starts]
        best = min(solutions, key=lambda solution: solution.value)
        _, gradient = objective.gradient(best.weights)
        assert np.abs(gradient.flatten()).max() < 1e-4 * best.value
        excess.append(best.value / general - 1.0)
    assert np.mean(excess) < 1e-3
