import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rbfdiffnet.panel.frequency import DAY, Frequency
from rbfdiffnet.panel.grid import Grid, to_utc, to_wall

ALIASES = ["D", "3D", "h", "15min", "s", "ms", "W-SUN", "W-WED", "2W", "MS", "ME", "2ME", "QS-FEB"]
ALIASES += ["QE-NOV", "YS-APR", "YE-JUN", "B", "2B", "SMS", "SME", "BME", "WOM-2FRI", "bh", "C"]


def ints(index):
    return np.asarray(pd.DatetimeIndex(index).as_unit("ns").asi8)


def grid_of(freq, *indexes, zone=None):
    times = np.concatenate([ints(index) for index in indexes])
    codes = np.repeat(np.arange(len(indexes)), [len(index) for index in indexes])
    return Grid.from_times(Frequency.parse(freq), times, codes, len(indexes), zone), times, codes


@pytest.mark.parametrize("alias", ALIASES)
def test_steps_and_dates_agree_with_pandas(alias, rng):
    earliest = "2019-05-17" if alias == "bh" else "1965-05-17"  # many hours take long
    indexes = [
        pd.date_range(start, periods=n, freq=alias)
        for start, n in (("2019-12-30", 80), ("2024-02-01", 9), (earliest, 30))
    ]
    past = [index[: len(index) - 5] for index in indexes]
    grid, _, _ = grid_of(alias, *past)
    codes = np.repeat(np.arange(3), [len(index) for index in indexes])
    steps = np.concatenate([np.arange(len(index)) for index in indexes])
    times = np.concatenate([ints(index) for index in indexes])
    order = rng.permutation(len(codes))
    np.testing.assert_array_equal(grid.times(codes[order], steps[order]), times[order])
    found, on_grid = grid.locate(times[order], codes[order])
    np.testing.assert_array_equal(found, steps[order])
    assert on_grid.all()
    # The same with an origin in the middle: steps may be negative.
    later = grid.shift(np.full(3, 4))
    np.testing.assert_array_equal(later.times(codes, steps - 4), times)
    np.testing.assert_array_equal(later.locate(times, codes)[0], steps - 4)


@pytest.mark.parametrize("alias", ["D", "W", "MS", "ME", "B", "SMS"])
def test_a_time_of_day_is_kept(alias):
    index = pd.date_range("2024-01-02", periods=12, freq=alias) + pd.Timedelta("13:45:00")
    grid, times, codes = grid_of(alias, index[:8])
    assert grid.locate(times, codes)[1].all()
    np.testing.assert_array_equal(grid.times(np.zeros(12, np.int64), np.arange(12)), ints(index))
    assert not grid.locate(times + 1, codes)[1].any()


@pytest.mark.parametrize("alias", ["MS", "ME", "1mo"])
@pytest.mark.parametrize("day", [1, 15, 28, 29, 30, 31])
def test_months_keep_the_day_of_the_data(alias, day):
    month_starts = pd.date_range("2023-01-01", periods=30, freq="MS")
    index = month_starts + pd.to_timedelta(np.minimum(day, month_starts.days_in_month) - 1, "D")
    for length in range(3, 20):
        grid, times, codes = grid_of(alias, index[:length])
        assert grid.locate(times, codes)[1].all()
        found = grid.times(np.zeros(30, np.int64), np.arange(30))
        np.testing.assert_array_equal(found, ints(index))


def test_a_stray_date_does_not_spoil_month_ends():
    index = pd.DatetimeIndex(["2024-01-31", "2024-02-17", "2024-02-29", "2024-03-31", "2024-04-30"])
    grid, times, codes = grid_of("ME", index)
    steps, on_grid = grid.locate(times, codes)
    assert on_grid.tolist() == [True, False, True, True, True]
    assert steps[on_grid].tolist() == [0, 1, 2, 3]


