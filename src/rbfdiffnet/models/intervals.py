r"""Quantiles of forecasts with a guarantee: split conformal prediction over rolling origins.

A model is fitted without the last part of a series (a third of it, at most 200 steps) and
forecasts from every origin in that part. Its errors e at horizon k, value minus forecast, are
its scores, and

.. math:: \tilde y_{T+k} + q_k(p), \qquad q_k(p) = \text{the } \lceil (n + 1)\,p \rceil
    \text{-th smallest of n scores}, \quad p > \tfrac12

is the quantile of probability p, where :math:`\tilde y` is the forecast of that same model from the
end of the series; below one half, it is the same of the errors with the other sign. If the errors
are exchangeable with the next one, the next value stays below with probability at least p, whatever
their distribution and however bad the model: the +1 is the finite-sample correction. So an
interval of level :math:`\gamma` lies between the quantiles of :math:`(1 \mp \gamma) / 2`, is as
asymmetric as the errors, and covers with probability at least :math:`\gamma`. (The forecast of the
model fitted to everything is taken into the interval if it lies outside.) Errors of a series that
changes its ways are not exchangeable with later ones; then coverage is only as good as the past
resembles the future.

Where noise is filtered (`rbfdiffnet.noise`), how far ahead a series can be seen depends on its
state, and the filter says how far: errors made elsewhere are first multiplied by the ratio of the
present spread to the spread there.

A series with fewer than 50 scores at a horizon borrows: scores of all series (of 2,000, where there
are more) are divided by the mean step size of their series, pooled, and multiplied by that of the
series in question. The guarantee then holds on average over the panel. A series without a network,
whose forecast is a naive one, borrows errors of naive forecasts instead.

`HeldOutErrors` is what models of networks give, and `find_quantiles` makes quantiles of it.
`ErrorScale` is for few errors of many series, made at the ends of the series. There, errors of
series i in window w at step k are taken as

.. math:: |e_{iwk}| = c_i \, k^b \, z

so one pool of z serves a whole panel. Errors of a stack are scores by the quantiles of the
pretrained network, which knows how far a series like this may go, so :math:`c_i = 1`; those of
naive forecasts are as they are, and c is the mean step of a series. A few windows of a series say
less about its spread than the network does, so they only count together with those of all others.
Half-widths are quantiles of the z of a step; where a step has few, the z of the steps next to it
count, too. Of scores, those above and below the forecast are told apart the more, the more there
are. Errors of one window go together, so h of them count as :math:`\sqrt h` where the finite-sample
correction asks for their number, and where they are weighed against the network; see
`count_errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from rbfdiffnet.series.outliers import usual_and_limit
from rbfdiffnet.support.arrays import Array, Ints, Mask, mean_of_known
from rbfdiffnet.support.parallel import Collective, flatten, group_equal

Scalar = TypeVar("Scalar", bound=np.generic)

_ENOUGH_SCORES = 50  # of a series at a horizon for it to stand on its own
_LONGEST_CALIBRATION = 200
_SCORES_FOR_POOL = 20  # that each series gives to the pool
MOST_POOLED = 2_000  # series that give scores to the pool

# Of few errors of many series:
_ENOUGH_ERRORS = 100  # for a quantile
_USUAL_RISE, _RISE_WEIGHT = 0.3, 1.0  # the power of the step where errors are few
_SMALL = 1e-2  # of the usual error, below which a window says nothing more
_WILD_POWER = 0.2  # of how many times the usual error that of a wild series is
_MOST = 2.5  # times the score of a normal variable
_TRUST = 40.0  # errors that count as much as a network's own quantiles
_COMMON = 0.02  # share of the variance of sizes that is common to the series of a window, usually
#: How much farther real series go than the network, which knows simulated ones only, expects.
REAL_SPREAD = 1.1


@dataclass(frozen=True)
class HeldOutErrors:
    """Errors of forecasts of known values: what the intervals of every model are made of.

    `errors` holds errors (m, h), value minus forecast, for each of n series, NaN where unknown;
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


