"""The model of one series: a preparation and a network over windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rbfdiffnet.models.networks.noisy import fit_tracked
from rbfdiffnet.models.networks.training_rows import FEWEST_ROWS, TrainingRows
from rbfdiffnet.models.networks.window_model import WindowModel
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.series.effects import Effects
from rbfdiffnet.series.prepare import Preparation, PreparedSeries, latest_values, prepare_many
from rbfdiffnet.series.series import Series, UnfitError, check_fit
from rbfdiffnet.support.arrays import Array, Ints

_MOST_NOISY_LAGS = 12  # in a trajectory, unless lags are given
_ROWS_AT_ONCE = 256  # forecast together
_NEAREST = 3  # training windows named for each center


@dataclass(frozen=True)
class CleaningCache:
    """What cleaning a series found, for a forecast right after training."""

    length: int  # number of values of the series
    latest: Array  # the latest values of u
    outliers: Ints  # steps at which the outliers are


@dataclass(frozen=True)
class SeriesModel:
    """A fitted model of one series: its preparation, and a network over windows.

    A shared network is the same object in the models of all series. `exemplars` (c, 3) are, for
    each basis function, the steps at which the training windows nearest to its center end (-1 for
    none); they are None until `nearest` finds them. `untreated` tells why noise is not treated.
    """

    preparation: Preparation
    windows: WindowModel
    exemplars: Ints | None = None
    seen: CleaningCache | None = None
    untreated: str = ""

    def plan_for_refit(self, plan: Plan) -> Plan:
        """Return the plan with this model's lags, level and noise, to fit a part of its series."""
        windows = self.windows
        noise = None if self.noise is None else self.noise[0]
        return replace(
            plan,
            lags=windows.lags,
            shorten=False,
            level=windows.level,
            noise=noise,
            like=windows.tracker,
        )

    @property
    def noise(self) -> tuple[float, float] | None:
        """Noise of u: its standard deviation, and the ratio of the signal's variance to its own."""
        tracker = self.windows.tracker
        if tracker is None:
            return None
        ratio = float(tracker.network.y_scale[0] / tracker.noise) ** 2 - 1.0
        return tracker.noise / _unit_of(self.preparation), max(ratio, 0.0)

    def with_network_of(self, other: SeriesModel) -> SeriesModel:
        """Return the model with the network of another one."""
        none = np.full((len(other.windows.network.centers), _NEAREST), -1, dtype=np.int64)
        return SeriesModel(self.preparation, other.windows, none)

    def nearest(self, series: Series, plan: Plan) -> Ints:
        """Return the exemplars; where they were not kept, those among the windows of a series."""
        if self.exemplars is not None:
            return self.exemplars
        prepared = self.preparation.apply(series.y, series.known_ahead)
        rows = TrainingRows.of(series, prepared, self.plan_for_refit(plan))
        return nearest_windows(self.windows, rows.X, rows.ends)

    @property
    def history(self) -> int:
        """How many values of u a forecast needs."""
        return self.windows.reach + self.preparation.steps.lost

    def base_windows(self, series: Series, origins: Ints) -> Array:
        """Return the latest values of u before each origin, shape (B, history).

        Gaps and outliers in a window are found and filled from values before its origin only.
        Before the first value, it is repeated. Where noise is filtered, all of that is NaN.
        """
        return base_windows([self], [series], [origins])[0]


def base_windows(
    models: Sequence[SeriesModel], panel: Sequence[Series], origins: Sequence[Ints]
) -> list[Array]:
    """Return the latest values of u of many series; see `SeriesModel.base_windows`."""
    preparations = [model.preparation for model in models]
    bare = [p.without_effects(s.y, s.known_ahead) for p, s in zip(preparations, panel, strict=True)]
    found = latest_values(preparations, bare, origins, [model.history for model in models])
    for model, (windows, seen) in zip(models, found, strict=True):
        if model.windows.tracker is not None:
            windows[~seen] = np.nan
    return [windows for windows, _ in found]


def forecast_many(
    models: Sequence[SeriesModel], bases: Sequence[Array], extras: Sequence[Array], h: int
) -> tuple[list[Array], list[list[Array]]]:
    """Forecast u (B, h) for batches of windows of series that share a network, in one go.

    `bases` hold the latest values of u (B, history) for every model. Also returned are the inputs
    of the network, block by block.
    """
    windows = models[0].windows
    preparations = [model.preparation for model in models]
    z = [
        p.steps.apply(base)[:, -windows.reach :]
        for p, base in zip(preparations, bases, strict=True)
    ]
    path, inputs = _in_blocks(windows, np.concatenate(z), h, np.concatenate(extras))
    ends = np.cumsum([len(own) for own in z])[:-1]
    paths = np.split(path, ends)
    blocks = [np.split(block, ends) for block in inputs]
    forecasts = [
        np.clip(p.steps.invert(paths[k], base), p.low, p.high)
        for k, (p, base) in enumerate(zip(preparations, bases, strict=True))
    ]
    return forecasts, [[block[k] for block in blocks] for k in range(len(models))]


