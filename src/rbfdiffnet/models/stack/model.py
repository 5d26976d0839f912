"""The stack: members forecast a panel, and their forecasts are mixed.

How much each member counts is found at the ends of the series: with the last h steps held back, and
the h before them, all members forecast what is known already; see `models.stack.mixing`. The
errors of the mixture there make the intervals. Nothing is kept but the data and the plan: every
forecast learns from all that is known at its origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rbfdiffnet.models.panel_model import Forecasts, lenders
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.request import Horizon
from rbfdiffnet.models.stack.changes import estimate_growth, measure_changes, measure_units
from rbfdiffnet.models.stack.mixing import fit_weights
from rbfdiffnet.models.stack.spread import half_widths
from rbfdiffnet.models.stack.windows import Window, odd_values, prepared, usable_values
from rbfdiffnet.series.naive import naive_forecast
from rbfdiffnet.series.prepare import Preparation
from rbfdiffnet.series.series import Series
from rbfdiffnet.support.progress import report_progress
from rbfdiffnet.support.stability import describe_runaway
from rbfdiffnet.support.threads import one_blas_thread

__all__ = ["Mixture", "StackModel"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MOST_VALUES = 10_000  # of a series, its latest, that are learned from
_MOST_SEASONS = 20  # or as many as that
_WINDOWS = 2
_MORE_WINDOWS = 5  # for a few series
_FEW_SERIES = 5
_FEWEST_VALUES = 4
_FEW_SEASONS = 2.5  # the last of which is repeated
_ENOUGH_ERRORS = 100  # to tell members apart
_ENOUGH_FOR_A_KIND = 1_000  # to weigh members on series that are often zero, or on the others
_MANY_ZEROS = 0.3
_REMEMBERED = 2  # origins and horizons


@dataclass(frozen=True)
class Mixture:
    """Forecasts of a panel by the stack.

    Attributes
    ----------
    values : ndarray of shape (n, h)
    errors : ndarray of shape (n, n_windows, h)
        Absolute errors at the ends of the series, grown as the changes of the series have since;
        NaN where unknown.
    weights : dict of ndarray of shape (n,)
        How much each member counts; 0 for all where their median was taken.
    members : dict of ndarray of shape (n, h)
        Their forecasts.
    """

    values: Array
    errors: Array
    weights: dict[str, Array]
    members: dict[str, Array]


@dataclass(frozen=True)
class _Learned:
    """What forecasts from one origin of each series rest on, whatever the inputs ahead."""

    window: Window
    weights: Array  # (M, n)
    errors: Array

    def mixture(self, ahead: Sequence[Array]) -> Mixture:
        members = self.window.restored(ahead)
        values = _combined(np.stack(list(members.values())), self.weights)
        return Mixture(values, self.errors, dict(zip(members, self.weights, strict=True)), members)

    def runaway(self) -> dict[int, str]:
        """What is said of forecasts held back, by series; see `rbfdiffnet.support.stability`."""
        own = self.window.preparations
        low, high = np.array([(p.low, p.high) for p in own.values()]).reshape(-1, 2).T
        members = np.stack(list(self.window.forecasts.values()))
        u = _combined(np.clip(members, low[:, None], high[:, None]), self.weights[:, list(own)])
        said = {
            i: describe_runaway(v, p.low, p.high) for (i, p), v in zip(own.items(), u, strict=True)
        }
        return {i: text for i, text in said.items() if text}


@dataclass(frozen=True)
class StackModel:
    """A stack for a panel.

    Attributes
    ----------
    plan : Plan
    reasons : dict
        Why a series has no members, by its position.
    preparations : list of Preparation or None

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models.request import Horizon
    >>> from rbfdiffnet.models.plan import Plan
    >>> from rbfdiffnet.series.series import Series
    >>> from rbfdiffnet.models.stack.model import StackModel
    >>> from rbfdiffnet.network.train import Settings
    >>> y = np.random.default_rng(0).normal(size=(8, 60)).cumsum(axis=1)
    >>> panel = [Series(row, np.zeros((60, 0)), np.zeros((60, 0))) for row in y]
    >>> model = StackModel.of(panel, Plan(lambda n: Settings(n_centers=5)))
    >>> mixture = model.mixture(Horizon.after(panel, 8))
    >>> mixture.values.shape, sum(mixture.weights.values()).round(9).tolist()[:3]
    ((8, 8), [1.0, 1.0, 1.0])
    """

    plan: Plan
    reasons: dict[int, str]
    preparations: list[Preparation | None]
    _known: dict[bytes, _Learned] = field(default_factory=dict, repr=False, compare=False)
    _latest: list[Mixture] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def of(cls, panel: Sequence[Series], plan: Plan) -> StackModel:
        """Prepare the series of a panel."""
        found, reasons = prepared(panel, plan)
        return cls(plan, reasons, [found.get(i) for i in range(len(panel))])

    @property
    def models(self) -> tuple[None, ...]:
        """Networks of single series, of which none is kept."""
        return (None,) * len(self.preparations)

    @property
    def latest(self) -> Mixture | None:
        """The mixture computed last."""
        return next(iter(self._latest), None)

    def outliers(self, panel: Sequence[Series]) -> list[tuple[int, Ints]]:
        """Series with outliers, and the steps at which these are."""
        found = [np.flatnonzero(odd) for odd in odd_values(panel, self.preparations)]
        return [(i, odd) for i, odd in enumerate(found) if odd.size]

    def forecast(self, horizon: Horizon, n_jobs: int = 1) -> Forecasts:
        """Forecast what is to be forecast of every series."""
        values = self.mixture(horizon, n_jobs).values
        nothing, far = np.full_like(values, np.nan), self._known[_key(horizon)].runaway()
        return Forecasts(values, nothing, [[] for _ in values], [], far)

    def intervals(
        self, horizon: Horizon, levels: Sequence[float], n_jobs: int = 1
    ) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
        """Prediction intervals; see `rbfdiffnet.models.panel_model.PanelModel.intervals`."""
        mixture = self.mixture(horizon, n_jobs)
        seen, h = horizon.seen, horizon.h
        usable = usable_values(seen, self.preparations)
        season = self.plan.season_length
        scales = measure_changes(usable, season, h)
        errors = mixture.errors
        if not np.isfinite(errors).any():  # the panel is too short
            errors = _padded([_naive_errors(series.y, h, season) for series in seen], h)
        widths, guaranteed = half_widths(errors, scales, levels)
        alone = np.array([p is None for p in self.preparations], dtype=bool) & (scales > 0.0)
        if alone.any() and (borrowed := _naive_widths(seen, usable, alone, h, levels)):
            widths[alone], guaranteed[alone] = borrowed
        center = mixture.values[:, :, None]
        low, high = center - widths, center + widths
        never_negative = np.array([np.nanmin(s.y, initial=np.inf) >= 0.0 for s in seen], dtype=bool)
        return np.where(never_negative[:, None, None], np.maximum(low, 0.0), low), high, guaranteed

    def mixture(self, horizon: Horizon, n_jobs: int = 1) -> Mixture:
        """Mix the members' forecasts; what the latest two rest on is remembered."""
        key = _key(horizon)
        with one_blas_thread(), np.errstate(all="ignore"):
            if key not in self._known:
                learned = _learned(horizon, self.plan, n_jobs)
                for old in list(self._known)[: 1 - _REMEMBERED]:
                    del self._known[old]
                self._known[key] = learned
            mixture = self._known[key].mixture(horizon.ahead)
        self._latest[:] = [mixture]
        return mixture


