"""RBFDiffNet in some configurations."""

from __future__ import annotations

from typing import Any

import pandas as pd

from accuracy_parts.data import EVENT
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.panel.calendar import Event

CALENDAR = ("dayofweek", "day", "month")


def ours(
    train: pd.DataFrame,
    h: int,
    season_length: int,
    freq: str | int,
    inputs: pd.DataFrame | None,
    **settings: Any,
) -> pd.DataFrame:
    """Forecast; with inputs, parts of the dates are inputs too, and events are `Event`s."""
    if inputs is not None:
        columns = [column for column in inputs if column.startswith(EVENT)]
        days = pd.concat([train, inputs]).drop_duplicates("ds").set_index("ds")[columns]
        events = [
            Event(column.removeprefix(EVENT), days.index[days[column] == 1])
            for column in columns
            if days[column].any()
        ]
        settings = {"calendar": CALENDAR, "events": events} | settings
        train, inputs = train.drop(columns=columns), inputs.drop(columns=columns)
    model = RBFDiffNet(freq, season_length=season_length, **settings)
    return model.forecast(train, h, inputs).rename(columns={"RBFDiffNet": "forecast"})
