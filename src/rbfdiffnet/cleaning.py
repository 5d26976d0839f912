r"""Values that must not mislead a network: missing ones, and those far from all comparable ones.

A window holds a value for as many forecasts as there are lags, so one closed day spoils them all.
Outliers are therefore found before windows are made and treated as missing: they are no targets to
learn, and as inputs they are replaced.

The functions work on many series of the same length at once, (B, T), as NumPy arrays or PyTorch
tensors; `OutlierRule` and `fill_missing` are for one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from rbfdiffnet.backend import NUMPY, Backend

__all__ = [
    "NO_OUTLIERS",
    "OutlierRule",
    "alike",
    "apply_rules",
    "doubtful_values",
    "fill_many",
    "fill_missing",
    "find_outliers",
    "fitted_rules",
    "never_known",
]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Key = TypeVar("Key", bound=Hashable)

_NEIGHBORS = 3  # seasons compared with on either side
_FAR = 8.0  # robust standard deviations that make an outlier
_CLOSED = 0.2  # of the neighbors' median
_COMMON = 0.05  # share of values beyond which they are no outliers but the rule
_ROUNDING = 1e-12  # of the median size: what is less is no spread
_SHORTEST_SHIFT = 4  # steps in a row that are a new level rather than outliers
_LONGEST_SHIFT = 7  # a week of days; of longer seasons the shortest will do
_SHIFT_AT_END = 3
_VALUES_AT_ONCE = 32_768
_NEVER = 4  # seasons without a value after which a phase has none
_MOSTLY = 0.5  # share of values that the other phases must have


@dataclass(frozen=True)
class OutlierRule:
    r"""When a value counts as an outlier of its series.

    .. math:: |s_t - b_t| > 8 \sigma \quad \text{or} \quad s_t < b_t / 5, \qquad
        b_t = \operatorname{median}\{s_{t + jm} : 1 \le |j| \le 3\}

    where m is the season's length and :math:`\sigma` a robust standard deviation of
    :math:`s_t - b_t`, or of :math:`s_t` around the median of its earlier neighbors if that is
    larger: the latest values of a series have no others. The second condition finds days on which
    a shop was closed; it is for series that are never negative and mostly positive. Either is
    dropped for series in which it would hold for more than 5 % of the values: what is common is no
    outlier. Nor are values that come in a row of 4 steps (a season, if that has 5 to 7), or of 3 at
    the end of the series: that is a new level, which the forecast must follow.

    Attributes
    ----------
    season_length : int
    spread : float
        :math:`\sigma`; infinite if the first condition does not apply.
    closures : bool
        Whether the second one does.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.cleaning import OutlierRule
    >>> series = 9.0 + np.random.default_rng(0).normal(size=100)
    >>> series[50], series[70] = 40.0, 0.1
    >>> rule = OutlierRule.fitted(series, season_length=7)
    >>> np.flatnonzero(rule.find(series)).tolist()
    [50, 70]
    """

    season_length: int
    spread: float
    closures: bool

    @classmethod
    def fitted(cls, series: Array, season_length: int) -> OutlierRule:
        """Fix the rule for a series (NaN where missing)."""
        return fitted_rules([series], season_length)[0]

    def find(self, series: Array) -> Mask:
        """Tell which values of the series are outliers."""
        spread, closures = np.array([self.spread]), np.array([self.closures])
        return np.asarray(apply_rules(series[None], self.season_length, spread, closures)[0])

    def doubtful(self, series: Array) -> Mask:
        """Tell which values may look different to those who know later values than to others."""
        return doubtful_values([self], [series])[0]


#: The rule by which nothing is an outlier.
NO_OUTLIERS = OutlierRule(1, np.inf, closures=False)


def alike(keys: Sequence[Key], length: Callable[[Key], int]) -> Iterator[tuple[Key, list[int]]]:
    """Positions of items with the same key, so many at a time as are best handled together.

    Parameters
    ----------
    keys : sequence
        Of the items, in their order.
    length : callable
        Number of values of an item, by its key.

    Yields
    ------
    key, positions

    Examples
    --------
    >>> from rbfdiffnet.cleaning import alike
    >>> list(alike([7, 9, 7], lambda key: key))
    [(7, [0, 2]), (9, [1])]
    """
    groups: dict[Key, list[int]] = {}
    for i, key in enumerate(keys):
        groups.setdefault(key, []).append(i)
    for key, everyone in groups.items():
        size = max(1, _VALUES_AT_ONCE // max(length(key), 1))
        for first in range(0, len(everyone), size):
            yield key, everyone[first : first + size]


def fitted_rules(series: Sequence[Array], season_length: int) -> list[OutlierRule]:
    """Fix the rule for each of many series of any length; see `OutlierRule.fitted`."""
    rules = [OutlierRule(season_length, np.inf, closures=False)] * len(series)
    for length, members in alike([y.size for y in series], int):
        if length:
            _, spread, closures = find_outliers(
                np.stack([series[i] for i in members]), season_length
            )
            for i, s, c in zip(members, spread.tolist(), closures.tolist(), strict=True):
                rules[i] = OutlierRule(season_length, s, closures=c)
    return rules


def doubtful_values(rules: Sequence[OutlierRule], series: Sequence[Array]) -> list[Mask]:
    """Tell for many series which values are doubtful; see `OutlierRule.doubtful`."""
    results = [np.zeros(0, dtype=bool)] * len(series)
    keys = [(y.size, rule.season_length) for rule, y in zip(rules, series, strict=True)]
    for (_, season), members in alike(keys, lambda key: key[0]):
        values = np.stack([series[i] for i in members])
        spread = np.array([rules[i].spread for i in members])
        closures = np.array([rules[i].closures for i in members])
        odd = np.zeros(values.shape, dtype=bool)
        for later in range(_NEIGHBORS + 1):
            around = _neighbors(values, season, later, NUMPY)
            odd |= np.logical_or(*_conditions(values, around, spread, closures, np))
        for k, i in enumerate(members):
            results[i] = odd[k]
    return results


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
    >>> from rbfdiffnet.cleaning import fill_missing
    >>> fill_missing(np.array([1.0, 5.0, np.nan, 6.0, 3.0, np.nan]), season_length=2).tolist()
    [1.0, 5.0, 2.0, 6.0, 3.0, 6.0]
    """
    known = np.isfinite(series)
    if known.all():
        return series
    if not known.any():
        raise ValueError("A series without any value cannot be filled.")
    return np.asarray(fill_many(series[None], season_length)[0])


