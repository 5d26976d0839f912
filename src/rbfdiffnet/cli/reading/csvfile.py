"""CSV text as a frame: the delimiter and the decimal mark guessed, faults named by their line."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from rbfdiffnet.cli.errors import CommandError
from rbfdiffnet.cli.reading.numbers import guess_decimal

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["parse_csv"]

_SAMPLE = 1000  # lines from which guesses are made
_DATA = re.compile(r"[-+]?[\d.,]+|\d{1,4}[-./]\d{1,2}[-./]\d{1,4}.*")
Row = tuple[int, list[str]]


def parse_csv(
    text: str, name: str, decimal: str | None = None
) -> tuple[pd.DataFrame, str, Callable[[int], str], list[str]]:
    r"""Parse CSV text with a header line.

    Parameters
    ----------
    text : str
    name : str
        Name of the file, for messages.
    decimal : {".", ","}, optional
        The decimal mark; by default guessed.

    Returns
    -------
    frame : DataFrame
        Numbers where a column has nothing else; other columns as text. Numbers that begin with
        zeros, such as 007, are text.
    decimal : str
    place : callable
        Says on which line a row is.
    notes : list of str
        What was assumed.

    Raises
    ------
    CommandError
        If there is no table in it, with the line and the remedy.

    Examples
    --------
    >>> from rbfdiffnet.cli.reading.csvfile import parse_csv
    >>> frame, decimal, place, _ = parse_csv("id;y\n007;1,5\n008;2\n", "a.csv")
    >>> frame.to_dict("list"), decimal, place(1)
    ({'id': ['007', '008'], 'y': [1.5, 2.0]}, ',', 'line 3')
    """
    delimiter = _guess_delimiter(text)
    sample = list(islice(_rows(text, delimiter, name), _SAMPLE))
    if not sample:
        raise CommandError(f"{name} is empty; give a header line and lines of values")
    (line, header), body = sample[0], sample[1:]
    _check_header(header, line, name, delimiter)
    if not body:
        raise CommandError(f"{name} has a header but no values; add lines below it")
    mark, note = guess_decimal((cell for _, row in body for cell in row), delimiter)
    if decimal:
        mark, note = decimal, ""
    zeros = [
        column
        for i, column in enumerate(header)
        if any(i < len(row) and re.fullmatch(r"0\d+", row[i]) for _, row in body)
    ]
    frame = _parsed(text, name, delimiter, mark, header, zeros)

    def place(row: int) -> str:
        found, _ = next(islice(_rows(text, delimiter, name), row + 1, None))
        return f"line {found}"

    return frame, mark, place, [note] if note else []


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


def _check_header(header: list[str], line: int, name: str, delimiter: str) -> None:
    if _DATA.fullmatch(header[0]) and any(_DATA.fullmatch(cell) for cell in header[1:]):
        raise CommandError(
            f"{name}, line {line} looks like data ('{delimiter.join(header[:4])}'); "
            "add a line with the names of the columns above it"
        )
    named = [cell for cell in header if cell]
    if len(set(named)) < len(named):
        twice = next(column for column in named if named.count(column) > 1)
        raise CommandError(f"{name}, line {line}: two columns are called '{twice}'; rename one")


def _parsed(
    text: str, name: str, delimiter: str, decimal: str, header: list[str], as_text: list[str]
) -> pd.DataFrame:
    import pandas as pd

    labels = [cell or f"column {i + 1}" for i, cell in enumerate(header)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # cells that would be lost
            frame = pd.read_csv(
                io.StringIO(text.lstrip("\r\n")),
                sep=delimiter,
                decimal=decimal,
                header=0,
                names=labels,
                index_col=False,
                dtype=dict.fromkeys(as_text, "object"),
                skipinitialspace=True,
                keep_default_na=False,
                na_values=[""],
                low_memory=False,
            )
    except (pd.errors.ParserError, pd.errors.ParserWarning):
        frame = _trimmed(text, name, delimiter, decimal, header, as_text)
    frame = frame.dropna(how="all", ignore_index=True)
    nameless = [label for label, cell in zip(labels, header, strict=True) if not cell]
    return frame.drop(columns=[label for label in nameless if frame[label].isna().all()])


def _trimmed(
    text: str, name: str, delimiter: str, decimal: str, header: list[str], as_text: list[str]
) -> pd.DataFrame:
    """Parse text whose lines end in delimiters too many, or say which line has too many cells."""
    kept = io.StringIO()
    writer = csv.writer(kept, delimiter=delimiter)
    for line, row in _rows(text, delimiter, name):
        if any(row[len(header) :]):
            raise CommandError(
                f"{name}, line {line} has {len(row)} cells but the header {len(header)}; "
                f"put cells that contain '{delimiter}' in quotes"
            )
        writer.writerow((row + [""] * len(header))[: len(header)])
    return _parsed(kept.getvalue(), name, delimiter, decimal, header, as_text)
