import json
import sys

import pandas as pd
import pytest

from cli_files import fails, panel, run
from rbfdiffnet.cli.rivals import rivals
from rbfdiffnet.panel import Panel

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
    assert "in 80 %" in said
    assert "RBFDiffNet won against SeasonalNaive: its MASE" in said
    assert pd.read_csv(out).groupby(["unique_id", "cutoff"]).size().tolist() == [4] * 6


def test_json(capsys, file):
    code, out, _ = run(capsys, "evaluate", file, "--horizon", 4, *LOCAL, "--json")
    document = json.loads(out)
    assert code == 0
    assert [s["model"] for s in document["scores"]] == ["RBFDiffNet", "SeasonalNaive"]
    assert document["n_windows"] == 3
    assert len(document["verdicts"]) == 1


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
    ets, arima = rivals(whole, 5, 2, 7, limit=1.0)
    assert (ets.name, arima.name) == ("AutoETS", "AutoARIMA")
    assert len(ets.series) == 30
    assert 1 <= len(arima.series) < 30
    assert arima.series[0] == 0
    assert rivals(whole, 5, 2, 7, limit=1.0)[1] == arima
    assert rivals(whole, 20, 2, 7, limit=1.0) == []


def test_without_statsforecast_there_are_no_rivals(monkeypatch):
    monkeypatch.setattr("rbfdiffnet.cli.rivals.find_spec", lambda _: None)
    assert rivals(Panel.from_frame(panel(), freq="D"), 2, 1, 7, limit=60.0) == []


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
    ours = document["pairs"][2][0]
    assert (ours["model"], ours["n_series"]) == ("RBFDiffNet on those of AutoARIMA", few)
    assert sys.modules["statsforecast"]
