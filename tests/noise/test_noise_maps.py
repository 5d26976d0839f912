"""Smooth maps against finite differences, dense Gaussian likelihoods and ridge regression."""

import numpy as np
import pytest

from rbfdiffnet.noise.maps import fill_by_map, lag_metric, make_basis, place_centers, regress

N, L, C = 120, 3, 25


@pytest.fixture
def X(rng):
    return rng.normal(size=(N, L))


@pytest.fixture(params=[(1.0, 0.7), (0.6, 1.5), (0.25, 4.0)], ids=str)
def basis(request, X):
    decay, width = request.param
    return make_basis(place_centers(X, decay, C), decay, width)


def features(basis, X):
    return basis.features(X, basis.activations(X))


def change(function, X, step=1e-5):
    """Derivatives of a function of windows by their lags, shape (n, l, ...)."""
    ends = [(function(X + step * e), function(X - step * e)) for e in np.eye(X.shape[1])]
    return np.stack([(up - down) / (2.0 * step) for up, down in ends], axis=1)


def test_gaps_are_filled_one_value_after_the_other():
    s = np.array([9.0, 0.0, 2.0, 3.0, 0.0, 0.0, 0.0, 4.0, 0.0])
    known = s > 0.0
    filled = fill_by_map(s, known, 2, lambda X: X.sum(axis=1))
    np.testing.assert_array_equal(filled, [9.0, 0.0, 2.0, 3.0, 5.0, 8.0, 9.0, 4.0, 9.0])
    np.testing.assert_array_equal(fill_by_map(s, s < 10.0, 2, np.sum), s)


def test_older_lags_count_less():
    np.testing.assert_allclose(lag_metric(3, 0.5), [0.25, 0.5, 1.0])


def test_smooth_features_have_the_kernel_of_the_basis(basis):
    """At the centers, features times features are the basis functions themselves."""
    at_centers = features(basis, basis.centers / basis.metric)[:, : basis.n_smooth]
    kernel = basis.activations(basis.centers / basis.metric)
    np.testing.assert_allclose(at_centers @ at_centers.T, kernel, atol=1e-6)
    assert basis.n_smooth <= C


def test_slopes_are_derivatives(basis, X, rng):
    w = rng.normal(size=basis.n_smooth + L + 1)
    slopes = basis.slopes(X, basis.activations(X), w)
    scale = np.abs(slopes).max()
    expected = change(lambda at: features(basis, at) @ w, X)
    np.testing.assert_allclose(slopes / scale, expected / scale, atol=1e-7)


@pytest.mark.parametrize("rows_at_once", [7, 1000])
def test_spread_is_its_definition(basis, X, rng, monkeypatch, rows_at_once):
    monkeypatch.setattr("rbfdiffnet.noise.maps._ROWS_AT_ONCE", rows_at_once)
    root = rng.normal(size=(N, L + 1, L + 1)) * rng.uniform(0.01, 1.0, size=(N, 1, 1))
    covariance = root @ root.swapaxes(1, 2)
    M, v = basis.spread(X, basis.activations(X), covariance)
    rise = change(lambda at: features(basis, at), X)
    expected = np.einsum("nip,nij,njq->pq", rise, covariance[:, :L, :L], rise)
    np.testing.assert_allclose(M, expected, atol=1e-6 * np.abs(expected).max())
    expected = np.einsum("nip,ni->p", rise, covariance[:, :L, L])
    np.testing.assert_allclose(v, expected, atol=1e-6 * np.abs(expected).max())


def test_of_long_windows_some_are_enough(rng, monkeypatch):
    z = rng.normal(size=N + 8).cumsum() / 5.0
    X = np.lib.stride_tricks.sliding_window_view(z, 8)
    basis = make_basis(place_centers(X, 0.6, C), 0.6, 1.5)
    covariance = np.broadcast_to(0.01 * np.eye(9), (len(X), 9, 9))
    some = basis.spread(X, basis.activations(X), covariance)[0]
    monkeypatch.setattr("rbfdiffnet.noise.maps._LAGS_APART", 8)
    every = basis.spread(X, basis.activations(X), covariance)[0]
    assert np.linalg.norm(some - every) < 0.2 * np.linalg.norm(every)


