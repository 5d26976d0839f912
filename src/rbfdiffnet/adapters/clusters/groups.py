r"""Chunks of a panel on many machines, none of which can ask the others, and what is done with one.

Which series go together depends on nothing but their ids:

.. math:: g(i) = \#\{k : c_k \le \eta(i)\}

where :math:`\eta` is a hash of the id, and the cuts :math:`c_1 < c_2 < \ldots` lie so that groups
are equally large, up to one. Neither the engine nor the number of workers nor the order of the rows
has a say, and only the cuts travel.

Each group runs the code of a single machine until it comes to something that all groups have to
agree on. There it stops and leaves its contribution. Once all contributions are combined, the group
runs again from the start, with that answer, to the next question; what it memoizes on the way it
need not make again. A run depends on its group and on the answers alone, so it can be repeated
anywhere at any time, after the loss of a machine for instance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from rbfdiffnet.forecaster import RBFDiffNet
from rbfdiffnet.models.sampled import Digests, hash_names
from rbfdiffnet.support.arrays import Ints, Mask
from rbfdiffnet.support.parallel import SINGLE_MACHINE, Collective, one_blas_thread

T = TypeVar("T")
R = TypeVar("R")
Key = tuple[int, ...]


def find_cuts(hashes: Digests, size: int) -> Digests:
    """Return where to cut the hashes of all ids into groups of at most ``size``."""
    ordered = np.unique(hashes)
    n_groups = max(-(-ordered.size // size), 1)
    parts = np.array_split(ordered, n_groups)
    return np.array([part[0] for part in parts[1:]], dtype=np.uint64)


def find_groups(hashes: Digests, cuts: Digests) -> Ints:
    """Return the number of the group of each hash."""
    return np.searchsorted(cuts, hashes, side="right").astype(np.int64)


def find_row_groups(ids: pd.Series[Any], cuts: Digests) -> Ints:
    """Return the group of each row; rows without an id go to the first, which complains of them."""
    codes, distinct = pd.factorize(ids)
    return np.append(find_groups(hash_names(distinct), cuts), 0)[codes]


def find_split(parts: Sequence[Digests]) -> tuple[Digests, Digests]:
    """Return all hashes of partitions, given those of each, and those that several have."""
    joined = np.concatenate([np.empty(0, np.uint64), *parts])
    hashes, counts = np.unique(joined, return_counts=True)
    return hashes, hashes[counts > 1]


def choose_rows(ids: pd.Series[Any], choose: Callable[[Digests], Mask]) -> Mask:
    """Tell which rows belong to series whose hashes are chosen; none without an id."""
    codes, distinct = pd.factorize(ids)
    return np.append(choose(hash_names(distinct)), False)[codes]


def is_learned_from(ids: pd.Series[Any], limit: int) -> Mask:
    """Tell which rows belong to series that are learned from; see `models.sampled.find_limit`."""
    return choose_rows(ids, lambda hashes: hashes <= np.uint64(limit))


@dataclass(frozen=True)
class Failure:
    """An error in place of a value."""

    error: Exception


class Pending(BaseException):
    """A question without an answer yet; no handler of errors takes it for an error."""

    def __init__(self, key: Key, contribution: Any, combine: Any) -> None:
        super().__init__(key, contribution, combine)
        self.key, self.contribution, self.combine = key, contribution, combine


class Replay(Collective):
    """One part of a panel, with the answers known so far.

    ``known`` has answers and memoized values by their place in the run; new ones are added to it.
    """

    is_cluster = True

    def __init__(self, known: dict[Key, Any], sample_limit: int | None = None) -> None:
        self._known, self.sample_limit = known, sample_limit
        self._place = [0]

    def all_reduce(self, make: Callable[[], T], combine: Callable[[list[T]], R]) -> R:
        """Return the answer; raise Pending where there is none yet."""
        key = self._next()
        if key not in self._known:
            contribution: Any
            try:
                contribution = make()
            except Exception as error:
                contribution = Failure(error)
            raise Pending(key, contribution, combine)
        found = self._known[key]
        if isinstance(found, Failure):
            raise found.error
        return found  # type: ignore[no-any-return]

    def memoize(self, make: Callable[[], T]) -> T:
        """Return what ``make`` returns, now or in an earlier run."""
        key = self._next()
        if key not in self._known:
            self._place.append(0)
            value = make()
            self._place.pop()
            for inner in [other for other in self._known if other[: len(key)] == key]:
                del self._known[inner]
            self._known[key] = value
        return self._known[key]  # type: ignore[no-any-return]

    def _next(self) -> Key:
        key = tuple(self._place)
        self._place[-1] += 1
        return key


def answer_questions(questions: Sequence[Pending | Failure | None]) -> dict[Key, Any] | None:
    """Answer what all parts ask; None if they ask nothing. The first knows how to combine.

    The error of the first part that failed is raised.
    """
    for question in questions:
        if isinstance(question, Failure):
            raise question.error
    asked = [question for question in questions if isinstance(question, Pending)]
    if not asked:
        return None
    contributions = [question.contribution for question in asked]
    return {asked[0].key: combine_contributions(contributions, asked[0].combine)}


def combine_contributions(contributions: Sequence[Any], combine: Callable[[list[Any]], Any]) -> Any:
    """Combine what the parts contribute; errors, of a part or in combining, are answers, too."""
    for contribution in contributions:
        if isinstance(contribution, Failure):
            return contribution
    try:
        with one_blas_thread(), np.errstate(all="ignore"):
            return combine(list(contributions))
    except Exception as error:
        return Failure(error)


@dataclass(frozen=True)
class Request:
    """What is asked for: settings of `RBFDiffNet`, one of its methods, and that one's arguments.

    The method is "forecast" or "cross_validation". Groups that are ``independent`` have nothing to
    agree on, or what they have to agree on is known: these are the ``answers``. Series up to
    ``sample_limit`` are learned from, see `models.sampled.find_limit`.
    """

    settings: dict[str, Any]
    method: str
    options: dict[str, Any]
    independent: bool
    sample_limit: int | None
    answers: dict[Key, Any] = field(default_factory=dict)

    def part(self, known: dict[Key, Any], *, rehearsal: bool = False) -> RBFDiffNet:
        """Return the forecaster of a group that knows some answers."""
        if self.independent and not self.answers:
            return _Part(SINGLE_MACHINE, self.settings)
        return _Part(Replay(known, self.sample_limit), self.settings, rehearsal)


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
                self._run(request, request.part(known, rehearsal=True))
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
        part = request.part({**request.answers, **self.known})
        return self._run(request, part), part.report_

    def find_answers(self, request: Request) -> dict[Key, Any]:
        """Answer all questions by this group alone: it has all series that are learned from."""
        known: dict[Key, Any] = {}
        answers: dict[Key, Any] = {}
        while True:
            try:
                self._run(request, request.part(known, rehearsal=True))
            except Pending as pending:
                found = combine_contributions([pending.contribution], pending.combine)
                if isinstance(found, Failure):
                    raise found.error from None
                answers[pending.key] = known[pending.key] = found
            else:
                return answers

    def _run(self, request: Request, part: RBFDiffNet) -> pd.DataFrame:
        future = {"X_df": self.future} if request.method == "forecast" else {}
        frame: pd.DataFrame = getattr(part, request.method)(self.frame, **future, **request.options)
        return frame


class OneMachine:
    """Groups of a pandas frame, one after the other in this process; replaces `Cluster`."""

    def __init__(self, id_col: str) -> None:
        self._id_col = id_col

    def hash_series(self, df: Any) -> list[Digests]:
        """Return the hashes of the series."""
        if self._id_col not in df:
            raise ValueError(f"There is no column {self._id_col!r}; the frame has {list(df)}.")
        return [hash_names(df[self._id_col].dropna().unique())]

    def can_stay(self, df: Any, parts: Sequence[Digests]) -> bool:  # noqa: ARG002
        """Return False: there are groups, so that memory stays bounded."""
        return False

    def make_groups(self, df: Any, X_df: Any, hashes: Digests, size: int) -> list[Group]:
        """Return groups of at most so many series."""
        cuts = find_cuts(hashes, size)
        home = find_row_groups(df[self._id_col], cuts)
        futures = [None] * (cuts.size + 1)
        if X_df is not None:
            later = find_row_groups(X_df[self._id_col], cuts)
            futures = [X_df[later == number] for number in range(cuts.size + 1)]
        return [Group(df[home == number], future) for number, future in enumerate(futures)]

    def find_rows(self, df: Any, limit: int) -> pd.DataFrame:
        """Return the rows of the series that are learned from."""
        chosen: pd.DataFrame = df[is_learned_from(df[self._id_col], limit)]
        return chosen

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

    _is_part = True

    def __init__(
        self, collective: Collective, settings: dict[str, Any], rehearsal: bool = False
    ) -> None:
        super().__init__(**settings)
        self._collective = collective
        self._rehearsal = rehearsal
