r"""The stability rule: how far forecasts may go, and what is said of those that go far.

.. math:: |\hat z_{t+k} - \ell_t| \le 2 \max_\tau |z_{\tau+k} - \ell_\tau|, \qquad
    a - 3\,(b - a) \le \hat u_{T+k} \le b + 3\,(b - a)

One step of a network leaves the level of its window by at most twice the largest step seen in
training. A forecast leaves the range from a to b of its series by at most three times the span of
that range. The range is that of u: the series without outliers and effects of inputs, on the scale
of logarithms where these are taken. So no recursion runs away, however unstable its map is. The
rule is a guard, not a model: it touches no forecast anywhere near the series, and what it holds
back is reported. Numbers beyond :math:`10^{150}` are no data: a forecaster takes them for missing,
a regressor refuses them.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from rbfdiffnet.support.arrays import Array, Mask

T = TypeVar("T", float, Array)

LARGEST = 1e150  # the square of a larger number overflows
LEAP = 2.0  # how many of the largest step seen in training one step may take
REACH = 3.0  # how many spans of the series a forecast may leave its range by
_FAR = 2.0  # how many spans beyond the range a forecast is reported


def forecast_bounds(lowest: T, highest: T) -> tuple[T, T]:
    """Return the bounds of forecasts of series with these ranges."""
    reach = REACH * (highest - lowest)
    return lowest - reach, highest + reach


def describe_runaway(u: Array, low: float, high: float, held: Mask | None = None) -> str:
    """Say from which step on a forecast is held back or far out; empty if it is neither.

    `u` has shape (h,); `low` and `high` are from `forecast_bounds`. The mask `held`, of shape (h,),
    marks steps of a network that are as large as they may be.
    """
    margin = (REACH - _FAR) / (2.0 * REACH + 1.0) * (high - low)
    least, most = low + margin, high - margin
    inside = u.min() >= least and u.max() <= most  # as most forecasts are, which saves time
    if not inside and (far := (u < least) | (u > most)).any():
        where = "the range of the series by more than twice its span"
        return f"forecasts leave {where} from step {int(np.argmax(far)) + 1} on"
    if held is not None and held.any():
        return f"the recursion reaches its bound at step {int(np.argmax(held)) + 1}"
    return ""
