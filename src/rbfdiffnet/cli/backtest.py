"""Score the network and seasonal naive on the same windows at the end of a series.

Every window is forecast from the values before it and from nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rbfdiffnet.cli.single import Settings, forecast_series, seasonal_naive
from rbfdiffnet.cli.text import format_number

__all__ = ["Backtest", "backtest"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Backtest:
    """Mean absolute errors of the network and of seasonal naive on the same windows.

    Parameters
    ----------
    origins : tuple of int
        Position of the first value of each window.
    model, naive : ndarray of shape (n_windows,)
        Mean absolute error in each window.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.cli.backtest import Backtest
    >>> Backtest((10, 12), np.array([1.0, 3.0]), np.array([4.0, 4.0])).verdict("naive")
    'RBF-DiffNet won: its mean absolute error, 2.000, is 50 % below that of naive, 4.000.'
    """

    origins: tuple[int, ...]
    model: Array
    naive: Array

    def verdict(self, rival: str) -> str:
        """Say in one sentence who won, and by how much."""
        ours, theirs = float(self.model.mean()), float(self.naive.mean())
        if ours == theirs:
            error = format_number(ours)
            return f"A tie: RBF-DiffNet and {rival} both have a mean absolute error of {error}."
        result, side = ("won", "below") if ours < theirs else ("lost", "above")
        gap = f"{100.0 * abs(ours / theirs - 1.0):.3g} % " if theirs > 0.0 else ""
        return (
            f"RBF-DiffNet {result}: its mean absolute error, {format_number(ours)}, is "
            f"{gap}{side} that of {rival}, {format_number(theirs)}."
        )


def backtest(series: Array, h: int, settings: Settings, n_windows: int = 3) -> Backtest | None:
    """Forecast up to ``n_windows`` windows of ``h`` at the end of a series from what precedes them.

    Returns None if the series is too short for a single window.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from rbfdiffnet.cli.backtest import backtest
    >>> from rbfdiffnet.cli.single import Settings
    >>> wave = np.sin(np.arange(60) * np.pi / 6)
    >>> result = backtest(wave, 6, Settings(lambda: Ridge(1e-9), n_lags=2))
    >>> result.origins, result.model.round(3).tolist(), result.naive.round(1).tolist()
    ((42, 48, 54), [0.0, 0.0, 0.0], [1.1, 1.1, 1.1])
    """
    n = len(series)
    shortest = max(settings.fewest_values, settings.season_length)
    origins = tuple(n - k * h for k in range(n_windows, 0, -1) if n - k * h >= shortest)
    if not origins:
        return None
    errors = []
    for origin in origins:
        past, truth = series[:origin], series[origin : origin + h]
        model = forecast_series(past, h, settings).values
        naive = seasonal_naive(past, h, settings.season_length)
        errors.append((np.abs(model - truth).mean(), np.abs(naive - truth).mean()))
    ours, theirs = np.array(errors).T
    return Backtest(origins, ours, theirs)
