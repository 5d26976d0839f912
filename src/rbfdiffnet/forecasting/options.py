"""What may be asked of `RBFDiffNet`: its arguments in one frozen object, checked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np

from rbfdiffnet.forecasting.groups import GroupedInputs, add_groups, extend_groups, is_series
from rbfdiffnet.forecasting.hierarchy import RECONCILERS
from rbfdiffnet.forecasting.presets import PRESETS, Preset
from rbfdiffnet.models.base import PanelMethod
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.scopes import METHODS, SCOPES
from rbfdiffnet.panel.calendar import Event, Holidays, as_holidays
from rbfdiffnet.panel.exogenous import Exogenous
from rbfdiffnet.panel.frames import ColumnNames
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.series.transforms import check_transform
from rbfdiffnet.support.checks import (
    Noise,
    as_list,
    check_choice,
    check_count,
    check_noise,
    is_number,
)
from rbfdiffnet.support.parallel import SINGLE_MACHINE, Collective

NAME = "RBFDiffNet"  # of the column of forecasts
ALONE = f"{NAME}-alone"  # of the same in a hierarchy, before they were made to add up
MEAN = f"{NAME}-mean"  # of means of what quantiles tell, which add up as forecasts do not
_MOST_STEPS = 1_000_000  # of lags and seasons
_RAREST, _DIGITS = 1e-6, 8  # probability of a quantile, and decimals that count
_LEAST_MEMORY = 10**9  # bytes; with less, libraries and single series alone may take more
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass(frozen=True)
class Options:
    """The arguments of `RBFDiffNet`, which documents them; making an object checks them all."""

    freq: Any
    preset: str = "default"
    lags: Any = "auto"
    season_length: Any = None
    scope: str | None = None
    strategy: str = "recursive"
    transforms: Any = "auto"
    regressor: Any = None
    calendar: Any = None
    events: tuple[Event, ...] = ()
    holidays: str | Holidays | None = None
    past_exog: tuple[str, ...] = ()
    static_exog: tuple[str, ...] = ()
    lower: float | None = None
    upper: float | None = None
    outliers: bool | None = None
    noise: Noise = None
    device: str = "cpu"
    n_jobs: int = 1
    memory_limit: int | str = "2GB"
    errors: str = "fallback"
    hierarchy: Any = None
    reconcile: str = "variance"
    id_col: str = "unique_id"
    time_col: str = "ds"
    target_col: str = "y"

    def __post_init__(self) -> None:
        events = as_list("events", self.events, "a list of rbfdiffnet.Event(name, dates)")
        self._settle("events", tuple(events))
        for name in ("lags", "transforms", "calendar"):
            given = getattr(self, name)
            given = given.tolist() if hasattr(given, "tolist") else given  # arrays, columns
            if isinstance(given, list):
                self._settle(name, tuple(given))
        for name in ("past_exog", "static_exog"):
            self._settle(name, _column_list(name, getattr(self, name)))
        if self.hierarchy is not None:
            self._settle("hierarchy", levels_of(self.hierarchy))
        self._check()
        if not isinstance(self.season_length, Integral | None):
            self._settle("season_length", seasons_of(self.season_length))

    def _settle(self, name: str, value: tuple[Any, ...]) -> None:
        """Set an argument; one that is the same already stays, as scikit-learn's clone asks for."""
        given = getattr(self, name)
        if not isinstance(given, tuple) or given != value:
            object.__setattr__(self, name, value)

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of all arguments."""
        return [field.name for field in fields(cls)]

    # What follows from the arguments --------------------------------------------------------------

    @property
    def columns(self) -> ColumnNames:
        """The names of the columns of a frame."""
        return ColumnNames(self.id_col, self.time_col, self.target_col)

    @property
    def chosen_scope(self) -> str:
        """The scope that was given, or the one that the other arguments ask for."""
        if self.scope is not None:
            return self.scope
        asks_for_networks = self._for_networks or self.noise is not None
        return PRESETS[self.preset].scope or ("local" if asks_for_networks else "auto")

    @property
    def _for_networks(self) -> list[str]:
        """Names of the arguments that were given and matter to fitted networks only."""
        given = {
            "lags": not isinstance(self.lags, str),
            "strategy": self.strategy != "recursive",
            "transforms": not isinstance(self.transforms, str),
            "regressor": self.regressor is not None,
        }
        return [name for name, is_given in given.items() if is_given]

    @property
    def _is_fast(self) -> bool:
        """Whether networks of single series are trained all at once."""
        return PRESETS[self.preset].fast and self.regressor is None

    @property
    def method(self) -> PanelMethod:
        """The method that models a panel."""
        return METHODS[self.chosen_scope]

    @property
    def reconciles(self) -> bool:
        """Whether forecasts of groups and series are made to add up."""
        return self.hierarchy is not None and self.reconcile != "none"

    @property
    def memory_bytes(self) -> int:
        """The memory limit in bytes."""
        return bytes_of(self.memory_limit)

    @property
    def first_season(self) -> int | None:
        """The season that was given, or the shorter one of two."""
        return next(iter(seasons_of(self.season_length)), None)

    @property
    def longer_season(self) -> int | None:
        """The longer one of two seasons, 0 for none, None where that was left open."""
        if isinstance(self.season_length, Integral | None):
            return None
        return next(iter(self.season_length[1:]), 0)

    def make_plan(self, panel: Panel, h: int | None, collective: Collective) -> Plan:
        """Return how the series of a panel are modeled; h is needed by the direct strategy."""
        preset: Preset = PRESETS[self.preset]
        season = self._season(panel)
        transforms: tuple[Any, ...] = preset.transforms
        if not isinstance(self.transforms, str):
            transforms = () if self.transforms is None else tuple(self.transforms)
        log = bool(transforms) and transforms[0] == "log1p"
        if self.strategy == "direct" and h is None:
            raise ValueError("The direct strategy must know the horizon: fit(df, h=...).")
        regressor = preset.regressor() if self.regressor is None else self.regressor
        given_lags = lags_of(self.lags)
        lags = given_lags
        if lags is None and preset.seasons_of_lags:
            lags = tuple(range(1, preset.seasons_of_lags * max(season, 2) + 1))
        return Plan(
            settings=regressor._settings,
            season_length=season,
            longer_season=self.longer_season,
            lags=lags,
            shorten=preset.fast and given_lags is None,
            level=preset.level,
            transforms=transforms[1:] if log else transforms,
            log=log,
            clean=preset.clean if self.outliers is None else self.outliers,
            block=h if self.strategy == "direct" and h is not None else 1,
            fast=self._is_fast and self.method.learns_from != "panel",
            device=self.device,
            noise=self.noise or None,
            thorough=preset.thorough,
            adds_up=self.hierarchy is not None,
            collective=collective,
        )

    def read_series(self, df: Any, exogenous: Exogenous | None = None) -> Panel:
        """Read the series of a frame, with all its inputs or those that are known already."""
        labels = list(dict.fromkeys(chain.from_iterable(self.hierarchy or ())))
        found = exogenous.columns if exogenous else Exogenous.find_columns(df, self.columns)
        inputs = [name for name in found if name not in labels]
        return Panel.from_frame(df, self.columns, self.freq, inputs, self.errors, labels)

    def read_panel(self, df: Any, exogenous: Exogenous | None = None) -> Panel:
        """Read the series of a frame from their first values on, and add the hierarchy's groups."""
        panel = self.read_series(df, exogenous).trim()
        if self.hierarchy is None:
            return panel
        return add_groups(panel, self.hierarchy, self._season(panel))

    def extend_panel(self, panel: Panel, df: Any, exogenous: Exogenous) -> Panel:
        """Append the newer rows of a frame to the series of a panel, and to their groups."""
        newer = self.read_series(df, exogenous)
        if self.hierarchy is None:
            return panel.extend(newer)
        return extend_groups(panel, newer, self.hierarchy, self._season(panel))

    def read_inputs(self, panel: Panel, collective: Collective = SINGLE_MACHINE) -> Exogenous:
        """Learn how the further inputs of a panel become numbers."""
        series = panel if self.hierarchy is None else panel.select(is_series(panel))
        return self.with_groups(
            Exogenous.fit(
                series,
                past=self.past_exog,
                static=self.static_exog,
                use_static=self.method.learns_from == "panel",
                past_as_is=self.method.learns_from == "sample",
                alone=self.method.learns_series_alone,
                calendar=self.calendar,
                events=self.events,
                holidays=as_holidays(self.holidays),
                collective=collective,
            )
        )

    def with_groups(self, exogenous: Exogenous) -> Exogenous:
        """Return the inputs of series as those of series and the groups of the hierarchy."""
        return exogenous if self.hierarchy is None else GroupedInputs.of(exogenous, self.hierarchy)

    def _season(self, panel: Panel) -> int:
        return self.first_season or panel.frequency.season_length

    # Checks ---------------------------------------------------------------------------------------

    def _check(self) -> None:
        """Raise an error that names the first argument that is wrong."""
        self._check_columns()
        check_choice("preset", self.preset, PRESETS)
        check_choice("strategy", self.strategy, ("recursive", "direct"))
        check_choice("errors", self.errors, ("fallback", "raise"))
        check_choice("reconcile", self.reconcile, RECONCILERS)
        if not (isinstance(self.device, str) and re.fullmatch(r"cpu|cuda(:\d+)?", self.device)):
            raise ValueError(f"device must be 'cpu', 'cuda' or 'cuda:N'; got {self.device!r}.")
        check_noise(self.noise, getattr(self.regressor, "basis", "gaussian"))
        check_choice("scope", self.chosen_scope, SCOPES)
        _check_transforms(self.transforms)
        self._check_together()
        if len(seasons_of(self.season_length)) > 1 and not self.method.knows_longer_season:
            raise ValueError(
                f"season_length={self.season_length!r}: networks that are fitted know one season; "
                "give one, or use scope='auto' or 'pretrained'."
            )
        for name in ("lower", "upper"):
            if (bound := getattr(self, name)) is not None and not is_number(bound):
                raise ValueError(f"{name} must be a finite number or None; got {bound!r}.")
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise ValueError(
                f"lower must not be above upper; got lower={self.lower!r}, upper={self.upper!r}."
            )
        if not (is_number(self.n_jobs, Integral) and (self.n_jobs >= 1 or self.n_jobs == -1)):
            raise ValueError(f"n_jobs must be a positive integer or -1; got {self.n_jobs!r}.")
        bytes_of(self.memory_limit)
        if not isinstance(self.outliers, bool | np.bool_ | None):
            raise ValueError(f"outliers must be True, False or None; got {self.outliers!r}.")
        lags_of(self.lags)
        self._check_inputs()
        self._check_regressor()

    def _check_columns(self) -> None:
        names = {name: getattr(self, name) for name in ("id_col", "time_col", "target_col")}
        for name, value in names.items():
            if not isinstance(value, str):
                raise ValueError(f"{name} must be the name of a column, a text; got {value!r}.")
        if len({*names.values(), NAME, "cutoff"}) < 5:
            raise ValueError(
                f"id_col, time_col and target_col must differ, also from {NAME!r} and 'cutoff'."
            )
        inputs = (*self.past_exog, *self.static_exog)
        for column in inputs:
            if inputs.count(column) > 1:
                raise ValueError(
                    f"Column {column!r} is named more than once in past_exog and static_exog; name "
                    "it once, in static_exog if it never changes within a series."
                )
        for column in chain.from_iterable(self.hierarchy or ()):
            if column in (*names.values(), *inputs):
                raise ValueError(
                    f"hierarchy names column {column!r}, which has another role; a column of "
                    "groups is no id, date, target or input."
                )

    def _check_together(self) -> None:
        """Refuse arguments that do not go together."""
        method = self.method
        ignored = self._for_networks
        if method.fits_networks and self.transforms in (None, ("log1p",)):  # the stack knows these
            ignored = [name for name in ignored if name != "transforms"]
        if method.learns_from == "sample" and ignored:
            chosen = f"scope={self.scope!r}" if self.scope else f"preset={self.preset!r}"
            raise ValueError(
                f"{ignored[0]} is for networks that are fitted to series, and {chosen} has none; "
                "leave it out, or use scope='local' or 'global'."
            )
        if self.hierarchy is None and self.reconcile != "variance":
            raise ValueError(
                f"reconcile={self.reconcile!r} is for a hierarchy; name its columns by hierarchy."
            )
        if not method.fits_networks and self.past_exog:
            raise ValueError(
                "past_exog: the pretrained network learns nothing from a panel, so it cannot learn "
                "what inputs known only in the past say; leave them out of past_exog and of the "
                "frame, or use another preset or scope."
            )
        fast = self._is_fast and method.learns_series_alone
        if self.device != "cpu" and not (fast or method.learns_from == "sample"):
            raise ValueError(
                f"device={self.device!r} is for the default, for preset='instant', and for "
                "preset='fast' with scope='local' and its own regressor; use these, or "
                "device='cpu'."
            )
        if self.noise and self.device != "cpu":
            raise ValueError("noise is treated on the processor only; use device='cpu'.")
        takes_noise = method.learns_series_alone and self.strategy == "recursive"
        if self.noise and not takes_noise:
            raise ValueError("noise needs scope='local' and strategy='recursive'.")

    def _check_inputs(self) -> None:
        if not all(isinstance(event, Event) for event in self.events):
            raise ValueError("events must be a list of rbfdiffnet.Event(name, dates).")
        if not isinstance(self.calendar, str | None):
            as_list("calendar", self.calendar, "None, 'auto' or a list of parts")
        as_holidays(self.holidays)

    def _check_regressor(self) -> None:
        if self.regressor is not None and not (
            hasattr(self.regressor, "_settings") and not isinstance(self.regressor, type)
        ):
            raise ValueError(
                "regressor must be an RBFDiffNetRegressor or an RBFNetworkRegressor; got "
                f"{self.regressor!r}."
            )
        if not isinstance(getattr(self.regressor, "random_state", None), Integral | None):
            raise ValueError(
                "The regressor's random_state must be a whole number here, so that forecasts do "
                "not depend on the order of the series."
            )
        if getattr(self.regressor, "noise", None) is not None:
            raise ValueError(
                "The regressor's noise does not act here: give noise to RBFDiffNet itself, and "
                "none to its regressor."
            )


