r"""Groups of series, and forecasts of series and groups that add up.

Let b be the values of m series and S b those of all n: of the g groups, which are sums, and of the
series. Forecasts :math:`\hat y` of all n that were made one by one seldom add up. Reconciled, the
forecasts of the series are

.. math:: \tilde b = \hat b - (W U)_b \, (U' W U)^{-1} \, U' \hat y, \qquad \tilde y = S \tilde b

where :math:`U' \hat y` (g,) is by how much each group differs from the sum of its series, and W is
the covariance of forecast errors, up to a factor. Among all linear ways that leave unbiased
forecasts unbiased, this one has the smallest total variance (Wickramasuriya, Athanasopoulos and
Hyndman, 2019: MinT). Groups are set to sums at the end, so they add up whatever was rounded before.

W is diagonal, or the shrunken covariance of Schäfer and Strimmer (2005), a diagonal and a matrix of
as low rank as there are errors. So nothing larger than (n, number of errors) is dense: the diagonal
part of :math:`U' W U` is sparse and factorized once, the rest is added by Woodbury's identity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import splu

from rbfdiffnet.support.arrays import Array, Ints, Mask

#: Names of the level above all others and of the one below.
TOTAL, SERIES = "Total", "series"
#: Ways to reconcile; see `make_reconciler`.
RECONCILERS = ("variance", "structural", "mint", "bottom_up", "none")

_FEWEST_ERRORS = 2  # of a series, for a variance
_LEAST_SHARE = 1e-6  # of the diagonal in the covariance, without which it may be singular
_SMALLEST = 1e-12  # variance, as a share of the largest


class Level(NamedTuple):
    """A level of groups: its name, the names of its groups, and the group (m,) of each series."""

    name: str
    groups: list[str]
    codes: Ints


def find_levels(
    labels: Mapping[str, npt.NDArray[Any]], spec: Sequence[Sequence[str]]
) -> list[Level]:
    """Return the total and a level for each list of columns, groups in the order of their names.

    `labels` (m,) hold text. A level whose groups are single series is left out: these are the
    series themselves.
    """
    m = len(next(iter(labels.values())))
    levels = [Level(TOTAL, [TOTAL], np.zeros(m, dtype=np.int64))]
    for columns in spec:
        numbers = [
            np.unique(labels[name].astype(np.str_), return_inverse=True)[1] for name in columns
        ]
        _, first, codes = np.unique(
            np.stack(numbers), axis=1, return_index=True, return_inverse=True
        )
        names = np.array(["/".join(labels[name][i] for name in columns) for i in first.tolist()])
        order = np.argsort(names, kind="stable")
        if first.size < m:
            codes = np.argsort(order)[codes.ravel()]
            levels.append(Level("/".join(columns), names[order].tolist(), codes))
    return levels


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Which of n series are sums of which others.

    `bottom` (m,) are the positions of the series that are sums of no others, `groups` (g,) those of
    the sums. `members` (g, m) has a one for every series of a group.
    """

    bottom: Ints
    groups: Ints
    members: sparse.csr_array

    @classmethod
    def of(cls, levels: Sequence[Level], bottom: Ints, groups: Ints) -> Hierarchy:
        """Return the structure of levels whose groups and series have these positions."""
        columns = np.arange(bottom.size)
        blocks = [
            sparse.csr_array(
                (np.ones(bottom.size), (level.codes, columns)), (len(level.groups), bottom.size)
            )
            for level in levels
        ]
        return cls(bottom, groups, sparse.csr_array(sparse.vstack(blocks, format="csr")))

    def among(self, known: Mask) -> Hierarchy:
        """Return the structure of some of the n series, and of the groups that have any of them."""
        own = known[self.bottom]
        members = self.members[:, np.flatnonzero(own)]
        some = np.flatnonzero(np.diff(members.indptr))
        return Hierarchy(self.bottom[own], self.groups[some], members[some])

    def without(self, series: Mask) -> Hierarchy:
        """Return the structure without the groups that have any of some of the n series."""
        rest = np.flatnonzero(self.members @ series[self.bottom].astype(np.float64) == 0.0)
        return Hierarchy(self.bottom, self.groups[rest], self.members[rest])

    @property
    def sizes(self) -> Array:
        """How many series each group has, (g,)."""
        return np.diff(self.members.indptr).astype(np.float64)

    def sum_up(self, values: Array) -> Array:
        """Return values (n, ...) with those of groups replaced by the sums of their series."""
        result = values.copy()
        flat = result.reshape(len(values), -1)
        flat[self.groups] = self.members @ flat[self.bottom]
        return result

    def average(self, values: Array) -> Array:
        """Return values (n, ...) with those of groups replaced by the means of their series."""
        result = self.sum_up(values)
        result.reshape(len(values), -1)[self.groups] /= self.sizes[:, None]
        return result


