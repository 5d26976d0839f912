r"""Eliminate the linear weights of a network, and step within a trust region on the others.

Given a, the network is linear in :math:`u = (w, \lambda)` with features
:math:`A = [\sum_p a_p \theta_p;\ s]`, so :math:`u(a) = (A V A' + P)^{-1} A V z` by a Cholesky
factorization. With the residual r and :math:`J_{pn} = \sum_j w_j \theta_{pjn}`, the projected
objective F(a) has

.. math::

    \nabla F &= -J V r + |w|_P^2\, a \\
    \nabla^2 F &= J V J' + |w|_P^2 I - C' (A V A' + P)^{-1} C, \qquad
    C = A V J' - \sum_n v_n r_n \theta_n + 2 P w\, a'

exactly (dropping the middle term of C gives Kaufman's approximation). Newton steps on a stay within
a ball, in which the quadratic model :math:`g \cdot s + \tfrac12 s' H s` is lowest at

.. math::

    s = -(H + \tau I)^{-1} g

with the smallest shift :math:`\tau \ge 0` that makes :math:`H + \tau I` positive and s short
enough. In the axes of the curvature that is a division; :math:`\tau` is found by Newton's method on
1 / length (J. More, D. Sorensen, 1983).

References
----------
G. Golub, V. Pereyra, "Separable nonlinear least squares: the variable projection method and its
applications", Inverse Problems 19 (2003) R1-R26.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from rbfdiffnet.network.objective import Objective, Quadratic, Weights
from rbfdiffnet.support.arrays import Array

LARGEST_STEP = 1.0  # in units of the length of a
MOST_RETRIES = 25  # of one step
_SMALLEST_RADIUS = 1e-8


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


@dataclass
class TrustRegion:
    """A quadratic model around a (K,), and the radius within which it is trusted.

    Ask for a `candidate` and tell `accepts` its gain; after a step uphill the next is shorter.
    """

    a: Array
    bends: Array  # (K,): the curvature, in ascending order
    axes: Array  # (K, K)
    along: Array  # (K,): the gradient, in the axes of the curvature
    radius: float
    unit_length: bool
    _length: float = field(default=0.0, init=False)
    _expected: float = field(default=0.0, init=False)

    @classmethod
    def around(
        cls, a: Array, gradient: Array, hessian: Array, radius: float, *, unit_length: bool = True
    ) -> TrustRegion:
        """Make the model.

        With `unit_length`, the objective does not depend on the length of a, which is kept at 1.
        """
        if unit_length:  # a step along a changes nothing: make it costly
            hessian = hessian + np.outer(a, a) * (np.abs(np.trace(hessian)) / len(a))
        bends, axes = np.linalg.eigh(hessian)
        return cls(a, bends, axes, axes.T @ gradient, radius, unit_length)

    def candidate(self) -> Array:
        """Return the point (K,) within the region at which the model is lowest."""
        step = self._best_step()
        self._length = float(np.linalg.norm(step))
        self._expected = -float(self.along @ step + 0.5 * self.bends @ step**2)
        candidate = self.a + self.axes @ step
        return candidate / np.linalg.norm(candidate) if self.unit_length else candidate

    def accepts(self, gain: float) -> bool:
        """Tell whether the latest candidate, which gained so much, is no worse; set the radius."""
        if gain < 0.25 * self._expected:
            self.radius = 0.25 * self._length
        elif gain > 0.75 * self._expected and self._length > 0.9 * self.radius:
            self.radius = min(2.0 * self.radius, LARGEST_STEP)
        if gain >= 0.0:
            self.radius = max(self.radius, _SMALLEST_RADIUS)
        return gain >= 0.0

    def _best_step(self) -> Array:
        bends = self.bends
        shift = max(0.0, -float(bends[0])) + 1e-12 * float(np.abs(bends).max()) + 1e-300
        for _ in range(20):
            step: Array = -self.along / (bends + shift)
            length = float(np.sqrt(step @ step))
            if length <= 1.01 * self.radius:
                break
            slope = float(step @ (step / (bends + shift)))
            shift += (length / self.radius - 1.0) * length**2 / slope
        return step


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
