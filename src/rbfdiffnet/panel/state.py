"""Panels as arrays and words that can be saved, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.column_types import describe, pack, restore
from rbfdiffnet.panel.columns import Columns
from rbfdiffnet.panel.frames import make_series
from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.panel.grid import Grid
from rbfdiffnet.panel.panel import Panel, Problem

__all__ = ["panel_state", "restore_panel"]


def panel_state(
    panel: Panel, values: bool = True
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Return arrays and metadata for JSON from which `restore_panel` restores the panel.

    Parameters
    ----------
    panel : Panel
    values : bool, default=True
        Whether target and inputs are included.

    Raises
    ------
    ValueError
        If ids or ``freq`` have no such form.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.panel.panel import Panel
    >>> from rbfdiffnet.panel.state import panel_state, restore_panel
    >>> df = pd.DataFrame({"unique_id": ["a", "b"], "ds": [1, 7], "y": [1, 2]})
    >>> arrays, meta = panel_state(Panel.from_frame(df, freq=1))
    >>> restore_panel(arrays, meta).y
    array([1., 2.])
    """
    import pandas as pd

    frequency = panel.frequency
    freq: int | str = frequency.n if frequency.kind == "integer" else frequency.alias
    if Frequency.parse(freq) != frequency:
        raise ValueError(
            f"freq={freq!r} stands for {frequency.offset!r}, which cannot be saved; use an "
            "offset that its alias describes in full."
        )
    id_words, categories = describe(panel.ids)
    time_words, _ = describe(panel.time)
    grid = panel.grid
    arrays: dict[str, npt.NDArray[Any]] = {
        "offsets": panel.offsets,
        "origin": grid.origin,
        "day": grid.day,
    }
    arrays["ids"] = pack(panel.ids.to_list(), f"Ids in column {panel.columns.id!r}")
    if categories is not None:
        arrays["categories"] = categories
    meta = {
        "columns": asdict(panel.columns),
        "freq": freq,
        "zone": grid.zone,
        "id": id_words,
        "time": time_words,
        "problems": [asdict(problem) for problem in panel.problems],
        "inputs": list(panel.inputs) if values else [],
    }
    if values:
        arrays["y"] = panel.y
        for number, column in enumerate(panel.inputs.values()):
            if column.dtype.kind == "O":
                missing = pd.isna(column)
                arrays[f"input{number}_missing"] = missing
                column = np.where(missing, "", column).astype(np.str_)
            arrays[f"input{number}"] = column
    return arrays, meta


def restore_panel(arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> Panel:
    """Restore a panel; what its state left out is missing."""
    grid = Grid(Frequency.parse(meta["freq"]), arrays["origin"], arrays["day"], meta["zone"])
    inputs: dict[str, npt.NDArray[Any]] = {}
    for number, name in enumerate(meta["inputs"]):
        column = arrays[f"input{number}"]
        if column.dtype.kind == "U":
            column = column.astype(object)
            column[arrays[f"input{number}_missing"]] = None
        inputs[name] = column
    offsets = arrays["offsets"]
    return Panel(
        offsets,
        arrays["y"] if "y" in arrays else np.full(offsets[-1], np.nan),
        inputs,
        tuple(Problem(**problem) for problem in meta["problems"]),
        Columns(**meta["columns"]),
        grid,
        make_series(restore(meta["id"], arrays.get("categories")), arrays["ids"].tolist()),
        restore(meta["time"], None),
    )
