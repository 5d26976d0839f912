r"""How much each member of a stack counts.

.. math:: \min_v \; \frac{1}{e} \text{mean}_i \Big| \sum_m v_m e_{mi} \Big| + \rho \sum_m
    ( v_m - t_m )^2, \qquad v_m \ge 0, \quad \sum_m v_m = 1

over the errors :math:`e_{mi}` that the members made at the ends of all series, which were held back
from them, each series in its own units, with e the mean size of the errors; or with squares instead
of sizes. The fewer errors, the stronger the pull :math:`\rho` toward the usual weights t. One set
of weights serves a whole panel, or one the series that are often zero and one the others. The
changes of series are the unit of their errors.

The median of all members is weighed like a member, and usually counts most: no single member that
goes astray moves it. It is a member, or the mean of two, at every step, so a mixture with it is
still a sum of members.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rbfdiffnet.series.outliers import usual_and_limit
from rbfdiffnet.support.arrays import Array, Mask, mean_of_known

_ENOUGH_FOR_A_KIND = 1_000  # to weigh members on series that are often zero, or on the others
_PULL = 0.05  # toward the usual weights, at least
_MEDIAN = 3.0  # usual weight of the median of all members, times that of each other way
_FEW_ERRORS = 30.0  # divided by the number of errors: more, where they say little
_NOTHING = 1e-9  # a smaller weight counts as 0, and so does an error of that share of the usual one
_ROUND = 1e-3  # of the mean size, within which absolute errors are rounded
_LARGEST_ERROR = 3.0  # in mean errors of a series that is almost wild
_RECENT = 24  # steps that tell how large changes are now


def weigh_members(errors: Array, sparse: Mask, usual: Array | None = None) -> Array:
    """Weights of members (M, 2) by their errors (M, n, n_windows, h), drawn toward usual ones (M,).

    The first column is for series that are not often zero, the second for those that are. For
    these, squares count: their median says little, and means count. Where there are no series of a
    kind, the other kind decides.
    """
    usual = np.ones(len(errors)) if usual is None else usual
    weights = np.zeros((len(errors), 2))
    for squared, kind in enumerate((~sparse, sparse)):
        few = kind.sum() * np.prod(errors.shape[2:]) < _ENOUGH_FOR_A_KIND
        own = errors if few else errors[:, kind]
        own = own.reshape(len(own), -1)
        tested = np.isfinite(own).any(axis=1)  # members that could forecast earlier, too
        own = own[:, np.isfinite(own[tested]).all(axis=0)][tested]
        if own.size and kind.any():
            own = own[:, np.lexsort(own)]  # whatever the order of the panel
            weights[tested, squared] = fit_weights(own, usual[tested], squared=bool(squared))
    for squared, kind in enumerate((~sparse, sparse)):
        if not kind.any():
            weights[:, squared] = weights[:, 1 - squared]
    return weights


def weigh_in_two_steps(errors: Array, sparse: Mask, n_first: int) -> tuple[Array, Array]:
    """Return weights of members (M, 2), and of their median (2,), for both kinds of series.

    Members after the first are mixed; then the first, the mixture and the median are weighed. So a
    few members that are good everywhere are not outnumbered by the others. Series on which most
    members are wild say nothing.
    """
    errors = _leave_out_wild(errors)
    if len(errors) <= 2:  # their median is their mean
        return weigh_members(errors, sparse), np.zeros(2)
    others = weigh_members(errors[n_first:], sparse)
    own = others[:, sparse.astype(np.int64)]
    mixed = combine_errors(errors[n_first:], own)
    mixed = np.where(own.sum(axis=0)[:, None, None] > 0.0, mixed, np.nan)
    shares = find_medians(errors)
    median = (shares * np.where(shares > 0.0, errors, 0.0)).sum(axis=0)
    median = np.where(shares.any(axis=0), median, np.nan)
    found = np.concatenate([errors[:n_first], mixed[None], median[None]])
    usual = np.ones(len(found))
    usual[-1] = _MEDIAN
    *first, rest, of_median = weigh_members(found, sparse, usual)
    weights = np.stack([*first, *(rest * others)])
    total = weights.sum(axis=0) + of_median
    total[total == 0.0] = 1.0
    return weights / total, of_median / total


def _leave_out_wild(errors: Array) -> Array:
    """Return errors (M, n, n_windows, h), NaN for series on which three of four members are wild.

    See `series.outliers`. No other error counts as much larger, so no series decides alone.
    """
    sizes = mean_of_known(np.abs(errors), axis=(2, 3))
    sizes = sizes[np.isfinite(sizes).any(axis=1)]
    if not sizes.size:
        return errors
    size = np.quantile(sizes, 0.25, axis=0, method="higher")
    _, limit = usual_and_limit(size)
    most = _LARGEST_ERROR * limit
    return np.where((size > limit)[:, None, None], np.nan, np.clip(errors, -most, most))


def find_medians(members: Array) -> Array:
    """Return the weights with which members (M, ...) make up their median, of the same shape.

    It is the mean of the two in the middle where their number is even. Those without a value (NaN)
    do not count.
    """
    known = np.isfinite(members)
    count = known.sum(axis=0, keepdims=True)
    order = np.argsort(np.where(known, members, np.inf), axis=0, kind="stable")
    shares = np.zeros(members.shape)
    for middle in (np.maximum(count - 1, 0) // 2, count // 2):
        place = np.take_along_axis(order, np.minimum(middle, len(members) - 1), axis=0)
        half = np.take_along_axis(shares, place, axis=0) + 0.5
        np.put_along_axis(shares, place, half, axis=0)
    return np.where(known, shares, 0.0)


def combine(members: Array, weights: Array) -> Array:
    """Mix members (M, n, h) by weights (M, n, h); members without values do not count."""
    there = ~np.isnan(members).all(axis=(1, 2))
    if not there.any():
        return np.full(members.shape[1:], np.nan)
    members, weights = members[there], weights[there]
    total = weights.sum(axis=0)
    # One by one, not as a product of matrices, whose rounding depends on the place of a series.
    mixed = np.zeros(members.shape[1:])
    for share, member in zip(weights / np.where(total > 0.0, total, 1.0), members, strict=True):
        mixed += share * member
    # By rounding alone a mixture of equal numbers could be another one.
    mixed = np.clip(mixed, members.min(axis=0), members.max(axis=0))
    return np.where(total > 0.0, mixed, np.median(members, axis=0))


def combine_errors(errors: Array, weights: Array) -> Array:
    """Return errors (n, n_windows, h) of a mixture; NaN where a member that counts has none."""
    counted = np.where((weights > 0.0)[:, :, None, None], errors, 0.0)
    return np.asarray((weights[:, :, None, None] * counted).sum(axis=0))


def fit_weights(errors: Array, usual: Array, *, squared: bool = False) -> Array:
    """Find the weights of members, shape (M,), whose mixture errs least.

    ``errors`` (M, n) have signs and comparable units. ``usual`` (M,) are the weights where errors
    say nothing, up to a factor. With ``squared``, squares of the errors count, for means instead of
    medians.
    """
    from scipy.optimize import LinearConstraint, minimize

    n_members = len(errors)
    usual = usual / usual.sum()
    size = float(np.abs(errors).mean()) if errors.size else 0.0
    if n_members == 1 or not size > 0.0:
        return usual
    exact = np.abs(errors).mean(axis=1) < _NOTHING * size
    if exact.any():  # members that never err count alone
        return np.asarray(exact / exact.sum())

    pull = max(_PULL, _FEW_ERRORS / errors.shape[1])

    def value(v: Array) -> tuple[float, Array]:
        mixed, away = v @ errors / size, v - usual
        if squared:
            cost, rise = mixed**2, 2.0 * mixed
        else:
            cost = np.sqrt(mixed**2 + _ROUND**2)
            rise = mixed / cost
        slope = errors @ rise / (size * mixed.size) + 2.0 * pull * away
        return float(cost.mean() + pull * away @ away), slope

    whole = LinearConstraint(np.ones((1, n_members)), 1.0, 1.0)
    bounds = [(0.0, 1.0)] * n_members
    found = minimize(value, usual, jac=True, method="SLSQP", bounds=bounds, constraints=whole)
    weights = np.where(found.x > _NOTHING, found.x, 0.0)
    return np.asarray(weights / weights.sum())


# Changes ----------------------------------------------------------------------------------------


def measure_changes(
    usable: Sequence[Array], season: int, h: int, usual: float | None = None
) -> Array:
    """Measure the latest changes of each series over a step or a season, the smaller; shape (n,).

    Unknown ones are as large as usual for series of that size; see `usual_change`.
    """
    usual = usual_change(usable, season, h) if usual is None else usual
    changes = np.array([_latest_change(y, season, h) for y in usable])
    sizes = np.array([_mean_size(y) for y in usable])
    return np.where(np.isfinite(changes), changes, usual * sizes)


def usual_change(usable: Sequence[Array], season: int, h: int) -> float:
    """Return the median of the changes of series as shares of their size; 0 if unknown."""
    changes = np.array([_latest_change(y, season, h) for y in usable])
    sizes = np.array([_mean_size(y) for y in usable])
    known = np.isfinite(changes) & (sizes > 0.0)
    return float(np.median(changes[known] / sizes[known])) if known.any() else 0.0


def measure_units(usable: Sequence[Array], season: int) -> Array:
    """Measure the mean change of each series over a season, or else over a step; NaN if unknown."""
    both = ((_mean_change(y, season), _mean_change(y, 1)) for y in usable)
    return np.array([next((d for d in own if d > 0.0), np.nan) for own in both])


def _latest_change(y: Array, season: int, h: int) -> float:
    latest = y[-max(2 * _RECENT, 3 * season, 3 * h) :]
    found = [_mean_change(latest[np.isfinite(latest)], lag) for lag in dict.fromkeys((1, season))]
    found = [change for change in found if change > 0.0]
    return min(found, default=_mean_change(y[np.isfinite(y)], 1))


def _mean_size(y: Array) -> float:
    """Return the mean size of the values of a series; 0 if unknown."""
    known = np.abs(y[np.isfinite(y)])
    return float(known.mean()) if known.size else 0.0


def _mean_change(y: Array, lag: int) -> float:
    """Return the mean change of a series over ``lag`` steps; NaN if unknown."""
    change = _changes(y, lag)
    return float(change.mean()) if change.size else np.nan


def _changes(y: Array, lag: int) -> Array:
    """Return the sizes of the changes of a series over ``lag`` steps, where they are known."""
    change = np.abs(y[lag:] - y[:-lag])
    return change[np.isfinite(change)]
