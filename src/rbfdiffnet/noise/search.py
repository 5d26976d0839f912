r"""Learn the trajectory of a series, or find that there is nothing to learn that way.

Nothing is taken from the truth. Maps differ in how smooth they are (the width of their basis) and
in how much older lags count (the decay); both are chosen by evidence, from smooth to rough, on the
latent series itself. Three questions are asked on the way, and any of them ends in *off*, the
ordinary network on the observed windows:

- *Can noise be the reason?* The variance R is at most what a linear model of the neighbors, the map
  itself or a map of eight lags leaves unexplained (the cap). If R at its cap, carried through the
  map, :math:`R (1 + |\nabla f|^2)`, makes up less than three quarters of the error of the map, then
  the error is the map's: the window is too short to tell where the series goes (the embedding
  guard).
- *Do the data prefer it?* The evidence E of the trajectory is compared with that of the same kind
  of map on the observed windows; the latter wins on autoregressions, whose noise is in the
  process.
- *Is there any noise to speak of?* A clean series needs no cleaning, but a larger basis.

Noise is taken to be normal. Spikes, which are not, are found first and count as missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rbfdiffnet.network import Network
from rbfdiffnet.noise.filtering import StateFilter
from rbfdiffnet.noise.maps import Basis, Regression, make_basis, place_centers, regress
from rbfdiffnet.noise.trajectory import (
    Observed,
    State,
    first_state,
    improve,
    smooth,
    windows_of,
)

__all__ = ["Trajectory", "largest_noise", "learn_trajectory"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_WIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0)  # in units of the windows' spread
_DECAYS = (1.0, 0.75, 0.5, 0.25, 0.05)
_FINE_DECAYS = (1.0, 0.85, 0.75, 0.6, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.025)
_CENTERS = 80
_MORE_CENTERS = 240  # for clean series
_ROWS_PER_CENTER = 4
_FIRST_ROUNDS, _ROUNDS, _LAST_ROUNDS = 10, 5, 20
_PULL, _LAST_PULL = 0.5, 0.25
_SWEEPS = 3
_GUARD = 0.75  # share of the error that noise must be able to explain
_CLEAN = 0.01  # standard deviation of the noise, in units of that of the series
_NEIGHBORS = ((8, 0), (2, 2), (4, 4))  # values before and after, for the cap on the noise
_FAR = 8.0  # robust standard deviations of a spike
_SMALLEST_SPIKE = 0.25  # standard deviations of the series
_SPIKE_ROUNDS = 3
_MOST_SPIKES = 0.05  # of the observations
_LEAST_NOISE = 1e-12
_GOOD_MAP = 0.01  # variance of its errors
_LONGER = 8  # lags of the map that bounds the noise, too
_FEWEST = 100  # observations
_IN_THE_PROCESS = "the data prefer noise in the process to noise in the observations"
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

    def tracker(self, s: Array) -> StateFilter:
        """Return the filter that finds clean states in noisy histories such as the end of s."""
        recent = s[-_TRACKED - self.network.n_lags :]
        return StateFilter.tuned(self.network, self.noise, self.process, self.latent, recent)


@dataclass(frozen=True)
class _Fit:
    """A map on a series that is taken as it is."""

    basis: Basis
    regression: Regression


def learn_trajectory(s: Array, n_lags: int, noise: float | None = None) -> Trajectory:
    """Learn the clean trajectory of a series and the map it follows.

    Parameters
    ----------
    s : ndarray of shape (T,)
        NaN where missing.
    n_lags : int
    noise : float, optional
        Standard deviation of the noise, where it is known; then the trajectory is learned in any
        case. By default it is estimated.

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
        return _extended(learn_trajectory(s[inner], n_lags, noise), int(ends[0]), s.size)
    shift, scale = float(s[known].mean()), float(s[known].std())
    steps = np.arange(s.size)
    filled = (np.interp(steps, steps[known], s[known]) - shift) / scale
    recent = slice(max(s.size - _LONGEST, 0), None)
    search = _Search.of(filled[recent], known[recent], n_lags, None if not noise else noise / scale)
    state, reason = search.run()
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


