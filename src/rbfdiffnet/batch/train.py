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

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from rbfdiffnet.batch.backend import NUMPY, Backend, backend_for, standardize
from rbfdiffnet.network.network import Network
from rbfdiffnet.support.stability import LEAP

_LLOYD_STEPS = 6
_RIDGES = (1e-5, 1e-3, 1e-2, 1e-1, 1e4)  # on the RBF part; the last switches it off
_LINEAR_RIDGE = 1e-6, 1e-2  # on the linear part: always, and times (inputs / rows)^2
_UNPENALIZED = 1e-9
_SMALLEST_WIDTH = 1e-3  # of the spread of the inputs
_ENOUGH = 3e-3  # of the objective: a smaller gain ends the training
_MOST_DAMPING = 1e5
_FIRST_DAMPING = 5.0  # of the mean curvature: far from a minimum the Hessian is indefinite

_BY_OUTPUT = ("w", "linear", "y_shift", "y_scale")  # a network has an axis for its outputs there
_OF_A_NETWORK = ("centers", "beta", "a", "x_shift", "x_scale", *_BY_OUTPUT)


@dataclass(frozen=True)
class BatchNetworks:
    """Trained networks of order 1, with order zero and intercept; a leading axis for the series.

    `centers` has shape (B, c, d), `beta` and w (B, c), a and `linear` (B, d + 1), `x_shift` and
    `x_scale` (B, d), and the rest (B,): shift and scale of the target, unit of the first
    derivatives, largest target, objective, and the penalty chosen for the RBF part.
    """

    centers: Any
    beta: Any
    a: Any
    w: Any
    linear: Any
    x_shift: Any
    x_scale: Any
    y_shift: Any
    y_scale: Any
    unit: Any
    largest: Any
    value: Any
    ridge: Any

    def network(self, i: int) -> Network:
        """Return one of the networks (NumPy arrays only)."""
        arrays = {name: getattr(self, name)[i] for name in _OF_A_NETWORK}
        arrays |= {name: arrays[name][..., None] for name in _BY_OUTPUT}
        d = self.x_shift.shape[1]
        unit = float(self.unit[i])
        return Network(**arrays, unit=unit, metric=np.ones(d), n_lags=d, order=1)

    @classmethod
    def stack(cls, networks: Sequence[Network], largest: Sequence[float]) -> BatchNetworks:
        """Return networks of the same shape, made by `network`, as a batch."""
        arrays = {
            name: np.array([getattr(n, name) for n in networks])
            for name in (*_OF_A_NETWORK, "unit")
        }
        arrays |= {name: arrays[name][..., 0] for name in _BY_OUTPUT}
        unknown = np.full(len(networks), np.nan)
        return cls(**arrays, largest=np.array(largest), value=unknown, ridge=unknown.copy())

    @classmethod
    def concatenate(cls, chunks: Sequence[BatchNetworks]) -> BatchNetworks:
        """Return several batches as one (NumPy arrays only)."""
        if len(chunks) == 1:
            return chunks[0]
        names = [f.name for f in fields(cls)]
        return cls(**{n: np.concatenate([getattr(c, n) for c in chunks]) for n in names})

    def select(self, numbers: Sequence[int]) -> BatchNetworks:
        """Return some of the networks (NumPy arrays only)."""
        which = np.asarray(numbers, dtype=np.int64)
        return BatchNetworks(**{f.name: getattr(self, f.name)[which] for f in fields(self)})

    def to_numpy(self) -> BatchNetworks:
        """Return the same in NumPy arrays."""
        arrays = {f.name: getattr(self, f.name) for f in fields(self)}
        on_device = {n: v.cpu().numpy() for n, v in arrays.items() if not isinstance(v, np.ndarray)}
        return BatchNetworks(**{**arrays, **on_device})


