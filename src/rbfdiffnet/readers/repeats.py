"""Several rows for the same series and date."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rbfdiffnet.readers.errors import CommandError
from rbfdiffnet.readers.ids import MANY_REPEATS
from rbfdiffnet.readers.roles import ColumnChoices
from rbfdiffnet.readers.table import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["join_repeats", "joined_note", "repeats_message"]


def join_repeats(
    table: Table, wanted: ColumnChoices, time: str, ids: Sequence[str], frame: pd.DataFrame
) -> tuple[pd.DataFrame, list[str]]:
    """Join rows of the same series and date as asked; refuse many of them if nothing was asked.

    Parameters
    ----------
    table : Table
    wanted : ColumnChoices
    time : str
    ids : sequence of str
        The columns of dates and of names.
    frame : DataFrame
        ``unique_id``, ``ds``, ``y`` and inputs, a row for each of the table.

    Returns
    -------
    frame : DataFrame
    notes : list of str

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers import ColumnChoices
    >>> from rbfdiffnet.readers.repeats import join_repeats
    >>> from rbfdiffnet.readers.table import Table
    >>> frame = pd.DataFrame({"unique_id": ["a", "a"], "ds": [1, 1], "y": [2.0, 3.0]})
    >>> table = Table("a.csv", frame, ".", str)
    >>> choices = ColumnChoices(repeats="sum")
    >>> join_repeats(table, choices, "ds", ["unique_id"], frame)[0]["y"].tolist()
    [5.0]
    """
    keys = ["unique_id", "ds"]
    again = frame.duplicated(keys).to_numpy()
    if not again.any():
        return frame, []
    if wanted.repeats is None:
        if again.mean() > MANY_REPEATS:
            raise CommandError(repeats_message(table, time, ids, frame, again))
        # the forecaster averages and names them
        return frame, [f"{joined_note(int(again.sum()), 'mean')} (to add them: --repeats sum)"]
    groups = frame.groupby(keys, observed=True, sort=False, dropna=False)
    how = {c: "mean" if frame[c].dtype.kind in "iufb" else "first" for c in frame.columns[3:]}
    joined = groups.agg({"y": "mean", **how}).reset_index()
    if wanted.repeats == "sum":
        joined["y"] = groups["y"].sum(min_count=1).to_numpy()
    return joined, [joined_note(int(again.sum()), wanted.repeats)]


def repeats_message(
    table: Table,
    time: str,
    ids: Sequence[str],
    frame: pd.DataFrame,
    again: npt.NDArray[np.bool_],
) -> str:
    """Say which rows have the same series and date, and what can be done.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.repeats import repeats_message
    >>> from rbfdiffnet.readers.table import Table
    >>> frame = pd.DataFrame({"unique_id": ["a", "a"], "ds": [1, 1]})
    >>> table = Table("a.csv", frame, ".", "row {}".format)
    >>> repeats_message(table, "ds", [], frame, np.array([False, True]))
    "a.csv, column 'ds': '1' is on row 0 and on row 1; name all columns that tell the series ..."
    """
    second = int(np.argmax(again))
    keys = frame[["unique_id", "ds"]]
    first = int(np.argmax((keys == keys.iloc[second]).all(axis=1).to_numpy()))
    of = f" of series '{frame['unique_id'].iloc[second]}'" if ids else ""
    more = int(again.sum()) - 1
    others = f", and {more:,} other rows repeat one, too" if more else ""
    names = " ".join([*ids, "..."])
    return (
        f"{table.name}, column '{time}': '{table.words(time).iloc[second]}'{of} is on "
        f"{table.place(first)} and on {table.place(second)}{others}; name all columns that tell "
        f"the series apart (--id-col {names}), or join such rows with --repeats sum or "
        "--repeats mean"
    )


def joined_note(count: int, how: str) -> str:
    """Say how many rows were joined.

    Examples
    --------
    >>> from rbfdiffnet.readers.repeats import joined_note
    >>> joined_note(2, "sum")
    '2 rows are added to others of the same series and date'
    """
    done = "added to" if how == "sum" else "averaged with"
    rows = "1 row is" if count == 1 else f"{count:,} rows are"
    return f"{rows} {done} others of the same series and date"
