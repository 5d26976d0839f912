r"""What a residual costs: squared, Huber, absolute, quantile, or the user's own function.

Every built-in loss is majorized at a residual :math:`r_0` by a parabola that touches it there,

.. math::

    \ell(r) \le \tfrac12 v (r - s)^2 + \text{const}, \qquad v (r_0 - s) = \ell'(r_0)

so a least-squares trainer repeats weighted least squares with row weights v and targets shifted by
s; every such step lowers the loss itself. The residual is
:math:`r = y - f`, in standard deviations of y. Corners are rounded off over `CORNER`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.checks import call_given

LOSSES = ("squared", "huber", "absolute", "quantile")

#: A user's loss: ``loss(y_true, y_pred) -> (values, derivatives by y_pred)``, row by row.
LossFunction = Callable[[Array, Array], tuple[Array, Array]]

CORNER = 1e-4
_HUBER_TUNING = 1.0  # 90 % efficiency for normal errors (Huber, 1964)


@dataclass(frozen=True)
class Loss:
    r"""One of the built-in losses.

    =============  ==========================================================================
    ``squared``    :math:`r^2 / 2`
    ``huber``      :math:`r^2 / 2` up to :math:`|r| = \delta`, then
                   :math:`\delta |r| - \delta^2 / 2`
    ``absolute``   :math:`|r|`
    ``quantile``   :math:`\max(\tau r, (\tau - 1) r)`
    =============  ==========================================================================

    where :math:`\delta` is ``delta`` and :math:`\tau` is ``quantile``.
    """

    kind: str = "squared"
    delta: float = 1.0
    quantile: float = 0.5

    def value(self, r: Array) -> Array:
        """Return the loss of every residual."""
        if self.kind == "squared":
            return 0.5 * r**2
        if self.kind == "huber":
            clipped = np.clip(r, -self.delta, self.delta)
            return clipped * (r - 0.5 * clipped)
        rounded = np.sqrt(r**2 + CORNER**2) - CORNER
        if self.kind == "absolute":
            return rounded
        return 0.5 * (rounded + (2.0 * self.quantile - 1.0) * r)

    def slope(self, r: Array) -> Array:
        """Return the derivative of the loss at every residual."""
        weight, shift = self.majorizer(r)
        return weight * (r - shift)

    def majorizer(self, r: Array) -> tuple[Array, Array]:
        """Return row weights v and target shifts s of the parabolas that touch the loss at r."""
        if self.kind == "squared":
            return np.ones_like(r), np.zeros_like(r)
        if self.kind == "huber":
            return self.delta / np.maximum(np.abs(r), self.delta), np.zeros_like(r)
        weight = 1.0 / np.sqrt(r**2 + CORNER**2)
        if self.kind == "absolute":
            return weight, np.zeros_like(r)
        weight *= 0.5
        return weight, (0.5 - self.quantile) / weight


def huber_delta(r: Array, weight: Array) -> float:
    """Return Huber's threshold for residuals (m, n): one robust standard deviation.

    Where most residuals are (nearly) zero it is half their 95 % quantile instead.
    """
    size = np.abs(r).ravel()
    order = size.argsort()
    mass = np.cumsum(np.broadcast_to(weight, r.shape).ravel()[order])
    median = size[order][np.searchsorted(mass, 0.5 * mass[-1])]
    upper = size[order][np.searchsorted(mass, 0.95 * mass[-1])]
    if median < 1e-3 * upper:  # most residuals are zero
        return max(0.5 * float(upper), CORNER)
    return max(_HUBER_TUNING * float(median) / 0.6745, CORNER)


@dataclass(frozen=True)
class CustomLoss:
    """A user's function, as a loss of standardized residuals; it has no majorizer."""

    function: LossFunction
    target: Array  # (m, n), standardized
    y_shift: Array
    y_scale: Array
    factor: float = 1.0
    kind: str = "user"

    def value(self, r: Array) -> Array:
        """Return the loss of every residual."""
        return self.factor * self._call(r)[0]

    def slope(self, r: Array) -> Array:
        """Return the derivative of the loss at every residual."""
        return -self.factor * self.y_scale[:, None] * self._call(r)[1]

    def _call(self, r: Array) -> tuple[Array, Array]:
        """Call the function with y in its own units: (n,) for one output, else (n, m)."""
        y_true = self.target.T * self.y_scale + self.y_shift
        y_pred = (self.target - r).T * self.y_scale + self.y_shift
        if len(r) == 1:
            y_true, y_pred = y_true[:, 0], y_pred[:, 0]
        answer = call_given("loss", self.function, y_true, y_pred)
        try:
            value, slope = (np.asarray(part, dtype=float) for part in answer)
        except (TypeError, ValueError):
            value = slope = np.empty(0)
        if value.shape != y_true.shape or slope.shape != y_true.shape:
            raise ValueError(
                "loss must return two arrays shaped like y_true: the loss of every row and its "
                "derivative by y_pred"
            )
        return value.T.reshape(r.shape), slope.T.reshape(r.shape)
