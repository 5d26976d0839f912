"""What a stack learns from some series, and forecasts of any series by it.

A `StackLesson` is all that is learned across series: by the members, and about them. A `StackPart`
is some series at their origins, forecast by a lesson.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b

import numpy as np

from rbfdiffnet.models.base import ForecastRequest, InputNames, Terms
from rbfdiffnet.models.intervals import ErrorScale, mean_scores, split_levels
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.pretrained import add_way_back, explain_one
from rbfdiffnet.models.scores import spread_scores, to_errors
from rbfdiffnet.models.stack.blocks import Block, has_one_or_two_seasons, split_steps
from rbfdiffnet.models.stack.members import CORRECTED, N_FIRST, PRETRAINED
from rbfdiffnet.models.stack.mixing import (
    combine,
    find_medians,
    measure_changes,
    measure_units,
    usual_change,
    weigh_in_two_steps,
)
from rbfdiffnet.models.stack.own_maps import OWN_MAP, find_own_maps, forecast_own, seeks_maps
from rbfdiffnet.models.stack.windows import PreparedPanel, Window, WindowLesson, learn_windows
from rbfdiffnet.noise.series_model import SeriesModel
from rbfdiffnet.series.naive import naive_errors, values_after
from rbfdiffnet.series.series import Series, find_counts, find_sparse
from rbfdiffnet.support.arrays import Array, Arrays, Ints, Mask
from rbfdiffnet.support.memo import current_memo
from rbfdiffnet.support.parallel import flatten, parallel_map
from rbfdiffnet.support.progress import report_progress
from rbfdiffnet.support.stability import describe_runaway

_MOST_VALUES = 4_096  # of a series, its latest, that are learned from
_MOST_SEASONS = 20  # or as many as that
_MOVE = 512  # steps by which the first of these moves
_SPREAD = 9  # scores of a count
_NAIVE_WINDOWS = 5  # of naive forecasts, whose errors are borrowed


@dataclass(frozen=True)
class StackLesson:
    """What was learned from some series, for forecasts of all series from one origin of each.

    `windows` is what members learned, by how many steps before the origins that was; 0 is the
    origins. `weights` (M, 2) of the members in `names` and `of_median` (2,), for each of the
    `blocks`, serve both kinds of series, see `models.stack.mixing`; `tested` (M,) are the members
    that could forecast earlier. `scores` (n, n_windows, h) tell how large errors of the mixture
    were, and which sign they had, see `models.scores.to_scores`; NaN where unknown. `usable`
    are values of the series; some are `sparse` (n,), often zero. With `seeks_maps` each series is
    looked at, whether it follows a rule of its own, see `models.stack.own_maps`.
    """

    plan: Plan
    h: int
    names: tuple[str, ...]
    blocks: list[Block]
    windows: dict[int, WindowLesson]
    n_steps: dict[int, int]
    weights: list[Array]
    of_median: list[Array]
    tested: list[Mask]
    scores: Array
    usable: list[Array]
    sparse: Mask
    seeks_maps: bool = False

    @cached_property
    def scales(self) -> list[ErrorScale]:
        """How large scores are: of series that are not often zero, and of those that are."""
        return [ErrorScale.of_scores(self.scores[kind]) for kind in (~self.sparse, self.sparse)]

    @cached_property
    def naive_scale(self) -> ErrorScale:
        """How large errors of last values, repeated, are."""
        h = self.h
        errors = np.full((len(self.usable), _NAIVE_WINDOWS, h), np.nan)
        for own, y in zip(errors, self.usable, strict=True):
            origins = np.arange(y.size - h, 0, -h)[:_NAIVE_WINDOWS]
            own[: origins.size] = np.abs(naive_errors(y, origins, h, 1))
        return ErrorScale.of(errors, measure_changes(self.usable, 1, h))

    def mix_members(self, window: Window, sparse: Mask) -> Array:
        """Return the weights (M, n, h) of the members of a window."""
        prepared, kind = window.prepared, sparse.astype(np.int64)
        weights = np.empty((len(self.names), len(prepared.panel), self.h))
        forecasts = np.full(weights.shape, np.nan)
        forecasts[:, list(prepared.ready)] = list(window.forecasts.values())
        for j, block in enumerate(self.blocks):
            found, of_median = self._weights_of(j, kind, prepared.is_short)
            tested = self.tested[j][:, None, None]
            medians = find_medians(np.where(tested, forecasts[:, :, block.first :], np.nan))
            weights[:, :, block.first :] = found + of_median * medians
        return weights

    def score(
        self,
        hindsight: dict[int, Hindsight],
        sparse: Mask,
        prepared: PreparedPanel,
    ) -> Array:
        """Return scores (n, n_windows, h, q) of the mixture at the ends of series."""
        n_windows = max(len(block.distances) for block in self.blocks)
        counts = find_counts([series.y for series in prepared.panel])[:, None]
        grain, ends_at_0 = np.where(counts, 0.5, 0.0), prepared.never_negative[:, None]
        n_each, log = _SPREAD if counts.any() else 1, self.plan.log
        scores = np.full((sparse.size, n_windows, self.h, n_each), np.nan)
        for j, block in enumerate(self.blocks):
            found, of_median = self._weights_of(j, sparse.astype(np.int64), prepared.is_short)
            steps = slice(block.first, min(block.last, self.h))
            for k, distance in enumerate(block.distances):
                past = hindsight[distance]
                errors, came = past.errors[:, :, steps], past.actual[:, steps]
                mixed = combine(errors, found + of_median * find_medians(errors))
                point = _link(came + mixed, log)
                low, high = (_link(came + sign * grain, log) - point for sign in (-1.0, 1.0))
                low = np.where(ends_at_0 & (came == 0.0) & np.isfinite(low), -np.inf, low)
                own = low, high, past.distances[:, steps]
                scores[:, k, steps] = spread_scores(*own, n_each)
        return scores

    def whole_windows(self) -> Array:
        """Return scores (n, n_windows, k) by the windows of the first block, the latest last.

        A value that stands for many has one of their scores, drawn by chance: the mean of them
        would have the same sign for all zeros, as if errors went together.
        Later blocks add their steps to windows that begin where one of theirs does; k is the last
        step that any window has. Windows of the first block may lie inside of such a longer one:
        the same days are then forecast twice, from origins that are apart, and count twice.
        """
        first, scores = self.blocks[0].distances, self._draw_scores()
        found = np.full((len(scores), len(first), self.h), np.nan)
        last = 0
        for block in self.blocks:
            steps = slice(block.first, block.last)
            for k, distance in enumerate(block.distances):
                if distance in first:
                    found[:, first.index(distance), steps] = scores[:, k, steps]
                    last = block.last
        return found[:, ::-1, :last]

    def _draw_scores(self) -> Array:
        """Return one of the scores (n, n_windows, h) of each value, whatever other series do."""
        *shape, n_each = self.scores.shape[1:]
        if n_each == 1:
            return self.scores[..., 0]
        drawn = np.empty((len(self.scores), *shape, 1), dtype=np.int64)
        for own, y in zip(drawn, self.usable, strict=True):
            digest = blake2b(y.tobytes(), digest_size=8).digest()
            generator = np.random.default_rng(int.from_bytes(digest))
            own[..., 0] = generator.integers(n_each, size=shape)
        return np.take_along_axis(self.scores, drawn, axis=3)[..., 0]

    def _weights_of(self, block: int, kind: Ints, short: Mask) -> tuple[Array, Array]:
        """Return weights of members (M, n, 1) and of their median (n, 1) in a block of steps.

        Without errors, and of short series, the pretrained network counts alone.
        """
        found, of_median = self.weights[block][:, kind], self.of_median[block][kind]
        found[:, short], of_median[short] = 0.0, 0.0
        found[0, ~found.any(axis=0) & (of_median == 0.0)] = 1.0
        return found[:, :, None], of_median[:, None]


@dataclass(frozen=True)
class StackPart:
    """Some series at their origins, and what their forecasts rest on, whatever the inputs ahead.

    `hindsight` is there for series that were learned from.
    """

    lesson: StackLesson
    panel: list[Series]
    origins: Ints
    window: Window
    n_jobs: int
    hindsight: dict[int, Hindsight] | None = None

    @classmethod
    def of(
        cls, lesson: StackLesson, request: ForecastRequest, prepared: PreparedPanel, n_jobs: int
    ) -> StackPart:
        """Forecast the series of a request by what was learned from others."""
        plan = lesson.plan
        panel, origins = _latest(request, plan)
        ready = _prepare(panel, origins, plan, prepared, lesson.windows[0])
        window = Window.of(ready, lesson.h, plan, lesson.windows[0], n_jobs)
        return cls(lesson, panel, origins, window, n_jobs)

    @cached_property
    def weights(self) -> Array:
        """How much each member counts, (M, n, h)."""
        return self.lesson.mix_members(self.window, self.sparse)

    @cached_property
    def own_maps(self) -> dict[int, SeriesModel]:
        """What was learned of series that follow a rule of their own, by position."""
        lesson = self.lesson
        if not lesson.seeks_maps:
            return {}
        return find_own_maps(self.window.prepared, lesson.plan, self.n_jobs)

    @cached_property
    def without_inputs(self) -> list[Arrays]:
        """Forecasts as if the first input had never changed, the first two, and so on."""
        lesson, first = self.lesson, self.panel[0]
        counts, own = range(1, first.extra.shape[1] + 1), lesson.windows[0]
        return [self.window.without_inputs(k, lesson.plan, own) for k in counts]

    @cached_property
    def sparse(self) -> Mask:
        """Which series are often zero."""
        pairs = zip(self.panel, self.origins.tolist(), strict=True)
        return find_sparse([series.y[:origin] for series, origin in pairs])

    @cached_property
    def scores(self) -> Array:
        """Scores of errors of the mixture at the ends of the series, (n, n_windows, h, q)."""
        lesson = self.lesson
        hindsight = self.hindsight or {
            distance: _look_back(self, distance) for distance in lesson.windows if distance
        }
        return lesson.score(hindsight, self.sparse, self.window.prepared)

    def mix(self, ahead: Sequence[Array]) -> Mixture:
        """Mix the members' forecasts, with the effects of inputs ahead."""
        members = self.window.restore(ahead)
        values = combine(np.stack(list(members.values())), self.weights)
        weights = dict(zip(members, self.weights, strict=True))
        if self.own_maps:
            for i, own in self._forecast_own(ahead, (0.5,)).items():
                values[i] = own[:, 0]
            is_own = np.isin(np.arange(len(values)), list(self.own_maps))[:, None]
            weights = {name: np.where(is_own, 0.0, own) for name, own in weights.items()}
            weights[OWN_MAP] = np.where(is_own, 1.0, np.zeros_like(values))
            members[OWN_MAP] = values
        return Mixture(values, weights, members, self._runaway())

    def _forecast_own(
        self, ahead: Sequence[Array], probabilities: Sequence[float]
    ) -> dict[int, Array]:
        """Return quantiles (h, P) of series that follow a rule of their own, by position."""
        prepared, found = self.window.prepared, {}
        for i, model in self.own_maps.items():
            u = forecast_own(model, self.lesson.h, probabilities)
            y = prepared.ready[i].preparation.restore(u.T, ahead[i]).T
            found[i] = np.maximum(y, 0.0) if prepared.never_negative[i] else y
        return found

    def find_quantiles(
        self, centers: Array, ahead: Sequence[Array], probabilities: Sequence[float]
    ) -> tuple[Array, Mask]:
        """Return quantiles (n, h, P) around forecasts (n, h), and where (n, P) errors suffice."""
        lesson, ready, log = self.lesson, self.window.prepared, self.lesson.plan.log
        levels, which, side = split_levels(probabilities)
        modeled, h = ready.is_ready, lesson.h
        others = np.flatnonzero(~modeled)
        values = [ready.panel[i].y for i in others.tolist()]
        widths = np.zeros((*centers.shape, len(levels)))
        enough = np.ones((modeled.size, len(levels)), dtype=bool)
        if others.size:
            changes = measure_changes(values, 1, h, usual_change(lesson.usable, 1, h))
            nothing = np.full((others.size, 1, h), np.nan)
            found, sure = lesson.naive_scale.half_widths(nothing, changes, levels)
            widths[others], enough[others] = found, sure
        quantiles = centers[:, :, None] + side * widths[:, :, which]
        scores = np.empty(quantiles.shape)
        for scale, kind in zip(lesson.scales, (~self.sparse, self.sparse), strict=True):
            own = kind & modeled
            sizes = mean_scores(self.scores[own])
            bounds = [-scale.correct(sizes, levels, -1.0), scale.correct(sizes, levels, 1.0)]
            scores[own] = np.where(side < 0.0, *(bound[:, :, which] for bound in bounds))
        distances = self.window.distances_of_all(ahead)[modeled]
        found = _link(centers[modeled], log)[:, :, None] + to_errors(scores[modeled], distances)
        quantiles[modeled] = np.expm1(found) if log else found
        for i, table in self._forecast_own(ahead, probabilities).items():
            quantiles[i] = table
        floor = np.where(ready.never_negative, 0.0, -np.inf)[:, None, None]
        return np.sort(np.maximum(quantiles, floor), axis=2), enough[:, which]

    def explain(self, i: int, ahead: Array, names: InputNames, total: Array) -> Terms:
        """Return the terms of the forecast (h,) of a series that is ready."""
        prepared, row = self.window.prepared, list(self.window.prepared.ready).index(i)
        p = prepared.ready[i].preparation
        if i in self.own_maps:
            terms, u = Terms(), forecast_own(self.own_maps[i], self.lesson.h, (0.5,))[:, 0]
            terms.add("member", OWN_MAP, u, value=u, weight=1.0)
            add_way_back(terms, p, u, ahead, names, total)
            return terms
        members = {name: own[row] for name, own in self.window.forecasts.items()}
        weights = dict(zip(members, self.weights[:, i], strict=True))
        terms = explain_one(prepared, i, members[PRETRAINED], self.lesson.plan)
        terms = terms.scale(weights[PRETRAINED] + weights.get(CORRECTED, 0.0))
        members = {name: p.clip(own) for name, own in members.items()}
        u = sum(weights[name] * own for name, own in members.items() if weights[name].any())
        inputs = []
        for without in self.without_inputs:
            kept = {name: p.clip(own[row]) for name, own in without.items()}
            changes = [weights[name] * (members[name] - own) for name, own in kept.items()]
            inputs.append(sum(changes, np.zeros(total.size)))
            members |= kept
        correction = "what the panel's rows correct"
        if CORRECTED in members:
            weights[correction] = weights.pop(CORRECTED)
            members[correction] = members.pop(CORRECTED) - members[PRETRAINED]
        for name, value in members.items():
            if name != PRETRAINED and weights[name].any():
                contribution = weights[name] * value
                terms.add("member", name, contribution, value=value, weight=weights[name])
        latest = prepared.panel[i].extra[-1]
        for name, value, contribution in zip(names.extra, latest, inputs, strict=True):
            terms.add("past input", name, contribution, value=value)
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
        return {i: text for i, text in found.items() if text and i not in self.own_maps}


