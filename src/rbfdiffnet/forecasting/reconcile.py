"""The step after all series of a panel are forecast: what belongs together is made to add up.

Errors of one window go together, so h of them say as much as the square root of h would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rbfdiffnet.forecasting.chunks import forecast_in_chunks
from rbfdiffnet.forecasting.groups import count_summed, find_hierarchy
from rbfdiffnet.forecasting.hierarchy import Hierarchy, Reconciler, make_reconciler
from rbfdiffnet.forecasting.options import ALONE, MEAN, NAME, Options
from rbfdiffnet.forecasting.paths import VALUES_AT_ONCE
from rbfdiffnet.forecasting.pipeline import Pipeline, hold_forecasts
from rbfdiffnet.models.base import ForecastRequest
from rbfdiffnet.models.stack.mixing import measure_changes
from rbfdiffnet.panel.exogenous import Exogenous, FutureInputs
from rbfdiffnet.panel.newcomers import has_values
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.series.effects import never_negative
from rbfdiffnet.series.naive import values_after
from rbfdiffnet.series.series import FEWEST_VALUES
from rbfdiffnet.support.arrays import Array, Mask
from rbfdiffnet.support.memo import share_results
from rbfdiffnet.support.notes import AT_BOUND, Note
from rbfdiffnet.support.parallel import even_chunks
from rbfdiffnet.support.progress import progress_between

#: How many errors of each series are needed, in at least how many windows.
_HELD_OUT = {"variance": (12, 1), "mint": (48, 2)}
_SHORTEST = 12  # steps of a window


def forecast_and_reconcile(
    pipeline: Pipeline,
    panel: Panel,
    exogenous: Exogenous,
    h: int,
    forecast: Callable[[], tuple[list[dict[str, Array]], list[Note]]],
    *,
    excess: Sequence[Sequence[Array] | None],
    alone: bool = False,
    reconciliation: Reconciliation | None = None,
) -> tuple[list[dict[str, Array]], list[Note]]:
    """Return columns (n, h) of forecasts after the end of a panel that add up, and their notes.

    Without a hierarchy they stay as `forecast` returns them, for one or several scenarios, whose
    inputs are far out by `excess`. In one, `alone` adds a column of forecasts as they were before.
    The reconciliation may be known already.
    """
    bounds = find_bounds(pipeline.options, panel)
    if pipeline.options.hierarchy is None or not panel.n_series:
        found, notes = forecast()
        return found, [*notes, *_note_bounds(pipeline, panel, found, bounds)]
    with share_results():
        share = 0.0
        if reconciliation is None:
            reconciliation, share = find_reconciliation(pipeline, panel, exogenous, h)
        with progress_between(share, 1.0):
            tables, notes = forecast()
    found = [
        reconciliation.move(own, far)
        for own, far in zip(tables, map(find_far, excess), strict=True)
    ]
    if alone:
        found = [{**own, ALONE: table[NAME]} for own, table in zip(found, tables, strict=True)]
    return found, [*notes, *_note_bounds(pipeline, panel, found, bounds)]


@dataclass(frozen=True, eq=False)
class Reconciliation:
    """What makes forecasts and paths of a panel with groups add up.

    Forecasts are medians, and medians of skewed series do not add up, even where all are right.
    Means do, so quantiles and paths move as far as means that are made to add up. Without a
    `reconciler` series stay as they are. Values of series and groups lie between `low` and `high`
    (n, 1); what is unknown of `new` series (n,) is not known from the past of their groups either.
    """

    hierarchy: Hierarchy
    reconciler: Reconciler | None
    adds_up: bool
    low: Array
    high: Array
    new: Mask

    def apply(self, values: Array, far: Mask | None = None) -> Array:
        """Return values (n, h) that add up, if they are to.

        Series that have not begun are left aside. Those without values keep their forecasts, which
        are added to those of their groups: the sums of the past are without them. Groups that
        series with hardly any values have just moved are not asked. At steps (n, h) that are far
        out, see `find_far`, series keep their forecasts, too, and groups that have such series are
        not asked: what they say of such inputs must not move the others.
        """
        if not self.adds_up:
            return np.clip(values, self.low, self.high)
        values, bottom = values.copy(), self.hierarchy.bottom
        if self.reconciler is not None:
            far = np.zeros((len(values), 1), dtype=bool) if far is None else far
            kinds, kind = np.unique(far, axis=1, return_inverse=True)
            kind = np.broadcast_to(kind.ravel(), values.shape[1])
            for k, own in enumerate(kinds.T):
                some = values[:, kind == k]
                moved = self.reconciler.without(own).apply(some)
                values[:, kind == k] = np.where(own[:, None], some, moved)
        values[bottom] = np.clip(values[bottom], self.low[bottom], self.high[bottom])
        return self.hierarchy.sum_up(values)

    def find_moves(self, means: Array, far: Mask | None) -> Array:
        """Return by how much means (n, h) move when they are made to add up."""
        return self.apply(means, far) - np.clip(means, self.low, self.high)

    def move(self, columns: dict[str, Array], far: Mask | None) -> dict[str, Array]:
        """Return columns (n, h) of forecasts that add up, and of quantiles moved with their means.

        Where a mean has not moved, quantiles stay exactly the same.
        """
        columns = dict(columns)
        means = columns.pop(MEAN, None)
        if self.adds_up:
            columns = _spread_groups(columns, self.hierarchy, self.new, far)
        values = self.apply(columns.pop(NAME), far)
        away = 0.0 if means is None else self.find_moves(means, far)
        moved = {name: np.clip(own + away, self.low, self.high) for name, own in columns.items()}
        return hold_forecasts({NAME: values, **moved})

    def add_up_paths(self, paths: Array, away: Array) -> None:
        """Move paths (n, h, m) of series, in place, and make those of groups their sums.

        Paths of series move by how far (n, h) their means do.
        """
        own, groups, members = self.hierarchy.bottom, self.hierarchy.groups, self.hierarchy.members
        low, high, away = self.low[own, :, None], self.high[own, :, None], away[own, :, None]
        at_once = max(VALUES_AT_ONCE // max(away.size, 1), 1)
        for some in even_chunks(paths.shape[2], at_once):
            series = np.clip(paths[own, :, some] + away, low, high)
            paths[own, :, some] = series
            sums = members @ series.reshape(own.size, -1)
            paths[groups, :, some] = sums.reshape(groups.size, *series.shape[1:])


def find_reconciliation(
    pipeline: Pipeline, panel: Panel, exogenous: Exogenous, h: int
) -> tuple[Reconciliation, float]:
    """Return what makes h steps after the end of a panel with groups add up.

    Also returned is the share of the time that it took.
    """
    options, share = pipeline.options, 0.0
    hierarchy = find_hierarchy(panel, options.hierarchy).among(panel.lengths > 0)
    known, errors = has_values(panel), None
    n_independent = scales = None
    if options.reconcile in _HELD_OUT:
        steps, n_windows = _plan_windows(pipeline, h)
        share, n_independent = n_windows / (n_windows + 1), n_windows * np.sqrt(steps)
        with progress_between(0.0, share):
            errors = find_held_out_errors(pipeline, panel, exogenous, steps, n_windows)
        values = np.split(panel.y, panel.offsets[1:-1])
        scales = measure_changes(values, pipeline.plan.season_length, h) ** 2
    asked = _leave_moved(hierarchy.among(known), panel)
    reconciler = make_reconciler(
        *(asked, panel.n_series, options.reconcile),
        *(errors, n_independent, scales),
    )
    low, high = np.split(_narrow_bounds(options, panel, hierarchy, known), 2, axis=1)
    new = (panel.lengths > 0) & ~known
    return Reconciliation(hierarchy, reconciler, options.reconciles, low, high, new), share


def _narrow_bounds(options: Options, panel: Panel, hierarchy: Hierarchy, known: Mask) -> Array:
    """Return the lowest and highest values (n, 2): bounds, and 0 for series never below it."""
    bounds = find_bounds(options, panel)
    floor = np.full(panel.n_series, -np.inf)
    for i in np.flatnonzero(known).tolist():
        y = panel.y[slice(*panel.offsets[i : i + 2])]
        floor[i] = 0.0 if never_negative(y[np.isfinite(y)]) else -np.inf
    floor[hierarchy.groups] = hierarchy.members @ floor[hierarchy.bottom]
    bounds[:, 0] = np.minimum(np.maximum(bounds[:, 0], floor), bounds[:, 1])
    return bounds


def _leave_moved(hierarchy: Hierarchy, panel: Panel) -> Hierarchy:
    """Return the structure without groups whose sums have just been moved by new series.

    These have fewer values than any model needs, and add more than what the group, which is older,
    usually changes by in a step.
    """
    known = [y[np.isfinite(y)] for y in np.split(panel.y, panel.offsets[1:-1])]
    sizes = np.array([abs(y.mean()) if 0 < y.size < FEWEST_VALUES else 0.0 for y in known])
    usual = [
        np.median(np.abs(np.diff(known[i]))) if known[i].size >= FEWEST_VALUES else np.inf
        for i in hierarchy.groups.tolist()
    ]
    rest = np.flatnonzero(hierarchy.members @ sizes[hierarchy.bottom] <= usual)
    return Hierarchy(hierarchy.bottom, hierarchy.groups[rest], hierarchy.members[rest])


def find_far(excess: Sequence[Array] | None) -> Mask | None:
    """Tell at which steps (n, h) an input is far out."""
    return None if excess is None else np.asarray(np.stack(excess).any(axis=2))


def _spread_groups(
    columns: dict[str, Array], hierarchy: Hierarchy, new: Mask, far: Mask | None
) -> dict[str, Array]:
    """Return columns in which quantiles of groups know of series that their own past does not tell.

    What is unknown of `new` series (n,) is added to what is unknown of their groups. Where any
    input is `far` out (n, h), a group is as uncertain as the sum of its series. Errors count as
    independent: squares of distances from forecasts are added, and keep their signs.
    """
    if not new.any() and far is None:
        return columns
    own, groups, members = hierarchy.bottom, hierarchy.groups, hierarchy.members
    is_far = False if far is None else members @ far[own].astype(np.float64) > 0.0
    spread = {}
    for name, column in columns.items():
        away = column - columns[NAME]
        squares = np.sign(away) * away**2
        total = squares[groups] + members @ (squares[own] * new[own, None])
        total = np.where(is_far, members @ squares[own], total)
        spread[name] = column.copy()
        spread[name][groups] = columns[NAME][groups] + np.sign(total) * np.sqrt(np.abs(total))
    return spread


def find_bounds(options: Options, panel: Panel) -> Array:
    """Return the lowest and the highest forecast of each series (n, 2).

    Those of a group are the bounds of a series times the number of its series that have begun.
    """
    sizes = np.ones(panel.n_series)
    if options.hierarchy is not None and panel.n_series:
        hierarchy = find_hierarchy(panel, options.hierarchy).among(panel.lengths > 0)
        sizes[hierarchy.groups] = hierarchy.sizes
    return np.outer(sizes, _bounds_of_series(options))


def find_past_bounds(options: Options, panel: Panel) -> list[Array]:
    """Return the lowest and the highest forecast of each value in the past, (2, T) or (2, 1) each.

    Those of a group are the bounds of a series times the number of series in its sum.
    """
    bounds = np.array(_bounds_of_series(options))[:, None]
    found = [bounds] * panel.n_series
    if options.hierarchy is not None and np.isfinite(bounds).any():
        for i, counts in count_summed(panel, options.hierarchy).items():
            found[i] = bounds * np.maximum(counts, 1.0)  # a sum of nothing has no value
    return found


def _bounds_of_series(options: Options) -> tuple[float, float]:
    """Return the lowest and the highest forecast of a series."""
    lower, upper = options.lower, options.upper
    return -np.inf if lower is None else float(lower), np.inf if upper is None else float(upper)


def _note_bounds(
    pipeline: Pipeline, panel: Panel, tables: Sequence[dict[str, Array]], bounds: Array
) -> list[Note]:
    """Return notes on series whose forecasts all lie at a bound that past values are beyond."""
    notes: dict[Note, None] = {}
    options = pipeline.options
    given = (("lower", options.lower, "down", -1.0), ("upper", options.upper, "up", 1.0))
    for (name, bound, way, side), ends in zip(given, bounds.T, strict=True):
        if bound is None or pipeline.rehearsal:
            continue
        for table in tables:
            at = np.isclose(table[NAME], ends[:, None], rtol=1e-9, atol=0.0).all(axis=1)
            for i in np.flatnonzero(at).tolist():
                values = panel.y[slice(*panel.offsets[i : i + 2])]
                farthest = side * np.fmax.reduce(side * values, initial=side * ends[i])
                if farthest != ends[i]:
                    detail = f"{name}={float(bound):g} cuts off all forecasts; "
                    detail += f"values go {way} to {farthest:.6g}"
                    action = f"forecast at the bound; check {name}"
                    notes[Note(i, AT_BOUND, action, detail=detail)] = None
    return list(notes)


def _plan_windows(pipeline: Pipeline, h: int) -> tuple[int, int]:
    """Return the number of steps of held-out windows, and how many there are."""
    n_errors, fewest = _HELD_OUT[pipeline.options.reconcile]
    steps = h if pipeline.plan.block > 1 else max(h, _SHORTEST)
    return steps, max(-(-n_errors // steps), fewest)


def find_held_out_errors(
    pipeline: Pipeline, panel: Panel, exogenous: Exogenous, steps: int, n_windows: int
) -> Array:
    """Return errors (n, n_windows * steps) in the last windows of a panel, NaN where unknown.

    Each window is forecast from what precedes it, by models that have seen nothing else.
    """
    series, errors = exogenous.series(panel), []
    for window in range(n_windows):
        past = panel.truncate((n_windows - window) * steps)
        request = ForecastRequest.within(series, past.lengths, steps)
        with progress_between(window / n_windows, (window + 1) / n_windows):
            inputs = [FutureInputs(list(request.ahead), None)]
            (found,), _ = forecast_in_chunks(pipeline, past, exogenous, steps, inputs, {})
        pairs = zip(series, past.lengths.tolist(), strict=True)
        actual = np.stack([values_after(own.y, np.array([at]), steps)[0] for own, at in pairs])
        known = np.array([own.n_seen >= FEWEST_VALUES for own in request.seen])
        errors.append(np.where(known[:, None], actual - found[NAME], np.nan))
    return np.concatenate(errors, axis=1)
