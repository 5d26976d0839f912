"""Errors on the scale of a normal variable, by the quantiles of a network, and back."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from rbfdiffnet.pretrained.network import PROBABILITIES
from rbfdiffnet.support.arrays import Array

_GRID = ndtri(np.array(PROBABILITIES))
_FARTHEST = 40.0  # a score with no probability beyond
_SURE = 1e-6  # probability of a value that is told apart from none


def to_scores(away: Array, distances: Array) -> Array:
    """Return the scores that errors have under a network's quantiles: 1.28 at that of 90 %.

    So errors of a calibrated network have normal scores. `distances` (..., q) are those of the
    quantiles at `PROBABILITIES` from the forecast, which may be the median or not. Between two
    quantiles scores are linear in the errors; beyond the outermost they are proportional to them.
    They are infinite or NaN where there are no distances.
    """
    low, step = distances[..., :-1], np.diff(distances, axis=-1)
    first, last, x = distances[..., 0], distances[..., -1], np.asarray(away)[..., None]
    with np.errstate(all="ignore"):
        flat = 0.5 * ((x > low) + 1.0 * (x >= low))
        share = np.where(step > 0.0, np.clip((x - low) / step, 0.0, 1.0), flat)
        score = _GRID[0] + share @ np.diff(_GRID)
        below = np.maximum(away / np.where(first < 0.0, first, -np.inf) - 1.0, 0.0)
        above = np.maximum(away / np.where(last > 0.0, last, np.inf) - 1.0, 0.0)
        below, above = np.where(away < first, below, 0.0), np.where(away > last, above, 0.0)
    score = score + below * _GRID[0] + above * _GRID[-1]
    return np.where(np.isnan(first + last + away), np.nan, score)


def spread_scores(low: Array, high: Array, distances: Array, n: int) -> Array:
    """Return n scores (..., n) of a value that stands for all errors from `low` to `high`.

    A count stands for all values that round to it, and the 0 of a series that is never negative for
    all below. Between the scores lie equal shares of their probability, so those of values that
    come as often as the network says are normal together.
    """
    first, last = to_scores(low, distances), to_scores(high, distances)
    first = np.where(low == -np.inf, 0.0 * last - _FARTHEST, first)
    begin, end = ndtr(first), ndtr(last)
    alone = np.where(low == -np.inf, last, 0.5 * (first + last))
    share = (end - begin)[..., None]
    found = ndtri(begin[..., None] + share * (np.arange(n) + 0.5) / n)
    return np.where(share > _SURE, found, alone[..., None])


def to_errors(scores: Array, distances: Array) -> Array:
    """Return the errors (..., P) that have signed scores (..., P); the inverse of `to_scores`.

    Where the forecast is not the median, a score of 0 is an error, too: that of the median.
    """
    d = [distances[..., k, None] for k in range(_GRID.size)]
    found = 0.0 * scores + d[0]
    for k in range(_GRID.size - 1):
        share = np.clip((scores - _GRID[k]) / (_GRID[k + 1] - _GRID[k]), 0.0, 1.0)
        found += share * (d[k + 1] - d[k])
    found += np.maximum(scores / _GRID[0] - 1.0, 0.0) * np.minimum(d[0], 0.0)
    found += np.maximum(scores / _GRID[-1] - 1.0, 0.0) * np.maximum(d[-1], 0.0)
    return np.asarray(found)
