"""Seeded series that are hard on arithmetic, and ordinary ones beside them."""

import numpy as np
import pandas as pd

from rbfdiffnet import RBFDiffNet

NAME = "RBFDiffNet"

#: Parameters of a forecaster, by name: every scope, preset, strategy, and other ways of its own.
CONFIGURATIONS = {
    "stack": {},
    "best": {"preset": "best", "scope": "auto"},
    "local": {"scope": "local"},
    "fast": {"preset": "fast"},
    "paper": {"preset": "paper"},
    "global": {"scope": "global"},
    "direct": {"strategy": "direct"},
    "global direct": {"scope": "global", "strategy": "direct"},
    "noise": {"noise": "auto"},
    "log1p": {"transforms": ["log1p"]},
    "differences": {"transforms": ["seasonal", "difference", "standardize"]},
    "adf": {"transforms": ["adf", "mean"]},
}


def ordinary(rng, n=120):
    """A level, a week and noise."""
    return 100.0 + 10.0 * np.sin(2 * np.pi * np.arange(n) / 7) + 3.0 * rng.normal(size=n)


def hard_series(n=120, seed=0):
    """Series by name."""
    rng = np.random.default_rng(seed)
    t, noise = np.arange(n), rng.normal(size=n)
    y = ordinary(rng, n)
    spike = np.where(t == n // 2, 1e12, y)
    gap = np.where((t > n // 3) & (t < 2 * n // 3), np.nan, y)
    counts = rng.poisson(5.0, n)
    return {
        **{f"times {scale:g}": scale * y for scale in (1e-12, 1e-6, 1e6, 1e12)},
        "plus 1e9": y + 1e9,
        "noise on 1e9": 1e9 + noise,
        "noise on 1e12": 1e12 + noise,
        "spike": spike,
        "spike at the end": np.where(t == n - 1, 1e12, y),
        "spike at the start": np.where(t == 0, 1e12, y),
        "spike down": np.where(t == n // 2, -1e12, y),
        "two spikes": np.where((t == n // 2) | (t == n - 2), 1e12, y),
        "jump at the end": np.where(t > n - 3, 1e12, y),
        "integers": counts,
        "huge integers": (2**60 + counts * 2**50).astype(np.int64),
        "integers beyond 2**53": 2**53 + counts,
        "subnormal": 1e-310 * noise,
        "subnormal and positive": 1e-310 * (5.0 + noise),
        "smallest": 5e-324 * counts,
        "large": 1e300 * noise,
        "largest": 1.7e308 * np.sin(t),
        "large and positive": 1e300 * (5.0 + noise),
        "all sizes": 10.0 ** (600.0 * rng.random(n) - 300.0),
        "almost constant": 1.0 + 1e-13 * noise,
        "constant but for one": np.where(t == n // 2, 1.0 + 1e-15, 1.0),
        "periodic": np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.6])[t % 7],
        "other period": np.array([1.0, 5.0, 2.0])[t % 3],
        "line": 5.0 + 0.3 * t,
        "line down": 1e6 - 7.0 * t,
        "growth": np.exp(t / 10.0),
        "fast growth": np.exp(np.minimum(2.0 * t, 300.0)),
        "decay": np.exp(-2.0 * t),
        "walk": noise.cumsum(),
        "one sale": np.where(t == n // 2, 1.0, 0.0),
        "one sale at the end": np.where(t == n - 1, 1.0, 0.0),
        "alternating": t % 2.0,
        "growing swings": 1.2**t * (-1.0) ** t,
        "two values": np.where(rng.random(n) < 0.5, 7.0, 9.0),
        "gap": gap,
        "gap at the end": np.where(t > n // 2, np.nan, y),
        "every tenth": np.where(t % 10 == 0, y, np.nan),
        "with zeros": np.where(rng.random(n) < 0.5, 0.0, 1e-300),
        "extremes": np.where(rng.random(n) < 0.5, -1e308, 1e308),
    }


def panel_of(k=6, n=120, seed=5):
    """Ordinary series of different levels, weeks and noise, by name."""
    rng = np.random.default_rng(seed)
    week = 2 * np.pi * np.arange(n) / 7
    return {
        f"s{i:02d}": 50 + 40 * i + (5 + 2 * i) * np.sin(week + i) + (1 + i) * rng.normal(size=n)
        for i in range(k)
    }


def forecasts_of(series, h=14, only=None, **parameters):
    """Forecasts, lower and upper ends at 80 and 95 %: shape (n, h, 5)."""
    model = RBFDiffNet("D", **parameters)
    found = model.forecast(frame_of(series), h, level=[80, 95])
    names = list(series if only is None else only)
    table = found[found["unique_id"].isin(names)].iloc[:, 2:].to_numpy(dtype=float)
    return table.reshape(len(names), h, 5)


def frame_of(series):
    """Long frame of series by name; integers stay integers where all are."""
    parts = [
        pd.DataFrame(
            {"unique_id": name, "ds": pd.date_range("2023-01-01", periods=len(y), freq="D"), "y": y}
        )
        for name, y in series.items()
    ]
    return pd.concat(parts, ignore_index=True)
