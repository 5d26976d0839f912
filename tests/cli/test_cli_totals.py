"""Totals from the command line: how far off they were, and a report that shows them."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from cli_files import days, fails, panel, run
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.cli.folds import describe_quantiles, judge_totals
from report_files import Report

GIVEN = ("--horizon", 14, "--preset", "instant", "--quiet")


@pytest.fixture
def shops(tmp_path):
    """Two series of which one has no Sundays."""
    frame = panel(2, 100)
    frame = frame[(frame["unique_id"] == "s0") | (frame["ds"].dt.day_of_week != 6)]
    frame.to_csv(tmp_path / "shops.csv", index=False)
    return tmp_path / "shops.csv"


def brute_force(frame, totals):
    """Errors and sizes of all whole totals, added up one by one."""
    folds = RBFDiffNet("D", preset="instant", season_length=7).cross_validation(frame, 14, 3)
    errors, sizes = [], []
    for (name, _), window in folds.groupby(["unique_id", "cutoff"]):
        found = {}
        for k, row in enumerate(window.itertuples(index=False)):
            key = row.ds.to_period("W") if totals == "W" else k // totals
            found.setdefault(key, []).append(row)
        for rows in found.values():
            known = [row for row in rows if np.isfinite(row.y)]
            if len(known) == (7 if name == "s0" else 6):
                errors.append(abs(sum(row.RBFDiffNet - row.y for row in known)))
                sizes.append(sum(row.y for row in known))
    return np.mean(errors), 100 * np.sum(errors) / np.sum(sizes)


@pytest.mark.parametrize("totals", ["W", 7])
def test_the_error_is_that_of_totals(capsys, shops, totals):
    given = ("forecast", shops, *GIVEN, "--totals", totals)
    document = json.loads(run(capsys, *given, "--json")[1])
    frame = pd.read_csv(shops, parse_dates=["ds"])
    expected = dict(zip(("absolute", "percent"), brute_force(frame, totals), strict=True))
    assert document["expected_error_of_totals"] == pytest.approx(expected, rel=1e-9)
    single = document["expected_error"]["absolute"]
    said = f"Expect a total to be off by {expected['absolute']:.3g}"
    _, text, _ = run(capsys, *given, "--markdown")
    assert said in text
    assert f"Expect a single forecast to be off by {single:.3g}" in text
    assert "Expect a forecast" not in text


def test_windows_without_a_whole_total_are_said(capsys, shops):
    given = ("forecast", shops, *GIVEN, "--totals", "W", "--horizon", 8)
    document = json.loads(run(capsys, *given, "--json")[1])
    assert "expected_error_of_totals" not in document
    assert "How far off totals are is not known" in document["verdict"]["more"][0]


def test_steps_that_are_numbers_have_totals():
    folds = pd.DataFrame(
        {"unique_id": "a", "ds": range(6), "cutoff": -1, "y": 2.0, "RBFDiffNet": 3}
    )
    forecast = pd.DataFrame({"unique_id": ["a", "a"], "steps": [4, 1]})
    assert judge_totals(folds, forecast, 4).absolute == 4.0  # of four steps; two are no whole total
    assert judge_totals(folds.assign(y=0.0), forecast, 4).percent is None
    assert judge_totals(folds, forecast.assign(steps=9), 9) is None


def test_a_report_has_totals_and_forecasts(capsys, shops, tmp_path):
    path, out = tmp_path / "order.html", tmp_path / "order.csv"
    given = ("forecast", shops, *GIVEN, "--lower", 0, "--quantiles", 0.8, "--totals", "W")
    code, _, err = run(capsys, *given, "--report", path, "--out", out)
    assert (code, err) == (0, "")
    report, sums = Report(path), pd.read_csv(out)
    days_ahead = report.table("forecasts")
    assert len(days_ahead) == 28
    table = re.search(r'<section id="totals"[^>]*>(.*?)</section>', report.html, re.DOTALL).group(1)
    head, *rows = (re.findall(r"<t[hd][^>]*>(.*?)</t", row) for row in table.split("<tr>")[1:])
    assert head == ["Series", "From", "steps", "RBFDiffNet", "RBFDiffNet-q-80"]
    assert [row[:3] for row in rows] == sums.iloc[:, :3].astype(str).to_numpy().tolist()
    assert [float(row[3]) for row in rows] == pytest.approx(sums["RBFDiffNet"].tolist(), rel=1e-3)
    said = " ".join(report.facts["verdict"]["more"])
    assert "Expect a total to be off by" in said
    assert "lay at or below the 80 % quantile." in said
    assert "--plot draws no totals" in fails(capsys, *given, "--plot", tmp_path / "a.png")


def test_the_document_says_what_quantiles_held(capsys, tmp_path):
    days(120).to_csv(tmp_path / "a.csv", index=False)
    given = ("forecast", tmp_path / "a.csv", *GIVEN, "--quantiles", 0.1, 0.8, "--json")
    document = json.loads(run(capsys, *given)[1])
    model = RBFDiffNet("D", preset="instant", season_length=7)
    frame = pd.read_csv(tmp_path / "a.csv", parse_dates=["ds"]).assign(unique_id="series")
    folds = model.cross_validation(frame, 14, 3, quantiles=[0.1, 0.8])
    held = {q: 100 * float((folds["y"] <= folds[f"RBFDiffNet-q-{q}"]).mean()) for q in ("10", "80")}
    assert document["quantiles_held"] == pytest.approx(held)
    assert document["verdict"]["more"][-1] == describe_quantiles(held)[0]
    assert describe_quantiles({"10": 9.2, "80": 77.6}) == [
        "Step by step, 9 % of the values of the backtest lay at or below the 10 % quantile, "
        "78 % at or below the 80 % quantile."
    ]
