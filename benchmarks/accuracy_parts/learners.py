"""Rivals that learn from all series together, by way of mlforecast.

Targets are seasonal differences, or values where the calendar is given (it has effects on values);
each series is on its own scale. Inputs are as many whole seasons of lags as fit into 28 steps, one
at least and four at most, fewer where the shortest series would have no target left. That was
chosen in the rivals' favor, by their errors on the suite and in windows of M5's level 8, among no,
first and seasonal differences and one, two and four seasons of lags. Other settings are defaults.
"""

from __future__ import annotations

from typing import Any

import pandas as pd


def linear_regression(
    train: pd.DataFrame, h: int, season_length: int, freq: str | int, inputs: pd.DataFrame | None
) -> pd.DataFrame:
    """Least squares."""
    from sklearn.linear_model import LinearRegression

    return learn(LinearRegression(), train, h, season_length, freq, inputs)


def lightgbm(
    train: pd.DataFrame, h: int, season_length: int, freq: str | int, inputs: pd.DataFrame | None
) -> pd.DataFrame:
    """Gradient boosting."""
    from lightgbm import LGBMRegressor

    return learn(LGBMRegressor(n_jobs=1, verbosity=-1), train, h, season_length, freq, inputs)


def learn(
    model: Any,
    train: pd.DataFrame,
    h: int,
    season_length: int,
    freq: str | int,
    inputs: pd.DataFrame | None,
) -> pd.DataFrame:
    """Forecast all series that have a target; with inputs, parts of the dates are inputs too."""
    from mlforecast import MLForecast
    from mlforecast.target_transforms import Differences, LocalStandardScaler

    lengths = train["unique_id"].map(train["unique_id"].value_counts())
    lags = n_lags(season_length, int(lengths.min()))
    train = train[lengths > season_length + lags]
    if inputs is not None:
        inputs = inputs[inputs["unique_id"].isin(train["unique_id"])]
    differences = [Differences([season_length])] if inputs is None else []
    forecaster = MLForecast(
        {"forecast": model},
        freq=freq,
        lags=range(1, lags + 1),
        date_features=None if inputs is None else ["dayofweek", "day", "month"],
        target_transforms=[*differences, LocalStandardScaler()],
        num_threads=1,
    )
    return forecaster.fit(train, static_features=[]).predict(h, X_df=inputs)


def n_lags(season_length: int, shortest: int) -> int:
    """How many lags to take, where the shortest series has ``shortest`` values."""
    seasons = min(max(28 // season_length, 1), 4)
    return max(min(seasons * season_length, shortest - season_length - 2), 2)
