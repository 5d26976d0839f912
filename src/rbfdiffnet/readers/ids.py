"""Which columns name the series, and the names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.readers.errors import CommandError
from rbfdiffnet.readers.roles import ColumnChoices, is_number_column, is_time_name, is_value_name
from rbfdiffnet.readers.table import Table, text_cells
from rbfdiffnet.readers.words import speaks_of_time

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MANY_REPEATS", "find_ids", "ids_of", "is_id_name"]

MANY_REPEATS = 0.1  # share of repeated dates from which on there must be several series
_FEWEST_FILLED = 0.02  # rows for each series and date, where columns name series together
_FEWEST_ROWS = 3  # for each series, where numbers name them

_ID_NAMES = (
    *("unique_id", "id", "series_id", "series", "item_id", "item", "sku", "product", "product_id"),
    *("store", "store_id", "shop", "key", "name", "artikel", "filiale"),
)


def find_ids(
    table: Table, times: npt.NDArray[Any], wanted: ColumnChoices, taken: Sequence[str]
) -> list[str]:
    """Return the columns whose values together name the series, as few as are needed.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.ids import find_ids
    >>> from rbfdiffnet.readers.roles import ColumnChoices
    >>> from rbfdiffnet.readers.table import Table
    >>> frame = pd.DataFrame({"shop": list("aabb"), "kind": list("xyxy"), "ds": [1, 1, 1, 1]})
    >>> find_ids(Table("a.csv", frame, ".", str), np.ones(4), ColumnChoices(), ["ds"])
    ['shop', 'kind']
    """
    if wanted.ids:
        return [table.known(column, "--id-col") for column in wanted.ids]
    frame = table.frame
    rows = len(frame)
    free = [c for c in table.columns if c not in taken and c != wanted.target]
    named = [c for name in _ID_NAMES for c in free if c.lower() == name]
    text = [column for column in free if _is_name(table, column)]
    candidates = [
        c for c in dict.fromkeys([*named, *text]) if rows == 1 or frame[c].nunique() < rows
    ]
    base = _codes(times)
    repeated = _repeats([base])
    if not repeated:
        # Dates that never repeat are one series, unless a column says otherwise by its name.
        return candidates[:1] if candidates and candidates[0] in named else []
    codes = {c: _codes(table.words(c)) for c in candidates}
    fewest = {c: _repeats([base, codes[c]]) for c in candidates}
    if candidates and min(fewest.values()) == 0:
        return [next(c for c in candidates if fewest[c] == 0)]
    chosen = _needed(base, codes, repeated)
    left = _repeats([base, *(codes[c] for c in chosen)])
    if left > MANY_REPEATS * rows:
        numbers = {c: _codes(table.words(c)) for c in _whole_numbers(table, free, candidates)}
        more = _needed(base, {**{c: codes[c] for c in chosen}, **numbers}, repeated)
        series = _distinct([codes[c] if c in codes else numbers[c] for c in more])
        unique = _repeats([base, *(codes[c] if c in codes else numbers[c] for c in more)]) == 0
        if unique and rows >= _FEWEST_ROWS * series:
            chosen = more
    return sorted(chosen, key=table.columns.index)


def _needed(
    base: npt.NDArray[np.int64], codes: dict[str, npt.NDArray[np.int64]], repeated: int
) -> list[str]:
    """Columns that tell rows of the same date apart, without those that add nothing.

    Columns that would leave hardly a row for a series and date, as numbers of receipts, are none.
    """
    rows = len(base)
    chosen: list[str] = []
    left = repeated
    for column in codes:
        keys = [codes[c] for c in (*chosen, column)]
        now = _repeats([base, *keys])
        full = _distinct(keys) * _distinct([base])
        if now < left and rows >= _FEWEST_FILLED * full:
            chosen, left = [*chosen, column], now
    for column in list(chosen):  # what the others say already
        rest = [c for c in chosen if c != column]
        if rest and _repeats([base, *(codes[c] for c in rest)]) == left:
            chosen = rest
    return chosen


def _whole_numbers(table: Table, free: Sequence[str], others: Sequence[str]) -> list[str]:
    """Columns of whole numbers that may name series: not those of values, hours or years."""
    whole = [
        c
        for c in free
        if c not in others
        and table.frame[c].dtype.kind in "iu"
        and not (is_value_name(c) or is_time_name(c) or speaks_of_time(c))
    ]
    values = [c for c in free if c not in {*whole, *others} and is_number_column(table, c)]
    # Something must be left to forecast: the last column, as in most files.
    return whole if values else whole[:-1]


def is_id_name(column: str) -> bool:
    """Tell whether a column has one of the usual names of series.

    Examples
    --------
    >>> from rbfdiffnet.readers.ids import is_id_name
    >>> is_id_name("SKU"), is_id_name("sold")
    (True, False)
    """
    return column.lower() in _ID_NAMES


def ids_of(table: Table, columns: Sequence[str]) -> pd.Categorical[str]:
    """Join columns to the names of series, in the order in which they appear.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.ids import ids_of
    >>> from rbfdiffnet.readers.table import Table
    >>> frame = pd.DataFrame({"shop": ["b", "a"], "item": [1, 2]})
    >>> ids_of(Table("a.csv", frame, ".", str), ["shop", "item"]).categories.tolist()
    ['b/1', 'a/2']
    """
    import pandas as pd

    joint = np.zeros(len(table.frame), dtype=np.int64)
    for column in columns:
        cells = table.words(column)
        missing = np.flatnonzero(cells.isna())
        if missing.size:
            raise CommandError(
                f"{table.cell(int(missing[0]), column)}: the name of the series is missing; fill "
                "it in, or choose another column with --id-col"
            )
        codes, distinct = pd.factorize(cells)
        joint = pd.factorize(joint * len(distinct) + codes)[0].astype(np.int64)
    first = np.unique(joint, return_index=True)[1]
    parts = [table.words(column).iloc[first] for column in columns]
    names = ["/".join(cells) for cells in zip(*parts, strict=True)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise CommandError(f"{table.name}: two series are called '{twice}'; rename one")
    return pd.Categorical.from_codes(joint, categories=pd.Index(names))


def _is_name(table: Table, column: str) -> bool:
    """Tell whether a column is text that is no number, or one with leading zeros."""
    cells = table.frame[column]
    if not text_cells(cells):
        return False
    zeros = cells.dropna().head(200).astype(str).str.match(r"0\d")
    return bool(zeros.any()) or not is_number_column(table, column)


def _codes(values: npt.NDArray[Any] | pd.Series[Any]) -> npt.NDArray[np.int64]:
    import pandas as pd

    return pd.factorize(values)[0].astype(np.int64)


def _repeats(keys: Sequence[npt.NDArray[np.int64]]) -> int:
    """Number of rows whose keys another row has, too, not counting the first of them."""
    return len(keys[0]) - _distinct(keys)


def _distinct(keys: Sequence[npt.NDArray[np.int64]]) -> int:
    """Number of different combinations of keys."""
    import pandas as pd

    if not keys:
        return 1
    joint = np.zeros(len(keys[0]), dtype=np.int64)
    for key in keys:
        joint = pd.factorize(joint * (int(key.max(initial=0)) + 2) + key)[0].astype(np.int64)
    return int(joint.max(initial=-1)) + 1
