"""How much series change: the unit of their errors, and the growth of their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

import numpy as np
import numpy.typing as npt

__all__ = ["growth", "present_changes", "units"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_RECENT = 24  # steps that tell how large changes are now
_MOST_GROWTH = 3.0
_GROWTH_VARIES = 0.4  # variance of its logarithm
_CHANGES_VARY = 1.7  # the same of the ratio of two mean changes, times their number


def growth(usable: Sequence[Array], then: Ints, least: int) -> Array:
    """By how much the changes of series have grown since some of their steps, within bounds.

    So intervals of growing series grow with them. The fewer changes tell, the less they count,
    first where a series differs from the panel.
    """
    logs, noise = np.zeros(len(usable)), np.full(len(usable), np.inf)
    for i, (y, o) in enumerate(zip(usable, then.tolist(), strict=True)):
        recent = max(least, min(_RECENT, y.size // 3))
        before, after = (_changes(part, 1) for part in (y[max(o - recent, 0) : o], y[-recent:]))
        if before.any() and after.any():
            logs[i] = np.log(after.mean() / before.mean())
            noise[i] = _CHANGES_VARY / min(before.size, after.size)
    precision = 1.0 / noise
    if not precision.any():
        return np.ones(len(usable))
    total = fsum(precision)  # exact, so whatever the order of the panel
    common = fsum(precision * logs) / total
    panel = common * _GROWTH_VARIES / (_GROWTH_VARIES + 1.0 / total)
    drawn = panel + (logs - common) * _GROWTH_VARIES / (_GROWTH_VARIES + noise)
    most = np.log(_MOST_GROWTH)
    return np.asarray(np.exp(np.clip(drawn, -most, most)))


def present_changes(usable: Sequence[Array], season: int, h: int) -> Array:
    """How large the latest changes of each series are, over a step or a season, shape (n,).

    The smaller of both; where unknown, as large as usual for series of that size.
    """
    changes = np.array([_present_change(y, season, h) for y in usable])
    sizes = np.array([_size(y) for y in usable])
    known = np.isfinite(changes) & (sizes > 0.0)
    usual = float(np.median(changes[known] / sizes[known])) if known.any() else 0.0
    return np.where(np.isfinite(changes), changes, usual * sizes)


def units(usable: Sequence[Array], season: int) -> Array:
    """Mean change of each series over a season, or a step where there is none; NaN if unknown."""
    both = ((_change(y, season), _change(y, 1)) for y in usable)
    return np.array([next((d for d in own if d > 0.0), np.nan) for own in both])


def _present_change(y: Array, season: int, h: int) -> float:
    latest = y[-max(2 * _RECENT, 3 * season, 3 * h) :]
    found = [_change(latest[np.isfinite(latest)], lag) for lag in dict.fromkeys((1, season))]
    found = [change for change in found if change > 0.0]
    return min(found, default=_change(y[np.isfinite(y)], 1))


def _size(y: Array) -> float:
    """Mean size of the values of a series; 0 if unknown."""
    known = np.abs(y[np.isfinite(y)])
    return float(known.mean()) if known.size else 0.0


def _change(y: Array, lag: int) -> float:
    """Mean change of a series over so many steps; NaN if unknown."""
    change = _changes(y, lag)
    return float(change.mean()) if change.size else np.nan


def _changes(y: Array, lag: int) -> Array:
    """Sizes of the changes of a series over so many steps, where they are known."""
    change = np.abs(y[lag:] - y[:-lag])
    return change[np.isfinite(change)]
