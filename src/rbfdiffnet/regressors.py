"""The networks as scikit-learn regressors."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_random_state,
    validate_data,
)

from rbfdiffnet.network.basis import BASES
from rbfdiffnet.network.centers import CENTERS, Placement
from rbfdiffnet.network.losses import LOSSES, LossFunction
from rbfdiffnet.network.network import Network
from rbfdiffnet.network.objective import PENALTIES
from rbfdiffnet.network.train import METRICS, Settings, fit_network
from rbfdiffnet.network.trainers import SOLVERS
from rbfdiffnet.network.widths import WIDTH_RULES, WidthRule
from rbfdiffnet.noise.regressor import SeriesMixin, series_of
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.checks import (
    Noise,
    as_floats,
    check_choice,
    check_flag,
    check_noise,
    check_number,
    check_size,
    is_number,
)
from rbfdiffnet.support.parallel import one_blas_thread
from rbfdiffnet.support.progress import show_progress

Alpha = float | tuple[float, float] | Literal["auto"]

_OF_A_SERIES = (
    *("_history", "latent_", "noise_std_", "signal_to_noise_", "noise_reason_"),
    *("n_lags_", "delay_", "step_", "reader_share_"),
)
_MANY_ROWS = 50_000  # from here on BLAS gains from several threads
_MOST_ORDERS, _MOST_STARTS = 100, 100_000


class NetworkRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator, ABC):
    """A scikit-learn regressor around a `Network`; subclasses supply its settings."""

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
        with np.errstate(invalid="ignore"):  # scikit-learn adds up all values, also infinite ones
            inputs, targets = validate_data(
                self, X, y, multi_output=True, y_numeric=True, dtype=np.float64, order="C"
            )
        targets = np.asarray(targets, dtype=np.float64)
        if np.isnan(targets).any():  # written as text, in which scikit-learn does not look for it
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
        one_thread = one_blas_thread() if n_rows < _MANY_ROWS else nullcontext()
        with show_progress("Fitting"), one_thread:
            fit = fit_network(inputs, targets.reshape(n_rows, -1), weight, settings)
        if not fit.solution.converged:
            warnings.warn(
                f"training stopped after {fit.solution.n_iter} iterations before it had converged; "
                "raise max_iter, or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._single_output = targets.ndim == 1
        self._set_network(fit.network)
        self.alpha_ = (fit.alpha, fit.alpha_linear)
        self.width_factor_ = fit.width_factor
        self.loss_ = fit.loss
        self.objective_ = fit.solution.value
        self.n_iter_ = fit.solution.n_iter
        self.converged_ = fit.solution.converged
        return self

    def _set_network(self, network: Network) -> None:
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
        with np.errstate(over="ignore", invalid="ignore"):
            prediction = self.network_.predict(inputs)
        if not np.isfinite(prediction).all():
            raise ValueError(
                "X is so far from the inputs of training that predictions overflow; train on "
                "inputs of this size, or rescale X"
            )
        return prediction[:, 0] if self._single_output else prediction

    @abstractmethod
    def _settings(self, n_inputs: int) -> Settings:
        """Check the parameters and translate them."""


class RBFDiffNetRegressor(SeriesMixin, NetworkRegressor):
    r"""Differential radial basis function network.

    .. math::

        f(x) = w_0 + \lambda \cdot s + \sum_{j=1}^{c} w_j \Big( a_0 \varphi_j(x)
        + \sum_{k=1}^{\nu} \sum_{i=1}^{d} a_{ki}\,
        \frac{\partial^k \varphi_j(x)}{\partial x_i^k} \Big), \qquad
        \varphi_j(x) = e^{-\beta_j \lVert x - \mu_j \rVert^2}

    where s are the lags among the inputs x, and :math:`w, a, \lambda, w_0` are trained together: a
    linear model plus a differential operator, learned, applied to a radial basis function network.

    Against a plain RBF network or kernel ridge regression it needs few centers, because
    the linear part takes the bulk and the operator shapes the rest, and it shows what it learned:
    one weight for each lag and each derivative. It is the wrong tool where the relation is a
    step or a tree of rules. By default the width, the penalties, the metric and the robustness of
    the loss are chosen from the training data; `paper` gives the settings of the paper instead.

    Parameters
    ----------
    n_centers : int, default=28
        Number c of basis functions; fewer if there are fewer distinct rows.
    order : int, default=1
        Highest derivative :math:`\nu`, at least 1.
    n_lags : int, optional
        The last ``n_lags`` columns of X are lags and enter the linear part; all of them by
        default.
    include_order_zero : bool, default=True
        Whether the operator contains the basis functions themselves, :math:`a_0`.
    fit_intercept : bool, default=True
        Whether there is a bias :math:`w_0`. Without one X and y should have mean zero.
    basis : str, default="gaussian"
        Basis functions, by a name in `network.basis.BASES`. With ``noise``, Gaussians only.
    centers : str, callable or array-like of shape (c, d), default="kmeans"
        A name in `network.centers.CENTERS` ("kmeans", "som": self-organizing map, "forward":
        forward selection by leave-one-out error), a function like those, or the centers.
    width : str or callable, default="cluster"
        Rule for the widths: a name in `network.widths.WIDTH_RULES` ("cluster", "max_distance",
        "nearest", "nearest_shared"), or a function like those.
    width_factor : float or "auto", default="auto"
        Factor for all widths.
    n_nearest : int, default=10
        Number of neighbors for the two "nearest" rules.
    metric : {"learned", "standard", "common"} or array-like of shape (d,), default="learned"
        How inputs are scaled inside the basis functions: each by its spread and by how nonlinear
        its effect is (inputs without nonlinear effect are left out there), each by its spread, or
        all by one number, which is the paper's plain distance. Numbers, not negative, multiply the
        inputs divided by their spread; 0 leaves one out.
    solver : str, default="varpro"
        A name in `network.trainers.SOLVERS`, to which others can be added: "varpro": variable
        projection, "als": alternating least squares, "bfgs": BFGS over all weights from the paper's
        start.
    loss : {"auto", "squared", "huber", "absolute", "quantile"} or callable, default="auto"
        "auto" takes Huber's loss unless it would bias the mean prediction, then the squared one.
        A callable gets ``(y_true, y_pred)`` and returns the loss of every row and its derivative
        by ``y_pred``; it is minimized by BFGS from the least-squares solution.
    quantile : float, default=0.5
        Level for the quantile loss.
    penalty : {"ridge", "lasso"}, default="ridge"
        See `rbfdiffnet.network.objective`.
    alpha : float, pair of floats or "auto", default="auto"
        Strength of the penalty on the RBF part and on :math:`\lambda` (one number: both), for
        standardized data and the mean loss. "auto" chooses by leave-one-out error (ridge) or by
        five-fold cross-validation of the plain network (lasso).
    n_starts : int, default=1
        Number of starts; the objective has several minima, and the lowest found is kept.
    max_iter : int, optional
        Most iterations of a start; by default 300 (varpro), 2000 (als) or 3000 (bfgs).
    tol : float, default=1e-6
        Relative size of the gradient (als: of the last gain) at which training ends.
    noise : None, "auto" or float, default=None
        Noise in the observations, and so in the lags: not treated; found, and treated where
        there is any; or of this standard deviation. If treated, the network is the map of
        clean windows, learned together with the clean series (`rbfdiffnet.noise`), with its own
        centers, widths and penalty: it is a plain RBF network plus a linear part. The rows
        must be consecutive windows of one series; `fit_series` makes them.
    random_state : int, RandomState instance or None, default=None
        Seed of K-Means and of the starts. None means 0: the same data gives the same network.

    Attributes
    ----------
    network_ : Network
        The trained network, a frozen dataclass of arrays.
    centers_ : ndarray of shape (c, d)
        Centers in the units of X (NaN for inputs that are left out of the basis functions).
    alpha_ : tuple of two floats
        Strength of the penalty on the RBF part and on the linear part.
    width_factor_ : float
    loss_ : str
        The loss that was used.
    objective_ : float
        Objective at the end.
    n_iter_ : int
    converged_ : bool
    latent_ : ndarray of shape (T,)
        After `fit_series`: the clean series.
    noise_std_ : float
        After `fit_series`: standard deviation of the noise; 0 where none was found or sought.
    signal_to_noise_ : float
        After `fit_series`: variance of the clean series over that of the noise.
    noise_reason_ : str
        After `fit_series`: why noise was not treated, or not in forecasts; empty where it was.
    n_lags_, delay_ : int
        After `fit_series`: values in a window, and steps between them.
    step_ : float
        After `fit_series`: time between two values.
    reader_share_ : ndarray of shape (H,) or None
        After `fit_series`: the share of the pretrained reader in forecasts, by steps ahead; None
        where it has none, as for series whose noise is not treated.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only where X has column names that are all strings.

    See Also
    --------
    RBFNetworkRegressor : The plain and the normalized RBF network.

    References
    ----------
    K. S. Gyamfi, J. Brusey, E. Gaura, "Differential radial basis function network for sequence
    modelling", Expert Systems with Applications 189 (2022) 115982.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet import RBFDiffNetRegressor
    >>> from rbfdiffnet.datasets import logistic_map
    >>> from rbfdiffnet.series.windows import lag_windows
    >>> X, y = lag_windows(logistic_map(500), n_lags=2)
    >>> model = RBFDiffNetRegressor().fit(X[:400], y[:400])
    >>> bool(np.abs(model.predict(X[400:]) - y[400:]).mean() < 0.001)
    True
    """

    def __init__(
        self,
        n_centers: int = 28,
        *,
        order: int = 1,
        n_lags: int | None = None,
        include_order_zero: bool = True,
        fit_intercept: bool = True,
        basis: str = "gaussian",
        centers: str | Placement | npt.ArrayLike = "kmeans",
        width: str | WidthRule = "cluster",
        width_factor: float | Literal["auto"] = "auto",
        n_nearest: int = 10,
        metric: str | npt.ArrayLike = "learned",
        solver: str = "varpro",
        loss: str | LossFunction = "auto",
        quantile: float = 0.5,
        penalty: str = "ridge",
        alpha: Alpha = "auto",
        n_starts: int = 1,
        max_iter: int | None = None,
        tol: float = 1e-6,
        noise: Noise = None,
        random_state: Any = None,
    ) -> None:
        self.n_centers = n_centers
        self.order = order
        self.n_lags = n_lags
        self.include_order_zero = include_order_zero
        self.fit_intercept = fit_intercept
        self.basis = basis
        self.centers = centers
        self.width = width
        self.width_factor = width_factor
        self.n_nearest = n_nearest
        self.metric = metric
        self.solver = solver
        self.loss = loss
        self.quantile = quantile
        self.penalty = penalty
        self.alpha = alpha
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol
        self.noise = noise
        self.random_state = random_state

    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Train the network; see `RBFNetworkRegressor.fit`. With ``noise``, see `fit_series`."""
        check_noise(self.noise, self.basis)
        if not self.noise:  # None or 0
            return self._fit_rows(X, y, sample_weight)
        inputs, targets = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        series = series_of(inputs, np.asarray(targets, dtype=np.float64))
        if series is None or sample_weight is not None:
            raise ValueError(
                "With noise, rows must be consecutive windows of one series, each the one before "
                "moved on by a step, without weights; use fit_series, or noise=None."
            )
        self.fit_series(series, inputs.shape[1])
        validate_data(self, X, skip_check_array=True)  # for the names of its columns
        return self

    @classmethod
    def paper(cls, order: int = 2, **changes: Any) -> Self:
        """Return the network of the paper, trained as in the paper.

        No order-zero term and no bias (the data should have mean zero), K-Means centers, widths
        from the clusters, plain distances, and BFGS on squared error plus the lasso penalty, its
        strength by cross-validation.

        Parameters
        ----------
        order : int, default=2
            Highest derivative: 2 in the paper's first experiment, 1 in its second.
        **changes
            Other parameters, which override these.

        Returns
        -------
        RBFDiffNetRegressor

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNetRegressor
        >>> model = RBFDiffNetRegressor.paper(order=2, n_centers=8)
        >>> model.solver, model.penalty
        ('bfgs', 'lasso')
        """
        settings: dict[str, Any] = {
            "order": order,
            "include_order_zero": False,
            "fit_intercept": False,
            "width_factor": 1.0,
            "metric": "common",
            "solver": "bfgs",
            "loss": "squared",
            "penalty": "lasso",
        }
        return cls(**{**settings, **changes})

    def _fit_rows(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        self._tracker = self._series = None
        for name in _OF_A_SERIES:
            self.__dict__.pop(name, None)  # of a series fitted earlier
        return super().fit(X, y, sample_weight)

    def _adopt(
        self, network: Network, penalty: float, error: float, width: float | None = None
    ) -> None:
        self._set_network(network)
        self._single_output = network.y_shift.size == 1
        self.n_features_in_ = network.n_lags
        self.__dict__.pop("feature_names_in_", None)
        self.alpha_ = (penalty, 0.0)
        self.width_factor_ = width if width else float(np.sqrt(0.5 / network.beta[0]))
        self.loss_ = "squared"
        self.objective_ = error**2
        self.n_iter_ = 0
        self.converged_ = True

    def _settings(self, n_inputs: int) -> Settings:
        if not callable(self.loss):
            check_choice("loss", self.loss, ("auto", *LOSSES))
        check_choice("solver", self.solver, SOLVERS)
        check_number("order", self.order, at_least=1, below=_MOST_ORDERS, integer=True)
        check_number("n_starts", self.n_starts, at_least=1, below=_MOST_STARTS, integer=True)
        check_number("quantile", self.quantile, above=0.0, below=1.0)
        check_number("tol", self.tol, at_least=0.0)
        if self.max_iter is not None:
            check_number("max_iter", self.max_iter, at_least=1, integer=True)
        if self.n_lags is not None:
            check_number("n_lags", self.n_lags, at_least=0, integer=True)
            if self.n_lags > n_inputs:
                raise ValueError(
                    f"n_lags={self.n_lags}, but X has only {n_inputs} columns; n_lags says how "
                    "many of the last columns are lags"
                )
        return Settings(
            order=self.order,
            n_lags=self.n_lags,
            order_zero=check_flag("include_order_zero", self.include_order_zero),
            intercept=check_flag("fit_intercept", self.fit_intercept),
            metric=_check_metric(self.metric, n_inputs),
            solver=self.solver,
            loss=self.loss,
            quantile=self.quantile,
            n_starts=self.n_starts,
            max_iter=self.max_iter,
            tol=self.tol,
            **_common_settings(self, n_inputs),
        )


class RBFNetworkRegressor(NetworkRegressor):
    r"""Plain radial basis function network, unnormalized or normalized.

    .. math::

        f(x) = w_0 + \sum_{j=1}^{c} w_j \varphi_j(x) \qquad \text{or} \qquad
        f(x) = w_0 + \sum_{j=1}^{c} w_j \frac{\varphi_j(x)}{\sum_i \varphi_i(x)}

    where :math:`\varphi_j(x) = \exp(-\beta_j \lVert x - \mu_j \rVert^2)`. Given the centers the
    weights follow in closed form (ridge) or by coordinate descent (lasso). Far from all centers
    the first returns to :math:`w_0`, the second to the weight of the nearest center.

    Parameters
    ----------
    n_centers : int, default=28
        Number c of basis functions; fewer if there are fewer distinct rows.
    normalize : bool, default=False
        Whether basis functions are divided by their sum.
    basis, centers, width, n_nearest
        As for `RBFDiffNetRegressor`.
    width_factor : float or "auto", default=1.0
        Factor for all widths; "auto" chooses by leave-one-out error, and mostly predicts better.
    metric : {"standard", "common"}, default="standard"
        Inputs are divided by their spread, or all by one number.
    penalty : {"ridge", "lasso"}, default="ridge"
    alpha : float or "auto", default="auto"
        Strength of the penalty, for standardized data; "auto" chooses by leave-one-out error
        (ridge) or five-fold cross-validation (lasso, for each output).
    random_state : int, RandomState instance or None, default=None
        Seed of K-Means. None means 0.

    Attributes
    ----------
    network_, centers_, alpha_, width_factor_, objective_, n_features_in_, feature_names_in_
        As for `RBFDiffNetRegressor`.

    See Also
    --------
    RBFDiffNetRegressor : The differential network, with a linear part.

    References
    ----------
    D. Broomhead, D. Lowe, "Multivariable functional interpolation and adaptive networks",
    Complex Systems 2 (1988) 321-355.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet import RBFNetworkRegressor
    >>> X = np.linspace(-3.0, 3.0, 200)[:, None]
    >>> y = np.sin(2.0 * X.ravel())
    >>> round(RBFNetworkRegressor(12, width_factor="auto").fit(X, y).score(X, y), 3)
    1.0
    """

    def __init__(
        self,
        n_centers: int = 28,
        *,
        normalize: bool = False,
        basis: str = "gaussian",
        centers: str | Placement | npt.ArrayLike = "kmeans",
        width: str | WidthRule = "cluster",
        width_factor: float | Literal["auto"] = 1.0,
        n_nearest: int = 10,
        metric: str = "standard",
        penalty: str = "ridge",
        alpha: float | Literal["auto"] = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_centers = n_centers
        self.normalize = normalize
        self.basis = basis
        self.centers = centers
        self.width = width
        self.width_factor = width_factor
        self.n_nearest = n_nearest
        self.metric = metric
        self.penalty = penalty
        self.alpha = alpha
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # One constant for each cluster is little for a linear target in many dimensions.
        tags.regressor_tags.poor_score = self.normalize is True
        return tags

    def _settings(self, n_inputs: int) -> Settings:
        check_choice("metric", self.metric, ("standard", "common"))
        return Settings(
            order=0,
            n_lags=0,
            normalize=check_flag("normalize", self.normalize),
            metric=self.metric,
            **_common_settings(self, n_inputs),
        )


def _centers_in_data_units(network: Network) -> Array:
    """Return the centers (c, d) in the units of X, NaN for inputs without a metric."""
    active = network.metric > 0
    result = np.full((len(network.centers), active.size), np.nan)
    scale, shift = network.x_scale[active], network.x_shift[active]
    result[:, active] = network.centers / network.metric[active] * scale + shift
    return result


def _common_settings(estimator: Any, n_inputs: int) -> dict[str, Any]:
    """Check and translate the parameters that both regressors have."""
    check_number("n_centers", estimator.n_centers, at_least=1, integer=True)
    check_number("n_nearest", estimator.n_nearest, at_least=1, integer=True)
    check_choice("basis", estimator.basis, BASES)
    if not callable(estimator.width):
        check_choice("width", estimator.width, WIDTH_RULES)
    check_choice("penalty", estimator.penalty, PENALTIES)
    centers: str | Array | Placement = estimator.centers
    if isinstance(centers, str):
        check_choice("centers", centers, CENTERS)
    elif not callable(centers):
        centers = as_floats("centers", centers)
        good = centers.ndim == 2 and centers.shape[1] == n_inputs and len(centers) > 0
        if not good or not np.all(np.isfinite(centers)):
            raise ValueError(
                f"centers must be one of {', '.join(CENTERS)}, a function, or a finite array with "
                f"{n_inputs} columns like X; got shape {centers.shape}"
            )
    factor = None
    if not _is_auto(estimator.width_factor):
        check_number("width_factor", estimator.width_factor, above=1e-50, below=1e50)
        factor = float(estimator.width_factor)
    alpha, alpha_linear = _check_alpha(estimator.alpha)
    seed = 0
    if estimator.random_state is not None:
        try:
            seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
        except (TypeError, ValueError) as error:
            raise ValueError(f"random_state makes no seed: {error}") from error
    return {
        "n_centers": estimator.n_centers,
        "basis": estimator.basis,
        "centers": centers,
        "width": estimator.width,
        "width_factor": factor,
        "n_nearest": estimator.n_nearest,
        "penalty": estimator.penalty,
        "alpha": alpha,
        "alpha_linear": alpha_linear,
        "seed": seed,
    }


def _check_metric(metric: Any, n_inputs: int) -> str | Array:
    """Return the name of a metric, or its numbers as an array."""
    if isinstance(metric, str):
        check_choice("metric", metric, METRICS)
        return metric
    numbers = as_floats("metric", metric)
    good = numbers.shape == (n_inputs,) and bool(np.all((numbers <= 1e50) & (numbers >= 0.0)))
    if not good or not np.any(numbers > 0.0):
        raise ValueError(
            f"metric must be one of {', '.join(METRICS)} or {n_inputs} numbers that are not "
            f"negative, huge, nor all zero, one for each column of X; got {metric!r}"
        )
    return numbers


def _check_alpha(alpha: Any) -> tuple[float | None, float | None]:
    """Return the strengths of the RBF part and of the linear part; None stands for "auto"."""
    if _is_auto(alpha):
        return None, None
    pair = tuple(alpha) if isinstance(alpha, (tuple, list)) else (alpha, alpha)
    if len(pair) != 2:
        raise ValueError(f"alpha must be a number, a pair of numbers or 'auto'; got {alpha!r}")
    for value in pair:
        check_number("alpha", value, at_least=0.0)
    return float(pair[0]), float(pair[1])


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"
