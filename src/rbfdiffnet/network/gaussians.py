"""Products with the derivatives of Gaussians, as matrix products over whole batches of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import comb

import numpy as np

from rbfdiffnet.network.differential import (
    Array,
    DifferentialBasis,
    mean_width,
    squared_distances,
)

# Largest relative error that expanding powers of x may cause before the direct route is taken.
_CANCELLATION_LIMIT = 1e-11


@dataclass(frozen=True)
class GaussianBasis(DifferentialBasis):
    r"""Gaussians at given points; see `DifferentialBasis`.

    Every derivative is a polynomial times the Gaussian, :math:`\partial_i^k \varphi_j = \varphi_j
    \sum_q C_{kqji} x_i^q`, so each product with them is a matrix product with powers of x. Where
    expanding the powers would cancel (narrow functions far from the origin, high orders) the same
    products are added up axis by axis from the recurrence instead.

    Attributes
    ----------
    powers : ndarray of shape (order * d, n) or None
        :math:`x^1 .. x^\nu`; None means the axis-by-axis route.
    coefficients : ndarray of shape (order, order + 1, c, d)
        :math:`C_{kqji}`, times ``unit ** k``.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.network.basis import GaussianBasis
    >>> X, centers, beta = np.zeros((5, 2)), np.ones((3, 2)), np.ones(3)
    >>> basis = GaussianBasis.evaluate(X, centers, beta, order=2, order_zero=True)
    >>> basis.n_terms, basis.contract(np.ones(5)).shape, basis.jacobian(np.ones(3)).shape
    (5, (3, 5), (5, 5))
    """

    powers: Array | None
    coefficients: Array

    @classmethod
    def evaluate(
        cls,
        X: Array,
        centers: Array,
        beta: Array,
        *,
        order: int,
        order_zero: bool,
        unit: float | None = None,
        expand: bool | None = None,
    ) -> GaussianBasis:
        """Evaluate Gaussians on the rows of X; see `network.basis.evaluate`.

        ``expand`` forces (True) or forbids (False) the expansion in powers; None lets the data
        decide.
        """
        n, d = X.shape
        origin = centers.mean(axis=0)
        mu = centers - origin
        inputs = np.empty((d + 2, n))  # x, |x|^2 and 1: the exponent is one product with them
        x = np.subtract(X.T, origin[:, None], out=inputs[:d])
        if expand is None:
            expand = _can_expand(x, mu, beta, power=max(2, order))
        unit = mean_width(beta) if unit is None else unit
        if expand:
            np.einsum("in,in->n", x, x, out=inputs[d])
            inputs[d + 1] = 1.0
            column = beta[:, None]
            square = np.einsum("ji,ji->j", mu, mu)[:, None]
            phi = np.concatenate([2.0 * column * mu, -column, -column * square], axis=1) @ inputs
            np.minimum(phi, 0.0, out=phi)
        else:
            phi = -beta[:, None] * squared_distances(mu, x.T, expand=False)
        np.exp(phi, out=phi)
        powers = x[: order * d] if expand else None
        if expand and order > 1:
            powers = np.concatenate([x**q for q in range(1, order + 1)])
        coefficients = _power_coefficients(mu, beta, order, unit)
        return cls(phi, x, mu, beta, origin, order, order_zero, unit, powers, coefficients)

    def contract(self, a: Array, out: Array | None = None) -> Array:
        """Return features, shape (c, n), written to ``out``."""
        zero, rest = self._split(a)
        result = np.empty_like(self.phi) if out is None else out
        if self.powers is None:
            result[...] = zero
            for i, polynomials in self._polynomials():
                result += np.tensordot(rest[:, i], polynomials, axes=1)
        else:
            # (order + 1, c, d): weight of x_i^q in the polynomial of basis function j
            by_power = np.einsum("ki,kqji->qji", rest, self.coefficients)
            weights = by_power[1:].transpose(1, 0, 2).reshape(self.phi.shape[0], -1)
            np.matmul(weights, self.powers, out=result)
            result += (zero + by_power[0].sum(axis=1))[:, None]
        result *= self.phi
        return result

    def jacobian(self, w: Array, out: Array | None = None) -> Array:
        """Return slopes of the network by ``a``, shape (terms, n)."""
        first = int(self.order_zero)
        n_axes, n_rows = self.x.shape
        result = np.empty((self.n_terms, n_rows)) if out is None else out
        if first:
            result[0] = w @ self.phi
        blocks = result[first:].reshape(self.order, n_axes, n_rows)
        if self.powers is None:
            weighted = w[:, None] * self.phi
            for i, polynomials in self._polynomials():
                blocks[:, i] = np.einsum("kjn,jn->kn", polynomials, weighted)
            return result
        for k in range(1, self.order + 1):
            weights = w[:, None] * self.coefficients[k - 1, : k + 1]  # (k + 1, c, d)
            # The highest power has the same coefficient along every axis.
            block = np.multiply(self.x, weights[k, :, 0] @ self.phi, out=blocks[k - 1])
            for q in range(k - 1, -1, -1):  # Horner's rule
                block += weights[q].T @ self.phi
                if q:
                    block *= self.x
        return result

    def adjoint(self, r: Array) -> Array:
        """Return correlations with a residual, shape (c, terms)."""
        first = int(self.order_zero)
        weighted = np.multiply(self.phi, r, out=self.scratch)
        result = np.empty((self.phi.shape[0], self.n_terms))
        total = weighted.sum(axis=1)
        if first:
            result[:, 0] = total
        blocks = result[:, first:].reshape(self.phi.shape[0], self.order, len(self.x))
        if self.powers is None:
            for i, polynomials in self._polynomials():
                blocks[:, :, i] = np.einsum("kjn,jn->jk", polynomials, weighted)
            return result
        moments = (weighted @ self.powers.T).reshape(blocks.shape)
        blocks[...] = np.einsum("kji->jki", self.coefficients[:, 0]) * total[:, None, None]
        blocks += np.einsum("kqji,jqi->jki", self.coefficients[:, 1:], moments)
        return result

    def input_gradient(self, a: Array, w: Array) -> Array:
        r"""Return derivatives of the network by its inputs, shape (d, n).

        .. math::

            \frac{\partial}{\partial x_i} \sum_p a_p \theta_{pj} = -2 \beta_j \Big[
            (x_i - \mu_{ji}) \sum_p a_p \theta_{pj}
            + \sum_k k\, a_{ki}\, \partial_i^{k-1} \varphi_j \Big]

        because :math:`H_k' = 2 k H_{k-1}`.
        """
        _, rest = self._split(a)
        features, weights = self.contract(a), w * self.beta
        if self.powers is None:
            result = np.stack(
                [
                    np.einsum("j,jn,jn->n", weights, np.subtract.outer(-m, -x), features)
                    for x, m in zip(self.x, self.mu.T, strict=True)
                ]
            )
        else:
            result = self.x * (weights @ features) - (weights[:, None] * self.mu).T @ features
        lower = self.jacobian(weights)[int(self.order_zero) :]
        lower = lower.reshape(self.order, *self.x.shape)
        for k in range(1, self.order + 1):
            below = weights @ self.phi if k == 1 else lower[k - 2]
            result += k * self.unit * rest[k - 1][:, None] * below
        return np.asarray(-2.0 * result)

    def without_derivatives(self) -> GaussianBasis:
        """Return the basis functions themselves, without derivatives."""
        nothing = np.zeros((0, 1, *self.mu.shape))
        return replace(self, order=0, order_zero=True, powers=self.x[:0], coefficients=nothing)

    def normalize(self) -> GaussianBasis:
        """Return basis functions that add up to 1."""
        exponent = self.beta[:, None] * squared_distances(self.mu, self.x.T, expand=False)
        phi = np.exp(exponent.min(axis=0) - exponent)  # paper, eq. (n-rbfn)
        return replace(self, phi=phi / phi.sum(axis=0))

    def _polynomials(self) -> Iterator[tuple[int, Array]]:
        r"""Yield each axis i with :math:`\partial_i^k \varphi_j / \varphi_j`, shape (k, c, n)."""
        slope = -2.0 * self.beta[:, None]
        for i in range(self.x.shape[0]):
            u = slope * (self.x[i] - self.mu[:, i : i + 1])
            polynomials = [np.ones_like(u), u]
            for k in range(2, self.order + 1):  # paper, eq. (deriv)
                polynomials.append(u * polynomials[-1] + slope * (k - 1) * polynomials[-2])
            scale = self.unit ** np.arange(1, self.order + 1)
            yield i, np.stack(polynomials[1:]) * scale[:, None, None]


def _can_expand(x: Array, mu: Array, beta: Array, *, power: int) -> bool:
    """Tell whether powers of x can be expanded without losing digits to cancellation."""
    reach = max(float(np.abs(x).max(initial=0.0)), float(np.abs(mu).max(initial=0.0)))
    in_widths = max(1.0, reach * float(np.sqrt(2.0 * beta.max(initial=0.0))))
    return bool(in_widths**power * len(x) * np.finfo(float).eps < _CANCELLATION_LIMIT)


def _power_coefficients(mu: Array, beta: Array, order: int, unit: float) -> Array:
    r"""Return :math:`C_{kqji}`: of :math:`x_i^q` in :math:`\partial_i^k \varphi_j/\varphi_j`.

    The recurrence gives the coefficients for powers of :math:`t = x_i - \mu_{ji}`, the
    binomial theorem for powers of x. Shape (order, order + 1, c, d), times ``unit ** k``.
    """
    in_t = np.zeros((order + 1, order + 1, len(beta)))  # [k, power of t, j]
    in_t[0, 0] = 1.0
    for k in range(1, order + 1):
        in_t[k, 1:] = -2.0 * beta * in_t[k - 1, :-1]
        if k > 1:
            in_t[k] -= 2.0 * beta * (k - 1) * in_t[k - 2]
    result = np.zeros((order, order + 1, *mu.shape))
    for k in range(1, order + 1):
        for q in range(k + 1):
            for m in range(q, k + 1):
                result[k - 1, q] += comb(m, q) * in_t[k, m][:, None] * (-mu) ** (m - q)
        result[k - 1] *= unit**k
    return result
