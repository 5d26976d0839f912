"""Series without any value yet, and the series that are most like them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rbfdiffnet.panel.exogenous import latest_values
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.support.arrays import Array, Ints, Mask

_MOST_PEERS = 100


@dataclass(frozen=True)
class Newcomers:
    """Series of a panel without any value that end on the same date, and their m peers.

    `series` and `peers` are positions. Peers (m,) end so many steps `later` (negative: before),
    unless their dates are others (not `comparable`). They have the same values of the columns
    `alike`.
    """

    series: Ints
    peers: Ints
    later: Ints
    comparable: Mask
    alike: tuple[str, ...]

    def select(self, chosen: Ints) -> Newcomers:
        """Return the same with positions among ascending chosen series, which has all of them."""
        series, peers = np.searchsorted(chosen, self.series), np.searchsorted(chosen, self.peers)
        return replace(self, series=series, peers=peers)

    def align(self, values: Array) -> tuple[Array, Mask]:
        """Return the peers' rows (m, h, ...) of values (n, h, ...) by date, and which count (m, h).

        Where no peer has a value for a date, all count with the nearest one that they have.
        """
        h = values.shape[1]
        steps = np.arange(h) - np.where(self.comparable, self.later, 0)[:, None]
        counts = self.comparable[:, None] & (steps >= 0) & (steps < h)
        counts |= ~counts.any(axis=0)
        return values[self.peers[:, None], np.clip(steps, 0, h - 1)], counts

    def describe(self) -> str:
        """Say which series the peers are."""
        names = ", ".join(self.alike)
        return f"{self.peers.size} " + (f"series of the same {names}" if names else "other series")


def has_values(panel: Panel) -> Mask:
    """Tell which series of a panel have any value, (n,)."""
    known, begun = np.zeros(panel.n_series, dtype=bool), panel.lengths > 0
    known[begun] = np.logical_or.reduceat(np.isfinite(panel.y), panel.offsets[:-1][begun])
    return known


def find_newcomers(
    panel: Panel, columns: Sequence[str], among: Mask | None = None
) -> tuple[Newcomers, ...]:
    """Find the series of a panel without values, and their peers among some (n,), or all.

    These are the series with values that share the most values of columns that never change, and
    all where none is shared. Of many, up to 100 from the whole range of names count, of those that
    end on the same date if these are as many.
    """
    known = has_values(panel)
    new = np.flatnonzero((panel.lengths > 0) & ~known)
    others = np.flatnonzero(known if among is None else known & among)
    if not new.size or not others.size:
        return ()
    others = np.array(sorted(others.tolist(), key=panel.names.__getitem__))
    codes = [_number(column) for column in latest_values(panel, columns).values()]
    table = np.array(codes, dtype=np.int64).reshape(len(codes), panel.n_series).T
    ends = panel.grid.times(new, panel.lengths[new])
    keys = np.column_stack([ends, table[new]])
    found = []
    for key in np.unique(keys, axis=0):
        series = new[(keys == key).all(axis=1)]
        shared = (table[others] == key[1:]) & (key[1:] >= 0)
        count = shared.sum(axis=1)
        best = count == count.max()
        same = shared[best].all(axis=0)
        found.append(_choose_peers(panel, series, others[best], int(key[0]), same, columns))
    return tuple(found)


def _choose_peers(
    panel: Panel, series: Ints, peers: Ints, end: int, same: Mask, columns: Sequence[str]
) -> Newcomers:
    """Return newcomers whose first step ahead is at a time `end`, with at most 100 peers."""
    steps, comparable = panel.grid.locate(np.full(peers.size, end), peers)
    later = panel.lengths[peers] - steps
    together = comparable & (later == 0)
    some = np.flatnonzero(together if together.sum() >= _MOST_PEERS else np.ones_like(together))
    if some.size > _MOST_PEERS:
        some = some[np.linspace(0, some.size - 1, _MOST_PEERS).astype(np.int64)]
    alike = tuple(name for name, own in zip(columns, same, strict=True) if own)
    return Newcomers(series, peers[some], later[some], comparable[some], alike)


def _number(values: Array) -> Ints:
    """Number the values of a column; those that are missing get -1."""
    import pandas as pd

    return pd.factorize(values)[0].astype(np.int64)
