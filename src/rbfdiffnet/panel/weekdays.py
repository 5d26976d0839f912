"""Weekdays on which a daily series never has a value, such as Sundays of a closed shop."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.frequency import DAY, Frequency

_NAMES = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")
_SHORTEST = 28  # days that a series must span before it can have closed weekdays


def is_daily(frequency: Frequency | None) -> bool:
    """Tell whether a step is a day, weekends included."""
    return frequency is not None and frequency.kind == "tick" and frequency.n == DAY


def weekday_numbers(dates: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the weekdays of dates, 0 for Mondays."""
    days: npt.NDArray[np.int64] = dates.astype("M8[D]").astype(np.int64)
    return (days + 3) % 7  # 1970 began on a Thursday


def find_closed_weekdays(
    series: npt.NDArray[np.int64], dates: npt.NDArray[Any], n: int
) -> npt.NDArray[np.bool_]:
    """Return which weekdays of each series have no value, shape (n, 7), Mondays first.

    `series` and `dates` are those of the known values. Series of less than four weeks have none.
    """
    days = dates.astype("M8[D]").astype(np.int64)
    first, last = np.full(n, np.iinfo(np.int64).max), np.full(n, np.iinfo(np.int64).min)
    np.minimum.at(first, series, days)
    np.maximum.at(last, series, days)
    open_ = np.bincount(series * 7 + weekday_numbers(dates), minlength=7 * n).reshape(n, 7) > 0
    long = (last >= first) & (last - first >= _SHORTEST - 1)
    return np.asarray(~open_ & long[:, None])


def name_weekdays(chosen: npt.NDArray[np.bool_]) -> str:
    """Return the names of weekdays in words."""
    names = [name for name, is_chosen in zip(_NAMES, chosen, strict=True) if is_chosen]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
