r"""Scores of one-step forecasts, made normal by what the scores of a series and its panel show.

A network's scores of clean values are about normal. What is left is corrected for each series,

.. math:: |s| = e^{a \pm b} \, |z| \, e^{h z^2 / 2}, \qquad z \sim N(0, 1)

where a is the scale of the scores s, b how much larger it is above than below the forecast, and h
how heavy their tails are (Tukey's h). Logarithms of the quantiles of :math:`|s|`, divided by those
of :math:`|z|`, are linear in a and h, so these are found by weighted least squares, with the
known covariance of quantiles. Only quantiles up to 97.5 % count: anomalies lie beyond, so they
hardly move a and h, and the tail that is missing follows from the curve. Then scores beyond 3.5 are
left out, and a and h are found again.

A series with few scores says little about a, b and h. So they are drawn to their means over the
panel, and those to usual values (empirical Bayes): the less scores there are, and the more alike
series are, the closer. Series that are often zero have means of their own.

Scores are judged by an a and an h that were found from themselves, too. A score at the limit z
moves the limit away by :math:`d' C t` in logarithms, where C is the covariance of what is unknown
of a and h, :math:`d = (1, z^2 / 2)`, and t is what such a score tells: its influence on them, times
the precision. What is unknown of the limit lets more scores pass, as many as if the limit were
:math:`(z^2 - 1) d' C d / 2` closer, since the normal tail is curved. Both are of order 1/n; a and h
are changed by the difference, so that the levels 95 and 99 mark as many as they say. Below 80
scores terms of higher order count, too, so less of the change is made, and none below 20.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import lambertw, ndtri

from rbfdiffnet.support.arrays import Array, Ints, Mask

#: No score is larger.
LARGEST_SCORE = 40.0
_GRID = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975])  # probabilities of quantiles of sizes
_NORMAL = ndtri(0.5 + _GRID / 2.0)
_LAST = float(_NORMAL[-1])
_DENSITY = np.sqrt(2.0 / np.pi) * np.exp(-(_NORMAL**2) / 2.0)  # of sizes
_DESIGN = np.column_stack([np.ones(_GRID.size), _NORMAL**2 / 2.0])
_CLEAN = 3.5  # score beyond which a value does not count
_LIMITS = ndtri([0.975, 0.995])  # of the levels 95 and 99
_AT_LIMITS = np.column_stack([np.ones(2), _LIMITS**2 / 2.0])
_ROUNDS = 3  # in which a and h are found, the later ones without such values
_STEPS = 8  # of expectation maximization
_SIDE = 0.9  # level of the quantiles that are compared above and below the forecast
_FEW = 20  # scores, up to which sides are not compared, and a and h not corrected
_ENOUGH = 60.0  # more scores than that, from which on they wholly are
_USUAL, _SPREAD = np.array([0.0, 0.02]), np.array([0.5, 0.1])  # of a and h
_SIDE_SPREAD = 0.1  # of b
_COUNT = 4.0  # series that the usual values count as
_THINNEST, _HEAVIEST = -0.06, 0.4  # h


@dataclass(frozen=True)
class Calibration:
    """What makes the scores of n series normal: a, b and h, each of shape (n,)."""

    scale: Array
    side: Array
    heavy: Array

    @classmethod
    def of(cls, scores: Sequence[Array], sparse: Mask) -> Calibration:
        """Learn from the scores of series, arrays of any size; some series are often zero."""
        n = len(scores)
        found = cls(np.zeros(n), np.zeros(n), np.zeros(n))
        for kind in (sparse, ~sparse):
            chosen = np.flatnonzero(kind)
            if chosen.size:
                own = _calibrate([scores[i] for i in chosen.tolist()])
                for name in ("scale", "side", "heavy"):
                    getattr(found, name)[chosen] = getattr(own, name)
        return found

    def to_normal(self, scores: Array, series: Ints) -> Array:
        """Return the normal scores of scores of these series, both of shape (m,)."""
        side = np.where(scores < 0.0, -1.0, 1.0) * self.side[series]
        size = np.abs(scores) * np.exp(-self.scale[series] - side)
        return np.copysign(_find_normal(size, self.heavy[series]), scores)

    def from_normal(self, z: float) -> tuple[Array, Array]:
        """Return the sizes of the scores (n,) below and above that have a normal score z."""
        size = np.exp(self.scale) * _find_size(z, self.heavy)
        return size * np.exp(-self.side), size * np.exp(self.side)


def _find_size(z: float, heavy: Array) -> Array:
    """Return z exp(h z^2 / 2); of thin tails, proportional beyond the last quantile."""
    square = np.where(heavy < 0.0, min(z, _LAST) ** 2, z**2)
    return np.asarray(z * np.exp(heavy * square / 2.0))


def _find_normal(size: Array, heavy: Array) -> Array:
    """Return the z of sizes: the inverse of `_find_size`, by the function of Lambert."""
    size = np.minimum(size, 1e100)
    far = (heavy < 0.0) & (size > _find_size(_LAST, heavy))
    h = np.where(far | (heavy == 0.0), 1.0, heavy)
    product: Any = h * size**2
    z = np.sqrt(np.maximum(lambertw(product).real / h, 0.0))
    z = np.where(heavy == 0.0, size, z)
    z = np.where(far, size * np.exp(-heavy * _LAST**2 / 2.0), z)
    return np.minimum(z, LARGEST_SCORE)


def _calibrate(scores: Sequence[Array]) -> Calibration:
    """Find a, b and h of series of one kind."""
    counts = np.array([own.size for own in scores])
    owner = np.repeat(np.arange(len(scores)), counts)
    flat = np.concatenate(scores)
    side = _find_sides(scores)
    zero = np.zeros(len(scores))
    found, clean = Calibration(zero, side, zero), np.ones(flat.size, dtype=bool)
    sizes = np.abs(found.to_normal(flat, owner))
    for _ in range(_ROUNDS):
        parts = np.split(sizes[clean], np.cumsum(np.bincount(owner[clean], minlength=counts.size)))
        fitted, precision, pull = _fit_curves(parts[:-1])
        own, cover = _shrink(fitted, precision)
        share = np.clip((np.array([part.size for part in parts[:-1]]) - _FEW) / _ENOUGH, 0.0, 1.0)
        a, h = (own + share[:, None] * _leave_themselves_out(cover, pull)).T
        found = Calibration(a, side, np.clip(h, _THINNEST, _HEAVIEST))
        clean = np.abs(found.to_normal(flat, owner)) <= _CLEAN
    return found


def quantiles(values: Array, probabilities: Array) -> Array:
    """Return quantiles, the middle of the steps of the distribution: these values lie beyond."""
    at = probabilities * values.size - 0.5
    return np.interp(at, np.arange(values.size), np.sort(values))


def _fit_curves(sizes: Sequence[Array]) -> tuple[Array, Array, Array]:
    """Return a and h of each series (n, 2), how precise they are, and what one value tells.

    These are matrices (n, 2, 2); rows of the last are for a value at each of the `_LIMITS`.
    Quantiles that are about 0, where many values are just what was forecast, do not count.
    """
    found, (precision, pull) = np.zeros((len(sizes), 2)), np.zeros((2, len(sizes), 2, 2))
    for i, own in enumerate(sizes):
        if not own.size:
            continue
        first = np.searchsorted(_GRID, 0.5 + np.count_nonzero(own == 0.0) / (2.0 * own.size))
        if first < len(_WEIGHTS):
            matrix, precise, pull[i] = _WEIGHTS[first]
            ratio = quantiles(own, _GRID[first:]) / _NORMAL[first:]
            found[i], precision[i] = matrix @ np.log(ratio), own.size * precise
    return found, precision, pull


def _weights(first: int) -> tuple[Array, Array, Array]:
    """Return what leads from logarithms of quantiles to a and h, and its precision with one value.

    Last is what a value at each of the `_LIMITS` tells. Quantiles before the first do not count.
    """
    p, design = _GRID[first:], _DESIGN[first:]
    size = (_DENSITY * _NORMAL)[first:]
    covariance = np.minimum.outer(p, p) * (1.0 - np.maximum.outer(p, p)) / np.outer(size, size)
    weight = np.linalg.solve(covariance, design).T
    precision = weight @ design
    below = np.heaviside(np.round(_NORMAL[first:] - _LIMITS[:, None], 9), 0.5)  # 0.5: at a limit
    return np.linalg.solve(precision, weight), precision, (p - below) / size @ weight.T


_WEIGHTS = [_weights(first) for first in range(_GRID.size - 1)]


def _leave_themselves_out(cover: Array, pull: Array) -> Array:
    """Return changes (n, 2) of a and h that let values be judged as if by others; see above."""
    unknown = np.einsum("za,nab,zb->nz", _AT_LIMITS, cover, _AT_LIMITS)
    moved = np.einsum("za,nab,nzb->nz", _AT_LIMITS, cover, pull)
    change = (_LIMITS**2 - 1.0) / 2.0 * unknown - moved
    change[~pull.any(axis=(1, 2))] = 0.0  # nothing was found from them
    return np.asarray(change @ np.linalg.inv(_AT_LIMITS).T)


def _shrink(found: Array, precision: Array) -> tuple[Array, Array]:
    """Draw a and h of each series (n, 2) to their means over the series.

    Also returned are the covariances (n, 2, 2) of what is unknown of them.
    """
    mean, variance = _USUAL, _SPREAD**2
    told = (precision @ found[:, :, None])[:, :, 0]
    for _ in range(_STEPS):
        cover = np.linalg.inv(precision + np.diag(1.0 / variance))
        own = (cover @ (told + mean / variance)[:, :, None])[:, :, 0]
        # Sums in an order of their own: they must not depend on that of the panel.
        total = np.sort(own, axis=0).sum(axis=0)
        mean = (total + _COUNT * _USUAL) / (len(own) + _COUNT)
        square = (own - mean) ** 2 + np.einsum("nii->ni", cover)
        total = np.sort(square, axis=0).sum(axis=0)
        variance = (total + _COUNT * _SPREAD**2) / (len(own) + _COUNT)
    return np.asarray(own), np.asarray(cover, dtype=np.float64)


def _find_sides(scores: Sequence[Array]) -> Array:
    """Return b of each series (n,): half the logarithm of how much farther scores go above."""
    n = np.array([own.size for own in scores], dtype=np.float64)
    tail = (1.0 - _SIDE) / 2.0
    z = float(ndtri(1.0 - tail))
    ends = np.array([1.0 - tail, tail])
    found = np.array([quantiles(own, ends) if own.size > _FEW else (0.0, 0.0) for own in scores])
    above, below = found[:, 0], -found[:, 1]
    known = (above > 0.0) & (below > 0.0)
    b = np.where(
        known, 0.5 * np.log(np.where(known, above / np.where(known, below, 1.0), 1.0)), 0.0
    )
    density = np.exp(-(z**2) / 2.0) / np.sqrt(2.0 * np.pi)
    noise = np.where(
        known, tail * (1.0 - 2.0 * tail) / 2.0 / (density * z) ** 2 / np.maximum(n, 1.0), np.inf
    )
    mean, variance = 0.0, _SIDE_SPREAD**2
    for _ in range(_STEPS):
        trust = variance / (variance + noise)
        own = mean + trust * (b - mean)
        mean = float(np.sort(own).sum() / (own.size + _COUNT))
        square = (own - mean) ** 2 + variance * (1.0 - trust)
        variance = float((np.sort(square).sum() + _COUNT * _SIDE_SPREAD**2) / (own.size + _COUNT))
    return mean + variance / (variance + noise) * (b - mean)
