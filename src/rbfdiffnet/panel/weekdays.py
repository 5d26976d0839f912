"""Weekdays on which a daily series never has a value: shops that are closed on Sundays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.frequency import DAY, Frequency

__all__ = ["closed_table", "is_daily", "name_weekdays", "weekdays_of"]

_NAMES = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")
_SPAN = 28  # days a series must span


def is_daily(frequency: Frequency | None) -> bool:
    """Return whether a step is a day, weekends included."""
    return frequency is not None and frequency.kind == "tick" and frequency.n == DAY


def weekdays_of(dates: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the weekdays of dates, 0 for Mondays.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.panel.weekdays import weekdays_of
    >>> weekdays_of(np.array(["2024-01-01", "2024-01-07"], dtype="M8[ns]"))
    array([0, 6])
    """
    days: npt.NDArray[np.int64] = dates.astype("M8[D]").astype(np.int64)
    return (days + 3) % 7  # 1970 began on a Thursday


def closed_table(
    series: npt.NDArray[np.int64], dates: npt.NDArray[Any], n: int
) -> npt.NDArray[np.bool_]:
    """Return which weekdays have no value, for each series.

    Parameters
    ----------
    series : ndarray of int of shape (n_values,)
        Series of each known value.
    dates : ndarray of datetime64 of shape (n_values,)
        Their dates.
    n : int
        Number of series.

    Returns
    -------
    ndarray of bool of shape (n, 7)
        Mondays first; none for series of less than four weeks.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.panel.weekdays import closed_table
    >>> days = np.arange("2024-01-01", "2024-02-12", dtype="M8[D]")
    >>> open_days = days[np.is_busday(days)]
    >>> closed_table(np.zeros(len(open_days), dtype=np.int64), open_days, 1).astype(int)
    array([[0, 0, 0, 0, 0, 1, 1]])
    """
    days = dates.astype("M8[D]").astype(np.int64)
    first, last = np.full(n, np.iinfo(np.int64).max), np.full(n, np.iinfo(np.int64).min)
    np.minimum.at(first, series, days)
    np.maximum.at(last, series, days)
    open_ = np.bincount(series * 7 + weekdays_of(dates), minlength=7 * n).reshape(n, 7) > 0
    long = (last >= first) & (last - first >= _SPAN - 1)
    return np.asarray(~open_ & long[:, None])


def name_weekdays(chosen: npt.NDArray[np.bool_]) -> str:
    """Return the names of weekdays in words.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.panel.weekdays import name_weekdays
    >>> name_weekdays(np.arange(7) > 3)
    'Fridays, Saturdays and Sundays'
    """
    names = [name for name, is_chosen in zip(_NAMES, chosen, strict=True) if is_chosen]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
