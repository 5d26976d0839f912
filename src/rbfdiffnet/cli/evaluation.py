"""Backtest the forecaster and others on the same windows."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rbfdiffnet.cli.console import Console
from rbfdiffnet.evaluation import BASELINE, LAST, Comparison, Scores, describe_comparison
from rbfdiffnet.readers import Data
from rbfdiffnet.support.progress import ProgressLine

if TYPE_CHECKING:
    import pandas as pd

    from rbfdiffnet.panel.panel import Panel

__all__ = ["Evaluation", "Line", "evaluate", "windows_for"]

_OURS = "RBFDiffNet"
_FEWEST = 8  # values before the first window
_PART = 2000  # series that are on their grids at a time


@dataclass(frozen=True)
class Line:
    """Mean errors of a method, as `rbfdiffnet.evaluation` defines them.

    Parameters
    ----------
    model : str
    n_series : int
        How many series they are from.
    mase, rmsse, mae, bias : float
        The bias is positive where forecasts are too high.
    coverage : dict of str to float
        Share of values inside the intervals, in percent, by level.
    seconds : float
        What the forecasts took; NaN where they were made with others.
    """

    model: str
    n_series: int
    mase: float
    rmsse: float
    mae: float
    bias: float
    coverage: Mapping[str, float] = field(default_factory=dict)
    seconds: float = float("nan")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Forecasts of windows, and how good they were.

    Parameters
    ----------
    folds : DataFrame
        ``unique_id, ds, cutoff, y`` and the forecasts of every method.
    scores : Scores
        Of the forecaster and of simple rules, on all series.
    lines : tuple of Line
        Ours first.
    pairs : tuple of (Line, Line)
        Ours and that of another method, on the same rows.
    comparisons : tuple of Comparison
        Of these pairs.
    report : DataFrame
        What was unusual.
    n_windows : int
    """

    folds: pd.DataFrame
    scores: Scores
    lines: tuple[Line, ...]
    pairs: tuple[tuple[Line, Line], ...]
    comparisons: tuple[Comparison, ...]
    report: pd.DataFrame
    n_windows: int

    def text(self) -> str:
        """Return a table and a sentence for each method."""
        from rbfdiffnet.support.text import format_number, format_table

        levels = list(self.lines[0].coverage)
        timed = any(np.isfinite(s.seconds) for s in self.lines[1:])
        header = ["method", "series", "MASE", "RMSSE", "MAE", "bias"]
        header += [f"in {level} %" for level in levels] + (["seconds"] if timed else [])
        rows = [header]
        for s in (*self.lines, *(ours for ours, _ in self.pairs if ours.model != _OURS)):
            numbers = (s.mase, s.rmsse, s.mae, s.bias, *(s.coverage.get(x) for x in levels))
            cells = ["-" if x is None or not np.isfinite(x) else format_number(x) for x in numbers]
            seconds = [f"{s.seconds:.1f}" if np.isfinite(s.seconds) else "-"] if timed else []
            rows.append([s.model, f"{s.n_series:,}", *cells, *seconds])
        windows = f"{self.n_windows} window{'s' if self.n_windows > 1 else ''}"
        first, last = self.folds["ds"].min(), self.folds["ds"].max()
        lines = [f"Backtest: {windows}, {_date(first)} to {_date(last)}, from what precedes each"]
        return "\n".join([*lines, format_table(rows), *self.verdicts()])

    def complete_folds(self) -> pd.DataFrame:
        """Return the forecasts of the methods that forecast all that ours did."""
        few = {other.model for ours, other in self.pairs if ours.model != _OURS}
        return self.folds[[c for c in self.folds if str(c).split("-")[0] not in few]]

    def rivals(self) -> set[str]:
        """Return the names of the methods other than ours and simple rules."""
        return {line.model for line in self.lines} - {_OURS, BASELINE, LAST}

    def verdicts(self) -> list[str]:
        """Say who won."""
        return [describe_comparison(found) for found in self.comparisons]

    def as_json(self) -> dict[str, Any]:
        """Return what a JSON document has of it."""
        return {
            "n_windows": self.n_windows,
            "scores": [asdict(line) for line in self.lines],
            "pairs": [[asdict(ours), asdict(other)] for ours, other in self.pairs],
            "verdicts": self.verdicts(),
        }


