import json
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from dateutil.tz import tzoffset
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from rbfdiffnet import regularize
from rbfdiffnet.panel import Columns, Panel, Problem
from rbfdiffnet.panel_state import panel_state, restore_panel

LIBRARIES = [pd.DataFrame, pl.DataFrame]


def long_frame(ids="ab", n=4, start="2024-01-30", freq="D"):
    dates = pd.date_range(start, periods=n, freq=freq)
    return pd.concat(
        [
            pd.DataFrame({"unique_id": i, "ds": dates, "y": 10.0 * k + np.arange(n)})
            for k, i in enumerate(ids)
        ],
        ignore_index=True,
    )


def to_polars(df):
    return pl.DataFrame(
        {
            name: pl.Series(df[name].to_list(), dtype=pl.String)
            if df[name].dtype == object
            else pl.Series(df[name].to_numpy())
            for name in df.columns
        }
    )


def assert_same(a, b):
    np.testing.assert_array_equal(a.offsets, b.offsets)
    np.testing.assert_array_equal(a.y, b.y)
    assert a.inputs.keys() == b.inputs.keys()
    for name in a.inputs:
        assert a.inputs[name].dtype == b.inputs[name].dtype
        np.testing.assert_array_equal(a.inputs[name], b.inputs[name])
    assert a.problems == b.problems
    assert a.columns == b.columns
    assert [a.name(i) for i in range(a.n_series)] == [b.name(i) for i in range(b.n_series)]
    codes = np.repeat(np.arange(a.n_series), 3)
    steps = np.tile([0, 1, 50], a.n_series)
    np.testing.assert_array_equal(a.dates(codes, steps), b.dates(codes, steps))


def test_series_come_as_they_appear_and_rows_in_any_order():
    df = long_frame("ba")
    panel = Panel.from_frame(df.iloc[[3, 1, 6, 0, 2, 7, 5, 4]], freq="D")
    assert [panel.name(i) for i in range(panel.n_series)] == ["b", "a"]
    assert panel.lengths.tolist() == [4, 4]
    assert panel.offsets.tolist() == [0, 4, 8]
    assert panel.y.tolist() == [0, 1, 2, 3, 10, 11, 12, 13]
    assert panel.problems == ()
    assert panel.label(0, 3) == "2024-02-02"
    assert panel.label(0, 4) == "2024-02-03"
    assert panel.frequency.alias == "D"


# Rows of two or three series, with holes, repeated dates and missing values.
messy = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.integers(0, 12),
        st.one_of(st.none(), st.sampled_from([1.0, 2.5, np.inf, -3.0])),
    ),
    min_size=1,
    max_size=25,
)


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


@given(messy)
def test_values_agree_with_a_group_by(rows):
    df = pd.DataFrame(rows, columns=["unique_id", "ds", "y"]).astype({"y": float})
    panel = Panel.from_frame(df, freq=1)
    clean = df.replace([np.inf], np.nan).drop_duplicates()
    for i in range(panel.n_series):
        mean = clean[clean.unique_id == panel.name(i)].groupby("ds")["y"].mean()
        expected = mean.reindex(range(mean.index.min(), mean.index.max() + 1))
        found = panel.y[panel.offsets[i] : panel.offsets[i + 1]]
        np.testing.assert_allclose(found, expected)
        assert panel.dates(i, 0) == mean.index.min()


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


def through_state(panel, tmp_path, **options):
    arrays, meta = panel_state(panel, **options)
    np.savez(tmp_path / "panel.npz", **arrays)
    with np.load(tmp_path / "panel.npz", allow_pickle=False) as stored:
        return restore_panel(dict(stored), json.loads(json.dumps(meta)))


