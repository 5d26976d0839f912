r"""Prediction intervals with a guarantee: split conformal prediction over rolling origins.

A model is fitted without the last part of a series (a third of it, at most 200 steps) and
forecasts from every origin in that part. The absolute errors at horizon k are its scores, and

.. math:: \tilde y_{T+k} \pm q_k, \qquad q_k = \text{the } \lceil (n + 1)\,\gamma \rceil
    \text{-th smallest of n scores}

is the interval of level :math:`\gamma`, where :math:`\tilde y` is the forecast of that same model
from the end of the series. If the errors are exchangeable with the next one, it covers with
probability at least :math:`\gamma`, whatever their distribution and however bad the model: the +1
is the finite-sample correction. (The forecast of the model fitted to everything is taken into the
interval if it lies outside.) Errors of a series that changes its ways are not exchangeable with
later ones; then coverage is only as good as the past resembles the future.

Where noise is filtered (`rbfdiffnet.noise`), how far ahead a series can be seen depends on its
state, and the filter says how far: errors made elsewhere are first multiplied by the ratio of the
present spread to the spread there.

A series with fewer than 50 scores at a horizon borrows: scores of all series (of 2,000, where there
are more) are divided by the mean step size of their series, pooled, and multiplied by that of the
series in question. The guarantee then holds on average over the panel. A series without a network,
whose forecast is a naive one, borrows errors of naive forecasts instead.

`HeldOutErrors` is what models of networks give, and `find_intervals` makes intervals of it.
`ErrorScale` is for few errors of many series, made at the ends of the series. There, errors of
series i in window w at step k are taken as

.. math:: |e_{iwk}| = s_i \, k^b \, z, \qquad \log s_i = \log c_i + \text{what the errors of
    series i say}

so one pool of z serves a whole panel. Errors of a stack are scores by the quantiles of the
pretrained network, which knows how far a series like this may go, so :math:`c_i = 1`; those of
naive forecasts are as they are, and c is the mean step of a series. How much a series' own errors
say about its spread, against those of all, is weighed as in empirical Bayes: by how much series
differ more than windows of a series do. The z of a window are found with the spread that the other
windows give, as they will be used; otherwise they would come out too small. Half-widths are
quantiles of the z of a step; where a step has few, the z of the steps next to it count, too. Errors
of one window go together, so h of them count as :math:`\sqrt h` where the finite-sample correction
asks for their number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from rbfdiffnet.pretrained.network import MEDIAN, PROBABILITIES
from rbfdiffnet.support.arrays import Array, Ints, Mask
from rbfdiffnet.support.parallel import Collective, flatten

Scalar = TypeVar("Scalar", bound=np.generic)

_ENOUGH_SCORES = 50  # of a series at a horizon for it to stand on its own
_LONGEST_CALIBRATION = 200
_SCORES_FOR_POOL = 20  # that each series gives to the pool
MOST_POOLED = 2_000  # series that give scores to the pool

# Of few errors of many series:
_ENOUGH_ERRORS = 100  # for a quantile
_USUAL_RISE, _RISE_WEIGHT = 0.3, 1.0  # the power of the step where errors are few
_SMALL = 1e-2  # of the usual error, below which a window says nothing more
_TRUST = 20.0  # windows that count as much as a network's own quantiles
_MOST = 2.5  # times the score of a normal variable
_SCORES = ndtri(np.array(PROBABILITIES[MEDIAN:]))


@dataclass(frozen=True)
class HeldOutErrors:
    """Errors of forecasts of known values: what the intervals of every model are made of.

    `errors` holds absolute errors (m, h) for each of n series, NaN where unknown;
    `scales` (n,) the usual size of changes of each series; `centers` (n, h) the
    forecasts around which intervals lie; `modeled` (n,) whether a series has a model. `naive`
    returns errors and scales of naive forecasts of chosen series, `fingerprints` a digest of each
    series.
    """

    errors: Sequence[Array]
    scales: Array
    centers: Array
    modeled: Mask
    naive: Callable[[Sequence[int]], tuple[Sequence[Array], Array]]
    fingerprints: Callable[[], list[bytes]]


def find_intervals(
    held_out: HeldOutErrors,
    levels: Sequence[float],
    collective: Collective,
    pools: Pools | None = None,
) -> tuple[Array, Array, Mask]:
    """Return lower and upper bounds, (n, h, n_levels), and which series (n,) had enough errors.

    `levels` ascend between 0 and 1. `pools` are borrowed errors; by default those of this panel.
    """
    pools = pools or collective.all_reduce(
        partial(lend_errors, held_out), partial(_pool_loans, levels=levels)
    )
    widths = np.empty((*held_out.centers.shape, len(levels)))
    enough = np.ones(len(widths), dtype=bool)
    for own, pool in ((held_out.modeled, pools.networks), (~held_out.modeled, pools.fallbacks)):
        if own.any():
            some = [held_out.errors[i] for i in np.flatnonzero(own).tolist()]
            widths[own], enough[own] = half_widths(some, held_out.scales[own], levels, pool)
    centers = held_out.centers[:, :, None]
    return centers - widths, centers + widths, enough


def calibration_length(n: int) -> int:
    """Return the number of last steps held out of n for calibration."""
    return min(n // 3, _LONGEST_CALIBRATION)


def conformal_quantile(scores: Array, level: float) -> float:
    """Return the smallest bound that covers the next score with the given probability.

    It is infinite if there are too few scores for the level.
    """
    # Rounded first, since (n + 1) times .95 may exceed an integer by a rounding error.
    rank = int(np.ceil(np.round((scores.size + 1) * level, 9)))
    return float(np.partition(scores, rank - 1)[rank - 1]) if rank <= scores.size else np.inf


def take_evenly(rows: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Return some rows, evenly spread: the share that a series gives to the pool."""
    n = len(rows)
    return rows[np.linspace(0, n - 1, min(n, _SCORES_FOR_POOL)).astype(np.int64)]


