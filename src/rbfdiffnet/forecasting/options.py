"""What may be asked of `RBFDiffNet`: its arguments, checked, and what follows from them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from rbfdiffnet.forecasting.memory import bytes_of
from rbfdiffnet.forecasting.presets import PRESETS
from rbfdiffnet.panel.calendar import Event, check_days
from rbfdiffnet.series.transforms import check_transform
from rbfdiffnet.support.checks import (
    as_list,
    check_choice,
    check_count,
    check_noise,
    check_number,
    is_number,
)

if TYPE_CHECKING:
    from rbfdiffnet.forecaster import RBFDiffNet

__all__ = [
    "NAME",
    "check_levels",
    "check_options",
    "check_refit",
    "column_names",
    "lags_of",
    "scope_of",
]

NAME = "RBFDiffNet"  # of the column of forecasts
_MOST_STEPS = 1_000_000  # of lags and seasons


def scope_of(model: RBFDiffNet) -> str:
    """Return the scope that was given, or the one that the other arguments ask for."""
    if model.scope is not None:
        return model.scope
    single = (
        PRESETS[model.preset].single,
        not isinstance(model.lags, str),
        model.strategy != "recursive",
        not isinstance(model.transforms, str),
        model.regressor is not None,
        model.past_exog,
        model.noise is not None,
        model.device != "cpu",
    )
    return "local" if any(single) else "auto"


def lags_of(lags: Any) -> tuple[int, ...] | None:
    """Return the lags a network sees, ascending; None where they are to be chosen.

    Examples
    --------
    >>> from rbfdiffnet.forecasting.options import lags_of
    >>> lags_of(3), lags_of([7, 1]), lags_of("auto")
    ((1, 2, 3), (1, 7), None)
    """
    if isinstance(lags, str) and lags == "auto":
        return None
    if is_number(lags, Integral):
        return tuple(range(1, _checked_steps("lags", lags) + 1))
    chosen = as_list("lags", lags, "'auto', a number or a list")
    if not chosen:
        raise ValueError(f"lags must be 'auto', a number or a list; got {lags!r}.")
    return tuple(sorted({_checked_steps("lags", lag) for lag in chosen}))


def check_options(model: RBFDiffNet) -> None:
    """Raise an error that names the first argument that is wrong."""
    _check_columns(model)
    check_choice("preset", model.preset, PRESETS)
    check_choice("strategy", model.strategy, ("recursive", "direct"))
    check_choice("errors", model.errors, ("fallback", "raise"))
    if not (isinstance(model.device, str) and re.fullmatch(r"cpu|cuda(:\d+)?", model.device)):
        raise ValueError(f"device must be 'cpu', 'cuda' or 'cuda:N'; got {model.device!r}.")
    check_noise(model.noise, getattr(model.regressor, "basis", "gaussian"))
    check_choice("scope", scope_of(model), ("auto", "local", "global"))
    _check_together(model)
    if model.season_length is not None:
        _checked_steps("season_length", model.season_length)
    if model.lower is not None and not is_number(model.lower):
        raise ValueError(f"lower must be a finite number or None; got {model.lower!r}.")
    if not (is_number(model.n_jobs, Integral) and (model.n_jobs >= 1 or model.n_jobs == -1)):
        raise ValueError(f"n_jobs must be a positive integer or -1; got {model.n_jobs!r}.")
    bytes_of(model.memory_limit)
    check_number("random_state", model.random_state, at_least=0, integer=True)
    if not isinstance(model.outliers, bool | np.bool_ | None):
        raise ValueError(f"outliers must be True, False or None; got {model.outliers!r}.")
    lags_of(model.lags)
    _check_inputs(model)
    if model.regressor is not None and not (
        hasattr(model.regressor, "_settings") and not isinstance(model.regressor, type)
    ):
        raise ValueError(
            "regressor must be an RBFDiffNetRegressor or an RBFNetworkRegressor; got "
            f"{model.regressor!r}."
        )
    if getattr(model.regressor, "noise", None) is not None:
        raise ValueError(
            "The regressor's noise does not act here: give noise to RBFDiffNet itself, and none to "
            "its regressor."
        )
    _check_transforms(model.transforms)


def check_levels(level: Any) -> dict[str, float]:
    """Return levels between 0 and 1 by their label in percent, ascending.

    Examples
    --------
    >>> from rbfdiffnet.forecasting.options import check_levels
    >>> check_levels([95, 80])
    {'80': 0.8, '95': 0.95}
    """
    if level is None:
        return {}
    given = [level] if is_number(level) else as_list("level", level, "a list of percentages")
    for value in given:
        if not (is_number(value) and 1 <= value < 100):
            raise ValueError(
                f"level must hold percentages from 1 to 100, such as 80; got {value!r}."
            )
    return {f"{value:g}": value / 100.0 for value in sorted({float(v) for v in given})}


def column_names(levels: Sequence[str]) -> list[str]:
    """Return the columns of a forecast, given the labels of its intervals.

    Examples
    --------
    >>> from rbfdiffnet.forecasting.options import column_names
    >>> column_names(["80"])
    ['RBFDiffNet', 'RBFDiffNet-lo-80', 'RBFDiffNet-hi-80']
    """
    return [NAME, *(f"{NAME}-{side}-{label}" for label in levels for side in ("lo", "hi"))]


def check_refit(refit: Any, scope: str, *, or_count: bool = False) -> None:
    """Raise an error unless this can be refitted in that scope, or every so many windows."""
    if isinstance(refit, bool):
        return
    if or_count and not isinstance(refit, str):
        check_count("refit", refit)
    elif not (isinstance(refit, str) and refit == "weights"):
        number = " or a positive integer" if or_count else ""
        raise ValueError(f"refit must be True, False, 'weights'{number}; got {refit!r}.")
    elif scope == "auto":
        raise ValueError(
            "refit='weights' needs scope='global': scope='auto' learns anew from all observations "
            "for every forecast, with refit=True and refit=False alike."
        )
    elif scope == "local":
        raise ValueError(
            "refit='weights' needs scope='global': networks of single series have no statistics "
            "that rows can be added to. Use refit=True."
        )


def _check_columns(model: RBFDiffNet) -> None:
    names = {name: getattr(model, name) for name in ("id_col", "time_col", "target_col")}
    for name, value in names.items():
        if not isinstance(value, str):
            raise ValueError(f"{name} must be the name of a column, a text; got {value!r}.")
    if len({*names.values(), NAME, "cutoff"}) < 5:
        raise ValueError(
            f"id_col, time_col and target_col must differ, also from {NAME!r} and 'cutoff'."
        )


def _check_together(model: RBFDiffNet) -> None:
    """Arguments that do not go together."""
    scope = scope_of(model)
    if model.device != "cpu" and not (model._quick and scope == "local"):
        raise ValueError(
            f"device={model.device!r} is for preset='fast' with scope='local' and its own "
            "regressor; use these, or device='cpu'."
        )
    if model.noise and model.device != "cpu":
        raise ValueError("noise is treated on the processor only; use device='cpu'.")
    if model.noise and (scope, model.strategy) != ("local", "recursive"):
        raise ValueError("noise needs scope='local' and strategy='recursive'.")


def _check_inputs(model: RBFDiffNet) -> None:
    if not all(isinstance(event, Event) for event in model.events):
        raise ValueError("events must be a list of rbfdiffnet.Event(name, dates).")
    if not isinstance(model.calendar, str | None):
        as_list("calendar", model.calendar, "None, 'auto' or a list of parts")
    if not isinstance(model.holidays, str | None):
        raise ValueError(f"holidays must be a country such as 'US'; got {model.holidays!r}.")
    for name in ("holiday_lead", "holiday_lag"):
        check_days(name, getattr(model, name))


def _check_transforms(transforms: Any) -> None:
    if isinstance(transforms, str | None):
        if transforms not in ("auto", None):
            raise ValueError(f"transforms must be 'auto', None or a list; got {transforms!r}.")
        return
    for place, step in enumerate(as_list("transforms", transforms, "'auto', None or a list")):
        check_transform(step)
        if place and isinstance(step, str) and step == "log1p":
            raise ValueError("The transform 'log1p' comes first, before any other.")


def _checked_steps(name: str, value: Any) -> int:
    if check_count(name, value) > _MOST_STEPS:
        raise ValueError(f"{name} must be at most {_MOST_STEPS:,}; got {value!r}.")
    return int(value)
