"""The pretrained network as a model of a panel: nothing is fitted but the effects of inputs.

Intervals come from the network's quantiles. Their distances from the median are multiplied by one
factor for each level and all series: how much wider they had to be at the ends of the series.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
from scipy.special import ndtri

from rbfdiffnet.models.base import (
    FALLBACK,
    ForecastRequest,
    Forecasts,
    InputNames,
    Terms,
)
from rbfdiffnet.models.intervals import REAL_SPREAD, Pools, count_errors, split_levels, trust_in
from rbfdiffnet.models.networks.explain import add_effects
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.sampled import (
    FittedSampled,
    SampledMethod,
    by_position,
    scatter,
)
from rbfdiffnet.models.stack.histories import Histories
from rbfdiffnet.models.stack.windows import PreparedPanel, Window, measure_distances
from rbfdiffnet.pretrained.explain import explain
from rbfdiffnet.pretrained.network import PROBABILITIES, Outlook, forecast
from rbfdiffnet.series.naive import values_after
from rbfdiffnet.series.outliers import find_wild
from rbfdiffnet.series.prepare import Preparation
from rbfdiffnet.series.series import SeriesPanel, find_sparse
from rbfdiffnet.support.arrays import Array, Ints, Mask, mean_of_known
from rbfdiffnet.support.parallel import Collective, parallel_map
from rbfdiffnet.support.stability import describe_runaway

T = TypeVar("T")

_WINDOWS = 2  # at the ends of the series, by which intervals are corrected
_FEWEST_BEFORE = 4  # values before such a window
_USUAL_LEVEL = 0.8  # by which errors of different series compare


class Pretrained(SampledMethod):
    """One network for all series, trained beforehand on simulated ones."""

    has_networks = False
    fits_networks = False
    seconds = (5e-7, 2e-5)
    weights_refusal = (
        "refit='weights' needs scope='global': the pretrained network never learns from "
        "observations."
    )

    def fit(
        self, panel: SeriesPanel, plan: Plan, *, calibrate: bool = False, n_jobs: int = 1
    ) -> FittedPretrained:
        """Make a panel ready, chunk by chunk."""
        del calibrate
        return FittedPretrained.of(panel, plan, n_jobs)


@dataclass(frozen=True)
class FittedPretrained(FittedSampled):
    """The network for a panel; each part forecasts a chunk."""

    @cached_property
    def parts(self) -> list[_Chunk]:
        """The chunks, each with its latest forecasts."""
        return [_Chunk(self.plan, prepared) for prepared in self.prepared]

    def forecast(self, request: ForecastRequest, n_jobs: int = 1) -> Forecasts:
        """Forecast every series by its median, or by its mean if it is often zero."""
        found = self._each(request, _Chunk.forecast, n_jobs)
        runaway = by_position(self.chunks, [each.runaway for each in found])
        return Forecasts(scatter(self.chunks, [each.values for each in found]), runaway=runaway)

    def find_quantiles(
        self,
        request: ForecastRequest,
        probabilities: Sequence[float],
        collective: Collective,
        pools: Pools | None = None,
        n_jobs: int = 1,
    ) -> tuple[Array, Mask]:
        """Return the network's quantiles (n, h, P), corrected, which are always enough."""
        del pools
        some = request.select(self.chunks[0].tolist())
        levels, which, _ = split_levels(probabilities)
        found = collective.learn(
            "factors",
            lambda: collective.all_reduce(
                lambda: self.parts[0].score(some, levels),
                partial(_find_factors, levels=levels, h=request.h),
            ),
        )
        factors = [found[k] for k in which.tolist()]
        task = partial(_Chunk.find_quantiles, probabilities=probabilities, factors=factors)
        quantiles = scatter(self.chunks, self._each(request, task, n_jobs))
        return quantiles, np.ones(quantiles[:, 0].shape, dtype=bool)

    def error_paths(self, request: ForecastRequest, n_jobs: int = 1) -> list[Array]:
        """Return errors of two windows of the series that factors are found from."""
        del n_jobs
        some = request.select(self.chunks[0].tolist())
        found = [np.empty((0, request.h))] * self.n_series
        for fair, shares in self.parts[0].look_back(some, [_USUAL_LEVEL]):
            for i, own in zip(self.chunks[0][fair].tolist(), shares[:, :, 0], strict=True):
                found[i] = np.concatenate([own[None], found[i]])
        return found

    def explain(
        self, request: ForecastRequest, names: InputNames, chosen: Sequence[int], n_jobs: int = 1
    ) -> tuple[Array, list[Terms]]:
        """Return forecasts (n, h), and terms: weights on what was seen, which add up to them.

        Rows of exemplars and responses add nothing, since they tell the same in other ways: what
        exemplars would forecast alone adds up with their gates ("activation"), and a response is
        what a value, were it one higher, would change.
        """
        values, tables = self.forecast(request, n_jobs).values, {}
        for chunk, part in zip(self.chunks, self.parts, strict=True):
            own = request.select(chunk.tolist())
            prepared, outlook = part.look_ahead(own)
            points = dict(zip(prepared.ready, _points(prepared, outlook), strict=True))
            for i in np.flatnonzero(np.isin(chunk, chosen)).tolist():
                total = values[chunk[i]]
                if i in prepared.ready:
                    p = prepared.ready[i].preparation
                    terms = explain_one(prepared, i, points[i], self.plan)
                    add_way_back(terms, p, p.clip(points[i]), own.ahead[i], names, total)
                else:
                    terms = Terms()
                    terms.add("fallback", f"{FALLBACK}: {prepared.reasons[i]}", total)
                tables[int(chunk[i])] = terms
        return values, [tables[i] for i in chosen]

    def extend(self, panel: SeriesPanel) -> FittedPretrained:
        """Make a panel with newer values ready."""
        return Pretrained().fit(panel, self.plan)

    def _each(
        self, request: ForecastRequest, task: Callable[[_Chunk, ForecastRequest], T], n_jobs: int
    ) -> list[T]:
        pairs = [
            (part, request.select(chunk.tolist()))
            for chunk, part in zip(self.chunks, self.parts, strict=True)
        ]
        return parallel_map(lambda pair: task(*pair), pairs, n_jobs)


