"""Files that are either complete or not there."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = ["replacing"]


@contextmanager
def replacing(path: Any) -> Iterator[Path]:
    """Give a temporary path beside ``path`` that takes its place once the block succeeds.

    What runs that were killed left behind there is removed. Of a link, the file it points to is
    replaced.

    Parameters
    ----------
    path : path-like

    Yields
    ------
    Path
        With the same suffix, by which some writers tell the format.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rbfdiffnet.files import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/a.txt") as temporary:
    ...         _ = temporary.write_text("done")
    ...     [file.name for file in pathlib.Path(folder).iterdir()]
    ['a.txt']
    """
    suffix = Path(path).suffix
    path = Path(os.path.realpath(path))
    _sweep(path, suffix)
    temporary = path.with_name(f"{_prefix(path)}{os.getpid()}{suffix}")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())  # on the disk, before it takes the place
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _prefix(path: Path) -> str:
    """How the names of temporaries of a file begin: processes are numbered for each computer."""
    return f".rbfdiffnet-{path.name}-{socket.gethostname()}-"


def _sweep(path: Path, suffix: str) -> None:
    """Remove temporaries of a file whose processes are gone."""
    if os.name != "posix":  # elsewhere there is no harmless way to ask
        return
    pattern = re.compile(re.escape(_prefix(path)) + r"(\d+)" + re.escape(suffix))
    for other in path.parent.iterdir():
        match = pattern.fullmatch(other.name)
        if match and not _runs(int(match[1])):
            with suppress(OSError):
                other.unlink()


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to someone else
        return True
    return True
