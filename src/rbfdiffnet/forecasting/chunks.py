"""Forecast a panel chunk by chunk, keeping nothing of a chunk but its forecasts.

Chunks keep memory bounded. Forecasts do not depend on them: nothing that one series learns from
another depends on which of them are in memory together. Series with few errors borrow errors for
their intervals from series that may be in any chunk, so the errors of lenders are computed first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rbfdiffnet.forecasting.options import column_names
from rbfdiffnet.forecasting.pipeline import FittedPanel, Pipeline
from rbfdiffnet.models.base import ForecastRequest
from rbfdiffnet.models.intervals import Loan, Pools, calibration_length, choose_lenders, lend_errors
from rbfdiffnet.models.plan import default_lags
from rbfdiffnet.models.sampled import find_limit, hash_names
from rbfdiffnet.panel.exogenous import Exogenous
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.support.arrays import Array, Ints
from rbfdiffnet.support.notes import Note
from rbfdiffnet.support.parallel import SINGLE_MACHINE, ChunkMemory, even_chunks
from rbfdiffnet.support.progress import progress_between, without_progress

_SHARE = 0.5  # of the memory limit that a chunk is to take, since what it takes is an estimate
_OBJECTS = 20_000  # bytes of a series and its networks, whatever their length
_COPIES = 8  # of its values and of its windows


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
    if method.learns_from == "sample" and len(chunks) > 1:
        limit = find_limit(hash_names([panel.names[i] for i in chunks[0].tolist()]))
        plan = replace(pipeline.plan, collective=ChunkMemory(int(limit)))
        pipeline = replace(pipeline, plan=plan)
    whole, start, fit_share = None, 0.0, method.fit_share
    if method.learns_from == "panel" or len(chunks) < 2:
        start, fit_share = fit_share, 0.0
        with progress_between(0.0, start):
            whole = pipeline.fit(panel, exogenous, calibrate=bool(levels))
    job = _Job(pipeline, panel, exogenous, h, ahead, chunks, whole)
    pools = None
    if levels and len(chunks) > 1 and method.shares_errors:
        with without_progress():
            pools = Pools.of(job.find_loans(), list(levels.values()))
    columns = {name: np.empty((panel.n_series, h)) for name in column_names([*levels])}
    notes: list[Note] = []
    done, total = 0, max(panel.n_series, 1)
    for chunk in chunks:
        end = done + chunk.size
        with progress_between(start, 1.0), progress_between(done / total, end / total):
            with progress_between(0.0, fit_share):
                fitted = job.fit(chunk, calibrate=bool(levels))
            request = fitted.request(h, [ahead[i] for i in chunk.tolist()])
            with progress_between(fit_share, 1.0):
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
        for chunk in even_chunks(lenders.size, largest):
            some = lenders[chunk]
            panel = self.panel.select(some)
            series = self.exogenous.series(panel)
            if self.whole is None:
                model = self.pipeline.fit_model(series, calibrate=True)
            else:
                model = self.whole.model.select(some.tolist())
            ahead = [self.ahead[i] for i in some.tolist()]
            request = ForecastRequest(series, panel.lengths, self.h, ahead)
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
        return split_by_memory(panel.lengths, n_inputs, n_lags + h, pipeline.options.memory_bytes)

    return pipeline.options.method.split(panel.names, panel.y.size, by_memory)


def split_by_memory(lengths: Ints, n_inputs: int, width: int, limit: int) -> list[Ints]:
    """Return the positions of the series of each chunk that takes no more than a limit in bytes.

    `lengths` (n,) counts the values of each series, `width` the steps of a window.
    """
    longest = calibration_length(int(lengths.max(initial=0)))
    windows = np.minimum(lengths // 3, longest) + 1
    numbers = lengths * (1 + n_inputs) + windows * (width + n_inputs)
    need = _OBJECTS + 8 * _COPIES * numbers
    # A series that is too large for a chunk is one of its own.
    number = (np.cumsum(need) - need) // int(_SHARE * limit)
    return [np.flatnonzero(number == k) for k in np.unique(number)]
