"""The benchmark of anomalies, on tiny panels."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
if not BENCHMARKS.exists():
    pytest.skip("the tests run without the repository", allow_module_level=True)
sys.path.append(str(BENCHMARKS))

import anomalies  # noqa: E402


def test_it_prints_both_tables(capsys):
    few = ["--lengths", "60", "--panel", "3", "--alone", "1", "--injected", "2"]
    anomalies.main([*few, "--families", "AR(1)", "Poisson counts"])
    out = capsys.readouterr().out
    assert len(re.findall(r"^\| (?:AR\(1\)|Poisson counts) \| 60 \|", out, re.MULTILINE)) == 2
    assert out.count("new level, 5") == 2


def test_every_family_has_series_of_its_own():
    for name in anomalies.FAMILIES:
        a, b = anomalies.simulate(name, 2, 90)
        assert np.isfinite(a.values).all()
        assert a.values.shape == a.noise.shape == a.new_level.shape
        assert a.values[:30].tolist() != b.values[:30].tolist()
        assert anomalies.simulate(name, 1, 90)[0].values.tolist() == a.values.tolist()


def test_precision_and_recall_of_flags_that_are_known():
    truth = np.array([0, 1, 0, 0, 1, 0, 0, 0], dtype=bool)
    flags = np.array([np.nan, 1, 0, 1, 0, 1, 0, 0])
    assert anomalies.rate([flags], [truth], 1) == (1 / 3, 1 / 2)
    assert anomalies.rate([flags], [truth], 2) == (2 / 3, 1.0)


def test_rivals_find_a_spike():
    y = np.random.default_rng(0).normal(size=100)
    y[70] += 20.0
    for method in (anomalies.rolling, anomalies.seasonal):
        assert method([y], 99)[0][70] == 1.0
