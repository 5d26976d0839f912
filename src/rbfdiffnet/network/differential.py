r"""What a differential network needs of its basis functions: distances and three products.

A network never needs the N x c x (order * d) tensor of all derivatives, only three products with
it, one for each of its axes. `network.gaussians` and `network.radial` compute them;
`network.basis` names the basis functions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


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
        """Number of terms p, which is the length of ``a``."""
        return int(self.order_zero) + self.order * len(self.x)

    @abstractmethod
    def contract(self, a: Array, out: Array | None = None) -> Array:
        r"""Return features :math:`G_{jn} = \sum_p a_p \theta_{pjn}` (c, n), written to ``out``."""

    @abstractmethod
    def jacobian(self, w: Array, out: Array | None = None) -> Array:
        r"""Return slopes of the network by ``a``: :math:`\sum_j w_j \theta_{pjn}`, (terms, n)."""

    @abstractmethod
    def adjoint(self, r: Array) -> Array:
        r"""Return correlations with a residual: :math:`\sum_n r_n \theta_{pjn}`, (c, terms)."""

    @abstractmethod
    def input_gradient(self, a: Array, w: Array) -> Array:
        """Return derivatives of the network by its inputs, shape (d, n)."""

    @abstractmethod
    def without_derivatives(self) -> Self:
        """Return the basis functions themselves, without derivatives."""

    @abstractmethod
    def normalize(self) -> Self:
        r"""Return basis functions that add up to 1, :math:`\varphi_j / \sum_j \varphi_j` (order 0).

        Far from all centers, where every function underflows, that of the nearest center is 1.
        """

    def tensor(self) -> Array:
        """Return the dense tensor, shape (terms, c, n): for inspection and tests only."""
        return np.stack([self.contract(a) for a in np.eye(self.n_terms)])

    def _split(self, a: Array) -> tuple[float, Array]:
        """Split the weights into that of order zero and those of the derivatives, (order, d)."""
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


def squared_distances(X: Array, centers: Array, *, expand: bool = True) -> Array:
    r"""Squared distances :math:`\lVert x_n - \mu_j \rVert^2` between rows.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    centers : ndarray of shape (c, d)
    expand : bool, default=True
        Use :math:`|x|^2 + |\mu|^2 - 2 x \cdot \mu`, clamped at 0, which is one matrix product;
        otherwise add up squared differences one axis at a time, which never cancels.

    Returns
    -------
    ndarray of shape (n, c)

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.network.basis import squared_distances
    >>> squared_distances(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 0.0]]))
    array([[ 0.],
           [25.]])
    """
    if expand:
        squares = (-2.0 * X) @ centers.T
        squares += np.einsum("nd,nd->n", X, X)[:, None]
        squares += np.einsum("cd,cd->c", centers, centers)
        return np.asarray(np.maximum(squares, 0.0, out=squares))
    squares = np.zeros((X.shape[0], centers.shape[0]))
    for i in range(X.shape[1]):
        squares += np.subtract.outer(X[:, i], centers[:, i]) ** 2
    return squares
