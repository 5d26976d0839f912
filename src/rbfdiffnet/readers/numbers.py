"""Numbers as people write them: 1,234.5 and 1.234,5 and 1 234,5."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.readers.errors import CommandError
from rbfdiffnet.support.stability import LARGEST

if TYPE_CHECKING:
    import pandas as pd

    from rbfdiffnet.readers.table import Table

__all__ = ["Marks", "missing_note", "negative_note", "parse_numbers", "read_numbers"]

_MISSING = frozenset(
    (
        *("", "na", "n/a", "nan", "null", "none", "nil", "missing", "-", "--", ".", "?"),
        *("k.a.", "k. a.", "#n/a", "#na", "#nv", "#value!", "#wert!", "#div/0!", "#ref!"),
        *("#bezug!", "#name?", "#num!", "#zahl!", "#null!"),
    )
)
_TOLD = 4  # words that are named in a line
# A sign, then what settles which mark is the decimal one.
_SPACES = " '\u2019\u00a0\u2009\u202f"
_COMMA, _POINT = (
    re.compile(
        rf"[-+]?(\d{{1,3}}([{_SPACES}{other}]\d{{3}})+{mark}\d+|0{mark}\d+"
        rf"|\d+{mark}(\d{{1,2}}|\d{{4,}})|\d{{4,}}{mark}\d+)"
    )
    for mark, other in ((",", "."), (r"\.", ","))
)
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:([.,])\d{3})(?:\1\d{3})+")
_BOTH = re.compile(r"[-+]?\d{1,3}([.,])\d{3}.*(?!\1)[.,]\d+")
_NEGATIVE = re.compile(r"\(\s*(\d[^()]*)\)|(\d[\d.,]*)-")
_WHOLE = re.compile(r"\d+")
_EITHER = re.compile(r"[-+]?[1-9]\d{0,2}([.,])\d{3}")


@dataclass(frozen=True)
class Marks:
    """What the cells of a column say about their decimal mark.

    Parameters
    ----------
    clear : {".", ",", ""}
        The decimal mark, empty where no cell settles it.
    unclear : dict
        For a mark, the first cell in which it could part thousands or decimals, as 1.234.
    small, large : bool
        Whether there are whole numbers without marks, below 1000 and from there on.
    both : bool
        Whether a cell shows that the column has marks between thousands, as 1.234,5.

    Examples
    --------
    >>> from rbfdiffnet.readers.numbers import Marks
    >>> Marks.of(["998", "1.002"])
    Marks(clear='', unclear={'.': '1.002'}, small=True, large=False, both=False)
    >>> Marks.of(["1.002", "0,5"]).clear
    ','
    """

    clear: str = ""
    unclear: dict[str, str] = field(default_factory=dict)
    small: bool = False
    large: bool = False
    both: bool = False

    @classmethod
    def of(cls, cells: Iterable[str]) -> Marks:
        """Look at cells, once each."""
        votes = {".": 0, ",": 0}
        unclear: dict[str, str] = {}
        small = large = both = False
        for cell in map(_signed, cells):
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

    def settle(self, delimiter: str, day_first: bool, elsewhere: set[str]) -> str:
        r"""Return the decimal mark of the column, empty where nothing tells.

        Files with semicolons, and with dates such as 31.1.2024, have decimal commas unless other
        columns show points. Cells such as 1.234 beside 998 have marks between thousands.

        Parameters
        ----------
        delimiter : str
            What separates the cells.
        day_first : bool
            Whether there are dates such as 31.1.2024.
        elsewhere : set of str
            The marks that other columns show.

        Returns
        -------
        str

        Examples
        --------
        >>> from rbfdiffnet.readers.numbers import Marks
        >>> Marks.of(["998", "1.002"]).settle(";", False, set())
        ','
        >>> Marks.of(["1.002"]).settle("\t", False, set())
        ''
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


