"""Groups of a hierarchy as a report shows them: a tree, and whether forecasts add up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rbfdiffnet.forecasting.groups import Spec, find_hierarchy, name_levels
from rbfdiffnet.forecasting.hierarchy import Hierarchy
from rbfdiffnet.forecasting.options import ALONE
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.report.tables import Table, to_json
from rbfdiffnet.support.arrays import Array

#: The most groups that a report shows in its tree, those of the upper levels first.
MOST_GROUPS = 200


@dataclass(frozen=True)
class Tree:
    """Series and groups by name (n,), their levels (n,), and which are sums of which."""

    names: Sequence[str]
    levels: Sequence[str]
    hierarchy: Hierarchy

    @classmethod
    def of(cls, panel: Panel, spec: Spec) -> Tree:
        """Return the tree of a panel that has groups."""
        return cls(panel.names, name_levels(panel, spec), find_hierarchy(panel, spec))

    def describe(
        self, ahead: Table, ids: Mapping[str, int], main: str, errors: Mapping[str, Array]
    ) -> dict[str, Any]:
        """Return what the page shows of it.

        `ahead` are forecasts of the series `ids` by the model `main`, and `errors` arrays of errors
        of these series by measure and model, as ``"mase/RBFDiffNet"``.
        """
        own = self.hierarchy
        place = np.array([ids[name] for name in self.names], dtype=np.int64)
        values = _by_time(ahead, main, len(ids))[place]
        totals = np.nansum(values, axis=1)
        before, after = (
            errors.get(f"mase/{model}", np.full(len(ids), np.nan))[place] for model in (ALONE, main)
        )
        rows = [
            {
                "name": self.names[i],
                "level": self.levels[i],
                "depth": depth,
                "size": size,
                "total": to_json(totals[i]),
                "before": to_json(before[i]),
                "after": to_json(after[i]),
            }
            for i, size, depth in self._in_order()
        ]
        return {
            "rows": rows,
            "groups": int(own.groups.size),
            "series": int(own.bottom.size),
            "gap": to_json(self._largest_gap(values)),
            "before": _average(before[own.bottom]),
            "after": _average(after[own.bottom]),
            "alone": ALONE,
        }

    def _largest_gap(self, values: Array) -> float:
        """Return by how much groups differ from the sums of their series, as a share of these.

        Values (n, number of times) that were left out, on closed days, are NaN; at these times the
        groups of their series do not count.
        """
        own = self.hierarchy
        below = values[own.bottom]
        whole = own.members @ np.isnan(below).astype(np.float64) == 0.0
        sums, size = (own.members @ np.nan_to_num(part) for part in (below, np.abs(below)))
        gaps = np.abs(values[own.groups] - sums) / np.where(size > 0.0, size, 1.0)
        return float(gaps[whole].max(initial=0.0))

    def _in_order(self) -> list[tuple[int, int, int]]:
        """Return groups, each followed by those inside of it: position, size and depth.

        A group is inside of the smallest one that has all of its series; of two with the same
        series the later one is inside.
        """
        members = self.hierarchy.members[:MOST_GROUPS]
        sizes = self.hierarchy.sizes[:MOST_GROUPS]
        shared = (members @ members.T).toarray()
        order = np.argsort(-sizes, kind="stable")
        inside: dict[int, list[int]] = {}
        for at, g in enumerate(order.tolist()):
            larger = order[:at][shared[g, order[:at]] == sizes[g]]
            inside.setdefault(int(larger[-1]) if larger.size else -1, []).append(g)
        found: list[tuple[int, int, int]] = []
        waiting = [(g, 0) for g in sorted(inside.get(-1, []), reverse=True)]
        while waiting:
            g, depth = waiting.pop()
            found.append((int(self.hierarchy.groups[g]), int(sizes[g]), depth))
            waiting += [(k, depth + 1) for k in sorted(inside.get(g, []), reverse=True)]
        return found


def _by_time(ahead: Table, model: str, n: int) -> Array:
    """Return the forecasts of a model (n, number of times), NaN where there is none."""
    times, column = np.unique(ahead.times, return_inverse=True)
    table = np.full((n, times.size), np.nan)
    table[ahead.series, column] = ahead.columns[model]
    return table


def _average(errors: Array) -> float | None:
    """Return the mean of the errors that are known."""
    known = errors[np.isfinite(errors)]
    return to_json(known.mean()) if known.size else None
