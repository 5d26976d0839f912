"""What a model of a panel is asked, what it answers, and what every such model can do.

A `PanelMethod` fits a panel and returns a `FittedModel`, which forecasts it from any origins.
Everything above the models (chunks, bounds, notes, backtests, files, clusters) uses only what
stands here. A new model is a subclass of each and an entry in `rbfdiffnet.models.scopes.METHODS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from rbfdiffnet.models.intervals import HeldOutErrors, Pools, find_quantiles, mean_sizes
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.panel.newcomers import Newcomers
from rbfdiffnet.series.effects import Effects, is_seldom
from rbfdiffnet.series.outliers import find_wild
from rbfdiffnet.series.series import Series, SeriesPanel
from rbfdiffnet.support.arrays import Array, Arrays, Ints, Mask
from rbfdiffnet.support.notes import Note
from rbfdiffnet.support.parallel import Collective

if TYPE_CHECKING:
    from rbfdiffnet.models.networks.fitted import FittedNetworks


#: The term of an explanation for series without a model.
FALLBACK = "the last season, or the last value"


@dataclass(frozen=True)
class ForecastRequest:
    """The h steps after an origin of each series of a panel.

    Series may go on after their origins (n,); models do not look there. `ahead` holds the inputs
    that are known in advance, an array of shape (h, q) for each series, and `stds` their standard
    deviations where some are uncertain; `excess` is how far they are outside of their range in
    training where some are. Of these, of `newcomers` without values and of `notes` on inputs models
    know nothing; see `forecasting.pipeline`.
    """

    panel: Sequence[Series]
    origins: Ints
    h: int
    ahead: Sequence[Array]
    stds: Sequence[Array] | None = None
    newcomers: Sequence[Newcomers] = ()
    excess: Sequence[Array] | None = None
    notes: Sequence[Note] = ()

    @classmethod
    def after(cls, panel: Sequence[Series], h: int) -> ForecastRequest:
        """Return the steps after the ends of series without inputs known in advance."""
        ends = np.array([series.y.size for series in panel], dtype=np.int64)
        return cls(panel, ends, h, [np.empty((h, 0))] * len(panel))

    @classmethod
    def within(cls, panel: Sequence[Series], origins: Ints, h: int) -> ForecastRequest:
        """Return the steps after origins inside of series, whose inputs are known; 0 beyond."""
        pairs = zip(panel, origins.tolist(), strict=True)
        known = [series.known_ahead[origin : origin + h] for series, origin in pairs]
        ahead = [np.pad(rows, ((0, h - len(rows)), (0, 0))) for rows in known]
        return cls(panel, origins, h, ahead)

    @property
    def seen(self) -> list[Series]:
        """The series up to their origins."""
        pairs = zip(self.panel, self.origins.tolist(), strict=True)
        return [series.until(origin) for series, origin in pairs]

    @property
    def seldom(self) -> list[Array]:
        """The inputs ahead, with 0 for those that were not seldom used before; (h, q) each."""
        pairs = zip(self.seen, self.ahead, strict=True)
        return [rows * is_seldom(series.known_ahead) for series, rows in pairs]

    @property
    def is_uncertain(self) -> bool:
        """Whether inputs, or effects of inputs seldom used, may make forecasts less certain."""
        if self.stds is not None:
            return True
        return any(rows.size for rows in self.ahead) and any(rows.any() for rows in self.seldom)

    def select(self, chosen: Sequence[int]) -> ForecastRequest:
        """Return the request for some of the series."""
        panel, ahead = [self.panel[i] for i in chosen], [self.ahead[i] for i in chosen]
        return ForecastRequest(panel, self.origins[list(chosen)], self.h, ahead)


@dataclass(frozen=True)
class Forecasts:
    """Forecasts of a panel, `values` of shape (n, h).

    Series in `diverged` had no finite forecast and got the naive one. `runaway` tells, by series,
    how a forecast was held back by the rule of `support.stability`.
    """

    values: Array
    diverged: list[int] = field(default_factory=list)
    runaway: dict[int, str] = field(default_factory=dict)


class SeriesTable(NamedTuple):
    """A table with rows for some series: their positions, and columns of values."""

    series: Ints
    columns: dict[str, Any]


class Terms:
    """The additive terms that an explanation splits a forecast into; numbers have shape (h,)."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def add(
        self,
        part: str,
        term: str,
        contribution: Array,
        value: Any = np.nan,
        weight: Any = np.nan,
        activation: Any = np.nan,
        nearest: str = "",
    ) -> None:
        """Add a term."""
        self.rows.append(
            {
                "part": part,
                "term": term,
                "value": np.broadcast_to(value, contribution.shape),
                "weight": np.broadcast_to(weight, contribution.shape),
                "activation": np.broadcast_to(activation, contribution.shape),
                "contribution": contribution,
                "nearest": nearest,
            }
        )

    def scale(self, factor: Array) -> Terms:
        """Return terms of forecasts that are multiplied by factors (h,)."""
        scaled = Terms()
        for row in self.rows:
            both = {name: factor * row[name] for name in ("weight", "contribution")}
            scaled.rows.append({**row, **both})
        return scaled

    def add_rest(self, part: str, term: str, total: Array) -> None:
        """Add what the terms lack to a total, if that is more than rounding."""
        left = total - np.sum([row["contribution"] for row in self.rows], axis=0)
        if np.any(np.abs(left) > 1e-10 * np.abs(total)):
            self.add(part, term, left)


