"""Differential radial basis function networks for time series.

The regressors follow scikit-learn's conventions; everything below them is plain functions over
arrays. Read `basis`, `centers`, `widths`, `solvers`, `selection`, `training`, `network` and
`regressors`, in that order, to see how a network comes about.
"""

from rbfdiffnet.network import Network
from rbfdiffnet.regressors import RBFDiffNetRegressor, RBFNetworkRegressor

__version__ = "0.1.0.dev0"

__all__ = ["Network", "RBFDiffNetRegressor", "RBFNetworkRegressor", "__version__"]
