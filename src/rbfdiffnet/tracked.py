"""Networks over windows of noisy series, where trajectory learning earns its place.

A trajectory that the evidence favors is still tried out: learned without the last part of the
series, it must forecast that part better than the ordinary network does, which had the same data.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rbfdiffnet.noise import learn_trajectory
from rbfdiffnet.parameters import Noise
from rbfdiffnet.window_model import WindowModel

__all__ = ["fit_tracked"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

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
) -> WindowModel | None:
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

    Returns
    -------
    WindowModel or None
        None where noise is not the problem.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.datasets import mackey_glass
    >>> from rbfdiffnet.tracked import fit_tracked
    >>> noisy = mackey_glass(400, step=6.0) + 0.05 * np.random.default_rng(0).normal(size=400)
    >>> windows = fit_tracked(noisy, np.isfinite(noisy), 4, 0.05, lambda n: None)
    >>> windows.tracker.noise
    0.05
    """
    observed = np.where(known, z, np.nan)
    if noise != "auto":
        return _learned(observed, n_lags, noise)
    held = min(int(_HELD * z.size), _MOST_HELD)
    early = _learned(observed[: z.size - held], n_lags, None)
    if early is None:
        return None
    ordinary = plain(z.size - held)
    h = min(_HORIZON, held)
    origins = np.unique(np.linspace(z.size - held, z.size - h, _ORIGINS).astype(np.int64))
    if ordinary is not None:
        errors = [_error(windows, z, known, origins, h) for windows in (early, ordinary)]
        if not errors[0] < _BETTER * errors[1]:
            return None
    return _learned(observed, n_lags, None)


def _learned(observed: Array, n_lags: int, noise: float | None) -> WindowModel | None:
    """Return the network over clean windows, None where there is no noise to treat."""
    try:
        found = learn_trajectory(observed, n_lags, noise)
    except (ValueError, np.linalg.LinAlgError):
        return None
    if not found.on:
        return None
    lags = tuple(range(1, n_lags + 1))
    return WindowModel(found.network, lags, "none", 1, 1.0, np.inf, found.tracker(observed))


def _error(
    windows: WindowModel, z: Array, known: Mask, origins: npt.NDArray[np.int64], h: int
) -> float:
    """Mean absolute error over roll-outs."""
    at = np.maximum(origins[:, None] - np.arange(windows.reach, 0, -1), 0)
    histories = z[at] if windows.tracker is None else np.where(known, z, np.nan)[at]
    path, _ = windows.forecast(histories, h, np.zeros((len(origins), 0)))
    ahead = origins[:, None] + np.arange(h)
    return float(np.abs(path - z[ahead])[known[ahead]].mean()) if known[ahead].any() else np.inf
