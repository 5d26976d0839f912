"""Which columns of a table hold dates, whole or in parts, names of series and values."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rbfdiffnet.readers.dates import (
    TIME_UNITS,
    find_month,
    find_time_unit,
    fold_text,
    mentions_time,
    mentions_weeks,
    parse_times,
)
from rbfdiffnet.readers.numbers import parse_numbers
from rbfdiffnet.readers.table import Table, first_cells, is_text
from rbfdiffnet.support.arrays import Ints
from rbfdiffnet.support.checks import CommandError

MANY_REPEATS = 0.1  # share of repeated dates from which on there must be several series
_SAMPLE = 200  # cells that tell what a column is
_FEWEST_STEPS = 3  # columns named by dates
_FEWEST_FILLED = 0.02  # rows for each series and date, where columns name series together
_FEWEST_ROWS = 3  # for each series, where numbers name the series
_TABLE_SIZE = 8  # combinations for each row, up to which a table of all of them is the faster way
_TIME_NAMES = (
    *("ds", "date", "datetime", "timestamp", "time", "datum", "fecha"),
    *(word for words in TIME_UNITS.values() for word in words),
    *("period", "zeit", "t", "step", "d"),
)
_TIME_PART_NAMES = (
    *("hour", "minute", "second", "stunde", "uhrzeit", "hr", "weekday", "wochentag", "dow", "doy"),
    *("kw", "quartal", "yr", "mon", "yyyy", "mm", "dd", "hh"),
)
_VALUE_NAMES = (
    *("y", "value", "values", "target", "sales", "sold", "demand", "quantity", "qty", "units"),
    *("amount", "volume", "menge", "umsatz", "absatz", "wert"),
)
_ID_NAMES = (
    *("unique_id", "id", "series_id", "series", "item_id", "item", "sku", "product", "product_id"),
    *("store", "store_id", "shop", "key", "name", "artikel", "filiale"),
)
_NUMBER_WITH_UNIT = r"[-+]?\d[\d.,' ]*[^\d\s.,]+|[^\d\s.,A-Za-z-]\s?\d[\d.,' ]*"


@dataclass(frozen=True)
class ColumnChoices:
    """What the user said about the columns; what is left open is guessed.

    `layout` is "long", "wide" or "rows"; `ids`, `time` and `target` are columns; `order` is "dmy",
    "mdy" or "ymd"; `repeats`, "sum" or "mean", joins rows of the same series and date.
    """

    layout: str | None = None
    ids: Sequence[str] = ()
    time: str | None = None
    target: str | None = None
    order: str | None = None
    repeats: str | None = None


# Names and contents ---------------------------------------------------------------------------


def is_value_name(column: str) -> bool:
    """Tell whether a column has one of the usual names of values."""
    return column.lower() in _VALUE_NAMES


def is_id_name(column: str) -> bool:
    """Tell whether a column has one of the usual names of columns that name series."""
    return column.lower() in _ID_NAMES


def is_time_name(column: str) -> bool:
    """Tell whether a column has one of the usual names of dates, or of parts of dates."""
    return fold_text(column) in (*_TIME_NAMES, *_TIME_PART_NAMES)


def is_number_column(table: Table, column: str) -> bool:
    """Tell whether a column is mostly numbers."""
    cells = first_cells(table.frame[column], _SAMPLE)
    values, bad = parse_numbers(table, column, cells)
    return len(bad) <= len(cells) / 2 and bool(np.isfinite(values.astype(np.float64)).any())


def _has_numbers_or_nothing(table: Table, column: str) -> bool:
    return is_number_column(table, column) or bool(table.frame[column].isna().all())


def has_units(table: Table, column: str) -> bool:
    """Tell whether a column is mostly numbers with units, as 12 EUR and 7 %."""
    if not is_text(table.frame[column]):
        return False
    cells = first_cells(table.text(column), _SAMPLE)
    return bool(cells.str.fullmatch(_NUMBER_WITH_UNIT).mean() > 0.5)


# Dates and values -----------------------------------------------------------------------------


def find_time_column(table: Table, choices: ColumnChoices) -> str | None:
    """Return the column of dates: the chosen one, one with a usual name, or one of dates."""
    if choices.time is not None:
        return table.check_column(choices.time, "--time-col")
    frame = table.frame
    kinds = frame.dtypes
    dates = [column for column in table.columns if kinds[column].kind == "M"]
    named = [c for name in _TIME_NAMES for c in table.columns if fold_text(c) == name]
    text = [column for column in table.columns if is_text(frame[column])]
    taken = {*choices.ids, choices.target}
    for column in dict.fromkeys([*dates, *named, *text]):
        if column in taken:
            continue
        cells = first_cells(table.date_cells(column), _SAMPLE).reset_index(drop=True)
        times = parse_times(cells, choices.order, weeks=mentions_weeks(column))
        by_name_only = times.is_integer and column not in named
        readable = len(times.bad) <= len(cells) / 2 or times.hint
        if len(cells) and readable and not by_name_only:
            return str(column)
    return None


def find_target_column(table: Table, choices: ColumnChoices, taken: Sequence[str]) -> str:
    """Return the column of values: the chosen one, one with a usual name, or the first numbers."""
    if choices.target is not None:
        return table.check_column(choices.target, "--target-col")
    free = [column for column in table.columns if column not in taken]
    named = [c for name in _VALUE_NAMES for c in free if c.lower() == name]
    usable = named or [column for column in free if is_number_column(table, column)]
    if not usable and len(free) == 1:
        usable = free  # its first cell that is no number will be named
    if not usable:
        raise CommandError(
            f"{table.name} has no column of numbers (columns: {table.list_columns()}); add one, or "
            "name it with --target-col"
        )
    return str(usable[0])


def find_step_columns(table: Table, *, dates_only: bool = False) -> list[str]:
    """Return the columns of numbers that are named like dates or counted, as d_1, d_2, ...

    With `dates_only`, counted ones do not count. Nothing is returned where there are fewer such
    columns than others.
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
    steps = [name for name in largest if _has_numbers_or_nothing(table, name)]
    if len(steps) < max(_FEWEST_STEPS, len(names) - len(steps)):
        return []
    times = parse_times(pd.Series(steps, dtype=object))
    return [] if len(times.bad) or times.values.duplicated().any() else steps


