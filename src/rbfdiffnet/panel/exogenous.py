"""Inputs besides the lags: columns of the frame, calendar parts, events and holidays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.calendar import CalendarInputs, Event, Holidays, choose_calendar_parts
from rbfdiffnet.panel.encode import Encoder, check_numbers
from rbfdiffnet.panel.frames import ColumnNames, group_rows, read_frame, read_values
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.panel.regularize import place_values
from rbfdiffnet.panel.unseen import find_unseen, note_new_events
from rbfdiffnet.series.series import SeriesPanel
from rbfdiffnet.support.arrays import Array, Arrays, Ints
from rbfdiffnet.support.notes import ENDED_INPUT, Note
from rbfdiffnet.support.parallel import SINGLE_MACHINE, Collective

#: The column of `X_df` that names scenarios, and the end of names of standard deviations.
SCENARIO, STD = "scenario", "_std"
_NOTHING = Encoder(())
_DAY = 24 * 60 * 60  # seconds


@dataclass(frozen=True)
class FutureInputs:
    """Inputs ahead of each series, (h, q), and their standard deviations; None if all are sure.

    `excess`, of the same shape, is how far numbers are outside of their range in training, None if
    none are; `notes` are on those that are far outside, and on others unlike those of training.
    """

    values: list[Array]
    stds: list[Array] | None = None
    excess: list[Array] | None = None
    notes: Sequence[Note] = ()

    def select(self, chosen: Ints) -> FutureInputs:
        """Return the inputs of some of the series."""
        at = chosen.tolist()
        stds, excess = (own and [own[i] for i in at] for own in (self.stds, self.excess))
        new = {old: k for k, old in enumerate(at)} if self.notes else {}
        notes = [replace(n, series=new[n.series]) for n in self.notes if n.series in new]
        return FutureInputs([self.values[i] for i in at], stds, excess, notes)


@dataclass(frozen=True)
class Exogenous:
    """Which inputs there are and how they become numbers, fixed when a model is fitted.

    Columns in `future` are known in advance, those in `past` when they happen, and those in
    `static` never change within a series. Those set `aside` are static, too, but no inputs. `alone`
    tells that series learn nothing from each other.
    """

    future: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    static: tuple[str, ...] = ()
    future_encoder: Encoder = _NOTHING
    past_encoder: Encoder = _NOTHING
    static_encoder: Encoder = _NOTHING
    calendar: CalendarInputs | None = None
    aside: tuple[str, ...] = ()
    alone: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the frame that are used."""
        return (*self.future, *self.past, *self.static, *self.aside)

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
        past_as_is: bool = False,
        alone: bool = False,
        calendar: str | Sequence[str] | None = None,
        events: Sequence[Event] = (),
        holidays: Holidays | None = None,
        collective: Collective = SINGLE_MACHINE,
    ) -> Self:
        """Fix the inputs for a panel that holds all columns.

        Columns that are neither in `past` nor in `static` are known in advance. If not
        `use_static`, unchanging columns are set aside. If `past_as_is`, numbers in `past` stay as
        they are, missing ones, too. On a cluster, `collective` connects this panel with its other
        parts.
        """
        for name in (*past, *static):
            if name not in panel.inputs:
                raise ValueError(
                    f"Column {name!r} is not in the frame; its further columns are "
                    f"{list(panel.inputs)}."
                )
        future = tuple(name for name in panel.inputs if name not in (*past, *static))
        static, aside = (tuple(static), ()) if use_static else ((), tuple(static))
        flat = _fill_inputs(panel)
        known, seen = ({name: flat[name] for name in names} for names in (future, past))
        ranges = {name: panel.find_range(name) for name in future}
        row, one = partial(_describe_row, panel), partial(_describe_series, panel)
        return cls(
            future,
            tuple(past),
            static,
            Encoder.fit(known, row, ranges=ranges, collective=collective),
            Encoder.fit(seen, row, allow_missing=True, as_is=past_as_is, collective=collective),
            Encoder.fit(_static_values(panel, static), one, collective=collective),
            _fit_calendar(panel, calendar, events, holidays, collective),
            aside,
            alone,
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

    def scenarios(
        self, panel: Panel, h: int, X_df: Any
    ) -> tuple[npt.NDArray[Any] | None, list[FutureInputs]]:
        """Return the names of the scenarios in `X_df` as they appear, and the inputs of each.

        Without a column of scenarios there are no names, and the inputs are those of `ahead`. A
        column of that name that the panel has is an input.
        """
        if SCENARIO in panel.inputs or SCENARIO not in self.find_columns(X_df, panel.columns):
            return None, [self.ahead(panel, h, X_df)]
        frame = read_frame(X_df, list(X_df.columns))
        missing = np.flatnonzero(frame[SCENARIO].is_null().to_numpy())
        if missing.size:
            raise ValueError(
                f"Column {SCENARIO!r} of X_df has no value in row {missing[0]}; name the scenario "
                "of every row."
            )
        codes, first = group_rows(frame[SCENARIO])
        names = frame[SCENARIO][first].to_list()
        if not names:
            raise ValueError(f"X_df has a column {SCENARIO!r}, but no rows; leave it out.")
        rest, found = frame.drop(SCENARIO), []
        for number, name in enumerate(names):
            own = rest[np.flatnonzero(codes == number)].to_native()
            try:
                found.append(self.ahead(panel, h, own))
            except ValueError as error:
                raise ValueError(f"Scenario {name!r}: {error}") from error
            found[-1] = replace(found[-1], notes=[_name_scenario(n, name) for n in found[-1].notes])
        text = any(isinstance(name, str) for name in names)
        return np.array(names, dtype=object if text else None), found

    def ahead(self, panel: Panel, h: int, X_df: Any, within: Panel | None = None) -> FutureInputs:
        """Return the inputs known in advance for h steps after each series.

        Rows of `X_df` for other series of the panel `within` are left aside. ValueError names
        series, date and column if a value is missing or not needed.
        """
        n = panel.n_series
        codes = np.repeat(np.arange(n), h)
        steps = np.repeat(panel.lengths, h) + np.tile(np.arange(h), n)
        uncertain = self._std_columns(panel, X_df)
        columns = self._future_columns(panel, h, X_df, within, uncertain)

        def where(row: int) -> str:
            return _describe_step(panel, codes[row], steps[row])

        known = _encode(self.future_encoder, columns, where, n * h)
        rows = self._calendar_rows(panel, codes, steps)
        ahead = np.concatenate([known, rows], axis=1)
        stds = np.zeros_like(ahead)
        for j, name in enumerate(self.future_encoder.names):
            if name + STD in uncertain:
                stds[:, j] = _check_stds(name + STD, columns[name + STD], where)
        shape = n, h, ahead.shape[1]
        unsure = list(stds.reshape(shape)) if stds.any() else None
        excess, notes = self._find_unseen(panel, columns, rows)
        return FutureInputs(list(ahead.reshape(shape)), unsure, excess, notes)

    def unseen_within(
        self, panel: Panel, origins: Ints, h: int
    ) -> tuple[list[Array] | None, list[Note]]:
        """Return `excess` and `notes` of `FutureInputs` for h steps after origins inside of series.

        What lies after an origin does not count as seen.
        """
        codes = np.repeat(np.arange(panel.n_series), h)
        steps = np.repeat(origins, h) + np.tile(np.arange(h), panel.n_series)
        inside, flat = np.flatnonzero(steps < panel.lengths[codes]), _fill_inputs(panel)
        places = panel.offsets[codes[inside]] + steps[inside]
        columns = {
            name: place_values(flat[name][places], inside, codes.size) for name in self.future
        }
        past = panel.truncate(panel.lengths - origins)
        return self._find_unseen(past, columns, self._calendar_rows(panel, codes, steps))

    def note_ended(self, panel: Panel) -> list[Note]:
        """Return notes on inputs of the past without values for the latest steps of a series."""
        import pandas as pd

        flat, notes = _fill_inputs(panel), []
        for name in self.past:
            rows = np.flatnonzero(pd.notna(flat[name]))
            known = np.zeros(panel.n_series, dtype=np.int64)  # steps up to the latest value
            known[panel.row_series[rows]] = panel.row_steps[rows] + 1
            for i in np.flatnonzero(known < panel.lengths).tolist():
                since = f"from {panel.format_date(i, int(known[i]))} on" if known[i] else "at all"
                detail = f"{name!r} has no value {since}"
                notes.append(Note(i, ENDED_INPUT, "forecast without them", detail=detail))
        return notes

    def _find_unseen(
        self, panel: Panel, columns: Arrays, rows: Array
    ) -> tuple[list[Array] | None, list[Note]]:
        """Return how far outside inputs are, (h, q) by series, None if none are, and notes.

        `columns` are inputs, (n * h,) each, and `rows`, (n * h, c), those of the calendar.
        """
        if not panel.n_series:
            return None, []
        future = {name: columns[name] for name in self.future}
        notes, beyond = find_unseen(panel, future, self.future_encoder, alone=self.alone)
        if self.calendar is not None:
            notes += note_new_events(panel, self.calendar, rows)
        excess = np.zeros((len(rows), len(self.ahead_names)))
        for j, name in enumerate(self.future_encoder.names):
            excess[:, j] = beyond.get(name, 0.0)
        if not excess.any():
            return None, notes
        return list(excess.reshape(panel.n_series, -1, excess.shape[1])), notes

    def _std_columns(self, panel: Panel, X_df: Any) -> list[str]:
        """Return the columns of standard deviations in `X_df`; refuse all others not in training.

        Only of numbers without further encodings are effects straight lines.
        """
        found = []
        bent = {column.name for column in self.future_encoder.columns if column.values is not None}
        for name in self.find_columns(X_df, panel.columns):
            of = name.removesuffix(STD)
            if name in (*self.columns, *panel.inputs, *panel.labels):
                continue
            if name == SCENARIO:
                raise ValueError(
                    f"X_df has a column {name!r}, but only predict, forecast and simulate take "
                    "several futures; give one at a time: the rows of a scenario without that "
                    "column."
                )
            if of == name or of not in self.future:
                raise ValueError(
                    f"X_df has a column {name!r} that was not there in training; leave it out."
                )
            if of in bent:
                raise ValueError(
                    f"X_df has a column {name!r}, but {of!r} holds text, or whole numbers of few "
                    "values that may be codes: its effect is no straight line, and what its "
                    f"uncertainty does is not known; leave {name!r} out."
                )
            found.append(name)
        return found

    def _future_columns(
        self, panel: Panel, h: int, X_df: Any, within: Panel | None, more: Sequence[str]
    ) -> Arrays:
        """Return columns (n * h,) of inputs, and more columns, from the rows of `X_df`."""
        if not self.future:
            return {}
        names = ", ".join(self.future)
        if X_df is None:
            raise ValueError(
                f"The model was fitted with {names}, so predict needs their future values: fill in "
                "make_future_frame(h) and give it as X_df. Columns that are not known in the "
                "future belong in past_exog."
            )
        i, step, on_grid = panel.locate_rows(X_df, "X_df")
        ahead = step - panel.lengths[np.maximum(i, 0)] if panel.n_series else step
        aside = (i < 0) & (within.locate_rows(X_df)[0] >= 0) if within is not None else i != i
        needed = (i >= 0) & on_grid & (ahead >= 0) & (ahead < h)
        wanted = [*self.future, *more]
        frame = read_frame(X_df, [panel.columns.id, panel.columns.time, *wanted], "X_df")
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
        return {name: read_values(frame[name])[order] for name in wanted}

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
        fields["aside"], fields["alone"] = tuple(words.get("aside", ())), words.get("alone", False)
        calendar = words["calendar"]
        return cls(**fields, calendar=calendar and CalendarInputs.from_json(calendar))


def _name_scenario(note: Note, name: Any) -> Note:
    return replace(note, detail=f"scenario {name!r}: {note.detail}")


def _encode(encoder: Encoder, columns: Arrays, where: Any, n: int) -> Array:
    return encoder.encode(columns, where) if columns else np.empty((n, 0))


def _check_stds(name: str, values: npt.NDArray[Any], where: Any) -> Array:
    """Return standard deviations, or say which one is missing or negative."""
    if values.dtype == object:
        raise ValueError(f"Column {name!r} of X_df holds text; give standard deviations.")
    numbers = check_numbers(name, values, where, allow_missing=False)
    for row in np.flatnonzero(numbers < 0.0)[:1].tolist():
        raise ValueError(
            f"Column {name!r} is negative for {where(row)}; a standard deviation is 0 or more."
        )
    return numbers


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


def latest_values(panel: Panel, names: Sequence[str]) -> Arrays:
    """Return the latest known value of columns for each series, shape (n_series,)."""
    return {
        name: place_values(panel.inputs[name], panel.row_series, panel.n_series) for name in names
    }


def _static_values(panel: Panel, names: Sequence[str]) -> Arrays:
    """Return the value of unchanging columns for each series, shape (n_series,)."""
    import pandas as pd

    result = latest_values(panel, names)
    for name, found in result.items():
        column = panel.inputs[name]
        known = pd.notna(column)
        owners, values = panel.row_series[known], column[known]
        for i in owners[values != found[owners]][:1].tolist():
            seen = sorted(set(values[owners == i].tolist()))
            raise ValueError(
                f"Column {name!r} is said to be static, but changes within series "
                f"{panel.name(i)!r} ({', '.join(map(repr, seen[:3]))}); take it out of static_exog."
            )
    return result


def _fit_calendar(
    panel: Panel,
    parts: str | Sequence[str] | None,
    events: Sequence[Event],
    holidays: Holidays | None,
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
    return CalendarInputs.fit(() if parts is None else parts, events, holidays, dates)
