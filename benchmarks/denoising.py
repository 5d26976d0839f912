"""How much noise is left after cleaning: ``python benchmarks/denoising.py``.

1,000 values of six chaotic systems with noise of .05, .1 and .2 standard deviations, three draws of
each. The figure is the root mean square error of the cleaned series over that of the noisy one.

Ours is ``RBFDiffNetRegressor(noise="auto").fit_series(s).latent_``, without any settings. The rival
is local projection (Grassberger et al., "On noise reduction methods for chaotic data", 1993), as in
TISEAN, by the package ``ghkss``. It is told the level of the noise, and its settings are chosen for
every series without the clean one: with fresh noise n of the same level, s + n / 2 and s - 2 n have
independent noise. Every setting cleans the first, and the closest to the second is taken.
``best of all`` is the setting that turns out to be best, which nobody can know.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.integrate import solve_ivp

from rbfdiffnet import RBFDiffNetRegressor
from rbfdiffnet.datasets import henon_map, logistic_map, lorenz, mackey_glass
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.parallel import one_blas_thread
from shared_parts.row_file import RowFile

Setting = tuple[tuple[int, int], int, int, int]  # window, dimension, neighbors, rounds

N_VALUES = 1000
NOISE_LEVELS, SEEDS = (0.05, 0.1, 0.2), (0, 1, 2)
FIGURES = ("ours", "chosen", "defaults", "best", "seconds_ours", "seconds_chosen")
WINDOWS = ((3, 1), (5, 1), (7, 1), (11, 1), (15, 1), (11, 2))  # values, and steps between them
DIMENSIONS, NEIGHBORS, ROUNDS = (1, 2, 3), (10, 30), (1, 3)
DEFAULTS = (5, 1), 2, 50, 3  # those of the package, but for the number of rounds, TISEAN's


def ikeda(seed: int) -> Array:
    z, path = complex(0.1, 0.1), []
    for _ in range(N_VALUES * (2 + seed)):
        z = 1.0 + 0.9 * z * np.exp(1j * (0.4 - 6.0 / (1.0 + abs(z) ** 2)))
        path.append(z.real)
    return np.array(path[-N_VALUES:])


def roessler(seed: int) -> Array:
    at = 0.4 * np.arange(N_VALUES * (2 + seed))

    def change(_: float, u: Array) -> list[float]:
        return [-u[1] - u[2], u[0] + 0.2 * u[1], 0.2 + u[2] * (u[0] - 5.7)]

    path = solve_ivp(change, (0.0, at[-1]), [1.0, 1.0, 0.0], t_eval=at, rtol=1e-9, atol=1e-9)
    return path.y[0, -N_VALUES:]


SYSTEMS: dict[str, Callable[[int], Array]] = {
    "logistic": lambda seed: logistic_map(N_VALUES, s1=0.1 + 0.01 * seed),
    "Hénon": lambda seed: henon_map(N_VALUES, discard=1000 * (1 + seed)),
    "Ikeda": ikeda,
    "Mackey-Glass": lambda seed: mackey_glass(N_VALUES, step=3.0, discard=1000 * (1 + seed)),
    "Lorenz": lambda seed: lorenz(N_VALUES, step=0.05, discard=1000 * (1 + seed))[:, 0],
    "Rössler": roessler,
}


def project(s: Array, setting: Setting) -> Array:
    """Clean a series by local projection."""
    import ghkss

    (size, apart), dimension, neighbors, rounds = setting
    config = ghkss.FilterConfig()
    config.set_delay_vector_pattern(size, apart)
    config.projection_dimension = dimension
    config.minimum_neighbour_count = neighbors
    config.iterations = rounds
    return np.asarray(ghkss.filter_ghkss(s[:, None], config))[:, 0]


def settings() -> list[Setting]:
    every = product(WINDOWS, DIMENSIONS, NEIGHBORS, ROUNDS)
    return [setting for setting in every if setting[1] < setting[0][0]]


def choose(s: Array, noise: float, seed: int) -> Setting:
    """Return settings of local projection by two copies of a series with independent noise."""
    fresh = noise * np.random.default_rng([seed, 1]).normal(size=s.size)
    return min(settings(), key=lambda each: rms(project(s + fresh / 2, each) - s + 2 * fresh))


def rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


def make_series(system: str, level: float, seed: int) -> tuple[Array, Array]:
    """Return a series without noise and with noise of a level, each (1000,)."""
    clean = SYSTEMS[system](seed)
    draw = np.random.default_rng([list(SYSTEMS).index(system), seed]).normal(size=N_VALUES)
    return clean, clean + level * clean.std() * draw


def measure_ours(system: str, level: float, seed: int) -> dict[str, float]:
    """Return the share of noise that ours leaves, and seconds."""
    clean, s = make_series(system, level, seed)
    start = time.process_time()
    ours = RBFDiffNetRegressor(noise="auto").fit_series(s).latent_
    seconds = time.process_time() - start
    return {"ours": rms(ours - clean) / rms(s - clean), "seconds_ours": seconds}


def measure(system: str, level: float, seed: int) -> dict[str, float]:
    """Return shares of noise that are left, and seconds."""
    clean, s = make_series(system, level, seed)

    def left(found: Array) -> float:
        return rms(found - clean) / rms(s - clean)

    start = time.process_time()
    found = project(s, choose(s, level * clean.std(), seed))
    return {
        "chosen": left(found),
        "seconds_chosen": time.process_time() - start,
        **measure_ours(system, level, seed),
        "defaults": left(project(s, DEFAULTS)),
        "best": min(left(project(s, each)) for each in settings()),
    }


def measure_again(path: Path) -> None:
    """Measure ours in every row of a file, and leave the rival as it is."""
    rows = pd.read_csv(path)
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore")
        keys = rows[["system", "noise", "seed"]].itertuples(index=False)
        found = pd.DataFrame([measure_ours(*key) for key in keys])
    rows[found.columns] = found
    rows.to_csv(path, index=False, float_format="%.8g")


def report(rows: pd.DataFrame) -> str:
    """Return a table of means over the draws."""
    lines = ["| system | noise | ours | chosen | defaults | best of all |", "|---" * 6 + "|"]
    means = rows.groupby(["system", "noise"], sort=False)[list(FIGURES)].mean()
    for (system, noise), row in means.iterrows():
        texts = [f"{row[name]:.2f}" for name in FIGURES[:4]]
        lines.append(f"| {system} | {noise} | {' | '.join(texts)} |")
    for rival in ("chosen", "best"):
        ratio = means["ours"] / means[rival]
        lines.append(
            f"\nAgainst {rival}: {np.exp(np.log(ratio).mean()):.2f} of the noise it leaves "
            f"(geometric mean), less in {(ratio < 1).sum()} of {len(ratio)}, at most .8 in "
            f"{(ratio <= 0.8).sum()}."
        )
    for name in ("ours", "chosen"):
        lines.append(f"Seconds, {name}: {rows[f'seconds_{name}'].mean():.1f}.")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results/denoising.csv")
    parser.add_argument("--again", action="store_true", help="measure ours again, in every row")
    options = parser.parse_args(arguments)
    if options.again:
        measure_again(options.out)
    file = RowFile(options.out, ("system", "noise", "seed"), FIGURES)
    done = file.done()
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore")
        for key in product(options.systems, NOISE_LEVELS, options.seeds):
            if tuple(map(str, key)) not in done:
                file.append(tuple(map(str, key)), measure(*key))
    print(report(pd.read_csv(options.out)))


if __name__ == "__main__":
    main()
