r"""Sufficient statistics: all that training on a fixed basis needs to know about the rows.

.. math::

    S = \sum_n v_n\, z_n z_n', \qquad z_n = (\theta_{11n}, \ldots, \theta_{Kcn},\ s_n,\ 1,\ y_n)

with :math:`\theta` the K terms of the c basis functions (see `network.basis`), s the linear
inputs, y the targets and v the weights of the rows. Statistics add up, over the partitions of a
cluster as over time, and subtract: all rows but those of a fold are ``everything - fold``. Fits and
their errors on any such rows take milliseconds, however many rows there are. One row costs about
:math:`(cK)^2` operations, as much as some ten Newton steps, so statistics pay where the same rows
are fitted more than once: with many penalties or folds, or with many targets.

Training is variable projection on inner products alone. With the Gram matrix
:math:`T_{pj,qk} = \sum_n v_n \theta_{pjn} \theta_{qkn}`, everything that
`network.projection` computes from rows follows from two contractions,

.. math::

    A V \theta' = \sum_p a_p T_{pj,qk}, \qquad
    J V J' = \sum_{jk} \Big(\sum_o w_{jo} w_{ko}\Big) T_{pj,qk},

which are matrix products with one column for each problem. The steps are those of
`network.trainers.minimize_varpro`, and all problems take them together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dsyrk

from rbfdiffnet.network.basis import GaussianBasis, mean_width
from rbfdiffnet.network.network import apply_metric
from rbfdiffnet.network.objective import TRACE, Solution, Weights
from rbfdiffnet.network.projection import (
    LARGEST_STEP,
    MOST_RETRIES,
    TrustRegion,
    factorize,
    solve,
)
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.progress import report_progress

#: Beyond, a single row costs more than a million operations, and training on rows is quicker.
MOST_COLUMNS = 1000

_BLOCK = 512  # rows at a time: their columns stay in the cache
_BASIS = ("centers", "beta", "metric", "unit", "order", "order_zero", "n_linear")


@dataclass(frozen=True)
class SufficientStatistics:
    r"""Weighted inner products of all columns of a training problem.

    `centers` (c, d_active) are standardized inputs times the metric, for the inputs whose metric is
    not 0; `beta` (c,) are :math:`1 / (2 \sigma_j^2)`; `metric` (d,) multiplies the inputs in the
    basis functions; the last `n_linear` inputs have a linear part. `gram` (k, k) is S: the terms of
    the basis functions (functions within terms), the linear inputs, the constant 1, the targets.
    """

    centers: Array
    beta: Array
    metric: Array
    unit: float
    order: int
    order_zero: bool
    n_linear: int
    gram: Array

    @classmethod
    def empty(
        cls,
        centers: Array,
        beta: Array,
        *,
        order: int = 1,
        order_zero: bool = True,
        unit: float | None = None,
        metric: Array | None = None,
        n_linear: int | None = None,
        n_targets: int = 1,
    ) -> SufficientStatistics:
        """Return the statistics of no rows.

        By default all inputs count alike in the basis functions, all have a linear part, and the
        unit of length of the derivatives is the mean width.
        """
        metric = np.ones(centers.shape[1]) if metric is None else metric
        n_linear = len(metric) if n_linear is None else n_linear
        if np.count_nonzero(metric) != centers.shape[1]:
            raise ValueError(
                f"centers have {centers.shape[1]} coordinates, but the metric has "
                f"{np.count_nonzero(metric)} inputs that count; they must be the same"
            )
        n_terms = int(order_zero) + order * centers.shape[1]
        n_columns = n_terms * len(centers) + n_linear + 1
        if n_columns > MOST_COLUMNS:
            raise ValueError(
                f"{len(centers)} basis functions with {n_terms} terms each and {n_linear} linear "
                f"inputs are {n_columns} columns, more than {MOST_COLUMNS}; use fewer centers, "
                "inputs or orders, or train on the rows"
            )
        gram = np.zeros((n_columns + n_targets, n_columns + n_targets))
        unit = mean_width(beta) if unit is None else unit
        return cls(centers, beta, metric, unit, order, order_zero, n_linear, gram)

    @property
    def n_terms(self) -> int:
        """Number of terms of a basis function, the length of a."""
        return int(self.order_zero) + self.order * int(self.centers.shape[1])

    @property
    def n_targets(self) -> int:
        """Number of targets."""
        return len(self.gram) - self.n_terms * len(self.centers) - self.n_linear - 1

    @property
    def total(self) -> float:
        """Total weight of the rows."""
        constant = len(self.gram) - self.n_targets - 1
        return float(self.gram[constant, constant])

    def add(self, X: Array, Y: Array, weight: Array | None = None) -> SufficientStatistics:
        """Return the statistics with more rows: standardized X (n, d), Y (n, m) or (n,).

        The weights (n,) must not be negative; they are 1 by default.
        """
        Y = Y[:, None] if Y.ndim == 1 else Y
        expected = (len(X), len(self.metric)), (len(X), self.n_targets), (len(X),)
        given = X.shape, Y.shape, (len(X),) if weight is None else weight.shape
        if given != expected:
            raise ValueError(
                f"X, Y and weight have the shapes {', '.join(map(str, given))}; "
                f"expected {', '.join(map(str, expected))}"
            )
        if weight is not None and np.any(weight < 0):
            raise ValueError("weights must not be negative; subtract the rows to take them out")
        gram = np.zeros_like(self.gram, order="F")
        for start in range(0, len(X), _BLOCK):
            report_progress(start / len(X))
            part = slice(start, start + _BLOCK)
            columns = self._columns(X[part], Y[part])
            if weight is not None:
                columns *= np.sqrt(weight[part])
            gram = dsyrk(1.0, columns.T, beta=1.0, c=gram, trans=1, lower=1, overwrite_c=1)
        if not np.all(np.isfinite(gram)):
            raise ValueError("X, Y and weight must be finite; leave out rows with missing values")
        lower = np.tril(gram, -1)
        return replace(self, gram=self.gram + lower + lower.T + np.diag(np.diag(gram)))

    def __add__(self, other: SufficientStatistics) -> SufficientStatistics:
        self._check_same(other)
        return replace(self, gram=self.gram + other.gram)

    def __sub__(self, other: SufficientStatistics) -> SufficientStatistics:
        self._check_same(other)
        if other.total > self.total * (1.0 + 1e-9):
            raise ValueError(
                f"rows of weight {other.total:g} cannot be taken out of rows of weight "
                f"{self.total:g}"
            )
        return replace(self, gram=self.gram - other.gram)

    def solve(
        self, penalties: npt.ArrayLike, *, max_iter: int = 100, tol: float = 1e-6
    ) -> list[Solution]:
        r"""Train a network for every pair of penalties :math:`(\rho, \rho_\lambda)`.

        .. math::

            \min_{a, w, \lambda} \frac{1}{2 \sum_n v_n} \sum_{no} v_n \big(y_{no} - f_o(x_n)\big)^2
            + \tfrac12 \rho |a|^2 |w|^2 + \tfrac12 \rho_\lambda |\lambda|^2, \qquad |a| = 1

        The constant is never penalized. All targets share a, whose terms start alike.
        """
        pairs = np.asarray(penalties, dtype=np.float64)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.all(pairs >= 0):
            raise ValueError(
                "penalties must be pairs of numbers that are not negative (RBF part, linear "
                f"part), got {penalties!r}"
            )
        if not self.total > 0.0:
            raise ValueError("there are no rows to train on: add some first")
        starts = np.ones((len(pairs), self.n_terms))
        return minimize_all(self._inner_products(), pairs, starts, max_iter=max_iter, tol=tol)

    def squared_errors(self, weights: Weights) -> Array:
        r"""Return :math:`\sum_n v_n (y_{no} - f_o(x_n))^2`, shape (m,), for any weights."""
        terms = weights.a[:, None, None] * weights.w
        n_targets = self.n_targets
        columns = [-terms.reshape(-1, n_targets), -weights.linear, np.eye(n_targets)]
        signed = np.concatenate(columns)
        squares = np.einsum("io,io->o", signed, self.gram @ signed)
        return np.asarray(np.maximum(squares, 0.0))

    def to_arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return everything as arrays by name, to be saved or sent; see `from_arrays`."""
        return {name: np.asarray(getattr(self, name)) for name in (*_BASIS, "gram")}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[np.generic]]) -> SufficientStatistics:
        """Return statistics from what `to_arrays` gave."""
        plain = {n: v.item() if v.ndim == 0 else v for n, v in arrays.items()}
        return cls(**plain)  # type: ignore[arg-type]

    def _columns(self, X: Array, Y: Array) -> Array:
        """Return the columns z of rows, shape (k, n)."""
        basis = GaussianBasis.evaluate(
            apply_metric(X, self.metric),
            self.centers,
            self.beta,
            order=self.order,
            order_zero=self.order_zero,
            unit=self.unit,
        )
        n_theta = self.n_terms * len(self.beta)
        columns = np.empty((len(self.gram), len(X)))
        theta = columns[:n_theta].reshape(self.n_terms, len(self.beta), len(X))
        for a, room in zip(np.eye(self.n_terms), theta, strict=True):
            basis.contract(a, out=room)
        columns[n_theta : n_theta + self.n_linear] = X[:, X.shape[1] - self.n_linear :].T
        columns[n_theta + self.n_linear] = 1.0
        columns[n_theta + self.n_linear + 1 :] = Y.T
        return columns

    def _inner_products(self) -> InnerProducts:
        n_centers, n_terms = len(self.beta), self.n_terms
        n_theta, y = n_terms * n_centers, len(self.gram) - self.n_targets
        shape = (n_terms, n_centers)
        return InnerProducts(
            np.ascontiguousarray(self.gram[:n_theta, :n_theta]).reshape(*shape, *shape),
            self.gram[:n_theta, n_theta:y].reshape(*shape, -1),
            self.gram[:n_theta, y:].reshape(*shape, -1),
            self.gram[n_theta:y, n_theta:y],
            self.gram[n_theta:y, y:],
            float(np.trace(self.gram[y:, y:])),
            self.total,
        )

    def _check_same(self, other: SufficientStatistics) -> None:
        different = [
            name
            for name in (*_BASIS, "n_targets")
            if not np.array_equal(getattr(self, name), getattr(other, name))
        ]
        if different:
            raise ValueError(
                f"statistics of different bases cannot be combined: {', '.join(different)} "
                "must be the same"
            )


