r"""One network for all series, with an output for every step ahead.

.. math:: \frac{\hat y_{t+k} - y_t}{d_t} = \lambda_k \cdot x + b_k
    + \sum_{j=1}^{c} w_{kj} \, a_k \cdot \nabla \varphi_j(x)

a linear part and differential basis functions of order 1 along the direction :math:`a_k` in which
the linear part rises, least absolute error, recent rows counting more. The centers are shared by
all steps. There is a row for each origin of each series:

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

from rbfdiffnet.models.stack.histories import Histories
from rbfdiffnet.network.basis import GaussianBasis, squared_distances
from rbfdiffnet.network.centers import kmeans
from rbfdiffnet.series.naive import season_ago
from rbfdiffnet.support.arrays import Array, Ints, Mask
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
_VALUES_AT_ONCE = 2**19  # of inputs

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

    Without centers the model is linear. ``maker`` cuts the rows of these series. Steps ahead are
    spread over ``n_jobs`` threads.
    """
    maker = maker or RowMaker.of(histories, choose_lags(histories), h)
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
    found = _learn(train, now, _age(histories, train), n_centers, h, _FEW_ROWS, n_jobs)
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

    ``forecast`` makes them for series that end earlier, (number of series, h or more).
    """
    h = forecasts.shape[1]
    maker = maker or RowMaker.of(histories, choose_lags(histories), h)
    train, now = maker.training_rows(_ROWS_TO_START_FROM), maker.latest_rows()
    n_steps = _count_learnable(train)
    if not n_steps:
        return forecasts
    rows = zip(train.series, histories.starts[train.series], train.at, strict=True)
    earlier = forecast([histories.values[i, first : at + 1] for i, first, at in rows])[:, :h]
    train, start = train.start_from(earlier), now.start_from(forecasts[now.series])
    age = _age(histories, train)
    found = _learn(train, start, age, 0, n_steps, _FEW_ROWS_TO_START, n_jobs)
    found = np.pad(found, ((0, 0), (0, h - n_steps)), mode="edge")  # no row reaches so far
    corrected = forecasts.copy()
    corrected[now.series] += now.unit[:, None] * found
    return corrected


def _count_learnable(rows: Rows) -> int:
    """Return the number of steps ahead with rows enough."""
    return int((np.isfinite(rows.targets).sum(axis=0) >= _FEWEST_ROWS).sum())


def _age(histories: Histories, rows: Rows) -> Array:
    """Return weights of rows (n,): recent ones count more."""
    half_life = max(histories.usual_length / 2.0, 2.0 * histories.season)
    return np.asarray(0.5 ** ((histories.values.shape[1] - 1 - rows.at) / half_life))


def _learn(
    train: Rows, now: Rows, weight: Array, n_centers: int, h: int, few: float, n_jobs: int
) -> Array:
    """Learn the targets of rows, and return those of other rows (n, h); some steps at a time."""
    shift, scale = _weighted_moments(train.X, weight)
    X, latest = (train.X - shift) / scale, (now.X - shift) / scale
    bases = _place_bases(X, latest, n_centers)
    width = X.shape[1] + train.ahead.shape[2] + 1 + n_centers
    size = max(_VALUES_AT_ONCE // ((len(X) + len(latest)) * width), 1)
    found = np.empty((now.series.size, h))

    def learn(steps: slice) -> None:
        y = train.targets[:, steps].T
        rows, then = (part.ahead[:, steps].swapaxes(0, 1) for part in (train, now))
        with np.errstate(all="ignore"):  # in this thread
            found[:, steps] = _learn_steps(X, latest, rows, then, y, weight, bases, few).T

    parallel_map(learn, [slice(k, min(k + size, h)) for k in range(0, h, size)], n_jobs)
    return found


def _learn_steps(
    X: Array,
    latest: Array,
    ahead: Array,
    then: Array,
    targets: Array,
    weight: Array,
    bases: tuple[GaussianBasis, GaussianBasis] | None,
    few: float,
) -> Array:
    """Return targets (k, n) of the latest rows for k steps, learned from others (k, N).

    Inputs of the steps, ``ahead`` (k, N, q) and ``then`` (k, n, q), join those of all steps.
    """
    known = np.isfinite(targets)
    y, v = np.where(known, targets, 0.0), np.where(known, weight, 0.0)
    shift, scale = _weighted_moments(ahead, v)
    inputs = _join_inputs(X, (ahead - shift) / scale)
    future = _join_inputs(latest, (then - shift) / scale)
    n_inputs = inputs.shape[2] - 1
    penalty = np.zeros((len(y), n_inputs + 1))
    penalty[:, :-1] = _LINEAR + few * n_inputs / v.sum(axis=1, keepdims=True)
    if bases is not None:
        rises = fit_least_absolute(inputs, y, v, penalty, steps=0)[:, : X.shape[1]]
        rises /= np.linalg.norm(rises, axis=1, keepdims=True) + 1e-300
        smooth, smooth_future = (np.stack([b.contract(a).T for a in rises]) for b in bases)
        _, unit = _weighted_moments(smooth, known)
        inputs = np.concatenate([smooth / unit, inputs], axis=2)
        future = np.concatenate([smooth_future / unit, future], axis=2)
        rough = np.full((len(y), smooth.shape[2]), _SMOOTH)
        penalty = np.concatenate([rough, penalty], axis=1)
    inside = known[:, :, None]
    low = np.where(inside, inputs, np.inf).min(axis=1, keepdims=True)
    high = np.where(inside, inputs, -np.inf).max(axis=1, keepdims=True)
    n_solves = _SOLVES if len(X) > _MANY else _MORE_SOLVES
    b = fit_least_absolute(inputs, y, v, penalty, steps=n_solves)
    # Not outside of the rows:
    return np.asarray((np.clip(future, low, high) @ b[:, :, None])[:, :, 0])


def _join_inputs(X: Array, ahead: Array) -> Array:
    """Return inputs of all steps, inputs of each, and a one, (k, N, p + q + 1)."""
    shape = (*ahead.shape[:2], X.shape[1])
    return np.concatenate([np.broadcast_to(X, shape), ahead, np.ones((*shape[:2], 1))], axis=2)


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


def fit_least_absolute(X: Array, y: Array, weight: Array, penalty: Array, steps: int = 3) -> Array:
    r"""Return coefficients (p,) of least absolute error for inputs X (n, p) and targets y (n,).

    .. math:: \min_b \sum_i v_i |r_i| + \frac{1}{2 s} \sum_i v_i \sum_j \lambda_j b_j^2, \qquad
        r_i = y_i - x_i \cdot b, \qquad \frac{1}{s} = \frac{\sum_i v_i / |r_i|}{\sum_i v_i}

    The size s of the residuals, their harmonic mean, makes the penalty :math:`\lambda` (p,)
    independent of the units of y; it is in units of the mean squared input. Every solve is a
    weighted ridge regression whose weights :math:`v_i / \max(|r_i|, \epsilon)`, scaled to the sum
    of v, come from the residuals of the solve before. ``weight`` (n,) is v, and ``steps`` the
    number of reweighted solves; 0 leaves the least squares. All arrays may have further axes
    before these, for several problems at once.
    """
    total = weight.sum(axis=-1, keepdims=True)
    least = 1e-12 * np.abs(y).max(axis=-1, keepdims=True)
    least[least == 0.0] = 1e-12
    diagonal = np.arange(X.shape[-1])
    now = weight
    for step in range(steps + 1):
        root = np.sqrt(now)
        weighted = X * root[..., None]
        turned = np.swapaxes(weighted, -1, -2)
        gram = turned @ weighted  # a product with itself takes half the time
        gram[..., diagonal, diagonal] += total * (penalty + _JITTER)
        b = np.linalg.solve(gram, turned @ (root * y)[..., None])
        if step < steps:
            away = np.abs(y - (X @ b)[..., 0])
            near = _NEAR * _median_of_known(away, weight > 0.0)
            now = weight / np.maximum(away, np.maximum(near, least))
            now *= total / now.sum(axis=-1, keepdims=True)
    return np.asarray(b[..., 0])


def _median_of_known(values: Array, known: Mask) -> Array:
    """Return medians (..., 1) of the known ones of values (..., n)."""
    ordered = np.sort(np.where(known, values, np.inf), axis=-1)
    count = known.sum(axis=-1, keepdims=True)
    middle = [np.take_along_axis(ordered, k, axis=-1) for k in ((count - 1) // 2, count // 2)]
    return np.asarray(np.mean(middle, axis=0))


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
    means = np.empty_like(table)
    mean = np.full((n, season), np.nan)
    for k in range(table.shape[1]):
        new = table[:, k]
        mean = np.where(np.isnan(mean), new, mean)
        mean = np.where(np.isnan(new), mean, mean + alpha * (new - mean))
        means[:, k] = mean
    first = np.take_along_axis(values, np.argmin(np.isnan(values), axis=1)[:, None], axis=1)
    means = means.reshape(n, -1)[:, pad:]
    return np.where(np.isnan(means), first, means)
