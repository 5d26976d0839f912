"""Batches of networks against finite differences, single fits, padding and PyTorch."""

from importlib.util import find_spec

import numpy as np
import pytest

from rbfdiffnet.batch.backend import NUMPY, Backend, padded_rows, standardize
from rbfdiffnet.batch.problem import Problem, WideProblem, pose_problem
from rbfdiffnet.batch.train import fit_batch, forecast_batch

B, D, N, C = 3, 4, 200, 7


@pytest.fixture
def data(rng):
    X = rng.normal(size=(B, D, N))
    y = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.3 * X[:, 2] + 0.1 * rng.normal(size=(B, N))
    return X, y, np.ones((B, N))


def problem(X, y, weight):
    n = weight.sum(axis=-1)
    Z, _, _ = standardize(X, weight[:, None], n[:, None], np)
    t, _, _ = standardize(y, weight, n, np)
    rows = np.concatenate([Z, weight[:, None]], axis=1)
    found = Problem(NUMPY, rows, t, n, C, 4.0)
    found.rows, found.y = rows, t
    return found


def brute_force(p, i, a, ridge):
    """Objective of series i with everything but a eliminated, from the definition."""
    Z, mu, beta, unit = p.rows[i, :-1], p.centers[i], p.beta[i], p.unit[i]
    columns = []
    for m, b in zip(mu, beta, strict=True):
        gap = Z - m[:, None]
        phi = np.exp(-b * (gap**2).sum(axis=0))
        columns.append(phi * (a[0] - 2.0 * b * unit * (a[1:] @ gap)))
    A = np.stack([*columns, *Z, np.ones(N)], axis=1)
    size = np.sum(a**2)
    penalty = N * np.array([(ridge + 1e-9) * size] * C + [1e-6 + 1e-2 * (D / N) ** 2] * D + [1e-9])
    b = np.linalg.solve(A.T @ A + np.diag(penalty), A.T @ p.y[i])
    return np.sum((p.y[i] - A @ b) ** 2) + penalty @ b**2


def test_the_objective_is_its_definition(data, rng):
    p, a = problem(*data), rng.normal(size=(B, 1 + D))
    ridge = np.full(B, 1e-2)
    value = p.solve_linear_part(a, ridge)[2]
    expected = [brute_force(p, i, a[i], ridge[i]) for i in range(B)]
    np.testing.assert_allclose(value, expected, rtol=1e-9)


def test_gradient_and_hessian_are_exact(data, rng):
    p, a = problem(*data), rng.normal(size=(B, 1 + D))
    ridge = np.full(B, 1e-2)
    gradient, hessian = p.newton(a, ridge, *p.solve_linear_part(a, ridge)[:2])
    step = 1e-5
    for i in range(1 + D):
        up, down = a.copy(), a.copy()
        up[:, i] += step
        down[:, i] -= step
        values, slopes = [], []
        for at in (up, down):
            root, b, value = p.solve_linear_part(at, ridge)
            values.append(value)
            slopes.append(p.newton(at, ridge, root, b)[0])
        change = (values[0] - values[1]) / (4 * step)
        np.testing.assert_allclose(gradient[:, i], change, atol=1e-5)
        change = (slopes[0] - slopes[1]) / (2 * step)
        np.testing.assert_allclose(hessian[:, :, i], change, atol=1e-5)


def test_newton_steps_end_where_the_gradient_vanishes(data, monkeypatch):
    monkeypatch.setattr("rbfdiffnet.batch.problem.ENOUGH", 0.0)
    networks = fit_batch(*data, n_centers=C, n_steps=60)
    p = problem(*data)
    gradient, _ = p.newton(
        networks.a, networks.ridge, *p.solve_linear_part(networks.a, networks.ridge)[:2]
    )
    assert np.abs(gradient).max() < 1e-6 * p.total.max()
    fewer = fit_batch(*data, n_centers=C, n_steps=2)
    assert np.all(networks.value <= fewer.value)


def test_training_ends_when_a_step_gains_little(data):
    values = np.stack([fit_batch(*data, n_centers=C, n_steps=k).value for k in range(13)])
    gains = -np.diff(values, axis=0) / values[1:]
    assert np.any((gains > 0) & (gains < 3e-3))
    for i in range(B):
        small = np.flatnonzero((gains[:, i] > 0) & (gains[:, i] < 3e-3))
        if small.size:  # nothing happens after the first of them
            assert np.all(gains[small[0] + 1 :, i] == 0)


