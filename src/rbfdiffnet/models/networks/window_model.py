r"""A network that continues windows of a series.

.. math:: (\hat z_{t+1}, \ldots, \hat z_{t+b}) = \ell_t + u f\Big(x_t,
    \frac{z_{t+1-l_q} - \ell_t}{u}, \ldots, \frac{z_{t+1-l_1} - \ell_t}{u}\Big)

where :math:`l_1 < \ldots < l_q` are the lags, x further inputs known at time t, u the spread of the
training targets and :math:`\ell_t` the level of the window: the mean of its lags, the latest of
them, or 0. With a block of b = 1 step the forecasts are fed back (the recursive strategy, the
paper's); with b = h one network has all steps as outputs (the direct strategy). Beyond b steps,
blocks are fed back.

A network fed with its own output can run away, so steps are bounded (`support.stability`).

Where the observations are noisy (`rbfdiffnet.noise`), windows are filtered first and a cloud of
them is sent on; the forecast is its median.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rbfdiffnet.batch.train import BatchNetworks, train
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.network.network import Network
from rbfdiffnet.network.train import Settings, fit_network
from rbfdiffnet.noise.filtering import FORECAST_PARTICLES, MEMORY, PARTICLES, StateFilter
from rbfdiffnet.series.prepare import PreparedSeries
from rbfdiffnet.series.series import Series, UnfitError
from rbfdiffnet.series.windows import cut_windows
from rbfdiffnet.support.arrays import Array, Ints, Mask
from rbfdiffnet.support.progress import report_progress
from rbfdiffnet.support.stability import LEAP

LEVELS = ("mean", "last", "none")
FEWEST_ROWS = 6  # to learn from

_FEWEST_ROWS_PER_CENTER = 8
_MOST_FILLED = 0.25  # of a block of targets
_DECIMALS = 9
_LEAST = 1e-9  # penalty where there is no noise


class TooShortError(UnfitError):
    """A series is too short for its lags; fewer might do."""


def too_short(lag: int, n_rows: int) -> TooShortError:
    """Return the error for a series with so few windows."""
    return TooShortError(f"too short for lag {lag} (windows: {n_rows}, needed: {FEWEST_ROWS})")


@dataclass(frozen=True)
class BatchMember:
    """One of the networks of a batch; the network itself is made when somebody asks for it."""

    batch: BatchNetworks
    number: int

    @cached_property
    def network(self) -> Network:
        """The network."""
        return self.batch.network(self.number)


@dataclass(frozen=True)
class WindowModel:
    """A network over windows.

    `largest` is the largest distance of a training target from its level, in units. Where noise in
    the observations was found there is a `tracker`: the network is the map of clean windows, and
    states are filtered out of noisy histories before the network continues them.
    """

    source: Network | BatchMember
    lags: tuple[int, ...]  # ages of the inputs, ascending; 1 is the latest value
    level: str  # "mean", "last" or "none"
    block: int  # number of outputs
    unit: float  # the spread u
    largest: float
    tracker: StateFilter | None = None

    @property
    def network(self) -> Network:
        """The network."""
        return self.source if isinstance(self.source, Network) else self.source.network

    @property
    def reach(self) -> int:
        """How many values back a forecast looks: to the oldest lag, or further for filtering."""
        return self.lags[-1] + (0 if self.tracker is None else MEMORY)

    @property
    def limit(self) -> float:
        """Largest distance of a step from its level, in units; see `support.stability`."""
        return LEAP * self.largest

    def forecast(self, z: Array, h: int, extra: Array) -> tuple[Array, Sequence[Array]]:
        """Continue a batch of series from their latest values z (B, L), L at least `reach`.

        `extra` (B, q) are further inputs. Returned are forecasts (B, h), and the network's inputs
        (B, q + n_lags) for every block, which are made when they are asked for.
        """
        if self.tracker is not None:
            return self._forecast_noisy(z, h)
        batch, length = z.shape
        blocks = -(-h // self.block)
        path = np.concatenate([z, np.empty((batch, blocks * self.block))], axis=1)
        for k in range(blocks):
            end = length + k * self.block
            inputs, level = self.inputs(path[:, :end], extra)
            step = np.clip(self.network.predict(inputs), -self.limit, self.limit)
            path[:, end : end + self.block] = self.unit * step + level
        return path[:, length : length + h], PathInputs(self, path, length, extra)

    def roll_noisy(
        self, z: Array, h: int, n: int | None = None, after: Mask | None = None
    ) -> tuple[Array, Array, Array]:
        """Continue noisy histories (B, L), NaN where missing, from the states filtered out of them.

        `n` says how many windows of each cloud are sent on, `after` (B,) which histories are
        continued; by default all. Returned are the medians of the clouds (B, h), the standard
        deviations of the observations to come (B, h), and the clean windows (B, n_lags) that the
        clouds lie around.
        """
        clouds, ahead = self.roll_clouds(z, h, n, after)
        noise = 0.0 if self.tracker is None else self.tracker.noise
        spread = np.sqrt(ahead.var(axis=1) + noise**2)
        return np.median(ahead, axis=1), spread, np.median(clouds, axis=1)

    def roll_clouds(
        self,
        z: Array,
        h: int,
        n: int | None = None,
        after: Mask | None = None,
        size: int = PARTICLES,
    ) -> tuple[Array, Array]:
        """Return the clouds at the ends of noisy histories (B, N, n_lags), and their steps ahead.

        These have shape (B, N, h).
        """
        if self.tracker is None:
            raise ValueError("Without a tracker there are no clouds.")
        followed = []
        for k, cloud in enumerate(self.tracker.clouds(z, size)):
            report_progress(k / len(z))
            if after is None or after[k]:
                followed.append(cloud)
        clouds = np.array(followed)
        if n is not None:
            clouds = clouds[:, :: max(clouds.shape[1] // n, 1)]
        return clouds, self.tracker.roll(clouds, h)

    def _forecast_noisy(self, z: Array, h: int) -> tuple[Array, Sequence[Array]]:
        """Continue series from states filtered out of their noise."""
        clouds, ahead = self.roll_clouds(z, h, size=FORECAST_PARTICLES)
        path, states = np.median(ahead, axis=1), np.median(clouds, axis=1)
        whole = np.concatenate([states, path], axis=1)
        return path, [whole[:, k : k + len(self.lags)] for k in range(h)]

    def inputs(self, z: Array, extra: Array) -> tuple[Array, Array]:
        """Return the network's inputs after the values z, and the level of the window, (B, 1)."""
        lags = z[:, [-age for age in reversed(self.lags)]]
        level = compute_level(lags, self.level)
        return np.concatenate([extra, (lags - level) / self.unit], axis=1), level

    def in_units(self, X: Array) -> Array:
        """Return rows (n, q + n_lags) with their lags in units; other inputs come before them."""
        n_extra = X.shape[1] - len(self.lags)
        return np.concatenate([X[:, :n_extra], X[:, n_extra:] / self.unit], axis=1)


