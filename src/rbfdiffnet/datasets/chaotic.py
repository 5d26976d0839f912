"""Deterministic series that look random: chaotic maps, and chaotic flows sampled at even times."""

import math
from itertools import accumulate

import numpy as np

from rbfdiffnet.support.arrays import Array

__all__ = ["henon_map", "logistic_map", "lorenz", "mackey_glass"]

# The longest step of an integration, in units of the fastest rate of the equation.
_LORENZ_STEP = 0.02
_MACKEY_GLASS_STEP = 0.002


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
    _check(n, discard)
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


def lorenz(
    n: int = 1000,
    *,
    sigma: float = 10.0,
    rho: float = 28.0,
    beta: float = 8.0 / 3.0,
    step: float = 0.05,
    start: tuple[float, float, float] = (1.0, 1.0, 1.0),
    discard: int = 1000,
) -> Array:
    r"""Integrate Lorenz's equations of convection.

    .. math::

        \dot x = \sigma (y - x), \qquad \dot y = x (\rho - z) - y, \qquad \dot z = x y - \beta z

    where :math:`\sigma` is the Prandtl number, :math:`\rho` the Rayleigh number in units of its
    critical value and :math:`\beta` a ratio of lengths. At the default values the gap between two
    nearby orbits grows by a factor of about 2.5 in a unit of time.

    The classical Runge-Kutta method of order 4 takes many small steps from one point to the next;
    together they are off by less than 1e-8. Chaos multiplies such errors, rounding included, so
    they are taken in plain floats: the orbit is the same, digit by digit, on every computer.

    Parameters
    ----------
    n : int, default=1000
        Number of points.
    sigma, rho, beta : float, default=10.0, 28.0, 8/3
        The coefficients of the equations.
    step : float, default=0.05
        Time between two points, positive.
    start : tuple of three floats, default=(1.0, 1.0, 1.0)
        The point at time 0.
    discard : int, default=1000
        How many points to leave out first, until the orbit has reached the attractor; with 0 the
        first point is ``start``.

    Returns
    -------
    ndarray of shape (n, 3)
        Columns x, y and z. One series to forecast is column 0: ``lorenz(1000)[:, 0]``.

    Raises
    ------
    ValueError
        If the orbit runs off to infinity.

    References
    ----------
    E. N. Lorenz (1963), "Deterministic nonperiodic flow", Journal of the Atmospheric Sciences 20,
    130-141.

    Examples
    --------
    >>> from rbfdiffnet.datasets import lorenz
    >>> lorenz(3, discard=0).round(3).tolist()
    [[1.0, 1.0, 1.0], [1.288, 2.4, 0.964], [2.133, 4.471, 1.114]]
    >>> series = lorenz(500)[:, 0]
    """
    _check(n, discard, step=step)
    inner = math.ceil(step * max(1.0, abs(sigma), abs(rho), abs(beta)) / _LORENZ_STEP)
    h = step / inner

    def slope(x: float, y: float, z: float) -> tuple[float, float, float]:
        return sigma * (y - x), x * (rho - z) - y, x * y - beta * z

    x, y, z = start
    points = np.empty((discard + n, 3))
    for t in range(discard + n):
        points[t] = x, y, z
        for _ in range(inner):
            x1, y1, z1 = slope(x, y, z)
            x2, y2, z2 = slope(x + h / 2 * x1, y + h / 2 * y1, z + h / 2 * z1)
            x3, y3, z3 = slope(x + h / 2 * x2, y + h / 2 * y2, z + h / 2 * z2)
            x4, y4, z4 = slope(x + h * x3, y + h * y3, z + h * z3)
            x += h / 6 * (x1 + 2 * (x2 + x3) + x4)
            y += h / 6 * (y1 + 2 * (y2 + y3) + y4)
            z += h / 6 * (z1 + 2 * (z2 + z3) + z4)
    if not np.isfinite(points).all():
        raise ValueError(
            f"The orbit runs off to infinity with sigma={sigma}, rho={rho}, beta={beta} and "
            f"start={start}; start closer to (0, 0, 0), or use coefficients closer to the defaults."
        )
    return points[discard:]


