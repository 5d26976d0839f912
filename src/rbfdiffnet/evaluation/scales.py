"""The units in which errors are measured: how much a series changes from step to step.

The values of many series lie one after the other in a flat array `y`. A segment of it, from `start`
up to but not including `stop`, holds the values that were known when a forecast was made.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def mean_change(y: Array, starts: Ints, stops: Ints, lag: int, power: int) -> Array:
    """Average |y_t - y_{t-lag}|**power over each segment; NaN where no change is known."""
    changes = np.abs(y[lag:] - y[:-lag]) ** power
    known = ~np.isnan(changes)
    counts = _sum_segments(known.astype(np.float64), starts, stops - lag)
    return divide(_sum_segments(np.where(known, changes, 0.0), starts, stops - lag), counts)


def mean_squared_step(y: Array, starts: Ints, stops: Ints) -> Array:
    """Average the squared steps of each segment from its first value that is not zero (M5)."""
    sold = np.flatnonzero(np.nan_to_num(y) != 0.0)
    first = np.append(sold, y.size)[np.searchsorted(sold, starts)]
    return mean_change(y, np.minimum(first, stops), stops, lag=1, power=2)


def scale_squared_error(squared: Array, scale: Array) -> Array:
    """Return the RMSSE: the root of a mean squared error, in units of the root of its scale."""
    return divide(np.sqrt(squared), np.sqrt(scale))


def divide(values: npt.ArrayLike, by: npt.ArrayLike) -> Array:
    """Divide; the quotient is NaN where the divisor is not above zero."""
    top, bottom = np.broadcast_arrays(np.asarray(values, float), np.asarray(by, float))
    quotient = np.full(top.shape, np.nan)
    np.divide(top, bottom, out=quotient, where=bottom > 0.0)
    return quotient


def _sum_segments(values: Array, starts: Ints, stops: Ints) -> Array:
    """Sum the values of segments, which may overlap; 0 for empty ones."""
    sums = np.zeros(len(starts))
    filled = stops > starts
    if filled.any():
        ends = np.stack([starts[filled], stops[filled]], axis=1).ravel()
        sums[filled] = np.add.reduceat(np.append(values, 0.0), ends)[::2]
    return sums
