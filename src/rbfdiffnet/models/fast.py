r"""Many series, each with a small network of its own, in the time others take to fit one.

The structure is the paper's: differences, windows, K-Means, order 1. Every step works on all series
of the same length at once (`series.outliers`, `series.differences`, `batch.train`),
with NumPy, with numba where it is installed, or with PyTorch on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.batch.backend import Backend, backend_for, padded_rows
from rbfdiffnet.batch.networks import BatchNetworks, forecast_batch
from rbfdiffnet.batch.train import train
from rbfdiffnet.models.series_model import Seen, SeriesModel
from rbfdiffnet.models.training_rows import FEWEST_ROWS
from rbfdiffnet.models.window_model import WindowModel, affordable_centers
from rbfdiffnet.series.differences import Differences, choose_differences
from rbfdiffnet.series.gaps import fill_many, find_closed_steps, repeat_before
from rbfdiffnet.series.outliers import OutlierRule, find_outliers
from rbfdiffnet.series.prepare import Preparation
from rbfdiffnet.series.transforms import Compose, Difference, Rescale
from rbfdiffnet.series.windows import stack_windows
from rbfdiffnet.support.stability import forecast_bounds
from rbfdiffnet.support.threads import count_threads, parallel_map

__all__ = ["WORTHWHILE", "QuickFit", "even_parts", "fit_quickly", "forecast_arrays"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MOST_DIFFERENCES = 10
WORTHWHILE = 8_192  # values: less is not worth a thread
_ROUNDING = 1e-12  # of the largest value: smaller differences are none
_DECIMALS = 9


@dataclass(frozen=True)
class QuickFit:
    """Networks of series of the same length.

    Attributes
    ----------
    backend : Backend
        Where networks and window are.
    networks : BatchNetworks
    season_length, n_lags : int
    window : ndarray of shape (B, n_lags)
        The latest transformed values, in units.
    unit, mean : ndarrays of shape (B,)
        Spread and mean of the differenced series.
    length : int
        Number of values of each series.
    odd : array of bool of shape (B, length)
        Where outliers are.
    latest : ndarray of shape (B, n_lags + season_length + 10)
        Latest values without outliers and gaps.
    low, high : ndarrays of shape (B,)
        Bounds of forecasts.
    seasonal : ndarray of bool of shape (B,)
        Whether differences to the season before are taken.
    n_differences : ndarray of int of shape (B,)
        How many first differences are taken then.
    spread, closures : ndarrays of shape (B,)
        As for `OutlierRule`.
    n_rows : ndarray of int of shape (B,)
        How many windows there were to learn from.
    """

    backend: Backend
    networks: BatchNetworks
    season_length: int
    n_lags: int
    window: Any
    unit: Array
    mean: Array
    length: int
    odd: Any
    latest: Array
    low: Array
    high: Array
    seasonal: npt.NDArray[np.bool_]
    n_differences: Ints
    spread: Array
    closures: npt.NDArray[np.bool_]
    n_rows: Ints

    def forecast(self, h: int) -> Array:
        """Forecast h steps, (B, h); NaN for series with too few rows."""
        path = forecast_batch(self.networks, self.window, h, self.backend.xp)
        path = self.backend.to_numpy(path) * self.unit[:, None] + self.mean[:, None]
        kinds = self.seasonal + 2 * self.n_differences
        for kind in np.unique(kinds):
            some = kinds == kind
            path[some] = self._steps(int(np.argmax(some))).invert(path[some], self.latest[some])
        path = np.clip(path, self.low[:, None], self.high[:, None])
        return np.where(self.n_rows[:, None] >= FEWEST_ROWS, path, np.nan)

    def _steps(self, i: int) -> Compose:
        """Differences of series i."""
        first = (Difference(self.season_length),) if self.seasonal[i] else ()
        return Compose((*first, *[Difference()] * int(self.n_differences[i])))

    def models(self) -> list[SeriesModel | None]:
        """The models of the series, None for those with too few rows."""
        networks, odd = self.networks.to_numpy(), self.backend.to_numpy(self.odd)
        lags = tuple(range(1, self.n_lags + 1))
        models: list[SeriesModel | None] = []
        for i, n_rows in enumerate(self.n_rows):
            if n_rows < FEWEST_ROWS:
                models.append(None)
                continue
            mean = Rescale(float(self.mean[i]), 1.0)
            rule = OutlierRule(self.season_length, float(self.spread[i]), bool(self.closures[i]))
            preparation = Preparation(
                log=False,
                effects=None,
                season_length=self.season_length,
                rule=rule,
                steps=Compose((*self._steps(i).steps, mean)),
                low=float(self.low[i]),
                high=float(self.high[i]),
            )
            windows = WindowModel(
                networks.network(i),
                lags,
                level="none",
                block=1,
                unit=float(self.unit[i]),
                largest=float(networks.largest[i]),
            )
            seen = Seen(self.length, self.latest[i], np.flatnonzero(odd[i]))
            models.append(SeriesModel(preparation, windows, seen=seen))
        return models


def fit_quickly(
    y: Array,
    *,
    season_length: int,
    n_lags: int,
    n_centers: int = 28,
    clean: bool = True,
    backend: Backend | None = None,
) -> QuickFit:
    r"""Fit networks to series of the same length.

    .. math:: y \to \text{outliers and gaps filled} \to
        \text{differenced} \to \text{less the mean} \to \text{windows}

    (`rbfdiffnet.series.outliers`, `rbfdiffnet.series.differences`).

    Parameters
    ----------
    y : ndarray of shape (B, T)
        NaN where missing; with more values than lags.
    season_length, n_lags : int
    n_centers : int, default=28
        Fewer for short series.
    clean : bool, default=True
        Whether outliers count as missing.
    backend : Backend, default=NUMPY

    Returns
    -------
    QuickFit

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models.fast import fit_quickly
    >>> week = np.tile([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0], 30)
    >>> noise = 0.1 * np.random.default_rng(0).normal(size=(2, 210))
    >>> fit = fit_quickly(week + noise, season_length=7, n_lags=14)
    >>> fit.forecast(7).round(0)
    array([[3., 1., 4., 1., 5., 9., 2.],
           [3., 1., 4., 1., 5., 9., 2.]])
    """
    backend = backend or backend_for("cpu")
    xp = backend.xp
    y = backend.to_device(y)
    length = y.shape[1]
    odd = xp.zeros_like(y) > 0
    spread, closures = xp.ones_like(y[:, 0]) * xp.inf, odd[:, 0]
    if clean:
        odd, spread, closures = find_outliers(y, season_length, backend)
    u = xp.where(odd, xp.nan, y)
    known = xp.isfinite(u)
    if not bool(known.all()):
        closed = find_closed_steps(y, season_length, backend)
        u = fill_many(u, season_length, backend, closed)
        known = known | (closed & repeat_before(known, closed, backend))
    low, high = backend.lowest(u), backend.highest(u)
    size = backend.highest(xp.abs(u))

    differences = choose_differences(u, season_length, backend)
    z, lost = differences.z, differences.lost
    good = _observed(known, differences, season_length, backend)

    # From here on the first values, lost to differences, have weight 0.
    start = backend.to_device(lost)[:, None]
    number = backend.arange(length, y)[None]
    valid = number >= start
    n_valid = length - start[:, 0]
    mean = xp.where(valid, z, xp.zeros_like(z)).sum(axis=1) / n_valid
    z = xp.where(valid, z - mean[:, None], xp.zeros_like(z))
    unit = xp.sqrt((z**2).sum(axis=1) / n_valid)
    rough = unit > _ROUNDING * size
    unit = xp.where(rough, unit, xp.ones_like(unit))
    z = xp.where(rough[:, None], xp.round(z / unit[:, None], decimals=_DECIMALS), xp.zeros_like(z))

    rows = padded_rows(length - n_lags)
    front = rows + n_lags - length
    z = xp.concatenate([xp.zeros_like(z[:, :1])] * front + [z], axis=1)
    X = stack_windows(z, n_lags, rows, xp)
    use = good[:, n_lags:] & (number >= start + n_lags)[:, n_lags:]
    weight = xp.concatenate([xp.zeros_like(z[:, :1])] * front + [backend.float(use)], axis=1)
    n_rows = backend.to_numpy(weight.sum(axis=1)).astype(np.int64)
    n_centers = affordable_centers(n_centers, length - n_lags)
    networks = train(X, z[:, n_lags:], weight, n_centers=n_centers, backend=backend)
    tail = u[:, -(n_lags + season_length + _MOST_DIFFERENCES) :]
    unit, mean, tail, low, high, spread, closures = (
        backend.to_numpy(values) for values in (unit, mean, tail, low, high, spread, closures)
    )
    low, high = forecast_bounds(low, high)
    return QuickFit(
        backend=backend,
        networks=networks,
        season_length=season_length,
        n_lags=n_lags,
        window=z[:, -n_lags:],
        unit=unit,
        mean=mean,
        length=length,
        odd=odd,
        latest=tail,
        low=low,
        high=high,
        seasonal=differences.seasonal,
        n_differences=differences.counts,
        spread=spread,
        closures=closures,
        n_rows=n_rows,
    )


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

    Parameters
    ----------
    values : array-like of shape (n, T)
        NaN where missing.
    h : int
    season_length : int, default=1
    n_lags : int, optional
        By default two seasons.
    n_centers : int, default=28
    n_jobs : int, default=1
        Threads.
    device : {"cpu", "cuda"}, default="cpu"

    Returns
    -------
    ndarray of shape (n, h)
        NaN where a series is too short or has no values.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models.fast import forecast_arrays
    >>> walks = np.random.default_rng(0).normal(size=(3, 200)).cumsum(axis=1)
    >>> forecast_arrays(walks, h=5).shape
    (3, 5)
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
        fit = fit_quickly(
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
    smallest = WORTHWHILE // y.shape[1] + 1
    parts = even_parts(len(y), largest, count_threads(n_jobs), smallest)
    return np.concatenate(parallel_map(job, parts, n_jobs))


def even_parts(n: int, largest: int, n_workers: int, smallest: int = 1) -> list[slice]:
    """Cut n items into equal parts, as many for each worker, unless they become too small.

    Examples
    --------
    >>> from rbfdiffnet.models.fast import even_parts
    >>> even_parts(10, 16, 2), even_parts(10, 16, 2, smallest=6)
    ([slice(0, 5, None), slice(5, 10, None)], [slice(0, 10, None)])
    """
    count = min(n_workers * -(-n // (largest * n_workers)), max(n // smallest, -(-n // largest)))
    size = -(-n // max(count, 1))
    return [slice(first, min(first + size, n)) for first in range(0, n, max(size, 1))]


def _observed(known: Any, differences: Differences, season_length: int, backend: Backend) -> Any:
    """Which differences are made of observations only."""
    xp = backend.xp
    if bool(known.all()):
        return known
    lags = [(season_length, differences.seasonal)]
    lags += [(1, differences.counts > k) for k in range(int(differences.counts.max(initial=0)))]
    for lag, which in lags:
        both = known[:, lag:] & (known[:, :-lag] | ~backend.to_device(which)[:, None])
        known = xp.concatenate([known[:, :lag], both], axis=1)
    return known
