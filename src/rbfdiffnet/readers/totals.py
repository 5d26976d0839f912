"""Totals: lines below a table that are no observations, and series that are sums of others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rbfdiffnet.readers.layouts import LongLayout, MatrixLayout
from rbfdiffnet.readers.table import Table
from rbfdiffnet.readers.words import is_total

__all__ = ["total_notes", "without_totals"]

_MOST = 3  # lines at the end that may be totals
_CLOSE = 1e-3  # sums may be rounded


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
    >>> from rbfdiffnet.readers.table import Table
    >>> from rbfdiffnet.readers.totals import without_totals
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


def total_notes(series: LongLayout | MatrixLayout) -> list[str]:
    """Say which series are called a total beside others, and whether they are their sum.

    Parameters
    ----------
    series : LongLayout or MatrixLayout

    Returns
    -------
    list of str

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.layouts import MatrixLayout
    >>> from rbfdiffnet.readers.totals import total_notes
    >>> values = np.array([[1.0, 2.0], [3.0, 4.0], [4.0, 6.0]])
    >>> total_notes(MatrixLayout(["A", "B", "Total"], pd.Series([1, 2]), values))
    ["'Total' is the sum of the others, and forecast like any other series; take it out of the ..."]
    """
    totals = [name for name in series.ids if any(is_total(part) for part in name.split("/"))]
    if not totals or len(totals) == len(series.ids):
        return []
    notes = []
    for name in totals[:_MOST]:
        sums = "the sum of the others, and " if _is_sum(series, name, totals) else ""
        notes.append(
            f"'{name}' is {sums}forecast like any other series; take it out of the file if that is "
            "not wanted"
        )
    return notes


def _is_sum(series: LongLayout | MatrixLayout, name: str, totals: list[str]) -> bool:
    frame = series.part(0, series.n_series).dropna(subset="y")
    own = frame[frame["unique_id"] == name].groupby("ds")["y"].sum()
    others = frame[~frame["unique_id"].isin(totals)].groupby("ds")["y"].sum()
    sums = others.reindex(own.index).to_numpy()
    return bool(np.isclose(own.to_numpy(), sums, rtol=_CLOSE).mean() > 1 - _CLOSE)
