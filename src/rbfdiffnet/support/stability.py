r"""The stability rule: how far forecasts may go, and what is said of those that go far.

.. math:: |\hat z_{t+k} - \ell_t| \le 2 \max_\tau |z_{\tau+k} - \ell_\tau|, \qquad
    a - 3\,(b - a) \le \hat u_{T+k} \le b + 3\,(b - a)

A step of a network leaves the level of its window by no more than twice what a step ever did in
training, and a forecast leaves the range from a to b of its series by no more than three times its
span: that of u, the series without outliers, before effects of inputs and on the scale of
logarithms where these are taken. So no recursion runs away, however unstable its map is. The rule
is a guard, not a model: it touches no forecast anywhere near the series, and what it holds back is
reported. Numbers beyond :math:`10^{150}` are no data: a forecaster takes them for missing, a
regressor refuses them.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["LARGEST", "LEAP", "REACH", "bounds", "runaway"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
T = TypeVar("T", float, npt.NDArray[np.float64])

LARGEST = 1e150  # the square of a larger number overflows
LEAP = 2.0  # largest steps seen in training
REACH = 3.0  # spans
_FAR = 2.0  # spans beyond the range, from which on forecasts are reported


def bounds(lowest: T, highest: T) -> tuple[T, T]:
    """Return the bounds of forecasts of series with these ranges.

    Examples
    --------
    >>> from rbfdiffnet.support.stability import bounds
    >>> bounds(1.0, 2.0)
    (-2.0, 5.0)
    """
    reach = REACH * (highest - lowest)
    return lowest - reach, highest + reach


def runaway(u: Array, low: float, high: float, held: Mask | None = None) -> str:
    """Say from which step on a forecast is held back, or far out; nothing if it is not.

    Parameters
    ----------
    u : ndarray of shape (h,)
    low, high : float
        By `bounds`.
    held : ndarray of bool of shape (h,), optional
        Which steps of a network are as large as they may be.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.support.stability import runaway
    >>> runaway(np.array([3.0, 4.5, 5.0]), -2.0, 5.0)
    'forecasts leave the range of the series by more than twice its span from step 2 on'
    >>> runaway(np.array([3.0, 3.5, 3.0]), -2.0, 5.0, np.array([False, True, False]))
    'the recursion reaches its bound at step 2'
    """
    margin = (REACH - _FAR) / (2.0 * REACH + 1.0) * (high - low)
    far = (u < low + margin) | (u > high - margin)
    if far.any():
        where = "the range of the series by more than twice its span"
        return f"forecasts leave {where} from step {int(np.argmax(far)) + 1} on"
    if held is not None and held.any():
        return f"the recursion reaches its bound at step {int(np.argmax(held)) + 1}"
    return ""
