"""What is known of a noisy series: its trajectory, and whether filtering with it pays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rbfdiffnet.noise.filtering import MEMORY, StateFilter
from rbfdiffnet.noise.search import Trajectory, learn_trajectory
from rbfdiffnet.noise.trajectory import windows_of
from rbfdiffnet.recursion import forecast_recursive

__all__ = ["NoiseModel", "learn_noise", "series_of"]

Array = npt.NDArray[np.float64]

_CHECKED = 200  # last steps on which the filter is compared with the blurred map


@dataclass(frozen=True)
class NoiseModel:
    """A learned trajectory, ready for noisy windows and histories.

    Attributes
    ----------
    trajectory : Trajectory
    tracker : StateFilter or None
        None where the trajectory is off, or where the blurred map did better on the last part of
        the series.
    """

    trajectory: Trajectory
    tracker: StateFilter | None

    @property
    def signal_to_noise(self) -> float:
        """Variance of the clean series over that of the noise."""
        noise = self.trajectory.noise**2
        return float(np.var(self.trajectory.latent) / noise) if noise > 0.0 else np.inf

    def predict(self, X: Array) -> Array:
        """Predict the value after each of some noisy windows; see `StateFilter.predict`."""
        if self.tracker is None:
            return self.trajectory.blurred.predict(X)[:, 0]
        return self.tracker.predict(X)

    def forecast(self, history: Array, h: int, quantiles: Array) -> Array:
        """Forecast the clean series after a noisy history, shape (h, q)."""
        if self.tracker is not None:
            return self.tracker.forecast(history, h, quantiles)
        network = self.trajectory.blurred
        path = forecast_recursive(
            lambda X: network.predict(X)[:, 0], history, h, n_lags=network.n_lags
        )
        return np.repeat(path[:, None], len(quantiles), axis=1)


def learn_noise(s: Array, n_lags: int, noise: float | None = None) -> NoiseModel:
    """Learn the trajectory of a series, and check the filter on its last part.

    Parameters
    ----------
    s, n_lags, noise
        As for `learn_trajectory`.

    Returns
    -------
    NoiseModel

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.datasets import logistic_map
    >>> from rbfdiffnet.noise.model import learn_noise
    >>> noisy = logistic_map(400) + 0.03 * np.random.default_rng(0).normal(size=400)
    >>> model = learn_noise(noisy, n_lags=2)
    >>> model.tracker is not None, round(model.trajectory.noise, 2)
    (True, 0.03)
    """
    found = learn_trajectory(s, n_lags, noise)
    if not found.on:
        return NoiseModel(found, None)
    latent = found.latent
    tracker = StateFilter(
        found.network, found.noise, found.process, float(latent.min()), float(latent.max())
    )
    steps = min(_CHECKED, (s.size - n_lags) // 2)
    clouds = tracker.track(s[-steps - n_lags - MEMORY - 1 : -1], steps)
    tracked = np.array([tracker.step(cloud).mean() for cloud in clouds])
    blurred = found.blurred.predict(windows_of(s, n_lags)[:-1][-steps:])[:, 0]
    actual = s[-steps:]
    usable = np.isfinite(actual) & np.isfinite(blurred)
    errors = [float(((actual - f)[usable] ** 2).sum()) for f in (tracked, blurred)]
    return NoiseModel(found, tracker if errors[0] <= errors[1] else None)


def series_of(X: Array, y: Array) -> Array | None:
    """Return the series that consecutive windows and the values after them were cut from.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.noise.model import series_of
    >>> from rbfdiffnet.windows import lag_windows
    >>> series_of(*lag_windows(np.arange(6.0), 3))
    array([0., 1., 2., 3., 4., 5.])
    >>> series_of(np.eye(3), np.ones(3)) is None
    True
    """
    whole = np.concatenate([X, y[:, None]], axis=1)
    if not np.array_equal(whole[1:, :-1], whole[:-1, 1:]):
        return None
    return np.concatenate([X[0], y])
