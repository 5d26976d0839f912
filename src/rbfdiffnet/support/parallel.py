"""Work cut into chunks, spread over threads, or over machines.

Each thread has one thread of the linear algebra library: on small matrices more of these only get
in each other's way. Of a cluster, each machine sees one part of a panel. Few steps need all parts:
how text becomes numbers, the basis and the sufficient statistics of a shared network, the pool of
errors for intervals. Each of these steps is written as what one machine makes and how the results
of all machines are combined. So the code is the same on one machine, where there is one result to
combine.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import chain
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from rbfdiffnet.support.progress import (
    check_wanted,
    current_stop,
    progress_of_parts,
    show_progress,
    until_stopped,
    without_progress,
)

Item = TypeVar("Item")
Result = TypeVar("Result")
Key = TypeVar("Key", bound=Hashable)

_lock = threading.Lock()
_inside = 0
_limiter: Any = None


@cache
def _controller() -> Any:
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread; the last of several concurrent users restores the old limit."""
    global _inside, _limiter
    with _lock:
        if _inside == 0:
            _limiter = _controller().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limiter.restore_original_limits()


@contextmanager
def public_call(stage: str) -> Iterator[None]:
    """Do what a user asked for: show how far it is, and use one thread of BLAS from end to end.

    The limit is that of the process, so a call without it would round otherwise while others run.
    """
    with show_progress(stage), one_blas_thread():
        yield


def count_threads(n_jobs: int) -> int:
    """Return the number of threads for `n_jobs`, where -1 stands for one on each core."""
    return (os.cpu_count() or 1) if n_jobs == -1 else int(n_jobs)


def parallel_map(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    n_jobs: int = 1,
    *,
    reports: bool = False,
) -> list[Result]:
    """Apply a function to items in `n_jobs` threads; the results are in the order of the items.

    With `reports` the items are equal shares of the present task, of which the function may report
    its part. An exception, Ctrl-C for one, leaves out items that have not begun; those at work end
    where they report next, or begin an item of their own. No thread outlives the call.
    """
    n_threads = min(count_threads(n_jobs), len(items))
    part = progress_of_parts(len(items)) if reports else without_progress
    around = current_stop()
    stop = around or threading.Event()

    def run(k: int, item: Item) -> Result:
        check_wanted()
        with part(k):
            return function(item)

    def run_in_thread(k: int, item: Item) -> Result:
        with until_stopped(stop):
            return run(k, item)

    with one_blas_thread():
        if n_threads < 2:
            return [run(k, item) for k, item in enumerate(items)]
        pool = ThreadPoolExecutor(n_threads)
        try:
            return list(pool.map(run_in_thread, range(len(items)), items))
        except BaseException:
            if around is None:
                stop.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def group_equal(keys: Iterable[Key]) -> dict[Key, list[int]]:
    """Return the positions of each different key."""
    groups: dict[Key, list[int]] = {}
    for i, key in enumerate(keys):
        groups.setdefault(key, []).append(i)
    return groups


def even_chunks(n: int, largest: int, n_workers: int = 1, smallest: int = 1) -> list[slice]:
    """Cut n items into equal chunks, as many for each worker, unless they become too small."""
    count = min(n_workers * -(-n // (largest * n_workers)), max(n // smallest, -(-n // largest)))
    size = -(-n // max(count, 1))
    return [slice(first, min(first + size, n)) for first in range(0, n, max(size, 1))]


class Collective:
    """All machines that hold parts of a panel; this class is for a single one.

    Every machine calls the methods in the same order.
    """

    #: Whether there are other machines.
    is_cluster = False
    #: The largest hash of the series that all machines learn from; None to find it in the panel.
    sample_limit: int | None = None

    def all_reduce(
        self, make: Callable[[], Item], combine: Callable[[list[Item]], Result]
    ) -> Result:
        """Combine what `make` returns on every machine; `combine` gets a list in a fixed order."""
        return combine([make()])

    def memoize(self, make: Callable[[], Item]) -> Item:
        """Make something for this machine alone; on a cluster it is made only once."""
        return make()

    def learn(self, what: str, make: Callable[[], Item]) -> Item:
        """Learn something from the series of this machine; see `ChunkMemory`."""
        del what
        return make()


class ChunkMemory(Collective):
    """A single machine that goes through a panel chunk by chunk, and first through a sample of it.

    What was learned from the first chunk is remembered for the others.
    """

    def __init__(self, sample_limit: int) -> None:
        self.sample_limit = sample_limit
        self._learned: dict[str, Any] = {}

    def learn(self, what: str, make: Callable[[], Item]) -> Item:
        """Learn something from the first chunk, or remember it."""
        if what not in self._learned:
            self._learned[what] = make()
        return self._learned[what]  # type: ignore[no-any-return]


#: The collective of a panel that lies on one machine.
SINGLE_MACHINE = Collective()


def flatten(lists: Iterable[Iterable[Item]]) -> list[Item]:
    """Put the items of all lists into one list."""
    return list(chain.from_iterable(lists))
