"""Windows of a backtest on the regular grid of their series, where missing rows are missing values.

Steps are steps of time, not rows: a shop without rows for Sundays has a season of seven steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.frames import read_frame
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.series.naive import naive_forecast

__all__ = ["BASELINE", "LAST", "Windows", "scales", "simple_forecasts"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Two simple rules that forecasts are compared with: the value a season ago, and the last one.
BASELINE, LAST = "SeasonalNaive", "LastValue"


@dataclass(frozen=True)
class Windows:
    """Where the rows of a backtest stand.

    Attributes
    ----------
    series : ndarray of int of shape (n,)
        Series of each row, -1 for those that are not in the panel.
    seen : ndarray of int of shape (n,)
        Steps of the series up to the cutoff.
    ahead : ndarray of int of shape (n,)
        Steps from the cutoff.
    on_grid : ndarray of bool of shape (n,)
        Whether the row and its cutoff are steps of the series; other numbers mean nothing.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.panel.panel import Panel
    >>> from rbfdiffnet.evaluation import Windows
    >>> df = pd.DataFrame({"unique_id": "a", "ds": [1, 2, 4, 5], "y": [1, 3, 2, 2]})
    >>> found = Windows.of(Panel.from_frame(df, freq=1), df[3:].assign(cutoff=3))
    >>> found.seen.tolist(), found.ahead.tolist()
    ([3], [2])
    """

    series: Ints
    seen: Ints
    ahead: Ints
    on_grid: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, panel: Panel, folds: Any) -> Windows:
        """Find the rows of a frame with a column ``cutoff`` on the grids of a panel."""
        names = panel.columns
        frame = read_frame(folds, [names.id, names.time, "cutoff"])
        series, steps, good = panel.rows_of(frame.select(names.id, names.time).to_native())
        cutoffs = frame.select(names.id, "cutoff").rename({"cutoff": names.time}).to_native()
        _, last, also = panel.rows_of(cutoffs)
        return cls(series, last + 1, steps - last, good & also & (last >= 0) & (steps > last))


def simple_forecasts(panel: Panel, windows: Windows, season_length: int) -> dict[str, Array]:
    """Return the forecasts of simple rules for every row, by name; NaN for rows off the grid.

    ``SeasonalNaive`` repeats the last season, or the last value where less than a season was seen.
    ``LastValue`` repeats that always, and is there where a season has more than one step.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.panel.panel import Panel
    >>> from rbfdiffnet.evaluation import Windows, simple_forecasts
    >>> df = pd.DataFrame({"unique_id": "a", "ds": range(6), "y": [1, 3, 1, 3, 2, 2]})
    >>> panel = Panel.from_frame(df, freq=1)
    >>> found = simple_forecasts(panel, Windows.of(panel, df[4:].assign(cutoff=3)), 2)
    >>> {name: values.tolist() for name, values in found.items()}
    {'SeasonalNaive': [1.0, 3.0], 'LastValue': [3.0, 3.0]}
    """
    seasons = {BASELINE: season_length} | ({LAST: 1} if season_length > 1 else {})
    return {name: _repeated(panel, windows, season) for name, season in seasons.items()}


def _repeated(panel: Panel, windows: Windows, season_length: int) -> Array:
    """Forecasts of every row by the last season."""
    values = np.full(len(windows.series), np.nan)
    for i, rows in _by_series(np.where(windows.on_grid, windows.series, -1)):
        seen, ahead = windows.seen[rows], windows.ahead[rows]
        origins, which = np.unique(seen, return_inverse=True)
        y = _series(panel, i, int(origins[-1]))
        paths = naive_forecast(y, origins, int(ahead.max()), season_length, n_seasons=1)
        values[rows] = paths[which, ahead - 1]
    return values


def scales(panel: Panel, series: Ints, seen: Ints, season_length: int) -> tuple[Array, Array]:
    """Return the scales of errors, from the values seen.

    Parameters
    ----------
    panel : Panel
    series, seen : ndarray of int of shape (n,)
    season_length : int

    Returns
    -------
    seasonal : ndarray of shape (n,)
        Mean absolute change over a season, or over one step where not more than a season was seen.
    single : ndarray of shape (n,)
        Mean squared change over one step, from the first value that is not zero. Changes from or to
        a missing value do not count; both are NaN where there are none.
    """
    seasonal, single = np.full(len(series), np.nan), np.full(len(series), np.nan)
    for i, rows in _by_series(series):
        y, until = _series(panel, i, int(seen[rows].max())), seen[rows]
        lag = np.where(until > season_length, season_length, 1)
        for m in np.unique(lag):
            own = rows[lag == m]
            seasonal[own] = _mean_until(np.abs(y[m:] - y[:-m]), seen[own] - m)
        sold = np.flatnonzero(np.nan_to_num(y) != 0.0)
        if sold.size:
            single[rows] = _mean_until(np.diff(y[sold[0] :]) ** 2, until - sold[0] - 1)
    return seasonal, single


def _mean_until(steps: Array, stops: Ints) -> Array:
    """Mean of the known among the first steps, for each of several stops."""
    known = np.isfinite(steps)
    count = np.append(0, np.cumsum(known))[np.maximum(stops, 0)]
    total = np.append(0.0, np.cumsum(np.where(known, steps, 0.0)))[np.maximum(stops, 0)]
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _by_series(series: Ints) -> Iterator[tuple[int, Ints]]:
    """Every series and its rows."""
    order = np.argsort(series, kind="stable")
    found, starts = np.unique(series[order], return_index=True)
    for i, start, stop in zip(found.tolist(), starts, [*starts[1:], None], strict=False):
        if i >= 0:
            yield i, order[start:stop]


def _series(panel: Panel, i: int, length: int) -> Array:
    """Values of a series, followed by missing ones where more are asked for."""
    y = panel.y[panel.offsets[i] : panel.offsets[i + 1]]
    return np.append(y, np.full(max(0, length - len(y)), np.nan))
