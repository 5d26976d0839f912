"""A small made-up panel of daily demand, with what makes such panels hard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["daily_demand"]

_FIRST_DAY = "2022-01-01"
_SHORT = 60  # days that a newly listed item has been sold
_WEEKDAY = np.array([0.9, 0.85, 0.85, 0.95, 1.1, 1.3, 1.05])  # Monday first, mean 1


def daily_demand(n_series: int = 6, n_days: int = 730, seed: int = 0) -> pd.DataFrame:
    r"""Draw a panel of daily sales with seasons, closures and promotions.

    .. math::

        y_t \sim \mathrm{Poisson}(o_t \, g_t \, \mu_t), \qquad
        \mu_t = c \; w_{d(t)} \, \bigl(1 + \tfrac14 \cos 2 \pi \tfrac{t - t_0}{365.25}\bigr)
        \, (1 + \ell \, p_t)

    where :math:`o_t` is 0 on December 25 and January 1, when the shops are closed, and 1 on all
    other days; :math:`g_t` is noise with mean 1 and standard deviation 0.2; :math:`c` is the
    item's level, :math:`w` the factor of the weekday, :math:`t_0` the peak of the item's year, and
    :math:`\ell` the lift of a promotion, :math:`p_t = 1`, which lasts a week, Monday to Sunday.

    Of every six items the fifth is intermittent, with about one sale in four days, and the sixth
    is new, with at most 60 days of history.

    Parameters
    ----------
    n_series : int, default=6
        Number of items. The first ones are the same however many there are.
    n_days : int, default=730
        Number of days, from 2022-01-01 on.
    seed : int, default=0
        Seed of the random numbers.

    Returns
    -------
    DataFrame with columns ``unique_id``, ``ds``, ``y`` and ``promotion``
        One row for each item and day; ``promotion`` is 0 or 1 and planned ahead, so a forecaster
        may know it for the days it forecasts.

    Examples
    --------
    >>> from rbfdiffnet.datasets import daily_demand
    >>> frame = daily_demand()
    >>> frame.groupby("unique_id").size().tolist()
    [730, 730, 730, 730, 730, 60]

    The last four weeks to be forecast, and what is known about them:

    >>> last = frame["ds"] > "2023-12-03"
    >>> past, future = frame[~last], frame.loc[last, ["unique_id", "ds", "promotion"]]
    >>> len(past), len(future)
    (3542, 168)
    """
    import pandas as pd

    if n_series < 1 or n_days < 1:
        raise ValueError(f"n_series and n_days must be at least 1, got {n_series} and {n_days}.")
    days = pd.date_range(_FIRST_DAY, periods=n_days, freq="D")
    open_ = ~days.strftime("%m-%d").isin(["12-25", "01-01"])
    week = (np.arange(n_days) + days[0].day_of_week) // 7
    items = []
    for item in range(n_series):
        rng = np.random.default_rng([seed, item])
        level, lift = rng.uniform(20, 200), rng.uniform(0.3, 0.8)
        if item % 6 == 4:
            level = 0.3
        peak = rng.uniform(0, 365.25)
        promotion = (rng.random(week[-1] + 1) < 0.15)[week]
        mean = level * _WEEKDAY[days.day_of_week] * (1 + lift * promotion)
        mean *= 1 + 0.25 * np.cos(2 * np.pi * (np.arange(n_days) - peak) / 365.25)
        sales = rng.poisson(open_ * mean * rng.gamma(25.0, 1 / 25.0, size=n_days))
        frame = pd.DataFrame(
            {
                "unique_id": f"item_{item + 1:03d}",
                "ds": days,
                "y": sales.astype(np.float64),
                "promotion": promotion.astype(np.int64),
            }
        )
        items.append(frame.tail(_SHORT) if item % 6 == 5 else frame)
    return pd.concat(items, ignore_index=True)
