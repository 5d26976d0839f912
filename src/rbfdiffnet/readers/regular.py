"""How regular dates are: which of two readings makes more sense."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.panel.grid import Grid

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["filled", "ordered", "tidier"]

_MORE = 1.1  # times as many steps filled: a reading that makes one doubt the other


def filled(dates: pd.Series[Any]) -> float:
    """Return the share of the steps from the first to the last date that have one.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.regular import filled
    >>> filled(pd.Series(pd.date_range("2024-01-01", periods=5)).drop(2))
    0.8
    """
    times = np.sort(dates.dropna().dt.tz_localize(None).unique()).astype("M8[ns]")
    codes = np.zeros(len(times), dtype=np.int64)
    frequency = Frequency.infer(times, codes)
    if frequency is None:
        return 0.0
    stamps = times.view(np.int64)
    grid = Grid.from_times(frequency, stamps, codes, 1)
    steps, on_grid = grid.locate(stamps, codes)
    return float(on_grid.sum() / (steps[on_grid].max() + 1))


def ordered(dates: pd.Series[Any]) -> bool:
    """Tell whether dates only rise or only fall.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.regular import ordered
    >>> ordered(pd.Series(pd.to_datetime(["2024-01-03", "2024-01-02"])))
    True
    """
    return bool(dates.is_monotonic_increasing or dates.is_monotonic_decreasing)


def tidier(dates: pd.Series[Any], others: pd.Series[Any]) -> bool:
    """Tell whether dates are in order and others are not, or else leave fewer gaps.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.regular import tidier
    >>> days, months = pd.date_range("2024-01-01", periods=5), ["2024-05-01", "2024-04-02"]
    >>> tidier(pd.Series(days), pd.Series(pd.to_datetime([*months, "2024-06-01"])))
    True
    """
    if ordered(dates) != ordered(others):
        return ordered(dates)
    shorter = np.ptp(dates.to_numpy()) <= np.ptp(others.to_numpy())
    return bool(shorter and filled(dates) > _MORE * filled(others))
