"""Parts of a panel on many machines, none of which can ask the others.

Each part runs the code of a single machine until it comes to something that all parts have to agree
on. There it stops and leaves its contribution. Once all contributions are combined, the part runs
again from the start, with that answer, to the next question; what it memoizes on the way it need
not make again. Nothing else happens: a run depends on its part and on the answers alone, so it can
be repeated anywhere at any time, after the loss of a machine for instance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from rbfdiffnet.support.collective import Collective
from rbfdiffnet.support.threads import one_blas_thread

T = TypeVar("T")
R = TypeVar("R")
Key = tuple[int, ...]


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

    def __init__(self, known: dict[Key, Any]) -> None:
        self._known = known
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