def check_looks(ids, times, tmp_path):
    """Check that frames made by a panel look like the one it came from, now and after saving."""
    library = pl if isinstance(ids, pl.Series) else pd
    df = library.DataFrame({"unique_id": ids, "ds": times, "y": [1.0, 3.0, 2.0]})
    integer = times.dtype.is_integer() if library is pl else times.dtype.kind in "iu"
    panel = Panel.from_frame(df, freq=1 if integer else "D")
    assert panel.y.tolist() == [1, 2, 3]
    for p in (panel, pickle.loads(pickle.dumps(panel)), through_state(panel, tmp_path)):
        assert_same(p, panel)
        again = p.frame([0, 0], p.lengths, {"y": p.y}, extra_times={"cutoff": [1, 1, 0]})
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
        empty = p.select([]).frame([], [], {"y": []})
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
    future = panel.frame([4], [3], {})["ds"].to_list()
    assert future == pd.date_range("2024-04-02", periods=3, tz=zone).to_pydatetime().tolist()
    assert panel.dates(0, 4) == np.datetime64("2024-04-02")
    hourly = Panel.from_frame(library({"unique_id": ["a"], "ds": times[2:3], "y": [1.0]}), freq="h")
    assert hourly.dates([0] * 4, range(4)).astype("M8[h]").astype(str).tolist() == [
        *("2024-03-31T00", "2024-03-31T01", "2024-03-31T03", "2024-03-31T04")
    ]
    assert hourly.label(0, 2) == "2024-03-31 03:00"


def test_infinite_values_become_missing():
    df = long_frame("a").assign(x=[1.0, np.inf, 2.0, 3.0])
    df.loc[[1, 2], "y"] = [np.inf, -np.inf]
    panel = Panel.from_frame(df, freq="D", inputs=["x"])
    np.testing.assert_array_equal(panel.y, [0, np.nan, np.nan, 3])
    np.testing.assert_array_equal(panel.inputs["x"], [1, np.nan, 2, 3])
    assert panel.problems == (
        Problem(0, "2 infinite 'y' values, first 2024-01-31", "treated as missing"),
        Problem(0, "1 infinite 'x' value, first 2024-01-31", "treated as missing"),
    )
    with pytest.raises(ValueError, match="'a': 2 infinite 'y' values, first 2024-01-31"):
        Panel.from_frame(df, freq="D", errors="raise")


def test_repeated_dates_are_averaged():
    df = pd.DataFrame(
        {
            "unique_id": "a",
            "ds": [1, 1, 2, 2, 2, 3, 3, 4],
            "y": [5.0, 5.0, 4.0, 4.0, 8.0, np.inf, 7.0, 1.0],
            "x": ["u", "u", "u", "u", None, "u", "v", "v"],
        }
    )
    panel = Panel.from_frame(df, freq=1, inputs=["x"])
    assert panel.y.tolist() == [5, 6, 7, 1]
    assert panel.inputs["x"].tolist() == ["u", "u", "v", "v"]
    assert [problem.problem for problem in panel.problems] == [
        "1 infinite 'y' value, first 3",
        "3 repeated dates, first 1",
    ]
    with pytest.raises(ValueError, match=r"'a': 1 repeated date, first 1; .*errors='fallback'"):
        Panel.from_frame(df[:2], freq=1, errors="raise")


def test_missing_dates_become_missing_values():
    df = long_frame("ab", n=6).drop(index=[2, 3, 7])
    panel = Panel.from_frame(df, freq="D")
    np.testing.assert_array_equal(panel.y[:6], [0, 1, np.nan, np.nan, 4, 5])
    assert panel.problems == (
        Problem(0, "2 missing dates, first 2024-02-01", "treated as missing"),
        Problem(1, "1 missing date, first 2024-01-31", "treated as missing"),
    )
    with pytest.raises(ValueError, match="Series 'a': 2 missing dates, first 2024-02-01"):
        Panel.from_frame(df, freq="D", errors="raise")


def test_missing_values_are_no_problem():
    df = long_frame("a").assign(y=[np.nan, 1, np.nan, 2])
    assert Panel.from_frame(df, freq="D", errors="raise").problems == ()


def test_dates_off_the_grid_are_ignored():
    df = long_frame("a", n=5, freq="W-SUN")
    df.loc[5] = ["a", pd.Timestamp("2024-02-06"), 99.0]
    panel = Panel.from_frame(df, freq="W-SUN")
    assert panel.y.tolist() == [0, 1, 2, 3, 4]
    assert panel.problems == (Problem(0, "1 off-grid date, first 2024-02-06", "ignored"),)
    with pytest.raises(ValueError, match="'a': 1 off-grid date, first 2024-02-06"):
        Panel.from_frame(df, freq="W-SUN", errors="raise")


