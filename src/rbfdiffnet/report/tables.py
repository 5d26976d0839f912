"""Long frames as arrays: which series, when, and a column of numbers for each name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.frames import (
    ColumnNames,
    FrameColumn,
    read_frame,
    read_keys,
    read_times,
    read_values,
    time_zone,
)
from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.panel.grid import infer_frequency, to_wall
from rbfdiffnet.support.arrays import Array, Arrays, Ints

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Table:
    """Rows of a long frame, series by series and in order of time.

    ``series`` (n,) says which series each row belongs to. ``times`` (n,) are whole numbers, or, if
    ``dates``, nanoseconds since 1970 in UTC, to be shown in ``zone``. ``columns`` are numbers (n,),
    NaN where missing or infinite, or text, empty where missing. In backtests ``cutoffs`` (n,) are
    the last times known to the forecasts.
    """

    series: Ints
    times: Ints
    columns: Arrays
    dates: bool
    zone: str | None
    cutoffs: Ints | None = None

    def take(self, rows: npt.NDArray[Any]) -> Table:
        """Return some rows, given as a mask or as indices."""
        return replace(
            self,
            series=self.series[rows],
            times=self.times[rows],
            columns={name: values[rows] for name, values in self.columns.items()},
            cutoffs=None if self.cutoffs is None else self.cutoffs[rows],
        )

    def drop(self, column: str) -> Table:
        """Return the table without a column."""
        columns = {name: values for name, values in self.columns.items() if name != column}
        return replace(self, columns=columns)

    def keep(self, columns: Sequence[str]) -> Table:
        """Return the table with some of its columns."""
        return replace(self, columns={name: self.columns[name] for name in columns})

    def rename(self, names: Mapping[str, str]) -> Table:
        """Return the table with other names of some columns."""
        columns = {names.get(name, name): values for name, values in self.columns.items()}
        return replace(self, columns=columns)

    def renumber(self, numbers: Ints) -> Table:
        """Give series new numbers; those of a negative number are left out."""
        kept = self.take(numbers[self.series] >= 0)
        return replace(kept, series=numbers[kept.series])

    def latest(self, most: int) -> Table:
        """Return the latest values of every series, ``most`` of them."""
        ends = np.searchsorted(self.series, self.series, side="right")
        return self.take(ends - np.arange(len(ends)) <= most)

    def displayed(self, times: Ints) -> npt.NDArray[Any]:
        """Return whole numbers as they are, and dates as milliseconds of the clock on the wall."""
        return to_wall(times, self.zone) / 1e6 if self.dates else times

    def key_frame(self, **columns: Any) -> pd.DataFrame:
        """Return a pandas frame of series numbers, times and cutoffs, and of further columns."""
        import pandas as pd

        def dates(times: Any) -> Any:
            if not self.dates:
                return times
            index = pd.DatetimeIndex(times.view("M8[ns]"))
            return index if self.zone is None else index.tz_localize("UTC").tz_convert(self.zone)

        keys = {"unique_id": self.series, "ds": dates(self.times)}
        if self.cutoffs is not None:
            keys["cutoff"] = dates(self.cutoffs)
        return pd.DataFrame({**keys, **columns})


def read_table(
    df: Any,
    what: str,
    columns: ColumnNames,
    ids: dict[str, int],
    values: Sequence[str] | None = None,
    *,
    text: Sequence[str] = (),
    grow: bool = False,
) -> Table:
    """Read a long frame, called ``what`` in messages, whose series are numbered by ``ids``.

    ``values`` are its columns of numbers, by default all but id, time and cutoff, and ``text``
    those of text. With ``grow`` new series get new numbers in ``ids``; otherwise they are an error.
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

    numbers: Arrays = {}
    for name in frame.columns:
        if name in text:
            words = ["" if word is None else str(word) for word in frame[name].to_list()]
            numbers[name] = np.array(words, dtype=np.str_)
        elif name not in (columns.id, columns.time, "cutoff"):
            numbers[name] = _read_numbers(frame[name], what)
    table = Table(series, times, numbers, not time.dtype.is_integer(), time_zone(time), cutoffs)
    return table.take(np.lexsort((times, series) if cutoffs is None else (times, cutoffs, series)))


def find_frequency(tables: Sequence[Table], freq: Any = None) -> Frequency | None:
    """Return the step of time: the given one, or the one most times of all tables agree on."""
    if freq is not None:
        return Frequency.parse(freq)
    times = np.concatenate([table.times for table in tables])
    series = np.concatenate([table.series for table in tables])
    return infer_frequency(times, series, tables[0].zone, integer=not tables[0].dates)


def _read_numbers(column: FrameColumn, what: str) -> Array:
    values = read_values(column)
    if values.dtype != np.float64:
        raise TypeError(
            f"Column {column.name!r} of {what} holds text; convert it to numbers, or drop it."
        )
    return np.where(np.isfinite(values), values, np.nan)


def to_json(value: float) -> float | None:
    """Return a number with six digits, None where it is not finite."""
    return float(f"{value:.6g}") if np.isfinite(value) else None
