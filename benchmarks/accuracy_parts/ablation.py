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
from rbfdiffnet.models.stack import lesson, members, mixing, windows
from rbfdiffnet.models.stack.direct import learn_direct


def without(names: Sequence[str], *arguments: Any) -> pd.DataFrame:
    """Forecast without some members; the others are as before."""
    learn = lesson.learn_windows

    def others(*inputs: Any, **options: Any) -> Any:
        found = learn(*inputs, **options)
        return {key: (_leave_out(window, names), own) for key, (window, own) in found.items()}

    n_first = sum(name not in names for name in (members.PRETRAINED, members.CORRECTED))
    with (
        patch.object(lesson, "learn_windows", others),
        patch.object(lesson, "N_FIRST", n_first),
    ):
        return ours(*arguments, scope="auto")


def _leave_out(window: windows.Window, names: Sequence[str]) -> windows.Window:
    kept = {name: each for name, each in window.forecasts.items() if name not in names}
    return replace(window, forecasts=kept or window.forecasts)


def changed(module: Any, name: str, value: Any, *arguments: Any) -> pd.DataFrame:
    """Forecast with something else in the place of a name of a module."""
    with patch.object(module, name, value):
        return ours(*arguments, scope="auto")


def equal(errors: np.ndarray, *_: Any, **__: Any) -> np.ndarray:
    """The same weight for all ways that are weighed against each other."""
    return np.full(len(errors), 1.0 / len(errors))


def no_pooled_effects(*_: Any, **__: Any) -> tuple[None, None]:
    """Leave the effects of inputs to each series."""
    return None, None


linear_direct = partial(learn_direct, n_centers=0)
ABLATIONS: dict[str, Method] = {
    "stack, no pretrained network": partial(without, ["pretrained", "corrected"]),
    "stack, no correction": partial(without, ["corrected"]),
    "stack, no direct network": partial(without, ["direct"]),
    "stack, direct network linear": partial(changed, members, "learn_direct", linear_direct),
    "stack, no damped trend": partial(without, ["damped trend"]),
    "stack, equal weights": partial(changed, mixing, "fit_weights", equal),
    "stack, own effects": partial(changed, windows, "fit_pooled_effects", no_pooled_effects),
}
