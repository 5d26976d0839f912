r"""Choose the width factor, the penalties and the metric from the training data alone.

Settings are compared by their leave-one-out error. For a linear fit that error follows from the
leverages :math:`h_n` of the rows, without refitting:

.. math::

    \mathrm{LOO} = \frac{1}{N} \sum_n v_n \Big(\frac{r_n}{1 - h_n}\Big)^2

The leverages count the linear weights given a, and a itself through the slope of the network by a.
The search for the width factor and the penalty tries a coarse grid first, then moves from neighbor
to neighbor.

The metric says how much each input counts inside the basis functions. A network that responds to
an input linearly, or not at all, gains nothing from seeing that input there, and in many dimensions
it loses a lot, because distances fill up with noise. So the metric is learned: fit, measure how
much the slope along each input varies over the data,

.. math::

    m_i = \sqrt{s_i / \max s}, \qquad s_i = \operatorname{sd}_n \frac{\partial f(x_n)}{\partial x_i}

drop inputs with :math:`s_i` below a quarter of the largest, fit again with centers in the new
metric, and keep the metric with the lower error. All inputs stay in the linear part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from rbfdiffnet.network.basis import DifferentialBasis
from rbfdiffnet.network.objective import TRACE, Objective, Weights
from rbfdiffnet.network.projection import Projection, project
from rbfdiffnet.network.trainers import minimize_varpro
from rbfdiffnet.support.arrays import Array

_QUICK_STEPS, _QUICK_TOL = 8, 1e-3  # enough to compare settings
_MOST_FREEDOM = 0.5  # of the number of rows; beyond, leaving rows out says little

# Exponents: the width factor is 2 ** i, alpha is 10 ** j.
_FACTORS = range(-1, 5)
_ALPHAS = range(-9, 1)
_COARSE = [(i, j) for i in (0, 2, 4) for j in (-1, -4, -8)]
_LINEAR_ALPHAS = (1e-6, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
_OFF = 1e9  # alpha at which the RBF part vanishes
_CONVINCING = 2.0  # standard errors by which the RBF part must improve on the linear part alone

_DROP_BELOW = 0.25  # of the largest variation of a slope
_METRIC_ROUNDS = 4
_MOST_GROWTH = 3  # inputs taken back in a round
_NEWCOMER = 0.7  # metric of an input that is taken back
_WORTHWHILE = 0.5  # standard errors by which a new metric must improve on the old one

#: Builds the objective for a width factor; there is one for every metric.
Builder = Callable[[float], Objective]


@dataclass(frozen=True)
class Candidate:
    """One choice of settings, fitted roughly, with its squared leave-one-out errors (n,)."""

    errors: Array
    factor: float
    metric: Array
    objective: Objective  # with the penalties chosen
    weights: Weights

    @classmethod
    def without_score(cls, objective: Objective, factor: float, metric: Array) -> Candidate:
        """Return settings that need no comparison, at the default start."""
        phi, linear, target = objective.basis.phi, objective.linear, objective.target
        w, slopes = np.zeros((len(phi), len(target))), np.zeros((len(linear), len(target)))
        weights = Weights(default_start(objective.basis), w, slopes)
        return cls(np.full(len(objective.weight), np.nan), factor, metric, objective, weights)

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

    def clip_errors(self, limit: float) -> Candidate:
        """Return the same candidate with errors cut off at a limit (infinite scores stay)."""
        if limit == np.inf or not np.isfinite(self.score):
            return self
        return replace(self, errors=np.minimum(self.errors, limit))

    def beats(self, other: Candidate, standard_errors: float) -> bool:
        """Tell whether the error is lower than another's by so many standard errors of the gain."""
        if not np.isfinite(other.score):
            return bool(np.isfinite(self.score))
        if not np.isfinite(self.score):
            return False
        weight = self.objective.weight
        gain = other.errors - self.errors
        mean = float(np.average(gain, weights=weight))
        spread = float(np.sqrt(np.average((gain - mean) ** 2, weights=weight) / len(weight)))
        return mean > standard_errors * spread


def default_start(basis: DifferentialBasis) -> Array:
    """Return weights a to start from: all terms weigh the same."""
    return np.full(basis.n_terms, basis.n_terms**-0.5)


