"""Forecast many series at once: frames in, frames out."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from rbfdiffnet.calendar_inputs import Event, check_days
from rbfdiffnet.checks import as_list, check_choice, check_count, check_number, is_number
from rbfdiffnet.engine import Forecasts, PanelModel, adopt_series, fit_panel, lenders
from rbfdiffnet.exogenous import Exogenous
from rbfdiffnet.intervals import Pool, pooled
from rbfdiffnet.memory import bytes_of, pieces
from rbfdiffnet.panel import Columns, Panel, Problem
from rbfdiffnet.parameters import Noise, check_noise
from rbfdiffnet.parts import ALONE, Parts
from rbfdiffnet.plan import Plan, default_lags
from rbfdiffnet.presets import PRESETS, Preset
from rbfdiffnet.series import Series
from rbfdiffnet.training import Settings
from rbfdiffnet.transforms import Transform, check_transform
from rbfdiffnet.watching import within

if TYPE_CHECKING:
    from rbfdiffnet.stack.model import Mixture

__all__ = ["RBFDiffNet"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NAME = "RBFDiffNet"
_MOST_STEPS = 1_000_000  # of lags and seasons


@dataclass(frozen=True)
class State:
    """What `fit` leaves behind."""

    panel: Panel
    exogenous: Exogenous
    model: PanelModel
    series: list[Series] = field(repr=False)
    notes: tuple[Problem, ...] = ()

    def select(self, chosen: Ints) -> State:
        """Return the state of some series."""
        notes: dict[int, list[Problem]] = {}
        for note in self.notes:
            notes.setdefault(note.series, []).append(note)
        return State(
            self.panel.select(chosen),
            self.exogenous,
            self.model.select(chosen.tolist()),
            [self.series[i] for i in chosen.tolist()],
            tuple(
                replace(n, series=k)
                for k, i in enumerate(chosen.tolist())
                for n in notes.get(i, ())
            ),
        )


class RBFDiffNet:
    r"""Forecast a panel of noisy series with differential RBF networks.

    Each series is prepared: effects of known inputs are taken out, outliers and gaps filled. By
    default a stack of forecasts follows: of a network over all series, of autoregressions of single
    ones and of simple methods, mixed by how well they forecast the ends of the series
    (`rbfdiffnet.stack`). With ``scope="local"`` or ``"global"`` series are differenced and scaled
    where asked for, cut into windows of lags, and learned by an `RBFDiffNetRegressor`. Forecasts go
    the same way back. Series nothing can be fitted to get a documented fallback and a line in
    ``report_``, and never disturb the others.

    Parameters
    ----------
    freq : str or int
        Step of time: a pandas or polars alias (``"D"``, ``"MS"``, ``"1mo"``, ``"15min"``), or a
        number for integer dates.
    preset : {"default", "paper", "fast", "best"}, default="default"
        Default: window level, outliers treated as missing, penalties by leave-one-out error.
        Paper: ADF differences, mean removed, two seasons of lags and the paper's trainer. Fast: the
        paper's structure with one quick fit. Best: also width and metric are learned, and a stack
        treats noise in long series and learns from more rows.
        Any argument given overrides its preset.
    lags : "auto", int or sequence of int, default="auto"
        How many latest values the network sees, or which (1 is the latest).
    season_length : int, optional
        Steps in a season; by default the usual one of ``freq``.
    scope : {"auto", "local", "global"}, optional
        "auto": the stack, the most accurate, above all for many short series. "local": one network
        for each series. "global": one for all, each series on its own scale. By default "local"
        where another argument asks for networks of single series: ``preset="paper"`` or
        ``"fast"``, or any of ``lags``, ``strategy``, ``transforms``, ``regressor``, ``past_exog``,
        ``noise`` and ``device`` that is not at its default; "auto" otherwise.
    strategy : {"recursive", "direct"}, default="recursive"
        Feed forecasts back, or have a network with one output for each step ahead.
    transforms : "auto", None or sequence, default="auto"
        Steps of `rbfdiffnet.transforms.fit_transforms`; ``"log1p"`` comes first if at all.
        "auto" takes those of the preset.
    regressor : RBFDiffNetRegressor or RBFNetworkRegressor, optional
        The network and how it is trained.
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
        ``"cuda"`` (or ``"cuda:1"``) trains the networks of the preset "fast" on a GPU; that needs
        the extra ``[gpu]``. Series with inputs are not trained there.
    n_jobs : int, default=1
        Threads; results do not depend on it.
    memory_limit : int or str, default="2GB"
        Bytes, or text, that `forecast` may take for its work beside the frames where series have
        networks of their own: it goes through a large panel piece by piece. At least 1 GB; results
        do not depend on it. The default scope goes in parts of four million values whatever the
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

    Examples
    --------
    >>> from rbfdiffnet import RBFDiffNet
    >>> from rbfdiffnet.datasets import load_air_passengers
    >>> df = load_air_passengers().assign(unique_id="air")
    >>> model = RBFDiffNet(freq="MS").fit(df)
    >>> model.predict(2, level=[80]).columns.tolist()
    ['unique_id', 'ds', 'RBFDiffNet', 'RBFDiffNet-lo-80', 'RBFDiffNet-hi-80']
    """

    _parts: Parts = ALONE

    def __init__(
        self,
        freq: Any,
        *,
        preset: str = "default",
        lags: str | int | Sequence[int] = "auto",
        season_length: int | None = None,
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
        self.freq = freq
        self.preset = preset
        self.lags = lags
        self.season_length = season_length
        self.scope = scope
        self.strategy = strategy
        self.transforms = transforms
        self.regressor = regressor
        self.calendar = calendar
        self.events = tuple(as_list("events", events, "a list of rbfdiffnet.Event(name, dates)"))
        self.holidays = holidays
        self.holiday_lead = holiday_lead
        self.holiday_lag = holiday_lag
        self.past_exog = _names("past_exog", past_exog)
        self.static_exog = _names("static_exog", static_exog)
        self.lower = lower
        self.outliers = outliers
        self.noise = noise
        self.device = device
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.errors = errors
        self.id_col = id_col
        self.time_col = time_col
        self.target_col = target_col
        self._state: State | None = None
        self._last_report: Any = None
        self._check()

    # Fitting ------------------------------------------------------------------------------------

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
        """
        h = None if h is None else check_count("h", h)
        panel = self._panel(df)
        exogenous = self._exogenous(panel)
        self._state = self._fitted(panel, exogenous, self._plan(panel, h), calibrate=True)
        self._last_report = None
        return self

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
        """
        h = check_count("h", h)
        levels = _check_levels(level)
        panel = self._panel(df)
        panel.check_ahead(h)
        exogenous = self._exogenous(panel)
        plan = self._plan(panel, h)
        ahead = exogenous.ahead(panel, h, X_df)
        columns, notes = self._forecast_in_pieces(panel, exogenous, plan, h, ahead, levels)
        self._last_report = self._report_of(panel, (*panel.problems, *notes))
        flat = {name: values.ravel() for name, values in columns.items()}
        return panel.frame(panel.lengths, np.full(panel.n_series, h), flat)

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
        """
        state = self._fitted_state()
        _check_refit(refit, self._scope)
        newer = Panel.from_frame(
            df, self._columns, self.freq, inputs=state.exogenous.columns, errors=self.errors
        )
        panel = state.panel.extended(newer)
        grown = panel.n_series - state.panel.n_series
        if grown and not refit and self._scope == "local":
            names = ", ".join(
                repr(panel.name(i)) for i in range(state.panel.n_series, panel.n_series)[:3]
            )
            raise ValueError(
                f"Series {names} were not there when the model was fitted; "
                "use update(df, refit=True), or scope='global'."
            )
        series = state.exogenous.series(panel)
        model = state.model
        if self._scope == "auto" or (refit and refit != "weights"):
            model = self._learned(panel, series, model.plan, calibrate=True)
        elif grown:
            model = model.joined(adopt_series(model, series[-grown:]))
        if refit == "weights":
            model = model.learned(series)
        notes = self._notes(panel, model, series)
        self._state = State(panel, state.exogenous, model, series, notes)
        self._last_report = None
        return self

    # Forecasting --------------------------------------------------------------------------------

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
            Levels of prediction intervals in percent; None for none. See `rbfdiffnet.intervals`.
        new_df : pandas or polars DataFrame, optional
            Histories of other series, to be forecast by a global model instead of its own.

        Returns
        -------
        frame
            ``unique_id, ds, RBFDiffNet`` and, for each level, ``RBFDiffNet-lo-80`` and
            ``RBFDiffNet-hi-80``; in the library of the frame that was fitted.
        """
        state = self._fitted_state()
        if new_df is not None:
            state = self._adopted(state, new_df)
        frame, notes = self._predicted(state, h, X_df, level)
        self._last_report = self._report(replace(state, notes=(*state.notes, *notes)))
        return frame

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
        """
        h, n_windows = check_count("h", h), check_count("n_windows", n_windows)
        step = h if step_size is None else check_count("step_size", step_size)
        _check_refit(refit, self._scope, or_count=True)
        levels = _check_levels(level)
        panel = self._panel(df)
        plan = self._plan(panel, h)
        every = n_windows if refit in (False, "weights") else int(refit)
        lengths = panel.lengths
        values: list[Array] = []
        cutoffs: list[Ints] = []
        model: PanelModel | None = None
        notes: dict[tuple[int, str], Problem] = {}
        for window in range(n_windows):
            origins = np.maximum(lengths - h - (n_windows - 1 - window) * step, 0)
            if model is None or window % every == 0:
                # Series that have not begun say nothing about the inputs.
                past = panel.truncated(lengths - origins).select(np.flatnonzero(origins))
                exogenous = self._exogenous(past)
                series = exogenous.series(panel)
                seen = [s.until(int(o)) for s, o in zip(series, origins, strict=True)]
                model = self._learned(panel, seen, plan, calibrate=level is not None)
                for note in self._notes(panel, model, seen):
                    notes[note.series, note.problem] = note
            elif refit == "weights":
                seen = [s.until(int(o)) for s, o in zip(series, origins, strict=True)]
                model = model.learned(seen)
            ahead = [s.known_ahead[o : o + h] for s, o in zip(series, origins, strict=True)]
            ahead = [np.pad(a, ((0, h - len(a)), (0, 0))) for a in ahead]
            with within(window / n_windows, (window + 1) / n_windows):
                found, _ = self._columns_of(model, series, origins, h, ahead, levels)
            values.append(np.stack(list(found.values())))
            cutoffs.append(origins)
        self._last_report = self._report_of(panel, (*panel.problems, *notes.values()))
        return _backtest_frame(panel, cutoffs, values, [*self._names(levels)], h)

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
        """
        state = self._fitted_state()
        h = check_count("h", h)
        panel = state.panel if new_df is None else self._adopted(state, new_df).panel
        panel.check_ahead(h)
        return panel.frame(panel.lengths, np.full(panel.n_series, h), {})

    def fitted_values(self) -> Any:
        """One-step forecasts of the observations the models were trained on.

        Returns
        -------
        frame
            ``unique_id, ds, y, RBFDiffNet``, from the first date with a full window on; the direct
            strategy gives the first of its steps. Series without a network are left out.
        """
        state = self._fitted_state()
        if self._scope == "auto":
            raise ValueError(
                "fitted_values() needs fitted networks, and scope='auto' keeps none: it learns "
                "anew for every forecast. Use cross_validation(df, h), or scope='local' or "
                "scope='global'."
            )
        panel, model = state.panel, state.model
        keep = [
            i for i, m in enumerate(model.models) if m is not None and panel.lengths[i] > m.history
        ]
        firsts = np.array([model.models[i].history for i in keep], dtype=np.int64)  # type: ignore[union-attr]
        values, actual = [], []
        for i, first in zip(keep, firsts, strict=True):
            fitted = model.one_step(i, state.series[i], int(first))
            values.append(self._bounded(fitted))
            actual.append(state.series[i].y[first:])
        chosen = panel.select(np.array(keep, dtype=np.int64))
        columns = {
            self.target_col: np.concatenate([*actual, np.empty(0)]),
            NAME: np.concatenate([*values, np.empty(0)]),
        }
        return chosen.frame(firsts, chosen.lengths - firsts, columns)

    # Looking inside -----------------------------------------------------------------------------

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
            end. Contributions add up to the forecast. With ``scope="auto"``, the default, the terms
            are its members, each with its forecast and weight; for lags and exemplars use
            ``scope="local"``.
        """
        from rbfdiffnet.explain import explanation

        if self._scope == "auto":
            return self._explained_stack(h, X_df, ids)
        state = self._selected(ids)
        h = check_count("h", h)
        state.panel.check_ahead(h)
        ahead = state.exogenous.ahead(state.panel, h, X_df, self._fitted_state().panel)
        origins = state.panel.lengths
        forecasts = state.model.forecast(state.series, origins, h, ahead, self.n_jobs)
        return explanation(state, forecasts, ahead, self._bounded(forecasts.values))

    def _explained_stack(self, h: int, X_df: Any, ids: Sequence[Any] | None) -> Any:
        from rbfdiffnet.explain import stack_explanation

        state = self._fitted_state()
        stack: Any = state.model
        h = check_count("h", h)
        state.panel.check_ahead(h)
        chosen = self._chosen(ids)
        ahead = state.exogenous.ahead(state.panel, h, X_df)
        mixture = stack.mixture(state.series, state.panel.lengths, h, ahead, self.n_jobs)
        return stack_explanation(
            state.panel.select(np.array(chosen, dtype=np.int64)),
            mixture,
            chosen,
            self._bounded(mixture.values),
            [preparation is not None for preparation in stack.preparations],
        )

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
        """
        from rbfdiffnet.explain import operator_table

        return operator_table(self._with_networks(ids))

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
        """
        from rbfdiffnet.plots import plot_operator

        return plot_operator(self.equation([unique_id]), ax)

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
        """
        from rbfdiffnet.plots import plot_panel

        whole = self._fitted_state()
        together = self._scope == "auto"  # a stack forecasts all series or none
        state = whole if together else self._selected(ids, most=4)
        h = check_count("h", h)
        history = check_count("history", history)
        state.panel.check_ahead(h)
        levels = _check_levels(level)
        ahead = state.exogenous.ahead(state.panel, h, X_df, whole.panel)
        origins = state.panel.lengths
        columns, _ = self._columns_of(state.model, state.series, origins, h, ahead, levels)
        if not together:
            return plot_panel(state.panel, columns, h, history)
        chosen = np.array(self._chosen(ids, most=4), dtype=np.int64)
        columns = {name: values[chosen] for name, values in columns.items()}
        return plot_panel(whole.panel.select(chosen), columns, h, history)

    @property
    def report_(self) -> Any:
        """Everything unusual: a frame of series, problem, what was done.

        After `predict` and `forecast` also forecasts that the rule of `rbfdiffnet.stability` held
        back: no step of a network leaves its window by more than twice what was seen, and no
        forecast the range of its series by more than three times its span.
        """
        if self._last_report is not None:
            return self._last_report
        return self._report(self._fitted_state())

    @property
    def chosen_(self) -> Any:
        """What was chosen from the data: a frame with a row for every series.

        With ``scope="auto"`` the weights of the members in the latest forecasts, all 0 where no
        errors were known and their median was taken, or where there are none. Otherwise the lags of
        differences, ages of inputs, level of the windows, order and number of centers of every
        series that has a network.
        """
        from rbfdiffnet.chosen import chosen_networks, chosen_weights

        state = self._fitted_state()
        if self._scope != "auto":
            return chosen_networks(state.panel, state.model.models)
        return chosen_weights(state.panel, self._mixture(), state.model.plan.season_length)

    @property
    def noise_(self) -> Any:
        """What ``noise`` led to: a frame with a row for every series that has a network.

        ``noise_std`` and ``signal_to_noise`` (the ratio of variances) are of the series, or of its
        logarithms where these are taken; NaN, and a ``reason``, where noise was not treated.
        """
        state = self._fitted_state()
        if not self.noise:
            raise ValueError("Noise was not looked for: use noise='auto', with scope='local'.")
        own = {i: model for i, model in enumerate(state.model.models) if model is not None}
        levels = [model.noise or (np.nan, np.nan) for model in own.values()]
        return state.panel.table(
            np.array(list(own), dtype=np.int64),
            {
                "noise_std": [level for level, _ in levels],
                "signal_to_noise": [ratio for _, ratio in levels],
                "reason": [model.untreated for model in own.values()],
            },
        )

    @property
    def weights_(self) -> dict[str, float]:
        """How much each member counts in the latest forecasts, with ``scope="auto"``.

        That is on average over the series; all 0 where no errors are known, and the median of the
        members was taken.
        """
        return {name: float(own.mean()) for name, own in self._mixture().weights.items()}

    def _mixture(self) -> Mixture:
        """Of the latest forecasts."""
        stack: Any = self._fitted_state().model
        if self._scope != "auto":
            raise ValueError("There are weights of members with scope='auto' only.")
        latest: Mixture | None = stack.latest
        if latest is None:
            raise ValueError("Members are weighed when forecasts are made: use predict first.")
        return latest

    # Files --------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Save the fitted model to a file: arrays and JSON, nothing that is executed on loading.

        Of long histories the latest steps are kept, as many as forecasts, intervals and
        ``update(refit="weights")`` need (at least 1,000), so `fitted_values` of a loaded model may
        start later. With ``scope="auto"`` all are kept.

        Parameters
        ----------
        path : path-like
        """
        from rbfdiffnet.persistence import save

        save(self, path)

    @classmethod
    def load(cls, path: Any) -> Self:
        """Load a model from a file made by `save`.

        Parameters
        ----------
        path : path-like

        Returns
        -------
        RBFDiffNet
        """
        from rbfdiffnet.persistence import load

        return load(cls, path)

    # Inside -------------------------------------------------------------------------------------

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    @property
    def _scope(self) -> str:
        """The scope that was given, or the one that the other arguments ask for."""
        if self.scope is not None:
            return self.scope
        single = (
            self.preset in ("paper", "fast"),
            not isinstance(self.lags, str),
            self.strategy != "recursive",
            not isinstance(self.transforms, str),
            self.regressor is not None,
            self.past_exog,
            self.noise is not None,
            self.device != "cpu",
        )
        return "local" if any(single) else "auto"

    @property
    def _quick(self) -> bool:
        """Whether networks of single series are trained all at once."""
        return PRESETS[self.preset].quick and self.regressor is None

    @property
    def _columns(self) -> Columns:
        return Columns(self.id_col, self.time_col, self.target_col)

    def _check(self) -> None:
        names = {name: getattr(self, name) for name in ("id_col", "time_col", "target_col")}
        for name, value in names.items():
            if not isinstance(value, str):
                raise ValueError(f"{name} must be the name of a column, a text; got {value!r}.")
        if len({*names.values(), NAME, "cutoff"}) < 5:
            raise ValueError(
                f"id_col, time_col and target_col must differ, also from {NAME!r} and 'cutoff'."
            )
        check_choice("preset", self.preset, PRESETS)
        check_choice("strategy", self.strategy, ("recursive", "direct"))
        check_choice("errors", self.errors, ("fallback", "raise"))
        if not (isinstance(self.device, str) and re.fullmatch(r"cpu|cuda(:\d+)?", self.device)):
            raise ValueError(f"device must be 'cpu', 'cuda' or 'cuda:N'; got {self.device!r}.")
        check_noise(self.noise)
        check_choice("scope", self._scope, ("auto", "local", "global"))
        if self.device != "cpu" and not (self._quick and self._scope == "local"):
            raise ValueError(
                f"device={self.device!r} is for preset='fast' with scope='local' and its own "
                "regressor; use these, or device='cpu'."
            )
        if self.noise and self.device != "cpu":
            raise ValueError("noise is treated on the processor only; use device='cpu'.")
        if self.noise and (self._scope, self.strategy) != ("local", "recursive"):
            raise ValueError("noise needs scope='local' and strategy='recursive'.")
        if self.season_length is not None:
            _checked_steps("season_length", self.season_length)
        if self.lower is not None and not is_number(self.lower):
            raise ValueError(f"lower must be a finite number or None; got {self.lower!r}.")
        if not (is_number(self.n_jobs, Integral) and (self.n_jobs >= 1 or self.n_jobs == -1)):
            raise ValueError(f"n_jobs must be a positive integer or -1; got {self.n_jobs!r}.")
        bytes_of(self.memory_limit)
        check_number("random_state", self.random_state, at_least=0, integer=True)
        if not isinstance(self.outliers, bool | np.bool_ | None):
            raise ValueError(f"outliers must be True, False or None; got {self.outliers!r}.")
        self._lags()
        self._check_inputs()
        if self.regressor is not None and not (
            hasattr(self.regressor, "_settings") and not isinstance(self.regressor, type)
        ):
            raise ValueError(
                "regressor must be an RBFDiffNetRegressor or an RBFNetworkRegressor; got "
                f"{self.regressor!r}."
            )
        if isinstance(self.transforms, str | None):
            if self.transforms not in ("auto", None):
                raise ValueError(
                    f"transforms must be 'auto', None or a list; got {self.transforms!r}."
                )
            return
        for place, step in enumerate(
            as_list("transforms", self.transforms, "'auto', None or a list")
        ):
            check_transform(step)
            if place and isinstance(step, str) and step == "log1p":
                raise ValueError("The transform 'log1p' comes first, before any other.")

    def _check_inputs(self) -> None:
        if not all(isinstance(event, Event) for event in self.events):
            raise ValueError("events must be a list of rbfdiffnet.Event(name, dates).")
        if not isinstance(self.calendar, str | None):
            as_list("calendar", self.calendar, "None, 'auto' or a list of parts")
        if not isinstance(self.holidays, str | None):
            raise ValueError(f"holidays must be a country such as 'US'; got {self.holidays!r}.")
        for name in ("holiday_lead", "holiday_lag"):
            check_days(name, getattr(self, name))

    def _lags(self) -> tuple[int, ...] | None:
        if isinstance(self.lags, str) and self.lags == "auto":
            return None
        if is_number(self.lags, Integral):
            lags = range(1, _checked_steps("lags", self.lags) + 1)
            return tuple(lags)
        chosen = as_list("lags", self.lags, "'auto', a number or a list")
        if not chosen:
            raise ValueError(f"lags must be 'auto', a number or a list; got {self.lags!r}.")
        return tuple(sorted({_checked_steps("lags", lag) for lag in chosen}))

    def _plan(self, panel: Panel, h: int | None) -> Plan:
        preset: Preset = PRESETS[self.preset]
        season = int(self.season_length or panel.frequency.season_length)
        transforms: tuple[Any, ...] = preset.transforms
        if not isinstance(self.transforms, str):
            transforms = () if self.transforms is None else tuple(self.transforms)
        log = bool(transforms) and transforms[0] == "log1p"
        if self.strategy == "direct" and h is None:
            raise ValueError("The direct strategy must know the horizon: fit(df, h=...).")
        regressor = preset.regressor() if self.regressor is None else self.regressor
        lags = self._lags()
        if lags is None and preset.seasons_of_lags:
            lags = tuple(range(1, preset.seasons_of_lags * max(season, 2) + 1))
        return Plan(
            settings=partial(_seeded_settings, regressor, self.random_state),
            season_length=season,
            lags=lags,
            level=preset.level,
            transforms=transforms[1:] if log else transforms,
            log=log,
            clean=preset.clean if self.outliers is None else self.outliers,
            block=h if self.strategy == "direct" and h is not None else 1,
            quick=self._quick and self._scope == "local",
            device=self.device,
            noise=self.noise or None,
            thorough=preset.thorough,
            parts=self._parts,
        )

    def _panel(self, df: Any) -> Panel:
        names = Exogenous.columns_of(df, self._columns)
        return Panel.from_frame(df, self._columns, self.freq, inputs=names, errors=self.errors)

    def _exogenous(self, panel: Panel) -> Exogenous:
        return Exogenous.fitted(
            panel,
            past=self.past_exog,
            static=self.static_exog,
            use_static=self._scope == "global",
            calendar=self.calendar,
            events=self.events,
            holidays=self.holidays,
            holiday_lead=self.holiday_lead,
            holiday_lag=self.holiday_lag,
            parts=self._parts,
        )

    def _fitted(self, panel: Panel, exogenous: Exogenous, plan: Plan, *, calibrate: bool) -> State:
        series = exogenous.series(panel)
        model = self._learned(panel, series, plan, calibrate=calibrate)
        return State(panel, exogenous, model, series, self._notes(panel, model, series))

    def _learned(
        self, panel: Panel, series: Sequence[Series], plan: Plan, *, calibrate: bool
    ) -> Any:
        if self._scope == "auto":
            from rbfdiffnet.stack.parts import stack_of

            return stack_of(series, plan, [panel.name(i) for i in range(panel.n_series)])
        return fit_panel(series, plan, scope=self._scope, calibrate=calibrate, n_jobs=self.n_jobs)

    def _adopted(self, state: State, df: Any) -> State:
        if self._scope != "global":
            raise ValueError("Other series can be forecast by a global model only: scope='global'.")
        panel = Panel.from_frame(
            df, self._columns, self.freq, inputs=state.exogenous.columns, errors=self.errors
        )
        series = state.exogenous.series(panel)
        model = adopt_series(state.model, series)
        return State(panel, state.exogenous, model, series, self._notes(panel, model, series))

    def _chosen(self, ids: Sequence[Any] | None, most: int | None = None) -> list[int]:
        panel = self._fitted_state().panel
        everything = range(panel.n_series)
        if ids is None:
            return list(everything[:most])
        ids = [ids] if isinstance(ids, str) else as_list("ids", ids, "a list of series")
        where = {panel.name(i): i for i in everything}
        unknown = [name for name in ids if str(name) not in where]
        if unknown:
            raise ValueError(f"There is no series {unknown[0]!r}; known are {list(where)[:5]}.")
        return [where[str(name)] for name in ids]

    def _selected(self, ids: Sequence[Any] | None, most: int | None = None) -> State:
        state = self._fitted_state()
        chosen = self._chosen(ids, most)
        if chosen == list(range(state.panel.n_series)):
            return state
        return state.select(np.array(chosen, dtype=np.int64))

    def _with_networks(self, ids: Sequence[Any] | None) -> State:
        """Chosen series and their networks, which a stack does not keep."""
        if self._scope != "auto":
            return self._selected(ids)
        state = self._fitted_state()
        chosen = self._chosen(ids)
        series = [state.series[i] for i in chosen]
        plan = replace(state.model.plan, quick=self._quick)
        model = fit_panel(series, plan, scope="local", calibrate=False, n_jobs=self.n_jobs)
        panel = state.panel.select(np.array(chosen, dtype=np.int64))
        return State(panel, state.exogenous, model, series)

    def _notes(
        self, panel: Panel, model: PanelModel, series: Sequence[Series]
    ) -> tuple[Problem, ...]:
        if model.reasons and self.errors == "raise":
            i, reason = next(iter(model.reasons.items()))
            raise ValueError(
                f"Series {panel.name(i)!r} cannot be fitted: {reason}. Leave it out, or use "
                "errors='fallback' to get a naive forecast for it."
            )
        naive = "forecast by the last season, or the last value"
        notes = [
            Problem(i, reason, "forecast 0" if reason == "no values" else naive)
            for i, reason in model.reasons.items()
        ]
        for i, own in enumerate(model.models):
            if own is not None and own.noise is not None:
                std, ratio = own.noise
                logs = " of the logarithms" if own.preparation.log else ""
                text = f"noise{logs} of standard deviation {std:.3g}, signal-to-noise {ratio:.3g}"
                notes.append(Problem(i, text, "clean trajectory learned, latest values filtered"))
            elif own is not None and self.noise and self.noise != "auto":
                notes.append(Problem(i, own.untreated, "noise was not treated"))
        for i, odd in model.outliers(series):
            plural = "s" if odd.size > 1 else ""
            text = f"{odd.size} outlier{plural}, first {panel.label(i, int(odd[0]))}"
            notes.append(Problem(i, text, "treated as missing"))
        return tuple(notes)

    def _predicted(
        self, state: State, h: int, X_df: Any, level: Sequence[float] | None
    ) -> tuple[Any, tuple[Problem, ...]]:
        h = check_count("h", h)
        levels = _check_levels(level)
        panel = state.panel
        panel.check_ahead(h)
        ahead = state.exogenous.ahead(panel, h, X_df)
        columns, notes = self._columns_of(
            state.model, state.series, panel.lengths, h, ahead, levels
        )
        flat = {name: values.ravel() for name, values in columns.items()}
        return panel.frame(panel.lengths, np.full(panel.n_series, h), flat), notes

    def _pieces(self, panel: Panel, plan: Plan, h: int, n_inputs: int) -> list[Ints]:
        """Positions of the series that are forecast together."""
        if self._parts is not ALONE:
            return [np.arange(panel.n_series)]
        if self._scope == "auto":
            from rbfdiffnet.stack.parts import part_numbers

            numbers = part_numbers(map(panel.name, range(panel.n_series)), panel.y.size)
            return [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
        n_lags = max(plan.lags or (default_lags(plan.season_length),))
        return pieces(panel.lengths, n_inputs, n_lags + h, bytes_of(self.memory_limit))

    def _pool(
        self,
        panel: Panel,
        exogenous: Exogenous,
        plan: Plan,
        h: int,
        ahead: Sequence[Array],
        levels: Mapping[str, float],
        cut: Sequence[Ints],
        model: PanelModel | None,
    ) -> Pool:
        """What series with few errors borrow from others; those may be in any piece."""
        chosen = _lenders(panel, exogenous, cut)
        largest = max(piece.size for piece in cut)
        errors, scales = [], []
        for first in range(0, chosen.size, largest):
            some = chosen[first : first + largest]
            part = panel.select(some)
            series, later = exogenous.series(part), [ahead[i] for i in some.tolist()]
            if model is None:
                own = self._learned(part, series, plan, calibrate=True)
            else:
                own = model.select(some.tolist())
            lent = own.lent(series, part.lengths, h, later, self.n_jobs)
            errors += lent[0]
            scales.append(lent[1])
        return pooled(errors, np.concatenate(scales), list(levels.values()))

    def _forecast_in_pieces(
        self,
        panel: Panel,
        exogenous: Exogenous,
        plan: Plan,
        h: int,
        ahead: Sequence[Array],
        levels: Mapping[str, float],
    ) -> tuple[dict[str, Array], list[Problem]]:
        """Forecasts and intervals, shape (n, h) each, and what was unusual.

        Of one piece of the panel after the other, whose models are not kept.
        """
        n_inputs = len(exogenous.ahead_names) + len(exogenous.extra_names)
        calibrate, cut = bool(levels), self._pieces(panel, plan, h, n_inputs)
        everything = None
        if self._scope == "global" or len(cut) < 2:
            everything = self._fitted(panel, exogenous, plan, calibrate=calibrate)

        def of(chosen: Ints) -> State:
            if everything is None:
                return self._fitted(panel.select(chosen), exogenous, plan, calibrate=calibrate)
            return everything.select(chosen) if len(cut) > 1 else everything

        pool = None
        if levels and len(cut) > 1 and self._scope != "auto":
            model = None if everything is None else everything.model
            pool = self._pool(panel, exogenous, plan, h, ahead, levels, cut, model)
        columns = {name: np.empty((panel.n_series, h)) for name in self._names(levels)}
        notes: list[Problem] = []
        done, total = 0, max(panel.n_series, 1)
        for piece in cut:
            end = done + piece.size
            with within(done / total, end / total):
                state, later = of(piece), [ahead[i] for i in piece.tolist()]
                found, odd = self._columns_of(
                    state.model, state.series, state.panel.lengths, h, later, levels, pool
                )
            for name, values in found.items():
                columns[name][piece] = values
            for note in (*state.notes, *odd):
                notes.append(replace(note, series=int(piece[note.series])))
            done = end
        return columns, notes

    def _columns_of(
        self,
        model: PanelModel,
        series: Sequence[Series],
        origins: Ints,
        h: int,
        ahead: Sequence[Array],
        levels: Mapping[str, float],
        pool: Pool | None = None,
    ) -> tuple[dict[str, Array], tuple[Problem, ...]]:
        """Forecasts and intervals, shape (n, h) each, and what went wrong."""
        forecasts: Forecasts = model.forecast(series, origins, h, ahead, self.n_jobs)
        columns = {NAME: self._bounded(forecasts.values)}
        notes = [
            Problem(i, "the network gave no finite forecast", "forecast by the last season")
            for i in forecasts.diverged
        ]
        notes += [Problem(i, said, "held within bounds") for i, said in forecasts.runaway.items()]
        if levels and len(series):
            shares = list(levels.values())
            low, high, sure = model.intervals(series, origins, h, ahead, shares, self.n_jobs, pool)
            for j, label in enumerate(levels):
                lowest = np.minimum(low[:, :, j], forecasts.values)
                columns[f"{NAME}-lo-{label}"] = self._bounded(lowest)
                highest = np.maximum(high[:, :, j], forecasts.values)
                columns[f"{NAME}-hi-{label}"] = self._bounded(highest)
            notes += [
                Problem(int(i), "too few errors for the intervals", "the largest error was taken")
                for i in np.flatnonzero(~sure)
            ]
        elif levels:
            columns |= {name: np.empty((0, h)) for name in self._names(levels)[1:]}
        return columns, tuple(notes)

    def _names(self, levels: Mapping[str, float]) -> list[str]:
        return [NAME, *(f"{NAME}-{side}-{label}" for label in levels for side in ("lo", "hi"))]

    def _bounded(self, values: Array) -> Array:
        largest = np.finfo(np.float64).max / 4
        values = np.clip(values, -largest, largest)
        return values if self.lower is None else np.maximum(values, self.lower)

    def _report(self, state: State) -> Any:
        return self._report_of(state.panel, (*state.panel.problems, *state.notes))

    def _report_of(self, panel: Panel, problems: Sequence[Problem]) -> Any:
        ordered = sorted(problems, key=lambda problem: problem.series)
        return panel.table(
            np.array([problem.series for problem in ordered], dtype=np.int64),
            {
                "problem": [problem.problem for problem in ordered],
                "action": [problem.action for problem in ordered],
            },
        )

    def _fitted_state(self) -> State:
        if self._state is None:
            raise RuntimeError("This model is not fitted yet; call fit(df) first.")
        return self._state


def _lenders(panel: Panel, exogenous: Exogenous, cut: Sequence[Ints]) -> Ints:
    """Positions of the series from which others borrow errors."""
    prints: list[bytes] = [b""] * panel.n_series
    for piece in cut:
        for i, series in zip(piece.tolist(), exogenous.series(panel.select(piece)), strict=True):
            prints[i] = series.fingerprint
    return np.array(lenders(prints), dtype=np.int64)


def _backtest_frame(
    panel: Panel, cutoffs: list[Ints], values: list[Array], names: list[str], h: int
) -> Any:
    """Frame of all windows, series by series, without those that have no value before them."""
    n, windows = panel.n_series, len(cutoffs)
    origins = np.stack(cutoffs, axis=1) if n else np.empty((0, windows), dtype=np.int64)
    i, w = np.nonzero(origins > 0)
    start = origins[i, w]
    size = np.minimum(panel.lengths[i] - start, h)
    row = np.repeat(np.arange(i.size), size)
    ahead = np.arange(row.size) - np.repeat(np.cumsum(size) - size, size)
    table = np.stack(values, axis=2) if n else np.empty((len(names), 0, windows, h))
    columns = {panel.columns.target: panel.y[panel.offsets[i[row]] + start[row] + ahead]}
    columns |= {name: table[k, i[row], w[row], ahead] for k, name in enumerate(names)}
    chosen = panel.select(i)
    return chosen.frame(start, size, columns, extra_times={"cutoff": start[row] - 1})


def _seeded_settings(regressor: Any, seed: int, n_inputs: int) -> Settings:
    settings: Settings = regressor._settings(n_inputs)
    return replace(settings, seed=seed)


def _names(name: str, columns: str | Sequence[str]) -> tuple[str, ...]:
    found = [columns] if isinstance(columns, str) else as_list(name, columns, "a list of columns")
    if not all(isinstance(column, str) for column in found):
        raise ValueError(f"{name} must be a list of names of columns; got {columns!r}.")
    return tuple(found)


def _checked_steps(name: str, value: Any) -> int:
    if check_count(name, value) > _MOST_STEPS:
        raise ValueError(f"{name} must be at most {_MOST_STEPS:,}; got {value!r}.")
    return int(value)


def _check_refit(refit: Any, scope: str, *, or_count: bool = False) -> None:
    if isinstance(refit, bool):
        return
    if or_count and not isinstance(refit, str):
        check_count("refit", refit)
    elif not (isinstance(refit, str) and refit == "weights"):
        number = " or a positive integer" if or_count else ""
        raise ValueError(f"refit must be True, False, 'weights'{number}; got {refit!r}.")
    elif scope == "auto":
        raise ValueError(
            "refit='weights' needs scope='global': scope='auto' learns anew from all observations "
            "for every forecast, with refit=True and refit=False alike."
        )
    elif scope == "local":
        raise ValueError(
            "refit='weights' needs scope='global': networks of single series have no statistics "
            "that rows can be added to. Use refit=True."
        )


def _check_levels(level: Any) -> dict[str, float]:
    """Levels in percent by their label, ascending."""
    if level is None:
        return {}
    given = [level] if is_number(level) else as_list("level", level, "a list of percentages")
    for value in given:
        if not (is_number(value) and 1 <= value < 100):
            raise ValueError(
                f"level must hold percentages from 1 to 100, such as 80; got {value!r}."
            )
    return {f"{value:g}": value / 100.0 for value in sorted({float(v) for v in given})}
