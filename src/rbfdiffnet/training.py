"""From rows to a network: standardize, place centers, choose settings, train."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rbfdiffnet.basis import Array, DifferentialBasis
from rbfdiffnet.centers import forward_selection, kmeans, self_organizing_map
from rbfdiffnet.losses import Loss, OwnLoss, UserLoss, huber_delta
from rbfdiffnet.network import Network, linear_inputs, normalized
from rbfdiffnet.selection import Candidate, choose, default_start
from rbfdiffnet.solvers import als, bfgs, varpro
from rbfdiffnet.solvers.linear import lasso, repeatable_folds
from rbfdiffnet.solvers.objective import Objective, Solution, Weights
from rbfdiffnet.widths import widths

CENTERS = ("kmeans", "som", "forward")
METRICS = ("learned", "standard", "common")
SOLVERS = ("varpro", "als", "bfgs")

_DECIMALS = 10  # of standardized data
_MAX_ITER = {"varpro": 100, "als": 500, "bfgs": 2000}
_SCREENED, _SCREENING_STEPS = 8, 4  # random starts tried for each one followed to the end
_CALIBRATED = 2.0  # standard errors by which a robust loss may shift the mean


@dataclass(frozen=True)
class Settings:
    """How to build and train a network; the estimators document each of them."""

    n_centers: int
    order: int = 1
    n_lags: int | None = None
    order_zero: bool = True
    intercept: bool = True
    normalize: bool = False
    centers: str | Array = "kmeans"
    width: str = "cluster"
    width_factor: float | None = None
    n_nearest: int = 10
    metric: str = "standard"
    solver: str = "varpro"
    loss: str | UserLoss = "squared"
    quantile: float = 0.5
    penalty: str = "ridge"
    alpha: float | None = None
    alpha_linear: float | None = None
    n_starts: int = 1
    max_iter: int | None = None
    tol: float = 1e-6
    seed: int = 0


@dataclass(frozen=True)
class Fit:
    """A trained network and how it came about."""

    network: Network
    alpha: float
    alpha_linear: float
    width_factor: float
    loss: str
    solution: Solution


@dataclass(frozen=True)
class Rows:
    """Standardized training rows."""

    Z: Array  # (n, d)
    target: Array  # (m, n)
    weight: Array  # (n,)
    x_shift: Array
    x_scale: Array
    y_shift: Array
    y_scale: Array


def fit_network(X: Array, Y: Array, weight: Array, settings: Settings) -> Fit:
    """Train a network.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    Y : ndarray of shape (n, m)
    weight : ndarray of shape (n,)
        Sample weights, not negative, not all zero. Integers count copies; other weights are
        relative and are scaled to a mean of 1.
    settings : Settings

    Returns
    -------
    Fit
    """
    rows = _standardize(X, Y, weight, settings)
    n_inputs = rows.Z.shape[1]
    n_lags = n_inputs if settings.n_lags is None else settings.n_lags
    linear = linear_inputs(rows.Z, n_lags, settings.intercept)
    candidate = _choose(rows, linear, settings)
    objective = _final_objective(rows, candidate, settings)
    solution, loss = _train(objective, candidate, rows, settings)
    weights = solution.weights.balanced() if settings.order else solution.weights
    basis = objective.basis
    active = candidate.metric > 0
    network = Network(
        centers=basis.mu + _origin(basis, rows.Z[:, active] * candidate.metric[active]),
        beta=basis.beta,
        a=weights.a,
        w=weights.w,
        linear=weights.linear,
        x_shift=rows.x_shift,
        x_scale=rows.x_scale,
        metric=candidate.metric,
        y_shift=rows.y_shift,
        y_scale=rows.y_scale,
        n_lags=n_lags,
        order=settings.order,
        order_zero=settings.order_zero,
        intercept=settings.intercept,
        normalize=settings.normalize,
        unit=basis.unit,
    )
    return Fit(network, objective.alpha, objective.alpha_linear, candidate.factor, loss, solution)


def _origin(basis: DifferentialBasis, near: Array) -> Array:
    """Return the point that the basis moved to zero."""
    return np.asarray(near[0] - basis.x[:, 0])


def _canonical(X: Array, Y: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Sort the rows, drop those without weight and merge copies.

    So the network depends, to the last bit, neither on the order of the rows nor on whether a row
    is repeated or weighted.
    """
    used = np.flatnonzero(weight > 0)
    keys = np.column_stack([X, Y])[used]
    order = np.lexsort(keys.T[::-1])
    keys, weight = keys[order], weight[used][order]
    first = np.flatnonzero(np.append(True, np.any(keys[1:] != keys[:-1], axis=1)))
    return keys[first, : X.shape[1]], keys[first, X.shape[1] :], np.add.reduceat(weight, first)


