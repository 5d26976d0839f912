"""The members of a stack: quite different ways to forecast the same series.

To add one, write a function of a `Task` that returns forecasts of shape (n, h), NaN where it has
nothing to say, and enter it in `MEMBERS`. What a member learns across series comes from a function
of its own, so that the series learned from and those forecast can be different ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain
from typing import Any

import numpy as np

from rbfdiffnet.batch.backend import place_on, to_numpy
from rbfdiffnet.models.stack.direct import (
    Correction,
    DirectNetwork,
    learn_correction,
    learn_direct,
)
from rbfdiffnet.models.stack.histories import Histories, Seasons, move_to_present_level
from rbfdiffnet.models.stack.rows import RowCut, RowTable
from rbfdiffnet.models.stack.smoothing import forecast_damped_holt, forecast_on_logarithms
from rbfdiffnet.pretrained.network import forecast, most_values
from rbfdiffnet.series.naive import repeat_last_season
from rbfdiffnet.series.series import find_sparse
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.memo import Memo
from rbfdiffnet.support.parallel import parallel_map
from rbfdiffnet.support.progress import progress_between

_FEWEST_SEASONS = 3  # to take a season out


@dataclass(frozen=True)
class Member:
    """One way to forecast series, by what it learned from series, if it learns anything.

    A member ``without_season`` sees series without their season, which is put back into its
    forecasts; it needs three seasons in the usual series. A member that ``repeats`` the last
    season takes part only where that is asked for.
    """

    name: str
    forecast: Callable[[Task, Any], Array]
    learn: Callable[[Task], Any] | None = None
    without_season: bool = False
    repeats: bool = False


@dataclass(frozen=True)
class Lesson:
    """What members learned from series, by their names; others take no part.

    `row_cut` says how rows are cut.
    """

    row_cut: RowCut
    learned: dict[str, Any]


@dataclass(frozen=True)
class Task:
    """Series to forecast h steps ahead, and what several members need for that.

    `table` has rows of the series, `pretrained` (n, h) are forecasts of the pretrained network, and
    `earlier` (N, k) are those that rows start from. Members compute on a `device` if they can.
    """

    histories: Histories
    h: int
    table: RowTable
    pretrained: Array
    earlier: Array
    device: str = "cpu"


def look_ahead_from_rows(
    tasks: Sequence[tuple[Histories, RowTable]], memo: Memo, n_jobs: int = 1, device: str = "cpu"
) -> list[Array]:
    """Return forecasts (N, k) of the pretrained network that rows of series start from.

    They are made for all tasks together, and each only once: the same values have the same
    forecast, whatever window they are met in.
    """
    if not tasks:
        return []
    season, longer = tasks[0][0].season, tasks[0][0].longer
    steps = max(table.cut.h for _, table in tasks)
    cut = [table.cut_series(own) for own, table in tasks]
    keys = [_fingerprints(own) for own in cut]
    known = memo.rows((steps, season, longer))
    rows = dict(zip(chain.from_iterable(keys), chain.from_iterable(cut), strict=True))
    rows = {key: y for key, y in rows.items() if key not in known}
    if rows:
        found, _ = _look_ahead(list(rows.values()), steps, season, longer, n_jobs, device)
        known.update(zip(rows, found, strict=True))
    nothing = np.empty((0, steps))
    return [np.stack([known[key] for key in own]) if own else nothing for own in keys]


def _fingerprints(series: list[Array]) -> list[bytes]:
    """Return keys of series, many of which go on where the one before ends; that saves time."""
    keys, before, seen, hashed = [], 0, 0, blake2b(digest_size=16)
    for y in series:
        place = y.__array_interface__["data"][0]
        if place != before or y.size < seen:
            seen, hashed = 0, blake2b(digest_size=16)
        hashed.update(y[seen:].tobytes())
        keys.append(hashed.copy().digest())
        before, seen = place, y.size
    return keys


def forecast_pretrained(
    panels: Sequence[Histories], h: int, n_jobs: int = 1, device: str = "cpu"
) -> list[tuple[Array, Array]]:
    """Forecast panels by the pretrained network, (n, h), and return its quantiles (n, h, q)."""
    if not panels:
        return []
    rows = [zip(own.values, own.starts, strict=True) for own in panels]
    series = [[row[start:] for row, start in own] for own in rows]
    first, sizes = panels[0], [len(own) for own in series]
    every = list(chain.from_iterable(series))
    points, quantiles = _look_ahead(every, h, first.season, first.longer, n_jobs, device)
    ends = np.cumsum(sizes)[:-1]
    return list(zip(np.split(points, ends), np.split(quantiles, ends), strict=True))


def _look_ahead(
    series: list[Array], h: int, season: int, longer: int | None, n_jobs: int, device: str
) -> tuple[Array, Array]:
    series = _latest(series, season, longer)
    found = forecast(series, h, season, longer=longer, device=device, n_jobs=n_jobs)
    # Series that are often zero are judged by squared errors, so by means.
    return np.where(find_sparse(series)[:, None], found.mean, found.median), found.quantiles


def _latest(series: list[Array], season: int, longer: int | None) -> list[Array]:
    """Return what the network looks at."""
    longest = most_values(season, longer or 0)
    return [y[-longest:] for y in series]


def _learn_correction(task: Task) -> Correction:
    return learn_correction(task.table, task.earlier, task.device)


def _correct(task: Task, learned: Correction) -> Array:
    return learned.correct(task.histories, task.pretrained, task.table)


def _learn_direct(task: Task) -> DirectNetwork:
    return learn_direct(task.histories, task.h, table=task.table, device=task.device)


def _forecast_direct(task: Task, learned: DirectNetwork) -> Array:
    return learned.forecast(task.histories, task.h, task.table)


def _last_season(task: Task, _: None) -> Array:
    return repeat_last_season(task.histories.values, task.h, task.histories.season)


def _last_season_grown(task: Task, _: None) -> Array:
    return move_to_present_level(task.histories, _last_season(task, None))


def _damped_trend(task: Task, _: None) -> Array:
    values = place_on(task.device)(task.histories.values)
    return np.asarray(to_numpy(forecast_on_logarithms(forecast_damped_holt, values, task.h)))


PRETRAINED, CORRECTED, DIRECT = "pretrained", "corrected", "direct"
#: Members that see rows, so also inputs known only in the past.
FROM_ROWS = CORRECTED, DIRECT
#: How many members come first: the others are mixed, and then weighed beside these.
N_FIRST = 2
MEMBERS = (
    Member(PRETRAINED, lambda task, _: task.pretrained),
    Member(CORRECTED, _correct, _learn_correction),
    Member(DIRECT, _forecast_direct, _learn_direct),
    Member("last season", _last_season, repeats=True),
    Member("last season, grown", _last_season_grown, repeats=True),
    Member("damped trend", _damped_trend, without_season=True),
)


def learn_members(
    tasks: Sequence[Task], *, repeats: bool = False, n_jobs: int = 1
) -> list[tuple[Lesson, dict[str, Array]]]:
    """Learn what members need for each task, and forecast its series; see `forecast_members`.

    With ``repeats``, members that repeat the last season take part if the usual series has one.
    """
    lessons = [Lesson(task.table.cut, {}) for task in tasks]
    work = []
    for task, lesson in zip(tasks, lessons, strict=True):
        season, length = task.histories.season, task.histories.usual_length
        has_season = season == 1 or length >= _FEWEST_SEASONS * season
        for member in MEMBERS:
            if ((repeats and length >= season) or not member.repeats) and (
                has_season or not member.without_season
            ):
                lesson.learned[member.name] = None
                if member.learn:
                    work.append((task, lesson, member))

    def learn(number: int) -> None:
        task, lesson, member = work[number]
        if member.learn:
            with np.errstate(all="ignore"):  # in this thread
                lesson.learned[member.name] = member.learn(task)

    def forecast(pair: tuple[Task, Lesson]) -> dict[str, Array]:
        with np.errstate(all="ignore"):  # in this thread
            return _forecast(*pair)

    with progress_between(0.6, 0.9):
        parallel_map(learn, range(len(work)), n_jobs, reports=True)
    pairs = list(zip(tasks, lessons, strict=True))
    return list(zip(lessons, parallel_map(forecast, pairs, n_jobs), strict=True))


def forecast_members(
    histories: Histories, h: int, pretrained: Array, lesson: Lesson, device: str = "cpu"
) -> dict[str, Array]:
    """Forecast every series by every member: arrays of shape (n, h) by the member's name.

    ``pretrained`` (n, h) are the forecasts of the pretrained network.
    """
    table = RowTable.of(histories, lesson.row_cut)
    task = Task(histories, h, table, pretrained, np.empty((0, 0)), device)
    return _forecast(task, lesson)


def _forecast(task: Task, lesson: Lesson) -> dict[str, Array]:
    forecasts: dict[str, Array] = {}
    for member in MEMBERS:
        if member.name not in lesson.learned:
            continue
        learned = lesson.learned[member.name]
        if member.without_season:
            seasons = Seasons.fit(task.histories)
            rest = replace(task, histories=seasons.remove(task.histories))
            forecasts[member.name] = seasons.restore(member.forecast(rest, learned))
        else:
            forecasts[member.name] = member.forecast(task, learned)
    return forecasts