def _in_blocks(windows: WindowModel, z: Array, h: int, extra: Array) -> tuple[Array, list[Array]]:
    """Forecast rows by a network in blocks of one size, the last of them filled up.

    The last bit of a product of matrices depends on their shapes, and the forecast of a series must
    not depend on how many others there are.
    """
    n = len(z)
    padded = np.minimum(np.arange(-(-n // _ROWS_AT_ONCE) * _ROWS_AT_ONCE), n - 1)
    done = [windows.forecast(z[rows], h, extra[rows]) for rows in padded.reshape(-1, _ROWS_AT_ONCE)]
    path = np.concatenate([path for path, _ in done])[:n]
    return path, [np.concatenate(block)[:n] for block in zip(*(i for _, i in done), strict=True)]


def prepare_for(series: Series, plan: Plan, effects: Effects | None = None) -> PreparedSeries:
    """Make a series ready by a plan; raise UnfitError where a step does not apply."""
    (found,) = prepare_all([series], plan, [effects])
    if isinstance(found, UnfitError):
        raise found
    return found


def prepare_all(
    panel: Sequence[Series], plan: Plan, effects: Sequence[Effects | None]
) -> list[PreparedSeries | UnfitError]:
    """Make many series ready by a plan, or say why a step does not apply."""
    found = prepare_many(
        [series.y for series in panel],
        [series.known_ahead for series in panel],
        effects,
        season_length=plan.season_length,
        transforms=plan.transforms,
        log=plan.log,
        clean=plan.clean,
    )
    return [UnfitError(str(p).rstrip(".")) if isinstance(p, ValueError) else p for p in found]


def fit_local(series: Series, plan: Plan) -> SeriesModel:
    """Fit a network to one series; raise UnfitError if it is too short, constant or empty."""
    check_fit(series)
    prepared = prepare_for(series, plan)
    rows = TrainingRows.of(series, prepared, plan)
    if len(rows.X) < FEWEST_ROWS and (fewer := plan.shortened(series.y.size)):
        plan, rows = fewer, TrainingRows.of(series, prepared, fewer)
    if len(rows.X) < FEWEST_ROWS:
        raise UnfitError(
            f"too short for lag {rows.lags[-1]} (windows: {len(rows.X)}, needed: {FEWEST_ROWS})"
        )
    tracked = _fit_tracked(series, prepared, rows, plan)
    if isinstance(tracked, str):
        windows, untreated = rows.fit(plan), tracked
    else:
        windows, untreated = tracked, ""
        rows = TrainingRows.of(series, prepared, replace(plan, lags=windows.lags, level="none"))
    nearest = nearest_windows(windows, rows.X, rows.ends)
    return SeriesModel(prepared.preparation, windows, nearest, untreated=untreated)


def _fit_tracked(
    series: Series, prepared: PreparedSeries, rows: TrainingRows, plan: Plan
) -> WindowModel | str:
    """Return the network over clean windows, or why no noise is treated.

    Differences have noise of another kind, and other inputs no place in a trajectory.
    """
    preparation = prepared.preparation
    if plan.noise is None or plan.block > 1:
        return ""
    if series.extra.shape[1]:
        return "there are inputs known of the past only"
    if preparation.steps.lost:
        return "the series is differenced"
    z, known = prepared.transform()

    def plain(n: int) -> WindowModel | None:
        early = rows.ends + 1 < n
        if early.sum() < FEWEST_ROWS:
            return None
        part = replace(rows, X=rows.X[early], Y=rows.Y[early], ends=rows.ends[early])
        return part.fit(plan)

    n_lags = rows.lags[-1] if plan.lags is not None else min(rows.lags[-1], _MOST_NOISY_LAGS)
    noise = plan.noise if plan.noise == "auto" else plan.noise * _unit_of(preparation)
    return fit_tracked(z, known, n_lags, noise, plain, plan.like)


def _unit_of(preparation: Preparation) -> float:
    """Return by how much the steps of a preparation stretch a series, if they do nothing else."""
    ends = preparation.steps.apply(np.array([[0.0, 1.0]]))[0]
    return float(abs(ends[1] - ends[0]))


def nearest_windows(windows: WindowModel, X: Array, ends: Ints) -> Ints:
    """Return the steps (c, 3) at which the windows nearest to each center end."""
    network = windows.network
    nearest = np.full((len(network.centers), _NEAREST), -1, dtype=np.int64)
    if len(X):
        n_extra = X.shape[1] - len(windows.lags)
        inputs = np.concatenate([X[:, :n_extra], X[:, n_extra:] / windows.unit], axis=1)
        distances = network.distances(inputs)
        found = np.argsort(distances, axis=0, kind="stable")[:_NEAREST]
        nearest[:, : len(found)] = ends[found.T]
    return nearest
