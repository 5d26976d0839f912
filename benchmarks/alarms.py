"""How often panels are said to have intervals that are too narrow: rightly, and by chance.

``python benchmarks/alarms.py`` simulates backtests of panels: normal errors that go together from
step to step and from series to series, and intervals of 80 and 95 % that are as wide as they should
be, or 30 % too narrow. It prints the share of panels that `rbfdiffnet.evaluation.kinds` warns of.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import ndtri

from rbfdiffnet.evaluation import BacktestRows, Holding, find_models
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.support.arrays import Array

LEVELS = (80, 95)
# Series, windows, steps; correlation of a step with the one before, and of two series; how much
# the spread differs from series to series, as a standard deviation of logarithms.
PANELS = [
    *((10, 3, 14, 0.5, 0.0, 0.0), (30, 1, 14, 0.9, 0.0, 0.0), (30, 3, 14, 0.5, 0.0, 0.0)),
    *((30, 3, 14, 1.0, 0.0, 0.0), (30, 3, 1, 0.0, 0.0, 0.0), (30, 3, 14, 0.9, 0.0, 0.5)),
    *((30, 3, 14, 0.5, 0.1, 0.0), (300, 1, 28, 0.9, 0.0, 0.0), (300, 1, 14, 0.9, 0.2, 0.0)),
    *((300, 3, 14, 0.5, 0.2, 0.0), (300, 3, 14, 0.9, 0.5, 0.0), (300, 1, 14, 0.9, 0.5, 0.0)),
]


def simulate(rng: np.random.Generator, shape: tuple[int, ...], last: float) -> Array:
    """Draw normal errors (..., h), each with this correlation with the step before."""
    errors = rng.normal(size=shape)
    for k in range(1, shape[-1]):
        errors[..., k] = last * errors[..., k - 1] + np.sqrt(1.0 - last**2) * errors[..., k]
    return errors


def count_alarms(
    rng: np.random.Generator, panel: tuple[int, int, int, float, float, float], n_panels: int
) -> tuple[float, float]:
    """Return the shares of panels with an alarm, with good and with narrow intervals."""
    n, windows, h, last, common, spread = panel
    days = windows * h
    frame = pd.DataFrame({"unique_id": np.repeat(np.arange(n), days + 1), "y": 1.0})
    frame["ds"] = np.tile(np.arange(days + 1), n)
    series = Panel.from_frame(frame, freq=1)
    cutoffs = np.tile(np.repeat(np.arange(windows) * h, h), n)
    folds = frame[frame["ds"] > 0].assign(cutoff=cutoffs)
    rows = BacktestRows.locate(series, folds)
    names = [f"M-{end}-{level}" for level in LEVELS for end in ("lo", "hi")]
    (model,) = find_models(["M", *names], "backtest")
    # Intervals are right on average over series of different spreads.
    scales = np.exp(spread * rng.normal(size=100_000))
    usual = np.abs(scales * rng.normal(size=100_000))
    reach = [
        float(np.quantile(usual, level / 100) if spread else ndtri(0.5 + level / 200))
        for level in LEVELS
    ]
    alarms = np.zeros(2)
    for _ in range(n_panels):
        errors = np.sqrt(1.0 - common) * simulate(rng, (n, windows, h), last)
        errors += np.sqrt(common) * simulate(rng, (1, windows, h), last)
        errors *= np.exp(spread * rng.normal(size=(n, 1, 1)))
        for k, width in enumerate((1.0, 0.7)):
            columns = {"y": errors.ravel(), "M": np.zeros(errors.size)}
            for name, sign, far in zip(names, (-1, 1) * 2, np.repeat(reach, 2), strict=True):
                columns[name] = np.full(errors.size, sign * far * width)
            holding = Holding.count(series, rows, columns, "y", model)
            alarms[k] += bool(holding.find_shortfalls())
    good, narrow = alarms / n_panels
    return float(good), float(narrow)


def main(given: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--panels", type=int, default=1000, help="that are simulated of each kind")
    arguments = parser.parse_args(given)
    rng = np.random.default_rng(0)
    head = ("series", "windows", "steps", "step to step", "series to series", "spread")
    print("|", " | ".join([*head, "alarms, right", "alarms, narrow"]), "|")
    print("|---" * (len(head) + 2) + "|")
    for panel in PANELS:
        shares = [f"{100.0 * x:.1f} %" for x in count_alarms(rng, panel, arguments.panels)]
        print("|", " | ".join([*(f"{x:g}" for x in panel), *shares]), "|", flush=True)


if __name__ == "__main__":
    main()
