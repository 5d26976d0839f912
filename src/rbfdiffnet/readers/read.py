"""From a file to series that can be forecast, with everything said that was assumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rbfdiffnet.panel.exogenous import SCENARIO, STD
from rbfdiffnet.panel.frequency import DAY, Frequency
from rbfdiffnet.readers.columns import (
    ColumnChoices,
    find_counters,
    find_id_columns,
)
from rbfdiffnet.readers.dates import DATE_ORDERS, ParsedTimes, mentions_weeks, parse_times
from rbfdiffnet.readers.files import read_table
from rbfdiffnet.readers.keys import make_ids
from rbfdiffnet.readers.layouts import (
    check_inputs,
    parse_table,
    read_input,
)
from rbfdiffnet.readers.table import Layout, LongLayout, Table, quote_names
from rbfdiffnet.readers.totals import note_totals
from rbfdiffnet.support.arrays import Ints
from rbfdiffnet.support.checks import CommandError
from rbfdiffnet.support.parallel import even_chunks
from rbfdiffnet.support.text import format_dates

_ENOUGH_ROWS = 200_000  # rows that tell the frequency
_MOST_NAMED = 3  # series that a note names
_OPEN, _FEWEST_DAYS = 0.9, 5  # most times of day that have values, of hours that are closed


@dataclass(frozen=True, eq=False)
class Data:
    """Series, their step of time, and how they were read.

    `source` says which columns were read, `target` which of them are forecast (empty where columns
    are dates), `notes` what was assumed, `origins` from which files the `inputs` came. `future` has
    later values of the inputs: ``ds``, the inputs and, unless they are the same for all series,
    ``unique_id``. `groups` has the groups of each series, by its name.
    `past` are inputs that are known only afterwards, `stds` the columns of `future` that say how
    uncertain inputs are.
    """

    series: Layout
    frequency: Frequency
    season_length: int
    source: str
    inputs: tuple[str, ...] = ()
    future: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    groups: pd.DataFrame | None = None
    target: str = ""
    past: tuple[str, ...] = ()
    stds: tuple[str, ...] = ()

    @property
    def freq(self) -> Any:
        """The step of time as the forecaster takes it."""
        return self.frequency.n if self.frequency.kind == "integer" else self.frequency.alias

    @property
    def ids(self) -> list[str]:
        """Names of the series."""
        return self.series.ids

    def frame(self) -> pd.DataFrame:
        """Return all series as a long frame, with their groups."""
        frame = self.series.part(0, self.series.n_series)
        if self.groups is None:
            return frame
        codes = frame["unique_id"].cat.codes.to_numpy()
        own = self.groups.loc[self.ids]
        return frame.assign(**{name: own[name].to_numpy()[codes] for name in own.columns})

    def chunks(self, size: int) -> Iterator[tuple[int, int, pd.DataFrame]]:
        """Yield long frames of up to `size` series, with the positions of their start and stop."""
        for chunk in even_chunks(self.series.n_series, size):
            yield chunk.start, chunk.stop, self.series.part(chunk.start, chunk.stop)

    def select(self, positions: Sequence[int] | Ints) -> Data:
        """Return the data of some series, given by ascending positions."""
        chosen = np.asarray(positions, dtype=np.int64)
        if len(chosen) == self.series.n_series:
            return self
        return replace(self, series=self.series.select(chosen))

    def replace_series(self, frame: pd.DataFrame) -> Data:
        """Return the same with other series, ``unique_id`` (categorical), ``ds`` and ``y``."""
        return replace(self, series=LongLayout.of(frame), groups=None)

    def find_series(self, frame: pd.DataFrame) -> Ints:
        """Return the position of the series of each row; -1 for a series that is not here."""
        codes, names = pd.factorize(frame["unique_id"].astype(object))
        return np.asarray(pd.Index(self.ids, dtype=object).get_indexer(names)[codes], np.int64)

    def describe(self) -> str:
        """Say in one line what was read."""
        first, last = _format_ends(self.series.times)
        season = f", season of {self.season_length}" if self.season_length > 1 else ", no season"
        return (
            f"Reading {self.source}, {self.series.n_series:,} series, "
            f"{describe_frequency(self.frequency)}, {first} to {last}, "
            f"{self.series.n_values:,} values{season}"
        )


def example_data(season_length: int | None = None) -> Data:
    """Return the built-in example."""
    from rbfdiffnet.datasets import load_air_passengers

    frame = load_air_passengers().astype({"unique_id": "category"})
    frequency = Frequency.parse("MS")
    source = "the built-in air passengers (in thousands)"
    season = season_length or frequency.season_length
    return Data(LongLayout.of(frame), frequency, season, source)


def read_data(
    path: str,
    choices: ColumnChoices | None = None,
    *,
    freq: str | None = None,
    season_length: int | None = None,
    exog: Sequence[str] = (),
    decimal: str | None = None,
    missing: Sequence[str] = (),
) -> Data:
    """Read series from a CSV or Parquet file, or raise CommandError with line and remedy.

    The path ``-`` means standard input. `freq` is the step of time, by default the one most dates
    agree on. `exog` has columns of the file that are inputs, files with values of inputs, and
    columns of those files. `missing` has words for missing values, beside NA, null, - and the like.
    """
    table = read_table(path, decimal, missing)
    exog_choices = _split_exog(table, exog)
    choices = choices or ColumnChoices()
    past = _check_past(table, choices.past, exog_choices)
    parsed = parse_table(table, choices, (*exog_choices.columns, *past))
    if choices.groups and parsed.groups is None:
        raise CommandError(
            f"--group {choices.groups[0]}: {table.name} has no row with a series and its groups; "
            "put the series below each other (--layout long), or in rows (--layout rows)"
        )
    series, future, cut_notes = parsed.series.split_future(exog_choices.columns)
    notes = [*table.notes, *parsed.notes, *cut_notes, *note_totals(series)]
    frequency, season = _choose_frequency(series, freq, table.name)
    notes += [*_note_early_ends(series), *_note_closed_hours(series, frequency)]
    data = Data(
        *(series, frequency, season_length or season, parsed.source, exog_choices.columns, future),
        origins=dict.fromkeys((*exog_choices.columns, *past), table.name),
        groups=parsed.groups,
        target=parsed.target,
        past=past,
    )
    for file in exog_choices.files:
        inputs = read_table(file, decimal, missing)
        if SCENARIO in inputs.columns and SCENARIO not in table.columns:
            raise CommandError(
                f"{inputs.name}: a column {SCENARIO!r} names several futures, but the command line "
                "forecasts one at a time; give each scenario a file of its own without that "
                "column, or in Python all of them, predict(h, X_df=...)"
            )
        data, more = _add_inputs(data, inputs, file, exog_choices, choices.order)
        notes += more
    for column in exog_choices.file_columns:
        if column not in data.inputs:
            raise CommandError(
                f"--exog: '{column}' is no input in {' or '.join(exog_choices.files)}, no column "
                f"of {table.name} and no file; check the name"
            )
    if frequency.kind == "integer" and data.season_length == 1:
        notes.append(
            "Whole-number steps have no usual season: give --season-length, or --freq (such as D) "
            "if you know what a step is"
        )
    return replace(_set_stds_apart(data), notes=tuple(notes))


# Months in a step: (adverb, unit in the plural).
_MONTHS = {12: ("yearly", "years"), 3: ("quarterly", "quarters"), 1: ("monthly", "months")}
# Nanoseconds in a step.
_TICKS = {
    7 * DAY: ("weekly", "weeks"),
    DAY: ("daily", "days"),
    DAY // 24: ("hourly", "hours"),
    DAY // 1440: ("every minute", "minutes"),
    DAY // 86400: ("every second", "seconds"),
}


def describe_frequency(frequency: Frequency) -> str:
    """Say a step of time in words, with its alias: "monthly (MS)", "every 15 minutes (15min)"."""
    if frequency.kind == "integer":
        return "whole-number steps" + (f" of {frequency.n}" if frequency.n > 1 else "")
    if frequency.alias == "B":
        return "on business days (B)"
    table = {"month": _MONTHS, "tick": _TICKS}.get(frequency.kind, {})
    for size, (adverb, units) in table.items():
        count = frequency.n // size
        if frequency.n % size == 0:
            words = adverb if count == 1 else f"every {count} {units}"
            return f"{words} ({frequency.alias})"
    return frequency.alias


def _choose_frequency(series: Layout, freq: str | None, name: str) -> tuple[Frequency, int]:
    """Return the step of time, given or told from the dates, and its season."""
    times, codes = series.sample_times(_ENOUGH_ROWS)
    integer = times.dtype.kind in "iu"
    given = None
    if freq is not None:
        try:
            given = Frequency.parse(int(freq) if freq.isdecimal() else freq)
        except ValueError as error:
            raise CommandError(f"--freq: {error}") from None
        if (given.kind == "integer") == integer:
            return given, given.season_length
        if not integer:
            raise CommandError(f"--freq {freq}: {name} has dates; give an alias such as D or MS")
    values = times.to_numpy() if integer else times.dt.tz_localize(None).to_numpy()
    found = Frequency.infer(values, codes)
    if found is None and given is not None:
        raise CommandError(
            f"--freq {freq}: {name} has no dates, and no series has two rows to count; name the "
            "column of dates with --time-col, or say --layout rows if columns are named by dates"
        )
    if found is None:
        raise CommandError(
            f"{name}: the step of time cannot be told from the dates; name it with --freq (D, W, "
            "MS, h, 15min, ...)"
        )
    return found, given.season_length if given is not None else found.season_length


def _note_early_ends(series: Layout) -> list[str]:
    """Say which series end before the last date, or before the date at which most of them end."""
    early, times = series.find_early_ends()
    if not early:
        return []
    _, end = _format_ends(times)
    who = f"{len(early):,} of {series.n_series:,} series"
    names = ", ".join(map(repr, early[:_MOST_NAMED])) + (", ..." * (len(early) > _MOST_NAMED))
    if len(early) == 1:
        return [f"{who} ends before {end} ({names}): its forecast starts after its own end"]
    return [f"{who} end before {end} ({names}): their forecasts start after their ends"]


def _note_closed_hours(series: Layout, frequency: Frequency) -> list[str]:
    """Say how to leave out times of day that never have a value, as nights of a shop."""
    if frequency.kind != "tick" or frequency.n >= DAY or DAY % frequency.n:
        return []
    times, _ = series.sample_times(_ENOUGH_ROWS)
    stamps = times.dt.tz_localize(None).to_numpy().astype("M8[ns]").view(np.int64)
    n_open, n_all = len(np.unique(stamps % DAY // frequency.n)), DAY // frequency.n
    if n_open > _OPEN * n_all or len(np.unique(stamps // DAY)) < _FEWEST_DAYS:
        return []
    return [
        f"Days have values at {n_open:,} of {n_all:,} times only, but all times are forecast; to "
        f"count rows instead: --time-col none --season-length {n_open}"
    ]


def _format_ends(times: pd.Series[Any]) -> tuple[str, str]:
    """Return the first and the last of times, for messages."""
    if times.dtype.kind in "iu":
        return str(times.min()), str(times.max())
    first, last = format_dates(pd.DatetimeIndex([times.min(), times.max()]))
    return first, last


# Inputs of forecasts: columns of the file, or other files, with values known ahead -------------


@dataclass(frozen=True)
class _ExogChoices:
    """What the user chose as inputs.

    `columns` are columns of the file of the series; `files` are other files, whose columns
    `file_columns` count, or all of them if none is named.
    """

    columns: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    file_columns: tuple[str, ...] = ()


def _split_exog(table: Table, items: Sequence[str]) -> _ExogChoices:
    """Tell columns of a table, files, and columns of files apart."""
    own = tuple(item for item in items if item in table.columns)
    files = tuple(item for item in items if item not in own and Path(item).is_file())
    others = tuple(item for item in items if item not in {*own, *files})
    if others and not files:
        raise CommandError(
            f"--exog {others[0]}: no such file, and no such column in {table.name} (columns: "
            f"{table.list_columns()})"
        )
    return _ExogChoices(own, files, others)


def _check_past(table: Table, past: Sequence[str], exog: _ExogChoices) -> tuple[str, ...]:
    """Return the inputs that are known only afterwards, columns of a table."""
    for column in past:
        if column not in table.columns:
            raise CommandError(
                f"--past-exog {column}: no such column in {table.name} (columns: "
                f"{table.list_columns()})"
            )
        if column in exog.columns:
            raise CommandError(f"column '{column}' cannot be in both --exog and --past-exog")
    return tuple(dict.fromkeys(past))


def _add_inputs(
    data: Data, table: Table, path: str, exog: _ExogChoices, order: str | None
) -> tuple[Data, list[str]]:
    """Add inputs from a table that has them by date, or by series and date.

    Inputs that the series do not have yet are joined to the known dates; values of later dates are
    kept for the forecast.
    """
    history = data.frame()
    taken = [*exog.file_columns, *exog.columns]
    counters = [column for column in find_counters(table) if column not in taken]
    time, times = _find_input_times(table, history["ds"], taken, order)
    left = [time, *counters, *taken]
    ids = find_id_columns(table, times.values.to_numpy(), ColumnChoices(), left)
    names = [column for column in table.columns if column not in {time, *counters, *ids}]
    if exog.file_columns:
        names = [column for column in names if column in taken]
    if not names:
        asked = quote_names(exog.file_columns) or "any input"
        raise CommandError(f"--exog: {table.name} does not have {asked} ({table.list_columns()})")
    check_inputs(names, {})
    keys, values = _read_inputs(table, times, ids, names, data.ids)
    new = [column for column in names if column not in data.inputs]
    joined = history.merge(values[[*keys, *new]], on=keys, how="left") if new else history
    later = values[values["ds"] > history["ds"].max()]
    if data.future is not None:
        other = data.future.drop(columns=names, errors="ignore")
        later = other.merge(later, on=keys, how="outer")
    by, named = quote_names([*ids, time]), quote_names(names)
    notes = [f"Inputs from {table.name} by {by}: {named}", *table.notes, *table.mark_notes(names)]
    if times.note:
        notes.append(f"{times.note}, in {table.name}")
    origins = {c: f"{data.origins[c]} and {path}" if c in data.origins else path for c in names}
    joint = replace(
        data,
        series=LongLayout.of(joined),
        inputs=(*data.inputs, *new),
        future=later,
        origins={**data.origins, **origins},
    )
    return joint, notes


def _set_stds_apart(data: Data) -> Data:
    """Tell standard deviations of inputs, which only later dates have, from inputs."""
    named = [x for x in data.inputs if x.endswith(STD) and x.removesuffix(STD) in data.inputs]
    if not named or data.future is None:
        return data
    history = data.frame()
    stds = tuple(name for name in named if history[name].isna().all())
    inputs = tuple(name for name in data.inputs if name not in stds)
    series = LongLayout.of(history.drop(columns=[*stds]))
    return replace(data, series=series, inputs=inputs, stds=stds)


def _read_inputs(
    table: Table, times: ParsedTimes, ids: list[str], names: list[str], series: list[str]
) -> tuple[list[str], pd.DataFrame]:
    """Return the columns that say when (and for which series), and a frame of these and inputs."""
    columns: dict[str, Any] = {column: read_input(table, column) for column in names}
    columns["ds"] = times.values.array
    keys = ["ds"]
    if ids:
        keys = ["unique_id", "ds"]
        found = pd.Series(make_ids(table, ids)).astype(object)
        columns["unique_id"] = pd.Categorical(found.where(found.isin(series)), categories=series)
    values = pd.DataFrame(columns)
    values = values[values[keys].notna().all(axis=1)]  # other series do not count
    if (again := values.duplicated(keys)).any():
        row = int(values.index[again][0])
        raise CommandError(
            f"{table.name}, {table.locate_row(row)}: there is another line for "
            f"{' and '.join(str(values.loc[row, key]) for key in keys)}; keep one"
        )
    return keys, values


def _find_input_times(
    table: Table, known: pd.Series[Any], taken: Sequence[str], order: str | None
) -> tuple[str, ParsedTimes]:
    """Find the column of a table of inputs that has the most known dates, and later ones."""
    shares: dict[str, float] = {}
    found: dict[str, ParsedTimes] = {}
    dates = known.drop_duplicates()
    first, last = dates.min(), dates.max()
    counters = find_counters(table)  # steps only where no other column has them
    for column in sorted(table.columns, key=lambda column: column in counters):
        cells = table.frame[column]
        if column in taken or cells.dtype.kind == "f":
            continue
        weeks = mentions_weeks(column)
        readings = [parse_times(cells, order, weeks=weeks)]
        if readings[0].note and order is None:  # the known dates may tell the order
            for name, other in (("dmy", "mdy"), ("mdy", "dmy")):
                words = f"Dates are read as {DATE_ORDERS[name]} to suit the series"
                note = f"{words} (otherwise: --dates {other})"
                readings.append(replace(parse_times(cells, name, weeks=weeks), note=note))
        for times in readings:
            if times.values.dtype.kind != known.dtype.kind or len(times.bad):
                continue
            later = (times.values > last) & (times.values - last <= last - first)
            share = float(dates.isin(times.values).mean() + later.mean())
            if share > shares.get(column, -1.0):
                found[column], shares[column] = times, share
    best = max(shares, key=lambda column: shares[column], default=None)
    if best is None or not shares[best]:
        kind = "steps" if known.dtype.kind in "iu" else "dates"
        raise CommandError(
            f"{table.name} has no column with the {kind} of the series (columns: "
            f"{table.list_columns()}); add one"
        )
    return best, found[best]
