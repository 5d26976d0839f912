"""`RBFDiffNet` as a model of ``StatsForecast``, beside AutoETS and the others."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from rbfdiffnet import forecaster
from rbfdiffnet.adapters import require
from rbfdiffnet.forecasting.options import NAME
from rbfdiffnet.support.arrays import Array

require("statsforecast")

__all__ = ["RBFDiffNet"]

Levels = Sequence[float] | None


class RBFDiffNet:
    """Forecast single series with differential RBF networks, in statsforecast.

    It gives the numbers of `rbfdiffnet.RBFDiffNet` on each series alone, which is how statsforecast
    hands them out. `rbfdiffnet.RBFDiffNet` itself takes the whole frame at once: there series learn
    from each other, and many are faster.

    Parameters
    ----------
    season_length : int or sequence of int, default=1
        Steps in a season, or in a season and a longer one, as for `rbfdiffnet.RBFDiffNet`. A
        model of statsforecast sees neither dates nor a frequency.
    alias : str, default="RBFDiffNet"
        Name of the column of forecasts.
    **settings
        Those of `rbfdiffnet.RBFDiffNet` that need no dates, such as ``scope``, ``preset``,
        ``lags``, ``transforms``, ``lower`` and ``noise``. By default several forecasts are mixed,
        which takes some tenths of a second a series. ``scope="local"`` trains a single network
        instead: several times quicker, less accurate on most series, and with fitted values.

    Attributes
    ----------
    model_ : rbfdiffnet.RBFDiffNet
        After `fit`: the fitted forecaster.

    See Also
    --------
    rbfdiffnet.RBFDiffNet : The forecaster for whole frames.

    Notes
    -----
    Columns of inputs are called x1, x2, ... Intervals are the forecaster's own: what is given to
    statsforecast as ``prediction_intervals`` has no effect. What was unusual about a series is in
    ``model_.report_``, and nowhere else: whether it was too short for the networks, or had too few
    errors for its intervals. `forecast` keeps no model; after ``engine.fit(df)`` of a
    ``StatsForecast`` and ``engine.predict(h, level=[95])`` that of series i and model j is
    ``engine.fitted_[i, j].model_``.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.adapters.statsforecast import RBFDiffNet
    >>> from rbfdiffnet.datasets import load_air_passengers
    >>> y = load_air_passengers()["y"].to_numpy()
    >>> model = RBFDiffNet(season_length=12, scope="local")
    >>> list(model.forecast(y, h=2, level=[80], fitted=True))
    ['mean', 'lo-80', 'hi-80', 'fitted', 'fitted-lo-80', 'fitted-hi-80']
    >>> earlier = model.new().fit(y[:-2])
    >>> earlier.predict(3)["mean"].shape, earlier.predict_in_sample()["fitted"].shape
    ((3,), (142,))
    >>> bool(np.abs(earlier.forward(y, 1)["mean"] - earlier.predict(3)["mean"][2:]) < 60.0)
    True
    """

    uses_exog = True
    prediction_intervals = None

    def __init__(
        self, season_length: int | Sequence[int] = 1, alias: str = "RBFDiffNet", **settings: Any
    ) -> None:
        self.season_length = season_length
        self.alias = alias
        self.settings = settings
        self._warned: list[str] = []  # warnings given; copies of the model share the list
        self._forecaster()  # checks the settings

    def __repr__(self) -> str:
        return self.alias

    def new(self) -> Self:
        """Return a copy, which can be fitted to another series."""
        return copy.copy(self)

    def fit(self, y: npt.ArrayLike, X: npt.ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        y : array-like of shape (n,)
            NaN where missing.
        X : array-like of shape (n, n_inputs), optional
            Inputs that are known in the future.

        Returns
        -------
        RBFDiffNet
        """
        self._values = np.array(y, dtype=np.float64)
        self.model_ = self._forecaster().fit(_frame(0, self._values.size, X, y=self._values))
        return self

    def predict(
        self, h: int, X: npt.ArrayLike | None = None, level: Levels = None
    ) -> dict[str, Array]:
        """Forecast the h steps after the series.

        Parameters
        ----------
        h : int
        X : array-like of shape (h, n_inputs), optional
        level : sequence of float, optional
            Levels of prediction intervals in percent.

        Returns
        -------
        dict of ndarray of shape (h,)
            ``mean``, ``lo-95``, ``lo-80``, ``hi-80``, ``hi-95``.
        """
        return _predict(self.model_, self._values.size, h, X, level)

    def predict_in_sample(self, level: Levels = None) -> dict[str, Array]:
        """Return one-step forecasts of the series that was fitted, with ``scope="local"``.

        Parameters
        ----------
        level : sequence of float, optional
            Intervals hold that share of the series.

        Returns
        -------
        dict of ndarray of shape (n,)
            ``fitted``, ``fitted-lo-80``, ``fitted-hi-80``; NaN where there is no full window of
            lags, or no network. By default no networks are kept: all are NaN, and a warning says
            so.
        """
        return self._fitted(self.model_, self._values, level)

    def forecast(
        self,
        y: npt.ArrayLike,
        h: int,
        X: npt.ArrayLike | None = None,
        X_future: npt.ArrayLike | None = None,
        level: Levels = None,
        fitted: bool = False,
    ) -> dict[str, Array]:
        """Fit and predict in one go, without keeping the model.

        Parameters
        ----------
        y, X
            As for `fit`.
        h, X_future, level
            As for `predict`.
        fitted : bool, default=False
            Whether to return what `predict_in_sample` does, too.

        Returns
        -------
        dict of ndarray
        """
        if fitted:
            return self.new().fit(y, X).forward(y, h, X, X_future, level, fitted)
        values = np.array(y, dtype=np.float64)
        rows, ahead = _frame(0, values.size, X, y=values), _ahead(values.size, h, X_future)
        return _columns(self._forecaster().forecast(rows, h, ahead, level), level)

    def forward(
        self,
        y: npt.ArrayLike,
        h: int,
        X: npt.ArrayLike | None = None,
        X_future: npt.ArrayLike | None = None,
        level: Levels = None,
        fitted: bool = False,
    ) -> dict[str, Array]:
        """Forecast a series from its end on with what was learned by `fit`.

        Parameters
        ----------
        y, X
            The series that was fitted and what followed it, perhaps less its beginning; a series
            that has nothing in common with it is taken to have followed.
        h, X_future, level, fitted
            As for `forecast`. Networks stay as they are; the default scope keeps none, and learns
            from all values.

        Returns
        -------
        dict of ndarray
        """
        values = np.array(y, dtype=np.float64)
        known = self._values
        common = next(
            n
            for n in range(min(known.size, values.size), -1, -1)
            if np.array_equal(known[known.size - n :], values[:n], equal_nan=True)
        )
        model, newer = copy.copy(self.model_), values[common:]
        if newer.size:
            inputs = None if X is None else np.asarray(X)[common:]
            model.update(_frame(known.size, newer.size, inputs, y=newer))
        whole = np.concatenate([known, newer])
        result = _predict(model, whole.size, h, X_future, level)
        if fitted:
            inside = self._fitted(model, whole, level)
            result |= {name: column[-values.size :] for name, column in inside.items()}
        return result

    def _forecaster(self) -> forecaster.RBFDiffNet:
        return forecaster.RBFDiffNet(1, season_length=self.season_length, **self.settings)

    def _fitted(self, model: forecaster.RBFDiffNet, y: Array, level: Levels) -> dict[str, Array]:
        fitted = np.full(y.size, np.nan)
        if model.options.method.has_networks:
            frame = model.fitted_values()
            fitted[frame["ds"]] = frame[NAME]
        elif not self._warned:
            self._warned.append("fitted")
            warnings.warn(
                "RBFDiffNet has no fitted values by default, since it keeps no networks: they are "
                'NaN. RBFDiffNet(..., scope="local") has them.',
                stacklevel=3,
            )
        errors = np.abs(y - fitted)
        errors = errors[np.isfinite(errors)]
        result = {"fitted": fitted}
        for side, share in _interval_ends(level):
            width = np.quantile(errors, share / 100.0) if errors.size else np.nan
            result[f"fitted-{side}-{share}"] = fitted - width if side == "lo" else fitted + width
        return result


