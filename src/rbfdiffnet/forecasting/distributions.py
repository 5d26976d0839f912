r"""Forecast distributions that are known by their quantiles: sums, mixtures, known zeros.

Between two quantiles, values lie on a line in the quantiles of a normal variable. That is cut into
cells so small that values in a cell :math:`[a_j, b_j]` of probability :math:`w_j` may be taken to
be uniform. The sum with an independent normal variable of standard deviation s then has the
distribution function

.. math:: F(x) = \sum_j w_j \frac{\psi((x - a_j) / s) - \psi((x - b_j) / s)}{(b_j - a_j) / s},
    \qquad \psi(t) = t \, \Phi(t) + \varphi(t)

and a mixture has the cells of all of its parts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from rbfdiffnet.models.base import ForecastRequest
from rbfdiffnet.support.arrays import Array, Mask
from rbfdiffnet.support.parallel import even_chunks

_CELLS = 4  # between two quantiles
_NARROWEST = 1e-4  # cell, in standard deviations of the normal variable
_REACH = 9.0  # standard deviations beyond which no quantile lies
_STEPS = 60
_PRECISION = 1e-8  # of the width of a distribution
_AT_ONCE = 2**20  # values
_FEWEST_ZEROS = 4  # in a row at a phase of the season, before the next one is held at 0
_CHANCE = 1e-4  # of so many zeros, where they are usual


def add_normal(
    quantiles: Array, probabilities: Sequence[float], std: Array, wanted: Sequence[float]
) -> Array:
    """Return quantiles (m, W) of sums of variables and independent normal ones.

    The variables have quantiles (m, P) at ascending probabilities, the normal ones mean 0 and
    standard deviations (m,) above 0.
    """
    edges, shares = _cut_cells(quantiles, probabilities)
    found = np.empty((len(std), len(wanted)))
    for some in even_chunks(len(std), max(_AT_ONCE // (len(wanted) * shares.size), 1)):
        found[some] = _invert(edges[some], shares, std[some, None], np.array(wanted))
    return found


def mix_quantiles(
    quantiles: Array, counts: Mask, probabilities: Sequence[float], wanted: Sequence[float]
) -> Array:
    """Return quantiles (h, W) of mixtures of m variables with quantiles (m, h, P).

    Those of the variables that a mixture has are in a mask `counts` (m, h); each counts as much.
    """
    edges, shares = _cut_cells(quantiles, probabilities)
    middles = (edges[..., 1:] + edges[..., :-1]) / 2.0
    found = np.empty((counts.shape[1], len(wanted)))
    for own, chosen, values in zip(found, counts.T, middles.swapaxes(0, 1), strict=True):
        values = values[chosen].ravel()
        order = np.argsort(values, kind="stable")
        weights = np.tile(shares, chosen.sum())[order] / chosen.sum()
        own[:] = np.interp(wanted, np.cumsum(weights) - weights / 2.0, values[order])
    return found


def _cut_cells(quantiles: Array, probabilities: Sequence[float]) -> tuple[Array, Array]:
    """Return the edges (..., M + 1) of cells, and how probable the cells are, (M,)."""
    n = len(probabilities)
    places = np.linspace(0.0, n - 1.0, _CELLS * (n - 1) + 1)
    lower = np.minimum(places.astype(np.int64), n - 2)
    share = places - lower
    edges = (1.0 - share) * quantiles[..., lower] + share * quantiles[..., lower + 1]
    below = ndtr(np.interp(places, np.arange(n), ndtri(probabilities)))
    below[[0, -1]] = 0.0, 1.0
    return edges, np.diff(below)


def _invert(edges: Array, shares: Array, std: Array, wanted: Array) -> Array:
    """Find quantiles (m, W) of sums by Newton's method, kept between bounds that close in."""
    low, high = edges[:, :1] - _REACH * std, edges[:, -1:] + _REACH * std
    width, spread = high - low, std[:, :, None]
    cells = np.maximum(np.diff(edges)[:, None] / spread, _NARROWEST)
    near = np.minimum(np.searchsorted(np.cumsum(shares), wanted) + 1, shares.size)
    away = edges[:, near] - edges[:, edges.shape[1] // 2, None]  # from the middle
    x = edges[:, near] - away + np.copysign(np.hypot(away, ndtri(wanted) * std), wanted - 0.5)
    low, high = (np.repeat(end, x.shape[1], axis=1) for end in (low, high))
    done = np.zeros(x.shape, dtype=bool)
    rows = np.arange(len(x))  # that are not done yet
    for _ in range(_STEPS):
        now, thin, scale = x[rows], cells[rows], std[rows]
        left = (now[:, :, None] - edges[rows, None, :-1]) / spread[rows]
        right = left - thin
        before, after = ndtr(left), ndtr(right)
        area = left * before - right * after + _normal_density(left) - _normal_density(right)
        excess = (area / thin) @ shares - wanted
        slope = ((before - after) / thin) @ shares / scale
        low[rows] = least = np.where(excess > 0.0, low[rows], now)
        high[rows] = most = np.where(excess > 0.0, now, high[rows])
        with np.errstate(all="ignore"):
            step = now - excess / slope
        moved = np.where((step > least) & (step < most), step, (least + most) / 2.0)
        moved = np.where(done[rows], now, moved)
        done[rows] |= np.abs(moved - now) <= _PRECISION * width[rows]  # each for itself
        x[rows] = moved
        rows = rows[~done[rows].all(axis=1)]
        if not rows.size:
            break
    return np.sort(x, axis=1)


def _normal_density(t: Array) -> Array:
    return np.asarray(np.exp(-0.5 * t**2) / np.sqrt(2.0 * np.pi))


def spread_single_values(
    request: ForecastRequest, quantiles: Array, probabilities: Sequence[float]
) -> None:
    """Spread quantiles (n, h, P) of series of one value, of whose changes nothing is known.

    They are those of a normal variable whose standard deviation is half the value (of 0, one half),
    but never below 0 if the value is not.
    """
    for i in np.flatnonzero((np.ptp(quantiles, axis=2) == 0.0).all(axis=1)).tolist():
        y = request.panel[i].until(int(request.origins[i])).y
        (known,) = np.nonzero(np.isfinite(y))
        if known.size == 1:
            value = float(y[known[0]])
            spread = value + 0.5 * (abs(value) or 1.0) * ndtri(np.asarray(probabilities))
            quantiles[i] = np.maximum(spread, 0.0) if value >= 0.0 else spread


def hold_at_zero(
    request: ForecastRequest, quantiles: Array, probabilities: Sequence[float], season_length: int
) -> None:
    """Set quantiles (n, h, P) to 0 at phases of the season that always were, such as Sundays.

    After k zeros in a row another value has a probability of 1 / (k + 2), and quantiles beyond that
    stay. Phases of a series that is often zero are not held: there k zeros may be chance. Nor are
    steps with inputs that none of these zeros had, such as a Sunday on which a shop opens.
    """
    p = np.asarray(probabilities)
    for i, series in enumerate(request.panel):
        end, m = int(request.origins[i]), season_length
        first, y = end % m, series.y[:end]
        if m < 2 or end < _FEWEST_ZEROS * m or not np.any(y == 0.0) or np.nanmin(y) < 0.0:
            continue
        seasons = y[first:].reshape(-1, m)[::-1]  # the latest first
        still = np.logical_and.accumulate(~(seasons > 0.0), axis=0) & (seasons == 0.0)
        in_row = still.sum(axis=0)
        others = np.isfinite(seasons).sum() - np.isfinite(seasons).sum(axis=0)
        usual = ((seasons == 0.0).sum() - (seasons == 0.0).sum(axis=0)) / np.maximum(others, 1)
        inputs = series.known_ahead[first:end].reshape(len(seasons), m, -1)[::-1]
        for phase in np.flatnonzero((in_row >= _FEWEST_ZEROS) & (usual**in_row < _CHANCE)).tolist():
            had, ahead = inputs[still[:, phase], phase], request.ahead[i][phase::m]
            alike = ((ahead >= had.min(axis=0)) & (ahead <= had.max(axis=0))).all(axis=1)
            steps = np.arange(phase, request.h, m)[alike]
            quantiles[i, steps[:, None], p <= 1.0 - 1.0 / (in_row[phase] + 2.0)] = 0.0
