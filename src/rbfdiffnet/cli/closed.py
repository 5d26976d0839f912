"""Weekdays on which daily series never have a value: they are named, and left out if told."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rbfdiffnet.readers import Data
from rbfdiffnet.readers.errors import CommandError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["open_days"]

_PART = 2000


def open_days(
    arguments: argparse.Namespace, data: Data, forecast: pd.DataFrame, report: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Name closed weekdays in the report, and leave out their forecasts with ``--skip-closed``.

    Parameters
    ----------
    arguments : Namespace
    data : Data
    forecast, report : DataFrame
        As `rbfdiffnet.cli.running.forecasts` or ``backtests`` returns them.

    Returns
    -------
    forecast, report : DataFrame
    """
    from rbfdiffnet.cli.sampling import rows_by_series
    from rbfdiffnet.panel.weekdays import weekdays_of

    closed = _closed(data)
    if closed is None:
        return forecast, report
    if arguments.skip_closed:
        weekdays = weekdays_of(forecast["ds"].dt.tz_localize(None).to_numpy())
        kept = ~closed[rows_by_series(data, forecast), weekdays]
        forecast = forecast[kept].reset_index(drop=True)
        if not len(forecast):
            raise CommandError(
                "--skip-closed leaves nothing: no series ever has a value on the weekdays to "
                "forecast; choose a larger --horizon, or leave --skip-closed out"
            )
    return forecast, _told(data, report, closed, skipped=arguments.skip_closed)


def _closed(data: Data) -> npt.NDArray[np.bool_] | None:
    """Return which weekdays are closed for each series; None where all are open."""
    from rbfdiffnet.panel.weekdays import closed_table, is_daily

    if not is_daily(data.frequency):
        return None
    found = []
    for start in range(0, data.series.n_series, _PART):
        stop = min(start + _PART, data.series.n_series)
        part = data.series.part(start, stop)
        part = part[np.isfinite(part["y"].to_numpy(dtype=np.float64))]
        dates = part["ds"].dt.tz_localize(None).to_numpy()
        codes = part["unique_id"].cat.codes.to_numpy().astype(np.int64) - start
        found.append(closed_table(codes, dates, stop - start))
    closed = np.concatenate(found)
    return closed if closed.any() else None


def _told(
    data: Data, report: pd.DataFrame, closed: npt.NDArray[np.bool_], *, skipped: bool
) -> pd.DataFrame:
    import pandas as pd

    from rbfdiffnet.panel.weekdays import name_weekdays

    positions = np.flatnonzero(closed.any(axis=1)).tolist()
    action = "their forecasts are left out"
    if not skipped:
        action = "they repeat the day before; --skip-closed leaves their forecasts out"
    lines = pd.DataFrame(
        {
            "unique_id": [data.ids[i] for i in positions],
            "problem": [f"no value on {name_weekdays(closed[i])}, ever" for i in positions],
            "action": action,
        }
    )
    if not len(report):
        return lines
    return pd.concat([report.astype({"unique_id": object}), lines], ignore_index=True)
