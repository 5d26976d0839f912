r"""Effects of inputs known in advance: weekday, promotion, holiday, price.

Effects are estimated first, by a penalized regression of the series' swings around its level on
the inputs' swings around theirs, and taken out; the network learns what is left:

.. math:: s_t = u_t\,(1 + e_t) \quad \text{or} \quad s_t = u_t + e_t, \qquad
    e_t = \gamma \cdot (x_t - \bar x)

The first form is for series that are never negative, whose effects grow with their level. The level
is a centered moving average, so slow changes of the series are not mistaken for an effect.

Effects are either the same for one or several series (`fit_robust_effects`), or every series of a
panel has its own, shrunk toward what all of them have in common (`fit_pooled_effects`):

.. math:: r_i = Z_i \gamma_i + \varepsilon_i, \qquad \varepsilon_i \sim N(0, \sigma_i^2), \qquad
    \gamma_{ij} \sim N(\bar\gamma_j, \max(\sigma_i, \sigma)^2 \tau_j^2)

with the swings :math:`r_i, Z_i` of series i and of its inputs, and :math:`\sigma` the usual
:math:`\sigma_i`. A holiday comes once a year: one series alone says little about it, all together
say a lot. How much an effect differs between series, :math:`\tau_j^2`, and what it usually is,
:math:`\bar\gamma_j`, are found by expectation maximization; an effect that differs much is left to
each series, one that does not is shared.

How far effects may be off is known, too: with the products :math:`A` of the swings of inputs plus
the penalty, and the variance :math:`\sigma^2` of what effects leave, their errors have

.. math:: \sigma^2 A^{-1} + b b^\top, \qquad b = \lambda A^{-1} \gamma

where b is about what a penalty :math:`\lambda` takes from an effect, and :math:`\sigma` grows with
relative effects, as the series does. Held-out errors hold what inputs that are often used add to
them; the errors of inputs that are seldom used widen forecasts, as far as they are not usual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from rbfdiffnet.series.gaps import fill_missing
from rbfdiffnet.series.outliers import OutlierRule
from rbfdiffnet.support.arrays import Array, Ints, Mask
from rbfdiffnet.support.parallel import SINGLE_MACHINE, Collective, flatten

RIDGE = 0.3  # in rows with the input switched on
_SHORTEST_WINDOW = 57  # steps: longer than a month of days
_SMALLEST_LEVEL = 0.1  # of the mean
_CLOSED = 0.2  # share of the level below which an effect leaves nothing to learn from
_WILD = 9.0  # times the usual variance of swings, beyond which a series counts less
TYPO, COMMON = 30.0, 0.05  # times the median distance from the median, and a share of values
_RARE = 5  # days on which an input is switched on
_SELDOM, _FEW = 0.05, 8  # of all steps, and steps: inputs not 0 at more have well known effects

# Of pooled effects:
_ROUNDS = 8
_PENALTY = 20.0  # 1 / tau^2 to begin with
_PRIOR_SERIES = 2.0  # number of series that this first penalty counts as
_LEAST_VARIANCE = 1e-5  # smallest tau^2
_DEPENDENT = 2.0  # how much less differences say, since errors follow each other
_FAR_APART = 9.0  # times the usual squared difference: no single series counts more
_MOST_SERIES = 500  # from which the common effects are found
_FEWEST_SERIES = 3


@dataclass(frozen=True)
class Effects:
    r"""Effects :math:`\gamma` of q inputs around their means :math:`\bar x`, both of shape (q,).

    Relative effects are shares of the level. The inputs at the places `seldom`, (k,), are seldom
    used; errors of their effects have the covariances `doubt`, (k, k).
    """

    gamma: Array
    center: Array
    relative: bool
    seldom: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    doubt: Array = field(default_factory=lambda: np.empty((0, 0)))

    @classmethod
    def of(
        cls,
        found: tuple[Array, Array, Array],
        unit: Array,
        center: Array,
        relative: bool,
        seldom: Mask,
    ) -> Effects:
        """Return effects, given what is `found` of inputs in some units.

        That are effects (q,), covariances of their errors (q, q), and what a penalty takes (q,).
        """
        gamma, doubt, taken = found
        some = np.flatnonzero(seldom & (gamma != 0.0))
        grow = np.maximum(1.0 + gamma, 1.0) if relative else np.ones_like(gamma)
        errors = np.outer(grow, grow) * doubt + np.outer(taken, taken)
        errors = (errors / np.outer(unit, unit))[np.ix_(some, some)]
        return cls(gamma / unit, center, relative, some, errors)

    def parts(self, X: Array) -> Array:
        """Return the effect of every input, shape (..., q)."""
        return np.asarray((X - self.center) * self.gamma)

    def total(self, X: Array) -> Array:
        """Return the effect of all inputs together, shape (...); a relative one is at least -1."""
        effect: Array = self.parts(X).sum(axis=-1)
        return np.maximum(effect, -1.0) if self.relative else effect

    def deviation(self, X: Array, past: Array) -> Array:
        """Return the standard deviation (h,) of what errors of the effects of seldom inputs add.

        Held-out errors hold as much of them as is usual in the past; only more than that counts.
        """
        if not self.seldom.size:
            return np.zeros(len(X))
        own, usual = X[:, self.seldom], past[:, self.seldom]
        more = ((own @ self.doubt) * own).sum(axis=1)
        return np.asarray(
            np.sqrt(np.maximum(more - ((usual @ self.doubt) * usual).sum(axis=1).mean(), 0.0))
        )

    def remove(self, series: Array, X: Array) -> Array:
        """Return the series without effects; NaN where a relative effect leaves under a fifth."""
        effect = self.total(X)
        if not self.relative:
            return np.asarray(series - effect)
        factor = 1.0 + effect
        return np.where(factor < _CLOSED, np.nan, series / np.maximum(factor, _CLOSED))

    def restore(self, base: Array, X: Array) -> Array:
        """Put the effects back."""
        effect = self.total(X)
        return np.asarray(base * (1.0 + effect) if self.relative else base + effect)


Found = TypeVar("Found", Effects, list[Effects])


def fit_robust_effects(
    series: Sequence[Array],
    inputs: Sequence[Array],
    *,
    season_length: int,
    clean: bool = True,
    relative: bool = True,
    collective: Collective = SINGLE_MACHINE,
) -> Effects:
    """Estimate the same effects for one series, or for several on comparable scales.

    Every series has shape (T,) with NaN where missing, its inputs (T, q). With ``clean``, outliers
    do not count; typos in inputs never do. The ``collective`` has the other parts of the panel.
    """
    inputs = [without_typos(X) for X in inputs]
    settings: Any = {"season_length": season_length, "relative": relative, "collective": collective}

    def fit(filled: list[Array], known: list[Mask]) -> Effects:
        return fit_effects(filled, inputs, known, **settings)

    return _fit_without_outliers(fit, series, inputs, season_length, clean)


def fit_pooled_effects(
    series: Sequence[Array],
    inputs: Sequence[Array],
    *,
    season_length: int,
    clean: bool = True,
    relative: bool = True,
    common: CommonEffects | None = None,
) -> tuple[list[Effects] | None, CommonEffects | None]:
    """Estimate effects for every series of a panel, shrunk toward those in common.

    Arguments are as for `fit_robust_effects`; relative effects are for series that are never
    negative. What is ``common`` is found in these series, unless it is known from others, and
    returned, too. Both are None if there are no inputs, or fewer than three series to find it in.
    """
    if not series or (common is None and len(series) < _FEWEST_SERIES):
        return None, common
    if common is None and not inputs[0].shape[1]:
        return None, None
    inputs = [without_typos(X) for X in inputs]
    common = common or CommonEffects.of(inputs)
    shares = [relative and never_negative(y[np.isfinite(y)]) for y in series]
    units, rounds = common.units(inputs), iter(common.rounds)
    found: list[dict[bool, Prior]] = []

    def fit(filled: list[Array], known: list[Mask]) -> list[Effects]:
        evidence = list(_gather(filled, inputs, known, units, shares, season_length))
        priors = next(rounds, {})
        if not priors:
            kinds: dict[bool, list[_Evidence]] = {
                True: [],
                False: [],
            }  # shares of levels and other swings do not compare
            for own, share in zip(evidence, shares, strict=True):
                kinds[share].append(own)
            priors = {kind: find_prior(some, units.shape[1]) for kind, some in kinds.items()}
        found.append(priors)
        return [
            Effects.of(priors[share].shrink(own), unit, X.mean(axis=0), share, is_seldom(X))
            for own, unit, X, share in zip(evidence, units, inputs, shares, strict=True)
        ]

    effects = _fit_without_outliers(fit, series, inputs, season_length, clean)
    return effects, replace(common, rounds=tuple(found))


@dataclass(frozen=True)
class CommonEffects:
    """What effects have in common: which of q inputs are switches, usual spreads, and priors.

    There are priors of relative (True) and other effects (False), found with all values and then
    without outliers.
    """

    binary: Mask
    usual: Array
    rounds: tuple[dict[bool, Prior], ...] = ()

    @classmethod
    def of(cls, inputs: Sequence[Array]) -> CommonEffects:
        """Look at the inputs of all series."""
        binary = np.all([is_binary(X) for X in inputs], axis=0)
        spread = _spreads(inputs)
        changing = np.isfinite(spread).any(axis=0)
        usual = np.ones(binary.size)
        usual[changing] = np.nanmedian(spread[:, changing], axis=0)
        return cls(binary, usual)

    def units(self, inputs: Sequence[Array]) -> Array:
        """Return units of the inputs of each series, (n, q): 1 for switches, else the spread."""
        spread = _spreads(inputs)
        return np.where(self.binary, 1.0, np.where(np.isnan(spread), self.usual, spread))


def _spreads(inputs: Sequence[Array]) -> Array:
    """Return standard deviations of the inputs of each series, (n, q); NaN for constants."""
    spread = np.array([X.std(axis=0) for X in inputs])
    return np.where(spread > 0.0, spread, np.nan)


def _fit_without_outliers(
    fit: Callable[[list[Array], list[Mask]], Found],
    series: Sequence[Array],
    inputs: Sequence[Array],
    season_length: int,
    clean: bool,
) -> Found:
    """Estimate effects, leave out the outliers that they do not explain, and estimate again.

    ``fit`` takes series without gaps, and masks of the values to learn from.
    """
    known = [np.isfinite(y) for y in series]
    effects = fit(_fill_all(series, known, season_length), known)
    if not clean:
        return effects
    own = effects if isinstance(effects, list) else [effects] * len(series)
    known = [
        _find_learnable(y, X, e, season_length) for y, X, e in zip(series, inputs, own, strict=True)
    ]
    return fit(_fill_all(series, known, season_length), known)


def _fill_all(series: Sequence[Array], known: list[Mask], season_length: int) -> list[Array]:
    """Replace all values that are not known; a series without any known value stays as it is."""
    return [
        fill_missing(np.where(mask, y, np.nan), season_length) if mask.any() else y
        for y, mask in zip(series, known, strict=True)
    ]


def _find_learnable(y: Array, inputs: Array, effects: Effects, season_length: int) -> Mask:
    """Find the values to learn effects from: known, and no outliers once effects are removed.

    What happens on the few days of a rare input is its effect, not an outlier.
    """
    switched = np.where(is_binary(inputs), inputs.sum(axis=0), np.inf)
    rare = (inputs[:, switched <= _RARE] == 1.0).any(axis=1)
    rest = effects.remove(y, inputs)
    is_outlier = OutlierRule.fit(rest, season_length).find(rest)
    return np.asarray(np.isfinite(y) & (~is_outlier | rare))


@dataclass(frozen=True)
class _Evidence:
    """What one series says about effects: Z'Z, Z'r, r'r, and the number of rows.

    The swings r are in units of ``scale``, so that squares of tiny ones do not vanish.
    """

    gram: Array
    moment: Array
    square: float
    count: int
    scale: float = 1.0


def _gather(
    series: Sequence[Array],
    inputs: Sequence[Array],
    known: Sequence[Mask],
    units: Sequence[Array] | Array,
    relative: Sequence[bool],
    season_length: int,
) -> Iterator[_Evidence]:
    """Yield the evidence of each series without gaps, whose inputs have the given units."""
    for y, X, mask, unit, share in zip(series, inputs, known, units, relative, strict=True):
        Z, r = compute_swings(y, X / unit, season_length=season_length, relative=share)
        Z, r = Z[mask], r[mask]
        scale = 1.0
        if not share and r.any():
            largest = float(np.abs(r).max())
            scale = largest * float(np.sqrt(((r / largest) ** 2).mean()))
            r = r / scale
        yield _Evidence(Z.T @ Z, Z.T @ r, float(r @ r), len(r), scale)


def fit_effects(
    series: Sequence[Array],
    inputs: Sequence[Array],
    known: Sequence[Mask],
    *,
    season_length: int,
    relative: bool = True,
    collective: Collective = SINGLE_MACHINE,
) -> Effects:
    """Estimate the same effects for series without gaps, from the values in the masks ``known``.

    Effects are relative where no series is ever negative. Of relative effects, series that swing
    more than three times as much as usual say less.
    """
    center, unit, seldom, positive = collective.all_reduce(
        lambda: _summarize(series, inputs), _find_units
    )
    relative = relative and positive

    def evidence() -> Iterator[_Evidence]:
        n = len(series)
        found = _gather(series, inputs, known, [unit] * n, [relative] * n, season_length)
        return (own for own in found if own.count)

    usual = collective.all_reduce(
        lambda: [own.square / own.count for own in evidence()], _usual_variance
    )

    def products() -> tuple[Array, Array, float, int]:
        gram, moment = np.zeros((center.size, center.size)), np.zeros(center.size)
        square, count = 0.0, 0
        for own in evidence():
            variance = own.square / own.count
            wild = relative and variance > _WILD * usual
            weight = _WILD * usual / variance if wild else 1.0
            gram += weight * own.gram
            moment += weight * own.scale * own.moment
            square += weight * own.scale**2 * own.square
            count += own.count
        return gram, moment, square, count

    found = collective.all_reduce(products, _solve)
    return Effects.of(found, unit, center, relative, seldom)


@dataclass(frozen=True)
class _Summary:
    """What the units of inputs follow from: n rows of some series."""

    n: int
    mean: Array
    variance: Array
    binary: Mask
    used: Array
    positive: bool


def _summarize(series: Sequence[Array], inputs: Sequence[Array]) -> _Summary | None:
    if not inputs:
        return None
    rows = np.concatenate(inputs)
    positive = all(never_negative(s) for s in series)
    used = np.mean(rows != 0.0, axis=0)
    return _Summary(len(rows), rows.mean(axis=0), rows.var(axis=0), is_binary(rows), used, positive)


def _find_units(parts: list[_Summary | None]) -> tuple[Array, Array, Mask, bool]:
    """Return means and units of inputs, which are seldom, and if no series is negative."""
    some = [part for part in parts if part is not None]
    n = np.array([part.n for part in some], dtype=np.float64)[:, None] / sum(p.n for p in some)
    means = np.array([part.mean for part in some])
    center = (n * means).sum(axis=0)
    variances = np.array([part.variance for part in some]) + (means - center) ** 2
    spread = np.sqrt((n * variances).sum(axis=0))
    binary = np.all([part.binary for part in some], axis=0)
    unit = np.where(binary | ~(spread > 0.0), 1.0, spread)
    seldom = (n * np.array([part.used for part in some])).sum(axis=0) <= _SELDOM
    return center, unit, seldom, all(part.positive for part in some)


def _usual_variance(parts: list[list[float]]) -> float:
    """Return the usual variance of the swings of a series."""
    variances = [variance for variance in flatten(parts) if variance > 0.0]
    return float(np.median(variances)) if variances else 0.0


def _solve(parts: list[tuple[Array, Array, float, int]]) -> tuple[Array, Array, Array]:
    """Return the effects that follow from the products of all parts, and how far they are off."""
    moment = np.sum([part[1] for part in parts], axis=0)
    gram = RIDGE * np.eye(moment.size)
    for products, _, _, _ in parts:
        gram += products
    gamma = np.asarray(np.linalg.solve(gram, moment))
    rest = sum(part[2] for part in parts) - gamma @ moment - RIDGE * gamma @ gamma
    variance = max(float(rest), 0.0) / max(sum(part[3] for part in parts), 1)
    inverse = np.asarray(np.linalg.inv(gram))
    return gamma, variance * inverse, RIDGE * inverse @ gamma


@dataclass(frozen=True)
class Prior:
    """What effects usually are, (q,), how strongly single ones are drawn there, and usual spread.

    Where no series told anything, effects are drawn to none. What is usual has errors with
    covariances `doubt`, (q, q).
    """

    common: Array
    penalty: Array
    usual: float
    doubt: Array

    def shrink(self, evidence: _Evidence) -> tuple[Array, Array, Array]:
        """Estimate effects on one series, and how far they are off; a quiet one is drawn less."""
        gram, moment, penalty = evidence.gram, evidence.moment, self.penalty
        gamma: Array = np.asarray(
            np.linalg.solve(gram + np.diag(penalty), moment + penalty * self.common)
        )
        rest = evidence.square - 2.0 * gamma @ moment + gamma @ gram @ gamma
        spread = max(float(rest) / max(evidence.count, 1), 1e-12)
        own = penalty * min(spread / self.usual, 1.0) if self.usual > 0.0 else penalty
        gamma = np.asarray(np.linalg.solve(gram + np.diag(own), moment + own * self.common))
        inverse = np.asarray(np.linalg.inv(gram + np.diag(own)))
        drawn = inverse * own
        doubt = spread * inverse + drawn @ self.doubt @ drawn.T
        doubt = np.asarray(doubt * evidence.scale**2)
        return gamma * evidence.scale, doubt, np.zeros(gamma.size)


def find_prior(evidence: Sequence[_Evidence], q: int) -> Prior:
    """Find what the effects of q inputs on series have in common."""
    if not evidence:
        return Prior(np.zeros(q), np.full(q, _PENALTY), 0.0, np.zeros((q, q)))
    some = evidence[:: -(-len(evidence) // _MOST_SERIES)]
    gram = np.stack([e.gram for e in some])
    moment = np.stack([e.moment for e in some])
    square = np.array([e.square for e in some])
    count = np.maximum([e.count for e in some], 1)
    common = np.linalg.solve(gram.sum(axis=0) + RIDGE * np.eye(q), moment.sum(axis=0))
    penalty = np.full(q, _PENALTY)
    # A quiet series is penalized less, by `share`: its effects may differ as much as any others.
    share = np.ones(len(some))
    usual = 0.0
    for _ in range(_ROUNDS):
        own = share[:, None] * penalty
        inverse = np.linalg.inv(gram + own[:, :, None] * np.eye(q))
        gamma = (inverse @ (moment + own * common)[:, :, None])[:, :, 0]
        fitted = (gram @ gamma[:, :, None])[:, :, 0]
        rest = square - 2.0 * (gamma * moment).sum(axis=1) + (gamma * fitted).sum(axis=1)
        spread = np.maximum(rest / count, 1e-12)
        usual = float(np.median(spread))
        variance = np.maximum(spread, usual)
        # What the series say about the common effects, given how much effects differ.
        weight = 1.0 / variance
        total = np.einsum("n,nij,nj->i", weight, inverse, moment) * penalty
        shrunk = np.einsum("n,nij->ij", weight * share, inverse) * np.outer(penalty, penalty)
        precision = np.diag(weight.sum() * penalty + weight.mean() * RIDGE) - shrunk
        uncertainty = share[:, None] * np.einsum("nii->ni", inverse)
        distance = (gamma - common) ** 2 / (_DEPENDENT * variance[:, None]) + uncertainty
        distance = np.minimum(distance, _FAR_APART * np.median(distance, axis=0))
        common = np.linalg.solve(precision, total)
        prior = _PRIOR_SERIES / _PENALTY
        between = (distance.sum(axis=0) + prior) / (len(some) + _PRIOR_SERIES)  # tau^2
        penalty = 1.0 / np.maximum(between, _LEAST_VARIANCE)
        share = spread / variance
    inverse = np.linalg.inv(precision)
    taken = weight.mean() * RIDGE * inverse @ common
    return Prior(common, penalty, usual, inverse + np.outer(taken, taken))


def compute_swings(
    series: Array, inputs: Array, *, season_length: int, relative: bool
) -> tuple[Array, Array]:
    """Return the swings of inputs (T, q) and of a series (T,) around their moving averages.

    Relative swings of the series are shares of its level.
    """
    window = _window_length(season_length, series.size)
    level = _moving_mean(series[:, None], window)[:, 0]
    swing = series - level
    if relative:
        swing = swing / np.maximum(level, max(_SMALLEST_LEVEL * series.mean(), 1e-300))
    centered = inputs - inputs.mean(axis=0)
    return centered - _moving_mean(centered, window), swing


def without_typos(inputs: Array) -> Array:
    """Return inputs (T, q) with medians in the place of values far from all others of an input.

    What is common is no typo; see `series.outliers`. Switches have none. Where most values are the
    same, those that differ say how far is usual, but no more than the size of most: a rare discount
    is no typo, one of a million is.
    """
    found = inputs
    for j in np.flatnonzero(~is_binary(inputs)).tolist():
        middle = np.median(inputs[:, j])
        away = np.abs(inputs[:, j] - middle)
        usual = np.median(away)
        if usual == 0.0 and away.any():
            usual = min(np.median(away[away > 0.0]), abs(middle) or np.inf)
        far = away > TYPO * usual
        if 0 < np.count_nonzero(far) <= COMMON * far.size:
            found = inputs.copy() if found is inputs else found
            found[far, j] = middle
    return found


def is_binary(inputs: Array) -> Mask:
    """Tell which inputs are switches, 0 or 1 at all steps; shape (q,)."""
    return np.asarray(np.all((inputs == 0.0) | (inputs == 1.0), axis=0))


def is_seldom(inputs: Array) -> Mask:
    """Tell which inputs (T, q) are 0 at all but few steps, as events are; shape (q,)."""
    return np.asarray(np.count_nonzero(inputs, axis=0) <= min(_SELDOM * len(inputs), _FEW))


def never_negative(series: Array) -> bool:
    """Tell whether effects on a series may be shares of its level."""
    return bool(series.min(initial=0.0) >= 0.0)


def _window_length(season_length: int, n: int) -> int:
    """Return the length of the moving average: odd, longer than the likely cycles of inputs."""
    seasons = 14 if season_length >= 24 else 2  # days of two weeks, or two seasons
    wanted = max(_SHORTEST_WINDOW, seasons * season_length + 1)
    return min(wanted, max(n // 2, 1)) | 1


def _moving_mean(values: Array, window: int) -> Array:
    """Return the centered moving average of columns; at the ends over what there is."""
    n, half = len(values), window // 2
    total = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    low = np.maximum(np.arange(n) - half, 0)
    high = np.minimum(np.arange(n) + half + 1, n)
    return np.asarray((total[high] - total[low]) / (high - low)[:, None])
