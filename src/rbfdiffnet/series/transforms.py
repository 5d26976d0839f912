"""Invertible steps that make a series easier to learn, and take its forecasts back.

A step holds settings only. What its inverse needs (the last values, the mean) it reads from the
series it was applied to, so one step serves any number of series: values run along the last axis,
and leading axes are batches. `fit_transforms` makes steps from names, fixed for one series.
"""

from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.checks import as_floats, as_list, check_number

__all__ = [
    "TRANSFORMS",
    "Compose",
    "Difference",
    "Log",
    "Log1p",
    "RemoveMean",
    "Rescale",
    "Transform",
    "check_transform",
    "fit_transforms",
]


# Beyond this the exponential overflows.
_LARGEST_EXPONENT = np.log(np.finfo(np.float64).max)

#: Names of steps, for `fit_transforms`.
TRANSFORMS = ("adf", "auto", "difference", "seasonal", "mean", "standardize", "log1p")


def values_of(series: npt.ArrayLike) -> Array:
    """Return a series, or several, as floats."""
    values = as_floats("The series", series)
    if values.ndim == 0:
        raise ValueError(f"The series must have an axis of time; got {series!r}.")
    return values


class Transform(Protocol):
    """What every step can do.

    Examples
    --------
    >>> from rbfdiffnet.series.transforms import Difference, Transform
    >>> step: Transform = Difference()
    >>> step.lost
    1
    """

    @property
    def lost(self) -> int:
        """How many values the step takes from the start of the series."""

    def apply(self, series: npt.ArrayLike) -> Array:
        """Return the transformed series, ``lost`` values shorter."""

    def invert(self, forecast: npt.ArrayLike, series: npt.ArrayLike) -> Array:
        """Continue ``series``, as it was before ``apply``, by a forecast made after it."""


class _SameLength:
    @property
    def lost(self) -> int:
        """How many values the step takes from the start of the series: none."""
        return 0


