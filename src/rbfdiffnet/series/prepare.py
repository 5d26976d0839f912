r"""From observations to the series a network learns, and from its forecasts back.

.. math:: y \;\xrightarrow{\text{log?}}\; \xrightarrow{\text{effects out}}\;
    \xrightarrow{\text{outliers and gaps filled}}\; u \;\xrightarrow{\text{differences, scale}}\; z

Everything is fixed once, when a model is fitted, and depends on single values and their neighbors
only, so the same preparation serves values that arrive later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rbfdiffnet.batch.backend import NUMPY, Backend
from rbfdiffnet.series.effects import Effects, fit_robust_effects
from rbfdiffnet.series.gaps import fill_many, find_closed_steps, repeat_before
from rbfdiffnet.series.outliers import (
    NO_OUTLIERS,
    OutlierRule,
    Rules,
    apply_rules,
    find_doubtful,
    find_outliers,
    group_by_length,
)
from rbfdiffnet.series.series import UnfitError
from rbfdiffnet.series.transforms import Compose, Difference, Log1p, Transform, fit_transforms
from rbfdiffnet.support.arrays import Array, Ints, Mask
from rbfdiffnet.support.stability import forecast_bounds

GAP_CONTEXT_SEASONS = 6  # seasons before a window, from which its gaps are filled


@dataclass(frozen=True)
class Preparation:
    """How one series is prepared; forecasts of u must stay between ``low`` and ``high``."""

    log: bool  # whether logarithms of one plus the values come first
    effects: Effects | None  # of inputs known in advance
    season_length: int
    rule: OutlierRule
    steps: Compose  # differences and scales
    low: float
    high: float

    def without_effects(self, y: Array, inputs: Array) -> Array:
        """Return the series without effects, NaN where missing."""
        u = np.log1p(np.maximum(y, 0.0)) if self.log else y
        return u if self.effects is None else self.effects.remove(u, inputs)

    def apply(self, y: Array, inputs: Array) -> PreparedSeries:
        """Make a series ready: observations y with NaN where missing, inputs (T, q)."""
        return apply_many([self], [y], [inputs])[0]

    def clip(self, u: Array) -> Array:
        """Return forecasts of u within their bounds; see `support.stability`."""
        return np.clip(u, self.low, self.high)

    def restore(self, u: Array, inputs: Array) -> Array:
        """Return forecasts of u, (..., h), in units of the observations; inputs are (..., h, q)."""
        y = u if self.effects is None else self.effects.restore(u, inputs)
        return Log1p().invert(y, y) if self.log else y


@dataclass(frozen=True)
class PreparedSeries:
    """A series made ready by its preparation.

    All arrays have shape (T,): `u` without outliers and gaps, where `u` is observed, and where
    outliers were.
    """

    preparation: Preparation
    u: Array
    is_known: Mask
    is_outlier: Mask

    @classmethod
    def of(cls, preparation: Preparation, raw: Array, u: Array, is_known: Mask) -> PreparedSeries:
        """Compare a cleaned series with the raw one without effects to find the outliers."""
        return cls(preparation, u, is_known, np.isfinite(raw) & ~is_known)

    def transform(self) -> tuple[Array, Mask]:
        """Return the transformed series z, and which values are made of observations only."""
        steps, known = self.preparation.steps, self.is_known
        if self.u.size <= steps.lost:
            return np.empty(0), np.empty(0, dtype=bool)
        for step in steps.steps:
            if isinstance(step, Difference):
                known = known[step.lag :] & known[: -step.lag]
            else:
                known = known[step.lost :]
        return steps.apply(self.u), known


def apply_many(
    preparations: Sequence[Preparation], series: Sequence[Array], inputs: Sequence[Array]
) -> list[PreparedSeries]:
    """Make many series ready by their preparations; see `Preparation.apply`."""
    given = zip(preparations, series, inputs, strict=True)
    raw = [preparation.without_effects(y, x) for preparation, y, x in given]
    found = zip(preparations, raw, clean_many(preparations, raw), strict=True)
    return [PreparedSeries.of(p, before, *cleaned) for p, before, cleaned in found]


def clean_many(
    preparations: Sequence[Preparation], without_effects: Sequence[Array]
) -> list[tuple[Array, Mask]]:
    """Return u, without gaps, and which of its values are observations, (T,) both, of many series.

    The series come from `Preparation.without_effects`. Steps at which no value is to be expected
    (`series.gaps.find_closed_steps`) count as observations where they repeat one: a network learns
    to go on there.
    """
    results: list[tuple[Array, Mask]] = [(np.empty(0), np.empty(0, dtype=bool))] * len(preparations)
    keys = [
        (series.size, p.season_length, p.rule.season_length)
        for p, series in zip(preparations, without_effects, strict=True)
    ]
    for (length, season, _), members in group_by_length(keys, lambda key: key[0]):
        if not length:
            continue
        raw = np.stack([without_effects[i] for i in members])
        is_outlier = apply_rules(raw, Rules.stack([preparations[i].rule for i in members]))
        u, known = _fill_some(raw, is_outlier, season)
        for k, i in enumerate(members):
            results[i] = u[k], known[k]
    return results


def _fill_some(raw: Array, is_outlier: Mask, season_length: int) -> tuple[Array, Mask]:
    """Fill the gaps of the series (B, T) that have any; see `fill_gaps`."""
    u, known = raw.copy(), np.ones(raw.shape, dtype=bool)
    gaps = (is_outlier | ~np.isfinite(raw)).any(axis=1)
    if gaps.any():
        u[gaps], known[gaps] = fill_gaps(raw[gaps], is_outlier[gaps], season_length)
    return u, known


def fill_gaps(
    y: Any, is_outlier: Any, season_length: int, backend: Backend = NUMPY
) -> tuple[Any, Any]:
    """Return series (B, T) without outliers and gaps, and which of their values are observations.

    Steps at which no value is to be expected count as observations where they repeat one. Series
    without any observation become 0.
    """
    xp = backend.xp
    u = xp.where(is_outlier, xp.nan, y)
    known = xp.isfinite(u)
    if bool(known.all()):
        return u, known
    closed = find_closed_steps(y, season_length, backend)
    u = fill_many(u, season_length, backend, closed)
    u = xp.where(known.any(axis=1)[:, None], u, xp.zeros_like(u))
    return u, known | (closed & repeat_before(known, closed, backend))


def latest_values(
    preparations: Sequence[Preparation],
    without_effects: Sequence[Array],
    origins: Sequence[Ints],
    sizes: Sequence[int],
) -> list[tuple[Array, Mask]]:
    """Return the latest values of u before each origin, and which of them are observations.

    Whether a value is an outlier, and what a gap is filled with, depends on later values, too. For
    an origin in the past both are found anew, from the values before it. Of series i, the result
    has two arrays of shape (len(origins[i]), sizes[i]); before its first value, that is repeated.
    """
    cleaned = clean_many(preparations, without_effects)
    doubtful = find_doubtful([p.rule for p in preparations], without_effects)
    results: list[tuple[Array, Mask]] = []
    again: list[tuple[int, int, int]] = []  # series, number of the origin, first value to look at
    for i, (p, (u, known)) in enumerate(zip(preparations, cleaned, strict=True)):
        steps = origins[i][:, None] - np.arange(sizes[i], 0, -1)
        at = np.maximum(steps, 0)
        results.append((u[at], known[at] & (steps >= 0)))
        # At the end of a series nothing is known later. Closed steps repeat what was before them.
        closed = known & ~np.isfinite(without_effects[i])
        reach = sizes[i] + (p.season_length if closed.any() else 0)
        before = np.maximum(origins[i][:, None] - np.arange(reach, 0, -1), 0)
        unsure = (doubtful[i] | ~known)[before].any(axis=1) & (origins[i] < u.size)
        numbers = np.flatnonzero(unsure)
        context = sizes[i] + GAP_CONTEXT_SEASONS * p.season_length
        starts = np.maximum(origins[i][numbers] - context, 0)
        again += [(i, k, first) for k, first in zip(numbers.tolist(), starts.tolist(), strict=True)]
    parts = [without_effects[i][first : origins[i][k]] for i, k, first in again]
    then = clean_many([preparations[i] for i, _, _ in again], parts)
    for (i, k, first), (u, known) in zip(again, then, strict=True):
        steps = origins[i][k] - np.arange(sizes[i], 0, -1)
        at = np.maximum(steps - first, 0)
        values, observed = results[i]
        values[k] = u[at]
        observed[k] = known[at] & (steps >= first)
    return results


def prepare_many(
    series: Sequence[Array],
    inputs: Sequence[Array],
    effects: Sequence[Effects | None],
    *,
    season_length: int,
    transforms: tuple[str | Transform, ...] = (),
    log: bool = False,
    clean: bool = True,
    backend: Backend = NUMPY,
) -> list[PreparedSeries | UnfitError]:
    """Make many series ready; the result is an error where a step does not apply.

    Series have shape (T,) with NaN where missing, inputs known in advance (T, q). Effects that are
    None are estimated where q is not 0. ``transforms`` are those of `fit_transforms`; outliers are
    found only with ``clean``, and by a ``backend``.
    """
    results: dict[int, PreparedSeries | UnfitError] = {}
    found: dict[int, tuple[Array, Effects | None]] = {}  # series without effects, and the effects
    for i, (y, x, own) in enumerate(zip(series, inputs, effects, strict=True)):
        if log and np.any(y < 0.0):
            least = np.nanmin(y)
            results[i] = UnfitError(f"log1p needs values that are not negative, found {least:g}")
            continue
        if own is None and x.shape[1]:
            linked = np.log1p(y) if log else y
            own = fit_robust_effects(
                [linked], [x], season_length=season_length, clean=clean, relative=not log
            )
        u = np.log1p(y) if log else y
        found[i] = (u if own is None else own.remove(u, x)), own
    places = list(found)
    lengths = [found[i][0].size for i in places]
    for _, members in group_by_length(lengths, int, backend.values_searched_together):
        some = [places[k] for k in members]
        raw = np.stack([found[i][0] for i in some])
        is_outlier, rules = np.zeros(raw.shape, dtype=bool), [NO_OUTLIERS] * len(some)
        if clean:
            mask, each = find_outliers(backend.to_device(raw), season_length, backend)
            is_outlier, rules = backend.to_numpy(mask), each.split(backend)
        u, known = _fill_some(raw, is_outlier, season_length)
        observed = known | ~known.any(axis=1, keepdims=True)
        lowest, highest = np.where(observed, u, np.inf), np.where(observed, u, -np.inf)
        bounds = forecast_bounds(lowest.min(axis=1), highest.max(axis=1))
        pairs = zip(some, rules, zip(*bounds, strict=True), strict=True)
        for k, (i, rule, (low, high)) in enumerate(pairs):
            try:
                steps = fit_transforms(transforms, u[k], season_length) if transforms else Compose()
            except ValueError as error:
                results[i] = UnfitError(str(error).rstrip("."))
                continue
            own = found[i][1]
            done = Preparation(log, own, season_length, rule, steps, float(low), float(high))
            results[i] = PreparedSeries.of(done, raw[k], u[k], known[k])
    return [results[i] for i in range(len(series))]
