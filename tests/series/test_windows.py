import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rbfdiffnet.series.windows import lag_windows

finite = st.floats(-1e6, 1e6)


@given(arrays(np.float64, st.integers(2, 40), elements=finite), st.data())
def test_equals_a_loop(series, data):
    n_lags = data.draw(st.integers(1, len(series) - 1))
    X, y = lag_windows(series, n_lags)
    rows = range(len(series) - n_lags)
    np.testing.assert_array_equal(X, [series[t : t + n_lags] for t in rows])
    np.testing.assert_array_equal(y, [series[t + n_lags] for t in rows])


def test_result_is_a_writable_float_copy():
    series = np.arange(5)
    X, y = lag_windows(series, 2)
    assert X.dtype == y.dtype == np.float64
    X[:], y[:] = -1.0, -1.0
    np.testing.assert_array_equal(series, np.arange(5))


@pytest.mark.parametrize("n", [0, 1, 3])
def test_too_short_says_how_many_values_there_are_and_are_needed(n):
    with pytest.raises(ValueError, match=f"has {n} values, and 3 lags need at least 4"):
        lag_windows(np.zeros(n), 3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite_says_where(bad):
    with pytest.raises(ValueError, match=f"{bad} at position 4"):
        lag_windows([0, 1, 2, 3, bad, 5, np.nan], 2)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="at least 1; got 0"):
        lag_windows([1, 2, 3], 0)
    with pytest.raises(ValueError, match=r"shape \(2, 3\)"):
        lag_windows(np.zeros((2, 3)), 1)
