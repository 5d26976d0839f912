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
_QUANTILE = re.compile(r"(?P<model>.+)-(?P<kind>lo|hi|q)-(?P<percent>\d+(?:\.\d+)?)")
_OTHER_END = {"lo": "hi", "hi": "lo"}


@dataclass(frozen=True)
class QuantileName:
    """The name of a column in parts: ``M-lo-80`` is an end of an interval, ``M-q-10`` a quantile.

    `kind` is "lo", "hi" or "q"; `percent` is the level of the interval or the quantile, as text.
    """

    model: str
    kind: str
    percent: str

    @classmethod
    def parse(cls, column: Any) -> QuantileName | None:
        """Take a name apart; None for names of other columns."""
        match = _QUANTILE.fullmatch(column) if isinstance(column, str) else None
        return None if match is None else cls(match["model"], match["kind"], match["percent"])

    @property
    def probability(self) -> float:
        """The share of values that should lie below: 0.1 for the lower end of 80 %.

        ValueError is raised if it is not between 0 and 1.
        """
        share = float(self.percent) / 100.0
        share = {"lo": 0.5 - 0.5 * share, "hi": 0.5 + 0.5 * share, "q": share}[self.kind]
        if not 0.0 < share < 1.0:
            raise ValueError(
                f"Column '{self.model}-{self.kind}-{self.percent}': levels and quantiles must lie "
                "between 0 and 100 %; rename or drop it."
            )
        return round(share, 12)  # the same number for lo-80 and q-10


@dataclass(frozen=True)
class ModelColumns:
    """The columns of one model: forecasts, levels of intervals and quantiles, both in percent."""

    name: str
    levels: tuple[str, ...] = ()
    quantiles: tuple[str, ...] = ()

    def ends(self, level: str) -> tuple[str, str]:
        """Return the columns of the lower and the upper end of an interval."""
        return f"{self.name}-lo-{level}", f"{self.name}-hi-{level}"

    def by_probability(self) -> dict[float, str]:
        """Return the columns of quantiles by their probabilities; the forecast is the median."""
        ends = (end for level in self.levels for end in self.ends(level))
        return sort_quantiles([*ends, *(f"{self.name}-q-{q}" for q in self.quantiles)], self.name)

    def percents(self) -> list[float]:
        """Return all quantiles in percent, those of intervals and the forecast's 50 included."""
        return [round(100.0 * probability, 10) for probability in self.by_probability()]


def sort_quantiles(columns: Iterable[str], point: str | None) -> dict[float, str]:
    """Return columns of quantiles by their probabilities, ascending.

    Of several columns of one quantile ``q`` comes before ends of intervals. The column `point` is
    taken for the median where there is no other.
    """
    names = [(name, QuantileName.parse(name)) for name in columns]
    parsed = [(name, parts) for name, parts in names if parts is not None]
    parsed.sort(key=lambda pair: pair[1].kind == "q")  # the last one counts
    found = {} if point is None else {0.5: point}
    found |= {parts.probability: name for name, parts in parsed}
    return dict(sorted(found.items()))


def find_models(columns: Iterable[str], what: str) -> list[ModelColumns]:
    """Tell models, their intervals and quantiles from the names of columns.

    ValueError is raised if an interval lacks its other end or its model, or if there is no model.
    """
    names = list(columns)
    levels: dict[str, set[str]] = {}
    quantiles: dict[str, set[str]] = {}
    sort_quantiles(names, None)  # all lie between 0 and 100 %
    for name in names:
        parts = QuantileName.parse(name)
        if parts is None:
            levels.setdefault(name, set())
            continue
        needed = [parts.model]
        if parts.kind in _OTHER_END:
            needed = [f"{parts.model}-{_OTHER_END[parts.kind]}-{parts.percent}", parts.model]
        for other in needed:
            if other not in names:
                raise ValueError(
                    f"Column {name!r} of {what} needs a column {other!r}; add it, or drop {name!r}."
                )
        levels.setdefault(parts.model, set())
        (quantiles if parts.kind == "q" else levels).setdefault(parts.model, set()).add(
            parts.percent
        )
    if not levels:
        raise ValueError(f"{what} has no column with forecasts; add one for each model.")
    return [
        ModelColumns(name, _ascending(found), _ascending(quantiles.get(name, ())))
        for name, found in levels.items()
    ]


def _ascending(percents: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(percents, key=float))


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

    ``SeasonalNaive`` repeats the last season, or the last value where less than a season was seen;
    a season of one step leaves it out. ``LastValue`` repeats the last value.
    """
    seasons = ({BASELINE: season_length} if season_length > 1 else {}) | {LAST: 1}
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
