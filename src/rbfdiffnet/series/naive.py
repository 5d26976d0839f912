"""Seasonal naive forecasts, and their errors: the last season, or the last value, is repeated."""

from __future__ import annotations

import numpy as np

from rbfdiffnet.series.gaps import carry_forward
from rbfdiffnet.support.arrays import Array, Ints


def naive_forecast(
    y: Array, origins: Ints, h: int, season_length: int, *, n_seasons: int = 2
) -> Array:
    r"""Repeat the last season of known values before each origin; shape (B, h) for B origins.

    .. math:: \hat y_{t+k} = y_{t + k - m \lceil k / m \rceil}

    where m is the season's length, or 1 for origins before ``n_seasons`` seasons are over. A
    missing value is replaced by the latest known one of its phase, or of any phase. Before the
    first known value the forecast is 0.
    """
    latest = carry_forward(y, 1)
    by_phase = carry_forward(y, season_length)
    seasonal = (season_length > 1) & (origins >= n_seasons * season_length)
    # A 0 at the end, position -1, stands for times before the first value.
    steps = origins[:, None] + season_ago(h, season_length)
    phase_value = np.append(by_phase, 0.0)[np.maximum(steps, -1)]
    last_value = np.append(latest, 0.0)[origins - 1][:, None]
    value = np.where(seasonal[:, None] & np.isfinite(phase_value), phase_value, last_value)
    return np.nan_to_num(value, nan=0.0)


def naive_errors(y: Array, origins: Ints, h: int, season_length: int) -> Array:
    """Return errors of `naive_forecast` from each origin, (B, h): value minus forecast, or NaN."""
    if not origins.size:
        return np.empty((0, h))
    return values_after(y, origins, h) - naive_forecast(y, origins, h, season_length)


def values_after(values: Array, origins: Ints, h: int) -> Array:
    """Return the values of h steps from each origin on, shape (B, h, ...); NaN beyond the last."""
    unknown = np.full((h, *values.shape[1:]), np.nan)
    return np.asarray(np.concatenate([values, unknown])[origins[:, None] + np.arange(h)])


def repeat_last_season(values: Array, h: int, season_length: int) -> Array:
    """Repeat the last season of series (n, T) without gaps; NaN where a series has no such value.

    The series end in the last column, and there is NaN before they start.
    """
    return np.asarray(values[:, values.shape[1] + season_ago(h, season_length)])


def season_ago(h: int, season_length: int) -> Ints:
    """Return where the values to repeat lie relative to the origin: -m, ..., -1, -m, ..."""
    return np.arange(h) % season_length - season_length
