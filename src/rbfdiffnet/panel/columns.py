"""Which columns of a frame say which series, when and how much, and whether they can be used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.column_types import untyped_times
from rbfdiffnet.panel.frames import Column, group_rows, read_values, time_zone
from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.panel.grid import Grid, to_wall
from rbfdiffnet.panel.regularize import labels

__all__ = ["Columns", "check_frequency", "misfit", "read_keys", "read_target"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Columns:
    """Names of the columns that say which series, when, and how much.

    Examples
    --------
    >>> from rbfdiffnet.panel.panel import Columns
    >>> Columns(target="sales")
    Columns(id='unique_id', time='ds', target='sales')
    """

    id: str = "unique_id"
    time: str = "ds"
    target: str = "y"


def read_keys(
    frame: nw.DataFrame[Any], columns: Columns, frequency: Frequency | None
) -> tuple[Ints, Column, Column]:
    """Return the series of each row, the ids of the series, and the column of times.

    Raises
    ------
    ValueError
        If an id or a time is missing.

    Examples
    --------
    >>> import narwhals as nw
    >>> import pandas as pd
    >>> from rbfdiffnet.panel.columns import Columns, read_keys
    >>> df = pd.DataFrame({"unique_id": ["b", "a", "b"], "ds": [1, 2, 3]})
    >>> codes, ids, time = read_keys(nw.from_native(df), Columns(), None)
    >>> codes.tolist(), ids.to_list(), time.to_list()
    ([0, 1, 0], ['b', 'a'], [1, 2, 3])
    """
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
        time = untyped_times(time, integer=integer)
    return codes, ids, time


def check_frequency(
    frequency: Frequency | None, times: Ints, codes: Ints, time: Column
) -> Frequency:
    """Return the frequency, told from the times where it is None.

    Raises
    ------
    ValueError
        If it cannot be told, or if it counts dates where the times are whole numbers or vice
        versa.

    Examples
    --------
    >>> import narwhals as nw
    >>> import numpy as np
    >>> import pandas as pd
    >>> from rbfdiffnet.panel.columns import check_frequency
    >>> time = nw.from_native(pd.Series([2, 4, 6], name="ds"), series_only=True)
    >>> check_frequency(None, time.to_numpy(), np.zeros(3, dtype=np.int64), time).n
    2
    """
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


def read_target(column: Column) -> npt.NDArray[np.float64]:
    """Return the target as floats: NaN where it is missing.

    Raises
    ------
    TypeError
        If it holds anything but numbers.

    Examples
    --------
    >>> import narwhals as nw
    >>> import pandas as pd
    >>> from rbfdiffnet.panel.columns import read_target
    >>> read_target(nw.from_native(pd.Series([1, None], dtype="Int64"), series_only=True))
    array([ 1., nan])
    """
    if column.is_null().all():
        return np.full(len(column), np.nan)
    values = None if column.dtype == nw.Boolean else read_values(column)
    if values is None or values.dtype.kind == "O":
        raise TypeError(
            f"Column {column.name!r} must hold numbers, not {column.to_native().dtype}; convert "
            "it first."
        )
    return values


def misfit(grid: Grid, times: Ints, codes: Ints, ids: Column) -> ValueError:
    """Return the error that most times are off the grids of their series.

    Examples
    --------
    >>> import narwhals as nw
    >>> import numpy as np
    >>> import pandas as pd
    >>> from rbfdiffnet.panel.columns import misfit
    >>> from rbfdiffnet.panel.frequency import Frequency
    >>> from rbfdiffnet.panel.grid import Grid
    >>> ids = nw.from_native(pd.Series(["a"]), series_only=True)
    >>> times, codes = np.arange(4), np.zeros(4, dtype=np.int64)
    >>> misfit(Grid.from_times(Frequency.parse(3), times, codes, 1), times, codes, ids)
    ValueError("freq='3' does not fit: 2 of 4 dates are not a whole number of steps from ...
    """
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
        f"{labels(times[[row]], grid)[0]} of series {str(ids[int(codes[row])])!r}; {remedy}."
    )
