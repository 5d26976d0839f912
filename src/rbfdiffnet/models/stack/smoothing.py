r"""The damped trend: exponential smoothing of many short series at once.

Series are the rows of an array, of NumPy or of torch, and end in its last column; before a series
starts there is NaN, and then there are no gaps. They come without seasons. `forecast_damped_holt`
takes such an array and a horizon, and returns one row of forecasts for each series, which does not
depend on the other series. Every series has its own parameters:

.. math::

    e_t = y_t - \ell_{t-1} - \phi b_{t-1}, \qquad
    \ell_t = \ell_{t-1} + \phi b_{t-1} + \alpha e_t, \qquad
    b_t = \phi b_{t-1} + \alpha \beta e_t

with level :math:`\ell`, trend b and its damping :math:`\phi`. Without the states this is

.. math::

    e_t + p e_{t-1} + q e_{t-2} = w_t = d_t - \phi d_{t-1}, \quad d_t = y_t - y_{t-1}, \qquad
    p = \alpha \beta \phi + \alpha - 1 - \phi, \quad q = \phi (1 - \alpha)

from the third value on. To choose the states before the first value is to choose the first two
errors, which is left to least squares. What is left to search are :math:`\alpha, \beta, \phi`: all
of a grid, then steps of Gauss and Newton from the best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from rbfdiffnet.pretrained.inputs import namespace, take
from rbfdiffnet.support.parallel import even_chunks
from rbfdiffnet.support.stability import forecast_bounds

# Small values are closer to each other, where forecasts change most.
_ALPHA = np.linspace(0.01, 1.0, 7) ** 2
_BETA = np.linspace(0.0, 1.0, 4) ** 2
_PHI = np.linspace(0.8, 0.98, 4)

_MOST_VALUES = 200  # of a series, its latest
_SERIES = 256  # at a time: their arrays stay in the cache
_STEPS = 6
_DAMPING = 1.0  # of the first step, as a share of the squared slopes
_RIDGE = 1e-12  # on what may have no effect at all, in series whose largest change is 1


def forecast_damped_holt(Y: Any, h: int) -> Any:
    r"""Forecast with exponential smoothing of the level and of a damped trend.

    .. math:: \hat y_{T+k} = \ell_T + (\phi + \phi^2 + \cdots + \phi^k)\, b_T

    with level and trend after the last value. Of :math:`\alpha` from 0.0001 to 1, :math:`\beta`
    (the share of :math:`\alpha` that goes into the trend) from 0 to 1, :math:`\phi` from 0.8 to
    0.98 and the states before the first value, those with the least squared one-step error over
    the latest 200 values are taken. A series with no more values than these five numbers repeats
    its last one.
    """
    Y = Y[:, -_MOST_VALUES:]
    if not isinstance(Y, np.ndarray):
        return smooth(Y).forecast(h)
    lengths = (~np.isnan(Y)).sum(axis=1)
    order, made = np.argsort(lengths), np.empty((len(Y), h))
    for chunk in even_chunks(len(Y), _SERIES):
        rows = order[chunk]
        made[rows] = smooth(Y[rows, -lengths[rows[-1]] :]).forecast(h)
    return made


def forecast_on_logarithms(method: Callable[[Any, int], Any], Y: Any, h: int) -> Any:
    r"""Apply a method to the logarithms of the series that are positive throughout.

    .. math:: \hat y_{T+k} = \exp \hat z_{T+k}, \qquad z_t = \log y_t

    A median of the logarithm becomes a median of the series: there is no correction for bias.
    So that no trend explodes, such a forecast stays between the bounds of
    `support.stability`. Series with zeros or negative values are forecast as they are.
    ``method(Y, h)`` gives forecasts of shape (n, h), as `forecast_damped_holt` does.
    """
    xp, missing = namespace(Y), Y != Y
    least = xp.amin(xp.where(missing, np.inf, Y), 1)[:, None]
    largest = xp.amax(xp.where(missing, -np.inf, Y), 1)[:, None]
    positive = least > 0.0
    forecast = method(xp.where(positive, xp.log(xp.where(positive, Y, 1.0)), Y), h)
    lower, upper = (xp.where(positive, x, 1.0) for x in forecast_bounds(least, largest))
    limited = xp.exp(xp.minimum(forecast, xp.log(upper)))
    return xp.where(positive, xp.clip(limited, lower, upper), forecast)


@dataclass(frozen=True)
class Smoothed:
    """Parameters and last states of every series, all of shape (n,)."""

    alpha: Any
    beta: Any
    phi: Any
    level: Any  # after the last value
    trend: Any

    def forecast(self, h: int) -> Any:
        r"""Return :math:`\ell + (\phi + \cdots + \phi^k)\, b` for k = 1, ..., h."""
        level, trend, phi = (x[:, None] for x in (self.level, self.trend, self.phi))
        return level + trend * phi[:, [0] * h].cumprod(1).cumsum(1)


def smooth(Y: Any) -> Smoothed:
    r"""Smooth each series with the parameters of least one-step error.

    .. math:: \min_{\alpha, \beta, \phi, \ell_0, b_0} \sum_t e_t^2

    A narrow minimum between the values of the grid may be missed. A series of five values or fewer
    has its last value for a level, and no trend.
    """
    xp, T, lengths = namespace(Y), Y.shape[1], (Y == Y).sum(1)
    tables = _tables(xp, getattr(Y, "device", None))
    d = Y - xp.concatenate([Y[:, :1], Y[:, :-1]], axis=1)
    d = xp.where(d == d, d, 0.0)
    unit = xp.clip(xp.amax(abs(d), 1), 1e-300, None)
    d = d / unit[:, None]
    found = tables.grid[_grid_losses(d, lengths, tables).argmin(1)].T
    # Time is the axis before the last from here on; there are two zeros before each series.
    first = 1.0 * (tables.count[:T] == T - lengths[:, None])
    x = xp.stack([d.T, first.T, 0.0 * d.T])
    x = xp.concatenate([0.0 * x[:, :1], 0.0 * x[:, :1], x], axis=1)
    x = x.copy() if xp is np else x.contiguous()  # in memory, too
    z, damping = _fit(x, found, tables), 0.0 * unit + _DAMPING
    for _ in range(_STEPS):
        moved = _move(z, found, damping, tables)
        tried = _fit(x, moved, tables)
        falls = (tried[2] ** 2).sum(0) < (z[2] ** 2).sum(0)
        found, z = xp.where(falls, moved, found), xp.where(falls, tried, z)
        damping = xp.where(falls, 0.3 * damping, 10.0 * damping)
    (a, b, f), before, last = found, z[2, -2], z[2, -1]
    level, trend = (a - 1.0) * last, d[:, -1] - last + (1.0 - a) * before + a * b * last
    level, trend = (xp.where(lengths > 5, state * unit, 0.0) for state in (level, trend))
    return Smoothed(a, b, f, Y[:, -1] + level, trend)


def _weights(a: Any, b: Any, f: Any) -> tuple[Any, Any]:
    """Return p and q."""
    return a * b * f + a - 1.0 - f, f * (1.0 - a)


def _recur(x: Any, p: Any, q: Any) -> None:
    r"""Replace x, (..., T, n), by the z with :math:`z_t + p z_{t-1} + q z_{t-2} = x_t`.

    Times the same with -p, the operator on z has even lags only: so they double again and again.
    """
    lag, T = 1, x.shape[-2]
    while lag < T:
        near, far = p * x[..., :-lag, :], q * x[..., : max(T - 2 * lag, 0), :]
        x[..., lag:, :] -= near
        x[..., 2 * lag :, :] += far
        lag, p, q = 2 * lag, 2.0 * q - p * p, q * q


def _products(rows: list[Any], columns: list[Any]) -> Any:
    """Return the sums over time of all products of two arrays (T, n): (n, rows, columns)."""
    xp = namespace(rows[0])
    sums = [xp.einsum("tn,tn->n", x, y) for x in rows for y in columns]
    return xp.stack(sums, 1).reshape(-1, len(rows), len(columns))


def _fit(x: Any, parameters: Any, tables: Tables) -> Any:
    """Return the responses to x and, in the place of its zeros, the errors with the best states."""
    xp, z = namespace(x), 1.0 * x
    _recur(z[:2], *_weights(*parameters))
    response, first, second = z[0, 2:] - parameters[2] * z[0, 1:-1], z[1, 2:], z[1, 1:-1]
    s = _products([first, second, response], [first, second])
    free = xp.linalg.solve(s[:, :2] + _RIDGE * tables.eye[:2, :2], s[:, 2, :, None])[..., 0]
    z[2, 2:] = response - free[:, 0] * first - free[:, 1] * second
    return z


def _move(z: Any, parameters: Any, damping: Any, tables: Tables) -> Any:
    """Return parameters (3, n) after a step of Gauss and Newton, damped and inside the bounds."""
    xp, (a, b, f), eye = namespace(z), parameters, tables.eye
    y, zero, free = 1.0 * z[2], 0.0 * a, [z[1, 2:], z[1, 1:-1]]
    _recur(y, *_weights(a, b, f))
    slopes = [y[1:-1], y[:-2], z[0, 1:-1]]  # by p, by q and by the phi of w, with the other sign
    s = _products(slopes, [*slopes, *free, z[2, 2:]])
    cross, inner = s[:, :, 3:5], _products(free, free) + _RIDGE * eye[:2, :2]
    square = s[:, :, :3] - cross @ xp.linalg.solve(inner, cross.swapaxes(1, 2))
    chain = [1.0 + b * f, -f, zero, a * f, zero, zero, a * b - 1.0, 1.0 - a, zero + 1.0]
    chain = xp.stack(chain, 1).reshape(-1, 3, 3)
    square, pull = chain @ square @ chain.swapaxes(1, 2), (chain @ s[:, :, 5:])[..., 0]
    now, low, high = parameters.T, tables.grid[0], tables.grid[-1]
    inside = ~((now <= low) & (pull < 0.0) | (now >= high) & (pull > 0.0))
    both = inside[:, :, None] & inside[:, None]
    square = xp.where(both, square * (1.0 + damping[:, None, None] * eye), eye) + _RIDGE * eye
    step = xp.linalg.solve(square, xp.where(inside, pull, 0.0)[..., None])[..., 0]
    return xp.clip(now + step, low, high).T


def _grid_losses(d: Any, lengths: Any, tables: Tables) -> Any:
    r"""Return the least squared errors with all parameters of the grid, (n, G).

    .. math:: \min_{e_1, e_2} \sum_t e_t^2 = w' S^{-1} w = w' (R - R_b R_{bb}^{-1} R_b') w

    with covariances S of the moving average w of unit noise e, R of the autoregression
    :math:`x_t + p x_{t-1} + q x_{t-2} = e_t`, and b the two times before and the two after w. All
    this is sums over lags: of products of d, of d from its start on and of d from its end back.
    """
    xp, (n, T) = namespace(d), d.shape
    size = 1 << (2 * T - 1).bit_length()
    spectrum = xp.fft.rfft(d, size)
    products = xp.fft.irfft(spectrum.real**2 + spectrum.imag**2, size)[:, :T]
    at = tables.count[:T] + (T + 1 - lengths)[:, None]
    onward = take(d, xp.where(at < T, at, 0))  # the first of d is always 0
    before = (onward @ tables.before[:T]).reshape(n, 2, -1)
    after = (xp.flip(d, (1,)) @ tables.after[:T]).reshape(n, 2, -1)
    ends, inverse = xp.stack([before + after, before - after], 1), tables.inverse[lengths]
    x, y, (xx, xy, yy) = ends[:, :, 0], ends[:, :, 1], inverse.swapaxes(0, 2).swapaxes(1, 2)
    known = x * (xx * x + xy * y) + yy * y * y
    return products @ tables.whole[:T] - known[:, 0] - known[:, 1]


@dataclass(frozen=True)
class Tables:
    """Constants, where the series are, of all parameters of the grid and lags up to T."""

    grid: Any  # (G, 3), the lowest first and the highest last
    eye: Any  # (3, 3)
    count: Any  # 0, 1, ..., T
    whole: Any  # (T, G): R
    before: Any  # (T, 2 G): R at the time before w, and its change to the time before that
    after: Any  # (T, 2 G): the same after w
    inverse: Any  # (T + 1, 2, 3, G): of R at the sum and the difference of both ends, by length


@cache
def _tables(xp: Any, device: Any) -> Tables:
    """Make the tables of covariances r, their differences g and the differences c of these.

    With small alpha r is large and g is not, so g is not found by a subtraction.
    """
    T, grid = _MOST_VALUES, np.stack(np.meshgrid(_ALPHA, _BETA, _PHI, indexing="ij"))
    a, b, f = grid = grid.reshape(3, -1)
    p, q = _weights(a, b, f)
    r, g = both = np.empty((2, T + 3, a.size))
    near = a * (1.0 + b * f - f)  # 1 + p + q
    r[0] = (1.0 + q) / ((1.0 - f + a * f) * (1.0 + q - p) * near)
    g[0] = near * r[0] / (1.0 + q)
    r[1], g[1] = r[0] - g[0], (q - p) * g[0]
    for k in range(2, T + 3):
        both[:, k] = -p * both[:, k - 1] - q * both[:, k - 2]
    c, fade, N = g[:-1] - g[1:], 1.0 - f, np.clip(np.arange(T + 1), 3, None)
    whole = fade**2 * r[:T] - f * np.concatenate([-2.0 * g[:1], c[: T - 1]])
    whole[1:] *= 2.0
    before = np.concatenate([(fade * r + f * g)[:T], fade * g[:T] + f * c[:T]], axis=1)
    after = np.concatenate([(fade * r - g)[:T], fade * g[:T] - c[:T]], axis=1)
    sign = np.array([[1.0], [-1.0]])
    xx = np.stack([r[0] + r[N - 1], np.cumsum(g, axis=0)[N - 2]], axis=1)
    xy, yy = g[0] + sign * g[N - 1][:, None], 2.0 * g[0] + sign * c[N - 1][:, None]
    inverse = np.stack([yy, -2.0 * xy, xx], axis=2) / (2.0 * (xx * yy - xy * xy))[:, :, None]
    tables = (grid.T.copy(), np.eye(3), np.arange(T + 1), whole, before, after, inverse)
    return Tables(*tables if xp is np else (xp.as_tensor(x, device=device) for x in tables))
