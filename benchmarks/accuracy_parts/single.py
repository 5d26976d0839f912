"""Rivals that look at one series at a time; inputs are not used."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pandas as pd

Method = Callable[
    [pd.DataFrame, int, int, "str | int", "pd.DataFrame | None"],
    pd.DataFrame,
]


def repeat_season(past: np.ndarray, h: int, season_length: int) -> np.ndarray:
    """The last season again and again; the last value where there is no whole season."""
    return np.resize(past[-(season_length if len(past) >= season_length else 1) :], h)


def seasonal_naive(
    train: pd.DataFrame,
    h: int,
    season_length: int,
    freq: str | int,
    inputs: pd.DataFrame | None = None,  # noqa: ARG001
) -> pd.DataFrame:
    """Repeat the last season."""
    return each(train, h, freq, lambda past: repeat_season(past, h, season_length))


def statistical(
    model: str,
    train: pd.DataFrame,
    h: int,
    season_length: int,
    freq: str | int,
    inputs: pd.DataFrame | None = None,  # noqa: ARG001
) -> pd.DataFrame:
    """A model of statsforecast; series it raises an error for are missing."""
    from statsforecast import models

    kind = getattr(models, model)
    seasonal = model.startswith("Auto")
    template = kind(season_length=season_length) if seasonal else kind()

    def forecast(past: np.ndarray) -> np.ndarray:
        with suppress(Exception):
            return np.asarray(template.new().forecast(past, h)["mean"], dtype=float)
        return np.full(h, np.nan)

    return each(train, h, freq, forecast)


def each(
    train: pd.DataFrame, h: int, freq: str | int, forecast: Callable[[np.ndarray], np.ndarray]
) -> pd.DataFrame:
    """Forecast every series from its values alone."""
    from utilsforecast.processing import make_future_dataframe

    series = train.groupby("unique_id")
    last = series["ds"].max()
    frame = make_future_dataframe(last.index, pd.Index(last), freq, h)
    paths = [forecast(past.to_numpy(dtype=float)) for _, past in series["y"]]
    return frame.assign(forecast=np.concatenate(paths))
