"""A panel from its series to the columns of its forecasts, by whichever model was asked for.

Between `rbfdiffnet.forecaster`, which talks to users, and the models: `models.panel_model`,
networks of series, and `rbfdiffnet.models.stack`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.forecasting.options import NAME, column_names
from rbfdiffnet.models.fit import fit_panel
from rbfdiffnet.models.intervals import Pools
from rbfdiffnet.models.panel_model import Forecasts, PanelModel
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.request import Horizon
from rbfdiffnet.panel.exogenous import Exogenous
from rbfdiffnet.panel.panel import Panel, Problem
from rbfdiffnet.series.series import Series

__all__ = ["Asked", "State", "Work", "notes_frame"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Asked:
    """What is asked of a panel.

    Attributes
    ----------
    h : int
        How many steps ahead.
    ahead : sequence of ndarray of shape (h, q)
        Inputs of each series at these steps.
    levels : mapping
        Levels of intervals, between 0 and 1, by their labels.
    """

    h: int
    ahead: Sequence[Array]
    levels: Mapping[str, float]

    @property
    def columns(self) -> list[str]:
        """Names of the columns that answer it."""
        return column_names([*self.levels])

    def of(self, panel: Sequence[Series], origins: Ints) -> Horizon:
        """Return what is to be forecast, once it is known of which series."""
        return Horizon(panel, origins, self.h, self.ahead)

    def select(self, chosen: Ints) -> Asked:
        """Return what is asked of some series."""
        return replace(self, ahead=[self.ahead[i] for i in chosen.tolist()])


@dataclass(frozen=True)
class State:
    """What a fit leaves behind."""

    panel: Panel
    exogenous: Exogenous
    model: PanelModel
    series: list[Series] = field(repr=False)
    notes: tuple[Problem, ...] = ()

    def select(self, chosen: Ints) -> State:
        """Return the state of some series."""
        notes: dict[int, list[Problem]] = {}
        for note in self.notes:
            notes.setdefault(note.series, []).append(note)
        return State(
            self.panel.select(chosen),
            self.exogenous,
            self.model.select(chosen.tolist()),
            [self.series[i] for i in chosen.tolist()],
            tuple(
                replace(n, series=k)
                for k, i in enumerate(chosen.tolist())
                for n in notes.get(i, ())
            ),
        )


@dataclass(frozen=True)
class Work:
    """How panels are learned and forecast: what the arguments of a forecaster come to.

    Attributes
    ----------
    plan : Plan
    scope : {"auto", "local", "global"}
    lower : float or None
        Bound of forecasts.
    strict : bool
        Whether a series that cannot be fitted is an error.
    n_jobs : int
    memory_limit : int
        Bytes; see `rbfdiffnet.forecasting.chunks`.
    """

    plan: Plan
    scope: str
    lower: float | None
    strict: bool
    n_jobs: int
    memory_limit: int

    def fitted(self, panel: Panel, exogenous: Exogenous, *, calibrate: bool) -> State:
        """Fit the models of a panel, with or without those that intervals need."""
        series = exogenous.series(panel)
        model = self.learned(panel, series, calibrate=calibrate)
        return State(panel, exogenous, model, series, self.notes(panel, model, series))

    def learned(self, panel: Panel, series: Sequence[Series], *, calibrate: bool) -> Any:
        """Return the models of a panel: a `PanelModel`, or a stack, which does what that does."""
        if self.scope == "auto":
            from rbfdiffnet.models.stack.parts import stack_of

            return stack_of(series, self.plan, [panel.name(i) for i in range(panel.n_series)])
        return fit_panel(
            series, self.plan, scope=self.scope, calibrate=calibrate, n_jobs=self.n_jobs
        )

    def columns(
        self,
        model: PanelModel,
        series: Sequence[Series],
        origins: Ints,
        asked: Asked,
        pools: Pools | None = None,
    ) -> tuple[dict[str, Array], list[Problem]]:
        """Forecasts and intervals, shape (n, h) each, and what was unusual."""
        horizon = asked.of(series, origins)
        forecasts: Forecasts = model.forecast(horizon, self.n_jobs)
        columns = {NAME: self.bounded(forecasts.values)}
        notes = [
            Problem(i, "the network gave no finite forecast", "forecast by the last season")
            for i in forecasts.diverged
        ]
        notes += [Problem(i, said, "held within bounds") for i, said in forecasts.runaway.items()]
        if asked.levels and len(series):
            shares = list(asked.levels.values())
            borrowed = {} if pools is None else {"pools": pools}
            low, high, sure = model.intervals(horizon, shares, self.n_jobs, **borrowed)
            for j, label in enumerate(asked.levels):
                lowest = np.minimum(low[:, :, j], forecasts.values)
                columns[f"{NAME}-lo-{label}"] = self.bounded(lowest)
                highest = np.maximum(high[:, :, j], forecasts.values)
                columns[f"{NAME}-hi-{label}"] = self.bounded(highest)
            notes += [
                Problem(int(i), "too few errors for the intervals", "the largest error was taken")
                for i in np.flatnonzero(~sure)
            ]
        elif asked.levels:
            columns |= {name: np.empty((0, asked.h)) for name in asked.columns[1:]}
        return columns, notes

    def bounded(self, values: Array) -> Array:
        """Forecasts within what was asked for, and what a number can hold."""
        largest = np.finfo(np.float64).max / 4
        values = np.clip(values, -largest, largest)
        return values if self.lower is None else np.maximum(values, self.lower)

    def notes(
        self, panel: Panel, model: PanelModel, series: Sequence[Series]
    ) -> tuple[Problem, ...]:
        """What was unusual about the series of a panel, once they are fitted."""
        if model.reasons and self.strict:
            i, reason = next(iter(model.reasons.items()))
            raise ValueError(
                f"Series {panel.name(i)!r} cannot be fitted: {reason}. Leave it out, or use "
                "errors='fallback' to get a naive forecast for it."
            )
        naive = "forecast by the last season, or the last value"
        notes = [
            Problem(i, reason, "forecast 0" if reason == "no values" else naive)
            for i, reason in model.reasons.items()
        ]
        noise = self.plan.noise
        for i, own in enumerate(model.models):
            if own is not None and own.noise is not None:
                std, ratio = own.noise
                logs = " of the logarithms" if own.preparation.log else ""
                text = f"noise{logs} of standard deviation {std:.3g}, signal-to-noise {ratio:.3g}"
                notes.append(Problem(i, text, "clean trajectory learned, latest values filtered"))
            elif own is not None and noise and noise != "auto":
                notes.append(Problem(i, own.untreated, "noise was not treated"))
        for i, odd in model.outliers(series):
            plural = "s" if odd.size > 1 else ""
            text = f"{odd.size} outlier{plural}, first {panel.format_date(i, int(odd[0]))}"
            notes.append(Problem(i, text, "treated as missing"))
        return tuple(notes)


def notes_frame(panel: Panel, notes: Sequence[Problem]) -> Any:
    """Return a frame of everything unusual, series by series."""
    ordered = sorted((*panel.problems, *notes), key=lambda problem: problem.series)
    return panel.make_table(
        np.array([problem.series for problem in ordered], dtype=np.int64),
        {
            "problem": [problem.problem for problem in ordered],
            "action": [problem.action for problem in ordered],
        },
    )
