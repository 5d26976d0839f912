"""What bad series do to good ones beside them: ``python benchmarks/neighbors.py``.

Good series are 50 + 10 sin(week) + noise of size 3, 84 days of them. Beside them are none, as many
ordinary ones as there would be bad ones, or series that stopped two weeks ago, whose level is
twenty times as high since then, or that grow by 40 % a day for four weeks. Of the good series the
table has the mean width of 95 % intervals at steps 1 and 14, the share of values inside 80 %
intervals at steps 1, 3, 7 and 14, and how far forecasts moved from those without neighbors, in
standard deviations of the series: on average, and at most.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

H, LENGTH, STEPS = 14, 84, [0, 2, 6, 13]
SETTINGS = {
    "default": {},
    "instant": {"preset": "instant"},
    "fast": {"preset": "fast"},
    "local": {"scope": "local"},
    "global": {"scope": "global"},
}
KINDS = ("none", "ordinary", "stopped", "level x 20", "growth")


def good(n, rng, length):
    t = np.arange(length)
    weeks = [50.0 + 10.0 * np.sin(2 * np.pi * (t + i) / 7) for i in range(n)]
    return np.array(weeks) + rng.normal(0.0, 3.0, (n, length))


def neighbors(kind, n, rng):
    t, y = np.arange(LENGTH), good(n, rng, LENGTH)
    late, growing = t >= LENGTH - 14, np.maximum(t - (LENGTH - 28), 0)
    return {
        "none": y[:0],
        "ordinary": y,
        "stopped": np.where(late, 0.0, rng.poisson(1000, (n, LENGTH))),
        "level x 20": y * np.where(late, 20.0, 1.0),
        "growth": y * 1.4**growing,
    }[kind]


def forecast(panel, n, settings):
    """Forecasts of the first n series and bounds of 80 and 95 % intervals, (n, H, 5)."""
    from rbfdiffnet import RBFDiffNet

    names = [f"{i:03}" for i in range(len(panel))]
    days = pd.date_range("2024-01-01", periods=LENGTH)
    df = pd.DataFrame(
        {
            "unique_id": np.repeat(names, LENGTH),
            "ds": np.tile(days, len(names)),
            "y": panel.ravel(),
        }
    )
    found = RBFDiffNet("D", **settings).forecast(df, H, level=[80, 95])
    return found.iloc[:, 2:].to_numpy().reshape(len(names), H, 5)[:n]


def measure(settings, n, n_others, seeds):
    """Return what stands in the table, by the kind of neighbors."""
    rows = {kind: [] for kind in KINDS}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        y = good(n, rng, LENGTH + H)
        past, future = y[:, :LENGTH], y[:, LENGTH:]
        alone = forecast(past, n, settings)
        for kind in KINDS:
            others = neighbors(kind, n_others, np.random.default_rng(1_000 + seed))
            found = forecast(np.concatenate([past, others]), n, settings)
            width = (found[:, :, 4] - found[:, :, 3]).mean(axis=0)
            inside = (future >= found[:, :, 1]) & (future <= found[:, :, 2])
            moved = np.abs(found - alone)[:, :, 0] / past.std(axis=1, keepdims=True)
            covered = 100.0 * inside.mean(axis=0)[STEPS]
            rows[kind].append([width[0], width[-1], *covered, moved.mean(), moved.max()])
    return {
        kind: [*np.mean(own, axis=0)[:-1], np.max(own, axis=0)[-1]] for kind, own in rows.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument(
        "--panels", nargs="+", default=["9+1"], help="numbers of series: good+other"
    )
    parser.add_argument("--seeds", type=int, default=6)
    options = parser.parse_args()
    print("| | panel | beside | width 95: 1, 14 | inside 80 %: 1, 3, 7, 14 | moved: mean | most |")
    print("|---|---|---|---|---|---|---|")
    for name in options.settings:
        for panel in options.panels:
            n, n_others = (int(part) for part in panel.split("+"))
            found = measure(SETTINGS[name], n, n_others, options.seeds)
            for kind, (first, last, *inside, mean, most) in found.items():
                covered = " ".join(f"{share:.0f}" for share in inside)
                row = f"{name} | {panel} | {kind} | {first:.1f} {last:.1f} | {covered}"
                print(f"| {row} | {mean:.4f} | {most:.3f} |", flush=True)


if __name__ == "__main__":
    main()
