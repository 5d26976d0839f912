r"""What the pretrained network sees of a series.

Everything is relative to the last value, in units of the mean change,

.. math:: v_t = (y_t - y_n) / s, \qquad s = .7 \, \overline{|y_t - y_{t-m}|}
    + .3 \, \overline{|y_t - y_{t-1}|},

so that the forecasts of a y + c are a times the forecasts of y, plus c. Three kinds of inputs are
made of v:

- those of the **level**, linear in the series: its last values, the usual deviation of their phase
  of the season, and means over many spans;
- those of the **phase** of each step ahead: how far the same phase of earlier seasons, of one
  season or of a longer one, was from the mean of its season, and how far growth would lead;
- those of the **gates**: all of these on a logarithmic scale, and facts such as the length of the
  series and the share of zeros.

A season of m steps may be part of a longer one (days: week and year; hours: day and week).
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: How many values the network looks back at most, unless that is less than three seasons.
LONGEST = 2048
_LAGS = 32  # latest values, and deviations of their phases
_SEASON_MEANS = 8
_SPANS = 11  # means of the last 2, 4, ..., 2048 values
_LONG_MEANS = 3  # of the last longer seasons
_PARTS = (4, 2)  # means of the last quarter and half of the series
#: Numbers of the inputs of the level, in their order: lags, usual deviations of their phases in the
#: season and in the longer one, means of seasons, of spans, of longer seasons and of parts.
LEVEL_SIZES = (_LAGS - 1, _LAGS, _LAGS, _SEASON_MEANS, _SPANS, _LONG_MEANS, len(_PARTS))
_NO_SEASON = 4  # steps in a block of a series without a season
_FARTHEST = 500.0  # units from the last value
_MOST_GROWTH = 200.0  # units
_FARTHEST_LEVEL = 7.0  # logarithm, in units: series still farther from zero are alike
_ROUNDING = 1e-12  # of the mean size: a smaller unit is none
_SMALL = 1e-3  # units: a level that nothing is divided by
_STEPS_SEEN, _QUARTERS_SEEN = 6, (1, 2, 3, 4)  # steps and quarters of a season the gates see
_SEEN = (0, 1, 2, 4, 8, 10, 11, 14, 16, 17)  # inputs of a phase that the gates see


def namespace(values: Any) -> Any:
    """Return the library of an array: NumPy, or torch, which calls nearly all alike."""
    if isinstance(values, np.ndarray):
        return np
    import torch

    return torch


def take(table: Any, at: Any) -> Any:
    """Return the values of each row at positions (B, k), or (1, k) for the same ones in all.

    Positions lie inside of the table, from 0 on.
    """
    if isinstance(table, np.ndarray):
        if len(at) == 1:
            return table.take(at[0], axis=1)
        return table.ravel().take(at + table.shape[1] * np.arange(len(table))[:, None])
    return table[:, at[0]] if len(at) == 1 else table.take_along_dim(at, 1)


def squares(values: Any, others: Any = None) -> Any:
    """Return sums of squares, or of products with other values, along rows."""
    return namespace(values).einsum("ij,ij->i", values, values if others is None else others)


def running_sums(values: Any) -> Any:
    """Return sums (B, T + 1) of the first 0, 1, ..., T values."""
    xp = namespace(values)
    return xp.concatenate([0.0 * values[:, :1], xp.cumsum(values, axis=1)], axis=1)


class SeriesInputs:
    """The inputs of a batch of series, arrays of NumPy or of torch.

    Series are rows of `values` (B, T), of which the last `lengths` (B,) count. `season` (B,) and
    `longer` (B,) are numbers of steps; a longer season of 0 is none. What is the same for all
    series may have shape (1,), which saves most of the work.
    """

    def __init__(self, values: Any, lengths: Any, season: Any, longer: Any) -> None:
        self.xp, (self.n_rows, self.n_columns) = namespace(values), values.shape
        self.values = values
        self.n, self.m, self.longer = lengths[:, None], season[:, None], longer[:, None]
        xp, T, n, m = self.xp, self.n_columns, self.n, self.m
        self.start = T - n
        self.at = at = self._range(0, T)
        self.seen = seen = at >= self.start
        self.is_full = xp is np and bool(seen.all())
        self.has_season = (m > 1) & (n > m)
        self.has_longer = (self.longer > 0) & (n > self.longer)
        self.block = xp.where(m > 1, m, 0 * m + _NO_SEASON)
        self.zero = zero = 0.0 * values
        lag = xp.where(self.has_season, m, 0 * m + 1)
        pairs = at >= self.start + lag
        change = abs(values - take(values, xp.clip(at - lag, 0, None)))
        self.change = xp.where(pairs, change, zero)
        step = self._if_seen(abs(values[:, 1:] - values[:, :-1]), 1)
        self.step = step.sum(1) / xp.clip(seen[:, :-1].sum(1), 1, None)
        unit = 0.7 * self.change.sum(1) / xp.clip(pairs.sum(1), 1, None) + 0.3 * self.step
        self.size = self._if_seen(abs(values)).sum(1) / xp.clip(seen.sum(1), 1, None)
        #: Which series (B,) change at all; the others have no unit.
        self.varies = unit > _ROUNDING * self.size + 1e-300
        self.unit = xp.where(self.varies, unit, 0.0 * unit + 1.0)
        self.base = values[:, -1]
        self.positive = ((values >= 0) | ~seen).all(1) & self.varies
        self.is_zero = (values == 0) & seen
        v = (values - self.base[:, None]) / self.unit[:, None]
        self.v = self._if_seen(xp.clip(v, -_FARTHEST, _FARTHEST))
        self.sums = running_sums(self.v)
        self.deviations, self.means = self._deviations(xp.where(m > 1, m, 0 * m + 1))
        longest = xp.where(self.has_longer, self.longer, 0 * m + 1)
        self.long_deviations, _ = self._deviations(longest)
        self.sums_of_deviations = [
            running_sums(own) for own in (self.deviations, self.long_deviations)
        ]

    def _range(self, start: int, stop: int) -> Any:
        """Return whole numbers as a row, where the series are."""
        if self.xp is np:
            return np.arange(start, stop)[None]
        return self.xp.arange(start, stop, device=self.start.device)[None]

    def _if_seen(self, values: Any, lag: int = 0) -> Any:
        """Return values (B, T - lag) that belong to the last columns, 0 before a series starts."""
        if self.is_full:
            return values
        stop = self.n_columns - lag
        return self.xp.where(self.seen[:, :stop], values, 0.0 * values)

    def _deviations(self, m: Any) -> tuple[Any, Any]:
        """Return distances from the mean of the season around, and those means, (B, T) both."""
        xp, T, start = self.xp, self.n_columns, self.start
        high = xp.clip(self.at + 1 + m // 2, None, T)
        low = high - m
        total = take(self.sums, high) - take(self.sums, xp.clip(low, 0, None))
        # Before half a season is over, the mean of the first season:
        first = xp.clip(start + m, None, T)
        begin = (take(self.sums, first) - take(self.sums, start)) / xp.clip(first - start, 1, None)
        mean = xp.where(low >= start, total / m, begin)
        return self._if_seen(self.v - mean), mean

    def _mean(self, low: Any, high: Any) -> Any:
        """Return means of v between positions (B, k), cut to what was seen."""
        xp = self.xp
        low = xp.clip(xp.maximum(low, self.start), None, self.n_columns - 1)
        high = xp.maximum(high, low + 1)
        total = take(self.sums, high) - take(self.sums, low)
        return total / (high - low)

    def _seasons_back(self, at: Any, m: Any, count: int, use: Any) -> tuple[Any, Any]:
        """Return positions 0, 1, ... seasons before others, (B, k, count), and which were seen."""
        back = at[..., None] - self._range(0, count)[None] * m[..., None]
        good = (back >= self.start[..., None]) & (back < self.n_columns) & use[..., None]
        return back, good

    def _look_up(self, table: Any, back: Any, good: Any) -> Any:
        """Return the values of a table at positions (B, k, j), 0 where they do not count."""
        xp = self.xp
        at = xp.clip(back, 0, self.n_columns - 1).reshape(len(back), -1)
        found = take(table, at).reshape(self.n_rows, *back.shape[1:])
        return xp.where(good, found, 0.0 * found)

    def _smooth(self, sums: Any, back: Any, good: Any, half: Any) -> Any:
        """Return means over positions (B, k, j) and `half` of them on both sides."""
        xp, T, start, half = self.xp, self.n_columns, self.start[..., None], half[..., None]
        low = xp.clip(xp.maximum(back - half, start), 0, T - 1)
        high = xp.maximum(xp.clip(back + half + 1, None, T), low + 1)
        total = take(sums, high.reshape(len(high), -1)) - take(sums, low.reshape(len(low), -1))
        found = total.reshape(self.n_rows, *back.shape[1:]) / (high - low)
        return xp.where(good, found, 0.0 * found)

    def _average(self, values: Any, good: Any, first: int = 0, stop: int | None = None) -> Any:
        """Return means over some of the last axis, 0 where nothing counts."""
        count = self.xp.clip(good[..., first:stop].sum(-1), 1, None)
        return values[..., first:stop].sum(-1) / count

    def steps(self, h: int) -> Any:
        """Return the steps 1 to h, (B, h), or (1, h) for the same season in all series."""
        return self._range(1, h + 1) + 0 * self.m

    def level(self) -> Any:
        """Return the inputs of the level (B, d)."""
        xp, T = self.xp, self.n_columns
        at = T - 1 - self._range(0, _LAGS) + 0 * self.n
        lags = take(self.v, xp.maximum(at, self.start)[:, 1:])
        back, good = self._seasons_back(at, self.m, 8, self.has_season)
        usual = self._average(self._look_up(self.deviations, back, good), good)
        back, good = self._seasons_back(at, self.longer, 4, self.has_longer)
        usual_longer = self._average(self._look_up(self.long_deviations, back, good), good)
        high = T - self._range(0, _SEASON_MEANS) * self.block
        seasons = self._mean(high - self.block, xp.maximum(high, self.start + 1))
        whole = high - self.block >= self.start
        seasons = xp.where(whole, seasons, seasons[:, :1] + 0.0 * seasons)
        span = 2 ** (self._range(0, _SPANS) + 1)
        spans = self._mean(T - span + 0 * self.n, T + 0 * (span + self.n))
        high = T - self._range(0, _LONG_MEANS) * self.longer
        longer = self._mean(high - self.longer, xp.maximum(high, self.start + 1))
        whole = (high - self.longer >= self.start) & self.has_longer
        longer = xp.where(whole, longer, 0.0 * longer)
        shares = [self._mean(T - self.n // part, T + 0 * self.n) for part in _PARTS]
        return xp.concatenate([lags, usual, usual_longer, seasons, spans, longer, *shares], axis=1)

    def phase(self, steps: Any) -> Any:
        """Return the inputs of steps ahead (B, k): an array (B, k, q)."""
        xp, T, m, longer = self.xp, self.n_columns, self.m, self.longer
        last = (self.base / self.unit)[:, None]
        at = T - 1 + steps - (steps + m - 1) // m * m
        back, good = self._seasons_back(at, m, 32, self.has_season)
        own = self._look_up(self.deviations, back, good)
        found = [own[..., j] for j in range(4)]
        found += [self._average(own, good, *part) for part in ((4, 8), (8, 16), (16, 32))]
        (sums, long_sums), few = self.sums_of_deviations, good[..., :6]
        smooth = self._smooth(sums, back[..., :6], few, (m + 8) // 20)
        found += [smooth[..., 0], self._average(smooth, few)]
        # As shares of the level then, times the level now.
        now = self._mean(T - self.block, T + 0 * self.n)
        level, few = now + last, good[..., :4]
        grows = self.positive[:, None] & (level > _SMALL)
        then = self._look_up(self.means, back[..., :4], few) + last[..., None]
        ratio = xp.clip(level[..., None] / xp.clip(then, _SMALL, None), 0.1, 10.0)
        scaled = xp.where(grows[..., None], own[..., :4] * ratio, own[..., :4])
        found += [scaled[..., 0], self._average(scaled, few)]
        at = T - 1 + steps - longer * ((steps + longer - 1) // xp.clip(longer, 1, None))
        back, good = self._seasons_back(at, longer, 6, self.has_longer)
        own = self._look_up(self.long_deviations, back, good)
        found += [own[..., 0], own[..., 1], self._average(own, good, 2, 6)]
        few = good[..., :4]
        smooth = self._smooth(long_sums, back[..., :4], few, m // 2)
        found += [smooth[..., 0], self._average(smooth, few, 1, 4)]
        for gap in (1, 3):
            steps_between = gap * self.block
            end = xp.maximum(T - steps_between, self.start + 1)
            before = self._mean(T - steps_between - self.block, end)
            then = before + last
            ratio = xp.clip(level, _SMALL, None) / xp.clip(then, _SMALL, None)
            rate = xp.log(ratio) / steps_between
            growth = level * (xp.exp(xp.clip(rate * steps, -3.0, 3.0)) - 1.0)
            line = (now - before) / steps_between * steps
            reached = xp.where(grows & (then > _SMALL), growth, line)
            known = self.n >= steps_between + self.block
            reached = xp.where(known, reached, 0.0 * reached)
            found.append(xp.clip(reached, -_MOST_GROWTH, _MOST_GROWTH))
        return xp.stack(found, axis=-1)

    def gates(self, level: Any) -> Any:
        """Return the inputs of the gates (B, g), given those of the level."""
        xp, near = self.xp, self.steps(_STEPS_SEEN)
        far = [xp.clip(quarter * self.m // 4, 1, None) for quarter in _QUARTERS_SEEN]
        phases = self.phase(xp.concatenate([near, *far], axis=1))
        phases = xp.stack([phases[..., i] for i in _SEEN], axis=-1).reshape(self.n_rows, -1)

        def squash(a: Any) -> Any:
            return xp.sign(a) * xp.log1p(abs(a))

        facts = [fact.reshape(-1, 1) + self.zero[:, :1] for fact in self._facts()]
        return xp.concatenate([squash(level), squash(phases), *facts], axis=1)

    def _facts(self) -> list[Any]:
        """Return single numbers of each series."""
        xp, v, n, m, zero = self.xp, self.v, self.n, self.m, self.zero
        count = xp.clip(self.seen.sum(1), 1, None)

        def log(a: Any) -> Any:
            return xp.log(a + zero[:, :1])

        def share(where: Any) -> Any:
            return (where.sum(1) + zero[:, 0]) / count

        nothing, level = 0.0 * self.unit, xp.log1p(abs(self.base) / self.unit)
        late = self.at >= self.n_columns - xp.minimum(2 * self.block, n)
        recent = xp.where(late, self.change, zero).sum(1) / xp.clip(late.sum(1), 1, None)
        longer_seen = log(n) - log(xp.clip(self.longer, 1, None))
        return [
            log(n) - 4.0,
            log(m) - 2.0,
            log(self.longer + 1) / 3.0,
            xp.clip(log(n) - log(self.block), -3.0, 6.0),
            xp.where(self.has_longer, longer_seen, 0.0 * longer_seen),
            self.positive,
            self.has_season,
            self.has_longer,
            xp.where(self.positive, share(self.is_zero), nothing),
            xp.where(self.positive, xp.clip(level, None, _FARTHEST_LEVEL), nothing),
            xp.log(xp.clip(self.step / self.unit, 0.01, 100.0)),
            share((v[:, 1:] == v[:, :-1]) & self.seen[:, :-1]),
            share(self.change > 4.0 * self.unit[:, None]),
            xp.log(xp.clip(recent / self.unit, 0.05, 20.0)),
            xp.log1p(squares(v) / count),
            xp.log1p(squares(self.deviations) / count),
            *self._correlations(),
        ]

    def _correlations(self) -> list[Any]:
        """Return correlations of steps and deviations with earlier ones."""
        xp, v, zero = self.xp, self.v, self.zero
        steps = self._if_seen(v[:, 1:] - v[:, :-1], 1)

        def with_lags(a: Any, lags: tuple[int, ...]) -> list[Any]:
            size = xp.clip(squares(a), 1e-9, None)
            return [squares(a[:, lag:], a[:, : a.shape[1] - lag]) / size for lag in lags]

        def with_season(a: Any, m: Any, use: Any) -> Any:
            both = (self.at >= self.start + m) & use
            before = take(a, xp.clip(self.at - m, 0, None))
            kept = xp.where(both, a, zero)
            product, square = squares(kept, before), squares(kept)
            return xp.clip(product / xp.clip(square, 1e-9, None), -1.0, 1.0)

        return [
            *with_lags(steps, (1, 2, 3)),
            *with_lags(self.deviations, (1, 2)),
            with_season(self.deviations, self.m, self.has_season),
            with_season(self.long_deviations, self.longer, self.has_longer),
        ]
