"""The stack: members forecast a panel, and their forecasts are mixed.

How much each member counts is found at the ends of the series: with the last steps held back, and
as many before them, all members forecast what is known already; see `models.stack.blocks` for how
many steps that is, and `models.stack.mixing`. Intervals are quantiles of the pretrained network
around the mixture, corrected by the errors of the mixture there; see `models.intervals`.
Nothing is kept but the data and the plan: every forecast learns from all that is known at its
origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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
from rbfdiffnet.models.by_chunk import (
    FittedByChunk,
    MethodByChunk,
    by_position,
    scatter,
    split_panel,
)
from rbfdiffnet.models.intervals import (
    INTERVAL_METHODS,
    HeldOutErrors,
    Pools,
    correct_scores,
    to_distances,
    to_scores,
)
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.pretrained import add_way_back, explain_one
from rbfdiffnet.models.stack.blocks import has_one_or_two_seasons, split_steps
from rbfdiffnet.models.stack.members import CORRECTED, N_FIRST, PRETRAINED, Outlooks
from rbfdiffnet.models.stack.mixing import (
    combine,
    find_medians,
    find_sparse,
    measure_changes,
    measure_units,
    weigh_in_two_steps,
)
from rbfdiffnet.models.stack.windows import PreparedPanel, Window
from rbfdiffnet.series.naive import naive_errors, values_after
from rbfdiffnet.series.series import Series, SeriesPanel
from rbfdiffnet.support.arrays import Array, Ints, Mask
from rbfdiffnet.support.memo import current_memo
from rbfdiffnet.support.parallel import (
    Collective,
    count_threads,
    one_blas_thread,
    parallel_map,
)
from rbfdiffnet.support.progress import progress_between, report_progress
from rbfdiffnet.support.stability import describe_runaway

_MOST_VALUES = 4_096  # of a series, its latest, that are learned from
_MOST_SEASONS = 20  # or as many as that
_NAIVE_WINDOWS = 5  # of naive forecasts, whose errors are borrowed
_REMEMBERED = 2  # origins and horizons
_WINDOWS_AT_ONCE = 4  # in threads: each takes memory


class Stack(MethodByChunk):
    """Several forecasts of a panel, mixed by how well they forecast the ends of the series."""

    has_networks = False
    weights_refusal = (
        "refit='weights' needs scope='global': scope='auto' learns anew from all observations "
        "for every forecast, with refit=True and refit=False alike."
    )

    def fit(
        self, panel: SeriesPanel, plan: Plan, *, calibrate: bool = False, n_jobs: int = 1
    ) -> FittedStack:
        """Make a panel ready."""
        del calibrate, n_jobs
        chunks = split_panel(panel)
        return FittedStack(plan, chunks, [PreparedPanel.of(panel.select(p), plan) for p in chunks])


@dataclass(frozen=True)
class Mixture:
    """Forecasts (n, h) of a panel by the stack.

    `scores` (n, n_windows, h) tell how large its errors were at the ends of the series, see
    `models.intervals.to_scores`; NaN where unknown. `weights` (n, h) say how much each member
    counts; `members` (n, h) are their forecasts. `runaway` tells how forecasts were held back by
    the rule of `support.stability`, by series.
    """

    values: Array
    scores: Array
    weights: dict[str, Array]
    members: dict[str, Array]
    runaway: dict[int, str]


@dataclass(frozen=True)
class _Learned:
    """What forecasts from one origin of each series rest on, whatever the inputs ahead."""

    plan: Plan
    window: Window
    weights: Array  # (M, n, h)
    scores: Array  # (n, n_windows, h)

    def mix(self, ahead: Sequence[Array]) -> Mixture:
        members = self.window.restore(ahead)
        values = combine(np.stack(list(members.values())), self.weights)
        weights = dict(zip(members, self.weights, strict=True))
        return Mixture(values, self.scores, weights, members, self._runaway())

    def explain(self, i: int, ahead: Array, names: InputNames, total: Array) -> Terms:
        """Return the terms of the forecast (h,) of a series that is ready."""
        prepared, row = self.window.prepared, list(self.window.prepared.ready).index(i)
        p = prepared.ready[i].preparation
        members = {name: own[row] for name, own in self.window.forecasts.items()}
        weights = dict(zip(members, self.weights[:, i], strict=True))
        terms = explain_one(prepared, i, members[PRETRAINED], self.plan)
        terms = terms.scale(weights[PRETRAINED] + weights.get(CORRECTED, 0.0))
        members = {name: p.clip(own) for name, own in members.items()}
        u = sum(weights[name] * own for name, own in members.items() if weights[name].any())
        correction = "what the panel's rows correct"
        if CORRECTED in members:
            weights[correction] = weights.pop(CORRECTED)
            members[correction] = members.pop(CORRECTED) - members[PRETRAINED]
        for name, value in members.items():
            if name != PRETRAINED and weights[name].any():
                contribution = weights[name] * value
                terms.add("member", name, contribution, value=value, weight=weights[name])
        add_way_back(terms, p, np.asarray(u), ahead, names, total)
        return terms

    def _runaway(self) -> dict[int, str]:
        own = {i: ready.preparation for i, ready in self.window.prepared.ready.items()}
        low, high = np.array([(p.low, p.high) for p in own.values()]).reshape(-1, 2).T
        members = np.stack(list(self.window.forecasts.values()))
        u = combine(np.clip(members, low[:, None], high[:, None]), self.weights[:, list(own)])
        found = {
            i: describe_runaway(v, p.low, p.high) for (i, p), v in zip(own.items(), u, strict=True)
        }
        return {i: text for i, text in found.items() if text}


@dataclass(frozen=True)
class FittedStack(FittedByChunk):
    """A stack for a panel; what its latest forecasts rest on is remembered."""

    _known: dict[bytes, list[_Learned]] = field(default_factory=dict, repr=False, compare=False)
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
        with one_blas_thread(), np.errstate(all="ignore"):
            learned = self._recall(request, n_jobs)
            mixtures = [
                own.mix(request.select(chunk.tolist()).ahead)
                for own, chunk in zip(learned, self.chunks, strict=True)
            ]
        mixture = self._join(mixtures)
        self._latest[:] = [mixture]
        return mixture

    def _recall(self, request: ForecastRequest, n_jobs: int) -> list[_Learned]:
        """Return what forecasts of a request rest on, chunk by chunk; learn it if need be."""
        places = [series.y.ctypes.data for series in request.panel]
        key = np.array([*places, *request.origins, request.h]).tobytes()
        if (known := self._known.get(key)) is not None:
            return known
        found: list[_Learned] = []
        done, total = 0, max(self.n_series, 1)
        for chunk, prepared in zip(self.chunks, self.prepared, strict=True):
            end = done + chunk.size
            with progress_between(done / total, end / total):
                own = request.select(chunk.tolist())
                found.append(_learn(own, self.plan, n_jobs, prepared))
            done = end
        for old in list(self._known)[: 1 - _REMEMBERED]:
            self._known.pop(old, None)
        self._known[key] = found
        return found

    def find_intervals(
        self,
        request: ForecastRequest,
        levels: Sequence[float],
        collective: Collective,
        pools: Pools | None = None,
        n_jobs: int = 1,
    ) -> tuple[Array, Array, Mask]:
        """Return bounds (n, h, n_levels): quantiles of the pretrained network, moved and corrected.

        They lie around the mixture, as far away as errors at the ends of the series ask for. Series
        without a network get intervals of naive errors; `enough` (n,) tells of these.
        """
        held_out, log = self.held_out_errors(request, n_jobs), self.plan.log
        widths, enough = INTERVAL_METHODS[held_out.method](held_out, levels, collective, pools)
        centers, modeled = held_out.centers[:, :, None], held_out.modeled
        low, high = centers - widths, centers + widths
        learned = self._recall(request, n_jobs)
        for chunk, known in zip(self.chunks, learned, strict=True):
            distances = known.window.distances_of_all(request.select(chunk.tolist()).ahead)
            own, distances = chunk[modeled[chunk]], distances[modeled[chunk]]
            start = _link(centers[own], log)
            scores = correct_scores(widths[own], [held_out.errors[i] for i in own.tolist()], levels)
            low[own] = start - to_distances(-scores, distances)
            high[own] = start + to_distances(scores, distances)
            if log:
                low[own], high[own] = np.expm1(low[own]), np.expm1(high[own])
        low = np.maximum(low, held_out.floor[:, None, None])
        return (
            np.minimum.accumulate(low, axis=2),
            np.maximum.accumulate(high, axis=2),
            enough | modeled,
        )

    def held_out_errors(self, request: ForecastRequest, n_jobs: int = 1) -> HeldOutErrors:
        """Return the errors of the mixture at the ends of the series, as scores."""
        mixture, season, h = self.mix(request, n_jobs), self.plan.season_length, request.h
        seen = request.seen
        n = len(seen)
        scales, pool = np.zeros(n), np.zeros(n, dtype=np.int64)
        usable: list[Array] = [np.empty(0)] * n
        for number, (chunk, prepared) in enumerate(zip(self.chunks, self.prepared, strict=True)):
            own = prepared.at([seen[i] for i in chunk.tolist()]).usable
            scales[chunk], pool[chunk] = measure_changes(own, season, h), number
            for i, values in zip(chunk.tolist(), own, strict=True):
                usable[i] = values
        scales = np.where(self._is_ready, 1.0, scales)

        def naive(chosen: Sequence[int]) -> tuple[list[Array], Array]:
            """Errors of last values, repeated, at the ends of chosen series, and their scales."""
            origins = [np.arange(seen[i].y.size - h, 0, -h)[:_NAIVE_WINDOWS] for i in chosen]
            found = zip(chosen, origins, strict=True)
            errors = [naive_errors(seen[i].y, at, h, 1) for i, at in found]
            return errors, measure_changes([usable[i] for i in chosen], 1, h)

        never_negative = np.array([np.nanmin(s.y, initial=np.inf) >= 0.0 for s in seen], dtype=bool)
        return HeldOutErrors(
            list(mixture.scores),
            scales,
            mixture.values,
            modeled=self._is_ready,
            naive=naive,
            fingerprints=lambda: [series.fingerprint for series in seen],
            floor=np.where(never_negative, 0.0, -np.inf),
            pool=pool,
            method="scaled",
        )

    def explain(
        self, request: ForecastRequest, names: InputNames, chosen: Sequence[int], n_jobs: int = 1
    ) -> tuple[Array, list[Terms]]:
        """Return forecasts (n, h), and for chosen series the terms they are the sum of.

        These are the terms of the pretrained network, of which the corrected forecast is made,
        too; the correction; and the other members.
        """
        values, is_ready, tables = self.mix(request, n_jobs).values, self._is_ready, {}
        for chunk, learned in zip(self.chunks, self._recall(request, n_jobs), strict=True):
            for place in np.flatnonzero(np.isin(chunk, chosen)).tolist():
                i = int(chunk[place])
                if is_ready[i]:
                    tables[i] = learned.explain(place, request.ahead[i], names, values[i])
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
            "anew for every forecast. Use cross_validation(df, h), or scope='local' or "
            "scope='global'."
        )

    def extend(self, panel: SeriesPanel) -> FittedModel:
        """Return the stack of the extended panel."""
        return Stack().fit(panel, self.plan)

    # Chunks ---------------------------------------------------------------------------------------

    def _join(self, mixtures: Sequence[Mixture]) -> Mixture:
        if len(mixtures) == 1:
            return mixtures[0]
        names = dict.fromkeys(name for mixture in mixtures for name in mixture.members)
        longest = max((mixture.scores.shape[1] for mixture in mixtures), default=0)

        def pad(scores: Array) -> Array:
            lacking = longest - scores.shape[1]
            return np.pad(scores, ((0, 0), (0, lacking), (0, 0)), constant_values=np.nan)

        return Mixture(
            scatter(self.chunks, [m.values for m in mixtures]),
            scatter(self.chunks, [pad(m.scores) for m in mixtures]),
            {
                name: scatter(
                    self.chunks, [m.weights.get(name, np.zeros_like(m.values)) for m in mixtures]
                )
                for name in names
            },
            {
                name: scatter(
                    self.chunks,
                    [m.members.get(name, np.full_like(m.values, np.nan)) for m in mixtures],
                )
                for name in names
            },
            by_position(self.chunks, [m.runaway for m in mixtures]),
        )


@dataclass(frozen=True)
class _Hindsight:
    """Errors (M, n, steps) of members from an earlier origin, what came (n, steps), and distances.

    The distances (n, steps, q) are those of `Window.distances_of_all`.
    """

    errors: Array
    actual: Array
    distances: Array


def _learn(request: ForecastRequest, plan: Plan, n_jobs: int, prepared: PreparedPanel) -> _Learned:
    """Weigh the members at the ends of the series, and let them forecast the request."""
    most, h = max(_MOST_VALUES, _MOST_SEASONS * plan.season_length), request.h
    panel, origins = _latest(request.panel, request.origins, most)

    def prepare(at: Ints, numbers: dict[int, int] | None = None) -> PreparedPanel:
        """Make the panel ready at origins; what was made ready when it was fitted is used again."""
        seen = [series.until(o) for series, o in zip(panel, at.tolist(), strict=True)]
        return prepared if prepared.is_of(seen) else PreparedPanel.of(seen, plan, numbers)

    ready = prepare(origins)
    fitted, short = ready.is_ready, ready.is_short
    blocks = split_steps(h, plan.season_length, origins[fitted & ~short])
    repeats = has_one_or_two_seasons(origins, blocks[0].last, plan.season_length)
    n_steps = {d: block.last for block in blocks for d in block.distances}
    longest, memo = max(h, blocks[-1].last), current_memo()
    earlier = Outlooks(longest, plan.season_length, plan.longer_season, n_jobs, memo)
    n_steps[0] = longest if memo.is_shared else h  # as far as other windows look

    def look_from(distance: int, earlier: Outlooks) -> Window:
        """Let every member forecast from so many steps before the origins; 0 is the request."""
        then = prepare(np.maximum(origins - distance, 0), ready.numbers) if distance else ready
        return Window.of(then, n_steps[distance], plan, earlier, repeats=repeats)

    now = look_from(0, earlier).first_steps(h)
    names, n, usable = list(now.forecasts), len(panel), now.prepared.usable

    def look_back(distance: int) -> _Hindsight:
        """Compare the members from so many steps before the origins with what came.

        Most rows are those of the request, too, whose forecasts are known by now.
        """
        with np.errstate(all="ignore"):  # in this thread
            return compare(look_from(distance, branches[distance]), distance)

    def compare(past: Window, distance: int) -> _Hindsight:
        steps = n_steps[distance]
        places = list(zip(panel, usable, np.maximum(origins - distance, 0)[:, None], strict=True))
        ahead = [values_after(s.known_ahead, o, steps)[0] for s, _, o in places]
        actual = np.reshape([values_after(y, o, steps)[0] for _, y, o in places], (n, steps))
        members, nothing = past.restore(ahead), np.full((n, steps), np.nan)
        forecasts = np.stack([members.get(name, nothing) for name in names])
        counts = past.prepared.is_ready & ~past.prepared.is_short & fitted
        errors = np.where(counts[:, None], forecasts - actual, np.nan)
        return _Hindsight(errors, actual, past.distances_of_all(ahead))

    branches = {distance: earlier.branch() for distance in n_steps if distance}
    distances, n_at_once = list(branches), min(count_threads(n_jobs), _WINDOWS_AT_ONCE)
    hindsight: dict[int, _Hindsight] = {}
    for first in range(0, len(distances), n_at_once):
        report_progress((first + 1) / (len(distances) + 1))
        some = distances[first : first + n_at_once]
        hindsight.update(zip(some, parallel_map(look_back, some, n_at_once), strict=True))
    for branch in branches.values():
        earlier.merge(branch)
    report_progress(1.0)
    units = measure_units(usable, plan.season_length)[:, None, None]
    sparse = find_sparse([series.y[:o] for series, o in zip(panel, origins.tolist(), strict=True)])
    weights = np.empty((len(names), n, h))
    forecasts = np.full((len(names), n, h), np.nan)
    forecasts[:, list(now.prepared.ready)] = list(now.forecasts.values())
    scores = np.full((n, max(len(block.distances) for block in blocks), h), np.nan)
    for block in blocks:
        then = [hindsight[distance] for distance in block.distances]
        own = np.stack([past.errors[:, :, : block.last] for past in then], axis=2)
        found, of_median = weigh_in_two_steps(own / units, sparse, N_FIRST)
        # Without errors, and of short series, the pretrained network counts alone.
        found[:, short], of_median[short] = 0.0, 0.0
        found[0, ~found.any(axis=0) & (of_median == 0.0)] = 1.0
        found, of_median = found[:, :, None], of_median[:, None]
        tested = np.reshape([np.isfinite(errors).any() for errors in own], (-1, 1, 1))
        medians = find_medians(np.where(tested, forecasts[:, :, block.first :], np.nan))
        weights[:, :, block.first :] = found + of_median * medians
        steps = slice(block.first, min(block.last, h))
        for k, past in enumerate(then):
            errors, came = own[:, :, k, steps], past.actual[:, steps]
            mixed = combine(errors, found + of_median * find_medians(errors))
            away = _link(came, plan.log) - _link(came + mixed, plan.log)
            scores[:, k, steps] = np.abs(to_scores(away, past.distances[:, steps]))
    return _Learned(plan, now, weights, scores)


def _link(y: Array, log: bool) -> Array:
    """Return values on the scale on which the network sees them."""
    return np.log1p(np.maximum(y, 0.0)) if log else y


def _latest(panel: Sequence[Series], origins: Ints, most: int) -> tuple[list[Series], Ints]:
    """Cut series to their latest known values before the origins, at most so many."""
    cut = np.zeros_like(origins)
    for i in np.flatnonzero(origins > most).tolist():
        known = np.flatnonzero(np.isfinite(panel[i].y[: origins[i]]))
        cut[i] = known[-most] if known.size > most else 0
    return [s.after(c) for s, c in zip(panel, cut.tolist(), strict=True)], origins - cut
