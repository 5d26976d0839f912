"""A published benchmark of chaotic systems: ``python benchmarks/chaos.py FOLDER``.

FOLDER has the series of the dysts benchmark (Gilpin, "Chaos as an interpretable benchmark for
forecasting and data-driven modelling", NeurIPS 2021) and its errors: in ``series.npz`` the arrays
``systems`` (n,), ``coarse`` (n, 180) and ``fine`` (n, 1200) with 15 and 100 values a period; in
``published.csv`` the columns ``system, points_per_period, noise, method, smape, nrmse``.

A method learns the first five sixths of a series and forecasts the rest but for the last value. In
noisy cells noise of .2 standard deviations is added to all values, and errors are those against
noisy values. Only the valid time and the spectral distance are measured on clean ones, since noise
alone would end the one and hide the other.

Medians over the systems go to a file, one row for each cell and method, and rows that are there
are not computed again. At the end a table of all of them is printed.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from chaos_parts.rivals import RIVALS, is_installed
from rbfdiffnet import RBFDiffNetRegressor
from rbfdiffnet.noise.cleaning import quarter_period
from rbfdiffnet.noise.reader import series as reader
from rbfdiffnet.noise.series_model import learn_series
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.parallel import one_blas_thread
from shared_parts.row_file import RowFile

PERIODS = {"coarse": 15, "fine": 100}  # values in a period
CELLS = [f"{kind}-{noise}" for kind in PERIODS for noise in ("clean", "noisy")]
NOISE, SEED = 0.2, 1000
FIGURES = ("smape", "nrmse", "valid_periods", "spectral", "seconds")
VALID = 0.4  # standard deviations of the clean series


def smape(actual: Array, forecast: Array) -> float:
    """Symmetric mean absolute percentage error, at most 200."""
    return float(200.0 * np.mean(np.abs(actual - forecast) / (np.abs(actual) + np.abs(forecast))))


def nrmse(actual: Array, forecast: Array) -> float:
    """Root mean square error over the standard deviation of what was to be forecast."""
    return float(np.sqrt(np.mean((actual - forecast) ** 2)) / actual.std())


def valid_steps(actual: Array, forecast: Array, scale: float) -> int:
    """Steps before the first error of more than .4 standard deviations."""
    wrong = np.abs(actual - forecast) > VALID * scale
    return int(np.argmax(wrong)) if wrong.any() else wrong.size


def spectral_distance(actual: Array, forecast: Array) -> float:
    """Hellinger's distance between shares of power by frequency, 0 to 1, the means taken out."""
    shares = []
    for values in (actual, forecast):
        power = np.abs(np.fft.rfft(values - values.mean())) ** 2
        shares.append(power / max(power.sum(), 1e-300))
    return float(np.sqrt(max(1.0 - np.sqrt(shares[0] * shares[1]).sum(), 0.0)))


def ours(s: Array, h: int) -> Array:
    return RBFDiffNetRegressor(noise="auto").fit_series(s).forecast(h)


def without_reader(s: Array, h: int) -> Array:
    model = replace(learn_series(s[:, None]), share=None)
    return model.forecast(None, h, np.array([0.5]))[:, 0, 0]


def reader_alone(s: Array, h: int) -> Array:
    return reader.forecast(s, h, quarter_period(s))


METHODS: dict[str, Callable[[Array, int], Array]] = {
    'ours, noise="auto"': ours,
    "ours, without the reader": without_reader,
    "the reader alone": reader_alone,
}
METHODS |= {name: rival for name, (rival, _) in RIVALS.items() if is_installed(name)}


def tasks(folder: Path, cell: str, seed: int) -> Iterator[tuple[Array, Array, int]]:
    """Yield clean and observed values of each system, and how many of them are learned from."""
    kind, noise = cell.split("-")
    with np.load(folder / "series.npz") as file:
        series = file[kind]
    for i, clean in enumerate(series):
        draw = np.random.default_rng(seed + i).normal(size=clean.size)
        yield clean, clean + (noise == "noisy") * NOISE * clean.std() * draw, clean.size * 5 // 6


def measure(
    method: Callable[[Array, int], Array], folder: Path, cell: str, seed: int
) -> dict[str, float]:
    """Return medians of errors over the systems, and mean seconds for each of them."""
    rows = []
    start = time.process_time()
    for clean, observed, n in tasks(folder, cell, seed):
        forecast = method(observed[:n], clean.size - n - 1)
        actual = observed[n:-1]
        valid = valid_steps(clean[n:-1], forecast, clean.std()) / PERIODS[cell.split("-")[0]]
        distance = spectral_distance(clean[n:-1], forecast)
        rows.append((smape(actual, forecast), nrmse(actual, forecast), valid, distance))
    seconds = (time.process_time() - start) / len(rows)
    return dict(zip(FIGURES, (*np.median(rows, axis=0), seconds), strict=True))


def published_medians(folder: Path) -> pd.DataFrame:
    """Return columns cell, method, smape, nrmse: medians over the systems of ``series.npz``."""
    with np.load(folder / "series.npz") as file:
        systems = file["systems"]
    rows = pd.read_csv(folder / "published.csv")
    rows = rows[rows["system"].isin(systems)]
    kinds = rows["points_per_period"].map({n: kind for kind, n in PERIODS.items()})
    rows["cell"] = kinds + rows["noise"].map({0: "-clean", 1: "-noisy"})
    return rows.groupby(["cell", "method"], as_index=False)[["smape", "nrmse"]].median()


def report(rows: pd.DataFrame, published: pd.DataFrame) -> str:
    """Return a table of all figures, and the best that was published."""
    cells = [cell for cell in CELLS if (rows["cell"] == cell).any()]
    lines = [f"| | {' | '.join(cell.replace('-', ', ') for cell in cells)} |"]
    lines.append("|---" * (len(cells) + 1) + "|")
    for name, found in rows.groupby("method", sort=False):
        texts = {
            row.cell: (
                f"{row.smape:.1f} / {row.nrmse:.2f} / {row.valid_periods:.2f} / "
                f"{row.spectral:.2f} / {row.seconds:.2g} s"
            ).replace("nan", "-")
            for row in found.itertuples()
        }
        lines.append(f"| {name} | {' | '.join(texts.get(cell, '') for cell in cells)} |")
    for figure, label in (("smape", "sMAPE"), ("nrmse", "NRMSE")):
        best = published.loc[published.groupby("cell")[figure].idxmin()].set_index("cell")
        texts = {
            row.Index: f"{row.smape:.1f} / {row.nrmse:.2f} ({row.method})"
            for row in best.itertuples()
        }
        line = " | ".join(texts.get(cell, "") for cell in cells)
        lines.append(f"| published, lowest {label} | {line} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results/chaos.csv")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="M")
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=CELLS)
    parser.add_argument("--seed", type=int, default=SEED, help="noise of the first system")
    options = parser.parse_args(arguments)
    for name, (_, package) in RIVALS.items():
        if name not in METHODS:
            print(f"{name}: skipped, {package} is not installed.", file=sys.stderr)
    file = RowFile(options.out, ("cell", "method", "seed"), FIGURES)
    done = file.done()
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore")  # those about trainings that stop at their limit
        for method in options.methods:
            for cell in options.cells:
                key = (cell, method, str(options.seed))
                if key not in done:
                    file.append(key, measure(METHODS[method], options.folder, cell, options.seed))
    rows = pd.read_csv(options.out)
    print(report(rows[rows["seed"] == options.seed], published_medians(options.folder)))


if __name__ == "__main__":
    main()
