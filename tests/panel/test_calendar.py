import json
import sys
from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rbfdiffnet.panel.calendar import (
    CalendarInputs,
    Event,
    Holidays,
    choose_calendar_parts,
    find_closed_weekdays,
    is_daily,
    name_weekdays,
)
from rbfdiffnet.panel.frequency import Frequency

PARTS = ("minute", "hour", "dayofweek", "day", "weekofyear", "month", "quarter")
DAY = 24 * 3600
DAYS = np.arange("2015-01-01", "2025-01-01", dtype="datetime64[D]").astype("datetime64[ns]")


def pandas_part(index, part):
    if part == "weekofyear":
        return index.isocalendar().week.to_numpy(int)
    return getattr(index, {"dayofweek": "day_of_week"}.get(part, part))


@pytest.mark.parametrize("part", PARTS)
@given(
    times=st.lists(st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)), min_size=1),
    unit=st.sampled_from(["s", "us", "ns"]),
)
def test_parts_equal_pandas(part, times, unit):
    calendar = CalendarInputs((part,))
    dates = np.array(times, dtype="datetime64[us]").astype(f"datetime64[{unit}]")
    expected = [f"{part}={value}" for value in pandas_part(pd.DatetimeIndex(dates), part)]
    encoded = calendar.matrix(dates)
    np.testing.assert_array_equal(encoded.sum(axis=1), 1.0)
    assert [calendar.names[j] for j in encoded.argmax(axis=1)] == expected


@pytest.mark.parametrize("part", PARTS)
def test_every_column_occurs_and_equals_pandas_dummies(part):
    dates = np.arange("2000-01-01", "2012-01-01", dtype="datetime64[h]").astype("datetime64[s]")
    dates += np.arange(len(dates)) % 3600
    calendar = CalendarInputs((part,))
    values = pd.Series(pandas_part(pd.DatetimeIndex(dates), part))
    dummies = pd.get_dummies(values, prefix=part, prefix_sep="=")
    assert list(calendar.names) == list(dummies.columns)
    np.testing.assert_array_equal(calendar.matrix(dates), dummies.to_numpy(float))


@pytest.mark.parametrize(
    ("frequency", "expected"),
    [
        ("10s", ("minute", "hour", "dayofweek", "month")),
        ("30min", ("minute", "hour", "dayofweek", "month")),
        ("h", ("hour", "dayofweek", "month")),
        ("D", ("dayofweek", "day", "month")),
        ("B", ("dayofweek", "day", "month")),
        ("W", ("month",)),
        ("MS", ("month",)),
        ("ME", ("month",)),
        ("QS", ("quarter",)),
        ("YS", ()),
    ],
)
def test_sensible_parts_change_from_step_to_step(frequency, expected):
    dates = pd.date_range("2015-01-01", periods=200, freq=frequency)
    step = float(np.median(np.diff(dates.to_numpy())) / np.timedelta64(1, "s"))
    assert choose_calendar_parts(step) == expected
    CalendarInputs(choose_calendar_parts(step))


def test_parts_whose_cycle_is_not_seen_twice_are_left_out():
    assert choose_calendar_parts(DAY, 2 * 365 * DAY) == ("dayofweek", "day", "month")
    assert choose_calendar_parts(DAY, 60 * DAY) == ("dayofweek", "day")
    assert choose_calendar_parts(DAY, 20 * DAY) == ("dayofweek",)
    assert choose_calendar_parts(DAY, 10 * DAY) == ()
    with pytest.raises(ValueError, match="step_seconds must be positive"):
        choose_calendar_parts(0)


def test_days_around_may_be_counted_in_small_types():
    small = Event("sale", ["2024-05-01"], lead=np.uint8(200), lag=np.int8(100))
    assert small.names == Event("sale", ["2024-05-01"], lead=200, lag=100).names


