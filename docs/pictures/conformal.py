"""How wide a conformal interval is, and what its rank guarantees."""

import matplotlib.pyplot as plt
import numpy as np

from rbfdiffnet.models.intervals import conformal_quantiles
from style import BLUE, GOLD, GRAY, RED, save


def main() -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 2.9))

    scores = np.sort(np.abs(np.random.default_rng(8).normal(size=19)))
    left.bar(np.arange(1, 20), scores, color=BLUE, alpha=0.75, width=0.7)
    for level, color in ((0.8, GOLD), (0.95, RED)):
        width = conformal_quantiles(scores[:, None], [level])[0, 0]
        rank = int(np.ceil(round(20 * level, 9)))
        left.axhline(width, color=color, lw=1.2, ls="--")
        left.text(0.4, width + 0.04, f"{level:.0%}: number {rank}", color=color, fontsize=8.5)
    left.set(
        title="19 errors, sorted",
        xlabel="rank",
        ylabel="error",
        ylim=(0, 1.25 * scores[-1]),
    )
    left.set_xticks([1, 5, 10, 15, 19])

    n = np.arange(4, 101)
    for level, color in ((0.8, GOLD), (0.95, RED)):
        usual = np.minimum(np.ceil(np.round(n * level, 9)), n)
        ours = np.ceil(np.round((n + 1) * level, 9))
        enough = ours <= n
        right.plot(n, usual / (n + 1), color=color, lw=1.0, ls=":")
        right.plot(n[enough], ours[enough] / (n + 1)[enough], color=color, label=f"{level:.0%}")
        right.axhline(level, color=GRAY, lw=0.8)
    right.set(title="Share of new errors covered", xlabel="number of errors $n$", ylim=(0.6, 1.005))
    right.plot([], [], color=GRAY, lw=1.0, ls=":", label=r"rank $\lceil n\gamma\rceil$")
    right.plot([], [], color=GRAY, label=r"rank $\lceil (n+1)\gamma\rceil$")
    right.legend(fontsize=8, loc="lower right", ncols=2)
    save(figure, "conformal.svg")


if __name__ == "__main__":
    main()
