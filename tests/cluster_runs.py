"""Run forecasts on a local cluster of two workers and leave the frames in a file.

Called by the tests in a process of its own, so that a cluster's threads, ports and warnings end
with it: ``python cluster_runs.py ENGINE FILE CASE ...``.
"""

import os
import pickle
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd

from panels import fill_future, make_panel
from rbfdiffnet import RBFDiffNet, RBFDiffNetRegressor
from rbfdiffnet.adapters.clusters import cross_validation, forecast
from rbfdiffnet.adapters.clusters.cluster import Cluster

SOME = [f"s{i}" for i in range(9)]
INPUTS = ("price", "offer")
MAKE_GROUPS = Cluster.make_groups
LOST = "RBFDIFFNET_TEST_LOST"  # a file whose finder dies, and the process that must not


class MortalRegressor(RBFDiffNetRegressor):
    """Ends the worker that finds a certain file, which it takes along."""

    def _settings(self, n_features):
        path, _, driver = os.environ.get(LOST, "").partition("|")
        if path and os.getpid() != int(driver):
            try:
                os.remove(path)
            except FileNotFoundError:
                pass
            else:
                os._exit(1)
        return super()._settings(n_features)


def short_series(n_series=300, n=40, whole=False):
    rng = np.random.default_rng(5)
    steps = rng.normal(size=(n_series, n)).cumsum(axis=1)
    week = np.sin(2 * np.pi * np.arange(n) / 7 + rng.uniform(0, 6, (n_series, 1)))
    y = 50.0 + 5.0 * week + steps
    ids = np.repeat([f"item {i}" for i in range(n_series)], n)
    dates = np.tile(pd.date_range("2024-01-01", periods=n), n_series)
    df = pd.DataFrame({"unique_id": ids, "ds": dates, "y": y.ravel()})
    if whole:  # with a missing value
        df["y"] = df["y"].round().astype("Int64").where(df.index != 55)
    return df


def odd_series():
    """Series of which some have a place in the report."""
    df = make_panel(SOME, n=60)
    constant = df["unique_id"].eq("s1")
    short = df["unique_id"].eq("s2") & (df["ds"] > "2023-01-05")
    return df.assign(y=df["y"].where(~constant, 3.0))[~short]


def future(df, h, columns):
    last = df.groupby("unique_id")["ds"].max()
    rows = [
        pd.DataFrame({"unique_id": i, "ds": pd.date_range(t, periods=h + 1)[1:]})
        for i, t in last.items()
    ]
    return fill_future(pd.concat(rows, ignore_index=True), RBFDiffNet("D"), columns)


#: Frame, method, arguments of the method, settings of the model, and how it is spread.
CASES = {
    "local": (odd_series, "forecast", {"level": [80]}, {"scope": "local", "lags": 7}, 2),
    "global": (odd_series, "forecast", {"level": [80, 95]}, {"scope": "global"}, 2),
    "stack": (lambda: make_panel(SOME, n=60), "forecast", {"level": [80]}, {}, 5),
    "inputs": (
        lambda: make_panel(SOME, n=60, columns=INPUTS),
        "forecast",
        {},
        {"scope": "global", "calendar": ["dayofweek"]},
        3,
    ),
    "backtest": (
        odd_series,
        "cross_validation",
        {"n_windows": 2, "refit": "weights", "level": [80]},
        {"scope": "global"},
        4,
    ),
    "lost": (lambda: make_panel(SOME, n=60), "forecast", {}, {"scope": "local"}, 2),
    "many in place": (lambda: short_series(whole=True), "forecast", {"level": [80]}, {}, None),
    "many, instant, in place": (
        short_series,
        "cross_validation",
        {"n_windows": 2},
        {"preset": "instant"},
        None,
    ),
    "many local": (short_series, "forecast", {}, {"preset": "fast"}, None),
    "many global": (short_series, "forecast", {}, {"scope": "global"}, None),
}


def run(case, spread=None):
    """Result of a case: of the function, by itself or with frames that are spread."""
    make, method, options, settings, size = CASES[case]
    df, h = make(), 4
    options = {**options, "freq": "D", "group_size": size, **settings}
    if case == "inputs":
        options["X_df"] = future(df, h, INPUTS)
    if case == "lost":
        options["regressor"] = MortalRegressor()
    if spread is not None:
        df = spread(df)
        if "X_df" in options:
            options["X_df"] = spread(options["X_df"])
    function = forecast if method == "forecast" else cross_validation
    if "in place" in case:
        return function(df, h, **options), None
    return function(df, h, with_report=True, **options)


def group_split_series(self, df, X_df, hashes, size):
    assert hashes.size == 2, "rows of other series were sent around, too"
    return MAKE_GROUPS(self, df, X_df, hashes, size)


def cut_anywhere(df):
    """Return a function that reads parts of a frame, one of a piece of a series and one of none."""
    first, last = len(df) // 3 + 17, 2 * len(df) // 3 + 5
    cuts = sorted(min(cut, len(df)) for cut in (0, first, first + 10, first + 10, last, len(df)))
    return lambda k: df[cuts[k] : cuts[k + 1]], range(len(cuts) - 1)


@contextmanager
def dask():
    import dask.dataframe as dd
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        yield lambda df: dd.from_map(*cut_anywhere(df), meta=df[:0]), lambda frame: frame.compute()


@contextmanager
def ray():
    import ray

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield lambda df: ray.data.from_pandas(df).repartition(3), lambda frame: frame.to_pandas()
    ray.shutdown()


@contextmanager
def spark():
    from pyspark.sql import SparkSession

    # Two threads, and up to four trials of a task.
    builder = SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "3").getOrCreate()
    yield session.createDataFrame, lambda frame: frame.toPandas()
    session.stop()


def main(engine, path, cases):
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        lost = Path(folder) / "lost"
        os.environ[LOST] = f"{lost}|{os.getpid()}"
        with {"dask": dask, "ray": ray, "spark": spark}[engine]() as (spread, collect):
            for case in cases:
                start = time.perf_counter()
                if case == "lost":
                    lost.touch()
                stays = engine == "dask" and "in place" in case
                make_groups = group_split_series if stays else MAKE_GROUPS
                with patch.object(Cluster, "make_groups", make_groups):
                    frame, report = run(case, spread)
                kind = type(frame).__module__.partition(".")[0]
                results[case] = kind, collect(frame), None if report is None else collect(report)
                print(f"{engine}, {case}: {time.perf_counter() - start:.1f} s", flush=True)
            assert not lost.exists(), "no worker was lost"
    Path(path).write_bytes(pickle.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
