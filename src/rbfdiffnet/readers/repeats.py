"""Several rows for the same series and date: joined, or refused with a remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rbfdiffnet.readers.columns import MANY_REPEATS, ColumnChoices
from rbfdiffnet.readers.keys import count_repeats, encode
from rbfdiffnet.readers.table import Table
from rbfdiffnet.support.arrays import Mask
from rbfdiffnet.support.checks import CommandError


def join_repeats(
    table: Table, choices: ColumnChoices, time: str, ids: Sequence[str], frame: pd.DataFrame
) -> tuple[pd.DataFrame, list[str]]:
    """Join rows of the same series and date as chosen; refuse many of them if nothing is chosen.

    A few are averaged then, once copies of rows are left out.
    `frame` has ``unique_id``, ``ds``, ``y`` and inputs, with a row for each row of the table.
    """
    keys = ["unique_id", "ds"]
    codes: Any = frame["unique_id"].cat.codes.to_numpy()
    if not count_repeats([codes, encode(frame["ds"])]):
        return frame, []
    again = frame.duplicated(keys).to_numpy()
    copies = find_copies(table, again, choices.repeats)
    if choices.repeats is None and again.mean() > MANY_REPEATS:
        raise refuse_repeats(table, time, ids, frame, again)
    notes = note_repeats(table, again, copies, choices.repeats)
    groups = frame[~copies].groupby(keys, observed=True, sort=False, dropna=False)
    how = {c: "mean" if frame[c].dtype.kind in "iufb" else "first" for c in frame.columns[3:]}
    joined = groups.agg({"y": "mean", **how}).reset_index()
    if choices.repeats == "sum":
        joined["y"] = groups["y"].sum(min_count=1).to_numpy()
    return joined, notes


def refuse_repeats(
    table: Table, time: str, ids: Sequence[str], frame: pd.DataFrame, again: Mask
) -> CommandError:
    """Return an error that says which rows have the same series and date, and the remedy."""
    second = int(np.argmax(again))
    keys = frame[["unique_id", "ds"]]
    first = int(np.argmax((keys == keys.iloc[second]).all(axis=1).to_numpy()))
    of = f" of series '{frame['unique_id'].iloc[second]}'" if ids else ""
    more = int(again.sum()) - 1
    others = f", and {more:,} other rows repeat one, too" if more else ""
    names = " ".join([*ids, "..."])
    return CommandError(
        f"{table.name}, column '{time}': '{table.text(time).iloc[second]}'{of} is on "
        f"{table.locate_row(first)} and on {table.locate_row(second)}{others}; name all columns "
        f"that tell the series apart (--id-col {names}), or join such rows with --repeats sum or "
        "--repeats mean"
    )


def find_copies(table: Table, again: Mask, repeats: str | None) -> Mask:
    """Return which rows count once, since they are copies of others in all columns.

    `again` tells which rows repeat a series and date. Nothing is a copy where `repeats` is chosen.
    """
    copies = table.frame.duplicated().to_numpy() & again
    return copies if repeats is None else np.zeros_like(copies)


def note_repeats(table: Table, again: Mask, copies: Mask, repeats: str | None) -> list[str]:
    """Say how many rows are copies, and how many are joined: as chosen, or averaged."""

    def count(rows: Mask) -> str:
        n = int(rows.sum())
        return "1 row is" if n == 1 else f"{n:,} rows are"

    notes = []
    if copies.any():
        one = copies.sum() == 1
        what = "a copy of another row and counts" if one else "copies of other rows and count"
        notes.append(f"{count(copies)} {what} once (otherwise: --repeats sum)")
    if (others := again & ~copies).any():
        done = "added to" if repeats == "sum" else "averaged with"
        where = "the first on" if others.sum() > 1 else "on"
        where = f"{where} {table.locate_row(int(np.argmax(others)))}"
        hint = "" if repeats else f", {where} (to add them: --repeats sum)"
        notes.append(f"{count(others)} {done} others of the same series and date{hint}")
    return notes
