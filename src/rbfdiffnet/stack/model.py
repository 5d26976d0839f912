"""The stack: members forecast a panel, and their forecasts are mixed.

How much each member counts is found at the ends of the series: with the last h steps held back, and
the h before them, all members forecast what is known already; see `rbfdiffnet.stack.mixing`. The
errors of the mixture there make the intervals. Nothing is kept but the data and the plan: every
forecast learns from all that is known at its origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from rbfdiffnet.effects import Effects
from rbfdiffnet.engine import Forecasts, fit_panel
from rbfdiffnet.fallback import naive_forecast
from rbfdiffnet.intervals import half_widths
from rbfdiffnet.models import Plan, Series, UnfitError, check_fit, prepare_for
from rbfdiffnet.parameters import Noise
from rbfdiffnet.preparation import Preparation
from rbfdiffnet.stack.histories import Histories
from rbfdiffnet.stack.members import member_forecasts
from rbfdiffnet.stack.mixing import mixing_weights
from rbfdiffnet.stack.pooled import pooled_effects
from rbfdiffnet.threads import one_blas_thread

__all__ = ["Mixture", "StackModel"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_WINDOWS = 2
_MORE_WINDOWS = 5  # for a few series
_FEW_SERIES = 5
_FEWEST_VALUES = 4
_ENOUGH_ERRORS = 100  # to tell members apart
_LONG = 200  # values of the usual series, from which on networks of single series are a member
_MOST_VALUES = 300_000  # of a panel, up to which they are
_MANY_ZEROS = 0.3
_GROWTH = (0.5, 3.0)
_NETWORK = "network"
_REMEMBERED = 2  # mixtures


@dataclass(frozen=True)
class _Window:
    """Members' forecasts of a panel from one origin of each series.

    Attributes
    ----------
    members : dict of ndarray of shape (n, h)
        Finite for all series.
    fitted : ndarray of bool of shape (n,)
        Which series have members; the others repeat their last season.
    usable : list of ndarray
        What was seen of each series, NaN in the place of outliers.
    """

    members: dict[str, Array]
    fitted: npt.NDArray[np.bool_]
    usable: list[Array]


@dataclass(frozen=True)
class Mixture:
    """Forecasts of a panel by the stack.

    Attributes
    ----------
    values : ndarray of shape (n, h)
    errors : ndarray of shape (n, n_windows, h)
        Absolute errors at the ends of the series, grown as the changes of the series have since;
        NaN where unknown.
    weights : dict
        How much each member counts; empty where the median of the members was taken.
    members : dict of ndarray of shape (n, h)
        Their forecasts.
    """

    values: Array
    errors: Array
    weights: dict[str, float]
    members: dict[str, Array]


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
    >>> from rbfdiffnet.models import Plan, Series
    >>> from rbfdiffnet.stack.model import StackModel
    >>> from rbfdiffnet.training import Settings
    >>> y = np.random.default_rng(0).normal(size=(8, 60)).cumsum(axis=1)
    >>> panel = [Series(row, np.zeros((60, 0)), np.zeros((60, 0))) for row in y]
    >>> model = StackModel.of(panel, Plan(lambda n: Settings(n_centers=5)))
    >>> mixture = model.mixture(panel, np.full(8, 60), 8, [np.zeros((8, 0))] * 8)
    >>> mixture.values.shape, round(sum(mixture.weights.values()), 9)
    ((8, 8), 1.0)
    """

    plan: Plan
    reasons: dict[int, str]
    preparations: list[Preparation | None]
    _known: dict[bytes, Mixture] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, panel: Sequence[Series], plan: Plan) -> StackModel:
        """Prepare the series of a panel."""
        prepared, reasons = _prepared(panel, plan)
        return cls(plan, reasons, [prepared.get(i) for i in range(len(panel))])

    @property
    def models(self) -> tuple[None, ...]:
        """Networks of single series, of which none is kept."""
        return (None,) * len(self.preparations)

    @property
    def latest(self) -> Mixture | None:
        """The mixture computed last."""
        return next(reversed(self._known.values()), None)

    def outliers(self, panel: Sequence[Series]) -> list[tuple[int, Ints]]:
        """Series with outliers, and the steps at which these are."""
        found = []
        for i, (series, p) in enumerate(zip(panel, self.preparations, strict=True)):
            odd = np.flatnonzero(_odd(series, p))
            if odd.size:
                found.append((i, odd))
        return found

    def forecast(
        self,
        panel: Sequence[Series],
        origins: Ints,
        h: int,
        ahead: Sequence[Array],
        n_jobs: int = 1,
    ) -> Forecasts:
        """Forecast h steps of every series; see `rbfdiffnet.engine.PanelModel.forecast`."""
        mixture = self.mixture(panel, origins, h, ahead, n_jobs)
        nothing = np.full_like(mixture.values, np.nan)
        return Forecasts(mixture.values, nothing, [[] for _ in panel], [])

    def intervals(
        self,
        panel: Sequence[Series],
        origins: Ints,
        h: int,
        ahead: Sequence[Array],
        levels: Sequence[float],
        n_jobs: int = 1,
    ) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
        """Prediction intervals; see `rbfdiffnet.engine.PanelModel.intervals`."""
        mixture = self.mixture(panel, origins, h, ahead, n_jobs)
        seen = [series.until(int(o)) for series, o in zip(panel, origins, strict=True)]
        usable = [_usable(series, p) for series, p in zip(seen, self.preparations, strict=True)]
        scales = np.array([_change(y[np.isfinite(y)], 1) for y in usable])
        usual = np.nanmedian(scales) if np.isfinite(scales).any() else 0.0
        scales = np.where(np.isfinite(scales), scales, usual)
        errors = list(mixture.errors)
        if not np.isfinite(mixture.errors).any():  # the panel is too short
            errors = [_naive_errors(series.y, h, self.plan.season_length) for series in seen]
        widths, guaranteed = half_widths(errors, scales, levels)
        known = np.isfinite(np.concatenate([*errors, np.empty((0, h))])).any(axis=0)
        widths = _carried_on(widths, known)
        center = mixture.values[:, :, None]
        low, high = center - widths, center + widths
        never_negative = np.array([np.nanmin(s.y, initial=np.inf) >= 0.0 for s in seen], dtype=bool)
        return np.where(never_negative[:, None, None], np.maximum(low, 0.0), low), high, guaranteed

    def mixture(
        self,
        panel: Sequence[Series],
        origins: Ints,
        h: int,
        ahead: Sequence[Array],
        n_jobs: int = 1,
    ) -> Mixture:
        """Mix the members' forecasts; the latest two mixtures are remembered."""
        inputs = b"".join(np.ascontiguousarray(a).tobytes() for a in ahead)
        key = np.append(origins, h).tobytes() + inputs
        if key not in self._known:
            with one_blas_thread(), np.errstate(all="ignore"):
                mixture = _mixed(panel, origins, h, ahead, self.plan, n_jobs)
            for old in list(self._known)[: 1 - _REMEMBERED]:
                del self._known[old]
            self._known[key] = mixture
        return self._known[key]


