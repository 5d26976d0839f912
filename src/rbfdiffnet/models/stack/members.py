"""The members of a stack: quite different ways to forecast the same series."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from rbfdiffnet.models.stack.anchors import damped_holt, on_logarithms, theta
from rbfdiffnet.models.stack.direct import forecast_direct
from rbfdiffnet.models.stack.histories import Histories
from rbfdiffnet.models.stack.last_season import grown, last_season
from rbfdiffnet.models.stack.local import forecast_local
from rbfdiffnet.models.stack.seasons import Seasons

__all__ = ["member_forecasts"]

Array = npt.NDArray[np.float64]

_FEWEST_SEASONS = 3  # to take a season out


def member_forecasts(
    histories: Histories, h: int, *, thorough: bool = False, repeats: bool = False
) -> dict[str, Array]:
    """Forecast every series in every way.

    Ways that take the season out first need three of them in the usual series.

    Parameters
    ----------
    histories : Histories
    h : int
    thorough : bool, default=False
        Take the time to learn from more rows.
    repeats : bool, default=False
        Repeat the last season, too, as it is and at the level series have reached since.

    Returns
    -------
    dict of ndarray of shape (n, h)
        By the member's name; NaN where it has nothing to say.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models.stack.histories import Histories
    >>> from rbfdiffnet.models.stack.members import member_forecasts
    >>> series = [np.arange(30.0) + i for i in range(9)]
    >>> members = member_forecasts(Histories.of(series, 1), 2)
    >>> list(members)
    ['direct', 'direct, log', 'local, common', 'local, walk', 'theta', 'damped trend']
    >>> bool(all(np.abs(f[0] - [30, 31]).max() < 2 for f in members.values()))
    True
    """
    direct = partial(forecast_direct, thorough=thorough)
    members = {
        "direct": direct(histories, h),
        "direct, log": _on_logarithms(direct, histories, h),
    }
    if repeats and histories.usual_length >= histories.season:
        members["last season"] = last_season(histories, h)
        members["last season, grown"] = grown(histories, members["last season"])
    if histories.season > 1 and histories.usual_length < _FEWEST_SEASONS * histories.season:
        return members
    seasons = Seasons.of(histories)
    bare = seasons.removed(histories)
    members["local, common"] = forecast_local(bare, h, common=True)
    members["local, walk"] = forecast_local(bare, h, common=False)
    for name, method in (("theta", theta), ("damped trend", damped_holt)):
        members[name] = on_logarithms(method, bare.values, h)
    for name in [name for name in members if not name.startswith(("direct", "last season"))]:
        members[name] = seasons.restored(members[name])
    return members


def _on_logarithms(
    method: Callable[[Histories, int], Array], histories: Histories, h: int
) -> Array:
    def on_values(values: Array, h: int) -> Array:
        return method(replace(histories, values=values, logged=histories.positive), h)

    return on_logarithms(on_values, histories.values, h)