def lags_of(lags: Any) -> tuple[int, ...] | None:
    """Return the lags a network sees, ascending; None where they are to be chosen."""
    if isinstance(lags, str) and lags == "auto":
        return None
    if is_number(lags, Integral):
        return tuple(range(1, _check_steps("lags", lags) + 1))
    chosen = as_list("lags", lags, "'auto', a number or a list")
    if not chosen:
        raise ValueError(f"lags must be 'auto', a number or a list; got {lags!r}.")
    return tuple(sorted({_check_steps("lags", lag) for lag in chosen}))


def seasons_of(season_length: Any) -> tuple[int, ...]:
    """Return the seasons that were given: none, one, or a shorter and a longer one."""
    if season_length is None:
        return ()
    wanted = "a positive integer, or a list of one or two, the shorter season first"
    single = isinstance(season_length, str | bytes) or not isinstance(season_length, Iterable)
    if single or (isinstance(season_length, np.ndarray) and not season_length.ndim):
        return (_check_steps("season_length", season_length),)
    found = tuple(_check_steps("season_length", m) for m in season_length)
    if not 1 <= len(found) <= 2 or found[-1] < found[0] or len(set(found)) < len(found):
        raise ValueError(f"season_length must be {wanted}; got {season_length!r}.")
    return found