def choose_lenders(fingerprints: Sequence[bytes]) -> list[int]:
    """Return the positions of the series whose errors are pooled, whatever the series' order."""
    return sorted(range(len(fingerprints)), key=fingerprints.__getitem__)[:MOST_POOLED]


class ErrorPool(NamedTuple):
    """Errors that series with few errors borrow, each divided by the step size of its series.

    `size` (h,) counts the errors; `quantiles` (h, n_levels) are infinite where errors are too few;
    `largest` (h,) is that of earlier steps where a step has no error; `usual_step` is the median
    step size, for series without two values.
    """

    size: Ints
    quantiles: Array
    largest: Array
    usual_step: float


def pool_errors(errors: Sequence[Array], scales: Array, levels: Sequence[float]) -> ErrorPool:
    """Pool errors (m, h) of series with step sizes `scales` (n,), NaN where there is none."""
    h = errors[0].shape[1] if len(errors) else 0
    usual_step = float(np.nanmedian(scales)) if np.any(np.isfinite(scales)) else 0.0
    scales = np.where(np.isfinite(scales), scales, usual_step)
    usable = np.flatnonzero(scales > 0.0).tolist()
    shares = [errors[i] / scales[i] for i in usable if len(errors[i])]
    pool = np.concatenate(shares) if shares else np.empty((0, h))
    scores = [pool[np.isfinite(pool[:, k]), k] for k in range(h)]
    size = np.array([s.size for s in scores], dtype=np.int64)
    largest = np.array([s.max(initial=0.0) for s in scores])
    quantiles = [[conformal_quantile(s, level) for level in levels] for s in scores]
    return ErrorPool(
        size,
        np.array(quantiles).reshape(h, len(levels)),
        np.where(size > 0, largest, np.maximum.accumulate(largest)),
        usual_step,
    )


class Loan(NamedTuple):
    """What a series lends: its errors and those of naive forecasts, (m, h) each, and step sizes.

    Loans are sorted by the fingerprints of their series.
    """

    fingerprint: bytes
    errors: Array
    scale: float
    naive_errors: Array
    naive_scale: float


