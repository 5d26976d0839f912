"""Checking the parameters of the estimators and translating them into settings."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from rbfdiffnet.network.basis import BASES, Array
from rbfdiffnet.network.centers import CENTERS, Placement
from rbfdiffnet.network.objective import PENALTIES
from rbfdiffnet.network.training import METRICS
from rbfdiffnet.network.widths import WIDTH_RULES
from rbfdiffnet.support.checks import as_floats, check_choice, check_number

Noise = float | Literal["auto"] | None


def common_settings(estimator: Any, n_inputs: int) -> dict[str, Any]:
    """Check and translate the parameters that both regressors have."""
    check_number("n_centers", estimator.n_centers, at_least=1, integer=True)
    check_number("n_nearest", estimator.n_nearest, at_least=1, integer=True)
    check_choice("basis", estimator.basis, BASES)
    if not callable(estimator.width):
        check_choice("width", estimator.width, WIDTH_RULES)
    check_choice("penalty", estimator.penalty, PENALTIES)
    centers: str | Array | Placement = estimator.centers
    if isinstance(centers, str):
        check_choice("centers", centers, CENTERS)
    elif not callable(centers):
        centers = as_floats("centers", centers)
        good = centers.ndim == 2 and centers.shape[1] == n_inputs and len(centers) > 0
        if not good or not np.all(np.isfinite(centers)):
            raise ValueError(
                f"centers must be one of {', '.join(CENTERS)}, a function, or a finite array with "
                f"{n_inputs} columns like X; got shape {centers.shape}"
            )
    factor = None
    if not _is_auto(estimator.width_factor):
        check_number("width_factor", estimator.width_factor, above=1e-50, below=1e50)
        factor = float(estimator.width_factor)
    alpha, alpha_linear = _alphas(estimator.alpha)
    seed = 0
    if estimator.random_state is not None:
        from sklearn.utils.validation import check_random_state

        try:
            seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
        except (TypeError, ValueError) as error:
            raise ValueError(f"random_state makes no seed: {error}") from error
    return {
        "n_centers": estimator.n_centers,
        "basis": estimator.basis,
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
    numbers = as_floats("metric", metric)
    good = numbers.shape == (n_inputs,) and bool(np.all((numbers <= 1e50) & (numbers >= 0.0)))
    if not good or not np.any(numbers > 0.0):
        raise ValueError(
            f"metric must be one of {', '.join(METRICS)} or {n_inputs} numbers that are not "
            f"negative, huge, nor all zero, one for each column of X; got {metric!r}"
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


def check_noise(noise: Any, basis: Any = "gaussian") -> None:
    """Raise an error if a setting of the noise makes no sense, or not with this basis."""
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
