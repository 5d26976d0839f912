r"""The damped trend: exponential smoothing of many short series at once.

Series are the rows of an array and end in its last column; before a series starts there is NaN, and
then there are no gaps. They come without seasons. `forecast_damped_holt` takes such an array and a
horizon, and returns one row of forecasts for each series, which does not depend on the other
series. Every series has its own parameters:

.. math::

    e_t = y_t - \ell_{t-1} - \phi b_{t-1}, \qquad
    \ell_t = \ell_{t-1} + \phi b_{t-1} + \alpha e_t, \qquad
    b_t = \phi b_{t-1} + \alpha \beta e_t

with level :math:`\ell`, trend b and its damping :math:`\phi`; :math:`\phi = 0` is simple
smoothing. The errors are linear in the states before the first value, so these are eliminated by
least squares, and what is left to search are :math:`\alpha, \beta, \phi`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rbfdiffnet.support.arrays import Array, Ints
from rbfdiffnet.support.parallel import even_chunks
from rbfdiffnet.support.stability import forecast_bounds

# Small values are closer to each other, where forecasts change most.
_ALPHA = np.linspace(0.01, 1.0, 7) ** 2
_BETA = np.linspace(0.0, 1.0, 4) ** 2
_PHI = np.linspace(0.8, 0.98, 4)

_MOST_VALUES = 200  # of a series, its latest
_CELLS = 1 << 15  # series times candidates at a time: the states stay in the cache
_MOVES = (0.5, 0.5, 0.25, 0.25, 0.125, 0.125)  # steps of the grids, of one parameter at a time
# Series have a unit spread when these are added to or compared with their squared errors.
_RIDGE = 1e-6  # on the first trend, which without damping (phi = 0) has no effect at all
_TIE = 1e-12


def forecast_damped_holt(Y: Array, h: int) -> Array:
    r"""Forecast with exponential smoothing of the level and of a damped trend.

    .. math:: \hat y_{T+k} = \ell_T + (\phi + \phi^2 + \cdots + \phi^k)\, b_T

    with level and trend after the last value. Of :math:`\alpha` from 0.0001 to 1, :math:`\beta`
    (the share of :math:`\alpha` that goes into the trend) from 0 to 1, :math:`\phi` from 0.8 to
    0.98 and the states before the first value, those with the least squared one-step error over
    the latest 200 values are taken. A series with no more values than these five numbers repeats
    its last one.
    """
    y, lengths, last = _align_left(Y[:, -_MOST_VALUES:])
    smoothed = smooth(y, lengths, _ALPHA, _BETA, _PHI)
    return last + np.where(lengths[:, None] <= 5, 0.0, smoothed.forecast(h))


def forecast_on_logarithms(method: Callable[[Array, int], Array], Y: Array, h: int) -> Array:
    r"""Apply a method to the logarithms of the series that are positive throughout.

    .. math:: \hat y_{T+k} = \exp \hat z_{T+k}, \qquad z_t = \log y_t

    A median of the logarithm becomes a median of the series: there is no correction for bias.
    So that no trend explodes, such a forecast stays between the bounds of
    `support.stability`. Series with zeros or negative values are forecast as they are.
    ``method(Y, h)`` gives forecasts of shape (n, h), as `forecast_damped_holt` does.
    """
    least, largest = np.nanmin(Y, axis=1), np.nanmax(Y, axis=1)
    values, positive = Y.copy(), least > 0.0
    values[positive] = np.log(values[positive])
    forecast = np.array(method(values, h), dtype=np.float64)
    lower, upper = (bound[positive, None] for bound in forecast_bounds(least, largest))
    limited = np.minimum(forecast[positive], np.log(upper))
    forecast[positive] = np.clip(np.exp(limited), lower, upper)
    return forecast


def _align_left(Y: Array) -> tuple[Array, Ints, Array]:
    """Return series less their last value that begin in the first column; their lengths; the last.

    After the end of a series there is 0.
    """
    starts, columns, last = np.argmin(np.isnan(Y), axis=1), Y.shape[1], Y[:, -1:]
    places = np.arange(columns) + starts[:, None]
    moved = np.take_along_axis(Y - last, np.minimum(places, columns - 1), axis=1)
    return moved, columns - starts, last


@dataclass(frozen=True)
class Smoothed:
    """Parameters, first and last states of every series, all of shape (n,)."""

    alpha: Array
    beta: Array
    phi: Array
    first_level: Array  # before the first value
    first_trend: Array
    level: Array  # after the last value
    trend: Array

    def forecast(self, h: int) -> Array:
        r"""Return :math:`\ell + (\phi + \cdots + \phi^k)\, b` for k = 1, ..., h."""
        damping = np.cumsum(self.phi[:, None] ** np.arange(1, h + 1), axis=1)
        forecast: Array = self.level[:, None] + damping * self.trend[:, None]
        return forecast


def smooth(
    y: Array,
    lengths: Ints,
    alpha: npt.ArrayLike,
    beta: npt.ArrayLike = (0.0,),
    phi: npt.ArrayLike = (0.0,),
) -> Smoothed:
    r"""Smooth each series with the parameters of least one-step error.

    .. math:: \min_{\alpha, \beta, \phi, \ell_0, b_0} \sum_t e_t^2

    All combinations of the grids' values are tried, then ever smaller moves of one parameter at a
    time; a narrow minimum elsewhere may be missed. Of equally good ones the first counts.
    Series begin in the first column of y, (n, T), and have from 1 to T values, by ``lengths``; what
    follows the end of a series is not read. The grids alpha, beta, phi are increasing.
    """
    order = np.argsort(-lengths, kind="stable")
    inside = np.arange(y.shape[1]) < lengths[order, None]
    active = inside.sum(axis=0)  # at every step: how many series, the first ones, have not ended
    origin = y[order, :1]
    z = np.where(inside, y[order] - origin, 0.0)
    unit = np.abs(z).max(axis=1, initial=0.0, keepdims=True)
    unit[unit == 0.0] = 1.0
    z /= unit
    grids = [np.asarray(values, dtype=np.float64) for values in (alpha, beta, phi)]
    parameters = _search(z, active, grids)
    _, *first = _profile_loss(z, active, *parameters[:, :, None])
    level, trend = (state[:, 0].copy() for state in first)
    a, b, f = parameters
    for t, k in enumerate(active):
        _step(z[:k, t], level[:k], trend[:k], a[:k], (a * b)[:k], f[:k])
    states = np.stack([first[0][:, 0], first[1][:, 0], level, trend]) * unit[:, 0]
    states[::2] += origin[:, 0]  # the levels
    return Smoothed(*np.concatenate([parameters, states])[:, np.argsort(order)])


def _step(y: Array | float, level: Array, trend: Array, a: Array, ab: Array, f: Array) -> Array:
    """Update the states by one more value, in place, and return the error made there."""
    trend *= f
    level += trend
    error: Array = y - level
    level += a * error
    trend += ab * error
    return error


def _search(z: Array, active: Ints, grids: list[Array]) -> Array:
    """Return the best of all combinations of parameters, refined: an array of shape (3, n)."""
    sizes = [len(values) for values in grids]
    # Positions in the grids, fractions of a step being between two values: (3, n or 1, G).
    places = np.indices(sizes).reshape(3, 1, -1).astype(np.float64)
    best = _find_best(z, active, grids, places)
    eye = np.eye(3)[:, np.array(sizes) > 1]
    around = np.concatenate([np.zeros((3, 1)), -eye, eye], axis=1)[:, None]
    top = np.array(sizes)[:, None, None] - 1.0
    for move in _MOVES:
        places = best[:, :, None] + move * around
        best = _find_best(z, active, grids, np.clip(places, 0.0, top))
    return _look_up(grids, best)


def _look_up(grids: list[Array], places: Array) -> Array:
    """Return the parameters at positions in the grids."""
    pairs = zip(places, grids, strict=True)
    return np.stack([np.interp(x, np.arange(len(values)), values) for x, values in pairs])


def _find_best(z: Array, active: Ints, grids: list[Array], places: Array) -> Array:
    """Return each series' best position of those given, an array of shape (3, n)."""
    n, candidates = len(z), places.shape[2]
    parameters = _look_up(grids, places)
    best = np.empty((3, n))
    for chunk in even_chunks(n, max(1, _CELLS // candidates)):
        own = chunk if places.shape[1] > 1 else slice(None)
        still = np.clip(active - chunk.start, 0, len(z[chunk]))
        loss, _, _ = _profile_loss(z[chunk], still[still > 0], *parameters[:, own])
        first = np.argmax(loss <= loss.min(axis=1, keepdims=True) + _TIE, axis=1)
        best[:, chunk] = np.take_along_axis(places[:, own], first[None, :, None], axis=2)[..., 0]
    return best


def _profile_loss(
    z: Array, active: Ints, a: Array, b: Array, f: Array
) -> tuple[Array, Array, Array]:
    r"""Return the least loss over the first states, and these states.

    The errors are :math:`e_0 + \ell_0 e_1 + b_0 e_2`, with :math:`e_0` those of the series from
    states of zero, :math:`e_1, e_2` those of a series of zeros from one unit of level or of trend.
    The latter are the same for all series that share their parameters, of shape (1, G).
    """
    shape = np.broadcast_shapes((len(z), 1), a.shape)
    zero, one = np.zeros_like(a), np.ones_like(a)
    tracks = [(np.zeros(shape), np.zeros(shape)), (one, zero), (zero.copy(), one.copy())]
    ab = a * b
    s00, s01, s02, s11, s12, s22 = np.zeros((6, *shape))
    for t, k in enumerate(active):
        values: tuple[Array | float, ...] = (z[:k, t, None], 0.0, 0.0)
        e0, e1, e2 = (
            _step(y, level[:k], trend[:k], a[:k], ab[:k], f[:k])
            for y, (level, trend) in zip(values, tracks, strict=True)
        )
        s00[:k] += e0 * e0
        s01[:k] += e0 * e1
        s02[:k] += e0 * e2
        s11[:k] += e1 * e1
        s12[:k] += e1 * e2
        s22[:k] += e2 * e2
    s22 += _RIDGE
    determinant = s11 * s22 - s12 * s12
    level = (s12 * s02 - s22 * s01) / determinant
    trend = (s12 * s01 - s11 * s02) / determinant
    return s00 + level * s01 + trend * s02, level, trend
