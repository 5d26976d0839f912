"""What the calendar says about a date: its weekday or hour, events and holidays, as 0/1 columns.

Every column is known for any date, past or future. Events and holidays belong to whole days: all
hours of a day share them, and days before and after one can get columns of their own. Weekdays on
which a daily series never has a value, such as Sundays of a closed shop, are found here, too.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from itertools import chain
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.frequency import DAY, Frequency
from rbfdiffnet.support.arrays import Array, Arrays, Ints, Mask
from rbfdiffnet.support.checks import is_number

Dates = npt.NDArray[np.datetime64]

_MOST_DAYS = 366  # before and after an event
_HOUR = 3600.0
_DAY = 24 * _HOUR
_WEEKDAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")
_SHORTEST = 28  # days that a series must span before it can have closed weekdays
_LATEST = 1000  # days that tell them, as many as files of models keep at least


class _CalendarPart(NamedTuple):
    """Values of a calendar part, the steps it is sensible for, and its cycle, all in seconds."""

    values: range
    shortest_step: float
    step_below: float
    cycle: float


_PARTS = {
    "minute": _CalendarPart(range(60), 0.0, _HOUR, _HOUR),
    "hour": _CalendarPart(range(24), 0.0, _DAY, _DAY),
    "dayofweek": _CalendarPart(range(7), 0.0, 7 * _DAY, 7 * _DAY),
    "day": _CalendarPart(range(1, 32), _DAY, 7 * _DAY, 30 * _DAY),
    # 53 columns with one value a year each say less than the month: only on request.
    "weekofyear": _CalendarPart(range(1, 54), math.inf, math.inf, 365 * _DAY),
    "month": _CalendarPart(range(1, 13), 0.0, 45 * _DAY, 365 * _DAY),
    "quarter": _CalendarPart(range(1, 5), 45 * _DAY, 365 * _DAY, 365 * _DAY),
}


def choose_calendar_parts(step_seconds: float, span_seconds: float = math.inf) -> tuple[str, ...]:
    """Choose the calendar parts that are sensible for series with a given step and span.

    Parts that do not change from step to step are left out, and so are parts whose cycle the
    series do not contain twice: one year cannot tell a month's effect from chance.
    """
    if not step_seconds > 0:
        raise ValueError(f"step_seconds must be positive, got {step_seconds}.")
    return tuple(
        name
        for name, part in _PARTS.items()
        if part.shortest_step <= step_seconds < part.step_below and span_seconds >= 2 * part.cycle
    )


@dataclass(frozen=True)
class Event:
    """Something that happens on certain days, and may be felt before and after.

    Parameters
    ----------
    name : str
        What the event is called; its columns get this name.
    dates : sequence of dates
        Its days, past and future: text, ``date``, ``datetime64``, or whatever else pandas reads
        as a date. They are kept as a sorted tuple of ``datetime.date``.
    lead, lag : int, default=0
        How many days before and after get a column of their own.

    Examples
    --------
    >>> from rbfdiffnet.panel.calendar import Event
    >>> event = Event("christmas", ["2024-12-25", "2023-12-25 18:00"], lead=1)
    >>> event.dates
    (datetime.date(2023, 12, 25), datetime.date(2024, 12, 25))
    >>> event.names
    ('christmas-1', 'christmas')
    """

    name: str
    dates: Sequence[Any]
    lead: int = 0
    lag: int = 0

    def __post_init__(self) -> None:
        """Check the settings and bring the dates to days."""
        if not isinstance(self.name, str):
            raise ValueError(f"The name of an event must be a text; got {self.name!r}.")
        given: Any = self.dates
        if isinstance(given, np.ndarray) and not given.ndim:
            given = given[()]
        single = isinstance(given, str) or not isinstance(given, Iterable)
        days = {self._day(value) for value in ([given] if single else given)}
        if not days:
            raise ValueError(f"Event {self.name!r} has no dates; give at least one.")
        _settle_days(self, f"Event {self.name!r}")
        object.__setattr__(self, "dates", tuple(sorted(days)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its columns, from the first day before to the last day after."""
        return _names_around(self.name, self.lead, self.lag)

    def _day(self, value: Any) -> date:
        import pandas as pd

        # Pandas would take a number for nanoseconds since 1970.
        number = isinstance(value, int | float | np.number)
        try:
            read = pd.NaT if number else pd.to_datetime(value, errors="coerce")
        except (TypeError, ValueError, OverflowError):
            read = pd.NaT
        if isinstance(read, pd.Timestamp):
            return read.date()
        raise ValueError(
            f"Event {self.name!r}: {value!r} is not a date; write dates like '2024-12-25'."
        )


