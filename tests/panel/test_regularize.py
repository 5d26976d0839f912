"""Rows in any order on regular grids: what does not fit, and frames read in pieces."""

from itertools import pairwise
from statistics import median

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given

from long_frames import long_frame, messy
from rbfdiffnet.panel import regularize
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.support.notes import Note


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


def test_infinite_values_become_missing():
    df = long_frame("a").assign(x=[1.0, np.inf, 2.0, 3.0])
    df.loc[[1, 2], "y"] = [np.inf, -np.inf]
    panel = Panel.from_frame(df, freq="D", inputs=["x"])
    np.testing.assert_array_equal(panel.y, [0, np.nan, np.nan, 3])
    np.testing.assert_array_equal(panel.inputs["x"], [1, np.nan, 2, 3])
    assert panel.problems == (
        Note(0, "infinite 'y' value", "treated as missing", 2, "2024-01-31"),
        Note(0, "infinite 'x' value", "treated as missing", 1, "2024-01-31"),
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
        Note(0, "missing date", "treated as missing", 2, "2024-02-01"),
        Note(1, "missing date", "treated as missing", 1, "2024-01-31"),
    )
    with pytest.raises(ValueError, match="Series 'a': 2 missing dates, first 2024-02-01"):
        Panel.from_frame(df, freq="D", errors="raise")


def test_missing_values_are_counted_from_the_first_value_on():
    df = long_frame("a", n=7).assign(y=[np.nan, np.nan, 1, np.nan, 2, np.inf, np.nan])
    panel = Panel.from_frame(df, freq="D")
    assert [problem.problem for problem in panel.problems] == [
        "1 infinite 'y' value, first 2024-02-04",
        "2 missing values, first 2024-02-02",
    ]
    assert Panel.from_frame(df.replace(np.inf, 3.0), freq="D", errors="raise").n_series == 1
    assert Panel.from_frame(df.assign(y=np.nan), freq="D").problems == ()
    twice = pd.concat([df, df.assign(y=5.0)])
    assert not any("missing" in note.problem for note in Panel.from_frame(twice, freq="D").problems)


def test_dates_off_the_grid_are_ignored():
    df = long_frame("a", n=5, freq="W-SUN")
    df.loc[5] = ["a", pd.Timestamp("2024-02-06"), 99.0]
    panel = Panel.from_frame(df, freq="W-SUN")
    assert panel.y.tolist() == [0, 1, 2, 3, 4]
    assert panel.problems == (Note(0, "off-grid date", "ignored", 1, "2024-02-06"),)
    with pytest.raises(ValueError, match="'a': 1 off-grid date, first 2024-02-06"):
        Panel.from_frame(df, freq="W-SUN", errors="raise")


def test_a_stray_date_cannot_exhaust_memory():
    df = long_frame("ab", n=30, freq="s")
    df.loc[60] = ["a", pd.Timestamp("1970-01-01"), 99.0]
    panel = Panel.from_frame(df, freq="s")
    assert panel.lengths.tolist() == [30, 30]
    assert panel.y[:30].tolist() == list(range(30))
    assert panel.format_date(0, 0) == "2024-01-30"
    assert panel.problems == (Note(0, "much too early date", "ignored", 1, "1970-01-01"),)
    # A long gap of a long series is just a gap.
    daily = long_frame("a", n=900).drop(index=range(10, 890))
    assert Panel.from_frame(daily, freq="D").lengths.tolist() == [900]


def strays(df, dates, ids="a"):
    rows = [(i, pd.Timestamp(date), 99.0) for i in ids for date in dates]
    return pd.concat([df, pd.DataFrame(rows, columns=["unique_id", "ds", "y"])])