def levels_of(hierarchy: Any) -> tuple[tuple[str, ...], ...]:
    """Return the columns of each level between the total and the series.

    A list of columns stands for levels inside of one another, a list of lists for itself.
    """
    wanted = "a list of columns, or a list of lists of columns"
    given = as_list("hierarchy", hierarchy, wanted)
    if all(isinstance(column, str) for column in given):
        levels = [tuple(given[: k + 1]) for k in range(len(given))]
    else:
        levels = [tuple(as_list("hierarchy", columns, wanted)) for columns in given]
    for columns in levels:
        names = {column for column in columns if isinstance(column, str)}
        if not columns or len(names) < len(columns):
            raise ValueError(
                f"hierarchy must be {wanted}, each column once in a level; got {hierarchy!r}."
            )
    if not levels or len(set(levels)) < len(levels):
        raise ValueError(f"hierarchy must name different levels, at least one; got {hierarchy!r}.")
    return tuple(tuple(map(str, columns)) for columns in levels)


def bytes_of(limit: Any) -> int:
    """Return a limit of memory in bytes."""
    text = str(limit).strip().upper()
    match = re.fullmatch(r"(\d{1,18}(?:\.\d*)?)\s*([KMGT]?)B?", text)
    if isinstance(limit, bool) or not match:
        raise ValueError(f"memory_limit must be bytes, or text such as '2GB'; got {limit!r}.")
    found = int(float(match[1]) * _UNITS[match[2]])
    if found < _LEAST_MEMORY:
        raise ValueError(
            f"memory_limit must be at least {_LEAST_MEMORY / 1e9:g}GB: a single long series may "
            f"take that much; got {limit!r}."
        )
    return found


