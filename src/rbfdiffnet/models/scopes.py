"""The methods there are, by the name that `scope` gives them: the place that chooses a model."""

from __future__ import annotations

from collections.abc import Sequence

from rbfdiffnet.models.base import FittedModel, PanelMethod
from rbfdiffnet.models.networks.local import FastNetworks, LocalNetworks
from rbfdiffnet.models.networks.shared import SharedNetwork
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.stack.model import Stack
from rbfdiffnet.series.series import Series, SeriesPanel

#: Methods by the value of `scope`; the fast networks stand for "local" with preset="fast".
METHODS: dict[str, PanelMethod] = {
    "auto": Stack(),
    "local": LocalNetworks(),
    "fast": FastNetworks(),
    "global": SharedNetwork(),
}
SCOPES = ("auto", "local", "global")


def fit_panel(
    panel: Sequence[Series], plan: Plan, *, scope: str, calibrate: bool = False, n_jobs: int = 1
) -> FittedModel:
    """Fit a panel by the method of a scope."""
    method = METHODS["fast" if scope == "local" and plan.fast else scope]
    return method.fit(SeriesPanel.of(panel), plan, calibrate=calibrate, n_jobs=n_jobs)
