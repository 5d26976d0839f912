"""Run methods over cells, a row at a time, and go on where an earlier run ended."""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path

from noise_parts.data import LAGS, NOISE_LEVELS, make_cell
from noise_parts.methods import Method
from noise_parts.tasks import FIGURES

FILE = "noise_cells.csv"
KEY = ("method", "system", "noise", "n_lags", "seed")
VALUES = (*FIGURES, "seconds")
COLUMNS = (*KEY, *VALUES)


def run(
    methods: Mapping[str, Method],
    systems: Sequence[str],
    seeds: Iterable[int],
    folder: Path,
    *,
    lags: Sequence[int] = LAGS,
    noise_levels: Sequence[float] = NOISE_LEVELS,
) -> None:
    """Append a row for every cell of every method that the file in ``folder`` does not have yet.

    ``seconds`` are those of the processor, on which everything else may run at the same time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    done = _done(path)
    for n_lags, name, system, noise, seed in product(lags, methods, systems, noise_levels, seeds):
        key = (name, system, str(noise), str(n_lags), str(seed))
        if key in done:
            continue
        cell = make_cell(system, noise, n_lags, seed)
        start = time.process_time()
        found = methods[name](cell)
        found = {"seconds": time.process_time() - start} | found
        row = dict(zip(KEY, key, strict=True)) | {name: f"{found[name]:.8g}" for name in VALUES}
        with path.open("a", encoding="utf-8", newline="") as file:
            csv.DictWriter(file, COLUMNS, lineterminator="\n").writerow(row)
        print("  ".join(map(str, row.values())), file=sys.stderr, flush=True)


def _done(path: Path) -> set[tuple[str, ...]]:
    with path.open(encoding="utf-8", newline="") as file:
        return {tuple(row[column] for column in KEY) for row in csv.DictReader(file)}
