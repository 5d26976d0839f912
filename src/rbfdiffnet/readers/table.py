"""What a table is: a frame, where its cells were written, and what was assumed about them.

Also the two ways in which the series that were found in a table lie in memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rbfdiffnet.panel.regularize import concatenate_ranges
from rbfdiffnet.support.arrays import Ints
from rbfdiffnet.support.checks import CommandError

_MOST_MARK_NOTES = 3  # columns whose decimal marks get a note of their own
_MOST_LISTED = 20
NAMELESS = re.compile(r"column (\d+)|Unnamed: (\d+)")  # what columns without a name are called
_EXACT = 2**24  # whole numbers up to here are exact in 32 bits


@dataclass(frozen=True)
class Table:
    """A table and where it came from.

    `name` is the file's name, for messages; `locate_row` says where a row is, as "line 9".
    Columns of `frame` that hold nothing but numbers are numbers; the others are text as written,
    whose numbers have the decimal mark `decimal`. `decimal_marks` has the columns with another
    mark, or with one that was guessed: the mark (empty where nothing tells it) and a note.
    `original_text` gives a column as it was written where the frame has numbers.
    `missing_words` stand for missing values, beside the usual words. `units` has the columns whose
    numbers are written with a unit, all with the same one.
    """

    name: str
    frame: pd.DataFrame
    decimal: str
    locate_row: Callable[[int], str]
    notes: tuple[str, ...] = ()
    decimal_marks: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    original_text: Callable[[str], pd.Series[Any]] | None = None
    missing_words: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
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
        """Say what was assumed about the decimal marks and units of columns."""
        some = [*columns]
        found = (self.decimal_marks.get(column, ("", ""))[1] for column in some)
        notes = [note for note in found if note]
        more = len(notes) - _MOST_MARK_NOTES
        rest = [f"... and in {more:,} more columns"] if more > 0 else []
        return [*notes[:_MOST_MARK_NOTES], *rest, *self._unit_notes(some)]

    def _unit_notes(self, columns: Sequence[str]) -> list[str]:
        """Say which units are left out, and of which columns."""
        notes = []
        for unit in dict.fromkeys(self.units[c] for c in columns if c in self.units):
            those = [c for c in columns if self.units.get(c) == unit]
            more = ", ..." if len(those) > _MOST_MARK_NOTES else ""
            named = f"{quote_names(those[:_MOST_MARK_NOTES])}{more}"
            where = f"{len(those):,} columns ({named})" if len(those) > 1 else f"column {named}"
            notes.append(f"Numbers in {where} are read without their unit, '{unit}'")
        return notes

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
        # Distinct cells may be the same without the spaces around them; words are kept once.
        places, words = pd.factorize(np.array([*texts, None], dtype=object))
        found = pd.Categorical.from_codes(places[codes], categories=pd.Index(words))
        return pd.Series(found, index=self.frame.index)

    def locate(self, row: int, column: str) -> str:
        """Say where a cell is."""
        return f"{self.name}, {self.locate_row(row)}, column '{column}'"

    def find_column(self, name: str, option: str) -> str:
        """Return the column that the user named by an option, or raise if there is none.

        Columns without a name may be called "", "column 1" or, as by pandas, "Unnamed: 0". Capital
        letters do not matter where only one column is meant.
        """
        if name in self.frame.columns:
            return name
        place = _place_of_nameless(name)
        nameless = {c: found for c in self.columns if (found := _place_of_nameless(c)) is not None}
        same = [c for c, other in nameless.items() if not name or other == place]
        same = same[:1] or [c for c in self.columns if c.lower() == name.lower()]
        if len(same) != 1:
            raise CommandError(
                f"{self.name} has no column '{name}' ({option}); its columns: {self.list_columns()}"
            )
        return same[0]

    def with_frame(self, frame: pd.DataFrame) -> Table:
        """Return the table with another frame, whose rows are the first ones of this one."""
        original, n = self.original_text, len(frame)
        first = None if original is None else lambda column: original(column).iloc[:n]
        return replace(self, frame=frame, original_text=first, _texts={})


def _place_of_nameless(name: str) -> int | None:
    """Return the position, from 0 on, of a column without a name; None for any other name."""
    match = NAMELESS.fullmatch(name)
    if match is None:
        return None
    return int(match[1]) - 1 if match[1] else int(match[2])


def first_cells(column: pd.Series[Any], n: int) -> pd.Series[Any]:
    """Return the first n cells of a column that are not missing, without looking at all of it."""
    size = n
    while size < len(column) and column.iloc[:size].count() < n:
        size *= 8
    return column.iloc[:size].dropna().head(n)


def is_text(column: pd.Series[Any]) -> bool:
    """Tell whether a column is text, in any of the ways pandas has for it."""
    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        kind = kind.categories.dtype
    return bool(kind.kind == "O" or isinstance(kind, pd.StringDtype) or str(kind) == "string")


def quote_names(names: Iterable[str]) -> str:
    """Return names in quotes, separated by commas."""
    return ", ".join(f"'{name}'" for name in names)


# Many series in memory ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LongLayout:
    """Series as rows of a long frame, series by series.

    `frame` has ``unique_id`` (a categorical column), ``ds``, ``y`` and inputs; `offsets`, of shape
    (n_series + 1,), says where the series begin.
    """

    frame: pd.DataFrame
    offsets: Ints

    @classmethod
    def of(cls, frame: pd.DataFrame) -> LongLayout:
        """Sort a frame by series, in the order of their categories."""
        codes = frame["unique_id"].cat.codes.to_numpy()
        if (np.diff(codes) < 0).any():
            order = np.argsort(codes, kind="stable")
            frame, codes = frame.iloc[order].reset_index(drop=True), codes[order]
        counts = np.bincount(codes, minlength=len(frame["unique_id"].cat.categories))
        return cls(frame, np.append(0, np.cumsum(counts)))

    @property
    def ids(self) -> list[str]:
        """Names of the series."""
        return self.frame["unique_id"].cat.categories.tolist()

    @property
    def times(self) -> pd.Series[Any]:
        """Dates or whole numbers of all rows."""
        return self.frame["ds"]

    @property
    def n_series(self) -> int:
        """Number of series."""
        return len(self.offsets) - 1

    @property
    def n_values(self) -> int:
        """Number of known values."""
        return int(self.frame["y"].notna().sum())

    @property
    def longest(self) -> int:
        """Rows of the longest series."""
        return int(np.diff(self.offsets).max())

    def part(self, start: int, stop: int) -> pd.DataFrame:
        """Return the series from one position to another as a long frame."""
        rows = self.frame.iloc[self.offsets[start] : self.offsets[stop]]
        return rows.reset_index(drop=True)

    def select(self, positions: Ints) -> LongLayout:
        """Return some series, given by ascending positions."""
        starts = self.offsets[positions]
        rows = concatenate_ranges(starts, self.offsets[positions + 1] - starts)
        frame = self.frame.iloc[rows].reset_index(drop=True)
        names = self.frame["unique_id"].cat.categories[positions]
        return LongLayout.of(frame.assign(unique_id=frame["unique_id"].cat.set_categories(names)))

    def sample_times(self, most: int) -> tuple[pd.Series[Any], Ints]:
        """Return the times of the first series, of about `most` rows, and whose they are."""
        stop = min(int(np.searchsorted(self.offsets, most)) + 1, self.n_series)
        rows = self.frame.iloc[: self.offsets[stop]]
        return rows["ds"], rows["unique_id"].cat.codes.to_numpy().astype(np.int64)

    def find_early_ends(self) -> tuple[list[str], pd.Series[Any]]:
        """Return the series that end before most of them do, and the times up to that end."""
        last = self.frame.groupby("unique_id", observed=True)["ds"].max()
        usual = last.mode().iloc[-1]
        until = usual if 2 * (last == usual).sum() > len(last) else last.max()
        return [str(name) for name in last.index[last < until]], self.times[self.times <= until]

    def split_future(
        self, inputs: Sequence[str]
    ) -> tuple[LongLayout, pd.DataFrame | None, list[str]]:
        """Split off the latest dates if no series has a value there: they are the future.

        Returns what is known, the future values of `inputs`, if there are any, and notes.
        """
        has_value = self.frame["y"].notna()
        last = self.frame.loc[has_value, "ds"].max()
        is_later = (self.frame["ds"] > last).to_numpy() & has_value.any()
        if not is_later.any():
            return self, None, []
        future = self.frame.loc[is_later, ["unique_id", "ds", *inputs]].reset_index(drop=True)
        known = LongLayout.of(self.frame[~is_later].reset_index(drop=True))
        count = future["ds"].nunique()
        note = "The last date has no value: it is taken as the future"
        if count > 1:
            note = f"The last {count:,} dates have no values: they are taken as the future"
        return known, future if inputs else None, [note]


@dataclass(frozen=True, eq=False)
class MatrixLayout:
    """Series that share their dates: `values` of shape (n_series, n_times), `times` ascending.

    A series begins with its first value. With `open_end` it also ends with its last one.
    """

    ids: list[str]
    times: pd.Series[Any]
    values: npt.NDArray[Any]
    open_end: bool = False

    @property
    def n_series(self) -> int:
        """Number of series."""
        return len(self.ids)

    @property
    def n_values(self) -> int:
        """Number of known values."""
        if self.values.dtype.kind != "f":
            return self.values.size
        return int(self.values.size - sum(np.isnan(row).sum() for row in self.values))

    @property
    def longest(self) -> int:
        """Dates that all series share."""
        return len(self.times)

    def part(self, start: int, stop: int) -> pd.DataFrame:
        """Return the series from one position to another as a long frame."""
        values = self.values[start:stop]
        kept = np.ones(values.shape, dtype=bool)
        if values.dtype.kind == "f":
            known = ~np.isnan(values)
            kept = np.maximum.accumulate(known, axis=1)
            if self.open_end:
                kept &= np.maximum.accumulate(known[:, ::-1], axis=1)[:, ::-1]
            kept[~known.any(axis=1), -1:] = True  # series without values stay
        rows, columns = np.nonzero(kept)
        ids = pd.Categorical.from_codes(rows + start, categories=pd.Index(self.ids))
        times = self.times.take(columns).array
        return pd.DataFrame(
            {"unique_id": ids, "ds": times, "y": shrink_floats(values[kept])}, copy=False
        )

    def select(self, positions: Ints) -> MatrixLayout:
        """Return some series, given by ascending positions."""
        return replace(self, ids=[self.ids[i] for i in positions], values=self.values[positions])

    def sample_times(self, most: int) -> tuple[pd.Series[Any], Ints]:  # noqa: ARG002
        """Return the times of all series, as those of one."""
        return self.times, np.zeros(len(self.times), dtype=np.int64)

    def find_early_ends(self) -> tuple[list[str], pd.Series[Any]]:
        """Return the series that end before the last date, and all times."""
        if not self.open_end or self.values.dtype.kind != "f":
            return [], self.times
        return [self.ids[i] for i in np.flatnonzero(np.isnan(self.values[:, -1]))], self.times

    def split_future(self, inputs: Sequence[str]) -> tuple[MatrixLayout, None, list[str]]:  # noqa: ARG002
        """Leave out the latest dates if no series has a value there."""
        if self.values.dtype.kind != "f" or self.open_end:
            return self, None, []
        known = np.flatnonzero(~np.isnan(self.values).all(axis=0))
        later = len(self.times) - int(known[-1]) - 1 if known.size else 0
        if not later:
            return self, None, []
        kept = replace(self, times=self.times[:-later], values=self.values[:, :-later])
        if later == 1:
            return kept, None, ["The last date has no value and is left out"]
        return kept, None, [f"The last {later:,} dates have no values and are left out"]


Layout = LongLayout | MatrixLayout


def shrink_floats(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return numbers as floats; whole numbers in 32 bits where nothing is lost."""
    if values.dtype.kind in "iub" and (
        values.dtype.itemsize <= 2 or (values.size and np.abs(values).max() <= _EXACT)
    ):
        return values.astype(np.float32)
    return values if values.dtype.kind == "f" else values.astype(np.float64)
