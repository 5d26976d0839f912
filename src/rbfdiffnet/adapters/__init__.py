"""The forecaster in the interfaces of other libraries, and on clusters (`adapters.clusters`).

===================================  ==========================================================
`rbfdiffnet.adapters.sktime`         ``RBFDiffNetForecaster``, a forecaster of sktime
`rbfdiffnet.adapters.statsforecast`  ``RBFDiffNet``, a model of ``StatsForecast(models=[...])``
`rbfdiffnet.adapters.mlflow`         ``log_model`` and ``load_model``, a flavor of MLflow
===================================  ==========================================================

mlforecast, darts and skforecast take `rbfdiffnet.RBFDiffNetRegressor` and
`rbfdiffnet.RBFNetworkRegressor` as they are. Each module needs its library:
``pip install 'rbfdiffnet[ecosystem]'``, or ``'rbfdiffnet[mlflow]'``. Adapters only translate:
nothing is learned or forecast here, and no other folder but experiments and the command line may
import them.
"""

from importlib.util import find_spec

__all__ = ["require"]


def require(peer: str, extra: str = "ecosystem") -> None:
    """Raise an error that says which extra to install, unless the library ``peer`` is there.

    Examples
    --------
    >>> from rbfdiffnet.adapters import require
    >>> require("no_such_library")
    Traceback (most recent call last):
    ImportError: This adapter needs no_such_library: pip install 'rbfdiffnet[ecosystem]'.
    """
    if find_spec(peer) is None:
        raise ImportError(f"This adapter needs {peer}: pip install 'rbfdiffnet[{extra}]'.")
