"""What may be asked of `RBFDiffNet`: its arguments in one frozen object, checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from rbfdiffnet.forecasting.presets import PRESETS, Preset
from rbfdiffnet.models.base import PanelMethod
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.scopes import METHODS, SCOPES
from rbfdiffnet.network.train import Settings
from rbfdiffnet.panel.calendar import Event, check_days
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
    check_number,
    is_number,
)
from rbfdiffnet.support.parallel import SINGLE_MACHINE, Collective

NAME = "RBFDiffNet"  # of the column of forecasts
_MOST_STEPS = 1_000_000  # of lags and seasons
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
    holidays: str | None = None
    holiday_lead: int = 0
    holiday_lag: int = 0
    past_exog: tuple[str, ...] = ()
    static_exog: tuple[str, ...] = ()
    lower: float | None = None
    outliers: bool | None = None
    noise: Noise = None
    device: str = "cpu"
    n_jobs: int = 1
    memory_limit: int | str = "2GB"
    random_state: int = 0
    errors: str = "fallback"
    id_col: str = "unique_id"
    time_col: str = "ds"
    target_col: str = "y"

    def __post_init__(self) -> None:
        events = as_list("events", self.events, "a list of rbfdiffnet.Event(name, dates)")
        object.__setattr__(self, "events", tuple(events))
        for name in ("lags", "transforms", "calendar"):
            if isinstance(given := getattr(self, name), list):
                object.__setattr__(self, name, tuple(given))
        for name in ("past_exog", "static_exog"):
            object.__setattr__(self, name, _column_list(name, getattr(self, name)))
        self._check()
        if not isinstance(self.season_length, Integral | None):
            object.__setattr__(self, "season_length", seasons_of(self.season_length))

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
            "past_exog": bool(self.past_exog),
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
        season = self.first_season or panel.frequency.season_length
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
            settings=partial(_seeded_settings, regressor, self.random_state),
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
            collective=collective,
        )

    def read_panel(self, df: Any, exogenous: Exogenous | None = None) -> Panel:
        """Read the series of a frame, with all its inputs or those that are known already."""
        inputs = exogenous.columns if exogenous else Exogenous.find_columns(df, self.columns)
        return Panel.from_frame(df, self.columns, self.freq, inputs=inputs, errors=self.errors)

    def read_inputs(self, panel: Panel, collective: Collective = SINGLE_MACHINE) -> Exogenous:
        """Learn how the further inputs of a panel become numbers."""
        return Exogenous.fit(
            panel,
            past=self.past_exog,
            static=self.static_exog,
            use_static=self.method.learns_from == "panel",
            calendar=self.calendar,
            events=self.events,
            holidays=self.holidays,
            holiday_lead=self.holiday_lead,
            holiday_lag=self.holiday_lag,
            collective=collective,
        )

    # Checks ---------------------------------------------------------------------------------------

    def _check(self) -> None:
        """Raise an error that names the first argument that is wrong."""
        self._check_columns()
        check_choice("preset", self.preset, PRESETS)
        check_choice("strategy", self.strategy, ("recursive", "direct"))
        check_choice("errors", self.errors, ("fallback", "raise"))
        if not (isinstance(self.device, str) and re.fullmatch(r"cpu|cuda(:\d+)?", self.device)):
            raise ValueError(f"device must be 'cpu', 'cuda' or 'cuda:N'; got {self.device!r}.")
        check_noise(self.noise, getattr(self.regressor, "basis", "gaussian"))
        check_choice("scope", self.chosen_scope, SCOPES)
        self._check_together()
        if len(seasons_of(self.season_length)) > 1 and not self.method.knows_longer_season:
            raise ValueError(
                f"season_length={self.season_length!r}: networks that are fitted know one season; "
                "give one, or use scope='auto' or 'pretrained'."
            )
        if self.lower is not None and not is_number(self.lower):
            raise ValueError(f"lower must be a finite number or None; got {self.lower!r}.")
        if not (is_number(self.n_jobs, Integral) and (self.n_jobs >= 1 or self.n_jobs == -1)):
            raise ValueError(f"n_jobs must be a positive integer or -1; got {self.n_jobs!r}.")
        bytes_of(self.memory_limit)
        check_number("random_state", self.random_state, at_least=0, integer=True)
        if not isinstance(self.outliers, bool | np.bool_ | None):
            raise ValueError(f"outliers must be True, False or None; got {self.outliers!r}.")
        lags_of(self.lags)
        self._check_inputs()
        self._check_regressor()
        _check_transforms(self.transforms)

    def _check_columns(self) -> None:
        names = {name: getattr(self, name) for name in ("id_col", "time_col", "target_col")}
        for name, value in names.items():
            if not isinstance(value, str):
                raise ValueError(f"{name} must be the name of a column, a text; got {value!r}.")
        if len({*names.values(), NAME, "cutoff"}) < 5:
            raise ValueError(
                f"id_col, time_col and target_col must differ, also from {NAME!r} and 'cutoff'."
            )

    def _check_together(self) -> None:
        """Refuse arguments that do not go together."""
        method = self.method
        if not method.fits_networks and self._for_networks:
            raise ValueError(
                f"{self._for_networks[0]} is for networks that are fitted, and the pretrained "
                "network is not; leave it out, or use another preset or scope."
            )
        fast = self._is_fast and method.learns_series_alone
        thorough = PRESETS[self.preset].thorough
        if self.device != "cpu" and not (fast or (method.learns_from == "sample" and not thorough)):
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
        if not isinstance(self.holidays, str | None):
            raise ValueError(f"holidays must be a country such as 'US'; got {self.holidays!r}.")
        for name in ("holiday_lead", "holiday_lag"):
            check_days(name, getattr(self, name))

    def _check_regressor(self) -> None:
        if self.regressor is not None and not (
            hasattr(self.regressor, "_settings") and not isinstance(self.regressor, type)
        ):
            raise ValueError(
                "regressor must be an RBFDiffNetRegressor or an RBFNetworkRegressor; got "
                f"{self.regressor!r}."
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
    if isinstance(season_length, str | bytes) or not isinstance(season_length, Iterable):
        return (_check_steps("season_length", season_length),)
    found = tuple(_check_steps("season_length", m) for m in season_length)
    if not 1 <= len(found) <= 2 or found[-1] < found[0] or len(set(found)) < len(found):
        raise ValueError(f"season_length must be {wanted}; got {season_length!r}.")
    return found


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


def check_levels(level: Any) -> dict[str, float]:
    """Return levels between 0 and 1 by their label in percent, ascending."""
    if level is None:
        return {}
    given = [level] if is_number(level) else as_list("level", level, "a list of percentages")
    for value in given:
        if not (is_number(value) and 1 <= value < 100):
            raise ValueError(
                f"level must hold percentages from 1 to 100, such as 80; got {value!r}."
            )
    return {f"{value:g}": value / 100.0 for value in sorted({float(v) for v in given})}


def column_names(levels: Sequence[str]) -> list[str]:
    """Return the columns of a forecast, given the labels of its intervals."""
    return [NAME, *(f"{NAME}-{side}-{label}" for label in levels for side in ("lo", "hi"))]


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


def _seeded_settings(regressor: Any, seed: int, n_inputs: int) -> Settings:
    settings: Settings = regressor._settings(n_inputs)
    return replace(settings, seed=seed)
