"""Forecast a panel chunk by chunk, keeping nothing of a chunk but its forecasts.

Chunks keep memory bounded. Forecasts do not depend on them: nothing that one series learns from
another depends on which of them are in memory together. Series with few errors borrow errors for
their intervals from series that may be in any chunk, so the errors of lenders are computed first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rbfdiffnet.forecasting.pipeline import FittedPanel, Pipeline
from rbfdiffnet.models.base import ForecastRequest
from rbfdiffnet.models.intervals import Loan, Pools, calibration_length, choose_lenders, lend_errors
from rbfdiffnet.models.plan import default_lags
from rbfdiffnet.models.sampled import find_limit, hash_names
from rbfdiffnet.panel.exogenous import Exogenous, FutureInputs
from rbfdiffnet.panel.newcomers import Newcomers
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.series.series import SeriesPanel
from rbfdiffnet.support.arrays import Array, Ints, Mask
from rbfdiffnet.support.notes import Note
from rbfdiffnet.support.parallel import SINGLE_MACHINE, ChunkMemory, even_chunks
from rbfdiffnet.support.progress import progress_between, progress_of_parts, without_progress

_SHARE = 0.5  # of the memory limit that a chunk is to take, since what it takes is an estimate
_OBJECTS = 20_000  # bytes of a series and its networks, whatever their length
_COPIES = 8  # of its values and of its windows
_PER_STEP = 4  # values whose work takes as much memory as that of a step ahead, in a stack


def forecast_in_chunks(
    pipeline: Pipeline,
    panel: Panel,
    exogenous: Exogenous,
    h: int,
    scenarios: Sequence[FutureInputs],
    quantiles: Mapping[str, float],
) -> tuple[list[dict[str, Array]], list[Note]]:
    """Fit and forecast a panel without keeping its models.

    `scenarios` hold the inputs ahead of all series, and `quantiles` probabilities by the names of
    columns. Returned are columns (n, h) for each scenario, and what was unusual.
    """
    chunks = _split(pipeline, panel, exogenous, h)
    method = pipeline.options.method
    # Inputs of a group are those of its series, which may be in any chunk.
    series = None if pipeline.options.hierarchy is None else exogenous.series(panel)
    if method.learns_from == "sample" and len(chunks) > 1:
        limit = find_limit(hash_names([panel.names[i] for i in chunks[0].tolist()]))
        plan = replace(pipeline.plan, collective=ChunkMemory(int(limit)))
        pipeline = replace(pipeline, plan=plan)
    newcomers = pipeline.find_newcomers(panel, exogenous)
    uncertain = any(inputs.stds is not None for inputs in scenarios)
    detailed = uncertain or bool(newcomers) or pipeline.options.reconciles
    if len(chunks) > 1 and not detailed:
        job = _Job(pipeline, panel, exogenous, h, scenarios[0].values, chunks, None, series)
        detailed = any(job.is_uncertain(chunk, own.values) for chunk in chunks for own in scenarios)
    pipeline = replace(pipeline, detailed=detailed)
    whole, start, fit_share = None, 0.0, method.fit_share
    if method.learns_from == "panel" or len(chunks) < 2:
        start, fit_share = fit_share, 0.0
        with progress_between(0.0, start):
            calibrate = bool(quantiles)
            whole = pipeline.fit(
                panel, exogenous, calibrate=calibrate, series=series, newcomers=newcomers
            )
    job = _Job(pipeline, panel, exogenous, h, scenarios[0].values, chunks, whole, series)
    pools = None
    if quantiles and len(chunks) > 1 and method.shares_errors:
        with without_progress():
            pools = Pools.of(job.find_loans(), pipeline.asked(quantiles.values()))
    names = pipeline.name_columns(quantiles)
    tables = [{name: np.empty((panel.n_series, h)) for name in names} for _ in scenarios]
    notes: dict[Note, None] = {}
    parts = _with_peers(chunks, newcomers, panel.n_series)
    done, total = 0, max(sum(chunk.size for chunk, _, _ in parts), 1)
    for chunk, kept, new in parts:
        end = done + chunk.size
        with progress_between(start, 1.0), progress_between(done / total, end / total):
            with progress_between(0.0, fit_share):
                fitted = job.fit(chunk, new, calibrate=bool(quantiles))
            unusual = list(fitted.notes)
            with progress_between(fit_share, 1.0):
                each = progress_of_parts(len(scenarios))
                for k, (inputs, columns) in enumerate(zip(scenarios, tables, strict=True)):
                    request = fitted.request(h, inputs.select(chunk))
                    with each(k):
                        found, more = pipeline.forecast(fitted.model, request, quantiles, pools)
                    for name, values in found.items():
                        columns[name][chunk[kept]] = values[kept]
                    unusual += more
        own = [replace(n, series=int(chunk[n.series])) for n in unusual if kept[n.series]]
        notes |= dict.fromkeys(own)
        done = end
    return tables, list(notes)


def _with_peers(
    chunks: list[Ints], newcomers: Sequence[Newcomers], n_series: int
) -> list[tuple[Ints, Mask, Sequence[Newcomers]]]:
    """Return chunks, of which of their series forecasts are kept, and their newcomers.

    Newcomers need their peers: where there are several chunks, a last one has both together.
    """
    if len(chunks) < 2 or not newcomers:
        return [(chunk, np.ones(chunk.size, dtype=bool), newcomers) for chunk in chunks]
    is_new, needed = np.zeros((2, n_series), dtype=bool)
    for group in newcomers:
        is_new[group.series] = needed[group.series] = needed[group.peers] = True
    last = np.flatnonzero(needed)
    own = [group.select(last) for group in newcomers]
    return [*((chunk, ~is_new[chunk], ()) for chunk in chunks), (last, is_new[last], own)]


@dataclass(frozen=True)
class _Job:
    """A panel, what is asked of it, its chunks, and its model where one is fitted to all of it.

    `series` are those of the panel with their inputs, where they cannot be made chunk by chunk.
    """

    pipeline: Pipeline
    panel: Panel
    exogenous: Exogenous
    h: int
    ahead: Sequence[Array]
    chunks: list[Ints]
    whole: FittedPanel | None
    series: SeriesPanel | None

    def select(self, chunk: Ints) -> SeriesPanel:
        """Return the series of a chunk with their inputs as numbers."""
        if self.series is not None:
            return self.series.select(chunk)
        return self.exogenous.series(self.panel.select(chunk))

    def is_uncertain(self, chunk: Ints, ahead: Sequence[Array]) -> bool:
        """Tell whether a chunk has effects of inputs seldom used."""
        some = [ahead[i] for i in chunk.tolist()]
        if not any(rows.size and rows.any() for rows in some):
            return False
        series, ends = self.select(chunk), self.panel.lengths[chunk]
        return ForecastRequest(series, ends, self.h, some).is_uncertain

    def fit(self, chunk: Ints, new: Sequence[Newcomers], *, calibrate: bool) -> FittedPanel:
        """Return the models of a chunk, fitted alone or with the whole panel."""
        if self.whole is not None:
            if len(self.chunks) < 2:
                return self.whole
            return replace(self.whole.select(chunk), newcomers=new)
        panel, series = self.panel.select(chunk), self.select(chunk)
        return self.pipeline.fit(
            panel, self.exogenous, calibrate=calibrate, series=series, newcomers=new
        )

    def find_loans(self) -> list[Loan]:
        """Return the errors that series with few errors borrow."""
        lenders = self._lenders()
        largest = max(chunk.size for chunk in self.chunks)
        loans: list[Loan] = []
        for chunk in even_chunks(lenders.size, largest):
            some = lenders[chunk]
            series = self.select(some)
            if self.whole is None:
                model = self.pipeline.fit_model(series, calibrate=True)
            else:
                model = self.whole.model.select(some.tolist())
            ahead = [self.ahead[i] for i in some.tolist()]
            request = ForecastRequest(series, self.panel.lengths[some], self.h, ahead)
            loans += lend_errors(model.held_out_errors(request, self.pipeline.options.n_jobs))
        return sorted(loans, key=lambda loan: loan.fingerprint)

    def _lenders(self) -> Ints:
        """Return the positions of the series that lend, in the order of their fingerprints."""
        prints: list[bytes] = [b""] * self.panel.n_series
        for chunk in self.chunks:
            for i, own in zip(chunk.tolist(), self.select(chunk), strict=True):
                prints[i] = own.fingerprint
        return np.array(choose_lenders(prints), dtype=np.int64)


def _split(pipeline: Pipeline, panel: Panel, exogenous: Exogenous, h: int) -> list[Ints]:
    """Return the positions of the series of each chunk."""
    plan, limit = pipeline.plan, pipeline.options.memory_bytes
    if plan.collective is not SINGLE_MACHINE:
        return [np.arange(panel.n_series)]

    def by_memory() -> list[Ints]:
        n_inputs = len(exogenous.ahead_names) + len(exogenous.extra_names)
        n_lags = max(plan.lags or (default_lags(plan.season_length),))
        return split_by_memory(panel.lengths, n_inputs, n_lags + h, limit)

    n_values = panel.y.size + _PER_STEP * panel.n_series * h
    return pipeline.options.method.split(panel.names, n_values, limit, by_memory)


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
