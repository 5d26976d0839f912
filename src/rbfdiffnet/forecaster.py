"""Forecast many series at once: frames in, frames out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from rbfdiffnet.forecasting.backtest import BacktestWindows, backtest
from rbfdiffnet.forecasting.chunks import forecast_in_chunks
from rbfdiffnet.forecasting.options import NAME, Options, check_levels, check_refit
from rbfdiffnet.forecasting.pipeline import (
    FittedPanel,
    Pipeline,
    explanation_frame,
    notes_frame,
    operator_frame,
)
from rbfdiffnet.models.base import ForecastRequest, InputNames
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.panel.calendar import Event
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.series.transforms import Transform
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.checks import Noise, as_list, check_count
from rbfdiffnet.support.parallel import SINGLE_MACHINE, Collective
from rbfdiffnet.support.progress import show_progress

__all__ = ["RBFDiffNet"]


class RBFDiffNet:
    r"""Forecast a panel of noisy series with differential RBF networks.

    Each series is prepared: effects of known inputs are taken out, outliers and gaps filled. By
    default a stack of forecasts follows: of a network that was trained on simulated series, of the
    same corrected by what the panel's own rows show, of a network over all series and of simple
    methods, mixed by how well they forecast the ends of the series (`models.stack`). With
    ``scope="local"`` or ``"global"`` series are differenced and scaled where asked for, cut into
    windows of lags, and learned by an `RBFDiffNetRegressor`. Forecasts go the same way back. Series
    nothing can be fitted to get a documented fallback and a line in ``report_``, and never disturb
    the others.

    Parameters
    ----------
    freq : str or int
        Step of time: a pandas or polars alias (``"D"``, ``"MS"``, ``"1mo"``, ``"15min"``), or a
        number for integer dates.
    preset : {"default", "instant", "paper", "fast", "best"}, default="default"
        Default: window level, outliers treated as missing, penalties by leave-one-out error.
        Instant: the network that was trained on simulated series; nothing is fitted.
        Paper: ADF differences, mean removed, two seasons of lags and the paper's trainer. Fast: the
        paper's structure with one quick fit. Best: long series also get networks of their own, that
        treat noise: for series that follow a nonlinear rule, such as chaotic ones.
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
        ``lags``, ``strategy``, ``transforms``, ``regressor``, ``past_exog`` and ``noise`` that is
        not at its default; "auto" otherwise.
    strategy : {"recursive", "direct"}, default="recursive"
        Feed forecasts back, or have a network with one output for each step ahead.
    transforms : "auto", None or sequence, default="auto"
        Steps of `rbfdiffnet.series.transforms.fit_transforms`; ``"log1p"`` comes first if at all.
        "auto" takes those of the preset.
    regressor : RBFDiffNetRegressor or RBFNetworkRegressor, optional
        The network and how it is trained; ``noise`` and ``random_state`` are the forecaster's own.
    calendar : None, "auto" or sequence of str, default=None
        Calendar parts as inputs: "dayofweek", "month", "day", "hour", ...
    events : sequence of Event, default=()
        Days that matter, with lead and lag days.
    holidays : str, optional
        Country whose holidays are inputs, such as ``"US"``; needs ``rbfdiffnet[calendar]``.
    holiday_lead, holiday_lag : int, default=0
        How many days before and after holidays are inputs, too.
    past_exog : sequence of str, default=()
        Columns known only in the past. The network sees their latest value; the recursive strategy
        takes it to stay, so the direct one is the better choice with them.
    static_exog : sequence of str, default=()
        Columns that do not change within a series; used with ``scope="global"``, set aside
        otherwise.
    lower : float, optional
        Bound of forecasts and intervals, such as 0 for sales.
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
        Bytes, or text, that `forecast` may take for its work beside the frames where series have
        networks of their own: it goes through a large panel chunk by chunk. At least 1 GB; results
        do not depend on it. The default scope goes in chunks of four million values whatever the
        limit. See docs/reliability.md for what was measured.
    random_state : int, default=0
    errors : {"fallback", "raise"}, default="fallback"
        What to do with series that are too short, constant, empty, irregular.
    id_col, time_col, target_col : str
        Names of the columns.

    Attributes
    ----------
    report_ : frame
        A row for everything unusual: series, problem, what was done.
    chosen_ : frame
        A row for every series: what was chosen for it.

    See Also
    --------
    RBFDiffNetRegressor : The network behind it.

    Notes
    -----
    All columns besides id, date, target, ``past_exog`` and ``static_exog`` are taken to be known in
    the future: `predict` wants them in ``X_df``.

    Calls that take more than two seconds show how far they are, if standard error is a terminal;
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
        holidays: str | None = None,
        holiday_lead: int = 0,
        holiday_lag: int = 0,
        past_exog: Sequence[str] = (),
        static_exog: Sequence[str] = (),
        lower: float | None = None,
        outliers: bool | None = None,
        noise: Noise = None,
        device: str = "cpu",
        n_jobs: int = 1,
        memory_limit: int | str = "2GB",
        random_state: int = 0,
        errors: str = "fallback",
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
        self.holiday_lead = options.holiday_lead
        self.holiday_lag = options.holiday_lag
        self.past_exog = options.past_exog
        self.static_exog = options.static_exog
        self.lower = options.lower
        self.outliers = options.outliers
        self.noise = options.noise
        self.device = options.device
        self.n_jobs = options.n_jobs
        self.memory_limit = options.memory_limit
        self.random_state = options.random_state
        self.errors = options.errors
        self.id_col = options.id_col
        self.time_col = options.time_col
        self.target_col = options.target_col
        self._fitted: FittedPanel | None = None
        self._last_report: Any = None

    # Fitting ------------------------------------------------------------------------------------

    @show_progress("Fitting")
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
        panel = options.read_panel(df)
        exogenous = options.read_inputs(panel, self._collective)
        self._fitted = self._pipeline(panel, h).fit(panel, exogenous, calibrate=True)
        self._last_report = None
        return self

    @show_progress("Forecasting")
    def forecast(
        self,
        df: Any,
        h: int,
        X_df: Any = None,
        level: Sequence[float] | None = None,
    ) -> Any:
        """Fit and predict in one go, without keeping the models.

        Parameters
        ----------
        df : pandas or polars DataFrame
        h : int
        X_df : pandas or polars DataFrame, optional
            Future values of the inputs.
        level : sequence of float, optional
            Levels of prediction intervals in percent.

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
        [[449.0, 433.0, 467.0], [415.0, 393.0, 435.0]]
        """
        h = check_count("h", h)
        levels = check_levels(level)
        options = self.options
        panel = options.read_panel(df)
        panel.check_ahead(h)
        exogenous = options.read_inputs(panel, self._collective)
        pipeline = self._pipeline(panel, h)
        ahead = exogenous.ahead(panel, h, X_df)
        columns, notes = forecast_in_chunks(pipeline, panel, exogenous, h, ahead, levels)
        self._last_report = notes_frame(panel, notes)
        return _forecast_frame(panel, h, columns)

    @show_progress("Updating")
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
        panel = state.panel.extend(options.read_panel(df, state.exogenous))
        series = state.exogenous.series(panel)
        pipeline = Pipeline(options, state.model.plan)
        if refit is True:
            model = pipeline.fit_model(series, calibrate=True)
        else:
            model = state.model.extend(series)
        if refit == "weights":
            model = model.learn_weights(series)
        notes = pipeline.notes(panel, model, series)
        self._fitted = FittedPanel(panel, state.exogenous, model, series, notes)
        self._last_report = None
        return self

    # Forecasting --------------------------------------------------------------------------------

    @show_progress("Forecasting")
    def predict(
        self,
        h: int,
        X_df: Any = None,
        level: Sequence[float] | None = (80, 95),
        new_df: Any = None,
    ) -> Any:
        """Forecast the steps after the last date of each series.

        Parameters
        ----------
        h : int
        X_df : pandas or polars DataFrame, optional
            Future values of the inputs; `make_future_frame` gives the rows it must have.
        level : sequence of float or None, default=(80, 95)
            Levels of prediction intervals in percent; None for none. See `models.intervals`.
        new_df : pandas or polars DataFrame, optional
            Histories of other series, to be forecast by a global model instead of its own.

        Returns
        -------
        frame
            ``unique_id, ds, RBFDiffNet`` and, for each level, ``RBFDiffNet-lo-80`` and
            ``RBFDiffNet-hi-80``; in the library of the frame that was fitted.

        Examples
        --------
        >>> from rbfdiffnet import RBFDiffNet
        >>> from rbfdiffnet.datasets import load_air_passengers
        >>> model = RBFDiffNet(freq="MS", scope="local").fit(load_air_passengers())
        >>> model.predict(2, level=[80]).set_index(["unique_id", "ds"]).round(0).values.tolist()
        [[449.0, 433.0, 467.0], [415.0, 393.0, 435.0]]
        """
        state = self.fitted_panel
        if new_df is not None:
            state = self._adopted(state, new_df)
        levels, request = check_levels(level), self._request(state, h, X_df)
        pipeline = Pipeline(self.options, state.model.plan)
        columns, notes = pipeline.forecast(state.model, request, levels)
        self._last_report = notes_frame(state.panel, (*state.notes, *notes))
        return _forecast_frame(state.panel, request.h, columns)

    @show_progress("Backtesting")
    def cross_validation(
        self,
        df: Any,
        h: int,
        n_windows: int = 1,
        step_size: int | None = None,
        level: Sequence[float] | None = None,
        refit: bool | int | str = True,
    ) -> Any:
        """Forecast windows at the end of each series from what precedes them.

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

        Returns
        -------
        frame
            ``unique_id, ds, cutoff, y, RBFDiffNet`` and intervals. A window before whose start a
            series has no value is left out for that series.

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
        levels = check_levels(level)
        panel = options.read_panel(df)
        windows = BacktestWindows(h, n_windows, step, refit)

        def read_inputs(past: Panel) -> Any:
            return options.read_inputs(past, self._collective)

        frame, notes = backtest(self._pipeline(panel, h), panel, read_inputs, windows, levels)
        self._last_report = notes_frame(panel, notes)
        return frame

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
        panel.check_ahead(h)
        return panel.make_frame(panel.lengths, np.full(panel.n_series, h), {})

    @show_progress("Forecasting")
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

    @show_progress("Explaining")
    def explain(self, h: int = 1, X_df: Any = None, ids: Sequence[Any] | None = None) -> Any:
        """Split forecasts into what each lag, input and exemplar adds.

        Parameters
        ----------
        h : int, default=1
        X_df : pandas or polars DataFrame, optional
            Future values of the inputs.
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
            contribute 0. The default adds its other members, each with its forecast and weight.

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
        values, terms = state.model.explain(request, names, keep, self.n_jobs)
        bounded = Pipeline(self.options, state.model.plan).bound(values)
        chosen = state.panel.select(np.array(keep, dtype=np.int64))
        return explanation_frame(chosen, terms, values[keep], bounded[keep])

    @show_progress("Fitting")
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

    @show_progress("Forecasting")
    def plot(
        self,
        h: int = 12,
        X_df: Any = None,
        level: Sequence[float] | None = None,
        ids: Sequence[Any] | None = None,
        history: int = 120,
    ) -> Any:
        """Draw forecasts of a few series with matplotlib.

        Parameters
        ----------
        h : int, default=12
        X_df : pandas or polars DataFrame, optional
        level : sequence of float, optional
            The widest is drawn.
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

        levels, history = check_levels(level), check_count("history", history)
        state, request, keep = self._for_chosen(self._positions(ids, most=4), h, X_df)
        pipeline = Pipeline(self.options, state.model.plan)
        columns, _ = pipeline.forecast(state.model, request, levels)
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
        if self._last_report is not None:
            return self._last_report
        state = self.fitted_panel
        return notes_frame(state.panel, state.notes)

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
        table = state.model.describe_choices()
        return state.panel.make_table(table.series, table.columns)

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
            raise ValueError("Noise was not looked for: use noise='auto', with scope='local'.")
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
        weights = self.fitted_panel.model.member_weights()
        return {name: float(own.mean()) for name, own in weights.items()}

    # Files --------------------------------------------------------------------------------------

    @show_progress("Writing")
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
    @show_progress("Reading")
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

    def _pipeline(self, panel: Panel, h: int | None) -> Pipeline:
        options = self.options
        plan: Plan = options.make_plan(panel, h, self._collective)
        return Pipeline(options, plan, self._rehearsal)

    def _adopted(self, state: FittedPanel, df: Any) -> FittedPanel:
        """Return other series than those of the fit, forecast by the same model."""
        panel = self.options.read_panel(df, state.exogenous)
        series = state.exogenous.series(panel)
        model = state.model.adopt(series)
        notes = Pipeline(self.options, model.plan).notes(panel, model, series)
        return FittedPanel(panel, state.exogenous, model, series, notes)

    def _request(
        self, state: FittedPanel, h: int, X_df: Any, within: Panel | None = None
    ) -> ForecastRequest:
        """Return the request for h steps; ``X_df`` may have rows of other series of a panel."""
        h = check_count("h", h)
        state.panel.check_ahead(h)
        return state.request(h, state.exogenous.ahead(state.panel, h, X_df, within))

    def _for_chosen(
        self, chosen: list[int], h: int, X_df: Any
    ) -> tuple[FittedPanel, ForecastRequest, list[int]]:
        """Return the fit of chosen series, a request, and the positions of the series in both."""
        state = self.fitted_panel
        everything, keep = list(range(state.panel.n_series)), chosen
        if chosen != everything and not state.model.needs_all_series:
            whole, state = state.panel, state.select(np.array(chosen, dtype=np.int64))
            return state, self._request(state, h, X_df, whole), list(range(len(chosen)))
        return state, self._request(state, h, X_df), keep

    def _positions(self, ids: Sequence[Any] | None, most: int | None = None) -> list[int]:
        panel = self.fitted_panel.panel
        everything = range(panel.n_series)
        if ids is None:
            return list(everything[:most])
        ids = [ids] if isinstance(ids, str) else as_list("ids", ids, "a list of series")
        where = {panel.name(i): i for i in everything}
        same = dict(zip(panel.ids.to_list(), everything, strict=True))  # 1 is not "1"
        unknown = [name for name in ids if str(name) not in where]
        if unknown:
            raise ValueError(f"There is no series {unknown[0]!r}; known are {list(where)[:5]}.")
        return [same.get(name, where[str(name)]) for name in ids]


def _forecast_frame(panel: Panel, h: int, columns: dict[str, Array]) -> Any:
    flat = {name: values.ravel() for name, values in columns.items()}
    return panel.make_frame(panel.lengths, np.full(panel.n_series, h), flat)
