"""``rbfdiffnet evaluate``: backtest the forecaster against other methods on the same windows."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from rbfdiffnet.cli import output
from rbfdiffnet.cli.folds import count_below_quantiles, describe_quantiles
from rbfdiffnet.cli.markdown import LEGEND
from rbfdiffnet.cli.run import Job, describe_problems, spread_evenly, start_job
from rbfdiffnet.evaluation import (
    BacktestRows,
    Comparison,
    Scores,
    compare,
    describe_comparison,
    describe_coverage,
    find_better_rule,
    find_models,
    score_models,
    simple_forecasts,
)
from rbfdiffnet.evaluation.backtest_frames import QuantileName
from rbfdiffnet.forecasting.options import ALONE
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.readers import Data
from rbfdiffnet.report.verdict import ExpectedError, Verdict, verdict
from rbfdiffnet.support.checks import CommandError
from rbfdiffnet.support.memo import share_results
from rbfdiffnet.support.progress import ProgressLine
from rbfdiffnet.support.text import format_number, format_table

_OURS = "RBFDiffNet"
_FEWEST = 8  # values before the first window
_CHUNK = 2000  # series that are scored at a time
_SAMPLE = 1000  # series of a backtest that is made for a report only
# Rough seconds that a fit takes, for each value of the series and each step of the season.
_COSTS = {"AutoETS": 3e-5, "AutoARIMA": 8e-4}
_SAMPLE_WINDOWS, _FEW = 3, 100  # windows for at most this many series; one window for more


@share_results()
def run(arguments: argparse.Namespace) -> None:
    """Carry out the command."""
    output.check_outputs(arguments)
    problems = []
    with start_job(arguments) as job:
        result = evaluate(job, _check_windows(job))
        if arguments.rival_seconds > 0.0:
            result = add_rivals(result, job)
            if find_spec("statsforecast") is None:
                job.console.say(
                    "Not compared with AutoETS and AutoARIMA: pip install statsforecast"
                )
        folds, notes = job.note_closed_weekdays(result.folds, result.notes)
        if arguments.out:
            problems = output.write_all(
                lambda: output.write_frame(arguments.out, folds, raw_ids=arguments.raw_ids)
            )
    for line in describe_problems(notes):
        job.console.warn(line)
    output.note_formulas(job, folds)
    if arguments.document:
        facts = summarize(job, result)
        output.print_document(job, "evaluate", **facts, report=notes)
    else:
        print(result.text(), flush=True)
    if arguments.report:
        with ProgressLine(quiet=arguments.quiet) as progress:
            job = replace(job, progress=progress)
            forecast, notes = job.forecast()
            problems += output.write_all(
                lambda: output.write_report(job, forecast, notes, result, job.shown)
            )
    output.finish(job.console, problems, arguments.out, arguments.report)
    output.check_results(job, result.notes, result)


def _check_windows(job: Job) -> int:
    """Return how many windows there is room for, or raise CommandError if there is none."""
    arguments, data = job.arguments, job.data
    if arguments.report and data.inputs and data.future is None:
        raise CommandError(
            f"--report also shows forecasts, for which the inputs ({', '.join(data.inputs)}) "
            f"must be known {arguments.horizon} steps ahead: add rows after the last date with "
            "the target left empty, name a file with them in --exog, or leave --report out"
        )
    windows = count_windows(data, arguments.horizon, arguments.windows)
    if not windows:
        raise CommandError(
            f"{arguments.file}: no series is long enough to hold {arguments.horizon} steps "
            "out; choose a smaller --horizon"
        )
    if windows < arguments.windows:
        job.console.warn(f"there is room for {windows} of {arguments.windows} windows")
    return windows


@dataclass(frozen=True)
class MethodScores:
    """Mean errors of a method over ``n_series`` series, as `rbfdiffnet.evaluation` defines them.

    The bias is positive where forecasts are too high. ``coverage`` maps the level of an interval
    to the share of values inside, in percent, ``coverage_by_step`` to these shares for every step
    ahead, and ``winkler`` to the mean Winkler score. ``wql`` is the weighted quantile loss of the
    ``quantiles``, which are in percent, and ``below`` maps each to the percentage of values at or
    below it. ``seconds`` is NaN where the forecasts were made together
    with others.
    """

    model: str
    n_series: int
    mase: float
    rmsse: float
    mae: float
    bias: float
    coverage: Mapping[str, float] = field(default_factory=dict)
    coverage_by_step: Mapping[str, Sequence[float]] = field(default_factory=dict)
    winkler: Mapping[str, float] = field(default_factory=dict)
    wql: float = float("nan")
    quantiles: Sequence[float] = ()
    below: Mapping[str, float] = field(default_factory=dict)
    seconds: float = float("nan")

    @classmethod
    def mean(cls, scores: Scores, model: str, seconds: float = float("nan")) -> MethodScores:
        """Average the scores of a method over the series."""
        total = scores.total()
        j = scores.names.index(model)
        mase, rmsse, mae, bias = (float(total[x][j]) for x in ("MASE", "RMSSE", "MAE", "bias"))
        columns = scores.models[j]
        shares = {x: 100.0 * scores.coverage_by_step(model, x) for x in columns.levels}
        found = cls(
            model,
            scores.n_scored,
            mase,
            rmsse,
            mae,
            bias,
            coverage={x: 100.0 * scores.coverage(model, x) for x in columns.levels},
            coverage_by_step={x: own.tolist() for x, own in shares.items()},
            winkler={x: scores.mean_winkler(model, x) for x in columns.levels},
            seconds=seconds,
        )
        if model not in scores.losses:
            return found
        wql = scores.weighted_quantile_loss(model)
        quantiles, held = columns.percents(), 100.0 * scores.share_below(model)
        below = dict(zip(map("{:g}".format, quantiles), held.tolist(), strict=True))
        return replace(found, wql=wql, quantiles=quantiles, below=below)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Forecasts of windows, and how good they were.

    ``folds`` has the columns ``unique_id, ds, cutoff, y`` and the forecasts of every method.
    ``scores`` are those of our forecaster and of simple rules on all series. ``methods`` begins
    with ours. A pair is our method and another one, both on the rows that both forecast;
    ``comparisons`` has a verdict for each pair. ``notes`` says what was unusual. ``total_error`` is
    that of totals, where they were asked for and the windows have whole ones.
    """

    folds: pd.DataFrame
    scores: Scores
    methods: tuple[MethodScores, ...]
    pairs: tuple[tuple[MethodScores, MethodScores], ...]
    comparisons: tuple[Comparison, ...]
    notes: pd.DataFrame
    n_windows: int
    total_error: ExpectedError | None = None

    def text(self, verdict: Sequence[str] = ()) -> str:
        """Return a table, one of intervals, and sentences: a verdict, or one for each method."""
        shown = (*self.methods, *(ours for ours, _ in self.pairs if ours.model != _OURS))
        timed = any(np.isfinite(s.seconds) for s in self.methods[1:])
        header = ["method", "series", "MASE", "RMSSE", "MAE", "bias"]
        rows = [header + (["seconds"] if timed else [])]
        for s in shown:
            cells = map(_cell, (s.mase, s.rmsse, s.mae, s.bias))
            seconds = [f"{s.seconds:.1f}" if np.isfinite(s.seconds) else "-"] if timed else []
            rows.append([s.model, f"{s.n_series:,}", *cells, *seconds])
        windows = f"{self.n_windows} window{'s' if self.n_windows > 1 else ''}"
        dates = self.folds["ds"]
        first, last = (str(time).removesuffix(" 00:00:00") for time in (dates.min(), dates.max()))
        title = f"Backtest: {windows}, {first} to {last}; forecasts use only earlier values"
        expected = ExpectedError.of(self.scores, _OURS).describe(self.scores.n_scored)
        held = describe_quantiles(count_below_quantiles(self.folds))
        sentences = verdict or [
            *(expected.replace("\N{NO-BREAK SPACE}", " "), *self.verdicts(), *held)
        ]
        lines = [title, format_table(rows), LEGEND, *sentences]
        if self.methods[0].coverage:
            lines += ["", *_describe_intervals(shown)]
            lines += [] if verdict else self.interval_verdicts()
        return "\n".join(lines)

    def complete_folds(self) -> pd.DataFrame:
        """Return the folds without the methods that forecast only some of the rows."""
        partial = {other.model for ours, other in self.pairs if ours.model != _OURS}
        return self.folds[[c for c in self.folds if str(c).split("-")[0] not in partial]]

    def rivals(self) -> set[str]:
        """Return the names of the methods of statsforecast."""
        ours_and_rules = {model.name for model in self.scores.models}
        return {method.model for method in self.methods} - ours_and_rules

    def is_worse(self) -> bool:
        """Tell whether our forecasts lost to the better of the simple rules."""
        rule = find_better_rule(self.scores)
        return any(own.other == rule and own.outcome == "lost" for own in self.comparisons)

    def verdicts(self) -> list[str]:
        """Return a sentence on who won for each comparison."""
        return [describe_comparison(found) for found in self.comparisons]

    def interval_verdicts(self) -> list[str]:
        """Return a sentence on each level of our intervals that is far off."""
        said = (describe_coverage(self.scores, _OURS, x) for x in self.methods[0].coverage)
        return [sentence for sentence in said if sentence is not None]

    def as_document(self) -> dict[str, Any]:
        """Return the part of a document about the evaluation."""
        return {
            "n_windows": self.n_windows,
            "scores": [asdict(method) for method in self.methods],
            "pairs": [[asdict(ours), asdict(other)] for ours, other in self.pairs],
            "verdicts": self.verdicts(),
            "interval_verdicts": self.interval_verdicts(),
            "quantiles_held": count_below_quantiles(self.folds),
        }


