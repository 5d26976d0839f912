"""Three ways to place centers and four rules for widths, on windows of the Hénon map."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle

from rbfdiffnet.datasets import henon_map
from rbfdiffnet.network.centers import forward_selection, kmeans, self_organizing_map
from rbfdiffnet.network.widths import WIDTH_RULES, widths
from rbfdiffnet.series.windows import lag_windows
from style import BLUE, GRAY, RED, save


def draw(ax: Axes, rows: np.ndarray, centers: np.ndarray, sigma: np.ndarray, title: str) -> None:
    ax.scatter(*rows.T, s=1.5, color=GRAY, alpha=0.6, lw=0)
    ax.scatter(*centers.T, s=14, color=RED, zorder=3)
    for center, width in zip(centers, sigma, strict=True):
        ax.add_patch(Circle(tuple(center), width, fc=BLUE, ec=BLUE, alpha=0.13))
        ax.add_patch(Circle(tuple(center), width, fc="none", ec=BLUE, lw=0.7))
    ax.set(title=title, aspect="equal", xlim=(-1.9, 1.9), ylim=(-1.8, 2.0))
    ax.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    ax.title.set_fontsize(9.5)


def main() -> None:
    rows, targets = lag_windows(henon_map(500), n_lags=2)
    placed = {
        "K-Means": kmeans(rows, 9),
        "self-organizing map": self_organizing_map(rows, 9),
        "forward selection": forward_selection(rows, targets, 9),
    }
    figure, axes = plt.subplots(1, 3, figsize=(7.6, 2.8), sharey=True)
    for ax, (name, centers) in zip(axes, placed.items(), strict=True):
        draw(ax, rows, centers, widths("cluster", rows, centers), name)
        ax.set_xlabel("$s_{t-2}$")
    axes[0].set_ylabel("$s_{t-1}$")
    save(figure, "centers.png")

    figure, axes = plt.subplots(1, 4, figsize=(7.6, 2.3), sharey=True)
    for ax, rule in zip(axes, WIDTH_RULES, strict=True):
        draw(ax, rows, placed["K-Means"], widths(rule, rows, placed["K-Means"]), rule)
        ax.set_xlabel("$s_{t-2}$")
    axes[0].set_ylabel("$s_{t-1}$")
    save(figure, "widths.png")


if __name__ == "__main__":
    main()
