"""The part of the regressor that fits, filters and forecasts one series by windows of lags."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, validate_data

from rbfdiffnet.network.network import Network
from rbfdiffnet.noise.filtering import StateFilter
from rbfdiffnet.noise.learn import Trajectory, learn_trajectory
from rbfdiffnet.noise.maps import are_known, known_rows
from rbfdiffnet.noise.members import LaggedMap
from rbfdiffnet.noise.series_model import SeriesModel, learn_series
from rbfdiffnet.noise.spikes import SpikeFinder, without_spikes
from rbfdiffnet.series.equal_steps import to_equal_steps
from rbfdiffnet.series.gaps import fill_missing
from rbfdiffnet.series.recursion import forecast_recursive
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.checks import Noise, as_floats, check_noise, check_number, check_size
from rbfdiffnet.support.parallel import public_call

_ROLLED, _HORIZON = 200, 20  # last steps and horizon on which roll-outs are compared
_MUCH_BETTER = 0.1  # share of the error's variance, for a larger network to replace the usual one


class SeriesMixin(ABC):
    """Fit, filter and forecast one series.

    The estimator supplies how rows are fitted (`_fit_rows`) and predicted, and how a network that
    was learned with a trajectory is taken over (`_adopt`).
    """

    noise: Noise
    basis: str
    network_: Network
    n_features_in_: int
    _tracker: StateFilter | None
    _rolls: Network | None  # to forecast with, if not the network
    _series: SeriesModel | None  # the same, where lags were not given
    _spikes: tuple[SpikeFinder | None, ...]  # of each sensor

    @public_call("Fitting")
    def fit_series(
        self,
        s: npt.ArrayLike,
        n_lags: int | str = "auto",
        delay: int | str | None = None,
        times: npt.ArrayLike | None = None,
    ) -> Self:
        """Train on the windows of a series.

        Parameters
        ----------
        s : array-like of shape (T,) or (T, k), or list of arrays
            Values in the order of time; NaN where missing. Columns are sensors of one system, and
            one map is learned of all of them. A list of arrays has several trajectories of one
            system: the map is learned from all of them, and forecasts go on from the last one.
            Both are for ``n_lags="auto"``, or a delay of at least 2. A list of pandas series, or of
            lists of different lengths, has trajectories, too; a list of lists of one length is an
            array. Trajectories without a known value are left out.
        n_lags : int or "auto", default="auto"
            Length of the windows. With "auto", maps with many kinds of windows are compared by how
            well they continue the series, and forecasts are the median of the good ones; `predict`
            is the best of them, or the map that the clean series was learned with. With a number,
            the estimator's own settings decide.
        delay : int or "auto", optional
            Steps between the values of a window, and from the last of them to the value that is
            predicted. By default 1 where `n_lags` is a number, otherwise found in the data.
        times : array-like of shape (T,), optional
            When the values were observed, if not at equal distances. They are brought to equal
            steps of their median distance, ``step_``, which forecasts have, too.

        Returns
        -------
        self
            With the attributes ``latent_`` (the clean series, gaps filled; without a number of lags
            the latest 4,000 values, which are learned from), ``noise_std_``,
            ``signal_to_noise_``, ``noise_reason_`` (why noise was not treated, or not in
            forecasts; empty if it was), ``reader_share_`` (how much the pretrained reader has in
            forecasts, by steps ahead; None where noise is not treated),
            ``n_lags_``, ``delay_`` and ``step_``. Of several sensors the first three have a column,
            or a number, for each; of several trajectories ``latent_`` is the last one.

        Examples
        --------
        Without any settings:

        >>> import numpy as np
        >>> from rbfdiffnet import RBFDiffNetRegressor
        >>> from rbfdiffnet.datasets import mackey_glass
        >>> clean = mackey_glass(420, step=6.0)
        >>> model = RBFDiffNetRegressor(noise="auto").fit_series(clean[:400])
        >>> bool(np.abs(model.forecast(20) - clean[400:]).max() < 0.05), model.noise_std_
        (True, 0.0)

        Two sensors of one system, and two trajectories of it:

        >>> from rbfdiffnet.datasets import lorenz
        >>> one, other = lorenz(200), lorenz(120, start=(5.0, -3.0, 20.0))
        >>> model = RBFDiffNetRegressor().fit_series([one[:, :2], other[:100, :2]])
        >>> model.forecast(20).shape
        (20, 2)
        >>> bool(np.abs(model.forecast(20) - other[100:, :2]).max() < 1.0)
        True

        With windows of four values, and noise:

        >>> noisy = clean[:400] + 0.05 * np.random.default_rng(0).normal(size=400)
        >>> model = RBFDiffNetRegressor(noise="auto").fit_series(noisy, n_lags=4)
        >>> bool(0.04 < model.noise_std_ < 0.06), model.latent_.shape
        (True, (400,))
        """
        check_noise(self.noise, self.basis)
        chosen = not isinstance(n_lags, str) or n_lags != "auto"
        if n_lags is None or (chosen and isinstance(n_lags, str)):
            raise ValueError(f'n_lags must be a positive integer or "auto", got {n_lags!r}.')
        if chosen:
            check_number("n_lags", n_lags, at_least=1, integer=True)
        delay = None if isinstance(delay, str) and delay == "auto" else delay
        if delay is not None:
            check_number("delay", delay, at_least=1, integer=True)
            delay = int(delay)  # small types of NumPy overflow
        by_committee = not chosen or (delay or 1) > 1
        values = _check_trajectories(s, by_committee)
        step = 1.0
        if times is not None:
            if len(values) > 1 or values[0].ndim > 1:
                raise ValueError("times are for one series of shape (T,), from one sensor.")
            even, step = to_equal_steps(_check_times(times, values[0]), values[0])
            values = [even]
        if by_committee:
            self._fit_committee(values, int(n_lags) if chosen else None, delay)
        else:
            self._fit_windows(values[0], int(n_lags))
        self.step_ = step
        return self

    def _fit_committee(self, values: list[Array], n_lags: int | None, delay: int | None) -> None:
        """Learn maps with windows of many kinds; the best of them becomes the network."""
        columns = [own[:, None] if own.ndim == 1 else own for own in values]
        found = learn_series(columns, self.noise, n_lags, delay)
        best, cleaner = found.committee.best_map, found.trajectory
        if n_lags is None and delay is None:
            best = found.best_map
        self._rolls = self._tracker = self._series = None
        if cleaner is not None and found.filters:
            best = LaggedMap(cleaner.network, 1, cleaner.penalty)
            self._tracker = found.tracker
        else:
            self._series = found
        self._adopt(best.network, best.penalty, found.committee.error)
        self._spikes = found.spikes
        self._history = found.observed if values[-1].ndim > 1 else found.observed[:, 0]
        shown = found.aside or found
        noise = shown.noise
        ratio = np.var(shown.latent, axis=0) / np.where(noise > 0.0, noise, np.nan) ** 2
        ratio = np.where(noise > 0.0, ratio, np.inf)
        one = values[-1].ndim == 1
        self.latent_ = shown.latent[:, 0] if one else shown.latent
        self.noise_std_ = float(noise[0]) if one else noise
        self.signal_to_noise_ = float(ratio[0]) if one else ratio
        self.noise_reason_ = found.reason
        self.reader_share_ = found.share
        self.n_lags_, self.delay_ = best.n_lags, best.delay

    def _fit_windows(self, values: Array, n_lags: int) -> None:
        """Fit the network to windows of consecutive values."""
        known = np.isfinite(values)
        if values.size <= n_lags or not are_known(known, n_lags + 1).any():
            raise ValueError(
                f"The series has no {n_lags + 1} values in a row: {values.size} values, "
                f"{int(known.sum())} of them known. Use fewer lags, or more data."
            )
        found, reason = self._learn(values, n_lags)
        self._rolls = self._tracker = self._series = None
        self._spikes = (None if found is None else found.spikes,)
        values = without_spikes(values[:, None], self._spikes)[:, 0]
        known = np.isfinite(values)
        if found is not None and found.on:
            self._adopt(found.network, found.penalty, found.process, found.width)
            self._tracker = found.tracker(values)
        else:
            X, y = known_rows(values, known, n_lags)
            self._fit_rows(X, y)
            if found is not None and _is_outdone(self.network_, found, X, y):
                self._rolls = _choose_to_roll(self.network_, found.network, fill_missing(values))
                self._adopt(found.network, found.penalty, found.process, found.width)
        self.latent_ = fill_missing(values).copy() if found is None else found.latent
        self._history = self.latent_ if self._tracker is None else values
        self.noise_std_ = 0.0 if found is None else found.noise
        self.signal_to_noise_ = np.inf if found is None else found.signal_to_noise
        self.noise_reason_ = reason
        self.reader_share_ = None
        self.n_lags_, self.delay_ = n_lags, 1

    @public_call("Filtering")
    def predict_noisy(self, X: npt.ArrayLike) -> Array:
        """Predict the clean value after noisy windows.

        Where noise was found, `predict` expects clean windows, such as those of ``latent_``. Here
        they are filtered first. Rows that go on where the one before ends, as consecutive windows
        of one series do, are filtered as one history: each profits from the values before it.

        Parameters
        ----------
        X : array-like of shape (n, n_lags)
            Windows as they are observed, oldest lag first; where noise was found, NaN is no
            observation.

        Returns
        -------
        ndarray of shape (n,)

        Examples
        --------
        >>> import numpy as np
        >>> from rbfdiffnet import RBFDiffNetRegressor
        >>> from rbfdiffnet.datasets import mackey_glass
        >>> from rbfdiffnet.series.windows import lag_windows
        >>> clean = mackey_glass(400, step=6.0)
        >>> noisy = clean + 0.05 * np.random.default_rng(0).normal(size=400)
        >>> model = RBFDiffNetRegressor(noise="auto").fit_series(noisy, n_lags=4)
        >>> X, _ = lag_windows(noisy, 4)
        >>> errors = [np.abs(f(X) - clean[4:]).mean() for f in (model.predict_noisy, model.predict)]
        >>> bool(errors[0] < errors[1])
        True
        """
        check_is_fitted(self)
        series, tracker = self._series, self._tracker
        if series is not None and series.trajectory is not None and self.delay_ == 1:
            enough = series.trajectory.network.n_lags <= self.n_lags_
            tracker = series.tracker if enough else None
        if tracker is None:
            if series is not None and any(series.cleaners):
                raise ValueError(
                    f"Windows of {self.n_lags_} values {self.delay_} steps apart are too little to "
                    "find the noise in; use forecast with a history."
                )
            return np.asarray(self.predict(X))  # type: ignore[attr-defined]
        inputs: Array = validate_data(
            self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan"
        )
        _check_nearness(inputs, self._history)
        return tracker.predict(inputs)

    @public_call("Forecasting")
    def forecast(
        self,
        h: int,
        history: npt.ArrayLike | None = None,
        quantiles: Sequence[float] | None = None,
    ) -> Array:
        """Forecast a series, noise in its latest values filtered out.

        Parameters
        ----------
        h : int
            Number of steps.
        history : array-like of shape (T,) or (T, k), optional
            Values up to now, as they are observed, NaN where missing; the training series if
            omitted.
        quantiles : sequence of float, optional
            Quantiles of the clean series' distribution, between 0 and 1. After
            ``fit_series(s)`` they come from errors on the last part of the series. With a given
            number of lags there is a distribution only where noise was found; otherwise all
            quantiles are the forecast.

        Returns
        -------
        ndarray of shape (h,) or (h, n_quantiles); of k sensors (h, k) or (h, k, n_quantiles)
            Medians, or the quantiles.

        Examples
        --------
        >>> import numpy as np
        >>> from rbfdiffnet import RBFDiffNetRegressor
        >>> from rbfdiffnet.datasets import mackey_glass
        >>> clean = mackey_glass(410, step=6.0)
        >>> noisy = clean[:400] + 0.05 * np.random.default_rng(0).normal(size=400)
        >>> model = RBFDiffNetRegressor(noise="auto").fit_series(noisy, n_lags=4)
        >>> bool(np.abs(model.forecast(10) - clean[400:]).mean() < 0.03)
        True
        """
        check_is_fitted(self)
        check_number("h", h, at_least=1, below=10**9, integer=True)
        if not hasattr(self, "_history"):
            raise ValueError("forecast needs a model of a series: use fit_series, not fit.")
        series = self._series
        fewest: int = self.n_features_in_ if series is None else series.committee.reach
        values = self._history
        if history is not None:
            values = _check_series(history, "The history")
            if values.shape[1:] != self._history.shape[1:]:
                raise ValueError(
                    f"The history has shape {values.shape}, and the series that was learned "
                    f"{self._history.shape}; give as many sensors."
                )
        if len(values) < fewest:
            raise ValueError(f"The history has {len(values)} values; {fewest} are needed.")
        if not np.isfinite(values).any(axis=0).all():
            raise ValueError("The history has no known value.")
        _check_nearness(values, self._history)
        if history is not None and series is None:
            values = without_spikes(values[:, None], self._spikes)[:, 0]
        levels = as_floats("quantiles", [0.5] if quantiles is None else quantiles)
        if levels.ndim != 1:
            raise ValueError(f"quantiles must be a sequence such as [0.1, 0.9], got {quantiles}.")
        if not np.all((levels >= 0.0) & (levels <= 1.0)):
            raise ValueError(f"quantiles must lie between 0 and 1, got {quantiles}.")
        if series is not None:
            columns = None if history is None else values.reshape(len(values), -1)
            paths = series.forecast(columns, h, levels)
            paths = paths[:, 0] if values.ndim == 1 else paths
        elif self._tracker is None:
            path = _roll(self._rolls or self.network_, fill_missing(values), h)
            paths = np.repeat(path[:, None], levels.size, axis=1)
        else:
            paths = self._tracker.forecast(values, h, levels)
        return paths[..., 0] if quantiles is None else paths

    def _learn(self, values: Array, n_lags: int) -> tuple[Trajectory | None, str]:
        """Return what was learned of the noise, or None, and why no noise is treated."""
        if self.noise is None or self.noise == 0.0:
            return None, "noise is not treated"
        try:
            given = None if self.noise == "auto" else float(self.noise)
            found = learn_trajectory(values, n_lags, given)
        except (ValueError, np.linalg.LinAlgError) as error:
            if self.noise != "auto":
                raise
            return None, str(error)
        return found, found.reason

    @abstractmethod
    def _fit_rows(self, X: Array, y: Array) -> Any:
        """Fit the estimator to rows."""

    @abstractmethod
    def _adopt(
        self, network: Network, penalty: float, error: float, width: float | None = None
    ) -> None:
        """Take over a network that was learned elsewhere, and its error."""


def _is_outdone(network: Network, found: Trajectory, X: Array, y: Array) -> bool:
    """Tell whether the map of a series that needs no cleaning beats the network by far."""
    error = float(np.var(y - network.predict(X)[:, 0]))
    return found.blurred_error**2 < _MUCH_BETTER * error


def _choose_to_roll(first: Network, second: Network, values: Array) -> Network:
    """Return the one of two networks whose roll-outs stay closer to the end of a series."""
    n_lags = second.n_lags
    held = min(_ROLLED, (values.size - n_lags) // 2)
    h = min(_HORIZON, held)
    origins = np.arange(values.size - held, values.size - h + 1)
    histories = values[origins[:, None] - np.arange(n_lags, 0, -1)]
    ahead = values[origins[:, None] + np.arange(h)]
    errors = [np.abs(_roll(net, histories, h) - ahead).mean() for net in (first, second)]
    return first if errors[0] < errors[1] else second


def _roll(network: Network, histories: Array, h: int) -> Array:
    """Forecast by feeding predictions back."""
    n_lags = network.metric.size
    return forecast_recursive(lambda X: network.predict(X)[:, 0], histories, h, n_lags=n_lags)


def _check_trajectories(s: Any, by_committee: bool) -> list[Array]:
    """Return one series or several as arrays, or raise an error that says what is wrong."""
    several = isinstance(s, (list, tuple)) and bool(s) and all(_is_list(own) for own in s)
    if several and all(isinstance(own, (list, tuple)) for own in s):
        several = len({len(own) for own in s}) > 1  # else rows of one array
    values = [_check_series(own) for own in (s if several else [s])]
    if several:
        values = [own for own in values if np.isfinite(own).any()]
        if not values:
            raise ValueError("None of the trajectories has a known value.")
    if not by_committee and (len(values) > 1 or values[0].ndim > 1):
        raise ValueError(
            "Several sensors or trajectories are for n_lags='auto', or for a delay of at least 2; "
            "with windows of consecutive values, give one series of shape (T,)."
        )
    if len({own.shape[1:] for own in values}) > 1:
        shapes = ", ".join(str(own.shape) for own in values)
        raise ValueError(f"Trajectories must have the same sensors; got shapes {shapes}.")
    return values


def _is_list(values: Any) -> bool:
    """Tell whether something has values of its own: an array, a pandas series, or a list."""
    return isinstance(values, (list, tuple)) or getattr(values, "ndim", 0) > 0


def _check_series(s: npt.ArrayLike, name: str = "The series") -> Array:
    """Return a series (T,) or (T, k), or raise an error that says what is wrong with it."""
    values = as_floats(name, s)
    if values.ndim not in (1, 2) or (values.ndim == 2 and not values.shape[1]):
        shape = values.shape
        raise ValueError(f"{name} must have shape (T,), or (T, k) for k sensors; got {shape}.")
    if np.isinf(values).any():
        position = int(np.argwhere(np.isinf(values))[0, 0])
        raise ValueError(f"{name} is infinite at position {position}; use NaN where missing.")
    check_size(name, values)
    return values


def _check_nearness(values: Array, learned: Array) -> None:
    """Raise ValueError if values are so large beside those learned that squares overflow."""
    size = np.nanmax(np.abs(learned)) or 1.0
    if np.any(np.abs(values) * 1e-100 > size):
        raise ValueError(
            "The history is more than 1e100 times as large as the series that was learned; "
            "rescale it, or learn from it."
        )


def _check_times(times: npt.ArrayLike, values: Array) -> Array:
    """Return times as numbers that rise, or raise an error that says what is wrong with them."""
    at = as_floats("times", times)
    if at.shape != values.shape:
        raise ValueError(f"times must have shape {values.shape}, got {at.shape}.")
    check_size("times", at)
    wrong = np.flatnonzero(~(np.diff(at) > 0.0))
    if wrong.size:
        position = int(wrong[0]) + 1
        raise ValueError(
            f"times must rise, but {at[position]} at position {position} comes after "
            f"{at[position - 1]}."
        )
    return at


def series_of(X: Array, y: Array) -> Array | None:
    """Return the series that consecutive windows and the values after them were cut from."""
    whole = np.concatenate([X, y[:, None]], axis=1)
    if not np.array_equal(whole[1:, :-1], whole[:-1, 1:]):
        return None
    return np.concatenate([X[0], y])
