"""Threads over series, and one thread each for the linear algebra library.

Its own threads only get in each other's way on small matrices.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

_lock = threading.Lock()
_inside = 0
_limiter: Any = None


@cache
def _controller() -> Any:
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread; the last of several concurrent users restores what was before.

    Examples
    --------
    >>> from rbfdiffnet.support.threads import one_blas_thread
    >>> with one_blas_thread():
    ...     pass  # small matrix products
    """
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


def workers(n_jobs: int) -> int:
    """Number of threads for ``n_jobs``, which is -1 for one on each core.

    Examples
    --------
    >>> from rbfdiffnet.support.threads import workers
    >>> workers(3)
    3
    """
    return (os.cpu_count() or 1) if n_jobs == -1 else n_jobs


def parallel_map(
    function: Callable[[Item], Result], items: Sequence[Item], n_jobs: int = 1
) -> list[Result]:
    """Apply a function to items, in threads; the results come in the order of the items.

    Parameters
    ----------
    function : callable
    items : sequence
    n_jobs : int, default=1
        Number of threads; -1 for one on each core.

    Examples
    --------
    >>> from rbfdiffnet.support.threads import parallel_map
    >>> parallel_map(abs, [-1, 2, -3], n_jobs=2)
    [1, 2, 3]
    """
    n_workers = workers(n_jobs)
    with one_blas_thread():
        if n_workers == 1 or len(items) < 2:
            return [function(item) for item in items]
        with ThreadPoolExecutor(min(n_workers, len(items))) as pool:
            return list(pool.map(function, items))
