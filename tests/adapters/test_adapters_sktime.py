"""sktime's own checks, and the numbers of `RBFDiffNet` on the same series."""

import inspect
import pickle
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from panels import make_panel
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.datasets import load_air_passengers

pytest.importorskip("sktime", reason="needs the extra [ecosystem]")
from sktime.utils.estimator_checks import check_estimator

from rbfdiffnet.adapters.sktime import RBFDiffNetForecaster

NAME = "RBFDiffNet"
LOCAL = {"scope": "local"}
BOTH = pytest.mark.parametrize(
    "parameters", [LOCAL, pytest.param({}, marks=pytest.mark.slow)], ids=str
)
AIR = load_air_passengers()
PANEL = make_panel("ab", n=60, columns=("price", "offer"))
H = 6


def series():
    return AIR.set_index("ds")["y"].asfreq("MS")


def native(df, freq, h=H, X_df=None, level=None, quantiles=None, **parameters):
    return RBFDiffNet(freq, **parameters).fit(df).predict(h, X_df, level, quantiles=quantiles)


def multiindex(df, columns=("y",)):
    return df.set_index(["unique_id", "ds"])[[*columns]]


def test_parameters_and_defaults_are_those_of_the_forecaster():
    wanted, found = (
        dict(inspect.signature(kind).parameters) for kind in (RBFDiffNet, RBFDiffNetForecaster)
    )
    for column in ("id_col", "time_col", "target_col"):
        wanted.pop(column)  # of frames, which sktime does not have
    assert list(found) == list(wanted)
    assert found.pop("freq").default is None  # an index knows it
    assert wanted.pop("freq").default is inspect.Parameter.empty
    assert found == wanted


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of sktime's own
def test_sktime_checks():
    passed = check_estimator(RBFDiffNetForecaster, raise_exceptions=True, verbose=False)
    assert set(passed.values()) == {"PASSED"}


@pytest.mark.parametrize("parameters", [LOCAL, {}, {"preset": "fast"}], ids=str)
def test_one_series(parameters):
    expected = native(AIR, "MS", level=[80, 95], quantiles=[0.5], **parameters)
    forecaster = RBFDiffNetForecaster(**parameters).fit(series())
    fh = np.arange(1, H + 1)
    forecast = forecaster.predict(fh)
    assert forecast.name == "y"
    assert forecast.index.equals(pd.DatetimeIndex(expected["ds"]))
    np.testing.assert_array_equal(forecast, expected[NAME])
    intervals = forecaster.predict_interval(fh, coverage=[0.8, 0.95])
    for share in (80, 95):
        for side, short in (("lower", "lo"), ("upper", "hi")):
            found = intervals["y", share / 100, side]
            np.testing.assert_array_equal(found, expected[f"{NAME}-{short}-{share}"])
    quantiles = forecaster.predict_quantiles(fh, alpha=[0.1, 0.5, 0.9])
    np.testing.assert_array_equal(quantiles["y", 0.1], expected[f"{NAME}-lo-80"])
    np.testing.assert_array_equal(quantiles["y", 0.5], expected[f"{NAME}-q-50"])
    np.testing.assert_array_equal(quantiles["y", 0.9], expected[f"{NAME}-hi-80"])


@pytest.mark.parametrize("kind", ["period", "range", "ends", "no freq"])
def test_kinds_of_index(kind):
    y = series()
    season = {"season_length": 12} if kind == "range" else {}
    y.index = {
        "period": y.index.to_period("M"),
        "range": pd.RangeIndex(5, 5 + len(y)),
        "ends": pd.date_range("1949-01-31", periods=len(y), freq="ME"),
        "no freq": pd.DatetimeIndex(list(y.index)),
    }[kind]
    forecast = RBFDiffNetForecaster(**LOCAL, **season).fit(y).predict([1, 3, 6])
    expected = native(AIR, "MS", **LOCAL)[NAME].to_numpy()
    np.testing.assert_array_equal(forecast, expected[[0, 2, 5]])
    assert forecast.index.dtype == y.index.dtype
    after = {
        "period": pd.Period("1961-01"),
        "range": 5 + len(y),
        "ends": pd.Timestamp("1961-01-31"),
        "no freq": pd.Timestamp("1961-01-01"),
    }
    assert forecast.index[0] == after[kind]


