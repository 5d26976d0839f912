r"""Variable projection on inner products alone: many penalties and starts at once.

With the Gram matrix :math:`T_{pj,qk} = \sum_n v_n \theta_{pjn} \theta_{qkn}` of all terms of all
basis functions, and their products with the linear inputs s and the targets, everything that
`rbfdiffnet.network.trainers.varpro` computes from rows follows from two contractions,

.. math::

    A V \theta' = \sum_p a_p T_{pj,qk}, \qquad
    J V J' = \sum_{jk} \Big(\sum_o w_{jo} w_{ko}\Big) T_{pj,qk},

which are matrix products with one column for each problem. The steps are those of
`network.trainers.varpro.minimize`, so the path is the same; all problems take them together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rbfdiffnet.network.basis import Array
from rbfdiffnet.network.objective import TRACE, Solution, Weights
from rbfdiffnet.network.trainers.varpro import factorize, solve

_LARGEST_STEP = 1.0  # in units of the length of a
_SMALLEST_RADIUS = 1e-8
_MOST_RETRIES = 25  # of one step


@dataclass(frozen=True)
class InnerProducts:
    """Weighted inner products of the columns of a training problem (K terms, c functions).

    Attributes
    ----------
    theta : ndarray of shape (K, c, K, c)
    cross : ndarray of shape (K, c, q)
        With the linear inputs, the constant 1 as the last of them.
    moment : ndarray of shape (K, c, m)
        With the targets.
    linear : ndarray of shape (q, q)
    linear_moment : ndarray of shape (q, m)
    square : float
        Of the targets, all together.
    total : float
        Total weight.
    """

    theta: Array
    cross: Array
    moment: Array
    linear: Array
    linear_moment: Array
    square: float
    total: float

    @cached_property
    def by_pairs(self) -> Array:
        """``theta`` with the functions first, shape (c * c, K * K)."""
        n_terms, n_centers = self.theta.shape[:2]
        return self.theta.transpose(1, 3, 0, 2).reshape(n_centers**2, n_terms**2)


@dataclass(frozen=True)
class Points:
    """Points of the search, one for each problem (the first axis).

    Attributes
    ----------
    a : ndarray of shape (B, K)
    u : ndarray of shape (B, c + q, m)
        The linear weights that are best for a: w, then those of the linear inputs.
    half : ndarray of shape (B, c, K, c)
        ``theta`` contracted with a.
    factors : list of ndarray of shape (c + q, c + q)
        Cholesky factors.
    value : ndarray of shape (B,)
        Objective, times the total weight.
    """

    a: Array
    u: Array
    half: Array
    factors: list[Array]
    value: Array

    def pick(self, which: npt.NDArray[np.intp]) -> Points:
        """Return some of the points."""
        factors = [self.factors[i] for i in which]
        return Points(self.a[which], self.u[which], self.half[which], factors, self.value[which])

    def put(self, where: npt.NDArray[np.intp], other: Points) -> None:
        """Overwrite some of the points by others."""
        for name in ("a", "u", "half", "value"):
            getattr(self, name)[where] = getattr(other, name)
        for i, factor in zip(where, other.factors, strict=True):
            self.factors[i] = factor


def project(products: InnerProducts, ridge: Array, a: Array) -> Points:
    """Eliminate the linear weights at every a, which has length 1.

    Parameters
    ----------
    products : InnerProducts
    ridge : ndarray of shape (B, 2)
        Penalties on the RBF part and on the linear part.
    a : ndarray of shape (B, K)

    Returns
    -------
    Points
    """
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
    factors = [factorize(g, p) for g, p in zip(gram, penalty, strict=True)]
    u = np.empty_like(right)
    for b, factor in enumerate(factors):
        u[b] = solve(factor, right[b])
    # At the minimum the quadratic form is the square less the product of both sides.
    value = 0.5 * (products.square - np.einsum("bio,bio->b", right, u))
    return Points(a, u, half, factors, value)


def newton_systems(products: InnerProducts, ridge: Array, points: Points) -> tuple[Array, Array]:
    """Gradients and exact Hessians of the projected objective, shape (B, K) and (B, K, K)."""
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


def minimize(
    products: InnerProducts, ridge: Array, starts: Array, *, max_iter: int, tol: float
) -> list[Solution]:
    """Minimize the objective of every problem from its start.

    Parameters
    ----------
    products : InnerProducts
    ridge : ndarray of shape (B, 2)
    starts : ndarray of shape (B, K)
    max_iter, tol
        As for `rbfdiffnet.network.trainers.varpro.minimize`.

    Returns
    -------
    list of Solution
    """
    n_problems, n_centers = len(starts), products.theta.shape[1]
    points = project(products, ridge, starts / np.linalg.norm(starts, axis=1)[:, None])
    floor = 1e-12 * products.square + 1e-300
    radius = np.full(n_problems, _LARGEST_STEP)
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
        model = _Model.of(here.a, gradient[going], hessian[going])
        there, radius[active] = _trusted_steps(products, ridge[active], here, model, radius[active])
        points.put(active, there)
        gain = here.value - there.value
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


@dataclass(frozen=True)
class _Model:
    """Quadratic models of the objectives, in the axes of their curvature."""

    bends: Array  # (B, K)
    axes: Array  # (B, K, K)
    along: Array  # (B, K): the gradients

    @classmethod
    def of(cls, a: Array, gradient: Array, hessian: Array) -> _Model:
        # A step along a changes nothing: make it costly.
        cost = np.abs(np.trace(hessian, axis1=1, axis2=2)) / a.shape[1]
        bends, axes = np.linalg.eigh(hessian + cost[:, None, None] * a[:, :, None] * a[:, None])
        return cls(bends, axes, np.einsum("bpi,bp->bi", axes, gradient))

    def pick(self, which: npt.NDArray[np.intp]) -> _Model:
        return _Model(self.bends[which], self.axes[which], self.along[which])

    def step(self, radius: Array) -> tuple[Array, Array, Array]:
        """Return the best steps within balls, their lengths and the gains expected of them.

        As in `network.trainers.varpro`: the smallest shift of the curvature that makes the
        step short, by Newton's method on 1 / length.
        """
        bends = self.bends
        largest = np.abs(bends).max(axis=1)
        shift = np.maximum(0.0, -bends[:, 0]) + 1e-12 * largest + 1e-300
        for _ in range(20):
            step = -self.along / (bends + shift[:, None])
            length = np.linalg.norm(step, axis=1)
            far = length > 1.01 * radius
            if not far.any():
                break
            slope = np.sum(step**2 / (bends + shift[:, None]), axis=1)
            with np.errstate(all="ignore"):
                shift = np.where(far, shift + (length / radius - 1.0) * length**2 / slope, shift)
        expected = -np.sum(self.along * step + 0.5 * bends * step**2, axis=1)
        return np.einsum("bpi,bi->bp", self.axes, step), length, expected


def _trusted_steps(
    products: InnerProducts, ridge: Array, points: Points, model: _Model, radius: Array
) -> tuple[Points, Array]:
    """One Newton step within its trust region for every problem: where to, and the radii.

    A step that leads uphill is tried again, shorter.
    """
    result = replace(points, **{n: getattr(points, n).copy() for n in ("a", "u", "half", "value")})
    result = replace(result, factors=list(points.factors))
    radius = radius.copy()
    waiting = np.arange(len(radius))
    for _ in range(_MOST_RETRIES):
        if not waiting.size:
            break
        step, length, expected = model.pick(waiting).step(radius[waiting])
        candidate = points.a[waiting] + step
        candidate /= np.linalg.norm(candidate, axis=1)[:, None]
        trial = project(products, ridge[waiting], candidate)
        gain = points.value[waiting] - trial.value
        poor, good = gain < 0.25 * expected, gain > 0.75 * expected
        stretched = good & (length > 0.9 * radius[waiting])
        wider = np.minimum(2.0 * radius[waiting], _LARGEST_STEP)
        radius[waiting] = np.where(poor, 0.25 * length, np.where(stretched, wider, radius[waiting]))
        better = np.flatnonzero(gain >= 0.0)
        result.put(waiting[better], trial.pick(better))
        radius[waiting[better]] = np.maximum(radius[waiting[better]], _SMALLEST_RADIUS)
        waiting = np.delete(waiting, better)
    return result, radius


def _penalty(products: InnerProducts, ridge: Array) -> Array:
    """Diagonals that are added to the inner products, shape (B, c + q)."""
    n_centers, n_linear = products.theta.shape[1], len(products.linear)
    strength = np.repeat(ridge, [n_centers, n_linear], axis=1)
    strength[:, -1] = 0.0  # the constant
    return products.total * (strength + TRACE)
