"""Deterministic series that look random: every value follows from the ones before it."""

import math

import numpy as np
import numpy.typing as npt

__all__ = ["henon_map", "logistic_map"]

Array = npt.NDArray[np.float64]


def logistic_map(n: int = 1000, *, r: float = 4.0, s1: float = 0.1) -> Array:
    r"""Iterate the logistic map: paper, eq. (map).

    .. math:: s_{t+1} = r \, s_t \, (1 - s_t), \qquad t = 1, 2, \ldots

    where :math:`s_1` is the starting value and :math:`r` the growth rate. At :math:`r = 4` the map
    is chaotic on :math:`[0, 1]`: the gap between two nearly equal starting values doubles on
    average at every step.

    Parameters
    ----------
    n : int, default=1000
        Number of values, the starting value included.
    r : float, default=4.0
        Growth rate, in [0, 4], so that the series stays within [0, 1].
    s1 : float, default=0.1
        Starting value, in [0, 1].

    Returns
    -------
    ndarray of shape (n,)
        The series :math:`s_1, \ldots, s_n`.

    References
    ----------
    R. M. May (1976), "Simple mathematical models with very complicated dynamics",
    Nature 261, 459-467.

    Examples
    --------
    >>> from rbfdiffnet.datasets import logistic_map
    >>> logistic_map(4).round(4).tolist()
    [0.1, 0.36, 0.9216, 0.289]
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}.")
    if not 0.0 <= r <= 4.0:
        raise ValueError(f"r must lie in [0, 4], or the series leaves [0, 1]; got {r}.")
    if not 0.0 <= s1 <= 1.0:
        raise ValueError(f"s1 must lie in [0, 1], got {s1}.")
    series = np.empty(n)
    series[0] = s1
    for t in range(n - 1):
        series[t + 1] = r * series[t] * (1.0 - series[t])
    return series


def henon_map(
    n: int = 1000,
    *,
    a: float = 1.4,
    b: float = 0.3,
    start: tuple[float, float] = (0.0, 0.0),
    discard: int = 1000,
) -> Array:
    r"""Iterate the Hénon map.

    .. math:: s_{t+1} = 1 - a \, s_t^2 + b \, s_{t-1}

    where :math:`a` bends and :math:`b` contracts the plane of the points
    :math:`(s_t, b \, s_{t-1})`. At the default values the points lie on a strange attractor, and
    the gap between two nearby series grows by a factor of about 1.5 a step.

    Parameters
    ----------
    n : int, default=1000
        Number of values.
    a, b : float, default=1.4, 0.3
        The map's two coefficients.
    start : tuple of two floats, default=(0.0, 0.0)
        Two values in a row, the later one last; the series goes on from there.
    discard : int, default=1000
        How many values to leave out first, until the series has reached the attractor.

    Returns
    -------
    ndarray of shape (n,)
        The series, without ``start``.

    Raises
    ------
    ValueError
        If the series runs off to infinity, as it does from most starts far from zero.

    References
    ----------
    M. Hénon (1976), "A two-dimensional mapping with a strange attractor", Communications in
    Mathematical Physics 50, 69-77.

    Examples
    --------
    >>> from rbfdiffnet.datasets import henon_map
    >>> henon_map(4, discard=0).round(4).tolist()
    [1.0, -0.4, 1.076, -0.7409]
    """
    if n < 1 or discard < 0:
        raise ValueError(f"n must be at least 1 and discard at least 0, got {n} and {discard}.")
    before, now = start
    series = np.empty(discard + n)
    for t in range(discard + n):
        before, now = now, 1.0 - a * now * now + b * before
        series[t] = now
    if not math.isfinite(now):
        raise ValueError(
            f"The series runs off to infinity with a={a}, b={b} and start={start}; start closer to "
            f"(0, 0), or stay closer to a=1.4 and b=0.3."
        )
    return series[discard:]
