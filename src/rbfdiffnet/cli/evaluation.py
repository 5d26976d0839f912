"""Backtest the forecaster and others on the same windows."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rbfdiffnet.cli.console import Console
from rbfdiffnet.cli.progress import Progress
from rbfdiffnet.cli.reading import Data
from rbfdiffnet.cli.scoring import Score, score, verdict

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Evaluation", "evaluate", "windows_for"]

_OURS = "RBFDiffNet"
_FEWEST = 8  # values before the first window


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Forecasts of windows, and how good they were.

    Parameters
    ----------
    folds : DataFrame
        ``unique_id, ds, cutoff, y`` and the forecasts of every method.
    scores : tuple of Score
        Ours first.
    pairs : tuple of (Score, Score)
        Ours and that of another method, on the same series.
    report : DataFrame
        What was unusual.
    n_windows : int
    """

    folds: pd.DataFrame
    scores: tuple[Score, ...]
    pairs: tuple[tuple[Score, Score], ...]
    report: pd.DataFrame
    n_windows: int

    def text(self) -> str:
        """Return a table and a sentence for each method."""
        from rbfdiffnet.cli.text import format_number, format_table

        levels = list(self.scores[0].coverage)
        timed = any(np.isfinite(s.seconds) for s in self.scores[1:])
        header = ["method", "series", "MASE", "RMSSE", "MAE", "bias"]
        header += [f"in {level} %" for level in levels] + (["seconds"] if timed else [])
        rows = [header]
        for s in (*self.scores, *(ours for ours, other in self.pairs if ours.model != _OURS)):
            numbers = (s.mase, s.rmsse, s.mae, s.bias, *(s.coverage.get(x) for x in levels))
            cells = ["-" if x is None or not np.isfinite(x) else format_number(x) for x in numbers]
            seconds = [f"{s.seconds:.1f}" if np.isfinite(s.seconds) else "-"] if timed else []
            rows.append([s.model, f"{s.n_series:,}", *cells, *seconds])
        windows = f"{self.n_windows} window{'s' if self.n_windows > 1 else ''}"
        first, last = self.folds["ds"].min(), self.folds["ds"].max()
        lines = [f"Backtest: {windows}, {_date(first)} to {_date(last)}, from what precedes each"]
        return "\n".join([*lines, format_table(rows), *self.verdicts()])

    def complete_folds(self) -> pd.DataFrame:
        """Return the forecasts of the methods that were given all series."""
        few = tuple(s.model for s in self.scores if s.n_series < self.scores[0].n_series)
        return self.folds[[name for name in self.folds if not str(name).startswith(few)]]

    def verdicts(self) -> list[str]:
        """Say who won."""
        return [verdict(ours, other) for ours, other in self.pairs]

    def as_json(self) -> dict[str, Any]:
        """Return what a JSON document has of it."""
        return {
            "n_windows": self.n_windows,
            "scores": [asdict(s) for s in self.scores],
            "pairs": [[asdict(ours), asdict(other)] for ours, other in self.pairs],
            "verdicts": self.verdicts(),
        }


def windows_for(data: Data, h: int, most: int) -> int:
    """Return how many windows of ``h`` steps the longest series has room for, at most ``most``.

    Examples
    --------
    >>> from rbfdiffnet.cli.evaluation import windows_for
    >>> from rbfdiffnet.cli.reading import example_data
    >>> windows_for(example_data(), 12, 3), windows_for(example_data(), 140, 3)
    (3, 0)
    """
    from rbfdiffnet.cli.reading.layouts import Matrix

    series = data.series
    longest = (
        len(series.times) if isinstance(series, Matrix) else int(np.diff(series.offsets).max())
    )
    return int(max(0, min(most, (longest - _FEWEST) // h)))


def evaluate(
    arguments: argparse.Namespace,
    data: Data,
    n_windows: int,
    progress: Progress,
    console: Console,
    rival_seconds: float,
) -> Evaluation:
    """Backtest the forecaster, seasonal naive and, where there is time, methods of statsforecast.

    Parameters
    ----------
    arguments : Namespace
    data : Data
    n_windows : int
    progress : Progress
    console : Console
    rival_seconds : float
        How long each method of statsforecast may take, roughly; 0 leaves them out.

    Returns
    -------
    Evaluation
    """
    from rbfdiffnet.cli import rivals
    from rbfdiffnet.cli.running import backtests
    from rbfdiffnet.panel import Panel

    h, levels = arguments.horizon, tuple(arguments.level or ())
    season = data.season_length
    began = time.perf_counter()
    folds, report = backtests(arguments, data, n_windows, progress)
    seconds = time.perf_counter() - began
    progress.update("Scoring")
    panel = Panel.from_frame(data.frame(), freq=data.freq)
    folds = rivals.add_naive(panel, folds, h, season)
    ours = score(panel, folds, _OURS, season, levels, seconds)
    naive = score(panel, folds, rivals.NAIVE, season)
    scores, pairs = [ours, naive], [(ours, naive)]
    for rival in rivals.rivals(panel, h, n_windows, season, rival_seconds):
        progress.update(f"Backtesting {rival.name}")
        few = len(rival.series) < panel.n_series
        if few:
            console.say(
                f"{rival.name} gets {len(rival.series):,} of {panel.n_series:,} series, evenly "
                f"spread, to take about {rival_seconds:g} s (more: --rival-seconds)"
            )
        folds, took = rivals.add_rival(panel, folds, rival, h, season, levels, arguments.jobs)
        other = score(panel, folds, rival.name, season, levels, took)
        same = ours if not few else _same(panel, folds, rival.name, season, levels)
        scores.append(other)
        pairs.append((same, other))
    return Evaluation(folds, tuple(scores), tuple(pairs), report, n_windows)


def _same(
    panel: Any, folds: pd.DataFrame, other: str, season: int, levels: Sequence[float]
) -> Score:
    """Score ours on the series of another method."""
    from dataclasses import replace

    mine = score(panel, folds[folds[other].notna()], _OURS, season, levels)
    return replace(mine, model=f"{_OURS} on those of {other}")


def _date(time: Any) -> str:
    return str(time).removesuffix(" 00:00:00")
