"""Inputs in the future that are unlike all that a series was trained on, and what is said of them.

A number is far out if it leaves the range of its series in training, typos aside, by more than the
width of that range; intervals widen from the edge of the range on. An input that never changed in
training has no known effect, nor has a text that was not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.calendar import CalendarInputs
from rbfdiffnet.panel.encode import ColumnEncoding, Encoder
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.support.arrays import Array, Arrays, Mask
from rbfdiffnet.support.notes import FAR_INPUT, NEW_INPUT, Note

_ACTIONS = {
    FAR_INPUT: "extrapolated, and not to be trusted",
    NEW_INPUT: "its effect is not known, and left out",
}
_NEVER = "which was not there in training"
# A kind of note, which values (n, h) it is on, and what it says of those of series i.
_Finding = tuple[str, Mask, Callable[[int], str]]


def find_unseen(
    panel: Panel,
    future: Mapping[str, npt.NDArray[Any]],
    encoder: Encoder,
    *,
    alone: bool,
) -> tuple[list[Note], Arrays]:
    """Return notes on future inputs, (n * h,) by name, and how far out of range numbers are.

    `alone` tells that series learn nothing from each other: what never changed in one of them is
    new to it, even if it did change in others.
    """
    notes: list[Note] = []
    excess: Arrays = {}
    encodings = {encoding.name: encoding for encoding in encoder.columns}
    for name, column in future.items():
        values, encoding = column.reshape(panel.n_series, -1), encodings.get(name)
        if column.dtype.kind == "O":
            found = [_find_texts(panel.inputs[name], values, encoding)]
        else:
            found, beyond = _find_numbers(panel, name, values, encoding, alone)
            excess[name] = beyond.ravel()
        for finding in found:
            notes += _make_notes(panel, name, values, finding)
    return notes, excess


def note_new_events(panel: Panel, calendar: CalendarInputs, rows: Array) -> list[Note]:
    """Return notes on events ahead, in rows (n * h, c) of a calendar, that were never before."""
    columns = dict(zip(calendar.names, rows.T, strict=True))
    new = [name for name in calendar.new_events if columns[name].any()]
    if new:  # updates may know more than the fit did
        dates = np.unique(panel.dates(panel.row_series, panel.row_steps))
        new = [name for name in new if name in calendar.find_new(dates)]
    notes: list[Note] = []
    for name in new:
        values = columns[name].reshape(panel.n_series, -1)
        notes += _make_notes(panel, name, values, (NEW_INPUT, values > 0.0, lambda _: _NEVER))
    return notes


def _make_notes(
    panel: Panel, name: str, values: npt.NDArray[Any], finding: _Finding
) -> Iterator[Note]:
    """Make a note for each series on its values (h,) of an input: the first one, and how many."""
    kind, mask, describe = finding
    for i in np.flatnonzero(mask.any(axis=1)).tolist():
        first, count = int(mask[i].argmax()), int(mask[i].sum())
        date = panel.format_date(i, int(panel.lengths[i]) + first)
        value = values[i, first]
        text = repr(value) if isinstance(value, str) else f"{value:.6g}"
        more = "" if count == 1 else f" and on {count - 1} more"
        detail = f"{name!r} is {text} on {date}{more}, {describe(i)}"
        yield Note(i, kind, _ACTIONS[kind], detail=detail)


def _find_numbers(
    panel: Panel, name: str, values: Array, encoding: ColumnEncoding | None, alone: bool
) -> tuple[list[_Finding], Array]:
    """Find numbers (n, h) that are far out or new; also return how far outside they are."""
    low, high = panel.find_range(name)
    if encoding is not None and encoding.span is not None:
        borrows = low >= high if not alone else low > high
        low[borrows], high[borrows] = encoding.span
    width = (high - low)[:, None]
    beyond = np.maximum(low[:, None] - values, values - high[:, None])
    far, new = (width > 0.0) & (beyond > width), (width == 0.0) & (beyond > 0.0)
    findings = [
        (FAR_INPUT, far, lambda i: f"far from {low[i]:.6g} to {high[i]:.6g} in training"),
        (NEW_INPUT, new, lambda i: f"but was always {low[i]:.6g} in training"),
    ]
    return findings, np.where(width > 0.0, np.maximum(beyond, 0.0), 0.0)


def _find_texts(
    column: npt.NDArray[Any], values: npt.NDArray[Any], encoding: ColumnEncoding | None
) -> _Finding:
    """Find texts (n, h) that are not in a column of training."""
    known = set(map(str, column.tolist() if encoding is None else encoding.values or ()))
    new = [text for text in set(values.ravel()) if isinstance(text, str) and text not in known]
    return NEW_INPUT, np.isin(values, new), lambda _: _NEVER
