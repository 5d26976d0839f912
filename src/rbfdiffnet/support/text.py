"""Numbers, dates and tables as text for the terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = re.compile(r"'*(?:[=@\t\r]|[+-](?![\d.,]+$))")  # to a spreadsheet; -1 is a number


def format_number(number: float, digits: int = 4) -> str:
    """Write a number with ``digits`` significant digits, but never cut digits before the point."""
    size = abs(number)
    if size == 0.0:
        return "0"
    if not 1e-5 <= size < 1e15:
        return f"{number:.{digits - 1}e}"
    decimals = max(0, digits - 1 - math.floor(math.log10(size)))
    return f"{number:,.{decimals}f}"


def format_dates(dates: pd.DatetimeIndex) -> list[str]:
    """Write dates as ISO 8601, without the time of day where all of them are midnights."""
    midnights = bool((dates == dates.normalize()).all())
    return [str(date.date()) if midnights else date.isoformat(sep=" ") for date in dates]


def format_table(rows: Sequence[Sequence[str]]) -> str:
    """Align columns, the first to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            f"{cell:<{width}}" if column == 0 else f"{cell:>{width}}"
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def format_frame(frame: pd.DataFrame) -> str:
    """Write a frame as a table."""
    return format_table(format_cells(frame))


def format_cells(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    """Write the names and the cells of a frame, row by row.

    Numbers have four digits, or no decimals in a column of whole numbers.
    """
    import pandas as pd

    columns: list[list[str]] = []
    for name in frame.columns:
        column = frame[name]
        if column.dtype.kind == "M":
            cells = format_dates(pd.DatetimeIndex(column))
        elif column.dtype.kind == "f":
            known = column[column.notna()]
            whole = bool(((known % 1.0 == 0.0) & (known.abs() < 1e15)).all())
            write = "{:,.0f}".format if whole else format_number
            cells = ["-" if math.isnan(x) else write(x) for x in column]
        else:
            cells = [one_line(str(cell)) for cell in column]
        columns.append([one_line(str(name)), *cells])
    return list(zip(*columns, strict=True))


def quote_formula(text: str) -> str:
    """Write text so that no spreadsheet takes it for a formula: with an apostrophe before it."""
    return f"'{text}" if _FORMULA.match(text) else text


def unquote_formula(text: str) -> str:
    """Return the text that `quote_formula` was given."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def one_line(text: str) -> str:
    """Write text so that it stays on its line: line ends and other control characters as spaces."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def printable(text: str) -> str:
    """Write text so that it cannot steer a terminal: control characters but line ends as spaces."""
    return "\n".join(map(one_line, text.split("\n")))


def format_percent(share: float, space: str = " ") -> str:
    """Write a share in percent, without exponents."""
    value = 100.0 * share
    digits = 1 if value < 9.95 or 99.0 <= value < 99.95 else 0
    return f"{value:,.{digits}f}{space}%"