def test_a_stray_date_cannot_exhaust_memory():
    df = long_frame("ab", n=30, freq="s")
    df.loc[60] = ["a", pd.Timestamp("1970-01-01"), 99.0]
    panel = Panel.from_frame(df, freq="s")
    assert panel.lengths.tolist() == [30, 30]
    assert panel.y[:30].tolist() == list(range(30))
    assert panel.label(0, 0) == "2024-01-30"
    assert panel.problems == (Problem(0, "1 much too early date, first 1970-01-01", "ignored"),)
    # A long gap of a long series is just a gap.
    daily = long_frame("a", n=900).drop(index=range(10, 890))
    assert Panel.from_frame(daily, freq="D").lengths.tolist() == [900]


def test_a_frequency_that_does_not_fit():
    df = long_frame("ab", n=30)
    message = (
        r"freq='W' does not fit: 50 of 60 dates .* such as 2024-01-30 of series 'a'; the dates "
        r"look like freq='D'"
    )
    with pytest.raises(ValueError, match=message):
        Panel.from_frame(df, freq="W")
    with pytest.raises(ValueError, match="freq='2' does not fit"):
        Panel.from_frame(df.assign(ds=[0, 1, 3, 5, 7, 8] * 10), freq=2)


def test_the_frequency_is_told_from_the_dates():
    assert Panel.from_frame(long_frame(freq="ME")).frequency.alias == "ME"
    assert Panel.from_frame(long_frame().assign(ds=[3, 6, 9, 12] * 2)).frequency.n == 3
    with pytest.raises(ValueError, match="cannot be told from column 'ds'; pass freq"):
        Panel.from_frame(long_frame(n=1))


@pytest.mark.parametrize("library", [lambda df: df, to_polars])
def test_columns_may_have_other_names(library):
    df = long_frame("a").rename(columns={"unique_id": "shop", "ds": "day", "y": "sales"})
    panel = Panel.from_frame(library(df), Columns("shop", "day", "sales"), "D")
    assert list(panel.frame([4], [1], {"x": [1.0]}).columns) == ["shop", "day", "x"]
    assert list(panel.frame([4], [1], {}, time_name="cutoff").columns) == ["shop", "cutoff"]


def test_a_target_may_be_absent():
    df = long_frame("a").drop(columns="y").assign(x=1)
    panel = Panel.from_frame(df, freq="D", inputs=["x"], target_required=False)
    assert np.isnan(panel.y).all()
    assert panel.inputs["x"].tolist() == [1, 1, 1, 1]
    df["y"] = 2.0
    assert Panel.from_frame(df, freq="D", target_required=False).y.tolist() == [2, 2, 2, 2]


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
    frame = panel.frame([], [], {"x": np.zeros(0)})
    assert type(frame) is type(df)
    assert list(frame.columns) == ["unique_id", "ds", "x"]
    assert "datetime" in str(frame["ds"].dtype).lower()
    assert [len(part) for part in panel.rows_of(df)] == [0, 0, 0]


def test_truncated_and_select():
    panel = Panel.from_frame(long_frame("abc").drop(index=1), freq="D")
    short = panel.truncated(np.array([1, 0, 9]))
    assert short.lengths.tolist() == [3, 4, 0]
    np.testing.assert_array_equal(short.y, [0, np.nan, 2, 10, 11, 12, 13])
    assert short.n_series == 3
    assert short.label(2, 0) == "2024-01-30"
    for chosen, names in (([2, 0], "ca"), (np.array([True, False, True]), "ac")):
        some = panel.select(chosen)
        assert "".join(some.name(i) for i in range(some.n_series)) == names
        assert some.lengths.tolist() == [4, 4]
        assert [problem.series for problem in some.problems] == [names.index("a")]
        np.testing.assert_array_equal(some.y[:4], panel.y[8:] if names == "ca" else panel.y[:4])


@given(st.data())
def test_a_panel_in_two_parts_is_the_panel(data):
    lengths = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    freq = data.draw(st.sampled_from(["D", "ME", "B"]))
    library = data.draw(st.sampled_from([lambda df: df, to_polars]))
    df = pd.concat([long_frame([f"s{i}"], n, freq=freq) for i, n in enumerate(lengths)])
    df["x"] = df["y"].map("x{}".format)
    cut = [data.draw(st.integers(0, n)) for n in lengths]
    # Series without a past are new ones: those come last.
    cut.sort(key=lambda n: n == 0)
    past = df.groupby("unique_id").cumcount() < df["unique_id"].str[1:].astype(int).map(
        dict(enumerate(cut))
    )
    whole, first, second = (
        Panel.from_frame(library(part), freq=freq, inputs=["x"])
        for part in (df, df[past], df[~past])
    )
    assert_same(first.extended(second), whole)


