r"""Newton steps within trust regions, for a batch of problems at once.

The quadratic model :math:`g \cdot s + \tfrac12 s' H s` is lowest within a ball at

.. math::

    s = -(H + \tau I)^{-1} g

with the smallest shift :math:`\tau \ge 0` that makes :math:`H + \tau I` positive and s short
enough. In the axes of the curvature that is a division; :math:`\tau` is found by Newton's method on
1 / length (J. More, D. Sorensen, 1983).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rbfdiffnet.network.basis import Array

LARGEST_STEP = 1.0  # in units of the length of a
_SMALLEST_RADIUS = 1e-8
_MOST_RETRIES = 25  # of one step


@dataclass
class TrustRegion:
    """Quadratic models around points a (B, K), trusted within the radii (B,).

    `propose` yields candidates, whose gains `judge` takes; a step uphill is tried again, shorter.
    """

    a: Array
    bends: Array  # (B, K): the curvature
    axes: Array  # (B, K, K)
    along: Array  # (B, K): the gradients, in the axes of the curvature
    radius: Array
    unit_length: bool
    _waiting: npt.NDArray[np.intp] = field(init=False)
    _length: Array = field(init=False)
    _expected: Array = field(init=False)

    @classmethod
    def around(
        cls, a: Array, gradient: Array, hessian: Array, radius: Array, *, unit_length: bool = True
    ) -> TrustRegion:
        """Make the models from gradients (B, K) and Hessians (B, K, K).

        With `unit_length`, the objective does not depend on the length of a, which is kept at 1.
        """
        if unit_length:  # a step along a changes nothing: make it costly
            cost = np.abs(np.trace(hessian, axis1=1, axis2=2)) / a.shape[1]
            hessian = hessian + cost[:, None, None] * (a[:, :, None] * a[:, None])
        bends, axes = np.linalg.eigh(hessian)
        along = np.matmul(gradient[:, None], axes)[:, 0]
        return cls(a, bends, axes, along, radius.copy(), unit_length)

    def propose(self) -> Iterator[tuple[npt.NDArray[np.intp], Array]]:
        """Yield the numbers of the problems (k,) that still need a step, and candidates (k, K)."""
        self._waiting = np.arange(len(self.a))
        for _ in range(_MOST_RETRIES):
            which = self._waiting
            if not which.size:
                return
            bends, along = self.bends[which], self.along[which]
            step = _best_steps(bends, along, self.radius[which])
            self._length = np.sqrt(np.sum(step**2, axis=1))
            self._expected = -np.sum(along * step + 0.5 * bends * step**2, axis=1)
            candidates = self.a[which] + np.matmul(self.axes[which], step[:, :, None])[:, :, 0]
            if self.unit_length:
                candidates /= np.sqrt(np.sum(candidates**2, axis=1))[:, None]
            yield which, candidates

    def judge(self, gain: Array) -> npt.NDArray[np.intp]:
        """Take the gains (k,) of the latest candidates; return the positions of accepted ones."""
        which, length = self._waiting, self._length
        radius = self.radius[which]
        poor, good = gain < 0.25 * self._expected, gain > 0.75 * self._expected
        wider = np.minimum(2.0 * radius, LARGEST_STEP)
        radius = np.where(good & (length > 0.9 * radius), wider, radius)
        radius = np.where(poor, 0.25 * length, radius)
        better = gain >= 0.0
        self.radius[which] = np.where(better, np.maximum(radius, _SMALLEST_RADIUS), radius)
        self._waiting = which[~better]
        return np.flatnonzero(better)


def _best_steps(bends: Array, along: Array, radius: Array) -> Array:
    """Minimize quadratics within balls, in the axes of their curvature: steps of shape (k, K)."""
    largest = np.abs(bends).max(axis=1)
    shift = np.maximum(0.0, -bends[:, 0]) + 1e-12 * largest + 1e-300
    for _ in range(20):
        convex = bends + shift[:, None]
        step: Array = -along / convex
        length = np.sqrt(np.sum(step**2, axis=1))
        far = length > 1.01 * radius
        if not far.any():
            break
        slope = np.sum(step**2 / convex, axis=1)
        with np.errstate(all="ignore"):
            shift = np.where(far, shift + (length / radius - 1.0) * length**2 / slope, shift)
    return step
