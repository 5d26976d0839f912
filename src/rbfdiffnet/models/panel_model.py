"""Forecast a panel of series, each by its own network or all by a shared one.

Works on arrays: frames stay outside, in `rbfdiffnet.forecaster`. `rbfdiffnet.models.fit` fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from rbfdiffnet.models.intervals import MOST_POOLED, Lent, Pools, half_widths, thin
from rbfdiffnet.models.learning import Learning, learn
from rbfdiffnet.models.paths import forecast_paths, inputs_ahead, said_of_runaway, tracked_paths
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.request import Horizon
from rbfdiffnet.models.series_model import SeriesModel
from rbfdiffnet.series.effects import Effects
from rbfdiffnet.series.naive import naive_forecast
from rbfdiffnet.series.prepare import clean_many
from rbfdiffnet.series.series import Series
from rbfdiffnet.support.collective import flatten
from rbfdiffnet.support.threads import parallel_map

__all__ = ["Forecasts", "PanelModel", "lenders"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MOST_ORIGINS = 200  # that calibrate intervals


@dataclass(frozen=True)
class Forecasts:
    """Forecasts of a panel.

    Attributes
    ----------
    values : ndarray of shape (n, h)
    base : ndarray of shape (n, h)
        The networks' forecasts of u, before effects and logarithms are put back.
    rows : list
        For each series the inputs of its network, block by block; empty for fallbacks.
    diverged : list of int
        Series whose network gave no finite forecast; they got the fallback.
    runaway : dict of str
        What is said of forecasts held back by the rule of `support.stability`, by series.
    """

    values: Array
    base: Array
    rows: list[Sequence[Array]]
    diverged: list[int]
    runaway: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PanelModel:
    """Fitted models of a panel.

    Attributes
    ----------
    plan : Plan
    models : tuple of SeriesModel or None
        None: the series gets the fallback.
    calibrated : tuple of SeriesModel or None
        The same, fitted without the last part of each series, for intervals.
    starts : ndarray of int of shape (n,)
        Where that part starts.
    effects : Effects or None
        Effects shared by all series.
    reasons : dict
        Why a series has no model, by its position.
    learning : Learning or None
        With which a shared network can go on learning.
    """

    plan: Plan
    models: tuple[SeriesModel | None, ...]
    calibrated: tuple[SeriesModel | None, ...]
    starts: Ints
    effects: Effects | None
    reasons: dict[int, str]
    learning: Learning | None = None

    @property
    def shared(self) -> SeriesModel | None:
        """Any model: in a global panel all of them hold the same network."""
        return next((model for model in self.models if model is not None), None)

    def select(self, series: Sequence[int]) -> PanelModel:
        """Return the models of some series."""
        return replace(
            self,
            models=tuple(self.models[i] for i in series),
            calibrated=tuple(self.calibrated[i] for i in series),
            starts=self.starts[list(series)],
            reasons={k: self.reasons[i] for k, i in enumerate(series) if i in self.reasons},
            learning=None if self.learning is None else self.learning.select(series),
        )

    def joined(self, other: PanelModel) -> PanelModel:
        """Return these models followed by those of another panel."""
        n = len(self.models)
        return replace(
            self,
            models=(*self.models, *other.models),
            calibrated=(*self.calibrated, *other.calibrated),
            starts=np.concatenate([self.starts, other.starts]),
            reasons={**self.reasons, **{n + i: text for i, text in other.reasons.items()}},
            learning=None if self.learning is None else self.learning.joined(len(other.models)),
        )

    def learned(self, panel: Sequence[Series]) -> PanelModel:
        """Return the models with a shared network that has learned what is new in a panel.

        The calibrated models stay as they are; see `rbfdiffnet.models.learning`.
        """
        learning, windows = learn(self.learning, self.models, panel, self.plan)
        models = tuple(None if m is None else replace(m, windows=windows) for m in self.models)
        return replace(self, models=models, learning=learning)

    def forecast(self, horizon: Horizon, n_jobs: int = 1) -> Forecasts:
        """Forecast what is to be forecast of every series."""
        n, h, seen, origins = len(horizon.panel), horizon.h, horizon.seen, horizon.origins
        values, base = np.empty((n, h)), np.full((n, h), np.nan)
        rows: list[Sequence[Array]] = [[] for _ in range(n)]
        fitted = [i for i in range(n) if self.models[i] is not None]
        paths = forecast_paths(
            [self.models[i] for i in fitted],  # type: ignore[misc]
            [seen[i] for i in fitted],
            [origins[i : i + 1] for i in fitted],
            [horizon.ahead[i][None] for i in fitted],
            h,
            n_jobs,
        )
        diverged, far = [], {}
        for i, (u, y, inputs) in zip(fitted, paths, strict=True):
            if np.all(np.isfinite(y)):
                values[i], base[i], rows[i] = y[0], u[0], inputs
                if said := said_of_runaway(self.models[i], u[0], inputs):  # type: ignore[arg-type]
                    far[i] = said
            else:
                diverged.append(i)
        for i in sorted({*range(n)} - {*fitted} | {*diverged}):
            season = self.plan.season_length
            values[i] = naive_forecast(seen[i].y, origins[i : i + 1], h, season)[0]
        return Forecasts(values, base, rows, diverged, far)

    def outliers(self, panel: Sequence[Series]) -> list[tuple[int, Ints]]:
        """Series with outliers, and the steps at which these are."""
        found, unseen = {}, {}
        for i, model in enumerate(self.models):
            if model is not None and model.seen and model.seen.length == panel[i].y.size:
                found[i] = model.seen.odd
            elif model is not None:
                unseen[i] = model.preparation
        bare = [p.without_effects(panel[i].y, panel[i].known_ahead) for i, p in unseen.items()]
        cleaned = clean_many(list(unseen.values()), bare)
        for i, b, (_, known) in zip(unseen, bare, cleaned, strict=True):
            found[i] = np.flatnonzero(np.isfinite(b) & ~known)
        return [(i, odd) for i, odd in sorted(found.items()) if odd.size]

    def one_step(self, i: int, series: Series, first: int) -> Array:
        """One-step forecasts of series i from step ``first`` on, each from the values before it."""
        model = self.models[i]
        if model is None:
            raise ValueError(f"Series {i} has no model.")
        origins = np.arange(first, series.y.size, dtype=np.int64)
        ahead = series.known_ahead[first:, None]
        ((_, y, _),) = forecast_paths([model], [series], [origins], [ahead], 1, 1)
        naive = naive_forecast(series.y, origins, 1, self.plan.season_length)
        return np.where(np.isfinite(y), y, naive)[:, 0]

    def intervals(
        self,
        horizon: Horizon,
        levels: Sequence[float],
        n_jobs: int = 1,
        pools: Pools | None = None,
    ) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
        """Prediction intervals; see `rbfdiffnet.models.intervals`.

        They lie around the forecasts of the calibrated models, whose errors they are made of.

        Parameters
        ----------
        horizon : Horizon
        levels : sequence of float
            Between 0 and 1, ascending.
        n_jobs : int, default=1
        pools : Pools, optional
            What series with few errors borrow; by default what this panel has to lend.

        Returns
        -------
        low, high : ndarray of shape (n, h, n_levels)
        guaranteed : ndarray of bool of shape (n,)
        """
        collective = self.plan.collective
        errors, scales, centers = collective.memoize(lambda: self._errors(horizon, n_jobs))

        def lent() -> list[Share]:
            prints = [series.fingerprint for series in horizon.seen]
            chosen = lenders(prints)
            naive = self._naive_errors(horizon, chosen)
            return [
                (prints[i], thin(errors[i]), rough, float(scales[i]))
                for i, rough in zip(chosen, naive, strict=True)
            ]

        pools = pools or collective.all_reduce(lent, partial(_pooled, levels=levels))
        widths = np.empty((len(errors), horizon.h, len(levels)))
        guaranteed = np.ones(len(errors), dtype=bool)
        alone = np.array([model is None for model in self.models], dtype=bool)
        for own, pool in ((~alone, pools.networks), (alone, pools.fallbacks)):
            if own.any():
                some = [errors[i] for i in np.flatnonzero(own).tolist()]
                widths[own], guaranteed[own] = half_widths(some, scales[own], levels, pool)
        return centers - widths, centers + widths, guaranteed

    def lent(self, horizon: Horizon, n_jobs: int = 1) -> Lent:
        """What series have to lend to those with few errors."""
        errors, scales, _ = self._errors(horizon, n_jobs)
        naive = self._naive_errors(horizon, range(len(errors)))
        return Lent([thin(own).copy() for own in errors], naive, scales)

    def _naive_errors(self, horizon: Horizon, chosen: Sequence[int]) -> list[Array]:
        """Some absolute errors of last values, repeated, in the last part of chosen series."""
        found = []
        for i in chosen:
            series = horizon.panel[i].until(int(horizon.origins[i]))
            at = thin(self._calibration_origins(i, series))
            forecasts = naive_forecast(series.y, at, horizon.h, 1)
            found.append(np.abs(_actual(series, at, horizon.h) - forecasts))
        return found

    def _calibration_origins(self, i: int, series: Series) -> Ints:
        """Origins in the last part of a series that have values.

        The fallback has learned nothing, so for it all of them.
        """
        end, first = series.n_seen, 1 if self.models[i] is None else int(self.starts[i])
        return np.arange(max(first, end - _MOST_ORIGINS, 1), end, dtype=np.int64)

    def _errors(self, horizon: Horizon, n_jobs: int) -> tuple[list[Array], Array, Array]:
        """Absolute errors of the calibrated models, step sizes of the series, and forecasts."""
        seen, h, ahead = horizon.seen, horizon.h, horizon.ahead
        models = dict(enumerate(self.calibrated))
        at = [  # the present one comes last
            np.append(self._calibration_origins(i, series), horizon.origins[i])
            for i, series in enumerate(seen)
        ]
        noisy = [i for i, m in models.items() if m is not None and m.windows.tracker is not None]
        fitted = [i for i, m in models.items() if m is not None and i not in noisy]
        paths = forecast_paths(
            [self.calibrated[i] for i in fitted],  # type: ignore[misc]
            [seen[i] for i in fitted],
            [at[i] for i in fitted],
            [inputs_ahead(seen[i].known_ahead, at[i], ahead[i]) for i in fitted],
            h,
            n_jobs,
        )
        forecasts = {i: y for i, (_, y, _) in zip(fitted, paths, strict=True)}

        def tracked(i: int) -> tuple[Array, Array]:
            later = inputs_ahead(seen[i].known_ahead, at[i], ahead[i])
            return tracked_paths(models[i], seen[i], at[i], later, h)  # type: ignore[arg-type]

        growth: dict[int, Array] = {}
        for i, (y, grown) in zip(noisy, parallel_map(tracked, noisy, n_jobs), strict=True):
            forecasts[i], growth[i] = y, grown
        errors, scales, centers = [], np.zeros(len(seen)), np.empty((len(seen), h, 1))
        for i, series in enumerate(seen):
            forecast = forecasts.get(i)
            if forecast is None or not np.all(np.isfinite(forecast[-1])):
                forecast = naive_forecast(series.y, at[i], h, self.plan.season_length)
            centers[i, :, 0] = forecast[-1]
            actual = _actual(series, at[i][:-1], h)
            errors.append(np.abs(actual - forecast[:-1]) * growth.get(i, 1.0))
            recent = series.y[-2 * _MOST_ORIGINS :]
            steps = np.abs(np.diff(recent[np.isfinite(recent)]))
            scales[i] = steps.mean() if steps.size else np.nan
        return errors, scales, centers


Share = tuple[bytes, Array, Array, float]  # fingerprint, both errors and step size of a series


def _actual(series: Series, origins: Ints, h: int) -> Array:
    """Values of h steps from each origin on; NaN beyond the last."""
    return np.asarray(np.append(series.y, np.full(h, np.nan))[origins[:, None] + np.arange(h)])


def lenders(fingerprints: Sequence[bytes]) -> list[int]:
    """Positions of the series from which others borrow errors: whatever their order, the same."""
    return sorted(range(len(fingerprints)), key=fingerprints.__getitem__)[:MOST_POOLED]


def _pooled(parts: Sequence[list[Share]], levels: Sequence[float]) -> Pools:
    shares = sorted(flatten(parts), key=lambda share: share[0])[:MOST_POOLED]
    _, errors, naive, scales = zip(*shares, strict=True) if shares else ((), (), (), ())
    return Pools.of(Lent(errors, naive, np.array(scales)), levels)
