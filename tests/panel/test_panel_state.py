"""Panels keep the looks of their frames, in new frames and in saved ones."""

import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pandas.testing import assert_frame_equal

from long_frames import assert_same, long_frame
from rbfdiffnet.panel.panel import Panel

LIBRARIES = [pd.DataFrame, pl.DataFrame]
ID_COLUMNS = [
    pd.Series(["b", "a", "b"]),
    pd.Series([7, 3, 7]),
    pd.Series([7, 3, 7], dtype="int16"),
    pd.Series(["b", "a", "b"], dtype="category"),
    pd.Series(pd.Categorical(["b", "a", "b"], ["z", "b", "a"], ordered=True)),
    pd.Series([7, 3, 7], dtype="category"),
    pd.Series(["b", "a", "b"], dtype="string[python]"),
    pd.Series(["b", "a", "b"], dtype="string[pyarrow]"),
    pl.Series(["b", "a", "b"]),
    pl.Series([7, 3, 7], dtype=pl.UInt16),
    pl.Series(["b", "a", "b"], dtype=pl.Categorical),
    pl.Series(["b", "a", "b"], dtype=pl.Enum(["z", "a", "b"])),
]
PANDAS_DATES = pd.Series(pd.to_datetime(["2024-05-01", "2024-05-01", "2024-05-02"]))
POLARS_DATES = pl.Series(PANDAS_DATES.to_numpy())
TIME_COLUMNS = [
    PANDAS_DATES,
    PANDAS_DATES.astype("datetime64[us]"),
    PANDAS_DATES.astype("datetime64[s]"),
    PANDAS_DATES.dt.tz_localize("Europe/Berlin"),
    PANDAS_DATES.dt.tz_localize("+02:00"),
    PANDAS_DATES.dt.tz_localize("UTC").astype("datetime64[ms, UTC]"),
    PANDAS_DATES.astype("timestamp[us][pyarrow]"),
    PANDAS_DATES.astype("date32[pyarrow]"),
    pd.Series([4, 4, 5]),
    pd.Series([4, 4, 5], dtype="int16"),
    pd.Series([4, 4, 5], dtype="Int64"),
    POLARS_DATES,
    POLARS_DATES.cast(pl.Date),
    POLARS_DATES.cast(pl.Datetime("us")),
    POLARS_DATES.cast(pl.Datetime("ms")).dt.replace_time_zone("Europe/Berlin"),
    pl.Series([4, 4, 5]),
    pl.Series([4, 4, 5], dtype=pl.Int8),
]


def through_state(panel, tmp_path):
    arrays, meta = panel.to_arrays()
    np.savez(tmp_path / "panel.npz", **arrays)
    with np.load(tmp_path / "panel.npz", allow_pickle=False) as stored:
        return Panel.from_arrays(dict(stored), json.loads(json.dumps(meta)))


def check_looks(ids, times, tmp_path):
    """Check that frames made by a panel look like the one it came from, now and after saving."""
    library = pl if isinstance(ids, pl.Series) else pd
    df = library.DataFrame({"unique_id": ids, "ds": times, "y": [1.0, 3.0, 2.0]})
    integer = times.dtype.is_integer() if library is pl else times.dtype.kind in "iu"
    panel = Panel.from_frame(df, freq=1 if integer else "D")
    assert panel.y.tolist() == [1, 2, 3]
    for p in (panel, pickle.loads(pickle.dumps(panel)), through_state(panel, tmp_path)):
        assert_same(p, panel)
        again = p.make_frame([0, 0], p.lengths, {"y": p.y}, extra_times={"cutoff": [1, 1, 0]})
        assert list(again.columns) == ["unique_id", "ds", "cutoff", "y"]
        if library is pl:
            assert again.drop("cutoff").equals(df[[0, 2, 1]])
            assert again.schema["cutoff"] == again.schema["ds"] == df.schema["ds"]
            assert again.schema["unique_id"] == df.schema["unique_id"]
        else:
            expected = df.iloc[[0, 2, 1]].reset_index(drop=True)
            assert_frame_equal(again.drop(columns="cutoff"), expected)
            assert isinstance(again.index, pd.RangeIndex)
            assert again["cutoff"].dtype == df["ds"].dtype
        empty = p.select([]).make_frame([], [], {"y": []})
        assert len(empty) == 0
        assert list(empty.columns) == ["unique_id", "ds", "y"]
        assert (empty.dtypes[0] if library is pl else empty.dtypes["unique_id"]) == ids.dtype
        assert (empty.dtypes[1] if library is pl else empty.dtypes["ds"]) == times.dtype


