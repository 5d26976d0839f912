"""Checks of arguments: errors name the parameter, what it must be, and what was given."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np

from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.stability import LARGEST

#: The argument `noise`: not treated, found in the data, or a standard deviation.
Noise = float | Literal["auto"] | None

_COUNT_LIMIT = 10**9


class CommandError(Exception):
    """The input of a reader or a command is at fault: what, where, and the remedy, in one line."""


class CheckFailed(CommandError):
    """A command did its work, and found what it was told to fail on."""


class DataWarning(UserWarning):
    """Data are such that forecasts may be plainly wrong, though nothing can be said for certain."""


def is_number(value: Any, kind: type = numbers.Real) -> bool:
    """Tell whether a value is a finite number; flags and spans of time are not."""
    if type(value) is float and kind is numbers.Real:  # the usual case, in no time
        return math.isfinite(value)
    if not isinstance(value, kind) or isinstance(value, bool | np.timedelta64):
        return False
    try:
        return bool(np.isfinite(float(value)))  # type: ignore[arg-type]
    except OverflowError:
        return False


def show_value(value: Any) -> str:
    """Write what was given, or what kind of thing it is where that is long."""
    text = repr(value)
    return text if len(text) <= 60 and text.isprintable() else f"a {type(value).__name__}"


def check_number(
    name: str,
    value: Any,
    *,
    at_least: float | None = None,
    above: float | None = None,
    below: float | None = None,
    integer: bool = False,
) -> None:
    """Raise an error that names the parameter unless the value is a number in its range."""
    good = is_number(value, numbers.Integral if integer else numbers.Real)
    size = float(value) if good else math.nan  # bounds would overflow small types of NumPy
    if good and at_least is not None:
        good = size >= at_least
    if good and above is not None:
        good = size > above
    if good and below is not None:
        good = size < below
    if not good:
        wanted = "an integer" if integer else "a number"
        wanted += f" of at least {at_least:g}" if at_least is not None else ""
        wanted += f" above {above:g}" if above is not None else ""
        wanted += f" and below {below:g}" if below is not None else ""
        raise ValueError(f"{name} must be {wanted}; got {show_value(value)}")


def check_count(name: str, value: Any) -> int:
    """Return an integer of at least 1, or raise an error that names the parameter."""
    if not (is_number(value, numbers.Integral) and 1 <= value < _COUNT_LIMIT):
        most = f" below {_COUNT_LIMIT:,}" if is_number(value) and value >= 1 else ""
        raise ValueError(f"{name} must be a positive integer{most}; got {show_value(value)}.")
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """Return a flag; raise an error that names the parameter if it is not one."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {show_value(value)}")
    return bool(value)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise an error that names the parameter unless the value is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {show_value(value)}")


def call_given(name: str, function: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
    """Call a function that users gave as a parameter; one of other arguments is refused."""
    try:
        return function(*arguments, **more)
    except TypeError as error:
        raise TypeError(f"{name}: {function!r} failed with what it is given: {error}") from error


def as_floats(name: str, values: Any) -> Array:
    """Return real numbers as an array of floats; dates and complex numbers raise ValueError."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "cmM":
            raise TypeError(f"{array.dtype} are none")
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from error


def check_size(name: str, values: Array) -> None:
    """Raise ValueError if numbers are so large that their squares overflow."""
    large = np.flatnonzero(np.abs(values) > LARGEST)
    if large.size:
        raise ValueError(
            f"{name} holds {values.flat[large[0]]:g}; values must lie between {-LARGEST:g} and "
            f"{LARGEST:g}: rescale it"
        )


def as_list(name: str, values: Any, wanted: str = "a list") -> list[Any]:
    """Return the items of any iterable but text as a list."""
    try:
        if isinstance(values, str | bytes):
            raise TypeError
        return list(values)
    except TypeError as error:
        raise ValueError(f"{name} must be {wanted}; got {values!r}.") from error


def as_names(name: str, values: Any) -> list[str]:
    """Return names as a list without repetitions; there must be one, and all must be text."""
    names = as_list(name, values, "a list of names")
    if not names or not all(isinstance(value, str) for value in names):
        raise ValueError(f"{name} must be a list of at least one name; got {values!r}.")
    return list(dict.fromkeys(names))


def check_noise(noise: Any, basis: Any = "gaussian") -> None:
    """Raise an error if `noise` makes no sense, or none with this basis."""
    if noise is None:
        return
    if not isinstance(noise, str):
        check_number("noise", noise, at_least=0.0)
    elif noise != "auto":
        raise ValueError(f"noise must be None, 'auto' or a standard deviation, got {noise!r}.")
    if noise and not (isinstance(basis, str) and basis == "gaussian"):
        raise ValueError(
            f"noise is treated with Gaussian basis functions only; got basis={basis!r}. Use "
            "basis='gaussian', or noise=None."
        )
