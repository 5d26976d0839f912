r"""Alternating least squares: w and :math:`\lambda` given a, then a given them, and again.

.. math::

    u \leftarrow (A V A' + P)^{-1} A V z, \qquad
    a \leftarrow (J V J' + P_a)^{-1} J V (z - \lambda \cdot s)

with A, J, V and P as in `network.trainers.varpro`. Both halves lower the objective, so it never
ends above its start. The method needs many more rounds than variable projection, which knows how
one half answers a change of the other.
"""

from __future__ import annotations

import numpy as np

from rbfdiffnet.network.basis import Array
from rbfdiffnet.network.objective import Objective, Quadratic, Solution, Weights
from rbfdiffnet.network.trainers.varpro import factorize, project, solve


def minimize(
    objective: Objective, start: Array | Weights, *, max_iter: int = 100, tol: float = 1e-6
) -> Solution:
    """Minimize from one start: paper, eq. (als); arguments as for variable projection.

    A round counts as one iteration. Training ends when a round lowers the objective by less than
    the fraction `tol`.
    """
    if not isinstance(start, Weights):
        start = project(objective, objective.quadratic(None), start / np.linalg.norm(start)).weights
    weights, value = start, objective.value(start)
    converged, n_iter = False, 0
    while not converged and n_iter < max_iter:
        n_iter += 1
        weights = _best_a(objective, objective.quadratic(weights), weights)
        weights = project(objective, objective.quadratic(weights), weights.a).weights
        previous, value = value, objective.value(weights)
        converged = previous - value <= tol * previous + 1e-300
    return Solution(weights, value, n_iter, converged)


def _best_a(objective: Objective, quadratic: Quadratic, weights: Weights) -> Weights:
    """Return the best a for the other weights, at length 1 where only its product with w counts."""
    basis = objective.basis
    rest = quadratic.target - weights.linear.T @ objective.linear
    gram, moment = np.zeros((basis.n_terms, basis.n_terms)), np.zeros(basis.n_terms)
    penalty = quadratic.penalty_a.copy()
    n_centers = len(weights.w)
    for row_weight, ridge, outputs in zip(
        quadratic.row_weight, quadratic.penalty, quadratic.groups(), strict=True
    ):
        for o in outputs:
            jacobian = basis.jacobian(weights.w[:, o])
            weighted = jacobian * row_weight
            gram += weighted @ jacobian.T
            moment += weighted @ rest[o]
            if quadratic.homogeneous:
                penalty += ridge[:n_centers] @ weights.w[:, o] ** 2
    if not np.any(moment):
        return weights
    a = solve(factorize(gram, penalty + 1e-300), moment)
    moved = Weights(a, weights.w, weights.linear)
    return moved.with_unit_a() if quadratic.homogeneous else moved
