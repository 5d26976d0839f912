"""Memory and time of `RBFDiffNet.forecast` as panels grow: ``python benchmarks/load.py``.

Every case runs in a process of its own: made-up daily demand in a frame with categories as ids, 14
days ahead with intervals (a day of hours for the long series). ``beside`` is the most memory held
beyond what the process held with the frame, and without the frame of forecasts, in GB.
``--plot FILE`` draws the rows of all cases in ``--out``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

from shared_parts.look import BLUE, GOLD, GRAY, INK, RED, dress
from speed_parts.timing import machine, peak_memory

SETTINGS = {"default": {}, "fast": {"preset": "fast"}, "local": {"scope": "local"}}
SHORT, LONG = 60, 200_000
CASES = [
    *(f"fast {n} {SHORT}" for n in (10_000, 30_000, 100_000, 300_000, 1_000_000)),
    *(f"default {n} {SHORT}" for n in (10_000, 30_000, 100_000, 300_000, 1_000_000)),
    *(f"{name} 100 {LONG}" for name in SETTINGS),
]


def main(arguments: Sequence[str] | None = None) -> None:
    import pandas as pd

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=CASES, metavar="CASE", help='"fast 10000 60"')
    parser.add_argument("--limit", nargs="+", default=["2GB"], help="memory_limit")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="CSV file to which rows are added")
    parser.add_argument("--plot", type=Path, help="picture of the rows in --out")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(forecast(options.cases[0], options.limit[0], options.jobs)))
        return
    print(machine(), flush=True)
    for case in options.cases:
        for limit in options.limit:
            command = [sys.executable, __file__, case, "--limit", limit, "--child"]
            command += ["--jobs", str(options.jobs)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            row = pd.DataFrame([json.loads(done.stdout.splitlines()[-1])])
            print(row.to_string(index=False), flush=True)
            if options.out is not None:
                row.to_csv(options.out, mode="a", header=not options.out.exists(), index=False)
    if options.plot is not None:
        plot(pd.read_csv(options.out), options.plot)


def forecast(case: str, limit: str, jobs: int) -> dict[str, object]:
    """Forecast a panel, and tell what that took."""
    from rbfdiffnet import RBFDiffNet

    name, n, length = case.split()
    df, freq, h = panel(int(n), int(length))
    before = held()
    forget_peak()
    start, processor = time.perf_counter(), time.process_time()
    model = RBFDiffNet(freq, **SETTINGS[name], memory_limit=limit, n_jobs=jobs)
    found = model.forecast(df, h, level=[80])
    if not (len(found) == int(n) * h and found.notna().all(axis=None)):
        raise SystemExit("forecasts are missing")
    result = found.memory_usage(deep=True).sum() / 1e9
    return {
        "settings": name,
        "series": int(n),
        "values": int(length),
        "limit": limit,
        "jobs": jobs,
        "frame": round(df.memory_usage(deep=True).sum() / 1e9, 3),
        "beside": round(peak_memory() / 1e3 - before - result, 3),
        "processor_s": round(time.process_time() - processor, 1),
        "wall_s": round(time.perf_counter() - start, 1),
    }


def panel(n: int, length: int) -> tuple[object, str, int]:
    """Demand with a week, or a day of hours; a frame, its step of time, and a horizon."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    season, freq, h = (7, "D", 14) if length < 10_000 else (24, "h", 24)
    wave = 1.0 + 0.3 * np.sin(2 * np.pi * np.arange(length) / season)
    y = np.empty((n, length))
    for part in np.array_split(np.arange(n), max(1, n * length // 10**6)):
        y[part] = rng.poisson(np.exp(rng.normal(1.0, 1.0, (part.size, 1))) * wave)
    names = [f"item_{i:07d}" for i in range(n)]
    dates = pd.date_range("2000-01-01", periods=length, freq=freq).to_numpy()
    ids = pd.Categorical.from_codes(np.repeat(np.arange(n, dtype=np.int32), length), names)
    frame = pd.DataFrame({"unique_id": ids, "ds": np.tile(dates, n), "y": y.ravel()}, copy=False)
    return frame, freq, h


def held() -> float:
    """Memory this process holds now, in GB."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1e6


def forget_peak() -> None:
    """Have the system count the most memory from now on."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def plot(rows: object, path: Path) -> None:
    """Draw memory against the number of series."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "rbfdiffnet"  # the same picture gives the same file
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    short = rows[rows["values"] == SHORT].sort_values("series")
    for ((name, limit), own), color in zip(
        short.groupby(["settings", "limit"]), cycle((BLUE, RED, GOLD)), strict=False
    ):
        label = f"{name}, memory_limit={limit}: beside the frames"
        axes.loglog(own["series"], own["beside"], marker="o", ms=5, color=color, label=label)
    frames = short.drop_duplicates("series")
    label = "the frame that is forecast"
    axes.loglog(frames["series"], frames["frame"], color=GRAY, linestyle="--", label=label)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlabel(f"series of {SHORT} values")
    axes.set_ylabel("GB")
    dress(axes, "The most memory held")
    axes.legend(frameon=False, fontsize=9, labelcolor=INK)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


if __name__ == "__main__":
    main()
