"""The whole job for one series, in units of a matrix product timed in the same run."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import Any

import numpy as np

from rbfdiffnet import RBFDiffNet
from speed_parts.data import TRAINING_DAYS, H, daily_panel, long_frame
from speed_parts.timing import Table, in_turn, numba_in_use

UNIT = "matrix product"
_SIZE = 1024
_ROUNDS = 5  # for each repeat: the jobs are short


def run(options: Namespace) -> list[Table]:
    values, names, about = daily_panel(options.m5)
    if options.quick:
        values, names = values[:3], names[:3]
    rows = measure(values[:, :TRAINING_DAYS], names, _ROUNDS * options.repeats)
    title = (
        f"unit: ADF test, K-Means, fit and {H} steps, {about}, {len(values)} series of "
        f"{TRAINING_DAYS} days, one core; a unit is one product of two {_SIZE} x {_SIZE} matrices "
        f"in float64. The shortest times of {_ROUNDS * options.repeats} rounds; numba in use: "
        f"{numba_in_use()}"
    )
    return [Table("unit", title, rows)]


def measure(values: np.ndarray, names: list[str], rounds: int) -> list[dict[str, Any]]:
    """Rows of the product, the forecaster and the array function."""
    product, df = make_product(), long_frame(values, names)
    jobs: dict[str, Callable[[], Any]] = {
        UNIT: product,
        "forecaster": lambda: RBFDiffNet(freq="D", preset="fast").forecast(df, H),
    }
    arrays = _forecast_arrays()
    if arrays is not None:
        jobs["arrays"] = lambda: arrays(values, H, season_length=7)
    for job in jobs.values():
        job()  # warm-up
    timings = in_turn(jobs, rounds)
    base = timings[UNIT]
    rows = []
    for name, timing in timings.items():
        n = 1 if name == UNIT else len(values)
        ratios = [mine / n / its for mine, its in zip(timing.seconds, base.seconds, strict=True)]
        rows.append(
            {
                "job": name if n == 1 else f"{name}, each series",
                "ms": 1e3 * timing.low / n,
                "median_ms": 1e3 * timing.median / n,
                "high_ms": 1e3 * timing.high / n,
                "units": timing.low / n / base.low,
                "low_units": min(ratios),
                "high_units": max(ratios),
                "note": "",
            }
        )
    if arrays is None:
        absent = {**dict.fromkeys(rows[0]), "job": "arrays, each series"}
        rows.append(
            {**absent, "note": "rbfdiffnet.models.networks.fast.forecast_arrays is not there"}
        )
    return rows


def make_product() -> Callable[[], Any]:
    """The product of two matrices, as a job without arguments."""
    left, right = np.random.default_rng(0).normal(size=(2, _SIZE, _SIZE))
    out = np.empty((_SIZE, _SIZE))
    return lambda: np.matmul(left, right, out=out)


def _forecast_arrays() -> Callable[..., np.ndarray] | None:
    try:
        from rbfdiffnet.models.networks.fast import forecast_arrays
    except ImportError:
        return None
    return forecast_arrays
