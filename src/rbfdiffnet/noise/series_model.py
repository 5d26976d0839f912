"""A model of one series without any settings: take out the noise, then learn a committee of maps.

Whether there is noise to take out is decided by forecasts: a committee of the series as it is and
one of the cleaned series roll on through the last part of the series, each from what could be known
at the time. The closer one stays.

A committee knows nothing but the series, and noise leaves little of that. So where noise is treated
the `reader`, which has seen many systems, forecasts the same part, and the two are mixed. Their
weights at step k are :math:`c_k^{-4}` and :math:`r_k^{-4}`, where c and r are their mean errors up
to that step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from rbfdiffnet.noise.cleaning import (
    MOST_BRIDGED,
    SmoothShapes,
    find_shapes,
    in_long_gaps,
    quarter_period,
)
from rbfdiffnet.noise.committee import (
    Committee,
    errors_until,
    horizon_of,
    learn_committee,
    mean_error,
    origins_of,
    told_of,
    values_ahead,
)
from rbfdiffnet.noise.filtering import MEMORY, StateFilter
from rbfdiffnet.noise.learn import SMALLEST, Trajectory, learn_trajectory
from rbfdiffnet.noise.maps import shape_of
from rbfdiffnet.noise.members import LaggedMap
from rbfdiffnet.noise.reader import series as reader
from rbfdiffnet.noise.spikes import SpikeFinder, learn_spikes, without_spikes
from rbfdiffnet.series.gaps import fill_missing
from rbfdiffnet.support.arrays import Array, Ints, Mask
from rbfdiffnet.support.progress import progress_between

_FEWEST = 60  # values
_FEWEST_LAGS = 2  # of maps that are compared
_LONGEST_WINDOW = 8  # quarters of a period
_SHORTEST_HISTORY = 40
_SHORTEST_TRAJECTORY = 20
_BEFORE = 100  # values before a history that it is cleaned with
_TRACKED = 100  # values that a filter is tuned to, to see whether it is worth while
#: Latest values that are learned from.
MOST_VALUES = 4_000
_CLEAN = 0.01  # standard deviation of noise, in units of that of the series
_TRAJECTORY_LAGS = (4, 8)
_CLOSE = 1.15  # times the lowest error of left out observations: cleaners that are taken
_PARTICLES_APART = 4  # of a cloud, that are sent on to see how well it forecasts
_FOLDS = 2  # quarter of a period up to which series may fold so quickly that only a filter follows
_GLANCE = 0.9  # error of a whole committee over that of two maps, mostly
_OPTIMISM = 1.15  # times the errors of a committee that chose its members by them
_POWER = 4.0  # of the errors that committee and reader are weighed by
_FADED = 4  # times the measured steps, after which the reader has no share
_BETWEEN = 2  # quarters of a period between a series and another history that is read after it
_APART = MOST_BRIDGED + 1  # missing values between trajectories that are joined
_FLAT = 1e-6  # standard deviation over the range of all trajectories
_NO_GAIN = "forecasts of the last part of the series do not gain from it"
_ASIDE = "latent_ is cleaned, but forecasts do not use it: on the last part they do not gain"
_SURE = 1.5  # times what a trajectory leaves unexplained, of a map of observed windows


class Cleaner(Protocol):
    """Something that takes noise out of the values of a sensor."""

    @property
    def noise(self) -> float:
        """Standard deviation of the noise."""

    @property
    def left_out(self) -> float:
        """How far observations are from what the others alone say of them (root mean square)."""

    def clean(self, s: Array) -> Array:
        """Return a series (T,) without noise and gaps, given NaN where missing."""

    def clean_each(self, parts: Sequence[Array]) -> list[Array]:
        """Clean several series, each by itself."""


@dataclass(frozen=True)
class MeanCleaner:
    """Several cleaners that explain a series about as well: the mean of what they make of it."""

    parts: tuple[Cleaner, ...]

    @property
    def noise(self) -> float:
        """Standard deviation of the noise."""
        return float(np.mean([part.noise for part in self.parts]))

    @property
    def left_out(self) -> float:
        """The lowest of the parts'."""
        return min(part.left_out for part in self.parts)

    def clean(self, s: Array) -> Array:
        """Return a series (T,) without noise and gaps, given NaN where missing."""
        return self.clean_each([s])[0]

    def clean_each(self, parts: Sequence[Array]) -> list[Array]:
        """Clean several series, each by itself."""
        made = [own.clean_each(parts) for own in self.parts]
        return [np.asarray(np.mean(ways, axis=0)) for ways in zip(*made, strict=True)]


