"""Training rows as the mathematics wants them: in one order, without copies, standardized."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rbfdiffnet.basis import Array

_DECIMALS = 10  # of standardized data


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


def standardize(
    X: Array, Y: Array, weight: Array, *, center: bool = True, common: bool = False
) -> Rows:
    """Sort, merge and standardize rows.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    Y : ndarray of shape (n, m)
    weight : ndarray of shape (n,)
        Not negative. Integers count copies; other weights are relative, scaled to a mean of 1.
    center : bool, default=True
        Whether means are taken out.
    common : bool, default=False
        Whether all inputs are divided by the same number.

    Returns
    -------
    Rows

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.rows import standardize
    >>> rows = standardize(np.array([[2.0], [0.0], [0.0]]), np.ones((3, 1)), np.ones(3))
    >>> rows.Z.ravel().round(3), rows.weight
    (array([-0.707,  1.414]), array([2., 1.]))
    """
    n_rows = np.count_nonzero(weight > 0)
    X, Y, weight = _canonical(X, Y, weight)
    if np.any(weight != np.round(weight)):
        weight = weight * (n_rows / weight.sum())
    x_shift, x_scale = _shift_and_scale(X, weight, center)
    y_shift, y_scale = _shift_and_scale(Y, weight, center)
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


def _shift_and_scale(values: Array, weight: Array, center: bool) -> tuple[Array, Array]:
    """Mean (0 unless ``center``) and root mean square around it (1 where there is no spread)."""
    largest = np.abs(values).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)  # so that squares neither overflow nor vanish
    scaled = values / unit
    mean = np.average(scaled, axis=0, weights=weight) if center else np.zeros(values.shape[1])
    spread = np.sqrt(np.average((scaled - mean) ** 2, axis=0, weights=weight))
    return mean * unit, np.where(spread > 1e-13, spread, 1.0) * unit
