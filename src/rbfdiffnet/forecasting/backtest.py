"""Forecast windows at the ends of series from what precedes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rbfdiffnet.forecasting.options import column_names
from rbfdiffnet.forecasting.pipeline import Pipeline
from rbfdiffnet.models.base import FittedModel, ForecastRequest
from rbfdiffnet.panel.exogenous import Exogenous
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.support.arrays import Array, Ints
from rbfdiffnet.support.memo import share_results
from rbfdiffnet.support.notes import BEGINS_LATE, NO_MODEL, Note
from rbfdiffnet.support.progress import progress_between


@dataclass(frozen=True)
class BacktestWindows:
    """Windows of a backtest: n of length h, each `step` steps after the one before.

    `refit` is what `RBFDiffNet.cross_validation` takes.
    """

    h: int
    n: int
    step: int
    refit: bool | int | str

    def origins(self, lengths: Ints, window: int) -> Ints:
        """Return how many values of each series precede a window."""
        return np.maximum(lengths - self.h - (self.n - 1 - window) * self.step, 0)

    def fits(self, window: int) -> bool:
        """Tell whether everything is fitted anew for a window."""
        every = self.n if self.refit in (False, "weights") else int(self.refit)
        return window % every == 0


@share_results()
def backtest(
    pipeline: Pipeline,
    panel: Panel,
    inputs_of: Callable[[Panel], Exogenous],
    windows: BacktestWindows,
    levels: Mapping[str, float],
) -> tuple[Any, list[Note]]:
    """Return a frame of forecasts of all windows, and what was unusual.

    `inputs_of` learns from a panel that ends with a window's origin how inputs become numbers.
    """
    values: list[Array] = []
    cutoffs: list[Ints] = []
    model: FittedModel | None = None
    notes: dict[tuple[int, str], Note] = {}
    h, n, lengths = windows.h, windows.n, panel.lengths
    fit_share = pipeline.options.method.fit_share
    for window in range(n):
        origins = windows.origins(lengths, window)
        if model is None or windows.fits(window):
            # Series that have not begun say nothing about the inputs.
            past = panel.truncate(lengths - origins).select(np.flatnonzero(origins))
            series = inputs_of(past).series(panel)
            seen = series.until(origins)
            with progress_between(window / n, (window + fit_share) / n):
                model = pipeline.fit_model(seen, calibrate=bool(levels))
            for note in pipeline.notes(panel, model, seen):
                if origins[note.series]:  # windows without a past are noted below
                    notes[note.series, note.problem] = _dated(note, panel, origins)
        elif windows.refit == "weights":
            model = model.learn_weights(series.until(origins))
        ahead = [s.known_ahead[o : o + h] for s, o in zip(series, origins, strict=True)]
        ahead = [np.pad(a, ((0, h - len(a)), (0, 0))) for a in ahead]
        with progress_between((window + fit_share) / n, (window + 1) / n):
            request = ForecastRequest(series, origins, h, ahead)
            found, _ = pipeline.forecast(model, request, levels)
        values.append(np.stack(list(found.values())))
        cutoffs.append(origins)
    frame = _frame(panel, cutoffs, values, column_names([*levels]), h)
    return frame, [*notes.values(), *_left_out(panel, cutoffs)]


def _dated(note: Note, panel: Panel, origins: Ints) -> Note:
    """Name the window for which a series had no model."""
    if note.kind != NO_MODEL:
        return note
    start = panel.format_date(note.series, int(origins[note.series]))
    return replace(note, detail=f"{note.detail} before the window from {start}")


def _left_out(panel: Panel, cutoffs: list[Ints]) -> list[Note]:
    """Note the series that begin after windows do."""
    n = len(cutoffs)
    without = np.count_nonzero(np.stack(cutoffs) == 0, axis=0)
    return [
        Note(
            i,
            BEGINS_LATE,
            "left out of these",
            detail=f"begins {panel.format_date(i, 0)}, too late for {without[i]} of {n} windows",
        )
        for i in np.flatnonzero(without).tolist()
        if panel.lengths[i]
    ]


def _frame(panel: Panel, cutoffs: list[Ints], values: list[Array], names: list[str], h: int) -> Any:
    """Return a frame of all windows that have values before them, series by series."""
    n, windows = panel.n_series, len(cutoffs)
    origins = np.stack(cutoffs, axis=1) if n else np.empty((0, windows), dtype=np.int64)
    i, w = np.nonzero(origins > 0)
    start = origins[i, w]
    size = np.minimum(panel.lengths[i] - start, h)
    row = np.repeat(np.arange(i.size), size)
    ahead = np.arange(row.size) - np.repeat(np.cumsum(size) - size, size)
    table = np.stack(values, axis=2) if n else np.empty((len(names), 0, windows, h))
    columns = {panel.columns.target: panel.y[panel.offsets[i[row]] + start[row] + ahead]}
    columns |= {name: table[k, i[row], w[row], ahead] for k, name in enumerate(names)}
    return panel.make_frame(start, size, columns, {"cutoff": start[row] - 1}, i)
