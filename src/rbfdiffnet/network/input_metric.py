r"""Learning the metric: how much each input counts inside the basis functions.

A network that responds to an input linearly, or not at all, gains nothing from seeing it there,
and in many dimensions loses a lot, because distances fill up with noise. So the metric is learned:
fit, measure how much the slope along each input varies over the data,

.. math::

    m_i = \sqrt{s_i / \max s}, \qquad s_i = \operatorname{sd}_n \frac{\partial f(x_n)}{\partial x_i}

drop inputs with :math:`s_i` below a quarter of the largest, fit again with centers in the new
metric, and keep whichever had the lower error. All inputs stay in the linear part.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rbfdiffnet.network.basis import Array
from rbfdiffnet.network.candidates import Candidate

__all__ = ["grown_metric", "improve_metric", "pruned_metrics"]

_DROP_BELOW = 0.25
_METRIC_ROUNDS = 4
_MOST_GROWTH = 3  # inputs taken back in a round
_NEWCOMER = 0.7  # their metric
_WORTHWHILE = 0.5  # standard errors by which a new metric must improve on the old one


def improve_metric(
    best: Candidate, inputs: Array, search_near: Callable[[Candidate, Array], Candidate]
) -> Candidate:
    """Drop inputs from the basis functions, take some back, as long as it helps.

    Parameters
    ----------
    best : Candidate
        Where to start.
    inputs : ndarray of shape (d, n)
        Standardized inputs.
    search_near : callable
        ``search_near(candidate, metric)`` is the best candidate with a metric, sought from the
        settings of another.

    Returns
    -------
    Candidate
    """

    def grown(candidate: Candidate) -> Candidate:
        for _ in range(_MOST_GROWTH):
            metric = grown_metric(candidate, inputs)
            larger = candidate if metric is None else search_near(candidate, metric)
            if not larger.score < candidate.score:
                break
            candidate = larger
        return candidate

    for _ in range(_METRIC_ROUNDS):
        for metric in pruned_metrics(best):
            candidate = grown(search_near(best, metric))
            if candidate.beats(best, _WORTHWHILE):
                best = candidate
                break
        else:
            break
    return best


def pruned_metrics(candidate: Candidate) -> list[Array]:
    """Metrics to try next, from how much the slope along each input varies over the data.

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


def grown_metric(candidate: Candidate, inputs: Array) -> Array | None:
    """Metric that takes the most promising dropped input back in, if there is one.

    An input is promising if products of it, or its square, with the basis functions explain the
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