@dataclass(frozen=True)
class PathInputs(Sequence[Array]):
    """A network's inputs (B, q + n_lags) for every block of paths (B, L + h), made on demand.

    The first `length` columns L were observed; `extra` (B, q) are further inputs.
    """

    windows: WindowModel
    path: Array
    length: int
    extra: Array

    def __len__(self) -> int:
        return int(self.path.shape[1] - self.length) // self.windows.block

    def __getitem__(self, k: Any) -> Any:
        if not 0 <= k < len(self):
            raise IndexError(k)
        end = self.length + k * self.windows.block
        return self.windows.inputs(self.path[:, :end], self.extra)[0]

    def take(self, rows: slice) -> PathInputs:
        """Return the inputs of some paths."""
        return replace(self, path=self.path[rows], extra=self.extra[rows])


@dataclass(frozen=True)
class TrainingRows:
    """Rows to learn from: inputs X (n, q), targets Y (n, block), and where windows end (n,)."""

    X: Array
    Y: Array
    ends: Ints
    lags: tuple[int, ...]
    level: str

    @classmethod
    def of(cls, series: Series, prepared: PreparedSeries, plan: Plan) -> TrainingRows:
        """Return the rows of a series that was made ready."""
        return cls.cut(*prepared.transform(), series, plan)

    @classmethod
    def cut(cls, z: Array, known: Mask, series: Series, plan: Plan) -> TrainingRows:
        """Return the rows of a series that has been transformed."""
        lost, block = series.y.size - z.size, plan.block
        lags, level = plan.lags_for(int(known.sum())), plan.level_for(z)
        X, Y = window_rows(z, known, series.extra[lost:], lags=lags, level=level, block=block)
        use = np.flatnonzero(targets_known(known, lags=lags, block=block))
        return cls(X, Y, use + lost + lags[-1] - 1, lags, level)

    @classmethod
    def concatenate(cls, rows: Sequence[TrainingRows]) -> TrainingRows:
        """Return the rows of several series as one."""
        X, Y, ends = (
            np.concatenate([getattr(r, name) for r in rows]) for name in ("X", "Y", "ends")
        )
        return cls(X, Y, ends, rows[0].lags, rows[0].level)

    def part(self, which: slice | Mask, every: int = 1) -> TrainingRows:
        """Return every so many of some rows."""
        X, Y = self.X[which][::every], self.Y[which][::every]
        return replace(self, X=X, Y=Y, ends=self.ends[which][::every])

    def fit(self, plan: Plan) -> WindowModel:
        """Train a network on the rows."""
        settings = plan.settings(self.X.shape[1])
        if plan.fast and plan.block == 1:
            return self._fit_fast(settings.n_centers)
        n_extra = self.X.shape[1] - len(self.lags)
        if n_extra and isinstance(settings.metric, str) and settings.metric == "standard":
            # Inputs other than lags are often rare switches: dividing them by their small spread
            # would make them outweigh everything else in distances.
            spread = np.minimum(self.X[:, :n_extra].std(axis=0), 1.0)
            settings = replace(settings, metric=np.append(spread, np.ones(len(self.lags))))
        return fit_windows(self.X, self.Y, settings, lags=self.lags, level=self.level)

    def _fit_fast(self, n_centers: int) -> WindowModel:
        """Train a network of one output by `rbfdiffnet.batch.train`."""
        X, Y, unit = _in_units(self.X, self.Y, len(self.lags))
        n_centers = affordable_centers(n_centers, len(X))
        inputs = np.ascontiguousarray(X.T)[None]
        networks = train(inputs, Y.T, np.ones((1, len(X))), n_centers=n_centers)
        largest = float(networks.largest[0])
        return WindowModel(networks.network(0), self.lags, self.level, 1, unit, largest)


