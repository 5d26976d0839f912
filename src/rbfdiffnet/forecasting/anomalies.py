"""Which past values lay outside of what was forecast one step ahead before them.

Effects of inputs, and logarithms where asked for, are those of `models.pretrained`, found once in
whole series; they are taken out before values are judged, and put back into forecasts and bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

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
    scores = [
        np.where(is_sparse & (own.y[at] == 0.0), 0.0, score(u[at], ahead[at]))  # zeros are usual
        for own, u, ahead, at, is_sparse in zip(panel, series, found, steps, sparse, strict=True)
    ]
    calibration = Calibration.of(scores, sparse)
    owner = np.repeat(np.arange(len(steps)), [at.size for at in steps])
    normal = calibration.to_normal(np.concatenate([*scores, np.empty(0)]), owner)

    limit = float(ndtri(0.5 + level / 2.0))
    below, above = calibration.from_normal(limit)
    factors = np.stack([-below, above])
    ends = [
        _find_ends(own, way, ahead, at, factors[:, i], kinds, within)
        for i, (own, way, ahead, at, kinds, within) in enumerate(
            zip(panel, ways, found, steps, zip(sparse, counts, strict=True), limits, strict=True)
        )
    ]
    step = np.concatenate([*steps, np.empty(0, dtype=np.int64)])
    y = panel.y[panel.starts[owner] + step]
    columns = (owner, step, y, *np.concatenate([*ends, np.empty((3, 0))], axis=1), normal)
    kept = step >= (0 if last is None else (panel.ends - panel.starts)[owner] - last)
    return JudgedValues(*(column[kept] for column in columns)), reasons


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


def _find_ends(
    series: Series,
    way: Preparation | None,
    ahead: Array,
    at: Ints,
    factors: Array,
    kinds: tuple[bool, bool],
    bounds: Array,
) -> Array:
    """Return forecasts and the ends of intervals (3, m) of steps (m,), in units of the values.

    Ends are spreads (T, 3) times factors (2,) away from the forecasts. Those of series that never
    were negative are not either. `kinds` tell whether the series is often zero, where a zero is
    inside, and whether it holds counts, whose ends are the outermost whole numbers inside, unless
    the forecast is still farther out.
    """
    median, *spreads = ahead[at].T
    ends = np.stack([median, *(median + f * own for f, own in zip(factors, spreads, strict=True))])
    if way:
        ends = way.restore(ends, series.known_ahead[at])
    if not np.any(series.y < 0.0):
        ends = np.maximum(ends, 0.0)
    is_sparse, is_count = kinds
    if is_sparse:
        ends[1] = np.minimum(ends[1], 0.0)
    ends = np.clip(ends, *_take(bounds, at))
    if is_count:
        ends[1] = np.minimum(np.ceil(ends[1]), ends[0])
        ends[2] = np.maximum(np.floor(ends[2]), ends[0])
    return np.asarray(ends)


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
