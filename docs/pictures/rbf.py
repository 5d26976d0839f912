"""What an RBF network is: a few bells, each times a number, add up to a curve through points."""

import matplotlib.pyplot as plt
import numpy as np

from rbfdiffnet import RBFNetworkRegressor
from rbfdiffnet.network.basis import gaussian
from style import BLUE, GRAY, INK, RED, save


def main() -> None:
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-3.0, 3.0, 50))
    y = 0.4 * x + np.sin(2.0 * x) + 0.15 * rng.normal(size=50)
    network = RBFNetworkRegressor(6, width_factor=2.5).fit(x[:, None], y).network_

    grid = np.linspace(-3.2, 3.2, 150)[:, None]
    scaled = (grid - network.x_shift) / network.x_scale
    bells = gaussian(scaled, network.centers, network.beta)  # (150, 6)
    heights = bells * network.w.ravel() * network.y_scale

    figure, axes = plt.subplots(1, 3, figsize=(8.8, 2.6), sharex=True)
    axes[0].plot(grid, bells, color=BLUE, lw=1.2)
    axes[0].set(title="1. Bells, around typical cases", ylim=(0.0, 1.25))
    axes[1].plot(grid, heights, color=BLUE, lw=1.2)
    axes[1].axhline(0.0, color=GRAY, lw=0.8)
    axes[1].set_title("2. Each times its weight")
    axes[2].scatter(x, y, s=9, color=GRAY, label="what was seen")
    axes[2].plot(grid, network.predict(grid), color=RED, label="their sum")
    axes[2].set_title("3. Added up: the network")
    axes[2].legend(fontsize=8, labelcolor=INK)
    for ax in axes:
        ax.set_xlabel("input")
    save(figure, "rbf.svg")


if __name__ == "__main__":
    main()
