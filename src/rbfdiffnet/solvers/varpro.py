r"""Variable projection: eliminate w and :math:`\lambda`, run a damped Newton method on a.

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

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from rbfdiffnet.basis import Array
from rbfdiffnet.solvers.objective import Objective, Quadratic, Solution, Weights


@dataclass(frozen=True)
class Projection:
    """A point of the search: a, and the linear weights that are best for it."""

    weights: Weights
    features: Array  # (c + q, n), A
    factors: list[tuple[Array, bool]]  # Cholesky factors, one for each group of outputs
    residual: Array  # (m, n)
    value: float  # F, times the total weight


def project(objective: Objective, quadratic: Quadratic, a: Array) -> Projection:
    """Eliminate the linear weights at a."""
    n_centers = objective.basis.phi.shape[0]
    features = np.concatenate([objective.basis.contract(a), objective.linear])
    penalty = quadratic.penalty.copy()
    if quadratic.homogeneous:
        penalty[:, :n_centers] *= a @ a
    factors, coefficients = [], np.empty((len(features), len(quadratic.target)))
    for row_weight, ridge, outputs in zip(
        quadratic.row_weight, penalty, quadratic.groups(), strict=True
    ):
        weighted = features * row_weight
        factor = _factor(weighted @ features.T, ridge)
        coefficients[:, outputs] = cho_solve(
            factor, weighted @ quadratic.target[outputs].T, check_finite=False
        )
        factors.append(factor)
    weights = Weights(a, coefficients[:n_centers], coefficients[n_centers:])
    residual = quadratic.target - coefficients.T @ features
    return Projection(weights, features, factors, residual, quadratic.value(weights, residual))


def newton_system(
    objective: Objective, quadratic: Quadratic, point: Projection
) -> tuple[Array, Array]:
    """Gradient and exact Hessian of the projected objective at a point."""
    basis, a = objective.basis, point.weights.a
    n_centers = basis.phi.shape[0]
    gradient, hessian = quadratic.penalty_a * a, np.diag(quadratic.penalty_a)
    for factor, row_weight, ridge, outputs in zip(
        point.factors, quadratic.row_weight, quadratic.penalty, quadratic.groups(), strict=True
    ):
        for o in outputs:
            w = point.weights.w[:, o]
            jacobian = basis.jacobian(w)
            weighted = jacobian * row_weight
            residual = row_weight * point.residual[o]
            gradient -= jacobian @ residual
            hessian += weighted @ jacobian.T
            cross = point.features @ weighted.T
            cross[:n_centers] -= basis.adjoint(residual)
            if quadratic.homogeneous:
                pull = ridge[:n_centers] * w
                gradient += (pull @ w) * a
                hessian += (pull @ w) * np.eye(len(a))
                cross[:n_centers] += 2.0 * np.outer(pull, a)
            hessian -= cross.T @ cho_solve(factor, cross, check_finite=False)
    return gradient, 0.5 * (hessian + hessian.T)


def minimize(
    objective: Objective, start: Array | Weights, *, max_iter: int = 100, tol: float = 1e-6
) -> Solution:
    """Minimize the objective from one start.

    Parameters
    ----------
    objective : Objective
    start : ndarray of shape (terms,) or Weights
        Weights a to start from. A loss or penalty that is not quadratic is first touched at the
        start, so it takes all weights; given only a, those of the squared loss and ridge penalty.
    max_iter : int, default=100
        Most Newton steps.
    tol : float, default=1e-6
        The gradient is small enough below this fraction of the objective.

    Returns
    -------
    Solution
    """
    if not isinstance(start, Weights):
        start = project(objective, objective.quadratic(None), start / np.linalg.norm(start)).weights
    floor = 1e-12 * float(np.sum(objective.weight * objective.target**2)) + 1e-300
    quadratic = objective.quadratic(start)
    point = project(objective, quadratic, start.a)
    damping, converged, n_iter = 1e-3, False, 0
    while not converged and n_iter < max_iter:
        n_iter += 1
        gradient, hessian = newton_system(objective, quadratic, point)
        small = bool(np.linalg.norm(gradient) <= tol * point.value + floor)
        if small and objective.is_quadratic:
            converged = True
            break
        before = point.value
        point, damping = _damped_step(objective, quadratic, point, gradient, hessian, damping)
        if not objective.is_quadratic:  # touch the objective anew
            quadratic = objective.quadratic(point.weights)
            residual = quadratic.target - objective.predict(point.weights)
            before_linear = quadratic.value(point.weights, residual)
            gain = before - point.value
            point = project(objective, quadratic, point.weights.a)
            gain += before_linear - point.value
            converged = gain <= 0.1 * tol * abs(before) + floor
        else:
            converged = before - point.value <= 1e-14 * before + 1e-3 * floor
    return Solution(point.weights, objective.value(point.weights), n_iter, converged)


def _damped_step(
    objective: Objective,
    quadratic: Quadratic,
    point: Projection,
    gradient: Array,
    hessian: Array,
    damping: float,
) -> tuple[Projection, float]:
    """One Newton step, damped until it helps; negative curvature counts by its size."""
    a = point.weights.a
    if quadratic.homogeneous:  # no curvature along a itself: supply some
        hessian = hessian + np.outer(a, a) * (np.abs(np.trace(hessian)) / len(a))
    curvature, axes = np.linalg.eigh(hessian)
    size = np.abs(curvature)
    size = np.maximum(size, 1e-12 * size.max(initial=0.0) + 1e-300)
    along = axes.T @ gradient
    for _ in range(25):
        candidate = a - axes @ (along / (size * (1.0 + damping)))
        if quadratic.homogeneous:
            candidate /= np.linalg.norm(candidate)
        trial = project(objective, quadratic, candidate)
        if trial.value <= point.value:
            return trial, max(damping / 10.0, 1e-9)
        damping = max(4.0 * damping, 0.1)
    return point, damping


def _factor(gram: Array, ridge: Array) -> tuple[Array, bool]:
    """Cholesky factor of gram + diag(ridge), plus a trace where rounding makes it indefinite."""
    diagonal = np.einsum("ii->i", gram)
    diagonal += ridge
    extra = 0.0
    while True:
        try:
            return cho_factor(gram, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            extra = max(10.0 * extra, 1e-14 * float(diagonal.max()))
            diagonal += extra