@dataclass(frozen=True)
class _Chunk:
    """Series of a panel that were made ready together.

    What effects of inputs have in common is found once, when they are fitted, also for other
    origins; those of single series are found for each origin.
    """

    plan: Plan
    prepared: PreparedPanel
    _latest: dict[bytes, tuple[PreparedPanel, Outlook]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def forecast(self, request: ForecastRequest) -> Forecasts:
        prepared, outlook = self.look_ahead(request)
        values = _points(prepared, outlook)
        window = Window(prepared, {"": values}, self.plan.season_length)
        runaway = {}
        for (i, own), forecasts in zip(prepared.ready.items(), values, strict=True):
            p = own.preparation
            if text := describe_runaway(p.clip(forecasts), p.low, p.high):
                runaway[i] = text
        return Forecasts(window.restore(request.ahead)[""], runaway=runaway)

    def find_quantiles(
        self, request: ForecastRequest, probabilities: Sequence[float], factors: Sequence[float]
    ) -> Array:
        found = self._quantiles(self.look_ahead(request), request.ahead, probabilities, factors)
        return np.sort(np.stack([found[str(p)] for p in probabilities], axis=2), axis=2)

    def look_ahead(self, request: ForecastRequest) -> tuple[PreparedPanel, Outlook]:
        """Return the panel at its origins, and the network's forecasts; the latest are kept."""
        places = [series.y.ctypes.data for series in request.panel]
        key = np.array([*places, *request.origins, request.h]).tobytes()
        found = self._latest.get(key)
        if found is None:
            found = self._run(request)
            self._latest.clear()
            self._latest[key] = found
        return found

    def _run(self, request: ForecastRequest) -> tuple[PreparedPanel, Outlook]:
        seen, prepared, plan = request.seen, self.prepared, self.plan
        season, longer = plan.season_length, plan.longer_season
        if len(seen) != len(prepared.panel) or not prepared.is_of(seen):
            prepared = PreparedPanel.of(seen, plan, like=prepared)
        with np.errstate(all="ignore"):
            found = forecast(
                prepared.histories, request.h, season, longer=longer, device=plan.device
            )
            if any(not own.is_known.all() for own in prepared.ready.values()):
                histories = Histories.of(prepared.histories, season, longer)
                median = found.median
                own = (median, found.quantiles, 1, plan.device)
                wide = measure_distances(prepared, histories, *own)
                found = Outlook(median[:, :, None] + wide, found.mean)
        return prepared, found

    def _quantiles(
        self,
        found: tuple[PreparedPanel, Outlook],
        ahead: Sequence[Array],
        probabilities: Sequence[float],
        factors: Sequence[float],
    ) -> dict[str, Array]:
        """Return the "median" (n, h), and quantiles by their probabilities as text.

        Distances from the median are multiplied by factors.
        """
        prepared, outlook = found
        median, quantiles = outlook.median, {"median": outlook.median}
        for p, factor in zip(probabilities, factors, strict=True):
            quantiles[str(p)] = median + factor * (quantile(outlook.quantiles, p) - median)
        return Window(prepared, quantiles, self.plan.season_length).restore(ahead)

    def score(self, some: ForecastRequest, levels: Sequence[float]) -> Array:
        """Return how much wider distances from the median had to be, (n, m, n_levels)."""
        found = np.full((len(some.panel), _WINDOWS, some.h, len(levels)), np.nan)
        for k, (fair, shares) in enumerate(self.look_back(some, levels)):
            found[fair, k] = np.abs(shares)
        return found.reshape(len(found), _WINDOWS * some.h, len(levels))

    def look_back(
        self, some: ForecastRequest, levels: Sequence[float]
    ) -> Iterator[tuple[Ints, Array]]:
        """Yield the series of each window before the origins, the latest first, and their errors.

        Errors (n, h, n_levels) are shares of the distance from the median to the bound of a level.
        """
        h, sides = some.h, [(0.5 - level / 2.0, 0.5 + level / 2.0) for level in levels]
        both = [p for pair in sides for p in pair]
        for window in range(1, _WINDOWS + 1):
            fair = np.flatnonzero(some.origins - window * h >= _FEWEST_BEFORE)
            if not fair.size:
                break
            then = some.select(fair.tolist())
            at = (then.origins - window * h)[:, None]
            pairs = list(zip(then.panel, at, strict=True))
            ahead = [values_after(series.known_ahead, o, h)[0] for series, o in pairs]
            past = ForecastRequest(then.panel, at[:, 0], h, ahead)
            actual = np.stack([values_after(series.y, o, h)[0] for series, o in pairs])
            found = self._quantiles(self._run(past), ahead, both, [1.0] * len(both))
            away = actual - found["median"]
            with np.errstate(all="ignore"):  # series without any spread do not count
                shares = [
                    away
                    / np.abs(
                        np.where(away > 0.0, found[str(high)], found[str(low)]) - found["median"]
                    )
                    for low, high in sides
                ]
            yield fair, np.stack(shares, axis=2)


def explain_one(prepared: PreparedPanel, i: int, point: Array, plan: Plan) -> Terms:
    """Return the terms of the network's forecast (h,) of a series that is ready, before effects.

    Rows of exemplars and responses tell the same in other ways, and contribute nothing.
    """
    terms, p = Terms(), prepared.ready[i].preparation
    found = explain(prepared.history(i), point.size, plan.season_length, plan.longer_season)
    for part in found.parts:
        terms.add(part.kind, part.name, part.contribution, part.value, part.weight)
    for one in found.active:
        nothing = 0.0 * one.alone
        terms.add("exemplar", one.name, nothing, value=one.alone, activation=one.gate)
    for each in found.response:
        nothing, name = 0.0 * each.weight, f"value {each.lag} back"
        terms.add("response", name, nothing, value=each.value, weight=each.weight)
    terms.add_rest("mean", "how far the mean is from the median", point)
    terms.add_rest("guard", "guard against runaway forecasts", p.clip(point))
    return terms


def add_way_back(
    terms: Terms, p: Preparation, u: Array, ahead: Array, names: InputNames, total: Array
) -> None:
    """Add the terms that lead from a forecast u (h,) without effects to one of observations."""
    add_effects(terms, p.effects, u, ahead, names.ahead)
    if p.log:
        terms.add_rest("logarithm", "back from logarithms", total)
    terms.add_rest("guard", "never negative", total)


def _points(prepared: PreparedPanel, outlook: Outlook) -> Array:
    """Return medians of the series that are ready, or means of those that are often zero."""
    sparse = find_sparse([prepared.panel[i].y for i in prepared.ready])
    return np.where(sparse[:, None], outlook.mean, outlook.median)


def _find_factors(parts: list[Array], levels: Sequence[float], h: int) -> list[float]:
    """Return a factor for the distances from the median of each level.

    Wild series do not count, see `series.outliers`; nor do those without any spread.
    """
    table = np.concatenate(parts)
    table = table[~find_wild(mean_of_known(table, axis=(1, 2)))]
    table = table.reshape(len(table), _WINDOWS, h, len(levels))
    return [_factor(table[..., j], level) if level else 1.0 for j, level in enumerate(levels)]


def _factor(scores: Array, level: float) -> float:
    """Return the quantile of the scores (n, n_windows, h) at a level, drawn to the usual one.

    The fewer errors there are, the closer.
    """
    known = np.sort(scores[np.isfinite(scores)])
    if not known.size:
        return REAL_SPREAD
    rank = min(int(np.ceil(level * (known.size + 1))), known.size) - 1
    trust = trust_in(count_errors(scores))
    return float(REAL_SPREAD ** (1.0 - trust) * np.clip(known[rank], 0.2, 5.0) ** trust)


def quantile(quantiles: Array, probability: float) -> Array:
    """Return the quantile at a probability from those at `PROBABILITIES`, their last axis.

    It lies on a line in the quantiles of a normal variable between, and beyond, the nearest ones.
    """
    known, wanted = ndtri(np.array(PROBABILITIES)), float(ndtri(probability))
    upper = int(np.clip(np.searchsorted(known, wanted), 1, known.size - 1))
    share = (wanted - known[upper - 1]) / (known[upper] - known[upper - 1])
    return np.asarray((1.0 - share) * quantiles[..., upper - 1] + share * quantiles[..., upper])
