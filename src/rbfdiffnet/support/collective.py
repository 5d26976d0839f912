"""What has to be known of a whole panel, wherever its series are.

A panel may be spread over machines, each of which sees a part of it. Few things need all parts: how
text becomes numbers, the basis and the sufficient statistics of a shared network, the pool that
intervals borrow from. Each of them is written as what one part `makes` and how parts are
`combined`, so the code is the same on one machine, where there is one part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import TypeVar

__all__ = ["ALONE", "Parts", "chained"]

T = TypeVar("T")
R = TypeVar("R")


class Parts:
    """All parts of a panel; here, the one there is.

    Every part asks for the same things in the same order.

    Examples
    --------
    >>> from rbfdiffnet.support.collective import ALONE
    >>> ALONE.agree(lambda: 3, sum)
    3
    """

    def agree(self, make: Callable[[], T], combine: Callable[[list[T]], R]) -> R:
        """Return what the parts make together.

        Parameters
        ----------
        make : callable
            What this part has to say.
        combine : callable
            What follows from the list of what all parts say, which comes in a fixed order.
        """
        return combine([make()])

    def keep(self, make: Callable[[], T]) -> T:
        """Return what this part makes for itself, which may be remembered."""
        return make()


#: A panel on one machine.
ALONE = Parts()


def chained(parts: Iterable[Iterable[T]]) -> list[T]:
    """Return the items of all parts as one list.

    Examples
    --------
    >>> from rbfdiffnet.support.collective import chained
    >>> chained([[1], [], [2, 3]])
    [1, 2, 3]
    """
    return list(chain.from_iterable(parts))
