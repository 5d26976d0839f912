r"""Sample paths: quantiles of single steps, tied together by how errors go on over time.

.. math:: y_k = Q_k(F_k(z_k)), \qquad z_k = \varepsilon_k + \alpha \sum_{j<k}
    \varphi^{k-1-j} \varepsilon_j

where :math:`Q_k` is the quantile function of step k, and :math:`F_k` the distribution function of
:math:`z_k`, so every step has the distribution that was forecast, and only ranks of z count. A
share :math:`\alpha` of a shock stays after its step, and fades by :math:`\varphi`: none stays in
noise, all in a random walk. How much of it stays in a series shows in how fast its quantiles
spread,

.. math:: \left( \frac{\text{width}_k}{\text{width}_1} \right)^2 = 1 + \alpha^2 \sum_{j=0}^{k-2}
    \varphi^{2j}

Quantiles that spread a little do not tell whether a little stays for certain, or much with a small
probability, which matters for sums. So :math:`\alpha` has a distribution,

.. math:: \alpha_i \sim \text{Beta}, \qquad E \alpha_i^2 = (c \, a_i)^2 + d^2, \qquad
    p(\alpha_i \mid z) \propto p(\alpha_i) \prod_w p(z_{iw} \mid \alpha_i)

where :math:`a_i` is what the quantiles of series i say, :math:`z_{iw}` are its errors in earlier
windows, and the factor c, what stays at least, d, and how alike the series of the panel are,
:math:`\nu` in Beta(:math:`\nu m, \nu (1 - m)`), are those under which the errors of all series are
likeliest. Every path has an :math:`\alpha` of its own.

The shocks of a path, :math:`\varepsilon`, are those of one earlier window of any series of the
panel that is not wild, as they were or all turned round, with a little noise: a new level, or a
spell of large errors, is as rare in paths as it was. Where there were few windows, most are normal.
Only where that is asked for, shocks of different series are alike, see `forecasting.together`; then
much stays in all series of a path, or little in all. Where noise is filtered, paths go on as those
of the cloud of states. Of a series without values it is unknown which of its peers it is like. That
does not change from step to step: a share of the variance of its z, by how far apart the levels of
the peers are, is the same normal variable at all steps.

Of n paths, one lies between any two neighbors of n + 1 quantiles at every step (Latin hypercube
sampling), so quantiles of few paths are close to the quantiles that were forecast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import blake2b
from itertools import product

import numpy as np
from scipy.special import betainc, ndtr, ndtri

from rbfdiffnet.forecasting.together import Likeness, Shared, find_likeness
from rbfdiffnet.pretrained.network import PROBABILITIES
from rbfdiffnet.series.outliers import find_wild
from rbfdiffnet.support.arrays import Array, Ints, Mask, mean_of_known

_TAIL = (2.75, 3.25, 4.0, 5.0)  # normal scores of quantiles beyond those of the network
#: Normal scores of the quantiles that paths are made of, and their probabilities.
GRID = np.sort(
    [*ndtri(PROBABILITIES), *ndtri((0.025, 0.15, 0.85, 0.975)), *_TAIL, *np.negative(_TAIL)]
)
GRID_PROBABILITIES = [round(float(p), 12) for p in ndtr(GRID)]
_LOW, _HIGH = (int(np.argmin(np.abs(GRID - ndtri(p)))) for p in (0.1, 0.9))
_LEAST, _MOST = 0.05, 2.0  # shares of a shock that stay
_FADES = (1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.45, 0.3)
_FAR = 5.0  # an error that is still larger says nothing more
_PRIOR = 20  # windows of errors that count as much as what is known without any
_NOISE = 0.1  # standard deviation of what is new in shocks that were seen before
_MOST_SEEN = 4_096  # windows whose shocks are kept
_EDGES = np.linspace(0.0, 1.0, 33) ** 1.5
_SHARES = 0.5 * (_EDGES[1:] + _EDGES[:-1])  # of a shock that may stay
_STEP, _FARTHEST = 0.1, 0.02  # between logarithms of shares that are told apart, and the least
# Of a panel: the logarithm of the factor, what stays at least, and how alike series are; and the
# standard deviations of their priors: of the first two around 0, of log(alike / _USUAL_ALIKE).
_LOG_FACTORS = np.linspace(-1.0, 1.0, 21)
_LEAST_OF_ALL = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)
_ALIKE, _USUAL_ALIKE = (2.0, 4.0, 8.0, 16.0, 32.0), 4.0
_DEVIATIONS = (0.4, 0.15, 0.7)
_SURE = 4.0  # shocks that count as much as that their variance is usually 1
#: Values of paths that are drawn at once.
VALUES_AT_ONCE = 2**19


@dataclass(frozen=True)
class Dependence:
    """How shocks go on in n series.

    `stays` (n, J) are equally likely shares of a shock that stay in a path, and `fades` (n,) what
    is left of that after another step. `likeness` tells how shocks of different series are alike;
    without it they are independent. `seeds` (n,) belong to the series, whatever others there are.
    Some series have `clouds` instead: paths (N, h) that go on as theirs. Rows of `seen` (m, k) are
    shocks of earlier windows, drawn with either sign, NaN for normal ones; k may be less than h,
    and without any row all shocks are normal. `lasting` are shares of variance that are a level of
    the whole path, of the series that have any.
    """

    stays: Array
    fades: Array
    likeness: Likeness | None
    seeds: Sequence[int]
    clouds: Mapping[int, Array] = field(default_factory=dict)
    seen: Array = field(default_factory=lambda: np.empty((0, 1)))
    lasting: Mapping[int, float] = field(default_factory=dict)

    def draw_common(self, h: int, n_paths: int, seed: int) -> Shared | None:
        """Return the shocks that series have in common, the same for whichever are drawn."""
        generator = _generator(seed, 2)
        fill = partial(self._draw_shocks, generator)
        return None if self.likeness is None else self.likeness.draw(fill, h, n_paths)

    def draw(
        self,
        quantiles: Array,
        n_paths: int,
        seed: int,
        first: int = 0,
        common: Shared | None = None,
    ) -> Array:
        """Return paths (n, h, n_paths) of series from `first` on, given quantiles (n, h, P).

        `common` is what `draw_common` returned, if it is there already.
        """
        n, h, _ = quantiles.shape
        some = slice(first, first + n)
        (shocks, places), stays = np.empty((2, n, h, n_paths)), np.empty((n, n_paths))
        levels: dict[int, Array] = {}
        for i, key in enumerate(self.seeds[some]):
            generator = _generator(seed, key)
            self._draw_shocks(generator, shocks[i])
            generator.random(out=places[i])
            stays[i] = _spread(generator, self.stays[first + i], n_paths)
            if first + i in self.lasting:
                levels[i] = generator.standard_normal(n_paths)
        common = common or self.draw_common(h, n_paths, seed)
        if self.likeness is not None and common is not None:
            self.likeness.tie(shocks, common, some)
            # Much stays in all series of a path, or little, so that shocks remain alike.
            stays = _spread(_generator(seed, 0), self.stays[some].T, n_paths).T
        z = _accumulate(shocks, stays, self.fades[some])
        for i, level in levels.items():
            share, usual = self.lasting[first + i], np.sqrt((z[i] ** 2).mean(axis=1, keepdims=True))
            z[i] = np.sqrt(share) * level + np.sqrt(1.0 - share) * z[i] / usual
        for i, cloud in self.clouds.items():
            if first <= i < first + n:
                chosen = _generator(seed, self.seeds[i]).integers(len(cloud), size=n_paths)
                z[i - first] = cloud[chosen].T
        return _place(z, quantiles, places)

    def add_errors(
        self, linked: Array, std: Array, quantiles: Array, seed: int, first: int = 0
    ) -> Array:
        """Return paths (n, h, n_paths) with errors of inputs, of which each step has its own.

        Normal ones of standard deviations (n, h) are added to linked paths (n, h, n_paths). Only
        ranks of the sums count: paths get the quantiles (n, h, P) that were forecast.
        """
        errors, places = np.empty((2, *linked.shape))
        for i, key in enumerate(self.seeds[first : first + len(linked)]):
            generator = _generator(seed, key - 1)
            generator.standard_normal(out=errors[i])
            generator.random(out=places[i])
        return _place(linked + std[:, :, None] * errors, quantiles, places)

    def _draw_shocks(self, generator: np.random.Generator, out: Array) -> None:
        """Fill shocks (h, n_paths) with whole rows of those that were seen."""
        h, n_paths = out.shape
        generator.standard_normal(out=out)
        n, steps = self.seen.shape
        for first in range(0, h if n else 0, steps):
            own = out[first : first + steps]
            row, turned = np.divmod(generator.integers(2 * n, size=n_paths), 2)
            drawn = self.seen[row, : len(own)].T * (1.0 - 2.0 * turned)
            mixed = np.sqrt(1.0 - _NOISE**2) * drawn + _NOISE * own
            np.copyto(own, mixed, where=np.isfinite(mixed))


def find_dependence(
    quantiles: Array,
    errors: Sequence[Array],
    seeds: Sequence[int],
    clouds: Mapping[int, Array] | None = None,
    together: tuple[Array, Ints] | None = None,
    sparse: Mask | None = None,
) -> Dependence:
    """Learn how shocks go on, from quantiles (n, h, P) and errors of earlier forecasts.

    Each series has errors (m, k), a row for each window, the latest last, and an error of 1 is
    usual; k may be less than h, and m may be 0. `together` are surprises (n, T) and groups (L, n),
    see `forecasting.together`, where shocks of series are to be alike. Wild series, see
    `series.outliers`, say nothing. Errors of series that are often zero, `sparse` (n,), do not tell
    what stays: those of zeros are alike because the values are. Their level is never known well, so
    in all of their paths the same share stays.
    """
    stays, fades = _read_shocks(quantiles)
    wild = find_wild(np.array([mean_of_known(np.abs(own).ravel(), axis=0) for own in errors]))
    scores = _standardize(
        [np.full_like(own, np.nan) if away else own for own, away in zip(errors, wild, strict=True)]
    )
    sparse = np.zeros(len(errors), dtype=bool) if sparse is None else sparse
    likelihood = np.where(sparse[:, None], 1.0, _find_likelihood(fades, scores))
    shares = _find_shares(stays, likelihood)
    usual = np.sqrt((shares**2).mean(axis=1, keepdims=True))
    shares = np.where(sparse[:, None], usual, shares)
    likeness = None
    if together is not None:
        surprises, groups = together
        likeness = find_likeness(np.where(wild[:, None], 0.0, surprises), groups)
    order = sorted(range(len(seeds)), key=seeds.__getitem__)  # whatever that of the panel
    seen = _find_shocks(scores, shares.mean(axis=1), fades, order)
    return Dependence(shares, fades, likeness, seeds, clouds or {}, seen)


def find_lasting_share(quantiles: Array, counts: Mask) -> float:
    """Return which share of the variance of a mixture lasts: that of the levels of its variables.

    The m variables have quantiles (m, h, P) at `GRID`; `counts` (m, h) tells which a step mixes.
    """
    quantiles = quantiles / (np.abs(quantiles).max() or 1.0)  # squares must not overflow
    medians = quantiles[:, :, GRID.size // 2]
    within = (quantiles[:, :, _HIGH] - quantiles[:, :, _LOW]) / (GRID[_HIGH] - GRID[_LOW])
    away = np.where(counts, medians - (counts * medians).sum(axis=0) / counts.sum(axis=0), 0.0)
    n_steps = np.maximum(counts.sum(axis=1), 1)
    total = (away**2 + counts * within**2).sum()
    lasts = (away.sum(axis=1) ** 2 / n_steps).sum()
    return float(np.clip(lasts / total, 0.0, 1.0)) if total > 0.0 else 0.0


def find_means(quantiles: Array) -> Array:
    """Return the means (n, h) of values whose quantiles (n, h, P) are those at `GRID`."""
    below, inside = ndtr(GRID), np.diff(ndtr(GRID))
    density = np.exp(-0.5 * GRID**2) / np.sqrt(2.0 * np.pi)
    moment, width = -np.diff(density), np.diff(GRID)  # of normal scores between neighbors
    weight = np.zeros(GRID.size)
    weight[1:] += (moment - GRID[:-1] * inside) / width
    weight[:-1] += (GRID[1:] * inside - moment) / width
    weight[[0, -1]] += below[0], 1.0 - below[-1]
    return np.asarray(quantiles @ weight)


def seeds_of(names: Sequence[str]) -> list[int]:
    """Return a number for every name, above 0, the same in every run."""
    digests = (blake2b(str(name).encode(), digest_size=8).digest() for name in names)
    return [int.from_bytes(digest) | 1 for digest in digests]


def _read_shocks(quantiles: Array) -> tuple[Array, Array]:
    """Return the share of a shock that stays, and how it fades, (n,), by how quantiles spread."""
    n, h, _ = quantiles.shape
    width = quantiles[:, :, _HIGH] - quantiles[:, :, _LOW]
    growth = (width / np.where(width[:, :1] > 0.0, width[:, :1], np.inf)) ** 2 - 1.0
    squared, left = np.empty((2, len(_FADES), n))
    for j, fade in enumerate(_FADES):
        kept = _kept(fade, h)
        squared[j] = np.maximum(growth @ kept / max(float(kept @ kept), 1e-300), 0.0)
        left[j] = ((growth - squared[j][:, None] * kept) ** 2).sum(axis=1)
    best = np.argmin(left, axis=0)
    stays = np.sqrt(squared[best, np.arange(n)])
    return np.clip(stays, _LEAST, _MOST), np.array(_FADES)[best]


def _kept(fade: float, h: int) -> Array:
    """Return what is left of the squares of all shocks before each step, (h,)."""
    return np.concatenate([[0.0], np.cumsum(fade ** (2.0 * np.arange(h - 1)))])


def _standardize(errors: Sequence[Array]) -> list[Array]:
    """Return errors in units of their usual size at each step; NaN where unknown."""
    known = [np.where(np.isfinite(own), np.clip(own, -_FAR, _FAR), np.nan) for own in errors]
    table = np.concatenate(known) if known else np.empty((0, 1))
    squares = np.nansum(np.sort(table**2, axis=0), axis=0)  # whatever the order of the panel
    counts = np.isfinite(table).sum(axis=0)
    usual = np.sqrt(np.where(squares > 0.0, squares, 1.0) / np.maximum(counts, 1))
    return [own / usual for own in known]


def _find_shares(said: Array, likelihood: Array) -> Array:
    """Return equally likely shares of a shock that stay, (n, J), given what quantiles said (n,).

    `likelihood` (n, J) is that of `_SHARES`. Where quantiles say that more than all stays, that
    number is used, and errors are not asked.
    """
    told = np.flatnonzero(likelihood.min(axis=1) < 1.0)
    fits = {alike: np.log(likelihood[told] @ _find_prior(alike).T) for alike in _ALIKE}
    best, found, factor = -np.inf, likelihood, 1.0
    for log_factor, least in product(_LOG_FACTORS, _LEAST_OF_ALL):
        usual = np.hypot(np.exp(log_factor) * said, least)
        place = np.rint(-np.log(np.clip(usual, _FARTHEST, 1.0)) / _STEP).astype(np.int64)
        for alike, fit in fits.items():
            away = np.array([log_factor, least, np.log(alike / _USUAL_ALIKE)]) / _DEVIATIONS
            # In an order of their own: sums must not depend on that of the panel.
            total = np.sort(fit[np.arange(told.size), place[told]]).sum() - 0.5 * (away @ away)
            if total > best:
                best, factor = total, np.exp(log_factor)
                found = _find_prior(alike)[place] * likelihood
    upto = np.cumsum(found, axis=1) / found.sum(axis=1, keepdims=True)
    levels = (np.arange(_SHARES.size) + 0.5) / _SHARES.size
    shares = _SHARES[(upto[:, :-1, None] < levels).sum(axis=1)]
    whole = np.minimum(factor * said, _MOST)[:, None]
    return np.where(whole >= 1.0, whole, shares)


@cache
def _find_prior(alike: float) -> Array:
    """Return probabilities (L, J) of shares, of Beta distributions whose mean squares fall."""
    places = np.arange(round(-np.log(_FARTHEST) / _STEP) + 1)
    square, k = np.exp(-2.0 * _STEP * places), 1.0 / (alike + 1.0)
    mean = (np.sqrt(k**2 + 4.0 * (1.0 - k) * square) - k) / (2.0 * (1.0 - k))
    mean = alike * np.clip(mean, 1e-6, 1.0 - 1e-6)[:, None]
    return np.maximum(np.diff(betainc(mean, alike - mean, _EDGES), axis=1), 1e-12)


def _find_likelihood(fades: Array, scores: Sequence[Array]) -> Array:
    """Return how likely the scores of each series are, (n, J), by the share of a shock that stays.

    The largest is 1. Shocks are normal, and their variance is unknown, but probably about 1.
    """
    found = np.ones((len(scores), _SHARES.size))
    rows = [i for i, own in enumerate(scores) if own.size]
    if not rows:
        return found
    counts = [len(scores[i]) for i in rows]
    table, fade = np.concatenate([scores[i] for i in rows]), np.repeat(fades[rows], counts)
    squares, stretch = np.zeros((2, _SHARES.size, len(table)))
    for shock, scale in _recover(table, _SHARES[:, None], fade):
        squares += np.nan_to_num(shock) ** 2
        stretch += np.log(scale) * np.isfinite(shock)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    squares, stretch = (np.add.reduceat(own, starts, axis=1) for own in (squares, stretch))
    known = np.add.reduceat(np.isfinite(table).sum(axis=1), starts)
    fit = stretch - 0.5 * (known + _SURE) * np.log(squares + _SURE)
    found[rows] = np.exp(fit - fit.max(axis=0)).T
    return found


def _recover(scores: Array, stays: Array, fades: Array) -> Iterator[tuple[Array, Array]]:
    """Yield shocks, (m,) or (J, m), that lead to scores (m, k), and scales of scores, step by step.

    They are NaN where scores are unknown; such a shock counts as 0 in the steps after it.
    """
    state, kept = np.zeros(np.broadcast_shapes(stays.shape, fades.shape)), np.zeros(fades.shape)
    for score in scores.T:
        scale = np.sqrt(1.0 + stays**2 * kept)
        shock = score * scale - stays * state
        yield shock, scale
        state, kept = fades * state + np.nan_to_num(shock), fades**2 * kept + 1.0


def _find_shocks(
    scores: Sequence[Array], stays: Array, fades: Array, order: Sequence[int]
) -> Array:
    """Return shocks (m, k) that lead to the scores of windows, of series in an order.

    They are NaN where scores are unknown. Windows that are mostly unknown have none; rows of NaN
    are what is known without any window.
    """
    rows = [i for i in order if scores[i].size and scores[i].shape[1] > 1]
    if not rows:
        return np.empty((0, 1))
    owner = np.repeat(rows, [len(scores[i]) for i in rows])
    table = np.concatenate([scores[i] for i in rows])
    steps = table.shape[1]
    good = np.flatnonzero(np.isfinite(table).mean(axis=1) >= 0.5)
    if good.size > _MOST_SEEN:
        good = good[np.linspace(0, good.size - 1, _MOST_SEEN).astype(np.int64)]
    own = owner[good]
    shocks = [shock for shock, _ in _recover(table[good], stays[own], fades[own])]
    return np.concatenate([np.column_stack(shocks), np.full((_PRIOR, steps), np.nan)])


def _accumulate(shocks: Array, stays: Array, fades: Array) -> Array:
    """Return z (n, h, n_paths) of shocks, of which shares (n, n_paths) stay."""
    found, state = shocks.copy(), np.zeros_like(shocks[:, 0])
    for k in range(1, shocks.shape[1]):
        state = fades[:, None] * state + shocks[:, k - 1]
        found[:, k] += stays * state
    return found


def _spread(generator: np.random.Generator, shares: Array, n_paths: int) -> Array:
    """Return shares, (J,) or (J, n), for all paths: evenly from the whole list, in any order."""
    size = len(shares)
    at = generator.permutation(n_paths) * size + generator.integers(size, size=n_paths)
    return np.asarray(shares[at // n_paths])


def _generator(seed: int, key: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=np.array([seed, key], dtype=np.uint64)))


def _place(z: Array, quantiles: Array, places: Array) -> Array:
    """Return values (n, h, m) with quantiles (n, h, P) in the order of z (n, h, m).

    Places (n, h, m) between 0 and 1 tell where values lie between their neighbors.
    """
    n_paths = z.shape[2]
    values = _interpolate(ndtri((np.arange(n_paths) + places) / n_paths), quantiles)
    paths = np.empty(z.shape)
    np.put_along_axis(paths, np.argsort(z, axis=2), values, axis=2)
    return paths


def _interpolate(scores: Array, quantiles: Array) -> Array:
    """Return values (n, h, m) of scores, on lines between quantiles (n, h, P) at `GRID`."""
    scores = np.clip(scores, GRID[0], GRID[-1])
    upper: Ints = np.clip(np.searchsorted(GRID, scores), 1, GRID.size - 1)
    share = (scores - GRID[upper - 1]) / (GRID[upper] - GRID[upper - 1])
    low = np.take_along_axis(quantiles, upper - 1, axis=2)
    return np.asarray(low + share * (np.take_along_axis(quantiles, upper, axis=2) - low))
