import json
import re
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cli_files import fails, panel, run
from rbfdiffnet.cli.evaluate import MethodScores, _describe_intervals, choose_rivals
from rbfdiffnet.cli.folds import describe_quantiles
from rbfdiffnet.evaluation.metrics import evaluate_quantiles
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.support.text import format_percent
from report_files import Report

LOCAL = ("--scope", "local", "--rival-seconds", 0)


@pytest.fixture
def file(tmp_path):
    panel().to_csv(tmp_path / "long.csv", index=False)
    return tmp_path / "long.csv"


def test_table_and_sentences(capsys, file, tmp_path):
    out = tmp_path / "folds.csv"
    arguments = ("evaluate", file, "--horizon", 4, "--windows", 2, "--level", 80, "--out", out)
    code, said, err = run(capsys, *arguments, *LOCAL)
    assert (code, err) == (0, "")
    assert "Backtest: 2 windows, 2024-02-22 to 2024-02-29" in said
    assert "Intervals; WQL is the weighted quantile loss of 10, 50 and 90 %\n" in said
    assert "RBFDiffNet won against SeasonalNaive: its MASE" in said
    assert pd.read_csv(out).groupby(["unique_id", "cutoff"]).size().tolist() == [4] * 6


def test_json(capsys, file):
    code, out, _ = run(capsys, "evaluate", file, "--horizon", 4, *LOCAL, "--json")
    document = json.loads(out)
    assert code == 0
    assert [s["model"] for s in document["scores"]] == ["RBFDiffNet", "SeasonalNaive", "LastValue"]
    assert document["n_windows"] == 3
    assert len(document["verdicts"]) == 2


def test_intervals_are_scored_as_in_python(capsys, file, tmp_path):
    out = tmp_path / "folds.csv"
    levels = (50, 80, 99.5)
    command = ("evaluate", file, "--horizon", 6, *LOCAL, "--level", *levels, "--out", out)
    document = json.loads(run(capsys, *command, "--json")[1])
    ours, naive, _ = document["scores"]
    folds = pd.read_csv(out, parse_dates=["ds", "cutoff"])
    total, by_step = (evaluate_quantiles(folds, by=by) for by in (None, "horizon"))
    assert ours["quantiles"] == [0.25, 10, 25, 50, 75, 90, 99.75]
    assert ours["wql"] == pytest.approx(total["wql"].item())
    for level in map("{:g}".format, levels):
        assert ours["winkler"][level] == pytest.approx(total[f"winkler-{level}"].item())
        shares = (100 * by_step[f"coverage-{level}"]).tolist()
        assert ours["coverage_by_step"][level] == pytest.approx(shares)
    below = {f"{q:g}": 100 * total[f"below-{q:g}"].item() for q in ours["quantiles"]}
    assert ours["below"] == pytest.approx(below)
    keys = ("wql", "winkler", "quantiles", "below")
    assert [naive[key] for key in keys] == [None, {}, [], {}]
    markdown = run(capsys, *command, "--markdown")[1]
    assert "| quantile, % | values at or below, % |" in markdown
    assert f"| 99.75 | {below['99.75']:.4g}" in markdown

    said = run(capsys, *command)[1].splitlines()
    (start,) = (i for i, line in enumerate(said) if line.endswith("interval  inside  Winkler"))
    table = said[start:]
    assert [line.split()[-5] for line in table[1:4]] == ["50", "80", "99.5"]
    assert not any(line != line.rstrip() for line in said)


def test_quantiles_are_scored_as_in_python(capsys, file, tmp_path):
    out, report = tmp_path / "folds.csv", tmp_path / "r.html"
    command = ("evaluate", file, "--horizon", 6, *LOCAL, "--quantiles", 0.1, 0.9, "--out", out)
    document = json.loads(run(capsys, *command, "--json", "--report", report)[1])
    folds = pd.read_csv(out, parse_dates=["ds", "cutoff"])
    total = evaluate_quantiles(folds)
    held = {str(q): 100 * total[f"below-{q}"].item() for q in (10, 90)}
    assert document["quantiles_held"] == pytest.approx(held)
    assert document["scores"][0]["wql"] == pytest.approx(total["wql"].item())
    sentence = describe_quantiles(held)[0]
    assert sentence in document["verdict"]["more"]
    assert sentence in " ".join(report_of(report)["verdict"]["more"])
    assert sentence in run(capsys, *command)[1]


