"""What the panel forecaster promises, measured: ``python benchmarks/panels.py --m5 DIR``.

===========  ======================================================================================
coverage     share of values inside the 80 % and 95 % intervals: 400 series of independent normal
             noise (T = 193, h = 7), and the 30 series of M5's level 8 in five windows of 28 days
calendar     mean RMSSE in the same windows, with and without ``calendar.csv`` as known inputs
bottom       1,000 item-by-store series through ``cross_validation``: finite, not negative
===========  ======================================================================================

The windows end before d_1914, where the competition's test days begin. DIR holds ``level8.csv.gz``
(or anything `rbfdiffnet.datasets.m5` reads), ``calendar.csv`` and, for the last part,
``bottom_1000.csv.gz`` (wide: id, d_1, ..., d_1941).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.evaluation.metrics import coverage, rmsse

H = 28
LEVELS = [80, 95]
TRAINING_ENDS = (1773, 1801, 1829, 1857, 1885)
CALENDAR = ["weekday", "month", "event_name_1", "event_name_2", "snap_CA", "snap_TX", "snap_WI"]


def noise(n: int = 400, length: int = 193, h: int = 7, seed: int = 0) -> pd.DataFrame:
    values = np.random.default_rng(seed).normal(size=(n, length + h))
    return pd.DataFrame(
        {
            "unique_id": np.repeat(np.arange(n), length + h),
            "ds": np.tile(np.arange(length + h), n),
            "y": values.ravel(),
        }
    )


def level8(folder: Path) -> pd.DataFrame:
    wide = pd.read_csv(folder / "level8.csv.gz", parse_dates=["date"]).drop(columns="d")
    return wide.melt("date", var_name="unique_id", value_name="y").rename(columns={"date": "ds"})


def calendar(folder: Path) -> pd.DataFrame:
    table = pd.read_csv(folder / "calendar.csv", parse_dates=["date"])
    table["day"] = table["date"].dt.day
    return table[["date", "day", *CALENDAR]].rename(columns={"date": "ds"})


def covered(frame: pd.DataFrame) -> list[float]:
    return [float(coverage(frame, ["RBFDiffNet"], level)["RBFDiffNet"].mean()) for level in LEVELS]


def window(df: pd.DataFrame, end: int, inputs: pd.DataFrame | None) -> tuple[float, pd.DataFrame]:
    """Mean RMSSE, and the forecasts with the actual values, after day ``end``."""
    last = df["ds"].min() + pd.Timedelta(days=end - 1)
    train = df[df["ds"] <= last]
    test = df[(df["ds"] > last) & (df["ds"] <= last + pd.Timedelta(days=H))]
    future = None
    if inputs is not None:
        train = train.merge(inputs, on="ds")
        future = test[["unique_id", "ds"]].merge(inputs, on="ds")
    forecast = RBFDiffNet("D", scope="local", lower=0.0).forecast(train, H, future, level=LEVELS)
    joined = test.merge(forecast, on=["unique_id", "ds"])
    errors = rmsse(joined, ["RBFDiffNet"], train[["unique_id", "ds", "y"]])
    return float(errors["RBFDiffNet"].mean()), joined


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--m5", type=Path, help="folder with M5's files")
    parser.add_argument("--seeds", type=int, default=1, help="panels of noise")
    options = parser.parse_args()
    print("intervals: share of values inside, percent")
    print("panel                          80 %    95 %")
    for seed in range(options.seeds):
        df = noise(seed=seed)
        shares = covered(RBFDiffNet(1, scope="local").cross_validation(df, 7, level=LEVELS))
        print(f"noise, seed {seed:<16d} {100 * shares[0]:6.1f}  {100 * shares[1]:6.1f}", flush=True)
    if options.m5 is None:
        return
    df, inputs = level8(options.m5), calendar(options.m5)
    means = {}
    for name, columns in (("without calendar", None), ("with calendar", inputs)):
        results = [window(df, end, columns) for end in TRAINING_ENDS]
        shares = covered(pd.concat([joined for _, joined in results]))
        means[name] = [error for error, _ in results]
        print(f"M5, {name:<22} {100 * shares[0]:6.1f}  {100 * shares[1]:6.1f}", flush=True)
    print("\nmean RMSSE of M5's level 8, training ends at day")
    print(f"{'':<20}" + "".join(f"{end:>8d}" for end in TRAINING_ENDS) + "    mean")
    for name, errors in means.items():
        row = "".join(f"{error:8.3f}" for error in errors)
        print(f"{name:<20}{row}{np.mean(errors):8.3f}")
    gain = 1.0 - np.mean(means["with calendar"]) / np.mean(means["without calendar"])
    print(f"the calendar takes off {100 * gain:.1f} %")
    wide = pd.read_csv(options.m5 / "bottom_1000.csv.gz", index_col=0)
    dates = pd.date_range("2011-01-29", periods=wide.shape[1])
    bottom = wide.set_axis(dates, axis=1).melt(var_name="ds", value_name="y", ignore_index=False)
    bottom = bottom.rename_axis("unique_id").reset_index()
    start = time.perf_counter()
    forecaster = RBFDiffNet("D", scope="local", lower=0.0)
    folds = forecaster.cross_validation(bottom, H, n_windows=2, refit=False)
    seconds = time.perf_counter() - start
    values = folds["RBFDiffNet"].to_numpy()
    print(
        f"\n{len(wide)} item-by-store series, 2 windows: {len(values)} forecasts in "
        f"{seconds:.0f} s, all finite: {np.isfinite(values).all()}, lowest {values.min():.3f}, "
        f"fallbacks: {forecaster.report_['action'].str.startswith('forecast').sum()}"
    )


if __name__ == "__main__":
    main()
