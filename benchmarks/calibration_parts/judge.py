"""The judge: how often values fall into intervals, and how wide these are beside the ideal ones.

The share inside is not counted on one future of each series: it is the probability, by thousands
of continuations from the true state, that a value falls into the interval. So a panel of 200 tells
coverage far better than 200 hits and misses would; these are there too, as ``hits``.

Counts cannot have every coverage: the narrowest interval that covers 50 % may cover 70 %. So any
share between the level and that of the ideal interval has the error zero.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd

from calibration_parts.families import FAMILIES, H, Panel, simulate
from speed_parts.data import long_frame

LEVELS = (50, 80, 95)
STEPS = (1, 6, 12)
LENGTHS = (40, 120, 400)
#: Modes, and by how many points coverage may be off.
BARS = {"panel": 3.0, "alone": 5.0, "mixed": 6.0}
Forecast = Callable[[pd.DataFrame], pd.DataFrame]
CELL = ["mode", "family", "T", "level"]


def run(
    forecast: Forecast,
    families: Sequence[str] = tuple(FAMILIES),
    lengths: Sequence[int] = LENGTHS,
    mode: str = "panel",
    n: int = 200,
    seed: int = 0,
    limit: float = 120.0,
    total: int = 1,
) -> pd.DataFrame:
    """Score intervals of a forecaster: a row for each family, length, level and step.

    Parameters
    ----------
    forecast : callable
        Takes a long monthly frame, returns ``unique_id``, ``ds`` and, 12 steps for each series,
        columns that end in ``-lo-50``, ``-hi-50`` and so on, for the levels 50, 80 and 95.
    families, lengths : sequences
        Names in `FAMILIES`, and numbers of months before the forecast.
    mode : {"panel", "alone", "mixed"}
        The n series of a family at once; the first half of them one by one; the first tenth of
        them in one panel with as many of every other family.
    n, seed : int
        Size and seed of the panels.
    limit : float
        Seconds after which no further series is forecast alone, for each family and length.
    total : int
        How many steps a row of the forecaster sums up; with more than 1, all sums are scored.

    Returns
    -------
    DataFrame
        Of each cell and step: ``coverage``, ``hits`` and ``ideal`` (coverage of the ideal
        interval) in percent, ``width`` (of the intervals, by the ideal ones), ``se`` (the standard
        error of the mean coverage over the steps), and ``series``.
    """
    rows = []
    at = np.array(STEPS) - 1 if total == 1 else np.arange(H // total)
    for length in lengths:
        for family, panel, found in _forecasts(forecast, families, length, mode, n, seed, limit):
            bounds = find_bounds(found)[..., at]
            panel = panel.first(bounds.shape[2])
            came, paths = (add_up(own, total)[:, at] for own in (panel.future, panel.paths))
            cell = score(bounds, came, paths, at + 1)
            rows.append(cell.assign(mode=mode, family=family, T=length))
    return pd.concat(rows, ignore_index=True)


def score(
    bounds: np.ndarray, outcomes: np.ndarray, paths: np.ndarray, steps: Sequence[object]
) -> pd.DataFrame:
    """Score bounds (levels, 2, n, k) by outcomes (n, k) and continuations (n, k, m)."""
    ideal = _central(paths)
    unit = ideal[-1, 1] - ideal[-1, 0]  # so that series of every scale count the same
    rows = []
    for level, own, best in zip(LEVELS, bounds, ideal, strict=True):
        inside, most = _share(own, paths), _share(best, paths)
        hits = (own[0] <= outcomes) & (outcomes <= own[1])
        width = ((own[1] - own[0]) / unit).mean(axis=0) / ((best[1] - best[0]) / unit).mean(axis=0)
        n = len(inside)
        columns = {
            "level": level,
            "step": list(steps),
            "coverage": 100.0 * inside.mean(axis=0),
            "hits": 100.0 * hits.mean(axis=0),
            "ideal": 100.0 * most.mean(axis=0),
            "width": width,
            "se": 100.0 * inside.mean(axis=1).std() / np.sqrt(n),
            "series": n,
        }
        rows.append(pd.DataFrame(columns))
    return pd.concat(rows, ignore_index=True)


def add_up(values: np.ndarray, total: int) -> np.ndarray:
    """Sum values (n, h, ...) over every so many steps."""
    n, h, *rest = values.shape
    return values.reshape(n, h // total, total, *rest).sum(axis=2)


def average(repeats: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Average runs with different seeds; ``spread`` is the standard deviation between them.

    It is that of the mean coverage over the steps. Intervals of a panel are learned together, so it
    may be larger than the standard error of one run, for which series are independent.
    """
    both = pd.concat(repeats).assign(se=lambda df: df["se"] ** 2)
    mean = both.groupby([*CELL, "step"], sort=False, as_index=False).mean()
    mean["se"] = np.sqrt(mean["se"] / len(repeats))
    cells = pd.concat([run.groupby(CELL)["coverage"].mean() for run in repeats], axis=1)
    mean = mean.join(cells.std(axis=1).rename("spread"), on=CELL)
    return mean.assign(series=mean["series"] * len(repeats))


