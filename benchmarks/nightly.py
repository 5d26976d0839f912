"""Seconds of the steps of a nightly job: ``python benchmarks/nightly.py --series 100000``.

Made-up daily demand, as in ``load.py``. One night: models are loaded, the day before is compared
with its forecasts, models are updated, a week is forecast with intervals, models are saved.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from load import panel
from speed_parts.timing import machine, peak_memory

T = TypeVar("T")
DAYS = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=100_000)
    options = parser.parse_args()
    print(machine(), flush=True)
    night(options.series)


def timed(what: str, job: Callable[[], T]) -> T:
    start, processor = time.perf_counter(), time.process_time()
    found = job()
    wall, own = time.perf_counter() - start, time.process_time() - processor
    print(f"{what:22} {wall:7.1f} s  processor {own:7.1f} s", flush=True)
    return found


def night(n: int) -> None:
    """Fit models of n series, then run a night with them."""
    from rbfdiffnet import RBFDiffNet
    from rbfdiffnet.evaluation.metrics import coverage

    df, freq, _ = panel(n, DAYS + 1)
    last = df["ds"].max()
    past, today = df[df["ds"] < last], df[df["ds"] == last]
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.npz", Path(folder) / "after.npz"
        model = timed("fit", lambda: RBFDiffNet(freq, preset="fast", lower=0).fit(past))
        said = timed("predict", lambda: model.predict(7, level=[80]))
        timed("save", lambda: model.save(before))
        model = timed("load", lambda: RBFDiffNet.load(before))
        both = timed("compare", lambda: today.merge(said, on=["unique_id", "ds"]))
        inside = timed("coverage", lambda: coverage(both, ["RBFDiffNet"], level=80))
        timed("update", lambda: model.update(today))
        timed("predict", lambda: model.predict(7, level=[80]))
        timed("save", lambda: model.save(after))
        size = after.stat().st_size / 1e6
    print(f"inside 80 % intervals  {inside['RBFDiffNet'].mean():.1%}")
    print(f"file {size:,.0f} MB, memory at most {peak_memory() / 1e3:.1f} GB")


if __name__ == "__main__":
    main()
