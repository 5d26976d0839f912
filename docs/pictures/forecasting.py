"""Recursive and direct forecasts, drawn as a scheme, and a stack of members."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.datasets import load_air_passengers
from style import BLUE, GRAY, INK, LIGHT, RED, save


def cells(ax: Axes, y: float, known: int, new: int) -> None:
    for i in range(known + new):
        fill = LIGHT if i < known else RED
        ax.add_patch(Rectangle((i + 0.06, y), 0.88, 0.8, fc=fill, ec="white"))


def network(ax: Axes, x: float, y: float) -> None:
    style = "round,pad=0.02,rounding_size=0.15"
    ax.add_patch(FancyBboxPatch((x, y), 0.9, 0.8, boxstyle=style, fc=BLUE, ec="none"))
    ax.text(x + 0.45, y + 0.4, "$f$", color="white", ha="center", va="center", fontsize=12)


def arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    ax.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=9, color=GRAY))


def scheme(ax: Axes) -> None:
    ax.text(0, 7.1, "recursive: a step, fed back", fontsize=9.5)
    for k in range(3):
        y = 5.9 - 1.1 * k
        cells(ax, y, 4 - k, k)
        arrow(ax, (4.1, y + 0.4), (5.3, y + 0.4))
        network(ax, 5.4, y)
        arrow(ax, (6.4, y + 0.4), (7.4, y + 0.4))
        ax.add_patch(Rectangle((7.5, y), 0.88, 0.8, fc=RED, ec="white"))
    ax.text(0, 2.2, "direct: an output for every step", fontsize=9.5)
    cells(ax, 1.0, 4, 0)
    arrow(ax, (4.1, 1.4), (5.3, 1.4))
    network(ax, 5.4, 1.0)
    arrow(ax, (6.4, 1.4), (7.4, 1.4))
    for k in range(3):
        ax.add_patch(Rectangle((7.5 + k, 1.0), 0.88, 0.8, fc=RED, ec="white"))
    ax.set(title="Several steps", xlim=(-0.2, 10.8), ylim=(0.4, 7.8))
    ax.axis("off")


def stack(ax: Axes) -> None:
    df = load_air_passengers().assign(unique_id="air")
    known, held = df[:-24], df[-24:]
    model = RBFDiffNet(freq="MS").fit(known)
    forecast = model.predict(24, level=[80])
    members = model.explain(24)
    members = members[(members["part"] == "member") & (members["value"] > 100)]  # no corrections
    pretrained = RBFDiffNet(freq="MS", preset="instant").forecast(known, 24)
    shown = pd.concat([known[-24:], held])
    for k, (_, member) in enumerate(members.groupby("term")):
        label = "its members" if k == 0 else None
        ax.plot(member["ds"], member["value"], color=BLUE, lw=0.9, alpha=0.55, label=label)
    ax.plot(pretrained["ds"], pretrained["RBFDiffNet"], color=BLUE, lw=0.9, alpha=0.55)
    low, high = forecast["RBFDiffNet-lo-80"], forecast["RBFDiffNet-hi-80"]
    ax.fill_between(forecast["ds"], low, high, color=RED, alpha=0.13, lw=0, label="80 %")
    ax.plot(forecast["ds"], forecast["RBFDiffNet"], color=RED, label="the stack")
    ax.plot(shown["ds"], shown["y"], color=INK, lw=1.2, label="observed")
    ax.axvline(known["ds"].iloc[-1], color=GRAY, lw=0.8, ls=":")
    ax.set(title="The stack: air passengers", ylabel="thousands")
    ax.tick_params(axis="x", rotation=30)
    ax.legend(fontsize=8, loc="upper left")


def main() -> None:
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(7.8, 3.3), gridspec_kw={"width_ratios": [1.0, 1.3]}
    )
    scheme(left)
    stack(right)
    save(figure, "forecasting.svg")


if __name__ == "__main__":
    main()
