"""The metrics of utilsforecast, over the rows whose value is known.

As they are, they count a missing value as outside of an interval, and fail on None.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from utilsforecast import losses

from rbfdiffnet.panel.frames import read_target


def _skip_missing(metric: Callable[..., Any]) -> Callable[..., Any]:
    """Return a metric that leaves out rows without a value."""

    @wraps(metric)
    def score(*args: Any, **settings: Any) -> Any:
        given = signature(metric).bind(*args, **settings)
        given.apply_defaults()
        target = given.arguments["target_col"]
        for name in {"df", "train_df"} & set(given.arguments):
            frame = nw.from_native(given.arguments[name], eager_only=True)
            if target in frame.columns:
                given.arguments[name] = _with_numbers(frame, target, skip=name == "df")
        return metric(*given.args, **given.kwargs)

    return score


def _with_numbers(frame: Any, target: str, *, skip: bool) -> Any:
    """Return a native frame whose target is numbers, without rows that have none if asked to."""
    values = read_target(frame[target])
    known = np.isfinite(values)
    if not frame[target].dtype.is_numeric():
        column = nw.new_series(target, values, dtype=nw.Float64, backend=frame.implementation)
        frame = nw.maybe_reset_index(frame).with_columns(column)
    return (frame.filter(known.tolist()) if skip and not known.all() else frame).to_native()


bias, mae, mse = _skip_missing(losses.bias), _skip_missing(losses.mae), _skip_missing(losses.mse)
rmse, mape = _skip_missing(losses.rmse), _skip_missing(losses.mape)
smape, mase = _skip_missing(losses.smape), _skip_missing(losses.mase)
quantile_loss, mqloss = _skip_missing(losses.quantile_loss), _skip_missing(losses.mqloss)
coverage, calibration = _skip_missing(losses.coverage), _skip_missing(losses.calibration)
scaled_crps = _skip_missing(losses.scaled_crps)