def fit_candidate(
    objective: Objective, a: Array, factor: float, metric: Array, *, steps: int = _QUICK_STEPS
) -> Candidate:
    """Fit an objective roughly, in a few steps from a, and score it."""
    if objective.basis.order and steps:
        a = minimize_varpro(objective, a, max_iter=steps, tol=_QUICK_TOL).weights.a
    point = project(objective, objective.quadratic(None), a)
    errors = leave_one_out_errors(objective, point)
    return Candidate(errors, factor, metric, objective, point.weights)


def leave_one_out_errors(objective: Objective, point: Projection) -> Array:
    """Approximate the squared leave-one-out errors of a fitted point (squared loss, ridge).

    The result has shape (n,): the mean over the outputs, infinite where the fit uses up its data.
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
        # The linear weights answer a change of a. What is left of its effect after that?
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


def choose_settings(
    builder: Callable[[Array], Builder],
    inputs: Array,
    metric: Array,
    *,
    factor: float | None,
    alpha: float | None,
    alpha_linear: float | None,
    learn_metric: bool,
    may_switch_off: bool,
    robust: bool = False,
) -> Candidate:
    """Choose whichever of factor, alpha and alpha_linear is None, and perhaps the metric.

    `builder(metric)(factor)` makes the objective; `inputs` are standardized, shape (d, n); `metric`
    is fixed, or where learning starts. The RBF part may be dropped where it does not convince. With
    `robust`, an error counts at most as six robust standard deviations of the linear model's.
    """
    factors = [2.0**i for i in _FACTORS] if factor is None else [factor]
    alphas = [10.0**j for j in _ALPHAS] if alpha is None else [alpha]
    linear_alphas = _LINEAR_ALPHAS if alpha_linear is None else (alpha_linear,)
    build, middle = builder(metric), factors[len(factors) // 2]
    first = build(middle)
    linear_only = _best_of(
        fit_candidate(
            first.with_alpha(_OFF, strength), default_start(first.basis), middle, metric, steps=0
        )
        for strength in linear_alphas
    )
    limit = _largest_error(linear_only) if robust else np.inf
    linear_only = linear_only.clip_errors(limit)
    grid: Any = (factors, alphas, linear_only.objective.alpha_linear, limit)
    best = _GridSearch(build, metric, *grid).walk(
        (i - _FACTORS[0] if factor is None else 0, j - _ALPHAS[0] if alpha is None else 0)
        for i, j in _COARSE
    )
    if learn_metric:

        def search_near(known: Candidate, metric: Array) -> Candidate:
            cell = factors.index(known.factor), alphas.index(known.objective.alpha)
            return _GridSearch(builder(metric), metric, *grid).walk([cell])

        best = _improve_metric(best, inputs, search_near)
    others = [
        best.objective.with_alpha(best.objective.alpha, strength)
        for strength in linear_alphas
        if strength != best.objective.alpha_linear
    ]
    trials = [fit_candidate(o, best.weights.a, best.factor, best.metric) for o in others]
    best = _best_of([best, *(trial.clip_errors(limit) for trial in trials)])
    if may_switch_off and not best.beats(linear_only, _CONVINCING):
        return linear_only
    return best


@dataclass
class _GridSearch:
    """Search over width factor and alpha for one metric, with a memory of what was tried.

    A cell is a pair of positions, in `factors` and in `alphas`.
    """

    build: Builder
    metric: Array
    factors: list[float]
    alphas: list[float]
    alpha_linear: float
    limit: float
    tried: dict[tuple[int, int], Candidate] = field(default_factory=dict)
    objectives: dict[int, Objective] = field(default_factory=dict)

    def walk(self, cells: Iterable[tuple[int, int]]) -> Candidate:
        """Fit some cells, then move from the best to better neighbors until there is none."""
        best = None
        while True:
            for i, j in cells:
                on_grid = 0 <= i < len(self.factors) and 0 <= j < len(self.alphas)
                if on_grid and (i, j) not in self.tried:
                    self.tried[i, j] = self._fit(i, j).clip_errors(self.limit)
            (i, j), found = min(self.tried.items(), key=lambda item: item[1].score)
            if found is best:
                return found
            best, cells = found, [(i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)]

    def _fit(self, i: int, j: int) -> Candidate:
        """Fit one cell, starting from the weights of the nearest cell tried before."""
        if i not in self.objectives:
            self.objectives[i] = self.build(self.factors[i])
        objective = self.objectives[i].with_alpha(self.alphas[j], self.alpha_linear)
        nearest = min(
            self.tried, key=lambda cell: abs(cell[0] - i) + abs(cell[1] - j), default=None
        )
        known = self.tried[nearest].weights.a if nearest else default_start(objective.basis)
        return fit_candidate(objective, known, self.factors[i], self.metric)


def _improve_metric(
    best: Candidate, inputs: Array, search_near: Callable[[Candidate, Array], Candidate]
) -> Candidate:
    """Drop inputs from the basis functions and take some back, as long as that helps.

    `inputs` are standardized, shape (d, n). `search_near(candidate, metric)` finds the best
    candidate with a metric, starting from the settings of another candidate.
    """

    def grow(candidate: Candidate) -> Candidate:
        for _ in range(_MOST_GROWTH):
            metric = grow_metric(candidate, inputs)
            larger = candidate if metric is None else search_near(candidate, metric)
            if not larger.score < candidate.score:
                break
            candidate = larger
        return candidate

    for _ in range(_METRIC_ROUNDS):
        for metric in prune_metric(best):
            candidate = grow(search_near(best, metric))
            if candidate.beats(best, _WORTHWHILE):
                best = candidate
                break
        else:
            break
    return best


def prune_metric(candidate: Candidate) -> list[Array]:
    """Return metrics to try next, from how much the slope along each input varies over the data.

    The first drops inputs with little variation, the second all but the stronger half.
    """
    active = np.flatnonzero(candidate.metric > 0)
    weight = candidate.objective.weight
    variance = np.zeros(len(active))
    for w in candidate.weights.w.T:
        slope = candidate.objective.basis.input_gradient(candidate.weights.a, w)
        slope -= np.average(slope, axis=1, weights=weight)[:, None]
        variance += np.average(slope**2, axis=1, weights=weight)
    spread = np.sqrt(variance) * candidate.metric[active]
    if len(active) < 2 or not spread.max() > 0.0:
        return []
    spread /= spread.max()
    half = np.argsort(-spread, kind="stable")[: (len(spread) + 1) // 2]
    metrics = []
    for keep in (np.flatnonzero(spread >= _DROP_BELOW), half):
        metric = np.zeros_like(candidate.metric)
        metric[active[keep]] = np.sqrt(spread[keep])
        metrics.append(metric)
    return metrics


def grow_metric(candidate: Candidate, inputs: Array) -> Array | None:
    """Return a metric that takes the most promising dropped input back in, if there is one.

    An input is promising if the basis functions times the input, or times its square, explain the
    residual.
    """
    phi, weight = candidate.objective.basis.phi, candidate.objective.weight
    residual = candidate.objective.target - candidate.objective.predict(candidate.weights)
    dropped = np.flatnonzero(candidate.metric == 0)
    if not dropped.size:
        return None
    explained = []
    for i in dropped:
        products = np.concatenate([phi * inputs[i], phi * inputs[i] ** 2])
        products -= np.average(products, axis=1, weights=weight)[:, None]
        moment = (products * weight) @ residual.T
        gram = (products * weight) @ products.T
        gram[np.diag_indices_from(gram)] += 1e-3 * np.trace(gram) / len(gram) + 1e-300
        explained.append(float(np.sum(moment * np.linalg.solve(gram, moment))))
    metric = candidate.metric.copy()
    metric[dropped[int(np.argmax(explained))]] = _NEWCOMER
    return metric


def _largest_error(candidate: Candidate) -> float:
    """Return the largest squared error that counts in full: six robust standard deviations."""
    middle = float(np.median(np.sqrt(candidate.errors)))
    return (6.0 * middle / 0.6745) ** 2 if 0.0 < middle < np.inf else np.inf


def _best_of(candidates: Iterable[Candidate]) -> Candidate:
    return min(candidates, key=lambda candidate: candidate.score)
