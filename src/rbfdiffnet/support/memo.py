"""Results that several forecasts of one job share.

The windows of a backtest lie close behind one another, so most of what is computed for one of them
is needed for the next ones, too. Inside of `share_results` such results are kept, by the contents
of what they were computed from. Elsewhere nothing is kept.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import blake2b
from threading import Lock
from typing import Any, Protocol

import numpy as np

from rbfdiffnet.support.arrays import Array


class Sized(Protocol):
    """Something that tells how many bytes of memory it takes."""

    @property
    def nbytes(self) -> int:
        """The memory that its arrays take."""


_MOST_BYTES = 2**28


@dataclass(frozen=True)
class Memo:
    """Results by key. The oldest are forgotten where all of them take too much memory."""

    is_shared: bool = False
    most_bytes: int = _MOST_BYTES
    _tables: dict[bytes, Any] = field(default_factory=dict, repr=False)
    _rows: dict[Hashable, dict[bytes, Array]] = field(default_factory=dict, repr=False)
    _lock: Any = field(default_factory=Lock, repr=False)

    def find(self, key: bytes) -> Any:
        """Return what is known by a key, or None."""
        with self._lock:
            return self._tables.get(key)

    def keep(self, key: bytes, found: Sized) -> None:
        """Keep a result by its key, if results are shared."""
        if self.is_shared:
            with self._lock:
                self._tables[key] = found
                while self.n_bytes > self.most_bytes:
                    self._tables.pop(next(iter(self._tables)))

    def rows(self, kind: Hashable) -> dict[bytes, Array]:
        """Return all rows of numbers of one kind, by their keys; more can be added."""
        return self._rows.setdefault(kind, {})

    @property
    def n_bytes(self) -> int:
        """The memory that all results take, without rows."""
        return sum(own.nbytes for own in self._tables.values())


_shared: ContextVar[Memo | None] = ContextVar("shared", default=None)


@contextmanager
def share_results() -> Iterator[None]:
    """Share results between all forecasts in this block, and in such blocks inside of it."""
    token = _shared.set(_shared.get() or Memo(is_shared=True))
    try:
        yield
    finally:
        _shared.reset(token)


def current_memo() -> Memo:
    """Return the memo of the block around, or a new one."""
    return _shared.get() or Memo()


def fingerprint(*parts: Any) -> bytes:
    """Return a key for arrays and numbers, which is another one for other contents."""
    hashed = blake2b(digest_size=16)
    for part in parts:
        array = np.ascontiguousarray(part)
        hashed.update(f"{array.shape}{array.dtype}".encode())
        hashed.update(array.tobytes())
    return hashed.digest()
