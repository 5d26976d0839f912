"""Fitted networks of a panel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from rbfdiffnet.models.base import (
    FALLBACK,
    FittedModel,
    ForecastRequest,
    Forecasts,
    InputNames,
    SeriesTable,
    Terms,
)
from rbfdiffnet.models.intervals import HeldOutErrors, take_evenly
from rbfdiffnet.models.networks.explain import explain_series
from rbfdiffnet.models.networks.files import networks_to_arrays, steps_to_keep
from rbfdiffnet.models.networks.forecast import (
    Path,
    forecast_paths,
    runaway_message,
    state_paths,
    tracked_paths,
)
from rbfdiffnet.models.networks.series_model import SeriesModel
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.series.effects import Effects
from rbfdiffnet.series.naive import naive_errors, naive_forecast, values_after
from rbfdiffnet.series.prepare import apply_many
from rbfdiffnet.series.series import Series, SeriesPanel
from rbfdiffnet.series.transforms import Difference
from rbfdiffnet.support.arrays import Array, Arrays, Ints
from rbfdiffnet.support.parallel import parallel_map
from rbfdiffnet.support.progress import progress_between, report_progress

_MOST_ORIGINS = 200  # that calibrate intervals


@dataclass(frozen=True)
class FittedNetworks(FittedModel):
    """A fitted network for each series of a panel; None where a series gets the naive forecast.

    `calibrated` are networks fitted without the last part of each series, which begins at `starts`
    (n,); their errors there make the intervals.
    """

    interval_share: ClassVar[float] = 0.5

    plan: Plan
    models: tuple[SeriesModel | None, ...]
    calibrated: tuple[SeriesModel | None, ...]
    starts: Ints
    reasons: dict[int, str]

    @property
    def n_series(self) -> int:
        """How many series the model has."""
        return len(self.models)

    @property
    def fitted(self) -> dict[int, SeriesModel]:
        """The models of the series that have one, by position."""
        return {i: model for i, model in enumerate(self.models) if model is not None}

    def select(self, chosen: Sequence[int]) -> Self:
        """Return the models of some series."""
        return replace(
            self,
            models=tuple(self.models[i] for i in chosen),
            calibrated=tuple(self.calibrated[i] for i in chosen),
            starts=self.starts[list(chosen)],
            reasons={k: self.reasons[i] for k, i in enumerate(chosen) if i in self.reasons},
        )

    def with_networks(self, panel: SeriesPanel, chosen: Sequence[int]) -> FittedNetworks:
        """Return the networks of chosen series."""
        del panel
        return self.select(chosen)

    def extend(self, panel: SeriesPanel) -> FittedModel:
        """Return these networks, which also forecast newer values; new series are refused."""
        new = panel.names[self.n_series :]
        if new:
            verb = "was" if len(new) == 1 else "were"
            raise ValueError(
                f"Series {', '.join(map(repr, new[:3]))} {verb} not there when the model was "
                "fitted; use update(df, refit=True), or scope='global'."
            )
        return self

    def to_arrays(
        self, panel: SeriesPanel, *, keep_all: bool = False
    ) -> tuple[Ints, Arrays, dict[str, Any]]:
        """Return how many latest steps of each series to keep, and arrays and words to save."""
        keep = lengths = panel.ends - panel.starts
        if not keep_all:
            season, unlearned = self.plan.season_length, self._unlearned(lengths)
            keep = steps_to_keep(self.models, self.calibrated, panel, season, unlearned)
        return keep, *self._to_arrays(np.maximum(lengths - keep, 0))

    def _to_arrays(self, cut: Ints) -> tuple[Arrays, dict[str, Any]]:
        """Return arrays and words to save; `cut` (n,) first steps of the series are not saved."""
        arrays, words = networks_to_arrays(self.models, self.calibrated, cut, self._common_effects)
        arrays["starts"] = np.maximum(self.starts - cut, 0)
        return arrays, words | {"reasons": {str(i): text for i, text in self.reasons.items()}}

    def _unlearned(self, lengths: Ints) -> Ints:
        """Return how many steps of each series (n,) a shared network is yet to learn."""
        return np.zeros_like(lengths)

    @property
    def _common_effects(self) -> Effects | None:
        return None

    # Forecasts ------------------------------------------------------------------------------------

    def forecast(self, request: ForecastRequest, n_jobs: int = 1) -> Forecasts:
        """Forecast every series."""
        values, _, diverged, runaway = self._forecast(request, n_jobs)
        return Forecasts(values, diverged, runaway)

    def find_effects(self, request: ForecastRequest) -> dict[int, Effects | None]:
        """Return the effects that the centers of quantiles have: of the calibrated networks."""
        del request
        models = [early or model for early, model in zip(self.calibrated, self.models, strict=True)]
        return {i: own.preparation.effects for i, own in enumerate(models) if own is not None}

    def _forecast(
        self, request: ForecastRequest, n_jobs: int
    ) -> tuple[Array, dict[int, Path], list[int], dict[int, str]]:
        """Return forecasts (n, h), the paths of networks, and what went wrong."""
        n, h, seen, origins = len(request.panel), request.h, request.seen, request.origins
        fitted = self.fitted
        paths = forecast_paths(
            list(fitted.values()),
            [seen[i] for i in fitted],
            [origins[i : i + 1] for i in fitted],
            [request.ahead[i][None] for i in fitted],
            h,
            n_jobs,
        )
        values, found = np.empty((n, h)), {}
        diverged, runaway = [], {}
        for i, path in zip(fitted, paths, strict=True):
            u, y, inputs = path
            if np.isfinite(y).all():
                values[i], found[i] = y[0], path
                if message := runaway_message(fitted[i], u[0], inputs):
                    runaway[i] = message
            else:
                diverged.append(i)
        for i in sorted({*range(n)} - {*found}):
            season = self.plan.season_length
            values[i] = naive_forecast(seen[i].y, origins[i : i + 1], h, season)[0]
        return values, found, diverged, runaway

    def one_step_forecasts(self, panel: SeriesPanel) -> dict[int, tuple[int, Array]]:
        """Return the first step and one-step forecasts from it on, by series."""
        long = {i: model for i, model in self.fitted.items() if panel[i].y.size > model.history}

        def forecast(i: int) -> tuple[int, Array]:
            return long[i].history, self._one_step(long[i], panel[i], long[i].history)

        return dict(zip(long, parallel_map(forecast, list(long), reports=True), strict=True))

    def _one_step(self, model: SeriesModel, series: Series, first: int) -> Array:
        origins = np.arange(first, series.y.size, dtype=np.int64)
        ahead = series.known_ahead[first:, None]
        ((_, y, _),) = forecast_paths([model], [series], [origins], [ahead], 1, 1)
        naive = naive_forecast(series.y, origins, 1, self.plan.season_length)
        return np.where(np.isfinite(y), y, naive)[:, 0]

    # What is told of the networks -----------------------------------------------------------------

    def find_outliers(self, panel: Sequence[Series]) -> list[tuple[int, Ints]]:
        """Return series with outliers, and the steps at which the outliers are."""
        found, unseen = {}, {}
        for i, model in self.fitted.items():
            if model.seen and model.seen.length == panel[i].y.size:
                found[i] = model.seen.outliers
            else:
                unseen[i] = model.preparation
        series = [panel[i].y for i in unseen], [panel[i].known_ahead for i in unseen]
        ready = apply_many(list(unseen.values()), *series)
        for i, own in zip(unseen, ready, strict=True):
            found[i] = np.flatnonzero(own.is_outlier)
        return [(i, outliers) for i, outliers in sorted(found.items()) if outliers.size]

    def noise_by_series(self) -> dict[int, tuple[tuple[float, float] | None, bool, str]]:
        """Return noise and signal-to-noise, whether of logarithms, and why untreated, by series."""
        return {i: (m.noise, m.preparation.log, m.untreated) for i, m in self.fitted.items()}

    def describe_choices(self) -> SeriesTable:
        """Return the settings of every network."""
        models = list(self.fitted.values())
        networks = [model.windows.network for model in models]
        columns = {
            "season_length": [model.preparation.season_length for model in models],
            "logarithms": [model.preparation.log for model in models],
            "differences": [_differences(model) for model in models],
            "lags": [_ranges(model.windows.lags) for model in models],
            "level": [model.windows.level for model in models],
            "order": [network.order for network in networks],
            "n_centers": [len(network.centers) for network in networks],
        }
        return SeriesTable(np.array(list(self.fitted), dtype=np.int64), columns)

    def explain(
        self, request: ForecastRequest, names: InputNames, chosen: Sequence[int], n_jobs: int = 1
    ) -> tuple[Array, list[Terms]]:
        """Return forecasts (n, h), and for chosen series the terms they are the sum of."""
        with progress_between(0.0, 0.5):
            values, paths, _, _ = self._forecast(request, n_jobs)
        tables = []
        for k, i in enumerate(chosen):
            report_progress(0.5 + 0.5 * k / len(chosen))
            model, series, terms = self.models[i], request.panel[i], Terms()
            if model is None or i not in paths:
                terms.add("fallback", FALLBACK, values[i])
            else:
                u, _, rows = paths[i]
                ends = model.nearest(series, self.plan)
                nearest = [", ".join(names.label(i, int(t)) for t in e if t >= 0) for e in ends]
                own = names.ahead, names.extra
                terms = explain_series(
                    model, series, u[0], values[i], rows, request.ahead[i], own, nearest
                )
            tables.append(terms)
        return values, tables

    # Held-out errors ------------------------------------------------------------------------------

    def held_out_errors(self, request: ForecastRequest, n_jobs: int = 1) -> HeldOutErrors:
        """Return the errors of the calibrated networks, and their forecasts of the request."""
        errors, scales, centers = self.plan.collective.memoize(
            lambda: self._errors(request, n_jobs)
        )

        def naive(chosen: Sequence[int]) -> tuple[list[Array], Array]:
            """Errors of last values, repeated, in the last part of chosen series."""
            found = []
            for i in chosen:
                series = request.panel[i].until(int(request.origins[i]))
                at = take_evenly(self._calibration_origins(i, series))
                found.append(naive_errors(series.y, at, request.h, 1))
            return found, scales[list(chosen)]

        return HeldOutErrors(
            errors,
            scales,
            centers,
            modeled=np.array([model is not None for model in self.models], dtype=bool),
            naive=naive,
            fingerprints=lambda: [series.fingerprint for series in request.seen],
        )

    def state_paths(self, request: ForecastRequest) -> dict[int, Array]:
        """Return paths (N, h) of the clouds of series whose noise is filtered, with noise."""
        found = {}
        for i, model in self.fitted.items():
            if (tracker := model.windows.tracker) is not None:
                series, origin = request.panel[i], int(request.origins[i])
                paths = state_paths(model, series.until(origin), origin, request.h)
                noise = np.random.default_rng(0).normal(size=paths.shape)
                found[i] = paths + tracker.noise * noise
        return found

    def _calibration_origins(self, i: int, series: Series) -> Ints:
        """Return the origins in the last part of a series that have values.

        The naive forecast has learned nothing, so for it all origins count.
        """
        end, first = series.n_seen, 1 if self.models[i] is None else int(self.starts[i])
        return np.arange(max(first, end - _MOST_ORIGINS, 1), end, dtype=np.int64)

    def _errors(self, request: ForecastRequest, n_jobs: int) -> tuple[list[Array], Array, Array]:
        """Return errors (m, h), step sizes (n,) and forecasts (n, h) of the request."""
        seen, h = request.seen, request.h
        at = [  # the present one comes last
            np.append(self._calibration_origins(i, series), request.origins[i])
            for i, series in enumerate(seen)
        ]
        forecasts, growth = self._forecast_calibrated(request, seen, at, n_jobs)
        errors, scales, centers = [], np.zeros(len(seen)), np.empty((len(seen), h))
        for i, series in enumerate(seen):
            forecast = forecasts.get(i)
            if forecast is None or not np.all(np.isfinite(forecast[-1])):
                forecast = naive_forecast(series.y, at[i], h, self.plan.season_length)
            centers[i] = forecast[-1]
            actual = values_after(series.y, at[i][:-1], h)
            errors.append((actual - forecast[:-1]) * growth.get(i, 1.0))
            recent = series.y[-2 * _MOST_ORIGINS :]
            steps = np.abs(np.diff(recent[np.isfinite(recent)]))
            scales[i] = steps.mean() if steps.size else np.nan
        return errors, scales, centers

    def _forecast_calibrated(
        self, request: ForecastRequest, seen: Sequence[Series], at: Sequence[Ints], n_jobs: int
    ) -> tuple[dict[int, Array], dict[int, Array]]:
        """Return forecasts (B, h) from B origins of series, and by how much their errors grow."""
        h, models = request.h, {i: m for i, m in enumerate(self.calibrated) if m is not None}
        ahead = {i: _inputs_ahead(seen[i].known_ahead, at[i], request.ahead[i]) for i in models}
        noisy = [i for i, model in models.items() if model.windows.tracker is not None]
        plain = [i for i, model in models.items() if model.windows.tracker is None]
        first = len(plain) / max(len(models), 1)
        with progress_between(0.0, first):
            paths = forecast_paths(
                [models[i] for i in plain],
                [seen[i] for i in plain],
                [at[i] for i in plain],
                [ahead[i] for i in plain],
                h,
                n_jobs,
            )
        forecasts = {i: y for i, (_, y, _) in zip(plain, paths, strict=True)}

        def track(i: int) -> tuple[Array, Array]:
            return tracked_paths(models[i], seen[i], at[i], ahead[i], h)

        with progress_between(first, 1.0):
            found = parallel_map(track, noisy, n_jobs, reports=True)
        tracked = dict(zip(noisy, found, strict=True))
        forecasts |= {i: y for i, (y, _) in tracked.items()}
        return forecasts, {i: growth for i, (_, growth) in tracked.items()}


def _inputs_ahead(known_ahead: Array, origins: Ints, later: Array) -> Array:
    """Return inputs known in advance after each origin, (B, h, q); `later` (h, q) at the end."""
    everything = np.concatenate([known_ahead, later])
    return np.asarray(everything[origins[:, None] + np.arange(len(later))])


def _differences(model: SeriesModel) -> str:
    """Return the lags of the differences taken, such as ``12, 1``."""
    steps = model.preparation.steps.steps
    return ", ".join(str(step.lag) for step in steps if isinstance(step, Difference))


def _ranges(lags: Sequence[int]) -> str:
    """Write lags in short, such as ``1-14, 28``."""
    breaks = [k for k in range(1, len(lags)) if lags[k] != lags[k - 1] + 1]
    runs = zip([0, *breaks], [*breaks, len(lags)], strict=True)
    ends = [(lags[first], lags[last - 1]) for first, last in runs]
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ends)
