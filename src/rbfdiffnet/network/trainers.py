r"""Trainers: each minimizes one and the same `Objective` over the weights of a network.

========  =========================================================================================
varpro    Variable projection: a trust-region Newton method on a, with w and :math:`\lambda`
          eliminated (`network.projection`). The ridge penalty makes the projected objective
          independent of the length of a, so a is kept at length 1.
als       Alternating least squares: w and :math:`\lambda` given a, then a given them, and again.
          It needs many more rounds, because it does not know how one half answers the other.
bfgs      BFGS over all weights together: the paper's trainer, and the one that takes any loss.
========  =========================================================================================

To add one, write `minimize(objective, start, *, max_iter, tol)` and give it a name in `SOLVERS`.
The weights of plain networks are linear, so `ridge` has a closed form and `lasso` a path.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lasso_path

from rbfdiffnet.network.objective import TRACE, Objective, Quadratic, Solution, Weights
from rbfdiffnet.network.projection import (
    LARGEST_STEP,
    MOST_RETRIES,
    TrustRegion,
    factorize,
    newton_system,
    project,
    solve,
)
from rbfdiffnet.support.arrays import Array

_LARGEST_WORKSPACE = 2**20  # numbers
_LARGEST_REGRESSION, _ROWS_FOR_STARTS = 1500, 2000  # features and rows for spectral starts

_HOPELESS = 100.0  # times the objective without the lags
_MOST_WEIGHTS = 600  # beyond, the dense inverse Hessian of BFGS costs more than it gives

_N_FOLDS = 5
_N_ALPHAS, _SMALLEST_ALPHA = 100, 1e-3  # strengths to choose from; the last, of the first
_PLAIN_ALPHA = 1e-3  # where there is nothing to choose from
_LEAST_ALPHA = 1e-10  # without any, coordinate descent need not end
_TOL_TO_CHOOSE, _TOL = 1e-4, 1e-10  # duality gap, as a fraction of the target's square

_kept = threading.local()


def minimize_varpro(
    objective: Objective, start: Array | Weights, *, max_iter: int = 100, tol: float = 1e-6
) -> Solution:
    """Minimize the objective from one start, in at most `max_iter` Newton steps.

    The start is a (terms,) or all weights. A loss or penalty that is not quadratic is first touched
    at the start, which needs all weights; given only a, they are those of the squared loss and the
    ridge penalty. Training ends where the gradient is below the fraction `tol` of the objective.
    """
    if isinstance(start, Weights):
        weights: Weights | None = start
        a = start.a
    else:
        a = start / np.linalg.norm(start)
        weights = None if objective.is_quadratic else _complete_start(objective, a)
    quadratic = objective.quadratic(weights)
    room, spare = _workspace(objective)
    point = project(objective, quadratic, a, room)
    floor = 1e-12 * float(np.sum(objective.weight * objective.target**2)) + 1e-300
    radius, converged, n_iter = LARGEST_STEP, False, 0
    while not converged and n_iter < max_iter:
        n_iter += 1
        small = tol * point.value + floor if objective.is_quadratic else 0.0
        gradient, hessian = newton_system(objective, quadratic, point, small)
        if hessian is None or np.linalg.norm(gradient) <= small:
            converged = True
            break
        region = TrustRegion.around(
            point.weights.a, gradient, hessian, radius, unit_length=quadratic.homogeneous
        )
        before = point.value
        for _ in range(MOST_RETRIES):
            trial = project(objective, quadratic, region.candidate(), spare)
            if region.accepts(before - trial.value):
                point, spare = trial, point.rows
                break
        radius, gain = region.radius, before - point.value
        if objective.is_quadratic:
            converged = gain <= 1e-14 * before + 1e-3 * floor
        else:  # touch the objective anew
            quadratic = objective.quadratic(point.weights)
            residual = quadratic.target - objective.predict(point.weights)
            gain += quadratic.value(point.weights, residual)
            point = project(objective, quadratic, point.weights.a, point.rows)
            gain -= point.value
            converged = gain <= tol * abs(before) + floor
    quadratic_value = point.value / objective.total
    value = quadratic_value if objective.is_quadratic else objective.value(point.weights)
    return Solution(point.weights, value, n_iter, converged)


def minimize_als(
    objective: Objective, start: Array | Weights, *, max_iter: int = 100, tol: float = 1e-6
) -> Solution:
    r"""Minimize by alternating least squares: paper, eq. (als); a start as for `minimize_varpro`.

    .. math::

        u \leftarrow (A V A' + P)^{-1} A V z, \qquad
        a \leftarrow (J V J' + P_a)^{-1} J V (z - \lambda \cdot s)

    Both halves lower the objective, so it never ends above its start. A round counts as one
    iteration. Training ends when a round lowers the objective by less than the fraction `tol`.
    """
    weights = start if isinstance(start, Weights) else _complete_start(objective, start)
    value = objective.value(weights)
    converged, n_iter = False, 0
    while not converged and n_iter < max_iter:
        n_iter += 1
        weights = _best_a(objective, objective.quadratic(weights), weights)
        weights = project(objective, objective.quadratic(weights), weights.a).weights
        previous, value = value, objective.value(weights)
        converged = previous - value <= tol * previous + 1e-300
    return Solution(weights, value, n_iter, converged)


def minimize_bfgs(
    objective: Objective, start: Weights, *, max_iter: int = 2000, tol: float = 1e-6
) -> Solution:
    """Minimize the objective from one start, with any loss and penalty: paper, eq. (bfgs).

    Training ends where the largest component of the gradient is below `tol` times the objective at
    the start. The solution is never above the start.
    """

    def flat_gradient(flat: Array) -> tuple[float, Array]:
        value, gradient = objective.gradient(start.unflatten(flat))
        return value, gradient.flatten()

    first = objective.value(start)
    x = start.flatten()
    method: Any = "BFGS" if x.size <= _MOST_WEIGHTS else "L-BFGS-B"
    options: Any = {"maxiter": max_iter, "gtol": tol * max(abs(first), 1e-12)}
    with np.errstate(over="ignore", invalid="ignore"):  # far trial steps, which are refused
        result: Any = optimize.minimize(flat_gradient, x, jac=True, method=method, options=options)
    ended = int(result.nit) < max_iter  # also where rounding allows no further step
    if not result.fun < first:
        return Solution(start, first, int(result.nit), ended)
    return Solution(start.unflatten(result.x), float(result.fun), int(result.nit), ended)


#: The trainers by name, each with its usual limit of iterations.
SOLVERS: dict[str, tuple[Callable[..., Solution], int]] = {
    "varpro": (minimize_varpro, 300),
    "als": (minimize_als, 2000),
    "bfgs": (minimize_bfgs, 3000),
}


def taylor_start(objective: Objective, w: Array) -> Weights:
    r"""Return the paper's start: paper, eq. (start).

    .. math::

        \lambda_i = 1 / l, \qquad a_{ki} = 0.001^k / k!

    with the given weights w (c, m) of a plain network, and no bias. Data that are not centered can
    make the mean of the lags far worse than nothing; then :math:`\lambda = 0`.
    """
    basis = objective.basis
    n_lags = objective.linear.shape[0] - int(objective.constant)
    linear = np.full((objective.linear.shape[0], w.shape[1]), 1.0 / max(n_lags, 1))
    if objective.constant:
        linear[-1] = 0.0
    orders = range(1 - int(basis.order_zero), basis.order + 1)
    parts = [
        np.full(basis.x.shape[0] if k else 1, 0.001**k / factorial(k) / basis.unit**k)
        for k in orders
    ]
    start = Weights(np.concatenate(parts), w, linear)
    without = Weights(start.a, w, np.zeros_like(linear))
    hopeless = objective.value(start) > _HOPELESS * objective.value(without)
    return without if hopeless else start


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


def _complete_start(objective: Objective, a: Array) -> Weights:
    """Return a at length 1, with the weights of the squared loss and the ridge penalty."""
    return project(objective, objective.quadratic(None), a / np.linalg.norm(a)).weights


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


def ridge(objective: Objective) -> Weights:
    r"""Ridge regression on the basis functions, in closed form: paper, eq. (ridge).

    .. math::

        w^* = (\Phi V \Phi' + \gamma I)^{-1} \Phi V y

    with the linear inputs among the rows of :math:`\Phi`, V the weights of the rows and
    :math:`\gamma` the penalty times their sum. The basis has no derivatives.
    """
    return project(objective, objective.quadratic(None), np.ones(1)).weights


def lasso(
    features: Array,
    target: Array,
    weight: Array,
    *,
    alpha: float | None = None,
    folds: npt.NDArray[np.intp] | None = None,
) -> tuple[Array, Array, Array]:
    r"""Lasso of each target (m, n) on the features (c, n) and a bias: paper, eq. (lasso).

    .. math::

        \min_{w, w_0} \frac{1}{2 \sum_n v_n} \sum_n v_n (y_n - w_0 - w \cdot \varphi_n)^2
        + \alpha |w|_1

    Without `alpha`, cross-validation over the folds of the rows (see `assign_folds`) chooses it for
    each target. Returns w (c, m), the biases (m,) and the strengths (m,).
    """
    grams, means = _inner_products(np.concatenate([features, target]), weight, folds)
    c, everything = len(features), _center(grams.sum(axis=0))
    w, used = np.zeros((c, len(target))), np.zeros(len(target))
    for o, y in enumerate(target):
        keep = np.append(np.arange(c), c + o)
        if alpha is not None:
            used[o] = alpha
        elif len(grams) > 1 and np.ptp(y) > 0:
            each = np.append(keep, -1)
            used[o] = _cross_validate_alpha(grams[:, each[:, None], each])
        else:  # a single distinct row, or nothing to explain
            used[o] = _PLAIN_ALPHA
        gram = everything[np.ix_(keep, keep)]
        strength = np.maximum(used[o : o + 1], _LEAST_ALPHA)
        w[:, o] = _descend(gram, strength, tol=_TOL, max_iter=10_000)[:, 0]
    return w, means[c:] - means[:c] @ w, used


def _inner_products(
    rows: Array, weight: Array, folds: npt.NDArray[np.intp] | None
) -> tuple[Array, Array]:
    """Return weighted inner products (n_folds, k + 1, k + 1), and the means (k,) of k rows.

    The products are those of the rows less their means, and of a constant 1, fold by fold.
    """
    means = np.average(rows, axis=1, weights=weight)
    columns = np.concatenate([rows - means[:, None], np.ones((1, rows.shape[1]))])
    parts = [slice(None)] if folds is None else [folds == f for f in np.unique(folds)]
    return np.stack([(columns[:, f] * weight[f]) @ columns[:, f].T for f in parts]), means


def _center(gram: Array) -> Array:
    """Take the means out of inner products, and divide by the weight; the constant comes last."""
    total = gram[-1, -1]
    mean = gram[-1, :-1] / total
    return np.asarray(gram[:-1, :-1] / total - np.outer(mean, mean))


def _cross_validate_alpha(grams: Array) -> float:
    """Return the strength with the lowest mean squared error, averaged over the folds left out."""
    largest = float(np.abs(_center(grams.sum(axis=0))[:-1, -1]).max())
    alphas = np.geomspace(1.0, _SMALLEST_ALPHA, _N_ALPHAS) * max(largest, 1e-15)
    errors = np.zeros(_N_ALPHAS)
    for f, left_out in enumerate(grams):
        train = np.delete(grams, f, axis=0).sum(axis=0)
        w = _descend(_center(train), alphas, tol=_TOL_TO_CHOOSE, max_iter=1000)
        mean = train[-1, :-1] / train[-1, -1]
        # Residuals are y - w . features - bias: a product of the columns with these weights.
        residual = np.vstack([-w, np.ones(_N_ALPHAS), mean[:-1] @ w - mean[-1]])
        errors += np.einsum("ka,ka->a", residual, left_out @ residual) / left_out[-1, -1]
    return float(alphas[np.argmin(errors)])


def _descend(gram: Array, alphas: Array, *, tol: float, max_iter: int) -> Array:
    """Run coordinate descent for descending strengths; the target is the last row of the Gram."""
    # Given the products, scikit-learn uses only the shape of X and the length of y.
    X = np.zeros((1, len(gram) - 1), order="F")
    length = np.sqrt(np.maximum(gram[-1:, -1], 0.0))
    with warnings.catch_warnings():  # near the end of the path: harmless
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, w, _ = lasso_path(
            X,
            length,
            alphas=alphas,
            precompute=np.ascontiguousarray(gram[:-1, :-1]),
            Xy=np.ascontiguousarray(gram[:-1, -1]),
            check_input=False,
            tol=tol,
            max_iter=max_iter,
        )
    return np.asarray(w)


def assign_folds(X: Array) -> npt.NDArray[np.intp]:
    """Return the fold of every row: distinct rows are dealt out in sorted order.

    Copies of a row stay together. So the folds depend neither on the order of the rows nor on
    whether a row is repeated or has a larger weight.
    """
    _, index = np.unique(X, axis=0, return_inverse=True)
    return np.asarray(index).ravel() % _N_FOLDS
