"""Our way with noise: the clean trajectory is learned, and histories are filtered."""

from __future__ import annotations

import time
from functools import cache

import numpy as np

from noise_parts.data import Cell, make_cell
from noise_parts.tasks import H, errors, histories
from rbfdiffnet import RBFDiffNetRegressor
from rbfdiffnet.series.windows import cut_windows, lag_windows


def tracked(cell: Cell) -> dict[str, float]:
    """Figures of ``RBFDiffNetRegressor(noise="auto")``, which knows no more than the others."""
    model = RBFDiffNetRegressor(noise="auto").fit_series(cell.training, cell.n_lags)
    start = cell.n_train - cell.n_lags
    return _figures(
        cell,
        model,
        model.predict(lag_windows(cell.clean[start:], cell.n_lags)[0]),
        model.predict_noisy(lag_windows(cell.noisy[start:], cell.n_lags)[0]),
    )


def without_settings(cell: Cell) -> dict[str, float]:
    """Figures of the same call without a number of lags, which are those of every number."""
    return dict(_without_settings(cell.system, cell.noise, cell.seed))


@cache
def _without_settings(system: str, noise: float, seed: int) -> dict[str, float]:
    start = time.process_time()
    cell = make_cell(system, noise, 1, seed)
    model = RBFDiffNetRegressor(noise="auto").fit_series(cell.training)
    n_lags, delay = model.n_lags_, model.delay_
    windows = cut_windows(
        cell.clean[cell.n_train - n_lags * delay : -delay], 1 + (n_lags - 1) * delay
    )
    one_step = [
        model.forecast(1, cell.noisy[end - cell.n_train : end])[0]
        for end in range(cell.n_train, cell.noisy.size)
    ]
    found = _figures(cell, model, model.predict(windows[:, ::delay]), np.array(one_step))
    return {**found, "seconds": time.process_time() - start}


def _figures(
    cell: Cell, model: RBFDiffNetRegressor, from_clean: np.ndarray, from_noisy: np.ndarray
) -> dict[str, float]:
    """Add forecasts of noisy histories and the error of the latent series."""
    return errors(
        cell,
        from_clean,
        from_noisy,
        np.stack([model.forecast(H, history) for history in histories(cell)]),
        float(np.sqrt(np.mean((model.latent_ - cell.clean[: cell.n_train]) ** 2)) / cell.scale),
    )