def windows_for(data: Data, h: int, most: int) -> int:
    """Return how many windows of ``h`` steps the longest series has room for, at most ``most``.

    Examples
    --------
    >>> from rbfdiffnet.cli.evaluation import windows_for
    >>> from rbfdiffnet.readers import example_data
    >>> windows_for(example_data(), 12, 3), windows_for(example_data(), 140, 3)
    (3, 0)
    """
    from rbfdiffnet.readers.layouts import MatrixLayout

    series = data.series
    longest = (
        len(series.times)
        if isinstance(series, MatrixLayout)
        else int(np.diff(series.offsets).max())
    )
    return int(max(0, min(most, (longest - _FEWEST) // h)))


def evaluate(
    arguments: argparse.Namespace,
    data: Data,
    n_windows: int,
    progress: ProgressLine,
    console: Console,
    rival_seconds: float,
) -> Evaluation:
    """Backtest the forecaster, simple rules and, where there is time, methods of statsforecast.

    Parameters
    ----------
    arguments : Namespace
    data : Data
    n_windows : int
    progress : ProgressLine
    console : Console
    rival_seconds : float
        How long each method of statsforecast may take, roughly; 0 leaves them out.

    Returns
    -------
    Evaluation
    """
    import pandas as pd

    from rbfdiffnet.cli import rivals
    from rbfdiffnet.cli.running import backtests
    from rbfdiffnet.cli.sampling import evenly, of_series, rows_by_series
    from rbfdiffnet.evaluation import BacktestRows, compare, simple_forecasts
    from rbfdiffnet.panel.panel import Panel

    h, levels, n = arguments.horizon, tuple(arguments.level or ()), data.series.n_series
    season = data.season_length
    began = time.perf_counter()
    folds, report = backtests(arguments, data, n_windows, progress)
    seconds = time.perf_counter() - began
    progress.update("Scoring")
    owner = rows_by_series(data, folds)
    folds = folds.iloc[np.argsort(owner, kind="stable")].reset_index(drop=True)
    owner = np.sort(owner)
    frames, found = [], []
    for start in range(0, n, _PART):
        stop = min(start + _PART, n)
        panel = Panel.from_frame(data.series.part(start, stop), freq=data.freq)
        rows = folds.iloc[slice(*np.searchsorted(owner, [start, stop]))]
        rules = simple_forecasts(panel, BacktestRows.locate(panel, rows), season)
        rows = rows.assign(**rules)
        frames.append(rows)
        found.append(_scores(panel, rows, (_OURS, *rules), season))
    folds, scores = pd.concat(frames, ignore_index=True), Scores.concatenate(found)
    ours, *simple = _line(scores, _OURS, seconds), *(_line(scores, rule) for rule in rules)
    lines, pairs = [ours, *simple], [(ours, line) for line in simple]
    comparisons = [compare(scores, _OURS, rule, n) for rule in rules]

    spread = evenly(n, _PART)
    if n > _PART and rival_seconds > 0.0:
        panel = Panel.from_frame(of_series(data, spread).frame(), freq=data.freq)
    for rival in rivals.rivals(panel, h, n_windows, season, rival_seconds):
        progress.update(f"Backtesting {rival.name}")
        if len(rival.series) < n:
            console.say(
                f"{rival.name} gets {len(rival.series):,} of {n:,} series, evenly "
                f"spread, to take about {rival_seconds:g} s (more: --rival-seconds)"
            )
        mask = np.isin(owner, spread)
        rows, took = rivals.add_rival(
            panel, folds[mask].reset_index(drop=True), rival, h, season, levels, arguments.jobs
        )
        for column in rows.columns.difference(folds.columns):
            folds[column] = np.nan
            folds.loc[mask, column] = rows[column].to_numpy()
        both = _scores(panel, rows, (_OURS, rival.name), season)
        mine, other = _line(both, _OURS), _line(both, rival.name, took)
        if both.rows.sum() == scores.rows.sum():
            mine = ours
        else:
            mine = replace(mine, model=f"{_OURS} on those of {rival.name}")
        lines.append(other)
        pairs.append((mine, other))
        comparisons.append(compare(both, _OURS, rival.name, n))
    return Evaluation(
        folds, scores, tuple(lines), tuple(pairs), tuple(comparisons), report, n_windows
    )


def _scores(panel: Panel, folds: pd.DataFrame, models: Sequence[str], season: int) -> Scores:
    """Score methods on the rows that all of them have."""
    from rbfdiffnet.evaluation import BacktestRows, find_models, score_models

    kept = [c for c in folds.columns[3:] if str(c).split("-lo-")[0].split("-hi-")[0] in models]
    columns = {name: folds[name].to_numpy(dtype=np.float64) for name in ("y", *kept)}
    windows = BacktestRows.locate(panel, folds)
    return score_models(panel, windows, columns, "y", find_models(kept, "folds"), season)


def _line(scores: Scores, model: str, seconds: float = float("nan")) -> Line:
    total = scores.total()
    j = [found.name for found in scores.models].index(model)
    return Line(
        model,
        scores.n_scored,
        float(total["MASE"][j]),
        float(total["RMSSE"][j]),
        float(total["MAE"][j]),
        float(total["bias"][j]),
        {x: 100.0 * scores.coverage(model, x) for x in scores.models[j].levels},
        seconds,
    )


def _date(time: Any) -> str:
    return str(time).removesuffix(" 00:00:00")
