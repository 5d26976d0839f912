"""One network for many series: cross-learning.

Every series is brought to its own scale; then their rows are learned together. The network also
forecasts series it was never trained on.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np

from rbfdiffnet.models.networks.learning import Learning, standardize_like, train_weights
from rbfdiffnet.models.networks.local import fit_or_say_why
from rbfdiffnet.models.networks.series_model import SeriesModel, nearest_windows, prepare_for
from rbfdiffnet.models.networks.training_rows import FEWEST_ROWS, TrainingRows
from rbfdiffnet.models.networks.window_model import WindowModel, targets_known
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.network.sufficient_statistics import MOST_COLUMNS, SufficientStatistics
from rbfdiffnet.network.train import Settings
from rbfdiffnet.series.effects import Effects, fit_robust_effects, never_negative
from rbfdiffnet.series.prepare import Preparation
from rbfdiffnet.series.series import Series, UnfitError, check_fit
from rbfdiffnet.support.arrays import Array, Mask
from rbfdiffnet.support.collective import SINGLE_MACHINE, flatten

_MOST_SHARED_ROWS = 100_000
_MOST_VALIDATED_ROWS = 20_000
_WIDTH_FACTOR = 4.0  # where it is not given
#: Penalties on the RBF part and on the linear part that a shared network may have.
_PENALTIES = [(a, b) for a in (1e-4, 1e-2, 1.0, 1e9) for b in (1e-4, 1e-2, 1.0)]


def fit_shared(
    panel: Sequence[Series], plan: Plan
) -> tuple[list[SeriesModel | str], Effects | None, Learning | None]:
    """Fit one network to the rows of all series, each brought to its own scale.

    Relative effects of inputs known in advance are shared, too; effects on series that are negative
    at times have the scale of their series and are estimated one by one. Short series and those
    without variation get no model. Returned are a model or the reason why there is none for each
    series, the shared effects for series that come later, and what the network was trained on, if
    it was trained on sufficient statistics.
    """
    plan = replace(plan, transforms=(*plan.transforms, "standardize"))
    models: list[SeriesModel | str] = [""] * len(panel)
    usable = []
    for i, series in enumerate(panel):
        try:
            check_fit(series)
            usable.append(i)
        except UnfitError as error:
            models[i] = str(error)
    usable.sort(key=lambda i: panel[i].fingerprint)  # so that their order does not matter
    all_reduce = plan.collective.all_reduce
    n_ahead = panel[0].known_ahead.shape[1] if panel else 0
    sizes, n_ahead = all_reduce(lambda: ([panel[i].y.size for i in usable], n_ahead), _join_sizes)
    if not sizes:
        return models, None, None
    plan = replace(plan, lags=plan.lags_for(int(np.median(sizes))))
    effects = _shared_effects([panel[i] for i in usable], plan) if n_ahead else None
    scaled = plan.collective.memoize(
        lambda: {i: _scale_series(panel[i], plan, _effects_on(panel[i], effects)) for i in usable}
    )
    for i, found in scaled.items():
        if isinstance(found, str):
            models[i] = found
    own = {i: found for i, found in scaled.items() if not isinstance(found, str)}
    tendencies, counts = all_reduce(lambda: _describe(list(own.values()), plan), _join_descriptions)
    if not tendencies:
        raise UnfitError("the transforms apply to no series")
    plan = replace(plan, level=plan.level_of(tendencies))
    count = sum(counts)
    if count < FEWEST_ROWS:
        raise UnfitError(
            f"too short (windows in all series together: {count}, needed: {FEWEST_ROWS})"
        )
    every = -(-count // _MOST_SHARED_ROWS)
    rows = [TrainingRows.cut(s.z, s.known, panel[i], plan) for i, s in own.items()]
    trained = _train_on_statistics(plan, [r.part(slice(None), every) for r in rows])
    learning: Learning | None = None
    if trained is None:
        windows = all_reduce(
            lambda: rows,
            partial(_train_on_rows, plan=replace(plan, collective=SINGLE_MACHINE), every=every),
        )
    else:
        windows, statistics, penalties = trained
        # Rows that were passed over count like those that were looked at.
        statistics = replace(statistics, gram=every * statistics.gram)
        lengths = np.array([series.y.size for series in panel], dtype=np.int64)
        learning = Learning(statistics, penalties, lengths)
    for (i, s), r in zip(own.items(), rows, strict=True):
        nearest = nearest_windows(windows, r.X, r.ends)
        models[i] = SeriesModel(s.preparation, windows, nearest)
    return models, effects, learning


@dataclass(frozen=True)
class _ScaledSeries:
    """A series as a shared network sees it: z (T,) on its own scale, and where it is observed."""

    preparation: Preparation
    z: Array
    known: Mask


def _scale_series(series: Series, plan: Plan, effects: Effects | None) -> _ScaledSeries | str:
    """Bring a series to its own scale, or say why that cannot be done."""

    def scale() -> _ScaledSeries:
        prepared = prepare_for(series, plan, effects)
        return _ScaledSeries(prepared.preparation, *prepared.transform())

    return fit_or_say_why(scale)


def _join_sizes(parts: Sequence[tuple[list[int], int]]) -> tuple[list[int], int]:
    """Return the lengths of all series, and the number of inputs known in advance."""
    return flatten(sizes for sizes, _ in parts), max(n for _, n in parts)


Tendencies = list[tuple[float, int]]


def _describe(scaled: Sequence[_ScaledSeries], plan: Plan) -> tuple[Tendencies, list[int]]:
    """Return what the level and the number of rows follow from."""
    counts = []
    for s in scaled:
        lags = plan.lags_for(int(s.known.sum()))
        counts.append(int(targets_known(s.known, lags=lags, block=plan.block).sum()))
    return [plan.tendency(s.z) for s in scaled], counts


def _join_descriptions(
    parts: Sequence[tuple[Tendencies, list[int]]],
) -> tuple[Tendencies, list[int]]:
    return flatten(tendencies for tendencies, _ in parts), flatten(counts for _, counts in parts)


def adopt_series(
    series: Series, shared: SeriesModel, plan: Plan, effects: Effects | None
) -> SeriesModel:
    """Return a model of a series that a shared network was not trained on."""
    check_fit(series)
    plan = replace(plan, transforms=(*plan.transforms, "standardize"))
    preparation = prepare_for(series, plan, _effects_on(series, effects)).preparation
    return SeriesModel(preparation, shared.windows).with_network_of(shared)


def _train_on_statistics(
    plan: Plan, rows: Sequence[TrainingRows]
) -> tuple[WindowModel, SufficientStatistics, tuple[float, float]] | None:
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


def _make_basis(parts: Sequence[Sequence[TrainingRows]], plan: Plan) -> WindowModel | None:
    """Return a network with scales, centers and widths of the rows, its weights yet to train."""
    # In an order of their own: the last bit of a sum depends on it.
    rows = sorted(flatten(parts), key=lambda r: (r.X.tobytes(), r.Y.tobytes()))
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
    return replace(windows, network=network)


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
    return nothing.add(X[~late], Y[~late]), nothing.add(X[late], Y[late])


def _solve(
    parts: Sequence[tuple[SufficientStatistics, SufficientStatistics]],
    windows: WindowModel,
    tol: float,
) -> tuple[WindowModel, SufficientStatistics, tuple[float, float]]:
    """Add up the statistics of all parts, choose the penalties, and solve for the weights."""
    early, latest = (reduce(operator.add, sums) for sums in zip(*parts, strict=True))
    fits = early.solve(_PENALTIES, tol=tol)
    errors = [latest.squared_errors(fit.weights) @ windows.network.y_scale**2 for fit in fits]
    best = _PENALTIES[int(np.argmin(errors))]
    everything = early + latest
    return train_weights(windows, everything, best, tol=tol), everything, best


def _train_on_rows(parts: Sequence[Sequence[TrainingRows]], plan: Plan, every: int) -> WindowModel:
    """Train on the rows themselves."""
    rows = sorted(flatten(parts), key=lambda r: (r.X.tobytes(), r.Y.tobytes()))
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
    train = TrainingRows.concatenate(
        [r.part(cut, every) for r, cut in zip(rows, early, strict=True)]
    )
    late = TrainingRows.concatenate(
        [r.part(slice(c.stop, None), 1) for r, c in zip(rows, early, strict=True)]
    )
    if min(len(train.X), len(late.X)) < FEWEST_ROWS:
        return plan
    best, lowest = plan, np.inf
    factor = settings.width_factor or _WIDTH_FACTOR
    for alpha, alpha_linear in _PENALTIES:
        fixed = replace(settings, alpha=alpha, alpha_linear=alpha_linear, width_factor=factor)
        trial = replace(plan, settings=_always(fixed))
        windows = train.fit(trial)
        n_extra = n_inputs - len(train.lags)
        inputs = np.concatenate([late.X[:, :n_extra], late.X[:, n_extra:] / windows.unit], axis=1)
        error = windows.network.predict(inputs) * windows.unit - late.Y
        score = float(np.mean(error**2))
        if score < lowest:
            best, lowest = trial, score
    return best


def _always(settings: Settings) -> Callable[[int], Settings]:
    return lambda n_inputs: settings  # noqa: ARG005


def _shared_effects(panel: Sequence[Series], plan: Plan) -> Effects | None:
    """Return effects on all series that are never negative, or None if there is no such series."""
    panel = [series for series in panel if never_negative(series.y[np.isfinite(series.y)])]
    if plan.log or not plan.collective.all_reduce(lambda: bool(panel), any):
        return None
    return fit_robust_effects(
        [series.y for series in panel],
        [series.known_ahead for series in panel],
        season_length=plan.season_length,
        clean=plan.clean,
        collective=plan.collective,
    )


def _effects_on(series: Series, shared: Effects | None) -> Effects | None:
    """Return the shared effects where the series takes them, None where it has its own."""
    return shared if never_negative(series.y[np.isfinite(series.y)]) else None
