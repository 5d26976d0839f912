"""Named trade-offs of the forecaster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["PRESETS", "Preset"]


@dataclass(frozen=True)
class Preset:
    """Settings that belong together.

    Attributes
    ----------
    regressor : callable
        Returns the network, not fitted.
    transforms : tuple of str
    level : str or None
        Level of the windows, None to choose by length.
    clean : bool
        Whether outliers count as missing.
    seasons_of_lags : int
        How many seasons of lags; 0 to choose by season and length.
    fast : bool
        Whether networks of single series are trained by `batch.train`, unless a regressor
        is given; series too short for the lags get fewer of them (`Plan.shortened`).
    thorough : bool
        Whether a stack takes the time for more rows, and for noise in the series of its networks.
    single : bool
        Whether it means networks of single series, unless a scope is given.
    """

    regressor: Callable[[], Any]
    transforms: tuple[str, ...] = ()
    level: str | None = None
    clean: bool = True
    seasons_of_lags: int = 0
    fast: bool = False
    thorough: bool = False
    single: bool = False


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
    "fast": Preset(
        _network(metric="standard", width_factor=4.0, loss="squared"),
        transforms=("auto", "mean"),
        level="none",
        seasons_of_lags=2,
        fast=True,
        single=True,
    ),
    "paper": Preset(
        _paper,
        transforms=("adf", "mean"),
        level="none",
        clean=False,
        seasons_of_lags=2,
        single=True,
    ),
}
