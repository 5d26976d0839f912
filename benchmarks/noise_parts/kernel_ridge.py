"""Kernel ridge regression, its width and penalty by cross-validation in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from noise_parts.search import folds

GAMMAS = 10.0 ** np.arange(-3.5, 1.1, 0.5)
ALPHAS = 10.0 ** np.arange(-11.0, 2.1)


@dataclass(frozen=True)
class KernelRidge:
    """A trained model."""

    X: np.ndarray
    weights: np.ndarray
    gamma: float
    alpha: float

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict."""
        return kernel(X, self.X, self.gamma) @ self.weights


def kernel(X: np.ndarray, Z: np.ndarray, gamma: float) -> np.ndarray:
    """Gaussians of the distances between rows."""
    distances = (X**2).sum(axis=1)[:, None] + (Z**2).sum(axis=1) - 2.0 * X @ Z.T
    return np.exp(-gamma * np.maximum(distances, 0.0))


def fit(X: np.ndarray, y: np.ndarray) -> KernelRidge:
    r"""Train on standardized rows; five folds, each a stretch of time, choose the settings.

    .. math:: w = (K + \alpha I)^{-1} y = G y, \qquad y_f - \hat y_f = G_{ff}^{-1} (G y)_f

    where :math:`\hat y_f` are the predictions for fold f of the model trained without it: one
    decomposition of K serves every penalty and every fold, and nothing is approximated. The grid
    has half decades of the width and decades of the penalty; around its best both are halved.
    """
    tests = [test for _, test in folds(len(y))]

    def search(gammas: np.ndarray, alphas: np.ndarray) -> list[tuple[float, float, float]]:
        return [trial for gamma in gammas for trial in _trials(X, y, tests, gamma, alphas)]

    coarse = search(GAMMAS, ALPHAS)
    _, gamma, alpha = min(coarse)
    steps = np.arange(-1, 2)
    fine = search(gamma * 10.0 ** (0.25 * steps), alpha * 10.0 ** (0.5 * steps))
    _, gamma, alpha = min(coarse + fine)
    gram = kernel(X, X, gamma)
    gram.flat[:: len(y) + 1] += alpha
    return KernelRidge(X, np.linalg.solve(gram, y), gamma, alpha)


def _trials(
    X: np.ndarray, y: np.ndarray, tests: list[np.ndarray], gamma: float, alphas: np.ndarray
) -> list[tuple[float, float, float]]:
    """Mean squared error over the folds, width and penalty, for every penalty."""
    values, vectors = np.linalg.eigh(kernel(X, X, gamma))
    turned = vectors.T @ y
    trials = []
    for alpha in alphas:
        shrunk = 1.0 / (np.maximum(values, 0.0) + alpha)
        weights = vectors @ (shrunk * turned)
        loss = 0.0
        for test in tests:
            block = (vectors[test] * shrunk) @ vectors[test].T
            loss += float(np.sum(np.linalg.solve(block, weights[test]) ** 2))
        trials.append((loss / len(y), gamma, alpha))
    return trials
