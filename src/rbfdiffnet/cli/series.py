"""Find the dates and the values of one series in a table, and check them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rbfdiffnet.cli.errors import CommandError
from rbfdiffnet.cli.files import Table, is_number, read_table
from rbfdiffnet.cli.frequency import (
    describe_frequency,
    infer_frequency,
    regular_step,
)
from rbfdiffnet.cli.text import format_dates

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Series", "read_series"]

_TIME_NAMES = ("ds", "date", "datetime", "timestamp", "time", "day", "week", "month", "year")
_VALUE_NAMES = ("y", "value", "values", "target", "sales")
# Squares of larger values overflow.
_LARGEST = 1e150
_MISSING = ("", "na", "n/a", "nan", "null", "none")


@dataclass(frozen=True)
class Series:
    """One regular series.

    Parameters
    ----------
    ds : DatetimeIndex
        The dates, ascending and evenly spaced.
    y : ndarray of shape (T,)
        The values, all finite.
    frequency : str
        Pandas offset alias of the dates.
    source : str
        What was read, for a person.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from rbfdiffnet.cli.series import Series
    >>> ds = pd.date_range("2024-01-01", periods=3, freq="MS")
    >>> Series(ds, np.arange(3.0), "MS", "a test").describe()
    'Reading a test, monthly (MS), 3 values'
    """

    ds: pd.DatetimeIndex
    y: npt.NDArray[np.float64]
    frequency: str
    source: str

    def describe(self) -> str:
        """Say in one line what was read."""
        return f"Reading {self.source}, {describe_frequency(self.frequency)}, {len(self.y)} values"


def read_series(path: str, time_col: str | None = None, target_col: str | None = None) -> Series:
    r"""Read a series from a CSV file with a column of dates and a column of values.

    Columns that are not named are guessed: dates by a usual name or by their look, values by a
    usual name or as the first other column that is mostly numbers. Rows may come in any order.

    Parameters
    ----------
    path : str
        The file; ``-`` reads standard input.
    time_col, target_col : str, optional
        Names of the two columns.

    Returns
    -------
    Series
        Sorted by date.

    Raises
    ------
    CommandError
        If anything is wrong with the file, with the line, the column and the remedy.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rbfdiffnet.cli.series import read_series
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.csv")
    ...     _ = file.write_text("day,sold\n1.4.2024,3\n2.4.2024,4\n3.4.2024,6\n")
    ...     series = read_series(str(file))
    >>> series.describe(), series.y.tolist()
    ("Reading ds from 'day', y from 'sold', daily (D), 3 values", [3.0, 4.0, 6.0])
    """
    table = read_table(path)
    time_col = _find_time(table, time_col)
    target_col = _find_target(table, target_col, time_col)
    dates = _read_dates(table, time_col)
    values = _read_values(table, target_col)

    order = np.argsort(dates.to_numpy(), kind="stable")
    dates, values = dates[order], values[order]
    if not dates.is_unique:
        again = int(np.argmax(dates.duplicated()))
        first, second = sorted(table.lines[i] for i in order[again - 1 : again + 1].tolist())
        raise CommandError(
            f"{table.name}, column '{time_col}': {format_dates(dates[again : again + 1])[0]} is on "
            f"line {first} and on line {second}; keep one line a date, one series a file"
        )
    frequency = infer_frequency(dates, f"{table.name}, column '{time_col}'")
    return Series(dates, values, frequency, f"ds from '{time_col}', y from '{target_col}'")


def _find_time(table: Table, wanted: str | None) -> str:
    if wanted is not None:
        return _known(table, wanted, "--time-col")
    named = _by_name(table, _TIME_NAMES)
    looks = [column for column, cells in table.columns.items() if not _mostly_numbers(cells)]
    for column in [*named, *looks]:
        if np.mean(_parse_dates(table.columns[column][:50]).isna()) <= 0.5:
            return column
    raise CommandError(
        f"{table.name} has no column of dates (columns: {table.listing()}); "
        "add one, or name it with --time-col"
    )


def _find_target(table: Table, wanted: str | None, time_col: str) -> str:
    if wanted is not None:
        return _known(table, wanted, "--target-col")
    named = _by_name(table, _VALUE_NAMES)
    numeric = [column for column, cells in table.columns.items() if _mostly_numbers(cells)]
    others = [column for column in [*named, *numeric, *table.columns] if column != time_col]
    usable = [column for column in others if column in numeric or len(table.columns) == 2]
    if not usable:
        raise CommandError(
            f"{table.name} has no column of numbers beside '{time_col}' "
            f"(columns: {table.listing()}); add one, or name it with --target-col"
        )
    return usable[0]


def _read_dates(table: Table, column: str) -> pd.DatetimeIndex:
    cells = table.columns[column]
    dates = _parse_dates(cells)
    if dates.hasnans:
        row = int(np.argmax(dates.isna()))
        what = f"'{cells[row]}' is not a date" if cells[row] else "the date is missing"
        raise CommandError(
            f"{table.name}, line {table.lines[row]}, column '{column}': {what} like the others; "
            "write dates as YYYY-MM-DD, or choose another column with --time-col"
        )
    return dates


def _read_values(table: Table, column: str) -> npt.NDArray[np.float64]:
    values = np.empty(len(table.lines))
    for row, (line, cell) in enumerate(zip(table.lines, table.columns[column], strict=True)):
        where = f"{table.name}, line {line}, column '{column}'"
        if cell.lower() in _MISSING:
            raise CommandError(f"{where}: the value is missing; fill it in")
        if not is_number(cell):
            raise CommandError(
                f"{where}: '{cell}' is not a number; correct it, or choose another column with "
                "--target-col"
            )
        values[row] = float(cell)
        if not abs(values[row]) <= _LARGEST:
            raise CommandError(
                f"{where}: '{cell}' is too large to work with; correct or rescale it"
            )
    return values


def _parse_dates(cells: list[str]) -> pd.DatetimeIndex:
    """Parse dates, not-a-time where that fails.

    Of plain numbers, years (2024), months (202401) and days (20240131) are dates. Of the two
    readings of 1/2/2024 the one that gives regular dates is taken.
    """
    import pandas as pd

    numbers = {len(cell) for cell in cells if cell.isdigit()}
    if numbers == {6}:
        cells = [f"{cell[:4]}-{cell[4:]}" if cell.isdigit() else cell for cell in cells]
    elif not numbers <= {4, 8}:  # counters; pandas would take them for days of this month
        cells = ["" if cell.isdigit() else cell for cell in cells]
    year_first = all(cell[:4].isdigit() for cell in cells if cell)
    readings = []
    for day_first in (False,) if year_first else (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                dates = pd.DatetimeIndex(
                    pd.to_datetime(pd.Index(cells), errors="coerce", dayfirst=day_first)
                )
            except (ValueError, OverflowError):  # mixed time zones, as over a change of clocks
                dates = pd.DatetimeIndex(
                    pd.to_datetime(pd.Index(cells), errors="coerce", dayfirst=day_first, utc=True)
                )
        readings.append(dates)

    def irregularity(dates: pd.DatetimeIndex) -> tuple[int, bool]:
        missing = int(np.sum(dates.isna()))
        known = dates.dropna().unique().sort_values()
        return missing, len(known) < 3 or regular_step(known) is None

    return min(readings, key=irregularity)


def _mostly_numbers(cells: list[str]) -> bool:
    filled = [cell for cell in cells if cell]
    return sum(map(is_number, filled)) > len(filled) / 2


def _by_name(table: Table, names: tuple[str, ...]) -> list[str]:
    return [column for name in names for column in table.columns if column.lower() == name]


def _known(table: Table, column: str, option: str) -> str:
    if column not in table.columns:
        raise CommandError(
            f"{table.name} has no column '{column}' ({option}); its columns: {table.listing()}"
        )
    return column
