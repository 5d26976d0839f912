"""From a file to series that can be forecast, with everything said that was assumed."""

from __future__ import annotations

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pandas as pd

from rbfdiffnet.panel.frequency import DAY, Frequency
from rbfdiffnet.readers.columns import ColumnChoices, find_id_columns, make_ids
from rbfdiffnet.readers.csv_text import parse_csv
from rbfdiffnet.readers.dates import DATE_ORDERS, ParsedTimes, mentions_weeks, parse_times
from rbfdiffnet.readers.layouts import (
    LongLayout,
    MatrixLayout,
    note_totals,
    parse_table,
    read_input,
)
from rbfdiffnet.readers.parquet import read_parquet
from rbfdiffnet.readers.table import Table, quote_names
from rbfdiffnet.support.errors import CommandError
from rbfdiffnet.support.text import format_dates
from rbfdiffnet.support.unpacking import BoundedStream, unpacked_limit

_ENOUGH_ROWS = 200_000  # rows that tell the frequency
_MOST_NAMED = 3  # series that a note names

# From bytes to a table ------------------------------------------------------------------------


def read_table(path: str, decimal: str | None = None, missing: Sequence[str] = ()) -> Table:
    """Read a CSV file (also gzipped, also UTF-16 or Windows-1252) or a Parquet file.

    The path ``-`` means standard input. The first bytes tell what the file is. `decimal` is the
    decimal mark, guessed by default; `missing` has further words for missing values.
    """
    name = "standard input" if path == "-" else path
    try:
        with _open(path) as stream:
            head = stream.read(4)
            stream.seek(0)
            if head == b"PAR1":
                frame = read_parquet(stream, name)
                place = lambda row: f"row {row + 1}"  # noqa: E731
                return Table(name, frame, ".", place, missing_words=(*missing,))
            if head[:2] == b"PK":
                raise CommandError(
                    f"{name} is a ZIP archive or a spreadsheet; save it as CSV or Parquet"
                )
            data = stream.read()
    except FileNotFoundError:
        raise CommandError(f"no file '{path}'; check the name and the folder") from None
    except IsADirectoryError:
        raise CommandError(f"'{path}' is a folder; name a file in it") from None
    except OSError as error:
        raise CommandError(f"cannot read '{path}': {error.strerror or error}") from None
    if data[:2] == b"\x1f\x8b":
        data = _unpack(data, name)
    if Path(path).suffix.lower() in (".parquet", ".pq"):
        raise CommandError(f"{name} is no Parquet file (or a broken one); write it again")
    text, notes = _decode(data, name)
    return replace(parse_csv(text, name, decimal), notes=notes, missing_words=(*missing,))


def _open(path: str) -> IO[bytes]:
    if path != "-":
        return Path(path).open("rb")
    if sys.stdin.isatty():
        raise CommandError("- reads standard input, but nothing is piped into it; name a FILE")
    return io.BytesIO(sys.stdin.buffer.read())


