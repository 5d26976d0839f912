"""Forecasts from many origins of many series at once, by networks that are fitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rbfdiffnet.models.networks.fast import FastWindows, SlidingWindows, even_parts, forecast_models
from rbfdiffnet.models.networks.series_model import SeriesModel, base_windows, forecast_many
from rbfdiffnet.series.series import Series
from rbfdiffnet.support.arrays import Array, Ints
from rbfdiffnet.support.stability import describe_runaway
from rbfdiffnet.support.threads import count_threads, parallel_map

_WINDOWS_AT_ONCE = 1_024, 128  # continued together by fast networks, at most and at least
_PARTICLES = 100  # of a cloud, from each origin


def inputs_ahead(known_ahead: Array, origins: Ints, later: Array) -> Array:
    """Return the inputs known in advance after each origin, shape (B, h, q).

    `later` (h, q) are those after the end of the series.
    """
    everything = np.concatenate([known_ahead, later])
    return np.asarray(everything[origins[:, None] + np.arange(len(later))])


def _group_models(
    models: Sequence[SeriesModel], origins: Sequence[Ints], n_workers: int
) -> list[list[int]]:
    """Return groups of series that are forecast together: by one network, or by fast ones."""
    groups: dict[Any, list[int]] = {}
    for k, model in enumerate(models):
        windows, key = model.windows, (id(model.windows), 0)
        if isinstance(windows, FastWindows):
            key = (windows.batch.centers.shape[1:], origins[k].size)
        groups.setdefault(key, []).append(k)
    parts = []
    for members in groups.values():
        if isinstance(models[members[0]].windows, FastWindows):
            n_windows = max(origins[members[0]].size, 1)
            largest, smallest = (max(n // n_windows, 1) for n in _WINDOWS_AT_ONCE)
            cuts = even_parts(len(members), largest, n_workers, smallest)
            parts += [members[cut] for cut in cuts]
        else:
            parts.append(members)
    return parts


def _latest_windows(
    models: Sequence[SeriesModel], panel: Sequence[Series], origins: Sequence[Ints]
) -> list[Array]:
    """Return the latest values of u before the origins of each series, cached ones if they fit."""
    found: dict[int, Array] = {}
    for k, (model, series) in enumerate(zip(models, panel, strict=True)):
        known = model.seen and model.seen.length == series.y.size and model.windows.tracker is None
        if known and np.all(origins[k] == series.y.size):
            latest = model.seen.latest[-model.history :]  # type: ignore[union-attr]
            found[k] = np.repeat(latest[None], origins[k].size, axis=0)
    others = [k for k in range(len(models)) if k not in found]
    rest = base_windows(
        [models[k] for k in others], [panel[k] for k in others], [origins[k] for k in others]
    )
    found |= dict(zip(others, rest, strict=True))
    return [found[k] for k in range(len(models))]


def forecast_paths(
    models: Sequence[SeriesModel],
    panel: Sequence[Series],
    origins: Sequence[Ints],
    ahead: Sequence[Array],
    h: int,
    n_jobs: int,
) -> list[tuple[Array, Array, Sequence[Array]]]:
    """Return forecasts of u and y from every origin, and the network's inputs, for each series."""

    def run(members: list[int]) -> list[tuple[int, Array, Array, Sequence[Array]]]:
        own = [models[k] for k in members]
        with np.errstate(all="ignore"):
            bases = _latest_windows(own, [panel[k] for k in members], [origins[k] for k in members])
            if isinstance(own[0].windows, FastWindows):
                u, rows = forecast_models(own, bases, h)
            else:
                extras = [panel[k].extra[np.maximum(origins[k] - 1, 0)] for k in members]
                u, rows = forecast_many(own, bases, extras, h)  # type: ignore[assignment]
            y = [m.preparation.restore(u[j], ahead[members[j]]) for j, m in enumerate(own)]
        return [(k, u[j], y[j], rows[j]) for j, k in enumerate(members)]

    done = {
        k: (u, y, rows)
        for result in parallel_map(
            run, _group_models(models, origins, count_threads(n_jobs)), n_jobs
        )
        for k, u, y, rows in result
    }
    return [done[k] for k in range(len(models))]


def runaway_message(model: SeriesModel, u: Array, rows: Sequence[Array]) -> str:
    """What is said of a forecast that is held back; see `rbfdiffnet.support.stability`."""
    preparation, windows = model.preparation, model.windows
    held = None
    if isinstance(rows, SlidingWindows):
        held = (np.abs(rows.path[0, -u.size :]) >= windows.limit) & (windows.limit > 0.0)
    elif windows.tracker is None:
        with np.errstate(all="ignore"):
            steps = windows.network.predict(np.concatenate(rows))
        held = np.abs(steps).ravel()[: u.size] > windows.limit
    return describe_runaway(u, preparation.low, preparation.high, held)


def tracked_paths(
    model: SeriesModel, series: Series, origins: Ints, ahead: Array, h: int
) -> tuple[Array, Array]:
    """Return forecasts of y from every origin where noise is filtered, and ratios (n - 1, h).

    A ratio compares how uncertain the last forecast is with an earlier one: uncertainty depends on
    the state, so errors made in other states are scaled to the present one.
    """
    preparation, windows = model.preparation, model.windows
    (base,) = _latest_windows([model], [series], [origins])
    z = preparation.steps.apply(base)[:, -windows.reach :]
    path, spread, _ = windows.roll_noisy(z, h, _PARTICLES)
    u = np.clip(preparation.steps.invert(path, base), preparation.low, preparation.high)
    return preparation.restore(u, ahead), spread[-1] / spread[:-1]