def summarize(job: Job, evaluation: Evaluation | None) -> dict[str, Any]:
    """Return the part of a document about what was asked for and how good forecasts were."""
    found = make_verdict(job, evaluation)
    lead, *more = found.sentences()
    expected, data = found.expected_error, job.data
    facts = {
        "horizon": job.arguments.horizon,
        "frequency": str(data.freq),
        "season_length": data.season_length,
        "n_series": data.series.n_series,
        "verdict": {"lead": lead, "more": more},
        "expected_error": None if expected is None else asdict(expected),
    }
    if evaluation is not None and evaluation.total_error is not None:
        facts["expected_error_of_totals"] = asdict(evaluation.total_error)
    none: dict[str, Any] = {"n_windows": 0, "scores": [], "pairs": [], "verdicts": []}
    none |= {"interval_verdicts": [], "quantiles_held": {}}
    return facts | (none if evaluation is None else evaluation.as_document())


def make_verdict(job: Job, evaluation: Evaluation | None) -> Verdict:
    """Return what reports say of a backtest."""
    if evaluation is None:
        return verdict(None, _OURS, job.shown.series.n_series)
    found = verdict(evaluation.scores, _OURS, job.shown.series.n_series)
    expected, n = found.expected_error, evaluation.scores.n_scored
    more = [*found.more, *describe_quantiles(count_below_quantiles(evaluation.folds))]
    if expected is not None and getattr(job.arguments, "totals", None):
        said = f"{describe_totals(evaluation)} {expected.describe(n, 'a single forecast')}"
        more = [said if text == expected.describe(n) else text for text in more]
    return replace(found, more=more)


