"""The benchmark of chaotic systems, on a small folder with two made-up systems."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
if not BENCHMARKS.exists():
    pytest.skip("the tests run without the repository", allow_module_level=True)
sys.path.append(str(BENCHMARKS))

import chaos  # noqa: E402
from chaos_parts import rivals  # noqa: E402

METHODS = list(chaos.METHODS)


@pytest.fixture
def folder(tmp_path):
    t = np.arange(120.0)
    series = np.stack([np.sin(2 * np.pi * t / 15), 2.0 + np.cos(2 * np.pi * t / 12)])
    np.savez(tmp_path / "series.npz", systems=["a", "b"], coarse=series, fine=series)
    rows = [
        *(("a", 15, 0, "X", 10.0, 0.5), ("b", 15, 0, "X", 30.0, 0.7)),
        *(("a", 15, 0, "Y", 21.0, 0.1), ("b", 15, 0, "Y", 23.0, 0.3)),
        *(("c", 15, 0, "Y", 0.0, 0.0), ("a", 100, 1, "X", 50.0, 1.0)),
    ]
    columns = ["system", "points_per_period", "noise", "method", "smape", "nrmse"]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "published.csv", index=False)
    return tmp_path


def test_errors_by_hand():
    actual, forecast = np.array([1.0, 3.0, -1.0, 1.0]), np.array([1.0, 1.0, 1.0, 3.0])
    # 0, 2 of 4, 2 of 2 and 2 of 4; the variance of 1, 3, -1, 1 is 2, the mean squared error 3.
    assert chaos.smape(actual, forecast) == pytest.approx(200 * (0 + 0.5 + 1 + 0.5) / 4)
    assert chaos.nrmse(actual, forecast) == pytest.approx(np.sqrt(3 / 2))


@pytest.mark.parametrize(("scale", "steps"), [(1.0, 1), (2.0, 2), (10.0, 3)])
def test_valid_steps_end_before_the_first_large_error(scale, steps):
    assert chaos.valid_steps(np.zeros(3), np.array([0.1, -0.5, 1.0]), scale) == steps


def test_spectral_distance_is_that_of_hellinger():
    t = np.arange(60)
    slow, fast = np.sin(2 * np.pi * t / 20), np.sin(2 * np.pi * t / 5)
    assert chaos.spectral_distance(slow, 5.0 + 2.0 * np.roll(slow, 3)) == pytest.approx(0, abs=1e-6)
    assert chaos.spectral_distance(slow, fast) == pytest.approx(1.0)
    assert chaos.spectral_distance(slow, slow + fast) == pytest.approx(np.sqrt(1 - np.sqrt(0.5)))


def test_settings_are_those_of_the_closest_earlier_forecasts():
    s = np.arange(100.0)
    asked = []

    def roll(past, h, slope):
        asked.append(past.size)
        return past[-1] + slope * np.arange(1, h + 1)

    np.testing.assert_array_equal(rivals.choose(s, 5, [0.0, 1.0, 2.0], roll), 100.0 + np.arange(5))
    assert asked == [60, 70, 80] * 3 + [100]


def test_methods_see_five_sixths_and_errors_count_noise(folder):
    seen = []

    def last_value(s, h):
        seen.append(s)
        return np.full(h, s[-1])

    figures = chaos.measure(last_value, folder, "coarse-noisy", seed=7)
    errors = []
    with np.load(folder / "series.npz") as file:
        for i, clean in enumerate(file["coarse"]):
            noise = np.random.default_rng(7 + i).normal(size=120)
            noisy = clean + 0.2 * np.std(clean) * noise
            np.testing.assert_allclose(seen[i], noisy[:100], rtol=1e-12)
            path, ahead = np.full(19, noisy[99]), noisy[100:119]
            far = np.abs(path - clean[100:119]) > 0.4 * np.std(clean)
            valid = np.argmax(far) / 15
            errors.append((chaos.smape(ahead, path), chaos.nrmse(ahead, path), valid, 1.0))
    expected = np.mean(errors, axis=0)  # the median of two; a constant has no power to compare
    np.testing.assert_allclose([figures[name] for name in chaos.FIGURES[:4]], expected)


@pytest.mark.parametrize("method", METHODS)
def test_methods_continue_a_sine(method):
    s = 3.0 + np.sin(2 * np.pi * np.arange(119) / 15)
    forecast = chaos.METHODS[method](s[:100], 19)
    np.testing.assert_allclose(forecast, s[100:], atol=0.1)


def test_rows_are_written_once_and_the_best_published_is_shown(folder, capsys, monkeypatch):
    monkeypatch.setitem(chaos.METHODS, "parroting", lambda s, h: np.full(h, s.mean()))
    given = [str(folder), "--out", str(folder / "rows.csv"), "--methods", "parroting"]
    chaos.main([*given, "--cells", "coarse-clean"])
    first = capsys.readouterr().out
    monkeypatch.setitem(chaos.METHODS, "parroting", None)  # would fail if it were called
    chaos.main([*given, "--cells", "coarse-clean"])
    assert capsys.readouterr().out == first
    assert "| published, lowest sMAPE | 20.0 / 0.60 (X) |" in first
    assert "| published, lowest NRMSE | 22.0 / 0.20 (Y) |" in first
