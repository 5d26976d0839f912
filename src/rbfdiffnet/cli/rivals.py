"""Forecasts of other methods for the windows of a backtest."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from rbfdiffnet.panel.panel import Panel

__all__ = ["Rival", "add_rival", "rivals"]

# Seconds a fit takes, for a value of the series and a step of the season; rough.
_COSTS = {"AutoETS": 3e-5, "AutoARIMA": 8e-4}


@dataclass(frozen=True)
class Rival:
    """A method of statsforecast and the series it can be given in the time there is.

    Parameters
    ----------
    name : str
    series : tuple of int
        Positions of the series, evenly spread over all of them.
    """

    name: str
    series: tuple[int, ...]


def rivals(panel: Panel, h: int, n_windows: int, season_length: int, limit: float) -> list[Rival]:
    """Choose series for the methods of statsforecast, if it is installed.

    The choice depends on the sizes of the series, not on how fast this computer happens to be.

    Parameters
    ----------
    panel : Panel
    h, n_windows, season_length : int
    limit : float
        Seconds each method may take, roughly.

    Returns
    -------
    list of Rival
        Empty where statsforecast is not installed.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.cli.rivals import rivals
    >>> from rbfdiffnet.panel.panel import Panel
    >>> df = pd.DataFrame({"unique_id": "a", "ds": range(6), "y": [1, 3, 1, 3, 2, 2]})
    >>> rivals(Panel.from_frame(df, freq=1), 2, 1, 1, limit=0.0)
    []
    """
    if limit <= 0.0 or find_spec("statsforecast") is None:
        return []
    long_enough = np.flatnonzero(panel.lengths - n_windows * h > max(3, season_length))
    if not long_enough.size:
        return []
    length = float(panel.lengths[long_enough].mean())
    chosen = []
    for name, cost in _COSTS.items():
        affordable = int(limit / (cost * length * season_length * n_windows))
        count = min(max(affordable, 1), long_enough.size)
        spread = np.linspace(0, long_enough.size - 1, count).round().astype(np.int64)
        chosen.append(Rival(name, tuple(long_enough[np.unique(spread)].tolist())))
    return chosen


def add_rival(
    panel: Panel,
    folds: pd.DataFrame,
    rival: Rival,
    h: int,
    season_length: int,
    levels: Sequence[float],
    n_jobs: int = 1,
) -> tuple[pd.DataFrame, float]:
    """Add the forecasts of a method of statsforecast; missing where it was not given the series.

    Series are given to it as whole-number steps with gaps filled by the latest value, so that
    dates of any kind can be compared.

    Parameters
    ----------
    panel : Panel
    folds : DataFrame
    rival : Rival
    h, season_length : int
    levels : sequence of float
    n_jobs : int, default=1
        Processes.

    Returns
    -------
    folds : DataFrame
    seconds : float
    """
    import pandas as pd
    from statsforecast import StatsForecast, models

    from rbfdiffnet.evaluation import BacktestRows

    windows = BacktestRows.locate(panel, folds)
    series, seen = windows.series, windows.seen
    parts = []
    for i in rival.series:
        y = pd.Series(panel.y[panel.offsets[i] : panel.offsets[i + 1]]).ffill().bfill().fillna(0.0)
        parts.append(pd.DataFrame({"unique_id": i, "ds": np.arange(1, len(y) + 1), "y": y}))
    model: Any = getattr(models, rival.name)(season_length=season_length)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forecaster = StatsForecast(
            models=[model],
            freq=1,
            n_jobs=n_jobs,
            fallback_model=models.SeasonalNaive(season_length=season_length),
        )
        found = forecaster.cross_validation(
            h=h,
            df=pd.concat(parts, ignore_index=True),
            n_windows=max(1, len(np.unique(seen[series == rival.series[0]]))),
            step_size=h,
            level=[int(x) if x == int(x) else x for x in levels] or None,  # as in its names
        )
    seconds = time.perf_counter() - began
    columns = [column for column in found.columns if column.startswith(rival.name)]
    keys = pd.DataFrame({"unique_id": series, "ds": seen + windows.ahead, "cutoff": seen})
    joined = keys.merge(found.drop(columns="y"), on=["unique_id", "ds", "cutoff"], how="left")
    return folds.assign(**{column: joined[column].to_numpy() for column in columns}), seconds
