r"""Find values that must not mislead a network: those far from all comparable values.

A window holds a value for as many forecasts as there are lags, so one closed day spoils them all.
Outliers are therefore found before windows are cut and then treated as missing: they are no
targets to learn, and as inputs they are replaced (`series.gaps`).

The functions take many series of the same length at once, as NumPy arrays or PyTorch tensors of
shape (B, T) with NaN where a value is missing; `OutlierRule` is for one series.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rbfdiffnet.batch.backend import NUMPY, Backend
from rbfdiffnet.support.arrays import Array, Mask
from rbfdiffnet.support.parallel import Key, group_equal

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

    An infinite ``spread`` switches the first condition off, ``closures=False`` the second.
    """

    season_length: int
    spread: float
    closures: bool

    @classmethod
    def fit(cls, series: Array, season_length: int) -> OutlierRule:
        """Fix the rule for a series (NaN where missing)."""
        return fit_rules([series], season_length)[0]

    def find(self, series: Array) -> Mask:
        """Find the outliers of a series."""
        spread, closures = np.array([self.spread]), np.array([self.closures])
        return np.asarray(apply_rules(series[None], self.season_length, spread, closures)[0])


#: The rule by which nothing is an outlier.
NO_OUTLIERS = OutlierRule(1, np.inf, closures=False)


def group_by_length(
    keys: Sequence[Key], length: Callable[[Key], int]
) -> Iterator[tuple[Key, list[int]]]:
    """Yield each key with the positions of its items, some of them at a time.

    A group holds as many items as are best computed together; ``length(key)`` is the number of
    values of one item.
    """
    for key, positions in group_equal(keys).items():
        size = max(1, _VALUES_AT_ONCE // max(length(key), 1))
        for first in range(0, len(positions), size):
            yield key, positions[first : first + size]


def fit_rules(series: Sequence[Array], season_length: int) -> list[OutlierRule]:
    """Fix the rule for each of many series of any length."""
    rules = [OutlierRule(season_length, np.inf, closures=False)] * len(series)
    for length, members in group_by_length([y.size for y in series], int):
        if length:
            values = np.stack([series[i] for i in members])
            _, spread, closures = find_outliers(values, season_length)
            for i, s, c in zip(members, spread.tolist(), closures.tolist(), strict=True):
                rules[i] = OutlierRule(season_length, s, closures=c)
    return rules


def find_doubtful(rules: Sequence[OutlierRule], series: Sequence[Array]) -> list[Mask]:
    """Find the values of each series that would be outliers if the series ended soon after them.

    Which of them are outliers depends on the number of later values that are known.
    """
    results = [np.zeros(0, dtype=bool)] * len(series)
    keys = [(y.size, rule.season_length) for rule, y in zip(rules, series, strict=True)]
    for (_, season), members in group_by_length(keys, lambda key: key[0]):
        values = np.stack([series[i] for i in members])
        spread = np.array([rules[i].spread for i in members])
        closures = np.array([rules[i].closures for i in members])
        doubtful = np.zeros(values.shape, dtype=bool)
        for later in range(_NEIGHBORS + 1):
            around = _median_of_neighbors(values, season, later, NUMPY)
            doubtful |= np.logical_or(*_check_conditions(values, around, spread, closures, np))
        for k, i in enumerate(members):
            results[i] = doubtful[k]
    return results


def find_outliers(
    series: Any, season_length: int, backend: Backend = NUMPY
) -> tuple[Any, Any, Any]:
    """Fix the rule for each of many series (B, T), and find their outliers.

    Returns the mask of outliers (B, T), and of each rule ``spread`` and ``closures``, both (B,).
    """
    xp = backend.xp
    before = series - _median_of_neighbors(series, season_length, 0, backend)
    around = _median_of_neighbors(series, season_length, _NEIGHBORS, backend)
    away = series - around
    spread = xp.maximum(_median(xp.abs(before), backend), _median(xp.abs(away), backend)) / 0.6745
    middle, negative = _median(series, backend), (series < 0.0).any(axis=1)
    size = _median(xp.abs(series), backend) if backend.any(negative) else middle
    spread = xp.where(spread > _ROUNDING * size, spread, xp.ones_like(spread) * xp.inf)
    may_close = ~negative & (middle > 0.0)
    far, low = _check_conditions(series, around, spread, may_close, xp)
    most = _COMMON * series.shape[1]
    common = far.sum(axis=1) > most
    closures = may_close & (low.sum(axis=1) <= most)
    spread = xp.where(common, xp.ones_like(spread) * xp.inf, spread)
    is_outlier = (far & ~common[:, None]) | (low & closures[:, None])
    return _drop_new_levels(is_outlier, season_length, backend), spread, closures


def apply_rules(
    series: Any, season_length: int, spread: Any, closures: Any, backend: Backend = NUMPY
) -> Any:
    """Find the outliers of many series (B, T) by rules fixed before: ``spread``, ``closures`` (B,).

    Returns the mask of outliers (B, T).
    """
    around = _median_of_neighbors(series, season_length, _NEIGHBORS, backend)
    far, low = _check_conditions(series, around, spread, closures, backend.xp)
    return _drop_new_levels(far | low, season_length, backend)


def _check_conditions(
    series: Any, around: Any, spread: Any, closures: Any, xp: Any
) -> tuple[Any, Any]:
    """Return masks of the values that are far from their neighbors, and of closures."""
    far = xp.abs(series - around) > _FAR * spread[:, None]  # False where either is NaN
    return far, (series < _CLOSED * around) & closures[:, None]


def _drop_new_levels(is_outlier: Any, season_length: int, backend: Backend) -> Any:
    """Remove values from the mask that stand in a row so long that it is a new level."""
    xp = backend.xp
    if not bool(is_outlier.any()):
        return is_outlier
    length = is_outlier.shape[1]
    number = (backend.arange(length, is_outlier) + 0.0)[None]
    last = backend.running_max(xp.where(is_outlier, -1.0, number))
    mirrored = backend.flip(xp.where(is_outlier, -1.0, length - 1 - number))
    first = length - 1 - backend.flip(backend.running_max(mirrored))
    row = season_length if _SHORTEST_SHIFT < season_length <= _LONGEST_SHIFT else _SHORTEST_SHIFT
    size = first - last - 1
    return is_outlier & ~((size >= row) | ((first == length) & (size >= _SHIFT_AT_END)))


def _median_of_neighbors(series: Any, season_length: int, later: int, backend: Backend) -> Any:
    """Return medians over three seasons before and ``later`` after, NaN where all are missing."""
    return backend.neighbors(series, season_length, _NEIGHBORS, later)


def _median(values: Any, backend: Backend) -> Any:
    """Return the median of the known values of each series, NaN where there are none."""
    xp = backend.xp
    known = xp.isfinite(values)
    count = known.sum(axis=1)[:, None]
    ordered = backend.sorted(xp.where(known, values, xp.inf))
    low = backend.take(ordered, xp.clip((count - 1) // 2, 0, None), 1)
    high = backend.take(ordered, xp.clip(count // 2, None, values.shape[1] - 1), 1)
    middle = 0.5 * (low + high)
    return xp.where(count > 0, middle, middle * xp.nan)[:, 0]
