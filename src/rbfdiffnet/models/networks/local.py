"""A network of its own for each series: one at a time, or many at once where that is possible."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from rbfdiffnet.models.base import PanelMethod
from rbfdiffnet.models.intervals import calibration_length
from rbfdiffnet.models.networks.fast import fit_models, is_fast
from rbfdiffnet.models.networks.files import networks_from_arrays
from rbfdiffnet.models.networks.fitted import FittedNetworks
from rbfdiffnet.models.networks.series_model import SeriesModel, fit_local
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.series.series import NUMERICAL, Series, SeriesPanel, UnfitError
from rbfdiffnet.support.arrays import Arrays, Ints
from rbfdiffnet.support.parallel import parallel_map
from rbfdiffnet.support.progress import progress_between

Result = TypeVar("Result")


class NetworkMethod(PanelMethod):
    """What all methods that fit networks have in common."""

    fit_share = 0.8
    fitted_class: type[FittedNetworks]

    @abstractmethod
    def _fit_many(
        self, panel: Sequence[Series], plans: Sequence[Plan], n_jobs: int
    ) -> tuple[Sequence[SeriesModel | str], dict[str, Any]]:
        """Return a model or the reason why there is none for each series, and what they share."""

    def fit(
        self, panel: Sequence[Series], plan: Plan, *, calibrate: bool = False, n_jobs: int = 1
    ) -> FittedNetworks:
        """Fit networks to a panel; for intervals, others without the last part of each series."""
        panel = list(panel)  # each of them made once
        with progress_between(0.0, 0.5 if calibrate else 1.0):
            results, shared = self._fit_many(panel, [plan] * max(len(panel), 1), n_jobs)
        fitted = {i: model for i, model in enumerate(results) if isinstance(model, SeriesModel)}
        starts = calibration_starts(panel)
        calibrated: list[SeriesModel | None] = [None] * len(panel)
        if calibrate:
            early = [panel[i].until(int(starts[i])) for i in fitted]
            # The same lags and level, although less data might have led to others.
            plans = [model.plan_for_refit(plan) for model in fitted.values()]
            with progress_between(0.5, 1.0):
                again, _ = self._fit_many(early, plans or [plan], n_jobs)
            for i, model in zip(fitted, again, strict=True):
                calibrated[i] = model if isinstance(model, SeriesModel) else None
        models = tuple(fitted.get(i) for i in range(len(panel)))
        reasons = {i: reason for i, reason in enumerate(results) if isinstance(reason, str)}
        return self.fitted_class(plan, models, tuple(calibrated), starts, reasons, **shared)

    def from_arrays(
        self, panel: SeriesPanel, plan: Plan, words: Mapping[str, Any], arrays: Arrays
    ) -> FittedNetworks:
        """Return the networks that were written."""
        if not len(words["models"]) == len(words["calibrated"]) == arrays["starts"].size:
            raise ValueError("numbers of series differ")
        models, calibrated, effects = networks_from_arrays(words, arrays)
        starts = arrays["starts"].astype(np.int64)
        reasons = {int(i): reason for i, reason in words["reasons"].items()}
        shared = self._shared_from_arrays(len(panel), effects, arrays)
        return self.fitted_class(plan, models, calibrated, starts, reasons, **shared)

    def _shared_from_arrays(self, n: int, effects: Any, arrays: Arrays) -> dict[str, Any]:
        """Return what the models of n series share."""
        del n, effects, arrays
        return {}


class LocalNetworks(NetworkMethod):
    """A network for each series: many at once where that is possible, others one at a time."""

    fitted_class = FittedNetworks
    weights_refusal = (
        "refit='weights' needs scope='global': networks of single series have no statistics "
        "that rows can be added to. Use refit=True."
    )

    def _fit_many(
        self, panel: Sequence[Series], plans: Sequence[Plan], n_jobs: int
    ) -> tuple[list[SeriesModel | str], dict[str, Any]]:
        fast = [i for i in range(len(panel)) if is_fast(plans[i], panel[i])]
        n_fast = len(fast) / max(len(panel), 1)
        with progress_between(0.0, n_fast):
            found = fit_models([panel[i] for i in fast], [plans[i] for i in fast], n_jobs)
        results = dict(zip(fast, found, strict=True))
        others = [i for i in range(len(panel)) if i not in results]
        if others and plans[others[0]].device != "cpu":
            raise ValueError(
                f"device={plans[others[0]].device!r} takes no inputs, transforms, lags with gaps "
                "or direct strategy; leave them out, or use device='cpu'."
            )

        def fit_alone(i: int) -> SeriesModel | str:
            return fit_or_say_why(lambda: fit_local(panel[i], plans[i]))

        with progress_between(n_fast, 1.0):
            alone = parallel_map(fit_alone, others, n_jobs, reports=True)
        results.update(zip(others, alone, strict=True))
        return [results[i] for i in range(len(panel))], {}


def calibration_starts(panel: Sequence[Series]) -> Ints:
    """Return where the last part of each series (n,) begins, which calibrates intervals."""
    lengths = [series.n_seen for series in panel]
    return np.array([n - calibration_length(n) for n in lengths], dtype=np.int64)


def fit_or_say_why(fit: Callable[[], Result]) -> Result | str:
    """Return what was fitted, or the reason why it could not be."""
    try:
        with np.errstate(all="ignore"):
            return fit()
    except UnfitError as error:
        return str(error)
    except NUMERICAL as error:
        return f"numerical failure ({error})"
