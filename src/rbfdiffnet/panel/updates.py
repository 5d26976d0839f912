"""Newer observations of a panel: appended to its series, or in place of older values."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.frames import (
    FrameColumn,
    convert_empty,
    make_column,
    read_frame,
    read_target,
    read_values,
)
from rbfdiffnet.panel.regularize import (
    ProblemList,
    concatenate_ranges,
    longest_pause,
    place_values,
)
from rbfdiffnet.support.arrays import Ints, Mask
from rbfdiffnet.support.notes import MISSING_DATE
from rbfdiffnet.support.stability import LARGEST

if TYPE_CHECKING:
    from rbfdiffnet.panel.panel import Panel


_REMEDY = "pass rows that continue the series"
_REMEDY_IF_KNOWN = (
    f"{_REMEDY}, or, for values that were corrected, fit again with the corrected frame"
)


def extend_panel(panel: Panel, other: Panel) -> Panel:
    """Return the panel with newer observations appended, and new series at its end.

    ValueError is raised if `other` has other columns or another kind of ids or dates, or a date
    that is known already, off the grid of its series or much too late.
    """
    _check_same_kind(panel, other)
    home = panel.find_series(other.ids)
    new = home < 0
    other = other.trim(new)
    home[new] = panel.n_series + np.arange(new.sum())
    ids = _concatenate_ids(panel, other, new)
    grid = panel.grid.concatenate(other.grid.select(np.flatnonzero(new)))
    codes = other.row_series
    steps, on_grid = grid.locate(other.grid.times(codes, other.row_steps), home[codes])
    old_lengths = np.append(panel.lengths, np.zeros(new.sum(), dtype=np.int64))
    _check_steps(other, steps, on_grid, old_lengths[home])
    lengths = old_lengths.copy()
    np.maximum.at(lengths, home[codes], steps + 1)
    offsets = np.append(0, np.cumsum(lengths))
    old = concatenate_ranges(offsets[: panel.n_series], panel.lengths)
    fresh = offsets[home[codes]] + steps
    gaps = ProblemList(grid, offsets)
    between = np.ones(offsets[-1], dtype=bool)
    between[old] = between[fresh] = False
    gaps.add_places(MISSING_DATE, "treated as missing", np.flatnonzero(between))

    def merge(name: str, a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return place_values(_concatenate(name, a, b), np.concatenate([old, fresh]), len(between))

    moved = [replace(problem, series=int(home[problem.series])) for problem in other.problems]
    return replace(
        panel,
        offsets=offsets,
        y=merge(panel.columns.target, panel.y, other.y),
        inputs={name: merge(name, panel.inputs[name], other.inputs[name]) for name in panel.inputs},
        problems=(*panel.problems, *gaps.problems(), *moved),
        grid=grid,
        ids=ids,
        labels={
            name: _extend_labels(panel, other, name, home, len(old_lengths))
            for name in panel.labels
        },
        ranges={
            name: np.hstack([own, np.outer([np.inf, -np.inf], np.ones(new.sum()))])
            for name, own in panel.ranges.items()
        },
    )


def revise_panel(panel: Panel, df: Any) -> Panel:
    """Return the panel with the known values of a frame in place of older ones.

    Rows at other dates or of other series have no effect.
    """
    series, steps, on_grid = panel.locate_rows(df)
    here = on_grid & (steps >= 0) & (steps < panel.lengths[series])
    places = np.append(np.arange(panel.offsets[-1]), (panel.offsets[series] + steps)[here])
    frame = read_frame(df, [panel.columns.target, *panel.inputs])

    def renew(name: str, old: npt.NDArray[Any], new: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return place_values(_concatenate(name, old, new[here]), places, len(old))

    target = read_target(frame[panel.columns.target])
    target[~(np.abs(target) <= LARGEST)] = np.nan
    return replace(
        panel,
        y=renew(panel.columns.target, panel.y, target),
        inputs={
            name: renew(name, old, read_values(frame[name])) for name, old in panel.inputs.items()
        },
    )


def _check_same_kind(panel: Panel, other: Panel) -> None:
    """Raise ValueError unless another panel has the same columns, step and kind of dates."""

    def facts(one: Panel) -> dict[str, Any]:
        names, zone = sorted(one.inputs), one.grid.zone
        same = {"inputs": names, "groups": [*one.labels], "freq": one.frequency, "zone": zone}
        return {**asdict(one.columns), **same}

    for what, mine in facts(panel).items():
        if mine != (theirs := facts(other)[what]):
            raise ValueError(f"The new rows have {what} {theirs}, the series {mine}.")


def _extend_labels(
    panel: Panel, other: Panel, name: str, home: Ints, n_series: int
) -> npt.NDArray[Any]:
    """Return the groups of known series, which must be the same in the new rows, and of new ones.

    `home` has the positions, of all n_series, of the series of the new rows.
    """
    old, new = panel.labels[name], other.labels[name]
    labels = np.append(old, np.full(n_series - len(old), None))
    for k in np.flatnonzero((home < len(old)) & (labels[home] != new))[:1].tolist():
        raise ValueError(
            f"Series {other.name(k)!r}: column {name!r} is {new[k]!r} in the new rows, but was "
            f"{labels[home[k]]!r}; a series belongs to one group of it for ever."
        )
    labels[home] = new
    return labels


def _concatenate_ids(panel: Panel, other: Panel, new: Mask) -> FrameColumn:
    """Return the names of the series of a panel, and of the new ones of another."""
    mine, theirs = panel.ids.to_list(), other.ids.to_list()
    text = [{isinstance(value, str) for value in ids} for ids in (mine, theirs)]
    added = other.ids[np.flatnonzero(new)].to_list()
    if text not in ([{True}, {False}], [{False}, {True}]):
        with suppress(TypeError, ValueError, OverflowError):
            return make_column(panel.ids, [*mine, *added])

    def kind(ids: FrameColumn, values: list[Any]) -> str:
        example = "".join(f", such as {value!r}" for value in values[:1])
        return f"of type {ids.to_native().dtype}{example}"

    raise ValueError(
        f"Column {panel.columns.id!r} of the new rows is {kind(other.ids, added or theirs)}, that "
        f"of the series {kind(panel.ids, mine)}; convert that of the new rows."
    )


def _check_steps(other: Panel, steps: Ints, on_grid: Mask, lengths: Ints) -> None:
    """Raise ValueError unless the values of a panel continue series of these lengths."""
    import pandas as pd

    codes = other.row_series
    limit = longest_pause(lengths) + lengths + other.lengths
    known = np.any([pd.notna(column) for column in (other.y, *other.inputs.values())], 0)
    for wrong, what in (
        (steps < lengths[codes], f"is at or before its last known date; {_REMEDY_IF_KNOWN}"),
        (known & ~on_grid, f"is off its grid of freq={other.frequency.alias!r}; {_REMEDY}"),
        (steps >= limit[codes], f"is much too late; {_REMEDY}"),
    ):
        if wrong.any():
            row = np.flatnonzero(wrong)[0]
            step = row - other.offsets[codes[row]]
            label = other.format_date(codes[row], step)
            raise ValueError(f"Series {other.name(codes[row])!r}: {label} {what}.")


def _concatenate(name: str, a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Put two parts of a column, of text or of numbers, one after the other."""
    a, b = convert_empty(a, b.dtype.kind == "O"), convert_empty(b, a.dtype.kind == "O")
    if a.dtype != b.dtype:
        raise ValueError(f"Column {name!r} holds text in some rows, numbers in others.")
    return np.concatenate([a, b])
