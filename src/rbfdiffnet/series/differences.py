r"""Choose which differences to take: first ones, or one to the season before.

The Dickey-Fuller test, the paper's way (`series.unit_root.n_differences`), says how often a series
must be differenced to have no unit root, not whether its season should be differenced away. That
is tried out: two linear autoregressions over two seasons, one on the seasonal difference and one
on first differences, forecast the latter half of the series from some origins, and the lower
squared error decides.

.. math::

    e = \nabla^{-1} (z - \hat z), \qquad \hat z_{o+k} = W_k \cdot (z_{o-l+1}, \ldots, z_o)

where :math:`\nabla` is the differencing, z the differenced series, and :math:`W_k` the weights of
the k-th step of a recursive forecast. All of it works on many series of the same length at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rbfdiffnet.batch.backend import NUMPY, Backend
from rbfdiffnet.series.unit_root import n_differences_many
from rbfdiffnet.series.windows import stack_windows
from rbfdiffnet.support.arrays import Array, Ints, Mask

_MOST_DIFFERENCES = 10
_ORIGINS = 26
_RIDGE = 1e-4


@dataclass(frozen=True)
class Differences:
    """Differences of many series: one to the season before, then first ones."""

    z: Any  # the differenced series (B, T), 0 where values are lost at the start
    seasonal: Mask  # whether there is a seasonal difference, (B,)
    counts: Ints  # numbers of first differences, (B,)
    lost: Ints  # numbers of values lost, (B,)


def choose_differences(u: Any, season_length: int, backend: Backend = NUMPY) -> Differences:
    """Choose the differences of each of many series (B, T) without gaps."""
    plain = _take_first_differences(u, backend)
    lags, horizon = 2 * max(season_length, 2), 2 * season_length
    first = max(season_length, _MOST_DIFFERENCES)  # the same for all: no series sees the others
    if season_length == 1 or u.shape[1] - horizon - first - lags < horizon:
        return plain
    seasonal = _take_seasonal_difference(u, season_length, backend)
    errors = [
        _forecast_errors(d, season_length, first, lags, horizon, backend) for d in (plain, seasonal)
    ]
    better = errors[1] < errors[0]
    which = backend.to_device(better)[:, None]
    return Differences(
        backend.xp.where(which, seasonal.z, plain.z),
        better,
        np.where(better, seasonal.counts, plain.counts),
        np.where(better, seasonal.lost, plain.lost),
    )


def _take_first_differences(u: Any, backend: Backend) -> Differences:
    """Take as many first differences as the Dickey-Fuller test asks for."""
    xp, z = backend.xp, u
    counts = n_differences_many(u, max_differences=_MOST_DIFFERENCES, backend=backend)
    for k in range(int(counts.max(initial=0))):
        change = xp.concatenate([0.0 * z[:, : k + 1], z[:, k + 1 :] - z[:, k:-1]], axis=1)
        z = xp.where(backend.to_device(counts > k)[:, None], change, z)
    return Differences(z, np.zeros(len(u), dtype=bool), counts, counts)


def _take_seasonal_difference(u: Any, season: int, backend: Backend) -> Differences:
    """Take one difference to the season before."""
    z = backend.xp.concatenate([0.0 * u[:, :season], u[:, season:] - u[:, :-season]], axis=1)
    none = np.zeros(len(u), dtype=np.int64)
    return Differences(z, np.ones(len(u), dtype=bool), none, none + season)


def _forecast_errors(
    differences: Differences, season: int, first: int, lags: int, horizon: int, backend: Backend
) -> Array:
    """Return mean squared errors (B,) of a linear autoregression; infinite where it explodes."""
    xp, z = backend.xp, differences.z
    length = z.shape[1]
    mean = z[:, first:].mean(axis=1)[:, None]
    z = z - mean
    n = length - first - lags
    columns = stack_windows(z[:, first:], lags + 1, n, xp)
    gram = backend.contract(columns, columns)
    size = backend.diagonal_of(gram).mean(axis=1)
    penalty = backend.diagonal((_RIDGE * size + 1e-300)[:, None] + 0.0 * gram[:, 0, :-1])
    weights = backend.solve(gram[:, :-1, :-1] + penalty, gram[:, :-1, -1])[:, :, None]
    # What each value of a window adds to each step: forecasts from windows of one 1.
    eye = xp.eye(lags, **backend.kind(z))[None] + 0.0 * gram[:, :-1, :-1]
    states = xp.concatenate([eye, xp.zeros((len(z), lags, horizon), **backend.kind(z))], axis=2)
    for k in range(horizon):
        states[:, :, lags + k : lags + k + 1] = states[:, :, k : k + lags] @ weights
    begin = max(first + lags, length // 2)
    origins = np.unique(np.linspace(begin, length - horizon, _ORIGINS).astype(np.int64))
    windows = xp.stack([z[:, o - lags : o + horizon] for o in origins.tolist()], axis=1)
    error = windows[:, :, lags:] - windows[:, :, :lags] @ states[:, :, lags:]
    counts = backend.to_device(differences.counts)
    for k in range(int(differences.counts.max(initial=0))):
        error = xp.where((counts > k)[:, None, None], xp.cumsum(error, 2), error)
    if differences.seasonal.any():
        blocks = error.reshape(*error.shape[:2], -1, season)
        error = xp.cumsum(blocks, 2).reshape(error.shape)
    found = backend.to_numpy((error**2).mean(axis=2).mean(axis=1))
    return np.where(np.isfinite(found), found, np.inf)
