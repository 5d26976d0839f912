"""What reconciliation is worth on M5's sales: ``python benchmarks/hierarchy.py DIR``.

DIR holds ``level8.csv.gz`` (a column for each of 30 STORE_CATEGORY series, 1,941 days) and
``level8_weights.csv``. Its series are added up to states, stores, categories, categories of states
and the total, M5's levels 8, 6, 4, 3, 2 and 1. Windows of 28 days at the end of the series are
forecast from what precedes them, by the default, once for each way to reconcile.

A row of the table is the weighted root mean squared scaled error of a level, the mean over windows:
squared errors in units of the mean squared daily change before the window. The weights are the
competition's, for its last 28 days. "all" is the mean over levels, as in the competition.

``--demand N`` takes N items of `daily_demand` instead, large, small and new ones, in groups inside
of one another and in groups that cross, three windows of 14 days for each of ``--seeds``. The table
has the mean absolute error of the series, and the mean over levels, in units of the mean change
over a week before the window.

``--paths`` prints how much 80 % intervals hold in windows of 28 days of the same sales: those of
single days by their own errors and by sample paths, and those of weeks, by paths.

``--everything FILE`` takes a file with a row for each of the 30,490 sales by item and store instead
(``sales_train_evaluation.csv``, or Parquet), forecasts twelve levels by ``preset="instant"``, and
prints how long that takes, and how much memory.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import numpy as np
import pandas as pd

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.datasets import daily_demand
from rbfdiffnet.forecasting.hierarchy import RECONCILERS

H = 28
LEVELS = [["state"], ["store"], ["category"], ["state", "category"]]
EVERYTHING = [["state_id"], ["store_id"], ["cat_id"], ["dept_id"], ["state_id", "cat_id"]]
EVERYTHING += [["state_id", "dept_id"], ["store_id", "cat_id"], ["store_id", "dept_id"]]
EVERYTHING += [["item_id"], ["state_id", "item_id"]]


def read_sales(folder: Path) -> pd.DataFrame:
    wide = pd.read_csv(folder / "level8.csv.gz", parse_dates=["date"]).drop(columns="d")
    sales = wide.melt("date", var_name="unique_id", value_name="y").rename(columns={"date": "ds"})
    parts = sales["unique_id"].str.extract(r"(?P<state>[^_]+)_(?P<number>\d+)_(?P<category>.+)")
    store = parts["state"] + "_" + parts["number"]
    return sales.assign(state=parts["state"], store=store, category=parts["category"])


def read_weights(folder: Path, sales: pd.DataFrame) -> dict[str, float]:
    """Weights of series and groups, each level with a sum of 1."""
    table = pd.read_csv(folder / "level8_weights.csv")
    own = table.set_index(table.columns[0])[table.columns[-1]]
    groups = sales.drop_duplicates("unique_id").set_index("unique_id")
    own = own[groups.index] / own[groups.index].sum()
    weights = {"Total": 1.0, **own}
    for columns in LEVELS:
        names = groups[columns].agg("/".join, axis=1)
        weights |= own.groupby(names).sum()
    return weights


def find_errors(found: pd.DataFrame, model: RBFDiffNet, weights: dict[str, float]) -> pd.Series:
    """WRMSSE of every level, the mean over windows."""
    levels = model.hierarchy_.set_index("unique_id")["level"]
    panel = model.fitted_panel.panel
    rows = []
    for (cutoff, name), window in found.groupby(["cutoff", "unique_id"]):
        i = panel.names.index(name)
        y = panel.y[panel.offsets[i] : panel.offsets[i + 1]]
        dates = panel.dates(i, np.arange(y.size))
        change = np.mean(np.diff(y[dates <= cutoff]) ** 2)
        error = np.sqrt(np.mean((window["y"] - window["RBFDiffNet"]) ** 2) / change)
        rows.append((cutoff, levels[name], weights[name] * error))
    table = pd.DataFrame(rows, columns=["cutoff", "level", "error"])
    by_window = table.groupby(["cutoff", "level"])["error"].sum().unstack()
    return by_window[list(dict.fromkeys(levels))].mean()


def score_demand(n: int, seed: int, spec: list, preset: str, methods: list[str]) -> pd.DataFrame:
    """MASE of the series and of all levels, a column for each way to reconcile."""
    sales = daily_demand(n, seed=seed).drop(columns="promotion")
    number = sales["unique_id"].str[5:].astype(int) - 1
    sales["region"] = "region " + (2 * number // n).astype(str)
    sales["kind"] = "kind " + (number % 3).astype(str)
    columns = {}
    for method in methods:
        model = RBFDiffNet("D", preset=preset, hierarchy=spec, reconcile=method, lower=0.0)
        found = model.cross_validation(sales, 14, n_windows=3)
        panel = model.fit(sales).fitted_panel.panel
        series = np.split(panel.y, panel.offsets[1:-1])
        values = dict(zip(panel.names, series, strict=True))
        rows = []
        for k, (_, window) in enumerate(found.groupby("cutoff")):
            errors = (window["y"] - window["RBFDiffNet"]).abs().groupby(window["unique_id"]).mean()
            past = {name: values[name][: -14 * (3 - k)] for name in errors.index}
            change = pd.Series({name: np.mean(np.abs(y[7:] - y[:-7])) for name, y in past.items()})
            rows.append(errors / change)
        by_level = pd.concat(rows).groupby(model.hierarchy_.set_index("unique_id")["level"]).mean()
        columns[method] = {"series": by_level["series"], "all": by_level.mean()}
    return pd.DataFrame(columns)


def compare_on_demand(n: int, seeds: int, preset: str, methods: list[str]) -> None:
    print(f"MASE of {n:,} items of daily_demand, preset {preset!r}, 3 windows, {seeds} seeds")
    tables, nested, crossed = {}, ["region", "kind"], [["region"], ["kind"], ["region", "kind"]]
    for title, spec in (("nested", nested), ("crossed", crossed)):
        scored = (score_demand(n, seed, spec, preset, methods) for seed in range(seeds))
        tables[title] = sum(scored) / seeds
    print(pd.concat(tables).round(4).to_string())


def compare_with_paths(sales: pd.DataFrame, windows: int, preset: str) -> pd.DataFrame:
    """Percent of values inside, by level, and widths of days by paths as a share of the others."""
    lower, upper = "RBFDiffNet-lo-80", "RBFDiffNet-hi-80"
    kinds, dates, tables = (
        {"days": None, "days, paths": 1, "weeks": 7},
        sorted(sales["ds"].unique()),
        [],
    )
    for window in range(windows):
        cut = dates[-1 - H * (window + 1)]
        model = RBFDiffNet("D", preset=preset, hierarchy=LEVELS, lower=0.0)
        model.fit(sales[sales["ds"] <= cut])
        coming = model.options.read_panel(sales[sales["ds"] <= dates[-1 - H * window]])
        values = {
            name: coming.y[coming.offsets[i + 1] - H : coming.offsets[i + 1]]
            for i, name in enumerate(coming.names)
        }
        table = model.hierarchy_.set_index("unique_id")
        for kind, totals in kinds.items():
            found = model.predict(H, level=[80], totals=totals).groupby("unique_id")
            for name, own in found:
                sums = values[name].reshape(len(own), -1).sum(axis=1)
                table.loc[name, kind] = 100.0 * own[lower].le(sums).mul(own[upper].ge(sums)).mean()
                table.loc[name, f"width, {kind}"] = (own[upper] - own[lower]).mean()
        tables.append(table)
    mean = pd.concat(tables).groupby("level", sort=False).mean()
    mean["width by paths"] = mean.pop("width, days, paths") / mean.pop("width, days")
    return mean.drop(columns="width, weeks")


def read_everything(file: Path) -> pd.DataFrame:
    wide = pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file)
    days = [name for name in wide.columns if name.startswith("d_")]
    first = pd.Timestamp("2011-01-29") + pd.Timedelta(days=int(days[0][2:]) - 1)
    columns = {
        name: wide[name].astype("category") for name in {c for own in EVERYTHING for c in own}
    }
    columns["unique_id"] = (wide["item_id"] + "_" + wide["store_id"]).astype("category")
    long = {
        name: pd.Categorical.from_codes(np.repeat(own.cat.codes, len(days)), dtype=own.dtype)
        for name, own in columns.items()
    }
    dates = np.tile(pd.date_range(first, periods=len(days)), len(wide))
    return pd.DataFrame({**long, "ds": dates, "y": wide[days].to_numpy(dtype=np.float64).ravel()})


def time_everything(file: Path, methods: list[str]) -> None:
    sales = read_everything(file)
    print(f"{sales['unique_id'].nunique():,} series of {sales['ds'].nunique():,} days, h = {H}")
    for method in methods:
        model = RBFDiffNet("D", preset="instant", hierarchy=EVERYTHING, reconcile=method, lower=0.0)
        start = time.perf_counter()
        found = model.forecast(sales, H)
        seconds = time.perf_counter() - start
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        n = found["unique_id"].nunique()
        print(f"{method:<12}{n:,} series and groups in {seconds:4.0f} s, {most:.1f} GiB at most")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", help="folder with M5's files")
    parser.add_argument("--everything", type=Path, metavar="FILE", help="sales by item and store")
    parser.add_argument("--demand", type=int, metavar="N", help="items of daily_demand")
    parser.add_argument("--seeds", type=int, default=3, help="of daily_demand")
    parser.add_argument("--windows", type=int, default=9, help="windows of 28 days")
    parser.add_argument("--reconcile", nargs="+", choices=RECONCILERS, default=RECONCILERS[::-1])
    parser.add_argument("--preset", default="default", help="of the forecaster")
    parser.add_argument("--paths", action="store_true", help="compare intervals with sample paths")
    options = parser.parse_args()
    if options.everything is not None:
        time_everything(options.everything, options.reconcile)
        return
    if options.demand is not None:
        compare_on_demand(options.demand, options.seeds, options.preset, options.reconcile)
        return
    if options.folder is None:
        parser.error("give the folder with M5's files, --demand N, or --everything FILE")
    sales = read_sales(options.folder)
    if options.paths:
        print(f"In 80 % intervals, preset {options.preset!r}, {options.windows} windows")
        print(compare_with_paths(sales, options.windows, options.preset).round(2).to_string())
        return
    weights = read_weights(options.folder, sales)
    columns, seconds = {}, {}
    for method in options.reconcile:
        model = RBFDiffNet(
            "D", preset=options.preset, hierarchy=LEVELS, reconcile=method, lower=0.0
        )
        start = time.perf_counter()
        found = model.cross_validation(sales, H, n_windows=options.windows)
        seconds[method] = time.perf_counter() - start
        columns[method] = find_errors(found, model.fit(sales), weights)
    table = pd.DataFrame(columns)
    table.loc["all"] = table.mean()
    table.loc["seconds"] = pd.Series(seconds)
    print(f"WRMSSE of M5's levels, preset {options.preset!r}, {options.windows} windows")
    print(table.round(4).to_string())


if __name__ == "__main__":
    main()
