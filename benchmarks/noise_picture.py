"""Draw what trajectory learning does: ``python benchmarks/noise_picture.py docs/noise.png``.

Each point is a value of a series against the value before it: as observed, as learned from nothing
but the observations, and as it truly was.
"""

from __future__ import annotations

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from noise_parts.data import make_cell
from rbfdiffnet import RBFDiffNetRegressor
from shared_parts.look import GRAY, INK, RED, dress

CASES = (("henon", "Hénon map", 2), ("mackey_glass", "Mackey-Glass", 4), ("lorenz", "Lorenz, x", 4))
NOISE = 0.2
COLORS = (GRAY, RED, INK)


def main(path: str) -> None:
    figure, axes = plt.subplots(len(CASES), 3, figsize=(9, 9.2), layout="constrained")
    for row, (system, name, n_lags) in zip(axes, CASES, strict=True):
        cell = make_cell(system, NOISE, n_lags, seed=0)
        model = RBFDiffNetRegressor(noise="auto").fit_series(cell.training, n_lags)
        clean = cell.clean[: cell.n_train]
        left = np.std(model.latent_ - clean) / np.std(cell.training - clean)
        titles = (
            f"{name}, noise {NOISE:.0%}",
            f"learned: {left:.0%} of it left",
            "true",
        )
        for axis, series, title, color in zip(
            row, (cell.training, model.latent_, clean), titles, COLORS, strict=True
        ):
            axis.plot(series[:-1], series[1:], ".", ms=2.0, color=color)
            dress(axis, title, grid="")
            axis.spines[:].set_visible(False)
            margin = 0.05 * np.ptp(cell.training)
            limits = cell.training.min() - margin, cell.training.max() + margin
            axis.set(xlim=limits, ylim=limits, xticks=[], yticks=[], aspect="equal")
        row[0].set(xlabel="value", ylabel="next value")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "noise.png")
