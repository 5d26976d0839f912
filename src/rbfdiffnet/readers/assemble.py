"""Bring a table of any layout to series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.readers.dates import Times, parse_times
from rbfdiffnet.readers.errors import CommandError
from rbfdiffnet.readers.ids import MANY_REPEATS, find_ids, ids_of, is_id_name
from rbfdiffnet.readers.inputs import read_input
from rbfdiffnet.readers.layouts import LongLayout, MatrixLayout, lean
from rbfdiffnet.readers.numbers import missing_note, negative_note, parse_numbers, read_numbers
from rbfdiffnet.readers.parts import Spread, find_spread, join_parts
from rbfdiffnet.readers.repeats import join_repeats, joined_note, repeats_message
from rbfdiffnet.readers.roles import (
    ColumnChoices,
    find_target,
    has_units,
    is_number_column,
    is_time_name,
    is_value_name,
    step_columns,
)
from rbfdiffnet.readers.table import Table, text_cells
from rbfdiffnet.readers.totals import without_totals
from rbfdiffnet.readers.words import is_total, speaks_of_weeks

__all__ = ["ParsedTable", "assemble", "read_times"]


@dataclass(frozen=True, eq=False)
class ParsedTable:
    """Series, and how they were found in their table."""

    series: LongLayout | MatrixLayout
    source: str
    notes: tuple[str, ...] = ()


def assemble(table: Table, wanted: ColumnChoices, inputs: Sequence[str] = ()) -> ParsedTable:
    """Find the series in a table.

    Parameters
    ----------
    table : Table
    wanted : ColumnChoices
    inputs : sequence of str
        Further columns to keep; their layout is long.

    Returns
    -------
    ParsedTable

    Raises
    ------
    CommandError
        If there are none, with what is missing and the remedy.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers import ColumnChoices
    >>> from rbfdiffnet.readers.assemble import assemble
    >>> from rbfdiffnet.readers.table import Table, text_cells
    >>> frame = pd.DataFrame({"date": ["2024-01-01", "2024-01-02"], "a": [1, 2], "b": [3, 4]})
    >>> assemble(Table("a.csv", frame, ".", str), ColumnChoices()).source
    "ds from 'date', series from columns 'a' to 'b' (layout wide)"
    """
    layout = wanted.layout
    told = [column for column in (*wanted.ids, wanted.time, wanted.target) if column is not None]
    for column in told:
        if told.count(column) > 1:
            raise CommandError(
                f"column '{column}' cannot be two of --id-col, --time-col and --target-col; name "
                "different ones"
            )
    said = bool(wanted.ids or wanted.target or wanted.time or inputs)
    if layout is None and not (wanted.target or wanted.time or inputs):
        spread = find_spread(table, [c for c in table.columns if is_total(c)])
        if spread is not None:
            return _spread(table, wanted, spread)
        steps = step_columns(table, dates_only=True)  # beside them, dates are attributes
        if steps:
            return _rows(table, wanted, steps)
    time, joined = None, list[str]()
    if layout != "rows":
        table, time, joined = join_parts(table, wanted, inputs)
    if layout == "rows" or (layout is None and time is None and not (wanted.target or inputs)):
        steps = step_columns(table)
        if steps:
            return _rows(table, wanted, steps)
        if layout == "rows":
            raise CommandError(
                f"{table.name} has no columns named by dates or numbers (columns: "
                f"{table.listing()}), which --layout rows needs"
            )
    if time is None:
        raise CommandError(
            f"{table.name} has no column of dates (columns: {table.listing()}); "
            "add one, or name it with --time-col"
        )
    table, totals = without_totals(table, time)
    times = read_times(table, time, wanted.order)
    stamps = times.values.to_numpy()
    ids = [] if layout == "wide" else find_ids(table, stamps, wanted, [time, *inputs])
    free = [column for column in table.columns if column not in {time, *ids}]
    numbers = [c for c in free if is_number_column(table, c) or has_units(table, c)]
    plain = len(numbers) > 1 and not any(map(is_value_name, numbers))
    repeated = times.values.duplicated().mean() > MANY_REPEATS
    only_time = said and not (wanted.ids or wanted.target or inputs)
    guess_wide = plain and not ids and not repeated and (not said or only_time)
    if layout == "wide" or (layout is None and guess_wide):
        built = _wide(table, wanted, time, times, numbers)
    else:
        built = _long(table, wanted, time, times, ids, inputs)
    return replace(built, notes=(*joined, *totals, *built.notes))


def read_times(table: Table, column: str, order: str | None) -> Times:
    """Read a column of dates, or name the first cell that is none.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.assemble import read_times
    >>> from rbfdiffnet.readers.table import Table, text_cells
    >>> frame = pd.DataFrame({"day": ["2024-01-01", "soon"]})
    >>> read_times(Table("a.csv", frame, ".", "row {}".format), "day", None)
    Traceback (most recent call last):
        ...
    rbfdiffnet.readers.errors.CommandError: a.csv, row 1, column 'day': 'soon' is not a date like...
    """
    import pandas as pd

    cells = table.dates(column)
    times = parse_times(cells, order, weeks=speaks_of_weeks(column))
    if len(times.bad):
        row = int(times.bad[0])
        cell = cells.iloc[row]
        what = "the date is missing" if pd.isna(cell) else f"'{cell}' is not a date like the others"
        where = f"{table.name}, {table.place(row)}"
        if cell == column:
            raise CommandError(f"{where} repeats the names of the columns; remove it")
        if row == 0 and is_time_name(str(cell)):
            raise CommandError(
                f"{where} looks like the names of the columns ('{cell}'); remove the lines above it"
            )
        if times.hint:
            what = f"'{cell}' {times.hint}"
        raise CommandError(
            f"{table.cell(row, column)}: {what}; write dates as YYYY-MM-DD, remove the line if it "
            "is a total or a remark, or choose another column with --time-col"
        )
    return times


def _long(
    table: Table,
    wanted: ColumnChoices,
    time: str,
    times: Times,
    ids: list[str],
    inputs: Sequence[str],
) -> ParsedTable:
    import pandas as pd

    target = find_target(table, wanted, [time, *ids, *inputs])
    remedy = "choose another column with --target-col"
    values = lean(read_numbers(table, target, remedy))
    if ids:
        named = ids_of(table, ids)
    else:
        named = pd.Categorical.from_codes([0] * len(values), categories=pd.Index([target]))
    columns: dict[str, Any] = {"unique_id": named, "ds": times.values.array, "y": values}
    columns |= {column: read_input(table, column) for column in inputs}
    frame = pd.DataFrame(columns, copy=False)
    frame, repeats = join_repeats(table, wanted, time, ids, frame)
    names = ", ".join(f"'{column}'" for column in ids)
    source = f"ds from '{time}', y from '{target}'" + (f", ids from {names}" if ids else "")
    if inputs:
        source += f", inputs from {', '.join(map(repr, inputs))}"
    used = {time, target, *ids, *inputs}
    return ParsedTable(
        LongLayout.of(frame),
        source,
        (*_notes(table, times, [target, *inputs], used), *repeats),
    )


def _wide(
    table: Table, wanted: ColumnChoices, time: str, times: Times, columns: list[str]
) -> ParsedTable:
    import pandas as pd

    if not columns:
        raise CommandError(
            f"{table.name} has no column of numbers beside '{time}' (columns: {table.listing()})"
        )
    values = _stacked([read_numbers(table, c, "", columns) for c in columns])
    notes = [*_left_out(table, {time, *columns}), *_notes(table, times, columns, {time, *columns})]
    stamps = times.values
    again = stamps.duplicated().to_numpy()
    if again.any():
        if wanted.repeats is None and again.mean() > MANY_REPEATS:
            frame = pd.DataFrame({"unique_id": 0, "ds": stamps.array})
            raise CommandError(repeats_message(table, time, [], frame, again))
        how = wanted.repeats or "mean"
        groups = pd.DataFrame(values.T).groupby(stamps.array, sort=False)
        joined = groups.mean() if how == "mean" else groups.sum(min_count=1)
        values, stamps = joined.to_numpy().T, stamps[~again].reset_index(drop=True)
        told = "" if wanted.repeats else " (to add them: --repeats sum)"
        notes.append(joined_note(int(again.sum()), how) + told)
    order = np.argsort(stamps.to_numpy(), kind="stable")
    ordered = stamps.take(order).reset_index(drop=True)
    source = f"ds from '{time}', series from columns '{columns[0]}' to '{columns[-1]}'"
    series = MatrixLayout(columns, ordered, values[:, order])
    return ParsedTable(series, f"{source} (layout wide)", tuple(notes))


def _rows(table: Table, wanted: ColumnChoices, steps: list[str]) -> ParsedTable:
    import pandas as pd

    times = parse_times(pd.Series(steps, dtype=object), wanted.order)
    if len(times.bad):
        raise CommandError(
            f"{table.name}: column '{steps[int(times.bad[0])]}' is not named by a date like the "
            "others" + (f" (--dates {wanted.order})" if wanted.order else "") + "; rename it as "
            "YYYY-MM-DD"
        )
    own = [c for c in table.columns if c not in set(steps) and table.frame[c].is_unique]
    ids = sorted(own, key=lambda c: not is_id_name(c))[:1]
    if wanted.ids or not own:
        ids = find_ids(table, np.zeros(len(table.frame)), wanted, steps)
    if ids:
        names = ids_of(table, ids).tolist()
    else:
        names = [f"row {i + 1}" for i in range(len(table.frame))]
    again = pd.Series(names).duplicated().to_numpy()
    if again.any():
        row = int(np.argmax(again))
        raise CommandError(
            f"{table.name}, {table.place(row)}: there is a series '{names[row]}' already; name the "
            "columns that tell the series apart with --id-col"
        )
    order = np.argsort(times.values.to_numpy(), kind="stable")
    kept = [steps[i] for i in order.tolist()]
    values = _stacked([read_numbers(table, c, "", kept) for c in kept]).T
    named = ", ".join(f"'{column}'" for column in ids) or "the numbers of the rows"
    source = f"ids from {named}, steps from columns '{kept[0]}' to '{kept[-1]}' (layout rows)"
    ordered = times.values.take(order).reset_index(drop=True)
    series = MatrixLayout(names, ordered, values, open_end=times.integer)
    return ParsedTable(series, source, _notes(table, times, kept, {*steps, *ids}))


def _spread(table: Table, wanted: ColumnChoices, spread: Spread) -> ParsedTable:
    """Rows with one part of the dates, columns with the other."""
    import pandas as pd

    totals = [column for column in table.columns if is_total(column)]
    used = [spread.rows, *spread.columns]
    parts = np.array(spread.dates[0])
    ids = find_ids(table, parts, wanted, [*used, *totals])
    one = pd.Categorical.from_codes([0] * len(parts), categories=pd.Index(["value"]))
    names = ids_of(table, ids) if ids else one
    again = pd.DataFrame({"id": names, "part": parts}).duplicated().to_numpy()
    if again.any():
        row = int(np.argmax(again))
        raise CommandError(
            f"{table.cell(row, spread.rows)}: there is a row of '{table.words(spread.rows)[row]}' "
            "already; name the columns that tell the series apart with --id-col"
        )
    cells = _stacked([read_numbers(table, c, "", spread.columns) for c in spread.columns])
    texts = np.concatenate(spread.dates)
    times = parse_times(pd.Series(texts, dtype=object))
    known = ~np.isnan(cells.ravel())
    wrong = times.bad[known[times.bad]]
    if wrong.size:  # as week 53 of a year that has none
        place, row = divmod(int(wrong[0]), len(parts))
        raise CommandError(
            f"{table.cell(row, spread.columns[place])}: there is no {texts[wrong[0]]}; leave the "
            "cell empty"
        )
    sound = np.delete(np.arange(len(texts)), times.bad)
    distinct, steps = np.unique(times.values.to_numpy()[sound], return_inverse=True)
    values = np.full((len(names.categories), len(distinct)), np.nan)
    values[np.tile(names.codes, len(cells))[sound], steps] = cells.ravel()[sound]
    named = ", ".join(f"'{column}'" for column in ids)
    source = f"ds from '{spread.rows}' and columns '{spread.columns[0]}' to '{spread.columns[-1]}'"
    series = MatrixLayout(names.categories.tolist(), pd.Series(distinct), values)
    notes = _notes(table, times, spread.columns, {*used, *ids})
    first = f"{spread.what}, the first date is {spread.dates[0][0]} (otherwise: --layout)"
    return ParsedTable(series, source + (f", ids from {named}" if ids else ""), (first, *notes))


def _left_out(table: Table, used: set[str]) -> list[str]:
    """Name columns that have numbers, but more text."""
    notes = []
    for column in table.columns:
        if column in used or not text_cells(table.frame[column]):
            continue
        values, bad = parse_numbers(table.frame[column], table.mark(column) or ".", table.missing)
        if np.isfinite(values).any() and len(bad):
            cell = table.words(column).iloc[int(bad[0])]
            notes.append(
                f"Column '{column}' is no series: {len(bad):,} of its cells are no numbers, the "
                f"first is '{cell}' on {table.place(int(bad[0]))}"
            )
    return notes


def _stacked(columns: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Stack columns without making small numbers large."""
    kind = np.result_type(*(column.dtype for column in columns))
    table = np.empty((len(columns), len(columns[0])), dtype=kind)
    for row, column in zip(table, columns, strict=True):
        row[:] = column
    return table


def _notes(table: Table, times: Times, numbers: Sequence[str], used: set[str]) -> tuple[str, ...]:
    notes = [times.note] if times.note else []
    notes += [
        *table.assumed(numbers),
        *missing_note(table, numbers),
        *negative_note(table, numbers),
    ]
    unused = [column for column in table.columns if column not in used]
    if unused:
        shown = ", ".join(f"'{column}'" for column in unused[:8])
        more = f" and {len(unused) - 8} more" if len(unused) > 8 else ""
        notes.append(f"Not used: {shown}{more}")
    return tuple(notes)