def describe_totals(evaluation: Evaluation) -> str:
    """Say in a sentence how far off totals were."""
    if evaluation.total_error is None:
        return "How far off totals are is not known: no window of the backtest has one as long."
    return evaluation.total_error.describe(evaluation.scores.n_scored, "a total")


def _describe_intervals(methods: Sequence[MethodScores]) -> list[str]:
    """Return a table of intervals, a row for each method and level, and what its scores are."""
    rows = [["method", "WQL", "interval", "inside", "Winkler"]]
    for s in methods:
        comparable = s.quantiles == methods[0].quantiles
        head = [s.model, _cell(s.wql) if comparable else "-"]
        for level, inside in s.coverage.items():
            share = f"{inside:.1f} %" if np.isfinite(inside) else "-"
            rows.append([*head, f"{level} %", share, _cell(s.winkler[level])])
            head = ["", ""]
    *some, last = (f"{q:g}" for q in methods[0].quantiles)
    quantiles = f"{', '.join(some)} and {last} %"
    return [f"Intervals; WQL is the weighted quantile loss of {quantiles}", format_table(rows)]


def _cell(number: float) -> str:
    return format_number(number) if np.isfinite(number) else "-"


def count_windows(data: Data, h: int, most: int) -> int:
    """Return how many windows of ``h`` steps the longest series has room for, at most ``most``."""
    return max(0, min(most, (data.series.longest - _FEWEST) // h))


def backtest_sample(job: Job) -> tuple[Evaluation | None, Data]:
    """Evaluate all series, or evenly spread ones of many, and return them too.

    The evaluation is None where all series are too short.
    """
    tested = job.data
    if tested.groups is None:  # sums need all series
        tested = tested.select(spread_evenly(tested.series.n_series, _SAMPLE))
    most = _SAMPLE_WINDOWS if tested.series.n_series <= _FEW else 1
    windows = count_windows(tested, job.arguments.horizon, most)
    job = job if tested is job.data else replace(job, data=tested)
    return (evaluate(job, windows) if windows else None), job.shown


def evaluate(job: Job, n_windows: int) -> Evaluation:
    """Backtest the forecaster and simple rules."""
    began = time.perf_counter()
    folds, notes = job.backtest(n_windows)
    seconds = time.perf_counter() - began
    job.progress.update("Scoring")
    folds, scores = _score_simple_rules(job.shown, folds)
    ours = MethodScores.mean(scores, _OURS, seconds)
    names = [name for name in scores.names if name != _OURS]
    rules = [MethodScores.mean(scores, name) for name in names]
    pairs = tuple((ours, rule) for rule in rules)
    n = job.shown.series.n_series
    comparisons = tuple(compare(scores, _OURS, name, n) for name in names)
    return Evaluation(folds, scores, (ours, *rules), pairs, comparisons, notes, n_windows)


def add_rivals(evaluation: Evaluation, job: Job) -> Evaluation:
    """Backtest the methods of statsforecast too, on as many series as there is time for."""
    arguments, data = job.arguments, job.shown
    n, season, limit = data.series.n_series, data.season_length, arguments.rival_seconds
    folds, methods = evaluation.folds.copy(), list(evaluation.methods)
    pairs, comparisons = list(evaluation.pairs), list(evaluation.comparisons)
    sample = spread_evenly(n, _CHUNK)
    in_sample = np.isin(data.find_series(folds), sample)
    panel = Panel.from_frame(data.select(sample).frame(), freq=data.freq)
    for rival in choose_rivals(panel, arguments.horizon, evaluation.n_windows, season, limit):
        job.progress.update(f"Backtesting {rival.name}")
        if len(rival.series) < n:
            job.console.say(
                f"{rival.name} gets {len(rival.series):,} of {n:,} series, evenly "
                f"spread, to take about {limit:g} s (more: --rival-seconds)"
            )
        rows = folds[in_sample].reset_index(drop=True)
        rows, seconds = _forecast_rival(rival, panel, rows, season, arguments)
        for column in rows.columns.difference(folds.columns):
            folds[column] = np.nan
            folds.loc[in_sample, column] = rows[column].to_numpy()
        both = _score(panel, rows, (_OURS, rival.name), season)
        ours, other = methods[0], MethodScores.mean(both, rival.name, seconds)
        if both.rows.sum() != evaluation.scores.rows.sum():
            name = f"{_OURS} on those of {rival.name}"
            ours = replace(MethodScores.mean(both, _OURS), model=name)
        methods.append(other)
        pairs.append((ours, other))
        comparisons.append(compare(both, _OURS, rival.name, n))
    return replace(
        evaluation,
        folds=folds,
        methods=tuple(methods),
        pairs=tuple(pairs),
        comparisons=tuple(comparisons),
    )


def _score_simple_rules(data: Data, folds: pd.DataFrame) -> tuple[pd.DataFrame, Scores]:
    """Add the forecasts of simple rules to the folds, sorted by series, and score all of them."""
    owners = data.find_series(folds)
    folds = folds.iloc[np.argsort(owners, kind="stable")].reset_index(drop=True)
    owners = np.sort(owners)
    frames, scores = [], []
    season = data.season_length
    for start, stop, chunk in data.chunks(_CHUNK):
        panel = Panel.from_frame(chunk, freq=data.freq)
        rows = folds.iloc[slice(*np.searchsorted(owners, [start, stop]))]
        rules = simple_forecasts(panel, BacktestRows.locate(panel, rows), season)
        frames.append(rows.assign(**rules))
        scores.append(_score(panel, frames[-1], (_OURS, ALONE, *rules), season))
    return pd.concat(frames, ignore_index=True), Scores.concatenate(scores)


def _score(panel: Panel, folds: pd.DataFrame, models: Sequence[str], season: int) -> Scores:
    """Score methods on the rows that all of them have."""
    parts = {c: QuantileName.parse(c) for c in folds.columns[3:]}
    kept = [c for c, name in parts.items() if (name.model if name else c) in models]
    columns = {name: folds[name].to_numpy(dtype=np.float64) for name in ("y", *kept)}
    rows = BacktestRows.locate(panel, folds)
    return score_models(panel, rows, columns, "y", find_models(kept, "folds"), season)


# The methods of statsforecast -----------------------------------------------------------------


@dataclass(frozen=True)
class Rival:
    """A method of statsforecast, and the positions of the series there is time for."""

    name: str
    series: tuple[int, ...]


def choose_rivals(
    panel: Panel, h: int, n_windows: int, season_length: int, seconds: float
) -> list[Rival]:
    """Choose evenly spread series for each method of statsforecast; none if it is not installed.

    Each method may take about ``seconds``. The choice depends on the sizes of the series, not on
    how fast this computer happens to be.
    """
    if find_spec("statsforecast") is None:
        return []
    long_enough = np.flatnonzero(panel.lengths - n_windows * h > max(3, season_length))
    if not long_enough.size:
        return []
    length = float(panel.lengths[long_enough].mean())
    chosen = []
    for name, cost in _COSTS.items():
        affordable = int(seconds / (cost * length * season_length * n_windows))
        count = min(max(affordable, 1), long_enough.size)
        spread = spread_evenly(long_enough.size, count)
        chosen.append(Rival(name, tuple(long_enough[spread].tolist())))
    return chosen


def _forecast_rival(
    rival: Rival,
    panel: Panel,
    folds: pd.DataFrame,
    season_length: int,
    arguments: argparse.Namespace,
) -> tuple[pd.DataFrame, float]:
    """Return the folds with the forecasts of a method, and the seconds it took.

    Forecasts are missing for series that the method was not given. It gets whole-number steps
    with gaps filled by the latest value, so that dates of any kind can be compared.
    """
    from statsforecast import StatsForecast, models

    windows = BacktestRows.locate(panel, folds)
    series, seen = windows.series, windows.seen
    parts = []
    for i in rival.series:
        y = pd.Series(panel.y[panel.offsets[i] : panel.offsets[i + 1]]).ffill().bfill().fillna(0.0)
        parts.append(pd.DataFrame({"unique_id": i, "ds": np.arange(1, len(y) + 1), "y": y}))
    model: Any = getattr(models, rival.name)(season_length=season_length)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forecaster = StatsForecast(
            models=[model],
            freq=1,
            n_jobs=arguments.jobs,
            fallback_model=models.SeasonalNaive(season_length=season_length),
        )
        levels = arguments.level or []
        found = forecaster.cross_validation(
            h=arguments.horizon,
            df=pd.concat(parts, ignore_index=True),
            n_windows=max(1, len(np.unique(seen[series == rival.series[0]]))),
            step_size=arguments.horizon,
            level=[int(x) if x == int(x) else x for x in levels] or None,  # as in its names
        )
    seconds = time.perf_counter() - began
    columns = [column for column in found.columns if column.startswith(rival.name)]
    keys = pd.DataFrame({"unique_id": series, "ds": seen + windows.ahead, "cutoff": seen})
    joined = keys.merge(found.drop(columns="y"), on=["unique_id", "ds", "cutoff"], how="left")
    return folds.assign(**{column: joined[column].to_numpy() for column in columns}), seconds
