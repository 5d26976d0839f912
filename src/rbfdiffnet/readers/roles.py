"""Which columns hold dates, names and values, and how the table is laid out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rbfdiffnet.readers.dates import parse_times
from rbfdiffnet.readers.errors import CommandError
from rbfdiffnet.readers.numbers import parse_numbers
from rbfdiffnet.readers.table import Table, text_cells
from rbfdiffnet.readers.words import UNITS, plain, speaks_of_weeks

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ColumnChoices", "find_target", "find_time", "is_number_column", "step_columns"]

_TIME_NAMES = (
    *("ds", "date", "datetime", "timestamp", "time", "datum", "fecha"),
    *(word for words in UNITS.values() for word in words),
    *("period", "zeit", "t", "step", "d"),
)
_TIME_PARTS = (
    *("hour", "minute", "second", "stunde", "uhrzeit", "hr", "weekday", "wochentag", "dow", "doy"),
    *("kw", "quartal", "yr", "mon", "yyyy", "mm", "dd", "hh"),
)
_VALUE_NAMES = (
    *("y", "value", "values", "target", "sales", "sold", "demand", "quantity", "qty", "units"),
    *("amount", "volume", "menge", "umsatz", "absatz", "wert"),
)
_UNITS = r"[-+]?\d[\d.,' ]*[^\d\s.,]+|[^\d\s.,A-Za-z-]\s?\d[\d.,' ]*"
_FEWEST_STEPS = 3
_SAMPLE = 200


@dataclass(frozen=True)
class ColumnChoices:
    """What the user said about the columns.

    Parameters
    ----------
    layout : {"long", "wide", "rows"}, optional
    ids : sequence of str
    time, target : str, optional
    order : {"dmy", "mdy", "ymd"}, optional
    repeats : {"sum", "mean"}, optional
        What becomes of rows with the same series and date.
    """

    layout: str | None = None
    ids: Sequence[str] = ()
    time: str | None = None
    target: str | None = None
    order: str | None = None
    repeats: str | None = None


def find_time(table: Table, wanted: ColumnChoices) -> str | None:
    """Return the column of dates: the one asked for, one with a usual name, or one of dates.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.roles import ColumnChoices, find_time
    >>> from rbfdiffnet.readers.table import Table
    >>> frame = pd.DataFrame({"sold": [3], "when": ["2024-01-31"]})
    >>> find_time(Table("a.csv", frame, ".", str), ColumnChoices())
    'when'
    """
    if wanted.time is not None:
        return table.known(wanted.time, "--time-col")
    frame = table.frame
    kinds = frame.dtypes
    dates = [column for column in table.columns if kinds[column].kind == "M"]
    named = [c for name in _TIME_NAMES for c in table.columns if plain(c) == name]
    text = [column for column in table.columns if text_cells(frame[column])]
    taken = {*wanted.ids, wanted.target}
    for column in dict.fromkeys([*dates, *named, *text]):
        if column in taken:
            continue
        cells = table.dates(column).dropna().head(_SAMPLE).reset_index(drop=True)
        times = parse_times(cells, wanted.order, weeks=speaks_of_weeks(column))
        by_name_only = times.integer and column not in named
        readable = len(times.bad) <= len(cells) / 2 or times.hint
        if len(cells) and readable and not by_name_only:
            return str(column)
    return None


def find_target(table: Table, wanted: ColumnChoices, taken: Sequence[str]) -> str:
    """Return the column of values: the one asked for, one with a usual name, or the first numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.roles import ColumnChoices, find_target
    >>> from rbfdiffnet.readers.table import Table
    >>> frame = pd.DataFrame({"ds": [1], "n": [2], "Sales": [3]})
    >>> find_target(Table("a.csv", frame, ".", str), ColumnChoices(), ["ds"])
    'Sales'
    """
    if wanted.target is not None:
        return table.known(wanted.target, "--target-col")
    free = [column for column in table.columns if column not in taken]
    named = [c for name in _VALUE_NAMES for c in free if c.lower() == name]
    usable = named or [column for column in free if is_number_column(table, column)]
    if not usable and len(free) == 1:
        usable = free  # its first cell that is no number will be named
    if not usable:
        raise CommandError(
            f"{table.name} has no column of numbers (columns: {table.listing()}); add one, or "
            "name it with --target-col"
        )
    return str(usable[0])


def is_value_name(column: str) -> bool:
    """Tell whether a column has one of the usual names of values.

    Examples
    --------
    >>> from rbfdiffnet.readers.roles import is_value_name
    >>> is_value_name("Sales"), is_value_name("CA_1")
    (True, False)
    """
    return column.lower() in _VALUE_NAMES


def is_time_name(column: str) -> bool:
    """Tell whether a column has one of the usual names of dates, or of parts of them.

    Examples
    --------
    >>> from rbfdiffnet.readers.roles import is_time_name
    >>> is_time_name("Year"), is_time_name("hour"), is_time_name("shop")
    (True, True, False)
    """
    return plain(column) in (*_TIME_NAMES, *_TIME_PARTS)


def is_number_column(table: Table, column: str) -> bool:
    """Tell whether a column is mostly numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.roles import is_number_column
    >>> from rbfdiffnet.readers.table import Table
    >>> is_number_column(Table("a.csv", pd.DataFrame({"y": ["1", "2", "?"]}), ".", str), "y")
    True
    """
    cells = table.frame[column].dropna().head(_SAMPLE)
    values, bad = parse_numbers(cells, table.mark(column) or ".", table.missing)
    return len(bad) <= len(cells) / 2 and bool(np.isfinite(values.astype(np.float64)).any())


def has_units(table: Table, column: str) -> bool:
    """Tell whether a column is mostly numbers with units, as 12 EUR and 7 %.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.roles import has_units
    >>> from rbfdiffnet.readers.table import Table
    >>> has_units(Table("a.csv", pd.DataFrame({"y": ["12 EUR", "7 EUR"]}), ".", str), "y")
    True
    """
    if not text_cells(table.frame[column]):
        return False
    cells = table.words(column).dropna().head(_SAMPLE)
    return bool(cells.str.fullmatch(_UNITS).mean() > 0.5)


def step_columns(table: Table, *, dates_only: bool = False) -> list[str]:
    """Return the columns that are named like dates or counted, as d_1, d_2, ..., and hold numbers.

    Parameters
    ----------
    table : Table
    dates_only : bool, default=False
        Leave out those that are counted.

    Returns
    -------
    list of str
        Nothing where fewer columns are such ones than are not.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.roles import step_columns
    >>> from rbfdiffnet.readers.table import Table
    >>> frame = pd.DataFrame({"id": ["a"], "d_1": [1], "d_2": [2], "d_3": [3]})
    >>> step_columns(Table("a.csv", frame, ".", str))
    ['d_1', 'd_2', 'd_3']
    """
    names = table.columns
    groups: dict[str, list[str]] = {}
    for name in names:
        if match := re.fullmatch(r"([A-Za-z _-]*)\d+", name):
            if not dates_only:
                groups.setdefault(match[1], []).append(name)
        elif re.search(r"\d{4}|\d[./-]\d", name):
            groups.setdefault("date", []).append(name)
    largest = max(groups.values(), key=len, default=[])
    steps = [name for name in largest if is_number_column(table, name) or _empty(table, name)]
    others = len(names) - len(steps)
    if len(steps) < max(_FEWEST_STEPS, others):
        return []
    times = parse_times(_series(steps))
    return [] if len(times.bad) or times.values.duplicated().any() else steps


def _series(cells: list[str]) -> pd.Series[Any]:
    import pandas as pd

    return pd.Series(cells, dtype=object)


def _empty(table: Table, column: str) -> bool:
    return bool(table.frame[column].isna().all())
