"""Parts of a panel on many machines, none of which can ask the others.

Each part runs the code of a single machine until it comes to something that all parts have to agree
on. There it stops and leaves what it has to say. Once everybody's words are combined, it runs again
from the start, with that answer, to the next question; what it `keeps` on the way it need not make
again. Nothing else happens: a run depends on its part and on the answers alone, so it can be
repeated anywhere at any time, after the loss of a machine for instance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from rbfdiffnet.support.collective import Collective
from rbfdiffnet.support.threads import one_blas_thread

__all__ = ["Failure", "Pending", "Replay", "answer", "answered"]

T = TypeVar("T")
R = TypeVar("R")
Key = tuple[int, ...]


@dataclass(frozen=True)
class Failure:
    """An error in place of a value."""

    error: Exception


class Pending(BaseException):
    """A question no answer is known to; no handler of errors takes it for one."""

    def __init__(self, key: Key, said: Any, combine: Any) -> None:
        super().__init__(key, said, combine)
        self.key, self.said, self.combine = key, said, combine


class Replay(Collective):
    """One part of a panel, with the answers known so far.

    Parameters
    ----------
    known : dict
        Answers and what was kept, by their place in the run; what is kept is added to it.

    Examples
    --------
    >>> from rbfdiffnet.adapters.clusters.replay import Pending, Replay, answered
    >>> def largest(collective, own):
    ...     return collective.all_reduce(lambda: own, max)
    >>> questions = []
    >>> for own in (3, 7):
    ...     try:
    ...         largest(Replay({}), own)
    ...     except Pending as question:
    ...         questions.append(question)
    >>> largest(Replay(answered(questions)), 3)
    7
    """

    def __init__(self, known: dict[Key, Any]) -> None:
        self._known = known
        self._place = [0]

    def all_reduce(self, make: Callable[[], T], combine: Callable[[list[T]], R]) -> R:
        """Return the answer; raise Pending where there is none yet."""
        key = self._next()
        if key not in self._known:
            said: Any
            try:
                said = make()
            except Exception as error:
                said = Failure(error)
            raise Pending(key, said, combine)
        found = self._known[key]
        if isinstance(found, Failure):
            raise found.error
        return found  # type: ignore[no-any-return]

    def memoize(self, make: Callable[[], T]) -> T:
        """Return what is made, now or in an earlier run."""
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


def answered(questions: Sequence[Pending | Failure | None]) -> dict[Key, Any] | None:
    """Answer what all parts ask, the first of which knows how; None if they ask nothing.

    Raises
    ------
    Exception
        That of the first part that failed.
    """
    for question in questions:
        if isinstance(question, Failure):
            raise question.error
    asked = [question for question in questions if isinstance(question, Pending)]
    if not asked:
        return None
    return {asked[0].key: answer([question.said for question in asked], asked[0].combine)}


def answer(said: Sequence[Any], combine: Callable[[list[Any]], Any]) -> Any:
    """Combine what the parts say; errors, of a part or in combining, are answers, too."""
    for part in said:
        if isinstance(part, Failure):
            return part
    try:
        with one_blas_thread(), np.errstate(all="ignore"):
            return combine(list(said))
    except Exception as error:
        return Failure(error)
