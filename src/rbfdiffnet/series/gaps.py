"""Fill missing values, so that windows have no gaps.

The functions take many series of the same length at once, as NumPy arrays or PyTorch tensors of
shape (B, T) with NaN where a value is missing; `fill_missing` takes one series.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rbfdiffnet.batch.backend import NUMPY, Backend
from rbfdiffnet.support.arrays import Array

_SEASONS = 4  # in which a phase has no value, before its next step is closed
_MOSTLY = 0.5  # share of values that the other phases must have


def fill_missing(series: Array, season_length: int = 1) -> Array:
    """Fill the gaps of one series of shape (T,), which has at least one value; see `fill_many`."""
    known = np.isfinite(series)
    if known.all():
        return series
    if not known.any():
        raise ValueError("A series without any value cannot be filled.")
    return np.asarray(fill_many(series[None], season_length)[0])


def fill_many(
    series: Any, season_length: int = 1, backend: Backend = NUMPY, closed: Any = None
) -> Any:
    """Interpolate missing values between the same phases of the seasons around them.

    Before the first and after the last known value of a phase, that value is repeated. A closed
    step (`find_closed_steps`; ``closed``, if the mask is known already) repeats the value before
    it: an interpolated value would tell what comes next, and a network would learn to read it. Any
    other phase without a value is interpolated between its neighbors in time. A series without any
    value stays as it is.
    """
    xp, length = backend.xp, series.shape[1]
    values = _fold(series, season_length, backend)
    seasons = values.shape[1]
    known = xp.isfinite(values)
    number = backend.arange(seasons, series)[None, :, None] + xp.zeros_like(values)
    before = backend.running_max(xp.where(known, number, -1.0))
    mirrored = backend.flip(xp.where(known, seasons - 1 - number, -1.0))
    after = seasons - 1 - backend.flip(backend.running_max(mirrored))
    filled = _interpolate(values, number, before, after, backend)
    filled = filled.reshape(len(series), -1)[:, :length]
    if season_length < 2:
        return filled
    if closed is None:
        closed = find_closed_steps(series, season_length, backend)
    filled = xp.where(closed, xp.nan, filled)
    if bool(xp.isfinite(filled).all()):
        return filled
    return repeat_before(fill_many(filled, 1, backend), closed, backend)


def repeat_before(values: Any, closed: Any, backend: Backend = NUMPY) -> Any:
    """Replace the values of closed steps by the value before them; both have shape (B, T)."""
    xp = backend.xp
    number = backend.arange(closed.shape[1], closed)[None] + 0.0
    before = backend.running_max(xp.where(closed, -1.0, number))
    return backend.take(values, backend.integers(xp.clip(before, 0, None)), 1)


def carry_forward(series: Array, season_length: int) -> Array:
    """Replace missing values of one series, (T,), by the latest known value of their phase.

    Unlike `fill_many` this looks at no later value; before the first known value it leaves NaN.
    """
    table = _fold(series[None], season_length, NUMPY)[0]
    row = np.where(np.isfinite(table), np.arange(len(table))[:, None], -1)
    row = np.maximum.accumulate(row, axis=0)
    latest = np.take_along_axis(table, np.maximum(row, 0), axis=0)
    return np.where(row >= 0, latest, np.nan).ravel()[: series.size]


def find_closed_steps(series: Any, season_length: int, backend: Backend = NUMPY) -> Any:
    """Find the steps at which no value is to be expected, such as Sundays of a closed shop.

    A closed step has no value, and its phase had none in the four seasons before, in which the
    other phases had at least half of their values. In its first four seasons, a series is closed
    in the phases that have no value in all four. So the mask, of shape (B, T), does not depend on
    later values, and on earlier ones only for four seasons.
    """
    xp = backend.xp
    known = xp.isfinite(series)
    length, m, span = series.shape[1], season_length, _SEASONS * season_length
    if m < 2 or length < span or bool(known.all()):
        return known & ~known
    # Whether a phase has a value in four seasons that end with a step, from the first possible on.
    rest = length - span + m
    some = known[:, :rest]
    for k in range(1, _SEASONS):
        some = some | known[:, k * m : k * m + rest]
    open_phases = _count_in_windows(some, m, backend)
    values = _count_in_windows(known, span, backend)
    usual = (open_phases > 0) & (values >= _MOSTLY * _SEASONS * open_phases)
    early = ~some[:, :m] & usual[:, :1]
    late = ~some[:, : length - span] & usual[:, : length - span]
    return xp.concatenate([early] * _SEASONS + [late], axis=1) & ~known


def _fold(series: Any, season_length: int, backend: Backend) -> Any:
    """Arrange series (B, T) as (B, seasons, season_length), with NaN after their end."""
    xp, (batch, length) = backend.xp, series.shape
    seasons = -(-length // season_length)
    pad = xp.ones_like(series[:, :1]) * xp.nan
    padded = xp.concatenate([series, *[pad] * (seasons * season_length - length)], axis=1)
    return padded.reshape(batch, seasons, season_length)


def _count_in_windows(mask: Any, n: int, backend: Backend) -> Any:
    """Count the true values among every n successive ones."""
    xp = backend.xp
    counted = backend.float(mask)
    total = xp.cumsum(xp.concatenate([xp.zeros_like(counted[:, :1]), counted], axis=1), 1)
    return total[:, n:] - total[:, :-n]


def _interpolate(values: Any, number: Any, before: Any, after: Any, backend: Backend) -> Any:
    """Interpolate along axis 1 between the known values at positions before and after a gap.

    Where one of the two positions lies outside, the other value is repeated.
    """
    xp, n = backend.xp, values.shape[1]
    left = backend.take(values, backend.integers(xp.clip(before, 0, None)), 1)
    right = backend.take(values, backend.integers(xp.clip(after, None, n - 1)), 1)
    left, right = xp.where(before < 0, right, left), xp.where(after >= n, left, right)
    share = (number - before) / xp.clip(after - before, 1.0, None)
    share = xp.where((before < 0) | (after >= n), xp.zeros_like(share), share)
    return xp.where(xp.isfinite(values), values, left + share * (right - left))
