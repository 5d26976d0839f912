"""How large the noise can be at most: what is left unexplained of a series has it as a part."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rbfdiffnet.noise.maps import affordable, best_fit, fit_maps
from rbfdiffnet.noise.trajectory import windows_of

__all__ = ["largest_noise", "unexplained"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_NEIGHBORS = ((8, 0), (2, 2), (4, 4))  # values before and after
_DECAYS = (1.0, 0.75, 0.5)
_WIDTHS = (0.5, 1.0, 2.0)
_FEWEST_ROWS = 4  # for each lag


def largest_noise(s: Array, known: Mask) -> float:
    """Return a bound on the variance of the noise: what neighbors leave unexplained.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.noise.bounds import largest_noise
    >>> noise = 0.1 * np.random.default_rng(0).normal(size=500)
    >>> s = np.sin(np.arange(500) / 5.0) + noise
    >>> round(largest_noise(s, np.isfinite(s)) ** 0.5, 2)
    0.11
    """
    bounds = []
    for before, after in _NEIGHBORS:
        width = before + 1 + after
        whole = windows_of(known, width).all(axis=1)
        if whole.sum() < 2 * width:
            continue
        rows = windows_of(s, width)[whole]
        X = np.delete(rows, before, axis=1)
        X = np.concatenate([X, np.ones((len(X), 1))], axis=1)
        y = rows[:, before]
        residual = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
        bounds.append(float(residual @ residual) / (len(y) - width))
    return min(bounds, default=float(np.var(s[known])))


def unexplained(s: Array, known: Mask, n_lags: int) -> float:
    """Return what a map of longer windows leaves unexplained, which the noise is part of."""
    whole = windows_of(known, n_lags + 1).all(axis=1)
    X, y = windows_of(s, n_lags)[:-1][whole], s[n_lags:][whole]
    if len(X) < _FEWEST_ROWS * (n_lags + 1):
        return np.inf
    fits = fit_maps(X, y, _DECAYS, _WIDTHS, affordable(len(X)))
    return best_fit(fits.values()).regression.variance
