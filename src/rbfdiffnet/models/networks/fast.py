r"""Many series, each with a small network of its own, in the time others take to fit one.

The structure is the paper's: differences, windows, K-Means, order 1. Every step works on all series
of the same length at once (`series.outliers`, `series.differences`, `batch.train`), with NumPy,
with numba where it is installed, or with PyTorch on a GPU. The networks stay together in a batch,
and so do their forecasts. Series with further inputs, other transforms or several steps at once are
left to `rbfdiffnet.models.networks.series_model`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.batch.backend import Backend, backend_for, padded_rows
from rbfdiffnet.batch.networks import BatchNetworks, forecast_batch
from rbfdiffnet.batch.train import train
from rbfdiffnet.models.networks.series_model import CleaningCache, SeriesModel
from rbfdiffnet.models.networks.training_rows import FEWEST_ROWS
from rbfdiffnet.models.networks.window_model import WindowModel, affordable_centers
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.network.network import Network
from rbfdiffnet.series.differences import Differences, choose_differences
from rbfdiffnet.series.outliers import OutlierRule, find_outliers
from rbfdiffnet.series.prepare import Preparation, fill_gaps
from rbfdiffnet.series.series import NUMERICAL, Series, UnfitError, check_fit
from rbfdiffnet.series.transforms import Compose, Difference, Rescale
from rbfdiffnet.series.windows import stack_windows
from rbfdiffnet.support.arrays import Array, Ints, Mask
from rbfdiffnet.support.stability import forecast_bounds
from rbfdiffnet.support.threads import count_threads, parallel_map

_TRANSFORMS = ("auto", "mean")
_MOST_DIFFERENCES = 10
_VALUES_WORTH_A_THREAD = 8_192
_ROUNDING = 1e-12  # of the largest value: smaller differences are none
_DECIMALS = 9


class FastWindows(WindowModel):
    """One of the networks of a batch; the network itself is made when somebody asks for it.

    The class is frozen, so attributes are set past it.
    """

    batch: BatchNetworks
    number: int

    def __init__(self, batch: BatchNetworks, number: int, unit: float) -> None:
        lags, largest = tuple(range(1, batch.centers.shape[2] + 1)), float(batch.largest[number])
        values = {"lags": lags, "level": "none", "block": 1, "unit": unit, "largest": largest}
        vars(self).update(values, tracker=None, batch=batch, number=number)

    @cached_property
    def network(self) -> Network:
        """The network."""
        return self.batch.network(self.number)

    @classmethod
    def of(cls, network: Network, unit: float, largest: float) -> FastWindows:
        """Return a network that was made by `network`, in a batch of its own."""
        return cls(BatchNetworks.stack([network], [largest]), 0, unit)

    @staticmethod
    def gather(windows: Sequence[FastWindows]) -> BatchNetworks:
        """Return the networks of several windows as one batch."""
        parts = []
        for _, some in groupby(windows, key=lambda w: id(w.batch)):
            own = list(some)
            parts.append(own[0].batch.select([w.number for w in own]))
        return BatchNetworks.concatenate(parts)


@dataclass(frozen=True)
class FastFit:
    """Networks of B series of the same length."""

    backend: Backend  # where networks and window are
    networks: BatchNetworks
    season_length: int
    n_lags: int
    window: Any  # the latest differences in units, (B, n_lags)
    unit: Array  # spread of the differenced series, (B,)
    mean: Array  # mean of the differenced series, (B,)
    length: int  # number of values of each series
    is_outlier: Any  # (B, length)
    latest: Array  # latest values without outliers and gaps, (B, n_lags + season_length + 10)
    low: Array  # bounds of forecasts, (B,)
    high: Array
    seasonal: Mask  # whether there are differences to the season before, (B,)
    n_differences: Ints  # how many first differences are taken then, (B,)
    spread: Array  # as for `OutlierRule`, (B,)
    closures: Mask
    n_rows: Ints  # how many windows there were to learn from, (B,)

    def forecast(self, h: int) -> Array:
        """Forecast h steps, (B, h); NaN for series with too few rows."""
        path = forecast_batch(self.networks, self.window, h, self.backend.xp)
        path = self.backend.to_numpy(path) * self.unit[:, None] + self.mean[:, None]
        for steps, members in _group_equal(self._differences()):
            path[members] = Compose(steps).invert(path[members], self.latest[members])
        path = np.clip(path, self.low[:, None], self.high[:, None])
        return np.where(self.n_rows[:, None] >= FEWEST_ROWS, path, np.nan)

    def _differences(self) -> list[tuple[Difference, ...]]:
        kinds = zip(self.seasonal.tolist(), self.n_differences.tolist(), strict=True)
        return [_differences(self.season_length if s else 0, n) for s, n in kinds]

    def models(self) -> list[SeriesModel | None]:
        """The models of the series, None for those with too few rows."""
        networks, is_outlier = self.networks.to_numpy(), self.backend.to_numpy(self.is_outlier)
        differences, season = self._differences(), self.season_length
        models: list[SeriesModel | None] = []
        for i, n_rows in enumerate(self.n_rows):
            if n_rows < FEWEST_ROWS:
                models.append(None)
                continue
            preparation = Preparation(
                log=False,
                effects=None,
                season_length=season,
                rule=OutlierRule(season, float(self.spread[i]), bool(self.closures[i])),
                steps=Compose((*differences[i], Rescale(float(self.mean[i]), 1.0))),
                low=float(self.low[i]),
                high=float(self.high[i]),
            )
            seen = CleaningCache(self.length, self.latest[i], np.flatnonzero(is_outlier[i]))
            windows = FastWindows(networks, i, float(self.unit[i]))
            models.append(SeriesModel(preparation, windows, seen=seen))
        return models


@cache
def _differences(season_length: int, count: int) -> tuple[Difference, ...]:
    """A difference to the season before, unless its length is 0, and then first differences."""
    first = (Difference(season_length),) if season_length else ()
    return (*first, *[Difference()] * count)


def _group_equal(keys: Sequence[Any]) -> Iterator[tuple[Any, list[int]]]:
    """Each different key with the positions at which it is."""
    groups: dict[Any, list[int]] = {}
    for i, key in enumerate(keys):
        groups.setdefault(key, []).append(i)
    yield from groups.items()


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
    length = y.shape[1]
    is_outlier = xp.zeros_like(y) > 0
    spread, closures = xp.ones_like(y[:, 0]) * xp.inf, is_outlier[:, 0]
    if clean:
        is_outlier, spread, closures = find_outliers(y, season_length, backend)
    u, known = fill_gaps(y, is_outlier, season_length, backend)
    differences = choose_differences(u, season_length, backend)
    start = backend.to_device(differences.lost)[:, None]
    size = backend.highest(xp.abs(u))
    z, mean, unit = _standardize_differences(differences.z, start, size, backend)

    # The first values, lost to differences, have weight 0, and so has padding before them.
    rows = padded_rows(length - n_lags)
    front = rows + n_lags - length
    z = xp.concatenate([xp.zeros_like(z[:, :1])] * front + [z], axis=1)
    X = stack_windows(z, n_lags, rows, xp)
    known = _known_differences(known, differences, season_length, backend)
    use = (known & (backend.arange(length, y)[None] >= start + n_lags))[:, n_lags:]
    weight = xp.concatenate([xp.zeros_like(z[:, :1])] * front + [backend.float(use)], axis=1)
    n_centers = affordable_centers(n_centers, length - n_lags)
    networks = train(X, z[:, n_lags:], weight, n_centers=n_centers, backend=backend)
    low, high = (backend.to_numpy(bound) for bound in (backend.lowest(u), backend.highest(u)))
    low, high = forecast_bounds(low, high)
    return FastFit(
        backend=backend,
        networks=networks,
        season_length=season_length,
        n_lags=n_lags,
        window=z[:, -n_lags:],
        unit=backend.to_numpy(unit),
        mean=backend.to_numpy(mean),
        length=length,
        is_outlier=is_outlier,
        latest=backend.to_numpy(u[:, -(n_lags + season_length + _MOST_DIFFERENCES) :]),
        low=low,
        high=high,
        seasonal=differences.seasonal,
        n_differences=differences.counts,
        spread=backend.to_numpy(spread),
        closures=backend.to_numpy(closures),
        n_rows=backend.to_numpy(weight.sum(axis=1)).astype(np.int64),
    )


def _standardize_differences(
    z: Any, start: Any, size: Any, backend: Backend
) -> tuple[Any, Any, Any]:
    """Differences from `start` on in units of their spread, 0 before; their means and units.

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
    """Which differences are made of observations only."""
    if bool(known.all()):
        return known
    lags = [(season_length, differences.seasonal)]
    lags += [(1, differences.counts > k) for k in range(int(differences.counts.max(initial=0)))]
    for lag, which in lags:
        both = known[:, lag:] & (known[:, :-lag] | ~backend.to_device(which)[:, None])
        known = backend.xp.concatenate([known[:, :lag], both], axis=1)
    return known


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
    if y.shape[1] <= lags or not len(y):
        return np.full((len(y), h), np.nan)
    n_jobs = backend.lanes if backend.lanes > 1 else n_jobs

    def forecast(part: Array) -> Array:
        fit = fit_fast(
            part, season_length=season_length, n_lags=lags, n_centers=n_centers, backend=backend
        )
        return fit.forecast(h)

    def job(part: slice) -> Array:
        known = np.isfinite(y[part])
        with np.errstate(all="ignore"), backend.lane():
            if known.all():
                return forecast(y[part])
            path, some = np.full((len(known), h), np.nan), known.any(axis=1)
            if some.any():
                path[some] = forecast(np.where(known, y[part], np.nan)[some])
            return path

    largest = backend.batch_size(y.shape[1], lags, n_centers)
    smallest = _VALUES_WORTH_A_THREAD // y.shape[1] + 1
    parts = even_parts(len(y), largest, count_threads(n_jobs), smallest)
    return np.concatenate(parallel_map(job, parts, n_jobs))


