"""From rows to a network: standardize, place centers, choose settings, train."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rbfdiffnet.network.basis import DifferentialBasis, evaluate
from rbfdiffnet.network.centers import Placement, place_centers
from rbfdiffnet.network.choose import Candidate, choose_settings
from rbfdiffnet.network.losses import CustomLoss, Loss, LossFunction, huber_delta
from rbfdiffnet.network.network import Network, apply_metric, linear_inputs
from rbfdiffnet.network.objective import Objective, Solution, Weights
from rbfdiffnet.network.projection import project
from rbfdiffnet.network.rows import StandardizedRows, standardize_rows
from rbfdiffnet.network.trainers import (
    SOLVERS,
    assign_folds,
    lasso,
    minimize_bfgs,
    ridge,
    spectral_starts,
    taylor_start,
)
from rbfdiffnet.network.widths import WidthRule, widths
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.stability import LARGEST

METRICS = ("learned", "standard", "common")

_ROWS_TO_CHOOSE = 4000  # on which settings are compared
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
    basis: str = "gaussian"
    centers: str | Array | Placement = "kmeans"
    width: str | WidthRule = "cluster"
    width_factor: float | None = None
    n_nearest: int = 10
    metric: str | Array = "standard"
    solver: str = "varpro"
    loss: str | LossFunction = "squared"
    quantile: float = 0.5
    penalty: str = "ridge"
    alpha: float | None = None
    alpha_linear: float | None = None
    n_starts: int = 1
    max_iter: int | None = None
    tol: float = 1e-6
    seed: int = 0

    @property
    def metric_name(self) -> str | None:
        """Name of the metric; None where its numbers are given."""
        return self.metric if isinstance(self.metric, str) else None

    @property
    def is_robust(self) -> bool:
        """Whether the loss is one of ours, and not the squared one."""
        return self.loss != "squared" and not callable(self.loss)


@dataclass(frozen=True)
class NetworkFit:
    """A trained network and how it came about."""

    network: Network
    alpha: float
    alpha_linear: float
    width_factor: float
    loss: str
    solution: Solution


def fit_network(X: Array, Y: Array, weight: Array, settings: Settings) -> NetworkFit:
    """Train a network on X (n, d), Y (n, m) and weights (n,), not negative and not all zero."""
    rows = standardize_rows(
        X, Y, weight, center_target=settings.intercept, common=settings.metric_name == "common"
    )
    clipped = rows.clip_outliers() if settings.order > 0 and settings.is_robust else rows
    candidate = _choose_candidate(clipped.subsample(_ROWS_TO_CHOOSE), settings)
    near = apply_metric(rows.Z, candidate.metric)
    basis = _basis(near, candidate.centers, candidate.beta, settings)
    objective = _add_penalty(rows, _objective(rows, basis, settings), candidate, settings)
    objective, solution, loss = _train(objective, candidate, clipped, settings)
    weights = solution.weights.with_unit_a() if settings.order else solution.weights
    network = Network(
        centers=candidate.centers,
        beta=basis.beta,
        a=weights.a,
        w=weights.w,
        linear=weights.linear,
        x_shift=rows.x_shift,
        x_scale=rows.x_scale,
        metric=candidate.metric,
        y_shift=rows.y_shift,
        y_scale=rows.y_scale,
        n_lags=_n_lags(rows, settings),
        order=settings.order,
        order_zero=settings.order_zero,
        intercept=settings.intercept,
        normalize=settings.normalize,
        unit=basis.unit,
        basis=settings.basis,
    )
    return NetworkFit(
        network, objective.alpha, objective.alpha_linear, candidate.factor, loss, solution
    )


def _n_lags(rows: StandardizedRows, settings: Settings) -> int:
    return rows.Z.shape[1] if settings.n_lags is None else settings.n_lags


def _basis(near: Array, centers: Array, beta: Array, settings: Settings) -> DifferentialBasis:
    """Return the basis functions at rows to which the metric was applied."""
    basis = evaluate(
        settings.basis,
        near,
        centers,
        beta,
        order=settings.order,
        order_zero=settings.order_zero,
    )
    return basis.normalize() if settings.normalize else basis


def _objective(rows: StandardizedRows, basis: DifferentialBasis, settings: Settings) -> Objective:
    """Return the training problem without its penalty."""
    offset = rows.x_shift / rows.x_scale
    linear = linear_inputs(rows.Z, _n_lags(rows, settings), settings.intercept, offset)
    return Objective(basis, linear, rows.target, rows.weight, settings.intercept)


def _choose_candidate(rows: StandardizedRows, settings: Settings) -> Candidate:
    """Choose the width factor, the penalties and the metric, where they are not given."""

    def builder(metric: Array) -> Callable[[float], Objective]:
        near = apply_metric(rows.Z, metric)
        centers = _place_centers(near, rows, metric, settings)
        sigma = widths(
            settings.width, near, centers, weight=rows.weight, n_nearest=settings.n_nearest
        )

        def build(factor: float) -> Objective:
            beta = 0.5 / (factor * sigma) ** 2
            return _objective(rows, _basis(near, centers, beta, settings), settings)

        return build

    given = settings.metric
    metric = np.ones(rows.Z.shape[1]) if isinstance(given, str) else given
    ridge, learn = settings.penalty == "ridge", settings.metric_name == "learned"
    # The strength of a lasso is chosen later, by cross-validation.
    factor, alpha = settings.width_factor, settings.alpha
    if factor is not None and not learn and not (ridge and alpha is None):
        objective = builder(metric)(factor)
        objective = objective.with_alpha(alpha or 0.0, settings.alpha_linear or 0.0)
        return Candidate.without_score(objective, factor, metric)
    return choose_settings(
        builder,
        rows.Z.T,
        metric,
        factor=factor,
        alpha=alpha if ridge else None,
        alpha_linear=settings.alpha_linear if ridge else None,
        learn_metric=learn,
        may_switch_off=ridge and alpha is None and settings.order > 0,
        robust=settings.is_robust,
    )


def _place_centers(near: Array, rows: StandardizedRows, metric: Array, settings: Settings) -> Array:
    how = settings.centers
    if isinstance(how, np.ndarray):
        with np.errstate(over="ignore"):
            how = (how - rows.x_shift) / rows.x_scale
        if np.abs(how).max() > LARGEST:
            raise ValueError("centers lie too far from X: give them in the units of X")
        return apply_metric(how, metric)
    rng = np.random.default_rng(settings.seed)
    return place_centers(
        how, near, settings.n_centers, y=rows.target.T, weight=rows.weight, rng=rng
    )


def _add_penalty(
    rows: StandardizedRows, objective: Objective, candidate: Candidate, settings: Settings
) -> Objective:
    """Return the objective with the penalty that the settings ask for."""
    if settings.penalty == "ridge":
        return objective.with_alpha(candidate.objective.alpha, candidate.objective.alpha_linear)
    alpha, alpha_linear = settings.alpha, settings.alpha_linear
    if settings.order == 0:  # chosen together with the weights, for each output
        return replace(objective, penalty="lasso", alpha=alpha or 0.0)
    if alpha is None or alpha_linear is None:
        # As in the paper: the strength that cross-validation chooses for the plain network.
        _, _, by_output = lasso(
            objective.basis.phi, rows.target, rows.weight, folds=_folds_of(rows)
        )
        alpha = alpha_linear = float(by_output.mean())
    return replace(objective, penalty="lasso", alpha=alpha, alpha_linear=alpha_linear)


def _folds_of(rows: StandardizedRows) -> Any:
    return assign_folds(np.column_stack([rows.Z, rows.target.T]))


def _train(
    objective: Objective, candidate: Candidate, rows: StandardizedRows, settings: Settings
) -> tuple[Objective, Solution, str]:
    """Train all weights; return the objective, the best solution and the name of the loss.

    With a robust loss the targets of `rows` are clipped; those of the objective are not.
    """
    if settings.order == 0:
        return _train_plain(objective, rows, settings)
    options: dict[str, Any] = {
        "max_iter": settings.max_iter or SOLVERS[settings.solver][1],
        "tol": settings.tol,
    }
    # Outliers would throw least squares off, so robust losses start from clipped targets.
    clipped = replace(objective, target=rows.target)
    starts = _starts(clipped, candidate, rows, settings)
    squared = min(
        (_solve(clipped, start, settings.solver, options) for start in starts),
        key=lambda s: s.value,
    )
    if settings.loss == "squared":
        return objective, squared, "squared"
    if callable(settings.loss):
        custom = _with_custom_loss(settings.loss, objective, squared.weights, rows)
        options["max_iter"] = settings.max_iter or SOLVERS["bfgs"][1]
        return custom, minimize_bfgs(custom, squared.weights, **options), "user"
    residual = clipped.target - clipped.predict(squared.weights)
    kind = "huber" if settings.loss == "auto" else settings.loss
    loss = Loss(kind, delta=huber_delta(residual, rows.weight), quantile=settings.quantile)
    robust = replace(objective, loss=loss)
    solution = _solve(robust, squared.weights, settings.solver, options)
    if settings.loss == "auto" and not _is_calibrated(robust, solution.weights):
        if not np.array_equal(clipped.target, objective.target):
            squared = _solve(objective, squared.weights, settings.solver, options)
        return objective, squared, "squared"
    return robust, solution, kind


def _with_custom_loss(
    function: LossFunction, objective: Objective, weights: Weights, rows: StandardizedRows
) -> Objective:
    """Return the objective with a user's loss, on a scale on which the penalty means the same.

    On that scale the trained network improves on a constant as much as it does in squared loss.
    """
    custom = CustomLoss(function, rows.target, rows.y_shift, rows.y_scale)
    constant = np.average(rows.target, axis=1, weights=rows.weight)[:, None]
    residuals = rows.target - constant, rows.target - objective.predict(weights)
    squared, user = (
        [float(np.sum(loss.value(r) @ rows.weight)) for r in residuals] for loss in (Loss(), custom)
    )
    if not np.all(np.isfinite(user)):
        raise ValueError("loss returned values that are not finite for ordinary predictions")
    if user[0] > user[1]:
        custom = replace(custom, factor=(squared[0] - squared[1]) / (user[0] - user[1]))
    return replace(objective, loss=custom)


def _solve(objective: Objective, start: Weights, solver: str, options: dict[str, Any]) -> Solution:
    return SOLVERS[solver][0](objective, start, **options)


def _train_plain(
    objective: Objective, rows: StandardizedRows, settings: Settings
) -> tuple[Objective, Solution, str]:
    """Train the weights of a plain network: ridge in closed form, or lasso."""
    if settings.penalty == "ridge":
        weights = ridge(objective)
    else:
        phi, folds = objective.basis.phi, _folds_of(rows)
        w, bias, used = lasso(phi, rows.target, rows.weight, alpha=settings.alpha, folds=folds)
        weights = Weights(np.ones(1), w, bias[None])
        objective = replace(objective, alpha=float(used.mean()))
    return objective, Solution(weights, objective.value(weights), 1, True), "squared"


def _starts(
    objective: Objective, candidate: Candidate, rows: StandardizedRows, settings: Settings
) -> list[Weights]:
    """Return the first start (for BFGS that of the paper), then spectral and random starts."""
    quadratic = objective.quadratic(None)
    if settings.solver == "bfgs":
        if settings.penalty == "lasso":
            w, _, _ = lasso(objective.basis.phi, rows.target, rows.weight, alpha=objective.alpha)
        else:
            constant = objective.linear[-1:] if objective.constant else objective.linear[:0]
            w = ridge(
                replace(objective, basis=objective.basis.without_derivatives(), linear=constant)
            ).w
        first = taylor_start(objective, w)
    else:
        first = project(objective, quadratic, candidate.weights.a).weights
    if settings.n_starts == 1:
        return [first]
    rng = np.random.default_rng([settings.seed, 1])
    draws = [
        *spectral_starts(replace(objective, penalty="ridge")),
        *rng.normal(size=(settings.n_starts, objective.basis.n_terms)),
    ]
    others = draws[: settings.n_starts - 1]
    return [first, *(project(objective, quadratic, a).weights for a in others)]


def _is_calibrated(objective: Objective, weights: Weights) -> bool:
    """Tell whether the residuals have neither a mean nor a trend along the prediction."""
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
