r"""From observations to the series a network learns, and from its forecasts back.

.. math:: y \;\xrightarrow{\text{log?}}\; \xrightarrow{\text{effects out}}\;
    \xrightarrow{\text{outliers and gaps filled}}\; u \;\xrightarrow{\text{differences, scale}}\; z

Everything is fixed once, when a model is fitted, and depends on single values and their neighbors
only, so the same preparation serves values that arrive later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rbfdiffnet.series.effects import Effects, fit_effects, is_binary
from rbfdiffnet.series.gaps import fill_many, fill_missing, find_closed_steps, repeat_before
from rbfdiffnet.series.outliers import (
    NO_OUTLIERS,
    OutlierRule,
    apply_rules,
    find_doubtful,
    fit_rules,
    group_by_length,
)
from rbfdiffnet.series.transforms import Compose, Log1p, Transform, fit_transforms
from rbfdiffnet.support.stability import forecast_bounds

__all__ = [
    "GAP_CONTEXT_SEASONS",
    "Preparation",
    "clean_many",
    "latest_values",
    "learnable",
    "prepare",
    "prepare_many",
]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

GAP_CONTEXT_SEASONS = 6  # before a window, from which its gaps are filled
_RARE = 5  # days on which an input is switched on


@dataclass(frozen=True)
class Preparation:
    """How one series is prepared.

    Attributes
    ----------
    log : bool
        Whether logarithms of one plus the values are taken first.
    effects : Effects or None
        Effects of inputs known in advance.
    season_length : int
    rule : OutlierRule
    steps : Compose
        Differences and scales.
    low, high : float
        Bounds of forecasts of u, by `rbfdiffnet.support.stability.forecast_bounds`.
    """

    log: bool
    effects: Effects | None
    season_length: int
    rule: OutlierRule
    steps: Compose
    low: float
    high: float

    def without_effects(self, y: Array, inputs: Array) -> Array:
        """Return the series without effects, NaN where missing."""
        u = np.log1p(np.maximum(y, 0.0)) if self.log else y
        return u if self.effects is None else self.effects.remove(u, inputs)

    def cleaned(self, y: Array, inputs: Array) -> tuple[Array, Mask]:
        """Return u, without gaps, and which of its values are observations.

        Steps at which no value is to be expected (`series.gaps.find_closed_steps`) count as such
        where they repeat an observation: a network learns to go on there.

        Parameters
        ----------
        y : ndarray of shape (T,)
            Observations, NaN where missing.
        inputs : ndarray of shape (T, q)
            Inputs known in advance.
        """
        return clean_many([self], [self.without_effects(y, inputs)])[0]

    def restore(self, u: Array, inputs: Array) -> Array:
        """Take forecasts of u, of shape (..., h), to the units of the observations.

        Parameters
        ----------
        u : ndarray of shape (..., h)
        inputs : ndarray of shape (..., h, q)
        """
        y = u if self.effects is None else self.effects.restore(u, inputs)
        return Log1p().invert(y, y) if self.log else y


def clean_many(
    preparations: Sequence[Preparation], bare: Sequence[Array]
) -> list[tuple[Array, Mask]]:
    """Return u and which values are observations, as `Preparation.cleaned` does, for many series.

    Parameters
    ----------
    preparations : sequence of Preparation
    bare : sequence of ndarray of shape (T,)
        By `Preparation.without_effects`.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.series.prepare import clean_many, prepare
    >>> y = 20.0 + np.random.default_rng(0).normal(size=100)
    >>> y[50] = 0.0
    >>> preparation = prepare(y, np.zeros((100, 0)), season_length=7)
    >>> ((u, known),) = clean_many([preparation], [y])
    >>> np.flatnonzero(~known).tolist()
    [50]
    """
    results: list[tuple[Array, Mask]] = [(np.empty(0), np.empty(0, dtype=bool))] * len(bare)
    keys = [
        (series.size, p.season_length, p.rule.season_length)
        for p, series in zip(preparations, bare, strict=True)
    ]
    for (length, season, rule_season), members in group_by_length(keys, lambda key: key[0]):
        if not length:
            continue
        raw = np.stack([bare[i] for i in members])
        spread = np.array([preparations[i].rule.spread for i in members])
        closures = np.array([preparations[i].rule.closures for i in members])
        u = np.where(apply_rules(raw, rule_season, spread, closures), np.nan, raw)
        known = np.isfinite(u)
        gaps = ~known.all(axis=1)
        if gaps.any():
            closed = find_closed_steps(raw[gaps], season)
            u[gaps] = fill_many(u[gaps], season, closed=closed)
            u[~known.any(axis=1)] = 0.0
            known[gaps] |= closed & repeat_before(known[gaps], closed)
        for k, i in enumerate(members):
            results[i] = u[k], known[k]
    return results


def latest_values(
    preparations: Sequence[Preparation],
    bare: Sequence[Array],
    origins: Sequence[Ints],
    sizes: Sequence[int],
) -> list[tuple[Array, Mask]]:
    """Return the latest values of u before each origin, and which of them are observations."""
    cleaned = clean_many(preparations, bare)
    doubtful = find_doubtful([p.rule for p in preparations], bare)
    results: list[tuple[Array, Mask]] = []
    again: list[tuple[int, int, int]] = []  # series, number of the origin, first value to look at
    for i, (p, (u, known)) in enumerate(zip(preparations, cleaned, strict=True)):
        steps = origins[i][:, None] - np.arange(sizes[i], 0, -1)
        at = np.maximum(steps, 0)
        results.append((u[at], known[at] & (steps >= 0)))
        # At the end of a series nothing is known later. Closed steps repeat what was before them.
        closed = known & ~np.isfinite(bare[i])
        reach = sizes[i] + (p.season_length if closed.any() else 0)
        before = np.maximum(origins[i][:, None] - np.arange(reach, 0, -1), 0)
        odd = np.flatnonzero((doubtful[i] | ~known)[before].any(axis=1) & (origins[i] < u.size))
        starts = np.maximum(origins[i][odd] - sizes[i] - GAP_CONTEXT_SEASONS * p.season_length, 0)
        again += [(i, k, first) for k, first in zip(odd.tolist(), starts.tolist(), strict=True)]
    parts = [bare[i][first : origins[i][k]] for i, k, first in again]
    then = clean_many([preparations[i] for i, _, _ in again], parts)
    for (i, k, first), (u, known) in zip(again, then, strict=True):
        steps = origins[i][k] - np.arange(sizes[i], 0, -1)
        place = np.maximum(steps - first, 0)
        values, seen = results[i]
        values[k] = u[place]
        seen[k] = known[place] & (steps >= first)
    return results


def prepare(
    y: Array,
    inputs: Array,
    *,
    season_length: int,
    transforms: tuple[str | Transform, ...] = (),
    log: bool = False,
    clean: bool = True,
    effects: Effects | None = None,
) -> Preparation:
    """Fix the preparation of one series.

    Parameters
    ----------
    y : ndarray of shape (T,)
        Observations, NaN where missing; at least one is not.
    inputs : ndarray of shape (T, q)
        Inputs known in advance; their effects are estimated where q is not 0.
    season_length : int
    transforms : tuple, default=()
        As for `rbfdiffnet.series.transforms.fit_transforms`.
    log : bool, default=False
    clean : bool, default=True
        Whether outliers are found.
    effects : Effects, optional
        Effects known already.

    Returns
    -------
    Preparation

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.series.prepare import prepare
    >>> y = 20.0 + np.random.default_rng(0).normal(size=100)
    >>> y[50] = 0.0
    >>> preparation = prepare(y, np.zeros((100, 0)), season_length=7, transforms=("standardize",))
    >>> u, known = preparation.cleaned(y, np.zeros((100, 0)))
    >>> bool(u[50] > 16.0), np.flatnonzero(~known).tolist()
    (True, [50])
    """
    (found,) = prepare_many(
        [y],
        [inputs],
        [effects],
        season_length=season_length,
        transforms=transforms,
        log=log,
        clean=clean,
    )
    if isinstance(found, ValueError):
        raise found
    return found


def prepare_many(
    series: Sequence[Array],
    inputs: Sequence[Array],
    effects: Sequence[Effects | None],
    *,
    season_length: int,
    transforms: tuple[str | Transform, ...] = (),
    log: bool = False,
    clean: bool = True,
) -> list[Preparation | ValueError]:
    """Fix the preparation of many series, as `prepare` does; an error where a step does not apply.

    Parameters
    ----------
    series : sequence of ndarray of shape (T,)
    inputs : sequence of ndarray of shape (T, q)
    effects : sequence of Effects or None
    season_length, transforms, log, clean
        As for `prepare`.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.series.prepare import prepare_many
    >>> none = np.zeros((3, 0))
    >>> series = [np.array([1.0, 2.0, 3.0]), np.array([-1.0, 2.0, 3.0])]
    >>> good, bad = prepare_many(series, [none] * 2, [None] * 2, season_length=1, log=True)
    >>> good.log, bad
    (True, ValueError('log1p needs values that are not negative, found -1'))
    """
    results: list[Preparation | ValueError] = []
    drafts: dict[int, Preparation] = {}
    for i, (y, x, own) in enumerate(zip(series, inputs, effects, strict=True)):
        if log and np.any(y < 0.0):
            least = np.nanmin(y)
            results.append(ValueError(f"log1p needs values that are not negative, found {least:g}"))
            continue
        if own is None and x.shape[1]:
            linked = np.log1p(y) if log else y
            own = _robust_effects(linked, x, season_length, clean, relative=not log)
        drafts[i] = Preparation(log, own, season_length, NO_OUTLIERS, Compose(), -np.inf, np.inf)
        results.append(drafts[i])
    bare = {i: draft.without_effects(series[i], inputs[i]) for i, draft in drafts.items()}
    if clean:
        rules = fit_rules(list(bare.values()), season_length)
        drafts = {
            i: replace(draft, rule=rule)
            for (i, draft), rule in zip(drafts.items(), rules, strict=True)
        }
    cleaned = clean_many(list(drafts.values()), list(bare.values()))
    for (i, draft), (u, known) in zip(drafts.items(), cleaned, strict=True):
        seen = u[known] if known.any() else u
        low, high = forecast_bounds(float(seen.min()), float(seen.max()))
        try:
            steps = fit_transforms(transforms, u, season_length)
            results[i] = replace(draft, steps=steps, low=low, high=high)
        except ValueError as error:
            results[i] = error
    return results


def _robust_effects(
    y: Array, inputs: Array, season_length: int, clean: bool, *, relative: bool
) -> Effects:
    """Estimate effects, leave out days they cannot explain, and estimate again."""
    known = np.isfinite(y)
    for _ in range(2 if clean else 1):
        filled = fill_missing(np.where(known, y, np.nan), season_length)
        effects = fit_effects(
            [filled], [inputs], [known], season_length=season_length, relative=relative
        )
        known = learnable(y, inputs, effects, season_length)
        if not known.any():
            break
    return effects


def learnable(y: Array, inputs: Array, effects: Effects, season_length: int) -> Mask:
    """Which values effects can be learned from: known, and no outliers once effects are out.

    What happens on the few days of a rare input is its effect, not an outlier.
    """
    switched = np.where(is_binary(inputs), inputs.sum(axis=0), np.inf)
    rare = (inputs[:, switched <= _RARE] == 1.0).any(axis=1)
    bare = effects.remove(y, inputs)
    odd = OutlierRule.fit(bare, season_length).find(bare)
    return np.asarray(np.isfinite(y) & (~odd | rare))