def train(
    X: Any, y: Any, weight: Any, *, n_centers: int = 28, backend: Backend | None = None
) -> BatchNetworks:
    """Train networks as `fit_batch` does, as many at a time as suit the backend."""
    backend = backend or backend_for("cpu")
    if backend.rows_trained_together is None:
        return fit_batch(X, y, weight, n_centers=n_centers, backend=backend)
    size = max(1, backend.rows_trained_together // X.shape[2])
    chunks = [slice(i, i + size) for i in range(0, len(X), size)]
    return BatchNetworks.concatenate(
        [fit_batch(X[c], y[c], weight[c], n_centers=n_centers, backend=backend) for c in chunks]
    )


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

    `X` has shape (B, d, N); y and `weight` have shape (B, N). The weight is 1, or 0 for rows that
    do not count; these come first, but for a few. There are at most `n_steps` Newton steps for a;
    one that lowers the objective by less than .3 % is the last.
    """
    xp = backend.xp
    n = weight.sum(axis=1)
    rows, x_shift, x_scale = backend.rows(X, weight, n)
    target, y_shift, y_scale = standardize(y, weight, n, xp)
    centers, beta = place_centers(rows, n, n_centers, width_factor, backend)
    problem = Problem(backend, rows, target, n, centers, beta)
    a = xp.ones_like(rows[:, :, 0]) * rows.shape[1] ** -0.5
    a, b, value, ridge = problem.minimize(a, n_steps)
    return BatchNetworks(
        centers=centers,
        beta=beta,
        a=a,
        w=b[:, :n_centers],
        linear=b[:, n_centers:],
        x_shift=x_shift,
        x_scale=x_scale,
        y_shift=y_shift,
        y_scale=y_scale,
        unit=problem.unit,
        largest=backend.highest(xp.abs(y * weight)),
        value=value,
        ridge=ridge,
    )


def forecast_batch(networks: BatchNetworks, window: Any, h: int, xp: Any = np) -> Any:
    """Continue windows recursively, as `models.networks.window_model.WindowModel.forecast` does.

    `window` has shape (B, d), latest values last, or (B, k, d) for k windows of each network; the
    forecasts have shape (B, h) or (B, k, h).
    """
    if window.ndim == 2:
        return forecast_batch(networks, window[:, None], h, xp)[:, 0]
    d = networks.centers.shape[2]
    centers = networks.centers.swapaxes(1, 2)
    a0, a1 = networks.a[:, :1, None], networks.a[:, 1:, None]
    slope = (-2.0 * networks.beta * networks.unit[:, None])[:, None]
    at = a1.swapaxes(1, 2) @ centers
    square = (centers**2).sum(axis=1)[:, None]
    beta, weights = networks.beta[:, None], networks.w[:, :, None]
    lam, constant = networks.linear[:, :d, None], networks.linear[:, d:, None]
    x_shift, x_scale = networks.x_shift[:, None], networks.x_scale[:, None]
    y_shift, y_scale = networks.y_shift[:, None], networks.y_scale[:, None]
    limit = (LEAP * networks.largest)[:, None]
    steps = []
    for _ in range(h):
        z = (window - x_shift) / x_scale
        distance = (z**2).sum(axis=2)[:, :, None] + square - 2.0 * (z @ centers)
        phi = xp.exp(-beta * xp.clip(distance, 0.0, None))
        g = phi * (a0 + slope * (z @ a1 - at))
        value = (g @ weights + z @ lam + constant)[:, :, 0] * y_scale + y_shift
        value = xp.minimum(xp.maximum(value, -limit), limit)
        steps.append(value)
        window = xp.concatenate([window[:, :, 1:], value[:, :, None]], axis=2)
    return xp.stack(steps, axis=2)


def place_centers(
    rows: Any, n: Any, c: int, width_factor: float, backend: Backend
) -> tuple[Any, Any]:
    """Centers by Lloyd's algorithm from evenly spaced rows; widths from the clusters, as beta."""
    xp = backend.xp
    back = (backend.arange(c, rows)[None] + 0.5) * n[:, None] / c
    series = backend.arange(len(rows), rows)[:, None]
    centers = rows[series, :-1, rows.shape[2] - 1 - backend.integers(back)]
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


class Problem:
    """The training problem of a batch, in standardized units."""

    def __init__(
        self, backend: Backend, rows: Any, y: Any, n: Any, centers: Any, beta: Any
    ) -> None:
        xp = self.xp = backend.xp
        self.backend, self.n, self.c = backend, n, centers.shape[1]
        self.unit = xp.sqrt(0.5 / beta).mean(axis=1)
        slope = -2.0 * beta * self.unit[:, None]
        self.products = backend.products(rows, y, centers, beta, slope)
        target = backend.contract(rows, y[:, None])
        self.fixed = xp.concatenate([backend.contract(rows, rows), target], axis=2)
        self.total = (y**2).sum(axis=1)
        d, (always, few) = centers.shape[2], _LINEAR_RIDGE
        column = backend.arange(self.c + d + 1, n)
        self.is_rbf = column < self.c
        linear = n * (always + few * (d / n) ** 2)  # more, the fewer rows there are for an input
        unpenalized = n[:, None] * _UNPENALIZED
        self.linear_penalty = xp.where(column < self.c + d, linear[:, None], unpenalized)

    def gram(self, a: Any) -> tuple[Any, Any]:
        """A'A and A'y."""
        xp, c = self.xp, self.c
        cross = self.products.gram(a)
        bottom = xp.concatenate([cross[:, :, c:-1].swapaxes(1, 2), self.fixed[:, :, :-1]], axis=2)
        moment = xp.concatenate([cross[:, :, -1], self.fixed[:, :, -1]], axis=1)
        return xp.concatenate([cross[:, :, :-1], bottom], axis=1), moment

    def penalty(self, a: Any, ridge: Any) -> Any:
        """Diagonal of D, shape (B, c + d + 1)."""
        rbf = self.n * (ridge + _UNPENALIZED) * (a**2).sum(axis=1)
        return self.xp.where(self.is_rbf, rbf[:, None], self.linear_penalty)

    def solve_linear_part(self, a: Any, ridge: Any) -> tuple[Any, Any, Any]:
        """The root of the inverse of A'A + D, b, the objective."""
        return self.project(*self.gram(a), self.penalty(a, ridge))

    def project(self, gram: Any, moment: Any, penalty: Any) -> tuple[Any, Any, Any]:
        """The same, given A'A, A'y and the diagonal of D."""
        root = self.backend.root(gram, penalty)
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
            return result
        damping = xp.ones_like(value) * _FIRST_DAMPING
        gradient, hessian = self.newton(a, ridge, root, b)
        problem, positions, live = self, backend.arange(len(a), a), value == value
        for step in range(n_steps):
            trial = self.step(a, gradient, hessian, damping)
            root, b_new, value_new = problem.solve_linear_part(trial, ridge)
            better = live & (value_new < value)
            done = better & (value - value_new < _ENOUGH * value_new)
            a = xp.where(better[:, None], trial, a)
            b = xp.where(better[:, None], b_new, b)
            value = xp.where(better, value_new, value)
            damping = xp.where(better, 0.2 * damping, 20.0 * damping)
            live = live & ~done & (damping < _MOST_DAMPING)
            for all_of_it, part in zip(result, (a, b, value), strict=False):
                all_of_it[positions] = part
            n_live = int(live.sum())
            if n_live == 0 or step == n_steps - 1:
                break
            stay = backend.worth_selecting(live, n_live)
            if stay is not None:
                problem = problem.part(stay)
                state = (positions, a, b, value, ridge, damping, gradient, hessian, live)
                trials = (better, trial, root, b_new)
                positions, a, b, value, ridge, damping, gradient, hessian, live = (
                    values[stay] for values in state
                )
                better, trial, root, b_new = (values[stay] for values in trials)
            at = (trial, ridge, root, b_new)
            gradient, hessian = problem.renew(gradient, hessian, better, at)
        return result

    def step(self, a: Any, gradient: Any, hessian: Any, damping: Any) -> Any:
        """Where a damped Newton step from a leads, at length 1."""
        xp, backend = self.xp, self.backend
        size = xp.abs(backend.diagonal_of(hessian)).mean(axis=1)
        lift = (damping * size + 1e-300)[:, None] + 0.0 * a
        trial = a - backend.solve(hessian + backend.diagonal(lift), gradient)
        return trial / xp.clip(xp.sqrt((trial**2).sum(axis=1)), 1e-12, None)[:, None]

    def renew(
        self, gradient: Any, hessian: Any, which: Any, at: tuple[Any, ...]
    ) -> tuple[Any, Any]:
        """Gradients and Hessians, made anew for the series of a mask; `at` is as for `newton`."""
        xp, n = self.xp, self.backend.count(which)
        some = self.backend.worth_selecting(which, n)
        if some is not None and n:
            part = (values[some] for values in at)
            gradient[some], hessian[some] = self.part(some).newton(*part)
        elif n:
            new = self.newton(*at)
            gradient = xp.where(which[:, None], new[0], gradient)
            hessian = xp.where(which[:, None, None], new[1], hessian)
        return gradient, hessian

    def part(self, which: Any) -> Problem:
        """The problem of some of the series."""
        part = object.__new__(Problem)
        vars(part).update(vars(self))
        for name in ("n", "unit", "fixed", "total", "linear_penalty"):
            setattr(part, name, getattr(self, name)[which])
        part.products = self.products.part(which)
        return part
