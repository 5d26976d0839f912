"""Many series in flat arrays, made from a long data frame and turned into frames again.

A frame has a row for each series and date, in any order, with holes and repetitions. A panel has
the values of each series on its regular grid of dates, one series after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.frames import (
    ColumnNames,
    FrameColumn,
    describe_column,
    latest_time,
    make_column,
    make_empty_column,
    make_frame,
    make_times,
    pack_values,
    read_frame,
    read_keys,
    read_labels,
    read_target,
    read_times,
    read_values,
    time_zone,
)
from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.panel.grid import Grid, infer_frequency, to_wall
from rbfdiffnet.panel.regularize import (
    concatenate_ranges,
    count_leading,
    regularize_in_chunks,
)
from rbfdiffnet.panel.updates import extend_panel
from rbfdiffnet.series.effects import COMMON, TYPO
from rbfdiffnet.support.arrays import Array, Arrays, Ints, Mask
from rbfdiffnet.support.notes import MISSING_DATE, MISSING_VALUE, OFF_GRID, REPEATED_DATE, Note

__all__ = ["ColumnNames", "Panel"]

_JUDGED = 6  # dates of a series by which a frequency is judged


@dataclass(frozen=True, eq=False)
class Panel:
    """Many series, each on the regular grid from its first to its last date.

    Series `i` lies at ``offsets[i]:offsets[i + 1]`` of the flat arrays. The target `y`, shape
    (offsets[-1],), is NaN where it is missing or infinite, or where there is no row. The further
    columns in `inputs`, of the same shape, are floats (NaN where missing) or text as objects (None
    where missing). `problems` lists what was odd about the frame. `ids` has length n_series; `time`
    is an empty column that looks like the frame's column of dates. `labels` say in text, of shape
    (n_series,), to which groups a series belongs; None for series that are sums of others.
    `ranges` are those of inputs before steps that were dropped to save room, (2, n_series) each.
    """

    offsets: Ints
    y: Array
    inputs: Arrays
    problems: tuple[Note, ...]
    columns: ColumnNames
    grid: Grid
    ids: FrameColumn
    time: FrameColumn
    labels: Arrays = field(default_factory=dict)
    ranges: Arrays = field(default_factory=dict)

    @classmethod
    def from_frame(
        cls,
        df: Any,
        columns: ColumnNames | None = None,
        freq: Any = None,
        inputs: Sequence[str] = (),
        errors: str = "fallback",
        labels: Sequence[str] = (),
    ) -> Panel:
        """Bring a long data frame to regular grids.

        `freq` is inferred from the dates where it is None. With ``errors="raise"`` infinite values,
        repeated dates, dates off the grid and missing dates are refused. Otherwise they are listed
        in `problems`, as rows without a value always are: infinite values become missing; identical
        rows count once, of other rows with the same date the mean target and the last known inputs
        are taken; dates off the grid are ignored, and so are a few dates far away from all others.
        A frequency that more than a third of the dates, or those of more than a third of the
        series, do not fit is refused; of fewer series their likely frequency is said.
        """
        if errors not in ("fallback", "raise"):
            raise ValueError(f"errors must be 'fallback' or 'raise', got {errors!r}.")
        columns = columns or ColumnNames()
        frequency = None if freq is None else Frequency.parse(freq)
        names = [columns.id, columns.time, columns.target, *inputs, *labels]
        frame = read_frame(df, names, id_col=columns.id)
        codes, ids, time = read_keys(frame, columns, frequency)
        groups = {name: read_labels(frame[name], codes, ids) for name in labels}
        times, zone = read_times(time), time_zone(time)
        frequency = _check_frequency(frequency, times, codes, time)
        values = {columns.target: read_target(frame[columns.target])}
        values |= {name: read_values(frame[name]) for name in inputs}
        grid, offsets, flat, problems, n_off = regularize_in_chunks(
            frequency, zone, times, codes, len(ids), values, columns.target
        )
        n_rows = np.bincount(codes, minlength=len(ids))
        unfit = np.flatnonzero((3 * n_off > n_rows) & (n_rows >= _JUDGED))
        if 3 * n_off.sum() > len(times) or 3 * unfit.size > len(ids):
            grid = Grid.from_times(frequency, times, codes, len(ids), zone)
            raise _off_grid_error(grid, times, codes, ids, unfit)
        problems = _name_likely(problems, unfit, frequency, times, codes, zone)
        serious = [problem for problem in problems if problem.kind != MISSING_VALUE]
        if errors == "raise" and serious:
            raise ValueError(
                f"Series {str(ids[serious[0].series])!r}: {serious[0].problem}; correct the "
                f"frame, or pass errors='fallback' ({serious[0].action})."
            )
        y = flat.pop(columns.target)
        return cls(offsets, y, flat, tuple(problems), columns, grid, ids, time[:0], groups)

    @property
    def n_series(self) -> int:
        """Number of series."""
        return len(self.ids)

    @property
    def lengths(self) -> Ints:
        """Number of steps of each series."""
        return np.diff(self.offsets)

    @property
    def row_series(self) -> Ints:
        """Number of the series of each row of the flat arrays."""
        return np.repeat(np.arange(self.n_series), self.lengths)

    @property
    def row_steps(self) -> Ints:
        """Step of each row of the flat arrays, from the first date of its series."""
        return np.arange(self.offsets[-1]) - np.repeat(self.offsets[:-1], self.lengths)

    @property
    def frequency(self) -> Frequency:
        """The step of time."""
        return self.grid.frequency

    @property
    def names(self) -> tuple[str, ...]:
        """The ids of all series as text."""
        return tuple(map(str, self.ids.to_list()))

    def name(self, i: int) -> str:
        """Return the id of series `i`, for messages."""
        return str(self.ids[int(i)])

    def dates(self, i: npt.ArrayLike, step: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the dates (wall time) or whole numbers of steps of series, also future ones."""
        codes, steps = np.broadcast_arrays(_ints(i), _ints(step))
        times = self.grid.times(codes.ravel(), steps.ravel()).reshape(codes.shape)
        if self.frequency.kind == "integer":
            return times
        return to_wall(times.ravel(), self.grid.zone).view("M8[ns]").reshape(codes.shape)

    def check_ahead(self, h: int) -> None:
        """Raise ValueError if the column of times cannot hold times h steps after the last ones."""
        if not self.n_series:
            return
        latest = latest_time(self.time)
        beyond = self.grid.origin + self.grid.step * (self.lengths + float(h - 1)) > latest
        if beyond.any():
            end = replace(self.grid, zone=None).format(_ints([latest]))[0]
            raise ValueError(
                f"{h:,} steps of {self.frequency.alias!r} after its end series "
                f"{self.name(int(beyond.argmax()))!r} would be beyond {end}, the latest "
                f"that column {self.columns.time!r} can hold; forecast fewer steps."
            )

    def format_date(self, i: int, step: int) -> str:
        """Return the date or number of a step of series `i`, for messages."""
        return self.grid.format(self.grid.times(_ints([i]), _ints([step])))[0]

    def select(self, series: npt.ArrayLike) -> Panel:
        """Return the panel of some series, given as a mask or as indices."""
        series = np.asarray(series)
        chosen = np.flatnonzero(series) if series.dtype == bool else _ints(series)
        panel = self._take(self.offsets[chosen], self.lengths[chosen])
        found: dict[int, list[Note]] = {}
        for problem in self.problems:
            found.setdefault(problem.series, []).append(problem)
        return replace(
            panel,
            problems=tuple(
                replace(problem, series=new)
                for new, old in enumerate(chosen.tolist())
                for problem in found.get(old, ())
            ),
            grid=self.grid.select(chosen),
            ids=nw.maybe_reset_index(self.ids[chosen]),
            labels={name: own[chosen] for name, own in self.labels.items()},
            ranges={name: own[:, chosen] for name, own in self.ranges.items()},
        )

    def truncate(self, n_last: npt.ArrayLike) -> Panel:
        """Return the panel without the last `n_last` steps of each series, which may be empty."""
        return self._take(self.offsets[:-1], np.maximum(self.lengths - _ints(n_last), 0))

    def extend(self, other: Panel) -> Panel:
        """Return the panel with newer observations appended, and new series at its end."""
        return extend_panel(self, other)

    def find_series(self, ids: FrameColumn) -> Ints:
        """Return the numbers of series by their ids, -1 for those not in the panel."""

        def key(value: Any) -> tuple[bool, Any]:  # True is not 1
            return isinstance(value, bool | np.bool_), value

        known = {key(value): i for i, value in enumerate(self.ids.to_list())}
        return np.array([known.get(key(value), -1) for value in ids.to_list()], dtype=np.int64)

    def locate_rows(self, df: Any, what: str = "The frame") -> tuple[Ints, Ints, Mask]:
        """Find the rows of another frame, which messages call `what`, on the grids of this panel.

        Returned are, each of shape (n_rows,), the numbers of the series (-1 for those not in the
        panel), the steps from the first date (also before it or beyond the last one), and whether
        the rows are on the grids of their series; otherwise their steps mean nothing.
        """
        frame = read_frame(df, [self.columns.id, self.columns.time], what)
        codes, ids, time = read_keys(frame, self.columns, self.frequency)
        self._check_times(time)
        series = self.find_series(ids)[codes]
        found = series >= 0
        steps, on_grid = np.zeros(len(series), dtype=np.int64), np.zeros(len(series), dtype=bool)
        steps[found], on_grid[found] = self.grid.locate(read_times(time)[found], series[found])
        return series, steps, on_grid

    def make_frame(
        self,
        steps_first: npt.ArrayLike,
        n_steps: npt.ArrayLike,
        values: Mapping[str, npt.ArrayLike],
        extra_times: Mapping[str, npt.ArrayLike] | None = None,
        series: npt.ArrayLike | None = None,
        *,
        copy: bool = True,
    ) -> Any:
        """Make a frame that looks like the one the panel came from, series by series.

        Each series, or each of `series`, which may come again, has `n_steps` rows from
        `steps_first` on. The columns in `values` have shape (n_rows,). `extra_times` are further
        columns of dates, as steps; they come before the values. See `frames.make_frame` for `copy`.
        """
        owners = np.arange(self.n_series) if series is None else _ints(series)
        counts = np.broadcast_to(_ints(n_steps), owners.size)
        codes = np.repeat(owners, counts)
        starts = np.broadcast_to(_ints(steps_first), owners.size)
        times = {self.columns.time: concatenate_ranges(starts, counts), **(extra_times or {})}
        dates = {
            name: make_times(self.time, self.grid.times(codes, _ints(steps)), self.grid.zone)
            for name, steps in times.items()
        }
        arrays = {name: np.asarray(column) for name, column in values.items()}
        ids = self.ids[codes].to_native()
        return make_frame(self.ids, {self.columns.id: ids, **dates, **arrays}, copy=copy)

    def make_table(self, series: npt.ArrayLike, values: Mapping[str, Any]) -> Any:
        """Make a frame with one row for each of these series: its id, and further columns."""
        ids = self.ids[_ints(series)].to_native()
        return make_frame(self.ids, {self.columns.id: ids, **values})

    def keep_last(self, n: npt.ArrayLike) -> Panel:
        """Return the panel with at most the last n steps of each series."""
        cut = self.lengths - np.minimum(self.lengths, _ints(n))
        numbers = [name for name, own in self.inputs.items() if own.dtype.kind == "f" and cut.any()]
        return replace(self._cut(cut), ranges={name: self.find_range(name) for name in numbers})

    def find_range(self, name: str) -> Array:
        """Return the smallest and the largest number of an input in each series, (2, n_series).

        Typos do not count. A series without any numbers has infinity and minus infinity.
        """
        column, nothing = self.inputs[name], np.outer([np.inf, -np.inf], np.ones(self.n_series))
        found: Array = self.ranges.get(name, nothing).copy()
        if column.dtype.kind == "f":
            rows = np.flatnonzero(np.isfinite(column))
            rows = rows[~_find_typos(column[rows], self.row_series[rows])]
            np.minimum.at(found[0], self.row_series[rows], column[rows])
            np.maximum.at(found[1], self.row_series[rows], column[rows])
        return found

    def trim(self, some: Mask | None = None) -> Panel:
        """Return the panel without the steps before the first value of each series, or of some.

        Series without any value stay as they are.
        """
        leading = count_leading(self.y, self.offsets)
        leading[(leading == self.lengths) | (False if some is None else ~some)] = 0
        return self._cut(leading) if leading.any() else self

    def to_arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Return arrays and a JSON document that can be saved."""
        import pandas as pd

        frequency, grid = self.frequency, self.grid
        freq: int | str = frequency.n if frequency.kind == "integer" else frequency.alias
        if Frequency.parse(freq) != frequency:
            raise ValueError(
                f"freq={freq!r} stands for {frequency.offset!r}, which cannot be saved; use an "
                "offset that its alias describes in full."
            )
        id_words, categories = describe_column(self.ids)
        meta = {
            "columns": asdict(self.columns),
            "freq": freq,
            "zone": grid.zone,
            "id": id_words,
            "time": describe_column(self.time)[0],
            "problems": [asdict(problem) for problem in self.problems],
            "inputs": list(self.inputs),
            "labels": list(self.labels),
        }
        ids = pack_values(self.ids.to_list(), f"Ids in column {self.columns.id!r}")
        arrays: Arrays = {"offsets": self.offsets, "origin": grid.origin}
        arrays |= {"day": grid.day, "ids": ids, "y": self.y}
        if categories is not None:
            arrays["categories"] = categories
        for number, (name, column) in enumerate(self.inputs.items()):
            if name in self.ranges:
                arrays[f"range{number}"] = self.ranges[name]
            if column.dtype.kind == "O":
                missing = pd.isna(column)
                arrays[f"input{number}_missing"] = missing
                column = np.where(missing, "", column).astype(np.str_)
            arrays[f"input{number}"] = column
        for number, own in enumerate(self.labels.values()):
            arrays[f"label{number}"] = np.array([value or "" for value in own], dtype=np.str_)
        return arrays, meta

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> Panel:
        """Restore a panel from what `to_arrays` returned."""
        inputs: Arrays = {}
        ranges: Arrays = {}
        for number, name in enumerate(meta["inputs"]):
            if f"range{number}" in arrays:
                ranges[name] = arrays[f"range{number}"]
            column = arrays[f"input{number}"]
            if column.dtype.kind == "U":
                column = column.astype(object)
                column[arrays[f"input{number}_missing"]] = None
            inputs[name] = column
        labels: Arrays = {}
        for number, name in enumerate(meta.get("labels", ())):
            own = arrays[f"label{number}"]
            labels[name] = np.array([text or None for text in own.tolist()], dtype=object)
        id_column = make_empty_column(meta["id"], arrays.get("categories"))
        return cls(
            arrays["offsets"],
            arrays["y"],
            inputs,
            tuple(Note(**problem) for problem in meta["problems"]),
            ColumnNames(**meta["columns"]),
            Grid(Frequency.parse(meta["freq"]), arrays["origin"], arrays["day"], meta["zone"]),
            make_column(id_column, arrays["ids"].tolist()),
            make_empty_column(meta["time"], None),
            labels,
            ranges,
        )

    def _cut(self, n: Ints) -> Panel:
        """Return the panel without the first n steps of each series."""
        kept = self._take(self.offsets[:-1] + n, self.lengths - n)
        return replace(kept, grid=self.grid.shift(n))

    def _take(self, starts: Ints, lengths: Ints) -> Panel:
        """Return the panel with some ranges of the flat arrays only."""
        rows = concatenate_ranges(starts, lengths)
        return replace(
            self,
            offsets=np.append(0, np.cumsum(lengths)),
            y=self.y[rows],
            inputs={name: column[rows] for name, column in self.inputs.items()},
        )

    def _check_times(self, time: FrameColumn) -> None:
        """Raise ValueError unless times are of the panel's kind."""
        same_kind = time.dtype.is_integer() == (self.frequency.kind == "integer")
        if not same_kind or (time_zone(time) is None) != (self.grid.zone is None):
            raise ValueError(
                f"Column {time.name!r} is of type {time.to_native().dtype}, that of the series of "
                f"type {self.time.to_native().dtype}; convert it."
            )


