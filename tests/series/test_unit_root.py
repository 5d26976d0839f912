from inspect import signature

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m5_files import real_m5
from rbfdiffnet.batch.backend import NUMPY, Backend
from rbfdiffnet.datasets import load_air_passengers, logistic_map
from rbfdiffnet.datasets.m5 import load_m5_level8
from rbfdiffnet.series.differences import (
    _p_value,
    _test_by_columns,
    _test_by_gram,
    adf_test,
    n_differences,
    n_differences_many,
)


def oracle(series):
    stattools = pytest.importorskip("statsmodels.tsa.stattools")
    newer = "result_object" in signature(stattools.adfuller).parameters
    return stattools.adfuller(series, **({"result_object": False} if newer else {}))


def agrees(series):
    ours, theirs = adf_test(series), oracle(series)
    assert ours.n_lags == theirs[2]
    np.testing.assert_allclose(ours.statistic, theirs[0], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(ours.p_value, theirs[1], rtol=1e-6, atol=1e-10)


def kinds(n, seed):
    noise = np.random.default_rng(seed).normal(size=n)
    t = np.arange(n)
    return {
        "noise": noise,
        "walk": noise.cumsum(),
        "twice integrated": noise.cumsum().cumsum(),
        "overdifferenced": np.diff(noise, 3),
        "trend at a high level": 1e6 + t + noise,
        "season": 10 * np.sin(2 * np.pi * t / 7) + noise,
        "counts": np.random.default_rng(seed).poisson(2.0, size=n).astype(float),
        "small": 1e-3 * noise.cumsum(),
    }


@pytest.mark.parametrize("kind", kinds(30, 0))
@pytest.mark.parametrize("n", [30, 50, 120, 600])
def test_equals_statsmodels(kind, n):
    for seed in range(3):
        agrees(kinds(n, seed)[kind])


@given(st.integers(0, 2**32 - 1), st.integers(30, 90), st.floats(-0.9, 1.0))
def test_equals_statsmodels_on_autoregressions(seed, n, coefficient):
    noise = np.random.default_rng(seed).normal(size=n)
    series = noise.copy()
    for t in range(1, n):
        series[t] += coefficient * series[t - 1]
    agrees(series)


def test_equals_statsmodels_on_classics():
    agrees(load_air_passengers()["y"].to_numpy())
    agrees(logistic_map(300))


def test_equals_statsmodels_on_m5():
    values = load_m5_level8(real_m5()).to_numpy()[:1913]
    for series in values.T[::6]:
        agrees(series)
        agrees(np.diff(series))


@pytest.mark.parametrize("statistic_of", [-25.0, -5.0, -1.61, -1.0, 0.0, 3.0])
def test_p_value_is_mackinnons(statistic_of):
    adfvalues = pytest.importorskip("statsmodels.tsa.adfvalues")
    assert _p_value(statistic_of) == pytest.approx(adfvalues.mackinnonp(statistic_of), abs=1e-12)


def test_scale_and_level_do_not_matter():
    walk = np.random.default_rng(1).normal(size=200).cumsum()
    a, b = adf_test(walk), adf_test(1e5 + 1e3 * walk)
    assert a.n_lags == b.n_lags
    assert a.statistic == pytest.approx(b.statistic, rel=1e-8)


@pytest.mark.parametrize("series", [[], [1.0], [1.0, 2.0, 0.0], np.ones(50)])
def test_too_short_or_constant_has_no_test(series):
    result = adf_test(np.array(series))
    assert np.isnan(result.statistic)
    assert np.isnan(result.p_value)
    assert n_differences(series) == 0


def test_series_that_follow_exactly_from_their_past():
    t = np.arange(60.0)
    assert adf_test(t).statistic == 0.0
    assert [n_differences(t), n_differences(t**2), n_differences(t**3)] == [1, 2, 3]
    assert adf_test(np.sin(t)).statistic == -np.inf
    assert n_differences(np.sin(t)) == 0
    assert adf_test(np.exp(0.1 * t)).statistic == np.inf


@given(st.integers(0, 3), st.integers(0, 1000))
def test_counts_the_times_a_series_was_integrated(times, seed):
    series = np.random.default_rng(seed).normal(size=400)
    for _ in range(times):
        series = series.cumsum()
    # At a level of 5 % one walk in twenty passes for stationary.
    assert n_differences(series, significance=0.0001) >= times or times == 0
    assert n_differences(series, max_differences=1) <= 1


def test_at_most_ten():
    assert n_differences(np.exp(np.arange(60.0))) == 10
    assert n_differences(np.exp(np.arange(60.0)), max_differences=3) == 3
    assert n_differences(np.arange(9.0), max_differences=0) == 0


def test_errors():
    with pytest.raises(ValueError, match="one-dimensional"):
        adf_test(np.ones((2, 3)))
    with pytest.raises(ValueError, match="nan at position 2"):
        adf_test([1.0, 2.0, np.nan])
    with pytest.raises(ValueError, match="max_differences must not be negative"):
        n_differences([1.0, 2.0], max_differences=-1)
    with pytest.raises(ValueError, match="significance must lie between 0 and 1"):
        n_differences([1.0, 2.0], significance=1.0)


@pytest.mark.parametrize("n", [4, 5, 7, 12, 40, 300])
def test_many_at_once_are_tested_as_one_by_one(n):
    panel = np.stack([series[-n:] for seed in range(3) for series in kinds(n + 3, seed).values()])
    t = np.arange(n)
    exact = [np.ones(n), t.astype(float), np.sin(t), 1e12 * np.eye(n)[n // 2], np.zeros(n)]
    panel = np.concatenate([panel, exact])
    counts = n_differences_many(panel)
    np.testing.assert_array_equal(counts, [n_differences(series) for series in panel])
    with np.errstate(all="ignore"):
        statistics, n_lags, sure = _test_by_gram(panel, NUMPY)
    expected = [_test_by_columns(series) for series in panel[sure]]
    np.testing.assert_allclose(statistics[sure], [s for s, _ in expected], rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(n_lags[sure], [p for _, p in expected])
    if n >= 40:
        assert sure.sum() >= len(panel) - len(exact)


def test_pytorch_counts_the_same():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    panel = np.stack([series[:100] for series in kinds(103, 0).values()])
    counts = n_differences_many(torch.from_numpy(panel), backend=Backend(torch))
    np.testing.assert_array_equal(counts, n_differences_many(panel))
