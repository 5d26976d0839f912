"""Latent series and map against dense Gauss-Newton steps and a Kalman smoother."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from rbfdiffnet.datasets import henon_map
from rbfdiffnet.noise import trajectory
from rbfdiffnet.noise.maps import make_basis, place_centers, regress
from rbfdiffnet.noise.trajectory import (
    Observations,
    first_estimate,
    gram_band,
    improve,
    left_out_error,
    smooth_latent,
)

T, L = 60, 2


def start(s, n_centers=12, width=2.0, **settings):
    """A first state on a series, as the search makes it."""
    X, y = sliding_window_view(s, L)[:-1], s[L:]
    basis = make_basis(place_centers(X, 0.5, n_centers), 0.5, width)
    fit = regress(basis.features(X, basis.activations(X)), y, n_flat=L + 1)
    return first_estimate(basis, fit, s, **settings), fit


@pytest.fixture
def s(rng):
    noisy = henon_map(T) + 0.1 * rng.normal(size=T)
    return (noisy - noisy.mean()) / noisy.std()


@pytest.fixture
def seen(rng):
    return (rng.random(T) > 0.1).astype(float)


def residual(z, w, basis):
    X = sliding_window_view(z, L)[:-1]
    return z[L:] - basis.features(X, basis.activations(X)) @ w


def jacobian(function, x, step=1e-6):
    ends = [(function(x + step * e), function(x - step * e)) for e in np.eye(x.size)]
    return np.stack([(up - down) / (2.0 * step) for up, down in ends], axis=1)


def terms(state, observed, pull=0.0):
    """All that is squared and added up in F, as a function of z and w together."""
    basis, R, Q = state.basis, state.noise, state.process
    precision = np.full(state.w.size, 1e-8)
    precision[: basis.n_smooth] = 1.0 / state.prior
    M, v = state.pull
    root = np.linalg.cholesky(M + 1e-12 * np.eye(len(M)))

    def of(both):
        z, w = both[:T], both[T:]
        return np.concatenate(
            [
                np.sqrt(observed.seen / R) * (observed.s - z),
                residual(z, w, basis) / np.sqrt(Q),
                np.sqrt(precision) * w,
                np.sqrt(pull / Q) * (root.T @ w - np.linalg.solve(root, v)),
                1e-3 * (z - state.z),  # holds on to values about which nothing is known
            ]
        )

    return of


def test_the_band_is_that_of_the_full_matrix(s, seen):
    state, _ = start(s, noise=0.02)
    X = sliding_window_view(s, L)[:-1]
    slopes = -state.basis.slopes(X, state.basis.activations(X), state.w)
    J = np.concatenate([slopes, np.ones((len(X), 1))], axis=1)
    dense = jacobian(lambda z: residual(z, state.w, state.basis), s)
    expected = dense.T @ dense / 0.3 + np.diag(seen)
    band = gram_band(J, 0.3, seen)
    for k in range(L + 1):
        np.testing.assert_allclose(band[k, : T - k], np.diag(expected, -k), atol=1e-6)
        assert not band[k, T - k :].any()


def after(observed, state, pull=0.0):
    """The state a round later: another round is needed for its evidence."""
    return improve(observed, state, rounds=2, share=pull)[0]


@pytest.mark.parametrize("pull", [0.0, 0.25, 1.0])
def test_a_round_is_a_dense_gauss_newton_step(s, seen, rng, pull):
    """And variances are set by what the inverse of the full second derivatives says."""
    observed = Observations(s, seen, most_noise=1.0)
    state, _ = start(s, noise=0.02)
    p, r = state.w.size, state.basis.n_smooth
    root = rng.normal(size=(p, p))
    state = replace(state, pull=(0.1 * root @ root.T, 0.1 * root @ rng.normal(size=p)))
    of = terms(state, observed, pull)
    before = np.concatenate([state.z, state.w])
    D = jacobian(of, before)
    step = -np.linalg.lstsq(D, of(before), rcond=None)[0]
    halvings = [before + 0.5**k * step for k in range(6)]
    best = next(at for at in halvings if np.sum(of(at) ** 2) <= np.sum(of(before) ** 2))

    new = after(observed, state, pull)
    np.testing.assert_allclose(new.z, best[:T], atol=1e-5)
    np.testing.assert_allclose(new.w, best[T:], atol=1e-4 * np.abs(best[T:]).max())

    R, Q, prior = state.noise, state.process, state.prior
    covariance = np.linalg.inv(D.T @ D)
    misfit, size = observed.misfit(new.z), np.sum(new.w[:r] ** 2)
    unexplained = np.sum(residual(new.z, new.w, state.basis) ** 2)
    in_noise = seen @ np.diag(covariance)[:T] / R
    in_prior = np.diag(covariance)[T : T + r].sum() / prior
    in_process = T + p - in_noise - in_prior
    for variance, old, free, value in (
        (new.noise, R, seen.sum() - in_noise, misfit),
        (new.process, Q, T - L - in_process, unexplained),
        (new.prior, prior, r - in_prior, size),
    ):
        assert variance == pytest.approx(np.clip(value / free, old / 4.0, old * 4.0), rel=1e-4)


def test_the_error_of_left_out_observations_is_that_of_the_dense_step(s, seen):
    observed = Observations(s, seen, most_noise=1.0)
    state = after(observed, start(s, noise=0.02)[0])
    state = replace(state, pull=(np.zeros_like(state.pull[0]), np.zeros_like(state.pull[1])))
    D = jacobian(terms(state, observed), np.concatenate([state.z, state.w]))
    own = seen * np.diag(np.linalg.inv(D.T @ D))[:T] / state.noise
    known = seen.sum()
    expected = np.sum(seen * (s - state.z) ** 2) / known / (1.0 - own.sum() / known) ** 2
    assert left_out_error(observed, state, 0.0) == pytest.approx(expected, rel=1e-3)


@pytest.fixture
def observed(s, seen):
    return Observations(s, seen, most_noise=1.0)


@pytest.fixture
def rounds(observed, monkeypatch):
    """States after each of many rounds at fixed variances, and what F adds up."""
    monkeypatch.setattr(trajectory, "_limit_change", lambda new, old, *_: old)  # noqa: ARG005
    state, _ = start(observed.s, noise=0.02, process=0.005)
    states = [state]
    for _ in range(60):
        states.append(after(observed, states[-1]))
    of = terms(state, observed)
    return states, lambda state: of(np.concatenate([state.z, state.w]))[: -T - state.w.size]


def test_rounds_at_fixed_variances_go_down_to_where_the_gradient_vanishes(rounds):
    states, of = rounds
    values = np.array([np.sum(of(state) ** 2) for state in states])
    assert np.all(np.diff(values) <= 1e-9 * values[0])
    assert values[-1] < 0.9 * values[0]
    first, last = (np.abs(slope(of, state) @ of(state)).max() for state in (states[0], states[-1]))
    assert last < 1e-3 * first


def slope(of, state):
    """Derivatives of what F adds up, by z and w, shape (T + p, n)."""
    both = np.concatenate([state.z, state.w])
    return jacobian(lambda at: of(replace(state, z=at[:T], w=at[T:])), both).T


def dense_evidence(of, state, seen):
    D = slope(of, state)
    held = np.diag(np.append(np.full(T, 1e-6), np.zeros(state.w.size)))
    return (
        np.sum(of(state) ** 2)
        + seen.sum() * np.log(state.noise)
        + (T - L) * np.log(state.process)
        + state.basis.n_smooth * np.log(state.prior)
        + np.linalg.slogdet(D @ D.T + held)[1]
    )


@pytest.mark.parametrize("k", [1, 2, 3, 5, 10, 60])
def test_the_evidence_is_that_of_laplace(rounds, seen, k):
    """On the way, too: otherwise the lowest one passed is an accident of the way."""
    states, of = rounds
    assert states[k].evidence == pytest.approx(dense_evidence(of, states[k], seen), abs=0.01)


def test_many_rounds_are_rounds_one_by_one(observed):
    state, _ = start(observed.s, noise=0.02)
    passed = [improve(observed, state, rounds=1, share=0.5)[0]]
    np.testing.assert_array_equal(passed[0].z, state.z)  # the state itself, with its evidence
    for _ in range(9):
        passed.append(after(observed, passed[-1], 0.5))
    last, lowest = improve(observed, state, rounds=10, share=0.5)
    assert last.evidence == passed[-1].evidence
    np.testing.assert_array_equal(last.z, passed[-1].z)
    best = min(passed, key=lambda state: state.evidence)
    assert lowest.evidence == best.evidence < passed[0].evidence
    np.testing.assert_array_equal(lowest.z, best.z)


@pytest.mark.parametrize(("least", "most"), [(0.0, 0.001), (0.5, 0.5)])
def test_the_noise_stays_within_its_bounds(s, seen, least, most):
    observed = Observations(s, seen, most, least)
    state, _ = start(s, noise=min(max(0.02, least), most))
    for _ in range(5):
        state = after(observed, state, 0.5)
        assert least <= state.noise <= most
        assert state.process >= 0.01 * state.noise
    assert state.noise == pytest.approx(most)


def test_without_noise_the_evidence_is_that_of_the_observed_windows(s):
    """So that the two can be compared."""
    state, fit = start(s, noise=1e-9)
    state = replace(state, process=fit.variance)
    same, _ = improve(Observations(s, np.ones(T), most_noise=1.0), state, rounds=1, share=0.0)
    assert same.evidence == pytest.approx(fit.evidence, abs=1e-2)


def kalman_smoother(s, seen, lags, intercept, R, Q):
    """Smoothed means of an autoregression seen through noise, Rauch, Tung and Striebel."""
    A = np.array([[0.0, 1.0], lags])
    b, V = np.array([0.0, intercept]), np.diag([0.0, Q])
    m, P = np.zeros(2), 1e7 * np.eye(2)  # nothing is known of the first window
    filtered, predicted = [], []
    for t in range(1, len(s)):
        if t > 1:
            m, P = A @ m + b, A @ P @ A.T + V
        predicted.append((m, P))
        for row in (0, 1) if t == 1 else (1,):  # two observations of the first window
            value = s[t - 1 + row] if t == 1 else s[t]
            if seen[t - 1 + row] if t == 1 else seen[t]:
                gain = P[:, row] / (P[row, row] + R)
                m, P = m + gain * (value - m[row]), P - np.outer(gain, P[row])
        filtered.append((m, P))
    smoothed = [m]
    for (m, P), (m_next, P_next) in zip(filtered[-2::-1], predicted[:0:-1], strict=True):
        back = P @ A.T @ np.linalg.pinv(P_next, rcond=1e-15)
        smoothed.append(m + back @ (smoothed[-1] - m_next))
    return np.concatenate([[smoothed[-1][0]], [m[1] for m in smoothed[::-1]]])


@pytest.mark.parametrize("missing", [False, True])
def test_smoothing_with_a_linear_map_is_that_of_kalman(missing, seen, rng):
    lags, intercept, R, Q = [-0.6, 1.2], 0.3, 0.5, 0.2
    z = np.zeros(T)
    for t in range(2, T):
        z[t] = lags @ z[t - 2 : t] + intercept + np.sqrt(Q) * rng.normal()
    s = z + np.sqrt(R) * rng.normal(size=T)
    seen = seen if missing else np.ones(T)
    seen[:2] = 1.0
    state, _ = start(s, noise=R, process=Q)
    w = np.append(np.zeros(state.basis.n_smooth), [*lags, intercept])
    found = smooth_latent(Observations(s, seen, R), replace(state, w=w))
    expected = kalman_smoother(s, seen, lags, intercept, R, Q)
    np.testing.assert_allclose(found.z, expected, atol=1e-4)


def test_rounds_end_when_the_evidence_hardly_changes(observed):
    state, _ = start(observed.s, noise=0.02)
    third, _ = improve(observed, state, 3, 0.5)
    assert improve(observed, state, 30, 0.5, enough=1e9)[0].evidence == third.evidence
    changes = np.abs(np.diff([improve(observed, state, k, 0.5)[0].evidence for k in range(2, 16)]))
    at = int(np.argmax(changes < 0.5))  # between rounds at + 2 and at + 3
    ended, _ = improve(observed, state, 30, 0.5, enough=0.5)
    assert ended.evidence == improve(observed, state, at + 3, 0.5)[0].evidence


def test_haste_takes_changes_of_variances_to_a_power(observed):
    state, _ = start(observed.s, noise=0.02)
    once, twice = (after(replace(observed, haste=haste), state) for haste in (1.0, 2.0))
    for name in ("noise", "process"):
        change = getattr(once, name) / getattr(state, name)
        expected = np.clip(change**2, 0.25, 4.0) * getattr(state, name)
        assert 0.25 < change < 4.0
        assert getattr(twice, name) == pytest.approx(expected)
    assert twice.prior == once.prior