@dataclass(frozen=True)
class SeriesModel:
    """A committee, the clean series ``latent`` (T, k) it was learned from, and how it was cleaned.

    ``observed`` (T, k) is the series as it was, from k sensors. Of several trajectories both are
    the last one. Sensors that were left as they are have no cleaner (None), and where none has,
    ``reason`` says why. Where ``filters``, the cleaner is a trajectory whose own filter forecasts
    better than the committee. ``error`` is the mean size of the errors on the last part of the
    series, and ``early`` that filter, as it was there. ``aside`` is the model of the cleaned
    series where its noise is beyond doubt, but forecasts do not gain from taking it out. The series
    repeats itself after 4 times a ``quarter``, and the reader has a ``share`` (H,) of the forecast,
    by steps ahead. Spikes count as missing in the ``observed`` series; for each sensor, ``spikes``
    finds those of other series.
    """

    committee: Committee
    observed: Array
    latent: Array
    cleaners: tuple[Cleaner | None, ...]
    reason: str
    error: float
    filters: bool = False
    early: StateFilter | None = None
    aside: SeriesModel | None = None
    quarter: int = 1
    share: Array | None = None
    spikes: tuple[SpikeFinder | None, ...] = (None,)

    @property
    def noise(self) -> Array:
        """Standard deviation of the noise of each sensor (k,), 0 where none is treated."""
        return np.array([0.0 if own is None else own.noise for own in self.cleaners])

    @property
    def best_map(self) -> LaggedMap:
        """The map of clean windows: the best one of the committee, or that of a trajectory.

        A trajectory learns its map together with the clean series. Where a series is sampled
        finely, steps of one value say little, and the committee's are longer.
        """
        parts = self._cleaners_of_one
        found = [part for part in parts if isinstance(part, Trajectory)]
        if not found or any(isinstance(part, SmoothShapes) for part in parts):
            return self.committee.best_map
        best = min(found, key=lambda part: part.left_out)
        return LaggedMap(best.network, 1, best.penalty)

    @property
    def trajectory(self) -> Trajectory | None:
        """The trajectory with fewest lags that the only sensor is cleaned by, if there is one."""
        parts = self._cleaners_of_one
        return next((part for part in parts if isinstance(part, Trajectory)), None)

    @property
    def _cleaners_of_one(self) -> tuple[Cleaner | None, ...]:
        """The cleaners of the only sensor."""
        found = self.cleaners[0] if len(self.cleaners) == 1 else None
        return found.parts if isinstance(found, MeanCleaner) else (found,)

    @cached_property
    def tracker(self) -> StateFilter | None:
        """The filter of the trajectory, if there is one."""
        found = self.trajectory
        return None if found is None else found.tracker(self.observed[:, 0], self.early)

    def forecast(self, history: Array | None, h: int, quantiles: Array) -> Array:
        """Forecast quantiles after a history (T, k), or after the series itself; (h, k, q).

        What is missing at its end is forecast, too, and left out.
        """
        if history is None and self.filters and self.tracker is not None:
            return self.tracker.forecast(self.observed[:, 0], h, quantiles)[:, None]
        observed = self.observed if history is None else without_spikes(history, self.spikes)
        known = np.asarray(np.isfinite(observed).all(axis=1))
        gap = int(known[::-1].argmax())
        observed = observed[: len(observed) - gap]
        is_latent = history is None and not gap
        seen = self.latent if is_latent else _clean(observed, self.cleaners)
        middle = self.committee.forecast(seen, gap + h)
        if self.share is not None:
            middle = self._mix(middle, observed[:, 0], history is not None)
        return self.committee.around(middle, quantiles)[gap:]

    def _mix(self, middle: Array, observed: Array, is_other: bool) -> Array:
        """Return a forecast (h, 1) after values (T,) mixed with that of the reader.

        The values may be those of another history. A short one is read after the series itself,
        with a gap between them. The share falls to zero far beyond the steps it was measured on.
        """
        assert self.share is not None
        if is_other and len(observed) < len(self.observed):
            parts = self.observed[:, 0], np.full(_BETWEEN * self.quarter, np.nan), observed
            observed = np.concatenate(parts)
        measured = self.share.size
        steps = np.arange(min(len(middle), _FADED * measured))
        fading = (_FADED * measured - steps) / ((_FADED - 1) * measured)
        share = self.share[np.minimum(steps, measured - 1)] * np.minimum(fading, 1.0)
        told = reader.forecast(observed, steps.size, self.quarter)
        mixed = middle.copy()
        mixed[: steps.size, 0] += share * (told - middle[: steps.size, 0])
        return mixed

    def with_reader(self) -> SeriesModel:
        """Return the model of a single noisy sensor with the share that the reader deserves.

        Where no noise is treated, maps know enough: on real series of that kind it did harm.
        """
        committee, s = self.committee, self.observed
        origins, h = _held_out(s, self.quarter)
        scale = float(self.latent.std())
        is_flat = scale <= _FLAT * float((committee.high - committee.low).max())
        is_noisy = s.shape[1] == 1 and self.cleaners[0] is not None and not self.filters
        if not is_noisy or is_flat or origins[0] < reader.FEWEST:
            return self
        told = reader.forecast_from(s[:, 0], origins, h, self.quarter)[:, :, None]
        ahead, clean = (values_ahead(v, origins, h) for v in (s, self.latent))
        # Errors are those against the clean series: noise would make all of them alike.
        own = committee.errors[:, :h]
        others = np.where(np.isfinite(own), told - clean, np.nan)
        size, others_size = errors_until(own / scale), errors_until(others / scale)
        ratio = np.minimum(others_size / np.maximum(_OPTIMISM * size, 1e-300), 1e6)
        share = np.where(others_size > 0.0, 1.0 / (1.0 + ratio**_POWER), 0.0)
        mixed = own + share[:, None] * (others - own)
        error = mean_error((mixed + clean) / scale, ahead / scale) * scale
        errors = np.concatenate([mixed, committee.errors[:, h:]], axis=1)
        committee = replace(committee, errors=errors)
        return replace(self, committee=committee, error=error, share=share)


