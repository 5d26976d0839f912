"""Write files so that none is ever half written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rbfdiffnet.readers.errors import CommandError
from rbfdiffnet.support import files

__all__ = ["check_apart", "check_writable", "replacing"]


def check_writable(path: str) -> None:
    """Raise CommandError if a file cannot be written, before any work is done for it.

    Examples
    --------
    >>> from rbfdiffnet.cli.files import check_writable
    >>> check_writable("no-such-folder/forecast.csv")
    Traceback (most recent call last):
        ...
    rbfdiffnet.readers.errors.CommandError: cannot write 'no-such-folder/forecast.csv': ...
    """
    _check_place(path)
    with _in_words(path):
        files.probe(path)


def _check_place(path: str) -> None:
    target = Path(os.path.realpath(path))
    folder = target.parent if Path(path).is_symlink() else Path(path).parent
    if not folder.is_dir():
        raise CommandError(f"cannot write '{path}': no folder '{folder}'; create it first")
    if Path(path).is_dir():
        raise CommandError(f"cannot write '{path}': it is a folder; give a file name")
    if target.exists() and not target.is_file():
        raise CommandError(f"cannot write '{path}': it is no regular file; give another name")


def check_apart(inputs: Mapping[str, str], outputs: Mapping[str, str]) -> None:
    """Raise CommandError if a file would be written over one that is read, or over another.

    Parameters
    ----------
    inputs, outputs : mapping
        Paths by the option that names them.

    Examples
    --------
    >>> from rbfdiffnet.cli.files import check_apart
    >>> check_apart({"FILE": "a.csv"}, {"--out": "./a.csv"})
    Traceback (most recent call last):
        ...
    rbfdiffnet.readers.errors.CommandError: --out ./a.csv is the same file as FILE; give another ...
    """
    seen = [(option, path) for option, path in inputs.items() if path != "-"]
    for option, path in outputs.items():
        for other, taken in seen:
            if _same(path, taken):
                raise CommandError(
                    f"{option} {path} is the same file as {other}; give another name"
                )
        seen.append((option, path))


def _same(path: str, other: str) -> bool:
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    return Path(path).exists() and Path(other).exists() and Path(path).samefile(other)


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
    _check_place(path)
    with _in_words(path), files.replacing(path) as temporary:
        yield str(temporary)


@contextmanager
def _in_words(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CommandError(f"cannot write '{path}': {error.strerror or error}") from error
