r"""Smooth maps from windows to the next value: the network inside trajectory learning.

.. math:: f(x) = b + \lambda \cdot x + \sum_{j=1}^{c} w_j\, e^{-\beta \lVert \delta \circ x - \mu_j
    \rVert^2}, \qquad \delta_i = \rho^{\text{age}_i}

All basis functions have the same width. Older lags count less in distances, by a factor
:math:`\rho` for each step of age. The weights are :math:`w = K^{-1/2} u` with
:math:`u \sim N(0, \tau^2)`, where K holds the basis functions at the centers: this is the prior of
a Gaussian process, on a basis of c functions. Directions in which K is nearly zero are left out, so
a wide basis has few weights and costs little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from rbfdiffnet.network.basis import squared_distances
from rbfdiffnet.network.centers import kmeans
from rbfdiffnet.network.network import Network
from rbfdiffnet.series.recursion import roll
from rbfdiffnet.series.windows import cut_windows
from rbfdiffnet.support.arrays import Array, Mask

#: Decay and width of a map.
MapShape = tuple[float, float]

#: Usual number of basis functions.
CENTERS = 80

_ROWS_PER_CENTER = 4
_NEGLIGIBLE = 1e-8  # eigenvalues of K, relative to the largest
_LEAST = 1e-14  # variance of residuals, relative to that of the targets
_PENALTIES = 10.0 ** np.arange(-10.0, 5.0, 0.5)
_ROWS_AT_ONCE = 2_048
_LAGS_APART = 4  # with twice as many lags every second window is used, and so on


def known_rows(s: Array, known: Mask, n_lags: int) -> tuple[Array, Array]:
    """Return windows (n, l) and the values after them (n,), where all l + 1 values are known."""
    whole = are_known(known, n_lags + 1)
    return cut_windows(s, n_lags)[:-1][whole], s[n_lags:][whole]


def are_known(known: Mask, width: int) -> Mask:
    """Tell for each window of ``width`` values whether all are known, shape (T - width + 1,)."""
    return np.asarray(cut_windows(known, width).all(axis=1))


def fill_by_map(s: Array, known: Mask, n_lags: int, predict: Callable[[Array], Array]) -> Array:
    """Return a series (T,) whose unknown values are predicted one after the other.

    They stay within the range of the known values. The first l values stay as they are.
    """
    low, high = s[known].min(), s[known].max()
    filled = s.copy()
    gone = np.flatnonzero(~known[n_lags:]) + n_lags
    for gap in np.split(gone, np.flatnonzero(np.diff(gone) > 1) + 1):
        if gap.size:
            before = filled[None, gap[0] - n_lags : gap[0]]
            filled[gap] = roll(predict, before, gap.size, low, high)[0]
    return filled


@dataclass(frozen=True)
class MapBasis:
    r"""Basis functions over windows of standardized values.

    ``centers`` (c, l) are already multiplied by ``metric`` (l,), which says how much each lag
    counts in distances, oldest first. ``roots`` (c, r) are the columns of :math:`K^{-1/2}` without
    those of negligible eigenvalues. ``decay`` and ``width`` are what metric and beta come from.
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
        """Evaluate the basis functions at windows, shape (n, c)."""
        return np.exp(-self.beta * squared_distances(X * self.metric, self.centers))

    def features(self, X: Array, phi: Array) -> Array:
        """Return the inputs of the linear model: smooth ones, lags, a one; (n, r + l + 1)."""
        return np.concatenate([phi @ self.roots, X, np.ones((len(X), 1))], axis=1)

    def values(self, X: Array, phi: Array, w: Array) -> Array:
        """Return f at windows, shape (n,)."""
        smooth = phi @ (self.roots @ w[: self.n_smooth])
        return np.asarray(smooth + X @ w[self.n_smooth : -1] + w[-1])

    def slopes(self, X: Array, phi: Array, w: Array) -> Array:
        """Return the derivatives of f by the lags, shape (n, l)."""
        r, n_lags = self.n_smooth, X.shape[1]
        part = phi * (self.roots @ w[:r])
        rise = part @ self.centers - X * self.metric * part.sum(axis=1, keepdims=True)
        return np.asarray(2.0 * self.beta * rise * self.metric + w[r : r + n_lags])

    def spread(self, X: Array, phi: Array, covariance: Array, thin: int = 1) -> tuple[Array, Array]:
        r"""Return how much the features vary where windows are uncertain, to first order.

        .. math:: M = \sum_n \nabla \phi(x_n)' P_n \nabla \phi(x_n), \qquad
            v = \sum_n \nabla \phi(x_n)' p_n

        where ``covariance`` (n, l + 1, l + 1) is that of each window and the value after it: P
        within the window, p between the two. M has shape (r + l + 1, r + l + 1). Only every
        ``thin``-th window is looked at, and stands for the others.
        """
        n_lags = X.shape[1]
        size = self.n_smooth + n_lags + 1
        M, v = np.zeros((size, size)), np.zeros(size)
        # Long windows overlap by nearly all of their values, so a part of them says the same.
        every = thin * max(1, n_lags // _LAGS_APART)
        X, phi, covariance = X[::every], phi[::every], covariance[::every]
        for start in range(0, len(X), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            within = covariance[rows, :n_lags, :n_lags]
            scale = np.sqrt(np.einsum("nii->ni", within))
            correlation = within / (scale[:, :, None] * scale[:, None, :])
            root = np.linalg.cholesky(correlation + 1e-9 * np.eye(n_lags)) * scale[:, :, None]
            next_value = np.linalg.solve(root, covariance[rows, :n_lags, n_lags:])
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
        )


def lag_metric(n_lags: int, decay: float) -> Array:
    """Weights of the lags in distances, oldest first: the decay to the power of their ages."""
    return np.asarray(decay ** np.arange(n_lags - 1, -1, -1.0))


def place_centers(
    X: Array, decay: float, n_centers: int, start: Array | None = None
) -> tuple[Array, float]:
    """Return centers (c, l) by K-Means in the metric, and the spread of the windows there.

    K-Means may ``start`` from windows (c, l), which are those of decay 1, instead of seeds.
    """
    metric = lag_metric(X.shape[1], decay)
    scaled, start = X * metric, None if start is None else start * metric
    return kmeans(scaled, n_centers, start=start), float(np.sqrt(scaled.var(axis=0).sum()))


def some_windows(X: Array, n_centers: int) -> Array:
    """Return windows (c, l) at equal distances in time, for K-Means to start from."""
    return X[np.linspace(0, len(X) - 1, n_centers).round().astype(np.int64)]


def make_basis(placed: tuple[Array, float], decay: float, width: float) -> MapBasis:
    """Make the basis from placed centers; its width is in units of the windows' spread."""
    centers, spread = placed
    beta = 0.5 / (width * spread) ** 2
    values, vectors = np.linalg.eigh(np.exp(-beta * squared_distances(centers, centers)))
    keep = values > _NEGLIGIBLE * values[-1]
    roots = vectors[:, keep] / np.sqrt(values[keep])
    return MapBasis(centers, beta, lag_metric(centers.shape[1], decay), roots, decay, width)


@dataclass(frozen=True)
class Regression:
    """Weights found by evidence, for targets taken as they are.

    ``evidence`` is minus twice the logarithm of the marginal likelihood, up to a constant,
    ``variance`` that of the residuals, ``prior`` that of the smooth weights; ``w`` has shape
    (r + l + 1,).
    """

    evidence: float
    variance: float
    prior: float
    w: Array


def regress(features: Array, y: Array, n_flat: int) -> Regression:
    r"""Fit a linear model and choose the penalty on its smooth weights by evidence.

    .. math:: E(\lambda) = (n - k) (1 + \log Q) + \sum_i \log(1 + s_i / \lambda) + \log |X' X|,
        \qquad \lambda = Q / \tau^2

    where Q is the variance of the residuals, X the k = ``n_flat`` last features (n, r + k), whose
    weights have no prior, and s the eigenvalues of the Gram matrix of the others, X projected out.
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
class FittedMap:
    """A map fitted to a series that is taken as it is."""

    basis: MapBasis
    regression: Regression

    def predict(self, X: Array) -> Array:
        """Predict the values after windows, shape (n,)."""
        return self.basis.values(X, self.basis.activations(X), self.regression.w)


def fit_map(basis: MapBasis, X: Array, y: Array) -> FittedMap:
    """Fit the weights of a map to windows and the values after them."""
    features = basis.features(X, basis.activations(X))
    return FittedMap(basis, regress(features, y, n_flat=X.shape[1] + 1))


def fit_maps(
    X: Array,
    y: Array,
    decays: Iterable[float],
    widths: Iterable[float],
    n_centers: int,
    start: Array | None = None,
) -> dict[MapShape, FittedMap]:
    """Fit maps of every decay and width; K-Means may ``start`` from windows (c, l)."""
    widths = tuple(widths)
    maps = {}
    for decay in decays:
        placed = place_centers(X, decay, n_centers, start)
        for width in widths:
            maps[decay, width] = fit_map(make_basis(placed, decay, width), X, y)
    return maps


def best_map(maps: Iterable[FittedMap]) -> FittedMap:
    """Return the map for which there is most evidence."""
    return min(maps, key=lambda fitted: fitted.regression.evidence)


def count_centers(n_rows: int, most: int = CENTERS) -> int:
    """Return the number of basis functions that a number of windows can pay for."""
    return int(np.clip(n_rows // _ROWS_PER_CENTER, 2, most))


def shape_of(network: Network) -> MapShape:
    """Return the decay and the width of a map that has become a network."""
    metric = network.metric
    decay = float(metric[-2]) if metric.size > 1 else 1.0
    spread = float(np.sqrt(metric @ metric))  # of windows of standardized values
    return decay, float(np.sqrt(0.5 / network.beta[0])) / spread
