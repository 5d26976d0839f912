"""Future inputs unlike those of training: which ones are noted, and how far out they are."""

import numpy as np
import pandas as pd
import pytest

from long_frames import long_frame
from rbfdiffnet import Event, RBFDiffNet
from rbfdiffnet.panel.exogenous import Exogenous
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.series.effects import without_typos

FAR, NEW = "extrapolated, and not to be trusted", "its effect is not known, and left out"


def inputs_ahead(past, future, *, ids="a", alone=False):
    """Return the inputs of the two steps after series whose input x was `past`, 5 values each."""
    df = long_frame(ids, n=5).assign(x=past)
    panel = Panel.from_frame(df, freq="D", inputs=["x"])
    rows = panel.make_frame(panel.lengths, np.full(panel.n_series, 2), {}).assign(x=future)
    return Exogenous.fit(panel, alone=alone).ahead(panel, 2, rows)


@pytest.mark.parametrize(
    ("past", "future", "expected"),
    [
        ([1.0, 2.5, 3.0, 2.0, 1.5], [5.0, -1.0], None),  # as far out as the range is wide
        ([1.0, 2.5, 3.0, 2.0, 1.5], [2.0, 2e6], "'x' is 2e+06 on 2024-02-05, far from 1 to 3"),
        ([1.0, 2.5, 3.0, 2.0, 1.5], [5.1, -1.1], "'x' is 5.1 on 2024-02-04 and on 1 more, far"),
        ([1, 2, 3, 2, 1], [5, 6], "'x' is 6 on 2024-02-05, far from 1 to 3"),
        ([0, 0, 1, 0, 0], [1, 0], None),
        ([0.0] * 5, [0.0, 0.0], None),
        ([0.0] * 5, [0.0, 1.0], "'x' is 1 on 2024-02-05, but was always 0"),
        (list("uvuvu"), ["u", "w"], "'x' is 'w' on 2024-02-05, which was not there"),
        (list("uvuvu"), ["u", "v"], None),
        (list("uuuuu"), ["u", "v"], "'x' is 'v' on 2024-02-05, which was not there"),
        ([True, False, True, True, True], [False, True], None),
    ],
)
def test_inputs_unlike_those_of_training_are_noted(past, future, expected):
    notes = inputs_ahead(past, future).notes
    assert len(notes) == (expected is not None)
    for note in notes:
        assert note.detail.startswith(expected)
        assert note.detail.endswith(" in training")
        assert note.action == (FAR if "far" in expected else NEW)


@pytest.mark.parametrize(("value", "excess"), [(13.0, 10.0), (3.5, 0.5), (0.75, 0.25)])
def test_how_far_out_a_number_is(value, excess):
    found = inputs_ahead([1.0, 2.5, 3.0, 2.0, 1.5], [2.0, value])
    np.testing.assert_array_equal(found.excess[0], [[0.0], [excess]])
    np.testing.assert_array_equal(found.select(np.array([0])).excess, found.excess)
    assert inputs_ahead([1.0, 2.5, 3.0, 2.0, 1.5], [1.0, 3.0]).excess is None


def prices_and_typos():
    """Return 40 prices of three series, and their ranges without typos."""
    usual, rare = 1.0 + np.arange(40) % 9 / 4, np.where(np.arange(40) == 7, 1.5, 2.0)
    wrong = usual.copy()
    wrong[[5, 30]] = 1e6, -40.0
    always = np.where(np.arange(40) == 9, 1e6, 2.0)
    return [wrong, rare, always], [[1.0, 1.5, 2.0], [3.0, 2.0, 2.0]]


def test_typos_do_not_count_in_ranges():
    columns, expected = prices_and_typos()
    df = long_frame("abc", n=40).assign(x=np.concatenate(columns))
    panel = Panel.from_frame(df, freq="D", inputs=["x"])
    np.testing.assert_array_equal(panel.find_range("x"), expected)
    assert Exogenous.fit(panel).future_encoder.columns[0].span == (1.0, 3.0)
    cleaned = without_typos(columns[0][:, None])  # the rule by which effects are learned
    assert (cleaned.min(), cleaned.max()) == (1.0, 3.0)


