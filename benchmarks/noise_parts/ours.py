"""Our way with noise: the clean trajectory is learned, and histories are filtered."""

from __future__ import annotations

import numpy as np

from noise_parts.data import Cell
from noise_parts.tasks import H, errors, histories
from rbfdiffnet import RBFDiffNetRegressor
from rbfdiffnet.series.windows import lag_windows


def tracked(cell: Cell) -> dict[str, float]:
    """Figures of ``RBFDiffNetRegressor(noise="auto")``, which knows no more than the others."""
    model = RBFDiffNetRegressor(noise="auto").fit_series(cell.training, cell.n_lags)
    start = cell.n_train - cell.n_lags
    return errors(
        cell,
        model.predict(lag_windows(cell.clean[start:], cell.n_lags)[0]),
        model.predict_noisy(lag_windows(cell.noisy[start:], cell.n_lags)[0]),
        np.stack([model.forecast(H, history) for history in histories(cell)]),
        float(np.sqrt(np.mean((model.latent_ - cell.clean[: cell.n_train]) ** 2)) / cell.scale),
    )