def learn_series(
    s: Array | Sequence[Array],
    noise: float | str | None = "auto",
    n_lags: int | None = None,
    delay: int | None = None,
) -> SeriesModel:
    """Learn a series (T, k), NaN where missing, or several trajectories of one system.

    Noise is found in the data, or known by its standard deviation, or not treated (None). Lags and
    delay between them may be given; then the reader has no share. A ValueError says what is wrong
    with a series.
    """
    trajectories = _latest([s] if isinstance(s, np.ndarray) else list(s))
    # What is shorter than a window of a trajectory says nothing, and cannot be cleaned.
    long = [own for own in trajectories[:-1] if len(own) > _TRAJECTORY_LAGS[-1]]
    trajectories = [*long, trajectories[-1]]
    spikes: tuple[SpikeFinder | None, ...] = (None,) * trajectories[0].shape[1]
    if noise is not None and noise != 0.0:
        spikes = tuple(learn_spikes(own, _TRAJECTORY_LAGS[0])[0] for own in _join(trajectories).T)
        trajectories = [without_spikes(own, spikes) for own in trajectories]
    whole = np.concatenate(trajectories)
    known = np.isfinite(whole).all(axis=1)
    if known.sum() < _FEWEST or np.any(np.ptp(whole[known], axis=0) <= 0.0):
        raise ValueError(
            f"{int(known.sum())} values, or a constant, are too little to choose lags by; "
            f"give n_lags, or at least {_FEWEST} values that are not all the same."
        )
    if np.any(np.ptp(whole[known], axis=0) < SMALLEST):
        raise ValueError(f"The values differ by less than {SMALLEST:g}: rescale the series.")
    if len(trajectories[-1]) < _SHORTEST_TRAJECTORY:
        raise ValueError(
            f"The last trajectory has {len(trajectories[-1])} values, and maps are compared on it; "
            f"put one of at least {_SHORTEST_TRAJECTORY} values last."
        )
    untreated = (None,) * whole.shape[1]
    quarter = quarter_period(max(trajectories, key=len))
    settings = quarter, n_lags, delay
    found: list[tuple[Cleaner | None, str]] = [(None, "noise is not treated")]
    if noise is not None and noise != 0.0:
        with progress_between(0.0, 0.5):
            found = [_find_cleaner(own, quarter, noise) for own in _join(trajectories).T]

    def learn(cleaners: tuple[Cleaner | None, ...], reason: str = "") -> SeriesModel:
        committee, latent = _learn(trajectories, cleaners, *settings)
        model = SeriesModel(committee, last, latent, cleaners, reason, committee.error)
        return replace(model, quarter=quarter, spikes=spikes)

    last, cleaners = trajectories[-1], tuple(cleaner for cleaner, _ in found)
    if not any(cleaners):
        with progress_between(0.5, 1.0):
            return learn(untreated, found[0][1])
    with progress_between(0.5, 0.7):
        model = learn(cleaners)
    if model.trajectory is not None and len(trajectories) == 1 and quarter <= _FOLDS:
        with progress_between(0.7, 0.8):
            error, early = _filter_error(whole[:, 0], model.trajectory, quarter)
        if error < model.error:
            model = replace(model, error=error, early=early, filters=True)
    if noise == "auto":
        with progress_between(0.8, 0.9):
            glance = np.inf
            if whole.shape[1] == 1:
                glance = _glance(trajectories, untreated, quarter, model.committee.best_map)
        if whole.shape[1] > 1 or model.error >= _GLANCE * glance:  # in doubt
            with progress_between(0.9, 1.0):
                plain = learn(untreated, _NO_GAIN)
            if model.error >= plain.error:
                sure = _is_sure(model)
                model = replace(plain, reason=_ASIDE, aside=model) if sure else plain
    return model.with_reader() if n_lags is None and delay is None else model


