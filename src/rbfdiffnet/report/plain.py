"""The answer of a report as plain HTML: what is there before, or without, its script."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rbfdiffnet.report.tables import Table
from rbfdiffnet.support.text import format_cells, format_dates

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS = 200  # of a table


def describe_extent(n_series: int, past: Table, steps: int) -> str:
    """Say how many series there are, since when, and how far ahead they are forecast."""
    import pandas as pd

    ends = past.displayed(np.array([past.times.min(), past.times.max()]))
    first, last = format_dates(pd.DatetimeIndex(ends * 1e6)) if past.dates else ends.tolist()
    ahead = f"{steps:,} step{'' if steps == 1 else 's'} ahead"
    return f"{n_series:,} series, history from {first} to {last}, {ahead}"


def show_forecasts(ahead: Table, names: Sequence[str]) -> dict[str, Any]:
    """Return the first rows of forecasts as text, and how many there are."""
    first = ahead.take(np.arange(min(len(ahead.series), _MOST_ROWS)))
    frame = first.key_frame(**first.columns)
    frame["unique_id"] = [names[i] for i in first.series.tolist()]
    return show_rows(frame, "Date" if ahead.dates else "Step", len(ahead.series))


def show_rows(frame: pd.DataFrame, when: str = "From", total: int | None = None) -> dict[str, Any]:
    """Return the first rows of a frame as text, and how many there are."""
    shown = frame.head(_MOST_ROWS).rename(columns={"unique_id": "Series", "ds": when})
    return {"rows": format_cells(shown), "total": len(frame) if total is None else total}


def write_rows(shown: Mapping[str, Any] | None) -> str:
    """Write rows of text as a table, in which nothing is markup; nothing if there are none."""
    if shown is None:
        return ""
    head, *rows = shown["rows"]
    lines = [_write_row("th", head), *(_write_row("td", row) for row in rows)]
    more = shown["total"] - len(rows)
    rest = f'<p class="quiet">And {more:,} more rows.</p>' if more else ""
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>{rest}'


def _write_row(tag: str, cells: Sequence[str]) -> str:
    """Write a row; its first column is text, the others are numbers and dates."""
    first, *others = (html.escape(cell) for cell in cells)
    rest = "".join(f"<{tag}>{cell}</{tag}>" for cell in others)
    return f'<tr><{tag} class="text">{first}</{tag}>{rest}</tr>'
