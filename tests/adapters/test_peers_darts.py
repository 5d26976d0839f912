"""The regressors inside darts, against lag matrices made by hand."""

from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from lag_rows import REGRESSORS, lag_rows, roll_out

pytest.importorskip("darts", reason="needs the extra [ecosystem]")
from darts import TimeSeries
from darts.models import SKLearnModel

from rbfdiffnet import Network
from rbfdiffnet.series.windows import lag_windows

pytestmark = pytest.mark.slow

LAGS = 5
AGES = list(range(LAGS, 0, -1))
H = 6
MODEL = pytest.mark.parametrize("name", REGRESSORS)


def values(n=80, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    price = rng.uniform(1.0, 3.0, n + H)
    return 20.0 + 5.0 * np.sin(t) + rng.normal(size=n) - 3.0 * price[:n], price


def series(y, start="2024-01-01"):
    return TimeSeries.from_times_and_values(pd.date_range(start, periods=len(y), freq="D"), y)


@pytest.fixture
def conformal_model(monkeypatch):
    """Darts' conformal model, which wants Lightning where there is torch."""
    if find_spec("pytorch_lightning") is None:
        monkeypatch.setattr("darts.utils.utils.TORCH_AVAILABLE", False)
    from darts.models import ConformalNaiveModel

    return ConformalNaiveModel


def model_of(name, **settings):
    return SKLearnModel(model=clone(REGRESSORS[name]), lags=LAGS, **settings)


@MODEL
@pytest.mark.parametrize("weighted", [False, True])
def test_recursive_forecasts(name, weighted):
    y, _ = values()
    weight = np.linspace(0.1, 2.0, y.size)
    given = {"sample_weight": series(weight)} if weighted else {}
    found = model_of(name, output_chunk_length=1).fit(series(y), **given).predict(H)
    X, target = lag_windows(y, LAGS)
    own = clone(REGRESSORS[name]).fit(X, target, weight[LAGS:] if weighted else None)
    np.testing.assert_allclose(found.values()[:, 0], roll_out(own, y, AGES, H), rtol=1e-6)


@MODEL
def test_several_outputs_are_one_network(name):
    y, _ = values()
    model = model_of(name, output_chunk_length=3).fit(series(y))
    assert type(model.model).__name__ == name
    own = clone(REGRESSORS[name]).fit(*lag_rows(y, AGES, ahead=3))
    first = own.predict(y[None, -LAGS:])[0]
    second = own.predict(np.append(y, first)[None, -LAGS:])[0]
    np.testing.assert_allclose(model.predict(H).values()[:, 0], [*first, *second], rtol=1e-6)


@MODEL
def test_with_weights_every_step_has_a_network(name):
    y, _ = values()
    weight = np.linspace(0.1, 2.0, y.size)
    model = model_of(name, output_chunk_length=3).fit(series(y), sample_weight=series(weight))
    X, targets = lag_rows(y, AGES, ahead=3)
    expected = []
    for step in range(3):
        own = clone(REGRESSORS[name])
        own.fit(X, targets[:, step], weight[LAGS + step :][: len(X)])
        expected.append(own.predict(y[None, -LAGS:]).item())
    np.testing.assert_allclose(model.predict(3).values()[:, 0], expected, rtol=1e-6)


def test_one_model_for_all_steps():
    y, _ = values()
    model = model_of("RBFDiffNetRegressor", output_chunk_length=3, multi_models=False)
    found = model.fit(series(y)).predict(3).values()[:, 0]
    X, target = lag_rows(y, [age + 2 for age in AGES])  # from the oldest information of all steps
    own = clone(REGRESSORS["RBFDiffNetRegressor"]).fit(X, target[:, 0])
    rows = np.array([y[len(y) - 7 + step :][:LAGS] for step in range(3)])
    np.testing.assert_allclose(found, own.predict(rows), rtol=1e-6)


@MODEL
def test_future_inputs(name):
    y, price = values()
    model = model_of(name, lags_future_covariates=[0], output_chunk_length=1)
    model.fit(series(y), future_covariates=series(price))
    found = model.predict(H, future_covariates=series(price)).values()[:, 0]
    X, target = lag_rows(y, AGES, price[:, None])
    X = np.roll(X, -1, axis=1)  # there inputs come last
    own = clone(REGRESSORS[name]).fit(X, target[:, 0])
    path = list(y)
    for step in range(H):
        row = [*path[-LAGS:], price[y.size + step]]
        path.append(own.predict(np.array([row])).item())
    np.testing.assert_allclose(found, path[y.size :], rtol=1e-6)


def test_several_series_and_components():
    y, price = values()
    pair = series(y).stack(series(price[: y.size]).with_columns_renamed("0", "price"))
    other = series(values(seed=1)[0]).stack(series(price[: y.size]).with_columns_renamed("0", "p"))
    model = model_of("RBFDiffNetRegressor", output_chunk_length=2).fit([pair, other])
    first, second = model.predict(H, series=[pair, other])
    assert first.shape == second.shape == (H, 2, 1)
    assert np.all(np.isfinite(first.values()))
    assert not np.allclose(first.values(), second.values())


@MODEL
def test_backtests_and_conformal_intervals(name, conformal_model):
    y, _ = values()
    model = model_of(name, output_chunk_length=1).fit(series(y[:50]))
    past = model.historical_forecasts(series(y), retrain=False, start=50, forecast_horizon=1)
    X, target = lag_windows(y, LAGS)
    own = clone(REGRESSORS[name]).fit(X[: 50 - LAGS], target[: 50 - LAGS])
    np.testing.assert_allclose(past.values()[:, 0], own.predict(X[50 - LAGS :]), rtol=1e-6)
    conformal = conformal_model(model, quantiles=[0.1, 0.5, 0.9])
    found = conformal.predict(2, series=series(y), predict_likelihood_parameters=True)
    low, middle, high = found.values().T
    np.testing.assert_allclose(middle, roll_out(own, y, AGES, 2), rtol=1e-6)
    assert np.all(low < middle)
    assert np.all(middle < high)


@MODEL
def test_files(name, tmp_path):
    serialization = pytest.importorskip("darts.utils.serialization", reason="new in darts 0.48")
    y, _ = values()
    model = model_of(name, output_chunk_length=2).fit(series(y))
    expected = model.predict(H).values()
    path = str(tmp_path / "model.pkl")
    model.save(path)
    np.testing.assert_array_equal(
        SKLearnModel.load(path, trusted=True).predict(H).values(), expected
    )
    serialization.clear_safe_globals()  # of other tests in this process
    with pytest.raises(Exception, match=f"{name}` is not allow-listed"):
        SKLearnModel.load(path)
    serialization.add_safe_globals([type(REGRESSORS[name]), Network])
    np.testing.assert_array_equal(SKLearnModel.load(path).predict(H).values(), expected)
