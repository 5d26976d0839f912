"""Save a fitted forecaster: arrays, and its options as JSON text, in one file.

The file is a NumPy ``.npz``, sealed with a digest and read without trust. Every array is a ``.npy``
member of a zip file, whose comment is the SHA-256 digest of all bytes before, so a file in which a
single bit has changed is refused. Reading executes nothing, writes nothing to the disk, and returns
no more bytes than `unpacked_limit` of the file's size. A file is written beside the old one and
then moved into its place, so an interrupted save leaves the old file whole.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import zipfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet import regressors
from rbfdiffnet.forecasting.options import Options
from rbfdiffnet.forecasting.pipeline import FittedPanel, Pipeline
from rbfdiffnet.models.networks.files import (
    UnknownNameError,
    check_basis,
    step_from_words,
    step_to_words,
)
from rbfdiffnet.panel.calendar import Event, Holidays
from rbfdiffnet.panel.exogenous import Exogenous
from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.support.arrays import Arrays
from rbfdiffnet.support.files import check_regular, replace_file, unpacked_limit
from rbfdiffnet.support.notes import Note
from rbfdiffnet.support.parallel import SINGLE_MACHINE
from rbfdiffnet.support.stability import LARGEST

FORMAT_VERSION = 7
_FORMAT = "rbfdiffnet-forecaster"
_MOST_SETTINGS, _MOST_TIMES = 2**24, 100  # bytes, and times the size of a file, that are read
_READ_AT_ONCE = 2**20  # bytes
_LABEL, _DIGITS = b"sha256:", 64
_MOST_MEMBERS = 100_000
_MEMBER = b"PK\x01\x02"  # begins what the directory says of a member
_NAME = re.compile(r"(\w+/)?\w+\.npy")
_KINDS = "biufU"


def save_model(options: Options, fitted: FittedPanel, path: Any) -> None:
    """Save a fitted forecaster; see `RBFDiffNet.save`."""
    # Levels must have the same dates, and errors are found anew for forecasts that add up.
    keep_all = options.hierarchy is not None
    keep, arrays, words = fitted.model.to_arrays(fitted.series, keep_all=keep_all)
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
    exogenous = options.with_groups(Exogenous.from_json(words["exogenous"]))
    series = exogenous.series(panel)
    block = int(words["block"])
    h = block if options.strategy == "direct" else None
    plan = options.make_plan(panel, h, SINGLE_MACHINE)
    model = options.method.from_arrays(series, plan, words, arrays)
    if model.n_series != panel.n_series:
        raise ValueError("numbers of series differ")
    notes = tuple(Note(**note) for note in words["notes"])
    newcomers = Pipeline(options, plan).find_newcomers(panel, exogenous)
    return options, FittedPanel(panel, exogenous, model, series, notes, newcomers)


def _check_panel(arrays: Arrays) -> None:
    """Check that sizes agree, before anything is made of these sizes."""
    labels = [name for name in arrays if name.startswith("label")]
    own = ("ids", "origin", "day", *labels)
    offsets, sizes = arrays["offsets"], {arrays[name].size for name in own}
    inputs = {values.size for name, values in arrays.items() if name.startswith("input")}
    if offsets[0] != 0 or (np.diff(offsets) < 0).any() or sizes != {offsets.size - 1}:
        raise ValueError("numbers of series differ")
    shapes = {values.shape for name, values in arrays.items() if name.startswith("range")}
    if shapes - {(2, offsets.size - 1)}:
        raise ValueError("numbers of ranges differ")
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
    if isinstance(words["holidays"], Holidays):
        words["holidays"] = asdict(words["holidays"])
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
    if isinstance(words["holidays"], dict):
        parameters["holidays"] = Holidays(**words["holidays"])
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


# Arrays in a file --------------------------------------------------------------------------------


class Damaged(Exception):
    """What is wrong with a file of arrays, in a few words."""


def write_arrays(path: Any, arrays: Arrays) -> None:
    """Write arrays of numbers and text to a file, which is complete or not there."""
    arrays = {name: _narrowed(values) for name, values in arrays.items()}
    with replace_file(path) as temporary:
        _write(temporary, arrays, zipfile.ZIP_DEFLATED)
        size = sum(values.nbytes for values in arrays.values())
        if 1.1 * size > unpacked_limit(temporary.stat().st_size):  # what no reader would unpack
            _write(temporary, arrays, zipfile.ZIP_STORED)
        _seal(temporary)


def read_arrays(path: Any) -> tuple[Arrays, bool]:
    """Read arrays, and whether the file has a digest (which earlier versions did not write)."""
    check_regular(path)
    data = Path(path).read_bytes()
    try:
        if data.count(_MEMBER) > _MOST_MEMBERS:
            raise Damaged("it has too many members")
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            sealed = file.comment.startswith(_LABEL)
            digest = hashlib.sha256(memoryview(data)[:-_DIGITS]).hexdigest().encode()
            if sealed and file.comment != _LABEL + digest:
                raise Damaged("its digest is wrong")
            members, most = file.infolist(), unpacked_limit(len(data))
            if sum(member.file_size for member in members) > most:
                raise Damaged(f"unpacked it would take more than {most:,} bytes")
            arrays = {}
            for member in members:
                values = _read_member(file, member, most)
                most -= values.nbytes
                arrays[member.filename.removesuffix(".npy")] = values
    except (Damaged, MemoryError):
        raise
    except Exception as error:  # there is no end to what damaged bytes may lead to
        raise Damaged(str(error)) from error
    return arrays, sealed


def _narrowed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the same numbers in a smaller type, where that loses nothing."""
    if values.dtype == np.float64:
        with np.errstate(over="ignore", invalid="ignore"):
            for narrow in (np.float16, np.float32):
                if np.array_equal(values.astype(narrow).astype(np.float64), values, equal_nan=True):
                    return values.astype(narrow)
    return values


