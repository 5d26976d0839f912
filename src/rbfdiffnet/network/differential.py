r"""What a differential network needs of its basis functions: three products.

It never needs the N x c x (order * d) tensor of all derivatives, only three products with it, one
for each of its axes. `network.gaussians` and `network.radial` compute them; what basis
functions there are is told in `rbfdiffnet.network.basis`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from rbfdiffnet.network.distances import Array

__all__ = ["DifferentialBasis", "mean_width"]


@dataclass(frozen=True)
class DifferentialBasis(ABC):
    r"""The basis functions at given points, ready for products with their derivatives.

    The tensor :math:`\theta_{pjn}` holds the terms p = (order k, axis i) of basis function j at
    row n. Terms are ordered as a weight vector ``a``: first order zero (if included), then the d
    axes of order 1, then those of order 2, and so on; order k is scaled by ``unit ** k``. The
    three products with it are

    ====================  =========================================  ===============
    `contract` (a)        :math:`\sum_p a_p \theta_{pjn}`            (c, n)
    `jacobian` (w)        :math:`\sum_j w_j \theta_{pjn}`            (terms, n)
    `adjoint` (r)         :math:`\sum_n r_n \theta_{pjn}`            (c, terms)
    ====================  =========================================  ===============

    and none of them forms the tensor. Rows are contiguous (the last axis).

    Attributes
    ----------
    phi : ndarray of shape (c, n)
        Basis functions.
    x, mu, beta : ndarray of shape (d, n), (c, d), (c,)
        Points and centers, moved to a common origin, and inverse widths.
    origin : ndarray of shape (d,)
    order : int
    order_zero : bool
    unit : float

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.network.basis import evaluate
    >>> X, centers, beta = np.zeros((5, 2)), np.ones((3, 2)), np.ones(3)
    >>> basis = evaluate("gaussian", X, centers, beta, order=2, order_zero=True)
    >>> basis.n_terms, basis.contract(np.ones(5)).shape, basis.jacobian(np.ones(3)).shape
    (5, (3, 5), (5, 5))
    """

    phi: Array
    x: Array
    mu: Array
    beta: Array
    origin: Array
    order: int
    order_zero: bool
    unit: float

    @cached_property
    def scratch(self) -> Array:
        """Room for one array like phi: fresh pages would cost more than the arithmetic."""
        return np.empty_like(self.phi)

    @property
    def n_terms(self) -> int:
        """Number of terms p, the length of ``a``."""
        return int(self.order_zero) + self.order * len(self.x)

    @abstractmethod
    def contract(self, a: Array, out: Array | None = None) -> Array:
        r"""Features :math:`G_{jn} = \sum_p a_p \theta_{pjn}`, shape (c, n), written to ``out``."""

    @abstractmethod
    def jacobian(self, w: Array, out: Array | None = None) -> Array:
        r"""Slopes of the network by ``a``: :math:`\sum_j w_j \theta_{pjn}`, shape (terms, n)."""

    @abstractmethod
    def adjoint(self, r: Array) -> Array:
        r"""Correlations with a residual: :math:`\sum_n r_n \theta_{pjn}`, shape (c, terms)."""

    @abstractmethod
    def input_gradient(self, a: Array, w: Array) -> Array:
        """Derivatives of the network by its inputs, shape (d, n)."""

    @abstractmethod
    def plain(self) -> Self:
        """Return the basis functions themselves, without derivatives."""

    @abstractmethod
    def normalized(self) -> Self:
        r"""Return basis functions that add up to 1, :math:`\varphi_j / \sum_j \varphi_j` (order 0).

        Far from all centers, where every one of them underflows, the nearest takes it all.
        """

    def tensor(self) -> Array:
        """Return the dense tensor, shape (terms, c, n): for inspection and tests only."""
        return np.stack([self.contract(a) for a in np.eye(self.n_terms)])

    def _split(self, a: Array) -> tuple[float, Array]:
        first = int(self.order_zero)
        return (float(a[0]) if first else 0.0), a[first:].reshape(self.order, self.x.shape[0])


def mean_width(beta: Array) -> float:
    r"""Mean width :math:`\sigma`, where :math:`\beta = 1 / (2 \sigma^2)`.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.network.basis import mean_width
    >>> mean_width(np.array([0.5, 0.125]))
    1.5
    """
    return float(np.mean(1.0 / np.sqrt(2.0 * beta)))
