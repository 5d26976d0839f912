"""The stack: members forecast a panel, and their forecasts are mixed.

How much each member counts is found at the ends of the series: with the last steps held back, and
as many before them, all members forecast what is known already; see `models.stack.blocks` for how
many steps that is, and `models.stack.mixing`. All of that is learned from some series, see
`models.sampled`, and serves all others. Intervals are quantiles of the pretrained network around
the mixture, corrected by the errors of the mixture there; see `models.intervals`.
Nothing is kept but the data and the plan: every forecast learns from all that is known at its
origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from rbfdiffnet.models.base import (
    FALLBACK,
    FittedModel,
    ForecastRequest,
    Forecasts,
    InputNames,
    SeriesTable,
    Terms,
)
from rbfdiffnet.models.intervals import Pools
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.sampled import (
    FittedSampled,
    SampledMethod,
    by_position,
    scatter,
)
from rbfdiffnet.models.stack.lesson import (
    Mixture,
    StackLesson,
    StackPart,
    learn,
    learn_together,
)
from rbfdiffnet.series.series import SeriesPanel
from rbfdiffnet.support.arrays import Array, Ints, Mask
from rbfdiffnet.support.parallel import Collective, parallel_map
from rbfdiffnet.support.progress import progress_between

_REMEMBERED = 2  # origins and horizons


class Stack(SampledMethod):
    """Several forecasts of a panel, mixed by how well they forecast the ends of the series."""

    has_networks = False
    seconds = (7e-6, 7e-5)
    weights_refusal = (
        "refit='weights' needs scope='global': scope='auto' learns anew from all observations "
        "for every forecast, with refit=True and refit=False alike."
    )

    def needs_others(self, *, levels: bool, inputs: bool) -> bool:
        """Whether what is asked for depends on other series: it always does."""
        del levels, inputs
        return True

    def fit(
        self, panel: SeriesPanel, plan: Plan, *, calibrate: bool = False, n_jobs: int = 1
    ) -> FittedStack:
        """Make a panel ready."""
        del calibrate
        return FittedStack.of(panel, plan, n_jobs)


@dataclass(frozen=True)
class FittedStack(FittedSampled):
    """A stack for a panel; what its latest forecasts rest on is remembered."""

    _known: dict[bytes, list[StackPart]] = field(default_factory=dict, repr=False, compare=False)
    _latest: list[Mixture] = field(default_factory=list, repr=False, compare=False)

    @property
    def _is_ready(self) -> Mask:
        return scatter(self.chunks, [prepared.is_ready for prepared in self.prepared])

    def forecast(self, request: ForecastRequest, n_jobs: int = 1) -> Forecasts:
        """Forecast every series."""
        mixture = self.mix(request, n_jobs)
        return Forecasts(mixture.values, runaway=mixture.runaway)

    def mix(self, request: ForecastRequest, n_jobs: int = 1) -> Mixture:
        """Mix the members' forecasts; what the latest two rest on is remembered."""

        def mix(pair: tuple[StackPart, Ints]) -> Mixture:
            part, chunk = pair
            with np.errstate(all="ignore"):  # in this thread
                return part.mix([request.ahead[i] for i in chunk.tolist()])

        with np.errstate(all="ignore"):
            pairs = list(zip(self._recall(request, n_jobs), self.chunks, strict=True))
            mixture = self._join(parallel_map(mix, pairs, n_jobs))
        self._latest[:] = [mixture]
        return mixture

    def ask(self, request: ForecastRequest, probabilities: Sequence[float]) -> None:
        """Ask all machines for what forecasts need."""
        del probabilities
        self._learn(request, 1)

    def _recall(self, request: ForecastRequest, n_jobs: int) -> list[StackPart]:
        """Return what forecasts of a request rest on, chunk by chunk; learn it if need be."""
        places = [series.y.ctypes.data for series in request.panel]
        key = np.array([*places, *request.origins, request.h]).tobytes()
        if (known := self._known.get(key)) is not None:
            return known
        n_learned, n_all = self.chunks[0].size, max(self.n_series, 1)
        windows = 3 * n_learned  # learning takes about as long as forecasting so many more
        share = windows / (windows + n_all - n_learned)
        with progress_between(0.0, share):
            lesson, first = self._learn(request, n_jobs)
        numbers = range(0 if first is None else 1, len(self.chunks))

        def forecast(number: int) -> StackPart:
            own = request.select(self.chunks[number].tolist())
            with np.errstate(all="ignore"):  # in this thread
                return StackPart.of(lesson, own, self.prepared[number], 1)

        with progress_between(share, 1.0):
            others = parallel_map(forecast, numbers, n_jobs, reports=True)
        found = others if first is None else [first, *others]
        for old in list(self._known)[: 1 - _REMEMBERED]:
            self._known.pop(old, None)
        self._known[key] = found
        return found

    def _learn(self, request: ForecastRequest, n_jobs: int) -> tuple[StackLesson, StackPart | None]:
        """Learn from the first chunk, or on a cluster from the first chunks of all machines."""
        own, plan = request.select(self.chunks[0].tolist()), self.plan
        if not plan.collective.is_cluster:
            parts: list[StackPart] = []

            def make() -> StackLesson:
                lesson, part = learn(own, plan, n_jobs, self.prepared[0])
                parts.append(part)
                return lesson

            lesson = plan.collective.learn("members", make)
            return lesson, parts[0] if parts else None
        lesson = plan.collective.all_reduce(
            lambda: (own.seen, own.h), partial(learn_together, plan=plan.alone)
        )
        return replace(lesson, plan=plan), None

    def find_quantiles(
        self,
        request: ForecastRequest,
        probabilities: Sequence[float],
        collective: Collective,
        pools: Pools | None = None,
        n_jobs: int = 1,
    ) -> tuple[Array, Mask]:
        """Return quantiles (n, h, P): those of the pretrained network, moved and corrected.

        They lie around the mixture, as far away as errors at the ends of the series ask for. Series
        without a network get intervals of naive errors; `enough` (n, P) tells of these.
        """
        del collective, pools
        values = self.mix(request, n_jobs).values
        pairs = list(zip(self.chunks, self._recall(request, n_jobs), strict=True))

        def find(pair: tuple[Ints, StackPart]) -> tuple[Array, Mask]:
            chunk, part = pair
            with np.errstate(all="ignore"):  # in this thread
                ahead = [request.ahead[i] for i in chunk.tolist()]
                return part.find_quantiles(values[chunk], ahead, probabilities)

        quantiles, enough = zip(*parallel_map(find, pairs, n_jobs), strict=True)
        return scatter(self.chunks, quantiles), scatter(self.chunks, enough)

    def error_paths(self, request: ForecastRequest, n_jobs: int = 1) -> list[Array]:
        """Return scores of windows that begin with the first step, of series learned from."""
        scores = self._recall(request, n_jobs)[0].lesson.whole_windows()
        found = [np.empty((0, scores.shape[2]))] * self.n_series
        for i, own in zip(self.chunks[0].tolist(), scores, strict=True):
            found[i] = own
        return found

    def explain(
        self, request: ForecastRequest, names: InputNames, chosen: Sequence[int], n_jobs: int = 1
    ) -> tuple[Array, list[Terms]]:
        """Return forecasts (n, h), and for chosen series the terms they are the sum of.

        These are the terms of the pretrained network, of which the corrected forecast is made,
        too; the correction; and the other members.
        """
        values, is_ready, tables = self.mix(request, n_jobs).values, self._is_ready, {}
        for chunk, part in zip(self.chunks, self._recall(request, n_jobs), strict=True):
            for place in np.flatnonzero(np.isin(chunk, chosen)).tolist():
                i = int(chunk[place])
                if is_ready[i]:
                    tables[i] = part.explain(place, request.ahead[i], names, values[i])
                else:
                    tables[i] = Terms()
                    tables[i].add("fallback", FALLBACK, values[i])
        return values, [tables[i] for i in chosen]

    def describe_choices(self) -> SeriesTable:
        """Return the weights of the members in the latest forecasts."""
        weights = {name: own.tolist() for name, own in self.member_weights().items()}
        seasons = {"season_length": [self.plan.season_length] * self.n_series}
        return SeriesTable(np.arange(self.n_series), seasons | weights)

    def member_weights(self) -> dict[str, Array]:
        """Return how much each member counted for each series (n,) in the latest forecasts.

        These are means over the steps ahead.
        """
        if not self._latest:
            raise ValueError("Members are weighed when forecasts are made: use predict first.")
        return {name: own.mean(axis=1) for name, own in self._latest[0].weights.items()}

    def one_step_forecasts(self, panel: SeriesPanel) -> dict[int, tuple[int, Array]]:
        """Refuse: no network is kept."""
        del panel
        raise ValueError(
            "fitted_values() needs fitted networks, and scope='auto' keeps none: it learns "
            "anew for every forecast. Use detect_anomalies(df), which forecasts past values one "
            "step before them, cross_validation(df, h), or scope='local' or 'global'."
        )

    def extend(self, panel: SeriesPanel) -> FittedModel:
        """Return the stack of the extended panel."""
        return Stack().fit(panel, self.plan)

    def _join(self, mixtures: Sequence[Mixture]) -> Mixture:
        if len(mixtures) == 1:
            return mixtures[0]

        def join(tables: list[Array]) -> Array:
            return scatter(self.chunks, tables)

        names = max((list(m.weights) for m in mixtures), key=len)  # not all have own maps
        return Mixture(
            join([m.values for m in mixtures]),
            {k: join([m.weights.get(k, np.zeros_like(m.values)) for m in mixtures]) for k in names},
            {k: join([m.members.get(k, m.values) for m in mixtures]) for k in names},
            by_position(self.chunks, [m.runaway for m in mixtures]),
        )
