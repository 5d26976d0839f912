"""Draw what is learned of noisy series: ``python benchmarks/noise_picture.py docs/noise.png``.

Each point is a value of a series against one before it: as observed, as learned from nothing but
the observations and without any settings, and as it truly was. The series are those of
``denoising.py``.
"""

from __future__ import annotations

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from denoising import make_series, rms
from rbfdiffnet import RBFDiffNetRegressor
from shared_parts.look import GRAY, INK, RED, dress

CASES = (("Hénon", 1), ("Mackey-Glass", 3), ("Lorenz", 3))  # systems, steps between values
NOISE = 0.2
COLORS = (GRAY, RED, INK)


def main(path: str) -> None:
    figure, axes = plt.subplots(len(CASES), 3, figsize=(9, 9.2), layout="constrained")
    for row, (system, apart) in zip(axes, CASES, strict=True):
        clean, noisy = make_series(system, NOISE, seed=0)
        learned = RBFDiffNetRegressor(noise="auto").fit_series(noisy).latent_
        left = rms(learned - clean) / rms(noisy - clean)
        titles = f"{system}, noise {NOISE:.0%}", f"learned: {left:.0%} of it left", "true"
        for axis, series, title, color in zip(
            row, (noisy, learned, clean), titles, COLORS, strict=True
        ):
            axis.plot(series[:-apart], series[apart:], ".", ms=2.0, color=color)
            dress(axis, title, grid="")
            axis.spines[:].set_visible(False)
            margin = 0.05 * np.ptp(noisy)
            limits = noisy.min() - margin, noisy.max() + margin
            axis.set(xlim=limits, ylim=limits, xticks=[], yticks=[], aspect="equal")
        later = "next value" if apart == 1 else f"value {apart} steps later"
        row[0].set(xlabel="value", ylabel=later)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "noise.png")
