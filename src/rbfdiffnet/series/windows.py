"""Cut a series into windows, the rows that a regressor can learn from."""

from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.checks import as_floats, check_number

__all__ = ["lag_windows"]


def lag_windows(series: npt.ArrayLike, n_lags: int) -> tuple[Array, Array]:
    r"""Pair every value of a series with the values just before it: paper, eq. (rows).

    .. math:: X_t = (s_t, s_{t+1}, \ldots, s_{t+l-1}), \qquad y_t = s_{t+l}

    where :math:`l` is the number of lags: the oldest lag comes first, the newest last.

    Parameters
    ----------
    series : array-like of shape (T,)
        Equally spaced, finite values.
    n_lags : int
        Number of lags :math:`l`, at least 1.

    Returns
    -------
    X : ndarray of shape (T - n_lags, n_lags)
        The windows, a copy that is safe to write to.
    y : ndarray of shape (T - n_lags,)
        The value that follows each window.

    Raises
    ------
    ValueError
        If the series is not one-dimensional, has fewer than ``n_lags + 1`` values, or holds a
        value that is not finite.

    Examples
    --------
    >>> from rbfdiffnet.series.windows import lag_windows
    >>> X, y = lag_windows([1, 2, 3, 4, 5], n_lags=2)
    >>> X.tolist()
    [[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]]
    >>> y.tolist()
    [3.0, 4.0, 5.0]
    """
    values = as_floats("The series", series)
    if values.ndim != 1:
        raise ValueError(f"The series must be one-dimensional, got shape {values.shape}.")
    check_number("n_lags", n_lags, at_least=1, integer=True)
    if values.size <= n_lags:
        raise ValueError(
            f"The series is too short: it has {values.size} values, and {n_lags} lags need at "
            f"least {n_lags + 1}."
        )
    finite = np.isfinite(values)
    if not finite.all():
        position = int(np.argmin(finite))
        raise ValueError(f"The series is not finite: {values[position]} at position {position}.")
    return cut_windows(values[:-1], n_lags).copy(), values[n_lags:].copy()


def cut_windows(values: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return a view of all windows along the last axis: (..., T) becomes (..., T - size + 1, size).

    This is for NumPy, one row for each window; there must be at least one.
    """
    return np.lib.stride_tricks.sliding_window_view(values, size, axis=-1)


def stack_windows(series: Any, size: int, n_windows: int, xp: Any) -> Any:
    """Copy the first windows of series (B, T) into an array of shape (B, size, n_windows).

    This is for batches on any backend, whose products want the rows of a lag side by side.
    """
    return xp.stack([series[:, i : i + n_windows] for i in range(size)], axis=1)
