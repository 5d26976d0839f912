r"""Values that must not mislead a network: those far from all comparable ones.

A window holds a value for as many forecasts as there are lags, so one closed day spoils them all.
Outliers are therefore found before windows are made and treated as missing: they are no targets to
learn, and as inputs they are replaced.

The functions work on many series of the same length at once, (B, T), as NumPy arrays or PyTorch
tensors; `OutlierRule` is for one. What takes the place of outliers is up to `series.gaps`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from rbfdiffnet.batch.backend import NUMPY, Backend

__all__ = [
    "NO_OUTLIERS",
    "OutlierRule",
    "apply_rules",
    "find_doubtful",
    "find_outliers",
    "fit_rules",
    "group_by_length",
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
    >>> from rbfdiffnet.series.outliers import OutlierRule
    >>> series = 9.0 + np.random.default_rng(0).normal(size=100)
    >>> series[50], series[70] = 40.0, 0.1
    >>> rule = OutlierRule.fit(series, season_length=7)
    >>> np.flatnonzero(rule.find(series)).tolist()
    [50, 70]
    """

    season_length: int
    spread: float
    closures: bool

    @classmethod
    def fit(cls, series: Array, season_length: int) -> OutlierRule:
        """Fix the rule for a series (NaN where missing)."""
        return fit_rules([series], season_length)[0]

    def find(self, series: Array) -> Mask:
        """Tell which values of the series are outliers."""
        spread, closures = np.array([self.spread]), np.array([self.closures])
        return np.asarray(apply_rules(series[None], self.season_length, spread, closures)[0])

    def doubtful(self, series: Array) -> Mask:
        """Tell which values may look different to those who know later values than to others."""
        return find_doubtful([self], [series])[0]


#: The rule by which nothing is an outlier.
NO_OUTLIERS = OutlierRule(1, np.inf, closures=False)


def group_by_length(
    keys: Sequence[Key], length: Callable[[Key], int]
) -> Iterator[tuple[Key, list[int]]]:
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
    >>> from rbfdiffnet.series.outliers import group_by_length
    >>> list(group_by_length([7, 9, 7], lambda key: key))
    [(7, [0, 2]), (9, [1])]
    """
    groups: dict[Key, list[int]] = {}
    for i, key in enumerate(keys):
        groups.setdefault(key, []).append(i)
    for key, everyone in groups.items():
        size = max(1, _VALUES_AT_ONCE // max(length(key), 1))
        for first in range(0, len(everyone), size):
            yield key, everyone[first : first + size]


def fit_rules(series: Sequence[Array], season_length: int) -> list[OutlierRule]:
    """Fix the rule for each of many series of any length; see `OutlierRule.fit`."""
    rules = [OutlierRule(season_length, np.inf, closures=False)] * len(series)
    for length, members in group_by_length([y.size for y in series], int):
        if length:
            _, spread, closures = find_outliers(
                np.stack([series[i] for i in members]), season_length
            )
            for i, s, c in zip(members, spread.tolist(), closures.tolist(), strict=True):
                rules[i] = OutlierRule(season_length, s, closures=c)
    return rules


def find_doubtful(rules: Sequence[OutlierRule], series: Sequence[Array]) -> list[Mask]:
    """Tell for many series which values are doubtful; see `OutlierRule.doubtful`."""
    results = [np.zeros(0, dtype=bool)] * len(series)
    keys = [(y.size, rule.season_length) for rule, y in zip(rules, series, strict=True)]
    for (_, season), members in group_by_length(keys, lambda key: key[0]):
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
    >>> from rbfdiffnet.series.outliers import find_outliers
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
    >>> from rbfdiffnet.series.outliers import apply_rules
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
