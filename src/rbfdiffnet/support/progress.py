"""Tell whoever watches how much of a long computation is done.

Work says which share of itself is done, and whoever calls it which share of the whole it is. If
nobody watches, nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["tell", "watched", "within"]

_watcher: ContextVar[Callable[[float], None] | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(callback: Callable[[float], None]) -> Iterator[None]:
    """Call a function with the share that is done, whenever it grows.

    Examples
    --------
    >>> from rbfdiffnet.support.progress import tell, watched, within
    >>> with watched(print):
    ...     with within(0.0, 0.5):
    ...         tell(0.5)
    ...     tell(1.0)
    0.25
    1.0
    """
    token = _watcher.set(callback)
    try:
        yield
    finally:
        _watcher.reset(token)


@contextmanager
def within(start: float, stop: float) -> Iterator[None]:
    """Take what is told as shares of a part of the whole, from one share to another."""
    outer = _watcher.get()
    if outer is None:
        yield
        return
    with watched(lambda share: outer(start + (stop - start) * share)):
        yield


def tell(share: float) -> None:
    """Say which share is done, from 0 to 1."""
    callback = _watcher.get()
    if callback is not None:
        callback(share)
