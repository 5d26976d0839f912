r"""Which differences to take: first ones, or one to the season before.

The Dickey-Fuller test, the paper's way (`series.unit_root.n_differences`), says how often a series
must be differenced to have no unit root, not whether its season should be differenced away. That
is tried out: linear autoregressions of two seasons, one
on the seasonal difference and one on first differences, forecast the latter half of the series
from some origins, and the lower squared error decides.

.. math::

    e = \nabla^{-1} (z - \hat z), \qquad \hat z_{o+k} = W_k \cdot (z_{o-l+1}, \ldots, z_o)

where :math:`\nabla` is the differencing, z the differenced series, and :math:`W_k` the weights of
the k-th step of a recursive forecast. All of it works on many series of the same length at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.batch.backend import NUMPY, Backend
from rbfdiffnet.series.unit_root import n_differences_many

__all__ = ["Differences", "choose_differences"]

Ints = npt.NDArray[np.int64]

_MOST_DIFFERENCES = 10
_ORIGINS = 26
_RIDGE = 1e-4


class Differences:
    """Differences of many series.

    Attributes
    ----------
    z : array of shape (B, T)
        The differenced series; 0 where values are lost, at the start.
    seasonal : ndarray of bool of shape (B,)
        Whether the difference to the season before is taken first.
    counts : ndarray of int of shape (B,)
        How many first differences follow.
    lost : ndarray of int of shape (B,)
        Number of values lost.
    """

    def __init__(self, z: Any, seasonal: npt.NDArray[np.bool_], counts: Ints, lost: Ints) -> None:
        self.z, self.seasonal, self.counts, self.lost = z, seasonal, counts, lost


def choose_differences(u: Any, season_length: int, backend: Backend = NUMPY) -> Differences:
    """Choose the differences of each of many series of the same length.

    Parameters
    ----------
    u : array of shape (B, T)
        Finite values.
    season_length : int
    backend : Backend, default=NUMPY

    Returns
    -------
    Differences

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.series.differences import choose_differences
    >>> rng = np.random.default_rng(0)
    >>> growing = np.tile(rng.normal(size=7), 100) * (1.0 + np.arange(700) / 200.0)
    >>> noise = rng.normal(size=(2, 700))
    >>> chosen = choose_differences(np.stack([growing + 0.1 * noise[0], noise[1].cumsum()]), 7)
    >>> chosen.seasonal.tolist(), chosen.counts.tolist()
    ([True, False], [0, 1])
    """
    plain = _first_differences(u, backend)
    lags, horizon = 2 * max(season_length, 2), 2 * season_length
    first = max(season_length, _MOST_DIFFERENCES)  # the same for all: no series sees the others
    if season_length == 1 or u.shape[1] - horizon - first - lags < horizon:
        return plain
    seasonal = _seasonal_difference(u, season_length, backend)
    errors = [_errors(d, season_length, first, lags, horizon, backend) for d in (plain, seasonal)]
    better = errors[1] < errors[0]
    which = backend.place(better)[:, None]
    return Differences(
        backend.xp.where(which, seasonal.z, plain.z),
        better,
        np.where(better, seasonal.counts, plain.counts),
        np.where(better, seasonal.lost, plain.lost),
    )


def _first_differences(u: Any, backend: Backend) -> Differences:
    """As many first differences as the Dickey-Fuller test asks for."""
    xp, z = backend.xp, u
    counts = n_differences_many(u, max_differences=_MOST_DIFFERENCES, backend=backend)
    for k in range(int(counts.max(initial=0))):
        change = xp.concatenate([0.0 * z[:, : k + 1], z[:, k + 1 :] - z[:, k:-1]], axis=1)
        z = xp.where(backend.place(counts > k)[:, None], change, z)
    return Differences(z, np.zeros(len(u), dtype=bool), counts, counts)


def _seasonal_difference(u: Any, season: int, backend: Backend) -> Differences:
    """One difference to the season before."""
    z = backend.xp.concatenate([0.0 * u[:, :season], u[:, season:] - u[:, :-season]], axis=1)
    none = np.zeros(len(u), dtype=np.int64)
    return Differences(z, np.ones(len(u), dtype=bool), none, none + season)


def _errors(
    differences: Differences, season: int, first: int, lags: int, horizon: int, backend: Backend
) -> npt.NDArray[np.float64]:
    """Mean squared errors of forecasts by a linear autoregression; infinite where they explode."""
    xp, z = backend.xp, differences.z
    length = z.shape[1]
    mean = z[:, first:].mean(axis=1)[:, None]
    z = z - mean
    n = length - first - lags
    columns = xp.stack([z[:, first + i : first + i + n] for i in range(lags + 1)], axis=1)
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
    counts = backend.place(differences.counts)
    for k in range(int(differences.counts.max(initial=0))):
        error = xp.where((counts > k)[:, None, None], xp.cumsum(error, 2), error)
    if differences.seasonal.any():
        blocks = error.reshape(*error.shape[:2], -1, season)
        error = xp.cumsum(blocks, 2).reshape(error.shape)
    found = backend.to_numpy((error**2).mean(axis=2).mean(axis=1))
    return np.where(np.isfinite(found), found, np.inf)
