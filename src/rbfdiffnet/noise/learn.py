"""Learn the clean trajectory of a series and the map it follows, or say why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rbfdiffnet.network.network import Network
from rbfdiffnet.noise.cleaning import in_long_gaps, quarter_period
from rbfdiffnet.noise.filtering import StateFilter
from rbfdiffnet.noise.maps import MapShape, are_known, fill_by_map
from rbfdiffnet.noise.search import MapSearch
from rbfdiffnet.noise.spikes import SpikeFinder, learn_spikes
from rbfdiffnet.noise.trajectory import Estimate, Observations, smooth_latent
from rbfdiffnet.series.gaps import fill_missing
from rbfdiffnet.support.arrays import Array, Mask

_FEWEST = 100  # observations
SMALLEST, _LARGEST = 1e-140, 1e140  # whose squares are neither 0 nor infinite
_TRACKED = 300  # last values on which the filter is tuned
_SMOOTHED = 300  # latest values of a series that are cleaned
_LONGEST = 4_000  # values from which map and variances are learned


@dataclass(frozen=True)
class Trajectory:
    """What was learned from a series.

    Where it is ``on``, ``network`` is the map of clean windows and ``latent`` (T,) the clean
    series. Where it is off, ``reason`` says why, the network is the ``blurred`` map of the observed
    windows, and ``latent`` are the observations with filled gaps. ``noise``, ``process`` and
    ``blurred_error`` are the standard deviations of the noise, of the map's own errors and of the
    blurred map's residuals, in units of the series; ``width`` is that of the basis, in units of the
    windows' spread; ``penalty`` is that on the smooth weights, for the mean squared residual.
    ``left_out`` is how far observations are from what the others alone say of them (root mean
    square). ``estimate`` is of the series less ``shift``, divided by ``scale``, ``spikes`` finds
    those of other series, and ``quarter`` is that of a period.
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
    left_out: float = np.inf
    estimate: Estimate | None = None
    shift: float = 0.0
    scale: float = 1.0
    spikes: SpikeFinder | None = None
    quarter: int = 1

    def clean(self, s: Array) -> Array:
        """Return a series (T,), NaN where missing, without gaps, its latest values without noise.

        The map and the variances stay as they were learned. Values that are long ago stay, too.
        """
        return self.clean_each([s])[0]

    def clean_each(self, parts: Sequence[Array]) -> list[Array]:
        """Clean several series, each by itself, in one go."""
        if self.estimate is None:
            raise ValueError("No trajectory was learned.")
        n_lags, shortest = self.network.n_lags, min(s.size for s in parts)
        if shortest <= n_lags:
            raise ValueError(f"{shortest} values are too few to clean; give more history.")
        filled = [fill_missing(s) for s in parts]
        latest = [s[-_SMOOTHED:] for s in filled]
        z = (np.concatenate(latest) - self.shift) / self.scale
        known = np.isfinite(np.concatenate([s[-_SMOOTHED:] for s in parts])).astype(np.float64)
        of = np.repeat(np.arange(len(parts)), [s.size for s in latest])
        joined = (of[n_lags:] == of[:-n_lags]).astype(np.float64)
        long = [in_long_gaps(np.isfinite(s), self.quarter)[-_SMOOTHED:] for s in parts]
        joined *= are_known(~np.concatenate(long), n_lags + 1)
        observed = Observations(z, known, self.estimate.noise, joined=joined)
        smooth = smooth_latent(observed, replace(self.estimate, z=z)).z * self.scale + self.shift
        ends = np.cumsum([s.size for s in latest])[:-1]
        return [
            np.concatenate([s[:-_SMOOTHED], clean])
            for s, clean in zip(filled, np.split(smooth, ends), strict=True)
        ]

    @property
    def signal_to_noise(self) -> float:
        """Variance of the clean series over that of the noise."""
        return float(np.var(self.latent)) / self.noise**2 if self.on else np.inf

    def tracker(self, s: Array, template: StateFilter | None = None) -> StateFilter:
        """Return the filter that finds clean states in noisy histories such as the end of s.

        Its slack is tuned to these values, or taken in proportion from another filter.
        """
        low, high = float(self.latent.min()), float(self.latent.max())
        tracker = StateFilter(self.network, self.noise, self.process, self.process, low, high)
        if template is not None:
            return replace(tracker, slack=template.slack / template.process * self.process)
        return tracker.tune(s[-_TRACKED - self.network.n_lags :])


