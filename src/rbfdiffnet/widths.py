r"""How wide the basis functions are: the paper's four rules, and a floor.

===================  ==============================================================================
``max_distance``     :math:`\sigma = d_{max} / \sqrt{2 c}`, :math:`d_{max}` the largest distance
                     between two centers
``cluster``          mean distance to :math:`\mu_j` of the rows nearest to it (its cluster)
``nearest``          mean distance to :math:`\mu_j` of the r rows closest to it
``nearest_shared``   the mean of the rule above over all j
===================  ==============================================================================

A rule can give (nearly) zero: a cluster of one row or of coinciding rows, a single center. A width
below a hundredth of the spread of the rows is replaced by the distance to the nearest other
center, or by the spread where that is no larger. So every :math:`\beta_j` is finite, and no basis
function is a needle that no new row ever meets.
"""

from __future__ import annotations

import numpy as np

from rbfdiffnet.basis import Array, squared_distances

WIDTH_RULES = ("max_distance", "cluster", "nearest", "nearest_shared")

_SMALLEST = 1e-2  # of the root mean square distance of the rows from their mean


def widths(
    rule: str, X: Array, centers: Array, *, weight: Array | None = None, n_nearest: int = 10
) -> Array:
    r"""Widths :math:`\sigma_j` of the basis functions, always positive and finite.

    Parameters
    ----------
    rule : {"max_distance", "cluster", "nearest", "nearest_shared"}
    X : ndarray of shape (n, d)
    centers : ndarray of shape (c, d)
    weight : ndarray of shape (n,), optional
        Weights of the rows; 3 means the same as three copies.
    n_nearest : int, default=10
        r, for the two rules that use it.

    Returns
    -------
    ndarray of shape (c,)

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.widths import widths
    >>> X = np.array([[0.0], [2.0], [10.0], [14.0]])
    >>> centers = np.array([[1.0], [12.0]])
    >>> widths("cluster", X, centers)
    array([1., 2.])
    >>> widths("max_distance", X, centers)
    array([5.5, 5.5])
    """
    if rule not in WIDTH_RULES:
        raise ValueError(f"width must be one of {', '.join(WIDTH_RULES)}; got {rule!r}")
    weight = np.ones(len(X)) if weight is None else weight
    if rule == "max_distance":
        largest = np.sqrt(squared_distances(centers, centers, expand=False).max())
        sigma = np.full(len(centers), largest / np.sqrt(2.0 * len(centers)))
    elif rule == "cluster":
        sigma = _cluster_mean_distance(X, centers, weight)
    else:
        sigma = _nearest_mean_distance(X, centers, weight, n_nearest)
        if rule == "nearest_shared":
            sigma = np.full(len(centers), sigma.mean())
    return _floored(sigma, X, centers, weight)


def _cluster_mean_distance(X: Array, centers: Array, weight: Array) -> Array:
    distance = np.sqrt(squared_distances(X, centers))
    label = distance.argmin(axis=1)
    mass = np.bincount(label, weight, minlength=len(centers))
    total = np.bincount(label, weight * distance.min(axis=1), minlength=len(centers))
    return total / np.where(mass > 0, mass, 1.0)


def _nearest_mean_distance(X: Array, centers: Array, weight: Array, n_nearest: int) -> Array:
    distance = np.sqrt(squared_distances(centers, X))
    order = distance.argsort(axis=1)
    closest = np.take_along_axis(distance, order, axis=1)
    share = weight[order]
    before = np.cumsum(share, axis=1) - share
    share = np.clip(n_nearest - before, 0.0, share)  # the first r units of weight
    return np.asarray((share * closest).sum(axis=1) / share.sum(axis=1))


def _floored(sigma: Array, X: Array, centers: Array, weight: Array) -> Array:
    deviation = X - np.average(X, axis=0, weights=weight)
    spread = float(np.sqrt(np.average((deviation**2).sum(axis=1), weights=weight)))
    smallest = _SMALLEST * spread
    if np.all(sigma > smallest):
        return sigma
    squares = squared_distances(centers, centers, expand=False)
    np.fill_diagonal(squares, np.inf)
    gap = np.sqrt(squares.min(axis=1))
    usable = np.isfinite(gap) & (gap > smallest)
    substitute = np.where(usable, gap, spread if spread > 0.0 else 1.0)
    return np.where(sigma > smallest, sigma, substitute)
