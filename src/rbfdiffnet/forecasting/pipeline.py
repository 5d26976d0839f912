"""A panel from its series to columns of forecasts and tables, by whichever model was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from rbfdiffnet.forecasting.distributions import (
    add_normal,
    hold_at_zero,
    mix_quantiles,
    spread_single_values,
)
from rbfdiffnet.forecasting.options import MEAN, NAME, Options
from rbfdiffnet.forecasting.paths import (
    GRID,
    GRID_PROBABILITIES,
    VALUES_AT_ONCE,
    find_dependence,
    find_lasting_share,
    find_means,
    seeds_of,
)
from rbfdiffnet.forecasting.together import find_surprises
from rbfdiffnet.models.base import FittedModel, ForecastRequest, InputNames, Terms
from rbfdiffnet.models.intervals import Pools
from rbfdiffnet.models.networks.explain import operator_terms
from rbfdiffnet.models.networks.series_model import SeriesModel
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.panel.exogenous import Exogenous, FutureInputs
from rbfdiffnet.panel.newcomers import Newcomers, find_newcomers
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.series.effects import never_negative
from rbfdiffnet.series.series import NO_VALUES, SeriesPanel, find_counts, find_sparse
from rbfdiffnet.support import notes as kinds
from rbfdiffnet.support.arrays import Array, Ints, Mask
from rbfdiffnet.support.notes import Note
from rbfdiffnet.support.parallel import count_threads, even_chunks
from rbfdiffnet.support.progress import progress_between, report_progress

_FAST = 8e-6, 2e-5  # seconds for a value, and for a step ahead, of networks trained all at once


@dataclass(frozen=True)
class FittedPanel:
    """What a fit leaves behind: the data, the model, and what was unusual."""

    panel: Panel
    exogenous: Exogenous
    model: FittedModel
    series: SeriesPanel
    notes: tuple[Note, ...] = ()
    newcomers: Sequence[Newcomers] = ()

    def select(self, chosen: Ints) -> FittedPanel:
        """Return the same for some of the series."""
        notes: dict[int, list[Note]] = {}
        for note in self.notes:
            notes.setdefault(note.series, []).append(note)
        return FittedPanel(
            self.panel.select(chosen),
            self.exogenous,
            self.model.select(chosen.tolist()),
            self.series.select(chosen),
            tuple(
                replace(note, series=k)
                for k, i in enumerate(chosen.tolist())
                for note in notes.get(i, ())
            ),
        )

    def request(self, h: int, inputs: FutureInputs) -> ForecastRequest:
        """Return the request for the h steps after the series."""
        ends = self.panel.lengths
        return ForecastRequest(
            *(self.series, ends, h, inputs.values, inputs.stds, self.newcomers),
            *(inputs.excess, inputs.notes),
        )


@dataclass(frozen=True)
class Pipeline:
    """Fits and forecasts panels by options and a plan, and notes what was unusual.

    In a `rehearsal` forecasts are left out: a part of a cluster only says what other parts need.
    Series without values are forecast like others where these are known, not in a `part` of a
    panel. If `detailed`, models tell many quantiles, as if some series needed it.
    """

    options: Options
    plan: Plan
    rehearsal: bool = False
    part: bool = False
    detailed: bool = False

    def estimate_seconds(self, n_values: int, n_steps: int) -> float:
        """About how long it takes to fit so many values and to forecast so many steps."""
        per_value, per_step = _FAST if self.plan.fast else self.options.method.seconds
        n_threads = count_threads(self.options.n_jobs)
        return (per_value * n_values + per_step * n_steps) / n_threads

    def fit(
        self,
        panel: Panel,
        exogenous: Exogenous,
        *,
        calibrate: bool,
        series: SeriesPanel | None = None,
        newcomers: Sequence[Newcomers] | None = None,
    ) -> FittedPanel:
        """Fit a panel, with or without what intervals need; its series may be known already."""
        series = exogenous.series(panel) if series is None else series
        model = self.fit_model(series, calibrate=calibrate)
        return self.describe(panel, exogenous, model, series, newcomers)

    def describe(
        self,
        panel: Panel,
        exogenous: Exogenous,
        model: FittedModel,
        series: SeriesPanel,
        newcomers: Sequence[Newcomers] | None = None,
    ) -> FittedPanel:
        """Return a fitted panel, its series without values, and notes on all that is unusual."""
        if newcomers is None:
            newcomers = self.find_newcomers(panel, exogenous)
        notes = (
            *self.notes(panel, model, series, newcomers),
            *([] if self.rehearsal else exogenous.note_ended(panel)),
        )
        return FittedPanel(panel, exogenous, model, series, notes, newcomers)

    def find_newcomers(self, panel: Panel, exogenous: Exogenous) -> Sequence[Newcomers]:
        """Find series without values and those like them, where forecasts can be borrowed."""
        if self.part or not panel.n_series:
            return ()
        columns = (*exogenous.static, *exogenous.aside)
        return find_newcomers(panel, columns, self.options.hierarchy or ())

    def fit_model(self, series: SeriesPanel, *, calibrate: bool) -> FittedModel:
        """Fit the model of a panel."""
        fit, n_jobs = self.options.method.fit, self.options.n_jobs

        def fit_without_plan() -> FittedModel:
            """The plan refers to the run it comes from, so a cluster keeps models without it."""
            return fit(series, self.plan, calibrate=calibrate, n_jobs=n_jobs).with_plan(None)

        return self.plan.collective.memoize(fit_without_plan).with_plan(self.plan)

    def name_columns(self, quantiles: Iterable[str]) -> list[str]:
        """Return the names of the columns that a forecast has, given those of its quantiles."""
        means = [MEAN] if self.options.reconciles else []
        return [NAME, *quantiles, *(means if quantiles else ())]

    def forecast(
        self,
        model: FittedModel,
        request: ForecastRequest,
        quantiles: Mapping[str, float],
        pools: Pools | None = None,
    ) -> tuple[dict[str, Array], list[Note]]:
        """Return columns of forecasts and quantiles, (n, h) each, and what was unusual.

        `quantiles` are probabilities by the names of columns. Where the quantiles of a hierarchy
        are made to add up, their means have a column, too.
        """
        n_jobs, n = self.options.n_jobs, len(request.panel)
        if self.rehearsal:
            model.ask(request, self.asked(quantiles.values(), request) if quantiles else [])
            return {name: np.zeros((n, request.h)) for name in (NAME, *quantiles)}, []
        alone = 1.0 - model.interval_share if quantiles else 1.0
        with progress_between(0.0, alone):
            forecasts = model.forecast(request, n_jobs)
        columns = {NAME: self.bound(self._fill_newcomers(forecasts.values, request))}
        notes = [*request.notes]
        notes += [
            Note(
                i,
                kinds.NOT_FINITE,
                kinds.FORECAST_LAST_SEASON,
                detail="the network gave no finite forecast",
            )
            for i in forecasts.diverged
        ]
        notes += [
            Note(i, kinds.HELD_BACK, "held within bounds", detail=text)
            for i, text in forecasts.runaway.items()
        ]
        names = self.name_columns(quantiles)
        if not quantiles or not n:
            return columns | {name: np.empty((0, request.h)) for name in names[1:]}, notes
        of_means = GRID_PROBABILITIES if MEAN in names else ()
        probabilities = sorted({*quantiles.values(), *of_means})
        with progress_between(alone, 1.0):
            found, enough = self.find_quantiles(model, request, probabilities, pools)
        places = {name: probabilities.index(p) for name, p in quantiles.items()}
        columns |= {name: found[:, :, k] for name, k in places.items()}
        if MEAN in names:
            columns[MEAN] = find_means(found[:, :, [probabilities.index(p) for p in of_means]])
        few = np.flatnonzero(~enough[:, [*places.values()]].all(axis=1)).tolist()
        action, text = "the largest error was taken", "too few errors for the intervals"
        notes += [Note(i, kinds.FEW_ERRORS, action, detail=text) for i in few]
        return hold_forecasts(columns), notes

    def explain(
        self, model: FittedModel, request: ForecastRequest, names: InputNames, chosen: Sequence[int]
    ) -> tuple[Array, list[Terms]]:
        """Return forecasts (n, h), and for chosen series the terms they are the sum of."""
        values, tables = model.explain(request, names, chosen, self.options.n_jobs)
        values = self._fill_newcomers(values, request)
        for group in request.newcomers:
            for k in np.flatnonzero(np.isin(chosen, group.series)).tolist():
                tables[k] = Terms()
                tables[k].add("fallback", f"median of {group.describe()}", values[chosen[k]])
        return values, tables

    def find_quantiles(
        self,
        model: FittedModel,
        request: ForecastRequest,
        probabilities: Sequence[float],
        pools: Pools | None = None,
    ) -> tuple[Array, Mask]:
        """Return quantiles (n, h, P), and where (n, P) errors were enough for them."""
        std = self._find_input_errors(model, request)
        found, enough = self._quantiles(model, request, probabilities, std, pools)
        return self._finish(found, _find_counts(request)), enough

    def _quantiles(
        self,
        model: FittedModel,
        request: ForecastRequest,
        probabilities: Sequence[float],
        std: Array | None,
        pools: Pools | None = None,
    ) -> tuple[Array, Mask]:
        """Return quantiles (n, h, P) that know of all but bounds; see `_sure_quantiles`."""
        found, enough = self._sure_quantiles(model, request, probabilities, std, pools)
        spread_single_values(request, found, probabilities)
        hold_at_zero(request, found, probabilities, self.plan.season_length)
        if request.excess is not None:
            found = self._stretch(model, request, request.excess, found, probabilities)
        return found, enough

    def asked(
        self, probabilities: Iterable[float], request: ForecastRequest | None = None
    ) -> list[float]:
        """Return at which probabilities a model must tell quantiles: at many if all are needed.

        On a cluster, all machines must ask alike, whatever happens in the steps ahead of theirs.
        """
        needed = request is not None and (request.is_uncertain or request.newcomers)
        if request is not None and self.plan.collective.is_cluster:
            needed = needed or any(rows.size for rows in request.ahead)
        return sorted({*probabilities, *(GRID_PROBABILITIES if self.detailed or needed else ())})

    def _sure_quantiles(
        self,
        model: FittedModel,
        request: ForecastRequest,
        probabilities: Sequence[float],
        std: Array | None,
        pools: Pools | None = None,
    ) -> tuple[Array, Mask]:
        """Return quantiles (n, h, P) that know of newcomers, and of what inputs add, `std` (n, h).

        Also returned is where (n, P) errors were enough.
        """
        asked, n_jobs = self.asked(probabilities, request), self.options.n_jobs
        found, enough = model.find_quantiles(request, asked, self.plan.collective, pools, n_jobs)
        if asked == list(probabilities) and std is None and not request.newcomers:
            return found, enough
        sure = enough[:, [asked.index(p) for p in probabilities]]
        known = asked if request.newcomers else list(probabilities)  # of the peers: all
        if std is not None:
            found = self._widen(request, found, std, asked, known)
        elif known != asked:
            found = found[:, :, [asked.index(p) for p in known]]
        result = found[:, :, [known.index(p) for p in probabilities]]
        for group in request.newcomers:
            theirs, counts = self._borrow(group, request, found, found[:, :, asked.index(0.5)])
            result[group.series] = mix_quantiles(theirs, counts, asked, probabilities)
            sure[group.series] = True
        return result, sure

    def _borrow(
        self, group: Newcomers, request: ForecastRequest, values: Array, centers: Array
    ) -> tuple[Array, Mask]:
        """Return values (m, h, ...) of the series that newcomers are like; see `align`."""
        pasts = [request.panel[i].until(int(request.origins[i])).y for i in group.peers.tolist()]
        return group.align(values, centers, pasts, self.plan.season_length)

    def _fill_newcomers(self, values: Array, request: ForecastRequest) -> Array:
        """Return forecasts (n, h) in which newcomers have the medians of those of their peers."""
        filled = values.copy() if request.newcomers else values
        for group in request.newcomers:
            theirs, counts = self._borrow(group, request, values, values)
            filled[group.series] = np.nanmedian(np.where(counts, theirs, np.nan), axis=0)
        return filled

    def _widen(
        self,
        request: ForecastRequest,
        quantiles: Array,
        std: Array,
        asked: Sequence[float],
        wanted: Sequence[float],
    ) -> Array:
        """Return quantiles (n, h, W) of forecasts plus what uncertain inputs add to them."""
        result = quantiles[:, :, [asked.index(p) for p in wanted]]
        some = std > 0.0
        wider = add_normal(self._link(quantiles[some]), asked, std[some], wanted)
        result[some] = self._unlink(wider, request, some)
        return result

    def _find_input_errors(self, model: FittedModel, request: ForecastRequest) -> Array | None:
        """Return standard deviations (n, h) that inputs add to linked forecasts; None if none do.

        Inputs may be uncertain themselves, and so may be the effects of those seldom used. Values
        of newcomers are usual ones of their peers, by date, as their quantiles are.
        """
        if not request.is_uncertain:
            return None
        std = model.effect_errors(request, self.options.n_jobs)
        if request.stds is not None:
            std = np.hypot(std, self._effects(model, request, request.stds)[1])
        for group in request.newcomers:
            pasts = [np.zeros(n) for n in request.origins[group.peers].tolist()]  # move nothing
            theirs, counts = group.align(std, np.zeros_like(std), pasts, self.plan.season_length)
            std[group.series] = np.sqrt(np.nanmean(np.where(counts, theirs**2, np.nan), axis=0))
        return std

    def _stretch(
        self,
        model: FittedModel,
        request: ForecastRequest,
        excess: Sequence[Array],
        quantiles: Array,
        probabilities: Sequence[float],
    ) -> Array:
        """Return quantiles (n, h, P) where inputs outside of training are uncertain by how far.

        Nothing is known of effects there, so a root of a sum of squares is exact enough.
        """
        usual, std = self._effects(model, request, excess)
        some, result = std > 0.0, quantiles.copy()
        score = ndtri(np.asarray(probabilities))
        center = usual[some][:, None]
        away = np.hypot(self._link(quantiles[some]) - center, std[some][:, None] * score)
        wider = np.sort(center + np.sign(score) * away, axis=1)
        result[some] = self._unlink(wider, request, some)
        return result

    def _link(self, values: Array) -> Array:
        """Return values on the scale on which inputs have straight effects."""
        return np.log1p(np.maximum(values, 0.0)) if self.plan.log else values

    def _unlink(self, values: Array, request: ForecastRequest, some: Mask) -> Array:
        """Return linked quantiles (m, P) of some steps (n, h) as they are, never below 0 if so."""
        positive = [never_negative(series.y[np.isfinite(series.y)]) for series in request.seen]
        floor = np.where(positive, 0.0, -np.inf)[np.nonzero(some)[0], None]
        return np.maximum(np.expm1(values) if self.plan.log else values, floor)

    def _effects(
        self, model: FittedModel, request: ForecastRequest, changes: Sequence[Array]
    ) -> tuple[Array, Array]:
        """Return forecasts, linked, and how much inputs matter that change so much; (n, h) each.

        Forecasts are straight lines in an input, until they are held at 0: the larger one of two
        differences is the whole effect. With logarithms, so are the logarithms of forecasts.
        """

        def forecast(ahead: Array) -> Array:
            changed = replace(request, ahead=list(ahead))
            return self._link(model.forecast(changed, self.options.n_jobs).values)

        ahead, stds = np.stack(request.ahead), np.stack(changes)
        usual, variance = forecast(ahead), np.zeros(stds.shape[:2])
        for j in np.flatnonzero(stds.any(axis=(0, 1))).tolist():
            change = np.zeros_like(stds)
            change[:, :, j] = stds[:, :, j]
            up, down = forecast(ahead + change) - usual, forecast(ahead - change) - usual
            variance += np.maximum(np.abs(up), np.abs(down)) ** 2
        return usual, np.asarray(np.sqrt(variance))

    def simulate(
        self,
        model: FittedModel,
        request: ForecastRequest,
        names: Sequence[str],
        n_paths: int,
        seed: int,
        *,
        groups: Ints | None = None,
    ) -> Iterator[tuple[int, Array]]:
        """Yield sample paths (k, h, n_paths) of k series with names, and the number of the first.

        Chunks keep memory bounded. Shocks of series are alike only given their `groups` (L, n); see
        `forecasting.together`.
        """
        n_jobs, n = self.options.n_jobs, len(request.panel)
        with progress_between(0.0, 0.5):
            model.forecast(request, n_jobs)
        with progress_between(0.5, 0.7):
            std = self._find_input_errors(model, request)
            quantiles, _ = self._quantiles(model, request, GRID_PROBABILITIES, std)
            sure = quantiles
            if std is not None:
                sure, _ = self._quantiles(model, request, GRID_PROBABILITIES, None)
            errors = model.error_paths(request, n_jobs)
        clouds, counts = model.state_paths(request), _find_counts(request)
        together = None
        if groups is not None and n:
            together = find_surprises(request.seen, self.plan.season_length), groups
        sparse = find_sparse([series.y for series in request.seen])
        dependence = find_dependence(sure, errors, seeds_of(names), clouds, together, sparse)
        dependence = replace(dependence, lasting=self._find_lasting(request, sure))
        common = dependence.draw_common(request.h, n_paths, seed)
        for chunk in even_chunks(n, max(VALUES_AT_ONCE // (request.h * n_paths), 1)):
            report_progress(0.7 + 0.3 * chunk.start / n)
            paths = dependence.draw(sure[chunk], n_paths, seed, chunk.start, common)
            if std is not None:
                args = (self._link(paths), std[chunk], quantiles[chunk], seed, chunk.start)
                some = (std[chunk] > 0.0)[:, :, None]
                paths = np.where(some, dependence.add_errors(*args), paths)
            yield chunk.start, self._finish(paths, counts[chunk])

    def _find_lasting(self, request: ForecastRequest, quantiles: Array) -> dict[int, float]:
        """Return which share of the variance of newcomers lasts, given quantiles (n, h, P)."""
        found: dict[int, float] = {}
        for group in request.newcomers:
            medians = quantiles[:, :, GRID.size // 2]
            share = find_lasting_share(*self._borrow(group, request, quantiles, medians))
            found |= dict.fromkeys(group.series.tolist(), share)
        return found

    def _finish(self, values: Array, counts: Mask) -> Array:
        """Return values (n, h, m) within bounds; where `counts` (n,) says so they are counts."""
        values[counts] = np.maximum(np.floor(values[counts] + 0.5), 0.0)
        return self.bound(values)

    def bound(self, values: Array) -> Array:
        """Return forecasts within what was asked for, and what a number can hold.

        In a hierarchy bounds are those of its series, not of groups; see `forecasting.reconcile`.
        """
        largest = np.finfo(np.float64).max / 4
        values = np.clip(values, -largest, largest)
        lower, upper = self.options.lower, self.options.upper
        if self.options.hierarchy is not None or (lower is None and upper is None):
            return values
        return np.clip(values, lower, upper)

    def notes(
        self,
        panel: Panel,
        model: FittedModel,
        series: SeriesPanel,
        newcomers: Sequence[Newcomers] = (),
    ) -> tuple[Note, ...]:
        """Return what was unusual about the series of a panel that was fitted."""
        if self.rehearsal:
            return ()
        reasons = model.reasons
        if reasons and self.options.errors == "raise":
            i, reason = next(iter(reasons.items()))
            raise ValueError(
                f"Series {panel.name(i)!r} cannot be fitted: {reason}. Leave it out, or use "
                "errors='fallback' to get a naive forecast for it."
            )
        borrowed = {i: group.describe() for group in newcomers for i in group.series.tolist()}
        notes = []
        for i, reason in reasons.items():
            action = kinds.FORECAST_ZERO if reason == NO_VALUES else kinds.FORECAST_NAIVE
            if i in borrowed:
                action, reason = kinds.FORECAST_LIKE, f"{reason}; {borrowed[i]}"
            notes.append(Note(i, kinds.NO_MODEL, action, detail=reason))
        notes += self._noise_notes(model)
        for i, steps in model.find_outliers(series):
            first = panel.format_date(i, int(steps[0]))
            notes.append(Note(i, kinds.OUTLIER, "treated as missing", int(steps.size), first))
        return tuple(notes)

    def _noise_notes(self, model: FittedModel) -> list[Note]:
        notes = []
        for i, (noise, of_logarithms, reason) in model.noise_by_series().items():
            if noise is not None:
                logs = " of the logarithms" if of_logarithms else ""
                std, ratio = noise
                text = f"noise{logs} of standard deviation {std:.3g}, signal-to-noise {ratio:.3g}"
                action = "clean trajectory learned, latest values filtered"
                notes.append(Note(i, kinds.NOISE_TREATED, action, detail=text))
            elif self.plan.noise and self.plan.noise != "auto":
                notes.append(Note(i, kinds.NOISE_LEFT, "noise was not treated", detail=reason))
        return notes


def _find_counts(request: ForecastRequest) -> Mask:
    """Tell which series hold counts, (n,); newcomers do if all those like them do."""
    counts = find_counts([series.y for series in request.seen])
    for group in request.newcomers:
        counts[group.series] = counts[group.peers].all()
    return counts


def hold_forecasts(columns: dict[str, Array]) -> dict[str, Array]:
    """Return columns whose intervals hold their forecasts."""
    ends = {f"{NAME}-lo-": np.minimum, f"{NAME}-hi-": np.maximum}
    found = dict(columns)
    for start, outermost in ends.items():
        for name in columns:
            if name.startswith(start):
                found[name] = outermost(columns[name], columns[NAME])
    return found


def notes_frames(panel: Panel, notes: Sequence[Note]) -> tuple[Any, Any]:
    """Return a frame of everything unusual, series by series, and the same with kinds."""
    ordered = sorted((*panel.problems, *notes), key=lambda note: note.series)
    series = np.array([note.series for note in ordered], dtype=np.int64)
    kinds, problems, actions = (
        np.array([getattr(note, name) for note in ordered], dtype=object)
        for name in ("code", "problem", "action")
    )
    words = {"problem": problems, "action": actions}
    return panel.make_table(series, words), panel.make_table(series, {"kind": kinds, **words})


def explanation_frame(
    panel: Panel, tables: Sequence[Terms], values: Array, bounded: Array, final: Array
) -> Any:
    """Return the frame `RBFDiffNet.explain` promises.

    Values (n, h) are bounded afterwards, and the final ones are those that add up in a hierarchy.
    """
    for terms, before, after, end in zip(tables, values, bounded, final, strict=True):
        if np.any(after != before):
            terms.add("bound", "lower or upper bound", after - before)
        if np.any(end != after):
            terms.add("hierarchy", "what makes the levels add up", end - after)
    h = bounded.shape[1]
    n_terms = np.array([len(t.rows) for t in tables], dtype=np.int64)
    texts: dict[str, list[str]] = {"part": [], "term": [], "nearest": []}
    numbers: dict[str, list[Array]] = {
        name: [] for name in ("value", "weight", "activation", "contribution")
    }
    for t in tables:
        for name, column in numbers.items():
            column.append(np.stack([row[name] for row in t.rows], axis=1).ravel())
        for text, words in texts.items():
            words += [row[text] for row in t.rows] * h
    series = np.repeat(np.arange(panel.n_series), n_terms * h)
    step = np.concatenate(
        [np.repeat(np.arange(h), n) for n in n_terms] + [np.empty(0, dtype=np.int64)]
    )
    flat = {name: np.concatenate([*column, np.empty(0)]) for name, column in numbers.items()}
    columns = {
        "part": np.array(texts["part"], dtype=object),
        "term": np.array(texts["term"], dtype=object),
        **flat,
        "nearest": np.array(texts["nearest"], dtype=object),
    }
    first = panel.lengths[series] + step
    return panel.make_frame(first, 1, columns, series=series)


def operator_frame(
    panel: Panel, models: Mapping[int, SeriesModel], extra_names: tuple[str, ...]
) -> Any:
    """Return the frame `RBFDiffNet.equation` promises, for models by the position of a series."""
    rows = [
        (i, *term)
        for i, model in models.items()
        if model.windows.network.order
        for term in operator_terms(model, extra_names)
    ]
    series, orders, inputs, values = zip(*rows, strict=True) if rows else ((), (), (), ())
    return panel.make_table(
        np.array(series, dtype=np.int64),
        {
            "order": np.array(orders, dtype=np.int64),
            "input": np.array(inputs, dtype=object),
            "coefficient": np.array(values, dtype=np.float64),
        },
    )
