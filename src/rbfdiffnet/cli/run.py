"""What commands share: messages, reading, and the forecaster on all series or on some of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rbfdiffnet.cli.arguments import hint_to_put_file_first
from rbfdiffnet.panel.calendar import (
    find_closed_weekdays,
    is_daily,
    name_weekdays,
    weekday_numbers,
)
from rbfdiffnet.readers import ColumnChoices, Data, example_data, read_data
from rbfdiffnet.support.arrays import Ints, Mask
from rbfdiffnet.support.checks import CommandError
from rbfdiffnet.support.progress import ProgressLine, watch_progress
from rbfdiffnet.support.text import one_line, printable

if TYPE_CHECKING:
    from rbfdiffnet import RBFDiffNet


_CHUNK, _FAST_CHUNK = 100, 1000  # series that are forecast at a time
_FILE_OPTIONS = (
    *("layout", "id_col", "time_col", "target_col", "exog", "freq"),
    *("repeats", "dates", "decimal", "missing"),
)
_WEEKDAY_CHUNK = 2000  # series whose weekdays are looked at at a time


@dataclass(frozen=True)
class Console:
    """Messages of a command; its results are printed elsewhere.

    With ``quiet`` nothing is said. With ``json`` standard output belongs to one JSON document, so
    messages go to standard error.
    """

    quiet: bool = False
    json: bool = False

    def say(self, text: str = "") -> None:
        """Print a message."""
        if not self.quiet:
            print(printable(text), file=sys.stderr if self.json else sys.stdout, flush=True)

    def warn(self, text: str) -> None:
        """Print a message that a person should not miss, on standard error."""
        if not self.quiet:
            sys.stdout.flush()
            print(f"rbfdiffnet: note: {one_line(text)}", file=sys.stderr, flush=True)


def describe_problems(notes: pd.DataFrame) -> list[str]:
    """Return a line for each kind of problem: its first series, and how many more have it.

    ``notes`` is the frame ``RBFDiffNet.report_``. Problems that differ only in numbers, dates and
    plurals are of one kind.
    """
    lines = []
    kinds = notes["problem"].astype(str).str.replace(r"[\d][\d:. -]*|s\b", "", regex=True)
    for (_, action), group in notes.groupby([kinds, "action"], sort=False):
        first = group.iloc[0]
        more = f" (and {len(group) - 1:,} more series)" if len(group) > 1 else ""
        name = one_line(str(first["unique_id"]))
        lines.append(f"series '{name}': {first['problem']}; {action}{more}")
    return lines


@contextmanager
def as_command_error(origins: Mapping[str, str] | None = None) -> Iterator[None]:
    """Turn errors that the data or the arguments cause into a CommandError of one line.

    ``origins`` maps columns to the files they came from, which the message then names.
    """
    try:
        yield
    except (ValueError, TypeError, ImportError) as error:
        message = " ".join(str(error).split())
        for column, file in (origins or {}).items():
            message = message.replace(f"Column {column!r}", f"Column {column!r} of {file}")
        raise CommandError(message) from error


def read_input(arguments: argparse.Namespace, console: Console) -> Data:
    """Read the data that the arguments name, and say what was read and assumed."""
    if arguments.file is None:
        for name in _FILE_OPTIONS:
            if given := getattr(arguments, name):
                remedy = (isinstance(given, list) and hint_to_put_file_first(given)) or "give one"
                raise CommandError(f"--{name.replace('_', '-')} is about a FILE; {remedy}")
        data = example_data(arguments.season_length)
    else:
        data = read_data(
            arguments.file,
            ColumnChoices(
                arguments.layout,
                arguments.id_col,
                arguments.time_col,
                arguments.target_col,
                arguments.dates,
                arguments.repeats,
            ),
            freq=arguments.freq,
            season_length=arguments.season_length,
            exog=arguments.exog,
            decimal=arguments.decimal,
            missing=arguments.missing,
        )
    console.say(data.describe())
    for note in data.notes:
        console.say(note)
    return data


def make_model(arguments: argparse.Namespace, data: Data, scope: str | None = None) -> RBFDiffNet:
    """Return the forecaster that the arguments ask for, or the same with another scope."""
    from rbfdiffnet import RBFDiffNet

    with as_command_error():
        return RBFDiffNet(
            freq=data.freq,
            preset=arguments.preset,
            scope=scope or arguments.scope,
            season_length=data.season_length,
            lower=arguments.lower,
            n_jobs=arguments.jobs,
            random_state=arguments.seed,
        )


def forecast_series(
    arguments: argparse.Namespace, data: Data, progress: ProgressLine
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Forecast all series; return the forecasts, and the notes as in ``RBFDiffNet.report_``."""
    h, level = arguments.horizon, arguments.level

    def forecast(model: RBFDiffNet, frame: pd.DataFrame) -> Any:
        if not data.inputs:
            return model.forecast(frame, h, level=level)
        model.fit(frame)
        return model.predict(h, X_df=future_inputs(model, data, h), level=level)

    found, notes = _run_in_chunks(arguments, data, forecast, progress, "Forecasting")
    return note_closed_weekdays(arguments, data, found, notes)


