"""What a worker does with a group of series: pure functions from bytes to bytes or frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rbfdiffnet.distributed.replay import Failure, Key, Pending, Replay
from rbfdiffnet.engine import PanelModel
from rbfdiffnet.forecaster import RBFDiffNet
from rbfdiffnet.models import Plan, Series
from rbfdiffnet.panel import Problem

__all__ = ["Group", "Request"]

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


class _Part(RBFDiffNet):
    """A forecaster of a part of a panel.

    Parameters
    ----------
    parts : Replay
    settings : dict
        Of the forecaster.
    rehearsal : bool, default=False
        Whether forecasts themselves are left out.
    """

    def __init__(self, parts: Replay, settings: dict[str, Any], rehearsal: bool = False) -> None:
        super().__init__(**settings)
        self._parts = parts
        self._rehearsal = rehearsal

    def _learned(self, series: Sequence[Series], plan: Plan, *, calibrate: bool) -> Any:
        learned = super()._learned
        model = self._parts.keep(lambda: _bare(learned(series, plan, calibrate=calibrate)))
        return replace(model, plan=plan)

    def _columns_of(
        self,
        model: PanelModel,
        series: Sequence[Series],
        origins: Ints,
        h: int,
        ahead: Sequence[Array],
        levels: Mapping[str, float],
    ) -> tuple[dict[str, Array], tuple[Problem, ...]]:
        if not self._rehearsal:
            return super()._columns_of(model, series, origins, h, ahead, levels)
        if levels:
            model.intervals(series, origins, h, ahead, list(levels.values()), self.n_jobs)
        return {name: np.zeros((len(series), h)) for name in self._names(levels)}, ()


def _bare(model: PanelModel) -> PanelModel:
    """Return models without what refers to the run they come from."""
    return replace(model, plan=None)  # type: ignore[arg-type]
