r"""Sums over the rows of a training problem: all that training does with long arrays.

.. math::

    G_j = \varphi_j\,\big(a_0 - 2 \beta_j u\, a \cdot (x - \mu_j)\big), \qquad
    J_i = \sum_j w_j\, \partial G_j / \partial a_i

Everything else in `batch.train` works on small arrays. Series are the first axis and rows
the last, contiguous one.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Products"]


class Products:
    """Products of G(a), the inputs x with the rows' weight, the target and the slopes J.

    One array holds all these columns.

    Parameters
    ----------
    backend : Backend
    rows : array of shape (B, d + 1, N)
        Inputs, and the rows' weight (1, or 0 for padding, where the inputs are 0 too).
    y : array of shape (B, N)
    centers : array of shape (B, c, d)
    beta, slope : arrays of shape (B, c)
        The exponents' factor, and -2 beta times the unit of the first derivatives.
    """

    def __init__(
        self, backend: Any, rows: Any, y: Any, centers: Any, beta: Any, slope: Any
    ) -> None:
        self.backend, self.centers, self.slope = backend, centers, slope
        self.phi = _gaussians(rows, centers, beta, backend.xp)
        c, d = centers.shape[1], centers.shape[2]
        self.columns = backend.empty_like(rows, c + 2 * d + 3)
        self.columns[:, c : c + d + 1] = rows
        self.columns[:, c + d + 1] = y

    def fixed(self) -> Any:
        """Products of the rows with themselves and the target: (B, d + 1, d + 2)."""
        c, d = self.centers.shape[1:]
        rows = self.columns[:, c : c + d + 1]
        return self.backend.contract(rows, self.columns[:, c : c + d + 2])

    def gram(self, a: Any) -> Any:
        """Products of G(a) with itself, the rows and the target: (B, c, c + d + 2)."""
        xp, phi, (c, d) = self.backend.xp, self.phi, self.centers.shape[1:]
        G, rows = self.columns[:, :c], self.columns[:, c : c + d + 1]
        along = xp.concatenate([a[:, None, 1:] @ rows[:, :-1], rows[:, -1:]], axis=1)
        xp.matmul(xp.stack([self.slope, self.constant(a)], axis=2), along, out=G)
        G *= phi
        return self.backend.contract(G, self.columns[:, : c + d + 2])

    def constant(self, a: Any) -> Any:
        """What G(a) / phi is at x = 0, (B, c)."""
        return a[:, :1] - self.slope * (self.centers @ a[:, 1:, None])[..., 0]

    def curvature(self, a: Any, b: Any) -> tuple[Any, Any, Any]:  # noqa: ARG002
        r"""What the Hessian of the objective is made of, after `gram` of the same a.

        .. math:: K_{ji} = \sum_n A_{jn} J_{in} - r_n\, \partial A_{jn} / \partial a_i, \qquad
            \sum_n r_n J_{in}, \qquad \sum_n J_{in} J_{kn}

        where A is G(a) and the rows, and r what b leaves of the target.

        Parameters
        ----------
        a : array of shape (B, 1 + d)
        b : array of shape (B, c + d + 1)
            The linear coefficients, w first.

        Returns
        -------
        K : array of shape (B, c + d + 1, 1 + d)
        along : array of shape (B, 1 + d)
        JJ : array of shape (B, 1 + d, 1 + d)
        """
        backend, phi, (c, d) = self.backend, self.phi, self.centers.shape[1:]
        xp, w, columns = backend.xp, b[:, :c], self.columns
        x, weight, y = columns[:, c : c + d], columns[:, c + d], columns[:, c + d + 1]
        weighted = -(w * self.slope)[:, :, None]
        left = xp.concatenate([w[:, :, None], weighted * self.centers, weighted], axis=2)
        products = left.swapaxes(1, 2) @ phi
        J = columns[:, c + d + 2 :]
        J[:, 0] = products[:, 0]
        xp.multiply(x, products[:, -1:], out=J[:, 1:])
        xp.subtract(products[:, 1:-1], J[:, 1:], out=J[:, 1:])
        r = (y - (b[:, None] @ columns[:, : c + d + 1])[:, 0]) * weight
        moments = backend.contract(phi, xp.concatenate([r[:, None], x * r[:, None]], axis=1))
        R = -self.slope[:, :, None] * (self.centers * moments[:, :, :1] - moments[:, :, 1:])
        R = xp.concatenate([moments[:, :, :1], R], axis=2)
        products = backend.contract(columns, J)
        K = xp.concatenate([products[:, :c] - R, products[:, c : c + d + 1]], axis=1)
        # J'r, as r = y - A b.
        along = products[:, c + d + 1] - (b[:, None] @ products[:, : c + d + 1])[:, 0]
        return K, along, products[:, c + d + 2 :]

    def part(self, which: Any) -> Products:
        """Products of some of the series."""
        part = object.__new__(type(self))
        for name, value in vars(self).items():
            setattr(part, name, value if name == "backend" else value[which])
        return part


def _gaussians(rows: Any, centers: Any, beta: Any, xp: Any) -> Any:
    """exp(-beta |x - center|^2), 0 in padding: (B, c, N)."""
    square = (rows[:, :-1] ** 2).sum(axis=1)[:, None]
    own = (centers**2).sum(axis=2)[:, :, None]
    left = beta[:, :, None] * xp.concatenate([2.0 * centers, -own, xp.ones_like(own)], axis=2)
    phi = left @ xp.concatenate([rows, -square], axis=1)
    phi = xp.exp(phi, out=phi)
    phi *= rows[:, -1:]
    return phi
