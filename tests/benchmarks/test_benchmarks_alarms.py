"""The benchmark of alarms, on few panels."""

import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
if not BENCHMARKS.exists():
    pytest.skip("the tests run without the repository", allow_module_level=True)
sys.path.append(str(BENCHMARKS))

import alarms  # noqa: E402


def test_it_prints_a_row_for_each_kind_of_panel(capsys, monkeypatch):
    monkeypatch.setattr(alarms, "PANELS", [(4, 2, 3, 0.5, 0.0, 0.0), (60, 3, 7, 0.5, 0.0, 0.0)])
    alarms.main(["--panels", "3"])
    *_, few, many = capsys.readouterr().out.splitlines()
    assert few == "| 4 | 2 | 3 | 0.5 | 0 | 0 | 0.0 % | 0.0 % |"
    assert many == "| 60 | 3 | 7 | 0.5 | 0 | 0 | 0.0 % | 100.0 % |"


def test_errors_have_the_correlation_they_should():
    errors = alarms.simulate(np.random.default_rng(0), (20_000, 4), 0.7)
    found = np.corrcoef(errors.T)
    expected = 0.7 ** np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    np.testing.assert_allclose(found, expected, atol=0.03)
