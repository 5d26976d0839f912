"""Long frames as arrays: which series, when, and a column of numbers for each name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.columns import Columns, read_keys
from rbfdiffnet.panel.frames import Column, read_frame, read_times, read_values, time_zone

__all__ = ["Table", "read_table"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Table:
    """Rows of a long frame, series by series and in order of time.

    Attributes
    ----------
    series : ndarray of int of shape (n,)
        Which series each row belongs to.
    times : ndarray of int of shape (n,)
        Whole numbers, or nanoseconds since 1970 in UTC.
    columns : dict of str to ndarray of shape (n,)
        Numbers, NaN where missing or infinite; or text, empty where missing.
    dates : bool
        Whether times are dates.
    zone : str or None
        Time zone of the dates.
    cutoffs : ndarray of int of shape (n,) or None
        The last time known to the forecast, in backtests.
    """

    series: Ints
    times: Ints
    columns: dict[str, npt.NDArray[Any]]
    dates: bool
    zone: str | None
    cutoffs: Ints | None = None

    def taken(self, rows: npt.NDArray[Any]) -> Table:
        """Return some rows, given as a mask or as indices."""
        return Table(
            self.series[rows],
            self.times[rows],
            {name: values[rows] for name, values in self.columns.items()},
            self.dates,
            self.zone,
            None if self.cutoffs is None else self.cutoffs[rows],
        )


def read_table(
    df: Any,
    what: str,
    columns: Columns,
    ids: dict[str, int],
    values: Sequence[str] | None = None,
    *,
    text: Sequence[str] = (),
    grow: bool = False,
) -> Table:
    """Read a long frame.

    Parameters
    ----------
    df : pandas or polars DataFrame
    what : str
        What the frame is, for messages.
    columns : Columns
    ids : dict of str to int
        Number of each series by its id.
    values : sequence of str, optional
        Columns of numbers to read; by default all but id, time and cutoff.
    text : sequence of str, optional
        Columns of text to read.
    grow : bool, default=False
        Number series that are not in ``ids`` too, rather than raise an error.

    Returns
    -------
    Table

    Raises
    ------
    TypeError, ValueError
        If a column is missing or holds something else, or a series is unknown.
    """
    wanted = list(values if values is not None else getattr(df, "columns", ()))
    frame = read_frame(df, [columns.id, columns.time, *wanted, *text])
    if len(frame) == 0:
        raise ValueError(f"{what} has no rows.")
    codes, names, time = read_keys(frame, columns, None)
    times = read_times(time)
    cutoffs = read_times(frame["cutoff"]) if "cutoff" in wanted else None
    texts = [str(name) for name in names.to_list()]
    for name in texts:
        if grow:
            ids.setdefault(name, len(ids))
        elif name not in ids:
            raise ValueError(
                f"{what} has a series {name!r} that history does not; add its history, or drop it."
            )
    series = np.array([ids[name] for name in texts], dtype=np.int64)[codes]

    numbers: dict[str, npt.NDArray[Any]] = {}
    for name in frame.columns:
        if name in text:
            words = ["" if word is None else str(word) for word in frame[name].to_list()]
            numbers[name] = np.array(words, dtype=np.str_)
        elif name not in (columns.id, columns.time, "cutoff"):
            numbers[name] = _read_numbers(frame[name], what)
    table = Table(series, times, numbers, not time.dtype.is_integer(), time_zone(time), cutoffs)
    return table.taken(np.lexsort((times, series) if cutoffs is None else (times, cutoffs, series)))


def _read_numbers(column: Column, what: str) -> Array:
    values = read_values(column)
    if values.dtype != np.float64:
        raise TypeError(
            f"Column {column.name!r} of {what} holds text; convert it to numbers, or drop it."
        )
    return np.where(np.isfinite(values), values, np.nan)
