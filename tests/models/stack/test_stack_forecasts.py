"""The members of a stack on arrays: one network for all series, autoregressions, and the rest."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter

from rbfdiffnet.models.stack import direct
from rbfdiffnet.models.stack import direct as direct_module
from rbfdiffnet.models.stack import local as local_module
from rbfdiffnet.models.stack.direct import (
    RowMaker,
    choose_lags,
    fit_least_absolute,
    forecast_direct,
)
from rbfdiffnet.models.stack.histories import Histories, Seasons
from rbfdiffnet.models.stack.local import _CLOSEST, _COMMON, _PENALTIES, forecast_local
from rbfdiffnet.models.stack.members import forecast_members
from rbfdiffnet.models.stack.smoothing import (
    forecast_damped_holt,
    forecast_on_logarithms,
    forecast_theta,
)


def walks(rng, lengths, level=50.0):
    return [level + rng.normal(size=n).cumsum() for n in lengths]


def seasonal(rng, lengths, m):
    return [
        walk + 5.0 * np.sin(2 * np.pi * np.arange(walk.size) / m + k)
        for k, walk in enumerate(walks(rng, lengths))
    ]


def autoregressive(rng, n, T, b=0.7, level=10.0):
    noise = rng.normal(size=(n, T + 50))
    return level + lfilter([1.0], [1.0, -b], noise, axis=1)[:, 50:]


# One network for all series -----------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 4, 7])
def test_units_do_not_matter_to_the_network(rng, m):
    series = seasonal(rng, rng.integers(40, 70, 8), m)
    forecast = forecast_direct(Histories.of(series, m), 5)
    assert np.isfinite(forecast).all()
    scale = 10.0 ** rng.uniform(-6.0, 6.0, len(series))
    scaled = [c * y for c, y in zip(scale, series, strict=True)]
    assert_allclose(
        forecast_direct(Histories.of(scaled, m), 5), scale[:, None] * forecast, rtol=1e-7
    )
    alike = [1e3 * y for y in series]
    assert_allclose(forecast_direct(Histories.of(alike, m), 5), 1e3 * forecast, rtol=1e-7)


def test_a_far_level_does_not_matter_to_the_network(rng):
    """Levels enter only where they are less than ten usual changes."""
    far = walks(rng, [50] * 8, level=1e4)
    forecast = forecast_direct(Histories.of(far, 1), 4)
    moved = forecast_direct(Histories.of([y + 1e4 for y in far], 1), 4)
    assert_allclose(moved - 1e4, forecast, rtol=1e-8)


@pytest.mark.parametrize("method", ["direct", "common", "walk"])
@pytest.mark.parametrize("m", [1, 12])
def test_the_order_of_the_series_does_not_matter(rng, method, m):
    series = seasonal(rng, rng.integers(50, 90, 12), m)
    series[3] = np.full(60, 4.0)

    def forecast(series):
        histories = Histories.of(series, m)
        if method == "direct":
            return forecast_direct(histories, 6)
        return forecast_local(histories, 6, common=method == "common")

    order = rng.permutation(len(series))
    expected = forecast(series)[order]
    assert_allclose(forecast([series[i] for i in order]), expected, rtol=1e-8)


def test_lines_are_continued():
    slopes = np.array([0.5, 1.0, -2.0, 3.0])
    series = [c * np.arange(n) + 7.0 for c, n in zip(slopes, (30, 40, 35, 25), strict=True)]
    ends = np.array([y[-1] for y in series])
    truth = ends[:, None] + slopes[:, None] * np.arange(1, 6)
    forecast = forecast_direct(Histories.of(series, 1), 5)
    # The sign of a slope is to be told from the inputs, which are penalized.
    assert_allclose(forecast, truth, atol=0.12 * np.abs(slopes).max() * 5)
    rising = Histories.of([y for y, c in zip(series, slopes, strict=True) if c > 0], 1)
    assert_allclose(forecast_direct(rising, 5), truth[slopes > 0], atol=0.1)


@pytest.mark.parametrize("method", [forecast_direct, "local"])
def test_an_autoregression_is_forecast_near_its_conditional_mean(rng, method):
    y = autoregressive(rng, 60, 120)
    histories = Histories.of(list(y), 1)
    if method == "local":
        forecast = forecast_local(histories, 4, common=True)
    else:
        forecast = method(histories, 4)
    steps = 0.7 ** np.arange(1, 5)
    truth = 10.0 + (y[:, -1:] - 10.0) * steps
    away = np.abs(forecast - truth).mean(axis=0)
    naive = np.abs(y[:, -1:] - truth).mean(axis=0)
    assert (away < 0.6).all()
    assert (away < 0.75 * naive).all()


def direct_by_hand(histories, h):
    """The linear model of every step ahead, straight from its rows."""
    maker = RowMaker.of(histories, choose_lags(histories), h)
    train, now = maker.training_rows(20_000), maker.latest_rows()
    T = histories.values.shape[1]
    half_life = max(histories.usual_length / 2, 2 * histories.season)
    forecast = np.empty((len(histories.values), h))
    v = 0.5 ** ((T - 1 - train.at) / half_life)
    # Inputs for all steps are scaled by all rows, those for one step by the rows that know it.
    center = np.average(train.X, axis=0, weights=v)
    spread = np.sqrt(np.average((train.X - center) ** 2, axis=0, weights=v))
    spread[spread < 1e-9] = 1.0
    for k in range(h):
        known = train.at + k + 1 < T
        w = v[known]
        X = [(train.X[known] - center) / spread, (now.X - center) / spread]
        if train.ahead.shape[2]:
            ahead = train.ahead[known, k]
            middle = np.average(ahead, axis=0, weights=w)
            size = np.sqrt(np.average((ahead - middle) ** 2, axis=0, weights=w))
            X[0] = np.c_[X[0], (ahead - middle) / size]
            X[1] = np.c_[X[1], (now.ahead[:, k] - middle) / size]
        inputs, future = (np.c_[Z, np.ones(len(Z))] for Z in X)
        future = np.clip(future, inputs.min(axis=0), inputs.max(axis=0))
        p = inputs.shape[1] - 1
        penalty = np.r_[np.full(p, 0.01 + 0.1 * p / w.sum()), 0.0]
        b = fit_least_absolute(inputs, train.targets[known, k], w, penalty, steps=6)
        forecast[now.series, k] = now.base + now.unit * (future @ b)
    return forecast


@pytest.mark.parametrize("m", [1, 12])
def test_without_centers_the_linear_part_is_left(rng, m):
    histories = Histories.of(seasonal(rng, (60, 80, 70, 75), m), m)
    linear = forecast_direct(histories, 5, n_centers=0)
    assert_allclose(linear, direct_by_hand(histories, 5), rtol=1e-8)
    assert_array_equal(forecast_direct(histories, 5, n_centers=1), linear)
    full = forecast_direct(histories, 5)
    assert not np.allclose(full, linear, rtol=1e-6)
    assert np.abs(full - linear).max() < 10.0


def test_a_jump_at_the_end_is_not_taken_for_a_beginning(rng):
    """Inputs unlike all that was learned from do not lead far away from the latest value."""
    y = 200.0 + 0.3 * rng.normal(size=120).cumsum() + 0.5 * rng.normal(size=120)
    for steps in (3, 5, 8):
        for size in (-60.0, 60.0):
            moved = np.r_[y[:-steps], y[-steps:] + size]
            forecast = forecast_direct(Histories.of([moved], 12), 4)
            assert_allclose(forecast, moved[-1], atol=0.25 * abs(size))


def test_with_time_more_rows_are_learned_from(rng, monkeypatch):
    histories = Histories.of(seasonal(rng, (60, 80, 70, 75), 12), 12)
    everything = forecast_direct(histories, 5)
    monkeypatch.setattr(direct, "_MOST_ROWS", 100)
    assert not np.allclose(forecast_direct(histories, 5), everything)
    assert_allclose(forecast_direct(histories, 5, thorough=True), everything)


def test_basis_functions_follow_what_is_not_linear(rng):
    y = np.empty((20, 100))
    y[:, 0] = rng.uniform(0.1, 0.9, 20)
    for t in range(99):
        y[:, t + 1] = 3.8 * y[:, t] * (1.0 - y[:, t])
    histories, truth = Histories.of(list(y[:, :-1]), 1), y[:, -1]
    smooth = np.abs(forecast_direct(histories, 1)[:, 0] - truth).mean()
    linear = np.abs(forecast_direct(histories, 1, n_centers=0)[:, 0] - truth).mean()
    assert smooth < 0.6 * linear


def test_nothing_to_learn_from_gives_no_forecast(rng):
    assert np.isnan(forecast_direct(Histories.of([np.full(40, 2.0)], 1), 3)).all()
    assert np.isnan(forecast_direct(Histories.of(walks(rng, [4, 5]), 1), 3)).all()
    still_and_not = Histories.of([np.full(40, 2.0), *walks(rng, [40, 40])], 1)
    forecast = forecast_direct(still_and_not, 3)
    assert np.isnan(forecast[0]).all()
    assert np.isfinite(forecast[1:]).all()
    far = forecast_direct(Histories.of(walks(rng, [40]), 1), 100)
    assert np.isfinite(far[0, :5]).all()
    assert np.isfinite(far).all()  # forecasts are fed back where no row reaches so far


def test_few_of_many_rows_are_enough(rng, monkeypatch):
    histories = Histories.of(list(autoregressive(rng, 40, 100)), 1)
    everything = forecast_direct(histories, 3)
    monkeypatch.setattr(direct_module, "_MOST_ROWS", 1000)
    assert np.abs(forecast_direct(histories, 3) - everything).mean() < 0.2


# Autoregressions ----------------------------------------------------------------------------------


def local_rows(y, p):
    """Inputs and targets of one series, row by row."""
    ends = range(p - 1, y.size - 1)
    X = np.array([[*(y[t - p + 1 : t] - y[t]), 1.0] for t in ends])
    return X, np.array([y[t + 1] - y[t] for t in ends])


def ridge_with_prior(X, z, penalty, D, toward):
    rooted = np.sqrt(penalty * D)
    return np.linalg.lstsq(np.r_[X, np.diag(rooted)], np.r_[z, rooted * toward])[0]


def local_by_hand(series, h, p, common):
    """Forecasts of all series; every row is left out in turn to choose the penalty."""
    units = [np.abs(np.diff(y)).mean() for y in series]
    scaled = [y / unit for y, unit in zip(series, units, strict=True)]
    rows = [local_rows(y, p) for y in scaled]
    X, z = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    D = (X**2).mean(axis=0)
    toward = np.zeros(p)
    if common:
        toward = fit_least_absolute(X, z, np.ones(len(z)), np.full(p, _COMMON))
    forecasts = []
    for y, unit, (X, z) in zip(scaled, units, rows, strict=True):
        best, b = np.abs(z - X @ toward).mean(), toward
        for penalty in _PENALTIES:
            everything = ridge_with_prior(X, z, penalty, D, toward)
            error = 0.0
            for i in range(len(z)):
                others = np.arange(len(z)) != i
                without = ridge_with_prior(X[others], z[others], penalty, D, toward)
                left_out = abs(z[i] - X[i] @ without)
                # A row may not count more than twenty times its residual.
                error += min(left_out, abs(z[i] - X[i] @ everything) / _CLOSEST)
            if error / len(z) < best:
                best, b = error / len(z), everything
        path = list(y)
        room = 2.0 * max(np.ptp(y), 1.0)
        for _ in range(h):
            step = sum(c * (path[-p + j] - path[-1]) for j, c in enumerate(b[:-1]))
            following = path[-1] + step + b[-1]
            path.append(np.clip(following, y.min() - room, y.max() + room))
        forecasts.append(unit * np.array(path[-h:]))
    return np.array(forecasts)


@pytest.mark.parametrize("common", [True, False])
@pytest.mark.parametrize("m", [1, 4])
def test_autoregressions_by_hand(rng, common, m):
    series = [*autoregressive(rng, 3, 40), *walks(rng, (30, 25))]
    p = 8 if m == 1 else 6
    found = forecast_local(Histories.of(series, m), 5, common=common)
    assert_allclose(found, local_by_hand(series, 5, p, common), rtol=1e-7)


def test_each_series_has_its_own_units(rng):
    series = list(autoregressive(rng, 5, 40))
    scale = 10.0 ** np.arange(-4.0, 6.0, 2.0)
    for common in (True, False):
        found, scaled = (
            forecast_local(Histories.of(panel, 1), 4, common=common)
            for panel in (series, [c * y for c, y in zip(scale, series, strict=True)])
        )
        assert_allclose(scaled, scale[:, None] * found, rtol=1e-7)
        moved = forecast_local(Histories.of([y + 100.0 for y in series], 1), 4, common=common)
        assert_allclose(moved - 100.0, found, rtol=1e-8)


def test_a_series_of_its_own_may_leave_the_common_way(rng):
    panel = [*autoregressive(rng, 30, 60, b=0.9), *autoregressive(rng, 1, 400, b=-0.8)]
    y = panel[-1]
    found = forecast_local(Histories.of(panel, 1), 1, common=True)[-1, 0]
    assert abs(found - (10.0 - 0.8 * (y[-1] - 10.0))) < 0.5


@pytest.mark.parametrize("lengths", [[1], [2], [3, 1], [1, 40, 2], [5] * 4])
@pytest.mark.parametrize("common", [True, False])
def test_short_series_are_continued_somehow(rng, lengths, common):
    series = walks(rng, lengths)
    found = forecast_local(Histories.of(series, 12), 6, common=common)
    assert np.isfinite(found).all()
    assert np.abs(found - 50.0).max() < 60.0


def test_a_still_series_stays(rng):
    found = forecast_local(Histories.of([np.full(30, 7.0), *walks(rng, [30])], 1), 3, common=False)
    assert_allclose(found[0], 7.0)


def test_series_are_fitted_in_parts(rng, monkeypatch):
    histories = Histories.of(list(autoregressive(rng, 6, 40)), 1)
    once = forecast_local(histories, 3, common=True)
    monkeypatch.setattr(local_module, "_CELLS", 2 * 40 * 8)
    assert np.abs(forecast_local(histories, 3, common=True) - once).max() < 0.5


# All members --------------------------------------------------------------------------------------


def test_members_are_their_methods_with_the_season_put_back(rng):
    zeros = np.where(rng.random(60) < 0.6, 0.0, 4.0)
    histories = Histories.of([*seasonal(rng, (60, 70, 80, 75), 12), zeros], 12)
    members = forecast_members(histories, 6)
    seasons = Seasons.fit(histories)
    bare = seasons.remove(histories)

    def on_logs(values, h):
        return forecast_direct(replace(histories, values=values, logged=histories.positive), h)

    expected = {
        "direct": forecast_direct(histories, 6),
        "direct, log": forecast_on_logarithms(on_logs, histories.values, 6),
        "local, common": seasons.restore(forecast_local(bare, 6, common=True)),
        "local, walk": seasons.restore(forecast_local(bare, 6, common=False)),
        "theta": seasons.restore(forecast_on_logarithms(forecast_theta, bare.values, 6)),
        "damped trend": seasons.restore(
            forecast_on_logarithms(forecast_damped_holt, bare.values, 6)
        ),
    }
    assert list(members) == list(expected)
    for name, forecast in expected.items():
        assert_array_equal(members[name], forecast)


def test_units_of_single_series_do_not_matter_to_any_member(rng):
    series = [*seasonal(rng, (60, 70, 80, 75), 12), rng.normal(size=60)]
    units = 2.0 ** np.array([-20, -6, 0, 5, 13])[:, None]
    found = forecast_members(Histories.of(series, 12), 6)
    other = forecast_members(
        Histories.of([u * y for u, y in zip(units, series, strict=True)], 12), 6
    )
    for name, forecast in found.items():
        assert_allclose(other[name], units * forecast, rtol=1e-9, err_msg=name)


def test_without_three_seasons_only_the_network_is_left(rng):
    short = Histories.of(walks(rng, [30] * 5), 12)
    assert all(name.startswith("direct") for name in forecast_members(short, 3))
    assert len(forecast_members(Histories.of(walks(rng, [36] * 5), 12), 3)) == 6
    assert len(forecast_members(Histories.of(walks(rng, [8] * 5), 1), 3)) == 6


def test_members_leave_no_series_but_still_ones_without_a_forecast(rng):
    series = [*walks(rng, (40, 9, 80)), np.zeros(30), np.full(50, 3.0), rng.poisson(0.3, 60) * 1.0]
    for m in (1, 4):
        members = forecast_members(Histories.of(series, m), 5)
        for name, forecast in members.items():
            moving = [0, 1, 2, 5] if name.startswith("direct") else range(6)
            assert np.isfinite(forecast[list(moving)]).all()
