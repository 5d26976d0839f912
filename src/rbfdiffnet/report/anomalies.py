"""Past values outside of what was forecast one step before them, as a report shows them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from rbfdiffnet.evaluation.backtest_frames import QuantileName
from rbfdiffnet.forecasting.anomalies import TO_CALIBRATE
from rbfdiffnet.panel.frames import ColumnNames
from rbfdiffnet.report.packing import Packer
from rbfdiffnet.report.tables import Table, read_table, to_json
from rbfdiffnet.support.arrays import Array, Ints

#: Level of the intervals, and how many of the latest values of a series are judged for a report.
LEVEL, LATEST = 99, 300
_MOST_FORECASTS = 12_000  # one for each value, which takes seconds
_MOST_ROWS = 20  # of the table
_LOW, _HIGH, _SCORE = "low", "high", "score"


def choose_judged(n: int, longest: int, wanted: Collection[int]) -> list[int]:
    """Choose which of n series are judged: as many as are soon forecast, the wanted ones first.

    `longest` is the number of values of the longest series. The others are spread evenly.
    """
    most = max(_MOST_FORECASTS // min(max(longest, 1), LATEST + TO_CALIBRATE), 1)
    spread = np.linspace(0, n - 1, min(n, most)).round().astype(np.int64).tolist()
    return sorted(list(dict.fromkeys([*wanted, *spread]))[:most])


def read_anomalies(df: Any, columns: ColumnNames, ids: dict[str, int]) -> tuple[str, Table]:
    """Return the level of a frame of `RBFDiffNet.detect_anomalies`, and a row for every value.

    Columns of the table are the value, the ends of its interval, whether it lies outside, and its
    score.
    """
    names = [name for name in getattr(df, "columns", ()) if isinstance(name, str)]
    parts = {name: QuantileName.parse(name) for name in names}
    ends = {own.kind: (name, own.percent) for name, own in parts.items() if own is not None}
    if "anomaly" not in names or not {"lo", "hi"} <= set(ends):
        raise ValueError(
            "anomalies has no columns 'anomaly', 'Model-lo-99' and 'Model-hi-99'; give what "
            "RBFDiffNet.detect_anomalies returns."
        )
    low, high = ends["lo"][0], ends["hi"][0]
    values = [columns.target, low, high, "anomaly", _SCORE]
    table = read_table(df, "anomalies", columns, ids, values)
    named = {low: _LOW, high: _HIGH}
    return ends["lo"][1], table.rename(named)


def pack_anomalies(
    packer: Packer, level: str, judged: Table, target: str, axis: Ints, base: Array
) -> dict[str, Any]:
    """Pack the values outside, and return counts and the largest ones for JSON."""
    found = judged.take(judged.columns["anomaly"] > 0.0)
    size = np.abs(found.columns[_SCORE])
    largest = found.take(np.argsort(-size, kind="stable")[:_MOST_ROWS])
    rows = zip(
        largest.series.tolist(),
        largest.displayed(largest.times).tolist(),
        *(map(to_json, largest.columns[name]) for name in (target, _LOW, _HIGH)),
        strict=True,
    )
    drawn = found.take(np.isin(found.times, axis)).keep([_LOW, _HIGH])
    packer.add_table("anomalies", drawn, axis, base)
    return {
        "level": level,
        "judged": len(judged.series),
        "series": len(np.unique(judged.series)),
        "found": len(found.series),
        "rows": [list(row) for row in rows],
    }