class FittedModel(ABC):
    """A model that was fitted to a panel; users of it never change it."""

    plan: Plan
    #: Why a series has no model of its own and is forecast naively, by its position.
    reasons: dict[int, str]
    #: Whether the forecast of a series depends on the other series it is forecast with.
    needs_all_series: ClassVar[bool] = False
    #: Rough share of the time of forecasts with intervals that the intervals take.
    interval_share: ClassVar[float] = 0.0

    @property
    @abstractmethod
    def n_series(self) -> int:
        """How many series the model has."""

    @abstractmethod
    def forecast(self, request: ForecastRequest, n_jobs: int = 1) -> Forecasts:
        """Forecast every series."""

    @abstractmethod
    def extend(self, panel: SeriesPanel) -> FittedModel:
        """Return the model for a panel with newer values, and perhaps new series at its end."""

    @abstractmethod
    def to_arrays(
        self, panel: SeriesPanel, *, keep_all: bool = False
    ) -> tuple[Ints, Arrays, dict[str, Any]]:
        """Return how many latest steps of each series to keep, and arrays and words to save."""

    # What follows has an answer for models that can say nothing of their own ----------------------

    def ask(self, request: ForecastRequest, probabilities: Sequence[float]) -> None:
        """Ask the other machines of a cluster for all that forecasts and quantiles need."""
        if probabilities and len(request.panel):
            self.find_quantiles(request, probabilities, self.plan.collective)

    def held_out_errors(self, request: ForecastRequest, n_jobs: int = 1) -> HeldOutErrors:
        """Return errors of forecasts of known values, from which quantiles are made."""
        raise NotImplementedError("This model has quantiles of its own.")

    def find_quantiles(
        self,
        request: ForecastRequest,
        probabilities: Sequence[float],
        collective: Collective,
        pools: Pools | None = None,
        n_jobs: int = 1,
    ) -> tuple[Array, Mask]:
        """Return quantiles (n, h, P) at ascending probabilities, and where (n, P) they are sure."""
        held_out = self.held_out_errors(request, n_jobs)
        return find_quantiles(held_out, probabilities, collective, pools)

    def find_effects(self, request: ForecastRequest) -> dict[int, Effects | None]:
        """Return the effects of inputs that quantiles of a request rest on, by series."""
        return {}

    def effect_errors(self, request: ForecastRequest, n_jobs: int = 1) -> Array:
        """Return standard deviations (n, h) of errors of the effects of inputs seldom used."""
        std, used, ahead = np.zeros((len(request.panel), request.h)), request.seldom, {}
        if not any(rows.any() for rows in used):
            return std
        for i, effects in self.find_effects(request).items():
            if effects is None or not used[i].any():
                continue
            std[i] = effects.deviation(used[i], request.panel[i].known_ahead[: request.origins[i]])
            if effects.relative and std[i].any():  # to forecasts with inputs as on average
                ahead[i] = np.broadcast_to(effects.center, used[i].shape)
        if ahead:
            average = [ahead.get(i, rows) for i, rows in enumerate(request.ahead)]
            base = self.forecast(replace(request, ahead=average), n_jobs).values
            std[[*ahead]] *= np.abs(base[[*ahead]])
        return std

    def error_paths(self, request: ForecastRequest, n_jobs: int = 1) -> list[Array]:
        """Return errors (m, k) of up to h steps for each series, a row for each earlier window.

        An error of 1 is usual for its series. Whole windows lie side by side, in the order of time,
        the last one at the end; if there is none, the longest part of one counts. A wild series,
        see `series.outliers`, has none.
        """
        h = request.h
        held_out = self.held_out_errors(request, n_jobs)
        wild = find_wild(mean_sizes(held_out.errors, held_out.scales))
        errors = [
            own[:0] if away else own[max(len(own) - h, 0) :: -h][::-1]
            for own, away in zip(held_out.errors, wild, strict=True)
        ]
        known = [np.where(np.isfinite(own), own, 0.0) for own in errors]
        sizes = [np.sqrt((own**2).sum() / max(np.count_nonzero(own), 1)) for own in known]
        return [own / (size or 1.0) for own, size in zip(errors, sizes, strict=True)]

    def state_paths(self, request: ForecastRequest) -> dict[int, Array]:
        """Return paths (N, h) of states, whose order is that of forecasts, of noisy series."""
        return {}

    def find_outliers(self, panel: Sequence[Series]) -> list[tuple[int, Ints]]:
        """Return series with outliers, and the steps at which the outliers are."""
        return []

    def explain(
        self, request: ForecastRequest, names: InputNames, chosen: Sequence[int], n_jobs: int = 1
    ) -> tuple[Array, list[Terms]]:
        """Return forecasts (n, h), and for chosen series the terms they are the sum of."""
        values = self.forecast(request, n_jobs).values
        tables = [Terms() for _ in chosen]
        for terms, i in zip(tables, chosen, strict=True):
            terms.add("model", "forecast", values[i])
        return values, tables

    def describe_choices(self) -> SeriesTable:
        """Return what was chosen from the data, a row for each series."""
        seasons = [self.plan.season_length] * self.n_series
        return SeriesTable(np.arange(self.n_series), {"season_length": seasons})

    def with_networks(self, panel: SeriesPanel, chosen: Sequence[int]) -> FittedNetworks:
        """Return networks of chosen series, fitted now if the model keeps none."""
        raise ValueError("This model has no networks of single series.")

    def with_plan(self, plan: Plan | None) -> Self:
        """Return the same model with another plan."""
        return replace(self, plan=plan)  # type: ignore[type-var]

    def noise_by_series(self) -> dict[int, tuple[tuple[float, float] | None, bool, str]]:
        """Return noise and signal-to-noise, whether of logarithms, and why untreated, by series."""
        return {}

    def select(self, chosen: Sequence[int]) -> FittedModel:
        """Return the model of some series."""
        raise ValueError("This model forecasts all of its series or none.")

    def adopt(self, panel: SeriesPanel) -> FittedModel:
        """Return a model of series that this one was not fitted to."""
        raise ValueError("Other series can be forecast by a global model only: scope='global'.")

    def learn_weights(self, panel: SeriesPanel) -> FittedModel:
        """Return the model with weights that have learned what is new in a panel."""
        raise ValueError("This model has no weights that rows can be added to.")

    def member_weights(self) -> dict[str, Array]:
        """Return how much each member counted for each series (n,) in the latest forecasts."""
        raise ValueError("There are weights of members with scope='auto' only.")

    def one_step_forecasts(self, panel: SeriesPanel) -> dict[int, tuple[int, Array]]:
        """Return the first step and one-step forecasts from it on, by series."""
        raise ValueError("This model has no fitted values; use cross_validation(df, h).")