@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1.0), (50.0, 1e-3), (-1e4, 1e3)])
def test_the_network_is_the_map_in_other_units(basis, X, rng, shift, scale):
    w = rng.normal(size=basis.n_smooth + L + 1)
    network = basis.network(w, shift, scale)
    there = X * scale + shift
    outputs = features(basis, X) @ w
    tolerance = 1e-8 * np.abs(outputs).max()
    np.testing.assert_allclose(
        (network.predict(there)[:, 0] - shift) / scale, outputs, atol=tolerance
    )
    slopes = basis.slopes(X, basis.activations(X), w)
    np.testing.assert_allclose(
        network.gradient(there)[:, :, 0], slopes, atol=1e-8 * np.abs(slopes).max()
    )


@pytest.fixture
def problem(X, rng):
    basis = make_basis(place_centers(X, 0.6, C), 0.6, 1.0)
    y = np.sin(2.0 * X[:, 2]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=N)
    return features(basis, X), y


def minus_twice_log_likelihood(F, y, noise, prior, flat):
    """Of N(0, noise + prior * smooth smooth' + flat * lags lags'), without pi."""
    smooth, lags = F[:, : -L - 1], F[:, -L - 1 :]
    V = noise * np.eye(len(y)) + prior * smooth @ smooth.T + flat * lags @ lags.T
    return np.linalg.slogdet(V)[1] + y @ np.linalg.solve(V, y) - (L + 1) * np.log(flat)


@pytest.mark.parametrize("penalty", [1e-6, 1e-3, 1.0, 1e3])
def test_the_evidence_is_a_likelihood_with_the_weights_integrated_out(
    problem, penalty, monkeypatch
):
    F, y = problem
    monkeypatch.setattr("rbfdiffnet.noise.maps._PENALTIES", np.array([penalty]))
    fit = regress(F, y, n_flat=L + 1)
    assert fit.variance / fit.prior == pytest.approx(penalty)
    expected = minus_twice_log_likelihood(F, y, fit.variance, fit.prior, 1e6)
    assert fit.evidence == pytest.approx(expected, abs=1e-2)
    for factor in (0.9, 1.1):  # the variance is the most likely one
        worse = minus_twice_log_likelihood(F, y, factor * fit.variance, factor * fit.prior, 1e6)
        assert worse > expected


def test_the_penalty_is_the_most_likely_and_the_weights_are_those_of_ridge(problem, monkeypatch):
    F, y = problem
    fit = regress(F, y, n_flat=L + 1)
    penalty = fit.variance / fit.prior
    ridge = np.diag([penalty] * (F.shape[1] - L - 1) + [0.0] * (L + 1))
    expected = F @ np.linalg.solve(F.T @ F + ridge, F.T @ y)
    np.testing.assert_allclose(F @ fit.w, expected, atol=1e-7)
    for other in (penalty / 3.0, penalty * 3.0):
        monkeypatch.setattr("rbfdiffnet.noise.maps._PENALTIES", np.array([other]))
        assert regress(F, y, n_flat=L + 1).evidence > fit.evidence


@pytest.mark.parametrize(("frequency", "best"), [(0.5, 4.0), (6.0, 0.25)])
def test_evidence_prefers_the_right_smoothness(frequency, best, rng):
    X = rng.uniform(-1.5, 1.5, size=(300, 1))
    y = np.sin(frequency * X[:, 0]) + 0.1 * rng.normal(size=300)
    placed = place_centers(X, 1.0, 40)
    evidence = {
        width: regress(features(make_basis(placed, 1.0, width), X), y, n_flat=2).evidence
        for width in (0.25, 4.0)
    }
    assert min(evidence, key=evidence.get) == best


def test_linear_targets_need_no_smooth_weights(X, rng):
    basis = make_basis(place_centers(X, 0.6, C), 0.6, 1.0)
    y = X @ [0.5, -1.0, 2.0] + 0.3 + 0.1 * rng.normal(size=N)
    fit = regress(features(basis, X), y, n_flat=L + 1)
    np.testing.assert_allclose(fit.w[-L - 1 :], [0.5, -1.0, 2.0, 0.3], atol=0.05)
    assert np.sqrt(fit.variance) == pytest.approx(0.1, rel=0.2)


@pytest.mark.parametrize("kind", ["no noise", "constant", "copies of a lag"])
def test_poor_data_gives_finite_fits(kind, X):
    y = X[:, 0]
    if kind == "constant":
        y = np.ones(N)
    elif kind == "copies of a lag":
        X = np.repeat(X[:, :1], L, axis=1)
    F = features(make_basis(place_centers(X, 0.6, C), 0.6, 1.0), X)
    fit = regress(F, y, n_flat=L + 1)
    assert np.isfinite([fit.evidence, fit.variance, fit.prior]).all()
    np.testing.assert_allclose(F @ fit.w, y, atol=1e-6)
