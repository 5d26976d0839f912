import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rbfdiffnet.series.naive import naive_forecast

gappy = arrays(
    np.float64, st.integers(0, 40), elements=st.one_of(st.floats(-1e3, 1e3), st.just(np.nan))
)


def by_hand(y, origin, h, m):
    """Walk back from every step to the latest known value of its phase, or of any."""
    seen = [v for v in y[:origin] if np.isfinite(v)]
    last = seen[-1] if seen else 0.0
    if origin < 2 * m or m == 1:
        return [last] * h
    forecast = []
    for k in range(h):
        same = [v for v in y[(origin + k) % m : origin : m] if np.isfinite(v)]
        forecast.append(same[-1] if same else last)
    return forecast


@given(gappy, st.integers(1, 9), st.integers(1, 25))
def test_naive_forecasts_equal_a_walk_back(y, season_length, h):
    origins = np.arange(y.size + 1)
    forecast = naive_forecast(y, origins, h, season_length)
    np.testing.assert_array_equal(forecast, [by_hand(y, o, h, season_length) for o in origins])


@given(gappy, st.integers(1, 9))
def test_later_values_do_not_matter(y, season_length):
    origins = np.arange(y.size + 1)
    together = naive_forecast(y, origins, 10, season_length)
    for origin in origins:
        alone = naive_forecast(y[:origin], origins[origin : origin + 1], 10, season_length)
        np.testing.assert_array_equal(together[origin], alone[0])


def test_a_season_is_continued_exactly():
    y = np.tile([3.0, 1.0, 4.0, 1.0, 5.0], 6)
    np.testing.assert_array_equal(naive_forecast(y[:22], np.array([22]), 8, 5)[0], y[22:30])
