"""Panels from frames of any kind, and parts of panels."""

from dataclasses import replace
from decimal import Decimal
from zoneinfo import available_timezones

import numpy as np
import pandas as pd
import polars as pl
import pytest
from dateutil.tz import tzoffset
from hypothesis import given
from hypothesis import strategies as st

from long_frames import assert_same, long_frame, messy
from panels import to_polars
from rbfdiffnet.panel.panel import ColumnNames, Panel
from rbfdiffnet.support.notes import Note


def test_series_come_as_they_appear_and_rows_in_any_order():
    df = long_frame("ba")
    panel = Panel.from_frame(df.iloc[[3, 1, 6, 0, 2, 7, 5, 4]], freq="D")
    assert [panel.name(i) for i in range(panel.n_series)] == ["b", "a"]
    assert panel.lengths.tolist() == [4, 4]
    assert panel.offsets.tolist() == [0, 4, 8]
    assert panel.y.tolist() == [0, 1, 2, 3, 10, 11, 12, 13]
    assert panel.problems == ()
    assert panel.format_date(0, 3) == "2024-02-02"
    assert panel.format_date(0, 4) == "2024-02-03"
    assert panel.frequency.alias == "D"


@pytest.mark.parametrize("dtype", ["category", "string", "string[pyarrow]", "dictionary"])
def test_ids_of_all_kinds_come_as_they_appear(dtype):
    if dtype == "dictionary":
        arrow = pytest.importorskip("pyarrow")
        dtype = pd.ArrowDtype(arrow.dictionary(arrow.int32(), arrow.string()))
    df = long_frame("ba").astype({"unique_id": dtype}).iloc[[5, 1, 6, 0, 2, 7, 4, 3]]
    panel = Panel.from_frame(df, freq="D")
    assert [panel.name(i) for i in range(panel.n_series)] == ["a", "b"]
    assert panel.y.tolist() == [10, 11, 12, 13, 0, 1, 2, 3]


@given(messy, st.randoms(use_true_random=False))
def test_shuffled_rows_of_either_library_give_the_same_arrays(rows, random):
    df = pd.DataFrame(rows, columns=["unique_id", "ds", "y"]).astype({"y": float})
    df["ds"] = pd.Timestamp("2024-01-30") + pd.to_timedelta(df["ds"], "D")
    panel = Panel.from_frame(df, freq="D")
    assert_same(panel, Panel.from_frame(to_polars(df), freq="D"))
    order = list(range(len(df)))
    random.shuffle(order)
    shuffled = Panel.from_frame(df.iloc[order], freq="D")
    # Series come in another order, nothing else changes.
    names = [shuffled.name(i) for i in range(shuffled.n_series)]
    back = [names.index(panel.name(i)) for i in range(panel.n_series)]
    assert_same(panel, shuffled.select(back))


def test_inputs_of_all_kinds():
    df = long_frame("a").assign(
        price=[1, 2, 3, 4],
        open=[True, False, True, True],
        event=["x", None, "y", "x"],
        shade=pd.Categorical(["u", "v", "u", None]),
        size=pd.Series([1, None, 3, 4], dtype="Int64"),
        cost=[Decimal("1.5"), None, Decimal("2.0"), Decimal("3.0")],
    )
    names = ["price", "open", "event", "shade", "size", "cost"]
    panel = Panel.from_frame(df.drop(index=2), freq="D", inputs=names)
    expected = {
        "price": [1, 2, np.nan, 4],
        "open": [1, 0, np.nan, 1],
        "event": ["x", None, None, "x"],
        "shade": ["u", "v", None, None],
        "size": [1, np.nan, np.nan, 4],
        "cost": [1.5, np.nan, np.nan, 3],
    }
    assert list(panel.inputs) == names
    for name, values in expected.items():
        assert panel.inputs[name].dtype == (object if name in ("event", "shade") else float)
        np.testing.assert_array_equal(panel.inputs[name], values)

    same = pl.DataFrame(
        {
            **{name: df[name].to_list() for name in ("unique_id", "ds", "y", *names[:2])},
            "event": ["x", None, "y", "x"],
            "shade": pl.Series(["u", "v", "u", None], dtype=pl.Enum(["v", "u"])),
            "size": [1, None, 3, 4],
            "cost": df["cost"].to_list(),
        }
    )
    assert same["cost"].dtype == pl.Decimal
    assert_same(panel, Panel.from_frame(same[[0, 1, 3]], freq="D", inputs=names))


