"""The columns of ids, times and targets: their names, how they are read, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.frames import (
    FrameColumn,
    group_rows,
    make_empty_times,
    read_values,
    time_zone,
)
from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.panel.grid import Grid, to_wall
from rbfdiffnet.panel.regularize import format_times

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ColumnNames:
    """Names of the columns that say which series, when, and how much."""

    id: str = "unique_id"
    time: str = "ds"
    target: str = "y"


def read_keys(
    frame: nw.DataFrame[Any], columns: ColumnNames, frequency: Frequency | None
) -> tuple[Ints, FrameColumn, FrameColumn]:
    """Return the number of each row's series, the ids of the series, and the column of times."""
    ids, time = frame[columns.id], frame[columns.time]
    null = np.flatnonzero(ids.is_null().to_numpy())
    if len(null):
        raise ValueError(
            f"Column {columns.id!r} has no value in row {null[0]}; give each row a series, or "
            "drop it."
        )
    codes, first = group_rows(ids)
    ids = nw.maybe_reset_index(ids[first])
    null = np.flatnonzero(time.is_null().to_numpy())
    if len(null):
        raise ValueError(
            f"Series {str(ids[int(codes[null[0]])])!r}: column {columns.time!r} has no value in "
            f"row {null[0]}; give each row a date, or drop it."
        )
    typed = time.dtype.is_integer() or time.dtype in (nw.Date, nw.Datetime)
    if len(frame) == 0 and not typed:
        integer = frequency is not None and frequency.kind == "integer"
        time = make_empty_times(time, integer=integer)
    return codes, ids, time


def check_frequency(
    frequency: Frequency | None, times: Ints, codes: Ints, time: FrameColumn
) -> Frequency:
    """Return the frequency, inferred from the times if it is None, if it suits the times."""
    integer = time.dtype.is_integer()
    if frequency is None:
        frequency = _infer(times, codes, time_zone(time), integer=integer)
        if frequency is None:
            raise ValueError(f"The frequency cannot be told from column {time.name!r}; pass freq.")
    if integer and frequency.kind != "integer":
        raise ValueError(
            f"Column {time.name!r} holds whole numbers, but freq={frequency.alias!r} counts "
            "dates; pass freq=1, or convert the column to dates."
        )
    if not integer and frequency.kind == "integer":
        raise ValueError(
            f"Column {time.name!r} holds dates, but freq={frequency.n} counts whole numbers; "
            "pass an alias such as 'D' or 'MS'."
        )
    return frequency


def _infer(times: Ints, codes: Ints, zone: str | None, *, integer: bool) -> Frequency | None:
    return Frequency.infer(times if integer else to_wall(times, zone).view("M8[ns]"), codes)


def read_target(column: FrameColumn) -> npt.NDArray[np.float64]:
    """Return the target as floats, NaN where it is missing."""
    if column.is_null().all():
        return np.full(len(column), np.nan)
    values = None if column.dtype == nw.Boolean else read_values(column)
    if values is None or values.dtype.kind == "O":
        raise TypeError(
            f"Column {column.name!r} must hold numbers, not {column.to_native().dtype}; convert "
            "it first."
        )
    return values


def off_grid_error(grid: Grid, times: Ints, codes: Ints, ids: FrameColumn) -> ValueError:
    """Make the error that most times are off the grids of their series."""
    _, on_grid = grid.locate(times, codes)
    off = np.flatnonzero(~on_grid)
    row = off[np.lexsort((times[off], codes[off]))[0]]
    frequency = grid.frequency
    likely = _infer(times, codes, grid.zone, integer=frequency.kind == "integer")
    if likely is None:
        remedy = "pass another freq, or correct the dates"
    elif likely == frequency:
        remedy = "many dates are one step apart, but on several grids; correct them"
    else:
        remedy = f"the dates look like freq={likely.alias!r}"
    return ValueError(
        f"freq={frequency.alias!r} does not fit: {len(off)} of {len(times)} dates are not a whole "
        f"number of steps from most others of their series, such as "
        f"{format_times(times[[row]], grid)[0]} of series {str(ids[int(codes[row])])!r}; {remedy}."
    )
