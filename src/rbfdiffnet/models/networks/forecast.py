"""Forecasts from many origins of many series at once, by networks that are fitted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from rbfdiffnet.batch.train import BatchNetworks, forecast_windows
from rbfdiffnet.models.networks.series_model import SeriesModel, base_windows
from rbfdiffnet.models.networks.window_model import BatchMember, PathInputs, WindowModel
from rbfdiffnet.series.series import Series
from rbfdiffnet.series.transforms import Compose
from rbfdiffnet.support.arrays import Array, Ints
from rbfdiffnet.support.parallel import count_threads, even_chunks, group_equal, parallel_map
from rbfdiffnet.support.stability import describe_runaway

#: Forecasts of u and y from each origin, (B, h) both, and the network's inputs, block by block.
Path = tuple[Array, Array, Sequence[Array]]

_ROWS_AT_ONCE = 256  # forecast together by one network
_WINDOWS_AT_ONCE = 1_024, 128  # continued together by fast networks, at most and at least
_WINDOWS_ON_CARD = 500_000  # the same for networks on a card, whose memory is large
_PARTICLES = 100  # of a cloud, from each origin


def forecast_paths(
    models: Sequence[SeriesModel],
    panel: Sequence[Series],
    origins: Sequence[Ints],
    ahead: Sequence[Array],
    h: int,
    n_jobs: int,
) -> list[Path]:
    """Return forecasts from every origin of each series; `ahead` are (B, h, q) for B origins."""

    def run(members: list[int]) -> list[Path]:
        own = [models[k] for k in members]
        with np.errstate(all="ignore"):
            bases = _latest_windows(own, [panel[k] for k in members], [origins[k] for k in members])
            if isinstance(own[0].windows.source, BatchMember):
                u, rows = _forecast_fast(own, bases, h)
            else:
                extras = [panel[k].extra[np.maximum(origins[k] - 1, 0)] for k in members]
                u, rows = forecast_many(own, bases, extras, h)
            y = [m.preparation.restore(u[j], ahead[members[j]]) for j, m in enumerate(own)]
        return list(zip(u, y, rows, strict=True))

    chunks = _cut_for_threads(models, origins, count_threads(n_jobs))
    done: dict[int, Path] = {}
    found = parallel_map(run, chunks, n_jobs, reports=True)
    for members, paths in zip(chunks, found, strict=True):
        done.update(zip(members, paths, strict=True))
    return [done[k] for k in range(len(models))]


def _cut_for_threads(
    models: Sequence[SeriesModel], origins: Sequence[Ints], n_workers: int
) -> list[list[int]]:
    """Return chunks of series that are forecast together: by one network, or by fast ones."""
    keys: list[tuple[Any, ...]] = []  # what they share, and the number of windows
    for model, at in zip(models, origins, strict=True):
        source = model.windows.source
        if isinstance(source, BatchMember):
            keys.append((source.batch.centers.shape[1:], source.batch.xp is np, at.size))
        else:
            keys.append((id(model.windows),))
    chunks = []
    for (_, *fast), members in group_equal(keys).items():
        if fast:
            at_once = _WINDOWS_AT_ONCE if fast[0] else (_WINDOWS_ON_CARD,) * 2
            largest, smallest = (max(n // max(fast[1], 1), 1) for n in at_once)
            cuts = even_chunks(len(members), largest, n_workers, smallest)
            chunks += [members[cut] for cut in cuts]
        else:
            chunks.append(members)
    return chunks


def _latest_windows(
    models: Sequence[SeriesModel], panel: Sequence[Series], origins: Sequence[Ints]
) -> list[Array]:
    """Return the latest values of u before the origins of each series, cached ones if they fit."""
    found: dict[int, Array] = {}
    for k, (model, series) in enumerate(zip(models, panel, strict=True)):
        known = model.seen and model.seen.length == series.y.size and model.windows.tracker is None
        if known and (origins[k] == series.y.size).all():
            latest = model.seen.latest[None, -model.history :]  # type: ignore[union-attr]
            found[k] = latest.repeat(origins[k].size, axis=0)
    others = [k for k in range(len(models)) if k not in found]
    rest = base_windows(
        [models[k] for k in others], [panel[k] for k in others], [origins[k] for k in others]
    )
    found |= dict(zip(others, rest, strict=True))
    return [found[k] for k in range(len(models))]


# One network for several series -----------------------------------------------------------------


def forecast_many(
    models: Sequence[SeriesModel], bases: Sequence[Array], extras: Sequence[Array], h: int
) -> tuple[list[Array], list[Sequence[Array]]]:
    """Forecast u (B, h) for batches of windows of series that share a network, in one go.

    `bases` hold the latest values of u (B, history) for every model. Also returned are the inputs
    of the network, block by block.
    """
    windows = models[0].windows
    steps = [model.preparation.steps for model in models]
    z = [s.apply(base)[:, -windows.reach :] for s, base in zip(steps, bases, strict=True)]
    path, inputs = _forecast_in_chunks(windows, np.concatenate(z), h, np.concatenate(extras))
    ends = np.cumsum([0, *(len(own) for own in z)]).tolist()
    each = [slice(first, last) for first, last in pairwise(ends)]
    forecasts = [
        model.preparation.clip(model.preparation.steps.invert(path[own], base))
        for model, own, base in zip(models, each, bases, strict=True)
    ]
    if not isinstance(inputs, PathInputs):  # of one model
        return forecasts, [inputs]
    return forecasts, [inputs.take(own) for own in each]


def _forecast_in_chunks(
    windows: WindowModel, z: Array, h: int, extra: Array
) -> tuple[Array, Sequence[Array]]:
    """Forecast rows by a network in chunks of one size, the last of them filled up.

    The last bit of a product of matrices depends on their shapes, and the forecast of a series must
    not depend on how many others there are. Networks that filter noise have one series only.
    """
    n = len(z)
    n_filled = n if windows.tracker is not None else -(-n // _ROWS_AT_ONCE) * _ROWS_AT_ONCE
    rows = np.minimum(np.arange(n_filled), n - 1)
    chunks = np.split(rows, range(_ROWS_AT_ONCE, n_filled, _ROWS_AT_ONCE))
    done = parallel_map(
        lambda rows: windows.forecast(z[rows], h, extra[rows]), chunks, reports=True
    )
    path, inputs = np.concatenate([path for path, _ in done])[:n].copy(), [own for _, own in done]
    if windows.tracker is not None:
        return path, [np.concatenate(block) for block in zip(*inputs, strict=True)]
    whole = np.concatenate([own.path for own in inputs if isinstance(own, PathInputs)])[:n].copy()
    return path, PathInputs(windows, whole, z.shape[1], extra)


# Fast networks, one for each series ---------------------------------------------------------------


def _forecast_fast(
    models: Sequence[SeriesModel], bases: Sequence[Array], h: int
) -> tuple[list[Array], list[Sequence[Array]]]:
    """Continue series by their own networks, all at once, where the networks are.

    The models come from `fast.fit_models` and have networks of the same shape. `bases` are the
    latest values of u, (k, history), at the same number k of origins for each. Returned are the
    forecasts of u, (k, h), and for each model the inputs of its network, (k, n_lags), by step.
    """
    steps: list[tuple[Any, ...]] = [model.preparation.steps.steps for model in models]
    n_lags = models[0].windows.reach
    groups = [  # by differences, which come before the mean
        (Compose(key), members, np.stack([bases[i] for i in members]))
        for key, members in group_equal([own[:-1] for own in steps]).items()
    ]

    def column(values: list[float]) -> Array:
        return np.array(values)[:, None, None]

    mean = column([own[-1].center for own in steps])
    unit = column([model.windows.unit for model in models])
    latest = np.empty((len(models), len(bases[0]), n_lags))
    for differences, members, base in groups:
        latest[members] = differences.apply(base)[..., -n_lags:]
    latest = (latest - mean) / unit
    path = forecast_windows(_gather_networks(models), latest, h)
    u = path * unit + mean
    for differences, members, base in groups:
        u[members] = differences.invert(u[members], base)
    low = column([model.preparation.low for model in models])
    high = column([model.preparation.high for model in models])
    rows = np.concatenate([latest, path], axis=2)
    return list(np.clip(u, low, high)), [SlidingWindows(own, n_lags) for own in rows]


def _gather_networks(models: Sequence[SeriesModel]) -> BatchNetworks:
    """Return the networks of several models, which are members of batches, as one batch."""
    sources: list[Any] = [model.windows.source for model in models]
    chosen = []
    for _, some in groupby(sources, key=lambda source: id(source.batch)):
        own = list(some)
        chosen.append(own[0].batch.select([source.number for source in own]))
    return BatchNetworks.concatenate(chosen)


class SlidingWindows(Sequence[Array]):
    """Windows that move step by step along paths (k, width + h), each of shape (k, width)."""

    def __init__(self, path: Array, width: int) -> None:
        self.path, self.width = path, width

    def __len__(self) -> int:
        return int(self.path.shape[1]) - self.width

    def __getitem__(self, step: Any) -> Any:
        if not 0 <= step < len(self):
            raise IndexError(step)
        return self.path[:, step : step + self.width]


# Runaway and noisy forecasts --------------------------------------------------------------------


def runaway_message(model: SeriesModel, u: Array, rows: Sequence[Array]) -> str:
    """What is said of a forecast that is held back; see `rbfdiffnet.support.stability`."""
    preparation, windows, held = model.preparation, model.windows, None
    if isinstance(rows, SlidingWindows):
        if windows.limit > 0.0:
            held = np.abs(rows.path[0, -u.size :]) >= windows.limit
    elif windows.tracker is None:
        with np.errstate(all="ignore"):
            steps = windows.network.predict(np.concatenate(rows))
        held = np.abs(steps).ravel()[: u.size] > windows.limit
    return describe_runaway(u, preparation.low, preparation.high, held)


def state_paths(model: SeriesModel, series: Series, origin: int, h: int) -> Array:
    """Return paths (N, h) of the clean states of a series whose noise is filtered."""
    (base,) = _latest_windows([model], [series], [np.array([origin])])
    z = model.preparation.steps.apply(base)[:, -model.windows.reach :]
    _, ahead = model.windows.roll_clouds(z, h)
    return np.asarray(ahead[0])


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
    u = preparation.clip(preparation.steps.invert(path, base))
    return preparation.restore(u, ahead), spread[-1] / spread[:-1]
