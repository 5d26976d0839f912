"""Forecast a panel chunk by chunk, keeping nothing of a chunk but its forecasts.

Forecasts do not depend on the chunks. Series with few errors borrow errors for their intervals from
series that may be in any chunk, so the errors of lenders are computed first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rbfdiffnet.forecasting.memory import pieces
from rbfdiffnet.forecasting.options import column_names
from rbfdiffnet.forecasting.pipeline import FittedPanel, Pipeline
from rbfdiffnet.models.base import ForecastRequest
from rbfdiffnet.models.intervals import Loan, Pools, choose_lenders, lend_errors
from rbfdiffnet.models.plan import default_lags
from rbfdiffnet.panel.exogenous import Exogenous
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.support.arrays import Array, Ints
from rbfdiffnet.support.collective import SINGLE_MACHINE
from rbfdiffnet.support.notes import Note
from rbfdiffnet.support.progress import progress_between


def forecast_in_chunks(
    pipeline: Pipeline,
    panel: Panel,
    exogenous: Exogenous,
    h: int,
    ahead: Sequence[Array],
    levels: Mapping[str, float],
) -> tuple[dict[str, Array], list[Note]]:
    """Fit and forecast a panel without keeping its models.

    `ahead` holds the inputs of each series known in advance, (h, q). Returned are columns (n, h)
    and what was unusual.
    """
    chunks = _split(pipeline, panel, exogenous, h)
    method = pipeline.options.method
    whole = None
    if method.learns_from == "panel" or len(chunks) < 2:
        whole = pipeline.fit(panel, exogenous, calibrate=bool(levels))
    job = _Job(pipeline, panel, exogenous, h, ahead, chunks, whole)
    pools = None
    if levels and len(chunks) > 1 and method.shares_errors:
        pools = Pools.of(job.find_loans(), list(levels.values()))
    columns = {name: np.empty((panel.n_series, h)) for name in column_names([*levels])}
    notes: list[Note] = []
    done, total = 0, max(panel.n_series, 1)
    for chunk in chunks:
        end = done + chunk.size
        with progress_between(done / total, end / total):
            fitted = job.fit(chunk, calibrate=bool(levels))
            request = fitted.request(h, [ahead[i] for i in chunk.tolist()])
            found, unusual = pipeline.forecast(fitted.model, request, levels, pools)
        for name, values in found.items():
            columns[name][chunk] = values
        notes += [replace(n, series=int(chunk[n.series])) for n in (*fitted.notes, *unusual)]
        done = end
    return columns, notes


@dataclass(frozen=True)
class _Job:
    """A panel, what is asked of it, its chunks, and its model where one is fitted to all of it."""

    pipeline: Pipeline
    panel: Panel
    exogenous: Exogenous
    h: int
    ahead: Sequence[Array]
    chunks: list[Ints]
    whole: FittedPanel | None

    def fit(self, chunk: Ints, *, calibrate: bool) -> FittedPanel:
        """Return the models of a chunk, fitted alone or with the whole panel."""
        if self.whole is not None:
            return self.whole.select(chunk) if len(self.chunks) > 1 else self.whole
        return self.pipeline.fit(self.panel.select(chunk), self.exogenous, calibrate=calibrate)

    def find_loans(self) -> list[Loan]:
        """Return the errors that series with few errors borrow."""
        lenders = self._lenders()
        largest = max(chunk.size for chunk in self.chunks)
        loans: list[Loan] = []
        for first in range(0, lenders.size, largest):
            some = lenders[first : first + largest]
            part = self.panel.select(some)
            series = self.exogenous.series(part)
            if self.whole is None:
                model = self.pipeline.fit_model(series, calibrate=True)
            else:
                model = self.whole.model.select(some.tolist())
            ahead = [self.ahead[i] for i in some.tolist()]
            request = ForecastRequest(series, part.lengths, self.h, ahead)
            loans += lend_errors(model.held_out_errors(request, self.pipeline.options.n_jobs))
        return sorted(loans, key=lambda loan: loan.fingerprint)

    def _lenders(self) -> Ints:
        """Return the positions of the series that lend, in the order of their fingerprints."""
        prints: list[bytes] = [b""] * self.panel.n_series
        for chunk in self.chunks:
            series = self.exogenous.series(self.panel.select(chunk))
            for i, own in zip(chunk.tolist(), series, strict=True):
                prints[i] = own.fingerprint
        return np.array(choose_lenders(prints), dtype=np.int64)


def _split(pipeline: Pipeline, panel: Panel, exogenous: Exogenous, h: int) -> list[Ints]:
    """Return the positions of the series of each chunk."""
    plan = pipeline.plan
    if plan.collective is not SINGLE_MACHINE:
        return [np.arange(panel.n_series)]

    def by_memory() -> list[Ints]:
        n_inputs = len(exogenous.ahead_names) + len(exogenous.extra_names)
        n_lags = max(plan.lags or (default_lags(plan.season_length),))
        return pieces(panel.lengths, n_inputs, n_lags + h, pipeline.memory_limit)

    return pipeline.options.method.split(panel.names, panel.y.size, by_memory)
