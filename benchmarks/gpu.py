"""Networks for tens of thousands of series on a GPU: ``python benchmarks/gpu.py``.

Made-up daily series of the size of the paper's second experiment (1,914 days, differenced, 14 lags,
28 centers, order 1): differences, windows, K-Means, penalty, Newton steps and 28 recursive steps.
Data is on the host at the start and forecasts are on the host at the end. Prints seconds, series a
second, peak memory, and the largest difference to the same code on NumPy for a few series.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch

from rbfdiffnet.batched import fit_batch, forecast_batch


def made_up(n_series: int, length: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    week = rng.normal(size=(n_series, 7))
    level = np.cumsum(rng.normal(size=(n_series, length)) * 0.1, axis=1)
    noise = rng.normal(size=(n_series, length))
    return 20.0 + level + np.tile(week, length // 7 + 1)[:, :length] + noise


def forecast(series: Any, n_lags: int, h: int, n_steps: int, xp: Any) -> Any:
    """Forecasts of a batch (B, T), of differences less their mean, summed up again."""
    z = series[:, 1:] - series[:, :-1]
    mean = z.mean(axis=1)[:, None]
    z = z - mean
    n = z.shape[1] - n_lags
    X = xp.stack([z[:, i : i + n] for i in range(n_lags)], axis=1)
    y = z[:, n_lags:]
    networks = fit_batch(X, y, xp.ones_like(y), n_steps=n_steps, xp=xp)
    path = forecast_batch(networks, z[:, -n_lags:], h, xp)
    return series[:, -1:] + xp.cumsum(path + mean, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=42_840)
    parser.add_argument("--chunk", type=int, default=4_096)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    data = made_up(options.series, 1914)
    print(f"{options.series} series, chunks of {options.chunk}, {options.steps} Newton steps")
    result = np.empty((options.series, 28))
    for repeat in range(options.repeats + 1):
        start = time.perf_counter()
        for first in range(0, options.series, options.chunk):
            part = torch.from_numpy(data[first : first + options.chunk]).to(options.device)
            path = forecast(part, 14, 28, options.steps, torch)
            result[first : first + options.chunk] = path.cpu().numpy()
        seconds = time.perf_counter() - start
        label = "warm-up" if repeat == 0 else f"repeat {repeat}"
        print(f"{label}: {seconds:.2f} s, {options.series / seconds:,.0f} series/s", flush=True)
    if options.device == "cuda":
        print(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
    few = forecast(data[:32], 14, 28, options.steps, np)
    print(f"largest difference to NumPy, 32 series: {np.abs(few - result[:32]).max():.1e}")


if __name__ == "__main__":
    main()
