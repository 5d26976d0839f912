"""From a file to series that can be forecast, with everything said that was assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.readers.errors import CommandError
from rbfdiffnet.readers.frequency import describe_frequency
from rbfdiffnet.readers.layouts import LongLayout, MatrixLayout
from rbfdiffnet.readers.roles import ColumnChoices
from rbfdiffnet.support.text import format_dates

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Data", "example_data", "read_data"]

_ENOUGH = 200_000  # rows that tell the frequency
_NAMED = 3  # series that a note names


@dataclass(frozen=True, eq=False)
class Data:
    """Series, their step of time, and how they were read.

    Parameters
    ----------
    series : LongLayout or MatrixLayout
        What is known.
    frequency : Frequency
    season_length : int
        Steps in a season.
    source : str
        Which columns were read, for a person.
    inputs : tuple of str
        Columns beside the target.
    future : DataFrame, optional
        Later values of the inputs: ``ds``, the inputs and, unless they are the same for all series,
        ``unique_id``.
    notes : tuple of str
        What was assumed.
    origins : mapping
        The files the inputs came from.

    Examples
    --------
    >>> from rbfdiffnet.readers import example_data
    >>> example_data().describe()
    'Reading the built-in air passengers (in thousands), 1 series, monthly (MS), 1949-01-01 to ...'
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
        """All series as a long frame."""
        return self.series.part(0, self.series.n_series)

    def describe(self) -> str:
        """Say in one line what was read."""
        first, last = _span(self.series)
        season = f", season of {self.season_length}" if self.season_length > 1 else ", no season"
        return (
            f"Reading {self.source}, {self.series.n_series:,} series, "
            f"{describe_frequency(self.frequency)}, {first} to {last}, "
            f"{self.series.n_values:,} values{season}"
        )


def example_data(season_length: int | None = None) -> Data:
    """Return the built-in example.

    Examples
    --------
    >>> from rbfdiffnet.readers import example_data
    >>> example_data().ids
    ['air_passengers']
    """
    from rbfdiffnet.datasets import load_air_passengers

    frame = load_air_passengers().astype({"unique_id": "category"})
    frequency = Frequency.parse("MS")
    source = "the built-in air passengers (in thousands)"
    return Data(LongLayout.of(frame), frequency, season_length or frequency.season_length, source)


def read_data(
    path: str,
    wanted: ColumnChoices | None = None,
    *,
    freq: str | None = None,
    season_length: int | None = None,
    exog: Sequence[str] = (),
    decimal: str | None = None,
    missing: Sequence[str] = (),
) -> Data:
    r"""Read series from a CSV or Parquet file.

    Parameters
    ----------
    path : str
        The file; ``-`` reads standard input.
    wanted : ColumnChoices, optional
        Layout and columns; what it leaves open is guessed.
    freq : str, optional
        Step of time; by default the one most dates agree on.
    season_length : int, optional
        By default the usual one of the step of time.
    exog : sequence of str, default=()
        Columns of the file that are inputs, and files with values of inputs.
    decimal : {".", ","}, optional
    missing : sequence of str, default=()
        Words in cells that stand for missing values, beside NA, null, - and the like.

    Returns
    -------
    Data

    Raises
    ------
    CommandError
        If anything is wrong with the file, with the line, the column and the remedy.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rbfdiffnet.readers import read_data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.csv")
    ...     _ = file.write_text("day,sold\n1.4.2024,3\n2.4.2024,4\n13.4.2024,6\n")
    ...     data = read_data(str(file), freq="D")
    >>> data.describe()
    "Reading ds from 'day', y from 'sold', 1 series, daily (D), 2024-04-01 to 2024-04-13, 3 ..."
    """
    from rbfdiffnet.readers.assemble import assemble
    from rbfdiffnet.readers.inputs import add_file, cut_future, split_exog
    from rbfdiffnet.readers.table import read_table
    from rbfdiffnet.readers.totals import total_notes

    table = read_table(path, decimal, missing)
    asked = split_exog(table, exog)
    wanted = wanted or ColumnChoices()
    built = assemble(table, wanted, asked.columns)
    series, future, note = cut_future(built.series, asked.columns)
    notes = [*table.notes, *built.notes, *([note] if note else []), *total_notes(series)]
    frequency, season = _frequency(series, freq, table.name)
    season = season_length or season
    notes += _ended(series)
    data = Data(
        *(series, frequency, season, built.source, asked.columns, future),
        origins=dict.fromkeys(asked.columns, table.name),
    )
    for file in asked.files:
        data, more = add_file(data, file, asked, wanted.order, decimal, missing)
        notes += more
    for column in asked.chosen:
        if column not in data.inputs:
            raise CommandError(
                f"--exog: '{column}' is no input in {' or '.join(asked.files)}, no column of "
                f"{table.name} and no file; check the name"
            )
    if frequency.kind == "integer" and data.season_length == 1:
        notes.append(
            "Whole-number steps have no usual season: give --season-length, or --freq (such as D) "
            "if you know what a step is"
        )
    return replace(data, notes=tuple(notes))


