"""Jobs that ``speed.py`` runs in a process of their own: ``speed_child.py JOB ARGUMENTS``.

The arguments are JSON, and so is the last line printed: the row of a table.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.evaluation.metrics import rmsse_score
from rbfdiffnet.models.networks.fast import forecast_arrays
from speed_parts.data import H, bottom_level, long_frame, made_up
from speed_parts.timing import in_turn, peak_memory


def _model(n_jobs: int = 1) -> RBFDiffNet:
    return RBFDiffNet(freq="D", preset="fast", n_jobs=n_jobs)


def _warm_up() -> float:
    """Forecast one series, so that everything is imported and compiled; the memory that takes."""
    _model().forecast(long_frame(made_up(1, 200)), H)
    return peak_memory()


def memory(n_series: int, length: int) -> dict[str, Any]:
    """Peak memory of a panel, above that of one series."""
    start = _warm_up()
    df = long_frame(made_up(n_series, length))
    frame = float(df.memory_usage(deep=True).sum()) / 1e6
    _model().forecast(df, H)
    peak = peak_memory() - start
    return {"series": n_series, "frame_mb": frame, "peak_mb": peak, "imports_mb": start}


def jobs(n_series: int, length: int, repeats: int) -> dict[str, Any]:
    """Seconds with one thread and with two."""
    _warm_up()
    values = made_up(n_series, length)
    df = long_frame(values)
    ways = {
        "frame": lambda n: _model(n).forecast(df, H),
        "arrays": lambda n: forecast_arrays(values, H, season_length=7, n_jobs=n),
    }
    row: dict[str, Any] = {"series": n_series, "days": length}
    for name, way in ways.items():
        timings = in_turn({n: partial(way, n) for n in (1, 2)}, repeats)
        row[f"{name}_s_1"], row[f"{name}_s_2"] = timings[1].median, timings[2].median
        row[f"{name}_times_faster"] = timings[1].median / timings[2].median
        row[f"{name}_best"] = timings[1].low / timings[2].low
    return row


def bottom(m5: str | None, n_series: int | None) -> dict[str, Any]:
    """Seconds, memory and error of the bottom level; the errors are taken after the clock."""
    start = _warm_up()
    begin = time.perf_counter()
    values, names, about = bottom_level(None if m5 is None else Path(m5), n_series)
    df = long_frame(values[:, :-H], names)
    built, frame_peak = time.perf_counter(), peak_memory()
    forecast = _model(n_jobs=2).forecast(df, H)
    done, peak = time.perf_counter(), peak_memory()
    # The rows come series by series, in the order of the names as text.
    paths = forecast["RBFDiffNet"].to_numpy().reshape(len(names), H)
    place = {name: i for i, name in enumerate(forecast["unique_id"].to_numpy()[::H])}
    paths = paths[[place[name] for name in names]]
    naive = np.tile(values[:, -H - 7 : -H], H // 7)
    return {
        "about": about,
        "series": len(names),
        "days": values.shape[1] - H,
        "frame_s": built - begin,
        "forecast_s": done - built,
        "ms_per_series": 1e3 * (done - built) / len(names),
        "frame_peak_mb": frame_peak,
        "peak_mb": peak,
        "imports_mb": start,
        "rmsse": _error(values, paths),
        "naive_rmsse": _error(values, naive),
    }


def _error(values: np.ndarray, paths: np.ndarray) -> float:
    """Mean RMSSE over the series that have one."""
    pairs = zip(values, paths, strict=True)
    return float(np.nanmean([rmsse_score(v[-H:], path, v[:-H]) for v, path in pairs]))


if __name__ == "__main__":
    job = {"memory": memory, "jobs": jobs, "bottom": bottom}[sys.argv[1]]
    print(json.dumps(job(**json.loads(sys.argv[2]))))