@given(st.sets(st.integers(0, 60), min_size=1), st.integers(0, 5), st.integers(0, 5))
def test_event_columns_equal_a_loop(positions, lead, lag):
    start = np.datetime64("2024-01-31")
    event = Event("sale", [start + p for p in positions], lead, lag)
    calendar = CalendarInputs((), (event,))
    hours = np.arange(-8 * 24, 70 * 24, 5)
    dates = start.astype("datetime64[h]") + hours
    encoded = dict(zip(calendar.names, calendar.matrix(dates).T, strict=True))
    assert len(encoded) == lead + lag + 1
    for shift in range(-lead, lag + 1):
        name = "sale" if shift == 0 else f"sale{'-' if shift < 0 else '+'}{abs(shift)}"
        expected = [hour // 24 - shift in positions for hour in hours.tolist()]
        np.testing.assert_array_equal(encoded[name], expected)


@pytest.mark.parametrize(
    "dates",
    [
        ["2024-12-25", "2023-12-25"],
        ("2023-12-25 23:59", "25 December 2024"),
        [date(2023, 12, 25), datetime(2024, 12, 25, 8)],
        np.array(["2023-12-25T12", "2024-12-25T00", "2024-12-25T01"], dtype="datetime64[h]"),
        pd.DatetimeIndex(["2023-12-25", "2024-12-25"]),
        pd.DatetimeIndex(["2023-12-25", "2024-12-25"], tz="America/New_York"),
        pd.Series(pd.to_datetime(["2023-12-25", "2024-12-25"])),
    ],
)
def test_event_dates_are_read_as_days(dates):
    assert Event("christmas", dates).dates == (date(2023, 12, 25), date(2024, 12, 25))


@pytest.mark.parametrize("single", ["2024-12-25", date(2024, 12, 25), np.datetime64("2024-12-25")])
def test_an_event_may_have_a_single_date(single):
    assert Event("christmas", single).dates == (date(2024, 12, 25),)


@pytest.mark.parametrize("bad", [20241225, 1.5, None, "Christmas", pd.NaT, "2024-13-01"])
def test_what_is_no_date_is_named(bad):
    with pytest.raises(ValueError, match=r"Event 'christmas': .* is not a date; write dates like"):
        Event("christmas", ["2024-12-25", bad])


def test_settings_are_checked():
    with pytest.raises(ValueError, match="Event 'a' has no dates"):
        Event("a", ())
    with pytest.raises(ValueError, match="Event 'a': lead counts days"):
        Event("a", ["2024-01-01"], lead=-1)
    with pytest.raises(ValueError, match="Holidays: lag counts days"):
        Holidays("US", lag=-1)
    with pytest.raises(ValueError, match="Unknown calendar part 'time'; choose from minute"):
        CalendarInputs(("time",))


@pytest.mark.parametrize(
    ("parts", "events", "name"),
    [
        (("day", "day"), [("a", 0)], "day=1"),
        ((), [("a", 0), ("a", 1)], "a"),
        ((), [("a", 1), ("a-1", 0)], "a-1"),
        (("month",), [("month=3", 0)], "month=3"),
    ],
)
def test_names_must_be_distinct(parts, events, name):
    built = tuple(Event(label, ["2024-01-01"], lead) for label, lead in events)
    with pytest.raises(ValueError, match=f"Two calendar inputs are called '{name}'"):
        CalendarInputs(parts, built)


def test_dates_are_checked():
    calendar = CalendarInputs(("month",))
    with pytest.raises(ValueError, match=r"need dates as datetime64, got int64; convert"):
        calendar.matrix(np.arange(3))
    with pytest.raises(ValueError, match="The date at position 1 is missing"):
        calendar.matrix(np.array(["2024-01-01", "NaT"], dtype="datetime64[ns]"))


def test_no_inputs_and_no_dates_give_empty_matrices():
    assert CalendarInputs(()).matrix(DAYS).shape == (len(DAYS), 0)
    assert CalendarInputs(("hour",)).matrix(DAYS[:0]).shape == (0, 24)


@pytest.mark.parametrize("code", ["US", "US-CA", "DE-BY", "NZ"])
def test_holidays_equal_the_package(code):
    package = pytest.importorskip("holidays")
    country, _, subdivision = code.partition("-")
    table = package.country_holidays(
        country, subdivision or None, years=range(2014, 2027), language="en_US"
    )
    calendar = CalendarInputs.fit((), (), Holidays(code), DAYS)
    later = np.arange("2025-01-01", "2026-01-01", dtype="datetime64[D]")
    for dates in (DAYS, later):
        days = dates.astype("datetime64[D]").tolist()
        for day, row in zip(days, calendar.matrix(dates), strict=True):
            found = {name for name, value in zip(calendar.names, row, strict=True) if value}
            known = {f"holiday: {name}" for name in table.get_list(day)}
            assert found == known & set(calendar.names)
            assert found == known or dates is later
    assert calendar.matrix(later).any()


def test_days_around_holidays_equal_events():
    package = pytest.importorskip("holidays")
    table = package.country_holidays("US", years=range(2014, 2027), language="en_US")
    calendar = CalendarInputs.fit(("dayofweek",), (), Holidays("US", 2, 1), DAYS)
    events = tuple(
        Event(f"holiday: {name}", [day for day in table if name in table.get_list(day)], 2, 1)
        for name in calendar.holiday_names
    )
    same = CalendarInputs(("dayofweek",), events)
    assert calendar.names == same.names
    (thanksgiving,) = table.get_list("2024-11-28")
    assert f"holiday: {thanksgiving}-1" in calendar.names
    # The last days of a year see the first holiday of the next.
    dates = np.arange("2024-12-20", "2025-01-05", dtype="datetime64[D]")
    for chosen in (DAYS, dates, dates[-6:-4]):
        np.testing.assert_array_equal(calendar.matrix(chosen), same.matrix(chosen))


def test_only_holidays_seen_get_columns():
    package = pytest.importorskip("holidays")
    autumn = np.arange("2019-11-01", "2019-12-01", dtype="datetime64[D]")
    calendar = CalendarInputs.fit((), (), Holidays("US"), autumn)
    table = package.country_holidays("US", years=2019, language="en_US")
    november = {name for day in table if day.month == 11 for name in table.get_list(day)}
    assert calendar.names == tuple(f"holiday: {name}" for name in sorted(november))
    assert len(november) == 2  # Thanksgiving and Veterans Day
    # Juneteenth became a holiday in 2021.
    assert calendar.matrix(DAYS).shape == (len(DAYS), 2)
    before = CalendarInputs.fit((), (), Holidays("US"), DAYS[: 6 * 365])
    june = np.array(["2024-06-19"], dtype="datetime64[D]")
    assert not before.matrix(june).any()
    assert CalendarInputs.fit((), (), Holidays("US"), DAYS).matrix(june).any()


def test_holiday_names_do_not_depend_on_the_language_of_the_machine(monkeypatch):
    pytest.importorskip("holidays")
    found = []
    for language in ("de", "en_US", "th"):
        monkeypatch.setenv("LANGUAGE", language)
        found.append(CalendarInputs.fit((), (), Holidays("DE"), DAYS))
    assert found[0] == found[1] == found[2]
    assert "holiday: Good Friday" in found[0].names


@pytest.mark.parametrize("code", ["XX", "US-ZZ", "us"])
def test_an_unknown_country_is_named(code):
    pytest.importorskip("holidays")
    with pytest.raises(ValueError, match=f"does not know holidays='{code}' .* such as 'US-CA'"):
        CalendarInputs.fit((), (), Holidays(code), DAYS)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "holidays", None)
    assert CalendarInputs.fit(("day",), (), None, DAYS).matrix(DAYS).shape[1] == 31
    with pytest.raises(ImportError, match=r"pip install 'rbfdiffnet\[calendar\]'"):
        CalendarInputs.fit((), (), Holidays("US"), DAYS)


