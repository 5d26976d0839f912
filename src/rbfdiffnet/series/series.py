"""One series on its grid, and whether a network can learn from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, overload

import numpy as np

from rbfdiffnet.support.arrays import Array, Ints, Mask

#: How many known values a network needs that is fitted to a series.
FEWEST_VALUES = 8
_BEGINNING = 32  # steps by which series are sorted
_MANY_ZEROS = 0.3  # share of zeros in a series that is often zero

#: Why a series without any value has no model.
NO_VALUES = "no values"

#: Errors of computations that may strike one series alone.
NUMERICAL = (np.linalg.LinAlgError, FloatingPointError, OverflowError)


class UnfitError(ValueError):
    """A series no network can be fitted to; the message says why."""


@dataclass(frozen=True)
class Series:
    """One series on its grid."""

    y: Array  # (T,), NaN where missing
    known_ahead: Array  # (T, q), inputs known in advance
    extra: Array  # (T, p), inputs known when they happen, NaN where missing, and static ones

    def until(self, n: int) -> Series:
        """Return the first n steps."""
        if n == self.y.size:
            return self
        return Series(self.y[:n], self.known_ahead[:n], self.extra[:n])

    def after(self, n: int) -> Series:
        """Return all but the first n steps."""
        return Series(self.y[n:], self.known_ahead[n:], self.extra[n:])

    @property
    def n_seen(self) -> int:
        """Number of steps up to the last known value."""
        if self.y.size and np.isfinite(self.y[-1]):
            return self.y.size
        known = np.flatnonzero(np.isfinite(self.y))
        return int(known[-1]) + 1 if known.size else 0

    @property
    def fingerprint(self) -> bytes:
        """Digest of the content, by which series can be sorted whatever their order in a panel."""
        parts = (self.y, self.known_ahead, self.extra)
        return sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).digest()


@dataclass(frozen=True)
class SeriesPanel(Sequence[Series]):
    """Many series in flat arrays: the one container below the frames. Each series is a view.

    Series i takes the rows starts[i] to ends[i] of `y` (steps,), of `known_ahead` (steps, q) and
    of `extra` (steps, p).
    """

    y: Array
    known_ahead: Array
    extra: Array
    starts: Ints
    ends: Ints
    names: tuple[str, ...]

    def __len__(self) -> int:
        return self.starts.size

    @overload
    def __getitem__(self, i: int) -> Series: ...
    @overload
    def __getitem__(self, i: slice) -> SeriesPanel: ...
    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return self.select(range(len(self))[i])
        a, b = self.starts[i], self.ends[i]
        return Series(self.y[a:b], self.known_ahead[a:b], self.extra[a:b])

    def select(self, chosen: Sequence[int] | Ints) -> SeriesPanel:
        """Return some of the series."""
        at = np.asarray(chosen, dtype=np.int64)
        names = tuple(self.names[i] for i in at.tolist())
        return replace(self, starts=self.starts[at], ends=self.ends[at], names=names)

    def until(self, origins: Ints) -> SeriesPanel:
        """Return the first steps of each series, as many as its origin says."""
        return replace(self, ends=np.minimum(self.starts + origins, self.ends))

    @classmethod
    def of(cls, panel: Sequence[Series], names: Sequence[str] | None = None) -> SeriesPanel:
        """Put single series into flat arrays; without names they are numbered."""
        if isinstance(panel, SeriesPanel):
            return panel
        ends = np.cumsum([series.y.size for series in panel], dtype=np.int64)
        first = panel[0] if len(panel) else Series(np.empty(0), np.empty((0, 0)), np.empty((0, 0)))
        return cls(
            np.concatenate([series.y for series in panel] or [first.y]),
            np.concatenate([series.known_ahead for series in panel] or [first.known_ahead]),
            np.concatenate([series.extra for series in panel] or [first.extra]),
            np.append(0, ends[:-1]) if ends.size else ends,
            ends,
            tuple(map(str, range(len(panel)))) if names is None else tuple(names),
        )


def check_fit(series: Series, fewest: int = FEWEST_VALUES) -> None:
    """Raise UnfitError if a network has nothing to learn from a series."""
    known = series.y[np.isfinite(series.y)]
    if not known.size:
        raise UnfitError(NO_VALUES)
    if known.size == 1:
        raise UnfitError("one value only")
    if known.min() == known.max():
        raise UnfitError("all values are zero" if known[0] == 0.0 else "all values are the same")
    if known.size < fewest:
        raise UnfitError(f"too short (known values: {known.size}, needed: {fewest})")


def find_usable(
    panel: Sequence[Series], fewest: int = FEWEST_VALUES, *, sort: bool = True
) -> tuple[list[int], dict[int, str]]:
    """Return the positions of series to learn from, and why the others have nothing to learn from.

    Unless nothing is learned, they are sorted by their beginnings, so that the order is the same
    wherever they end, and then by their fingerprints: what is learned must not depend on the
    panel's order.
    """
    usable, reasons = [], {}
    for i, series in enumerate(panel):
        try:
            check_fit(series, fewest)
            usable.append(i)
        except UnfitError as error:
            reasons[i] = str(error)

    def key(i: int) -> tuple[bytes, bytes]:
        return panel[i].y[:_BEGINNING].tobytes(), panel[i].fingerprint

    return sorted(usable, key=key) if sort else usable, reasons


def find_counts(series: Sequence[Array]) -> Mask:
    """Tell which series (n,) have known values, all of them whole and not negative."""
    sizes = np.array([y.size for y in series], dtype=np.int64)
    found, some = np.zeros(sizes.size, dtype=bool), sizes > 0
    if some.any():
        values, starts = _join(series, sizes)
        unknown = np.isnan(values)
        whole = unknown | ((values >= 0.0) & (values == np.rint(values)))
        any_known = np.logical_or.reduceat(~unknown, starts)
        found[some] = np.logical_and.reduceat(whole, starts) & any_known
    return found


def find_sparse(series: Sequence[Array]) -> Mask:
    """Which series are often zero once they have begun, shape (n,)."""
    sizes = np.array([y.size for y in series], dtype=np.int64)
    found, n_zeros = np.zeros(sizes.size, dtype=bool), np.zeros_like(sizes)
    if sizes.any():
        values, starts = _join(series, sizes)
        n_zeros[sizes > 0] = np.add.reduceat(values == 0.0, starts, dtype=np.int64)
    for i in np.flatnonzero((n_zeros > _MANY_ZEROS * sizes) & (n_zeros < sizes)).tolist():
        begin = int(np.argmin(series[i] == 0.0))
        found[i] = n_zeros[i] - begin > _MANY_ZEROS * (sizes[i] - begin)
    return found


def _join(series: Sequence[Array], sizes: Ints) -> tuple[Array, Ints]:
    """Return the values of series one after the other, and where those that have any begin."""
    sizes = sizes[sizes > 0]
    return np.concatenate([y for y in series if y.size]), np.cumsum(sizes) - sizes
