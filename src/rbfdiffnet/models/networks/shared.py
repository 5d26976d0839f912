"""One network that all series of a panel share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from rbfdiffnet.models.base import FittedModel
from rbfdiffnet.models.networks.fitted import FittedNetworks
from rbfdiffnet.models.networks.learning import Learning, learn
from rbfdiffnet.models.networks.local import (
    NetworkMethod,
    calibration_starts,
    fit_or_say_why,
)
from rbfdiffnet.models.networks.series_model import SeriesModel
from rbfdiffnet.models.networks.shared_training import adopt_series, fit_shared
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.series.effects import Effects
from rbfdiffnet.series.series import Series, SeriesPanel, UnfitError
from rbfdiffnet.support.arrays import Arrays, Ints
from rbfdiffnet.support.threads import one_blas_thread


@dataclass(frozen=True)
class FittedSharedNetwork(FittedNetworks):
    """One network for all series, with effects of inputs that all series share.

    With `learning` the network can go on learning; it is None where that is not possible.
    """

    effects: Effects | None = None
    learning: Learning | None = None

    def select(self, chosen: Sequence[int]) -> Self:
        """Return the model of some series."""
        learning = None if self.learning is None else self.learning.select(chosen)
        return replace(super().select(chosen), learning=learning)

    def adopt(self, panel: SeriesPanel) -> FittedSharedNetwork:
        """Return a model of series that the network was not fitted to."""
        some = next(iter(self.fitted.values()), None)
        early = next((model for model in self.calibrated if model is not None), None)
        models: list[SeriesModel | None] = []
        calibrated: list[SeriesModel | None] = []
        reasons: dict[int, str] = {}
        for i, series in enumerate(panel):
            try:
                if some is None:
                    raise UnfitError("the model has no network")
                own = adopt_series(series, some, self.plan, self.effects)
                models.append(own)
                calibrated.append(None if early is None else own.with_network_of(early))
            except UnfitError as error:
                models.append(None)
                calibrated.append(None)
                reasons[i] = str(error)
        starts = calibration_starts(panel)
        return FittedSharedNetwork(
            self.plan, tuple(models), tuple(calibrated), starts, reasons, self.effects
        )

    def extend(self, panel: SeriesPanel) -> FittedModel:
        """Return the model with new series at the end of the panel adopted."""
        n, n_new = self.n_series, len(panel) - self.n_series
        if not n_new:
            return self
        new = self.adopt(panel[n:])
        return replace(
            self,
            models=(*self.models, *new.models),
            calibrated=(*self.calibrated, *new.calibrated),
            starts=np.concatenate([self.starts, new.starts]),
            reasons={**self.reasons, **{n + i: text for i, text in new.reasons.items()}},
            learning=None if self.learning is None else self.learning.joined(n_new),
        )

    def learn_weights(self, panel: SeriesPanel) -> FittedSharedNetwork:
        """Return the model with a network that has learned what is new in a panel.

        The calibrated networks stay as they are; see `models.networks.learning`.
        """
        learning, windows = learn(self.learning, self.models, panel, self.plan)
        models = tuple(None if m is None else replace(m, windows=windows) for m in self.models)
        return replace(self, models=models, learning=learning)

    def _to_arrays(self, cut: Ints) -> tuple[Arrays, dict[str, Any]]:
        arrays, words = super()._to_arrays(cut)
        return arrays | ({} if self.learning is None else self.learning.to_arrays(cut)), words

    def _unlearned(self, lengths: Ints) -> Ints:
        return (
            super()._unlearned(lengths) if self.learning is None else lengths - self.learning.steps
        )

    @property
    def _common_effects(self) -> Effects | None:
        return self.effects


class SharedNetwork(NetworkMethod):
    """One network for all series, which also forecasts series it has never seen."""

    fitted_class = FittedSharedNetwork
    learns_from = "panel"
    cluster_group = None, 32  # a group sends its sums

    def _fit_many(
        self, panel: Sequence[Series], plans: Sequence[Plan], n_jobs: int
    ) -> tuple[Sequence[SeriesModel | str], dict[str, Any]]:
        del n_jobs
        with one_blas_thread():
            found = fit_or_say_why(lambda: fit_shared(panel, plans[0]))
        if isinstance(found, str):
            return [found] * len(panel), {}
        results, effects, learning = found
        return results, {"effects": effects, "learning": learning}

    def _shared_from_arrays(self, n: int, effects: Any, arrays: Arrays) -> dict[str, Any]:
        learning = Learning.from_arrays(arrays)
        if learning is not None and learning.steps.size != n:
            raise ValueError("numbers of series differ")
        return {"effects": effects, "learning": learning}