def compute_level(lags: Array, level: str) -> Array:
    """Return the level (..., 1) of windows (..., n_lags), oldest value first."""
    if level == "mean":
        return np.asarray(lags.mean(axis=-1, keepdims=True))
    if level == "last":
        return lags[..., -1:]
    return np.zeros((*lags.shape[:-1], 1))


def window_rows(
    z: Array, known: Mask, extra: Array, *, lags: tuple[int, ...], level: str, block: int
) -> tuple[Array, Array]:
    """Return inputs X (n, q + n_lags) and targets Y (n, block) of the rows of one series.

    `extra` (T, q) are further inputs, known at the time of a window's latest value. Rows whose
    targets were not observed (for blocks: more than a quarter of them) are left out.
    """
    reach = lags[-1]
    n = z.size - reach - block + 1
    if n < 1:
        return np.empty((0, extra.shape[1] + len(lags))), np.empty((0, block))
    inputs = np.stack([z[reach - age : reach - age + n] for age in reversed(lags)], axis=1)
    targets = cut_windows(z[reach:], block)
    use = targets_known(known, lags=lags, block=block)
    latest = extra[reach - 1 : reach - 1 + n]
    base = compute_level(inputs, level)
    X = np.concatenate([latest, inputs - base], axis=1)
    return X[use], (targets - base)[use]


def targets_known(known: Mask, *, lags: tuple[int, ...], block: int) -> Mask:
    """Tell for each window of a series whether enough of its targets were observed."""
    if known.size < lags[-1] + block:
        return np.empty(0, dtype=bool)
    seen = cut_windows(known[lags[-1] :], block)
    return np.asarray(seen.mean(axis=1) >= 1.0 - _MOST_FILLED)


def fit_windows(
    X: Array, Y: Array, settings: Settings, *, lags: tuple[int, ...], level: str
) -> WindowModel:
    """Train a network on rows of windows; short series get fewer basis functions."""
    if isinstance(settings.centers, str):
        settings = replace(settings, n_centers=affordable_centers(settings.n_centers, len(X)))
    X, Y, unit = _in_units(X, Y, len(lags))
    if settings.alpha is None and settings.penalty == "ridge" and _repeats(X, Y):
        settings = replace(settings, alpha=_LEAST, alpha_linear=_LEAST)
    fit = fit_network(X, Y, np.ones(len(X)), settings)
    return WindowModel(fit.network, lags, level, Y.shape[1], unit, float(np.abs(Y).max()))


def affordable_centers(n_centers: int, n_rows: int) -> int:
    """Return the number of basis functions for a number of rows."""
    return min(n_centers, max(1, n_rows // _FEWEST_ROWS_PER_CENTER))


def _repeats(X: Array, Y: Array) -> bool:
    """Tell whether every row has been seen before, always with the same targets.

    Then a series repeats itself exactly. It has as many different rows as its period has steps, and
    how well each is forecast from the others says nothing: the penalty need not be chosen.
    """
    _, counts = np.unique(np.concatenate([X, Y], axis=1), axis=0, return_counts=True)
    return counts.min() > 1 and len(np.unique(X, axis=0)) == len(counts)


def _in_units(X: Array, Y: Array, n_lags: int) -> tuple[Array, Array, float]:
    """Lags and targets in units of the targets' spread, and that unit.

    Rounded: in a periodic series lags differ by nothing but rounding errors, which would otherwise
    be taken for inputs.
    """
    spread = float(Y.std())
    unit = spread if spread > 0.0 else 1.0
    lags = np.round(X[:, -n_lags:] / unit, _DECIMALS)
    return np.concatenate([X[:, :-n_lags], lags], axis=1), np.round(Y / unit, _DECIMALS), unit
