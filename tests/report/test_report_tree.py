"""Hierarchies in reports."""

import numpy as np
import pytest

from panels import make_stores, to_polars
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.report import report_of, tree
from report_files import Report

FOLDS = {"n_windows": 2, "level": [80]}


def reported(tmp_path, df, spec, **options):
    """A model, and the report of it."""
    keep = {name for part in spec for name in ([part] if isinstance(part, str) else part)}
    df = df[["unique_id", "ds", "y", *sorted(keep)]]
    model = RBFDiffNet("D", preset="instant", hierarchy=spec, **options).fit(df)
    path = tmp_path / "tree.html"
    report_of(model, path, df, 5, **FOLDS)
    return df, model, Report(path)


def test_groups_are_series_of_their_own_and_a_tree(tmp_path):
    df, model, report = reported(tmp_path, make_stores(60), ["state", "store"])
    facts = report.facts
    assert facts["ids"] == model.hierarchy_["unique_id"].tolist()
    assert facts["ids"][0] == "Total"
    history = report.table("history")
    sums = df.groupby("ds")["y"].sum().to_numpy()
    total = history.loc[history["unique_id"] == "Total", "y"]
    np.testing.assert_allclose(total, sums, rtol=2.0**-16)

    found = facts["tree"]
    assert (found["groups"], found["series"]) == (8, 10)
    assert found["gap"] < 1e-12
    rows = [(row["name"], row["depth"], row["level"], row["size"]) for row in found["rows"]]
    assert rows == [
        ("Total", 0, "Total", 10),
        ("CA", 1, "state", 4),
        ("CA/CA_1", 2, "state/store", 2),
        ("CA/CA_2", 2, "state/store", 2),
        ("TX", 1, "state", 6),
        ("TX/TX_1", 2, "state/store", 2),
        ("TX/TX_2", 2, "state/store", 2),
        ("TX/TX_3", 2, "state/store", 2),
    ]
    totals = model.predict(5).groupby("unique_id")["RBFDiffNet"].sum()
    for row in found["rows"]:
        assert row["total"] == pytest.approx(totals[row["name"]], rel=1e-5)


def test_errors_before_and_after_are_those_of_backtests(tmp_path):
    df, model, report = reported(tmp_path, make_stores(60), ["state", "store"])
    facts = report.facts
    alone = RBFDiffNet("D", preset="instant", hierarchy=["state", "store"], reconcile="none")
    one_by_one = alone.cross_validation(df, 5, **FOLDS)
    together = model.cross_validation(df, 5, **FOLDS, alone=True)
    np.testing.assert_allclose(together["RBFDiffNet-alone"], one_by_one["RBFDiffNet"], rtol=1e-12)
    columns = ["RBFDiffNet-alone", "RBFDiffNet"]
    errors = together[columns].sub(together["y"], axis=0).abs()
    mae = errors.groupby(together["unique_id"]).mean().loc[facts["ids"]]
    packed = [report.numbers(f"mae/{name}") for name in columns]
    np.testing.assert_allclose(np.stack(packed, axis=1), mae, rtol=1e-4)
    mase = np.stack([report.numbers(f"mase/{name}") for name in columns], axis=1)
    found = facts["tree"]
    for row in found["rows"]:
        expected = mase[facts["ids"].index(row["name"])]
        assert [row["before"], row["after"]] == pytest.approx(expected, rel=1e-4)
    below = mase[found["groups"] :].mean(axis=0)
    assert [found["before"], found["after"]] == pytest.approx(below, rel=1e-4)


def test_forecasts_that_do_not_add_up_are_said_to(tmp_path):
    _, model, report = reported(tmp_path, make_stores(60), ["state"], reconcile="none")
    found = model.predict(5).pivot(index="unique_id", columns="ds", values="RBFDiffNet")
    series = found.drop(index=["Total", "CA", "TX"])
    state = series.index.str.split("@").str[1].str[:2]
    gaps = [abs(found.loc["Total"] / series.sum() - 1).max()]
    gaps += [abs(found.loc[name] / series[state == name].sum() - 1).max() for name in ("CA", "TX")]
    facts = report.facts
    assert facts["tree"]["gap"] == pytest.approx(max(gaps), rel=1e-5)
    assert {row["before"] for row in facts["tree"]["rows"]} == {None}
    assert facts["tree"]["before"] is None
    assert facts["tree"]["after"] > 0.0
    assert [one["name"] for one in facts["scores"]["models"]][:2] == ["RBFDiffNet", "SeasonalNaive"]


def test_groups_that_cross_have_one_place_each(tmp_path):
    spec = [["state"], ["kind"], ["state", "kind"]]
    *_, report = reported(tmp_path, make_stores(60), spec)
    rows = [(row["name"], row["depth"]) for row in report.facts["tree"]["rows"]]
    assert rows[0] == ("Total", 0)
    assert sorted(name for name, _ in rows) == sorted(
        ["Total", "CA", "TX", "food", "toys", "CA/food", "CA/toys", "TX/food", "TX/toys"]
    )
    assert rows.index(("CA/food", 2)) == rows.index(("CA", 1)) + 1  # CA is smaller than food


def test_of_many_groups_the_first_are_in_the_tree(tmp_path, monkeypatch):
    monkeypatch.setattr(tree, "MOST_GROUPS", 3)
    *_, report = reported(tmp_path, make_stores(60), ["state", "store"])
    found = report.facts["tree"]
    assert [row["name"] for row in found["rows"]] == ["Total", "CA", "TX"]
    assert found["groups"] == 8


def test_polars_gives_the_same_report(tmp_path):
    df, _, report = reported(tmp_path, make_stores(60), ["state"])
    again = RBFDiffNet("D", preset="instant", hierarchy=["state"]).fit(to_polars(df))
    report_of(again, tmp_path / "polars.html", to_polars(df), 5, **FOLDS)
    assert Report(tmp_path / "polars.html").facts == report.facts


def test_alone_is_about_a_hierarchy():
    with pytest.raises(ValueError, match="alone is for a hierarchy: name its columns"):
        RBFDiffNet("D", preset="instant").cross_validation(make_stores(60), 5, alone=True)