def _key(horizon: Horizon) -> bytes:
    return np.append(horizon.origins, horizon.h).tobytes()


def _learned(horizon: Horizon, plan: Plan, n_jobs: int) -> _Learned:
    most, h = max(_MOST_VALUES, _MOST_SEASONS * plan.season_length), horizon.h
    panel, origins = _latest(horizon.panel, horizon.origins, most)
    repeats = _one_or_two_seasons(origins, h, plan.season_length)
    now = Window.of(panel, origins, h, plan, n_jobs, repeats=repeats)
    names, n, fitted, usable = list(now.forecasts), len(panel), now.fitted, now.usable
    errors, grown = [], []
    n_windows = _n_windows(origins[fitted], h)
    for k in range(1, n_windows + 1):
        report_progress(k / (n_windows + 1))
        earlier = np.maximum(origins - k * h, 0)
        past = Window.of(panel, earlier, h, plan, n_jobs, repeats=repeats)
        known = [_after(s.known_ahead, o, h) for s, o in zip(panel, earlier, strict=True)]
        members = past.restored(known)
        actual = np.array([_after(y, o, h) for y, o in zip(usable, earlier, strict=True)])
        counts = past.fitted & fitted & (origins - k * h >= _FEWEST_VALUES)
        forecasts = np.stack([members.get(name, np.full((n, h), np.nan)) for name in names])
        errors.append(np.where(counts[:, None], forecasts - actual.reshape(n, h), np.nan))
        grown.append(estimate_growth(usable, earlier, 2 * max(plan.season_length, h)))
    relative = np.stack(errors, axis=2) / measure_units(usable, plan.season_length)[:, None, None]
    weights = _weights(relative, _is_sparse(panel, origins))
    report_progress(1.0)
    sizes = [
        np.abs(_combined(error, weights)) * since[:, None]
        for error, since in zip(errors, grown, strict=True)
    ]
    return _Learned(now, weights, np.stack(sizes, axis=1))