@dataclass(frozen=True)
class Mixture:
    """Forecasts (n, h) of a panel by the stack.

    `weights` (n, h) say how much each member counts; `members` (n, h) are their forecasts.
    `runaway` tells how forecasts were held back by the rule of `support.stability`, by series.
    """

    values: Array
    weights: dict[str, Array]
    members: dict[str, Array]
    runaway: dict[int, str]


@dataclass(frozen=True)
class Hindsight:
    """Errors (M, n, steps) of members from an earlier origin, what came (n, steps), and distances.

    The distances (n, steps, q) are those of `Window.distances_of_all`.
    """

    errors: Array
    actual: Array
    distances: Array

    @classmethod
    def of(cls, past: Window, now: Window, names: Sequence[str], at: Ints, steps: int) -> Hindsight:
        """Compare members' forecasts from origins ``at`` (n,) with what came since."""
        n, fitted = at.size, now.prepared.is_ready
        places = list(zip(now.prepared.panel, now.prepared.usable, at[:, None], strict=True))
        ahead = [values_after(s.known_ahead, o, steps)[0] for s, _, o in places]
        actual = np.reshape([values_after(y, o, steps)[0] for _, y, o in places], (n, steps))
        members, nothing = past.restore(ahead), np.full((n, steps), np.nan)
        forecasts = np.stack([members.get(name, nothing) for name in names])
        counts = past.prepared.is_ready & ~past.prepared.is_short & fitted
        errors = np.where(counts[:, None], forecasts - actual, np.nan)
        return cls(errors, actual, past.distances_of_all(ahead))


