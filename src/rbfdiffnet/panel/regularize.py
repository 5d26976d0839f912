"""From rows in any order to values on regular grids, with an account of what did not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.frequency import DAY, Frequency
from rbfdiffnet.panel.grid import Grid, to_wall
from rbfdiffnet.support.stability import LARGEST

__all__ = [
    "Problem",
    "Report",
    "labels",
    "longest",
    "place",
    "regularize",
    "regularize_in_pieces",
    "row_pieces",
    "spans",
]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# A grid is cut where it is longer than both of these: steps, and steps for each row.
_FREE_STEPS, _STEPS_A_ROW = 1000, 50
_ROWS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Problem:
    """Something odd about a series, and what was done about it.

    Attributes
    ----------
    series : int
        Index of the series in its panel.
    problem, action : str
        In words.

    Examples
    --------
    >>> from rbfdiffnet.panel.panel import Problem
    >>> Problem(0, "2 missing dates, first 2024-05-01", "treated as missing").action
    'treated as missing'
    """

    series: int
    problem: str
    action: str


@dataclass(frozen=True)
class Report:
    """Collects problems: how many of a kind a series has, and the date of the first.

    Attributes
    ----------
    grid : Grid
    offsets : ndarray of shape (n_series + 1,)
        Where the series begin in the flat arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.panel.frequency import Frequency
    >>> from rbfdiffnet.panel.grid import Grid
    >>> from rbfdiffnet.panel.regularize import Report
    >>> grid = Grid(Frequency.parse(1), origin=np.array([10, 20]), day=np.zeros(2, dtype=np.int64))
    >>> report = Report(grid, np.array([0, 5, 9]))
    >>> report.places("missing date", "treated as missing", np.array([6, 7]))
    >>> report.problems()
    (Problem(series=1, problem='2 missing dates, first 21', action='treated as missing'),)
    """

    grid: Grid
    offsets: Ints
    _found: list[Problem] = field(default_factory=list)

    def places(self, what: str, action: str, places: Ints) -> None:
        """Report places in the flat arrays, in ascending order."""
        owners = np.searchsorted(self.offsets, places, side="right") - 1
        series, first, counts = np.unique(owners, return_index=True, return_counts=True)
        times = self.grid.times(series, places[first] - self.offsets[series])
        self._add(what, action, series, counts, times)

    def rows(self, what: str, action: str, codes: Ints, times: Ints) -> None:
        """Report rows of the frame by their series and time, in any order."""
        order = np.lexsort((times, codes))
        series, first, counts = np.unique(codes[order], return_index=True, return_counts=True)
        self._add(what, action, series, counts, times[order][first])

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems, series by series."""
        return tuple(sorted(self._found, key=lambda problem: problem.series))

    def _add(self, what: str, action: str, series: Ints, counts: Ints, first: Ints) -> None:
        dates = labels(first, self.grid)
        for i, count, date in zip(series.tolist(), counts.tolist(), dates, strict=True):
            plural = "" if count == 1 else "s"
            self._found.append(Problem(i, f"{count} {what}{plural}, first {date}", action))


