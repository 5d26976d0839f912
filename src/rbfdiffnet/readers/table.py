"""A file as a table: text or Parquet, packed or not, from disk or from standard input."""

from __future__ import annotations

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from rbfdiffnet.forecasting.packed import Bounded, most_unpacked
from rbfdiffnet.readers.errors import CommandError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Table", "read_table"]

_TOLD = 3  # columns whose decimal marks are told one by one
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Table:
    """A table and where it came from.

    Parameters
    ----------
    name : str
        Name of the file, for messages.
    frame : DataFrame
        Columns that are numbers throughout are numbers; all others are as they were written.
    decimal : {".", ","}
        The decimal mark of the numbers among the text.
    place : callable
        Says where a row is: ``"line 9"``.
    notes : tuple of str
        What was assumed about the file.
    marks : mapping
        For columns with another decimal mark, or where it takes a guess: the mark, empty where
        nothing tells it, and what was assumed.
    written : callable, optional
        Gives a column as it was written, where the frame has numbers.
    missing : tuple of str
        Words that stand for missing values, beside the usual ones.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.table import Table
    >>> table = Table("a.csv", pd.DataFrame({"ds": ["2024-01-01"], "y": [3]}), ".", "row {}".format)
    >>> table.listing(), table.cell(0, "y")
    ("'ds', 'y'", "a.csv, row 0, column 'y'")
    """

    name: str
    frame: pd.DataFrame
    decimal: str
    place: Callable[[int], str]
    notes: tuple[str, ...] = ()
    marks: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    written: Callable[[str], pd.Series[Any]] | None = None
    missing: tuple[str, ...] = ()
    _words: dict[str, pd.Series[Any]] = field(default_factory=dict, repr=False)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self.frame.columns.tolist()

    def listing(self) -> str:
        """Return the names of the columns, quoted; the first ones of many."""
        names = [f"'{column}'" for column in self.columns[:20]]
        return ", ".join([*names, "..."] if len(self.columns) > 20 else names)

    def mark(self, column: str) -> str:
        """Return the decimal mark of a column, empty where nothing tells it."""
        return self.marks.get(column, (self.decimal, ""))[0]

    def assumed(self, columns: Iterable[str]) -> list[str]:
        """Say what was assumed about the numbers of columns."""
        notes = [self.marks[column][1] for column in columns if column in self.marks]
        notes = [note for note in notes if note]
        more = len(notes) - _TOLD
        return [*notes[:_TOLD], *([f"... and in {more:,} more columns"] if more > 0 else [])]

    def words(self, column: str) -> pd.Series[Any]:
        """Return a column as text as it was written, without spaces around it."""
        if column not in self._words:
            self._words[column] = self._as_text(column)
        return self._words[column]

    def dates(self, column: str) -> pd.Series[Any]:
        """Return a column as it is read for dates: as written where it is no whole numbers."""
        cells = self.frame[column]
        broken = cells.dtype.kind == "f" and not (cells.dropna() % 1 == 0).all()
        return self.words(column) if broken else cells

    def _as_text(self, column: str) -> pd.Series[Any]:
        import pandas as pd

        cells = self.frame[column]
        if self.written is not None and not text_cells(cells):
            cells = self.written(column)
        codes, distinct = pd.factorize(cells)
        texts = [str(cell).strip() or None for cell in distinct]
        if cells.dtype.kind == "f":
            texts = [text.removesuffix(".0") if text else None for text in texts]
        lookup = pd.Series([*texts, None], dtype=object)
        return lookup.take(codes).set_axis(self.frame.index)

    def cell(self, row: int, column: str) -> str:
        """Say where a cell is."""
        return f"{self.name}, {self.place(row)}, column '{column}'"

    def known(self, column: str, option: str) -> str:
        """Return a column that was asked for, if it is there."""
        if column not in self.frame.columns:
            raise CommandError(
                f"{self.name} has no column '{column}' ({option}); its columns: {self.listing()}"
            )
        return column


