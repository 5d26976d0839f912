r"""Products with the derivatives of any radial function, :math:`\varphi_j = g(\beta_j r^2)`.

The products are those of `network.gaussians`, added up axis by axis, because nothing is known of g
but its derivatives. That takes longer than the matrix products of Gaussians, but never cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import factorial

import numpy as np

from rbfdiffnet.network.differential import (
    Array,
    DifferentialBasis,
    mean_width,
    squared_distances,
)

#: Takes s and an order; returns g(s) and its derivatives up to that order, along a first axis.
Profile = Callable[[Array, int], Array]


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
        slopes = _slopes(profile, x, mu, beta, order)
        return cls(slopes[0], x, mu, beta, origin, order, order_zero, unit, profile, slopes)

    def contract(self, a: Array, out: Array | None = None) -> Array:
        """Return features, shape (c, n), written to ``out``."""
        zero, rest = self._split(a)
        result = np.empty_like(self.phi) if out is None else out
        np.multiply(self.phi, zero, out=result)
        for i, terms in self._terms():
            result += np.tensordot(rest[:, i], terms, axes=1)
        return result

    def jacobian(self, w: Array, out: Array | None = None) -> Array:
        """Return slopes of the network by ``a``, shape (terms, n)."""
        first = int(self.order_zero)
        result = np.empty((self.n_terms, self.x.shape[1])) if out is None else out
        if first:
            result[0] = w @ self.phi
        blocks = result[first:].reshape(self.order, *self.x.shape)
        for i, terms in self._terms():
            blocks[:, i] = np.einsum("j,kjn->kn", w, terms)
        return result

    def adjoint(self, r: Array) -> Array:
        """Return correlations with a residual, shape (c, terms)."""
        first = int(self.order_zero)
        result = np.empty((len(self.phi), self.n_terms))
        if first:
            result[:, 0] = self.phi @ r
        blocks = result[:, first:].reshape(len(self.phi), self.order, len(self.x))
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
        slopes = _slopes(self.profile, self.x, self.mu, self.beta, self.order + 1)[1:]
        primed = replace(self, phi=slopes[0], slopes=slopes)
        weighted = w[:, None] * primed.contract(a)
        result = np.stack([np.sum(t * weighted, axis=0) for t in self._differences()])
        lower = primed.jacobian(w)[int(self.order_zero) :].reshape(self.order, *self.x.shape)
        for k in range(1, self.order + 1):
            below = w @ primed.phi if k == 1 else lower[k - 2]
            result += k * self.unit * rest[k - 1][:, None] * below
        return np.asarray(2.0 * result)

    def without_derivatives(self) -> RadialBasis:
        """Return the basis functions themselves, without derivatives."""
        return replace(self, order=0, order_zero=True)

    def normalize(self) -> RadialBasis:
        """Return basis functions that add up to 1."""
        total = self.phi.sum(axis=0)
        distances = self.beta[:, None] * squared_distances(self.mu, self.x.T, expand=False)
        nearest = distances.argmin(axis=0) == np.arange(len(self.phi))[:, None]
        shares = self.phi / np.where(total > 0.0, total, 1.0)
        return replace(self, phi=np.where(total > 0.0, shares, nearest))

    def _differences(self) -> Iterator[Array]:
        """Yield, for each axis, the distances from the centers along it, (c, n)."""
        for x, m in zip(self.x, self.mu.T, strict=True):
            yield x - m[:, None]

    def _terms(self) -> Iterator[tuple[int, Array]]:
        """Yield each axis with the derivatives of all orders along it, (k, c, n), in units."""
        scale = self.unit ** np.arange(1, self.order + 1)[:, None, None]
        for i, t in enumerate(self._differences()):
            yield i, scale * axis_derivatives(t, self.slopes, self.order)


def _slopes(profile: Profile, x: Array, mu: Array, beta: Array, order: int) -> Array:
    r"""Return :math:`\beta_j^q g^{(q)}(s)` up to an order, (order + 1, c, n)."""
    s = beta[:, None] * squared_distances(mu, x.T, expand=False)
    values = np.asarray(profile(s, order), dtype=np.float64)
    if values.shape != (order + 1, *s.shape):
        raise ValueError(
            f"the basis function returned an array of shape {values.shape} for s of shape "
            f"{s.shape} and order {order}; expected {(order + 1, *s.shape)}: the function and its "
            "derivatives by s"
        )
    if not np.isfinite(values).all():
        raise ValueError(
            "the basis function returned values that are not finite; it and its derivatives by s "
            "must be so for every s from 0 on"
        )
    return np.asarray(values * beta[:, None] ** np.arange(order + 1)[:, None, None])
