"""The members of a stack: quite different ways to forecast the same series.

To add one, write a function of a `Task` that returns forecasts of shape (n, h), NaN where it has
nothing to say, and enter it in `MEMBERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from rbfdiffnet.models.stack.direct import (
    RowMaker,
    correct_forecasts,
    forecast_direct,
    learned_steps,
)
from rbfdiffnet.models.stack.histories import Histories, Seasons, move_to_present_level
from rbfdiffnet.models.stack.mixing import find_sparse
from rbfdiffnet.models.stack.smoothing import forecast_damped_holt, forecast_on_logarithms
from rbfdiffnet.pretrained.network import forecast, most_values
from rbfdiffnet.series.naive import repeat_last_season
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.memo import Memo, fingerprint

_FEWEST_SEASONS = 3  # to take a season out


@dataclass(frozen=True)
class Member:
    """One way to forecast series.

    A member ``without_season`` sees series without their season, which is put back into its
    forecasts; it needs three seasons in the usual series. A member that ``repeats`` the last
    season takes part only where that is asked for.
    """

    name: str
    forecast: Callable[[Task], Array]
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
class Task:
    """Series to forecast h steps ahead, and the forecasts of the members before.

    ``earlier`` tells how many threads there are, too.
    """

    histories: Histories
    h: int
    earlier: Outlooks
    pretrained: Array
    before: dict[str, Array]

    @cached_property
    def maker(self) -> RowMaker:
        """What the rows of the series are cut from."""
        return RowMaker.covering(self.histories, self.h)


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


def _corrected(task: Task) -> Array:
    start = task.before[PRETRAINED]
    earlier = task.earlier
    return correct_forecasts(task.histories, start, earlier.of, task.maker, earlier.n_jobs)


def _direct(task: Task) -> Array:
    return forecast_direct(task.histories, task.h, maker=task.maker, n_jobs=task.earlier.n_jobs)


def _last_season(task: Task) -> Array:
    return repeat_last_season(task.histories.values, task.h, task.histories.season)


def _last_season_grown(task: Task) -> Array:
    return move_to_present_level(task.histories, _last_season(task))


def _damped_trend(task: Task) -> Array:
    made: Array = forecast_on_logarithms(forecast_damped_holt, task.histories.values, task.h)
    return made


PRETRAINED, CORRECTED = "pretrained", "corrected"
#: How many members come first: the others are mixed, and then weighed beside these.
N_FIRST = 2
MEMBERS = (
    Member(PRETRAINED, lambda task: task.pretrained),
    Member(CORRECTED, _corrected),
    Member("direct", _direct),
    Member("last season", _last_season, repeats=True),
    Member("last season, grown", _last_season_grown, repeats=True),
    Member("damped trend", _damped_trend, without_season=True),
)


def forecast_members(
    histories: Histories, h: int, earlier: Outlooks, pretrained: Array, *, repeats: bool = False
) -> dict[str, Array]:
    """Forecast every series by every member: arrays of shape (n, h) by the member's name.

    ``pretrained`` (n, h) are the forecasts of the pretrained network.
    With ``repeats``, members that repeat the last season take part if the usual series has one.
    """
    season, length = histories.season, histories.usual_length
    repeats = repeats and length >= season
    seasons = Seasons.fit(histories) if season == 1 or length >= _FEWEST_SEASONS * season else None
    rest = seasons.remove(histories) if seasons else histories
    forecasts: dict[str, Array] = {}
    task, without_season = (
        Task(own, h, earlier, pretrained, forecasts) for own in (histories, rest)
    )
    for member in MEMBERS:
        if member.repeats and not repeats:
            continue
        if not member.without_season:
            forecasts[member.name] = member.forecast(task)
        elif seasons:
            forecasts[member.name] = seasons.restore(member.forecast(without_season))
    return forecasts
