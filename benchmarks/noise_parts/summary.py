"""What came out: a method against the best rival in every cell, and at no noise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from noise_parts.methods import PLAIN, RIVAL_NAMES
from noise_parts.runner import FILE
from speed_parts.timing import Table

TASKS = ("clean_windows", "noisy_windows", "twenty_steps")
CELL = ["system", "noise", "n_lags"]
KERNEL_RIDGE = "kernel ridge"
ALL = "all"


def read(folder: Path) -> pd.DataFrame:
    """The rows of all methods."""
    return pd.read_csv(folder / FILE)


def errors(frame: pd.DataFrame, task: str, method: str, *, by_seed: bool) -> pd.DataFrame:
    """Errors of a method, of the rivals and of the plain network: a column for each.

    A row is a cell that all of them have: a system, noise level and number of lags, its errors
    averaged over the seeds, or with ``by_seed`` each of its seeds.
    """
    chosen = frame[frame["method"].isin({method, PLAIN, *RIVAL_NAMES})]
    table = chosen.pivot(index=[*CELL, "seed"], columns="method", values=task).dropna()
    return table if by_seed else table.groupby(level=CELL).mean()


def ratios(table: pd.DataFrame, method: str) -> pd.Series:
    """A method's errors divided by those of the best rival in the same cell, itself left out."""
    rivals = [name for name in RIVAL_NAMES if name in table and name != method]
    return table[method] / table[rivals].min(axis=1)


def against_rivals(frame: pd.DataFrame, method: str, title: str) -> Table:
    """A row for each task and system: ratios, and the share of cells where the method is lowest."""
    rows: list[dict[str, Any]] = []
    for task in TASKS:
        cells, single = (errors(frame, task, method, by_seed=by_seed) for by_seed in (False, True))
        for system in (*cells.index.unique("system"), ALL):
            chosen, each = _of(cells, system), _of(single, system)
            ratio, ratio_each = ratios(chosen, method), ratios(each, method)
            rows.append(
                {
                    "task": task,
                    "system": system,
                    "to_best_rival": _geometric_mean(ratio),
                    "median": float(ratio.median()),
                    "lowest": float((ratio < 1.0).mean()),
                    "cells": len(ratio),
                    "to_best_rival_by_seed": _geometric_mean(ratio_each),
                    "lowest_by_seed": float((ratio_each < 1.0).mean()),
                    "cells_by_seed": len(ratio_each),
                    "to_plain": _geometric_mean(chosen[method] / chosen[PLAIN]),
                }
            )
    return Table("rivals", title, rows)


def every_method(frame: pd.DataFrame, title: str) -> Table:
    """A row for each method: its ratio to the best of the other rivals, how often it is lowest."""
    rows = []
    for name in frame["method"].unique():
        row: dict[str, Any] = {"method": name}
        for task in TASKS:
            ratio = ratios(errors(frame, task, name, by_seed=False), name)
            row |= {task: _geometric_mean(ratio), f"lowest_{task}": float((ratio < 1.0).mean())}
        seconds = frame.loc[frame["method"] == name, "seconds"]
        rows.append({**row, "seconds": float(seconds.mean())})
    return Table("methods", title, sorted(rows, key=lambda row: row[TASKS[0]]))


def without_noise(frame: pd.DataFrame, method: str) -> Table:
    """A row for each system and number of lags: errors, and their ratios to two references."""
    clean = frame[frame["noise"] == 0.0]
    rows: dict[Any, dict[str, Any]] = {}
    for task in ("clean_windows", "twenty_steps"):
        for (system, _, n_lags), its in errors(clean, task, method, by_seed=False).iterrows():
            row = rows.setdefault((system, n_lags), {"system": system, "n_lags": n_lags})
            row[task] = float(its[method])
            row[f"{task}_to_plain"] = float(its[method] / its[PLAIN])
            row[f"{task}_to_kernel_ridge"] = float(its[method] / its[KERNEL_RIDGE])
    title = f"no noise: {method}, errors in standard deviations of the series"
    return Table("no_noise", title, list(rows.values()))


def report(frame: pd.DataFrame, method: str) -> list[Table]:
    """All tables about a method."""
    noisy = frame[frame["noise"] > 0.0]
    parts = {
        "4 lags and more": noisy[noisy["n_lags"] >= 4],
        "2 lags": noisy[noisy["n_lags"] == 2],
    }
    how = "geometric means of the ratios to the best of the other rivals in each cell"
    tables = []
    for words, part in parts.items():
        if method in set(part["method"]):
            tables += [
                every_method(part, f"every method, noise, {words}: {how}"),
                against_rivals(part, method, f"{method}, noise, {words}: {how}"),
            ]
    if method in set(frame.loc[frame["noise"] == 0.0, "method"]):
        tables.append(without_noise(frame, method))
    return tables


def _of(table: pd.DataFrame, system: str) -> pd.DataFrame:
    return table if system == ALL else table.xs(system, level="system")


def _geometric_mean(ratios: pd.Series | Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))
