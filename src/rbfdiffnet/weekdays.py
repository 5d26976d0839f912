"""Weekdays on which a daily series never has a value: shops that are closed on Sundays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.frequency import DAY, Frequency

__all__ = ["closed_weekdays", "is_daily"]

_NAMES = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")
_SPAN = 28  # days a series must span


def is_daily(frequency: Frequency | None) -> bool:
    """Return whether a step is a day, weekends included."""
    return frequency is not None and frequency.kind == "tick" and frequency.n == DAY


def closed_weekdays(series: npt.NDArray[np.int64], dates: npt.NDArray[Any], n: int) -> list[str]:
    """Return the weekdays without a value, for each series; empty where there are none.

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
    list of str
        Empty too for series of less than four weeks.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.weekdays import closed_weekdays
    >>> days = np.arange("2024-01-01", "2024-02-12", dtype="M8[D]")
    >>> open_days = days[np.is_busday(days)]
    >>> closed_weekdays(np.zeros(len(open_days), dtype=np.int64), open_days, 1)
    ['Saturdays and Sundays']
    """
    days = dates.astype("M8[D]").astype(np.int64)
    first, last = np.full(n, np.iinfo(np.int64).max), np.full(n, np.iinfo(np.int64).min)
    np.minimum.at(first, series, days)
    np.maximum.at(last, series, days)
    weekday = (days + 3) % 7  # 1970 began on a Thursday
    open_ = np.bincount(series * 7 + weekday, minlength=7 * n).reshape(n, 7) > 0
    closed = ~open_ & ((last >= first) & (last - first >= _SPAN - 1))[:, None]
    names = [""] * n
    for i in np.flatnonzero(closed.any(axis=1)):
        *others, final = (name for name, shut in zip(_NAMES, closed[i], strict=True) if shut)
        names[i] = f"{', '.join(others)} and {final}" if others else final
    return names
