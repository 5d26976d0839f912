"""Fit and forecast a panel of series, each by its own network or all by a shared one.

Works on arrays: frames stay outside, in `rbfdiffnet.forecaster`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.effects import Effects
from rbfdiffnet.fallback import naive_forecast
from rbfdiffnet.intervals import (
    MOST_POOLED,
    Pool,
    calibration_length,
    half_widths,
    pooled,
    thin,
)
from rbfdiffnet.learning import Learning, learn
from rbfdiffnet.models import SeriesModel, base_windows, fit_local, forecast_many
from rbfdiffnet.parts import chained
from rbfdiffnet.plan import Plan
from rbfdiffnet.preparation import clean_many
from rbfdiffnet.quick import even_parts
from rbfdiffnet.quick_models import SlidingWindows, fit_models, forecast_models, is_quick
from rbfdiffnet.series import NUMERICAL, Series, UnfitError
from rbfdiffnet.shared import adopt, fit_shared
from rbfdiffnet.stability import runaway
from rbfdiffnet.threads import one_blas_thread, parallel_map, workers

__all__ = ["Forecasts", "PanelModel", "fit_panel", "lenders"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_WINDOWS_AT_ONCE = 1_024, 128  # continued together by plain networks, at most and at least
_PARTICLES = 100  # of a cloud, from each origin
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
        What is said of forecasts held back by the rule of `rbfdiffnet.stability`, by series.
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

        The calibrated models stay as they are; see `rbfdiffnet.learning`.
        """
        learning, windows = learn(self.learning, self.models, panel, self.plan)
        models = tuple(None if m is None else replace(m, windows=windows) for m in self.models)
        return replace(self, models=models, learning=learning)

    def forecast(
        self,
        panel: Sequence[Series],
        origins: Ints,
        h: int,
        ahead: Sequence[Array],
        n_jobs: int = 1,
    ) -> Forecasts:
        """Forecast h steps of every series.

        Parameters
        ----------
        panel : sequence of Series
        origins : ndarray of int of shape (n,)
            How many values of each series are seen.
        h : int
        ahead : sequence of ndarray of shape (h, q)
            Inputs known in advance, at the steps to forecast.
        n_jobs : int, default=1
        """
        n = len(panel)
        values, base = np.empty((n, h)), np.full((n, h), np.nan)
        rows: list[Sequence[Array]] = [[] for _ in range(n)]
        fitted = [i for i in range(n) if self.models[i] is not None]
        paths = _paths(
            [self.models[i] for i in fitted],  # type: ignore[misc]
            [panel[i].until(int(origins[i])) for i in fitted],
            [origins[i : i + 1] for i in fitted],
            [ahead[i][None] for i in fitted],
            h,
            n_jobs,
        )
        diverged, far = [], {}
        for i, (u, y, inputs) in zip(fitted, paths, strict=True):
            if np.all(np.isfinite(y)):
                values[i], base[i], rows[i] = y[0], u[0], inputs
                if said := _runaway(self.models[i], u[0], inputs):  # type: ignore[arg-type]
                    far[i] = said
            else:
                diverged.append(i)
        for i in sorted({*range(n)} - {*fitted} | {*diverged}):
            season = self.plan.season_length
            values[i] = naive_forecast(panel[i].y, origins[i : i + 1], h, season)[0]
        return Forecasts(values, base, rows, diverged, far)

    def outliers(self, panel: Sequence[Series]) -> list[tuple[int, Ints]]:
        """Series with outliers, and the steps at which these are."""
        found, unseen = {}, {}
        for i, model in enumerate(self.models):
            if model is not None and model.seen and model.seen.length == panel[i].y.size:
                found[i] = model.seen.odd
            elif model is not None:
                unseen[i] = model.preparation
        bare = [p.bare(panel[i].y, panel[i].known_ahead) for i, p in unseen.items()]
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
        ((_, y, _),) = _paths([model], [series], [origins], [ahead], 1, 1)
        naive = naive_forecast(series.y, origins, 1, self.plan.season_length)
        return np.where(np.isfinite(y), y, naive)[:, 0]

    def intervals(
        self,
        panel: Sequence[Series],
        origins: Ints,
        h: int,
        ahead: Sequence[Array],
        levels: Sequence[float],
        n_jobs: int = 1,
        pool: Pool | None = None,
    ) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
        """Prediction intervals; see `rbfdiffnet.intervals`.

        They lie around the forecasts of the calibrated models, whose errors they are made of.

        Parameters
        ----------
        panel, origins, h, ahead, n_jobs
            As for `forecast`.
        levels : sequence of float
            Between 0 and 1, ascending.
        pool : Pool, optional
            What series with few errors borrow; by default what this panel has to lend.

        Returns
        -------
        low, high : ndarray of shape (n, h, n_levels)
        guaranteed : ndarray of bool of shape (n,)
        """
        parts = self.plan.parts
        errors, scales, centers = parts.keep(lambda: self._errors(panel, origins, h, ahead, n_jobs))

        def lent() -> list[Share]:
            seen = (series.until(int(o)) for series, o in zip(panel, origins, strict=True))
            prints = [series.fingerprint for series in seen]
            return [(prints[i], thin(errors[i]), float(scales[i])) for i in lenders(prints)]

        pool = pool or parts.agree(lent, partial(_pooled, levels=levels))
        widths, guaranteed = half_widths(errors, scales, levels, pool)
        return centers - widths, centers + widths, guaranteed

    def lent(
        self,
        panel: Sequence[Series],
        origins: Ints,
        h: int,
        ahead: Sequence[Array],
        n_jobs: int = 1,
    ) -> tuple[list[Array], Array]:
        """What series have to lend to those with few errors: some errors, and their step sizes."""
        errors, scales, _ = self._errors(panel, origins, h, ahead, n_jobs)
        return [thin(own).copy() for own in errors], scales

    def _errors(
        self, panel: Sequence[Series], origins: Ints, h: int, ahead: Sequence[Array], n_jobs: int
    ) -> tuple[list[Array], Array, Array]:
        """Absolute errors of the calibrated models, step sizes of the series, and forecasts."""
        seen = [series.until(int(o)) for series, o in zip(panel, origins, strict=True)]
        models = dict(enumerate(self.calibrated))
        at = []
        for i, series in enumerate(seen):
            # From every origin of the last part with values, and from the present one; the
            # fallback has learned nothing, so from all that are known.
            end, first = _n_seen(series), self.starts[i] if self.models[i] is not None else 1
            known = np.arange(max(int(first), end - _MOST_ORIGINS, 1), end, dtype=np.int64)
            at.append(np.append(known, origins[i]))
        noisy = [i for i, m in models.items() if m is not None and m.windows.tracker is not None]
        fitted = [i for i, m in models.items() if m is not None and i not in noisy]
        paths = _paths(
            [self.calibrated[i] for i in fitted],  # type: ignore[misc]
            [seen[i] for i in fitted],
            [at[i] for i in fitted],
            [_ahead(seen[i].known_ahead, at[i], ahead[i]) for i in fitted],
            h,
            n_jobs,
        )
        forecasts = {i: y for i, (_, y, _) in zip(fitted, paths, strict=True)}

        def tracked(i: int) -> tuple[Array, Array]:
            later = _ahead(seen[i].known_ahead, at[i], ahead[i])
            return _tracked_paths(models[i], seen[i], at[i], later, h)  # type: ignore[arg-type]

        growth: dict[int, Array] = {}
        for i, (y, grown) in zip(noisy, parallel_map(tracked, noisy, n_jobs), strict=True):
            forecasts[i], growth[i] = y, grown
        errors, scales, centers = [], np.zeros(len(panel)), np.empty((len(panel), h, 1))
        for i, series in enumerate(seen):
            forecast = forecasts.get(i)
            if forecast is None or not np.all(np.isfinite(forecast[-1])):
                forecast = naive_forecast(series.y, at[i], h, self.plan.season_length)
            centers[i, :, 0] = forecast[-1]
            actual = np.append(series.y, np.full(h, np.nan))[at[i][:-1, None] + np.arange(h)]
            errors.append(np.abs(actual - forecast[:-1]) * growth.get(i, 1.0))
            recent = series.y[-2 * _MOST_ORIGINS :]
            steps = np.abs(np.diff(recent[np.isfinite(recent)]))
            scales[i] = steps.mean() if steps.size else np.nan
        return errors, scales, centers


