"""Unusual past values in reports."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.report import anomalies as module
from rbfdiffnet.report import report_of
from report_files import Report, frames, written


@pytest.fixture(scope="module")
def judged():
    """Frames, some values that are far off, and what was found."""
    history, forecasts, _ = frames(n_series=4, n_days=90)
    history.loc[[60, 150, 331], "y"] += [200.0, -80.0, 90.0]
    return history, forecasts, RBFDiffNet("D").detect_anomalies(history)


def test_anomalies_are_marked_counted_and_sorted(tmp_path, judged):
    history, forecasts, found = judged
    report = written(tmp_path, history, forecasts, anomalies=found)
    facts = report.facts["anomalies"]
    outside = found[found["anomaly"]]
    assert (facts["level"], facts["judged"], facts["series"]) == ("99", len(found), 4)
    assert facts["found"] == len(outside)
    marked = report.table("anomalies")
    assert marked["unique_id"].tolist() == outside["unique_id"].tolist()
    assert marked["ds"].tolist() == outside["ds"].tolist()
    ends = outside[["RBFDiffNet-lo-99", "RBFDiffNet-hi-99"]]
    np.testing.assert_allclose(marked[["low", "high"]], ends, rtol=2.0**-16)
    largest = outside.iloc[np.argsort(-outside["score"].abs(), kind="stable")]
    assert [report.facts["ids"][row[0]] for row in facts["rows"]] == largest["unique_id"].tolist()
    times = pd.to_datetime([row[1] for row in facts["rows"]], unit="ms")
    assert times.tolist() == largest["ds"].tolist()
    numbers = largest[["y", *ends.columns]].to_numpy()
    np.testing.assert_allclose([row[2:] for row in facts["rows"]], numbers, rtol=1e-5)
    assert set(history["ds"][[60, 150, 331]]) <= set(times)


def test_values_that_were_not_learned_from_are_marked(tmp_path):
    history, forecasts, _ = frames(n_series=2, n_days=120)
    history.loc[150, "y"] = 5000.0
    model = RBFDiffNet("D").fit(history)
    (problem,) = model.report_["problem"]
    assert problem == f"1 outlier, first {history['ds'][150]:%Y-%m-%d}"
    pd.testing.assert_frame_equal(model.outliers_, history.loc[[150]].reset_index(drop=True))
    marked = written(tmp_path, history, forecasts, outliers=model.outliers_).table("outliers")
    assert marked.to_numpy().tolist() == history.loc[[150], ["unique_id", "ds"]].to_numpy().tolist()
    assert not len(RBFDiffNet("D").fit(history.drop(index=150)).outliers_)


def test_polars_gives_the_same_and_no_frame_nothing(tmp_path, judged):
    history, forecasts, found = judged
    one = written(tmp_path, history, forecasts, anomalies=found).html
    given = [pl.from_pandas(frame) for frame in (history, forecasts, found)]
    assert written(tmp_path, *given[:2], anomalies=given[2]).html == one
    for nothing in (None, found[:0]):
        facts = written(tmp_path, history, forecasts, anomalies=nothing).facts
        assert facts["anomalies"] is None
        assert "anomalies/rows" not in facts["sections"]


def test_only_the_largest_are_listed_and_all_are_marked(tmp_path, judged, monkeypatch):
    history, forecasts, found = judged
    monkeypatch.setattr(module, "_MOST_ROWS", 2)
    report = written(tmp_path, history, forecasts, anomalies=found)
    assert len(report.facts["anomalies"]["rows"]) == 2
    assert len(report.table("anomalies")) == found["anomaly"].sum() > 2


def test_of_many_series_those_shown_count(tmp_path, judged, monkeypatch):
    history, forecasts, found = judged
    monkeypatch.setattr("rbfdiffnet.report.data.MOST_SERIES", 2)
    report = written(tmp_path, history, forecasts, anomalies=found)
    shown = found[found["unique_id"].isin(report.facts["ids"])]
    facts = report.facts["anomalies"]
    assert (facts["series"], facts["judged"]) == (2, len(shown))
    assert facts["found"] == len(report.table("anomalies")) == shown["anomaly"].sum()


def test_frames_that_are_none_of_these_are_refused(tmp_path, judged):
    history, forecasts, found = judged
    for frame in (history, found.drop(columns="anomaly"), found.drop(columns="RBFDiffNet-lo-99")):
        with pytest.raises(ValueError, match="give what RBFDiffNet"):
            written(tmp_path, history, forecasts, anomalies=frame)
    with pytest.raises(ValueError, match="anomalies has a series 'x' that history does not"):
        written(tmp_path, history, forecasts, anomalies=found.assign(unique_id="x"))


def test_as_many_series_are_judged_as_are_soon_forecast():
    assert module.choose_judged(3, 144, []) == [0, 1, 2]
    many = module.choose_judged(5000, 2000, [4, 777])
    assert len(many) == module._MOST_FORECASTS // 400
    assert {4, 777} <= set(many)
    assert many == sorted(set(many))
    assert max(many) - min(many) > 4000
    assert module.choose_judged(5000, 2000, range(100)) == list(range(30))
    assert len(module.choose_judged(5000, 10, [])) == 1200
    assert module.choose_judged(1, 0, []) == [0]


def test_a_report_of_a_model_judges_the_past(tmp_path, monkeypatch):
    history, *_ = frames(n_series=3, n_days=80)
    history.loc[40, "y"] += 100.0
    named = history.rename(columns={"y": "score"})
    model = RBFDiffNet("D", preset="instant", errors="raise").fit(history)
    path = tmp_path / "r.html"
    report_of(model, path, history, 7, n_windows=1)
    facts = Report(path).facts["anomalies"]
    expected = RBFDiffNet("D").detect_anomalies(history, last=300)
    assert (facts["judged"], facts["found"]) == (len(expected), expected["anomaly"].sum())
    assert facts["rows"][0][2] == pytest.approx(history["y"][40])

    monkeypatch.setattr(module, "_MOST_FORECASTS", 80)
    report_of(model, path, history, 7, n_windows=1, ids=["item 1"])
    facts = Report(path).facts["anomalies"]
    assert (facts["series"], {row[0] for row in facts["rows"]} <= {1}) == (1, True)

    model = RBFDiffNet("D", preset="instant", target_col="score").fit(named)
    report_of(model, path, named, 7, n_windows=1)  # a result has a column "score" of its own
    assert Report(path).facts["anomalies"] is None
