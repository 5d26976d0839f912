"""Settings of a forecaster as words in its file, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from rbfdiffnet.network.basis import profile
from rbfdiffnet.series.transforms import STEPS, Transform

if TYPE_CHECKING:
    from rbfdiffnet.forecaster import RBFDiffNet

__all__ = ["Unknown", "check_basis", "parameter_words", "restored_parameters"]
__all__ += ["restored_step", "step_words"]


class Unknown(ValueError):
    """The file is sound, but names a function that is not there where it is loaded."""


def parameter_words(forecaster: RBFDiffNet) -> dict[str, Any]:
    """Return the parameters of a forecaster as words that JSON can hold."""
    words = {name: getattr(forecaster, name) for name in forecaster._parameter_names()}
    words["events"] = [
        {**asdict(event), "dates": [str(day) for day in event.dates]} for event in words["events"]
    ]
    if not isinstance(words["freq"], int | str):
        words["freq"] = forecaster._fitted_state().panel.frequency.alias
    if not isinstance(words["transforms"], str | None):
        words["transforms"] = [
            step if isinstance(step, str) else step_words(step) for step in words["transforms"]
        ]
    regressor = words["regressor"]
    if regressor is not None:
        words["regressor"] = {
            "class": type(regressor).__name__,
            "parameters": regressor.get_params(),
        }
    if not isinstance(words["lags"], int | str | np.integer):
        words["lags"] = list(words["lags"])
    try:
        plain: dict[str, Any] = json.loads(json.dumps(words, default=_number))
    except TypeError as error:
        raise ValueError(
            f"The model's settings cannot be saved: {error}. Functions and arrays among the "
            "regressor's parameters have no text form; functions with a name in CENTERS of "
            "rbfdiffnet.network.centers or WIDTH_RULES of rbfdiffnet.network.widths can be given "
            "by it."
        ) from error
    return plain


def _number(value: Any) -> Any:
    """Return a number of NumPy's as one of Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not a number or text")


def restored_parameters(words: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that `parameter_words` has written."""
    from rbfdiffnet import regressors
    from rbfdiffnet.panel.calendar import Event

    parameters = dict(words)
    parameters["events"] = [Event(**event) for event in words["events"]]
    if isinstance(words["transforms"], list):
        parameters["transforms"] = [
            step if isinstance(step, str) else restored_step(step) for step in words["transforms"]
        ]
    if words["regressor"] is not None:
        known = {"RBFDiffNetRegressor", "RBFNetworkRegressor"}
        name = words["regressor"]["class"]
        if name not in known:
            raise ValueError(f"unknown regressor {name!r}")
        regressor = getattr(regressors, name)(**words["regressor"]["parameters"])
        check_basis(regressor.basis)
        parameters["regressor"] = regressor
    return parameters


def check_basis(name: Any) -> None:
    """Raise `Unknown` unless there are basis functions of this name."""
    try:
        profile(name)
    except ValueError as error:
        raise Unknown(str(error)) from error


def step_words(step: Transform) -> dict[str, Any]:
    """Return a step as words that JSON can hold."""
    name = type(step).__name__
    if name not in STEPS:
        raise ValueError(f"The transform {name} cannot be saved, only {', '.join(STEPS)}.")
    return {"step": name, **asdict(step)}  # type: ignore[call-overload]


def restored_step(words: Mapping[str, Any]) -> Transform:
    """Return the step that `step_words` has written."""
    settings = {name: value for name, value in words.items() if name != "step"}
    step: Transform = STEPS[words["step"]](**settings)
    return step