def name_quantiles(level: Any = None, quantiles: Any = None) -> dict[str, float]:
    """Return the columns of quantiles that are asked for, and their probabilities.

    An interval of 80 % lies between the quantiles of 10 % and 90 %.
    """
    found = {}
    percent = "percentages from 1 to 99.9998, such as 80"
    for value in _numbers("level", level, 1.0, 100.0 - 200.0 * _RAREST, percent):
        found[f"{NAME}-lo-{label_percent(value)}"] = round(0.5 - value / 200.0, 12)
        found[f"{NAME}-hi-{label_percent(value)}"] = round(0.5 + value / 200.0, 12)
    shares = "probabilities between 0 and 1, from 0.000001 to 0.999999"
    for value in _numbers("quantiles", quantiles, _RAREST, 1.0 - _RAREST, shares):
        found[f"{NAME}-q-{label_percent(100.0 * value)}"] = value
    return found


def label_percent(percent: float) -> str:
    """Write percent as in names of columns: 80, 2.5, 0.0001."""
    return np.format_float_positional(round(percent, _DIGITS), trim="-")


def _numbers(name: str, given: Any, low: float, high: float, wanted: str) -> list[float]:
    """Return numbers, ascending and without repetition; none where nothing is given."""
    if given is None:
        return []
    values = [given] if is_number(given) else as_list(name, given, f"a list of {wanted}")
    for value in values:
        if not (is_number(value) and low <= value <= high):
            raise ValueError(f"{name} must hold {wanted}; got {value!r}.")
    found = sorted({float(value) for value in values})
    rounded = [round(value, _DIGITS) for value in found]
    for k in np.flatnonzero(np.diff(rounded) == 0.0)[:1].tolist():
        raise ValueError(
            f"{name} holds {found[k]!r} and {found[k + 1]!r}, which are the same to {_DIGITS} "
            "decimals; leave one out."
        )
    return rounded


