"""Explanations in reports."""

import math

import numpy as np
import pandas as pd
import pytest

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.datasets import daily_demand
from rbfdiffnet.evaluation import BASELINE, LAST
from rbfdiffnet.pretrained.exemplars import load_exemplars
from rbfdiffnet.report import packing, report_of
from report_files import Report, assert_close, demand_model, written


@pytest.fixture(scope="module")
def explained(tmp_path_factory):
    """A report of a fitted model, and the model's own forecasts and terms."""
    df, model = demand_model(3, 150)
    path = tmp_path_factory.mktemp("report") / "report.html"
    ids = ["item_003", "item_001"]
    report_of(model, path, df, 5, n_windows=2, level=[80], ids=ids, title="Demand")
    return Report(path), model.predict(5, level=[80]), model.explain(5, ids=ids)


def test_terms_add_up_to_the_forecasts(explained):
    report, forecasts, terms = explained
    facts = report.facts["explained"]
    ids, words = np.array(report.facts["ids"]), np.array(facts["words"])
    assert ids[facts["series"]].tolist() == ["item_001", "item_003"]
    rows = report.numbers("terms/rows")
    found = pd.DataFrame(
        {
            "unique_id": np.repeat(ids, rows),
            "ds": pd.to_datetime(report.numbers("axis")[report.numbers("terms/place")], unit="ms"),
            **{k: words[report.numbers(f"terms/{k}")] for k in ("part", "term", "nearest")},
            **{k: report.numbers(f"terms:{k}") for k in ("contribution", "value", "activation")},
        }
    )
    sums = found.groupby(["unique_id", "ds"])["contribution"].sum()
    expected = forecasts.set_index(["unique_id", "ds"])["RBFDiffNet"].reindex(sums.index)
    np.testing.assert_allclose(sums, expected, rtol=1e-4)
    keys = ["unique_id", "ds", "part", "term", "nearest"]
    both = found.merge(terms, on=keys, suffixes=("", "_given"))
    assert len(both) == len(found)
    for name in ("contribution", "value", "activation"):
        np.testing.assert_allclose(both[name], both[f"{name}_given"], rtol=1e-6)


def test_a_report_of_a_model_has_everything(explained):
    report, forecasts, _ = explained
    facts = report.facts
    assert facts["title"] == "Demand"
    assert_close(report.table("forecasts"), forecasts, forecasts.columns[2:])
    assert [m["name"] for m in facts["scores"]["models"]] == ["RBFDiffNet", BASELINE, LAST]
    assert [n["id"] for n in facts["notes"] if n["fallback"]] == ["new"]
    assert set(facts["explained"]["equations"]) == {"0", "2"}
    order, name, value = facts["explained"]["equations"]["0"][0]
    assert order in (0, 1)
    assert name == "" or name.startswith("lag ")
    assert math.isfinite(value)
    assert "1 of 4 series was not backtested" in " ".join(facts["verdict"]["more"])


def test_explanations_that_do_not_fit_are_left_out_and_counted(tmp_path, explained, monkeypatch):
    report, _, terms = explained
    history = daily_demand(n_series=3, n_days=150)
    forecasts = terms[["unique_id", "ds"]].drop_duplicates().assign(RBFDiffNet=1.0)
    monkeypatch.setattr(packing, "_MOST_ROWS", report.numbers("terms/rows").sum() - 1)
    facts = written(tmp_path, history, forecasts, explanations={"terms": terms}).facts["explained"]
    assert (len(facts["series"]), facts["left_out"]) == (1, 1)


def test_members_of_a_stack_are_terms_too(tmp_path):
    history = pd.DataFrame({"unique_id": "a", "ds": range(3), "y": 1.0})
    forecasts = pd.DataFrame({"unique_id": "a", "ds": [3], "RBFDiffNet": [2.0]})
    terms = pd.DataFrame(
        {
            **{"unique_id": "a", "ds": 3, "part": "member", "term": ["damped trend", "direct"]},
            **{"value": [1.0, 3.0], "weight": 0.5, "activation": np.nan},
            **{"contribution": [0.5, 1.5], "nearest": ""},
        }
    )
    report = written(tmp_path, history, forecasts, explanations={"terms": terms})
    assert report.numbers("terms:contribution").tolist() == [0.5, 1.5]
    assert np.isnan(report.numbers("terms:activation")).all()


def test_terms_of_other_dates_are_left_out(tmp_path, explained):
    _, forecasts, terms = explained
    history = daily_demand(n_series=3, n_days=150)
    first = forecasts[forecasts["ds"] == forecasts["ds"].min()]
    first = first[first["unique_id"] != "new"]
    report = written(tmp_path, history, first, explanations={"terms": terms})
    times = report.numbers("axis")[report.numbers("terms/place")]
    assert set(pd.to_datetime(times, unit="ms")) == set(first["ds"])


def test_exemplars_of_the_pretrained_network_are_drawn(tmp_path):
    df, h = daily_demand(n_series=2, n_days=150).drop(columns="promotion"), 5
    model = RBFDiffNet(freq="D", preset="instant").fit(df)
    terms = model.explain(h)
    report = written(tmp_path, df, model.predict(h), explanations={"terms": terms})
    words = np.array(report.facts["explained"]["words"])
    part, term = (words[report.numbers(f"terms/{name}")] for name in ("part", "term"))
    weight, gate = (report.numbers(f"terms:{name}") for name in ("weight", "activation"))
    place, drawn = report.numbers("terms/place"), part == "exemplar"
    assert drawn.sum() == 2 * h * 3  # three of every forecast, the most active ones
    given = terms[terms["part"] == "exemplar"]
    shown = given[given["term"].isin(term[drawn])]
    named = ~given["term"].str.contains("other")
    most = given[named].groupby(["unique_id", "ds"])["activation"].nlargest(3)
    np.testing.assert_allclose(np.sort(gate[drawn]), np.sort(most), rtol=1e-6)
    assert set(shown["term"]) == set(report.facts["explained"]["pictures"])
    for name, values in report.facts["explained"]["pictures"].items():
        own = next(one.values for one in load_exemplars() if one.name == name)
        known = [np.nan if value is None else value for value in values]
        np.testing.assert_allclose(known, own, atol=6e-4)
    # Responses of the first and of the last forecast.
    response = part == "response"
    assert set(np.unique(place[response])) == {place.min(), place.max()}
    ends = terms["ds"].isin([terms["ds"].min(), terms["ds"].max()])
    expected = terms.loc[ends & (terms["part"] == "response"), "weight"]
    np.testing.assert_allclose(np.sort(weight[response]), np.sort(expected), rtol=1e-6)