def _standardize(X: Array, Y: Array, weight: Array, settings: Settings) -> Rows:
    n_rows = np.count_nonzero(weight > 0)
    X, Y, weight = _canonical(X, Y, weight)
    if np.any(weight != np.round(weight)):
        weight = weight * (n_rows / weight.sum())
    x_shift, x_scale = _shift_and_scale(X, weight, settings.intercept)
    y_shift, y_scale = _shift_and_scale(Y, weight, settings.intercept)
    if settings.metric == "common":
        varying = np.ptp(X, axis=0) > 0
        if np.any(varying):
            x_scale = np.full_like(x_scale, np.sqrt(np.mean(x_scale[varying] ** 2)))
    # Rounded, so that the units of the data do not decide between equally good networks.
    Z = np.round((X - x_shift) / x_scale, _DECIMALS)
    target = np.round((Y - y_shift) / y_scale, _DECIMALS).T
    return Rows(Z, target, weight, x_shift, x_scale, y_shift, y_scale)


def _shift_and_scale(values: Array, weight: Array, center: bool) -> tuple[Array, Array]:
    """Mean (0 unless ``center``) and root mean square around it (1 where there is no spread)."""
    largest = np.abs(values).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)  # so that squares neither overflow nor vanish
    scaled = values / unit
    mean = np.average(scaled, axis=0, weights=weight) if center else np.zeros(values.shape[1])
    spread = np.sqrt(np.average((scaled - mean) ** 2, axis=0, weights=weight))
    return mean * unit, np.where(spread > 1e-13, spread, 1.0) * unit


def _choose(rows: Rows, linear: Array, settings: Settings) -> Candidate:
    """Fix the width factor, the penalties and the metric."""

    def builder(metric: Array) -> Callable[[float], Objective]:
        active = metric > 0
        near = rows.Z[:, active] * metric[active]
        centers = _place_centers(near, rows, active, metric, settings)
        sigma = widths(
            settings.width, near, centers, weight=rows.weight, n_nearest=settings.n_nearest
        )

        def build(factor: float) -> Objective:
            beta = 0.5 / (factor * sigma) ** 2
            basis = DifferentialBasis.on(
                near, centers, beta, order=settings.order, order_zero=settings.order_zero
            )
            if settings.normalize:
                basis = normalized(basis)
            return Objective(basis, linear, rows.target, rows.weight, settings.intercept)

        return build

    metric = np.ones(rows.Z.shape[1])
    learn = settings.metric == "learned"
    lasso_by_folds = settings.penalty == "lasso" and settings.alpha is None
    settled = settings.width_factor is not None and not learn
    if settled and (settings.alpha is not None or lasso_by_folds):
        factor = float(settings.width_factor or 1.0)
        objective = builder(metric)(factor)
        a = default_start(objective.basis)
        weights = Weights(a, np.empty((0, 0)), np.empty((0, 0)))
        alpha, alpha_linear = settings.alpha or 0.0, settings.alpha_linear or 0.0
        objective = objective.with_alpha(alpha, alpha_linear)
        return Candidate(np.empty(0), factor, alpha, alpha_linear, metric, objective, weights)
    return choose(
        builder,
        rows.Z.T,
        factor=settings.width_factor,
        alpha=settings.alpha if settings.penalty == "ridge" else None,
        alpha_linear=settings.alpha_linear if settings.penalty == "ridge" else None,
        learn_metric=learn,
    )


def _place_centers(
    near: Array, rows: Rows, active: Any, metric: Array, settings: Settings
) -> Array:
    how = settings.centers
    if not isinstance(how, str):
        return (((how - rows.x_shift) / rows.x_scale) * metric)[:, active]
    if how == "kmeans":
        rng = np.random.default_rng(settings.seed)
        return kmeans(near, settings.n_centers, weight=rows.weight, rng=rng)
    if how == "som":
        return self_organizing_map(near, settings.n_centers, weight=rows.weight)
    return forward_selection(near, rows.target.T, settings.n_centers, weight=rows.weight)


def _final_objective(rows: Rows, candidate: Candidate, settings: Settings) -> Objective:
    """Return the objective with the penalty asked for."""
    objective = candidate.objective
    if settings.penalty == "ridge":
        return objective
    alpha, alpha_linear = settings.alpha, settings.alpha_linear
    if alpha is None or alpha_linear is None:
        # The paper's way: the strength that cross-validation gives the plain network.
        _, _, by_output = lasso(objective.basis.phi, rows.target, rows.weight, folds=_folds(rows))
        alpha = float(by_output.mean()) if alpha is None else alpha
        alpha_linear = alpha if alpha_linear is None else alpha_linear
    return replace(objective, penalty="lasso", alpha=alpha, alpha_linear=alpha_linear)


def _folds(rows: Rows) -> Any:
    return repeatable_folds(np.column_stack([rows.Z, rows.target.T]))


