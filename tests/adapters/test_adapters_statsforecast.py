"""Inside StatsForecast, and the numbers of `RBFDiffNet` on the same series."""

import pickle
import sys

import numpy as np
import pandas as pd
import pytest

import rbfdiffnet
from panels import make_panel, to_polars

pytest.importorskip("statsforecast", reason="needs the extra [ecosystem]")
from statsforecast import StatsForecast
from statsforecast.models import AutoETS, SeasonalNaive

from rbfdiffnet.adapters.statsforecast import RBFDiffNet

NAME = "RBFDiffNet"
LOCAL = {"scope": "local"}
BOTH = pytest.mark.parametrize("settings", [LOCAL, {}], ids=str)
INPUTS = ["price", "visitors"]
H = 5


def panel(columns=(), n=60):
    return make_panel("ab", n=n, columns=columns)


def each(df, task):
    """Results of a task on every series alone."""
    parts = [task(part) for _, part in df.groupby("unique_id")]
    return pd.concat(parts, ignore_index=True)


def same(found, expected):
    assert list(found["unique_id"]) == list(expected["unique_id"])
    assert list(found["ds"]) == list(expected["ds"])
    for name in expected.columns[2:]:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, err_msg=name)


@pytest.mark.parametrize(("settings", "n_jobs"), [(LOCAL, 1), ({}, 2)], ids=str)
def test_forecasts_are_those_of_single_series(settings, n_jobs):
    df = panel()
    models = [AutoETS(season_length=7, model="ZNA"), RBFDiffNet(7, **settings)]
    forecast = StatsForecast(models, freq="D", n_jobs=n_jobs).forecast(df=df, h=H, level=[80, 95])
    assert "AutoETS-hi-95" in forecast
    model = rbfdiffnet.RBFDiffNet("D", **settings)
    same(forecast, each(df, lambda part: model.forecast(part, H, level=[80, 95])))


@pytest.mark.parametrize(("settings", "n_jobs"), [(LOCAL, 2), ({}, 1)], ids=str)
def test_fit_and_predict(settings, n_jobs):
    df = panel()
    models = [SeasonalNaive(7), RBFDiffNet(7, alias="ours", **settings)]
    engine = StatsForecast(models, freq="D", n_jobs=n_jobs).fit(df)
    forecast = engine.predict(h=H, level=[90])
    expected = each(df, lambda part: rbfdiffnet.RBFDiffNet("D", **settings).forecast(part, H))
    np.testing.assert_allclose(forecast["ours"], expected[NAME], rtol=1e-12)
    assert (forecast["ours-lo-90"] <= forecast["ours"]).all()
    assert (forecast["ours-hi-90"] >= forecast["ours"]).all()


@BOTH
def test_inputs(settings):
    df = panel(INPUTS)
    train = df.groupby("unique_id").head(60 - H)
    ahead = df.groupby("unique_id").tail(H).drop(columns="y")
    model = rbfdiffnet.RBFDiffNet("D", **settings)

    def alone(part):
        own = ahead[ahead["unique_id"] == part["unique_id"].iloc[0]]
        return model.forecast(part, H, X_df=own)

    expected = each(train, alone)
    engine = StatsForecast([RBFDiffNet(7, **settings)], freq="D")
    same(engine.forecast(df=train, h=H, X_df=ahead), expected)
    same(engine.fit(train).predict(h=H, X_df=ahead), expected)
    bare = each(train.drop(columns=INPUTS), lambda part: model.forecast(part, H))
    assert not np.allclose(bare[NAME], expected[NAME])


