"""Numbers, dates and tables as text for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["format_dates", "format_frame", "format_number", "format_table", "one_line"]
__all__ += ["printable"]


def format_number(number: float, digits: int = 4) -> str:
    """Write a number with ``digits`` significant digits, but never cut digits before the point.

    Examples
    --------
    >>> from rbfdiffnet.support.text import format_number
    >>> [format_number(number) for number in (1234567.8, 31.4159, 0.000123456, 0.0)]
    ['1,234,568', '31.42', '0.0001235', '0']
    """
    size = abs(number)
    if size == 0.0:
        return "0"
    if not 1e-5 <= size < 1e15:
        return f"{number:.{digits - 1}e}"
    decimals = max(0, digits - 1 - math.floor(math.log10(size)))
    return f"{number:,.{decimals}f}"


def format_dates(dates: pd.DatetimeIndex) -> list[str]:
    """Write dates as ISO 8601, without the time of day where all of them are midnights.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.support.text import format_dates
    >>> format_dates(pd.DatetimeIndex(["2024-01-31", "2024-02-29"]))
    ['2024-01-31', '2024-02-29']
    """
    midnights = bool((dates == dates.normalize()).all())
    return [str(date.date()) if midnights else date.isoformat(sep=" ") for date in dates]


def format_table(rows: Sequence[Sequence[str]]) -> str:
    """Align columns, the first to the left and the others to the right.

    Examples
    --------
    >>> from rbfdiffnet.support.text import format_table
    >>> print(format_table([("date", "forecast"), ("2024-01-01", "3.5")]))
    date        forecast
    2024-01-01       3.5
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            f"{cell:<{width}}" if column == 0 else f"{cell:>{width}}"
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def format_frame(frame: pd.DataFrame) -> str:
    """Write a frame as a table, numbers with five digits.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.support.text import format_frame
    >>> print(format_frame(pd.DataFrame({"ds": pd.to_datetime(["2024-01-01"]), "y": [3.5]})))
    ds               y
    2024-01-01  3.5000
    """
    import pandas as pd

    columns: list[list[str]] = []
    for name in frame.columns:
        column = frame[name]
        if column.dtype.kind == "M":
            cells = format_dates(pd.DatetimeIndex(column))
        elif column.dtype.kind == "f":
            cells = ["-" if math.isnan(x) else format_number(x, digits=5) for x in column]
        else:
            cells = [one_line(str(cell)) for cell in column]
        columns.append([one_line(str(name)), *cells])
    return format_table(list(zip(*columns, strict=True)))


def one_line(text: str) -> str:
    r"""Write text so that it stays on its line: line ends and other control characters as spaces.

    Examples
    --------
    >>> from rbfdiffnet.support.text import one_line
    >>> one_line("shop\n1")
    'shop 1'
    """
    return "".join(sign if sign.isprintable() else " " for sign in text)


def printable(text: str) -> str:
    r"""Write text so that it cannot steer a terminal: control characters but line ends as spaces.

    Examples
    --------
    >>> from rbfdiffnet.support.text import printable
    >>> printable("shop\x1b[2J\n1")
    'shop [2J\n1'
    """
    return "\n".join(map(one_line, text.split("\n")))