def _latest(panel: Sequence[Series], origins: Ints, most: int) -> tuple[list[Series], Ints]:
    """Series with so many known values before their origins, and the origins in them."""
    cut = np.zeros_like(origins)
    for i in np.flatnonzero(origins > most).tolist():
        known = np.flatnonzero(np.isfinite(panel[i].y[: origins[i]]))
        cut[i] = known[-most] if known.size > most else 0
    return [s.after(c) for s, c in zip(panel, cut.tolist(), strict=True)], origins - cut


def _weights(errors: Array, sparse: npt.NDArray[np.bool_]) -> Array:
    """Weights of members (M, n) by their errors (M, n, n_windows, h).

    Squares count for series that are often zero. Their median says little, and means count.
    """
    weights = np.zeros(errors.shape[:2])
    for kind, squared in ((sparse, True), (~sparse, False)):
        few = kind.sum() * np.prod(errors.shape[2:]) < _ENOUGH_FOR_A_KIND
        own = errors if few else errors[:, kind]
        own = own.reshape(len(own), -1)
        tested = np.isfinite(own).any(axis=1)  # members that could forecast earlier, too
        own = own[:, np.isfinite(own[tested]).all(axis=0)][tested]
        if own.size and kind.any():
            own = own[:, np.lexsort(own)]  # whatever the order of the panel
            found = fit_weights(own, squared=squared)
            weights[np.ix_(tested, kind)] = found[:, None]
    return weights


def _is_sparse(panel: Sequence[Series], origins: Ints) -> npt.NDArray[np.bool_]:
    """Which series are often zero once they have begun, shape (n,)."""
    seen = [np.trim_zeros(s.y[:o], "f") for s, o in zip(panel, origins.tolist(), strict=True)]
    return np.array([y.size > 0 and np.mean(y == 0.0) > _MANY_ZEROS for y in seen], dtype=bool)