@pytest.mark.parametrize(
    ("settings", "refit", "columns"),
    [
        (LOCAL, True, ()),
        (LOCAL, False, ()),
        (LOCAL, 2, INPUTS),
        (LOCAL, False, INPUTS),
        pytest.param({}, True, (), marks=pytest.mark.slow),
        pytest.param({}, False, INPUTS, marks=pytest.mark.slow),
    ],
)
def test_cross_validation(settings, refit, columns):
    df = panel(columns)
    models = [AutoETS(season_length=7, model="ZNA"), RBFDiffNet(7, **settings)]
    arguments = {"h": H, "n_windows": 3, "step_size": 4, "level": [80], "refit": refit}
    found = StatsForecast(models, freq="D").cross_validation(df=df, **arguments)
    model = rbfdiffnet.RBFDiffNet("D", **settings)
    expected = each(df, lambda part: model.cross_validation(part, **arguments))
    assert list(found["cutoff"]) == list(expected["cutoff"])
    assert found["AutoETS"].notna().all()
    same(found, expected.drop(columns="cutoff"))


def test_two_seasons():
    y, settings = panel()["y"].to_numpy()[:60], {"season_length": [7, 28], "preset": "instant"}
    frame = pd.DataFrame({"unique_id": "a", "ds": np.arange(60), "y": y})
    expected = rbfdiffnet.RBFDiffNet(1, **settings).forecast(frame, H)[NAME]
    np.testing.assert_array_equal(RBFDiffNet(**settings).forecast(y, H)["mean"], expected)


def test_networks_stay_where_nothing_is_refitted():
    arguments = {"df": panel(), "h": H, "n_windows": 2, "input_size": 40}
    engine = StatsForecast([RBFDiffNet(7, **LOCAL)], freq="D")
    anew = engine.cross_validation(**arguments, refit=True)
    kept = engine.cross_validation(**arguments, refit=False)
    first = kept["cutoff"] == kept["cutoff"].min()
    np.testing.assert_allclose(kept[NAME][first], anew[NAME][first], rtol=1e-12)
    assert not np.allclose(kept[NAME][~first], anew[NAME][~first])
    y = panel()["y"].to_numpy()[:60]
    model = RBFDiffNet(7, **LOCAL).fit(y[10:50])
    whole = rbfdiffnet.RBFDiffNet(1, season_length=7, **LOCAL)
    frame = pd.DataFrame({"unique_id": "a", "ds": np.arange(60), "y": y})
    expected = whole.fit(frame[10:50]).update(frame[50:55]).predict(H)[NAME]
    # Of the overlap only what is new counts, and a model can move on again from where it was.
    np.testing.assert_array_equal(model.forward(y[15:55], H)["mean"], expected)
    np.testing.assert_array_equal(model.forward(y[10:55], H)["mean"], expected)
    np.testing.assert_array_equal(model.forward(y[20:50], H)["mean"], model.predict(H)["mean"])
    other = model.forward(y[:30] * 3.0, H)["mean"]
    assert np.all(np.isfinite(other))
    assert other.mean() > 1.5 * y.mean()


def test_fitted_values():
    df = panel()
    engine = StatsForecast([RBFDiffNet(7, **LOCAL)], freq="D")
    engine.forecast(df=df, h=2, fitted=True, level=[50, 80])
    found = engine.forecast_fitted_values()
    native = rbfdiffnet.RBFDiffNet("D", **LOCAL).fit(df).fitted_values()
    known = found.dropna().reset_index(drop=True)
    assert len(found) == len(df)
    same(known[["unique_id", "ds", NAME]], native[["unique_id", "ds", NAME]])
    inside = known["y"].between(known[f"{NAME}-lo-80"], known[f"{NAME}-hi-80"])
    np.testing.assert_allclose(inside.groupby(known["unique_id"]).mean(), 0.8, atol=0.04)
    model = RBFDiffNet(7, **LOCAL).fit(df["y"][:60])
    own = model.predict_in_sample(level=[80])
    assert list(own) == ["fitted", "fitted-lo-80", "fitted-hi-80"]
    np.testing.assert_array_equal(own["fitted"], found[NAME][:60])
    longer = model.forward(df["y"][5:60], 1, fitted=True)
    np.testing.assert_array_equal(longer["fitted"], own["fitted"][5:])


