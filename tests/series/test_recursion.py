import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rbfdiffnet.series.recursion import forecast_recursive


def autoregression(weights):
    return lambda windows: windows @ np.asarray(weights)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 20), st.integers(1, 5))
def test_equals_a_plain_loop(seed, n_lags, h, n_series):
    rng = np.random.default_rng(seed)
    history = rng.normal(size=(n_series, n_lags + 3))
    weights = rng.normal(size=n_lags)
    weights /= np.abs(weights).sum()
    model = autoregression(weights)
    forecast = forecast_recursive(model, history, h, n_lags=n_lags, reach=1e9)  # no guard
    for series, got in zip(history, forecast, strict=True):
        values = list(series)
        for _ in range(h):
            values.append(sum(w * v for w, v in zip(weights, values[-n_lags:], strict=True)))
        np.testing.assert_allclose(got, values[len(series) :], atol=1e-12)


def test_batch_equals_one_series_at_a_time():
    rng = np.random.default_rng(0)
    history = rng.normal(size=(7, 12))
    model = autoregression([0.2, -0.4, 0.7])
    together = forecast_recursive(model, history, 9, n_lags=3)
    apart = [forecast_recursive(model, series, 9, n_lags=3) for series in history]
    assert together.shape == (7, 9)
    assert apart[0].shape == (9,)
    np.testing.assert_allclose(together, apart, atol=1e-12)


def test_without_n_lags_the_window_is_the_whole_history():
    seen = []
    forecast_recursive(lambda w: seen.append(w.copy()) or w[:, -1] + 1, [1.0, 2.0, 3.0], 3)
    np.testing.assert_array_equal(np.concatenate(seen), [[1, 2, 3], [2, 3, 4], [3, 4, 5]])


def test_unstable_recursion_is_clipped_at_the_bound_of_its_own_series():
    history = np.array([[0.0, 1.0], [10.0, 8.0]])
    with np.errstate(over="raise"):
        forecast = forecast_recursive(autoregression([0.0, -30.0]), history, 400)
    # Range [0, 1], span 1: [-10, 11]; range [8, 10], span 2: [-12, 30].
    assert forecast.min(axis=1).tolist() == [-10.0, -12.0]
    assert forecast.max(axis=1).tolist() == [11.0, 30.0]
    near = forecast_recursive(autoregression([0.0, 30.0]), history, 5, reach=1.0)
    assert near.max(axis=1).tolist() == [2.0, 12.0]


def test_bound_comes_from_the_whole_history_not_from_the_window():
    history = [0.0, 100.0, 1.0, 1.0]
    forecast = forecast_recursive(lambda w: w[:, -1] + 500.0, history, 3, n_lags=2)
    assert forecast.tolist() == [501.0, 1001.0, 1100.0]


def test_infinite_forecast_is_clipped_and_constant_history_stays():
    assert forecast_recursive(lambda w: np.full(len(w), np.inf), [0.0, 1.0], 2).tolist() == [11, 11]
    assert forecast_recursive(lambda w: w[:, -1] + 1, [3.0, 3.0], 2).tolist() == [3.0, 3.0]


def test_wrong_arguments():
    last = autoregression([1.0])
    with pytest.raises(ValueError, match="h must be an integer of at least 1; got 0"):
        forecast_recursive(last, [1.0], 0)
    with pytest.raises(ValueError, match="5 lags asked of a history of 2"):
        forecast_recursive(last, [1.0, 2.0], 1, n_lags=5)
    with pytest.raises(ValueError, match=r"\(1, 1, 1\)"):
        forecast_recursive(last, [[[1.0]]], 1)
    with pytest.raises(ValueError, match="reach must be a number of at least 0"):
        forecast_recursive(last, [1.0], 1, reach=-1.0)
    with pytest.raises(ValueError, match="series 1 is not finite at position 0"):
        forecast_recursive(last, [[1.0], [np.nan]], 1)


def test_broken_model_is_named():
    with pytest.raises(ValueError, match="nan for series 1 at step 3"):
        forecast_recursive(
            lambda w: np.where(w[:, -1] > 11.0, np.nan, w[:, -1] + 1),
            [[0.0, 1.0], [9.0, 10.0]],
            5,
        )
    with pytest.raises(ValueError, match=r"shape \(2, 1\) for 2 windows"):
        forecast_recursive(lambda w: w, [[1.0], [2.0]], 1)
