"""Save a fitted forecaster: arrays, and its options as JSON text, in a file of `archive`.

Nothing in it is executed on loading. It is written beside the old one and then moved into its
place, so an interrupted save leaves the old file whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from rbfdiffnet import regressors
from rbfdiffnet.forecasting.archive import Damaged, read_arrays, write_arrays
from rbfdiffnet.forecasting.options import Options
from rbfdiffnet.forecasting.pipeline import FittedPanel
from rbfdiffnet.models.networks.files import (
    UnknownNameError,
    check_basis,
    step_from_words,
    step_to_words,
)
from rbfdiffnet.panel.calendar import Event
from rbfdiffnet.panel.exogenous import Exogenous
from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.support.arrays import Arrays
from rbfdiffnet.support.collective import SINGLE_MACHINE
from rbfdiffnet.support.notes import Note
from rbfdiffnet.support.stability import LARGEST

FORMAT_VERSION = 5
_FORMAT = "rbfdiffnet-forecaster"
_MOST_SETTINGS, _MOST_TIMES = 2**24, 100  # bytes, and times the size of a file, that are read


def save_model(options: Options, fitted: FittedPanel, path: Any) -> None:
    """Save a fitted forecaster; see `RBFDiffNet.save`."""
    keep, arrays, words = fitted.model.to_arrays(fitted.series)
    panel_arrays, panel_words = fitted.panel.keep_last(keep).to_arrays()
    arrays = {f"panel/{name}": values for name, values in panel_arrays.items()} | arrays
    words = {
        "format": _FORMAT,
        "version": FORMAT_VERSION,
        "parameters": _options_to_words(options, fitted.panel.frequency),
        "panel": panel_words,
        "exogenous": fitted.exogenous.to_json(),
        "notes": [asdict(note) for note in fitted.notes],
        "block": fitted.model.plan.block,
        **words,
    }
    text = json.dumps(words, separators=(",", ":")).encode()
    arrays["json"] = np.frombuffer(text, dtype=np.uint8)
    write_arrays(path, arrays)


def load_model(path: Any) -> tuple[Options, FittedPanel]:
    """Load a forecaster; see `RBFDiffNet.load`."""
    try:
        arrays, sealed = read_arrays(path)
    except Damaged as error:
        raise ValueError(
            f"{path} is damaged or not a model saved by rbfdiffnet: {error}."
        ) from error
    words, version = _read_words(arrays, path)
    if version != FORMAT_VERSION:
        age, remedy = ("a newer", "install a newer version")
        if version < FORMAT_VERSION:
            age, remedy = ("an older", "fit the model again, and save it")
        raise ValueError(
            f"{path} was saved by {age} rbfdiffnet (format {version}; this one reads "
            f"{FORMAT_VERSION}); {remedy}."
        )
    try:
        if not sealed:
            raise ValueError("its digest is missing")
        return _restore(words, arrays)
    except (ImportError, MemoryError):  # an optional package, which the message names
        raise
    except UnknownNameError as error:
        raise ValueError(f"{path}: {error}.") from error
    except Exception as error:  # there is no end to what odd words may lead to
        raise ValueError(f"{path} is damaged: {error}. Save the model again.") from error


def _read_words(arrays: Arrays, path: Any) -> tuple[dict[str, Any], int]:
    try:
        if arrays["json"].nbytes > max(_MOST_SETTINGS, _MOST_TIMES * os.path.getsize(path)):
            raise ValueError("its settings are too long")
        words = json.loads(arrays["json"].tobytes())
        if words["format"] != _FORMAT:
            raise ValueError("another format")
        return words, int(words["version"])
    except (KeyError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path} is not a model saved by rbfdiffnet.") from error


def _restore(words: Mapping[str, Any], arrays: Arrays) -> tuple[Options, FittedPanel]:
    options = Options(**_parameters_from_words(words["parameters"]))
    inside = {name[6:]: values for name, values in arrays.items() if name.startswith("panel/")}
    _check_panel(inside)
    panel = Panel.from_arrays(inside, words["panel"])
    if Frequency.parse(options.freq) != panel.frequency:
        raise ValueError("steps of time differ")
    exogenous = Exogenous.from_json(words["exogenous"])
    series = exogenous.series(panel)
    block = int(words["block"])
    h = block if options.strategy == "direct" else None
    plan = options.make_plan(panel, h, SINGLE_MACHINE)
    model = options.method.from_arrays(series, plan, words, arrays)
    if model.n_series != panel.n_series:
        raise ValueError("numbers of series differ")
    notes = tuple(Note(**note) for note in words["notes"])
    return options, FittedPanel(panel, exogenous, model, series, notes)


def _check_panel(arrays: Arrays) -> None:
    """Check that sizes agree, before anything is made of these sizes."""
    offsets, sizes = arrays["offsets"], {arrays[name].size for name in ("ids", "origin", "day")}
    inputs = {values.size for name, values in arrays.items() if name.startswith("input")}
    if offsets[0] != 0 or (np.diff(offsets) < 0).any() or sizes != {offsets.size - 1}:
        raise ValueError("numbers of series differ")
    if {arrays["y"].size, *inputs} != {int(offsets[-1])}:
        raise ValueError("numbers of steps differ")
    if arrays["y"].dtype != np.float64 or (np.abs(arrays["y"]) > LARGEST).any():
        raise ValueError("the target has other values than a panel")


def _options_to_words(options: Options, frequency: Frequency) -> dict[str, Any]:
    """Return options as words that JSON can hold."""
    words = {name: getattr(options, name) for name in options.names()}
    words["events"] = [
        {**asdict(event), "dates": [str(day) for day in event.dates]} for event in words["events"]
    ]
    if not isinstance(words["freq"], int | str):
        words["freq"] = frequency.alias
    if not isinstance(words["transforms"], str | None):
        words["transforms"] = [
            step if isinstance(step, str) else step_to_words(step) for step in words["transforms"]
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
        plain: dict[str, Any] = json.loads(json.dumps(words, default=_plain_number))
    except TypeError as error:
        raise ValueError(
            f"The model's settings cannot be saved: {error}. Functions and arrays among the "
            "regressor's parameters have no text form; functions with a name in CENTERS of "
            "rbfdiffnet.network.centers or WIDTH_RULES of rbfdiffnet.network.widths can be given "
            "by it."
        ) from error
    return plain


def _plain_number(value: Any) -> Any:
    """Return a number of NumPy's as one of Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not a number or text")


def _parameters_from_words(words: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that `_options_to_words` has written."""
    parameters = dict(words)
    parameters["events"] = [Event(**event) for event in words["events"]]
    if isinstance(words["transforms"], list):
        parameters["transforms"] = [
            step if isinstance(step, str) else step_from_words(step) for step in words["transforms"]
        ]
    if words["regressor"] is not None:
        name = words["regressor"]["class"]
        if name not in ("RBFDiffNetRegressor", "RBFNetworkRegressor"):
            raise ValueError(f"unknown regressor {name!r}")
        regressor = getattr(regressors, name)(**words["regressor"]["parameters"])
        check_basis(regressor.basis)
        parameters["regressor"] = regressor
    return parameters
