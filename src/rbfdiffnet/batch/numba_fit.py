"""The training of `batch.train` compiled by numba, series by series: the extra ``[fast]``.

The same steps in the same order, so the networks are the same but for rounding. What it saves are
passes over memory (`rbfdiffnet.batch.numba_kernels`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rbfdiffnet.batch import train as batched
from rbfdiffnet.batch.backend import NUMPY, TIE
from rbfdiffnet.batch.networks import BatchNetworks
from rbfdiffnet.batch.numba_kernels import AVAILABLE, attempt, newton, place

__all__ = ["AVAILABLE", "fit_batch_compiled"]

_BLOCK = 328  # rows


def fit_batch_compiled(
    X: Any,
    y: Any,
    weight: Any,
    *,
    n_centers: int = 28,
    width_factor: float = 4.0,
    n_steps: int = 12,
) -> BatchNetworks:
    """Train a network for every series of a batch, as `rbfdiffnet.batch.train.fit_batch` does.

    Parameters
    ----------
    X : ndarray of shape (B, d, N)
    y, weight : ndarrays of shape (B, N)
    n_centers, width_factor, n_steps
        As for `rbfdiffnet.batch.train.fit_batch`.

    Returns
    -------
    BatchNetworks

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.batch.train import fit_batch
    >>> from rbfdiffnet.batch.numba_fit import fit_batch_compiled
    >>> X = np.random.default_rng(0).normal(size=(1, 2, 100))
    >>> y, ones = np.sin(X[:, 0]) + X[:, 1], np.ones((1, 100))
    >>> one, other = fit_batch(X, y, ones, n_centers=5), fit_batch_compiled(X, y, ones, n_centers=5)
    >>> bool(np.abs(one.a - other.a).max() < 1e-9)
    True
    """
    work = _Workspace(X.shape[2], n_centers, X.shape[1])

    def minimize(rows: Any, t: Any, n: Any) -> tuple[Any, ...]:
        rows = np.concatenate([rows, t[:, None]], axis=1)
        fits = [work.fit(rows[i], n[i], width_factor, n_steps) for i in range(len(rows))]
        return tuple(np.stack(values) for values in zip(*fits, strict=True))

    return batched.in_units(X, y, weight, minimize, NUMPY)


class _Workspace:
    """Arrays for the training of one series, and its steps."""

    def __init__(self, n: int, c: int, d: int) -> None:
        blocks = -(-n // _BLOCK)
        size = 8 * -(-n // (8 * blocks))
        p, q = c + d + 1, 1 + d
        self.padded = np.zeros((d + 2, blocks * size))
        self.columns = np.zeros((blocks, p + d + 2, size))  # G, inputs, weight, target, J
        self.phi = np.empty((blocks, c, size))
        self.gram, self.root = np.zeros((p, p)), np.zeros((p, p))
        self.gradient, self.hessian = np.empty(q), np.empty((q, q))
        self.ridges = np.array(batched._RIDGES)

    def fit(self, rows: Any, n: float, width_factor: float, n_steps: int) -> tuple[Any, ...]:
        """Train one network on inputs, weight and target, of shape (d + 2, N), in units."""
        columns, phi = self.columns, self.phi
        blocks, c, size = phi.shape
        d = len(rows) - 2
        self.padded[:, -rows.shape[1] :] = rows
        data = columns[:, c : c + d + 2]
        data[:] = self.padded.reshape(-1, blocks, size).swapaxes(0, 1)
        centers, beta = np.empty((c, d)), np.empty(c)
        limits = (batched._SMALLEST_WIDTH, TIE, batched._LLOYD_STEPS)
        unit = place(columns, n, width_factor, *limits, phi, centers, beta)
        np.exp(phi, out=phi)
        problem = (columns, phi, centers, beta, unit, n)
        fixed = (data @ data.swapaxes(1, 2)).sum(axis=0)
        penalties = (self.ridges, batched.linear_ridge(n, d), batched._UNPENALIZED)
        gradient, hessian, eye = self.gradient, self.hessian, np.eye(1 + d)
        a, b = np.full(1 + d, (1.0 + d) ** -0.5), np.full(c + d + 1, np.nan)
        value, ridge, damping = np.inf, np.nan, batched._FIRST_DAMPING
        solve: Any = attempt
        for step in range(n_steps + 1):
            trial, b_new = a, np.empty_like(b)
            if step > 0:
                lift = damping * np.abs(np.diagonal(hessian)).mean() + 1e-300
                trial = a - np.linalg.solve(hessian + lift * eye, gradient)
                trial /= max(np.sqrt(trial @ trial), 1e-12)
            at = (self.gram, self.root, step == 0, ridge, trial, b_new)
            new, ridge = solve(*problem, fixed, *penalties, *at)
            better = new < value
            enough = value - new < batched._ENOUGH * new
            if better:
                a, b, value = trial, b_new, new
            if step > 0:
                damping *= 0.2 if better else 20.0
            elif not better:  # nothing but NaN
                break
            if step == n_steps or (better and enough) or damping >= batched._MOST_DAMPING:
                break
            if better:
                rho = n * (ridge + batched._UNPENALIZED)
                newton(*problem[:-1], rho, a, b, self.root, gradient, hessian)
        return centers, beta, a, b, unit, value, ridge
