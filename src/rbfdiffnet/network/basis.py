r"""Radial basis functions, their axis derivatives, and an operator applied to them.

.. math::

    \varphi_j(x) = g(s), \qquad s = \beta_j \lVert x - \mu_j \rVert^2, \qquad
    \beta_j = \frac{1}{2 \sigma_j^2}

where :math:`\mu_j` are the ``centers`` (c of them, in d dimensions) and :math:`\sigma_j` the
widths. `BASES` has the functions g by name:

=====================  ============================================================================
``gaussian``           :math:`e^{-s}`, the paper's
``inverse_quadratic``  :math:`1 / (1 + s)`, with tails that reach far
=====================  ============================================================================

Along an axis, with :math:`t = x_i - \mu_{ji}`,

.. math::

    \partial_i^k \varphi_j = \sum_{m=0}^{\lfloor k/2 \rfloor} \frac{k!}{m!\, (k - 2m)!}\,
    (2t)^{k-2m}\, \beta_j^{k-m}\, g^{(k-m)}(s)

so a new function has to supply nothing but the derivatives of g. For the Gaussian this is the
paper's recurrence, :math:`\partial_i^k \varphi_j = u\, \partial_i^{k-1} \varphi_j
- 2 \beta_j (k - 1)\, \partial_i^{k-2} \varphi_j` with :math:`u = -2 \beta_j t`.

Training needs products with the derivatives, not the derivatives themselves. `evaluate` returns an
object that computes these products: a `GaussianBasis` or, for any other function, a `RadialBasis`.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np

from rbfdiffnet.network.differential import (
    DifferentialBasis,
    Profile,
    RadialBasis,
    axis_derivatives,
    mean_width,
    squared_distances,
)
from rbfdiffnet.network.gaussians import GaussianBasis
from rbfdiffnet.support.arrays import Array

__all__ = ["BASES", "Array", "DifferentialBasis", "GaussianBasis", "Profile", "RadialBasis"]
__all__ += ["contract", "derivatives", "evaluate", "gaussian", "mean_width", "profile"]
__all__ += ["squared_distances"]


def _gaussian(s: Array, order: int) -> Array:
    return np.stack([(-1.0) ** m * np.exp(-s) for m in range(order + 1)])


def _inverse_quadratic(s: Array, order: int) -> Array:
    return np.stack([(-1.0) ** m * factorial(m) / (1.0 + s) ** (m + 1) for m in range(order + 1)])


#: The functions g by name. Each takes s and an order, and returns g and its derivatives by s up to
#: that order, stacked along a new first axis.
BASES: dict[str, Profile] = {
    "gaussian": _gaussian,
    "inverse_quadratic": _inverse_quadratic,
}


def profile(name: str) -> Profile:
    """Return the function g of a name.

    Raises
    ------
    ValueError
        If there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.network.basis import profile
    >>> profile("inverse_quadratic")(np.array([0.0, 1.0]), 1)
    array([[ 1.  ,  0.5 ],
           [-1.  , -0.25]])
    """
    if not isinstance(name, str) or name not in BASES:
        raise ValueError(
            f"basis must be one of {', '.join(BASES)}; got {name!r}. A function of your own is "
            "added by rbfdiffnet.network.basis.BASES[name] = function, before it is used or loaded"
        )
    return BASES[name]


def evaluate(
    name: str,
    X: Array,
    centers: Array,
    beta: Array,
    *,
    order: int,
    order_zero: bool,
    unit: float | None = None,
) -> DifferentialBasis:
    """Evaluate basis functions on the rows of X, ready for products with their derivatives.

    Parameters
    ----------
    name : str
        One of `BASES`.
    X : ndarray of shape (n, d)
    centers : ndarray of shape (c, d)
    beta : ndarray of shape (c,)
    order : int
        Highest derivative; with 0 (and ``order_zero``) there are only the functions themselves.
    order_zero : bool
        Whether the basis functions themselves are the first term.
    unit : float, optional
        Length that makes derivatives of all orders comparable; the mean width by default.

    Returns
    -------
    DifferentialBasis

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.network.basis import evaluate
    >>> X, centers, beta = np.ones((1, 1)), np.zeros((1, 1)), np.ones(1)
    >>> basis = evaluate("inverse_quadratic", X, centers, beta, order=1, order_zero=True, unit=1.0)
    >>> basis.phi, basis.contract(np.array([0.0, 1.0]))
    (array([[0.5]]), array([[-0.5]]))
    """
    terms: Any = {"order": order, "order_zero": order_zero, "unit": unit}
    if name == "gaussian":
        return GaussianBasis.evaluate(X, centers, beta, **terms)
    return RadialBasis.evaluate(profile(name), X, centers, beta, **terms)


def gaussian(X: Array, centers: Array, beta: Array) -> Array:
    r"""Gaussian basis functions, :math:`\varphi_j(x) = \exp(-\beta_j \lVert x - \mu_j \rVert^2)`.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Points.
    centers : ndarray of shape (c, d)
        Centers :math:`\mu_j`.
    beta : ndarray of shape (c,)
        Inverse widths, :math:`\beta_j = 1 / (2 \sigma_j^2)`.

    Returns
    -------
    ndarray of shape (n, c)

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.network.basis import gaussian
    >>> gaussian(np.array([[0.0], [1.0]]), np.array([[0.0]]), np.array([0.5])).round(4)
    array([[1.    ],
           [0.6065]])
    """
    # paper, eq. (phi)
    return GaussianBasis.evaluate(X, centers, beta, order=0, order_zero=True).phi.T


def derivatives(
    X: Array, centers: Array, beta: Array, order: int, *, basis: str = "gaussian"
) -> Array:
    r"""All axis derivatives of all basis functions: the dense tensor.

    .. math::

        \partial_i^k \varphi_j = u\, \partial_i^{k-1} \varphi_j
        - 2 \beta_j (k - 1)\, \partial_i^{k-2} \varphi_j

    for Gaussians, and for others the sum at the top of this module. This is the definition,
    for inspection and tests; training uses `evaluate`.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    centers : ndarray of shape (c, d)
    beta : ndarray of shape (c,)
    order : int
        Highest order, at least 0.
    basis : str, default="gaussian"
        One of `BASES`.

    Returns
    -------
    ndarray of shape (order + 1, n, c, d)
        Entry ``[k, n, j, i]`` is :math:`\partial^k \varphi_j(x_n) / \partial x_i^k`.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.network.basis import derivatives
    >>> derivatives(np.array([[1.0]]), np.array([[0.0]]), np.array([0.5]), order=2).ravel().round(4)
    array([ 0.6065, -0.6065,  0.    ])
    """
    if order < 0:
        raise ValueError(f"order must be at least 0, got {order}")
    s = beta * squared_distances(X, centers, expand=False)
    if basis != "gaussian":
        slopes = profile(basis)(s, order) * beta ** np.arange(order + 1)[:, None, None]
        t = X[:, None, :] - centers
        first = slopes[:1, :, :, None] * np.ones_like(t)
        return np.concatenate([first, axis_derivatives(t, slopes[..., None], order)])
    phi = np.exp(-s)
    u = -2.0 * beta[:, None] * (X[:, None, :] - centers)
    result = np.empty((order + 1, *u.shape))
    result[0] = phi[:, :, None]
    for k in range(1, order + 1):  # paper, eq. (deriv)
        result[k] = u * result[k - 1]
        if k > 1:
            result[k] -= 2.0 * beta[:, None] * (k - 1) * result[k - 2]
    return result


def contract(X: Array, centers: Array, beta: Array, a: Array, *, order_zero: float = 0.0) -> Array:
    r"""Apply a differential operator to every basis function: the sum in paper, eq. (diff).

    .. math::

        G_{nj} = a_0 \varphi_j(x_n)
        + \sum_{k=1}^{\nu} \sum_{i=1}^{d} a_{ki}\, \frac{\partial^k \varphi_j(x_n)}{\partial x_i^k}

    Parameters
    ----------
    X : ndarray of shape (n, d)
    centers : ndarray of shape (c, d)
    beta : ndarray of shape (c,)
    a : ndarray of shape (nu, d)
        Weights of the derivatives of order 1 to nu along each axis.
    order_zero : float, default=0.0
        Weight :math:`a_0` of the basis function itself.

    Returns
    -------
    ndarray of shape (n, c)

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.network.basis import contract, derivatives
    >>> rng = np.random.default_rng(0)
    >>> X, centers, beta = rng.normal(size=(6, 3)), rng.normal(size=(4, 3)), np.full(4, 0.7)
    >>> a = rng.normal(size=(2, 3))
    >>> dense = np.einsum("ki,knji->nj", a, derivatives(X, centers, beta, order=2)[1:])
    >>> np.allclose(contract(X, centers, beta, a), dense)
    True
    """
    basis = GaussianBasis.evaluate(X, centers, beta, order=a.shape[0], order_zero=True, unit=1.0)
    return basis.contract(np.concatenate([[order_zero], a.ravel()])).T
