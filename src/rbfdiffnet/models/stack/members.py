"""The members of a stack: quite different ways to forecast the same series.

To add one, write a function of a `Task` that returns forecasts of shape (n, h), NaN where it has
nothing to say, and enter it in `MEMBERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rbfdiffnet.models.stack.direct import correct_forecasts, forecast_direct
from rbfdiffnet.models.stack.histories import Histories, Seasons, move_to_present_level
from rbfdiffnet.models.stack.mixing import find_sparse
from rbfdiffnet.models.stack.smoothing import (
    forecast_damped_holt,
    forecast_on_logarithms,
    forecast_theta,
)
from rbfdiffnet.pretrained.network import forecast
from rbfdiffnet.series.naive import repeat_last_season
from rbfdiffnet.support.arrays import Array

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
class Task:
    """Series to forecast h steps ahead, and the forecasts of the members before."""

    histories: Histories
    h: int
    before: dict[str, Array]


def forecast_pretrained(histories: Histories, h: int) -> Array:
    """Forecast series by the pretrained network, (n, h)."""
    rows = zip(histories.values, histories.starts, strict=True)
    return _look_ahead([row[start:] for row, start in rows], histories, h)


def _look_ahead(series: list[Array], histories: Histories, h: int) -> Array:
    found = forecast(series, h, histories.season, longer=histories.longer)
    # Series that are often zero are judged by squared errors, so by means.
    return np.where(find_sparse(series)[:, None], found.mean, found.median)


def _corrected(task: Task) -> Array:
    histories, h = task.histories, task.h
    start = task.before[PRETRAINED]
    return correct_forecasts(histories, start, lambda series: _look_ahead(series, histories, h))


def _direct(task: Task) -> Array:
    return forecast_direct(task.histories, task.h)


def _last_season(task: Task) -> Array:
    return repeat_last_season(task.histories.values, task.h, task.histories.season)


def _last_season_grown(task: Task) -> Array:
    return move_to_present_level(task.histories, _last_season(task))


def _theta(task: Task) -> Array:
    return forecast_on_logarithms(forecast_theta, task.histories.values, task.h)


def _damped_trend(task: Task) -> Array:
    return forecast_on_logarithms(forecast_damped_holt, task.histories.values, task.h)


PRETRAINED, CORRECTED = "pretrained", "corrected"
#: How many members come first: the others are mixed, and then weighed beside these.
N_FIRST = 2
MEMBERS = (
    Member(PRETRAINED, lambda task: forecast_pretrained(task.histories, task.h)),
    Member(CORRECTED, _corrected),
    Member("direct", _direct),
    Member("last season", _last_season, repeats=True),
    Member("last season, grown", _last_season_grown, repeats=True),
    Member("theta", _theta, without_season=True),
    Member("damped trend", _damped_trend, without_season=True),
)


def forecast_members(histories: Histories, h: int, *, repeats: bool = False) -> dict[str, Array]:
    """Forecast every series by every member: arrays of shape (n, h) by the member's name.

    With ``repeats``, members that repeat the last season take part if the usual series has one.
    """
    season, length = histories.season, histories.usual_length
    repeats = repeats and length >= season
    seasons = Seasons.fit(histories) if season == 1 or length >= _FEWEST_SEASONS * season else None
    rest = seasons.remove(histories) if seasons else histories
    forecasts: dict[str, Array] = {}
    for member in MEMBERS:
        if member.repeats and not repeats:
            continue
        if not member.without_season:
            forecasts[member.name] = member.forecast(Task(histories, h, forecasts))
        elif seasons:
            found = member.forecast(Task(rest, h, forecasts))
            forecasts[member.name] = seasons.restore(found)
    return forecasts