def _write(path: Path, arrays: Arrays, compression: int) -> None:
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, values in arrays.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)
        file.comment = _LABEL + bytes(_DIGITS)


def _seal(path: Path) -> None:
    """Write the digest of a zip file into its comment, which has room for it."""
    with path.open("r+b") as raw:
        raw.truncate(raw.seek(-_DIGITS, io.SEEK_END))
        raw.seek(0)
        raw.write(hashlib.file_digest(raw, "sha256").hexdigest().encode())


def _read_member(file: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> npt.NDArray[Any]:
    """Read an array whose header says as many bytes as there are; floats as 64 bits.

    Sizes are checked before memory is taken, and there is one copy.
    """
    if not _NAME.fullmatch(member.filename):
        raise Damaged(f"{member.filename!r} is no name of an array")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Damaged(f"{member.filename!r} is packed in another way")
    with file.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        shape, fortran, dtype = read[version](stream)
        if dtype.kind not in _KINDS or not dtype.itemsize:
            raise Damaged(f"{member.filename!r} has no numbers or text")
        count, wide = math.prod(shape), np.dtype(np.float64) if dtype.kind == "f" else dtype
        if count * dtype.itemsize != member.file_size - stream.tell():
            raise Damaged(f"{member.filename!r} is larger or smaller than it says")
        if count * wide.itemsize > most:
            raise Damaged(f"{member.filename!r} would take more than {most:,} bytes")
        flat: npt.NDArray[Any] = np.empty(count, wide)
        at_once = max(_READ_AT_ONCE // dtype.itemsize, 1)
        for first in range(0, count, at_once):
            part = flat[first : first + at_once]
            part[:] = np.frombuffer(stream.read(part.size * dtype.itemsize), dtype)
        stream.read()  # to the end, where the checksum is compared
    return flat.reshape(shape, order="F" if fortran else "C")
