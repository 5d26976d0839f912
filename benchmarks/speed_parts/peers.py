"""Time and error of ours and its peers: 28 days of 30 daily series, one core."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from rbfdiffnet.evaluation.metrics import rmsse
from speed_parts.contenders import OURS, Contender, contenders
from speed_parts.data import H, daily_panel, long_frame
from speed_parts.timing import Table, Timing, in_turn

_WARM_UP_DAYS = 200


def run(options: Namespace) -> list[Table]:
    values, names, about = daily_panel(options.m5)
    if options.quick:
        values, names = values[:3, -500:], names[:3]
        slow = contenders(arima_series=1, mlp_series=0, lstm_series=0)
    else:
        slow = contenders(options.arima_series, options.mlp_series, options.lstm_series)
    rows = compare(values, names, slow, options.repeats)
    title = (
        f"peers: {about}, {len(values)} series of {values.shape[1] - H} days, {H} days ahead, one "
        "core; times_ours compares ms_per_series, ours_rmsse is that of 'ours, fast' on the same "
        "series"
    )
    return [Table("peers", title, rows)]


def compare(
    values: np.ndarray, names: list[str], field: Sequence[Contender], repeats: int
) -> list[dict[str, Any]]:
    """A row for each contender; the first is the one others are compared with."""
    train, test = long_frame(values[:, :-H], names), _test_frame(values, names)
    jobs, frames = {}, {}
    for contender in field:
        if contender.missing() is None:
            chosen = _spread_out(names, contender.n_series)
            frames[contender.name] = train[train["unique_id"].isin(chosen)]
            if contender.compiles:
                contender.forecast(frames[contender.name].head(_WARM_UP_DAYS))
            jobs[contender.name] = partial(contender.forecast, frames[contender.name])
    timings = in_turn(jobs, repeats)
    errors = {name: _errors(timing.result, test, frames[name]) for name, timing in timings.items()}
    base = timings[OURS].median / len(names)
    rows = []
    for contender in field:
        name = contender.name
        if name in timings:
            ours = errors[OURS].loc[errors[name].index]
            rows.append(_row(name, timings[name], errors[name], ours, base, len(names)))
        else:
            rows.append({**dict.fromkeys(_COLUMNS), "contender": name, "note": contender.missing()})
    return rows


_COLUMNS = ("contender", "seconds", "low", "high", "runs", "ms_per_series", "times_ours")
_COLUMNS += ("rmsse", "ours_rmsse", "note")


def _row(
    name: str, timing: Timing, error: pd.Series, ours: pd.Series, base: float, n_series: int
) -> dict[str, Any]:
    factor = n_series / len(error)
    note = "" if factor == 1 else f"{len(error)} of {n_series} series timed, seconds scaled up"
    each = timing.median / len(error)
    seconds = (factor * timing.median, factor * timing.low, factor * timing.high)
    numbers = (len(timing.seconds), 1e3 * each, each / base, float(error.mean()))
    return dict(zip(_COLUMNS, (name, *seconds, *numbers, float(ours.mean()), note), strict=True))


def _spread_out(names: list[str], count: int | None) -> list[str]:
    """Some of the names, evenly spaced."""
    if count is None or count >= len(names):
        return names
    return names[:: len(names) // count][:count]


def _test_frame(values: np.ndarray, names: list[str]) -> pd.DataFrame:
    return long_frame(values[:, -H:], names, first=values.shape[1] - H)


def _errors(forecast: pd.DataFrame, test: pd.DataFrame, train: pd.DataFrame) -> pd.Series:
    """RMSSE of every series forecast."""
    model = forecast.columns[-1]
    joined = test.merge(forecast[["unique_id", "ds", model]], on=["unique_id", "ds"])
    expected = H * train["unique_id"].nunique()
    if len(joined) != expected:
        raise ValueError(f"{model}: {len(joined)} of {expected} forecasts fall on the test days.")
    return rmsse(joined, [model], train).set_index("unique_id")[model]