def test_extended_fills_the_gap_and_adds_series():
    panel = Panel.from_frame(long_frame("ab"), freq="D")
    new = long_frame("cb", n=1, start="2024-02-05")
    more = panel.extended(Panel.from_frame(new, freq="D"))
    assert [more.name(i) for i in range(3)] == ["a", "b", "c"]
    assert more.lengths.tolist() == [4, 7, 1]
    np.testing.assert_array_equal(more.y[4:], [10, 11, 12, 13, np.nan, np.nan, 10, 0])
    assert more.problems == (Problem(1, "2 missing dates, first 2024-02-03", "treated as missing"),)


def test_extended_knows_the_day_of_the_month_better_than_the_new_rows():
    days = pd.to_datetime(["2024-01-30", "2024-02-29", "2024-03-30", "2024-04-30", "2024-06-30"])
    df = pd.DataFrame({"unique_id": "a", "ds": days, "y": range(5)})
    whole, old, new = (Panel.from_frame(part, freq="MS") for part in (df, df[:3], df[3:]))
    assert new.label(0, 1) == "2024-05-31"
    more = old.extended(new)
    np.testing.assert_array_equal(more.y, whole.y)
    assert more.label(0, 4) == whole.label(0, 4) == "2024-05-30"


def test_extended_knows_text_from_numbers():
    old = Panel.from_frame(long_frame("a").assign(x="u"), freq="D", inputs=["x"])
    new = long_frame("a", start="2024-03-01")
    more = old.extended(Panel.from_frame(new.assign(x=np.nan), freq="D", inputs=["x"]))
    assert more.inputs["x"].tolist()[:5] == ["u"] * 4 + [None]
    assert more.inputs["x"][-1] is None
    with pytest.raises(ValueError, match="'x' holds text in some rows, numbers in others"):
        old.extended(Panel.from_frame(new.assign(x=1), freq="D", inputs=["x"]))
    with pytest.raises(ValueError, match=r"The new rows have inputs \[\], the series \['x'\]"):
        old.extended(Panel.from_frame(new, freq="D"))


def test_extended_keeps_categories():
    old, new = (long_frame(ids).astype({"unique_id": "category"}) for ids in ("a", "b"))
    more = Panel.from_frame(old, freq="D").extended(Panel.from_frame(new, freq="D"))
    ids = more.frame([0, 0], [1, 1], {})["unique_id"]
    assert ids.dtype == pd.CategoricalDtype(["a", "b"])


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (long_frame("b", start="2024-02-02"), "Series 'b': 2024-02-02 is at or before its last"),
        (long_frame("b", start="2023-02-02"), "Series 'b': 2023-02-02 is at or before its last"),
        (long_frame("b", start="2124-02-02"), "Series 'b': 2124-02-02 is much too late"),
        (long_frame("b", start="2024-02-05 12:00"), "'b': 2024-02-05 12:00 is off its grid"),
        (
            long_frame("b", start="2024-03-01").assign(ds=lambda df: df.ds.dt.tz_localize("UTC")),
            "zone UTC",
        ),
    ],
)
def test_extended_refuses_what_does_not_continue(new, message):
    panel = Panel.from_frame(long_frame("ab"), freq="D")
    with pytest.raises(ValueError, match=message):
        panel.extended(Panel.from_frame(new, freq="D"))


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
    series, steps, on_grid = panel.rows_of(library(other))
    assert series.tolist() == [1, -1, 0, 0, 1]
    assert on_grid.tolist() == [True, False, True, False, True]
    assert steps[on_grid].tolist() == [11, -29, 0]
    for wrong in (other.assign(ds=1), other.assign(ds=other.ds.dt.tz_localize("UTC"))):
        with pytest.raises(ValueError, match="Column 'ds' is of type"):
            panel.rows_of(wrong)


