"""Regular grids of dates: steps of time from the first date of each series, and back.

Times are whole numbers, or nanoseconds since 1970 in UTC where they are dates. Many series are
handled at once: a code says which series a time belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.frequency import DAY, Frequency

__all__ = ["Grid", "to_utc", "to_wall"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Grid:
    r"""The regular dates of many series.

    .. math:: t_i(k) = o_i + k \Delta

    where :math:`o_i` is the first date of series :math:`i` and :math:`\Delta` the step of time.
    Days and longer steps are added in wall time; where daylight saving skips the result it moves
    forward to the next time there is, and where it comes twice the first one counts.

    Attributes
    ----------
    frequency : Frequency
        The step of time.
    origin : ndarray of shape (n_series,)
        Date of step 0, in wall time where ``frequency.wall`` is true.
    day : ndarray of shape (n_series,)
        Day of the month, 31 for month ends; 0 where steps are not months.
    zone : str or None
        Name of the time zone.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.panel.frequency import Frequency
    >>> from rbfdiffnet.panel.grid import Grid
    >>> codes = np.zeros(2, dtype=np.int64)
    >>> ends = np.array(["2024-01-31", "2024-04-30"], dtype="M8[ns]").view(np.int64)
    >>> grid = Grid.from_times(Frequency.parse("ME"), ends, codes, n_series=1)
    >>> grid.locate(ends, codes)
    (array([0, 3]), array([ True,  True]))
    >>> grid.times(codes, np.array([1, 4])).view("M8[ns]").astype("M8[D]")
    array(['2024-02-29', '2024-05-31'], dtype='datetime64[D]')
    """

    frequency: Frequency
    origin: Ints
    day: Ints
    zone: str | None = None

    @classmethod
    def from_times(
        cls, frequency: Frequency, times: Ints, codes: Ints, n_series: int, zone: str | None = None
    ) -> Grid:
        """Lay a grid through most dates of each series, from its first date on that grid.

        That is the grid through the last date, unless more than half of the dates are off it:
        then a stray date is the last one, and the grid on which most dates are is taken, the
        latest of several.

        Month ends are a grid of their own where the dates say so: of the days of the month that
        go with the last date, the one most dates agree on is taken, the latest of several.
        """
        counted = to_wall(times, zone) if frequency.wall else times
        owners = codes
        if zone is not None and frequency.wall:
            # A time to which the clock was just put forward says little about the other days.
            plain = to_utc(counted - 1, zone) != times
            plain |= np.bincount(codes, plain, n_series)[codes] == 0
            counted, owners = counted[plain], codes[plain]

        def through(anchor: Ints) -> Grid:
            day = np.zeros(n_series, dtype=np.int64)
            if frequency.kind == "month":
                day = _day_of_month(counted, owners, anchor)
            return cls(frequency, anchor, day, zone)

        last = np.full(n_series, np.iinfo(np.int64).min)
        np.maximum.at(last, owners, counted)
        grid = through(last)
        steps, on_grid = grid.locate(times, codes)
        n_off = np.bincount(codes[~on_grid], minlength=n_series)
        stray = 2 * n_off > np.bincount(codes, minlength=n_series)
        if stray.any():
            some = stray[owners]
            grid = through(_anchor(frequency, counted[some], owners[some], last))
            steps, on_grid = grid.locate(times, codes)
        first = np.zeros(n_series, dtype=np.int64)
        np.minimum.at(first, codes[on_grid], steps[on_grid])
        return grid.moved(first)

    def times(self, codes: Ints, steps: Ints) -> Ints:
        """Return the times of steps of series; steps may be negative or beyond the last date."""
        counted = self._counted(codes, steps)
        return to_utc(counted, self.zone) if self.frequency.wall else counted

    def locate(self, times: Ints, codes: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Return the steps of times, and which times are on the grid (other steps are rough)."""
        counted = to_wall(times, self.zone) if self.frequency.wall else times
        steps = self._steps(counted, codes)
        expected = self._counted(codes, steps)
        on_grid = expected == counted
        if self.zone is not None and self.frequency.wall:
            off = np.flatnonzero(~on_grid)
            on_grid[off] = to_utc(expected[off], self.zone) == times[off]
        return steps, on_grid

    @property
    def step(self) -> float:
        """About how long a step is, in the unit of times; never shorter."""
        kind, n = self.frequency.kind, self.frequency.n
        if kind == "month":
            return 31.0 * DAY * n
        if kind == "offset" and len(self.origin):
            import pandas as pd

            start = pd.Timestamp(int(self.origin[0]))
            return float(((start + 16 * self.frequency.offset) - start).value) / 16 * n
        return float(n)

    def moved(self, steps: Ints) -> Grid:
        """Return the grids that start so many steps later."""
        return replace(self, origin=self._counted(np.arange(len(self.origin)), steps))

    def select(self, series: Ints) -> Grid:
        """Return the grids of some series."""
        return replace(self, origin=self.origin[series], day=self.day[series])

    def joined(self, other: Grid) -> Grid:
        """Return these grids followed by those of ``other``."""
        origin = np.concatenate([self.origin, other.origin])
        return replace(self, origin=origin, day=np.concatenate([self.day, other.day]))

    def _counted(self, codes: Ints, steps: Ints) -> Ints:
        """Return the times of steps, in the time that is counted."""
        n = self.frequency.n
        if self.frequency.kind == "month":
            start, length = _days_of(_months(self.origin)[codes] + n * steps)
            days = start + np.minimum(self.day[codes], length) - 1
            return days * DAY + self.origin[codes] % DAY
        if self.frequency.kind == "offset" and len(codes):
            return self._tabled(codes, n * steps)
        return self.origin[codes] + n * steps

    def _tabled(self, codes: Ints, offsets: Ints) -> Ints:
        """Return the times so many pandas offsets after the origins."""
        first, last = int(self.origin.min()), int(self.origin.max())
        lookback = DAY
        while True:
            table = _table(self.frequency.offset, first - lookback, last)
            clock = self._clock(table)
            position = _floor(table, self.origin - clock)[codes] + offsets
            if position.min() >= 0:
                break
            lookback *= 4
        # In powers of 2, so that tables are found in the cache.
        more = 1 << max(0, int(position.max()) - len(table) + 1).bit_length()
        table = _table(self.frequency.offset, first - lookback, last, more)
        times: Ints = table[position] + clock[codes]
        return times

    def _steps(self, counted: Ints, codes: Ints) -> Ints:
        """Return the steps at or before counted times."""
        n = self.frequency.n
        if self.frequency.kind == "month":
            return (_months(counted) - _months(self.origin)[codes]) // n
        if self.frequency.kind == "offset" and len(codes):
            bounds = [min(counted.min(), self.origin.min()), max(counted.max(), self.origin.max())]
            table = _table(self.frequency.offset, int(bounds[0]), int(bounds[1]))
            clock = self._clock(table)
            start = _floor(table, self.origin - clock)
            return (_floor(table, counted - clock[codes]) - start[codes]) // n
        return (counted - self.origin[codes]) // n

    def _clock(self, table: Ints) -> Ints:
        """Return the time of day of each series, which a table of whole days leaves out."""
        return np.zeros_like(self.origin) if np.any(table % DAY) else self.origin % DAY


