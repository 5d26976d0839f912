"""The particle filter against Kalman's, and what it owes to the map it follows."""

from dataclasses import replace

import numpy as np
import pytest

from rbfdiffnet.datasets import henon_map
from rbfdiffnet.noise import filtering, learn_trajectory
from rbfdiffnet.noise.filtering import StateFilter
from rbfdiffnet.noise.maps import make_basis, place_centers
from rbfdiffnet.series.windows import lag_windows

N, LEVEL = 1000, 0.1
CLEAN = henon_map(N)
NOISY = CLEAN + LEVEL * np.random.default_rng(0).normal(size=N)
LEVELS = np.array([0.1, 0.5, 0.9])


@pytest.fixture(scope="module")
def found():
    return learn_trajectory(NOISY[:400], n_lags=2)


@pytest.fixture(scope="module")
def tracker(found):
    assert found.on
    return found.tracker(NOISY[:400])


@pytest.fixture(scope="module")
def windows():
    """Noisy windows that were not learned from, and the clean values after them."""
    return lag_windows(NOISY[398:700], 2)[0], CLEAN[400:700]


def rms(x):
    return np.sqrt(np.mean(np.square(x)))


def linear_filter(slope, noise, process, reach=5.0):
    X = np.random.default_rng(1).normal(size=(200, 1))
    basis = make_basis(place_centers(X, 1.0, 20), 1.0, 2.0)
    w = np.append(np.zeros(basis.n_smooth), [slope, 0.0])
    return StateFilter(basis.network(w, 0.0, 1.0), noise, process, process, -reach, reach)


def kalman(s, slope, noise, process):
    """Filtered means and standard deviations of an autoregression of order one."""
    m, P = 0.0, process**2 / (1.0 - slope**2)
    result = []
    for t, value in enumerate(s):
        if t:
            m, P = slope * m, slope**2 * P + process**2
        if np.isfinite(value):
            gain = P / (P + noise**2)
            m, P = m + gain * (value - m), (1.0 - gain) * P
        result.append((m, np.sqrt(P)))
    return np.array(result).T


@pytest.mark.parametrize(
    ("particles", "lost", "tolerance"), [(10_000, 0.0, 0.1), (400, 0.01, 0.5)], ids=str
)
def test_with_a_linear_map_the_filter_is_that_of_kalman(
    particles, lost, tolerance, rng, monkeypatch
):
    monkeypatch.setattr(filtering, "_LOST", lost)
    slope, noise, process = 0.8, 0.5, 0.3
    z = np.zeros(100)
    for t in range(1, z.size):
        z[t] = slope * z[t - 1] + process * rng.normal()
    s = z + noise * rng.normal(size=z.size)
    s[[20, 50, 51, 52]] = np.nan
    mean, deviation = kalman(s, slope, noise, process)
    clouds = list(linear_filter(slope, noise, process).track(s, particles))
    assert len(clouds) == s.size
    away = np.array([cloud[:, -1].mean() for cloud in clouds]) - mean
    assert np.abs(away).max() < tolerance * deviation.max()
    spread = np.array([cloud[:, -1].std() for cloud in clouds])
    np.testing.assert_allclose(spread, deviation, rtol=2.0 * tolerance)


def test_the_likelihood_of_a_linear_map_is_that_of_kalman(rng, monkeypatch):
    monkeypatch.setattr(filtering, "_LOST", 0.0)
    slope, noise, process = 0.8, 0.5, 0.3
    z = np.zeros(60)
    for t in range(1, z.size):
        z[t] = slope * z[t - 1] + process * rng.normal()
    s = z + noise * rng.normal(size=z.size)
    mean, deviation = kalman(s, slope, noise, process)
    ahead = slope * mean[:-1]
    variance = (slope * deviation[:-1]) ** 2 + process**2 + noise**2
    expected = -0.5 * np.sum((s[1:] - ahead) ** 2 / variance + np.log(2.0 * np.pi * variance))
    steps = linear_filter(slope, noise, process)._follow(s, 10_000)
    assert sum(value for _, value in steps) == pytest.approx(expected, abs=0.3)
    few = linear_filter(slope, noise, process).log_likelihood(s)
    assert few == pytest.approx(expected, abs=1.0)


