"""Dates as people write them: 2024-01-31, 31.1.2024, 1/31/2024, 202401, 2024Q1, d_17."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rbfdiffnet.readers.regularity import fill_share, is_monotonic, is_more_regular
from rbfdiffnet.support.arrays import Ints

# Words of several languages for units of time and months --------------------------------------

#: What columns of parts of dates are called; English, German, French, Spanish, Italian, Dutch.
TIME_UNITS = {
    "day": ("day", "tag", "jour", "dia", "giorno", "dag"),
    "week": ("week", "woche", "kalenderwoche", "semaine", "semana", "settimana"),
    "month": ("month", "monat", "mois", "mes", "mese", "maand"),
    "quarter": ("quarter", "quartal", "trimestre", "kwartaal"),
    "year": ("year", "jahr", "annee", "ano", "anno", "jaar"),
}
_UNIT_OF_WORD = {word: unit for unit, words in TIME_UNITS.items() for word in words} | {
    **{"dd": "day", "kw": "week", "cw": "week", "wk": "week", "mm": "month", "mon": "month"},
    **{"qtr": "quarter", "yr": "year", "yyyy": "year", "an": "year"},
}
_FILLERS = {"iso", "calendar", "no", "nr", "num", "number", "of"}
_MONTHS = (
    "january januar janner janvier enero gennaio januari",
    "february februar fevrier febrero febbraio februari",
    "march marz maerz mrz mars marzo maart mrt",
    "april avril abril aprile",
    "may mai mayo maggio mei",
    "june juni juin junio giugno",
    "july juli juillet julio luglio",
    "august aout agosto augustus",
    "september septembre septiembre settembre",
    "october oktober octobre octubre ottobre",
    "november novembre noviembre",
    "december dezember decembre diciembre dicembre",
)
_SHORT_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


def fold_text(text: str) -> str:
    """Return text in small letters without accents."""
    parts = unicodedata.normalize("NFKD", text.lower())
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


def split_words(name: str) -> list[str]:
    """Return the words of a name, in small letters without accents."""
    return re.findall(r"[^\W\d_]+", fold_text(name))


def find_time_unit(name: str) -> str:
    """Return the unit of time that a column's name means as a whole, empty where it means none."""
    words = [word for word in split_words(name) if word not in _FILLERS]
    return _UNIT_OF_WORD.get(words[0], "") if len(words) == 1 else ""


def mentions_weeks(name: str) -> bool:
    """Tell whether the name of a column says that its dates are weeks."""
    words = split_words(name)
    return any(_UNIT_OF_WORD.get(word) == "week" or word == "yearweek" for word in words)


def mentions_time(name: str) -> bool:
    """Tell whether the name of a column has a unit of time among its words, or several of it."""
    return any({word, word.removesuffix("s")} & _UNIT_OF_WORD.keys() for word in split_words(name))


def find_month(word: str) -> int:
    """Return the number of the month that a word names or begins to name, 0 where it is none."""
    start = fold_text(word).removesuffix(".")
    if len(start) < 3:
        return 0
    found = (i for i, names in enumerate(_MONTHS) if f" {start}" in f" {names}")
    return next(found, -1) + 1


# Parsing --------------------------------------------------------------------------------------

DATE_ORDERS = {"dmy": "day, month, year", "mdy": "month, day, year", "ymd": "year, month, day"}
_USUAL_ORDER = {".": "dmy", "-": "dmy", "/": "mdy"}

