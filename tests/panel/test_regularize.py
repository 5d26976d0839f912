"""Rows in any order on regular grids: what does not fit, and frames read in pieces."""

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


def test_missing_values_are_no_problem():
    df = long_frame("a").assign(y=[np.nan, 1, np.nan, 2])
    assert Panel.from_frame(df, freq="D", errors="raise").problems == ()


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
