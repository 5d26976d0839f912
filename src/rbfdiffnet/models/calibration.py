r"""Scores of one-step forecasts, made normal by what the scores of a series and its panel show.

A network's scores of clean values are about normal. What is left is corrected for each series,

.. math:: |s| = e^{a \pm b} \, |z| \, e^{(h z^2 \pm k \min(|z|, 2.24)^2) / 2}, \qquad z \sim N(0, 1)

where a is the scale of the scores s and h how heavy their tails are (Tukey's h); above the forecast
both are larger by b and k, and below smaller. Beyond 97.5 % of sizes (z = 2.24) both sides have the
same tail: of one side alone too few values lie there, and anomalies among them, so a difference
that went on growing would hide these. Logarithms of quantiles, divided by those of z, are linear in
these numbers, so they are found by weighted least squares, with the known covariance of quantiles:
b and k from half the differences of logarithms of quantiles above and below the forecast, a and h
from quantiles of :math:`|s|` once b and k are taken out. Only quantiles up to 97.5 % of sizes
count, and up to 95 % on each side: anomalies lie beyond, so they hardly move the curve, and the
tail that is missing follows from it. Then scores beyond 3.5 are left out, and all is found again.

Tails of bounded errors are thin. A curve that ends could be missed by a little and then be passed
by many scores. So beyond 97.5 % sizes grow at least as z to the power 0.7.

A series with few scores says little about these numbers. So they are drawn to their means over the
panel, and those to usual values, which are the same for both sides (empirical Bayes): the less
scores there are, and the more alike series are, the closer. Series that are often zero have means
of their own. They hardly have values below the forecast, so their sides are not compared.

Scores are judged by an a and an h that were found from themselves, too. A score at the limit z
moves the limit away by :math:`d' C t` in logarithms, where C is the covariance of what is unknown
of a and h, :math:`d = (1, z^2 / 2)`, and t is what such a score tells: its influence on them, times
the precision. What is unknown of the limit lets more scores pass, as many as if the limit were
:math:`(z^2 - 1) d' C d / 2` closer, since the normal tail is curved. So it is with b and k, where z
is at most 2.24 in d. All these are of order 1/n; a and h are changed by the differences, so that
the levels 95 and 99 mark as many as they say. Below 80 scores terms of higher order count, too, so
less of the change is made, and none below 20.
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
_SIDES = _GRID[:-1]  # the same above and below the forecast, where fewer values lie
_CLEAN = 3.5  # score beyond which a value does not count
_LIMITS = ndtri([0.975, 0.995])  # of the levels 95 and 99
_AT_LIMITS = np.column_stack([np.ones(2), _LIMITS**2 / 2.0])
_ROUNDS = 3  # in which a and h are found, the later ones without such values
_STEPS = 8  # of expectation maximization
_FEW = 20  # scores, up to which sides are not compared, and a and h not corrected
_ENOUGH = 60.0  # more scores than that, from which on they wholly are
# Usual values, and how much they differ: of a and h, and of half their differences of both sides.
_USUAL = np.array([0.0, 0.02]), np.array([0.5, 0.1])
_USUAL_APART = np.array([0.0, 0.0]), np.array([0.1, 0.05])
_APART = 1.5  # half the largest difference of logarithms of quantiles above and below
_COUNT = 4.0  # series that the usual values count as
_THINNEST, _HEAVIEST = -0.18, 0.4  # h; sizes grow with z up to the last quantile if h > -0.199
_STEEP = -0.06  # least h that makes sizes beyond the last quantile grow more slowly


@dataclass(frozen=True)
class Calibration:
    """What makes the scores of n series normal: scales a and tails h, below and above, (2, n).

    Those tails are of scores up to the last quantile, beyond which both sides have the mean tail.
    """

    scale: Array
    heavy: Array

    @classmethod
    def of(cls, scores: Sequence[Array], sparse: Mask) -> Calibration:
        """Learn from the scores of series, (m,) each; some series are often zero.

        Scores (k, m) are of m values that are spread over k.
        """
        found = cls(np.zeros((2, len(scores))), np.zeros((2, len(scores))))
        for kind in (sparse, ~sparse):
            chosen = np.flatnonzero(kind)
            if chosen.size:
                own = _calibrate([scores[i] for i in chosen.tolist()], bool(sparse[chosen[0]]))
                found.scale[:, chosen], found.heavy[:, chosen] = own.scale, own.heavy
        return found

    def to_normal(self, scores: Array, series: Ints) -> Array:
        """Return the normal scores of scores of these series, both of shape (m,)."""
        side = (scores >= 0.0).astype(np.int64), series
        size = np.abs(scores)
        near, far = (
            _find_normal(size * np.exp(-scale[side]), heavy[side])
            for scale, heavy in ((self.scale, self.heavy), self._beyond())
        )
        return np.copysign(np.where(near < _LAST, near, far), scores)

    def from_normal(self, z: float) -> Array:
        """Return the sizes of the scores (2, n) below and above that have a normal score z."""
        scale, heavy = (self.scale, self.heavy) if z < _LAST else self._beyond()
        return np.exp(scale) * find_size(z, heavy)

    def _beyond(self) -> tuple[Array, Array]:
        """Return scales and tails (2, n) beyond the last quantile, where tails are the same."""
        heavy = np.broadcast_to(self.heavy.mean(axis=0), self.heavy.shape)
        return self.scale + (self.heavy - heavy) * _LAST**2 / 2.0, heavy


def find_size(z: float, heavy: Array) -> Array:
    """Return z exp(h z^2 / 2), and for thin tails a power of z beyond the last quantile."""
    inside = np.where(heavy < 0.0, min(z, _LAST), z)
    return np.asarray(inside * np.exp(heavy * inside**2 / 2.0) * (z / inside) ** _power(heavy))


def _power(heavy: Array) -> Array:
    """Return the power of z in thin tails: as steep as at the last quantile, but steep enough."""
    return 1.0 + np.clip(heavy, _STEEP, 0.0) * _LAST**2


def _find_normal(size: Array, heavy: Array) -> Array:
    """Return the z of sizes: the inverse of `find_size`, by the function of Lambert."""
    size = np.minimum(size, 1e100)
    end = find_size(_LAST, heavy)
    far = (heavy < 0.0) & (size > end)
    h = np.where(far | (heavy == 0.0), 1.0, heavy)
    product: Any = h * size**2
    z = np.sqrt(np.maximum(lambertw(product).real / h, 0.0))
    z = np.where(heavy == 0.0, size, z)
    z = np.where(far, _LAST * (size / end) ** (1.0 / _power(heavy)), z)
    return np.minimum(z, LARGEST_SCORE)


def _calibrate(scores: Sequence[Array], is_sparse: bool) -> Calibration:
    """Find a and h of both sides of series of one kind."""
    counts = np.array([own.size for own in scores])
    each = np.array([len(own) if own.ndim > 1 else 1 for own in scores])
    owner = np.repeat(np.arange(len(scores)), counts)
    flat = np.clip(np.concatenate([own.ravel() for own in scores]), -1e100, 1e100)
    sign = np.where(flat < 0.0, -1.0, 1.0)
    clean, sizes, z = np.ones(flat.size, dtype=bool), np.abs(flat), np.zeros(flat.size)
    for _ in range(_ROUNDS):
        n = np.bincount(owner[clean], minlength=counts.size)
        ends, n = np.cumsum(n)[:-1], n / each
        share = np.clip((n - _FEW) / _ENOUGH, 0.0, 1.0)[:, None]
        parts = [np.empty(0)] * len(scores) if is_sparse else np.split(flat[clean], ends)
        found, precision, pull = _compare_sides(parts, n)
        apart, cover = _shrink(found, precision, *_USUAL_APART)
        change = _leave_themselves_out(cover, pull, _LAST)
        b, k = apart.T
        even = sizes * np.exp(-sign * (b[owner] + k[owner] * np.minimum(z, _LAST) ** 2 / 2.0))
        found, precision, pull = _fit_curves(np.split(even[clean], ends), n)
        mean, cover = _shrink(found, precision, *_USUAL)
        mean = mean + share * (change + _leave_themselves_out(cover, pull))
        a, h = np.stack([mean - apart, mean + apart]).transpose(2, 0, 1)
        done = Calibration(a, np.clip(h, _THINNEST, _HEAVIEST))
        z = np.abs(done.to_normal(flat, owner))
        clean = z <= _CLEAN
    return done


def quantiles(values: Array, probabilities: Array) -> Array:
    """Return quantiles, the middle of the steps of the distribution: these values lie beyond."""
    at = probabilities * values.size - 0.5
    return np.interp(at, np.arange(values.size), np.sort(values))


def _fit_curves(sizes: Sequence[Array], n: Array) -> tuple[Array, Array, Array]:
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
            found[i], precision[i] = matrix @ np.log(ratio), n[i] * precise
    return found, precision, pull


def _compare_sides(scores: Sequence[Array], n: Array) -> tuple[Array, Array, Array]:
    """Return half of how much more a and h are above than below, as `_fit_curves` does."""
    found, (precision, pull) = np.zeros((len(scores), 2)), np.zeros((2, len(scores), 2, 2))
    for i, own in enumerate(scores):
        if not own.size or n[i] <= _FEW:
            continue
        below, above = -quantiles(own, 0.5 - _SIDES / 2.0), quantiles(own, 0.5 + _SIDES / 2.0)
        first = int(np.argmax([*((below > 0.0) & (above > 0.0)), True]))
        if first < len(_WEIGHTS_APART):
            matrix, precise, pull[i] = _WEIGHTS_APART[first]
            half = (np.log(above[first:]) - np.log(below[first:])) / 2.0
            found[i] = matrix @ np.clip(half, -_APART, _APART)
            precision[i] = n[i] * precise
    return found, precision, pull


def _weights(grid: Array, apart: bool) -> tuple[Array, Array, Array]:
    """Return what leads from logarithms of quantiles to a and h, and its precision with one value.

    Last is what a value at each of the `_LIMITS` tells. Quantiles are of sizes, or half the
    differences of those above and below (`apart`).
    """
    normal = ndtri(0.5 + grid / 2.0)
    design = np.column_stack([np.ones(grid.size), normal**2 / 2.0])
    size = np.sqrt(2.0 / np.pi) * np.exp(-(normal**2) / 2.0) * normal
    least = np.ones_like(grid) if apart else grid
    covariance = np.minimum.outer(least, least) * (1.0 - np.maximum.outer(grid, grid))
    covariance /= np.outer(size, size)
    weight = np.linalg.solve(covariance, design).T
    precision = np.asarray(weight @ design, dtype=np.float64)
    below = np.heaviside(np.round(normal - _LIMITS[:, None], 9), 0.5)  # 0.5: at a limit
    matrix = np.asarray(np.linalg.solve(precision, weight), dtype=np.float64)
    return matrix, precision, (least - below) / size @ weight.T


_WEIGHTS = [_weights(_GRID[first:], False) for first in range(_GRID.size - 1)]
_WEIGHTS_APART = [_weights(_SIDES[first:], True) for first in range(_SIDES.size - 1)]


def _leave_themselves_out(cover: Array, pull: Array, end: float = np.inf) -> Array:
    """Return changes (n, 2) of a and h that let values be judged as if by others; see above."""
    at = np.minimum(_AT_LIMITS, [1.0, end**2 / 2.0])
    unknown = np.einsum("za,nab,zb->nz", at, cover, at)
    moved = np.einsum("za,nab,nzb->nz", at, cover, pull)
    change = (_LIMITS**2 - 1.0) / 2.0 * unknown - moved
    change[~pull.any(axis=(1, 2))] = 0.0  # nothing was found from them
    return np.asarray(change @ np.linalg.inv(_AT_LIMITS).T)


def _shrink(found: Array, precision: Array, usual: Array, spread: Array) -> tuple[Array, Array]:
    """Draw a and h of each series (n, 2) to their means over the series, and these to usual ones.

    Also returned are the covariances (n, 2, 2) of what is unknown of them.
    """
    mean, variance = usual, spread**2
    told = (precision @ found[:, :, None])[:, :, 0]
    for _ in range(_STEPS):
        cover = np.linalg.inv(precision + np.diag(1.0 / variance))
        own = (cover @ (told + mean / variance)[:, :, None])[:, :, 0]
        # Sums in an order of their own: they must not depend on that of the panel.
        total = np.sort(own, axis=0).sum(axis=0)
        mean = (total + _COUNT * usual) / (len(own) + _COUNT)
        square = (own - mean) ** 2 + np.einsum("nii->ni", cover)
        total = np.sort(square, axis=0).sum(axis=0)
        variance = (total + _COUNT * spread**2) / (len(own) + _COUNT)
    return np.asarray(own), np.asarray(cover, dtype=np.float64)
