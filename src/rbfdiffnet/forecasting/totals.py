"""Sums of forecasts over time: a week, a month, or so many steps.

The quantiles of a sum are not the sums of quantiles. They come from sample paths, which know how
errors go on over time; see `forecasting.paths`.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from rbfdiffnet.forecasting.closed import find_open_steps
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.support.arrays import Array, Ints, Mask
from rbfdiffnet.support.checks import call_given, is_number
from rbfdiffnet.support.notes import SKEWED_TOTAL, Note

#: Paths from which quantiles of totals are found.
N_PATHS = 1_000
#: Probabilities between which the forecast of a total should lie.
MIDDLE = (0.1, 0.9)
_PERIODS = {"H": "h", "w": "W", "ME": "M", "MS": "M", "QE": "Q", "QS": "Q", "YE": "Y", "YS": "Y"}
_FEWEST_PATHS, _MOST_VALUES = 100, 4 * 10**7  # where paths of all series are in memory together


def fit_paths(n_values: int) -> int:
    """Return how many paths of so many values each may be in memory together."""
    return int(np.clip(_MOST_VALUES // max(n_values, 1), _FEWEST_PATHS, N_PATHS))


@dataclass(frozen=True)
class StepGroups:
    """The groups of steps that are summed up, series by series, m in all.

    `starts` (m,) are places in steps (n, h), flattened; `series`, `first` and `count` (m,) tell the
    series, the first step and the number of open steps of a group. Steps that are not open (n, h),
    on weekdays on which a series has no values, are not summed up.
    """

    starts: Ints
    series: Ints
    first: Ints
    count: Ints
    is_open: Mask

    @classmethod
    def of(cls, panel: Panel, h: int, totals: Any) -> StepGroups:
        """Group the h steps after the ends of the series of a panel."""
        n = panel.n_series
        labels = _labels(panel, h, totals)
        begins = np.ones((n, h), dtype=bool)
        begins[:, 1:] = labels[:, 1:] != labels[:, :-1]
        starts = np.flatnonzero(begins)
        is_open = find_open_steps(panel, h)
        count = np.add.reduceat(is_open.ravel().astype(np.int64), starts) if n else starts
        return cls(starts, starts // h, starts % h, count, is_open)

    def sum(self, values: Array, first: int, last: int) -> Array:
        """Sum values (k, h, ...) of the series from `first` up to `last`, which is not among them.

        The result has a row for each group of these series.
        """
        h = values.shape[1]
        inside = (self.series >= first) & (self.series < last)
        flat = values.reshape(-1, *values.shape[2:])
        is_open = self.is_open[first:last].ravel()
        if not is_open.all():
            flat = flat * is_open.reshape(-1, *(1,) * (flat.ndim - 1))
        if not inside.any():
            return flat[:0]
        return np.asarray(np.add.reduceat(flat, self.starts[inside] - first * h, axis=0))


def note_skewed(sums: Array, ends: Array, groups: StepGroups) -> list[Note]:
    """Return a note on each series with a total (m,) outside of its own `MIDDLE` (2, m)."""
    outside = (sums < ends[0]) | (sums > ends[1])
    action = "it is the sum of forecasts; quantiles=[0.5] is the middle of its distribution"
    return [
        Note(i, SKEWED_TOTAL, action, detail="the forecast of a total lies outside of its 80 %")
        for i in np.unique(groups.series[outside]).tolist()
    ]


def _labels(panel: Panel, h: int, totals: Any) -> Any:
    """Return labels (n, h): steps of a series in a row with the same label belong together."""
    n = panel.n_series
    if is_number(totals, Integral) and totals >= 1:
        return np.broadcast_to(np.arange(h) // min(int(totals), h), (n, h))
    dates = panel.dates(np.arange(n)[:, None], panel.lengths[:, None] + np.arange(h))
    if isinstance(totals, str):
        _check_longer(panel, totals)
        return _periods(dates, totals)
    if not callable(totals):
        raise ValueError(
            "totals must be a period such as 'W' or 'M', a number of steps, or a function of "
            f"dates; got {totals!r}."
        )
    import pandas as pd

    given = pd.Index(dates.ravel())
    try:
        found = call_given("totals", totals, given)
    except (AttributeError, KeyError, IndexError, ValueError) as error:
        raise ValueError(
            f"totals: the function failed with the pandas {type(given).__name__} of {given.size} "
            f"dates that it is given: {error}. It must return a label for each, as does "
            "lambda dates: dates.month (without .dt)."
        ) from error
    labels = pd.factorize(np.atleast_1d(np.asarray(found)))[0]
    if labels.size != dates.size:
        raise ValueError(
            f"totals must return a label for each of {dates.size} dates; got {labels.size}."
        )
    return labels.reshape(dates.shape)


def _check_longer(panel: Panel, alias: str) -> None:
    """Raise ValueError if a period is shorter than a step, so that nothing would be summed up."""
    steps = np.arange(3)
    periods = _periods(panel.dates(np.zeros_like(steps), steps), alias) if panel.n_series else steps
    if np.diff(periods).min() > 1:
        raise ValueError(
            f"totals={alias!r} is shorter than a step of freq={panel.frequency.alias!r}, so there "
            "is nothing to sum up; give a longer period, such as 'Q' or 'Y', or a number of "
            "steps."
        )


def _periods(dates: Any, alias: str) -> Any:
    import pandas as pd

    if dates.dtype.kind != "M":
        raise ValueError(
            f"totals={alias!r} needs dates, and these series have whole numbers; give a number of "
            "steps instead."
        )
    try:
        periods = pd.DatetimeIndex(dates.ravel()).to_period(_PERIODS.get(alias, alias))
        if getattr(periods.freq, "n", 1) > 1:
            raise ValueError("several periods, which pandas takes for one")
    except (ValueError, AttributeError) as error:
        raise ValueError(
            f"totals={alias!r} is no period; use 'D', 'W', 'M', 'Q' or 'Y', or a number of steps."
        ) from error
    return periods.asi8.reshape(dates.shape)
