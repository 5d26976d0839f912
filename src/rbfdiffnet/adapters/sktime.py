"""`RBFDiffNet` as a forecaster of sktime: series, wide frames, panels and hierarchies."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd

from rbfdiffnet.adapters import require
from rbfdiffnet.forecaster import RBFDiffNet
from rbfdiffnet.forecasting.options import NAME, name_quantiles
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.panel.updates import revise_panel
from rbfdiffnet.support.arrays import Ints

require("sktime")

from sktime.forecasting.base import BaseForecaster  # noqa: E402

__all__ = ["RBFDiffNetForecaster"]


# Columns of the long frames, by names that inputs will not have.
_ID, _TIME, _TARGET = "(series)", "(time)", "(target)"
_MTYPES = ["pd.DataFrame", "pd-multiindex", "pd_multiindex_hier"]


def _make_signature() -> inspect.Signature:
    """Return that of `RBFDiffNet`, where ``freq`` is optional and no column has a name."""
    parameters = dict(inspect.signature(RBFDiffNet.__init__).parameters)
    for column in ("id_col", "time_col", "target_col"):
        del parameters[column]
    parameters["freq"] = parameters["freq"].replace(default=None)
    return inspect.Signature([*parameters.values()])


_SIGNATURE = _make_signature()


class RBFDiffNetForecaster(BaseForecaster):
    """Forecast with differential RBF networks, in sktime.

    It gives the numbers of `rbfdiffnet.RBFDiffNet` on the same series. All series of a panel or a
    hierarchy, and all columns of a wide frame, go to one model together: where series learn from
    each other (``scope="auto"``, the default, and ``"global"``) they do so here.

    Parameters
    ----------
    freq : str or int, optional
        Step of time; by default that of the index.
    preset, lags, season_length, scope, strategy, transforms, regressor
        As for `rbfdiffnet.RBFDiffNet`. Whole numbers as index have no season of their own: give
        ``season_length``. ``strategy="direct"`` needs ``fh`` in `fit`.
    calendar, events, holidays, past_exog, static_exog
        As for `rbfdiffnet.RBFDiffNet`; ``past_exog`` and ``static_exog`` name columns of ``X``.
    lower, outliers, noise, device, n_jobs, memory_limit, errors
        As for `rbfdiffnet.RBFDiffNet`.

    Attributes
    ----------
    model_ : rbfdiffnet.RBFDiffNet
        The fitted forecaster, with its ``explain``, ``equation`` and ``report_``: what was unusual
        about the series, and after `predict_interval` which had too few errors for the intervals.

    See Also
    --------
    rbfdiffnet.RBFDiffNet : The forecaster behind it, on long frames of pandas or polars.

    Notes
    -----
    A series that ends before the others is forecast from its own end on, up to the horizon. Rows
    of ``X`` at steps that are not asked for do not matter, and may be left out.

    `update` appends observations; at dates that are known already, newer values replace what was
    there or missing. With ``update_params=True`` networks are trained anew; with ``False`` they
    stay as they are, and forecast from the newer values. The default scope learns from all values
    for every forecast, in either case.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.adapters.sktime import RBFDiffNetForecaster
    >>> from rbfdiffnet.datasets import load_air_passengers
    >>> y = load_air_passengers().set_index("ds")["y"].asfreq("MS")
    >>> forecaster = RBFDiffNetForecaster(scope="local", lower=0).fit(y)
    >>> forecaster.predict(fh=[1, 2, 3]).index[0]
    Timestamp('1961-01-01 00:00:00')
    >>> forecaster.predict_interval(fh=[1, 2, 3], coverage=0.9).columns.tolist()
    [('y', 0.9, 'lower'), ('y', 0.9, 'upper')]
    """

    _tags = {  # noqa: RUF012
        "authors": ["rbfdiffnet"],
        "maintainers": ["rbfdiffnet"],
        "python_dependencies": "rbfdiffnet",
        "y_inner_mtype": _MTYPES,
        "X_inner_mtype": _MTYPES,
        "capability:multivariate": True,
        "capability:exogenous": True,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:missing_values": True,
        "capability:categorical_in_X": True,
        "capability:unequal_length": True,
        "capability:non_contiguous_X": True,
        "capability:update": True,
        "capability:random_state": False,
        "property:randomness": "deterministic",
        "requires-fh-in-fit": False,
        "X-y-must-have-same-index": True,
    }
    _config = {"remember_data": False}  # noqa: RUF012 - the model has the data

    def __init__(self, *args: Any, **parameters: Any) -> None:
        bound = _SIGNATURE.bind(self, *args, **parameters)
        bound.apply_defaults()
        for name, value in [*bound.arguments.items()][1:]:
            setattr(self, name, value)
        super().__init__()
        self._y = self._X = None  # which sktime expects, unless told to remember data
        if self.strategy == "direct":
            self.set_tags(**{"requires-fh-in-fit": True})

    __init__.__signature__ = _SIGNATURE  # type: ignore[attr-defined]  # sktime reads it

    def _fit(self, y: pd.DataFrame, X: pd.DataFrame | None, fh: Any) -> Self:
        parameters = self.get_params(deep=False)
        if self.freq is None:
            parameters["freq"] = _frequency(y.index)
        self.model_ = RBFDiffNet(**parameters, id_col=_ID, time_col=_TIME, target_col=_TARGET)
        self._variables = list(y.columns)
        self._index_names = list(y.index.names)
        self._instances: list[tuple[Any, ...]] = []
        rows = self._make_rows(y, X)
        h = None
        if self.strategy == "direct":
            _, _, ahead = self._locate(fh, self.model_.options.read_panel(rows))
            h = int(ahead.max()) + 1
        self.model_.fit(rows, h)
        if self.model_.freq is None:  # too few rows of an update may not tell
            self.model_.freq = self.model_.fitted_panel.panel.frequency.alias
        return self

    def _update(
        self, y: pd.DataFrame, X: pd.DataFrame | None = None, update_params: bool = True
    ) -> Self:
        rows = self._make_rows(y, X)
        state = self.model_.fitted_panel
        series, steps, on_grid = state.panel.locate_rows(rows)
        known = (series >= 0) & on_grid & (steps < state.panel.lengths[series])
        panel = revise_panel(state.panel, rows[known])
        self.model_._fitted = replace(state, panel=panel, series=state.exogenous.series(panel))
        self.model_.update(rows[~known], refit=update_params)
        return self

    def _predict(self, fh: Any, X: pd.DataFrame | None) -> pd.DataFrame:
        return self._forecast(fh, X, None, [NAME], pd.Index(self._variables))

    def _predict_quantiles(
        self, fh: Any, X: pd.DataFrame | None, alpha: Sequence[float]
    ) -> pd.DataFrame:
        names = list(name_quantiles(quantiles=alpha))
        found = dict(zip(sorted({float(a) for a in alpha}), names, strict=True))
        columns = pd.MultiIndex.from_product([self._get_varnames(), alpha])
        return self._forecast(fh, X, alpha, [found[float(a)] for a in alpha], columns)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:  # noqa: ARG003
        """Return parameters to be tested with.

        Parameters
        ----------
        parameter_set : str, default="default"
            There is one set of them only.

        Returns
        -------
        list of dict

        Examples
        --------
        >>> from rbfdiffnet.adapters.sktime import RBFDiffNetForecaster
        >>> RBFDiffNetForecaster.get_test_params()[0]
        {'scope': 'local', 'lags': 3}
        """
        return [{"scope": "local", "lags": 3}, {"preset": "fast", "strategy": "direct"}, {}]

    # Between sktime's frames and long ones ------------------------------------------------------

    def _make_rows(self, y: pd.DataFrame, X: pd.DataFrame | None) -> pd.DataFrame:
        """Return a long frame with a row for every series and date."""
        instances = dict.fromkeys([*self._instances, *_instances(y.index)])
        self._instances = list(instances)
        inputs = pd.DataFrame(index=y.index) if X is None else X.reindex(y.index)
        long = self._long(inputs)
        return long.assign(**{_TARGET: y[self._variables].to_numpy(np.float64).T.ravel()})

    def _long(self, inputs: pd.DataFrame) -> pd.DataFrame:
        """Return inputs as a long frame, repeated for every variable, with names of the series."""
        named = inputs.set_axis(inputs.columns.map(str), axis=1).assign(
            **{_TIME: _times(inputs.index)}
        )
        instances = _instances(inputs.index)
        parts = [named.assign(**{_ID: self._ids(instances, name)}) for name in self._variables]
        return pd.concat(parts, ignore_index=True)

    def _ids(self, instances: Sequence[tuple[Any, ...]], variable: Any) -> list[str]:
        """Name series by the instance, and by the variable unless there is only one."""
        alone = len(self._variables) == 1
        return [" / ".join(map(str, i if alone and i else (*i, variable))) for i in instances]

    def _forecast(
        self,
        fh: Any,
        X: pd.DataFrame | None,
        quantiles: Sequence[float] | None,
        names: list[str],
        columns: pd.Index[Any],
    ) -> pd.DataFrame:
        """Forecast the horizon; ``names`` are the model's columns that each variable gets."""
        panel = self.model_.fitted_panel.panel
        index, series, ahead = self._locate(fh, panel)
        h = int(ahead.max()) + 1
        X_df = None if X is None else self._inputs_ahead(h, series * h + ahead, X)
        frame = self.model_.predict(h, X_df, None, quantiles=quantiles)
        values = frame[names].to_numpy()[series * h + ahead]
        table = values.reshape(len(self._variables), len(index), len(names)).transpose(1, 0, 2)
        return pd.DataFrame(table.reshape(len(index), -1), index, columns)

    def _locate(self, fh: Any, panel: Panel) -> tuple[pd.Index[Any], Ints, Ints]:
        """Return the index of the forecasts, their series, and steps after the series' end."""
        dates = self._dates(fh, panel)
        index = dates
        if self._instances[0]:
            pairs = [(*instance, date) for instance in self._instances for date in dates]
            index = pd.MultiIndex.from_tuples(pairs, names=self._index_names)
        wanted = self._long(pd.DataFrame(index=index))
        series, steps, on_grid = panel.locate_rows(wanted)
        if not on_grid.all():
            row = wanted.iloc[int(np.argmin(on_grid))]
            raise ValueError(
                f"fh asks for {row[_TIME]}, which is no date of series {row[_ID]!r} with its step "
                f"{panel.frequency.alias!r}; give freq, or another fh."
            )
        ahead = steps - panel.lengths[series]
        if ahead.min() < 0:
            row = wanted.iloc[int(np.argmin(ahead))]
            raise ValueError(
                f"fh asks for {row[_TIME]}, at which series {row[_ID]!r} is known already. The "
                "cutoff is the last date given to fit or update: update with later values, too."
            )
        return index, series, ahead

    def _dates(self, fh: Any, panel: Panel) -> pd.Index[Any]:
        """Return the dates of a horizon: the panel knows the step, a cutoff may not."""
        dates: pd.Index[Any]
        if not fh.is_relative:
            dates = fh.to_absolute_index(self.cutoff)
            return dates
        steps = fh.to_numpy()
        one = panel.select(np.array([0]))
        end = pd.DataFrame({_ID: one.name(0), _TIME: _times(self.cutoff)})
        _, (last,), _ = one.locate_rows(end)
        rows = one.make_frame([last + 1], [steps.max()], {})
        dates = pd.Index(rows[_TIME].iloc[steps - 1]).rename(self._index_names[-1])
        if isinstance(self.cutoff, pd.PeriodIndex):
            return pd.DatetimeIndex(dates).to_period(self.cutoff.freqstr)
        return dates

    def _inputs_ahead(self, h: int, wanted: Ints, X: pd.DataFrame) -> pd.DataFrame:
        """Return inputs of the next h steps; at steps that nobody asks for, gaps are filled."""
        rows: pd.DataFrame = self.model_.make_future_frame(h)
        rows = rows.merge(self._long(X), "left", [_ID, _TIME])
        names = [name for name in rows.columns if name not in (_ID, _TIME)]
        if len(wanted) < len(rows) and names:
            by_series = rows.groupby(_ID, sort=False)[names]
            filled = by_series.ffill().fillna(by_series.bfill())
            aside = np.setdiff1d(np.arange(len(rows)), wanted)
            rows.loc[aside, names] = filled.loc[aside]
        return rows


def _frequency(index: pd.Index[Any]) -> Any:
    """Return the step of an index; None if only its dates can tell."""
    times = index.get_level_values(-1)
    return times.freqstr if isinstance(times, pd.DatetimeIndex | pd.PeriodIndex) else 1


def _times(index: pd.Index[Any]) -> pd.Index[Any]:
    """Return the dates or whole numbers of an index, as they are in a long frame."""
    times = index.get_level_values(-1)
    return times.to_timestamp() if isinstance(times, pd.PeriodIndex) else times


def _instances(index: pd.Index[Any]) -> list[tuple[Any, ...]]:
    """Return for each row the instance it belongs to: () where there is one series only."""
    if not isinstance(index, pd.MultiIndex):
        return [()] * len(index)
    return [row[:-1] for row in index]
