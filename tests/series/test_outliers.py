import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rbfdiffnet.batch.backend import NUMPY
from rbfdiffnet.series.outliers import NO_OUTLIERS, OutlierRule, _median_of_neighbors, find_doubtful

gappy = arrays(
    np.float64, st.integers(1, 40), elements=st.one_of(st.floats(-1e3, 1e3), st.just(np.nan))
)


def found(series, season_length):
    return np.flatnonzero(OutlierRule.fit(series, season_length).find(series)).tolist()


@pytest.fixture
def sales(rng):
    week = np.tile([100.0, 110.0, 105.0, 120.0, 160.0, 200.0, 80.0], 30)
    return week * np.exp(0.05 * rng.normal(size=week.size))


@given(gappy, st.integers(1, 9), st.sampled_from([0, 3]))
def test_neighbors_are_medians_over_seasons(series, season_length, later):
    expected = []
    for t in range(series.size):
        at = [t + j * season_length for j in range(-3, later + 1) if j]
        values = [series[i] for i in at if 0 <= i < series.size and np.isfinite(series[i])]
        expected.append(np.median(values) if values else np.nan)
    np.testing.assert_allclose(
        _median_of_neighbors(series[None], season_length, later, NUMPY)[0], expected
    )


def test_spread_is_a_robust_standard_deviation(rng):
    series = rng.normal(scale=3.0, size=4000)
    # A median of six values has about a fifth of their variance, a median of three almost half.
    assert OutlierRule.fit(series, 7).spread == pytest.approx(3.0 * np.sqrt(1.45), rel=0.05)


def test_closures_and_spikes_are_found(sales):
    sales[[40, 100]] = 0.0
    sales[60] *= 6.0
    assert found(sales, 7) == [40, 60, 100]


def test_closures_and_spikes_at_the_end_are_found(sales):
    sales[-1], sales[-9] = 3.0, 900.0
    assert found(sales, 7) == [sales.size - 9, sales.size - 1]


@pytest.mark.parametrize("season_length", [2, 7, 12])
@pytest.mark.parametrize("factor", [0.05, 0.5, 3.0])
def test_a_new_level_is_no_outlier(season_length, factor, rng):
    series = 100.0 + rng.normal(size=400)
    series[230:] += 100.0 * (factor - 1.0)
    assert found(series, season_length) == []


@pytest.mark.parametrize("place", [200, 400])
@pytest.mark.parametrize(
    ("season_length", "row"), [(4, 4), (5, 5), (7, 7), (8, 4), (12, 4), (24, 4), (52, 4)]
)
def test_how_long_a_row_must_be_to_be_a_new_level(season_length, row, place, rng):
    row = 3 if place == 400 else row  # at the end
    clean = 100.0 + rng.normal(size=400)
    for length in range(1, row + 2):
        series = clean.copy()
        series[place - length : place] += 300.0
        outliers = list(range(place - length, place)) if length < row else []
        assert found(series, season_length) == outliers


@given(gappy, st.integers(1, 9), st.floats(0.1, 100.0), st.booleans())
def test_what_is_not_doubtful_is_never_an_outlier(series, season_length, spread, closures):
    rule = OutlierRule(season_length, spread, closures=closures)
    (doubtful,) = find_doubtful([rule], [series])
    for n in range(1, series.size + 1):
        assert not np.any(rule.find(series[:n]) & ~doubtful[:n])


@pytest.mark.parametrize("season_length", [1, 7])
def test_the_latest_values_of_a_smooth_series_are_no_outliers(season_length):
    t = np.arange(300.0)
    for series in (np.sin(t / 10.0), 5.0 + 0.3 * t, np.exp(t / 100.0)):
        assert found(series, season_length) == []


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.4, 0.8])
def test_intermittent_series_are_left_alone(rate, rng):
    demand = rng.uniform(size=700) < rate
    assert found(demand * rng.integers(1, 20, size=700).astype(float), 7) == []


def test_a_weekly_closed_day_is_no_outlier(sales):
    sales[6::7] = 0.0
    assert found(sales, 7) == []


def test_negative_series_have_no_closures(rng):
    series = rng.normal(size=300)
    rule = OutlierRule.fit(series, 7)
    assert not rule.closures
    assert not rule.find(series).any()


def test_outliers_do_not_depend_on_units(sales):
    sales[[10, 50, 90]] *= [5.0, 0.01, 4.0]
    assert found(1e-6 * sales, 7) == found(1e9 * sales, 7) == [10, 50, 90]


def test_missing_values_are_no_outliers_and_hide_none(sales):
    sales[60] *= 6.0
    sales[[53, 61, 67, 68]] = np.nan
    assert found(sales, 7) == [60]


@pytest.mark.parametrize(
    "series",
    [
        np.full(20, np.nan),
        np.ones(50),
        np.array([3.0]),
        np.r_[1.0, np.full(9, np.nan)],
        np.empty(0),
    ],
)
def test_series_without_spread_have_no_outliers(series):
    rule = OutlierRule.fit(series, 7)
    assert rule.spread == np.inf
    assert not rule.find(series).any()


def test_the_rule_for_nothing_finds_nothing(sales):
    sales[10] = 1e9
    assert not NO_OUTLIERS.find(sales).any()