@pytest.mark.parametrize("ids", ID_COLUMNS, ids=lambda ids: f"{type(ids).__module__} {ids.dtype}")
def test_ids_keep_their_looks(ids, tmp_path):
    check_looks(ids, POLARS_DATES if isinstance(ids, pl.Series) else PANDAS_DATES, tmp_path)


@pytest.mark.parametrize("times", TIME_COLUMNS, ids=lambda t: f"{type(t).__module__} {t.dtype}")
def test_dates_keep_their_looks(times, tmp_path):
    ids = ID_COLUMNS[8] if isinstance(times, pl.Series) else ID_COLUMNS[0]
    check_looks(ids, times, tmp_path)


@pytest.mark.parametrize("library", LIBRARIES)
def test_time_zones_keep_wall_time_over_daylight_saving(library):
    zone = "Europe/Berlin"
    dates = pd.date_range("2024-03-29", periods=4, freq="D", tz=zone)
    times = dates
    if library is pl.DataFrame:
        naive = pl.Series(dates.tz_localize(None).to_numpy())
        times = naive.dt.replace_time_zone(zone)
    df = library({"unique_id": ["a"] * 4, "ds": times, "y": range(4)})
    panel = Panel.from_frame(df, freq="D")
    assert panel.problems == ()
    future = panel.make_frame([4], [3], {})["ds"].to_list()
    assert future == pd.date_range("2024-04-02", periods=3, tz=zone).to_pydatetime().tolist()
    assert panel.dates(0, 4) == np.datetime64("2024-04-02")
    hourly = Panel.from_frame(library({"unique_id": ["a"], "ds": times[2:3], "y": [1.0]}), freq="h")
    assert hourly.dates([0] * 4, range(4)).astype("M8[h]").astype(str).tolist() == [
        *("2024-03-31T00", "2024-03-31T01", "2024-03-31T03", "2024-03-31T04")
    ]
    assert hourly.format_date(0, 2) == "2024-03-31 03:00"


def test_state_keeps_values_and_inputs(tmp_path):
    df = long_frame("ab").assign(x=1.5, event=["x", None, "", "y"] * 2).drop(index=2)
    panel = Panel.from_frame(df, freq="D", inputs=["x", "event"])
    assert_same(through_state(panel, tmp_path), panel)


@pytest.mark.parametrize("freq", ["15min", "W-WED", "ME", "B", "2B"])
def test_state_keeps_the_frequency(freq, tmp_path):
    panel = Panel.from_frame(long_frame(n=9, freq=freq), freq=freq)
    assert_same(through_state(panel, tmp_path), panel)


def test_state_refuses_what_it_cannot_say():
    holidays = pd.offsets.CustomBusinessDay(holidays=["2024-02-01"])
    panel = Panel.from_frame(long_frame("a", n=9, freq=holidays), freq=holidays)
    assert panel.problems == ()
    with pytest.raises(ValueError, match=r"freq='C' stands for .* cannot be saved"):
        panel.to_arrays()
    panel = Panel.from_frame(long_frame(["a", 1]), freq="D")
    with pytest.raises(ValueError, match="'unique_id' are of type int and str; only text or num"):
        panel.to_arrays()
