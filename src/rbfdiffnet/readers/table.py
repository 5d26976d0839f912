"""What a table is: a frame, where its cells were written, and what was assumed about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from rbfdiffnet.support.errors import CommandError

_MOST_MARK_NOTES = 3  # columns whose decimal marks get a note of their own
_MOST_LISTED = 20


@dataclass(frozen=True)
class Table:
    """A table and where it came from.

    `name` is the file's name, for messages; `locate_row` says where a row is, as "line 9".
    Columns of `frame` that hold nothing but numbers are numbers; the others are text as written,
    whose numbers have the decimal mark `decimal`. `decimal_marks` has the columns with another
    mark, or with one that was guessed: the mark (empty where nothing tells it) and a note.
    `original_text` gives a column as it was written where the frame has numbers.
    `missing_words` stand for missing values, beside the usual words.
    """

    name: str
    frame: pd.DataFrame
    decimal: str
    locate_row: Callable[[int], str]
    notes: tuple[str, ...] = ()
    decimal_marks: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    original_text: Callable[[str], pd.Series[Any]] | None = None
    missing_words: tuple[str, ...] = ()
    _texts: dict[str, pd.Series[Any]] = field(default_factory=dict, repr=False)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self.frame.columns.tolist()

    def list_columns(self) -> str:
        """Return the names of the columns, quoted; only the first ones of many."""
        names = quote_names(self.columns[:_MOST_LISTED])
        return f"{names}, ..." if len(self.columns) > _MOST_LISTED else names

    def decimal_mark(self, column: str) -> str:
        """Return the decimal mark of a column, empty where nothing tells it."""
        return self.decimal_marks.get(column, (self.decimal, ""))[0]

    def mark_notes(self, columns: Iterable[str]) -> list[str]:
        """Say what was assumed about the decimal marks of columns."""
        found = (self.decimal_marks.get(column, ("", ""))[1] for column in columns)
        notes = [note for note in found if note]
        more = len(notes) - _MOST_MARK_NOTES
        rest = [f"... and in {more:,} more columns"] if more > 0 else []
        return [*notes[:_MOST_MARK_NOTES], *rest]

    def text(self, column: str) -> pd.Series[Any]:
        """Return a column as it was written, without spaces around its cells."""
        if column not in self._texts:
            self._texts[column] = self._read_text(column)
        return self._texts[column]

    def date_cells(self, column: str) -> pd.Series[Any]:
        """Return a column to parse as dates: as text where it has numbers that are not whole."""
        cells = self.frame[column]
        broken = cells.dtype.kind == "f" and not (cells.dropna() % 1 == 0).all()
        return self.text(column) if broken else cells

    def _read_text(self, column: str) -> pd.Series[Any]:
        cells = self.frame[column]
        if self.original_text is not None and not is_text(cells):
            cells = self.original_text(column)
        codes, distinct = pd.factorize(cells)
        texts = [str(cell).strip() or None for cell in distinct]
        if cells.dtype.kind == "f":
            texts = [text.removesuffix(".0") if text else None for text in texts]
        lookup = pd.Series([*texts, None], dtype=object)
        return lookup.take(codes).set_axis(self.frame.index)

    def locate(self, row: int, column: str) -> str:
        """Say where a cell is."""
        return f"{self.name}, {self.locate_row(row)}, column '{column}'"

    def check_column(self, column: str, option: str) -> str:
        """Return a column that the user named by an option, or raise if there is none."""
        if column not in self.frame.columns:
            raise CommandError(
                f"{self.name} has no column '{column}' ({option}); its columns: "
                f"{self.list_columns()}"
            )
        return column

    def with_frame(self, frame: pd.DataFrame) -> Table:
        """Return the table with another frame, whose rows are the first ones of this one."""
        original, n = self.original_text, len(frame)
        first = None if original is None else lambda column: original(column).iloc[:n]
        return replace(self, frame=frame, original_text=first, _texts={})


def is_text(column: pd.Series[Any]) -> bool:
    """Tell whether a column is text, in any of the ways pandas has for it."""
    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        kind = kind.categories.dtype
    return bool(kind.kind == "O" or isinstance(kind, pd.StringDtype) or str(kind) == "string")


def quote_names(names: Iterable[str]) -> str:
    """Return names in quotes, separated by commas."""
    return ", ".join(f"'{name}'" for name in names)
