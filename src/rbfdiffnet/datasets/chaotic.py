"""Deterministic series that look random: every value follows from the ones before it."""

import numpy as np
import numpy.typing as npt

__all__ = ["logistic_map"]


def logistic_map(n: int = 1000, *, r: float = 4.0, s1: float = 0.1) -> npt.NDArray[np.float64]:
    r"""Iterate the logistic map.

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
