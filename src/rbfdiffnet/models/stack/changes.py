"""How much series change: the unit of their errors, and the growth of their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

import numpy as np

from rbfdiffnet.support.arrays import Array, Ints

_RECENT = 24  # steps that tell how large changes are now
_MOST_GROWTH = 3.0
_GROWTH_VARIES = 0.4  # variance of its logarithm
_CHANGES_VARY = 1.7  # the same of the ratio of two mean changes, times their number


def estimate_growth(usable: Sequence[Array], then: Ints, least: int) -> Array:
    """Estimate by how much the changes of series have grown since the steps ``then``; shape (n,).

    So intervals of growing series grow with them. The fewer changes of a series are known, the
    closer its growth is to that of the panel, and that to 1; it is bounded, too. Means are taken
    over at least ``least`` steps.
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
    shrunk = panel + (logs - common) * _GROWTH_VARIES / (_GROWTH_VARIES + noise)
    most = np.log(_MOST_GROWTH)
    return np.asarray(np.exp(np.clip(shrunk, -most, most)))


def measure_changes(usable: Sequence[Array], season: int, h: int) -> Array:
    """Measure the latest changes of each series over a step or a season, the smaller; shape (n,).

    Unknown ones are as large as usual for series of that size.
    """
    changes = np.array([_latest_change(y, season, h) for y in usable])
    sizes = np.array([_mean_size(y) for y in usable])
    known = np.isfinite(changes) & (sizes > 0.0)
    usual = float(np.median(changes[known] / sizes[known])) if known.any() else 0.0
    return np.where(np.isfinite(changes), changes, usual * sizes)


def measure_units(usable: Sequence[Array], season: int) -> Array:
    """Measure the mean change of each series over a season, or else over a step; NaN if unknown."""
    both = ((_mean_change(y, season), _mean_change(y, 1)) for y in usable)
    return np.array([next((d for d in own if d > 0.0), np.nan) for own in both])


def _latest_change(y: Array, season: int, h: int) -> float:
    latest = y[-max(2 * _RECENT, 3 * season, 3 * h) :]
    found = [_mean_change(latest[np.isfinite(latest)], lag) for lag in dict.fromkeys((1, season))]
    found = [change for change in found if change > 0.0]
    return min(found, default=_mean_change(y[np.isfinite(y)], 1))


def _mean_size(y: Array) -> float:
    """Return the mean size of the values of a series; 0 if unknown."""
    known = np.abs(y[np.isfinite(y)])
    return float(known.mean()) if known.size else 0.0


def _mean_change(y: Array, lag: int) -> float:
    """Return the mean change of a series over ``lag`` steps; NaN if unknown."""
    change = _changes(y, lag)
    return float(change.mean()) if change.size else np.nan


def _changes(y: Array, lag: int) -> Array:
    """Return the sizes of the changes of a series over ``lag`` steps, where they are known."""
    change = np.abs(y[lag:] - y[:-lag])
    return change[np.isfinite(change)]
