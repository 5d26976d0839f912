"""Networks for tens of thousands of series on a GPU: ``python benchmarks/gpu.py``.

Made-up daily series of the size of the paper's second experiment (1,913 days, a week of season, a
few closed days): outliers, Dickey-Fuller tests, choice of differences, windows of 14 lags, K-Means
with 28 centers, penalty, Newton steps and 28 recursive steps. Data is on the host at the start and
forecasts are on the host at the end. Prints seconds, series a second, peak memory, and the largest
difference to NumPy for some series. ``--stages`` times the stages of one batch.
"""

from __future__ import annotations

import argparse
import platform
import time

import numpy as np
import torch

from rbfdiffnet.batch.backend import backend_for
from rbfdiffnet.models.networks.fast import fit_fast, forecast_arrays


def made_up(n_series: int, length: int = 1913, seed: int = 0) -> np.ndarray:
    """Levels that wander, weekly patterns, noise, and five closed days."""
    rng = np.random.default_rng(seed)
    week = rng.normal(size=(n_series, 7))
    level = np.cumsum(rng.normal(size=(n_series, length)) * 0.1, axis=1)
    noise = rng.normal(size=(n_series, length))
    series = np.maximum(40.0 + level + np.tile(week, length // 7 + 1)[:, :length] + noise, 5.0)
    series[:, 330::365] = 0.0
    return series


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=42_840)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--check", type=int, default=64, help="series compared with NumPy")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--stages", action="store_true")
    options = parser.parse_args()
    cuda = options.device.startswith("cuda")
    name = torch.cuda.get_device_name(options.device) if cuda else platform.processor()
    print(f"{name}, PyTorch {torch.__version__}, {options.series} series")
    data = made_up(options.series)
    for repeat in range(options.repeats + 1):
        start = time.perf_counter()
        result = forecast_arrays(data, 28, season_length=7, device=options.device)
        seconds = time.perf_counter() - start
        label = "warm-up" if repeat == 0 else f"repeat {repeat}"
        print(f"{label}: {seconds:.2f} s, {options.series / seconds:,.0f} series/s", flush=True)
    if cuda:
        print(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
    few = forecast_arrays(data[: options.check], 28, season_length=7)
    gap = np.abs(few - result[: options.check]).max() / np.abs(few).mean()
    print(f"largest difference to NumPy, {options.check} series, of the mean: {gap:.1e}")
    if options.stages:
        backend = backend_for(options.device)
        part = data[: backend.batch_size(data.shape[1], 14, 28)]
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        ) as profile:
            fit_fast(part, season_length=7, n_lags=14, backend=backend)
        print(f"one batch of {len(part)}")
        print(profile.key_averages().table(sort_by="cuda_time_total", row_limit=40))


if __name__ == "__main__":
    main()
