"""Simple forecasts of many short series at once: what a stack of models holds on to.

Series are the rows of an array and end in its last column; before a series starts there is NaN.
They come without seasons. Every method takes such an array and a horizon, and returns one row of
forecasts a series; the forecasts of a series do not depend on the others.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rbfdiffnet.models.stack.smoothing import smooth
from rbfdiffnet.support.stability import forecast_bounds

__all__ = ["damped_holt", "on_logarithms", "theta"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_THETA_ALPHA = np.linspace(0.025, 1.0, 40)
# Small values are closer to each other, where forecasts change most.
_ALPHA = np.linspace(0.01, 1.0, 11) ** 2
_BETA = np.linspace(0.0, 1.0, 7) ** 2
_PHI = np.linspace(0.8, 0.98, 8)


def theta(Y: npt.ArrayLike, h: int) -> Array:
    r"""Forecast with the classic Theta method: simple smoothing with half the trend as drift.

    .. math:: \hat y_{T+k} = \tfrac12 \big( a + c\,(T + k) \big) + \tfrac12\, \ell_T

    where :math:`a + c t` is the series' linear trend, its theta line 0, and :math:`\ell_T` the
    level that simple exponential smoothing gives to theta line 2, :math:`2 y_t - a - c t`. The
    smoothing parameter, from 0.025 to 1, and the first level are those of least squared one-step
    error; the error of line 2 is twice the error of the forecasts. Up to the choice of the first
    level this is smoothing of the series itself with drift c/2 (Hyndman and Billah, Unmasking the
    Theta method, International Journal of Forecasting 19, 2003).

    Parameters
    ----------
    Y : array-like of shape (n, T)
        Series that end in the last column, NaN before they start.
    h : int
        Number of steps.

    Returns
    -------
    ndarray of shape (n, h)
        A series of fewer than three values repeats its last one.

    Raises
    ------
    ValueError
        If a series is empty, or a value after its first is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models.stack.anchors import theta
    >>> theta([[1, 2, 3, 4, 5], [np.nan, np.nan, np.nan, 3, 7]], 3).round(6).tolist()
    [[5.5, 6.0, 6.5], [7.0, 7.0, 7.0]]
    """
    y, lengths, last = _from_the_start(Y)
    inside = np.arange(y.shape[1]) < lengths[:, None]
    middle = (lengths[:, None] - 1) / 2.0
    t = np.where(inside, np.arange(y.shape[1]) - middle, 0.0)
    mean = y.sum(axis=1, keepdims=True) / lengths[:, None]
    slope = (t * y).sum(axis=1, keepdims=True) / np.maximum((t * t).sum(axis=1, keepdims=True), 1)
    smoothed = smooth(2.0 * y - mean - slope * t, lengths, _THETA_ALPHA)
    line = mean + slope * (middle + np.arange(1, h + 1))
    return last + np.where(lengths[:, None] < 3, 0.0, (line + smoothed.forecast(h)) / 2.0)


def damped_holt(Y: npt.ArrayLike, h: int) -> Array:
    r"""Forecast with exponential smoothing of the level and of a damped trend.

    .. math:: \hat y_{T+k} = \ell_T + (\phi + \phi^2 + \cdots + \phi^k)\, b_T

    with level and trend after the last value (`rbfdiffnet.models.stack.smoothing`). Of
    :math:`\alpha` from 0.0001 to 1, :math:`\beta` (the share of :math:`\alpha` that goes into the
    trend) from 0 to 1, :math:`\phi` from 0.8 to 0.98 and the states before the first value,
    those with the least squared one-step error are taken.

    Parameters
    ----------
    Y : array-like of shape (n, T)
        Series that end in the last column, NaN before they start.
    h : int
        Number of steps.

    Returns
    -------
    ndarray of shape (n, h)
        A series with no more values than the five numbers to fit repeats its last one.

    Raises
    ------
    ValueError
        If a series is empty, or a value after its first is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models.stack.anchors import damped_holt
    >>> damped_holt([np.arange(30), np.full(30, 7.0)], 3).round(1).tolist()
    [[30.0, 30.9, 31.9], [7.0, 7.0, 7.0]]
    """
    y, lengths, last = _from_the_start(Y)
    smoothed = smooth(y, lengths, _ALPHA, _BETA, _PHI)
    return last + np.where(lengths[:, None] <= 5, 0.0, smoothed.forecast(h))


def on_logarithms(method: Callable[[Array, int], Array], Y: npt.ArrayLike, h: int) -> Array:
    r"""Apply a method to the logarithms of the series that are positive throughout.

    .. math:: \hat y_{T+k} = \exp \hat z_{T+k}, \qquad z_t = \log y_t

    A median of the logarithm becomes a median of the series: there is no correction for bias.
    So that no trend explodes, such a forecast stays between the bounds of
    `rbfdiffnet.support.stability`. Series with zeros or negative values are forecast as they are.

    Parameters
    ----------
    method : callable
        ``method(Y, h)`` gives forecasts of shape (n, h), like `theta` and `damped_holt`.
    Y : array-like of shape (n, T)
        Series that end in the last column, NaN before they start.
    h : int
        Number of steps.

    Returns
    -------
    ndarray of shape (n, h)

    Raises
    ------
    ValueError
        If a series is empty, or a value after its first is not finite.

    Examples
    --------
    >>> from rbfdiffnet.models.stack.anchors import on_logarithms, theta
    >>> series = [[1, 2, 4, 8, 16], [0, 1, 2, 3, 4]]
    >>> on_logarithms(theta, series, 4).round(2).tolist()
    [[22.63, 32.0, 45.25, 61.0], [4.5, 5.0, 5.5, 6.0]]
    """
    values, _ = _checked(Y)
    least, largest = np.nanmin(values, axis=1), np.nanmax(values, axis=1)
    positive = least > 0.0
    values[positive] = np.log(values[positive])
    forecast = np.array(method(values, h), dtype=np.float64)
    lower, upper = (bound[positive, None] for bound in forecast_bounds(least, largest))
    limited = np.minimum(forecast[positive], np.log(upper))
    forecast[positive] = np.clip(np.exp(limited), lower, upper)
    return forecast


def _checked(Y: npt.ArrayLike) -> tuple[Array, Ints]:
    """Return the series, copied, and where they start."""
    values = np.array(Y, dtype=np.float64)
    if values.ndim != 2 or not values.shape[1]:
        raise ValueError(f"Y must have a row for each series, got shape {values.shape}.")
    starts = np.argmin(np.isnan(values), axis=1)
    wrong = ~np.isfinite(values) & (np.arange(values.shape[1]) >= starts[:, None])
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"Series {row} has the value {values[row, column]} in column {column}; from its first "
            "value to the last column a series must be finite: fill its gaps, and align it right."
        )
    return values, starts


def _from_the_start(Y: npt.ArrayLike) -> tuple[Array, Ints, Array]:
    """Return series less their last value, from the first column on, then 0; lengths; last."""
    values, starts = _checked(Y)
    columns = values.shape[1]
    last = values[:, -1:]
    places = np.arange(columns) + starts[:, None]
    moved = np.take_along_axis(values - last, np.minimum(places, columns - 1), axis=1)
    return moved, columns - starts, last
