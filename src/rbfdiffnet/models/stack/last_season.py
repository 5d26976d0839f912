r"""Repeat the last season, for series that have seen one or two.

.. math:: \hat y_{T+k} = y_{T + k - m \lceil k / m \rceil}

where m is the length of a season.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rbfdiffnet.models.stack.histories import Histories

__all__ = ["grown", "last_season"]

Array = npt.NDArray[np.float64]


def last_season(histories: Histories, h: int) -> Array:
    """Return the values of a season ago for h steps, shape (n, h); NaN where there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models.stack.histories import Histories
    >>> from rbfdiffnet.models.stack.last_season import last_season
    >>> last_season(Histories.of([np.arange(6.0), np.arange(2.0)], season=4), 5)
    array([[ 2.,  3.,  4.,  5.,  2.],
           [nan, nan,  0.,  1., nan]])
    """
    m, n_columns = histories.season, histories.values.shape[1]
    k = np.arange(1, h + 1)
    return np.asarray(histories.values[:, n_columns - 1 + k - m * -(-k // m)])


def grown(histories: Histories, repeated: Array) -> Array:
    """Bring a repeated season to the present level.

    That of the last quarter of a season, over that of the same quarter a season ago; their
    difference, for series that are not positive. Where that is not known nothing is changed.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models.stack.histories import Histories
    >>> from rbfdiffnet.models.stack.last_season import grown, last_season
    >>> histories = Histories.of([np.array([1.0, 2, 1, 2, 2, 4, 2, 4])], season=4)
    >>> grown(histories, last_season(histories, 4))
    array([[4., 8., 4., 8.]])
    """
    m, n_columns = histories.season, histories.values.shape[1]
    quarter = min(max(m // 4, 2), n_columns - m)
    if quarter < 1:
        return repeated
    now = histories.values[:, -quarter:].mean(axis=1)
    then = histories.values[:, n_columns - m - quarter : n_columns - m].mean(axis=1)
    known, positive = np.isfinite(then), histories.positive
    ratio = np.where(known & positive, now / np.where(then > 0.0, then, 1.0), 1.0)
    change = np.where(known & ~positive, now - then, 0.0)
    return np.asarray(ratio[:, None] * repeated + change[:, None])
