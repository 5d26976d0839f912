"""Series to measure with: M5's, or made-up demand where M5 is not at hand."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd

H = 28
TRAINING_DAYS = 1913
BOTTOM = "bottom_d1495_1941.parquet"
_BOTTOM_SERIES, _BOTTOM_DAYS = 30_490, 447
_WEEK = np.array([0.9, 0.85, 0.85, 0.95, 1.1, 1.3, 1.05])


def m5_folder(named: Path | None) -> Path | None:
    """The folder named, else that of RBFDIFFNET_M5, else one beside the repository, if there."""
    if named is not None:
        if not named.is_dir():
            raise SystemExit(f"--m5: there is no folder {named}.")
        return named.resolve()
    beside = Path(__file__).parents[3] / "shared" / "data" / "m5"
    place = Path(os.environ.get("RBFDIFFNET_M5") or beside)
    return place.resolve() if place.is_dir() else None


def daily_panel(m5: Path | None) -> tuple[np.ndarray, list[str], str]:
    """Thirty daily series of 1,941 days (n, T), their names, and what they are."""
    if m5 is not None:
        from rbfdiffnet.datasets.m5 import load_m5_level8

        wide = load_m5_level8(m5)
        return wide.to_numpy(dtype=float).T.copy(), list(wide.columns), "M5, level 8"
    from rbfdiffnet.datasets import daily_demand

    df = daily_demand(n_series=36, n_days=TRAINING_DAYS + H)
    wide = df.pivot(index="ds", columns="unique_id", values="y").dropna(axis=1)
    about = "made-up demand (no M5 data: name its folder with --m5)"
    return wide.to_numpy().T.copy(), list(wide.columns), about


def made_up(n_series: int, length: int, seed: int = 0) -> np.ndarray:
    """Poisson demand (n, T) with weekly and yearly seasons; a fifth of the items sell seldom."""
    rng = np.random.default_rng(seed)
    days = np.arange(length)
    level = rng.uniform(20.0, 200.0, size=(n_series, 1))
    level[::5] = 0.3
    peak = rng.uniform(0.0, 365.25, size=(n_series, 1))
    year = 1.0 + 0.25 * np.cos(2.0 * np.pi * (days - peak) / 365.25)
    noise = rng.gamma(25.0, 1.0 / 25.0, size=(n_series, length))
    return rng.poisson(level * _WEEK[days % 7] * year * noise).astype(float)


def made_up_months(n_series: int, length: int, seed: int = 0) -> np.ndarray:
    """Demand (n, T) that grows or shrinks, with a yearly season that grows with it."""
    rng, t = np.random.default_rng(seed), np.arange(length)
    level = rng.uniform(50.0, 500.0, size=(n_series, 1))
    growth = np.exp(rng.normal(0.002, 0.002, size=(n_series, 1)) * t)
    shape = 1.0 + 0.2 * rng.normal(size=(n_series, 12)).clip(-2.0, 2.0)
    noise = rng.gamma(100.0, 1.0 / 100.0, size=(n_series, length))
    return level * growth * shape[:, t % 12] * noise


def long_frame(
    values: np.ndarray, names: list[str] | None = None, first: int = 0, freq: str = "D"
) -> pd.DataFrame:
    """A long frame of values (n, T) whose first column is step ``first``."""
    n, length = values.shape
    ids = np.array(names or [f"item_{i:05d}" for i in range(n)], dtype=object)
    dates = pd.date_range("2011-01-29", periods=first + length, freq=freq)[first:].to_numpy()
    return pd.DataFrame(
        {"unique_id": np.repeat(ids, length), "ds": np.tile(dates, n), "y": values.ravel()}
    )


def bottom_level(m5: Path | None, n_series: int | None) -> tuple[np.ndarray, list[str], str]:
    """M5's item-by-store series (n, 447), their names, and what they are."""
    if m5 is None or not (m5 / BOTTOM).exists():
        values = made_up(n_series or _BOTTOM_SERIES, _BOTTOM_DAYS)
        names = [f"item_{i:05d}" for i in range(len(values))]
        return values, names, f"made-up demand (no {BOTTOM}: name its folder with --m5)"
    wide = pd.read_parquet(m5 / BOTTOM).iloc[:n_series]
    days = [column for column in wide.columns if column.startswith("d_")]
    return wide[days].to_numpy(dtype=float), wide["id"].tolist(), "M5, item by store"
