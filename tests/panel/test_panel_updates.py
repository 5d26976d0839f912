"""Panels with newer observations."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from long_frames import assert_same, long_frame
from panels import to_polars
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.panel.updates import revise_panel
from rbfdiffnet.support.notes import Note


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
    assert_same(first.extend(second), whole)


def test_extended_fills_the_gap_and_adds_series():
    panel = Panel.from_frame(long_frame("ab"), freq="D")
    new = long_frame("cb", n=1, start="2024-02-05")
    more = panel.extend(Panel.from_frame(new, freq="D"))
    assert [more.name(i) for i in range(3)] == ["a", "b", "c"]
    assert more.lengths.tolist() == [4, 7, 1]
    np.testing.assert_array_equal(more.y[4:], [10, 11, 12, 13, np.nan, np.nan, 10, 0])
    assert more.problems == (Note(1, "missing date", "treated as missing", 2, "2024-02-03"),)


def test_extended_knows_the_day_of_the_month_better_than_the_new_rows():
    days = pd.to_datetime(["2024-01-30", "2024-02-29", "2024-03-30", "2024-04-30", "2024-06-30"])
    df = pd.DataFrame({"unique_id": "a", "ds": days, "y": range(5)})
    whole, old, new = (Panel.from_frame(part, freq="MS") for part in (df, df[:3], df[3:]))
    assert new.format_date(0, 1) == "2024-05-31"
    more = old.extend(new)
    np.testing.assert_array_equal(more.y, whole.y)
    assert more.format_date(0, 4) == whole.format_date(0, 4) == "2024-05-30"


def test_extended_knows_text_from_numbers():
    old = Panel.from_frame(long_frame("a").assign(x="u"), freq="D", inputs=["x"])
    new = long_frame("a", start="2024-03-01")
    more = old.extend(Panel.from_frame(new.assign(x=np.nan), freq="D", inputs=["x"]))
    assert more.inputs["x"].tolist()[:5] == ["u"] * 4 + [None]
    assert more.inputs["x"][-1] is None
    with pytest.raises(ValueError, match="'x' holds text in some rows, numbers in others"):
        old.extend(Panel.from_frame(new.assign(x=1), freq="D", inputs=["x"]))
    with pytest.raises(ValueError, match=r"The new rows have inputs \[\], the series \['x'\]"):
        old.extend(Panel.from_frame(new, freq="D"))


def test_extended_keeps_categories():
    old, new = (long_frame(ids).astype({"unique_id": "category"}) for ids in ("a", "b"))
    more = Panel.from_frame(old, freq="D").extend(Panel.from_frame(new, freq="D"))
    ids = more.make_frame([0, 0], [1, 1], {})["unique_id"]
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
        panel.extend(Panel.from_frame(new, freq="D"))


def test_extended_refuses_one_row_in_the_far_future():
    panel = Panel.from_frame(long_frame("a", n=1500), freq="D")
    with pytest.raises(ValueError, match="2124-01-01 is much too late"):
        panel.extend(Panel.from_frame(long_frame("a", n=1, start="2124-01-01"), freq="D"))
    later = Panel.from_frame(long_frame("a", n=1, start="2032-01-01"), freq="D")
    assert panel.extend(later).n_series == 1


def test_extended_series_that_are_new_begin_with_their_first_value():
    rows = long_frame("ab", n=4, start="2024-02-03").assign(y=[np.nan, 1, 2, 3] * 2)
    more = Panel.from_frame(long_frame("a"), freq="D").extend(Panel.from_frame(rows, freq="D"))
    assert more.lengths.tolist() == [8, 3]
    assert more.format_date(1, 0) == "2024-02-04"
    assert more.problems == ()


def test_extended_names_the_way_for_corrected_values():
    panel = Panel.from_frame(long_frame("a"), freq="D")
    with pytest.raises(ValueError, match=r"last known date; .* fit again with the corrected frame"):
        panel.extend(panel)


@pytest.mark.parametrize("library", [lambda df: df, to_polars])
@pytest.mark.parametrize(
    ("mine", "theirs", "words"),
    [
        (7, "7", r"such as '7', that of the series of type \w+, such as 7; convert"),
        ("7", 7, "such as 7, that of the series .* such as '7'; convert"),
        (7, "x", "such as 'x', that of the series"),
        (7, 7.5, "such as 7.5, that of the series"),
        (np.int8(7), 300, "such as 300, that of the series"),
    ],
)
def test_extended_refuses_ids_of_another_kind(library, mine, theirs, words):
    old = long_frame("a").assign(unique_id=mine)
    new = long_frame("a", start="2024-02-05").assign(unique_id=theirs)
    panel = Panel.from_frame(library(old), freq="D")
    with pytest.raises(ValueError, match=f"Column 'unique_id' of the new rows is .*{words}"):
        panel.extend(Panel.from_frame(library(new), freq="D"))


def test_extended_takes_ids_of_another_type_that_mean_the_same():
    panel = Panel.from_frame(long_frame("a").assign(unique_id=7), freq="D")
    new = long_frame("a", start="2024-02-05").assign(unique_id=7.0)
    more = panel.extend(Panel.from_frame(new, freq="D"))
    assert more.ids.to_list() == [7]


def test_known_values_replace_older_ones():
    df = pd.DataFrame({"unique_id": "a", "ds": [1, 2, 3], "y": [1.0, None, 3.0]})
    panel = Panel.from_frame(df, freq=1)
    newer = pd.concat([df.assign(y=[None, 2.0, 4.0]), df.assign(unique_id="b")])
    assert revise_panel(panel, newer).y.tolist() == [1.0, 2.0, 4.0]
