"""Many small networks at once: K-Means, training and forecasts with a leading batch axis.

All arrays have the series as their first axis and rows as their last, contiguous one; the same
code runs on NumPy arrays and on PyTorch tensors, on any device (`batch.backend`). What is minimized
is in `batch.problem`. Rows of weight 0 do not count, so series of different length share a batch.
Nothing depends on random numbers or on the other series of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from rbfdiffnet.batch.backend import NUMPY, Backend, backend_for, standardize
from rbfdiffnet.batch.problem import pose_problem
from rbfdiffnet.network.network import Network
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.stability import LEAP

_INPUTS_TRAINED_TOGETHER = 160_000  # numbers, which the caches of a processor hold

_BY_OUTPUT = ("w", "linear", "y_shift", "y_scale")  # a network has an axis for its outputs there
_OF_A_NETWORK = ("centers", "beta", "a", "x_shift", "x_scale", *_BY_OUTPUT)


@dataclass(frozen=True)
class BatchNetworks:
    """Trained networks of order 1, with order zero and intercept; a leading axis for the series.

    `centers` has shape (B, c, d), `beta` and w (B, c), a and `linear` (B, d + 1), `x_shift` and
    `x_scale` (B, d), and the rest (B,): shift and scale of the target, unit of the first
    derivatives, largest target, objective, and the penalty chosen for the RBF part.
    """

    centers: Any
    beta: Any
    a: Any
    w: Any
    linear: Any
    x_shift: Any
    x_scale: Any
    y_shift: Any
    y_scale: Any
    unit: Any
    largest: Any
    value: Any
    ridge: Any

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to other machines: NumPy arrays."""
        return {f.name: getattr(self.to_numpy(), f.name) for f in fields(self)}

    def network(self, i: int) -> Network:
        """Return one of the networks."""
        here = self.to_numpy()
        arrays = {name: getattr(here, name)[i] for name in _OF_A_NETWORK}
        arrays |= {name: arrays[name][..., None] for name in _BY_OUTPUT}
        d = self.x_shift.shape[1]
        unit = float(here.unit[i])
        return Network(**arrays, unit=unit, metric=np.ones(d), n_lags=d, order=1)

    @classmethod
    def stack(cls, networks: Sequence[Network], largest: Sequence[float]) -> BatchNetworks:
        """Return networks of the same shape, made by `network`, as a batch."""
        arrays = {
            name: np.array([getattr(n, name) for n in networks])
            for name in (*_OF_A_NETWORK, "unit")
        }
        arrays |= {name: arrays[name][..., 0] for name in _BY_OUTPUT}
        unknown = np.full(len(networks), np.nan)
        return cls(**arrays, largest=np.array(largest), value=unknown, ridge=unknown.copy())

    @classmethod
    def concatenate(cls, chunks: Sequence[BatchNetworks]) -> BatchNetworks:
        """Return several batches of one device as one."""
        if len(chunks) == 1:
            return chunks[0]
        names, xp = [f.name for f in fields(cls)], chunks[0].xp
        return cls(**{n: xp.concatenate([getattr(c, n) for c in chunks]) for n in names})

    def select(self, numbers: Sequence[int]) -> BatchNetworks:
        """Return some of the networks."""
        if list(numbers) == list(range(len(self.a))):
            return self
        which = np.asarray(numbers, dtype=np.int64)
        return BatchNetworks(**{f.name: getattr(self, f.name)[which] for f in fields(self)})

    @property
    def xp(self) -> Any:
        """The library of the arrays: NumPy or PyTorch."""
        if isinstance(self.a, np.ndarray):
            return np
        import torch

        return torch

    def to_numpy(self) -> BatchNetworks:
        """Return the same in NumPy arrays."""
        return self if isinstance(self.a, np.ndarray) else self._in_numpy

    @cached_property
    def _in_numpy(self) -> BatchNetworks:
        return BatchNetworks(**{f.name: getattr(self, f.name).cpu().numpy() for f in fields(self)})