@dataclass(frozen=True)
class InnerProducts:
    """Weighted inner products of the columns of a training problem (K terms, c functions)."""

    theta: Array  # (K, c, K, c)
    cross: Array  # (K, c, q), with the linear inputs; the constant 1 is the last of them
    moment: Array  # (K, c, m), with the targets
    linear: Array  # (q, q)
    linear_moment: Array  # (q, m)
    square: float  # of all targets together
    total: float  # weight of the rows

    @cached_property
    def by_pairs(self) -> Array:
        """`theta` with the functions first, shape (c * c, K * K)."""
        n_terms, n_centers = self.theta.shape[:2]
        return self.theta.transpose(1, 3, 0, 2).reshape(n_centers**2, n_terms**2)


@dataclass(frozen=True)
class Points:
    """Points of the search, one for each of B problems."""

    a: Array  # (B, K)
    u: Array  # (B, c + q, m): the linear weights that are best for a, w first
    half: Array  # (B, c, K, c): theta contracted with a
    factors: Array  # (B, c + q, c + q): Cholesky factors
    value: Array  # (B,): the objective, times the total weight

    def pick(self, which: npt.NDArray[np.intp]) -> Points:
        """Return some of the points."""
        return Points(*(getattr(self, f.name)[which] for f in fields(self)))

    def put(self, where: npt.NDArray[np.intp], other: Points) -> None:
        """Overwrite some of the points by others."""
        for f in fields(self):
            getattr(self, f.name)[where] = getattr(other, f.name)


