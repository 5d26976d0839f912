"""What commands share: messages, reading, and the forecaster on all series or on some of them."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rbfdiffnet.cli.arguments import hint_to_put_file_first
from rbfdiffnet.forecasting.hierarchy import RECONCILERS
from rbfdiffnet.panel.calendar import (
    describe_closed,
    find_closed_weekdays,
    is_daily,
    weekday_numbers,
)
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.readers import ColumnChoices, Data, example_data, read_data
from rbfdiffnet.support.arrays import Ints, Mask
from rbfdiffnet.support.checks import CommandError, DataWarning
from rbfdiffnet.support.notes import CLOSED
from rbfdiffnet.support.progress import ProgressLine, progress_between, watch_progress
from rbfdiffnet.support.text import one_line, printable

if TYPE_CHECKING:
    from rbfdiffnet import RBFDiffNet


_CHUNK, _FAST_CHUNK = 100, 1000  # series that are forecast at a time
_FILE_OPTIONS = (
    *("layout", "id_col", "time_col", "target_col", "exog", "past_exog"),
    *("freq", "repeats", "dates", "decimal", "missing", "group"),
)
_WEEKDAY_CHUNK = 2000  # series whose weekdays are looked at at a time


@dataclass(frozen=True)
class Console:
    """Messages of a command; its results are printed elsewhere.

    With ``quiet`` nothing is said. With ``document`` standard output belongs to one document, so
    messages go to standard error.
    """

    quiet: bool = False
    document: bool = False
    progress: ProgressLine | None = None

    def say(self, text: str = "") -> None:
        """Print a message."""
        if not self.quiet:
            self._make_room()
            print(printable(text), file=sys.stderr if self.document else sys.stdout, flush=True)

    def warn(self, text: str) -> None:
        """Print a message that a person should not miss, on standard error."""
        if not self.quiet:
            self._make_room()
            sys.stdout.flush()
            print(f"rbfdiffnet: note: {one_line(text)}", file=sys.stderr, flush=True)

    def _make_room(self) -> None:
        if self.progress is not None:
            self.progress.wipe()


def describe_problems(notes: pd.DataFrame) -> list[str]:
    """Return a line for each kind of problem: its first series, and how many more have it.

    ``notes`` is the frame ``RBFDiffNet.notes_``. Problems that differ only in numbers, dates and
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


def _first(seasons: int | tuple[int, ...] | None) -> int | None:
    return seasons[0] if isinstance(seasons, tuple) else seasons


def read_input(arguments: argparse.Namespace) -> Data:
    """Read the data that the arguments name."""
    if getattr(arguments, "reconcile", None) and not arguments.group:
        raise CommandError("--reconcile is about groups; give --group")
    if arguments.file is None:
        for name in _FILE_OPTIONS:
            if given := getattr(arguments, name, None):
                remedy = (isinstance(given, list) and hint_to_put_file_first(given)) or "give one"
                raise CommandError(f"--{name.replace('_', '-')} is about a FILE; {remedy}")
        return example_data(_first(arguments.season_length))
    columns = (
        "layout",
        "id_col",
        "time_col",
        "target_col",
        "dates",
        "repeats",
        "group",
        "past_exog",
    )
    said: list[Any] = [getattr(arguments, name, ()) for name in columns]
    return read_data(
        arguments.file,
        ColumnChoices(*said),
        freq=arguments.freq,
        season_length=_first(arguments.season_length),
        exog=arguments.exog,
        decimal=arguments.decimal,
        missing=arguments.missing,
    )


@contextmanager
def start_job(arguments: argparse.Namespace) -> Iterator[Job]:
    """Read the series, say what was read and assumed, and show progress until the end."""
    with ProgressLine(quiet=arguments.quiet) as progress:
        console = Console(arguments.quiet, arguments.document is not None, progress)
        progress.update("Reading")
        data = read_input(arguments)
        for line in (data.describe(), *data.notes):
            console.say(line)
        with _show_warnings(console):
            yield Job(arguments, data, console, progress)


