r"""The paper's second experiment: 28-day forecasts of 30 series of daily sales (M5, level 8).

The first 1,913 days train, the last 28 test. A series is differenced until the augmented
Dickey-Fuller test calls it stationary, at most 10 times; its mean is removed; a network with 14
lags, 28 centers and derivatives of order 1 forecasts 28 steps, each from the forecasts before it;
mean and differences are undone. The error is that of the M5 competition, with the root that
the paper's formula lacks and its numbers have:

.. math:: \mathrm{RMSSE} = \sqrt{\frac{\frac{1}{h} \sum_{t=T+1}^{T+h} (s_t - \hat s_t)^2}
    {\frac{1}{T-1} \sum_{t=2}^{T} (s_t - s_{t-1})^2}}
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.datasets.m5 import M5_LEVEL8_SERIES
from rbfdiffnet.evaluation.metrics import rmsse_score
from rbfdiffnet.experiments import rivals
from rbfdiffnet.experiments.m5_plus import fit_plus
from rbfdiffnet.experiments.runner import Task
from rbfdiffnet.series.recursion import forecast_recursive
from rbfdiffnet.series.transforms import Compose, Difference, RemoveMean
from rbfdiffnet.series.unit_root import n_differences
from rbfdiffnet.series.windows import lag_windows

Array = npt.NDArray[np.float64]
#: What is left of a model after training: a function of the horizon.
Forecaster = Callable[[int], Array]

N_LAGS, HORIZON, MAX_DIFFERENCES = 14, 28, 10
#: K-Means starts at random, so networks are trained from several seeds; ensembles need only one.
SEEDS = {"RBF-DiffNet": 5, "u-RBFN": 5, "n-RBFN": 5, "RBF-DiffNet+": 5}


def paper_steps(series: npt.ArrayLike) -> Compose:
    """Preprocess as the paper does: differences until stationary, then the mean."""
    count = n_differences(series, max_differences=MAX_DIFFERENCES)
    return Compose((*[Difference()] * count, RemoveMean()))


def rmsse(train: npt.ArrayLike, test: npt.ArrayLike, forecast: npt.ArrayLike) -> float:
    """Root mean squared error, in units of the root mean squared step of the training series.

    The training series counts from its first value that is not zero, as in M5.
    """
    return rmsse_score(test, forecast, train)


def fit_recursive(
    train: Array, fit: Callable[[Array, Array], Sequence[Any]], *, scale: bool = False
) -> Forecaster:
    """Preprocess a series, train one-step models on its windows, and forecast by recursion.

    ``fit`` takes windows and targets and returns fitted regressors; the forecast is the median of
    theirs. With ``scale`` the preprocessed series is divided by its spread, as neural networks
    need it.
    """
    steps = paper_steps(train)
    z = steps.apply(train)
    spread = float(z.std()) if scale else 1.0
    z = z / spread
    members = fit(*lag_windows(z, N_LAGS))

    def forecast(h: int) -> Array:
        paths = [forecast_recursive(m.predict, z, h, n_lags=N_LAGS) for m in members]
        return steps.invert(spread * np.median(paths, axis=0), train)

    return forecast


def _fit_paper(train: Array, seed: int) -> Forecaster:
    from rbfdiffnet import RBFDiffNetRegressor

    model = RBFDiffNetRegressor.paper(order=1, random_state=seed)
    return fit_recursive(train, lambda X, y: [model.fit(X, y)])


def _fit_plain(train: Array, seed: int, *, normalize: bool) -> Forecaster:
    from rbfdiffnet import RBFNetworkRegressor

    model = RBFNetworkRegressor(28, normalize=normalize, penalty="lasso", random_state=seed)
    return fit_recursive(train, lambda X, y: [model.fit(X, y)])


def _fit_arima(train: Array, season_length: int) -> Forecaster:
    model = rivals.fit_arima(train, season_length)
    return lambda h: np.asarray(model.predict(h)["mean"], dtype=np.float64)


#: Name of the model -> function of the training series and the seed that trains it.
M5_MODELS: dict[str, Callable[[Array, int], Forecaster]] = {
    "RBF-DiffNet": _fit_paper,
    "u-RBFN": lambda train, seed: _fit_plain(train, seed, normalize=False),
    "n-RBFN": lambda train, seed: _fit_plain(train, seed, normalize=True),
    "RBF-DiffNet+": lambda train, seed: fit_plus(train, seed),
    "ARIMA": lambda train, _seed: _fit_arima(train, 7),
    "ARIMA-nonseasonal": lambda train, _seed: _fit_arima(train, 1),
    "MLP": lambda train, seed: fit_recursive(
        train, lambda X, y: rivals.mlp_members(X, y, seed), scale=True
    ),
    "LSTM": lambda train, seed: fit_recursive(
        train, lambda X, y: rivals.lstm_members(X, y, seed), scale=True
    ),
}


def run_series(name: str, values: Array, model: str) -> dict[str, Any]:
    """Train one model on one series and score it on the last 28 days.

    ``rmsse`` and ``fit_seconds`` (preprocessing and training) are means over the model's seeds,
    ``forecast`` is that of the first seed.
    """
    train, test = values[:-HORIZON], values[-HORIZON:]
    forecasts, seconds = [], []
    for seed in range(SEEDS.get(model, 1)):
        start = time.perf_counter()
        forecaster = M5_MODELS[model](train, seed)
        seconds.append(time.perf_counter() - start)
        forecasts.append(forecaster(HORIZON))
    errors = [rmsse(train, test, forecast) for forecast in forecasts]
    return {
        "series": name,
        "model": model,
        "rmsse": float(np.mean(errors)),
        "fit_seconds": float(np.mean(seconds)),
        "rmsse_by_seed": errors,
        "forecast": np.round(forecasts[0], 3).tolist(),
        "actual": test.tolist(),
    }


def m5_tasks(values: Array, models: Sequence[str]) -> list[Task]:
    """List the runs of the experiment, model by model; ``values`` has shape (T, 30)."""
    return [
        Task(f"{name} {model}", model, run_series, (name, series, model))
        for model in models
        for name, series in zip(M5_LEVEL8_SERIES, values.T, strict=True)
    ]
