import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rbfdiffnet.batch.backend import Backend
from rbfdiffnet.series.gaps import fill_many, fill_missing, find_closed_steps

gappy = arrays(
    np.float64, st.integers(1, 40), elements=st.one_of(st.floats(-1e3, 1e3), st.just(np.nan))
)


def closed_by_hand(series, season_length):
    """Missing steps of phases without a value in four seasons, others having half of theirs."""
    known, span = np.isfinite(series), 4 * season_length
    closed = np.zeros(series.size, dtype=bool)
    if season_length < 2 or series.size < span:
        return closed
    for t in np.flatnonzero(~known):
        start = max(t - span, 0)
        window = known[start : start + span]
        phases = {u % season_length for u in start + np.flatnonzero(window)}
        enough = phases and window.sum() >= 0.5 * 4 * len(phases)
        closed[t] = enough and t % season_length not in phases
    return closed


@given(gappy, st.integers(1, 9))
def test_closed_steps_by_hand(series, season_length):
    series = np.where(np.arange(series.size) % 3 == 1, np.nan, series)
    expected = closed_by_hand(series, season_length)
    np.testing.assert_array_equal(find_closed_steps(series[None], season_length)[0], expected)


@pytest.mark.parametrize("opened", [[], [34], [34, 41, 48]])
def test_what_is_closed_depends_on_four_seasons_only(opened, rng):
    series = rng.normal(size=140)
    series[6::7] = np.nan
    series[opened] = 1.0
    closed = find_closed_steps(series[None], 7)[0]
    assert closed.sum() == 20 - len(opened) - 4 * bool(opened)
    for start, end in ((0, 100), (30, 140), (41, 99)):
        part = find_closed_steps(series[None, start:end], 7)[0]
        np.testing.assert_array_equal(part[28:], closed[start:end][28:])


def test_pytorch_does_the_same(rng):
    torch = pytest.importorskip("torch", reason="needs the extra [gpu]")
    series = rng.normal(size=(40, 50))
    series[:, 4::5] = np.nan
    series[rng.random(series.shape) < 0.2] = np.nan
    backend = Backend(torch)
    same = torch.from_numpy(series)
    for season in (1, 3, 5):
        for job in (find_closed_steps, fill_many):
            found = job(same, season, backend).numpy()
            np.testing.assert_array_equal(found, job(series, season))


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
    closed = closed_by_hand(series, season_length)
    known = np.flatnonzero(np.isfinite(expected) & ~closed)
    expected = np.interp(np.arange(series.size), known, expected[known])
    for t in np.flatnonzero(closed):
        expected[t] = expected[max(t - 1, 0)]
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
