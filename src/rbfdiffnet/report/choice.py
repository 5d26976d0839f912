"""Which series a report shows where there are too many."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

__all__ = ["MOST_SERIES", "choose_series"]

MOST_SERIES = 5000


def choose_series(
    n: int, errors: npt.NDArray[np.float64] | None = None, wanted: Collection[int] = ()
) -> npt.NDArray[np.int64]:
    """Choose series: wanted ones, the best, the worst, and others evenly spread.

    Parameters
    ----------
    n : int
        Number of series.
    errors : ndarray of shape (n,), optional
        NaN where not known.
    wanted : collection of int, optional
        Series to take in any case.

    Returns
    -------
    ndarray of int
        Ascending, `MOST_SERIES` at most; always the same for the same arguments.

    Examples
    --------
    >>> from rbfdiffnet.report.choice import choose_series
    >>> choose_series(3).tolist(), len(choose_series(30_490, wanted=[7]))
    ([0, 1, 2], 5000)
    """
    if n <= MOST_SERIES:
        return np.arange(n)
    order = [*sorted(wanted), *range(20)]
    if errors is not None:
        ranking = np.argsort(errors, kind="stable")[: np.isfinite(errors).sum()]
        tenth = MOST_SERIES // 10
        order += [*ranking[::-1][:tenth].tolist(), *ranking[:tenth].tolist()]
    taken = list(dict.fromkeys(order))[:MOST_SERIES]
    rest = np.setdiff1d(np.arange(n), taken)
    spread = np.linspace(0, len(rest) - 1, MOST_SERIES - len(taken)).round().astype(np.int64)
    return np.sort(np.concatenate([np.array(taken, dtype=np.int64), rest[spread]]))
