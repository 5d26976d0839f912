"""Dates as people write them: 2024-01-31, 31.1.2024, 1/31/2024, 202401, 2024Q1, d_17."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.frequency import Frequency
from rbfdiffnet.grid import Grid

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Times", "parse_times"]

_COUNTED = re.compile(r"([A-Za-z][A-Za-z _-]*?)[ _-]?(\d{1,9})")
_TRIPLE = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})(?=$|[ T])(.*)")
_WEEK = re.compile(r"(\d{4})-?W(\d{1,2})")
# What pandas may try its hand at; it would take a lone 'may' for a date, too.
_DATE = re.compile(r".*(\d{4}|\d{1,2}[- ][A-Za-z]{3,9}[- ,]+\d{2}|[A-Za-z]{3,9}[- ]\d{2}\b).*")
_ORDERS = {"dmy": "day, month, year", "mdy": "month, day, year"}
_DAY_FIRST = {".": "dmy", "-": "dmy", "/": "mdy"}


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

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.cli.reading.dates import parse_times
    >>> parse_times(pd.Series(["d_1", "d_2"])).integer
    True
    """

    values: pd.Series[Any]
    bad: npt.NDArray[np.int64]
    note: str = ""

    @property
    def integer(self) -> bool:
        """Whether these are whole numbers."""
        return self.values.dtype.kind in "iu"


def parse_times(cells: pd.Series[Any], order: str | None = None) -> Times:
    """Read a column as dates, or as whole numbers that count steps.

    Of whole numbers, years (2024), months (202401) and days (20240131) are dates. Where the days of
    1/2/2024 could all be months, the reading that gives the more regular dates is taken; if that
    does not tell, points and hyphens mean that days come first, slashes that months do.

    Parameters
    ----------
    cells : Series
    order : {"dmy", "mdy"}, optional
        Whether days or months come first.

    Returns
    -------
    Times

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.cli.reading.dates import parse_times
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
        return _of_integers(cells)
    codes, distinct = pd.factorize(cells)
    if not len(distinct):
        return Times(pd.Series(cells.to_numpy(dtype="M8[ns]")), np.arange(len(cells)))
    if kind == "f" and np.isfinite(distinct).all() and np.all(distinct == np.rint(distinct)):
        found = _of_integers(pd.Series(distinct.astype(np.int64)))
    else:
        found = _of_text([str(cell).strip() for cell in distinct], order)
    failed = np.zeros(len(distinct) + 1, dtype=bool)
    failed[found.bad] = True
    failed[-1] = True  # the code of missing cells is -1, and what they get below is not used
    values = found.values.take(np.maximum(codes, 0)).reset_index(drop=True)
    return Times(values, np.flatnonzero(failed[codes]), found.note)


def _of_integers(numbers: pd.Series[Any]) -> Times:
    """Years, months and days written as numbers, or numbers of steps."""
    import pandas as pd

    values = numbers.to_numpy()
    none = np.empty(0, dtype=np.int64)
    years = {4: values, 6: values // 100, 8: values // 10_000}
    for digits, form in ((4, "%Y"), (6, "%Y%m"), (8, "%Y%m%d")):
        year = years[digits]
        if values.size and ((year >= 1700) & (year < 2262)).all():
            dates = pd.to_datetime(numbers.astype(str), format=form, errors="coerce")
            if not dates.isna().any():
                return Times(dates.dt.as_unit("ns"), none)
    return Times(numbers.astype(np.int64), none)


def _of_text(cells: list[str], order: str | None) -> Times:
    """Read distinct cells."""
    import pandas as pd

    none = np.empty(0, dtype=np.int64)
    counted = [_COUNTED.fullmatch(cell) for cell in cells]
    if cells and all(counted) and len({match[1] for match in counted if match}) == 1:
        return Times(pd.Series([int(match[2]) for match in counted if match]), none)
    if cells and all(re.fullmatch(r"\d{1,9}", cell) for cell in cells):
        return _of_integers(pd.Series([int(cell) for cell in cells]))
    triples = [_TRIPLE.fullmatch(cell) for cell in cells]
    if sum(map(bool, triples)) > len(cells) / 2:
        return _of_triples(cells, order)
    weeks = [_WEEK.fullmatch(cell) for cell in cells]
    if cells and all(weeks):
        mondays = [f"{match[1]}-{int(match[2]):02d}-1" for match in weeks if match]
        return _checked(pd.Series(pd.to_datetime(mondays, format="%G-%V-%u", errors="coerce")))
    return _checked(_by_pandas([cell if _DATE.fullmatch(cell) else "" for cell in cells]))


def _of_triples(cells: list[str], order: str | None) -> Times:
    """Read dates whose day and month are both numbers, before the year."""
    readings = {name: _by_pandas([_turned(cell, name) for cell in cells]) for name in _ORDERS}
    if order is not None:
        return _checked(readings[order])
    failures = {name: int(dates.isna().sum()) for name, dates in readings.items()}
    best = min(failures, key=lambda name: failures[name])
    if failures["dmy"] != failures["mdy"]:
        return _checked(readings[best])
    if readings["dmy"].equals(readings["mdy"]):
        return _checked(readings["dmy"])
    usual = next(_DAY_FIRST[match[2]] for cell in cells if (match := _TRIPLE.fullmatch(cell)))
    first, second = usual, "mdy" if usual == "dmy" else "dmy"
    chosen = second if _filled(readings[second]) > _filled(readings[first]) + 1e-9 else first
    example = next(
        cell for cell in cells if (m := _TRIPLE.fullmatch(cell)) and int(m[1]) != int(m[3])
    )
    other = "mdy" if chosen == "dmy" else "dmy"
    note = f"Dates such as '{example}' are read as {_ORDERS[chosen]} (otherwise: --dates {other})"
    return Times(readings[chosen], _checked(readings[chosen]).bad, note)


def _turned(cell: str, order: str) -> str:
    """Write a date with the year first; nothing where it is none."""
    match = _TRIPLE.fullmatch(cell)
    if not match:
        return ""
    day, month = (match[1], match[3]) if order == "dmy" else (match[3], match[1])
    year = match[4] if len(match[4]) == 4 else f"{'19' if int(match[4]) > 68 else '20'}{match[4]}"
    return f"{year}-{int(month):02d}-{int(day):02d}{match[5]}"


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
    return dates.dt.as_unit("ns")


def _checked(dates: pd.Series[Any]) -> Times:
    return Times(dates, np.flatnonzero(dates.isna()))


def _filled(dates: pd.Series[Any]) -> float:
    """Share of the steps from the first to the last date that have one."""
    times = np.sort(dates.dropna().dt.tz_localize(None).unique()).astype("M8[ns]")
    codes = np.zeros(len(times), dtype=np.int64)
    frequency = Frequency.infer(times, codes)
    if frequency is None:
        return 0.0
    stamps = times.view(np.int64)
    grid = Grid.from_times(frequency, stamps, codes, 1)
    steps, on_grid = grid.locate(stamps, codes)
    return float(on_grid.sum() / (steps[on_grid].max() + 1))