def test_two_seasons():
    settings = {"preset": "instant", "season_length": [12, 36]}
    forecaster = RBFDiffNetForecaster(**settings).clone()
    assert forecaster.get_params()["season_length"] == [12, 36]
    expected = native(AIR, "MS", h=3, **settings)[NAME]
    np.testing.assert_array_equal(forecaster.fit(series()).predict([1, 2, 3]), expected)
    assert not np.allclose(native(AIR, "MS", h=3, preset="instant")[NAME], expected)


def test_absolute_horizon():
    y = series()
    dates = pd.DatetimeIndex(["1961-03-01", "1961-06-01"])
    forecast = RBFDiffNetForecaster(**LOCAL).fit(y).predict(dates)
    np.testing.assert_array_equal(forecast, native(AIR, "MS", **LOCAL)[NAME].to_numpy()[[2, 5]])


@pytest.mark.parametrize("parameters", [LOCAL, {}, {"scope": "global", "lags": 7}], ids=str)
def test_panels_go_to_one_model(parameters):
    df = make_panel("cab", n=60)
    expected = native(df, "D", level=[80], **parameters).set_index(["unique_id", "ds"])
    forecaster = RBFDiffNetForecaster(**parameters).fit(
        multiindex(df.sort_values(["unique_id", "ds"]))
    )
    forecast = forecaster.predict([2, H])
    assert forecast.index.names == ["unique_id", "ds"]
    assert forecast.shape == (6, 1)
    np.testing.assert_allclose(forecast["y"], expected.loc[forecast.index, NAME], rtol=1e-12)
    intervals = forecaster.predict_interval([2, H], coverage=0.8)
    low = expected.loc[forecast.index, f"{NAME}-lo-80"]
    np.testing.assert_allclose(intervals["y", 0.8, "lower"], low, rtol=1e-12)


def test_hierarchies_and_wide_frames_hold_the_same_series():
    df = make_panel("ab", n=60)
    y = multiindex(df)
    deep = pd.concat({"shop": y}, names=["shop"])
    wide = df.pivot(index="ds", columns="unique_id", values="y").asfreq("D")
    fh = [1, 4]
    flat = RBFDiffNetForecaster().fit(y).predict(fh)
    nested = RBFDiffNetForecaster().fit(deep).predict(fh)
    assert nested.index.names == ["shop", "unique_id", "ds"]
    np.testing.assert_array_equal(nested, flat)
    columns = RBFDiffNetForecaster().fit(wide).predict(fh)
    np.testing.assert_array_equal(columns.to_numpy().T.ravel(), flat["y"])
    bands = RBFDiffNetForecaster().fit(wide).predict_interval(fh, coverage=[0.5, 0.8])
    expected = RBFDiffNetForecaster().fit(y).predict_interval(fh, coverage=[0.5, 0.8])
    for name in "ab":
        np.testing.assert_array_equal(bands[name], expected["y"].loc[name])


def test_series_that_end_earlier_are_forecast_up_to_the_horizon():
    df = make_panel("ab", n=60)
    short = df[(df["unique_id"] == "a") | (df["ds"] < "2023-02-25")]
    expected = native(short, "D", h=9, **LOCAL).set_index(["unique_id", "ds"])[NAME]
    forecast = RBFDiffNetForecaster(**LOCAL).fit(multiindex(short)).predict([1, 4])
    cutoff = df["ds"].max()
    for name in "ab":
        for step in (1, 4):
            key = name, cutoff + pd.Timedelta(days=step)
            assert forecast.loc[key, "y"] == expected.loc[key]