def to_wall(times: Ints, zone: str | None) -> Ints:
    """Return what clocks in a time zone show at times in UTC.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.panel.grid import to_utc, to_wall
    >>> noon = np.array(["2024-07-01T12:00"], dtype="M8[ns]").view(np.int64)
    >>> to_wall(noon, "Europe/Berlin").view("M8[ns]").astype("M8[h]")
    array(['2024-07-01T14'], dtype='datetime64[h]')
    >>> bool(to_utc(to_wall(noon, "Europe/Berlin"), "Europe/Berlin") == noon)
    True
    """
    if zone is None:
        return times
    import pandas as pd

    local = pd.DatetimeIndex(times.view("M8[ns]")).tz_localize("UTC").tz_convert(zone)
    return np.asarray(local.tz_localize(None).asi8)


def to_utc(wall: Ints, zone: str | None) -> Ints:
    """Return the times in UTC at which clocks in a time zone show what they show.

    A time that is skipped moves forward to the next one there is; of a time that comes twice the
    first is taken.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.panel.grid import to_utc
    >>> skipped_and_double = np.array(["2024-03-31T02:30", "2024-10-27T02:30"], dtype="M8[ns]")
    >>> to_utc(skipped_and_double.view(np.int64), "Europe/Berlin").view("M8[ns]").astype("M8[m]")
    array(['2024-03-31T01:00', '2024-10-27T00:30'], dtype='datetime64[m]')
    """
    if zone is None:
        return wall
    import pandas as pd

    first = np.ones(len(wall), dtype=bool)
    index = pd.DatetimeIndex(wall.view("M8[ns]"))
    index = index.tz_localize(zone, ambiguous=first, nonexistent="shift_forward")
    return np.asarray(index.asi8)


