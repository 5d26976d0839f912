r"""An autoregression for every series, shrunk toward what all of them have in common.

.. math:: y_{t+1} - y_t = \sum_{i=1}^{p-1} b_i (y_{t-i} - y_t) + b_0, \qquad
    b = (X'X + \lambda D)^{-1} (X'z + \lambda D \beta)

with :math:`\beta` the autoregression of least absolute error over all series, or 0, a random walk.
The penalty :math:`\lambda` of each series is that of least absolute leave-one-out error, which may
be infinite. Series come without seasons, in units of their mean change.
"""

from __future__ import annotations

import numpy as np

from rbfdiffnet.models.stack.direct import fit_least_absolute
from rbfdiffnet.models.stack.histories import Histories
from rbfdiffnet.series.recursion import roll
from rbfdiffnet.series.windows import cut_windows
from rbfdiffnet.support.arrays import Array, Mask

_PENALTIES = 10.0 ** np.arange(-2.0, 4.1, 0.5)
_MOST_LAGS = 24
_COMMON = 1e-2  # penalty of the autoregression over all series
_COMMON_ROWS = 100_000
_ROWS_PER_LAG = 5
_CELLS = 1 << 24  # of the inputs of series that are fitted at a time
_CLOSEST = 0.05  # 1 - leverage
_RANGES = 2.0  # by which forecasts may leave the range of a series


def forecast_local(histories: Histories, h: int, *, common: bool) -> Array:
    """Forecast series without seasons, each with its own autoregression; shape (n, h).

    With ``common``, coefficients are shrunk toward those over all series, else toward a random
    walk. The length of the season sets the number of lags.
    """
    n_lags = _choose_lags(histories)
    change = np.nansum(np.abs(np.diff(histories.values, axis=1)), axis=1)
    change /= np.maximum(histories.lengths - 1, 1)
    unit = np.where(change > 0.0, change, 1.0)[:, None]
    values = histories.values / unit
    toward = np.zeros(n_lags)
    if common:
        X, z, known = _make_rows(values, n_lags)
        rows = np.flatnonzero(known.ravel())
        rows = rows[:: max(1, -(-rows.size // _COMMON_ROWS))]
        if rows.size >= _ROWS_PER_LAG * n_lags:
            X, z = X.reshape(-1, n_lags)[rows], z.ravel()[rows]
            toward = fit_least_absolute(X, z, np.ones(rows.size), np.full(n_lags, _COMMON))
    at_once = max(1, _CELLS // (values.shape[1] * n_lags))
    chunks = [
        _fit_coefficients(values[start : start + at_once], n_lags, toward)
        for start in range(0, len(values), at_once)
    ]
    path = histories.with_values(values).fill_start()
    path = np.pad(path, ((0, 0), (max(n_lags - path.shape[1], 0), 0)), mode="edge")
    return _continue(path, np.concatenate(chunks), h) * unit


def _choose_lags(histories: Histories) -> int:
    usual = 8 if histories.season == 1 else min(histories.season + 2, _MOST_LAGS)
    return max(1, min(usual, histories.usual_length // 3))


def _make_rows(values: Array, n_lags: int) -> tuple[Array, Array, Mask]:
    """Return inputs (n, R, p), targets (n, R), and which rows are known; the others are 0."""
    if values.shape[1] <= n_lags:
        nothing = np.zeros((len(values), 0))
        return nothing[:, :, None].repeat(n_lags, axis=2), nothing, nothing > 0.0
    windows = cut_windows(values, n_lags + 1)
    last = windows[:, :, n_lags - 1 : n_lags]
    known = np.isfinite(windows[:, :, 0])
    X = np.concatenate([windows[:, :, : n_lags - 1] - last, np.ones_like(last)], axis=2)
    z = windows[:, :, n_lags] - last[:, :, 0]
    return np.where(known[:, :, None], X, 0.0), np.where(known, z, 0.0), known


def _fit_coefficients(values: Array, n_lags: int, toward: Array) -> Array:
    """Fit the coefficients of every series, shape (n, p), with the penalty of least error."""
    X, z, known = _make_rows(values, n_lags)
    counts = np.maximum(known.sum(axis=1), 1)
    gram = X.swapaxes(1, 2) @ X
    moment = (X.swapaxes(1, 2) @ z[:, :, None])[:, :, 0]
    usual = np.einsum("nii->i", gram) / counts.sum()
    D = np.maximum(usual, 1e-6)
    best = np.abs(z - X @ toward).sum(axis=1) / counts
    found = np.repeat(toward[None], len(values), axis=0)
    for penalty in _PENALTIES:
        inverse = np.linalg.inv(gram + np.diag(penalty * D))
        b = (inverse @ (moment + penalty * D * toward)[:, :, None])[:, :, 0]
        residual = z - (X @ b[:, :, None])[:, :, 0]
        leverage = np.einsum("nri,nri->nr", X @ inverse, X)
        error = np.abs(residual / np.maximum(1.0 - leverage, _CLOSEST)).sum(axis=1) / counts
        better = error < best
        best = np.where(better, error, best)
        found[better] = b[better]
    return found


def _continue(path: Array, b: Array, h: int) -> Array:
    """Feed forecasts back, shape (n, h), not far outside the range of each series."""

    def step(latest: Array) -> Array:
        last = latest[:, -1]
        moved = ((latest[:, :-1] - last[:, None]) * b[:, :-1]).sum(axis=1)
        return np.asarray(last + moved + b[:, -1])

    low, high = path.min(axis=1), path.max(axis=1)
    room = _RANGES * np.maximum(high - low, 1.0)
    return roll(step, path[:, path.shape[1] - b.shape[1] :], h, low - room, high + room)
