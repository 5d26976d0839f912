"""The HTML report of a command: forecasts, a backtest, explanations, remarks; of bounded size."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.cli.console import Console
from rbfdiffnet.cli.evaluation import Evaluation, evaluate, windows_for
from rbfdiffnet.readers import Data
from rbfdiffnet.readers.errors import CommandError
from rbfdiffnet.support.progress import ProgressLine

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["backtest_for_report", "write_report"]

_BACKTESTED = 1000  # series of a backtest that is made for a report only
_WINDOWS, _FEW = 3, 100  # windows of so many series; one of more
_EXPLAINED, _EXTREMES = 20, 3  # the first series, and so many of the best and of the worst
_STACKED = 1000  # series that are fitted once more to explain the forecasts of a stack


def backtest_for_report(
    arguments: argparse.Namespace, data: Data, progress: ProgressLine, console: Console
) -> tuple[Evaluation | None, Data]:
    """Backtest all series, or an even spread of many.

    Parameters
    ----------
    arguments : Namespace
    data : Data
    progress : ProgressLine
    console : Console

    Returns
    -------
    evaluation : Evaluation or None
        None where all series are too short.
    tested : Data
        The series that were backtested.
    """
    from rbfdiffnet.cli.sampling import evenly, of_series

    tested = of_series(data, evenly(data.series.n_series, _BACKTESTED))
    most = _WINDOWS if tested.series.n_series <= _FEW else 1
    windows = windows_for(tested, arguments.horizon, most)
    if not windows:
        return None, tested
    return evaluate(arguments, tested, windows, progress, console, rival_seconds=0.0), tested


def write_report(
    arguments: argparse.Namespace,
    data: Data,
    forecast: pd.DataFrame,
    notes: pd.DataFrame,
    evaluation: Evaluation | None,
    tested: Data,
    progress: ProgressLine,
) -> None:
    """Explain some series and write the report.

    Parameters
    ----------
    arguments : Namespace
    data : Data
    forecast : DataFrame
        Of all series.
    notes : DataFrame
        What was unusual about these forecasts.
    evaluation : Evaluation or None
    tested : Data
        The series of the evaluation.
    progress : ProgressLine
    """
    from rbfdiffnet.cli.sampling import of_series, rows_by_series
    from rbfdiffnet.panel.columns import Columns
    from rbfdiffnet.report.choice import choose_series
    from rbfdiffnet.report.data import Whole
    from rbfdiffnet.report.page import write_page

    n = data.series.n_series
    errors = np.full(n, np.nan)
    if evaluation is not None:
        place = {name: i for i, name in enumerate(data.ids)}
        errors[[place[name] for name in tested.ids]] = evaluation.scores.mase[:, 0]
    chosen = choose_series(n, errors)
    explanations = _explanations(arguments, data, _explained(errors, n), progress)
    progress.update("Writing")
    title, folds = None, None
    whole = Whole(
        n, source=". ".join([data.describe().replace("Reading", "Read", 1), *data.notes]) + "."
    )
    if arguments.file not in (None, "-"):
        title = f"Forecasts of {Path(arguments.file).name}"
    if tested.series.n_series < n:
        count = f"{tested.series.n_series:,} of {n:,}"
        whole = replace(whole, remark=f"The backtest is of {count} series, evenly spread.")
    if evaluation is not None:
        folds = evaluation.complete_folds()
    if evaluation is not None and folds is not None and len(chosen) < n:
        ours = [name for name in folds if str(name).split("-")[0] not in evaluation.rivals()]
        folds = folds.loc[np.isin(rows_by_series(data, folds), chosen), ours]
        whole = replace(whole, scores=evaluation.scores, ids=tested.ids)
    try:
        write_page(
            arguments.report,
            title,
            of_series(data, chosen).frame(),
            forecast[np.isin(rows_by_series(data, forecast), chosen)],
            columns=Columns(),
            backtest=folds,
            explanations=explanations,
            notes=notes,
            season_length=data.season_length,
            freq=data.freq,
            whole=whole,
        )
    except OSError as error:
        raise CommandError(
            f"cannot write '{arguments.report}': {error.strerror or error}"
        ) from error


def _explained(errors: npt.NDArray[np.float64], n: int) -> list[int]:
    """The first series, the best and the worst."""
    ranking = np.argsort(errors, kind="stable")[: np.isfinite(errors).sum()]
    extremes = [*ranking[:_EXTREMES].tolist(), *ranking[::-1][:_EXTREMES].tolist()]
    return sorted({*range(min(n, _EXPLAINED)), *extremes})


def _explanations(
    arguments: argparse.Namespace, data: Data, positions: Sequence[int], progress: ProgressLine
) -> dict[str, Any] | None:
    """Fit what the forecasts of some series depend on once more; None where that is too much."""
    from rbfdiffnet.cli.running import ahead, in_words, make_model
    from rbfdiffnet.cli.sampling import of_series

    model = make_model(arguments, data)
    fitted = data
    if model._scope == "local" and not data.inputs:
        fitted = of_series(data, positions)
    elif data.series.n_series > _STACKED:
        return None
    progress.update("Explaining")
    h, ids = arguments.horizon, [data.ids[i] for i in positions]
    with in_words():
        model.fit(fitted.frame())
        terms = model.explain(h, X_df=ahead(model, fitted, h), ids=ids)
        return {"terms": terms, "equation": model.equation(ids)}
