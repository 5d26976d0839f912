r"""One network for all series, with an output for every step ahead.

.. math:: \frac{\hat y_{t+k} - y_t}{d_t} = \lambda_k \cdot x + b_k
    + \sum_{j=1}^{c} w_{kj} \, a_k \cdot \nabla \varphi_j(x)

over the rows of `models.stack.rows`: a linear part and differential basis functions of order 1
along the direction :math:`a_k` in which the linear part rises, least absolute error, recent rows
counting more. The centers are shared by all steps.
"""

from __future__ import annotations

import numpy as np

from rbfdiffnet.models.stack.histories import Histories
from rbfdiffnet.models.stack.least_absolute import fit_least_absolute
from rbfdiffnet.models.stack.rows import RowMaker, choose_lags
from rbfdiffnet.network.basis import GaussianBasis, squared_distances
from rbfdiffnet.network.centers import kmeans
from rbfdiffnet.support.arrays import Array

_MOST_ROWS, _THOROUGH = 40_000, 160_000
_FEWEST_ROWS = 10
_CENTERS = 30
_ROWS_PER_CENTER = 20
_PLACED_ON = 4_000  # rows
_WIDTH_FACTOR = 2.0
_FAR = 5.0  # standard deviations within which basis functions tell inputs apart
_LINEAR, _SMOOTH = 1e-2, 0.1  # penalties
_FEW_ROWS = 0.1  # more penalty, times inputs by rows
_SOLVES, _MORE_SOLVES = 3, 6  # toward least absolute errors
_MANY = 2_000  # rows, of which single ones count little


def forecast_direct(
    histories: Histories,
    h: int,
    n_centers: int = _CENTERS,
    *,
    thorough: bool = False,
) -> Array:
    """Forecast every series with one network; shape (n, h), NaN where there is nothing to learn.

    Without centers the model is linear. A ``thorough`` fit learns from four times as many rows,
    if there are so many.
    """
    maker = RowMaker.of(histories, choose_lags(histories), h)
    train, now = maker.training_rows(_THOROUGH if thorough else _MOST_ROWS), maker.latest_rows()
    forecast = np.full((len(histories.values), h), np.nan)
    half_life = max(histories.usual_length / 2.0, 2.0 * histories.season)
    weight = 0.5 ** ((histories.values.shape[1] - 1 - train.at) / half_life)
    n_steps = int((np.isfinite(train.targets).sum(axis=0) >= _FEWEST_ROWS).sum())
    if not n_steps:
        return forecast
    if n_steps < h:  # forecasts are fed back
        forecast = forecast_direct(histories, n_steps, n_centers, thorough=thorough)
        longer = histories.extend(forecast)
        rest = forecast_direct(longer, h - n_steps, n_centers, thorough=thorough)
        return np.concatenate([forecast, rest], axis=1)
    shift, scale = _weighted_moments(train.X, weight)
    X, latest = (train.X - shift) / scale, (now.X - shift) / scale
    bases = _place_bases(X, latest, n_centers)
    for k in range(h):
        known = np.isfinite(train.targets[:, k])
        y, v = train.targets[known, k], weight[known]
        shift, scale = _weighted_moments(train.ahead[known, k], v)
        inputs = np.concatenate([X[known], (train.ahead[known, k] - shift) / scale], axis=1)
        future = np.concatenate([latest, (now.ahead[:, k] - shift) / scale], axis=1)
        inputs, future = (np.append(Z, np.ones((len(Z), 1)), axis=1) for Z in (inputs, future))
        n_inputs = inputs.shape[1] - 1
        linear = _LINEAR + _FEW_ROWS * n_inputs / float(v.sum())
        penalty = np.append(np.full(n_inputs, linear), 0.0)
        if bases is not None:
            rise = fit_least_absolute(inputs, y, v, penalty, steps=0)[: X.shape[1]]
            size = float(np.linalg.norm(rise))
            smooth, smooth_future = (b.contract(rise / (size or 1.0)).T for b in bases)
            unit = np.maximum(smooth[known].std(axis=0), 1e-9)
            inputs = np.concatenate([smooth[known] / unit, inputs], axis=1)
            future = np.concatenate([smooth_future / unit, future], axis=1)
            penalty = np.concatenate([np.full(unit.size, _SMOOTH), penalty])
        future = np.clip(future, inputs.min(axis=0), inputs.max(axis=0))  # not outside of the rows
        n_solves = _SOLVES if y.size > _MANY else _MORE_SOLVES
        b = fit_least_absolute(inputs, y, v, penalty, steps=n_solves)
        forecast[now.series, k] = now.base + now.unit * (future @ b)
    return forecast


def _place_bases(
    X: Array, latest: Array, n_centers: int
) -> tuple[GaussianBasis, GaussianBasis] | None:
    """Place basis functions, and evaluate them on rows to learn from and rows to forecast from."""
    n_centers = min(n_centers, len(X) // _ROWS_PER_CENTER)
    if n_centers < 2:
        return None
    near, near_latest = np.clip(X, -_FAR, _FAR), np.clip(latest, -_FAR, _FAR)
    some = np.linspace(0, len(X) - 1, min(len(X), _PLACED_ON)).astype(np.int64)
    centers = kmeans(near[some], n_centers)
    apart = squared_distances(centers, centers, expand=False)
    np.fill_diagonal(apart, np.inf)
    width = _WIDTH_FACTOR * float(np.sqrt(np.median(apart.min(axis=1))))
    if not width > 0.0:
        return None
    beta = np.full(len(centers), 0.5 / width**2)
    on_rows, on_latest = (
        GaussianBasis.evaluate(Z, centers, beta, order=1, order_zero=False)
        for Z in (near, near_latest)
    )
    return on_rows, on_latest


def _weighted_moments(X: Array, weight: Array) -> tuple[Array, Array]:
    """Return weighted means and standard deviations of columns."""
    total = weight.sum()
    mean = weight @ X / total
    scale = np.sqrt(weight @ (X - mean) ** 2 / total)
    return mean, np.where(scale > 1e-9, scale, 1.0)