def _check_frequency(
    frequency: Frequency | None, times: Ints, codes: Ints, time: FrameColumn
) -> Frequency:
    """Return the frequency, inferred from the times if it is None, if it suits the times."""
    integer = time.dtype.is_integer()
    if frequency is None:
        frequency = infer_frequency(times, codes, time_zone(time), integer=integer)
        if frequency is None:
            raise ValueError(f"The frequency cannot be told from column {time.name!r}; pass freq.")
    if integer and frequency.kind != "integer":
        raise ValueError(
            f"Column {time.name!r} holds whole numbers, but freq={frequency.alias!r} counts "
            "dates; pass freq=1, or convert the column to dates."
        )
    if not integer and frequency.kind == "integer":
        raise ValueError(
            f"Column {time.name!r} holds dates, but freq={frequency.n} counts whole numbers; "
            "pass an alias such as 'D' or 'MS'."
        )
    return frequency


def find_doubts(panel: Panel, freq: Any) -> list[str]:
    """Return sentences on dates that the step of time or the ids hardly explain."""
    n_missing, n_repeated = (
        sum(note.count for note in panel.problems if note.kind == kind)
        for kind in (MISSING_DATE, REPEATED_DATE)
    )
    texts = []
    if 2 * n_missing > panel.y.size:
        texts.append(
            f"{n_missing:,} of {panel.y.size:,} dates have no row with freq={freq!r}: take a freq "
            "that fits the dates ('MS' for months), or add rows with 0 if that is what their "
            "absence means."
        )
    if 10 * n_repeated > panel.y.size:
        texts.append(
            f"{n_repeated:,} of {panel.y.size:,} dates of series have several rows, of which the "
            "mean is taken: name the series in the column of ids, or sum the rows up."
        )
    return texts


