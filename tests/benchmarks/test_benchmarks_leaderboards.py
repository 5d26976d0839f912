"""Leaderboards are scored as they score: their seasonal naive comes out."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
if not BENCHMARKS.exists():
    pytest.skip("the tests run without the repository", allow_module_level=True)
sys.path.append(str(BENCHMARKS))

import leaderboards  # noqa: E402
from accuracy_parts.data import folder  # noqa: E402

SUITE, BOARDS = folder(None, "suite"), folder(None, "leaderboards")
needs_data = pytest.mark.skipif(
    not (SUITE.exists() and BOARDS.exists()), reason="the data are not here"
)
HOSPITAL, FEV, CHRONOS = leaderboards.TASKS[:3]


@pytest.fixture
def series(rng):
    flat = np.full(40, 3.0)  # has no scale
    return {"a": rng.gamma(5.0, size=50), "b": rng.gamma(9.0, size=43), "flat": flat}


@needs_data
@pytest.mark.parametrize("task", leaderboards.TASKS, ids=lambda task: f"{task.board} {task.row}")
def test_the_seasonal_naive_comes_out_where_histories_are_the_same(task):
    series = leaderboards.read_series(SUITE, task)
    here = leaderboards.score(series, task, leaderboards.forecast_naive(series, task))
    there = leaderboards.published_naive(leaderboards.read_board(BOARDS, task))
    same = task.data in {"hospital", "us_births", "covid_deaths"}
    assert leaderboards.comes_out(task, here, there) == same


def test_scores_are_those_of_a_loop(series, rng):
    task = replace(FEV, season=4, horizon=3, n_windows=2)
    quantiles = np.sort(rng.gamma(6.0, size=(2, 3, 3, 9)), axis=-1)
    errors, scaled, losses, sizes = [], [], [], []
    for window in range(2):
        for i, y in enumerate(series.values()):
            end = len(y) - 3 * (1 - window)
            scale = np.mean([abs(y[t] - y[t - 4]) for t in range(4, end - 3)])
            for step in range(3):
                actual, own = y[end - 3 + step], quantiles[window, i, step]
                loss = np.mean(
                    [
                        2.0 * (p if actual > q else 1.0 - p) * abs(actual - q)
                        for p, q in zip(leaderboards.QUANTILES, own, strict=True)
                    ]
                )
                losses.append(loss)
                sizes.append(abs(actual))
                if scale > 0.0:
                    errors.append(abs(actual - own[4]) / scale)
                    scaled.append(loss / scale)
    found = leaderboards.score(series, task, quantiles)
    np.testing.assert_allclose(found, [np.mean(errors), np.mean(scaled)])
    weighted = leaderboards.score(series, replace(task, board="GIFT-Eval"), quantiles)
    np.testing.assert_allclose(weighted, [np.mean(errors), sum(losses) / sum(sizes)])


def test_the_seasonal_naive_is_that_of_statsforecast(series):
    models = pytest.importorskip("statsforecast.models")
    task = replace(HOSPITAL, season=4, horizon=6)
    for y in series.values():
        own = models.SeasonalNaive(season_length=4).forecast(y=y, h=6, level=[20, 40, 60, 80])
        lows = [own[f"lo-{level}"] for level in (80, 60, 40, 20)]
        highs = [own[f"hi-{level}"] for level in (20, 40, 60, 80)]
        expected = np.column_stack([*lows, own["mean"], *highs])
        np.testing.assert_allclose(leaderboards.seasonal_naive(y, task), expected)
    point = leaderboards.seasonal_naive(y, replace(CHRONOS, season=4, horizon=6))
    assert (point == expected[:, [4]]).all()


def test_ours_are_forecasts_of_the_same_windows(series):
    task = replace(FEV, horizon=4, n_windows=2)
    found = leaderboards.forecast(series, task, "instant", None)
    assert found.shape == (2, 3, 4, 9)
    assert (np.diff(found) >= 0.0).all()
    np.testing.assert_allclose(found[:, 2], 3.0)
    once, y = replace(task, n_windows=1), series["b"]
    both = leaderboards.forecast({"b": y}, task, "instant", None)
    first = leaderboards.forecast({"b": y[:-4]}, once, "instant", 12)
    np.testing.assert_allclose(first[0], both[0])


def test_places_are_among_the_published():
    rows = pd.DataFrame(
        {
            "model": ["a", "RBFDiffNet, default", "b", "RBFDiffNet, instant"],
            "kind": ["", "ours", "", "ours"],
            "leak": "",
            "MASE": [0.5, 0.6, 0.7, 0.8],
            "loss": [0.2, 0.1, 0.3, 0.4],
        }
    )
    table = leaderboards.make_table(rows, CHRONOS)
    assert table["place"].tolist() == [1, 2, 2, 3]
    assert table["place by WQL"].tolist() == [1, 1, 2, 3]
    assert table["model"].tolist()[:2] == ["a", "**RBFDiffNet, default**"]


@needs_data
def test_it_prints_the_table(capsys):
    leaderboards.main(["--only", "hospital", "--presets", "instant"])
    out = capsys.readouterr().out
    assert out.count("| **RBFDiffNet, instant** |") == 3
    assert "does not come out" not in out
