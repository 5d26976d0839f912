"""Chaotic series with noise, of which every method sees the same."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from rbfdiffnet.datasets import henon_map, logistic_map, lorenz, mackey_glass

SYSTEMS = ("logistic", "henon", "mackey_glass", "lorenz")
NOISE_LEVELS = (0.0, 0.05, 0.1, 0.2, 0.4)
LAGS = (2, 4, 8)
N_VALUES, N_TRAIN = 1000, 900


@dataclass(frozen=True)
class Cell:
    """A series, clean and noisy, and how many lags a method may use.

    Attributes
    ----------
    system : str
    noise : float
        Standard deviation of the noise, as a share of that of the clean series.
    n_lags, seed : int
    clean, noisy : ndarray of shape (1000,)
        The series, and the series with noise on every value.
    n_train : int
        How many of the noisy values are there to learn from.
    """

    system: str
    noise: float
    n_lags: int
    seed: int
    clean: np.ndarray
    noisy: np.ndarray
    n_train: int = N_TRAIN

    @property
    def training(self) -> np.ndarray:
        """The noisy values to learn from."""
        return self.noisy[: self.n_train]

    @property
    def scale(self) -> float:
        """Standard deviation of the clean series, the unit of all errors."""
        return float(self.clean.std())


def make_cell(system: str, noise: float, n_lags: int, seed: int) -> Cell:
    """Make a cell; its seed sets both where the series starts and the noise.

    Noise levels differ in the size of the noise alone, and numbers of lags in nothing.
    """
    clean = clean_series(system, seed)
    draws = np.random.default_rng([SYSTEMS.index(system), seed]).normal(size=N_VALUES)
    return Cell(system, noise, n_lags, seed, clean, clean + noise * clean.std() * draws)


@cache
def clean_series(system: str, seed: int) -> np.ndarray:
    """1,000 values from a start of their own (logistic) or a stretch of their own (the others)."""
    discard = 1000 * (1 + seed)
    match system:
        case "logistic":
            start = float(np.random.default_rng(seed).uniform(0.1, 0.9))
            series = logistic_map(N_VALUES, r=4.0, s1=start)
        case "henon":
            series = henon_map(N_VALUES, discard=discard)
        case "mackey_glass":
            series = mackey_glass(N_VALUES, step=6.0, discard=discard)
        case "lorenz":
            series = lorenz(N_VALUES, step=0.1, discard=discard)[:, 0].copy()
        case _:
            raise ValueError(f"There is no system {system!r}; there are {', '.join(SYSTEMS)}.")
    series.flags.writeable = False  # it is shared by all cells of the system and seed
    return series
