r"""Variable projection: eliminate w and :math:`\lambda`, run a trust-region Newton method on a.

Given a, the network is linear in :math:`u = (w, \lambda)` with features
:math:`A = [\sum_p a_p \theta_p;\ s]`, so :math:`u(a) = (A V A' + P)^{-1} A V z` by a Cholesky
factorization. With the residual r and :math:`J_{pn} = \sum_j w_j \theta_{pjn}`, the projected
objective F(a) has

.. math::

    \nabla F &= -J V r + |w|_P^2\, a \\
    \nabla^2 F &= J V J' + |w|_P^2 I - C' (A V A' + P)^{-1} C, \qquad
    C = A V J' - \sum_n v_n r_n \theta_n + 2 P w\, a'

exactly (dropping the middle term of C gives Kaufman's approximation). The ridge penalty makes F
independent of the length of a, so a is kept at length 1.

References
----------
G. Golub, V. Pereyra, "Separable nonlinear least squares: the variable projection method and its
applications", Inverse Problems 19 (2003) R1-R26.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from rbfdiffnet.network.basis import Array
from rbfdiffnet.network.objective import TRACE, Objective, Quadratic, Solution, Weights
from rbfdiffnet.network.trainers.trust_region import LARGEST_STEP, MOST_RETRIES, TrustRegion

_LARGEST_WORKSPACE = 2**20  # numbers
_LARGEST_REGRESSION, _ROWS_FOR_STARTS = 1500, 2000  # features and rows for spectral starts
_kept = threading.local()


@dataclass(frozen=True)
class Projection:
    """A point of the search: a, and the linear weights that are best for it."""

    weights: Weights
    rows: Array  # (c + q + terms, n): the features A, then room for J
    factors: list[Array]  # Cholesky factors, one for each group of outputs
    residual: Array  # (m, n)
    value: float  # F, times the total weight


def project(
    objective: Objective, quadratic: Quadratic, a: Array, room: Array | None = None
) -> Projection:
    """Eliminate the linear weights at a; arrays over rows are written to ``room`` if given."""
    n_centers, n_rows = objective.basis.phi.shape
    n_features = n_centers + len(objective.linear)
    rows = np.empty((n_features + len(a), n_rows)) if room is None else room
    features = rows[:n_features]
    objective.basis.contract(a, out=features[:n_centers])
    features[n_centers:] = objective.linear
    penalty = quadratic.penalty.copy()
    if quadratic.homogeneous:
        penalty[:, :n_centers] *= a @ a
    factors, coefficients = [], np.empty((len(features), len(quadratic.target)))
    for group, outputs in enumerate(quadratic.groups()):
        weighted = quadratic.weigh(features, group)
        gram = np.empty((n_features, n_features))
        gram[:n_centers, :n_centers] = weighted[:n_centers] @ features[:n_centers].T
        gram[n_centers:, :n_centers] = weighted[n_centers:] @ features[:n_centers].T
        gram[n_centers:, n_centers:] = quadratic.linear_gram(objective.linear, group)
        factor = factorize(gram, penalty[group])
        coefficients[:, outputs] = solve(factor, weighted @ quadratic.target[outputs].T)
        factors.append(factor)
    weights = Weights(a, coefficients[:n_centers], coefficients[n_centers:])
    residual = quadratic.target - coefficients.T @ features
    return Projection(weights, rows, factors, residual, quadratic.value(weights, residual))


def newton_system(
    objective: Objective, quadratic: Quadratic, point: Projection, small: float = 0.0
) -> tuple[Array, Array | None]:
    """Return the gradient and the exact Hessian of the projected objective at a point.

    The Hessian is None where the gradient is no longer than ``small``.
    """
    basis, a, w = objective.basis, point.weights.a, point.weights.w
    n_features = len(point.rows) - len(a)
    room = point.rows[n_features:]
    gradient, hessian = quadratic.penalty_a * a, np.diag(quadratic.penalty_a)
    for group, outputs in enumerate(quadratic.groups()):
        ridge = quadratic.penalty[group, : len(w)]
        for o in outputs:
            jacobian = basis.jacobian(w[:, o], out=room)
            residual = quadratic.weigh(point.residual[o], group)
            gradient -= jacobian @ residual
            if quadratic.homogeneous:
                gradient += (ridge @ w[:, o] ** 2) * a
            if len(w.T) == 1 and np.linalg.norm(gradient) <= small:
                return gradient, None
            products = quadratic.weigh(jacobian, group) @ point.rows.T
            cross, own = products[:, :n_features].T, products[:, n_features:]
            hessian += own
            cross[: len(w)] -= basis.adjoint(residual)
            if quadratic.homogeneous:
                pull = ridge * w[:, o]
                hessian += (pull @ w[:, o]) * np.eye(len(a))
                cross[: len(w)] += 2.0 * np.outer(pull, a)
            hessian -= cross.T @ solve(point.factors[group], cross)
    return gradient, 0.5 * (hessian + hessian.T)


def minimize(
    objective: Objective, start: Array | Weights, *, max_iter: int = 100, tol: float = 1e-6
) -> Solution:
    """Minimize the objective from one start, in at most `max_iter` Newton steps.

    The start is a (terms,) or all weights. A loss or penalty that is not quadratic is first touched
    at the start, which needs all weights; given only a, they are those of the squared loss and the
    ridge penalty. Training ends where the gradient is below the fraction `tol` of the objective.
    """
    a = start.a if isinstance(start, Weights) else start / np.linalg.norm(start)
    floor = 1e-12 * float(np.sum(objective.weight * objective.target**2)) + 1e-300
    quadratic = objective.quadratic(start if isinstance(start, Weights) else None)
    room, spare = _workspace(objective)
    point = project(objective, quadratic, a, room)
    if not objective.is_quadratic and not isinstance(start, Weights):
        quadratic = objective.quadratic(point.weights)
        point = project(objective, quadratic, a, room)
    radius, converged, n_iter = LARGEST_STEP, False, 0
    while not converged and n_iter < max_iter:
        n_iter += 1
        small = tol * point.value + floor if objective.is_quadratic else 0.0
        gradient, hessian = newton_system(objective, quadratic, point, small)
        if hessian is None or np.linalg.norm(gradient) <= small:
            converged = True
            break
        before, last = point.value, point.rows
        point, radius = _trusted_step(objective, quadratic, point, gradient, hessian, radius, spare)
        spare = last if point.rows is not last else spare
        if not objective.is_quadratic:  # touch the objective anew
            quadratic = objective.quadratic(point.weights)
            residual = quadratic.target - objective.predict(point.weights)
            before_linear = quadratic.value(point.weights, residual)
            gain = before - point.value
            point = project(objective, quadratic, point.weights.a, point.rows)
            gain += before_linear - point.value
            converged = gain <= tol * abs(before) + floor
        else:
            converged = before - point.value <= 1e-14 * before + 1e-3 * floor
    if objective.is_quadratic:
        value = point.value / objective.total
    else:
        value = objective.value(point.weights)
    return Solution(point.weights, value, n_iter, converged)


def spectral_starts(objective: Objective) -> Array:
    r"""Return starts from the best network without the rank-one constraint.

    The terms of the network weigh :math:`\theta_{pjn}` with the matrix :math:`a_p w_j`. Ridge
    regression on all terms gives a full matrix instead; its left singular vectors, the strongest
    first, are good guesses for a. The result has shape (k, terms), and is empty where the
    regression would be too large. The objective has the squared loss and a ridge penalty.
    """
    n_terms, n_centers = objective.basis.n_terms, len(objective.basis.phi)
    if n_terms * n_centers > _LARGEST_REGRESSION:
        return np.empty((0, n_terms))
    step = -(-len(objective.weight) // _ROWS_FOR_STARTS)
    theta = np.stack([objective.basis.contract(a)[:, ::step] for a in np.eye(n_terms)])
    features = np.concatenate([theta.reshape(n_terms * n_centers, -1), objective.linear[:, ::step]])
    weighted = features * objective.weight[::step]
    ridge = np.full(len(features), objective.alpha_linear + TRACE)
    ridge[: n_terms * n_centers] = objective.alpha + TRACE
    factor = factorize(weighted @ features.T, ridge * objective.weight[::step].sum())
    weights = solve(factor, weighted @ objective.target[:, ::step].T)[: n_terms * n_centers]
    vectors, _, _ = np.linalg.svd(weights.reshape(n_terms, -1), full_matrices=False)
    return np.asarray(vectors.T)


def _workspace(objective: Objective) -> tuple[Array, Array]:
    """Return room for two points of the search, kept from fit to fit (each thread has its own).

    Fresh memory would cost a tenth of a fit of a few thousand rows.
    """
    basis = objective.basis
    shape = (len(basis.phi) + len(objective.linear) + basis.n_terms, basis.phi.shape[1])
    size = shape[0] * shape[1]
    if size > _LARGEST_WORKSPACE:
        return np.empty(shape), np.empty(shape)
    kept: Array | None = getattr(_kept, "room", None)
    if kept is None or kept.size < 2 * size:
        _kept.room = kept = np.empty(2 * size)
    return kept[:size].reshape(shape), kept[size : 2 * size].reshape(shape)


def _trusted_step(
    objective: Objective,
    quadratic: Quadratic,
    point: Projection,
    gradient: Array,
    hessian: Array,
    radius: float,
    spare: Array,
) -> tuple[Projection, float]:
    """Take one Newton step within a trust region; return where it leads and the radius.

    The rows of the new point are written to `spare`.
    """
    a = point.weights.a
    region = TrustRegion.around(a, gradient, hessian, radius, unit_length=quadratic.homogeneous)
    for _ in range(MOST_RETRIES):
        trial = project(objective, quadratic, region.candidate(), spare)
        if region.accepts(point.value - trial.value):
            return trial, region.radius
    return point, region.radius


def factorize(gram: Array, ridge: Array) -> Array:
    """Return the lower Cholesky factor of gram + diag(ridge), both of size k.

    Only the lower triangle of gram is read. Where rounding makes the matrix indefinite, a trace of
    ridge is added until it is not.
    """
    diagonal = np.einsum("ii->i", gram)
    diagonal += ridge
    factor, failed = dpotrf(gram, lower=1)
    extra = 1e-14 * float(diagonal.max())
    while failed:
        diagonal += extra
        extra *= 10.0
        factor, failed = dpotrf(gram, lower=1)
    return np.asarray(factor)


def solve(factor: Array, right: Array) -> Array:
    """Solve with a Cholesky factor from `factorize`."""
    return np.asarray(dpotrs(factor, right, lower=1)[0])