def test_the_penalty_has_the_lowest_cross_validation_score(data):
    p = problem(*data)
    a = np.full((B, 1 + D), (1 + D) ** -0.5)
    chosen = fit_batch(*data, n_centers=C, n_steps=0).ridge
    for i in range(B):
        scores = []
        for ridge in (1e-5, 1e-3, 1e-2, 1e-1, 1e4):
            p.gram(a)
            A = np.concatenate([p.products.columns[i, :C], p.rows[i]]).T
            penalty = N * np.array([ridge + 1e-9] * C + [1e-6 + 1e-2 * (D / N) ** 2] * D + [1e-9])
            hat = A @ np.linalg.solve(A.T @ A + np.diag(penalty), A.T)
            r = p.y[i] - hat @ p.y[i]
            scores.append(N * (r @ r) / (N - np.trace(hat)) ** 2)
        assert chosen[i] == (1e-5, 1e-3, 1e-2, 1e-1, 1e4)[int(np.argmin(scores))]


def test_a_series_does_not_depend_on_its_batch(data):
    together = fit_batch(*data, n_centers=C)
    for i in range(B):
        alone = fit_batch(*(values[i : i + 1] for values in data), n_centers=C)
        for name in ("centers", "beta", "a", "w", "linear", "ridge", "value"):
            np.testing.assert_array_equal(getattr(alone, name)[0], getattr(together, name)[i])


def test_padding_changes_nothing(data):
    X, y, weight = data
    pad = 30
    padded = fit_batch(
        np.concatenate([np.full((B, D, pad), 9.0), X], axis=2),
        np.concatenate([np.full((B, pad), -5.0), y], axis=1),
        np.concatenate([np.zeros((B, pad)), weight], axis=1),
        n_centers=C,
    )
    networks = fit_batch(*data, n_centers=C)
    for i in range(B):
        expected = networks.network(i).predict(X[i].T)
        np.testing.assert_allclose(padded.network(i).predict(X[i].T), expected, atol=1e-8)


@pytest.mark.parametrize("shape", [(5, 5, 90), (28, 44, 1900), (40, 60, 1411), (80, 20, 300)])
def test_products_in_blocks_are_products(shape, rng):
    p, q, n = shape
    P, Q = rng.normal(size=(2, p, n)), rng.normal(size=(2, q, n))
    for left, right in ((P, Q), (P, P)):
        expected = np.einsum("bpn,bqn->bpq", left, right)
        np.testing.assert_allclose(NUMPY.contract(left, right), expected, atol=1e-10)