def test_slack_is_there_where_the_map_is_wrong(rng):
    slope, noise = 0.8, 0.1
    z = np.zeros(200)
    for t in range(1, z.size):
        z[t] = slope * z[t - 1] + 0.4 * rng.normal()
    s = z + noise * rng.normal(size=z.size)
    for process in (0.1, 0.4):
        found = linear_filter(slope, noise, process)
        found = replace(found, low=float(z.min()), high=float(z.max()))
        assert found.tune(s).slack == pytest.approx(0.4)


def test_filtered_windows_beat_noisy_ones(found, tracker, windows):
    X, y = windows
    error = rms(tracker.predict(X) - y)
    assert error < 0.75 * rms(tracker.network.predict(X)[:, 0] - y)
    assert error < 0.85 * rms(found.blurred.predict(X)[:, 0] - y)


def test_the_state_is_known_better_than_observed(tracker):
    means = np.array([cloud[:, -1].mean() for cloud in tracker.track(NOISY[400:800])][9:])
    assert rms(means - CLEAN[410:800]) < 0.8 * LEVEL


def test_rows_depend_on_no_row_after_them(tracker, windows):
    X, _ = windows
    whole = tracker.predict(X[:60])
    for k in (1, 2, 17, 59):
        np.testing.assert_array_equal(tracker.predict(X[:k]), whole[:k])


def test_rows_depend_on_no_unrelated_row_before_them(tracker, windows):
    X, _ = windows
    both = tracker.predict(np.concatenate([X[:20], X[40:60]]))
    np.testing.assert_array_equal(both[:20], tracker.predict(X[:20]))
    np.testing.assert_array_equal(both[20:], tracker.predict(X[40:60]))


def test_shuffled_rows_are_each_their_own_history(tracker, windows, rng):
    X, y = windows
    order = rng.permutation(len(X))
    shuffled = tracker.predict(X[order])
    assert rms(shuffled - y[order]) < rms(tracker.network.predict(X)[:, 0] - y)
    assert rms(tracker.predict(X) - y) < 0.9 * rms(shuffled - y[order])  # a longer history pays
    assert shuffled[0] == tracker.predict(X[order[:1]])[0]


def test_values_beyond_the_memory_are_forgotten(tracker):
    history = NOISY[:300].copy()
    expected = tracker.forecast(history, 5, LEVELS)
    history[: 300 - filtering.MEMORY - 2] = 77.0
    np.testing.assert_array_equal(tracker.forecast(history, 5, LEVELS), expected)


def test_quantiles_are_ordered_and_cover(tracker):
    inside = []
    for o in range(420, 980, 14):
        paths = tracker.forecast(NOISY[o - 40 : o], 4, LEVELS)
        assert paths.shape == (4, 3)
        assert np.all(np.diff(paths, axis=1) >= 0.0)
        clean = CLEAN[o : o + 4]
        inside.append((paths[:, 0] <= clean) & (clean <= paths[:, 2]))
    assert np.all(np.abs(np.mean(inside, axis=0) - 0.8) < 0.15)


def test_certainty_is_lost_with_the_horizon(tracker):
    spans = [
        np.diff(tracker.forecast(NOISY[o - 40 : o], 20, LEVELS)[:, [0, 2]], axis=1)[:, 0]
        for o in range(420, 620, 20)
    ]
    early, late = np.mean(spans, axis=0)[[0, 15]]
    assert early < 0.5 * late


def test_a_jump_is_recovered_from_in_a_few_steps(tracker):
    """The state teleported: the history goes on as another stretch of the series."""
    away = []
    for k in range(20):
        first, then = slice(400 + 7 * k, 440 + 7 * k), slice(650 + 13 * k, 665 + 13 * k)
        clouds = tracker.track(np.concatenate([NOISY[first], NOISY[then]]))
        away.append([c[:, -1].mean() for c in clouds][-15:] - CLEAN[then])
    after = np.sqrt(np.mean(np.square(away), axis=0))
    assert after[3:].mean() < LEVEL
    assert after[0] > after[3:].mean()


