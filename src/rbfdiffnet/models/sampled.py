"""Models that learn from some series of a panel together, and keep nothing but the data.

A thousand series tell all there is to learn across series. The names of series decide which ones
these are, so neither the order of a panel nor the machine matters. All others are forecast by what
was learned there, chunk by chunk, so that memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from rbfdiffnet.models.base import FittedModel, ForecastRequest, PanelMethod
from rbfdiffnet.models.networks.fitted import FittedNetworks
from rbfdiffnet.models.networks.local import LocalNetworks
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.stack.windows import PreparedPanel
from rbfdiffnet.series.effects import CommonEffects, Effects
from rbfdiffnet.series.series import Series, SeriesPanel
from rbfdiffnet.support.arrays import Arrays, Ints
from rbfdiffnet.support.parallel import Collective, even_chunks, flatten, parallel_map

Digests = npt.NDArray[np.uint64]

MOST_LEARNED_FROM = 1_000  # series
_LARGEST_CHUNK = 200_000  # values
_LARGEST_ON_DEVICE = 4_000_000  # the same on a GPU
_BYTES = 500  # of the memory limit for each value, of which something is kept until it is forecast


class SampledMethod(PanelMethod):
    """A method whose fit only makes the series of a panel ready."""

    learns_from = "sample"
    knows_longer_season = True
    cluster_group = MOST_LEARNED_FROM, 10**9  # as many as are learned from

    def from_arrays(
        self, panel: SeriesPanel, plan: Plan, words: Mapping[str, Any], arrays: Arrays
    ) -> FittedModel:
        """Return the model of a panel, which is all that was written."""
        del words, arrays
        return self.fit(panel, plan)

    def split(
        self, names: Sequence[str], n_values: int, limit: int, by_memory: Callable[[], list[Ints]]
    ) -> list[Ints]:
        """Return the series that are learned from, then the others in chunks; one chunk for few.

        The fitted model of such a chunk has smaller chunks of its own.
        """
        del by_memory
        n, most = len(names), limit // _BYTES
        if n <= MOST_LEARNED_FROM or n_values <= most:
            return [np.arange(n)]
        hashes = hash_names(names)
        learned_from = hashes <= find_limit(hashes)
        others = np.flatnonzero(~learned_from)
        chunks = even_chunks(others.size, max(most * n // n_values, 1))
        return [np.flatnonzero(learned_from), *(others[chunk] for chunk in chunks)]


@dataclass(frozen=True)
class FittedSampled(FittedModel):
    """A panel, and the positions of the series of each chunk, which are made ready when needed.

    The first chunk are the series that are learned from; elsewhere on a cluster it may be empty,
    and `like` has what effects of inputs have in common in all of them.
    """

    needs_all_series: ClassVar[bool] = True

    plan: Plan
    panel: SeriesPanel
    chunks: list[Ints]
    like: CommonEffects | None = None
    n_jobs: int = 1

    @classmethod
    def of(cls, panel: SeriesPanel, plan: Plan, n_jobs: int) -> Self:
        """Split a panel, and find what effects have in common if it takes other machines."""
        collective, like = plan.collective, None
        chunks = split_panel(panel, collective, plan.device)
        if collective.is_cluster and panel.known_ahead.shape[1]:
            like = collective.all_reduce(
                lambda: list(panel.select(chunks[0])),
                partial(_find_common_effects, plan=plan.alone),
            )
        return cls(plan, panel, chunks, like, n_jobs)

    @cached_property
    def prepared(self) -> list[PreparedPanel]:
        """The chunks, made ready: those to learn from first, since others depend on them."""
        plan, (sample, *others) = self.plan, self.chunks
        learned_from = self.panel.select(sample)
        if plan.collective.is_cluster:
            nothing = replace(PreparedPanel.of([], plan), common=self.like)
            first = PreparedPanel.of(learned_from, plan, like=nothing)
        else:
            first = PreparedPanel.of(learned_from, plan)
            first = replace(first, common=plan.collective.learn("effects", lambda: first.common))

        def prepare(chunk: Ints) -> PreparedPanel:
            return PreparedPanel.of(self.panel.select(chunk), plan, like=first)

        return [first, *parallel_map(prepare, others, self.n_jobs)]

    @property
    def n_series(self) -> int:
        """How many series the model has."""
        return sum(chunk.size for chunk in self.chunks)

    @property
    def reasons(self) -> dict[int, str]:  # type: ignore[override]
        """Why a series is forecast naively, by its position."""
        return by_position(self.chunks, [prepared.reasons for prepared in self.prepared])

    def find_effects(self, request: ForecastRequest) -> dict[int, Effects | None]:
        """Return the effects of inputs found at the origins of a request, by series."""
        found, seen = [], request.seen
        for chunk, prepared in zip(self.chunks, self.prepared, strict=True):
            own = [seen[i] for i in chunk.tolist()]
            then = prepared
            if not prepared.is_of(own):
                then = PreparedPanel.of(own, self.plan, like=prepared)
            found.append({i: ready.preparation.effects for i, ready in then.ready.items()})
        return by_position(self.chunks, found)

    def find_outliers(self, panel: Sequence[Series]) -> list[tuple[int, Ints]]:
        """Return series with outliers, and the steps at which the outliers are."""
        pairs = zip(self.chunks, self.prepared, strict=True)
        found = [
            dict(prepared.at([panel[i] for i in chunk.tolist()]).find_outliers())
            for chunk, prepared in pairs
        ]
        return list(by_position(self.chunks, found).items())

    def with_networks(self, panel: SeriesPanel, chosen: Sequence[int]) -> FittedNetworks:
        """Fit networks to chosen series; inputs that are missing there are as on average."""
        known = np.isfinite(panel.extra)
        means = np.where(known, panel.extra, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        panel = replace(panel, extra=np.where(known, panel.extra, means))
        return LocalNetworks().fit(panel.select(chosen), self.plan)

    def to_arrays(
        self, panel: SeriesPanel, *, keep_all: bool = False
    ) -> tuple[Ints, Arrays, dict[str, Any]]:
        """Keep all steps, and save nothing else: the model is nothing but its data."""
        del keep_all
        return panel.ends - panel.starts, {}, {}


def _find_common_effects(parts: list[list[Series]], plan: Plan) -> CommonEffects | None:
    return PreparedPanel.of(flatten(parts), plan).common


def split_panel(panel: SeriesPanel, collective: Collective, device: str = "cpu") -> list[Ints]:
    """Return the positions of the series that are learned from, then chunks of the others."""
    n, limit = len(panel), collective.sample_limit
    learned_from = np.ones(n, dtype=bool)
    if limit is not None or n > MOST_LEARNED_FROM:
        hashes = hash_names(panel.names)
        learned_from = hashes <= (find_limit(hashes) if limit is None else np.uint64(limit))
    others = np.flatnonzero(~learned_from)
    lengths = (panel.ends - panel.starts)[others]
    most = _LARGEST_CHUNK if device == "cpu" else _LARGEST_ON_DEVICE
    size = max(most // max(int(lengths.max(initial=1)), 1), 1)
    return [
        np.flatnonzero(learned_from),
        *(others[part] for part in even_chunks(others.size, size)),
    ]


def find_limit(hashes: Digests) -> np.uint64:
    """Return the largest hash of the series that are learned from: those of the lowest hashes."""
    return np.uint64(np.sort(hashes)[:MOST_LEARNED_FROM][-1])


def hash_names(names: Iterable[Any]) -> Digests:
    """Hash names: the same on every machine and in every run."""
    return np.array(
        [int.from_bytes(blake2b(str(i).encode(), digest_size=8).digest()) for i in names],
        dtype=np.uint64,
    )


def scatter(chunks: Sequence[Ints], tables: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return rows of all series, given the rows of the chunks."""
    return np.asarray(np.concatenate(tables)[np.argsort(np.concatenate(chunks))])


def by_position(chunks: Sequence[Ints], found: Sequence[Mapping[int, Any]]) -> dict[int, Any]:
    """Join what is known of series of the chunks."""
    pairs = zip(chunks, found, strict=True)
    joined = {int(chunk[i]): value for chunk, own in pairs for i, value in own.items()}
    return {i: joined[i] for i in sorted(joined)}
