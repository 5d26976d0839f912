r"""Maps with windows of many kinds, compared by how well they continue the series: a committee.

One map cannot know its windows beforehand. Where a series is sampled finely, neighboring values
say the same, and lags must lie apart; where it folds, older lags help or blur. So maps with several
numbers of lags, delays between them, and decays are fitted,

.. math:: z_{t+d} = z_t + b + \lambda \cdot x_t + \sum_j w_j\, e^{-\beta \lVert \delta \circ
    (x_t - x_j) \rVert^2}, \qquad x_t = (z_{t-(l-1)d}, \ldots, z_{t-d}, z_t)

each over d steps at once (of several sensors, the values of all of them stand for z), beside
analogs, which continue the series as its most similar past went on. They are learned from the first
part of the series, roll on through the rest of it, and those that stay close are learned again from
all of it. The forecast is their median, weighed by :math:`\text{error}^{-8}`; its own errors on the
rest of the series give the quantiles.

There is a basis function at each of up to `MOST_ROWS` windows. The weights solve
:math:`(K + \gamma I) w = y`, with b and :math:`\lambda` free. Width and :math:`\gamma` maximize the
evidence. Normal equations would lose half of the digits, which clean series need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dormqr, dpttrf, dpttrs, dsytrd
from scipy.special import ndtri

from rbfdiffnet.network.basis import squared_distances
from rbfdiffnet.network.network import Network
from rbfdiffnet.noise.members import Analogs, LaggedMap, Member
from rbfdiffnet.support.arrays import Array, Ints, Mask
from rbfdiffnet.support.progress import report_progress

#: Most windows that a map has a basis function at.
MOST_ROWS = 240

_LAGS = (2, 4, 6, 8, 12, 16)
_DECAYS = (1.0, 0.3)  # weight of the oldest lag in distances, for that of the latest
_PROBE = (10, 0.3)  # lags and decay with which delays are compared
_DELAYS = (0.06, 0.12, 0.18, 0.25, 0.35, 0.5)  # of a quarter of a period
_BEST_DELAYS = 2
_WIDTHS = (0.5, 1.0, 2.0, 4.0)  # in units of the median distance between windows
_PENALTIES = 10.0 ** np.arange(-10.0, 1.1)
_ROWS_PER_LAG = 4
_ROWS_FOR_WIDTH = 120  # at least, of those from which the width is chosen
_LEARNED = 0.7  # share of the series that maps are learned from before they are compared
_ORIGINS = 32
_FIRST_LOOK = slice(None, None, 4)  # origins that are looked at first
_HOPEFUL, _MOST_HOPEFUL = 1.5, 12  # times the lowest error, and number of maps, after a first look
_PERIODS = 2  # that maps are compared on
_FEWEST_STEPS, _MOST_SHARE = 20, 0.2  # the same in steps, and as a share of the series
_TOLD_STEPS = 40  # up to which errors for quantiles are measured, at least
_FARTHEST = 2.0  # error beyond which nothing gets worse, in standard deviations
_SHARPNESS = 8.0  # power of the errors that members are weighed by
_LEAST_WEIGHT = 0.01  # of the best member's
_WIDER = 1.3  # quantiles than those of errors by which members were chosen (66 chaotic systems)
_FEWEST_ERRORS = 4  # that quantiles are taken of
_FEWEST_FOR_GROWTH, _MOST_GROWTH = 4, 50.0  # steps, and the logarithm of how much spreads grow
_STEPS_ALIKE = 1.25  # factor between steps whose errors are looked at together
_MARGIN = 0.1  # of the range of the series, by which a forecast may leave it
_QUICK_LAGS, _QUICK_DELAY = (4, 8), 0.25  # of maps for a quick look; of a quarter of a period
_ANALOG_WIDTHS = (1.0, 2.0, 4.0)  # quarters of a period
_ALL = slice(None)

_Level = tuple[float, float]  # beta and penalty of a map


@dataclass(frozen=True)
class Committee:
    """Members, best first, their ``weight`` (m,), and how far off they were where held out.

    ``error`` is the mean size of the errors against what was observed, and ``errors`` (n, H, k) are
    those against the series that was learned from, for n origins, NaN where it had ended. Its
    standard deviation is ``scale`` (k,). Forecasts stay between ``low`` and ``high`` (k,).
    """

    members: tuple[Member, ...]
    weight: Array
    error: float
    errors: Array
    scale: Array
    low: Array
    high: Array

    @property
    def reach(self) -> int:
        """Number of latest values that the members look at."""
        return max(member.reach for member in self.members)

    @property
    def best_map(self) -> LaggedMap:
        """The best of the members that are maps."""
        return next(member for member in self.members if isinstance(member, LaggedMap))

    def forecast(self, history: Array, h: int) -> Array:
        """Forecast h values after a history (T, k), shape (h, k)."""
        paths = [member.roll(history[None], h, self.low, self.high)[0] for member in self.members]
        return weighted_median(np.array(paths), self.weight)

    def around(self, middle: Array, quantiles: Array) -> Array:
        """Return quantiles (h, k, q) around a forecast (h, k), of which .5 is the forecast.

        They are those of the errors around their median. Of n origins, the outer quantiles are
        those of n + 1, which hold what they promise. After the last step whose errors are known,
        they grow as errors did on the way there, up to those of unrelated values of the series.
        """
        middle = np.clip(middle, self.low, self.high)
        if np.all(quantiles == 0.5):
            return np.repeat(middle[:, :, None], quantiles.size, axis=2)
        (n, size, width), h = self.errors.shape, len(middle)
        levels = np.clip(0.5 + (quantiles - 0.5) * (n + 1) / n, 0.0, 1.0)
        steps = np.arange(1, size + 1)
        unrelated = np.sqrt(2.0) * self.scale[:, None] * ndtri(quantiles)  # as differences are
        away = np.empty((size, width, quantiles.size))
        for k in steps:
            alike = (steps * _STEPS_ALIKE >= k) & (steps <= k * _STEPS_ALIKE)
            errors = self.errors[:, alike].reshape(-1, width)
            errors = errors[np.isfinite(errors).all(axis=1)]
            if len(errors) < _FEWEST_ERRORS:  # hardly anything was observed then
                away[k - 1] = away[k - 2] if k > 1 else unrelated
                continue
            # Errors are forecast minus truth, so their sign turns.
            outer = np.quantile(errors, 1.0 - levels, axis=0).T
            away[k - 1] = _WIDER * (np.median(errors, axis=0)[:, None] - outer)
        spread = away[np.minimum(np.arange(h), size - 1)]
        if h > size:
            last, farther = away[-1], np.arange(1, h - size + 1)[:, None, None]
            grown = last * np.exp(np.minimum(self.growth[:, None] * farther, _MOST_GROWTH))
            most = np.maximum(np.abs(unrelated), np.abs(last))
            spread[size:] = np.clip(grown, -most, most)
        low, high = self.low[:, None], self.high[:, None]
        return np.asarray(np.clip(middle[:, :, None] + spread, low, high))

    @cached_property
    def growth(self) -> Array:
        """How much the logarithm of errors rises in a step, on the second half of those known."""
        known = np.isfinite(self.errors).all(axis=2).sum(axis=0)
        last = np.count_nonzero(known > 0.5 * len(self.errors))
        at = np.arange(last // 2, last)
        if at.size < _FEWEST_FOR_GROWTH:
            return np.zeros(self.scale.size)
        size = np.log(np.maximum(np.nanmean(np.abs(self.errors[:, at]), axis=0), 1e-300))
        return np.asarray(np.maximum(np.polyfit(at, size, 1)[0], 0.0))


def weighted_median(values: Array, weight: Array) -> Array:
    """Return the weighted median of m values along the first axis: (m, ...) becomes (...)."""
    order = values.argsort(axis=0, kind="stable")
    passed = np.cumsum(weight[order], axis=0)
    at = (passed >= 0.5 * weight.sum()).argmax(axis=0)
    middle = np.take_along_axis(order, at[None], axis=0)
    return np.asarray(np.take_along_axis(values, middle, axis=0)[0])


@dataclass(frozen=True)
class _Trial:
    """Series (T, k) to learn a committee from, and where its members are compared.

    ``runs`` (T,) are the numbers of the trajectories that values belong to, and 0 where they may
    not be learned from. ``histories`` (n, L, k) are those before each origin, as a forecast made
    there would see them; ``ahead`` (n, H, k) what came, NaN after the end of the series.
    """

    z: Array
    runs: Ints
    end: int
    histories: Array
    ahead: Array
    low: Array
    high: Array

    @classmethod
    def of(
        cls, z: Array, runs: Ints, observed: Array, histories: Array, origins: Ints, h: int
    ) -> _Trial:
        """Compare members on the last part of a standardized series."""
        ahead = values_ahead(observed, origins, h)
        margin = _MARGIN * np.ptp(z, axis=0)
        low, high = z.min(axis=0) - margin, z.max(axis=0) + margin
        return cls(z, runs, int(origins[0]), histories, ahead, low, high)

    def fit(
        self, n_lags: int, delay: int, decay: float, level: _Level | None = None
    ) -> LaggedMap | None:
        """Fit a map to the part before the origins."""
        early = slice(self.end)
        return fit_lagged(self.z[early], self.runs[early], n_lags, delay, decay, level)

    def fit_again(self, early: Member) -> Member:
        """Learn a member of the part before the origins from all values."""
        if isinstance(early, Analogs):
            return replace(early, past=self.z)
        assert isinstance(early, LaggedMap)
        shape = early.n_lags, early.delay, float(early.network.metric[0])
        level = float(early.network.beta[0]), early.penalty
        return fit_lagged(self.z, self.runs, *shape, level) or early

    def paths(self, member: Member, at: Mask | slice = _ALL, h: int = 0) -> Array:
        """Return the forecasts of a member from some origins, shape (n, H, k)."""
        return member.roll(self.histories[at], h or self.ahead.shape[1], self.low, self.high)

    def error(self, member: Member, at: Mask | slice = _ALL) -> float:
        """Return the mean error of a member's forecasts from some origins."""
        return mean_error(self.paths(member, at), self.ahead[at])


