r"""Many small networks at once: K-Means, penalty and variable projection with a leading batch axis.

.. math::

    F(a) = \min_b \lVert y - A(a)\, b \rVert^2 + n \big(\rho \lVert a \rVert^2 \lVert w \rVert^2
    + \rho_\lambda \lVert \lambda \rVert^2\big), \qquad
    A(a) = [G(a), s, 1], \quad b = (w, \lambda, w_0), \quad
    G_j = \varphi_j\,\big(a_0 - 2 \beta_j u\, a \cdot (x - \mu_j)\big)

where u is the unit of the first derivatives. Given a, everything else is a linear solve of
c + d + 1 unknowns; a itself is found by damped Newton steps with the exact Hessian of F:

.. math::

    F'' = J'J + n\rho \lVert w \rVert^2 I - K' (A'A + D)^{-1} K, \qquad
    K = A'J - R + 2 n \rho\, w a', \qquad R_{ji} = \sum_n r_n\, \partial G_{jn} / \partial a_i

All arrays have the series as their first axis and rows as their last, contiguous one; the same
code runs on NumPy arrays and on PyTorch tensors, on any device (`batch.backend`). Rows of
weight 0 do not count, so series of different length share a batch. Nothing depends on random
numbers or on the other series of the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from rbfdiffnet.batch.backend import NUMPY, Backend, standardize
from rbfdiffnet.batch.networks import BatchNetworks

__all__ = ["fit_batch", "train"]

_ROWS_AT_ONCE = 8_192  # trained together: what the caches of a processor hold
_LLOYD_STEPS = 6
_RIDGES = (1e-5, 1e-3, 1e-2, 1e-1, 1e4)  # on the RBF part; the last switches it off
_LINEAR_RIDGE = 1e-6, 1e-2  # on the linear part: always, and times (inputs / rows)^2
_UNPENALIZED = 1e-9
_SMALLEST_WIDTH = 1e-3  # of the spread of the inputs
_ENOUGH = 3e-3  # of the objective: a smaller gain ends the training
_MOST_DAMPING = 1e5
_FIRST_DAMPING = 5.0  # of the mean curvature: far from a minimum the Hessian is indefinite


def fit_batch(
    X: Any,
    y: Any,
    weight: Any,
    *,
    n_centers: int = 28,
    width_factor: float = 4.0,
    n_steps: int = 12,
    backend: Backend = NUMPY,
) -> BatchNetworks:
    """Train a network for every series of a batch.

    Parameters
    ----------
    X : array of shape (B, d, N)
        Inputs, rows last.
    y : array of shape (B, N)
        Targets.
    weight : array of shape (B, N)
        1, or 0 for rows that do not count; these come first, but for a few.
    n_centers : int, default=28
    width_factor : float, default=4.0
    n_steps : int, default=12
        The most Newton steps for a. One that lowers the objective by less than .3 % is the last.
    backend : Backend, default=NUMPY
        Operations on the kind of array given.

    Returns
    -------
    BatchNetworks

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.batch.train import fit_batch
    >>> from rbfdiffnet.datasets import logistic_map
    >>> from rbfdiffnet.series.windows import lag_windows
    >>> X, y = lag_windows(logistic_map(300), n_lags=2)
    >>> ones = np.ones((1, 298))
    >>> networks = fit_batch(X.T[None].copy(), y[None], ones, n_centers=10, n_steps=20)
    >>> error = networks.network(0).predict(X)[:, 0] - y
    >>> bool(np.abs(error).mean() < 0.01)
    True
    """
    xp = backend.xp

    def minimize(rows: Any, t: Any, n: Any) -> tuple[Any, ...]:
        centers, beta = _place(rows, n, n_centers, width_factor, backend)
        problem = _Problem(backend, rows, t, n, centers, beta)
        a = xp.ones_like(rows[:, :, 0]) * rows.shape[1] ** -0.5
        a, b, value, ridge = problem.minimize(a, n_steps)
        return centers, beta, a, b, problem.unit, value, ridge

    return in_units(X, y, weight, minimize, backend)


def in_units(
    X: Any, y: Any, weight: Any, minimize: Callable[..., tuple[Any, ...]], backend: Backend
) -> BatchNetworks:
    """Train networks on standardized rows.

    Parameters
    ----------
    X, y, weight, backend
        As for `fit_batch`.
    minimize : callable
        Maps inputs with the rows' weight, target and sum of weights to centers, beta, a, b, unit,
        objective and penalty.

    Returns
    -------
    BatchNetworks
    """
    n = weight.sum(axis=1)
    rows, x_shift, x_scale = backend.rows(X, weight, n)
    t, y_shift, y_scale = standardize(y, weight, n, backend.xp)
    centers, beta, a, b, unit, value, ridge = minimize(rows, t, n)
    c = centers.shape[1]
    return BatchNetworks(
        centers=centers,
        beta=beta,
        a=a,
        w=b[:, :c],
        linear=b[:, c:],
        x_shift=x_shift,
        x_scale=x_scale,
        y_shift=y_shift,
        y_scale=y_scale,
        unit=unit,
        largest=backend.highest(backend.xp.abs(y * weight)),
        value=value,
        ridge=ridge,
    )


def train(
    X: Any, y: Any, weight: Any, *, n_centers: int = 28, backend: Backend = NUMPY
) -> BatchNetworks:
    """Train networks as `fit_batch` does, compiled by numba where that is installed.

    Parameters
    ----------
    X, y, weight, n_centers, backend
        As for `fit_batch`.

    Returns
    -------
    BatchNetworks
    """
    if backend is not NUMPY:
        return fit_batch(X, y, weight, n_centers=n_centers, backend=backend)
    if find_spec("numba") is not None:
        from rbfdiffnet.batch.numba_fit import AVAILABLE, fit_batch_compiled

        if AVAILABLE:  # it may be there and not work, beside a NumPy too new for it
            return fit_batch_compiled(X, y, weight, n_centers=n_centers)
    size = max(1, _ROWS_AT_ONCE // X.shape[2])
    parts = [slice(i, i + size) for i in range(0, len(X), size)]
    return BatchNetworks.joined(
        [fit_batch(X[p], y[p], weight[p], n_centers=n_centers) for p in parts]
    )


def linear_ridge(n: Any, d: int) -> Any:
    """Penalty of the linear part: the fewer rows there are for an input, the more."""
    always, few = _LINEAR_RIDGE
    return always + few * (d / n) ** 2


def _place(rows: Any, n: Any, c: int, width_factor: float, backend: Backend) -> tuple[Any, Any]:
    """Centers by Lloyd's algorithm from evenly spaced rows; widths from the clusters, as beta."""
    xp = backend.xp
    back = (backend.arange(c, rows)[None] + 0.5) * n[:, None] / c
    centers = backend.rows_at(rows, rows.shape[2] - 1 - backend.integers(back))
    for _ in range(_LLOYD_STEPS):
        sums, _ = backend.assign(rows, centers)
        count = sums[:, :, -1:]
        centers = xp.where(count > 0, sums[:, :, :-1] / xp.clip(count, 1.0, None), centers)
    sums, distances = backend.assign(rows, centers)
    sigma = distances / xp.clip(sums[:, :, -1], 1.0, None)
    # A cluster of one row, or of copies, has no width of its own: it gets the mean of the others.
    spread = xp.sqrt((rows[:, :-1] ** 2).sum(axis=1).sum(axis=1) / n)[:, None]
    good = sigma > _SMALLEST_WIDTH * spread
    total = xp.where(good, sigma, xp.zeros_like(sigma)).sum(axis=1)[:, None]
    mean = total / xp.clip(good.sum(axis=1)[:, None], 1, None)
    substitute = xp.where(mean > 0, mean, xp.where(spread > 0, spread, xp.ones_like(spread)))
    sigma = width_factor * xp.where(good, sigma, substitute + 0.0 * sigma)
    return centers, 0.5 / sigma**2


