"""The members of a stack: quite different ways to forecast the same series.

To add one, write a function of the histories, the horizon and whether to be thorough, that returns
forecasts of shape (n, h), NaN where it has nothing to say, and enter it in `MEMBERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rbfdiffnet.models.stack.direct import forecast_direct
from rbfdiffnet.models.stack.histories import Histories, Seasons, move_to_present_level
from rbfdiffnet.models.stack.mixing import find_sparse
from rbfdiffnet.models.stack.smoothing import (
    forecast_damped_holt,
    forecast_on_logarithms,
    forecast_theta,
)
from rbfdiffnet.pretrained.network import forecast as forecast_pretrained
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
    forecast: Callable[[Histories, int, bool], Array]
    without_season: bool = False
    repeats: bool = False


def _direct(histories: Histories, h: int, thorough: bool) -> Array:
    return forecast_direct(histories, h, thorough=thorough)


def _direct_log(histories: Histories, h: int, thorough: bool) -> Array:
    def forecast(values: Array, h: int) -> Array:
        return _direct(replace(histories, values=values, logged=histories.positive), h, thorough)

    return forecast_on_logarithms(forecast, histories.values, h)


def _last_season(histories: Histories, h: int, _: bool) -> Array:
    return repeat_last_season(histories.values, h, histories.season)


def _last_season_grown(histories: Histories, h: int, thorough: bool) -> Array:
    return move_to_present_level(histories, _last_season(histories, h, thorough))


def _pretrained(histories: Histories, h: int, _: bool) -> Array:
    series = [row[start:] for row, start in zip(histories.values, histories.starts, strict=True)]
    found = forecast_pretrained(series, h, histories.season)
    # Series that are often zero are judged by squared errors, so by means.
    return np.where(find_sparse(series)[:, None], found.mean, found.median)


#: The pretrained network comes first: the others are weighed together, and then beside it.
MEMBERS = (
    Member("pretrained", _pretrained),
    Member("direct", _direct),
    Member("direct, log", _direct_log),
    Member("last season", _last_season, repeats=True),
    Member("last season, grown", _last_season_grown, repeats=True),
    Member(
        "theta",
        lambda y, h, _: forecast_on_logarithms(forecast_theta, y.values, h),
        without_season=True,
    ),
    Member(
        "damped trend",
        lambda y, h, _: forecast_on_logarithms(forecast_damped_holt, y.values, h),
        without_season=True,
    ),
)


def forecast_members(
    histories: Histories, h: int, *, thorough: bool = False, repeats: bool = False
) -> dict[str, Array]:
    """Forecast every series by every member: arrays of shape (n, h) by the member's name.

    A ``thorough`` forecast takes the time to learn from more rows. With ``repeats``, members that
    repeat the last season take part if the usual series has one.
    """
    season, length = histories.season, histories.usual_length
    repeats = repeats and length >= season
    seasons = Seasons.fit(histories) if season == 1 or length >= _FEWEST_SEASONS * season else None
    rest = seasons.remove(histories) if seasons else histories
    forecasts = {}
    for member in MEMBERS:
        if member.repeats and not repeats:
            continue
        if not member.without_season:
            forecasts[member.name] = member.forecast(histories, h, thorough)
        elif seasons:
            forecasts[member.name] = seasons.restore(member.forecast(rest, h, thorough))
    return forecasts
