r"""Smooth maps from windows to the next value: the network inside trajectory learning.

.. math:: f(x) = b + \lambda \cdot x + \sum_{j=1}^{c} w_j\, e^{-\beta \lVert \delta \circ x - \mu_j
    \rVert^2}, \qquad \delta_i = \rho^{\text{age}_i}

One width for all basis functions, older lags counting less in distances by a factor :math:`\rho` a
step, and weights :math:`w = K^{-1/2} u` with :math:`u \sim N(0, \tau^2)`, where K holds the basis
functions at the centers: the prior of a Gaussian process, on a basis of c functions. Directions in
which K has next to nothing are left out, so a wide basis has few weights and costs little.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rbfdiffnet.network.basis import squared_distances
from rbfdiffnet.network.centers import kmeans
from rbfdiffnet.network.network import Network

__all__ = [
    "CENTERS",
    "Basis",
    "Fit",
    "Regression",
    "Shape",
    "affordable",
    "best_fit",
    "fit_map",
    "fit_maps",
    "make_basis",
    "place_centers",
    "regress",
    "shape_of",
]

Array = npt.NDArray[np.float64]

#: Decay and width of a map.
Shape = tuple[float, float]

#: Usual number of basis functions.
CENTERS = 80

_ROWS_PER_CENTER = 4
_NEGLIGIBLE = 1e-8  # eigenvalues of K, relative to the largest
_LEAST = 1e-14  # variance of residuals, relative to that of the targets
_PENALTIES = 10.0 ** np.arange(-10.0, 5.0, 0.5)
_ROWS_AT_ONCE = 2_048
_LAGS_APART = 4  # windows of twice as many lags are taken every second, and so on


@dataclass(frozen=True)
class Basis:
    """Basis functions over windows of standardized values.

    Attributes
    ----------
    centers : ndarray of shape (c, l)
        In the metric: multiplied by ``metric``.
    beta : float
    metric : ndarray of shape (l,)
        How much each lag counts in distances, oldest first.
    roots : ndarray of shape (c, r)
        Columns of :math:`K^{-1/2}`, those of negligible eigenvalues left out.
    decay, width : float
        What the metric and beta were made from.
    """

    centers: Array
    beta: float
    metric: Array
    roots: Array
    decay: float
    width: float

    @property
    def n_smooth(self) -> int:
        """Number r of weights with a prior; l + 1 without one follow them."""
        return int(self.roots.shape[1])

    def activations(self, X: Array) -> Array:
        """Basis functions at windows, shape (n, c)."""
        return np.exp(-self.beta * squared_distances(X * self.metric, self.centers))

    def features(self, X: Array, phi: Array) -> Array:
        """Inputs of the linear model, shape (n, r + l + 1): smooth ones, lags, a one."""
        return np.concatenate([phi @ self.roots, X, np.ones((len(X), 1))], axis=1)

    def slopes(self, X: Array, phi: Array, w: Array) -> Array:
        """Derivatives of f by the lags, shape (n, l)."""
        r, n_lags = self.n_smooth, X.shape[1]
        part = phi * (self.roots @ w[:r])
        rise = part @ self.centers - X * self.metric * part.sum(axis=1, keepdims=True)
        return np.asarray(2.0 * self.beta * rise * self.metric + w[r : r + n_lags])

    def spread(self, X: Array, phi: Array, covariance: Array) -> tuple[Array, Array]:
        r"""How much features vary where windows are uncertain, to first order.

        Of long windows, which overlap by all but a value, only every so many are taken.

        .. math:: M = \sum_n \nabla \phi(x_n)' P_n \nabla \phi(x_n), \qquad
            v = \sum_n \nabla \phi(x_n)' p_n

        Parameters
        ----------
        X : ndarray of shape (n, l)
        phi : ndarray of shape (n, c)
            By `activations`.
        covariance : ndarray of shape (n, l + 1, l + 1)
            Of each window and the value after it: P within the window, p between the two.

        Returns
        -------
        M : ndarray of shape (r + l + 1, r + l + 1)
        v : ndarray of shape (r + l + 1,)
        """
        n_lags = X.shape[1]
        size = self.n_smooth + n_lags + 1
        M, v = np.zeros((size, size)), np.zeros(size)
        every = max(1, n_lags // _LAGS_APART)  # windows that overlap this much say the same
        X, phi, covariance = X[::every], phi[::every], covariance[::every]
        for start in range(0, len(X), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            within = covariance[rows, :n_lags, :n_lags]
            scale = np.sqrt(np.einsum("nii->ni", within))
            correlation = within / (scale[:, :, None] * scale[:, None, :])
            root = np.linalg.cholesky(correlation + 1e-9 * np.eye(n_lags)) * scale[:, :, None]
            n = len(root)
            # Derivatives of every basis function along every column of the roots.
            along = (root * self.metric[:, None]).swapaxes(1, 2)
            here = np.einsum("nqi,ni->nq", along, X[rows] * self.metric)
            there = (along.reshape(n * n_lags, n_lags) @ self.centers.T).reshape(n, n_lags, -1)
            change = (there - here[:, :, None]) * (2.0 * self.beta * phi[rows, None, :])
            features = np.concatenate(
                [
                    change.reshape(n * n_lags, -1) @ self.roots,
                    root.swapaxes(1, 2).reshape(n * n_lags, n_lags),
                    np.zeros((n * n_lags, 1)),
                ],
                axis=1,
            )
            M += features.T @ features
            next_value = np.linalg.solve(root, covariance[rows, :n_lags, n_lags:])
            v += features.T @ next_value.ravel()
        return every * M, every * v

    def network(self, w: Array, shift: float, scale: float) -> Network:
        """Return the map as a network over values that are not standardized."""
        r, n_lags = self.n_smooth, self.metric.size
        return Network(
            centers=self.centers,
            beta=np.full(len(self.centers), self.beta),
            a=np.ones(1),
            w=(self.roots @ w[:r])[:, None],
            linear=w[r:, None],
            x_shift=np.full(n_lags, shift),
            x_scale=np.full(n_lags, scale),
            metric=self.metric,
            y_shift=np.full(1, shift),
            y_scale=np.full(1, scale),
            n_lags=n_lags,
            order=0,
            order_zero=True,
            intercept=True,
            normalize=False,
            unit=1.0,
        )


def lag_metric(n_lags: int, decay: float) -> Array:
    """Weights of the lags in distances, oldest first: the decay to the power of their ages."""
    return np.asarray(decay ** np.arange(n_lags - 1, -1, -1.0))


def place_centers(X: Array, decay: float, n_centers: int) -> tuple[Array, float]:
    """Return centers by K-Means in the metric, and the spread of the windows there."""
    near = X * lag_metric(X.shape[1], decay)
    return kmeans(near, n_centers), float(np.sqrt(near.var(axis=0).sum()))


def make_basis(placed: tuple[Array, float], decay: float, width: float) -> Basis:
    """Make the basis functions.

    Parameters
    ----------
    placed : tuple of ndarray of shape (c, l) and float
        By `place_centers`.
    decay : float
        Factor by which older lags count less, a step.
    width : float
        Width in units of the windows' spread.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.noise.maps import make_basis, place_centers, regress
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> basis = make_basis(place_centers(X, 0.5, 40), decay=0.5, width=2.0)
    >>> fit = regress(basis.features(X, basis.activations(X)), np.sin(X[:, 1]), n_flat=3)
    >>> basis.n_smooth < 40, bool(fit.variance < 1e-6)
    (True, True)
    """
    centers, spread = placed
    beta = 0.5 / (width * spread) ** 2
    values, vectors = np.linalg.eigh(np.exp(-beta * squared_distances(centers, centers)))
    keep = values > _NEGLIGIBLE * values[-1]
    roots = vectors[:, keep] / np.sqrt(values[keep])
    return Basis(centers, beta, lag_metric(centers.shape[1], decay), roots, decay, width)


@dataclass(frozen=True)
class Regression:
    """Weights found by evidence, for targets taken as they are.

    Attributes
    ----------
    evidence : float
        Minus twice the logarithm of the marginal likelihood, up to a constant.
    variance : float
        Of the residuals.
    prior : float
        Variance of the smooth weights.
    w : ndarray of shape (r + l + 1,)
    """

    evidence: float
    variance: float
    prior: float
    w: Array


def regress(features: Array, y: Array, n_flat: int) -> Regression:
    r"""Fit a linear model, the penalty on its smooth weights by evidence.

    .. math:: E(\lambda) = (n - k) (1 + \log Q) + \sum_i \log(1 + s_i / \lambda) + \log |X' X|,
        \qquad \lambda = Q / \tau^2

    where Q is the variance of the residuals, X the k inputs without a prior and s the
    eigenvalues of the Gram matrix of the others, X projected out.

    Parameters
    ----------
    features : ndarray of shape (n, r + k)
    y : ndarray of shape (n,)
    n_flat : int
        Number k of last columns whose weights have no prior.
    """
    n, size = features.shape
    smooth, flat = features[:, : size - n_flat], features[:, size - n_flat :]
    orthogonal, triangle = np.linalg.qr(flat)
    smooth_rest = smooth - orthogonal @ (orthogonal.T @ smooth)
    rest = y - orthogonal @ (orthogonal.T @ y)
    s, vectors = np.linalg.eigh(smooth_rest.T @ smooth_rest)
    s = np.maximum(s, 0.0)
    moment = vectors.T @ (smooth_rest.T @ rest)
    penalty = _PENALTIES[:, None]
    free = max(n - n_flat, 1)
    total = float(rest @ rest)
    variance = (total - (moment**2 / (s + penalty)).sum(axis=1)) / free
    variance = np.maximum(variance, max(_LEAST * total / free, 1e-300))
    evidence = free * (1.0 + np.log(variance)) + np.log1p(s / penalty).sum(axis=1)
    best = int(np.argmin(evidence))
    w = vectors @ (moment / (s + _PENALTIES[best]))
    w_flat = np.linalg.lstsq(flat, y - smooth @ w, rcond=None)[0]
    constant = 2.0 * np.log(np.maximum(np.abs(np.diag(triangle)), 1e-300)).sum()
    return Regression(
        float(evidence[best] + constant),
        float(variance[best]),
        float(variance[best] / _PENALTIES[best]),
        np.concatenate([w, w_flat]),
    )


@dataclass(frozen=True)
class Fit:
    """A map on a series that is taken as it is."""

    basis: Basis
    regression: Regression

    def predict(self, X: Array) -> Array:
        """Values after windows, shape (n,)."""
        return self.basis.features(X, self.basis.activations(X)) @ self.regression.w


def fit_map(basis: Basis, X: Array, y: Array) -> Fit:
    """Fit the weights of a map to windows and the values after them."""
    features = basis.features(X, basis.activations(X))
    return Fit(basis, regress(features, y, n_flat=X.shape[1] + 1))


def fit_maps(
    X: Array, y: Array, decays: Iterable[float], widths: Iterable[float], n_centers: int
) -> dict[Shape, Fit]:
    """Fit maps of every decay and width."""
    widths = tuple(widths)
    fits = {}
    for decay in decays:
        placed = place_centers(X, decay, n_centers)
        for width in widths:
            fits[decay, width] = fit_map(make_basis(placed, decay, width), X, y)
    return fits


def best_fit(fits: Iterable[Fit]) -> Fit:
    """Return the map for which there is most evidence."""
    return min(fits, key=lambda fit: fit.regression.evidence)


def affordable(n_rows: int, most: int = CENTERS) -> int:
    """Return the number of basis functions for a number of windows."""
    return int(np.clip(n_rows // _ROWS_PER_CENTER, 2, most))


def shape_of(network: Network) -> Shape:
    """Return the decay and the width of a map that has become a network.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.noise.maps import fit_maps, shape_of
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> fit = fit_maps(X, X[:, 0], [0.5], [2.0], 20)[0.5, 2.0]
    >>> decay, width = shape_of(fit.basis.network(fit.regression.w, 0.0, 1.0))
    >>> decay, round(width, 1)
    (0.5, 2.0)
    """
    metric = network.metric
    decay = float(metric[-2]) if metric.size > 1 else 1.0
    spread = float(np.sqrt(metric @ metric))  # of windows of standardized values
    return decay, float(np.sqrt(0.5 / network.beta[0])) / spread
