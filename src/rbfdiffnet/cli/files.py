"""Write files so that none is ever half written."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rbfdiffnet.cli.errors import CommandError

__all__ = ["check_writable", "replacing"]


def check_writable(path: str) -> None:
    """Raise CommandError if a file cannot be written, before any work is done for it.

    Examples
    --------
    >>> from rbfdiffnet.cli.files import check_writable
    >>> check_writable("no-such-folder/forecast.csv")
    Traceback (most recent call last):
        ...
    rbfdiffnet.cli.errors.CommandError: cannot write 'no-such-folder/forecast.csv': ...
    """
    folder = Path(path).parent
    if not folder.is_dir():
        raise CommandError(f"cannot write '{path}': no folder '{folder}'; create it first")
    if Path(path).is_dir():
        raise CommandError(f"cannot write '{path}': it is a folder; give a file name")
    if not os.access(folder, os.W_OK):
        raise CommandError(f"cannot write '{path}': folder '{folder}' is not writable")


@contextmanager
def replacing(path: str) -> Iterator[str]:
    """Give a temporary path beside ``path`` that takes its place once the block succeeds.

    What a process that was killed has left behind is removed when the same file is written again.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rbfdiffnet.cli.files import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/a.txt") as temporary:
    ...         _ = pathlib.Path(temporary).write_text("done")
    ...     [file.name for file in pathlib.Path(folder).iterdir()]
    ['a.txt']
    """
    check_writable(path)
    file = Path(path)
    _sweep(file)
    # A name no other run has; its suffix tells matplotlib the format.
    temporary = file.with_name(f"{_prefix(file)}{os.getpid()}{file.suffix}")
    try:
        yield str(temporary)
        os.replace(temporary, path)
    except OSError as error:
        raise CommandError(f"cannot write '{path}': {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _prefix(file: Path) -> str:
    """How the names of temporaries of a file begin: processes are numbered for each computer."""
    return f".rbfdiffnet-{file.name}-{socket.gethostname()}-"


def _sweep(file: Path) -> None:
    """Remove temporaries of a file whose processes are gone."""
    if os.name != "posix":  # elsewhere there is no harmless way to ask
        return
    pattern = re.compile(re.escape(_prefix(file)) + r"(\d+)" + re.escape(file.suffix))
    for other in file.parent.iterdir():
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
