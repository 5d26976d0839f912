"""Numbers as people write them: 1,234.5 and 1.234,5 and 1 234,5."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rbfdiffnet.readers.table import Table, first_cells, is_text
from rbfdiffnet.support.arrays import Ints
from rbfdiffnet.support.checks import CommandError
from rbfdiffnet.support.stability import LARGEST

_MISSING = frozenset(
    (
        *("", "na", "n/a", "nan", "null", "none", "nil", "missing", "-", "--", ".", "?"),
        *("k.a.", "k. a.", "#n/a", "#na", "#nv", "#value!", "#wert!", "#div/0!", "#ref!"),
        *("#bezug!", "#name?", "#num!", "#zahl!", "#null!"),
    )
)
_MOST_WORDS = 4  # words that a message names
_SPACES = " '\u2019\u00a0\u2009\u202f"
# Cells that settle which mark is the decimal one.
_COMMA, _POINT = (
    re.compile(
        rf"[-+]?(\d{{1,3}}([{_SPACES}{other}]\d{{3}})+{mark}\d+|0{mark}\d+"
        rf"|\d+{mark}(\d{{1,2}}|\d{{4,}})|\d{{4,}}{mark}\d+)"
    )
    for mark, other in ((",", "."), (r"\.", ","))
)
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:([.,])\d{3})(?:\1\d{3})+")  # 1.234.567
_BOTH = re.compile(r"[-+]?\d{1,3}([.,])\d{3}.*(?!\1)[.,]\d+")  # 1.234,5
_NEGATIVE = re.compile(r"\(\s*(\d[^()]*)\)|(\d[\d.,]*)-")
_WHOLE = re.compile(r"\d+")
_EITHER = re.compile(r"[-+]?[1-9]\d{0,2}([.,])\d{3}")  # 1.234: decimals or thousands
_CODES = (
    "AED|ARS|AUD|BGN|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|EUR|GBP|HKD|HUF|IDR|ILS|INR|ISK|JPY|KRW|"
    "MXN|MYR|NGN|NOK|NZD|PEN|PHP|PLN|RON|RSD|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|VND|ZAR"
)
_UNIT = rf"([A-Z]{{0,3}}[$\u00a2\u00a3\u00a5\u0e3f\u20a0-\u20cf]|{_CODES}|%)"
_NUMBER_WITH_UNIT = re.compile(
    rf"[-+\u2212(]?\s*(?:{_UNIT}\s*)?[-+\u2212]?\s*[.,]?\d[\d.,{_SPACES}]*(?:{_UNIT}\s*)?[-)]?"
)
_ZERO = re.compile(r"\s*[-\u2013\u2212]\s*")  # beside a unit
_SAMPLE = 200  # cells that tell whether a column may have a unit


@dataclass(frozen=True)
class MarkEvidence:
    """What the cells of a column say about their decimal mark.

    `clear` is the decimal mark, empty where no cell settles it. `unclear` has, for each mark that
    may be the decimal one or stand between thousands, the first such cell, as 1.234. `small` and
    `large` tell whether there are whole numbers without marks below 1000, and from there on;
    `both` whether a cell shows that the column has marks between thousands, as 1.234,5.
    """

    clear: str = ""
    unclear: dict[str, str] = field(default_factory=dict)
    small: bool = False
    large: bool = False
    both: bool = False

    @classmethod
    def from_cells(cls, cells: Iterable[str]) -> MarkEvidence:
        """Look at the distinct cells of a column."""
        votes = {".": 0, ",": 0}
        unclear: dict[str, str] = {}
        small = large = both = False
        for cell in map(_put_minus_first, cells):
            both = both or _BOTH.fullmatch(cell) is not None
            if _WHOLE.fullmatch(cell):
                small, large = small or len(cell) < 4, large or len(cell) > 3
            elif _COMMA.fullmatch(cell):
                votes[","] += 1
            elif _POINT.fullmatch(cell):
                votes["."] += 1
            elif thousands := _THOUSANDS.fullmatch(cell):
                votes["." if thousands[1] == "," else ","] += 1
            elif either := _EITHER.fullmatch(cell):
                unclear.setdefault(either[1], cell)
        clear = max(votes, key=lambda mark: votes[mark]) if any(votes.values()) else ""
        return cls(clear, unclear, small, large, both)

    def choose_mark(self, delimiter: str, day_first: bool, elsewhere: set[str]) -> str:
        """Return the decimal mark of the column, empty where nothing tells.

        Files with semicolons, and with dates such as 31.1.2024 (`day_first`), have decimal commas
        unless other columns show points; `elsewhere` has the marks that other columns show. Cells
        such as 1.234 beside 998 have marks between thousands.
        """
        if self.clear or not self.unclear:
            return self.clear or "."
        if len(self.unclear) > 1:
            return ""
        (seen,) = self.unclear
        continental = delimiter == ";" or day_first
        if len(elsewhere) == 1:
            usual = next(iter(elsewhere))
        elif delimiter == ",":
            usual = "" if day_first else "."
        else:
            usual = "," if continental else ""
        if self.large:
            return seen if usual in (seen, "") else ""
        if not self.small:
            return usual
        if seen == ".":
            return "," if continental or usual != "." else ""
        if usual == ",":
            return "," if elsewhere else ""
        return "."

    def note(self, column: str, mark: str) -> str:
        """Say how cells were read that could be read in two ways."""
        doubtful = {seen: cell for seen, cell in self.unclear.items() if seen != self.clear}
        if not doubtful or (self.clear and self.both):
            return ""
        seen, cell = next(iter(doubtful.items()))
        value = float(cell.replace(seen, "." if seen == mark else ""))
        other = "," if mark == "." else "."
        return (
            f"Numbers such as '{cell}' in column '{column}' are read as {value:g} (otherwise: "
            f"--decimal {other})"
        )


def find_units(frame: pd.DataFrame, missing: Sequence[str] = ()) -> dict[str, str]:
    """Return the columns of text whose numbers all have the same unit: a currency, or percent.

    `missing` has words for missing values. Cells without digits do not count.
    """
    units = {}
    for column in frame.columns:
        cells = frame[column]
        if is_text(cells) and _find_unit(first_cells(cells, _SAMPLE), missing):
            units[column] = _find_unit(cells.dropna(), missing)
    return {column: unit for column, unit in units.items() if unit}


def _find_unit(cells: pd.Series[Any], missing: Sequence[str]) -> str:
    """Return the unit that all cells with digits have, empty where there is none."""
    found: set[str] = set()
    for text in {str(cell).strip() for cell in cells.unique()}.difference(missing):
        if re.search(r"\d", text):
            match = _NUMBER_WITH_UNIT.fullmatch(text)
            if match is None or (match[1] is None) == (match[2] is None):
                return ""
            found.add(match[1] or match[2])
    return found.pop() if len(found) == 1 else ""


def remove_unit(text: str, unit: str) -> str:
    """Return a cell without its unit and the spaces around that."""
    return re.sub(rf"\s*{re.escape(unit)}\s*", "", text, count=1) if unit else text


def parse_numbers(
    table: Table, column: str, cells: pd.Series[Any] | None = None
) -> tuple[npt.NDArray[Any], Ints]:
    """Parse a column, or some cells of it, as numbers, with any marks between thousands.

    Returns the values and the rows that are no numbers. Values are NaN where a cell is empty, says
    NA, null, - and the like, or is one of the table's words (or numbers) for missing values; small
    whole numbers stay small. The unit of the column is left out. A minus may come last, as in
    12,5-, or be written as parentheses.
    """
    cells = table.frame[column] if cells is None else cells
    decimal, words = table.decimal_mark(column) or ".", table.missing_words
    nothing = np.empty(0, dtype=np.int64)
    if is_text(cells):
        missing = {word.strip().lower() for word in words}
        codes, distinct = pd.factorize(cells)
        unit = table.units.get(column, "")
        found = [_parse_cell(cell, decimal, missing, unit) for cell in distinct]
        values = np.array([*found, np.nan], dtype=np.float64)[codes]  # None becomes NaN
        bad = np.flatnonzero(np.array([*(x is None for x in found), False])[codes])
    elif cells.dtype.kind not in "iufb":
        values, bad = np.full(len(cells), np.nan), np.flatnonzero(cells.notna())
    elif isinstance(cells.dtype, np.dtype):
        values, bad = cells.to_numpy(), nothing
    else:
        values, bad = cells.to_numpy(dtype=np.float64, na_value=np.nan), nothing
    numbers = [number for word in words if (number := _parse_cell(word, decimal)) is not None]
    if numbers and (hit := np.isin(values, numbers)).any():
        values = np.where(hit, np.nan, values)
    return values, bad


def _parse_cell(
    cell: Any, decimal: str, missing: Collection[str] = (), unit: str = ""
) -> float | None:
    if not isinstance(cell, str):
        try:
            return float(cell)
        except (TypeError, ValueError):
            return None
    text = cell.strip()
    number = remove_unit(text, unit)
    if not {text.lower(), number.lower()}.isdisjoint(missing) or text.lower() in _MISSING:
        return float("nan")
    text = _put_minus_first(number)
    if "_" in text:
        return None  # Python takes 1_0 for a number, nobody else does
    text = re.sub(rf"(?<=\d)[{_SPACES}](?=\d{{3}})", "", text)
    thousands = "," if decimal == "." else "."
    if re.fullmatch(rf"[-+]?[1-9]\d{{0,2}}(\{thousands}\d{{3}})+(\{decimal}\d*)?", text):
        text = text.replace(thousands, "")
    elif thousands in text and decimal == ",":
        return None
    try:
        return float(text.replace(",", ".") if decimal == "," else text)
    except ValueError:
        return None


def _put_minus_first(text: str) -> str:
    """Write a minus in front that is another sign, comes last, or is meant by parentheses."""
    if match := _NEGATIVE.fullmatch(text):
        return f"-{(match[1] or match[2]).strip()}"
    return f"-{text[1:]}" if text.startswith("\u2212") else text


def read_numbers(
    table: Table, column: str, remedy: str, beside: Sequence[str] = (), *, gaps: bool = True
) -> npt.NDArray[Any]:
    """Read a column as numbers, or raise with the first cell that is no number.

    The message ends with `remedy`, unless empty. With `gaps`, values may be missing, and the
    message names words in this column and in those `beside` it that could be called missing.
    """
    cells = table.frame[column]
    mark = table.decimal_mark(column)
    if not mark:
        texts, unit = table.text(column), table.units.get(column, "")
        plain = [_put_minus_first(remove_unit(str(cell), unit)) for cell in texts]
        row = next((i for i, cell in enumerate(plain) if _EITHER.fullmatch(cell)), 0)
        raise CommandError(
            f"{table.locate(row, column)}: '{texts.iloc[row]}' may have a decimal mark "
            "or one between thousands; say which with --decimal . or --decimal ,"
        )
    values, bad = parse_numbers(table, column)
    if len(bad):
        row = int(bad[0])
        more = f" ({len(bad) - 1} more like it)" if len(bad) > 1 else ""
        other = _POINT if mark == "," else _COMMA
        if other.fullmatch(str(cells.iloc[row]).strip()):
            more += f" where '{mark}' is the decimal mark, as in other cells"
        unit = table.units.get(column, "")
        is_zero = _ZERO.fullmatch(remove_unit(str(cells.iloc[row]), unit))
        zero = f"write 0 as '{unit}0' where a spreadsheet shows it so"
        ways = [zero if is_zero else "correct it", *(["leave the cell empty"] if gaps else [])]
        ways += [remedy] if remedy else []
        if gaps and (words := _list_words(table, [column, *(c for c in beside if c != column)])):
            ways.append(f"say --missing {' '.join(words)} if that means that there is no value")
        raise CommandError(
            f"{table.locate(row, column)}: '{cells.iloc[row]}' is not a number{more};"
            f" {', '.join(ways[:-1])}, or {ways[-1]}"
        )
    if values.dtype.kind == "f":
        large = np.flatnonzero(np.isfinite(values) & (np.abs(values) > LARGEST))
        if large.size:
            row = int(large[0])
            raise CommandError(
                f"{table.locate(row, column)}: '{cells.iloc[row]}' is too large to work with; "
                "correct or rescale it"
            )
    return values


def _list_words(table: Table, columns: Sequence[str]) -> list[str]:
    """Return the first words among cells that are no numbers, quoted for a shell."""
    found: dict[str, None] = {}
    for column in columns:
        _, bad = parse_numbers(table, column)
        words = (str(cell).strip() for cell in table.frame[column].iloc[bad].unique())
        found |= dict.fromkeys(word for word in words if not re.search(r"\d", word))
        if len(found) > _MOST_WORDS:
            break
    return [shlex.quote(word) for word in list(found)[:_MOST_WORDS]]


def missing_notes(table: Table, columns: Sequence[str]) -> list[str]:
    """Say how many cells of columns are read as missing though they are not empty."""
    counts: Counter[str] = Counter()
    for column in columns:
        cells = table.frame[column].dropna()
        if not (is_text(cells) or table.missing_words):
            continue
        values, bad = parse_numbers(table, column, cells)
        gone = np.isnan(values.astype(np.float64))
        gone[bad] = False
        for cell, count in cells[gone].astype(object).value_counts().items():
            counts[f"{cell:g}" if isinstance(cell, float) else str(cell).strip()] += int(count)
    del counts[""]  # nothing but spaces
    total = counts.total()
    if not total:
        return []
    words = ", ".join(f"'{word}' ({n:,})" for word, n in counts.most_common(_MOST_WORDS))
    more = ", ..." if len(counts) > _MOST_WORDS else ""
    return [f"{total:,} cell{'s are' if total > 1 else ' is'} read as missing: {words}{more}"]


def negative_notes(table: Table, columns: Sequence[str]) -> list[str]:
    """Say how many numbers in parentheses are read as negative."""
    texts = [table.text(c) for c in columns if is_text(table.frame[c])]
    found = [cell for cells in texts for cell in cells[cells.str.match(r"\([^\d)]*\d", na=False)]]
    if not found:
        return []
    cells = f"{len(found):,} cell{'s' if len(found) > 1 else ''}"
    return [f"Numbers in parentheses are read as negative: {cells}, the first is '{found[0]}'"]
