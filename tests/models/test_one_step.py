"""One-step forecasts in batches are those made step by step, and see earlier values only."""

import numpy as np
import pytest

from rbfdiffnet.models import one_step
from rbfdiffnet.models.one_step import Look, find_first, forecast_one_step, score
from rbfdiffnet.pretrained.network import PROBABILITIES, forecast

LOOK = Look(season=1, longer=0)


def step_by_step(y, first):
    """The same with one forecast at a time: medians and spreads (T, 3)."""
    x, found, doubtful, gap = y.copy(), np.full((y.size, 3), np.nan), None, 0
    x[:first] = one_step.fill_missing(y[:first])

    def ahead(history, h):
        found = forecast([history], h, 1, longer=0).quantiles[0]
        quantiles = dict(zip(PROBABILITIES, found.T, strict=True))
        median, outer = quantiles[0.5], {0.95: 1.6448536, 0.99: 2.3263479}
        up = np.mean([(quantiles[p] - median) / z for p, z in outer.items()], axis=0)
        down = np.mean(
            [(median - quantiles[round(1 - p, 2)]) / z for p, z in outer.items()], axis=0
        )
        return np.stack([median, down, up], axis=1)

    for t in range(first, y.size):
        if np.isnan(y[t]):
            gap += 1
            continue
        choices = [x[: t - gap]]
        if doubtful is not None:
            slip = x[: t - gap].copy()
            slip[doubtful] = found[doubtful, 0]
            choices.append(slip)
        options = [ahead(history, gap + 1) for history in choices]
        best = int(np.argmin([abs(score(y[t], own[-1])) for own in options]))
        x[: t - gap] = choices[best]
        x[t - gap : t] = options[best][:-1, 0]
        found[t] = options[best][-1]
        doubtful = t if abs(score(y[t], found[t])) > 3.0 else None
        gap = 0
    return found


def spoiled(rng, n=90):
    """A series with gaps, slips, a slip before a gap, and a new level."""
    y = 20.0 + np.cumsum(rng.normal(size=n)) * 0.3 + rng.normal(size=n)
    y[60:] += 12.0
    y[[25, 40, 75]] += [15.0, -12.0, 20.0]
    y[[5, 30, 31, 41, 42, 43, 70]] = np.nan
    return y


def test_batches_forecast_as_if_step_by_step(rng):
    y = spoiled(rng)
    (found,) = forecast_one_step([y], [12], LOOK)
    np.testing.assert_allclose(found, step_by_step(y, 12), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(np.isfinite(found[12:, 0]), np.isfinite(y[12:]))
    assert np.isnan(found[:12]).all()


def test_forecasts_do_not_depend_on_other_series_and_batches(rng, monkeypatch):
    series = [spoiled(rng), spoiled(rng, 80), rng.normal(size=50)]
    together = forecast_one_step(series, [12, 20, 9], LOOK)
    monkeypatch.setattr(one_step, "_RUN", 7)
    monkeypatch.setattr(one_step, "_MOST_WALKS", 2)
    other = forecast_one_step(series[::-1], [9, 20, 12], Look(1, 0, n_jobs=2))[::-1]
    for a, b in zip(together, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_forecasts_do_not_see_later_values(rng):
    y = spoiled(rng)
    later = y.copy()
    later[50:] = rng.normal(size=later.size - 50) * 100.0
    (a,), (b,) = (forecast_one_step([own], [12], LOOK) for own in (y, later))
    np.testing.assert_allclose(a[:51], b[:51], rtol=1e-9)
    assert not np.allclose(a[51:], b[51:], equal_nan=True)


def test_a_slip_does_not_move_what_follows_and_a_new_level_does(rng):
    y = 50.0 + rng.normal(size=80)
    slip, level = y.copy(), y.copy()
    slip[60] += 25.0
    level[60:] += 25.0
    clean, slipped, moved = forecast_one_step([y, slip, level], [12] * 3, LOOK)
    # The value after is judged by both histories; from then on, the slip is forgotten.
    assert np.abs(slipped[62:, 0] - clean[62:, 0]).max() < 1.0
    assert np.abs(moved[66:, 0] - level[66:]).mean() < 5.0
    assert abs(score(slip[61], slipped[61])) < 3.0
    assert abs(score(level[61], moved[61])) < 5.0


@pytest.mark.parametrize(
    ("y", "season", "first"),
    [
        (np.arange(20.0), 1, 8),
        (np.arange(20.0), 12, 12),
        (np.r_[np.nan, np.nan, np.arange(20.0)], 1, 10),
        (np.r_[np.zeros(15), 1.0, 2.0, 3.0], 1, 16),
        (np.zeros(99), 1, 99),
        (np.zeros(120), 1, 100),
        (np.arange(7.0), 1, 7),
        (np.full(5, np.nan), 1, 5),
        (np.empty(0), 1, 0),
    ],
)
def test_the_first_step_has_enough_before_it(y, season, first):
    assert find_first(y, season) == first
