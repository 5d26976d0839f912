"""Files that are either complete or not there."""

from __future__ import annotations

import errno
import os
import re
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = ["probe", "remove_unfinished", "replacing"]

_LONGEST = 40  # signs of a file's name within those of its temporaries: names have 255 at most
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
_unfinished: set[Path] = set()


@contextmanager
def replacing(path: Any) -> Iterator[Path]:
    """Give a temporary path beside ``path`` that takes its place once the block succeeds.

    What runs that were killed left behind there is removed. Of a link, the file it points to is
    replaced; permissions stay.

    Parameters
    ----------
    path : path-like

    Yields
    ------
    Path
        With the same suffix, by which some writers tell the format.

    Raises
    ------
    OSError
        If the file cannot be written, with its name and the remedy; it is as it was then.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rbfdiffnet.support.files import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/a.txt") as temporary:
    ...         _ = temporary.write_text("done")
    ...     [file.name for file in pathlib.Path(folder).iterdir()]
    ['a.txt']
    """
    suffix = Path(path).suffix
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f"{_prefix(target)}{os.getpid()}-{secrets.token_hex(4)}{suffix}")
    _unfinished.add(temporary)
    try:
        with _in_words(path):
            _sweep(target, suffix)
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if target.exists() and not target.is_file():
                raise OSError(errno.EINVAL, "It is a device or a pipe, no regular file")
            yield temporary
            with temporary.open("r+b") as file:
                os.fsync(file.fileno())  # on the disk, before it takes the place
            with suppress(OSError):
                temporary.chmod(target.stat().st_mode)
            os.replace(temporary, target)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        _unfinished.discard(temporary)


def probe(path: Any) -> None:
    """Raise OSError, with the remedy, if a file could not be written; nothing is changed.

    Examples
    --------
    >>> from rbfdiffnet.support.files import probe
    >>> probe("no-such-folder/forecast.csv")
    Traceback (most recent call last):
        ...
    FileNotFoundError: ... create its folder first: 'no-such-folder/forecast.csv'
    """

    class Enough(Exception):
        pass

    with suppress(Enough), replacing(path) as temporary, temporary.open("wb") as file:
        file.write(bytes(4096))
        file.flush()
        os.fsync(file.fileno())
        raise Enough


def remove_unfinished() -> None:
    """Remove what this process has begun to write, because it ends now.

    Examples
    --------
    >>> from rbfdiffnet.support.files import remove_unfinished
    >>> remove_unfinished()
    """
    for temporary in tuple(_unfinished):
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def _in_words(path: Any) -> Iterator[None]:
    """Name the file and the remedy in errors, which writers often leave out."""
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "choose another place")
        message = f"{error.strerror or error}; {remedy}"
        raise OSError(error.errno or errno.EIO, message, str(path)) from error


def _prefix(path: Path) -> str:
    """How the names of temporaries of a file begin: processes are numbered for each computer."""
    return f".rbfdiffnet-{path.name[:_LONGEST]}-{socket.gethostname()[:_LONGEST]}-"


def _sweep(path: Path, suffix: str) -> None:
    """Remove temporaries of a file whose processes are gone."""
    if os.name != "posix":  # elsewhere there is no harmless way to ask
        return
    pattern = re.compile(re.escape(_prefix(path)) + r"(\d+)(-[0-9a-f]+)?" + re.escape(suffix))
    for other in path.parent.iterdir():
        match = pattern.fullmatch(other.name)
        if match and not _runs(int(match[1])):
            with suppress(OSError):
                other.unlink()


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to someone else
        return True
    return True
