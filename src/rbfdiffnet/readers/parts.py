"""Dates in parts: years in one column and months in another, or a column for each month."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rbfdiffnet.readers.columns import (
    CLOCK,
    MANY_REPEATS,
    ColumnChoices,
    are_clocks,
    find_time_column,
    has_numbers_or_nothing,
    is_clock_name,
    is_number_column,
    is_time_name,
)
from rbfdiffnet.readers.dates import find_month, find_time_unit, parse_times
from rbfdiffnet.readers.keys import count_repeats, encode
from rbfdiffnet.readers.table import NAMELESS, Table, is_text, quote_names
from rbfdiffnet.support.arrays import Ints
from rbfdiffnet.support.checks import CommandError

_OTHERWISE = " (otherwise: --time-col)"
_SAMPLE = 200  # cells that tell what a column is
_FEW_WRONG = 0.1  # share of cells that may be wrong in a column of parts of dates
_SAME_YEAR = 0.9  # share of the dates whose year a column of years must have, too
_RANGES = {"year": (1700, 2261), "quarter": (1, 4), "month": (1, 12), "week": (1, 53)}
_RANGES["day"] = (1, 31)
_DATE_FORMS = {
    ("year", "month", "day"): "{:04d}-{:02d}-{:02d}",
    ("year", "month"): "{:04d}-{:02d}",
    ("year", "week"): "{:04d}-W{:02d}",
    ("year", "quarter"): "{:04d}Q{}",
}
_WEEKDAYS = 7  # days up to here are rather days of a week
_LABELED_NUMBER = re.compile(r"[^\W\d_]*\.? ?(\d{1,2})")


@dataclass(frozen=True)
class CrossTable:
    """A table whose rows have one part of the dates, and whose columns the other.

    `rows` is the column with the part of the rows; `columns` are named by the other part. `dates`
    has a list for each of the columns: the date of every row. `description` says what rows and
    columns are.
    """

    rows: str
    columns: list[str]
    dates: list[list[str]]
    description: str


def find_dates(
    table: Table, choices: ColumnChoices, inputs: Sequence[str] = ()
) -> tuple[Table, str | None, list[str]]:
    """Find the column of dates; join one from years and months, weeks or days if there is none.

    Returns the table, with the joined column in place of its parts, the column of dates and notes.
    Columns in `inputs` are no parts. A clock beside dates that repeat is joined to them.
    """
    if len(choices.time) > 1:
        return _join_told_parts(table, choices.time)
    time = find_time_column(table, choices)
    if choices.time:
        return table, time, []
    taken = {*choices.ids, *choices.target, *inputs}
    free = [column for column in table.columns if column not in taken]
    parts = _find_parts(table, free)
    columns = [column for column, _ in parts.values()]
    wrong = _find_wrong_parts(table, free, parts)
    if time is None or time in {*columns, *(column for column, _ in wrong.values())}:
        if (full := _find_full_dates(table, choices, free, parts.get("year"))) is not None:
            return table, full, []
        _refuse_wrong_parts(table, parts, wrong)
        dates, names = _join_parts(parts)
        if not names:
            return table, time, []
        rest = [column for column in free if column not in columns]
        clock = _find_clock(table, rest, dates, choices) if len(names) == 3 else []
        return _insert_dates(table, dates, names, clock, columns)
    if any(is_clock_name(column) for column in free if column != time):
        dates = _read_days(table, time)
        if clock := _find_clock(table, [c for c in free if c != time], dates, choices):
            return _insert_dates(table, dates, [time], clock)
    return table, time, []


def _find_parts(table: Table, columns: Sequence[str]) -> dict[str, tuple[str, Ints]]:
    """Return the columns with parts of dates, and their numbers, by units of time."""
    parts: dict[str, tuple[str, Ints]] = {}
    for column in columns:
        unit = find_time_unit(column)
        if unit and unit not in parts:
            numbers = _read_time_numbers(table, column, unit)
            if numbers is not None:
                parts[unit] = (column, numbers)
    return parts


def _find_wrong_parts(
    table: Table, columns: Sequence[str], parts: Collection[str]
) -> dict[str, tuple[str, int]]:
    """Return columns with parts of dates but for a few cells, and the first such row, by units."""
    found: dict[str, tuple[str, int]] = {}
    for column in columns:
        unit = find_time_unit(column)
        values = None if not unit or unit in parts else _parse_time_numbers(table, column, unit)
        if values is not None:
            low, high = _RANGES[unit]
            wrong = (values < low) | (values > high)
            if wrong.any() and wrong.mean() <= _FEW_WRONG:
                found.setdefault(unit, (column, int(np.argmax(wrong))))
    return found


def _refuse_wrong_parts(
    table: Table, parts: Mapping[str, tuple[str, Ints]], wrong: Mapping[str, tuple[str, int]]
) -> None:
    """Name a cell that is no part of a date, such as month 13, where the part would be needed.

    It is not where it tells no rows apart that have the same date, or year, without it.
    """
    known = {*parts, *wrong}
    units = next((units for units in _DATE_FORMS if known.issuperset(units)), ())
    for column, row in (wrong[unit] for unit in units if unit in wrong):
        dates = _join_parts(parts)[0] or (parts["year"][1] if "year" in parts else [])
        keys = [encode(pd.Series(dates)), encode(table.text(column))]
        if len(dates) and count_repeats(keys) == count_repeats(keys[:1]):
            return
        unit, cell = find_time_unit(column), table.text(column).iloc[row]
        what = f"the {unit} is missing" if pd.isna(cell) else f"'{cell}' is no {unit}"
        raise CommandError(
            f"{table.locate(row, column)}: {what}; correct it, remove the line, or choose another "
            "column of dates with --time-col"
        )


def _join_parts(parts: Mapping[str, tuple[str, Ints]]) -> tuple[list[str], list[str]]:
    """Join the parts that make the finest steps; return dates and the columns they are from."""
    dates: list[str] = []
    names: list[str] = []
    for units, form in _DATE_FORMS.items():
        if all(unit in parts for unit in units):
            cells = zip(*(parts[unit][1].tolist() for unit in units), strict=True)
            joined = [form.format(*row) for row in cells]
            if len(set(joined)) > len(set(dates)):
                dates, names = joined, [parts[unit][0] for unit in units]
    return dates, names


def _find_full_dates(
    table: Table, choices: ColumnChoices, columns: Sequence[str], years: tuple[str, Ints] | None
) -> str | None:
    """Return a column of text or dates whose years are those of a column of years, if any."""
    if years is None:
        return None
    for column in columns:
        if column == years[0] or table.frame[column].dtype.kind in "iufb":
            continue
        cells = table.date_cells(column)
        if len(parse_times(cells.head(_SAMPLE).reset_index(drop=True), choices.order).bad):
            continue
        times = parse_times(cells, choices.order)
        if not (times.is_integer or len(times.bad)):
            same = times.values.dt.year.to_numpy() == years[1]
            if same.mean() > _SAME_YEAR:  # a time zone may shift some
                return column
    return None


def _read_days(table: Table, column: str) -> list[str]:
    """Return a column of dates as text, without midnights."""
    return table.text(column).astype(str).str.removesuffix(" 00:00:00").tolist()


def _find_clock(
    table: Table, columns: Sequence[str], dates: Sequence[str], choices: ColumnChoices
) -> list[str]:
    """Return a column of hours or clocks that tells rows of the same date apart, if any.

    Raises where there is none but clocks written as numbers, such as 8.30, unless rows of the same
    date are joined.
    """
    for column in columns:
        clock = _read_clock(table, column) if is_clock_name(column) else None
        if clock is None:
            continue
        pairs = zip(dates[:_SAMPLE], clock, strict=False)
        times = parse_times(pd.Series([f"{date} {time}" for date, time in pairs], dtype=object))
        if len(times.bad) or times.is_integer:
            continue
        days = encode(pd.Series(dates, dtype=object))
        before, left = count_repeats([days]), count_repeats([days, encode(pd.Series(clock))])
        many = MANY_REPEATS * len(days)
        is_hour = not is_text(table.frame[column])
        if before > many and (left <= many or (is_hour and left < before)):
            return [column]
    if choices.repeats is None:
        _refuse_clocks(table, columns, dates, choices)
    return []


def _refuse_clocks(
    table: Table, columns: Sequence[str], dates: Sequence[str], choices: ColumnChoices
) -> None:
    """Name a column of clocks written as numbers that tells values of the same date apart."""
    days = encode(pd.Series(dates, dtype=object))
    before = count_repeats([days])
    for column in columns if before > MANY_REPEATS * len(days) else ():
        cells = table.frame[column]
        others = [c for c in columns if c != column and is_number_column(table, c)]
        is_clock = is_clock_name(column) and are_clocks(cells.dropna())
        values = others or choices.target
        if is_clock and values and count_repeats([days, encode(cells)]) < before:
            row = int(np.nanargmax(cells.to_numpy() % 1))
            cell = table.text(column).iloc[row]
            raise CommandError(
                f"{table.locate(row, column)}: '{cell}' looks like a clock; write it as HH:MM, or "
                f"say what '{column}' is with --target-col, --id-col or --exog"
            )


def _read_clock(table: Table, column: str) -> list[str] | None:
    """Return clocks as text from a column of clocks, or of hours from 0 to 23 or 1 to 24."""
    cells = table.frame[column]
    if is_text(cells):
        words = table.text(column).astype(object)
        return words.tolist() if words.notna().all() and words.str.fullmatch(CLOCK).all() else None
    numbers = cells.to_numpy()
    if cells.dtype.kind not in "iuf" or not (len(numbers) and np.isin(numbers, range(25)).all()):
        return None
    late = int(numbers.max() == 24)
    if late and numbers.min() == 0:
        return None
    return [f"{int(number) - late:02d}:00" for number in numbers]


def _join_told_parts(table: Table, columns: Sequence[str]) -> tuple[Table, str, list[str]]:
    """Join the columns that the user named: parts of dates, or dates, perhaps with a clock."""
    parts = _find_parts(table, columns)
    _refuse_wrong_parts(table, parts, _find_wrong_parts(table, columns, parts))
    dates, names = _join_parts(parts)
    rest = [column for column in columns if column not in names]
    if not names and not parts:
        dates, names, rest = _read_days(table, columns[0]), [columns[0]], [*columns[1:]]
    if not names or len(rest) > 1 or any(_read_clock(table, column) is None for column in rest):
        raise CommandError(
            f"--time-col {' '.join(columns)}: {quote_names(columns)} of {table.name} make no dates "
            "together; name columns of years and months (weeks, quarters; and days), or dates and "
            "then hours or clocks"
        )
    table, joint, notes = _insert_dates(table, dates, names, rest)
    return table, joint, [notes[0].removesuffix(_OTHERWISE)]


def _insert_dates(
    table: Table,
    dates: Sequence[str],
    names: Sequence[str],
    clocks: Sequence[str],
    parts: Sequence[str] = (),
) -> tuple[Table, str, list[str]]:
    """Put a column of dates, with clocks, in place of the columns they are from, and of `parts`."""
    for column in clocks:
        pairs = zip(dates, _read_clock(table, column) or (), strict=True)
        dates = [f"{date} {clock}" for date, clock in pairs]
    joint = " + ".join([*names, *clocks])
    frame = table.frame.drop(columns=[*{*names, *clocks, *parts}])
    frame.insert(0, joint, np.array(dates, dtype=object))
    *most, last = (f"'{name}'" for name in (*names, *clocks))
    note = f"Dates are joined from {', '.join(most)} and {last}, the first is {dates[0]}"
    return table.with_frame(frame), joint, [f"{note}{_OTHERWISE}"]


def find_cross_table(table: Table, totals: Collection[str] = ()) -> CrossTable | None:
    """Find years in rows and months (or quarters) in columns, or the other way round.

    Columns in `totals` are no parts of dates. Raises where columns are years and rows are parts of
    dates that are not understood.
    """
    free = [column for column in table.columns if column not in totals]
    months = {c: find_month(c) for c in free if find_month(c)}
    months = months if len(set(months.values())) == len(months) else {}
    quarters = {c: int(c[1]) for c in free if re.fullmatch(r"[QqTt][1-4]", c)}
    for unit, labels in (("month", months), ("quarter", quarters)):
        others = [c for c in free if is_time_name(c) or NAMELESS.fullmatch(c)]
        years = next((c for c in others if _read_time_numbers(table, c, "year") is not None), None)
        complete = len(labels) == _RANGES[unit][1]
        numbers = complete and all(has_numbers_or_nothing(table, c) for c in labels)
        if numbers and years is not None:
            return _make_cross_table(table, years, "year", labels, unit)
    named = {c: int(c) for c in free if re.fullmatch(r"(1[789]|2[012])\d\d", c)}
    rest = [column for column in free if column not in named]
    if len(named) < max(2, len(rest)) or not all(has_numbers_or_nothing(table, c) for c in named):
        return None
    for column in rest:
        unit = find_time_unit(column) or "month"
        if unit in ("month", "week", "quarter"):
            clear = find_time_unit(column) or is_text(table.frame[column])
            if clear and _read_time_numbers(table, column, unit) is not None:
                return _make_cross_table(table, column, unit, named, "year")
        cells = table.text(column).dropna()
        if is_time_name(column) and len(parse_times(cells).bad) > len(cells) / 2:
            raise CommandError(
                f"{table.locate(0, column)}: '{cells.iloc[0]}' has no year, and the columns "
                f"'{next(iter(named))}' to '{list(named)[-1]}' are years; put the values below "
                "each other, with dates as YYYY-MM-DD"
            )
    return None


def _make_cross_table(
    table: Table, rows: str, unit: str, labels: dict[str, int], other: str
) -> CrossTable:
    numbers = _read_time_numbers(table, rows, unit)
    assert numbers is not None
    form = _DATE_FORMS[("year", other if unit == "year" else unit)]
    dates = [
        [form.format(*((n, label) if unit == "year" else (label, n))) for n in numbers.tolist()]
        for label in labels.values()
    ]
    return CrossTable(rows, list(labels), dates, f"Rows are {unit}s and columns {other}s")


def _read_time_numbers(table: Table, column: str, unit: str) -> Ints | None:
    """Return a column as numbers of a unit of time; return nothing where a cell is none."""
    values = _parse_time_numbers(table, column, unit)
    if values is None:
        return None
    low, high = _RANGES[unit]
    within = values.size and values.min() >= low and values.max() <= high
    return values if within and not (unit == "day" and values.max() <= _WEEKDAYS) else None


def _parse_time_numbers(table: Table, column: str, unit: str) -> Ints | None:
    """Return a column as numbers of a unit of time, 0 for a cell that is none.

    Nothing is returned for numbers that are not whole.
    """
    cells: Any = table.frame[column]
    if is_text(cells):
        codes, distinct = pd.factorize(table.text(column))
        known = [_read_time_number(word, unit) for word in distinct]
        return np.array([*known, 0], dtype=np.int64)[codes]
    if cells.dtype.kind in "iu" or (cells.dtype.kind == "f" and (cells.dropna() % 1 == 0).all()):
        numbers = np.clip(cells.fillna(0).to_numpy(np.float64), -1e9, 1e9)
        return np.asarray(numbers, dtype=np.int64)
    return None


def _read_time_number(word: str, unit: str) -> int:
    if unit == "month" and (month := find_month(word)):
        return month
    match = re.fullmatch(r"(\d{4})", word) if unit == "year" else _LABELED_NUMBER.fullmatch(word)
    return int(match[1]) if match else 0
