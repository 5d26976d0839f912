"""Many series in flat arrays: what the mathematics makes of a long data frame, and back.

A frame has a row for each series and date, in any order, with holes and repetitions. A panel has
the values of each series on its regular grid of dates, one series after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from rbfdiffnet.columns import Columns, check_frequency, misfit, read_keys, read_target
from rbfdiffnet.frames import (
    Column,
    describe,
    latest_time,
    make_frame,
    make_series,
    make_times,
    pack,
    read_frame,
    read_times,
    read_values,
    restore,
    time_zone,
)
from rbfdiffnet.frequency import Frequency
from rbfdiffnet.grid import Grid, to_wall
from rbfdiffnet.regularize import (
    Problem,
    Report,
    labels,
    longest,
    place,
    regularize,
    row_pieces,
)
from rbfdiffnet.stability import LARGEST

__all__ = ["Columns", "Panel", "Problem"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Panel:
    """Many series, each on the regular grid from its first to its last date.

    Attributes
    ----------
    offsets : ndarray of shape (n_series + 1,)
        Series ``i`` lies at ``offsets[i]:offsets[i + 1]`` of the flat arrays.
    y : ndarray of shape (offsets[-1],)
        The target, NaN where it is missing or infinite, or where there is no row.
    inputs : dict of ndarray of shape (offsets[-1],)
        Further columns: numbers as floats (NaN where missing), text as objects (None where
        missing).
    problems : tuple of Problem
        What was odd about the frame, series by series.
    columns : Columns
        Names of the columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.panel import Panel
    >>> dates = pd.to_datetime(["2024-05-04", "2024-05-01", "2024-05-02"])
    >>> df = pd.DataFrame({"unique_id": "a", "ds": dates, "y": [4, 1, 2]})
    >>> panel = Panel.from_frame(df, freq="D")
    >>> panel.y
    array([ 1.,  2., nan,  4.])
    >>> panel.problems[0].problem
    '1 missing date, first 2024-05-03'
    >>> panel.frame(panel.lengths, [1], {"forecast": [5.0]})
      unique_id         ds  forecast
    0         a 2024-05-05       5.0
    """

    offsets: Ints
    y: Array
    inputs: dict[str, npt.NDArray[Any]]
    problems: tuple[Problem, ...]
    columns: Columns
    _grid: Grid
    _ids: Column
    _time: Column  # an empty column that looks like the frame's

    @classmethod
    def from_frame(
        cls,
        df: Any,
        columns: Columns | None = None,
        freq: Any = None,
        inputs: Sequence[str] = (),
        errors: str = "fallback",
        target_required: bool = True,
    ) -> Panel:
        """Bring a long data frame to regular grids.

        Parameters
        ----------
        df : pandas or polars DataFrame
            One row for each series and date, in any order.
        columns : Columns, optional
            Names of the columns.
        freq : str, int or pandas offset, optional
            Step of time, see `Frequency.parse`. Told from the dates where it is None. The grid of
            a series runs through its last date.
        inputs : sequence of str, default=()
            Further columns to keep.
        errors : {"fallback", "raise"}, default="fallback"
            Whether to report infinite values, repeated dates, dates off the grid and missing dates
            in ``problems``, or to refuse them. Infinite values become missing; identical rows
            count once, of others with the same date the mean target and the last known inputs are
            taken; dates off the grid are ignored, and so are those so early that more than
            max(1000, 50 x rows) steps would be needed.
        target_required : bool, default=True
            If false, a frame without the target has a target that is missing everywhere.

        Returns
        -------
        Panel

        Raises
        ------
        TypeError, ValueError
            If the frame, its columns or ``freq`` cannot be used.

        Examples
        --------
        >>> import pandas as pd
        >>> from rbfdiffnet.panel import Columns, Panel
        >>> df = pd.DataFrame({"shop": ["b", "b", "a"], "week": [1, 2, 2], "sales": [5, 6, 7]})
        >>> panel = Panel.from_frame(df, Columns("shop", "week", "sales"), freq=1)
        >>> panel.name(0), panel.lengths.tolist(), panel.y.tolist()
        ('b', [2, 1], [5.0, 6.0, 7.0])
        """
        if errors not in ("fallback", "raise"):
            raise ValueError(f"errors must be 'fallback' or 'raise', got {errors!r}.")
        columns = columns or Columns()
        frequency = None if freq is None else Frequency.parse(freq)
        has_target = target_required or columns.target in getattr(df, "columns", ())
        targets = (columns.target,) if has_target else ()
        frame = read_frame(df, [columns.id, columns.time, *targets, *inputs])
        codes, ids, time = read_keys(frame, columns, frequency)
        times, zone = read_times(time), time_zone(time)
        frequency = check_frequency(frequency, times, codes, time)
        values = {name: read_target(frame[name]) for name in targets}
        values |= {name: read_values(frame[name]) for name in inputs}

        problems: list[Problem] = []
        grids, lengths, parts, n_off = [], [], [], 0
        for series, rows in row_pieces(codes, len(ids)):
            own, at = codes[rows] - series.start, times[rows]
            grid = Grid.from_times(frequency, at, own, series.stop - series.start, zone)
            n_off += int((~grid.locate(at, own)[1]).sum())
            some = {name: column[rows] for name, column in values.items()}
            report, arrays = regularize(grid, at, own, some, columns.target)
            problems += [replace(p, series=p.series + series.start) for p in report.problems()]
            grids.append(report.grid)
            lengths.append(np.diff(report.offsets))
            parts.append(arrays)
        if 2 * n_off > len(times):
            raise misfit(
                Grid.from_times(frequency, times, codes, len(ids), zone), times, codes, ids
            )
        if errors == "raise" and problems:
            raise ValueError(
                f"Series {str(ids[problems[0].series])!r}: {problems[0].problem}; correct the "
                f"frame, or pass errors='fallback' ({problems[0].action})."
            )
        offsets = np.append(0, np.cumsum(np.concatenate(lengths)))
        flat = {name: np.concatenate([arrays.pop(name) for arrays in parts]) for name in values}
        y = flat.get(columns.target, np.full(offsets[-1], np.nan))
        kept = {name: flat[name] for name in inputs}
        return cls(
            offsets, y, kept, tuple(problems), columns, reduce(Grid.joined, grids), ids, time[:0]
        )

    @property
    def n_series(self) -> int:
        """Number of series."""
        return len(self._ids)

    @property
    def lengths(self) -> Ints:
        """Number of steps of each series."""
        return np.diff(self.offsets)

    @property
    def frequency(self) -> Frequency:
        """The step of time."""
        return self._grid.frequency

    def name(self, i: int) -> str:
        """Return the id of series ``i``, for messages."""
        return str(self._ids[int(i)])

    def dates(self, i: npt.ArrayLike, step: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the dates (wall time) or whole numbers of steps of series, also future ones."""
        codes, steps = np.broadcast_arrays(_ints(i), _ints(step))
        times = self._grid.times(codes.ravel(), steps.ravel()).reshape(codes.shape)
        if self.frequency.kind == "integer":
            return times
        return to_wall(times.ravel(), self._grid.zone).view("M8[ns]").reshape(codes.shape)

    def check_ahead(self, h: int) -> None:
        """Raise ValueError if times so many steps after the last ones are too far away to write.

        Examples
        --------
        >>> import pandas as pd
        >>> from rbfdiffnet.panel import Panel
        >>> df = pd.DataFrame({"unique_id": "a", "ds": [pd.Timestamp("2024-01-01")], "y": 1.0})
        >>> Panel.from_frame(df, freq="D").check_ahead(100_000)
        Traceback (most recent call last):
            ...
        ValueError: 100,000 steps of 'D' after its end series 'a' would be beyond ...
        """
        if not self.n_series:
            return
        latest = latest_time(self._time)
        beyond = self._grid.origin + self._grid.step * (self.lengths + float(h - 1)) > latest
        if beyond.any():
            raise ValueError(
                f"{h:,} steps of {self.frequency.alias!r} after its end series "
                f"{self.name(int(beyond.argmax()))!r} would be beyond "
                f"{labels(_ints([latest]), replace(self._grid, zone=None))[0]}, the latest that "
                f"column {self.columns.time!r} can hold; forecast fewer steps."
            )

    def label(self, i: int, step: int) -> str:
        """Return the date or number of a step of series ``i``, for messages."""
        return labels(self._grid.times(_ints([i]), _ints([step])), self._grid)[0]

    def select(self, series: npt.ArrayLike) -> Panel:
        """Return the panel of some series, given as a mask or as indices."""
        series = np.asarray(series)
        chosen = np.flatnonzero(series) if series.dtype == bool else _ints(series)
        panel = self._taken(self.offsets[chosen], self.lengths[chosen])
        found: dict[int, list[Problem]] = {}
        for problem in self.problems:
            found.setdefault(problem.series, []).append(problem)
        return replace(
            panel,
            problems=tuple(
                replace(problem, series=new)
                for new, old in enumerate(chosen.tolist())
                for problem in found.get(old, ())
            ),
            _grid=self._grid.select(chosen),
            _ids=nw.maybe_reset_index(self._ids[chosen]),
        )

    def truncated(self, n_last: npt.ArrayLike) -> Panel:
        """Return the panel without the last ``n_last`` steps of each series.

        Series may become empty, but stay.
        """
        return self._taken(self.offsets[:-1], np.maximum(self.lengths - _ints(n_last), 0))

    def extended(self, other: Panel) -> Panel:
        """Return the panel with newer observations appended, and new series at its end.

        Raises
        ------
        ValueError
            If ``other`` has other columns or another kind of dates, or a date that is known
            already, off the grid of its series or much too late.

        Examples
        --------
        >>> import pandas as pd
        >>> from rbfdiffnet.panel import Panel
        >>> df = pd.DataFrame({"unique_id": ["a", "a", "b"], "ds": [1, 2, 4], "y": [1, 2, 3]})
        >>> old = Panel.from_frame(df[:1], freq=1)
        >>> old.extended(Panel.from_frame(df[1:], freq=1)).y
        array([1., 2., 3.])
        """
        import pandas as pd

        self._check_extension(other)
        known = {value: i for i, value in enumerate(self._ids.to_list())}
        new = np.array([value not in known for value in other._ids.to_list()], dtype=bool)
        home = np.zeros(other.n_series, dtype=np.int64)
        home[new] = self.n_series + np.arange(new.sum())
        home[~new] = [known[value] for value in other._ids[np.flatnonzero(~new)].to_list()]
        ids = [*self._ids.to_list(), *other._ids[np.flatnonzero(new)].to_list()]
        grid = self._grid.joined(other._grid.select(np.flatnonzero(new)))

        codes = np.repeat(np.arange(other.n_series), other.lengths)
        places = np.arange(other.offsets[-1]) - other.offsets[codes]
        steps, on_grid = grid.locate(other._grid.times(codes, places), home[codes])
        old_lengths = np.append(self.lengths, np.zeros(new.sum(), dtype=np.int64))
        limit = longest(old_lengths[home] + other.lengths)
        known_rows = np.any([pd.notna(column) for column in (other.y, *other.inputs.values())], 0)
        for wrong, what in (
            (steps < old_lengths[home[codes]], "is at or before its last known date"),
            (known_rows & ~on_grid, f"is off its grid of freq={self.frequency.alias!r}"),
            (steps >= limit[codes], "is much too late"),
        ):
            if wrong.any():
                row = np.flatnonzero(wrong)[0]
                raise ValueError(
                    f"Series {other.name(codes[row])!r}: {other.label(codes[row], places[row])} "
                    f"{what}; pass rows that continue the series."
                )

        lengths = old_lengths.copy()
        np.maximum.at(lengths, home[codes], steps + 1)
        offsets = np.append(0, np.cumsum(lengths))
        old = _spans(offsets[: self.n_series], self.lengths)
        fresh = offsets[home[codes]] + steps
        report = Report(grid, offsets)
        between = np.ones(offsets[-1], dtype=bool)
        between[old] = between[fresh] = False
        report.places("missing date", "treated as missing", np.flatnonzero(between))

        def merged(name: str, a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return place(_joined(name, a, b), np.concatenate([old, fresh]), len(between))

        moved = [replace(problem, series=int(home[problem.series])) for problem in other.problems]
        return replace(
            self,
            offsets=offsets,
            y=merged(self.columns.target, self.y, other.y),
            inputs={
                name: merged(name, self.inputs[name], other.inputs[name]) for name in self.inputs
            },
            problems=(*self.problems, *report.problems(), *moved),
            _grid=grid,
            _ids=make_series(self._ids, ids),
        )

    def revised(self, df: Any) -> Panel:
        """Return the panel with what is known in rows of a frame in place of what was before.

        Rows at other dates or of other series have no effect.

        Examples
        --------
        >>> import pandas as pd
        >>> from rbfdiffnet.panel import Panel
        >>> df = pd.DataFrame({"unique_id": "a", "ds": [1, 2, 3], "y": [1.0, None, 3.0]})
        >>> panel = Panel.from_frame(df, freq=1)
        >>> panel.revised(df.assign(y=[None, 2.0, 4.0])).y
        array([1., 2., 4.])
        """
        series, steps, on_grid = self.rows_of(df)
        here = on_grid & (steps >= 0) & (steps < self.lengths[series])
        places = np.append(np.arange(self.offsets[-1]), (self.offsets[series] + steps)[here])
        frame = read_frame(df, [self.columns.target, *self.inputs])

        def renewed(name: str, old: npt.NDArray[Any], new: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return place(_joined(name, old, new[here]), places, len(old))

        target = read_target(frame[self.columns.target])
        target[~(np.abs(target) <= LARGEST)] = np.nan
        return replace(
            self,
            y=renewed(self.columns.target, self.y, target),
            inputs={
                name: renewed(name, old, read_values(frame[name]))
                for name, old in self.inputs.items()
            },
        )

    def rows_of(self, df: Any) -> tuple[Ints, Ints, Mask]:
        """Find the rows of another frame on the grids of this panel.

        Parameters
        ----------
        df : pandas or polars DataFrame
            A frame with the columns of ids and times.

        Returns
        -------
        series : ndarray of shape (n_rows,)
            Index of the series, -1 for those not in the panel.
        steps : ndarray of shape (n_rows,)
            Steps from the first date, also before it or beyond the last one.
        on_grid : ndarray of bool of shape (n_rows,)
            Whether the row is on the grid of its series; otherwise its step means nothing.

        Examples
        --------
        >>> import pandas as pd
        >>> from rbfdiffnet.panel import Panel
        >>> df = pd.DataFrame({"unique_id": "a", "ds": [1, 2, 3], "y": [1, 2, 3]})
        >>> panel = Panel.from_frame(df[:1], freq=1)
        >>> panel.rows_of(df[1:])
        (array([0, 0]), array([1, 2]), array([ True,  True]))
        """
        frame = read_frame(df, [self.columns.id, self.columns.time])
        codes, ids, time = read_keys(frame, self.columns, self.frequency)
        self._check_times(time)
        known = {value: i for i, value in enumerate(self._ids.to_list())}
        home = np.array([known.get(value, -1) for value in ids.to_list()], dtype=np.int64)
        series = home[codes]
        found = series >= 0
        steps, on_grid = np.zeros(len(series), dtype=np.int64), np.zeros(len(series), dtype=bool)
        steps[found], on_grid[found] = self._grid.locate(read_times(time)[found], series[found])
        return series, steps, on_grid

    def frame(
        self,
        steps_first: npt.ArrayLike,
        n_steps: npt.ArrayLike,
        values: Mapping[str, npt.ArrayLike],
        time_name: str | None = None,
        extra_times: Mapping[str, npt.ArrayLike] | None = None,
    ) -> Any:
        """Make a frame that looks like the one the panel came from.

        Parameters
        ----------
        steps_first, n_steps : array-like of shape (n_series,)
            The first step of each series, and how many of them.
        values : mapping of str to array-like of shape (n_rows,)
            Further columns, series by series.
        time_name : str, optional
            Name of the column of dates, if it is to be another one.
        extra_times : mapping of str to array-like of shape (n_rows,), optional
            Further columns of dates, as steps; they come before the values.

        Returns
        -------
        pandas or polars DataFrame
            Rows series by series, with ids and dates as they were in the frame.

        Examples
        --------
        >>> import pandas as pd
        >>> from rbfdiffnet.panel import Panel
        >>> df = pd.DataFrame({"unique_id": ["a", "b"], "ds": [1, 7], "y": [1, 2]})
        >>> panel = Panel.from_frame(df, freq=1)
        >>> panel.frame([1, 1], [2, 1], {"x": [3, 4, 5]}, extra_times={"cutoff": [0, 0, 0]})
          unique_id  ds  cutoff  x
        0         a   2       1  3
        1         a   3       1  4
        2         b   8       7  5
        """
        counts = np.broadcast_to(_ints(n_steps), self.n_series)
        codes = np.repeat(np.arange(self.n_series), counts)
        starts = np.broadcast_to(_ints(steps_first), self.n_series)
        times = {time_name or self.columns.time: _spans(starts, counts), **(extra_times or {})}
        dates = {
            name: make_times(self._time, self._grid.times(codes, _ints(steps)), self._grid.zone)
            for name, steps in times.items()
        }
        arrays = {name: np.asarray(column) for name, column in values.items()}
        ids = self._ids[codes].to_native()
        return make_frame(self._ids, {self.columns.id: ids, **dates, **arrays})

    def table(self, series: npt.ArrayLike, values: Mapping[str, Any]) -> Any:
        """Return a frame with the ids of series, a row for each, and further columns.

        Parameters
        ----------
        series : array-like of int of shape (n,)
        values : mapping
            Names and columns of length n: arrays, or lists of text.

        Examples
        --------
        >>> import pandas as pd
        >>> from rbfdiffnet.panel import Panel
        >>> df = pd.DataFrame({"unique_id": ["a", "b"], "ds": [1, 7], "y": [1, 2]})
        >>> Panel.from_frame(df, freq=1).table([1, 1], {"problem": ["short", "early"]})
          unique_id problem
        0         b   short
        1         b   early
        """
        ids = self._ids[_ints(series)].to_native()
        return make_frame(self._ids, {self.columns.id: ids, **values})

    def latest(self, n: npt.ArrayLike) -> Panel:
        """Return the panel with at most the last n steps of each series.

        Examples
        --------
        >>> import pandas as pd
        >>> from rbfdiffnet.panel import Panel
        >>> df = pd.DataFrame({"unique_id": ["a", "a"], "ds": [1, 2], "y": [1.0, 2.0]})
        >>> panel = Panel.from_frame(df, freq=1).latest(1)
        >>> panel.y, panel.label(0, 0)
        (array([2.]), '2')
        """
        kept = np.minimum(self.lengths, _ints(n))
        cut = self.lengths - kept
        return replace(self._taken(self.offsets[:-1] + cut, kept), _grid=self._grid.moved(cut))

    def state(self, values: bool = True) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
        """Return arrays and metadata for JSON from which `from_state` restores the panel.

        Parameters
        ----------
        values : bool, default=True
            Whether target and inputs are included.

        Raises
        ------
        ValueError
            If ids or ``freq`` have no such form.

        Examples
        --------
        >>> import pandas as pd
        >>> from rbfdiffnet.panel import Panel
        >>> df = pd.DataFrame({"unique_id": ["a", "b"], "ds": [1, 7], "y": [1, 2]})
        >>> arrays, meta = Panel.from_frame(df, freq=1).state()
        >>> Panel.from_state(arrays, meta).y
        array([1., 2.])
        """
        import pandas as pd

        frequency = self.frequency
        freq: int | str = frequency.n if frequency.kind == "integer" else frequency.alias
        if Frequency.parse(freq) != frequency:
            raise ValueError(
                f"freq={freq!r} stands for {frequency.offset!r}, which cannot be saved; use an "
                "offset that its alias describes in full."
            )
        id_words, categories = describe(self._ids)
        time_words, _ = describe(self._time)
        grid = self._grid
        arrays: dict[str, npt.NDArray[Any]] = {
            "offsets": self.offsets,
            "origin": grid.origin,
            "day": grid.day,
        }
        arrays["ids"] = pack(self._ids.to_list(), f"Ids in column {self.columns.id!r}")
        if categories is not None:
            arrays["categories"] = categories
        meta = {
            "columns": asdict(self.columns),
            "freq": freq,
            "zone": grid.zone,
            "id": id_words,
            "time": time_words,
            "problems": [asdict(problem) for problem in self.problems],
            "inputs": list(self.inputs) if values else [],
        }
        if values:
            arrays["y"] = self.y
            for number, column in enumerate(self.inputs.values()):
                if column.dtype.kind == "O":
                    missing = pd.isna(column)
                    arrays[f"input{number}_missing"] = missing
                    column = np.where(missing, "", column).astype(np.str_)
                arrays[f"input{number}"] = column
        return arrays, meta

    @classmethod
    def from_state(cls, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> Panel:
        """Restore a panel; what its state left out is missing."""
        grid = Grid(Frequency.parse(meta["freq"]), arrays["origin"], arrays["day"], meta["zone"])
        inputs: dict[str, npt.NDArray[Any]] = {}
        for number, name in enumerate(meta["inputs"]):
            column = arrays[f"input{number}"]
            if column.dtype.kind == "U":
                column = column.astype(object)
                column[arrays[f"input{number}_missing"]] = None
            inputs[name] = column
        offsets = arrays["offsets"]
        return cls(
            offsets,
            arrays["y"] if "y" in arrays else np.full(offsets[-1], np.nan),
            inputs,
            tuple(Problem(**problem) for problem in meta["problems"]),
            Columns(**meta["columns"]),
            grid,
            make_series(restore(meta["id"], arrays.get("categories")), arrays["ids"].tolist()),
            restore(meta["time"], None),
        )

    def _taken(self, starts: Ints, lengths: Ints) -> Panel:
        """Return the panel with stretches of the flat arrays only."""
        rows = _spans(starts, lengths)
        return replace(
            self,
            offsets=np.append(0, np.cumsum(lengths)),
            y=self.y[rows],
            inputs={name: column[rows] for name, column in self.inputs.items()},
        )

    def _check_times(self, time: Column) -> None:
        """Check that times are of the panel's kind."""
        if time.dtype.is_integer() == (self.frequency.kind == "integer"):
            zone = time_zone(time)
            if (zone is None) == (self._grid.zone is None):
                return
        raise ValueError(
            f"Column {time.name!r} is of type {time.to_native().dtype}, that of the series of "
            f"type {self._time.to_native().dtype}; convert it."
        )

    def _check_extension(self, other: Panel) -> None:
        """Check that another panel has the same columns, step and kind of dates."""

        def facts(panel: Panel) -> dict[str, Any]:
            names, zone = sorted(panel.inputs), panel._grid.zone
            return {**asdict(panel.columns), "inputs": names, "freq": panel.frequency, "zone": zone}

        for what, mine in facts(self).items():
            if mine != (theirs := facts(other)[what]):
                raise ValueError(f"The new rows have {what} {theirs}, the series {mine}.")


def _ints(values: npt.ArrayLike) -> Ints:
    return np.asarray(values, dtype=np.int64)


def _spans(starts: Ints, lengths: Ints) -> Ints:
    """Return the whole numbers of stretches, one after the other."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - ends + lengths, lengths) + np.arange(lengths.sum())


def _alike(column: npt.NDArray[Any], other: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a column without any known value as text or numbers, whichever the other one is."""
    import pandas as pd

    if column.dtype == other.dtype or pd.notna(column).any():
        return column
    return np.full(len(column), None if other.dtype.kind == "O" else np.nan, dtype=other.dtype)


def _joined(name: str, a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a column of text or of numbers, one part after the other."""
    a, b = _alike(a, b), _alike(b, a)
    if a.dtype != b.dtype:
        raise ValueError(f"Column {name!r} holds text in some rows, numbers in others.")
    return np.concatenate([a, b])