def test_rows_of_finds_ids_of_another_type():
    df = long_frame("ab").astype({"unique_id": "category"})
    panel = Panel.from_frame(df, freq="D")
    for other in (long_frame("b"), to_polars(long_frame("b"))):
        assert panel.rows_of(other)[0].tolist() == [1] * 4


def test_state_with_and_without_values(tmp_path):
    df = long_frame("ab").assign(x=1.5, event=["x", None, "", "y"] * 2).drop(index=2)
    panel = Panel.from_frame(df, freq="D", inputs=["x", "event"])
    assert_same(through_state(panel, tmp_path), panel)
    bare = through_state(panel, tmp_path, values=False)
    assert "y" not in panel_state(panel, values=False)[0]
    np.testing.assert_array_equal(bare.lengths, panel.lengths)
    assert np.isnan(bare.y).all()
    assert bare.inputs == {}
    assert_frame_equal(bare.frame([4, 4], [2, 2], {}), panel.frame([4, 4], [2, 2], {}))


@pytest.mark.parametrize("freq", ["15min", "W-WED", "ME", "B", "2B"])
def test_state_keeps_the_frequency(freq, tmp_path):
    panel = Panel.from_frame(long_frame(n=9, freq=freq), freq=freq)
    assert_same(through_state(panel, tmp_path), panel)


def test_state_refuses_what_it_cannot_say():
    holidays = pd.offsets.CustomBusinessDay(holidays=["2024-02-01"])
    panel = Panel.from_frame(long_frame("a", n=9, freq=holidays), freq=holidays)
    assert panel.problems == ()
    with pytest.raises(ValueError, match=r"freq='C' stands for .* cannot be saved"):
        panel_state(panel)
    panel = Panel.from_frame(long_frame(["a", 1]), freq="D")
    with pytest.raises(ValueError, match="'unique_id' are of type int and str; only text or num"):
        panel_state(panel)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_large_frames_are_read_in_pieces(monkeypatch, shuffled, library):
    rng = np.random.default_rng(0)
    frames = []
    for i in range(9):
        days = pd.date_range("2024-01-01", periods=int(rng.integers(1, 30)))
        frames.append(pd.DataFrame({"unique_id": f"s{i}", "ds": days, "y": rng.random(len(days))}))
        frames[-1]["kind"] = np.where(rng.random(len(days)) < 0.5, "a", None) if i > 4 else None
        frames[-1]["price"] = rng.random(len(days))
    df = pd.concat(frames, ignore_index=True)
    df = df.drop(index=[5, 40, 41])
    df.loc[30, "y"] = np.inf
    df.loc[60, "ds"] += pd.Timedelta("1h")
    df = pd.concat([df, df.iloc[20:23]])
    df = df.sample(frac=1.0, random_state=0) if shuffled else df.sort_values("unique_id")
    frame = pl.from_pandas(df) if library == "polars" else df
    whole = Panel.from_frame(frame, freq="D", inputs=["kind", "price"])
    monkeypatch.setattr(regularize, "_ROWS_AT_ONCE", 25)
    parts = Panel.from_frame(frame, freq="D", inputs=["kind", "price"])
    assert len(list(regularize.row_pieces(np.repeat(np.arange(9), 12), 9))) > 3
    assert parts.problems == whole.problems
    assert len(whole.problems) > 3
    np.testing.assert_array_equal(parts.offsets, whole.offsets)
    np.testing.assert_array_equal(parts.y, whole.y)
    np.testing.assert_array_equal(parts.inputs["price"], whole.inputs["price"])
    assert parts.inputs["kind"].tolist() == whole.inputs["kind"].tolist()
    ahead = [panel.frame(panel.lengths, np.full(9, 2), {}) for panel in (whole, parts)]
    assert ahead[0].equals(ahead[1])


def test_a_frequency_that_fits_few_series_is_refused_in_pieces_too(monkeypatch):
    df = pd.DataFrame({"unique_id": np.repeat([1, 2, 3], 20), "ds": np.tile(np.arange(20), 3)})
    df["y"] = 1.0
    mostly = df.assign(ds=np.where(df["unique_id"] < 3, 2, 1) * df["ds"])
    monkeypatch.setattr(regularize, "_ROWS_AT_ONCE", 20)
    assert Panel.from_frame(mostly, freq=2).n_series == 3
    with pytest.raises(ValueError, match="39 of 60 dates"):
        Panel.from_frame(df, freq=3)
