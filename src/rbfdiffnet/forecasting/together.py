r"""Which series of a panel are surprised together, and shocks of paths that are as alike.

.. math:: \varepsilon_{ik} = \sqrt{1 - \lambda_i} \sum_t e_{it} \, g_{tk} + \sqrt{\lambda_i}
    \Big( \sum_l \sqrt{a_l} \, f_{l, c_l(i), k} + \sqrt{1 - \textstyle\sum_l a_l} \, \xi_{ik} \Big)

where g, f and :math:`\xi` are independent shocks of the same variance: of each of T days of the
past, of each group c of a level l that series i is in, and of the series alone. A row :math:`e_i`,
of length 1, holds by how much each value was unlike what the values before it foretold; unknown
days are filled from others, see `_fill`. So the shocks of two series have the correlation

.. math:: R_{ij} = \sqrt{(1 - \lambda_i)(1 - \lambda_j)} \, r_{ij} + \sqrt{\lambda_i \lambda_j}
    \sum_l a_l \, [c_l(i) = c_l(j)], \qquad r_{ij} = \sum_t e_{it} e_{jt}

without any matrix of pairs. How much of the correlations of a series is chance follows from their
variances (Schäfer and Strimmer, 2005). That share is squared, so that a few large correlations
remain among many small ones:

.. math:: \lambda_i = \min \Big( 1, \sum_{j \ne i} v_{ij} \Big/ \sum_{j \ne i} r_{ij}^2 \Big)^2,
    \qquad v_{ij} = \frac{1}{T - 1} \Big( \frac{T^2}{\sqrt{n_i n_j}} \sum_t e_{it}^2 e_{jt}^2
    - r_{ij}^2 \Big)

where :math:`n_i` days of series i are known. What is left out comes back in shares
:math:`a_l \ge 0` of levels, those of a hierarchy or the whole panel alone: over all pairs within
groups of a level, R has the mean that r has. So sums over groups vary as they did, and a series
without a past is as much like others as its groups are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import nnls

from rbfdiffnet.series.series import Series
from rbfdiffnet.support.arrays import Array, Ints, Mask
from rbfdiffnet.support.parallel import even_chunks

_DAYS = 256  # that are looked at, the latest ones
_SEASONS = 4  # whose mean foretells a value
_FAR = 5.0  # usual surprises: one that is still larger says nothing more
_FEWEST = 8  # surprises of a series that say anything
_RIDGE = 1.0  # values that count as much as that nothing foretells a series
_SMALLEST = 1e-9  # deviation, as a share of the mean, of a series that is not constant
_TURNS = 3  # of levels, when what is unknown is filled in
_MOST, _NEAREST = 1_000, 8  # series among which the most alike are looked for, and how many
_VALUES_AT_ONCE, _FILLED_AT_ONCE = 2**22, 2**17


#: What some series share in paths.
Shared = Callable[[slice], Array]


@dataclass(frozen=True, eq=False)
class Likeness:
    """How shocks of n series are alike.

    Shocks of days of the past have `loads` (n, T), and those of groups of series `ties` (n, G).
    `alone` (n,) is the share of the variance that is left to a series.
    """

    loads: Array
    ties: sparse.csr_array
    alone: Array

    def draw(self, fill: Callable[[Array], None], h: int, n_paths: int) -> Shared:
        """Return a function that tells what some series share, (k, h * n_paths).

        `fill` draws shocks (h, n_paths) of days and of groups. Where series are fewer than these,
        only what each series has of them is kept.
        """
        n, n_values = len(self.alone), h * n_paths

        def draw_rows(count: int) -> Array:
            rows = np.empty((count, n_values))
            for row in rows:
                fill(row.reshape(h, n_paths))
            return rows

        if n > self.loads.shape[1] + self.ties.shape[1]:
            days, groups = draw_rows(self.loads.shape[1]), draw_rows(self.ties.shape[1])
            return lambda some: np.asarray(self.loads[some] @ days + self.ties[some] @ groups)
        shared = np.zeros((n, n_values))
        for weights in (self.loads, self.ties):
            for some in even_chunks(weights.shape[1], max(_VALUES_AT_ONCE // n_values, 1)):
                shared += weights[:, some] @ draw_rows(some.stop - some.start)
        return shared.__getitem__

    def tie(self, shocks: Array, shared: Shared, some: slice) -> None:
        """Make shocks (k, h, n_paths) of some series alike, in place, by what `draw` returned."""
        shocks *= np.sqrt(self.alone[some])[:, None, None]
        shocks += shared(some).reshape(shocks.shape)


def find_likeness(surprises: Array, codes: Ints) -> Likeness:
    """Learn how series are alike from surprises (n, T), and their groups `codes` (L, n).

    A surprise is 0 where it is unknown. Series whose codes are negative are left aside.
    """
    among = np.flatnonzero(codes[0] >= 0)
    codes, n_days = codes[:, among], surprises.shape[1]
    groups = [_Groups(own) for own in codes]
    counts = np.count_nonzero(surprises[among], axis=1)
    rows = _fill(_scale(surprises[among]), groups) / np.sqrt(max(n_days, 1))
    chance = _find_chance(rows, counts)
    kept = rows * np.sqrt(1.0 - chance)[:, None]
    dropped = chance * (rows**2).sum(axis=1)  # variance
    left = [own.sum_pairs(rows) - own.sum_pairs(kept) for own in groups]
    levels = _find_shares(left, np.sqrt(dropped)[:, None], groups)
    loads, alone = np.zeros(surprises.shape), np.ones(len(surprises))
    loads[among] = kept
    alone[among] = 1.0 - (kept**2).sum(axis=1) - dropped * levels.sum()
    used = np.flatnonzero(levels)
    first = np.cumsum([0, *(groups[level].n for level in used.tolist())])
    ties = np.sqrt(levels[used, None] * dropped).ravel()
    at = np.tile(among, used.size), (codes[used] + first[:-1, None]).ravel()
    shape = len(surprises), int(first[-1])
    return Likeness(loads, sparse.csr_array((ties, at), shape), np.maximum(alone, 0.0))


class _Groups:
    """The groups of a level, by the group (n,) that each series is in."""

    def __init__(self, codes: Ints) -> None:
        self.codes, self.n = codes, int(codes.max(initial=-1)) + 1
        ones, at = np.ones(codes.size), np.arange(codes.size)
        self.members = sparse.csr_array((ones, (codes, at)), (self.n, codes.size))

    def sum_pairs(self, rows: Array) -> float:
        """Return the sum of products of rows (n, T) over all pairs of two series of a group."""
        sums = self.members @ rows
        return float((sums**2).sum() - (rows**2).sum())

    def join(self, other: _Groups) -> _Groups:
        """Return the groups of series that are in the same group of both levels."""
        return _Groups(np.unique(self.codes * other.n + other.codes, return_inverse=True)[1])


def _scale(surprises: Array) -> Array:
    """Return surprises (n, T) whose mean square is 1 where they are known."""
    counts = np.count_nonzero(surprises, axis=1)
    size = np.sqrt((surprises**2).sum(axis=1) / np.maximum(counts, 1))
    return surprises / np.where(size > 0.0, size, 1.0)[:, None]


def _fill(rows: Array, groups: Sequence[_Groups]) -> Array:
    """Return rows (n, T) in which unknown surprises are those of other days, `step` days later.

    What other series foretold on the later day is taken away, and what they foretell now is added,
    by ridge regression on what groups have in common and on the series most alike. So pairs remain
    alike. Series without any surprise have what their groups have in common.
    """
    known, step = rows != 0.0, rows.shape[1]
    if known.all():
        return rows
    rows, shares = rows.copy(), _find_shares([own.sum_pairs(rows) for own in groups], known, groups)
    near, trust = _find_nearest(rows, known)

    def inputs(of: Array, parts: Sequence[Array], some: Ints, days: Ints) -> Array:
        best = zip(near[some].T, trust[some].T, strict=True)
        alike = (weight[:, None] * of[np.ix_(j, days)] for j, weight in best)
        return np.stack([_expect(parts, groups, some, days), *alike], axis=2)

    while step > 1 and not known.all():
        step = (step + 1) // 2
        later, had = (np.roll(own, -step, axis=1) for own in (rows, known))
        both, new = known & had, had & ~known
        told = both * later
        now, then = _foretell(rows, known, groups, shares), _foretell(told, both, groups, shares)
        order = np.argsort(known.sum(axis=1))  # series that began on the same day, side by side
        for chunk in even_chunks(len(rows), max(_FILLED_AT_ONCE // rows.shape[1], 1)):
            some = order[chunk]
            days = np.flatnonzero(new[some].any(axis=0))
            at = np.ix_(some, days)
            x, z = inputs(rows, now, some, days), inputs(told, then, some, days)
            away, filled = later[at] - z[:, :, 0], new[at]
            weights = _regress((filled * away)[:, :, None], filled[:, :, None] * z)
            moved = away + x[:, :, 0] + ((x - z) @ weights)[:, :, 0]
            rows[at] = np.where(filled, moved, rows[at])
        known |= new
    rows, never = _scale(rows), np.flatnonzero(~known.any(axis=1))
    parts = _foretell(rows, known, groups, shares)
    found = _expect(parts, groups, never, np.arange(rows.shape[1]))
    rows[never] = found / np.maximum(np.sqrt((found**2).mean(axis=1, keepdims=True)), 1.0)
    return rows


def _foretell(rows: Array, known: Mask, groups: Sequence[_Groups], shares: Array) -> list[Array]:
    """Return what groups have in common on each day, (G, T) for each level, by known values.

    Rows (n, T) are 0 where unknown. Series of a group share a part of their variance, and on each
    day what they share is drawn to 0 as that of normal variables; levels take turns.
    """
    parts = [np.zeros((own.n, rows.shape[1])) for own in groups]
    some = np.flatnonzero(shares).tolist()
    for k in some * (_TURNS if len(some) > 1 else 1):
        rest, members, share = rows, groups[k].members, shares[k]
        for j in some:
            if j != k:
                rest = rest - known * parts[j][groups[j].codes]
        noise = max(1.0 - shares.sum(), 0.0) + share * (members @ known)
        parts[k] = share * (members @ rest) / np.maximum(noise, _SMALLEST)
    return parts


def _expect(parts: Sequence[Array], groups: Sequence[_Groups], some: Ints, days: Ints) -> Array:
    """Return what the groups of some series have in common on some days."""
    each = (part[np.ix_(own.codes[some], days)] for own, part in zip(groups, parts, strict=True))
    return np.asarray(sum(each))


def _find_nearest(rows: Array, known: Mask) -> tuple[Ints, Array]:
    """Return which series foretell each one best where it is unknown, and trust in them, (n, k).

    Trust is the share of a squared correlation that is beyond the largest one by chance.
    """
    n = len(rows)
    if n > _MOST:
        return np.empty((n, 0), dtype=np.int64), np.empty((n, 0))
    both = known.astype(np.float64) @ known.T
    days = np.maximum(both, 1.0)
    squares = (rows @ rows.T / days) ** 2
    trust = np.maximum(1.0 - 2.0 * np.log(n) / days / np.maximum(squares, _SMALLEST), 0.0)
    gain = trust * squares * (known.sum(axis=1) - both)
    near = np.argsort(-gain, axis=1, kind="stable")[:, :_NEAREST]
    return near, np.take_along_axis(np.where(gain > 0.0, trust, 0.0), near, axis=1)


def _find_chance(rows: Array, counts: Ints) -> Array:
    """Return the share (n,) of the correlations of rows (n, T) with others that is chance.

    Days that are known, counts (n,), say how much; rows without any have the noise of others.
    """
    squares, n_days = rows**2, rows.shape[1]
    found = ((rows @ (rows.T @ rows)) * rows).sum(axis=1) - squares.sum(axis=1) ** 2
    squares *= np.sqrt(n_days / np.where(counts > 0, counts, n_days))[:, None]
    spread = squares @ squares.sum(axis=0) - (squares**2).sum(axis=1)
    noise = (n_days * spread - found) / max(n_days - 1, 1)
    share = np.where(noise < found, noise / np.where(found > 0.0, found, 1.0), 1.0)
    return share**2


def _find_shares(sums: Sequence[float], sizes: Array, groups: Sequence[_Groups]) -> Array:
    """Return the shares (L,) of levels that add sums over pairs (L,) to series of sizes (n, k)."""
    both = [own.join(other).sum_pairs(sizes) for own in groups for other in groups]
    return _solve(np.reshape(both, (len(groups), len(groups))), sums)


def _solve(pairs: Array, sums: Sequence[float]) -> Array:
    """Return shares (L,), of which none is negative and all are at most 1 together."""
    unit = np.maximum(pairs.diagonal(), _SMALLEST)
    shares = nnls(pairs / unit[:, None], np.array(sums) / unit)[0]
    return np.asarray(shares / max(shares.sum(), 1.0))


def find_surprises(panel: Sequence[Series], season_length: int) -> Array:
    """Return by how much the latest values of series, (n, T), were unlike what foretold them.

    What inputs that are known in advance do is taken away first, as steps of values follow steps of
    inputs. Then the three values before it foretell a value, those a season before it and before
    the last one, and the means of four such seasons, all by ridge regression. All series end
    together. A surprise is 0 where it is unknown.
    """
    season = max(season_length, 1)
    lags = [1, 2, 3, *([season, season + 1] if season > 3 else [])]
    seasons = [k * season for k in range(1, _SEASONS + 1)]
    n_days = min(_DAYS, max((own.y.size for own in panel), default=0))
    before = max(3, seasons[-1] + 1)
    q = panel[0].known_ahead.shape[1] if len(panel) else 0
    found = np.zeros((len(panel), n_days))
    width = (n_days + before) * (len(lags) + 2 + q)
    for chunk in even_chunks(len(panel), max(_VALUES_AT_ONCE // width, 1)):
        some = [panel[i] for i in range(chunk.start, chunk.stop)]
        y = _stack_ends([own.y[:, None] for own in some], n_days + before)
        known, y = np.isfinite(y), _standardize(y)
        if q:
            inputs = _standardize(_stack_ends([own.known_ahead for own in some], n_days + before))
            both = known[:, 1:] & known[:, :-1]
            effects = _regress(both * np.diff(y, axis=1), both * np.diff(inputs, axis=1))
            y = known * (y - inputs @ effects)
        at = [0, *lags, *seasons, *(lag + 1 for lag in seasons)]
        now, *past = (y[:, before - lag : before - lag + n_days] for lag in at)
        means = np.split(np.stack(past[len(lags) :]), 2)
        known = known[:, before:]
        x = known * np.concatenate([*past[: len(lags)], *(own.mean(axis=0) for own in means)], 2)
        away, count = (now - x @ _regress(now, x))[:, :, 0], known.sum(axis=(1, 2))
        usual = np.sqrt((away**2).sum(axis=1) / np.maximum(count, 1))[:, None]
        says = (count[:, None] >= _FEWEST) & (usual > 0.0)
        found[chunk] = np.clip(away / np.where(says, usual, np.inf), -_FAR, _FAR)
    return found


def _regress(y: Array, x: Array) -> Array:
    """Return weights (n, q, 1) of ridge regression of y (n, T, 1) on x (n, T, q)."""
    turned = x.swapaxes(1, 2)
    return np.asarray(np.linalg.solve(turned @ x + _RIDGE * np.eye(x.shape[2]), turned @ y))


def _stack_ends(tables: Sequence[Array], length: int) -> Array:
    """Return the last rows (n, length, q) of tables, NaN before they begin."""
    found = np.full((len(tables), length, tables[0].shape[1]), np.nan)
    for rows, table in zip(found, tables, strict=True):
        end = table[max(len(table) - length, 0) :]
        rows[length - len(end) :] = end
    return found


def _standardize(values: Array) -> Array:
    """Return values (n, T, q) of mean 0 and variance 1 over time, 0 where unknown."""
    known = np.isfinite(values)
    count = np.maximum(known.sum(axis=1, keepdims=True), 1)
    mean = np.where(known, values, 0.0).sum(axis=1, keepdims=True) / count
    away = np.where(known, values - mean, 0.0)
    size = np.sqrt((away**2).sum(axis=1, keepdims=True) / count)
    return np.asarray(away / np.where(size > _SMALLEST * np.abs(mean), size, np.inf))
