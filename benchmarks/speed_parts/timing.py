"""Times of jobs run in turn, tables of them, the machine, one core, and the memory of a process."""

from __future__ import annotations

import gc
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

LONG = 60.0  # seconds; a job that takes longer runs once
_CHILD = Path(__file__).parents[1] / "speed_child.py"


@dataclass(frozen=True)
class Timing:
    """Durations of a job in seconds, and what it returned the last time."""

    seconds: tuple[float, ...]
    result: Any

    @property
    def median(self) -> float:
        """The median duration."""
        return median(self.seconds)

    @property
    def low(self) -> float:
        """The shortest duration."""
        return min(self.seconds)

    @property
    def high(self) -> float:
        """The longest duration."""
        return max(self.seconds)


def in_turn(jobs: Mapping[Any, Callable[[], Any]], repeats: int) -> dict[Any, Timing]:
    """Run every job, then every job again, and so on: a slow minute of the machine hits all."""
    seconds: dict[Any, list[float]] = {name: [] for name in jobs}
    results = {}
    for _ in range(repeats):
        for name, job in jobs.items():
            if seconds[name] and seconds[name][0] >= LONG:
                continue
            gc.collect()
            start = time.perf_counter()
            results[name] = job()
            seconds[name].append(time.perf_counter() - start)
            print(f"  {name}: {seconds[name][-1]:.3g} s", file=sys.stderr, flush=True)
    return {name: Timing(tuple(seconds[name]), results[name]) for name in jobs}


@dataclass(frozen=True)
class Table:
    """Rows with the same keys, which become ``speed_<name>.csv``."""

    name: str
    title: str
    rows: Sequence[Mapping[str, Any]]

    def __str__(self) -> str:
        columns = list(self.rows[0])
        cells = [[_text(row[column]) for column in columns] for row in self.rows]
        widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
        # Words to the left, numbers to the right.
        words = [any(isinstance(row[column], str) for row in self.rows) for column in columns]
        lines = [
            "  ".join(
                cell.ljust(width) if word else cell.rjust(width)
                for cell, width, word in zip(line, widths, words, strict=True)
            ).rstrip()
            for line in [columns, *cells]
        ]
        return "\n".join([self.title, "", *lines])

    def write(self, folder: Path) -> None:
        """Write the rows as ``speed_<name>.csv``."""
        import pandas as pd

        pd.DataFrame(self.rows).to_csv(folder / f"speed_{self.name}.csv", index=False)


def _text(value: Any) -> str:
    if value is None or value != value:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def machine() -> str:
    """Processor, cores, versions and command line."""
    import numpy as np

    import rbfdiffnet

    return "\n".join(
        [
            f"processor  {_processor()}, {len(cores())} of {os.cpu_count()} cores may be used",
            f"python     {platform.python_version()}, numpy {np.__version__}, "
            f"rbfdiffnet {rbfdiffnet.__version__}, numba in use: {numba_in_use()}",
            f"command    python {' '.join(sys.argv)}",
        ]
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def numba_in_use() -> bool:
    """Whether compiled kernels do the work."""
    try:
        from rbfdiffnet.batch.numba_backend import AVAILABLE
    except ImportError:
        return False
    return bool(AVAILABLE)


def cores() -> set[int]:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


@contextmanager
def on_cores(chosen: set[int]) -> Iterator[None]:
    """Keep this thread, and the threads and processes it starts, on some cores."""
    before = cores()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, chosen)
    try:
        yield
    finally:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, before)


def in_child(job: str, **arguments: Any) -> Any:
    """What a function of ``speed_child.py`` returns in a process of its own."""
    command = [sys.executable, str(_CHILD), job, json.dumps(arguments)]
    print(f"  child: {job} {arguments}", file=sys.stderr, flush=True)
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(finished.stdout.splitlines()[-1])


def peak_memory() -> float:
    """Most memory this process has held so far, in MB; NaN where the system does not tell."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not getrusage: on Linux a new process starts with the peak of the one that started it.
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1e3
    try:
        import resource
    except ImportError:
        return float("nan")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3