def _train(
    objective: Objective, candidate: Candidate, rows: Rows, settings: Settings
) -> tuple[Solution, str]:
    """Train all weights; return the best solution and the name of the loss it minimizes."""
    if settings.order == 0:
        return _train_plain(objective, rows, settings), "squared"
    options: dict[str, Any] = {
        "max_iter": settings.max_iter or _MAX_ITER[settings.solver],
        "tol": settings.tol,
    }
    starts = _starts(objective, candidate, rows, settings)
    squared = min((_solve(objective, s, settings.solver, options) for s in starts), key=_value)
    if settings.loss == "squared":
        return squared, "squared"
    if callable(settings.loss):
        own = _own_objective(settings.loss, objective, squared.weights, rows)
        options["max_iter"] = settings.max_iter or _MAX_ITER["bfgs"]
        return bfgs.minimize(own, squared.weights, **options), "user"
    residual = objective.target - objective.predict(squared.weights)
    kind = "huber" if settings.loss == "auto" else settings.loss
    loss = Loss(kind, delta=huber_delta(residual, rows.weight), quantile=settings.quantile)
    robust = replace(objective, loss=loss)
    solution = _solve(robust, squared.weights, settings.solver, options)
    if settings.loss == "auto" and not _is_calibrated(robust, solution.weights):
        return squared, "squared"
    return solution, kind


def _own_objective(
    function: UserLoss, objective: Objective, weights: Weights, rows: Rows
) -> Objective:
    """Objective with a user's loss, brought to a scale on which the penalty means the same.

    That is the scale on which the trained network improves as much on a constant as it does in
    squared loss.
    """
    own = OwnLoss(function, rows.target, rows.y_shift, rows.y_scale)
    constant = np.average(rows.target, axis=1, weights=rows.weight)[:, None]
    residuals = rows.target - constant, rows.target - objective.predict(weights)
    squared, user = (
        [float(np.sum(loss.value(r) @ rows.weight)) for r in residuals] for loss in (Loss(), own)
    )
    if user[0] > user[1]:
        own = replace(own, factor=(squared[0] - squared[1]) / (user[0] - user[1]))
    return replace(objective, loss=own)


def _value(solution: Solution) -> float:
    return solution.value


def _solve(objective: Objective, start: Weights, solver: str, options: dict[str, Any]) -> Solution:
    minimize = {"varpro": varpro.minimize, "als": als.minimize, "bfgs": bfgs.minimize}[solver]
    return minimize(objective, start, **options)


def _train_plain(objective: Objective, rows: Rows, settings: Settings) -> Solution:
    """Weights of a plain network: closed-form ridge, or lasso."""
    if settings.penalty == "ridge":
        point = varpro.project(objective, objective.quadratic(None), np.ones(1))
        return Solution(point.weights, objective.value(point.weights), 1, True)
    w, bias, _ = lasso(
        objective.basis.phi, rows.target, rows.weight, alpha=settings.alpha, folds=_folds(rows)
    )
    weights = Weights(np.ones(1), w, bias[None])
    return Solution(weights, objective.value(weights), 1, True)


def _starts(
    objective: Objective, candidate: Candidate, rows: Rows, settings: Settings
) -> list[Weights]:
    """Return the first start (the paper's for BFGS) and the most promising random ones."""
    quadratic = objective.quadratic(None)
    if settings.solver == "bfgs":
        if settings.penalty == "lasso":
            w, _, _ = lasso(objective.basis.phi, rows.target, rows.weight, alpha=objective.alpha)
        else:
            plain = np.zeros(objective.basis.n_terms)
            plain[0] = 1.0
            w = varpro.project(objective, quadratic, plain).weights.w
        first = bfgs.taylor_start(objective, w)
    else:
        first = varpro.project(objective, quadratic, candidate.weights.a).weights
    if settings.n_starts == 1:
        return [first]
    rng = np.random.default_rng([settings.seed, 1])
    n_random = settings.n_starts - 1
    draws = rng.normal(size=(_SCREENED * n_random, objective.basis.n_terms))
    quick = replace(objective, penalty="ridge")
    trials = [varpro.minimize(quick, a, max_iter=_SCREENING_STEPS) for a in draws]
    trials.sort(key=_value)
    return [first, *(trial.weights for trial in trials[:n_random])]


def _is_calibrated(objective: Objective, weights: Weights) -> bool:
    """Whether the residuals neither have a mean nor a trend along the prediction."""
    prediction = objective.predict(weights)
    residual = objective.target - prediction
    weight, total = objective.weight, objective.total
    spread = np.sqrt(np.average(residual**2, axis=1, weights=weight))
    if np.any(spread < 1e-6):
        return False
    level = np.average(residual, axis=1, weights=weight)
    trend = prediction - np.average(prediction, axis=1, weights=weight)[:, None]
    size = np.sqrt(np.average(trend**2, axis=1, weights=weight)) + 1e-300
    slope = np.average(trend * residual, axis=1, weights=weight) / size
    limit = _CALIBRATED * spread / np.sqrt(total)
    return bool(np.all(np.abs(level) < limit) and np.all(np.abs(slope) < limit))
