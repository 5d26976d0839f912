"""CSV text as a frame: the delimiter and the decimal mark guessed, faults named by their line."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.readers.errors import CommandError
from rbfdiffnet.readers.numbers import Marks

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Parsed", "parse_csv"]

_SAMPLE = 1000  # lines from which the order of dates is told
_DATA = re.compile(r"[-+]?[\d.,]+|\d{1,4}[-./]\d{1,2}[-./]\d{1,4}.*")
_SEP = re.compile(r'"?sep=([,;\t|])"?[ ,;\t|]*(?:\r\n|\n|\r)', re.IGNORECASE)
_DAY_FIRST = re.compile(r"\d{1,2}\.\d{1,2}\.\d{2,4}(?= |$)")
_THREE = re.compile(r"(?<![\d.])\d{1,3}\.\d{3}(?![\d.])")
Row = tuple[int, list[str]]


@dataclass(frozen=True)
class Parsed:
    """CSV text as a frame.

    Parameters
    ----------
    frame : DataFrame
        Numbers where a column has nothing else; other columns as text.
    place : callable
        Says on which line a row is.
    marks : dict
        For columns with decimal commas or marks that take a guess: the decimal mark, empty where
        nothing tells it, and what was assumed.
    written : callable
        Gives a column as it was written.
    """

    frame: pd.DataFrame
    place: Callable[[int], str]
    marks: dict[str, tuple[str, str]]
    written: Callable[[str], pd.Series[Any]]


def parse_csv(text: str, name: str, decimal: str | None = None) -> Parsed:
    r"""Parse CSV text with a header line.

    Parameters
    ----------
    text : str
    name : str
        Name of the file, for messages.
    decimal : {".", ","}, optional
        The decimal mark; by default guessed for each column.

    Returns
    -------
    Parsed

    Raises
    ------
    CommandError
        If there is no table in it, with the line and the remedy.

    Examples
    --------
    >>> from rbfdiffnet.readers.csvfile import parse_csv
    >>> parsed = parse_csv("id;y\n007;1,5\n008;2\n", "a.csv")
    >>> parsed.frame.to_dict("list"), parsed.place(1), parsed.marks
    ({'id': [7, 8], 'y': [1.5, 2.0]}, 'line 3', {'y': (',', '')})
    >>> parsed.written("id").tolist()
    ['007', '008']
    """
    told = _SEP.match(text)
    if told:  # a blank line keeps the numbers of the others
        text = text[told.end() - 1 :]
    delimiter = told[1] if told else _guess_delimiter(text)
    sample = list(islice(_rows(text, delimiter, name), _SAMPLE))
    if not sample:
        raise CommandError(f"{name} is empty; give a header line and lines of values")
    (line, header), body = sample[0], sample[1:]
    _check_title(text, header, line, name)
    _check_header(header, line, name, delimiter)
    if not body:
        raise CommandError(f"{name} has a header but no values; add lines below it")
    read, frame = _reader(text, name, delimiter, decimal or ".", header)

    def place(row: int) -> str:
        # Control characters may end lines for one reader and not for another.
        found = next(islice(_rows(text, delimiter, name), row + 1, None), None)
        return f"row {row + 1}" if found is None else f"line {found[0]}"

    def written(column: str) -> pd.Series[Any]:
        return read([column], dtype=object)[column]

    marks: dict[str, tuple[str, str]] = {}
    if decimal is None:
        day_first = any(_DAY_FIRST.match(cell) for _, row in body for cell in row)
        marks = _marks(frame, text, written, delimiter, day_first)
        commas = [column for column, (mark, _) in marks.items() if mark == ","]
        if commas:
            frame[commas] = read(commas, decimal=",")[commas]
    return Parsed(frame, place, marks, written)


def _marks(
    frame: pd.DataFrame,
    text: str,
    written: Callable[[str], pd.Series[Any]],
    delimiter: str,
    day_first: bool,
) -> dict[str, tuple[str, str]]:
    """Decide on the decimal marks of columns, by all of their cells."""
    kinds = frame.dtypes
    seen: dict[str, Marks] = {}
    three = any(kind.kind == "f" for kind in kinds) and _THREE.search(text)
    for column in frame.columns:
        if kinds[column].kind == "f":
            certain = not three or _has_points(frame[column].to_numpy())
            if not certain:
                seen[column] = Marks.of(map(str.strip, written(column).dropna().unique()))
            elif _has_fractions(frame[column].to_numpy()):
                seen[column] = Marks(".")
        elif kinds[column].kind not in "iub":
            cells = frame[column].dropna().unique()
            seen[column] = Marks.of(str(cell).strip() for cell in cells)
    elsewhere = {marks.clear for marks in seen.values() if marks.clear}
    found = {}
    for column, marks in seen.items():
        mark = marks.settle(delimiter, day_first, elsewhere)
        usual = delimiter == "," and mark == "." and "." in marks.unclear
        note = marks.note(column, mark) if mark and not usual else ""
        if mark != "." or note:
            found[column] = (mark, note)
    return found


def _has_points(values: npt.NDArray[np.float64]) -> bool:
    """Tell whether some number cannot have been written with a point between thousands."""
    finite = values[np.isfinite(values)]
    broken = finite[finite != np.rint(finite)]
    size = np.abs(broken)
    return bool(((size < 1) | (size >= 1000) | (np.round(size, 3) != size)).any())


def _has_fractions(values: npt.NDArray[np.float64]) -> bool:
    finite = values[np.isfinite(values)]
    return bool((finite != np.rint(finite)).any())


def _rows(text: str, delimiter: str, name: str) -> Iterator[Row]:
    """Rows that are not blank, with the number of the line they end on."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise CommandError(f"{name}, line {reader.line_num}: {error}; is it a CSV file?") from None


