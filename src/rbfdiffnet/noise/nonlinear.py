r"""How much better a nonlinear map continues a series than a linear one, by a quick look.

Both see windows of four values that lie d steps apart, and predict the value d steps later:

.. math:: z_{t+d} = b + \lambda \cdot x_t \qquad \text{and} \qquad
    z_{t+d} = b + \lambda \cdot x_t + \sum_j w_j\, e^{-\beta \lVert x_t - x_j \rVert^2}

with d an eighth and a sixteenth of a period. They learn from the first part of the series, the
penalty on w by leave-one-out errors, and are compared on the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rbfdiffnet.network.basis import squared_distances
from rbfdiffnet.noise.cleaning import quarter_period
from rbfdiffnet.support.arrays import Array

_FEWEST_VALUES = 60
_PERIODS = 4  # that the series must have gone through
_DELAYS = (0.25, 0.5)  # of a quarter of a period
_LAGS = 4
_LEARNED = 0.7
_MOST_ROWS = 128
_FEWEST_ROWS = 24
_PENALTIES = 10.0 ** np.arange(-6.0, 1.0)


def nonlinear_error(s: Array, seasons: Sequence[int] = ()) -> float:
    """Return the error of a nonlinear map of a series (T,) without gaps, over that of a linear one.

    It is 1 where the series is too short to tell, or too slow: it must have gone through some
    periods. Both maps also see the values one of the ``seasons`` before the one they predict.
    """
    scale = float(s.std()) if s.size >= _FEWEST_VALUES else 0.0
    if not scale > 0.0:
        return 1.0
    z = (s - s.mean()) / scale
    quarter = quarter_period(z)
    if 4 * _PERIODS * quarter > z.size:
        return 1.0
    delays = {max(1, round(quarter * share)) for share in _DELAYS}
    return min(_compare(z, delay, seasons) for delay in sorted(delays))


def _compare(z: Array, delay: int, seasons: Sequence[int]) -> float:
    back = np.arange(_LAGS, -1, -1) * delay  # from the value that is predicted
    longer = [season for season in seasons if delay < season < z.size // 4]
    back = np.concatenate([np.array(longer, dtype=np.int64), back])
    at = np.arange(back.max(), z.size)
    rows = z[at[:, None] - back]
    is_early = at < _LEARNED * z.size
    early, late = _thin(rows[is_early]), _thin(rows[~is_early])
    if len(early) < _FEWEST_ROWS:
        return 1.0
    X, y = early[:, :-1], early[:, -1]
    flat = np.concatenate([X, np.ones((len(X), 1))], axis=1)
    linear = np.linalg.lstsq(flat, y, rcond=1e-6)[0]
    rest, left = y - flat @ linear, late[:, -1] - late[:, :-1] @ linear[:-1] - linear[-1]
    squares = squared_distances(X, X)
    beta = 0.5 / max(float(np.median(squares)), 1e-300)
    values, vectors = np.linalg.eigh(np.exp(-beta * squares))
    shrunk = 1.0 / (np.maximum(values, 0.0)[:, None] + _PENALTIES)
    w = vectors @ (shrunk * (vectors.T @ rest)[:, None])
    left_out = np.abs(w / (vectors**2 @ shrunk)).mean(axis=0)
    w = w[:, left_out.argmin()]
    nonlinear = left - np.exp(-beta * squared_distances(late[:, :-1], X)) @ w
    return float(np.abs(nonlinear).mean() / max(float(np.abs(left).mean()), 1e-9))


def _thin(rows: Array) -> Array:
    """Return at most as many rows as needed, evenly spread."""
    if len(rows) <= _MOST_ROWS:
        return rows
    return rows[np.linspace(0, len(rows) - 1, _MOST_ROWS).round().astype(np.int64)]
