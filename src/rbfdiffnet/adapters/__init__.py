"""The forecaster in the clothes of other libraries.

===================================  ==========================================================
`rbfdiffnet.adapters.sktime`         ``RBFDiffNetForecaster``, a forecaster of sktime
`rbfdiffnet.adapters.statsforecast`  ``RBFDiffNet``, a model of ``StatsForecast(models=[...])``
===================================  ==========================================================

mlforecast, darts and skforecast take `rbfdiffnet.RBFDiffNetRegressor` and
`rbfdiffnet.RBFNetworkRegressor` as they are. Each module needs its library:
``pip install 'rbfdiffnet[ecosystem]'``.
"""

from importlib.util import find_spec

__all__ = ["require"]


def require(peer: str) -> None:
    """Raise an error that says what to install, unless a library is there.

    Parameters
    ----------
    peer : str
        Name of the library.

    Raises
    ------
    ImportError

    Examples
    --------
    >>> from rbfdiffnet.adapters import require
    >>> require("json")
    >>> require("no_such_library")
    Traceback (most recent call last):
    ImportError: This adapter needs no_such_library: pip install 'rbfdiffnet[ecosystem]'.
    """
    if find_spec(peer) is None:
        raise ImportError(f"This adapter needs {peer}: pip install 'rbfdiffnet[ecosystem]'.")
