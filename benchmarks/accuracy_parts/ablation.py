"""The stack without one of its parts: what each of them buys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from accuracy_parts.ours import ours
from accuracy_parts.single import Method
from rbfdiffnet.models.stack import members, mixing, model, windows
from rbfdiffnet.models.stack.direct import forecast_direct


def without(names: Sequence[str], *arguments: Any) -> pd.DataFrame:
    """Forecast without some members; the others are as before."""
    look = windows.Window.of

    def others(*inputs: Any, **options: Any) -> windows.Window:
        window = look(*inputs, **options)
        kept = {name: each for name, each in window.forecasts.items() if name not in names}
        return replace(window, forecasts=kept or window.forecasts)

    n_first = sum(name not in names for name in (members.PRETRAINED, members.CORRECTED))
    with (
        patch.object(windows.Window, "of", others),
        patch.object(model, "N_FIRST", n_first),
    ):
        return ours(*arguments, scope="auto")


def changed(module: Any, name: str, value: Any, *arguments: Any) -> pd.DataFrame:
    """Forecast with something else in the place of a name of a module."""
    with patch.object(module, name, value):
        return ours(*arguments, scope="auto")


def equal(errors: np.ndarray, *_: Any, **__: Any) -> np.ndarray:
    """The same weight for all ways that are weighed against each other."""
    return np.full(len(errors), 1.0 / len(errors))


def no_pooled_effects(*_: Any, **__: Any) -> None:
    """Leave the effects of inputs to each series."""


linear_direct = partial(forecast_direct, n_centers=0)
ABLATIONS: dict[str, Method] = {
    "stack, no pretrained network": partial(without, ["pretrained", "corrected"]),
    "stack, no correction": partial(without, ["corrected"]),
    "stack, no direct network": partial(without, ["direct"]),
    "stack, direct network linear": partial(changed, members, "forecast_direct", linear_direct),
    "stack, no damped trend": partial(without, ["damped trend"]),
    "stack, equal weights": partial(changed, mixing, "fit_weights", equal),
    "stack, own effects": partial(changed, windows, "fit_pooled_effects", no_pooled_effects),
}
