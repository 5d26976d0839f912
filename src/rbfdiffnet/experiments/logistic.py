r"""The paper's first experiment: one-step prediction of the logistic map from noisy training data.

.. math:: s_{t+1} = 4 s_t (1 - s_t), \qquad s_1 = 0.1

1,000 values, the last 100 for the test; noise of several levels, several numbers of lags l,
max(5, 2 l) centers, derivatives up to order 2, the training mean subtracted, and the mean absolute
error of one-step predictions. The paper calls the noise level a variance and does not say where
the noise goes; its tables come out with a standard deviation, and noise on the training part only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from rbfdiffnet.datasets import logistic_map
from rbfdiffnet.experiments.runner import Task
from rbfdiffnet.regressors import RBFDiffNetRegressor, RBFNetworkRegressor
from rbfdiffnet.series.windows import lag_windows
from rbfdiffnet.support.arrays import Array

NOISE_LEVELS = (0.0, 0.02, 0.04, 0.08, 0.12)
LAGS = (1, 2, 4, 8, 16)
N_VALUES, N_TEST = 1000, 100


@dataclass(frozen=True)
class Cell:
    """Training and test rows for one noise level and l lags, minus the training mean.

    ``X`` and ``y``, of shape (n, l) and (n,), are noisy; ``X_test`` and ``y_test``, of shape
    (100, l) and (100,), are clean.
    """

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    mean: float


def make_cell(omega: float, lag: int, seed: int, *, noise_on_test: bool = False) -> Cell:
    r"""Make the data of one cell of the paper's table: paper, eq. (noise).

    .. math:: x_t = s_t + \omega e_t, \quad e_t \sim N(0, 1), \qquad t \le 900

    With ``noise_on_test`` the test part is noisy too, which is not how the paper's tables came
    about.
    """
    clean = logistic_map(N_VALUES)
    noise = omega * np.random.default_rng(seed).normal(size=N_VALUES)
    split = N_VALUES - N_TEST
    train = clean[:split] + noise[:split]
    test = clean + noise if noise_on_test else clean
    mean = float(train.mean())
    X, y = lag_windows(train - mean, lag)
    X_test, y_test = lag_windows(test[split - lag :] - mean, lag)
    return Cell(X, y, X_test, y_test, mean)


def _plain(normalize: bool) -> Callable[[int, int], Any]:
    return lambda lag, seed: RBFNetworkRegressor(
        max(5, 2 * lag), normalize=normalize, penalty="lasso", random_state=seed
    )


#: Name of the model -> function of the number of lags and the seed that makes the regressor.
LOGISTIC_MODELS: dict[str, Callable[[int, int], Any]] = {
    "RBF-DiffNet": lambda lag, seed: RBFDiffNetRegressor.paper(
        order=2, n_centers=max(5, 2 * lag), random_state=seed
    ),
    "u-RBFN": _plain(normalize=False),
    "n-RBFN": _plain(normalize=True),
    "RBF-DiffNet+": lambda _lag, seed: RBFDiffNetRegressor(noise="auto", random_state=seed),
}


def run_cell(omega: float, lag: int, model: str, seed: int) -> dict[str, Any]:
    """Train one model on one cell; the seed is that of the noise and of the model."""
    cell = make_cell(omega, lag, seed)
    regressor = LOGISTIC_MODELS[model](lag, seed)
    start = time.perf_counter()
    regressor.fit(cell.X, cell.y)
    seconds = time.perf_counter() - start
    prediction = regressor.predict(cell.X_test)
    return {
        "omega": omega,
        "lag": lag,
        "model": model,
        "seed": seed,
        "mae": float(np.abs(prediction - cell.y_test).mean()),
        "fit_seconds": seconds,
        "prediction": np.round(prediction + cell.mean, 6).tolist(),
    }


def logistic_tasks(
    n_seeds: int, *, noise_levels: tuple[float, ...] = NOISE_LEVELS, lags: tuple[int, ...] = LAGS
) -> list[Task]:
    """List the runs of the experiment, cell by cell."""
    return [
        Task(
            key=f"omega={omega} lag={lag} {model} seed={seed}",
            kind=f"{model} lag={lag}",
            function=run_cell,
            arguments=(omega, lag, model, seed),
        )
        for omega, lag, seed, model in product(noise_levels, lags, range(n_seeds), LOGISTIC_MODELS)
    ]
