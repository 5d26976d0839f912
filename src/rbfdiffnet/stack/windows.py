"""What every member of a stack forecasts for a panel, from one origin of each series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rbfdiffnet.effects import Effects
from rbfdiffnet.engine import fit_panel
from rbfdiffnet.fallback import naive_forecast
from rbfdiffnet.models import Plan, Series, UnfitError, check_fit, prepare_for
from rbfdiffnet.parameters import Noise
from rbfdiffnet.preparation import Preparation
from rbfdiffnet.stack.histories import Histories
from rbfdiffnet.stack.members import member_forecasts
from rbfdiffnet.stack.pooled import pooled_effects

__all__ = ["Window", "odd_values", "prepared", "usable_values"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_LONG = 200  # values of the usual series, from which on networks of single series are a member
_MOST_VALUES = 300_000  # of a panel, up to which they are
_NETWORK = "network"


@dataclass(frozen=True)
class Window:
    """Members' forecasts of a panel, before effects of inputs are put back.

    Attributes
    ----------
    seen : list of Series
        Up to the origins.
    preparations : dict of Preparation
        By the position of a series; the others repeat their last season.
    forecasts : dict of ndarray
        By the member's name, for the series with a preparation.
    naive : ndarray of shape (n, h)
    """

    seen: list[Series]
    preparations: dict[int, Preparation]
    forecasts: dict[str, Array]
    naive: Array

    @classmethod
    def of(
        cls, panel: Sequence[Series], origins: Ints, h: int, plan: Plan, n_jobs: int = 1
    ) -> Window:
        """Forecast a panel in every way.

        Examples
        --------
        >>> import numpy as np
        >>> from rbfdiffnet.models import Plan, Series
        >>> from rbfdiffnet.stack.windows import Window
        >>> from rbfdiffnet.training import Settings
        >>> y = np.random.default_rng(0).normal(size=(8, 60)).cumsum(axis=1)
        >>> panel = [Series(row, np.zeros((60, 0)), np.zeros((60, 0))) for row in y]
        >>> window = Window.of(panel, np.full(8, 50), 5, Plan(lambda n: Settings(n_centers=5)))
        >>> window.restored([np.zeros((5, 0))] * 8)["theta"].shape
        (8, 5)
        """
        seen = [series.until(int(o)) for series, o in zip(panel, origins, strict=True)]
        season = plan.season_length
        naive = np.array(
            [
                naive_forecast(s.y, np.array([s.y.size]), h, season)[0] if s.y.size else np.zeros(h)
                for s in seen
            ]
        ).reshape(len(panel), h)
        own, _ = prepared(seen, plan)
        if not own:
            return cls(seen, own, {"naive": np.empty((0, h))}, naive)
        histories = Histories.of([_base(seen[i], p) for i, p in own.items()], season)
        forecasts = member_forecasts(histories, h, thorough=plan.thorough)
        if histories.usual_length >= _LONG and histories.lengths.sum() <= _MOST_VALUES:
            bare = [_without_effects(seen[i], p) for i, p in own.items()]
            forecasts[_NETWORK] = _by_networks(bare, h, plan, n_jobs)
        return cls(seen, own, forecasts, naive)

    @property
    def fitted(self) -> npt.NDArray[np.bool_]:
        """Which series have members, shape (n,)."""
        return np.isin(np.arange(len(self.seen)), list(self.preparations))

    @property
    def usable(self) -> list[Array]:
        """What was seen of each series, NaN in the place of outliers."""
        return [usable_values(s, self.preparations.get(i)) for i, s in enumerate(self.seen)]

    def restored(self, ahead: Sequence[Array]) -> dict[str, Array]:
        """Return members' forecasts of all series with the effects of inputs ahead, (n, h) each."""
        members = {}
        for name, forecast in self.forecasts.items():
            members[name] = self.naive.copy()
            for (i, p), u in zip(self.preparations.items(), forecast, strict=True):
                y = p.restore(np.clip(u, p.low, p.high), ahead[i])
                if np.isfinite(y).all():
                    never_negative = np.nanmin(self.seen[i].y) >= 0.0
                    members[name][i] = np.maximum(y, 0.0) if never_negative else y
        return members


def _by_networks(panel: Sequence[Series], h: int, plan: Plan, n_jobs: int) -> Array:
    """Forecasts by networks of single series without effects, shape (n, h)."""
    noise: Noise = "auto" if plan.thorough else None
    plan = replace(plan, log=False, noise=noise)
    networks = fit_panel(panel, plan, scope="local", calibrate=False, n_jobs=n_jobs)
    origins = np.array([series.y.size for series in panel])
    nothing = [np.empty((h, 0))] * len(panel)
    return networks.forecast(panel, origins, h, nothing, n_jobs).values


def prepared(panel: Sequence[Series], plan: Plan) -> tuple[dict[int, Preparation], dict[int, str]]:
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


def odd_values(series: Series, preparation: Preparation | None) -> npt.NDArray[np.bool_]:
    """Which values are outliers."""
    if preparation is None:
        return np.zeros(series.y.size, dtype=bool)
    bare = preparation.bare(series.y, series.known_ahead)
    return np.asarray(preparation.rule.find(bare) & np.isfinite(bare))


def usable_values(series: Series, preparation: Preparation | None) -> Array:
    """Values of a series, NaN in the place of outliers."""
    return np.where(odd_values(series, preparation), np.nan, series.y)
