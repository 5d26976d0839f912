"""Forecasts: equal on all ways there, and what parameters do."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pandas.testing import assert_frame_equal
from sklearn.base import clone

from panels import (
    CONFIGURATIONS,
    EVENTS,
    KINDS,
    LEVELS,
    LOCAL,
    NAME,
    QUICK,
    STACKS,
    every_series,
    fill_future,
    forecast,
    future_of,
    make_panel,
    to_polars,
)
from rbfdiffnet import Event, RBFDiffNet, RBFDiffNetRegressor

EVERY = CONFIGURATIONS | STACKS


@pytest.mark.parametrize("name", [*KINDS, "paper", "lower", *STACKS])
def test_fit_and_predict_equals_forecast(name):
    parameters, columns = EVERY[name]
    df = make_panel(n=120, columns=columns)
    model = RBFDiffNet("D", **parameters).fit(df, h=6)
    X_df = future_of(model, 6, columns)
    expected = model.predict(6, X_df, level=[80, 95])
    assert list(expected) == ["unique_id", "ds", *LEVELS]
    assert_frame_equal(model.predict(6, X_df), expected, check_exact=True)  # the default levels
    found = RBFDiffNet("D", **parameters).forecast(df, 6, X_df, level=[95, 80])
    assert_frame_equal(found, expected, check_exact=True)
    if parameters.get("strategy") != "direct" and name not in STACKS:
        shorter = None if X_df is None else every_series(X_df, slice(4))
        assert_frame_equal(
            model.predict(4, shorter, level=None),
            every_series(expected, slice(4)).iloc[:, :3],
            check_exact=True,
        )


@pytest.mark.parametrize("name", [*KINDS, "default inputs"])
def test_libraries_threads_and_the_order_of_rows_do_not_matter(name):
    parameters, columns = EVERY[name]
    df = make_panel(n=70, columns=columns)
    model = RBFDiffNet("D", **parameters).fit(df, h=6)
    X_df = future_of(model, 6, columns)
    expected = forecast(df, 6, X_df, [80, 95], **parameters)
    threads = forecast(df, 6, X_df, [80, 95], n_jobs=2, **parameters)
    assert_frame_equal(threads, expected, check_exact=True)
    future = None if X_df is None else to_polars(X_df)
    polars = forecast(to_polars(df), 6, future, [80, 95], **parameters)
    assert isinstance(polars, pl.DataFrame)
    assert polars.columns == list(expected)
    assert polars["unique_id"].to_list() == expected["unique_id"].to_list()
    np.testing.assert_array_equal(polars["ds"].to_numpy(), expected["ds"].to_numpy())
    np.testing.assert_array_equal(polars[LEVELS].to_numpy(), expected[LEVELS].to_numpy())
    # Rows in any order; the series come in the order in which they appear.
    shuffled = df.sample(frac=1.0, random_state=1)
    future = None if X_df is None else X_df.sample(frac=1.0, random_state=2)
    found = forecast(shuffled, 6, future, [80, 95], **parameters)
    assert list(dict.fromkeys(found["unique_id"])) == list(dict.fromkeys(shuffled["unique_id"]))
    expected = expected.set_index(["unique_id", "ds"])
    found = found.set_index(["unique_id", "ds"]).loc[expected.index]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**40])
def test_units_do_not_matter_where_there_are_inputs(unit):
    """What else there is, tests/test_hardness.py tries."""
    parameters, columns = EVERY["inputs"]
    df = make_panel(n=100, columns=columns)
    X_df = future_of(RBFDiffNet("D", **parameters).fit(df), 5, columns)
    expected = unit * forecast(df, 5, X_df, [80], **parameters)[LEVELS[:3]]
    scaled = df.assign(y=df["y"] * unit)
    found = forecast(scaled, 5, X_df, [80], **parameters)[LEVELS[:3]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "int64", "Int64", "int8"])
def test_numbers_of_any_type(dtype):
    df = make_panel("a", n=80).assign(y=lambda d: d["y"].round())
    expected = forecast(df, level=[80], **QUICK)
    found = forecast(df.astype({"y": dtype}), level=[80], **QUICK)
    assert_frame_equal(found, expected, check_exact=True)


def test_other_column_names():
    df = make_panel("ba", n=80, columns=["price"])
    names = {"unique_id": "shop", "ds": "day", "y": "sales"}
    future = fill_future(RBFDiffNet("D").fit(df).make_future_frame(5), RBFDiffNet("D"), ["price"])
    expected = forecast(df, 5, future, [80])
    found = forecast(
        df.rename(columns=names),
        5,
        future.rename(columns=names),
        [80],
        id_col="shop",
        time_col="day",
        target_col="sales",
    )
    assert_frame_equal(found, expected.rename(columns=names), check_exact=True)


@pytest.mark.parametrize(
    ("dates", "freq", "following"),
    [
        (np.arange(60), 1, [60, 61]),
        (np.arange(60, dtype="int32") * 5, 5, [300, 305]),
        (pd.date_range("2024-01-31", periods=60, freq="ME"), "ME", ["2029-01-31", "2029-02-28"]),
        (
            pd.date_range("2024-01-01", periods=60, freq="h"),
            "1h",
            ["2024-01-03T12", "2024-01-03T13"],
        ),
        (pd.date_range("2024-01-01", periods=60, unit="s"), "D", ["2024-03-01", "2024-03-02"]),
        (
            pd.date_range("2024-01-31", periods=60, tz="Europe/Berlin"),
            "D",
            ["2024-03-30T23:00", "2024-03-31T22:00"],
        ),
        (
            pd.date_range("2024-01-10", periods=60, tz="America/New_York"),
            "D",
            ["2024-03-10T05:00", "2024-03-11T04:00"],
        ),
    ],
    ids=["integers", "int32", "month ends", "hours", "seconds", "zone", "zone in America"],
)
def test_dates_go_on_in_their_own_type(dates, freq, following):
    df = pd.DataFrame({"unique_id": "a", "ds": dates, "y": make_panel("a", n=60)["y"]})
    found = forecast(df, 2, freq=freq, **QUICK)
    assert found["ds"].dtype == df["ds"].dtype
    expected = np.array(following, dtype="M8[ns]" if isinstance(following[0], str) else None)
    dates = found["ds"]
    if getattr(dates.dtype, "tz", None) is not None:
        dates = dates.dt.tz_convert("UTC").dt.tz_localize(None)
    np.testing.assert_array_equal(dates.to_numpy(), expected)


EVERY_SCOPE = [{}, {"preset": "instant"}, QUICK, {"scope": "local"}, {"scope": "global"}]


@pytest.mark.parametrize("parameters", [*EVERY_SCOPE, {"preset": "paper"}], ids=str)
def test_rows_before_the_first_value_are_no_rows(parameters):
    df = make_panel("ab", n=60, columns=["price"])
    early = df.assign(ds=df["ds"] - pd.Timedelta("60D"), y=np.nan, price=99.0)
    longer = pd.concat([early[early["unique_id"] == "b"], df])
    expected, found = (RBFDiffNet("D", **parameters).fit(rows) for rows in (df, longer))
    future = expected.make_future_frame(3).assign(price=2.0)
    ends = found.predict(3, future).sort_values(["unique_id", "ds"]).reset_index(drop=True)
    assert_frame_equal(ends, expected.predict(3, future).sort_values(["unique_id", "ds"]))
    assert not any("missing" in problem for problem in found.report_["problem"])


@pytest.mark.parametrize("parameters", EVERY_SCOPE, ids=str)
def test_one_date_in_the_far_future_goes_and_its_series_stays(parameters):
    df = make_panel("ab", n=60)
    stray = pd.DataFrame({"unique_id": ["b"], "ds": [pd.Timestamp("2124-01-01")], "y": [60.0]})
    model = RBFDiffNet("D", **parameters)
    expected = model.forecast(df, 3)
    assert_frame_equal(model.forecast(pd.concat([df, stray]), 3), expected, check_exact=True)
    line = ["b", "1 much too late date, first 2124-01-01", "ignored"]
    assert line in model.report_.to_numpy().tolist()


@pytest.mark.parametrize(
    "parameters",
    [
        {"lags": [1, 2, 7], "past_exog": ["visitors"], "transforms": ["log1p"]},
        {"season_length": [7, 364], "events": [Event("fair", ["2023-02-10"])]},
        {"hierarchy": ["state", "store"], "calendar": ["month"]},
        {"regressor": RBFDiffNetRegressor(order=1)},
    ],
)
def test_scikit_learn_clones_a_forecaster(parameters):
    model = RBFDiffNet("D", **parameters)
    copy = clone(model)
    assert copy is not model
    mine, theirs = model.get_params(), copy.get_params()
    assert mine.pop("regressor").__class__ is theirs.pop("regressor").__class__
    assert mine == theirs
    assert copy.set_params(freq="h").freq == "h"
    assert model.freq == "D"


def test_a_clone_is_not_fitted_and_forecasts_the_same():
    df = make_panel("ab", n=60)
    model = RBFDiffNet("D", **QUICK).fit(df)
    copy = clone(model)
    with pytest.raises(RuntimeError, match="not fitted"):
        copy.predict(1)
    assert_frame_equal(copy.fit(df).predict(2), model.predict(2), check_exact=True)


def test_arguments_that_act_on_fitting_ask_for_a_new_fit(tmp_path):
    df = make_panel("ab", n=60)
    model = RBFDiffNet("D", **QUICK).fit(df)
    expected = model.predict(2)
    model.set_params(upper=1e9, n_jobs=2)
    assert_frame_equal(model.predict(2), expected)
    model.set_params(lags=5)
    for call in (
        lambda: model.predict(2),
        lambda: model.save(tmp_path / "model"),
        lambda: model.report_,
    ):
        with pytest.raises(RuntimeError, match=r"call fit\(df\) first"):
            call()
    model.fit(df).save(tmp_path / "model")
    assert_frame_equal(RBFDiffNet.load(tmp_path / "model").predict(2), model.predict(2))


@pytest.mark.parametrize(
    "columns",
    [
        {"past_exog": ["price", "price"]},
        {"static_exog": ["price", "price"]},
        {"past_exog": ["price"], "static_exog": ["price"]},
    ],
)
def test_an_input_has_one_role(columns):
    with pytest.raises(ValueError, match="'price' is named more than once"):
        RBFDiffNet("D", **columns)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_an_empty_report_has_columns_of_text(library):
    df = make_panel("a", n=60)
    df = pytest.importorskip("polars").from_pandas(df) if library == "polars" else df
    report = RBFDiffNet("D", **QUICK).fit(df).report_
    assert len(report) == 0
    for name in ("problem", "action"):
        assert str(report[name].dtype) == ("String" if library == "polars" else "object")


def test_ids_keep_their_type():
    df = make_panel("ba", n=60)
    for ids in (
        df["unique_id"].map({"a": 1, "b": 2}),
        df["unique_id"].astype("category"),
        df["unique_id"].astype("string"),
    ):
        found = forecast(df.assign(unique_id=ids), 1, **QUICK)
        assert found["unique_id"].dtype == ids.dtype
        assert found["unique_id"].to_list() == ids.unique().tolist()


def test_lags_as_a_number_or_a_list():
    df = make_panel("ab", n=80)
    by_number = forecast(df, lags=3)
    assert_frame_equal(forecast(df, lags=[3, 1, 2, 2]), by_number, check_exact=True)
    assert_frame_equal(forecast(df, lags=np.arange(1, 4)), by_number, check_exact=True)
    assert not np.array_equal(forecast(df, lags=[1, 7])[NAME], by_number[NAME])


@pytest.mark.parametrize("scope", [None, "local"])
@pytest.mark.parametrize("preset", ["default", "paper", "fast", "best"])
def test_presets_beat_the_mean(preset, scope):
    df = make_panel("a", n=150)
    found = RBFDiffNet("D", preset=preset, scope=scope).cross_validation(df, 7, n_windows=2)
    error = np.abs(found[NAME] - found["y"]).mean()
    assert error < 0.5 * np.abs(df["y"] - df["y"].mean()).mean()


def test_the_direct_strategy_knows_its_horizon():
    df = make_panel("a", n=120)
    with pytest.raises(ValueError, match=r"fit\(df, h="):
        RBFDiffNet("D", strategy="direct").fit(df)
    model = RBFDiffNet("D", strategy="direct").fit(df, h=4)
    # Shorter horizons are the first steps, longer ones go on block by block.
    np.testing.assert_allclose(model.predict(2)[NAME], model.predict(9)[NAME][:2], rtol=1e-12)
    assert np.isfinite(model.predict(9, level=[80])[LEVELS[:3]]).all(axis=None)


@pytest.mark.parametrize(
    "asked",
    [
        {"preset": "paper"},
        {"preset": "fast"},
        {"preset": "fast", "device": "cuda"},
        {"lags": 3},
        {"lags": np.arange(1, 4)},
        {"strategy": "direct"},
        {"transforms": None},
        {"transforms": ["log1p"]},
        {"regressor": RBFDiffNetRegressor()},
        {"noise": "auto"},
        {"noise": 0.0},
    ],
    ids=str,
)
def test_what_only_networks_of_single_series_have_is_local(asked):
    model = RBFDiffNet("D", **asked)
    assert (model.scope, model.options.chosen_scope) == (None, "local")
    for scope in ("local", "global"):
        if not {"noise", "device"} & set(asked):
            assert RBFDiffNet("D", scope=scope, **asked).options.chosen_scope == scope


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"preset": "best"},
        {"calendar": "auto", "events": EVENTS, "holidays": "US"},
        {"lower": 0, "outliers": False, "season_length": 7, "n_jobs": 2, "static_exog": "size"},
        {"lags": "auto", "strategy": "recursive", "transforms": "auto", "noise": None},
        {"past_exog": "visitors"},
    ],
    ids=str,
)
def test_all_else_is_the_stack(asked):
    model = RBFDiffNet("D", **asked)
    assert (model.scope, model.options.chosen_scope) == (None, "auto")


def test_the_default_is_the_scope_it_stands_for():
    df = make_panel("ab", n=60)
    for asked, scope in (({}, "auto"), ({"preset": "best"}, "auto"), ({"lags": 3}, "local")):
        expected = forecast(df, level=[80], scope=scope, **asked)
        assert_frame_equal(forecast(df, level=[80], **asked), expected, check_exact=True)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"preset": "quick"}, "preset must be one of default"),
        ({"scope": "both"}, "scope must be one of auto, local, global"),
        ({"strategy": "both"}, "strategy must be"),
        ({"errors": "ignore"}, "errors must be"),
        ({"device": "tpu"}, "device must be"),
        ({"lags": 0}, "lags must be a positive integer"),
        ({"lags": "many"}, "lags must be 'auto'"),
        ({"lags": []}, "lags must be"),
        ({"lags": [0, 1]}, "lags must be"),
        ({"lags": [1.5]}, "lags must be"),
        ({"lags": 1.5}, "lags must be"),
        ({"regressor": "ridge"}, "regressor must be"),
        ({"regressor": RBFDiffNetRegressor(noise="auto")}, "give noise to RBFDiffNet itself"),
        ({"season_length": 0}, "season_length must be a positive integer"),
        ({"season_length": 7.5}, "season_length must be a positive integer"),
        *(
            ({"season_length": wrong}, "season_length must be a positive integer")
            for wrong in ([], [7, 7], [336, 48], [7, 28, 364], [7, 0], [7.5, 30], ["7"], "7", [[7]])
        ),
        ({"season_length": [7, 10**7]}, "season_length must be at most"),
        ({"season_length": [7, 28], "scope": "local"}, "networks that are fitted know one season"),
        ({"season_length": [7, 28], "preset": "fast"}, "networks that are fitted know one season"),
        ({"season_length": [7, 28], "lags": 9}, "networks that are fitted know one season"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"lower": np.nan}, "lower must be a finite number"),
        ({"lower": "0"}, "lower must be a finite number"),
        ({"transforms": ["sqrt"]}, "Unknown transform 'sqrt'"),
        ({"transforms": "adf"}, "transforms must be 'auto'"),
        ({"transforms": ["difference", "log1p"]}, "'log1p' comes first"),
        ({"events": ["x"]}, r"events must be a list of rbfdiffnet\.Event"),
        ({"events": "x"}, r"events must be a list of rbfdiffnet\.Event"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        RBFDiffNet("D", **parameters)


@pytest.mark.parametrize("parameters", [{}, QUICK])
def test_bad_arguments_are_named(parameters):
    df = make_panel("a", n=60)
    model = RBFDiffNet("D", **parameters).fit(df)
    for h in (0, -1, 2.5, True, None):
        with pytest.raises(ValueError, match="h must be a positive integer"):
            model.predict(h)
    for arguments in ({"n_windows": 0}, {"step_size": 0}, {"h": 0}, {"refit": 0}):
        with pytest.raises(ValueError, match="must be a positive integer"):
            model.cross_validation(df, **{"h": 2, **arguments})
    for level in ([0], [100], [80, -5], [np.nan], [0.8], 0.95):
        with pytest.raises(ValueError, match=r"percentages from 1 to 99\.9998, such as 80"):
            model.predict(2, level=level)
        with pytest.raises(ValueError, match=r"percentages from 1 to 99\.9998, such as 80"):
            model.cross_validation(df, 2, level=level)
    for same in ({"level": [80, 80.000000001]}, {"quantiles": [0.1, 0.1000000001]}):
        with pytest.raises(ValueError, match="which are the same to 8 decimals; leave one out"):
            model.predict(2, **same)
    names = model.predict(2, level=[80, 80, 80.0000001, 99.9998]).columns[3:].tolist()
    labels = ("80", "80.0000001", "99.9998")
    assert names == [f"{NAME}-{end}-{label}" for label in labels for end in ("lo", "hi")]
    with pytest.raises(ValueError, match="no series 'z'"):
        model.explain(ids=["z"])
    with pytest.raises(ValueError, match="does not fit"):
        RBFDiffNet("h").fit(df.assign(ds=df["ds"] + pd.to_timedelta(df.index * 7, "min")))
    with pytest.raises(TypeError, match="data frame"):
        RBFDiffNet("D").fit(df["y"].to_numpy())
    with pytest.raises(ValueError, match="no column 'y'"):
        RBFDiffNet("D").fit(df.drop(columns="y"))
    with pytest.raises(TypeError, match="'y' must hold numbers"):
        RBFDiffNet("D").fit(df.assign(y="much"))
    with pytest.raises(ValueError, match="freq"):
        RBFDiffNet("every now and then").fit(df)


@pytest.mark.parametrize(
    "call",
    [
        lambda model: model.predict(2),
        lambda model: model.fitted_values(),
        lambda model: model.make_future_frame(2),
        lambda model: model.explain(),
        lambda model: model.equation(),
        lambda model: model.report_,
        lambda model: model.plot(),
        lambda model: model.plot_equation("a"),
    ],
)
def test_a_model_must_be_fitted_first(call):
    for scope in (None, "local"):
        with pytest.raises(RuntimeError, match=re.escape("call fit(df) first")):
            call(RBFDiffNet("D", scope=scope))


@pytest.mark.parametrize("parameters", [{}, QUICK])
def test_forecast_keeps_no_model(parameters):
    df = make_panel("a", n=60)
    model = RBFDiffNet("D", **parameters)
    model.forecast(df, 2)
    with pytest.raises(RuntimeError, match="not fitted"):
        model.predict(2)
    before = model.fit(df).predict(2)
    model.forecast(df.head(40), 2)
    assert_frame_equal(model.predict(2), before)


@pytest.mark.parametrize("parameters", [{}, QUICK])
def test_the_frame_is_left_as_it_is(parameters):
    df = make_panel("ab", n=60, columns=["price"]).sample(frac=1.0, random_state=0)
    df.iloc[5, 2] = np.inf
    before = df.copy()
    model = RBFDiffNet("D", **parameters).fit(df)
    X_df = future_of(model, 3, ["price"])
    future = X_df.copy()
    model.predict(3, X_df, level=[80])
    assert_frame_equal(df, before)
    assert_frame_equal(X_df, future)


@pytest.mark.slow
def test_intervals_cover_what_they_promise():
    df = make_panel([f"s{i}" for i in range(30)], n=150, seed=9)
    found = RBFDiffNet("D", preset="fast").cross_validation(df, 7, n_windows=3, level=[80])
    inside = found["y"].between(found[f"{NAME}-lo-80"], found[f"{NAME}-hi-80"])
    assert 0.72 < inside.mean() < 0.92


def test_intervals_contain_the_forecast():
    df = make_panel("ab", n=90)
    df.loc[df.index[-25:], "y"] += 30.0  # a level the calibrated model was not fitted to
    for parameters in ({}, LOCAL, {"scope": "global"}):
        model = RBFDiffNet("D", **parameters).fit(df)
        found = model.predict(14, level=[1, 50, 95])
        for label in ("1", "50", "95"):
            assert (found[f"{NAME}-lo-{label}"] <= found[NAME]).all()
            assert (found[NAME] <= found[f"{NAME}-hi-{label}"]).all()


def test_intervals_of_intermittent_series_cover():
    rng = np.random.default_rng(0)
    y = np.where(rng.random((100, 307)) < 0.1, rng.poisson(3, (100, 307)), 0)
    df = make_panel([f"s{i}" for i in range(100)], n=307).assign(y=y.ravel())
    found = RBFDiffNet("D", preset="fast", lower=0).cross_validation(df, 7, level=[80])
    inside = found["y"].between(found[f"{NAME}-lo-80"], found[f"{NAME}-hi-80"])
    assert 0.75 < inside.mean() < 0.95


@pytest.mark.parametrize("polars", [False, True])
def test_plot_takes_forecasts_and_says_what_it_needs(polars):
    df = make_panel("ab", n=40)
    df = pl.from_pandas(df) if polars else df
    model = RBFDiffNet("D", preset="instant").fit(df)
    drawn, same = (model.plot(own, level=[80]) for own in (model.predict(5, level=[80]), 5))
    for ax, other in zip(drawn.axes, same.axes, strict=True):
        for line, own in zip(ax.lines, other.lines, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), own.get_ydata())
    for wrong in (df, df.head(0), model.predict(5).head(3)):
        with pytest.raises(ValueError, match=r"plot draws h steps ahead, plot\(12\)"):
            model.plot(wrong)
    with pytest.raises(ValueError, match="h must be a positive integer; got a DataFrame"):
        model.predict(df)


def test_a_frame_without_ids_is_told_to_add_some():
    df = make_panel("a", n=40).drop(columns="unique_id")
    with pytest.raises(ValueError, match="for one series, add a column 'unique_id' with the same"):
        RBFDiffNet("D").fit(df)


def test_plot_draws_a_fan():
    pytest.importorskip("matplotlib")
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    df = make_panel("abcdef", n=60)
    figure = RBFDiffNet("D", **QUICK).fit(df).plot(5, level=[80, 95])
    assert len(figure.axes) == 4
    assert [len(ax.collections) for ax in figure.axes] == [2] * 4
    plt.close(figure)


def test_the_fast_preset_shares_a_network_like_the_others():
    model = RBFDiffNet("D", preset="fast", scope="global").fit(make_panel())
    assert np.all(np.isfinite(model.predict(7, level=None)["RBFDiffNet"]))
    assert not model._fitted.model.plan.fast
