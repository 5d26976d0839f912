r"""Noise in a finely sampled series, taken out by the few shapes that its windows are made of.

The windows of a series that is sampled finely lie close to a space of few dimensions, and noise
spreads evenly over all of them. So windows of a quarter of a period are projected on those of their
principal directions whose singular values stand out of the noise (Gavish and Donoho, 2014: above
:math:`\omega(\beta)` times the median, for matrices of shape ratio :math:`\beta`), and every value
is the mean over the windows that it is in. The level of the noise comes from the median itself,
or is known: then n windows have singular values above :math:`\lambda(\beta) \sqrt{n}` times it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rbfdiffnet.series.gaps import fill_missing
from rbfdiffnet.series.windows import cut_windows
from rbfdiffnet.support.arrays import Array, Mask

_NARROWEST, _WIDEST = 20, 100  # windows
_BRIDGED = 4  # quarters of a period, of gaps that are not long
#: Values of such gaps at most.
MOST_BRIDGED = 40
_FILLINGS = 10
_RATIO = (0.56, -0.95, 1.82, 1.43)  # polynomial of beta


def quarter_period(s: Array) -> int:
    """Return the first lag at which the autocorrelation of a series (T,) is not positive.

    For oscillations it is a quarter of the period. White noise does not change it. Of several
    sensors (T, k) it is that of the fastest. Values may be missing (NaN): lines across gaps would
    look like a slow series, but the mean adds nothing to the products.
    """
    z, size = s.reshape(len(s), -1).T, len(s)
    z = z - np.nanmean(z, axis=1, keepdims=True)
    z = np.where(np.isfinite(z), z, 0.0)
    power = np.abs(np.fft.rfft(z, 2 * size)) ** 2
    below = np.fft.irfft(power)[:, : size // 2 + 1] <= 0.0
    return int(np.where(below.any(axis=1), below.argmax(axis=1), size // 2).min())


def in_long_gaps(known: Mask, quarter: int) -> Mask:
    """Tell which values (T,) lie in gaps so long that nothing is known of what happened there.

    They end one piece of a series and begin the next.
    """
    at = np.concatenate([[-1], np.flatnonzero(known), [known.size]])
    long = np.zeros(known.size, dtype=bool)
    for k in np.flatnonzero(np.diff(at) > min(_BRIDGED * quarter, MOST_BRIDGED) + 1):
        long[at[k] + 1 : at[k + 1]] = True
    return long


@dataclass(frozen=True)
class SmoothShapes:
    """The space that clean windows lie in: ``shapes`` (m, r), around ``level``.

    ``noise`` is the standard deviation of the noise, and ``left_out`` how far observations are
    from what the others alone say of them (root mean square).
    """

    shapes: Array
    level: float
    noise: float
    left_out: float = np.inf

    def clean(self, s: Array) -> Array:
        """Return a series (T,), NaN where missing, without noise and gaps.

        Gaps are filled again and again by what the shapes make of them.
        """
        known = np.isfinite(s)
        filled = fill_missing(s)
        for _ in range(1 if known.all() else _FILLINGS):
            clean = self._project(filled)
            filled = np.where(known, s, clean)
        return clean

    def clean_each(self, parts: Sequence[Array]) -> list[Array]:
        """Clean several series, each by itself."""
        return [self.clean(s) for s in parts]

    def _project(self, s: Array) -> Array:
        """Project all windows on the shapes, and return the means of each value over them."""
        size = len(self.shapes)
        if s.size < size:
            return s
        windows = cut_windows(s - self.level, size)
        smooth = (windows @ self.shapes) @ self.shapes.T
        total = np.zeros(s.size)
        for k in range(size):
            total[k : k + len(windows)] += smooth[:, k]
        at = np.arange(s.size)
        inside = np.minimum(np.minimum(at, at[::-1]) + 1, min(size, len(windows)))
        return np.asarray(total / inside + self.level)


def find_shapes(
    s: Array, known: Mask, quarter: int, noise: float | None = None
) -> SmoothShapes | None:
    """Find the shapes of a series (T,), or None where it is not sampled finely enough for them.

    The standard deviation of the noise may be known.
    """
    size = min(quarter, _WIDEST)
    if size < _NARROWEST or s.size < 4 * size:
        return None
    windows = cut_windows(s, size)[cut_windows(known, size).all(axis=1)]
    if len(windows) < 2 * size:
        return None
    level = float(s[known].mean())
    windows = windows - level
    values, vectors = np.linalg.eigh(windows.T @ windows)
    values = np.sqrt(np.maximum(values, 0.0))
    ratio = size / len(windows)
    middle = float(np.median(values))
    limit = middle * float(np.polyval(_RATIO, ratio))
    if noise is None:
        noise = middle / float(np.sqrt(len(windows)))
    else:
        under = ratio + 1.0 + np.sqrt(ratio**2 + 14.0 * ratio + 1.0)
        limit = noise * float(np.sqrt(len(windows) * (2.0 * (ratio + 1.0) + 8.0 * ratio / under)))
    kept = values > limit
    kept[-1] = True
    found = SmoothShapes(vectors[:, kept], level, noise)
    rest = (s - found.clean(np.where(known, s, np.nan)))[known]
    own = np.count_nonzero(kept) / size  # share of an observation in its clean value
    left_out = float(np.sqrt(np.mean(rest**2))) / max(1.0 - own, 1e-3)
    return replace(found, left_out=left_out)