def summarize(results: pd.DataFrame) -> pd.DataFrame:
    """A row for each cell: means over the steps, their error, and that of the worst step."""
    results = results.assign(worst=error(results))
    mean = results.groupby(CELL, sort=False).mean(numeric_only=True)
    worst = results.groupby(CELL, sort=False)["worst"].agg(lambda e: e.loc[e.abs().idxmax()])
    mean = mean.drop(columns="step").assign(worst=worst).reset_index()
    return mean.assign(error=error(mean), within=error(mean).abs() <= mean["mode"].map(BARS))


def error(results: pd.DataFrame) -> pd.Series:
    """Coverage minus the nearest right one, from the level to the ideal interval's, in points."""
    right = results["coverage"].clip(results["level"], results[["level", "ideal"]].max(axis=1))
    return results["coverage"] - right


def find_bounds(found: pd.DataFrame) -> np.ndarray:
    """Bounds of forecasts (levels, 2, n, h), in the order of the names."""
    found = found.sort_values(["unique_id", "ds"])
    ends = [f"-{side}-{level}" for level in LEVELS for side in ("lo", "hi")]
    columns = [next(column for column in found if column.endswith(end)) for end in ends]
    values = found[columns].to_numpy(dtype=float).T
    return values.reshape(len(LEVELS), 2, found["unique_id"].nunique(), -1)


def _forecasts(
    forecast: Forecast,
    families: Sequence[str],
    length: int,
    mode: str,
    n: int,
    seed: int,
    limit: float,
) -> Iterator[tuple[str, Panel, pd.DataFrame]]:
    """Families, their panels, and forecasts of the first series of these."""
    if mode == "mixed":
        panels = [simulate(family, length, n, seed).first(n // 10) for family in FAMILIES]
        found = forecast(_frame(np.vstack([panel.past for panel in panels])))
        owner = found["unique_id"].astype(int) // (n // 10)
        for i, (family, panel) in enumerate(zip(FAMILIES, panels, strict=True)):
            if family in families:
                yield family, panel, found[owner == i]
        return
    for family in families:
        panel = simulate(family, length, n, seed)
        if mode == "alone":
            yield family, panel, _one_by_one(forecast, panel.past[: n // 2], limit)
        else:
            yield family, panel, forecast(_frame(panel.past))


def _one_by_one(forecast: Forecast, past: np.ndarray, limit: float) -> pd.DataFrame:
    """Forecast each series by itself, until the time is over."""
    found, start = [], time.perf_counter()
    for i in range(len(past)):
        found.append(forecast(_frame(past[[i]], i)))
        if time.perf_counter() - start > limit:
            break
    return pd.concat(found)


def _frame(past: np.ndarray, first: int = 0) -> pd.DataFrame:
    """A long frame of values (n, T), whose names are numbers from ``first`` on."""
    names = [f"{first + i:05d}" for i in range(len(past))]
    return long_frame(past, names, freq="MS").dropna(ignore_index=True)


def _central(paths: np.ndarray) -> np.ndarray:
    """Central intervals (levels, 2, n, k) of paths (n, k, m), which contain at least the level."""
    p = np.array(LEVELS) / 100.0
    ends = np.quantile(paths, [(1 - p) / 2, (1 + p) / 2], axis=2, method="inverted_cdf")
    return ends.swapaxes(0, 1)


def _share(bounds: np.ndarray, paths: np.ndarray) -> np.ndarray:
    """The share (n, k) of continuations inside bounds (2, n, k)."""
    return ((bounds[0][..., None] <= paths) & (paths <= bounds[1][..., None])).mean(axis=2)
