"""Draw forecasts and how good their intervals are, with matplotlib."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from rbfdiffnet.evaluation.backtest_frames import QuantileName
from rbfdiffnet.evaluation.quantile_frames import evaluate_quantiles
from rbfdiffnet.forecasting.options import NAME
from rbfdiffnet.panel.exogenous import SCENARIO
from rbfdiffnet.panel.frames import read_frame, read_times, time_zone
from rbfdiffnet.panel.grid import to_wall
from rbfdiffnet.report.text import text_plot
from rbfdiffnet.support.arrays import Array, Ints
from rbfdiffnet.support.checks import as_list

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_anomalies", "plot_calibration", "plot_coverage", "plot_forecast", "plot_operator"]
__all__ += ["plot_panel", "plot_paths", "text_plot"]

_INK, _RED = "#30363d", "#d1495b"
_COLORS = (_RED, "#30638e", "#3f7d58", "#b7791f", "#7a5195", "#5c6b73")  # of scenarios
_SAMPLE = "sample_id"  # the column that numbers paths


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
    ax.plot(ds, np.asarray(y), color=_INK, linewidth=1.2, label="history")
    dates, path = _join(ds, y, forecast_ds, forecast)
    (line,) = ax.plot(
        dates,
        path,
        color=_RED,
        linewidth=1.8,
        marker="o" if np.size(forecast) == 1 else None,  # easily overlooked
        markevery=[-1],
        label="forecast",
    )
    if lower is not None and upper is not None:
        ax.fill_between(
            dates,
            _join(ds, y, forecast_ds, lower)[1],
            _join(ds, y, forecast_ds, upper)[1],
            color=line.get_color(),
            alpha=0.2,
            linewidth=0.0,
            label="interval",
        )
    _finish(ax, ds, title)
    return ax


def _join(ds: Any, y: npt.ArrayLike, ahead: Any, values: npt.ArrayLike) -> tuple[Any, Array]:
    """Put the last known value of a series before dates and values that follow it."""
    past, future = (np.asarray(own, dtype=np.float64) for own in (y, values))
    known = np.flatnonzero(np.isfinite(past))[-1:]
    dates = np.concatenate([np.asarray(ds)[known], np.asarray(ahead)])
    return dates, np.concatenate([past[known], future])


def plot_anomalies(
    found: Any,
    *,
    ax: Axes | None = None,
    title: str | None = None,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
) -> Axes:
    """Plot the values of a series, what was forecast for them, and the anomalies among them.

    Needs the ``plot`` extra: ``pip install 'rbfdiffnet[plot]'``.

    Parameters
    ----------
    found : pandas or polars DataFrame
        Rows of `RBFDiffNet.detect_anomalies` for one series, in any order.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure of 9 by 4 inches.
    title : str, optional
        Title of the plot.
    id_col, time_col, target_col : str
        Names of the columns.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from rbfdiffnet import RBFDiffNet
    >>> from rbfdiffnet.datasets import load_air_passengers
    >>> from rbfdiffnet.report.plots import plot_anomalies
    >>> found = RBFDiffNet(freq="MS").detect_anomalies(load_air_passengers(), last=36)
    >>> [line.get_label() for line in plot_anomalies(found).lines]
    ['values', 'anomalies']
    """
    parts = {name: QuantileName.parse(name) for name in getattr(found, "columns", ())}
    ends = {own.kind: name for name, own in parts.items() if own is not None}
    low, high = (ends.get(kind, f"{NAME}-{kind}-99") for kind in ("lo", "hi"))
    names = [time_col, target_col, "anomaly", low, high]
    frame = _read_one_series(found, "found", id_col, names).sort(time_col)
    ds = _show_times(read_times(frame[time_col]), frame[time_col])
    y, far, low, high = (frame[name].to_numpy() for name in names[1:])
    far = far.astype(bool)
    ax = _new_axes() if ax is None else ax
    ax.fill_between(ds, low, high, color=_RED, alpha=0.2, linewidth=0.0, label="interval")
    ax.plot(ds, y, color=_INK, linewidth=1.2, label="values")
    ax.plot(ds[far], y[far], "o", color=_RED, markersize=5, label="anomalies")
    _finish(ax, ds, title)
    return ax


def _read_one_series(df: Any, what: str, id_col: str, names: Sequence[str]) -> nw.DataFrame[Any]:
    """Return columns of a frame that must be of one series; `what` is the name of the argument."""
    frame = read_frame(df, [id_col, *names], what, id_col)
    ids = frame[id_col].unique(maintain_order=True).to_list()
    if len(ids) != 1:
        rows = f"{what}[{what}[{id_col!r}] == {ids[0]!r}]" if ids else ""
        if ids and frame.implementation.is_polars():
            rows = f"{what}.filter(pl.col({id_col!r}) == {ids[0]!r})"
        has = f"rows of {len(ids)} series; draw one of them, such as {rows}" if ids else "no rows"
        raise ValueError(f"{what} has {has}.")
    return frame


def _show_times(times: Ints, column: nw.Series[Any]) -> npt.NDArray[Any]:
    """Return times that were read from a column as dates that clocks show, or whole numbers."""
    if column.dtype.is_integer():
        return times
    return to_wall(times, time_zone(column)).view("M8[ns]")


def _finish(ax: Axes, ds: Any, title: str | None) -> None:
    """Add dates, a legend and a title."""
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


def plot_panel(panel: Any, columns: dict[str, Any], h: int, history: int) -> Any:
    """Draw the forecasts of a panel, a plot below the other; used by `RBFDiffNet.plot`.

    Parameters
    ----------
    panel : Panel
    columns : dict of ndarray of shape (n, h)
        The forecast first, then lower and upper ends of intervals, drawn one over the other.
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
    point, *_ = columns.values()
    ends = [own for name, own in columns.items() if re.search(r"(^|-)(lo|hi)-", name)]
    for i, ax in enumerate(figure.axes):
        length = int(panel.lengths[i])
        past = np.arange(max(0, length - history), length)
        ds, ahead = panel.dates(i, past), panel.dates(i, np.arange(length, length + h))
        y = panel.y[panel.offsets[i] + past]
        band = {"lower": ends[-2][i], "upper": ends[-1][i]} if ends else {}
        plot_forecast(
            ds,
            y,
            ahead,
            point[i],
            ax=ax,
            title=panel.name(i).replace("$", r"\$"),  # no formula
            **band,
        )
        for low, high in zip(ends[:-2:2], ends[1:-2:2], strict=True):  # a fan
            (dates, below), (_, above) = (_join(ds, y, ahead, end[i]) for end in (low, high))
            ax.fill_between(dates, below, above, color=_RED, alpha=0.2, linewidth=0.0)
    return figure