def project_all(products: InnerProducts, ridge: Array, a: Array) -> Points:
    """Eliminate the linear weights at every a (B, K) of length 1, with penalties `ridge` (B, 2)."""
    n_terms, n_centers = products.theta.shape[:2]
    n_columns = n_centers + len(products.linear)
    half = a @ products.theta.reshape(n_terms, -1)
    half = half.reshape(len(a), n_centers, n_terms, n_centers)
    gram = np.empty((len(a), n_columns, n_columns))
    gram[:, :n_centers, :n_centers] = np.einsum("bjqk,bq->bjk", half, a)
    gram[:, n_centers:, :n_centers] = np.einsum("bp,pji->bij", a, products.cross)
    gram[:, n_centers:, n_centers:] = products.linear
    right = np.empty((len(a), n_columns, products.moment.shape[2]))
    right[:, :n_centers] = np.tensordot(a, products.moment, axes=1)
    right[:, n_centers:] = products.linear_moment
    penalty = _penalty(products, ridge)
    factors = np.stack([factorize(g, p) for g, p in zip(gram, penalty, strict=True)])
    u = np.stack([solve(factor, y) for factor, y in zip(factors, right, strict=True)])
    # At the minimum the quadratic form is the square less the product of both sides.
    value = 0.5 * (products.square - np.einsum("bio,bio->b", right, u))
    return Points(a, u, half, factors, value)