def find_outliers(
    series: Any, season_length: int, backend: Backend = NUMPY
) -> tuple[Any, Any, Any]:
    """Fix the rule for each of many series, and find their outliers.

    Parameters
    ----------
    series : array of shape (B, T)
        NaN where missing.
    season_length : int
    backend : Backend, default=NUMPY

    Returns
    -------
    odd : array of bool of shape (B, T)
    spread : array of shape (B,)
    closures : array of bool of shape (B,)
        As for `OutlierRule`.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.cleaning import find_outliers
    >>> series = 9.0 + np.random.default_rng(0).normal(size=(2, 100))
    >>> series[0, 50], series[1, 70] = 40.0, 0.1
    >>> odd, _, _ = find_outliers(series, season_length=7)
    >>> np.argwhere(odd).tolist()
    [[0, 50], [1, 70]]
    """
    xp = backend.xp
    before = series - _neighbors(series, season_length, 0, backend)
    around = _neighbors(series, season_length, _NEIGHBORS, backend)
    away = series - around
    spread = xp.maximum(_median(xp.abs(before), backend), _median(xp.abs(away), backend)) / 0.6745
    middle, negative = _median(series, backend), (series < 0.0).any(axis=1)
    size = _median(xp.abs(series), backend) if backend.any(negative) else middle
    spread = xp.where(spread > _ROUNDING * size, spread, xp.ones_like(spread) * xp.inf)
    may_close = ~negative & (middle > 0.0)
    far, low = _conditions(series, around, spread, may_close, xp)
    most = _COMMON * series.shape[1]
    common = far.sum(axis=1) > most
    closures = may_close & (low.sum(axis=1) <= most)
    spread = xp.where(common, xp.ones_like(spread) * xp.inf, spread)
    odd = (far & ~common[:, None]) | (low & closures[:, None])
    return odd & ~_new_levels(odd, season_length, backend), spread, closures


def apply_rules(
    series: Any, season_length: int, spread: Any, closures: Any, backend: Backend = NUMPY
) -> Any:
    """Find the outliers of many series by rules fixed before.

    Parameters
    ----------
    series : array of shape (B, T)
        NaN where missing.
    season_length : int
    spread, closures : arrays of shape (B,)
        As for `OutlierRule`.
    backend : Backend, default=NUMPY

    Returns
    -------
    array of bool of shape (B, T)

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.cleaning import apply_rules
    >>> series = np.array([[5.0, 5.1, 4.9, 9.0, 5.0, 5.1]])
    >>> apply_rules(series, 1, np.array([0.1]), np.array([False]))
    array([[False, False, False,  True, False, False]])
    """
    around = _neighbors(series, season_length, _NEIGHBORS, backend)
    far, low = _conditions(series, around, spread, closures, backend.xp)
    odd = far | low
    return odd & ~_new_levels(odd, season_length, backend)


def _conditions(series: Any, around: Any, spread: Any, closures: Any, xp: Any) -> tuple[Any, Any]:
    """Which values are far from their neighbors, and which are closures."""
    far = xp.abs(series - around) > _FAR * spread[:, None]  # False where either is NaN
    return far, (series < _CLOSED * around) & closures[:, None]


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
    >>> from rbfdiffnet.cleaning import fill_many
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
    >>> from rbfdiffnet.cleaning import never_known
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


def _new_levels(odd: Any, season_length: int, backend: Backend) -> Any:
    """Which values are in rows of odd ones so long that they are no outliers."""
    xp = backend.xp
    if not bool(odd.any()):
        return odd
    length = odd.shape[1]
    number = (backend.arange(length, odd) + 0.0)[None]
    last = backend.running_max(xp.where(odd, -1.0, number))
    mirrored = backend.flip(xp.where(odd, -1.0, length - 1 - number))
    first = length - 1 - backend.flip(backend.running_max(mirrored))
    row = season_length if _SHORTEST_SHIFT < season_length <= _LONGEST_SHIFT else _SHORTEST_SHIFT
    size = first - last - 1
    return odd & ((size >= row) | ((first == length) & (size >= _SHIFT_AT_END)))


def _neighbors(series: Any, season_length: int, later: int, backend: Backend) -> Any:
    """Median of the values up to three seasons before and after, NaN where there is none."""
    return backend.neighbors(series, season_length, _NEIGHBORS, later)


def _median(values: Any, backend: Backend) -> Any:
    """Median of the known values of each series, NaN where there are none."""
    xp = backend.xp
    known = xp.isfinite(values)
    count = known.sum(axis=1)[:, None]
    ordered = backend.sorted(xp.where(known, values, xp.inf))
    low = backend.take(ordered, xp.clip((count - 1) // 2, 0, None), 1)
    high = backend.take(ordered, xp.clip(count // 2, None, values.shape[1] - 1), 1)
    middle = 0.5 * (low + high)
    return xp.where(count > 0, middle, middle * xp.nan)[:, 0]
