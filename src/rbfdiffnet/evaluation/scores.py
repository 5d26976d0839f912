r"""Errors of backtests: of every window, of every series, of all; and who was better.

For a window of h known values, with errors :math:`e_k = \hat y_{T+k} - y_{T+k}`,

.. math::
    \mathrm{MASE} = \frac{\frac1h \sum_k |e_k|}{\operatorname{mean}_{t \le T} |y_t - y_{t-m}|},
    \qquad \mathrm{RMSSE} = \sqrt{\frac{\frac1h \sum_k e_k^2}
    {\operatorname{mean}_{f < t \le T} (y_t - y_{t-1})^2}}

where m is the length of a season, or 1 where not more than a season was seen, and f the time of the
first value that is not zero. Both scales are from the values before the window, on the regular grid
of the series, and skip missing values. A window whose scale is zero has neither error, whatever the
forecasts. The MASE of a series is the mean over its windows, that of a model the mean over series,
and so is RMSSE; MAE, bias and the scores of intervals and quantiles are over rows.

All models are scored on the same rows: those whose value and whose forecasts of every model are
known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rbfdiffnet.evaluation.backtest_frames import BASELINE, LAST, BacktestRows, ModelColumns
from rbfdiffnet.evaluation.kinds import CLOSE, Holding
from rbfdiffnet.evaluation.losses import interval_score, quantile_crps
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.support.arrays import Array, Ints
from rbfdiffnet.support.text import format_number, format_percent

_EQUAL = 0.01  # smaller differences of errors are not called differences
_CHANCE = 2.0  # standard deviations that chance may take
_FEWEST = 10  # series that a verdict needs; half of them in smaller panels


@dataclass(frozen=True)
class Scores:
    """Scores of models on every series; NaN for series without a score.

    `mase`, `rmsse`, `mae` and `bias` (mean of forecast minus value) have shape (n_series,
    n_models). `rows` counts the scored rows of every series, `size` is the mean absolute value in
    these rows. `left_out` counts rows without a score, `windows` the windows of the series with
    most, `steps` the steps of the longest window.

    Of intervals and quantiles there are sums over series. `inside`, by model and level, has shape
    (steps, 2): how many values were inside their interval, and of how many, by step ahead;
    `winkler` is the sum of their Winkler scores. `losses`, for models with quantiles, has shape
    (2,): the sum of quantile losses, approximate CRPS, and of the sizes of the values. `below`, of
    the same models, has shape (2, n_quantiles): how many values were at or below each quantile, and
    of how many.
    `holdings`, for models with intervals, tell whether they held what they promise.
    """

    models: tuple[ModelColumns, ...]
    mase: Array
    rmsse: Array
    mae: Array
    bias: Array
    rows: Ints
    size: Array
    left_out: int
    windows: int
    steps: int
    inside: Mapping[tuple[str, str], Ints]
    winkler: Mapping[tuple[str, str], float]
    losses: Mapping[str, Array]
    below: Mapping[str, Ints]
    holdings: Mapping[str, Holding]

    @classmethod
    def concatenate(cls, parts: Sequence[Scores]) -> Scores:
        """Put scores of the same models on different series together, one after the other."""
        first = parts[0]
        by_series = ("mase", "rmsse", "mae", "bias", "rows", "size")
        joined = {key: np.concatenate([getattr(part, key) for part in parts]) for key in by_series}
        inside = {key: np.zeros((max(p.steps for p in parts), 2), int) for key in first.inside}
        for part in parts:
            for key, counts in part.inside.items():
                inside[key][: len(counts)] += counts
        return cls(
            first.models,
            **joined,
            left_out=sum(part.left_out for part in parts),
            windows=max(part.windows for part in parts),
            steps=max(part.steps for part in parts),
            inside=inside,
            winkler={key: sum(part.winkler[key] for part in parts) for key in first.winkler},
            losses={key: np.sum([p.losses[key] for p in parts], axis=0) for key in first.losses},
            below={key: np.sum([p.below[key] for p in parts], axis=0) for key in first.below},
            holdings={
                key: Holding.concatenate([part.holdings[key] for part in parts])
                for key in first.holdings
            },
        )

    @property
    def names(self) -> list[str]:
        """Names of the models."""
        return [model.name for model in self.models]

    @property
    def measure(self) -> str:
        """What models are compared by: MASE, or MAE where no series has a MASE."""
        return "MASE" if np.isfinite(_average_series(self.mase)).all() else "MAE"

    @property
    def n_scored(self) -> int:
        """How many series have scores."""
        return int(np.count_nonzero(self.rows))

    @property
    def best(self) -> Array:
        """1 for the model with the lowest MAE on a series, shared where several have it."""
        lowest = self.mae == np.min(self.mae, axis=1, keepdims=True)
        return divide(lowest.astype(np.float64), lowest.sum(axis=1, keepdims=True))

    def total(self) -> dict[str, Array]:
        """Return the scores of each model on all series, by name.

        ``MASE``, ``RMSSE`` and ``best`` are means over series, ``MAE`` and ``bias`` over rows;
        ``relative MAE`` and ``relative bias`` are shares of the mean size of the values.
        """
        share = divide(self.rows, self.rows.sum())
        mae, bias = _average_rows(share, self.mae), _average_rows(share, self.bias)
        size = _average_rows(share, self.size[:, None])
        return {
            "MASE": _average_series(self.mase),
            "RMSSE": _average_series(self.rmsse),
            "MAE": mae,
            "bias": bias,
            "relative MAE": divide(mae, size),
            "relative bias": divide(bias, size),
            "best": _average_series(self.best),
        }

    def coverage(self, model: str, level: str) -> float:
        """Return the share of values inside an interval."""
        inside, of = self.inside[model, level].sum(axis=0)
        return float(inside / of) if of else float("nan")

    def coverage_by_step(self, model: str, level: str) -> Array:
        """Return the share of values inside an interval by step ahead, (steps,)."""
        return divide(*self.inside[model, level].T)

    def mean_winkler(self, model: str, level: str) -> float:
        """Return the mean Winkler score of an interval, in units of the values."""
        return float(divide(self.winkler[model, level], self.inside[model, level][:, 1].sum()))

    def weighted_quantile_loss(self, model: str) -> float:
        """Return the sum of quantile losses over that of the sizes of values, NaN without any."""
        return float(divide(*self.losses[model])) if model in self.losses else float("nan")

    def share_below(self, model: str) -> Array:
        """Return the share of values at or below each quantile, (n_quantiles,), empty without."""
        return divide(*self.below[model]) if model in self.below else np.empty(0)


def score_models(
    panel: Panel,
    rows: BacktestRows,
    columns: Mapping[str, Array],
    target: str,
    models: Sequence[ModelColumns],
    season_length: int,
) -> Scores:
    """Score models by columns of shape (n_rows,): values, forecasts and ends of intervals.

    `rows` says where the rows stand in the panel, from which errors take their scale.
    """
    n, actual = panel.n_series, columns[target]
    forecasts = np.stack([columns[model.name] for model in models], axis=1)
    there = rows.on_grid & (rows.series >= 0)
    known = there & np.isfinite(actual) & np.isfinite(forecasts).all(axis=1)
    series, y = rows.series[known], actual[known]
    errors = forecasts[known] - y[:, None]

    keys, window = np.unique(np.stack([series, rows.seen[known]]), axis=1, return_inverse=True)
    window = window.ravel()
    owner, seen = keys
    seasonal, single = _scales(panel, owner, seen, season_length)
    absolute = _average_groups(np.abs(errors), window, len(owner))
    squared = _average_groups(errors**2, window, len(owner))
    mase = divide(absolute, seasonal[:, None])
    rmsse = scale_squared_error(squared, single[:, None])
    ahead = rows.ahead[known]
    steps = int(ahead.max()) if len(y) else 0
    inside, winkler, losses, below = {}, {}, {}, {}
    for model in models:
        for level in model.levels:
            low, high = (columns[end][known] for end in model.ends(level))
            use = np.isfinite(low) & np.isfinite(high)
            within = use & (low <= y) & (y <= high)
            counts = [np.bincount(ahead[mask], minlength=steps + 1)[1:] for mask in (within, use)]
            inside[model.name, level] = np.stack(counts, axis=1)
            score = interval_score(y[use], low[use], high[use], float(level) / 100.0)
            winkler[model.name, level] = float(score.sum())
        quantiles = model.by_probability()
        if len(quantiles) > 1:
            found = np.stack([columns[name][known] for name in quantiles.values()], axis=1)
            all_known = np.isfinite(found).all(axis=1)
            size, loss = np.abs(y), quantile_crps(y, found, [*quantiles])
            losses[model.name] = np.array([part[all_known].sum() for part in (loss, size)])
            counts = (y[:, None] <= found)[all_known].sum(axis=0)
            below[model.name] = np.stack([counts, np.full(len(quantiles), all_known.sum())])
    return Scores(
        tuple(models),
        mase=_average_groups(mase, owner, n),
        rmsse=_average_groups(rmsse, owner, n),
        mae=_average_groups(np.abs(errors), series, n),
        bias=_average_groups(errors, series, n),
        rows=np.bincount(series, minlength=n),
        size=_average_groups(np.abs(y)[:, None], series, n)[:, 0],
        left_out=int((~known).sum()),
        windows=int(np.bincount(owner).max()) if len(owner) else 0,
        steps=steps,
        inside=inside,
        winkler=winkler,
        losses=losses,
        below=below,
        holdings={
            model.name: Holding.count(panel, rows, columns, target, model)
            for model in models
            if model.levels
        },
    )


def _scales(panel: Panel, series: Ints, seen: Ints, season_length: int) -> tuple[Array, Array]:
    """Return the scales of windows from the first `seen` values of their series, shape (n,) each.

    The first is the mean absolute change over a season, or over one step where not more than a
    season was seen; the second is the mean squared step. Both are NaN where no change is known.
    """
    starts = panel.offsets[series]
    stops = np.minimum(starts + seen, panel.offsets[series + 1])
    seasonal = np.full(len(series), np.nan)
    lags = np.where(seen > season_length, season_length, 1)
    for lag in np.unique(lags).tolist():
        own = lags == lag
        seasonal[own] = mean_change(panel.y, starts[own], stops[own], lag, power=1)
    return seasonal, mean_squared_step(panel.y, starts, stops)


def _average_groups(values: Array, group: Ints, n: int) -> Array:
    """Average the known values of each column in each group; a row has all values or none."""
    good = np.isfinite(values).all(axis=1)
    group, values = group[good], values[good]
    sums = np.stack([np.bincount(group, column, n) for column in values.T], axis=1)
    return divide(sums, np.bincount(group, minlength=n)[:, None])


def _average_series(scores: Array) -> Array:
    """Average over the series that have scores."""
    good = np.isfinite(scores).all(axis=1)
    if not good.any():
        return np.full(scores.shape[1], np.nan)
    return np.asarray(scores[good].mean(axis=0))


def _average_rows(share: Array, values: Array) -> Array:
    """Average over rows, given means of series and their shares of all rows."""
    if not np.isfinite(share).all():
        return np.full(values.shape[1], np.nan)
    return np.asarray(share @ np.where(share[:, None] > 0.0, values, 0.0))


# Scales: how much a series changes from step to step, over the values that were known. Segments of
# the flat array `y` go from `start` up to but not including `stop`.


def mean_change(y: Array, starts: Ints, stops: Ints, lag: int, power: int) -> Array:
    """Average |y_t - y_{t-lag}|**power over each segment; NaN where no change is known."""
    changes = np.abs(y[lag:] - y[:-lag]) ** power
    known = ~np.isnan(changes)
    counts = _sum_segments(known.astype(np.float64), starts, stops - lag)
    return divide(_sum_segments(np.where(known, changes, 0.0), starts, stops - lag), counts)


def mean_squared_step(y: Array, starts: Ints, stops: Ints) -> Array:
    """Average the squared steps of each segment from its first value that is not zero (M5)."""
    sold = np.flatnonzero(np.nan_to_num(y) != 0.0)
    first = np.append(sold, y.size)[np.searchsorted(sold, starts)]
    return mean_change(y, np.minimum(first, stops), stops, lag=1, power=2)


def scale_squared_error(squared: Array, scale: Array) -> Array:
    """Return the RMSSE: the root of a mean squared error, in units of the root of its scale."""
    return divide(np.sqrt(squared), np.sqrt(scale))


def divide(values: npt.ArrayLike, by: npt.ArrayLike) -> Array:
    """Divide; the quotient is NaN where the divisor is not above zero, or next to nothing."""
    top, bottom = np.broadcast_arrays(np.asarray(values, float), np.asarray(by, float))
    quotient = np.full(top.shape, np.nan)
    with np.errstate(over="ignore"):
        np.divide(top, bottom, out=quotient, where=bottom > 0.0)
    quotient[np.isinf(quotient)] = np.nan
    return quotient


def _sum_segments(values: Array, starts: Ints, stops: Ints) -> Array:
    """Sum the values of segments, which may overlap; 0 for empty ones."""
    sums = np.zeros(len(starts))
    filled = stops > starts
    if filled.any():
        ends = np.stack([starts[filled], stops[filled]], axis=1).ravel()
        sums[filled] = np.add.reduceat(np.append(values, 0.0), ends)[::2]
    return sums


# Who was better, by how much, and on how many series: or that this is not known.


@dataclass(frozen=True)
class Comparison:
    """Two models on the same rows.

    The measure is MASE, or MAE where no series has a MASE. The first model had the lower MAE on
    `closer` series of the `n_scored` that were scored, of the `n_series` that there are.
    """

    model: str
    other: str
    measure: str
    mine: float
    theirs: float
    closer: int
    n_scored: int
    n_series: int

    @property
    def share(self) -> float:
        """How much higher the error of the first is, as a share of the other's."""
        if self.theirs > 0.0:
            return self.mine / self.theirs - 1.0
        return math.inf if self.mine > self.theirs else 0.0

    @property
    def outcome(self) -> str:
        """``"won"``, ``"lost"``, ``"equal"``, or ``"unknown"`` from too few series or values."""
        few = self.n_scored < (_FEWEST if self.n_series >= _FEWEST else self.n_series / 2)
        if few or not (math.isfinite(self.mine) and math.isfinite(self.theirs)):
            return "unknown"
        if abs(self.share) < _EQUAL:
            return "equal"
        return "won" if self.share < 0.0 else "lost"


