"""Checking the parameters of the estimators and translating them into settings."""

from __future__ import annotations

import numbers
from typing import Any, Literal

import numpy as np

from rbfdiffnet.basis import Array
from rbfdiffnet.solvers.objective import PENALTIES
from rbfdiffnet.training import CENTERS, METRICS
from rbfdiffnet.widths import WIDTH_RULES

Noise = float | Literal["auto"] | None


def common_settings(estimator: Any, n_inputs: int) -> dict[str, Any]:
    """Check and translate the parameters that both regressors have."""
    check_number("n_centers", estimator.n_centers, at_least=1, integer=True)
    check_number("n_nearest", estimator.n_nearest, at_least=1, integer=True)
    check_choice("width", estimator.width, WIDTH_RULES)
    check_choice("penalty", estimator.penalty, PENALTIES)
    centers: str | Array
    if isinstance(estimator.centers, str):
        check_choice("centers", estimator.centers, CENTERS)
        centers = estimator.centers
    else:
        centers = np.asarray(estimator.centers, dtype=np.float64)
        good = centers.ndim == 2 and centers.shape[1] == n_inputs and len(centers) > 0
        if not good or not np.all(np.isfinite(centers)):
            raise ValueError(
                f"centers must be {', '.join(CENTERS)} or a finite array with {n_inputs} columns "
                f"like X; got shape {centers.shape}"
            )
    factor = None
    if not _is_auto(estimator.width_factor):
        check_number("width_factor", estimator.width_factor, above=0.0)
        factor = float(estimator.width_factor)
    alpha, alpha_linear = _alphas(estimator.alpha)
    seed = 0
    if estimator.random_state is not None:
        from sklearn.utils.validation import check_random_state

        seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
    return {
        "n_centers": estimator.n_centers,
        "centers": centers,
        "width": estimator.width,
        "width_factor": factor,
        "n_nearest": estimator.n_nearest,
        "penalty": estimator.penalty,
        "alpha": alpha,
        "alpha_linear": alpha_linear,
        "seed": seed,
    }


def check_metric(metric: Any, n_inputs: int) -> str | Array:
    """Return the name of a metric, or its numbers as an array."""
    if isinstance(metric, str):
        check_choice("metric", metric, METRICS)
        return metric
    numbers = np.asarray(metric, dtype=np.float64)
    good = numbers.shape == (n_inputs,) and bool(np.all(np.isfinite(numbers) & (numbers >= 0.0)))
    if not good or not np.any(numbers > 0.0):
        raise ValueError(
            f"metric must be one of {', '.join(METRICS)} or {n_inputs} numbers that are not "
            f"negative nor all zero, one for each column of X; got {metric!r}"
        )
    return numbers


def _alphas(alpha: Any) -> tuple[float | None, float | None]:
    if _is_auto(alpha):
        return None, None
    pair = tuple(alpha) if isinstance(alpha, (tuple, list)) else (alpha, alpha)
    if len(pair) != 2:
        raise ValueError(f"alpha must be a number, a pair of numbers or 'auto'; got {alpha!r}")
    for value in pair:
        check_number("alpha", value, at_least=0.0)
    return float(pair[0]), float(pair[1])


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise an error that names the parameter unless the value is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}")


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
    kind, noun = (numbers.Integral, "an integer") if integer else (numbers.Real, "a number")
    wanted = noun
    wanted += f" of at least {at_least:g}" if at_least is not None else ""
    wanted += f" above {above:g}" if above is not None else ""
    wanted += f" and below {below:g}" if below is not None else ""
    good = isinstance(value, kind) and not isinstance(value, bool) and np.isfinite(float(value))
    if good and at_least is not None:
        good = value >= at_least
    if good and above is not None:
        good = value > above
    if good and below is not None:
        good = value < below
    if not good:
        raise ValueError(f"{name} must be {wanted}; got {value!r}")


def check_noise(noise: Any) -> None:
    """Raise an error if a setting of the noise makes no sense."""
    if noise is None or (isinstance(noise, str) and noise == "auto"):
        return
    if isinstance(noise, str):
        raise ValueError(f"noise must be None, 'auto' or a standard deviation, got {noise!r}.")
    check_number("noise", noise, at_least=0.0)
