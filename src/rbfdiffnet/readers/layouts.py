"""The layouts of tables: series below each other, in columns, in rows, or in crossed dates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rbfdiffnet.readers.columns import (
    MANY_REPEATS,
    NONE,
    ColumnChoices,
    find_counters,
    find_id_columns,
    find_step_columns,
    find_target_column,
    find_time_column,
    has_units,
    is_date_part,
    is_id_name,
    is_label_name,
    is_measure,
    is_name_column,
    is_number_column,
    is_time_name,
    is_value_name,
)
from rbfdiffnet.readers.dates import ParsedTimes, mentions_weeks, parse_times
from rbfdiffnet.readers.keys import encode, make_ids, read_groups
from rbfdiffnet.readers.numbers import missing_notes, negative_notes, parse_numbers, read_numbers
from rbfdiffnet.readers.parts import CrossTable, find_cross_table, find_dates
from rbfdiffnet.readers.regularity import is_monotonic
from rbfdiffnet.readers.repeats import find_copies, join_repeats, note_repeats, refuse_repeats
from rbfdiffnet.readers.table import (
    NAMELESS,
    Layout,
    LongLayout,
    MatrixLayout,
    Table,
    is_text,
    quote_names,
    shrink_floats,
)
from rbfdiffnet.readers.totals import drop_total_rows, drop_totals, is_total
from rbfdiffnet.support.checks import CommandError

_ORDER = "the order of the rows"  # the dates of a table that has none
_FEWEST_DATES = 3  # rows that are dates beside columns named by dates
_MOST_FORECAST = 3  # columns that are named where it is said what is forecast
_MOST_UNUSED = 8  # columns without use that a note names


@dataclass(frozen=True, eq=False)
class ParsedTable:
    """Series, from which columns they were read, what was assumed, and the groups of series.

    `target` names the columns that are forecast; it is empty where columns are dates.
    """

    series: Layout
    source: str
    target: str = ""
    notes: tuple[str, ...] = ()
    groups: pd.DataFrame | None = None


def parse_table(table: Table, choices: ColumnChoices, inputs: Sequence[str] = ()) -> ParsedTable:
    """Find the series in a table; `inputs` are further columns to keep, of long tables only."""
    choices = choices.find_columns(table)
    _check_choices(choices, inputs)
    layout = choices.layout
    assumed = list[str]()
    is_open = layout is None and not (choices.target or inputs)
    if is_open and not choices.time:
        cross = find_cross_table(table, [c for c in table.columns if is_total(c)])
        if cross is not None:
            return _parse_cross_table(table, choices, cross)
        if steps := find_step_columns(table, dates_only=True):
            dates = _find_row_dates(table, choices, steps)
            if dates is None:
                return _parse_rows(table, choices, steps)
            assumed = [
                f"Rows are the dates in '{dates}', though columns are named by dates, too "
                "(otherwise: --layout rows)"
            ]
    time, joined = None, list[str]()
    if layout != "rows":
        table, time, joined = find_dates(table, choices, inputs)
    if layout == "rows" or (is_open and time is None and not choices.time):
        steps = find_step_columns(table)
        if steps and (layout == "rows" or _are_steps(table, steps)):
            return _parse_rows(table, choices, steps)
        if layout == "rows":
            raise CommandError(
                f"{table.name} has no columns named by dates or numbers (columns: "
                f"{table.list_columns()}), which --layout rows needs"
            )
    if time is None:
        table, time, joined = _count_rows(table, choices, inputs)
    table, left_out = drop_totals(table, time)
    parsed = _parse_dated_rows(table, choices, time, inputs)
    return replace(parsed, notes=(*assumed, *joined, *left_out, *parsed.notes))


def _find_row_dates(table: Table, choices: ColumnChoices, steps: Sequence[str]) -> str | None:
    """Return a column with another date in most rows, beside columns that are named by dates.

    Dates are attributes, as those of a launch, where other columns name each row. A column that
    counts the rows names none if the dates are in order.
    """
    time, frame = find_time_column(table, choices), table.frame
    if time is None or time in steps or (choices.ids and not choices.has_one_series):
        return None
    if len(frame) < _FEWEST_DATES or frame[time].duplicated().mean() > MANY_REPEATS:
        return None
    times = parse_times(table.date_cells(time), choices.order, weeks=mentions_weeks(time))
    numbers = frame[time].dtype.kind in "iuf" and not is_time_name(time)
    broken = len(times.bad) > len(frame) / 2 and not times.hint
    if numbers or times.is_integer or broken:
        return None
    counters = find_counters(table) if is_monotonic(times.values) else []
    others = {*table.columns} - {time, *steps, *counters}
    names = [c for c in others if is_id_name(c) or is_name_column(table, c)]
    return time if not names or frame.duplicated(names).any() else None


def _check_choices(choices: ColumnChoices, inputs: Sequence[str]) -> None:
    """Refuse a column that is named by two options, and columns that a layout has no place for."""
    if inputs and choices.layout in ("wide", "rows"):
        option = _option(inputs[0], choices.past)
        raise CommandError(
            f"{option} {inputs[0]}: with --layout {choices.layout} no column is an input; give "
            "inputs in a file of their own"
        )
    unused = {
        "wide": {"--id-col": () if choices.has_one_series else choices.ids},
        "rows": {"--time-col": choices.time, "--target-col": choices.target},
    }
    for option, columns in unused.get(choices.layout or "", {}).items():
        if columns:
            raise CommandError(
                f"{option} {' '.join(columns)}: with --layout {choices.layout} there is no such "
                f"column; leave out one of the two"
            )
    if len(choices.target) > 1 and (choices.layout in ("long", "rows") or choices.ids):
        raise CommandError(
            f"--target-col {' '.join(choices.target)}: several columns are series of a table with "
            "a column for each series; name one of them, or leave out --id-col and --layout"
        )
    named = [*choices.ids, *choices.time, *choices.target]
    for column in named:
        if named.count(column) > 1 and column != NONE:
            raise CommandError(
                f"column '{column}' cannot be two of --id-col, --time-col and --target-col; name "
                "different ones"
            )


def _are_steps(table: Table, steps: Sequence[str]) -> bool:
    """Tell whether counted columns are steps: beside names of series, or not fewer than rows."""
    counters = find_counters(table)
    names = [c for c in table.columns if c not in steps and (c not in counters or is_id_name(c))]
    return bool(names) or len(steps) >= len(table.frame)


def _count_rows(
    table: Table, choices: ColumnChoices, inputs: Sequence[str]
) -> tuple[Table, str, list[str]]:
    """Take the order of the rows as that of time, in a table without dates; raise where in doubt.

    Returns the table, its column of steps, and notes. Rows are counted in each series.
    """
    counters = find_counters(table)
    dates = find_time_column(table, replace(choices, time=())) if choices.time else None
    told = {*choices.ids, *choices.target, *choices.groups, *inputs, *counters, dates}
    others = [c for c in table.columns if c not in told and not is_label_name(c)]
    names = [c for c in others if is_id_name(c) or not is_number_column(table, c)]
    if names and not choices.ids:
        which = f"which columns name the series (--id-col {names[0]}, or --id-col {NONE} for one)"
        raise CommandError(
            f"--time-col {NONE}: rows of {table.name} may be of several series; say {which}"
            if choices.time
            else f"{table.name} has no column of dates (columns: {table.list_columns()}); add one, "
            f"or name it with --time-col; if rows are in the order of time, say {which}"
        )
    note = "Rows are taken in the order of time, oldest first"
    if not choices.time:
        note += ", since there are no dates (otherwise: --time-col)"
    ids = [] if choices.has_one_series else choices.ids
    whole = [c for c in counters if table.frame[c].dtype.kind in "iu"]
    if whole and not ids and set(counters).isdisjoint({*choices.target, *inputs}):
        return table, whole[0], [f"Rows are taken in the order of {whole[0]!r}"]
    codes = make_ids(table, ids).codes if ids else np.zeros(len(table.frame), dtype=np.int8)
    order = pd.Series(codes).groupby(codes).cumcount().to_numpy() + 1
    frame = table.frame.assign(**{_ORDER: order.astype(str).astype(object)})
    return table.with_frame(frame), _ORDER, [note]


def _parse_dated_rows(
    table: Table, choices: ColumnChoices, time: str, inputs: Sequence[str]
) -> ParsedTable:
    """Parse a table whose rows have dates: with a column for each series, or series by series."""
    check_inputs(
        inputs, {time: "the dates", **dict.fromkeys(choices.target, "the values")}, choices.past
    )
    layout = choices.layout
    times = _read_times(table, time, choices.order)
    stamps = times.values.to_numpy()
    counters = [c for c in find_counters(table) if c not in {*choices.ids, *choices.target}]
    taken = [time, *counters, *inputs]
    ids = [] if layout == "wide" else find_id_columns(table, stamps, choices, taken)
    free = [column for column in table.columns if column not in {time, *counters, *ids}]
    numbers = [c for c in free if is_number_column(table, c) or has_units(table, c)]
    numbers = [c for c in numbers if not is_date_part(table, c)] or numbers
    plain = len(numbers) > 1 and not any(map(is_value_name, numbers))
    repeated = times.values.duplicated().mean() > MANY_REPEATS
    told = choices.ids or choices.target or choices.groups or inputs
    several = layout is None and plain and not (ids or repeated or told)
    if layout == "wide" or len(choices.target) > 1 or several:
        return _parse_wide(table, choices, time, times, [*choices.target] or numbers)
    return _parse_long(table, choices, time, times, ids, inputs, counters)


def _option(column: str, past: Sequence[str]) -> str:
    """Return the option that names an input."""
    return "--past-exog" if column in past else "--exog"


def check_inputs(
    columns: Sequence[str], roles: Mapping[str | None, str], past: Sequence[str] = ()
) -> None:
    """Refuse inputs that have another role already, or the name of a column that has one."""
    for column in columns:
        option = _option(column, past)
        if column in roles:
            raise CommandError(
                f"{option} {column}: column '{column}' has {roles[column]} of the series; leave it "
                f"out of {option}"
            )
        if column in ("unique_id", "ds", "y"):
            raise CommandError(
                f"{option} {column}: no input can be called '{column}'; rename that column, or "
                f"leave it out of {option}"
            )


def _read_times(table: Table, column: str, order: str | None) -> ParsedTimes:
    """Parse a column of dates, or raise with the first cell that is no date."""
    cells = table.date_cells(column)
    times = parse_times(cells, order, weeks=mentions_weeks(column))
    if not len(times.bad):
        return times
    row = int(times.bad[0])
    cell = cells.iloc[row]
    where = f"{table.name}, {table.locate_row(row)}"
    if cell == column:
        raise CommandError(f"{where} repeats the names of the columns; remove it")
    if row == 0 and is_time_name(str(cell)):
        raise CommandError(
            f"{where} looks like the names of the columns ('{cell}'); remove the lines above it"
        )
    what = "the date is missing" if pd.isna(cell) else f"'{cell}' is not a date like the others"
    if times.hint:
        what = f"'{cell}' {times.hint}"
    raise CommandError(
        f"{table.locate(row, column)}: {what}; write dates as YYYY-MM-DD, remove the line if it "
        "is a total or a remark, or choose another column with --time-col"
    )


def _parse_long(
    table: Table,
    choices: ColumnChoices,
    time: str,
    times: ParsedTimes,
    ids: list[str],
    inputs: Sequence[str],
    counters: list[str],
) -> ParsedTable:
    """Parse a table with a row for each series and date."""
    used = {time, *ids, *inputs, *choices.groups}
    target, how = find_target_column(table, choices, used, counters)
    remedy = "choose another column with --target-col"
    values = shrink_floats(read_numbers(table, target, remedy))
    names = make_ids(table, ids) if ids else _repeat_name(target, len(values))
    columns: dict[str, Any] = {"unique_id": names, "ds": times.values.array, "y": values}
    columns |= {column: read_input(table, column, choices.past) for column in inputs}
    frame = pd.DataFrame(columns, copy=False)
    frame, repeats = join_repeats(table, choices, time, ids, frame)
    how = f" ({how})" if how else ""
    source = f"ds from {_name_time(time)}, y from '{target}'{how}{_name_ids(ids)}"
    if inputs:
        source += f", inputs from {', '.join(map(repr, inputs))}"
    notes = (*_make_notes(table, times, [target, *inputs], {*used, target}), *repeats)
    groups = read_groups(table, choices.groups, names)
    return ParsedTable(LongLayout.of(frame), source, f"'{target}'", notes, groups)


def _parse_wide(
    table: Table, choices: ColumnChoices, time: str, times: ParsedTimes, columns: list[str]
) -> ParsedTable:
    """Parse a table with a row for each date and a column for each series."""
    if not columns:
        raise CommandError(
            f"{table.name} has no column of numbers beside '{time}' (columns: "
            f"{table.list_columns()})"
        )
    values = _stack([read_numbers(table, c, "", columns) for c in columns])
    used = {time, *columns}
    notes = [*_note_broken_columns(table, used), *_make_notes(table, times, columns, used)]
    stamps = times.values
    again = stamps.duplicated().to_numpy()
    if again.any():
        if choices.repeats is None and again.mean() > MANY_REPEATS:
            frame = pd.DataFrame({"unique_id": 0, "ds": stamps.array})
            raise refuse_repeats(table, time, [], frame, again)
        copies = find_copies(table, again, choices.repeats)
        notes += note_repeats(table, again, copies, choices.repeats)
        groups = pd.DataFrame(values.T[~copies]).groupby(encode(stamps[~copies]), sort=False)
        joined = groups.sum(min_count=1) if choices.repeats == "sum" else groups.mean()
        values, stamps = joined.to_numpy().T, stamps[~again].reset_index(drop=True)
    order = np.argsort(stamps.to_numpy(), kind="stable")
    ascending = stamps.take(order).reset_index(drop=True)
    series = MatrixLayout(columns, ascending, values[:, order])
    ends = quote_names(columns) if len(columns) < 2 else f"'{columns[0]}' to '{columns[-1]}'"
    many = len(columns) > _MOST_FORECAST
    what = f"{len(columns):,} columns, {ends}" if many else quote_names(columns)
    guessed = "" if choices.layout or choices.target else "; fewer: --target-col"
    source = f"ds from {_name_time(time)}, series from columns {ends}"
    return ParsedTable(series, f"{source} (layout wide{guessed})", what, tuple(notes))


def _parse_rows(table: Table, choices: ColumnChoices, steps: list[str]) -> ParsedTable:
    """Parse a table with a row for each series and a column for each date."""
    times = parse_times(pd.Series(steps, dtype=object), choices.order)
    if len(times.bad):
        raise CommandError(
            f"{table.name}: column '{steps[int(times.bad[0])]}' is not named by a date like the "
            "others" + (f" (--dates {choices.order})" if choices.order else "") + "; rename it as "
            "YYYY-MM-DD"
        )
    table, ids, left_out = _find_row_names(table, choices, steps)
    if ids:
        names = make_ids(table, ids).tolist()
    else:
        names = [f"row {i + 1}" for i in range(len(table.frame))]
    again = pd.Series(names).duplicated().to_numpy()
    if again.any():
        row = int(np.argmax(again))
        raise CommandError(
            f"{table.name}, {table.locate_row(row)}: there is a series '{names[row]}' already; "
            "name the columns that tell the series apart with --id-col"
        )
    order = np.argsort(times.values.to_numpy(), kind="stable")
    columns = [steps[i] for i in order.tolist()]
    values = _stack([read_numbers(table, c, "", columns) for c in columns]).T
    named = quote_names(ids) or "the numbers of the rows"
    source = f"ids from {named}, steps from columns '{columns[0]}' to '{columns[-1]}' (layout rows)"
    ascending = times.values.take(order).reset_index(drop=True)
    series = MatrixLayout(names, ascending, values, open_end=times.is_integer)
    groups = read_groups(table, choices.groups, pd.Categorical(names, categories=names))
    notes = _make_notes(table, times, columns, {*steps, *ids, *choices.groups})
    return ParsedTable(series, source, notes=(*left_out, *notes), groups=groups)


def _find_row_names(
    table: Table, choices: ColumnChoices, steps: Sequence[str]
) -> tuple[Table, list[str], list[str]]:
    """Find the columns that name the rows; return them, the table without totals, and notes.

    Columns of totals and of numbers that are not whole name rows only where nothing else does.
    """
    counters = [column for column in find_counters(table) if not is_id_name(column)]
    others = [c for c in table.columns if c not in {*steps, *counters}]
    values = [c for c in others if is_total(c) or (is_measure(table, c) and not is_id_name(c))]
    names = [c for c in others if c not in values]
    told = [] if choices.has_one_series else [*choices.ids]
    table, notes = drop_total_rows(table, told or names)
    frame = table.frame
    unique = [c for c in names if frame[c].is_unique]
    ids = sorted(unique, key=lambda c: not is_id_name(c))[:1]
    if choices.ids or not ids:
        taken = [*steps, *counters, *values]
        ids = find_id_columns(table, np.zeros(len(frame)), choices, taken)
    if not choices.ids and (not ids or frame.duplicated(ids).any()):
        ids = counters[:1] or [c for c in values if frame[c].is_unique][:1] or ids
    return table, ids, notes


def _parse_cross_table(table: Table, choices: ColumnChoices, cross: CrossTable) -> ParsedTable:
    """Parse a table whose rows have one part of the dates and whose columns have the other."""
    totals = [column for column in table.columns if is_total(column)]
    used = [cross.rows, *cross.columns]
    parts = np.array(cross.dates[0])
    ids = find_id_columns(table, parts, choices, [*used, *totals, *find_counters(table)])
    names = make_ids(table, ids) if ids else _repeat_name("value", len(parts))
    again = pd.DataFrame({"id": names, "part": parts}).duplicated().to_numpy()
    if again.any():
        row = int(np.argmax(again))
        raise CommandError(
            f"{table.locate(row, cross.rows)}: there is a row of '{table.text(cross.rows)[row]}' "
            "already; name the columns that tell the series apart with --id-col"
        )
    cells = _stack([read_numbers(table, c, "", cross.columns) for c in cross.columns])
    texts = np.concatenate(cross.dates)
    times = parse_times(pd.Series(texts, dtype=object))
    known = ~np.isnan(cells.ravel())
    wrong = times.bad[known[times.bad]]
    if wrong.size:  # as week 53 of a year that has none
        place, row = divmod(int(wrong[0]), len(parts))
        raise CommandError(
            f"{table.locate(row, cross.columns[place])}: there is no {texts[wrong[0]]}; leave the "
            "cell empty"
        )
    sound = np.delete(np.arange(len(texts)), times.bad)
    distinct, steps = np.unique(times.values.to_numpy()[sound], return_inverse=True)
    values = np.full((len(names.categories), len(distinct)), np.nan)
    values[np.tile(names.codes, len(cells))[sound], steps] = cells.ravel()[sound]
    source = f"ds from '{cross.rows}' and columns '{cross.columns[0]}' to '{cross.columns[-1]}'"
    series = MatrixLayout(names.categories.tolist(), pd.Series(distinct), values)
    notes = _make_notes(table, times, cross.columns, {*used, *ids})
    first = f"{cross.description}, the first date is {cross.dates[0][0]} (otherwise: --layout)"
    return ParsedTable(series, f"{source}{_name_ids(ids)}", notes=(first, *notes))


def read_input(table: Table, column: str, past: Sequence[str] = ()) -> Any:
    """Read a column as numbers, or as text that is empty where cells are missing."""
    cells = table.frame[column]
    if is_text(cells) and not is_number_column(table, column):
        return cells.astype(object).fillna("").astype(str).array
    return read_numbers(table, column, f"leave it out of {_option(column, past)}", gaps=False)


def _repeat_name(name: str, n: int) -> pd.Categorical[str]:
    return pd.Categorical.from_codes([0] * n, categories=pd.Index([name]))


def _name_time(time: str) -> str:
    return time if time == _ORDER else f"'{time}'"


def _name_ids(ids: Sequence[str]) -> str:
    return f", ids from {quote_names(ids)}" if ids else ""


def _stack(columns: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Stack columns without making small numbers large."""
    kind = np.result_type(*(column.dtype for column in columns))
    table = np.empty((len(columns), len(columns[0])), dtype=kind)
    for row, column in zip(table, columns, strict=True):
        row[:] = column
    return table


