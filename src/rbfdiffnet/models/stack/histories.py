"""The series a stack learns from: rows of one array that end in its last column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

__all__ = ["Histories"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Histories:
    """Series without gaps, side by side.

    Attributes
    ----------
    values : ndarray of shape (n, T)
        They end in the last column; before a series starts there is NaN.
    season : int
        Steps in a season, 1 for none.
    logged : ndarray of bool of shape (n,), optional
        Which series are logarithms. The units of the observations decide on their level, so that
        it says nothing.
    """

    values: Array
    season: int
    logged: npt.NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, series: Sequence[Array], season: int) -> Histories:
        """Line up series of at least one value.

        Examples
        --------
        >>> import numpy as np
        >>> from rbfdiffnet.models.stack.histories import Histories
        >>> Histories.of([np.array([1.0, 2.0]), np.array([3.0])], season=1).values
        array([[ 1.,  2.],
               [nan,  3.]])
        """
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
    def positive(self) -> npt.NDArray[np.bool_]:
        """Which series are positive throughout."""
        return np.asarray(np.nanmin(self.values, axis=1) > 0.0)

    def with_values(self, values: Array) -> Histories:
        """Return other series with the same season."""
        return replace(self, values=values)

    def continued(self, forecasts: Array) -> Histories:
        """Return the series with forecasts (n, h) at their end; NaN repeats the last value."""
        steps = np.where(np.isnan(forecasts), self.values[:, -1:], forecasts)
        return self.with_values(np.concatenate([self.values, steps], axis=1))

    def filled(self) -> Array:
        """Series that repeat their first value before they start, shape (n, T)."""
        first = np.take_along_axis(self.values, self.starts[:, None], axis=1)
        return np.where(np.isnan(self.values), first, self.values)
