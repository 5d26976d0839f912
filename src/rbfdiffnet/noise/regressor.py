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
from rbfdiffnet.series.gaps import fill_missing
from rbfdiffnet.series.recursion import forecast_recursive
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.checks import Noise, as_floats, check_noise, check_number, check_size
from rbfdiffnet.support.parallel import one_blas_thread
from rbfdiffnet.support.progress import show_progress

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

    @show_progress("Fitting")
    def fit_series(self, s: npt.ArrayLike, n_lags: int) -> Self:
        """Train the network on the windows of a series.

        Parameters
        ----------
        s : array-like of shape (T,)
            Equally spaced values; NaN where missing.
        n_lags : int
            Length of the windows.

        Returns
        -------
        self
            With the attributes ``latent_`` (the clean series, gaps filled), ``noise_std_``,
            ``signal_to_noise_`` and ``noise_reason_`` (why no noise was treated; empty if it was).

        Examples
        --------
        >>> import numpy as np
        >>> from rbfdiffnet import RBFDiffNetRegressor
        >>> from rbfdiffnet.datasets import mackey_glass
        >>> noisy = mackey_glass(400, step=6.0) + 0.05 * np.random.default_rng(0).normal(size=400)
        >>> model = RBFDiffNetRegressor(noise="auto").fit_series(noisy, n_lags=4)
        >>> bool(0.04 < model.noise_std_ < 0.06), model.latent_.shape
        (True, (400,))
        """
        check_noise(self.noise, self.basis)
        check_number("n_lags", n_lags, at_least=1, integer=True)
        values = _check_series(s)
        known = np.isfinite(values)
        if values.size <= n_lags or not are_known(known, n_lags + 1).any():
            raise ValueError(
                f"The series has no {n_lags + 1} values in a row: {values.size} values, "
                f"{int(known.sum())} of them known. Use fewer lags, or more data."
            )
        found, reason = self._learn(values, n_lags)
        self._rolls = self._tracker = None
        if found is not None and found.on:
            self._adopt(found)
            self._tracker = found.tracker(values)
        else:
            X, y = known_rows(values, known, n_lags)
            self._fit_rows(X, y)
            if found is not None and _is_outdone(self.network_, found, X, y):
                self._rolls = _choose_to_roll(self.network_, found.network, fill_missing(values))
                self._adopt(found)
        self.latent_ = fill_missing(values).copy() if found is None else found.latent
        self._history = self.latent_ if self._tracker is None else values
        self.noise_std_ = 0.0 if found is None else found.noise
        self.signal_to_noise_ = np.inf if found is None else found.signal_to_noise
        self.noise_reason_ = reason
        return self

    @show_progress("Filtering")
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
        if self._tracker is None:
            return np.asarray(self.predict(X))  # type: ignore[attr-defined]
        inputs: Array = validate_data(
            self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan"
        )
        with one_blas_thread():
            return self._tracker.predict(inputs)

    @show_progress("Forecasting")
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
        history : array-like of shape (T,), optional
            Values up to now, as they are observed, NaN where missing; the training series if
            omitted.
        quantiles : sequence of float, optional
            Quantiles of the clean series' distribution, between 0 and 1. Only where noise was
            found is there one; otherwise all quantiles are the forecast.

        Returns
        -------
        ndarray of shape (h,) or (h, n_quantiles)
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
        check_number("h", h, at_least=1, integer=True)
        if not hasattr(self, "_history"):
            raise ValueError("forecast needs a model of a series: use fit_series, not fit.")
        n_lags: int = self.n_features_in_
        values = self._history if history is None else _check_series(history)
        if values.size < n_lags:
            raise ValueError(f"The history has {values.size} values; {n_lags} are needed.")
        if not np.isfinite(values).any():
            raise ValueError("The history has no known value.")
        levels = as_floats("quantiles", [0.5] if quantiles is None else quantiles)
        if levels.ndim != 1 or not np.all((levels >= 0.0) & (levels <= 1.0)):
            raise ValueError(f"quantiles must lie between 0 and 1, got {quantiles}.")
        with one_blas_thread():
            if self._tracker is None:
                path = _roll(self._rolls or self.network_, fill_missing(values), h)
                paths = np.repeat(path[:, None], levels.size, axis=1)
            else:
                paths = self._tracker.forecast(values, h, levels)
        return paths[:, 0] if quantiles is None else paths

    def _learn(self, values: Array, n_lags: int) -> tuple[Trajectory | None, str]:
        """Return what was learned of the noise, or None, and why no noise is treated."""
        if self.noise is None or self.noise == 0.0:
            return None, "noise is not treated"
        try:
            with one_blas_thread():
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
    def _adopt(self, found: Trajectory) -> None:
        """Take over a network that was learned with a trajectory."""


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


def _check_series(s: npt.ArrayLike) -> Array:
    """Return a series as an array, or raise an error that says what is wrong with it."""
    values = as_floats("The series", s)
    if values.ndim != 1:
        raise ValueError(f"The series must be one-dimensional, got shape {values.shape}.")
    if np.isinf(values).any():
        position = int(np.argmax(np.isinf(values)))
        raise ValueError(f"The series is infinite at position {position}; use NaN where missing.")
    check_size("The series", values)
    return values


def series_of(X: Array, y: Array) -> Array | None:
    """Return the series that consecutive windows and the values after them were cut from."""
    whole = np.concatenate([X, y[:, None]], axis=1)
    if not np.array_equal(whole[1:, :-1], whole[:-1, 1:]):
        return None
    return np.concatenate([X[0], y])
