"""The regressors inside mlforecast, against lag matrices made by hand."""

import numpy as np
import pytest
from sklearn.base import clone

from lag_rows import REGRESSORS, lag_rows, roll_out
from panels import make_panel, to_polars

pytest.importorskip("mlforecast", reason="needs the extra [ecosystem]")
from mlforecast import MLForecast
from mlforecast.target_transforms import Differences
from mlforecast.utils import PredictionIntervals

pytestmark = pytest.mark.slow

LAGS = [1, 2, 7]
H = 4
MODEL = pytest.mark.parametrize("name", REGRESSORS)


def data():
    df = make_panel("ab", n=60, columns=("price",))
    weight = np.tile(np.linspace(0.0, 2.0, 60), 2)
    return df, df.assign(weight=weight)


def by_hand(df, name, weight=None, inputs=True, offset=0):
    """The regressor on the rows of all series, and its forecasts."""
    parts, weights, ends = [], [], []
    for _, part in df.groupby("unique_id"):
        y, price = part["y"].to_numpy(), part[["price"]].to_numpy()
        known = price if inputs else None
        parts.append(lag_rows(y[:-H], LAGS, known, offset=offset))
        weights.append(None if weight is None else part[weight].to_numpy()[7 : len(y) - H])
        ends.append((y[:-H], price[-H:] if inputs else None))
    model = clone(REGRESSORS[name])
    X = np.concatenate([X for X, _ in parts])
    y = np.concatenate([y[:, 0] for _, y in parts])
    model.fit(X, y, None if weight is None else np.concatenate(weights))
    return model, ends


def head(df, n=60 - H):
    return df.groupby("unique_id").head(n)


def tail(df, columns=("price",)):
    return df.groupby("unique_id").tail(H)[["unique_id", "ds", *columns]]


@MODEL
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_recursive_forecasts(name, weighted, library):
    df, weighted_df = data()
    weight = "weight" if weighted else None
    given, convert, freq = weighted_df if weighted else df, (lambda frame: frame), "D"
    if library == "polars":
        convert, freq = to_polars, "1d"
    engine = MLForecast({"ours": clone(REGRESSORS[name])}, freq=freq, lags=LAGS)
    engine.fit(convert(head(given)), static_features=[], weight_col=weight)
    found = engine.predict(H, X_df=convert(tail(df)))
    model, ends = by_hand(weighted_df, name, weight)
    expected = [roll_out(model, y, LAGS, H, price) for y, price in ends]
    np.testing.assert_allclose(found["ours"], np.concatenate(expected), rtol=1e-7)


def test_weights_matter():
    _, df = data()
    (plain, _), (weighted, _) = (by_hand(df, "RBFDiffNetRegressor", w) for w in (None, "weight"))
    row = np.array([[2.0, 60.0, 60.0, 60.0]])
    assert abs(plain.predict(row) - weighted.predict(row)).item() > 1e-3


@MODEL
def test_direct_forecasts(name):
    df = data()[0].drop(columns="price")
    engine = MLForecast({"ours": clone(REGRESSORS[name])}, freq="D", lags=LAGS)
    found = engine.fit(head(df), static_features=[], max_horizon=H).predict(H)["ours"].to_numpy()
    expected = []
    for offset in range(H):
        model, ends = by_hand(df.assign(price=0.0), name, inputs=False, offset=offset)
        rows = np.array([[y[-lag] for lag in LAGS] for y, _ in ends])
        expected.append(model.predict(rows))
    np.testing.assert_allclose(found.reshape(2, H), np.transpose(expected), rtol=1e-7)


@MODEL
def test_intervals(name):
    df = data()[0].drop(columns="price")
    engine = MLForecast({"ours": clone(REGRESSORS[name])}, freq="D", lags=LAGS)
    intervals = PredictionIntervals(n_windows=5, h=H, method="conformal_error")
    engine.fit(head(df), static_features=[], prediction_intervals=intervals)
    found = engine.predict(H, level=[80])
    model, ends = by_hand(df.assign(price=0.0), name, inputs=False)
    expected = np.concatenate([roll_out(model, y, LAGS, H) for y, _ in ends])
    np.testing.assert_allclose(found["ours"], expected, rtol=1e-7)
    center = (found["ours-lo-80"] + found["ours-hi-80"]) / 2.0
    np.testing.assert_allclose(center, expected, rtol=1e-7)
    assert (found["ours-hi-80"] > found["ours"]).all()


def test_cross_validation_refits_for_every_window():
    df = data()[0].drop(columns="price")
    engine = MLForecast({"ours": REGRESSORS["RBFDiffNetRegressor"]}, freq="D", lags=LAGS)
    folds = engine.cross_validation(df, n_windows=2, h=H, static_features=[])
    for back, (_, fold) in zip((H, 0), folds.groupby("cutoff"), strict=True):
        model, ends = by_hand(
            head(df.assign(price=0.0), 60 - back), "RBFDiffNetRegressor", inputs=False
        )
        expected = np.concatenate([roll_out(model, y, LAGS, H) for y, _ in ends])
        np.testing.assert_allclose(fold["ours"], expected, rtol=1e-7)


@MODEL
def test_files_and_column_names(name, tmp_path):
    df = data()[0].drop(columns="price")
    engine = MLForecast(clone(REGRESSORS[name]), "D", LAGS, target_transforms=[Differences([7])])
    expected = engine.fit(df, static_features=[]).predict(H)
    assert name in expected
    engine.save(tmp_path)
    found = MLForecast.load(tmp_path).predict(H)
    np.testing.assert_array_equal(found[name], expected[name])
