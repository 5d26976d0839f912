"""The model of one series: a preparation and a network over windows.

Where noise is to be treated, the clean trajectory of the series is learned (`rbfdiffnet.noise`). A
trajectory that the evidence favors is still tried out: learned without the last part of the series,
it must forecast that part better than the ordinary network with the same data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rbfdiffnet.batch.backend import NUMPY, backend_for
from rbfdiffnet.models.networks.window_model import (
    FEWEST_ROWS,
    TrainingRows,
    WindowModel,
    too_short,
)
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.noise import learn_trajectory
from rbfdiffnet.noise.filtering import StateFilter
from rbfdiffnet.noise.maps import shape_of
from rbfdiffnet.series.effects import Effects
from rbfdiffnet.series.prepare import Preparation, PreparedSeries, latest_values, prepare_many
from rbfdiffnet.series.series import Series, UnfitError, check_fit
from rbfdiffnet.support.arrays import Array, Ints, Mask
from rbfdiffnet.support.checks import Noise
from rbfdiffnet.support.progress import progress_between, without_progress

_NEAREST = 3  # training windows named for each center

# Of the trial of a clean trajectory against the ordinary network:
_MOST_NOISY_LAGS = 12  # in a trajectory, unless lags are given
_HELD = 0.2  # of the series, on which both are tried
_MOST_HELD = 200
_HORIZON = 10
_ORIGINS = 20
_BETTER = 0.9  # share of the ordinary network's error


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
    return prepare_many(
        [series.y for series in panel],
        [series.known_ahead for series in panel],
        effects,
        season_length=plan.season_length,
        transforms=plan.transforms,
        log=plan.log,
        clean=plan.clean,
        backend=NUMPY if plan.device == "cpu" else backend_for(plan.device),
    )


def fit_local(series: Series, plan: Plan) -> SeriesModel:
    """Fit a network to one series; raise UnfitError if it is too short, constant or empty."""
    check_fit(series)
    prepared = prepare_for(series, plan)
    rows = TrainingRows.of(series, prepared, plan)
    if len(rows.X) < FEWEST_ROWS and (fewer := plan.shortened(series.y.size)):
        plan, rows = fewer, TrainingRows.of(series, prepared, fewer)
    if len(rows.X) < FEWEST_ROWS:
        raise too_short(rows.lags[-1], len(rows.X))
    tracked = _treat_noise(series, prepared, rows, plan)
    if isinstance(tracked, str):
        windows, untreated = rows.fit(plan), tracked
    else:
        windows, untreated = tracked, ""
        rows = TrainingRows.of(series, prepared, replace(plan, lags=windows.lags, level="none"))
    nearest = nearest_windows(windows, rows.X, rows.ends)
    return SeriesModel(prepared.preparation, windows, nearest, untreated=untreated)


def _treat_noise(
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
        early = rows.part(rows.ends + 1 < n)
        return None if len(early.X) < FEWEST_ROWS else early.fit(plan)

    n_lags = rows.lags[-1] if plan.lags is not None else min(rows.lags[-1], _MOST_NOISY_LAGS)
    noise = plan.noise if plan.noise == "auto" else plan.noise * _unit_of(preparation)
    return fit_tracked(z, known, n_lags, noise, plain, plan.like)


def fit_tracked(
    z: Array,
    known: Mask,
    n_lags: int,
    noise: Noise,
    plain: Callable[[int], WindowModel | None],
    template: StateFilter | None = None,
) -> WindowModel | str:
    """Return the network over the clean windows of a series z (T,), or why noise is not treated.

    A standard deviation given as ``noise`` is taken as it is, without a trial. ``plain(n)`` returns
    the ordinary network trained on the first n values, or None if there is none. ``template`` is
    the filter learned from more of the same series: its map's shape and its slack are taken over.
    """
    observed = np.where(known, z, np.nan)
    if noise != "auto":
        return _learn_trajectory(observed, n_lags, noise, template)
    held = min(int(_HELD * z.size), _MOST_HELD)
    with progress_between(0.0, 0.6):
        early = _learn_trajectory(observed[: z.size - held], n_lags, None)
    if isinstance(early, str):
        return early
    ordinary = plain(z.size - held)
    h = min(_HORIZON, held)
    origins = np.unique(np.linspace(z.size - held, z.size - h, _ORIGINS).astype(np.int64))
    if ordinary is not None:
        with without_progress():
            paths = (
                _forecast_tracked(early, observed, origins, h),
                _forecast_ordinary(ordinary, z, origins, h),
            )
        ahead = origins[:, None] + np.arange(h)
        errors = [np.abs(path - z[ahead])[known[ahead]].sum() for path in paths]
        if not errors[0] < _BETTER * errors[1]:
            return "the last values are forecast as well without it"
    with progress_between(0.6, 1.0):
        return _learn_trajectory(observed, n_lags, None, early.tracker)


def _learn_trajectory(
    observed: Array, n_lags: int, noise: float | None, template: StateFilter | None = None
) -> WindowModel | str:
    """Return the network over clean windows, or why there is no noise to treat."""
    try:
        shape = None if template is None else shape_of(template.network)
        found = learn_trajectory(observed, n_lags, noise, shape)
    except (ValueError, np.linalg.LinAlgError) as error:
        return str(error)
    if not found.on:
        return found.reason
    lags = tuple(range(1, n_lags + 1))
    tracker = found.tracker(observed, template)
    return WindowModel(found.network, lags, "none", 1, 1.0, np.inf, tracker)


def _forecast_ordinary(windows: WindowModel, z: Array, origins: Ints, h: int) -> Array:
    """Forecast with the ordinary network from every origin, shape (origins, h)."""
    at = np.maximum(origins[:, None] - np.arange(windows.reach, 0, -1), 0)
    return windows.forecast(z[at], h, np.zeros((len(origins), 0)))[0]


def _forecast_tracked(windows: WindowModel, observed: Array, origins: Ints, h: int) -> Array:
    """Forecast from clean states, going through the series once, shape (origins, h)."""
    n_lags = len(windows.lags)
    first = max(int(origins[0]) - windows.reach, 0)
    at = np.arange(first + n_lags, int(origins[-1]) + 1)
    histories = observed[at[:, None] - np.arange(n_lags, 0, -1)]
    return windows.roll_noisy(histories, h, after=np.isin(at, origins))[0]


def _unit_of(preparation: Preparation) -> float:
    """Return by how much the steps of a preparation stretch a series, if they do nothing else."""
    ends = preparation.steps.apply(np.array([[0.0, 1.0]]))[0]
    return float(abs(ends[1] - ends[0]))


def nearest_windows(windows: WindowModel, X: Array, ends: Ints) -> Ints:
    """Return the steps (c, 3) at which the windows nearest to each center end."""
    network = windows.network
    nearest = np.full((len(network.centers), _NEAREST), -1, dtype=np.int64)
    if len(X):
        distances = network.distances(windows.in_units(X))
        found = np.argsort(distances, axis=0, kind="stable")[:_NEAREST]
        nearest[:, : len(found)] = ends[found.T]
    return nearest
