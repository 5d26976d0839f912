"""Time and error of ours and its peers, one core, in units of a matrix product of the same run."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pandas as pd

from rbfdiffnet.evaluation.metrics import rmsse
from speed_parts.contenders import OURS, Contender, Job, contenders, slow_contenders
from speed_parts.data import H, daily_panel, long_frame, made_up, made_up_months
from speed_parts.timing import LONG, Table, Timing, in_turn
from speed_parts.unit import UNIT, make_product

_WARM_UP = 200  # values
_TRIED = 3  # series on which a contender is tried, to see whether it can have all of them
_SHORT = 10  # times as many repeats for a single series


def run(options: Namespace) -> list[Table]:
    return [_table(options, name) for name in options.jobs]


def _table(options: Namespace, name: str) -> Table:
    job, repeats = make_job(name, options), options.repeats
    field = contenders(job)
    if name == "m5":
        given = options.arima_series, options.mlp_series, options.lstm_series
        field += slow_contenders(job, *((1, 0, 0) if options.quick else given))
    rows = compare(job, field, repeats * (_SHORT if len(job.names) == 1 else 1))
    if name != "m5":  # errors on made-up series say nothing
        rows = [{k: v for k, v in row.items() if "rmsse" not in k} for row in rows]
    n, length = job.values.shape
    errors = f"; ours_rmsse is that of '{OURS}' on the same series" if name == "m5" else ""
    title = (
        f"peers: {job.about}, {n:,} series of {length - job.h} values, {job.h} steps ahead, one "
        f"core; units are products of two matrices of the size 1,024, times_ours compares "
        f"ms_per_series with that of '{OURS}'{errors}"
    )
    return Table("peers" if name == "m5" else f"peers_{name}", title, rows)


def make_job(name: str, options: Namespace) -> Job:
    """Return M5's level 8, or made-up series: one of 144 months, 366 of 300, 5,000 of 400 days."""
    if name == "m5":
        values, names, about = daily_panel(options.m5)
        if options.quick:
            values, names = values[:3, -500:], names[:3]
        return Job(name, about, values, names, H)
    n, length, h = {"one": (1, 144, 12), "months": (366, 300, 24), "days": (5_000, 400, H)}[name]
    n = min(n, 4) if options.quick else n
    names = [f"item_{i:05d}" for i in range(n)]
    if name == "days":
        return Job(name, "made-up demand by day", made_up(n, length + h), names, h)
    values = made_up_months(n, length + h)
    return Job(name, "made-up demand by month", values, names, h, "MS", 12, 24, "month")


def compare(job: Job, field: Sequence[Contender], repeats: int) -> list[dict[str, Any]]:
    """A row for the matrix product and each contender."""
    names, h = job.names, job.h
    train = long_frame(job.values[:, :-h], names, freq=job.freq)
    test = long_frame(job.values[:, -h:], names, job.values.shape[1] - h, job.freq)
    tasks: dict[str, Callable[[], Any]] = {UNIT: make_product()}
    frames = {}
    for contender in field:
        if contender.missing() is None:
            if contender.compiles:
                contender.forecast(train.head(_WARM_UP))
            frames[contender.name] = _affordable(contender, train, names)
            tasks[contender.name] = partial(contender.forecast, frames[contender.name])
    timings = in_turn(tasks, repeats)
    product = timings.pop(UNIT)
    errors = {name: _errors(t.result, test, frames[name], h) for name, t in timings.items()}
    base = timings[OURS].median / len(names)
    rows = [{**dict.fromkeys(_COLUMNS), **_times(UNIT, product, 1, product)}]
    for contender in field:
        name = contender.name
        if name not in timings:
            rows.append({**dict.fromkeys(_COLUMNS), "contender": name, "note": contender.missing()})
            continue
        count, ours = len(errors[name]), errors[OURS].loc[errors[name].index]
        row = _times(name, timings[name], len(names) / count, product)
        row |= {"ms_per_series": 1e3 * timings[name].median / count}
        row |= {"times_ours": timings[name].median / count / base}
        row |= {"rmsse": float(errors[name].mean()), "ours_rmsse": float(ours.mean())}
        some = "" if count == len(names) else f"{count} of {len(names):,} series, times scaled up"
        rows.append({**row, "note": some})
    return rows


_COLUMNS = ("contender", "seconds", "low", "high", "runs", "units", "ms_per_series", "times_ours")
_COLUMNS += ("rmsse", "ours_rmsse", "note")


def _times(name: str, timing: Timing, factor: float, product: Timing) -> dict[str, Any]:
    seconds = (factor * timing.median, factor * timing.low, factor * timing.high)
    units = seconds[0] / product.median
    return dict(zip(_COLUMNS, (name, *seconds, len(timing.seconds), units), strict=False))


def _affordable(contender: Contender, train: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """The training rows of all series, or of some where all would take more than a minute."""
    count = contender.n_series
    if contender.alone and len(names) > _TRIED:
        few = _choose(train, names, _TRIED)
        start = time.perf_counter()
        contender.forecast(few)
        each = (time.perf_counter() - start) / _TRIED
        count = None if each * len(names) <= LONG else max(int(LONG / 3 / each), _TRIED)
    return _choose(train, names, count)


def _choose(train: pd.DataFrame, names: list[str], count: int | None) -> pd.DataFrame:
    """The rows of some series, evenly spaced; of all where there is no number."""
    if count is None or count >= len(names):
        return train
    return train[train["unique_id"].isin(names[:: len(names) // count][:count])]


def _errors(forecast: pd.DataFrame, test: pd.DataFrame, train: pd.DataFrame, h: int) -> pd.Series:
    """RMSSE of every series forecast."""
    model = forecast.columns[-1]
    joined = test.merge(forecast[["unique_id", "ds", model]], on=["unique_id", "ds"])
    expected = h * train["unique_id"].nunique()
    if len(joined) != expected:
        raise ValueError(f"{model}: {len(joined)} of {expected} forecasts fall on the test dates.")
    return rmsse(joined, [model], train).set_index("unique_id")[model]