# Dates in parts: years in one column and months in another, or a column for each month ---------

_RANGES = {"year": (1700, 2261), "quarter": (1, 4), "month": (1, 12), "week": (1, 53)}
_RANGES["day"] = (1, 31)
_DATE_FORMS = {
    ("year", "month", "day"): "{:04d}-{:02d}-{:02d}",
    ("year", "month"): "{:04d}-{:02d}",
    ("year", "week"): "{:04d}-W{:02d}",
    ("year", "quarter"): "{:04d}Q{}",
}
_WEEKDAYS = 7  # days up to here are rather days of a week
_NAMELESS = re.compile(r"column \d+|Unnamed: \d+")
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


def join_date_parts(
    table: Table, choices: ColumnChoices, inputs: Sequence[str] = ()
) -> tuple[Table, str | None, list[str]]:
    """Find the column of dates; join one from years and months, weeks or days if there is none.

    Returns the table, with the joined column in place of its parts, the column of dates and notes.
    Columns in `inputs` are no parts.
    """
    time = find_time_column(table, choices)
    taken = {*choices.ids, choices.target, *inputs}
    parts: dict[str, tuple[str, Ints]] = {}
    for column in table.columns:
        unit = find_time_unit(column)
        if unit and unit not in parts and column not in taken:
            numbers = _read_time_numbers(table, column, unit)
            if numbers is not None:
                parts[unit] = (column, numbers)
    columns = [column for column, _ in parts.values()]
    if choices.time is not None or not (time is None or time in columns):
        return table, time, []
    dates: list[str] = []
    names: list[str] = []
    for units, form in _DATE_FORMS.items():
        if all(unit in parts for unit in units):
            cells = zip(*(parts[unit][1].tolist() for unit in units), strict=True)
            joined = [form.format(*row) for row in cells]
            if len(set(joined)) > len(set(dates)):  # the finest steps
                dates, names = joined, [parts[unit][0] for unit in units]
    if not dates:
        return table, time, []
    joint = " + ".join(names)
    frame = table.frame.drop(columns=columns)
    frame.insert(0, joint, np.array(dates, dtype=object))
    *most, last = (f"'{name}'" for name in names)
    note = f"Dates are joined from {', '.join(most)} and {last}, the first is {dates[0]}"
    return table.with_frame(frame), joint, [note]


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
        others = [c for c in free if is_time_name(c) or _NAMELESS.fullmatch(c)]
        years = next((c for c in others if _read_time_numbers(table, c, "year") is not None), None)
        complete = len(labels) == _RANGES[unit][1]
        numbers = complete and all(_has_numbers_or_nothing(table, c) for c in labels)
        if numbers and years is not None:
            return _make_cross_table(table, years, "year", labels, unit)
    named = {c: int(c) for c in free if re.fullmatch(r"(1[789]|2[012])\d\d", c)}
    rest = [column for column in free if column not in named]
    if len(named) < max(2, len(rest)) or not all(_has_numbers_or_nothing(table, c) for c in named):
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
    cells: Any = table.frame[column]
    if is_text(cells):
        codes, distinct = pd.factorize(table.text(column))
        known = [_read_time_number(word, unit) for word in distinct]
        values = np.array([*known, 0], dtype=np.int64)[codes]
    elif cells.dtype.kind in "iu" or (cells.dtype.kind == "f" and (cells % 1 == 0).all()):
        values = cells.to_numpy().astype(np.int64)
    else:
        return None
    low, high = _RANGES[unit]
    within = values.size and values.min() >= low and values.max() <= high
    return values if within and not (unit == "day" and values.max() <= _WEEKDAYS) else None


