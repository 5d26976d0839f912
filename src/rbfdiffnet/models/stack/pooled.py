r"""Effects of inputs on every series, drawn toward those on all of them.

.. math:: r_i = Z_i \gamma_i + \varepsilon_i, \qquad \varepsilon_i \sim N(0, \sigma_i^2), \qquad
    \gamma_{ij} \sim N(\bar\gamma_j, \max(\sigma_i, \sigma)^2 \tau_j^2)

with the swings :math:`r_i, Z_i` of `rbfdiffnet.series.effects.swings` and :math:`\sigma` the usual
:math:`\sigma_i`. A holiday comes once a year: one series alone says little about it, all together
say a lot. How much an effect differs between series, :math:`\tau_j^2`, and what it usually is,
:math:`\bar\gamma_j`, are found by expectation maximization; an effect that differs much is left to
each series, one that does not is shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rbfdiffnet.series.effects import RIDGE, Effects, is_binary, never_negative, swings
from rbfdiffnet.series.gaps import fill_missing
from rbfdiffnet.series.prepare import learnable

__all__ = ["pooled_effects"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_ROUNDS = 8
_PENALTY = 20.0  # 1 / tau^2 to begin with
_BELIEF = 2.0  # series this counts as
_ALIKE = 1e-5  # smallest tau^2
_DEPENDENT = 2.0  # how much less differences say, since errors follow each other
_FAR_APART = 9.0  # times the usual squared difference: no single series counts more
_MOST_SERIES = 500  # that effects in common are found from
_FEWEST_SERIES = 3


@dataclass(frozen=True)
class _Evidence:
    """What one series says about effects: Z'Z, Z'r, r'r, and the number of rows."""

    gram: Array
    moment: Array
    square: float
    count: int


def pooled_effects(
    series: Sequence[Array],
    inputs: Sequence[Array],
    *,
    season_length: int,
    clean: bool = True,
    relative: bool = True,
) -> list[Effects] | None:
    """Estimate the effects of inputs on every series of a panel.

    Parameters
    ----------
    series : sequence of ndarray of shape (T,)
        NaN where missing; at least one value is known.
    inputs : sequence of ndarray of shape (T, q)
    season_length : int
    clean : bool, default=True
        Whether outliers are left out.
    relative : bool, default=True
        Whether effects on series that are never negative are shares of their level.

    Returns
    -------
    list of Effects, or None
        None where there are no inputs, or fewer than three series.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models.stack.pooled import pooled_effects
    >>> rng = np.random.default_rng(0)
    >>> holiday = np.zeros((300, 1))
    >>> holiday[150] = 1.0
    >>> series = [100.0 * (1.0 + 0.5 * holiday[:, 0]) + rng.normal(0, 20, 300) for _ in range(20)]
    >>> effects = pooled_effects(series, [holiday] * 20, season_length=7)
    >>> bool(np.ptp([e.gamma[0] for e in effects]) < 0.2)
    True
    """
    if len(series) < _FEWEST_SERIES or not inputs[0].shape[1]:
        return None
    # Shares of levels, and swings in units of their spread, are not alike.
    shares = np.array([relative and never_negative(y[np.isfinite(y)]) for y in series])
    units = _units(inputs)
    known = [np.isfinite(y) for y in series]
    found: list[Effects] = []
    for _ in range(2 if clean else 1):
        filled = [
            fill_missing(np.where(mask, y, np.nan), season_length) if mask.any() else y
            for y, mask in zip(series, known, strict=True)
        ]
        sizes = np.ones(len(series))
        evidence = []
        for i, (y, X, mask) in enumerate(zip(filled, inputs, known, strict=True)):
            Z, swing = swings(y, X / units[i], season_length=season_length, relative=shares[i])
            Z, swing = Z[mask], swing[mask]
            if not shares[i] and swing.any():
                largest = float(np.abs(swing).max())  # squares of tiny swings vanish
                sizes[i] = largest * float(np.sqrt(((swing / largest) ** 2).mean()))
                swing = swing / sizes[i]
            evidence.append(_Evidence(Z.T @ Z, Z.T @ swing, float(swing @ swing), len(swing)))
        gammas = np.empty((len(series), inputs[0].shape[1]))
        for group in (shares, ~shares):
            if group.any():
                chosen = np.flatnonzero(group)
                gammas[chosen] = _drawn_together([evidence[i] for i in chosen])
        found = [
            Effects(gamma * size / unit, X.mean(axis=0), bool(share))
            for gamma, size, unit, X, share in zip(
                gammas, sizes, units, inputs, shares, strict=True
            )
        ]
        known = [
            learnable(y, X, effects, season_length)
            for y, X, effects in zip(series, inputs, found, strict=True)
        ]
    return found


