"""Where the table of a CSV file begins: its delimiter, lines above it, names of columns."""

from __future__ import annotations

import csv
import re

from rbfdiffnet.support.checks import CommandError

_DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}.*|\d{4}-[QW]?\d{1,2}|\d{1,2}/\d{4}")
_DATA = re.compile(rf"[-+]?[\d.,]+|{_DATE.pattern}")
_FIRST = 20  # lines that tell the delimiter, and where the table begins


def find_table(lines: list[str], marks: str) -> tuple[str, int]:
    """Return the delimiter, and the number of lines above the names of the columns.

    It is the mark that splits the most of the first lines alike, and into the most cells.
    """
    above = {mark: _count_titles(lines, mark) for mark in marks}

    def quality(mark: str) -> tuple[int, int]:
        first = [line for line in lines[above[mark] :][:_FIRST] if line.strip()]
        try:
            sizes = [len(row) for row in csv.reader(first, delimiter=mark)] or [0]
        except csv.Error:
            return (0, 0)
        return (sum(size == sizes[0] for size in sizes) if sizes[0] > 1 else 0, sizes[0])

    best = max(marks, key=quality)
    return best, above[best]


def _count_titles(lines: list[str], delimiter: str) -> int:
    """Count the lines above the names of the columns; they must have fewer cells than these.

    The lines below the names must not have more cells, and values or dates.
    """
    rows: list[list[str]] = []
    for line in lines[: 2 * _FIRST]:
        if line.count('"') % 2:  # a cell of several lines
            break
        cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
        last = max((i for i, cell in enumerate(cells) if cell.strip()), default=-1)
        rows.append([cell.strip() for cell in cells[: last + 1]])
    widest = 0
    for i, row in enumerate(rows[:_FIRST]):
        below = [other for other in rows[i + 1 :] if other]
        fits = below and len(row) >= max(map(len, below)) and len(below[0]) > widest
        if widest and len(row) > widest and fits and _are_names(row, below[0]):
            return i
        widest = max(widest, len(row))
    return 0


def _are_names(row: list[str], below: list[str]) -> bool:
    """Tell whether a line names columns: no values above values, no dates above dates."""
    named = [cell for cell in row if cell]
    texts = [cell for cell in named if not _DATA.fullmatch(cell)]
    dated = [(is_date(cell), is_date(other)) for cell, other in zip(row, below, strict=False)]
    return (
        len(named) > 1
        and len(set(named)) == len(named)
        and not _DATA.fullmatch(row[0])
        and len(texts) + sum(map(is_date, named)) >= len(named)
        and (True, True) not in dated
        and any(map(_DATA.fullmatch, below))
    )


def is_date(cell: str) -> bool:
    """Tell whether a cell is a date or a year."""
    return (_DATE.fullmatch(cell) or re.fullmatch(r"(1[789]|2[012])\d\d", cell)) is not None


def note_titles(titles: list[str], delimiter: str) -> tuple[str, ...]:
    """Say how many lines above the table are left out."""
    texts = [text for line in titles if (text := line.strip(f"{delimiter} \r\n"))]
    if not texts:
        return ()
    lines = "1 line" if len(texts) == 1 else f"{len(texts):,} lines"
    return (f"Left out: {lines} above the names of the columns ('{texts[0]}')",)


def check_header(
    where: str, head: str, delimiter: str, header: list[str], below: list[str]
) -> None:
    """Refuse a header with a title above it, that looks like data, or has a name twice.

    A date above another date, in the line `below`, is data.
    """
    named = [cell for cell in header if cell]
    lines = [other for other in head.splitlines()[:_FIRST] if re.search(r"\w", other)]
    if len(named) == 1 and header[0] and len(lines) > 2:
        rest = [[cell.strip() for cell in re.split(r"[,;\t|]", other)] for other in lines[1:]]
        if len(rest[-1]) > 1 and not any(_DATA.fullmatch(cell) for cell in rest[0]):
            raise CommandError(
                f"{where} has one cell ('{named[0]}'), lines below it have more; remove lines "
                "above the names of the columns"
            )
    dates = (all(map(_DATE.fullmatch, pair)) for pair in zip(header, below, strict=False))
    numbers = _DATA.fullmatch(header[0]) and any(map(_DATA.fullmatch, header[1:]))
    if numbers or any(dates):
        raise CommandError(
            f"{where} looks like data ('{delimiter.join(header[:4])}'); add a line with the names "
            "of the columns above it"
        )
    if len(set(named)) < len(named):
        twice = next(column for column in named if named.count(column) > 1)
        first, second = [i + 1 for i, cell in enumerate(header) if cell == twice][:2]
        raise CommandError(
            f"{where}: two columns are called '{twice}' (columns {first} and {second}); rename one"
        )
