r"""Scaled errors of forecasts, one for each series.

.. math::

    \mathrm{MASE} = \frac{\frac1h \sum_{t=T+1}^{T+h} |y_t - \hat y_t|}
    {\frac{1}{T-m} \sum_{t=m+1}^{T} |y_t - y_{t-m}|}, \qquad
    \mathrm{RMSSE} = \sqrt{\frac{\frac1h \sum_{t=T+1}^{T+h} (y_t - \hat y_t)^2}
    {\frac{1}{T-f} \sum_{t=f+1}^{T} (y_t - y_{t-1})^2}}

where :math:`m` is the season's length and :math:`f` the time of the first value that is not zero.
Series whose denominator is zero, or has no terms, are left out whatever their forecast, so that all
methods are judged on the same ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

Scale = Callable[[np.ndarray], float]


def naive_scale(past: np.ndarray, lag: int) -> float:
    """The denominator of MASE; 0 for series of no more than ``lag`` values."""
    return float(np.abs(past[lag:] - past[:-lag]).mean()) if len(past) > lag else 0.0


def step_scale(past: np.ndarray) -> float:
    """The denominator of RMSSE; 0 where nothing was ever sold."""
    steps = np.diff(past[np.argmax(past != 0.0) :])
    return float((steps**2).mean()) if steps.size else 0.0


def scaled_errors(train: pd.DataFrame, joined: pd.DataFrame, scale: Scale, power: int) -> pd.Series:
    """MASE (power 1) or RMSSE (power 2) of every series with a scale.

    ``joined`` has the columns ``unique_id, y, forecast``.
    """
    scales = train.groupby("unique_id")["y"].agg(lambda y: scale(y.to_numpy(dtype=float)))
    errors = (joined["y"] - joined["forecast"]).abs() ** power
    means = errors.groupby(joined["unique_id"]).mean()
    scales = scales[scales > 0.0]
    return (means[scales.index] / scales) ** (1.0 / power)