def _read_time_number(word: str, unit: str) -> int:
    if unit == "month" and (month := find_month(word)):
        return month
    match = re.fullmatch(r"(\d{4})", word) if unit == "year" else _LABELED_NUMBER.fullmatch(word)
    return int(match[1]) if match else 0


# Names of series ------------------------------------------------------------------------------


def find_id_columns(
    table: Table, times: npt.NDArray[Any], choices: ColumnChoices, taken: Sequence[str]
) -> list[str]:
    """Return the columns whose values together name the series, as few as are needed."""
    if choices.ids:
        return [table.check_column(column, "--id-col") for column in choices.ids]
    frame = table.frame
    rows = len(frame)
    free = [c for c in table.columns if c not in taken and c != choices.target]
    named = [c for name in _ID_NAMES for c in free if c.lower() == name]
    text = [column for column in free if _is_name_column(table, column)]
    candidates = [
        c for c in dict.fromkeys([*named, *text]) if rows == 1 or frame[c].nunique() < rows
    ]
    dates = encode(times)
    if not count_repeats([dates]):
        # Dates that never repeat are one series, unless a column says otherwise by its name.
        return candidates[:1] if candidates and candidates[0] in named else []
    codes = {c: encode(table.text(c)) for c in candidates}
    for column in candidates:
        if not count_repeats([dates, codes[column]]):
            return [column]
    chosen = _choose_columns(dates, codes)
    if count_repeats([dates, *(codes[c] for c in chosen)]) > MANY_REPEATS * rows:
        numbers = _find_whole_numbers(table, free, candidates)
        codes |= {c: encode(table.text(c)) for c in numbers}
        more = _choose_columns(dates, {c: codes[c] for c in (*chosen, *numbers)})
        keys = [codes[c] for c in more]
        if not count_repeats([dates, *keys]) and rows >= _FEWEST_ROWS * _count_distinct(keys):
            chosen = more
    return sorted(chosen, key=table.columns.index)


