r"""Rows a network for all series learns from: one for each origin of each series.

.. math:: x = \frac{(y_{t-1}, \ldots, y_{t-p+1}, \text{slow means}) - y_t}{d_t}, \qquad
    z_k = \frac{y_{t+k} - y_t}{d_t}, \qquad d_t = \text{mean}_{\tau \le t} |y_\tau - y_{\tau - m}|

Values count by their distance from the latest one, in units of the series' own usual change over
a season, so rows of short and long, large and small series are comparable. Slow means are
exponential ones. For every step ahead there are further inputs: the usual value of its phase of the
season, how far a series had moved by then in former long seasons (years of days, weeks of hours),
and how unusual the same date was in former years.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rbfdiffnet.models.stack.histories import Histories
from rbfdiffnet.series.naive import season_ago
from rbfdiffnet.support.arrays import Array, Ints, Mask

_SLOW = (0.01, 0.05, 0.15, 0.4)
_BY_PHASE = (0.2, 0.5)
_WEEK, _YEAR = 7, 365.25  # days
_LONG = {_WEEK: 364, 24: 168}  # seasons of seasons
_MOST_LONG = 3  # long seasons that inputs look back; two more must be known
_FARTHEST = 1_000.0
_LEVEL = 10.0
_VALUES_PER_LAG = 6
_ROUNDING = 1e-12  # of the mean size: smaller changes are none


@dataclass(frozen=True)
class Rows:
    """Inputs and targets of n rows."""

    series: Ints  # (n,)
    at: Ints  # (n,), column of the origin, the latest value seen
    base: Array  # (n,), the latest value
    unit: Array  # (n,), the scale
    X: Array  # (n, p), inputs for all steps ahead
    ahead: Array  # (n, h, q), further inputs for each step
    targets: Array  # (n, h), NaN where not known yet


@dataclass(frozen=True)
class RowMaker:
    """Everything that the rows of a panel are cut from, as arrays of shape (n, T)."""

    filled: Array  # series that repeat their first value before they start
    starts: Ints  # (n,)
    season: int
    n_lags: int
    h: int
    units: Array  # NaN where a series has not changed yet
    slow: tuple[Array, ...]
    by_phase: tuple[Array, ...]
    long_seasons: int  # how many long seasons the inputs look back
    has_level: Mask  # (n,), whether the level of a series says something

    @classmethod
    def of(cls, histories: Histories, n_lags: int, h: int) -> RowMaker:
        """Prepare to cut rows with ``n_lags`` lags and h steps ahead."""
        m, values = histories.season, histories.values
        long = _LONG.get(m, 0)
        return cls(
            histories.fill_start(),
            histories.starts,
            m,
            n_lags,
            h,
            _measure_units(values, m),
            tuple(_exponential_means(values, 1, alpha) for alpha in _SLOW),
            tuple(_exponential_means(values, m, alpha) for alpha in _BY_PHASE) if m > 1 else (),
            int(np.clip(histories.usual_length // long - 2, 0, _MOST_LONG)) if long else 0,
            np.ones(len(values), dtype=bool) if histories.logged is None else ~histories.logged,
        )

    def training_rows(self, most: int) -> Rows:
        """Return the rows of all origins, or of evenly spaced ones if there are more than most."""
        n, T = self.filled.shape
        first = self.starts + max(self.n_lags - 1, self.season if self.season > 1 else 0)
        columns = np.arange(T - 1)
        usable = (columns >= first[:, None]) & np.isfinite(self.units[:, :-1])
        every = -(-int(usable.sum()) // most) or 1
        usable &= (T - 2 - columns + np.arange(n)[:, None]) % every == 0
        return self.cut(*np.nonzero(usable))

    def latest_rows(self) -> Rows:
        """Return the rows to forecast from, of all series that have ever changed."""
        T = self.filled.shape[1]
        series = np.flatnonzero(np.isfinite(self.units[:, -1]))
        return self.cut(series, np.full(series.size, T - 1))

    def cut(self, series: Ints, at: Ints) -> Rows:
        """Return the rows of the origins in columns ``at`` of ``series``, both of shape (n,)."""
        T = self.filled.shape[1]
        base, unit = self.filled[series, at], self.units[series, at]

        def relative(values: Array, columns: Ints) -> Array:
            """Return values by their distance from the latest one, in units of the series."""
            found = values[series[:, None], np.maximum(columns, 0)]
            return np.asarray((found - base[:, None]) / unit[:, None])

        here, first = at[:, None], self.starts[series][:, None]
        level = np.where(self.has_level[series], np.clip(base / unit, -_LEVEL, _LEVEL), 0.0)
        inputs = [relative(self.filled, here - np.arange(1, self.n_lags))]
        inputs += [relative(values, here) for values in self.slow]
        X = np.concatenate([*inputs, level[:, None]], axis=1)
        steps = np.arange(1, self.h + 1)
        same_phase = here + 1 + season_ago(self.h, self.season)
        ahead = [relative(values, same_phase) for values in self.by_phase]
        long, dated = _LONG.get(self.season, 0), self.season == _WEEK
        for k in range(self.long_seasons):
            turns = k + -(-steps // long)
            then = here + steps - turns * long
            moved = relative(self.filled, then) - relative(self.slow[1], here - (k + 1) * long)
            ahead.append(np.where(then >= first, moved, 0.0))
            if dated:
                then = here + steps - np.rint(turns * _YEAR).astype(np.int64)
                usual = relative(self.by_phase[0], then - self.season)
                unusual = relative(self.filled, then) - usual
                ahead.append(np.where(then >= first, unusual, 0.0))
        targets = relative(self.filled, np.minimum(here + steps, T - 1))
        targets = np.where(here + steps < T, targets, np.nan)
        nothing = np.empty((series.size, self.h, 0))
        return Rows(
            series,
            at,
            base,
            unit,
            np.clip(X, -_FARTHEST, _FARTHEST),
            np.clip(np.stack(ahead, axis=2), -_FARTHEST, _FARTHEST) if ahead else nothing,
            np.clip(targets, -_FARTHEST, _FARTHEST),
        )


def choose_lags(histories: Histories) -> int:
    """Choose how many values a row holds.

    These are some seasons, but at most half of the usual length and a sixth of all values.
    """
    m = histories.season
    if m == 1:
        n_lags = 12
    elif m <= 7:
        n_lags = min(8 * m, 60)
    elif m <= 12:
        n_lags = 3 * m
    else:
        n_lags = max(min(3 * m, 110), 1 + 7 * 24 if m == 24 else 0)
    most = min(histories.usual_length // 2, int(histories.lengths.sum()) // _VALUES_PER_LAG)
    return max(1, min(n_lags, most))


def _measure_units(values: Array, season: int) -> Array:
    """Return mean changes over a season up to every column; over a step before there is one."""
    found = np.full(values.shape, np.nan)
    for lag in dict.fromkeys((1, season)):
        change = np.abs(values[:, lag:] - values[:, :-lag])
        known = np.isfinite(change)
        counts = known.cumsum(axis=1)
        mean = np.where(known, change, 0.0).cumsum(axis=1) / np.maximum(counts, 1)
        found[:, lag:] = np.where(counts > 0, mean, found[:, lag:])
    known = np.isfinite(values)
    size = np.where(known, np.abs(values), 0.0).cumsum(axis=1)
    return np.where(found * known.cumsum(axis=1) > _ROUNDING * size, found, np.nan)


def _exponential_means(values: Array, season: int, alpha: float) -> Array:
    """Return exponential means of the values of a phase, up to and with every column.

    Before the first value of a phase, the mean is the first value of the series.
    """
    n, T = values.shape
    pad = -T % season
    table = np.pad(values, ((0, 0), (pad, 0)), constant_values=np.nan)
    table = table.reshape(n, -1, season)
    means = np.empty_like(table)
    mean = np.full((n, season), np.nan)
    for k in range(table.shape[1]):
        new = table[:, k]
        mean = np.where(np.isnan(mean), new, mean)
        mean = np.where(np.isnan(new), mean, mean + alpha * (new - mean))
        means[:, k] = mean
    first = np.take_along_axis(values, np.argmin(np.isnan(values), axis=1)[:, None], axis=1)
    means = means.reshape(n, -1)[:, pad:]
    return np.where(np.isnan(means), first, means)
