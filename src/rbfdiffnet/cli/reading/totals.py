"""Totals below a table: lines that are no observations."""

from __future__ import annotations

from dataclasses import replace

from rbfdiffnet.cli.reading.table import Table
from rbfdiffnet.cli.reading.words import is_total

__all__ = ["without_totals"]

_MOST = 3  # lines at the end that may be totals


def without_totals(table: Table, time: str) -> tuple[Table, list[str]]:
    """Leave out lines at the end that are called a total and have no date.

    Parameters
    ----------
    table : Table
    time : str
        The column of dates.

    Returns
    -------
    table : Table
    notes : list of str
        What was left out.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.cli.reading.table import Table
    >>> from rbfdiffnet.cli.reading.totals import without_totals
    >>> frame = pd.DataFrame({"day": ["2024-01-01", "Total"], "y": [3, 3]})
    >>> table, notes = without_totals(Table("a.csv", frame, ".", "row {}".format), "day")
    >>> len(table.frame), notes
    (1, ["Left out: row 1, a total ('Total')"])
    """
    kept = len(table.frame)
    notes: list[str] = []
    for row in range(kept - 1, max(0, kept - 1 - _MOST), -1):
        cells = table.frame.iloc[row].dropna()
        texts = {name: cell.strip() for name, cell in cells.items() if isinstance(cell, str)}
        totals = [text for text in texts.values() if is_total(text)]
        dated = time in cells and texts.get(time) not in ("", *totals)
        if dated or not totals:
            break
        notes.insert(0, f"Left out: {table.place(row)}, a total ('{totals[0]}')")
        kept = row
    if not notes:
        return table, []
    written = table.written
    part = replace(
        table,
        frame=table.frame.iloc[:kept],
        written=None if written is None else lambda column: written(column).iloc[:kept],
        _words={},
    )
    return part, notes
