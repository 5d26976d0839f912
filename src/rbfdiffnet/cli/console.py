"""What a command says, and where: results on standard output, words where they do not disturb."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from rbfdiffnet.support.text import one_line, printable

__all__ = ["Console"]


@dataclass(frozen=True)
class Console:
    """Standard output and standard error.

    Parameters
    ----------
    quiet : bool, default=False
        Say nothing but results and errors.
    json : bool, default=False
        Standard output belongs to one JSON document; words go to standard error.

    Examples
    --------
    >>> from rbfdiffnet.cli.console import Console
    >>> Console().say("Reading ...")
    Reading ...
    >>> Console(quiet=True).say("Reading ...")
    """

    quiet: bool = False
    json: bool = False

    def say(self, text: str = "") -> None:
        """Say something to a person."""
        if not self.quiet:
            print(printable(text), file=sys.stderr if self.json else sys.stdout, flush=True)

    def warn(self, text: str) -> None:
        """Say something a person should not miss, on standard error."""
        if not self.quiet:
            sys.stdout.flush()
            print(f"rbfdiffnet: note: {one_line(text)}", file=sys.stderr, flush=True)
