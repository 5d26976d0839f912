"""Ten families of monthly series whose future has a known distribution.

A family is a function of a random generator and a number n of series. It returns a state and a
function ``step(state, m)``, which draws m next values of each series (n, m) and the states after
them. One step makes the past (m = 1) and, from its true end, thousands of continuations.

Arrays of parameters are (n, 1). Levels and scales differ by up to a factor of a hundred.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

H = 12
SEASON = 12
Array = np.ndarray
State = tuple[Array, ...]
Step = Callable[[State, int], tuple[Array, State]]


@dataclass(frozen=True)
class Panel:
    """Values (n, T + h), NaN before a series begins, and continuations (n, h, m) after T."""

    values: Array
    paths: Array

    def first(self, n: int) -> Panel:
        """The panel of its first n series."""
        return Panel(self.values[:n], self.paths[:n])

    @property
    def past(self) -> Array:
        """What a forecaster sees (n, T)."""
        return self.values[:, : -self.paths.shape[1]]

    @property
    def future(self) -> Array:
        """The values to forecast (n, h)."""
        return self.values[:, -self.paths.shape[1] :]


def simulate(family: str, length: int, n: int, seed: int = 0, m: int = 2000, h: int = H) -> Panel:
    """Draw n series of a family, and m continuations of each from its true state."""
    rng = np.random.default_rng([seed, length, crc32(family.encode())])
    state, step = FAMILIES[family](rng, n)
    past = np.empty((n, length))
    for t in range(length):
        y, state = step(state, 1)
        past[:, t] = y[:, 0]
    paths = np.empty((n, h, m + 1))  # the first one is what happens
    for k in range(h):
        paths[:, k], state = step(state, m + 1)
    if family == "lengths":
        kept = _log_uniform(rng, n, min(20, length), length).round()
        past[np.arange(length) < length - kept] = np.nan
    return Panel(np.hstack([past, paths[:, :, 0]]), paths[:, :, 1:])


def autoregression(rng: np.random.Generator, n: int) -> tuple[State, Step]:
    """AR(1): y = level + x, x' = 0.7 x + e, from its stationary distribution."""
    level, scale = _level_and_scale(rng, n)

    def step(state: State, m: int) -> tuple[Array, State]:
        x = 0.7 * state[0] + scale * rng.normal(size=(n, m))
        return level + x, (x,)

    return (scale * rng.normal(size=(n, 1)) / np.sqrt(1.0 - 0.7**2),), step


def walk(rng: np.random.Generator, n: int) -> tuple[State, Step]:
    """Random walk: y' = y + e."""
    level, scale = _level_and_scale(rng, n)

    def step(state: State, m: int) -> tuple[Array, State]:
        y = state[0] + scale * rng.normal(size=(n, m))
        return y, (y,)

    return (level,), step


def trend_and_season(rng: np.random.Generator, n: int) -> tuple[State, Step]:
    """A local linear trend and a season that changes slowly."""
    level, scale = _level_and_scale(rng, n)
    slope = 0.05 * scale * rng.normal(size=(n, 1))
    season = 2.0 * scale * _season(rng, n)
    return _smoothing(rng, level, slope, season, scale, (0.3, 0.02, 0.1))


def multiplicative(rng: np.random.Generator, n: int) -> tuple[State, Step]:
    """The logarithm has a level, a constant growth, and a season: y grows, and its season too."""
    level, growth = np.log(_log_uniform(rng, n, 10, 1000)), _log_uniform(rng, n, 0.002, 0.01)
    scale = _log_uniform(rng, n, 0.02, 0.2)
    state, log_step = _smoothing(rng, level, growth, 0.3 * _season(rng, n), scale, (0.3, 0.0, 0.05))

    def step(state: State, m: int) -> tuple[Array, State]:
        y, state = log_step(state, m)
        return np.exp(y), state

    return state, step


def counts(rng: np.random.Generator, n: int) -> tuple[State, Step]:
    """Poisson counts, with a season in the rate."""
    rate = _log_uniform(rng, n, 0.5, 50) * np.exp(0.4 * _season(rng, n))

    def step(state: State, m: int) -> tuple[Array, State]:
        rate, *later = state
        return rng.poisson(rate, size=(n, m)).astype(float), (*later, rate)

    return _months(rate), step


