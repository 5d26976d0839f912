"""Products with the derivatives of Gaussians, as matrix products over whole batches of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb

import numpy as np

from rbfdiffnet.network.differential import DifferentialBasis, mean_width, squared_distances
from rbfdiffnet.support.arrays import Array

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

    @cached_property
    def scratch(self) -> Array:
        """Room for one array like phi: fresh pages would cost more than the arithmetic."""
        return np.empty_like(self.phi)

    def contract(self, a: Array, out: Array | None = None) -> Array:
        """Return features, shape (c, n), written to ``out``."""
        if self.powers is None:
            return super().contract(a, out)
        zero, rest = self._split(a)
        if self.order == 0:
            return np.asarray(np.multiply(self.phi, zero, out=out))
        # (order + 1, c, d): weight of x_i^q in the polynomial of basis function j
        by_power = np.einsum("ki,kqji->qji", rest, self.coefficients)
        weights = by_power[1:].transpose(1, 0, 2).reshape(self.phi.shape[0], -1)
        result: Array = np.matmul(weights, self.powers, out=out)
        result += (zero + by_power[0].sum(axis=1))[:, None]
        result *= self.phi
        return result

    def adjoint(self, r: Array) -> Array:
        """Return correlations with a residual, shape (c, terms)."""
        if self.powers is None:
            return super().adjoint(r)
        weighted = np.multiply(self.phi, r, out=self.scratch)
        total = weighted.sum(axis=1)
        moments = (weighted @ self.powers.T).reshape(len(self.phi), self.order, len(self.x))
        blocks = self.coefficients[:, 0].swapaxes(0, 1) * total[:, None, None]
        blocks += np.einsum("kqji,jqi->jki", self.coefficients[:, 1:], moments)
        flat: Array = blocks.reshape(len(self.phi), -1)
        return np.column_stack([total, flat]) if self.order_zero else flat

    def without_derivatives(self) -> GaussianBasis:
        """Return the basis functions themselves, without derivatives."""
        nothing = np.zeros((0, 1, *self.mu.shape))
        return replace(self, order=0, order_zero=True, powers=self.x[:0], coefficients=nothing)

    def normalize(self) -> GaussianBasis:
        """Return basis functions that add up to 1."""
        exponent = self._exponents()
        phi = np.exp(exponent.min(axis=0) - exponent)  # paper, eq. (n-rbfn)
        return replace(self, phi=phi / phi.sum(axis=0))

    def _terms(self) -> Iterator[tuple[int, Array]]:
        slope = -2.0 * self.beta[:, None]
        scale = self.unit ** np.arange(1, self.order + 1)[:, None, None]
        terms = np.empty((self.order + 1, *self.phi.shape))
        terms[0] = self.phi
        for i, t in enumerate(self._differences()):
            u = slope * t
            for k in range(1, self.order + 1):  # paper, eq. (deriv)
                terms[k] = u * terms[k - 1]
                if k > 1:
                    terms[k] += slope * (k - 1) * terms[k - 2]
            yield i, np.asarray(scale * terms[1:])

    def _primed(self, w: Array) -> tuple[GaussianBasis, Array]:
        return self, -w * self.beta

    def _fill_slopes(self, w: Array, blocks: Array) -> None:
        if self.powers is None:
            super()._fill_slopes(w, blocks)
            return
        for k in range(1, self.order + 1):
            weights = w[:, None] * self.coefficients[k - 1, : k + 1]  # (k + 1, c, d)
            # The highest power has the same coefficient along every axis.
            block = np.multiply(self.x, weights[k, :, 0] @ self.phi, out=blocks[k - 1])
            for q in range(k - 1, -1, -1):  # Horner's rule
                block += weights[q].T @ self.phi
                if q:
                    block *= self.x

    def _moments(self, w: Array, features: Array) -> Array:
        if self.powers is None:
            return super()._moments(w, features)
        return np.asarray(self.x * (w @ features) - (w[:, None] * self.mu).T @ features)


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