def _mixed(
    panel: Sequence[Series],
    origins: Ints,
    h: int,
    ahead: Sequence[Array],
    plan: Plan,
    n_jobs: int,
) -> Mixture:
    now = _window(panel, origins, h, ahead, plan, n_jobs)
    names, n = list(now.members), len(panel)
    latest = np.stack([now.members[name] for name in names])
    units = np.array([_unit(y, plan.season_length) for y in now.usable])
    errors, growth = [], []
    for k in range(1, _n_windows(origins[now.fitted], h) + 1):
        earlier = np.maximum(origins - k * h, 0)
        known = [_after(s.known_ahead, o, h) for s, o in zip(panel, earlier, strict=True)]
        past = _window(panel, earlier, h, known, plan, n_jobs)
        actual = np.array([_after(y, o, h) for y, o in zip(now.usable, earlier, strict=True)])
        actual = actual.reshape(n, h)
        usable = past.fitted & now.fitted & (origins - k * h >= _FEWEST_VALUES)
        forecasts = np.stack([past.members.get(name, np.full((n, h), np.nan)) for name in names])
        errors.append(np.where(usable[:, None], forecasts - actual, np.nan))
        recent = 2 * max(plan.season_length, h)
        both = zip(now.usable, earlier, strict=True)
        growth.append(np.array([[_growth(y, then, recent)] for y, then in both]))
    weights = None
    relative = (np.stack(errors, axis=2) / units[:, None, None]).reshape(len(names), -1)
    tested = np.isfinite(relative).any(axis=1)  # members that could forecast earlier, too
    relative = relative[:, np.isfinite(relative[tested]).all(axis=0)][tested]
    if relative.size:
        relative = relative[:, np.lexsort(relative)]  # whatever the order of the panel
        weights = np.zeros(len(names))
        weights[tested] = mixing_weights(relative, squared=_is_intermittent(panel, origins))
    sizes = [
        np.abs(_combined(error, weights)) * grown.reshape(n, 1)
        for error, grown in zip(errors, growth, strict=True)
    ]
    mixed = np.stack(sizes, axis=1)
    shares = {} if weights is None else dict(zip(names, weights.tolist(), strict=True))
    return Mixture(_combined(latest, weights), mixed, shares, now.members)