def test_the_phase_is_that_of_the_last_date():
    index = pd.DatetimeIndex(["2024-01-03", "2024-01-08", "2024-01-15", "2024-01-22"])
    grid, times, codes = grid_of("W", index)
    steps, on_grid = grid.locate(times, codes)
    assert on_grid.tolist() == [False, True, True, True]
    assert steps[1:].tolist() == [0, 1, 2]


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("alias", ALIASES)
def test_a_stray_last_date_does_not_move_the_grid(alias, zone, rng):
    index = pd.date_range("2024-01-30", periods=12, freq=alias, tz=zone)
    stray = index[-1:] + pd.Timedelta("1ns" if alias in ("s", "ms") else "20min")
    expected, _, _ = grid_of(alias, index, index[:5], zone=zone)
    grid, times, codes = grid_of(alias, index.append(stray), index[:5], zone=zone)
    np.testing.assert_array_equal(grid.origin, expected.origin)
    np.testing.assert_array_equal(grid.day, expected.day)
    steps, on_grid = grid.locate(times, codes)
    assert np.flatnonzero(~on_grid).tolist() == [12]
    np.testing.assert_array_equal(steps[on_grid], [*range(12), *range(5)])
    order = rng.permutation(len(times))
    shuffled = Grid.from_times(Frequency.parse(alias), times[order], codes[order], 2, zone)
    np.testing.assert_array_equal(shuffled.origin, grid.origin)


@pytest.mark.parametrize("day", [1, 9, 28, 29, 30, 31])
@pytest.mark.parametrize("alias", ["MS", "ME", "QS", "YE"])
def test_an_unfinished_month_does_not_move_the_others(alias, day):
    months = pd.date_range("2023-01-01", periods=37, freq="MS")
    index = months + pd.to_timedelta(np.minimum(day, months.days_in_month) - 1, "D")
    step = Frequency.parse(alias).n
    for n in range(3, 12):
        known = index[::step][:n]
        stray = known[-1:] + pd.Timedelta(days=12)
        grid, times, codes = grid_of(alias, known.append(stray))
        steps, on_grid = grid.locate(times, codes)
        assert on_grid.tolist() == [True] * len(known) + [False]
        assert steps[:-1].tolist() == list(range(len(known)))
        expected = grid_of(alias, known)[0]
        assert (grid.day, grid.origin) == (expected.day, expected.origin)


def test_quarters_that_begin_in_other_months_are_another_grid():
    quarters = pd.date_range("2023-01-01", periods=6, freq="QS")
    grid, times, codes = grid_of("QS", quarters.append(pd.DatetimeIndex(["2024-06-01"])))
    assert grid.locate(times, codes)[1].tolist() == [True] * 6 + [False]


def test_the_last_date_counts_unless_most_are_off_its_grid():
    def on_grid(*times):
        times, codes = np.array(times), np.zeros(len(times), dtype=np.int64)
        grid = Grid.from_times(Frequency.parse(3), times, codes, 1)
        return times[grid.locate(times, codes)[1]].tolist()

    assert on_grid(0, 3, 7, 10) == [7, 10]  # as many as of the other
    assert on_grid(0, 3, 6, 10) == [0, 3, 6]
    assert on_grid(0, 3, 7, 10, 14) == [7, 10]  # the later one of two
    assert on_grid(0, 0, 0, 10) == [0, 0, 0]


@given(
    st.integers(2, 5),
    st.lists(st.tuples(st.integers(0, 3), st.integers(-20, 20)), min_size=1),
    st.randoms(),
)
def test_of_all_grids_that_with_most_dates_is_taken(n, rows, random):
    rows += [(code, 0) for code in range(4)]
    random.shuffle(rows)
    codes, times = np.array(rows).T
    grid = Grid.from_times(Frequency.parse(n), times, codes, 4)
    _, on_grid = grid.locate(times, codes)
    for code in range(4):
        own = times[codes == code]
        counts = np.bincount(own % n, minlength=n)
        last = counts[own.max() % n]
        expected = last if 2 * last >= len(own) else counts.max()
        assert on_grid[codes == code].sum() == expected


def test_weekends_are_off_the_grid_of_business_days():
    grid, times, codes = grid_of("B", pd.date_range("2024-01-01", "2024-01-14", freq="D"))
    steps, on_grid = grid.locate(times, codes)
    assert on_grid.tolist() == ([True] * 5 + [False] * 2) * 2
    assert steps[on_grid].tolist() == list(range(10))
    nothing, times, codes = grid_of("B", pd.DatetimeIndex(["2024-01-06"]))
    assert not nothing.locate(times, codes)[1].any()


