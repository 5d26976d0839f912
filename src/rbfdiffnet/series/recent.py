"""The latest values of series before origins, as they looked there and then.

Whether a value is an outlier depends on later ones, too. So does what a gap is filled with. For an
origin in the past both are found anew, from what had been seen by then.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rbfdiffnet.series.outliers import doubtful_values
from rbfdiffnet.series.prepare import Preparation, clean_many

__all__ = ["FILLED_FROM", "latest_values"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

FILLED_FROM = 6  # seasons before a window that its gaps are filled from


def latest_values(
    preparations: Sequence[Preparation],
    bare: Sequence[Array],
    origins: Sequence[Ints],
    sizes: Sequence[int],
) -> list[tuple[Array, Mask]]:
    """Return the latest values of u before each origin of many series, and which are observations.

    Parameters
    ----------
    preparations : sequence of Preparation
    bare : sequence of ndarray of shape (T,)
        By `Preparation.bare`.
    origins : sequence of ndarray of int of shape (B,)
        Numbers of values seen.
    sizes : sequence of int
        How many values are wanted.

    Returns
    -------
    list of (ndarray of shape (B, size), ndarray of bool of shape (B, size))
        Before the first value, it is repeated.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.series.prepare import prepare
    >>> from rbfdiffnet.series.recent import latest_values
    >>> y = np.array([1.0, 2.0, np.nan, 4.0])
    >>> preparation = prepare(y, np.zeros((4, 0)), season_length=1)
    >>> ((values, known),) = latest_values([preparation], [y], [np.array([3, 4])], [2])
    >>> values.tolist(), known.tolist()
    ([[2.0, 2.0], [3.0, 4.0]], [[True, False], [False, True]])
    """
    cleaned = clean_many(preparations, bare)
    doubtful = doubtful_values([p.rule for p in preparations], bare)
    results: list[tuple[Array, Mask]] = []
    again: list[tuple[int, int, int]] = []  # series, number of the origin, first value to look at
    for i, (p, (u, known)) in enumerate(zip(preparations, cleaned, strict=True)):
        steps = origins[i][:, None] - np.arange(sizes[i], 0, -1)
        at = np.maximum(steps, 0)
        results.append((u[at], known[at] & (steps >= 0)))
        # At the end of a series nothing is known later. Closed steps repeat what was before them.
        closed = known & ~np.isfinite(bare[i])
        reach = sizes[i] + (p.season_length if closed.any() else 0)
        before = np.maximum(origins[i][:, None] - np.arange(reach, 0, -1), 0)
        odd = np.flatnonzero((doubtful[i] | ~known)[before].any(axis=1) & (origins[i] < u.size))
        starts = np.maximum(origins[i][odd] - sizes[i] - FILLED_FROM * p.season_length, 0)
        again += [(i, k, first) for k, first in zip(odd.tolist(), starts.tolist(), strict=True)]
    parts = [bare[i][first : origins[i][k]] for i, k, first in again]
    then = clean_many([preparations[i] for i, _, _ in again], parts)
    for (i, k, first), (u, known) in zip(again, then, strict=True):
        steps = origins[i][k] - np.arange(sizes[i], 0, -1)
        place = np.maximum(steps - first, 0)
        values, seen = results[i]
        values[k] = u[place]
        seen[k] = known[place] & (steps >= first)
    return results
