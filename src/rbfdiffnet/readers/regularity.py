"""How regular dates are: which of two readings makes more sense."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.panel.grid import Grid

_CLEARLY_MORE = 1.1  # times as many steps filled: a reading that makes one doubt the other


def fill_share(dates: pd.Series[Any]) -> float:
    """Return the share of the steps from the first to the last date that have a date."""
    times = np.sort(dates.dropna().dt.tz_localize(None).unique()).astype("M8[ns]")
    codes = np.zeros(len(times), dtype=np.int64)
    frequency = Frequency.infer(times, codes)
    if frequency is None:
        return 0.0
    stamps = times.view(np.int64)
    grid = Grid.from_times(frequency, stamps, codes, 1)
    steps, on_grid = grid.locate(stamps, codes)
    return float(on_grid.sum() / (steps[on_grid].max() + 1))


def is_monotonic(dates: pd.Series[Any]) -> bool:
    """Tell whether dates are in order, upwards or downwards."""
    return bool(dates.is_monotonic_increasing or dates.is_monotonic_decreasing)


def is_more_regular(dates: pd.Series[Any], others: pd.Series[Any]) -> bool:
    """Tell whether only `dates` are in order, or else whether they leave clearly fewer gaps."""
    if is_monotonic(dates) != is_monotonic(others):
        return is_monotonic(dates)
    shorter = np.ptp(dates.to_numpy()) <= np.ptp(others.to_numpy())
    return bool(shorter and fill_share(dates) > _CLEARLY_MORE * fill_share(others))
