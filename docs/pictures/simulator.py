"""Every family of simulated series: draws of each part, of what is observed, and of all."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import matplotlib.pyplot as plt
import torch

from rbfdiffnet.pretrained import simulate as simulator
from style import BLUE, GRAY, RED, save

MANY = 3000  # series, of which the first ones that have a part are drawn


@contextmanager
def drawn(season: int, n_past: int, seed: int) -> Iterator[simulator.Frame]:
    """Make a frame of series that all have one season and are shown whole."""
    torch.manual_seed(seed)
    shares = {season: 1.0}
    with patch.multiple(simulator, SHORT=shares, LONG=shares, _TINY=0.0, _PER_STEP=0.0):
        frame = simulator.make_frame(simulator.Draw(MANY, n_past, "cpu"), n_past)
        yield frame


def draw(name: str, values: Any, titles: tuple[str, ...] = (), lw: float = 1.3) -> None:
    """Draw rows side by side, without units."""
    figure, axes = plt.subplots(1, len(values), figsize=(7.6, 1.25))
    for i, (ax, row) in enumerate(zip(axes, values, strict=True)):
        ax.plot(row, color=BLUE, lw=lw)
        ax.set(xticks=[], yticks=[])
        ax.spines[["left", "bottom"]].set_color(GRAY)
        if titles:
            ax.set_title(titles[i], fontsize=8.5)
    save(figure, f"simulated_{name}.png")


def some(part: Any, n: int = 4, among: Any = True) -> Any:
    """Return the first rows in which a part moves."""
    rows = ((part.std(1) > 0.0) & among).nonzero()[:n, 0]
    return part[rows]


def draw_parts() -> None:
    """Draw the parts that have no season, in months of eight years."""
    parts: dict[str, tuple[int, Callable[[simulator.Frame], Any]]] = {
        "level": (1, lambda f: simulator.make_level(f)[0]),
        "errors": (1, lambda f: simulator.make_errors(f, torch.ones(MANY, 96))[0]),
        "slow": (1, simulator.make_slow),
        "smooth": (8, simulator.make_smooth),
        "cycles": (2, simulator.make_cycles),
        "growth": (1, simulator.make_growth),
    }
    for name, (seed, make) in parts.items():
        with drawn(12, 96, seed) as frame:
            whole = frame.lengths[:, 0] > 80
            draw(name, some(make(frame), among=whole))


def draw_seasons() -> None:
    """Draw profiles of a day, and seasons: months, hours with kinds of days, days with a year."""
    torch.manual_seed(4)
    d = simulator.Draw(6, 48, "cpu")
    draw("profiles", simulator.make_profile(d, torch.full((6, 1), 24), 48))
    rows, titles = [], ("months", "months", "two weeks of hours", "a year of days")
    for season, steps, seed in ((12, 96, 3), (12, 96, 10), (24, 504, 8), (7, 1100, 3)):
        with drawn(season, steps, seed) as frame:
            whole = frame.lengths[:, 0] > 0.8 * steps
            (part,) = some(simulator.make_seasons(frame), 1, whole)
            rows.append(part[-{24: 336, 7: 364}.get(season, steps) :])
    draw("seasons", rows, titles, lw=0.9)


def draw_observed() -> None:
    """Draw one sum, observed in six ways."""
    with drawn(12, 120, 12) as frame:
        level, spread = simulator.make_level(frame)
        z = level + simulator.make_errors(frame, spread)[0] + simulator.make_seasons(frame)
        found = []
        for way in range(len(simulator.WAYS)):
            shares = tuple(float(k == way) for k in range(len(simulator.WAYS)))
            with patch.object(simulator, "WAYS", shares):
                torch.manual_seed(2)
                found.append(simulator.observe(frame, z))
        crosses = (found[0] < 0.0).float().mean(1)  # so that something is cut off
        fits = (frame.lengths[:, 0] > 100) & (crosses > 0.1) & (crosses < 0.4)
        fits &= (found[2].amax(1) > 20) & (found[2].amax(1) < 60)
        row = int(fits.nonzero()[0, 0])
        found = [y[row] for y in found]
    titles = ("as it is", "exponential", "rounded", "counts", "cut off", "summed up")
    draw("observed", found, titles)


def draw_whole() -> None:
    """Draw whole series, past and future, as the network gets them."""
    torch.manual_seed(1)
    found = simulator.simulate(24, 96, 24)
    figure, axes = plt.subplots(4, 6, figsize=(7.6, 4.0))
    for ax, y, n in zip(axes.flat, found.y, found.lengths.tolist(), strict=True):
        ax.plot(range(96 - n, 96), y[96 - n : 96], color=BLUE, lw=1.1)
        ax.plot(range(95, 120), y[95:], color=RED, lw=1.1)
        ax.set(xticks=[], yticks=[], xlim=(-2, 121))
        ax.spines[["left", "bottom"]].set_color(GRAY)
    save(figure, "simulated_series.png")


def main() -> None:
    torch.set_num_threads(1)
    draw_parts()
    draw_seasons()
    draw_observed()
    draw_whole()


if __name__ == "__main__":
    main()