def _frequency(
    series: LongLayout | MatrixLayout, freq: str | None, name: str
) -> tuple[Frequency, int]:
    """Return the step of time and its season."""
    if isinstance(series, MatrixLayout):
        times, codes = series.times, np.zeros(len(series.times), dtype=np.int64)
    else:
        stop = int(np.searchsorted(series.offsets, _ENOUGH)) + 1
        part = series.frame.iloc[: series.offsets[min(stop, series.n_series)]]
        times, codes = part["ds"], part["unique_id"].cat.codes.to_numpy().astype(np.int64)
    integer = times.dtype.kind in "iu"
    given = None
    if freq is not None:
        try:
            given = Frequency.parse(int(freq) if freq.isdecimal() else freq)
        except ValueError as error:
            raise CommandError(f"--freq: {error}") from None
    if given is not None and (given.kind == "integer") == integer:
        return given, given.season_length
    if given is not None and not integer:
        raise CommandError(f"--freq {freq}: {name} has dates; give an alias such as D or MS")
    plain = times.to_numpy() if integer else times.dt.tz_localize(None).to_numpy()
    found = Frequency.infer(plain, codes)
    if found is None:
        raise CommandError(
            f"{name}: the step of time cannot be told from the dates; name it with --freq (D, W, "
            "MS, h, 15min, ...)"
        )
    return found, given.season_length if given is not None else found.season_length


def _ended(series: LongLayout | MatrixLayout) -> list[str]:
    """Say which series end before the last date, or before the date at which most of them end."""
    if isinstance(series, MatrixLayout):
        if not series.open_end or series.values.dtype.kind != "f":
            return []
        early = [series.names[i] for i in np.flatnonzero(np.isnan(series.values[:, -1]))]
        _, end = _span(series)
    else:
        last = series.frame.groupby("unique_id", observed=True)["ds"].max()
        usual = last.mode().iloc[-1]
        until = usual if 2 * (last == usual).sum() > len(last) else last.max()
        early = [str(name) for name in last.index[last < until]]
        times = series.frame["ds"]
        _, end = _written(times[times <= until])
    if not early:
        return []
    who = f"{len(early):,} of {series.n_series:,} series"
    names = ", ".join(map(repr, early[:_NAMED])) + (", ..." if len(early) > _NAMED else "")
    if len(early) == 1:
        return [f"{who} ends before {end} ({names}): its forecast starts after its own end"]
    return [f"{who} end before {end} ({names}): their forecasts start after their ends"]


def _span(series: LongLayout | MatrixLayout) -> tuple[str, str]:
    return _written(series.times if isinstance(series, MatrixLayout) else series.frame["ds"])


def _written(times: pd.Series[Any]) -> tuple[str, str]:
    """The first and the last of times, for messages."""
    import pandas as pd

    if times.dtype.kind in "iu":
        return str(times.min()), str(times.max())
    ends = pd.DatetimeIndex([times.min(), times.max()])
    first, last = format_dates(ends)
    return first, last
