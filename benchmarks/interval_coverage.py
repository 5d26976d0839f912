"""How often intervals contain what came: ``python benchmarks/interval_coverage.py``.

The default forecaster on the data sets of ``accuracy.py``: shares of values inside the 80 % and the
95 % intervals, and the mean width of the 80 % ones in mean absolute errors of the same series, the
median over the series.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from shared_parts.threads import one_thread

SETS = (
    "m1_yearly",
    "m1_quarterly",
    "m1_monthly",
    "hospital",
    "electricity_weekly",
    "us_births",
    "m5_level8",
    "m5_level9",
)


def main(arguments: Sequence[str] | None = None) -> None:
    one_thread()  # before NumPy is imported
    import pandas as pd

    from accuracy_parts.data import NAMES, data_sets, folder
    from rbfdiffnet import RBFDiffNet

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=NAMES, default=SETS, metavar="D")
    parser.add_argument("--suite", type=Path, help="folder with the archive's series")
    parser.add_argument("--m5", type=Path, help="folder with M5's files")
    options = parser.parse_args(arguments)
    every = data_sets(folder(options.suite, "suite"), folder(options.m5, "m5"))
    print(f"{'data':<20}{'in 80 %':>9}{'in 95 %':>9}{'width':>8}", flush=True)
    for name in options.data:
        data, found = every[name], []
        for read in data.windows.values():
            window = read()
            model = RBFDiffNet(data.freq, season_length=data.season_length)
            forecast = model.forecast(window.train, data.horizon, level=[80, 95])
            found.append(window.test.merge(forecast, on=["unique_id", "ds"]))
        both = pd.concat(found)
        inside = {
            level: both["y"].between(both[f"RBFDiffNet-lo-{level}"], both[f"RBFDiffNet-hi-{level}"])
            for level in (80, 95)
        }
        error = (both["y"] - both["RBFDiffNet"]).abs().groupby(both["unique_id"]).mean()
        wide = (both["RBFDiffNet-hi-80"] - both["RBFDiffNet-lo-80"]).groupby(both["unique_id"])
        width = (wide.mean() / error)[error > 0.0].median()
        shares = f"{inside[80].mean():>9.1%}{inside[95].mean():>9.1%}"
        print(f"{name:<20}{shares}{width:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