def _choose_columns(dates: Ints, codes: dict[str, Ints]) -> list[str]:
    """Return columns that tell rows of the same date apart, without those that add nothing.

    Columns that would leave hardly a row for a series and date, as numbers of receipts, are out.
    """
    chosen: list[str] = []
    left = count_repeats([dates])
    for column in codes:
        keys = [codes[c] for c in (*chosen, column)]
        now = count_repeats([dates, *keys])
        full = _count_distinct(keys) * _count_distinct([dates])
        if now < left and len(dates) >= _FEWEST_FILLED * full:
            chosen, left = [*chosen, column], now
    for column in list(chosen):  # leave out what the others say already
        rest = [c for c in chosen if c != column]
        if rest and count_repeats([dates, *(codes[c] for c in rest)]) == left:
            chosen = rest
    return chosen


def _find_whole_numbers(table: Table, free: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return columns of whole numbers that may name series: not those of values, hours or years."""
    whole = [
        c
        for c in free
        if c not in others
        and table.frame[c].dtype.kind in "iu"
        and not (is_value_name(c) or is_time_name(c) or mentions_time(c))
    ]
    values = [c for c in free if c not in {*whole, *others} and is_number_column(table, c)]
    # Something must be left to forecast: the last column, as in most files.
    return whole if values else whole[:-1]


def _is_name_column(table: Table, column: str) -> bool:
    """Tell whether a column is text that is no number, or numbers with leading zeros."""
    cells = table.frame[column]
    if not is_text(cells):
        return False
    zeros = first_cells(cells, _SAMPLE).astype(str).str.match(r"0\d")
    return bool(zeros.any()) or not is_number_column(table, column)


def make_ids(table: Table, columns: Sequence[str]) -> pd.Categorical[str]:
    """Join columns to the names of series, in the order in which the names appear."""
    joint = np.zeros(len(table.frame), dtype=np.int64)
    for column in columns:
        cells = table.text(column)
        missing = np.flatnonzero(cells.isna())
        if missing.size:
            raise CommandError(
                f"{table.locate(int(missing[0]), column)}: the name of the series is missing; fill "
                "it in, or choose another column with --id-col"
            )
        codes, distinct = pd.factorize(cells)
        joint = encode(joint * len(distinct) + codes)
    first = np.flatnonzero(np.diff(np.maximum.accumulate(joint), prepend=-1))
    parts = [table.text(column).iloc[first] for column in columns]
    names = ["/".join(cells) for cells in zip(*parts, strict=True)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise CommandError(f"{table.name}: two series are called '{twice}'; rename one")
    return pd.Categorical.from_codes(joint, categories=pd.Index(names))


def encode(values: npt.NDArray[Any] | pd.Series[Any]) -> Ints:
    """Number the distinct values in the order in which they appear."""
    return pd.factorize(values)[0].astype(np.int64)


def count_repeats(keys: Sequence[Ints]) -> int:
    """Count the rows whose keys an earlier row has, too."""
    return len(keys[0]) - _count_distinct(keys)


def _count_distinct(keys: Sequence[Ints]) -> int:
    """Count the different combinations of keys."""
    if not keys:
        return 1
    joint, most = np.zeros(len(keys[0]), dtype=np.int64), 1
    for key in keys:
        n = int(key.max(initial=0)) + 2  # missing ones are -1
        joint, most = joint * n + key + 1, most * n
        if most > _TABLE_SIZE * len(joint):
            joint = encode(joint)
            most = int(joint.max(initial=-1)) + 1
    seen = np.zeros(most, dtype=bool)
    seen[joint] = True
    return int(seen.sum())