@pytest.mark.parametrize(
    ("freq", "n", "dates"),
    [
        ("D", 90, ["2124-01-01"]),
        ("D", 1500, ["2124-01-01"]),
        ("D", 90, ["2124-01-01", "2124-01-02", "2204-05-06"]),
        ("D", 5, ["2124-01-01"]),
        ("h", 90, ["2025-01-30 04:00"]),
        ("B", 60, ["2124-01-03"]),
        ("MS", 90, ["2124-01-01"]),
        ("D", 40, ["1900-01-01"]),
        ("D", 1500, ["1900-01-01", "2124-01-01"]),
    ],
)
@pytest.mark.parametrize("ids", ["a", "ab"])
def test_a_few_dates_far_away_from_all_others_go(freq, n, dates, ids):
    df = long_frame("ab", n=n, freq=freq, start="2024-02-01")
    panel = Panel.from_frame(strays(df, dates, ids).sample(frac=1.0, random_state=0), freq=freq)
    good = Panel.from_frame(df, freq=freq)
    back = panel.find_series(good.ids)
    np.testing.assert_array_equal(panel.select(back).y, good.y)
    assert panel.select(back).format_date(0, n) == good.format_date(0, n)
    found = {(panel.name(note.series), note.kind) for note in panel.problems}
    late, early = ([date for date in dates if (date > "2024") == is_late] for is_late in (1, 0))
    kinds = {"much too late date": late, "much too early date": early}
    assert found == {(i, kind) for i in ids for kind, some in kinds.items() if some}
    assert sum(note.count for note in panel.problems) == len(ids) * len(dates)