def newton_systems(products: InnerProducts, ridge: Array, points: Points) -> tuple[Array, Array]:
    """Return gradients (B, K) and exact Hessians (B, K, K) of the projected objective."""
    n_terms, n_centers = products.theta.shape[:2]
    a, half = points.a, points.half
    w, linear = points.u[:, :n_centers], points.u[:, n_centers:]
    penalty = _penalty(products, ridge)[:, :1]
    pull = penalty[:, :, None] * w
    size = np.einsum("bjo,bjo->b", pull, w)
    # Products of the residuals with theta, (B, K, c, m).
    fitted = np.matmul(half.transpose(0, 2, 3, 1), w[:, None])
    residual = products.moment - fitted
    residual -= np.einsum("pji,bio->bpjo", products.cross, linear)
    gradient = np.einsum("bjo,bpjo->bp", -w, residual) + size[:, None] * a
    pairs = np.matmul(w, w.transpose(0, 2, 1)).reshape(len(a), -1)
    hessian = (pairs @ products.by_pairs).reshape(len(a), n_terms, n_terms)
    hessian += size[:, None, None] * np.eye(n_terms)
    jacobian = np.einsum("bjqk,bko->bjqo", half, w)
    jacobian -= residual.transpose(0, 2, 1, 3)
    jacobian += 2.0 * pull[:, :, None] * a[:, None, :, None]
    below = np.einsum("pji,bjo->bipo", products.cross, w)
    both = np.concatenate([jacobian, below], axis=1)
    for b, factor in enumerate(points.factors):
        flat = both[b].reshape(len(factor), -1)
        answer = solve(factor, flat).reshape(both[b].shape)
        hessian[b] -= np.einsum("ipo,iqo->pq", both[b], answer, optimize=True)
    return gradient, 0.5 * (hessian + hessian.transpose(0, 2, 1))


def minimize_all(
    products: InnerProducts, ridge: Array, starts: Array, *, max_iter: int, tol: float
) -> list[Solution]:
    """Minimize the objective of every problem: penalties `ridge` (B, 2), starts (B, K)."""
    n_problems, n_centers = len(starts), products.theta.shape[1]
    points = project_all(products, ridge, starts / np.linalg.norm(starts, axis=1)[:, None])
    floor = 1e-12 * products.square + 1e-300
    radius = np.full(n_problems, LARGEST_STEP)
    n_iter = np.zeros(n_problems, dtype=int)
    converged = np.zeros(n_problems, dtype=bool)
    active = np.arange(n_problems)
    while active.size:
        n_iter[active] += 1
        here = points.pick(active)
        gradient, hessian = newton_systems(products, ridge[active], here)
        small = np.linalg.norm(gradient, axis=1) <= tol * here.value + floor
        converged[active[small]] = True
        going = np.flatnonzero(~small)
        active, here = active[going], here.pick(going)
        models = zip(here.a, gradient[going], hessian[going], radius[active], strict=True)
        regions = [TrustRegion.around(*model) for model in models]
        _step_all(products, ridge, points, active, regions)
        radius[active] = [region.radius for region in regions]
        gain = here.value - points.value[active]
        converged[active] = gain <= 1e-14 * here.value + 1e-3 * floor
        active = active[~converged[active] & (n_iter[active] < max_iter)]
    return [
        Solution(
            Weights(points.a[b], points.u[b, :n_centers], points.u[b, n_centers:]),
            float(points.value[b]) / products.total,
            int(n_iter[b]),
            bool(converged[b]),
        )
        for b in range(n_problems)
    ]


def _step_all(
    products: InnerProducts,
    ridge: Array,
    points: Points,
    active: npt.NDArray[np.intp],
    regions: list[TrustRegion],
) -> None:
    """Move the active points, each within its region, unless every candidate is worse."""
    values, waiting = points.value[active], np.arange(len(active))
    for _ in range(MOST_RETRIES):
        if not waiting.size:
            break
        candidates = np.array([regions[i].candidate() for i in waiting])
        trial = project_all(products, ridge[active[waiting]], candidates)
        gains = values[waiting] - trial.value
        accepted = [regions[i].accepts(g) for i, g in zip(waiting, gains, strict=True)]
        better = np.flatnonzero(accepted)
        points.put(active[waiting[better]], trial.pick(better))
        waiting = np.delete(waiting, better)


def _penalty(products: InnerProducts, ridge: Array) -> Array:
    """Return the diagonals that are added to the inner products, shape (B, c + q)."""
    n_centers, n_linear = products.theta.shape[1], len(products.linear)
    strength = np.repeat(ridge, [n_centers, n_linear], axis=1)
    strength[:, -1] = 0.0  # the constant
    return products.total * (strength + TRACE)
