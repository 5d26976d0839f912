"""Many series in flat arrays, made from a long data frame and turned into frames again.

A frame has a row for each series and date, in any order, with holes and repetitions. A panel has
the values of each series on its regular grid of dates, one series after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
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
    read_target,
    read_times,
    read_values,
    time_zone,
)
from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.panel.grid import Grid, infer_frequency, to_wall
from rbfdiffnet.panel.regularize import concatenate_ranges, regularize_in_chunks
from rbfdiffnet.panel.updates import extend_panel
from rbfdiffnet.support.arrays import Array, Arrays, Ints, Mask
from rbfdiffnet.support.notes import Note

__all__ = ["ColumnNames", "Panel"]


@dataclass(frozen=True, eq=False)
class Panel:
    """Many series, each on the regular grid from its first to its last date.

    Series `i` lies at ``offsets[i]:offsets[i + 1]`` of the flat arrays. The target `y`, shape
    (offsets[-1],), is NaN where it is missing or infinite, or where there is no row. The further
    columns in `inputs`, of the same shape, are floats (NaN where missing) or text as objects (None
    where missing). `problems` lists what was odd about the frame. `ids` has length n_series; `time`
    is an empty column that looks like the frame's column of dates.
    """

    offsets: Ints
    y: Array
    inputs: Arrays
    problems: tuple[Note, ...]
    columns: ColumnNames
    grid: Grid
    ids: FrameColumn
    time: FrameColumn

    @classmethod
    def from_frame(
        cls,
        df: Any,
        columns: ColumnNames | None = None,
        freq: Any = None,
        inputs: Sequence[str] = (),
        errors: str = "fallback",
    ) -> Panel:
        """Bring a long data frame to regular grids.

        `freq` is inferred from the dates where it is None. With ``errors="raise"`` infinite values,
        repeated dates, dates off the grid and missing dates are refused. Otherwise they are listed
        in `problems`: infinite values become missing; identical rows count once, of other rows with
        the same date the mean target and the last known inputs are taken; dates off the grid are
        ignored, and so are dates so early that the grid would be longer than `longest_grid`.
        """
        if errors not in ("fallback", "raise"):
            raise ValueError(f"errors must be 'fallback' or 'raise', got {errors!r}.")
        columns = columns or ColumnNames()
        frequency = None if freq is None else Frequency.parse(freq)
        frame = read_frame(df, [columns.id, columns.time, columns.target, *inputs])
        codes, ids, time = read_keys(frame, columns, frequency)
        times, zone = read_times(time), time_zone(time)
        frequency = _check_frequency(frequency, times, codes, time)
        values = {columns.target: read_target(frame[columns.target])}
        values |= {name: read_values(frame[name]) for name in inputs}
        grid, offsets, flat, problems, n_off = regularize_in_chunks(
            frequency, zone, times, codes, len(ids), values, columns.target
        )
        if 2 * n_off > len(times):
            grid = Grid.from_times(frequency, times, codes, len(ids), zone)
            raise _off_grid_error(grid, times, codes, ids)
        if errors == "raise" and problems:
            raise ValueError(
                f"Series {str(ids[problems[0].series])!r}: {problems[0].problem}; correct the "
                f"frame, or pass errors='fallback' ({problems[0].action})."
            )
        y = flat.pop(columns.target)
        return cls(offsets, y, flat, tuple(problems), columns, grid, ids, time[:0])

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
        )

    def truncate(self, n_last: npt.ArrayLike) -> Panel:
        """Return the panel without the last `n_last` steps of each series, which may be empty."""
        return self._take(self.offsets[:-1], np.maximum(self.lengths - _ints(n_last), 0))

    def extend(self, other: Panel) -> Panel:
        """Return the panel with newer observations appended, and new series at its end."""
        return extend_panel(self, other)

    def find_series(self, ids: FrameColumn) -> Ints:
        """Return the numbers of series by their ids, -1 for those not in the panel."""
        known = {value: i for i, value in enumerate(self.ids.to_list())}
        return np.array([known.get(value, -1) for value in ids.to_list()], dtype=np.int64)

    def locate_rows(self, df: Any) -> tuple[Ints, Ints, Mask]:
        """Find the rows of another frame on the grids of this panel.

        Returned are, each of shape (n_rows,), the numbers of the series (-1 for those not in the
        panel), the steps from the first date (also before it or beyond the last one), and whether
        the rows are on the grids of their series; otherwise their steps mean nothing.
        """
        frame = read_frame(df, [self.columns.id, self.columns.time])
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
    ) -> Any:
        """Make a frame that looks like the one the panel came from, series by series.

        Each series, or each of `series`, which may come again, has `n_steps` rows from
        `steps_first` on. The columns in `values` have shape (n_rows,). `extra_times` are further
        columns of dates, as steps; they come before the values.
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
        return make_frame(self.ids, {self.columns.id: ids, **dates, **arrays})

    def make_table(self, series: npt.ArrayLike, values: Mapping[str, Any]) -> Any:
        """Make a frame with one row for each of these series: its id, and further columns."""
        ids = self.ids[_ints(series)].to_native()
        return make_frame(self.ids, {self.columns.id: ids, **values})

    def keep_last(self, n: npt.ArrayLike) -> Panel:
        """Return the panel with at most the last n steps of each series."""
        kept = np.minimum(self.lengths, _ints(n))
        cut = self.lengths - kept
        return replace(self._take(self.offsets[:-1] + cut, kept), grid=self.grid.shift(cut))

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
        }
        ids = pack_values(self.ids.to_list(), f"Ids in column {self.columns.id!r}")
        arrays: Arrays = {"offsets": self.offsets, "origin": grid.origin}
        arrays |= {"day": grid.day, "ids": ids, "y": self.y}
        if categories is not None:
            arrays["categories"] = categories
        for number, column in enumerate(self.inputs.values()):
            if column.dtype.kind == "O":
                missing = pd.isna(column)
                arrays[f"input{number}_missing"] = missing
                column = np.where(missing, "", column).astype(np.str_)
            arrays[f"input{number}"] = column
        return arrays, meta

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> Panel:
        """Restore a panel from what `to_arrays` returned."""
        inputs: Arrays = {}
        for number, name in enumerate(meta["inputs"]):
            column = arrays[f"input{number}"]
            if column.dtype.kind == "U":
                column = column.astype(object)
                column[arrays[f"input{number}_missing"]] = None
            inputs[name] = column
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
        )

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


def _off_grid_error(grid: Grid, times: Ints, codes: Ints, ids: FrameColumn) -> ValueError:
    """Make the error that most times are off the grids of their series."""
    _, on_grid = grid.locate(times, codes)
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
        f"freq={frequency.alias!r} does not fit: {len(off)} of {len(times)} dates are not a whole "
        f"number of steps from most others of their series, such as "
        f"{grid.format(times[[row]])[0]} of series {str(ids[int(codes[row])])!r}; {remedy}."
    )


def _ints(values: npt.ArrayLike) -> Ints:
    return np.asarray(values, dtype=np.int64)