def mackey_glass(
    n: int = 1000,
    *,
    tau: float = 17.0,
    beta: float = 0.2,
    gamma: float = 0.1,
    power: float = 10.0,
    step: float = 1.0,
    start: float = 1.2,
    discard: int = 1000,
) -> Array:
    r"""Integrate Mackey and Glass's equation of blood cells, whose past acts with a delay.

    .. math:: \dot s(t) = \beta \, \frac{s(t - \tau)}{1 + s(t - \tau)^p} - \gamma \, s(t)

    where :math:`\tau` is the delay, :math:`\beta` the rate of production, :math:`\gamma` the rate
    of decay and :math:`p` the power; before time 0 the series is constant. At the default values
    it is weakly chaotic; the longer the delay, the more it is.

    Over one delay the production is known beforehand, and the equation is linear in
    :math:`s(t)`: the classical Runge-Kutta method of order 4 becomes one linear recursion. Its
    small steps divide the delay, so that the kinks which the start leaves at every multiple of
    it fall between two of them; values within a step follow from cubic Hermite interpolation,
    of order 4 as well. With the default settings, steps a tenth as long change the series by about
    1e-9.

    Parameters
    ----------
    n : int, default=1000
        Number of values.
    tau : float, default=17.0
        The delay, positive.
    beta, gamma, power : float, default=0.2, 0.1, 10.0
        The coefficients of the equation, positive.
    step : float, default=1.0
        Time between two values, positive.
    start : float, default=1.2
        The constant value up to time 0, positive.
    discard : int, default=1000
        How many values to leave out first, until the series has forgotten the start; with 0 the
        first value is ``start``.

    Returns
    -------
    ndarray of shape (n,)

    References
    ----------
    M. C. Mackey and L. Glass (1977), "Oscillation and chaos in physiological control systems",
    Science 197, 287-289.

    Examples
    --------
    >>> from rbfdiffnet.datasets import mackey_glass
    >>> mackey_glass(4, discard=0).round(4).tolist()
    [1.2, 1.1176, 1.043, 0.9755]
    """
    _check(n, discard, tau=tau, beta=beta, gamma=gamma, power=power, step=step, start=start)
    times = step * np.arange(discard, discard + n)
    inner = math.ceil(tau * max(beta, gamma) / _MACKEY_GLASS_STEP)
    h = tau / inner
    u = gamma * h
    # One Runge-Kutta step of s' = g - gamma s, written out: it is linear in s and in g at the
    # step's beginning, middle and end.
    keep = 1 - u + u**2 / 2 - u**3 / 6 + u**4 / 24
    first = h / 6 * (1 - u + u**2 / 2 - u**3 / 4)
    middle = h / 6 * (4 - 2 * u + u**2 / 2)

    value, slope = np.full(inner + 1, start), np.zeros(inner + 1)
    values, slopes = [], []
    for _ in range(math.floor(times[-1] / tau) + 1):  # one delay after the other
        between = (value[:-1] + value[1:]) / 2 + h / 8 * (slope[:-1] - slope[1:])
        made = beta * value / (1 + value**power)
        made_between = beta * between / (1 + between**power)
        gain = first * made[:-1] + middle * made_between + h / 6 * made[1:]
        value = np.fromiter(
            accumulate(gain.tolist(), lambda s, g: keep * s + g, initial=float(value[-1])),
            dtype=np.float64,
        )
        slope = made - gamma * value
        values.append(value[:-1])
        slopes.append(slope[:-1])
    grid, change = np.concatenate([*values, value[-1:]]), h * np.concatenate([*slopes, slope[-1:]])
    i = np.minimum((times / h).astype(int), len(grid) - 2)
    return _hermite(grid[i], grid[i + 1], change[i], change[i + 1], times / h - i)


def _hermite(s0: Array, s1: Array, d0: Array, d1: Array, part: Array) -> Array:
    """Evaluate the cubic through two values with two slopes, at `part` of the way between them."""
    rise = s1 - s0
    return s0 + part * (d0 + part * (3 * rise - 2 * d0 - d1 + part * (d0 + d1 - 2 * rise)))


def _check(n: int, discard: int, **positive: float) -> None:
    if n < 1 or discard < 0:
        raise ValueError(f"n must be at least 1 and discard at least 0, got {n} and {discard}.")
    for name, value in positive.items():
        if not 0.0 < value < math.inf:
            raise ValueError(f"{name} must be positive and finite, got {value}.")
