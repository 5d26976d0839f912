r"""Search for the map that a trajectory follows, or find that there is none to learn that way.

Nothing is taken from the truth. Maps differ in how smooth they are (the width of their basis) and
in how much older lags count (the decay); both are chosen by evidence, from smooth to rough, on the
latent series itself. Three questions are asked on the way. If any of them is answered with no, the
trajectory is *off*, and the map of the observed windows remains:

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
from dataclasses import dataclass, replace

import numpy as np

from rbfdiffnet.noise.cleaning import quarter_period
from rbfdiffnet.noise.maps import (
    CENTERS,
    FittedMap,
    MapBasis,
    MapShape,
    are_known,
    best_map,
    count_centers,
    fill_by_map,
    fit_map,
    fit_maps,
    known_rows,
    make_basis,
    place_centers,
    some_windows,
)
from rbfdiffnet.noise.trajectory import (
    Estimate,
    Observations,
    first_estimate,
    improve,
    left_out_error,
    smooth_latent,
)
from rbfdiffnet.series.gaps import fill_missing
from rbfdiffnet.series.windows import cut_windows
from rbfdiffnet.support.arrays import Array, Mask
from rbfdiffnet.support.progress import progress_between, without_progress

_WIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0)  # in units of the windows' spread
_DECAYS = (1.0, 0.75, 0.5, 0.25, 0.05)
_FINE_DECAYS = (1.0, 0.85, 0.75, 0.6, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.025)
_MORE_CENTERS = 240  # for clean series, and where the usual number is too small
_NARROWER = 0.7  # times a width, of more basis functions
_WIDER = (8.0, 4.0)  # times a width, on the way to it
_ENDS = (2.0, 2.0**0.5, 1.0, 0.5**0.5)  # times a width: estimates that compete
_ENDS_BESIDE = (2.0, 1.0)  # the same for other decays
_QUICK_WINDOWS = 250  # of a pull, at least
_QUICK_WIDTHS = (8.0, 4.0, 2.8, 2.0, 1.4, 1.0, 0.7, 0.5)
_QUICK_DECAY = 0.5  # of observed windows, until it is chosen
_QUICK_ROUNDS, _QUICK_LAST_ROUNDS = 6, 12
_QUICK_ENOUGH = 0.002  # evidence of a value, for another round
_QUICK_CENTERS, _QUICK_MORE_CENTERS = 60, 160
_QUICK_FOLDS = 2  # quarter of a period of series that are not spared anything of it
_QUICK_HASTE = 1.75  # of changes of variances
_PATIENCE = 1  # rougher maps than the best that are tried in vain
_FIRST_ROUNDS, _ROUNDS, _LAST_ROUNDS = 10, 6, 15
_PULL, _LAST_PULL = 0.5, 0.25
_GUARD = 0.75  # share of the error that noise must be able to explain
_CLEAN = 0.01  # standard deviation of the noise, in units of that of the series
_LEAST_NOISE = 1e-12
_GOOD_MAP = 0.01  # variance of its errors
_IN_THE_PROCESS = "the data prefer noise in the process to noise in the observations"

_NEIGHBORS = ((8, 0), (2, 2), (4, 4))  # values before and after, of linear models that bound R
_LONGER = 8  # lags of the map that bounds R, too, with these decays, widths and rows for each lag
_LONGER_DECAYS = (1.0, 0.75, 0.5)
_LONGER_WIDTHS = (0.5, 1.0, 2.0)
_LONGER_ROWS = 4


@dataclass(frozen=True)
class MapSearch:
    """The search for the map of a standardized series.

    ``blurred_maps`` are the maps of the observed windows, by decay and width, and ``blurred`` is
    the best of them. ``noise_given`` tells whether the noise is known. A ``quick`` search tries
    less, and places its basis functions from ``centers`` (c, l) on.
    """

    observed: Observations
    n_lags: int
    n_centers: int
    blurred_maps: dict[MapShape, FittedMap]
    blurred: FittedMap
    noise_given: bool
    quick: bool = False
    centers: Array | None = None

    @classmethod
    def start(
        cls,
        s: Array,
        known: Mask,
        n_lags: int,
        noise: float | None,
        shape: MapShape | None = None,
        quick: bool = False,
        joined: Array | float = 1.0,
    ) -> MapSearch:
        """Fit maps to the observed windows and bound the noise.

        ``s`` (T,) is standardized and its gaps are filled. ``noise`` is a standard deviation and
        ``shape`` that of the map, where they are known. ``joined`` is that of `Observations`.
        """
        X, y = known_rows(s, known, n_lags)
        usual = _QUICK_CENTERS if quick and not _folds(s) else CENTERS
        n_centers = count_centers(len(X), usual)
        decays: tuple[float, ...] = _DECAYS if n_lags > 1 else _DECAYS[:1]
        widths: tuple[float, ...] = _WIDTHS
        if shape is not None:
            decays, widths = shape[:1], shape[1:]
        centers = None
        if quick and n_lags > 1 and shape is None:
            centers, _ = place_centers(X, 1.0, n_centers)
            maps = fit_maps(X, y, [_QUICK_DECAY], widths, n_centers, centers)
            width, others = best_map(maps.values()).basis.width, set(decays) - {_QUICK_DECAY}
            maps |= fit_maps(X, y, sorted(others), [width], n_centers, centers)
        else:
            maps = fit_maps(X, y, decays, widths, n_centers)
        blurred = best_map(maps.values())
        s = fill_by_map(s, known, n_lags, blurred.predict)  # lines across gaps lie on no orbit
        more = count_centers(len(X), _QUICK_MORE_CENTERS if quick else _MORE_CENTERS)
        if more > n_centers and shape is None:
            decay, width = blurred.basis.decay, blurred.basis.width
            begin = some_windows(X, more) if quick else None
            larger = fit_maps(X, y, [decay], [width, width / 2.0], more, begin)
            blurred = best_map([blurred, *larger.values()])
        if noise is None:
            longer = n_lags < _LONGER and shape is None
            most = _unexplained_by_longer(s, known, usual, quick) if longer else np.inf
            most = min(largest_noise(s, known), blurred.regression.variance, most)
            most, least = max(most, _LEAST_NOISE), 0.0
        else:
            most = least = noise**2
        thin = max(1, len(X) // _QUICK_WINDOWS) if quick else 1
        haste = _QUICK_HASTE if quick else 1.0
        observed = Observations(s, known.astype(np.float64), most, least, thin, haste, joined)
        return cls(observed, n_lags, n_centers, maps, blurred, noise is not None, quick, centers)

    def run(self) -> tuple[Estimate | None, str]:
        """Return the estimate found, or None and the reason why the trajectory is off."""
        observed, blurred = self.observed, self.blurred
        if not self.noise_given:
            X, _ = self._rows(observed.s)
            slopes = blurred.basis.slopes(X, blurred.basis.activations(X), blurred.regression.w)
            carried = observed.most_noise * (1.0 + float((slopes**2).sum(axis=1).mean()))
            if carried < _GUARD * blurred.regression.variance:
                return None, "windows of this length do not tell where the series goes"
        # Rows with gaps have no part in the evidence of the observed windows, and the variance of
        # the noise is one more unknown.
        known = float((observed.seen[self.n_lags :] * observed.joined).sum())
        rows = float(are_known(observed.seen > 0.0, self.n_lags + 1).sum())
        blurred_evidence = blurred.regression.evidence * known / max(rows, 1.0) - np.log(known)
        best, lowest = self._begin_quickly() if self.quick else self._begin()
        if not self.noise_given and lowest.evidence > blurred_evidence:
            return None, _IN_THE_PROCESS
        with progress_between(0.4, 1.0):
            last, low = self._end_quickly(best) if self.quick else self._refine(best)
        if not self.quick:
            last, low = self._with_more_centers(last, low)
        lowest = _lowest([lowest, low])
        if self.noise_given or last.evidence < blurred_evidence:
            found = last
        elif lowest.evidence < blurred_evidence:
            found = lowest
        else:
            return None, _IN_THE_PROCESS
        if not self.noise_given and found.noise < _CLEAN**2:
            return None, "the series is clean"
        return found, ""

    def run_with_shape(self, shape: MapShape) -> Estimate:
        """Return the estimate for a map of known shape."""
        with progress_between(0.0, 0.6):
            (estimate,) = self._descend(shape, (*_WIDER, 2.0), (1.0,))
        with progress_between(0.6, 1.0):
            return improve(self.observed, estimate, _LAST_ROUNDS, _LAST_PULL, self._enough)[0]

    def left_out_error(self, found: Estimate) -> float:
        """Return how far observations are from what the others say of them, squared."""
        return left_out_error(self.observed, found, _LAST_PULL)

    def fill_gaps(self, s: Array) -> Array:
        """Fill the gaps (NaN) of the series: by the map where it is good, else by lines."""
        fit, known, lines = self.blurred.regression, np.isfinite(s), fill_missing(s)
        if fit.variance > _GOOD_MAP:
            return lines
        first = best_map(self.blurred_maps.values())
        z = fill_by_map(lines, known, self.n_lags, first.predict)
        observed = replace(self.observed, s=z, seen=known.astype(np.float64), joined=1.0)
        noise = max(0.01 * fit.variance, _LEAST_NOISE)
        start = first_estimate(self.blurred.basis, fit, z, noise, fit.variance)
        return np.where(known, s, smooth_latent(observed, start).z)

    def _begin(self) -> tuple[Estimate, Estimate]:
        """Learn trajectories of every width; return the best in the end and on the way."""
        tried = []
        for k, width in enumerate(_WIDTHS):
            fit = best_map(fit for (_, w), fit in self.blurred_maps.items() if w == width)
            with progress_between(0.08 * k, 0.08 * (k + 1)):
                tried.append(improve(self.observed, self._first(fit), _FIRST_ROUNDS, _PULL))
        return _lowest(last for last, _ in tried), _lowest(low for _, low in tried)

    def _begin_quickly(self) -> tuple[Estimate, Estimate]:
        """Go once from smooth maps to rougher ones, until they get worse; return as `_begin`.

        Series that fold within two steps are led astray by the noise if they begin less smoothly,
        and the others if they begin more smoothly.
        """
        widths = _QUICK_WIDTHS if _folds(self.observed.s) else _QUICK_WIDTHS[1:]
        decay = best_map(self.blurred_maps.values()).basis.decay
        windows, _ = self._rows(self.observed.s)
        centers = place_centers(windows, decay, self.n_centers, self.centers)
        tried: list[tuple[Estimate, Estimate]] = []
        for k, width in enumerate(widths):
            basis = make_basis(centers, decay, width)
            with progress_between(0.05 * k, 0.05 * (k + 1)):
                tried.append(self._improve_quickly(basis, tried[-1][0] if tried else None))
            evidence = [last.evidence for last, _ in tried]
            if k - int(np.argmin(evidence)) > _PATIENCE:
                break
        return _lowest(last for last, _ in tried), _lowest(low for _, low in tried)

    def _end_quickly(self, best: Estimate) -> tuple[Estimate, Estimate]:
        """Try other decays, as long as each is better than the one before, and go on to the end."""
        found = best
        for step in (-2, 2) if self.n_lags > 1 else ():
            while found is best or step * (found.basis.decay - best.basis.decay) < 0.0:
                at = _nearest_decay(found.basis.decay) + step
                if not 0 <= at < len(_FINE_DECAYS):
                    break
                decay = _FINE_DECAYS[at]
                windows, _ = self._rows(found.z)
                start = some_windows(windows, self.n_centers)
                centers = place_centers(windows, decay, self.n_centers, start)
                basis = make_basis(centers, decay, found.basis.width)
                other, _ = self._improve_quickly(basis, found)
                if other.evidence >= found.evidence:
                    break
                found = other
        larger = self._larger_basis(found)
        if larger is not None:
            other, _ = self._improve_quickly(larger, found)
            found = _lowest([found, other])
        return improve(self.observed, found, _QUICK_LAST_ROUNDS, _LAST_PULL, self._enough)

    def _improve_quickly(
        self, basis: MapBasis, before: Estimate | None
    ) -> tuple[Estimate, Estimate]:
        """Improve a map with this basis, from the latent series of the one before it."""
        z = self.observed.s if before is None else before.z
        fit = fit_map(basis, *self._rows(z))
        start = self._first(fit)
        if before is not None:
            start = first_estimate(basis, fit.regression, z, before.noise, before.process)
        return improve(self.observed, start, _QUICK_ROUNDS, _PULL, self._enough)

    @property
    def _enough(self) -> float:
        return _QUICK_ENOUGH * self.observed.s.size if self.quick else 0.0

    def _rows(self, z: Array) -> tuple[Array, Array]:
        """Return the windows (n, l) of a series that are joined, and the values after them (n,)."""
        X, y, joined = cut_windows(z, self.n_lags)[:-1], z[self.n_lags :], self.observed.joined
        return (X, y) if isinstance(joined, float) else (X[joined > 0.0], y[joined > 0.0])

    def _refine(self, start: Estimate) -> tuple[Estimate, Estimate]:
        """Go from smooth maps to this shape and those around it; return as `improve` does."""
        shape = start.basis.decay, start.basis.width
        with progress_between(0.0, 0.4):
            best = _lowest(self._descend(shape, _WIDER, _ENDS))
        width = best.basis.width
        beside = []
        for k, decay in enumerate(self._decays_beside(best.basis.decay)):
            with progress_between(0.4 + 0.25 * k, 0.65 + 0.25 * k):
                beside += self._descend((decay, width), _WIDER, _ENDS_BESIDE)
        best = _lowest([best, *beside])
        with progress_between(0.9, 1.0):
            return improve(self.observed, best, _LAST_ROUNDS, _LAST_PULL)

    def _with_more_centers(self, last: Estimate, low: Estimate) -> tuple[Estimate, Estimate]:
        """Go on with more and narrower basis functions where the evidence gains from them."""
        if (basis := self._larger_basis(last)) is None:
            return last, low
        fit = fit_map(basis, *self._rows(last.z))
        start = first_estimate(basis, fit.regression, last.z, last.noise, last.process)
        start, _ = improve(self.observed, start, _ROUNDS, _PULL)
        found = improve(self.observed, start, _LAST_ROUNDS, _LAST_PULL)
        return found if found[0].evidence < last.evidence else (last, low)

    def _larger_basis(self, last: Estimate) -> MapBasis | None:
        """Return more and narrower basis functions, or None where they cannot say more.

        They cannot where some directions of the basis are negligible already.
        """
        most = _QUICK_MORE_CENTERS if self.quick else _MORE_CENTERS
        windows, _ = self._rows(last.z)
        more = count_centers(len(windows), most)
        if more <= self.n_centers or last.basis.n_smooth < self.n_centers:
            return None
        decay, width = last.basis.decay, _NARROWER * last.basis.width
        return make_basis(place_centers(windows, decay, more), decay, width)

    def _descend(
        self, shape: MapShape, wider: Sequence[float], ends: Sequence[float]
    ) -> list[Estimate]:
        """Go from smooth maps to rougher ones, each from the latent series of the one before.

        Both sequences are descending factors of the shape's width; estimates are returned for
        those of ``ends``.
        """
        decay, width = shape
        factors = [*wider, *ends]
        estimate = self._first(self._fit(self.observed.s, (decay, width * factors[0])))
        found = []
        for k, factor in enumerate(factors):
            if k:
                fit = self._fit(estimate.z, (decay, width * factor))
                start = estimate.z, estimate.noise, estimate.process
                estimate = first_estimate(fit.basis, fit.regression, *start)
            with progress_between(k / len(factors), (k + 1) / len(factors)):
                estimate, _ = improve(self.observed, estimate, _ROUNDS, _PULL, self._enough)
            if k >= len(wider):
                rounds = _ROUNDS, _LAST_PULL, self._enough
                with without_progress():
                    found.append(improve(self.observed, estimate, *rounds)[0])
        return found

    def _fit(self, z: Array, shape: MapShape, n_centers: int | None = None) -> FittedMap:
        """Fit a map to a series that is taken as it is."""
        decay, width = shape
        X, y = self._rows(z)
        placed = place_centers(X, decay, n_centers or self.n_centers)
        return fit_map(make_basis(placed, decay, width), X, y)

    def _first(self, fit: FittedMap) -> Estimate:
        """Return an estimate to start from: the observations, and a map fitted to them."""
        noise = min(0.1 * fit.regression.variance, self.observed.most_noise)
        noise = max(noise, self.observed.least_noise)
        return first_estimate(fit.basis, fit.regression, self.observed.s, noise)

    def _decays_beside(self, decay: float) -> list[float]:
        """Return decays a little above and below one, where they matter."""
        if self.n_lags == 1:
            return []
        at = _nearest_decay(decay)
        return [_FINE_DECAYS[i] for i in (at - 2, at + 2) if 0 <= i < len(_FINE_DECAYS)]


def largest_noise(s: Array, known: Mask) -> float:
    """Return an upper bound on the variance of the noise: what neighbors leave unexplained."""
    bounds = []
    for before, after in _NEIGHBORS:
        width = before + 1 + after
        whole = are_known(known, width)
        if whole.sum() < 2 * width:
            continue
        rows = cut_windows(s, width)[whole]
        X = np.delete(rows, before, axis=1)
        X = np.concatenate([X, np.ones((len(X), 1))], axis=1)
        y = rows[:, before]
        residual = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
        bounds.append(float(residual @ residual) / (len(y) - width))
    return min(bounds, default=float(np.var(s[known])))


def _unexplained_by_longer(s: Array, known: Mask, most_centers: int, quick: bool) -> float:
    """Return the variance that a map of longer windows leaves unexplained: the noise is in it."""
    X, y = known_rows(s, known, _LONGER)
    if len(X) < _LONGER_ROWS * (_LONGER + 1):
        return np.inf
    n_centers = count_centers(len(X), most_centers)
    decays = _LONGER_DECAYS[1:2] if quick else _LONGER_DECAYS
    start = some_windows(X, n_centers) if quick else None
    maps = fit_maps(X, y, decays, _LONGER_WIDTHS, n_centers, start)
    return best_map(maps.values()).regression.variance


def _folds(s: Array) -> bool:
    """Tell whether a series turns back within two steps, as maps do."""
    return quarter_period(s) <= _QUICK_FOLDS


def _nearest_decay(decay: float) -> int:
    """Return the position among the fine decays."""
    return int(np.argmin(np.abs(np.log(np.array(_FINE_DECAYS) / decay))))


def _lowest(estimates: Iterable[Estimate]) -> Estimate:
    return min(estimates, key=lambda estimate: estimate.evidence)