@dataclass(frozen=True)
class Holidays:
    """Public holidays of a country, and days around them.

    Parameters
    ----------
    country : str
        A country ("US") or a subdivision ("US-CA") that the package ``holidays`` knows.
    lead, lag : int, default=0
        How many days before and after each holiday get a column of their own.

    Examples
    --------
    >>> from rbfdiffnet import Holidays, RBFDiffNet
    >>> model = RBFDiffNet("D", holidays=Holidays("US", lead=1))
    """

    country: str
    lead: int = 0
    lag: int = 0

    def __post_init__(self) -> None:
        """Check the settings."""
        if not isinstance(self.country, str):
            raise ValueError(f"holidays must be a country such as 'US'; got {self.country!r}.")
        _settle_days(self, "Holidays")


def as_holidays(given: Any) -> Holidays | None:
    """Return holidays that may be given as a country alone, or not at all."""
    return given if given is None or isinstance(given, Holidays) else Holidays(given)


@dataclass(frozen=True)
class CalendarInputs:
    """Turns dates into 0/1 columns.

    Each of the `parts` has one column for each value, numbered as in pandas (Monday is 0); weeks
    are those of ISO 8601. The `holidays` in `holiday_names`, in English where their package can,
    have columns. `new_events` are the columns of events of which no day was there in training.
    """

    parts: tuple[str, ...]
    events: tuple[Event, ...] = ()
    holidays: Holidays | None = None
    holiday_names: tuple[str, ...] = ()
    new_events: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the settings."""
        for part in self.parts:
            if not isinstance(part, str) or part not in _PARTS:
                raise ValueError(
                    f"Unknown calendar part {part!r}; choose from {', '.join(_PARTS)}."
                )
        names = self.names
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(
                f"Two calendar inputs are called {twice!r}; give parts and events distinct names."
            )

    @classmethod
    def fit(
        cls,
        parts: Iterable[str],
        events: Iterable[Event],
        holidays: Holidays | None,
        dates: Dates,
    ) -> Self:
        """Return the inputs with a column for every holiday that falls on one of the dates.

        Other holidays, such as one introduced later, have no known effect and get no column.
        """
        days = _check_dates(dates).astype("datetime64[D]")
        found = {} if holidays is None else _find_holidays(holidays.country, days)
        seen = tuple(
            sorted(name for name in found if _mark_days_around(days, found[name], 0, 0).any())
        )
        calendar = cls(tuple(parts), tuple(events), holidays, seen)
        return replace(calendar, new_events=calendar.find_new(dates))

    def find_new(self, dates: Dates) -> tuple[str, ...]:
        """Return the columns of events of which no day is among the dates."""
        days, found = _check_dates(dates).astype("datetime64[D]"), []
        for event in self.events:
            marks = _mark_days_around(days, event.dates, event.lead, event.lag)
            found += [name for name, own in zip(event.names, marks.T, strict=True) if not own.any()]
        return tuple(found)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        parts = [f"{part}={value}" for part in self.parts for value in _PARTS[part].values]
        events = [event.names for event in self.events]
        lead, lag = (self.holidays.lead, self.holidays.lag) if self.holidays else (0, 0)
        holidays = [_names_around(f"holiday: {name}", lead, lag) for name in self.holiday_names]
        return tuple(chain(parts, *events, *holidays))

    def matrix(self, dates: Dates) -> Array:
        """Return the columns, shape (n, len(names)), for dates of shape (n,)."""
        times = _check_dates(dates)
        days = times.astype("datetime64[D]")
        values = _part_values(times)
        around = [(event.dates, event.lead, event.lag) for event in self.events]
        if self.holidays is not None and self.holiday_names:
            found = _find_holidays(self.holidays.country, days)
            lead, lag = self.holidays.lead, self.holidays.lag
            around += [(found.get(name, []), lead, lag) for name in self.holiday_names]
        switches = [np.equal.outer(values[part], _PARTS[part].values) for part in self.parts]
        marks = [_mark_days_around(days, *event) for event in around]
        return np.hstack([np.empty((len(days), 0)), *switches, *marks])

    def to_json(self) -> dict[str, Any]:
        """Return the settings as a dictionary that can be written as JSON."""
        events = [
            asdict(event) | {"dates": [day.isoformat() for day in event.dates]}
            for event in self.events
        ]
        return asdict(self) | {"events": events}

    @classmethod
    def from_json(cls, settings: Mapping[str, Any]) -> Self:
        """Return the inputs that `to_json` described."""
        events = tuple(Event(**event) for event in settings["events"])
        tuples = {
            name: tuple(settings.get(name, ())) for name in ("parts", "holiday_names", "new_events")
        }
        days = settings["holidays"]
        holidays = None if days is None else Holidays(**days)
        return cls(**{**settings, **tuples, "events": events, "holidays": holidays})


def _part_values(times: Dates) -> Arrays:
    """Return the value of each calendar part at each time."""
    minutes, hours, days, months = (times.astype(f"datetime64[{unit}]") for unit in "mhDM")
    weekday = weekday_numbers(times)
    month = months.astype(np.int64) % 12
    # An ISO week belongs to the year of its Thursday.
    thursday = days + (3 - weekday)
    return {
        "minute": (minutes - hours).astype(np.int64),
        "hour": (hours - days).astype(np.int64),
        "dayofweek": weekday,
        "day": (days - months).astype(np.int64) + 1,
        "weekofyear": (thursday - thursday.astype("datetime64[Y]")).astype(np.int64) // 7 + 1,
        "month": month + 1,
        "quarter": month // 3 + 1,
    }


def _mark_days_around(days: Dates, centers: Sequence[date], lead: int, lag: int) -> Mask:
    """Mark the days `lead` days before a center, ..., on a center, ..., `lag` days after one."""
    known = np.array(centers, dtype="datetime64[D]")
    return np.column_stack([np.isin(days, known + shift) for shift in _days_around(lead, lag)])


def _names_around(name: str, lead: int, lag: int) -> tuple[str, ...]:
    return tuple(f"{name}{shift:+d}" if shift else name for shift in _days_around(lead, lag))


def _days_around(lead: int, lag: int) -> range:
    return range(-lead, lag + 1)


def _settle_days(of: Event | Holidays, name: str) -> None:
    """Make lead and lag plain integers, small types of NumPy overflow; or name what is wrong."""
    for side in ("lead", "lag"):
        value = getattr(of, side)
        if not (is_number(value, Integral) and 0 <= value <= _MOST_DAYS):
            raise ValueError(
                f"{name}: {side} counts days, a whole number from 0 to {_MOST_DAYS}; got {value!r}."
            )
        object.__setattr__(of, side, int(value))


def _check_dates(dates: Dates) -> Dates:
    times = np.asarray(dates)
    if times.dtype.kind != "M":
        raise ValueError(
            f"Calendar inputs need dates as datetime64, got {times.dtype}; "
            "convert the dates, or leave calendar inputs out where time is counted in steps."
        )
    missing = np.isnat(times)
    if missing.any():
        raise ValueError(f"The date at position {missing.argmax()} is missing; fill it in.")
    return times


def _find_holidays(code: str, days: Dates) -> dict[str, list[date]]:
    """Return the days of each holiday, from a year before the first day to a year after the last.

    Names are in English. By default they would be in the language of the machine, and a model
    fitted on one machine would not find them on another.
    """
    try:
        from holidays import country_holidays
    except ImportError as error:
        raise ImportError(
            f"holidays={code!r} needs a package: pip install 'rbfdiffnet[calendar]'."
        ) from error
    if not len(days):
        return {}
    years = range(days.min().astype(object).year - 1, days.max().astype(object).year + 2)
    country, _, subdivision = code.partition("-")
    try:
        table = country_holidays(country, subdivision or None, years=years, language="en_US")
    except NotImplementedError as error:
        raise ValueError(
            f"The package 'holidays' does not know holidays={code!r} ({error}); "
            "give a country such as 'US', or one with a subdivision such as 'US-CA'."
        ) from error
    found: dict[str, list[date]] = {}
    for day in table:
        for name in table.get_list(day):  # two may fall on one day
            found.setdefault(name, []).append(day)
    return found


# Weekdays without values ----------------------------------------------------------------------


def is_daily(frequency: Frequency | None) -> bool:
    """Tell whether a step is a day, weekends included."""
    return frequency is not None and frequency.kind == "tick" and frequency.n == DAY


def weekday_numbers(dates: npt.NDArray[Any]) -> Ints:
    """Return the weekdays of dates, 0 for Mondays."""
    days: Ints = dates.astype("M8[D]").astype(np.int64)
    return (days + 3) % 7  # 1970 began on a Thursday


def find_closed_weekdays(series: Ints, dates: npt.NDArray[Any], n: int) -> Mask:
    """Return which weekdays of each series have no value, shape (n, 7), Mondays first.

    `series` and `dates` are those of the known values, of which the latest 1,000 days count. Series
    of less than four weeks have no such weekdays.
    """
    days = dates.astype("M8[D]").astype(np.int64)
    first, last = np.full(n, np.iinfo(np.int64).max), np.full(n, np.iinfo(np.int64).min)
    np.minimum.at(first, series, days)
    np.maximum.at(last, series, days)
    late = days > last[series] - _LATEST
    cells = (series * 7 + weekday_numbers(dates))[late]
    open_ = np.bincount(cells, minlength=7 * n).reshape(n, 7) > 0
    long = (last >= first) & (last - first >= _SHORTEST - 1)
    return np.asarray(~open_ & long[:, None])


def name_weekdays(chosen: Mask) -> str:
    """Return the names of weekdays in words."""
    names = [name for name, is_chosen in zip(_WEEKDAYS, chosen, strict=True) if is_chosen]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def describe_closed(closed: Mask) -> str:
    """Say on which weekdays a series has no values."""
    return f"no values on {name_weekdays(closed)}"
