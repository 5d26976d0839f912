"""The look of the pictures that benchmarks draw: that of ``docs/pictures/style.py``."""

from __future__ import annotations

from typing import Any

INK, GRAY, LIGHT = "#2b2d33", "#8a8f98", "#d9dce1"
BLUE, RED, GOLD = "#1f5a94", "#c8553d", "#d9a33b"


def dress(axes: Any, title: str, grid: str = "both") -> None:
    """Give axes a title and a grid of lines, "" for none, and take away what is not needed."""
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GRAY)
    axes.tick_params(color=GRAY, labelcolor=INK, labelsize=9)
    axes.tick_params(which="minor", color=GRAY)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    axes.set_axisbelow(True)
    if grid:
        axes.grid(axis=grid, color=LIGHT, linewidth=0.6)
