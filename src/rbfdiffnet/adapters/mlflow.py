"""Forecasters in MLflow: logged with a run, loaded again, and served as a pyfunc model.

The file of a model is that of `rbfdiffnet.RBFDiffNet.save`: arrays and JSON, no pickle. Needs
``pip install 'rbfdiffnet[mlflow]'``.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from rbfdiffnet import RBFDiffNet, __version__
from rbfdiffnet.adapters import require

require("mlflow", "mlflow")

__all__ = ["load_model", "log_model", "save_model"]

FLAVOR_NAME = "rbfdiffnet"
_FILE, _ENVIRONMENT, _REQUIREMENTS = "model.rbfdiffnet", "python_env.yaml", "requirements.txt"
_LEVELS = [80.0, 95.0]


def save_model(
    model: RBFDiffNet,
    path: Any,
    mlflow_model: Any = None,
    signature: Any = None,
    pip_requirements: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Save a fitted forecaster as a folder that MLflow understands.

    Parameters
    ----------
    model : RBFDiffNet
        A fitted forecaster.
    path : path-like
        The folder, which must be new or empty.
    mlflow_model : mlflow.models.Model, optional
        What the folder belongs to; `log_model` gives it.
    signature : mlflow.models.ModelSignature, optional
        By default one with the parameters ``level`` and ``quantiles`` of the pyfunc model.
    pip_requirements : sequence of str, optional
        What is installed where the model is served; by default this version of rbfdiffnet.
    metadata : mapping, optional
        Whatever should be kept with the model.

    See Also
    --------
    log_model : The same, as an artifact of a run.

    Examples
    --------
    >>> import tempfile
    >>> import mlflow
    >>> from rbfdiffnet import RBFDiffNet
    >>> from rbfdiffnet.adapters.mlflow import load_model, save_model
    >>> from rbfdiffnet.datasets import load_air_passengers
    >>> model = RBFDiffNet(freq="MS", preset="instant").fit(load_air_passengers())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/air")
    ...     again = load_model(f"{folder}/air")
    >>> again.predict(3).equals(model.predict(3))
    True
    """
    from mlflow import pyfunc
    from mlflow.models import Model

    folder = Path(path)
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"'{folder}' is not empty; give the name of a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / _FILE)
    described = Model() if mlflow_model is None else mlflow_model
    described.signature = _make_signature() if signature is None else signature
    if metadata is not None:
        described.metadata = dict(metadata)
    pyfunc.add_to_model(described, loader_module=__name__, data=_FILE, python_env=_ENVIRONMENT)
    described.add_flavor(FLAVOR_NAME, rbfdiffnet_version=__version__, data=_FILE)
    described.save(str(folder / "MLmodel"))
    wanted = (
        [f"rbfdiffnet[mlflow]=={__version__}"] if pip_requirements is None else pip_requirements
    )
    (folder / _REQUIREMENTS).write_text("\n".join(wanted) + "\n", encoding="utf-8")
    environment = f"python: {platform.python_version()}\ndependencies:\n- -r {_REQUIREMENTS}\n"
    (folder / _ENVIRONMENT).write_text(environment, encoding="utf-8")


def log_model(model: RBFDiffNet, name: str, **settings: Any) -> Any:
    """Log a fitted forecaster as a model of the active run, or of a new one.

    Parameters
    ----------
    model : RBFDiffNet
        A fitted forecaster.
    name : str
        Name of the model.
    **settings
        ``registered_model_name`` and other arguments of ``mlflow.models.Model.log``, and those of
        `save_model`.

    Returns
    -------
    mlflow.models.model.ModelInfo
        Its ``model_uri`` is what `load_model` and ``mlflow.pyfunc.load_model`` take.

    Examples
    --------
    >>> import mlflow
    >>> from rbfdiffnet import RBFDiffNet
    >>> from rbfdiffnet.adapters.mlflow import log_model
    >>> from rbfdiffnet.datasets import load_air_passengers
    >>> model = RBFDiffNet(freq="MS").fit(load_air_passengers())
    >>> with mlflow.start_run():  # doctest: +SKIP
    ...     info = log_model(model, "air")
    >>> mlflow.pyfunc.load_model(info.model_uri).predict({"h": [12]})  # doctest: +SKIP
    """
    from mlflow.models import Model

    flavor = sys.modules[__name__]
    return Model.log(artifact_path=None, name=name, flavor=flavor, model=model, **settings)


def load_model(model_uri: str) -> RBFDiffNet:
    """Load a forecaster that `log_model` or `save_model` wrote.

    Parameters
    ----------
    model_uri : str
        A folder, or an address such as ``models:/air/1`` or ``runs:/.../air``.

    Returns
    -------
    RBFDiffNet

    Examples
    --------
    >>> import tempfile
    >>> from rbfdiffnet import RBFDiffNet
    >>> from rbfdiffnet.adapters.mlflow import load_model, save_model
    >>> from rbfdiffnet.datasets import load_air_passengers
    >>> model = RBFDiffNet(freq="MS", preset="instant").fit(load_air_passengers())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/air")
    ...     load_model(f"{folder}/air")
    RBFDiffNet(freq='MS', preset='instant')
    """
    from mlflow.artifacts import download_artifacts

    return RBFDiffNet.load(Path(download_artifacts(artifact_uri=str(model_uri))) / _FILE)


class _PyfuncModel:
    """What ``mlflow.pyfunc.load_model`` hands out."""

    def __init__(self, model: RBFDiffNet) -> None:
        self._model = model

    def get_raw_model(self) -> RBFDiffNet:
        """Return the forecaster."""
        return self._model

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Forecast ``h`` steps, or the rows of a frame with future inputs.

        ``model_input`` has a column ``h`` and one row, or the rows of
        `RBFDiffNet.make_future_frame` with all inputs. ``params`` may have ``level``, an empty list
        for no intervals, and ``quantiles``.
        """
        given = {"level": _LEVELS, "quantiles": [], **(params or {})}
        wanted = {name: [*given[name]] or None for name in ("level", "quantiles")}
        columns = model_input if isinstance(model_input, Mapping) else model_input.columns
        names = self._model.id_col, self._model.time_col
        if all(name in columns for name in names):
            ids, dates = (model_input[name] for name in names)
            if not len(dates):
                raise ValueError("The frame with future inputs has no rows; see make_future_frame.")
            if dates.dtype == object or str(dates.dtype) == "str":  # as JSON has them
                model_input = model_input.assign(**{names[1]: pd.to_datetime(dates)})
            h = dates[ids == ids.iloc[0]].nunique()  # scenarios have the same dates
            return self._model.predict(h, model_input, **wanted)
        steps = [*model_input["h"]] if "h" in columns else []
        if len(steps) != 1 or steps[0] != int(steps[0]):
            raise ValueError(
                "Give a column 'h' with one row, the whole number of steps ahead, or the rows of "
                "make_future_frame with all inputs."
            )
        return self._model.predict(int(steps[0]), **wanted)


def _load_pyfunc(path: str) -> _PyfuncModel:
    """Load the model whose file MLflow names."""
    return _PyfuncModel(RBFDiffNet.load(path))


def _make_signature() -> Any:
    from mlflow.models import ModelSignature
    from mlflow.types import DataType, ParamSchema, ParamSpec

    defaults = {"level": _LEVELS, "quantiles": []}
    params = [ParamSpec(name, DataType.double, own, (-1,)) for name, own in defaults.items()]
    return ModelSignature(params=ParamSchema(params))