class Pools(NamedTuple):
    """What series with few errors borrow: those with a network, and those without."""

    networks: ErrorPool
    fallbacks: ErrorPool

    @classmethod
    def of(cls, loans: Sequence[Loan], levels: Sequence[float]) -> Pools:
        """Pool loans."""
        scales = np.array([loan.scale for loan in loans])
        naive_scales = np.array([loan.naive_scale for loan in loans])
        return cls(
            pool_errors([loan.errors for loan in loans], scales, levels),
            pool_errors([loan.naive_errors for loan in loans], naive_scales, levels),
        )


def lend_errors(held_out: HeldOutErrors) -> list[Loan]:
    """Return the loans of a panel, of at most so many series as a pool takes."""
    prints = held_out.fingerprints()
    chosen = choose_lenders(prints)
    naive, naive_scales = held_out.naive(chosen)
    return [
        Loan(
            prints[i], take_evenly(held_out.errors[i]), float(held_out.scales[i]), own, float(step)
        )
        for i, own, step in zip(chosen, naive, naive_scales, strict=True)
    ]


def _pool_loans(parts: Sequence[list[Loan]], levels: Sequence[float]) -> Pools:
    """Pool the loans of all parts of a cluster."""
    loans = sorted(flatten(parts), key=lambda loan: loan.fingerprint)[:MOST_POOLED]
    return Pools.of(loans, levels)


def half_widths(
    errors: Sequence[Array], scales: Array, levels: Sequence[float], pool: ErrorPool | None = None
) -> tuple[Array, Mask]:
    """Return half-widths (n, h, n_levels) of conformal intervals, finite and rising with the level.

    Also returned is where (n,) the errors were enough: elsewhere even the pool had too few scores,
    and the largest was taken. By default the pool is that of these series.
    """
    h = errors[0].shape[1] if len(errors) else 0
    pool = pool or pool_errors([take_evenly(own) for own in errors], scales, levels)
    # Nothing is known of a series without two values: it is taken for an ordinary one.
    scales = np.where(np.isfinite(scales), scales, pool.usual_step)
    widths = np.empty((len(errors), h, len(levels)))
    enough = np.ones(len(errors), dtype=bool)
    for i, own in enumerate(errors):
        for k in range(h):
            scores = own[np.isfinite(own[:, k]), k]
            alone = scores.size >= min(_ENOUGH_SCORES, int(pool.size[k]))
            for j, level in enumerate(levels):
                width = conformal_quantile(scores, level) if alone else np.inf
                if not np.isfinite(width):
                    width = pool.quantiles[k, j] * scales[i] if scales[i] > 0.0 else 0.0
                if not np.isfinite(width):
                    enough[i] = False
                    width = max(pool.largest[k] * scales[i], scores.max(initial=0.0))
                widths[i, k, j] = width
    return np.maximum.accumulate(widths, axis=2), enough


