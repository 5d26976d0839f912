"""Which past values lay outside of what was forecast one step ahead before them.

Effects of inputs, and logarithms where asked for, are those of `models.pretrained`, found once in
whole series; they are taken out before values are judged, and put back into forecasts and bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from rbfdiffnet.forecasting.options import NAME, label_percent
from rbfdiffnet.models.calibration import Calibration
from rbfdiffnet.models.one_step import (
    Look,
    explain_unready,
    find_first,
    forecast_one_step,
    score,
)
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.pretrained import Pretrained
from rbfdiffnet.panel.frames import ColumnNames
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.series.prepare import Preparation
from rbfdiffnet.series.series import Series, SeriesPanel, find_counts, find_sparse
from rbfdiffnet.support.arrays import Array, Ints
from rbfdiffnet.support.checks import is_number

#: Values before the judged ones that tell how large errors usually are.
TO_CALIBRATE = 100
_ROUNDED = np.array([-0.4, -0.2, 0.0, 0.2, 0.4])  # away from a whole number


@dataclass(frozen=True)
class JudgedValues:
    """Values that were forecast one step ahead, in the order of series and steps.

    A value is an anomaly where it lies outside of its bounds. All arrays have shape (m,): the
    number of the series, the step, the value, its forecast, the bounds, and the calibrated score.
    """

    series: Ints
    step: Ints
    y: Array
    forecast: Array
    low: Array
    high: Array
    score: Array

    def make_frame(self, panel: Panel, label: str) -> Any:
        """Return a frame with a row for every value, given the level's label."""
        columns = {
            panel.columns.target: self.y,
            NAME: self.forecast,
            f"{NAME}-lo-{label}": self.low,
            f"{NAME}-hi-{label}": self.high,
            "anomaly": (self.y < self.low) | (self.y > self.high),
            "score": self.score,
        }
        return panel.make_frame(self.step, 1, columns, series=self.series)


def judge_values(
    panel: SeriesPanel,
    plan: Plan,
    level: float,
    last: int | None = None,
    n_jobs: int = 1,
    bounds: Sequence[Array] | None = None,
) -> tuple[JudgedValues, dict[int, str]]:
    """Judge all values of a panel that can be, or the last so many steps of each series.

    The level is between 0 and 1. Forecasts and intervals of each series stay within
    `bounds`, (2, T) or (2, 1) each. Also returned is why no value of a series was judged.
    """
    free = np.array([[-np.inf], [np.inf]])
    limits = [free] * len(panel) if bounds is None else bounds
    ways = _find_preparations(panel, plan, n_jobs)
    series = [
        way.without_effects(own.y, own.known_ahead) if way else own.y
        for own, way in zip(panel, ways, strict=True)
    ]
    firsts = [find_first(u, plan.season_length) for u in series]
    reasons = {
        i: explain_unready(u, plan.season_length)
        for i, (u, first) in enumerate(zip(series, firsts, strict=True))
        if first == u.size
    }
    back = np.inf if last is None else last + TO_CALIBRATE
    begin = [int(max(first, u.size - back)) for u, first in zip(series, firsts, strict=True)]
    look = Look(plan.season_length, plan.longer_season, plan.device, n_jobs)
    found = forecast_one_step(series, begin, look)
    for own, way, ahead, within in zip(panel, ways, found, limits, strict=True):
        _bound_medians(own, way, ahead, within)

    steps = [np.flatnonzero(np.isfinite(own[:, 0])) for own in found]
    values = [own.y for own in panel]
    sparse, counts = find_sparse(values), find_counts(values)
    judged = [
        _Judged(*parts)
        for parts in zip(panel, ways, found, steps, sparse.tolist(), counts.tolist(), strict=True)
    ]
    calibration = Calibration.of([own.find_scores() for own in judged], sparse)
    z = float(ndtri(0.5 + level / 2.0))
    columns = [
        (*own.find_ends(z, calibration, i, within), own.find_normal(own.y, calibration, i))
        for i, (own, within) in enumerate(zip(judged, limits, strict=True))
    ]
    owner = np.repeat(np.arange(len(steps)), [at.size for at in steps])
    step = np.concatenate([*steps, np.empty(0, dtype=np.int64)])
    y = panel.y[panel.starts[owner] + step]
    parts = np.concatenate([*columns, np.empty((4, 0))], axis=1)
    kept = step >= (0 if last is None else (panel.ends - panel.starts)[owner] - last)
    return JudgedValues(*(column[kept] for column in (owner, step, y, *parts))), reasons


