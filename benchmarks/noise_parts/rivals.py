"""Rivals that learn a map from windows to the value that follows, and ours without noise treatment.

Each takes standardized training rows and the cell they are from, and returns a model with
``predict``. Kernel ridge, the Gaussian process and the RBF networks choose their settings anew on
every cell. The support vector machine and the MLP choose them by five-fold cross-validation on
the cell with seed 0 and use them for the other seeds of that system, noise level and number of
lags; so the seconds of seed 0 include the search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from noise_parts import kernel_ridge
from noise_parts.data import Cell, make_cell
from noise_parts.search import lattice_search, validated
from noise_parts.tasks import Model, score
from rbfdiffnet import RBFDiffNetRegressor, RBFNetworkRegressor
from rbfdiffnet.series.windows import lag_windows

Rival = Callable[[np.ndarray, np.ndarray, Cell], Model]

N_CENTERS = 28
SVR_AXES = {
    "C": 10.0 ** np.arange(-2.0, 4.1, 0.5),
    "gamma": 10.0 ** np.arange(-3.0, 1.1, 0.25),
    "epsilon": (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.06, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2),
}
SVR_STARTS = tuple(product((4, 8), (6, 10), (5, 9)))
MLP_AXES = {"units": (4, 6, 10, 16, 24, 40, 64), "alpha": 10.0 ** np.arange(-5.0, 2.1, 0.5)}
MLP_STARTS = tuple(product((1, 4), (2, 6, 10)))


@dataclass(frozen=True)
class Standardized:
    """A model of standardized values, used with values in their own units."""

    model: Model
    mean: float
    spread: float

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Map windows (n, n_lags) to the values that follow them."""
        return self.mean + self.spread * self.model.predict((X - self.mean) / self.spread)


def rows(cell: Cell) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Training windows and targets, and the training series' mean and spread, taken out of both."""
    mean, spread = float(cell.training.mean()), float(cell.training.std())
    return *lag_windows((cell.training - mean) / spread, cell.n_lags), mean, spread


def figures(rival: Rival, cell: Cell) -> dict[str, float]:
    """Train a rival on a cell and score it."""
    X, y, mean, spread = rows(cell)
    return score(cell, Standardized(rival(X, y, cell), mean, spread))


def ridge(X: np.ndarray, y: np.ndarray, _: Cell) -> Model:
    return kernel_ridge.fit(X, y)


def support_vectors(X: np.ndarray, y: np.ndarray, cell: Cell) -> Model:
    return make_svr(**svr_settings(cell.system, cell.noise, cell.n_lags)).fit(X, y)


def make_svr(C: float, gamma: float, epsilon: float) -> Any:
    from sklearn.svm import SVR

    return SVR(C=C, gamma=gamma, epsilon=epsilon, max_iter=50_000)


@cache
def svr_settings(system: str, noise: float, n_lags: int) -> dict[str, float]:
    X, y, _, _ = rows(make_cell(system, noise, n_lags, seed=0))
    return lattice_search(validated(make_svr, X, y), SVR_AXES, SVR_STARTS)


def perceptron(X: np.ndarray, y: np.ndarray, cell: Cell) -> Model:
    settings = mlp_settings(cell.system, cell.noise, cell.n_lags)
    return make_mlp(**settings, seed=cell.seed).fit(X, y)


def make_mlp(units: int, alpha: float, seed: int = 0) -> Any:
    from sklearn.neural_network import MLPRegressor

    return MLPRegressor(
        hidden_layer_sizes=(units,),
        activation="tanh",
        solver="lbfgs",
        alpha=alpha,
        max_iter=1000,
        random_state=seed,
    )


@cache
def mlp_settings(system: str, noise: float, n_lags: int) -> dict[str, float]:
    X, y, _, _ = rows(make_cell(system, noise, n_lags, seed=0))
    return lattice_search(validated(make_mlp, X, y), MLP_AXES, MLP_STARTS)


def gaussian_process(X: np.ndarray, y: np.ndarray, _: Cell) -> Model:
    """A length for each lag and the noise level by marginal likelihood, from all rows."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    smooth = ConstantKernel(1.0, (1e-3, 1e6)) * RBF(np.ones(X.shape[1]), (1e-2, 1e3))
    return GaussianProcessRegressor(smooth + WhiteKernel(0.1, (1e-10, 10.0))).fit(X, y)


def unnormalized(X: np.ndarray, y: np.ndarray, cell: Cell) -> Model:
    return _network(cell, normalize=False).fit(X, y)


def normalized(X: np.ndarray, y: np.ndarray, cell: Cell) -> Model:
    return _network(cell, normalize=True).fit(X, y)


def _network(cell: Cell, normalize: bool) -> RBFNetworkRegressor:
    return RBFNetworkRegressor(
        N_CENTERS, normalize=normalize, width_factor="auto", random_state=cell.seed
    )


def paper(X: np.ndarray, y: np.ndarray, cell: Cell) -> Model:
    network = RBFDiffNetRegressor.paper(order=2, n_centers=N_CENTERS, random_state=cell.seed)
    return network.fit(X, y)


def plain(X: np.ndarray, y: np.ndarray, cell: Cell) -> Model:
    return RBFDiffNetRegressor(n_centers=N_CENTERS, random_state=cell.seed).fit(X, y)


RIVALS: dict[str, Rival] = {
    "kernel ridge": ridge,
    "SVR": support_vectors,
    "Gaussian process": gaussian_process,
    "MLP": perceptron,
    "u-RBFN": unnormalized,
    "n-RBFN": normalized,
    "RBF-DiffNet, paper": paper,
}