def learn_trajectory(
    s: Array,
    n_lags: int,
    noise: float | None = None,
    shape: MapShape | None = None,
    *,
    quick: bool = False,
) -> Trajectory:
    """Learn the clean trajectory of a series (T,), NaN where missing, and the map it follows.

    With a known standard deviation ``noise``, or with the ``shape`` of a map that a part of the
    series has shown, the trajectory is on in any case. A ``quick`` search is a little less
    exact, for trajectories of which the mean is taken. No window reaches into a long gap: what
    lies between such gaps are several trajectories of one map. A ValueError says what is wrong with
    a series that cannot be learned from.
    """
    known = np.isfinite(s)
    _check(s, known, n_lags)
    spikes, gone = learn_spikes(s, n_lags)
    known &= ~gone
    s = np.where(known, s, np.nan)
    first, last = np.flatnonzero(known)[[0, -1]]
    if first > 0 or last < s.size - 1:
        inner = slice(int(first), int(last) + 1)
        return _extend(learn_trajectory(s[inner], n_lags, noise, shape, quick=quick), inner, s.size)
    quarter = quarter_period(s)
    long = in_long_gaps(known, quarter)
    kept = ~long | ~np.append(False, long[:-1])  # one missing value stands for a long gap
    whole, s, known, apart = s, s[kept], known[kept], long[kept]
    joined = are_known(~apart, n_lags + 1).astype(np.float64) if apart.any() else 1.0
    shift, scale = float(s[known].mean()), float(s[known].std())
    filled = (fill_missing(s) - shift) / scale
    recent = slice(max(s.size - _LONGEST, 0), None)
    level = noise / scale if noise else None
    some = joined if isinstance(joined, float) else joined[recent]
    search = MapSearch.start(filled[recent], known[recent], n_lags, level, shape, quick, some)
    found, reason = search.run() if shape is None else (search.run_with_shape(shape), "")
    basis, fit = search.blurred.basis, search.blurred.regression
    blurred = basis.network(fit.w, shift, scale)
    left_out = np.inf if found is None else search.left_out_error(found)
    if found is None:
        network, noise_found, process, prior = blurred, 0.0, fit.variance, fit.prior
        if whole.size <= _LONGEST and not known.all():  # a good map leads through long gaps, too
            filled = search.fill_gaps((whole - shift) / scale)
    else:
        if s.size > _LONGEST:
            start = np.concatenate([filled[: -found.z.size], found.z])
            everything = Observations(filled, known.astype(np.float64), found.noise, joined=joined)
            found = smooth_latent(everything, replace(found, z=start))
        basis, filled = found.basis, found.z
        network = basis.network(found.w, shift, scale)
        noise_found, process, prior = found.noise, found.process, found.prior
    latent = filled * scale + shift
    if latent.size < whole.size:
        known_parts = np.full(whole.size, np.nan)
        known_parts[~long] = latent[~apart]
        latent = fill_missing(known_parts)
        if found is not None:
            latent = _fill_by(network, latent, ~long)
    return Trajectory(
        network,
        blurred,
        latent,
        noise=scale * float(np.sqrt(noise_found)),
        process=scale * float(np.sqrt(process)),
        blurred_error=scale * float(np.sqrt(fit.variance)),
        width=basis.width,
        penalty=process / (prior * s.size),
        on=found is not None,
        reason=reason,
        left_out=scale * float(np.sqrt(left_out)),
        estimate=found,
        shift=shift,
        scale=scale,
        spikes=spikes,
        quarter=quarter,
    )


def _check(s: Array, known: Mask, n_lags: int) -> None:
    """Raise an error if there is too little to learn from."""
    fewest = max(_FEWEST, 6 * (n_lags + 1))
    if known.sum() < fewest:
        raise ValueError(
            f"{known.sum()} observations are too few to learn a trajectory with {n_lags} lags; "
            f"{fewest} are needed."
        )
    if are_known(known, n_lags + 1).sum() < 2 * (n_lags + 1):
        raise ValueError(
            f"There are gaps almost everywhere: fewer than {2 * (n_lags + 1)} times are "
            f"{n_lags + 1} observations in a row known."
        )
    values = s[known]
    if np.mean(values == np.median(values)) > 0.5:
        raise ValueError("Most observations are the same; there is no trajectory to learn.")
    if not SMALLEST < np.ptp(values) <= np.abs(values).max() * 2.0 < _LARGEST:
        raise ValueError(
            f"Squares of these observations are out of range; bring them between {SMALLEST:g} "
            f"and {_LARGEST:g}."
        )


def _extend(found: Trajectory, inner: slice, size: int) -> Trajectory:
    """Return the trajectory of a part of a series for all of it.

    Before the part, its first value is repeated; after it, the map continues it.
    """
    latent = np.full(size, found.latent[0])
    latent[inner] = found.latent
    return replace(found, latent=_fill_by(found.network, latent, np.arange(size) < inner.stop))


def _fill_by(network: Network, s: Array, known: Mask) -> Array:
    """Return a series (T,) whose unknown values are those that a network predicts."""
    return fill_by_map(s, known, network.n_lags, lambda X: network.predict(X)[:, 0])
