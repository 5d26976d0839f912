"""Models that learn from the series of a chunk together, and keep nothing but the data.

A large panel is learned in chunks, so that memory stays bounded: a chunk of four million values
tells all there is to learn across series. The name of a series decides to which chunk it belongs,
so neither the order of a panel nor the machine matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from zlib import crc32

import numpy as np
import numpy.typing as npt

from rbfdiffnet.models.base import FittedModel, PanelMethod
from rbfdiffnet.models.networks.fitted import FittedNetworks
from rbfdiffnet.models.networks.local import LocalNetworks
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.stack.windows import PreparedPanel
from rbfdiffnet.series.series import Series, SeriesPanel
from rbfdiffnet.support.arrays import Arrays, Ints

_LARGEST_CHUNK = 4_000_000  # values


class MethodByChunk(PanelMethod):
    """A method whose fit only makes the chunks of a panel ready."""

    learns_from = "chunk"
    knows_longer_season = True
    cluster_group = 1_000, 10**9  # what a group learns does not depend on other groups

    def from_arrays(
        self, panel: SeriesPanel, plan: Plan, words: Mapping[str, Any], arrays: Arrays
    ) -> FittedModel:
        """Return the model of a panel, which is all that was written."""
        del words, arrays
        return self.fit(panel, plan)

    def split(
        self, names: Sequence[str], n_values: int, by_memory: Callable[[], list[Ints]]
    ) -> list[Ints]:
        """Return the chunks that are learned together."""
        del by_memory
        return split_by_name(names, n_values)


@dataclass(frozen=True)
class FittedByChunk(FittedModel):
    """The positions of the series of each chunk, and the chunks made ready."""

    needs_all_series: ClassVar[bool] = True

    plan: Plan
    chunks: list[Ints]
    prepared: list[PreparedPanel]

    @property
    def n_series(self) -> int:
        """How many series the model has."""
        return sum(chunk.size for chunk in self.chunks)

    @property
    def reasons(self) -> dict[int, str]:  # type: ignore[override]
        """Why a series is forecast naively, by its position."""
        return by_position(self.chunks, [prepared.reasons for prepared in self.prepared])

    def find_outliers(self, panel: Sequence[Series]) -> list[tuple[int, Ints]]:
        """Return series with outliers, and the steps at which the outliers are."""
        pairs = zip(self.chunks, self.prepared, strict=True)
        found = [
            dict(prepared.at([panel[i] for i in chunk.tolist()]).find_outliers())
            for chunk, prepared in pairs
        ]
        return list(by_position(self.chunks, found).items())

    def with_networks(self, panel: SeriesPanel, chosen: Sequence[int]) -> FittedNetworks:
        """Fit networks to chosen series."""
        return LocalNetworks().fit(panel.select(chosen), self.plan)

    def to_arrays(self, panel: SeriesPanel) -> tuple[Ints, Arrays, dict[str, Any]]:
        """Keep all steps, and save nothing else: the model is nothing but its data."""
        return panel.ends - panel.starts, {}, {}


def split_panel(panel: SeriesPanel) -> list[Ints]:
    """Return the positions of the series of each chunk of a panel."""
    return split_by_name(panel.names, int((panel.ends - panel.starts).sum()))


def split_by_name(names: Iterable[str], n_values: int) -> list[Ints]:
    """Return the positions of the series of each chunk, given the number of values of all series.

    The number of chunks is a power of 2, so that a growing panel seldom changes its chunks.
    """
    n_chunks = 1
    while n_values > n_chunks * _LARGEST_CHUNK:
        n_chunks *= 2
    numbers = np.array([crc32(name.encode()) % n_chunks for name in names], dtype=np.int64)
    return [np.flatnonzero(numbers == chunk) for chunk in np.unique(numbers)] or [numbers]


def scatter(chunks: Sequence[Ints], tables: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return rows of all series, given the rows of the chunks."""
    return np.asarray(np.concatenate(tables)[np.argsort(np.concatenate(chunks))])


def by_position(chunks: Sequence[Ints], found: Sequence[Mapping[int, Any]]) -> dict[int, Any]:
    """Join what is known of series of the chunks."""
    pairs = zip(chunks, found, strict=True)
    joined = {int(chunk[i]): value for chunk, own in pairs for i, value in own.items()}
    return {i: joined[i] for i in sorted(joined)}
