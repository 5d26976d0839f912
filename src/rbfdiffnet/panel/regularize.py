"""From rows in any order to values on regular grids, with a list of what did not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.panel.grid import Grid
from rbfdiffnet.support.arrays import Array, Arrays, Ints
from rbfdiffnet.support.notes import Note
from rbfdiffnet.support.stability import LARGEST

_FREE_STEPS, _STEPS_PER_ROW = 1000, 50  # a grid longer than both limits is cut
_ROWS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class ProblemList:
    """Collects problems: how many of a kind a series has, and the date of the first.

    Series `i` lies at ``offsets[i]:offsets[i + 1]`` of the flat arrays.
    """

    grid: Grid
    offsets: Ints
    _found: list[Note] = field(default_factory=list)

    def add_places(self, what: str, action: str, places: Ints) -> None:
        """Add places in the flat arrays, given in ascending order."""
        owners = np.searchsorted(self.offsets, places, side="right") - 1
        series, first, counts = np.unique(owners, return_index=True, return_counts=True)
        times = self.grid.times(series, places[first] - self.offsets[series])
        self._add(what, action, series, counts, times)

    def add_rows(self, what: str, action: str, codes: Ints, times: Ints) -> None:
        """Add rows of the frame by their series and time, given in any order."""
        order = np.lexsort((times, codes))
        series, first, counts = np.unique(codes[order], return_index=True, return_counts=True)
        self._add(what, action, series, counts, times[order][first])

    def problems(self) -> tuple[Note, ...]:
        """Return the problems, series by series."""
        return tuple(sorted(self._found, key=lambda problem: problem.series))

    def _add(self, what: str, action: str, series: Ints, counts: Ints, first: Ints) -> None:
        dates = self.grid.format(first)
        for i, count, date in zip(series.tolist(), counts.tolist(), dates, strict=True):
            self._found.append(Note(i, what, action, count, date))


def place_values(column: npt.NDArray[Any], places: Ints, length: int) -> npt.NDArray[Any]:
    """Put known values at places of a longer column; where a place is repeated the last counts."""
    import pandas as pd

    known = pd.notna(column)
    longer = np.full(length, None if column.dtype.kind == "O" else np.nan, dtype=column.dtype)
    longer[places[known]] = column[known]
    return longer


def longest_grid(n_rows: Ints) -> Ints:
    """Limit the steps of grids, max(1000, 50 rows): a stray date must not exhaust the memory."""
    return np.maximum(_FREE_STEPS, _STEPS_PER_ROW * n_rows)


def regularize(
    grid: Grid,
    times: Ints,
    codes: Ints,
    values: Mapping[str, npt.NDArray[Any]],
    target: str,
) -> tuple[ProblemList, Arrays, int]:
    """Bring rows to the grids of their series.

    `times`, `codes` (numbers of series) and the columns in `values` have shape (n_rows,). Where a
    date has several rows, the mean of the target and the last known value of other columns are
    taken. Returned are the problems, with the grids and offsets that are left, the columns on the
    grids, one series after the other, each of shape (offsets[-1],), and how many rows are off them.
    """
    n_series = len(grid.origin)
    steps, on_grid = grid.locate(times, codes)
    last = np.full(n_series, -1)
    np.maximum.at(last, codes[on_grid], steps[on_grid])
    n_rows = np.bincount(codes[on_grid], minlength=n_series)
    kept = on_grid & (steps > (last - longest_grid(n_rows))[codes])
    first = last + 1
    np.minimum.at(first, codes[kept], steps[kept])
    offsets = np.append(0, np.cumsum(last + 1 - first))
    total = int(offsets[-1])
    places = (offsets[codes] + steps - first[codes])[kept]

    found = ProblemList(grid.shift(first), offsets)
    stray = on_grid & ~kept
    found.add_rows("off-grid date", "ignored", codes[~on_grid], times[~on_grid])
    found.add_rows("much too early date", "ignored", codes[stray], times[stray])
    rows = {name: column[kept] for name, column in values.items()}
    for name, column in rows.items():
        if column.dtype.kind == "f" and np.isinf(column).any():
            infinite = np.unique(places[np.isinf(column)])
            found.add_places(f"infinite {name!r} value", "treated as missing", infinite)
            column[np.isinf(column)] = np.nan
    if (huge := np.abs(rows[target]) > LARGEST).any():
        found.add_places(f"huge {target!r} value", "treated as missing", np.unique(places[huge]))
        rows[target][huge] = np.nan
    counts = np.bincount(places, minlength=total)
    action = "identical rows counted once, others averaged"
    found.add_places("repeated date", action, np.flatnonzero(counts > 1))
    found.add_places("missing date", "treated as missing", np.flatnonzero(counts == 0))

    columns = {name: place_values(column, places, total) for name, column in rows.items()}
    if counts.max(initial=0) > 1:
        columns[target] = _average_target(rows, target, places, total)
    return found, columns, int((~on_grid).sum())


def regularize_in_chunks(
    frequency: Frequency,
    zone: str | None,
    times: Ints,
    codes: Ints,
    n_series: int,
    values: Mapping[str, npt.NDArray[Any]],
    target: str,
) -> tuple[Grid, Ints, Arrays, list[Note], int]:
    """Make grids and bring rows to them, some series after the others, which saves memory.

    The arguments are those of `regularize`. Returned are the grid, the offsets, the columns on the
    grids, the problems, and the number of rows off the grids.
    """
    problems: list[Note] = []
    grids, lengths, chunks, n_off = [], [], [], 0
    for series, rows in split_rows(codes, n_series):
        own, at = codes[rows] - series.start, times[rows]
        grid = Grid.from_times(frequency, at, own, series.stop - series.start, zone)
        some = {name: column[rows] for name, column in values.items()}
        found, arrays, off = regularize(grid, at, own, some, target)
        n_off += off
        problems += [replace(p, series=p.series + series.start) for p in found.problems()]
        grids.append(found.grid)
        lengths.append(np.diff(found.offsets))
        chunks.append(arrays)
    offsets = np.append(0, np.cumsum(np.concatenate(lengths)))
    flat = {name: np.concatenate([arrays.pop(name) for arrays in chunks]) for name in values}
    return reduce(Grid.concatenate, grids), offsets, flat, problems, n_off


def split_rows(codes: Ints, n_series: int) -> Iterator[tuple[slice, slice | Ints]]:
    """Yield series that are brought to their grids together, and their rows."""
    if len(codes) <= _ROWS_AT_ONCE:
        yield slice(0, n_series), slice(0, len(codes))
        return
    counts = np.bincount(codes, minlength=n_series)
    number = (np.cumsum(counts) - counts) // _ROWS_AT_ONCE
    edges = np.append(np.flatnonzero(np.diff(number, prepend=-1)), n_series).tolist()
    in_order = bool((codes[1:] >= codes[:-1]).all())
    for first, last in pairwise(edges):
        if in_order:
            start, stop = np.searchsorted(codes, [first, last]).tolist()
            yield slice(first, last), slice(start, stop)
        else:
            yield slice(first, last), np.flatnonzero((codes >= first) & (codes < last))


def _average_target(
    rows: Mapping[str, npt.NDArray[Any]], target: str, places: Ints, total: int
) -> Array:
    """Average the target of the rows at each place; identical rows count once."""
    import pandas as pd

    table = pd.DataFrame(dict(enumerate([places, *rows.values()])))
    y = rows[target]
    used = np.flatnonzero(~table.duplicated().to_numpy() & np.isfinite(y))
    # Sorted, so that the order of the rows does not matter to the last bit.
    used = used[np.lexsort((y[used], places[used]))]
    counts = np.bincount(places[used], minlength=total)
    mean = np.bincount(places[used], y[used] / counts[places[used]], minlength=total)
    return np.where(counts > 0, mean, np.nan)


def concatenate_ranges(starts: Ints, lengths: Ints) -> Ints:
    """Return the whole numbers of ranges, given by starts and lengths, one after the other."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - ends + lengths, lengths) + np.arange(lengths.sum())