def _combined(members: Array, weights: Array) -> Array:
    """Mix members (M, n, h) by weights (M, n), or take their median where these are 0.

    Members without values do not count.
    """
    there = ~np.isnan(members).all(axis=(1, 2))
    if not there.any():
        return np.full(members.shape[1:], np.nan)
    members, weights = members[there], weights[there]
    total = weights.sum(axis=0)
    # One by one, not as a product of matrices, whose rounding depends on the place of a series.
    mixed = np.zeros(members.shape[1:])
    for share, member in zip(weights / np.where(total > 0.0, total, 1.0), members, strict=True):
        mixed += share[:, None] * member
    return np.where((total > 0.0)[:, None], mixed, np.median(members, axis=0))


def _after(values: Array, origin: int, h: int) -> Array:
    """Values of h steps from an origin on; NaN beyond the last."""
    found = np.full((h, *values.shape[1:]), np.nan)
    part = values[origin : origin + h]
    found[: len(part)] = part
    return found


def _naive_errors(y: Array, h: int, season: int) -> Array:
    """Absolute errors of the fallback from every step on, shape (T - 1, h)."""
    origins = np.arange(1, y.size)
    actual = np.array([_after(y, o, h) for o in range(1, y.size)]).reshape(-1, h)
    return np.abs(naive_forecast(y, origins, h, season) - actual) if y.size else actual


def _naive_widths(
    seen: Sequence[Series],
    usable: Sequence[Array],
    alone: npt.NDArray[np.bool_],
    h: int,
    levels: Sequence[float],
) -> tuple[Array, npt.NDArray[np.bool_]] | None:
    """Half-widths for series without members, from errors that last values of others make."""
    others = np.flatnonzero(~alone)
    others = others[lenders([seen[i].fingerprint for i in others.tolist()])]
    errors = _last_value_errors([seen[i] for i in others.tolist()], h)
    if not np.isfinite(errors).any():
        return None
    unknown = np.full((int(alone.sum()), *errors.shape[1:]), np.nan)
    rows = [usable[i] for i in (*others.tolist(), *np.flatnonzero(alone).tolist())]
    errors = np.concatenate([errors, unknown])
    widths, enough = half_widths(errors, measure_changes(rows, 1, h), levels)
    return widths[others.size :], enough[others.size :]


def _last_value_errors(panel: Sequence[Series], h: int) -> Array:
    """Absolute errors of last values, repeated, at the ends of series: (n, n_windows, h)."""
    errors = np.full((len(panel), _MORE_WINDOWS, h), np.nan)
    for own, series in zip(errors, panel, strict=True):
        n = series.y.size
        origins = np.array([n - k * h for k in range(1, _MORE_WINDOWS + 1) if n > k * h], dtype=int)
        actual = [_after(series.y, o, h) for o in origins.tolist()]
        forecasts = naive_forecast(series.y, origins, h, 1)
        own[: origins.size] = np.abs(forecasts - np.reshape(actual, (-1, h)))
    return errors


def _padded(tables: Sequence[Array], h: int) -> Array:
    """Tables of h columns as one array, NaN below the shorter ones."""
    found = np.full((len(tables), max(map(len, tables), default=0), h), np.nan)
    for own, table in zip(found, tables, strict=True):
        own[: len(table)] = table
    return found


def _one_or_two_seasons(origins: Ints, h: int, season: int) -> bool:
    """Whether the usual series has few seasons, one of them before the h steps held back first."""
    usual = float(np.median(origins)) if origins.size else 0.0
    return season > 1 and season + h <= usual < _FEW_SEASONS * season


def _n_windows(origins: Ints, h: int) -> int:
    """How many windows at the ends of the series serve to compare members.

    More of them where series are few or the horizon is short, as far as half of the usual series.
    """
    enough = max(-(-_ENOUGH_ERRORS // max(origins.size * h, 1)), _WINDOWS)
    most = _MORE_WINDOWS if origins.size < _FEW_SERIES else min(enough, _MORE_WINDOWS)
    room = int(np.median(origins)) // (2 * h) if origins.size else 0
    return min(most, max(room, 1))
