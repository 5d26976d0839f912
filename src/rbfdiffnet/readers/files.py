"""Files as tables: CSV text, whose delimiter and decimal marks are guessed, or Parquet."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from rbfdiffnet.readers.columns import is_time_name
from rbfdiffnet.readers.dates import parse_times
from rbfdiffnet.readers.header import check_header, find_table, is_date, note_titles
from rbfdiffnet.readers.numbers import MarkEvidence, find_units, remove_unit
from rbfdiffnet.readers.parquet import read_parquet
from rbfdiffnet.readers.table import Table, is_text
from rbfdiffnet.support.arrays import Array, Mask
from rbfdiffnet.support.checks import CommandError
from rbfdiffnet.support.files import BoundedStream, unpacked_limit

_SAMPLE = 1000  # lines that are searched for dates such as 31.1.2024
_NUL = re.compile(rb"\x00")
_SEP_LINE = re.compile(r'"?sep=([,;\t|])"?[ ,;\t|]*(?:\r\n|\n|\r)', re.IGNORECASE)
_DAY_FIRST = re.compile(r"\d{1,2}\.\d{1,2}\.\d{2,4}(?= |$)")
_THREE_DIGITS = re.compile(rb"(?<![\d.])\d{1,3}\.\d{3}(?![\d.])")  # 1.234: decimals or thousands
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_BLOCK = 2**20  # bytes that are looked at at a time
_HEAD = 100_000  # characters that tell the delimiter
_CELLS_AT_ONCE = 5_000_000  # that are read at a time
_EXACT = 2**53  # whole numbers up to here are floats, too


def read_table(path: str, decimal: str | None = None, missing: Sequence[str] = ()) -> Table:
    """Read a CSV file (also gzipped, also UTF-16 or Windows-1252) or a Parquet file.

    The path ``-`` means standard input. The first bytes tell what the file is. `decimal` is the
    decimal mark, guessed by default; `missing` has further words for missing values.
    """
    name = "standard input" if path == "-" else path
    try:
        with _open(path) as stream:
            head = stream.read(4)
            stream.seek(0)
            if head == b"PAR1":
                frame = read_parquet(stream, name)
                place = lambda row: f"row {row + 1}"  # noqa: E731
                units = find_units(frame, missing)
                return Table(name, frame, ".", place, missing_words=(*missing,), units=units)
            if head[:2] == b"PK":
                raise CommandError(
                    f"{name} is a ZIP archive or a spreadsheet; save it as CSV or Parquet"
                )
            source, notes = _find_encoding(stream, path, name)
    except FileNotFoundError:
        raise CommandError(f"no file '{path}'; check the name and the folder") from None
    except IsADirectoryError:
        raise CommandError(f"'{path}' is a folder; name a file in it") from None
    except OSError as error:
        raise CommandError(f"cannot read '{path}': {error.strerror or error}") from None
    if Path(path).suffix.lower() in (".parquet", ".pq"):
        raise CommandError(f"{name} is no Parquet file (or a broken one); write it again")
    table = _parse_csv(source, name, decimal, missing)
    return replace(table, notes=(*notes, *table.notes))


def _open(path: str) -> IO[bytes]:
    if path != "-":
        return Path(path).open("rb")
    if sys.stdin.isatty():
        raise CommandError("- reads standard input, but nothing is piped into it; name a FILE")
    return io.BytesIO(sys.stdin.buffer.read())


def _unpack(data: bytes, name: str) -> bytes:
    """Return what gzip has packed, once all of it was counted."""
    try:
        packed = cast("IO[bytes]", gzip.GzipFile(fileobj=io.BytesIO(data)))
        stream = BoundedStream(packed, unpacked_limit(len(data)))
        while block := stream.read(_BLOCK):
            if not block.strip(b"\x00"):
                raise CommandError(f"{name} is not text; give a CSV or a Parquet file")
        return gzip.decompress(data)
    except ValueError as error:
        raise CommandError(f"{name} cannot be read: {error}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise CommandError(f"{name} is a broken gzip file ({error}); pack it again") from None


def _find_encoding(stream: IO[bytes], path: str, name: str) -> tuple[Source, tuple[str, ...]]:
    """Return what opens the text, as UTF-8, and notes.

    The encoding is told by its mark, or by what is valid. Files are opened anew, so that they need
    not be in memory.
    """
    start = stream.read(200)
    data: bytes | None = None
    if path == "-" or start[:2] == b"\x1f\x8b":
        stream.seek(0)
        data = stream.read()
        data = _unpack(data, name) if start[:2] == b"\x1f\x8b" else data
        start, stream = data[:200], io.BytesIO(data)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    elif start.count(0) > 20:  # UTF-16 without a mark: every other byte of plain text is 0
        encoding = "utf-16-be" if start[:1] == b"\x00" else "utf-16-le"
    elif _is_utf8(stream):
        skip = len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0
        return Source(path if data is None else data, skip), ()
    else:
        encoding = "cp1252"
    stream.seek(0)
    data = stream.read()
    if encoding == "cp1252":
        text = data.removeprefix(codecs.BOM_UTF8).decode(encoding, errors="replace")
        return Source(text.encode()), ("Not UTF-8: read as Windows-1252 (Latin-1)",)
    try:
        return Source(data.decode(encoding).encode()), ()
    except UnicodeDecodeError as error:
        raise CommandError(f"{name} is not text (byte {error.start}); is it CSV?") from None


def _is_utf8(stream: IO[bytes]) -> bool:
    """Tell whether all of a stream is UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    stream.seek(0)
    try:
        while block := stream.read(_BLOCK):
            if decoder.getstate()[0] or not block.isascii():
                decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


