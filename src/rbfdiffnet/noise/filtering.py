r"""From noisy histories to clean states, and on from there: a particle filter.

The map learned by `rbfdiffnet.noise.trajectory` is that of clean windows. Fed with noisy windows it
is worse than a blurred map. So a cloud of N windows tracks the state
:math:`x_t = (z_{t-l+1}, \ldots, z_t)` through a history. At each step every window is sent through
the map and weighed by how well it meets the observation, and the cloud is drawn again in proportion
to the weights:

.. math:: z_{t+1} = f(x_t) + N(0, Q), \qquad p(s_{t+1} \mid x_t) = N(f(x_t), Q + R)

A map that folds, as chaotic ones do, leaves clouds with several humps, which a Kalman filter
cannot follow. Two things keep the cloud alive. It starts from the map's own orbit, the windows
that the map visits when left alone: from those near the first observations, in proportion to their
likelihood. And at every step there is one chance in a hundred that the track is lost: a part of the
cloud then moves to windows of the orbit, in proportion to how much better they explain the
observation.

Forecasts send the cloud on without observations. The median of its windows is the forecast, and
its quantiles show how quickly certainty is lost. The random draws are the same in every call, so
forecasts are repeatable.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rbfdiffnet.network.basis import squared_distances
from rbfdiffnet.network.network import Network
from rbfdiffnet.series.windows import cut_windows
from rbfdiffnet.support.arrays import Array

#: Number of values before a window that are tracked: what lies further back is forgotten.
MEMORY = 60
#: Number of windows in a cloud, and in one that is forecast from.
PARTICLES, FORECAST_PARTICLES = 400, 2_000

_SPIKE = 8.0  # standard deviations outside of anything that could be observed
_ORBIT_STEPS = 100
_SETTLED = 20  # steps until a window is on the orbit
_LOST = 0.01  # chance of losing the track at a step
_NEIGHBORS_OF = 200  # windows of the orbit whose distance to the next is measured
_SLACKS = (1.0, 2.0, 4.0)  # in units of the map's own errors
_MARGIN = 0.05  # of the range of the clean series, by which a state may leave it


@dataclass(frozen=True)
class StateFilter:
    """The map of clean windows, and how observations scatter around it.

    ``noise`` and ``process`` are the standard deviations of the noise and of the map's own errors.
    Tracking allows for a larger one, ``slack``, because the map may not be quite right although the
    trajectory it was learned with follows it. The clean series lies between ``low`` and ``high``.
    """

    network: Network
    noise: float
    process: float
    slack: float
    low: float
    high: float

    def tune(self, history: Array) -> StateFilter:
        """Return the filter whose slack makes a noisy history likeliest."""
        filters = [replace(self, slack=self.process * factor) for factor in _SLACKS]
        return max(filters, key=lambda tracker: tracker.log_likelihood(history))

    @property
    def n_lags(self) -> int:
        """Length of a window."""
        return self.network.n_lags

    def forecast(self, history: Array, h: int, quantiles: Array) -> Array:
        """Forecast quantiles of the clean series after a noisy history, shape (h, q).

        The history (T,) has at least l values, NaN where missing, of which the last ones count (see
        `MEMORY`). The quantile .5 is the forecast.
        """
        *_, cloud = self.track(history[-self.n_lags - MEMORY :], FORECAST_PARTICLES)
        return np.asarray(np.quantile(self.roll(cloud, h), quantiles, axis=0).T)

    def predict(self, histories: Array) -> Array:
        """Predict the clean value after each noisy history (B, L), shape (B,)."""
        return np.array([self.ahead(cloud).mean() for cloud in self.clouds(histories)])

    def clouds(self, histories: Array, n: int = PARTICLES) -> Iterator[Array]:
        """Yield the cloud of n clean windows (n, l) at the end of each history (B, L).

        Rows that go on where the one before ends, as windows of one series do, are tracked as one:
        each profits from the values before it, never from those after it.
        """
        n_rows, length = histories.shape
        goes_on = np.zeros(n_rows, dtype=bool)
        if length > 1:
            before, after = histories[:-1, 1:], histories[1:, :-1]
            goes_on[1:] = ((before == after) | (np.isnan(before) & np.isnan(after))).all(axis=1)
        starts = np.flatnonzero(~goes_on)
        for first, end in zip(starts, np.append(starts[1:], n_rows), strict=True):
            whole = np.concatenate([histories[first], histories[first + 1 : end, -1]])
            for k, cloud in enumerate(self.track(whole, n)):
                if k >= length - self.n_lags:
                    yield cloud

    def track(self, history: Array, n: int = PARTICLES) -> Iterator[Array]:
        """Follow a noisy history (T,) and yield a cloud of n clean windows (n, l) after each step.

        The first cloud is that after l values.
        """
        for X, _ in self._follow(history, n):
            yield X

    def log_likelihood(self, history: Array) -> float:
        """Sum the logarithms of how likely each observation was before it was made."""
        return sum(value for _, value in self._follow(history))

    def _without_spikes(self, history: Array) -> Array:
        """Return a history (T,) with NaN for values that no noise can explain."""
        far = _SPIKE * float(np.hypot(self.noise, self.slack)) + 0.5 * (self.high - self.low)
        out = (history < self.low - far) | (history > self.high + far)
        return np.where(out, np.nan, history)

    def _follow(self, history: Array, n: int = PARTICLES) -> Iterator[tuple[Array, float]]:
        """Yield clouds, and the logarithm of how likely the last observation was."""
        rng = np.random.default_rng(1)
        windows = cut_windows(self._without_spikes(history), self.n_lags)
        X = self.draw_near(windows[0], n, rng)
        yield X, 0.0
        for window in windows[1:]:
            X, likelihood = self._observe(X, window, rng)
            yield X, likelihood

    def roll(self, X: Array, h: int) -> Array:
        """Send clouds (..., N, l) on for h steps, shape (..., N, h)."""
        rng = np.random.default_rng(2)
        clouds = X.reshape(-1, *X.shape[-2:])
        path = np.empty((*clouds.shape[:2], h))
        for k in range(h):
            clouds = self._move(clouds, rng)
            path[:, :, k] = clouds[:, :, -1]
        return path.reshape(*X.shape[:-1], h)

    @property
    def bounds(self) -> tuple[float, float]:
        """Range that states stay in: hardly more than that of the clean series."""
        margin = _MARGIN * (self.high - self.low)
        return self.low - margin, self.high + margin

    def ahead(self, X: Array) -> Array:
        """Return the values after windows by the map, within the bounds."""
        return np.clip(self.network.predict(X)[:, 0], *self.bounds)

    def draw_near(self, window: Array, n: int, rng: np.random.Generator) -> Array:
        """Draw n clean windows given a noisy one, shape (n, l); NaN is no observation.

        Each window of the orbit stands for a small normal distribution around it.
        """
        seen = np.isfinite(window)
        middle = self.network.y_shift[0]  # distances are exact near 0
        R, wide = self.noise**2, self.orbit_gap**2
        orbit, window = self.orbit[:, seen] - middle, window[seen] - middle
        likelihood = -0.5 * squared_distances(orbit, window[None])[:, 0] / (R + wide)
        drawn = _draw(np.exp(likelihood - likelihood.max()), n, rng)
        share = wide / (R + wide)
        X = self.orbit[drawn]
        X[:, seen] += share * (window - orbit[drawn])
        spread = np.where(seen, np.sqrt(share * R), np.sqrt(wide))
        return np.asarray(X + spread * rng.normal(size=X.shape))

    @cached_property
    def orbit(self) -> Array:
        """Windows that the map visits when left alone, shape (n, l)."""
        net = self.network
        rng = np.random.default_rng(0)
        X = net.centers / net.metric * net.x_scale + net.x_shift
        visited = []
        for k in range(_ORBIT_STEPS):
            X = self._move(X[None], rng)[0]
            if k >= _SETTLED:
                visited.append(X)
        return np.concatenate(visited)

    @cached_property
    def orbit_gap(self) -> float:
        """Typical distance, along a lag, from a window of the orbit to the nearest other one."""
        orbit = self.orbit
        rng = np.random.default_rng(0)
        some = rng.choice(len(orbit), min(_NEIGHBORS_OF, len(orbit)), replace=False)
        squares = squared_distances(orbit[some], orbit, expand=False)
        squares[np.arange(len(some)), some] = np.inf
        return float(np.sqrt(np.median(squares.min(axis=1)) / self.n_lags))

    def _move(self, clouds: Array, rng: np.random.Generator) -> Array:
        """Move clouds (B, N, l) by a step without an observation.

        A window that leaves the bounds is replaced by a copy of another one of its cloud, because
        many a map has no way back from there.
        """
        n_clouds, n, n_lags = clouds.shape
        z = self.network.predict(clouds.reshape(-1, n_lags)).reshape(n_clouds, n)
        z += self.process * rng.normal(size=n)
        lowest, highest = self.bounds
        inside = (z >= lowest) & (z <= highest)
        after: Array = np.concatenate([clouds[:, :, 1:], z[:, :, None]], axis=2)
        chosen = np.asarray(rng.random(n))
        for b in np.flatnonzero(~inside.all(axis=1)):
            cloud, others, lost = after[b], np.flatnonzero(inside[b]), np.flatnonzero(~inside[b])
            if others.size:
                cloud[lost] = cloud[others[(chosen[lost] * others.size).astype(np.int64)]]
            else:
                cloud[:, -1] = np.clip(cloud[:, -1], self.low, self.high)
        return after

    def _observe(self, X: Array, window: Array, rng: np.random.Generator) -> tuple[Array, float]:
        """Move a cloud by a step, given one more observation: the last value of a window.

        Also return the logarithm of how likely the observation was.
        """
        s = window[-1]
        if not np.isfinite(s):
            return self._move(X[None], rng)[0], 0.0
        R, Q = self.noise**2, self.slack**2
        ahead = self.ahead(X)
        weight = (1.0 - _LOST) * _density(s - ahead, R + Q) / len(X)
        net = self.network
        lost = _LOST * _density(s - net.y_shift, R + float(net.y_scale[0]) ** 2)
        total = np.concatenate([weight, lost])
        drawn = _draw(total, len(X), rng)
        fresh = drawn == len(X)
        origin = np.where(fresh, 0, drawn)
        share = Q / (Q + R)
        scatter = np.sqrt(share * R) * rng.normal(size=len(X))
        z = ahead[origin] + share * (s - ahead[origin]) + scatter
        after = np.concatenate([X[origin, 1:], z[:, None]], axis=1)
        if fresh.any():
            after[fresh] = self.draw_near(window, int(fresh.sum()), rng)
        return after, float(np.log(max(total.sum(), 1e-300)))


def _density(away: Array, variance: float) -> Array:
    """Return the density of a normal distribution."""
    return np.asarray(np.exp(-0.5 * away**2 / variance) / np.sqrt(2.0 * np.pi * variance))


def _draw(weight: Array, n: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw n positions in proportion to weights, evenly spread."""
    total = np.cumsum(weight)
    at = (rng.random() + np.arange(n)) / n * total[-1]
    found = np.searchsorted(total, at, side="right")
    return np.asarray(np.minimum(found, weight.size - 1), dtype=np.int64)
