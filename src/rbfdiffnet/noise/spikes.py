"""Find spikes: noise is taken to be normal, and they are not, so they count as missing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rbfdiffnet.noise.maps import CENTERS, affordable, best_fit, fit_maps
from rbfdiffnet.noise.trajectory import windows_of

__all__ = ["find_spikes"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_DECAYS = (1.0, 0.25)
_WIDTHS = (1.0, 2.0)
_FEWEST_ROWS = 8  # for each lag
_FAR = 8.0  # robust standard deviations of a spike
_SMALLEST = 0.25  # standard deviations of the series
_ROUNDS = 3
_MOST = 0.05  # of the observations


def find_spikes(s: Array, n_lags: int) -> Mask:
    """Find single observations that have nothing to do with the series around them.

    A map is fitted to the observed windows; where it errs by more than eight robust standard
    deviations, and by a quarter of the series' own, the first value to do so is a spike, and the
    errors right after it are its doing.
    Series with many such values have another distribution, not spikes.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.noise.spikes import find_spikes
    >>> s = np.sin(np.arange(300) / 3.0) + 0.05 * np.random.default_rng(0).normal(size=300)
    >>> s[[100, 200]] += 3.0
    >>> np.flatnonzero(find_spikes(s, n_lags=4)).tolist()
    [100, 200]
    """
    known = np.isfinite(s)
    found = np.zeros(s.size, dtype=bool)
    for _ in range(_ROUNDS):
        usable = known & ~found
        whole = windows_of(usable, n_lags + 1).all(axis=1)
        if whole.sum() < _FEWEST_ROWS * (n_lags + 1):
            break
        z = (s - s[usable].mean()) / s[usable].std()
        X, y = windows_of(z, n_lags)[:-1][whole], z[n_lags:][whole]
        fits = fit_maps(X, y, _DECAYS, _WIDTHS, affordable(len(X), CENTERS // 2))
        error = np.abs(y - best_fit(fits.values()).predict(X))
        limit = max(_FAR * float(np.median(error)) / 0.6745, _SMALLEST)
        far = np.flatnonzero(whole)[error > limit] + n_lags
        new = far[np.diff(far, prepend=-n_lags - 1) > n_lags]
        if not new.size:
            break
        found[new] = True
    return found if found.sum() <= _MOST * known.sum() else np.zeros(s.size, dtype=bool)