def test_json_restores_the_calendar():
    pytest.importorskip("holidays")
    events = (Event("a", ["2024-05-01"], lead=1), Event("b", [date(2024, 1, 2), "2025-01-02"]))
    calendar = CalendarInputs.fit(["day"], events, Holidays("US-CA", lead=1), DAYS)
    restored = CalendarInputs.from_json(json.loads(json.dumps(calendar.to_json())))
    assert restored == calendar
    np.testing.assert_array_equal(restored.matrix(DAYS), calendar.matrix(DAYS))


def test_weekdays_without_values_are_named():
    days = pd.date_range("2024-01-01", periods=60)
    kept = [days[days.day_of_week != 6], days, days[days.day_of_week == 2], days[:20:7]]
    series = np.repeat(np.arange(4), [len(part) for part in kept])
    closed = find_closed_weekdays(series, np.concatenate([part.to_numpy() for part in kept]), 5)
    found = [name_weekdays(row) for row in closed]
    assert found[:2] == ["Sundays", ""]
    assert found[2] == "Mondays, Tuesdays, Thursdays, Fridays, Saturdays and Sundays"
    assert found[3:] == ["", ""]  # too short, and none


def test_days_are_daily_and_business_days_are_not():
    assert [is_daily(Frequency.parse(f)) for f in ("D", "B", "W", "MS", 1)] == [True] + 4 * [False]
    assert not is_daily(None)