def _carried_on(widths: Array, known: npt.NDArray[np.bool_]) -> Array:
    """Half-widths (n, h, levels); those of unknown steps grow from the last known with the root."""
    steps = np.arange(1.0, known.size + 1.0)
    last = np.maximum.accumulate(np.where(known, np.arange(known.size), -1))
    grown = np.sqrt(steps / steps[last])[:, None] * widths[:, last]
    return np.where((known | (last < 0))[:, None], widths, grown)


def _growth(y: Array, then: int, recent: int) -> float:
    """By how much the changes of a series have grown since one of its steps, within bounds.

    Changes of the latest values count, so that intervals of a growing series grow with it.
    """
    before = _change(y[max(then - recent, 0) : then], 1)
    after = _change(y[max(y.size - recent, 0) :], 1)
    return float(np.clip(after / before, *_GROWTH)) if before > 0.0 and after > 0.0 else 1.0


def _is_intermittent(panel: Sequence[Series], origins: Ints) -> bool:
    """Whether the usual series is often zero: its median says little then, and means count."""
    zeros = [np.mean(s.y[:o] == 0.0) for s, o in zip(panel, origins, strict=True) if o]
    return bool(np.median(zeros) > _MANY_ZEROS)


def _combined(members: Array, weights: Array | None) -> Array:
    """Mix members (M, n, h) by weights, or take their median; those without values do not count."""
    there = ~np.isnan(members).all(axis=(1, 2))
    if not there.any():
        return np.full(members.shape[1:], np.nan)
    if weights is None or not weights[there].any():
        return np.asarray(np.median(members[there], axis=0))
    shares = weights[there] / weights[there].sum()
    # One by one, not as a product of matrices, whose rounding depends on the place of a series.
    parts = (v * each for v, each in zip(shares, members[there], strict=True))
    return np.asarray(sum(parts, np.zeros(members.shape[1:])))


def _window(
    panel: Sequence[Series],
    origins: Ints,
    h: int,
    ahead: Sequence[Array],
    plan: Plan,
    n_jobs: int,
) -> _Window:
    """Forecast a panel in every way from one origin of each series."""
    seen = [series.until(int(o)) for series, o in zip(panel, origins, strict=True)]
    season = plan.season_length
    naive = np.array(
        [
            naive_forecast(s.y, np.array([s.y.size]), h, season)[0] if s.y.size else np.zeros(h)
            for s in seen
        ]
    ).reshape(len(panel), h)
    own, _ = _prepared(seen, plan)
    fitted = np.isin(np.arange(len(panel)), list(own))
    usable = [_usable(series, own.get(i)) for i, series in enumerate(seen)]
    if not own:
        return _Window({"naive": naive}, fitted, usable)
    histories = Histories.of([_base(seen[i], p) for i, p in own.items()], season)
    forecasts = member_forecasts(histories, h, thorough=plan.thorough)
    if histories.usual_length >= _LONG and histories.lengths.sum() <= _MOST_VALUES:
        bare = [_without_effects(seen[i], p) for i, p in own.items()]
        noise: Noise = "auto" if plan.thorough else None
        forecasts[_NETWORK] = _by_networks(bare, h, replace(plan, log=False, noise=noise), n_jobs)
    members = {}
    for name, forecast in forecasts.items():
        members[name] = naive.copy()
        for (i, p), u in zip(own.items(), forecast, strict=True):
            y = p.restore(np.clip(u, p.low, p.high), ahead[i])
            if np.isfinite(y).all():
                never_negative = np.nanmin(seen[i].y) >= 0.0
                members[name][i] = np.maximum(y, 0.0) if never_negative else y
    return _Window(members, fitted, usable)


