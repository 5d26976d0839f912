"""The paper's benchmarks for M5, with the libraries made for them.

ARIMA comes from statsforecast, the ensemble of multilayer perceptrons from scikit-learn and the
ensemble of LSTM networks from PyTorch. An ensemble has 10 members with 14 inputs, 28 hidden units
and one output, trained for 500 iterations from different random weights.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from rbfdiffnet.experiments.libraries import import_problem

__all__ = ["LSTMRegressor", "arima", "lstm_members", "missing_library", "mlp_members"]

Array = npt.NDArray[np.float64]

N_MEMBERS, N_HIDDEN, N_ITERATIONS, BATCH = 10, 28, 500, 200

_MODULES = {
    "ARIMA": "statsforecast.models",
    "ARIMA-nonseasonal": "statsforecast.models",
    "LSTM": "torch",
}


def missing_library(model: str) -> str | None:
    """Name the library that a model needs and that is missing or broken.

    Parameters
    ----------
    model : str
        Name of the model.

    Returns
    -------
    str or None
        Such as ``"torch, which is not installed"``.

    Examples
    --------
    >>> from rbfdiffnet.experiments.rivals import missing_library
    >>> missing_library("MLP") is None
    True
    """
    module = _MODULES.get(model)
    problem = import_problem(module) if module else None
    return f"{module.partition('.')[0]}, which {problem}" if module and problem else None


def arima(train: Array, season_length: int) -> Any:
    """Fit an ARIMA model whose orders are chosen by information criterion.

    Parameters
    ----------
    train : ndarray of shape (T,)
    season_length : int
        1 for none.

    Returns
    -------
    statsforecast.models.AutoARIMA
        ``predict(h)["mean"]`` is the forecast.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.experiments.rivals import arima
    >>> arima(np.arange(30.0), season_length=1).predict(2)["mean"]  # doctest: +SKIP
    array([30., 31.])
    """
    from statsforecast.models import AutoARIMA

    return AutoARIMA(season_length=season_length).fit(train)


def mlp_members(X: Array, y: Array, seed: int, n_iterations: int = N_ITERATIONS) -> list[Any]:
    r"""Train the ensemble of multilayer perceptrons.

    .. math:: f(x) = b + \sum_{j=1}^{28} v_j \frac{1}{1 + \exp(-u_j \cdot x - b_j)}

    with Adam and early stopping off: exactly ``n_iterations`` passes over the data.

    Parameters
    ----------
    X, y : ndarray of shape (n, 14) and (n,)
        Rows with mean zero and a spread of about 1.
    seed : int
    n_iterations : int, default=500

    Returns
    -------
    list of 10 regressors

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.experiments.rivals import mlp_members
    >>> X = np.random.default_rng(0).normal(size=(50, 14))
    >>> members = mlp_members(X, X[:, 0], seed=0, n_iterations=2)
    >>> len(members), members[0].n_iter_
    (10, 2)
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
    """Train the ensemble of LSTM networks, one member after another.

    Parameters
    ----------
    X, y : ndarray of shape (n, 14) and (n,)
        Rows with mean zero and a spread of about 1.
    seed : int
    n_iterations : int, default=500

    Returns
    -------
    list of 10 LSTMRegressor

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.experiments.rivals import lstm_members
    >>> X = np.random.default_rng(0).normal(size=(50, 14))
    >>> len(lstm_members(X, X[:, 0], seed=0, n_iterations=1))  # doctest: +SKIP
    10
    """
    return [
        LSTMRegressor(n_iterations, seed=N_MEMBERS * seed + member).fit(X, y)
        for member in range(N_MEMBERS)
    ]


class LSTMRegressor:
    """One layer of 28 LSTM blocks that reads the lags one by one, and a linear output.

    Trained by Adam on squared error, ``n_iterations`` passes over the data in batches of 200, on
    one thread.

    Parameters
    ----------
    n_iterations : int, default=500
    seed : int, default=0

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.experiments.rivals import LSTMRegressor
    >>> X = np.random.default_rng(0).normal(size=(50, 14))
    >>> LSTMRegressor(n_iterations=1).fit(X, X[:, 0]).predict(X).shape  # doctest: +SKIP
    (50,)
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
