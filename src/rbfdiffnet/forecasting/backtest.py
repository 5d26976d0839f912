"""Forecast windows at the ends of series from what precedes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rbfdiffnet.forecasting.chunks import forecast_in_chunks
from rbfdiffnet.forecasting.options import ALONE, NAME
from rbfdiffnet.forecasting.pipeline import Pipeline
from rbfdiffnet.forecasting.reconcile import forecast_and_reconcile
from rbfdiffnet.models.base import FittedModel, ForecastRequest
from rbfdiffnet.panel.exogenous import Exogenous, FutureInputs
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.support.arrays import Array, Ints
from rbfdiffnet.support.memo import share_results
from rbfdiffnet.support.notes import (
    BEGINS_LATE,
    ENDED_INPUT,
    FEW_ERRORS,
    HELD_BACK,
    NO_MODEL,
    NOT_FINITE,
    Note,
)
from rbfdiffnet.support.progress import expect_seconds, progress_between

_OF_ONE_WINDOW = (NOT_FINITE, HELD_BACK, FEW_ERRORS, ENDED_INPUT)  # kinds of notes left out


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
    quantiles: Mapping[str, float],
    *,
    alone: bool = False,
) -> tuple[Any, list[Note]]:
    """Return a frame of forecasts of all windows, and what was unusual.

    `quantiles` are probabilities by the names of columns. `alone` is for hierarchies, as in
    `forecast_and_reconcile`.
    `inputs_of` learns from a panel that ends with a window's origin how inputs become numbers.
    Where every window is fitted anew, and no model learns from the whole panel, nothing is kept of
    a chunk of series but its forecasts.
    """
    values: list[Array] = []
    cutoffs: list[Ints] = []
    notes: dict[tuple[int, str], Note] = {}
    h, n, lengths = windows.h, windows.n, panel.lengths
    n_fits = sum(map(windows.fits, range(n)))
    expect_seconds(pipeline.estimate_seconds(n_fits * panel.y.size, n * panel.n_series * h))
    pipeline = replace(pipeline, part=True)  # series that have not begun are like no others
    for window in range(n):
        origins = windows.origins(lengths, window)
        past = panel.truncate(lengths - origins)
        unusual: list[Note] = []
        with progress_between(window / n, (window + 1) / n):
            if windows.fits(window):
                # Series that have not begun say nothing about the inputs.
                exogenous = inputs_of(past.select(np.flatnonzero(origins)))
                series = exogenous.series(panel)
            request = ForecastRequest.within(series, origins, h)
            excess, far = exogenous.unseen_within(panel, origins, h)
            if n_fits == n and pipeline.options.method.learns_from != "panel":
                inputs = [FutureInputs(list(request.ahead), None, excess, far)]
                forecast = partial(
                    forecast_in_chunks, pipeline, past, exogenous, h, inputs, quantiles
                )
            else:
                if windows.fits(window):
                    seen = series.until(origins)
                    with progress_between(0.0, pipeline.options.method.fit_share):
                        model = pipeline.fit_model(seen, calibrate=bool(quantiles))
                    unusual += pipeline.notes(panel, model, seen)
                elif windows.refit == "weights":
                    model = model.learn_weights(series.until(origins))
                request = replace(request, excess=excess, notes=far)
                forecast = partial(_forecast, pipeline, model, request, quantiles)
            (found,), more = forecast_and_reconcile(
                pipeline, past, exogenous, h, forecast, excess=[excess], alone=alone
            )
        for note in (*unusual, *more):
            if origins[note.series] and note.kind not in _OF_ONE_WINDOW:
                notes[note.series, note.problem] = _dated(note, panel, origins)
        values.append(np.stack(list(found.values())))
        cutoffs.append(origins)
    frame = _frame(panel, cutoffs, values, [NAME, *quantiles, *([ALONE] if alone else [])], h)
    return frame, [*notes.values(), *_left_out(panel, cutoffs)]


def _forecast(
    pipeline: Pipeline,
    model: FittedModel,
    request: ForecastRequest,
    quantiles: Mapping[str, float],
) -> tuple[list[dict[str, Array]], list[Note]]:
    """Forecast the only scenario of a window."""
    columns, notes = pipeline.forecast(model, request, quantiles)
    return [columns], notes


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