def _frame(first: int, n: int, X: npt.ArrayLike | None, **columns: Array) -> pd.DataFrame:
    """Return rows of the series from step `first` on, with inputs called x1, x2, ..."""
    if X is not None:
        inputs = np.asarray(X, dtype=np.float64).T
        columns |= {f"x{j}": column for j, column in enumerate(inputs, 1)}
    return pd.DataFrame({"unique_id": "series", "ds": np.arange(first, first + n), **columns})


def _ahead(n: int, h: int, X: npt.ArrayLike | None) -> pd.DataFrame | None:
    return None if X is None else _frame(n, h, X)


def _predict(
    model: forecaster.RBFDiffNet, n: int, h: int, X: npt.ArrayLike | None, level: Levels
) -> dict[str, Array]:
    return _columns(model.predict(h, _ahead(n, h, X), level or None), level)


def _columns(frame: pd.DataFrame, level: Levels) -> dict[str, Array]:
    """Take forecasts and the ends of intervals from a frame."""
    ends = _interval_ends(level)
    names = {f"{side}-{share}": f"{NAME}-{side}-{share:g}" for side, share in ends}
    return {key: frame[name].to_numpy() for key, name in {"mean": NAME, **names}.items()}


def _interval_ends(level: Levels) -> list[tuple[str, float]]:
    """Return sides and levels of intervals, from wide to narrow, then from narrow to wide."""
    shares = sorted(level or ())
    return [*(("lo", share) for share in shares[::-1]), *(("hi", share) for share in shares)]
