"""Time against the number of series, length, lags and centers; memory; two cores against one."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.batch.train import train
from rbfdiffnet.models.networks.fast import forecast_arrays
from speed_parts.data import H, long_frame, made_up
from speed_parts.timing import Table, in_child, in_turn, on_cores

LENGTH = 400  # of the series that are counted
N_SERIES, LONG_LENGTH, N_LAGS = 20, 1900, 14  # where something else grows


def run(options: Namespace) -> list[Table]:
    quick = options.quick
    counts = (10, 30) if quick else (100, 1_000, 10_000)
    lengths = (200, 400) if quick else (500, 1_000, 2_000, 4_000, 8_000)
    lags = (7, 14) if quick else (7, 14, 28, 56)
    centers = (7, 14) if quick else (7, 14, 28, 56, 112)
    n, length = (2, 300) if quick else (N_SERIES, LONG_LENGTH)
    rows = [
        *sweep("series", counts, lambda x: (_forecast(made_up(x, LENGTH)), x), options.repeats),
        *sweep("arrays", counts, lambda x: (_arrays(made_up(x, LENGTH)), x), options.repeats),
        *sweep("length", lengths, lambda x: (_forecast(made_up(n, x)), n), options.repeats),
        *sweep("lags", lags, lambda x: (_forecast(made_up(n, length), lags=x), n), options.repeats),
        *sweep("centers", centers, lambda x: (_fit(made_up(n, length), x), n), options.repeats),
    ]
    title = (
        f"scaling: made-up demand, preset fast, {H} steps, one core. 'series' have {LENGTH} days, "
        f"in frames or in 'arrays'; otherwise {n} series of {length} days; 'centers' is the fit "
        f"alone ({N_LAGS} lags). growth is the exponent since the row above: 1 is proportional"
    )
    return [Table("scaling", title, rows), _memory(options), _jobs(options)]


def sweep(
    name: str,
    sizes: Sequence[int],
    job: Callable[[int], tuple[Callable[[], Any], int]],
    repeats: int,
) -> list[dict[str, Any]]:
    """Rows for growing sizes; ``job`` maps a size to what is timed and its number of series."""
    made = {size: job(size) for size in sizes}
    made[sizes[0]][0]()  # warm-up
    timings = in_turn({f"{name} {size}": made[size][0] for size in sizes}, repeats)
    rows: list[dict[str, Any]] = []
    for size, timing in zip(sizes, timings.values(), strict=True):
        growth = None
        if rows:
            last = rows[-1]
            growth = np.log(timing.median / last["seconds"]) / np.log(size / last["size"])
        rows.append(
            {
                "sweep": name,
                "size": size,
                "seconds": timing.median,
                "low": timing.low,
                "high": timing.high,
                "ms_per_series": 1e3 * timing.median / made[size][1],
                "growth": None if growth is None else float(growth),
            }
        )
    return rows


def _arrays(values: np.ndarray) -> Callable[[], Any]:
    return lambda: forecast_arrays(values, H, season_length=7)


def _forecast(values: np.ndarray, **settings: Any) -> Callable[[], Any]:
    df = long_frame(values)
    return lambda: RBFDiffNet(freq="D", preset="fast", **settings).forecast(df, H)


def _fit(values: np.ndarray, n_centers: int) -> Callable[[], Any]:
    """Fit every series with that many centers, one after another."""
    z = np.diff(values, axis=1)
    z = z - z.mean(axis=1, keepdims=True)
    windows = np.lib.stride_tricks.sliding_window_view(z[:, :-1], N_LAGS, axis=1)
    X, y = np.ascontiguousarray(windows.swapaxes(1, 2)), z[:, N_LAGS:]
    ones = np.ones((1, y.shape[1]))
    fits = [
        partial(train, X[i : i + 1], y[i : i + 1], ones, n_centers=n_centers)
        for i in range(len(values))
    ]
    return lambda: [fit() for fit in fits]


def _memory(options: Namespace) -> Table:
    """Peak memory, each size in a process of its own."""
    counts = (100,) if options.quick else (1_000, 10_000)
    rows = [in_child("memory", n_series=count, length=LENGTH) for count in counts]
    title = (
        f"memory: MB above a process that has imported everything and forecast one series; "
        f"made-up demand, {LENGTH} days; peak_mb includes the frame"
    )
    return Table("memory", title, rows)


def _jobs(options: Namespace) -> Table:
    """Two threads against one."""
    panels = [(10, LENGTH), (100, LENGTH), (1_000, LENGTH), (300, LONG_LENGTH)]
    with on_cores(options.cores):
        rows = [
            in_child("jobs", n_series=count, length=length, repeats=options.repeats)
            for count, length in (panels[:1] if options.quick else panels)
        ]
    title = (
        "jobs: n_jobs=2 against 1, made-up demand, from a frame and from arrays; times_faster "
        "compares medians, best the fastest runs; the process may use "
        f"{len(options.cores)} core(s)"
    )
    return Table("jobs", title, rows)
