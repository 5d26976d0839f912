"""Inputs besides the lags: columns of the frame, calendar parts, events and holidays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.calendar import CalendarInputs, Event, choose_calendar_parts
from rbfdiffnet.panel.encode import Encoder
from rbfdiffnet.panel.frames import read_frame, read_values
from rbfdiffnet.panel.panel import ColumnNames, Panel
from rbfdiffnet.series.series import SeriesPanel
from rbfdiffnet.support.collective import SINGLE_MACHINE, Collective

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
FlatColumns = dict[str, npt.NDArray[Any]]

_NOTHING = Encoder(())
_DAY = 24 * 60 * 60  # seconds


@dataclass(frozen=True)
class Exogenous:
    """Which inputs there are and how they become numbers, fixed when a model is fitted.

    Columns in `future` are known in advance, those in `past` when they happen, and those in
    `static` never change within a series.
    """

    future: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    static: tuple[str, ...] = ()
    future_encoder: Encoder = _NOTHING
    past_encoder: Encoder = _NOTHING
    static_encoder: Encoder = _NOTHING
    calendar: CalendarInputs | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the frame that are used."""
        return (*self.future, *self.past, *self.static)

    @property
    def ahead_names(self) -> tuple[str, ...]:
        """Names of the inputs known in advance."""
        calendar = () if self.calendar is None else self.calendar.names
        return (*self.future_encoder.names, *calendar)

    @property
    def extra_names(self) -> tuple[str, ...]:
        """Names of the other inputs."""
        return (*self.past_encoder.names, *self.static_encoder.names)

    @staticmethod
    def find_columns(df: Any, columns: ColumnNames) -> tuple[str, ...]:
        """Return the columns of a frame that are not id, date or target."""
        if df is None:
            return ()
        read_frame(df, ())
        keys = (columns.id, columns.time, columns.target)
        return tuple(str(name) for name in df.columns if name not in keys)

    @classmethod
    def fit(
        cls,
        panel: Panel,
        *,
        past: Sequence[str] = (),
        static: Sequence[str] = (),
        use_static: bool = True,
        calendar: str | Sequence[str] | None = None,
        events: Sequence[Event] = (),
        holidays: str | None = None,
        holiday_lead: int = 0,
        holiday_lag: int = 0,
        collective: Collective = SINGLE_MACHINE,
    ) -> Self:
        """Fix the inputs for a panel that holds all columns.

        Columns that are neither in `past` nor in `static` are known in advance. If not
        `use_static`, unchanging columns are set aside. On a cluster, `collective` connects this
        panel with its other parts.
        """
        for name in (*past, *static):
            if name not in panel.inputs:
                raise ValueError(
                    f"Column {name!r} is not in the frame; its further columns are "
                    f"{list(panel.inputs)}."
                )
        future = tuple(name for name in panel.inputs if name not in (*past, *static))
        static = tuple(static) if use_static else ()
        flat = _fill_inputs(panel)

        def where(row: int) -> str:
            return _describe_row(panel, row)

        return cls(
            future,
            tuple(past),
            static,
            Encoder.fit({name: flat[name] for name in future}, where, collective=collective),
            Encoder.fit(
                {name: flat[name] for name in past},
                where,
                allow_missing=True,
                collective=collective,
            ),
            Encoder.fit(
                _static_values(panel, static),
                lambda row: f"series {panel.name(row)!r}",
                collective=collective,
            ),
            _fit_calendar(
                panel, calendar, events, holidays, (holiday_lead, holiday_lag), collective
            ),
        )

    def series(self, panel: Panel) -> SeriesPanel:
        """Return the series of a panel with their inputs as numbers."""
        flat = _fill_inputs(panel)
        total = panel.y.size

        def where(row: int) -> str:
            return _describe_row(panel, row)

        codes, steps = panel.row_series, panel.row_steps
        known = _encode(
            self.future_encoder, {name: flat[name] for name in self.future}, where, total
        )
        ahead = np.concatenate([known, self._calendar_rows(panel, codes, steps)], axis=1)
        past = _encode(self.past_encoder, {name: flat[name] for name in self.past}, where, total)
        fixed = _encode(
            self.static_encoder,
            _static_values(panel, self.static),
            lambda row: f"series {panel.name(row)!r}",
            panel.n_series,
        )
        extra = np.concatenate([past, fixed[codes]], axis=1)
        starts, ends = panel.offsets[:-1], panel.offsets[1:]
        return SeriesPanel(panel.y, ahead, extra, starts, ends, panel.names)

    def ahead(self, panel: Panel, h: int, X_df: Any, within: Panel | None = None) -> list[Array]:
        """Return the inputs known in advance for h steps after each series, shape (h, q) each.

        Rows of `X_df` for other series of the panel `within` are left aside. ValueError names
        series, date and column if a value is missing or not needed.
        """
        n = panel.n_series
        codes = np.repeat(np.arange(n), h)
        steps = np.repeat(panel.lengths, h) + np.tile(np.arange(h), n)
        columns = self._future_columns(panel, h, X_df, within)

        def where(row: int) -> str:
            return (
                f"series {panel.name(codes[row])!r} on {panel.format_date(codes[row], steps[row])}"
            )

        known = _encode(self.future_encoder, columns, where, n * h)
        ahead = np.concatenate([known, self._calendar_rows(panel, codes, steps)], axis=1)
        return list(ahead.reshape(n, h, ahead.shape[1]))

    def _future_columns(self, panel: Panel, h: int, X_df: Any, within: Panel | None) -> FlatColumns:
        for name in self.find_columns(X_df, panel.columns):
            if name not in (*self.columns, *panel.inputs):
                raise ValueError(
                    f"X_df has a column {name!r} that was not there in training; leave it out."
                )
        if not self.future:
            return {}
        names = ", ".join(self.future)
        if X_df is None:
            raise ValueError(
                f"The model was fitted with {names}, so predict needs their future values: fill in "
                "make_future_frame(h) and give it as X_df. Columns that are not known in the "
                "future belong in past_exog."
            )
        i, step, on_grid = panel.locate_rows(X_df)
        ahead = step - panel.lengths[np.maximum(i, 0)] if panel.n_series else step
        aside = (i < 0) & (within.locate_rows(X_df)[0] >= 0) if within is not None else i != i
        needed = (i >= 0) & on_grid & (ahead >= 0) & (ahead < h)
        for wrong in np.flatnonzero(~needed & ~aside)[:1]:
            raise ValueError(
                f"X_df has a row that is not needed{_name_row(panel, X_df, int(wrong))}; "
                f"make_future_frame({h}) has the rows that are."
            )
        at = (i * h + ahead)[needed]
        count = np.bincount(at, minlength=panel.n_series * h)
        for wrong in np.flatnonzero(count != 1)[:1]:
            name, date = (
                panel.name(wrong // h),
                panel.format_date(wrong // h, panel.lengths[wrong // h] + wrong % h),
            )
            how = "no row" if count[wrong] == 0 else f"{count[wrong]} rows"
            raise ValueError(
                f"X_df has {how} for series {name!r} on {date}, where {names} must be given once; "
                f"make_future_frame({h}) has all rows needed."
            )
        frame = read_frame(X_df, [panel.columns.id, panel.columns.time, *self.future])
        order = np.flatnonzero(needed)[np.argsort(at)]
        return {name: read_values(frame[name])[order] for name in self.future}

    def _calendar_rows(self, panel: Panel, codes: Ints, steps: Ints) -> Array:
        if self.calendar is None:
            return np.empty((codes.size, 0))
        dates, row = np.unique(panel.dates(codes, steps), return_inverse=True)
        return self.calendar.matrix(dates)[row]

    def to_json(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold."""
        return {
            "future": list(self.future),
            "past": list(self.past),
            "static": list(self.static),
            "future_encoder": self.future_encoder.to_json(),
            "past_encoder": self.past_encoder.to_json(),
            "static_encoder": self.static_encoder.to_json(),
            "calendar": None if self.calendar is None else self.calendar.to_json(),
        }

    @classmethod
    def from_json(cls, words: Mapping[str, Any]) -> Self:
        """Restore from `to_json`."""
        calendar = words["calendar"]
        return cls(
            tuple(words["future"]),
            tuple(words["past"]),
            tuple(words["static"]),
            Encoder.from_json(words["future_encoder"]),
            Encoder.from_json(words["past_encoder"]),
            Encoder.from_json(words["static_encoder"]),
            None if calendar is None else CalendarInputs.from_json(calendar),
        )


def _encode(encoder: Encoder, columns: FlatColumns, where: Any, n: int) -> Array:
    return encoder.encode(columns, where) if columns else np.empty((n, 0))


def _describe_row(panel: Panel, row: int) -> str:
    i = int(np.searchsorted(panel.offsets, row, side="right")) - 1
    return f"series {panel.name(i)!r} on {panel.format_date(i, row - int(panel.offsets[i]))}"


def _fill_inputs(panel: Panel) -> FlatColumns:
    """Return the inputs of a panel; on dates without a target, missing ones repeat the last."""
    result: FlatColumns = {}
    starts = np.repeat(panel.offsets[:-1], panel.lengths)
    rows = np.arange(panel.y.size)
    for name, column in panel.inputs.items():
        if column.dtype.kind == "O":
            result[name] = column
            continue
        known = np.isfinite(column)
        if known.all():
            result[name] = column
            continue
        before = np.maximum.accumulate(np.where(known, rows, -1)) if rows.size else rows
        usable = np.isnan(panel.y) & ~known & (before >= starts)
        result[name] = np.where(usable, column[np.maximum(before, 0)], column)
    return result


def _static_values(panel: Panel, names: Sequence[str]) -> FlatColumns:
    """Return the value of unchanging columns for each series, shape (n_series,)."""
    result: FlatColumns = {}
    for name in names:
        column = panel.inputs[name]
        values = np.empty(panel.n_series, dtype=column.dtype)
        for i in range(panel.n_series):
            own = column[panel.offsets[i] : panel.offsets[i + 1]]
            if column.dtype.kind == "O":
                seen = {value for value in own.tolist() if value is not None}
            else:
                seen = set(own[np.isfinite(own)].tolist())
            if len(seen) > 1:
                raise ValueError(
                    f"Column {name!r} is said to be static, but changes within series "
                    f"{panel.name(i)!r} ({', '.join(map(repr, sorted(seen)[:3]))}); take it out "
                    "of static_exog."
                )
            nothing = None if column.dtype.kind == "O" else np.nan
            values[i] = next(iter(seen), nothing)
        result[name] = values
    return result


def _fit_calendar(
    panel: Panel,
    parts: str | Sequence[str] | None,
    events: Sequence[Event],
    holidays: str | None,
    around: tuple[int, int],
    collective: Collective,
) -> CalendarInputs | None:
    if parts is None and not events and holidays is None:
        return None
    if panel.frequency.kind == "integer":
        raise ValueError(
            "Calendar, events and holidays need dates, but the dates here are integers; give "
            "those inputs as columns instead."
        )
    dates: npt.NDArray[Any] = collective.all_reduce(
        lambda: np.unique(panel.dates(panel.row_series, panel.row_steps)),
        lambda found: np.unique(np.concatenate(found)),
    )
    if isinstance(parts, str):
        if parts != "auto":
            raise ValueError(f"calendar must be None, 'auto' or a list of parts; got {parts!r}.")
        parts = _choose_parts(dates)
    apart = np.diff(dates.astype("datetime64[s]").astype(np.int64))
    if (events or holidays is not None) and apart.size and np.median(apart) > _DAY:
        raise ValueError(
            "Events and holidays are days, but the dates here are further apart; give a column "
            "with the number of such days in each step instead."
        )
    lead, lag = around
    return CalendarInputs.fit(
        tuple(parts or ()), tuple(events), holidays, dates, holiday_lead=lead, holiday_lag=lag
    )


def _choose_parts(dates: npt.NDArray[Any]) -> tuple[str, ...]:
    if dates.size < 2:
        return ()
    seconds = dates.astype("datetime64[s]").astype(np.int64)
    return choose_calendar_parts(
        float(np.median(np.diff(seconds))), float(seconds[-1] - seconds[0])
    )


def _name_row(panel: Panel, X_df: Any, row: int) -> str:
    """Name the series and the date of a row."""
    frame = read_frame(X_df, [panel.columns.id, panel.columns.time])
    name, date = frame[panel.columns.id][row], frame[panel.columns.time][row]
    return f", series {str(name)!r} on {date}"