def test_an_outlier_is_recovered_from(tracker):
    history = NOISY[400:440].copy()
    history[30] += 50.0
    away = np.array([c[:, -1].mean() for c in tracker.track(history)][-6:]) - CLEAN[434:440]
    assert rms(away) < 2.0 * LEVEL


@pytest.mark.parametrize("missing", [[5], [0, 1], [38, 39], range(10, 30), range(40)])
def test_missing_values_are_stepped_over(tracker, missing):
    history = NOISY[400:440].copy()
    history[list(missing)] = np.nan
    paths = tracker.forecast(history, 3, LEVELS)
    assert np.isfinite(paths).all()
    assert np.all((paths > -2.0) & (paths < 2.0))


def test_what_is_missing_makes_forecasts_less_certain(tracker):
    history = NOISY[400:440].copy()
    known = np.ptp(tracker.forecast(history, 1, LEVELS))
    history[-3:] = np.nan
    assert np.ptp(tracker.forecast(history, 1, LEVELS)) > known


def test_calls_repeat(tracker, windows):
    X, _ = windows
    np.testing.assert_array_equal(tracker.predict(X[:50]), tracker.predict(X[:50]))
    one, other = (tracker.forecast(NOISY[:450], 5, LEVELS) for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_clouds_are_those_of_tracking_each_step(tracker):
    history = NOISY[400:440]
    clouds = list(tracker.track(history))
    assert len(clouds) == 39
    assert {cloud.shape for cloud in clouds} == {(400, 2)}
    for k in (2, 3, 20, 39):  # a history is not touched by what follows
        *_, last = tracker.track(history[:k])
        np.testing.assert_array_equal(last, clouds[k - 2])
    rows = np.lib.stride_tricks.sliding_window_view(history, 10)
    for cloud, expected in zip(tracker.clouds(rows), clouds[8:], strict=True):
        np.testing.assert_array_equal(cloud, expected)


def test_predictions_are_means_over_the_cloud(tracker):
    *_, cloud = tracker.track(NOISY[400:440])
    assert tracker.predict(NOISY[None, 400:440])[0] == tracker.ahead(cloud).mean()


def test_paths_stay_near_the_clean_series(tracker):
    margin = 0.05 * (tracker.high - tracker.low)
    for start in (0.0, 1.5, 100.0):
        path = tracker.roll(np.full((50, 2), start), 30)
        assert np.all((path >= tracker.low - margin) & (path <= tracker.high + margin))
    far = np.array([[100.0, 100.0], [0.0, 0.0]])
    ahead = tracker.ahead(far)
    assert tracker.low - margin <= ahead[0] <= tracker.high + margin
    assert ahead[1] == tracker.network.predict(far)[1, 0]


def test_windows_that_leave_the_range_make_room_for_others():
    """None of them stays at the bound, and those that remain are not touched."""
    double = linear_filter(2.0, noise=0.1, process=1e-3, reach=1.0)
    path = double.roll(np.repeat([0.1, 0.9], 50)[:, None], 3)
    for k, expected in enumerate((0.2, 0.4, 0.8)):
        np.testing.assert_allclose(path[:, k], expected, atol=0.05)


def test_clouds_start_near_the_first_observations(tracker, rng):
    window = CLEAN[500:502]
    near = tracker.draw_near(window, 300, rng)
    assert np.all(np.abs(near.mean(axis=0) - window) < LEVEL)


def test_the_orbit_is_spread_like_the_clean_series(tracker):
    np.testing.assert_allclose(tracker.orbit.mean(axis=0), CLEAN.mean(), atol=0.05)
    np.testing.assert_allclose(tracker.orbit.std(axis=0), CLEAN.std(), rtol=0.05)
