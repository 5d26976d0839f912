"""What came out: errors and seconds by data set, and every method against the best rival."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from accuracy_parts.ablation import ABLATIONS
from accuracy_parts.data import DataSet
from accuracy_parts.methods import METHODS, RIVALS
from accuracy_parts.runner import FILE
from speed_parts.timing import Table

STACK = "ours, stack"
# The lowest mean MASE in Godahewa, Bergmeir, Webb, Hyndman and Montero-Manso (2021), "Monash Time
# Series Forecasting Archive", of 12 methods: TBATS, ETS, ETS, Theta and a feed-forward network.
PUBLISHED = {
    "m1_yearly": 3.499,
    "m1_quarterly": 1.658,
    "m1_monthly": 1.074,
    "hospital": 0.761,
    "electricity_weekly": 0.769,
}


def read(folder: Path) -> pd.DataFrame:
    """The rows of all methods."""
    return pd.read_csv(folder / FILE)


def table(frame: pd.DataFrame, data: Mapping[str, DataSet], value: str) -> pd.DataFrame:
    """Means over windows: a row for each data set, a column for each method.

    Missing where a method has not been through all windows.
    """
    groups = frame.groupby(["data", "method"])[value]
    windows = {name: len(each.windows) for name, each in data.items()}
    complete = groups.size() == groups.size().index.get_level_values("data").map(windows)
    means = groups.mean()[complete].unstack("method")
    rows = [name for name in data if name in means.index]
    return means.reindex(index=rows, columns=[name for name in METHODS if name in means])


def to_best_rival(scores: pd.DataFrame) -> pd.DataFrame:
    """Errors divided by the lowest of the rivals' on the same data set."""
    rivals = [name for name in RIVALS if name in scores]
    return scores.div(scores[rivals].min(axis=1), axis=0)


def report(frame: pd.DataFrame, data: Mapping[str, DataSet]) -> list[Table]:
    """All tables; none where no method is through a data set."""
    scores, seconds = (table(frame, data, value) for value in ("score", "seconds"))
    if scores.empty:
        return []
    parts = scores[[name for name in (STACK, *ABLATIONS) if name in scores]]
    scores, seconds = (each.drop(columns=ABLATIONS, errors="ignore") for each in (scores, seconds))
    ratios = to_best_rival(scores)
    methods = [
        {
            "method": name,
            "to_best_rival": float(np.exp(np.log(ratios[name]).mean())),
            "worst": float(ratios[name].max()),
            "lowest": int((ratios[name] <= ratios.min(axis=1)).sum()),
            "data_sets": int(ratios[name].notna().sum()),
            "seconds": float(seconds[name].sum()),
        }
        for name in ratios
    ]
    errors = scores.assign(**{"published best": pd.Series(PUBLISHED, dtype=float)})
    return [
        Table(
            "scores", "mean MASE, of M5 mean RMSSE (published: Godahewa et al. 2021)", _rows(errors)
        ),
        Table("ratios", "errors divided by those of the best rival on the data set", _rows(ratios)),
        Table("seconds", "seconds of one core, a window", _rows(seconds)),
        Table(
            "methods",
            "every method: geometric mean and highest of these ratios, on how many data sets it is "
            "the lowest of all, over how many, and seconds for a window of each",
            sorted(methods, key=lambda row: (-row["data_sets"], row["to_best_rival"])),
        ),
        *([_without_parts(parts)] if len(parts.columns) > 1 else []),
    ]


def _without_parts(scores: pd.DataFrame) -> Table:
    """What the stack loses without its parts."""
    ratios = scores.drop(columns=STACK).div(scores[STACK], axis=0).dropna(how="all")
    means = np.exp(np.log(ratios).mean()).to_frame("all").T
    caption = "the stack without one of its parts: errors divided by those of the whole stack"
    return Table("parts", caption, _rows(pd.concat([ratios, means])))


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{"data": name, **row.to_dict()} for name, row in frame.iterrows()]
