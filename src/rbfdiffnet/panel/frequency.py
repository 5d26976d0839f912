"""One step of time: read from an alias, or inferred from dates."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from datetime import timedelta
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.support.arrays import Ints
from rbfdiffnet.support.checks import is_number

DAY = 86_400_000_000_000  # nanoseconds
_MINUTE = 60_000_000_000
_LARGEST = 2**61  # whole number that is a step
# Unit: (kind, size of a step, steps in a season, counted in wall time).
_UNITS: dict[str, tuple[str, int, int, bool]] = {
    "ns": ("tick", 1, 1, False),
    "us": ("tick", 1_000, 1, False),
    "ms": ("tick", 1_000_000, 1, False),
    "s": ("tick", 1_000_000_000, 60, False),
    "min": ("tick", _MINUTE, 60, False),
    "h": ("tick", 60 * _MINUTE, 24, False),
    "D": ("tick", DAY, 7, True),
    "W": ("tick", 7 * DAY, 52, True),
    "MS": ("month", 1, 12, True),
    "QS": ("month", 3, 4, True),
    "YS": ("month", 12, 1, True),
}
# Other names of these units: today's pandas, yesterday's pandas, polars.
_SYNONYMS = {
    **{"N": "ns", "U": "us", "L": "ms", "S": "s", "T": "min", "H": "h"},
    **{"ME": "MS", "M": "MS", "QE": "QS", "Q": "QS", "YE": "YS", "Y": "YS", "AS": "YS", "A": "YS"},
    **{"m": "min", "d": "D", "w": "W", "mo": "MS", "q": "QS", "y": "YS"},
}
_WEEKDAYS = "SUN|MON|TUE|WED|THU|FRI|SAT"
_MONTHS = "JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC"
_ALIAS = re.compile(
    rf"(?P<n>\d*)(?P<unit>{'|'.join([*_UNITS, *_SYNONYMS])})"
    rf"(?:(?<=W)-(?:{_WEEKDAYS})|(?:(?<=[QYA])|(?<=[QYA][SE]))-(?:{_MONTHS}))?"
)
# How pandas calls the same units: classes of offsets, and arguments of a DateOffset.
_CLASSES = {
    **{"Nano": "ns", "Micro": "us", "Milli": "ms", "Second": "s", "Minute": "min", "Hour": "h"},
    **{"Day": "D", "Week": "W", "MonthBegin": "MS", "MonthEnd": "ME", "QuarterBegin": "QS"},
    **{"QuarterEnd": "QE", "YearBegin": "YS", "YearEnd": "YE"},
}
_ARGUMENTS = {
    **{"years": "y", "months": "mo", "weeks": "w", "days": "d"},
    **{"hours": "h", "minutes": "min", "seconds": "s"},
}
# Part of the class name of any other pandas offset: steps in a season.
_SEASONS = {"SemiMonth": 24, "Month": 12, "Quarter": 4, "BusinessDay": 5}
# From so many minutes a step on, the season is a day: two steps an hour are no season.
_MINUTES_A_DAY_FROM = 10


@dataclass(frozen=True)
class Frequency:
    """One step of time.

    The kind is "integer", "tick" (a fixed time), "month" or "offset" (any other pandas offset, of
    which `offset` is a single step). `n` is the size of the step in whole numbers, nanoseconds,
    months or offsets. `season_length` is the usual number of steps in a season, 1 where there is
    none. `wall` tells whether steps follow the clock on the wall rather than UTC, as days and
    longer steps do.
    """

    alias: str = field(compare=False)
    kind: str
    n: int
    season_length: int = 1
    wall: bool = True
    offset: Any = None

    @classmethod
    def parse(cls, freq: Any) -> Frequency:
        """Read a pandas alias or offset, a polars alias, or a whole number.

        Weeks, months, quarters and years are lengths only: "W-SUN" and "W" are the same, since the
        day on which they begin is taken from the data.
        """
        if isinstance(freq, Frequency):
            return freq
        if is_number(freq, Integral):
            if not 1 <= freq <= _LARGEST:
                raise _not_a_frequency(freq)
            return cls(str(freq), "integer", int(freq))
        if isinstance(freq, str) and freq == "m":  # a minute to polars, once a month to pandas
            raise _not_a_frequency(freq)
        if isinstance(freq, timedelta) and not freq % timedelta(days=1):
            freq = f"{freq.days}D"  # pandas would count hours, without a season
        if isinstance(freq, str) and (match := _ALIAS.fullmatch(freq)):
            return cls._of_unit(freq, int(match["n"] or 1), match["unit"])
        return cls._of_offset(freq)

    @classmethod
    def infer(cls, times: npt.NDArray[Any], codes: Ints) -> Frequency | None:
        """Find the step that most dates agree on; None where no step fits at least half of them.

        `times` are dates (wall time) or whole numbers, in any order; `codes` are their series.
        """
        if times.dtype.kind == "M":
            times = times.astype("M8[ns]")
        order = np.lexsort((times, codes))
        times, codes = times[order], codes[order]
        pair = (codes[1:] == codes[:-1]) & (times[1:] > times[:-1])
        before, after = times[:-1][pair], times[1:][pair]
        if not len(before):
            return None
        gaps = (after - before).astype(np.int64)
        step = _most_frequent(gaps)
        share = np.mean(gaps % step == 0)
        if times.dtype.kind != "M":
            return cls.parse(step) if share >= 0.5 else None

        month_share, months = _infer_months(before, after)
        if months and month_share >= max(share, 0.5):
            return cls.parse(months)
        if share < 0.5:
            return None
        return cls.parse(
            "B" if step == DAY and _skips_weekends(before, after) else _tick_alias(step)
        )

    @classmethod
    def _of_unit(cls, alias: str, count: int, unit: str) -> Frequency:
        if count < 1:
            raise _not_a_frequency(alias)
        unit = _SYNONYMS.get(unit, unit)
        kind, size, season, wall = _UNITS[unit]
        if unit == "min" and count >= _MINUTES_A_DAY_FROM:
            season = 24 * 60
        return cls(alias, kind, count * size, _steps_in_season(season, count), wall)

    @classmethod
    def _of_offset(cls, freq: Any) -> Frequency:
        from pandas import DateOffset
        from pandas.tseries.frequencies import to_offset

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old aliases are welcome
            try:
                offset: Any = to_offset(freq)
            except (TypeError, ValueError) as error:
                raise _not_a_frequency(freq) from error
        if offset is None or offset.n < 1:
            raise _not_a_frequency(freq)

        name = type(offset).__name__
        if name in _CLASSES:
            return cls._of_unit(offset.freqstr, offset.n, _CLASSES[name])
        if type(offset) is DateOffset:
            if len(offset.kwds) != 1 or not offset.kwds.keys() <= _ARGUMENTS.keys():
                raise _not_a_frequency(freq)
            ((argument, value),) = offset.kwds.items()
            return cls.parse(f"{offset.n * value}{_ARGUMENTS[argument]}")
        season = next((steps for part, steps in _SEASONS.items() if part in name), 1)
        return cls(
            offset.freqstr,
            "offset",
            offset.n,
            _steps_in_season(season, offset.n),
            offset=offset.base,
        )


def _not_a_frequency(freq: Any) -> ValueError:
    return ValueError(
        f"freq={freq!r} is not a frequency; pass a pandas or polars alias such as 'D', 'W', 'MS', "
        "'QS', 'YS', 'h', '15min', 'B', '1d' or '1mo', or a whole number such as 1 where the "
        "times are whole numbers."
    )


def _steps_in_season(season: int, count: int) -> int:
    return season // count if season % count == 0 else 1


def _most_frequent(values: Ints) -> int:
    distinct, counts = np.unique(values, return_counts=True)
    return int(distinct[counts.argmax()])


def _infer_months(
    before: npt.NDArray[np.datetime64], after: npt.NDArray[np.datetime64]
) -> tuple[float, str]:
    """Return the share of pairs a whole number of months apart, and the alias of that step."""
    (m0, d0, end0, clock0), (m1, d1, end1, clock1) = (_place_in_month(t) for t in (before, after))
    ends = end0 & end1
    same = (clock0 == clock1) & (ends | (d0 == d1))
    if not same.any():
        return 0.0, ""
    months = m1 - m0
    step = _most_frequent(months[same])
    unit, size = next((u, s) for u, s in (("Y", 12), ("Q", 3), ("M", 1)) if step % s == 0)
    count = step // size
    alias = f"{'' if count == 1 else count}{unit}{'E' if ends[same].all() else 'S'}"
    return float(np.mean(same & (months % step == 0))), alias


def _place_in_month(times: npt.NDArray[np.datetime64]) -> tuple[npt.NDArray[Any], ...]:
    """Return months, days in the month, whether these are its last days, and times of day."""
    days, months = times.astype("M8[D]"), times.astype("M8[M]")
    ends = (days + 1).astype("M8[M]") > months
    return months.astype(np.int64), days - months.astype("M8[D]"), ends, times - days


def _skips_weekends(before: npt.NDArray[np.datetime64], after: npt.NDArray[np.datetime64]) -> bool:
    """Tell whether all dates are business days and some steps lead over a weekend."""
    first, second = before.astype("M8[D]"), after.astype("M8[D]")
    if not np.is_busday(np.concatenate([first, second])).all():
        return False
    next_days = np.busday_count(first, second) == 1
    return bool(np.any(next_days & (second - first > np.timedelta64(1, "D"))))


def _tick_alias(step: int) -> str:
    sizes = [(unit, size) for unit, (kind, size, _, _) in _UNITS.items() if kind == "tick"]
    unit, size = next((unit, size) for unit, size in reversed(sizes) if step % size == 0)
    return unit if step == size else f"{step // size}{unit}"
