"""Sums of the series of a panel over groups, in the same panel, and the inputs of these sums.

In a panel with groups all series end at the same date. A series counts in its groups from its first
known value on, to the end. What is missing in between, or at the end, must not look like a dip: the
latest known value of the same phase of the season counts instead. At steps at which a series never
has a value though others have, such as the Sundays of one closed shop, it counts as 0, and has that
value itself. A group has no value where none of its series has one. No sum depends on later values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import narwhals as nw
import numpy as np
import numpy.typing as npt

from rbfdiffnet.forecasting.hierarchy import SERIES, Hierarchy, Level, find_levels
from rbfdiffnet.panel.exogenous import Exogenous, FutureInputs
from rbfdiffnet.panel.frames import FrameColumn, make_column
from rbfdiffnet.panel.grid import Grid
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.series.gaps import carry_forward, find_closed_steps
from rbfdiffnet.series.series import SeriesPanel
from rbfdiffnet.support.arrays import Array, Ints, Mask
from rbfdiffnet.support.notes import Note
from rbfdiffnet.support.parallel import even_chunks

Spec = tuple[tuple[str, ...], ...]

_VALUES_AT_ONCE = 4_000_000  # that are added up


def find_hierarchy(panel: Panel, spec: Spec) -> Hierarchy:
    """Return the structure of a panel that has groups.

    Series are in the order of their names, so that nothing depends on the order of a panel.
    """
    bottom, levels = _find_levels(panel, spec)
    places = {name: i for i, name in enumerate(panel.names)}
    groups = [places[name] for level in levels for name in level.groups]
    return Hierarchy.of(levels, bottom, np.array(groups, dtype=np.int64))


def is_series(panel: Panel) -> Mask:
    """Tell which series of a panel that has groups are not sums of others."""
    return np.array([own is not None for own in next(iter(panel.labels.values()))], dtype=bool)


def number_groups(panel: Panel, spec: Spec) -> Ints:
    """Return the group (L, n) that each series of a panel is in on each level; -1 for groups."""
    bottom, levels = _find_levels(panel, spec)
    codes = np.full((len(levels), panel.n_series), -1)
    codes[:, bottom] = [level.codes for level in levels]
    return codes


def count_summed(panel: Panel, spec: Spec) -> dict[int, Array]:
    """Return how many series each group's sum has at each step, (T,), by the group's position."""
    if not panel.n_series:
        return {}
    hierarchy = find_hierarchy(panel, spec)
    series = [panel.y[slice(*panel.offsets[i : i + 2])] for i in hierarchy.bottom.tolist()]
    begun = [np.logical_or.accumulate(np.isfinite(y)) for y in series]
    counts = _sum_ends(hierarchy, begun)
    return {
        i: own[own.size - panel.lengths[i] :]
        for i, own in zip(hierarchy.groups.tolist(), counts, strict=True)
    }


def name_levels(panel: Panel, spec: Spec) -> list[str]:
    """Return the level of each series of a panel that has groups."""
    _, levels = _find_levels(panel, spec)
    known = {name: level.name for level in levels for name in level.groups}
    return [known.get(name, SERIES) for name in panel.names]


def extend_groups(panel: Panel, newer: Panel, spec: Spec, season_length: int) -> Panel:
    """Return a panel that has groups with newer rows of its series; what is new comes last."""
    series = panel.select(is_series(panel)).extend(newer)
    extended = add_groups(series, spec, season_length)
    old = extended.find_series(panel.ids)
    return extended.select(np.append(old, np.setdiff1d(np.arange(extended.n_series), old)))


def add_groups(panel: Panel, spec: Spec, season_length: int) -> Panel:
    """Return a panel with the sums of its series over all groups, level by level, before them."""
    if not panel.n_series:
        return panel
    panel = _align(panel, season_length)
    bottom, levels = _find_levels(panel, spec)
    names = [name for level in levels for name in level.groups]
    _check_names(panel, levels)
    n = len(names)
    hierarchy = Hierarchy.of(levels, bottom, np.arange(n))
    length = int(panel.lengths.max())
    series = [panel.y[slice(*panel.offsets[i : i + 2])] for i in bottom.tolist()]
    known = _sum_ends(hierarchy, [np.isfinite(y) for y in series]) > 0.0
    values = _sum_ends(hierarchy, [_fill(y, season_length) for y in series])
    values = np.where(known, values, np.nan)
    starts = np.where(known.any(axis=1), known.argmax(axis=1), length - 1)
    inside = np.arange(length) >= starts[:, None]
    longest = np.full(n, int(panel.lengths.argmax()))
    return replace(
        panel,
        offsets=np.append(0, np.cumsum(np.append(length - starts, panel.lengths))),
        y=np.append(values[inside], panel.y),
        inputs={
            name: np.append(np.full(int(inside.sum()), _nothing(column)), column)
            for name, column in panel.inputs.items()
        },
        problems=tuple(replace(note, series=note.series + n) for note in panel.problems),
        grid=panel.grid.select(longest).shift(starts).concatenate(panel.grid),
        ids=_join_ids(panel, names),
        labels={name: np.append(np.full(n, None), own) for name, own in panel.labels.items()},
    )


@dataclass(frozen=True, kw_only=True)
class GroupedInputs(Exogenous):
    """Inputs of a panel that has groups: those of a group are the means of those of its series.

    Means are taken of inputs as numbers, so of a text each value has its share in a group. Missing
    ones do not count.
    """

    spec: Spec

    @classmethod
    def of(cls, inputs: Exogenous, spec: Spec) -> Self:
        """Return the inputs of series as those of series and groups."""
        return cls(**_fields(inputs), spec=spec)

    def series(self, panel: Panel) -> SeriesPanel:
        """Return the series of a panel with their inputs as numbers."""
        q, p = len(self.ahead_names), len(self.extra_names)
        starts, ends = panel.offsets[:-1], panel.offsets[1:]
        if not (q or p) or not panel.n_series:
            none = np.empty((panel.y.size, q + p))
            return SeriesPanel(panel.y, none[:, :q], none[:, q:], starts, ends, panel.names)
        hierarchy = find_hierarchy(panel, self.spec)
        own = super().series(panel.select(hierarchy.bottom))
        table = np.concatenate([own.known_ahead, own.extra], axis=1)
        parts = np.split(table, own.ends[:-1])
        known = [np.isfinite(part) for part in parts]
        sums = _sum_ends(hierarchy, [np.nan_to_num(part) for part in parts])
        counts = _sum_ends(hierarchy, known)
        means = sums / np.where(counts > 0.0, counts, np.nan)
        rows = dict(zip(hierarchy.bottom.tolist(), parts, strict=True))
        for i, mean in zip(hierarchy.groups.tolist(), means, strict=True):
            rows[i] = mean[len(mean) - panel.lengths[i] :]
        every = np.concatenate([rows[i] for i in range(panel.n_series)])
        return SeriesPanel(panel.y, every[:, :q], every[:, q:], starts, ends, panel.names)

    def ahead(self, panel: Panel, h: int, X_df: Any, within: Panel | None = None) -> FutureInputs:
        """Return the inputs known in advance; `X_df` has those of series only."""
        if not panel.n_series:
            return super().ahead(panel, h, X_df, within)
        hierarchy = find_hierarchy(panel, self.spec)
        own = super().ahead(panel.select(hierarchy.bottom), h, X_df, within)
        if own.stds is not None:
            raise ValueError(
                "Inputs of a hierarchy cannot be uncertain: leave the columns that end in '_std' "
                "out of X_df."
            )
        result = np.empty((panel.n_series, h, len(self.ahead_names)))
        result[hierarchy.bottom] = own.values
        excess = None
        if own.excess is not None:
            beyond = np.zeros_like(result)
            beyond[hierarchy.bottom] = own.excess
            excess = list(hierarchy.average(beyond))
        notes = [replace(n, series=int(hierarchy.bottom[n.series])) for n in own.notes]
        return FutureInputs(list(hierarchy.average(result)), None, excess, notes)

    def unseen_within(
        self, panel: Panel, origins: Ints, h: int
    ) -> tuple[list[Array] | None, list[Note]]:
        """Return how far out inputs are, and notes; as in `ahead`, groups have means."""
        excess, notes = super().unseen_within(panel, origins, h)
        if excess is not None:
            excess = list(find_hierarchy(panel, self.spec).average(np.stack(excess)))
        return excess, notes

    def note_ended(self, panel: Panel) -> list[Note]:
        """Return notes on inputs of series; groups have means of those that there are."""
        bottom = np.flatnonzero(is_series(panel))
        notes = super().note_ended(panel.select(bottom))
        return [replace(note, series=int(bottom[note.series])) for note in notes]

    def to_json(self) -> dict[str, Any]:
        """Return everything but the groups, which a model keeps with its options."""
        return Exogenous(**_fields(self)).to_json()


def _fields(inputs: Exogenous) -> dict[str, Any]:
    return {own.name: getattr(inputs, own.name) for own in fields(Exogenous)}


def _find_levels(panel: Panel, spec: Spec) -> tuple[Ints, list[Level]]:
    """Return the positions of the series that are not sums, by name, and their levels."""
    bottom = sorted(np.flatnonzero(is_series(panel)).tolist(), key=panel.names.__getitem__)
    labels = {name: own[bottom] for name, own in panel.labels.items()}
    return np.array(bottom, dtype=np.int64), find_levels(labels, spec)


def _sum_ends(hierarchy: Hierarchy, parts: Sequence[npt.NDArray[Any]]) -> Array:
    """Sum over groups, (g, T, ...), what series have, (T_k, ...) each, which end together."""
    length = max(len(part) for part in parts)
    total = np.zeros((hierarchy.groups.size, length, *parts[0].shape[1:]))
    size = total[:1].size
    for chunk in even_chunks(len(parts), max(_VALUES_AT_ONCE // max(size, 1), 1)):
        some = parts[chunk]
        table = np.zeros((len(some), *total.shape[1:]))
        for row, part in zip(table, some, strict=True):
            row[length - len(part) :] = part
        sums = hierarchy.members[:, chunk] @ table.reshape(len(some), -1)
        total += sums.reshape(total.shape)
    return total


def _fill(y: Array, season_length: int) -> Array:
    """Fill gaps of a series (T,) with the latest value of their phase, or of any; 0 before."""
    if np.isfinite(y).all():
        return y
    filled = carry_forward(y, season_length)
    filled = np.where(np.isnan(filled), carry_forward(y, 1), filled)
    return np.nan_to_num(filled, nan=0.0)


def _align(panel: Panel, season_length: int) -> Panel:
    """Return a panel whose series are on one grid, and end at the same date."""
    n, lengths, grid = panel.n_series, panel.lengths, panel.grid
    every, first = np.arange(n), int(np.argmin(panel.grid.origin))
    starts, is_start = _locate(grid, first, every, np.zeros(n, dtype=np.int64))
    ends, is_end = _locate(grid, first, every, lengths - 1)
    for i in np.flatnonzero(~(is_start & is_end & (ends - starts == lengths - 1)))[:1].tolist():
        raise ValueError(
            f"Series {panel.name(i)!r} begins {panel.format_date(i, 0)}, which is no whole number "
            f"of steps after {panel.format_date(first, 0)}, where series {panel.name(first)!r} "
            "begins; series that are added up need the same dates."
        )
    last = int(ends.max())
    new = last + 1 - starts
    offsets = np.append(0, np.cumsum(new))
    # After its end a series repeats its last row, without a value.
    steps = np.arange(offsets[-1]) - np.repeat(offsets[:-1], new)
    late = steps >= np.repeat(lengths, new)
    rows = np.repeat(panel.offsets[:-1], new) + np.minimum(steps, np.repeat(lengths, new) - 1)
    y = np.where(late, np.nan, panel.y[rows])
    _close(y, offsets, starts, season_length)
    early = [
        Note(
            i,
            "ends early",
            "taken to go on as in its last season",
            detail=f"ends {panel.format_date(i, int(lengths[i]) - 1)}, before other series do",
        )
        for i in np.flatnonzero(ends < last).tolist()
    ]
    return replace(
        panel,
        offsets=offsets,
        y=y,
        inputs={name: column[rows] for name, column in panel.inputs.items()},
        problems=(*panel.problems, *early),
        grid=grid.select(np.full(n, first)).shift(starts),
    )


def _locate(grid: Grid, first: int, series: Ints, steps: Ints) -> tuple[Ints, Any]:
    """Find steps of series on the grid of the first one."""
    return grid.locate(grid.times(series, steps), np.full(series.size, first))


def _close(y: Array, offsets: Ints, starts: Ints, season_length: int) -> None:
    """Set values to 0, in place, where a series never has one and another series has."""
    known = np.zeros(int((starts + np.diff(offsets)).max()), dtype=bool)
    gaps = []
    for i, start in enumerate(starts.tolist()):
        own = np.isfinite(y[offsets[i] : offsets[i + 1]])
        known[start:] |= own
        if not own.all():
            gaps.append(i)
    for i in gaps:
        own = y[offsets[i] : offsets[i + 1]]
        own[find_closed_steps(own[None], season_length)[0] & known[starts[i] :]] = 0.0


def _check_names(panel: Panel, levels: Sequence[Level]) -> None:
    """Raise ValueError where the name of a group is also that of a series or another group."""
    seen = dict.fromkeys(panel.names, "a series")
    for level in levels:
        for name in level.groups:
            if name in seen:
                raise ValueError(
                    f"{name!r} would be a group of level {level.name!r}, but is also the name of "
                    f"{seen[name]}; rename one of them."
                )
            seen[name] = f"a group of level {level.name!r}"


def _join_ids(panel: Panel, names: list[str]) -> FrameColumn:
    """Return the names of groups, and after them those of the series, as one column."""
    column = panel.ids
    ids, is_fixed = column.to_list(), column.implementation.is_polars() and column.dtype == nw.Enum
    if is_fixed or not all(isinstance(value, str) for value in ids):
        raise ValueError(
            f"Column {panel.columns.id!r} is of type {column.to_native().dtype}, which cannot hold "
            f"names of groups such as {names[0]!r}; convert it to text."
        )
    return make_column(column, [*names, *ids])


def _nothing(column: npt.NDArray[Any]) -> float | None:
    """Return what stands for a missing value in a column."""
    return None if column.dtype.kind == "O" else np.nan
