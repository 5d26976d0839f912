"""Read a CSV file into columns of text, and write files so that none is ever half written."""

import csv
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rbfdiffnet import files
from rbfdiffnet.cli.errors import CommandError

__all__ = ["Table", "check_writable", "is_number", "read_table", "replacing"]


@dataclass(frozen=True)
class Table:
    """The cells of a CSV file, by column, with the line each row came from.

    Parameters
    ----------
    name : str
        Name of the file, for error messages.
    columns : dict of str to list of str
        The stripped cells of each column, in the order of the file.
    lines : list of int
        The line number of each row.

    Examples
    --------
    >>> from rbfdiffnet.cli.files import Table
    >>> Table("a.csv", {"ds": ["2024-01-01"], "y": ["3"]}, [2]).listing()
    "'ds', 'y'"
    """

    name: str
    columns: dict[str, list[str]]
    lines: list[int]

    def listing(self) -> str:
        """Return the names of the columns, quoted."""
        return ", ".join(f"'{column}'" for column in self.columns)


def read_table(path: str) -> Table:
    r"""Read a CSV file, its delimiter guessed from the header: comma, semicolon, tab or bar.

    Parameters
    ----------
    path : str
        The file, UTF-8 with a header line; ``-`` reads standard input.

    Returns
    -------
    Table
        Its cells; blank lines are skipped, and cells missing at the end of a line are empty.

    Raises
    ------
    CommandError
        If there is no such file, or no table in it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rbfdiffnet.cli.files import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.csv")
    ...     _ = file.write_text("day;sold\n2024-04-01;3\n\n2024-04-02;4\n")
    ...     table = read_table(str(file))
    >>> table.columns["sold"], table.lines
    (['3', '4'], [2, 4])
    """
    name = "standard input" if path == "-" else path
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise CommandError(f"no file '{path}'; check the name and the folder") from None
    except OSError as error:
        raise CommandError(f"cannot read '{path}': {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{name} is not UTF-8 text (byte {error.start}); save it as CSV in UTF-8"
        ) from None
    first = next((line for line in text.splitlines() if line.strip()), "")
    if not first:
        raise CommandError(f"{name} is empty; give a header line and one line a date")
    delimiter = max(",;\t|", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise CommandError(f"{name}, line {reader.line_num}: {error}; is it a CSV file?") from None
    rows = [(line, row) for line, row in rows if any(row)]
    (line, header), body = rows[0], rows[1:]
    if any(is_number(cell) for cell in header):
        raise CommandError(
            f"{name}, line {line} looks like data ('{delimiter.join(header)}'); "
            "add a line with the names of the columns above it"
        )
    if len(set(header)) < len(header):
        twice = next(column for column in header if header.count(column) > 1)
        raise CommandError(f"{name}, line {line}: two columns are called '{twice}'; rename one")
    if not body:
        raise CommandError(f"{name} has a header but no values; add one line a date")
    for line, row in body:
        if len(row) > len(header) and any(row[len(header) :]):
            raise CommandError(
                f"{name}, line {line} has {len(row)} cells but the header {len(header)}; "
                f"put numbers that contain '{delimiter}' in quotes"
            )
    columns = {
        column: [row[i] if i < len(row) else "" for _, row in body]
        for i, column in enumerate(header)
    }
    return Table(name, columns, [line for line, _ in body])


def is_number(cell: str) -> bool:
    """Tell whether a cell reads as a number.

    Examples
    --------
    >>> from rbfdiffnet.cli.files import is_number
    >>> is_number("1e3"), is_number("1,5")
    (True, False)
    """
    try:
        float(cell)
    except ValueError:
        return False
    return True


def check_writable(path: str) -> None:
    """Raise CommandError if a file cannot be written, before any work is done for it.

    Examples
    --------
    >>> from rbfdiffnet.cli.files import check_writable
    >>> check_writable("no-such-folder/forecast.csv")
    Traceback (most recent call last):
        ...
    rbfdiffnet.cli.errors.CommandError: cannot write 'no-such-folder/forecast.csv': ...
    """
    folder = Path(path).parent
    if not folder.is_dir():
        raise CommandError(f"cannot write '{path}': no folder '{folder}'; create it first")
    if Path(path).is_dir():
        raise CommandError(f"cannot write '{path}': it is a folder; give a file name")
    if not os.access(folder, os.W_OK):
        raise CommandError(f"cannot write '{path}': folder '{folder}' is not writable")


@contextmanager
def replacing(path: str) -> Iterator[str]:
    """Give a temporary path beside ``path`` that takes its place once the block succeeds.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rbfdiffnet.cli.files import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/a.txt") as temporary:
    ...         _ = pathlib.Path(temporary).write_text("done")
    ...     [file.name for file in pathlib.Path(folder).iterdir()]
    ['a.txt']
    """
    check_writable(path)
    try:
        with files.replacing(path) as temporary:
            yield str(temporary)
    except OSError as error:
        raise CommandError(f"cannot write '{path}': {error.strerror or error}") from error
