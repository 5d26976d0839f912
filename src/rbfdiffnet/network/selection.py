"""Choosing the width factor, the penalties and the metric from the training data alone.

Settings are compared by their leave-one-out error (`network.candidates`), on a grid, coarse
first, then from neighbor to neighbor. How the metric is learned stands in
`rbfdiffnet.network.input_metric`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rbfdiffnet.network.basis import Array
from rbfdiffnet.network.candidates import Candidate, default_start, fit_candidate
from rbfdiffnet.network.input_metric import improve_metric
from rbfdiffnet.network.objective import Objective

__all__ = ["Builder", "Search", "choose"]

_CONVINCING = 2.0  # standard errors by which the RBF part must improve on the linear part alone

# Exponents: the width factor is 2 ** i, alpha is 10 ** j.
_FACTORS = range(-1, 5)
_ALPHAS = range(-9, 1)
_COARSE = [(i, j) for i in (0, 2, 4) for j in (-1, -4, -8)]
_LINEAR_ALPHAS = (1e-6, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
_OFF = 1e9  # alpha at which the RBF part vanishes

#: Builds the objective for a width factor; one for every metric.
Builder = Callable[[float], Objective]


@dataclass
class Search:
    """Search over width factor and alpha for one metric, with a memory of what was tried."""

    build: Builder
    metric: Array
    factors: list[float]
    alphas: list[float]
    alpha_linear: float
    start: Array
    limit: float
    tried: dict[tuple[int, int], Candidate] = field(default_factory=dict)
    objectives: dict[int, Objective] = field(default_factory=dict)

    def best(self) -> Candidate:
        """Return the best candidate so far."""
        return min(self.tried.values(), key=_score)

    def grid(self, cells: list[tuple[int, int]]) -> None:
        """Try cells (positions in ``factors`` and ``alphas``)."""
        for cell in cells:
            self._try(cell)

    def walk(self) -> Candidate:
        """Move to better neighbors until there is none."""
        while True:
            best = self.best()
            i, j = next(cell for cell, candidate in self.tried.items() if candidate is best)
            self.grid([(i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)])
            if self.best() is best:
                return best

    def _try(self, cell: tuple[int, int]) -> None:
        i, j = cell
        if cell in self.tried or not (0 <= i < len(self.factors) and 0 <= j < len(self.alphas)):
            return
        if i not in self.objectives:
            self.objectives[i] = self.build(self.factors[i])
        objective = self.objectives[i].with_alpha(self.alphas[j], self.alpha_linear)
        start = min(
            self.tried.items(),
            key=lambda item: abs(item[0][0] - i) + abs(item[0][1] - j),
            default=(None, None),
        )[1]
        a = self.start if start is None else start.weights.a
        candidate = fit_candidate(objective, a, self.factors[i], self.metric)
        self.tried[cell] = candidate.limited(self.limit)


def choose(
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
    """Choose what is None: the width factor, alpha and alpha_linear, and perhaps the metric.

    Parameters
    ----------
    builder : callable
        ``builder(metric)(factor)`` is the objective for a metric and a width factor.
    inputs : ndarray of shape (d, n)
        Standardized inputs.
    metric : ndarray of shape (d,)
        The metric, or where to start learning it.
    factor, alpha, alpha_linear : float or None
    learn_metric : bool
    may_switch_off : bool
        Whether the RBF part may be dropped where it does not convince.
    robust : bool, default=False
        Whether errors beyond six robust standard deviations of the linear model's errors count
        no more than that.

    Returns
    -------
    Candidate
    """
    factors = [2.0**i for i in _FACTORS] if factor is None else [factor]
    alphas = [10.0**j for j in _ALPHAS] if alpha is None else [alpha]
    coarse = [
        (i - _FACTORS[0] if factor is None else 0, j - _ALPHAS[0] if alpha is None else 0)
        for i, j in _COARSE
    ]
    build = builder(metric)
    middle = factors[len(factors) // 2]
    first = build(middle)
    start = default_start(first.basis)
    linear_alphas = _LINEAR_ALPHAS if alpha_linear is None else (alpha_linear,)
    linear_only = min(
        (
            fit_candidate(first.with_alpha(_OFF, strength), start, middle, metric, steps=0)
            for strength in linear_alphas
        ),
        key=_score,
    )
    limit = _outlier_limit(linear_only) if robust else np.inf
    linear_only = linear_only.limited(limit)
    first_linear = linear_only.alpha_linear
    search = Search(build, metric, factors, alphas, first_linear, start, limit)
    search.grid(coarse)
    best = search.walk()
    if learn_metric:

        def search_near(known: Candidate, metric: Array) -> Candidate:
            build = builder(metric)
            start = default_start(build(known.factor).basis)
            search = Search(build, metric, factors, alphas, first_linear, start, limit)
            search.grid([(factors.index(known.factor), alphas.index(known.alpha))])
            return search.walk()

        best = improve_metric(best, inputs, search_near)
    trials = [
        fit_candidate(
            best.objective.with_alpha(best.alpha, strength),
            best.weights.a,
            best.factor,
            best.metric,
        ).limited(limit)
        for strength in linear_alphas
        if strength != best.alpha_linear
    ]
    best = min([best, *trials], key=_score)
    if may_switch_off and not best.beats(linear_only, _CONVINCING):
        return linear_only
    return best


def _outlier_limit(candidate: Candidate) -> float:
    """Largest squared error that counts in full: six robust standard deviations."""
    middle = float(np.median(np.sqrt(candidate.errors)))
    return (6.0 * middle / 0.6745) ** 2 if 0.0 < middle < np.inf else np.inf


def _score(candidate: Candidate) -> float:
    return candidate.score