class InputNames(NamedTuple):
    """Names for explanations: of inputs known in advance, of other inputs, and of steps."""

    ahead: tuple[str, ...]
    extra: tuple[str, ...]
    label: Callable[[int, int], str]


class PanelMethod(ABC):
    """A way to model panels."""

    #: What is learned from: each series for itself, some series together, or the whole panel, also
    #: where that is forecast in chunks. Only the last uses inputs that never change.
    learns_from: ClassVar[Literal["series", "sample", "panel"]] = "series"
    #: Whether fitted networks are kept, which can be shown.
    has_networks: ClassVar[bool] = True
    #: Whether networks are fitted at all, so that their settings matter.
    fits_networks: ClassVar[bool] = True
    #: Whether a longer season beside the season is of use.
    knows_longer_season: ClassVar[bool] = False
    #: Rough share of the time of a fit and a forecast that the fit takes.
    fit_share: ClassVar[float] = 0.0
    #: Rough seconds that a core takes for each value, and for each step ahead of a series.
    seconds: ClassVar[tuple[float, float]] = (3e-4, 2e-3)
    #: Why refit="weights" is not possible; empty where it is.
    weights_refusal: ClassVar[str] = ""
    #: How many series a cluster puts into a group at most, and how many groups there are at most.
    cluster_group: ClassVar[tuple[int | None, int]] = (None, 1_000)

    @property
    def learns_series_alone(self) -> bool:
        """Whether nothing is learned across series."""
        return self.learns_from == "series"

    def needs_others(self, *, levels: bool, inputs: bool) -> bool:
        """Whether forecasts, intervals or effects of inputs, if asked for, need other series."""
        return self.learns_from == "panel" or levels or inputs

    @property
    def shares_errors(self) -> bool:
        """Whether series with few errors borrow errors from series of other chunks."""
        return self.learns_from != "sample"

    @abstractmethod
    def fit(
        self, panel: SeriesPanel, plan: Plan, *, calibrate: bool = False, n_jobs: int = 1
    ) -> FittedModel:
        """Fit a panel; `calibrate` says whether intervals will be asked for."""

    @abstractmethod
    def from_arrays(
        self, panel: SeriesPanel, plan: Plan, words: Mapping[str, Any], arrays: Arrays
    ) -> FittedModel:
        """Return the model that `FittedModel.to_arrays` has written."""

    def split(
        self, names: Sequence[str], n_values: int, limit: int, by_memory: Callable[[], list[Ints]]
    ) -> list[Ints]:
        """Return the positions of the series that are forecast together, chunk by chunk.

        A chunk is to take no more than a limit in bytes. Steps ahead count as some of the
        `n_values`.
        """
        del names, n_values, limit
        return by_memory()
