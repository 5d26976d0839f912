"""Networks of series as arrays and as words that JSON can hold, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, fields
from typing import Any

import numpy as np

from rbfdiffnet.batch.train import BatchNetworks
from rbfdiffnet.models.networks.series_model import SeriesModel
from rbfdiffnet.models.networks.window_model import BatchMember, WindowModel
from rbfdiffnet.network.basis import profile
from rbfdiffnet.network.network import Network
from rbfdiffnet.noise.filtering import StateFilter
from rbfdiffnet.series.effects import Effects
from rbfdiffnet.series.outliers import OutlierRule
from rbfdiffnet.series.prepare import Preparation
from rbfdiffnet.series.series import Series
from rbfdiffnet.series.transforms import STEPS, Compose, Transform
from rbfdiffnet.support.arrays import Arrays, Ints

Models = tuple[SeriesModel | None, ...]

_TRACKER = ("noise", "process", "slack", "low", "high")
_LATEST_KEPT = 1000  # known values of a series, if no more are needed
_NETWORK_ARRAYS = tuple(
    f.name for f in fields(Network) if f.type in ("Array", Network.__annotations__["centers"])
)


class UnknownNameError(ValueError):
    """The file is sound, but names a function that is not there where it is loaded."""


def steps_to_keep(
    models: Models,
    calibrated: Models,
    panel: Sequence[Series],
    season_length: int,
    unlearned: Ints,
) -> Ints:
    """Return how many latest steps each series (n,) needs to be forecast and to go on learning."""
    keep = np.array([series.y.size for series in panel], dtype=np.int64)
    for i, both in enumerate(zip(models, calibrated, strict=True)):
        reach = max((m.history for m in both if m is not None), default=0)
        values = max(_LATEST_KEPT, reach + 8 * season_length + 400) + int(unlearned[i])
        if keep[i] > values:  # which are missing for long, perhaps
            known = np.flatnonzero(np.isfinite(panel[i].y))
            keep[i] -= known[-values] if known.size > values else 0
    return keep


def networks_to_arrays(
    models: Models, calibrated: Models, cut: Ints, common: Effects | None
) -> tuple[Arrays, dict[str, Any]]:
    """Return arrays and words of networks; the first `cut` (n,) steps of series are not saved.

    Effects that are the `common` ones are saved once, and so is a network of several series.
    """
    networks: dict[int, tuple[int, WindowModel]] = {}  # position and network, by identity

    def words_of(chosen: Models) -> list[Any]:
        return [
            None if m is None else _model_to_words(m, networks, common, int(c))
            for m, c in zip(chosen, cut, strict=True)
        ]

    words: dict[str, Any] = {
        "effects": _effects_to_words(common),
        "models": words_of(models),
        "calibrated": words_of(calibrated),
    }
    windows = [w for _, w in networks.values()]
    words["windows"] = [_windows_to_words(w) for w in windows]
    arrays: Arrays = {}
    for name in _NETWORK_ARRAYS:
        values = [getattr(w.network, name) for w in windows]
        arrays[f"network/{name}"] = np.concatenate([np.empty(0), *(v.ravel() for v in values)])
        arrays[f"shape/{name}"] = np.array(
            [(*v.shape, 0)[:2] if v.ndim == 1 else v.shape for v in values], dtype=np.int32
        ).reshape(-1, 2)
    return arrays, words


def networks_from_arrays(
    words: Mapping[str, Any], arrays: Arrays
) -> tuple[Models, Models, Effects | None]:
    """Return models, calibrated models and common effects that were written."""
    ends = {
        name: np.cumsum([0, *(max(int(a), 0) * max(int(b), 1) for a, b in arrays[f"shape/{name}"])])
        for name in _NETWORK_ARRAYS
    }
    windows = [_windows_from_words(w, arrays, ends, k) for k, w in enumerate(words["windows"])]
    common = _effects_from_words(words["effects"])
    models, calibrated = (
        tuple(None if w is None else _model_from_words(w, windows, common) for w in words[name])
        for name in ("models", "calibrated")
    )
    return models, calibrated, common


def _model_to_words(
    model: SeriesModel, networks: dict[int, tuple[int, WindowModel]], common: Any, cut: int
) -> dict[str, Any]:
    """Return words of a model, whose network joins the others unless it is there already."""
    position, _ = networks.setdefault(id(model.windows), (len(networks), model.windows))
    p, exemplars = model.preparation, model.exemplars
    if exemplars is not None:
        exemplars = np.where(exemplars >= cut, exemplars - cut, -1)
    return {
        "windows": position,
        "log": p.log,
        "effects": "shared" if p.effects is common else _effects_to_words(p.effects),
        "season_length": p.season_length,
        "rule": list(astuple(p.rule)),
        "steps": [step_to_words(step) for step in p.steps.steps],
        "bounds": [p.low, p.high],
        "exemplars": None if exemplars is None else exemplars.tolist(),
        "untreated": model.untreated,
    }


def _model_from_words(
    words: Mapping[str, Any], windows: list[WindowModel], common: Effects | None
) -> SeriesModel:
    own = words["effects"]
    preparation = Preparation(
        words["log"],
        common if own == "shared" else _effects_from_words(own),
        words["season_length"],
        OutlierRule(*words["rule"]),
        Compose(tuple(step_from_words(step) for step in words["steps"])),
        *(float(bound) for bound in words["bounds"]),
    )
    exemplars = words["exemplars"]
    if exemplars is not None:
        exemplars = np.array(exemplars, dtype=np.int64).reshape(-1, 3)
    return SeriesModel(
        preparation, windows[words["windows"]], exemplars, untreated=words["untreated"]
    )


def _windows_to_words(windows: WindowModel) -> dict[str, Any]:
    tracker, network = windows.tracker, windows.network
    names = [f.name for f in fields(Network) if f.name not in _NETWORK_ARRAYS]
    return {
        "lags": list(windows.lags),
        "level": windows.level,
        "block": windows.block,
        "unit": windows.unit,
        "largest": windows.largest,
        "fast": isinstance(windows.source, BatchMember),
        "network": {name: getattr(network, name) for name in names},
        "tracker": None if tracker is None else [getattr(tracker, name) for name in _TRACKER],
    }


def _windows_from_words(
    words: Mapping[str, Any], arrays: Arrays, ends: Mapping[str, Any], k: int
) -> WindowModel:
    values: dict[str, Any] = {}
    for name in _NETWORK_ARRAYS:
        flat = arrays[f"network/{name}"][ends[name][k] : ends[name][k + 1]].astype(np.float64)
        rows, columns = (int(size) for size in arrays[f"shape/{name}"][k])
        values[name] = flat if columns == 0 else flat.reshape(rows, columns)
    network = Network(**values, **words["network"])
    check_basis(network.basis)
    tracker = words["tracker"]
    source: Network | BatchMember = network
    if words["fast"]:
        source = BatchMember(BatchNetworks.stack([network], [words["largest"]]), 0)
    return WindowModel(
        source,
        tuple(words["lags"]),
        words["level"],
        words["block"],
        words["unit"],
        words["largest"],
        None if tracker is None else StateFilter(network, *(float(value) for value in tracker)),
    )


def _effects_to_words(effects: Effects | None) -> Any:
    if effects is None:
        return None
    doubt = [effects.seldom.tolist(), effects.doubt.tolist()] if effects.seldom.size else []
    return [effects.gamma.tolist(), effects.center.tolist(), effects.relative, *doubt]


def _effects_from_words(words: Any) -> Effects | None:
    if words is None:
        return None
    gamma, center, relative, *doubt = words
    return Effects(np.array(gamma), np.array(center), relative, *map(np.array, doubt))


def check_basis(name: Any) -> None:
    """Raise `UnknownNameError` unless there are basis functions of this name."""
    try:
        profile(name)
    except ValueError as error:
        raise UnknownNameError(str(error)) from error


def step_to_words(step: Transform) -> dict[str, Any]:
    """Return a step of a transform as words that JSON can hold."""
    name = type(step).__name__
    if name not in STEPS:
        raise ValueError(f"The transform {name} cannot be saved, only {', '.join(STEPS)}.")
    return {"step": name, **asdict(step)}  # type: ignore[call-overload]


def step_from_words(words: Mapping[str, Any]) -> Transform:
    """Return the step that `step_to_words` has written."""
    settings = {name: value for name, value in words.items() if name != "step"}
    step: Transform = STEPS[words["step"]](**settings)
    return step