def compare(scores: Scores, model: str, other: str, n_series: int) -> Comparison:
    """Compare two of the models that were scored; `n_series` counts series scored or not."""
    mine, theirs = scores.names.index(model), scores.names.index(other)
    error = scores.total()[scores.measure]
    closer = int(np.count_nonzero(scores.mae[:, mine] < scores.mae[:, theirs]))
    errors = float(error[mine]), float(error[theirs])
    return Comparison(model, other, scores.measure, *errors, closer, scores.n_scored, n_series)


def find_better_rule(scores: Scores) -> str:
    """Return the name of the better of the simple rules, which a model has to beat."""
    error = scores.total()[scores.measure]
    rules = [name for name in (BASELINE, LAST) if name in scores.names]
    return min(rules, key=lambda name: float(error[scores.names.index(name)]))


def describe_comparison(found: Comparison) -> str:
    """Say who won, by how much, and on how many series."""
    if not (math.isfinite(found.mine) and math.isfinite(found.theirs)):
        return f"{found.model} and {found.other} cannot be compared: no values to compare with."
    mine, theirs = (format_number(value) for value in (found.mine, found.theirs))
    few = found.n_scored < found.n_series
    count = f"{found.n_scored:,}{f' of {found.n_series:,}' if few else ''} series"
    both = f"{found.measure} {mine} and {theirs}"
    if found.outcome == "unknown":
        return f"{found.model} and {found.other}: no verdict from {count} ({both})."
    closer = f"; closer on {found.closer:,}" if found.n_scored > 1 else ""
    if found.outcome == "equal":
        return f"{found.model} and {found.other} are about equal: {both} ({count}{closer})."
    result, side = ("won against", "below") if found.outcome == "won" else ("lost to", "above")
    gap = f"{format_percent(abs(found.share))} " if math.isfinite(found.share) else ""
    return (
        f"{found.model} {result} {found.other}: its {found.measure}, {mine}, is {gap}{side} "
        f"{theirs} ({count}{closer})."
    )