@pytest.mark.parametrize("parameters", [LOCAL, {}], ids=str)
def test_inputs(parameters):
    train = PANEL.groupby("unique_id").head(54)
    ahead = PANEL.groupby("unique_id").tail(6)
    columns = ["price", "offer"]
    X_df = ahead[["unique_id", "ds", *columns]]
    expected = native(train, "D", X_df=X_df, **parameters).set_index(["unique_id", "ds"])[NAME]
    forecaster = RBFDiffNetForecaster(**parameters)
    forecaster.fit(multiindex(train), multiindex(train, columns))
    X = multiindex(ahead, columns)
    forecast = forecaster.predict(range(1, 7), X)
    np.testing.assert_allclose(forecast["y"], expected.loc[forecast.index], rtol=1e-12)
    # Inputs of other steps do not matter: those in between may be missing, more may be there.
    wanted = forecast.index.get_level_values("ds").isin(ahead["ds"].iloc[[1, 4]])
    part = RBFDiffNetForecaster(**parameters)
    part.fit(multiindex(train), multiindex(train, columns))
    some = part.predict([2, 5], X[wanted])
    five = native(train, "D", 5, X_df.groupby("unique_id").head(5), **parameters)
    np.testing.assert_allclose(some["y"], five[NAME].iloc[[1, 4, 6, 9]], rtol=1e-12)
    np.testing.assert_array_equal(part.predict([2, 5], multiindex(PANEL, columns)), some)


def test_missing_inputs_are_named():
    one = PANEL[PANEL["unique_id"] == "a"].set_index("ds").asfreq("D")
    forecaster = RBFDiffNetForecaster(**LOCAL).fit(one["y"][:-3], one[["price"]][:-3])
    with pytest.raises(ValueError, match=r"price.*'y' on 2023-02-28"):
        forecaster.predict([1, 2], one[["price"]].iloc[-3:-2])


def test_missing_values_count_as_missing():
    y = series()
    y.iloc[[20, 70, 71]] = np.nan
    expected = native(AIR.assign(y=y.to_numpy()), "MS", **LOCAL)[NAME]
    forecast = RBFDiffNetForecaster(**LOCAL).fit(y).predict(np.arange(1, H + 1))
    np.testing.assert_array_equal(forecast, expected)


@pytest.mark.parametrize("refit", [True, False])
@BOTH
def test_updates(parameters, refit):
    y = series()
    model = RBFDiffNet("MS", **parameters).fit(AIR[:120]).update(AIR[120:], refit=refit)
    forecaster = RBFDiffNetForecaster(**parameters).fit(y[:120])
    forecaster.update(y[100:], update_params=refit)  # overlapping ones are known
    fh = np.arange(1, H + 1)
    np.testing.assert_array_equal(forecaster.predict(fh), model.predict(H)[NAME])
    if refit:
        anew = RBFDiffNetForecaster(**parameters).fit(y).predict(fh)
        np.testing.assert_array_equal(forecaster.predict(fh), anew)


@pytest.mark.parametrize("n", [118, 121])  # without and with newer values
@BOTH
def test_updates_revise_and_fill_in_what_is_known(parameters, n):
    y = series()[:121]
    first = y[:n].copy()
    first.iloc[[90, 110]] = np.nan, 2.0 * first.iloc[110]
    fh = np.arange(1, H + 1)
    forecaster = RBFDiffNetForecaster(**parameters).fit(first)
    before = forecaster.predict(fh)
    forecaster.update(y[85:n])
    expected = RBFDiffNetForecaster(**parameters).fit(y[:n]).predict(fh)
    np.testing.assert_array_equal(forecaster.predict(fh), expected)
    assert not np.allclose(before, expected)
    unknown = y[100:n].copy()
    unknown.iloc[:] = np.nan
    np.testing.assert_array_equal(forecaster.update(unknown).predict(fh), expected)


def test_networks_that_stay_forecast_from_revised_values():
    y = series()
    revised = AIR.assign(y=AIR["y"].where(AIR.index != 140, 300.0))
    forecaster = RBFDiffNetForecaster(**LOCAL).fit(y)
    before = forecaster.predict([1])
    forecaster.update(revised.set_index("ds")["y"].asfreq("MS")[138:], update_params=False)
    model = RBFDiffNet("MS", **LOCAL).fit(AIR)
    state = model.fitted_panel
    panel = model.options.read_panel(revised)
    model._fitted = replace(state, panel=panel, series=state.exogenous.series(panel))
    np.testing.assert_array_equal(forecaster.predict([1]), model.predict(1)[NAME])
    assert forecaster.predict([1]).item() != before.item()


def test_what_is_known_is_not_forecast():
    y = series()
    forecaster = RBFDiffNetForecaster(**LOCAL).fit(y).update(y[:-2])  # moves the cutoff back
    with pytest.raises(ValueError, match=r"1960-11-01 .* 'y' is known already"):
        forecaster.predict([1, 2, 3])