def plot_paths(
    paths: Any,
    *,
    ax: Axes | None = None,
    title: str | None = None,
    id_col: str = "unique_id",
    time_col: str = "ds",
) -> Axes:
    """Plot sample paths of a series, and their median; each scenario has a color.

    Needs the ``plot`` extra: ``pip install 'rbfdiffnet[plot]'``.

    Parameters
    ----------
    paths : pandas or polars DataFrame
        Rows of `RBFDiffNet.simulate` for one series, in any order.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure of 9 by 4 inches.
    title : str, optional
        Title of the plot.
    id_col, time_col : str
        Names of the columns.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from rbfdiffnet import RBFDiffNet
    >>> from rbfdiffnet.datasets import load_air_passengers
    >>> from rbfdiffnet.report.plots import plot_paths
    >>> model = RBFDiffNet(freq="MS", preset="instant").fit(load_air_passengers())
    >>> ax = plot_paths(model.simulate(12, n_paths=30))
    >>> len(ax.lines), ax.lines[-1].get_label()
    (31, 'median')
    """
    named = [SCENARIO] if SCENARIO in getattr(paths, "columns", ()) else []
    frame = _read_one_series(paths, "paths", id_col, [time_col, *named, _SAMPLE, NAME])
    ax = _new_axes() if ax is None else ax
    parts: dict[str, Any] = {"paths": frame}
    if named:
        names = frame[SCENARIO].unique(maintain_order=True).to_list()
        parts = {str(name): frame.filter(nw.col(SCENARIO) == name) for name in names}
    for k, (name, rows) in enumerate(parts.items()):
        times, step = np.unique(read_times(rows[time_col]), return_inverse=True)
        _, path = np.unique(rows[_SAMPLE].to_numpy(), return_inverse=True)
        ds = _show_times(times, rows[time_col])
        values = np.full((path.max() + 1, len(times)), np.nan)
        if len(rows) > values.size:
            raise ValueError(f"paths has several values of a path on a date; renumber {_SAMPLE!r}.")
        values[path, step] = rows[NAME].to_numpy()
        color = _COLORS[k % len(_COLORS)]
        for i, own in enumerate(values):
            label = None if i or named else name
            ax.plot(ds, own, color=color, alpha=0.2, linewidth=0.8, label=label)
        label = name.replace("$", r"\$") if named else "median"  # no formula
        color = color if named else _INK
        ax.plot(ds, np.nanmedian(values, axis=0), color=color, linewidth=1.8, label=label)
    _finish(ax, ds, title)
    return ax


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
    ax.axhline(0.0, color=_INK, linewidth=0.8)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title("learned differential operator", loc="left")
    return ax


