"""A panel from its series to columns of forecasts and tables, by whichever model was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rbfdiffnet.forecasting.options import NAME, Options, column_names
from rbfdiffnet.models.base import FittedModel, ForecastRequest, Terms
from rbfdiffnet.models.intervals import Pools
from rbfdiffnet.models.networks.explain import operator_terms
from rbfdiffnet.models.networks.series_model import SeriesModel
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.panel.exogenous import Exogenous
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.series.series import NO_VALUES, SeriesPanel
from rbfdiffnet.support import notes as kinds
from rbfdiffnet.support.arrays import Array, Ints, Mask
from rbfdiffnet.support.notes import Note
from rbfdiffnet.support.progress import progress_between


@dataclass(frozen=True)
class FittedPanel:
    """What a fit leaves behind: the data, the model, and what was unusual."""

    panel: Panel
    exogenous: Exogenous
    model: FittedModel
    series: SeriesPanel
    notes: tuple[Note, ...] = ()

    def select(self, chosen: Ints) -> FittedPanel:
        """Return the same for some of the series."""
        notes: dict[int, list[Note]] = {}
        for note in self.notes:
            notes.setdefault(note.series, []).append(note)
        return FittedPanel(
            self.panel.select(chosen),
            self.exogenous,
            self.model.select(chosen.tolist()),
            self.series.select(chosen),
            tuple(
                replace(note, series=k)
                for k, i in enumerate(chosen.tolist())
                for note in notes.get(i, ())
            ),
        )

    def request(self, h: int, ahead: Sequence[Array]) -> ForecastRequest:
        """Return the request for the h steps after the series."""
        return ForecastRequest(self.series, self.panel.lengths, h, ahead)


@dataclass(frozen=True)
class Pipeline:
    """Fits and forecasts panels by options and a plan, and notes what was unusual.

    In a `rehearsal` forecasts are left out: a part of a cluster only says what other parts need.
    """

    options: Options
    plan: Plan
    rehearsal: bool = False

    def fit(self, panel: Panel, exogenous: Exogenous, *, calibrate: bool) -> FittedPanel:
        """Fit a panel, with or without what intervals need."""
        series = exogenous.series(panel)
        model = self.fit_model(series, calibrate=calibrate)
        return FittedPanel(panel, exogenous, model, series, self.notes(panel, model, series))

    def fit_model(self, series: SeriesPanel, *, calibrate: bool) -> FittedModel:
        """Fit the model of a panel."""
        fit, n_jobs = self.options.method.fit, self.options.n_jobs

        def fit_without_plan() -> FittedModel:
            """The plan refers to the run it comes from, so a cluster keeps models without it."""
            return fit(series, self.plan, calibrate=calibrate, n_jobs=n_jobs).with_plan(None)

        return self.plan.collective.memoize(fit_without_plan).with_plan(self.plan)

    def forecast(
        self,
        model: FittedModel,
        request: ForecastRequest,
        levels: Mapping[str, float],
        pools: Pools | None = None,
    ) -> tuple[dict[str, Array], list[Note]]:
        """Return columns of forecasts and intervals, (n, h) each, and what was unusual."""
        n_jobs, n = self.options.n_jobs, len(request.panel)
        names = column_names([*levels])
        if self.rehearsal:
            model.ask(request, list(levels.values()))
            return {name: np.zeros((n, request.h)) for name in names}, []
        alone = 1.0 - model.interval_share if levels else 1.0
        with progress_between(0.0, alone):
            forecasts = model.forecast(request, n_jobs)
        columns = {NAME: self.bound(forecasts.values)}
        notes = [
            Note(
                i,
                kinds.NOT_FINITE,
                kinds.FORECAST_LAST_SEASON,
                detail="the network gave no finite forecast",
            )
            for i in forecasts.diverged
        ]
        notes += [
            Note(i, kinds.HELD_BACK, "held within bounds", detail=text)
            for i, text in forecasts.runaway.items()
        ]
        if not levels or not n:
            return columns | {name: np.empty((0, request.h)) for name in names[1:]}, notes
        with progress_between(alone, 1.0):
            low, high, enough = self._intervals(model, request, levels, pools)
        for j, label in enumerate(levels):
            lowest = np.minimum(low[:, :, j], forecasts.values)
            columns[f"{NAME}-lo-{label}"] = self.bound(lowest)
            highest = np.maximum(high[:, :, j], forecasts.values)
            columns[f"{NAME}-hi-{label}"] = self.bound(highest)
        action, text = "the largest error was taken", "too few errors for the intervals"
        notes += [
            Note(int(i), kinds.FEW_ERRORS, action, detail=text) for i in np.flatnonzero(~enough)
        ]
        return columns, notes

    def _intervals(
        self,
        model: FittedModel,
        request: ForecastRequest,
        levels: Mapping[str, float],
        pools: Pools | None,
    ) -> tuple[Array, Array, Mask]:
        wanted, n_jobs = list(levels.values()), self.options.n_jobs
        return model.find_intervals(request, wanted, self.plan.collective, pools, n_jobs)

    def bound(self, values: Array) -> Array:
        """Return forecasts within what was asked for, and what a number can hold."""
        largest, lower = np.finfo(np.float64).max / 4, self.options.lower
        values = np.clip(values, -largest, largest)
        return values if lower is None else np.maximum(values, lower)

    def notes(self, panel: Panel, model: FittedModel, series: SeriesPanel) -> tuple[Note, ...]:
        """Return what was unusual about the series of a panel that was fitted."""
        if self.rehearsal:
            return ()
        reasons = model.reasons
        if reasons and self.options.errors == "raise":
            i, reason = next(iter(reasons.items()))
            raise ValueError(
                f"Series {panel.name(i)!r} cannot be fitted: {reason}. Leave it out, or use "
                "errors='fallback' to get a naive forecast for it."
            )
        notes = [
            Note(
                i,
                kinds.NO_MODEL,
                kinds.FORECAST_ZERO if reason == NO_VALUES else kinds.FORECAST_NAIVE,
                detail=reason,
            )
            for i, reason in reasons.items()
        ]
        notes += self._noise_notes(model)
        for i, steps in model.find_outliers(series):
            first = panel.format_date(i, int(steps[0]))
            notes.append(Note(i, kinds.OUTLIER, "treated as missing", int(steps.size), first))
        return tuple(notes)

    def _noise_notes(self, model: FittedModel) -> list[Note]:
        notes = []
        for i, (noise, of_logarithms, reason) in model.noise_by_series().items():
            if noise is not None:
                logs = " of the logarithms" if of_logarithms else ""
                std, ratio = noise
                text = f"noise{logs} of standard deviation {std:.3g}, signal-to-noise {ratio:.3g}"
                action = "clean trajectory learned, latest values filtered"
                notes.append(Note(i, kinds.NOISE_TREATED, action, detail=text))
            elif self.plan.noise and self.plan.noise != "auto":
                notes.append(Note(i, kinds.NOISE_LEFT, "noise was not treated", detail=reason))
        return notes


def notes_frame(panel: Panel, notes: Sequence[Note]) -> Any:
    """Return a frame of everything unusual, series by series."""
    ordered = sorted((*panel.problems, *notes), key=lambda note: note.series)
    return panel.make_table(
        np.array([note.series for note in ordered], dtype=np.int64),
        {
            "problem": [note.problem for note in ordered],
            "action": [note.action for note in ordered],
        },
    )


def explanation_frame(panel: Panel, tables: Sequence[Terms], values: Array, bounded: Array) -> Any:
    """Return the frame `RBFDiffNet.explain` promises; values (n, h) are bounded afterwards."""
    for terms, before, after in zip(tables, values, bounded, strict=True):
        if np.any(after != before):
            terms.add("bound", "lower bound", after - before)
    h = bounded.shape[1]
    n_terms = np.array([len(t.rows) for t in tables], dtype=np.int64)
    texts: dict[str, list[str]] = {"part": [], "term": [], "nearest": []}
    numbers: dict[str, list[Array]] = {
        name: [] for name in ("value", "weight", "activation", "contribution")
    }
    for t in tables:
        for name, column in numbers.items():
            column.append(np.stack([row[name] for row in t.rows], axis=1).ravel())
        for text, words in texts.items():
            words += [row[text] for row in t.rows] * h
    series = np.repeat(np.arange(panel.n_series), n_terms * h)
    step = np.concatenate(
        [np.repeat(np.arange(h), n) for n in n_terms] + [np.empty(0, dtype=np.int64)]
    )
    flat = {name: np.concatenate([*column, np.empty(0)]) for name, column in numbers.items()}
    columns = {
        "part": np.array(texts["part"], dtype=object),
        "term": np.array(texts["term"], dtype=object),
        **flat,
        "nearest": np.array(texts["nearest"], dtype=object),
    }
    first = panel.lengths[series] + step
    return panel.make_frame(first, 1, columns, series=series)


def operator_frame(
    panel: Panel, models: Mapping[int, SeriesModel], extra_names: tuple[str, ...]
) -> Any:
    """Return the frame `RBFDiffNet.equation` promises, for models by the position of a series."""
    rows = [
        (i, *term)
        for i, model in models.items()
        if model.windows.network.order
        for term in operator_terms(model, extra_names)
    ]
    series, orders, inputs, values = zip(*rows, strict=True) if rows else ((), (), (), ())
    return panel.make_table(
        np.array(series, dtype=np.int64),
        {
            "order": np.array(orders, dtype=np.int64),
            "input": np.array(inputs, dtype=object),
            "coefficient": np.array(values, dtype=np.float64),
        },
    )
