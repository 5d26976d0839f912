r"""Find values that must not mislead a network: those far from all comparable values.

A window holds a value for as many forecasts as there are lags, so one closed day spoils them all.
Outliers are therefore found before windows are cut and then treated as missing: they are no
targets to learn, and as inputs they are replaced (`series.gaps`).

The functions take many series of the same length at once, as NumPy arrays or PyTorch tensors of
shape (B, T) with NaN where a value is missing; `OutlierRule` is for one series.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rbfdiffnet.batch.backend import NUMPY, Backend
from rbfdiffnet.support.arrays import Array, Mask
from rbfdiffnet.support.parallel import Key, group_equal

_NEIGHBORS = 3  # seasons compared with on either side
_FAR = 7.0  # robust standard deviations that make an outlier
_CLOSED = 0.2  # of the neighbors' median
_FAR_BELOW = 2.0  # that a closure is below
_BESIDE = 0.5  # of an outlier's distance, that steps beside it are nearer
_COMMON = 0.05  # share of values beyond which they are no outliers but the rule
_ROUNDING = 1e-12  # of the median size: what is less is no spread
_SHORTEST_SHIFT = 4  # steps in a row that are a new level rather than outliers
_LONGEST_SHIFT = 7  # a week of days; of longer seasons the shortest will do
_SHIFT_AT_END = 3
_WILD, _WILD_SPREADS = 5.0, 6.0  # times what is usual, and median distances of logarithms from it


@dataclass(frozen=True)
class OutlierRule:
    r"""When a value counts as an outlier of its series.

    .. math:: |s_t - b| > 7 \max(\sigma, \rho b) \quad \text{or} \quad
        s_t < b / 5 \ \text{and}\ b - s_t > 2 \max(\sigma, \rho b)

    both for what earlier values say, :math:`b = \operatorname{median}\{s_{t - jm} + j d\}`, and
    for what later values say, :math:`b = \operatorname{median}\{s_{t + jm} - j d\}`, as far as
    there are any, j = 1, 2, 3: a value that fits either side is no outlier. (The first season
    does not count alone where more come after.) Here m is the season's
    length, the ``drift`` d the median of :math:`s_t - s_{t - m}`, the ``spread`` :math:`\sigma` a
    robust standard deviation of s around what its earlier values say, and the ``share``
    :math:`\rho` the same in units of these, so that peaks may grow with the level; it is 0 for
    series with negative values. The second condition finds days on which a shop was closed; it is
    for series that are never negative and mostly positive. Either is dropped for series in which it
    would hold for more than 5 % of the values: what is common is no outlier.

    Nor are values that the steps beside them lead to: those before and after that are no outliers
    are both half as far off on the same side. Several outliers may stand side by side, but not in
    a row of 4 steps (a season, if that has 5 to 7), or of 3 at the end of the series: that is a new
    level, which the forecast must follow.

    Without ``spikes`` the first condition is off, without ``closures`` the second. Where
    :math:`\sigma` is nothing but rounding, the size of the drift takes its place in the first.
    """

    season_length: int
    drift: float
    spread: float
    share: float
    spikes: bool
    closures: bool

    @classmethod
    def fit(cls, series: Array, season_length: int) -> OutlierRule:
        """Fix the rule for a series (NaN where missing)."""
        return fit_rules([series], season_length)[0]

    def find(self, series: Array) -> Mask:
        """Find the outliers of a series."""
        return np.asarray(apply_rules(series[None], Rules.stack([self]))[0])


#: The rule by which nothing is an outlier.
NO_OUTLIERS = OutlierRule(1, 0.0, 0.0, 0.0, spikes=False, closures=False)


@dataclass(frozen=True)
class Rules:
    """The rules of many series, each field but the season's length an array (B,)."""

    season_length: int
    drift: Any
    spread: Any
    share: Any
    spikes: Any
    closures: Any

    @classmethod
    def stack(cls, rules: Sequence[OutlierRule]) -> Rules:
        """Put rules with the same season together."""
        columns = zip(*(_settings(rule) for rule in rules), strict=True)
        return cls(rules[0].season_length, *(np.array(column) for column in columns))

    def split(self, backend: Backend = NUMPY) -> list[OutlierRule]:
        """Return the rule of each series."""
        columns = (backend.to_numpy(column).tolist() for column in _settings(self))
        return [OutlierRule(self.season_length, *row) for row in zip(*columns, strict=True)]


def _settings(rule: OutlierRule | Rules) -> tuple[Any, ...]:
    return rule.drift, rule.spread, rule.share, rule.spikes, rule.closures