@dataclass(frozen=True)
class Difference:
    r"""Subtract the value ``lag`` steps before.

    .. math:: z_t = s_t - s_{t-m}, \qquad \hat s_{T+k} = \hat z_{T+k} + \hat s_{T+k-m}

    where :math:`m` is the lag: 1 removes a trend, a season's length removes the season.

    Parameters
    ----------
    lag : int, default=1
        The lag :math:`m`, at least 1.

    Examples
    --------
    >>> from rbfdiffnet.series.transforms import Difference
    >>> Difference().apply([1, 3, 6, 10]).tolist(), Difference().lost
    ([2.0, 3.0, 4.0], 1)
    >>> Difference().invert([5, 6], series=[1, 3, 6, 10]).tolist()
    [15.0, 21.0]
    """

    lag: int = 1

    def __post_init__(self) -> None:
        """Check the lag."""
        check_number("lag", self.lag, at_least=1, integer=True)

    @property
    def lost(self) -> int:
        """How many values the step takes from the start of the series: ``lag``."""
        return self.lag

    def apply(self, series: npt.ArrayLike) -> Array:
        """Return the differences, ``lag`` values fewer than ``series`` has."""
        values = self._check(series)
        with np.errstate(invalid="ignore", over="ignore"):  # infinities leave no number
            return values[..., self.lag :] - values[..., : -self.lag]

    def invert(self, forecast: npt.ArrayLike, series: npt.ArrayLike) -> Array:
        """Sum forecast differences up from the last ``lag`` values of ``series``."""
        last = self._check(series)[..., -self.lag :]
        steps = np.asarray(forecast, dtype=np.float64)
        h = steps.shape[-1]
        # One row a cycle, one column a phase: a cumulative sum down each column undoes the lag.
        cycles = -(-h // self.lag)
        table = np.zeros((*steps.shape[:-1], cycles * self.lag))
        table[..., :h] = steps
        table = table.reshape(*steps.shape[:-1], cycles, self.lag)
        with np.errstate(invalid="ignore"):
            restored: Array = last[..., np.newaxis, :] + np.cumsum(table, axis=-2)
        return restored.reshape(*restored.shape[:-2], -1)[..., :h]

    def _check(self, series: npt.ArrayLike) -> Array:
        values = values_of(series)
        if values.shape[-1] < self.lag:
            raise ValueError(
                f"The series is too short: a difference with lag {self.lag} needs at least "
                f"{self.lag} values, it has {values.shape[-1]}."
            )
        return values


@dataclass(frozen=True)
class Log(_SameLength):
    r"""Take the natural logarithm of a positive series.

    .. math:: z_t = \log s_t, \qquad \hat s_{T+k} = \exp \hat z_{T+k}

    Swings that grow with the level become even, and forecasts stay positive. A forecast whose
    exponential would overflow gives the largest floating point number instead.

    Examples
    --------
    >>> from rbfdiffnet.series.transforms import Log
    >>> z = Log().apply([1, 10, 100])
    >>> Log().invert(z[-1:] + z[1], series=[1, 10, 100]).round(6).tolist(), Log().lost
    ([1000.0], 0)
    """

    def apply(self, series: npt.ArrayLike) -> Array:
        """Return the logarithms; raise ValueError at the first value that has none."""
        values = values_of(series)
        positive = values > 0.0
        if not positive.all():
            position = tuple(np.argwhere(~positive)[0].tolist())
            raise ValueError(
                f"The logarithm needs positive values, found {values[position]} at position "
                f"{position[-1]}."
            )
        return np.log(values)

    def invert(self, forecast: npt.ArrayLike, series: npt.ArrayLike) -> Array:  # noqa: ARG002
        """Return the exponentials; ``series`` is not needed."""
        return np.exp(np.minimum(np.asarray(forecast, dtype=np.float64), _LARGEST_EXPONENT))


@dataclass(frozen=True)
class RemoveMean(_SameLength):
    r"""Subtract the mean of the series.

    .. math:: z_t = s_t - \bar s, \qquad \hat s_{T+k} = \hat z_{T+k} + \bar s

    Examples
    --------
    >>> from rbfdiffnet.series.transforms import RemoveMean
    >>> RemoveMean().apply([1, 2, 6]).tolist(), RemoveMean().lost
    ([-2.0, -1.0, 3.0], 0)
    >>> RemoveMean().invert([0, 1], series=[1, 2, 6]).tolist()
    [3.0, 4.0]
    """

    def apply(self, series: npt.ArrayLike) -> Array:
        """Return the deviations from the mean."""
        with np.errstate(invalid="ignore"):
            return values_of(series) - self._mean(series)

    def invert(self, forecast: npt.ArrayLike, series: npt.ArrayLike) -> Array:
        """Add the mean of ``series`` to a forecast."""
        return np.asarray(forecast, dtype=np.float64) + self._mean(series)

    @staticmethod
    def _mean(series: npt.ArrayLike) -> Array:
        values = values_of(series)
        if not values.shape[-1]:
            raise ValueError("The series has no values, so it has no mean; give at least one.")
        with np.errstate(invalid="ignore"):
            mean: Array = values.mean(axis=-1, keepdims=True)
        return mean


@dataclass(frozen=True)
class Compose:
    r"""Apply several steps in order, and undo them in reverse.

    .. math:: z = (g_n \circ \cdots \circ g_1)(s), \qquad
        \hat s = (g_1^{-1} \circ \cdots \circ g_n^{-1})(\hat z)

    Parameters
    ----------
    steps : tuple of Transform, default=()
        The steps :math:`g_1, \ldots, g_n`; none of them leaves the series as it is.

    Examples
    --------
    >>> from rbfdiffnet.series.transforms import Compose, Difference, Log
    >>> growth = Compose((Log(), Difference()))
    >>> z = growth.apply([1, 2, 4, 8])
    >>> growth.invert([z.mean(), z.mean()], series=[1, 2, 4, 8]).round(6).tolist(), growth.lost
    ([16.0, 32.0], 1)
    """

    steps: tuple[Transform, ...] = ()

    @property
    def lost(self) -> int:
        """How many values the steps take together from the start of the series."""
        return sum(step.lost for step in self.steps)

    def apply(self, series: npt.ArrayLike) -> Array:
        """Return the series after the last step."""
        return self._stages(series)[-1]

    def invert(self, forecast: npt.ArrayLike, series: npt.ArrayLike) -> Array:
        """Take a forecast back through the steps, each with the series it was applied to."""
        restored = np.asarray(forecast, dtype=np.float64)
        for step, before in zip(reversed(self.steps), self._stages(series)[-2::-1], strict=True):
            restored = step.invert(restored, before)
        return restored

    def _stages(self, series: npt.ArrayLike) -> list[Array]:
        """Return the series before the first step, after it, ..., and after the last step."""
        start = values_of(series)
        return list(accumulate(self.steps, lambda z, step: step.apply(z), initial=start))


@dataclass(frozen=True)
class Log1p(_SameLength):
    r"""Take the logarithm of one plus a series that is not negative.

    .. math:: z_t = \log(1 + s_t), \qquad \hat s_{T+k} = e^{\hat z_{T+k}} - 1

    Swings that grow with the level become even, zeros stay zeros, and forecasts stay above -1.
    Negative values count as zero.

    Examples
    --------
    >>> from rbfdiffnet.series.transforms import Log1p
    >>> z = Log1p().apply([0, 9, 99])
    >>> Log1p().invert(z, series=[0, 9, 99]).round(6).tolist(), Log1p().lost
    ([0.0, 9.0, 99.0], 0)
    """

    def apply(self, series: npt.ArrayLike) -> Array:
        """Return the logarithms."""
        return np.log1p(np.maximum(values_of(series), 0.0))

    def invert(self, forecast: npt.ArrayLike, series: npt.ArrayLike) -> Array:  # noqa: ARG002
        """Return the exponentials less one; ``series`` is not needed."""
        return np.expm1(np.minimum(np.asarray(forecast, dtype=np.float64), _LARGEST_EXPONENT))


@dataclass(frozen=True)
class Rescale(_SameLength):
    r"""Subtract a number and divide by another, both fixed beforehand.

    .. math:: z_t = \frac{s_t - c}{u}, \qquad \hat s_{T+k} = c + u \hat z_{T+k}

    Parameters
    ----------
    center : float, default=0.0
        The number :math:`c`.
    scale : float, default=1.0
        The number :math:`u`, positive.

    Examples
    --------
    >>> from rbfdiffnet.series.transforms import Rescale
    >>> step = Rescale(center=2.0, scale=0.5)
    >>> step.apply([2, 3]).tolist(), step.invert([4.0], series=[2, 3]).tolist(), step.lost
    ([0.0, 2.0], [4.0], 0)
    """

    center: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Check the scale."""
        check_number("center", self.center)
        check_number("scale", self.scale, above=0.0)

    def apply(self, series: npt.ArrayLike) -> Array:
        """Return the rescaled series."""
        return (values_of(series) - self.center) / self.scale

    def invert(self, forecast: npt.ArrayLike, series: npt.ArrayLike) -> Array:  # noqa: ARG002
        """Return a forecast in the units of the series, which is not needed itself."""
        return np.asarray(forecast, dtype=np.float64) * self.scale + self.center


#: Steps by name whose inverse reads no more than the latest values: models with them can be saved.
STEPS = {step.__name__: step for step in (Difference, Log, Log1p, Rescale)}


def fit_transforms(
    names: tuple[str | Transform, ...], series: npt.ArrayLike, season_length: int = 1
) -> Compose:
    """Fix named steps for one series; each sees the series the steps before it have left.

    Parameters
    ----------
    names : tuple of str or Transform
        ``"adf"``: as many first differences as the augmented Dickey-Fuller test asks for, at most
        10, perhaps none. ``"auto"``: these, or the difference to a season before, whichever
        forecasts better (`series.differences`). ``"difference"``: one. ``"seasonal"``: the
        difference to a season before, where the series has two seasons. ``"mean"``: subtract the
        mean. ``"standardize"``: subtract the mean and divide by the standard deviation.
        ``"log1p"``. A step of your own is taken as it is.
    series : array-like of shape (T,)
        Finite values.
    season_length : int, default=1

    Returns
    -------
    Compose
        Steps that depend on nothing but their settings, so they apply to any part of the series.

    Raises
    ------
    ValueError
        If a name is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.series.transforms import fit_transforms
    >>> walk = np.random.default_rng(0).normal(size=200).cumsum()
    >>> fit_transforms(("adf",), walk).steps
    (Difference(lag=1),)
    >>> fit_transforms(("adf",), np.diff(walk)).steps
    ()
    """
    steps: list[Transform] = []
    left = values_of(series)
    if left.ndim != 1 or not left.size or not np.isfinite(left).all():
        raise ValueError("The series must be one-dimensional, finite and not empty.")
    check_number("season_length", season_length, at_least=1, integer=True)
    for name in as_list("names", names, "a list of transforms"):
        for step in _fit_step(name, left, season_length):
            left = step.apply(left)
            steps.append(step)
    return Compose(tuple(steps))


def _fit_step(name: str | Transform, series: Array, season_length: int) -> list[Transform]:
    check_transform(name)
    if not isinstance(name, str):
        return [name]
    if name == "adf":
        from rbfdiffnet.series.differences import n_differences

        return [Difference()] * n_differences(series)
    if name == "auto":
        from rbfdiffnet.series.differences import choose_differences

        chosen = choose_differences(series[None], season_length)
        seasonal = [Difference(season_length)] if chosen.seasonal[0] else []
        return [*seasonal, *[Difference()] * int(chosen.counts[0])]
    if name == "difference":
        return [Difference()]
    if name == "seasonal":
        enough = season_length > 1 and series.size > 2 * season_length
        return [Difference(season_length)] if enough else []
    if name in ("mean", "standardize"):
        spread = _spread(series) if name == "standardize" else 1.0
        return [Rescale(float(series.mean()), spread if spread > 0.0 else 1.0)]
    return [Log1p()]


def check_transform(step: Any) -> None:
    """Raise an error unless it is the name of a step, or a step.

    Examples
    --------
    >>> from rbfdiffnet.series.transforms import Difference, check_transform
    >>> check_transform("mean"), check_transform(Difference(7))
    (None, None)
    """
    good = all(hasattr(step, part) for part in ("lost", "apply", "invert"))
    if isinstance(step, type) or not (step in TRANSFORMS if isinstance(step, str) else good):
        raise ValueError(
            f"Unknown transform {step!r}; known are {', '.join(TRANSFORMS)}, and steps with lost, "
            "apply and invert."
        )


def _spread(series: Array) -> float:
    """Standard deviation, in a unit whose squares neither overflow nor vanish."""
    unit = np.ldexp(1.0, int(np.frexp(np.abs(series).max(initial=0.0))[1]) - 1)
    return float((series / unit).std() * unit)
