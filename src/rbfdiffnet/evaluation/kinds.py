r"""Whether intervals held much less than they promise, for series that are often zero and others.

Let :math:`x_i` be the share of values inside the intervals of level :math:`\gamma` in window i of
a series. Values of one window go together, so a window counts as one observation, whatever it is
made of: if intervals hold what they promise, the mean of :math:`x_i \in [0, 1]` is
:math:`\gamma`, and the sum k of n independent ones is unlikely to be small,

.. math:: P\Big(\sum_i x_i \le k\Big) \le e \; P(B \le \lceil k \rceil), \qquad
    B \sim \mathrm{Binomial}(n, \gamma)

(Bentkus, 2004: the sum of variables between 0 and 1 has hardly heavier tails than a binomial one).
Errors of different series at the same time may go together, too. The mean product r of their signs
says how much: of normal errors the correlation is :math:`\rho = \sin(\pi r / 2)`, and that of
events as symmetric as "inside" at most :math:`\rho^2`. So windows of m series count as

.. math:: n = \frac{\text{number of windows}}{1 + (m - 1) \, \rho^2}

An alarm needs a probability below 1 %, divided by the number of levels and kinds, and a gap of
more than five points. Windows that overlap count as many times as they would fit side by side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr

from rbfdiffnet.evaluation.backtest_frames import BacktestRows, ModelColumns
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.series.series import find_sparse
from rbfdiffnet.support.arrays import Array, Ints, Mask
from rbfdiffnet.support.text import format_percent

#: Smaller differences of shares inside intervals are not called differences.
CLOSE = 0.05
_ALARM = 0.01  # probability of any alarm where intervals hold what they promise


@dataclass(frozen=True)
class Holding:
    """What the intervals of a model held, series by series.

    `sparse` (n,) tells which series are often zero. `windows` (n,) counts windows that do not
    overlap, and `held`, by level, is the sum (n,) of the shares inside them. `together` (2, 2) has
    a row for series that are not often zero and one for those that are: the sum of products of
    signs of errors of two series at the same time, and how many products there were.
    """

    sparse: Mask
    windows: Array
    held: Mapping[str, Array]
    together: Array

    @classmethod
    def count(
        cls,
        panel: Panel,
        rows: BacktestRows,
        columns: Mapping[str, Array],
        target: str,
        model: ModelColumns,
    ) -> Holding:
        """Count by columns of shape (n_rows,): values, forecasts and ends of intervals."""
        ends = [columns[end] for level in model.levels for end in model.ends(level)]
        table = np.stack([columns[target], columns[model.name], *ends])
        use = rows.on_grid & (rows.series >= 0) & np.isfinite(table).all(axis=0)
        series, seen, ahead = rows.series[use], rows.seen[use], rows.ahead[use]
        y, forecast, *bounds = table[:, use]
        n, step = panel.n_series, seen + ahead
        longest = int(step.max(initial=0)) + 1
        window, which, sizes = np.unique(
            series * longest + seen, return_inverse=True, return_counts=True
        )
        owner = window // longest
        given = np.bincount(owner, minlength=n)
        distinct = np.bincount(np.unique(series * longest + step) // longest, minlength=n)
        windows = np.minimum(given, np.ceil(distinct / ahead.max(initial=1)))
        held = {}
        for level, low, high in zip(model.levels, bounds[::2], bounds[1::2], strict=True):
            inside = (low <= y) & (y <= high)
            shares = np.bincount(which, inside, window.size) / sizes
            mean = np.bincount(owner, shares, n) / np.maximum(given, 1)
            held[level] = windows * mean
        sparse = find_sparse(np.split(panel.y, panel.offsets[1:-1]))
        signs = np.sign(y - forecast)
        times = [panel.grid.times(series, at) for at in (step, seen)]
        together = [
            _compare_signs(signs[kind], *(own[kind] for own in times))
            for kind in (~sparse[series], sparse[series])
        ]
        return cls(sparse, windows, held, np.array(together))

    @classmethod
    def concatenate(cls, parts: Sequence[Holding]) -> Holding:
        """Put those of different series together, one after the other."""
        return cls(
            np.concatenate([part.sparse for part in parts]),
            np.concatenate([part.windows for part in parts]),
            {x: np.concatenate([part.held[x] for part in parts]) for x in parts[0].held},
            np.sum([part.together for part in parts], axis=0),
        )

    def find_shortfalls(self) -> list[Shortfall]:
        """Return the kinds of series whose intervals held much less than they promise."""
        kinds = [kind & (self.windows > 0.0) for kind in (~self.sparse, self.sparse)]
        is_mixed = all(kind.any() for kind in kinds)
        limit = _ALARM / (len(self.held) * (1 + is_mixed))
        found = []
        for often_zero, kind in enumerate(kinds):
            m, n = int(kind.sum()), float(self.windows[kind].sum())
            count = _count_independent(n, m, *self.together[often_zero])
            short = {}
            for level, held in self.held.items():
                share, promised = float(held[kind].sum()) / max(n, 1.0), float(level) / 100.0
                by_chance = math.e * bdtr(math.ceil(share * count - 1e-9), count, promised)
                if share < promised - CLOSE and by_chance < limit:
                    short[level] = share
            if short:
                worst = min(short, key=lambda level: short[level] - float(level) / 100.0)
                shares = np.where(kind, self.held[worst] / np.maximum(self.windows, 1.0), np.inf)
                lowest = np.flatnonzero(shares == shares.min()).tolist()
                which = bool(often_zero) if is_mixed else None
                found.append(Shortfall(short, which, m, tuple(lowest)))
        return found


@dataclass(frozen=True)
class Shortfall:
    """Series of one kind whose intervals held much less than they promise.

    `shares` inside are by level. `often_zero` tells the kind, and is None where a panel has one
    kind only. `lowest` are the series with the fewest values inside, usually one.
    """

    shares: Mapping[str, float]
    often_zero: bool | None
    n_series: int
    lowest: tuple[int, ...]

    def describe(self, space: str = " ") -> str:
        """Say it in a part of a sentence; `space` stands before percent signs."""
        kind = {None: "", True: " that are often zero", False: " that are not often zero"}
        (level, share), *more = self.shares.items()
        others = "".join(f", the {x}{space}% ones {format_percent(y, space)}" for x, y in more)
        return (
            f"the {level}{space}% intervals of {self.n_series:,} series{kind[self.often_zero]} "
            f"held {format_percent(share, space)} of the values in backtests{others}"
        )


def _count_independent(n_windows: float, n_series: int, agreeing: float, pairs: float) -> int:
    """Return as how many independent windows those of series count whose errors go together."""
    r = min(max(agreeing / pairs, 0.0), 1.0) if pairs else 0.0
    share = math.sin(0.5 * math.pi * r) ** 2
    return int(n_windows / (1.0 + max(n_series - 1, 0) * share) + 1e-9)


def _compare_signs(signs: Array, times: Ints, cutoffs: Ints) -> tuple[float, float]:
    """Return the sum of products of signs (m,) of pairs with the same times, and their number."""
    by_time, first = (np.unique(own, return_inverse=True)[1] for own in (times, cutoffs))
    moment = by_time * (first.max(initial=0) + 1) + first
    _, moment = np.unique(moment, return_inverse=True)
    counts, sums = np.bincount(moment), np.bincount(moment, signs)
    return float((sums**2).sum() - (signs**2).sum()), float((counts * (counts - 1.0)).sum())
