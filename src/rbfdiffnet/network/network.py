r"""A trained network: a small frozen bundle of arrays that can predict.

.. math::

    f(x) = w_0 + \lambda \cdot s + \sum_{j=1}^{c} w_j \Big( a_0 \varphi_j(x)
    + \sum_{k=1}^{\nu} \sum_{i=1}^{d} a_{ki}\, \frac{\partial^k \varphi_j(x)}{\partial x_i^k} \Big)

where s are the lags among the inputs x. With ``order`` 0 and no lags it is the plain RBF network,
with ``normalize`` the normalized one, whose basis functions add up to 1 everywhere.

Inside, inputs and outputs are standardized; the attributes say how. In the basis functions, input
i is also multiplied by ``metric[i]``, and left out where the metric is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rbfdiffnet.network.basis import DifferentialBasis, evaluate, squared_distances
from rbfdiffnet.support.arrays import Array

# Standardized inputs are cut off here inside the basis functions: Gaussians are zero long before.
_FARTHEST = 1e6


@dataclass(frozen=True)
class Network:
    r"""A trained network.

    Attributes
    ----------
    centers : ndarray of shape (c, d_active)
        :math:`\mu_j`, in standardized units times the metric, for the inputs whose metric is not 0.
    beta : ndarray of shape (c,)
        :math:`1 / (2 \sigma_j^2)`, in the same units.
    a : ndarray of shape (terms,)
        The differential operator: order zero if included, then order 1 for every active input,
        then order 2, ...; order k in units of ``unit ** k``.
    w : ndarray of shape (c, m)
        Weights of the basis functions, a column for each output.
    linear : ndarray of shape (q, m)
        :math:`\lambda`, then :math:`w_0` if there is an intercept.
    x_shift, x_scale, metric : ndarray of shape (d,)
        Inputs enter as ``(x - x_shift) / x_scale``, in the basis functions times ``metric``, in the
        linear part without the shift if there is no intercept.
    y_shift, y_scale : ndarray of shape (m,)
        The shift is 0 without an intercept.
    n_lags : int
        The last ``n_lags`` inputs are the lags.
    order : int
    order_zero, intercept, normalize : bool
    unit : float
    basis : str
        Name of the basis functions, one of `rbfdiffnet.network.basis.BASES`.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet import RBFDiffNetRegressor
    >>> X = np.linspace(-1.0, 1.0, 50)[:, None]
    >>> network = RBFDiffNetRegressor(n_centers=5).fit(X, np.sin(3.0 * X.ravel())).network_
    >>> network.predict(X).shape, network.n_parameters, network.n_effective
    ((50, 1), 9, 5)
    """

    centers: Array
    beta: Array
    a: Array
    w: Array
    linear: Array
    x_shift: Array
    x_scale: Array
    metric: Array
    y_shift: Array
    y_scale: Array
    n_lags: int
    order: int
    order_zero: bool = True
    intercept: bool = True
    normalize: bool = False
    unit: float = 1.0
    basis: str = "gaussian"

    @property
    def n_parameters(self) -> int:
        r"""Number of trained weights, w, a, :math:`\lambda` and the bias: paper, eq. (count)."""
        trained_a = self.a.size if self.order else 0
        return int(self.w.size + trained_a + self.linear.size)

    @property
    def n_effective(self) -> int:
        """Number of basis functions with a weight that matters (over 1e-6 of the largest, or 1)."""
        size = np.abs(self.w).max(axis=1)
        return int(np.sum(size > 1e-6 * max(size.max(initial=0.0), 1.0)))

    def predict(self, X: Array) -> Array:
        """Outputs for the rows of X, shape (n, m).

        Examples
        --------
        >>> import numpy as np
        >>> from rbfdiffnet import RBFDiffNetRegressor
        >>> X = np.linspace(-1.0, 1.0, 50)[:, None]
        >>> network = RBFDiffNetRegressor(n_centers=5).fit(X, np.sin(3.0 * X.ravel())).network_
        >>> network.predict(np.array([[-0.5], [0.5]])).round(2).tolist()
        [[-1.0], [1.0]]
        """
        basis, linear = self._features(X)
        # paper, eq. (diff); with order 0 eq. (u-rbfn) or, normalized, eq. (n-rbfn)
        outputs = self.w.T @ basis.contract(self.a) + self.linear.T @ linear
        return outputs.T * self.y_scale + self.y_shift

    def contributions(self, X: Array) -> tuple[Array, Array, Array]:
        r"""Split the outputs into what each input and each basis function adds.

        .. math:: f_o(x) = b_o + \sum_i \lambda_{io} z_i + \sum_j w_{jo} g_j(x), \qquad
            g_j = a_0 \varphi_j + \sum_{k, i} a_{ki}\, \partial_i^k \varphi_j

        in units of the output, where z are the standardized lags and b the bias.

        Parameters
        ----------
        X : ndarray of shape (n, d)

        Returns
        -------
        bias : ndarray of shape (m,)
        linear : ndarray of shape (n, n_lags, m)
            :math:`\lambda_{io} z_i`
        exemplars : ndarray of shape (n, c, m)
            :math:`w_{jo} g_j(x)`; together with the others they add up to ``predict(X)``.

        Examples
        --------
        >>> import numpy as np
        >>> from rbfdiffnet import RBFDiffNetRegressor
        >>> X = np.linspace(-1.0, 1.0, 50)[:, None]
        >>> network = RBFDiffNetRegressor(n_centers=5).fit(X, np.sin(3.0 * X.ravel())).network_
        >>> bias, linear, exemplars = network.contributions(X)
        >>> total = bias + linear.sum(axis=1) + exemplars.sum(axis=1)
        >>> np.allclose(total, network.predict(X))
        True
        """
        basis, inputs = self._features(X)
        lags = inputs[: self.n_lags]
        bias = self.linear[self.n_lags] if self.intercept else np.zeros(self.y_shift.size)
        linear = lags.T[:, :, None] * self.linear[: self.n_lags]
        exemplars = basis.contract(self.a).T[:, :, None] * self.w
        return bias * self.y_scale + self.y_shift, linear * self.y_scale, exemplars * self.y_scale

    def activations(self, X: Array) -> Array:
        r"""Values of the basis functions :math:`\varphi_j(x)`, shape (n, c).

        Examples
        --------
        >>> import numpy as np
        >>> from rbfdiffnet import RBFDiffNetRegressor
        >>> X = np.linspace(-1.0, 1.0, 50)[:, None]
        >>> network = RBFDiffNetRegressor(n_centers=5).fit(X, np.sin(3.0 * X.ravel())).network_
        >>> phi = network.activations(X)
        >>> phi.shape, bool(phi.max() <= 1.0)
        ((50, 5), True)
        """
        return np.asarray(self._features(X)[0].phi.T)

    def distances(self, X: Array) -> Array:
        """Squared distances to the centers in the metric of the basis functions, shape (n, c).

        Examples
        --------
        >>> import numpy as np
        >>> from rbfdiffnet import RBFDiffNetRegressor
        >>> X = np.linspace(-1.0, 1.0, 50)[:, None]
        >>> network = RBFDiffNetRegressor(n_centers=5).fit(X, np.sin(3.0 * X.ravel())).network_
        >>> phi = np.exp(-network.beta * network.distances(X))
        >>> np.allclose(phi, network.activations(X))
        True
        """
        return squared_distances(
            self._basis_inputs((X - self.x_shift) / self.x_scale), self.centers
        )

    def gradient(self, X: Array) -> Array:
        r"""Derivatives of the outputs by the inputs, :math:`\partial f_o / \partial x_i`.

        Parameters
        ----------
        X : ndarray of shape (n, d)

        Returns
        -------
        ndarray of shape (n, d, m)

        Examples
        --------
        >>> import numpy as np
        >>> from rbfdiffnet import RBFDiffNetRegressor
        >>> X = np.linspace(-1.0, 1.0, 50)[:, None]
        >>> network = RBFDiffNetRegressor(n_centers=5).fit(X, np.sin(3.0 * X.ravel())).network_
        >>> slope = network.gradient(np.zeros((1, 1)))
        >>> slope.shape, bool(abs(slope.item() - 3.0) < 0.1)
        ((1, 1, 1), True)
        """
        if self.normalize:
            raise ValueError("the gradient is available for networks that are not normalized")
        basis, _ = self._features(X)
        result = np.zeros((len(X), self.x_shift.size, self.y_shift.size))
        active = self.metric > 0
        for o, w in enumerate(self.w.T):
            result[:, active, o] = basis.input_gradient(self.a, w).T * self.metric[active]
        if self.n_lags:
            result[:, -self.n_lags :] += self.linear[: self.n_lags]
        return result / self.x_scale[:, None] * self.y_scale

    def _basis_inputs(self, Z: Array) -> Array:
        """Return standardized inputs as the basis functions see them, shape (n, d_active)."""
        return apply_metric(np.clip(Z, -_FARTHEST, _FARTHEST), self.metric)

    def _features(self, X: Array) -> tuple[DifferentialBasis, Array]:
        """Return basis functions and linear inputs at the rows of X."""
        Z = (X - self.x_shift) / self.x_scale
        basis = evaluate(
            self.basis,
            self._basis_inputs(Z),
            self.centers,
            self.beta,
            order=self.order,
            order_zero=self.order_zero,
            unit=self.unit,
        )
        if self.normalize:
            basis = basis.normalize()
        offset = self.x_shift / self.x_scale
        return basis, linear_inputs(Z, self.n_lags, self.intercept, offset)


def apply_metric(Z: Array, metric: Array) -> Array:
    """Multiply inputs (n, d) by the metric, and leave out those whose metric is 0."""
    active = metric > 0
    return np.asarray(Z[:, active] * metric[active])


def linear_inputs(Z: Array, n_lags: int, intercept: bool, offset: Array) -> Array:
    """Return the lags and, with an intercept, a row of ones: shape (q, n).

    Without an intercept the lags are not centered: the offset taken out of Z is put back.
    """
    lags = Z[:, Z.shape[1] - n_lags :].T
    if intercept:
        return np.concatenate([lags, np.ones((1, len(Z)))])
    return np.asarray(lags + offset[Z.shape[1] - n_lags :, None])
