"""One fit, three ways: the paper's, its authors', and ours, on daily series."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from rbfdiffnet.batch.train import fit_batch, train
from rbfdiffnet.network.basis import derivatives
from rbfdiffnet.network.widths import widths
from rbfdiffnet.series.windows import lag_windows
from speed_parts.data import TRAINING_DAYS, daily_panel
from speed_parts.timing import Table, in_turn
from trainers import dense_als, dense_bfgs

OURS = "ours"
NUMPY = "ours, NumPy alone"
N_LAGS, N_CENTERS, N_SERIES = 14, 28, 5


def run(options: Namespace) -> list[Table]:
    values, names, about = daily_panel(options.m5)
    n_series, n_days = (1, 300) if options.quick else (N_SERIES, TRAINING_DAYS)
    rows = []
    for name, series in list(zip(names, values, strict=True))[:n_series]:
        rows += compare(name, series[:n_days], options.repeats)
    title = (
        f"trainers: fits of one network, {about}, {n_days - 1 - N_LAGS} rows, {N_LAGS} lags, "
        f"{N_CENTERS} centers, order 1, one core; errors in units of the target's spread. The "
        "dense ways are given the centers that ours finds, and the paper's widths or ours; ours "
        "finds them, and its penalties, while the clock runs. Only ours is penalized, so its "
        "training error is not the lowest there is"
    )
    return [Table("trainers", title, rows + _means(rows))]


def compare(name: str, series: np.ndarray, repeats: int) -> list[dict[str, Any]]:
    """Rows of one series, differenced, its mean taken off."""
    z = np.diff(series)
    X, y = lag_windows((z - z.mean()) / z.std(), N_LAGS)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    batch = (np.ascontiguousarray(X.T)[None], y[None], np.ones((1, len(y))))
    ours = partial(train, *batch, n_centers=N_CENTERS)
    network = ours().network(0)  # warm-up
    centers = network.centers
    betas = {"": 0.5 / widths("cluster", X, centers) ** 2, ", our widths": network.beta}
    plain = partial(fit_batch, *batch, n_centers=N_CENTERS)
    jobs: dict[str, Callable[[], Any]] = {OURS: ours, NUMPY: plain}
    for suffix, beta in betas.items():
        jobs[f"authors' (dense, ALS){suffix}"] = partial(_dense, dense_als, X, y, centers, beta)
        jobs[f"paper's (dense, BFGS){suffix}"] = partial(_dense, dense_bfgs, X, y, centers, beta)
    timings = in_turn(jobs, repeats)
    rows = []
    for way, timing in timings.items():
        fitted = (
            timing.result.network(0).predict(X)[:, 0] if way in (OURS, NUMPY) else timing.result
        )
        rows.append(
            {
                "series": name,
                "way": way,
                "ms": 1e3 * timing.median,
                "low": 1e3 * timing.low,
                "high": 1e3 * timing.high,
                "times_ours": timing.median / timings[OURS].median,
                "training_rmse": float(np.sqrt(np.mean((y - fitted) ** 2))),
            }
        )
    return rows


def _dense(
    train: Callable[..., np.ndarray],
    X: np.ndarray,
    y: np.ndarray,
    centers: np.ndarray,
    beta: np.ndarray,
) -> np.ndarray:
    """Form the tensor of first derivatives and train on it."""
    return train(derivatives(X, centers, beta, 1)[1], X, y)


def _means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each way: the means over the series."""
    means = []
    for way in dict.fromkeys(row["way"] for row in rows):
        mine = [row for row in rows if row["way"] == way]
        keys = [key for key in mine[0] if key not in ("series", "way")]
        mean = {key: float(np.mean([row[key] for row in mine])) for key in keys}
        means.append({"series": "mean", "way": way, **mean})
    return [{**mean, "times_ours": mean["ms"] / means[0]["ms"]} for mean in means]
