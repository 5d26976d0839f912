"""A panel made ready at one origin of each series, and what every member forecasts from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from rbfdiffnet.models.networks.series_model import prepare_all
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.stack.histories import Histories
from rbfdiffnet.models.stack.members import (
    FROM_ROWS,
    PRETRAINED,
    Lesson,
    Task,
    forecast_members,
    forecast_pretrained,
    learn_members,
    look_ahead_from_rows,
)
from rbfdiffnet.models.stack.rows import RowTable
from rbfdiffnet.pretrained.network import PROBABILITIES
from rbfdiffnet.series.effects import CommonEffects, fit_pooled_effects
from rbfdiffnet.series.naive import naive_forecast
from rbfdiffnet.series.prepare import PreparedSeries, apply_many
from rbfdiffnet.series.series import FEWEST_VALUES, Series, UnfitError, find_usable
from rbfdiffnet.support.arrays import Array, Arrays, Ints, Mask
from rbfdiffnet.support.memo import current_memo, fingerprint
from rbfdiffnet.support.parallel import parallel_map
from rbfdiffnet.support.progress import report_progress

_FEWEST_VALUES = 2


@dataclass(frozen=True)
class PreparedPanel:
    """A panel made ready, once for each origin; `ready` holds the series that have members.

    `reasons` tells why the others have none, and `numbers` what number a series has in all parts
    of the panel, by position. `common` is what effects of inputs have in common.
    """

    panel: Sequence[Series]
    ready: dict[int, PreparedSeries]
    reasons: dict[int, str]
    numbers: dict[int, int]
    common: CommonEffects | None

    @classmethod
    def of(
        cls,
        panel: Sequence[Series],
        plan: Plan,
        numbers: dict[int, int] | None = None,
        like: PreparedPanel | WindowLesson | None = None,
    ) -> PreparedPanel:
        """Make a panel ready; what is learned does not depend on the order of its series.

        Series with less than two known values have no members. The others are numbered, unless
        they have numbers from a later part of the panel. What effects have in common is found in
        this panel, or it is as known from other series.
        """
        panel = list(panel)
        order, reasons = find_usable(panel, _FEWEST_VALUES, sort=like is None)
        effects, common = None, None if like is None else like.common
        if like is None or common is not None:
            effects, common = fit_pooled_effects(
                [np.log1p(np.maximum(panel[i].y, 0.0)) if plan.log else panel[i].y for i in order],
                [panel[i].known_ahead for i in order],
                season_length=plan.season_length,
                clean=plan.clean,
                relative=not plan.log,
                common=common,
            )
        found = prepare_all([panel[i] for i in order], plan, effects or [None] * len(order))
        ready = {}
        for i, own in zip(order, found, strict=True):
            if isinstance(own, UnfitError):
                reasons[i] = str(own)
            else:
                ready[i] = own
        numbers = numbers or {i: number for number, i in enumerate(ready)}
        return cls(panel, ready, dict(sorted(reasons.items())), numbers, common)

    def is_of(self, panel: Sequence[Series]) -> bool:
        """Tell whether the series are those of this panel: the same rows of the same arrays."""
        return all(
            a.y.size == b.y.size and a.y.ctypes.data == b.y.ctypes.data
            for a, b in zip(panel, self.panel, strict=True)
        )

    def at(self, panel: Sequence[Series]) -> PreparedPanel:
        """Return another part of the same series, made ready by the preparations found here."""
        if self.is_of(panel):
            return self
        own = {i: ready.preparation for i, ready in self.ready.items()}
        series = [panel[i].y for i in own], [panel[i].known_ahead for i in own]
        ready = dict(zip(own, apply_many(list(own.values()), *series), strict=True))
        return replace(self, panel=panel, ready=ready)

    def find_outliers(self) -> list[tuple[int, Ints]]:
        """Return series with outliers, and the steps at which the outliers are."""
        found = [(i, np.flatnonzero(own.is_outlier)) for i, own in self.ready.items()]
        return [(i, steps) for i, steps in found if steps.size]

    @property
    def histories(self) -> list[Array]:
        """The series that are ready, from their first known value on."""
        return [self.history(i) for i in self.ready]

    def history(self, i: int) -> Array:
        """Return a series that is ready, from its first known value on."""
        return self.ready[i].u[np.argmax(np.isfinite(self.panel[i].y)) :]

    @cached_property
    def is_ready(self) -> Mask:
        """Which series have members, shape (n,)."""
        return np.isin(np.arange(len(self.panel)), list(self.ready))

    @cached_property
    def never_negative(self) -> Mask:
        """Which series never were negative, shape (n,)."""
        return np.array([not np.any(s.y < 0.0) for s in self.panel], dtype=bool)

    @cached_property
    def is_short(self) -> Mask:
        """Which series have too few known values for most members, shape (n,)."""
        return np.array([np.isfinite(s.y).sum() < FEWEST_VALUES for s in self.panel], dtype=bool)

    @property
    def usable(self) -> list[Array]:
        """Values of each series, NaN in the place of outliers."""
        values = [series.y for series in self.panel]
        for i, own in self.ready.items():
            values[i] = np.where(own.is_outlier, np.nan, values[i])
        return values


@dataclass(frozen=True)
class Window:
    """Members' forecasts of a panel from one origin of each series.

    `forecasts` holds an array (series that are ready, h) for each member, before effects of inputs
    are put back; `season` is the number of steps that naive forecasts repeat. `distances` (series
    that are ready, h, q) are those of the pretrained network's quantiles from its forecasts.
    """

    prepared: PreparedPanel
    forecasts: dict[str, Array]
    season: int
    distances: Array | None = None

    @classmethod
    def of(
        cls, prepared: PreparedPanel, h: int, plan: Plan, lesson: WindowLesson, n_jobs: int = 1
    ) -> Window:
        """Forecast a panel by the members of a lesson, by what they learned from other series."""
        season = plan.season_length
        if not prepared.ready:
            return cls(prepared, {name: np.empty((0, h)) for name in lesson.names}, season)
        histories, is_short = _line_up(prepared, plan, lesson.delays)
        ((pretrained, quantiles),) = forecast_pretrained([histories], h, n_jobs, plan.device)
        forecasts: Arrays = {PRETRAINED: pretrained}
        if lesson.members is not None:
            long = _select_long(histories, is_short)
            found: Arrays = {}
            if len(long.values):
                own = pretrained[~is_short]
                found = forecast_members(long, h, own, lesson.members, plan.device)
            forecasts |= _fill_in(found, pretrained, is_short)
        forecasts = {name: forecasts.get(name, pretrained) for name in lesson.names}
        outlook = pretrained, quantiles
        distances = measure_distances(prepared, histories, *outlook, n_jobs, plan.device)
        return cls(prepared, forecasts, season, distances)

    def without_inputs(self, n_inputs: int, plan: Plan, lesson: WindowLesson) -> Arrays:
        """Return forecasts by members from rows, as if so many first inputs had never changed.

        These are inputs that are known when they happen.
        """
        if lesson.members is None or not self.prepared.ready:
            return {}
        histories, is_short = _line_up(self.prepared, plan, lesson.delays)
        if is_short.all():
            return {}
        long, pretrained = _select_long(histories, is_short), self.forecasts[PRETRAINED]
        past = np.where(np.arange(long.past.shape[2]) < n_inputs, np.nan, long.past)
        learned = {k: own for k, own in lesson.members.learned.items() if k in FROM_ROWS}
        members, h = replace(lesson.members, learned=learned), pretrained.shape[1]
        own = pretrained[~is_short]
        found = forecast_members(replace(long, past=past), h, own, members, plan.device)
        return _fill_in(found, pretrained, is_short)

    def first_steps(self, h: int) -> Window:
        """Return the same window with fewer steps ahead."""
        distances = None if self.distances is None else self.distances[:, :h]
        forecasts = {name: own[:, :h] for name, own in self.forecasts.items()}
        return replace(self, forecasts=forecasts, distances=distances)

    def distances_of_all(self, ahead: Sequence[Array]) -> Array:
        """Return the distances (n, h, q) with the effects of inputs ahead; NaN without members."""
        h = next(iter(self.forecasts.values())).shape[1]
        found = np.full((len(self.prepared.panel), h, len(PROBABILITIES)), np.nan)
        if self.distances is not None:
            found[list(self.prepared.ready)] = self.distances
        for i, own in self.prepared.ready.items():
            effects = own.preparation.effects
            if effects is not None and effects.relative:
                found[i] *= 1.0 + effects.total(ahead[i])[:, None]
        return found

    def restore(self, ahead: Sequence[Array]) -> dict[str, Array]:
        """Return members' forecasts (n, h) of all series with the effects of inputs ahead.

        Series that are not ready, and those without a finite forecast, get naive forecasts.
        """
        ready, panel = self.prepared.ready, self.prepared.panel
        own, at = [r.preparation for r in ready.values()], list(ready)
        low, high = (np.array([[getattr(p, side)] for p in own]) for side in ("low", "high"))
        never_negative = self.prepared.never_negative[at][:, None]
        plain = not any(p.log or p.effects for p in own)
        members = {}
        for name, forecast in self.forecasts.items():
            values = np.full((len(panel), forecast.shape[1]), np.nan)
            if own:
                y = np.clip(forecast, low, high)
                if not plain:
                    rows = zip(at, own, y, strict=True)
                    y = np.array([p.restore(u, ahead[i]) for i, p, u in rows])
                values[at] = np.where(never_negative, np.maximum(y, 0.0), y)
            for i in np.flatnonzero(~np.isfinite(values).all(axis=1)).tolist():
                values[i] = self._naive(panel[i].y, forecast.shape[1])
            members[name] = values
        return members

    def _naive(self, y: Array, h: int) -> Array:
        origin = np.array([y.size])
        return naive_forecast(y, origin, h, self.season)[0] if y.size else np.zeros(h)


def measure_distances(
    prepared: PreparedPanel,
    histories: Histories,
    points: Array,
    quantiles: Array,
    n_jobs: int = 1,
    device: str = "cpu",
) -> Array:
    """Return the distances of quantiles (n, h, q) from forecasts (n, h), wider where values lack.

    What a gap is filled with looks as if the series were easy to forecast. So steps of a series
    that ends in a gap count from its last known value on, and the spread of a series with gaps is
    at least a part of the mean change between its known values: the share of gaps.
    """
    distances = quantiles - points[:, :, None]
    known = [own.is_known for own in prepared.ready.values()]
    gaps = np.array([np.argmax(own[::-1]) for own in known])
    for gap in np.unique(gaps[gaps > 0]).tolist():
        seen = histories.select(gaps == gap)
        cut = seen.with_values(seen.values[:, :-gap])
        steps = gap + points.shape[1]
        ((point, beyond),) = forecast_pretrained([cut], steps, n_jobs, device)
        distances[gaps == gap] = (beyond - point[:, :, None])[:, gap:]
    normal = ndtri(np.array(PROBABILITIES))
    for row, own in enumerate(prepared.ready.values()):
        if not own.is_known.all() and own.is_known.sum() > 1:
            values = own.u[own.is_known]
            lacking = 1.0 - values.size / (own.u.size - np.argmax(own.is_known))
            least = lacking * float(np.abs(np.diff(values)).mean()) * normal
            wider = np.maximum(np.abs(distances[row]), np.abs(least))
            distances[row] = np.where(normal < 0.0, -wider, wider)
    return distances


@dataclass(frozen=True)
class WindowLesson:
    """What one window of a panel learned, for the same window of other series.

    `members` is None where no series was long enough, and `names` are those of all members. Inputs
    that are known when they happen count as known after `delays`.
    """

    members: Lesson | None
    names: tuple[str, ...]
    common: CommonEffects | None
    delays: tuple[int, ...]


@dataclass(frozen=True)
class _Found:
    """Forecasts (n, h) by every member, quantiles of the pretrained one, and what was learned."""

    forecasts: Arrays
    quantiles: Array
    members: Lesson | None

    @property
    def parts(self) -> tuple[Arrays, Array, Lesson | None]:
        return self.forecasts, self.quantiles, self.members

    @property
    def nbytes(self) -> int:
        return sum(own.nbytes for own in (self.quantiles, *self.forecasts.values()))


def _find_delays(prepared: PreparedPanel) -> tuple[int, ...]:
    """Return by how many steps inputs that are known when they happen usually end before series."""
    if not any(series.extra.shape[1] for series in prepared.panel[:1]):
        return ()
    known = [np.isfinite(prepared.panel[i].extra[::-1]) for i in prepared.ready]
    found = [np.where(own.any(axis=0), own.argmax(axis=0), len(own)) for own in known]
    return tuple(np.median(found, axis=0).astype(np.int64).tolist()) if found else ()


def _line_up(
    prepared: PreparedPanel, plan: Plan, delays: tuple[int, ...]
) -> tuple[Histories, Mask]:
    """Return the series that are ready side by side, and which are too short for most members."""
    numbers = [prepared.numbers.get(i, i) for i in prepared.ready]
    series = prepared.histories
    past = [prepared.panel[i].extra[-y.size :] for i, y in zip(prepared.ready, series, strict=True)]
    histories = Histories.of(series, plan.season_length, plan.longer_season, numbers, past)
    return histories.delay(delays), prepared.is_short[list(prepared.ready)]


def learn_windows(
    prepared: Mapping[int, PreparedPanel],
    n_steps: Mapping[int, int],
    plan: Plan,
    *,
    repeats: bool,
    n_jobs: int = 1,
) -> dict[int, tuple[Window, WindowLesson]]:
    """Let every member learn from panels and forecast them so many steps ahead, by their keys.

    Members that repeat the last season take part only if asked for. What panels have in common is
    made once. Inputs that end before series do in the latest panel, that of the least key, count as
    known as late in all of them.
    """
    delays = _find_delays(prepared[min(prepared)])
    lines = {key: _line_up(own, plan, delays) for key, own in prepared.items() if own.ready}
    found = _learn_all(lines, n_steps, repeats, n_jobs, plan.device)
    windows = {}
    for key, own in prepared.items():
        if key not in found:
            nothing = {PRETRAINED: np.empty((0, n_steps[key]))}
            lesson = WindowLesson(None, (PRETRAINED,), own.common, delays)
            windows[key] = Window(own, nothing, plan.season_length), lesson
            continue
        (histories, _), (forecasts, quantiles, members) = lines[key], found[key].parts
        forecasts, pretrained = dict(forecasts), forecasts[PRETRAINED]
        outlook = pretrained, quantiles
        distances = measure_distances(own, histories, *outlook, n_jobs, plan.device)
        lesson = WindowLesson(members, tuple(forecasts), own.common, delays)
        windows[key] = Window(own, forecasts, plan.season_length, distances), lesson
    return windows


def _learn_all(
    lines: Mapping[int, tuple[Histories, Mask]],
    n_steps: Mapping[int, int],
    repeats: bool,
    n_jobs: int,
    device: str,
) -> dict[int, _Found]:
    """Let every member learn and forecast. One that knows nothing of any series is left out."""
    memo, found, keys = current_memo(), {}, {}
    for number, (histories, is_short) in lines.items():
        settings = repr((histories.season, histories.longer, n_steps[number], repeats)).encode()
        arrays = histories.values, histories.numbers, histories.past, is_short
        keys[number] = settings + fingerprint(*arrays)
        if (known := memo.find(keys[number])) is not None:
            found[number] = known
    new = [number for number in lines if number not in found]
    panels, longest = [lines[k][0] for k in new], max(n_steps.values())
    outlooks = forecast_pretrained(panels, longest, n_jobs, device)
    long = {k: _select_long(*lines[k]) for k in new if not lines[k][1].all()}

    def cut(number: int) -> RowTable:
        with np.errstate(all="ignore"):  # in this thread
            return RowTable.learnable(long[number], n_steps[number])

    report_progress(0.3)
    tables = dict(zip(long, parallel_map(cut, list(long), n_jobs), strict=True))
    pairs = [(long[number], table) for number, table in tables.items()]
    earlier = dict(zip(long, look_ahead_from_rows(pairs, memo, n_jobs, device), strict=True))

    tasks = {}
    for number, (points, quantiles) in zip(new, outlooks, strict=True):
        steps, is_short = n_steps[number], lines[number][1]
        forecasts = {PRETRAINED: points[:, :steps]}
        found[number] = _Found(forecasts, quantiles[:, :steps], None)
        if number in long:
            own = (tables[number], points[~is_short, :steps], earlier[number])
            tasks[number] = Task(long[number], steps, *own, device)
    learned = learn_members(list(tasks.values()), repeats=repeats, n_jobs=n_jobs)
    for number, (lesson, members) in zip(tasks, learned, strict=True):
        kept = {name: own for name, own in members.items() if np.isfinite(own).all(axis=1).any()}
        lesson = replace(lesson, learned={name: lesson.learned[name] for name in kept})
        outlook, is_short = found[number], lines[number][1]
        forecasts = _fill_in(kept, outlook.forecasts[PRETRAINED], is_short)
        found[number] = replace(outlook, forecasts=forecasts, members=lesson)
    for number in new:
        memo.keep(keys[number], found[number])
    return found


def _select_long(histories: Histories, is_short: Mask) -> Histories:
    """Return the series that are not short.

    There are columns for all seasons that members look back, also where no series is so long: a
    series is forecast alike beside others and alone.
    """
    long = histories.select(~is_short) if is_short.any() else histories
    return long.widen(4 * histories.season)


def _fill_in(members: Arrays, pretrained: Array, is_short: Mask) -> Arrays:
    """Return forecasts of all series, given those of series that are not short.

    Short series, and those of which a member knows nothing, get the forecasts of the pretrained
    network from it.
    """
    found = {}
    for name, values in members.items():
        known = np.isfinite(values).all(axis=1)
        found[name] = pretrained.copy()
        found[name][np.flatnonzero(~is_short)[known]] = values[known]
    return found
