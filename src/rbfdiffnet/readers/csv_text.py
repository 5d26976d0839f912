"""CSV text as a table: the delimiter and the decimal marks are guessed, faults named by line."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from rbfdiffnet.readers.numbers import MarkEvidence
from rbfdiffnet.readers.table import Table
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.errors import CommandError

_SAMPLE = 1000  # lines that are searched for dates such as 31.1.2024
_DATA = re.compile(r"[-+]?[\d.,]+|\d{1,4}[-./]\d{1,2}[-./]\d{1,4}.*")
_SEP_LINE = re.compile(r'"?sep=([,;\t|])"?[ ,;\t|]*(?:\r\n|\n|\r)', re.IGNORECASE)
_DAY_FIRST = re.compile(r"\d{1,2}\.\d{1,2}\.\d{2,4}(?= |$)")
_THREE_DIGITS = re.compile(r"(?<![\d.])\d{1,3}\.\d{3}(?![\d.])")  # 1.234: decimals or thousands


def parse_csv(text: str, name: str, decimal: str | None = None) -> Table:
    """Parse CSV text with a header line; `decimal` is the decimal mark of all columns, if given."""
    sep_line = _SEP_LINE.match(text)
    if sep_line:  # a blank line instead of it keeps the numbers of the other lines
        text = text[sep_line.end() - 1 :]
    delimiter = sep_line[1] if sep_line else _guess_delimiter(text)
    sample = list(islice(_iterate_rows(text, delimiter, name), _SAMPLE))
    if not sample:
        raise CommandError(f"{name} is empty; give a header line and lines of values")
    (line, header), body = sample[0], sample[1:]
    _check_title(text, header, line, name)
    _check_header(header, line, name, delimiter)
    if not body:
        raise CommandError(f"{name} has a header but no values; add lines below it")
    read_columns, frame = _read_frame(text, name, delimiter, decimal or ".", header)

    def locate_row(row: int) -> str:
        # Control characters may end lines for csv.reader and not for pandas.
        found = next(islice(_iterate_rows(text, delimiter, name), row + 1, None), None)
        return f"row {row + 1}" if found is None else f"line {found[0]}"

    def original_text(column: str) -> pd.Series[Any]:
        return read_columns([column], dtype=object)[column]

    marks: dict[str, tuple[str, str]] = {}
    if decimal is None:
        day_first = any(_DAY_FIRST.match(cell) for _, row in body for cell in row)
        marks = _guess_marks(frame, text, original_text, delimiter, day_first)
        commas = [column for column, (mark, _) in marks.items() if mark == ","]
        if commas:
            frame[commas] = read_columns(commas, decimal=",")[commas]
    return Table(
        *(name, frame, decimal or ".", locate_row), decimal_marks=marks, original_text=original_text
    )


def _guess_marks(
    frame: pd.DataFrame,
    text: str,
    original_text: Callable[[str], pd.Series[Any]],
    delimiter: str,
    day_first: bool,
) -> dict[str, tuple[str, str]]:
    """Return the decimal marks of columns and notes on them, by all cells of the columns.

    Columns whose mark is a point beyond doubt are left out.
    """
    kinds = frame.dtypes
    evidence: dict[str, MarkEvidence] = {}
    three = any(kind.kind == "f" for kind in kinds) and _THREE_DIGITS.search(text)
    for column in frame.columns:
        if kinds[column].kind == "f":
            values = frame[column].to_numpy()
            if three and not _has_certain_points(values):
                cells = original_text(column).dropna().unique()
                evidence[column] = MarkEvidence.from_cells(map(str.strip, cells))
            elif _fractions(values).size:
                evidence[column] = MarkEvidence(".")
        elif kinds[column].kind not in "iub":
            cells = frame[column].dropna().unique()
            evidence[column] = MarkEvidence.from_cells(str(cell).strip() for cell in cells)
    elsewhere = {found.clear for found in evidence.values() if found.clear}
    marks = {}
    for column, found in evidence.items():
        mark = found.choose_mark(delimiter, day_first, elsewhere)
        usual = delimiter == "," and mark == "." and "." in found.unclear
        note = found.note(column, mark) if mark and not usual else ""
        if mark != "." or note:
            marks[column] = (mark, note)
    return marks


def _fractions(values: Array) -> Array:
    """Return the finite values that are not whole."""
    return np.extract(np.isfinite(values) & (values != np.rint(values)), values)


def _has_certain_points(values: Array) -> bool:
    """Tell whether some number cannot have been written with a point between thousands."""
    size = np.abs(_fractions(values))
    return bool(((size < 1) | (size >= 1000) | (np.round(size, 3) != size)).any())


def _iterate_rows(text: str, delimiter: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of rows that are not blank, with the number of the line they end on."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise CommandError(f"{name}, line {reader.line_num}: {error}; is it a CSV file?") from None


def _guess_delimiter(text: str) -> str:
    """Return the mark that splits the most of the first lines alike, and into the most cells."""
    lines = [line for line in text[:100_000].splitlines()[:20] if line.strip()]

    def quality(mark: str) -> tuple[int, int]:
        try:
            sizes = [len(row) for row in csv.reader(lines, delimiter=mark)] or [0]
        except csv.Error:
            return (0, 0)
        return (sum(size == sizes[0] for size in sizes) if sizes[0] > 1 else 0, sizes[0])

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
    """Refuse a header that looks like data, or that has a name twice."""
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


def _read_frame(
    text: str, name: str, delimiter: str, decimal: str, header: list[str]
) -> tuple[Callable[..., pd.DataFrame], pd.DataFrame]:
    """Return a function that reads some columns of the text again, and the frame of all of them."""
    labels = [cell or f"column {i + 1}" for i, cell in enumerate(header)]
    # Lines before the header that have nothing but delimiters are left out.
    above = re.match(rf"(?:[ \t\"{re.escape(delimiter)}]*(?:\r\n|\n|\r))+", text)
    body = text[above.end() :] if above else text

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
        body = _trim_lines(text, name, delimiter, header)
        frame = load(decimal=decimal)
    kept = frame.notna().any(axis=1).to_numpy()

    def drop_blank_rows(part: pd.DataFrame) -> pd.DataFrame:
        return part if kept.all() else part[kept].reset_index(drop=True)

    def read_columns(columns: list[str], **options: Any) -> pd.DataFrame:
        return drop_blank_rows(load(columns, **options))

    frame = drop_blank_rows(frame)
    useless = [
        label
        for label, cell in zip(labels, header, strict=True)
        if re.fullmatch(r"(Unnamed: \d+)?", cell) and _is_useless(frame[label])
    ]
    return read_columns, frame.drop(columns=useless)


def _is_useless(cells: pd.Series[Any]) -> bool:
    """Tell whether a column without a name is empty, or counts the rows."""
    if cells.dtype.kind == "i":
        return bool((cells.diff().iloc[1:] == 1).all() and cells.iloc[0] in (0, 1))
    return bool(cells.isna().all())


def _trim_lines(text: str, name: str, delimiter: str, header: list[str]) -> str:
    """Cut delimiters at the end of lines that are too many; name a line with too many cells."""
    kept = io.StringIO()
    writer = csv.writer(kept, delimiter=delimiter)
    for line, row in _iterate_rows(text, delimiter, name):
        if any(row[len(header) :]):
            raise CommandError(
                f"{name}, line {line} has {len(row)} cells but the header {len(header)}; "
                f"put cells that contain '{delimiter}' in quotes, and remove lines above the names "
                "of the columns"
            )
        writer.writerow((row + [""] * len(header))[: len(header)])
    return kept.getvalue()
