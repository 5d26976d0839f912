"""Weekdays on which a daily series has no values: each has a note, and no part in totals."""

from __future__ import annotations

import numpy as np

from rbfdiffnet.forecasting.hierarchy import TOTAL
from rbfdiffnet.panel.calendar import (
    describe_closed,
    find_closed_weekdays,
    is_daily,
    weekday_numbers,
)
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.panel.regularize import concatenate_ranges
from rbfdiffnet.support.arrays import Mask
from rbfdiffnet.support.notes import CLOSED, Note
from rbfdiffnet.support.parallel import even_chunks

_AT_ONCE = 2000  # series that are looked at


def find_closed(panel: Panel) -> Mask:
    """Return which weekdays of each series have no value, shape (n_series, 7), Mondays first.

    In a panel with groups these are the weekdays on which no series has one: totals must add up.
    """
    closed = np.zeros((panel.n_series, 7), dtype=bool)
    if not is_daily(panel.frequency):
        return closed
    lengths, starts = panel.lengths, panel.offsets[:-1]
    gaps = np.searchsorted(panel.offsets, np.flatnonzero(np.isnan(panel.y)), side="right") - 1
    chosen = np.unique(gaps)
    for chunk in even_chunks(chosen.size, _AT_ONCE):
        some = chosen[chunk]
        rows = concatenate_ranges(starts[some], lengths[some])
        own = np.repeat(np.arange(some.size), lengths[some])
        known = np.isfinite(panel.y[rows])
        rows, own = rows[known], own[known]
        dates = panel.dates(some[own], rows - starts[some[own]])
        closed[some] = find_closed_weekdays(own, dates, some.size)
    if panel.labels and panel.n_series:
        closed[:] = closed[panel.names.index(TOTAL)]
    return closed


def find_open_steps(panel: Panel, h: int) -> Mask:
    """Return which of the h steps after each series lie on weekdays that have values, (n, h)."""
    closed, n = find_closed(panel), panel.n_series
    is_open = np.ones((n, h), dtype=bool)
    some = np.flatnonzero(closed.any(axis=1))
    if some.size:
        dates = panel.dates(some[:, None], panel.lengths[some, None] + np.arange(h))
        is_open[some] = ~closed[some[:, None], weekday_numbers(dates)]
    return is_open


def note_closed(panel: Panel) -> list[Note]:
    """Return a note on each series that has weekdays without values."""
    closed, action = find_closed(panel), "they repeat the day before; totals leave them out"
    return [
        Note(i, CLOSED, action, detail=describe_closed(closed[i]))
        for i in np.flatnonzero(closed.any(axis=1)).tolist()
    ]
