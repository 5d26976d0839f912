"""A limit to what a packed file may unpack to, so that a small file cannot fill the memory."""

from __future__ import annotations

import io
from typing import IO, Any

_ALWAYS = 2**30  # bytes that any file may unpack to
_TIMES = 100  # what numbers and tables hardly ever reach; deflate could reach 1,032


def unpacked_limit(size: int) -> int:
    """Return how many bytes a file of `size` bytes may unpack to: 1 GiB, or 100 times its size."""
    return max(_ALWAYS, _TIMES * size)


class BoundedStream(io.RawIOBase):
    """A stream of unpacked bytes that raises ValueError where there are more than `most`."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream, self._most, self._left = stream, most, most

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Tell whether the stream below is seekable."""
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
