"""Differential radial basis function networks for time series.

The regressors follow scikit-learn's conventions; everything below them is plain functions over
arrays. Read `network` to see how one network comes about, `models` for what forecasts a panel.

Public are the names exported here and the modules `network.basis`, `network.centers`,
`network.widths`, `series.windows`, `series.transforms`, `series.recursion`, `report`,
`report.plots`, `evaluation.metrics`, `datasets`, `adapters` and `adapters.clusters`.
The others are machinery and may change.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rbfdiffnet.forecaster import RBFDiffNet
    from rbfdiffnet.network.network import Network
    from rbfdiffnet.panel.calendar import Event, Holidays
    from rbfdiffnet.regressors import RBFDiffNetRegressor, RBFNetworkRegressor

__version__ = "0.1.0"

__all__ = [
    "Event",
    "Holidays",
    "Network",
    "RBFDiffNet",
    "RBFDiffNetRegressor",
    "RBFNetworkRegressor",
    "__version__",
]

# Imported on first use, so that the command line answers at once.
_HOMES = {
    "Event": "rbfdiffnet.panel.calendar",
    "Holidays": "rbfdiffnet.panel.calendar",
    "RBFDiffNet": "rbfdiffnet.forecaster",
    "Network": "rbfdiffnet.network.network",
    "RBFDiffNetRegressor": "rbfdiffnet.regressors",
    "RBFNetworkRegressor": "rbfdiffnet.regressors",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
