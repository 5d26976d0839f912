r"""Effects of inputs known in advance: weekday, promotion, holiday, price.

They are estimated first, by a penalized regression of the series' swings around its level on the
inputs' swings around theirs, and taken out; the network learns what is left:

.. math:: s_t = u_t\,(1 + e_t) \quad \text{or} \quad s_t = u_t + e_t, \qquad
    e_t = \gamma \cdot (x_t - \bar x)

The first form is for series that are never negative, whose effects grow with their level. The level
is a centered moving average, so slow changes of the series are not mistaken for an effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from rbfdiffnet.support.collective import SINGLE_MACHINE, Collective, flatten

__all__ = ["RIDGE", "Effects", "fit_effects", "is_binary", "never_negative", "swings"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

RIDGE = 0.3  # in rows with the input switched on
_SHORTEST_WINDOW = 57  # steps: longer than a month of days
_SMALLEST_LEVEL = 0.1  # of the mean
_CLOSED = 0.2  # share of the level below which an effect leaves nothing to learn from
_WILD = 9.0  # times the usual variance of swings, beyond which a series counts less


@dataclass(frozen=True)
class Effects:
    r"""Estimated effects.

    Attributes
    ----------
    gamma : ndarray of shape (q,)
        :math:`\gamma`, an effect for each input.
    center : ndarray of shape (q,)
        :math:`\bar x`, the inputs' means.
    relative : bool
        Whether effects are shares of the level.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.series.effects import Effects
    >>> half_off = Effects(np.array([-0.5]), np.zeros(1), relative=True)
    >>> half_off.restore(np.array([8.0, 8.0]), np.array([[0.0], [1.0]])).tolist()
    [8.0, 4.0]
    """

    gamma: Array
    center: Array
    relative: bool

    def parts(self, X: Array) -> Array:
        """Effect of every input, shape (..., q)."""
        return np.asarray((X - self.center) * self.gamma)

    def total(self, X: Array) -> Array:
        """Effect of all inputs together, shape (...); a relative one is not below -1."""
        effect: Array = self.parts(X).sum(axis=-1)
        return np.maximum(effect, -1.0) if self.relative else effect

    def remove(self, series: Array, X: Array) -> Array:
        """Return the series without effects; NaN where a relative effect leaves under a fifth."""
        effect = self.total(X)
        if not self.relative:
            return np.asarray(series - effect)
        factor = 1.0 + effect
        return np.where(factor < _CLOSED, np.nan, series / np.maximum(factor, _CLOSED))

    def restore(self, base: Array, X: Array) -> Array:
        """Put the effects back."""
        effect = self.total(X)
        return np.asarray(base * (1.0 + effect) if self.relative else base + effect)


def fit_effects(
    series: list[Array],
    inputs: list[Array],
    known: list[Mask],
    *,
    season_length: int,
    relative: bool = True,
    collective: Collective = SINGLE_MACHINE,
) -> Effects:
    """Estimate effects from one series, or together from several on comparable scales.

    Of relative effects, series that swing more than three times as much as usual say less.

    Parameters
    ----------
    series : list of ndarray of shape (T,)
        Values without gaps.
    inputs : list of ndarray of shape (T, q)
    known : list of ndarray of bool of shape (T,)
        Which values to learn from.
    season_length : int
    relative : bool, default=True
        Whether effects are shares of the level where no series is ever negative.
    collective : Collective, optional
        Of which these series are one.

    Returns
    -------
    Effects

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.series.effects import fit_effects
    >>> promotion = (np.arange(200) % 9 == 0).astype(float)[:, None]
    >>> sales = 50.0 * (1.0 + 0.4 * promotion[:, 0])
    >>> everything = np.ones(200, dtype=bool)
    >>> effects = fit_effects([sales], [promotion], [everything], season_length=7)
    >>> effects.relative, (effects.gamma * 50 / sales.mean()).round(1).tolist()
    (True, [0.4])
    """
    center, unit, positive = collective.all_reduce(lambda: _summary(series, inputs), _units)
    relative = relative and positive

    def rows() -> Iterator[tuple[Array, Array]]:
        for s, X, mask in zip(series, inputs, known, strict=True):
            if mask.any():
                Z, swing = swings(s, X / unit, season_length=season_length, relative=relative)
                yield Z[mask], swing[mask]

    usual = collective.all_reduce(lambda: [float(np.mean(swing**2)) for _, swing in rows()], _usual)

    def products() -> tuple[Array, Array]:
        gram, moment = np.zeros((center.size, center.size)), np.zeros(center.size)
        for Z, swing in rows():
            size = float(np.mean(swing**2))
            weight = _WILD * usual / size if relative and size > _WILD * usual else 1.0
            gram += weight * (Z.T @ Z)
            moment += weight * (Z.T @ swing)
        return gram, moment

    gamma = collective.all_reduce(products, partial(_solved, unit=unit))
    return Effects(gamma, center, relative)


@dataclass(frozen=True)
class _Summary:
    """What the scales of inputs follow from: of the rows of some series."""

    n: int
    mean: Array
    variance: Array
    binary: Mask
    positive: bool


def _summary(series: list[Array], inputs: list[Array]) -> _Summary | None:
    if not inputs:
        return None
    rows = np.concatenate(inputs)
    positive = all(never_negative(s) for s in series)
    return _Summary(len(rows), rows.mean(axis=0), rows.var(axis=0), is_binary(rows), positive)


def _units(parts: list[_Summary | None]) -> tuple[Array, Array, bool]:
    """Means and units of the inputs, and whether no series is ever negative."""
    some = [part for part in parts if part is not None]
    n = np.array([part.n for part in some], dtype=np.float64)[:, None] / sum(p.n for p in some)
    means = np.array([part.mean for part in some])
    center = (n * means).sum(axis=0)
    variances = np.array([part.variance for part in some]) + (means - center) ** 2
    spread = np.sqrt((n * variances).sum(axis=0))
    binary = np.all([part.binary for part in some], axis=0)
    unit = np.where(binary | ~(spread > 0.0), 1.0, spread)
    return center, unit, all(part.positive for part in some)


def _usual(parts: list[list[float]]) -> float:
    """Usual variance of swings."""
    sizes = [size for size in flatten(parts) if size > 0.0]
    return float(np.median(sizes)) if sizes else 0.0


def _solved(parts: list[tuple[Array, Array]], unit: Array) -> Array:
    """Effects by the products of all parts."""
    gram = RIDGE * np.eye(unit.size)
    for products, _ in parts:
        gram += products
    moment = np.sum([moment for _, moment in parts], axis=0)
    return np.asarray(np.linalg.solve(gram, moment) / unit)


def swings(
    series: Array, inputs: Array, *, season_length: int, relative: bool
) -> tuple[Array, Array]:
    """Return what effects are estimated from: swings of inputs and of a series around their levels.

    Parameters
    ----------
    series : ndarray of shape (T,)
    inputs : ndarray of shape (T, q)
    season_length : int
    relative : bool
        Whether swings of the series are shares of its level.

    Returns
    -------
    inputs : ndarray of shape (T, q)
    series : ndarray of shape (T,)

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.series.effects import swings
    >>> inputs, series = swings(np.array([8.0, 12.0] * 4), np.zeros((8, 1)), season_length=1,
    ...                         relative=True)
    >>> series.round(1).tolist()[2:4]
    [-0.2, 0.2]
    """
    window = _window(season_length, series.size)
    level = _moving_mean(series[:, None], window)[:, 0]
    swing = series - level
    if relative:
        swing = swing / np.maximum(level, max(_SMALLEST_LEVEL * series.mean(), 1e-300))
    centered = inputs - inputs.mean(axis=0)
    return centered - _moving_mean(centered, window), swing


def is_binary(inputs: Array) -> Mask:
    """Tell which inputs are switches: 0 or 1 on all days, shape (q,)."""
    return np.asarray(np.all((inputs == 0.0) | (inputs == 1.0), axis=0))


def never_negative(series: Array) -> bool:
    """Tell whether effects of a series may be shares of its level."""
    return bool(series.min(initial=0.0) >= 0.0)


def _window(season_length: int, n: int) -> int:
    """Length of the moving average: odd, longer than the cycles inputs are likely to have."""
    seasons = 14 if season_length >= 24 else 2  # days of two weeks, or two seasons
    wanted = max(_SHORTEST_WINDOW, seasons * season_length + 1)
    return min(wanted, max(n // 2, 1)) | 1


def _moving_mean(values: Array, window: int) -> Array:
    """Centered moving average of columns; at the ends over what there is."""
    n, half = len(values), window // 2
    total = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    low = np.maximum(np.arange(n) - half, 0)
    high = np.minimum(np.arange(n) + half + 1, n)
    return np.asarray((total[high] - total[low]) / (high - low)[:, None])
