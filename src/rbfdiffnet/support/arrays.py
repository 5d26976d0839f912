"""Types of arrays by what they hold; comments and docstrings tell their shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
#: Arrays by name, as files hold them.
Arrays = dict[str, npt.NDArray[Any]]


def mean_of_known(values: Array, axis: int | tuple[int, ...]) -> Array:
    """Return the mean of what is finite; NaN where nothing is."""
    known = np.isfinite(values)
    total, count = np.where(known, values, 0.0).sum(axis=axis), known.sum(axis=axis)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))
