"""A file of results, written a row at a time, so that a run goes on where an earlier one ended."""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


class RowFile:
    """Rows of figures, each with a key of its own.

    Parameters
    ----------
    path : Path
        Made, with its folder, where it is not there.
    key, values : sequence of str
        Columns that name a row, and those of its figures.
    """

    def __init__(self, path: Path, key: Sequence[str], values: Sequence[str]) -> None:
        self.path, self.key, self.values = path, tuple(key), tuple(values)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(",".join((*self.key, *self.values)) + "\n", encoding="utf-8")

    def done(self) -> set[tuple[str, ...]]:
        """Keys of the rows that are there."""
        with self.path.open(encoding="utf-8", newline="") as file:
            return {tuple(row[column] for column in self.key) for row in csv.DictReader(file)}

    def append(self, key: Sequence[str], figures: Mapping[str, float]) -> None:
        """Write a row, and show it."""
        row = [*key, *(f"{figures[name]:.8g}" for name in self.values)]
        with self.path.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(row)
        print("  ".join(row), file=sys.stderr, flush=True)