def plot_calibration(
    cv_frame: Any,
    models: Sequence[str] | None = None,
    *,
    ax: Axes | None = None,
    **columns: str,
) -> Axes:
    """Draw a reliability diagram: the share of values below each quantile, against its probability.

    On the diagonal quantiles are what they say. A line that is flatter than the diagonal belongs to
    intervals that are too narrow, a steeper one to intervals that are too wide, and a line above
    the diagonal to quantiles that are too high.

    Parameters
    ----------
    cv_frame : pandas or polars DataFrame
        Values and forecasts with quantiles or intervals, as `evaluate_quantiles
        <rbfdiffnet.evaluation.metrics.evaluate_quantiles>` takes them.
    models : sequence of str, optional
        By default all models with a quantile or an interval. Each has a line.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.
    **columns : str
        ``id_col, time_col, target_col, cutoff_col``: names of the columns.

    Returns
    -------
    matplotlib Axes

    See Also
    --------
    plot_coverage : The share of values inside intervals by step ahead.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.report.plots import plot_calibration
    >>> folds = pd.DataFrame({"unique_id": "a", "ds": range(4), "y": [1.0, 2.0, 3.0, 9.0],
    ...                       "M-q-25": 1.0, "M-q-50": 2.5, "M-q-75": 4.0})
    >>> ax = plot_calibration(folds)
    >>> ax.lines[1].get_label(), ax.lines[1].get_ydata().tolist()
    ('M', [25.0, 50.0, 75.0])
    """
    scores = nw.from_native(evaluate_quantiles(cv_frame, models, **columns), eager_only=True)
    ax = _new_axes() if ax is None else ax
    ax.plot([0, 100], [0, 100], color=_INK, linewidth=0.8, linestyle=":", label="ideal")
    shares = _find_shares(scores, "below")
    quantiles = np.array([*shares])
    for model, own in zip(scores["model"].to_list(), np.array([*shares.values()]).T, strict=True):
        known = np.isfinite(own)
        ax.plot(quantiles[known], own[known], marker="o", label=model)
    ax.set_aspect("equal")
    ax.set_xlabel("quantile, %")
    ax.set_ylabel("values below, %")
    return _finish_scores(ax)


def plot_coverage(
    cv_frame: Any,
    models: Sequence[str] | None = None,
    *,
    level: Sequence[float] | None = None,
    freq: Any = None,
    ax: Axes | None = None,
    **columns: str,
) -> Axes:
    """Draw the share of values inside intervals for each step ahead, beside their levels.

    Parameters
    ----------
    cv_frame, models, ax, **columns
        As in `plot_calibration`.
    level : sequence of float, optional
        Levels in percent; by default all.
    freq : str, int or pandas offset, optional
        Step of time; by default what the dates suggest.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.report.plots import plot_coverage
    >>> folds = pd.DataFrame({"unique_id": "a", "ds": [4, 5, 5, 6], "cutoff": [3, 3, 4, 4],
    ...                       "y": [1.0, 2.0, 2.0, 9.0], "M-lo-80": 0.0, "M-hi-80": 4.0})
    >>> ax = plot_coverage(folds)
    >>> ax.lines[1].get_label(), ax.lines[1].get_ydata().tolist()
    ('M, 80 %', [100.0, 50.0])
    """
    table = evaluate_quantiles(cv_frame, models, "horizon", freq=freq, **columns)
    scores = nw.from_native(table, eager_only=True)
    found = _find_shares(scores, "coverage")
    wanted = [*found] if level is None else as_list("level", level, "a list of levels")
    for percent in wanted:
        if percent not in found:
            known = ", ".join(f"{x:g}" for x in found) or "none"
            raise ValueError(f"The frame has no intervals of level {percent!r}, but of: {known}.")
    if not wanted:
        raise ValueError("The frame has no interval with both ends, such as 'M-lo-80', 'M-hi-80'.")
    ax = _new_axes() if ax is None else ax
    names, steps = scores["model"].to_numpy(), scores["horizon"].to_numpy()
    for percent in wanted:
        ax.axhline(percent, color=_INK, linewidth=0.8, linestyle=":")
        shares = found[percent]
        for model in dict.fromkeys(names.tolist()):
            own = (names == model) & np.isfinite(shares)
            if own.any():
                ax.plot(steps[own], shares[own], marker="o", label=f"{model}, {percent:g} %")
    ax.set_xlabel("steps ahead")
    ax.set_ylabel("values inside, %")
    return _finish_scores(ax)


def _find_shares(scores: nw.DataFrame[Any], kind: str) -> dict[float, Array]:
    """Return the columns ``kind-80`` of scores in percent by their numbers, ascending."""
    numbers = [float(x.removeprefix(kind + "-")) for x in scores.columns if x.startswith(kind)]
    columns = [scores[f"{kind}-{number:g}"].cast(nw.Float64).to_numpy() for number in numbers]
    return {number: 100.0 * column for number, column in zip(numbers, columns, strict=True)}


def _finish_scores(ax: Axes) -> Axes:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25)
    ax.legend(frameon=False)
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