_COUNTED = re.compile(r"([A-Za-z][A-Za-z _-]*?)[ _-]?(\d{1,9})")
_TRIPLE = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})(?=$|[ T])(.*)")
_YEAR_FIRST = re.compile(r"(\d{4})([./-])(\d{1,2})\2(\d{1,2})(?=$|[ T])(.*)")
_UNORDERED = re.compile(r"\d{1,2}[ ./-]+\d{1,2}[ ./-]+\d{2,4}.*")
_MONTH_YEAR = re.compile(r"(\d{1,2})[./-](\d{4})")
_NAME_YEAR = re.compile(r"([^\W\d_]{3,12})\.?[-' ]+(\d{2})")
_QUARTER = re.compile(r"(\d{4})[-/ ]*[QT]([1-4])|[QT]([1-4])[-/ ]*(\d{4})")
_WEEK_WORD = r"(?:w|kw|cw|wk|week|woche|semaine)"
_WEEK = re.compile(
    rf"\d{{4}}[-/ ]*{_WEEK_WORD}[- ]?\d{{1,2}}|{_WEEK_WORD}[-. ]*\d{{1,2}}[-/. ]+\d{{4}}",
    re.IGNORECASE,
)
_PAIR = re.compile(r"\d{4}[-/. ]\d{1,2}|\d{1,2}[-/. ]\d{4}")
_DECIMAL_YEAR = re.compile(r"\d{4}(\.\d+)?")
_SINGLE = 0.02  # hundredths that numbers in 32 bits may be off by
_STEPS_IN_YEAR = {52: 7 * 24, 365: 24, 8760: 1}  # weeks, days and hours, by hours
_DECIMAL_EPOCH = re.compile(r"\d{9,19}([.,]\d+)?")
_EPOCH = (946_684_800, 4_102_444_800)  # seconds from 1970 to 2000 and to 2100
_TOO_LARGE = 2**63  # for whole numbers of 64 bits
_CLOSE = 0.9  # of a step, that is taken for one
_UNEVEN = 0.3  # of a step, that decimal years may be off by
_ROUNDED = 0.07  # months that two decimals of a year may be off by
_OFFSET = re.compile(r".*\d[+-](?!00:?00)\d{2}:?\d{2}")
# What pandas may parse as a date; it would take a lone 'may' for one, too.
_DATE = re.compile(r".*(\d{4}|\d{1,2}[- ][A-Za-z]{3,9}[- ,]+\d{2}).*")
# Words that pandas would pass over: H1 2024 is no day of January.
_OTHER_WORD = re.compile(
    r"(?<![^\W\d_])(?!(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|st|nd|rd|th|am|pm|utc|gmt"
    r"|(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?)(?![^\W\d_])|(?<=\d)[TZ])"
    r"[^\W\d_]",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ParsedTimes:
    """A column of dates or whole numbers.

    `bad` has the rows that are neither; their values mean nothing. `note` says what was assumed,
    `hint` what is wrong with the bad rows if there is more to say than that they are no dates.
    """

    values: pd.Series[Any]
    bad: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    note: str = ""
    hint: str = ""

    @classmethod
    def from_dates(cls, dates: pd.Series[Any], note: str = "") -> ParsedTimes:
        """Take dates, of which the missing ones are bad."""
        return cls(dates, np.flatnonzero(dates.isna()), note)

    @property
    def is_integer(self) -> bool:
        """Whether these are whole numbers."""
        return self.values.dtype.kind in "iu"


def parse_times(
    cells: pd.Series[Any], order: str | None = None, *, weeks: bool = False
) -> ParsedTimes:
    """Parse a column as dates, or as whole numbers that count steps.

    Of whole numbers, years (2024), months (202401), days (20240131, 31012024) and seconds since
    1970, also with decimals, are dates. Where the days of 1/2/2024 could all be months, the more
    regular reading is taken; if that does not tell, points and hyphens mean that days come first,
    slashes that months do. `order`, one of DATE_ORDERS, settles it. With `weeks`, 202401 and
    01/2024 are weeks.
    """
    kind = cells.dtype.kind
    if kind == "M":
        return ParsedTimes.from_dates(cells)
    if kind in "iu" and (cells < _TOO_LARGE).all():
        return _parse_integers(cells, order, weeks)
    codes, distinct = pd.factorize(cells)
    if not len(distinct):
        return ParsedTimes(pd.Series(pd.NaT, cells.index, "M8[ns]"), np.arange(len(cells)))
    if kind == "f" and np.all((distinct == np.rint(distinct)) & (np.abs(distinct) < _TOO_LARGE)):
        found = _parse_integers(pd.Series(distinct.astype(np.int64)), order, weeks)
    else:
        found = _parse_texts([str(cell).strip() for cell in distinct], order, weeks)
    failed = np.zeros(len(distinct) + 1, dtype=bool)
    failed[found.bad] = True
    failed[-1] = True  # the code of missing cells is -1, and what they get below is not used
    values = found.values.take(np.maximum(codes, 0)).reset_index(drop=True)
    return ParsedTimes(values, np.flatnonzero(failed[codes]), found.note, found.hint)


def _are_years(values: npt.NDArray[Any]) -> bool:
    """Tell whether all numbers are years that fit in nanoseconds."""
    return bool(values.size and ((values >= 1700) & (values < 2262)).all())


def _parse_integers(numbers: pd.Series[Any], order: str | None, weeks: bool) -> ParsedTimes:
    """Parse years, months and days written as numbers, or numbers of steps."""
    values = numbers.to_numpy()
    year, rest = values // 100, values % 100
    forms = [("%Y", values), ("%Y%m", year), ("%Y%m%d", values // 10_000)]
    for form, years in forms:
        if _are_years(years) and not (form == "%Y%m" and weeks):
            dates = pd.to_datetime(numbers.astype(str), format=form, errors="coerce")
            if not dates.isna().any():
                return ParsedTimes(dates.dt.as_unit("ns"))
    if _are_years(year) and ((rest >= 1) & (rest <= 53)).all():
        mondays = _find_mondays(zip(year.tolist(), rest.tolist(), strict=True))
        if not mondays.isna().any():
            note = f"Numbers such as {values[0]} are read as years and weeks"
            return ParsedTimes(mondays, note=note)
    if (found := _parse_eight_digits(numbers, order)) is not None:
        return found
    if values.size and (values >= 10_101).all() and (values <= 991_231).all():
        short = numbers.astype(str).str.zfill(6)
        dates = pd.to_datetime(short, format="%y%m%d", errors="coerce")
        if not dates.isna().any() and np.ptp(values) >= len(values):
            note = f"Numbers such as {values[0]} are read as year, month, day"
            return ParsedTimes(dates.dt.as_unit("ns"), note=note)
    return _parse_epoch(numbers) or ParsedTimes(numbers.astype(np.int64))


def _parse_epoch(numbers: pd.Series[Any]) -> ParsedTimes | None:
    """Parse seconds since 1970, or thousandths and smaller parts, where all are of this century."""
    values = numbers.to_numpy()
    for unit, n in {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}.items():
        if values.size and _EPOCH[0] * n <= values.min() and values.max() < _EPOCH[1] * n:
            if values.dtype.kind == "f":
                found = np.rint(values / n * 10**6).astype("M8[us]")
            else:
                found = values.astype(f"M8[{unit}]")
            dates = pd.Series(found.astype("M8[ns]"), numbers.index)
            note = f"Numbers such as {values[0]} are read as times in UTC, this one as"
            return ParsedTimes(dates, note=f"{note} {dates.iloc[0]} (otherwise: --time-col)")
    return None


def _parse_eight_digits(numbers: pd.Series[Any], order: str | None) -> ParsedTimes | None:
    """Parse 31012024 and 1022024, whose zero was lost, where all numbers are such dates."""
    values = numbers.to_numpy()
    within = (values >= 1_010_000) & (values < 100_000_000)
    if not (_are_years(values % 10_000) and within.all()):
        return None
    digits = numbers.astype(str).str.zfill(8)
    found = _parse_triples([f"{cell[:2]}.{cell[2:4]}.{cell[4:]}" for cell in digits], order)
    if len(found.bad):
        return found if found.hint else None
    if found.note:
        note = re.sub(r"(\d\d)\.(\d\d)\.(\d{4})", r"\1\2\3", found.note)
    else:
        row = int(np.argmax(found.values.dt.day))
        date = f"{found.values.iloc[row]:%Y-%m-%d}"
        note = f"Numbers such as {digits.iloc[row]} are read as dates, this one as {date}"
    return replace(found, note=note)


def _parse_texts(cells: list[str], order: str | None, weeks: bool) -> ParsedTimes:
    """Parse distinct cells."""
    counted = [match for cell in cells if (match := _COUNTED.fullmatch(cell))]
    if len(counted) == len(cells) and len({match[1] for match in counted}) == 1:
        return ParsedTimes(pd.Series([int(match[2]) for match in counted]))
    if all(re.fullmatch(r"\d{1,9}", cell) for cell in cells):
        return _parse_integers(pd.Series([int(cell) for cell in cells]), order, weeks)
    for found in (_parse_decimal_years(cells), _parse_weeks(cells, weeks)):
        if found is not None:
            return found
    if all(map(_DECIMAL_EPOCH.fullmatch, cells)) and not all(map(str.isdecimal, cells)):
        numbers = pd.Series([float(cell.replace(",", ".")) for cell in cells])
        if (found := _parse_epoch(numbers)) is not None:
            return found
    if all(_NAME_YEAR.fullmatch(cell) for cell in cells):
        return _parse_names_and_years(cells)
    if any(_TRIPLE.fullmatch(cell) for cell in cells):
        found = _parse_triples(cells, order)
    else:
        found = ParsedTimes.from_dates(_parse_by_pandas([_normalize(cell) for cell in cells]))
    zone = getattr(found.values.dt, "tz", None)
    if not found.note and str(zone) == "UTC" and any(_OFFSET.fullmatch(cell) for cell in cells):
        return replace(found, note="Times have different offsets from UTC: they are given in UTC")
    return found


def _parse_decimal_years(cells: list[str]) -> ParsedTimes | None:
    """Parse 1960.25 and the like as dates; return nothing where cells are none, or irregular.

    Decimals that are all from .01 to .12 are months. Otherwise steps of about a month or longer are
    counted in months, where 1960.04, the middle of January, is January, too. Shorter ones are
    weeks, days or hours from the first date on.
    """
    if not all(map(_DECIMAL_YEAR.fullmatch, cells)):
        return None
    years = np.array(cells, dtype=np.float64)
    if not _are_years(years):
        return None
    hundredths = 100 * (years % 1)
    months = np.rint(hundredths)
    if np.all((np.abs(hundredths - months) < _SINGLE) & (months >= 1) & (months <= 12)):
        pairs = zip(years.astype(int), months.astype(int), strict=True)  # 1947.1 is October
        return ParsedTimes(_parse_by_pandas([f"{year}-{month:02d}-01" for year, month in pairs]))
    distinct, rows = np.unique(years, return_inverse=True)
    if len(distinct) < 3 or np.all(distinct % 1 == 0):
        return None
    gaps = np.diff(distinct)
    usual = float(np.median(gaps))
    monthly = 12 * usual > _CLOSE
    counts = 12 * gaps if monthly else gaps / usual
    if np.any(np.abs(counts - np.rint(counts)) > _UNEVEN) or counts.min() < 1 - _UNEVEN:
        return None
    if monthly:
        since = np.floor(distinct * 12 + _ROUNDED).astype(np.int64) - 12 * 1970
        found = since.view("M8[M]")
    else:
        fitting = [(n, hours) for n, hours in _STEPS_IN_YEAR.items() if n * usual > _CLOSE]
        n, hours = fitting[0] if fitting else (8760, 1)
        begin, end = (pd.Timestamp(int(distinct[0]) + more, 1, 1) for more in (0, 1))
        first = begin + float(distinct[0] % 1) * (end - begin)
        places = np.append(0, np.cumsum(np.rint(counts))).astype(np.int64)
        step = np.timedelta64(hours * round(n * usual), "h")
        found = first.round("h" if hours == 1 else "D").to_datetime64() + places * step
    if len(np.unique(found)) < len(distinct):
        return None
    row = int(np.argmax(years % 1))
    dates = pd.Series(found[rows].astype("M8[ns]"))
    note = f"Years such as {cells[row]} are read as dates, this one as {dates[row]:%Y-%m-%d}"
    return ParsedTimes(dates, note=f"{note} (otherwise: --time-col)")


def _parse_weeks(cells: list[str], weeks: bool) -> ParsedTimes | None:
    """Parse weeks of years; return nothing where some cell is none."""
    for form in (_WEEK, *([_PAIR] if weeks else [])):
        if all(form.fullmatch(cell) for cell in cells):
            pairs = [sorted(re.findall(r"\d+", cell), key=len) for cell in cells]
            mondays = _find_mondays((int(year), int(week)) for week, year in pairs)
            note = "" if form is _WEEK else f"'{cells[0]}' and the like are read as weeks"
            return ParsedTimes.from_dates(mondays, note)
    return None


def _find_mondays(weeks: Iterable[tuple[int, int]]) -> pd.Series[Any]:
    """Return the Mondays of (year, week) as ISO 8601 counts them, missing where there is none."""
    pairs = list(weeks)
    days = [f"{year}-{week:02d}-1" for year, week in pairs]
    parsed = pd.to_datetime(days, format="%G-%V-%u", errors="coerce")
    dates = _to_nanoseconds(pd.Series(parsed))
    same = dates.dt.isocalendar().week.to_numpy(dtype=np.float64, na_value=np.nan)
    return dates.where(same == [week for _, week in pairs])  # not all years have 53


def _parse_names_and_years(cells: list[str]) -> ParsedTimes:
    """Parse Jan-24 as a month of a year, unless the numbers could as well be days."""
    pairs = [match for cell in cells if (match := _NAME_YEAR.fullmatch(cell))]
    months = [(find_month(match[1]), _complete_year(match[2])) for match in pairs]
    dates = _parse_by_pandas([f"{year}-{month:02d}-01" if month else "" for month, year in months])
    if is_monotonic(dates.dropna()) or any(not 1 <= int(match[2]) <= 31 for match in pairs):
        return ParsedTimes.from_dates(dates)
    hint = "may be a day or a month of a year"
    return ParsedTimes(dates, np.arange(len(cells)), hint=hint)


def _complete_year(digits: str) -> str:
    """Return two digits of a year as four: 69 to 99 are of the last century."""
    return f"{'19' if int(digits) > 68 else '20'}{int(digits):02d}"


def _parse_triples(cells: list[str], order: str | None) -> ParsedTimes:
    """Parse dates whose day and month are both numbers, and whose year may have two digits."""
    triples = [match for cell in cells if (match := _TRIPLE.fullmatch(cell))]
    readings = {
        name: _parse_by_pandas([_reorder(cell, name) or _normalize(cell) for cell in cells])
        for name in ([order] if order else DATE_ORDERS)
    }
    if order is not None:
        return ParsedTimes.from_dates(readings[order])
    failures = {name: int(dates.isna().sum()) for name, dates in readings.items()}
    by_year = failures.pop("ymd")
    best = min(failures, key=lambda name: failures[name])
    if by_year < failures[best]:
        return _note_order(readings["ymd"], triples[0][0], "ymd", best)
    certain = failures["dmy"] != failures["mdy"] or readings["dmy"].equals(readings["mdy"])
    if not certain:
        best = _USUAL_ORDER[triples[0][2]]
        other = "mdy" if best == "dmy" else "dmy"
        if fill_share(readings[other]) > fill_share(readings[best]) + 1e-9:
            best, other = other, best
    if by_year == failures[best]:  # 23-01-31: is 23 the year?
        last, first = fill_share(readings[best]), fill_share(readings["ymd"])
        if first > last + 1e-9:
            return _note_order(readings["ymd"], triples[0][0], "ymd", best)
        if triples[0][2] == "-" and first > last - 1e-9:
            hint = "may have its year first or last (say which with --dates)"
            return ParsedTimes(readings[best], np.arange(len(cells)), hint=hint)
    if (found := _check_exchanged(cells, readings[best], certain)) is not None:
        return found
    if certain:
        return ParsedTimes.from_dates(readings[best])
    example = next(match[0] for match in triples if int(match[1]) != int(match[3]))
    return _note_order(readings[best], example, best, other)


def _check_exchanged(cells: list[str], dates: pd.Series[Any], certain: bool) -> ParsedTimes | None:
    """Refuse dates in which a program swapped day and month wherever that made a date.

    Such a program leaves 2024-02-01, the second of January, beside 13/01/2024.
    """
    sound = dates.dropna().dt.tz_localize(None)
    day, month = sound.dt.day, sound.dt.month
    small = day <= 12
    fixed = [i for i in sound.index[~small] if _TRIPLE.fullmatch(cells[i])]
    either = sound.index[small & (day != month)].to_numpy()
    others = [i for i in sound.index if _YEAR_FIRST.fullmatch(cells[i])]
    if not (fixed and either.size and (certain or others)):
        return None
    parts = {
        "year": sound.dt.year,
        "month": day.where(small, month),
        "day": month.where(small, day),
    }
    exchanged = pd.to_datetime(pd.DataFrame(parts)) + (sound - sound.dt.normalize())
    if is_more_regular(exchanged, sound):
        hint = (
            f"may have its day and month exchanged, unlike '{cells[fixed[0]]}': the dates would be "
            "more regular so (if they are right, say --dates)"
        )
        return ParsedTimes(dates, either, hint=hint)
    if not others:
        return None
    first, second = cells[others[0]], cells[fixed[0]]
    note = f"Dates are written in two ways, such as '{first}' and '{second}'"
    return ParsedTimes.from_dates(dates, note)


def _note_order(dates: pd.Series[Any], example: str, order: str, other: str) -> ParsedTimes:
    words = DATE_ORDERS[order]
    note = f"Dates such as '{example}' are read as {words} (otherwise: --dates {other})"
    return ParsedTimes.from_dates(dates, note)


def _reorder(cell: str, order: str) -> str:
    """Write a date of three numbers with the year first; return nothing where it is none."""
    match = _TRIPLE.fullmatch(cell)
    if not match:
        return ""
    places = {"dmy": (1, 3, 4), "mdy": (3, 1, 4), "ymd": (4, 3, 1)}[order]
    day, month, year = (match[i] for i in places)
    if len(day) == 4 or len(year) == 1 or not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return ""
    year = _complete_year(year) if len(year) == 2 else year
    return f"{year}-{int(month):02d}-{int(day):02d}{match[5]}"


def _normalize(cell: str) -> str:
    """Write other dates so that pandas reads them in one way; return nothing where it must not."""
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
        lambda word: _SHORT_MONTHS[n - 1] if (n := find_month(word[0])) else word[0],
        re.sub(r" del? ", " ", cell),
    )
    return named if _DATE.fullmatch(named) and not _OTHER_WORD.search(named) else ""


def _parse_by_pandas(cells: list[str]) -> pd.Series[Any]:
    """Parse dates; those that pandas cannot read are missing."""
    texts = pd.Series(cells, dtype=object)
    for form in ("ISO8601", "mixed"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                dates = pd.to_datetime(texts, errors="coerce", format=form)
                if dates.dtype == object:
                    raise ValueError("time zones differ")
            except (ValueError, OverflowError):  # as over a change of clocks
                dates = pd.to_datetime(texts, errors="coerce", format=form, utc=True)
        if not dates.isna().any():
            break
    return _to_nanoseconds(dates)


def _to_nanoseconds(dates: pd.Series[Any]) -> pd.Series[Any]:
    """Return dates in nanoseconds; those of other centuries, too far away for that, are missing."""
    zone = None if dates.dt.tz is None else "UTC"
    low, high = pd.Timestamp.min.tz_localize(zone), pd.Timestamp.max.tz_localize(zone)
    near = dates.where((dates >= low) & (dates <= high))
    return near.dt.as_unit("ns")  # type: ignore[no-any-return]
