"""Forecasts of series no network can be fitted to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["naive_forecast"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def naive_forecast(
    y: Array, origins: Ints, h: int, season_length: int, *, n_seasons: int = 2
) -> Array:
    r"""Repeat the last season of known values before each origin.

    .. math:: \hat y_{t+k} = y_{t + k - m \lceil k / m \rceil}

    where m is the season's length, or 1 where fewer than ``n_seasons`` have been seen. A missing
    value is replaced by the latest known one of its phase, or of any. Before the first known value
    the forecast is 0.

    Parameters
    ----------
    y : ndarray of shape (T,)
        NaN where missing.
    origins : ndarray of int of shape (B,)
        Numbers of values seen.
    h : int
    season_length : int
    n_seasons : int, default=2
        At least 1.

    Returns
    -------
    ndarray of shape (B, h)

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.series.naive import naive_forecast
    >>> y = np.array([1.0, 2.0, 3.0, np.nan])
    >>> naive_forecast(y, np.array([4, 0]), 3, season_length=2).tolist()
    [[3.0, 2.0, 3.0], [0.0, 0.0, 0.0]]
    """
    latest = _latest_known(y, 1)
    by_phase = _latest_known(y, season_length)
    seasonal = (season_length > 1) & (origins >= n_seasons * season_length)
    k = np.arange(1, h + 1)
    back = k - season_length * -(-k // season_length)  # 1 - m, ..., 0
    # A 0 at the end, position -1, stands for times before the first value.
    phase_value = np.append(by_phase, 0.0)[np.maximum(origins[:, None] + back - 1, -1)]
    last_value = np.append(latest, 0.0)[origins - 1][:, None]
    value = np.where(seasonal[:, None] & np.isfinite(phase_value), phase_value, last_value)
    return np.nan_to_num(value, nan=0.0)


def _latest_known(y: Array, period: int) -> Array:
    """Value at every step, or where missing the latest known one whole periods before."""
    pad = -y.size % period
    table = np.append(y, np.full(pad, np.nan)).reshape(-1, period)
    row = np.where(np.isfinite(table), np.arange(len(table))[:, None], -1)
    row = np.maximum.accumulate(row, axis=0)
    filled = np.take_along_axis(table, np.maximum(row, 0), axis=0)
    return np.where(row >= 0, filled, np.nan).ravel()[: y.size]