def _months(times: Ints) -> Ints:
    """Return the months since 1970."""
    return times.view("M8[ns]").astype("M8[M]").view(np.int64)


def _days_of(months: Ints) -> tuple[Ints, Ints]:
    """Return the first day of months, and how many days they have."""
    start = months.view("M8[M]").astype("M8[D]").view(np.int64)
    end = (months + 1).view("M8[M]").astype("M8[D]").view(np.int64)
    return start, end - start


def _day_and_length(times: Ints) -> tuple[Ints, Ints]:
    """Return the day of the month of times, and how many days that month has."""
    start, length = _days_of(_months(times))
    return times // DAY - start + 1, length


def _day_of_month(times: Ints, codes: Ints, last: Ints) -> Ints:
    """Return the day of month that goes with the last date and with most dates of each series."""
    (day, length), (last_day, last_length) = _day_and_length(times), _day_and_length(last)
    candidates = np.array([31, 30, 29, 28])
    votes = np.stack(
        [np.bincount(codes, day == np.minimum(c, length), len(last)) for c in candidates]
    )
    votes[candidates[:, None] < last_day] = -1.0
    return np.where(last_day == last_length, candidates[votes.argmax(axis=0)], last_day)


def _anchor(frequency: Frequency, counted: Ints, codes: Ints, last: Ints) -> Ints:
    """Return the last dates, of series with rows here those of the phase that most rows have."""
    rows, phase = _phases(frequency, counted)
    order = np.lexsort((counted[rows], phase, codes[rows]))
    rows, phase = rows[order], phase[order]
    changes = (np.diff(codes[rows]) != 0) | (np.diff(phase) != 0)
    ends = np.flatnonzero(np.append(changes, len(rows) > 0))
    series, latest = codes[rows[ends]], counted[rows[ends]]
    best = np.lexsort((latest, np.diff(ends, prepend=-1), series))
    anchor = last.copy()
    anchor[series[best]] = latest[best]  # of a series that comes several times the last one counts
    return anchor


def _phases(frequency: Frequency, counted: Ints) -> tuple[Ints, Ints]:
    """Return rows and their phases: equal ones are whole steps apart.

    The end of a short month goes with several days of the month, so its row comes several times.
    Rows that are never on a grid, such as Sundays among business days, have no phase.
    """
    rows, n = np.arange(len(counted)), frequency.n
    if frequency.kind == "month":
        day, length = _day_and_length(counted)
        turn = 32 * (_months(counted) % n)
        late = [rows[(day == length) & (day < d)] for d in (29, 30, 31)]
        days = np.concatenate([day, np.repeat([29, 30, 31], [len(more) for more in late])])
        rows = np.concatenate([rows, *late])
        return rows, (turn[rows] + days) * DAY + counted[rows] % DAY
    if frequency.kind == "offset" and len(counted):
        table = _table(frequency.offset, int(counted.min()), int(counted.max()))
        clock = np.zeros_like(counted) if np.any(table % DAY) else counted % DAY
        position = _floor(table, counted - clock)
        rows = rows[table[position] == counted - clock]
        return rows, (position % n * DAY + clock)[rows]
    return rows, counted % n


def _floor(table: Ints, times: Ints) -> Ints:
    return np.searchsorted(table, times, side="right") - 1


@lru_cache(maxsize=16)
def _table(offset: Any, first: int, last: int, more: int = 0) -> Ints:
    """Return the dates of a pandas offset from a day before one time to another, and some more."""
    import pandas as pd

    start = offset.rollback(pd.Timestamp(first - DAY).normalize()).normalize()
    dates = pd.date_range(start, pd.Timestamp(last), freq=offset)
    future = pd.date_range(dates[-1], periods=more + 1, freq=offset)[1:]
    table = np.concatenate([dates.as_unit("ns").asi8, future.as_unit("ns").asi8])
    table.flags.writeable = False
    return table
