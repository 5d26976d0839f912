"""``speed.png``: small multiples of the tables in a folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

_OURS, _OTHERS = "#0b6e4f", "#8a8d91"
_COLUMNS = 3
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

    panels: list[Callable[[Any], None]] = []
    for name, draws in (("peers", _peers), ("trainers", _trainers)):
        table = _read(folder, name)
        if table is not None:
            panels.append(partial(draws, table=table))
    scaling = _read(folder, "scaling")
    if scaling is not None:
        for name, rows in scaling.groupby("sweep", sort=False):
            panels.append(partial(_sweep, name=str(name), table=rows))
    if not panels:
        return None
    n_rows = -(-len(panels) // _COLUMNS)
    figure = Figure(figsize=(5.0 * min(len(panels), _COLUMNS), 3.8 * n_rows), layout="constrained")
    FigureCanvasAgg(figure)
    for position, panel in enumerate(panels):
        axes = figure.add_subplot(n_rows, min(len(panels), _COLUMNS), position + 1)
        panel(axes)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(caption, fontsize=8, color=_OTHERS)
    figure.savefig(folder / "speed.png", dpi=150)
    return folder / "speed.png"


def _read(folder: Path, name: str) -> pd.DataFrame | None:
    path = folder / f"speed_{name}.csv"
    return pd.read_csv(path) if path.exists() else None


def _color(name: str) -> str:
    return _OURS if name.startswith("ours") else _OTHERS


def _peers(axes: Any, table: pd.DataFrame) -> None:
    """Time and error; hollow where only a few series were forecast."""
    table = table.dropna(subset="ms_per_series")
    table = table.assign(error=table["rmsse"] / table["ours_rmsse"], few=table["note"].notna())
    table = table.sort_values("error")
    gap = 0.05 * max(float(table["error"].max() - table["error"].min()), 1e-3)
    height = -float("inf")  # of the last label; the next one stays clear of it
    for row in table.itertuples():
        color = _color(row.contender)
        face = "white" if row.few else color
        axes.plot(row.ms_per_series, row.error, "o", color=color, markerfacecolor=face)
        height = max(row.error, height + gap)
        place = (1.25 * row.ms_per_series, height)
        axes.annotate(row.contender, place, va="center", fontsize=7.5, color=color)
    axes.set_xscale("log")
    axes.set_xlim(table["ms_per_series"].min() / 2, table["ms_per_series"].max() * 20)
    axes.set_xlabel("ms per series")
    axes.set_ylabel("RMSSE / ours, same series")
    axes.set_title("28 days ahead (hollow: on a few series)", fontsize=10)


def _trainers(axes: Any, table: pd.DataFrame) -> None:
    """Mean time of a fit, with the mean training error beside it."""
    table = table[table["series"] == "mean"].iloc[::-1]
    for row in table.itertuples():
        axes.plot(row.ms, row.way, "o", color=_color(row.way))
        place = (1.3 * row.ms, row.way)
        axes.annotate(f"RMSE {row.training_rmse:.3f}", place, va="center", fontsize=7.5)
    axes.set_xscale("log")
    axes.set_xlim(table["ms"].min() / 2, table["ms"].max() * 20)
    axes.set_ylim(-0.5, len(table) - 0.5)
    axes.tick_params(axis="y", labelsize=8)
    axes.set_xlabel("ms")
    axes.set_title("One fit", fontsize=10)


def _sweep(axes: Any, name: str, table: pd.DataFrame) -> None:
    """Time against a size, with the range of the repeats, and a proportional line."""
    from matplotlib.ticker import LogLocator

    x, y = table["size"].to_numpy(), table["seconds"].to_numpy()
    axes.plot(x, y[0] * x / x[0], ":", color=_OTHERS, label="proportional")
    spread = [y - table["low"].to_numpy(), table["high"].to_numpy() - y]
    axes.errorbar(x, y, yerr=spread, fmt="o-", color=_OURS, capsize=2)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(table["low"].min() / 1.5, table["high"].max() * 1.5)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xticks(x, [f"{value:,}" for value in x])
    axes.minorticks_off()
    axes.set_xlabel(_X_LABELS[name])
    axes.set_ylabel("seconds")
    axes.set_title(f"Growing: {name}", fontsize=10)
    axes.legend(frameon=False, fontsize=8)
