r"""Rows a network for all series learns from: one for each origin of each series.

.. math:: x = \frac{(y_{t-1}, \ldots, y_{t-p+1}, \text{slow means}) - y_t}{d_t}, \qquad
    z_k = \frac{y_{t+k} - y_t}{d_t}, \qquad d_t = \text{mean}_{\tau \le t} |y_\tau - y_{\tau - m}|

Values count by their distance from the latest one, in units of the series' own usual change over
a season, so short and long, large and small series look alike. Slow means are exponential ones.
For every step ahead there are further inputs: what its phase of the season used to be like, how
far a series had moved by then in former long seasons (years of days, weeks of hours), and how
unusual the same date was in former years.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rbfdiffnet.models.stack.histories import Histories

__all__ = ["RowMaker", "Rows"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SLOW = (0.01, 0.05, 0.15, 0.4)
_BY_PHASE = (0.2, 0.5)
_WEEK, _YEAR = 7, 365.25  # days
_LONG = {_WEEK: 364, 24: 168}  # seasons of seasons
_MOST_LONG = 3  # back to which inputs look; two more must have been seen
_FARTHEST = 1_000.0
_LEVEL = 10.0
_VALUES_PER_LAG = 6
_ROUNDING = 1e-12  # of the mean size: smaller changes are none


@dataclass(frozen=True)
class Rows:
    """Inputs and targets.

    Attributes
    ----------
    series, at : ndarray of int of shape (n,)
        Series and column of the origin, the latest value seen.
    base, unit : ndarray of shape (n,)
        The latest value and the scale.
    X : ndarray of shape (n, p)
        Inputs for all steps ahead.
    ahead : ndarray of shape (n, h, q)
        Further inputs for each.
    targets : ndarray of shape (n, h)
        NaN where not seen yet.
    """

    series: Ints
    at: Ints
    base: Array
    unit: Array
    X: Array
    ahead: Array
    targets: Array


@dataclass(frozen=True)
class RowMaker:
    """Everything that rows of a panel are cut from.

    Attributes
    ----------
    filled : ndarray of shape (n, T)
        Series that repeat their first value before they start.
    starts : ndarray of int of shape (n,)
    season, n_lags, h : int
    units : ndarray of shape (n, T)
        Scales; NaN where a series has not changed yet.
    slow, by_phase : tuple of ndarray of shape (n, T)
    long_seasons : int
        To how many long seasons back the inputs look.
    leveled : ndarray of bool of shape (n,)
        Which series have a level that says something.
    """

    filled: Array
    starts: Ints
    season: int
    n_lags: int
    h: int
    units: Array
    slow: tuple[Array, ...]
    by_phase: tuple[Array, ...]
    long_seasons: int
    leveled: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, histories: Histories, n_lags: int, h: int) -> RowMaker:
        """Prepare to cut rows of so many lags and steps ahead."""
        m, values = histories.season, histories.values
        long = _LONG.get(m, 0)
        return cls(
            histories.filled(),
            histories.starts,
            m,
            n_lags,
            h,
            _units(values, m),
            tuple(_means(values, 1, alpha) for alpha in _SLOW),
            tuple(_means(values, m, alpha) for alpha in _BY_PHASE) if m > 1 else (),
            int(np.clip(histories.usual_length // long - 2, 0, _MOST_LONG)) if long else 0,
            np.ones(len(values), dtype=bool) if histories.logged is None else ~histories.logged,
        )

    def training(self, most: int) -> Rows:
        """Return rows of all origins, or of every so many where there are more than ``most``."""
        n, T = self.filled.shape
        first = self.starts + max(self.n_lags - 1, self.season if self.season > 1 else 0)
        columns = np.arange(T - 1)
        usable = (columns >= first[:, None]) & np.isfinite(self.units[:, :-1])
        every = -(-int(usable.sum()) // most) or 1
        usable &= (T - 2 - columns + np.arange(n)[:, None]) % every == 0
        return self.rows(*np.nonzero(usable))

    def latest(self) -> Rows:
        """Return the rows to forecast from, of all series that have ever changed."""
        T = self.filled.shape[1]
        series = np.flatnonzero(np.isfinite(self.units[:, -1]))
        return self.rows(series, np.full(series.size, T - 1))

    def rows(self, series: Ints, at: Ints) -> Rows:
        """Return the rows of some origins."""
        T = self.filled.shape[1]
        base, unit = self.filled[series, at], self.units[series, at]

        def seen(values: Array, columns: Ints) -> Array:
            """Values by distance from the latest one."""
            found = values[series[:, None], np.maximum(columns, 0)]
            return np.asarray((found - base[:, None]) / unit[:, None])

        here, first = at[:, None], self.starts[series][:, None]
        level = np.where(self.leveled[series], np.clip(base / unit, -_LEVEL, _LEVEL), 0.0)[:, None]
        inputs = [seen(self.filled, here - np.arange(1, self.n_lags))]
        inputs += [seen(values, here) for values in self.slow]
        X = np.concatenate([*inputs, level], axis=1)
        steps = np.arange(1, self.h + 1)
        back = self.season * -(-steps // self.season)
        ahead = [seen(values, here + steps - back) for values in self.by_phase]
        long, dated = _LONG.get(self.season, 0), self.season == _WEEK
        for k in range(self.long_seasons):
            turns = k + -(-steps // long)
            then = here + steps - turns * long
            moved = seen(self.filled, then) - seen(self.slow[1], here - (k + 1) * long)
            ahead.append(np.where(then >= first, moved, 0.0))
            if dated:
                then = here + steps - np.rint(turns * _YEAR).astype(np.int64)
                unusual = seen(self.filled, then) - seen(self.by_phase[0], then - self.season)
                ahead.append(np.where(then >= first, unusual, 0.0))
        targets = seen(self.filled, np.minimum(here + steps, T - 1))
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


def usual_lags(histories: Histories) -> int:
    """Return how many values a row sees.

    Some seasons, at most half of the usual length and a sixth of all values.
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


def _units(values: Array, season: int) -> Array:
    """Mean change over a season up to every column, or over a step as long as there is none."""
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


def _means(values: Array, season: int, alpha: float) -> Array:
    """Exponential means of the values of a phase, up to and with every column.

    Before a phase has been seen, that is the first value of the series.
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