def test_stacks_have_forecasts_but_no_fitted_values():
    df = panel()
    engine = StatsForecast([SeasonalNaive(7), RBFDiffNet(7)], freq="D")
    with pytest.warns(UserWarning, match='scope="local"') as warned:
        found = engine.forecast(df=df, h=2, level=[80], fitted=True)
    assert len(warned) == 1  # not for every series
    same(found, StatsForecast([SeasonalNaive(7), RBFDiffNet(7)], "D").forecast(2, df, level=[80]))
    fitted = engine.forecast_fitted_values()
    assert fitted[[NAME, f"{NAME}-lo-80", f"{NAME}-hi-80"]].isna().all(axis=None)
    assert fitted["SeasonalNaive"].notna().sum() == len(df) - 2 * 7
    with pytest.warns(UserWarning, match='scope="local"'):
        own = RBFDiffNet(7).fit(df["y"][:60]).predict_in_sample()
    assert own["fitted"].shape == (60,)


def test_the_report_says_where_errors_were_too_few():
    df = panel()
    engine = StatsForecast([SeasonalNaive(7), RBFDiffNet(7, **LOCAL)], freq="D").fit(df)
    engine.predict(h=H, level=[99])
    for model in engine.fitted_[:, 1]:
        assert model.model_.report_["problem"].tolist() == ["too few errors for the intervals"]


def test_order_of_levels():
    y = panel()["y"][:60]
    model = RBFDiffNet(7, **LOCAL)
    keys = ["mean", "lo-95", "lo-80", "lo-50.5", "hi-50.5", "hi-80", "hi-95"]
    assert list(model.forecast(y, 3, level=[80, 50.5, 95])) == keys
    assert list(model.fit(y).predict(3, level=[80, 50.5, 95])) == keys
    assert list(model.predict(3, level=[])) == ["mean"]


@BOTH
def test_pickle_and_copies(settings):
    y = panel()["y"][:60]
    model = RBFDiffNet(7, alias="ours", **settings).fit(y)
    copied = pickle.loads(pickle.dumps(model))
    assert repr(copied) == "ours"
    expected = model.predict(H)["mean"]
    np.testing.assert_array_equal(copied.predict(H)["mean"], expected)
    model.new().fit(y[:30])
    np.testing.assert_array_equal(model.predict(H)["mean"], expected)


def test_polars():
    df = panel()
    engine = StatsForecast([RBFDiffNet(7, **LOCAL)], freq="1d")
    found = engine.forecast(df=to_polars(df), h=H)
    expected = StatsForecast([RBFDiffNet(7, **LOCAL)], freq="D").forecast(df=df, h=H)
    np.testing.assert_array_equal(found[NAME], expected[NAME])


def test_short_and_constant_series_get_a_forecast():
    model = RBFDiffNet(7)
    short = model.forecast(np.array([2.0, 3.0]), 2)["mean"]
    assert ((short > 1.0) & (short < 5.0)).all()
    np.testing.assert_array_equal(model.fit(np.full(40, 5.0)).predict(2)["mean"], [5.0, 5.0])
    constant = RBFDiffNet(7, **LOCAL).forecast(np.full(40, 5.0), 2, fitted=True, level=[80])
    assert np.isnan(constant["fitted"]).all()


def test_settings_are_checked_at_once():
    with pytest.raises(ValueError, match="scope must be one of"):
        RBFDiffNet(7, scope="lokal")
    with pytest.raises(TypeError, match="scpoe"):
        RBFDiffNet(7, scpoe="local")


def test_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "statsforecast", None)
    monkeypatch.delitem(sys.modules, "rbfdiffnet.adapters.statsforecast")
    with pytest.raises(ImportError, match=r"statsforecast: pip install 'rbfdiffnet\[ecosystem\]'"):
        import rbfdiffnet.adapters.statsforecast  # noqa: F401
