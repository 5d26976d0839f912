"""How many series are forecast at a time, so that memory stays bounded.

Forecasts do not depend on it: nothing that one series learns from another depends on which of them
are in memory together.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from rbfdiffnet.models.intervals import calibration_length
from rbfdiffnet.support.arrays import Ints

__all__ = ["LEAST", "bytes_of", "pieces"]


LEAST = 10**9  # bytes; with less, libraries and single series alone may take more
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SHARE = 0.5  # of the limit that a piece is to take, since what it takes is an estimate
_OBJECTS = 20_000  # bytes of a series and its networks, whatever their length
_COPIES = 8  # of its values and of its windows


def bytes_of(limit: Any) -> int:
    """Return a limit in bytes."""
    text = str(limit).strip().upper()
    match = re.fullmatch(r"(\d{1,18}(?:\.\d*)?)\s*([KMGT]?)B?", text)
    if isinstance(limit, bool) or not match:
        raise ValueError(f"memory_limit must be bytes, or text such as '2GB'; got {limit!r}.")
    found = int(float(match[1]) * _UNITS[match[2]])
    if found < LEAST:
        raise ValueError(
            f"memory_limit must be at least {LEAST / 1e9:g}GB: a single long series may take that "
            f"much; got {limit!r}."
        )
    return found


def pieces(lengths: Ints, n_inputs: int, width: int, limit: int) -> list[Ints]:
    """Return the positions of the series that are forecast together, piece by piece."""
    longest = calibration_length(int(lengths.max(initial=0)))
    windows = np.minimum(lengths // 3, longest) + 1
    numbers = lengths * (1 + n_inputs) + windows * (width + n_inputs)
    need = _OBJECTS + 8 * _COPIES * numbers
    # A series that is too large for a piece is one of its own.
    number = (np.cumsum(need) - need) // int(_SHARE * limit)
    return [np.flatnonzero(number == k) for k in np.unique(number)]
