r"""Search for the map that a trajectory follows, or find that there is none to learn that way.

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
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rbfdiffnet.noise.bounds import largest_noise, unexplained
from rbfdiffnet.noise.maps import (
    Fit,
    Shape,
    affordable,
    best_fit,
    fit_map,
    fit_maps,
    make_basis,
    place_centers,
)
from rbfdiffnet.noise.trajectory import Observed, State, first_state, improve, smooth, windows_of

__all__ = ["Search"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_WIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0)  # in units of the windows' spread
_DECAYS = (1.0, 0.75, 0.5, 0.25, 0.05)
_FINE_DECAYS = (1.0, 0.85, 0.75, 0.6, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.025)
_MORE_CENTERS = 240  # for clean series
_WIDER = (8.0, 4.0)  # times a width, on the way to it
_ENDS = (2.0, 2.0**0.5, 1.0, 0.5**0.5)  # times a width: what is found on the way
_ENDS_BESIDE = (2.0, 1.0)  # the same for other decays
_FIRST_ROUNDS, _ROUNDS, _LAST_ROUNDS = 10, 6, 15
_PULL, _LAST_PULL = 0.5, 0.25
_GUARD = 0.75  # share of the error that noise must be able to explain
_CLEAN = 0.01  # standard deviation of the noise, in units of that of the series
_LEAST_NOISE = 1e-12
_GOOD_MAP = 0.01  # variance of its errors
_LONGER = 8  # lags of the map that bounds the noise, too
_IN_THE_PROCESS = "the data prefer noise in the process to noise in the observations"


@dataclass(frozen=True)
class Search:
    """The search for a map.

    Attributes
    ----------
    observed : Observed
    n_lags, n_centers : int
    offs : dict
        Maps on the observed windows, by decay and width.
    off : Fit
        The best of them.
    given : bool
        Whether the noise is known.
    """

    observed: Observed
    n_lags: int
    n_centers: int
    offs: dict[Shape, Fit]
    off: Fit
    given: bool

    @classmethod
    def of(
        cls, s: Array, known: Mask, n_lags: int, noise: float | None, shape: Shape | None = None
    ) -> Search:
        """Start a search.

        Parameters
        ----------
        s : ndarray of shape (T,)
            Standardized; gaps filled.
        known : ndarray of bool of shape (T,)
        n_lags : int
        noise : float or None
            Standard deviation, where it is known.
        shape : tuple of float, optional
            Decay and width of the map, where they are known.
        """
        whole = windows_of(known, n_lags + 1).all(axis=1)
        X, y = windows_of(s, n_lags)[:-1][whole], s[n_lags:][whole]
        n_centers = affordable(len(X))
        decays: tuple[float, ...] = _DECAYS if n_lags > 1 else _DECAYS[:1]
        widths: tuple[float, ...] = _WIDTHS
        if shape is not None:
            decays, widths = shape[:1], shape[1:]
        offs = fit_maps(X, y, decays, widths, n_centers)
        off = best_fit(offs.values())
        s = _continued(s, known, off)
        more = affordable(len(X), _MORE_CENTERS)
        if more > n_centers and shape is None:
            decay, width = off.basis.decay, off.basis.width
            larger = fit_maps(X, y, [decay], [width, width / 2.0], more)
            off = best_fit([off, *larger.values()])
        if noise is None:
            longer = n_lags < _LONGER and shape is None
            most = unexplained(s, known, _LONGER) if longer else np.inf
            variance = min(largest_noise(s, known), off.regression.variance, most)
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
            fit = best_fit(fit for (_, w), fit in self.offs.items() if w == width)
            tried.append(improve(observed, self._first(fit), _FIRST_ROUNDS, _PULL))
        # Rows with gaps have no part in the evidence of the observed windows; and the variance of
        # the noise is one more thing to know.
        known = float(observed.seen[self.n_lags :].sum())
        rows = float(windows_of(observed.seen, self.n_lags + 1).all(axis=1).sum())
        off_evidence = off.regression.evidence * known / max(rows, 1.0) - np.log(known)
        lowest = _lowest(low for _, low in tried)
        if not self.given and lowest.evidence > off_evidence:
            return None, _IN_THE_PROCESS
        basis = _lowest(last for last, _ in tried).basis
        state, low = self._refined((basis.decay, basis.width))
        lowest = _lowest([lowest, low])
        if self.given or state.evidence < off_evidence:
            found = state
        elif lowest.evidence < off_evidence:
            found = lowest
        else:
            return None, _IN_THE_PROCESS
        if not self.given and found.noise < _CLEAN**2:
            return None, "the series is clean"
        return found, ""

    def again(self, shape: Shape) -> State:
        """Return the state for a map of known shape."""
        (state,) = self._descended(shape, (*_WIDER, 2.0), (1.0,))
        return improve(self.observed, state, _LAST_ROUNDS, _LAST_PULL)[0]

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

    def _refined(self, shape: Shape) -> tuple[State, State]:
        """Return the last state, and that of lowest evidence, by way of smooth maps."""
        best = _lowest(self._descended(shape, _WIDER, _ENDS))
        width = best.basis.width
        beside = [
            state
            for decay in self._decays_beside(best.basis.decay)
            for state in self._descended((decay, width), _WIDER, _ENDS_BESIDE)
        ]
        best = _lowest([best, *beside])
        return improve(self.observed, best, _LAST_ROUNDS, _LAST_PULL)

    def _descended(
        self, shape: Shape, wider: Sequence[float], ends: Sequence[float]
    ) -> list[State]:
        """Go from smooth maps to rougher ones, each starting on the latent series of the last.

        Parameters
        ----------
        shape : tuple of float
            Decay and width.
        wider, ends : sequence of float
            Factors of the width, descending: on the way, and of the maps to return.
        """
        decay, width = shape
        factors = [*wider, *ends]
        state = self._first(self._fitted(self.observed.s, (decay, width * factors[0])))
        found = []
        for k, factor in enumerate(factors):
            if k:
                fit = self._fitted(state.z, (decay, width * factor))
                start = state.z, state.noise, state.process
                state = first_state(fit.basis, fit.regression, *start)
            state, _ = improve(self.observed, state, _ROUNDS, _PULL)
            if k >= len(wider):
                found.append(improve(self.observed, state, _ROUNDS, _LAST_PULL)[0])
        return found

    def _fitted(self, z: Array, shape: Shape) -> Fit:
        """Fit a map to a series that is taken as it is."""
        decay, width = shape
        X, y = windows_of(z, self.n_lags)[:-1], z[self.n_lags :]
        return fit_map(make_basis(place_centers(X, decay, self.n_centers), decay, width), X, y)

    def _first(self, fit: Fit) -> State:
        """Return a state to start from: the observations, and a map fitted to them."""
        noise = min(0.1 * fit.regression.variance, self.observed.most_noise)
        noise = max(noise, self.observed.least_noise)
        return first_state(fit.basis, fit.regression, self.observed.s, noise)

    def _decays_beside(self, decay: float) -> list[float]:
        """Decays a little above and below one."""
        if self.n_lags == 1:
            return []
        at = int(np.argmin(np.abs(np.log(np.array(_FINE_DECAYS) / decay))))
        return [_FINE_DECAYS[i] for i in (at - 2, at + 2) if 0 <= i < len(_FINE_DECAYS)]


def _continued(s: Array, known: Mask, fit: Fit) -> Array:
    """Fill gaps by a map, one value after the other: lines across them lie on no orbit."""
    n_lags = fit.basis.metric.size
    low, high = s[known].min(), s[known].max()
    filled = s.copy()
    for t in np.flatnonzero(~known):
        if t >= n_lags:
            X = filled[None, t - n_lags : t]
            filled[t] = np.clip(fit.predict(X)[0], low, high)
    return filled


def _lowest(states: Iterable[State]) -> State:
    return min(states, key=lambda state: state.evidence)
