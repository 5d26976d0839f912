"""What a worker does with a group of series: pure functions from bytes to bytes or frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rbfdiffnet.adapters.clusters.groups import cuts, digests, group_of
from rbfdiffnet.adapters.clusters.replay import Failure, Key, Pending, Replay, answered
from rbfdiffnet.forecaster import RBFDiffNet
from rbfdiffnet.forecasting.pipeline import Asked, Work
from rbfdiffnet.models.intervals import Pools
from rbfdiffnet.models.panel_model import PanelModel
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.stack.parts import PartedStack
from rbfdiffnet.panel.panel import Panel, Problem
from rbfdiffnet.series.series import Series

__all__ = ["Group", "OneMachine", "Request"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Request:
    """What is asked for.

    Attributes
    ----------
    settings : dict
        Arguments of `RBFDiffNet`.
    method : {"forecast", "cross_validation"}
    options : dict
        Arguments of the method, besides frames.
    alone : bool
        Whether groups have nothing to agree on.
    """

    settings: dict[str, Any]
    method: str
    options: dict[str, Any]
    alone: bool


@dataclass(frozen=True)
class Group:
    """A group of series, and what it knows.

    Attributes
    ----------
    frame : DataFrame
    future : DataFrame or None
        Rows of ``X_df``.
    known : dict
        Answers, and what was kept; see `Replay`.
    done : tuple of DataFrame or None
        The results, if they are there already.
    """

    frame: pd.DataFrame
    future: pd.DataFrame | None
    known: dict[Key, Any] = field(default_factory=dict)
    done: tuple[pd.DataFrame, pd.DataFrame] | None = None

    def advanced(
        self, request: Request, answers: Mapping[Key, Any]
    ) -> tuple[Group, Pending | Failure | None]:
        """Run up to the next question; None if there is none left, and the results are there."""
        known = {**self.known, **answers}
        try:
            if not request.alone:
                self._run(request, _Part(Replay(known), request.settings, rehearsal=True))
            results = replace(self, known=known).results(request)
        except Pending as pending:
            return replace(self, known=known), pending
        except Exception as error:
            return self, Failure(error)
        return Group(self.frame[:0], None, done=results), None

    def results(self, request: Request) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the frame that is asked for, and the report."""
        if self.done is not None:
            return self.done
        part: RBFDiffNet
        if request.alone:
            part = RBFDiffNet(**request.settings)
        else:
            part = _Part(Replay({**self.known}), request.settings)
        return self._run(request, part), part.report_

    def _run(self, request: Request, part: RBFDiffNet) -> pd.DataFrame:
        if request.method == "forecast":
            frame = part.forecast(self.frame, X_df=self.future, **request.options)
        else:
            frame = part.cross_validation(self.frame, **request.options)
        return frame  # type: ignore[no-any-return]


class OneMachine:
    """Groups of a pandas frame, one after the other in this process.

    Parameters
    ----------
    id_col : str
        Name of the column of ids.
    """

    def __init__(self, id_col: str) -> None:
        self._id_col = id_col

    def grouped(self, df: Any, X_df: Any, size: Callable[[int], int]) -> list[Group]:
        """Return the groups, of a size that depends on the number of series."""
        if self._id_col not in df:
            raise ValueError(f"There is no column {self._id_col!r}; the frame has {list(df)}.")
        codes, ids = pd.factorize(df[self._id_col])
        hashes = digests(ids)
        between = cuts(hashes, size(len(ids)))
        # Rows without an id go somewhere, and are complained about there.
        home = np.append(group_of(hashes, between), 0)[codes]
        futures = [None] * (between.size + 1)
        if X_df is not None:
            codes, ids = pd.factorize(X_df[self._id_col])
            later = np.append(group_of(digests(ids), between), 0)[codes]
            futures = [X_df[later == number] for number in range(between.size + 1)]
        return [Group(df[home == number], future) for number, future in enumerate(futures)]

    def agreed(self, groups: list[Group], request: Request) -> list[Group]:
        """Return the groups with answers to all questions, and with their results."""
        answers: dict[Key, Any] | None = {}
        while answers is not None:
            advanced = [group.advanced(request, answers) for group in groups]
            groups = [group for group, _ in advanced]
            answers = answered([question for _, question in advanced])
        return groups

    def frames(
        self,
        groups: list[Group],
        request: Request,
        names: Sequence[str],  # noqa: ARG002
        with_report: bool,  # noqa: ARG002
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the frame that is asked for, and the report."""
        tables, reports = zip(*(group.results(request) for group in groups), strict=True)
        return pd.concat(tables, ignore_index=True), pd.concat(reports, ignore_index=True)


class _Part(RBFDiffNet):
    """A forecaster of a part of a panel.

    Parameters
    ----------
    collective : Replay
    settings : dict
        Of the forecaster.
    rehearsal : bool, default=False
        Whether forecasts themselves are left out.
    """

    def __init__(
        self, collective: Replay, settings: dict[str, Any], rehearsal: bool = False
    ) -> None:
        super().__init__(**settings)
        self._collective = collective
        self._rehearsal = rehearsal

    def _work(self, plan: Plan) -> _PartWork:
        work = vars(super()._work(plan))
        return _PartWork(**work, rehearsal=self._rehearsal)


@dataclass(frozen=True)
class _PartWork(Work):
    """What a part of a panel has to do, or to rehearse."""

    rehearsal: bool

    def learned(self, panel: Panel, series: Sequence[Series], *, calibrate: bool) -> Any:
        learned = super().learned
        # Kept without the plan, which refers to the run it comes from.
        model = self.plan.collective.memoize(
            lambda: _with_plan(learned(panel, series, calibrate=calibrate), None)
        )
        return _with_plan(model, self.plan)

    def columns(
        self,
        model: PanelModel,
        series: Sequence[Series],
        origins: Ints,
        asked: Asked,
        pools: Pools | None = None,
    ) -> tuple[dict[str, Array], list[Problem]]:
        if not self.rehearsal:
            return super().columns(model, series, origins, asked, pools)
        if asked.levels and len(series):
            shares = list(asked.levels.values())
            model.intervals(asked.of(series, origins), shares, self.n_jobs)
        return {name: np.zeros((len(series), asked.h)) for name in asked.columns}, []


def _with_plan(model: Any, plan: Plan | None) -> Any:
    if isinstance(model, PartedStack):
        return replace(model, stacks=[_with_plan(stack, plan) for stack in model.stacks])
    return replace(model, plan=plan)
