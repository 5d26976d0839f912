"""What is to be forecast: the steps after an origin of each series of a panel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rbfdiffnet.series.series import Series

__all__ = ["Horizon"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Horizon:
    """Steps of a panel that are to be forecast.

    Attributes
    ----------
    panel : sequence of Series
        They may go on after their origins; models do not look there.
    origins : ndarray of int of shape (n,)
        How many values of each series are seen.
    h : int
        How many steps to forecast.
    ahead : sequence of ndarray of shape (h, q)
        Inputs known in advance, at these steps.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models.request import Horizon
    >>> from rbfdiffnet.series.series import Series
    >>> panel = [Series(np.arange(n), np.zeros((n, 0)), np.zeros((n, 0))) for n in (5, 8)]
    >>> horizon = Horizon.after(panel, 3)
    >>> [series.y.size for series in horizon.seen], horizon.select([1]).origins.tolist()
    ([5, 8], [8])
    """

    panel: Sequence[Series]
    origins: Ints
    h: int
    ahead: Sequence[Array]

    @classmethod
    def after(cls, panel: Sequence[Series], h: int) -> Horizon:
        """Return the steps after the ends of series without inputs known in advance."""
        ends = np.array([series.y.size for series in panel], dtype=np.int64)
        return cls(panel, ends, h, [np.empty((h, 0))] * len(panel))

    @property
    def seen(self) -> list[Series]:
        """The series up to their origins."""
        pairs = zip(self.panel, self.origins.tolist(), strict=True)
        return [series.until(origin) for series, origin in pairs]

    def select(self, chosen: Sequence[int]) -> Horizon:
        """Return the steps of some series."""
        panel, ahead = [self.panel[i] for i in chosen], [self.ahead[i] for i in chosen]
        return Horizon(panel, self.origins[list(chosen)], self.h, ahead)
