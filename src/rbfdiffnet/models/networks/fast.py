r"""Many series, each with a small network of its own, in the time others take to fit one.

The structure is the paper's: differences, windows, K-Means, order 1. Every step works on all series
of the same length at once (`series.outliers`, `series.differences`, `batch.train`), with NumPy,
with numba where it is installed, or with PyTorch on a GPU. The networks stay together in a batch,
and so do their forecasts. Series with further inputs, other transforms or several steps at once are
left to `rbfdiffnet.models.networks.series_model`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.batch.backend import Backend, backend_for, padded_rows
from rbfdiffnet.batch.train import BatchNetworks, forecast_batch, train
from rbfdiffnet.models.networks.series_model import CleaningCache, SeriesModel
from rbfdiffnet.models.networks.window_model import (
    FEWEST_ROWS,
    BatchMember,
    TooShortError,
    WindowModel,
    affordable_centers,
    too_short,
)
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.series.differences import Differences, choose_differences
from rbfdiffnet.series.outliers import NO_OUTLIERS, OutlierRule, find_outliers
from rbfdiffnet.series.prepare import Preparation, fill_gaps
from rbfdiffnet.series.series import NUMERICAL, Series, UnfitError, check_fit
from rbfdiffnet.series.transforms import Compose, Difference, Rescale
from rbfdiffnet.series.windows import stack_windows
from rbfdiffnet.support.arrays import Array, Ints
from rbfdiffnet.support.parallel import count_threads, even_chunks, group_equal, parallel_map
from rbfdiffnet.support.stability import forecast_bounds

_TRANSFORMS = ("auto", "mean")
_MOST_DIFFERENCES = 10
_VALUES_WORTH_A_THREAD = 8_192
_ROUNDING = 1e-12  # of the largest value: smaller differences are none
_DECIMALS = 9


@dataclass(frozen=True)
class FastFit:
    """Networks of B series of the same length."""

    backend: Backend  # where networks and window are
    networks: BatchNetworks
    season_length: int
    window: Any  # the latest differences in units, (B, n_lags)
    unit: Array  # spread of the differenced series, (B,)
    mean: Array  # mean of the differenced series, (B,)
    length: int  # number of values of each series
    is_outlier: Any  # (B, length)
    latest: Array  # latest values without outliers and gaps, (B, n_lags + season_length + 10)
    low: Array  # bounds of forecasts, (B,)
    high: Array
    differences: list[tuple[Difference, ...]]  # of each series
    rules: list[OutlierRule]  # of each series
    n_rows: Ints  # how many windows there were to learn from, (B,)

    def forecast(self, h: int) -> Array:
        """Forecast h steps, (B, h); NaN for series with too few rows."""
        path = forecast_batch(self.networks, self.window, h)
        path = self.backend.to_numpy(path) * self.unit[:, None] + self.mean[:, None]
        for steps, members in group_equal(self.differences).items():
            path[members] = Compose(steps).invert(path[members], self.latest[members])
        path = np.clip(path, self.low[:, None], self.high[:, None])
        return np.where(self.n_rows[:, None] >= FEWEST_ROWS, path, np.nan)

    def models(self) -> list[SeriesModel | None]:
        """The models of the series, None for those with too few rows."""
        networks, is_outlier = self.networks, self.backend.to_numpy(self.is_outlier)
        large = self.backend.to_numpy(networks.largest).tolist()
        lags, season = tuple(range(1, networks.centers.shape[2] + 1)), self.season_length
        steps, ends = np.nonzero(is_outlier)[1], np.cumsum(is_outlier.sum(axis=1)).tolist()
        models: list[SeriesModel | None] = []
        for i, n_rows in enumerate(self.n_rows):
            if n_rows < FEWEST_ROWS:
                models.append(None)
                continue
            preparation = Preparation(
                log=False,
                effects=None,
                season_length=season,
                rule=self.rules[i],
                steps=Compose((*self.differences[i], Rescale(float(self.mean[i]), 1.0))),
                low=float(self.low[i]),
                high=float(self.high[i]),
            )
            member, unit = BatchMember(networks, i), float(self.unit[i])
            windows = WindowModel(member, lags, "none", 1, unit, large[i])
            outliers = steps[ends[i - 1] if i else 0 : ends[i]]
            seen = CleaningCache(self.length, self.latest[i], outliers)
            models.append(SeriesModel(preparation, windows, seen=seen))
        return models


def fit_fast(
    y: Array,
    *,
    season_length: int,
    n_lags: int,
    n_centers: int = 28,
    clean: bool = True,
    backend: Backend | None = None,
) -> FastFit:
    r"""Fit networks to series of the same length, (B, T) with NaN where values are missing.

    .. math:: y \to \text{outliers and gaps filled} \to
        \text{differenced} \to \text{less the mean} \to \text{windows}

    There must be more values than lags. Outliers count as missing if `clean`. Short series get
    fewer centers.
    """
    backend = backend or backend_for("cpu")
    xp = backend.xp
    y = backend.to_device(y)
    is_outlier = xp.zeros_like(y) > 0
    rules = [NO_OUTLIERS] * len(y)
    if clean:
        is_outlier, found = find_outliers(y, season_length, backend)
        rules = found.split(backend)
    u, known = fill_gaps(y, is_outlier, season_length, backend)
    differences = choose_differences(u, season_length, backend)
    start = backend.to_device(differences.lost)[:, None]
    z, mean, unit = _standardize(differences.z, start, backend.highest(xp.abs(u)), backend)
    known = _known_differences(known, differences, season_length, backend)
    use = known & (backend.arange(y.shape[1], y)[None] >= start + n_lags)
    networks, n_rows = _train_on_windows(z, use, n_lags, n_centers, backend)
    low, high = (backend.to_numpy(bound) for bound in (backend.lowest(u), backend.highest(u)))
    low, high = forecast_bounds(low, high)
    kinds = zip(differences.seasonal.tolist(), differences.counts.tolist(), strict=True)
    return FastFit(
        backend=backend,
        networks=networks,
        season_length=season_length,
        window=z[:, -n_lags:],
        unit=backend.to_numpy(unit),
        mean=backend.to_numpy(mean),
        length=y.shape[1],
        is_outlier=is_outlier,
        latest=backend.to_numpy(u[:, -(n_lags + season_length + _MOST_DIFFERENCES) :]),
        low=low,
        high=high,
        differences=[_difference_steps(season_length if s else 0, n) for s, n in kinds],
        rules=rules,
        n_rows=backend.to_numpy(n_rows).astype(np.int64),
    )


@cache
def _difference_steps(season_length: int, count: int) -> tuple[Difference, ...]:
    """A difference to the season before, unless its length is 0, and then first differences."""
    first = (Difference(season_length),) if season_length else ()
    return (*first, *[Difference()] * count)


def _standardize(z: Any, start: Any, size: Any, backend: Backend) -> tuple[Any, Any, Any]:
    """Return differences from `start` on in units of their spread, 0 before; means and units.

    Differences of series of this size that are nothing but rounding errors become 0. Others are
    rounded: the lags of a periodic series must not differ by rounding errors.
    """
    xp, none = backend.xp, backend.xp.zeros_like(z)
    valid, n_valid = backend.arange(z.shape[1], z)[None] >= start, z.shape[1] - start[:, 0]
    mean = xp.where(valid, z, none).sum(axis=1) / n_valid
    z = xp.where(valid, z - mean[:, None], none)
    unit = xp.sqrt((z**2).sum(axis=1) / n_valid)
    rough = unit > _ROUNDING * size
    unit = xp.where(rough, unit, xp.ones_like(unit))
    z = xp.where(rough[:, None], xp.round(z / unit[:, None], decimals=_DECIMALS), none)
    return z, mean, unit


def _known_differences(
    known: Any, differences: Differences, season_length: int, backend: Backend
) -> Any:
    """Tell which differences are made of observations only."""
    if bool(known.all()):
        return known
    lags = [(season_length, differences.seasonal)]
    lags += [(1, differences.counts > k) for k in range(int(differences.counts.max(initial=0)))]
    for lag, which in lags:
        both = known[:, lag:] & (known[:, :-lag] | ~backend.to_device(which)[:, None])
        known = backend.xp.concatenate([known[:, :lag], both], axis=1)
    return known


def _train_on_windows(
    z: Any, use: Any, n_lags: int, n_centers: int, backend: Backend
) -> tuple[BatchNetworks, Any]:
    """Train on the windows of z (B, T) before the values that the mask has; also count these (B,).

    Other values have weight 0, and so has the padding before the first ones.
    """
    xp, length = backend.xp, z.shape[1]
    rows = padded_rows(length - n_lags)
    padding = [xp.zeros_like(z[:, :1])] * (rows + n_lags - length)
    z = xp.concatenate([*padding, z], axis=1)
    weight = xp.concatenate([*padding, backend.float(use[:, n_lags:])], axis=1)
    X = stack_windows(z, n_lags, rows, xp)
    n_centers = affordable_centers(n_centers, length - n_lags)
    networks = train(X, z[:, n_lags:], weight, n_centers=n_centers, backend=backend)
    return networks, weight.sum(axis=1)


def _cut_for_threads(
    n: int, backend: Backend, length: int, n_lags: int, n_centers: int, n_jobs: int
) -> list[slice]:
    """Cut n series of the same length into chunks that are trained at a time."""
    largest = backend.batch_size(length, n_lags, n_centers)
    return even_chunks(n, largest, count_threads(n_jobs), _VALUES_WORTH_A_THREAD // length + 1)


# Arrays ---------------------------------------------------------------------------------------


def forecast_arrays(
    values: npt.ArrayLike,
    h: int,
    *,
    season_length: int = 1,
    n_lags: int | None = None,
    n_centers: int = 28,
    n_jobs: int = 1,
    device: str = "cpu",
) -> Array:
    """Forecast series of the same length, without frames.

    `values` has shape (n, T), with NaN where a value is missing, and the forecasts have shape
    (n, h), with NaN where a series is too short or has no values. By default there are two seasons
    of lags. `device` is ``"cpu"`` or ``"cuda"``, and `n_jobs` the number of threads.
    """
    y = np.ascontiguousarray(values, dtype=np.float64)
    if y.ndim != 2:
        raise ValueError(f"values must have two dimensions, series and time; got shape {y.shape}.")
    lags = 2 * max(season_length, 2) if n_lags is None else n_lags
    numbers = {"h": h, "season_length": season_length, "n_lags": lags, "n_centers": n_centers}
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} must be at least 1; got {number}.")
    backend = backend_for(device)
    forecasts = np.full((len(y), h), np.nan)
    if y.shape[1] <= lags or not len(y):
        return forecasts
    n_jobs = backend.lanes if backend.lanes > 1 else n_jobs

    def forecast(chunk: slice) -> None:
        own = y[chunk]
        known = np.isfinite(own)
        some = known.any(axis=1)
        if not known.all():
            own = np.where(known, own, np.nan)[some]
        if not len(own):
            return
        with np.errstate(all="ignore"), backend.lane():
            fit = fit_fast(
                own, season_length=season_length, n_lags=lags, n_centers=n_centers, backend=backend
            )
            forecasts[chunk][some] = fit.forecast(h)

    chunks = _cut_for_threads(len(y), backend, y.shape[1], lags, n_centers, n_jobs)
    parallel_map(forecast, chunks, n_jobs)
    return forecasts


# Panels ---------------------------------------------------------------------------------------


def is_fast(plan: Plan, series: Series) -> bool:
    """Tell whether a series can be fitted here."""
    lags = plan.lags
    return (
        plan.fast
        and plan.noise is None
        and plan.block == 1
        and not plan.log
        and plan.transforms == _TRANSFORMS
        and lags is not None
        and lags == tuple(range(1, len(lags) + 1))
        and not series.known_ahead.shape[1]
        and not series.extra.shape[1]
    )


def fit_models(
    panel: Sequence[Series], plans: Sequence[Plan], n_jobs: int = 1
) -> list[SeriesModel | str]:
    """Fit a network to each series; where that cannot be done, return the reason.

    The plans, one for each series, differ by their lags at most, and all are `is_fast`. The results
    do not depend on the number of threads.
    """
    results = _fit(panel, plans, n_jobs)
    fewer = {
        i: plan
        for i, (result, series) in enumerate(zip(results, panel, strict=True))
        if isinstance(result, TooShortError) and (plan := plans[i].shortened(series.y.size))
    }
    again = _fit([panel[i] for i in fewer], list(fewer.values()), n_jobs)
    for i, result in zip(fewer, again, strict=True):
        results[i] = result
    return [str(result) if isinstance(result, UnfitError) else result for result in results]


def _fit(
    panel: Sequence[Series], plans: Sequence[Plan], n_jobs: int
) -> list[SeriesModel | UnfitError]:
    """Fit networks with the lags of the plans, or say why there are none."""
    results: dict[int, SeriesModel | UnfitError] = {}
    sizes: dict[int, tuple[int, int]] = {}  # length and number of lags of the others
    for i, (series, plan) in enumerate(zip(panel, plans, strict=True)):
        n_lags, length = len(plan.lags or ()), series.y.size
        try:
            check_fit(series)
            if length - n_lags < FEWEST_ROWS:
                raise too_short(n_lags, max(length - n_lags, 0))
            sizes[i] = length, n_lags
        except UnfitError as error:
            results[i] = error
    if sizes:
        plan, usable = plans[0], list(sizes)
        backend = backend_for(plan.device)
        n_jobs = backend.lanes if backend.lanes > 1 else n_jobs
        jobs = []
        for (length, n_lags), group in group_equal(sizes.values()).items():
            n_centers = plan.settings(n_lags).n_centers
            chunks = _cut_for_threads(len(group), backend, length, n_lags, n_centers, n_jobs)
            jobs += [(n_lags, [usable[k] for k in group[chunk]]) for chunk in chunks]

        def fit(job: tuple[int, list[int]]) -> list[SeriesModel | UnfitError]:
            n_lags, members = job
            return _fit_together(np.stack([panel[i].y for i in members]), n_lags, plan, backend)

        for (_, members), found in zip(jobs, parallel_map(fit, jobs, n_jobs), strict=True):
            results.update(zip(members, found, strict=True))
    return [results[i] for i in range(len(panel))]


def _fit_together(
    y: Array, n_lags: int, plan: Plan, backend: Backend
) -> list[SeriesModel | UnfitError]:
    """Fit networks to series (B, T); one by one where they cannot be fitted together."""
    try:
        with np.errstate(all="ignore"), backend.lane():
            fitted = fit_fast(
                y,
                season_length=plan.season_length,
                n_lags=n_lags,
                n_centers=plan.settings(n_lags).n_centers,
                clean=plan.clean,
                backend=backend,
            )
    except NUMERICAL as error:
        if len(y) == 1:
            return [UnfitError(f"numerical failure ({error})")]
        return [_fit_together(own[None], n_lags, plan, backend)[0] for own in y]
    models = zip(fitted.models(), fitted.n_rows.tolist(), strict=True)
    return [model or too_short(n_lags, n) for model, n in models]
