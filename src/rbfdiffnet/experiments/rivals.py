"""The paper's benchmarks for M5, with the libraries made for them.

ARIMA comes from statsforecast, the ensemble of multilayer perceptrons from scikit-learn and the
ensemble of LSTM networks from PyTorch. An ensemble has 10 members with 14 inputs, 28 hidden units
and one output, trained for 500 iterations from different random weights.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

import numpy as np

from rbfdiffnet.support.arrays import Array

N_MEMBERS, N_HIDDEN, N_ITERATIONS, BATCH = 10, 28, 500, 200

_MODULES = {
    "ARIMA": "statsforecast.models",
    "ARIMA-nonseasonal": "statsforecast.models",
    "LSTM": "torch",
}


def import_problem(module: str) -> str | None:
    """Say why a module such as ``"torch"`` cannot be imported; None if it can."""
    try:
        if find_spec(module.partition(".")[0]) is None:
            return "is not installed"
    except ImportError:
        return "is not installed"
    try:
        import_module(module)
    except Exception as error:  # a broken library may raise anything
        reason = (str(error).splitlines() or [""])[0]
        return f"cannot be imported ({type(error).__name__}: {reason})"
    return None


def missing_library(model: str) -> str | None:
    """Return the library that a model lacks and why: ``"torch, which is not installed"``."""
    module = _MODULES.get(model)
    problem = import_problem(module) if module else None
    return f"{module.partition('.')[0]}, which {problem}" if module and problem else None


def fit_arima(train: Array, season_length: int) -> Any:
    """Fit an ARIMA model whose orders are chosen by information criterion; 1 is no season."""
    from statsforecast.models import AutoARIMA

    return AutoARIMA(season_length=season_length).fit(train)


def mlp_members(X: Array, y: Array, seed: int, n_iterations: int = N_ITERATIONS) -> list[Any]:
    r"""Train the ensemble of multilayer perceptrons.

    .. math:: f(x) = b + \sum_{j=1}^{28} v_j \frac{1}{1 + \exp(-u_j \cdot x - b_j)}

    with Adam and early stopping off: exactly ``n_iterations`` passes over the data.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    members = []
    for member in range(N_MEMBERS):
        network = MLPRegressor(
            hidden_layer_sizes=(N_HIDDEN,),
            activation="logistic",
            batch_size=min(BATCH, len(X)),
            max_iter=n_iterations,
            n_iter_no_change=n_iterations,
            random_state=N_MEMBERS * seed + member,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            members.append(network.fit(X, y))
    return members


def lstm_members(X: Array, y: Array, seed: int, n_iterations: int = N_ITERATIONS) -> list[Any]:
    """Train the ensemble of LSTM networks, one member after another."""
    return [
        LSTMRegressor(n_iterations, seed=N_MEMBERS * seed + member).fit(X, y)
        for member in range(N_MEMBERS)
    ]


class LSTMRegressor:
    """One layer of 28 LSTM blocks that reads the lags one by one, and a linear output.

    Trained by Adam on squared error, ``n_iterations`` passes over the data in batches of 200, on
    one thread.
    """

    def __init__(self, n_iterations: int = N_ITERATIONS, seed: int = 0) -> None:
        self.n_iterations = n_iterations
        self.seed = seed

    def fit(self, X: Array, y: Array) -> Self:
        """Train the network."""
        import torch

        torch.set_num_threads(1)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            blocks = torch.nn.LSTM(1, N_HIDDEN, batch_first=True)
            output = torch.nn.Linear(N_HIDDEN, 1)
            weights = [*blocks.parameters(), *output.parameters()]
            optimizer = torch.optim.Adam(weights, lr=1e-3)
            inputs = torch.from_numpy(X).float()[:, :, None]
            targets = torch.from_numpy(y).float()
            for _ in range(self.n_iterations):
                for rows in torch.randperm(len(inputs)).split(BATCH):
                    optimizer.zero_grad()
                    prediction = output(blocks(inputs[rows])[0][:, -1])[:, 0]
                    torch.nn.functional.mse_loss(prediction, targets[rows]).backward()
                    optimizer.step()
        self._blocks, self._output = blocks, output
        return self

    def predict(self, X: Array) -> Array:
        """Predict the rows of X."""
        import torch

        with torch.no_grad():
            inputs = torch.from_numpy(np.ascontiguousarray(X)).float()[:, :, None]
            prediction = self._output(self._blocks(inputs)[0][:, -1])[:, 0]
        return np.asarray(prediction.numpy(), dtype=np.float64)