@dataclass(frozen=True, eq=False)
class Reconciler:
    """A linear map of forecasts of a hierarchy to forecasts that add up.

    The covariance of forecast errors is W = diag(`variances`) + `shared` `shared`', with shapes
    (n,) and (n, T), T = 0 where errors of different series are taken to be independent.
    """

    hierarchy: Hierarchy
    variances: Array
    shared: Array

    def apply(self, values: Array) -> Array:
        """Return values (n, ...) that add up; those of series outside of the hierarchy stay."""
        own = self.hierarchy
        if not own.groups.size:
            return values.copy()
        flat = values.reshape(len(values), -1)
        base = flat[own.bottom]
        found = self._solve(flat[own.groups] - own.members @ base)
        base = base + self.variances[own.bottom, None] * (own.members.T @ found)
        base -= self.shared[own.bottom] @ (self._shared_gaps.T @ found)
        result = values.copy()
        result.reshape(len(values), -1)[own.bottom] = base
        return own.sum_up(result)

    def without(self, series: Mask) -> Reconciler:
        """Return the map that asks no group which has any of some of the n series."""
        if not series.any():
            return self
        return Reconciler(self.hierarchy.without(series), self.variances, self.shared)

    @cached_property
    def _shared_gaps(self) -> Array:
        """U' shared, (g, T)."""
        own = self.hierarchy
        return np.asarray(self.shared[own.groups] - own.members @ self.shared[own.bottom])

    @cached_property
    def _factors(self) -> tuple[Array, Any]:
        """The diagonal part of U' W U (g, g), scaled to a diagonal of ones, and its factors."""
        own = self.hierarchy
        spread = _diagonal(self.variances[own.bottom])
        matrix = own.members @ spread @ own.members.T
        matrix = matrix + _diagonal(self.variances[own.groups])
        scale = 1.0 / np.sqrt(matrix.diagonal())
        matrix = sparse.csc_array(_diagonal(scale) @ matrix @ _diagonal(scale))
        matrix.indices = matrix.indices.astype(np.intc)  # SuperLU knows no others
        matrix.indptr = matrix.indptr.astype(np.intc)
        return scale, splu(
            matrix,
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )

    def _solve_sparse(self, values: Array) -> Array:
        scale, factors = self._factors
        return np.asarray(scale[:, None] * factors.solve(scale[:, None] * values))

    @cached_property
    def _correction(self) -> tuple[Array, Any]:
        """What Woodbury's identity needs: solutions (g, T), and a factor (T, T)."""
        gaps = self._shared_gaps
        solved = self._solve_sparse(gaps)
        return solved, cho_factor(np.eye(gaps.shape[1]) + gaps.T @ solved)

    def _solve(self, gaps: Array) -> Array:
        """Return the inverse of U' W U times gaps (g, k)."""
        found = self._solve_sparse(gaps)
        if self.shared.shape[1]:
            solved, factor = self._correction
            found -= solved @ cho_solve(factor, self._shared_gaps.T @ found)
        return found


