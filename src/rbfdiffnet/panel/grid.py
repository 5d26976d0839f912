"""Regular grids of dates: steps of time from the first date of each series, and back.

Times are whole numbers, or nanoseconds since 1970 in UTC where they are dates. Many series are
handled at once: a code, the number of a series, says which series a time belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from rbfdiffnet.panel.frequency import DAY, Frequency
from rbfdiffnet.support.arrays import Ints, Mask

_HOUR = DAY // 24


@dataclass(frozen=True, eq=False)
class Grid:
    r"""The regular dates of many series.

    .. math:: t_i(k) = o_i + k \Delta

    where :math:`o_i` is the first date of series :math:`i` and :math:`\Delta` the step of time.
    Days and longer steps are added in wall time. Where daylight saving skips the resulting time,
    the next time there is counts; where that time comes twice, the first one counts.

    `origin`, shape (n_series,), is the date of step 0, in wall time where ``frequency.wall``.
    `day`, shape (n_series,), is the day of the month, 31 for month ends, 0 for other steps.
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

        The grid runs through the last date, unless more than half of the dates are off that grid.
        Then the last date is astray, and the grid with most dates is taken, the latest of several.

        An end of a month may stand for the day 28, 29, 30 or 31. Of those days that go with the
        last date, the one that most dates agree on is taken, the latest of several.
        """
        counted = to_wall(times, zone) if frequency.wall else times
        owners = codes
        if zone is not None and frequency.wall:
            # A time right after the clock was put forward says little about the other days.
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
        return grid.shift(first)

    def times(self, codes: Ints, steps: Ints) -> Ints:
        """Return the times of steps; steps may be negative or beyond the last date."""
        counted = self._counted(codes, steps)
        return to_utc(counted, self.zone) if self.frequency.wall else counted

    def locate(self, times: Ints, codes: Ints) -> tuple[Ints, Mask]:
        """Return the steps of times, and which times are on the grid; other steps are rounded.

        Of days and longer steps, times an hour off count as on the grid: midnights of a place with
        daylight saving, written in UTC, are an hour earlier in summer.
        """
        steps, on_grid = self.locate_exactly(times, codes)
        if on_grid.all() or not (self.frequency.wall and self.step >= DAY):
            return steps, on_grid
        for shift in (_HOUR, -_HOUR):
            off = np.flatnonzero(~on_grid)
            steps[off], on_grid[off] = self.locate_exactly(times[off] + shift, codes[off])
        off = np.flatnonzero(~on_grid)
        steps[off], _ = self.locate_exactly(times[off], codes[off])
        return steps, on_grid

    def locate_exactly(self, times: Ints, codes: Ints) -> tuple[Ints, Mask]:
        """Return the steps of times, and which are on the grid to the nanosecond."""
        counted = to_wall(times, self.zone) if self.frequency.wall else times
        steps = self._steps(counted, codes)
        expected = self._counted(codes, steps)
        on_grid = expected == counted
        if self.zone is not None and self.frequency.wall:
            off = np.flatnonzero(~on_grid)
            on_grid[off] = to_utc(expected[off], self.zone) == times[off]
        return steps, on_grid

    def format(self, times: Ints) -> list[str]:
        """Write times as text, no longer than they need to be."""
        if self.frequency.kind == "integer":
            return [str(time) for time in times.tolist()]
        wall = to_wall(times, self.zone)
        sizes = (("D", DAY), ("m", DAY // 1440), ("s", DAY // 86400), ("ns", 1))
        unit = next(unit for unit, size in sizes if not np.any(wall % size))
        return [str(date).replace("T", " ") for date in wall.view("M8[ns]").astype(f"M8[{unit}]")]

    @property
    def step(self) -> float:
        """Upper estimate of the length of a step, in the unit of times."""
        kind, n = self.frequency.kind, self.frequency.n
        if kind == "month":
            return 31.0 * DAY * n
        if kind == "offset" and len(self.origin):
            import pandas as pd

            start = pd.Timestamp(int(self.origin[0]))
            return float(((start + 16 * self.frequency.offset) - start).value) / 16 * n
        return float(n)

    def shift(self, steps: Ints) -> Grid:
        """Return the grids that start `steps` steps later, shape (n_series,)."""
        return replace(self, origin=self._counted(np.arange(len(self.origin)), steps))

    def select(self, series: Ints) -> Grid:
        """Return the grids of some series."""
        return replace(self, origin=self.origin[series], day=self.day[series])

    def concatenate(self, other: Grid) -> Grid:
        """Return these grids followed by those of `other`."""
        origin = np.concatenate([self.origin, other.origin])
        return replace(self, origin=origin, day=np.concatenate([self.day, other.day]))

    def _counted(self, codes: Ints, steps: Ints) -> Ints:
        """Return the times of steps, in wall time where ``frequency.wall``."""
        n = self.frequency.n
        if self.frequency.kind == "month":
            start, length = _days_of(_months(self.origin)[codes] + n * steps)
            days = start + np.minimum(self.day[codes], length) - 1
            return days * DAY + self.origin[codes] % DAY
        if self.frequency.kind == "offset" and len(codes):
            return self._add_offsets(codes, n * steps)
        return self.origin[codes] + n * steps

    def _add_offsets(self, codes: Ints, offsets: Ints) -> Ints:
        """Return the times that many pandas offsets after the origins, by a table of dates."""
        first, last = int(self.origin.min()), int(self.origin.max())
        lookback = DAY
        while True:
            table = _table(self.frequency.offset, first - lookback, last)
            clock = self._clock(table)
            position = _floor(table, self.origin - clock)[codes] + offsets
            if position.min() >= 0:
                break
            lookback *= 4
        # The number of dates is a power of 2, so that few different tables are cached.
        more = 1 << max(0, int(position.max()) - len(table) + 1).bit_length()
        table = _table(self.frequency.offset, first - lookback, last, more)
        times: Ints = table[position] + clock[codes]
        return times

    def _steps(self, counted: Ints, codes: Ints) -> Ints:
        """Return the last steps at or before times (wall times where ``frequency.wall``)."""
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
    """Return what clocks in a time zone show at times in UTC."""
    if zone is None:
        return times
    import pandas as pd

    local = pd.DatetimeIndex(times.view("M8[ns]")).tz_localize("UTC").tz_convert(zone)
    return np.asarray(local.tz_localize(None).asi8)


def to_utc(wall: Ints, zone: str | None) -> Ints:
    """Return the times in UTC at which clocks in a time zone show the wall times.

    A wall time that is skipped becomes the next one there is; of one that comes twice, the first.
    """
    if zone is None:
        return wall
    import pandas as pd

    first = np.ones(len(wall), dtype=bool)
    index = pd.DatetimeIndex(wall.view("M8[ns]"))
    index = index.tz_localize(zone, ambiguous=first, nonexistent="shift_forward")
    return np.asarray(index.asi8)


def infer_frequency(
    times: Ints, codes: Ints, zone: str | None, *, integer: bool
) -> Frequency | None:
    """Find the step that most times agree on; None where there is none."""
    return Frequency.infer(times if integer else to_wall(times, zone).view("M8[ns]"), codes)


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
    """Return the day of the month that suits the last date and most dates of each series."""
    (day, length), (last_day, last_length) = _day_and_length(times), _day_and_length(last)
    candidates = np.array([31, 30, 29, 28])
    votes = np.stack(
        [np.bincount(codes, day == np.minimum(c, length), len(last)) for c in candidates]
    )
    votes[candidates[:, None] < last_day] = -1.0
    return np.where(last_day == last_length, candidates[votes.argmax(axis=0)], last_day)


def _anchor(frequency: Frequency, counted: Ints, codes: Ints, last: Ints) -> Ints:
    """Replace, for series with rows here, the last date by the last one of the commonest phase."""
    rows, phase = _phases(frequency, counted)
    order = np.lexsort((counted[rows], phase, codes[rows]))
    rows, phase = rows[order], phase[order]
    changes = (np.diff(codes[rows]) != 0) | (np.diff(phase) != 0)
    ends = np.flatnonzero(np.append(changes, len(rows) > 0))
    series, latest = codes[rows[ends]], counted[rows[ends]]
    best = np.lexsort((latest, np.diff(ends, prepend=-1), series))
    anchor = last.copy()
    anchor[series[best]] = latest[best]  # where a series is repeated, its last entry counts
    return anchor


def _phases(frequency: Frequency, counted: Ints) -> tuple[Ints, Ints]:
    """Return rows and their phases: rows of equal phase are whole steps apart.

    The end of a short month stands for several days of the month, so its row is repeated. Rows
    that are on no grid, such as Sundays among business days, are left out.
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
    """List the dates of a pandas offset from a day before `first` to `last`, and `more` dates."""
    import pandas as pd

    start = offset.rollback(pd.Timestamp(first - DAY).normalize()).normalize()
    dates = pd.date_range(start, pd.Timestamp(last), freq=offset)
    future = pd.date_range(dates[-1], periods=more + 1, freq=offset)[1:]
    table = np.concatenate([dates.as_unit("ns").asi8, future.as_unit("ns").asi8])
    table.flags.writeable = False
    return table
