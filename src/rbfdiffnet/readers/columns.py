"""Which columns of a table hold dates, whole or in parts, names of series and values."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rbfdiffnet.readers.dates import (
    TIME_UNITS,
    find_month,
    fold_text,
    mentions_time,
    mentions_weeks,
    parse_times,
    split_words,
)
from rbfdiffnet.readers.keys import count_distinct, count_repeats, encode
from rbfdiffnet.readers.numbers import parse_numbers
from rbfdiffnet.readers.table import NAMELESS, Table, first_cells, is_text
from rbfdiffnet.support.arrays import Ints
from rbfdiffnet.support.checks import CommandError

NONE = "none"  # what the user says where no column names series, or no column has dates
MANY_REPEATS = 0.1  # share of repeated dates from which on there must be several series
_MINUTES = 60  # of an hour
_ROUNDED = 0.011  # hours that clocks with two decimals may be off by
_SAMPLE = 200  # cells that tell what a column is
_FEWEST_STEPS = 3  # columns named by dates
_FEWEST_FILLED = 0.02  # rows for each series and date, where columns name series together
_FEWEST_ROWS = 3  # for each series, where numbers name the series
_TIME_NAMES = (
    *("ds", "date", "datetime", "timestamp", "time", "datum", "fecha"),
    *(word for words in TIME_UNITS.values() for word in words),
    *("period", "zeit", "ts", "epoch", "unixtime", "unix_time", "t", "step", "d"),
)
_CLOCK_NAMES = ("hour", "hr", "stunde", "uhrzeit", "heure", "hora", "ora", "uur", "time", "zeit")
_TIME_PART_NAMES = (
    *("hour", "minute", "second", "stunde", "uhrzeit", "hr", "weekday", "wochentag", "dow", "doy"),
    *("kw", "quartal", "yr", "mon", "yyyy", "mm", "dd", "hh"),
)
_VALUE_NAMES = (
    *("y", "value", "values", "target", "sales", "sold", "demand", "quantity", "qty", "units"),
    *("amount", "close", "volume", "count", "counts", "menge", "umsatz", "absatz", "wert"),
)
# Labels of rows are whole or in order; those with the other names count the rows.
_LABEL_NAMES = ("rownames", "rowname", "rowid", "rownumber", "rownum", "rowno", "rownr")
_COUNTER_NAMES = (
    *("x", "index", "idx", "id", "#", "row", "rows", "no", "nr", "num", "number", "n", "obs"),
    *("observation", "t", "i", "counter", "seq", "sequence", "sno", "srno", "serial", "lfdnr"),
)
_KEY_WORDS = {"id", "key", "code", "nr", "no", "number", "zip", "plz", "postcode"}
_KEY_WORDS |= {"lat", "lon", "lng", "long", "latitude", "longitude"}
_ID_NAMES = (
    *("unique_id", "id", "series_id", "series", "item_id", "item", "sku", "product", "product_id"),
    *("store", "store_id", "shop", "key", "name", "artikel", "filiale"),
)
_COUNTED_NAME = re.compile(r"([A-Za-z _-]*)\d+")
CLOCK = r"\d{1,3}:\d\d(:\d\d)?([.,]\d+)?( ?[AaPp][Mm])?"
_NUMBER_WITH_UNIT = r"[-+]?\d[\d.,' ]*[^\d\s.,]+|[^\d\s.,A-Za-z-]\s?\d[\d.,' ]*"


@dataclass(frozen=True)
class ColumnChoices:
    """What the user said about the columns; what is left open is guessed.

    `layout` is "long", "wide" or "rows"; `ids`, `time` (one, or several with parts of the dates)
    and `target` (one, or several series) are columns. `ids` of "none" mean one series, a `time` of
    "none" means that rows are in the order of time. `order` is "dmy", "mdy" or "ymd"; `repeats`,
    "sum" or "mean", joins rows of the same series and date. `groups` are columns that say to which
    groups a series belongs, `past` inputs that are known only afterwards.
    """

    layout: str | None = None
    ids: Sequence[str] = ()
    time: Sequence[str] = ()
    target: Sequence[str] = ()
    order: str | None = None
    repeats: str | None = None
    groups: Sequence[str] = ()
    past: Sequence[str] = ()

    @property
    def has_one_series(self) -> bool:
        """Whether the user said that no column names series."""
        return [*self.ids] == [NONE]

    @property
    def has_row_order(self) -> bool:
        """Whether the user said that no column has dates."""
        return [*self.time] == [NONE]

    def find_columns(self, table: Table) -> ColumnChoices:
        """Return the same with the names that the table has, or raise where it has none."""

        def find(names: Sequence[str], option: str) -> list[str]:
            if [*names] == [NONE] and option != "--target-col":
                return [NONE]
            return [table.find_column(name, option) for name in names]

        return replace(
            self,
            ids=find(self.ids, "--id-col"),
            time=find(self.time, "--time-col"),
            target=find(self.target, "--target-col"),
        )


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


def has_numbers_or_nothing(table: Table, column: str) -> bool:
    """Tell whether a column is mostly numbers, or empty."""
    return is_number_column(table, column) or bool(table.frame[column].isna().all())


def is_measure(table: Table, column: str) -> bool:
    """Tell whether a column has numbers that name nothing: with decimals or marks of thousands."""
    cells = table.frame[column]
    if is_text(cells):
        _, bad = parse_numbers(table, column)
        return not (len(bad) or is_name_column(table, column))
    return cells.dtype.kind == "f" and _read_whole_numbers(cells.dropna()) is None


def has_units(table: Table, column: str) -> bool:
    """Tell whether a column is mostly numbers with units, as 12 EUR and 7 %."""
    if not is_text(table.frame[column]):
        return False
    cells = first_cells(table.text(column), _SAMPLE)
    return bool(cells.str.fullmatch(_NUMBER_WITH_UNIT).mean() > 0.5)


# Rows that are counted -------------------------------------------------------------------------


def find_counters(table: Table) -> list[str]:
    """Return the columns that only count or label the rows, by their names and cells."""
    found = []
    for column in table.columns:
        cells, word = table.frame[column], _fold_name(column)
        if word in _LABEL_NAMES and _labels_rows(cells):
            found.append(column)
        elif NAMELESS.fullmatch(column) or word in (*_LABEL_NAMES, *_COUNTER_NAMES):
            numbers = _read_whole_numbers(cells)
            if numbers is not None and _counts_rows(numbers):
                found.append(column)
    return found


def _labels_rows(cells: pd.Series[Any]) -> bool:
    """Tell whether cells are different numbers, whole or in order: others are values."""
    if cells.dtype.kind not in "iuf" or not cells.is_unique:
        return False
    ordered = cells.is_monotonic_increasing or cells.is_monotonic_decreasing
    return ordered or _read_whole_numbers(cells) is not None


def is_label_name(column: str) -> bool:
    """Tell whether a column without a name, or with one like `rownames`, labels the rows."""
    return NAMELESS.fullmatch(column) is not None or _fold_name(column) in _LABEL_NAMES


def _fold_name(column: str) -> str:
    """Return a name in small letters, without the marks inside of it."""
    return re.sub(r"[\s._:-]", "", fold_text(column))


def _read_whole_numbers(cells: pd.Series[Any]) -> Ints | None:
    """Return the numbers of a column; None where one is missing, not whole or huge."""
    if cells.dtype.kind not in "iuf" or cells.isna().any():
        return None
    values = cells.to_numpy()
    whole = (values == np.rint(values)) & (np.abs(values.astype(np.float64)) < 2.0**53)
    return values.astype(np.int64) if np.all(whole) else None


def _counts_rows(numbers: Ints, *, restarts: bool = False) -> bool:
    """Tell whether numbers go up or down by one from row to row, perhaps from the start again."""
    steps = np.diff(numbers)
    if np.all(steps == 1) or np.all(steps == -1):
        return True
    again = numbers[1:][steps != 1]
    return restarts and bool((again == numbers[0]).all()) and _FEWEST_ROWS * len(again) < len(steps)


def _restarts(table: Table, column: str) -> bool:
    """Tell whether a column counts the rows of each series, by its name and cells."""
    if _fold_name(column) not in (*_LABEL_NAMES, *_COUNTER_NAMES):
        return False
    numbers = _read_whole_numbers(table.frame[column])
    return numbers is not None and _counts_rows(numbers, restarts=True)


# Dates and values -----------------------------------------------------------------------------


def find_time_column(table: Table, choices: ColumnChoices) -> str | None:
    """Return the column of dates: the chosen one, one with a usual name, or one of dates.

    A column that counts steps is taken where no dates have as many different cells.
    """
    if choices.time:
        return None if choices.has_row_order else choices.time[0]
    frame = table.frame
    kinds = frame.dtypes
    dates = [column for column in table.columns if kinds[column].kind == "M"]
    named = [c for name in _TIME_NAMES for c in table.columns if fold_text(c) == name]
    text = [column for column in table.columns if is_text(frame[column])]
    labels = [column for column in table.columns if is_label_name(column)]
    taken = {*choices.ids, *choices.target}
    steps = None
    for column in dict.fromkeys([*dates, *named, *text, *labels]):
        if column in taken:
            continue
        cells = first_cells(table.date_cells(column), _SAMPLE).reset_index(drop=True)
        times = parse_times(cells, choices.order, weeks=mentions_weeks(column))
        if not len(cells) or not (len(times.bad) <= len(cells) / 2 or times.hint):
            continue
        if times.is_integer:
            steps = steps or (column if column in named else None)
        elif steps is None or frame[column].nunique() >= frame[steps].nunique():
            return column
    return steps


def _find_likely_columns(table: Table, columns: Sequence[str]) -> list[str]:
    """Return those of some columns that may be forecast, the best ones only.

    Numbers that count the rows of each series, parts of dates (`year`, `weeks_reporting`) and keys
    (`zip`) are taken only where nothing else is there, flags of 0 and 1 where nothing but these is.
    """
    numbers = [c for c in columns if is_number_column(table, c)]
    values = [c for c in numbers if not (mentions_time(c) or _is_part_name(c) or _is_key(c))]
    values = [c for c in values if not _restarts(table, c)]
    return [c for c in values if not _is_flag(table.frame[c])] or values or numbers


def _is_key(column: str) -> bool:
    """Tell whether the last word of a name is one for keys: `store_id`, `zip`, `Artikel-Nr`."""
    return bool(_KEY_WORDS.intersection(split_words(column)[-1:]))


def _is_flag(cells: pd.Series[Any]) -> bool:
    """Tell whether a column has no numbers but 0 and 1."""
    return cells.dtype.kind in "iufb" and bool(cells.dropna().isin([0, 1]).all())


def is_date_part(table: Table, column: str) -> bool:
    """Tell whether a column has parts of dates, as `year` and `day_of_month`, by name and cells.

    These are whole numbers or, under the name of clocks, clocks written as numbers.
    """
    cells = table.frame[column].dropna()
    if _read_whole_numbers(cells) is not None:
        return _is_part_name(column)
    return is_clock_name(column) and are_clocks(cells)


def is_clock_name(column: str) -> bool:
    """Tell whether a column has one of the usual names of hours and clocks."""
    return fold_text(column) in _CLOCK_NAMES


def are_clocks(cells: pd.Series[Any]) -> bool:
    """Tell whether numbers are clocks: hours and minutes, as 8.30, or parts of a day's hours.

    The latter are steps of the same length over all of a day, as 0.25, 0.5, ..., 24.
    """
    if cells.dtype.kind != "f" or not len(cells) or not cells.between(0, 24).all():
        return False
    values = np.unique(cells.to_numpy(np.float64))
    steps, minutes = np.diff(values), 100 * (values % 1)
    if np.allclose(minutes, np.rint(minutes), atol=1e-6) and minutes.max() < _MINUTES - 0.5:
        return True
    return len(steps) > 1 and bool(np.allclose(steps, 24 / len(values), atol=_ROUNDED))


def _is_part_name(column: str) -> bool:
    words = [word for word in split_words(column) if word != "of"]
    return bool(words) and all(len(word) > 1 and is_time_name(word) for word in words)


def find_target_column(
    table: Table, choices: ColumnChoices, taken: Collection[str], counters: Collection[str] = ()
) -> tuple[str, str]:
    """Return the column of values, and how it was chosen where others are as likely.

    It is the chosen one, one with a usual name, or the first that may be forecast; one of the
    `counters` only where there are no other columns.
    """
    if choices.target:
        return choices.target[0], ""
    free = [column for column in table.columns if column not in taken]
    free = [column for column in free if column not in counters] or free
    named = [c for name in _VALUE_NAMES for c in free if c.lower() == name]
    likely = _find_likely_columns(table, free)
    if not (named or likely) and len(free) == 1:
        likely = free  # its first cell that is no number will be named
    if not (named or likely):
        raise CommandError(
            f"{table.name} has no column of numbers (columns: {table.list_columns()}); add one, or "
            "name it with --target-col"
        )
    target = (named or likely)[0]
    if not set(likely) - {target}:
        return target, ""
    how = "by its name" if named else f"the first of {len(likely)} columns of numbers"
    return target, f"{how}; another: --target-col"


def find_step_columns(table: Table, *, dates_only: bool = False) -> list[str]:
    """Return the columns of numbers that are named like dates or counted, as d_1, d_2, ...

    With `dates_only`, counted ones do not count. Nothing is returned where there are fewer such
    columns than others.
    """
    names = table.columns
    dated = [name for name in names if _is_date_name(name)]
    counted: dict[str, list[str]] = {}
    for name in names:
        if not dates_only and (match := _COUNTED_NAME.fullmatch(name)):
            counted.setdefault(match[1], []).append(name)
    for group in (dated, max(counted.values(), key=len, default=[])):
        if len(group) < max(_FEWEST_STEPS, len(names) - len(group)):
            continue
        steps = [name for name in group if has_numbers_or_nothing(table, name)]
        times = parse_times(pd.Series(steps, dtype=object))
        sound = not (len(times.bad) or times.values.duplicated().any())
        enough = len(steps) >= max(_FEWEST_STEPS, len(names) - len(steps))
        if enough and sound and not (group is dated and times.is_integer):
            return steps
    return []


def _is_date_name(column: str) -> bool:
    """Tell whether a name may be a date: it has a month and a number, or numbers as dates have."""
    if any(map(find_month, split_words(column))):
        return re.search(r"\d", column) is not None
    is_counted = _COUNTED_NAME.fullmatch(column) is not None
    return not is_counted and re.search(r"\d{4}|\d[./-]\d", column) is not None


# Names of series ------------------------------------------------------------------------------


def find_id_columns(
    table: Table, times: npt.NDArray[Any], choices: ColumnChoices, taken: Sequence[str]
) -> list[str]:
    """Return the columns whose values together name the series, as few as are needed."""
    if choices.ids:
        return [] if choices.has_one_series else [*choices.ids]
    frame = table.frame
    rows = len(frame)
    free = [c for c in table.columns if c not in {*taken, *choices.target}]
    named = [c for name in _ID_NAMES for c in free if c.lower() == name]
    text = [column for column in free if is_name_column(table, column)]
    candidates = [
        c for c in dict.fromkeys([*named, *text]) if rows == 1 or frame[c].nunique() < rows
    ]
    dates = encode(times)
    if not count_repeats([dates]):
        # Dates that never repeat are one series, unless a column says otherwise by its name.
        return candidates[:1] if candidates and candidates[0] in named else []
    if count_repeats([dates]) <= MANY_REPEATS * rows:  # text that is not always there is a remark
        candidates = [c for c in candidates if c in named or frame[c].notna().all()]
    codes = {c: encode(table.text(c)) for c in candidates}
    for column in candidates:
        if not count_repeats([dates, codes[column]]):
            return [column]
    chosen = _choose_columns(dates, codes)
    if count_repeats([dates, *(codes[c] for c in chosen)]) > MANY_REPEATS * rows:
        numbers = _find_name_numbers(table, free, candidates)
        codes |= {c: encode(table.text(c)) for c in numbers}
        more = _choose_columns(dates, {c: codes[c] for c in (*chosen, *numbers)})
        keys = [codes[c] for c in more]
        if not count_repeats([dates, *keys]) and rows >= _FEWEST_ROWS * count_distinct(keys):
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
        full = count_distinct(keys) * count_distinct([dates])
        if now < left and len(dates) >= _FEWEST_FILLED * full:
            chosen, left = [*chosen, column], now
    for column in list(chosen):  # leave out what the others say already
        rest = [c for c in chosen if c != column]
        if rest and count_repeats([dates, *(codes[c] for c in rest)]) == left:
            chosen = rest
    return chosen


def _find_name_numbers(table: Table, free: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return columns of numbers, whole or with a unit, that may name series.

    Those of values, hours or years do not.
    """
    whole = [
        c
        for c in free
        if c not in others
        and (table.frame[c].dtype.kind in "iu" or c in table.units)
        and not (is_value_name(c) or is_time_name(c) or mentions_time(c))
    ]
    values = [c for c in free if c not in {*whole, *others} and not is_clock_name(c)]
    values = [c for c in values if is_number_column(table, c)]
    # Something must be left to forecast: the last column, as in most files.
    return whole if values else whole[:-1]


def is_name_column(table: Table, column: str) -> bool:
    """Tell whether a column is text, but no numbers, clocks or dates, or has leading zeros."""
    cells = table.frame[column]
    if not is_text(cells):
        return False
    words = first_cells(cells, _SAMPLE).astype(str)
    dates = parse_times(words.reset_index(drop=True))
    if len(words) and (
        words.str.fullmatch(CLOCK).all() or not (dates.is_integer or len(dates.bad))
    ):
        return False
    return bool(words.str.match(r"0\d").any()) or not is_number_column(table, column)