def make_reconciler(
    hierarchy: Hierarchy,
    n: int,
    method: str,
    errors: Array | None = None,
    n_independent: float | None = None,
    scales: Array | None = None,
) -> Reconciler | None:
    """Return the map of a method for n series; None for "none" and "bottom_up", which need none.

    Nor does a hierarchy without groups.

    For "variance" a variance is the mean square of `errors` (n, T), NaN where unknown; what a whole
    window is off by counts, too. For "structural" the variance of a group is the number of its
    series. For "mint" the covariance is that of `errors`, shrunk by `shrink_covariance`. Variances
    are drawn to `scales` (n,), see `_draw_variances`; without these, unknown ones are in proportion
    to the number of series.
    """
    if method in ("none", "bottom_up") or not hierarchy.groups.size:
        return None
    sizes = np.ones(n)
    sizes[hierarchy.groups] = hierarchy.sizes
    if method == "structural" or errors is None:
        return Reconciler(hierarchy, sizes, np.empty((n, 0)))
    everyone = np.concatenate([hierarchy.groups, hierarchy.bottom])
    own = errors[everyone]
    counts = np.isfinite(own).sum(axis=1)
    if method == "variance":
        found = np.nansum(own**2, axis=1) / np.where(counts > 0, counts, np.nan)
        factor, share = np.empty((everyone.size, 0)), 1.0
    else:
        found, factor, share = shrink_covariance(own, n_independent)
    if scales is None:
        found = _draw_variances(found, sizes[everyone], np.inf)
    else:
        n_known = counts / own.shape[1] * (n_independent or own.shape[1])
        found = _draw_variances(found, scales[everyone], n_known)
    largest = float(found.max(initial=0.0))
    variances, shared = sizes, np.zeros((n, factor.shape[1]))
    shared[everyone] = factor
    if largest > 0.0:
        variances[everyone] = np.maximum(found, _SMALLEST * largest)
    return Reconciler(hierarchy, share * variances, shared)


def _draw_variances(variances: Array, scales: Array, n_errors: Array | float) -> Array:
    r"""Return variances (n,) drawn to what is usual, and NaN replaced by it.

    .. math:: v_i = \frac{k_i s_i^2 + u_i}{k_i + 1}, \qquad
        u_i = c_i \, \operatorname{median}_j (s_j^2 / c_j)

    where s^2 is the variance of k independent errors, `n_errors` (n,), and c a scale (n,): what is
    usual counts as one more error. A series of scale 0 that never errs keeps its variance of 0.
    """
    known = np.isfinite(variances)
    some = known & (variances > 0.0) & (scales > 0.0)
    usual = scales * (np.median(variances[some] / scales[some]) if some.any() else 1.0)
    return np.where(known, variances + (usual - variances) / (n_errors + 1.0), usual)


def shrink_covariance(
    errors: Array, n_independent: float | None = None
) -> tuple[Array, Array, float]:
    r"""Return variances v (n,), a factor F (n, T), and the share a of the diagonal.

    .. math:: W = a \, \mathrm{diag}(v) + F F', \qquad F F' = (1 - a) \, C

    where C is the covariance of errors (n, T) and a the share that Schäfer and Strimmer (2005) find
    best: the variance of all correlations as a share of their squares, at most 1. Where errors come
    in runs, they say as much as `n_independent` would, by default T. A missing error (NaN) says
    nothing about covariances; a series with fewer than two has an unknown variance, NaN.
    """
    known = np.isfinite(errors)
    counts = known.sum(axis=1)
    means = np.where(known, errors, 0.0).sum(axis=1) / np.maximum(counts, 1)
    centered = np.where(known, errors - means[:, None], 0.0)
    squares = (centered**2).sum(axis=1)
    usable = counts >= _FEWEST_ERRORS
    freedom = np.maximum(counts - 1, 1)
    variances = np.where(usable, squares / freedom, np.nan)
    deviation = np.sqrt(squares / np.maximum(counts, 1))
    some = usable & (deviation > 0.0)
    units = centered[some] / deviation[some, None]
    share = _best_share(units, n_independent or errors.shape[1]) if some.any() else 1.0
    return variances, np.sqrt((1.0 - share) / freedom)[:, None] * centered, share


def _best_share(units: Array, n_independent: float) -> float:
    """Return the share of the diagonal for errors (n, T) of mean 0 and variance 1.

    Products of two series at a time have a mean, their correlation, and squares. Both are summed
    over all pairs of different series, without a matrix of pairs.
    """
    n_errors = units.shape[1]
    squares = units**2
    products = float((squares.sum(axis=0) ** 2).sum() - (squares**2).sum())
    alone = float((squares.mean(axis=1) ** 2).sum())
    correlations = float(((units.T @ units) ** 2).sum()) / n_errors**2 - alone
    if not correlations > 0.0:
        return 1.0
    noise = (products - n_errors * correlations) / (n_independent * (n_errors - 1))
    return float(np.clip(noise / correlations, _LEAST_SHARE, 1.0))


def _diagonal(values: Array) -> sparse.dia_array:
    """Return a diagonal matrix."""
    return sparse.dia_array((values[None], [0]), shape=(values.size, values.size))
