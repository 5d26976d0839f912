"""Files that are either complete or not there, and limits to what a packed file may unpack to.

So an interrupted program leaves no half a file, and a small file cannot fill the memory.
"""

from __future__ import annotations

import errno
import io
import os
import re
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

_LONGEST = 40  # characters of a name that go into the name of its temporary file: 255 are allowed
_REMEDIES = {
    errno.ENOSPC: "make room, or choose another disk",
    errno.EDQUOT: "make room, or choose another disk",
    errno.EFBIG: "it is larger than files may be here (see ulimit -f)",
    errno.ENOENT: "create its folder first",
    errno.ENOTDIR: "create its folder first",
    errno.EISDIR: "it is a folder; give a file name",
    errno.ENAMETOOLONG: "give a shorter name",
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "choose a folder you may write to"),
}
_ALWAYS = 2**30  # bytes that any file may unpack to
_TIMES = 100  # what numbers and tables hardly ever reach; deflate could reach 1,032
_NO_FILE = "It is a device or a pipe, no regular file"
_unfinished: set[Path] = set()


@contextmanager
def replace_file(path: Any) -> Iterator[Path]:
    """Give a temporary path beside `path` that takes its place once the block succeeds.

    The temporary path has the same suffix, from which some writers tell the format. A link stays,
    the file behind it is replaced; permissions stay. An OSError names the file and the remedy, and
    leaves the old file as it was. Temporary files of processes that were killed are removed.
    """
    suffix = Path(path).suffix
    try:
        target = Path(os.path.realpath(path))
    except ValueError as error:
        raise ValueError(f"{str(path)!r} is no name of a file ({error}); give another") from error
    temporary = target.with_name(f"{_prefix(target)}{os.getpid()}-{secrets.token_hex(4)}{suffix}")
    _unfinished.add(temporary)
    try:
        _remove_abandoned(target, suffix)
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.exists() and not target.is_file():
            raise OSError(errno.EINVAL, _NO_FILE)
        yield temporary
        with temporary.open("r+b") as file:
            os.fsync(file.fileno())  # the bytes are on the disk before the name changes
        with suppress(OSError):
            temporary.chmod(target.stat().st_mode)
        os.replace(temporary, target)
    except OSError as error:  # writers often leave out the name
        remedy = _REMEDIES.get(error.errno or 0, "choose another place")
        message = f"{error.strerror or error}; {remedy}"
        raise OSError(error.errno or errno.EIO, message, str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        _unfinished.discard(temporary)


def check_writable(path: Any) -> None:
    """Raise OSError, with the remedy, if a file could not be written; nothing is changed."""

    class Enough(Exception):
        pass

    with suppress(Enough), replace_file(path) as temporary, temporary.open("wb") as file:
        file.write(bytes(4096))
        file.flush()
        os.fsync(file.fileno())
        raise Enough


def check_regular(path: Any) -> None:
    """Raise OSError if a path leads to a device or a pipe, which might never end."""
    if Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir()):
        message = f"{_NO_FILE}; copy what it gives to a file first"
        raise OSError(errno.EINVAL, message, str(path))


def is_same_file(path: str, other: str) -> bool:
    """Tell whether two paths lead to the same file, whether it exists or not."""
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    return Path(path).exists() and Path(other).exists() and Path(path).samefile(other)


def remove_unfinished() -> None:
    """Remove what this process has begun to write, because the process ends now."""
    for temporary in tuple(_unfinished):
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _prefix(path: Path) -> str:
    """Begin the names of temporary files; process numbers are unique on one computer only."""
    return f".rbfdiffnet-{path.name[:_LONGEST]}-{socket.gethostname()[:_LONGEST]}-"


def _remove_abandoned(path: Path, suffix: str) -> None:
    """Remove temporary files of a file whose processes are gone."""
    if os.name != "posix":  # elsewhere there is no harmless way to ask for a process
        return
    pattern = re.compile(re.escape(_prefix(path)) + r"(\d+)(-[0-9a-f]+)?" + re.escape(suffix))
    for other in path.parent.iterdir():
        match = pattern.fullmatch(other.name)
        if match and not _is_running(int(match[1])):
            with suppress(OSError):
                other.unlink()


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # the process belongs to someone else
        return True
    return True


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
