"""Named trade-offs of the forecaster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Preset:
    """Settings that belong together."""

    regressor: Callable[[], Any]  # returns the network, not fitted
    transforms: tuple[str, ...] = ()
    level: str | None = None  # of the windows; None chooses by length
    clean: bool = True  # whether outliers count as missing
    seasons_of_lags: int = 0  # how many seasons of lags; 0 chooses by season and length
    fast: bool = False  # whether networks of single series are trained all at once
    thorough: bool = False  # whether each series in a stack is looked at for a rule of its own
    scope: str | None = None  # which model is meant, unless a scope is given


def _network(**parameters: Any) -> Callable[[], Any]:
    def make() -> Any:
        from rbfdiffnet.regressors import RBFDiffNetRegressor

        return RBFDiffNetRegressor(**parameters)

    return make


def _paper() -> Any:
    from rbfdiffnet.regressors import RBFDiffNetRegressor

    return RBFDiffNetRegressor.paper(order=1)


#: Presets by name.
PRESETS = {
    "default": Preset(_network(metric="standard", width_factor=4.0, loss="squared")),
    "best": Preset(_network(), thorough=True),
    "instant": Preset(
        _network(metric="standard", width_factor=4.0, loss="squared"),
        clean=False,
        scope="pretrained",
    ),
    "fast": Preset(
        _network(metric="standard", width_factor=4.0, loss="squared"),
        transforms=("auto", "mean"),
        level="none",
        seasons_of_lags=2,
        fast=True,
        scope="local",
    ),
    "paper": Preset(
        _paper,
        transforms=("adf", "mean"),
        level="none",
        clean=False,
        seasons_of_lags=2,
        scope="local",
    ),
}
