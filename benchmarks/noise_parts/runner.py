"""Run methods over cells, a row at a time, and go on where an earlier run ended."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path

from noise_parts.data import LAGS, NOISE_LEVELS, make_cell
from noise_parts.methods import Method
from noise_parts.tasks import FIGURES
from shared_parts.row_file import RowFile

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
    rows = RowFile(folder / FILE, KEY, VALUES)
    done = rows.done()
    for n_lags, name, system, noise, seed in product(lags, methods, systems, noise_levels, seeds):
        key = (name, system, str(noise), str(n_lags), str(seed))
        if key in done:
            continue
        cell = make_cell(system, noise, n_lags, seed)
        start = time.process_time()
        found = methods[name](cell)
        rows.append(key, {"seconds": time.process_time() - start} | found)
