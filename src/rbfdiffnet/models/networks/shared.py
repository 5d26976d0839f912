"""One network that all series of a panel share.

Every series is brought to its own scale; then their rows are learned together
(`models.networks.shared_training`). The network also forecasts series it was never trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from rbfdiffnet.models.base import FittedModel
from rbfdiffnet.models.networks.fitted import FittedNetworks
from rbfdiffnet.models.networks.local import (
    NetworkMethod,
    calibration_starts,
    fit_or_say_why,
)
from rbfdiffnet.models.networks.series_model import SeriesModel, nearest_windows, prepare_for
from rbfdiffnet.models.networks.shared_training import Learning, learn, train_shared
from rbfdiffnet.models.networks.window_model import FEWEST_ROWS, TrainingRows, targets_known
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.series.effects import Effects, fit_robust_effects, never_negative
from rbfdiffnet.series.outliers import usual_and_limit
from rbfdiffnet.series.prepare import Preparation
from rbfdiffnet.series.series import Series, SeriesPanel, UnfitError, check_fit, find_usable
from rbfdiffnet.support.arrays import Array, Arrays, Ints, Mask
from rbfdiffnet.support.parallel import flatten, parallel_map
from rbfdiffnet.support.progress import progress_between

_SMALLEST = 1e-290  # numbers below have fewer digits


@dataclass(frozen=True)
class FittedSharedNetwork(FittedNetworks):
    """One network for all series, with effects of inputs that all series share.

    With `learning` the network can go on learning; it is None where that is not possible.
    """

    effects: Effects | None = None
    learning: Learning | None = None

    def select(self, chosen: Sequence[int]) -> Self:
        """Return the model of some series."""
        learning = None if self.learning is None else self.learning.select(chosen)
        return replace(super().select(chosen), learning=learning)

    def adopt(self, panel: SeriesPanel) -> FittedSharedNetwork:
        """Return a model of series that the network was not fitted to."""
        some = next(iter(self.fitted.values()), None)
        early = next((model for model in self.calibrated if model is not None), None)
        models: list[SeriesModel | None] = []
        calibrated: list[SeriesModel | None] = []
        reasons: dict[int, str] = {}
        for i, series in enumerate(panel):
            try:
                if some is None:
                    raise UnfitError("the model has no network")
                own = adopt_series(series, some, self.plan, self.effects)
                models.append(own)
                calibrated.append(None if early is None else own.with_network_of(early))
            except UnfitError as error:
                models.append(None)
                calibrated.append(None)
                reasons[i] = str(error)
        starts = calibration_starts(panel)
        return FittedSharedNetwork(
            self.plan, tuple(models), tuple(calibrated), starts, reasons, self.effects
        )

    def extend(self, panel: SeriesPanel) -> FittedModel:
        """Return the model with new series at the end of the panel adopted."""
        n, n_new = self.n_series, len(panel) - self.n_series
        if not n_new:
            return self
        new = self.adopt(panel[n:])
        return replace(
            self,
            models=(*self.models, *new.models),
            calibrated=(*self.calibrated, *new.calibrated),
            starts=np.concatenate([self.starts, new.starts]),
            reasons={**self.reasons, **{n + i: text for i, text in new.reasons.items()}},
            learning=None if self.learning is None else self.learning.joined(n_new),
        )

    def learn_weights(self, panel: SeriesPanel) -> FittedSharedNetwork:
        """Return the model with a network that has learned what is new in a panel.

        The calibrated networks stay as they are; see `models.networks.shared_training`.
        """
        learning, windows = learn(self.learning, self.models, panel, self.plan)
        models = tuple(None if m is None else replace(m, windows=windows) for m in self.models)
        return replace(self, models=models, learning=learning)

    def _to_arrays(self, cut: Ints) -> tuple[Arrays, dict[str, Any]]:
        arrays, words = super()._to_arrays(cut)
        return arrays | ({} if self.learning is None else self.learning.to_arrays(cut)), words

    def _unlearned(self, lengths: Ints) -> Ints:
        return (
            super()._unlearned(lengths) if self.learning is None else lengths - self.learning.steps
        )

    @property
    def _common_effects(self) -> Effects | None:
        return self.effects


class SharedNetwork(NetworkMethod):
    """One network for all series, which also forecasts series it has never seen."""

    fitted_class = FittedSharedNetwork
    learns_from = "panel"
    seconds = (6e-5, 2e-5)
    cluster_group = None, 32  # a group sends its sums

    def _fit_many(
        self, panel: Sequence[Series], plans: Sequence[Plan], n_jobs: int
    ) -> tuple[Sequence[SeriesModel | str], dict[str, Any]]:
        del n_jobs
        found = fit_or_say_why(lambda: fit_shared(panel, plans[0]))
        if isinstance(found, str):
            return [found] * len(panel), {}
        results, effects, learning = found
        return results, {"effects": effects, "learning": learning}

    def _shared_from_arrays(self, n: int, effects: Any, arrays: Arrays) -> dict[str, Any]:
        learning = Learning.from_arrays(arrays)
        if learning is not None and learning.steps.size != n:
            raise ValueError("numbers of series differ")
        return {"effects": effects, "learning": learning}


def fit_shared(
    panel: Sequence[Series], plan: Plan
) -> tuple[list[SeriesModel | str], Effects | None, Learning | None]:
    """Fit one network to the rows of all series, each brought to its own scale.

    Wild series, see `series.outliers`, are forecast, but others do not learn from them. Relative
    effects of inputs known in advance are shared, too; effects on series that are negative at times
    have the scale of their series and are estimated one by one. Short series and those without
    variation get no model. Returned are a model or the reason why there is none for each
    series, the shared effects for series that come later, and what the network was trained on, if
    it was trained on sufficient statistics.
    """
    plan = replace(plan, transforms=(*plan.transforms, "standardize"))
    usable, reasons = find_usable(panel)
    results: dict[int, SeriesModel | str] = {**reasons}
    all_reduce = plan.collective.all_reduce
    n_ahead = panel[0].known_ahead.shape[1] if panel else 0
    sizes, counts = all_reduce(lambda: ([panel[i].y.size for i in usable], [n_ahead]), _join)
    if not sizes:
        return [results[i] for i in range(len(panel))], None, None
    plan = replace(plan, lags=plan.lags_for(int(np.median(sizes))))
    effects = _shared_effects([panel[i] for i in usable], plan) if max(counts) else None

    def scale(i: int) -> _ScaledSeries | str:
        return _scale_series(panel[i], plan, _effects_on(panel[i], effects))

    with progress_between(0.0, 0.3):
        scaled = plan.collective.memoize(
            lambda: dict(zip(usable, parallel_map(scale, usable, reports=True), strict=True))
        )
    results |= {i: found for i, found in scaled.items() if isinstance(found, str)}
    own = {i: found for i, found in scaled.items() if not isinstance(found, str)}
    bursts = {i: _measure_bursts(s, plan.season_length) for i, s in own.items()}
    odd = {i: _has_odd_sizes(panel[i].y) for i in own}
    fair = all_reduce(lambda: [bursts[i] for i in own if not odd[i]], flatten)
    _, limit = usual_and_limit(np.array(fair))
    teaches = {i: not (bursts[i] > limit or (fair and odd[i])) for i in own}
    teachers = [s for i, s in own.items() if teaches[i]]
    tendencies, counts = all_reduce(lambda: _describe(teachers, plan), _join)
    if not tendencies:
        raise UnfitError("the transforms apply to no series")
    if sum(counts) < FEWEST_ROWS:
        raise UnfitError(
            f"too short (windows in all series together: {sum(counts)}, needed: {FEWEST_ROWS})"
        )
    plan = replace(plan, level=plan.level_of(tendencies))
    rows = {i: TrainingRows.cut(s.z, s.known, panel[i], plan) for i, s in own.items()}
    lengths = np.array([series.y.size for series in panel], dtype=np.int64)
    with progress_between(0.4, 1.0):
        some = [r for i, r in rows.items() if teaches[i]]
        windows, learning = train_shared(some, sum(counts), lengths, plan)
    for i, r in rows.items():
        nearest = nearest_windows(windows, r.X, r.ends)
        results[i] = SeriesModel(own[i].preparation, windows, nearest)
    return [results[i] for i in range(len(panel))], effects, learning


class _ScaledSeries(NamedTuple):
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


def _measure_bursts(scaled: _ScaledSeries, season_length: int) -> float:
    """Return the root mean square of changes over a season by their median; NaN if that is 0."""
    changes = np.abs(scaled.z[season_length:] - scaled.z[:-season_length])
    changes = changes[scaled.known[season_length:] & scaled.known[:-season_length]]
    usual = float(np.median(changes)) if changes.size else 0.0
    return float(np.sqrt(((changes / usual) ** 2).mean())) if usual > 0.0 else np.nan


def _has_odd_sizes(y: Array) -> bool:
    """Tell whether values are so small, or most so much smaller than one, that digits are lost."""
    sizes = np.abs(y[np.isfinite(y) & (y != 0.0)])
    if not sizes.size:
        return False
    largest = sizes.max()
    return bool(largest < _SMALLEST or np.median(sizes) < np.finfo(np.float64).eps * largest)


def _describe(scaled: Sequence[_ScaledSeries], plan: Plan) -> tuple[list[Any], list[int]]:
    """Return what the level and the number of rows follow from."""
    counts = []
    for s in scaled:
        lags = plan.lags_for(int(s.known.sum()))
        counts.append(int(targets_known(s.known, lags=lags, block=plan.block).sum()))
    return [plan.tendency(s.z) for s in scaled], counts


def _join(parts: Sequence[tuple[list[Any], list[int]]]) -> tuple[list[Any], list[int]]:
    """Join the lists of all parts of a panel."""
    return flatten(first for first, _ in parts), flatten(second for _, second in parts)


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


def adopt_series(
    series: Series, shared: SeriesModel, plan: Plan, effects: Effects | None
) -> SeriesModel:
    """Return a model of a series that a shared network was not trained on."""
    check_fit(series)
    plan = replace(plan, transforms=(*plan.transforms, "standardize"))
    preparation = prepare_for(series, plan, _effects_on(series, effects)).preparation
    return SeriesModel(preparation, shared.windows).with_network_of(shared)
