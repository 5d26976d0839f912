"""The derivatives of a Gaussian, and three networks of five functions on one curve."""

import matplotlib.pyplot as plt
import numpy as np

from rbfdiffnet import RBFDiffNetRegressor, RBFNetworkRegressor
from rbfdiffnet.network.basis import derivatives
from style import BLUE, GOLD, GRAY, GREEN, INK, RED, save


def main() -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 2.9))

    x = np.linspace(-3.2, 3.2, 300)
    terms = derivatives(x[:, None], np.zeros((1, 1)), np.array([0.5]), order=2)[:, :, 0, 0]
    labels = (r"$\varphi$", r"$\partial\varphi$", r"$\partial^2\varphi$")
    for term, label, color in zip(terms, labels, (BLUE, RED, GREEN), strict=True):
        left.plot(x, term, color=color, label=label)
    mixed = 0.4 * terms[0] - 0.7 * terms[1] + 0.5 * terms[2]
    left.plot(
        x, mixed, color=INK, ls="--", label=r"$.4\varphi-.7\,\partial\varphi+.5\,\partial^2\varphi$"
    )
    left.set(title="One Gaussian, other shapes", xlabel="$x$")
    left.legend(fontsize=8, loc="upper left", bbox_to_anchor=(0.0, 1.02))
    left.set_ylim(-1.1, 2.1)

    rng = np.random.default_rng(0)
    inputs = np.sort(rng.uniform(-3.0, 3.0, 60))

    def curve(x: np.ndarray) -> np.ndarray:
        return 0.5 * x + np.sin(2.0 * x)

    targets = curve(inputs) + 0.1 * rng.normal(size=60)
    grid = np.linspace(-4.5, 4.5, 300)
    networks = {
        "plain": (RBFNetworkRegressor(5), GOLD),
        "normalized": (RBFNetworkRegressor(5, normalize=True), GREEN),
        "differential": (RBFDiffNetRegressor(5, order=2), RED),
    }
    right.plot(grid, curve(grid), color=GRAY, lw=1.0, ls=":", label="the curve")
    right.scatter(inputs, targets, s=9, color=GRAY, zorder=3)
    for name, (network, color) in networks.items():
        network.fit(inputs[:, None], targets)
        right.plot(grid, network.predict(grid[:, None]), color=color, label=name)
    right.set(title="Five functions, three networks", xlabel="$x$", ylim=(-3.6, 3.6))
    right.legend(fontsize=8)
    save(figure, "networks.svg")


if __name__ == "__main__":
    main()
