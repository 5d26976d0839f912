"""The benchmarks of real measurements and of denoising, on small series."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
if not BENCHMARKS.exists():
    pytest.skip("the tests run without the repository", allow_module_level=True)
sys.path.append(str(BENCHMARKS))

import denoising  # noqa: E402
import real_noise  # noqa: E402


@pytest.mark.parametrize("series", real_noise.SERIES, ids=lambda series: series.name)
def test_series_are_read_where_their_package_is_installed(series):
    s = real_noise.load(series)
    if s is None:
        pytest.skip(f"{series.package} is not installed")
    assert 100 <= s.size <= real_noise.MOST_VALUES
    assert np.isfinite(s).all()
    assert np.ptp(s) > 0.0


def test_series_of_other_packages_are_left_out():
    other = real_noise.Measured("a", "no_such_package", "a.csv", real_noise.column(0))
    assert real_noise.load(other) is None


def test_errors_of_a_sine_are_those_of_its_forecasts(monkeypatch):
    monkeypatch.setattr(real_noise, "ORIGINS", 2)
    s = np.sin(2 * np.pi * np.arange(150) / 15)
    row = real_noise.errors(s, season=15)
    assert row["values"] == 150
    assert row["treated"] == 0
    assert row["reason"]
    assert row["auto"] == row["none"] < 0.05
    assert row["simple"] == pytest.approx(0.0, abs=1e-9)  # the last season


def test_reports_count_gains_and_losses():
    columns = "series package values treated noise reason auto none parroting simple seconds"
    rows = [
        ("a", "p", 100, 2, 0.1, "", 0.5, 1.0, 1.0, 1.0, 1.0),
        ("b", "p", 100, 1, 0.1, "clean", 1.2, 1.0, 1.0, 2.0, 1.0),
        ("c", "p", 100, 0, 0.0, "clean", 1.0, 1.0, 0.5, 2.0, 1.0),
    ]
    text = real_noise.report(pd.DataFrame(rows, columns=columns.split()))
    assert "3 series, 2 treated at some origin: 1 gain, 1 lose; errors 0.775" in text
    assert "Against parroting: lower in 1" in text
    assert "| b (p, 100) | 1 | 0.10 / clean | 1.20 |" in text


@pytest.mark.parametrize("system", denoising.SYSTEMS)
def test_systems_differ_by_seed(system):
    first, second = (denoising.SYSTEMS[system](seed) for seed in (0, 1))
    assert first.shape == second.shape == (denoising.N_VALUES,)
    assert not np.isclose(first, second).all()


def test_ikeda_follows_its_map():
    s = denoising.ikeda(0)
    assert -0.5 < s.min() < s.max() < 2.0


def test_settings_are_chosen_by_copies_with_independent_noise(monkeypatch):
    clean = np.sin(np.arange(1000) / 9)
    s = clean + 0.1 * np.random.default_rng(0).normal(size=1000)

    def smooth(values, setting):
        return np.convolve(values, np.ones(setting) / setting, "same")

    monkeypatch.setattr(denoising, "settings", lambda: [1, 9, 99])
    monkeypatch.setattr(denoising, "project", smooth)
    left = {size: denoising.rms(smooth(s, size) - clean) for size in (1, 9, 99)}
    assert denoising.choose(s, 0.1, seed=0) == min(left, key=left.get) == 9


def test_local_projection_takes_noise_out():
    pytest.importorskip("ghkss")
    clean = denoising.SYSTEMS["Lorenz"](0)
    noise = 0.1 * clean.std() * np.random.default_rng(0).normal(size=clean.size)
    found = denoising.project(clean + noise, ((11, 1), 3, 30, 3))
    assert denoising.rms(found - clean) < 0.6 * denoising.rms(noise)
