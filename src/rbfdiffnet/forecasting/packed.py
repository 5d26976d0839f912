"""How much a packed file may unpack to, so that a small file cannot fill the memory."""

from __future__ import annotations

import io
from typing import IO, Any

__all__ = ["Bounded", "most_unpacked"]

_ALWAYS = 2**30  # bytes that any file may unpack to
_TIMES = 100  # what numbers and tables hardly ever reach; deflate could reach 1,032


def most_unpacked(size: int) -> int:
    """Return how many bytes a packed file of some size may unpack to: 1 GiB, or 100 times its size.

    Examples
    --------
    >>> from rbfdiffnet.forecasting.packed import most_unpacked
    >>> most_unpacked(1000) == 2**30, most_unpacked(10**9)
    (True, 100000000000)
    """
    return max(_ALWAYS, _TIMES * size)


class Bounded(io.RawIOBase):
    """A stream of unpacked bytes that ends with an error where there are too many.

    Parameters
    ----------
    stream : binary stream
    most : int
        Number of bytes it may give.

    Examples
    --------
    >>> import io
    >>> from rbfdiffnet.forecasting.packed import Bounded
    >>> Bounded(io.BytesIO(b"abc"), 3).read()
    b'abc'
    >>> Bounded(io.BytesIO(b"abc"), 2).read()
    Traceback (most recent call last):
        ...
    ValueError: it unpacks to more than 2 bytes; if you trust it, unpack it first
    """

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream, self._most, self._left = stream, most, most

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return whether the stream is."""
        return self._stream.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place, and count anew."""
        self._left = self._most
        return self._stream.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        """Read some bytes into a buffer and return how many."""
        data = self._stream.read(len(buffer))
        self._left -= len(data)
        if self._left < 0:
            raise ValueError(
                f"it unpacks to more than {self._most:,} bytes; if you trust it, unpack it first"
            )
        buffer[: len(data)] = data
        return len(data)