@dataclass(frozen=True)
class Source:
    """Text in UTF-8: its bytes, or the path of a file, of which the first bytes are left out."""

    where: bytes | str
    skip: int = 0

    def open(self) -> IO[bytes]:
        """Open it at its beginning."""
        stream = io.BytesIO(self.where) if isinstance(self.where, bytes) else _open(self.where)
        stream.seek(self.skip)
        return stream

    def lines(self) -> io.TextIOWrapper:
        """Open it as text, with the ends of its lines as they are."""
        return io.TextIOWrapper(self.open(), encoding="utf-8", newline="")

    def after(self, n: int) -> Source:
        """Return it without its first n bytes."""
        return replace(self, skip=self.skip + n)

    def has(self, pattern: re.Pattern[bytes]) -> bool:
        """Tell whether some line has a pattern."""
        with self.open() as stream:
            rest = b""
            while block := stream.read(_BLOCK):
                lines, end, rest = (rest + block).rpartition(b"\n")
                if pattern.search(lines + end):
                    return True
            return pattern.search(rest) is not None


# CSV ------------------------------------------------------------------------------------------


def _parse_csv(text: Source, name: str, decimal: str | None, missing: Sequence[str]) -> Table:
    """Parse CSV text with a header line; `decimal` is the decimal mark of all columns, if given.

    `missing` has words for missing values.
    """
    with text.lines() as lines:
        head = lines.read(_HEAD)
    if text.has(_NUL):  # pandas would end a cell there
        raise CommandError(f"{name} is not text; give a CSV or a Parquet file")
    sep_line = _SEP_LINE.match(head)
    if sep_line:  # a blank line instead of it keeps the numbers of the other lines
        text, head = text.after(sep_line.end() - 1), head[sep_line.end() - 1 :]
    begin = _LINE.findall(head)
    delimiter, above = find_table(begin, sep_line[1] if sep_line else ",;\t|")
    titles = begin[:above]
    text = text.after(len("".join(titles).encode()))
    source = _CsvText(name, text, "".join(begin[above:]), delimiter, above)
    sample = list(islice(source.rows(), _SAMPLE))
    if not sample:
        raise CommandError(f"{name} is empty; give a header line and lines of values")
    (line, header), body = sample[0], sample[1:]
    notes = note_titles(titles, delimiter)
    if source.has_row_names(header, [row for _, row in body]):
        header = ["", *header]
        notes = (*notes, "Lines have one cell more than there are names: the first names the rows")
    where = f"{name}, line {line}"
    check_header(where, source.head, delimiter, header, body[0][1] if body else [])
    if not body:
        raise CommandError(f"{name} has a header but no values; add lines below it")
    frame = source.read_all(header, decimal or ".")

    def original_text(column: str) -> pd.Series[Any]:
        return source.read([column], dtype=object)[column]

    marks: dict[str, tuple[str, str]] = {}
    units = find_units(frame, missing)
    if decimal is None:
        day_first = any(_DAY_FIRST.match(cell) for _, row in body for cell in row)
        marks = _guess_marks(frame, source, original_text, day_first, units)
        commas = [column for column, (mark, _) in marks.items() if mark == ","]
        if commas:
            frame[commas] = source.read(commas, decimal=",")[commas]
    place = source.locate_row
    return Table(
        *(name, frame, decimal or ".", place, notes),
        decimal_marks=marks,
        original_text=original_text,
        missing_words=(*missing,),
        units=units,
    )


