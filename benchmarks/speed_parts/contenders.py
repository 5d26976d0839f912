"""Ours and its peers: each maps a long training frame to a frame of forecasts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.experiments.rivals import import_problem

OURS = "ours, default"


@dataclass(frozen=True)
class Job:
    """Series (n, T + h) to forecast h steps ahead, what they are, and how learners see them."""

    name: str
    about: str
    values: np.ndarray
    names: list[str]
    h: int
    freq: str = "D"
    season: int = 7
    n_lags: int = 28
    part: str = "dayofweek"


@dataclass(frozen=True)
class Contender:
    """A way to forecast a panel.

    Attributes
    ----------
    name : str
    forecast : callable
        Takes a frame ``unique_id, ds, y``; the last column of the result is the forecast.
    modules : tuple of str
        What must be installed, each also the name to install it by.
    n_series : int or None
        On how many series it is timed; None for all.
    alone : bool
        Whether it takes one series after the other, so that some of many stand for all.
    compiles : bool
        Whether the first call is slower, so that there is a call before the clock starts.
    """

    name: str
    forecast: Callable[[pd.DataFrame], pd.DataFrame]
    modules: tuple[str, ...] = ()
    n_series: int | None = None
    alone: bool = False
    compiles: bool = True

    def missing(self) -> str | None:
        """What to install, or what is wrong with what is installed."""
        for module in self.modules:
            problem = import_problem(module)
            if problem == "is not installed":
                return f"pip install {' '.join(self.modules)}"
            if problem:
                return f"{module} {problem}"
        return None


def contenders(job: Job) -> list[Contender]:
    """Ours first, then others that are usual."""
    peers = [
        Contender(name, _statsforecast(job, name), ("statsforecast",), alone=True)
        for name in ("SeasonalNaive", "AutoETS", "AutoTheta")
    ]
    return [
        Contender(OURS, _ours(job)),
        Contender("ours, instant", _ours(job, preset="instant")),
        Contender("ours, fast", _ours(job, preset="fast")),
        Contender("LightGBM (mlforecast)", _lightgbm(job), ("mlforecast", "lightgbm")),
        *peers,
    ]


def slow_contenders(
    job: Job, arima_series: int, mlp_series: int, lstm_series: int
) -> list[Contender]:
    """Others on a few series of days, or not at all where the number is 0."""
    arima = _statsforecast(job, "AutoARIMA")
    every = [
        Contender("AutoARIMA", arima, ("statsforecast",), arima_series),
        Contender("MLP ensemble", _paper(job, "MLP"), (), mlp_series, compiles=False),
        Contender("LSTM ensemble", _paper(job, "LSTM"), ("torch",), lstm_series, compiles=False),
    ]
    return [contender for contender in every if contender.n_series != 0]


def _ours(job: Job, **settings: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda df: RBFDiffNet(freq=job.freq, **settings).forecast(df, job.h)


def _statsforecast(job: Job, model: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def forecast(df: pd.DataFrame) -> pd.DataFrame:
        from statsforecast import StatsForecast, models

        one = getattr(models, model)(season_length=job.season)
        return StatsForecast(models=[one], freq=job.freq, n_jobs=1).forecast(df=df, h=job.h)

    return forecast


def _lightgbm(job: Job) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def forecast(df: pd.DataFrame) -> pd.DataFrame:
        from lightgbm import LGBMRegressor
        from mlforecast import MLForecast

        model = MLForecast(
            models=LGBMRegressor(n_jobs=1, verbosity=-1),
            freq=job.freq,
            lags=range(1, job.n_lags + 1),
            date_features=[job.part],
            num_threads=1,
        )
        return model.fit(df).predict(job.h)

    return forecast


def _paper(job: Job, name: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def forecast(df: pd.DataFrame) -> pd.DataFrame:
        from rbfdiffnet.experiments.m5 import M5_MODELS

        parts = []
        for series, rows in df.groupby("unique_id", sort=False):
            path = M5_MODELS[name](rows["y"].to_numpy(), 0)(job.h)
            days = pd.date_range(rows["ds"].iloc[-1], periods=job.h + 1)[1:]
            parts.append(pd.DataFrame({"unique_id": series, "ds": days, name: path}))
        return pd.concat(parts, ignore_index=True)

    return forecast
