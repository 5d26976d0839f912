"""Models of series: a preparation and a network over windows, for one series or shared by many.

Everything here works on arrays; `rbfdiffnet.forecaster` brings frames in and out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from rbfdiffnet.adf import adf_test
from rbfdiffnet.effects import Effects
from rbfdiffnet.noise.filtering import StateFilter
from rbfdiffnet.parameters import Noise
from rbfdiffnet.parts import ALONE, Parts
from rbfdiffnet.preparation import Preparation, prepare_many
from rbfdiffnet.recent import latest_values
from rbfdiffnet.tracked import fit_tracked
from rbfdiffnet.training import Settings
from rbfdiffnet.transforms import Difference, Transform
from rbfdiffnet.window_model import WindowModel, fit_windows, fit_windows_quickly, window_rows

__all__ = [
    "FEWEST_ROWS",
    "NUMERICAL",
    "Plan",
    "Seen",
    "Series",
    "SeriesModel",
    "TrainingRows",
    "UnfitError",
    "base_windows",
    "check_fit",
    "default_lags",
    "fit_local",
    "forecast_many",
    "nearest_windows",
    "prepare_all",
    "prepare_for",
    "transformed",
]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_FEWEST_VALUES = 8
FEWEST_ROWS = 6
_MANY_ROWS = 200  # from which on the mean of a window is a better level than its latest value
_NO_UNIT_ROOT = 1e-8  # p-value of the Dickey-Fuller test: far stricter than for differencing
_MOST_NOISY_LAGS = 12  # in a trajectory, unless lags are given
_ROWS_AT_ONCE = 256  # forecast together
_NEAREST = 3  # training windows named for each center


#: What goes wrong in computations, for one series alone.
NUMERICAL = (np.linalg.LinAlgError, FloatingPointError, OverflowError)


class UnfitError(ValueError):
    """A series no network can be fitted to; the message says why."""


@dataclass(frozen=True)
class Series:
    """One series on its grid.

    Attributes
    ----------
    y : ndarray of shape (T,)
        NaN where missing.
    known_ahead : ndarray of shape (T, q)
        Inputs known in advance.
    extra : ndarray of shape (T, p)
        Inputs known when they happen, and static ones.
    """

    y: Array
    known_ahead: Array
    extra: Array

    def until(self, n: int) -> Series:
        """Return the first n steps."""
        return Series(self.y[:n], self.known_ahead[:n], self.extra[:n])

    def after(self, n: int) -> Series:
        """Return all but the first n steps."""
        return Series(self.y[n:], self.known_ahead[n:], self.extra[n:])

    @property
    def fingerprint(self) -> bytes:
        """Digest of the content, by which series are put in an order of their own."""
        parts = (self.y, self.known_ahead, self.extra)
        return sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).digest()


@dataclass(frozen=True)
class Plan:
    """How series are modeled.

    Attributes
    ----------
    settings : callable
        Settings of the network for a number of inputs.
    season_length : int
    lags : tuple of int or None
        Ages of the inputs, ascending; None chooses them from season and length.
    level : {"mean", "last", "none"} or None
        See `WindowModel`; None chooses by length.
    transforms : tuple
        As for `rbfdiffnet.transforms.fit_transforms`.
    log, clean : bool
        As for `prepare`.
    block : int
        Number of steps a network forecasts at once.
    device : str
        Where quick networks are trained; see `rbfdiffnet.gpu.backend_for`.
    quick : bool
        Whether networks of one output are trained by `rbfdiffnet.batched`, with the settings'
        number of centers and that module's own choice of everything else.
    noise : None, "auto" or float
        Whether noise in the observations is treated; see `rbfdiffnet.tracked`.
    like : StateFilter or None
        What was learned from more of the same series.
    thorough : bool
        Whether a stack takes the time for more rows, and for noise in the series of its networks.
    parts : Parts
        Of which the series are one, where the panel is spread over several machines.
    """

    settings: Callable[[int], Settings]
    season_length: int = 1
    lags: tuple[int, ...] | None = None
    level: str | None = None
    transforms: tuple[str | Transform, ...] = ()
    log: bool = False
    clean: bool = True
    block: int = 1
    quick: bool = False
    device: str = "cpu"
    noise: Noise = None
    like: StateFilter | None = None
    thorough: bool = False
    parts: Parts = ALONE

    def lags_for(self, n: int) -> tuple[int, ...]:
        """Return the lags for a series of n values."""
        if self.lags is not None:
            return self.lags
        return tuple(range(1, max(1, min(default_lags(self.season_length), n // 3)) + 1))

    def level_for(self, *series: Array) -> str:
        """Return the level for transformed series: one for all of them.

        None where they are differenced, or return to their mean beyond any doubt; the mean of the
        window where they are long, and its latest value where they are short.
        """
        return self.level_of([self.tendency(z) for z in series])

    @property
    def _differs(self) -> bool:
        names = ("adf", "difference", "seasonal")
        return any(isinstance(t, Difference) or t in names for t in self.transforms)

    def tendency(self, z: Array) -> tuple[float, int]:
        """Return what the level depends on: a unit root's p-value, if it matters, and length."""
        matters = self.level is None and not self._differs
        return _unit_root(z) if matters else 1.0, z.size

    def level_of(self, tendencies: Sequence[tuple[float, int]]) -> str:
        """Return the level for series of these tendencies; see `level_for`."""
        if self.level is not None:
            return self.level
        p_value, size = np.median(tendencies, axis=0)
        if self._differs or p_value < _NO_UNIT_ROOT:
            return "none"
        return "mean" if size >= _MANY_ROWS else "last"


