"""The members of a stack on arrays: networks over all series, and the rest."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter

from rbfdiffnet.models.stack import rows as rows_module
from rbfdiffnet.models.stack.direct import (
    fit_least_absolute,
    learn_correction,
    learn_direct,
)
from rbfdiffnet.models.stack.histories import Histories, Seasons
from rbfdiffnet.models.stack.rows import RowMaker, RowTable, choose_row_cut, learned_steps
from rbfdiffnet.models.stack.smoothing import forecast_damped_holt, forecast_on_logarithms
from rbfdiffnet.pretrained import network
from rbfdiffnet.series.series import find_sparse
from stacks import learn_from


def forecast_direct(histories, h, n_centers=30):
    return learn_direct(histories, h, n_centers).forecast(histories, h)


def correct_forecasts(histories, forecasts, forecast):
    """Correct forecasts by what earlier ones left, which a function makes."""
    table = RowTable.learnable(histories, forecasts.shape[1])
    found = learn_correction(table, forecast(table.cut_series(histories)))
    return found.correct(histories, forecasts, table)


def all_members(histories, h):
    return learn_from(histories, h)[1]


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


@pytest.mark.parametrize("m", [1, 12])
def test_the_order_of_the_series_does_not_matter(rng, m):
    series = seasonal(rng, rng.integers(50, 90, 12), m)
    series[3] = np.full(60, 4.0)

    def forecast(series):
        return forecast_direct(Histories.of(series, m), 6)

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


def test_an_autoregression_is_forecast_near_its_conditional_mean(rng):
    y = autoregressive(rng, 60, 120)
    histories = Histories.of(list(y), 1)
    forecast = forecast_direct(histories, 4)
    steps = 0.7 ** np.arange(1, 5)
    truth = 10.0 + (y[:, -1:] - 10.0) * steps
    away = np.abs(forecast - truth).mean(axis=0)
    naive = np.abs(y[:, -1:] - truth).mean(axis=0)
    assert (away < 0.6).all()
    assert (away < 0.75 * naive).all()


def learn_by_hand(histories, train, now, ahead, then, targets, few):
    """What the latest rows lead to, step by step, by a linear model of the steps of one block.

    ``ahead`` (N, k, q) and ``then`` (n, h, q) are inputs of the steps.
    """
    T, (n, h, _) = histories.values.shape[1], then.shape
    v = 0.5 ** ((T - 1 - train.at) / max(histories.usual_length / 2, 2 * histories.season))
    known = np.isfinite(targets)

    def standardize(rows, latest, use):
        middle = np.average(rows[use], axis=0, weights=v[use])
        size = np.sqrt(np.average((rows[use] - middle) ** 2, axis=0, weights=v[use]))
        size[size < 1e-9] = 1.0
        return (rows - middle) / size, (latest - middle) / size

    X, latest = standardize(train.X, now.X, slice(None))
    X, latest = (np.c_[part, np.ones(len(part))] for part in (X, latest))
    latest = np.clip(latest, X.min(axis=0), X.max(axis=0))
    more, later = np.empty(ahead.shape), np.empty((n, *ahead.shape[1:]))
    for k in range(ahead.shape[1]):
        step = np.minimum(k, h - 1)
        more[:, k], later[:, k] = standardize(ahead[:, k], then[:, step], known[:, k])
    p, q = X.shape[1] - 1, ahead.shape[2]
    penalty = 0.01 + few * (p + q) / (v[:, None] * known).sum(axis=0)[:, None]
    penalty = penalty * np.r_[np.ones(p), 0.0, np.ones(q)]
    b = fit_least_absolute(X, targets.T, v, penalty, more.swapaxes(0, 1), steps=6)
    found = np.empty((n, h))
    for k in range(h):
        inside = more[known[:, k], k]
        step = np.clip(later[:, k], inside.min(axis=0), inside.max(axis=0)) if q else later[:, k]
        found[:, k] = np.c_[latest, step] @ b[k]
    return found


def direct_by_hand(histories, h):
    """The linear model of every step ahead, straight from its rows."""
    maker = RowMaker.of(histories, choose_row_cut(histories, h))
    (train, _), now = maker.training_rows(20_000), maker.latest_rows()
    found = learn_by_hand(
        histories, train, now, train.ahead, now.ahead[:, :h], train.targets, few=0.1
    )
    forecast = np.empty((len(histories.values), h))
    forecast[now.series] = now.base[:, None] + now.unit[:, None] * found
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
    monkeypatch.setattr(rows_module, "_MOST_ROWS", 1000)
    assert np.abs(forecast_direct(histories, 3) - everything).mean() < 0.2


# Corrections of other forecasts -------------------------------------------------------------------


def last_values(series, h):
    return np.array([np.full(h, y[-1]) for y in series])


def correct_by_hand(histories, forecasts, forecast):
    """The linear model of the errors of every step ahead, straight from its rows."""
    h = forecasts.shape[1]
    maker = RowMaker.of(histories, choose_row_cut(histories, h))
    (train, _), now = maker.training_rows(3_000), maker.latest_rows()
    starts = histories.starts
    cut = [
        histories.values[i, starts[i] : t + 1] for i, t in zip(train.series, train.at, strict=True)
    ]
    earlier = (forecast(cut) - train.base[:, None]) / train.unit[:, None]
    later = (forecasts[now.series] - now.base[:, None]) / now.unit[:, None]
    ahead = np.concatenate([train.ahead, earlier[:, :, None]], axis=2)
    then = np.concatenate([now.ahead[:, :h], later[:, :, None]], axis=2)
    found = learn_by_hand(histories, train, now, ahead, then, train.targets - earlier, few=1.0)
    corrected = forecasts.copy()
    corrected[now.series] += now.unit[:, None] * found
    return corrected


@pytest.mark.parametrize("m", [1, 12])
def test_corrections_by_hand(rng, m):
    histories = Histories.of(seasonal(rng, (60, 80, 70, 75), m), m)

    def forecast(series):
        return last_values(series, learned_steps(5, m))

    series = [y[np.isfinite(y)] for y in histories.values]
    found = correct_forecasts(histories, last_values(series, 5), forecast)
    expected = correct_by_hand(histories, last_values(series, 5), forecast)
    assert_allclose(found, expected, rtol=1e-8)


def test_corrections_learn_what_forecasts_leave(rng):
    """Last values are wrong for series that return to their mean; few rows change little."""
    y = autoregressive(rng, 60, 120)
    truth = 10.0 + (y[:, -1:] - 10.0) * 0.7 ** np.arange(1, 5)

    def correct(series):
        return correct_forecasts(
            Histories.of(series, 1), last_values(series, 4), lambda some: last_values(some, 8)
        )

    start, found = last_values(y, 4), correct(list(y))
    assert np.abs(found - truth).mean() < 0.4 * np.abs(start - truth).mean()
    alone = np.concatenate([correct([row[-14:]]) for row in y])
    assert np.abs(alone - start).mean() < 0.8 * np.abs(found - start).mean()


def test_nothing_is_corrected_where_there_are_no_rows(rng):
    short, still = Histories.of(walks(rng, [4, 5]), 1), Histories.of([np.full(40, 2.0)], 1)
    for histories in (short, still):
        start = rng.normal(size=(len(histories.values), 3))
        found = correct_forecasts(histories, start, lambda some: last_values(some, 8))
        assert_array_equal(found, start)
    far = correct_forecasts(
        Histories.of(walks(rng, [40]), 1), np.zeros((1, 90)), lambda some: last_values(some, 128)
    )
    assert (far[0, 60:] == far[0, 60]).all()  # no row reaches so far, and the correction stays
    assert (far[0, :20] != 0.0).all()


# All members --------------------------------------------------------------------------------------


def test_members_are_their_methods_with_the_season_put_back(rng):
    zeros = np.where(rng.random(60) < 0.6, 0.0, 4.0)
    histories = Histories.of([*seasonal(rng, (60, 70, 80, 75), 12), zeros], 12)
    members = all_members(histories, 6)
    seasons = Seasons.fit(histories)
    bare = seasons.remove(histories)

    def pretrained(series):
        found = network.forecast(series, 12, 12)
        return np.where(find_sparse(series)[:, None], found.mean, found.median)

    series = [y[np.isfinite(y)] for y in histories.values]
    expected = {
        "pretrained": pretrained(series)[:, :6],
        "corrected": correct_forecasts(histories, pretrained(series)[:, :6], pretrained),
        "direct": forecast_direct(histories, 6),
        "damped trend": seasons.restore(
            forecast_on_logarithms(forecast_damped_holt, bare.values, 6)
        ),
    }
    assert list(members) == list(expected)
    for name, forecast in expected.items():
        assert_allclose(members[name], forecast, rtol=1e-9)


def test_units_of_single_series_do_not_matter_to_any_member(rng):
    series = [*seasonal(rng, (60, 70, 80, 75), 12), rng.normal(size=60)]
    units = 2.0 ** np.array([-20, -6, 0, 5, 13])[:, None]
    found = all_members(Histories.of(series, 12), 6)
    other = all_members(Histories.of([u * y for u, y in zip(units, series, strict=True)], 12), 6)
    for name, forecast in found.items():
        assert_allclose(other[name], units * forecast, rtol=1e-9, err_msg=name)


def test_without_three_seasons_only_networks_are_left(rng):
    short = Histories.of(walks(rng, [30] * 5), 12)
    assert list(all_members(short, 3)) == ["pretrained", "corrected", "direct"]
    assert len(all_members(Histories.of(walks(rng, [36] * 5), 12), 3)) == 4
    assert len(all_members(Histories.of(walks(rng, [8] * 5), 1), 3)) == 4


def test_members_leave_no_series_but_still_ones_without_a_forecast(rng):
    series = [*walks(rng, (40, 9, 80)), np.zeros(30), np.full(50, 3.0), rng.poisson(0.3, 60) * 1.0]
    for m in (1, 4):
        members = all_members(Histories.of(series, m), 5)
        for name, forecast in members.items():
            moving = [0, 1, 2, 5] if name.startswith("direct") else range(6)
            assert np.isfinite(forecast[list(moving)]).all()
