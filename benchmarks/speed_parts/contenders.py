"""Ours and its peers: each maps a long training frame to a frame of 28-day forecasts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.experiments.rivals import import_problem
from speed_parts.data import H

SEASON = 7
OURS = "ours, fast"


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
    compiles : bool
        Whether the first call is slower, so that there is a call before the clock starts.
    """

    name: str
    forecast: Callable[[pd.DataFrame], pd.DataFrame]
    modules: tuple[str, ...] = ()
    n_series: int | None = None
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


def contenders(arima_series: int, mlp_series: int, lstm_series: int) -> list[Contender]:
    """Ours first; the slow ones on a few series, or not at all where the number is 0."""
    every = [
        Contender(OURS, _ours(preset="fast")),
        Contender("ours, fast, 28 lags", _ours(preset="fast", lags=28)),
        Contender("ours, instant", _ours(preset="instant")),
        Contender("ours, default", _ours()),
        Contender("LightGBM (mlforecast)", _lightgbm, ("mlforecast", "lightgbm")),
        Contender("AutoETS", _statsforecast("AutoETS"), ("statsforecast",)),
        Contender("Theta", _statsforecast("DynamicOptimizedTheta"), ("statsforecast",)),
        Contender("AutoARIMA", _statsforecast("AutoARIMA"), ("statsforecast",), arima_series),
        Contender("MLP ensemble", _paper("MLP"), (), mlp_series, compiles=False),
        Contender("LSTM ensemble", _paper("LSTM"), ("torch",), lstm_series, compiles=False),
    ]
    return [contender for contender in every if contender.n_series != 0]


def _ours(**settings: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda df: RBFDiffNet(freq="D", **settings).forecast(df, H)


def _statsforecast(model: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def forecast(df: pd.DataFrame) -> pd.DataFrame:
        from statsforecast import StatsForecast, models

        one = getattr(models, model)(season_length=SEASON)
        return StatsForecast(models=[one], freq="D", n_jobs=1).forecast(df=df, h=H)

    return forecast


def _lightgbm(df: pd.DataFrame) -> pd.DataFrame:
    from lightgbm import LGBMRegressor
    from mlforecast import MLForecast

    model = MLForecast(
        models=LGBMRegressor(n_jobs=1, verbosity=-1),
        freq="D",
        lags=range(1, 29),
        date_features=["dayofweek"],
        num_threads=1,
    )
    return model.fit(df).predict(H)


def _paper(name: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def forecast(df: pd.DataFrame) -> pd.DataFrame:
        from rbfdiffnet.experiments.m5 import M5_MODELS

        parts = []
        for series, rows in df.groupby("unique_id", sort=False):
            path = M5_MODELS[name](rows["y"].to_numpy(), 0)(H)
            days = pd.date_range(rows["ds"].iloc[-1], periods=H + 1)[1:]
            parts.append(pd.DataFrame({"unique_id": series, "ds": days, name: path}))
        return pd.concat(parts, ignore_index=True)

    return forecast
