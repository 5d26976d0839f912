r"""Newton steps within a trust region.

The quadratic model :math:`g \cdot s + \tfrac12 s' H s` is lowest within a ball at

.. math::

    s = -(H + \tau I)^{-1} g

with the smallest shift :math:`\tau \ge 0` that makes :math:`H + \tau I` positive and s short
enough. In the axes of the curvature that is a division; :math:`\tau` is found by Newton's method on
1 / length (J. More, D. Sorensen, 1983).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rbfdiffnet.network.basis import Array

LARGEST_STEP = 1.0  # in units of the length of a
MOST_RETRIES = 25  # of one step
_SMALLEST_RADIUS = 1e-8


@dataclass
class TrustRegion:
    """A quadratic model around a (K,), and the radius within which it is trusted.

    Ask for a `candidate` and tell `accepts` its gain; after a step uphill the next is shorter.
    """

    a: Array
    bends: Array  # (K,): the curvature, in ascending order
    axes: Array  # (K, K)
    along: Array  # (K,): the gradient, in the axes of the curvature
    radius: float
    unit_length: bool
    _length: float = field(default=0.0, init=False)
    _expected: float = field(default=0.0, init=False)

    @classmethod
    def around(
        cls, a: Array, gradient: Array, hessian: Array, radius: float, *, unit_length: bool = True
    ) -> TrustRegion:
        """Make the model.

        With `unit_length`, the objective does not depend on the length of a, which is kept at 1.
        """
        if unit_length:  # a step along a changes nothing: make it costly
            hessian = hessian + np.outer(a, a) * (np.abs(np.trace(hessian)) / len(a))
        bends, axes = np.linalg.eigh(hessian)
        return cls(a, bends, axes, axes.T @ gradient, radius, unit_length)

    def candidate(self) -> Array:
        """Return the point (K,) within the region at which the model is lowest."""
        step = self._best_step()
        self._length = float(np.linalg.norm(step))
        self._expected = -float(self.along @ step + 0.5 * self.bends @ step**2)
        candidate = self.a + self.axes @ step
        return candidate / np.linalg.norm(candidate) if self.unit_length else candidate

    def accepts(self, gain: float) -> bool:
        """Tell whether the latest candidate, which gained so much, is no worse; set the radius."""
        if gain < 0.25 * self._expected:
            self.radius = 0.25 * self._length
        elif gain > 0.75 * self._expected and self._length > 0.9 * self.radius:
            self.radius = min(2.0 * self.radius, LARGEST_STEP)
        if gain >= 0.0:
            self.radius = max(self.radius, _SMALLEST_RADIUS)
        return gain >= 0.0

    def _best_step(self) -> Array:
        bends = self.bends
        shift = max(0.0, -float(bends[0])) + 1e-12 * float(np.abs(bends).max()) + 1e-300
        for _ in range(20):
            step: Array = -self.along / (bends + shift)
            length = float(np.sqrt(step @ step))
            if length <= 1.01 * self.radius:
                break
            slope = float(step @ (step / (bends + shift)))
            shift += (length / self.radius - 1.0) * length**2 / slope
        return step
