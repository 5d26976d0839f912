"""``rbfdiffnet forecast --group``: groups of the series of a file."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from cli_files import fails, run
from panels import make_stores
from rbfdiffnet import RBFDiffNet
from report_files import Report

FAST = ("--preset", "instant", "--horizon", 3)


@pytest.fixture
def files(tmp_path):
    """The same series in a long file, without ids, and in a file with a row for each series."""
    df = make_stores(60)
    long, rows, wide = (tmp_path / f"{name}.csv" for name in ("long", "rows", "wide"))
    named = df.rename(columns={"ds": "date", "y": "sales"})
    named.drop(columns="unique_id").to_csv(long, index=False)
    table = df.pivot(index=["unique_id", "state", "store"], columns="ds", values="y")
    table.columns = [f"{day:%Y-%m-%d}" for day in table.columns]
    table.reset_index().to_csv(rows, index=False)
    df.pivot(index="ds", columns="unique_id", values="y").to_csv(wide)
    return long, rows, wide


def expected(df, groups, h=3, **parameters):
    model = RBFDiffNet("D", preset="instant", hierarchy=groups, **parameters)
    return model.forecast(df[["unique_id", "ds", "y", *groups]], h).round(6)


def test_groups_of_a_long_file(capsys, files):
    df = make_stores(60).assign(unique_id=lambda d: d["store"] + "/" + d["kind"])
    groups = ("--group", "state", "--group", "store")
    code, out, err = run(capsys, "forecast", files[0], *FAST, *groups, "--quiet")
    assert (code, err) == (0, "")
    found = pd.read_csv(io.StringIO(out), parse_dates=["ds"])
    pd.testing.assert_frame_equal(found.round(6), expected(df, ["state", "store"]), rtol=1e-6)


def test_groups_of_a_file_with_a_row_for_each_series(capsys, files):
    more = ("--group", "state", "--reconcile", "bottom_up")
    code, out, err = run(capsys, "forecast", files[1], *FAST, *more, "--quiet")
    assert (code, err) == (0, "")
    found = pd.read_csv(io.StringIO(out), parse_dates=["ds"]).round(6)
    in_order = make_stores(60).sort_values(["unique_id", "ds"])
    wanted = expected(in_order, ["state"], reconcile="bottom_up")
    pd.testing.assert_frame_equal(found, wanted, rtol=1e-6)


def test_what_was_forecast_is_said(capsys, files):
    code, out, _ = run(capsys, "forecast", files[1], *FAST, "--group", "state")
    assert code == 0
    assert "Forecast 13 series and groups in" in out
    assert "Not used: 'store'" in out


def test_the_report_shows_groups(capsys, files, tmp_path):
    path = tmp_path / "groups.html"
    more = ("--level", 80, "--group", "state", "--group", "store", "--report", path)
    code, out, err = run(capsys, "forecast", files[0], *FAST, *more)
    assert (code, err) == (0, "")
    assert f"Wrote {path}" in out
    report = Report(path)
    facts = report.facts
    assert facts["ids"][:2] == ["Total", "CA"]
    assert (facts["n_series"], facts["scores"]["series"]) == (18, 18)
    assert facts["tree"]["gap"] < 1e-12
    assert [row["name"] for row in facts["tree"]["rows"]][:3] == ["Total", "CA", "CA/CA_1"]
    assert all(row["before"] and row["after"] for row in facts["tree"]["rows"])
    assert facts["explained"]["series"] == list(range(18))
    assert facts["anomalies"]["series"] == 18
    df = make_stores(60).assign(unique_id=lambda d: d["store"] + "/" + d["kind"])
    wanted = expected(df, ["state", "store"]).set_index("unique_id").loc[facts["ids"]]
    found = report.table("forecasts")
    assert found["ds"].tolist() == wanted["ds"].tolist()
    np.testing.assert_allclose(found["RBFDiffNet"], wanted["RBFDiffNet"], rtol=2.0**-16)


def test_groups_are_evaluated(capsys, files, tmp_path):
    out, path = tmp_path / "folds.csv", tmp_path / "groups.html"
    more = ("--group", "state", "--rival-seconds", 0, "--out", out, "--report", path)
    code, said, err = run(capsys, "evaluate", files[1], *FAST, *more)
    assert (code, err) == (0, "")
    assert "RBFDiffNet-alone      13" in said
    df = make_stores(60).sort_values(["unique_id", "ds"])
    model = RBFDiffNet("D", preset="instant", hierarchy=["state"])
    wanted = model.cross_validation(df[["unique_id", "ds", "y", "state"]], 3, 3, alone=True)
    found = pd.read_csv(out).sort_values(["unique_id", "ds"])
    wanted = wanted.sort_values(["unique_id", "ds"])
    np.testing.assert_allclose(found["RBFDiffNet"], wanted["RBFDiffNet"])
    np.testing.assert_allclose(found["RBFDiffNet-alone"], wanted["RBFDiffNet-alone"])
    assert [row["name"] for row in Report(path).facts["tree"]["rows"]] == ["Total", "CA", "TX"]


@pytest.mark.slow
def test_rivals_forecast_groups_too(capsys, files):
    pytest.importorskip("statsforecast")
    more = ("--group", "state", "--windows", 1, "--rival-seconds", 1, "--json")
    code, out, _ = run(capsys, "evaluate", files[1], *FAST, *more)
    assert code == 0
    scores = {own["model"]: own["n_series"] for own in json.loads(out)["scores"]}
    assert scores["RBFDiffNet"] == scores["AutoETS"] == 13


@pytest.mark.parametrize("scope", [(), ("--scope", "local")])
def test_a_group_is_explained(capsys, files, scope):
    given = (files[1], "--horizon", 3, "--group", "state", *scope)
    code, out, _ = run(capsys, "explain", *given, "--id", "CA", "--step", 2, "--json")
    assert code == 0
    document = json.loads(out)
    assert document["unique_id"] == "CA"
    forecast = pd.read_csv(io.StringIO(run(capsys, "forecast", *given, "--quiet")[1]))
    second = forecast.loc[forecast["unique_id"] == "CA", "RBFDiffNet"].iloc[1]
    assert sum(row["contribution"] for row in document["terms"]) == pytest.approx(second)
    assert "there are 'Total', 'CA', 'TX'" in fails(capsys, "explain", *given)


def test_values_of_groups_are_judged_within_bounds(capsys, files, tmp_path):
    out = tmp_path / "anomalies.csv"
    more = ("--group", "state", "--last", 5, "--lower", 10, "--upper", 40, "--out", out)
    assert run(capsys, "anomalies", files[1], *more)[0] == 0
    df = make_stores(60).sort_values(["unique_id", "ds"])[["unique_id", "ds", "y", "state"]]
    model = RBFDiffNet("D", lower=10, upper=40, hierarchy=["state"])
    wanted = model.detect_anomalies(df, last=5)
    found = pd.read_csv(out, parse_dates=["ds"])
    assert found["unique_id"].unique().tolist()[:3] == ["Total", "CA", "TX"]
    pd.testing.assert_frame_equal(found, wanted, check_dtype=False)


def test_a_large_report_has_all_groups_and_some_series(capsys, files, tmp_path, monkeypatch):
    monkeypatch.setattr("rbfdiffnet.report.data.MOST_SERIES", 5)
    monkeypatch.setattr("rbfdiffnet.cli.output._MOST_FITTED", 5)
    path = tmp_path / "large.html"
    more = ("--group", "state", "--quiet", "--report", path)
    code, _, err = run(capsys, "forecast", files[0], *FAST, *more)
    assert (code, err) == (0, "")
    facts = Report(path).facts
    assert facts["ids"][:3] == ["Total", "CA", "TX"]
    assert (len(facts["ids"]), facts["n_series"], facts["tree"]["series"]) == (5, 13, 10)
    assert facts["tree"]["gap"] < 1e-12


def test_skipping_closed_days_keeps_groups(capsys, tmp_path):
    df = make_stores(60)
    df = df[(df["store"] != "CA_1") | (df["ds"].dt.dayofweek != 6)]
    path = tmp_path / "closed.csv"
    df.drop(columns=["state", "kind"]).to_csv(path, index=False)
    arguments = ("--preset", "instant", "--horizon", 7, "--group", "store", "--quiet")
    _, out, _ = run(capsys, "forecast", path, *arguments, "--skip-closed")
    rows = pd.read_csv(io.StringIO(out))["unique_id"].value_counts()
    assert (rows["food@CA_1"], rows["CA_1"], rows["Total"]) == (6, 7, 7)


def test_forecasts_add_up_where_closed_days_are_left_out(capsys, tmp_path):
    """Of one store on Sundays, of all on Mondays."""
    df = make_stores(60)
    weekday = df["ds"].dt.dayofweek
    df = df[((df["store"] != "CA_1") | (weekday != 6)) & (weekday != 0)]
    path, report = tmp_path / "closed.csv", tmp_path / "closed.html"
    df.drop(columns=["state", "kind"]).to_csv(path, index=False)
    arguments = ("--preset", "instant", "--horizon", 7, "--group", "store", "--quiet")
    code, *_ = run(capsys, "forecast", path, *arguments, "--skip-closed", "--report", report)
    assert code == 0
    assert Report(report).facts["tree"]["gap"] < 1e-12


@pytest.mark.parametrize(
    ("file", "arguments", "message"),
    [
        (0, ("--group", "region"), "no column 'region' (--group)"),
        (0, ("--group", "kind", "--plot", "x.png"), "--plot shows series, not groups"),
        (2, ("--group", "ds", "--layout", "wide"), "no row with a series and its groups"),
        (
            0,
            ("--group", "store", "--id-col", "kind", "--repeats", "sum"),
            "'CA_2' for series 'food'",
        ),
        (0, ("--group", "date"), "'2023-01-02' for series 'CA_1/food', but '2023-01-01' before"),
    ],
)
def test_groups_that_make_no_sense_are_refused(capsys, files, file, arguments, message):
    assert message in fails(capsys, "forecast", files[file], *FAST, *arguments)


def test_a_missing_group_is_named(capsys, files):
    text = files[0].read_text().splitlines()
    text[4] = text[4].replace("CA,", ",", 1)
    files[0].write_text("\n".join(text))
    said = fails(capsys, "forecast", files[0], *FAST, "--group", "state")
    assert "line 5, column 'state': the group is missing for series" in said


def test_groups_are_about_a_file(capsys):
    assert "--group is about a FILE" in fails(capsys, "forecast", *FAST, "--group", "state")


@pytest.mark.parametrize("command", ["forecast", "evaluate", "explain"])
def test_reconcile_is_about_groups(capsys, files, command):
    said = fails(capsys, command, files[0], *FAST, "--reconcile", "mint")
    assert "--reconcile is about groups; give --group" in said