def _unpack(data: bytes, name: str) -> bytes:
    try:
        stream = cast("IO[bytes]", gzip.GzipFile(fileobj=io.BytesIO(data)))
        return BoundedStream(stream, unpacked_limit(len(data))).read()
    except ValueError as error:
        raise CommandError(f"{name} cannot be read: {error}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise CommandError(f"{name} is a broken gzip file ({error}); pack it again") from None


def _decode(data: bytes, name: str) -> tuple[str, tuple[str, ...]]:
    """Return the text and notes; the encoding is told by its mark, or by what is valid."""
    notes: tuple[str, ...] = ()
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    elif data[:200].count(0) > 20:  # UTF-16 without a mark: every other byte of plain text is 0
        encoding = "utf-16-be" if data[:1] == b"\x00" else "utf-16-le"
    else:
        encoding = "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding != "utf-8-sig":
            raise CommandError(f"{name} is not text (byte {error.start}); is it CSV?") from None
        text = data.removeprefix(codecs.BOM_UTF8).decode("cp1252", errors="replace")
        notes = ("Not UTF-8: read as Windows-1252 (Latin-1)",)
    if "\x00" in text[:1000]:
        raise CommandError(f"{name} is not text; give a CSV or a Parquet file")
    return text, notes


# From a file to series ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Data:
    """Series, their step of time, and how they were read.

    `source` says which columns were read, `notes` what was assumed, `origins` from which files the
    `inputs` came. `future` has later values of the inputs: ``ds``, the inputs and, unless they are
    the same for all series, ``unique_id``.
    """

    series: LongLayout | MatrixLayout
    frequency: Frequency
    season_length: int
    source: str
    inputs: tuple[str, ...] = ()
    future: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def freq(self) -> Any:
        """The step of time as the forecaster takes it."""
        return self.frequency.n if self.frequency.kind == "integer" else self.frequency.alias

    @property
    def ids(self) -> list[str]:
        """Names of the series."""
        return self.series.ids

    def frame(self) -> pd.DataFrame:
        """Return all series as a long frame."""
        return self.series.part(0, self.series.n_series)

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
    parsed = parse_table(table, choices, exog_choices.columns)
    series, future, cut_notes = _cut_future(parsed.series, exog_choices.columns)
    notes = [*table.notes, *parsed.notes, *cut_notes, *note_totals(series)]
    frequency, season = _choose_frequency(series, freq, table.name)
    notes += _note_early_ends(series)
    data = Data(
        *(series, frequency, season_length or season, parsed.source, exog_choices.columns, future),
        origins=dict.fromkeys(exog_choices.columns, table.name),
    )
    for file in exog_choices.files:
        inputs = read_table(file, decimal, missing)
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
    return replace(data, notes=tuple(notes))


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


def _choose_frequency(
    series: LongLayout | MatrixLayout, freq: str | None, name: str
) -> tuple[Frequency, int]:
    """Return the step of time, given or told from the dates, and its season."""
    if isinstance(series, MatrixLayout):
        times, codes = series.times, np.zeros(len(series.times), dtype=np.int64)
    else:
        stop = int(np.searchsorted(series.offsets, _ENOUGH_ROWS)) + 1
        part = series.frame.iloc[: series.offsets[min(stop, series.n_series)]]
        times, codes = part["ds"], part["unique_id"].cat.codes.to_numpy().astype(np.int64)
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
    if found is None:
        raise CommandError(
            f"{name}: the step of time cannot be told from the dates; name it with --freq (D, W, "
            "MS, h, 15min, ...)"
        )
    return found, given.season_length if given is not None else found.season_length


def _note_early_ends(series: LongLayout | MatrixLayout) -> list[str]:
    """Say which series end before the last date, or before the date at which most of them end."""
    if isinstance(series, MatrixLayout):
        if not series.open_end or series.values.dtype.kind != "f":
            return []
        early = [series.names[i] for i in np.flatnonzero(np.isnan(series.values[:, -1]))]
        _, end = _format_ends(series.times)
    else:
        last = series.frame.groupby("unique_id", observed=True)["ds"].max()
        usual = last.mode().iloc[-1]
        until = usual if 2 * (last == usual).sum() > len(last) else last.max()
        early = [str(name) for name in last.index[last < until]]
        _, end = _format_ends(series.times[series.times <= until])
    if not early:
        return []
    who = f"{len(early):,} of {series.n_series:,} series"
    names = ", ".join(map(repr, early[:_MOST_NAMED])) + (", ..." * (len(early) > _MOST_NAMED))
    if len(early) == 1:
        return [f"{who} ends before {end} ({names}): its forecast starts after its own end"]
    return [f"{who} end before {end} ({names}): their forecasts start after their ends"]


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


def _cut_future(
    series: LongLayout | MatrixLayout, inputs: Sequence[str]
) -> tuple[LongLayout | MatrixLayout, pd.DataFrame | None, list[str]]:
    """Split off the latest dates if no series has a value there: they are the future.

    Returns what is known, the future values of `inputs`, if there are any, and notes.
    """
    if isinstance(series, MatrixLayout):
        if series.values.dtype.kind != "f" or series.open_end:
            return series, None, []
        known = np.flatnonzero(~np.isnan(series.values).all(axis=0))
        later = len(series.times) - int(known[-1]) - 1 if known.size else 0
        if not later:
            return series, None, []
        kept = replace(series, times=series.times[:-later], values=series.values[:, :-later])
        if later == 1:
            return kept, None, ["The last date has no value and is left out"]
        return kept, None, [f"The last {later:,} dates have no values and are left out"]
    frame = series.frame
    has_value = frame["y"].notna()
    if has_value.all() or not has_value.any():
        return series, None, []
    is_later = (frame["ds"] > frame.loc[has_value, "ds"].max()).to_numpy()
    if not is_later.any():
        return series, None, []
    future = frame.loc[is_later, ["unique_id", "ds", *inputs]].reset_index(drop=True)
    long = LongLayout.of(frame[~is_later].reset_index(drop=True))
    count = future["ds"].nunique()
    if count == 1:
        note = "The last date has no value: it is taken as the future"
    else:
        note = f"The last {count:,} dates have no values: they are taken as the future"
    return long, future if inputs else None, [note]


def _add_inputs(
    data: Data, table: Table, path: str, exog: _ExogChoices, order: str | None
) -> tuple[Data, list[str]]:
    """Add inputs from a table that has them by date, or by series and date.

    Inputs that the series do not have yet are joined to the known dates; values of later dates are
    kept for the forecast.
    """
    history = data.frame()
    taken = [*exog.file_columns, *exog.columns]
    time, times = _find_input_times(table, history["ds"], taken, order)
    ids = find_id_columns(table, times.values.to_numpy(), ColumnChoices(), [time, *taken])
    names = [column for column in table.columns if column not in {time, *ids}]
    if exog.file_columns:
        names = [column for column in names if column in taken]
    if not names:
        asked = quote_names(exog.file_columns) or "any input"
        raise CommandError(f"--exog: {table.name} does not have {asked} ({table.list_columns()})")
    columns: dict[str, Any] = {column: read_input(table, column) for column in names}
    columns["ds"] = times.values.array
    keys = ["ds"]
    if ids:
        keys = ["unique_id", "ds"]
        found = pd.Series(make_ids(table, ids)).astype(object)
        columns["unique_id"] = pd.Categorical(
            found.where(found.isin(data.ids)), categories=data.ids
        )
    values = pd.DataFrame(columns)
    values = values[values[keys].notna().all(axis=1)]  # other series do not count
    if (again := values.duplicated(keys)).any():
        row = int(values.index[again][0])
        raise CommandError(
            f"{table.name}, {table.locate_row(row)}: there is another line for "
            f"{' and '.join(str(values.loc[row, key]) for key in keys)}; keep one"
        )
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


def _find_input_times(
    table: Table, known: pd.Series[Any], taken: Sequence[str], order: str | None
) -> tuple[str, ParsedTimes]:
    """Find the column of a table of inputs that has the most known dates, and later ones."""
    shares: dict[str, float] = {}
    found: dict[str, ParsedTimes] = {}
    dates = known.drop_duplicates()
    first, last = dates.min(), dates.max()
    for column in table.columns:
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
