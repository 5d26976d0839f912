"""Networks over windows of noisy series, where trajectory learning earns its place.

A trajectory that the evidence favors is still tried out: learned without the last part of the
series, it must forecast that part better than the ordinary network does, which had the same data.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rbfdiffnet.models.window_model import WindowModel
from rbfdiffnet.network.parameters import Noise
from rbfdiffnet.noise import learn_trajectory
from rbfdiffnet.noise.filtering import StateFilter
from rbfdiffnet.noise.maps import shape_of

__all__ = ["fit_tracked"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

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
    like: StateFilter | None = None,
) -> WindowModel | str:
    """Learn the trajectory of a series and return the network over its clean windows.

    Parameters
    ----------
    z : ndarray of shape (T,)
    known : ndarray of bool of shape (T,)
        Which values are observations.
    n_lags : int
    noise : "auto" or float
        A standard deviation is taken as it is, and nothing tried out.
    plain : callable
        Returns the ordinary network, trained on the first so many values; None if it cannot be.
    like : StateFilter, optional
        What was learned from more of the same series: how smooth the map is, and the slack.

    Returns
    -------
    WindowModel or str
        Where noise is not the problem, the reason.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.datasets import mackey_glass
    >>> from rbfdiffnet.models.tracked import fit_tracked
    >>> noisy = mackey_glass(400, step=6.0) + 0.05 * np.random.default_rng(0).normal(size=400)
    >>> windows = fit_tracked(noisy, np.isfinite(noisy), 4, 0.05, lambda n: None)
    >>> windows.tracker.noise
    0.05
    """
    observed = np.where(known, z, np.nan)
    if noise != "auto":
        return _learned(observed, n_lags, noise, like)
    held = min(int(_HELD * z.size), _MOST_HELD)
    early = _learned(observed[: z.size - held], n_lags, None)
    if isinstance(early, str):
        return early
    ordinary = plain(z.size - held)
    h = min(_HORIZON, held)
    origins = np.unique(np.linspace(z.size - held, z.size - h, _ORIGINS).astype(np.int64))
    if ordinary is not None:
        paths = _tracked_paths(early, observed, origins, h), _paths(ordinary, z, origins, h)
        ahead = origins[:, None] + np.arange(h)
        errors = [np.abs(path - z[ahead])[known[ahead]].sum() for path in paths]
        if not errors[0] < _BETTER * errors[1]:
            return "the last values are forecast as well without it"
    return _learned(observed, n_lags, None, early.tracker)


def _learned(
    observed: Array, n_lags: int, noise: float | None, like: StateFilter | None = None
) -> WindowModel | str:
    """Return the network over clean windows, or why there is no noise to treat."""
    try:
        shape = None if like is None else shape_of(like.network)
        found = learn_trajectory(observed, n_lags, noise, shape)
    except (ValueError, np.linalg.LinAlgError) as error:
        return str(error)
    if not found.on:
        return found.reason
    lags = tuple(range(1, n_lags + 1))
    return WindowModel(found.network, lags, "none", 1, 1.0, np.inf, found.tracker(observed, like))


def _paths(windows: WindowModel, z: Array, origins: Ints, h: int) -> Array:
    """Forecasts of the ordinary network from every origin."""
    at = np.maximum(origins[:, None] - np.arange(windows.reach, 0, -1), 0)
    return windows.forecast(z[at], h, np.zeros((len(origins), 0)))[0]


def _tracked_paths(windows: WindowModel, observed: Array, origins: Ints, h: int) -> Array:
    """Forecasts from clean states, by going through the series once."""
    n_lags = len(windows.lags)
    first = max(int(origins[0]) - windows.reach, 0)
    at = np.arange(first + n_lags, int(origins[-1]) + 1)
    histories = observed[at[:, None] - np.arange(n_lags, 0, -1)]
    return windows.rolled(histories, h, after=np.isin(at, origins))[0]