def labels(times: Ints, grid: Grid) -> list[str]:
    """Return times in words, no longer than they need to be.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.panel.frequency import Frequency
    >>> from rbfdiffnet.panel.grid import Grid
    >>> from rbfdiffnet.panel.regularize import labels
    >>> nothing = np.zeros(0, dtype=np.int64)
    >>> times = np.array(["2024-05-01", "2024-05-01T13:30"], dtype="M8[ns]").view(np.int64)
    >>> labels(times, Grid(Frequency.parse("30min"), nothing, nothing))
    ['2024-05-01 00:00', '2024-05-01 13:30']
    """
    if grid.frequency.kind == "integer":
        return [str(time) for time in times.tolist()]
    wall = to_wall(times, grid.zone)
    sizes = (("D", DAY), ("m", DAY // 1440), ("s", DAY // 86400), ("ns", 1))
    unit = next(unit for unit, size in sizes if not np.any(wall % size))
    return [str(date).replace("T", " ") for date in wall.view("M8[ns]").astype(f"M8[{unit}]")]


def place(column: npt.NDArray[Any], places: Ints, length: int) -> npt.NDArray[Any]:
    """Put known values at places of a longer column; the last one where a place is repeated.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.panel.regularize import place
    >>> place(np.array([1.0, 2.0, np.nan]), np.array([2, 0, 2]), 3)
    array([ 2., nan,  1.])
    """
    import pandas as pd

    known = pd.notna(column)
    longer = np.full(length, None if column.dtype.kind == "O" else np.nan, dtype=column.dtype)
    longer[places[known]] = column[known]
    return longer


def longest(n_rows: Ints) -> Ints:
    r"""Return how long grids of so many rows may be; a stray date must not exhaust memory.

    .. math:: \max(1000, 50 n)

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.panel.regularize import longest
    >>> longest(np.array([3, 100]))
    array([1000, 5000])
    """
    return np.maximum(_FREE_STEPS, _STEPS_A_ROW * n_rows)


def regularize(
    grid: Grid,
    times: Ints,
    codes: Ints,
    values: Mapping[str, npt.NDArray[Any]],
    target: str,
) -> tuple[Report, dict[str, npt.NDArray[Any]]]:
    """Bring rows to the grids of their series.

    Parameters
    ----------
    grid : Grid
        Its series start at their first date.
    times, codes : ndarray of shape (n_rows,)
        Time and series of each row.
    values : mapping of str to ndarray of shape (n_rows,)
        Columns of floats or text.
    target : str
        The column of which the mean is taken where a date has several rows. Of others it is the
        last known value.

    Returns
    -------
    report : Report
        Problems found, with the grids and offsets of what is left.
    columns : dict of str to ndarray of shape (offsets[-1],)
        The columns on the grids, one series after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.panel.frequency import Frequency
    >>> from rbfdiffnet.panel.grid import Grid
    >>> from rbfdiffnet.panel.regularize import regularize
    >>> times, codes = np.array([3, 1, 3]), np.zeros(3, dtype=np.int64)
    >>> grid = Grid.from_times(Frequency.parse(1), times, codes, n_series=1)
    >>> _, columns = regularize(grid, times, codes, {"y": np.array([4.0, 1.0, 6.0])}, "y")
    >>> columns["y"]
    array([ 1., nan,  5.])
    """
    n_series = len(grid.origin)
    steps, on_grid = grid.locate(times, codes)
    last = np.full(n_series, -1)
    np.maximum.at(last, codes[on_grid], steps[on_grid])
    n_rows = np.bincount(codes[on_grid], minlength=n_series)
    kept = on_grid & (steps > (last - longest(n_rows))[codes])
    first = last + 1
    np.minimum.at(first, codes[kept], steps[kept])
    offsets = np.append(0, np.cumsum(last + 1 - first))
    total = int(offsets[-1])
    places = (offsets[codes] + steps - first[codes])[kept]

    report = Report(grid.moved(first), offsets)
    stray = on_grid & ~kept
    report.rows("off-grid date", "ignored", codes[~on_grid], times[~on_grid])
    report.rows("much too early date", "ignored", codes[stray], times[stray])
    rows = {name: column[kept] for name, column in values.items()}
    for name, column in rows.items():
        if column.dtype.kind == "f" and np.isinf(column).any():
            infinite = np.unique(places[np.isinf(column)])
            report.places(f"infinite {name!r} value", "treated as missing", infinite)
            column[np.isinf(column)] = np.nan
    if target in rows and (huge := np.abs(rows[target]) > LARGEST).any():
        report.places(f"huge {target!r} value", "treated as missing", np.unique(places[huge]))
        rows[target][huge] = np.nan
    counts = np.bincount(places, minlength=total)
    action = "identical rows counted once, others averaged"
    report.places("repeated date", action, np.flatnonzero(counts > 1))
    report.places("missing date", "treated as missing", np.flatnonzero(counts == 0))

    columns = {name: place(column, places, total) for name, column in rows.items()}
    if target in rows and counts.max(initial=0) > 1:
        columns[target] = _mean(rows, target, places, total)
    return report, columns


def regularize_in_pieces(
    frequency: Frequency,
    zone: str | None,
    times: Ints,
    codes: Ints,
    n_series: int,
    values: Mapping[str, npt.NDArray[Any]],
    target: str,
) -> tuple[Grid, Ints, dict[str, npt.NDArray[Any]], list[Problem], int]:
    """Bring the rows of a frame to grids, some series after the others, which saves memory.

    Parameters
    ----------
    frequency : Frequency
    zone : str or None
        Time zone of the times.
    times, codes, values, target
        As for `regularize`.
    n_series : int

    Returns
    -------
    grid : Grid
    offsets : ndarray of shape (n_series + 1,)
    columns : dict of str to ndarray of shape (offsets[-1],)
    problems : list of Problem
    n_off : int
        Number of rows off the grids.
    """
    problems: list[Problem] = []
    grids, lengths, parts, n_off = [], [], [], 0
    for series, rows in row_pieces(codes, n_series):
        own, at = codes[rows] - series.start, times[rows]
        grid = Grid.from_times(frequency, at, own, series.stop - series.start, zone)
        n_off += int((~grid.locate(at, own)[1]).sum())
        some = {name: column[rows] for name, column in values.items()}
        report, arrays = regularize(grid, at, own, some, target)
        problems += [replace(p, series=p.series + series.start) for p in report.problems()]
        grids.append(report.grid)
        lengths.append(np.diff(report.offsets))
        parts.append(arrays)
    offsets = np.append(0, np.cumsum(np.concatenate(lengths)))
    flat = {name: np.concatenate([arrays.pop(name) for arrays in parts]) for name in values}
    return reduce(Grid.joined, grids), offsets, flat, problems, n_off


def row_pieces(codes: Ints, n_series: int) -> Iterator[tuple[slice, slice | Ints]]:
    """Series that are brought to their grids together, and their rows.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,)
        Series of each row.
    n_series : int

    Yields
    ------
    series : slice
    rows : slice or ndarray of int

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.panel.regularize import row_pieces
    >>> list(row_pieces(np.array([0, 1, 0]), 2))
    [(slice(0, 2, None), slice(0, 3, None))]
    """
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


def _mean(rows: Mapping[str, npt.NDArray[Any]], target: str, places: Ints, total: int) -> Array:
    """Return the mean target of the rows at each place; identical rows count once."""
    import pandas as pd

    table = pd.DataFrame(dict(enumerate([places, *rows.values()])))
    y = rows[target]
    used = np.flatnonzero(~table.duplicated().to_numpy() & np.isfinite(y))
    # Sorted, so that the order of the rows does not matter to the last bit.
    used = used[np.lexsort((y[used], places[used]))]
    counts = np.bincount(places[used], minlength=total)
    mean = np.bincount(places[used], y[used] / counts[places[used]], minlength=total)
    return np.where(counts > 0, mean, np.nan)


def spans(starts: Ints, lengths: Ints) -> Ints:
    """Return the whole numbers of stretches, one after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.panel.regularize import spans
    >>> spans(np.array([2, 7]), np.array([3, 2]))
    array([2, 3, 4, 7, 8])
    """
    ends = np.cumsum(lengths)
    return np.repeat(starts - ends + lengths, lengths) + np.arange(lengths.sum())
