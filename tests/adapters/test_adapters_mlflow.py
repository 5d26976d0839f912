"""Forecasters in MLflow, with a store of files."""

import sys

import pandas as pd
import pytest

from panels import make_panel
from rbfdiffnet import RBFDiffNet

mlflow = pytest.importorskip("mlflow", reason="needs rbfdiffnet[mlflow]")
pytestmark = pytest.mark.filterwarnings("ignore")  # those of MLflow about itself


@pytest.fixture
def adapter(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    from rbfdiffnet.adapters import mlflow as module

    yield module
    mlflow.set_tracking_uri(None)


@pytest.fixture
def model():
    return RBFDiffNet("D", preset="instant").fit(make_panel("ab", n=60))


def test_a_logged_model_forecasts_as_before(adapter, model):
    with mlflow.start_run():
        info = adapter.log_model(model, "shops", metadata={"owner": "us"})
    again = adapter.load_model(info.model_uri)
    pd.testing.assert_frame_equal(again.predict(5), model.predict(5))
    served = mlflow.pyfunc.load_model(info.model_uri)
    assert served.metadata.metadata == {"owner": "us"}
    assert served.metadata.flavors["rbfdiffnet"]["data"] == "model.rbfdiffnet"
    pd.testing.assert_frame_equal(served.predict(pd.DataFrame({"h": [5]})), model.predict(5))
    wanted = model.predict(2, level=[50])
    pd.testing.assert_frame_equal(served.predict({"h": [2]}, params={"level": [50.0]}), wanted)
    assert isinstance(served.get_raw_model(), RBFDiffNet)
    wanted = model.predict(2, level=None, quantiles=[0.1, 0.9])
    params = {"level": [], "quantiles": [0.1, 0.9]}
    pd.testing.assert_frame_equal(served.predict({"h": [2]}, params=params), wanted)
    wanted = model.predict(2, level=[80, 95], quantiles=[0.1])
    pd.testing.assert_frame_equal(served.predict({"h": [2]}, params={"quantiles": [0.1]}), wanted)


def test_future_inputs_are_the_rows_to_forecast(adapter, tmp_path):
    df = make_panel("ab", n=60).assign(price=lambda f: 1.0 + f.index % 3)
    model = RBFDiffNet("D", preset="instant").fit(df)
    adapter.save_model(model, tmp_path / "model", pip_requirements=["rbfdiffnet"])
    served = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    future = model.make_future_frame(4).assign(price=2.0)
    pd.testing.assert_frame_equal(served.predict(future), model.predict(4, future))
    both = pd.concat([future.assign(scenario=name) for name in ("a", "b")])
    pd.testing.assert_frame_equal(served.predict(both), model.predict(4, both))
    assert (tmp_path / "model" / "requirements.txt").read_text() == "rbfdiffnet\n"
    names = {path.suffix for path in (tmp_path / "model").iterdir()}
    assert not names & {".pkl", ".pickle"}


def test_what_cannot_be_done_is_said(adapter, model, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    with pytest.raises(ValueError, match=r"full' is not empty; give the name of a new folder"):
        adapter.save_model(model, tmp_path / "full")
    with pytest.raises(ValueError, match="a column 'h' with one row, the whole number"):
        adapter._PyfuncModel(model).predict(pd.DataFrame({"h": [1, 2]}))


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setattr("rbfdiffnet.adapters.find_spec", lambda _: None)
    monkeypatch.delitem(sys.modules, "rbfdiffnet.adapters.mlflow", raising=False)
    with pytest.raises(ImportError, match=r"needs mlflow: pip install 'rbfdiffnet\[mlflow\]'"):
        __import__("rbfdiffnet.adapters.mlflow")
