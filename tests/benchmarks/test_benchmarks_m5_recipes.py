"""Recipes for M5 see nothing of the days that they forecast."""

import sys
from pathlib import Path

import numpy as np
import pytest

from m5_files import level8_frame, sales
from rbfdiffnet.evaluation.metrics import rmsse_score
from rbfdiffnet.experiments.m5 import HORIZON

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
if not BENCHMARKS.exists():
    pytest.skip("the tests run without the repository", allow_module_level=True)
sys.path.append(str(BENCHMARKS))

import m5_recipes  # noqa: E402
from m5_recipes import CANDIDATES, ENDS, rolling_errors  # noqa: E402


def test_windows_end_before_the_test_days():
    assert max(ENDS) + HORIZON == 1913


def test_recipes_see_nothing_after_the_end():
    values = sales(330).to_numpy(dtype=float)[:, :2]
    seen = []

    def fit(train, _seed):
        seen.append(train.size)
        return lambda h: np.full(h, train[-1])

    errors = rolling_errors(fit, values, [100, 150])
    assert seen == [100, 100, 150, 150]
    expected = rmsse_score(values[150:178, 1], np.full(28, values[149, 1]), values[:150, 1])
    assert errors[1, 1] == expected


@pytest.mark.parametrize("name", CANDIDATES)
def test_every_recipe_runs(name):
    values = sales(330).to_numpy(dtype=float)[:, :1]
    assert rolling_errors(CANDIDATES[name], values, [302]).item() < 2.0


def test_main_prints_a_line_for_each_recipe(capsys, tmp_path, monkeypatch):
    level8_frame().to_csv(tmp_path / "level8.csv", index=False)
    constant = {"last value": lambda train, _seed: lambda h: np.full(h, train[-1])}
    monkeypatch.setattr(m5_recipes, "CANDIDATES", constant)
    m5_recipes.main(["--data", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("last value")
    assert len(lines) == 2
