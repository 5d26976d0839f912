"""Batches of networks against finite differences, single fits, padding and PyTorch."""

import numpy as np
import pytest

from rbfdiffnet.batched import _place, _Problem, _standardize, fit_batch, forecast_batch

B, D, N, C = 3, 4, 200, 7


@pytest.fixture
def data(rng):
    X = rng.normal(size=(B, D, N))
    y = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.3 * X[:, 2] + 0.1 * rng.normal(size=(B, N))
    return X, y, np.ones((B, N))


def problem(X, y, weight):
    n = weight.sum(axis=-1)
    Z, _, _ = _standardize(X, weight[:, None], n[:, None], np)
    t, _, _ = _standardize(y, weight, n, np)
    centers, beta, phi = _place(Z, weight, n, C, 4.0, np)
    unit = np.sqrt(0.5 / beta).mean(axis=-1)
    return _Problem(np, Z, t, weight, n, centers, beta, phi * weight[:, None], unit)


def brute_force(p, i, a, ridge):
    """Objective of series i with everything but a eliminated, from the definition."""
    Z, mu, beta, unit = p.Z[i], p.centers[i], p.beta[i], p.unit[i]
    columns = []
    for m, b in zip(mu, beta, strict=True):
        gap = Z - m[:, None]
        phi = np.exp(-b * (gap**2).sum(axis=0))
        columns.append(phi * (a[0] - 2.0 * b * unit * (a[1:] @ gap)))
    A = np.stack([*columns, *Z, np.ones(N)], axis=1)
    size = np.sum(a**2)
    penalty = N * np.array([(ridge[0] + 1e-9) * size] * C + [ridge[1]] * D + [1e-9])
    b = np.linalg.solve(A.T @ A + np.diag(penalty), A.T @ p.y[i])
    return np.sum((p.y[i] - A @ b) ** 2) + penalty @ b**2


def test_the_objective_is_its_definition(data, rng):
    p, a = problem(*data), rng.normal(size=(B, 1 + D))
    ridge = np.tile([1e-2, 1e-3], (B, 1))
    value = p.solve(a, ridge)[3]
    expected = [brute_force(p, i, a[i], ridge[i]) for i in range(B)]
    np.testing.assert_allclose(value, expected, rtol=1e-9)


def test_gradient_and_hessian_are_exact(data, rng):
    p, a = problem(*data), rng.normal(size=(B, 1 + D))
    ridge = np.tile([1e-2, 1e-3], (B, 1))
    gradient, hessian = p.newton(a, ridge, *p.solve(a, ridge)[:3])
    step = 1e-5
    for i in range(1 + D):
        up, down = a.copy(), a.copy()
        up[:, i] += step
        down[:, i] -= step
        high, low = p.solve(up, ridge), p.solve(down, ridge)
        np.testing.assert_allclose(gradient[:, i], (high[3] - low[3]) / (4 * step), atol=1e-5)
        slopes = p.newton(up, ridge, *high[:3])[0] - p.newton(down, ridge, *low[:3])[0]
        np.testing.assert_allclose(hessian[:, :, i], slopes / (2 * step), atol=1e-5)


def test_newton_steps_end_where_the_gradient_vanishes(data):
    networks = fit_batch(*data, n_centers=C, n_steps=60)
    p = problem(*data)
    gradient, _ = p.newton(networks.a, networks.ridge, *p.solve(networks.a, networks.ridge)[:3])
    assert np.abs(gradient).max() < 1e-6 * p.total.max()
    fewer = fit_batch(*data, n_centers=C, n_steps=2)
    assert np.all(networks.value <= fewer.value)


def test_a_series_does_not_depend_on_its_batch_or_on_padding(data):
    X, y, weight = data
    together = fit_batch(X, y, weight, n_centers=C)
    pad = 30
    padded = fit_batch(
        np.concatenate([X, np.full((B, D, pad), 9.0)], axis=2),
        np.concatenate([y, np.full((B, pad), -5.0)], axis=1),
        np.concatenate([weight, np.zeros((B, pad))], axis=1),
        n_centers=C,
    )
    for i in range(B):
        alone = fit_batch(X[i : i + 1], y[i : i + 1], weight[i : i + 1], n_centers=C)
        rows = X[i].T
        expected = alone.network(0).predict(rows)
        np.testing.assert_allclose(together.network(i).predict(rows), expected, atol=1e-7)
        np.testing.assert_allclose(padded.network(i).predict(rows), expected, atol=1e-6)


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
        weight[:, 5:] = 0.0
    networks = fit_batch(X, y, weight, n_centers=C)
    assert np.all(np.isfinite(forecast_batch(networks, X[:, :, 0], 10)))


def test_pytorch_gives_the_same(data):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    X, y, weight = data
    tensors = [torch.from_numpy(values) for values in data]
    expected = forecast_batch(fit_batch(X, y, weight, n_centers=C), X[:, :, -1], 7)
    networks = fit_batch(*tensors, n_centers=C, xp=torch)
    paths = forecast_batch(networks, tensors[0][:, :, -1], 7, xp=torch).numpy()
    np.testing.assert_allclose(paths, expected, atol=1e-6)
    assert isinstance(networks.to_numpy().a, np.ndarray)