def _units(inputs: Sequence[Array]) -> Array:
    """Units of the inputs of each series, shape (n, q): 1 for switches, else their spread."""
    binary = np.all([is_binary(X) for X in inputs], axis=0)
    spread = np.array([X.std(axis=0) for X in inputs])
    spread = np.where(spread > 0.0, spread, np.nan)
    changing = np.isfinite(spread).any(axis=0)
    usual = np.ones(binary.size)
    usual[changing] = np.nanmedian(spread[:, changing], axis=0)
    return np.where(binary, 1.0, np.where(np.isnan(spread), usual, spread))


def _drawn_together(evidence: Sequence[_Evidence]) -> Array:
    """Effects on every series, shape (n, q)."""
    every = -(-len(evidence) // _MOST_SERIES)
    some = evidence[::every]
    gram = np.stack([e.gram for e in some])
    moment = np.stack([e.moment for e in some])
    square = np.array([e.square for e in some])
    count = np.maximum([e.count for e in some], 1)
    q = moment.shape[1]
    common = np.linalg.solve(gram.sum(axis=0) + RIDGE * np.eye(q), moment.sum(axis=0))
    penalty = np.full(q, _PENALTY)
    # Quiet series are not alike for being quiet: their effects may differ as those of others do.
    share = np.ones(len(some))
    least = 0.0
    for _ in range(_ROUNDS):
        own = share[:, None] * penalty
        inverse = np.linalg.inv(gram + own[:, :, None] * np.eye(q))
        gamma = (inverse @ (moment + own * common)[:, :, None])[:, :, 0]
        fitted = (gram @ gamma[:, :, None])[:, :, 0]
        rest = square - 2.0 * (gamma * moment).sum(axis=1) + (gamma * fitted).sum(axis=1)
        spread = np.maximum(rest / count, 1e-12)
        least = float(np.median(spread))
        variance = np.maximum(spread, least)
        # What the effects of a series say about those of all, given how much these differ.
        weight = 1.0 / variance
        said = np.einsum("n,nij,nj->i", weight, inverse, moment) * penalty
        drawn = np.einsum("n,nij->ij", weight * share, inverse) * np.outer(penalty, penalty)
        precision = np.diag(weight.sum() * penalty + weight.mean() * RIDGE) - drawn
        unsure = share[:, None] * np.einsum("nii->ni", inverse)
        apart = (gamma - common) ** 2 / (_DEPENDENT * variance[:, None]) + unsure
        apart = np.minimum(apart, _FAR_APART * np.median(apart, axis=0))
        common = np.linalg.solve(precision, said)
        differ = (apart.sum(axis=0) + _BELIEF / _PENALTY) / (len(some) + _BELIEF)
        penalty = 1.0 / np.maximum(differ, _ALIKE)
        share = spread / variance
    return np.array([_drawn(e, penalty, common, least) for e in evidence])


def _drawn(evidence: _Evidence, penalty: Array, common: Array, least: float) -> Array:
    """Effects on one series, shape (q,), drawn to those in common; less so if it is quiet."""
    gram, moment = evidence.gram, evidence.moment
    gamma = np.linalg.solve(gram + np.diag(penalty), moment + penalty * common)
    rest = evidence.square - 2.0 * gamma @ moment + gamma @ gram @ gamma
    spread = max(float(rest) / max(evidence.count, 1), 1e-12)
    own = penalty * min(spread / least, 1.0) if least > 0.0 else penalty
    return np.asarray(np.linalg.solve(gram + np.diag(own), moment + own * common))
