"""The stack: members forecast a panel, and their forecasts are mixed.

How much each member counts is found at the ends of the series: with the last h steps held back, and
the h before them, all members forecast what is known already; see `rbfdiffnet.stack.mixing`. The
errors of the mixture there make the intervals. Nothing is kept but the data and the plan: every
forecast learns from all that is known at its origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rbfdiffnet.engine import Forecasts, fit_panel
from rbfdiffnet.fallback import naive_forecast
from rbfdiffnet.intervals import half_widths
from rbfdiffnet.models import Plan, Series, UnfitError, check_fit, prepare_for
from rbfdiffnet.preparation import Preparation
from rbfdiffnet.stack.histories import Histories
from rbfdiffnet.stack.members import member_forecasts
from rbfdiffnet.stack.mixing import mixing_weights
from rbfdiffnet.threads import one_blas_thread

__all__ = ["Mixture", "StackModel"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_WINDOWS = 2
_MORE_WINDOWS = 5  # for a few series
_FEW_SERIES = 5
_FEWEST_VALUES = 4
_FEWEST_ERRORS = 100  # to tell members apart
_LONG = 200  # values of the usual series, from which on networks of single series are a member
_MOST_VALUES = 300_000  # of a panel, up to which they are
_NETWORK = "network"


@dataclass(frozen=True)
class _Window:
    """Members' forecasts of a panel from one origin of each series.

    Attributes
    ----------
    members : dict of ndarray of shape (n, h)
        Finite for all series.
    fitted : ndarray of bool of shape (n,)
        Which series have members; the others repeat their last season.
    """

    members: dict[str, Array]
    fitted: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Mixture:
    """Forecasts of a panel by the stack.

    Attributes
    ----------
    values : ndarray of shape (n, h)
    errors : ndarray of shape (n, n_windows, h)
        Absolute errors at the ends of the series; NaN where unknown.
    weights : dict
        How much each member counts; empty where the median of the members was taken.
    """

    values: Array
    errors: Array
    weights: dict[str, float]


@dataclass(frozen=True)
class StackModel:
    """A stack for a panel.

    Attributes
    ----------
    plan : Plan
    reasons : dict
        Why a series has no members, by its position.
    preparations : list of Preparation or None
    """

    plan: Plan
    reasons: dict[int, str]
    preparations: list[Preparation | None]
    _known: dict[bytes, Mixture] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, panel: Sequence[Series], plan: Plan) -> StackModel:
        """Prepare the series of a panel."""
        preparations, reasons = _prepared(panel, plan)
        return cls(plan, reasons, preparations)

    @property
    def models(self) -> tuple[None, ...]:
        """Networks of single series, of which none is kept."""
        return (None,) * len(self.preparations)

    def select(self, series: Sequence[int]) -> StackModel:
        """Return the stack for some series."""
        reasons = {k: self.reasons[i] for k, i in enumerate(series) if i in self.reasons}
        return StackModel(self.plan, reasons, [self.preparations[i] for i in series])

    def outliers(self, panel: Sequence[Series]) -> list[tuple[int, Ints]]:
        """Series with outliers, and the steps at which these are."""
        found = []
        for i, (series, p) in enumerate(zip(panel, self.preparations, strict=True)):
            if p is not None:
                bare = p.bare(series.y, series.known_ahead)
                odd = np.flatnonzero(p.rule.find(bare) & np.isfinite(bare))
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
        scales = np.array([_change(series.y, 1) for series in seen])
        usual = np.nanmedian(scales) if np.isfinite(scales).any() else 0.0
        scales = np.where(np.isfinite(scales), scales, usual)
        widths, guaranteed = half_widths(list(mixture.errors), scales, levels)
        center = mixture.values[:, :, None]
        return center - widths, center + widths, guaranteed

    def mixture(
        self,
        panel: Sequence[Series],
        origins: Ints,
        h: int,
        ahead: Sequence[Array],
        n_jobs: int = 1,
    ) -> Mixture:
        """Mix the members' forecasts; what was computed once is remembered."""
        inputs = b"".join(np.ascontiguousarray(a).tobytes() for a in ahead)
        key = np.append(origins, h).tobytes() + inputs
        if key not in self._known:
            with one_blas_thread(), np.errstate(all="ignore"):
                self._known[key] = _mixed(panel, origins, h, ahead, self.plan, n_jobs)
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
    units = np.array(
        [_change(s.y[:o], plan.season_length) for s, o in zip(panel, origins, strict=True)]
    )
    errors = []
    for k in range(1, _n_windows(origins, h) + 1):
        earlier = np.maximum(origins - k * h, 0)
        known = [s.known_ahead[o : o + h] for s, o in zip(panel, earlier, strict=True)]
        past = _window(panel, earlier, h, known, plan, n_jobs)
        actual = np.array([s.y[o : o + h] for s, o in zip(panel, earlier, strict=True)])
        usable = past.fitted & now.fitted & (origins - k * h >= _FEWEST_VALUES)
        forecasts = np.stack([past.members.get(name, np.full((n, h), np.nan)) for name in names])
        errors.append(np.where(usable[:, None], forecasts - actual, np.nan))
    wrong = np.stack(errors, axis=2) if errors else np.full((len(names), n, 1, h), np.nan)
    relative = (wrong / units[:, None, None]).reshape(len(names), -1)
    relative = relative[:, np.isfinite(relative).all(axis=0)]
    if relative.shape[1] < _FEWEST_ERRORS:
        mixed = np.abs(np.median(wrong, axis=0))
        return Mixture(np.median(latest, axis=0), mixed, {})
    weights = mixing_weights(relative)
    values = np.tensordot(weights, latest, axes=1)
    mixed = np.abs(np.tensordot(weights, wrong, axes=1))
    return Mixture(values, mixed, dict(zip(names, weights.tolist(), strict=True)))


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
    preparations, _ = _prepared(seen, plan)
    fitted = np.array([p is not None for p in preparations], dtype=bool)
    if not fitted.any():
        return _Window({"naive": naive}, fitted)
    own = {i: p for i, p in enumerate(preparations) if p is not None}
    bases = [p.base(seen[i].y, seen[i].known_ahead)[0] for i, p in own.items()]
    histories = Histories.of(bases, season)
    members = {}
    for name, forecast in member_forecasts(histories, h).items():
        members[name] = naive.copy()
        for (i, p), u in zip(own.items(), forecast, strict=True):
            y = p.restore(np.clip(u, p.low, p.high), ahead[i])
            if np.isfinite(y).all():
                members[name][i] = y
    if histories.usual_length >= _LONG and histories.lengths.sum() <= _MOST_VALUES:
        networks = fit_panel(seen, plan, scope="local", calibrate=False, n_jobs=n_jobs)
        members[_NETWORK] = networks.forecast(seen, origins, h, ahead, n_jobs).values
    return _Window(members, fitted)


def _prepared(
    panel: Sequence[Series], plan: Plan
) -> tuple[list[Preparation | None], dict[int, str]]:
    """Preparations of series, or None and the reason."""
    preparations: list[Preparation | None] = []
    reasons = {}
    for i, series in enumerate(panel):
        try:
            check_fit(series)
            preparations.append(prepare_for(series, plan))
        except UnfitError as error:
            preparations.append(None)
            reasons[i] = str(error)
    return preparations, reasons


def _n_windows(origins: Ints, h: int) -> int:
    """How many windows at the ends of the series serve to compare members."""
    most = _MORE_WINDOWS if origins.size < _FEW_SERIES else _WINDOWS
    room = int(np.median(origins)) // (2 * h) if origins.size else 0
    return min(most, max(room, 1))


def _change(y: Array, season: int) -> float:
    """Mean change of a series over a season, or a step where it is shorter; NaN if unknown."""
    for lag in (season, 1):
        change = np.abs(y[lag:] - y[:-lag])
        change = change[np.isfinite(change)]
        if change.size and change.mean() > 0.0:
            return float(change.mean())
    return np.nan