def check_refit(refit: Any, method: PanelMethod, *, or_count: bool = False) -> None:
    """Raise an error unless `refit` is a choice that the method has.

    With `or_count`, it may also be after how many windows to refit.
    """
    if isinstance(refit, bool):
        return
    if or_count and not isinstance(refit, str):
        check_count("refit", refit)
    elif not (isinstance(refit, str) and refit == "weights"):
        number = " or a positive integer" if or_count else ""
        raise ValueError(f"refit must be True, False, 'weights'{number}; got {refit!r}.")
    elif method.weights_refusal:
        raise ValueError(method.weights_refusal)


def _check_transforms(transforms: Any) -> None:
    if isinstance(transforms, str | None):
        if transforms not in ("auto", None):
            raise ValueError(f"transforms must be 'auto', None or a list; got {transforms!r}.")
        return
    for place, step in enumerate(as_list("transforms", transforms, "'auto', None or a list")):
        check_transform(step)
        if place and isinstance(step, str) and step == "log1p":
            raise ValueError("The transform 'log1p' comes first, before any other.")


def _check_steps(name: str, value: Any) -> int:
    if check_count(name, value) > _MOST_STEPS:
        raise ValueError(f"{name} must be at most {_MOST_STEPS:,}; got {value!r}.")
    return int(value)


def _column_list(name: str, columns: Any) -> tuple[str, ...]:
    found = [columns] if isinstance(columns, str) else as_list(name, columns, "a list of columns")
    if not all(isinstance(column, str) for column in found):
        raise ValueError(f"{name} must be a list of names of columns; got {columns!r}.")
    return tuple(found)
