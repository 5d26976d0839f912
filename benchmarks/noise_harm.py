"""Whether ``noise="auto"`` is harmless: ``python benchmarks/noise_harm.py FOLDER ...``.

A FOLDER holds pairs of files ``NAME_train.parquet`` and ``NAME_test.parquet`` with the columns
``unique_id, ds, y``, or M5's 30 series of stores and categories as columns of ``level8.csv.gz``.
For each set the mean absolute scaled error of ``RBFDiffNet`` is printed without and with noise
treated, in how many series it was, and how long both took. M5 is forecast from a day well before
its end.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.support.parallel import one_blas_thread

SEASONS = {"yearly": 1, "quarterly": 4, "monthly": 12, "hospital": 12, "weekly": 52, "births": 7}
M5_ORIGIN, M5_HORIZON = 1549, 28


def data_sets(folder: Path) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame, int]]:
    """Yield names, training and test frames and seasons."""
    for path in sorted(folder.glob("*_train.parquet")):
        name = path.name.removesuffix("_train.parquet")
        season = next(season for key, season in SEASONS.items() if key in name)
        test = path.with_name(f"{name}_test.parquet")
        yield name, pd.read_parquet(path), pd.read_parquet(test), season
    if (folder / "level8.csv.gz").exists():
        wide = pd.read_csv(folder / "level8.csv.gz").drop(columns=["date", "d"], errors="ignore")
        long = wide.reset_index(names="ds").melt("ds", var_name="unique_id", value_name="y")
        ahead = (long["ds"] >= M5_ORIGIN) & (long["ds"] < M5_ORIGIN + M5_HORIZON)
        yield f"M5 level 8, from day {M5_ORIGIN}", long[long["ds"] < M5_ORIGIN], long[ahead], 7


def mean_scaled_error(train: pd.DataFrame, test: pd.DataFrame, path: pd.Series, lag: int) -> float:
    """Mean over series of the mean absolute error, in units of the seasonal naive one's."""
    errors = []
    for name, actual in test.groupby("unique_id")["y"]:
        past = train.loc[train["unique_id"] == name, "y"].dropna().to_numpy(float)
        step = lag if past.size > lag else 1
        scale = np.abs(past[step:] - past[:-step]).mean()
        errors.append(np.abs(actual.to_numpy(float) - path.loc[[name]].to_numpy()).mean() / scale)
    return float(np.mean([error for error in errors if np.isfinite(error)]))


def main(folders: list[str]) -> None:
    for name, train, test, season in (s for folder in folders for s in data_sets(Path(folder))):
        h = int(test.groupby("unique_id").size().max())
        figures = []
        for noise in (None, "auto"):
            model = RBFDiffNet(freq=1, season_length=season, scope="local", noise=noise)
            start = time.perf_counter()
            with one_blas_thread():
                path = model.forecast(train, h).set_index("unique_id")["RBFDiffNet"]
            seconds = time.perf_counter() - start
            figures.append((mean_scaled_error(train, test, path, season), seconds))
        treated = int(model.report_["problem"].str.startswith("noise").sum())
        (usual, usual_s), (auto, auto_s) = figures
        print(
            f"{name}: {train['unique_id'].nunique()} series, {treated} treated, "
            f"MASE {usual:.4f} without, {auto:.4f} with; {usual_s:.0f} s and {auto_s:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
