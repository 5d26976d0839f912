"""Run methods over data sets, a row at a time, and go on where an earlier run ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd

from accuracy_parts.data import DataSet, Window
from accuracy_parts.errors import scaled_errors
from accuracy_parts.single import Method, seasonal_naive
from shared_parts.row_file import RowFile

FILE = "accuracy.csv"
KEY = ("data", "method", "window")
VALUES = ("score", "seconds", "n_series", "n_fallbacks")
COLUMNS = (*KEY, *VALUES)

T = TypeVar("T")


def run(methods: Mapping[str, Method], data: Sequence[DataSet], folder: Path) -> list[str]:
    """Append a row for every window and method that the file in ``folder`` does not have yet.

    What fails is left out and comes back in words: a method that fails on a small made-up panel,
    with which it is warmed up; a window that cannot be read; a method in one window.
    """
    rows = RowFile(folder / FILE, KEY, VALUES)
    keys = [(d.name, name, w) for d in data for w in d.windows for name in methods]
    done = rows.done()
    missing = [key for key in keys if key not in done]
    failures: list[str] = []
    ready = {
        name
        for name in dict.fromkeys(name for _, name, _ in missing)
        if _attempt(name, partial(warm_up, methods[name]), failures) is not None
    }
    for each in data:
        for label, read in each.windows.items():
            names = [n for d, n, w in missing if (d, w) == (each.name, label) and n in ready]
            window = _attempt(f"{each.name}, {label}", read, failures) if names else None
            if window is None:
                continue
            for name in names:
                key = (each.name, name, label)
                job = partial(measure, methods[name], each, window)
                found = _attempt(", ".join(key), job, failures)
                if found is not None:
                    rows.append(key, found)
    return failures


def measure(method: Method, data: DataSet, window: Window) -> dict[str, float]:
    """The mean error of a method, and its seconds.

    ``seconds`` are those of the processor, on which everything else may run at the same time.
    """
    start = time.process_time()
    forecast = method(window.train, data.horizon, data.season_length, data.freq, window.inputs)
    seconds = time.process_time() - start
    joined, n_fallbacks = complete(forecast, data, window)
    errors = scaled_errors(window.train, joined, data.scale, data.power)
    figures = (errors.mean(), seconds, len(errors), n_fallbacks)
    return dict(zip(VALUES, figures, strict=True))


def complete(forecast: pd.DataFrame, data: DataSet, window: Window) -> tuple[pd.DataFrame, int]:
    """Test values and forecasts, naive ones for series without, and how many these are."""
    key = ["unique_id", "ds"]
    joined = window.test[[*key, "y"]].merge(forecast, on=key, how="left", validate="one_to_one")
    without = joined.loc[~np.isfinite(joined["forecast"]), "unique_id"].unique()
    if len(without) == joined["unique_id"].nunique():
        raise ValueError(f"there is no series with finite forecasts of all {data.horizon} steps.")
    if len(without):
        past = window.train[window.train["unique_id"].isin(without)]
        naive = seasonal_naive(past, data.horizon, data.season_length, data.freq)
        found = joined[key].merge(naive, on=key, how="left")["forecast"]
        joined["forecast"] = joined["forecast"].mask(joined["unique_id"].isin(without), found)
    return joined, len(without)


def warm_up(method: Method) -> pd.DataFrame:
    """Forecast a small panel, so that imports and compilations are not timed."""
    values = np.random.default_rng(0).normal(100.0, 5.0, size=120)
    ids, days = np.repeat(["a", "b"], 60), np.tile(np.arange(60), 2)
    return method(pd.DataFrame({"unique_id": ids, "ds": days, "y": values}), 2, 4, 1, None)


def _attempt(where: str, job: Callable[[], T], failures: list[str]) -> T | None:
    try:
        return job()
    except Exception as error:
        failures.append(f"{where}: {type(error).__name__}: {error}")
        print(failures[-1], file=sys.stderr, flush=True)
        return None
