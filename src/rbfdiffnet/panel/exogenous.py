"""Inputs besides the lags: columns of the frame, calendar parts, events and holidays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.calendar import CalendarInputs, Event, choose_calendar_parts
from rbfdiffnet.panel.encode import Encoder
from rbfdiffnet.panel.frames import ColumnNames, read_frame, read_values
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.panel.regularize import place_values
from rbfdiffnet.series.series import SeriesPanel
from rbfdiffnet.support.arrays import Array, Arrays, Ints
from rbfdiffnet.support.parallel import SINGLE_MACHINE, Collective

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
        known, seen = ({name: flat[name] for name in names} for names in (future, past))
        row, one = partial(_describe_row, panel), partial(_describe_series, panel)
        return cls(
            future,
            tuple(past),
            static,
            Encoder.fit(known, row, collective=collective),
            Encoder.fit(seen, row, allow_missing=True, collective=collective),
            Encoder.fit(_static_values(panel, static), one, collective=collective),
            _fit_calendar(
                panel, calendar, events, holidays, (holiday_lead, holiday_lag), collective
            ),
        )

    def series(self, panel: Panel) -> SeriesPanel:
        """Return the series of a panel with their inputs as numbers."""
        flat, total = _fill_inputs(panel), panel.y.size
        where = partial(_describe_row, panel)
        codes, steps = panel.row_series, panel.row_steps
        future, seen = ({name: flat[name] for name in names} for names in (self.future, self.past))
        fixed = _static_values(panel, self.static)
        known = _encode(self.future_encoder, future, where, total)
        past = _encode(self.past_encoder, seen, where, total)
        static = _encode(
            self.static_encoder, fixed, partial(_describe_series, panel), panel.n_series
        )
        ahead = np.concatenate([known, self._calendar_rows(panel, codes, steps)], axis=1)
        extra = np.concatenate([past, static[codes]], axis=1)
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
            return _describe_step(panel, codes[row], steps[row])

        known = _encode(self.future_encoder, columns, where, n * h)
        ahead = np.concatenate([known, self._calendar_rows(panel, codes, steps)], axis=1)
        return list(ahead.reshape(n, h, ahead.shape[1]))

    def _future_columns(self, panel: Panel, h: int, X_df: Any, within: Panel | None) -> Arrays:
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
        frame = read_frame(X_df, [panel.columns.id, panel.columns.time, *self.future])
        for wrong in np.flatnonzero(~needed & ~aside)[:1].tolist():
            name, date = frame[panel.columns.id][wrong], frame[panel.columns.time][wrong]
            raise ValueError(
                f"X_df has a row that is not needed, series {str(name)!r} on {date}; "
                f"make_future_frame({h}) has the rows that are."
            )
        at = (i * h + ahead)[needed]
        count = np.bincount(at, minlength=panel.n_series * h)
        for wrong in np.flatnonzero(count != 1)[:1]:
            place = _describe_step(panel, wrong // h, panel.lengths[wrong // h] + wrong % h)
            how = "no row" if count[wrong] == 0 else f"{count[wrong]} rows"
            raise ValueError(
                f"X_df has {how} for {place}, where {names} must be given once; "
                f"make_future_frame({h}) has all rows needed."
            )
        order = np.flatnonzero(needed)[np.argsort(at)]
        return {name: read_values(frame[name])[order] for name in self.future}

    def _calendar_rows(self, panel: Panel, codes: Ints, steps: Ints) -> Array:
        if self.calendar is None:
            return np.empty((codes.size, 0))
        dates, row = np.unique(panel.dates(codes, steps), return_inverse=True)
        return self.calendar.matrix(dates)[row]

    def to_json(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold."""
        return asdict(self) | {"calendar": self.calendar and self.calendar.to_json()}

    @classmethod
    def from_json(cls, words: Mapping[str, Any]) -> Self:
        """Restore from `to_json`."""
        fields: dict[str, Any] = {}
        for kind in ("future", "past", "static"):
            fields[kind] = tuple(words[kind])
            fields[f"{kind}_encoder"] = Encoder.from_json(words[f"{kind}_encoder"])
        calendar = words["calendar"]
        return cls(**fields, calendar=calendar and CalendarInputs.from_json(calendar))


def _encode(encoder: Encoder, columns: Arrays, where: Any, n: int) -> Array:
    return encoder.encode(columns, where) if columns else np.empty((n, 0))


def _describe_series(panel: Panel, i: int) -> str:
    return f"series {panel.name(i)!r}"


def _describe_step(panel: Panel, i: int, step: int) -> str:
    return f"{_describe_series(panel, i)} on {panel.format_date(i, step)}"


def _describe_row(panel: Panel, row: int) -> str:
    i = int(np.searchsorted(panel.offsets, row, side="right")) - 1
    return _describe_step(panel, i, row - int(panel.offsets[i]))


def _fill_inputs(panel: Panel) -> Arrays:
    """Return the inputs of a panel; on dates without a target, missing ones repeat the last."""
    result: Arrays = {}
    starts = np.repeat(panel.offsets[:-1], panel.lengths)
    rows = np.arange(panel.y.size)
    for name, column in panel.inputs.items():
        known = np.isfinite(column) if column.dtype.kind == "f" else np.True_
        if known.all():
            result[name] = column
            continue
        before = np.maximum.accumulate(np.where(known, rows, -1)) if rows.size else rows
        usable = np.isnan(panel.y) & ~known & (before >= starts)
        result[name] = np.where(usable, column[np.maximum(before, 0)], column)
    return result


def _static_values(panel: Panel, names: Sequence[str]) -> Arrays:
    """Return the value of unchanging columns for each series, shape (n_series,)."""
    import pandas as pd

    result: Arrays = {}
    for name in names:
        column = panel.inputs[name]
        known = pd.notna(column)
        owners, values = panel.row_series[known], column[known]
        found = place_values(values, owners, panel.n_series)
        for i in owners[values != found[owners]][:1].tolist():
            seen = sorted(set(values[owners == i].tolist()))
            raise ValueError(
                f"Column {name!r} is said to be static, but changes within series "
                f"{panel.name(i)!r} ({', '.join(map(repr, seen[:3]))}); take it out of static_exog."
            )
        result[name] = found
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
    seconds = dates.astype("datetime64[s]").astype(np.int64)
    step = float(np.median(np.diff(seconds))) if seconds.size > 1 else 0.0
    if isinstance(parts, str):
        if parts != "auto":
            raise ValueError(f"calendar must be None, 'auto' or a list of parts; got {parts!r}.")
        parts = choose_calendar_parts(step, float(seconds[-1] - seconds[0])) if step else ()
    if (events or holidays is not None) and step > _DAY:
        raise ValueError(
            "Events and holidays are days, but the dates here are further apart; give a column "
            "with the number of such days in each step instead."
        )
    lead, lag = around
    return CalendarInputs.fit(
        tuple(parts or ()), tuple(events), holidays, dates, holiday_lead=lead, holiday_lag=lag
    )
