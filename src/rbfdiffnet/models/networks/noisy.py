"""Networks over windows of noisy series, where trajectory learning earns its place.

A trajectory that the evidence favors is still tried out: learned without the last part of the
series, it must forecast that part better than the ordinary network with the same data.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rbfdiffnet.models.networks.window_model import WindowModel
from rbfdiffnet.noise import learn_trajectory
from rbfdiffnet.noise.filtering import StateFilter
from rbfdiffnet.noise.maps import shape_of
from rbfdiffnet.support.arrays import Array, Ints, Mask
from rbfdiffnet.support.checks import Noise

_HELD = 0.2  # of the series, on which both are tried
_MOST_HELD = 200
_HORIZON = 10
_ORIGINS = 20
_BETTER = 0.9  # share of the ordinary network's error


def fit_tracked(
    z: Array,
    known: Mask,
    n_lags: int,
    noise: Noise,
    plain: Callable[[int], WindowModel | None],
    template: StateFilter | None = None,
) -> WindowModel | str:
    """Return the network over the clean windows of a series z (T,), or why noise is not treated.

    A standard deviation given as ``noise`` is taken as it is, without a trial. ``plain(n)`` returns
    the ordinary network trained on the first n values, or None if there is none. ``template`` is
    the filter learned from more of the same series: its map's shape and its slack are taken over.
    """
    observed = np.where(known, z, np.nan)
    if noise != "auto":
        return _learn(observed, n_lags, noise, template)
    held = min(int(_HELD * z.size), _MOST_HELD)
    early = _learn(observed[: z.size - held], n_lags, None)
    if isinstance(early, str):
        return early
    ordinary = plain(z.size - held)
    h = min(_HORIZON, held)
    origins = np.unique(np.linspace(z.size - held, z.size - h, _ORIGINS).astype(np.int64))
    if ordinary is not None:
        paths = (
            _forecast_tracked(early, observed, origins, h),
            _forecast_ordinary(ordinary, z, origins, h),
        )
        ahead = origins[:, None] + np.arange(h)
        errors = [np.abs(path - z[ahead])[known[ahead]].sum() for path in paths]
        if not errors[0] < _BETTER * errors[1]:
            return "the last values are forecast as well without it"
    return _learn(observed, n_lags, None, early.tracker)


def _learn(
    observed: Array, n_lags: int, noise: float | None, template: StateFilter | None = None
) -> WindowModel | str:
    """Return the network over clean windows, or why there is no noise to treat."""
    try:
        shape = None if template is None else shape_of(template.network)
        found = learn_trajectory(observed, n_lags, noise, shape)
    except (ValueError, np.linalg.LinAlgError) as error:
        return str(error)
    if not found.on:
        return found.reason
    lags = tuple(range(1, n_lags + 1))
    tracker = found.tracker(observed, template)
    return WindowModel(found.network, lags, "none", 1, 1.0, np.inf, tracker)


def _forecast_ordinary(windows: WindowModel, z: Array, origins: Ints, h: int) -> Array:
    """Forecast with the ordinary network from every origin, shape (origins, h)."""
    at = np.maximum(origins[:, None] - np.arange(windows.reach, 0, -1), 0)
    return windows.forecast(z[at], h, np.zeros((len(origins), 0)))[0]


def _forecast_tracked(windows: WindowModel, observed: Array, origins: Ints, h: int) -> Array:
    """Forecast from clean states, going through the series once, shape (origins, h)."""
    n_lags = len(windows.lags)
    first = max(int(origins[0]) - windows.reach, 0)
    at = np.arange(first + n_lags, int(origins[-1]) + 1)
    histories = observed[at[:, None] - np.arange(n_lags, 0, -1)]
    return windows.roll_noisy(histories, h, after=np.isin(at, origins))[0]
