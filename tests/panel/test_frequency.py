import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rbfdiffnet.panel.frequency import DAY, Frequency

MINUTE = 60 * 10**9


@pytest.mark.parametrize(
    ("freq", "kind", "n", "season"),
    [
        (1, "integer", 1, 1),
        (np.int64(5), "integer", 5, 1),
        ("D", "tick", DAY, 7),
        ("1d", "tick", DAY, 7),
        ("2D", "tick", 2 * DAY, 1),
        ("W", "tick", 7 * DAY, 52),
        ("W-SUN", "tick", 7 * DAY, 52),
        ("2W-MON", "tick", 14 * DAY, 26),
        ("1w", "tick", 7 * DAY, 52),
        ("h", "tick", 60 * MINUTE, 24),
        ("H", "tick", 60 * MINUTE, 24),
        ("6h", "tick", 360 * MINUTE, 4),
        ("min", "tick", MINUTE, 60),
        ("T", "tick", MINUTE, 60),
        ("5min", "tick", 5 * MINUTE, 12),
        ("15min", "tick", 15 * MINUTE, 96),
        ("15m", "tick", 15 * MINUTE, 96),
        ("30min", "tick", 30 * MINUTE, 48),
        ("1h30min", "tick", 90 * MINUTE, 16),
        ("s", "tick", 10**9, 60),
        ("30s", "tick", 30 * 10**9, 2),
        ("ms", "tick", 10**6, 1),
        ("MS", "month", 1, 12),
        ("ME", "month", 1, 12),
        ("M", "month", 1, 12),
        ("1mo", "month", 1, 12),
        ("2MS", "month", 2, 6),
        ("QS", "month", 3, 4),
        ("QS-OCT", "month", 3, 4),
        ("QE-NOV", "month", 3, 4),
        ("Q", "month", 3, 4),
        ("Q-DEC", "month", 3, 4),
        ("1q", "month", 3, 4),
        ("3mo", "month", 3, 4),
        ("YS", "month", 12, 1),
        ("YE-DEC", "month", 12, 1),
        ("Y", "month", 12, 1),
        ("A", "month", 12, 1),
        ("A-JUN", "month", 12, 1),
        ("AS-APR", "month", 12, 1),
        ("1y", "month", 12, 1),
        ("B", "offset", 1, 5),
        ("SMS", "offset", 1, 24),
        ("BMS", "offset", 1, 12),
        ("WOM-2FRI", "offset", 1, 12),
        ("2B", "offset", 2, 1),
        ("bh", "offset", 1, 1),
        (pd.offsets.MonthEnd(), "month", 1, 12),
        (pd.offsets.QuarterBegin(2, startingMonth=2), "month", 6, 2),
        (pd.offsets.Week(weekday=2), "tick", 7 * DAY, 52),
        (pd.offsets.BusinessDay(), "offset", 1, 5),
        (pd.DateOffset(months=2), "month", 2, 6),
        (pd.Timedelta("15min"), "tick", 15 * MINUTE, 96),
        (datetime.timedelta(days=1), "tick", DAY, 7),
    ],
)
def test_parse_knows_both_libraries(freq, kind, n, season):
    found = Frequency.parse(freq)
    assert (found.kind, found.n, found.season_length) == (kind, n, season)
    assert found.wall == (kind != "tick" or n % DAY == 0)
    assert Frequency.parse(found) is found
    if kind != "integer":
        assert Frequency.parse(found.alias) == found


def test_three_months_are_a_quarter():
    assert Frequency.parse("3mo") == Frequency.parse("QS")
    assert hash(Frequency.parse("3mo")) == hash(Frequency.parse("QS"))


def test_a_day_is_not_24_hours():
    assert Frequency.parse("24h") != Frequency.parse("D")
    assert not Frequency.parse("24h").wall


@pytest.mark.parametrize(
    "freq",
    [
        *("", "foo", "m", "W-FOO", "QS-SUN", "D-SUN", "0D", "0", "-1D"),
        *(0, -3, 10**30, 1.5, None, True, object()),
        *(pd.offsets.BDay(-1), pd.DateOffset(months=1, days=2), pd.DateOffset(day=3)),
    ],
)
def test_a_wrong_alias_is_answered_with_good_ones(freq):
    with pytest.raises(ValueError, match=r"is not a frequency; pass .* 'D', 'W', 'MS'"):
        Frequency.parse(freq)


@pytest.mark.parametrize(
    "alias",
    [
        *("D", "2D", "W", "2W", "h", "6h", "30min", "s", "ms"),
        *("MS", "ME", "2MS", "QS", "QE", "YS", "YE", "2YS", "B"),
    ],
)
def test_infer_finds_the_step_again_through_gaps_and_copies(alias, rng):
    parts = []
    for start in ("2019-03-02", "2021-07-15"):
        dates = pd.date_range(start, periods=60, freq=alias).to_numpy()
        parts.append(dates[np.sort(np.r_[rng.permutation(60)[:50], 3, 3])])
    times = np.concatenate(parts)
    codes = np.repeat([0, 1], 52)
    order = rng.permutation(104)
    assert Frequency.infer(times[order], codes[order]).alias == alias


@given(st.integers(1, 50), st.integers(-1000, 1000), st.integers(2, 9))
def test_infer_of_whole_numbers(n, start, length):
    times = start + n * np.arange(length)
    assert Frequency.infer(times, np.zeros(length, dtype=np.int64)) == Frequency.parse(n)


def test_infer_knows_mid_months():
    times = np.array(["2024-01-15", "2024-02-15", "2024-04-15"], dtype="M8[ns]")
    assert Frequency.infer(times, np.zeros(3, dtype=np.int64)).alias == "MS"


def test_infer_admits_that_it_cannot_tell(rng):
    one_each = np.array(["2024-01-01", "2024-01-02"], dtype="M8[ns]")
    assert Frequency.infer(one_each, np.arange(2)) is None
    assert Frequency.infer(one_each[:0], np.arange(0)) is None
    random = np.sort(rng.integers(0, 10**18, 100)).view("M8[ns]")
    assert Frequency.infer(random, np.zeros(100, dtype=np.int64)) is None
    assert Frequency.infer(np.cumsum(rng.integers(10, 99, 99)), np.zeros(99, np.int64)) is None