def _extended(found: Trajectory, before: int, size: int) -> Trajectory:
    """Return a trajectory with values beyond its ends: the first one, and what the map says."""
    latent = np.concatenate([np.full(before, found.latent[0]), found.latent])
    n_lags = found.network.n_lags
    low, high = found.latent.min(), found.latent.max()
    while latent.size < size:
        step = found.network.predict(latent[None, -n_lags:])[0]
        latent = np.append(latent, np.clip(step, low, high))
    return replace(found, latent=latent)


@dataclass(frozen=True)
class _Search:
    """The search for a map.

    Attributes
    ----------
    observed : Observed
    n_lags, n_centers : int
    offs : dict
        Maps on the observed windows, by decay and width.
    off : _Fit
        The best of them.
    given : bool
        Whether the noise is known.
    """

    observed: Observed
    n_lags: int
    n_centers: int
    offs: dict[tuple[float, float], _Fit]
    off: _Fit
    given: bool

    @classmethod
    def of(cls, s: Array, known: Mask, n_lags: int, noise: float | None) -> _Search:
        whole = windows_of(known, n_lags + 1).all(axis=1)
        X, y = windows_of(s, n_lags)[:-1][whole], s[n_lags:][whole]
        n_centers = int(np.clip(len(X) // _ROWS_PER_CENTER, 2, _CENTERS))
        offs = {}
        for decay in _DECAYS if n_lags > 1 else _DECAYS[:1]:
            placed = place_centers(X, decay, n_centers)
            for width in _WIDTHS:
                offs[decay, width] = _fit(make_basis(placed, decay, width), X, y)
        off = min(offs.values(), key=_evidence)
        s = _continued(s, known, off)
        more = min(_MORE_CENTERS, len(X) // _ROWS_PER_CENTER)
        if more > n_centers:
            decay, width = off.basis.decay, off.basis.width
            placed = place_centers(X, decay, more)
            larger = [_fit(make_basis(placed, decay, w), X, y) for w in (width, width / 2.0)]
            off = min([off, *larger], key=_evidence)
        if noise is None:
            longer = _unexplained(s, known, _LONGER) if n_lags < _LONGER else np.inf
            variance = min(largest_noise(s, known), off.regression.variance, longer)
            variance = max(variance, _LEAST_NOISE)
        else:
            variance = noise**2
        observed = Observed(
            s, known.astype(np.float64), variance, 0.0 if noise is None else variance
        )
        return cls(observed, n_lags, n_centers, offs, off, noise is not None)

    def run(self) -> tuple[State | None, str]:
        """Return the state found, or None and the reason why it is off."""
        observed, off = self.observed, self.off
        X = windows_of(observed.s, self.n_lags)[:-1]
        if not self.given:
            slopes = off.basis.slopes(X, off.basis.activations(X), off.regression.w)
            carried = observed.most_noise * (1.0 + float((slopes**2).sum(axis=1).mean()))
            if carried < _GUARD * off.regression.variance:
                return None, "windows of this length do not tell where the series goes"
        tried = []
        for width in _WIDTHS:
            fit = min((fit for (_, w), fit in self.offs.items() if w == width), key=_evidence)
            noise = min(0.1 * fit.regression.variance, observed.most_noise)
            start = first_state(
                fit.basis, fit.regression, observed.s, max(noise, observed.least_noise)
            )
            tried.append(improve(observed, start, _FIRST_ROUNDS, _PULL))
        # Rows with gaps have no part in the evidence of the observed windows; and the variance of
        # the noise is one more thing to know.
        known = float(observed.seen[self.n_lags :].sum())
        rows = float(windows_of(observed.seen, self.n_lags + 1).all(axis=1).sum())
        off_evidence = off.regression.evidence * known / max(rows, 1.0) - np.log(known)
        if not self.given and min(low.evidence for _, low in tried) > off_evidence:
            return None, _IN_THE_PROCESS
        state, lowest = self._refined(tried)
        if self.given or state.evidence < off_evidence:
            found = state
        elif lowest.evidence < off_evidence:
            found = lowest
        else:
            return None, _IN_THE_PROCESS
        if not self.given and found.noise < _CLEAN**2:
            return None, "the series is clean"
        return found, ""

    def bridged(self) -> Array:
        """Return the observations with gaps filled: by the map where it is good, or lines."""
        observed, fit = self.observed, self.off.regression
        known = observed.seen > 0.0
        steps = np.arange(observed.s.size)
        if fit.variance > _GOOD_MAP:
            return np.interp(steps, steps[known], observed.s[known])
        noise = max(0.01 * fit.variance, _LEAST_NOISE)
        state = first_state(self.off.basis, fit, observed.s, noise, fit.variance)
        return np.where(known, observed.s, smooth(observed, state).z)

    def _refined(self, tried: list[tuple[State, State]]) -> tuple[State, State]:
        """Walk from the best map to neighbors of other smoothness, on the latent series."""
        lowest = min((low for _, low in tried), key=_state_evidence)
        state = min((last for last, _ in tried), key=_state_evidence)
        seen = {(last.basis.decay, last.basis.width) for last, _ in tried}
        for sweep in range(_SWEEPS):
            results = [improve(self.observed, state, _ROUNDS, _PULL)]
            X, y = windows_of(state.z, self.n_lags)[:-1], state.z[self.n_lags :]
            for decay, width in self._neighbors(state.basis, coarse=sweep == 0):
                if (decay, width) in seen:
                    continue
                seen.add((decay, width))
                fit = _fit(make_basis(place_centers(X, decay, self.n_centers), decay, width), X, y)
                start = first_state(fit.basis, fit.regression, state.z, state.noise, state.process)
                results.append(improve(self.observed, start, _ROUNDS, _PULL))
            lowest = min((lowest, *(low for _, low in results)), key=_state_evidence)
            state = min((last for last, _ in results), key=_state_evidence)
        last, low = improve(self.observed, state, _LAST_ROUNDS, _LAST_PULL)
        return last, min(lowest, low, key=_state_evidence)

    def _neighbors(self, basis: Basis, *, coarse: bool) -> list[tuple[float, float]]:
        """Decays and widths next to those of a basis."""
        factor = 2.0 if coarse else 2.0**0.5
        decay, width = basis.decay, basis.width
        pairs = [(decay, width * factor), (decay, width / factor)]
        if self.n_lags > 1:
            at = int(np.argmin(np.abs(np.log(np.array(_FINE_DECAYS) / decay))))
            stride = 2 if coarse else 1
            pairs += [
                (_FINE_DECAYS[i], width)
                for i in (at + stride, at - stride)
                if 0 <= i < len(_FINE_DECAYS)
            ]
        return pairs


def find_spikes(s: Array, n_lags: int) -> Mask:
    """Find single observations that have nothing to do with the series around them.

    A map is fitted to the observed windows; where it errs by more than eight robust standard
    deviations, and by a quarter of the series' own, the first value to do so is a spike, and the
    errors right after it are its doing.
    Series with many such values have another distribution, not spikes.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.noise.search import find_spikes
    >>> s = np.sin(np.arange(300) / 3.0) + 0.05 * np.random.default_rng(0).normal(size=300)
    >>> s[[100, 200]] += 3.0
    >>> np.flatnonzero(find_spikes(s, n_lags=4)).tolist()
    [100, 200]
    """
    known = np.isfinite(s)
    found = np.zeros(s.size, dtype=bool)
    for _ in range(_SPIKE_ROUNDS):
        usable = known & ~found
        whole = windows_of(usable, n_lags + 1).all(axis=1)
        if whole.sum() < 2 * _ROWS_PER_CENTER * (n_lags + 1):
            break
        z = (s - s[usable].mean()) / s[usable].std()
        X, y = windows_of(z, n_lags)[:-1][whole], z[n_lags:][whole]
        n_centers = int(np.clip(len(X) // _ROWS_PER_CENTER, 2, _CENTERS // 2))
        placed = {decay: place_centers(X, decay, n_centers) for decay in (1.0, 0.25)}
        fits = [
            _fit(make_basis(placed[decay], decay, width), X, y)
            for decay in placed
            for width in _WIDTHS[1:3]
        ]
        best = min(fits, key=_evidence)
        error = np.abs(y - best.basis.features(X, best.basis.activations(X)) @ best.regression.w)
        limit = max(_FAR * float(np.median(error)) / 0.6745, _SMALLEST_SPIKE)
        far = np.flatnonzero(whole)[error > limit] + n_lags
        new = far[np.diff(far, prepend=-n_lags - 1) > n_lags]
        if not new.size:
            break
        found[new] = True
    return found if found.sum() <= _MOST_SPIKES * known.sum() else np.zeros(s.size, dtype=bool)


def largest_noise(s: Array, known: Mask) -> float:
    """Return a bound on the variance of the noise: what neighbors leave unexplained.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.noise.search import largest_noise
    >>> noise = 0.1 * np.random.default_rng(0).normal(size=500)
    >>> s = np.sin(np.arange(500) / 5.0) + noise
    >>> round(largest_noise(s, np.isfinite(s)) ** 0.5, 2)
    0.11
    """
    bounds = []
    for before, after in _NEIGHBORS:
        width = before + 1 + after
        whole = windows_of(known, width).all(axis=1)
        if whole.sum() < 2 * width:
            continue
        rows = windows_of(s, width)[whole]
        X = np.delete(rows, before, axis=1)
        X = np.concatenate([X, np.ones((len(X), 1))], axis=1)
        y = rows[:, before]
        residual = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
        bounds.append(float(residual @ residual) / (len(y) - width))
    return min(bounds, default=float(np.var(s[known])))


def _unexplained(s: Array, known: Mask, n_lags: int) -> float:
    """What a map of longer windows leaves unexplained, which the noise is part of."""
    whole = windows_of(known, n_lags + 1).all(axis=1)
    X, y = windows_of(s, n_lags)[:-1][whole], s[n_lags:][whole]
    if len(X) < _ROWS_PER_CENTER * (n_lags + 1):
        return np.inf
    n_centers = int(np.clip(len(X) // _ROWS_PER_CENTER, 2, _CENTERS))
    fits = []
    for decay in _DECAYS[:3]:
        placed = place_centers(X, decay, n_centers)
        fits += [_fit(make_basis(placed, decay, width), X, y) for width in _WIDTHS[:3]]
    return min(fits, key=_evidence).regression.variance


def _continued(s: Array, known: Mask, fit: _Fit) -> Array:
    """Fill gaps by a map, one value after the other: lines across them lie on no orbit."""
    n_lags = fit.basis.metric.size
    low, high = s[known].min(), s[known].max()
    filled = s.copy()
    for t in np.flatnonzero(~known):
        if t >= n_lags:
            X = filled[None, t - n_lags : t]
            step = fit.basis.features(X, fit.basis.activations(X)) @ fit.regression.w
            filled[t] = np.clip(step[0], low, high)
    return filled


def _fit(basis: Basis, X: Array, y: Array) -> _Fit:
    features = basis.features(X, basis.activations(X))
    return _Fit(basis, regress(features, y, n_flat=X.shape[1] + 1))


def _evidence(fit: _Fit) -> float:
    return fit.regression.evidence


def _state_evidence(state: State) -> float:
    return state.evidence