def slow_range(times):
    """Find the range without strays gap by gap, in plain Python."""
    few = max(1, len(times) // 10)
    middle = times[few : len(times) - few]
    gap = median(after - before for before, after in pairwise(times))
    reach = max(1000, 2 * (middle[-1] - middle[0]), 20 * gap)
    first, last = 0, len(times) - 1
    for i in range(1, few + 1):
        if times[i] - times[i - 1] > reach:
            first = i
        if times[-i] - times[-i - 1] > reach:
            last = len(times) - 1 - i
    return times[first], times[last]


def test_strays_are_those_found_gap_by_gap():
    rng = np.random.default_rng(0)
    sizes, shares = [1, 2, 50, 150, 900, 5000, 10**6], [0.86, 0.05, 0.03, 0.02, 0.02, 0.01, 0.01]
    n_cut = 0
    for _ in range(500):
        times = np.cumsum(rng.choice(sizes, rng.integers(4, 60), p=shares))
        found = regularize.usual_range(times, 1.0)
        assert found == slow_range(times.tolist())
        n_cut += found != (times[0], times[-1])
    assert n_cut > 20


def season(i="a"):
    """Return a month before Christmas, and two days of the next one."""
    days = pd.date_range("2022-11-25", "2022-12-24").append(pd.date_range("2023-12-04", periods=2))
    return pd.DataFrame({"unique_id": i, "ds": days, "y": 1.0})


@pytest.mark.parametrize("others", ["", "bcd"])
def test_the_newest_rows_of_a_seasonal_item_stay(others):
    rest = [long_frame(i, n=339, start="2023-01-01") for i in others]
    panel = Panel.from_frame(pd.concat([season(), *rest]), freq="D")
    assert {panel.format_date(i, n - 1) for i, n in enumerate(panel.lengths)} == {"2023-12-05"}
    assert {note.kind for note in panel.problems} == {"missing date"}


@pytest.mark.parametrize(("n", "n_days"), [(25, 1500), (15, 1500), (30, 3000), (4, 3000)])
@pytest.mark.parametrize("n_series", [1, 5])
def test_the_newest_rows_of_rare_sales_stay(n, n_days, n_series, rng):
    for _ in range(20):
        days = [np.sort(rng.choice(n_days, n, replace=False)) for _ in range(n_series)]
        ids = np.repeat(np.arange(n_series), n)
        df = pd.DataFrame({"unique_id": ids, "ds": np.concatenate(days), "y": 1.0})
        panel = Panel.from_frame(df, freq=1)
        assert panel.dates(np.arange(n_series), panel.lengths - 1).tolist() == [d[-1] for d in days]


def test_a_date_far_beyond_those_of_other_series_goes(monkeypatch):
    few = strays(long_frame("bcd", n=60, start="2024-01-01"), ["2024-01-01", "2123-01-01"])
    whole = Panel.from_frame(few, freq="D")
    monkeypatch.setattr(regularize, "_ROWS_AT_ONCE", 2)
    for panel in (whole, Panel.from_frame(few, freq="D")):
        assert panel.problems == (Note(3, "much too late date", "ignored", 1, "2123-01-01"),)
        assert panel.lengths.tolist() == [60, 60, 60, 1]
        assert panel.format_date(3, 0) == "2024-01-01"


def test_a_series_at_another_time_than_all_others_stays():
    alone = long_frame("a", n=4, start="1990-01-01")
    panel = Panel.from_frame(pd.concat([alone, long_frame("bc", n=200)]), freq="D")
    assert panel.lengths.tolist() == [4, 200, 200]
    assert panel.problems == ()


def test_the_majority_stays():
    old, new = long_frame("a", n=3, start="2016-05-01"), long_frame("a", n=200)
    panel = Panel.from_frame(pd.concat([old, new]), freq="D")
    assert panel.lengths.tolist() == [200]
    assert panel.problems == (Note(0, "much too early date", "ignored", 3, "2016-05-01"),)


def test_a_pause_is_just_a_pause():
    rest = long_frame("a", n=3, start="2025-01-10")
    panel = Panel.from_frame(pd.concat([long_frame("a", n=200), rest]), freq="D")
    assert panel.format_date(0, panel.lengths[0] - 1) == "2025-01-12"
    assert [note.kind for note in panel.problems] == ["missing date"]
    seldom = long_frame("a", n=6, freq="150D")  # no dates are far from all others
    assert Panel.from_frame(seldom, freq="D").lengths.tolist() == [751]


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Europe/London", "Europe/Berlin"])
@pytest.mark.parametrize(("freq", "n"), [("MS", 21), ("MS", 24), ("MS", 27), ("D", 400), ("QS", 9)])
def test_midnights_of_a_place_with_daylight_saving_written_in_utc(zone, freq, n):
    local = pd.date_range("2019-11-01", periods=n + 9, freq=freq, tz=zone)
    df = pd.DataFrame({"unique_id": "a", "ds": local.tz_convert("UTC"), "y": np.arange(n + 9.0)})
    for ds in (df["ds"], df["ds"].dt.tz_localize(None)):
        rows = df.assign(ds=ds)
        panel = Panel.from_frame(rows[:n], freq=freq)
        assert panel.y.tolist() == list(range(n))
        (note,) = panel.problems
        assert note.kind == "hour-shifted date"
        assert 0 < note.count < n
        longer = panel.extend(Panel.from_frame(rows[n:], freq=freq))
        assert longer.y.tolist() == list(range(n + 9))


def test_an_hour_off_is_off_where_the_grid_has_a_row():
    df = long_frame("a", n=30)
    more = df.iloc[[3, 7]].assign(ds=lambda rows: rows["ds"] + pd.Timedelta("1h"), y=99.0)
    panel = Panel.from_frame(pd.concat([df, more]), freq="D")
    assert panel.y.tolist() == list(range(30))
    assert panel.problems == (Note(0, "off-grid date", "ignored", 2, "2024-02-02 01:00"),)
    half_hours = df.assign(ds=df["ds"].where(df.index != 4, df["ds"] + pd.Timedelta("30min")))
    assert np.isnan(Panel.from_frame(half_hours, freq="D").y[4])
    both = pd.concat([df, df.assign(ds=df["ds"] + pd.Timedelta("1h"))])
    with pytest.raises(ValueError, match="freq='D' does not fit: 30 of 60 dates"):
        Panel.from_frame(both, freq="D")


def test_a_frequency_that_half_of_the_dates_fit_is_refused():
    df = long_frame("ab", n=30)
    with pytest.raises(ValueError, match=r"freq='2D' does not fit: 30 of 60 .*look like freq='D'"):
        Panel.from_frame(df, freq="2D")
    hours = long_frame("a", n=30, freq="h")
    with pytest.raises(ValueError, match=r"freq='2h' does not fit: 15 of 30 .*look like freq='h'"):
        Panel.from_frame(hours, freq="2h")


def every_second_day(names, daily):
    """Return 30 days of some daily series beside series with a value every second day."""
    df = long_frame(names, n=30)
    return df[df["unique_id"].isin(list(daily)) | (df.index % 2 == 1)]


def test_a_frequency_is_judged_series_by_series():
    message = (
        r"freq='2D' does not fit 2 of 4 series \('b', 'd'\): 30 of 60 dates .* such as "
        r"2024-01-30 of series 'b'; the dates look like freq='D'"
    )
    with pytest.raises(ValueError, match=message):
        Panel.from_frame(every_second_day("abcd", "bd"), freq="2D")
    panel = Panel.from_frame(every_second_day("abcd", "b"), freq="2D")  # one does not lose others
    action = "ignored; the dates look like freq='D'"
    assert panel.problems == (Note(1, "off-grid date", action, 15, "2024-01-30"),)
    assert panel.lengths.tolist() == [15, 15, 15, 15]


def test_a_frequency_that_does_not_fit():
    df = long_frame("ab", n=30)
    message = (
        r"freq='W' does not fit: 50 of 60 dates .* such as 2024-01-30 of series 'a'; the dates "
        r"look like freq='D'"
    )
    with pytest.raises(ValueError, match=message):
        Panel.from_frame(df, freq="W")
    whole = df.assign(ds=[0, 1, 3, 5, 7, 8] * 10)
    with pytest.raises(ValueError, match=r"freq='5' does not fit: 40 of 60 .* look like freq='2'"):
        Panel.from_frame(whole, freq=5)
    assert Panel.from_frame(whole, freq=2).format_date(0, 0) == "1"  # most of them are odd


def test_a_step_that_is_right_on_grids_that_are_not():
    days = pd.date_range("2024-01-01", periods=9, freq="W-MON") + pd.to_timedelta(
        np.repeat([0, 1, 2], 3), "D"
    )
    df = pd.DataFrame({"unique_id": "a", "ds": days, "y": 1.0})
    message = "freq='W' does not fit: 6 of 9 dates .* on several grids; correct them"
    for freq in (None, "W-MON"):
        with pytest.raises(ValueError, match=message.replace("'W'", f"'{freq or 'W'}'")):
            Panel.from_frame(df, freq=freq)
    df["ds"] += pd.to_timedelta(np.arange(9) ** 2, "h")
    with pytest.raises(ValueError, match="'a'; pass another freq, or correct the dates"):
        Panel.from_frame(df, freq="D")


def test_the_frequency_is_told_from_the_dates():
    assert Panel.from_frame(long_frame(freq="ME")).frequency.alias == "ME"
    assert Panel.from_frame(long_frame().assign(ds=[3, 6, 9, 12] * 2)).frequency.n == 3
    with pytest.raises(ValueError, match="cannot be told from column 'ds'; pass freq"):
        Panel.from_frame(long_frame(n=1))


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
    assert len(list(regularize.split_rows(np.repeat(np.arange(9), 12), 9))) > 3
    assert parts.problems == whole.problems
    assert len(whole.problems) > 3
    np.testing.assert_array_equal(parts.offsets, whole.offsets)
    np.testing.assert_array_equal(parts.y, whole.y)
    np.testing.assert_array_equal(parts.inputs["price"], whole.inputs["price"])
    assert parts.inputs["kind"].tolist() == whole.inputs["kind"].tolist()
    ahead = [panel.make_frame(panel.lengths, np.full(9, 2), {}) for panel in (whole, parts)]
    assert ahead[0].equals(ahead[1])


def test_a_frequency_that_fits_few_series_is_refused_in_pieces_too(monkeypatch):
    df = pd.DataFrame({"unique_id": np.repeat([1, 2, 3], 20), "ds": np.tile(np.arange(20), 3)})
    df["y"] = 1.0
    mostly = df.assign(ds=np.where(df["unique_id"] < 3, 2, 1) * df["ds"])
    monkeypatch.setattr(regularize, "_ROWS_AT_ONCE", 20)
    assert Panel.from_frame(mostly, freq=2).n_series == 3
    with pytest.raises(ValueError, match="39 of 60 dates"):
        Panel.from_frame(df, freq=3)
