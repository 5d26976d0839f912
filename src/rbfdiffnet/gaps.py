"""What takes the place of missing values, so that windows have no gaps.

The functions work on many series of the same length at once, (B, T), as NumPy arrays or PyTorch
tensors; `fill_missing` is for one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.backend import NUMPY, Backend

__all__ = ["fill_many", "fill_missing", "never_known"]

Array = npt.NDArray[np.float64]

_NEVER = 4  # seasons without a value after which a phase has none
_MOSTLY = 0.5  # share of values that the other phases must have


def fill_missing(series: Array, season_length: int = 1) -> Array:
    """Replace missing values by interpolation between the same phases of the seasons around them.

    Beyond the first and the last known value of a phase that value is repeated. A phase that never
    has a value (`never_known`) repeats the value before it: interpolated, it would tell what comes
    next, and a network would learn to read it there. Any other phase without a value is
    interpolated between its neighbors in time.

    Parameters
    ----------
    series : ndarray of shape (T,)
        NaN where missing; at least one value is not.
    season_length : int, default=1

    Returns
    -------
    ndarray of shape (T,)

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.gaps import fill_missing
    >>> fill_missing(np.array([1.0, 5.0, np.nan, 6.0, 3.0, np.nan]), season_length=2).tolist()
    [1.0, 5.0, 2.0, 6.0, 3.0, 6.0]
    """
    known = np.isfinite(series)
    if known.all():
        return series
    if not known.any():
        raise ValueError("A series without any value cannot be filled.")
    return np.asarray(fill_many(series[None], season_length)[0])


def fill_many(series: Any, season_length: int = 1, backend: Backend = NUMPY) -> Any:
    """Replace missing values of many series as `fill_missing` does.

    Parameters
    ----------
    series : array of shape (B, T)
        NaN where missing. A series without any value stays as it is.
    season_length : int, default=1
    backend : Backend, default=NUMPY

    Returns
    -------
    array of shape (B, T)

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.gaps import fill_many
    >>> fill_many(np.array([[1.0, 5.0, np.nan, 6.0, 3.0, np.nan]]), season_length=2).tolist()
    [[1.0, 5.0, 2.0, 6.0, 3.0, 6.0]]
    """
    xp = backend.xp
    batch, length = series.shape
    seasons = -(-length // season_length)
    pad = xp.ones_like(series[:, :1]) * xp.nan
    padded = xp.concatenate([series, *[pad] * (seasons * season_length - length)], axis=1)
    values = padded.reshape(batch, seasons, season_length)
    known = xp.isfinite(values)
    number = backend.arange(seasons, series)[None, :, None] + xp.zeros_like(values)
    before = backend.running_max(xp.where(known, number, -1.0))
    mirrored = backend.flip(xp.where(known, seasons - 1 - number, -1.0))
    after = seasons - 1 - backend.flip(backend.running_max(mirrored))
    filled = _between(values, number, before, after, seasons, backend)
    filled = filled.reshape(batch, -1)[:, :length]
    if season_length > 1 and not bool(xp.isfinite(filled).all()):
        closed = never_known(series, season_length, backend)
        last = xp.ones_like(filled) * length
        known = xp.isfinite(filled)
        number = backend.arange(length, series)[None] + xp.zeros_like(filled)
        before = backend.running_max(xp.where(known, number, -1.0))
        repeated = _between(filled, number, before, last, length, backend)
        return fill_many(xp.where(closed, repeated, filled), 1, backend)
    return filled


def never_known(series: Any, season_length: int, backend: Backend = NUMPY) -> Any:
    """Tell which steps belong to phases of the season that never have a value, as closed weekdays.

    Of series of at least four seasons, whose other phases have values at least half of the time.

    Parameters
    ----------
    series : array of shape (B, T)
        NaN where missing.
    season_length : int
    backend : Backend, default=NUMPY

    Returns
    -------
    array of bool of shape (B, T)

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.gaps import never_known
    >>> series = np.array([[1.0, 2.0, np.nan] * 5])
    >>> np.flatnonzero(never_known(series, 3)[0]).tolist()
    [2, 5, 8, 11, 14]
    """
    xp = backend.xp
    known = xp.isfinite(series)
    batch, length = series.shape
    if season_length < 2 or length < _NEVER * season_length or bool(known.all()):
        return known & ~known
    seasons = -(-length // season_length)
    pad = known[:, :1] & ~known[:, :1]
    padded = xp.concatenate([known, *[pad] * (seasons * season_length - length)], axis=1)
    open_ = padded.reshape(batch, seasons, season_length).any(axis=1)
    open_ = xp.concatenate([open_] * seasons, axis=1)[:, :length]
    often = known.sum(axis=1) >= _MOSTLY * open_.sum(axis=1)
    return ~open_ & (often & known.any(axis=1))[:, None]


def _between(values: Any, number: Any, before: Any, after: Any, n: int, backend: Backend) -> Any:
    """Interpolate between the latest known value before and the first after, where there are."""
    xp = backend.xp
    left = backend.take(values, backend.integers(xp.clip(before, 0, None)), 1)
    right = backend.take(values, backend.integers(xp.clip(after, None, n - 1)), 1)
    left, right = xp.where(before < 0, right, left), xp.where(after >= n, left, right)
    share = (number - before) / xp.clip(after - before, 1.0, None)
    share = xp.where((before < 0) | (after >= n), xp.zeros_like(share), share)
    return xp.where(xp.isfinite(values), values, left + share * (right - left))
