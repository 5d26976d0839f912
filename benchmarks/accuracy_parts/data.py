"""The data sets: what is known, what is to be forecast, and how errors are measured."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd

from accuracy_parts.errors import Scale, naive_scale, step_scale

H = 28  # days, for M5
# The season and the horizon of the suite's sets.
SUITE = {
    "m1_yearly": (1, 6),
    "m1_quarterly": (4, 8),
    "m1_monthly": (12, 18),
    "hospital": (12, 12),
    "electricity_weekly": (52, 8),
    "us_births": (7, 30),
    "m4_yearly_sub2000": (1, 6),
    "m4_quarterly_sub200": (4, 8),
    "m4_monthly_sub200": (12, 18),
    "pbs_scripts": (12, 24),
    "nngc1_yearly": (1, 6),
    "nngc1_quarterly": (4, 8),
    "nngc1_monthly": (12, 12),
    "nngc1_weekly": (52, 26),
    "nngc1_daily": (7, 14),
    "nngc1_hourly": (24, 48),
    "taylor_elec": (48, 336),
    "etth": (24, 24),
    "exchange_rate": (5, 30),
    "covid_deaths": (7, 30),
}
NINE = (1549, 1577, 1605, 1717, 1773, 1801, 1829, 1857, 1885)
# The file, the days after which training ends, and whether the calendar is given.
M5 = {
    "m5_level8": ("level8.csv.gz", (1913,), False),
    "m5_level8_r9": ("level8.csv.gz", NINE, False),
    "m5_level8_r9_calendar": ("level8.csv.gz", NINE, True),
    "m5_level8_calendar": ("level8.csv.gz", (1913,), True),
    "m5_level9": ("level9.csv.gz", NINE[-3:], False),
    "m5_bottom": ("bottom_1000.csv.gz", NINE[-3:], False),
}
NAMES = (*SUITE, *M5)
EVENT = "event_"  # how the names of columns of events begin


@dataclass(frozen=True)
class Window:
    """A training frame, and what comes after it.

    Attributes
    ----------
    train, test : DataFrame
        ``unique_id, ds, y``, ordered by series and date, and inputs that are known in advance: 0/1
        columns ``snap`` and ``event_...``.
    """

    train: pd.DataFrame
    test: pd.DataFrame

    @property
    def inputs(self) -> pd.DataFrame | None:
        """The test frame without its values, or None where there are no inputs."""
        inputs = self.test.drop(columns="y")
        return inputs if inputs.shape[1] > 2 else None


@dataclass(frozen=True)
class DataSet:
    """Series of one kind.

    Attributes
    ----------
    name : str
    season_length, horizon : int
    freq : str or int
    scale : callable
        The unit of a series' errors.
    power : {1, 2}
        Of absolute errors (MASE) or of squared ones (RMSSE).
    windows : mapping
        Functions that read the windows, by name.
    """

    name: str
    season_length: int
    horizon: int
    freq: str | int
    scale: Scale
    power: int
    windows: Mapping[str, Callable[[], Window]]


def folder(named: Path | None, name: str) -> Path:
    """The folder named, else that of the environment, else one beside the repository."""
    beside = Path(__file__).parents[3] / "shared" / "data" / name
    return named or Path(os.environ.get(f"RBFDIFFNET_{name.upper()}") or beside)


def data_sets(suite: Path, m5: Path) -> dict[str, DataSet]:
    """All data sets by name; their files are read when their windows are."""
    every = [
        DataSet(
            name, season, horizon, 1, partial(naive_scale, lag=season), 1,
            {"published": partial(published, suite, name)},
        )
        for name, (season, horizon) in SUITE.items()
    ]  # fmt: skip
    every += [
        DataSet(
            name, 7, H, "D", step_scale, 2,
            {f"d_{end}": partial(rolling, m5, file, end, calendar) for end in ends},
        )
        for name, (file, ends, calendar) in M5.items()
    ]  # fmt: skip
    return {data.name: data for data in every}


def published(suite: Path, name: str) -> Window:
    """The training and the test part as published."""
    parts = (pd.read_parquet(suite / f"{name}_{part}.parquet") for part in ("train", "test"))
    return Window(*(part.sort_values(["unique_id", "ds"], ignore_index=True) for part in parts))


def rolling(m5: Path, file: str, end: int, calendar: bool) -> Window:
    """M5's days up to ``d_<end>``, and the 28 after it."""
    df = sales(m5 / file)
    if calendar:
        df = with_calendar(df, calendar_columns(m5 / "calendar.csv"))
    last = df["ds"].min() + pd.Timedelta(days=end - 1)
    ahead = (df["ds"] > last) & (df["ds"] <= last + pd.Timedelta(days=H))
    return Window(df[df["ds"] <= last].reset_index(drop=True), df[ahead].reset_index(drop=True))


@cache
def sales(path: Path) -> pd.DataFrame:
    """A file of M5 as a long frame: a column for each series, or a row for each."""
    wide = pd.read_csv(path)
    by_day = wide.set_index("id") if "id" in wide else wide.drop(columns=["date", "d"]).T
    by_day = by_day.sort_index()
    n, length = by_day.shape
    return pd.DataFrame(
        {
            "unique_id": np.repeat(by_day.index.to_numpy(dtype=object), length),
            "ds": np.tile(pd.date_range("2011-01-29", periods=length).to_numpy(), n),
            "y": by_day.to_numpy(dtype=float).ravel(),
        }
    )


@cache
def calendar_columns(path: Path) -> pd.DataFrame:
    """A row for each day: 0/1 columns for events, for their eves, and for SNAP in each state."""
    table = pd.read_csv(path, parse_dates=["date"]).rename(columns={"date": "ds"})
    first, second = table["event_name_1"], table["event_name_2"]
    columns = {
        f"{EVENT}{name}": ((first == name) | (second == name)).astype(int)
        for name in sorted({*first.dropna(), *second.dropna()})
    }
    columns |= {
        f"{EVENT}eve_of_{name.removeprefix(EVENT)}": days.shift(-1, fill_value=0)
        for name, days in columns.items()
    }
    snap = [column for column in table if column.startswith("snap_")]
    return pd.concat([table[["ds", *snap]], pd.DataFrame(columns)], axis=1)


def with_calendar(df: pd.DataFrame, days: pd.DataFrame) -> pd.DataFrame:
    """The frame with events, and with the SNAP days of each series' state, CA of ``CA_1_FOODS``."""
    snap = [column for column in days if column.startswith("snap_")]
    joined = df.merge(days, on="ds", how="left", validate="many_to_one")
    state = joined["unique_id"].str[:2]
    joined.insert(
        3, "snap", sum(joined[s].where(state == s.removeprefix("snap_"), 0) for s in snap)
    )
    return joined.drop(columns=snap)
