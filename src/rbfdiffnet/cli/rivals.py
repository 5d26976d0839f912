"""Forecasts of statsforecast's methods for the windows of a backtest."""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from rbfdiffnet.evaluation import BacktestRows
from rbfdiffnet.panel.panel import Panel

# Rough seconds that a fit takes, for each value of the series and each step of the season.
_COSTS = {"AutoETS": 3e-5, "AutoARIMA": 8e-4}


@dataclass(frozen=True)
class Rival:
    """A method of statsforecast, and the positions of the series there is time for."""

    name: str
    series: tuple[int, ...]


def choose_rivals(
    panel: Panel, h: int, n_windows: int, season_length: int, seconds: float
) -> list[Rival]:
    """Choose evenly spread series for each method of statsforecast; none if it is not installed.

    Each method may take about ``seconds``. The choice depends on the sizes of the series, not on
    how fast this computer happens to be.
    """
    if find_spec("statsforecast") is None:
        return []
    long_enough = np.flatnonzero(panel.lengths - n_windows * h > max(3, season_length))
    if not long_enough.size:
        return []
    length = float(panel.lengths[long_enough].mean())
    chosen = []
    for name, cost in _COSTS.items():
        affordable = int(seconds / (cost * length * season_length * n_windows))
        count = min(max(affordable, 1), long_enough.size)
        spread = np.linspace(0, long_enough.size - 1, count).round().astype(np.int64)
        chosen.append(Rival(name, tuple(long_enough[np.unique(spread)].tolist())))
    return chosen


def forecast_rival(
    rival: Rival,
    panel: Panel,
    folds: pd.DataFrame,
    season_length: int,
    arguments: argparse.Namespace,
) -> tuple[pd.DataFrame, float]:
    """Return the folds with the forecasts of a method, and the seconds it took.

    Forecasts are missing for series that the method was not given. It gets whole-number steps
    with gaps filled by the latest value, so that dates of any kind can be compared.
    """
    from statsforecast import StatsForecast, models

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
            n_jobs=arguments.jobs,
            fallback_model=models.SeasonalNaive(season_length=season_length),
        )
        levels = arguments.level or []
        found = forecaster.cross_validation(
            h=arguments.horizon,
            df=pd.concat(parts, ignore_index=True),
            n_windows=max(1, len(np.unique(seen[series == rival.series[0]]))),
            step_size=arguments.horizon,
            level=[int(x) if x == int(x) else x for x in levels] or None,  # as in its names
        )
    seconds = time.perf_counter() - began
    columns = [column for column in found.columns if column.startswith(rival.name)]
    keys = pd.DataFrame({"unique_id": series, "ds": seen + windows.ahead, "cutoff": seen})
    joined = keys.merge(found.drop(columns="y"), on=["unique_id", "ds", "cutoff"], how="left")
    return folds.assign(**{column: joined[column].to_numpy() for column in columns}), seconds