Share = tuple[bytes, Array, float]  # fingerprint, errors and step size of a series


def lenders(fingerprints: Sequence[bytes]) -> list[int]:
    """Positions of the series from which others borrow errors: whatever their order, the same."""
    return sorted(range(len(fingerprints)), key=fingerprints.__getitem__)[:MOST_POOLED]


def _pooled(parts: Sequence[list[Share]], levels: Sequence[float]) -> Pool:
    shares = sorted(chained(parts), key=lambda share: share[0])[:MOST_POOLED]
    return pooled(
        [errors for _, errors, _ in shares], np.array([scale for _, _, scale in shares]), levels
    )


def fit_panel(
    panel: Sequence[Series], plan: Plan, *, scope: str, calibrate: bool, n_jobs: int = 1
) -> PanelModel:
    """Fit models to a panel.

    Parameters
    ----------
    panel : sequence of Series
    plan : Plan
    scope : {"local", "global"}
        One network for each series, or one for all.
    calibrate : bool
        Whether to fit the models that intervals need.
    n_jobs : int, default=1

    Returns
    -------
    PanelModel
        A series that cannot be fitted has no model, and a reason.
    """
    fit = _fit_shared if scope == "global" else _fit_each
    models, reasons, effects, learning = fit(panel, [plan] * max(len(panel), 1), n_jobs)
    lengths = [_n_seen(series) for series in panel]
    starts = np.array([n - calibration_length(n) for n in lengths], dtype=np.int64)
    calibrated: list[SeriesModel | None] = [None] * len(panel)
    fitted = [i for i, model in enumerate(models) if model is not None]
    if calibrate:
        early = [panel[i].until(int(starts[i])) for i in fitted]
        # The same lags and level, although less data might have led to others.
        plans = [model.like(plan) for model in models if model is not None]
        for i, model in zip(fitted, fit(early, plans or [plan], n_jobs)[0], strict=True):
            calibrated[i] = model
    return PanelModel(plan, tuple(models), tuple(calibrated), starts, effects, reasons, learning)


