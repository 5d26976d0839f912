"""Everything the page shows: facts for JSON, and numbers packed into text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from rbfdiffnet.evaluation import (
    BacktestRows,
    Scores,
    find_models,
    score_models,
    simple_forecasts,
)
from rbfdiffnet.panel.calendar import find_closed_weekdays, is_daily, name_weekdays, weekday_numbers
from rbfdiffnet.panel.frames import ColumnNames, read_frame
from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.panel.grid import to_wall
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.report.anomalies import pack_anomalies, read_anomalies
from rbfdiffnet.report.packing import Packer, pack_explanations
from rbfdiffnet.report.plain import describe_extent, show_forecasts, show_rows
from rbfdiffnet.report.tables import Table, find_frequency, read_table, to_json
from rbfdiffnet.report.tree import Tree
from rbfdiffnet.report.verdict import verdict
from rbfdiffnet.support.arrays import Array, Ints
from rbfdiffnet.support.checks import check_count, check_size
from rbfdiffnet.support.notes import FALLBACK_ACTIONS

#: The most series that a report shows.
MOST_SERIES = 5000

# Compressed bytes that make a file of 14 MB; the most and the fewest values of a history.
_MOST_BYTES, _MOST_VALUES, _LEAST_VALUES = 10_000_000, 20_000, 60
_MOST_NOTES = 5000
_DAY = 86_400_000  # milliseconds


@dataclass(frozen=True)
class FullPanel:
    """The panel that the series of a report were chosen from, and its backtest.

    ``scores`` are those of the series ``ids``, whether the report shows these series or not.
    ``remark`` is added to the verdict, and ``source`` says what was read from where.
    """

    n_series: int
    scores: Scores | None = None
    ids: Sequence[str] = ()
    remark: str = ""
    source: str = ""


@dataclass(frozen=True)
class _Tables:
    """History, forecasts, backtest, judged values and outliers, with series numbered by ``ids``.

    Values were judged by intervals of ``level``, in percent.
    """

    ids: dict[str, int]
    past: Table
    ahead: Table
    backtest: Table | None
    judged: Table | None = None
    outliers: Table | None = None
    level: str = ""

    @classmethod
    def read(
        cls,
        history: Any,
        forecasts: Any,
        backtest: Any,
        anomalies: Any,
        outliers: Any,
        columns: ColumnNames,
    ) -> _Tables:
        ids: dict[str, int] = {}
        past = read_table(history, "history", columns, ids, [columns.target], grow=True)
        ahead = read_table(forecasts, "forecasts", columns, ids).drop(columns.target)
        find_models(ahead.columns, "forecasts")  # there is one, and its intervals have both ends
        tables = {"forecasts": ahead}
        if backtest is not None and len(read_frame(backtest, [columns.id])):
            names = getattr(backtest, "columns", ())
            for name in ("cutoff", columns.target):
                if name not in names:
                    raise ValueError(
                        f"backtest has no column {name!r}; give what RBFDiffNet.cross_validation "
                        "returns, with columns of other models if you like."
                    )
            tables["backtest"] = read_table(backtest, "backtest", columns, ids)
        level = ""
        if anomalies is not None and len(anomalies):
            level, tables["anomalies"] = read_anomalies(anomalies, columns, ids)
        if outliers is not None and len(outliers):
            tables["outliers"] = read_table(outliers, "outliers", columns, ids, [])
        kinds = {True: "dates", False: "whole numbers"}
        for what, table in tables.items():
            if past.dates != table.dates:
                raise ValueError(
                    f"Times are {kinds[past.dates]} in history but {kinds[table.dates]} in {what}; "
                    "use the same in both."
                )
        backtest, judged, found = map(tables.get, ("backtest", "anomalies", "outliers"))
        return cls(ids, past, ahead, backtest, judged, found, level)

    def present(self) -> list[Table]:
        return [table for table in (self.past, self.ahead, self.backtest) if table is not None]

    def forecast_columns(self) -> list[str]:
        """Return the columns of forecasts and backtest, without targets."""
        tested = {} if self.backtest is None else self.backtest.columns
        return list(dict.fromkeys([*self.ahead.columns, *tested]))

    def choose(self, chosen: Ints) -> _Tables:
        """Keep some series, in the order given."""
        numbers = np.full(len(self.ids), -1)
        numbers[chosen] = np.arange(len(chosen))
        names = list(self.ids)
        others = (self.backtest, self.judged, self.outliers)
        backtest, judged, outliers = (own and own.renumber(numbers) for own in others)
        return _Tables(
            {names[i]: k for k, i in enumerate(chosen)},
            self.past.renumber(numbers),
            self.ahead.renumber(numbers),
            backtest,
            judged,
            outliers,
            self.level,
        )


def payload(
    history: Any,
    forecasts: Any,
    *,
    columns: ColumnNames,
    backtest: Any = None,
    explanations: Mapping[str, Any] | None = None,
    notes: Any = None,
    anomalies: Any = None,
    outliers: Any = None,
    season_length: int | None = None,
    freq: Any = None,
    full: FullPanel | None = None,
    tree: Tree | None = None,
    totals: Any = None,
) -> tuple[dict[str, Any], str]:
    """Return what the page shows: text and few numbers for JSON, and all others packed.

    The arguments are those of `rbfdiffnet.report.write_report`. ``full`` is given where the frames
    are of some series of a larger panel only, ``tree`` where some series are sums of others,
    ``totals`` (a pandas frame) where sums of forecasts are shown, too. What is ``plain`` is for
    HTML instead of JSON.
    """
    tables = _Tables.read(history, forecasts, backtest, anomalies, outliers, columns)
    frequency = find_frequency(tables.present(), freq)
    season = 1 if frequency is None else frequency.season_length
    if season_length is not None:
        season = check_count("season_length", season_length)
    full = full or FullPanel(len(tables.ids))
    tables, full = _score(tables, full, columns.target, frequency, season)
    models = find_models(tables.forecast_columns(), "forecasts")
    remarks = [full.remark] if full.remark else []
    if tables.past.dates and is_daily(frequency):
        remarks += _describe_closed_days(tables, columns.target)
    accuracy = _judge(full, [model.name for model in models], remarks)

    errors = _errors_by_series(full, tables.ids)
    groups = tree and tree.describe(tables.ahead, tables.ids, accuracy["main"], errors)
    if len(tables.ids) > MOST_SERIES:
        wanted = _explained_series(explanations, columns, tables.ids)
        wanted |= {tables.ids[row["name"]] for row in groups["rows"]} if groups else set()
        chosen = choose_series(len(tables.ids), errors.get(f"mase/{accuracy['main']}"), wanted)
        tables = tables.choose(chosen)
        errors = {key: values[chosen] for key, values in errors.items()}

    packed, numbers = _pack(tables, columns, errors, explanations)
    past, ahead = tables.past, tables.ahead
    steps = int(np.bincount(ahead.series).max())
    facts = {
        "ids": list(tables.ids),
        "n_series": full.n_series,
        "source": full.source,
        "target": columns.target,
        "models": [
            {"name": model.name, "levels": model.levels, "ahead": model.name in ahead.columns}
            for model in models
        ],
        "season": season,
        "span": past.displayed(np.array([past.times.min(), past.times.max()])).tolist(),
        "steps": steps,
        **_read_notes(notes, columns, tables.ids),
        "tree": groups,
        **accuracy,
        **packed,
        "plain": {
            "extent": describe_extent(full.n_series, past, steps),
            "forecasts": show_forecasts(ahead, list(tables.ids)),
            "totals": None if totals is None else show_rows(totals),
        },
    }
    return facts, numbers


def _judge(full: FullPanel, models: list[str], remarks: Sequence[str]) -> dict[str, Any]:
    """Return the main model, the accuracy of all models, and the verdict."""
    scores = full.scores
    scored = scores.names if scores else []
    main = next((name for name in models if name in scored), models[0])
    opinion = verdict(scores, main, full.n_series)
    return {
        "main": main,
        "scores": None if scores is None else _accuracy(scores),
        "verdict": asdict(replace(opinion, more=[*opinion.more, *remarks])),
    }


def choose_series(n: int, errors: Array | None = None, wanted: Collection[int] = ()) -> Ints:
    """Choose which of n series to show: wanted ones, the best, the worst, and others evenly spread.

    ``errors`` (n,) are NaN where not known. The result is ascending, has at most `MOST_SERIES`
    series, and is always the same for the same arguments.
    """
    if n <= MOST_SERIES:
        return np.arange(n)
    order = [*sorted(wanted), *range(20)]
    if errors is not None:
        ranking = np.argsort(errors, kind="stable")[: np.isfinite(errors).sum()]
        tenth = MOST_SERIES // 10
        order += [*ranking[::-1][:tenth].tolist(), *ranking[:tenth].tolist()]
    taken = list(dict.fromkeys(order))[:MOST_SERIES]
    rest = np.setdiff1d(np.arange(n), taken)
    spread = np.linspace(0, len(rest) - 1, MOST_SERIES - len(taken)).round().astype(np.int64)
    return np.sort(np.concatenate([np.array(taken, dtype=np.int64), rest[spread]]))


def score_backtest(
    backtest: Table, history: Table, target: str, frequency: Frequency | None, season: int
) -> tuple[Table, Scores]:
    """Add simple rules to a backtest, unless they are there, and score all models.

    The series are put on regular grids, where missing rows are missing values.
    """
    if frequency is None:
        raise ValueError("The frequency cannot be told from the dates of history; pass freq.")
    for name, values in backtest.columns.items():
        check_size(f"Column {name!r} of backtest", values[np.isfinite(values)])
    panel = Panel.from_frame(history.key_frame(y=history.columns[target]), freq=frequency)
    windows = BacktestRows.locate(panel, backtest.key_frame())
    rules = simple_forecasts(panel, windows, season)
    rules = {name: values for name, values in rules.items() if name not in backtest.columns}
    backtest = replace(backtest, columns={**backtest.columns, **rules})
    names = [name for name in backtest.columns if name != target]
    models = find_models(names, "backtest")
    return backtest, score_models(panel, windows, backtest.columns, target, models, season)


def _score(
    tables: _Tables, full: FullPanel, target: str, frequency: Frequency | None, season: int
) -> tuple[_Tables, FullPanel]:
    """Score the backtest, if there is one and it is not scored already, and drop its targets."""
    backtest = tables.backtest
    if backtest is None:
        return tables, full
    if full.scores is None:
        backtest, scores = score_backtest(backtest, tables.past, target, frequency, season)
        full = replace(full, scores=scores, ids=list(tables.ids))
    return replace(tables, backtest=backtest.drop(target)), full


def _pack(
    tables: _Tables,
    columns: ColumnNames,
    errors: Mapping[str, Array],
    explanations: Mapping[str, Any] | None,
) -> tuple[dict[str, Any], str]:
    """Pack all numbers; return facts about them, and the text they are packed into."""
    past, ahead, backtest = tables.past, tables.ahead, tables.backtest
    recent = past.latest(_MOST_VALUES)
    axis = np.unique(np.concatenate([recent.times, ahead.times]))
    if backtest is not None and backtest.cutoffs is not None:
        axis = np.unique(np.concatenate([axis, backtest.times, backtest.cutoffs]))
    packer = Packer()
    displayed = past.displayed(axis)
    packer.add_doubles("axis", displayed)
    base = _base_levels(recent, columns.target, len(tables.ids))
    packer.add_doubles("base", base)
    packer.add_table("forecasts", ahead, axis, base)
    if backtest is not None:
        packer.add_table("backtest", backtest, axis, base)
    for key, values in errors.items():
        packer.add_floats(key, values)
    explained = pack_explanations(packer, explanations, columns, tables.ids, axis)
    anomalies = None
    if tables.judged is not None:
        anomalies = pack_anomalies(packer, tables.level, tables.judged, columns.target, axis, base)
    if tables.outliers is not None:
        drawn = tables.outliers.take(np.isin(tables.outliers.times, axis))
        packer.add_table("outliers", drawn, axis, base)
    most = _count_values_that_fit(recent, columns.target, packer.size(), len(tables.ids))
    kept = recent.latest(most)
    packer.add_table("history", kept, axis, base)
    facts = {
        "dates": ("times" if np.any(displayed % _DAY) else "days") if past.dates else None,
        "cut": most if len(kept.series) < len(past.series) else None,
        "explained": explained,
        "anomalies": anomalies,
        "sections": packer.sections,
    }
    return facts, packer.finish()


def _describe_closed_days(tables: _Tables, target: str) -> list[str]:
    """Say which weekdays never have a value, and whether they are forecast."""
    past, ahead, n = tables.past, tables.ahead, len(tables.ids)
    known = np.isfinite(past.columns[target])
    dates = to_wall(past.times[known], past.zone).view("M8[ns]")
    closed = find_closed_weekdays(past.series[known], dates, n)
    weekdays = weekday_numbers(to_wall(ahead.times, ahead.zone).view("M8[ns]"))
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


def _errors_by_series(full: FullPanel, ids: Mapping[str, int]) -> dict[str, Array]:
    """Return the errors of the series in the report, by measure and model."""
    if full.scores is None:
        return {}
    rows = np.full(len(ids), -1)
    for row, name in enumerate(full.ids):
        if name in ids:
            rows[ids[name]] = row
    return {
        f"{measure}/{model.name}": np.where(rows >= 0, values[rows, j], np.nan)
        for j, model in enumerate(full.scores.models)
        for measure, values in (("mase", full.scores.mase), ("mae", full.scores.mae))
    }


def _explained_series(
    explanations: Mapping[str, Any] | None, columns: ColumnNames, ids: Mapping[str, int]
) -> set[int]:
    terms = (explanations or {}).get("terms")
    if terms is None:
        return set()
    names = {str(name) for name in read_frame(terms, [columns.id])[columns.id].unique().to_list()}
    return {ids[name] for name in names if name in ids}


def _count_values_that_fit(past: Table, target: str, used: int, n: int) -> int:
    """Return how many values of every history fit, judged by how well the last ones compress."""
    sample = Packer()
    last = past.latest(_LEAST_VALUES).columns[target]
    sample.add_floats("sample", last)
    values = (_MOST_BYTES - used) * len(last) / sample.size()
    return max(_LEAST_VALUES, min(_MOST_VALUES, int(values / n)))


def _base_levels(past: Table, target: str, n: int) -> Array:
    """Return what to take off series that move little around a far level, 0 for others, (n,)."""
    y = past.columns[target]
    known = np.isfinite(y)
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, past.series[known], y[known])
    np.maximum.at(high, past.series[known], y[known])
    size = np.maximum(np.abs(low), np.abs(high))
    far = np.isfinite(low) & (0.5 * high - 0.5 * low < 0.05 * size)  # halves do not overflow
    return np.where(far, low, 0.0)


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
                **{key: to_json(values[j]) for key, values in total.items()},
                "WQL": to_json(scores.weighted_quantile_loss(model.name)),
                "quantiles": model.percents(),
                "below": [to_json(x) for x in scores.share_below(model.name)],
                "coverage": {
                    level: to_json(scores.coverage(model.name, level)) for level in model.levels
                },
                "coverage_by_step": {
                    level: [to_json(x) for x in scores.coverage_by_step(model.name, level)]
                    for level in model.levels
                },
            }
            for j, model in enumerate(scores.models)
        ],
    }


def _read_notes(notes: Any, columns: ColumnNames, ids: dict[str, int]) -> dict[str, Any]:
    """Return what happened to series, fallbacks first, and how often."""
    names = [columns.id, "problem", "action"]
    rows: list[tuple[str, ...]] = []
    if notes is not None:
        frame = read_frame(notes, names)
        rows = [*zip(*(map(str, frame[name].to_list()) for name in names), strict=True)]
    rows.sort(key=lambda row: row[2] not in FALLBACK_ACTIONS)
    fallbacks = [action in FALLBACK_ACTIONS for _, _, action in rows]
    found = [
        {
            "id": name,
            "series": ids.get(name),
            "problem": what,
            "action": action,
            "fallback": fallback,
        }
        for (name, what, action), fallback in zip(rows[:_MOST_NOTES], fallbacks, strict=False)
    ]
    return {"notes": found, "n_notes": len(rows), "n_fallbacks": sum(fallbacks)}
