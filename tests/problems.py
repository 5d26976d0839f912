"""Seeded training problems, shared by the tests."""

import numpy as np

from rbfdiffnet.network.basis import GaussianBasis
from rbfdiffnet.network.centers import kmeans
from rbfdiffnet.network.losses import Loss
from rbfdiffnet.network.objective import Objective
from rbfdiffnet.network.sufficient_statistics import SufficientStatistics
from rbfdiffnet.network.widths import widths


def make_objective(
    seed,
    *,
    n=120,
    d=3,
    c=7,
    order=2,
    order_zero=True,
    n_outputs=1,
    penalty="ridge",
    loss=None,
    alpha=1e-3,
    factor=1.0,
    noise=0.3,
    weighted=False,
):
    """A seeded training problem with a nonlinear target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.stack(
        [
            np.sin(X @ rng.normal(size=d)) + X[:, 0] * X[:, -1] + noise * rng.normal(size=n)
            for _ in range(n_outputs)
        ]
    )
    y = (y - y.mean(axis=1, keepdims=True)) / y.std(axis=1, keepdims=True)
    centers = kmeans(X, c)
    beta = 0.5 / (factor * widths("cluster", X, centers)) ** 2
    basis = GaussianBasis.evaluate(X, centers, beta, order=order, order_zero=order_zero)
    return Objective(
        basis,
        np.vstack([X.T, np.ones(n)]),
        y,
        rng.uniform(0.5, 2.0, n) if weighted else np.ones(n),
        True,
        penalty=penalty,
        alpha=alpha,
        alpha_linear=1e-4,
        loss=loss or Loss(),
    )


def statistics_of(centers, beta, X, Y, weight=None, **basis):
    """The sufficient statistics of rows."""
    n_targets = 1 if Y.ndim == 1 else Y.shape[1]
    nothing = SufficientStatistics.empty(centers, beta, n_targets=n_targets, **basis)
    return nothing.add(X, Y, weight)
