"""Series without any value yet, and the series that are most like them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress

import numpy as np

from rbfdiffnet.panel.exogenous import latest_values
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.series.gaps import fill_missing
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

    def only(self, chosen: Sequence[int]) -> Newcomers:
        """Return those among chosen series."""
        return replace(self, series=self.series[np.isin(self.series, chosen)])

    def align(
        self, values: Array, centers: Array, pasts: Sequence[Array], season: int
    ) -> tuple[Array, Mask]:
        """Return the peers' rows (m, h, ...) of values (n, h, ...) by date, and which count (m, h).

        The peers that have a forecast for a date count, and all of them where none has. Beyond its
        forecasts the last season of a peer goes on. Before them its past values (T,) count, and its
        quantiles are as far from these as they are from the nearest of its forecasts, `centers`
        (n, h).
        """
        h = values.shape[1]
        steps = np.arange(h) - np.where(self.comparable, self.later, 0)[:, None]
        ahead = (steps >= 0) & (steps < h)
        counts = self.comparable[:, None] & ahead
        some = self.comparable | ~self.comparable.any()
        counts |= some[:, None] & ~counts.any(axis=0)
        found = values[self.peers[:, None], np.clip(steps, 0, h - 1)]
        for k in np.flatnonzero((counts & ~ahead).any(axis=1)).tolist():
            i, past = self.peers[k], fill_missing(pasts[k], season)
            first, period = -past.size, season if past.size + h >= season else 1
            at = np.where(steps[k] < h, steps[k], h - period + (steps[k] - h) % period)
            at = np.where(at >= first, at, first + (at - first) % period)
            near = np.maximum(at, 0)
            away = np.where(at < 0, past[np.minimum(at, -1)] - centers[i, near], 0.0)
            floor = 0.0 if min(past.min(), values[i].min()) >= 0.0 else -np.inf
            own = values[i, near]
            found[k] = np.maximum(own + away.reshape(-1, *(1,) * (own.ndim - 1)), floor)
        return found, counts

    def describe(self) -> str:
        """Say which series the peers are, and what is done where their dates are others."""
        names, later = ", ".join(self.alike), self.later[self.comparable]
        text = f"series of the same {names}" if names else "other series"
        if later.size and later.max() < 0:
            text += f" (ended {-later.max()} steps before; their last season goes on)"
        elif later.size and later.min() > 0:
            text += f" (end {later.min()} steps later; until then their past values count)"
        return f"{self.peers.size} {text}"


def has_values(panel: Panel) -> Mask:
    """Tell which series of a panel have any value, (n,)."""
    known, begun = np.zeros(panel.n_series, dtype=bool), panel.lengths > 0
    known[begun] = np.logical_or.reduceat(np.isfinite(panel.y), panel.offsets[:-1][begun])
    return known


def find_newcomers(
    panel: Panel, columns: Sequence[str], levels: Sequence[Sequence[str]] = ()
) -> tuple[Newcomers, ...]:
    """Find the series of a panel without values, and the series with values that are their peers.

    These share the most values of columns that never change and the most groups of levels, which
    are lists of labels; where nothing is shared, they are all series that are no sums of others. Of
    many, up to 100 from the whole range of names count, of those that end on the same date if these
    are as many.
    """
    known = has_values(panel)
    new = np.flatnonzero((panel.lengths > 0) & ~known)
    labels = [[panel.labels[name] for name in level] for level in levels]
    for own in chain.from_iterable(labels):
        known = known & (own != None)  # noqa: E711  of arrays
    others = np.flatnonzero(known)
    if not new.size or not others.size:
        return ()
    others = np.array(sorted(others.tolist(), key=panel.names.__getitem__))
    codes = [_number(column) for column in latest_values(panel, columns).values()]
    codes += [_number_groups(level) for level in labels]
    kinds = [*((name,) for name in columns), *levels]
    table = np.array(codes, dtype=np.int64).reshape(len(codes), panel.n_series).T
    ends = panel.grid.times(new, panel.lengths[new])
    # What no other series has, such as a number of its own, sets nobody apart.
    told = [np.where(np.isin(column[new], column[others]), column[new], -1) for column in table.T]
    keys = np.column_stack([ends, *told])
    found = []
    for key in np.unique(keys, axis=0):
        series = new[(keys == key).all(axis=1)]
        shared = (table[others] == key[1:]) & (key[1:] >= 0)
        count = shared.sum(axis=1)
        best = count == count.max()
        same = shared[best].all(axis=0)
        found.append(_choose_peers(panel, series, others[best], int(key[0]), compress(kinds, same)))
    return tuple(found)


def _choose_peers(
    panel: Panel, series: Ints, peers: Ints, end: int, alike: Iterable[Sequence[str]]
) -> Newcomers:
    """Return newcomers whose first step ahead is at a time `end`, with at most 100 peers.

    All of them are `alike` in these columns.
    """
    steps, comparable = panel.grid.locate(np.full(peers.size, end), peers)
    later = panel.lengths[peers] - steps
    together = comparable & (later == 0)
    some = np.flatnonzero(together if together.sum() >= _MOST_PEERS else np.ones_like(together))
    if some.size > _MOST_PEERS:
        some = some[np.linspace(0, some.size - 1, _MOST_PEERS).astype(np.int64)]
    names = tuple(dict.fromkeys(chain.from_iterable(alike)))
    return Newcomers(series, peers[some], later[some], comparable[some], names)


def _number(values: Array) -> Ints:
    """Number the values of a column; those that are missing get -1."""
    import pandas as pd

    return pd.factorize(values)[0].astype(np.int64)


def _number_groups(level: Sequence[Array]) -> Ints:
    """Number the groups of a level, whose labels have one array for each column; sums get -1."""
    names = np.empty(level[0].size, dtype=object)
    names[:] = [None if None in own else own for own in zip(*level, strict=True)]
    return _number(names)
