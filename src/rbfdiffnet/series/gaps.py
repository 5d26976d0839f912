"""What takes the place of missing values, so that windows have no gaps.

The functions work on many series of the same length at once, (B, T), as NumPy arrays or PyTorch
tensors; `fill_missing` is for one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.batch.backend import NUMPY, Backend

__all__ = ["fill_many", "fill_missing", "find_closed_steps", "repeat_before"]

Array = npt.NDArray[np.float64]

_SEASONS = 4  # in which a phase has no value, before its next step is closed
_MOSTLY = 0.5  # share of values that the other phases must have


def fill_missing(series: Array, season_length: int = 1) -> Array:
    """Replace missing values by interpolation between the same phases of the seasons around them.

    Beyond the first and the last known value of a phase that value is repeated. A closed step
    (`find_closed_steps`) repeats the value before it: an interpolated one would tell what comes next.
    Any other phase without a value is interpolated between
    its neighbors in time.

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
    >>> from rbfdiffnet.series.gaps import fill_missing
    >>> fill_missing(np.array([1.0, 5.0, np.nan, 6.0, 3.0, np.nan]), season_length=2).tolist()
    [1.0, 5.0, 2.0, 6.0, 3.0, 6.0]
    """
    known = np.isfinite(series)
    if known.all():
        return series
    if not known.any():
        raise ValueError("A series without any value cannot be filled.")
    return np.asarray(fill_many(series[None], season_length)[0])


def fill_many(
    series: Any, season_length: int = 1, backend: Backend = NUMPY, closed: Any = None
) -> Any:
    """Replace missing values of many series as `fill_missing` does.

    Parameters
    ----------
    series : array of shape (B, T)
        NaN where missing. A series without any value stays as it is.
    season_length : int, default=1
    backend : Backend, default=NUMPY
    closed : array of bool of shape (B, T), optional
        By `find_closed_steps`, if known already.

    Returns
    -------
    array of shape (B, T)

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.series.gaps import fill_many
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
    if season_length < 2:
        return filled
    if closed is None:
        closed = find_closed_steps(series, season_length, backend)
    filled = xp.where(closed, xp.nan, filled)
    if bool(xp.isfinite(filled).all()):
        return filled
    return repeat_before(fill_many(filled, 1, backend), closed, backend)


def repeat_before(values: Any, closed: Any, backend: Backend = NUMPY) -> Any:
    """Return values of shape (B, T) with that before a closed step, or several, in their place.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.series.gaps import repeat_before
    >>> repeat_before(np.array([[4, 5, 6]]), np.array([[False, True, False]])).tolist()
    [[4, 4, 6]]
    """
    xp = backend.xp
    number = backend.arange(closed.shape[1], closed)[None] + 0.0
    before = backend.running_max(xp.where(closed, -1.0, number))
    return backend.take(values, backend.integers(xp.clip(before, 0, None)), 1)


def find_closed_steps(series: Any, season_length: int, backend: Backend = NUMPY) -> Any:
    """Tell at which steps no value is to be expected, as on Sundays of a shop that is closed then.

    They have none, and none of the same phase in the four seasons before, in which the other phases
    had at least half of theirs. In its first four seasons, a series is closed in the phases that
    have no value in all four. So later values change nothing, and earlier ones only for a while.

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
    >>> from rbfdiffnet.series.gaps import find_closed_steps
    >>> series = np.array([[1.0, 2.0, np.nan] * 5])
    >>> np.flatnonzero(find_closed_steps(series, 3)[0]).tolist()
    [2, 5, 8, 11, 14]
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
    phases = _sums(some, m, backend)  # that have one, before a step
    values = _sums(known, span, backend)
    usual = (phases > 0) & (values >= _MOSTLY * _SEASONS * phases)
    early = ~some[:, :m] & usual[:, :1]
    late = ~some[:, : length - span] & usual[:, : length - span]
    return xp.concatenate([early] * _SEASONS + [late], axis=1) & ~known


def _sums(mask: Any, n: int, backend: Backend) -> Any:
    """Number of true values in every n successive ones."""
    xp = backend.xp
    counted = backend.float(mask)
    total = xp.cumsum(xp.concatenate([xp.zeros_like(counted[:, :1]), counted], axis=1), 1)
    return total[:, n:] - total[:, :-n]


def _between(values: Any, number: Any, before: Any, after: Any, n: int, backend: Backend) -> Any:
    """Interpolate between the latest known value before and the first after, where there are."""
    xp = backend.xp
    left = backend.take(values, backend.integers(xp.clip(before, 0, None)), 1)
    right = backend.take(values, backend.integers(xp.clip(after, None, n - 1)), 1)
    left, right = xp.where(before < 0, right, left), xp.where(after >= n, left, right)
    share = (number - before) / xp.clip(after - before, 1.0, None)
    share = xp.where((before < 0) | (after >= n), xp.zeros_like(share), share)
    return xp.where(xp.isfinite(values), values, left + share * (right - left))
