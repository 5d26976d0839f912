"""The members of a stack: quite different ways to forecast the same series.

To add one, write a function of a `Task` that returns forecasts of shape (n, h), NaN where it has
nothing to say, and enter it in `MEMBERS`. What a member learns across series comes from a function
of its own, so that the series learned from and those forecast can be different ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from rbfdiffnet.models.stack.direct import (
    Correction,
    DirectNetwork,
    learn_correction,
    learn_direct,
)
from rbfdiffnet.models.stack.histories import Histories, Seasons, move_to_present_level
from rbfdiffnet.models.stack.mixing import find_sparse
from rbfdiffnet.models.stack.rows import RowCut, RowMaker, choose_row_cut, learned_steps
from rbfdiffnet.models.stack.smoothing import forecast_damped_holt, forecast_on_logarithms
from rbfdiffnet.pretrained.network import forecast, most_values
from rbfdiffnet.series.naive import repeat_last_season
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.memo import Memo, fingerprint

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
    learn: Callable[[Task, Outlooks], Any] | None = None
    without_season: bool = False
    repeats: bool = False


@dataclass(frozen=True)
class Outlooks:
    """Forecasts of the pretrained network for series that end earlier, each made only once.

    They reach as far as h steps ahead are learned from. The same values have the same forecast,
    whatever window they are met in.
    """

    h: int
    season: int
    longer: int | None
    n_jobs: int = 1
    memo: Memo = field(default_factory=Memo, repr=False)
    _new: dict[bytes, Array] | None = None  # of a branch

    def of(self, series: list[Array]) -> Array:
        """Return forecasts of series."""
        steps, known = learned_steps(self.h, self.season), self._known
        kept = known if self._new is None else self._new
        seen = _latest(series, self.season, self.longer)
        keys = [fingerprint(y) for y in seen]
        pairs = zip(keys, seen, strict=True)
        rows = {key: y for key, y in pairs if key not in known and key not in kept}
        if rows:
            found, _ = _look_ahead(
                list(rows.values()), steps, self.season, self.longer, self.n_jobs
            )
            kept.update(zip(rows, found, strict=True))
        return np.stack([known[key] if key in known else kept[key] for key in keys])

    def branch(self) -> Outlooks:
        """Return outlooks for another thread, which knows these and keeps new ones to itself.

        So no thread depends on how far another one is, and results are the same for any number.
        """
        return replace(self, n_jobs=1, _new={})

    def merge(self, branch: Outlooks) -> None:
        """Keep what a branch found."""
        self._known.update(branch._new or {})

    @property
    def _known(self) -> dict[bytes, Array]:
        return self.memo.rows((learned_steps(self.h, self.season), self.season, self.longer))


@dataclass(frozen=True)
class Lesson:
    """What members learned from series, by their names; others take no part.

    `row_cut` says how rows are cut.
    """

    row_cut: RowCut
    learned: dict[str, Any]


@dataclass(frozen=True)
class Task:
    """Series to forecast h steps ahead, and forecasts of the pretrained network, (n, h)."""

    histories: Histories
    h: int
    pretrained: Array
    row_cut: RowCut

    @cached_property
    def maker(self) -> RowMaker:
        """What the rows of the series are cut from."""
        return RowMaker.of(self.histories, self.row_cut)


def forecast_pretrained(histories: Histories, h: int, n_jobs: int = 1) -> tuple[Array, Array]:
    """Forecast series by the pretrained network, (n, h), and return its quantiles (n, h, q)."""
    rows = zip(histories.values, histories.starts, strict=True)
    series = [row[start:] for row, start in rows]
    return _look_ahead(series, h, histories.season, histories.longer, n_jobs)


def _look_ahead(
    series: list[Array], h: int, season: int, longer: int | None, n_jobs: int
) -> tuple[Array, Array]:
    series = _latest(series, season, longer)
    found = forecast(series, h, season, longer=longer, n_jobs=n_jobs)
    # Series that are often zero are judged by squared errors, so by means.
    return np.where(find_sparse(series)[:, None], found.mean, found.median), found.quantiles


def _latest(series: list[Array], season: int, longer: int | None) -> list[Array]:
    """Return what the network looks at."""
    longest = most_values(season, longer or 0)
    return [y[-longest:] for y in series]


def _learn_correction(task: Task, earlier: Outlooks) -> Correction:
    return learn_correction(task.histories, task.h, earlier.of, task.maker, earlier.n_jobs)


def _correct(task: Task, learned: Correction) -> Array:
    return learned.correct(task.histories, task.pretrained, task.maker)


def _learn_direct(task: Task, earlier: Outlooks) -> DirectNetwork:
    return learn_direct(task.histories, task.h, maker=task.maker, n_jobs=earlier.n_jobs)


def _forecast_direct(task: Task, learned: DirectNetwork) -> Array:
    return learned.forecast(task.histories, task.h, task.maker)


def _last_season(task: Task, _: None) -> Array:
    return repeat_last_season(task.histories.values, task.h, task.histories.season)


def _last_season_grown(task: Task, _: None) -> Array:
    return move_to_present_level(task.histories, _last_season(task, None))


def _damped_trend(task: Task, _: None) -> Array:
    return forecast_on_logarithms(forecast_damped_holt, task.histories.values, task.h)


PRETRAINED, CORRECTED = "pretrained", "corrected"
#: How many members come first: the others are mixed, and then weighed beside these.
N_FIRST = 2
MEMBERS = (
    Member(PRETRAINED, lambda task, _: task.pretrained),
    Member(CORRECTED, _correct, _learn_correction),
    Member("direct", _forecast_direct, _learn_direct),
    Member("last season", _last_season, repeats=True),
    Member("last season, grown", _last_season_grown, repeats=True),
    Member("damped trend", _damped_trend, without_season=True),
)


def learn_members(
    histories: Histories, h: int, earlier: Outlooks, pretrained: Array, *, repeats: bool = False
) -> tuple[Lesson, dict[str, Array]]:
    """Learn what members need, and forecast the same series; see `forecast_members`.

    With ``repeats``, members that repeat the last season take part if the usual series has one.
    """
    season, length = histories.season, histories.usual_length
    repeats = repeats and length >= season
    has_season = season == 1 or length >= _FEWEST_SEASONS * season
    task = Task(histories, h, pretrained, choose_row_cut(histories, h))
    learned = {
        member.name: member.learn(task, earlier) if member.learn else None
        for member in MEMBERS
        if (repeats or not member.repeats) and (has_season or not member.without_season)
    }
    lesson = Lesson(task.row_cut, learned)
    return lesson, _forecast(task, lesson)


def forecast_members(
    histories: Histories, h: int, pretrained: Array, lesson: Lesson
) -> dict[str, Array]:
    """Forecast every series by every member: arrays of shape (n, h) by the member's name.

    ``pretrained`` (n, h) are the forecasts of the pretrained network.
    """
    return _forecast(Task(histories, h, pretrained, lesson.row_cut), lesson)


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