@dataclass(frozen=True)
class ErrorScale:
    """How large errors of series are: what a series borrows from the others of its panel.

    `rise` is the power of the step with which errors grow. Logarithms of spreads are `usual` on
    average and vary by `between` from series to series, and by `within` from window to window of a
    series; sizes of errors below `least` say nothing more. `scores` (m, h) are the z of the pool.
    """

    rise: float
    least: float
    usual: float
    between: float
    within: float
    scores: Array

    @classmethod
    def of(cls, errors: Array, changes: Array, usual_rise: float = _USUAL_RISE) -> ErrorScale:
        """Learn from absolute errors (n, n_windows, h), NaN where unknown.

        `changes` (n,) are mean step sizes, positive where the errors of a series count.
        """
        n, _, h = errors.shape
        # In an order of their own: sums must not depend on that of the panel.
        order = np.lexsort(np.column_stack([changes, errors.reshape(n, -1)]).T)
        relative = _divide(errors[order], changes[order])
        rise = _rise(relative, usual_rise)
        steps = np.arange(1.0, h + 1.0) ** rise
        found = cls(rise, *_spread_of_spreads(_mean(relative / steps, axis=2)), np.empty((0, h)))
        _, then = found._spreads(relative)
        scores = relative / (steps * then[:, :, None])
        return replace(found, scores=scores.reshape(-1, h))

    def half_widths(
        self, errors: Array, changes: Array, levels: Sequence[float]
    ) -> tuple[Array, Mask]:
        """Return half-widths (n, h, n_levels), 0 where nothing is known, and where enough was.

        Where errors were too few for the highest level, the largest was taken, grown as the
        quantiles of a normal distribution grow.
        """
        counts, h = changes > 0.0, errors.shape[2]
        quantiles, enough = _quantiles(self.scores, levels)
        spread, _ = self._spreads(_divide(errors, changes))
        steps = np.arange(1.0, h + 1.0) ** self.rise
        unit = np.where(counts, changes, np.nan)
        widths = (unit * spread)[:, None, None] * (steps[:, None] * quantiles)
        return np.nan_to_num(widths, nan=0.0), ~counts | enough

    def _spreads(self, relative: Array) -> tuple[Array, Array]:
        """Return the spread of each series (n,), and that of each window from the other windows.

        Errors (n, n_windows, h) are relative to changes.
        """
        steps = np.arange(1.0, relative.shape[2] + 1.0) ** self.rise
        logs = _log_sizes(_mean(relative / steps, axis=2), self.least)
        known = np.isfinite(logs)
        filled, count = np.where(known, logs, 0.0), known.sum(axis=1)

        def shrink_to_usual(total: Array, count: Array) -> Array:
            """Move the usual spread by what so many windows say."""
            trust = 0.0 * count
            if self.between > 0.0:
                own = self.between * count
                trust = own / (own + max(self.within, 1e-12))
            away = total / np.maximum(count, 1) - self.usual
            return np.asarray(np.exp(self.usual + trust * away))

        total, others = filled.sum(axis=1), count[:, None] - known
        return shrink_to_usual(total, count), shrink_to_usual(total[:, None] - filled, others)


def _divide(errors: Array, changes: Array) -> Array:
    """Return errors (n, n_windows, h) relative to changes (n,), NaN where there is no change."""
    return np.asarray(errors / np.where(changes > 0.0, changes, np.nan)[:, None, None])


def _log_sizes(sizes: Array, least: float) -> Array:
    """Return logarithms of sizes, NaN where unknown."""
    return np.log(np.maximum(sizes, least)) if least > 0.0 else np.full(sizes.shape, np.nan)


def _rise(relative: Array, usual: float) -> float:
    """The power of the step with which errors grow, drawn to the usual one."""
    size = _mean(relative.reshape(-1, relative.shape[2]), axis=0)
    known = np.isfinite(size) & (size > 0.0)
    if not known.any():
        return usual
    step = np.log(np.arange(1.0, size.size + 1.0)[known])
    step, level = step - step.mean(), np.log(size[known])
    drawn = step @ level + _RISE_WEIGHT * usual
    return float(np.clip(drawn / (step @ step + _RISE_WEIGHT), usual - 0.3, usual + 0.7))


def _mean(values: Array, axis: int) -> Array:
    """Mean of what is known; NaN where nothing is."""
    known = np.isfinite(values)
    total, count = np.where(known, values, 0.0).sum(axis=axis), known.sum(axis=axis)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def _spread_of_spreads(sizes: Array) -> tuple[float, float, float, float]:
    """Return `least`, `usual`, `between` and `within` of an `ErrorScale`.

    `sizes` (n, n_windows) are mean errors, NaN where unknown.
    """
    positive = sizes[sizes > 0.0]
    if not positive.size:
        return 0.0, 0.0, 0.0, np.inf
    least = _SMALL * float(np.median(positive))
    logs = _log_sizes(sizes, least)
    known = np.isfinite(logs)
    filled, count = np.where(known, logs, 0.0), known.sum(axis=1)
    usual = filled.sum() / known.sum()
    own = filled.sum(axis=1) / np.maximum(count, 1)
    spare = np.maximum(count - 1, 0).sum()
    within = np.where(known, (logs - own[:, None]) ** 2, 0.0).sum() / spare if spare else np.inf
    there = count > 0
    between = 0.0
    if spare and there.sum() > 1:
        noise = (within / count[there]).mean()
        between = max(float(np.var(own[there], ddof=1)) - noise, 0.0)
    return least, float(usual), between, float(within)


