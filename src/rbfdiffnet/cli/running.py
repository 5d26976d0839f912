"""Run the forecaster on what was read: in parts where series do not depend on each other."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rbfdiffnet.readers import Data
from rbfdiffnet.readers.errors import CommandError
from rbfdiffnet.support.progress import ProgressLine

if TYPE_CHECKING:
    import pandas as pd

    from rbfdiffnet import RBFDiffNet

__all__ = ["ahead", "backtests", "forecasts", "in_words", "make_model"]

# Series at a time: many where they are quick.
_PART, _SMALL_PART = 1000, 100


def make_model(arguments: argparse.Namespace, data: Data, scope: str | None = None) -> RBFDiffNet:
    """Return the forecaster the arguments ask for.

    Parameters
    ----------
    arguments : Namespace
    data : Data
    scope : str, optional
        By default that of the arguments.

    Returns
    -------
    RBFDiffNet
    """
    from rbfdiffnet import RBFDiffNet

    with in_words():
        return RBFDiffNet(
            freq=data.freq,
            preset=arguments.preset,
            scope=scope or arguments.scope,
            season_length=data.season_length,
            lower=arguments.lower,
            n_jobs=arguments.jobs,
            random_state=arguments.seed,
        )


@contextmanager
def in_words(origins: Mapping[str, str] | None = None) -> Iterator[None]:
    """Turn errors that the data or the arguments cause into one line for the user.

    Parameters
    ----------
    origins : mapping, optional
        The files that columns came from, which are named with them.

    Examples
    --------
    >>> from rbfdiffnet.cli.running import in_words
    >>> with in_words():
    ...     raise ValueError("lower must be a finite number.")
    Traceback (most recent call last):
        ...
    rbfdiffnet.readers.errors.CommandError: lower must be a finite number.
    """
    try:
        yield
    except (ValueError, TypeError, ImportError) as error:
        message = " ".join(str(error).split())
        for column, file in (origins or {}).items():
            message = message.replace(f"Column {column!r}", f"Column {column!r} of {file}")
        raise CommandError(message) from error


def forecasts(
    arguments: argparse.Namespace, data: Data, progress: ProgressLine
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Forecast all series.

    Parameters
    ----------
    arguments : Namespace
    data : Data
    progress : ProgressLine

    Returns
    -------
    forecast : DataFrame
        As `RBFDiffNet.forecast` returns it.
    report : DataFrame
        Everything unusual, as in `RBFDiffNet.report_`.
    """
    h, level = arguments.horizon, arguments.level

    def one(model: RBFDiffNet, frame: pd.DataFrame) -> Any:
        if not data.inputs:
            return model.forecast(frame, h, level=level)
        model.fit(frame)
        return model.predict(h, X_df=ahead(model, data, h), level=level)

    return _in_parts(arguments, data, one, progress, "Forecasting")


def backtests(
    arguments: argparse.Namespace, data: Data, n_windows: int, progress: ProgressLine
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Forecast windows at the end of all series, as `RBFDiffNet.cross_validation` does.

    Parameters
    ----------
    arguments : Namespace
    data : Data
    n_windows : int
    progress : ProgressLine

    Returns
    -------
    folds, report : DataFrame
    """
    h, level = arguments.horizon, arguments.level

    def one(model: RBFDiffNet, frame: pd.DataFrame) -> Any:
        return model.cross_validation(frame, h, n_windows=n_windows, level=level)

    return _in_parts(arguments, data, one, progress, "Backtesting")


def _in_parts(
    arguments: argparse.Namespace,
    data: Data,
    work: Callable[[RBFDiffNet, pd.DataFrame], Any],
    progress: ProgressLine,
    stage: str,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Work on parts of the series where each has a network of its own, and on all otherwise.

    Short ones borrow errors of others for their intervals, so these need all series.
    """
    import pandas as pd

    from rbfdiffnet.support.progress import watch_progress

    total = data.series.n_series
    size = total
    model = make_model(arguments, data)
    if model._scope == "local" and not (data.inputs or arguments.level):
        size = min(total, _PART if arguments.preset == "fast" else _SMALL_PART)
    frames, reports = [], []
    progress.update(stage, 0, total if size < total else 0)
    for start in range(0, total, size):
        stop = min(start + size, total)

        def told(share: float, start: int = start, stop: int = stop) -> None:
            progress.update(stage, start + int(share * (stop - start)), total)

        with in_words(data.origins), watch_progress(told):
            frames.append(work(model, data.series.part(start, stop)))
        reports.append(model.report_)
        progress.update(stage, stop, total)
        model = make_model(arguments, data)
    return (
        pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0],
        pd.concat(_not_empty(reports), ignore_index=True),
    )


def _not_empty(reports: Sequence[pd.DataFrame]) -> list[pd.DataFrame]:
    return [report for report in reports if len(report)] or list(reports[:1])


def ahead(model: RBFDiffNet, data: Data, h: int) -> Any:
    """Return the inputs at the dates of a forecast, None where there are none.

    Parameters
    ----------
    model : RBFDiffNet
        A fitted one.
    data : Data
    h : int

    Returns
    -------
    DataFrame or None
    """
    if not data.inputs:
        return None
    dates = model.make_future_frame(h)
    if data.future is None:
        raise CommandError(
            f"the inputs ({', '.join(data.inputs)}) must be known for the {h} steps to forecast: "
            "add rows after the last date with the target left empty, or name a file with them in "
            "--exog"
        )
    keys = [key for key in ("unique_id", "ds") if key in data.future.columns]
    return dates.merge(data.future[[*keys, *data.inputs]], on=keys, how="left")