def intermittent(rng: np.random.Generator, n: int) -> tuple[State, Step]:
    """Zero, or, with a probability of its own for each series, a geometric size."""
    often, size = rng.uniform(0.1, 0.6, size=(n, 1)), _log_uniform(rng, n, 1, 100)

    def step(state: State, m: int) -> tuple[Array, State]:
        return (rng.random((n, m)) < often) * rng.geometric(1.0 / size, size=(n, m)) * 1.0, state

    return (), step


def heavy_tails(rng: np.random.Generator, n: int) -> tuple[State, Step]:
    """A constant season, and Student noise with three degrees of freedom."""
    level, scale = _level_and_scale(rng, n)
    center = level + 2.0 * scale * _season(rng, n)

    def step(state: State, m: int) -> tuple[Array, State]:
        center, *later = state
        return center + scale * rng.standard_t(3, size=(n, m)), (*later, center)

    return _months(center), step


def garch(rng: np.random.Generator, n: int) -> tuple[State, Step]:
    """GARCH(1,1): y = level + scale r, where r has the variance v' = 0.05 + 0.15 r² + 0.8 v."""
    level, scale = _level_and_scale(rng, n)

    def step(state: State, m: int) -> tuple[Array, State]:
        (v,) = state
        r = np.sqrt(v) * rng.normal(size=(n, m))
        return level + scale * r, (0.05 + 0.15 * r**2 + 0.8 * v,)

    return (np.ones((n, 1)),), step


def level_shifts(rng: np.random.Generator, n: int) -> tuple[State, Step]:
    """Noise around a level that jumps once in a hundred months, by five scales or so."""
    level, scale = _level_and_scale(rng, n)

    def step(state: State, m: int) -> tuple[Array, State]:
        jump = (rng.random((n, m)) < 0.01) * 5.0 * scale * rng.normal(size=(n, m))
        level = state[0] + jump
        return level + scale * rng.normal(size=(n, m)), (level,)

    return (level,), step


def lengths(rng: np.random.Generator, n: int) -> tuple[State, Step]:
    """Exponential smoothing of many kinds, half with a season; of lengths from 20 to T."""
    level, scale = _level_and_scale(rng, n)
    slope, season = 0.05 * scale * rng.normal(size=(n, 1)), 2.0 * scale * _season(rng, n)
    alpha = rng.uniform(0.05, 0.6, size=(n, 1))
    beta = alpha * rng.uniform(0.0, 0.1, size=(n, 1))
    gamma = (1.0 - alpha) * rng.uniform(0.0, 0.2, size=(n, 1))
    seasonal = rng.random((n, 1)) < 0.5
    return _smoothing(rng, level, slope, season * seasonal, scale, (alpha, beta, gamma * seasonal))


#: Families by name.
FAMILIES: dict[str, Callable[[np.random.Generator, int], tuple[State, Step]]] = {
    "autoregression": autoregression,
    "walk": walk,
    "trend+season": trend_and_season,
    "multiplicative": multiplicative,
    "counts": counts,
    "intermittent": intermittent,
    "heavy tails": heavy_tails,
    "garch": garch,
    "level shifts": level_shifts,
    "lengths": lengths,
}


def _smoothing(
    rng: np.random.Generator,
    level: Array,
    slope: Array,
    season: Array,
    scale: Array,
    gains: tuple[Any, Any, Any],
) -> tuple[State, Step]:
    """Exponential smoothing: y = level + slope + season + e; the parts move by their gains times e.

    A Gaussian state-space model in the form of its steady Kalman filter, so the past of y tells the
    state, and continuations have the exact distribution given the past. Season is (n, 12).
    """
    alpha, beta, gamma = gains

    def step(state: State, m: int) -> tuple[Array, State]:
        level, slope, now, *later = state
        e, level = scale * rng.normal(size=(len(level), m)), level + slope
        return level + now + e, (level + alpha * e, slope + beta * e, *later, now + gamma * e)

    return (level, slope, *_months(season)), step


def _log_uniform(rng: np.random.Generator, n: int, low: float, high: float) -> Array:
    return np.exp(rng.uniform(np.log(low), np.log(high), size=(n, 1)))


def _level_and_scale(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    return _log_uniform(rng, n, 10, 1000), _log_uniform(rng, n, 1, 100)


def _months(season: Array) -> State:
    """The twelve columns (n, 1) of a season (n, 12)."""
    return tuple(np.split(season, SEASON, axis=1))


def _season(rng: np.random.Generator, n: int) -> Array:
    """A season (n, 12) of standard normal values with the mean zero."""
    season = rng.normal(size=(n, SEASON))
    return season - season.mean(axis=1, keepdims=True)
