"""What has to be known of a whole panel that may be spread over several machines.

Each machine sees one part of the panel. Few steps need all parts: how text becomes numbers, the
basis and the sufficient statistics of a shared network, the pool of errors for intervals. Each of
these steps is written as what one machine makes and how the results of all machines are combined.
So the code is the same on one machine, where there is one result to combine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Collective:
    """All machines that hold parts of a panel; this class is for a single one.

    Every machine calls the methods in the same order.
    """

    def all_reduce(self, make: Callable[[], T], combine: Callable[[list[T]], R]) -> R:
        """Combine what `make` returns on every machine; `combine` gets a list in a fixed order."""
        return combine([make()])

    def memoize(self, make: Callable[[], T]) -> T:
        """Make something for this machine alone; on a cluster it is made only once."""
        return make()


#: The collective of a panel that lies on one machine.
SINGLE_MACHINE = Collective()


def flatten(lists: Iterable[Iterable[T]]) -> list[T]:
    """Put the items of all lists into one list."""
    return list(chain.from_iterable(lists))
