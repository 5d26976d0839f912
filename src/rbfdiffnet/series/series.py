"""One series on its grid, and whether a network can learn from it."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_FEWEST_VALUES = 8

#: Errors of computations that may strike one series alone.
NUMERICAL = (np.linalg.LinAlgError, FloatingPointError, OverflowError)


class UnfitError(ValueError):
    """A series no network can be fitted to; the message says why."""


@dataclass(frozen=True)
class Series:
    """One series on its grid."""

    y: Array  # (T,), NaN where missing
    known_ahead: Array  # (T, q), inputs known in advance
    extra: Array  # (T, p), inputs known when they happen, and static ones

    def until(self, n: int) -> Series:
        """Return the first n steps."""
        return Series(self.y[:n], self.known_ahead[:n], self.extra[:n])

    def after(self, n: int) -> Series:
        """Return all but the first n steps."""
        return Series(self.y[n:], self.known_ahead[n:], self.extra[n:])

    @property
    def n_seen(self) -> int:
        """Number of steps up to the last known value."""
        known = np.flatnonzero(np.isfinite(self.y))
        return int(known[-1]) + 1 if known.size else 0

    @property
    def fingerprint(self) -> bytes:
        """Digest of the content, by which series can be sorted whatever their order in a panel."""
        parts = (self.y, self.known_ahead, self.extra)
        return sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).digest()


def check_fit(series: Series) -> None:
    """Raise UnfitError if a network has nothing to learn from a series."""
    known = series.y[np.isfinite(series.y)]
    if not known.size:
        raise UnfitError("no values")
    if np.ptp(known) == 0.0:
        raise UnfitError("all values are zero" if known[0] == 0.0 else "all values are the same")
    if known.size < _FEWEST_VALUES:
        raise UnfitError(f"too short (known values: {known.size}, needed: {_FEWEST_VALUES})")
