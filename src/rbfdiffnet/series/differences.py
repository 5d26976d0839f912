r"""Choose which differences to take: the augmented Dickey-Fuller test, and a trial of the season.

.. math:: \Delta s_t = \alpha + \gamma s_{t-1} + \sum_{i=1}^{p} \delta_i \Delta s_{t-i} + e_t

where a series with a unit root has :math:`\gamma = 0`. The statistic is the t-ratio of
:math:`\gamma`; its distribution under a unit root is MacKinnon's. The number of lags p is the one
with the lowest Akaike criterion, all of them compared on the same rows.

Many series are tested at once, and all lag orders come from one Gram matrix. Let L be the Cholesky
factor of the Gram of :math:`[s_{t-1}, \Delta s_{t-1}, \ldots, \Delta s_{t-P}, \Delta s_t]`, columns
centered: its leading blocks are the factors of the shorter regressions, so the residual sum of
squares with p lags is the sum of the squares of the last row of L from column p + 1 on. Series
whose Gram is nearly singular, such as those that their own past predicts without error, are tested
one by one: there the factor comes from the columns themselves, by orthogonalization.

The test, the paper's way, says how often a series must be differenced to have no unit root, not
whether its season should be differenced away. That is tried out: two linear autoregressions over
two seasons, one on the seasonal difference and one on first differences, forecast the latter half
of the series from some origins, and the lower squared error decides.

.. math::

    e = \nabla^{-1} (z - \hat z), \qquad \hat z_{o+k} = W_k \cdot (z_{o-l+1}, \ldots, z_o)

where :math:`\nabla` is the differencing, z the differenced series, and :math:`W_k` the weights of
the k-th step of a recursive forecast. All of it works on many series of the same length at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from rbfdiffnet.batch.backend import NUMPY, Backend
from rbfdiffnet.series.windows import stack_windows
from rbfdiffnet.support.arrays import Array, Ints, Mask

_MOST_DIFFERENCES = 10
_ORIGINS = 26
_RIDGE = 1e-4

# Of the test:
# A column depends linearly on the columns before it when they leave so little of its square.
_DEPENDENT = 1e-13
# Where less than this is left, the factor of a Gram is not trusted.
_DOUBTFUL = 1e-7
# Spread of a column, for values between -1 and 1, that is but rounding of a constant.
_ROUNDING = 1e-14

# J. G. MacKinnon (1994), table 3, one variable, constant: p = Phi(polynomial of the statistic),
# with one polynomial left of _CHANGE and one right of it.
_SMALLEST, _CHANGE, _LARGEST = -18.83, -1.61, 2.74
_SMALL_P = (2.1659, 1.4412, 0.038269)
_LARGE_P = (1.7339, 0.93202, -0.12745, -0.010368)


@dataclass(frozen=True)
class Differences:
    """Differences of many series: one to the season before, then first ones."""

    z: Any  # the differenced series (B, T), 0 where values are lost at the start
    seasonal: Mask  # whether there is a seasonal difference, (B,)
    counts: Ints  # numbers of first differences, (B,)
    lost: Ints  # numbers of values lost, (B,)


def choose_differences(u: Any, season_length: int, backend: Backend = NUMPY) -> Differences:
    """Choose the differences of each of many series (B, T) without gaps."""
    plain = _take_first_differences(u, backend)
    lags, horizon = 2 * max(season_length, 2), 2 * season_length
    first = max(season_length, _MOST_DIFFERENCES)  # the same for all: no series sees the others
    if season_length == 1 or u.shape[1] - horizon - first - lags < horizon:
        return plain
    seasonal = _take_seasonal_difference(u, season_length, backend)
    errors = [
        _forecast_errors(d, season_length, first, lags, horizon, backend) for d in (plain, seasonal)
    ]
    better = errors[1] < errors[0]
    which = backend.to_device(better)[:, None]
    return Differences(
        backend.xp.where(which, seasonal.z, plain.z),
        better,
        np.where(better, seasonal.counts, plain.counts),
        np.where(better, seasonal.lost, plain.lost),
    )


def _take_first_differences(u: Any, backend: Backend) -> Differences:
    """Take as many first differences as the Dickey-Fuller test asks for."""
    xp, z = backend.xp, u
    counts = n_differences_many(u, max_differences=_MOST_DIFFERENCES, backend=backend)
    for k in range(int(counts.max(initial=0))):
        change = xp.concatenate([0.0 * z[:, : k + 1], z[:, k + 1 :] - z[:, k:-1]], axis=1)
        z = xp.where(backend.to_device(counts > k)[:, None], change, z)
    return Differences(z, np.zeros(len(u), dtype=bool), counts, counts)


def _take_seasonal_difference(u: Any, season: int, backend: Backend) -> Differences:
    """Take one difference to the season before."""
    z = backend.xp.concatenate([0.0 * u[:, :season], u[:, season:] - u[:, :-season]], axis=1)
    none = np.zeros(len(u), dtype=np.int64)
    return Differences(z, np.ones(len(u), dtype=bool), none, none + season)


def _forecast_errors(
    differences: Differences, season: int, first: int, lags: int, horizon: int, backend: Backend
) -> Array:
    """Return mean squared errors (B,) of a linear autoregression; infinite where it explodes."""
    xp, z = backend.xp, differences.z
    length = z.shape[1]
    mean = z[:, first:].mean(axis=1)[:, None]
    z = z - mean
    n = length - first - lags
    columns = stack_windows(z[:, first:], lags + 1, n, xp)
    gram = backend.contract(columns, columns)
    size = backend.diagonal_of(gram).mean(axis=1)
    penalty = backend.diagonal((_RIDGE * size + 1e-300)[:, None] + 0.0 * gram[:, 0, :-1])
    weights = backend.solve(gram[:, :-1, :-1] + penalty, gram[:, :-1, -1])[:, :, None]
    # What each value of a window adds to each step: forecasts from windows of one 1.
    eye = xp.eye(lags, **backend.kind(z))[None] + 0.0 * gram[:, :-1, :-1]
    states = xp.concatenate([eye, xp.zeros((len(z), lags, horizon), **backend.kind(z))], axis=2)
    for k in range(horizon):
        states[:, :, lags + k : lags + k + 1] = states[:, :, k : k + lags] @ weights
    begin = max(first + lags, length // 2)
    origins = np.unique(np.linspace(begin, length - horizon, _ORIGINS).astype(np.int64))
    windows = xp.stack([z[:, o - lags : o + horizon] for o in origins.tolist()], axis=1)
    error = windows[:, :, lags:] - windows[:, :, :lags] @ states[:, :, lags:]
    counts = backend.to_device(differences.counts)
    for k in range(int(differences.counts.max(initial=0))):
        error = xp.where((counts > k)[:, None, None], xp.cumsum(error, 2), error)
    if differences.seasonal.any():
        blocks = error.reshape(*error.shape[:2], -1, season)
        error = xp.cumsum(blocks, 2).reshape(error.shape)
    found = backend.to_numpy((error**2).mean(axis=2).mean(axis=1))
    return np.where(np.isfinite(found), found, np.inf)


# The test ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DickeyFuller:
    """Result of the test: the t-ratio, its p-value, and the number of lagged differences.

    The p-value is the probability of a smaller statistic for a series with a unit root.
    """

    statistic: float
    p_value: float
    n_lags: int


def adf_test(series: npt.ArrayLike) -> DickeyFuller:
    r"""Test for a unit root, with a constant and lags by Akaike's criterion: paper, eq. (adf).

    .. math::

        \mathrm{AIC}(p) = n \log \frac{\mathrm{RSS}_p}{n} + 2 p, \qquad 0 \le p \le P, \qquad
        P = \min\Big(\Big\lceil 12 \sqrt[4]{T / 100} \Big\rceil, \lfloor T / 2 \rfloor - 2\Big)

    and with the best p the regression is repeated on all rows it has data for.

    A constant series, and one of fewer than 4 values, has no test: its statistic and p-value are
    NaN. A series that its own past predicts without error gets a statistic of minus infinity, 0 or
    infinity, after the sign of :math:`\gamma` (a straight line: 0).

    D. A. Dickey, W. A. Fuller (1979), "Distribution of the estimators for autoregressive time
    series with a unit root", Journal of the American Statistical Association 74, 427-431.
    J. G. MacKinnon (1994), "Approximate asymptotic distribution functions for unit-root and
    cointegration tests", Journal of Business & Economic Statistics 12, 167-176.
    """
    statistic, n_lags = _test_many(_check(series)[None], NUMPY)
    return DickeyFuller(float(statistic[0]), float(_p_value(statistic)[0]), int(n_lags[0]))


def n_differences(
    series: npt.ArrayLike, *, max_differences: int = 10, significance: float = 0.05
) -> int:
    r"""Count the differences until the test calls a series stationary: paper, eq. (differences).

    .. math:: \min \{ d \ge 0 : p(\Delta^d s) < \alpha \}

    where :math:`\alpha` is the significance. Differencing also ends where the test ends: at a
    constant series, and at fewer than 4 values.
    """
    if max_differences < 0:
        raise ValueError(f"max_differences must not be negative, got {max_differences}.")
    if not 0.0 < significance < 1.0:
        raise ValueError(f"significance must lie between 0 and 1, got {significance}.")
    counts = n_differences_many(
        _check(series)[None], max_differences=max_differences, significance=significance
    )
    return int(counts[0])


def n_differences_many(
    series: Any,
    *,
    max_differences: int = 10,
    significance: float = 0.05,
    backend: Backend = NUMPY,
) -> Ints:
    """Count for many series (B, T), all finite, how often each must be differenced; shape (B,)."""
    counts = np.zeros(len(series), dtype=np.int64)
    left = np.arange(len(series))
    for _ in range(max_differences):
        p_values = _p_value(_test_many(series, backend)[0])
        again = ~(np.isnan(p_values) | (p_values < significance))
        if not again.any():
            break
        left, series = left[again], backend.select(series, np.flatnonzero(again))
        counts[left] += 1
        series = series[:, 1:] - series[:, :-1]
    return counts


def _test_many(series: Any, backend: Backend) -> tuple[Array, Ints]:
    """Return the statistics and the numbers of lags of many series (B, T)."""
    with np.errstate(all="ignore"):  # what is in doubt is tested again
        statistics, n_lags, sure = _test_by_gram(series, backend)
    for i in np.flatnonzero(~sure).tolist():
        statistics[i], n_lags[i] = _test_by_columns(backend.to_numpy(series[i]))
    return statistics, n_lags


def _most_lags(size: int) -> int:
    rule = float(12.0 * (size / 100.0) ** 0.25)
    return min(ceil(rule), size // 2 - 2)


def _test_by_gram(series: Any, backend: Backend) -> tuple[Array, Ints, Mask]:
    """Return statistics, numbers of lags, and which of them are beyond numerical doubt."""
    xp = backend.xp
    most = _most_lags(series.shape[1])
    if most < 1:
        none = np.zeros(len(series), dtype=np.int64)
        return np.zeros(len(series)), none, none > 0
    values = series - series.mean(axis=1)[:, None]
    size = backend.highest(xp.abs(values))
    values = values / xp.where(size > 0.0, size, xp.ones_like(size))[:, None]
    steps = values[:, 1:] - values[:, :-1]
    n = steps.shape[1] - most
    # Level, lagged differences, the target and a constant; rows whose lags all exist.
    lagged = [steps[:, most - i : most - i + n] for i in range(1, most + 1)]
    one = xp.ones_like(steps[:, :n])
    columns = xp.stack([values[:, most:-1], *lagged, steps[:, most:], one], axis=1)
    gram = backend.contract(columns, columns)
    _, moment, total, few = _regress(gram, backend)
    rss = total[:, None] - xp.cumsum(moment**2, 1)
    criterion = n * xp.log(xp.clip(rss, 1e-300, None)) + 2.0 * backend.arange(most + 1, series)
    lags = criterion.argmin(1)
    gram = _use_all_rows(gram, values, steps, lags, backend)
    root, moment, total, least = _regress(gram, backend)
    rss = total - (moment**2).sum(axis=1)
    coefficient = (root[:, :, 0] * moment).sum(axis=1)
    freedom = gram[:, -1, -1] - 2.0 - lags
    error = xp.sqrt(rss / freedom * (root[:, :, 0] ** 2).sum(axis=1))
    sure = (xp.minimum(few, least) > _DOUBTFUL) & (rss > _DOUBTFUL * total) & (freedom > 0)
    sure &= size > 0.0
    statistics, n_lags, sure = (backend.to_numpy(a) for a in (coefficient / error, lags, sure))
    return statistics, n_lags, sure


def _use_all_rows(gram: Any, values: Any, steps: Any, lags: Any, backend: Backend) -> Any:
    """Return the Gram of a regression with chosen lags (B,), on all rows that have these lags."""
    xp, most = backend.xp, gram.shape[1] - 3
    number = backend.arange(most + 1, steps)
    # The first rows are missing some lags, but with fewer lags they count: (B, columns, most).
    early = [xp.zeros_like(steps[:, :most]) for _ in range(most + 3)]
    early[0], early[-2], early[-1] = values[:, :most], steps[:, :most], 1.0 + early[-1]
    for i in range(1, most + 1):
        early[i][:, i:] = steps[:, : most - i]
    rows = xp.stack(early, axis=1)
    used = number[None] >= lags[:, None]  # row t has lags up to t
    gram = gram + backend.contract(rows * used[:, None, :most], rows)
    # Lags beyond the chosen one are taken out: nothing but ones on the diagonal.
    keep = xp.concatenate([used[:, :1] | True, number[None, 1:] <= lags[:, None]], axis=1)
    keep = xp.concatenate([keep, keep[:, :1], keep[:, :1]], axis=1)
    gram = xp.where(keep[:, :, None] & keep[:, None], gram, xp.zeros_like(gram))
    return gram + backend.diagonal(xp.where(keep, 0.0, 1.0) + 0.0 * gram[:, 0])


def _regress(gram: Any, backend: Backend) -> tuple[Any, Any, Any, Any]:
    """Regress the last but one column on the columns before it and a constant, the last.

    Returns L^-1 of the regressors' Cholesky factor, its product with the moments, the square of
    the target, and the smallest share of a column's square that the columns before it leave.
    """
    xp = backend.xp
    mean = gram[:, :-1, -1] / gram[:, -1, -1][:, None]
    centered = gram[:, :-1, :-1] - mean[:, :, None] * gram[:, -1, :-1][:, None]
    size = xp.sqrt(xp.clip(backend.diagonal_of(centered), 0.0, None))
    size = xp.where(size > 0.0, size, xp.ones_like(size))
    scaled = centered / size[:, :, None] / size[:, None]
    root = backend.root(scaled[:, :-1, :-1])
    least = 1.0 / backend.highest(backend.diagonal_of(root) ** 2)  # NaN where there is no factor
    moment = (root @ scaled[:, :-1, -1:])[..., 0] * size[:, -1:]
    return root / size[:, None, :-1], moment, centered[:, -1, -1], least


def _check(series: npt.ArrayLike) -> Array:
    values = np.asarray(series, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"The series must be one-dimensional, got shape {values.shape}.")
    finite = np.isfinite(values)
    if not finite.all():
        position = int(np.argmin(finite))
        raise ValueError(f"The series is not finite: {values[position]} at position {position}.")
    return values


def _test_by_columns(values: Array) -> tuple[float, int]:
    """Return the statistic of one series and its number of lags, even if columns are dependent."""
    if values.size < 4 or np.ptp(values) == 0.0:
        return np.nan, 0
    values = (values - values.mean()) / np.ptp(values)
    n_lags = _choose_lags(values, _most_lags(values.size))
    R, n_rows = _factor(values, n_lags)
    used = np.diag(R)[:-1] > 0.0
    if not used[0]:
        return 0.0, n_lags
    target, rss = R[:-1, -1][used], float(R[-1, -1] ** 2)
    first_row = np.linalg.inv(R[:-1, :-1][np.ix_(used, used)])[0]
    coefficient, total = float(first_row @ target), float(R[:, -1] @ R[:, -1])
    if rss <= _DEPENDENT * total or total == 0.0:
        sign = float(np.sign(coefficient))
        return (sign * np.inf if abs(coefficient) > 1e-9 else 0.0), n_lags
    variance = rss / (n_rows - 1 - used.sum())
    return coefficient / float(np.sqrt(variance * (first_row @ first_row))), n_lags


def _choose_lags(values: Array, most: int) -> int:
    R, n_rows = _factor(values, most)
    # Sums of squares from the end: entry p is the residual sum of squares with p lags.
    rss = np.cumsum(R[::-1, -1] ** 2)[::-1][1:]
    if rss[0] == 0.0:
        return 0
    exact = np.flatnonzero(rss <= _DEPENDENT * np.sum(R[:, -1] ** 2))
    if exact.size:
        return int(exact[0])
    criterion = n_rows * np.log(rss) + 2.0 * np.arange(most + 1)
    return int(np.argmin(criterion))


def _factor(values: Array, n_lags: int) -> tuple[Array, int]:
    """Return R of the QR factorization of level, lagged differences and target, all centered.

    Returns also the number of rows. A column that depends on earlier columns has a row of zeros.
    """
    steps = np.diff(values)
    n_rows = steps.size - n_lags
    lagged = [steps[n_lags - i : n_lags - i + n_rows] for i in range(1, n_lags + 1)]
    rest = np.stack([values[n_lags:-1], *lagged, steps[n_lags:]])
    rest -= rest.mean(axis=1, keepdims=True)
    sizes = np.linalg.norm(rest, axis=1)
    least = np.maximum(np.sqrt(_DEPENDENT) * sizes, _ROUNDING * np.sqrt(n_rows))
    R = np.zeros((n_lags + 2, n_lags + 2))
    for j in range(n_lags + 2):
        size = np.linalg.norm(rest[j])
        if size > least[j]:
            unit = rest[j] / size
            R[j, j:] = rest[j:] @ unit
            rest[j:] -= R[j, j:, None] * unit
    return R, n_rows


def _p_value(statistic: npt.ArrayLike) -> Array:
    value = np.clip(statistic, _SMALLEST, _LARGEST)
    small = np.polynomial.polynomial.polyval(value, _SMALL_P)
    large = np.polynomial.polynomial.polyval(value, _LARGE_P)
    p = ndtr(np.where(value <= _CHANGE, small, large))
    return np.where(value >= _LARGEST, 1.0, np.where(value <= _SMALLEST, 0.0, p))
