r"""Exponential smoothing of many short series at once, each with parameters of its own.

.. math::

    e_t = y_t - \ell_{t-1} - \phi b_{t-1}, \qquad
    \ell_t = \ell_{t-1} + \phi b_{t-1} + \alpha e_t, \qquad
    b_t = \phi b_{t-1} + \alpha \beta e_t

with level :math:`\ell`, trend b and its damping :math:`\phi`; :math:`\phi = 0` is simple
smoothing. The errors are linear in the states before the first value, so these are eliminated by
least squares, and what is left to search are :math:`\alpha, \beta, \phi`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

__all__ = ["Smoothed", "smooth"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_CELLS = 1 << 15  # series times candidates at a time: the states stay in the cache
_HALVINGS = 6  # of the distance between a candidate and its neighbors
# Series have a unit spread when these are added to or compared with their squared errors.
_RIDGE = 1e-6  # on the first trend, which without damping (phi = 0) has no effect at all
_TIE = 1e-12


@dataclass(frozen=True)
class Smoothed:
    r"""Parameters, first and last states of every series.

    Attributes
    ----------
    alpha, beta, phi : ndarray of shape (n,)
    first_level, first_trend : ndarray of shape (n,)
        The states before the first value, :math:`\ell_0` and :math:`b_0`.
    level, trend : ndarray of shape (n,)
        The states after the last value.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models.stack.smoothing import smooth
    >>> fit = smooth(np.array([[1.0, 1.0, 4.0, 4.0, 4.0]]), np.array([5]), [0.1, 0.5, 1.0])
    >>> fit.alpha.tolist(), fit.level.tolist(), fit.forecast(2).tolist()
    ([1.0], [4.0], [[4.0, 4.0]])
    """

    alpha: Array
    beta: Array
    phi: Array
    first_level: Array
    first_trend: Array
    level: Array
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

    All combinations of the grids' values are tried, then ever closer ones between the best and
    its neighbors; a narrow minimum elsewhere may be missed. Of equally good ones the first counts.

    Parameters
    ----------
    y : ndarray of shape (n, T)
        Series that begin in the first column; what follows a series' end is not read.
    lengths : ndarray of int of shape (n,)
        Numbers of values, from 1 to T.
    alpha, beta, phi : array-like
        Increasing values to try.

    Returns
    -------
    Smoothed

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models.stack.smoothing import smooth
    >>> rng = np.random.default_rng(0)
    >>> noise, walk = rng.normal(size=(2, 200))
    >>> fit = smooth(np.stack([noise, walk.cumsum()]), np.array([200, 200]), [0.0, 0.5, 1.0])
    >>> bool(fit.alpha[0] < 0.1), bool(fit.alpha[1] > 0.9)
    (True, True)
    """
    order = np.argsort(-lengths, kind="stable")
    inside = np.arange(y.shape[1]) < lengths[order, None]
    going = inside.sum(axis=0)  # at every step the first so many series have not ended
    origin = y[order, :1]
    z = np.where(inside, y[order] - origin, 0.0)
    unit = np.abs(z).max(axis=1, initial=0.0, keepdims=True)
    unit[unit == 0.0] = 1.0
    z /= unit
    grids = [np.asarray(values, dtype=np.float64) for values in (alpha, beta, phi)]
    parameters = _search(z, going, grids)
    _, *first = _profile(z, going, *parameters[:, :, None])
    level, trend = (state[:, 0].copy() for state in first)
    a, b, f = parameters
    for t, k in enumerate(going):
        _step(z[:k, t], level[:k], trend[:k], a[:k], (a * b)[:k], f[:k])
    states = np.stack([first[0][:, 0], first[1][:, 0], level, trend]) * unit[:, 0]
    states[::2] += origin[:, 0]  # the levels
    return Smoothed(*np.concatenate([parameters, states])[:, np.argsort(order)])


def _step(y: Array | float, level: Array, trend: Array, a: Array, ab: Array, f: Array) -> Array:
    """Take the states past one more value, in place, and return the error made there."""
    trend *= f
    level += trend
    error: Array = y - level
    level += a * error
    trend += ab * error
    return error


def _search(z: Array, going: Ints, grids: list[Array]) -> Array:
    """Return the best of all combinations of parameters, refined: an array of shape (3, n)."""
    sizes = [len(values) for values in grids]
    # Positions in the grids, fractions of a step being between two values: (3, n or 1, G).
    places = np.indices(sizes).reshape(3, 1, -1).astype(np.float64)
    best = _best(z, going, grids, places)
    moves = [(0, -1, 1) if size > 1 else (0,) for size in sizes]
    around = np.array(list(product(*moves))).T[:, None]
    top = np.array(sizes)[:, None, None] - 1.0
    for halving in range(1, _HALVINGS + 1):
        places = best[:, :, None] + 0.5**halving * around
        best = _best(z, going, grids, np.clip(places, 0.0, top))
    return _values(grids, best)


def _values(grids: list[Array], places: Array) -> Array:
    """Parameters at positions in the grids."""
    pairs = zip(places, grids, strict=True)
    return np.stack([np.interp(x, np.arange(len(values)), values) for x, values in pairs])


def _best(z: Array, going: Ints, grids: list[Array], places: Array) -> Array:
    """Return each series' best position of those given, an array of shape (3, n)."""
    n, candidates = len(z), places.shape[2]
    parameters = _values(grids, places)
    rows = max(1, _CELLS // candidates)
    best = np.empty((3, n))
    for start in range(0, n, rows):
        part = slice(start, start + rows)
        own = part if places.shape[1] > 1 else slice(None)
        still = np.clip(going - start, 0, len(z[part]))
        loss, _, _ = _profile(z[part], still[still > 0], *parameters[:, own])
        first = np.argmax(loss <= loss.min(axis=1, keepdims=True) + _TIE, axis=1)
        best[:, part] = np.take_along_axis(places[:, own], first[None, :, None], axis=2)[..., 0]
    return best


def _profile(z: Array, going: Ints, a: Array, b: Array, f: Array) -> tuple[Array, Array, Array]:
    r"""Return the least loss over the first states, and these.

    The errors are :math:`e_0 + \ell_0 e_1 + b_0 e_2`, with :math:`e_0` those of the series from
    states of zero, :math:`e_1, e_2` those of a series of zeros from one unit of level or of trend.
    The latter are the same for all series that share their parameters, of shape (1, G).
    """
    shape = np.broadcast_shapes((len(z), 1), a.shape)
    zero, one = np.zeros_like(a), np.ones_like(a)
    tracks = [(np.zeros(shape), np.zeros(shape)), (one, zero), (zero.copy(), one.copy())]
    ab = a * b
    s00, s01, s02, s11, s12, s22 = np.zeros((6, *shape))
    for t, k in enumerate(going):
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