def _guess_delimiter(text: str) -> str:
    """The mark that splits the first lines into the most columns, and into equally many."""
    lines = [line for line in text[:100_000].splitlines()[:20] if line.strip()]

    def quality(mark: str) -> tuple[int, int]:
        try:
            sizes = [len(row) for row in csv.reader(lines, delimiter=mark)]
        except csv.Error:
            return (0, 0)
        same = sum(size == sizes[0] for size in sizes) if sizes else 0
        return (same if sizes and sizes[0] > 1 else 0, sizes[0] if sizes else 0)

    return max(",;\t|", key=quality)


def _check_title(text: str, header: list[str], line: int, name: str) -> None:
    """Refuse a line with one cell above the names of columns."""
    title = [cell for cell in header if cell]
    lines = [other for other in text[:100_000].splitlines()[:20] if re.search(r"\w", other)]
    if len(title) > 1 or not header[0] or len(lines) < 3:
        return
    below = [[cell.strip() for cell in re.split(r"[,;\t|]", other)] for other in lines[1:]]
    if len(below[-1]) > 1 and not any(_DATA.fullmatch(cell) for cell in below[0]):
        raise CommandError(
            f"{name}, line {line} has one cell ('{title[0]}'), lines below it have more; remove "
            "lines above the names of the columns"
        )


def _check_header(header: list[str], line: int, name: str, delimiter: str) -> None:
    if _DATA.fullmatch(header[0]) and any(_DATA.fullmatch(cell) for cell in header[1:]):
        raise CommandError(
            f"{name}, line {line} looks like data ('{delimiter.join(header[:4])}'); "
            "add a line with the names of the columns above it"
        )
    named = [cell for cell in header if cell]
    if len(set(named)) < len(named):
        twice = next(column for column in named if named.count(column) > 1)
        first, second = [i + 1 for i, cell in enumerate(header) if cell == twice][:2]
        raise CommandError(
            f"{name}, line {line}: two columns are called '{twice}' (columns {first} and {second});"
            " rename one"
        )


def _reader(
    text: str, name: str, delimiter: str, decimal: str, header: list[str]
) -> tuple[Callable[..., pd.DataFrame], pd.DataFrame]:
    """Return what reads columns of the text, and the frame of all of them."""
    import pandas as pd

    labels = [cell or f"column {i + 1}" for i, cell in enumerate(header)]
    body = _from_header(text, delimiter)

    def load(columns: list[str] | None = None, **options: Any) -> pd.DataFrame:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # cells that would be lost
            frame: pd.DataFrame = pd.read_csv(
                io.StringIO(body),
                sep=delimiter,
                header=0,
                names=labels,
                usecols=columns,
                index_col=False,
                skipinitialspace=True,
                keep_default_na=False,
                na_values=[""],
                low_memory=False,
                **options,
            )
        return frame

    try:
        frame = load(decimal=decimal)
    except (pd.errors.ParserError, pd.errors.ParserWarning):
        body = _trimmed(text, name, delimiter, header)
        frame = load(decimal=decimal)
    kept = frame.notna().any(axis=1).to_numpy()
    everything = bool(kept.all())

    def read(columns: list[str], **options: Any) -> pd.DataFrame:
        part = load(columns, **options)
        return part if everything else part[kept].reset_index(drop=True)

    frame = frame if everything else frame[kept].reset_index(drop=True)
    nameless = [
        label
        for label, cell in zip(labels, header, strict=True)
        if re.fullmatch(r"(Unnamed: \d+)?", cell)
    ]
    return read, frame.drop(columns=[label for label in nameless if _useless(frame[label])])


def _useless(cells: pd.Series[Any]) -> bool:
    """Tell whether a column without a name is empty, or counts the rows."""
    if cells.dtype.kind == "i":
        return bool((cells.diff().iloc[1:] == 1).all() and cells.iloc[0] in (0, 1))
    return bool(cells.isna().all())


def _from_header(text: str, delimiter: str) -> str:
    """Leave out lines before the header that have nothing but delimiters."""
    match = re.match(rf"(?:[ \t\"{re.escape(delimiter)}]*(?:\r\n|\n|\r))+", text)
    return text[match.end() :] if match else text


def _trimmed(text: str, name: str, delimiter: str, header: list[str]) -> str:
    """Cut lines that end in delimiters too many, or say which line has too many cells."""
    kept = io.StringIO()
    writer = csv.writer(kept, delimiter=delimiter)
    for line, row in _rows(text, delimiter, name):
        if any(row[len(header) :]):
            raise CommandError(
                f"{name}, line {line} has {len(row)} cells but the header {len(header)}; "
                f"put cells that contain '{delimiter}' in quotes, and remove lines above the names "
                "of the columns"
            )
        writer.writerow((row + [""] * len(header))[: len(header)])
    return kept.getvalue()