def parse_numbers(
    cells: pd.Series[Any], decimal: str = ".", missing: Collection[str] = ()
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Read a column as numbers.

    Parameters
    ----------
    cells : Series
        Numbers, or text with thousands marks (points, commas, spaces, apostrophes).
    decimal : {".", ","}, default="."
    missing : collection of str, default=()
        Further words, or numbers, that stand for a missing value.

    Returns
    -------
    values : ndarray
        NaN where a cell is empty or says NA, null, - and the like; small whole numbers stay small.
        A minus may come last, as in 12,5-, and be written as parentheses.
    bad : ndarray of int
        The rows that are no numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.numbers import parse_numbers
    >>> parse_numbers(pd.Series(["1.234,5", "n/a", "7", "x"]), decimal=",")
    (array([1234.5,    nan,    7. ,    nan]), array([3]))
    >>> parse_numbers(pd.Series([3, -999]), missing=["-999"])
    (array([ 3., nan]), array([], dtype=int64))
    """
    values, bad = _parsed(cells, decimal, {word.strip().lower() for word in missing})
    numbers = [number for word in missing if (number := _number(word, decimal)) is not None]
    if numbers and (hit := np.isin(values, numbers)).any():
        values = np.where(hit, np.nan, values)
    return values, bad


def _parsed(
    cells: pd.Series[Any], decimal: str, missing: set[str]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    import pandas as pd

    from rbfdiffnet.readers.table import text_cells

    nothing = np.empty(0, dtype=np.int64)
    if not text_cells(cells):
        if pd.api.types.is_numeric_dtype(cells.dtype) and cells.dtype.kind in "iufb":
            if isinstance(cells.dtype, np.dtype):
                return cells.to_numpy(), nothing
            return cells.to_numpy(dtype=np.float64, na_value=np.nan), nothing
        return np.full(len(cells), np.nan), np.flatnonzero(cells.notna())
    codes, distinct = pd.factorize(cells)
    values, good = np.full(len(distinct) + 1, np.nan), np.ones(len(distinct) + 1, dtype=bool)
    for i, cell in enumerate(distinct):
        found = _number(cell, decimal, missing)
        good[i] = found is not None
        values[i] = np.nan if found is None else found
    return values[codes], np.flatnonzero(~good[codes])


def read_numbers(
    table: Table, column: str, remedy: str, beside: Sequence[str] = (), *, gaps: bool = True
) -> npt.NDArray[Any]:
    """Read a column as numbers, or name the first cell that is none.

    Parameters
    ----------
    table : Table
    column : str
    remedy : str
        What else the user can do; may be empty.
    beside : sequence of str, default=()
        Columns that will be read as well: words in them are named at once.
    gaps : bool, default=True
        Whether values may be missing, so that words may be called so.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.numbers import read_numbers
    >>> from rbfdiffnet.readers.table import Table
    >>> frame = pd.DataFrame({"y": ["1", "12a"]})
    >>> read_numbers(Table("a.csv", frame, ".", "row {}".format), "y", "ask someone")
    Traceback (most recent call last):
        ...
    rbfdiffnet.readers.errors.CommandError: a.csv, row 1, column 'y': '12a' is not a number; ...
    """
    cells = table.frame[column]
    mark = table.mark(column)
    if not mark:
        row = int(np.argmax(table.words(column).str.fullmatch(_EITHER.pattern).fillna(False)))
        raise CommandError(
            f"{table.cell(row, column)}: '{table.words(column).iloc[row]}' may have a decimal mark "
            "or one between thousands; say which with --decimal . or --decimal ,"
        )
    values, bad = parse_numbers(cells, mark, table.missing)
    if len(bad):
        more = f" ({len(bad) - 1} more like it)" if len(bad) > 1 else ""
        other = _POINT if mark == "," else _COMMA
        if other.fullmatch(str(cells.iloc[int(bad[0])]).strip()):
            more += f" where '{mark}' is the decimal mark, as in other cells"
        ways = ["correct it", *(["leave the cell empty"] if gaps else [])]
        ways += [remedy] if remedy else []
        if gaps and (words := _words(table, [column, *(c for c in beside if c != column)])):
            ways.append(f"say --missing {' '.join(words)} if that means that there is no value")
        raise CommandError(
            f"{table.cell(int(bad[0]), column)}: '{cells.iloc[int(bad[0])]}' is not a number{more};"
            f" {', '.join(ways[:-1])}, or {ways[-1]}"
        )
    if values.dtype.kind == "f":
        large = np.flatnonzero(np.isfinite(values) & (np.abs(values) > LARGEST))
        if large.size:
            row = int(large[0])
            raise CommandError(
                f"{table.cell(row, column)}: '{cells.iloc[row]}' is too large to work with; "
                "correct or rescale it"
            )
    return values


def _words(table: Table, columns: Sequence[str]) -> list[str]:
    """Return the first words among cells that are no numbers, as a shell takes them."""
    found: dict[str, None] = {}
    for column in columns:
        cells = table.frame[column]
        _, bad = parse_numbers(cells, table.mark(column) or ".", table.missing)
        words = (str(cell).strip() for cell in cells.iloc[bad].unique())
        found |= dict.fromkeys(word for word in words if not re.search(r"\d", word))
        if len(found) > _TOLD:
            break
    return [shlex.quote(word) for word in list(found)[:_TOLD]]


def missing_note(table: Table, columns: Sequence[str]) -> list[str]:
    """Say how many cells of columns are read as missing though they are not empty.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.numbers import missing_note
    >>> from rbfdiffnet.readers.table import Table
    >>> table = Table("a.csv", pd.DataFrame({"y": ["1", "n/a", "n/a", "-"]}), ".", str)
    >>> missing_note(table, ["y"])
    ["3 cells are read as missing: 'n/a' (2), '-' (1)"]
    """
    from rbfdiffnet.readers.table import text_cells

    counts: Counter[str] = Counter()
    for column in columns:
        cells = table.frame[column].dropna()
        if not (text_cells(cells) or table.missing):
            continue
        values, bad = parse_numbers(cells, table.mark(column) or ".", table.missing)
        gone = np.isnan(values.astype(np.float64))
        gone[bad] = False
        for cell, count in cells[gone].value_counts().items():
            counts[f"{cell:g}" if isinstance(cell, float) else str(cell).strip()] += int(count)
    del counts[""]  # nothing but spaces
    total = counts.total()
    if not total:
        return []
    told = ", ".join(f"'{word}' ({n:,})" for word, n in counts.most_common(_TOLD))
    more = ", ..." if len(counts) > _TOLD else ""
    return [f"{total:,} cell{'s are' if total > 1 else ' is'} read as missing: {told}{more}"]


def negative_note(table: Table, columns: Sequence[str]) -> list[str]:
    """Say how many numbers in parentheses are read as negative.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.numbers import negative_note
    >>> from rbfdiffnet.readers.table import Table
    >>> negative_note(Table("a.csv", pd.DataFrame({"y": ["1", "(2.5)"]}), ".", str), ["y"])
    ["Numbers in parentheses are read as negative: 1 cell, the first is '(2.5)'"]
    """
    from rbfdiffnet.readers.table import text_cells

    texts = [table.words(c) for c in columns if text_cells(table.frame[c])]
    found = [cell for cells in texts for cell in cells[cells.str.match(r"\(\s*\d", na=False)]]
    if not found:
        return []
    cells = f"{len(found):,} cell{'s' if len(found) > 1 else ''}"
    return [f"Numbers in parentheses are read as negative: {cells}, the first is '{found[0]}'"]


def _signed(text: str) -> str:
    """Write a minus in front, where it is another sign, comes last or is meant by parentheses."""
    if match := _NEGATIVE.fullmatch(text):
        return f"-{(match[1] or match[2]).strip()}"
    return f"-{text[1:]}" if text.startswith("\u2212") else text


def _number(cell: Any, decimal: str, missing: Collection[str] = ()) -> float | None:
    if not isinstance(cell, str):
        try:
            return float(cell)
        except (TypeError, ValueError):
            return None
    text = cell.strip()
    if text.lower() in _MISSING or text.lower() in missing:
        return float("nan")
    text = _signed(text)
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