@pytest.mark.parametrize("n", [1, 15, 704, 705, 1900, 5000])
def test_padded_rows_are_few_more(n):
    assert n <= padded_rows(n) <= n + 16 * (n // 704 + 1)
    assert (padded_rows(430), padded_rows(1900)) == (432, 1920)


def test_roots_are_inverses_of_factors(rng):
    A = rng.normal(size=(3, 6, 9))
    A = A @ A.swapaxes(1, 2)
    A[1, 0, 0] = -1.0
    for root in (NUMPY.root(A), NUMPY.root(A - np.eye(6), np.ones((3, 6))), *_other_roots(A)):
        assert np.isnan(root[1]).all()
        for i in (0, 2):
            np.testing.assert_allclose(root[i] @ A[i] @ root[i].T, np.eye(6), atol=1e-9)
            np.testing.assert_allclose(np.triu(root[i], 1), 0.0, atol=1e-12)


def _other_roots(A):
    if find_spec("torch"):
        import torch

        yield Backend(torch).root(torch.from_numpy(A)).numpy()
    if find_spec("numba"):
        from rbfdiffnet.batch.numba_backend import NUMBA

        yield NUMBA.root(A)
        yield NUMBA.root(A - np.eye(6), np.ones((3, 6)))


def test_recursive_forecasts_are_those_of_the_single_networks(data):
    X, y, weight = data
    networks = fit_batch(X, y, weight, n_centers=C)
    paths = forecast_batch(networks, X[:, :, -1], 5)
    for i in range(B):
        network, window = networks.network(i), X[i, :, -1]
        limit = 2.0 * np.abs(y[i]).max()
        for k in range(5):
            value = np.clip(network.predict(window[None])[0, 0], -limit, limit)
            np.testing.assert_allclose(paths[i, k], value, rtol=1e-9)
            window = np.append(window[1:], value)


@pytest.mark.parametrize("kind", ["constant", "copies", "constant column", "few rows"])
def test_poor_data_gives_finite_networks(kind, data):
    X, y, weight = (values.copy() for values in data)
    if kind == "constant":
        y[:] = 3.0
    elif kind == "copies":
        X[:] = X[:, :, :1]
    elif kind == "constant column":
        X[:, 1] = 7.0
    else:
        weight[:, :-5] = 0.0
    networks = fit_batch(X, y, weight, n_centers=C)
    assert np.all(np.isfinite(forecast_batch(networks, X[:, :, 0], 10)))


def test_pytorch_gives_the_same(data):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    X, y, weight = data
    tensors = [torch.from_numpy(values) for values in data]
    expected = forecast_batch(fit_batch(X, y, weight, n_centers=C), X[:, :, -1], 7)
    networks = fit_batch(*tensors, n_centers=C, backend=Backend(torch))
    paths = forecast_batch(networks, tensors[0][:, :, -1], 7).numpy()
    np.testing.assert_allclose(paths, expected, atol=1e-6)
    assert isinstance(networks.to_numpy().a, np.ndarray)
    parts = type(networks).concatenate([networks.select([2, 0]), networks.select([1])])
    assert isinstance(parts.a, torch.Tensor)
    np.testing.assert_array_equal(parts.to_numpy().centers, networks.centers.numpy()[[2, 0, 1]])


@pytest.mark.parametrize("size", [(3, 5, 90), (14, 28, 1001), (28, 9, 660)])
def test_operations_compiled_by_numba_are_those_of_numpy(size, rng):
    pytest.importorskip("numba", reason="numba is not installed")
    from rbfdiffnet.batch.numba_backend import NUMBA

    d, c, n = size
    rows, y = rng.normal(size=(3, d + 1, n)), rng.normal(size=(3, n))
    rows[:, -1] = 1.0
    rows[1, :, :9], y[1, :9] = 0.0, 0.0
    centers, beta = rows[:, :-1, -c:].swapaxes(1, 2).copy(), 0.01 + 0.1 * rng.random(size=(3, c))
    for one, other in zip(NUMPY.assign(rows, centers), NUMBA.assign(rows, centers), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    one, other = (b.products(rows, y, centers, beta, -1.3 * beta) for b in (NUMPY, NUMBA))
    a, b = rng.normal(size=(3, 1 + d)), rng.normal(size=(3, c + d + 1))
    for which in ([0, 1, 2], [2, 0]):
        one, other, a, b = one.part(which), other.part(which), a[which], b[which]
        np.testing.assert_allclose(one.gram(a), other.gram(a), rtol=1e-9, atol=1e-9)
        for left, right in zip(one.curvature(a, b), other.curvature(a, b), strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("rows", [40, 200, 1000])
def test_numba_gives_the_same(rows, rng):
    pytest.importorskip("numba", reason="numba is not installed")
    from rbfdiffnet.batch.numba_backend import NUMBA

    X = rng.normal(size=(B, D, rows))
    y = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.3 * X[:, 2] + 0.1 * rng.normal(size=(B, rows))
    weight = np.ones((B, rows))
    weight[0, :9] = 0.0
    weight[1, rows // 2] = 0.0
    one, other = (fit_batch(X, y, weight, n_centers=C, backend=b) for b in (NUMPY, NUMBA))
    np.testing.assert_array_equal(one.ridge, other.ridge)
    for name in ("centers", "beta", "value", "unit", "largest", "x_shift", "y_scale"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9)
    paths = [forecast_batch(networks, X[:, :, -1], 20) for networks in (one, other)]
    np.testing.assert_allclose(*paths, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["constant", "copies", "few rows", "zeros"])
def test_numba_gives_the_same_on_poor_data(kind, rng):
    pytest.importorskip("numba", reason="numba is not installed")
    from rbfdiffnet.batch.numba_backend import NUMBA

    X, y, weight = rng.normal(size=(1, D, 60)), rng.normal(size=(1, 60)), np.ones((1, 60))
    if kind == "constant":
        y[:] = 3.0
    elif kind == "copies":
        X[:] = X[:, :, :1]
    elif kind == "zeros":
        X[:], y[:] = 0.0, 0.0
    else:
        weight[:, :-7] = 0.0
    paths = [
        forecast_batch(fit_batch(X, y, weight, n_centers=C, backend=b), X[:, :, -1], 20)
        for b in (NUMPY, NUMBA)
    ]
    assert np.all(np.isfinite(paths[0]))
    np.testing.assert_allclose(*paths, rtol=1e-7, atol=1e-7)


# More inputs than rows ----------------------------------------------------------------------------

FEW, MANY = 30, 60


@pytest.fixture
def wide(rng):
    X = rng.normal(size=(B, MANY, FEW))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=(B, FEW))
    weight = np.ones((B, FEW))
    weight[1, :4], weight[2, 9] = 0.0, 0.0
    return X, y, weight


def backends():
    yield NUMPY
    if find_spec("torch"):
        import torch

        yield Backend(torch)
    if find_spec("numba"):
        from rbfdiffnet.batch.numba_backend import NUMBA

        yield NUMBA


def test_networks_with_few_rows_are_those_of_the_general_problem(wide, monkeypatch):
    tensors = {backend: [backend.to_device(values) for values in wide] for backend in backends()}
    found = [fit_batch(*v, n_centers=4, backend=b).to_numpy() for b, v in tensors.items()]
    monkeypatch.setattr("rbfdiffnet.batch.train.pose_problem", Problem)
    expected = fit_batch(*wide, n_centers=4)
    assert len(set(expected.ridge)) > 1
    for networks in found:
        np.testing.assert_array_equal(networks.ridge, expected.ridge)
        for name in ("centers", "beta", "a", "w", "linear", "unit", "value"):
            pair = getattr(networks, name), getattr(expected, name)
            np.testing.assert_allclose(*pair, rtol=1e-7, atol=1e-9)


def test_few_rows_have_a_problem_of_their_own(wide):
    rows, n = np.concatenate([wide[0], wide[2][:, None]], axis=1), wide[2].sum(axis=1)
    assert isinstance(pose_problem(NUMPY, rows, wide[1], n, 4, 4.0), WideProblem)
    assert type(pose_problem(NUMPY, rows[:, 29:], wide[1], n, 4, 4.0)) is Problem


def test_newton_steps_with_few_rows_end_where_the_gradient_vanishes(wide, monkeypatch):
    monkeypatch.setattr("rbfdiffnet.batch.problem.ENOUGH", 0.0)
    for backend in backends():
        values = [backend.to_device(v) for v in wide]
        found = fit_batch(*values, n_centers=4, n_steps=80, backend=backend).to_numpy()
        n = wide[2].sum(axis=1)
        rows, _, _ = NUMPY.rows(wide[0], wide[2], n)
        target, _, _ = standardize(wide[1], wide[2], n, np)
        p = Problem(NUMPY, rows, target, n, 4, 4.0)
        root, b, value = p.solve_linear_part(found.a, found.ridge)
        gradient, _ = p.newton(found.a, found.ridge, root, b)
        assert np.abs(gradient).max() < 1e-6 * p.total.max()
        np.testing.assert_allclose(found.value, value, rtol=1e-8)


def test_few_rows_do_not_depend_on_their_batch(wide):
    for backend in (backend for backend in backends() if backend.xp is np):
        together = fit_batch(*wide, n_centers=4, backend=backend)
        for i in range(B):
            alone = fit_batch(*(v[i : i + 1] for v in wide), n_centers=4, backend=backend)
            for name in ("centers", "beta", "a", "w", "linear", "ridge", "value"):
                np.testing.assert_array_equal(getattr(alone, name)[0], getattr(together, name)[i])


@pytest.mark.parametrize("kind", ["constant", "copies", "constant columns", "zeros", "one row"])
def test_poor_data_of_few_rows_gives_finite_networks(kind, wide):
    X, y, weight = (values.copy() for values in wide)
    if kind == "constant":
        y[:] = 3.0
    elif kind == "copies":
        X[:] = X[:, :, :1]
    elif kind == "constant columns":
        X[:, 1:] = 7.0
    elif kind == "zeros":
        X[:], y[:] = 0.0, 0.0
    else:
        weight[:, :-1] = 0.0
    for backend in backends():
        values = [backend.to_device(v) for v in (X, y, weight)]
        networks = fit_batch(*values, n_centers=4, backend=backend).to_numpy()
        assert np.all(np.isfinite(forecast_batch(networks, X[:, :, 0], 10)))
