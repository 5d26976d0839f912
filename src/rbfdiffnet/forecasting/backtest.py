"""Forecast windows at the ends of series from what precedes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.forecasting.options import column_names
from rbfdiffnet.forecasting.pipeline import Asked, Work
from rbfdiffnet.models.panel_model import PanelModel
from rbfdiffnet.panel.exogenous import Exogenous
from rbfdiffnet.panel.panel import Panel, Problem
from rbfdiffnet.support.progress import progress_between

__all__ = ["Windows", "backtest"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Windows:
    """Windows of a backtest.

    Attributes
    ----------
    h : int
        Length of a window.
    n : int
        How many.
    step : int
        Steps from a window to the next.
    refit : bool, int or "weights"
        As `RBFDiffNet.cross_validation` takes it.
    """

    h: int
    n: int
    step: int
    refit: bool | int | str

    def origins(self, lengths: Ints, window: int) -> Ints:
        """How many values of each series precede a window."""
        return np.maximum(lengths - self.h - (self.n - 1 - window) * self.step, 0)

    def fits(self, window: int) -> bool:
        """Whether everything is fitted anew for a window."""
        every = self.n if self.refit in (False, "weights") else int(self.refit)
        return window % every == 0


def backtest(
    work: Work,
    panel: Panel,
    inputs_of: Callable[[Panel], Exogenous],
    windows: Windows,
    levels: Mapping[str, float],
) -> tuple[Any, list[Problem]]:
    """Return a frame of forecasts of all windows, and what was unusual.

    Parameters
    ----------
    work : Work
    panel : Panel
    inputs_of : callable
        What a panel that ends with a window's origin tells about the inputs.
    windows : Windows
    levels : mapping
        Levels of intervals, between 0 and 1, by their labels.
    """
    values: list[Array] = []
    cutoffs: list[Ints] = []
    model: PanelModel | None = None
    notes: dict[tuple[int, str], Problem] = {}
    h, lengths = windows.h, panel.lengths
    for window in range(windows.n):
        origins = windows.origins(lengths, window)
        if model is None or windows.fits(window):
            # Series that have not begun say nothing about the inputs.
            past = panel.truncate(lengths - origins).select(np.flatnonzero(origins))
            series = inputs_of(past).series(panel)
            seen = [s.until(int(o)) for s, o in zip(series, origins, strict=True)]
            model = work.learned(panel, seen, calibrate=bool(levels))
            for note in work.notes(panel, model, seen):
                if origins[note.series]:  # windows without a past are told of below
                    notes[note.series, note.problem] = _dated(note, panel, model, origins)
        elif windows.refit == "weights":
            seen = [s.until(int(o)) for s, o in zip(series, origins, strict=True)]
            model = model.learned(seen)
        ahead = [s.known_ahead[o : o + h] for s, o in zip(series, origins, strict=True)]
        ahead = [np.pad(a, ((0, h - len(a)), (0, 0))) for a in ahead]
        with progress_between(window / windows.n, (window + 1) / windows.n):
            found, _ = work.columns(model, series, origins, Asked(h, ahead, levels))
        values.append(np.stack(list(found.values())))
        cutoffs.append(origins)
    frame = _frame(panel, cutoffs, values, column_names([*levels]), h)
    return frame, [*notes.values(), *_left_out(panel, cutoffs)]


def _dated(note: Problem, panel: Panel, model: PanelModel, origins: Ints) -> Problem:
    """Say of which window it is that a series had no model."""
    i = note.series
    if model.reasons.get(i) != note.problem:
        return note
    start = panel.format_date(i, int(origins[i]))
    return replace(note, problem=f"{note.problem} before the window from {start}")


def _left_out(panel: Panel, cutoffs: list[Ints]) -> list[Problem]:
    """Name the series that begin after windows do."""
    n = len(cutoffs)
    without = np.count_nonzero(np.stack(cutoffs) == 0, axis=0)
    return [
        Problem(
            i,
            f"begins {panel.format_date(i, 0)}, too late for {without[i]} of {n} windows",
            "left out of these",
        )
        for i in np.flatnonzero(without).tolist()
        if panel.lengths[i]
    ]


def _frame(panel: Panel, cutoffs: list[Ints], values: list[Array], names: list[str], h: int) -> Any:
    """Frame of all windows, series by series, without those that have no value before them."""
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
    chosen = panel.select(i)
    return chosen.make_frame(start, size, columns, extra_times={"cutoff": start[row] - 1})