def _look_back(part: StackPart, distance: int) -> Hindsight:
    """Compare the members from so many steps before the origins with what came."""
    lesson, at = part.lesson, np.maximum(part.origins - distance, 0)
    own, steps = lesson.windows[distance], lesson.n_steps[distance]
    then = _prepare(part.panel, at, lesson.plan, None, own)
    past = Window.of(then, steps, lesson.plan, own, part.n_jobs)
    return Hindsight.of(past, part.window, lesson.names, at, steps)


def learn_together(parts: list[tuple[list[Series], int]], plan: Plan) -> StackLesson:
    """Learn from series of several machines, each with the same number of steps to forecast."""
    seen, h = flatten(series for series, _ in parts), parts[0][1]
    lesson, _ = learn(ForecastRequest.after(seen, h), plan, 1, PreparedPanel.of(seen, plan))
    return lesson


def learn(
    request: ForecastRequest, plan: Plan, n_jobs: int, prepared: PreparedPanel
) -> tuple[StackLesson, StackPart]:
    """Weigh the members at the ends of the series, and let them forecast the request."""
    h = request.h
    panel, origins = _latest(request, plan)
    ready = _prepare(panel, origins, plan, prepared)
    long = ready.is_ready & ~ready.is_short
    blocks = split_steps(h, plan.season_length, origins[long])
    repeats = has_one_or_two_seasons(origins, blocks[0].last, plan.season_length)
    n_steps = {d: block.last for block in blocks for d in block.distances}
    # Inside of a backtest as far as other windows look:
    n_steps[0] = max(h, blocks[-1].last) if current_memo().is_shared else h
    origins_of = {distance: np.maximum(origins - distance, 0) for distance in n_steps}

    def prepare(distance: int) -> PreparedPanel:
        with np.errstate(all="ignore"):  # in this thread
            at, numbers = origins_of[distance], ready.numbers
            return _prepare(panel, at, plan, prepared, numbers=numbers) if distance else ready

    then = dict(zip(n_steps, parallel_map(prepare, list(n_steps), n_jobs), strict=True))
    found = learn_windows(then, n_steps, plan, repeats=repeats, n_jobs=n_jobs)
    windows = {distance: own for distance, (_, own) in found.items()}
    now = found.pop(0)[0].first_steps(h)

    def look_back(distance: int) -> Hindsight:
        with np.errstate(all="ignore"):  # in this thread
            own = (origins_of[distance], n_steps[distance])
            return Hindsight.of(found[distance][0], now, list(now.forecasts), *own)

    hindsight = dict(zip(found, parallel_map(look_back, list(found), n_jobs), strict=True))
    report_progress(1.0)
    units = measure_units(ready.usable, plan.season_length)[:, None, None]
    lesson = StackLesson(
        *(plan, h, tuple(now.forecasts), blocks, windows, n_steps),
        *([], [], [], np.empty((0, 1, h, 1)), ready.usable),
        np.empty(0, dtype=bool),
    )
    part = StackPart(lesson, panel, origins, now, n_jobs, hindsight)
    lesson = replace(lesson, sparse=part.sparse, seeks_maps=seeks_maps(ready, plan))
    for block in blocks:
        own = [hindsight[distance].errors[:, :, : block.last] for distance in block.distances]
        errors = np.stack(own, axis=2)
        weights, of_median = weigh_in_two_steps(errors / units, part.sparse, N_FIRST)
        lesson.weights.append(weights)
        lesson.of_median.append(of_median)
        lesson.tested.append(np.asarray(np.isfinite(errors).any(axis=(1, 2, 3))))
    lesson = replace(lesson, scores=lesson.score(hindsight, part.sparse, ready))
    return lesson, replace(part, lesson=lesson)


