"""When a trajectory is learned, what is found then, and what does not matter."""

import numpy as np
import pytest

from rbfdiffnet.datasets import henon_map, logistic_map
from rbfdiffnet.noise import learn_trajectory
from rbfdiffnet.noise.search import largest_noise
from rbfdiffnet.noise.spikes import learn_spikes

N = 400
HENON = henon_map(N)
STEPS = np.arange(N)


def noise(seed, size=N):
    return np.random.default_rng(seed).normal(size=size)


def autoregression(seed):
    s, shocks = np.zeros(N + 100), noise(seed, N + 100)
    for t in range(2, s.size):
        s[t] = 1.2 * s[t - 1] - 0.6 * s[t - 2] + shocks[t]
    return s[100:]


def ikeda(size):
    """A map with more folds than eighty basis functions can follow."""
    z, path = 0.1 + 0.1j, []
    for _ in range(size + 500):
        z = 1.0 + 0.9 * z * np.exp(1j * (0.4 - 6.0 / (1.0 + abs(z) ** 2)))
        path.append(z.real)
    return np.array(path[-size:])


@pytest.fixture(scope="module")
def found():
    return learn_trajectory(HENON + 0.1 * noise(0), n_lags=2)


@pytest.mark.parametrize(("n_lags", "level"), [(2, 0.03), (2, 0.2), (4, 0.1)])
def test_noise_is_found_and_taken_out(n_lags, level):
    found = learn_trajectory(HENON + level * noise(1), n_lags)
    assert found.on
    assert found.reason == ""
    assert found.noise == pytest.approx(level, rel=0.15)
    assert found.signal_to_noise == pytest.approx(HENON.var() / level**2, rel=0.35)
    assert np.std(found.latent - HENON) < 0.5 * level


@pytest.mark.slow
def test_a_map_with_many_folds_gets_more_basis_functions():
    clean = ikeda(1000)
    level = 0.1 * clean.std()
    found = learn_trajectory(clean + level * noise(6, 1000), n_lags=4)
    assert len(found.network.centers) > 80
    assert np.std(found.latent - clean) < 0.9 * level


@pytest.mark.slow
def test_the_map_is_that_of_clean_windows():
    """Whatever the draw of the noise; by how much it is better depends on it."""
    X = np.lib.stride_tricks.sliding_window_view(henon_map(800)[400:], 3)
    ratios = []
    for seed in range(5):
        found = learn_trajectory(HENON + 0.1 * noise(seed), n_lags=2)
        error, blurred = (
            np.std(network.predict(X[:, :2])[:, 0] - X[:, 2])
            for network in (found.network, found.blurred)
        )
        ratios.append(error / blurred)
        expected = 1.0 - 1.4 * X[:, 1] ** 2 + 0.3 * X[:, 0]
        np.testing.assert_allclose(found.network.predict(X[:, :2])[:, 0], expected, atol=0.2)
    assert np.median(ratios) < 0.3
    assert max(ratios) < 0.8


def test_the_tracker_is_made_of_what_was_found(found):
    tracker = found.tracker(found.latent)
    assert tracker.network is found.network
    assert (tracker.noise, tracker.process) == (found.noise, found.process)
    assert tracker.slack >= tracker.process
    assert (tracker.low, tracker.high) == (found.latent.min(), found.latent.max())


def test_one_lag_is_enough_for_a_map_of_one_lag():
    clean = logistic_map(N)
    found = learn_trajectory(clean + 0.05 * noise(2), n_lags=1)
    assert found.on
    assert found.noise == pytest.approx(0.05, rel=0.15)
    assert np.std(found.latent - clean) < 0.5 * 0.05


@pytest.mark.parametrize(("shift", "scale"), [(1e6, 1e3), (-5.0, 1e-6), (0.0, -2.0)])
def test_units_do_not_matter(found, shift, scale):
    other = learn_trajectory(shift + scale * (HENON + 0.1 * noise(0)), n_lags=2)
    assert other.on
    assert other.noise == pytest.approx(found.noise * abs(scale), rel=1e-5)
    assert other.process == pytest.approx(found.process * abs(scale), rel=1e-5)
    np.testing.assert_allclose((other.latent - shift) / scale, found.latent, atol=1e-4)


def test_the_same_series_gives_the_same_trajectory(found):
    again = learn_trajectory(HENON + 0.1 * noise(0), n_lags=2)
    np.testing.assert_array_equal(again.latent, found.latent)
    np.testing.assert_array_equal(again.network.w, found.network.w)
    assert again.noise == found.noise


