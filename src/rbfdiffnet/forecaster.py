"""Forecast many series at once: frames in, frames out."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from rbfdiffnet.evaluation import BacktestRows, Holding, find_models
from rbfdiffnet.forecasting.anomalies import check_level, judge_values
from rbfdiffnet.forecasting.backtest import BacktestWindows, backtest
from rbfdiffnet.forecasting.chunks import forecast_in_chunks
from rbfdiffnet.forecasting.closed import note_closed
from rbfdiffnet.forecasting.groups import is_series, name_levels, number_groups
from rbfdiffnet.forecasting.options import NAME, Options, check_refit, name_quantiles
from rbfdiffnet.forecasting.paths import GRID_PROBABILITIES, find_means
from rbfdiffnet.forecasting.pipeline import (
    FittedPanel,
    Pipeline,
    explanation_frame,
    hold_forecasts,
    notes_frames,
    operator_frame,
)
from rbfdiffnet.forecasting.reconcile import (
    Reconciliation,
    find_far,
    find_past_bounds,
    find_reconciliation,
    forecast_and_reconcile,
)
from rbfdiffnet.forecasting.totals import MIDDLE, N_PATHS, StepGroups, fit_paths, note_skewed
from rbfdiffnet.models.base import ForecastRequest, InputNames
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.panel.calendar import Event, Holidays
from rbfdiffnet.panel.exogenous import SCENARIO
from rbfdiffnet.panel.frames import read_frame
from rbfdiffnet.panel.panel import Panel, find_doubts
from rbfdiffnet.series.transforms import Transform
from rbfdiffnet.support.arrays import Array, Ints
from rbfdiffnet.support.checks import (
    DataWarning,
    Noise,
    as_list,
    check_count,
    check_flag,
    check_number,
)
from rbfdiffnet.support.memo import share_results
from rbfdiffnet.support.notes import NARROW, NOT_JUDGED, Note
from rbfdiffnet.support.parallel import SINGLE_MACHINE, Collective, public_call
from rbfdiffnet.support.progress import expect_seconds, progress_between, progress_of_parts

__all__ = ["RBFDiffNet"]

_AFTER_FITTING = {"lower", "upper", "n_jobs"}  # arguments that may change then


class RBFDiffNet(BaseEstimator):
    r"""Forecast many series: what comes next, how sure that is, and why.

    Each series is prepared first: effects of known inputs are taken out, outliers and gaps filled.
    The default then forecasts all series in several ways and mixes the forecasts by how well they
    did on the ends of the series (`models.stack`). One way is a network that was trained on
    simulated series; others learn from your series. With ``scope="local"`` or ``"global"`` an
    `RBFDiffNetRegressor` learns from windows of lags instead, of series that are differenced and
    scaled where asked for. A series to which nothing can be fitted gets a documented fallback and
    a line in ``report_``. No series learns from one that suddenly changed its behavior
    (docs/intervals.md).

    Parameters
    ----------
    freq : str or int
        Step of time: a pandas or polars alias (``"D"``, ``"MS"``, ``"1mo"``, ``"15min"``), or a
        number for integer dates.
    preset : {"default", "instant", "paper", "fast", "best"}, default="default"
        Default: the stack, with outliers treated as missing. A network that another argument asks
        for (see ``scope``) chooses its penalties by leave-one-out error.
        Instant: the network that was trained on simulated series; nothing is fitted.
        Paper: ADF differences, mean removed, two seasons of lags and the paper's trainer. Fast: the
        paper's structure with one quick fit. Best: every series is tested for a nonlinear rule of
        its own, as chaotic ones have, and forecast by it where that is clearly closer; noise is
        taken out there. The default tests series without a season, and of a large panel only if
        32 of its series give cause to.
        Any argument given overrides its preset.
    lags : "auto", int or sequence of int, default="auto"
        How many latest values the network sees, or which (1 is the latest).
    season_length : int or sequence of int, optional
        Steps in a season; by default the usual one of ``freq``. Two are a season and a longer one,
        ``[48, 336]`` for the days and weeks of half hours. By default the longer one is usual for
        the season (weeks of hours, years of days) or found in the series; a list of one has none.
        Networks that are fitted (``scope="local"`` and ``"global"``) know one season only.
    scope : {"auto", "local", "global", "pretrained"}, optional
        "auto": the stack, the most accurate, above all for many short series. "local": one network
        for each series. "global": one for all, each series on its own scale. "pretrained": the
        network of ``preset="instant"``. By default that of the preset ("local" for "paper" and
        "fast"); "local" where another argument asks for networks of single series, any of
        ``lags``, ``strategy``, ``transforms``, ``regressor`` and ``noise`` that is not at its
        default; "auto" otherwise.
    strategy : {"recursive", "direct"}, default="recursive"
        Feed forecasts back, or have a network with one output for each step ahead.
    transforms : "auto", None or sequence, default="auto"
        Steps of `rbfdiffnet.series.transforms.fit_transforms`; ``"log1p"`` comes first if at all.
        "auto" takes those of the preset.
    regressor : RBFDiffNetRegressor or RBFNetworkRegressor, optional
        The network and how it is trained; ``noise`` is the forecaster's own.
    calendar : None, "auto" or sequence of str, default=None
        Calendar parts as inputs: "dayofweek", "month", "day", "hour", ...
    events : sequence of Event, default=()
        Days that matter, with lead and lag days.
    holidays : str or Holidays, optional
        Country whose holidays are inputs, such as ``"US"``, or ``Holidays("US", lead=1)`` with days
        around them; needs ``rbfdiffnet[calendar]``.
    past_exog : sequence of str, default=()
        Columns known only in the past, such as orders that are delivered later. The stack learns
        from their latest values in all series what comes next. A network (``scope="local"`` or
        "global") sees the last one; the recursive strategy takes it to stay, so the direct one is
        the better choice there. ``preset="instant"`` learns nothing, and refuses them.
    static_exog : sequence of str, default=()
        Columns that do not change within a series: inputs with ``scope="global"``. They tell which
        series are like one that has no values yet.
    lower, upper : float, optional
        Bounds of forecasts, intervals and paths, such as 0 for sales.
    outliers : bool, optional
        Whether outliers and closures count as missing; by default as in the preset.
    noise : None, "auto" or float, default=None
        Noise in the observations: not treated; found, and treated in series whose forecasts gain
        by it; or of this standard deviation (of the logarithms, with "log1p"). Where it is
        treated, the clean trajectory is learned with the network, forecasts start from
        filtered states, and ``noise_`` has the level of the noise; see `rbfdiffnet.noise`. Local
        scope and recursive strategy, all lags up to the largest, no differences, no inputs known
        only in the past.
    device : str, default="cpu"
        ``"cuda"`` (or ``"cuda:1"``) runs the default and the preset "instant" on a GPU, and trains
        the networks of the preset "fast" there, but not those of series with inputs; that needs
        the extra ``[gpu]``. Forecasts are those of ``"cpu"`` to 1e-6 and better.
    n_jobs : int, default=1
        Threads; results do not depend on it.
    memory_limit : int or str, default="2GB"
        Bytes, or text, that `forecast` and `cross_validation` may take for their work beside the
        frames: they go through a large panel chunk by chunk. At least 1 GB; results do not depend
        on it. See docs/reliability.md for what was measured, and what the limit does not bound.
    errors : {"fallback", "raise"}, default="fallback"
        What to do with series that are too short, constant, empty, irregular.
    hierarchy : sequence of str, or of sequences of str, optional
        Columns that say to which groups a series belongs. ``["state", "store"]`` are levels inside
        of one another: the total, states, stores of states, and the series. A list of lists has a
        level each, ``[["state"], ["category"], ["state", "category"]]``; the total is always there.
        Groups are sums of series. They are forecast like series, and forecasts are made to add up.
        They are called by their values, ``"CA/CA_1"``, and ``"Total"``.
    reconcile : {"variance", "structural", "mint", "bottom_up", "none"}, default="variance"
        How forecasts of a hierarchy are made to add up. "variance": those change most that had the
        largest errors in a held out window at the end of the series, which takes up to twice as
        long. "structural": by the number of series of each group, in no time, for series of
        similar sizes. "mint": by the covariance of errors in several such windows, shrunk, which
        takes two to five times as long. "bottom_up": groups are the sums of the forecasts of their
        series. "none": they need not add up.
    id_col, time_col, target_col : str
        Names of the columns.

    Attributes
    ----------
    report_ : frame
        A row for everything unusual: series, problem, what was done.
    notes_ : frame
        The same rows with the kind of each, for programs.
    outliers_ : frame
        A row for every value that was treated as missing because it is far from the others.
    chosen_ : frame
        A row for every series: what was chosen for it.
    hierarchy_ : frame
        A row for every series and group: its level.

    See Also
    --------
    RBFDiffNetRegressor : The network behind it.

    Notes
    -----
    All columns besides id, date, target, ``past_exog`` and ``static_exog`` are taken to be known in
    the future: `predict` wants them in ``X_df``.

    Calls that take more than two seconds show how far they are and how much time is left, if
    standard error is a terminal; those that may take more than a minute say so first.
    ``RBFDIFFNET_PROGRESS=0`` in the environment switches that off.

    Examples
    --------
    >>> from rbfdiffnet import RBFDiffNet
    >>> from rbfdiffnet.datasets import load_air_passengers
    >>> df = load_air_passengers().assign(unique_id="air")
    >>> model = RBFDiffNet(freq="MS").fit(df)
    >>> model.predict(2, level=[80]).columns.tolist()
    ['unique_id', 'ds', 'RBFDiffNet', 'RBFDiffNet-lo-80', 'RBFDiffNet-hi-80']
    """

    _collective: Collective = SINGLE_MACHINE
    _rehearsal = False
    _is_part = False

    def __init__(
        self,
        freq: Any,
        *,
        preset: str = "default",
        lags: str | int | Sequence[int] = "auto",
        season_length: int | Sequence[int] | None = None,
        scope: str | None = None,
        strategy: str = "recursive",
        transforms: str | Sequence[str | Transform] | None = "auto",
        regressor: Any = None,
        calendar: str | Sequence[str] | None = None,
        events: Sequence[Event] = (),
        holidays: str | Holidays | None = None,
        past_exog: Sequence[str] = (),
        static_exog: Sequence[str] = (),
        lower: float | None = None,
        upper: float | None = None,
        outliers: bool | None = None,
        noise: Noise = None,
        device: str = "cpu",
        n_jobs: int = 1,
        memory_limit: int | str = "2GB",
        errors: str = "fallback",
        hierarchy: Sequence[str] | Sequence[Sequence[str]] | None = None,
        reconcile: str = "variance",
        id_col: str = "unique_id",
        time_col: str = "ds",
        target_col: str = "y",
    ) -> None:
        given = locals()
        options = Options(**{name: given[name] for name in Options.names()})
        self.freq = options.freq
        self.preset = options.preset
        self.lags = options.lags
        self.season_length = options.season_length
        self.scope = options.scope
        self.strategy = options.strategy
        self.transforms = options.transforms
        self.regressor = options.regressor
        self.calendar = options.calendar
        self.events = options.events
        self.holidays = options.holidays
        self.past_exog = options.past_exog
        self.static_exog = options.static_exog
        self.lower = options.lower
        self.upper = options.upper
        self.outliers = options.outliers
        self.noise = options.noise
        self.device = options.device
        self.n_jobs = options.n_jobs
        self.memory_limit = options.memory_limit
        self.errors = options.errors
        self.hierarchy = options.hierarchy
        self.reconcile = options.reconcile
        self.id_col = options.id_col
        self.time_col = options.time_col
        self.target_col = options.target_col
        self._fitted: FittedPanel | None = None
        self._last_notes: tuple[Any, Any] | None = None

    def set_params(self, **params: Any) -> Self:
        """Set arguments; the model must be fitted again, unless none of them act on fitting.

        Those that do not are ``lower``, ``upper`` and ``n_jobs``.

        Parameters
        ----------
        **params : Any
            Arguments by name; ``regressor__`` before a name sets one of the regressor.

        Returns
        -------
        RBFDiffNet

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> RBFDiffNet(freq="D").set_params(lags=14).lags
        14
        """
        super().set_params(**params)
        if not params.keys() <= _AFTER_FITTING:
            self._fitted = self._last_notes = None
        return self

    # Fitting ------------------------------------------------------------------------------------

    @public_call("Fitting")
    def fit(self, df: Any, h: int | None = None) -> Self:
        """Fit the models.

        Parameters
        ----------
        df : pandas or polars DataFrame
            One row for each series and date, in any order.
        h : int, optional
            Number of steps ahead; needed by the direct strategy.

        Returns
        -------
        RBFDiffNet

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> model = RBFDiffNet(freq="MS", scope="local").fit(load_air_passengers())
        >>> model.chosen_["season_length"].tolist(), model.chosen_["n_centers"].tolist()
        ([12], [16])
        """
        h = None if h is None else check_count("h", h)
        options = self.options
        panel = self._read(df)
        exogenous = options.read_inputs(panel, self._collective)
        pipeline = self._pipeline(panel, h)
        if options.method.fit_share:
            expect_seconds(pipeline.estimate_seconds(panel.y.size, 0))
        self._fitted = pipeline.fit(panel, exogenous, calibrate=True)
        self._last_notes = None
        return self

    @public_call("Forecasting")
    def forecast(
        self,
        df: Any,
        h: int,
        X_df: Any = None,
        level: Sequence[float] | None = None,
        quantiles: Sequence[float] | None = None,
        totals: Any = None,
    ) -> Any:
        """Fit and predict in one go, without keeping the models.

        Parameters
        ----------
        df : pandas or polars DataFrame
        h : int
        X_df : pandas or polars DataFrame, optional
            Future values of the inputs, also of several scenarios, as for `predict`.
        level : sequence of float, optional
            Levels of prediction intervals in percent.
        quantiles : sequence of float, optional
            Probabilities of further quantiles.
        totals : str, int or callable, optional
            Sum up steps, as `predict` does.

        Returns
        -------
        frame
            As by `predict`.

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> df = load_air_passengers()
        >>> found = RBFDiffNet(freq="MS", scope="local").forecast(df, 2, level=[80])
        >>> found.set_index(["unique_id", "ds"]).round(0).values.tolist()
        [[449.0, 430.0, 471.0], [415.0, 393.0, 438.0]]
        """
        h = check_count("h", h)
        wanted = name_quantiles(level, quantiles)
        options = self.options
        panel = self._read(df)
        panel.check_ahead(h)
        exogenous = options.read_inputs(panel, self._collective)
        pipeline = self._pipeline(panel, h)
        names, scenarios = exogenous.scenarios(panel, h, X_df)
        n_steps = len(scenarios) * panel.n_series * h
        expect_seconds(pipeline.estimate_seconds(panel.y.size, n_steps))
        if totals is not None:
            state = pipeline.fit(panel, exogenous, calibrate=True)
            requests = [state.request(h, inputs) for inputs in scenarios]
            return self._predict(state, names, requests, wanted, totals)
        tables, notes = forecast_and_reconcile(
            *(pipeline, panel, exogenous, h),
            lambda: forecast_in_chunks(pipeline, panel, exogenous, h, scenarios, wanted),
            excess=[inputs.excess for inputs in scenarios],
        )
        self._last_notes = notes_frames(panel, [*note_closed(panel), *notes])
        return _stack_scenarios(panel, names, tables, np.arange(panel.n_series), h)

    @public_call("Updating")
    def update(self, df: Any, *, refit: bool | str = False) -> Self:
        """Append newer observations; the networks stay as they are unless a refit is asked for.

        With ``scope="auto"`` there is nothing to refit: every forecast learns from all that is
        known.

        Parameters
        ----------
        df : pandas or polars DataFrame
            Rows after the last known date of each series, with the columns seen in `fit`.
        refit : bool or "weights", default=False
            Whether to fit everything anew. "weights", in global scope, has the network learn from
            all observations since the fit, those of new series too, without going back to older
            ones: its basis and penalties and the series' preparations stay, its weights are solved
            anew. The second network, on which intervals rest, stays as it is, so its errors remain
            those of forecasts of values it has not seen.

        Returns
        -------
        RBFDiffNet

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> df = load_air_passengers()
        >>> model = RBFDiffNet(freq="MS", scope="local").fit(df[:-3])
        >>> model.update(df[-3:]).predict(1, level=None)["RBFDiffNet"].round(0).tolist()
        [450.0]
        """
        state, options = self.fitted_panel, self.options
        check_refit(refit, options.method)
        panel = options.extend_panel(state.panel, df, state.exogenous)
        series = state.exogenous.series(panel)
        pipeline = Pipeline(options, state.model.plan)
        if refit is True:
            model = pipeline.fit_model(series, calibrate=True)
        else:
            model = state.model.extend(series)
        if refit == "weights":
            model = model.learn_weights(series)
        self._fitted = pipeline.describe(panel, state.exogenous, model, series)
        self._last_notes = None
        return self

    # Forecasting --------------------------------------------------------------------------------

    @public_call("Forecasting")
    def predict(
        self,
        h: int,
        X_df: Any = None,
        level: Sequence[float] | None = (80, 95),
        new_df: Any = None,
        quantiles: Sequence[float] | None = None,
        totals: Any = None,
    ) -> Any:
        """Forecast the steps after the last date of each series.

        Parameters
        ----------
        h : int
        X_df : pandas or polars DataFrame, optional
            Future values of the inputs; `make_future_frame` gives the rows it must have.
            A column ``scenario`` that the series do not have names several futures, each with all
            rows; a column ``price_std`` has standard deviations of future values of an input
            ``price``, by which intervals and quantiles become wider. See docs/inputs.md.
        level : sequence of float or None, default=(80, 95)
            Levels of prediction intervals in percent; None for none. See `models.intervals`.
        new_df : pandas or polars DataFrame, optional
            Histories of other series, to be forecast by a global model instead of its own.
        quantiles : sequence of float, optional
            Probabilities of further quantiles: ``[0.5, 0.9]``. The forecast itself is the median,
            or of series that are often zero the mean.
        totals : str, int or callable, optional
            Sum up steps: those of a calendar period (``"W"``, ``"M"``, ``"Q"``, ``"Y"``), every so
            many, or those in a row for which a function returns the same label; it is given the
            dates of all series as a pandas DatetimeIndex (an Index, if they are whole numbers).
            Intervals and quantiles are those of the sums, from sample paths; see `simulate`.

        Returns
        -------
        frame
            ``unique_id, ds``, ``scenario`` if ``X_df`` has it (one after the other, in the order of
            ``X_df``), ``RBFDiffNet``, for each level ``RBFDiffNet-lo-80`` and ``RBFDiffNet-hi-80``,
            and for each quantile ``RBFDiffNet-q-90``, in percent; in the library of the frame that
            was fitted. Quantiles of whole numbers are whole numbers, but not in a hierarchy, where
            they must add up (see docs/hierarchies.md). With ``totals`` there is a row for each sum:
            the date of its first step, and the number of ``steps`` in it. Weekdays on which a daily
            series never has a value are not summed up, and are no ``steps``.

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> model = RBFDiffNet(freq="MS", scope="local").fit(load_air_passengers())
        >>> model.predict(2, level=[80]).set_index(["unique_id", "ds"]).round(0).values.tolist()
        [[449.0, 430.0, 471.0], [415.0, 393.0, 438.0]]
        >>> model.predict(1, level=None, quantiles=[0.5, 0.9]).columns[2:].tolist()
        ['RBFDiffNet', 'RBFDiffNet-q-50', 'RBFDiffNet-q-90']
        >>> quarters = model.predict(12, level=[80], totals="Q")
        >>> quarters["steps"].tolist(), quarters["RBFDiffNet"].round().tolist()
        ([3, 3, 3, 3], [1306.0, 1580.0, 1875.0, 1367.0])
        """
        state = self.fitted_panel
        if new_df is not None:
            state = self._adopted(state, new_df)
        wanted = name_quantiles(level, quantiles)
        names, requests = self._scenarios(state, h, X_df)
        options, panel = self.options, state.panel
        n_values = 0 if options.method.fit_share else panel.y.size
        n_steps = len(requests) * panel.n_series * requests[0].h
        pipeline = Pipeline(options, state.model.plan)
        expect_seconds(pipeline.estimate_seconds(n_values, n_steps))
        return self._predict(state, names, requests, wanted, totals)

    @public_call("Simulating")
    def simulate(
        self,
        h: int,
        n_paths: int = 100,
        seed: int = 0,
        X_df: Any = None,
        *,
        joint: bool = False,
    ) -> Any:
        """Draw sample paths of the steps after the last date of each series.

        At every step paths have the quantiles of `predict`. Over time they go on as errors of
        earlier forecasts did: those of a noisy series around its forecast, those of a random walk
        farther and farther away.

        Parameters
        ----------
        h : int
        n_paths : int, default=100
        seed : int, default=0
            The same seed gives the same paths.
        X_df : pandas or polars DataFrame, optional
            Future values of the inputs, as for `predict`; all scenarios have the same shocks.
        joint : bool, default=False
            Whether series are as alike on the same day as their latest values were: for sums over
            series. Otherwise paths of different series are independent. In a hierarchy series are
            always alike, and paths of groups are the sums of those of their series.

        Returns
        -------
        frame
            ``unique_id, ds, sample_id, RBFDiffNet``, as in statsforecast: h rows for each path.
            With scenarios, ``scenario`` comes after ``ds``.

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> model = RBFDiffNet(freq="MS").fit(load_air_passengers())
        >>> paths = model.simulate(12, n_paths=200)
        >>> paths.columns.tolist(), len(paths)
        (['unique_id', 'ds', 'sample_id', 'RBFDiffNet'], 2400)
        >>> year = paths.groupby("sample_id")["RBFDiffNet"].sum()  # totals of the whole year
        >>> bool(year.quantile(0.1) < 6100 < year.quantile(0.9))
        True
        """
        state, n_paths = self.fitted_panel, check_count("n_paths", n_paths)
        check_number("seed", seed, at_least=0, below=2**63, integer=True)
        check_flag("joint", joint)
        self._refuse_column("sample_id")
        panel, n = state.panel, state.panel.n_series
        names, requests = self._scenarios(state, h, X_df)
        tables, each = [], progress_of_parts(len(requests))
        with self._reconciling(state, requests[0].h) as found:
            for k, request in enumerate(requests):
                paths = np.empty((n, n_paths, request.h))
                args = (state, request, n_paths, int(seed))
                with each(k):
                    for first, own in self._simulate(*args, joint=joint, reconciliation=found):
                        paths[first : first + len(own)] = own.swapaxes(1, 2)
                numbers = np.tile(np.repeat(np.arange(n_paths), request.h), n)
                tables.append({"sample_id": numbers, NAME: paths})
        series = np.repeat(np.arange(n), n_paths)
        return _stack_scenarios(panel, names, tables, series, requests[0].h)

    @public_call("Backtesting")
    def cross_validation(
        self,
        df: Any,
        h: int,
        n_windows: int = 1,
        step_size: int | None = None,
        level: Sequence[float] | None = None,
        refit: bool | int | str = True,
        quantiles: Sequence[float] | None = None,
        *,
        alone: bool = False,
    ) -> Any:
        """Hide windows at the end of each series and forecast them from earlier values.

        Parameters
        ----------
        df : pandas or polars DataFrame
        h : int
            Length of a window.
        n_windows : int, default=1
        step_size : int, optional
            Steps from a window to the next; by default h.
        level : sequence of float, optional
        refit : bool, int or "weights", default=True
            Whether to fit anew for every window, only for the first, or for every so many.
            "weights" fits for the first, and for each later one has the network learn from what
            has become known by then, as `update` does; in global scope.
        quantiles : sequence of float, optional
            As for `predict`.
        alone : bool, default=False
            In a hierarchy, whether to add a column ``RBFDiffNet-alone``: forecasts as they were
            before they were made to add up.

        Returns
        -------
        frame
            ``unique_id, ds, cutoff, y, RBFDiffNet`` and intervals. A window before whose start a
            series has no value is left out for that series. ``report_`` says where intervals held
            much less than they promise; see docs/intervals.md.

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> model = RBFDiffNet(freq="MS", scope="local")
        >>> found = model.cross_validation(load_air_passengers(), h=6, n_windows=2)
        >>> found.columns.tolist(), found["cutoff"].dt.strftime("%Y-%m").unique().tolist()
        (['unique_id', 'ds', 'cutoff', 'y', 'RBFDiffNet'], ['1959-12', '1960-06'])
        >>> bool((found["RBFDiffNet"] - found["y"]).abs().mean() < 30.0)
        True
        """
        h, n_windows = check_count("h", h), check_count("n_windows", n_windows)
        step = h if step_size is None else check_count("step_size", step_size)
        options = self.options
        check_refit(refit, options.method, or_count=True)
        wanted = name_quantiles(level, quantiles)
        if check_flag("alone", alone) and options.hierarchy is None:
            raise ValueError("alone is for a hierarchy: name its columns, hierarchy=['state'].")
        panel = self._read(df)
        windows = BacktestWindows(h, n_windows, step, refit)

        def read_inputs(past: Panel) -> Any:
            return options.read_inputs(past, self._collective)

        frame, notes = backtest(
            self._pipeline(panel, h), panel, read_inputs, windows, wanted, alone=alone
        )
        if not self._is_part:  # whose series say little about all others
            notes += _find_shortfalls(panel, frame, wanted)
        self._last_notes = notes_frames(panel, [*note_closed(panel), *notes])
        return frame

    @public_call("Judging")
    def detect_anomalies(
        self,
        df: Any,
        level: float = 99,
        last: int | None = None,
        ids: Sequence[Any] | None = None,
    ) -> Any:
        """Find past values that lay outside of what was forecast one step before them.

        Whatever the preset and scope, forecasts come from the network that was trained on simulated
        series, so nothing needs to be fitted, and every forecast is of a value that was not seen.
        A series' own errors and those of the whole panel say how large errors usually are: of
        values without anomalies, a share of about 1 - level is found. See docs/anomalies.md for how
        gaps, spikes, new levels and inputs are treated, and for what was measured.

        Parameters
        ----------
        df : pandas or polars DataFrame
            One row for each series and date, in any order.
        level : float, default=99
            Level of the intervals in percent, from 50 to 99.99.
        last : int, optional
            Judge only so many latest steps of each series, for much less time if series are long;
            the 100 values before them are forecast, too, to tell how large errors usually are. By
            default all values are judged but the first: eight, or a season, and those before a
            series first changes.
        ids : sequence, optional
            Which series to judge, by themselves; all by default. In a hierarchy groups are sums of
            all series, judged or not.

        Returns
        -------
        frame
            A row for every judged value, by series and date: ``unique_id, ds, y``, the forecast
            ``RBFDiffNet`` (a median) and its interval ``RBFDiffNet-lo-99`` and
            ``RBFDiffNet-hi-99``, ``anomaly`` (whether the value lies outside) and ``score``: how
            many standard deviations of a normal variable it is away, with a sign.

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> df = load_air_passengers()
        >>> df.loc[100, "y"] += 100
        >>> found = RBFDiffNet(freq="MS").detect_anomalies(df, level=99.9)
        >>> found.loc[found["anomaly"], ["ds", "y", "RBFDiffNet"]].round(0)
                   ds      y  RBFDiffNet
        88 1957-05-01  455.0       356.0
        """
        options = self.options
        label, share = check_level(level, options.columns)
        last = None if last is None else check_count("last", last)
        panel = self._read(df)
        series = options.read_inputs(panel, self._collective).series(panel)
        pipeline = self._pipeline(panel, 1)
        bounds = find_past_bounds(options, panel)
        if ids is not None:
            chosen = np.unique(np.array(_find_positions(panel, ids), dtype=np.int64))
            panel, series = panel.select(chosen), series.select(chosen)
            bounds = [bounds[i] for i in chosen.tolist()]
        plan, n_jobs = pipeline.plan, options.n_jobs
        judged, reasons = judge_values(series, plan, share, last, n_jobs, bounds)
        if reasons and options.errors == "raise":
            i, reason = next(iter(reasons.items()))
            raise ValueError(
                f"Series {panel.name(i)!r} cannot be judged: {reason}. Leave it out, or use "
                "errors='fallback' to get no rows for it."
            )
        notes = [Note(i, NOT_JUDGED, "not judged", detail=text) for i, text in reasons.items()]
        self._last_notes = notes_frames(panel, notes)
        return judged.make_frame(panel, label)

    def make_future_frame(self, h: int, new_df: Any = None) -> Any:
        """Return the rows `predict` wants in ``X_df``, without values: ids and dates.

        Parameters
        ----------
        h : int
        new_df : pandas or polars DataFrame, optional
            As for `predict`.

        Returns
        -------
        frame

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> model = RBFDiffNet(freq="MS", scope="local").fit(load_air_passengers())
        >>> model.make_future_frame(2)
                unique_id         ds
        0  air_passengers 1961-01-01
        1  air_passengers 1961-02-01
        """
        state = self.fitted_panel
        h = check_count("h", h)
        panel = state.panel if new_df is None else self._adopted(state, new_df).panel
        if self.hierarchy is not None:
            panel = panel.select(is_series(panel))
        panel.check_ahead(h)
        return panel.make_frame(panel.lengths, np.full(panel.n_series, h), {})

    @public_call("Forecasting")
    def fitted_values(self) -> Any:
        """One-step forecasts of the observations the models were trained on.

        Returns
        -------
        frame
            ``unique_id, ds, y, RBFDiffNet``, from the first date with a full window on; the direct
            strategy gives the first of its steps. Series without a network are left out.

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> fitted = RBFDiffNet(freq="MS", scope="local").fit(load_air_passengers()).fitted_values()
        >>> fitted.columns.tolist(), len(fitted)
        (['unique_id', 'ds', 'y', 'RBFDiffNet'], 129)
        """
        state = self.fitted_panel
        found = state.model.one_step_forecasts(state.series)
        firsts = np.array([first for first, _ in found.values()], dtype=np.int64)
        actual = [state.series[i].y[first:] for i, (first, _) in found.items()]
        values = [values for _, values in found.values()]
        bound = Pipeline(self.options, state.model.plan).bound
        chosen = state.panel.select(np.array(list(found), dtype=np.int64))
        columns = {
            self.target_col: np.concatenate([*actual, np.empty(0)]),
            NAME: bound(np.concatenate([*values, np.empty(0)])),
        }
        return chosen.make_frame(firsts, chosen.lengths - firsts, columns)

    # Looking inside -----------------------------------------------------------------------------

    @public_call("Explaining")
    def explain(self, h: int = 1, X_df: Any = None, ids: Sequence[Any] | None = None) -> Any:
        """Split forecasts into what each lag, input and exemplar adds.

        Parameters
        ----------
        h : int, default=1
        X_df : pandas or polars DataFrame, optional
            Future values of the inputs, of one scenario.
        ids : sequence, optional
            Which series; all by default.

        Returns
        -------
        frame
            A row for every term of every forecast: ``part`` (level, linear, exemplar, effect, ...),
            ``term``, the ``value`` of the input, its ``weight`` and ``activation``, its
            ``contribution``, and for exemplars the dates at which the ``nearest`` training windows
            end. Contributions add up to the forecast. With the default and ``preset="instant"`` the
            terms are weights of the pretrained network on what was seen; its exemplars (the gate of
            each, and what it alone would forecast) and responses to single values stand beside, and
            contribute 0. The default adds its other members, each with its forecast and weight, and
            what each column of ``past_exog`` adds to these. In a hierarchy, the last term is what
            makes the levels add up.

        Examples
        --------
        >>> import numpy as np
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> model = RBFDiffNet(freq="MS", scope="local").fit(load_air_passengers())
        >>> terms = model.explain(1)
        >>> sorted(terms["part"].unique())
        ['bias', 'exemplar', 'history', 'level', 'linear']
        >>> np.isclose(terms["contribution"].sum(), model.predict(1)["RBFDiffNet"]).item()
        True
        """
        state, request, keep = self._for_chosen(self._positions(ids), h, X_df)
        names = InputNames(
            state.exogenous.ahead_names, state.exogenous.extra_names, state.panel.format_date
        )
        pipeline = Pipeline(self.options, state.model.plan)
        sums = None if self.hierarchy is None else self._forecast(state, request, {})[0][NAME]
        values, terms = pipeline.explain(state.model, request, names, keep)
        bounded = pipeline.bound(values)
        final = bounded if sums is None else sums
        chosen = state.panel.select(np.array(keep, dtype=np.int64))
        return explanation_frame(chosen, terms, values[keep], bounded[keep], final[keep])

    @public_call("Fitting")
    def equation(self, ids: Sequence[Any] | None = None) -> Any:
        """Return the learned differential operators as a table.

        With ``scope="auto"`` networks of the chosen series alone are fitted for it, those that
        ``scope="local"`` has.

        Parameters
        ----------
        ids : sequence, optional
            Which series; all by default.

        Returns
        -------
        frame
            ``order`` of the derivative, the ``input`` by which it is taken, its ``coefficient``.

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> model = RBFDiffNet(freq="MS", scope="local").fit(load_air_passengers())
        >>> model.equation().head(2).round(2)
                unique_id  order   input  coefficient
        0  air_passengers      0                 0.25
        1  air_passengers      1  lag 15         1.54
        """
        state, chosen = self.fitted_panel, self._positions(ids)
        networks = state.model.with_networks(state.series, chosen)
        panel = state.panel.select(np.array(chosen, dtype=np.int64))
        return operator_frame(panel, networks.fitted, state.exogenous.extra_names)

    def plot_equation(self, unique_id: Any, ax: Any = None) -> Any:
        """Draw the learned differential operator of a series, as `equation` has it.

        Parameters
        ----------
        unique_id : object
            The series.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> model = RBFDiffNet(freq="MS", scope="local").fit(load_air_passengers())
        >>> model.plot_equation("air_passengers").get_title(loc="left")
        'learned differential operator'
        """
        from rbfdiffnet.report.plots import plot_operator

        return plot_operator(self.equation([unique_id]), ax)

    @public_call("Forecasting")
    def plot(
        self,
        h: Any = 12,
        X_df: Any = None,
        level: Sequence[float] | None = None,
        ids: Sequence[Any] | None = None,
        history: int = 120,
    ) -> Any:
        """Draw forecasts of a few series with matplotlib.

        Parameters
        ----------
        h : int or frame, default=12
            Steps ahead, or forecasts that `predict` returned.
        X_df : pandas or polars DataFrame, optional
            Future values of the inputs, of one scenario.
        level : sequence of float, optional
            Intervals, drawn one over the other.
        ids : sequence, optional
            Which series; the first four by default.
        history : int, default=120
            How many past steps to draw.

        Returns
        -------
        matplotlib Figure

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> model = RBFDiffNet(freq="MS", scope="local").fit(load_air_passengers())
        >>> figure = model.plot(12, level=[80])
        >>> figure.axes[0].get_title(loc="left")
        'air_passengers'
        """
        from rbfdiffnet.report.plots import plot_panel

        wanted, history = name_quantiles(level), check_count("history", history)
        chosen = self._positions(ids, most=4)
        if hasattr(h, "columns"):
            panel = self.fitted_panel.panel
            h, columns = _read_forecasts(panel, h)
            columns = {name: values[chosen] for name, values in columns.items()}
            return plot_panel(panel.select(np.array(chosen, int)), columns, h, history)
        state, request, keep = self._for_chosen(chosen, h, X_df)
        columns, _ = self._forecast(state, request, wanted)
        columns = {name: values[keep] for name, values in columns.items()}
        panel = state.panel.select(np.array(keep, dtype=np.int64))
        return plot_panel(panel, columns, request.h, history)

    @property
    def report_(self) -> Any:
        """Everything unusual in the latest call: a frame of series, problem, what was done.

        After `predict` and `forecast` also forecasts that the rule of `support.stability` held
        back: no step of a network leaves its window by more than twice what was seen, and no
        forecast the range of its series by more than three times its span.

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> df = load_air_passengers().drop(index=50)
        >>> RBFDiffNet(freq="MS", scope="local").fit(df).report_["problem"].tolist()
        ['1 missing date, first 1953-03-01']
        """
        return self._notes()[0]

    @property
    def notes_(self) -> Any:
        """The lines of ``report_``, each with its kind in one word, for programs.

        Series have a fallback where the kind is ``no_model`` or ``no_finite_forecast``. See
        docs/nightly.md for the other kinds.

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> df = load_air_passengers().drop(index=50)
        >>> RBFDiffNet(freq="MS", scope="local").fit(df).notes_["kind"].tolist()
        ['missing_date']
        """
        self._refuse_column("kind")
        return self._notes()[1]

    @property
    def outliers_(self) -> Any:
        """Values that were treated as missing because they are far from the others: a frame.

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> df = load_air_passengers()
        >>> df.loc[100, "y"] = 3000
        >>> RBFDiffNet(freq="MS").fit(df).outliers_
                unique_id         ds       y
        0  air_passengers 1957-05-01  3000.0
        """
        panel = self.fitted_panel.panel
        found = self.fitted_panel.model.find_outliers(self.fitted_panel.series)
        series = np.repeat([i for i, _ in found], [steps.size for _, steps in found]).astype(int)
        steps = np.concatenate([np.empty(0, int), *(steps for _, steps in found)])
        values = {self.target_col: panel.y[panel.offsets[series] + steps]}
        return panel.make_frame(steps, 1, values, series=series)

    @property
    def chosen_(self) -> Any:
        """What was chosen from the data: a frame with a row for every series.

        With ``scope="auto"`` the weights of the members in the latest call that forecast the fitted
        panel, all 0 where no errors were known and their median was taken, or where there are none.
        Otherwise the lags of differences, ages of inputs, level of the windows, order and number of
        centers of every series that has a network.

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> model = RBFDiffNet(freq="MS", scope="local").fit(load_air_passengers())
        >>> model.chosen_[["unique_id", "lags", "level", "n_centers"]]
                unique_id  lags level  n_centers
        0  air_passengers  1-15  last         16
        """
        state = self.fitted_panel
        with _as_missing_attribute():
            table = state.model.describe_choices()
        return state.panel.make_table(table.series, table.columns)

    @property
    def hierarchy_(self) -> Any:
        """The levels of the hierarchy: a frame with a row for every group and series.

        Examples
        --------
        >>> import pandas as pd
        >>> from rbfdiffnet import RBFDiffNet
        >>> ids = ["a", "b", "c"]
        >>> df = pd.DataFrame({"unique_id": ids, "state": ["CA", "CA", "TX"]})
        >>> df = df.merge(pd.DataFrame({"ds": range(20)}), how="cross").assign(y=1.0)
        >>> model = RBFDiffNet(freq=1, hierarchy=["state"], reconcile="bottom_up").fit(df)
        >>> model.hierarchy_.values.tolist()[:4]
        [['Total', 'Total'], ['CA', 'state'], ['TX', 'state'], ['a', 'series']]
        """
        panel = self.fitted_panel.panel
        if self.hierarchy is None:
            raise AttributeError("There is no hierarchy: name its columns, hierarchy=['state'].")
        levels = name_levels(panel, self.options.hierarchy)
        return panel.make_table(np.arange(panel.n_series), {"level": levels})

    @property
    def noise_(self) -> Any:
        """What ``noise`` led to: a frame with a row for every series that has a network.

        ``noise_std`` and ``signal_to_noise`` (the ratio of variances) are of the series, or of its
        logarithms where these are taken; NaN, and a ``reason``, where noise was not treated.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import mackey_glass
        >>> noisy = mackey_glass(300, step=6.0) + 0.05 * np.random.default_rng(0).normal(size=300)
        >>> df = pd.DataFrame({"unique_id": "a", "ds": np.arange(300), "y": noisy})
        >>> RBFDiffNet(freq=1, noise="auto").fit(df).noise_[["unique_id", "noise_std"]].round(2)
          unique_id  noise_std
        0         a       0.05
        """
        state = self.fitted_panel
        if not self.noise:
            raise AttributeError("Noise was not looked for: use noise='auto', with scope='local'.")
        found = state.model.noise_by_series()
        levels = [noise or (np.nan, np.nan) for noise, _, _ in found.values()]
        return state.panel.make_table(
            np.array(list(found), dtype=np.int64),
            {
                "noise_std": [level for level, _ in levels],
                "signal_to_noise": [ratio for _, ratio in levels],
                "reason": [reason for _, _, reason in found.values()],
            },
        )

    @property
    def weights_(self) -> dict[str, float]:
        """How much each member counts in the latest forecasts, with ``scope="auto"``.

        These are of the latest call that forecast the fitted panel, such as `predict`. The weights
        are means over the series.

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> model = RBFDiffNet(freq="MS").fit(load_air_passengers())
        >>> forecast = model.predict(2)
        >>> list(model.weights_)[:2], round(sum(model.weights_.values()), 6)
        (['pretrained', 'corrected'], 1.0)
        """
        with _as_missing_attribute():
            weights = self.fitted_panel.model.member_weights()
        return {name: float(own.mean()) for name, own in weights.items()}

    # Files --------------------------------------------------------------------------------------

    @public_call("Writing")
    def save(self, path: Any) -> None:
        """Save the fitted model to a file: arrays and JSON, nothing that is executed on loading.

        Of long histories the latest steps are kept, as many as forecasts, intervals and
        ``update(refit="weights")`` need (at least 1,000), so `fitted_values` of a loaded model may
        start later. With ``scope="auto"`` all are kept.

        Parameters
        ----------
        path : path-like

        Examples
        --------
        >>> import pathlib
        >>> import tempfile
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> model = RBFDiffNet(freq="MS", scope="local").fit(load_air_passengers())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(pathlib.Path(folder) / "air.model")
        ...     again = RBFDiffNet.load(pathlib.Path(folder) / "air.model")
        >>> again.predict(3).equals(model.predict(3))
        True
        """
        from rbfdiffnet.forecasting.saving import save_model

        save_model(self.options, self.fitted_panel, path)

    @classmethod
    @public_call("Reading")
    def load(cls, path: Any) -> Self:
        """Load a model from a file made by `save`.

        Parameters
        ----------
        path : path-like

        Returns
        -------
        RBFDiffNet

        Examples
        --------
        >>> import pathlib
        >>> import tempfile
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "air.model"
        ...     RBFDiffNet(freq="MS", scope="local").fit(load_air_passengers()).save(path)
        ...     model = RBFDiffNet.load(path)
        >>> model.freq, model.scope
        ('MS', 'local')
        """
        from rbfdiffnet.forecasting.saving import load_model

        return cls._from(*load_model(path))

    # Inside -------------------------------------------------------------------------------------

    @property
    def options(self) -> Options:
        """The arguments as they are now, checked, in one frozen object.

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> options = RBFDiffNet(freq="D", lags=14).options
        >>> options.lags, options.chosen_scope
        (14, 'local')
        """
        return Options(**{name: getattr(self, name) for name in Options.names()})

    @property
    def fitted_panel(self) -> FittedPanel:
        """What `fit` left behind: the panel, its model, and notes on what was unusual.

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> RBFDiffNet("MS").fit(load_air_passengers()).fitted_panel.panel.n_series
        1
        """
        if self._fitted is None:
            raise RuntimeError("This model is not fitted yet; call fit(df) first.")
        return self._fitted

    @classmethod
    def _from(cls, options: Options, fitted: FittedPanel) -> Self:
        model = cls(**{name: getattr(options, name) for name in Options.names()})
        model._fitted = fitted
        return model

    def _notes(self) -> tuple[Any, Any]:
        """Return the frames of everything unusual in the latest call, without and with kinds."""
        if self._last_notes is None:
            state = self.fitted_panel
            return notes_frames(state.panel, [*note_closed(state.panel), *state.notes])
        return self._last_notes

    def _read(self, df: Any) -> Panel:
        """Read series to learn from; warn of what makes forecasts plainly wrong."""
        panel = self.options.read_panel(df)
        if self._is_part:  # some of the series
            return panel
        if not panel.n_series:
            raise ValueError("The frame has no rows; give at least one row for each series.")
        for text in find_doubts(panel, self.freq):
            warnings.warn(text, DataWarning, stacklevel=4)  # where the decorated method was called
        return panel

    def _pipeline(self, panel: Panel, h: int | None) -> Pipeline:
        options = self.options
        plan: Plan = options.make_plan(panel, h, self._collective)
        return Pipeline(options, plan, self._rehearsal, self._is_part)

    def _forecast(
        self,
        state: FittedPanel,
        request: ForecastRequest,
        wanted: Mapping[str, float],
        reconciliation: Reconciliation | None = None,
    ) -> tuple[dict[str, Array], list[Note]]:
        """Return columns (n, h) of forecasts that add up, and what was unusual."""
        pipeline = Pipeline(self.options, state.model.plan)

        def forecast() -> tuple[list[dict[str, Array]], list[Note]]:
            columns, notes = pipeline.forecast(state.model, request, wanted)
            return [columns], notes

        (columns,), notes = forecast_and_reconcile(
            *(pipeline, state.panel, state.exogenous, request.h, forecast),
            excess=[request.excess],
            reconciliation=reconciliation,
        )
        return columns, notes

    @contextmanager
    def _reconciling(self, state: FittedPanel, h: int) -> Iterator[Reconciliation | None]:
        """Find once what makes h steps of all scenarios add up; None where nothing is to."""
        if self.hierarchy is None or not state.panel.n_series:
            yield None
            return
        pipeline = Pipeline(self.options, state.model.plan)
        with share_results():
            found, share = find_reconciliation(pipeline, state.panel, state.exogenous, h)
            with progress_between(share, 1.0):
                yield found

    def _adopted(self, state: FittedPanel, df: Any) -> FittedPanel:
        """Return other series than those of the fit, forecast by the same model."""
        panel = self.options.read_panel(df, state.exogenous)
        series = state.exogenous.series(panel)
        model = state.model.adopt(series)
        return Pipeline(self.options, model.plan).describe(panel, state.exogenous, model, series)

    def _request(
        self, state: FittedPanel, h: int, X_df: Any, within: Panel | None = None
    ) -> ForecastRequest:
        """Return the request for h steps; ``X_df`` may have rows of other series of a panel."""
        h = check_count("h", h)
        state.panel.check_ahead(h)
        return state.request(h, state.exogenous.ahead(state.panel, h, X_df, within))

    def _simulate(
        self,
        state: FittedPanel,
        request: ForecastRequest,
        n_paths: int,
        seed: int,
        *,
        joint: bool = False,
        reconciliation: Reconciliation | None = None,
    ) -> Iterator[tuple[int, Array]]:
        """Yield paths (k, h, n_paths) of some series and the number of the first of them.

        In a hierarchy series share shocks, and paths of groups are sums of those of their series.
        """
        pipeline, panel = Pipeline(self.options, state.model.plan), state.panel
        args = (state.model, request, panel.names, n_paths, seed)
        if reconciliation is None:
            whole = np.zeros((1, panel.n_series), dtype=np.int64) if joint else None
            yield from pipeline.simulate(*args, groups=whole)
            return
        paths = np.empty((panel.n_series, request.h, n_paths))
        groups = number_groups(panel, self.options.hierarchy)
        for first, own in pipeline.simulate(*args, groups=groups):
            paths[first : first + len(own)] = own
        quantiles, _ = pipeline.find_quantiles(state.model, request, GRID_PROBABILITIES)
        away = reconciliation.find_moves(find_means(quantiles), find_far(request.excess))
        reconciliation.add_up_paths(paths, away)
        yield 0, paths

    def _scenarios(
        self, state: FittedPanel, h: int, X_df: Any
    ) -> tuple[Any, list[ForecastRequest]]:
        """Return the names of the scenarios in ``X_df``, None without any, and their requests."""
        h = check_count("h", h)
        state.panel.check_ahead(h)
        names, scenarios = state.exogenous.scenarios(state.panel, h, X_df)
        return names, [state.request(h, inputs) for inputs in scenarios]

    def _predict(
        self,
        state: FittedPanel,
        names: Any,
        requests: list[ForecastRequest],
        wanted: dict[str, float],
        totals: Any,
    ) -> Any:
        """Forecast all scenarios: single steps, or their totals."""
        panel, h = state.panel, requests[0].h
        groups = None if totals is None else StepGroups.of(panel, h, totals)
        if groups is not None:
            self._refuse_column("steps")
        tables: list[dict[str, Any]] = []
        notes = dict.fromkeys(state.notes)
        each = progress_of_parts(len(requests))
        with self._reconciling(state, h) as reconciliation:
            for k, request in enumerate(requests):
                args = (state, request, wanted, reconciliation)
                with each(k):
                    if groups is None:
                        columns, unusual = self._forecast(*args)
                    else:
                        columns, unusual = self._totals(*args, groups)
                tables.append(columns)
                notes |= dict.fromkeys(unusual)
        self._last_notes = notes_frames(panel, [*note_closed(panel), *notes])
        if groups is None:
            return _stack_scenarios(panel, names, tables, np.arange(panel.n_series), h)
        return _stack_scenarios(panel, names, tables, groups.series, 1, groups.first)

    def _refuse_column(self, name: str) -> None:
        """Raise an error if a column of the frame has the name of one of the results."""
        if name in (self.id_col, self.time_col):
            raise ValueError(f"The result has a column {name!r} of its own: rename that of df.")

    def _totals(
        self,
        state: FittedPanel,
        request: ForecastRequest,
        wanted: dict[str, float],
        reconciliation: Reconciliation | None,
        groups: StepGroups,
    ) -> tuple[dict[str, Any], list[Note]]:
        """Return columns of sums over steps, with quantiles from sample paths, and notes."""
        panel = state.panel
        columns, notes = self._forecast(state, request, {}, reconciliation)
        sums = {NAME: groups.sum(columns[NAME], 0, panel.n_series)}
        if wanted:
            probabilities = [*wanted.values(), *MIDDLE]
            parts = [np.empty((len(probabilities), 0))]
            n_paths = N_PATHS
            if self.hierarchy is not None:  # all series together
                n_paths = fit_paths(panel.n_series * request.h)
            args = (state, request, n_paths, 0)
            for first, paths in self._simulate(*args, reconciliation=reconciliation):
                found = groups.sum(paths, first, first + len(paths))
                parts.append(np.quantile(found, probabilities, axis=1, method="nearest"))
            found = np.concatenate(parts, axis=1)
            notes = [*notes, *note_skewed(sums[NAME], found[-2:], groups)]
            sums |= dict(zip(wanted, found[:-2], strict=True))
        return {"steps": groups.count, **hold_forecasts(sums)}, notes

    def _for_chosen(
        self, chosen: list[int], h: int, X_df: Any
    ) -> tuple[FittedPanel, ForecastRequest, list[int]]:
        """Return the fit of chosen series, a request, and the positions of the series in both.

        Those without values need their peers, too.
        """
        state = self.fitted_panel
        borrowing = [group.only(chosen) for group in state.newcomers]
        borrowing = [group for group in borrowing if group.series.size]
        needed = np.unique(np.concatenate([chosen, *(g.peers for g in borrowing)]).astype(np.int64))
        needs_all = state.model.needs_all_series or self.hierarchy is not None
        if needs_all or needed.size == state.panel.n_series:
            return state, self._request(state, h, X_df), chosen
        own = [group.select(needed) for group in borrowing]
        some = replace(state.select(needed), newcomers=own)
        keep = np.searchsorted(needed, chosen).tolist()
        return some, self._request(some, h, X_df, state.panel), keep

    def _positions(self, ids: Sequence[Any] | None, most: int | None = None) -> list[int]:
        panel = self.fitted_panel.panel
        return _find_positions(panel, ids) if ids is not None else [*range(panel.n_series)][:most]


def _find_positions(panel: Panel, ids: Any) -> list[int]:
    """Return where the series of a panel are that were asked for."""
    everything = range(panel.n_series)
    ids = [ids] if isinstance(ids, str) else as_list("ids", ids, "a list of series")
    where = {panel.name(i): i for i in everything}
    same = dict(zip(panel.ids.to_list(), everything, strict=True))  # 1 is not "1"
    unknown = [name for name in ids if str(name) not in where]
    if unknown:
        raise ValueError(f"There is no series {unknown[0]!r}; known are {list(where)[:5]}.")
    return [same.get(name, where[str(name)]) for name in ids]


def _read_forecasts(panel: Panel, df: Any) -> tuple[int, dict[str, Array]]:
    """Return the steps ahead and the columns (n, h) of a frame that `predict` returned."""
    series, steps, _ = panel.locate_rows(df)
    names = [name for name in df.columns if name == NAME or str(name).startswith(f"{NAME}-")]
    h, n = divmod(len(df), max(panel.n_series, 1))
    expected = np.repeat(np.arange(panel.n_series), h), np.tile(np.arange(h), panel.n_series)
    ahead = steps - panel.lengths[series]
    if not h or n or NAME not in names or not np.array_equal([series, ahead], expected):
        raise ValueError(
            "plot draws h steps ahead, plot(12), or forecasts of all series as predict returned "
            "them; it has the history from fit(df)."
        )
    frame = read_frame(df, names)
    return h, {name: frame[name].to_numpy().reshape(-1, h) for name in names}


def _stack_scenarios(
    panel: Panel, names: Any, tables: list[dict[str, Any]], series: Ints, n: int, first: Any = 0
) -> Any:
    """Return a frame of the tables of scenarios, one below the other; names are None without any.

    Tables have n rows for each of `series`, which may come again, from so many steps after its end
    on as `first` says.
    """
    columns = {name: _join([own[name].ravel() for own in tables]) for name in tables[0]}
    if names is not None:
        columns = {SCENARIO: np.repeat(names, n * series.size), **columns}
    k = len(tables)
    starts = np.tile(panel.lengths[series] + first, k)
    return panel.make_frame(starts, n, columns, series=np.tile(series, k), copy=False)


def _join(parts: list[Any]) -> Any:
    """Return arrays one behind the other; a lone one, which may be large, is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _find_shortfalls(panel: Panel, frame: Any, wanted: Mapping[str, float]) -> list[Note]:
    """Note the kinds of series whose intervals in a backtest held much less than they promise.

    A note is about the series with the fewest values inside, and names the others of its kind.
    """
    (model,) = find_models([NAME, *wanted], "backtest")
    target = panel.columns.target
    rows = read_frame(frame, [target, NAME, *wanted])
    if not model.levels or not len(rows):
        return []
    columns = {name: rows[name].to_numpy() for name in rows.columns}
    place = BacktestRows.locate(panel, frame)
    return [
        Note(
            min(short.lowest, key=panel.name),  # whatever their order
            NARROW,
            "kept; expect more values outside than promised",
            detail=f"{short.describe()}; of this series the fewest",
        )
        for short in Holding.count(panel, place, columns, target, model).find_shortfalls()
    ]


@contextmanager
def _as_missing_attribute() -> Iterator[None]:
    """Raise the AttributeError that Python and scikit-learn expect of what a model has not."""
    try:
        yield
    except ValueError as error:
        raise AttributeError(str(error)) from None
