import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rbfdiffnet.batch.backend import NUMPY
from rbfdiffnet.series.outliers import (
    NO_OUTLIERS,
    OutlierRule,
    _expect,
    find_doubtful,
    find_wild,
    usual_and_limit,
)

gappy = arrays(
    np.float64, st.integers(1, 40), elements=st.one_of(st.floats(-1e3, 1e3), st.just(np.nan))
)

# Monthly sales of a shop at a beach resort, 1987 to 1993 (R's `fancy`).
# fmt: off
SOUVENIRS = np.array([
    1665, 2398, 2841, 3547, 3753, 3715, 4350, 3566, 5022, 6423, 7601, 19756,
    2500, 5198, 7225, 4806, 5901, 4951, 6179, 4752, 5496, 5835, 12600, 28542,
    4717, 5703, 9958, 5305, 6492, 6631, 7350, 8177, 8573, 9690, 15152, 34061,
    5921, 5815, 12421, 6370, 7609, 7225, 8121, 7979, 8093, 8477, 17915, 30114,
    4827, 6470, 9639, 8821, 8722, 10209, 11277, 12552, 11637, 13607, 21822, 45061,
    7615, 9850, 14558, 11587, 9333, 13082, 16733, 19889, 23933, 25391, 36025, 80722,
    10243, 11267, 21827, 17357, 15998, 18602, 26155, 28587, 30505, 30821, 46634, 104661,
], dtype=float)
# fmt: on


def found(series, season_length):
    return np.flatnonzero(OutlierRule.fit(series, season_length).find(series)).tolist()


@pytest.fixture
def sales(rng):
    week = np.tile([100.0, 110.0, 105.0, 120.0, 160.0, 200.0, 80.0], 30)
    return week * np.exp(0.05 * rng.normal(size=week.size))


@given(gappy, st.integers(1, 9), st.sampled_from([(3, 0), (0, 3), (0, 1)]), st.floats(-9.0, 9.0))
def test_neighbors_are_medians_over_seasons(series, season_length, sides, drift):
    before, later = sides
    expected = []
    for t in range(series.size):
        places = [(j, t + j * season_length) for j in range(-before, later + 1) if j]
        inside = [(j, series[i]) for j, i in places if 0 <= i < series.size]
        values = [value - j * drift for j, value in inside if np.isfinite(value)]
        expected.append(np.median(values) if values else np.nan)
    found = _expect(series[None], season_length, np.array([drift]), NUMPY, before, later)
    np.testing.assert_allclose(found[0], expected, atol=1e-9)


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


@given(
    *(gappy, st.integers(1, 9), st.floats(-9.0, 9.0), st.floats(0.1, 100.0), st.floats(0.0, 2.0)),
    st.booleans(),
)
def test_what_is_not_doubtful_is_never_an_outlier(
    series, season_length, drift, spread, share, closures
):
    rule = OutlierRule(season_length, drift, spread, share, spikes=True, closures=closures)
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
    assert not rule.spikes
    assert not rule.find(series).any()


def test_the_rule_for_nothing_finds_nothing(sales):
    sales[10] = 1e9
    assert not NO_OUTLIERS.find(sales).any()


def test_peaks_that_grow_with_the_level_are_no_outliers():
    for end in range(36, SOUVENIRS.size + 1):
        december = np.arange(11, end, 12)
        assert not set(december) & set(found(SOUVENIRS[:end], 12))
    assert found(SOUVENIRS, 12) == []


def test_troughs_and_peaks_of_cycles_are_no_outliers():
    sunspots = pytest.importorskip("statsmodels.datasets").sunspots.load_pandas().data
    assert found(sunspots["SUNACTIVITY"].to_numpy(float), 1) == []


@pytest.mark.parametrize("noise", [0.0, 0.01, 1.0])
@pytest.mark.parametrize(("n", "season_length"), [(366, 7), (48, 4), (504, 5), (144, 12), (60, 1)])
def test_straight_lines_have_no_outliers_but_what_is_off_the_line(n, season_length, noise, rng):
    line = np.arange(1.0, n + 1.0) + noise * rng.normal(size=n)
    for series in (line, line[::-1], -line, line - n / 2):
        assert found(series, season_length) == []
    for place in (n // 2, n - 1):
        typo = line.copy()
        typo[place] *= 10.0
        assert found(typo, season_length) == [place]


@pytest.mark.parametrize("place", [60, 119])
@pytest.mark.parametrize("season_length", [1, 4, 7, 12])
def test_typos_and_closed_days_are_found(season_length, place, rng):
    t, noise = np.arange(120), rng.normal(size=120)
    level = {
        "noise": 100.0 + 10.0 * noise,
        "growth": 100.0 * np.exp(0.01 * t + 0.05 * noise),
        "season": (300.0 + 100.0 * np.sin(2.0 * np.pi * t / season_length)) + 10.0 * noise,
        "random walk": 200.0 * np.exp(0.01 * np.cumsum(noise)),
    }
    for name, series in level.items():
        assert found(series, season_length) == [], name
        for value in (10.0 * series[place], 0.0):
            wrong = series.copy()
            wrong[place] = value
            assert found(wrong, season_length) == [place], name


@pytest.mark.parametrize("season_length", [1, 7, 12])
def test_what_later_seasons_repeat_is_no_outlier(season_length, rng):
    series = 100.0 + rng.normal(size=200)
    series[100::season_length] += 50.0  # one phase of the season has a new level
    assert found(series, season_length) == []


def test_a_long_way_up_and_down_is_no_outlier(rng):
    series = 100.0 + rng.normal(size=300)
    series[150:157] += [8.0, 12.0, 16.0, 20.0, 16.0, 12.0, 8.0]
    assert found(series, 24) == []
    series[150:153] -= [8.0, 12.0, 16.0]  # a sudden start
    series[154:157] -= [10.0, 8.0, 6.0]
    assert found(series, 24) == [153]


def test_low_values_of_noisy_series_are_no_closures(rng):
    assert found(rng.poisson(5.0, size=2000).astype(float), 7) == []


# Series beside others -----------------------------------------------------------------------------


def test_wild_series_are_far_beyond_the_others():
    usual = np.array([0.9, 1.0, 1.1, 1.2, 0.8])
    assert not find_wild(usual).any()
    sizes = np.concatenate([usual, [4.9, 5.1, np.inf, np.nan, 0.0]])
    np.testing.assert_array_equal(np.flatnonzero(find_wild(sizes)), [7])  # the spread is wide now
    sizes = np.concatenate([usual, usual, [5.2, np.nan, 0.0]])
    np.testing.assert_array_equal(np.flatnonzero(find_wild(sizes)), [10])
    np.testing.assert_array_equal(find_wild(1e9 * sizes), find_wild(sizes))


def test_where_series_differ_much_none_is_wild():
    sizes = np.exp(2.0 * np.random.default_rng(0).normal(size=500))
    assert not find_wild(sizes).any()
    for few in (sizes[:0], sizes[:1], np.array([1.0, 1e9]), np.full(3, np.nan), np.zeros(4)):
        assert not find_wild(few).any()


def test_the_limit_is_six_median_distances_of_logarithms_above_the_median():
    logs = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    usual, limit = usual_and_limit(np.exp(logs))
    assert usual == pytest.approx(1.0)
    assert limit == pytest.approx(np.exp(6.0))
    assert usual_and_limit(np.array([2.0])) == pytest.approx((2.0, 10.0))
