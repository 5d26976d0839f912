"""Save a fitted forecaster: arrays, and its settings as JSON text, in a file of `archive`.

Nothing in it is executed on loading. It is written beside the old one and then moved into its
place, so an interrupted save leaves the old file whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from rbfdiffnet.forecasting.archive import Damaged, read_arrays, write_arrays
from rbfdiffnet.forecasting.saved_settings import (
    Unknown,
    check_basis,
    parameter_words,
    restored_parameters,
    restored_step,
    step_words,
)
from rbfdiffnet.models.learning import Learning
from rbfdiffnet.models.panel_model import PanelModel
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.series_model import SeriesModel
from rbfdiffnet.models.window_model import WindowModel
from rbfdiffnet.network.network import Network
from rbfdiffnet.network.sufficient_statistics import SufficientStatistics
from rbfdiffnet.noise.filtering import StateFilter
from rbfdiffnet.panel.exogenous import Exogenous
from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.panel.panel import Problem
from rbfdiffnet.panel.state import panel_from_arrays, panel_to_arrays
from rbfdiffnet.series.effects import Effects
from rbfdiffnet.series.outliers import OutlierRule
from rbfdiffnet.series.prepare import Preparation
from rbfdiffnet.series.series import Series
from rbfdiffnet.series.transforms import Compose
from rbfdiffnet.support.stability import LARGEST

if TYPE_CHECKING:
    from rbfdiffnet.forecaster import RBFDiffNet

__all__ = ["FORMAT_VERSION", "load", "save"]

Forecaster = TypeVar("Forecaster", bound="RBFDiffNet")
Arrays = dict[str, npt.NDArray[Any]]
Pool = dict[int, tuple[int, WindowModel]]  # positions of window models by their identity

FORMAT_VERSION = 4  # from 4 on with the name of the basis functions
_SEALED = 3  # the version from which on files have a digest
_FORMAT = "rbfdiffnet-forecaster"
_TRACKER = ("noise", "process", "slack", "low", "high")
_ALWAYS, _TIMES = 2**24, 100  # bytes of settings, and times the size of a file, that are read
_KEEP = 1000  # latest known values of a series, if no more are needed
_NETWORK_ARRAYS = tuple(
    f.name for f in fields(Network) if f.type in ("Array", Network.__annotations__["centers"])
)


def save(forecaster: RBFDiffNet, path: Any) -> None:
    """Save a fitted forecaster; see `RBFDiffNet.save`."""
    state = forecaster._fitted_state()
    model, lengths = state.model, state.panel.lengths
    stack = forecaster._scope == "auto"  # which is nothing but its data
    needed = lengths if stack else _needed(model, state.series)
    networks = ({}, {}) if stack else _networks(model, np.maximum(lengths - needed, 0))
    panel_arrays, panel_words = panel_to_arrays(state.panel.keep_last(needed))
    arrays = {f"panel/{name}": values for name, values in panel_arrays.items()} | networks[0]
    words = {
        "format": _FORMAT,
        "version": FORMAT_VERSION,
        "parameters": parameter_words(forecaster),
        "panel": panel_words,
        "exogenous": state.exogenous.to_json(),
        "notes": [asdict(note) for note in state.notes],
        "block": model.plan.block,
        **networks[1],
    }
    text = json.dumps(words, separators=(",", ":")).encode()
    arrays["json"] = np.frombuffer(text, dtype=np.uint8)
    write_arrays(path, arrays)


def _networks(model: PanelModel, cut: npt.NDArray[np.int64]) -> tuple[Arrays, dict[str, Any]]:
    """Arrays and words of fitted networks, the first steps of each series being cut off."""
    arrays: Arrays = {"starts": np.maximum(model.starts - cut, 0)}
    arrays |= _learning_arrays(model.learning, cut)
    pool: Pool = {}

    def words_of(m: SeriesModel | None, cut: int) -> Any:
        return _model_words(m, pool, model.effects, cut)

    words = {
        "effects": _effects_words(model.effects),
        "reasons": {str(i): reason for i, reason in model.reasons.items()},
        "models": [words_of(m, int(c)) for m, c in zip(model.models, cut, strict=True)],
        "calibrated": [words_of(m, int(c)) for m, c in zip(model.calibrated, cut, strict=True)],
    }
    windows = [w for _, w in pool.values()]
    words["windows"] = [_window_words(w) for w in windows]
    for name in _NETWORK_ARRAYS:
        values = [getattr(w.network, name) for w in windows]
        arrays[f"network/{name}"] = np.concatenate([np.empty(0), *(v.ravel() for v in values)])
        arrays[f"shape/{name}"] = np.array(
            [(*v.shape, 0)[:2] if v.ndim == 1 else v.shape for v in values], dtype=np.int32
        ).reshape(-1, 2)
    return arrays, words


def load(cls: type[Forecaster], path: Any) -> Forecaster:
    """Load a forecaster; see `RBFDiffNet.load`."""
    try:
        arrays, sealed = read_arrays(path)
    except Damaged as error:
        raise ValueError(
            f"{path} is damaged or not a model saved by rbfdiffnet: {error}."
        ) from error
    try:
        if arrays["json"].nbytes > max(_ALWAYS, _TIMES * os.path.getsize(path)):
            raise ValueError("its settings are too long")
        words = json.loads(arrays["json"].tobytes())
        if words["format"] != _FORMAT:
            raise ValueError("another format")
        version = int(words["version"])
    except (KeyError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path} is not a model saved by rbfdiffnet.") from error
    if version > FORMAT_VERSION:
        raise ValueError(
            f"{path} was saved by a newer rbfdiffnet (format {version}; this one reads up to "
            f"{FORMAT_VERSION}); install a newer version."
        )
    try:
        if version >= _SEALED and not sealed:
            raise ValueError("its digest is missing")
        return _restored(cls, words, arrays)
    except (ImportError, MemoryError):  # an optional package, which the message names
        raise
    except Unknown as error:
        raise ValueError(f"{path}: {error}.") from error
    except Exception as error:  # there is no end to what odd words may lead to
        raise ValueError(f"{path} is damaged: {error}. Save the model again.") from error


def _restored(cls: type[Forecaster], words: Mapping[str, Any], arrays: Arrays) -> Forecaster:
    from rbfdiffnet.forecasting.pipeline import State

    forecaster = cls(**restored_parameters(words["parameters"]))
    inside = {name[6:]: values for name, values in arrays.items() if name.startswith("panel/")}
    _check_panel(inside)
    panel = panel_from_arrays(inside, words["panel"])
    if Frequency.parse(forecaster.freq) != panel.frequency:
        raise ValueError("steps of time differ")
    exogenous = Exogenous.from_json(words["exogenous"])
    series = exogenous.series(panel)
    block = int(words["block"])
    plan = forecaster._plan(panel, block if forecaster.strategy == "direct" else None)
    if forecaster._scope == "auto":
        model = forecaster._work(plan).learned(panel, series, calibrate=True)
    else:
        model = _restored_networks(plan, words, arrays)
    if len(model.models) != panel.n_series:
        raise ValueError("numbers of series differ")
    notes = tuple(Problem(**note) for note in words["notes"])
    forecaster._state = State(panel, exogenous, model, series, notes)
    return forecaster


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


def _restored_networks(plan: Plan, words: Mapping[str, Any], arrays: Arrays) -> PanelModel:
    ends = {
        name: np.cumsum([0, *(max(int(a), 0) * max(int(b), 1) for a, b in arrays[f"shape/{name}"])])
        for name in _NETWORK_ARRAYS
    }
    pool = [_restored_windows(w, arrays, ends, k) for k, w in enumerate(words["windows"])]
    effects = _restored_effects(words["effects"])
    model = PanelModel(
        plan,
        tuple(_restored_model(w, pool, effects) for w in words["models"]),
        tuple(_restored_model(w, pool, effects) for w in words["calibrated"]),
        arrays["starts"].astype(np.int64),
        effects,
        {int(i): reason for i, reason in words["reasons"].items()},
        _restored_learning(arrays),
    )
    if not len(model.models) == len(model.calibrated) == model.starts.size:
        raise ValueError("numbers of series differ")
    if model.learning is not None and model.learning.steps.size != model.starts.size:
        raise ValueError("numbers of series differ")
    return model


def _needed(model: PanelModel, panel: Sequence[Series]) -> npt.NDArray[np.int64]:
    """How many latest steps each series needs for forecasts, intervals and to go on learning."""
    needed = np.array([series.y.size for series in panel], dtype=np.int64)
    for i, both in enumerate(zip(model.models, model.calibrated, strict=True)):
        reach = max((m.history for m in both if m is not None), default=0)
        values = max(_KEEP, reach + 8 * model.plan.season_length + 400)
        if model.learning is not None:  # steps that are yet to be learned
            values += int(needed[i] - model.learning.steps[i])
        if needed[i] > values:  # which are missing for long, perhaps
            known = np.flatnonzero(np.isfinite(panel[i].y))
            needed[i] -= known[-values] if known.size > values else 0
    return needed


# Models -------------------------------------------------------------------------------------------


def _model_words(model: SeriesModel | None, pool: Pool, shared: Effects | None, cut: int) -> Any:
    """Words of a model, whose windows join the pool unless they are there."""
    if model is None:
        return None
    position, _ = pool.setdefault(id(model.windows), (len(pool), model.windows))
    p = model.preparation
    exemplars = model.exemplars
    if exemplars is not None:
        exemplars = np.where(exemplars >= cut, exemplars - cut, -1)
    return {
        "windows": position,
        "log": p.log,
        "effects": "shared" if p.effects is shared else _effects_words(p.effects),
        "season_length": p.season_length,
        "rule": [p.rule.season_length, p.rule.spread, p.rule.closures],
        "steps": [step_words(step) for step in p.steps.steps],
        "bounds": [p.low, p.high],
        "exemplars": None if exemplars is None else exemplars.tolist(),
        "untreated": model.untreated,
    }


def _restored_model(
    words: Any, pool: list[WindowModel], shared: Effects | None
) -> SeriesModel | None:
    if words is None:
        return None
    season, spread, closures = words["rule"]
    own = words["effects"]
    effects = shared if own == "shared" else _restored_effects(own)
    preparation = Preparation(
        words["log"],
        effects,
        words["season_length"],
        OutlierRule(season, float(spread), closures),
        Compose(tuple(restored_step(step) for step in words["steps"])),
        *(float(bound) for bound in words["bounds"]),
    )
    exemplars = words["exemplars"]
    if exemplars is not None:
        exemplars = np.array(exemplars, dtype=np.int64).reshape(-1, 3)
    untreated = words.get("untreated", "")  # files of version 1 have none
    return SeriesModel(preparation, pool[words["windows"]], exemplars, untreated=untreated)


def _learning_arrays(learning: Learning | None, cut: npt.NDArray[np.int64]) -> Arrays:
    if learning is None:
        return {}
    arrays: Arrays = {"learned/steps": learning.steps - cut}
    arrays["learned/penalties"] = np.array(learning.penalties)
    for name, values in learning.statistics.to_arrays().items():
        # The other half of a symmetric matrix says nothing new, and zeros take no room.
        arrays[f"statistics/{name}"] = np.tril(values) if name == "gram" else values
    return arrays


def _restored_learning(arrays: Arrays) -> Learning | None:
    if "learned/steps" not in arrays:  # nor had they files of earlier versions
        return None
    inside = {name[11:]: values for name, values in arrays.items() if name[:11] == "statistics/"}
    half = inside["gram"]
    gram = half + np.tril(half, -1).T
    statistics = SufficientStatistics.from_arrays({**inside, "gram": gram})
    rbf, linear = arrays["learned/penalties"].tolist()
    return Learning(statistics, (rbf, linear), arrays["learned/steps"].astype(np.int64))


def _effects_words(effects: Effects | None) -> Any:
    if effects is None:
        return None
    return [effects.gamma.tolist(), effects.center.tolist(), effects.relative]


def _restored_effects(words: Any) -> Effects | None:
    return None if words is None else Effects(np.array(words[0]), np.array(words[1]), words[2])


def _window_words(windows: WindowModel) -> dict[str, Any]:
    tracker = windows.tracker
    network = {
        f.name: getattr(windows.network, f.name)
        for f in fields(Network)
        if f.name not in _NETWORK_ARRAYS
    }
    return {
        "lags": list(windows.lags),
        "level": windows.level,
        "block": windows.block,
        "unit": windows.unit,
        "largest": windows.largest,
        "network": network,
        "tracker": None if tracker is None else [getattr(tracker, name) for name in _TRACKER],
    }


def _restored_windows(
    words: Mapping[str, Any], arrays: Arrays, ends: Mapping[str, Any], k: int
) -> WindowModel:
    values: dict[str, Any] = {}
    for name in _NETWORK_ARRAYS:
        flat = arrays[f"network/{name}"][ends[name][k] : ends[name][k + 1]].astype(np.float64)
        rows, columns = (int(size) for size in arrays[f"shape/{name}"][k])
        values[name] = flat if columns == 0 else flat.reshape(rows, columns)
    network = Network(**values, **words["network"])
    check_basis(network.basis)
    tracker = words.get("tracker")  # files of version 1 have none
    return WindowModel(
        network,
        tuple(words["lags"]),
        words["level"],
        words["block"],
        words["unit"],
        words["largest"],
        None if tracker is None else StateFilter(network, *(float(value) for value in tracker)),
    )