Fitted = tuple[list[SeriesModel | None], dict[int, str], Effects | None, Learning | None]


def _fit_each(panel: Sequence[Series], plans: Sequence[Plan], n_jobs: int) -> Fitted:
    results: dict[int, SeriesModel | str] = {}
    quick = [i for i in range(len(panel)) if is_quick(plans[i], panel[i])]
    if quick:
        found = fit_models([panel[i] for i in quick], [plans[i] for i in quick], n_jobs)
        results |= dict(zip(quick, found, strict=True))
    others = [i for i in range(len(panel)) if i not in results]
    if others and plans[others[0]].device != "cpu":
        raise ValueError(
            f"device={plans[others[0]].device!r} takes no inputs, transforms, lags with gaps or "
            "direct strategy; leave them out, or use device='cpu'."
        )

    def fit(job: tuple[Series, Plan]) -> SeriesModel | str:
        try:
            with np.errstate(all="ignore"):
                return fit_local(*job)
        except UnfitError as error:
            return str(error)
        except NUMERICAL as error:
            return f"numerical failure ({error})"

    fits = parallel_map(fit, [(panel[i], plans[i]) for i in others], n_jobs)
    results |= dict(zip(others, fits, strict=True))
    return (*_split([results[i] for i in range(len(panel))]), None, None)


def _fit_shared(panel: Sequence[Series], plans: Sequence[Plan], n_jobs: int) -> Fitted:  # noqa: ARG001
    effects, learning = None, None
    results: Sequence[SeriesModel | str]
    try:
        with one_blas_thread(), np.errstate(all="ignore"):
            results, effects, learning = fit_shared(panel, plans[0])
    except UnfitError as error:
        results = [str(error)] * len(panel)
    except NUMERICAL as error:
        results = [f"numerical failure ({error})"] * len(panel)
    return (*_split(results), effects, learning)


def _split(
    results: Sequence[SeriesModel | str],
) -> tuple[list[SeriesModel | None], dict[int, str]]:
    """Separate models from the reasons why there is none."""
    models = [r if isinstance(r, SeriesModel) else None for r in results]
    return models, {i: r for i, r in enumerate(results) if isinstance(r, str)}


def adopt_series(model: PanelModel, panel: Sequence[Series]) -> PanelModel:
    """Return a model of new series by a shared network that was not trained on them."""
    shared = model.shared
    models: list[SeriesModel | None] = []
    calibrated: list[SeriesModel | None] = []
    reasons: dict[int, str] = {}
    other = next((c for c in model.calibrated if c is not None), None)
    starts = [n - calibration_length(n) for n in map(_n_seen, panel)]
    for i, series in enumerate(panel):
        try:
            if shared is None:
                raise UnfitError("the model has no network")
            own = adopt(series, shared, model.plan, model.effects)
            models.append(own)
            calibrated.append(None if other is None else own.with_network_of(other))
        except UnfitError as error:
            models.append(None)
            calibrated.append(None)
            reasons[i] = str(error)
    return PanelModel(
        model.plan,
        tuple(models),
        tuple(calibrated),
        np.array(starts, dtype=np.int64),
        model.effects,
        reasons,
    )


def _n_seen(series: Series) -> int:
    """Number of steps up to the last known value."""
    known = np.flatnonzero(np.isfinite(series.y))
    return int(known[-1]) + 1 if known.size else 0


