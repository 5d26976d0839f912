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
center, or by the spread where that distance is no larger. So every :math:`\beta_j` is finite, and
no basis function is a needle that no new row ever meets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rbfdiffnet.network.differential import squared_distances
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.checks import as_floats, call_given, check_choice

__all__ = ["WIDTH_RULES", "WidthRule", "widths"]

#: Called as ``rule(X, centers, weight=..., n_nearest=...)`` with rows (n, d), centers (c, d),
#: weights of the rows (n,) and r; returns the widths (c,). A rule takes what it does not need as
#: ``**_``.
WidthRule = Callable[..., Array]

_SMALLEST = 1e-2  # of the root mean square distance of the rows from their mean


def _max_distance(_: Array, centers: Array, **__: Any) -> Array:
    largest = np.sqrt(squared_distances(centers, centers, expand=False).max())
    return np.full(len(centers), largest / np.sqrt(2.0 * len(centers)))


def _cluster(X: Array, centers: Array, *, weight: Array, **_: Any) -> Array:
    distance = np.sqrt(squared_distances(X, centers))
    label = distance.argmin(axis=1)
    mass = np.bincount(label, weight, minlength=len(centers))
    total = np.bincount(label, weight * distance.min(axis=1), minlength=len(centers))
    return total / np.where(mass > 0, mass, 1.0)


def _nearest(X: Array, centers: Array, *, weight: Array, n_nearest: int) -> Array:
    distance = np.sqrt(squared_distances(centers, X))
    order = distance.argsort(axis=1)
    closest = np.take_along_axis(distance, order, axis=1)
    share = weight[order]
    before = np.cumsum(share, axis=1) - share
    share = np.clip(n_nearest - before, 0.0, share)  # the first r units of weight
    return np.asarray((share * closest).sum(axis=1) / share.sum(axis=1))


def _nearest_shared(X: Array, centers: Array, **known: Any) -> Array:
    return np.full(len(centers), _nearest(X, centers, **known).mean())


#: The rules by name.
WIDTH_RULES: dict[str, WidthRule] = {
    "max_distance": _max_distance,
    "cluster": _cluster,
    "nearest": _nearest,
    "nearest_shared": _nearest_shared,
}


def widths(
    rule: str | WidthRule,
    X: Array,
    centers: Array,
    *,
    weight: Array | None = None,
    n_nearest: int = 10,
) -> Array:
    r"""Widths :math:`\sigma_j`, always positive and finite: paper, eq. (widths).

    Parameters
    ----------
    rule : str or callable
        A name in `WIDTH_RULES`, or a function of that kind.
    X : ndarray of shape (n, d)
    centers : ndarray of shape (c, d)
    weight : ndarray of shape (n,), optional
        Weights of the rows; 3 means the same as three copies.
    n_nearest : int, default=10
        r, for the rules that use it.

    Returns
    -------
    ndarray of shape (c,)

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.network.widths import widths
    >>> X = np.array([[0.0], [2.0], [10.0], [14.0]])
    >>> centers = np.array([[1.0], [12.0]])
    >>> widths("cluster", X, centers)
    array([1., 2.])
    >>> widths("max_distance", X, centers)
    array([5.5, 5.5])
    """
    if isinstance(rule, str):
        check_choice("width", rule, WIDTH_RULES)
        rule = WIDTH_RULES[rule]
    weight = np.ones(len(X)) if weight is None else weight
    found = call_given("width", rule, X, centers, weight=weight, n_nearest=n_nearest)
    sigma = as_floats("width: what the rule returned", found)
    if sigma.shape != (len(centers),) or not np.all(np.isfinite(sigma) & (sigma >= 0.0)):
        raise ValueError(
            f"width: the rule must return {len(centers)} finite numbers that are not negative, "
            f"one for each center; it returned {sigma!r}"
        )
    return _replace_tiny(sigma, X, centers, weight)


def _replace_tiny(sigma: Array, X: Array, centers: Array, weight: Array) -> Array:
    """Replace widths that are (nearly) zero, as the top of this module says."""
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
