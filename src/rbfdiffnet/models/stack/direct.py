r"""One network for all series, with an output for every step ahead.

.. math:: \frac{\hat y_{t+k} - y_t}{d_t} = \lambda_k \cdot x + b_k
    + \sum_{j=1}^{c} w_{kj} \, a \cdot \nabla \varphi_j(x)

a linear part and differential basis functions of order 1 along the direction :math:`a` in which the
linear parts of a block of steps rise, on average; least absolute error, recent rows counting more.
The centers are shared by all steps. There is a row for each origin of each series:

.. math:: x = \frac{(y_{t-1}, \ldots, y_{t-p+1}, \text{slow means}) - y_t}{d_t}, \qquad
    z_k = \frac{y_{t+k} - y_t}{d_t}, \qquad d_t = \text{mean}_{\tau \le t} |y_\tau - y_{\tau - m}|

Values count by their distance from the latest one, in units of the series' own usual change over
a season, so rows of short and long, large and small series are comparable. Slow means are
exponential ones. For every step ahead there are further inputs: the usual value of its phase of the
season, how far a series had moved by then in former long seasons (years of days, weeks of hours),
and how unusual the same date was in former years.

The network may start from other forecasts, and learn what they leave: then they are a further
input, and the fewer rows there are, the less is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_banded

from rbfdiffnet.models.stack.blocks import cover_steps
from rbfdiffnet.models.stack.histories import Histories
from rbfdiffnet.network.basis import GaussianBasis, squared_distances
from rbfdiffnet.network.centers import kmeans
from rbfdiffnet.series.naive import season_ago
from rbfdiffnet.support.arrays import Array, Ints
from rbfdiffnet.support.parallel import parallel_map

_MOST_ROWS = 4_000
_ROWS_TO_START_FROM = 3_000  # each needs a forecast to start from
_FEWEST_ROWS = 10
_CENTERS = 30
_ROWS_PER_CENTER = 20
_PLACED_ON = 4_000  # rows
_WIDTH_FACTOR = 2.0
_FAR = 5.0  # standard deviations within which basis functions tell inputs apart
_LINEAR, _SMOOTH = 1e-2, 0.1  # penalties
_FEW_ROWS = 0.1  # more penalty, times inputs by rows
_FEW_ROWS_TO_START = 1.0  # the same if there are forecasts to start from
_SOLVES, _MORE_SOLVES = 3, 6  # toward least absolute errors
_MANY = 2_000  # rows, of which single ones count little

# Of the rows:
_SLOW = (0.01, 0.05, 0.15, 0.4)
_BY_PHASE = (0.2, 0.5)
_WEEK, _YEAR = 7, 365.25  # days
_LONG = {_WEEK: 364, 24: 168}  # seasons of seasons
_MOST_LONG = 3  # long seasons that inputs look back; two more must be known
_FARTHEST = 1_000.0
_LEVEL = 10.0
_VALUES_PER_LAG = 6
_GOLDEN, _SILVER = (5.0**0.5 - 1.0) / 2.0, 2.0**0.5 - 1.0  # their multiples are spread evenly
_ROUNDING = 1e-12  # of the mean size: smaller changes are none

# Of least absolute errors:
_NEAR = 0.1  # median residuals within which errors count as squares
_JITTER = 1e-10


def forecast_direct(
    histories: Histories,
    h: int,
    n_centers: int = _CENTERS,
    maker: RowMaker | None = None,
    n_jobs: int = 1,
) -> Array:
    """Forecast every series with one network; shape (n, h), NaN where there is nothing to learn.

    Without centers the model is linear. ``maker`` cuts the rows of these series. Blocks of steps
    ahead are spread over ``n_jobs`` threads.
    """
    maker = maker or RowMaker.covering(histories, h)
    train, now = maker.training_rows(_MOST_ROWS), maker.latest_rows()
    forecast = np.full((len(histories.values), h), np.nan)
    n_steps = _count_learnable(train)
    if not n_steps:
        return forecast
    if n_steps < h:  # forecasts are fed back
        forecast = forecast_direct(histories, n_steps, n_centers, n_jobs=n_jobs)
        longer = histories.extend(forecast)
        rest = forecast_direct(longer, h - n_steps, n_centers, n_jobs=n_jobs)
        return np.concatenate([forecast, rest], axis=1)
    train, now = train.first_steps(n_steps), now.first_steps(h)
    found = _learn(train, now, histories, n_centers, _FEW_ROWS, n_jobs)
    forecast[now.series] = now.base[:, None] + now.unit[:, None] * found
    return forecast


def correct_forecasts(
    histories: Histories,
    forecasts: Array,
    forecast: Callable[[list[Array]], Array],
    maker: RowMaker | None = None,
    n_jobs: int = 1,
) -> Array:
    """Correct forecasts (n, h) by what is linear in the errors of such forecasts made earlier.

    ``forecast`` makes them for series that end earlier, as far ahead as `learned_steps` asks for.
    """
    h = forecasts.shape[1]
    maker = maker or RowMaker.covering(histories, h)
    train, now = maker.training_rows(_ROWS_TO_START_FROM), maker.latest_rows()
    n_steps = _count_learnable(train)
    if not n_steps:
        return forecasts
    rows = zip(train.series, histories.starts[train.series], train.at, strict=True)
    earlier = forecast([histories.values[i, first : at + 1] for i, first, at in rows])
    train = train.first_steps(n_steps).start_from(earlier[:, :n_steps])
    start = now.first_steps(min(h, n_steps)).start_from(forecasts[now.series, :n_steps])
    found = _learn(train, start, histories, 0, _FEW_ROWS_TO_START, n_jobs)
    found = np.pad(found, ((0, 0), (0, h - found.shape[1])), mode="edge")  # no row reaches so far
    corrected = forecasts.copy()
    corrected[now.series] += now.unit[:, None] * found
    return corrected


def learned_steps(h: int, season: int) -> int:
    """Return how many steps ahead rows reach: to the end of the block that h is in."""
    return cover_steps(h, season)[-1][1]


def _count_learnable(rows: Rows) -> int:
    """Return the number of steps ahead with rows enough."""
    return int((np.isfinite(rows.targets).sum(axis=0) >= _FEWEST_ROWS).sum())


def _learn(
    train: Rows, now: Rows, histories: Histories, n_centers: int, few: float, n_jobs: int
) -> Array:
    """Learn the targets of rows, and return those of other rows (n, h); recent ones count more."""
    half_life = max(histories.usual_length / 2.0, 2.0 * histories.season)
    weight = 0.5 ** ((histories.values.shape[1] - 1 - train.at) / half_life)
    shift, scale = _weighted_moments(train.X, weight)
    X, latest = (train.X - shift) / scale, (now.X - shift) / scale
    bases = _place_bases(X, latest, n_centers)
    h = now.targets.shape[1]
    found = np.empty((now.series.size, h))

    def learn(steps: slice) -> None:
        ahead, then = (part.ahead[:, steps].swapaxes(0, 1) for part in (train, now))
        targets = train.targets[:, steps].T
        with np.errstate(all="ignore"):  # in this thread
            found[:, steps] = _learn_block(X, latest, ahead, then, targets, weight, bases, few).T

    blocks = [slice(first, last) for first, last in cover_steps(h, histories.season)]
    parallel_map(learn, blocks, n_jobs)
    return found


def _learn_block(
    X: Array,
    latest: Array,
    ahead: Array,
    then: Array,
    targets: Array,
    weight: Array,
    bases: tuple[GaussianBasis, GaussianBasis] | None,
    few: float,
) -> Array:
    """Return targets (j, n) of the latest rows, learned from targets (k, N) of others, j <= k.

    Inputs of the steps, ``ahead`` (k, N, q) and ``then`` (j, n, q), join those of all steps.
    """
    (n_steps, n_rows, q), n_then = ahead.shape, len(then)
    known = np.isfinite(targets)
    total = np.where(known, weight, 0.0)
    shift, scale = _weighted_moments(ahead, total)
    ahead, then = (ahead - shift) / scale, (then - shift[:n_then]) / scale[:n_then]
    shared, now = (np.c_[inputs, np.ones(len(inputs))] for inputs in (X, latest))
    linear = _LINEAR + few * (X.shape[1] + q) / total.sum(axis=1, keepdims=True)
    penalty = np.repeat(linear, shared.shape[1] + q, axis=1)
    penalty[:, X.shape[1]] = 0.0
    if bases is not None:
        # Along the direction in which the linear part rises:
        rises = fit_least_absolute(shared, targets, weight, penalty, ahead, steps=0)
        rises = rises[:, : X.shape[1]]
        rises /= np.linalg.norm(rises, axis=1, keepdims=True) + 1e-300
        smooth, smooth_now = (basis.contract(rises.mean(axis=0)).T for basis in bases)
        _, unit = _weighted_moments(smooth, known.any(axis=0).astype(float))
        shared, now = np.c_[shared, smooth / unit], np.c_[now, smooth_now / unit]
        rough = np.full((n_steps, smooth.shape[1]), _SMOOTH)
        penalty = np.insert(penalty, [X.shape[1] + 1] * smooth.shape[1], rough, axis=1)
    n_solves = _SOLVES if n_rows > _MANY else _MORE_SOLVES
    b = fit_least_absolute(shared, targets, weight, penalty, ahead, steps=n_solves)[:n_then]
    # Not outside of the rows:
    used = shared[known.any(axis=0)]
    now, inside = np.clip(now, used.min(axis=0), used.max(axis=0)), known[:n_then, :, None]
    low = np.where(inside, ahead[:n_then], np.inf).min(axis=1, keepdims=True)
    high = np.where(inside, ahead[:n_then], -np.inf).max(axis=1, keepdims=True)
    own, of_step = b[:, : shared.shape[1]], b[:, shared.shape[1] :, None]
    return np.asarray(own @ now.T + (np.clip(then, low, high) @ of_step)[:, :, 0])


def _place_bases(
    X: Array, latest: Array, n_centers: int
) -> tuple[GaussianBasis, GaussianBasis] | None:
    """Place basis functions, and evaluate them on rows to learn from and rows to forecast from."""
    n_centers = min(n_centers, len(X) // _ROWS_PER_CENTER)
    if n_centers < 2:
        return None
    near, near_latest = np.clip(X, -_FAR, _FAR), np.clip(latest, -_FAR, _FAR)
    some = np.linspace(0, len(X) - 1, min(len(X), _PLACED_ON)).astype(np.int64)
    centers = kmeans(near[some], n_centers)
    apart = squared_distances(centers, centers, expand=False)
    np.fill_diagonal(apart, np.inf)
    width = _WIDTH_FACTOR * float(np.sqrt(np.median(apart.min(axis=1))))
    if not width > 0.0:
        return None
    beta = np.full(len(centers), 0.5 / width**2)
    on_rows, on_latest = (
        GaussianBasis.evaluate(Z, centers, beta, order=1, order_zero=False)
        for Z in (near, near_latest)
    )
    return on_rows, on_latest


def _weighted_moments(X: Array, weight: Array) -> tuple[Array, Array]:
    """Return weighted means and standard deviations (..., 1, p) of columns of X (..., n, p)."""
    share = (weight / weight.sum(axis=-1, keepdims=True))[..., None, :]
    mean = share @ X
    scale = np.sqrt(share @ (X - mean) ** 2)
    return mean, np.where(scale > 1e-9, scale, 1.0)


def fit_least_absolute(
    X: Array, Y: Array, weight: Array, penalty: Array, ahead: Array | None = None, steps: int = 3
) -> Array:
    r"""Return coefficients (k, p + q) of nearly least absolute error for k targets Y (k, n).

    Every solve is a weighted ridge regression of each target,

    .. math:: \min_{b_k} \sum_i w_i (y_{ki} - z_{ki} \cdot b_k)^2
        + \Big( \sum_i v_i \Big) \sum_j \lambda_{kj} b_{kj}^2, \qquad
        w_i \propto \frac{v_i}{\max(|r_i|, \epsilon)}, \quad \sum_i w_i = \sum_i v_i

    where z are inputs X (n, p) that all targets share and inputs ``ahead`` (k, n, q) of each. The
    size of a row's residuals in the solve before,

    .. math:: |r_i|^2 = \text{mean}_k \Big( \frac{y_{ki} - z_{ki} \cdot b_k}{m_k} \Big)^2

    in units of their medians m, decides how much it counts: a row that errs much counts less for
    all targets, so all of them rest on one weighted Gram matrix. For a single target the solves
    lead to its least absolute error. Targets may be unknown (NaN); a row that knows one knows those
    before. ``weight`` (n,) is v, ``penalty`` (k, p + q) is :math:`\lambda`, in units of the mean
    squared input, and ``steps`` the number of reweighted solves; 0 leaves the least squares.
    """
    known = np.isfinite(Y)
    order = np.argsort(-known.sum(axis=0), kind="stable")
    known, X, weight = known[:, order], X[order], weight[order]
    Y = np.where(known, Y[:, order], 0.0)
    ahead = np.empty((*Y.shape, 0)) if ahead is None else ahead[:, order] * known[:, :, None]
    n_known, (n_steps, n_rows), p = known.sum(axis=1), Y.shape, X.shape[1]
    total, whole = known @ weight, weight[: n_known[0]].sum()
    width = p + ahead.shape[2]
    gram, moment = np.empty((n_steps, width, width)), np.empty((n_steps, width))
    diagonal = np.arange(width)
    now = weight
    for step in range(steps + 1):
        root = np.sqrt(now)
        Xw, Yw, Aw = X * root[:, None], Y * root, ahead * root[:, None]
        shared, first = np.zeros((p, p)), 0
        for k in range(n_steps - 1, -1, -1):  # rows that know fewer and fewer targets
            rows = Xw[first : n_known[k]]
            if len(rows):
                shared = shared + rows.T @ rows
            gram[k, :p, :p], first = shared, int(n_known[k])
        turned = Aw.swapaxes(1, 2)
        cross = (turned.reshape(-1, n_rows) @ Xw).reshape(n_steps, -1, p)
        gram[:, p:, :p], gram[:, :p, p:] = cross, cross.swapaxes(1, 2)
        gram[:, p:, p:] = turned @ Aw
        moment[:, :p], moment[:, p:] = Yw @ Xw, (turned @ Yw[:, :, None])[:, :, 0]
        gram[:, diagonal, diagonal] += total[:, None] * (penalty + _JITTER)
        b = np.linalg.solve(gram, moment[:, :, None])[:, :, 0]
        if step < steps:
            away = np.abs(Y - b[:, :p] @ X.T - (ahead @ b[:, p:, None])[:, :, 0])
            usual = np.array([np.median(a[:n]) for a, n in zip(away, n_known, strict=True)])
            away *= known / np.where(usual > 0.0, usual, 1e-12)[:, None]
            size = np.sqrt((away**2).sum(axis=0) / np.maximum(known.sum(axis=0), 1))
            near = _NEAR * np.median(size[: n_known[0]])
            now = weight / np.maximum(size, max(near, 1e-12))
            now *= whole / now[: n_known[0]].sum()
    return b


# Rows -------------------------------------------------------------------------------------------


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
class RowMaker:
    """Everything that the rows of a panel are cut from, as arrays of shape (n, T)."""

    filled: Array  # series that repeat their first value before they start
    starts: Ints  # (n,)
    numbers: Ints  # (n,)
    season: int
    n_lags: int
    h: int
    units: Array  # NaN where a series has not changed yet
    slow: tuple[Array, ...]
    by_phase: tuple[Array, ...]
    long: int  # steps in a long season, 0 for none
    long_seasons: int  # how many long seasons the inputs look back

    @classmethod
    def covering(cls, histories: Histories, h: int) -> RowMaker:
        """Prepare to cut rows that reach to the end of the block that step h is in."""
        return cls.of(histories, choose_lags(histories), learned_steps(h, histories.season))

    @classmethod
    def of(cls, histories: Histories, n_lags: int, h: int) -> RowMaker:
        """Prepare to cut rows with ``n_lags`` lags and h steps ahead."""
        m, values = histories.season, histories.values
        longer = histories.longer
        long = _LONG.get(m, 0) if longer is None else longer
        return cls(
            histories.fill_start(),
            histories.starts,
            histories.numbers,
            m,
            n_lags,
            h,
            _measure_units(values, m),
            tuple(_exponential_means(values, 1, alpha) for alpha in _SLOW),
            tuple(_exponential_means(values, m, alpha) for alpha in _BY_PHASE) if m > 1 else (),
            long,
            int(np.clip(histories.usual_length // long - 2, 0, _MOST_LONG)) if long else 0,
        )

    def training_rows(self, most: int) -> Rows:
        """Return the rows of all origins, or of about so many if there are more.

        Where series end earlier, the rows are the same ones, and a few more.
        """
        T = self.filled.shape[1]
        first = self.starts + max(self.n_lags - 1, self.season if self.season > 1 else 0)
        columns = np.arange(T - 1)
        usable = (columns >= first[:, None]) & np.isfinite(self.units[:, :-1])
        share = most / max(int(usable.sum()), 1)
        if share < 1.0:  # evenly over time, over phases and over series
            steps = _GOLDEN * (columns - self.starts[:, None]) + _SILVER * self.numbers[:, None]
            usable &= steps % 1.0 < share
        return self.cut(*np.nonzero(usable))

    def latest_rows(self) -> Rows:
        """Return the rows to forecast from, of all series that have ever changed."""
        T = self.filled.shape[1]
        series = np.flatnonzero(np.isfinite(self.units[:, -1]))
        return self.cut(series, np.full(series.size, T - 1))

    def cut(self, series: Ints, at: Ints) -> Rows:
        """Return the rows of the origins in columns ``at`` of ``series``, both of shape (n,)."""
        T = self.filled.shape[1]
        base, unit = self.filled[series, at], self.units[series, at]

        def relative(values: Array, columns: Ints) -> Array:
            """Return values by their distance from the latest one, in units of the series."""
            found = values[series[:, None], np.maximum(columns, 0)]
            return np.asarray((found - base[:, None]) / unit[:, None])

        here, first = at[:, None], self.starts[series][:, None]
        level = np.clip(base / unit, -_LEVEL, _LEVEL)
        inputs = [relative(self.filled, here - np.arange(1, self.n_lags))]
        inputs += [relative(values, here) for values in self.slow]
        X = np.concatenate([*inputs, level[:, None]], axis=1)
        steps = np.arange(1, self.h + 1)
        same_phase = here + 1 + season_ago(self.h, self.season)
        ahead = [relative(values, same_phase) for values in self.by_phase]
        dated = self.season == _WEEK and self.long == _LONG[_WEEK]
        for k in range(self.long_seasons):
            turns = k + -(-steps // self.long)
            then = here + steps - turns * self.long
            before = relative(self.slow[1], here - (k + 1) * self.long)
            moved = relative(self.filled, then) - before
            ahead.append(np.where(then >= first, moved, 0.0))
            if dated:
                then = here + steps - np.rint(turns * _YEAR).astype(np.int64)
                usual = relative(self.by_phase[0], then - self.season)
                unusual = relative(self.filled, then) - usual
                ahead.append(np.where(then >= first, unusual, 0.0))
        targets = relative(self.filled, np.minimum(here + steps, T - 1))
        targets = np.where(here + steps < T, targets, np.nan)
        nothing = np.empty((series.size, self.h, 0))
        return Rows(
            series,
            at,
            base,
            unit,
            np.clip(X, -_FARTHEST, _FARTHEST),
            np.clip(np.stack(ahead, axis=2), -_FARTHEST, _FARTHEST) if ahead else nothing,
            np.clip(targets, -_FARTHEST, _FARTHEST),
        )


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


def _measure_units(values: Array, season: int) -> Array:
    """Return mean changes over a season up to every column; over a step before there is one."""
    found = np.full(values.shape, np.nan)
    for lag in dict.fromkeys((1, season)):
        change = np.abs(values[:, lag:] - values[:, :-lag])
        known = np.isfinite(change)
        counts = known.cumsum(axis=1)
        mean = np.where(known, change, 0.0).cumsum(axis=1) / np.maximum(counts, 1)
        found[:, lag:] = np.where(counts > 0, mean, found[:, lag:])
    known = np.isfinite(values)
    size = np.where(known, np.abs(values), 0.0).cumsum(axis=1)
    return np.where(found * known.cumsum(axis=1) > _ROUNDING * size, found, np.nan)


def _exponential_means(values: Array, season: int, alpha: float) -> Array:
    """Return exponential means of the values of a phase, up to and with every column.

    Before the first value of a phase, the mean is the first value of the series.
    """
    n, T = values.shape
    pad = -T % season
    table = np.pad(values, ((0, 0), (pad, 0)), constant_values=np.nan)
    table = table.reshape(n, -1, season)
    known = np.isfinite(table)
    first = np.take_along_axis(table, np.argmax(known, axis=1)[:, None], axis=1)
    # A system of equations m_t - (1 - alpha) m_{t-1} = alpha y_t:
    new = np.where(known, table, first).swapaxes(0, 1)
    right = np.concatenate([new[:1], alpha * new[1:]])
    bands = np.array([[1.0], [alpha - 1.0]]) * np.ones(len(new))
    means = solve_banded((1, 0), bands, right.reshape(len(new), -1), check_finite=False)
    means = means.reshape(new.shape).swapaxes(0, 1)
    means = np.where(known.cumsum(axis=1) > 0, means, np.nan).reshape(n, -1)[:, pad:]
    start = np.take_along_axis(values, np.argmin(np.isnan(values), axis=1)[:, None], axis=1)
    return np.where(np.isnan(means), start, means)
