"""From rows in any order to values on regular grids, with a list of what did not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.frequency import DAY, Frequency
from rbfdiffnet.panel.grid import Grid
from rbfdiffnet.support.arrays import Array, Arrays, Ints, Mask
from rbfdiffnet.support.notes import MISSING_DATE, MISSING_VALUE, OFF_GRID, REPEATED_DATE, Note
from rbfdiffnet.support.stability import LARGEST

_FREE_STEPS, _STEPS_PER_ROW = 1000, 50  # a grid longer than both limits is cut
_FREE_LONG_STEPS, _SPANS, _USUAL_GAPS = 100, 2, 20  # strays lie beyond longer gaps
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


def count_leading(y: Array, offsets: Ints) -> Ints:
    """Count the steps of each series before its first value: all of a series without values."""
    known = np.flatnonzero(~np.isnan(y))
    first = np.append(known, y.size)[np.searchsorted(known, offsets[:-1])]
    return np.asarray(np.minimum(first, offsets[1:]) - offsets[:-1])


def longest_grid(n_rows: Ints) -> Ints:
    """Limit the steps of grids, max(1000, 50 rows): a stray date must not exhaust the memory."""
    return np.maximum(_FREE_STEPS, _STEPS_PER_ROW * n_rows)


def longest_pause(lengths: Ints) -> Ints:
    """Limit the steps from the end of a series to newer rows, max(1000, twice its length)."""
    return np.maximum(_FREE_STEPS, _SPANS * lengths)


def regularize(
    grid: Grid,
    times: Ints,
    codes: Ints,
    values: Mapping[str, npt.NDArray[Any]],
    target: str,
    usual: tuple[int, int],
) -> tuple[ProblemList, Arrays, Ints]:
    """Bring rows to the grids of their series.

    `times`, `codes` (numbers of series) and the columns in `values` have shape (n_rows,);
    `usual` has the first and the last time of the panel that are no strays. Where a
    date has several rows, the mean of the target and the last known value of other columns are
    taken. Returned are the problems, with the grids and offsets that are left, the columns on the
    grids, one series after the other, each of shape (offsets[-1],), and how many rows of each
    series are off them.
    """
    steps, on_grid, near = _locate_rows(grid, times, codes)
    usual_rows = on_grid & (times >= usual[0]) & (times <= usual[1])
    first, last = _find_ranges(steps, codes, on_grid, usual_rows, len(grid.origin))
    early, late = (on_grid & far for far in (steps < first[codes], steps > last[codes]))
    kept = on_grid & ~early & ~late
    offsets = np.append(0, np.cumsum(last + 1 - first))
    total = int(offsets[-1])
    places = (offsets[codes] + steps - first[codes])[kept]

    found = ProblemList(grid.shift(first), offsets)
    for what, some, action in (
        (OFF_GRID, ~on_grid, "ignored"),
        ("much too early date", early, "ignored"),
        ("much too late date", late, "ignored"),
        ("hour-shifted date", near & kept, "counted as on the grid"),
    ):
        found.add_rows(what, action, codes[some], times[some])
    rows = {name: column[kept] for name, column in values.items()}
    empty = places[np.isnan(rows[target])]
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
    found.add_places(REPEATED_DATE, action, np.flatnonzero(counts > 1))
    found.add_places(MISSING_DATE, "treated as missing", np.flatnonzero(counts == 0))

    columns = {name: place_values(column, places, total) for name, column in rows.items()}
    if counts.max(initial=0) > 1:
        columns[target] = _average_target(rows, target, places, total)
    if empty.size:
        begin = np.repeat(offsets[:-1] + count_leading(columns[target], offsets), np.diff(offsets))
        empty = empty[np.isnan(columns[target][empty]) & (empty > begin[empty])]
        found.add_places(MISSING_VALUE, "treated as missing", np.unique(empty))
    return found, columns, np.bincount(codes[~on_grid], minlength=len(grid.origin))


def _locate_rows(grid: Grid, times: Ints, codes: Ints) -> tuple[Ints, Mask, Mask]:
    """Return the steps of rows, which are on their grids, and which of these are an hour off.

    A row is on its grid by an hour only where the grid has no row of its own.
    """
    steps, on_grid = grid.locate_exactly(times, codes)
    near, off = np.zeros_like(on_grid), np.flatnonzero(~on_grid)
    steps[off], near[off] = grid.locate(times[off], codes[off])
    if near.any():
        low = steps.min()
        places = codes * (steps.max() - low + 1) + steps - low
        near[near] = ~np.isin(places[near], places[on_grid])
    return steps, on_grid | near, near


def _find_ranges(
    steps: Ints, codes: Ints, on_grid: Mask, usual: Mask, n_series: int
) -> tuple[Ints, Ints]:
    """Return the first and the last step of each series that are no strays, (n_series,) each.

    Rows outside the usual times of the panel go if their series has others. Of what is left the
    last `longest_grid` steps are taken.
    """
    has_usual = np.bincount(codes[usual], minlength=n_series) > 0
    rows = usual | (on_grid & ~has_usual[codes])
    steps, codes = steps[rows], codes[rows]
    last = np.full(n_series, -1)
    np.maximum.at(last, codes, steps)
    limit = longest_grid(np.bincount(codes, minlength=n_series))
    near = steps > (last - limit)[codes]
    first = last + 1
    np.minimum.at(first, codes[near], steps[near])
    return first, last


def usual_range(times: Ints, step: float) -> tuple[int, int]:
    """Return the first and the last time of a panel that are no strays.

    `times` are its different times, ascending. Strays are a tenth of them at most, or one, beyond a
    gap of more than 1000 steps (100 of weeks and longer ones), twice the span of the times without
    the first and the last tenth, and 20 times the median gap. Of three times none is a stray.
    """
    n, few = len(times), max(1, len(times) // 10)
    if n <= 3:
        return int(times.min(initial=0)), int(times.max(initial=0))
    gaps = np.diff(times.astype(np.float64))
    free = _FREE_STEPS if step < 7 * DAY else _FREE_LONG_STEPS
    span = gaps[few : n - 1 - few].sum()
    is_long = gaps > max(free * step, _SPANS * span, _USUAL_GAPS * np.median(gaps))
    first = np.flatnonzero(is_long[:few]).max(initial=-1) + 1
    last = np.flatnonzero(is_long[n - 1 - few :]).min(initial=few) + n - 1 - few
    return int(times[first]), int(times[last])


def regularize_in_chunks(
    frequency: Frequency,
    zone: str | None,
    times: Ints,
    codes: Ints,
    n_series: int,
    values: Mapping[str, npt.NDArray[Any]],
    target: str,
) -> tuple[Grid, Ints, Arrays, list[Note], Ints]:
    """Make grids and bring rows to them, some series after the others, which saves memory.

    The arguments are those of `regularize`. Returned are the grid, the offsets, the columns on the
    grids, the problems, and the number of rows of each series off its grid.
    """
    import pandas as pd

    problems: list[Note] = []
    grids, lengths, chunks, n_off = [], [], [], []
    usual = usual_range(np.sort(pd.unique(times)), Grid(frequency, times[:1], times[:0], zone).step)
    for series, rows in split_rows(codes, n_series):
        own, at = codes[rows] - series.start, times[rows]
        grid = Grid.from_times(frequency, at, own, series.stop - series.start, zone)
        some = {name: column[rows] for name, column in values.items()}
        found, arrays, off = regularize(grid, at, own, some, target, usual)
        n_off.append(off)
        problems += [replace(p, series=p.series + series.start) for p in found.problems()]
        grids.append(found.grid)
        lengths.append(np.diff(found.offsets))
        chunks.append(arrays)
    offsets = np.append(0, np.cumsum(np.concatenate(lengths)))
    flat = {name: np.concatenate([arrays.pop(name) for arrays in chunks]) for name in values}
    return reduce(Grid.concatenate, grids), offsets, flat, problems, np.concatenate(n_off)


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
