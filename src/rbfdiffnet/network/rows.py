"""Training rows as the trainers need them: sorted, without copies, standardized."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rbfdiffnet.support.arrays import Array

_DECIMALS = 10  # of standardized data
_FENCE = 6.0  # interquartile ranges beyond the quartiles
_LEAST = 1e-60  # smallest scale of a target, relative to its largest value
_TINY = float(np.finfo(np.float64).tiny)  # below it quotients overflow


@dataclass(frozen=True)
class StandardizedRows:
    """Standardized training rows: inputs Z (n, d), targets (m, n), weights (n,).

    Z is ``(x - x_shift) / x_scale`` and the target ``(y - y_shift) / y_scale``.
    """

    Z: Array
    target: Array
    weight: Array
    x_shift: Array
    x_scale: Array
    y_shift: Array
    y_scale: Array

    def subsample(self, n_rows: int) -> StandardizedRows:
        """Return at most `n_rows` of the rows, evenly spread over the sorted rows."""
        step = -(-len(self.Z) // n_rows)
        if step == 1:
            return self
        target = np.ascontiguousarray(self.target[:, ::step])
        return replace(self, Z=self.Z[::step], target=target, weight=self.weight[::step])

    def clip_outliers(self) -> StandardizedRows:
        """Return the rows with targets clipped six interquartile ranges beyond the quartiles."""
        low, high = np.quantile(self.target, [0.25, 0.75], axis=1)[:, :, None]
        reach = np.where(high > low, _FENCE * (high - low), np.inf)
        return replace(self, target=np.clip(self.target, low - reach, high + reach))


def standardize_rows(
    X: Array, Y: Array, weight: Array, *, center_target: bool = True, common: bool = False
) -> StandardizedRows:
    """Sort, merge and standardize rows: X (n, d), Y (n, m), weights (n,), not negative.

    Only ratios of weights matter; they are scaled to a mean of 1 over the distinct rows. With
    `common`, all inputs are divided by the same number.
    """
    # Scaling by a power of 2 keeps sums from overflowing and changes no other bit.
    X, Y, weight = _sort_and_merge(X, Y, np.ldexp(weight, -int(np.frexp(weight.max())[1])))
    weight = weight * (len(weight) / weight.sum())
    x_shift, x_scale = _mean_and_spread(X, weight)
    y_shift, y_scale = _mean_and_spread(Y, weight)
    if not center_target:
        unit = _power_of_2(np.maximum(y_scale, np.abs(y_shift)))
        y_scale = np.sqrt((y_scale / unit) ** 2 + (y_shift / unit) ** 2) * unit
        y_shift = np.zeros_like(y_shift)
    else:
        limit, middle = _robust_limit(Y), np.median(Y, axis=0)
        least: Array = np.maximum(_LEAST * np.abs(Y).max(axis=0), _TINY)
        y_scale = np.maximum(np.minimum(y_scale, limit), least)
        y_shift = np.where(np.abs(y_shift - middle) > limit, middle, y_shift)
    varying = np.ptp(X, axis=0) > 0
    if common and np.any(varying):
        size = _power_of_2(x_scale[varying].max())
        x_scale = np.full_like(x_scale, np.sqrt(np.mean((x_scale[varying] / size) ** 2)) * size)
    # Rounding keeps the units of the data from deciding between equally good networks.
    Z = np.round((X - x_shift) / x_scale, _DECIMALS)
    target = np.round((Y - y_shift) / y_scale, _DECIMALS).T
    return StandardizedRows(Z, target, weight, x_shift, x_scale, y_shift, y_scale)


def _sort_and_merge(X: Array, Y: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Sort the rows, drop those without weight and merge copies.

    So the network depends, to the last bit, neither on the order of the rows nor on whether a row
    is repeated or has a larger weight.
    """
    used = np.flatnonzero(weight > 0)
    keys = np.column_stack([X, Y])[used]
    order = np.lexsort(keys.T[::-1])
    keys, weight = keys[order], weight[used][order]
    first = np.flatnonzero(np.append(True, np.any(keys[1:] != keys[:-1], axis=1)))
    return keys[first, : X.shape[1]], keys[first, X.shape[1] :], np.add.reduceat(weight, first)


def _mean_and_spread(values: Array, weight: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation of the columns (1 where a column is constant)."""
    largest = np.abs(values).max(axis=0)
    # In this unit squares neither overflow nor vanish.
    unit = np.maximum(np.where(largest > 0, largest, 1.0), _TINY)
    scaled = values / unit
    mean = np.average(scaled, axis=0, weights=weight)
    spread = np.sqrt(np.average((scaled - mean) ** 2, axis=0, weights=weight))
    scale = np.maximum(np.where(spread > 1e-13, spread, 1.0) * unit, _TINY)
    return mean * unit, scale


def _power_of_2(size: Array | np.float64) -> Array:
    """Return units for sizes, in which squares neither overflow nor vanish; no bit changes."""
    return np.asarray(np.ldexp(1.0, np.frexp(size)[1]))


def _robust_limit(Y: Array) -> Array:
    """Return three robust standard deviations of the columns.

    No outlier may set the scale or the level of the other targets.
    """
    low, high = np.quantile(Y, [0.25, 0.75], axis=0)
    robust = 3.0 * (high - low) / 1.349
    return np.where(robust > 0.0, robust, np.inf)
