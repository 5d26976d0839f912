"""Keys of rows: numbers for distinct values, names of series and their groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rbfdiffnet.readers.table import Table
from rbfdiffnet.support.arrays import Ints
from rbfdiffnet.support.checks import CommandError
from rbfdiffnet.support.text import unquote_formula

_TABLE_SIZE = 8  # combinations for each row, up to which a table of all of them is the faster way


def make_ids(table: Table, columns: Sequence[str]) -> pd.Categorical[str]:
    """Join columns to the names of series, in the order in which the names appear."""
    joint = np.zeros(len(table.frame), dtype=np.int64)
    for column in columns:
        cells = table.text(column)
        missing = np.flatnonzero(cells.isna())
        if missing.size:
            raise CommandError(
                f"{table.locate(int(missing[0]), column)}: the name of the series is missing; fill "
                "it in, choose another column with --id-col, or say --id-col none for one series"
            )
        codes, distinct = pd.factorize(cells)
        joint = encode(joint * len(distinct) + codes)
    first = np.flatnonzero(np.diff(np.maximum.accumulate(joint), prepend=-1))
    parts = [table.text(column).iloc[first] for column in columns]
    names = [unquote_formula("/".join(cells)) for cells in zip(*parts, strict=True)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise CommandError(f"{table.name}: two series are called '{twice}'; rename one")
    return pd.Categorical.from_codes(joint, categories=pd.Index(names))


def read_groups(
    table: Table, columns: Sequence[str], ids: pd.Categorical[str]
) -> pd.DataFrame | None:
    """Return the groups of each series, as text, by the names of the series; None without any.

    `ids` names the series of each row.
    """
    found: dict[str, Any] = {}
    codes = ids.codes.astype(np.int64)
    for column in columns:
        if column in ("unique_id", "ds", "y"):
            raise CommandError(f"--group {column}: groups cannot be called '{column}'; rename it")
        cells = table.text(table.find_column(column, "--group"))
        own, kinds = pd.factorize(cells)
        first = np.zeros(len(ids.categories), dtype=np.int64)
        first[codes[::-1]] = own[::-1]
        for row in np.flatnonzero((own < 0) | (own != first[codes]))[:1].tolist():
            what = "the group is missing" if own[row] < 0 else f"'{kinds[own[row]]}'"
            before = "" if own[row] < 0 else f", but '{kinds[first[codes[row]]]}' before"
            raise CommandError(
                f"{table.locate(row, column)}: {what} for series '{ids[row]}'{before}; a series "
                "belongs to one group of a column in every line"
            )
        found[column] = kinds.take(first)
    return pd.DataFrame(found, index=ids.categories) if columns else None


def encode(values: npt.NDArray[Any] | pd.Series[Any]) -> Ints:
    """Number the distinct values in the order in which they appear."""
    return pd.factorize(values)[0].astype(np.int64)


def count_repeats(keys: Sequence[Ints]) -> int:
    """Count the rows whose keys an earlier row has, too."""
    return len(keys[0]) - count_distinct(keys)


def count_distinct(keys: Sequence[Ints]) -> int:
    """Count the different combinations of keys."""
    if not keys:
        return 1
    joint, most = np.zeros(len(keys[0]), dtype=np.int64), 1
    for key in keys:
        n = int(key.max(initial=0)) + 2  # missing ones are -1
        joint, most = joint * n + key + 1, most * n
        if most > _TABLE_SIZE * len(joint):
            joint = encode(joint)
            most = int(joint.max(initial=-1)) + 1
    seen = np.zeros(most, dtype=bool)
    seen[joint] = True
    return int(seen.sum())
