"""A network of its own for each series: one at a time, or many at once where that is possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rbfdiffnet.models.base import Arrays, PanelMethod
from rbfdiffnet.models.intervals import calibration_length
from rbfdiffnet.models.networks.fast import fit_models, is_fast
from rbfdiffnet.models.networks.files import networks_from_arrays
from rbfdiffnet.models.networks.fitted import FittedNetworks
from rbfdiffnet.models.networks.series_model import SeriesModel, fit_local
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.series.series import NUMERICAL, Series, SeriesPanel, UnfitError
from rbfdiffnet.support.threads import parallel_map


class LocalNetworks(PanelMethod):
    """A network for each series, with every setting chosen for it."""

    learns_series_alone = True

    weights_refusal = (
        "refit='weights' needs scope='global': networks of single series have no statistics "
        "that rows can be added to. Use refit=True."
    )

    def fit(
        self, panel: Sequence[Series], plan: Plan, *, calibrate: bool = False, n_jobs: int = 1
    ) -> FittedNetworks:
        """Fit a network to each series, and another one without its last part for intervals."""
        results = self._fit_each(panel, [plan] * len(panel), n_jobs)
        models = [r if isinstance(r, SeriesModel) else None for r in results]
        starts = np.array([s.n_seen - calibration_length(s.n_seen) for s in panel], dtype=np.int64)
        calibrated: list[SeriesModel | None] = [None] * len(panel)
        if calibrate:
            fitted = {i: model for i, model in enumerate(models) if model is not None}
            early = [panel[i].until(int(starts[i])) for i in fitted]
            # The same lags and level, although less data might have led to others.
            plans = [model.plan_for_refit(plan) for model in fitted.values()]
            for i, result in zip(fitted, self._fit_each(early, plans, n_jobs), strict=True):
                calibrated[i] = result if isinstance(result, SeriesModel) else None
        reasons = {i: r for i, r in enumerate(results) if isinstance(r, str)}
        return FittedNetworks(plan, tuple(models), tuple(calibrated), starts, reasons)

    def _fit_each(
        self, panel: Sequence[Series], plans: Sequence[Plan], n_jobs: int
    ) -> list[SeriesModel | str]:
        """Return a model for each series, or the reason why there is none."""
        return parallel_map(_fit_or_say_why, list(zip(panel, plans, strict=True)), n_jobs)

    def from_arrays(
        self, panel: SeriesPanel, plan: Plan, words: Mapping[str, Any], arrays: Arrays
    ) -> FittedNetworks:
        """Return the networks that were written."""
        del panel
        models, calibrated, _ = networks_from_arrays(words, arrays)
        return FittedNetworks(plan, models, calibrated, *read_starts_and_reasons(words, arrays))


class FastNetworks(LocalNetworks):
    """A network for each series, with fixed settings, fitted to many series at once."""

    def _fit_each(
        self, panel: Sequence[Series], plans: Sequence[Plan], n_jobs: int
    ) -> list[SeriesModel | str]:
        fast = [i for i in range(len(panel)) if is_fast(plans[i], panel[i])]
        found = fit_models([panel[i] for i in fast], [plans[i] for i in fast], n_jobs)
        results = dict(zip(fast, found, strict=True))
        others = [i for i in range(len(panel)) if i not in results]
        if others and plans[others[0]].device != "cpu":
            raise ValueError(
                f"device={plans[others[0]].device!r} takes no inputs, transforms, lags with gaps "
                "or direct strategy; leave them out, or use device='cpu'."
            )
        rest = super()._fit_each([panel[i] for i in others], [plans[i] for i in others], n_jobs)
        results |= dict(zip(others, rest, strict=True))
        return [results[i] for i in range(len(panel))]


def read_starts_and_reasons(words: Mapping[str, Any], arrays: Arrays) -> tuple[Any, dict[int, str]]:
    """Return the fields that all fitted networks write alike."""
    if not len(words["models"]) == len(words["calibrated"]) == arrays["starts"].size:
        raise ValueError("numbers of series differ")
    reasons = {int(i): reason for i, reason in words["reasons"].items()}
    return arrays["starts"].astype(np.int64), reasons


def _fit_or_say_why(job: tuple[Series, Plan]) -> SeriesModel | str:
    try:
        with np.errstate(all="ignore"):
            return fit_local(*job)
    except UnfitError as error:
        return str(error)
    except NUMERICAL as error:
        return f"numerical failure ({error})"