def default_lags(season_length: int) -> int:
    """Return the number of lags for a season: four days or weeks, one or two longer seasons.

    Examples
    --------
    >>> from rbfdiffnet.models import default_lags
    >>> [default_lags(season) for season in (1, 4, 7, 12, 24, 52)]
    [4, 8, 28, 15, 48, 56]
    """
    if season_length <= 4:
        return max(4, 2 * season_length)
    if season_length <= 7:
        return 4 * season_length
    if season_length == 24:
        return 48
    return season_length + max(3, min(4, season_length // 4))


@dataclass(frozen=True)
class Seen:
    """What cleaning a series found, so that a forecast right after training need not do it again.

    Attributes
    ----------
    length : int
        Number of values there were.
    latest : ndarray
        The latest values of u.
    odd : ndarray of int
        Steps at which the outliers are.
    """

    length: int
    latest: Array
    odd: Ints


@dataclass(frozen=True)
class SeriesModel:
    """A fitted model of one series.

    Attributes
    ----------
    preparation : Preparation
    windows : WindowModel
        The network; in a global model the same object for all series.
    exemplars : ndarray of int of shape (c, 3), or None
        For each basis function the steps at which the training windows nearest to its center end
        (-1: none), for explanations; None if they are yet to be found, by `nearest`.
    seen : Seen or None
        What cleaning the training data found; None if it was not kept.
    untreated : str
        Why noise is not treated, although that was asked for.
    """

    preparation: Preparation
    windows: WindowModel
    exemplars: Ints | None = None
    seen: Seen | None = None
    untreated: str = ""

    def like(self, plan: Plan) -> Plan:
        """Return the plan with this model's lags, level and noise, for a part of its series."""
        windows = self.windows
        noise = None if self.noise is None else self.noise[0]
        return replace(
            plan, lags=windows.lags, level=windows.level, noise=noise, like=windows.tracker
        )

    @property
    def noise(self) -> tuple[float, float] | None:
        """Noise of u: standard deviation, and the ratio of the signal's variance to its own."""
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
        rows = TrainingRows.of(series, self.preparation, self.like(plan))
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
    bare = [p.bare(s.y, s.known_ahead) for p, s in zip(preparations, panel, strict=True)]
    found = latest_values(preparations, bare, origins, [model.history for model in models])
    for model, (windows, seen) in zip(models, found, strict=True):
        if model.windows.tracker is not None:
            windows[~seen] = np.nan
    return [windows for windows, _ in found]


def forecast_many(
    models: Sequence[SeriesModel], bases: Sequence[Array], extras: Sequence[Array], h: int
) -> tuple[list[Array], list[list[Array]]]:
    """Forecast u for batches of windows of series that share a network, in one go.

    Parameters
    ----------
    models : sequence of SeriesModel
        With the same network.
    bases : sequence of ndarray of shape (B, history)
        For every model a batch of its latest values of u.
    extras : sequence of ndarray of shape (B, p)
    h : int

    Returns
    -------
    forecasts : list of ndarray of shape (B, h)
    rows : list of lists of ndarray
        For every model the inputs of its network, block by block.
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


def check_fit(series: Series) -> None:
    """Raise UnfitError if a network has nothing to learn from a series."""
    known = series.y[np.isfinite(series.y)]
    if not known.size:
        raise UnfitError("no values")
    if np.ptp(known) == 0.0:
        raise UnfitError("all values are zero" if known[0] == 0.0 else "all values are the same")
    if known.size < _FEWEST_VALUES:
        raise UnfitError(f"too short (known values: {known.size}, needed: {_FEWEST_VALUES})")


def prepare_for(series: Series, plan: Plan, effects: Effects | None = None) -> Preparation:
    """Fix the preparation of a series by plan; raise UnfitError where a step does not apply."""
    (found,) = prepare_all([series], plan, [effects])
    if isinstance(found, UnfitError):
        raise found
    return found


def prepare_all(
    panel: Sequence[Series], plan: Plan, effects: Sequence[Effects | None]
) -> list[Preparation | UnfitError]:
    """Fix the preparations of many series by plan, or say why a step does not apply."""
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
    """Fit a network to one series.

    Raises
    ------
    UnfitError
        If the series is too short, constant or empty.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models import Plan, Series, fit_local, forecast_many
    >>> from rbfdiffnet.training import Settings
    >>> y = np.sin(np.arange(80) * np.pi / 6)
    >>> none = np.zeros((80, 0))
    >>> plan = Plan(lambda n: Settings(8, alpha=1e-8, alpha_linear=1e-8), season_length=12)
    >>> model = fit_local(Series(y, none, none), plan)
    >>> window = model.base_windows(Series(y, none, none), np.array([80]))
    >>> (path,), _ = forecast_many([model], [window], [none[:1]], 12)
    >>> bool(np.abs(path[0] - y[68:80]).max() < 0.01)
    True
    """
    check_fit(series)
    preparation = prepare_for(series, plan)
    rows = TrainingRows.of(series, preparation, plan)
    if len(rows.X) < FEWEST_ROWS:
        raise UnfitError(
            f"too short for lag {rows.lags[-1]} (windows: {len(rows.X)}, needed: {FEWEST_ROWS})"
        )
    tracked = _tracked(series, preparation, rows, plan)
    if isinstance(tracked, str):
        windows, untreated = rows.fit(plan), tracked
    else:
        windows, untreated = tracked, ""
        rows = TrainingRows.of(series, preparation, replace(plan, lags=windows.lags, level="none"))
    nearest = nearest_windows(windows, rows.X, rows.ends)
    return SeriesModel(preparation, windows, nearest, untreated=untreated)


def _tracked(
    series: Series, preparation: Preparation, rows: TrainingRows, plan: Plan
) -> WindowModel | str:
    """Network over clean windows, or why there is no noise to treat.

    Differences have noise of another kind, and other inputs no place in a trajectory.
    """
    steps = preparation.steps
    if plan.noise is None or plan.block > 1:
        return ""
    if series.extra.shape[1]:
        return "there are inputs known of the past only"
    if steps.lost:
        return "the series is differenced"
    z, known = transformed(series, preparation)

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
    """By how much the steps of a preparation stretch a series, where they do nothing else."""
    ends = preparation.steps.apply(np.array([[0.0, 1.0]]))[0]
    return float(abs(ends[1] - ends[0]))


@dataclass(frozen=True)
class TrainingRows:
    """Rows to learn from, with the step at which each window ends."""

    X: Array
    Y: Array
    ends: Ints
    lags: tuple[int, ...]
    level: str

    @classmethod
    def of(cls, series: Series, preparation: Preparation, plan: Plan) -> TrainingRows:
        """Return the rows of a series."""
        return cls.cut(*transformed(series, preparation), series, plan)

    @classmethod
    def cut(cls, z: Array, known: Mask, series: Series, plan: Plan) -> TrainingRows:
        """Return the rows of a series that has been transformed."""
        lost = series.y.size - z.size
        lags = plan.lags_for(int(known.sum()))
        level = plan.level_for(z)
        steps = np.arange(z.size, dtype=np.float64)[:, None] + lost
        # The step travels along as a first input, and is taken off again.
        extra = np.concatenate([steps, series.extra[lost:]], axis=1)
        X, Y = window_rows(z, known, extra, lags=lags, level=level, block=plan.block)
        return cls(X[:, 1:], Y, X[:, 0].astype(np.int64), lags, level)

    @classmethod
    def pooled(cls, rows: Sequence[TrainingRows]) -> TrainingRows:
        """Return the rows of several series as one."""
        X, Y, ends = (
            np.concatenate([getattr(r, name) for r in rows]) for name in ("X", "Y", "ends")
        )
        return cls(X, Y, ends, rows[0].lags, rows[0].level)

    def part(self, which: slice, every: int) -> TrainingRows:
        """Return every so many of some rows."""
        return replace(
            self, X=self.X[which][::every], Y=self.Y[which][::every], ends=self.ends[which][::every]
        )

    def fit(self, plan: Plan) -> WindowModel:
        """Train a network on the rows."""
        settings = plan.settings(self.X.shape[1])
        if plan.quick and plan.block == 1:
            return fit_windows_quickly(
                self.X, self.Y, n_centers=settings.n_centers, lags=self.lags, level=self.level
            )
        n_extra = self.X.shape[1] - len(self.lags)
        if n_extra and isinstance(settings.metric, str) and settings.metric == "standard":
            # Inputs other than lags are often rare switches: dividing them by their small spread
            # would make them outweigh everything else in distances.
            spread = np.minimum(self.X[:, :n_extra].std(axis=0), 1.0)
            settings = replace(settings, metric=np.append(spread, np.ones(len(self.lags))))
        return fit_windows(self.X, self.Y, settings, lags=self.lags, level=self.level)


def transformed(series: Series, preparation: Preparation) -> tuple[Array, Mask]:
    """Return the transformed series, and which of its values are made of observations only."""
    u, known = preparation.base(series.y, series.known_ahead)
    if u.size <= preparation.steps.lost:
        return np.empty(0), np.empty(0, dtype=bool)
    for step in preparation.steps.steps:
        if isinstance(step, Difference):
            known = known[step.lag :] & known[: -step.lag]
        else:
            known = known[step.lost :]
    return preparation.steps.apply(u), known


def _unit_root(z: Array) -> float:
    """p-value of the test for a unit root, 1 where it has no answer."""
    return float(np.nan_to_num(adf_test(z).p_value, nan=1.0))


def nearest_windows(windows: WindowModel, X: Array, ends: Ints) -> Ints:
    """Steps at which the windows nearest to each center end."""
    network = windows.network
    nearest = np.full((len(network.centers), _NEAREST), -1, dtype=np.int64)
    if len(X):
        n_extra = X.shape[1] - len(windows.lags)
        inputs = np.concatenate([X[:, :n_extra], X[:, n_extra:] / windows.unit], axis=1)
        distances = network.distances(inputs)
        found = np.argsort(distances, axis=0, kind="stable")[:_NEAREST]
        nearest[:, : len(found)] = ends[found.T]
    return nearest