def find_quantiles(
    held_out: HeldOutErrors,
    probabilities: Sequence[float],
    collective: Collective,
    pools: Pools | None = None,
) -> tuple[Array, Mask]:
    """Return quantiles (n, h, P) at ascending probabilities, and where (n, P) errors were enough.

    `pools` are borrowed errors; by default those of this panel.
    """
    pools = pools or collective.all_reduce(
        partial(lend_errors, held_out), partial(_pool_loans, probabilities=probabilities)
    )
    away = np.empty((*held_out.centers.shape, len(probabilities)))
    enough = np.ones((len(away), len(probabilities)), dtype=bool)
    for own, pool in ((held_out.modeled, pools.networks), (~held_out.modeled, pools.fallbacks)):
        if own.any():
            some = [held_out.errors[i] for i in np.flatnonzero(own).tolist()]
            away[own], enough[own] = error_quantiles(
                some, held_out.scales[own], probabilities, pool
            )
    return held_out.centers[:, :, None] + away, enough


def calibration_length(n: int) -> int:
    """Return the number of last steps held out of n for calibration."""
    return min(n // 3, _LONGEST_CALIBRATION)


def conformal_quantiles(errors: Array, probabilities: Sequence[float]) -> Array:
    """Return bounds (..., h, P) that the next error of columns of (..., m, h) stays within.

    It stays below with a probability of at least p where that is more than one half, and above with
    at least 1 - p where it is less. Where errors are too few for that, both bounds are as far away,
    and the next error stays between them with at least the probability of the interval. Bounds are
    infinite where errors are too few for that as well; NaN are unknown.
    """
    ordered, sizes = np.sort(errors, axis=-2), np.sort(np.abs(errors), axis=-2)  # NaN come last
    n, found = np.isfinite(errors).sum(axis=-2), []
    for p in probabilities:
        sign = 1.0 if p > 0.5 else -1.0
        rank = _rank(n, max(p, 1.0 - p))
        own = _take_rank(ordered, n, rank if p > 0.5 else n + 1 - rank)
        if p == 0.5:
            own = 0.5 * (own + _take_rank(ordered, n, rank))
        if np.isnan(own).any():
            alike = sign * _take_rank(sizes, n, _rank(n, abs(2.0 * p - 1.0)))
            alike = np.where(np.isfinite(alike), alike, sign * np.inf)
            own = np.where(np.isfinite(own), own, alike)
        found.append(own)
    return np.stack(found, axis=-1)


def _rank(n: Ints, level: float) -> Ints:
    """Return the smallest sufficient rank for a level, of n scores each."""
    # Rounded first, since (n + 1) times .95 may exceed an integer by a rounding error.
    return np.ceil(np.round((n + 1) * level, 9)).astype(np.int64)


def _take_rank(ordered: Array, n: Ints, rank: Ints) -> Array:
    """Return the values of ranks from 1 to n of ordered columns (..., m, h), NaN for others."""
    fair = (rank >= 1) & (rank <= n)
    if not fair.any():
        return np.full(n.shape, np.nan)
    at = np.where(fair, rank - 1, 0)[..., None, :]
    return np.where(fair, np.take_along_axis(ordered, at, axis=-2)[..., 0, :], np.nan)


def take_evenly(rows: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Return some rows, evenly spread: the share that a series gives to the pool."""
    n = len(rows)
    return rows[np.linspace(0, n - 1, min(n, _SCORES_FOR_POOL)).astype(np.int64)]


def choose_lenders(fingerprints: Sequence[bytes]) -> list[int]:
    """Return the positions of the series whose errors are pooled, whatever the series' order."""
    return sorted(range(len(fingerprints)), key=fingerprints.__getitem__)[:MOST_POOLED]


class ErrorPool(NamedTuple):
    """Errors that series with few errors borrow, each divided by the step size of its series.

    `size` (h,) counts the errors; `quantiles` (h, P) are infinite where errors are too few;
    `extremes` (h, 2), the lowest and the highest, are those of earlier steps where a step has no
    error; `usual_step` is the median step size, for series without two values. Series whose mean
    error is beyond the `limit` lend nothing, and borrow by how much it exceeds the `usual` one.
    """

    size: Ints
    quantiles: Array
    extremes: Array
    usual_step: float
    usual: float
    limit: float


def pool_errors(
    errors: Sequence[Array], scales: Array, probabilities: Sequence[float]
) -> ErrorPool:
    """Pool errors (m, h) of series with step sizes `scales` (n,), NaN where there is none."""
    h = errors[0].shape[1] if len(errors) else 0
    usual_step = float(np.nanmedian(scales)) if np.any(np.isfinite(scales)) else 0.0
    scales = np.where(np.isfinite(scales), scales, usual_step)
    sizes = mean_sizes(errors, scales)
    usual, limit = usual_and_limit(sizes)
    usable = np.flatnonzero((scales > 0.0) & ~(sizes > limit)).tolist()
    shares = [errors[i] / scales[i] for i in usable if len(errors[i])]
    pool = np.concatenate(shares) if shares else np.empty((0, h))
    size, extremes = np.isfinite(pool).sum(axis=0), _extremes(pool)
    before = np.stack(
        [np.minimum.accumulate(extremes[:, 0]), np.maximum.accumulate(extremes[:, 1])], axis=1
    )
    return ErrorPool(
        size,
        conformal_quantiles(pool, probabilities),
        np.where(size[:, None] > 0, extremes, before),
        usual_step,
        usual,
        limit,
    )


def mean_sizes(errors: Sequence[Array], scales: Array) -> Array:
    """Return mean sizes (n,) of errors (m, h) in units of scales (n,), NaN where unknown."""
    sizes = np.array([mean_of_known(np.abs(own).ravel(), axis=0) for own in errors])
    return np.asarray(sizes / np.where(scales > 0.0, scales, np.nan)) if len(errors) else sizes


def _extremes(errors: Array) -> Array:
    """Return the lowest and the highest error (..., h, 2) of columns, at most and at least 0."""
    known = np.where(np.isfinite(errors), errors, 0.0)
    ends = known.min(axis=-2, initial=0.0), known.max(axis=-2, initial=0.0)
    return np.stack(ends, axis=-1)


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
    def of(cls, loans: Sequence[Loan], probabilities: Sequence[float]) -> Pools:
        """Pool loans."""
        scales = np.array([loan.scale for loan in loans])
        naive_scales = np.array([loan.naive_scale for loan in loans])
        return cls(
            pool_errors([loan.errors for loan in loans], scales, probabilities),
            pool_errors([loan.naive_errors for loan in loans], naive_scales, probabilities),
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


def _pool_loans(parts: Sequence[list[Loan]], probabilities: Sequence[float]) -> Pools:
    """Pool the loans of all parts of a cluster."""
    loans = sorted(flatten(parts), key=lambda loan: loan.fingerprint)[:MOST_POOLED]
    return Pools.of(loans, probabilities)


def error_quantiles(
    errors: Sequence[Array],
    scales: Array,
    probabilities: Sequence[float],
    pool: ErrorPool | None = None,
) -> tuple[Array, Mask]:
    """Return conformal quantiles (n, h, P) of errors (m, h), finite and rising.

    Also returned is where (n, P) errors were enough: elsewhere even the pool had too few scores,
    and the largest was taken. By default the pool is that of these series.
    """
    h, p = errors[0].shape[1] if len(errors) else 0, np.array(probabilities)
    some = [take_evenly(own) for own in errors]
    pool = pool or pool_errors(some, scales, probabilities)
    # Nothing is known of a series without two values: it is taken for an ordinary one.
    scales = np.where(np.isfinite(scales), scales, pool.usual_step)
    sizes = mean_sizes(some, scales)
    wild = sizes > pool.limit
    scales[wild] *= sizes[wild] / pool.usual
    found = np.empty((len(errors), h, p.size))
    enough = np.ones((len(errors), p.size), dtype=bool)
    lent, borrowed = pool.extremes[None], pool.quantiles[None]
    for members in group_equal(len(own) for own in errors).values():
        own, scale = np.stack([errors[i] for i in members]), scales[members][:, None, None]
        alone = np.isfinite(own).sum(axis=1) >= np.minimum(_ENOUGH_SCORES, pool.size)
        quantiles = conformal_quantiles(own, probabilities)
        usual = np.where(scale > 0.0, borrowed * np.where(scale > 0.0, scale, 1.0), 0.0)
        seen, far = _extremes(own), lent * np.maximum(scale, 0.0)
        alone, reach = alone[:, :, None], np.abs(seen).max(axis=2, keepdims=True)
        # No quantile depends on which others are asked for: a borrowed one that stands beside own
        # ones is at least as far away as all of these.
        farther = np.where(p < 0.5, np.minimum(usual, -reach), np.maximum(usual, reach))
        usual = np.where(alone & (p != 0.5), farther, usual)
        quantiles = np.where(alone & np.isfinite(quantiles), quantiles, usual)
        reach = np.maximum(reach, np.abs(far).max(axis=2, keepdims=True))
        outermost = np.sign(p - 0.5) * reach
        enough[members] = np.isfinite(quantiles).all(axis=1)
        found[members] = np.where(np.isfinite(quantiles), quantiles, outermost)
    return found, enough


@dataclass(frozen=True)
class ErrorScale:
    """How large errors of series are: what a series borrows from the others of its panel.

    `rise` is the power of the step with which errors grow, and `scores` (m, h) are the z of the
    pool, `n_each` of every error. A series whose mean error is beyond the `limit` is wild: it says
    nothing of others, and its intervals are wider by a small power of how much its mean error
    exceeds the `usual` one. All errors together say as much as `count` independent ones, and as
    `count_signed` where those above and below the forecast are told apart.
    """

    rise: float
    usual: float
    limit: float
    scores: Array
    count: float
    n_each: int = 1
    count_signed: float = 0.0
    _known: dict[tuple[float, ...], tuple[Array, Mask]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def of(cls, errors: Array, changes: Array, usual_rise: float = _USUAL_RISE) -> ErrorScale:
        """Learn from absolute errors (n, n_windows, h), NaN where unknown.

        `changes` (n,) are mean step sizes, positive where the errors of a series count.
        """
        n, n_windows, h = errors.shape
        # In an order of their own: sums must not depend on that of the panel.
        order = np.lexsort(np.column_stack([changes, errors.reshape(n, n_windows * h)]).T)
        relative = _divide(errors[order], changes[order])
        sizes = mean_of_known(relative, axis=(1, 2))
        usual, limit = usual_and_limit(sizes)
        relative = relative[~(sizes > limit)]
        rise = _rise(relative, usual_rise)
        scores = (relative / np.arange(1.0, h + 1.0) ** rise).reshape(-1, h)
        return cls(rise, usual, limit, scores, count_errors(relative))

    @classmethod
    def of_scores(cls, scores: Array) -> ErrorScale:
        """Learn from scores (n, n_windows, h, q), q of every error; see `scores.spread_scores`."""
        h, n_each = scores.shape[2:]
        found = cls.of(np.abs(scores).mean(axis=3), np.ones(len(scores)), 0.0)
        usable = scores[~(mean_scores(scores) > found.limit)]
        pool = usable.transpose(0, 1, 3, 2).reshape(-1, h) / np.arange(1.0, h + 1.0) ** found.rise
        count = count_signed_errors(usable)
        return replace(found, scores=pool, n_each=n_each, count_signed=count, _known={})

    def half_widths(
        self, errors: Array, changes: Array, levels: Sequence[float]
    ) -> tuple[Array, Mask]:
        """Return half-widths (n, h, n_levels), 0 where nothing is known, and where enough was.

        The latter has shape (n, n_levels). Where errors were too few for a level, the largest was
        taken, grown as the quantiles of a normal distribution grow.
        """
        counts = changes > 0.0
        wider = self._find_wider(mean_of_known(_divide(errors, changes), axis=(1, 2)))
        unit = np.where(counts, changes * wider, np.nan)
        quantiles, enough = self._find_quantiles(levels)
        return np.nan_to_num(unit[:, None, None] * quantiles, nan=0.0), ~counts[:, None] | enough

    def correct(self, sizes: Array, levels: Sequence[float], side: float) -> Array:
        """Return how far (n, h, n_levels) the scores of bounds on a side, -1 or 1, are from 0.

        Held-out errors ask for them; `sizes` (n,) are the mean scores of series. The fewer errors,
        the closer sides are to each other, and both to the usual scores of real series, on the
        scale of logarithms. Those are `REAL_SPREAD` times the scores of a normal variable. The
        score of a panel is no more than so many times the normal one: a few series that broke off
        do not widen the intervals of others.
        """
        normal, trust = np.array([_normal(level) for level in levels]), trust_in(self.count)
        both, own = (
            np.maximum(np.nan_to_num(self._find_quantiles(levels, k)[0], nan=1.0), _SMALL * normal)
            for k in (0.0, side)
        )
        apart = trust_in(self.count_signed)
        usual = np.minimum(both ** (1.0 - apart) * own**apart, _MOST * normal)
        found = self._find_wider(sizes)[:, None, None] * usual
        return np.asarray(found**trust * (REAL_SPREAD * normal) ** (1.0 - trust))

    def _find_wider(self, sizes: Array) -> Array:
        """Return how many times as wide as usual the intervals of series are, given sizes (n,)."""
        wild = sizes > self.limit
        return np.asarray(np.where(wild, sizes / (self.usual or 1.0), 1.0) ** _WILD_POWER)

    def _find_quantiles(self, levels: Sequence[float], side: float = 0.0) -> tuple[Array, Mask]:
        """Return half-widths (h, n_levels) in units of changes, and where scores were enough.

        They are those of both sides together (0), or of bounds on the side -1 or 1.
        """
        key = (side, *levels)
        if key not in self._known:
            scores = side * self.scores if side else np.abs(self.scores)
            found, enough = _quantiles(scores, levels, self.n_each, signed=bool(side))
            rise = np.arange(1.0, len(found) + 1.0)[:, None] ** self.rise
            self._known[key] = rise * found, enough
        return self._known[key]


def mean_scores(scores: Array) -> Array:
    """Return mean sizes (n,) of scores (n, n_windows, h, q)."""
    return mean_of_known(np.abs(scores).mean(axis=3), axis=(1, 2))


def _divide(errors: Array, changes: Array) -> Array:
    """Return errors (n, n_windows, h) relative to changes (n,), NaN where there is no change."""
    return np.asarray(errors / np.where(changes > 0.0, changes, np.nan)[:, None, None])


def _log_sizes(sizes: Array, least: float) -> Array:
    """Return logarithms of sizes, NaN where unknown."""
    return np.log(np.maximum(sizes, least)) if least > 0.0 else np.full(sizes.shape, np.nan)


def _rise(relative: Array, usual: float) -> float:
    """The power of the step with which errors grow, drawn to the usual one."""
    size = mean_of_known(relative.reshape(-1, relative.shape[2]), axis=0)
    known = np.isfinite(size) & (size > 0.0)
    if not known.any():
        return usual
    step = np.log(np.arange(1.0, size.size + 1.0)[known])
    step, level = step - step.mean(), np.log(size[known])
    drawn = step @ level + _RISE_WEIGHT * usual
    return float(np.clip(drawn / (step @ step + _RISE_WEIGHT), usual - 0.3, usual + 0.7))


def count_errors(errors: Array) -> float:
    r"""Return as how many independent errors absolute ones (n, n_windows, h) count.

    .. math:: \frac{\sum_{iw} \sqrt{h_{iw}}}{1 + (n - 1) \rho}

    where :math:`\rho` is the share of the variance of sizes, from window to window of a series,
    that all series have in common. Few windows say little about it, so it is drawn to a usual one.
    """
    steps = np.isfinite(errors).sum(axis=2)
    n = (steps > 0).sum(axis=0)
    shared, degrees = _find_shared(mean_of_known(errors, axis=2))
    shared = (_COMMON + degrees * shared) / (1.0 + degrees)
    others = float(n[n > 0].mean()) - 1.0 if n.any() else 0.0
    return float(np.sort(np.sqrt(steps), axis=None).sum() / (1.0 + others * shared))


def count_signed_errors(scores: Array) -> float:
    r"""Return as how many independent errors scores (n, n_windows, h, q) count with their signs.

    .. math:: \frac{\sum_{iw} \min(\sqrt{h_{iw}}, h_{iw} / (1 + (h_{iw} - 1) \tau))}
        {1 + (n - 1) \rho}

    where :math:`\tau` is how alike steps of a window are, and :math:`\rho` series at a step. If all
    errors of a window lie above, they say much of sizes, but little of how many will lie above.
    """
    u, known = 2.0 * ndtr(scores).mean(axis=3) - 1.0, np.isfinite(scores).all(axis=3)
    steps, n = known.sum(axis=2), known.sum(axis=0)
    u = np.where(known, u, 0.0)
    alike = _find_likeness(u, steps, axis=2)
    own = np.minimum(np.sqrt(steps), steps / (1.0 + np.maximum(steps - 1, 0) * alike))
    others = max(float(n[n > 0].mean()) - 1.0, 0.0) if n.any() else 0.0
    shared = max(_find_likeness(np.sort(u, axis=0), n, axis=0), _COMMON)
    return float(np.sort(own, axis=None).sum() / (1.0 + others * shared))


def _find_likeness(u: Array, known: Ints, axis: int) -> float:
    """Return the mean product of two values along an axis by their mean square, from 0 to 1.

    Values are 0 where unknown; `known` counts the others.
    """
    squares = (u**2).sum(axis=axis)
    products = np.sort(u.sum(axis=axis) ** 2 - squares, axis=None).sum()
    most = np.sort(np.maximum(known - 1, 0) * squares, axis=None).sum()
    return float(np.clip(products / most, 0.0, 1.0)) if most > 0.0 else 0.0


def _find_shared(sizes: Array) -> tuple[float, int]:
    """Return the share that sizes (n, n_windows) have in common, and by how many windows but one.

    Series with one known window say nothing about it, nor do windows of one such series.
    """
    positive = sizes[sizes > 0.0]
    if not positive.size:
        return 0.0, 0
    away = _log_sizes(sizes, _SMALL * float(np.median(positive)))
    away = away - mean_of_known(away, axis=1)[:, None]
    away[np.isfinite(away).sum(axis=1) < 2] = np.nan
    n = np.isfinite(away).sum(axis=0)
    away, n = np.sort(away[:, n > 1], axis=0), n[n > 1]  # in an order of their own
    every = mean_of_known(away**2, axis=(0, 1))
    if n.size < 2 or not every > 0.0:
        return 0.0, 0
    common, alone = (mean_of_known(away, axis=0) ** 2).mean(), (1.0 / n).mean()
    return float(np.clip((common / every - alone) / (1.0 - alone), 0.0, 1.0)), n.size - 1


def trust_in(count: float) -> float:
    """Return how much so many errors count, 1 being the most, beside a network's own quantiles."""
    return count / (count + _TRUST)


def split_levels(probabilities: Sequence[float]) -> tuple[list[float], Ints, Array]:
    """Return levels of intervals whose bounds are quantiles: ascending, and without repetition.

    Also returned are the number of the level that each probability (P,) belongs to, and its side:
    -1 below the median, 1 above, 0 for the median itself.
    """
    p = np.array(probabilities)
    levels, which = np.unique(np.round(np.abs(2.0 * p - 1.0), 12), return_inverse=True)
    return levels.tolist(), which.ravel(), np.sign(np.round(p - 0.5, 12))


def _normal(level: float) -> float:
    """Half-width of the interval of a standard normal variable."""
    return float(ndtri(0.5 + level / 2.0))


def _quantiles(
    scores: Array, levels: Sequence[float], n_each: int, signed: bool
) -> tuple[Array, Mask]:
    """Quantiles (h, n_levels) of scores (m, h), and where (n_levels,) these were enough.

    They are those of sizes; of `signed` scores, upper bounds of intervals of the levels. There are
    `n_each` scores of every error.
    """
    h = scores.shape[1]
    known = np.isfinite(scores).sum(axis=0)
    at, found = np.flatnonzero(known), np.full((h, len(levels)), np.nan)
    if not at.size:
        return found, np.full(len(levels), not h)
    enough = np.ones(len(levels), dtype=bool)
    for (first, last), steps in group_equal(_nearest_columns(at, known[at] // n_each, h)).items():
        pool = scores[:, at[first:last]]
        pool = np.sort(pool[np.isfinite(pool)])
        count = pool.size / n_each / np.sqrt(last - first)
        for j, level in enumerate(levels):
            # Rounded first, since the product may exceed an integer by a rounding error.
            if not level:
                found[steps, j] = 0.0
                continue
            share = (count + 1.0) * level / count
            share = 0.5 + share / 2.0 if signed else share
            rank = int(np.ceil(np.round(share * pool.size, 9)))
            if rank <= pool.size:
                found[steps, j] = pool[rank - 1]
            else:
                enough[j] = False
                found[steps, j] = pool[-1] * _normal(level) / _normal(count / (count + 1.0))
    return found, enough


def _nearest_columns(at: Ints, counts: Ints, h: int) -> list[tuple[int, int]]:
    """Return which columns ``at`` (c,) are pooled for each of h steps: from the first to the last.

    They are those no farther away than the nearest that hold scores enough, of which there are
    `counts` (c,) in each.
    """
    before, found = np.concatenate([[0], np.cumsum(counts)]), []
    for k in range(h):
        away = np.sort(np.abs(at - k))
        low, high = np.searchsorted(at, k - away), np.searchsorted(at, k + away, side="right")
        wide = np.flatnonzero(before[high] - before[low] >= _ENOUGH_ERRORS)
        best = wide[0] if wide.size else -1
        found.append((int(low[best]), int(high[best])))
    return found
