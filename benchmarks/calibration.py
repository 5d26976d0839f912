"""Intervals where the truth is known: ``python benchmarks/calibration.py --preset default``.

Ten families of simulated monthly series, 12 steps ahead: the probability that values fall into the
50, 80 and 95 % intervals, and widths of the intervals by those of the ideal ones, which know how
the series were made. Series are forecast in panels of a family, alone, and in panels of all ten.
With ``--total 12`` sums over all steps are judged, which come from sample paths.
``calibration_parts.judge.run`` scores any function that forecasts a frame.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shared_parts.threads import one_thread


def main(arguments: Sequence[str] | None = None) -> None:
    one_thread()  # before NumPy is imported
    import pandas as pd

    from calibration_parts.families import FAMILIES, SEASON, H
    from calibration_parts.judge import BARS, LENGTHS, LEVELS, average, run
    from rbfdiffnet import RBFDiffNet
    from rbfdiffnet.forecasting.presets import PRESETS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    several: dict[str, Any] = {"nargs": "+", "metavar": "X"}
    parser.add_argument("--preset", choices=list(PRESETS), default=["default"], **several)
    parser.add_argument("--modes", choices=list(BARS), default=list(BARS), **several)
    parser.add_argument("--families", choices=list(FAMILIES), default=list(FAMILIES), **several)
    parser.add_argument("--lengths", type=int, default=list(LENGTHS), **several)
    parser.add_argument("--n", type=int, default=200, help="series of a panel (alone: half)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=1, help="panels to average, other seeds")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of a cell, alone")
    parser.add_argument("--total", type=int, default=1, help="steps that are summed up: 1 to 12")
    parser.add_argument("--out", type=Path, help="file for every step's figures")
    options = parser.parse_args(arguments)
    if options.n < 10:
        parser.error("--n must be 10 or more: a mixed panel has a tenth of them.")
    if options.total < 1 or H % options.total:
        parser.error(f"--total must divide {H}.")
    everything = []
    for preset in options.preset:

        def forecast(df: pd.DataFrame, preset: str = preset) -> pd.DataFrame:
            model = RBFDiffNet("MS", season_length=SEASON, preset=preset)
            sums = {} if options.total == 1 else {"totals": options.total}
            return model.forecast(df, H, level=list(LEVELS), **sums)

        for mode in options.modes:
            size = (options.families, options.lengths, mode, options.n)
            seeds = range(options.seed, options.seed + options.repeats)
            rest = (options.limit, options.total)
            results = average([run(forecast, *size, seed, *rest) for seed in seeds])
            print(f"\npreset={preset}, {mode}\n{table(results)}", flush=True)
            everything.append(results.assign(preset=preset))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        pd.concat(everything).to_csv(options.out, index=False, float_format="%.6g")


def table(results: Any) -> str:
    """Lines of a mode: a row for each family and length, then how many cells are good."""
    from calibration_parts.judge import BARS, LEVELS, summarize

    cells = summarize(results)
    bar = BARS[cells["mode"].iloc[0]]
    heads = "".join(f"{f'{level} %':>9}{'worst':>7}" for level in LEVELS)
    lines = [f"{'family':<16}{'T':>4}{heads}{'width: 50':>12}{'80':>6}{'95':>6}{'s.e.':>6}{'n':>6}"]
    for (family, length), rows in cells.groupby(["family", "T"], sort=False):
        shares = "".join(
            f"{row.coverage:>8.1f}{' ' if row.within else '*'}{row.worst:>+7.1f}"
            for row in rows.itertuples()
        )
        widths = "".join(f"{width:>6.2f}" for width in rows["width"])
        ends = f"{rows['se'].max():>6.1f}{rows['series'].iloc[0]:>6.0f}"
        lines.append(f"{family:<16}{length:>4}{shares}{'':>6}{widths}{ends}")
    off, worst = cells["error"].abs(), cells["worst"].abs()
    lines.append(
        f"within {bar:g} points: {cells['within'].sum()} of {len(cells)} cells (not *), at every "
        f"step {(worst <= bar).sum()}; mean absolute deviation {off.mean():.2f} points; mean "
        f"standard error {cells['se'].mean():.2f}, largest {cells['se'].max():.2f}; mean standard "
        f"deviation between repeats {cells['spread'].mean():.2f}"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
