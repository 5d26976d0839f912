"""Everything the page shows: facts for JSON, and numbers packed into text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.evaluation import ModelColumns, Scores, find_models
from rbfdiffnet.panel.columns import Columns
from rbfdiffnet.panel.frames import read_frame
from rbfdiffnet.panel.grid import to_wall
from rbfdiffnet.panel.weekdays import closed_table, is_daily, name_weekdays, weekdays_of
from rbfdiffnet.report.choice import MOST_SERIES, choose_series
from rbfdiffnet.report.explanations import add_explanations
from rbfdiffnet.report.grids import frequency_of, scored
from rbfdiffnet.report.packing import Packer
from rbfdiffnet.report.tables import Table, read_table
from rbfdiffnet.report.verdict import verdict
from rbfdiffnet.support.checks import check_count

__all__ = ["Whole", "payload"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Compressed bytes that make a file of 14 MB; the most and the fewest values of a history.
_MOST_BYTES, _MOST_VALUES, _LEAST_VALUES = 10_000_000, 20_000, 60
_MOST_NOTES = 5000
_DAY = 86_400_000  # milliseconds
_FALLBACK = "forecast "  # how the actions of series without a model begin


@dataclass(frozen=True)
class Whole:
    """The panel that the series of a report were chosen from, and its backtest.

    Attributes
    ----------
    n_series : int
    scores : Scores or None
        Of some or all of them, whether the report shows them or not.
    ids : sequence of str
        Which series the scores are of.
    remark : str
        What to add to the verdict.
    source : str
        What was read from where, in sentences.
    """

    n_series: int
    scores: Scores | None = None
    ids: Sequence[str] = ()
    remark: str = ""
    source: str = ""


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
    whole: Whole | None = None,
) -> tuple[dict[str, Any], str]:
    """Return what the page shows.

    Parameters
    ----------
    history, forecasts, backtest, explanations, notes, season_length, freq
        As in `rbfdiffnet.report.write_report`.
    columns : Columns
    whole : Whole, optional
        Where the frames are of some series of a larger panel only.

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
    models: Sequence[ModelColumns] = find_models(ahead.columns, "forecasts")
    tested = None
    if backtest is not None and len(read_frame(backtest, [columns.id])):
        tested = read_table(backtest, "backtest", columns, ids)
        _check_times(past, tested, "backtest")
        _check_backtest(tested, columns)
    frequency = frequency_of([past, ahead, *([] if tested is None else [tested])], freq)
    season = 1 if frequency is None else frequency.season_length
    if season_length is not None:
        season = check_count("season_length", season_length)
    whole = whole or Whole(len(ids))
    if tested is not None and whole.scores is None:
        tested, found = scored(tested, past, columns.target, frequency, season)
        whole = replace(whole, scores=found, ids=list(ids))
    scores = whole.scores
    if tested is not None and scores is not None:
        tested = _without(tested, columns.target)
        models = _together(models, scores.models)
    known = [model.name for model in scores.models] if scores else []
    main = next((m.name for m in models if m.name in known), models[0].name)
    opinion = verdict(scores, main, season, whole.n_series)
    remarks = [whole.remark] if whole.remark else []
    if past.dates and is_daily(frequency):
        remarks += _closed(past, ahead, columns.target, len(ids))

    errors = _by_id(whole, ids)
    if len(ids) > MOST_SERIES:
        wanted = _explained_ids(explanations, columns, ids)
        main_errors = errors[f"mase/{main}"] if scores and main in known else None
        chosen = choose_series(len(ids), main_errors, wanted)
        new = np.full(len(ids), -1)
        new[chosen] = np.arange(len(chosen))
        names = list(ids)
        ids = {names[i]: k for k, i in enumerate(chosen)}
        past, ahead = _renumbered(past, new), _renumbered(ahead, new)
        tested = None if tested is None else _renumbered(tested, new)
        errors = {key: values[chosen] for key, values in errors.items()}

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
    for key, values in errors.items():
        packer.floats(key, values)
    explained = add_explanations(packer, explanations, columns, ids, axis)
    most = _room(recent, columns.target, packer.size(), len(ids))
    kept = _latest(recent, most)
    _pack_table(packer, "history", kept, axis, base)
    remembered = _notes(notes, columns, ids)
    facts = {
        "ids": list(ids),
        "n_series": whole.n_series,
        "source": whole.source,
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
        "verdict": asdict(replace(opinion, more=[*opinion.more, *remarks])),
        "notes": remembered[:_MOST_NOTES],
        "n_notes": len(remembered),
        "n_fallbacks": sum(note["fallback"] for note in remembered),
        "explained": explained,
        "sections": packer.sections,
    }
    return facts, packer.text()


def _closed(past: Table, ahead: Table, target: str, n: int) -> list[str]:
    """Say which weekdays never have a value, and whether they are forecast."""
    known = np.isfinite(past.columns[target])
    dates = to_wall(past.times[known], past.zone).view("M8[ns]")
    closed = closed_table(past.series[known], dates, n)
    weekdays = weekdays_of(to_wall(ahead.times, ahead.zone).view("M8[ns]"))
    forecast = np.zeros(n, dtype=bool)
    forecast[ahead.series[closed[ahead.series, weekdays]]] = True
    counts = Counter(
        (name_weekdays(closed[i]), bool(forecast[i])) for i in np.flatnonzero(closed.any(axis=1))
    )
    return [
        f"{'The series' if n == 1 else f'{count:,} of {n:,} series'} never "
        f"{'has' if 1 in (n, count) else 'have'} a value on {days}: "
        + (
            "forecasts of these days could not be checked."
            if shown
            else "these days are not forecast."
        )
        for (days, shown), count in counts.most_common(3)
    ]


def _by_id(whole: Whole, ids: Mapping[str, int]) -> dict[str, Array]:
    """Return the errors of the series in the report, by measure and model."""
    if whole.scores is None:
        return {}
    rows = np.full(len(ids), -1)
    for row, name in enumerate(whole.ids):
        if name in ids:
            rows[ids[name]] = row
    return {
        f"{measure}/{model.name}": np.where(rows >= 0, values[rows, j], np.nan)
        for j, model in enumerate(whole.scores.models)
        for measure, values in (("mase", whole.scores.mase), ("mae", whole.scores.mae))
    }


def _explained_ids(
    explanations: Mapping[str, Any] | None, columns: Columns, ids: Mapping[str, int]
) -> set[int]:
    terms = (explanations or {}).get("terms")
    if terms is None:
        return set()
    names = {str(name) for name in read_frame(terms, [columns.id])[columns.id].unique().to_list()}
    return {ids[name] for name in names if name in ids}


def _renumbered(table: Table, new: Ints) -> Table:
    """Keep the series that have a new number."""
    kept = table.taken(new[table.series] >= 0)
    return replace(kept, series=new[kept.series])


def _without(table: Table, name: str) -> Table:
    columns = {key: values for key, values in table.columns.items() if key != name}
    return replace(table, columns=columns)


def _together(models: Sequence[ModelColumns], others: Sequence[ModelColumns]) -> list[ModelColumns]:
    """Models of both lists, with the levels of both."""
    levels: dict[str, set[str]] = {}
    for model in (*models, *others):
        levels.setdefault(model.name, set()).update(model.levels)
    return [ModelColumns(name, tuple(sorted(found, key=float))) for name, found in levels.items()]


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
    size = np.maximum(np.abs(low), np.abs(high))
    far = np.isfinite(low) & (0.5 * high - 0.5 * low < 0.05 * size)  # halves do not overflow
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
