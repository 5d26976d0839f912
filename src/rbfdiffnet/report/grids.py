"""Tables on the regular grids of their series, where missing rows are missing values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rbfdiffnet.evaluation import BacktestRows, Scores, find_models, score_models, simple_forecasts
from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.panel.grid import to_wall
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.report.tables import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["frequency_of", "scored"]


def frequency_of(tables: Sequence[Table], freq: Any = None) -> Frequency | None:
    """Return the step of time: the given one, or the one most times of all tables agree on."""
    if freq is not None:
        return Frequency.parse(freq)
    times = np.concatenate([table.times for table in tables])
    series = np.concatenate([table.series for table in tables])
    if tables[0].dates:
        return Frequency.infer(to_wall(times, tables[0].zone).view("M8[ns]"), series)
    return Frequency.infer(times, series)


def scored(
    backtest: Table, history: Table, target: str, frequency: Frequency | None, season: int
) -> tuple[Table, Scores]:
    """Add simple rules to a backtest, unless they are there, and score all models.

    Parameters
    ----------
    backtest, history : Table
        Both with the column ``target``.
    target : str
    frequency : Frequency or None
    season : int
        Length of a season.

    Returns
    -------
    backtest : Table
    scores : Scores

    Raises
    ------
    ValueError
        If there is no frequency, or if it does not fit the dates.
    """
    if frequency is None:
        raise ValueError("The frequency cannot be told from the dates of history; pass freq.")
    panel = Panel.from_frame(
        _frame(history, y=history.columns[target]),
        freq=frequency,
    )
    windows = BacktestRows.locate(panel, _frame(backtest))
    rules = simple_forecasts(panel, windows, season)
    rules = {name: values for name, values in rules.items() if name not in backtest.columns}
    backtest = replace(backtest, columns={**backtest.columns, **rules})
    names = [name for name in backtest.columns if name != target]
    models = find_models(names, "backtest")
    return backtest, score_models(panel, windows, backtest.columns, target, models, season)


def _frame(table: Table, **columns: Any) -> pd.DataFrame:
    """Return the keys of a table, with numbers for ids, and further columns."""
    import pandas as pd

    def dates(times: Any) -> Any:
        if not table.dates:
            return times
        index = pd.DatetimeIndex(times.view("M8[ns]"))
        return index if table.zone is None else index.tz_localize("UTC").tz_convert(table.zone)

    keys = {"unique_id": table.series, "ds": dates(table.times)}
    if table.cutoffs is not None:
        keys["cutoff"] = dates(table.cutoffs)
    return pd.DataFrame({**keys, **columns})
