"""Draw a series and its forecast: with matplotlib, or as plain text in a terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.checks import as_floats, check_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_forecast", "plot_operator", "plot_panel", "text_plot"]


def plot_forecast(
    ds: Any,
    y: npt.ArrayLike,
    forecast_ds: Any,
    forecast: npt.ArrayLike,
    *,
    lower: npt.ArrayLike | None = None,
    upper: npt.ArrayLike | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Plot a series and its forecast with matplotlib.

    Needs the ``plot`` extra: ``pip install 'rbfdiffnet[plot]'``. Without ``ax`` the figure is made
    outside of ``pyplot``, so it needs no display and is freed like any other object.

    Parameters
    ----------
    ds : array-like of shape (T,)
        Dates, or numbers, of the series.
    y : array-like of shape (T,)
        The series.
    forecast_ds : array-like of shape (h,)
        Dates, or numbers, of the forecast.
    forecast : array-like of shape (h,)
        The forecast.
    lower, upper : array-like of shape (h,), optional
        A prediction interval, drawn as a band; give both or neither.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure of 9 by 4 inches.
    title : str, optional
        Title of the plot.

    Returns
    -------
    matplotlib Axes
        The axes drawn on; its figure is ``ax.figure``.

    Examples
    --------
    >>> from rbfdiffnet.report.plots import plot_forecast
    >>> ax = plot_forecast([1, 2, 3], [5.0, 7.0, 6.0], [4, 5], [6.5, 6.0])
    >>> [line.get_label() for line in ax.lines]
    ['history', 'forecast']
    >>> ax.figure.savefig("forecast.png")  # doctest: +SKIP
    """
    if (lower is None) != (upper is None):
        raise ValueError("Give both lower and upper, or neither.")
    if ax is None:
        ax = _new_axes()
    ax.plot(ds, np.asarray(y), color="#30363d", linewidth=1.2, label="history")
    future = np.asarray(forecast)
    (line,) = ax.plot(
        forecast_ds,
        future,
        color="#d1495b",
        linewidth=1.8,
        marker="o" if future.size == 1 else None,  # one point has no line
        label="forecast",
    )
    if lower is not None and upper is not None:
        ax.fill_between(
            forecast_ds,
            np.asarray(lower, dtype=np.float64),
            np.asarray(upper, dtype=np.float64),
            color=line.get_color(),
            alpha=0.2,
            linewidth=0.0,
            label="interval",
        )
    if np.issubdtype(np.asarray(ds).dtype, np.datetime64):
        import matplotlib.dates

        dates: Any = matplotlib.dates  # without types
        locator = dates.AutoDateLocator()
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", alpha=0.25)
    ax.legend(loc="upper left", frameon=False)
    if title is not None:
        ax.set_title(title, loc="left")
    return ax


def plot_panel(panel: Any, columns: dict[str, Any], h: int, history: int) -> Any:
    """Draw the forecasts of a panel, a plot below the other; used by `RBFDiffNet.plot`.

    Parameters
    ----------
    panel : Panel
    columns : dict of ndarray of shape (n, h)
        The forecast first, then lower and upper ends of intervals; the last two are drawn.
    h : int
    history : int
        How many past steps to draw.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from rbfdiffnet.panel.panel import Panel
    >>> from rbfdiffnet.report.plots import plot_panel
    >>> df = pd.DataFrame({"unique_id": ["a", "a", "b"], "ds": [1, 2, 2], "y": [3.0, 4.0, 5.0]})
    >>> columns = {"RBFDiffNet": np.array([[5.0], [6.0]])}
    >>> figure = plot_panel(Panel.from_frame(df, freq=1), columns, h=1, history=2)
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['a', 'b']
    """
    n = panel.n_series
    if not n:
        raise ValueError("There is no series to draw.")
    figure = _new_axes(n).figure
    point, *ends = columns.values()
    for i, ax in enumerate(figure.axes):
        length = int(panel.lengths[i])
        past = np.arange(max(0, length - history), length)
        band = {"lower": ends[-2][i], "upper": ends[-1][i]} if ends else {}
        plot_forecast(
            panel.dates(i, past),
            panel.y[panel.offsets[i] + past],
            panel.dates(i, np.arange(length, length + h)),
            point[i],
            ax=ax,
            title=panel.name(i).replace("$", r"\$"),  # no formula
            **band,
        )
    return figure


def plot_operator(table: Any, ax: Axes | None = None) -> Axes:
    """Draw a learned differential operator: its coefficients as bars.

    Parameters
    ----------
    table : frame
        Rows of `RBFDiffNet.equation` for one series.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.report.plots import plot_operator
    >>> table = pd.DataFrame({"order": [0, 1], "input": ["", "lag 1"], "coefficient": [0.5, -1.0]})
    >>> ax = plot_operator(table)
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['1', '∂ / ∂ lag 1']
    """
    if ax is None:
        ax = _new_axes()
    orders, inputs, values = (list(table[name]) for name in ("order", "input", "coefficient"))
    power = {0: "", 1: ""}
    labels = [
        "1" if k == 0 else f"∂{power.get(k, f'^{k}')} / ∂ {name}{power.get(k, f'^{k}')}"
        for k, name in zip(orders, inputs, strict=True)
    ]
    ax.bar(range(len(values)), values, color="#30638e")
    ax.set_xticks(range(len(values)), labels, rotation=90 if len(values) > 6 else 0)
    ax.axhline(0.0, color="#30363d", linewidth=0.8)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title("learned differential operator", loc="left")
    return ax


def _new_axes(n: int = 1) -> Axes:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'rbfdiffnet[plot]'.") from error
    height = 4.0 if n == 1 else 2.6 * n
    figure = Figure(figsize=(9.0, height), dpi=150, layout="constrained")
    first: Axes = figure.subplots(n, 1, squeeze=False)[0, 0]
    return first


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
    check_number("width", width, at_least=4, integer=True)
    check_number("height", height, at_least=2, integer=True)
    if past.ndim != 1 or future.ndim != 1 or past.size == 0 or future.size == 0:
        raise ValueError("history and forecast must be one-dimensional and not empty.")
    if not (np.isfinite(past).all() and np.isfinite(future).all()):
        raise ValueError("history and forecast must be finite; leave out or fill what is missing.")

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
