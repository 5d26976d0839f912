"""How many series are forecast at a time, so that memory stays bounded.

Forecasts do not depend on it: nothing that one series learns from another depends on which of them
are in memory together.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.models.intervals import calibration_length

__all__ = ["LEAST", "bytes_of", "pieces"]

Ints = npt.NDArray[np.int64]

LEAST = 10**9  # bytes; with less, libraries and single series alone may take more
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SHARE = 0.5  # of the limit that a piece is to take, since what it takes is an estimate
_OBJECTS = 20_000  # bytes of a series and its networks, whatever their length
_COPIES = 8  # of its values and of its windows


def bytes_of(limit: Any) -> int:
    """Return a limit in bytes.

    Parameters
    ----------
    limit : int or str
        Bytes, or text such as ``"2GB"``.

    Examples
    --------
    >>> from rbfdiffnet.forecasting.memory import bytes_of
    >>> bytes_of("1.5 GB"), bytes_of(2 * 10**9)
    (1500000000, 2000000000)
    """
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
    """Return the positions of the series that are forecast together, piece by piece.

    Parameters
    ----------
    lengths : ndarray of int of shape (n,)
        Numbers of values.
    n_inputs : int
        Besides these.
    width : int
        Lags and steps ahead of the windows that calibrate intervals.
    limit : int
        Bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.forecasting.memory import pieces
    >>> [part.size for part in pieces(np.full(50_000, 60), 0, 28, 10**9)]
    [8134, 8134, 8134, 8134, 8133, 8134, 1197]
    """
    longest = calibration_length(int(lengths.max(initial=0)))
    windows = np.minimum(lengths // 3, longest) + 1
    numbers = lengths * (1 + n_inputs) + windows * (width + n_inputs)
    need = _OBJECTS + 8 * _COPIES * numbers
    # A series that is too large for a piece is one of its own.
    number = (np.cumsum(need) - need) // int(_SHARE * limit)
    return [np.flatnonzero(number == k) for k in np.unique(number)]
