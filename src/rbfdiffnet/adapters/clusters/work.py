"""What a worker does with a group of series: pure functions from bytes to bytes or frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from rbfdiffnet.adapters.clusters.groups import find_cuts, find_groups, hash_ids
from rbfdiffnet.adapters.clusters.replay import Failure, Key, Pending, Replay, answer_questions
from rbfdiffnet.forecaster import RBFDiffNet


@dataclass(frozen=True)
class Request:
    """What is asked for: settings of `RBFDiffNet`, one of its methods, and that one's arguments.

    The method is "forecast" or "cross_validation". Groups that are ``independent`` have nothing to
    agree on.
    """

    settings: dict[str, Any]
    method: str
    options: dict[str, Any]
    independent: bool


@dataclass(frozen=True)
class Group:
    """A group of series: rows of the frame and of ``X_df``, and what it knows (see `Replay`).

    ``done`` are the frame and the report, if they are there already.
    """

    frame: pd.DataFrame
    future: pd.DataFrame | None
    known: dict[Key, Any] = field(default_factory=dict)
    done: tuple[pd.DataFrame, pd.DataFrame] | None = None

    def advance(
        self, request: Request, answers: Mapping[Key, Any]
    ) -> tuple[Group, Pending | Failure | None]:
        """Run up to the next question; None if there is none left, and the results are there."""
        known = {**self.known, **answers}
        try:
            if not request.independent:
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
        if request.independent:
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
    """Groups of a pandas frame, one after the other in this process; replaces `Cluster`."""

    def __init__(self, id_col: str) -> None:
        self._id_col = id_col

    def make_groups(self, df: Any, X_df: Any, size: Callable[[int], int]) -> list[Group]:
        """Return the groups, of a size that depends on the number of series."""
        if self._id_col not in df:
            raise ValueError(f"There is no column {self._id_col!r}; the frame has {list(df)}.")
        codes, ids = pd.factorize(df[self._id_col])
        hashes = hash_ids(ids)
        cuts = find_cuts(hashes, size(len(ids)))
        # Rows without an id go somewhere, and are complained about there.
        home = np.append(find_groups(hashes, cuts), 0)[codes]
        futures = [None] * (cuts.size + 1)
        if X_df is not None:
            codes, ids = pd.factorize(X_df[self._id_col])
            later = np.append(find_groups(hash_ids(ids), cuts), 0)[codes]
            futures = [X_df[later == number] for number in range(cuts.size + 1)]
        return [Group(df[home == number], future) for number, future in enumerate(futures)]

    def answer_all(self, groups: list[Group], request: Request) -> list[Group]:
        """Return the groups with answers to all questions, and with their results."""
        answers: dict[Key, Any] | None = {}
        while answers is not None:
            steps = [group.advance(request, answers) for group in groups]
            groups = [group for group, _ in steps]
            answers = answer_questions([question for _, question in steps])
        return groups

    def collect(
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
    """A forecaster of a part of a panel; in a rehearsal it leaves the forecasts themselves out."""

    def __init__(
        self, collective: Replay, settings: dict[str, Any], rehearsal: bool = False
    ) -> None:
        super().__init__(**settings)
        self._collective = collective
        self._rehearsal = rehearsal
