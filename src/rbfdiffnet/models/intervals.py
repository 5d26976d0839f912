r"""Prediction intervals with a guarantee: split conformal prediction over rolling origins.

A model is fitted without the last part of a series (a third of it, at most 200 steps) and
forecasts from every origin in that part. The absolute errors at horizon k are its scores, and

.. math:: \tilde y_{T+k} \pm q_k, \qquad q_k = \text{the } \lceil (n + 1)\,\gamma \rceil
    \text{-th smallest of n scores}

is the interval of level :math:`\gamma`, where :math:`\tilde y` is the forecast of that same model
from the end of the series. If the errors are exchangeable with the next one, it covers with
probability at least :math:`\gamma`, whatever their distribution and however bad the model: the +1
is the finite-sample correction. (The forecast of the model fitted to everything is taken into the
interval if it lies outside.) Errors of a series that changes its ways are not exchangeable with
later ones; then coverage is only as good as the past resembles the future.

Where noise is filtered (`rbfdiffnet.noise`), how far ahead a series can be seen depends on its
state, and the filter says how far: errors made elsewhere are first multiplied by the ratio of the
present spread to the spread there.

A series with fewer than 50 scores at a horizon borrows: scores of all series (of 2,000, where there
are more) are divided by the mean step size of their series, pooled, and multiplied by that of the
series in question. The guarantee then holds on average over the panel. A series without a network,
whose forecast is a naive one, borrows errors of naive forecasts instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

__all__ = [
    "MOST_POOLED",
    "Lent",
    "Pool",
    "Pools",
    "calibration_length",
    "conformal_quantile",
    "half_widths",
    "pooled",
    "thin",
]

Array = npt.NDArray[np.float64]
Scalar = TypeVar("Scalar", bound=np.generic)

_ENOUGH = 50  # scores of a series at a horizon for it to stand on its own
_LONGEST = 200
_POOLED = 20  # scores that each series gives to the pool
MOST_POOLED = 2_000  # series that do


def calibration_length(n: int) -> int:
    """Return the number of last steps held out of n for calibration.

    Examples
    --------
    >>> from rbfdiffnet.models.intervals import calibration_length
    >>> calibration_length(30), calibration_length(5000)
    (10, 200)
    """
    return min(n // 3, _LONGEST)


def conformal_quantile(scores: Array, level: float) -> float:
    """Return the smallest bound that covers the next score with the given probability.

    Parameters
    ----------
    scores : ndarray of shape (n,)
    level : float
        Between 0 and 1.

    Returns
    -------
    float
        Infinite if there are too few scores for the level.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models.intervals import conformal_quantile
    >>> conformal_quantile(np.arange(1.0, 10.0), 0.8), conformal_quantile(np.ones(9), 0.95)
    (8.0, inf)
    """
    # Rounded first, since (n + 1) times .95 may exceed an integer by a rounding error.
    rank = int(np.ceil(np.round((scores.size + 1) * level, 9)))
    return float(np.partition(scores, rank - 1)[rank - 1]) if rank <= scores.size else np.inf


def thin(rows: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Return evenly spread rows, as of the errors of a series: its share of the pool."""
    n = len(rows)
    return rows[np.linspace(0, n - 1, min(n, _POOLED)).astype(np.int64)]


@dataclass(frozen=True)
class Pool:
    """What series with few errors borrow.

    Attributes
    ----------
    size : ndarray of int of shape (h,)
        Number of scores at each horizon.
    quantiles : ndarray of shape (h, n_levels)
        Infinite where there are too few scores.
    largest : ndarray of shape (h,)
        Of the horizons before, where there is none.
    ordinary : float
        Median step size of the series, for those without two values.
    """

    size: npt.NDArray[np.int64]
    quantiles: Array
    largest: Array
    ordinary: float