def even_parts(n: int, largest: int, n_workers: int, smallest: int = 1) -> list[slice]:
    """Cut n items into equal parts, as many for each worker, unless they become too small."""
    count = min(n_workers * -(-n // (largest * n_workers)), max(n // smallest, -(-n // largest)))
    size = -(-n // max(count, 1))
    return [slice(first, min(first + size, n)) for first in range(0, n, max(size, 1))]


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
        if isinstance(result, _TooShortError) and (plan := plans[i].shortened(series.y.size))
    }
    again = _fit([panel[i] for i in fewer], list(fewer.values()), n_jobs)
    for i, result in zip(fewer, again, strict=True):
        results[i] = result
    return [str(result) if isinstance(result, UnfitError) else result for result in results]


def _fit(
    panel: Sequence[Series], plans: Sequence[Plan], n_jobs: int
) -> list[SeriesModel | UnfitError]:
    """Fit networks with the lags of the plans, or say why there are none."""
    results: list[SeriesModel | UnfitError] = [_TooShortError()] * len(panel)
    groups: dict[tuple[int, int], list[int]] = {}
    for i, (series, plan) in enumerate(zip(panel, plans, strict=True)):
        n_lags, length = len(plan.lags or ()), series.y.size
        try:
            check_fit(series)
            if length - n_lags < FEWEST_ROWS:
                raise _too_short(n_lags, max(length - n_lags, 0))
            groups.setdefault((length, n_lags), []).append(i)
        except UnfitError as error:
            results[i] = error
    if not groups:
        return results
    plan = plans[0]
    backend = backend_for(plan.device)
    n_jobs = backend.lanes if backend.lanes > 1 else n_jobs

    def fit(job: tuple[int, list[int]]) -> list[SeriesModel | UnfitError]:
        n_lags, members = job
        try:
            with np.errstate(all="ignore"), backend.lane():
                fitted = fit_fast(
                    np.stack([panel[i].y for i in members]),
                    season_length=plan.season_length,
                    n_lags=n_lags,
                    n_centers=plan.settings(n_lags).n_centers,
                    clean=plan.clean,
                    backend=backend,
                )
        except NUMERICAL as error:
            if len(members) == 1:
                return [UnfitError(f"numerical failure ({error})")]
            return [result for i in members for result in fit((n_lags, [i]))]
        return [
            model or _too_short(n_lags, int(n))
            for model, n in zip(fitted.models(), fitted.n_rows, strict=True)
        ]

    jobs = []
    for (length, n_lags), members in groups.items():
        largest = backend.batch_size(length, n_lags, plan.settings(n_lags).n_centers)
        smallest = _VALUES_WORTH_A_THREAD // length + 1
        parts = even_parts(len(members), largest, count_threads(n_jobs), smallest)
        jobs += [(n_lags, members[part]) for part in parts]
    for (_, members), models in zip(jobs, parallel_map(fit, jobs, n_jobs), strict=True):
        for i, model in zip(members, models, strict=True):
            results[i] = model
    return results


def forecast_models(
    models: Sequence[SeriesModel], bases: Sequence[Array], h: int
) -> tuple[list[Array], list[Sequence[Array]]]:
    """Continue series by their own networks, all at once.

    The models come from `fit_models` and have networks of the same shape. `bases` are the latest
    values of u, (k, history), at the same number k of origins for each. Returned are the forecasts
    of u, (k, h), and for each model the inputs of its network, (k, n_lags), step by step.
    """
    windows: list[Any] = [model.windows for model in models]
    preparations = [model.preparation for model in models]
    steps: list[tuple[Any, ...]] = [p.steps.steps for p in preparations]
    n_lags = windows[0].reach
    groups = [  # by differences, which come before the mean
        (Compose(key), members, np.stack([bases[i] for i in members]))
        for key, members in _group_equal([own[:-1] for own in steps])
    ]

    def column(values: list[float]) -> Array:
        return np.array(values)[:, None, None]

    mean, unit = column([own[-1].center for own in steps]), column([w.unit for w in windows])
    latest = np.empty((len(models), len(bases[0]), n_lags))
    for differences, members, base in groups:
        latest[members] = differences.apply(base)[..., -n_lags:]
    latest = (latest - mean) / unit
    path = forecast_batch(FastWindows.gather(windows), latest, h)
    u = path * unit + mean
    for differences, members, base in groups:
        u[members] = differences.invert(u[members], base)
    u = np.clip(u, column([p.low for p in preparations]), column([p.high for p in preparations]))
    rows = np.concatenate([latest, path], axis=2)
    return list(u), [SlidingWindows(own, n_lags) for own in rows]


class SlidingWindows(Sequence[Array]):
    """Windows that move step by step along paths (k, width + h), each of shape (k, width)."""

    def __init__(self, path: Array, width: int) -> None:
        self.path, self.width = path, width

    def __len__(self) -> int:
        return int(self.path.shape[1]) - self.width

    def __getitem__(self, step: Any) -> Any:
        if isinstance(step, slice):
            return [self[k] for k in range(*step.indices(len(self)))]
        if not -len(self) <= step < len(self):
            raise IndexError(step)
        first = step % len(self)
        return self.path[:, first : first + self.width]


class _TooShortError(UnfitError):
    """Fewer lags might do."""


def _too_short(n_lags: int, n_rows: int) -> UnfitError:
    return _TooShortError(f"too short for lag {n_lags} (windows: {n_rows}, needed: {FEWEST_ROWS})")
