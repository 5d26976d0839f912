"""Stages of the training on a GPU: ``python benchmarks/gpu_stages.py``.

Prints for each kernel the largest relative difference to PyTorch and the milliseconds of both, then
the milliseconds of the stages of one batch.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch

from gpu import made_up
from rbfdiffnet.batch.backend import standardize
from rbfdiffnet.batch.centers import place_centers
from rbfdiffnet.batch.problem import Problem
from rbfdiffnet.batch.torch_backend import FusedBackend, TorchBackend
from rbfdiffnet.models.networks import fast
from rbfdiffnet.series import differences as differencing
from rbfdiffnet.series.differences import n_differences_many
from rbfdiffnet.series.gaps import fill_many
from rbfdiffnet.series.outliers import find_outliers

D, C, N = 14, 28, 1920


def milliseconds(job: Callable[[], Any], repeats: int = 5) -> float:
    job()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return 1e3 * sorted(times)[repeats // 2]


def random(*shape: int) -> Any:
    return torch.randn(*shape, dtype=torch.float64, device="cuda")


def kernels(batch: int) -> None:
    plain, fused = TorchBackend("cuda"), FusedBackend("cuda")
    weight = (torch.arange(N, device="cuda") >= 12).double() * torch.ones_like(random(batch, 1, N))
    rows = torch.cat([random(batch, D, N) * weight, weight], 1)
    y = random(batch, N) * weight[:, 0]
    centers = rows[:, :-1, -C:].swapaxes(1, 2).contiguous()
    beta = 0.01 + 0.02 * random(batch, C).abs()
    a, b = random(batch, 1 + D), random(batch, C + D + 1)
    p, q = (x.products(rows, y, centers, beta, -2.0 * beta) for x in (plain, fused))
    A = random(batch, C + D + 1, 90)
    A = A @ A.swapaxes(1, 2)
    S, v = random(batch, D + 1, D + 1), random(batch, D + 1)
    jobs: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = [
        ("assign", lambda: plain.assign(rows, centers)[0], lambda: fused.assign(rows, centers)[0]),
        ("products", lambda: plain.products(rows, y, centers, beta, -beta).phi, lambda: p.phi),
        ("gram", lambda: p.gram(a), lambda: q.gram(a)),
        ("K", lambda: p.curvature(a, b)[0], lambda: q.curvature(a, b)[0]),
        ("along", lambda: p.curvature(a, b)[1], lambda: q.curvature(a, b)[1]),
        ("JJ", lambda: p.curvature(a, b)[2], lambda: q.curvature(a, b)[2]),
        ("root 43", lambda: plain.root(A), lambda: fused.root(A)),
        ("root 27", lambda: plain.root(A[:, :27, :27]), lambda: fused.root(A[:, :27, :27])),
        ("solve 15", lambda: plain.solve(S, v), lambda: fused.solve(S, v)),
    ]
    for name, one, other in jobs:
        expected, found = one(), other()
        gap = float((expected - found).abs().max() / expected.abs().max())
        times = f"{milliseconds(one):8.2f} ms, fused {milliseconds(other):8.2f} ms"
        print(f"{name:10} difference {gap:.1e}, plain {times}", flush=True)


def stages(backend: TorchBackend, batch: int) -> None:
    data = made_up(batch)
    options: dict[str, Any] = {"season_length": 7, "n_lags": D, "backend": backend}
    y = backend.to_device(data)
    is_outlier = find_outliers(y, 7, backend)[0]
    gaps = torch.where(is_outlier, torch.nan, y)
    u = fill_many(gaps, 7, backend)
    fit = fast.fit_fast(data, **options)

    def windows() -> Any:
        return torch.stack([u[:, i : i + u.shape[1] - D] for i in range(D)], dim=1)

    X, weight = windows(), torch.ones_like(u[:, D:])
    n = weight.sum(1)
    target = standardize(u[:, D:], weight, n, torch)[0]
    rows = backend.rows(X, weight, n)[0]
    a = torch.ones_like(rows[:, :, 0]) * (1.0 + D) ** -0.5

    def minimize() -> Any:
        return Problem(backend, rows, target, n, C, 4.0).minimize(a.clone(), 12)

    jobs: list[tuple[str, Callable[[], Any]]] = [
        ("copy to device", lambda: backend.to_device(data)),
        ("outliers", lambda: find_outliers(y, 7, backend)),
        ("filling", lambda: fill_many(gaps, 7, backend)),
        ("Dickey-Fuller", lambda: n_differences_many(u, backend=backend)),
        ("differences", lambda: differencing.choose_differences(u, 7, backend)),
        ("windows", windows),
        ("rows", lambda: backend.rows(X, weight, n)),
        ("centers", lambda: place_centers(rows, n, C, 4.0, backend)),
        ("minimize", minimize),
        ("forecast", lambda: fit.forecast(28)),
        ("fit_fast", lambda: fast.fit_fast(data, **options)),
    ]
    print(f"{type(backend).__name__}, {batch} series")
    for name, job in jobs:
        print(f"{name:14} {milliseconds(job, 3):8.2f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=8_192)
    options = parser.parse_args()
    kernels(options.batch)
    for backend in (TorchBackend("cuda"), FusedBackend("cuda")):
        stages(backend, options.batch)


if __name__ == "__main__":
    main()
