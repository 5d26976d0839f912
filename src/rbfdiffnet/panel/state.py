"""Panels written as arrays and JSON that can be saved, and read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.columns import ColumnNames
from rbfdiffnet.panel.frames import (
    describe_column,
    make_column,
    make_empty_column,
    pack_values,
)
from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.panel.grid import Grid
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.support.notes import Note


def panel_to_arrays(
    panel: Panel, values: bool = True
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Return arrays and a JSON document; `values` says whether target and inputs are included."""
    import pandas as pd

    frequency = panel.frequency
    freq: int | str = frequency.n if frequency.kind == "integer" else frequency.alias
    if Frequency.parse(freq) != frequency:
        raise ValueError(
            f"freq={freq!r} stands for {frequency.offset!r}, which cannot be saved; use an "
            "offset that its alias describes in full."
        )
    id_words, categories = describe_column(panel.ids)
    time_words, _ = describe_column(panel.time)
    grid = panel.grid
    arrays: dict[str, npt.NDArray[Any]] = {
        "offsets": panel.offsets,
        "origin": grid.origin,
        "day": grid.day,
    }
    arrays["ids"] = pack_values(panel.ids.to_list(), f"Ids in column {panel.columns.id!r}")
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


def panel_from_arrays(arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> Panel:
    """Restore a panel; target and inputs that were left out are missing."""
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
        tuple(Note(**problem) for problem in meta["problems"]),
        ColumnNames(**meta["columns"]),
        grid,
        make_column(
            make_empty_column(meta["id"], arrays.get("categories")), arrays["ids"].tolist()
        ),
        make_empty_column(meta["time"], None),
    )
