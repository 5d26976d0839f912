"""Rows to learn from: the windows of a prepared series, with what follows each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rbfdiffnet.models.networks.window_model import (
    WindowModel,
    fit_windows,
    fit_windows_fast,
    window_rows,
)
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.series.prepare import PreparedSeries
from rbfdiffnet.series.series import Series
from rbfdiffnet.support.arrays import Array, Ints, Mask

FEWEST_ROWS = 6


@dataclass(frozen=True)
class TrainingRows:
    """Rows to learn from: inputs X (n, q), targets Y (n, block), and where windows end (n,)."""

    X: Array
    Y: Array
    ends: Ints
    lags: tuple[int, ...]
    level: str

    @classmethod
    def of(cls, series: Series, prepared: PreparedSeries, plan: Plan) -> TrainingRows:
        """Return the rows of a series that was made ready."""
        return cls.cut(*prepared.transform(), series, plan)

    @classmethod
    def cut(cls, z: Array, known: Mask, series: Series, plan: Plan) -> TrainingRows:
        """Return the rows of a series that has been transformed."""
        lost = series.y.size - z.size
        lags = plan.lags_for(int(known.sum()))
        level = plan.level_for(z)
        steps = np.arange(z.size, dtype=np.float64)[:, None] + lost
        # The step travels along as a first input, and is taken off again.
        extra = np.concatenate([steps, series.extra[lost:]], axis=1)
        X, Y = window_rows(z, known, extra, lags=lags, level=level, block=plan.block)
        return cls(X[:, 1:], Y, X[:, 0].astype(np.int64), lags, level)

    @classmethod
    def concatenate(cls, rows: Sequence[TrainingRows]) -> TrainingRows:
        """Return the rows of several series as one."""
        X, Y, ends = (
            np.concatenate([getattr(r, name) for r in rows]) for name in ("X", "Y", "ends")
        )
        return cls(X, Y, ends, rows[0].lags, rows[0].level)

    def part(self, which: slice, every: int) -> TrainingRows:
        """Return every so many of some rows."""
        return replace(
            self, X=self.X[which][::every], Y=self.Y[which][::every], ends=self.ends[which][::every]
        )

    def fit(self, plan: Plan) -> WindowModel:
        """Train a network on the rows."""
        settings = plan.settings(self.X.shape[1])
        if plan.fast and plan.block == 1:
            return fit_windows_fast(
                self.X, self.Y, n_centers=settings.n_centers, lags=self.lags, level=self.level
            )
        n_extra = self.X.shape[1] - len(self.lags)
        if n_extra and isinstance(settings.metric, str) and settings.metric == "standard":
            # Inputs other than lags are often rare switches: dividing them by their small spread
            # would make them outweigh everything else in distances.
            spread = np.minimum(self.X[:, :n_extra].std(axis=0), 1.0)
            settings = replace(settings, metric=np.append(spread, np.ones(len(self.lags))))
        return fit_windows(self.X, self.Y, settings, lags=self.lags, level=self.level)