def _by_networks(panel: Sequence[Series], h: int, plan: Plan, n_jobs: int) -> Array:
    """Forecasts by networks of single series, shape (n, h)."""
    networks = fit_panel(panel, plan, scope="local", calibrate=False, n_jobs=n_jobs)
    origins = np.array([series.y.size for series in panel])
    nothing = [np.empty((h, 0))] * len(panel)
    return networks.forecast(panel, origins, h, nothing, n_jobs).values


def _prepared(panel: Sequence[Series], plan: Plan) -> tuple[dict[int, Preparation], dict[int, str]]:
    """Preparations of series, and why others have none, by position.

    In an order of their own: what is learned must not depend on that of the panel.
    """
    reasons, order = {}, []
    for i, series in enumerate(panel):
        try:
            check_fit(series)
            order.append(i)
        except UnfitError as error:
            reasons[i] = str(error)
    order.sort(key=lambda i: panel[i].fingerprint)
    effects: Sequence[Effects | None] | None = pooled_effects(
        [np.log1p(np.maximum(panel[i].y, 0.0)) if plan.log else panel[i].y for i in order],
        [panel[i].known_ahead for i in order],
        season_length=plan.season_length,
        clean=plan.clean,
        relative=not plan.log,
    )
    preparations = {}
    for i, own in zip(order, effects or [None] * len(order), strict=True):
        try:
            preparations[i] = prepare_for(panel[i], plan, own)
        except UnfitError as error:
            reasons[i] = str(error)
    return preparations, dict(sorted(reasons.items()))


def _base(series: Series, preparation: Preparation) -> Array:
    """Series without effects, outliers and gaps, from its first known value on."""
    u, _ = preparation.base(series.y, series.known_ahead)
    return u[np.argmax(np.isfinite(series.y)) :]


def _without_effects(series: Series, preparation: Preparation) -> Series:
    """Series without effects and outliers, NaN where missing."""
    bare = preparation.bare(series.y, series.known_ahead)
    bare = np.where(preparation.rule.find(bare), np.nan, bare)
    return Series(bare, np.empty((bare.size, 0)), series.extra)


def _odd(series: Series, preparation: Preparation | None) -> npt.NDArray[np.bool_]:
    """Which values are outliers."""
    if preparation is None:
        return np.zeros(series.y.size, dtype=bool)
    bare = preparation.bare(series.y, series.known_ahead)
    return np.asarray(preparation.rule.find(bare) & np.isfinite(bare))


def _usable(series: Series, preparation: Preparation | None) -> Array:
    """Values of a series, NaN in the place of outliers."""
    return np.where(_odd(series, preparation), np.nan, series.y)


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


def _n_windows(origins: Ints, h: int) -> int:
    """How many windows at the ends of the series serve to compare members.

    More of them where series are few or the horizon is short, as far as half of the usual series.
    """
    enough = max(-(-_ENOUGH_ERRORS // max(origins.size * h, 1)), _WINDOWS)
    most = _MORE_WINDOWS if origins.size < _FEW_SERIES else min(enough, _MORE_WINDOWS)
    room = int(np.median(origins)) // (2 * h) if origins.size else 0
    return min(most, max(room, 1))


def _unit(y: Array, season: int) -> float:
    """Mean change of a series over a season, or a step where there is none; NaN if unknown."""
    return next((d for d in (_change(y, season), _change(y, 1)) if d > 0.0), np.nan)


def _change(y: Array, lag: int) -> float:
    """Mean change of a series over so many steps; NaN if unknown."""
    change = np.abs(y[lag:] - y[:-lag])
    change = change[np.isfinite(change)]
    return float(change.mean()) if change.size else np.nan
