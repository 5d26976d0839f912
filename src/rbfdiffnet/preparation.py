r"""From observations to the series a network learns, and from its forecasts back.

.. math:: y \;\xrightarrow{\text{log?}}\; \xrightarrow{\text{effects out}}\;
    \xrightarrow{\text{outliers and gaps filled}}\; u \;\xrightarrow{\text{differences, scale}}\; z

Everything is fixed once, when a model is fitted, and depends on single values and their neighbors
only, so the same preparation serves values that arrive later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rbfdiffnet.cleaning import NO_OUTLIERS, OutlierRule, apply_rules, fill_many, fill_missing
from rbfdiffnet.effects import Effects, fit_effects, is_binary
from rbfdiffnet.transforms import Compose, Log1p, Transform, fit_transforms

__all__ = ["REACH", "Preparation", "clean_many", "learnable", "prepare"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_VALUES_AT_ONCE = 32_768  # cleaned together
_RARE = 5  # days on which an input is switched on
REACH = 3.0  # spans by which a forecast may leave the range of its series


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
        Bounds of forecasts of u: the range of the series, three spans wider on both sides.
    """

    log: bool
    effects: Effects | None
    season_length: int
    rule: OutlierRule
    steps: Compose
    low: float
    high: float

    def bare(self, y: Array, inputs: Array) -> Array:
        """Return the series without effects, NaN where missing."""
        u = np.log1p(np.maximum(y, 0.0)) if self.log else y
        return u if self.effects is None else self.effects.remove(u, inputs)

    def base(self, y: Array, inputs: Array) -> tuple[Array, Mask]:
        """Return u, without gaps, and which of its values are observations.

        Parameters
        ----------
        y : ndarray of shape (T,)
            Observations, NaN where missing.
        inputs : ndarray of shape (T, q)
            Inputs known in advance.
        """
        u = self.bare(y, inputs)
        u = np.where(self.rule.find(u), np.nan, u)
        known = np.isfinite(u)
        if not known.any():
            return np.zeros_like(u), known
        return fill_missing(u, self.season_length), known

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
    """Return u and which values are observations, as `Preparation.base` does, for many series.

    Parameters
    ----------
    preparations : sequence of Preparation
    bare : sequence of ndarray of shape (T,)
        By `Preparation.bare`.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.preparation import clean_many, prepare
    >>> y = 20.0 + np.random.default_rng(0).normal(size=100)
    >>> y[50] = 0.0
    >>> preparation = prepare(y, np.zeros((100, 0)), season_length=7)
    >>> ((u, known),) = clean_many([preparation], [y])
    >>> np.flatnonzero(~known).tolist()
    [50]
    """
    results: list[tuple[Array, Mask]] = [(np.empty(0), np.empty(0, dtype=bool))] * len(bare)
    groups: dict[tuple[int, int, int], list[int]] = {}
    for i, (p, series) in enumerate(zip(preparations, bare, strict=True)):
        key = series.size, p.season_length, p.rule.season_length
        groups.setdefault(key, []).append(i)
    for (length, season, rule_season), everyone in groups.items():
        size = max(1, _VALUES_AT_ONCE // max(length, 1))
        for first in range(0, len(everyone) if length else 0, size):
            members = everyone[first : first + size]
            u = np.stack([bare[i] for i in members])
            spread = np.array([preparations[i].rule.spread for i in members])
            closures = np.array([preparations[i].rule.closures for i in members])
            u = np.where(apply_rules(u, rule_season, spread, closures), np.nan, u)
            known = np.isfinite(u)
            gaps = ~known.all(axis=1)
            if gaps.any():
                u[gaps] = fill_many(u[gaps], season)
                u[~known.any(axis=1)] = 0.0
            for k, i in enumerate(members):
                results[i] = u[k], known[k]
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
        As for `rbfdiffnet.transforms.fit_transforms`.
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
    >>> from rbfdiffnet.preparation import prepare
    >>> y = 20.0 + np.random.default_rng(0).normal(size=100)
    >>> y[50] = 0.0
    >>> preparation = prepare(y, np.zeros((100, 0)), season_length=7, transforms=("standardize",))
    >>> u, known = preparation.base(y, np.zeros((100, 0)))
    >>> bool(u[50] > 16.0), np.flatnonzero(~known).tolist()
    (True, [50])
    """
    if log and np.any(y < 0.0):
        raise ValueError(f"log1p needs values that are not negative, found {np.nanmin(y):g}")
    linked = np.log1p(y) if log else y
    if effects is None and inputs.shape[1]:
        effects = _robust_effects(linked, inputs, season_length, clean, relative=not log)
    bare = linked if effects is None else effects.remove(linked, inputs)
    rule = OutlierRule.fitted(bare, season_length) if clean else NO_OUTLIERS
    draft = Preparation(log, effects, season_length, rule, Compose(), -np.inf, np.inf)
    u, known = draft.base(y, inputs)
    seen = u[known] if known.any() else u
    low, high = float(seen.min()), float(seen.max())
    span = high - low
    return Preparation(
        log,
        effects,
        season_length,
        rule,
        fit_transforms(transforms, u, season_length),
        low - REACH * span,
        high + REACH * span,
    )


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
    odd = OutlierRule.fitted(bare, season_length).find(bare)
    return np.asarray(np.isfinite(y) & (~odd | rare))
