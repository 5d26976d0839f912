"""What the regressors share: checking, fitting and predicting, by scikit-learn's conventions."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from rbfdiffnet.network.basis import Array
from rbfdiffnet.network.network import Network
from rbfdiffnet.network.training import Settings, fit_network
from rbfdiffnet.support.checks import as_floats, check_size, is_number
from rbfdiffnet.support.threads import one_blas_thread

__all__ = ["NetworkRegressor"]

_MANY_ROWS = 50_000


class NetworkRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator, ABC):
    """A scikit-learn regressor around a `Network`; subclasses say with which settings."""

    network_: Network

    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Train the network.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Inputs. Lags come last, oldest first.
        y : array-like of shape (n,) or (n, m)
            Targets. Several outputs share the centers and the differential operator.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, not negative. Only their ratios matter, and a weight of 3 gives the
            same network as the row three times.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from rbfdiffnet import RBFDiffNetRegressor
        >>> X = np.linspace(-1.0, 1.0, 50)[:, None]
        >>> model = RBFDiffNetRegressor(5).fit(X, np.sin(3.0 * X.ravel()))
        >>> model.centers_.shape, model.converged_
        ((5, 1), True)
        """
        inputs: Array
        with np.errstate(invalid="ignore"):  # it adds up whatever there is
            inputs, targets = validate_data(
                self, X, y, multi_output=True, y_numeric=True, dtype=np.float64, order="C"
            )
        targets = np.asarray(targets, dtype=np.float64)
        if np.isnan(targets).any():  # written as text, which is not looked into before
            raise ValueError("Input y contains NaN; leave out rows without a target.")
        check_size("X", inputs)
        check_size("y", targets)
        if sample_weight is not None and not is_number(sample_weight):
            sample_weight = as_floats("sample_weight", sample_weight)
        weight: Array = _check_sample_weight(
            sample_weight, inputs, dtype=np.float64, ensure_non_negative=True
        )
        if not np.any(weight > 0):
            raise ValueError("sample_weight is zero for every row: there is nothing to fit")
        n_rows, n_inputs = inputs.shape
        settings = self._settings(n_inputs)
        with one_blas_thread() if n_rows < _MANY_ROWS else nullcontext():
            fit = fit_network(inputs, targets.reshape(n_rows, -1), weight, settings)
        if not fit.solution.converged:
            warnings.warn(
                f"training stopped after {fit.solution.n_iter} iterations before it had converged; "
                "raise max_iter, or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._single_output = targets.ndim == 1
        self._take(fit.network)
        self.alpha_ = (fit.alpha, fit.alpha_linear)
        self.width_factor_ = fit.width_factor
        self.loss_ = fit.loss
        self.objective_ = fit.solution.value
        self.n_iter_ = fit.solution.n_iter
        self.converged_ = fit.solution.converged
        return self

    def _take(self, network: Network) -> None:
        self.network_ = network
        self.centers_ = _centers_in_data_units(network)

    def predict(self, X: npt.ArrayLike) -> Array:
        """Predict.

        Where noise was treated, the network is the map of clean windows: X holds such windows, as
        those of ``latent_``. For windows as they are observed there is ``predict_noisy``; the
        scores of cross-validation, which come from here, do not say how well that does.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n,) or (n, m)

        Examples
        --------
        >>> import numpy as np
        >>> from rbfdiffnet import RBFDiffNetRegressor
        >>> X = np.linspace(-1.0, 1.0, 50)[:, None]
        >>> y = np.column_stack([np.sin(3.0 * X.ravel()), X.ravel()])
        >>> model = RBFDiffNetRegressor(5).fit(X, y)
        >>> model.predict([[0.0], [0.5]]).round(2).shape
        (2, 2)
        """
        check_is_fitted(self)
        with np.errstate(invalid="ignore"):
            inputs: Array = validate_data(self, X, reset=False, dtype=np.float64)
        check_size("X", inputs)
        prediction = self.network_.predict(inputs)
        return prediction[:, 0] if self._single_output else prediction

    @abstractmethod
    def _settings(self, n_inputs: int) -> Settings:
        """Check the parameters and translate them."""


def _centers_in_data_units(network: Network) -> Array:
    active = network.metric > 0
    result = np.full((len(network.centers), active.size), np.nan)
    scale, shift = network.x_scale[active], network.x_shift[active]
    result[:, active] = network.centers / network.metric[active] * scale + shift
    return result
