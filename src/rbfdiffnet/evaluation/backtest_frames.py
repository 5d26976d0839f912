"""Frames of backtests: which columns are forecasts of which model, and where their rows stand.

Rows stand on the regular grid of their series, where missing rows are missing values. So steps are
steps of time, not rows: a shop without rows for Sundays has a season of seven steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rbfdiffnet.panel.frames import read_frame
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.series.naive import naive_forecast
from rbfdiffnet.support.arrays import Array, Ints, Mask

#: Two simple rules that forecasts are compared with: the value a season ago, and the last one.
BASELINE, LAST = "SeasonalNaive", "LastValue"
_INTERVAL_END = re.compile(r"(?P<model>.+)-(?P<side>lo|hi)-(?P<level>\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class ModelColumns:
    """The columns of one model: its forecasts, and its intervals by their levels."""

    name: str
    levels: tuple[str, ...] = ()

    def ends(self, level: str) -> tuple[str, str]:
        """Return the columns of the lower and the upper end of an interval."""
        return f"{self.name}-lo-{level}", f"{self.name}-hi-{level}"


def find_models(columns: Iterable[str], what: str) -> list[ModelColumns]:
    """Tell models and their intervals from the names of columns.

    ValueError is raised if an interval lacks its other end or its model, or if there is no model.
    """
    names = list(columns)
    levels: dict[str, set[str]] = {}
    for name in names:
        match = _INTERVAL_END.fullmatch(name)
        if match is None:
            levels.setdefault(name, set())
            continue
        model, side, level = match["model"], match["side"], match["level"]
        needed = f"{model}-{'hi' if side == 'lo' else 'lo'}-{level}"
        for other in (needed, model):
            if other not in names:
                raise ValueError(
                    f"Column {name!r} of {what} needs a column {other!r}; add it, or drop {name!r}."
                )
        levels.setdefault(model, set()).add(level)
    if not levels:
        raise ValueError(f"{what} has no column with forecasts; add one for each model.")
    return [ModelColumns(name, tuple(sorted(found, key=float))) for name, found in levels.items()]


@dataclass(frozen=True)
class BacktestRows:
    """Where the rows of a backtest stand; all arrays have shape (n_rows,).

    `series` is -1 for rows of series that are not in the panel. `seen` counts the steps of the
    series up to the cutoff, `ahead` those from the cutoff to the row. `on_grid` tells whether the
    row and its cutoff are steps of the series; elsewhere the other numbers mean nothing.
    """

    series: Ints
    seen: Ints
    ahead: Ints
    on_grid: Mask

    @classmethod
    def locate(cls, panel: Panel, folds: Any) -> BacktestRows:
        """Find the rows of a frame with a column ``cutoff`` on the grids of a panel."""
        names = panel.columns
        frame = read_frame(folds, [names.id, names.time, "cutoff"])
        series, steps, good = panel.locate_rows(frame.select(names.id, names.time).to_native())
        cutoffs = frame.select(names.id, "cutoff").rename({"cutoff": names.time}).to_native()
        _, last, also = panel.locate_rows(cutoffs)
        return cls(series, last + 1, steps - last, good & also & (last >= 0) & (steps > last))

    def by_series(self) -> Iterator[tuple[int, Ints]]:
        """Yield every series of the panel with the numbers of its rows that are on the grid."""
        series = np.where(self.on_grid, self.series, -1)
        order = np.argsort(series, kind="stable")
        found, starts = np.unique(series[order], return_index=True)
        for i, start, stop in zip(found.tolist(), starts, [*starts[1:], None], strict=False):
            if i >= 0:
                yield i, order[start:stop]


def simple_forecasts(panel: Panel, rows: BacktestRows, season_length: int) -> dict[str, Array]:
    """Forecast every row by simple rules, which are the keys; NaN for rows off the grid.

    ``SeasonalNaive`` repeats the last season, or the last value where less than a season was seen.
    ``LastValue`` repeats the last value always; a season of one step leaves it out.
    """
    seasons = {BASELINE: season_length} | ({LAST: 1} if season_length > 1 else {})
    return {name: _repeat_season(panel, rows, season) for name, season in seasons.items()}


def _repeat_season(panel: Panel, rows: BacktestRows, season_length: int) -> Array:
    values = np.full(len(rows.series), np.nan)
    for i, own in rows.by_series():
        origins, which = np.unique(rows.seen[own], return_inverse=True)
        y = panel.y[panel.offsets[i] : panel.offsets[i + 1]]
        y = np.append(y, np.full(max(0, int(origins[-1]) - len(y)), np.nan))
        ahead = rows.ahead[own]
        paths = naive_forecast(y, origins, int(ahead.max()), season_length, n_seasons=1)
        values[own] = paths[which, ahead - 1]
    return values