def group_by_length(
    keys: Sequence[Key],
    length: Callable[[Key], int],
    n_values: int = NUMPY.values_searched_together,
) -> Iterator[tuple[Key, list[int]]]:
    """Yield each key with the positions of its items, some of them at a time.

    A group holds items of about ``n_values`` in all; ``length(key)`` is the number of values of
    one item.
    """
    for key, positions in group_equal(keys).items():
        size = max(1, n_values // max(length(key), 1))
        for first in range(0, len(positions), size):
            yield key, positions[first : first + size]


def fit_rules(series: Sequence[Array], season_length: int) -> list[OutlierRule]:
    """Fix the rule for each of many series of any length."""
    results = [replace(NO_OUTLIERS, season_length=season_length)] * len(series)
    for length, members in group_by_length([y.size for y in series], int):
        if length:
            values = np.stack([series[i] for i in members])
            _, rules = find_outliers(values, season_length)
            for i, rule in zip(members, rules.split(), strict=True):
                results[i] = rule
    return results


def find_doubtful(rules: Sequence[OutlierRule], series: Sequence[Array]) -> list[Mask]:
    """Find the values of each series that would be outliers if the series ended soon after them.

    Which of them are outliers depends on the number of later values that are known.
    """
    results = [np.zeros(0, dtype=bool)] * len(series)
    keys = [(y.size, rule.season_length) for rule, y in zip(rules, series, strict=True)]
    for _, members in group_by_length(keys, lambda key: key[0]):
        values = np.stack([series[i] for i in members])
        own = Rules.stack([rules[i] for i in members])
        doubtful = np.zeros(values.shape, dtype=bool)
        for later in range(_NEIGHBORS + 1):
            far, low, _ = _check_both_sides(values, own, NUMPY, later)
            doubtful |= far | low
        for k, i in enumerate(members):
            results[i] = doubtful[k]
    return results


def find_outliers(series: Any, season_length: int, backend: Backend = NUMPY) -> tuple[Any, Rules]:
    """Fix the rule for each of many series (B, T), and find their outliers: a mask (B, T)."""
    xp = backend.xp
    drift = _find_drift(series, season_length, backend)
    earlier = _expect(series, season_length, drift, backend, before=_NEIGHBORS)
    middle, negative = _median(series, backend), (series < 0.0).any(axis=1)
    size = _median(xp.abs(series), backend) if backend.any(negative) else middle
    size_of_error, some = xp.abs(series - earlier), earlier > _ROUNDING * size[:, None]
    spread = _median(size_of_error, backend) / 0.6745
    ratios = xp.where(some, size_of_error, xp.nan) / xp.where(some, earlier, 1.0)
    share = _median(ratios, backend) / 0.6745
    none = xp.zeros_like(drift)
    rules = Rules(
        *(season_length, drift),
        spread=xp.where(spread > _ROUNDING * size, spread, none),
        share=xp.where(negative | ~xp.isfinite(share), none, share),
        spikes=xp.maximum(spread, xp.abs(drift)) > _ROUNDING * size,
        closures=~negative & (middle > 0.0),
    )
    far, low, away = _check_both_sides(series, rules, backend, earlier=earlier)
    most = _COMMON * series.shape[1]
    spikes = rules.spikes & (far.sum(axis=1) <= most)
    closures = rules.closures & (low.sum(axis=1) <= most)
    rules = replace(rules, spikes=spikes, closures=closures)
    far, low = far & spikes[:, None], low & closures[:, None]
    return _look_beside(far | low, away, rules.season_length, backend), rules


def apply_rules(series: Any, rules: Rules, backend: Backend = NUMPY) -> Any:
    """Find the outliers of many series (B, T) by rules fixed before: a mask (B, T)."""
    far, low, away = _check_both_sides(series, rules, backend)
    return _look_beside(far | low, away, rules.season_length, backend)


def _check_both_sides(
    series: Any, rules: Rules, backend: Backend, later: int = _NEIGHBORS, earlier: Any = None
) -> tuple[Any, Any, Any]:
    """Return masks of values far from their neighbors, and of closures, and how far all are away.

    Neighbors are three seasons before, whose median may be given, and ``later`` after. A single
    season before is asked only if no more come after.
    """
    xp, season, drift = backend.xp, rules.season_length, rules.drift
    if earlier is None:
        earlier = _expect(series, season, drift, backend, before=_NEIGHBORS)
    far, low = _check_conditions(series, earlier, rules, xp)
    away = series - earlier
    if later:
        after = _expect(series, season, drift, backend, later=later)
        step = backend.arange(series.shape[1], series)[None]
        left = xp.clip((series.shape[1] - 1 - step) // season, None, later)
        if later > 1:  # of two the one that fits: their mean may be far from both
            one = _expect(series, season, drift, backend, later=1)
            other = 2.0 * after - one
            nearer = xp.where(xp.abs(series - one) < xp.abs(series - other), one, other)
            after = xp.where((left == 2) & xp.isfinite(nearer), nearer, after)
        far_after, low_after = _check_conditions(series, after, rules, xp)
        n_after = xp.where(xp.isfinite(after), left, 0)
        ask = xp.isfinite(earlier) & (step // season >= xp.clip(n_after, None, 2))
        ask_after = n_after > 0
        some = ask | ask_after
        far = (far | ~ask) & (far_after | ~ask_after) & some
        low = (low | ~ask) & (low_after | ~ask_after) & some
        away = xp.where(ask, away, series - after)
    return far & rules.spikes[:, None], low & rules.closures[:, None], away


def _check_conditions(series: Any, expected: Any, rules: Rules, xp: Any) -> tuple[Any, Any]:
    """Return where values are far from what is expected, and where far below it."""
    scale, below = _scale(expected, rules, xp), expected - series  # NaN is never larger
    low = (series < _CLOSED * expected) & (below > _FAR_BELOW * scale)
    return xp.abs(below) > _FAR * scale, low


def _scale(expected: Any, rules: Rules, xp: Any) -> Any:
    """Return the standard deviation around what is expected, (B, T)."""
    spread = xp.where(rules.spread > 0.0, rules.spread, xp.abs(rules.drift))
    return xp.maximum(spread[:, None], rules.share[:, None] * expected)


def _find_drift(series: Any, season_length: int, backend: Backend) -> Any:
    """Return the median change over a season of each series (B,), 0 where there is none."""
    xp = backend.xp
    if series.shape[1] <= season_length:
        return xp.zeros_like(series[:, 0])
    change = _median(series[:, season_length:] - series[:, :-season_length], backend)
    return xp.where(xp.isfinite(change), change, xp.zeros_like(change))


def _look_beside(is_outlier: Any, away: Any, season: int, backend: Backend) -> Any:
    """Return the outliers but those that the steps beside them lead to, or that are a new level."""
    xp = backend.xp
    if not bool(is_outlier.any()):
        return is_outlier
    length = is_outlier.shape[1]
    number = (backend.arange(length, is_outlier) + 0.0)[None]
    last = backend.running_max(xp.where(is_outlier, -1.0, number))
    mirrored = backend.flip(xp.where(is_outlier, -1.0, length - 1 - number))
    first = length - 1 - backend.flip(backend.running_max(mirrored))
    row = season if _SHORTEST_SHIFT < season <= _LONGEST_SHIFT else _SHORTEST_SHIFT
    size = first - last - 1
    is_outlier = is_outlier & ~((size >= row) | ((first == length) & (size >= _SHIFT_AT_END)))
    led_to = xp.ones_like(is_outlier)
    for place in (last, first):
        at = backend.integers(xp.clip(place, 0, length - 1))
        near = xp.abs(away - backend.take(away, at, 1)) <= _BESIDE * xp.abs(away)
        led_to = led_to & (near | (place < 0) | (place == length))
    return is_outlier & ~led_to


def _expect(
    series: Any, season_length: int, drift: Any, backend: Backend, before: int = 0, later: int = 0
) -> Any:
    """Return medians over so many seasons before and after, NaN where all are missing.

    They are corrected for the drift (B,) over the seasons between.
    """
    seasons = (backend.arange(series.shape[1], series) + 0.0) / season_length
    trend = drift[:, None] * seasons[None]
    return backend.neighbors(series - trend, season_length, before, later) + trend


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


# Series beside others -----------------------------------------------------------------------------


def usual_and_limit(sizes: Array) -> tuple[float, float]:
    """Return the usual size of something that series (n,) have, and one that is far beyond it.

    A series beyond the limit is wild: others must not learn from it. Its logarithm is 6 median
    distances above the median, and it is 5 times the usual at least: where series differ much, none
    is wild. Sizes that are unknown or 0 say nothing.
    """
    logs = np.log(sizes[np.isfinite(sizes) & (sizes > 0.0)])
    if not logs.size:
        return 0.0, np.inf
    usual = float(np.median(logs))
    apart = float(np.median(np.abs(logs - usual)))
    with np.errstate(over="ignore"):  # then nothing is beyond it
        limit = np.exp(usual + max(_WILD_SPREADS * apart, np.log(_WILD)))
    return float(np.exp(usual)), float(limit)


def find_wild(sizes: Array) -> Mask:
    """Which series are wild, shape (n,); see `usual_and_limit`."""
    return np.asarray(sizes > usual_and_limit(sizes)[1])
