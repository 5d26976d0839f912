"""When the forecaster's networks run on clean states: what is learned, and what it must beat."""

import numpy as np
import pytest

from rbfdiffnet.datasets import henon_map, mackey_glass
from rbfdiffnet.models.networks.series_model import fit_tracked
from rbfdiffnet.models.networks.window_model import WindowModel, fit_windows, window_rows
from rbfdiffnet.network.train import Settings
from rbfdiffnet.noise import learn_trajectory
from rbfdiffnet.noise.filtering import FORECAST_PARTICLES
from rbfdiffnet.noise.maps import shape_of

N = 400
SYSTEMS = {"Mackey-Glass": (mackey_glass(N, step=6.0), 0.05), "Henon": (henon_map(N), 0.1)}

pytestmark = pytest.mark.usefixtures("remembered_trajectories")


def shocks(seed):
    return np.random.default_rng(seed).normal(size=N)


def noisy(name, seed=0):
    clean, level = SYSTEMS[name]
    return clean + level * shocks(seed)


def autoregression(seed):
    s, noise = np.zeros(N), shocks(seed)
    for t in range(2, N):
        s[t] = 1.2 * s[t - 1] - 0.6 * s[t - 2] + noise[t]
    return s


def everywhere(z):
    return np.ones(z.size, dtype=bool)


def ordinary(z, calls=None):
    """The usual network on the first values of a series; notes how many it was asked for."""

    def fit(n):
        if calls is not None:
            calls.append(n)
        none = np.zeros((n, 0))
        lags = (1, 2, 3, 4)
        X, Y = window_rows(z[:n], everywhere(z[:n]), none, lags=lags, level="none", block=1)
        settings = Settings(28, width_factor=4.0, metric="standard")
        return fit_windows(X, Y, settings, lags=lags, level="none")

    return fit


def same(one, other):
    """Whether two filters are the same."""
    for name in ("centers", "beta", "w", "linear", "metric", "x_shift", "y_scale"):
        np.testing.assert_array_equal(getattr(one.network, name), getattr(other.network, name))
    for name in ("noise", "process", "low", "high"):
        assert getattr(one, name) == getattr(other, name)


class Foresight:
    """A model that knows the series: its forecasts are the values that follow, plus an error."""

    reach = 8
    tracker = None

    def __init__(self, z, error):
        self.z, self.error = z, error

    def forecast(self, windows, h, extra):
        assert extra.shape == (len(windows), 0)
        whole = np.lib.stride_tricks.sliding_window_view(self.z, self.reach)
        ends = [int(np.flatnonzero((whole == row).all(axis=1))[0]) + self.reach for row in windows]
        return np.stack([self.z[end : end + h] for end in ends]) + self.error, []


def never(_n):
    raise AssertionError("the ordinary network is not needed")


@pytest.mark.parametrize("name", SYSTEMS)
def test_on_where_forecasts_gain(name):
    z = noisy(name)
    calls = []
    windows = fit_tracked(z, everywhere(z), 4, "auto", ordinary(z, calls))
    assert isinstance(windows, WindowModel)
    assert calls == [N - 80]  # without the last fifth
    assert (windows.lags, windows.level, windows.block) == ((1, 2, 3, 4), "none", 1)
    assert windows.tracker.noise == pytest.approx(SYSTEMS[name][1], rel=0.2)
    assert windows.reach == 64


@pytest.mark.slow
def test_what_is_returned_was_learned_from_everything():
    z = noisy("Henon")
    windows = fit_tracked(z, everywhere(z), 2, "auto", lambda _n: None)
    early = learn_trajectory(z[:-80], 2)
    found = learn_trajectory(z, 2, None, shape_of(early.network))
    assert windows.network is windows.tracker.network
    same(windows.tracker, found.tracker(z, early.tracker(z[:-80])))
    assert windows.tracker.slack / windows.tracker.process == pytest.approx(
        early.tracker(z[:-80]).slack / early.process
    )


def test_a_part_of_a_series_is_learned_like_the_whole():
    z = noisy("Henon")
    whole = fit_tracked(z, everywhere(z), 2, "auto", lambda _n: None)
    level = whole.tracker.noise
    part = fit_tracked(z[:300], everywhere(z[:300]), 2, level, never, template=whole.tracker)
    assert part.tracker.noise == pytest.approx(level)
    np.testing.assert_allclose(shape_of(part.network), shape_of(whole.network), rtol=0.1)


