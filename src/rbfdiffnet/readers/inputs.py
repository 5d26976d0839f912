"""Inputs of forecasts: columns of the file, or other files, with values known ahead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rbfdiffnet.readers.dates import ORDERS, Times, parse_times
from rbfdiffnet.readers.errors import CommandError
from rbfdiffnet.readers.ids import find_ids, ids_of
from rbfdiffnet.readers.layouts import LongLayout, MatrixLayout
from rbfdiffnet.readers.numbers import read_numbers
from rbfdiffnet.readers.roles import ColumnChoices, is_number_column
from rbfdiffnet.readers.table import Table, read_table, text_cells
from rbfdiffnet.readers.words import speaks_of_weeks

if TYPE_CHECKING:
    import pandas as pd

    from rbfdiffnet.readers.data import Data

__all__ = ["Exog", "add_file", "cut_future", "read_input", "split_exog"]


@dataclass(frozen=True)
class Exog:
    """What was asked for as inputs.

    Parameters
    ----------
    columns : tuple of str
        Columns of the file of the series.
    files : tuple of str
        Other files.
    chosen : tuple of str
        Columns of those files that count; all of them if none is named.
    """

    columns: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()


def split_exog(table: Table, items: Sequence[str]) -> Exog:
    """Tell columns of a table, files, and columns of files apart.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.inputs import split_exog
    >>> from rbfdiffnet.readers.table import Table
    >>> split_exog(Table("a.csv", pd.DataFrame({"price": [1]}), ".", str), ["price"]).columns
    ('price',)
    """
    own = tuple(item for item in items if item in table.columns)
    files = tuple(item for item in items if item not in own and Path(item).is_file())
    others = tuple(item for item in items if item not in {*own, *files})
    if others and not files:
        raise CommandError(
            f"--exog {others[0]}: no such file, and no such column in {table.name} (columns: "
            f"{table.listing()})"
        )
    return Exog(own, files, others)


def read_input(table: Table, column: str) -> Any:
    """Read a column as numbers, or as text with nothing for missing cells.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.inputs import read_input
    >>> from rbfdiffnet.readers.table import Table
    >>> table = Table("a.csv", pd.DataFrame({"event": ["Easter", None, None, None]}), ".", str)
    >>> list(read_input(table, "event"))
    ['Easter', '', '', '']
    """
    cells = table.frame[column]
    if text_cells(cells) and not is_number_column(table, column):
        return cells.astype(object).fillna("").astype(str).array
    return read_numbers(table, column, "leave it out of --exog", gaps=False)


def cut_future(
    series: LongLayout | MatrixLayout, inputs: Sequence[str]
) -> tuple[LongLayout | MatrixLayout, pd.DataFrame | None, str]:
    """Split off the latest dates if no series has a value there: they are the future.

    Parameters
    ----------
    series : LongLayout or MatrixLayout
    inputs : sequence of str
        Columns whose values in the future are kept.

    Returns
    -------
    series : LongLayout or MatrixLayout
        What is known.
    future : DataFrame or None
    note : str
        What was done, empty where nothing was.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.inputs import cut_future
    >>> from rbfdiffnet.readers.layouts import LongLayout
    >>> ids = pd.Categorical(["a", "a"])
    >>> frame = pd.DataFrame({"unique_id": ids, "ds": [1, 2], "y": [5.0, None], "price": [7, 8]})
    >>> known, future, _ = cut_future(LongLayout.of(frame), ["price"])
    >>> len(known.frame), future["price"].tolist()
    (1, [8])
    """
    if isinstance(series, MatrixLayout):
        if series.values.dtype.kind != "f" or series.open_end:
            return series, None, ""
        known = np.flatnonzero(~np.isnan(series.values).all(axis=0))
        size = int(known[-1]) + 1 if known.size else len(series.times)
        if size == len(series.times):
            return series, None, ""
        later = len(series.times) - size
        kept = replace(series, times=series.times[:size], values=series.values[:, :size])
        last = (
            "The last date has no value and is"
            if later == 1
            else f"The last {later:,} dates have no values and are"
        )
        return kept, None, f"{last} left out"
    frame = series.frame
    known_rows = frame["y"].notna()
    if known_rows.all() or not known_rows.any():
        return series, None, ""
    later_rows = (frame["ds"] > frame.loc[known_rows, "ds"].max()).to_numpy()
    if not later_rows.any():
        return series, None, ""
    future = frame.loc[later_rows, ["unique_id", "ds", *inputs]].reset_index(drop=True)
    known_frame = frame[~later_rows].reset_index(drop=True)
    count = future["ds"].nunique()
    last = (
        "The last date has no value: it is"
        if count == 1
        else f"The last {count:,} dates have no values: they are"
    )
    note = f"{last} taken as the future"
    return LongLayout.of(known_frame), future if inputs else None, note


def add_file(
    data: Data,
    path: str,
    exog: Exog,
    order: str | None = None,
    decimal: str | None = None,
    missing: Sequence[str] = (),
) -> tuple[Data, list[str]]:
    """Add inputs from a file that has them by date, or by series and date.

    Inputs that the series do not have yet are joined to the known dates; values of later dates are
    kept for the forecast.

    Parameters
    ----------
    data : Data
    path : str
    exog : Exog
    order, decimal : str, optional
        Whether days or months come first, and the decimal mark, where they were told.
    missing : sequence of str, default=()
        Words that stand for missing values.

    Returns
    -------
    data : Data
    notes : list of str
    """
    import pandas as pd

    table = read_table(path, decimal, missing)
    history = data.frame()
    taken = [*exog.chosen, *exog.columns]
    found, times = _times(table, history["ds"], taken, order)
    ids = find_ids(table, times.values.to_numpy(), ColumnChoices(), [found, *taken])
    names = [column for column in table.columns if column not in {found, *ids}]
    if exog.chosen:
        wanted = {*exog.columns, *exog.chosen}
        names = [column for column in names if column in wanted]
    if not names:
        asked = ", ".join(f"'{column}'" for column in exog.chosen) or "any input"
        raise CommandError(f"--exog: {table.name} does not have {asked} ({table.listing()})")
    parts: dict[str, Any] = {column: read_input(table, column) for column in names}
    parts["ds"] = times.values.array
    keys = ["ds"]
    if ids:
        keys = ["unique_id", "ds"]
        parts["unique_id"] = pd.Categorical(ids_of(table, ids).astype(object), categories=data.ids)
    values = pd.DataFrame(parts)
    values = values[values[keys].notna().all(axis=1)]  # other series do not count
    if (again := values.duplicated(keys)).any():
        row = int(values.index[again][0])
        raise CommandError(
            f"{table.name}, {table.place(row)}: there is another line for "
            f"{' and '.join(str(values.loc[row, key]) for key in keys)}; keep one"
        )
    new = [column for column in names if column not in data.inputs]
    joined = history.merge(values[[*keys, *new]], on=keys, how="left") if new else history
    later = values[values["ds"] > history["ds"].max()]
    if data.future is not None:
        other = data.future.drop(columns=names, errors="ignore")
        later = other.merge(later, on=keys, how="outer")
    named = ", ".join(f"'{column}'" for column in names)
    by = ", ".join(f"'{column}'" for column in [*ids, found])
    notes = [f"Inputs from {table.name} by {by}: {named}", *table.notes, *table.assumed(names)]
    if times.note:
        notes.append(f"{times.note}, in {table.name}")
    origins = {c: f"{data.origins[c]} and {path}" if c in data.origins else path for c in names}
    joint = replace(
        data,
        series=LongLayout.of(joined),
        inputs=(*data.inputs, *new),
        future=later,
        origins={**data.origins, **origins},
    )
    return joint, notes


def _times(
    table: Table, known: pd.Series[Any], taken: Sequence[str], order: str | None
) -> tuple[str, Times]:
    """Find the column of a file of inputs that has the most known dates, and later ones."""
    shares: dict[str, float] = {}
    columns: dict[str, Times] = {}
    dates = known.drop_duplicates()
    first, last = dates.min(), dates.max()
    for column in table.columns:
        if column in taken or table.frame[column].dtype.kind == "f":
            continue
        weeks = speaks_of_weeks(column)
        read = [parse_times(table.frame[column], order, weeks=weeks)]
        if read[0].note and order is None:  # the known dates may tell the order
            for name, other in (("dmy", "mdy"), ("mdy", "dmy")):
                told = f"Dates are read as {ORDERS[name]} to suit the series"
                note = f"{told} (otherwise: --dates {other})"
                turned = parse_times(table.frame[column], name, weeks=weeks)
                read.append(replace(turned, note=note))
        for times in read:
            if times.values.dtype.kind != known.dtype.kind or len(times.bad):
                continue
            later = (times.values > last) & (times.values - last <= last - first)
            share = float(dates.isin(times.values).mean() + later.mean())
            if share > shares.get(column, -1.0):
                columns[column], shares[column] = times, share
    best = max(shares, key=lambda column: shares[column], default=None)
    if best is None or not shares[best]:
        kind = "steps" if known.dtype.kind in "iu" else "dates"
        raise CommandError(
            f"{table.name} has no column with the {kind} of the series (columns: "
            f"{table.listing()}); add one"
        )
    return best, columns[best]
