"""Dates as people write them: 2024-01-31, 31.1.2024, 1/31/2024, 202401, 2024Q1, d_17."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.readers.regular import filled, ordered, tidier
from rbfdiffnet.readers.words import month_number

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ORDERS", "Times", "parse_times"]

_COUNTED = re.compile(r"([A-Za-z][A-Za-z _-]*?)[ _-]?(\d{1,9})")
_TRIPLE = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})(?=$|[ T])(.*)")
_YEAR_FIRST = re.compile(r"(\d{4})([./-])(\d{1,2})\2(\d{1,2})(?=$|[ T])(.*)")
_UNORDERED = re.compile(r"\d{1,2}[ ./-]+\d{1,2}[ ./-]+\d{2,4}.*")
_MONTH_YEAR = re.compile(r"(\d{1,2})[./-](\d{4})")
_NAME_YEAR = re.compile(r"([^\W\d_]{3,12})\.?[-' ]+(\d{2})")
_QUARTER = re.compile(r"(\d{4})[-/ ]*[QT]([1-4])|[QT]([1-4])[-/ ]*(\d{4})")
_WORD = r"(?:w|kw|cw|wk|week|woche|semaine)"
_WEEK = re.compile(
    rf"\d{{4}}[-/ ]*{_WORD}[- ]?\d{{1,2}}|{_WORD}[-. ]*\d{{1,2}}[-/. ]+\d{{4}}", re.IGNORECASE
)
_PAIR = re.compile(r"\d{4}[-/. ]\d{1,2}|\d{1,2}[-/. ]\d{4}")
_OFFSET = re.compile(r".*\d[+-](?!00:?00)\d{2}:?\d{2}")
# What pandas may try its hand at; it would take a lone 'may' for a date, too.
_DATE = re.compile(r".*(\d{4}|\d{1,2}[- ][A-Za-z]{3,9}[- ,]+\d{2}).*")
# Words that it would pass over: H1 2024 is no day of January.
_OTHER = re.compile(
    r"(?<![^\W\d_])(?!(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|st|nd|rd|th|am|pm|utc|gmt"
    r"|(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?)(?![^\W\d_])|(?<=\d)[TZ])"
    r"[^\W\d_]",
    re.IGNORECASE,
)
ORDERS = {"dmy": "day, month, year", "mdy": "month, day, year", "ymd": "year, month, day"}
_DAY_FIRST = {".": "dmy", "-": "dmy", "/": "mdy"}
_NAMES = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


@dataclass(frozen=True)
class Times:
    """A column of dates or whole numbers.

    Parameters
    ----------
    values : Series
        Dates or whole numbers.
    bad : ndarray of int
        The rows that are neither; their values mean nothing.
    note : str
        What was assumed, empty where nothing was.
    hint : str
        What is wrong with the bad rows, where there is more to say than that they are no dates.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.dates import parse_times
    >>> parse_times(pd.Series(["d_1", "d_2"])).integer
    True
    """

    values: pd.Series[Any]
    bad: npt.NDArray[np.int64]
    note: str = ""
    hint: str = ""

    @property
    def integer(self) -> bool:
        """Whether these are whole numbers."""
        return self.values.dtype.kind in "iu"


def parse_times(cells: pd.Series[Any], order: str | None = None, *, weeks: bool = False) -> Times:
    """Read a column as dates, or as whole numbers that count steps.

    Of whole numbers, years (2024), months (202401) and days (20240131, 31012024) are dates. Where
    the days of 1/2/2024 could all be months, the reading that gives the more regular dates is
    taken; if that does not tell, points and hyphens mean that days come first, slashes that months
    do.

    Parameters
    ----------
    cells : Series
    order : {"dmy", "mdy", "ymd"}, optional
        Whether days, months or two-digit years come first.
    weeks : bool, default=False
        Whether 202401 and 01/2024 are weeks rather than months.

    Returns
    -------
    Times

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.dates import parse_times
    >>> parse_times(pd.Series(["13.1.2024", "14.1.2024"])).values.dt.day.tolist()
    [13, 14]
    >>> parse_times(pd.Series(["1/2/2024", "1/3/2024"])).note
    "Dates such as '1/2/2024' are read as month, day, year (otherwise: --dates dmy)"
    """
    import pandas as pd

    kind = cells.dtype.kind
    if kind == "M":
        return Times(cells, np.flatnonzero(cells.isna()))
    if kind in "iu":
        return _of_integers(cells, order, weeks)
    codes, distinct = pd.factorize(cells)
    if not len(distinct):
        return Times(pd.Series(cells.to_numpy(dtype="M8[ns]")), np.arange(len(cells)))
    if kind == "f" and np.isfinite(distinct).all() and np.all(distinct == np.rint(distinct)):
        found = _of_integers(pd.Series(distinct.astype(np.int64)), order, weeks)
    else:
        found = _of_text([str(cell).strip() for cell in distinct], order, weeks)
    failed = np.zeros(len(distinct) + 1, dtype=bool)
    failed[found.bad] = True
    failed[-1] = True  # the code of missing cells is -1, and what they get below is not used
    values = found.values.take(np.maximum(codes, 0)).reset_index(drop=True)
    return Times(values, np.flatnonzero(failed[codes]), found.note, found.hint)


def _of_integers(numbers: pd.Series[Any], order: str | None, weeks: bool) -> Times:
    """Years, months and days written as numbers, or numbers of steps."""
    import pandas as pd

    values = numbers.to_numpy()
    none = np.empty(0, dtype=np.int64)
    years = {4: values, 6: values // 100, 8: values // 10_000}
    for digits, form in ((4, "%Y"), (6, "%Y%m"), (8, "%Y%m%d")):
        year = years[digits]
        if digits == 6 and weeks:
            continue
        if values.size and ((year >= 1700) & (year < 2262)).all():
            dates = pd.to_datetime(numbers.astype(str), format=form, errors="coerce")
            if not dates.isna().any():
                return Times(dates.dt.as_unit("ns"), none)
    year, week = values // 100, values % 100
    if values.size and ((year >= 1700) & (year < 2262) & (week >= 1) & (week <= 53)).all():
        mondays = _mondays(zip(year.tolist(), week.tolist(), strict=True))
        if not mondays.isna().any():
            return Times(mondays, none, f"Numbers such as {values[0]} are read as years and weeks")
    if (found := _of_eight(numbers, order)) is not None:
        return found
    if values.size and (values >= 10_101).all() and (values <= 991_231).all():
        short = numbers.astype(str).str.zfill(6)
        dates = pd.to_datetime(short, format="%y%m%d", errors="coerce")
        if not dates.isna().any() and np.ptp(values) >= len(values):
            note = f"Numbers such as {values[0]} are read as year, month, day"
            return Times(dates.dt.as_unit("ns"), none, note)
    return Times(numbers.astype(np.int64), none)


def _of_eight(numbers: pd.Series[Any], order: str | None) -> Times | None:
    """Read 31012024 and 1022024, whose zero was lost, where all of them are such dates."""
    values = numbers.to_numpy()
    year = values % 10_000
    fits = (values >= 1_010_000) & (values < 100_000_000) & (year >= 1700) & (year < 2262)
    if not (values.size and fits.all()):
        return None
    digits = numbers.astype(str).str.zfill(8)
    found = _of_triples([f"{cell[:2]}.{cell[2:4]}.{cell[4:]}" for cell in digits], order)
    if len(found.bad):
        return found if found.hint else None
    if found.note:
        note = re.sub(r"(\d\d)\.(\d\d)\.(\d{4})", r"\1\2\3", found.note)
    else:
        row = int(np.argmax(found.values.dt.day))
        date = f"{found.values.iloc[row]:%Y-%m-%d}"
        note = f"Numbers such as {digits.iloc[row]} are read as dates, this one as {date}"
    return replace(found, note=note)


def _of_text(cells: list[str], order: str | None, weeks: bool) -> Times:
    """Read distinct cells."""
    import pandas as pd

    none = np.empty(0, dtype=np.int64)
    counted = [_COUNTED.fullmatch(cell) for cell in cells]
    if cells and all(counted) and len({match[1] for match in counted if match}) == 1:
        return Times(pd.Series([int(match[2]) for match in counted if match]), none)
    if cells and all(re.fullmatch(r"\d{1,9}", cell) for cell in cells):
        return _of_integers(pd.Series([int(cell) for cell in cells]), order, weeks)
    if cells and (found := _of_weeks(cells, weeks)) is not None:
        return found
    if cells and all(_NAME_YEAR.fullmatch(cell) for cell in cells):
        return _of_names(cells)
    if any(_TRIPLE.fullmatch(cell) for cell in cells):
        found = _of_triples(cells, order)
    else:
        found = _checked(_by_pandas([_year_first(cell) for cell in cells]))
    zone = getattr(found.values.dt, "tz", None)
    if not found.note and str(zone) == "UTC" and any(_OFFSET.fullmatch(cell) for cell in cells):
        return replace(found, note="Times have different offsets from UTC: they are given in UTC")
    return found


def _of_weeks(cells: list[str], weeks: bool) -> Times | None:
    """Read weeks of years; nothing where some cell is none."""
    for form in (_WEEK, *([_PAIR] if weeks else [])):
        if all(form.fullmatch(cell) for cell in cells):
            pairs = [sorted(re.findall(r"\d+", cell), key=len) for cell in cells]
            mondays = _mondays((int(year), int(week)) for week, year in pairs)
            note = "" if form is _WEEK else f"'{cells[0]}' and the like are read as weeks"
            return replace(_checked(mondays), note=note)
    return None


def _mondays(weeks: Iterable[tuple[int, int]]) -> pd.Series[Any]:
    """Return the Mondays of the weeks of years, as ISO 8601 counts them."""
    import pandas as pd

    pairs = list(weeks)
    days = [f"{year}-{week:02d}-1" for year, week in pairs]
    read = pd.to_datetime(days, format="%G-%V-%u", errors="coerce")
    dates = _nanoseconds(pd.Series(read))
    same = dates.dt.isocalendar().week.to_numpy(dtype=np.float64, na_value=np.nan)
    return dates.where(same == [week for _, week in pairs])  # not all years have 53


def _of_names(cells: list[str]) -> Times:
    """Read Jan-24 as a month of a year, unless the numbers could as well be days."""
    import pandas as pd

    pairs = [match for cell in cells if (match := _NAME_YEAR.fullmatch(cell))]
    months = [month_number(match[1]) for match in pairs]
    years = [int(match[2]) + (1900 if int(match[2]) > 68 else 2000) for match in pairs]
    texts = [
        f"{year}-{month:02d}-01" if month else "" for year, month in zip(years, months, strict=True)
    ]
    dates = _by_pandas(texts)
    known = dates.dropna()
    if ordered(known) or any(not 1 <= int(match[2]) <= 31 for match in pairs):
        return _checked(dates)
    hint = "may be a day or a month of a year"
    return Times(pd.Series(dates), np.arange(len(cells)), hint=hint)


def _of_triples(cells: list[str], order: str | None) -> Times:
    """Read dates whose day and month are both numbers, and of which the year may be short."""
    triples = [match for cell in cells if (match := _TRIPLE.fullmatch(cell))]
    readings = {
        name: _by_pandas([_turned(cell, name) or _year_first(cell) for cell in cells])
        for name in ORDERS
    }
    if order is not None:
        return _checked(readings[order])
    failures = {name: int(dates.isna().sum()) for name, dates in readings.items()}
    by_year = failures.pop("ymd")
    best = min(failures, key=lambda name: failures[name])
    other = "mdy" if best == "dmy" else "dmy"
    if by_year < failures[best]:
        return _noted(readings["ymd"], triples[0][0], "ymd", best)
    if failures["dmy"] == failures["mdy"] and not readings["dmy"].equals(readings["mdy"]):
        usual = _DAY_FIRST[triples[0][2]]
        first, second = usual, "mdy" if usual == "dmy" else "dmy"
        more = filled(readings[second]) > filled(readings[first]) + 1e-9
        best, other = (second, first) if more else (first, second)
        told = False
    else:
        told = True
    if by_year == failures[best]:  # 23-01-31: is 23 the year?
        last, year = filled(readings[best]), filled(readings["ymd"])
        if year > last + 1e-9:
            return _noted(readings["ymd"], triples[0][0], "ymd", best)
        if triples[0][2] == "-" and year > last - 1e-9:
            hint = "may have its year first or last (say which with --dates)"
            return Times(readings[best], np.arange(len(cells)), hint=hint)
    if (turned := _flipped(cells, readings[best], told)) is not None:
        return turned
    if told:
        return _checked(readings[best])
    example = next(match[0] for match in triples if int(match[1]) != int(match[3]))
    return _noted(readings[best], example, best, other)


def _flipped(cells: list[str], dates: pd.Series[Any], told: bool) -> Times | None:
    """Refuse dates of which a program exchanged day and month where it could; note two forms.

    That leaves 2024-02-01, the second of January, beside 13/01/2024.
    """
    import pandas as pd

    sound = dates.dropna().dt.tz_localize(None)
    day, month = sound.dt.day, sound.dt.month
    small = day <= 12
    fixed = [i for i in sound.index[~small] if _TRIPLE.fullmatch(cells[i])]
    either = sound.index[small & (day != month)].to_numpy()
    others = [i for i in sound.index if _YEAR_FIRST.fullmatch(cells[i])]
    if not (fixed and either.size and (told or others)):
        return None
    parts = {
        "year": sound.dt.year,
        "month": day.where(small, month),
        "day": month.where(small, day),
    }
    turned = pd.to_datetime(pd.DataFrame(parts)) + (sound - sound.dt.normalize())
    if tidier(turned, sound):
        hint = (
            f"may have its day and month exchanged, unlike '{cells[fixed[0]]}': the dates would be "
            "more regular so (if they are right, say --dates)"
        )
        return Times(dates, either, hint=hint)
    if not others:
        return None
    first, second = cells[others[0]], cells[fixed[0]]
    note = f"Dates are written in two ways, such as '{first}' and '{second}'"
    return replace(_checked(dates), note=note)


def _noted(dates: pd.Series[Any], example: str, order: str, other: str) -> Times:
    note = f"Dates such as '{example}' are read as {ORDERS[order]} (otherwise: --dates {other})"
    return replace(_checked(dates), note=note)


def _turned(cell: str, order: str) -> str:
    """Write a date of three numbers with the year first; nothing where it is none."""
    match = _TRIPLE.fullmatch(cell)
    if not match:
        return ""
    places = {"dmy": (1, 3, 4), "mdy": (3, 1, 4), "ymd": (4, 3, 1)}[order]
    day, month, year = (match[i] for i in places)
    if len(day) == 4 or len(year) == 1 or not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return ""
    if len(year) == 2:
        year = f"{'19' if int(year) > 68 else '20'}{year}"
    return f"{year}-{int(month):02d}-{int(day):02d}{match[5]}"


def _year_first(cell: str) -> str:
    """Write other dates so that pandas reads them in one way; nothing where they are none."""
    if match := _MONTH_YEAR.fullmatch(cell):
        return f"{match[2]}-{int(match[1]):02d}-01"
    if match := _YEAR_FIRST.fullmatch(cell):
        return f"{match[1]}-{int(match[3]):02d}-{int(match[4]):02d}{match[5]}"
    if match := _QUARTER.fullmatch(cell):
        return f"{match[1] or match[4]}Q{match[2] or match[3]}"
    if _UNORDERED.fullmatch(cell):
        return ""
    named = re.sub(
        r"[^\W\d_]{3,}\.?",
        lambda word: _NAMES[n - 1] if (n := month_number(word[0])) else word[0],
        re.sub(r" del? ", " ", cell),
    )
    return named if _DATE.fullmatch(named) and not _OTHER.search(named) else ""


def _by_pandas(cells: list[str]) -> pd.Series[Any]:
    import pandas as pd

    for form in ("ISO8601", "mixed"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                dates = pd.to_datetime(pd.Series(cells, dtype=object), errors="coerce", format=form)
                if dates.dtype == object:
                    raise ValueError("time zones differ")
            except (ValueError, OverflowError):  # as over a change of clocks
                dates = pd.to_datetime(
                    pd.Series(cells, dtype=object), errors="coerce", format=form, utc=True
                )
        if not dates.isna().any():
            break
    return _nanoseconds(dates)


def _nanoseconds(dates: pd.Series[Any]) -> pd.Series[Any]:
    """Dates in nanoseconds; those of other centuries, too far away for that, are missing."""
    import pandas as pd

    zone = None if dates.dt.tz is None else "UTC"
    low, high = pd.Timestamp.min.tz_localize(zone), pd.Timestamp.max.tz_localize(zone)
    near = dates.where((dates >= low) & (dates <= high))
    return near.dt.as_unit("ns")  # type: ignore[no-any-return]


def _checked(dates: pd.Series[Any]) -> Times:
    return Times(dates, np.flatnonzero(dates.isna()))
