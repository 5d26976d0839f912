"""``speed.png``: small multiples of the tables in a folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.transforms import Bbox

from shared_parts.look import BLUE, GRAY, INK, dress

_SMALL = 8  # points, of labels
_PLACES = (  # of labels beside their dots, in points
    (7, 0, "left"),
    (-7, 0, "right"),
    (0, 11, "center"),
    (0, -11, "center"),
    (7, 9, "left"),
    (7, -9, "left"),
)
_X_LABELS = {
    "series": "series of 400 days",
    "length": "days",
    "lags": "lags",
    "arrays": "series, from arrays",
    "centers": "centers (fit alone)",
}


def draw(folder: Path, caption: str = "") -> Path | None:
    """Draw the tables found in a folder; None if there are none to draw."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    wide: list[Callable[[Any], None]] = []
    for name, draws in (("peers", _peers), ("trainers", _trainers)):
        table = _read(folder, name)
        if table is not None:
            wide.append(partial(draws, table=table))
    narrow: list[Callable[[Any], None]] = []
    scaling = _read(folder, "scaling")
    if scaling is not None:
        for name, rows in scaling.groupby("sweep", sort=False):
            narrow.append(partial(_sweep, name=str(name), table=rows))
    rows_of_panels = [panels for panels in (wide, narrow) if panels]
    if not rows_of_panels:
        return None
    figure = Figure(figsize=(12.0, 3.6 * len(rows_of_panels) + 0.2), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)
    FigureCanvasAgg(figure)
    figure.supxlabel(caption, fontsize=_SMALL, color=GRAY)
    parts = figure.subfigures(len(rows_of_panels), 1, squeeze=False)[:, 0]
    for part, panels in zip(parts, rows_of_panels, strict=True):
        for panel, axes in zip(
            panels, part.subplots(1, len(panels), squeeze=False)[0], strict=True
        ):
            panel(axes)
    figure.draw_without_rendering()  # so that it is known where things are
    for axes in figure.axes:
        _spread(axes)
    figure.savefig(folder / "speed.png", dpi=130)
    return folder / "speed.png"


def _read(folder: Path, name: str) -> pd.DataFrame | None:
    path = folder / f"speed_{name}.csv"
    return pd.read_csv(path) if path.exists() else None


def _color(name: str) -> str:
    return BLUE if name.startswith("ours") else GRAY


def _peers(axes: Any, table: pd.DataFrame) -> None:
    """Time and error; hollow where only a few series were forecast."""
    table = table.dropna(subset="ms_per_series")
    table = table.assign(error=table["rmsse"] / table["ours_rmsse"], few=table["note"].notna())
    for row in table.itertuples():
        color = _color(row.contender)
        face = "white" if row.few else color
        axes.plot(row.ms_per_series, row.error, "o", color=color, markerfacecolor=face)
        _label(axes, row.contender, row.ms_per_series, row.error, color)
    axes.set_xscale("log")
    axes.set_xlim(table["ms_per_series"].min() / 10, table["ms_per_series"].max() * 40)
    axes.margins(y=0.1)
    axes.set_xlabel("ms per series")
    axes.set_ylabel("RMSSE / ours, same series")
    dress(axes, "28 days ahead (hollow: on a few series)")


def _trainers(axes: Any, table: pd.DataFrame) -> None:
    """Mean time of a fit, with the mean training error beside it."""
    table = table[table["series"] == "mean"].iloc[::-1]
    for row in table.itertuples():
        axes.plot(row.ms, row.way, "o", color=_color(row.way))
        _label(axes, f"RMSE {row.training_rmse:.3f}", row.ms, row.way, INK)
    axes.set_xscale("log")
    axes.set_xlim(table["ms"].min() / 2, table["ms"].max() * 20)
    axes.set_ylim(-0.5, len(table) - 0.5)
    axes.set_xlabel("ms")
    dress(axes, "One fit", grid="x")


def _label(axes: Any, text: str, x: Any, y: Any, color: str) -> None:
    """Write a text beside a dot."""
    axes.annotate(
        text,
        (x, y),
        xytext=_PLACES[0][:2],
        textcoords="offset points",
        va="center",
        fontsize=_SMALL,
        color=color,
    )


def _spread(axes: Any) -> None:
    """Move labels to where they cover neither dots nor each other, if there is such a place."""
    dots = [axes.transData.transform(line.get_xydata()) for line in axes.lines if axes.texts]
    taken = [Bbox.from_extents(*(xy - 5.0), *(xy + 5.0)) for line in dots for xy in line]
    for text in axes.texts:
        for dx, dy, side in _PLACES:
            text.set(position=(dx, dy), ha=side)
            box = text.get_window_extent()
            if not box.count_overlaps(taken):
                break
        taken.append(box)


def _sweep(axes: Any, name: str, table: pd.DataFrame) -> None:
    """Time against a size, with the range of the repeats, and a proportional line."""
    from matplotlib.ticker import LogLocator

    x, y = table["size"].to_numpy(), table["seconds"].to_numpy()
    axes.plot(x, y[0] * x / x[0], ":", color=GRAY, label="proportional")
    spread = [y - table["low"].to_numpy(), table["high"].to_numpy() - y]
    axes.errorbar(x, y, yerr=spread, fmt="o-", color=BLUE, capsize=2)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(table["low"].min() / 1.5, table["high"].max() * 1.5)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xticks(x, [f"{value:,}" for value in x])
    axes.minorticks_off()
    axes.set_xlabel(_X_LABELS[name])
    axes.set_ylabel("seconds")
    dress(axes, f"Growing: {name}")
    axes.tick_params(labelsize=_SMALL)
    axes.legend(frameon=False, fontsize=_SMALL, labelcolor=INK, loc="upper left")