# Quantiles of a network ------------------------------------------------------------------------


def to_scores(away: Array, distances: Array) -> Array:
    """Return the scores that errors have under a network's quantiles: 1.28 at that of 90 %.

    So errors of a calibrated network have normal scores. `distances` (..., q) are those of the
    quantiles at `PROBABILITIES` from the forecast, which may be the median or not. Between two
    quantiles scores are linear in the errors; beyond the outermost they are proportional to them.
    They are infinite or NaN where there are no distances.
    """
    size, side = np.abs(away), _one_side(distances, np.asarray(away) < 0.0)
    score = np.zeros_like(size)
    with np.errstate(all="ignore"):
        for k in range(_SCORES.size - 1):
            step = side[k + 1] - side[k]
            share = np.where(step > 0.0, np.clip((size - side[k]) / step, 0.0, 1.0), size > side[k])
            score += (_SCORES[k + 1] - _SCORES[k]) * share
        score += np.maximum(size / side[-1] - 1.0, 0.0) * _SCORES[-1]
    return np.copysign(score, away)


def to_distances(scores: Array, distances: Array) -> Array:
    """Return sizes of the errors (..., n_levels) that have scores, those of one sign."""
    size, side = np.abs(scores), _one_side(distances[..., None, :], np.signbit(scores))
    found = 0.0 * size + side[0]
    for k in range(_SCORES.size - 1):
        share = np.clip((size - _SCORES[k]) / (_SCORES[k + 1] - _SCORES[k]), 0.0, 1.0)
        found += share * (side[k + 1] - side[k])
    return np.asarray(found + np.maximum(size / _SCORES[-1] - 1.0, 0.0) * side[-1])


def _one_side(distances: Array, is_below: Mask) -> list[Array]:
    """Return sizes of the distances on one side, from the median outward; 0 on the other side."""
    pairs = [(distances[..., MEDIAN - k], distances[..., MEDIAN + k]) for k in range(_SCORES.size)]
    return [np.maximum(np.where(is_below, -below, above), 0.0) for below, above in pairs]


def correct_scores(scores: Array, pool: Array, n_windows: int, levels: Sequence[float]) -> Array:
    """Draw scores (n, h, n_levels) that held-out ones ask for to those of a normal variable.

    The fewer windows there were, the closer. The usual score, that of a `pool` (m, h, n_levels) of
    series, is no more than so many times the normal one: a few series that broke off do not widen
    the intervals of all others.
    """
    trust = n_windows / (n_windows + _TRUST)
    normal = np.array([_normal(level) for level in levels])
    usual = np.median(pool, axis=0) if len(pool) else np.ones(scores.shape[1:])
    limit = np.minimum(_MOST * normal / np.maximum(usual, 1e-300), 1.0)
    return np.asarray(trust * limit * scores + (1.0 - trust) * normal)


def _normal(level: float) -> float:
    """Half-width of the interval of a standard normal variable."""
    return float(ndtri(0.5 + level / 2.0))


def _quantiles(scores: Array, levels: Sequence[float]) -> tuple[Array, bool]:
    """Quantiles (h, n_levels) of scores (m, h), and whether there were enough of them."""
    by_step, h = scores, scores.shape[1]
    known = np.isfinite(by_step).sum(axis=0)
    found, enough = np.full((h, len(levels)), np.nan), True
    for k in range(h):
        near = np.abs(np.arange(h) - k)
        reach = next((r for r in range(h) if known[near <= r].sum() >= _ENOUGH_ERRORS), h - 1)
        pool = by_step[:, near <= reach]
        pool = np.sort(pool[np.isfinite(pool)])
        if not pool.size:
            enough = False
            continue
        count = pool.size / np.sqrt(np.count_nonzero(known[near <= reach]))
        for j, level in enumerate(levels):
            # Rounded first, since the product may exceed an integer by a rounding error.
            rank = int(np.ceil(np.round((count + 1.0) * level / count * pool.size, 9)))
            if rank <= pool.size:
                found[k, j] = pool[rank - 1]
            else:
                enough = False
                found[k, j] = pool[-1] * _normal(level) / _normal(count / (count + 1.0))
    return found, enough