def _ahead(known_ahead: Array, origins: Ints, later: Array) -> Array:
    """Inputs known in advance after each origin, (B, h, q), from the series and the h steps after.

    For an early origin, where the series is followed by more than its own values, they go on.
    """
    everything = np.concatenate([known_ahead, later])
    return np.asarray(everything[origins[:, None] + np.arange(len(later))])


def _alike(
    models: Sequence[SeriesModel], origins: Sequence[Ints], n_workers: int
) -> list[list[int]]:
    """Groups of series that are forecast together: by one network, or by plain ones."""
    groups: dict[Any, list[int]] = {}
    for k, model in enumerate(models):
        windows = model.windows
        plain = windows.is_plain
        key = (windows.network.centers.shape, origins[k].size) if plain else id(windows)
        groups.setdefault((plain, key), []).append(k)
    parts = []
    for (plain, _), members in groups.items():
        if plain:
            n_windows = max(origins[members[0]].size, 1)
            largest, smallest = (max(n // n_windows, 1) for n in _WINDOWS_AT_ONCE)
            cuts = even_parts(len(members), largest, n_workers, smallest)
            parts += [members[cut] for cut in cuts]
        else:
            parts.append(members)
    return parts


def _bases(
    models: Sequence[SeriesModel], panel: Sequence[Series], origins: Sequence[Ints]
) -> list[Array]:
    """Latest values of u before the origins of each series, as by `SeriesModel.base_windows`."""
    found: dict[int, Array] = {}
    for k, (model, series) in enumerate(zip(models, panel, strict=True)):
        known = model.seen and model.seen.length == series.y.size and model.windows.tracker is None
        if known and np.all(origins[k] == series.y.size):
            latest = model.seen.latest[-model.history :]  # type: ignore[union-attr]
            found[k] = np.repeat(latest[None], origins[k].size, axis=0)
    others = [k for k in range(len(models)) if k not in found]
    rest = base_windows(
        [models[k] for k in others], [panel[k] for k in others], [origins[k] for k in others]
    )
    found |= dict(zip(others, rest, strict=True))
    return [found[k] for k in range(len(models))]


def _paths(
    models: Sequence[SeriesModel],
    panel: Sequence[Series],
    origins: Sequence[Ints],
    ahead: Sequence[Array],
    h: int,
    n_jobs: int,
) -> list[tuple[Array, Array, Sequence[Array]]]:
    """Forecasts of u and of y from every origin, and the rows behind them, for each series."""

    def run(members: list[int]) -> list[tuple[int, Array, Array, Sequence[Array]]]:
        own = [models[k] for k in members]
        with np.errstate(all="ignore"):
            bases = _bases(own, [panel[k] for k in members], [origins[k] for k in members])
            if own[0].windows.is_plain:
                u, rows = forecast_models(own, bases, h)
            else:
                extras = [panel[k].extra[np.maximum(origins[k] - 1, 0)] for k in members]
                u, rows = forecast_many(own, bases, extras, h)  # type: ignore[assignment]
            y = [m.preparation.restore(u[j], ahead[members[j]]) for j, m in enumerate(own)]
        return [(k, u[j], y[j], rows[j]) for j, k in enumerate(members)]

    done = {
        k: (u, y, rows)
        for result in parallel_map(run, _alike(models, origins, workers(n_jobs)), n_jobs)
        for k, u, y, rows in result
    }
    return [done[k] for k in range(len(models))]


def _runaway(model: SeriesModel, u: Array, rows: Sequence[Array]) -> str:
    """What is said of a forecast that is held back; see `rbfdiffnet.stability`."""
    preparation, windows = model.preparation, model.windows
    held = None
    if isinstance(rows, SlidingWindows):
        held = (np.abs(rows.path[0, -u.size :]) >= windows.limit) & (windows.limit > 0.0)
    elif windows.tracker is None:
        with np.errstate(all="ignore"):
            steps = windows.network.predict(np.concatenate(rows))
        held = np.abs(steps).ravel()[: u.size] > windows.limit
    return runaway(u, preparation.low, preparation.high, held)


def _tracked_paths(
    model: SeriesModel, series: Series, origins: Ints, ahead: Array, h: int
) -> tuple[Array, Array]:
    """Forecasts of y from every origin where noise is filtered, and how uncertain the last is.

    That is compared with each of the others, shape (n - 1, h): it depends on the state, and
    errors made in other states are brought to the present one.
    """
    preparation, windows = model.preparation, model.windows
    (base,) = _bases([model], [series], [origins])
    z = preparation.steps.apply(base)[:, -windows.reach :]
    path, spread, _ = windows.rolled(z, h, _PARTICLES)
    u = np.clip(preparation.steps.invert(path, base), preparation.low, preparation.high)
    return preparation.restore(u, ahead), spread[-1] / spread[:-1]
