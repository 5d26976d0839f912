"""Which columns name the series, and the names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.cli.errors import CommandError
from rbfdiffnet.cli.reading.roles import Wanted, is_number_column
from rbfdiffnet.cli.reading.table import Table, text_cells

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["find_ids", "ids_of"]

_ID_NAMES = (
    *("unique_id", "id", "series_id", "series", "item_id", "item", "sku", "product", "product_id"),
    *("store", "store_id", "shop", "key", "name", "artikel", "filiale"),
)


def find_ids(
    table: Table, times: npt.NDArray[Any], wanted: Wanted, taken: Sequence[str]
) -> list[str]:
    """Return the columns whose values together name the series, as few as are needed.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from rbfdiffnet.cli.reading.ids import find_ids
    >>> from rbfdiffnet.cli.reading.roles import Wanted
    >>> from rbfdiffnet.cli.reading.table import Table
    >>> frame = pd.DataFrame({"shop": list("aabb"), "kind": list("xyxy"), "ds": [1, 1, 1, 1]})
    >>> find_ids(Table("a.csv", frame, ".", str), np.ones(4), Wanted(), ["ds"])
    ['shop', 'kind']
    """
    if wanted.ids:
        return [table.known(column, "--id-col") for column in wanted.ids]
    frame = table.frame
    named = [c for name in _ID_NAMES for c in table.columns if c.lower() == name]
    text = [column for column in table.columns if _is_name(table, column)]
    others = [c for c in dict.fromkeys([*named, *text]) if c not in taken]
    repeated = _repeated(times)
    rows = len(frame)
    candidates = [c for c in others if rows == 1 or frame[c].nunique() < rows]
    if not repeated:
        # Dates that never repeat are one series, unless a column says otherwise by its name.
        return candidates[:1] if candidates and candidates[0] in named else []
    codes = {c: _codes(table.words(c)) for c in candidates}
    base = _codes(times)
    fewest = {c: _repeats([base, codes[c]]) for c in candidates}
    if candidates and min(fewest.values()) == 0:
        return [next(c for c in candidates if fewest[c] == 0)]
    chosen: list[str] = []
    left = repeated
    for column in candidates:
        now = _repeats([base, *(codes[c] for c in (*chosen, column))])
        if now < left:
            chosen, left = [*chosen, column], now
    for column in list(chosen):  # what the others say already
        rest = [c for c in chosen if c != column]
        if rest and _repeats([base, *(codes[c] for c in rest)]) == left:
            chosen = rest
    return sorted(chosen, key=table.columns.index)


def ids_of(table: Table, columns: Sequence[str]) -> pd.Categorical[str]:
    """Join columns to the names of series, in the order in which they appear.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.cli.reading.ids import ids_of
    >>> from rbfdiffnet.cli.reading.table import Table
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


def _repeated(times: npt.NDArray[Any]) -> int:
    return _repeats([_codes(times)])


def _repeats(keys: Sequence[npt.NDArray[np.int64]]) -> int:
    """Number of rows whose keys another row has, too, not counting the first of them."""
    import pandas as pd

    joint = np.zeros(len(keys[0]), dtype=np.int64)
    for key in keys:
        joint = pd.factorize(joint * (int(key.max(initial=0)) + 2) + key)[0].astype(np.int64)
    return len(joint) - int(joint.max(initial=-1)) - 1
