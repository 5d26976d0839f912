"""The series a stack learns from: rows of one array that end in its last column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rbfdiffnet.support.arrays import Array, Ints, Mask


@dataclass(frozen=True)
class Histories:
    """Series without gaps, side by side; ``season`` is the number of steps in a season, or 1."""

    values: Array  # (n, T), NaN before a series starts
    season: int
    # Which series are logarithms, (n,): their level depends on the units of the observations, and
    # says nothing.
    logged: Mask | None = None

    @classmethod
    def of(cls, series: Sequence[Array], season: int) -> Histories:
        """Line up series of at least one value."""
        values = np.full((len(series), max(y.size for y in series)), np.nan)
        for row, y in zip(values, series, strict=True):
            row[row.size - y.size :] = y
        return cls(values, season)

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
        """Return other series with the same season."""
        return replace(self, values=values)

    def extend(self, forecasts: Array) -> Histories:
        """Append forecasts (n, h) to the series; where they are NaN, repeat the last value."""
        steps = np.where(np.isnan(forecasts), self.values[:, -1:], forecasts)
        return self.with_values(np.concatenate([self.values, steps], axis=1))

    def fill_start(self) -> Array:
        """Repeat the first value before a series starts, as `gaps.fill_many` would; (n, T)."""
        first = np.take_along_axis(self.values, self.starts[:, None], axis=1)
        return np.where(np.isnan(self.values), first, self.values)