@pytest.mark.parametrize(
    ("s", "n_lags", "reason"),
    [
        (logistic_map(N), 1, "clean"),
        (HENON, 2, "clean"),
        (np.sin(STEPS * np.pi / 6.0) + 0.01 * STEPS, 4, "clean"),
        (np.tile([0.0, 1.0], N // 2), 2, "clean"),
        (np.sin(STEPS / 5.0), 1, "windows of this length"),
        (autoregression(0), 1, "windows of this length"),
        (noise(0).cumsum(), 1, "noise in the process"),
        (noise(1), 4, "noise in the process"),
    ],
)
def test_off_where_there_is_no_noise_to_take_out(s, n_lags, reason):
    found = learn_trajectory(s, n_lags)
    assert not found.on
    assert reason in found.reason
    assert found.noise == 0.0
    assert found.signal_to_noise == np.inf
    np.testing.assert_allclose(found.latent, s, atol=1e-12)
    assert found.network is found.blurred
    X = np.lib.stride_tricks.sliding_window_view(s, n_lags + 1)
    residual = X[:, -1] - found.network.predict(X[:, :-1])[:, 0]
    assert residual.std() <= 1.01 * found.blurred_error + 1e-12


@pytest.mark.parametrize(
    ("kind", "n_lags"),
    [("autoregression", 2), ("white noise", 8), ("random walk", 4), ("random walk", 2)],
)
def test_off_where_the_noise_is_in_the_process(kind, n_lags):
    make = {
        "autoregression": autoregression,
        "white noise": noise,
        "random walk": lambda seed: noise(seed).cumsum(),
    }[kind]
    for seed in (0, 2):
        found = learn_trajectory(make(seed), n_lags)
        assert not found.on
        assert found.reason


@pytest.mark.parametrize("level", [0.05, 0.2])
def test_a_given_noise_is_used_as_it_is(level):
    found = learn_trajectory(HENON + 0.1 * noise(0), n_lags=2, noise=level)
    assert found.on
    assert found.noise == pytest.approx(level)
    assert np.std(found.latent - HENON) < 0.1


def test_a_given_noise_turns_a_clean_series_on():
    assert learn_trajectory(HENON, n_lags=2, noise=0.01).on


def test_a_given_noise_may_be_too_large():
    clean = logistic_map(N)
    found = learn_trajectory(clean, n_lags=1, noise=0.05)
    assert np.std(found.latent - clean) < 0.05


@pytest.fixture(scope="module")
def gaps():
    gone = np.random.default_rng(3).random(N) < 0.1
    gone[[0, -1]] = False
    return gone


def errors(latent, gone):
    """Errors at the gaps, of a latent series and of lines across them."""
    lines = np.interp(STEPS, STEPS[~gone], HENON[~gone])
    return np.abs(latent - HENON)[gone], np.abs(lines - HENON)[gone]


@pytest.mark.parametrize("given", [0.003, 0.03])
def test_missing_values_are_found_where_the_noise_is_given(gaps, given):
    found = learn_trajectory(np.where(gaps, np.nan, HENON), 2, noise=given)
    error, lines = errors(found.latent, gaps)
    assert np.median(error) < 0.1 * np.median(lines)
    assert np.sqrt(np.mean(error**2)) < 0.1 * np.sqrt(np.mean(lines**2))


@pytest.mark.parametrize("n_lags", [2, 4])
def test_noise_is_found_among_missing_values(gaps, n_lags):
    found = learn_trajectory(np.where(gaps, np.nan, HENON + 0.05 * noise(4)), n_lags)
    assert found.on
    assert found.noise == pytest.approx(0.05, rel=0.15)
    error, lines = errors(found.latent, gaps)
    assert np.median(error) < 0.1 * np.median(lines)


@pytest.mark.parametrize("n_lags", [2, 4])
def test_a_run_of_missing_values_does_not_hide_the_noise(n_lags):
    s = HENON + 0.1 * noise(0)
    s[150:160] = np.nan
    found = learn_trajectory(s, n_lags)
    assert found.on
    assert found.noise == pytest.approx(0.1, rel=0.15)


@pytest.mark.parametrize(("before", "after", "n_lags"), [(20, 0, 4), (0, 20, 2), (0, 20, 4)])
def test_values_missing_at_an_end_do_not_matter(before, after, n_lags):
    s = np.pad(HENON + 0.1 * noise(0), (before, after), constant_values=np.nan)
    found = learn_trajectory(s, n_lags)
    assert found.on
    assert found.noise == pytest.approx(0.1, rel=0.15)


@pytest.mark.parametrize("kind", ["noisy", "white"])
def test_windows_without_gaps_are_needed(kind):
    s = HENON + 0.02 * noise(0) if kind == "noisy" else noise(0)
    with pytest.raises(ValueError, match="gaps almost everywhere"):
        learn_trajectory(np.where(STEPS % 4, s, np.nan), n_lags=4)


def test_gaps_in_a_clean_series_are_bridged_by_its_map(gaps):
    found = learn_trajectory(np.where(gaps, np.nan, HENON), n_lags=2)
    assert not found.on
    np.testing.assert_array_equal(found.latent[~gaps].round(12), HENON[~gaps].round(12))
    np.testing.assert_allclose(found.latent[gaps], HENON[gaps], atol=1e-3)


def test_gaps_are_filled_with_lines_where_there_is_no_map(gaps):
    s = autoregression(0)
    found = learn_trajectory(np.where(gaps, np.nan, s), n_lags=2)
    assert not found.on
    lines = np.interp(STEPS, STEPS[~gaps], s[~gaps])
    np.testing.assert_allclose(found.latent, lines, atol=1e-12)


@pytest.mark.parametrize("level", [0.0, 0.1])
def test_spikes_count_as_missing(level):
    s = HENON + level * noise(0)
    at = [50, 120, 300]
    s[at] += [4.0, -5.0, 3.0]
    np.testing.assert_array_equal(np.flatnonzero(learn_spikes(s, 2)[1]), at)
    found = learn_trajectory(s, n_lags=2)
    assert found.on == (level > 0.0)
    np.testing.assert_allclose(found.latent[at], HENON[at], atol=0.01 + 2.0 * level)


def test_ordinary_series_have_no_spikes():
    for s in (HENON, HENON + 0.3 * noise(0), autoregression(0), noise(1), logistic_map(N)):
        assert not learn_spikes(s, 2)[1].any()


def test_bursts_and_jumps_are_no_spikes():
    """What they begin goes on, so they belong to the series."""
    s = HENON + 0.01 * noise(2)
    s[300:312] += 4.0
    assert not learn_spikes(s, 4)[1][298:302].any()
    finder, found = learn_spikes(HENON + 0.01 * noise(2), 4)
    assert finder is not None
    assert not found.any()
    later = henon_map(N, start=(0.3, 0.2)) + 0.01 * noise(3)
    later[[200, 203]] += 6.0
    later[250] = 0.0  # inside of the range: a clean series may do so
    np.testing.assert_array_equal(np.flatnonzero(finder.find(later)), [200, 203])
    assert not finder.find(np.where(STEPS > 350, later + 6.0, later))[340:390].any()


def test_a_single_exception_is_no_trajectory():
    s = np.zeros(N)
    s[200] = 1.0
    with pytest.raises(ValueError, match="Most observations are the same"):
        learn_trajectory(s, n_lags=2)


@pytest.mark.slow
def test_long_series_are_smoothed_in_full():
    """Map and variances come from the last values, the latent series has all of them."""
    clean = henon_map(5000)
    found = learn_trajectory(clean + 0.1 * noise(5, 5000), n_lags=2)
    assert found.on
    assert found.latent.shape == (5000,)
    for part in (slice(0, 1000), slice(1000, None)):
        assert np.std((found.latent - clean)[part]) < 0.05


@pytest.mark.parametrize(
    ("s", "n_lags", "message"),
    [
        (HENON[:49], 2, "49 observations are too few .* 2 lags; 100 are needed"),
        (HENON[:80], 16, "80 observations are too few .* 16 lags; 102 are needed"),
        (np.full(N, np.nan), 2, "0 observations are too few"),
        (np.where(STEPS % 10, np.nan, HENON), 2, "40 observations are too few"),
        (np.zeros(0), 2, "0 observations are too few"),
        (np.full(N, 3.0), 2, "Most observations are the same"),
    ],
)
def test_what_cannot_be_learned_is_said(s, n_lags, message):
    with pytest.raises(ValueError, match=message):
        learn_trajectory(s, n_lags)


def test_the_cap_is_above_the_noise():
    smooth = np.sin(STEPS / 5.0)
    for level in (0.01, 0.1, 1.0):
        s = smooth + level * noise(6)
        cap = np.sqrt(largest_noise(s, np.isfinite(s)))
        assert 0.95 * level < cap < 1.3 * level
    assert largest_noise(s, STEPS % 2 == 0) == pytest.approx(np.var(s[::2]))  # no neighbors
