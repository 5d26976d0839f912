"""Training rows as the mathematics wants them: in one order, without copies, standardized."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rbfdiffnet.network.basis import Array

_DECIMALS = 10  # of standardized data
_FENCE = 6.0  # interquartile ranges
_LEAST = 1e-60  # of the largest target, as its scale: powers of their ratio are finite
_TINY = float(np.finfo(np.float64).tiny)  # below it quotients overflow


@dataclass(frozen=True)
class Rows:
    """Standardized training rows.

    Attributes
    ----------
    Z : ndarray of shape (n, d)
        Inputs, ``(x - x_shift) / x_scale``.
    target : ndarray of shape (m, n)
        Targets, ``(y - y_shift) / y_scale``.
    weight : ndarray of shape (n,)
    x_shift, x_scale : ndarray of shape (d,)
    y_shift, y_scale : ndarray of shape (m,)
    """

    Z: Array
    target: Array
    weight: Array
    x_shift: Array
    x_scale: Array
    y_shift: Array
    y_scale: Array

    def at_most(self, n_rows: int) -> Rows:
        """Return about so many of the rows, evenly spread over the sorted ones."""
        step = -(-len(self.Z) // n_rows)
        if step == 1:
            return self
        target = np.ascontiguousarray(self.target[:, ::step])
        return replace(self, Z=self.Z[::step], target=target, weight=self.weight[::step])

    def without_outliers(self) -> Rows:
        """Return the rows with targets cut off six interquartile ranges beyond the quartiles."""
        low, high = np.quantile(self.target, [0.25, 0.75], axis=1)[:, :, None]
        reach = np.where(high > low, _FENCE * (high - low), np.inf)
        return replace(self, target=np.clip(self.target, low - reach, high + reach))


def standardize(
    X: Array, Y: Array, weight: Array, *, center_target: bool = True, common: bool = False
) -> Rows:
    """Sort, merge and standardize rows.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    Y : ndarray of shape (n, m)
    weight : ndarray of shape (n,)
        Not negative; only ratios matter. They are scaled to a mean of 1 over the distinct rows.
    center_target : bool, default=True
        Whether the mean is taken out of the targets.
    common : bool, default=False
        Whether all inputs are divided by the same number.

    Returns
    -------
    Rows

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.network.rows import standardize
    >>> rows = standardize(np.array([[2.0], [0.0], [0.0]]), np.ones((3, 1)), np.ones(3))
    >>> rows.Z.ravel().round(3), rows.weight.round(3)
    (array([-0.707,  1.414]), array([1.333, 0.667]))
    """
    # By a power of 2, so that sums do not overflow and no other bit changes.
    X, Y, weight = _canonical(X, Y, np.ldexp(weight, -int(np.frexp(weight.max())[1])))
    weight = weight * (len(weight) / weight.sum())
    x_shift, x_scale = _mean_and_spread(X, weight)
    y_shift, y_scale = _mean_and_spread(Y, weight)
    if not center_target:
        y_scale = np.sqrt(y_scale**2 + y_shift**2)
        y_shift = np.zeros_like(y_shift)
    else:
        limit, middle = _outlier_limit(Y), np.median(Y, axis=0)
        least: Array = np.maximum(_LEAST * np.abs(Y).max(axis=0), _TINY)
        y_scale = np.maximum(np.minimum(y_scale, limit), least)
        y_shift = np.where(np.abs(y_shift - middle) > limit, middle, y_shift)
    varying = np.ptp(X, axis=0) > 0
    if common and np.any(varying):
        x_scale = np.full_like(x_scale, np.sqrt(np.mean(x_scale[varying] ** 2)))
    # Rounded, so that the units of the data do not decide between equally good networks.
    Z = np.round((X - x_shift) / x_scale, _DECIMALS)
    target = np.round((Y - y_shift) / y_scale, _DECIMALS).T
    return Rows(Z, target, weight, x_shift, x_scale, y_shift, y_scale)


def _canonical(X: Array, Y: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Sort the rows, drop those without weight and merge copies.

    So the network depends, to the last bit, neither on the order of the rows nor on whether a row
    is repeated or weighted.
    """
    used = np.flatnonzero(weight > 0)
    keys = np.column_stack([X, Y])[used]
    order = np.lexsort(keys.T[::-1])
    keys, weight = keys[order], weight[used][order]
    first = np.flatnonzero(np.append(True, np.any(keys[1:] != keys[:-1], axis=1)))
    return keys[first, : X.shape[1]], keys[first, X.shape[1] :], np.add.reduceat(weight, first)


def _mean_and_spread(values: Array, weight: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of the columns (1 where there is none)."""
    largest = np.abs(values).max(axis=0)
    # So that squares neither overflow nor vanish.
    unit = np.maximum(np.where(largest > 0, largest, 1.0), _TINY)
    scaled = values / unit
    mean = np.average(scaled, axis=0, weights=weight)
    spread = np.sqrt(np.average((scaled - mean) ** 2, axis=0, weights=weight))
    scale = np.maximum(np.where(spread > 1e-13, spread, 1.0) * unit, _TINY)
    return mean * unit, scale


def _outlier_limit(Y: Array) -> Array:
    """Three robust standard deviations: no outlier may set scale or level of the rest."""
    low, high = np.quantile(Y, [0.25, 0.75], axis=0)
    robust = 3.0 * (high - low) / 1.349
    return np.where(robust > 0.0, robust, np.inf)