@pytest.mark.parametrize("dtype", ["float32", "Int64", "Float64", "int8", "int64[pyarrow]", object])
def test_targets_of_all_kinds(dtype):
    df = long_frame("a", n=3).astype({"y": dtype})
    assert Panel.from_frame(df, freq="D").y.tolist() == [0, 1, 2]
    df["y"] = df["y"].where([True, False, True], None if dtype in ("int8", object) else pd.NA)
    np.testing.assert_array_equal(Panel.from_frame(df, freq="D").y, [0, np.nan, 2])


@pytest.mark.parametrize("library", [lambda df: df, to_polars])
def test_columns_may_have_other_names(library):
    df = long_frame("a").rename(columns={"unique_id": "shop", "ds": "day", "y": "sales"})
    panel = Panel.from_frame(library(df), ColumnNames("shop", "day", "sales"), "D")
    assert list(panel.make_frame([4], [1], {"x": [1.0]}).columns) == ["shop", "day", "x"]
    assert list(panel.make_frame([4], [1], {}).columns) == ["shop", "day"]


def dateutil_zone(df):
    return df.assign(ds=df["ds"].dt.tz_localize(tzoffset(None, 3600)))


def far_future(df):
    return df.assign(ds=df["ds"].astype("M8[s]") + np.timedelta64(10**10, "s"))


@pytest.mark.parametrize(
    ("change", "freq", "error", "message"),
    [
        (lambda df: df.to_numpy(), "D", TypeError, "pandas or polars data frame .* got ndarray"),
        (lambda df: df["y"], "D", TypeError, "pandas or polars data frame .* got Series"),
        (lambda df: to_polars(df).lazy(), "D", TypeError, r"lazy; call .collect\(\)"),
        (
            lambda df: df.drop(columns="ds"),
            "D",
            ValueError,
            "no column 'ds', only 'unique_id', 'y'",
        ),
        (lambda df: df.set_index("unique_id"), "D", ValueError, r"'unique_id'.*reset_index\(\)"),
        (lambda df: df.assign(unique_id=["a", None] * 4), "D", ValueError, "'unique_id' .* row 1"),
        (lambda df: df.assign(ds=df.ds.where(df.y != 12)), "D", ValueError, "'b': .*'ds' .* row 6"),
        (lambda df: df.assign(ds=df.ds.astype(str)), "D", TypeError, r"pd.to_datetime\(df\['ds'\]"),
        (lambda df: to_polars(df.assign(ds="2024-01-01")), "D", TypeError, r"str.to_datetime\(\)"),
        (lambda df: df.assign(ds=df.ds.dt.to_period("D")), "D", TypeError, r"dt.to_timestamp\(\)"),
        (lambda df: df.assign(ds=df.y), "D", TypeError, r"float64; .*astype\(int\)"),
        (lambda df: df.assign(ds=range(8)), "D", ValueError, "holds whole numbers.*pass freq=1"),
        (lambda df: df, 1, ValueError, "holds dates, but freq=1 counts whole numbers"),
        (lambda df: df.assign(y="x"), "D", TypeError, "'y' must hold numbers, not (object|str)"),
        (lambda df: df.assign(y=True), "D", TypeError, "'y' must hold numbers, not bool"),
        (lambda df: df.assign(y=df.ds), "D", TypeError, "'y' must hold numbers"),
        (dateutil_zone, "D", TypeError, r"'ds' .* name the time zone with .*tz_convert"),
        (far_future, "D", ValueError, "'ds' holds 2340-.*between 1678-01-01"),
        (lambda df: df, "foo", ValueError, "freq='foo' is not a frequency"),
    ],
)
def test_errors_say_what_is_wrong_and_what_to_do(change, freq, error, message):
    with pytest.raises(error, match=message):
        Panel.from_frame(change(long_frame()), freq=freq)


def test_dates_of_all_time_zones_keep_their_zone():
    refused = []
    for zone in sorted(available_timezones() - {"Factory", "localtime"}):  # pandas lacks them
        dates = pd.date_range("2024-01-02 12:00", periods=4, tz=zone)
        panel = Panel.from_frame(long_frame("a").assign(ds=dates), freq="D")
        ahead = panel.make_frame([4], [1], {})["ds"]
        if ahead.dtype != dates.dtype or ahead[0] != dates[-1] + pd.DateOffset(days=1):
            refused.append(zone)
        assert Panel.from_frame(long_frame("a").assign(ds=dates)[:0], freq="D").grid.zone == zone
    assert not refused


def test_errors_is_checked():
    with pytest.raises(ValueError, match="errors must be 'fallback' or 'raise', got 'no'"):
        Panel.from_frame(long_frame(), freq="D", errors="no")


