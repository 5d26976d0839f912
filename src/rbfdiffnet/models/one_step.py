"""What the pretrained network forecasts for every value of a series from the values before it.

Nothing is fitted, so these are held-out forecasts. All origins are forecast in large batches, and
yet as if one after the other, since what an origin sees depends on earlier forecasts:

- A gap is filled with the medians that were forecast for it, and the value after it is forecast
  from before the gap, as many steps ahead.
- A value far from its forecast is either a slip or the first value at a new level. The next value
  tells: it is forecast from a history that keeps the doubtful value and from one that has its
  forecast instead, and the history that fits better goes on.

So a forecast depends on earlier values only, and neither on other series nor on batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from rbfdiffnet.pretrained.network import MEDIAN, PROBABILITIES, forecast
from rbfdiffnet.series.gaps import fill_missing
from rbfdiffnet.series.series import NO_VALUES
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.parallel import group_equal
from rbfdiffnet.support.progress import report_progress

_DOUBTFUL = 3.0  # score from which on a value may be a slip
_RUN = 32  # origins of a series that are forecast at once
_MOST_WALKS = 1_000  # series that are forecast at once
_FEWEST, _ENOUGH_EQUAL = 8, 100  # values before a judged one, and such that never changed
_OUTER = (PROBABILITIES.index(0.95), PROBABILITIES.index(0.99))  # quantiles that spreads are of
_OUTER_NORMAL = ndtri([PROBABILITIES[k] for k in _OUTER])


@dataclass(frozen=True)
class Look:
    """How the network looks at series: their seasons, and where it runs."""

    season: int
    longer: int | None = None
    device: str = "cpu"
    n_jobs: int = 1

    def ahead(self, histories: Sequence[Array], h: int) -> Array:
        """Return medians and spreads below and above, (n, h, 3), after histories without gaps.

        A spread is the mean distance of the quantiles of 95 % and 99 %, or of 5 % and 1 %, from
        the median, each divided by that of a normal variable.
        """
        own = {"longer": self.longer, "device": self.device, "n_jobs": self.n_jobs}
        with np.errstate(all="ignore"):
            found = forecast(histories, h, self.season, **own).quantiles  # type: ignore[arg-type]
        median = found[:, :, MEDIAN]
        sides = [[2 * MEDIAN - k for k in _OUTER], list(_OUTER)]
        away = [np.abs(found[:, :, side] - median[:, :, None]) / _OUTER_NORMAL for side in sides]
        return np.stack([median, *(own.mean(axis=2) for own in away)], axis=2)


def score(values: Array, found: Array) -> Array:
    """Return how many spreads values (...) are from medians; `found` (..., 3) is of `Look.ahead`.

    Scores are infinite where there is no spread, and 0 where a value is just the median.
    """
    away = values - found[..., 0]
    with np.errstate(all="ignore"):
        scores = away / np.where(away < 0.0, found[..., 1], found[..., 2])
    return np.where(away == 0.0, 0.0, scores)


def find_first(y: Array, season: int) -> int:
    """Return the first step of a series (T,) that can be judged, T if there is none.

    Before it are as many known values as a season has, at least eight, and not all the same. After
    100 values that are, any change is unusual.
    """
    known = np.isfinite(y)
    count = np.cumsum(known)
    low = np.minimum.accumulate(np.where(known, y, np.inf))
    high = np.maximum.accumulate(np.where(known, y, -np.inf))
    ready = (count >= max(_FEWEST, season)) & ((high > low) | (count >= _ENOUGH_EQUAL))
    return int(np.argmax(ready)) + 1 if ready.any() else y.size


def explain_unready(y: Array, season: int) -> str:
    """Say why no step of a series can be judged."""
    known, fewest = int(np.isfinite(y).sum()), max(_FEWEST, season) + 1
    if not known:
        return NO_VALUES
    if known < fewest:
        return f"too short (known values: {known}, needed: {fewest})"
    return f"all values before the last are the same, and fewer than {_ENOUGH_EQUAL}"


def forecast_one_step(series: Sequence[Array], firsts: Sequence[int], look: Look) -> list[Array]:
    """Return medians and spreads (T, 3) of all known values from a first step on, NaN elsewhere.

    Series (T,) have NaN where missing, and at least one known value before their first step.
    """
    walks = [_Walk(y, first) for y, first in zip(series, firsts, strict=True)]
    left = [walk.left for walk in walks]
    for first in range(0, len(walks), _MOST_WALKS):
        now = walks[first : first + _MOST_WALKS]
        while now := [walk for walk in now if walk.left]:
            _go_on(now, look)
            done = sum(left[: first + _MOST_WALKS]) - sum(walk.left for walk in now)
            report_progress(done / sum(left))
    return [walk.found for walk in walks]


class _Walk:
    """A series on the way.

    `x` (T,) is what origins see of it, `at` the step that comes next, `known` the next known value,
    and `doubtful` the known value before it, if that may be a slip, else -1. `found` (T, 3) are the
    forecasts so far.
    """

    def __init__(self, y: Array, first: int) -> None:
        self.y, self.x, self.doubtful = y, y.copy(), -1
        if first < y.size:
            self.x[:first] = fill_missing(y[:first])
        self.found = np.full((y.size, 3), np.nan)
        self.steps = first + np.flatnonzero(np.isfinite(y[first:]))  # known ones that are left
        self.at = first

    @property
    def left(self) -> int:
        """How many known values are still to be forecast."""
        return self.steps.size

    def histories(self) -> tuple[list[Array], int]:
        """Return what the next origins see, and how many steps ahead the next known value is."""
        ahead = int(self.steps[0]) - self.at + 1
        if self.doubtful >= 0:
            slip = self.x[: self.at].copy()
            slip[self.doubtful] = self.found[self.doubtful, 0]
            return [self.x[: self.at], slip], ahead
        if ahead > 1:
            return [self.x[: self.at]], ahead
        run = self.steps[:_RUN]
        run = run[run - self.at == np.arange(run.size)]  # up to the next gap
        return [self.x[:step] for step in run.tolist()], ahead

    def accept(self, ahead: Array) -> None:
        """Take forecasts (n, h, 3) from the histories, as far as they hold."""
        now = ahead[:, -1]
        if self.doubtful >= 0:
            kept, slip = np.abs(score(self.y[self.steps[:1]], now))
            if slip < kept:
                self.x[self.doubtful] = self.found[self.doubtful, 0]
            chosen = slice(1, 2) if slip < kept else slice(0, 1)
            ahead, now = ahead[chosen], now[chosen]
        self.x[self.at : self.steps[0]] = ahead[0, :-1, 0]
        scores = np.abs(score(self.y[self.steps[: len(now)]], now))
        far = np.flatnonzero(scores > _DOUBTFUL)
        n = int(far[0]) + 1 if far.size else len(now)
        last = int(self.steps[n - 1])
        self.found[self.steps[:n]] = now[:n]
        self.doubtful = last if far.size else -1
        self.at, self.steps = last + 1, self.steps[n:]


def _go_on(walks: Sequence[_Walk], look: Look) -> None:
    """Let every series go on as far as it can with one forecast from each of its next origins."""
    plans = [walk.histories() for walk in walks]
    for h, members in group_equal(h for _, h in plans).items():
        histories = [own for i in members for own in plans[i][0]]
        found = look.ahead(histories, h)
        ends = np.cumsum([len(plans[i][0]) for i in members])
        for i, own in zip(members, np.split(found, ends[:-1]), strict=True):
            walks[i].accept(own)
