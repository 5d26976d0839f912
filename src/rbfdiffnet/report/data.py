"""Everything the page shows: facts for JSON, and numbers packed into text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.columns import Columns
from rbfdiffnet.frames import read_frame
from rbfdiffnet.grid import to_wall
from rbfdiffnet.report.explanations import add_explanations
from rbfdiffnet.report.grids import frequency_of, scored
from rbfdiffnet.report.packing import Packer
from rbfdiffnet.report.tables import Table, read_table
from rbfdiffnet.report.verdict import verdict
from rbfdiffnet.scoring import BASELINE, Model, Scores, read_models

__all__ = ["payload"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Compressed bytes that make a file of 14 MB; the most and the fewest values of a history.
_MOST_BYTES, _MOST_VALUES, _LEAST_VALUES = 10_000_000, 20_000, 60
_DAY = 86_400_000  # milliseconds
_FALLBACK = "forecast "  # how the actions of series without a model begin


def payload(
    history: Any,
    forecasts: Any,
    *,
    columns: Columns,
    backtest: Any = None,
    explanations: Mapping[str, Any] | None = None,
    notes: Any = None,
    season_length: int | None = None,
    freq: Any = None,
) -> tuple[dict[str, Any], str]:
    """Return what the page shows.

    Parameters
    ----------
    history, forecasts, backtest, explanations, notes, season_length, freq
        As in `rbfdiffnet.report.write_report`.
    columns : Columns

    Returns
    -------
    facts : dict
        Text and few numbers; goes into JSON.
    numbers : str
        Series and forecasts, as `Packer` makes it.
    """
    ids: dict[str, int] = {}
    past = read_table(history, "history", columns, ids, [columns.target], grow=True)
    ahead = _without(read_table(forecasts, "forecasts", columns, ids), columns.target)
    _check_times(past, ahead, "forecasts")
    models = read_models(ahead.columns, "forecasts")
    scores, tested = None, None
    if backtest is not None and len(backtest):
        tested = read_table(backtest, "backtest", columns, ids)
        _check_times(past, tested, "backtest")
        _check_backtest(tested, columns)
    frequency = frequency_of([past, ahead, *([] if tested is None else [tested])], freq)
    season = season_length or (1 if frequency is None else frequency.season_length)
    if tested is not None:
        tested, scores = scored(tested, past, columns.target, frequency, season)
        tested = _without(tested, columns.target)
        models = _together(models, scores.models)
    known = [model.name for model in scores.models] if scores else []
    main = next((m.name for m in models if m.name in known), models[0].name)

    recent = _latest(past, _MOST_VALUES)
    axis = np.unique(np.concatenate([recent.times, ahead.times]))
    if tested is not None and tested.cutoffs is not None:
        axis = np.unique(np.concatenate([axis, tested.times, tested.cutoffs]))
    packer = Packer()
    shown = _shown(past, axis)
    packer.doubles("axis", shown)
    base = _bases(recent, columns.target, len(ids))
    packer.doubles("base", base)
    _pack_table(packer, "forecasts", ahead, axis, base)
    if tested is not None:
        _pack_table(packer, "backtest", tested, axis, base)
    if scores is not None:
        for j, model in enumerate(scores.models):
            packer.floats(f"mase/{model.name}", scores.mase[:, j])
            packer.floats(f"mae/{model.name}", scores.mae[:, j])
    explained = add_explanations(packer, explanations, columns, ids, axis)
    most = _room(recent, columns.target, packer.size(), len(ids))
    kept = _latest(recent, most)
    _pack_table(packer, "history", kept, axis, base)
    facts = {
        "ids": list(ids),
        "dates": ("times" if np.any(shown % _DAY) else "days") if past.dates else None,
        "target": columns.target,
        "models": [
            {
                "name": model.name,
                "levels": model.levels,
                "ahead": model.name in ahead.columns,
            }
            for model in models
        ],
        "main": main,
        "season": season,
        "span": _shown(past, np.array([past.times.min(), past.times.max()])).tolist(),
        "steps": int(np.bincount(ahead.series).max()),
        "cut": most if len(kept.series) < len(past.series) else None,
        "scores": None if scores is None else _accuracy(scores),
        "verdict": asdict(verdict(scores, main, season, len(ids))),
        "notes": _notes(notes, columns, ids),
        "explained": explained,
        "sections": packer.sections,
    }
    return facts, packer.text()


def _without(table: Table, name: str) -> Table:
    columns = {key: values for key, values in table.columns.items() if key != name}
    return Table(table.series, table.times, columns, table.dates, table.zone, table.cutoffs)


def _together(models: Sequence[Model], others: Sequence[Model]) -> list[Model]:
    """Models of both lists, with the levels of both."""
    levels: dict[str, set[str]] = {}
    for model in (*models, *others):
        levels.setdefault(model.name, set()).update(model.levels)
    return [Model(name, tuple(sorted(found, key=float))) for name, found in levels.items()]


def _shown(table: Table, times: Ints) -> npt.NDArray[Any]:
    """Return whole numbers as they are, and dates as milliseconds of the clock on the wall."""
    return to_wall(times, table.zone) / 1e6 if table.dates else times


def _check_times(past: Table, other: Table, what: str) -> None:
    if past.dates != other.dates:
        kinds = {True: "dates", False: "whole numbers"}
        raise ValueError(
            f"Times are {kinds[past.dates]} in history but {kinds[other.dates]} in {what}; use "
            "the same in both."
        )


def _check_backtest(table: Table, columns: Columns) -> None:
    for name, found in (("cutoff", table.cutoffs), (columns.target, table.columns)):
        if found is None or (found is table.columns and name not in table.columns):
            raise ValueError(
                f"backtest has no column {name!r}; give what RBFDiffNet.cross_validation returns, "
                "with columns of other models if you like."
            )


def _latest(past: Table, most: int) -> Table:
    """Return so many of the latest values of every series."""
    ends = np.searchsorted(past.series, past.series, side="right")
    return past.taken(ends - np.arange(len(ends)) <= most)


def _room(past: Table, target: str, used: int, n: int) -> int:
    """Return how many values of every history fit, judged by how well the last compress."""
    sample = Packer()
    last = _latest(past, _LEAST_VALUES).columns[target]
    sample.floats("sample", last)
    values = (_MOST_BYTES - used) * len(last) / sample.size()
    return max(_LEAST_VALUES, min(_MOST_VALUES, int(values / n)))


def _bases(past: Table, target: str, n: int) -> Array:
    """Return what to take off series that move little around a far level, 0 for others."""
    y = past.columns[target]
    known = np.isfinite(y)
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, past.series[known], y[known])
    np.maximum.at(high, past.series[known], y[known])
    far = np.isfinite(low) & (high - low < 0.1 * np.maximum(np.abs(low), np.abs(high)))
    return np.where(far, np.where(far, low, 0.0), 0.0)


def _pack_table(packer: Packer, name: str, table: Table, axis: Ints, base: Array) -> None:
    """Rows by series: how many, where on the axis as steps from the row before, the numbers."""
    packer.counts(f"{name}/rows", np.bincount(table.series, minlength=len(base)))
    first = np.diff(table.series, prepend=-1) != 0
    places = {"step": table.times, **({} if table.cutoffs is None else {"cutoff": table.cutoffs})}
    for key, times in places.items():
        place = np.searchsorted(axis, times)
        step = np.where(first, place, np.diff(place, prepend=0))
        packer.counts(f"{name}/{key}", step % 2**32)  # back to an earlier window is negative
    for column, values in table.columns.items():
        packer.floats(f"{name}:{column}", values - base[table.series])


def _accuracy(scores: Scores) -> dict[str, Any]:
    total = scores.total()
    return {
        "windows": scores.windows,
        "steps": scores.steps,
        "rows": int(scores.rows.sum()),
        "series": scores.n_scored,
        "models": [
            {
                "name": model.name,
                **{key: _number(values[j]) for key, values in total.items()},
                "coverage": {
                    level: _number(scores.coverage(model.name, level)) for level in model.levels
                },
            }
            for j, model in enumerate(scores.models)
        ],
        "baseline": BASELINE,
    }


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None


def _notes(notes: Any, columns: Columns, ids: dict[str, int]) -> list[dict[str, Any]]:
    """What happened to series: fallbacks first."""
    if notes is None:
        return []
    frame = read_frame(notes, [columns.id, "problem", "action"])
    found = [
        {
            "id": str(name),
            "series": ids.get(str(name)),
            "problem": str(problem),
            "action": str(action),
            "fallback": str(action).startswith(_FALLBACK),
        }
        for name, problem, action in zip(
            *(frame[key].to_list() for key in (columns.id, "problem", "action")), strict=True
        )
    ]
    return sorted(found, key=lambda note: not note["fallback"])
