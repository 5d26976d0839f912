"""An echo state network of reservoirpy, which is fed the series and has no lags.

A random search with five-fold cross-validation chooses its settings anew for every series. It is
run over the 1,000 clean values for the first task and over the 1,000 noisy ones for the other two.
Its figures are the same for every number of lags, and so are its seconds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from noise_parts.data import Cell, make_cell
from noise_parts.search import folds
from noise_parts.tasks import ORIGINS, H, errors

UNITS, WARM_UP, N_DRAWS = 300, 50, 80
PENALTIES = 10.0 ** np.arange(-10.0, 3.1, 0.5)


@dataclass(frozen=True)
class Settings:
    """What the search chooses: the reservoir, and the penalty of its readout."""

    radius: float
    leak: float
    input_scaling: float
    bias_scaling: float
    input_connectivity: float
    penalty: float = np.nan


def echo_state_network(cell: Cell) -> dict[str, float]:
    return dict(_figures(cell.system, cell.noise, cell.seed))


@cache
def _figures(system: str, noise: float, seed: int) -> dict[str, float]:
    start = time.process_time()
    cell = make_cell(system, noise, 1, seed)
    series = (cell.training - cell.training.mean()) / cell.training.std()
    found = network_figures(cell, search(series, N_DRAWS, seed))
    return {**found, "seconds": time.process_time() - start}


def search(series: np.ndarray, n_draws: int, seed: int) -> Settings:
    """The best of random reservoirs, the second half of them near the best of the first half."""
    rng = np.random.default_rng(seed)
    trials: list[tuple[float, np.ndarray, Settings]] = []
    for draw in range(n_draws):
        place = rng.uniform(size=5)
        if draw >= n_draws / 2:
            place = np.clip(trials[0][1] + 0.1 * rng.normal(size=5), 0.0, 1.0)
        chosen = _at(place)
        states = make_reservoir(chosen, seed).run(series[:-1, None])
        losses = _losses(states[WARM_UP:], series[1 + WARM_UP :])
        best = int(np.argmin(losses))
        chosen = replace(chosen, penalty=float(PENALTIES[best]))
        trials = sorted([*trials, (losses[best], place, chosen)], key=lambda trial: trial[0])
    return trials[0][2]


def _at(place: np.ndarray) -> Settings:
    """Settings of a place in the unit cube."""
    return Settings(
        radius=0.05 + 1.35 * float(place[0]),
        leak=10.0 ** (0.7 * float(place[1]) - 0.7),
        input_scaling=10.0 ** (2.0 * float(place[2]) - 1.5),
        bias_scaling=10.0 ** (2.0 * float(place[3]) - 1.5),
        input_connectivity=0.1 if place[4] < 0.5 else 1.0,
    )


def make_reservoir(chosen: Settings, seed: int) -> Any:
    from reservoirpy.nodes import Reservoir

    bias = np.random.default_rng(seed).uniform(-1.0, 1.0, UNITS)
    return Reservoir(
        UNITS,
        sr=chosen.radius,
        lr=chosen.leak,
        input_scaling=chosen.input_scaling,
        input_connectivity=chosen.input_connectivity,
        bias=chosen.bias_scaling * bias,
        seed=seed,
    )


def _losses(states: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Mean squared error over the folds of the readout, for every penalty."""
    losses = np.zeros(len(PENALTIES))
    for train, test in folds(len(y)):
        S, mean, level = states[train], states[train].mean(axis=0), y[train].mean()
        values, vectors = np.linalg.eigh((S - mean).T @ (S - mean))
        turned = vectors.T @ ((S - mean).T @ (y[train] - level))
        shrunk = turned / (np.maximum(values, 0.0) + PENALTIES[:, None])
        wrong = (states[test] - mean) @ vectors @ shrunk.T + level - y[test, None]
        losses += (wrong**2).sum(axis=0)
    return losses / len(y)


def network_figures(cell: Cell, chosen: Settings) -> dict[str, float]:
    """Train the readout on the noisy training values, then run the network over the series."""
    from reservoirpy.nodes import Ridge

    mean, spread = cell.training.mean(), cell.training.std()
    clean, noisy = (cell.clean - mean) / spread, (cell.noisy - mean) / spread
    reservoir = make_reservoir(chosen, cell.seed)
    states = reservoir.run(noisy[:, None])
    readout = Ridge(chosen.penalty)
    known = slice(WARM_UP, cell.n_train - 1)
    readout.fit(states[known], noisy[WARM_UP + 1 : cell.n_train, None])
    reservoir.reset()
    from_clean = readout.run(reservoir.run(clean[:, None]))[cell.n_train - 1 : -1, 0]
    from_noisy = readout.run(states)[cell.n_train - 1 : -1, 0]
    paths = np.empty((len(ORIGINS), H))
    for i, origin in enumerate(ORIGINS):
        reservoir.state = {"out": states[origin - 1]}
        for k in range(H):
            value = readout.step(reservoir.state["out"])
            paths[i, k] = value[0]
            reservoir.step(value)
    return errors(cell, *(mean + spread * each for each in (from_clean, from_noisy, paths)))
