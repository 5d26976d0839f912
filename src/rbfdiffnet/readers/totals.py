"""Lines and series that are called a total."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from rbfdiffnet.readers.table import Layout, Table

_MOST_TOTALS = 3  # lines at the end that may be totals, and series whose totals are noted
_TOTAL = re.compile(
    r"((grand |sub|general )?totals?|sum|summen?|gesamt\w*|insgesamt|somme|suma|totaal|totale)\b.*",
    re.IGNORECASE,
)


def is_total(text: str) -> bool:
    """Tell whether something is called a total."""
    return _TOTAL.fullmatch(text.strip()) is not None


def drop_totals(table: Table, time: str) -> tuple[Table, list[str]]:
    """Leave out lines at the end that are called a total and have no date in column `time`."""
    return _drop_last(table, [time], is_name=False)


def drop_total_rows(table: Table, names: Sequence[str]) -> tuple[Table, list[str]]:
    """Leave out lines at the end that are called a total and lack a name that all others have.

    `names` are the columns that may name series. A total with all names is a series.
    """
    ends = _find_last_totals(table)
    body = table.frame[[*names]].iloc[: len(table.frame) - len(ends)]
    return _drop_last(table, [c for c in names if body[c].notna().all()], is_name=True)


def _drop_last(table: Table, needed: Sequence[str], *, is_name: bool) -> tuple[Table, list[str]]:
    """Leave out totals at the end without a cell in one of the `needed` columns.

    Unless it `is_name`, what a total is called is no cell that a line needs.
    """
    kept = len(table.frame)
    notes: list[str] = []
    for cells in _find_last_totals(table):
        totals = [cell for cell in cells.values() if is_total(cell)]
        nothing = ("",) if is_name else ("", *totals)
        if not any(cells.get(column, "") in nothing for column in needed):
            break
        kept -= 1
        notes.insert(0, f"Left out: {table.locate_row(kept)}, a total ('{totals[0]}')")
    return (table.with_frame(table.frame.iloc[:kept]) if notes else table), notes


def _find_last_totals(table: Table) -> list[dict[str, str]]:
    """Return the cells of the lines at the end that are called a total, the last one first."""
    found = []
    for row in range(len(table.frame) - 1, max(0, len(table.frame) - 1 - _MOST_TOTALS), -1):
        cells = {str(c): str(cell).strip() for c, cell in table.frame.iloc[row].dropna().items()}
        if not any(map(is_total, cells.values())):
            break
        found.append(cells)
    return found


def note_totals(series: Layout) -> list[str]:
    """Say which series are called a total beside others, and whether they are their sum."""
    totals = [name for name in series.ids if any(is_total(part) for part in name.split("/"))]
    if not totals or len(totals) == len(series.ids):
        return []
    frame = series.part(0, series.n_series).dropna(subset="y")
    others = frame[~frame["unique_id"].isin(totals)].groupby("ds")["y"].sum()
    notes = []
    for name in totals[:_MOST_TOTALS]:
        own = frame[frame["unique_id"] == name].groupby("ds")["y"].sum()
        sums = others.reindex(own.index).to_numpy()
        close = np.isclose(own.to_numpy(), sums, rtol=1e-3)  # sums may be rounded
        is_sum = "the sum of the others, and " if close.mean() > 1 - 1e-3 else ""
        notes.append(
            f"'{name}' is {is_sum}forecast like any other series; take it out of the file if that "
            "is not wanted"
        )
    return notes
