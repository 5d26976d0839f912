r"""Train one network on the rows of many series: cross-learning.

Penalties are chosen on the latest fifth of every series. Where the settings allow it the network is
trained on sufficient statistics (`network.sufficient_statistics`), and then it can keep on
learning: rows that become known later are added to them.

.. math:: S \leftarrow S + \sum_{n\ \text{new}} z_n z_n'

The basis, the penalties and the preparations of the series stay; the weights are solved anew. That
takes as long as the new rows and one solution do, however long the history is. A row is learned
once, as it looks when its last target becomes known: whether a value is an outlier, and what a gap
is filled with, is not reconsidered later. Values so far from the range a series had when its
preparation was fixed that no forecast may reach them are not learned, lest one series that has
outgrown its scale spoil the network of all.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np

from rbfdiffnet.models.networks.series_model import SeriesModel
from rbfdiffnet.models.networks.window_model import FEWEST_ROWS, TrainingRows, WindowModel
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.network.sufficient_statistics import MOST_COLUMNS, SufficientStatistics
from rbfdiffnet.network.train import Settings
from rbfdiffnet.series.prepare import GAP_CONTEXT_SEASONS
from rbfdiffnet.series.series import Series
from rbfdiffnet.support.arrays import Array, Arrays, Ints
from rbfdiffnet.support.parallel import SINGLE_MACHINE, flatten
from rbfdiffnet.support.progress import progress_between, report_progress

Penalties = tuple[float, float]  # on the RBF part and on the linear part

_MOST_SHARED_ROWS = 100_000
_MOST_VALIDATED_ROWS = 20_000
_WIDTH_FACTOR = 4.0  # where it is not given
#: Penalties on the RBF part and on the linear part that a shared network may have.
_PENALTIES = [(a, b) for a in (1e-4, 1e-2, 1.0, 1e9) for b in (1e-4, 1e-2, 1.0)]


@dataclass(frozen=True)
class Learning:
    """What a shared network was trained on, so that it can go on learning.

    `statistics` are those of the rows of all series, `penalties` those on the RBF part and on the
    linear part, and `steps` (n,) says how many steps of each series have been learned.
    """

    statistics: SufficientStatistics
    penalties: Penalties
    steps: Ints

    def select(self, series: Sequence[int]) -> Learning:
        """Return the same for some of the series; their network has learned from all of them."""
        return replace(self, steps=self.steps[list(series)])

    def joined(self, n_new: int) -> Learning:
        """Return the same with new series at the end, of which nothing has been learned yet."""
        return replace(self, steps=np.append(self.steps, np.zeros(n_new, dtype=np.int64)))

    def to_arrays(self, cut: Ints) -> Arrays:
        """Return arrays to save; the first `cut` (n,) steps of the series are not saved."""
        arrays: Arrays = {
            "learned/steps": self.steps - cut,
            "learned/penalties": np.array(self.penalties),
        }
        for name, values in self.statistics.to_arrays().items():
            # The other half of a symmetric matrix says nothing new, and zeros take no room.
            arrays[f"statistics/{name}"] = np.tril(values) if name == "gram" else values
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Learning | None:
        """Return what `to_arrays` has written, or None where nothing was."""
        if "learned/steps" not in arrays:
            return None
        own = {name[11:]: values for name, values in arrays.items() if name[:11] == "statistics/"}
        gram = own["gram"] + np.tril(own["gram"], -1).T
        rbf, linear = arrays["learned/penalties"].tolist()
        statistics = SufficientStatistics.from_arrays({**own, "gram": gram})
        return cls(statistics, (rbf, linear), arrays["learned/steps"].astype(np.int64))


def train_shared(
    rows: Sequence[TrainingRows], count: int, lengths: Ints, plan: Plan
) -> tuple[WindowModel, Learning | None]:
    """Train one network on the rows of each series, thinned where all series have too many.

    `count` says how many there are in all. Series have `lengths` (n,). What the network was trained
    on is None unless these are sufficient statistics.
    """
    every = -(-count // _MOST_SHARED_ROWS)
    trained = _train_on_statistics(plan, [r.part(slice(None), every) for r in rows])
    if trained is None:
        alone = replace(plan, collective=SINGLE_MACHINE)
        combine = partial(_train_on_rows, plan=alone, every=every)
        return plan.collective.all_reduce(lambda: rows, combine), None
    windows, statistics, penalties = trained
    # Rows that were passed over count like those that were looked at.
    statistics = replace(statistics, gram=every * statistics.gram)
    return windows, Learning(statistics, penalties, lengths)


def _train_on_statistics(
    plan: Plan, rows: Sequence[TrainingRows]
) -> tuple[WindowModel, SufficientStatistics, Penalties] | None:
    """Train on sufficient statistics of the rows, with penalties chosen as in `_choose_penalties`.

    Statistics make all the fits cost little more than one, and add up over the parts of a panel.
    Returned are the network, the statistics and the penalties; None where there are too few rows,
    the network is too large or the settings ask for something else.
    """
    windows = plan.collective.all_reduce(
        lambda: rows, partial(_make_basis, plan=replace(plan, collective=SINGLE_MACHINE))
    )
    if windows is None:
        return None
    tol = plan.settings(windows.network.x_shift.size).tol
    return plan.collective.all_reduce(
        lambda: _sum_statistics(rows, windows), partial(_solve, windows=windows, tol=tol)
    )


def _sort_rows(parts: Sequence[Sequence[TrainingRows]]) -> list[TrainingRows]:
    """Put the rows of all series into an order of their own, which the last bit of sums follows."""
    return sorted(flatten(parts), key=lambda r: (r.X.tobytes(), r.Y.tobytes()))


def _make_basis(parts: Sequence[Sequence[TrainingRows]], plan: Plan) -> WindowModel | None:
    """Return a network with scales, centers and widths of the rows, its weights yet to train."""
    rows = _sort_rows(parts)
    n_inputs = rows[0].X.shape[1]
    settings = plan.settings(n_inputs)
    n_late = sum(len(r.X) // 5 for r in rows)
    if n_late < FEWEST_ROWS or plan.fast or not _has_statistics(settings, n_inputs):
        return None
    # A plain network has the same centers and units, and no derivatives to train.
    plain = replace(
        settings,
        order=0,
        order_zero=True,
        alpha=1.0,
        alpha_linear=1.0,
        width_factor=settings.width_factor or _WIDTH_FACTOR,
    )
    windows = TrainingRows.concatenate(rows).fit(replace(plan, settings=_always(plain)))
    network = replace(windows.network, order=settings.order, order_zero=settings.order_zero)
    return replace(windows, source=network)


def _sum_statistics(
    rows: Sequence[TrainingRows], windows: WindowModel
) -> tuple[SufficientStatistics, SufficientStatistics]:
    """Return statistics of the early rows of every series, and of the latest fifth."""
    network = windows.network
    nothing = SufficientStatistics.empty(
        network.centers,
        network.beta,
        order=network.order,
        order_zero=network.order_zero,
        unit=network.unit,
        metric=network.metric,
        n_linear=network.n_lags,
        n_targets=windows.block,
    )
    if not rows:
        return nothing, nothing
    late = np.concatenate([np.arange(len(r.X)) >= len(r.X) - len(r.X) // 5 for r in rows])
    X, Y = standardize_like(windows, TrainingRows.concatenate(rows))
    with progress_between(0.2, 0.8):
        early = nothing.add(X[~late], Y[~late])
    with progress_between(0.8, 0.9):
        return early, nothing.add(X[late], Y[late])


def _solve(
    parts: Sequence[tuple[SufficientStatistics, SufficientStatistics]],
    windows: WindowModel,
    tol: float,
) -> tuple[WindowModel, SufficientStatistics, Penalties]:
    """Add up the statistics of all parts, choose the penalties, and solve for the weights."""
    early, latest = (reduce(operator.add, sums) for sums in zip(*parts, strict=True))
    fits = early.solve(_PENALTIES, tol=tol)
    errors = [latest.squared_errors(fit.weights) @ windows.network.y_scale**2 for fit in fits]
    best = _PENALTIES[int(np.argmin(errors))]
    everything = early + latest
    return train_weights(windows, everything, best, tol=tol), everything, best


def _train_on_rows(parts: Sequence[Sequence[TrainingRows]], plan: Plan, every: int) -> WindowModel:
    """Train on the rows themselves."""
    rows = _sort_rows(parts)
    thinned = TrainingRows.concatenate([r.part(slice(None), every) for r in rows])
    return thinned.fit(_choose_penalties(plan, rows))


def _has_statistics(settings: Settings, n_inputs: int) -> bool:
    """Tell whether penalties are to be chosen, and sufficient statistics of the rows can do it."""
    if isinstance(settings.metric, str) and settings.metric == "learned":
        return False
    if settings.order == 0 or not settings.intercept or settings.max_iter is not None:
        return False
    chosen = (settings.penalty, settings.loss, settings.solver, settings.n_starts, settings.alpha)
    if chosen != ("ridge", "squared", "varpro", 1, None) or settings.basis != "gaussian":
        return False
    n_lags = n_inputs if settings.n_lags is None else settings.n_lags
    n_terms = int(settings.order_zero) + settings.order * n_inputs
    return settings.n_centers * n_terms + n_lags < MOST_COLUMNS


def _choose_penalties(plan: Plan, rows: Sequence[TrainingRows]) -> Plan:
    """Return the plan with penalties chosen on the latest fifth of every series.

    Series of a panel go up and down together, so leaving out single rows says little: the
    same date is still there in other series.
    """
    n_inputs = rows[0].X.shape[1]
    settings = plan.settings(n_inputs)
    if plan.fast or settings.alpha is not None or settings.penalty != "ridge":
        return plan
    every = -(-sum(len(r.X) for r in rows) // _MOST_VALIDATED_ROWS)
    early = [slice(0, len(r.X) - len(r.X) // 5) for r in rows]
    cuts = list(zip(rows, early, strict=True))
    train = TrainingRows.concatenate([r.part(cut, every) for r, cut in cuts])
    late = TrainingRows.concatenate([r.part(slice(cut.stop, None)) for r, cut in cuts])
    if min(len(train.X), len(late.X)) < FEWEST_ROWS:
        return plan
    best, lowest = plan, np.inf
    factor = settings.width_factor or _WIDTH_FACTOR
    for k, (alpha, alpha_linear) in enumerate(_PENALTIES):
        report_progress(k / len(_PENALTIES))
        fixed = replace(settings, alpha=alpha, alpha_linear=alpha_linear, width_factor=factor)
        trial = replace(plan, settings=_always(fixed))
        windows = train.fit(trial)
        error = windows.network.predict(windows.in_units(late.X)) * windows.unit - late.Y
        score = float(np.mean(error**2))
        if score < lowest:
            best, lowest = trial, score
    return best


def _always(settings: Settings) -> Callable[[int], Settings]:
    return lambda n_inputs: settings  # noqa: ARG005


def learn(
    learning: Learning | None,
    models: Sequence[SeriesModel | None],
    panel: Sequence[Series],
    plan: Plan,
) -> tuple[Learning, WindowModel]:
    """Learn what is new in a panel, given models with the same network.

    Returned are what has been learned by then, and the network trained with the new rows.
    """
    collective = plan.collective
    own = next((model.windows for model in models if model is not None), None)
    shared = collective.all_reduce(lambda: own, lambda found: next((w for w in found if w), None))
    if learning is None or shared is None:
        raise ValueError(
            "refit='weights' needs the sufficient statistics of a shared network, and there are "
            "none: the settings ask for another way of training, the network is too large or had "
            "too few rows, or the model was saved by an older version. Use refit=True."
        )
    seen, windows = learning.steps.tolist(), shared

    def sum_new_rows() -> tuple[SufficientStatistics, float] | None:
        rows = [
            cut_new_rows(series, model, plan, steps)
            for model, series, steps in sorted(
                zip(models, panel, seen, strict=True), key=lambda own: own[1].fingerprint
            )
            if model is not None and series.y.size > steps
        ]
        if not rows:
            return None
        new = TrainingRows.concatenate(rows)
        largest = np.max(np.abs(new.Y) / windows.unit, initial=windows.largest)
        return nothing.add(*standardize_like(windows, new)), float(largest)

    nothing = replace(learning.statistics, gram=np.zeros_like(learning.statistics.gram))
    tol = plan.settings(len(nothing.metric)).tol
    solve = partial(_add_and_train, learning=learning, windows=windows, tol=tol)
    with np.errstate(all="ignore"):
        statistics, windows = collective.all_reduce(sum_new_rows, solve)
    steps = np.array([series.y.size for series in panel], dtype=np.int64)
    return replace(learning, statistics=statistics, steps=steps), windows


def _add_and_train(
    news: Sequence[tuple[SufficientStatistics, float] | None],
    learning: Learning,
    windows: WindowModel,
    tol: float,
) -> tuple[SufficientStatistics, WindowModel]:
    """Add what is new in each part of a panel, and train the network."""
    statistics = learning.statistics
    for new, largest in filter(None, news):
        statistics += new
        windows = replace(windows, largest=max(windows.largest, largest))
    return statistics, train_weights(windows, statistics, learning.penalties, tol=tol)


def cut_new_rows(series: Series, model: SeriesModel, plan: Plan, seen: int) -> TrainingRows:
    """Return the rows of a series whose last target comes after the steps seen before.

    Only the steps that these windows and their gaps need are looked at. Values beyond what the
    model may forecast count as missing.
    """
    context = model.history + plan.block + GAP_CONTEXT_SEASONS * plan.season_length
    first = max(seen - context, 0)
    y, known_ahead, extra = series.y[first:], series.known_ahead[first:], series.extra[first:]
    preparation = model.preparation
    bare = preparation.without_effects(y, known_ahead)
    y = np.where((bare < preparation.low) | (bare > preparation.high), np.nan, y)
    prepared = preparation.apply(y, known_ahead)
    part = Series(y, known_ahead, extra)
    rows = TrainingRows.of(part, prepared, model.plan_for_refit(plan))
    start = int(np.searchsorted(rows.ends, seen - first - plan.block))
    return rows.part(slice(start, None), 1)


def standardize_like(windows: WindowModel, rows: TrainingRows) -> tuple[Array, Array]:
    """Return the inputs and targets of rows as the network takes them inside."""
    network = windows.network
    X = (windows.in_units(rows.X) - network.x_shift) / network.x_scale
    return X, (rows.Y / windows.unit - network.y_shift) / network.y_scale


def train_weights(
    windows: WindowModel, statistics: SufficientStatistics, penalties: Penalties, *, tol: float
) -> WindowModel:
    """Return the network with the weights that the statistics lead to."""
    (fit,) = statistics.solve([penalties], tol=tol)
    weights = fit.weights.with_unit_a()
    network = replace(windows.network, a=weights.a, w=weights.w, linear=weights.linear)
    return replace(windows, source=network)
