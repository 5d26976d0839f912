r"""What a method is asked for, and the errors it is given.

=============  =====================================================================================
clean_windows  mean absolute error, one step ahead, of the last 100 clean values, each from the
               clean values before it: how well the map itself was learned
noisy_windows  the same targets from the noisy values before them
twenty_steps   from 21 origins, 4 steps apart, 20 steps ahead of the noisy history; the mean
               absolute error of each forecast against the clean values, and the median of the 21
=============  =====================================================================================

All are divided by the standard deviation of the clean series.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from noise_parts.data import Cell
from rbfdiffnet.series.recursion import forecast_recursive
from rbfdiffnet.series.windows import lag_windows

H = 20
ORIGINS = range(900, 981, 4)
FIGURES = ("clean_windows", "noisy_windows", "twenty_steps", "latent_error")


class Model(Protocol):
    """What a rival returns: a one-step model of windows, oldest lag first."""

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Map windows (n, n_lags) to the values that follow them."""
        ...


def errors(
    cell: Cell,
    from_clean: np.ndarray,
    from_noisy: np.ndarray,
    paths: np.ndarray,
    latent_error: float = np.nan,
) -> dict[str, float]:
    """Figures of predictions (100,) from clean and noisy windows and of paths (21, 20).

    ``latent_error`` is for methods that estimate the clean training values too.
    """
    targets = cell.clean[cell.n_train :]
    ahead = np.stack([cell.clean[origin : origin + H] for origin in ORIGINS])
    mean = np.abs(paths - ahead).mean(axis=1)
    values = (
        np.abs(from_clean - targets).mean() / cell.scale,
        np.abs(from_noisy - targets).mean() / cell.scale,
        np.median(mean) / cell.scale,
        latent_error,
    )
    return dict(zip(FIGURES, map(float, values), strict=True))


def histories(cell: Cell) -> np.ndarray:
    """The 900 noisy values before each origin (21, 900)."""
    return np.stack([cell.noisy[origin - cell.n_train : origin] for origin in ORIGINS])


def score(cell: Cell, model: Model) -> dict[str, float]:
    """Figures of a one-step model, fed with its own forecasts beyond the first step."""
    start = cell.n_train - cell.n_lags
    return errors(
        cell,
        model.predict(lag_windows(cell.clean[start:], cell.n_lags)[0]),
        model.predict(lag_windows(cell.noisy[start:], cell.n_lags)[0]),
        forecast_recursive(model.predict, histories(cell), H, n_lags=cell.n_lags),
    )
