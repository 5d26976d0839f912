"""The regressors inside skforecast, against lag matrices made by hand."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from lag_rows import REGRESSORS, lag_rows, roll_out

pytest.importorskip("skforecast", reason="needs the extra [ecosystem]")
from skforecast.direct import ForecasterDirect, ForecasterDirectMultiVariate
from skforecast.model_selection import TimeSeriesFold, backtesting_forecaster
from skforecast.recursive import ForecasterRecursive, ForecasterRecursiveMultiSeries
from skforecast.utils import load_forecaster, save_forecaster

pytestmark = pytest.mark.slow

LAGS = [1, 2, 5]
H = 4
MODEL = pytest.mark.parametrize("name", REGRESSORS)


def data(n=70, seed=0):
    rng = np.random.default_rng(seed)
    dates = pd.date_range("2024-01-01", periods=n + H, freq="D")
    price = pd.Series(rng.uniform(1.0, 3.0, n + H), dates, name="price")
    y = 20.0 + 5.0 * np.sin(np.arange(n)) + rng.normal(size=n) - 3.0 * price.to_numpy()[:n]
    return pd.Series(y, dates[:n], name="y"), price.to_frame()


def recent(index):
    """Weights that grow with time."""
    return np.linspace(0.5, 2.0, len(index))


@MODEL
@pytest.mark.parametrize("weighted", [False, True])
def test_recursive_forecasts(name, weighted):
    y, _ = data()
    weights = {"weight_func": recent} if weighted else {}
    forecaster = ForecasterRecursive(clone(REGRESSORS[name]), lags=LAGS, **weights)
    forecaster.fit(y)
    X, target = lag_rows(y.to_numpy(), LAGS)
    own = clone(REGRESSORS[name]).fit(
        X, target[:, 0], np.linspace(0.5, 2.0, len(X)) if weighted else None
    )
    expected = roll_out(own, y.to_numpy(), LAGS, H)
    np.testing.assert_allclose(forecaster.predict(H), expected, rtol=1e-6)


@MODEL
def test_inputs(name):
    y, price = data()
    forecaster = ForecasterRecursive(clone(REGRESSORS[name]), lags=LAGS)
    forecaster.fit(y, exog=price[: len(y)])
    found = forecaster.predict(H, exog=price[len(y) :])
    X, target = lag_rows(y.to_numpy(), LAGS, price.to_numpy())
    own = clone(REGRESSORS[name]).fit(np.roll(X, -1, axis=1), target[:, 0])  # inputs come last
    path = list(y)
    for value in price["price"].iloc[len(y) :]:
        row = [*(path[-lag] for lag in LAGS), value]
        path.append(own.predict(np.array([row])).item())
    np.testing.assert_allclose(found, path[len(y) :], rtol=1e-6)


@MODEL
def test_direct_forecasts(name):
    y, _ = data()
    forecaster = ForecasterDirect(clone(REGRESSORS[name]), steps=H, lags=LAGS, n_jobs=1)
    forecaster.fit(y)
    X, targets = lag_rows(y.to_numpy(), LAGS, ahead=H)
    row = np.array([[y.iloc[-lag] for lag in LAGS]])
    models = [clone(REGRESSORS[name]).fit(X, targets[:, step]) for step in range(H)]
    expected = [model.predict(row).item() for model in models]
    np.testing.assert_allclose(forecaster.predict(H), expected, rtol=1e-6)


@MODEL
@pytest.mark.parametrize("method", ["bootstrapping", "conformal"])
def test_intervals(name, method):
    y, _ = data()
    forecaster = ForecasterRecursive(clone(REGRESSORS[name]), lags=LAGS)
    forecaster.fit(y, store_in_sample_residuals=True)
    found = forecaster.predict_interval(H, method=method, interval=0.8, n_boot=50)
    np.testing.assert_allclose(found["pred"], forecaster.predict(H), rtol=1e-12)
    assert (found["lower_bound"] < found["upper_bound"]).all()


def test_many_series():
    wide = pd.DataFrame({"a": data()[0], "b": 2.0 * data(seed=1)[0]})
    many = ForecasterRecursiveMultiSeries(
        clone(REGRESSORS["RBFDiffNetRegressor"]), lags=LAGS, encoding=None, transformer_series=None
    )
    many.fit(dict(wide.items()))
    rows = [lag_rows(wide[name].to_numpy(), LAGS) for name in wide]
    own = clone(REGRESSORS["RBFDiffNetRegressor"])
    own.fit(np.concatenate([X for X, _ in rows]), np.concatenate([y[:, 0] for _, y in rows]))
    found = many.predict(H)
    for name in wide:
        expected = roll_out(own, wide[name].to_numpy(), LAGS, H)
        np.testing.assert_allclose(found.loc[found["level"] == name, "pred"], expected, rtol=1e-6)
    several = ForecasterDirectMultiVariate(
        clone(REGRESSORS["RBFDiffNetRegressor"]), level="a", steps=2, lags=LAGS, n_jobs=1
    )
    several.fit(wide)
    assert np.all(np.isfinite(several.predict(2)["pred"]))


def test_backtests():
    y, _ = data()
    forecaster = ForecasterRecursive(clone(REGRESSORS["RBFDiffNetRegressor"]), lags=LAGS)
    folds = TimeSeriesFold(
        steps=H, initial_train_size=len(y) - 2 * H, refit=True, fixed_train_size=False
    )
    _, found = backtesting_forecaster(
        forecaster, y, cv=folds, metric="mean_absolute_error", show_progress=False, n_jobs=1
    )
    expected = []
    for end in (len(y) - 2 * H, len(y) - H):
        X, target = lag_rows(y.to_numpy()[:end], LAGS)
        own = clone(REGRESSORS["RBFDiffNetRegressor"]).fit(X, target[:, 0])
        expected.append(roll_out(own, y.to_numpy()[:end], LAGS, H))
    np.testing.assert_allclose(found["pred"], np.concatenate(expected), rtol=1e-6)


@MODEL
def test_files(name, tmp_path):
    y, _ = data()
    forecaster = ForecasterRecursive(clone(REGRESSORS[name]), lags=LAGS)
    forecaster.fit(y)
    path = str(tmp_path / "model.joblib")
    save_forecaster(forecaster, path, save_custom_functions=False, verbose=False)
    found = load_forecaster(path, verbose=False).predict(H)
    np.testing.assert_array_equal(found, forecaster.predict(H))
