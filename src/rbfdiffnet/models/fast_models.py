"""Quick fits and forecasts of the series of a panel: grouped by length, a group at a time.

See `models.fast`. What does not fit its mold (inputs, other transforms, several steps at once)
is left to `rbfdiffnet.models.series_model`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.batch.backend import backend_for
from rbfdiffnet.batch.networks import BatchNetworks, forecast_batch
from rbfdiffnet.models.fast import WORTHWHILE, even_parts, fit_quickly
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.series_model import SeriesModel
from rbfdiffnet.models.training_rows import FEWEST_ROWS
from rbfdiffnet.series.series import NUMERICAL, Series, UnfitError, check_fit
from rbfdiffnet.support.threads import count_threads, parallel_map

__all__ = ["SlidingWindows", "fit_models", "forecast_models", "is_quick"]

Array = npt.NDArray[np.float64]

_TRANSFORMS = ("auto", "mean")


def is_quick(plan: Plan, series: Series) -> bool:
    """Tell whether a series can be fitted here."""
    lags = plan.lags
    return (
        plan.quick
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

    Parameters
    ----------
    panel : sequence of Series
    plans : sequence of Plan
        For each of them, alike but for the lags; `is_quick`.
    n_jobs : int, default=1
        Threads; the results do not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models.plan import Plan
    >>> from rbfdiffnet.series.series import Series
    >>> from rbfdiffnet.models.fast_models import fit_models
    >>> from rbfdiffnet.network.train import Settings
    >>> none = np.zeros((90, 0))
    >>> y = np.random.default_rng(0).normal(size=90).cumsum()
    >>> steps = ("auto", "mean")
    >>> plan = Plan(lambda n: Settings(8), lags=(1, 2, 3, 4), transforms=steps, quick=True)
    >>> walk, flat = fit_models([Series(y, none, none), Series(0 * y, none, none)], [plan, plan])
    >>> walk.preparation.steps.lost, flat
    (1, 'all values are zero')
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
                fitted = fit_quickly(
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
        size = backend.batch_size(length, n_lags, plan.settings(n_lags).n_centers)
        parts = even_parts(len(members), size, count_threads(n_jobs), WORTHWHILE // length + 1)
        jobs += [(n_lags, members[part]) for part in parts]
    for (_, members), models in zip(jobs, parallel_map(fit, jobs, n_jobs), strict=True):
        for i, model in zip(members, models, strict=True):
            results[i] = model
    return results


def forecast_models(
    models: Sequence[SeriesModel], bases: Sequence[Array], h: int
) -> tuple[list[Array], list[Sequence[Array]]]:
    """Continue series by their own quick networks, many at once.

    Parameters
    ----------
    models : sequence of SeriesModel
        Made by `fit_models`, with networks of the same shape.
    bases : sequence of ndarray of shape (k, history)
        The latest values of u, at the same number of origins for each.
    h : int

    Returns
    -------
    forecasts : list of ndarray of shape (k, h)
        Of u.
    rows : list of sequences of ndarray of shape (k, n_lags)
        For every model the inputs of its network, step by step.
    """
    windows = [model.windows for model in models]
    n_lags = windows[0].reach
    z = [m.preparation.steps.apply(base) for m, base in zip(models, bases, strict=True)]
    units = np.array([w.unit for w in windows])[:, None, None]
    latest = np.stack([values[:, -n_lags:] for values in z]) / units
    networks = BatchNetworks.stack([w.network for w in windows], [w.largest for w in windows])
    path = forecast_batch(networks, latest, h)
    rows = np.concatenate([latest, path], axis=2)
    forecasts = []
    for i, (model, base) in enumerate(zip(models, bases, strict=True)):
        p = model.preparation
        forecasts.append(np.clip(p.steps.invert(path[i] * units[i], base), p.low, p.high))
    return forecasts, [SlidingWindows(path, n_lags) for path in rows]


class SlidingWindows(Sequence[Array]):
    """Windows that move along a path step by step, each of shape (k, width).

    Parameters
    ----------
    path : ndarray of shape (k, width + h)
    width : int
    """

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