def test_forecasts_are_those_of_the_filter():
    """From the middle of a batch, too, where windows that go on are tracked as one."""
    z = noisy("Henon")
    windows = fit_tracked(z, everywhere(z), 2, 0.1, never)
    rows = np.stack([z[o - 62 : o] for o in (100, 200, 300)])
    path, inputs = windows.forecast(rows, 5, np.zeros((3, 0)))
    for row, expected in zip(path, rows, strict=True):
        np.testing.assert_array_equal(
            row, windows.tracker.forecast(expected, 5, np.array([0.5]))[:, 0]
        )
    assert [x.shape for x in inputs] == [(3, 2)] * 5
    np.testing.assert_array_equal(inputs[2], path[:, :2])
    *_, cloud = windows.tracker.track(rows[1], FORECAST_PARTICLES)
    np.testing.assert_array_equal(inputs[0][1], np.median(cloud, axis=0))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", ["autoregression", "random walk"])
def test_off_where_the_noise_is_in_the_process(kind, seed):
    z = autoregression(seed) if kind == "autoregression" else shocks(seed).cumsum()
    assert isinstance(fit_tracked(z, everywhere(z), 4, "auto", lambda _n: None), str)


@pytest.mark.parametrize("clean", [henon_map(N), np.sin(np.arange(N) / 5.0)], ids=["Henon", "sine"])
def test_off_where_there_is_no_noise(clean):
    assert isinstance(fit_tracked(clean, everywhere(clean), 2, "auto", lambda _n: None), str)


@pytest.mark.parametrize(("error", "on"), [(0.0, False), (1e-3, False), (1.0, True)])
def test_the_ordinary_network_has_a_say(error, on):
    z = noisy("Mackey-Glass")
    asked = []

    def plain(n):
        asked.append(n)
        return Foresight(z, error)

    assert isinstance(fit_tracked(z, everywhere(z), 4, "auto", plain), WindowModel) == on
    assert asked == [N - 80]


@pytest.mark.slow
def test_a_little_better_is_not_enough():
    """The errors of both are compared as they are, with a margin of a tenth."""
    z = noisy("Mackey-Glass")
    tracker = learn_trajectory(z[:-80], 4).tracker(z[:-80])
    origins = np.unique(np.linspace(N - 80, N - 10, 20).astype(int))
    start = origins[0] - 64
    clouds = list(tracker.track(z[start : origins[-1]]))
    paths = [np.median(tracker.roll(clouds[o - start - 4], 10), axis=0) for o in origins]
    error = np.mean([np.abs(p - z[o : o + 10]).mean() for p, o in zip(paths, origins, strict=True)])
    for factor, on in ((0.99, False), (1.05, False), (1.1, False), (1.12, True)):
        plain = Foresight(z, factor * error)
        windows = fit_tracked(z, everywhere(z), 4, "auto", lambda _n, plain=plain: plain)
        assert isinstance(windows, WindowModel) == on


@pytest.mark.slow
def test_a_given_noise_is_used_as_it_is():
    level = 0.02
    z = noisy("Mackey-Glass")
    windows = fit_tracked(z, everywhere(z), 4, level, never)
    assert windows.tracker.noise == pytest.approx(level)
    z = autoregression(0)
    assert fit_tracked(z, everywhere(z), 4, level, never).tracker.noise == pytest.approx(level)


@pytest.mark.parametrize(
    ("n", "n_lags", "noise", "on"),
    [
        (99, 4, 0.05, False),
        (100, 4, 0.05, True),
        (123, 4, "auto", False),  # a fifth is held out
        (124, 4, "auto", True),
        (130, 21, 0.05, False),
        (200, 30, "auto", False),
    ],
)
def test_off_where_the_series_is_too_short(n, n_lags, noise, on):
    z = noisy("Mackey-Glass")[:n]
    assert (
        isinstance(fit_tracked(z, everywhere(z), n_lags, noise, lambda _n: None), WindowModel) == on
    )


@pytest.mark.parametrize("noise", ["auto", 0.1])
def test_off_where_nothing_varies(noise):
    assert isinstance(
        fit_tracked(np.ones(N), everywhere(np.ones(N)), 4, noise, lambda _n: None), str
    )


@pytest.mark.parametrize("noise", ["auto", 0.05])
def test_values_that_were_not_observed_are_not_learned_from(noise):
    z = noisy("Mackey-Glass")
    known = np.random.default_rng(1).random(N) > 0.1
    filled = np.interp(np.arange(N), np.flatnonzero(known), z[known])
    odd = np.where(known, z, filled + 3.0)
    windows, others = (
        fit_tracked(values, known, 4, noise, lambda _n: None) for values in (filled, odd)
    )
    same(windows.tracker, others.tracker)
    if noise == "auto":
        assert windows.tracker.noise == pytest.approx(0.05, rel=0.2)
