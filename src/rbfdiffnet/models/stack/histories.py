r"""The series a stack learns from, rows of one array that end in its last column; their seasons.

.. math:: y_t = \ell_t \, e^{s_{t \bmod m}} \quad \text{or} \quad y_t = \ell_t + s_{t \bmod m}

for positive and for other series. The indices s are the mean distances of a phase from the
centered moving average over a season, shrunk toward none by how little of their spread is more
than chance (James and Stein's rule): short and noisy series have hardly any season.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import convolve1d

from rbfdiffnet.support.arrays import Array, Ints, Mask

_FEWEST_SEASONS = 3  # in which a phase must have been seen


@dataclass(frozen=True)
class Histories:
    """Series without gaps, side by side; ``season`` is the number of steps in a season, or 1.

    ``longer`` is that in a longer season, 0 for none; None leaves it to those who need it. A series
    has the same one of the ``numbers`` wherever it ends. ``past`` are inputs that are known when
    they happen, NaN where missing.
    """

    values: Array  # (n, T), NaN before a series starts
    season: int
    longer: int | None
    numbers: Ints  # (n,)
    past: Array  # (n, T, p)

    @classmethod
    def of(
        cls,
        series: Sequence[Array],
        season: int,
        longer: int | None = None,
        numbers: Sequence[int] | None = None,
        past: Sequence[Array] = (),
    ) -> Histories:
        """Line up series of at least one value; they are numbered one after the other.

        ``past`` has the inputs of each series, arrays of shape (T, p), if there are any.
        """
        values = np.full((len(series), max(y.size for y in series)), np.nan)
        for row, y in zip(values, series, strict=True):
            row[row.size - y.size :] = y
        inputs = np.full((*values.shape, past[0].shape[1] if len(past) else 0), np.nan)
        for table, x in zip(inputs, past, strict=False):
            table[len(table) - len(x) :] = x
        own = np.arange(len(series)) if numbers is None else np.array(numbers, dtype=np.int64)
        return cls(values, season, longer, own, inputs)

    @property
    def starts(self) -> Ints:
        """Column of the first value of each series."""
        return np.asarray(np.argmin(np.isnan(self.values), axis=1))

    @property
    def lengths(self) -> Ints:
        """Number of values of each series."""
        return np.asarray(self.values.shape[1] - self.starts)

    @property
    def usual_length(self) -> int:
        """Median of the lengths."""
        return int(np.median(self.lengths))

    @property
    def positive(self) -> Mask:
        """Which series are positive throughout."""
        return np.asarray(np.nanmin(self.values, axis=1) > 0.0)

    def with_values(self, values: Array) -> Histories:
        """Return the same series with other values, or with their first values only."""
        return replace(self, values=values, past=self.past[:, : values.shape[1]])

    def select(self, chosen: Mask) -> Histories:
        """Return some of the series."""
        rows = self.values[chosen]
        began = np.isfinite(rows).any(axis=0)
        past = self.past[chosen][:, began]
        return replace(self, values=rows[:, began], numbers=self.numbers[chosen], past=past)

    def widen(self, n_columns: int) -> Histories:
        """Return the same series with at least so many columns."""
        pad = ((0, 0), (max(n_columns - self.values.shape[1], 0), 0))
        values = np.pad(self.values, pad, constant_values=np.nan)
        return replace(self, values=values, past=_pad_past(self.past, pad[1]))

    def extend(self, forecasts: Array) -> Histories:
        """Append forecasts (n, h) to the series; where they are NaN, repeat the last value."""
        steps = np.where(np.isnan(forecasts), self.values[:, -1:], forecasts)
        values = np.concatenate([self.values, steps], axis=1)
        return replace(self, values=values, past=_pad_past(self.past, (0, steps.shape[1])))

    def delay(self, delays: Sequence[int]) -> Histories:
        """Return the same series whose inputs become known so many steps (p,) later."""
        if not any(delays):
            return self
        past, n_columns = np.full(self.past.shape, np.nan), self.past.shape[1]
        for j, delay in enumerate(delays):
            past[:, delay:, j] = self.past[:, : max(n_columns - delay, 0), j]
        return replace(self, past=past)

    def move_on(self, forecasts: Array) -> Histories:
        """Append forecasts (n, h), as `extend` does, and forget as many of the first values."""
        values = self.extend(forecasts).values[:, forecasts.shape[1] :]
        return self.with_values(np.ascontiguousarray(values))

    def fill_start(self) -> Array:
        """Repeat the first value before a series starts, as `gaps.fill_many` would; (n, T)."""
        first = np.take_along_axis(self.values, self.starts[:, None], axis=1)
        return np.where(np.isnan(self.values), first, self.values)


def _pad_past(past: Array, pad: tuple[int, int]) -> Array:
    """Return inputs (n, T, p) with so many columns more, where they are missing."""
    return np.pad(past, ((0, 0), pad, (0, 0)), constant_values=np.nan)


@dataclass(frozen=True)
class Seasons:
    """Seasonal indices of a panel whose histories have ``n_columns`` columns."""

    indices: Array  # (n, m), by the column of the histories modulo m
    positive: Mask  # (n,), which series are divided by them, on the scale of logarithms
    n_columns: int

    @classmethod
    def fit(cls, histories: Histories) -> Seasons:
        """Find the seasons of series."""
        m, (n, T) = histories.season, histories.values.shape
        positive = histories.positive
        if m == 1 or _FEWEST_SEASONS * m > T:
            return cls(np.zeros((n, m)), positive, T)
        u = histories.values.copy()
        u[positive] = np.log(u[positive])
        kernel = np.full(m + 1 - m % 2, 1.0 / m)
        if m % 2 == 0:
            kernel[[0, -1]] /= 2.0
        half = kernel.size // 2
        away = np.full((n, T), np.nan)
        away[:, half : T - half] = (u - convolve1d(u, kernel, axis=1))[:, half : T - half]
        pad = -T % m
        table = np.pad(away, ((0, 0), (0, pad)), constant_values=np.nan).reshape(n, -1, m)
        known = np.isfinite(table)
        counts = known.sum(axis=1)
        means = np.where(known, table, 0.0).sum(axis=1) / np.maximum(counts, 1)
        squares = (np.where(known, table - means[:, None], 0.0) ** 2).sum(axis=(1, 2))
        free = np.maximum((counts - 1).sum(axis=1), 1)
        chance = squares / free / np.maximum(counts.mean(axis=1), 1.0)
        means -= means.mean(axis=1, keepdims=True)
        spread = (means**2).mean(axis=1)
        rule = max(m - 3, 1) / m
        share = 1.0 - rule * chance / np.where(spread > 0.0, spread, np.inf)
        enough = counts.min(axis=1) >= _FEWEST_SEASONS - 1  # the average has no ends
        indices = means * np.where(enough, np.clip(share, 0.0, 1.0), 0.0)[:, None]
        return cls(indices, positive, T)

    def remove(self, histories: Histories) -> Histories:
        """Return the series without their seasons."""
        return histories.with_values(self._shift(histories.values, 0, -1.0))

    def restore(self, forecasts: Array) -> Array:
        """Return forecasts (n, h) of series without seasons with the seasons to come."""
        return self._shift(forecasts, self.n_columns, 1.0)

    def _shift(self, values: Array, first: int, sign: float) -> Array:
        columns = (first + np.arange(values.shape[1])) % self.indices.shape[1]
        s, positive = sign * self.indices, self.positive[:, None]
        factors = np.exp(np.where(positive, s, 0.0)).take(columns, axis=1)
        moved = np.where(positive, values * factors, values + s.take(columns, axis=1))
        return np.asarray(moved)


def move_to_present_level(histories: Histories, repeated: Array) -> Array:
    """Move a repeated season, (n, h), to the level that its series has reached since.

    The last quarter of a season is compared with the same quarter a season ago: by the ratio of
    their means for positive series, by the difference for others. Where nothing is known of a
    season ago, nothing is changed.
    """
    m, n_columns = histories.season, histories.values.shape[1]
    quarter = min(max(m // 4, 2), n_columns - m)
    if quarter < 1:
        return repeated
    now = histories.values[:, -quarter:].mean(axis=1)
    then = histories.values[:, n_columns - m - quarter : n_columns - m].mean(axis=1)
    known, positive = np.isfinite(then), histories.positive
    ratio = np.where(known & positive, now / np.where(then > 0.0, then, 1.0), 1.0)
    change = np.where(known & ~positive, now - then, 0.0)
    return np.asarray(ratio[:, None] * repeated + change[:, None])
