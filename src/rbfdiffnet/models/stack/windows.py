"""What every member of a stack forecasts for a panel, from one origin of each series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rbfdiffnet.models.fit import fit_panel
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.request import Horizon
from rbfdiffnet.models.series_model import prepare_all
from rbfdiffnet.models.stack.histories import Histories
from rbfdiffnet.models.stack.members import forecast_members
from rbfdiffnet.series.effects import Effects, fit_pooled_effects
from rbfdiffnet.series.naive import naive_forecast
from rbfdiffnet.series.prepare import Preparation, clean_many
from rbfdiffnet.series.series import Series, UnfitError, check_fit
from rbfdiffnet.support.checks import Noise

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
        cls,
        panel: Sequence[Series],
        origins: Ints,
        h: int,
        plan: Plan,
        n_jobs: int = 1,
        *,
        repeats: bool = False,
    ) -> Window:
        """Forecast a panel in every way; by the last season, repeated, only if that is asked for.

        Examples
        --------
        >>> import numpy as np
        >>> from rbfdiffnet.models.plan import Plan
        >>> from rbfdiffnet.series.series import Series
        >>> from rbfdiffnet.models.stack.windows import Window
        >>> from rbfdiffnet.network.train import Settings
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
        bare = [p.without_effects(seen[i].y, seen[i].known_ahead) for i, p in own.items()]
        cleaned = clean_many(list(own.values()), bare)
        # From their first known value on.
        series = [
            u[np.argmax(np.isfinite(seen[i].y)) :] for i, (u, _) in zip(own, cleaned, strict=True)
        ]
        histories = Histories.of(series, season)
        forecasts = forecast_members(histories, h, thorough=plan.thorough, repeats=repeats)
        if histories.usual_length >= _LONG and histories.lengths.sum() <= _MOST_VALUES:
            usual = [
                Series(np.where(known, u, np.nan), np.empty((u.size, 0)), seen[i].extra)
                for i, (u, known) in zip(own, cleaned, strict=True)
            ]
            forecasts[_NETWORK] = _by_networks(usual, h, plan, n_jobs)
        return cls(seen, own, forecasts, naive)

    @property
    def fitted(self) -> npt.NDArray[np.bool_]:
        """Which series have members, shape (n,)."""
        return np.isin(np.arange(len(self.seen)), list(self.preparations))

    @property
    def usable(self) -> list[Array]:
        """What was seen of each series, NaN in the place of outliers."""
        return usable_values(self.seen, [self.preparations.get(i) for i in range(len(self.seen))])

    def restored(self, ahead: Sequence[Array]) -> dict[str, Array]:
        """Return members' forecasts of all series with the effects of inputs ahead, (n, h) each."""
        own, at = list(self.preparations.values()), list(self.preparations)
        low, high = (np.array([[getattr(p, side)] for p in own]) for side in ("low", "high"))
        never_negative = np.array([[np.nanmin(self.seen[i].y) >= 0.0] for i in at], dtype=bool)
        plain = not any(p.log or p.effects for p in own)
        members = {}
        for name, forecast in self.forecasts.items():
            members[name] = self.naive.copy()
            if not own:
                continue
            y = np.clip(forecast, low, high)
            if not plain:
                y = np.array([p.restore(u, ahead[i]) for i, p, u in zip(at, own, y, strict=True)])
            good = np.isfinite(y).all(axis=1, keepdims=True)
            y = np.where(never_negative, np.maximum(y, 0.0), y)
            members[name][at] = np.where(good, y, self.naive[at])
        return members


def _by_networks(panel: Sequence[Series], h: int, plan: Plan, n_jobs: int) -> Array:
    """Forecasts by networks of single series without effects, shape (n, h)."""
    noise: Noise = "auto" if plan.thorough else None
    plan = replace(plan, log=False, noise=noise)
    networks = fit_panel(panel, plan, scope="local", calibrate=False, n_jobs=n_jobs)
    return networks.forecast(Horizon.after(panel, h), n_jobs).values


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
    effects: Sequence[Effects | None] | None = fit_pooled_effects(
        [np.log1p(np.maximum(panel[i].y, 0.0)) if plan.log else panel[i].y for i in order],
        [panel[i].known_ahead for i in order],
        season_length=plan.season_length,
        clean=plan.clean,
        relative=not plan.log,
    )
    found = prepare_all([panel[i] for i in order], plan, effects or [None] * len(order))
    preparations = {}
    for i, own in zip(order, found, strict=True):
        if isinstance(own, UnfitError):
            reasons[i] = str(own)
        else:
            preparations[i] = own
    return preparations, dict(sorted(reasons.items()))


def odd_values(
    panel: Sequence[Series], preparations: Sequence[Preparation | None]
) -> list[npt.NDArray[np.bool_]]:
    """Which values of each series are outliers."""
    found = [np.zeros(series.y.size, dtype=bool) for series in panel]
    own = {i: p for i, p in enumerate(preparations) if p is not None}
    bare = [p.without_effects(panel[i].y, panel[i].known_ahead) for i, p in own.items()]
    cleaned = clean_many(list(own.values()), bare)
    for i, values, (_, known) in zip(own, bare, cleaned, strict=True):
        found[i] = np.isfinite(values) & ~known
    return found


def usable_values(
    panel: Sequence[Series], preparations: Sequence[Preparation | None]
) -> list[Array]:
    """Values of each series, NaN in the place of outliers."""
    odd = odd_values(panel, preparations)
    return [np.where(o, np.nan, series.y) for o, series in zip(odd, panel, strict=True)]
