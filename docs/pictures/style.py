"""One look for all pictures of the site."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

HERE = Path(__file__).parent

INK, GRAY, LIGHT = "#2b2d33", "#8a8f98", "#d9dce1"
BLUE, RED, GREEN, GOLD, VIOLET = "#1f5a94", "#c8553d", "#3c8d5a", "#d9a33b", "#7b5ea7"

mpl.use("Agg")
plt.rcParams.update(
    {
        "axes.axisbelow": True,
        "axes.edgecolor": GRAY,
        "axes.grid": True,
        "axes.labelcolor": INK,
        "axes.prop_cycle": mpl.cycler(color=[BLUE, RED, GREEN, GOLD, VIOLET]),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlecolor": INK,
        "axes.titlelocation": "left",
        "axes.titlesize": 11,
        "axes.titleweight": "bold",
        "figure.constrained_layout.use": True,
        "figure.constrained_layout.h_pad": 0.08,
        "figure.constrained_layout.w_pad": 0.08,
        "figure.dpi": 100,
        "font.family": "DejaVu Sans",
        "font.size": 9,
        "grid.color": LIGHT,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "lines.linewidth": 1.6,
        "mathtext.fontset": "dejavusans",
        "savefig.facecolor": "white",
        "svg.hashsalt": "rbfdiffnet",  # the same picture gives the same file
        "text.color": INK,
        "xtick.color": GRAY,
        "xtick.labelcolor": INK,
        "ytick.color": GRAY,
        "ytick.labelcolor": INK,
    }
)


def save(figure: Figure, name: str) -> Path:
    """Write a picture beside the scripts, and close it."""
    path = HERE / name
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, metadata=metadata, dpi=130)
    plt.close(figure)
    return path
