"""Noise in the inputs blurs a map; learned together with the clean series it is sharp."""

import matplotlib.pyplot as plt
import numpy as np

from rbfdiffnet import RBFDiffNetRegressor
from rbfdiffnet.datasets import logistic_map
from style import GOLD, GRAY, INK, RED, save


def main() -> None:
    clean = logistic_map(500)
    noisy = clean + 0.07 * np.random.default_rng(0).normal(size=500)
    blurred = RBFDiffNetRegressor().fit(noisy[:-1, None], noisy[1:])
    learned = RBFDiffNetRegressor(noise="auto").fit_series(noisy, n_lags=1)
    grid = np.linspace(0.0, 1.0, 200)

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(7.6, 3.0), gridspec_kw={"width_ratios": [1.0, 1.5]}
    )
    left.scatter(noisy[:-1], noisy[1:], s=5, color=GRAY, alpha=0.5, lw=0, rasterized=True)
    left.plot(grid, 4.0 * grid * (1.0 - grid), color=INK, lw=1.2, ls="--", label="the map")
    left.plot(grid, blurred.predict(grid[:, None]), color=GOLD, label="learned from noisy windows")
    left.plot(grid, learned.predict(grid[:, None]), color=RED, label="trajectory learning")
    left.set(
        title="The map", xlabel="$s_t$", ylabel="$s_{t+1}$", xlim=(-0.25, 1.25), ylim=(-0.3, 1.6)
    )
    left.legend(fontsize=7.5, loc="upper center")

    time = np.arange(200, 240)
    right.plot(time, noisy[time], "o", color=GRAY, ms=3.5, label="observed")
    right.plot(time, clean[time], color=INK, lw=1.2, ls="--", label="clean")
    right.plot(time, learned.latent_[time], color=RED, lw=1.4, label="learned")
    right.set(title="The trajectory", xlabel="$t$", ylim=(-0.3, 1.6))
    right.legend(fontsize=7.5, loc="upper center", ncols=3)
    save(figure, "trajectory.svg")


if __name__ == "__main__":
    main()
