"""What a command shows on a terminal: messages, and what was unusual about series."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rbfdiffnet.support.text import one_line, printable

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.,]+$)")


@dataclass(frozen=True)
class Console:
    """Messages of a command; its results are printed elsewhere.

    With ``quiet`` nothing is said. With ``json`` standard output belongs to one JSON document, so
    messages go to standard error.
    """

    quiet: bool = False
    json: bool = False

    def say(self, text: str = "") -> None:
        """Print a message."""
        if not self.quiet:
            print(printable(text), file=sys.stderr if self.json else sys.stdout, flush=True)

    def warn(self, text: str) -> None:
        """Print a message that a person should not miss, on standard error."""
        if not self.quiet:
            sys.stdout.flush()
            print(f"rbfdiffnet: note: {one_line(text)}", file=sys.stderr, flush=True)


def describe_problems(notes: pd.DataFrame) -> list[str]:
    """Return a line for each kind of problem: its first series, and how many more have it.

    ``notes`` is the frame ``RBFDiffNet.report_``. Problems that differ only in numbers, dates and
    plurals are of one kind.
    """
    lines = []
    kinds = notes["problem"].astype(str).str.replace(r"[\d][\d:. -]*|s\b", "", regex=True)
    for (_, action), group in notes.groupby([kinds, "action"], sort=False):
        first = group.iloc[0]
        more = f" (and {len(group) - 1:,} more series)" if len(group) > 1 else ""
        name = one_line(str(first["unique_id"]))
        lines.append(f"series '{name}': {first['problem']}; {action}{more}")
    return lines


def formula_warning(frame: pd.DataFrame) -> str | None:
    """Return a warning if a spreadsheet would take ids for formulas; -1 is a number, not one."""
    for name in map(str, frame["unique_id"].unique()):
        if _FORMULA.match(name):
            return (
                f"ids such as '{name}' look like formulas: in a spreadsheet, import their column "
                "as text"
            )
    return None