def test_quantile_losses_are_shown_beside_each_other_only_if_of_the_same_quantiles():
    scores = MethodScores("A", 3, 1.0, 1.0, 1.0, 0.0, {"80": 80.0}, winkler={"80": 2.0}, wql=0.5)
    methods = [replace(scores, quantiles=[10, 50, 90]), replace(scores, quantiles=[10, 90])]
    lines = _describe_intervals(methods)[1].splitlines()
    assert [line.split()[1] for line in lines] == ["WQL", "0.5000", "-"]


def test_tables_are_at_most_100_wide():
    levels = dict.fromkeys(["50", "60", "70", "80", "90", "99.5"], 1234567.891)
    long = MethodScores(
        "RBFDiffNet on those of AutoARIMA", 30_490, -1234567.8, -1234567.8, -1234567.8, -1234567.8,
        coverage=levels, winkler=levels, wql=1234.5678, quantiles=[0.25, 10, 50, 90, 99.75],
    )  # fmt: skip
    lines = "\n".join(_describe_intervals([long])).splitlines()
    assert len(lines) == 8
    assert max(map(len, lines)) <= 100


def test_intervals_that_are_far_off_are_said_to_be(capsys, tmp_path):
    """Calm for a long time, then wild: the intervals cannot know."""
    rng = np.random.default_rng(0)
    days = pd.date_range("2023-01-01", periods=200)
    spread = np.where(np.arange(200) < 170, 1.0, 12.0)
    parts = [
        pd.DataFrame({"unique_id": f"s{i}", "ds": days, "y": 50 + spread * rng.normal(size=200)})
        for i in range(8)
    ]
    pd.concat(parts).to_csv(tmp_path / "a.csv", index=False)
    command = ("evaluate", tmp_path / "a.csv", "--horizon", 10, "--level", 80, *LOCAL)
    document = json.loads(run(capsys, *command, "--windows", 1, "--json")[1])
    (sentence,) = document["interval_verdicts"]
    share = document["scores"][0]["coverage"]["80"]
    told = f"RBFDiffNet's 80 % intervals held {format_percent(share / 100)} of the values: too"
    assert sentence.startswith(told)
    assert sentence in run(capsys, *command, "--windows", 1)[1].splitlines()


def test_room_for_windows(capsys, file):
    arguments = ("evaluate", file, "--horizon", 20, "--windows", 5, *LOCAL)
    code, out, err = run(capsys, *arguments)
    assert code == 0
    assert "there is room for 2 of 5 windows" in err
    assert "Backtest: 2 windows" in out
    assert "no series is long enough" in fails(capsys, "evaluate", file, "--horizon", 55, *LOCAL)


def test_rivals_get_a_spread_of_series_that_depends_on_sizes_alone():
    pytest.importorskip("statsforecast")
    whole = Panel.from_frame(panel(30, 40), freq="D")
    ets, arima = choose_rivals(whole, 5, 2, 7, seconds=1.0)
    assert (ets.name, arima.name) == ("AutoETS", "AutoARIMA")
    assert len(ets.series) == 30
    assert 1 <= len(arima.series) < 30
    assert arima.series[0] == 0
    assert choose_rivals(whole, 5, 2, 7, seconds=1.0)[1] == arima
    assert choose_rivals(whole, 20, 2, 7, seconds=1.0) == []


def test_without_statsforecast_there_are_no_rivals(monkeypatch):
    monkeypatch.setattr("rbfdiffnet.cli.evaluate.find_spec", lambda _: None)
    assert choose_rivals(Panel.from_frame(panel(), freq="D"), 2, 1, 7, seconds=60.0) == []


@pytest.mark.slow
def test_rivals_are_scored_on_the_same_series(capsys, file):
    pytest.importorskip("statsforecast")
    arguments = ("evaluate", file, "--horizon", 4, "--windows", 1, "--scope", "local")
    code, out, _ = run(capsys, *arguments, "--rival-seconds", 0.5, "--level", 80, "--json")
    document = json.loads(out)
    assert code == 0
    scores = {s["model"]: s for s in document["scores"]}
    assert scores["AutoETS"]["n_series"] == 3
    assert 0 <= scores["AutoETS"]["coverage"]["80"] <= 100
    few = scores["AutoARIMA"]["n_series"]
    assert few < 3
    ours = document["pairs"][-1][0]
    assert (ours["model"], ours["n_series"]) == ("RBFDiffNet on those of AutoARIMA", few)
    assert sys.modules["statsforecast"]