def backtest_series(
    arguments: argparse.Namespace, data: Data, n_windows: int, progress: ProgressLine
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Forecast windows at the end of all series; return the folds and the notes."""
    h, level = arguments.horizon, arguments.level

    def backtest(model: RBFDiffNet, frame: pd.DataFrame) -> Any:
        return model.cross_validation(frame, h, n_windows=n_windows, level=level)

    return _run_in_chunks(arguments, data, backtest, progress, "Backtesting")


def _run_in_chunks(
    arguments: argparse.Namespace,
    data: Data,
    work: Callable[[RBFDiffNet, pd.DataFrame], Any],
    progress: ProgressLine,
    stage: str,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Work on chunks of the series if each has a network of its own, otherwise on all at once.

    Intervals need all series, because short series borrow the errors of others.
    """
    total = size = data.series.n_series
    model = make_model(arguments, data)
    if model.options.method.learns_series_alone and not (data.inputs or arguments.level):
        size = min(total, _FAST_CHUNK if arguments.preset == "fast" else _CHUNK)
    frames, notes = [], []
    progress.update(stage, 0, total if size < total else 0)
    for start, stop, chunk in data.chunks(size):

        def show_share(share: float, start: int = start, stop: int = stop) -> None:
            progress.update(stage, start + int(share * (stop - start)), total)

        with as_command_error(data.origins), watch_progress(show_share):
            frames.append(work(model, chunk))
        notes.append(model.report_)
        progress.update(stage, stop, total)
        model = make_model(arguments, data)
    with_rows = [frame for frame in notes if len(frame)] or notes[:1]
    return (
        pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0],
        pd.concat(with_rows, ignore_index=True),
    )


def future_inputs(model: RBFDiffNet, data: Data, h: int) -> Any:
    """Return the inputs at the dates that a fitted model forecasts; None if there are no inputs."""
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


def spread_evenly(n: int, most: int) -> Ints:
    """Return the positions of at most ``most`` of ``n`` series, always the same ones."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


def note_closed_weekdays(
    arguments: argparse.Namespace, data: Data, forecast: pd.DataFrame, notes: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Note the weekdays on which daily series never have a value.

    With ``--skip-closed`` the forecasts of these weekdays are left out.
    """
    closed = _find_closed_weekdays(data)
    if closed is None:
        return forecast, notes
    if arguments.skip_closed:
        weekdays = weekday_numbers(forecast["ds"].dt.tz_localize(None).to_numpy())
        kept = ~closed[data.find_series(forecast), weekdays]
        forecast = forecast[kept].reset_index(drop=True)
        if not len(forecast):
            raise CommandError(
                "--skip-closed leaves nothing: no series ever has a value on the weekdays to "
                "forecast; choose a larger --horizon, or leave --skip-closed out"
            )
    return forecast, _add_closed_notes(data, notes, closed, skipped=arguments.skip_closed)


def _find_closed_weekdays(data: Data) -> Mask | None:
    """Return which weekdays are closed, of shape (n_series, 7); None where all are open."""
    if not is_daily(data.frequency):
        return None
    tables = []
    for start, stop, chunk in data.chunks(_WEEKDAY_CHUNK):
        rows = chunk[np.isfinite(chunk["y"].to_numpy(dtype=np.float64))]
        dates = rows["ds"].dt.tz_localize(None).to_numpy()
        codes = rows["unique_id"].cat.codes.to_numpy().astype(np.int64) - start
        tables.append(find_closed_weekdays(codes, dates, stop - start))
    closed = np.concatenate(tables)
    return closed if closed.any() else None


def _add_closed_notes(
    data: Data, notes: pd.DataFrame, closed: Mask, *, skipped: bool
) -> pd.DataFrame:
    positions = np.flatnonzero(closed.any(axis=1)).tolist()
    action = "their forecasts are left out"
    if not skipped:
        action = "they repeat the day before; --skip-closed leaves their forecasts out"
    lines = pd.DataFrame(
        {
            "unique_id": [data.ids[i] for i in positions],
            "problem": [f"no value on {name_weekdays(closed[i])}, ever" for i in positions],
            "action": action,
        }
    )
    if not len(notes):
        return lines
    return pd.concat([notes.astype({"unique_id": object}), lines], ignore_index=True)
