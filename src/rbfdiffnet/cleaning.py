r"""Values that must not mislead a network: missing ones, and those far from all comparable ones.

A window holds a value for as many forecasts as there are lags, so one closed day spoils them all.
Outliers are therefore found before windows are made and treated as missing: they are no targets to
learn, and as inputs they are replaced.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["NO_OUTLIERS", "OutlierRule", "fill_missing"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_NEIGHBORS = 3  # seasons compared with on either side
_FAR = 8.0  # robust standard deviations that make an outlier
_CLOSED = 0.2  # of the neighbors' median
_COMMON = 0.05  # share of values beyond which they are no outliers but the rule
_ROUNDING = 1e-9  # of the median size: what is less is no spread
_SHORTEST_SHIFT = 4  # steps in a row that are a new level rather than outliers
_LONGEST_SHIFT = 7  # a week of days; of longer seasons the shortest will do
_SHIFT_AT_END = 3


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
        distances = [series - _neighbors(series, season_length, later=n) for n in (0, _NEIGHBORS)]
        known = [np.abs(distance[np.isfinite(distance)]) for distance in distances]
        if not known[0].size:
            return cls(season_length, np.inf, closures=False)
        spread = max(float(np.median(distance)) for distance in known) / 0.6745
        may_close = not np.any(series < 0.0) and float(np.nanmedian(series)) > 0.0
        rounding = _ROUNDING * float(np.nanmedian(np.abs(series)))
        rule = cls(season_length, spread if spread > rounding else np.inf, closures=may_close)
        far, low = rule._conditions(series)
        return cls(
            season_length,
            rule.spread if far.mean() <= _COMMON else np.inf,
            closures=may_close and bool(low.mean() <= _COMMON),
        )

    def find(self, series: Array) -> Mask:
        """Tell which values of the series are outliers."""
        far, low = self._conditions(series)
        odd = far | low
        edges = np.flatnonzero(np.diff(np.concatenate([[0], odd.astype(np.int8), [0]])))
        season = self.season_length
        row = season if _SHORTEST_SHIFT < season <= _LONGEST_SHIFT else _SHORTEST_SHIFT
        for start, end in edges.reshape(-1, 2):
            if end - start >= (_SHIFT_AT_END if end == odd.size else row):
                odd[start:end] = False
        return odd

    def doubtful(self, series: Array) -> Mask:
        """Tell which values may look different to those who know later values than to others."""
        odd = np.zeros(series.size, dtype=bool)
        for later in range(_NEIGHBORS + 1):
            far, low = self._conditions(series, later)
            odd |= far | low
        return odd

    def _conditions(self, series: Array, later: int = _NEIGHBORS) -> tuple[Mask, Mask]:
        """Which values are far from their neighbors, and which are closures."""
        around = _neighbors(series, self.season_length, later)
        far = np.abs(series - around) > _FAR * self.spread  # False where either is NaN
        low = (series < _CLOSED * around) & self.closures
        return far, low


#: The rule by which nothing is an outlier.
NO_OUTLIERS = OutlierRule(1, np.inf, closures=False)


def fill_missing(series: Array, season_length: int = 1) -> Array:
    """Replace missing values by interpolation between the same phases of the seasons around them.

    Beyond the first and the last known value of a phase that value is repeated. A phase without
    any value is interpolated between its neighbors in time.

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
    filled = series.copy()
    for phase in range(season_length):
        values = filled[phase::season_length]  # a view
        _interpolate(values)
    _interpolate(filled)
    return filled


def _interpolate(values: Array) -> None:
    """Fill in missing values between known ones, in place."""
    known = np.isfinite(values)
    if known.any() and not known.all():
        at = np.flatnonzero(known)
        missing = np.flatnonzero(~known)
        values[missing] = np.interp(missing, at, values[at])


def _neighbors(series: Array, season_length: int, later: int = _NEIGHBORS) -> Array:
    """Median of the values up to three seasons before and after, NaN where there is none."""
    reach = _NEIGHBORS * season_length
    padded = np.pad(series, reach, constant_values=np.nan)
    shifts = [j * season_length for j in range(-_NEIGHBORS, later + 1) if j]
    around = np.stack([padded[reach + s : reach + s + series.size] for s in shifts])
    # A NaN-aware median without its warnings: NaN sorts last.
    around.sort(axis=0)
    count = np.isfinite(around).sum(axis=0)
    columns = np.arange(series.size)
    low, high = np.maximum((count - 1) // 2, 0), count // 2
    middle = 0.5 * (around[low, columns] + around[np.minimum(high, len(shifts) - 1), columns])
    return np.where(count > 0, middle, np.nan)
