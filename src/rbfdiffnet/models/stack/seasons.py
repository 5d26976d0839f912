r"""Take the season out of many series, and put it back.

.. math:: y_t = \ell_t \, e^{s_{t \bmod m}} \quad \text{or} \quad y_t = \ell_t + s_{t \bmod m}

for positive and for other series. The indices s are the mean distances of a phase from the
centered moving average over a season, shrunk toward none by how little of their spread is more
than chance (James and Stein's rule): short and noisy series have hardly any season.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rbfdiffnet.models.stack.histories import Histories

__all__ = ["Seasons"]

Array = npt.NDArray[np.float64]

_FEWEST_SEASONS = 3  # that a phase must have been seen


@dataclass(frozen=True)
class Seasons:
    """Seasonal indices of a panel.

    Attributes
    ----------
    indices : ndarray of shape (n, m)
        By the column of the histories, modulo m.
    positive : ndarray of bool of shape (n,)
        Which series are divided by them, on the scale of logarithms.
    n_columns : int
        Number of columns of the histories.
    """

    indices: Array
    positive: npt.NDArray[np.bool_]
    n_columns: int

    @classmethod
    def of(cls, histories: Histories) -> Seasons:
        """Find the seasons of series.

        Examples
        --------
        >>> import numpy as np
        >>> from rbfdiffnet.models.stack.histories import Histories
        >>> from rbfdiffnet.models.stack.seasons import Seasons
        >>> y = np.tile([1.0, 2.0, 3.0, 6.0], 8)
        >>> histories = Histories.of([y], season=4)
        >>> seasons = Seasons.of(histories)
        >>> bool(np.ptp(seasons.removed(histories).values) < 1e-9)
        True
        >>> seasons.restored(np.full((1, 4), 36.0**0.25)).round(6)
        array([[1., 2., 3., 6.]])
        """
        m, (n, T) = histories.season, histories.values.shape
        positive = histories.positive
        indices = np.zeros((n, m))
        if m == 1 or _FEWEST_SEASONS * m > T:
            return cls(indices, positive, T)
        u = _on_scale(histories.values, positive)
        kernel = np.full(m + 1 - m % 2, 1.0 / m)
        if m % 2 == 0:
            kernel[[0, -1]] /= 2.0
        half = kernel.size // 2
        away = np.full((n, T), np.nan)
        around = np.lib.stride_tricks.sliding_window_view(u, kernel.size, axis=1) @ kernel
        away[:, half : T - half] = u[:, half : T - half] - around
        pad = -T % m
        table = np.pad(away, ((0, 0), (0, pad)), constant_values=np.nan).reshape(n, -1, m)
        seen = np.isfinite(table)
        counts = seen.sum(axis=1)
        means = np.where(seen, table, 0.0).sum(axis=1) / np.maximum(counts, 1)
        squares = (np.where(seen, table - means[:, None], 0.0) ** 2).sum(axis=(1, 2))
        free = np.maximum((counts - 1).sum(axis=1), 1)
        chance = squares / free / np.maximum(counts.mean(axis=1), 1.0)
        means -= means.mean(axis=1, keepdims=True)
        spread = (means**2).mean(axis=1)
        rule = max(m - 3, 1) / m
        share = 1.0 - rule * chance / np.where(spread > 0.0, spread, np.inf)
        enough = counts.min(axis=1) >= _FEWEST_SEASONS - 1  # the average has no ends
        indices = means * np.where(enough, np.clip(share, 0.0, 1.0), 0.0)[:, None]
        return cls(indices, positive, T)

    def removed(self, histories: Histories) -> Histories:
        """Return the series without their seasons."""
        return histories.with_values(self._moved(histories.values, 0, -1.0))

    def restored(self, forecasts: Array) -> Array:
        """Return forecasts (n, h) of such series with the seasons to come."""
        return self._moved(forecasts, self.n_columns, 1.0)

    def _moved(self, values: Array, first: int, sign: float) -> Array:
        columns = (first + np.arange(values.shape[1])) % self.indices.shape[1]
        s = sign * self.indices[:, columns]
        positive = self.positive[:, None]
        return np.where(positive, values * np.exp(np.where(positive, s, 0.0)), values + s)


def _on_scale(values: Array, positive: npt.NDArray[np.bool_]) -> Array:
    """Logarithms of series that are positive, others as they are."""
    u = values.copy()
    u[positive] = np.log(u[positive])
    return u
