import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rbfdiffnet.gaps import fill_missing, never_known

gappy = arrays(
    np.float64, st.integers(1, 40), elements=st.one_of(st.floats(-1e3, 1e3), st.just(np.nan))
)


def closed_by_hand(series, season_length):
    """Steps of phases without a value, in four seasons or more with half of the other values."""
    known = np.isfinite(series)
    phase = np.arange(series.size) % season_length
    never = ~np.isin(phase, phase[known])
    enough = series.size >= 4 * season_length > 4
    return never & enough & (2 * known.sum() >= (~never).sum() > 0)


@given(gappy, st.integers(1, 9))
def test_phases_that_never_have_a_value(series, season_length):
    series = np.where(np.arange(series.size) % 3 == 1, np.nan, series)
    expected = closed_by_hand(series, season_length)
    np.testing.assert_array_equal(never_known(series[None], season_length)[0], expected)


@given(gappy, st.integers(1, 9))
def test_filling_is_interpolation_within_phases_and_then_in_time(series, season_length):
    if np.isnan(series).all():
        with pytest.raises(ValueError, match="without any value"):
            fill_missing(series, season_length)
        return
    before = series.copy()
    expected = series.copy()
    for t in np.flatnonzero(np.isnan(series)):
        same = range(t % season_length, series.size, season_length)
        known = [i for i in same if np.isfinite(series[i])]
        if known:
            expected[t] = np.interp(t, known, series[known])
    for t in np.flatnonzero(closed_by_hand(series, season_length)):
        earlier = [v for v in expected[:t] if np.isfinite(v)]
        expected[t] = earlier[-1] if earlier else np.nan
    known = np.flatnonzero(np.isfinite(expected))
    expected = np.interp(np.arange(series.size), known, expected[known])
    filled = fill_missing(series, season_length)
    np.testing.assert_allclose(filled, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(series, before)


def test_gaps_of_a_seasonal_series_get_their_season():
    season = np.tile([1.0, 5.0, 2.0, 8.0], 6)
    gappy = season.copy()
    gappy[[0, 9, 10, 11, 12, 23]] = np.nan
    np.testing.assert_array_equal(fill_missing(gappy, 4), season)


def test_what_closed_days_are_filled_with_tells_nothing_of_later_values(rng):
    sales = rng.normal(size=210)
    sales[6::7] = np.nan
    filled = fill_missing(sales, 7)
    np.testing.assert_array_equal(filled[6::7], sales[5::7])
    np.testing.assert_array_equal(fill_missing(sales[:70], 7), filled[:70])