# Whether intervals hold what they promise, near and far ahead: or that this may be chance.


@dataclass(frozen=True)
class Coverage:
    """How many of `n` values, of the steps `first` to `last` ahead, an interval held.

    `level` is the share that it promises.
    """

    level: float
    inside: int
    n: int
    first: int
    last: int

    @classmethod
    def count(
        cls, scores: Scores, model: str, level: str, first: int = 1, last: int | None = None
    ) -> Coverage:
        """Count the values inside an interval of a model, of all steps ahead or some."""
        last = scores.steps if last is None else last
        inside, n = scores.inside[model, level][first - 1 : last].sum(axis=0).tolist()
        return cls(float(level) / 100.0, inside, n, first, last)

    @property
    def share(self) -> float:
        """The share of values inside, NaN without values."""
        return self.inside / self.n if self.n else math.nan

    @property
    def by_chance(self) -> float:
        r"""How far the share may be from the level without meaning anything.

        .. math:: 2 \sqrt{\frac{\gamma (1 - \gamma)}{n / \sqrt h}}

        Errors of a window go together, so h of them count as :math:`\sqrt h`.
        """
        steps = self.last - self.first + 1
        spread = self.level * (1.0 - self.level) * math.sqrt(steps)
        return _CHANCE * math.sqrt(spread / self.n) if self.n else math.inf

    @property
    def outcome(self) -> str:
        """``"close"`` to the level, off by ``"chance"``, ``"narrow"``, ``"wide"`` or ``"unknown"``.

        The last is that of no values.
        """
        gap = self.share - self.level
        if not self.n:
            return "unknown"
        if abs(gap) <= CLOSE:
            return "close"
        if abs(gap) <= self.by_chance:
            return "chance"
        return "narrow" if gap < 0.0 else "wide"

    def __str__(self) -> str:
        some = (
            f"steps {self.first} to {self.last}" if self.last > self.first else f"step {self.last}"
        )
        return f"{format_percent(self.share)} in {some}"


def compare_near_and_far(
    scores: Scores, model: str, level: str
) -> tuple[Coverage, Coverage] | None:
    """Return the first and the last third of the steps if their shares inside differ a lot."""
    third, last = scores.steps // 3, scores.steps
    near = Coverage.count(scores, model, level, 1, third)
    far = Coverage.count(scores, model, level, last - third + 1, last)
    chance = math.hypot(near.by_chance, far.by_chance)
    return (near, far) if abs(near.share - far.share) > max(2.0 * CLOSE, chance) else None


def describe_coverage(scores: Scores, model: str, level: str) -> str | None:
    """Say that intervals are far off, or far off near or far ahead; None where they are not."""
    found = Coverage.count(scores, model, level)
    both = compare_near_and_far(scores, model, level)
    opinion = {"narrow": ": too narrow", "wide": ": wider than they need to be"}
    if found.outcome not in opinion and both is None:
        return None
    parts = "" if both is None else f" ({both[0]}, {both[1]})"
    return (
        f"{model}'s {level} % intervals held {format_percent(found.share)} of the values"
        f"{opinion.get(found.outcome, '')}{parts}."
    )