def read_table(path: str, decimal: str | None = None, missing: Sequence[str] = ()) -> Table:
    r"""Read a CSV file (also gzipped, also UTF-16 or Windows-1252) or a Parquet file.

    Parameters
    ----------
    path : str
        The file; ``-`` reads standard input. What it is, is told from its first bytes.
    decimal : {".", ","}, optional
        The decimal mark; by default guessed.
    missing : sequence of str, default=()
        Words that stand for missing values, beside the usual ones.

    Returns
    -------
    Table

    Raises
    ------
    CommandError
        If there is no such file, or no table in it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rbfdiffnet.readers.table import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.csv")
    ...     _ = file.write_text("day;sold\n2024-04-01;3\n\n2024-04-02;4\n")
    ...     table = read_table(str(file))
    >>> table.frame["sold"].tolist(), table.place(1)
    ([3, 4], 'line 4')
    """
    from rbfdiffnet.readers.csvfile import parse_csv
    from rbfdiffnet.readers.parquet import read_parquet

    name = "standard input" if path == "-" else path
    try:
        with _open(path) as stream:
            head = stream.read(4)
            stream.seek(0)
            if head == b"PAR1":
                frame = read_parquet(stream, name)
                return Table(name, frame, ".", lambda row: f"row {row + 1}", missing=(*missing,))
            if head[:2] == b"PK":
                raise CommandError(
                    f"{name} is a ZIP archive or a spreadsheet; save it as CSV or Parquet"
                )
            data = stream.read()
    except FileNotFoundError:
        raise CommandError(f"no file '{path}'; check the name and the folder") from None
    except IsADirectoryError:
        raise CommandError(f"'{path}' is a folder; name a file in it") from None
    except OSError as error:
        raise CommandError(f"cannot read '{path}': {error.strerror or error}") from None
    if data[:2] == b"\x1f\x8b":
        data = _unpacked(data, name)
    if Path(path).suffix.lower() in (".parquet", ".pq"):
        raise CommandError(f"{name} is no Parquet file (or a broken one); write it again")
    text, notes = _decoded(data, name)
    parsed = parse_csv(text, name, decimal)
    return Table(
        *(name, parsed.frame, decimal or ".", parsed.place, tuple(notes)),
        marks=parsed.marks,
        written=parsed.written,
        missing=(*missing,),
    )


def _open(path: str) -> IO[bytes]:
    if path != "-":
        return Path(path).open("rb")
    if sys.stdin.isatty():
        raise CommandError("- reads standard input, but nothing is piped into it; name a FILE")
    return io.BytesIO(sys.stdin.buffer.read())


def _unpacked(data: bytes, name: str) -> bytes:
    try:
        stream = cast("IO[bytes]", gzip.GzipFile(fileobj=io.BytesIO(data)))
        return Bounded(stream, most_unpacked(len(data))).read()
    except ValueError as error:
        raise CommandError(f"{name} cannot be read: {error}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise CommandError(f"{name} is a broken gzip file ({error}); pack it again") from None


def _decoded(data: bytes, name: str) -> tuple[str, list[str]]:
    """Tell the encoding by its mark, or by what is valid."""
    notes: list[str] = []
    if data[:2] in _UTF16:
        encoding = "utf-16"
    elif data[:200].count(0) > 20:  # UTF-16 without a mark: every other byte of plain text is 0
        encoding = "utf-16-be" if data[:1] == b"\x00" else "utf-16-le"
    else:
        encoding = "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding != "utf-8-sig":
            raise CommandError(f"{name} is not text (byte {error.start}); is it CSV?") from None
        text = data.removeprefix(codecs.BOM_UTF8).decode("cp1252", errors="replace")
        notes.append("Not UTF-8: read as Windows-1252 (Latin-1)")
    if "\x00" in text[:1000]:
        raise CommandError(f"{name} is not text; give a CSV or a Parquet file")
    return text, notes


def text_cells(column: pd.Series[Any]) -> bool:
    """Tell whether a column is text, in any of the ways pandas has for it.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.table import text_cells
    >>> text_cells(pd.Series(["a"])), text_cells(pd.Series([1]))
    (True, False)
    """
    import pandas as pd

    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        kind = kind.categories.dtype
    return bool(kind.kind == "O" or isinstance(kind, pd.StringDtype) or str(kind) == "string")