def pooled(errors: Sequence[Array], scales: Array, levels: Sequence[float]) -> Pool:
    """Pool the errors of a panel, each divided by the step size of its series.

    Parameters
    ----------
    errors : sequence of ndarray of shape (n, h)
        As by `thin`.
    scales : ndarray of shape (n_series,)
        Mean step sizes; NaN where there are none.
    levels : sequence of float
        Between 0 and 1, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models.intervals import pooled
    >>> pool = pooled([np.full((9, 1), 2.0), np.full((10, 1), 30.0)], np.array([2.0, 10.0]), [0.9])
    >>> pool.size.tolist(), pool.quantiles.tolist(), pool.ordinary
    ([19], [[3.0]], 6.0)
    """
    horizon = errors[0].shape[1] if len(errors) else 0
    ordinary = float(np.nanmedian(scales)) if np.any(np.isfinite(scales)) else 0.0
    scales = np.where(np.isfinite(scales), scales, ordinary)
    usable = np.flatnonzero(scales > 0.0).tolist()
    shares = [errors[i] / scales[i] for i in usable if len(errors[i])]
    pool = np.concatenate(shares) if shares else np.empty((0, horizon))
    scores = [pool[np.isfinite(pool[:, k]), k] for k in range(horizon)]
    size = np.array([s.size for s in scores], dtype=np.int64)
    largest = np.array([s.max(initial=0.0) for s in scores])
    quantiles = [[conformal_quantile(s, level) for level in levels] for s in scores]
    return Pool(
        size,
        np.array(quantiles).reshape(horizon, len(levels)),
        np.where(size > 0, largest, np.maximum.accumulate(largest)),
        ordinary,
    )


@dataclass(frozen=True)
class Lent:
    """What series have to lend.

    Attributes
    ----------
    errors : sequence of ndarray of shape (n, h)
        Of their forecasts, as by `thin`.
    naive : sequence of ndarray of shape (n, h)
        Of their last values, repeated.
    scales : ndarray of shape (n_series,)
        Mean step sizes; NaN where there are none.
    """

    errors: Sequence[Array]
    naive: Sequence[Array]
    scales: Array


@dataclass(frozen=True)
class Pools:
    """What series with few errors borrow, those with a network and those without."""

    networks: Pool
    fallbacks: Pool

    @classmethod
    def of(cls, lent: Lent, levels: Sequence[float]) -> Pools:
        """Pool what is lent."""
        both = (pooled(errors, lent.scales, levels) for errors in (lent.errors, lent.naive))
        return cls(*both)


def half_widths(
    errors: Sequence[Array], scales: Array, levels: Sequence[float], pool: Pool | None = None
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return the half-widths of intervals for a panel.

    Parameters
    ----------
    errors : sequence of ndarray of shape (n, h)
        Absolute errors of each series; NaN where unknown.
    scales : ndarray of shape (n_series,)
        Mean step size of each series; NaN where there is none.
    levels : sequence of float
        Between 0 and 1, ascending.
    pool : Pool, optional
        What series with few errors borrow; by default the pool of these series.

    Returns
    -------
    widths : ndarray of shape (n_series, h, n_levels)
        Finite, and not smaller for higher levels.
    guaranteed : ndarray of bool of shape (n_series,)
        False where even the pool had too few scores, and the largest was taken.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models.intervals import half_widths
    >>> errors = np.abs(np.random.default_rng(0).normal(size=(2000, 1)))
    >>> widths, _ = half_widths([errors], np.ones(1), [0.8, 0.95])
    >>> widths.round(1).tolist()
    [[[1.3, 1.9]]]
    """
    horizon = errors[0].shape[1] if len(errors) else 0
    pool = pool or pooled([thin(own) for own in errors], scales, levels)
    # Nothing is known of a series without two values: it is taken for an ordinary one.
    scales = np.where(np.isfinite(scales), scales, pool.ordinary)
    widths = np.empty((len(errors), horizon, len(levels)))
    guaranteed = np.ones(len(errors), dtype=bool)
    for i, own in enumerate(errors):
        for k in range(horizon):
            scores = own[np.isfinite(own[:, k]), k]
            alone = scores.size >= min(_ENOUGH, int(pool.size[k]))
            for j, level in enumerate(levels):
                width = conformal_quantile(scores, level) if alone else np.inf
                if not np.isfinite(width):
                    width = pool.quantiles[k, j] * scales[i] if scales[i] > 0.0 else 0.0
                if not np.isfinite(width):
                    guaranteed[i] = False
                    width = max(pool.largest[k] * scales[i], scores.max(initial=0.0))
                widths[i, k, j] = width
    return np.maximum.accumulate(widths, axis=2), guaranteed