@pytest.mark.parametrize(
    "df",
    [
        long_frame()[:0],
        to_polars(long_frame())[:0],
        pd.DataFrame(columns=["unique_id", "ds", "y"]),
        pl.DataFrame({"unique_id": [], "ds": [], "y": []}),
    ],
)
@pytest.mark.parametrize("freq", ["D", "MS", "B", "h"])
def test_an_empty_frame(df, freq):
    panel = Panel.from_frame(df, freq=freq)
    assert panel.n_series == len(panel.y) == len(panel.lengths) == 0
    frame = panel.make_frame([], [], {"x": np.zeros(0)})
    assert type(frame) is type(df)
    assert list(frame.columns) == ["unique_id", "ds", "x"]
    assert "datetime" in str(frame["ds"].dtype).lower()
    assert [len(part) for part in panel.locate_rows(df)] == [0, 0, 0]


def test_truncated_and_select():
    panel = Panel.from_frame(long_frame("abc").drop(index=1), freq="D")
    short = panel.truncate(np.array([1, 0, 9]))
    assert short.lengths.tolist() == [3, 4, 0]
    np.testing.assert_array_equal(short.y, [0, np.nan, 2, 10, 11, 12, 13])
    assert short.n_series == 3
    assert short.format_date(2, 0) == "2024-01-30"
    for chosen, names in (([2, 0], "ca"), (np.array([True, False, True]), "ac")):
        some = panel.select(chosen)
        assert "".join(some.name(i) for i in range(some.n_series)) == names
        assert some.lengths.tolist() == [4, 4]
        assert [problem.series for problem in some.problems] == [names.index("a")]
        np.testing.assert_array_equal(some.y[:4], panel.y[8:] if names == "ca" else panel.y[:4])


@pytest.mark.parametrize("library", [lambda df: df, to_polars])
def test_rows_of_another_frame(library):
    panel = Panel.from_frame(library(long_frame("ab")), freq="D")
    other = pd.DataFrame(
        {
            "unique_id": ["b", "z", "a", "a", "b"],
            "ds": pd.to_datetime(
                ["2024-02-10", "2024-02-10", "2024-01-01", "2024-01-31 06:00", "2024-01-30"],
                format="mixed",
            ),
        }
    )
    series, steps, on_grid = panel.locate_rows(library(other))
    assert series.tolist() == [1, -1, 0, 0, 1]
    assert on_grid.tolist() == [True, False, True, False, True]
    assert steps[on_grid].tolist() == [11, -29, 0]
    for wrong in (other.assign(ds=1), other.assign(ds=other.ds.dt.tz_localize("UTC"))):
        with pytest.raises(ValueError, match="Column 'ds' is of type"):
            panel.locate_rows(wrong)


def test_rows_of_finds_ids_of_another_type():
    df = long_frame("ab").astype({"unique_id": "category"})
    panel = Panel.from_frame(df, freq="D")
    for other in (long_frame("b"), to_polars(long_frame("b"))):
        assert panel.locate_rows(other)[0].tolist() == [1] * 4


@pytest.mark.parametrize(
    ("library", "zone"),
    [(lambda df: df, None), (lambda df: df, "Europe/Berlin"), (to_polars, None)],
)
def test_one_stray_last_date_costs_one_row(library, zone):
    df = long_frame("abc", n=24, start="2020-01-01", freq="MS")
    stray = (df["unique_id"] == "b") & (df["ds"] == df["ds"].max())
    moved = df.assign(ds=df["ds"].where(~stray, pd.Timestamp("2021-12-09")))
    both = [frame.assign(ds=frame["ds"].dt.tz_localize(zone)) for frame in (df[~stray], moved)]
    expected, panel = (Panel.from_frame(library(frame), freq="MS") for frame in both)
    assert panel.problems == (Note(1, "off-grid date", "ignored", 1, "2021-12-09"),)
    assert_same(replace(panel, problems=()), expected)
    assert panel.lengths.tolist() == [24, 23, 24]
    shuffled = both[1].sample(frac=1.0, random_state=0).sort_values("unique_id", kind="stable")
    assert_same(Panel.from_frame(library(shuffled), freq="MS"), panel)
    series, steps, on_grid = panel.locate_rows(library(both[1]))
    assert steps[on_grid].tolist() == [*range(24), *range(23), *range(24)]
    assert series[~on_grid].tolist() == [1]
    # The month is finished later on; the next one is not.
    new = pd.to_datetime(["2021-12-01", "2022-01-01", "2022-01-09"]).tz_localize(zone)
    rest = library(pd.DataFrame({"unique_id": "b", "ds": new, "y": [7.0, 8.0, 9.0]}))
    more = panel.extend(Panel.from_frame(rest, freq="MS"))
    assert more.y[24:49].tolist() == [*range(10, 33), 7.0, 8.0]
    assert [problem.problem for problem in more.problems] == [
        "1 off-grid date, first 2021-12-09",
        "1 off-grid date, first 2022-01-09",
    ]