def report_of(path):
    return Report(path).facts


def test_the_report_has_the_numbers_of_the_terminal(capsys, tmp_path):
    """Shops without Sundays, of which one has 15 % of its other days missing, too."""
    frame = panel(3, 120)
    frame = frame[frame["ds"].dt.day_of_week != 6]
    lost = frame[frame["unique_id"] == "s1"].sample(frac=0.15, random_state=0).index
    frame.drop(lost).to_csv(tmp_path / "shops.csv", index=False)
    path = tmp_path / "r.html"
    code, out, err = run(
        capsys, "evaluate", tmp_path / "shops.csv", "--horizon", 9, *LOCAL, "--level", 80,
        "--report", path, "--json",
    )  # fmt: skip
    assert code == 0
    assert "no values on Sundays" in err
    facts = report_of(path)
    assert "3 of 3 series never have a value on Sundays" in " ".join(facts["verdict"]["more"])
    for said, written in zip(json.loads(out)["scores"], facts["scores"]["models"], strict=True):
        assert said["model"] == written["name"]
        for mine, theirs in (("mase", "MASE"), ("rmsse", "RMSSE"), ("mae", "MAE")):
            assert said[mine] == pytest.approx(written[theirs], rel=1e-5)
    inside = json.loads(out)["scores"][0]["coverage"]["80"] / 100
    written = facts["scores"]["models"][0]
    assert inside == pytest.approx(written["coverage"]["80"], rel=1e-5)
    assert json.loads(out)["scores"][0]["wql"] == pytest.approx(written["WQL"], rel=1e-5)
    assert len(facts["explained"]["series"]) == 3


def test_the_report_of_a_panel_is_backtested_and_explained_also_quietly(capsys, file, tmp_path):
    path = tmp_path / "r.html"
    arguments = ("forecast", file, "--horizon", 4, "--scope", "local", "--report", path)
    assert run(capsys, *arguments)[0] == 0
    loud = path.read_text(encoding="utf-8")
    assert run(capsys, *arguments, "--quiet")[0] == 0
    assert path.read_text(encoding="utf-8") == loud
    facts = report_of(path)
    assert facts["scores"]["windows"] == 3
    assert facts["explained"]["series"] == [0, 1, 2]


def test_a_large_panel_is_sampled_and_the_report_says_so(capsys, file, tmp_path, monkeypatch):
    monkeypatch.setattr("rbfdiffnet.cli.evaluate._SAMPLE", 2)
    monkeypatch.setattr("rbfdiffnet.cli.output._EXPLAINED", 1)
    monkeypatch.setattr("rbfdiffnet.cli.output._EXTREMES", 1)
    path = tmp_path / "r.html"
    code, *_ = run(capsys, "forecast", file, "--horizon", 4, "--scope", "local", "--report", path)
    facts = report_of(path)
    assert code == 0
    assert facts["scores"]["series"] == 2
    assert "The backtest is of 2 of 3 series, evenly spread." in facts["verdict"]["more"]
    assert facts["explained"]["series"] == [0, 2]
    assert facts["anomalies"]["series"] == 3


