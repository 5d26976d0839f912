"""Forecast a panel piece by piece, keeping nothing of a piece but its forecasts.

Forecasts do not depend on the pieces, which `forecasting.memory` cuts. Series with few errors
borrow some for their intervals, and lenders may be in any piece, so these are asked first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rbfdiffnet.forecasting.memory import pieces
from rbfdiffnet.forecasting.pipeline import Asked, State, Work
from rbfdiffnet.models.intervals import Lent, Pools
from rbfdiffnet.models.panel_model import lenders
from rbfdiffnet.models.plan import default_lags
from rbfdiffnet.panel.exogenous import Exogenous
from rbfdiffnet.panel.panel import Panel, Problem
from rbfdiffnet.support.collective import SINGLE_MACHINE
from rbfdiffnet.support.progress import progress_between

__all__ = ["forecast_in_pieces"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def forecast_in_pieces(
    work: Work, panel: Panel, exogenous: Exogenous, asked: Asked
) -> tuple[dict[str, Array], list[Problem]]:
    """Fit and forecast a panel whose models are not kept.

    Returns
    -------
    columns : dict of ndarray of shape (n, h)
    notes : list of Problem
        What was unusual.
    """
    job = _Job(work, panel, exogenous, asked, _cut(work, panel, exogenous, asked.h))
    whole = None
    if work.scope == "global" or len(job.cut) < 2:
        whole = work.fitted(panel, exogenous, calibrate=bool(asked.levels))
    pools = None
    if asked.levels and len(job.cut) > 1 and work.scope != "auto":
        pools = job.pools(whole)
    columns = {name: np.empty((panel.n_series, asked.h)) for name in asked.columns}
    notes: list[Problem] = []
    done, total = 0, max(panel.n_series, 1)
    for piece in job.cut:
        end = done + piece.size
        with progress_between(done / total, end / total):
            state = job.fitted(piece, whole)
            found, odd = work.columns(
                state.model, state.series, state.panel.lengths, asked.select(piece), pools
            )
        for name, values in found.items():
            columns[name][piece] = values
        notes += [replace(n, series=int(piece[n.series])) for n in (*state.notes, *odd)]
        done = end
    return columns, notes


@dataclass(frozen=True)
class _Job:
    """A panel, what is asked of it, and its pieces: positions of series forecast together."""

    work: Work
    panel: Panel
    exogenous: Exogenous
    asked: Asked
    cut: list[Ints]

    def fitted(self, piece: Ints, whole: State | None) -> State:
        """Models of a piece, by themselves or those of the whole panel."""
        if whole is not None:
            return whole.select(piece) if len(self.cut) > 1 else whole
        calibrate = bool(self.asked.levels)
        return self.work.fitted(self.panel.select(piece), self.exogenous, calibrate=calibrate)

    def pools(self, whole: State | None) -> Pools:
        """What series with few errors borrow."""
        chosen = self._lenders()
        largest = max(piece.size for piece in self.cut)
        errors, naive, scales = [], [], []
        for first in range(0, chosen.size, largest):
            some = chosen[first : first + largest]
            part, asked = self.panel.select(some), self.asked.select(some)
            series = self.exogenous.series(part)
            if whole is None:
                model = self.work.learned(part, series, calibrate=True)
            else:
                model = whole.model.select(some.tolist())
            lent = model.lent(asked.of(series, part.lengths), self.work.n_jobs)
            errors += lent.errors
            naive += lent.naive
            scales.append(lent.scales)
        return Pools.of(
            Lent(errors, naive, np.concatenate(scales)), list(self.asked.levels.values())
        )

    def _lenders(self) -> Ints:
        prints: list[bytes] = [b""] * self.panel.n_series
        for piece in self.cut:
            series = self.exogenous.series(self.panel.select(piece))
            for i, own in zip(piece.tolist(), series, strict=True):
                prints[i] = own.fingerprint
        return np.array(lenders(prints), dtype=np.int64)


def _cut(work: Work, panel: Panel, exogenous: Exogenous, h: int) -> list[Ints]:
    if work.plan.collective is not SINGLE_MACHINE:
        return [np.arange(panel.n_series)]
    if work.scope == "auto":
        from rbfdiffnet.models.stack.parts import part_numbers

        numbers = part_numbers(map(panel.name, range(panel.n_series)), panel.y.size)
        return [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
    n_inputs = len(exogenous.ahead_names) + len(exogenous.extra_names)
    n_lags = max(work.plan.lags or (default_lags(work.plan.season_length),))
    return pieces(panel.lengths, n_inputs, n_lags + h, work.memory_limit)
