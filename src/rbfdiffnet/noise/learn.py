"""Learn the clean trajectory of a series and the map it follows, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rbfdiffnet.network.network import Network
from rbfdiffnet.noise.filtering import StateFilter
from rbfdiffnet.noise.maps import Shape
from rbfdiffnet.noise.search import Search
from rbfdiffnet.noise.spikes import find_spikes
from rbfdiffnet.noise.trajectory import Observed, smooth, windows_of

__all__ = ["Trajectory", "learn_trajectory"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_FEWEST = 100  # observations
_SMALLEST, _LARGEST = 1e-140, 1e140  # whose squares are neither 0 nor infinite
_TRACKED = 300  # last values on which the filter is tuned
_LONGEST = 4_000  # values from which map and variances are learned


@dataclass(frozen=True)
class Trajectory:
    """What was learned from a series.

    Attributes
    ----------
    network : Network
        If on, the map of clean windows, else that of the windows as they are observed.
    blurred : Network
        The map of the windows as they are observed.
    latent : ndarray of shape (T,)
        The clean series; where off, the observations, gaps filled by the map where it is good,
        else linearly.
    noise, process : float
        Standard deviations of the noise and of the map's own errors, in units of the series.
    blurred_error : float
        Standard deviation of the residuals of the blurred map.
    width : float
        Width of the network's basis, in units of the spread of the windows.
    penalty : float
        Strength of the penalty on its smooth weights, for the mean squared residual.
    on : bool
    reason : str
        Why it is off; empty where on.
    """

    network: Network
    blurred: Network
    latent: Array
    noise: float
    process: float
    blurred_error: float
    width: float
    penalty: float
    on: bool
    reason: str

    @property
    def signal_to_noise(self) -> float:
        """Variance of the clean series over that of the noise."""
        return float(np.var(self.latent)) / self.noise**2 if self.on else np.inf

    def tracker(self, s: Array, like: StateFilter | None = None) -> StateFilter:
        """Return the filter that finds clean states in noisy histories such as the end of s.

        Its slack is tuned to that, or in proportion to that of another filter.
        """
        net, latent = self.network, self.latent
        if like is not None:
            slack = like.slack / like.process * self.process
            low, high = float(latent.min()), float(latent.max())
            return StateFilter(net, self.noise, self.process, slack, low, high)
        recent = s[-_TRACKED - net.n_lags :]
        return StateFilter.tuned(net, self.noise, self.process, latent, recent)


def learn_trajectory(
    s: Array, n_lags: int, noise: float | None = None, shape: Shape | None = None
) -> Trajectory:
    """Learn the clean trajectory of a series and the map it follows.

    Parameters
    ----------
    s : ndarray of shape (T,)
        NaN where missing.
    n_lags : int
    noise : float, optional
        Standard deviation of the noise, where it is known; then the trajectory is learned in any
        case. By default it is estimated.
    shape : tuple of float, optional
        Decay and width of the map, where a part of the series has shown them: only its weights,
        the trajectory and the variances are learned then, in any case.

    Returns
    -------
    Trajectory

    Raises
    ------
    ValueError
        If the series has too few observations, or most of them are the same.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.datasets import henon_map
    >>> from rbfdiffnet.noise import learn_trajectory
    >>> clean = henon_map(400)
    >>> noisy = clean + 0.1 * np.random.default_rng(0).normal(size=400)
    >>> found = learn_trajectory(noisy, n_lags=2)
    >>> found.on, round(found.noise, 1)
    (True, 0.1)
    >>> bool(np.std(found.latent - clean) < 0.05)
    True
    """
    known = np.isfinite(s)
    _check(s, known, n_lags)
    known &= ~find_spikes(s, n_lags)
    s = np.where(known, s, np.nan)
    ends = np.flatnonzero(known)[[0, -1]]
    if ends[0] > 0 or ends[1] < s.size - 1:
        inner = slice(ends[0], ends[1] + 1)
        return _extended(learn_trajectory(s[inner], n_lags, noise, shape), int(ends[0]), s.size)
    shift, scale = float(s[known].mean()), float(s[known].std())
    steps = np.arange(s.size)
    filled = (np.interp(steps, steps[known], s[known]) - shift) / scale
    recent = slice(max(s.size - _LONGEST, 0), None)
    level = noise / scale if noise else None
    search = Search.of(filled[recent], known[recent], n_lags, level, shape)
    state, reason = search.run() if shape is None else (search.again(shape), "")
    off = search.off
    blurred = off.basis.network(off.regression.w, shift, scale)
    blurred_error = scale * float(np.sqrt(off.regression.variance))
    if state is None:
        if s.size <= _LONGEST and not known.all():
            filled = search.bridged()
        return Trajectory(
            blurred,
            blurred,
            filled * scale + shift,
            noise=0.0,
            process=blurred_error,
            blurred_error=blurred_error,
            width=off.basis.width,
            penalty=off.regression.variance / (off.regression.prior * s.size),
            on=False,
            reason=reason,
        )
    if s.size > _LONGEST:
        start = np.concatenate([filled[: -state.z.size], state.z])
        everything = Observed(filled, known.astype(np.float64), state.noise)
        state = smooth(everything, replace(state, z=start))
    return Trajectory(
        state.basis.network(state.w, shift, scale),
        blurred,
        state.z * scale + shift,
        noise=scale * float(np.sqrt(state.noise)),
        process=scale * float(np.sqrt(state.process)),
        blurred_error=blurred_error,
        width=state.basis.width,
        penalty=state.process / (state.prior * s.size),
        on=True,
        reason="",
    )


def _check(s: Array, known: Mask, n_lags: int) -> None:
    """Raise an error if there is too little to learn from."""
    fewest = max(_FEWEST, 6 * (n_lags + 1))
    if known.sum() < fewest:
        raise ValueError(
            f"{known.sum()} observations are too few to learn a trajectory with {n_lags} lags; "
            f"{fewest} are needed."
        )
    if windows_of(known, n_lags + 1).all(axis=1).sum() < 2 * (n_lags + 1):
        raise ValueError(
            f"There are gaps almost everywhere: fewer than {2 * (n_lags + 1)} times are "
            f"{n_lags + 1} observations in a row known."
        )
    values = s[known]
    if np.mean(values == np.median(values)) > 0.5:
        raise ValueError("Most observations are the same; there is no trajectory to learn.")
    if not _SMALLEST < np.ptp(values) <= np.abs(values).max() * 2.0 < _LARGEST:
        raise ValueError(
            f"Squares of these observations are out of range; bring them between {_SMALLEST:g} "
            f"and {_LARGEST:g}."
        )


def _extended(found: Trajectory, before: int, size: int) -> Trajectory:
    """Return a trajectory with values beyond its ends: the first one, and what the map says."""
    latent = np.concatenate([np.full(before, found.latent[0]), found.latent])
    n_lags = found.network.n_lags
    low, high = found.latent.min(), found.latent.max()
    while latent.size < size:
        step = found.network.predict(latent[None, -n_lags:])[0]
        latent = np.append(latent, np.clip(step, low, high))
    return replace(found, latent=latent)
