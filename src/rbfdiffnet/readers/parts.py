"""Dates in parts: years in one column and months in another, or a column for each month."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.readers.dates import parse_times
from rbfdiffnet.readers.errors import CommandError
from rbfdiffnet.readers.roles import ColumnChoices, find_time, is_number_column, is_time_name
from rbfdiffnet.readers.table import Table, text_cells
from rbfdiffnet.readers.words import month_number, unit_of

__all__ = ["Spread", "find_spread", "join_parts"]

_RANGES = {"year": (1700, 2261), "quarter": (1, 4), "month": (1, 12), "week": (1, 53)}
_RANGES["day"] = (1, 31)
_FORMS = {
    ("year", "month", "day"): "{:04d}-{:02d}-{:02d}",
    ("year", "month"): "{:04d}-{:02d}",
    ("year", "week"): "{:04d}-W{:02d}",
    ("year", "quarter"): "{:04d}Q{}",
}
_WEEKDAYS = 7  # days up to here are rather those of a week
_NAMELESS = re.compile(r"column \d+|Unnamed: \d+")
_LABELED = re.compile(r"[^\W\d_]*\.? ?(\d{1,2})")


@dataclass(frozen=True)
class Spread:
    """A table whose rows have one part of the dates, and whose columns the other.

    Parameters
    ----------
    rows : str
        The column with the part of the rows.
    columns : list of str
        The columns that are named by the other part.
    dates : list of list of str
        A list for each column: the date of every row.
    what : str
        What rows and columns are.
    """

    rows: str
    columns: list[str]
    dates: list[list[str]]
    what: str


def join_parts(
    table: Table, wanted: ColumnChoices, inputs: Sequence[str] = ()
) -> tuple[Table, str | None, list[str]]:
    """Find the column of dates; join one from years and months, weeks or days if there is none.

    Parameters
    ----------
    table : Table
    wanted : ColumnChoices
    inputs : sequence of str
        Columns that stay.

    Returns
    -------
    table : Table
        With the joined column in place of its parts.
    time : str or None
        The column of dates.
    notes : list of str

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers import ColumnChoices
    >>> from rbfdiffnet.readers.parts import join_parts
    >>> from rbfdiffnet.readers.table import Table
    >>> frame = pd.DataFrame({"Jahr": [2024, 2024], "KW": [1, 2], "y": [3, 4]})
    >>> table, time, notes = join_parts(Table("a.csv", frame, ".", str), ColumnChoices())
    >>> table.frame[time].tolist(), notes
    (['2024-W01', '2024-W02'], ["Dates are joined from 'Jahr' and 'KW', the first is 2024-W01"])
    """
    time = find_time(table, wanted)
    taken = {*wanted.ids, wanted.target, *inputs}
    parts: dict[str, tuple[str, npt.NDArray[np.int64]]] = {}
    for column in table.columns:
        unit = unit_of(column)
        if unit and unit not in parts and column not in taken:
            numbers = _numbers(table, column, unit)
            if numbers is not None:
                parts[unit] = (column, numbers)
    columns = [column for column, _ in parts.values()]
    if wanted.time is not None or not (time is None or time in columns):
        return table, time, []
    dates: list[str] = []
    names: list[str] = []
    for way, form in _FORMS.items():
        if all(unit in parts for unit in way):
            cells = zip(*(parts[unit][1].tolist() for unit in way), strict=True)
            joined = [form.format(*row) for row in cells]
            if len(set(joined)) > len(set(dates)):  # the finest steps
                dates, names = joined, [parts[unit][0] for unit in way]
    if not dates:
        return table, time, []
    joint = " + ".join(names)
    frame = table.frame.drop(columns=columns)
    frame.insert(0, joint, np.array(dates, dtype=object))
    *most, last = (f"'{name}'" for name in names)
    note = f"Dates are joined from {', '.join(most)} and {last}, the first is {dates[0]}"
    return replace(table, frame=frame, _words={}), joint, [note]


def find_spread(table: Table, totals: Collection[str] = ()) -> Spread | None:
    """Find years in rows and months (or quarters) in columns, or the other way round.

    Parameters
    ----------
    table : Table
    totals : collection of str
        Columns that are no parts of dates.

    Returns
    -------
    Spread or None

    Raises
    ------
    CommandError
        If columns are years, and rows parts of dates that are not understood.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.parts import find_spread
    >>> from rbfdiffnet.readers.table import Table
    >>> frame = pd.DataFrame({"Year": [2023, 2024], "Q1": [1, 5], "Q2": 2, "Q3": 3, "Q4": 4})
    >>> find_spread(Table("a.csv", frame, ".", str)).dates[1]
    ['2023Q2', '2024Q2']
    """
    free = [column for column in table.columns if column not in totals]
    for unit, labels in (("month", _months(free)), ("quarter", _quarters(free))):
        others = [c for c in free if is_time_name(c) or _NAMELESS.fullmatch(c)]
        years = next((c for c in others if _numbers(table, c, "year") is not None), None)
        whole = len(labels) == _RANGES[unit][1] and all(_holds_numbers(table, c) for c in labels)
        if whole and years is not None:
            return _spread(table, years, "year", labels, unit)
    named = {c: int(c) for c in free if re.fullmatch(r"(1[789]|2[012])\d\d", c)}
    rest = [column for column in free if column not in named]
    if len(named) < max(2, len(rest)) or not all(_holds_numbers(table, c) for c in named):
        return None
    for column in rest:
        unit = unit_of(column) or "month"
        if unit in ("month", "week", "quarter"):
            clear = unit_of(column) or text_cells(table.frame[column])
            if clear and _numbers(table, column, unit) is not None:
                return _spread(table, column, unit, named, "year")
        cells = table.words(column).dropna()
        if is_time_name(column) and len(parse_times(cells).bad) > len(cells) / 2:
            raise CommandError(
                f"{table.cell(0, column)}: '{cells.iloc[0]}' has no year, and the columns "
                f"'{next(iter(named))}' to '{list(named)[-1]}' are years; put the values below "
                "each other, with dates as YYYY-MM-DD"
            )
    return None


def _spread(table: Table, rows: str, unit: str, labels: dict[str, int], other: str) -> Spread:
    numbers = _numbers(table, rows, unit)
    assert numbers is not None
    form = _FORMS[("year", other if unit == "year" else unit)]
    dates = [
        [form.format(*((n, label) if unit == "year" else (label, n))) for n in numbers.tolist()]
        for label in labels.values()
    ]
    return Spread(rows, list(labels), dates, f"Rows are {unit}s and columns {other}s")


def _holds_numbers(table: Table, column: str) -> bool:
    return is_number_column(table, column) or bool(table.frame[column].isna().all())


def _months(columns: Sequence[str]) -> dict[str, int]:
    found = {c: month_number(c) for c in columns if month_number(c)}
    return found if len(set(found.values())) == len(found) else {}


def _quarters(columns: Sequence[str]) -> dict[str, int]:
    return {c: int(c[1]) for c in columns if re.fullmatch(r"[QqTt][1-4]", c)}


def _numbers(table: Table, column: str, unit: str) -> npt.NDArray[np.int64] | None:
    """Return a column as numbers of a unit of time; nothing where a cell is none."""
    import pandas as pd

    cells: Any = table.frame[column]
    if text_cells(cells):
        codes, distinct = pd.factorize(table.words(column))
        known = [_number(word, unit) for word in distinct]
        values = np.array([*known, 0], dtype=np.int64)[codes]
    elif cells.dtype.kind in "iu" or (cells.dtype.kind == "f" and (cells % 1 == 0).all()):
        values = cells.to_numpy().astype(np.int64)
    else:
        return None
    low, high = _RANGES[unit]
    within = values.size and values.min() >= low and values.max() <= high
    return values if within and not (unit == "day" and values.max() <= _WEEKDAYS) else None


def _number(word: str, unit: str) -> int:
    if unit == "month" and (month := month_number(word)):
        return month
    match = re.fullmatch(r"(\d{4})", word) if unit == "year" else _LABELED.fullmatch(word)
    return int(match[1]) if match else 0
