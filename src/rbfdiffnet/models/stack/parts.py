"""Large panels in parts, each with a stack of its own, so that memory stays bounded.

A part of four million values tells all there is to learn across series. The name of a series
decides to which part it belongs, so neither the order of a panel nor the machine matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from rbfdiffnet.models.panel_model import Forecasts
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.request import Horizon
from rbfdiffnet.models.stack.model import Mixture, StackModel
from rbfdiffnet.series.prepare import Preparation
from rbfdiffnet.series.series import Series
from rbfdiffnet.support.progress import progress_between

__all__ = ["PartedStack", "part_numbers", "stack_of"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MOST_VALUES = 4_000_000  # of a part


def stack_of(panel: Sequence[Series], plan: Plan, names: Sequence[Any]) -> StackModel | PartedStack:
    """Return the stack of a panel, or one for each of its parts where it is large.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models.plan import Plan
    >>> from rbfdiffnet.series.series import Series
    >>> from rbfdiffnet.models.stack.parts import stack_of
    >>> from rbfdiffnet.network.train import Settings
    >>> y = np.random.default_rng(0).normal(size=60)
    >>> panel = [Series(y, np.zeros((60, 0)), np.zeros((60, 0)))]
    >>> type(stack_of(panel, Plan(lambda n: Settings(n_centers=5)), ["a"])).__name__
    'StackModel'
    """
    numbers = part_numbers(names, sum(series.y.size for series in panel))
    return (
        PartedStack.of(panel, plan, numbers)
        if len(np.unique(numbers)) > 1
        else StackModel.of(panel, plan)
    )


def part_numbers(names: Iterable[Any], n_values: int) -> Ints:
    """Return the part to which each series belongs.

    The number of parts is a power of 2, so that a growing panel seldom changes its parts.

    Parameters
    ----------
    names : iterable
        Names of the series.
    n_values : int
        Of all series.

    Returns
    -------
    ndarray of int of shape (n,)

    Examples
    --------
    >>> from rbfdiffnet.models.stack.parts import part_numbers
    >>> part_numbers(["a", "b", "c"], 1_000).tolist()
    [0, 0, 0]
    >>> part_numbers(["a", "b", "c"], 5_000_000).tolist()
    [1, 1, 1]
    """
    n_parts = 1
    while n_values > n_parts * _MOST_VALUES:
        n_parts *= 2
    return np.array([crc32(str(name).encode()) % n_parts for name in names], dtype=np.int64)


@dataclass(frozen=True)
class PartedStack:
    """A stack for each part of a panel; as one, it does what `StackModel` does.

    Attributes
    ----------
    parts : list of ndarray of int
        Positions of the series of each part.
    stacks : list of StackModel
    """

    parts: list[Ints]
    stacks: list[StackModel]

    @classmethod
    def of(cls, panel: Sequence[Series], plan: Plan, numbers: Ints) -> PartedStack:
        """Prepare the series of a panel, given the parts to which they belong.

        Examples
        --------
        >>> import numpy as np
        >>> from rbfdiffnet.models.request import Horizon
        >>> from rbfdiffnet.models.plan import Plan
        >>> from rbfdiffnet.series.series import Series
        >>> from rbfdiffnet.models.stack.parts import PartedStack
        >>> from rbfdiffnet.network.train import Settings
        >>> y = np.random.default_rng(0).normal(size=(8, 60)).cumsum(axis=1)
        >>> panel = [Series(row, np.zeros((60, 0)), np.zeros((60, 0))) for row in y]
        >>> numbers = np.arange(8) % 2
        >>> model = PartedStack.of(panel, Plan(lambda n: Settings(n_centers=5)), numbers)
        >>> model.mixture(Horizon.after(panel, 8)).values.shape
        (8, 8)
        """
        parts = [np.flatnonzero(numbers == part) for part in np.unique(numbers)]
        return cls(
            parts, [StackModel.of([panel[i] for i in part.tolist()], plan) for part in parts]
        )

    @property
    def plan(self) -> Plan:
        """What all stacks have in common."""
        return self.stacks[0].plan

    @property
    def reasons(self) -> dict[int, str]:
        """Why a series has no members, by its position."""
        found = {
            int(part[i]): reason
            for part, stack in zip(self.parts, self.stacks, strict=True)
            for i, reason in stack.reasons.items()
        }
        return dict(sorted(found.items()))

    @property
    def preparations(self) -> list[Preparation | None]:
        """Of all series."""
        found = [own for stack in self.stacks for own in stack.preparations]
        return [found[i] for i in self._order]

    @property
    def models(self) -> tuple[None, ...]:
        """Networks of single series, of which none is kept."""
        return (None,) * sum(part.size for part in self.parts)

    @property
    def latest(self) -> Mixture | None:
        """The mixture computed last."""
        found = [stack.latest for stack in self.stacks]
        known = [mixture for mixture in found if mixture is not None]
        return self._joined(known) if len(known) == len(found) else None

    def outliers(self, panel: Sequence[Series]) -> list[tuple[int, Ints]]:
        """Series with outliers, and the steps at which these are."""
        return sorted(
            (
                (int(part[i]), odd)
                for part, stack in zip(self.parts, self.stacks, strict=True)
                for i, odd in stack.outliers([panel[j] for j in part.tolist()])
            ),
            key=lambda found: found[0],
        )

    def forecast(self, horizon: Horizon, n_jobs: int = 1) -> Forecasts:
        """Forecast what is to be forecast of every series."""
        found = self._each(StackModel.forecast, horizon, n_jobs)
        values = self._scattered([part.values for part in found])
        far = {
            int(part[i]): said
            for part, own in zip(self.parts, found, strict=True)
            for i, said in own.runaway.items()
        }
        return Forecasts(values, np.full_like(values, np.nan), [[] for _ in values], [], far)

    def intervals(
        self, horizon: Horizon, levels: Sequence[float], n_jobs: int = 1
    ) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
        """Prediction intervals; see `rbfdiffnet.models.panel_model.PanelModel.intervals`."""
        found = self._each(StackModel.intervals, horizon, levels, n_jobs)
        low, high, sure = (self._scattered(list(each)) for each in zip(*found, strict=True))
        return low, high, sure.astype(bool)

    def mixture(self, horizon: Horizon, n_jobs: int = 1) -> Mixture:
        """Mix the members' forecasts of every part."""
        return self._joined(self._each(StackModel.mixture, horizon, n_jobs))

    @property
    def _order(self) -> Ints:
        """Where each series is among those of the parts, one after the other."""
        return np.argsort(np.concatenate(self.parts))

    def _each(self, method: Callable[..., Any], horizon: Horizon, *rest: Any) -> list[Any]:
        """Call a method of every stack."""
        found, done, total = [], 0, sum(part.size for part in self.parts)
        for part, stack in zip(self.parts, self.stacks, strict=True):
            with progress_between(done / total, (done + part.size) / total):
                found.append(method(stack, horizon.select(part.tolist()), *rest))
            done += part.size
        return found

    def _joined(self, mixtures: Sequence[Mixture]) -> Mixture:
        names = dict.fromkeys(name for mixture in mixtures for name in mixture.members)
        longest = max(mixture.errors.shape[1] for mixture in mixtures)
        errors = [
            np.pad(
                m.errors, ((0, 0), (0, longest - m.errors.shape[1]), (0, 0)), constant_values=np.nan
            )
            for m in mixtures
        ]
        nothing = [np.full_like(mixture.values, np.nan) for mixture in mixtures]
        none = [np.zeros(len(mixture.values)) for mixture in mixtures]
        return Mixture(
            self._scattered([mixture.values for mixture in mixtures]),
            self._scattered(errors),
            {
                name: self._scattered(
                    [m.weights.get(name, zero) for m, zero in zip(mixtures, none, strict=True)]
                )
                for name in names
            },
            {
                name: self._scattered(
                    [m.members.get(name, nan) for m, nan in zip(mixtures, nothing, strict=True)]
                )
                for name in names
            },
        )

    def _scattered(self, tables: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Rows of all series, given those of the parts."""
        return np.asarray(np.concatenate(tables)[self._order])
