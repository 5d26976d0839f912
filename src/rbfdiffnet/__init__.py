"""Differential radial basis function networks for time series.

The regressors follow scikit-learn's conventions; everything below them is plain functions over
arrays. Read `basis`, `centers`, `widths`, `losses`, `solvers`, `selection`, `rows`, `training`,
`network` and `regressors`, in that order, to see how a network comes about.

Public are the names exported here and the modules `basis`, `centers`, `widths`, `windows`,
`transforms`, `recursion`, `plots`, `report`, `metrics`, `datasets`, `adapters` and `distributed`.
The others are machinery and may change.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rbfdiffnet.calendar_inputs import Event
    from rbfdiffnet.forecaster import RBFDiffNet
    from rbfdiffnet.network import Network
    from rbfdiffnet.regressors import RBFDiffNetRegressor, RBFNetworkRegressor

__version__ = "0.1.0.dev0"

__all__ = [
    "Event",
    "Network",
    "RBFDiffNet",
    "RBFDiffNetRegressor",
    "RBFNetworkRegressor",
    "__version__",
]

# Imported on first use, so that the command line answers at once.
_HOMES = {
    "Event": "rbfdiffnet.calendar_inputs",
    "RBFDiffNet": "rbfdiffnet.forecaster",
    "Network": "rbfdiffnet.network",
    "RBFDiffNetRegressor": "rbfdiffnet.regressors",
    "RBFNetworkRegressor": "rbfdiffnet.regressors",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
