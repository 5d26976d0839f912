"""Forecast one series of numbers by the median of networks that differ in their preprocessing.

Whether logarithms or differences help is hard to tell from one short series: the preprocessing that
did best on held-out values often does worse afterwards than the median over all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rbfdiffnet.recursion import forecast_recursive
from rbfdiffnet.transforms import Compose, Difference, Log, Transform
from rbfdiffnet.windows import lag_windows

__all__ = ["Forecast", "Settings", "forecast_series", "seasonal_naive"]

Array = npt.NDArray[np.float64]

# Fewer values than this say too little to fit a network to.
_FEWEST_VALUES = 12
# Fewer windows than this are not worth a fit.
_FEWEST_ROWS = 6
# How far a network may leave the range of the series, in spans of that range.
_REACH = 3.0


class OneStepModel(Protocol):
    """A regressor that maps lag windows to the values after them."""

    def fit(self, X: Array, y: Array, /) -> Any:
        """Learn from windows and the values after them."""

    def predict(self, X: Array, /) -> Any:
        """Return the values after windows."""


@dataclass(frozen=True)
class Settings:
    """How to forecast a series.

    Parameters
    ----------
    make_model : callable
        Returns a new, unfitted regressor.
    season_length : int, default=1
        Number of steps in a season, 1 for none.
    n_lags : int, optional
        Number of lags; by default a season and a quarter, as far as the series is long enough.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from rbfdiffnet.cli.single import Settings
    >>> settings = Settings(LinearRegression, season_length=12)
    >>> settings.lags_for(200), settings.lags_for(30)
    (15, 10)
    """

    make_model: Callable[[], OneStepModel]
    season_length: int = 1
    n_lags: int | None = None

    def lags_for(self, n: int) -> int:
        """Return the number of lags for ``n`` values."""
        if self.n_lags is not None:
            return self.n_lags
        season = self.season_length
        return max(1, min(max(4, season + season // 4), n // 3))

    @property
    def fewest_values(self) -> int:
        """Return the length from which on the network is used."""
        return max(_FEWEST_VALUES, (self.n_lags or 1) + _FEWEST_ROWS)


@dataclass(frozen=True)
class Forecast:
    """A forecast and how it came about.

    Parameters
    ----------
    values : ndarray of shape (h,)
        The forecast.
    method : str
        Name of the method.
    note : str
        What it was made from, or why it is not the network's, for a person.
    is_fallback : bool
        Whether the network could not be used.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.cli.single import Forecast
    >>> Forecast(np.ones(2), "naive", "the series is constant", is_fallback=True).method
    'naive'
    """

    values: Array
    method: str
    note: str
    is_fallback: bool


def seasonal_naive(series: npt.ArrayLike, h: int, season_length: int = 1) -> Array:
    r"""Repeat the last season.

    .. math:: \hat s_{T+k} = s_{T - m + 1 + ((k - 1) \bmod m)}

    where :math:`m` is the season's length, or 1 if the series is shorter than a season.

    Examples
    --------
    >>> from rbfdiffnet.cli.single import seasonal_naive
    >>> seasonal_naive([1, 2, 3, 4], 3, season_length=2).tolist()
    [3.0, 4.0, 3.0]
    """
    values = np.asarray(series, dtype=np.float64)
    season = season_length if season_length <= len(values) else 1
    return np.resize(values[-season:], h)


def forecast_series(series: Array, h: int, settings: Settings) -> Forecast:
    """Forecast ``h`` steps of a series, by seasonal naive if the network cannot be used.

    One network each learns the values and, if all are positive, their logarithms: as they are,
    after a first difference, and after a seasonal one. The forecast is the median at every step.
    No network may leave the range of the series by more than three times its span.

    Parameters
    ----------
    series : ndarray of shape (T,)
        Finite values.
    h : int
        Number of steps, at least 1.
    settings : Settings
        The regressor, the season and the lags.

    Returns
    -------
    Forecast
        The forecast, and how it came about.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from rbfdiffnet.cli.single import Settings, forecast_series
    >>> wave = np.sin(np.arange(61) * np.pi / 6)
    >>> forecast = forecast_series(wave, 3, Settings(lambda: Ridge(1e-9), n_lags=2))
    >>> forecast.values.round(3).tolist(), forecast.is_fallback
    ([0.5, 0.866, 1.0], False)
    """
    n = len(series)
    if np.ptp(series) == 0.0:
        return _fall_back(series, h, settings, "the series is constant")
    if n < settings.fewest_values:
        note = f"{n} values are too few, at least {settings.fewest_values} are needed"
        lags = "" if settings.n_lags is None else f" for {settings.n_lags} lags"
        return _fall_back(series, h, settings, note + lags)
    members = [step for step in _preprocessings(series, settings) if _fits(n, step, settings)]
    paths = [_forecast_after(step, series, h, settings) for step in members]
    return Forecast(
        np.median(paths, axis=0), "RBF-DiffNet", _describe(members, n, settings), is_fallback=False
    )


def _forecast_after(transform: Compose, series: Array, h: int, settings: Settings) -> Array:
    """Forecast with one network that learns the series after a transform."""
    z = transform.apply(series)
    if np.ptp(z) == 0.0:
        return transform.invert(np.full(h, z[-1]), series)
    n_lags = settings.lags_for(len(z))
    model = settings.make_model()
    model.fit(*lag_windows(z, n_lags))
    path = transform.invert(forecast_recursive(model.predict, z, h, n_lags=n_lags), series)
    # Sums and exponentials can still take a bounded forecast far away.
    low, high = series.min(), series.max()
    return np.clip(path, low - _REACH * (high - low), high + _REACH * (high - low))


def _preprocessings(series: Array, settings: Settings) -> list[Compose]:
    """List what the networks see: values and logarithms, plain and differenced."""
    lags = (1,) if settings.season_length == 1 else (1, settings.season_length)
    differences: list[tuple[Transform, ...]] = [(), *((Difference(lag),) for lag in lags)]
    logs: list[tuple[Transform, ...]] = [(), (Log(),)] if series.min() > 0.0 else [()]
    return [Compose(log + difference) for log in logs for difference in differences]


def _fits(n: int, transform: Transform, settings: Settings) -> bool:
    """Tell whether ``n`` values leave enough windows after a step."""
    left = n - transform.lost
    return left - settings.lags_for(max(left, 1)) >= _FEWEST_ROWS


def _fall_back(series: Array, h: int, settings: Settings, note: str) -> Forecast:
    season = settings.season_length
    method = "seasonal naive" if 1 < season <= len(series) else "the last value"
    return Forecast(seasonal_naive(series, h, season), method, note, is_fallback=True)


def _describe(members: list[Compose], n: int, settings: Settings) -> str:
    lags = sorted({settings.lags_for(n - member.lost) for member in members})
    lags_used = str(lags[0]) if len(lags) == 1 else f"{lags[0]} to {lags[-1]}"
    steps = {step for member in members for step in member.steps}
    scales = "values and logarithms" if Log() in steps else "values"
    at = " and ".join(str(lag) for lag in sorted(s.lag for s in steps if isinstance(s, Difference)))
    forms = f"plain and differenced at lag {at}" if at else "plain"
    return f"median of {len(members)} networks, {lags_used} lags, {scales}, {forms}"
