"""Forecast many steps with a one-step model by feeding its forecasts back."""

from collections.abc import Callable
from itertools import count

import numpy as np
import numpy.typing as npt

from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.checks import as_floats, check_number

__all__ = ["forecast_recursive"]


def forecast_recursive(
    predict_one_step: Callable[[Array], npt.ArrayLike],
    history: npt.ArrayLike,
    h: int,
    *,
    n_lags: int | None = None,
    reach: float = 10.0,
) -> Array:
    r"""Forecast ``h`` steps, each from what is before it: paper, eq. (recursion), and a bound.

    .. math:: \hat s_{T+k} = \operatorname{clip}\bigl(
        f(\hat s_{T+k-l}, \ldots, \hat s_{T+k-1}),\; a - \rho\,(b - a),\; b + \rho\,(b - a)\bigr),
        \qquad k = 1, \ldots, h

    where :math:`\hat s_t = s_t` for :math:`t \le T`, :math:`f` is the one-step model, :math:`l` the
    number of lags, and :math:`a` and :math:`b` are the smallest and largest value of the history.

    The bound is a guard, not a model: a map that is unstable when fed with its own output grows
    beyond all numbers within a few dozen steps, and the clip keeps such a forecast finite. At
    :math:`\rho = 10` it does not touch a forecast that stays anywhere near the history. A constant
    history has no span, so its forecast is that constant.

    Parameters
    ----------
    predict_one_step : callable
        Maps windows of shape (B, n_lags), oldest lag first, to the B values that follow them; the
        ``predict`` of a fitted regressor does.
    history : array-like of shape (T,) or (B, T)
        One series, or a batch of series that advance together.
    h : int
        Number of steps, at least 1.
    n_lags : int, optional
        Length of the windows; by default the whole history. The bound is always taken from the
        whole history.
    reach : float, default=10.0
        How far, in spans of its history, a forecast may leave it: :math:`\rho` above.

    Returns
    -------
    ndarray of shape (h,) or (B, h)
        The forecasts, with the batch axis of ``history``.

    Raises
    ------
    ValueError
        If the history is not finite or shorter than ``n_lags``, or if the model returns the wrong
        number of values, or not-a-number.

    Examples
    --------
    >>> from rbfdiffnet.series.recursion import forecast_recursive
    >>> fibonacci = lambda windows: windows.sum(axis=1)
    >>> forecast_recursive(fibonacci, [1, 1, 2, 3], 4, n_lags=2).tolist()
    [5.0, 8.0, 13.0, 21.0]
    """
    known = as_floats("history", history)
    if known.ndim not in (1, 2):
        raise ValueError(f"history must have shape (T,) or (B, T), got {known.shape}.")
    check_number("h", h, at_least=1, integer=True)
    check_number("reach", reach, at_least=0.0)
    batch = np.atleast_2d(known)
    lags = batch.shape[1] if n_lags is None else n_lags
    check_number("n_lags", lags, at_least=0, integer=True)
    if lags < 1 or lags > batch.shape[1]:
        raise ValueError(f"{lags} lags asked of a history of {batch.shape[1]} values.")
    if not np.isfinite(batch).all():
        series, position = np.argwhere(~np.isfinite(batch))[0].tolist()
        raise ValueError(f"The history of series {series} is not finite at position {position}.")

    smallest, largest = batch.min(axis=1), batch.max(axis=1)
    span = largest - smallest
    lower, upper = smallest - reach * span, largest + reach * span

    numbers = count(1)

    def checked_step(windows: Array) -> Array:
        k, step = next(numbers), np.asarray(predict_one_step(windows), dtype=np.float64)
        if step.shape != lower.shape:
            raise ValueError(
                f"predict_one_step returned shape {step.shape} for {len(batch)} windows; "
                f"expected {lower.shape}."
            )
        if np.isnan(step).any():
            series = int(np.argmax(np.isnan(step)))
            raise ValueError(f"predict_one_step returned nan for series {series} at step {k}.")
        return step

    forecast = roll(checked_step, batch[:, -lags:], h, lower, upper)
    return forecast[0] if known.ndim == 1 else forecast


def roll(
    predict_one_step: Callable[[Array], Array],
    windows: Array,
    h: int,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
) -> Array:
    """Feed forecasts of one step back, h times: windows (B, n_lags) give forecasts (B, h).

    Forecasts stay between the bounds of their series, both of shape (B,).
    """
    lags = windows.shape[1]
    path = np.concatenate([windows, np.empty((len(windows), h))], axis=1)
    for k in range(h):
        path[:, lags + k] = np.clip(predict_one_step(path[:, k : k + lags]), lower, upper)
    return path[:, lags:]
