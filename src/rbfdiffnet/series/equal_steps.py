"""Bring values that were observed at any times to equal steps of time."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import Akima1DInterpolator

from rbfdiffnet.support.arrays import Array

_FARTHEST = 2.5  # steps between two observations across which values are interpolated
_APART = 20  # steps between observations, from which on their distance is rounded to whole steps
_MOST_STEPS = 1000.0  # for each known value


def to_equal_steps(times: Array, values: Array) -> tuple[Array, float]:
    """Return values (n,) at equal steps up to the last time, and the step.

    ``times`` (T,) rise; ``values`` (T,) are NaN where missing. The step is the median distance
    between observations. Between them values are interpolated by Akima's curves, which do not
    overshoot much, and left out (NaN) where observations are more than 2.5 steps apart. Steps
    meet the last known value; after it, up to the last time, all are left out. The length of long
    gaps is rounded to whole steps.
    """
    known = np.isfinite(values)
    at, y = times[known], values[known]
    if at.size < 3:
        raise ValueError(f"{at.size} known values are too few for times.")
    step = float(np.median(np.diff(at)))
    apart = np.diff(at) / step
    long = apart > _APART
    if long.any():  # what lies between long gaps are pieces, each of which has its own clock
        apart[long] = np.round(apart[long])
        at = at[-1] - step * np.append(apart[::-1].cumsum()[::-1], 0.0)
    span, after = (at[-1] - at[0]) / step, (times[-1] - at[-1]) / step
    if span + after > _MOST_STEPS * at.size:
        raise ValueError(
            f"times reach over {span + after:g} steps of {step:g}, their median distance, with "
            f"only {at.size} known values; is there a wrong one, or a wrong unit?"
        )
    count = int(np.floor(span * (1.0 + 1e-12)))
    grid = at[-1] - step * np.arange(count, -1.0, -1.0)
    grid[0] = max(grid[0], at[0])
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(Akima1DInterpolator(at, y)(grid))
    except ValueError as error:
        raise ValueError("The series is too steep: some times are almost the same.") from error
    found[~np.isfinite(found)] = np.nan
    right = np.clip(np.searchsorted(at, grid), 1, at.size - 1)
    far = at[right] - at[right - 1] > _FARTHEST * step
    exact = np.isclose(grid, at[right], rtol=0.0, atol=1e-9 * step)
    exact |= np.isclose(grid, at[right - 1], rtol=0.0, atol=1e-9 * step)
    found[far & ~exact] = np.nan
    missing = np.full(int(np.floor(after + 1e-9)), np.nan)
    return np.concatenate([found, missing]), step