def test_revised_inputs():
    one = PANEL[PANEL["unique_id"] == "a"].set_index("ds").asfreq("D")
    X, y = one[["price", "offer"]], one["y"]
    wrong = X.copy()
    wrong.iloc[30, 0] *= 3.0
    wrong.iloc[31, 1] = wrong.iloc[0, 1]
    forecaster = RBFDiffNetForecaster(**LOCAL).fit(y[:50], wrong[:50]).update(y[25:54], X[25:54])
    expected = RBFDiffNetForecaster(**LOCAL).fit(y[:54], X[:54]).predict([1, 2], X[54:])
    np.testing.assert_allclose(forecaster.predict([1, 2], X[54:]), expected, rtol=1e-9)


def test_updates_by_a_single_row_of_an_index_without_freq():
    y = series().drop(pd.Timestamp("1950-03-01"))
    assert y.index.freq is None
    found = RBFDiffNetForecaster(**LOCAL).fit(y[:-1]).update(y[-1:]).predict([1, 2])
    np.testing.assert_array_equal(found, RBFDiffNetForecaster(**LOCAL).fit(y).predict([1, 2]))


@pytest.mark.parametrize("name", [None, "month"])
@pytest.mark.parametrize("period", [False, True])
def test_forecasts_have_the_name_of_the_index(name, period):
    y = series().rename_axis(name)
    y = y.to_period("M") if period else y
    forecaster = RBFDiffNetForecaster(**LOCAL).fit(y)
    for forecast in (forecaster.predict([1, 2]), forecaster.predict_interval([1, 2])):
        assert type(forecast.index) is type(y.index)
        assert forecast.index.names == [name]


def test_the_report_says_where_errors_were_too_few():
    forecaster = RBFDiffNetForecaster(**LOCAL).fit(series())
    forecaster.predict_interval([1, 2], coverage=0.99)
    assert "too few errors for the intervals" in list(forecaster.model_.report_["problem"])


def test_direct_strategy_knows_the_horizon_when_fitted():
    forecaster = RBFDiffNetForecaster(strategy="direct", lags=12)
    assert forecaster.get_tag("requires-fh-in-fit")
    forecast = forecaster.fit(series(), fh=np.arange(1, H + 1)).predict()
    expected = RBFDiffNet("MS", strategy="direct", lags=12).fit(AIR, h=H).predict(H)[NAME]
    np.testing.assert_array_equal(forecast, expected)


def test_in_sample_horizons_are_refused():
    forecaster = RBFDiffNetForecaster(**LOCAL).fit(series())
    with pytest.raises(NotImplementedError, match="in-sample"):
        forecaster.predict([-1, 0])


def test_files(tmp_path):
    fh = [1, 2, 3]
    forecaster = RBFDiffNetForecaster().fit(series())
    copied = pickle.loads(pickle.dumps(forecaster))
    np.testing.assert_array_equal(copied.predict(fh), forecaster.predict(fh))
    forecaster.save(str(tmp_path / "model"))
    from sktime.base import load

    loaded = load(str(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict(fh), forecaster.predict(fh))


def test_sktime_evaluates_it():
    from sktime.forecasting.model_evaluation import evaluate
    from sktime.split import ExpandingWindowSplitter

    cv = ExpandingWindowSplitter(fh=range(1, 13), initial_window=120, step_length=12)
    scores = evaluate(RBFDiffNetForecaster(**LOCAL), cv, series(), error_score="raise")
    folds = RBFDiffNet("MS", **LOCAL).cross_validation(AIR, h=12, n_windows=2)
    error = (folds["y"] - folds[NAME]).abs() / folds["y"].abs()
    expected = error.groupby(folds["cutoff"]).mean()
    found = scores["test_MeanAbsolutePercentageError"]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sktime", None)
    monkeypatch.delitem(sys.modules, "rbfdiffnet.adapters.sktime")
    with pytest.raises(ImportError, match=r"sktime: pip install 'rbfdiffnet\[ecosystem\]'"):
        import rbfdiffnet.adapters.sktime  # noqa: F401