@dataclass
class _CsvText:
    """CSV text, and what is known of it once all of it was read.

    `head` is its beginning, `above` counts the lines before it, `labels` name the columns, `body`
    is the text that pandas reads, `kept` tells which of its rows are not blank.
    """

    name: str
    text: Source
    head: str
    delimiter: str
    above: int = 0
    labels: list[str] | None = None
    body: Source = field(default_factory=lambda: Source(b""))
    kept: Mask | None = None

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the cells of rows that are not blank, with the number of the line they end on."""
        with self.text.lines() as lines:
            reader = csv.reader(lines, delimiter=self.delimiter, skipinitialspace=True)
            try:
                for row in reader:
                    cells = [cell.strip() for cell in row]
                    if any(cells):
                        yield self.above + reader.line_num, cells
            except csv.Error as error:
                raise CommandError(
                    f"{self.name}, line {self.above + reader.line_num}: {error}; is it a CSV file?"
                ) from None

    def locate_row(self, row: int) -> str:
        """Say where a row is; control characters may end lines for csv.reader, not for pandas."""
        found = next(islice(self.rows(), row + 1, None), None)
        return f"row {row + 1}" if found is None else f"line {found[0]}"

    def has_row_names(self, header: list[str], sample: list[list[str]]) -> bool:
        """Tell whether rows have one cell more than the header, a name of their own, as by R.

        Dates name no rows: the name of a later column may be missing. A comma that is between whole
        numbers in all rows of the sample may be a decimal one, unless the names are numbers in
        quotes.
        """
        width = len(header) + 1
        longer = all(len(row) == width for row in sample) and any(row[-1] for row in sample)
        if width < 3 or not longer:
            return False
        numbers = [[cell.lstrip("-").isdecimal() for cell in row] for row in sample]
        pairs = [all(row[i] and row[i + 1] for row in numbers) for i in range(width - 1)]
        counted = [row[0] for row in sample] == [str(i + 1) for i in range(len(sample))]
        quoted = counted and re.search(r'^"1"', self.head, re.MULTILINE) is not None
        first = parse_times(pd.Series([row[0] for row in sample], dtype=object))
        no_dates = first.is_integer or (len(first.bad) > len(sample) / 2 and not first.hint)
        dated = not (counted or no_dates)
        named = any(is_time_name(c) and is_date(x) for c, x in zip(header, sample[0], strict=False))
        if dated or named or (self.delimiter == "," and any(pairs) and not quoted):
            return False
        names = set[str]()
        for _, row in islice(self.rows(), 1, None):
            if len(row) != width or row[0] in names:
                return False
            names.add(row[0])
        return True

    def read_all(self, header: list[str], decimal: str) -> pd.DataFrame:
        """Read all columns but those without a name that are empty."""
        self.labels = [cell or f"column {i + 1}" for i, cell in enumerate(header)]
        self.body = self.text.after(self._blank_above())
        try:
            frame = self.read(decimal=decimal)
        except (pd.errors.ParserError, pd.errors.ParserWarning):
            self.body = Source(self._trim_lines(len(header)))
            frame = self.read(decimal=decimal)
        nameless = [
            label
            for label, cell in zip(self.labels, header, strict=True)
            if re.fullmatch(r"(Unnamed: \d+)?", cell)
        ]
        return frame.drop(columns=[label for label in nameless if frame[label].isna().all()])

    def _blank_above(self) -> int:
        """Count the bytes of lines before the header that have nothing but delimiters."""
        blank = re.compile(rf"(?:[ \t\"{re.escape(self.delimiter)}]*(?:\r\n|\n|\r))*".encode())
        count = 0
        with self.text.open() as stream:
            for line in stream:
                end = blank.match(line).end()  # type: ignore[union-attr]
                count += end
                if end < len(line):
                    break
        return count

    def read(self, columns: list[str] | None = None, **options: Any) -> pd.DataFrame:
        """Read some columns, without blank rows."""
        at_once = max(_CELLS_AT_ONCE // len(self.labels or "1"), 1)
        with self._reader(columns, chunksize=at_once, **options) as pieces:
            frame, others = _join_pieces(pieces)
            order = columns or self.labels or ()
        if others:
            with self._reader(others, **options) as whole:
                frame = pd.concat([frame, whole.read()], axis=1)[[*order]]
        if self.kept is None:
            self.kept = frame.notna().any(axis=1).to_numpy()
        return frame if self.kept.all() else frame[self.kept].reset_index(drop=True)

    @contextmanager
    def _reader(self, columns: list[str] | None, **options: Any) -> Iterator[Any]:
        with warnings.catch_warnings(), self.body.open() as stream:
            warnings.simplefilter("error", pd.errors.ParserWarning)  # cells that would be lost
            yield pd.read_csv(
                stream,
                sep=self.delimiter,
                header=0,
                names=self.labels,
                usecols=columns,
                index_col=False,
                skipinitialspace=True,
                keep_default_na=False,
                na_values=[""],
                low_memory=False,
                encoding="utf-8",
                **({"iterator": True} | options),
            )

    def _trim_lines(self, width: int) -> bytes:
        """Cut delimiters at the end of lines that are too many; name a line with too many cells."""
        kept = io.BytesIO()
        lines = io.TextIOWrapper(kept, encoding="utf-8", newline="")
        writer = csv.writer(lines, delimiter=self.delimiter)
        for line, row in self.rows():
            if any(row[width:]):
                raise CommandError(
                    f"{self.name}, line {line} has {len(row)} cells but the header {width}; name "
                    f"all columns, put cells that contain '{self.delimiter}' in quotes, and remove "
                    "lines above the names of the columns"
                )
            writer.writerow((row + [""] * width)[:width])
        lines.flush()
        return kept.getvalue()


def _join_pieces(pieces: Iterable[pd.DataFrame]) -> tuple[pd.DataFrame, list[str]]:
    """Join the pieces of a table; also name the columns that must be read at once to be right."""
    columns: dict[str, _Column] = {}
    first, n = pd.DataFrame(), 0
    for n, piece in enumerate(pieces):
        first = piece if n == 0 else first
        for name in piece:
            columns.setdefault(str(name), _Column()).add(piece[name])
    if n == 0:
        return first, []
    joined = {name: column.join() for name, column in columns.items()}
    sound = {name: values for name, values in joined.items() if values is not None}
    return pd.DataFrame(sound, copy=False), [name for name in joined if name not in sound]


@dataclass
class _Column:
    """A column in pieces, each with its kind: numbers, or texts as positions among words."""

    pieces: list[tuple[str, npt.NDArray[Any]]] = field(default_factory=list)
    words: dict[Any, int] = field(default_factory=dict)

    def add(self, cells: pd.Series[Any]) -> None:
        """Add a piece; one without values is of no kind."""
        if is_text(cells):
            codes, distinct = pd.factorize(cells)
            places = [self.words.setdefault(word, len(self.words)) for word in distinct]
            self.pieces.append(("O", np.array([*places, -1], dtype=np.int32)[codes]))
        else:
            self.pieces.append((cells.dtype.kind * bool(cells.notna().any()), cells.to_numpy()))

    def join(self) -> Any:
        """Return the column; None where its pieces are not of one kind.

        Words that repeat are kept once.
        """
        kinds = {kind for kind, _ in self.pieces}
        if "O" in kinds:
            if not (kinds <= {"O", ""} and all(isinstance(word, str) for word in self.words)):
                return None
            none = np.int32(-1)
            codes = np.concatenate(
                [p if kind else np.full(len(p), none) for kind, p in self.pieces]
            )
            if 2 * len(self.words) > len(codes):
                return np.array([*self.words, np.nan], dtype=object)[codes]
            return pd.Categorical.from_codes(codes, categories=pd.Index(list(self.words)))
        if len(kinds) > 1 and not (kinds <= {"i", "f", ""} and self._is_exact()):
            return None
        return np.concatenate([piece for _, piece in self.pieces])

    def _is_exact(self) -> bool:
        """Tell whether whole numbers are the same as floats."""
        whole = (piece for kind, piece in self.pieces if kind == "i")
        return all(piece.min() >= -_EXACT and piece.max() <= _EXACT for piece in whole)


def _guess_marks(
    frame: pd.DataFrame,
    source: _CsvText,
    original_text: Callable[[str], pd.Series[Any]],
    day_first: bool,
    units: Mapping[str, str],
) -> dict[str, tuple[str, str]]:
    """Return the decimal marks of columns and notes on them, by all cells of the columns.

    Columns whose mark is a point beyond doubt are left out.
    """
    kinds = frame.dtypes
    evidence: dict[str, MarkEvidence] = {}
    three = any(kind.kind == "f" for kind in kinds) and source.text.has(_THREE_DIGITS)
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
            unit = units.get(column, "")
            texts = (remove_unit(str(cell).strip(), unit) for cell in cells)
            evidence[column] = MarkEvidence.from_cells(texts)
    elsewhere = {found.clear for found in evidence.values() if found.clear}
    marks = {}
    for column, found in evidence.items():
        mark = found.choose_mark(source.delimiter, day_first, elsewhere)
        usual = source.delimiter == "," and mark == "." and "." in found.unclear
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