def train(
    X: Any, y: Any, weight: Any, *, n_centers: int = 28, backend: Backend | None = None
) -> BatchNetworks:
    """Train networks as `fit_batch` does, as many at a time as suit the backend."""
    backend = backend or backend_for("cpu")
    if backend.rows_trained_together is None:
        return fit_batch(X, y, weight, n_centers=n_centers, backend=backend)
    size = max(
        1, min(backend.rows_trained_together, _INPUTS_TRAINED_TOGETHER // X.shape[1]) // X.shape[2]
    )
    chunks = [slice(i, i + size) for i in range(0, len(X), size)]
    return BatchNetworks.concatenate(
        [fit_batch(X[c], y[c], weight[c], n_centers=n_centers, backend=backend) for c in chunks]
    )


def fit_batch(
    X: Any,
    y: Any,
    weight: Any,
    *,
    n_centers: int = 28,
    width_factor: float = 4.0,
    n_steps: int = 12,
    backend: Backend = NUMPY,
) -> BatchNetworks:
    """Train a network for every series of a batch.

    `X` has shape (B, d, N); y and `weight` have shape (B, N). The weight is 1, or 0 for rows that
    do not count; these come first, but for a few. There are at most `n_steps` Newton steps for a;
    one that lowers the objective by less than .3 % is the last.
    """
    xp = backend.xp
    n = weight.sum(axis=1)
    rows, x_shift, x_scale = backend.rows(X, weight, n)
    target, y_shift, y_scale = standardize(y, weight, n, xp)
    problem = pose_problem(backend, rows, target, n, n_centers, width_factor)
    a = xp.ones_like(rows[:, :, 0]) * rows.shape[1] ** -0.5
    a, b, value, ridge = problem.minimize(a, n_steps)
    return BatchNetworks(
        centers=problem.centers,
        beta=problem.beta,
        a=a,
        w=b[:, :n_centers],
        linear=problem.linear_part(a, b),
        x_shift=x_shift,
        x_scale=x_scale,
        y_shift=y_shift,
        y_scale=y_scale,
        unit=problem.unit,
        largest=backend.highest(xp.abs(y * weight)),
        value=value,
        ridge=ridge,
    )


def forecast_windows(networks: BatchNetworks, window: Array, h: int) -> Array:
    """Continue windows as `forecast_batch` does, from and to NumPy arrays."""
    if networks.xp is not np:
        window = networks.xp.from_numpy(window).to(networks.a.device)
        return np.asarray(forecast_batch(networks, window, h).cpu())
    return np.asarray(forecast_batch(networks, window, h))


def forecast_batch(networks: BatchNetworks, window: Any, h: int) -> Any:
    """Continue windows recursively, as `models.networks.window_model.WindowModel.forecast` does.

    `window` has shape (B, d), latest values last, or (B, k, d) for k windows of each network; the
    forecasts have shape (B, h) or (B, k, h). They are made where the networks are.
    """
    if window.ndim == 2:
        return forecast_batch(networks, window[:, None], h)[:, 0]
    xp, d = networks.xp, networks.centers.shape[2]
    centers = networks.centers.swapaxes(1, 2)
    a0, a1 = networks.a[:, :1, None], networks.a[:, 1:, None]
    slope = (-2.0 * networks.beta * networks.unit[:, None])[:, None]
    at = a1.swapaxes(1, 2) @ centers
    square = (centers**2).sum(axis=1)[:, None]
    beta, weights = networks.beta[:, None], networks.w[:, :, None]
    lam, constant = networks.linear[:, :d, None], networks.linear[:, d:, None]
    x_shift, x_scale = networks.x_shift[:, None], networks.x_scale[:, None]
    y_shift, y_scale = networks.y_shift[:, None], networks.y_scale[:, None]
    limit = (LEAP * networks.largest)[:, None]
    steps = []
    for _ in range(h):
        z = (window - x_shift) / x_scale
        distance = (z**2).sum(axis=2)[:, :, None] + square - 2.0 * (z @ centers)
        phi = xp.exp(-beta * xp.clip(distance, 0.0, None))
        g = phi * (a0 + slope * (z @ a1 - at))
        value = (g @ weights + z @ lam + constant)[:, :, 0] * y_scale + y_shift
        value = xp.minimum(xp.maximum(value, -limit), limit)
        steps.append(value)
        window = xp.concatenate([window[:, :, 1:], value[:, :, None]], axis=2)
    return xp.stack(steps, axis=2)
