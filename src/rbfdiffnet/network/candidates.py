r"""A choice of settings, fitted roughly, and its leave-one-out error.

For a linear fit the error follows from the leverages :math:`h_n` of the rows without refitting:

.. math::

    \mathrm{LOO} = \frac{1}{N} \sum_n v_n \Big(\frac{r_n}{1 - h_n}\Big)^2

The leverages count the linear weights given a, and a itself through the slope of the network by a.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from rbfdiffnet.network.basis import Array, DifferentialBasis
from rbfdiffnet.network.objective import TRACE, Objective, Weights
from rbfdiffnet.network.trainers.varpro import Projection, minimize, project

__all__ = ["Candidate", "default_start", "fit_candidate", "leave_one_out"]

_QUICK_STEPS, _QUICK_TOL = 8, 1e-3  # enough to compare settings
_MOST_FREEDOM = 0.5  # of the number of rows; beyond, leaving rows out says little


@dataclass(frozen=True)
class Candidate:
    """A fitted choice of settings, and its score."""

    errors: Array
    factor: float
    alpha: float
    alpha_linear: float
    metric: Array
    objective: Objective
    weights: Weights

    @classmethod
    def unscored(cls, objective: Objective, factor: float, metric: Array) -> Candidate:
        """Return settings that need no comparison, at the default start."""
        n_outputs = len(objective.target)
        weights = Weights(
            default_start(objective.basis),
            np.zeros((len(objective.basis.phi), n_outputs)),
            np.zeros((len(objective.linear), n_outputs)),
        )
        errors = np.full(len(objective.weight), np.nan)
        return cls(
            errors, factor, objective.alpha, objective.alpha_linear, metric, objective, weights
        )

    @property
    def centers(self) -> Array:
        """Centers of the basis functions."""
        return self.objective.basis.mu + self.objective.basis.origin

    @property
    def beta(self) -> Array:
        """Inverse widths of the basis functions."""
        return self.objective.basis.beta

    @property
    def score(self) -> float:
        """Mean squared leave-one-out error."""
        return float(np.average(self.errors, weights=self.objective.weight))

    def limited(self, limit: float) -> Candidate:
        """Return the same with errors cut off at a limit (infinite ones stay)."""
        if limit == np.inf or not np.isfinite(self.score):
            return self
        return replace(self, errors=np.minimum(self.errors, limit))

    def beats(self, other: Candidate, standard_errors: float) -> bool:
        """Whether the error is lower than another's by so many standard errors of the gain."""
        if not np.isfinite(other.score):
            return bool(np.isfinite(self.score))
        if not np.isfinite(self.score):
            return False
        weight = self.objective.weight
        gain = other.errors - self.errors
        mean = float(np.average(gain, weights=weight))
        spread = float(np.sqrt(np.average((gain - mean) ** 2, weights=weight) / len(weight)))
        return mean > standard_errors * spread


def leave_one_out(objective: Objective, point: Projection) -> Array:
    """Approximate squared leave-one-out errors of a fitted point (squared loss, ridge).

    Parameters
    ----------
    objective : Objective
    point : Projection

    Returns
    -------
    ndarray of shape (n,)
        Mean over the outputs; infinite where the fit uses up its data.
    """
    weight, n_rows = objective.weight, len(objective.weight)
    n_outputs = len(objective.target)
    lower = point.factors[0]
    features = point.rows[: len(lower)]
    whitened = solve_triangular(lower, features, lower=True, check_finite=False)
    leverage = np.einsum("in,in->n", whitened, whitened)
    leverages = np.broadcast_to(leverage, point.residual.shape)
    n_terms = objective.basis.n_terms
    if n_terms > 1:
        # Given the linear weights' answer to a change of a, what is left of its effect?
        effects = []
        gram = np.zeros((n_terms, n_terms))
        for w in point.weights.w.T:
            jacobian = objective.basis.jacobian(w)
            jacobian -= ((jacobian * weight) @ whitened.T) @ whitened
            gram += (jacobian * weight) @ jacobian.T
            effects.append(jacobian)
        ridge = (objective.alpha + TRACE) * float(np.sum(point.weights.w**2)) + 1e-9
        gram[np.diag_indices_from(gram)] += objective.total * ridge
        root = np.linalg.cholesky(gram)
        leverages = np.stack(
            [
                leverage + np.sum(solve_triangular(root, e, lower=True, check_finite=False) ** 2, 0)
                for e in effects
            ]
        )
    leverages = leverages * weight  # a row is left out with all its copies
    if float(np.sum(leverages)) >= _MOST_FREEDOM * n_outputs * n_rows:
        return np.full(n_rows, np.inf)
    left_out = point.residual / np.maximum(1.0 - leverages, 1e-9)
    return np.asarray(np.mean(left_out**2, axis=0))


def fit_candidate(
    objective: Objective, a: Array, factor: float, metric: Array, *, steps: int = _QUICK_STEPS
) -> Candidate:
    """Fit roughly, in a few steps, and score."""
    if objective.basis.order and steps:
        a = minimize(objective, a, max_iter=steps, tol=_QUICK_TOL).weights.a
    point = project(objective, objective.quadratic(None), a)
    return Candidate(
        leave_one_out(objective, point),
        factor,
        objective.alpha,
        objective.alpha_linear,
        metric,
        objective,
        point.weights,
    )


def default_start(basis: DifferentialBasis) -> Array:
    """Weights a to start from: all terms alike."""
    return np.full(basis.n_terms, basis.n_terms**-0.5)
