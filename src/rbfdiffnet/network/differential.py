r"""What a differential network needs of its basis functions: distances and three products.

A network never needs the N x c x (order * d) tensor of all derivatives, only three products with
it, one for each of its axes. `RadialBasis` adds them up axis by axis, because nothing is known of g
but its derivatives: that never cancels. `network.gaussians` has a faster way for Gaussians, and
`network.basis` names the basis functions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import factorial
from typing import Self

import numpy as np

from rbfdiffnet.support.arrays import Array

#: Takes s and an order; returns g(s) and its derivatives up to that order, along a first axis.
Profile = Callable[[Array, int], Array]


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

    @property
    def n_terms(self) -> int:
        """Number of terms p, which is the length of ``a``."""
        return int(self.order_zero) + self.order * len(self.x)

    def contract(self, a: Array, out: Array | None = None) -> Array:
        r"""Return features :math:`G_{jn} = \sum_p a_p \theta_{pjn}` (c, n), written to ``out``."""
        zero, rest = self._split(a)
        result: Array = np.multiply(self.phi, zero, out=out)
        for i, terms in self._terms():
            result += np.tensordot(rest[:, i], terms, axes=1)
        return result

    def jacobian(self, w: Array, out: Array | None = None) -> Array:
        r"""Return slopes of the network by ``a``: :math:`\sum_j w_j \theta_{pjn}`, (terms, n)."""
        result = np.empty((self.n_terms, self.x.shape[1])) if out is None else out
        if self.order_zero:
            result[0] = w @ self.phi
        self._fill_slopes(w, self._by_order(result))
        return result

    def adjoint(self, r: Array) -> Array:
        r"""Return correlations with a residual: :math:`\sum_n r_n \theta_{pjn}`, (c, terms)."""
        result = np.empty((len(self.phi), self.n_terms))
        if self.order_zero:
            result[:, 0] = self.phi @ r
        blocks = result[:, int(self.order_zero) :].reshape(len(self.phi), self.order, len(self.x))
        for i, terms in self._terms():
            blocks[:, :, i] = (terms @ r).T
        return result

    def input_gradient(self, a: Array, w: Array) -> Array:
        r"""Return derivatives of the network by its inputs, shape (d, n).

        .. math::

            \frac{\partial}{\partial x_i} \sum_p a_p \theta_{pj} = 2 \Big[
            (x_i - \mu_{ji}) \sum_p a_p \theta'_{pj}
            + \sum_k k\, a_{ki}\, \partial_i^{k-1} \varphi'_j \Big]

        where a prime means that :math:`\beta_j g'` takes the place of g.
        """
        _, rest = self._split(a)
        primed, w = self._primed(w)
        result = primed._moments(w, primed.contract(a))
        lower = primed._by_order(primed.jacobian(w)) if self.order > 1 else result[:0]
        for k in range(1, self.order + 1):
            below = w @ primed.phi if k == 1 else lower[k - 2]
            result += k * self.unit * rest[k - 1][:, None] * below
        return np.asarray(2.0 * result)

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

    @abstractmethod
    def _terms(self) -> Iterator[tuple[int, Array]]:
        """Yield each axis with the derivatives of all orders along it, (k, c, n), in units."""

    @abstractmethod
    def _primed(self, w: Array) -> tuple[Self, Array]:
        r"""Return a basis and weights (c,) whose network has :math:`\beta_j g'` for g."""

    def _fill_slopes(self, w: Array, blocks: Array) -> None:
        """Fill in the slopes of the network by the derivatives' weights, (order, d, n)."""
        for i, terms in self._terms():
            blocks[:, i] = np.einsum("j,kjn->kn", w, terms)

    def _moments(self, w: Array, features: Array) -> Array:
        r"""Return :math:`\sum_j w_j (x_i - \mu_{ji}) G_{jn}` of features G, shape (d, n)."""
        weighted = w[:, None] * features
        return np.stack([np.sum(t * weighted, axis=0) for t in self._differences()])

    def _differences(self) -> Iterator[Array]:
        """Yield, for each axis, the distances from the centers along it, (c, n)."""
        for x, m in zip(self.x, self.mu.T, strict=True):
            yield x - m[:, None]

    def _split(self, a: Array) -> tuple[float, Array]:
        """Split the weights into that of order zero and those of the derivatives, (order, d)."""
        first = int(self.order_zero)
        return (float(a[0]) if first else 0.0), a[first:].reshape(self.order, self.x.shape[0])

    def _by_order(self, slopes: Array) -> Array:
        """Return a view of slopes (terms, n) without order zero, shape (order, d, n)."""
        return slopes[int(self.order_zero) :].reshape(self.order, *self.x.shape)

    def _exponents(self) -> Array:
        r"""Return :math:`\beta_j \lVert x_n - \mu_j \rVert^2`, shape (c, n)."""
        return self.beta[:, None] * squared_distances(self.mu, self.x.T, expand=False)


@dataclass(frozen=True)
class RadialBasis(DifferentialBasis):
    r"""Basis functions of any profile g at given points; see `DifferentialBasis`.

    Attributes
    ----------
    profile : callable
        g and its derivatives.
    slopes : ndarray of shape (order + 1, c, n)
        :math:`\beta_j^q g^{(q)}(s)`.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.network.basis import BASES, RadialBasis
    >>> X, centers, beta = np.zeros((5, 2)), np.ones((3, 2)), np.ones(3)
    >>> basis = RadialBasis.evaluate(
    ...     BASES["inverse_quadratic"], X, centers, beta, order=2, order_zero=True
    ... )
    >>> basis.n_terms, basis.contract(np.ones(5)).shape, basis.jacobian(np.ones(3)).shape
    (5, (3, 5), (5, 5))
    """

    profile: Profile
    slopes: Array

    @classmethod
    def evaluate(
        cls,
        profile: Profile,
        X: Array,
        centers: Array,
        beta: Array,
        *,
        order: int,
        order_zero: bool,
        unit: float | None = None,
    ) -> RadialBasis:
        """Evaluate the basis functions on the rows of X; see `network.basis.evaluate`."""
        origin = centers.mean(axis=0)
        mu, x = centers - origin, np.ascontiguousarray((X - origin).T)
        unit = mean_width(beta) if unit is None else unit
        nothing = np.empty((0, len(mu), x.shape[1]))
        empty = cls(nothing, x, mu, beta, origin, order, order_zero, unit, profile, nothing)
        slopes = empty._slopes(order)
        return replace(empty, phi=slopes[0], slopes=slopes)

    def without_derivatives(self) -> RadialBasis:
        """Return the basis functions themselves, without derivatives."""
        return replace(self, order=0, order_zero=True)

    def normalize(self) -> RadialBasis:
        """Return basis functions that add up to 1."""
        total = self.phi.sum(axis=0)
        nearest = self._exponents().argmin(axis=0) == np.arange(len(self.phi))[:, None]
        shares = self.phi / np.where(total > 0.0, total, 1.0)
        return replace(self, phi=np.where(total > 0.0, shares, nearest))

    def _terms(self) -> Iterator[tuple[int, Array]]:
        scale = self.unit ** np.arange(1, self.order + 1)[:, None, None]
        for i, t in enumerate(self._differences()):
            yield i, scale * axis_derivatives(t, self.slopes, self.order)

    def _primed(self, w: Array) -> tuple[RadialBasis, Array]:
        slopes = self._slopes(self.order + 1)[1:]
        return replace(self, phi=slopes[0], slopes=slopes), w

    def _slopes(self, order: int) -> Array:
        r"""Return :math:`\beta_j^q g^{(q)}(s)` up to an order, (order + 1, c, n)."""
        s = self._exponents()
        values = np.asarray(self.profile(s, order), dtype=np.float64)
        if values.shape != (order + 1, *s.shape):
            raise ValueError(
                f"the basis function returned an array of shape {values.shape} for s of shape "
                f"{s.shape} and order {order}; expected {(order + 1, *s.shape)}: the function and "
                "its derivatives by s"
            )
        if not np.isfinite(values).all():
            raise ValueError(
                "the basis function returned values that are not finite; it and its derivatives by "
                "s must be so for every s from 0 on"
            )
        return np.asarray(values * self.beta[:, None] ** np.arange(order + 1)[:, None, None])


def axis_derivatives(t: Array, slopes: Array, order: int) -> Array:
    r"""Return the derivatives along an axis of orders 1 to ``order``, stacked along a first axis.

    .. math::

        \partial_i^k \varphi_j = \sum_{m=0}^{\lfloor k/2 \rfloor} \frac{k!}{m!\, (k - 2m)!}\,
        (2t)^{k-2m}\, \beta_j^{k-m}\, g^{(k-m)}(s)

    where t are the distances from the centers along the axis, and ``slopes[q]`` is
    :math:`\beta_j^q g^{(q)}(s)` for q up to ``order``.
    """
    result = np.zeros((order, *np.broadcast_shapes(t.shape, slopes.shape[1:])))
    for k in range(1, order + 1):
        for m in range(k // 2 + 1):
            ways = factorial(k) // (factorial(m) * factorial(k - 2 * m))
            result[k - 1] += ways * (2.0 * t) ** (k - 2 * m) * slopes[k - m]
    return result


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