def horizon_of(size: int, quarter: int) -> int:
    """Number of steps that maps of a series are compared on: some periods, or a fifth of it."""
    return int(np.clip(4 * _PERIODS * quarter, _FEWEST_STEPS, max(_MOST_SHARE * size, 1)))


def told_of(size: int, quarter: int) -> int:
    """Number of steps whose errors give quantiles."""
    return max(horizon_of(size, quarter), int(min(_TOLD_STEPS, _MOST_SHARE * size)))


def origins_of(size: int, quarter: int) -> Ints:
    """Positions from which maps of a series roll on, after the part that they are learned from."""
    last = size - max(horizon_of(size, quarter) // 4, 1)
    return np.unique(np.linspace(_LEARNED * size, last, _ORIGINS).astype(np.int64))


def values_ahead(s: Array, origins: Ints, h: int) -> Array:
    """Return the h values of a series (T, k) from each origin on, NaN after its end: (n, h, k)."""
    steps = origins[:, None] + np.arange(h)
    return np.where((steps < len(s))[:, :, None], s[np.minimum(steps, len(s) - 1)], np.nan)


def mean_error(paths: Array, ahead: Array) -> float:
    """Return the mean size of errors (n, H, k), in standard deviations of the series.

    Far off is far off. Step t counts 1 / t, as in a mean over the logarithm of the time ahead.
    """
    return float(errors_until(paths - ahead)[-1])


def errors_until(errors: Array) -> Array:
    """Return the mean size of errors (n, H, k) up to each step, see `mean_error`; shape (H,)."""
    size = np.minimum(np.abs(errors), _FARTHEST)
    weight = np.isfinite(size) / np.arange(1.0, size.shape[1] + 1.0)[:, None]
    total, count = (np.nansum(v, axis=(0, 2)).cumsum() for v in (weight * size, weight))
    return np.asarray(total / np.maximum(count, 1e-300))


def learn_committee(
    z: Array,
    runs: Ints,
    observed: Array,
    histories: Array,
    origins: Ints,
    h: int,
    quarter: int,
    delay: int | None = None,
    n_lags: int | None = None,
    told: int = 0,
) -> Committee:
    """Learn a committee from a series (T, k) without gaps that repeats itself after 4 quarters.

    Values belong to trajectories, the numbers of which are ``runs`` (T,); those with 0 take no part
    in learning. ``observed`` (T, k), NaN where missing, is what members are to come close to on
    the held-out part: h steps after each of the ``origins`` (n,). ``histories`` (n, L, k) are the
    values before these, as they were known then. Lags and delay may be given. Errors of the
    committee are measured up to step ``told``, if that is beyond h.
    """
    usable = runs > 0
    shift, scale = z[usable].mean(axis=0), z[usable].std(axis=0)
    z, observed, histories = ((v - shift) / scale for v in (z, observed, histories))
    trial = _Trial.of(z, runs, observed, histories, origins, h)
    clean = values_ahead(np.where(usable[:, None], z, np.nan), origins, max(h, told))
    tried: list[tuple[float, Array, Member]] = []
    for paths, early in _hopeful_maps(trial, _choose_shapes(trial, quarter, delay, n_lags)):
        tried.append((mean_error(paths, trial.ahead), paths, early))
    if not tried:
        why = "there are gaps or outliers, perhaps"
        if delay is not None:
            why = f"give a delay shorter than {delay}, or fewer lags"
        raise ValueError(f"{len(z)} values are too few, or too much alike, to compare maps; {why}.")
    for width in sorted({max(2, round(quarter * share)) for share in _ANALOG_WIDTHS}):
        if 3 * width < trial.end and width <= histories.shape[1] and (runs == 1).all():
            paths = trial.paths(Analogs(z[: trial.end], width))
            tried.append((mean_error(paths, trial.ahead), paths, Analogs(z[: trial.end], width)))
    best_map = min(error for error, _, member in tried if isinstance(member, LaggedMap))
    best = max(min(error for error, *_ in tried), 1e-300)
    tried.sort(key=lambda one: one[0])
    weight = np.array([max(error / best, 1.0) ** -_SHARPNESS for error, *_ in tried])
    keep = [k for k, one in enumerate(tried) if weight[k] > _LEAST_WEIGHT or one[0] == best_map]
    kept = [tried[k][2] for k in keep]
    rolled = [trial.paths(own, h=told) for own in kept] if told > h else [tried[k][1] for k in keep]
    paths = weighted_median(np.array(rolled), weight[keep])
    members = [trial.fit_again(member) for member in kept]
    return Committee(
        tuple(_in_units(member, shift, scale) for member in members),
        weight[keep],
        mean_error(paths[:, :h], trial.ahead) * float(scale.mean()),
        (paths - clean) * scale,
        scale,
        trial.low * scale + shift,
        trial.high * scale + shift,
    )


def quick_error(s: Array, histories: Array, origins: Ints, quarter: int) -> float:
    """Return the error of the best of a few maps and of analogs, as `learn_committee` would.

    It takes a small part of the time. The series (T, 1) has no gaps.
    """
    shift, scale = float(s.mean()), float(s.std())
    z, seen = (s - shift) / scale, (histories - shift) / scale
    h = horizon_of(len(z), quarter)
    trial = _Trial.of(z, np.ones(len(z), dtype=np.int64), z, seen, origins, h)
    apart = max(1, round(_QUICK_DELAY * quarter))
    found: list[Member | None] = [trial.fit(size, apart, 1.0) for size in _QUICK_LAGS]
    found.append(Analogs(z[: trial.end], min(2 * quarter, trial.end // 4)))
    rolled = [m for m in found if m is not None and m.reach <= seen.shape[1]]
    return min((trial.error(m) for m in rolled), default=np.inf) * scale


def _hopeful_maps(
    trial: _Trial, shapes: Sequence[tuple[int, int, float]]
) -> list[tuple[Array, LaggedMap]]:
    """Fit maps of these shapes to the early values; return those worth a try, and their forecasts.

    They are compared from a few origins, and those that are far from the best are left out. Width
    and penalty are chosen from all values.
    """
    tried = []
    for k, shape in enumerate(shapes):
        report_progress(k / len(shapes))
        rows = _Rows.cut(trial.z, trial.runs, *shape)
        early = None if rows is None else trial.fit(*shape, rows.choose_level())
        if early is not None:
            paths = trial.paths(early, _FIRST_LOOK)
            tried.append((mean_error(paths, trial.ahead[_FIRST_LOOK]), paths, early))
    tried.sort(key=lambda one: one[0])
    limit = _HOPEFUL * tried[0][0] if tried else 0.0
    others = np.ones(len(trial.ahead), dtype=bool)
    others[_FIRST_LOOK] = False
    found = []
    for error, first, early in tried[:_MOST_HOPEFUL]:
        if error <= limit:
            paths = np.empty_like(trial.ahead)
            paths[_FIRST_LOOK], paths[others] = first, trial.paths(early, others)
            found.append((paths, early))
    return found


def fit_lagged(
    z: Array,
    runs: Ints,
    n_lags: int,
    delay: int,
    decay: float,
    level: _Level | None = None,
) -> LaggedMap | None:
    """Fit a map to a standardized series (T, k); None if it is too short, or windows are alike.

    Windows lie in one of the ``runs`` (T,), see `learn_committee`. Beta and penalty are chosen by
    evidence, or given.
    """
    rows = _Rows.cut(z, runs, n_lags, delay, decay)
    return None if rows is None else rows.fit(level or rows.choose_level())


@dataclass(frozen=True)
class _Rows:
    """Windows X (n, m) that a map has basis functions at, and the ``change`` (n, k) after them.

    Distances are measured in the ``metric`` (m,). ``flat`` are X and ones.
    """

    X: Array
    change: Array
    metric: Array
    delay: int

    @classmethod
    def cut(cls, z: Array, runs: Ints, n_lags: int, delay: int, decay: float) -> _Rows | None:
        """Cut windows of a series, see `fit_lagged`."""
        span, width = n_lags * delay + 1, z.shape[1]
        fewest = _ROWS_PER_LAG * (n_lags * width + 1)
        if len(z) < span + fewest:
            return None
        at = np.arange(n_lags + 1) * delay
        start = np.arange(len(z) - span + 1)
        own = runs[start[:, None] + at]
        start = start[(own[:, 0] > 0) & (own == own[:, :1]).all(axis=1)]
        if start.size < fewest:
            return None
        if start.size > MOST_ROWS:
            start = start[np.linspace(0, start.size - 1, MOST_ROWS).round().astype(np.int64)]
        rows = z[start[:, None] + at]
        X, change = rows[:, :-1].reshape(len(rows), -1), rows[:, -1] - rows[:, -2]
        metric = decay ** np.linspace(1.0, 0.0, n_lags) if n_lags > 1 else np.ones(1)
        return cls(X, change, np.repeat(metric, width), delay)

    @cached_property
    def flat(self) -> Array:
        return np.concatenate([self.X, np.ones((len(self.X), 1))], axis=1)

    @cached_property
    def squares(self) -> Array:
        """Squared distances (n, n)."""
        return squared_distances(self.X * self.metric, self.X * self.metric)

    def choose_level(self) -> _Level:
        """Return beta and penalty for which there is most evidence."""
        return _choose_width(self.squares, self.flat, self.change)[1:]

    def fit(self, level: _Level) -> LaggedMap | None:
        """Fit a map; None if rounding forbids."""
        (beta, penalty), (n, inputs), width = level, self.X.shape, self.change.shape[1]
        kernel = np.exp(-beta * self.squares)
        kernel[np.diag_indices_from(kernel)] += penalty
        try:
            factor = cho_factor(kernel)
        except np.linalg.LinAlgError:
            return None
        solved = cho_solve(factor, np.concatenate([self.change, self.flat], axis=1))
        of_change, of_flat = solved[:, :width], solved[:, width:]
        flat = self.flat.T
        linear = np.asarray(np.linalg.lstsq(flat @ of_flat, flat @ of_change, rcond=1e-13)[0])
        w = of_change - of_flat @ linear
        linear[-1 - width : -1] += np.eye(width)  # the change is from the latest values on
        network = Network(
            centers=self.X * self.metric,
            beta=np.full(n, beta),
            a=np.ones(1),
            w=w,
            linear=linear,
            x_shift=np.zeros(inputs),
            x_scale=np.ones(inputs),
            metric=self.metric,
            y_shift=np.zeros(width),
            y_scale=np.ones(width),
            n_lags=inputs,
            order=0,
        )
        return LaggedMap(network, self.delay, penalty)


def _choose_width(
    squares: Array, flat: Array, change: Array, widths: Sequence[float] = _WIDTHS
) -> tuple[float, float, float]:
    r"""Return the width, beta and the penalty for which there is most evidence.

    With K and y projected on what the ``flat`` features (n, k) cannot explain, and s the
    eigenvalues of K there, it is

    .. math:: E(\gamma) = (n - k) \log \sum_i \frac{y_i^2}{s_i + \gamma}
        + \sum_i \log (s_i + \gamma)

    summed over the columns y of the ``change`` (n, m); the second sum is the logarithm of a
    determinant. Of many rows, some choose the width.
    """
    apart = len(flat) // _ROWS_FOR_WIDTH
    if apart > 1 and len(widths) > 1:
        some = squares[::apart, ::apart], flat[::apart], change[::apart]
        widths = _choose_width(*some)[:1]
    n, k = flat.shape
    orthogonal, _ = np.linalg.qr(flat)
    rest = change - orthogonal @ (orthogonal.T @ change)
    middle = squares.size // 2
    typical = float(np.partition(squares, middle, axis=None)[middle])  # quicker than the median
    if not typical > 0.0:  # most windows of a series that rests are the same
        typical = float(squares.mean()) or 1.0
    best = np.inf, 1.0, 1.0, 1.0
    for width in widths:
        beta = 0.5 / (width**2 * typical)
        kernel = np.exp(-beta * squares)
        kernel -= orthogonal @ (orthogonal.T @ kernel)
        kernel -= (kernel @ orthogonal) @ orthogonal.T
        total, sizes = _solve_for_all(kernel, rest)
        sizes -= k * np.log(_PENALTIES)  # of the flat directions, which K does not have
        evidence = ((n - k) * np.log(np.maximum(total, 1e-300)) + sizes).sum(axis=0)
        at = int(evidence.argmin())
        best = min(best, (float(evidence[at]), width, beta, float(_PENALTIES[at])))
    return best[1:]


def _solve_for_all(kernel: Array, y: Array) -> tuple[Array, Array]:
    r"""Return :math:`y' (K + \gamma I)^{-1} y` (m, p) and :math:`\log |K + \gamma I|` (p,).

    For p penalties and the columns of y (n, m). K becomes tridiagonal once, by rotations, which
    takes a third of the time of its eigenvectors, and every penalty is a few passes over n values.
    """
    n, width = y.shape
    rotations, diagonal, beside, tau, _ = dsytrd(kernel.T, lower=1, lwork=64 * n)
    rest = dormqr("L", "T", rotations[1:, :-1], tau, y[1:], 64 * width)[0]
    rotated = np.concatenate([y[:1], rest])
    # One matrix holds those of all penalties, the largest first: where it fails, it does for all
    # that are smaller.
    falling = _PENALTIES[::-1]
    between = np.append(beside, 0.0)
    d, e, failed = dpttrf(
        (diagonal + falling[:, None]).ravel(), np.tile(between, falling.size)[:-1]
    )
    good = (failed - 1) // n if failed else falling.size
    d, e = d[: good * n], e[: good * n - 1]
    solved = dpttrs(d, e, np.tile(rotated, (good, 1)))[0].reshape(good, n, width)
    total, sizes = np.full((width, falling.size), np.inf), np.zeros(falling.size)
    total[:, :good] = (rotated * solved).sum(axis=1).T
    sizes[:good] = np.log(d).reshape(good, n).sum(axis=1)
    return total[:, ::-1], sizes[::-1]


def _choose_shapes(
    trial: _Trial, quarter: int, delay: int | None, n_lags: int | None
) -> list[tuple[int, int, float]]:
    """Return numbers of lags, delays and decays to compare.

    Delays are compared first, with windows of one kind. A delay of one step, where it is no share
    of a quarter, is for systems that hop between lobes, whose quarter is the time in a lobe. It
    joins the best ones if it would be one of them, and takes nobody's place.
    """
    delays = sorted({max(1, round(quarter * share)) for share in _DELAYS})
    if delay is not None:
        delays = [delay]
    elif len(delays) > _BEST_DELAYS:
        errors = {}
        for apart in sorted({1, *delays}):
            probe = trial.fit(_PROBE[0], apart, _PROBE[1])
            errors[apart] = np.inf
            if probe is not None and probe.reach <= trial.histories.shape[1]:
                errors[apart] = trial.error(probe, _FIRST_LOOK)
        delays = sorted(delays, key=errors.__getitem__)[:_BEST_DELAYS]
        if errors[1] < errors[delays[-1]]:
            delays.append(1)
    numbers = _LAGS if n_lags is None else (n_lags,)
    longest = trial.histories.shape[1]
    return [
        (size, apart, decay)
        for size in numbers
        for apart in delays
        for decay in _DECAYS
        if size * apart <= longest
    ]


def _in_units(member: Member, shift: Array, scale: Array) -> Member:
    """Return a member of a standardized series for the series itself."""
    if isinstance(member, Analogs):
        return replace(member, past=member.past * scale + shift)
    assert isinstance(member, LaggedMap)
    network = replace(
        member.network,
        x_shift=np.tile(shift, member.n_lags),
        x_scale=np.tile(scale, member.n_lags),
        y_shift=shift,
        y_scale=scale,
    )
    return replace(member, network=network)
