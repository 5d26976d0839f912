"""Draw a forecast as plain text."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.checks import as_floats, check_flag, check_number, check_size


def text_plot(
    history: npt.ArrayLike,
    forecast: npt.ArrayLike,
    *,
    width: int = 72,
    height: int = 12,
    ascii_only: bool = False,
) -> str:
    """Draw the end of a series and its forecast as text.

    One column a value, as many values of the history as fit before the forecast. A forecast longer
    than half the width is thinned together with as much history.

    Parameters
    ----------
    history : array-like of shape (T,)
        The series; its end is drawn as a line (``.`` with ``ascii_only``).
    forecast : array-like of shape (h,)
        The forecast, drawn as ``•`` (``o`` with ``ascii_only``).
    width : int, default=72
        Largest number of columns of the chart, labels excluded.
    height : int, default=12
        Number of rows of the chart, at least 2; constant values take one row.
    ascii_only : bool, default=False
        Use ASCII characters only.

    Returns
    -------
    str
        The chart, lines joined by newlines, without trailing spaces.

    Examples
    --------
    >>> from rbfdiffnet.report.plots import text_plot
    >>> print(text_plot([1, 2, 3, 4], [3, 2], height=4, ascii_only=True))
    4 |   .
    3 |  . o
    2 | .   o
    1 |.
    """
    past, future = as_floats("history", history), as_floats("forecast", forecast)
    check_number("width", width, at_least=4, below=10**6, integer=True)
    check_number("height", height, at_least=2, below=10**6, integer=True)
    check_flag("ascii_only", ascii_only)
    width, height = int(width), int(height)  # small types of NumPy would overflow
    if past.ndim != 1 or future.ndim != 1 or past.size == 0 or future.size == 0:
        raise ValueError("history and forecast must be one-dimensional and not empty.")
    if not (np.isfinite(past).all() and np.isfinite(future).all()):
        raise ValueError("history and forecast must be finite; leave out or fill what is missing.")
    check_size("history", past)
    check_size("forecast", future)

    past = past[-max(width - future.size, future.size) :]
    values = np.concatenate([past, future])
    columns = min(width, values.size)
    at = np.linspace(0, values.size - 1, columns)
    is_forecast = at > past.size - 0.5
    drawn = np.interp(at, np.arange(values.size), values)

    low, high = float(drawn.min()), float(drawn.max())
    height = height if high > low else 1
    ticks = np.linspace(high, low, height)
    share = (high - drawn) / (high - low) if high > low else np.zeros(columns)
    rows = np.rint(share * (height - 1)).astype(int)

    canvas = [[" "] * columns for _ in range(height)]
    for column, row in enumerate(rows.tolist()):
        if is_forecast[column]:
            canvas[row][column] = "o" if ascii_only else "•"
        elif ascii_only:
            canvas[row][column] = "."
        else:
            _draw_line(canvas, column, int(rows[max(column - 1, 0)]), row)
    labels = _labels(ticks)
    margin = max(map(len, labels))
    axis = "|" if ascii_only else "┤"
    return "\n".join(
        f"{label:>{margin}} {axis}{''.join(line)}".rstrip()
        for label, line in zip(labels, canvas, strict=True)
    )


def _draw_line(canvas: list[list[str]], column: int, start: int, end: int) -> None:
    """Draw one column of a line that comes from row ``start`` and leaves on row ``end``."""
    if start == end:
        canvas[end][column] = "─"
        return
    canvas[start][column] = "╯" if end < start else "╮"
    canvas[end][column] = "╭" if end < start else "╰"
    for row in range(min(start, end) + 1, max(start, end)):
        canvas[row][column] = "│"


def _labels(ticks: Array) -> list[str]:
    """Format ticks with as many decimals as tell them apart, or as powers of ten."""
    largest, spacing = float(np.abs(ticks).max()), float(np.ptp(ticks[:2]))
    if largest >= 1e9 or 0.0 < spacing < 1e-4:
        return [f"{tick:.3g}" for tick in ticks]
    decimals = max(0, math.ceil(-math.log10(spacing))) if spacing > 0.0 else 2
    return [f"{tick:,.{decimals}f}" for tick in ticks]
