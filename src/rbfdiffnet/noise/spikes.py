"""Spikes: single observations that have nothing to do with the series around them.

Noise is taken to be normal, and spikes are not, so they count as missing. A map is fitted to the
observed windows. Where it errs by more than eight robust standard deviations, and by a quarter of
the series' own, a value may be a spike. It is one if the map is right again with a value in its
place that is close to what it predicted: what a jump or a burst begins goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rbfdiffnet.noise.maps import (
    CENTERS,
    FittedMap,
    are_known,
    best_map,
    count_centers,
    fit_maps,
    known_rows,
    some_windows,
)
from rbfdiffnet.support.arrays import Array, Mask

_DECAYS = (1.0, 0.25)
_WIDTHS = (1.0, 2.0)
_ROWS = 8  # for each lag, at least
_FAR = 8.0  # robust standard deviations
_SMALLEST = 0.25  # standard deviations of the series
_OUTSIDE = 0.5  # the same, beyond the range of the series
_ROUNDS = 3
_MOST = 0.05  # of the observations
_PLACES = 21  # values in place of a spike that are tried
_TOGETHER = 2  # spikes within a window, at most


@dataclass(frozen=True)
class SpikeFinder:
    """The map of observed windows of a series less ``shift``, divided by ``scale``.

    Errors beyond the ``limit`` are too large. In this unit, spikes lie clearly below ``low`` or
    above ``high``: a clean series that bursts has values inside of its range that no map foresees.
    """

    fitted: FittedMap
    n_lags: int
    shift: float
    scale: float
    limit: float
    low: float = np.inf
    high: float = -np.inf

    def find(self, s: Array, found: Mask | None = None) -> Mask:
        """Find the spikes of a series (T,), NaN where missing, besides those already ``found``.

        A series with many of them has another distribution, not spikes.
        """
        known = np.isfinite(s) if found is None else np.isfinite(s) & ~found
        spikes = np.zeros(s.size, dtype=bool) if found is None else found.copy()
        if s.size <= self.n_lags:
            return spikes
        z = np.where(known, (s - self.shift) / self.scale, np.nan)
        whole = are_known(known, self.n_lags + 1)
        X, y = known_rows(z, known, self.n_lags)
        error = np.abs(y - self.fitted.predict(X))
        last = -1
        for at in (np.flatnonzero(whole)[error > self.limit] + self.n_lags).tolist():
            if at > last:
                gone, last = self._follow(z, at)
                spikes[gone] = (z[gone] < self.low - _OUTSIDE) | (z[gone] > self.high + _OUTSIDE)
        few = spikes.sum() <= max(_MOST * known.sum(), 1)
        return spikes if few else np.zeros(s.size, dtype=bool)

    def remove(self, s: Array) -> Array:
        """Return a series (T,) with NaN in place of spikes."""
        return np.where(self.find(s), np.nan, s)

    def _follow(self, z: Array, first: int) -> tuple[list[int], int]:
        """Return the spikes from the first large error on, and the last position looked at.

        Some values around what the map predicted stand in place of the first one, and those of
        them stay that the next values agree with. Where none does, there is another spike. It ends
        after a whole window without one; more than two are none.
        """
        size, gone, good, at = self.n_lags, [first], 0, first + 1
        windows = np.repeat(z[None, first - size : first], _PLACES, axis=0)
        around = self.fitted.predict(windows[:1]) + self.limit * np.linspace(-1.0, 1.0, _PLACES)
        windows = np.concatenate([windows[:, 1:], around[:, None]], axis=1)
        while good < size and at < z.size and len(gone) <= _TOGETHER:
            told = self.fitted.predict(windows)
            value = np.full(len(told), z[at])
            agree = np.abs(value - told) <= self.limit
            if agree.any():
                windows, value, good = windows[agree], value[agree], good + 1
            else:
                gone, value, good = gone + [at] * bool(np.isfinite(z[at])), told, 0
            windows = np.concatenate([windows[:, 1:], value[:, None]], axis=1)
            at += 1
        is_sure = len(gone) == 1 or (len(gone) <= _TOGETHER and good > 0)
        return (gone if is_sure else []), at - 1


def learn_spikes(s: Array, n_lags: int) -> tuple[SpikeFinder | None, Mask]:
    """Return what finds spikes in other values of a series (T,), and those of the series itself.

    Without enough windows there is nothing, and a series with many spikes has another distribution.
    Those of the series itself may lie inside of its range, too.
    """
    known = np.isfinite(s)
    finder, found = None, np.zeros(s.size, dtype=bool)
    for _ in range(_ROUNDS):
        usable = known & ~found
        if s.size <= n_lags or are_known(usable, n_lags + 1).sum() < _ROWS * (n_lags + 1):
            break
        shift, scale = float(s[usable].mean()), float(s[usable].std())
        if not scale > 0.0:
            break
        X, y = known_rows((s - shift) / scale, usable, n_lags)
        n_centers = count_centers(len(X), CENTERS // 2)
        maps = fit_maps(X, y, _DECAYS, _WIDTHS, n_centers, some_windows(X, n_centers))
        fitted = best_map(maps.values())
        error = float(np.median(np.abs(y - fitted.predict(X))))
        limit = max(_FAR * error / 0.6745, _SMALLEST)
        finder = SpikeFinder(fitted, n_lags, shift, scale, limit)
        now = finder.find(s, found)
        if np.array_equal(now, found):
            break
        found = now
    if finder is not None:
        z = (s[known & ~found] - finder.shift) / finder.scale
        finder = replace(finder, low=float(z.min()), high=float(z.max()))
    return finder, found


def without_spikes(s: Array, finders: Sequence[SpikeFinder | None]) -> Array:
    """Return a series (T, k) with NaN in place of the spikes that each sensor's finder finds."""
    pairs = zip(s.T, finders, strict=True)
    return np.stack([z if own is None else own.remove(z) for z, own in pairs], axis=1)
