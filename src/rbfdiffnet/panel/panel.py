"""Many series in flat arrays: what the mathematics makes of a long data frame, and back.

A frame has a row for each series and date, in any order, with holes and repetitions. A panel has
the values of each series on its regular grid of dates, one series after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.columns import Columns, check_frequency, misfit, read_keys, read_target
from rbfdiffnet.panel.frames import (
    Column,
    latest_time,
    make_frame,
    make_times,
    read_frame,
    read_times,
    read_values,
    time_zone,
)
from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.panel.grid import Grid, to_wall
from rbfdiffnet.panel.regularize import Problem, labels, regularize_in_pieces, spans
from rbfdiffnet.panel.updates import extended

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
    grid : Grid
        Dates of each series.
    ids : column of length n_series
        Names of the series, as in the frame.
    time : column
        An empty one that looks like the frame's column of dates.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.panel.panel import Panel
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
    grid: Grid
    ids: Column
    time: Column

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
            a series runs through its last date, unless that one is astray: see `Grid.from_times`.
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
        >>> from rbfdiffnet.panel.panel import Columns, Panel
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
        grid, offsets, flat, problems, n_off = regularize_in_pieces(
            frequency, zone, times, codes, len(ids), values, columns.target
        )
        if 2 * n_off > len(times):
            grid = Grid.from_times(frequency, times, codes, len(ids), zone)
            raise misfit(grid, times, codes, ids)
        if errors == "raise" and problems:
            raise ValueError(
                f"Series {str(ids[problems[0].series])!r}: {problems[0].problem}; correct the "
                f"frame, or pass errors='fallback' ({problems[0].action})."
            )
        y = flat.get(columns.target, np.full(offsets[-1], np.nan))
        kept = {name: flat[name] for name in inputs}
        return cls(offsets, y, kept, tuple(problems), columns, grid, ids, time[:0])

    @property
    def n_series(self) -> int:
        """Number of series."""
        return len(self.ids)

    @property
    def lengths(self) -> Ints:
        """Number of steps of each series."""
        return np.diff(self.offsets)

    @property
    def frequency(self) -> Frequency:
        """The step of time."""
        return self.grid.frequency

    def name(self, i: int) -> str:
        """Return the id of series ``i``, for messages."""
        return str(self.ids[int(i)])

    def dates(self, i: npt.ArrayLike, step: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the dates (wall time) or whole numbers of steps of series, also future ones."""
        codes, steps = np.broadcast_arrays(_ints(i), _ints(step))
        times = self.grid.times(codes.ravel(), steps.ravel()).reshape(codes.shape)
        if self.frequency.kind == "integer":
            return times
        return to_wall(times.ravel(), self.grid.zone).view("M8[ns]").reshape(codes.shape)

    def check_ahead(self, h: int) -> None:
        """Raise ValueError if times so many steps after the last ones are too far away to write.

        Examples
        --------
        >>> import pandas as pd
        >>> from rbfdiffnet.panel.panel import Panel
        >>> df = pd.DataFrame({"unique_id": "a", "ds": [pd.Timestamp("2024-01-01")], "y": 1.0})
        >>> Panel.from_frame(df, freq="D").check_ahead(100_000)
        Traceback (most recent call last):
            ...
        ValueError: 100,000 steps of 'D' after its end series 'a' would be beyond ...
        """
        if not self.n_series:
            return
        latest = latest_time(self.time)
        beyond = self.grid.origin + self.grid.step * (self.lengths + float(h - 1)) > latest
        if beyond.any():
            raise ValueError(
                f"{h:,} steps of {self.frequency.alias!r} after its end series "
                f"{self.name(int(beyond.argmax()))!r} would be beyond "
                f"{labels(_ints([latest]), replace(self.grid, zone=None))[0]}, the latest that "
                f"column {self.columns.time!r} can hold; forecast fewer steps."
            )

    def label(self, i: int, step: int) -> str:
        """Return the date or number of a step of series ``i``, for messages."""
        return labels(self.grid.times(_ints([i]), _ints([step])), self.grid)[0]

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
            grid=self.grid.select(chosen),
            ids=nw.maybe_reset_index(self.ids[chosen]),
        )

    def truncated(self, n_last: npt.ArrayLike) -> Panel:
        """Return the panel without the last ``n_last`` steps of each series.

        Series may become empty, but stay.
        """
        return self._taken(self.offsets[:-1], np.maximum(self.lengths - _ints(n_last), 0))

    def extended(self, other: Panel) -> Panel:
        """Return the panel with newer observations appended; see `rbfdiffnet.panel.updates`."""
        return extended(self, other)

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
        >>> from rbfdiffnet.panel.panel import Panel
        >>> df = pd.DataFrame({"unique_id": "a", "ds": [1, 2, 3], "y": [1, 2, 3]})
        >>> panel = Panel.from_frame(df[:1], freq=1)
        >>> panel.rows_of(df[1:])
        (array([0, 0]), array([1, 2]), array([ True,  True]))
        """
        frame = read_frame(df, [self.columns.id, self.columns.time])
        codes, ids, time = read_keys(frame, self.columns, self.frequency)
        self._check_times(time)
        known = {value: i for i, value in enumerate(self.ids.to_list())}
        home = np.array([known.get(value, -1) for value in ids.to_list()], dtype=np.int64)
        series = home[codes]
        found = series >= 0
        steps, on_grid = np.zeros(len(series), dtype=np.int64), np.zeros(len(series), dtype=bool)
        steps[found], on_grid[found] = self.grid.locate(read_times(time)[found], series[found])
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
        >>> from rbfdiffnet.panel.panel import Panel
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
        times = {time_name or self.columns.time: spans(starts, counts), **(extra_times or {})}
        dates = {
            name: make_times(self.time, self.grid.times(codes, _ints(steps)), self.grid.zone)
            for name, steps in times.items()
        }
        arrays = {name: np.asarray(column) for name, column in values.items()}
        ids = self.ids[codes].to_native()
        return make_frame(self.ids, {self.columns.id: ids, **dates, **arrays})

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
        >>> from rbfdiffnet.panel.panel import Panel
        >>> df = pd.DataFrame({"unique_id": ["a", "b"], "ds": [1, 7], "y": [1, 2]})
        >>> Panel.from_frame(df, freq=1).table([1, 1], {"problem": ["short", "early"]})
          unique_id problem
        0         b   short
        1         b   early
        """
        ids = self.ids[_ints(series)].to_native()
        return make_frame(self.ids, {self.columns.id: ids, **values})

    def latest(self, n: npt.ArrayLike) -> Panel:
        """Return the panel with at most the last n steps of each series.

        Examples
        --------
        >>> import pandas as pd
        >>> from rbfdiffnet.panel.panel import Panel
        >>> df = pd.DataFrame({"unique_id": ["a", "a"], "ds": [1, 2], "y": [1.0, 2.0]})
        >>> panel = Panel.from_frame(df, freq=1).latest(1)
        >>> panel.y, panel.label(0, 0)
        (array([2.]), '2')
        """
        kept = np.minimum(self.lengths, _ints(n))
        cut = self.lengths - kept
        return replace(self._taken(self.offsets[:-1] + cut, kept), grid=self.grid.moved(cut))

    def _taken(self, starts: Ints, lengths: Ints) -> Panel:
        """Return the panel with stretches of the flat arrays only."""
        rows = spans(starts, lengths)
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
            if (zone is None) == (self.grid.zone is None):
                return
        raise ValueError(
            f"Column {time.name!r} is of type {time.to_native().dtype}, that of the series of "
            f"type {self.time.to_native().dtype}; convert it."
        )


def _ints(values: npt.ArrayLike) -> Ints:
    return np.asarray(values, dtype=np.int64)