class _Problem:
    """The training problem of a batch, in standardized units."""

    def __init__(
        self, backend: Backend, rows: Any, y: Any, n: Any, centers: Any, beta: Any
    ) -> None:
        self.backend, self.xp = backend, backend.xp
        self.rows, self.y, self.n, self.centers, self.beta = rows, y, n, centers, beta
        self.c, self.d = centers.shape[1], centers.shape[2]
        self.unit = self.xp.sqrt(0.5 / beta).mean(axis=1)
        self.slope = -2.0 * beta * self.unit[:, None]
        self.products = backend.products(rows, y, centers, beta, self.slope)
        self.fixed = self.products.fixed()
        self.total = (y**2).sum(axis=1)

    def gram(self, a: Any) -> tuple[Any, Any]:
        """A'A and A'y."""
        xp, c = self.xp, self.c
        cross = self.products.gram(a)
        bottom = xp.concatenate([cross[:, :, c:-1].swapaxes(1, 2), self.fixed[:, :, :-1]], axis=2)
        moment = xp.concatenate([cross[:, :, -1], self.fixed[:, :, -1]], axis=1)
        return xp.concatenate([cross[:, :, :-1], bottom], axis=1), moment

    def penalty(self, a: Any, ridge: Any) -> Any:
        """Diagonal of D, shape (B, p)."""
        xp = self.xp
        rbf = self.n * (ridge + _UNPENALIZED) * (a**2).sum(axis=1)
        linear = self.n * linear_ridge(self.n, self.d)
        parts = [rbf[:, None]] * self.c + [linear[:, None]] * self.d
        return xp.concatenate([*parts, self.n[:, None] * _UNPENALIZED], axis=1)

    def solve(self, a: Any, ridge: Any) -> tuple[Any, Any, Any]:
        """The root of the inverse of A'A + D, b, the objective."""
        return self.project(*self.gram(a), self.penalty(a, ridge))

    def project(self, gram: Any, moment: Any, penalty: Any) -> tuple[Any, Any, Any]:
        """The same, given A'A, A'y and the diagonal of D."""
        root = self.backend.root(gram + self.backend.diagonal(penalty))
        half = root @ moment[:, :, None]
        b = (root.swapaxes(1, 2) @ half)[..., 0]
        return root, b, self.total - (half**2).sum(axis=1)[:, 0]

    def choose_ridge(self, a: Any, gram: Any, moment: Any) -> Any:
        """Penalty with the lowest generalized cross-validation error at a."""
        xp = self.xp
        lowest, best = None, None
        for value in _RIDGES:
            ridge = value * xp.ones_like(self.n)
            penalty = self.penalty(a, ridge)
            root, b, objective = self.project(gram, moment, penalty)
            loss = objective - (penalty * b**2).sum(axis=1)
            shrunk = (penalty * (root**2).sum(axis=1)).sum(axis=1)
            freedom = moment.shape[1] - shrunk
            score = self.n * loss / xp.clip(self.n - freedom, 1.0, None) ** 2
            if lowest is None:
                lowest, best = score, ridge
            else:
                best = xp.where(score < lowest, ridge, best)
                lowest = xp.where(score < lowest, score, lowest)
        return best

    def newton(self, a: Any, ridge: Any, root: Any, b: Any) -> tuple[Any, Any]:
        """Gradient and Hessian of F / 2 at a, the one that was solved for last."""
        xp, w = self.xp, b[:, : self.c]
        K, along, JJ = self.products.curvature(a, b)
        rho = (self.n * (ridge + _UNPENALIZED))[:, None]
        K[:, : self.c] += 2.0 * (rho * w)[:, :, None] * a[:, None]
        size = rho[:, 0] * (w**2).sum(axis=1)
        half = root @ K
        hessian = JJ - half.swapaxes(1, 2) @ half
        lift = self.backend.diagonal(size[:, None] + xp.zeros_like(a))
        return size[:, None] * a - along, hessian + lift

    def minimize(self, a: Any, n_steps: int) -> tuple[Any, Any, Any, Any]:
        """Choose the penalty, then damped Newton steps on a.

        Every series has its own damping, keeps what is better, and leaves when it is done.
        """
        xp, backend = self.xp, self.backend
        gram, moment = self.gram(a)
        ridge = self.choose_ridge(a, gram, moment)
        root, b, value = self.project(gram, moment, self.penalty(a, ridge))
        result = (a, b, value, ridge)
        if n_steps == 0:
            return a, b, value, ridge
        damping = xp.ones_like(value) * _FIRST_DAMPING
        gradient, hessian = self.newton(a, ridge, root, b)
        problem, place, live = self, backend.arange(len(a), a), value == value
        for _ in range(n_steps):
            size = xp.abs(backend.diagonal_of(hessian)).mean(axis=1)
            lift = (damping * size + 1e-300)[:, None] + 0.0 * a
            trial = a - backend.solve(hessian + backend.diagonal(lift), gradient)
            trial = trial / xp.clip(xp.sqrt((trial**2).sum(axis=1)), 1e-12, None)[:, None]
            root, b_new, value_new = problem.solve(trial, ridge)
            better = live & (value_new < value)
            done = better & (value - value_new < _ENOUGH * value_new)
            a = xp.where(better[:, None], trial, a)
            b = xp.where(better[:, None], b_new, b)
            value = xp.where(better, value_new, value)
            damping = xp.where(better, 0.2 * damping, 20.0 * damping)
            live = live & ~done & (damping < _MOST_DAMPING)
            for all_of_it, part in zip(result, (a, b, value), strict=False):
                all_of_it[place] = part
            n_live = int(live.sum())
            if n_live == 0:
                break
            if backend.any(better):
                new = problem.newton(trial, ridge, root, b_new)
                gradient = xp.where(better[:, None], new[0], gradient)
                hessian = xp.where(better[:, None, None], new[1], hessian)
            if n_live <= len(live) // 2:
                stay = backend.positions(live)
                problem = problem.part(stay)
                state = (place, a, b, value, ridge, damping, gradient, hessian, live)
                place, a, b, value, ridge, damping, gradient, hessian, live = (
                    values[stay] for values in state
                )
        return result

    def part(self, which: Any) -> _Problem:
        """The problem of some of the series."""
        part = object.__new__(_Problem)
        part.backend, part.xp, part.c, part.d = self.backend, self.xp, self.c, self.d
        for name in ("n", "centers", "unit", "slope", "fixed", "total"):
            setattr(part, name, getattr(self, name)[which])
        part.products = self.products.part(which)
        return part