def _glance(
    trajectories: list[Array], untreated: Sequence[None], quarter: int, best: LaggedMap
) -> float:
    """Return the error of a committee of untreated trajectories whose maps are like another one."""
    try:
        return _learn(trajectories, untreated, quarter, best.n_lags, best.delay)[0].error
    except ValueError:  # gaps leave too few such windows
        return 0.0


def _is_sure(model: SeriesModel) -> bool:
    """Tell whether a trajectory explains the only sensor far better than observed windows do."""
    found = model.trajectory
    return found is not None and found.blurred_error > _SURE * found.left_out


def _latest(trajectories: list[Array]) -> list[Array]:
    """Return the latest values that are learned from; missing ones do not count."""
    kept, left = [], MOST_VALUES
    for own in trajectories[::-1]:
        if left > 0:
            known = np.flatnonzero(np.isfinite(own).any(axis=1))
            kept.append(own[known[-left] :] if known.size > left else own)
            left -= known.size
    return kept[::-1]


def _join(trajectories: Sequence[Array]) -> Array:
    """Return trajectories (T, k) as one series, with gaps between them that no window crosses."""
    apart = np.full((_APART, trajectories[0].shape[1]), np.nan)
    return np.concatenate([part for own in trajectories for part in (own, apart)][:-1])


def _clean(s: Array, cleaners: Sequence[Cleaner | None], at: slice | None = None) -> Array:
    """Return a series (T, k) without gaps, and without the noise of sensors that have cleaners.

    Cleaners may have been learned from it: ``at`` these places of what they were learned from.
    """

    def clean(own: Array, cleaner: Cleaner | None) -> Array:
        if cleaner is None:
            return fill_missing(own)
        if at is not None and isinstance(cleaner, Trajectory):
            return cleaner.latent[at]
        if isinstance(cleaner, MeanCleaner):
            return np.asarray(np.mean([clean(own, part) for part in cleaner.parts], axis=0))
        return cleaner.clean(own)

    return np.stack([clean(*pair) for pair in zip(s.T, cleaners, strict=True)], axis=1)


def _filter_error(s: Array, cleaner: Trajectory, quarter: int) -> tuple[float, StateFilter | None]:
    """Return the error of a trajectory's filter where committees are compared, and the filter.

    The map is learned again from the values before, in the shape that it has.
    """
    origins, h = _held_out(s[:, None], quarter)
    early = s[: origins[0]]
    try:
        n_lags, shape = cleaner.network.n_lags, shape_of(cleaner.network)
        found = learn_trajectory(early, n_lags, cleaner.noise, shape, quick=True)
        tracker = found.tracker(early[-_TRACKED:])
    except (ValueError, np.linalg.LinAlgError):
        return np.inf, None
    start = max(int(origins[0]) - n_lags - MEMORY, 0)
    chosen = set(origins.tolist())
    clouds = [
        cloud[::_PARTICLES_APART]
        for origin, cloud in enumerate(tracker.track(s[start:]), start + n_lags)
        if origin in chosen
    ]
    paths = np.median(tracker.roll(np.stack(clouds), h), axis=1)
    scale = float(cleaner.latent.std())
    ahead = values_ahead(s[:, None] / scale, origins, h)
    return mean_error(paths[:, :, None] / scale, ahead) * scale, tracker