def _note_broken_columns(table: Table, used: set[str]) -> list[str]:
    """Name columns that have numbers, but more text."""
    notes = []
    for column in table.columns:
        if column in used or not is_text(table.frame[column]):
            continue
        values, bad = parse_numbers(table, column)
        if np.isfinite(values).any() and len(bad):
            row = int(bad[0])
            notes.append(
                f"Column '{column}' is no series: {len(bad):,} of its cells are no numbers, the "
                f"first is '{table.text(column).iloc[row]}' on {table.locate_row(row)}"
            )
    return notes


def _make_notes(
    table: Table, times: ParsedTimes, numbers: Sequence[str], used: set[str]
) -> tuple[str, ...]:
    """Say what was assumed about dates and numbers, and which columns were not used."""
    notes = [times.note] if times.note else []
    notes += table.mark_notes(numbers)
    notes += missing_notes(table, numbers) + negative_notes(table, numbers)
    counters = [c for c in find_counters(table) if NAMELESS.fullmatch(c)]
    unused = [column for column in table.columns if column not in {*used, *counters}]
    if unused:
        more = len(unused) - _MOST_UNUSED
        rest = f" and {more} more" if more > 0 else ""
        notes.append(f"Not used: {quote_names(unused[:_MOST_UNUSED])}{rest}")
    return tuple(notes)
