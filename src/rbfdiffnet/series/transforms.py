"""Invertible steps that make a series easier to learn, and take its forecasts back.

The steps themselves are in `series.steps`; here they get names, and are fixed for a series.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.series.steps import (
    Compose,
    Difference,
    Log,
    Log1p,
    RemoveMean,
    Rescale,
    Transform,
    values_of,
)
from rbfdiffnet.support.checks import check_number

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

Array = npt.NDArray[np.float64]

#: Names of steps, for `fit_transforms`.
TRANSFORMS = ("adf", "auto", "difference", "seasonal", "mean", "standardize", "log1p")


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
    for name in names:
        for step in _fit_step(name, left, season_length):
            left = step.apply(left)
            steps.append(step)
    return Compose(tuple(steps))


def _fit_step(name: str | Transform, series: Array, season_length: int) -> list[Transform]:
    check_transform(name)
    if not isinstance(name, str):
        return [name]
    if name == "adf":
        from rbfdiffnet.series.unit_root import n_differences

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
