r"""Rows of a panel: what networks over all series learn from, one for each origin of each series.

.. math:: x = \frac{(y_{t-1}, \ldots, y_{t-p+1}, \text{slow means}) - y_t}{d_t}, \qquad
    z_k = \frac{y_{t+k} - y_t}{d_t}, \qquad d_t = \text{mean}_{\tau \le t} |y_\tau - y_{\tau - m}|

Values count by their distance from the latest one, in units of the series' own usual change over
a season, so rows of short and long, large and small series are comparable. Slow means are
exponential ones. For every step ahead there are further inputs: the usual value of its phase of the
season, how far a series had moved by then in former long seasons (years of days, weeks of hours),
and how unusual the same date was in former years.

Inputs that are known when they happen enter in the same way: a few values before the latest one,
and the median of more of them, by their distance from the latest one, in units of the input's usual
change. The unit is a geometric mean, and distances are bounded: a wild value counts little.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace

import numpy as np

from rbfdiffnet.models.stack.blocks import cover_steps
from rbfdiffnet.models.stack.histories import Histories
from rbfdiffnet.series.naive import season_ago
from rbfdiffnet.series.outliers import find_wild
from rbfdiffnet.series.series import FEWEST_VALUES
from rbfdiffnet.support.arrays import Array, Ints, Mask
from rbfdiffnet.support.progress import check_wanted

_FAR_AHEAD = 128  # steps that are learned, or half of the usual series, or two seasons
_MOST_ROWS = 4_000
_ROWS_TO_START_FROM = 3_000  # each needs a forecast to start from
_SLOW = (0.01, 0.05, 0.15, 0.4)
_BY_PHASE = (0.2, 0.5)
_WEEK, _YEAR = 7, 365.25  # days
_LONG = {_WEEK: 364, 24: 168}  # seasons of seasons
_MOST_LONG = 3  # long seasons that inputs look back; two more must be known
_FARTHEST = 1_000.0
_LEVEL = 10.0
_VALUES_PER_LAG = 6
_GOLDEN, _SILVER = (5.0**0.5 - 1.0) / 2.0, 2.0**0.5 - 1.0  # their multiples are spread evenly
_PAST_LAGS, _PAST_SPAN = 8, 24  # values of an input that enter at most, and whose median enters
_FARTHEST_PAST = 10.0
_ROUNDING = 1e-12  # of the mean size: smaller changes are none
_BLOCK = 32  # steps of exponential means at a time
_STILL = 0.1  # share of steps with changes, below which a series is still; and of such series


@dataclass(frozen=True)
class Rows:
    """Inputs and targets of n rows."""

    series: Ints  # (n,)
    at: Ints  # (n,), column of the origin, the latest value seen
    base: Array  # (n,), the latest value
    unit: Array  # (n,), the scale
    X: Array  # (n, p), inputs for all steps ahead
    ahead: Array  # (n, h, q), further inputs for each step
    targets: Array  # (n, h), NaN where not known yet
    weight: Array  # (n,), how much a row counts: recent ones more

    def select(self, chosen: Mask) -> Rows:
        """Return some of the rows."""
        return self if chosen.all() else Rows(*(own[chosen] for own in vars(self).values()))

    def first_steps(self, h: int) -> Rows:
        """Return the same rows with fewer steps ahead."""
        return replace(self, ahead=self.ahead[:, :h], targets=self.targets[:, :h])

    def start_from(self, forecasts: Array) -> Rows:
        """Return rows of what forecasts (n, h) leave, with the forecasts as inputs."""
        away = (forecasts - self.base[:, None]) / self.unit[:, None]
        away = np.clip(away, -_FARTHEST, _FARTHEST)
        ahead = np.concatenate([self.ahead, away[:, :, None]], axis=2)
        return replace(self, ahead=ahead, targets=self.targets - away)


@dataclass(frozen=True)
class RowCut:
    """How rows are cut: how many lags they have, and how many steps ahead they reach.

    A long season has ``long`` steps, 0 for none; inputs look back ``long_seasons`` of them. Of each
    input known when it happens, ``past_lags`` values enter.
    """

    n_lags: int
    h: int
    long: int
    long_seasons: int
    past_lags: int


def choose_row_cut(histories: Histories, h: int) -> RowCut:
    """Choose how to cut rows of series that reach to the end of the block that step h is in.

    Steps too far ahead to be learned do not count.
    """
    longer, reach = histories.longer, learned_steps(min(h, most_steps(histories)), histories.season)
    long = _LONG.get(histories.season, 0) if longer is None else longer
    n_long = int(np.clip(histories.usual_length // long - 2, 0, _MOST_LONG)) if long else 0
    n_lags, n_past = choose_lags(histories), histories.past.shape[2]
    past_lags = min(max(n_lags // n_past, 1), _PAST_LAGS) if n_past else 0
    return RowCut(n_lags, reach, long, n_long, past_lags)


@dataclass(frozen=True)
class RowMaker:
    """Everything that the rows of a panel are cut from, as arrays of shape (n, T)."""

    row_cut: RowCut
    filled: Array  # series that repeat their first value before they start
    starts: Ints  # (n,)
    numbers: Ints  # (n,)
    season: int
    half_life: float  # after which a row counts half
    units: Array  # NaN where a series has not changed yet
    slow: tuple[Array, ...]
    by_phase: tuple[Array, ...]
    past: tuple[tuple[Array, Array], ...]  # values and units of inputs known when they happen

    @classmethod
    def of(cls, histories: Histories, row_cut: RowCut, *, latest: bool = False) -> RowMaker:
        """Prepare to cut rows; if only the `latest` are wanted, less is needed."""
        check_wanted()
        m, values, filled = histories.season, histories.values, histories.fill_start()
        find_slow = _latest_means if latest and not row_cut.long_seasons else _exponential_means
        return cls(
            row_cut,
            filled,
            histories.starts,
            histories.numbers,
            m,
            max(histories.usual_length / 2.0, 2.0 * m),
            _measure_units(filled, histories.starts, m, latest),
            find_slow(filled, _SLOW),
            _means_by_phase(values, m) if m > 1 else (),
            tuple(_measure_input(x, m) for x in np.moveaxis(histories.past, 2, 0)),
        )

    def training_rows(self, most: int, few: int = 0) -> tuple[Rows, Mask]:
        """Return the rows of all origins, or of about so many, and which of these are few.

        Where series end earlier, the rows are the same ones, and a few more.
        """
        if not most:
            nothing = np.empty(0, dtype=np.int64)
            return self.cut(nothing, nothing), np.empty(0, dtype=bool)
        first = self.starts + max(self.row_cut.n_lags - 1, self.season if self.season > 1 else 0)
        usable = np.isfinite(self.units[:, :-1])
        usable &= np.arange(usable.shape[1]) >= first[:, None]
        series, at = np.nonzero(usable)
        total = max(series.size, 1)
        # Evenly over time, over phases and over series:
        place = (_GOLDEN * (at - self.starts[series]) + _SILVER * self.numbers[series]) % 1.0
        chosen = place < most / total
        return self.cut(series[chosen], at[chosen]), place[chosen] < few / total

    def measure_sizes(self, rows: Rows) -> Array:
        """Return root mean squares (n,) of the targets of each series, less their usual phase."""
        known, n = np.isfinite(rows.targets), len(self.filled)
        rest = rows.targets - rows.ahead[:, :, 0] if self.by_phase else rows.targets
        squares = (np.where(known, rest, 0.0) ** 2).sum(axis=1)
        total, count = (np.bincount(rows.series, own, n) for own in (squares, known.sum(axis=1)))
        return np.asarray(np.sqrt(total / np.where(count > 0.0, count, np.nan)))

    def find_still(self) -> Mask:
        """Which series (n,) hardly ever change, such as one with a single sale.

        None are where these are more than a tenth: they are what the panel is like.
        """
        changes = np.count_nonzero(np.diff(self.filled, axis=1), axis=1)
        lengths = self.filled.shape[1] - self.starts
        still = (changes < FEWEST_VALUES) & (changes < _STILL * lengths)
        return np.asarray(still & (still.sum() <= _STILL * still.size))

    def latest_rows(self) -> Rows:
        """Return the rows to forecast from, of all series that have ever changed."""
        T = self.filled.shape[1]
        series = np.flatnonzero(np.isfinite(self.units[:, -1]))
        return self.cut(series, np.full(series.size, T - 1))

    def cut(self, series: Ints, at: Ints) -> Rows:
        """Return the rows of the origins in columns ``at`` of ``series``, both of shape (n,)."""
        T, (n_lags, h, long, long_seasons, _) = self.filled.shape[1], astuple(self.row_cut)
        base, unit = self.filled[series, at], self.units[series, at]

        def relative(values: Array, columns: Ints) -> Array:
            """Return values by their distance from the latest one, in units of the series."""
            found = values[series[:, None], np.maximum(columns, 0)]
            return np.asarray((found - base[:, None]) / unit[:, None])

        here, first = at[:, None], self.starts[series][:, None]
        level = np.clip(base / unit, -_LEVEL, _LEVEL)
        inputs = [relative(self.filled, here - np.arange(1, n_lags))]
        inputs += [relative(values, here) for values in self.slow]
        X = np.concatenate([*inputs, level[:, None], *self._cut_past(series, at)], axis=1)
        steps = np.arange(1, h + 1)
        same_phase = here + 1 + season_ago(h, self.season)
        ahead = [relative(values, same_phase) for values in self.by_phase]
        dated = self.season == _WEEK and long == _LONG[_WEEK]
        for k in range(long_seasons):
            turns = k + -(-steps // long)
            then = here + steps - turns * long
            before = relative(self.slow[1], here - (k + 1) * long)
            moved = relative(self.filled, then) - before
            ahead.append(np.where(then >= first, moved, 0.0))
            if dated:
                then = here + steps - np.rint(turns * _YEAR).astype(np.int64)
                usual = relative(self.by_phase[0], then - self.season)
                unusual = relative(self.filled, then) - usual
                ahead.append(np.where(then >= first, unusual, 0.0))
        targets = relative(self.filled, np.minimum(here + steps, T - 1))
        targets = np.where(here + steps < T, targets, np.nan)
        nothing = np.empty((series.size, h, 0))
        return Rows(
            series,
            at,
            base,
            unit,
            np.clip(X, -_FARTHEST, _FARTHEST),
            np.clip(np.stack(ahead, axis=2), -_FARTHEST, _FARTHEST) if ahead else nothing,
            np.clip(targets, -_FARTHEST, _FARTHEST),
            0.5 ** ((T - 1 - at) / self.half_life),
        )

    def _cut_past(self, series: Ints, at: Ints) -> list[Array]:
        """Return what rows know of each input that is known when it happens, (n, past_lags)."""
        columns, found = np.maximum(at[:, None] - np.arange(_PAST_SPAN), 0), []
        for values, units in self.past:
            seen = values[series[:, None], columns]
            usual = np.median(seen, axis=1, keepdims=True)
            away = np.concatenate([seen[:, 1 : self.row_cut.past_lags], usual], axis=1)
            away = np.nan_to_num((away - seen[:, :1]) / units[series, at][:, None])
            found.append(np.clip(away, -_FARTHEST_PAST, _FARTHEST_PAST))
        return found


@dataclass(frozen=True)
class RowTable:
    """Rows of series: the latest, `now`, to forecast from, and those to learn from.

    Of the rows in `train`, those in the mask `starts` start from other forecasts.
    """

    cut: RowCut
    season: int
    now: Rows
    train: Rows
    starts: Mask

    @classmethod
    def of(cls, histories: Histories, cut: RowCut, most: int = 0, few: int = 0) -> RowTable:
        """Cut the latest rows of series, and about so many to learn from."""
        maker = RowMaker.of(histories, cut, latest=not most)
        train, starts = maker.training_rows(most, few)
        if not most:
            return cls(cut, maker.season, maker.latest_rows(), train, starts)
        unlike = find_wild(maker.measure_sizes(train)) | maker.find_still()
        fair = ~unlike[train.series]
        return cls(cut, maker.season, maker.latest_rows(), train.select(fair), starts[fair])

    @classmethod
    def learnable(cls, histories: Histories, h: int) -> RowTable:
        """Cut rows to learn h steps from."""
        return cls.of(histories, choose_row_cut(histories, h), _MOST_ROWS, _ROWS_TO_START_FROM)

    def cut_series(self, histories: Histories) -> list[Array]:
        """Return the series up to the rows that start from other forecasts."""
        series, at = self.train.series[self.starts], self.train.at[self.starts]
        rows = zip(series, histories.starts[series], at, strict=True)
        return [histories.values[i, first : last + 1] for i, first, last in rows]


def most_steps(histories: Histories) -> int:
    """Return how many steps ahead are learned; from there on, forecasts follow from forecasts."""
    return max(_FAR_AHEAD, histories.usual_length // 2, 2 * histories.season)


def learned_steps(h: int, season: int) -> int:
    """Return how many steps ahead rows reach: to the end of the block that h is in."""
    return cover_steps(h, season)[-1][1]


def choose_lags(histories: Histories) -> int:
    """Choose how many values a row holds.

    These are some seasons, but at most half of the usual length and a sixth of all values.
    """
    m = histories.season
    if m == 1:
        n_lags = 12
    elif m <= 7:
        n_lags = min(8 * m, 60)
    elif m <= 12:
        n_lags = 3 * m
    else:
        n_lags = max(min(3 * m, 110), 1 + 7 * 24 if m == 24 else 0)
    most = min(histories.usual_length // 2, int(histories.lengths.sum()) // _VALUES_PER_LAG)
    return max(1, min(n_lags, most))


def _measure_units(filled: Array, starts: Ints, season: int, latest: bool) -> Array:
    """Return mean changes over a season up to every column; over a step before there is one.

    Series repeat their first value before they start. If only the latest are wanted, the others
    are NaN.
    """
    found = np.full(filled.shape, np.nan)
    n_known = np.arange(1, filled.shape[1] + 1) - starts[:, None]  # of values up to each column
    some = np.s_[:, -1:] if latest else np.s_[:, :]

    def add_up(values: Array) -> Array:
        return np.asarray(values.sum(axis=1, keepdims=True) if latest else values.cumsum(axis=1))

    for lag in dict.fromkeys((1, season)):
        change = np.abs(filled[:, lag:] - filled[:, :-lag])
        if starts.any():  # not the changes from repeated values
            change[n_known[:, lag:] <= lag] = 0.0
        counts = n_known[:, lag:] - lag
        if counts.size:
            np.divide(
                add_up(change), counts[some], out=found[:, lag:][some], where=counts[some] > 0
            )
    size = np.abs(filled)
    if starts.any():
        size[n_known <= 0] = 0.0
    own = found[some]
    own[~(own * n_known[some] > _ROUNDING * add_up(size))] = np.nan
    return found


def _measure_input(x: Array, season: int) -> tuple[Array, Array]:
    """Fill gaps of an input (n, T) with the latest value, and find its units up to every column.

    Before its first value an input repeats that, which tells rows nothing: distances are 0. The
    unit is the geometric mean of changes over a season; over a step before there is one. It is
    infinite before the first change.
    """
    known = np.isfinite(x)
    latest = np.maximum.accumulate(np.where(known, np.arange(x.shape[1]), -1), axis=1)
    begun = latest >= 0
    latest = np.where(begun, latest, known.argmax(axis=1)[:, None])
    filled = np.nan_to_num(np.take_along_axis(x, latest, axis=1))
    units = np.full(x.shape, np.inf)
    for lag in dict.fromkeys((1, season)):
        change, size = np.abs(filled[:, lag:] - filled[:, :-lag]), np.abs(filled[:, lag:])
        changed = begun[:, :-lag] & (change > _ROUNDING * size)
        total = np.where(changed, np.log(np.where(changed, change, 1.0)), 0.0).cumsum(axis=1)
        count = changed.cumsum(axis=1)
        found = np.exp(total / np.maximum(count, 1))
        units[:, lag:] = np.where(count > 0, found, units[:, lag:])
    return filled, units


def _means_by_phase(values: Array, season: int) -> tuple[Array, ...]:
    """Return exponential means of the values of a phase, up to and with every column.

    Before the first value of a phase, the mean is the first value of the series.
    """
    n, T = values.shape
    pad = -T % season
    table = np.pad(values, ((0, 0), (pad, 0)), constant_values=np.nan)
    table = table.reshape(n, -1, season).swapaxes(1, 2)
    known = np.isfinite(table)
    first = np.take_along_axis(table, np.argmax(known, axis=2)[:, :, None], axis=2)
    filled = np.where(known, table, first).reshape(n * season, -1)
    begun = (known.cumsum(axis=2) > 0).swapaxes(1, 2).reshape(n, -1)[:, pad:]
    start = np.take_along_axis(values, np.argmin(np.isnan(values), axis=1)[:, None], axis=1)
    found = _exponential_means(filled, _BY_PHASE)
    tables = (own.reshape(n, season, -1).swapaxes(1, 2).reshape(n, -1)[:, pad:] for own in found)
    return tuple(np.where(begun, means, start) for means in tables)


def _exponential_means(values: Array, rates: tuple[float, ...]) -> tuple[Array, ...]:
    r"""Return exponential means of rows (n, T) up to and with every column, for each rate.

    .. math:: m_t = \alpha y_t + (1 - \alpha) m_{t-1}, \qquad m_0 = y_0

    Inside of a block of steps they are a product with a triangular matrix, and what was before the
    block fades.
    """
    n, T = values.shape
    pad = -T % _BLOCK
    blocks = np.pad(values, ((0, 0), (pad, 0)), mode="edge").reshape(n, -1, _BLOCK)
    age = np.arange(_BLOCK) - np.arange(_BLOCK)[:, None]
    found = []
    for alpha in rates:
        kernel = np.where(age >= 0, alpha * (1.0 - alpha) ** np.maximum(age, 0), 0.0)
        means = (blocks.reshape(-1, _BLOCK) @ kernel).reshape(blocks.shape)
        fading, before = (1.0 - alpha) ** np.arange(1, _BLOCK + 1), blocks[:, 0, :1]
        for block in means.swapaxes(0, 1):
            block += fading * before
            before = block[:, -1:]
        found.append(means.reshape(n, -1)[:, pad:])
    return tuple(found)


def _latest_means(values: Array, rates: tuple[float, ...]) -> tuple[Array, ...]:
    """Return the exponential means up to the last column, in the place of all columns."""
    fading = (1.0 - np.array(rates)) ** np.arange(values.shape[1])[::-1, None]
    weights = fading * rates
    weights[0] = fading[0]
    return tuple(np.broadcast_to(own[:, None], values.shape) for own in (values @ weights).T)