@dataclass(frozen=True)
class _Judged:
    """A series, its forecasts (T, 3) one step ahead, and the steps (m,) that are judged.

    It may be often zero, where a zero is never far, and it may hold counts. A count stands for all
    values that are rounded to it.
    """

    series: Series
    way: Preparation | None
    ahead: Array
    at: Ints
    is_sparse: bool
    is_count: bool

    @property
    def y(self) -> Array:
        """The judged values (m,)."""
        return self.series.y[self.at]

    @property
    def inputs(self) -> Array:
        """The inputs of the judged steps, (m, q)."""
        return self.series.known_ahead[self.at]

    def find_scores(self) -> Array:
        """Return the scores of the judged values (m,), or (k, m) of those that counts stand for."""
        y = self.y
        scores = self._score(y + _ROUNDED[:, None] if self.is_count else y)
        return np.where(self.is_sparse & (y == 0.0), 0.0, scores)

    def find_normal(self, y: Array, calibration: Calibration, i: int) -> Array:
        """Return normal scores of values (m,) at the judged steps; the series has the number i.

        A count is not taken to be rarer than the share of values that are rounded to it.
        """

        def to_normal(values: Array) -> Array:
            return calibration.to_normal(self._score(values), np.full(values.size, i))

        z = to_normal(y)
        if self.is_count:
            sign = np.copysign(1.0, z)
            below = np.where(y > 0.0, to_normal(y - 0.5), -np.inf)
            near, far = np.sort(sign * np.stack([below, to_normal(y + 0.5)]), axis=0)
            share = ndtr(-near) - ndtr(-far)
            z = sign * np.minimum(np.abs(z), -ndtri(share / 2.0))
        return np.where(self.is_sparse & (y == 0.0), 0.0, z)

    def find_ends(self, z: float, calibration: Calibration, i: int, bounds: Array) -> Array:
        """Return forecasts and the ends of intervals (3, m), in units of the values.

        Ends have the normal score z. Those of series that never were negative are not either. In
        series that are often zero, a zero is inside. Ends of counts are the outermost whole numbers
        inside, unless the forecast is still farther out.
        """
        median, below, above = self.ahead[self.at].T
        far = calibration.from_normal(z)[:, i]
        ends = np.stack([median, median - far[0] * below, median + far[1] * above])
        if self.way:
            ends = self.way.restore(ends, self.inputs)
        if not np.any(self.series.y < 0.0):
            ends = np.maximum(ends, 0.0)
        if self.is_sparse:
            ends[1] = np.minimum(ends[1], 0.0)
        lowest, highest = _take(bounds, self.at)
        ends = np.clip(ends, lowest, highest)
        if self.is_count:
            low, high = np.ceil(ends[1]), np.floor(ends[2])
            for end, beyond in ((low, low - 1.0), (high, high + 1.0)):
                inside = np.abs(self.find_normal(beyond, calibration, i)) <= z
                inside &= (beyond >= np.maximum(lowest, 0.0)) & (beyond <= highest)
                end[inside] = beyond[inside]
            ends[1:] = np.minimum(low, ends[0]), np.maximum(high, ends[0])
        return np.asarray(ends)

    def _score(self, y: Array) -> Array:
        """Return scores of values (..., m) at the judged steps."""
        u = self.way.without_effects(y, self.inputs) if self.way else y
        return score(u, self.ahead[self.at])


def _bound_medians(series: Series, way: Preparation | None, ahead: Array, bounds: Array) -> None:
    """Move medians (T, 3) that are out of bounds to these, in place, before values are scored.

    So a value that is within bounds is as far from its forecast as its score says.
    """
    if not np.isfinite(bounds).any():
        return
    at = np.flatnonzero(np.isfinite(ahead[:, 0]))
    inputs = series.known_ahead[at]
    medians = way.restore(ahead[at, 0][None], inputs)[0] if way else ahead[at, 0]
    held = np.clip(medians, *_take(bounds, at))
    moved = held != medians
    if way:
        held = way.without_effects(held, inputs)
    ahead[at[moved], 0] = held[moved]


def _take(bounds: Array, at: Ints) -> Array:
    """Return bounds, (2, T) or (2, 1), of some steps."""
    return bounds if bounds.shape[1] == 1 else bounds[:, at]


def _find_preparations(panel: SeriesPanel, plan: Plan, n_jobs: int) -> Sequence[Preparation | None]:
    """Return what takes effects of inputs and logarithms out of each series, if anything does."""
    found: list[Preparation | None] = [None] * len(panel)
    if panel.known_ahead.shape[1] or plan.log:
        model = Pretrained().fit(panel, replace(plan, clean=True), n_jobs=n_jobs)
        for chunk, prepared in zip(model.chunks, model.prepared, strict=True):
            for i, own in prepared.ready.items():
                found[chunk[i]] = own.preparation
    return found


def check_level(level: Any, columns: ColumnNames) -> tuple[str, float]:
    """Return the label of a level in percent, and the level between 0 and 1.

    The names of the columns must differ from those that the result adds.
    """
    for name in (columns.id, columns.time, columns.target):
        if name in ("anomaly", "score"):
            raise ValueError(f"The result has a column {name!r} of its own; rename yours.")
    if not (is_number(level) and 50 <= level <= 99.99):
        raise ValueError(f"level must be a percentage from 50 to 99.99, such as 99; got {level!r}.")
    return label_percent(float(level)), float(level) / 100.0
