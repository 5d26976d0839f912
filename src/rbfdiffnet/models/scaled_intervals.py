r"""Intervals from few errors of many series, made at the ends of the series.

Errors of series i in window w at step k are taken as

.. math:: |e_{iwk}| = s_i \, k^b \, z, \qquad \log s_i = \log c_i + \text{what the errors of
    series i say}, \quad c_i = \text{mean} |y_t - y_{t-1}|

so one pool of z serves a whole panel. How much a series' own errors say about its spread, against
those of all, is weighed as in empirical Bayes: by how much series differ more than windows of a
series do. The z of a window are found with the spread that the other windows give, as they will be
used; otherwise they would come out too small. Half-widths are quantiles of the z of a step; where a
step has few, the z of the steps next to it count, too.

Errors of one window go together, so h of them count as :math:`\sqrt h` where the finite-sample
correction of `models.intervals.conformal_quantile` asks for their number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rbfdiffnet.support.arrays import Array, Mask

_ENOUGH = 100  # errors for a quantile
_USUAL_RISE, _RISE_WEIGHT = 0.3, 1.0  # the power of the step where errors are few
_SMALL = 1e-2  # of the usual error, below which a window says nothing more


def scaled_half_widths(
    errors: Array, changes: Array, levels: Sequence[float]
) -> tuple[Array, Mask]:
    """Return half-widths (n, h, n_levels), 0 where nothing is known, and where errors were enough.

    `errors` (n, n_windows, h) are absolute, NaN where unknown; `changes` (n,) are mean step sizes,
    positive where the errors of a series count. Where errors were too few for the highest level,
    the largest was taken, grown as the quantiles of a normal distribution grow.
    """
    n, _, h = errors.shape
    # In an order of their own: sums must not depend on that of the panel.
    order = np.lexsort(np.column_stack([changes, errors.reshape(n, -1)]).T)
    errors, changes = errors[order], changes[order]
    counts = changes > 0.0
    unit = np.where(counts, changes, np.nan)
    relative = errors / unit[:, None, None]
    rise = np.arange(1.0, h + 1.0) ** _rise(relative)
    sizes = _mean(relative / rise, axis=2)
    spread, spread_then = _spreads(sizes)
    scores = relative / (rise * spread_then[:, :, None])
    quantiles, enough = _quantiles(scores, levels)
    widths = (unit * spread)[:, None, None] * (rise[:, None] * quantiles)
    back = np.argsort(order)
    return np.nan_to_num(widths, nan=0.0)[back], (~counts | enough)[back]


def _rise(relative: Array) -> float:
    """The power of the step with which errors grow, drawn to the usual one."""
    size = _mean(relative.reshape(-1, relative.shape[2]), axis=0)
    known = np.isfinite(size) & (size > 0.0)
    if not known.any():
        return _USUAL_RISE
    step = np.log(np.arange(1.0, size.size + 1.0)[known])
    step, level = step - step.mean(), np.log(size[known])
    drawn = step @ level + _RISE_WEIGHT * _USUAL_RISE
    return float(np.clip(drawn / (step @ step + _RISE_WEIGHT), 0.0, 1.0))


def _mean(values: Array, axis: int) -> Array:
    """Mean of what is known; NaN where nothing is."""
    known = np.isfinite(values)
    total, count = np.where(known, values, 0.0).sum(axis=axis), known.sum(axis=axis)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def _spreads(sizes: Array) -> tuple[Array, Array]:
    """Return the spread of each series (n,), and that of each window from the other windows.

    `sizes` (n, n_windows) are mean errors, NaN where unknown.
    """
    positive = sizes[sizes > 0.0]
    if not positive.size:
        return np.ones(len(sizes)), np.ones_like(sizes)
    logs = np.log(np.maximum(sizes, _SMALL * np.median(positive)))
    known = np.isfinite(logs)
    filled, count = np.where(known, logs, 0.0), known.sum(axis=1)
    usual = filled.sum() / known.sum()
    own = filled.sum(axis=1) / np.maximum(count, 1)
    spare = np.maximum(count - 1, 0).sum()
    within = np.where(known, (logs - own[:, None]) ** 2, 0.0).sum() / spare if spare else np.inf
    there = count > 0
    between = 0.0
    if spare and there.sum() > 1:
        noise = (within / count[there]).mean()
        between = max(float(np.var(own[there], ddof=1)) - noise, 0.0)

    def shrink_to_usual(total: Array, count: Array) -> Array:
        """Move the usual spread by what so many windows say."""
        trust = 0.0 * count
        if between > 0.0:
            trust = between * count / (between * count + max(within, 1e-12))
        return np.asarray(np.exp(usual + trust * (total / np.maximum(count, 1) - usual)))

    total, others = filled.sum(axis=1), count[:, None] - known
    return shrink_to_usual(total, count), shrink_to_usual(total[:, None] - filled, others)


def _normal(level: float) -> float:
    """Half-width of the interval of a standard normal variable."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2.0))


def _quantiles(scores: Array, levels: Sequence[float]) -> tuple[Array, bool]:
    """Quantiles of scores at each step (h, n_levels), and whether there were enough of them."""
    h = scores.shape[2]
    by_step = scores.reshape(-1, h)
    known = np.isfinite(by_step).sum(axis=0)
    found, enough = np.full((h, len(levels)), np.nan), True
    for k in range(h):
        near = np.abs(np.arange(h) - k)
        reach = next((r for r in range(h) if known[near <= r].sum() >= _ENOUGH), h - 1)
        pool = by_step[:, near <= reach]
        pool = np.sort(pool[np.isfinite(pool)])
        if not pool.size:
            enough = False
            continue
        count = pool.size / np.sqrt(np.count_nonzero(known[near <= reach]))
        for j, level in enumerate(levels):
            # Rounded first, since the product may exceed an integer by a rounding error.
            rank = int(np.ceil(np.round((count + 1.0) * level / count * pool.size, 9)))
            if rank <= pool.size:
                found[k, j] = pool[rank - 1]
            else:
                enough = False
                found[k, j] = pool[-1] * _normal(level) / _normal(count / (count + 1.0))
    return found, enough