def _link(y: Array, log: bool) -> Array:
    """Return values on the scale on which the network sees them."""
    return np.log1p(np.maximum(y, 0.0)) if log else y


def _prepare(
    panel: Sequence[Series],
    origins: Ints,
    plan: Plan,
    prepared: PreparedPanel | None,
    lesson: WindowLesson | None = None,
    numbers: dict[int, int] | None = None,
) -> PreparedPanel:
    """Make a panel ready at origins; what was made ready when it was fitted is used again."""
    seen = [series.until(o) for series, o in zip(panel, origins.tolist(), strict=True)]
    if prepared is not None and prepared.is_of(seen):
        return prepared
    return PreparedPanel.of(seen, plan, numbers, lesson)


def _latest(request: ForecastRequest, plan: Plan) -> tuple[list[Series], Ints]:
    """Cut the series of a request to their latest known values before the origins.

    Where they are cut moves on only now and then, so windows of a backtest have most in common.
    """
    panel, origins = request.panel, request.origins
    most = max(_MOST_VALUES, _MOST_SEASONS * plan.season_length)
    cut = np.zeros_like(origins)
    for i in np.flatnonzero(origins > most).tolist():
        known = np.flatnonzero(np.isfinite(panel[i].y[: origins[i]]))
        cut[i] = known[-most] // _MOVE * _MOVE if known.size > most else 0
    return [s.after(c) for s, c in zip(panel, cut.tolist(), strict=True)], origins - cut
