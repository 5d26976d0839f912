r"""Keep on learning: rows that become known later are added to a shared network's statistics.

.. math:: S \leftarrow S + \sum_{n\ \text{new}} z_n z_n'

with S as in `network.sufficient_statistics`. The basis, the penalties and the preparations of the
series stay; the weights are solved anew. That takes as long as the new rows and one solution do,
however long the history is. A row is learned once, as it looks when its last target becomes known:
whether a value is an outlier, and what a gap is filled with, is not reconsidered later. Values so
far from the range a series had when its preparation was fixed that no forecast may reach them are
not learned, lest one series that has outgrown its scale spoil the network of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.models.networks.series_model import SeriesModel
from rbfdiffnet.models.networks.training_rows import TrainingRows
from rbfdiffnet.models.networks.window_model import WindowModel
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.network.sufficient_statistics import SufficientStatistics
from rbfdiffnet.series.prepare import GAP_CONTEXT_SEASONS
from rbfdiffnet.series.series import Series
from rbfdiffnet.support.arrays import Array, Arrays, Ints
from rbfdiffnet.support.threads import one_blas_thread


@dataclass(frozen=True)
class Learning:
    """What a shared network was trained on, so that it can go on learning.

    `statistics` are those of the rows of all series, `penalties` those on the RBF part and on the
    linear part, and `steps` (n,) says how many steps of each series have been learned.
    """

    statistics: SufficientStatistics
    penalties: tuple[float, float]
    steps: Ints

    def select(self, series: Sequence[int]) -> Learning:
        """Return the same for some of the series; their network has learned from all of them."""
        return replace(self, steps=self.steps[list(series)])

    def joined(self, n_new: int) -> Learning:
        """Return the same with new series at the end, of which nothing has been learned yet."""
        return replace(self, steps=np.append(self.steps, np.zeros(n_new, dtype=np.int64)))

    def to_arrays(self, cut: Ints) -> Arrays:
        """Return arrays to save; the first `cut` (n,) steps of the series are not saved."""
        arrays: Arrays = {"learned/steps": self.steps - cut}
        arrays["learned/penalties"] = np.array(self.penalties)
        for name, values in self.statistics.to_arrays().items():
            # The other half of a symmetric matrix says nothing new, and zeros take no room.
            arrays[f"statistics/{name}"] = np.tril(values) if name == "gram" else values
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Learning | None:
        """Return what `to_arrays` has written, or None where nothing was."""
        if "learned/steps" not in arrays:
            return None
        own = {name[11:]: values for name, values in arrays.items() if name[:11] == "statistics/"}
        gram = own["gram"] + np.tril(own["gram"], -1).T
        rbf, linear = arrays["learned/penalties"].tolist()
        statistics = SufficientStatistics.from_arrays({**own, "gram": gram})
        return cls(statistics, (rbf, linear), arrays["learned/steps"].astype(np.int64))


def learn(
    learning: Learning | None,
    models: Sequence[SeriesModel | None],
    panel: Sequence[Series],
    plan: Plan,
) -> tuple[Learning, WindowModel]:
    """Learn what is new in a panel, given models with the same network.

    Returned are what has been learned by then, and the network trained with the new rows.
    """
    collective = plan.collective
    own = next((model.windows for model in models if model is not None), None)
    shared = collective.all_reduce(lambda: own, lambda found: next((w for w in found if w), None))
    if learning is None or shared is None:
        raise ValueError(
            "refit='weights' needs the sufficient statistics of a shared network, and there are "
            "none: the settings ask for another way of training, the network is too large or had "
            "too few rows, or the model was saved by an older version. Use refit=True."
        )
    seen, windows = learning.steps.tolist(), shared

    def sum_new_rows() -> tuple[SufficientStatistics, float] | None:
        rows = [
            cut_new_rows(series, model, plan, steps)
            for model, series, steps in sorted(
                zip(models, panel, seen, strict=True), key=lambda own: own[1].fingerprint
            )
            if model is not None and series.y.size > steps
        ]
        if not rows:
            return None
        new = TrainingRows.concatenate(rows)
        largest = np.max(np.abs(new.Y) / windows.unit, initial=windows.largest)
        return nothing.add(*standardize_like(windows, new)), float(largest)

    nothing = replace(learning.statistics, gram=np.zeros_like(learning.statistics.gram))
    tol = plan.settings(len(nothing.metric)).tol
    solve = partial(_add_and_train, learning=learning, windows=windows, tol=tol)
    with one_blas_thread(), np.errstate(all="ignore"):
        statistics, windows = collective.all_reduce(sum_new_rows, solve)
    steps = np.array([series.y.size for series in panel], dtype=np.int64)
    return replace(learning, statistics=statistics, steps=steps), windows


def _add_and_train(
    news: Sequence[tuple[SufficientStatistics, float] | None],
    learning: Learning,
    windows: WindowModel,
    tol: float,
) -> tuple[SufficientStatistics, WindowModel]:
    """Add what is new in each part of a panel, and train the network."""
    statistics = learning.statistics
    for new, largest in filter(None, news):
        statistics += new
        windows = replace(windows, largest=max(windows.largest, largest))
    return statistics, train_weights(windows, statistics, learning.penalties, tol=tol)


def cut_new_rows(series: Series, model: SeriesModel, plan: Plan, seen: int) -> TrainingRows:
    """Return the rows of a series whose last target comes after the steps seen before.

    Only the steps that these windows and their gaps need are looked at. Values beyond what the
    model may forecast count as missing.
    """
    context = model.history + plan.block + GAP_CONTEXT_SEASONS * plan.season_length
    first = max(seen - context, 0)
    y, known_ahead, extra = series.y[first:], series.known_ahead[first:], series.extra[first:]
    preparation = model.preparation
    bare = preparation.without_effects(y, known_ahead)
    y = np.where((bare < preparation.low) | (bare > preparation.high), np.nan, y)
    prepared = preparation.apply(y, known_ahead)
    part = Series(y, known_ahead, extra)
    rows = TrainingRows.of(part, prepared, model.plan_for_refit(plan))
    start = int(np.searchsorted(rows.ends, seen - first - plan.block))
    return rows.part(slice(start, None), 1)


def standardize_like(windows: WindowModel, rows: TrainingRows) -> tuple[Array, Array]:
    """Return the inputs and targets of rows as the network takes them inside."""
    network, n_inputs = windows.network, rows.X.shape[1]
    units = np.repeat([1.0, windows.unit], [n_inputs - len(windows.lags), len(windows.lags)])
    X = (rows.X / units - network.x_shift) / network.x_scale
    return X, (rows.Y / windows.unit - network.y_shift) / network.y_scale


def train_weights(
    windows: WindowModel,
    statistics: SufficientStatistics,
    penalties: tuple[float, float],
    *,
    tol: float,
) -> WindowModel:
    """Return the network with the weights that the statistics lead to."""
    (fit,) = statistics.solve([penalties], tol=tol)
    weights = fit.weights.with_unit_a()
    network = replace(windows.network, a=weights.a, w=weights.w, linear=weights.linear)
    return replace(windows, network=network)