def test_a_typo_does_not_switch_off_the_guard():
    df = long_frame("a", n=60).assign(x=1.0 + np.arange(60) % 9 / 4)
    df.loc[20, "x"] = 20.0
    panel = Panel.from_frame(df, freq="D", inputs=["x"])
    rows = panel.make_frame(panel.lengths, [1], {}).assign(x=19.0)
    (note,) = Exogenous.fit(panel).ahead(panel, 1, rows).notes
    assert "'x' is 19" in note.detail
    assert "far from 1 to 3 in training" in note.detail


def test_what_others_have_seen_is_new_only_to_series_that_learn_alone():
    past, future = [*[0.0] * 5, 0.0, 1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]
    assert not inputs_ahead(past, future, ids="ab").notes
    (note,) = inputs_ahead(past, future, ids="ab", alone=True).notes
    assert (note.series, note.action) == (0, NEW)
    (note,) = inputs_ahead(past, [0.0, 9.0, 0.0, 1.0], ids="ab").notes
    assert (note.series, note.action) == (0, FAR)


def test_notes_follow_their_series():
    past = [*[1.0, 2.0, 3.0, 2.0, 1.0] * 2, *[0.5] * 5]
    found = inputs_ahead(past, [1.0, 1.0, 99.0, 1.0, 0.5, 0.5], ids="abc")
    assert [note.series for note in found.notes] == [1]
    assert [note.series for note in found.select(np.array([2, 1])).notes] == [1]
    assert not found.select(np.array([0, 2])).notes


def test_ranges_are_saved():
    panel = Panel.from_frame(long_frame("a", n=5).assign(x=[1.0, 2, 3, 2, 1]), inputs=["x"])
    inputs = Exogenous.fit(panel, alone=True)
    assert Exogenous.from_json(inputs.to_json()) == inputs
    assert inputs.future_encoder.columns[0].span == (1.0, 3.0)


def test_a_saved_model_knows_the_ranges_of_all_it_was_trained_on(tmp_path):
    df = long_frame("ab", n=1500)
    df["x"] = np.where(df["ds"] < "2025-01-01", 9.0, 1.0) + np.arange(len(df)) % 2
    model = RBFDiffNet("D", preset="fast", lags=7).fit(df)
    model.save(tmp_path / "model")
    again = RBFDiffNet.load(tmp_path / "model")
    assert again.fitted_panel.panel.lengths.max() < 1500
    future = model.make_future_frame(1).assign(x=5.0)
    assert again.predict(1, future).equals(model.predict(1, future))
    assert not len(again.report_)
    again.predict(1, future.assign(x=99.0))
    assert again.report_["problem"].str.contains("far from 1 to 10").all()


def test_dates_of_notes_are_those_of_the_frame():
    rows = long_frame("a", n=5, freq="MS").assign(x=[1.0, 2.5, 3.0, 2.0, 1.5])
    panel = Panel.from_frame(rows, freq="MS", inputs=["x"])
    ahead = pd.DataFrame({"unique_id": "a", "ds": [pd.Timestamp("2024-07-01")], "x": [99.0]})
    (note,) = Exogenous.fit(panel).ahead(panel, 1, ahead).notes
    assert note.detail == "'x' is 99 on 2024-07-01, far from 1 to 3 in training"


def test_events_that_never_were_are_new():
    panel = Panel.from_frame(long_frame("ab", n=5), freq="D")
    fair = Event("fair", ["2024-01-31", "2024-02-05"])
    closed = Event("closed", ["2024-02-05"], lead=1)
    inputs = Exogenous.fit(panel, events=[fair, closed])
    assert inputs.calendar.new_events == closed.names
    assert Exogenous.from_json(inputs.to_json()) == inputs
    details = [note.detail for note in inputs.ahead(panel, 2, None).notes if note.series == 1]
    assert sorted(details) == [
        "'closed' is 1 on 2024-02-05, which was not there in training",
        "'closed-1' is 1 on 2024-02-04, which was not there in training",
    ]
    longer = panel.extend(Panel.from_frame(long_frame("ab", n=3, start="2024-02-04"), freq="D"))
    again = Event("closed", ["2024-02-05", "2024-02-08"])
    inputs = Exogenous.fit(panel, events=[again])
    assert inputs.calendar.new_events == ("closed",)
    assert not inputs.ahead(longer, 2, None).notes