@contextmanager
def _show_warnings(console: Console) -> Iterator[None]:
    """Say warnings about the data as notes, each once."""
    said, show_other = set(), warnings.showwarning

    def show(message: Any, category: Any, *where: Any, **more: Any) -> None:
        if category is not DataWarning:
            show_other(message, category, *where, **more)
        elif str(message) not in said:
            said.add(str(message))
            console.warn(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        warnings.showwarning = show
        yield


@dataclass(frozen=True)
class Job:
    """A command at work: its arguments, the series that were read, and what it says on the way."""

    arguments: argparse.Namespace
    data: Data
    console: Console
    progress: ProgressLine

    @property
    def seasons(self) -> int | tuple[int, ...]:
        """The season that was asked for, perhaps with a longer one, or the one that was read."""
        return self.arguments.season_length or self.data.season_length

    def make_model(self, scope: str | None = None) -> RBFDiffNet:
        """Return the forecaster that was asked for, or one with another scope and one season."""
        from rbfdiffnet import RBFDiffNet

        arguments = self.arguments
        with as_command_error():
            return RBFDiffNet(
                freq=self.data.freq,
                preset=arguments.preset,
                scope=scope or arguments.scope,
                season_length=self.data.season_length if scope else self.seasons,
                lower=arguments.lower,
                upper=arguments.upper,
                n_jobs=arguments.jobs,
                past_exog=self.data.past,
                **self._hierarchy,
            )

    @cached_property
    def shown(self) -> Data:
        """The series, and before them the groups they add up to, if there are any."""
        if self.data.groups is None:
            return self.data
        panel = self.panel
        frame = panel.make_frame(0, panel.lengths, {"y": panel.y})
        names = pd.Categorical(frame["unique_id"], categories=panel.names)
        return self.data.replace_series(frame.assign(unique_id=names))

    @cached_property
    def panel(self) -> Panel:
        """The series and groups on one grid."""
        with as_command_error(self.data.origins):
            return self.make_model().options.read_panel(self.data.frame())

    @property
    def _hierarchy(self) -> dict[str, Any]:
        """The arguments of the forecaster that are about groups, if there are any."""
        if self.data.groups is None:
            return {}
        reconcile = self.arguments.reconcile or RECONCILERS[0]
        return {"hierarchy": self.arguments.group, "reconcile": reconcile}

    def forecast(self, *, totals: bool = True) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Forecast all series; return the forecasts, and the notes as in ``RBFDiffNet.notes_``.

        These are totals if they were asked for, unless ``totals`` is False.
        """
        h = self.arguments.horizon
        names = ("level", "quantiles", "totals")  # evaluate has no totals
        wanted = {name: getattr(self.arguments, name, None) for name in names}
        wanted["totals"] = wanted["totals"] if totals else None

        def forecast(model: RBFDiffNet, frame: pd.DataFrame) -> Any:
            if not self.data.inputs:
                return model.forecast(frame, h, **wanted)
            fit_share = model.options.method.fit_share
            with progress_between(0.0, fit_share):
                model.fit(frame)
            with progress_between(fit_share, 1.0):
                return model.predict(h, X_df=self.future_inputs(model), **wanted)

        found = self._run_in_chunks(forecast, "Forecasting")
        return found if wanted["totals"] else self.note_closed_weekdays(*found)

    def backtest(self, n_windows: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Forecast windows at the end of all series; return the folds and the notes."""
        arguments = self.arguments
        h, level, quantiles = arguments.horizon, arguments.level, arguments.quantiles
        alone = self.data.groups is not None and arguments.reconcile != "none"

        def backtest(model: RBFDiffNet, frame: pd.DataFrame) -> Any:
            return model.cross_validation(
                frame, h, n_windows, level=level, quantiles=quantiles, alone=alone
            )

        return self._run_in_chunks(backtest, "Backtesting")

    def _run_in_chunks(
        self, work: Callable[[RBFDiffNet, pd.DataFrame], Any], stage: str
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Work on chunks of the series if each has a network of its own, otherwise on all at once.

        Intervals need all series, because short series borrow the errors of others.
        """
        data, progress = self.data, self.progress
        total = size = data.series.n_series
        model = self.make_model()
        distributions = self.arguments.level or self.arguments.quantiles
        alone = model.options.method.learns_series_alone and data.groups is None
        if alone and not (data.inputs or data.past or distributions):
            size = min(total, _FAST_CHUNK if self.arguments.preset == "fast" else _CHUNK)
        frames, notes = [], []
        progress.update(stage, 0, total)
        for start, stop, chunk in data.chunks(size):
            frame = chunk if data.groups is None else data.frame()

            def show_share(share: float, start: int = start, stop: int = stop) -> None:
                progress.update(stage, start + share * (stop - start), total)

            with as_command_error(data.origins), watch_progress(show_share):
                frames.append(work(model, frame))
            notes.append(model.notes_)
            progress.update(stage, stop, total)
            model = self.make_model()
        with_rows = [frame for frame in notes if len(frame)] or notes[:1]
        return (
            pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0],
            pd.concat(with_rows, ignore_index=True),
        )

    def explain(
        self, model: RBFDiffNet, frame: pd.DataFrame, ids: Sequence[str]
    ) -> dict[str, pd.DataFrame]:
        """Fit a model; return the "terms" of the forecasts of some series.

        Where networks were fitted, also the "equation" of each.
        """
        h = self.arguments.horizon
        method = model.options.method
        with as_command_error():
            with progress_between(0.0, method.fit_share):
                model.fit(frame)
            with progress_between(method.fit_share, 1.0):
                found = {"terms": model.explain(h, X_df=self.future_inputs(model), ids=ids)}
            if method.has_networks:
                found["equation"] = model.equation(ids)
        return found

    def future_inputs(self, model: RBFDiffNet) -> Any:
        """Return the inputs at the dates that a fitted model forecasts; None if there are none."""
        data, h = self.data, self.arguments.horizon
        if not data.inputs:
            return None
        dates = model.make_future_frame(h)
        if data.future is None:
            raise CommandError(
                f"the inputs ({', '.join(data.inputs)}) must be known for the {h} steps to "
                "forecast: add rows after the last date with the target left empty, or name a file "
                "with them in --exog"
            )
        keys = [key for key in ("unique_id", "ds") if key in data.future.columns]
        columns = [*keys, *data.inputs, *data.stds]
        return dates.merge(data.future[columns], on=keys, how="left")

    def note_closed_weekdays(
        self, forecast: pd.DataFrame, notes: pd.DataFrame
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Note the weekdays on which daily series never have a value.

        With ``--skip-closed`` the forecasts of these weekdays are left out. Totals never have them.
        """
        closed = _find_closed_weekdays(self.data)
        positions = np.flatnonzero(closed.any(axis=1)).tolist()
        if not positions:
            return forecast, notes
        forecasts = "they repeat the day before"
        if self.data.groups is not None:
            forecasts = "they are 0 where other series have values"
        action = f"{forecasts}; --skip-closed leaves their forecasts out"
        if self.arguments.skip_closed:
            action = "their forecasts are left out"
            weekdays = weekday_numbers(forecast["ds"].dt.tz_localize(None).to_numpy())
            series = self.data.find_series(forecast)  # -1 for groups
            kept = (series < 0) | ~closed[series, weekdays]
            forecast = forecast[kept].reset_index(drop=True)
            if not len(forecast):
                raise CommandError(
                    "--skip-closed leaves nothing: no series ever has a value on the weekdays to "
                    "forecast; choose a larger --horizon, or leave --skip-closed out"
                )
        ids = self.data.ids
        lines = pd.DataFrame(
            {
                "unique_id": [ids[i] for i in positions],
                "kind": CLOSED,
                "problem": [describe_closed(closed[i]) for i in positions],
                "action": action,
            }
        )
        others = notes[notes["kind"] != CLOSED]  # the model says it otherwise
        earlier = [others.astype({"unique_id": object})] if len(others) else []
        return forecast, pd.concat([*earlier, lines], ignore_index=True)


def spread_evenly(n: int, most: int) -> Ints:
    """Return the positions of at most ``most`` of ``n`` series, always the same ones."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


def _find_closed_weekdays(data: Data) -> Mask:
    """Return which weekdays are closed, of shape (n_series, 7)."""
    if not is_daily(data.frequency):
        return np.zeros((data.series.n_series, 7), dtype=bool)
    tables = []
    for start, stop, chunk in data.chunks(_WEEKDAY_CHUNK):
        rows = chunk[np.isfinite(chunk["y"].to_numpy(dtype=np.float64))]
        dates = rows["ds"].dt.tz_localize(None).to_numpy()
        codes = rows["unique_id"].cat.codes.to_numpy().astype(np.int64) - start
        tables.append(find_closed_weekdays(codes, dates, stop - start))
    return np.concatenate(tables)