def test_intervals_that_held_little_are_noted(capsys, tmp_path):
    """All series become ten times as noisy in the window."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(40, 60)) * np.where(np.arange(60) < 53, 1.0, 10.0)
    df = panel(40).assign(y=20.0 + noise.ravel())
    df.to_csv(tmp_path / "loud.csv", index=False)
    arguments = ("--horizon", 7, "--windows", 1, "--level", 80, "--rival-seconds", 0)
    more = ("--preset", "instant", "--report", tmp_path / "loud.html")
    code, _, err = run(capsys, "evaluate", tmp_path / "loud.csv", *arguments, *more)
    assert code == 0
    assert re.search(r"series 's\d+': the 80 % intervals of 40 series held [\d.]+ % of", err)
    said = " ".join(report_of(tmp_path / "loud.html")["verdict"]["more"])
    assert "they are too narrow" in said
    assert "of 40 series" not in said  # not the same once more


def test_as_many_series_are_judged_as_there_is_time_for(capsys, file, tmp_path, monkeypatch):
    monkeypatch.setattr("rbfdiffnet.report.anomalies._MOST_FORECASTS", 130)
    path = tmp_path / "r.html"
    arguments = ("--horizon", 4, "--windows", 1, "--rival-seconds", 0, "--preset", "instant")
    run(capsys, "evaluate", file, *arguments, "--report", path)
    facts = report_of(path)
    assert facts["anomalies"]["series"] == 2  # of 60 values each
    assert facts["anomalies"]["level"] == "99"


def test_the_report_lists_what_happened_to_its_forecasts(capsys, tmp_path):
    """A series with room for its forecast, but not for windows before it."""
    frame = panel(2, 60)
    frame = frame[
        (frame["unique_id"] == "s0") | (frame["ds"] >= frame["ds"].max() - pd.Timedelta(days=14))
    ]
    frame.to_csv(tmp_path / "a.csv", index=False)
    path = tmp_path / "r.html"
    run(capsys, "evaluate", tmp_path / "a.csv", "--horizon", 5, *LOCAL, "--report", path)
    run(capsys, "forecast", tmp_path / "a.csv", "--horizon", 5, *LOCAL[:2], "--report",
        tmp_path / "f.html")  # fmt: skip
    assert report_of(path)["notes"] == report_of(tmp_path / "f.html")["notes"]


def test_inputs_that_are_not_known_ahead_are_found_before_the_work(capsys, tmp_path):
    panel().assign(promo=1).to_csv(tmp_path / "a.csv", index=False)
    arguments = ("evaluate", tmp_path / "a.csv", "--horizon", 4, *LOCAL, "--exog", "promo")
    error = fails(capsys, *arguments, "--report", tmp_path / "r.html")
    assert "promo) must be known 4 steps ahead" in error
    assert run(capsys, *arguments)[0] == 0


def test_ids_with_line_ends_stay_on_their_lines(capsys, tmp_path):
    frame = panel(2, 30).replace({"unique_id": {"s0": "a\nb"}})
    frame.to_csv(tmp_path / "a.csv", index=False)
    code, out, _ = run(capsys, "forecast", tmp_path / "a.csv", "--horizon", 2, *LOCAL[:2])
    assert code == 0
    assert "\na b " in out


@pytest.mark.parametrize("layout", ["long", "wide"])
def test_panels_are_scored_in_parts_with_the_same_result(capsys, tmp_path, monkeypatch, layout):
    pytest.importorskip("statsforecast")
    frame = panel(5, 60)
    if layout == "wide":
        frame = frame.pivot(index="ds", columns="unique_id", values="y").reset_index()
    frame.to_csv(tmp_path / "a.csv", index=False)
    command = ("evaluate", tmp_path / "a.csv", "--horizon", 4, "--windows", 1, "--scope", "local")
    documents = []
    for part, seconds in ((2000, 0), (3, 0), (3, 1)):
        monkeypatch.setattr("rbfdiffnet.cli.evaluate._CHUNK", part)
        code, out, _ = run(capsys, *command, "--rival-seconds", seconds, "--json")
        assert code == 0
        documents.append(json.loads(out))
    for document in documents[1:]:
        for one, other in zip(documents[0]["scores"], document["scores"], strict=False):
            for key in ("n_series", "mase", "rmsse", "mae", "bias"):
                assert one[key] == pytest.approx(other[key])
    assert [s["model"] for s in documents[2]["scores"][3:]] == ["AutoETS", "AutoARIMA"]
    assert all(s["n_series"] <= 3 for s in documents[2]["scores"][3:])


def test_methods_that_are_not_installed_are_named(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("rbfdiffnet.cli.evaluate.find_spec", lambda _: None)
    panel(1).to_csv(tmp_path / "a.csv", index=False)
    told = ("evaluate", tmp_path / "a.csv", "--horizon", 3, "--preset", "fast")
    assert "AutoETS and AutoARIMA: pip install statsforecast" in run(capsys, *told)[1]
    assert "statsforecast" not in run(capsys, *told, "--rival-seconds", 0)[1]