def _name_likely(
    problems: list[Note], unfit: Ints, frequency: Frequency, times: Ints, codes: Ints, zone: Any
) -> list[Note]:
    """Return problems that say which step the dates of series have that do not fit a frequency."""
    if not unfit.size:
        return problems
    rows = np.flatnonzero(np.isin(codes, unfit))
    rows = rows[np.argsort(codes[rows], kind="stable")]
    parts = np.split(rows, np.flatnonzero(np.diff(codes[rows])) + 1)
    whole = frequency.kind == "integer"
    likely = {
        int(codes[own[0]]): infer_frequency(times[own], codes[own], zone, integer=whole)
        for own in parts
    }
    return [
        replace(note, action=f"ignored; the dates look like freq={step.alias!r}")
        if note.kind == OFF_GRID and (step := likely.get(note.series)) not in (None, frequency)
        else note
        for note in problems
    ]


def _off_grid_error(
    grid: Grid, times: Ints, codes: Ints, ids: FrameColumn, unfit: Ints
) -> ValueError:
    """Make the error that many times are off the grids of their series, of some that are unfit."""
    which = ""
    if 0 < unfit.size < len(ids):
        rows, names = np.isin(codes, unfit), [repr(str(ids[i])) for i in unfit[:3].tolist()]
        times, codes = times[rows], codes[rows]
        more = ", ..." if unfit.size > 3 else ""
        which = f" {unfit.size} of {len(ids)} series ({', '.join(names)}{more})"
    _, on_grid = grid.locate_exactly(times, codes)
    off = np.flatnonzero(~on_grid)
    row = off[np.lexsort((times[off], codes[off]))[0]]
    frequency = grid.frequency
    likely = infer_frequency(times, codes, grid.zone, integer=frequency.kind == "integer")
    if likely is None:
        remedy = "pass another freq, or correct the dates"
    elif likely == frequency:
        remedy = "many dates are one step apart, but on several grids; correct them"
    else:
        remedy = f"the dates look like freq={likely.alias!r}"
    return ValueError(
        f"freq={frequency.alias!r} does not fit{which}: {len(off)} of {len(times)} dates are "
        f"not a whole number of steps from most others of their series, such as "
        f"{grid.format(times[[row]])[0]} of series {str(ids[int(codes[row])])!r}; {remedy}."
    )


def _find_typos(values: Array, codes: Ints) -> Mask:
    """Tell which numbers (n,) are far from all others of their series, as `without_typos` does."""
    import pandas as pd

    column = pd.Series(values)
    middle = column.groupby(codes).transform("median")
    away = (column - middle).abs()
    usual = away.groupby(codes).transform("median")
    other = away.where(away > 0.0).groupby(codes).transform("median")
    rare = np.fmin(other, middle.abs().where(middle != 0.0))
    far = away > TYPO * usual.where(usual > 0.0, rare)
    return np.asarray(far & (far.groupby(codes).transform("mean") <= COMMON))


def _ints(values: npt.ArrayLike) -> Ints:
    return np.asarray(values, dtype=np.int64)
