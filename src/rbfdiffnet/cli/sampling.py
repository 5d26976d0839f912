"""Some of many series, always the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

    from rbfdiffnet.readers import Data

__all__ = ["evenly", "of_series", "rows_by_series"]

Ints = npt.NDArray[np.int64]


def evenly(n: int, most: int) -> Ints:
    """Return positions of at most ``most`` of ``n`` series, evenly spread.

    Examples
    --------
    >>> from rbfdiffnet.cli.sampling import evenly
    >>> evenly(10, 4).tolist(), evenly(2, 4).tolist()
    ([0, 3, 6, 9], [0, 1])
    """
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


def of_series(data: Data, positions: Sequence[int] | Ints) -> Data:
    """Return the data of some series, given by ascending positions.

    Examples
    --------
    >>> from rbfdiffnet.readers import example_data
    >>> from rbfdiffnet.cli.sampling import of_series
    >>> of_series(example_data(), [0]).ids
    ['air_passengers']
    """
    from rbfdiffnet.readers.layouts import LongLayout, MatrixLayout

    chosen = np.asarray(positions, dtype=np.int64)
    series = data.series
    if len(chosen) == series.n_series:
        return data
    if isinstance(series, MatrixLayout):
        names = [series.names[i] for i in chosen]
        return replace(data, series=replace(series, names=names, values=series.values[chosen]))
    starts, stops = series.offsets[chosen], series.offsets[chosen + 1]
    rows = np.concatenate([np.arange(a, b) for a, b in zip(starts, stops, strict=True)])
    frame = series.frame.iloc[rows].reset_index(drop=True)
    frame["unique_id"] = frame["unique_id"].cat.set_categories([series.ids[i] for i in chosen])
    return replace(data, series=LongLayout.of(frame))


def rows_by_series(data: Data, frame: pd.DataFrame) -> Ints:
    """Return the position of the series of each row of a frame, -1 where it is not in the data."""
    import pandas as pd

    names = frame["unique_id"]
    found, distinct = pd.factorize(names.astype(object))
    return np.asarray(pd.Index(data.ids, dtype=object).get_indexer(distinct)[found], dtype=np.int64)