@given(st.integers(1, 9), st.lists(st.integers(-50, 50), min_size=1), st.integers(-99, 99))
def test_whole_numbers(n, multiples, start):
    times = start + n * np.array(multiples)
    codes = np.zeros(len(times), dtype=np.int64)
    grid = Grid.from_times(Frequency.parse(n), times, codes, 1)
    steps, on_grid = grid.locate(times, codes)
    assert on_grid.all()
    assert steps.min() == 0
    np.testing.assert_array_equal(grid.times(codes, steps), times)
    if n > 1:
        assert not grid.locate(times + 1, codes)[1].any()


@pytest.mark.parametrize("alias", ["D", "W", "MS", "ME", "B"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kolkata"])
def test_days_and_longer_steps_count_in_wall_time(alias, zone):
    index = pd.date_range("2024-01-01", periods=400, freq=alias, tz=zone)
    grid, times, codes = grid_of(alias, index[:300], zone=zone)
    np.testing.assert_array_equal(grid.locate(times, codes)[0], np.arange(300))
    np.testing.assert_array_equal(grid.times(np.zeros(400, np.int64), np.arange(400)), ints(index))


@pytest.mark.parametrize("alias", ["h", "15min", "24h"])
def test_shorter_steps_count_in_utc(alias):
    index = pd.date_range("2024-03-30", periods=200, freq=alias, tz="Europe/Berlin")
    grid, times, codes = grid_of(alias, index[:100], zone="Europe/Berlin")
    assert grid.locate(times, codes)[1].all()
    np.testing.assert_array_equal(grid.times(np.zeros(200, np.int64), np.arange(200)), ints(index))


@pytest.mark.parametrize("length", [5, 6, 7])
def test_midnights_that_daylight_saving_skips(length):
    # On 2018-11-04 clocks in Sao Paulo went from midnight to one.
    zone = "America/Sao_Paulo"
    index = pd.date_range("2018-10-30", "2018-11-09").tz_localize(zone, nonexistent="shift_forward")
    grid, times, codes = grid_of("D", index[:length], zone=zone)
    steps, on_grid = grid.locate(times, codes)
    assert on_grid.all()
    np.testing.assert_array_equal(steps, np.arange(len(times)))
    np.testing.assert_array_equal(grid.times(np.zeros(11, np.int64), np.arange(11)), ints(index))


def test_both_of_two_equal_wall_times_are_on_the_grid():
    # On 2023-11-05 clocks in Havana went from one back to midnight.
    zone = "America/Havana"
    index = pd.DatetimeIndex(["2023-11-04", "2023-11-05", "2023-11-06"])
    for first in (True, False):
        local = index.tz_localize(zone, ambiguous=np.full(3, first))
        grid, times, codes = grid_of("D", local, zone=zone)
        assert grid.locate(times, codes)[1].all()


@given(st.integers(-(10**18), 2 * 10**18))
def test_wall_time_and_back(time):
    times = np.array([time])
    wall = to_wall(times, "Europe/Berlin")
    assert abs(wall - times)[0] <= DAY
    back = to_utc(wall, "Europe/Berlin")
    assert back == times or to_wall(back, "Europe/Berlin") == wall
    assert to_utc(to_wall(times, None), None) is times


def test_select_and_joined():
    grid, _, _ = grid_of("ME", *(pd.date_range(s, periods=3, freq="ME") for s in ("2020", "2021")))
    swapped = grid.select(np.array([1])).concatenate(grid.select(np.array([0])))
    np.testing.assert_array_equal(swapped.origin, grid.origin[::-1])
    np.testing.assert_array_equal(swapped.day, [31, 31])


@pytest.mark.parametrize("alias", ["D", "MS", "B", "h"])
def test_nothing_at_all(alias):
    nothing = np.zeros(0, dtype=np.int64)
    grid = Grid.from_times(Frequency.parse(alias), nothing, nothing, 0, zone="UTC")
    assert len(grid.times(nothing, nothing)) == len(grid.locate(nothing, nothing)[0]) == 0
