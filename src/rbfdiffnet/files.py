"""Files that are either complete or not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["replacing"]


@contextmanager
def replacing(path: Any) -> Iterator[Path]:
    """Give a temporary path beside ``path`` that takes its place once the block succeeds.

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
    path = Path(path)
    temporary = path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