def _held_out(s: Array, quarter: int) -> tuple[Ints, int]:
    """Return origins and steps of the forecasts by which ways to learn a series are compared.

    Long gaps do not count: there is nothing to compare with.
    """
    known = np.flatnonzero(~_in_long_gaps(s, quarter).any(axis=1))
    return known[origins_of(known.size, quarter)], horizon_of(known.size, quarter)


def _in_long_gaps(s: Array, quarter: int) -> Mask:
    """Tell which values (T, k) lie in long gaps of their sensors."""
    return np.stack([in_long_gaps(known, quarter) for known in np.isfinite(s).T], axis=1)


def past_of(s: Array, origins: Ints, quarter: int, longest: int = 0) -> Array:
    """Return what precedes each origin (n,) in a series (T, k), shape (n, L, k)."""
    longest = max(_LONGEST_WINDOW * quarter, _SHORTEST_HISTORY, longest)
    length = min(longest, int(origins[0]))
    return np.asarray(s[origins[:, None] - np.arange(length, 0, -1)])


def _learn(
    trajectories: list[Array],
    cleaners: Sequence[Cleaner | None],
    quarter: int,
    n_lags: int | None,
    delay: int | None,
) -> tuple[Committee, Array]:
    """Learn a committee of cleaned trajectories, and return the last of these, too.

    Members are compared on the last part of the last trajectory, each from what was known at the
    time. Those before it are learned from whole.
    """
    ends = np.cumsum([len(own) + _APART for own in trajectories]) - _APART
    places = [slice(end - len(own), end) for own, end in zip(trajectories, ends, strict=True)]
    clean = [_clean(own, cleaners, at) for own, at in zip(trajectories, places, strict=True)]
    whole, observed = np.concatenate(clean), np.concatenate(trajectories)
    numbers = np.repeat(np.arange(1, len(clean) + 1), [len(own) for own in clean])
    treated = np.array([own is not None for own in cleaners])
    known = np.isfinite(observed)
    guessed = treated & ~_in_long_gaps(observed, quarter)
    runs = np.where((known | guessed).all(axis=1), numbers, 0)
    first, last = len(whole) - len(clean[-1]), trajectories[-1]
    origins, h = _held_out(last, quarter)
    histories = past_of(clean[-1], origins, quarter, (n_lags or _FEWEST_LAGS) * (delay or 1))
    if treated.any():
        length = histories.shape[1] + _BEFORE
        parts = [last[max(origin - length, 0) : origin] for origin in origins]
        parts = [
            part if np.isfinite(part).any(axis=0).all() else last[:origin]
            for part, origin in zip(parts, origins, strict=True)
        ]
        for k, cleaner in enumerate(cleaners):
            own = [part[:, k] for part in parts]
            made = list(map(fill_missing, own)) if cleaner is None else cleaner.clean_each(own)
            histories[:, :, k] = [values[-histories.shape[1] :] for values in made]
    told = max(h, told_of(len(last), quarter))
    found = learn_committee(
        whole, runs, observed, histories, first + origins, h, quarter, delay, n_lags, told
    )
    return found, clean[-1]


def _find_cleaner(s: Array, quarter: int, noise: float | str) -> tuple[Cleaner | None, str]:
    """Return what cleans a series (T,), or None and why there is nothing."""
    filled, known = fill_missing(s), np.isfinite(s)
    given = None if noise == "auto" else float(noise)
    shapes = find_shapes(filled, known, quarter, given)
    found: list[Cleaner] = [] if shapes is None else [shapes]
    if shapes is not None and given is None and shapes.noise < _CLEAN * float(s[known].std()):
        return None, "the series is clean"
    reason = ""
    for n_lags in _TRAJECTORY_LAGS:
        try:
            trajectory = learn_trajectory(s, n_lags, given, quick=True)
        except (ValueError, np.linalg.LinAlgError) as error:
            if given is not None and not found:
                raise
            reason = str(error)
            continue
        if trajectory.on:
            found.append(trajectory)
        reason = trajectory.reason
        if given is None and shapes is not None and shapes.noise > trajectory.blurred_error:
            found = [own for own in found if own is not shapes]
    if not found:
        return None, reason
    lowest = min(cleaner.left_out for cleaner in found)
    close = tuple(cleaner for cleaner in found if cleaner.left_out <= _CLOSE * lowest)
    return (close[0] if len(close) == 1 else MeanCleaner(close)), ""
