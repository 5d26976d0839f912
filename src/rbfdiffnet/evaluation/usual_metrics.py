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
from rbfdiffnet.support.arrays import Mask


def _skip_missing(metric: Callable[..., Any]) -> Callable[..., Any]:
    """Return a metric that leaves out rows without a value; of series without any it is NaN.

    Lazy frames are scored as they are.
    """

    @wraps(metric)
    def score(*args: Any, **settings: Any) -> Any:
        given = signature(metric).bind(*args, **settings)
        given.apply_defaults()
        own, target = given.arguments, given.arguments["target_col"]
        keys: Any = None
        for name in {"df", "train_df"} & set(own):
            frame = nw.from_native(own[name])
            if isinstance(frame, nw.LazyFrame) or target not in frame.columns:
                continue
            frame, known = _with_numbers(frame, target)
            if name == "df" and not known.all():
                groups = [key for key in (own["id_col"], "cutoff") if key in frame.columns]
                keys, frame = frame.select(groups).unique(), frame.filter(known.tolist())
            own[name] = frame.to_native()
        found = metric(*given.args, **given.kwargs)
        return found if keys is None else _with_all_series(found, keys)

    return score


def _with_numbers(frame: Any, target: str) -> tuple[Any, Mask]:
    """Return a frame whose target is numbers, and which of them (n,) are known."""
    values = read_target(frame[target])
    if not frame[target].dtype.is_numeric():
        column = nw.new_series(target, values, dtype=nw.Float64, backend=frame.implementation)
        frame = nw.maybe_reset_index(frame).with_columns(column)
    return frame, ~np.isnan(values)


def _with_all_series(found: Any, keys: Any) -> Any:
    """Return scores with a row for every series (and cutoff), NaN where nothing was known."""
    scores = nw.from_native(found, eager_only=True)
    groups = [key for key in keys.columns if key in scores.columns]
    every = keys.select(groups).unique().sort(groups)
    return every.join(scores, on=groups, how="left").to_native() if groups else found


bias, mae, mse = _skip_missing(losses.bias), _skip_missing(losses.mae), _skip_missing(losses.mse)
rmse, mape = _skip_missing(losses.rmse), _skip_missing(losses.mape)
smape, mase = _skip_missing(losses.smape), _skip_missing(losses.mase)
quantile_loss, mqloss = _skip_missing(losses.quantile_loss), _skip_missing(losses.mqloss)
coverage, calibration = _skip_missing(losses.coverage), _skip_missing(losses.calibration)
scaled_crps = _skip_missing(losses.scaled_crps)
