import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pandas.testing import assert_frame_equal

from panels import CONFIGURATIONS, fill_future, future_of, make_panel, to_polars
from rbfdiffnet import RBFDiffNet, RBFDiffNetRegressor
from rbfdiffnet.calendar_inputs import Event

NAME = "RBFDiffNet"
QUICK = {"preset": "fast", "lags": 7}
LEVELS = [f"{NAME}{end}" for end in ("", "-lo-80", "-hi-80", "-lo-95", "-hi-95")]


def every_series(df, keep):
    """The rows of each series that a slice of its steps keeps."""
    parts = [group.iloc[keep] for _, group in df.groupby("unique_id", sort=False)]
    return pd.concat(parts, ignore_index=True)


def last_part(df, h, columns, model):
    """The last h rows of each series as X_df."""
    known = [c for c in columns if c not in (*model.past_exog, *model.static_exog)]
    return every_series(df, slice(-h, None))[["unique_id", "ds", *known]] if known else None


def forecast(df, h=5, X_df=None, level=None, freq="D", **parameters):
    return RBFDiffNet(freq, **parameters).forecast(df, h, X_df, level)


# Equivalent ways ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_fit_and_predict_equals_forecast(name):
    parameters, columns = CONFIGURATIONS[name]
    df = make_panel(n=120, columns=columns)
    model = RBFDiffNet("D", **parameters).fit(df, h=6)
    X_df = future_of(model, 6, columns)
    expected = model.predict(6, X_df, level=[80, 95])
    assert list(expected) == ["unique_id", "ds", *LEVELS]
    assert_frame_equal(model.predict(6, X_df), expected, check_exact=True)  # the default levels
    found = RBFDiffNet("D", **parameters).forecast(df, 6, X_df, level=[95, 80])
    assert_frame_equal(found, expected, check_exact=True)
    if parameters.get("strategy") != "direct":
        shorter = None if X_df is None else every_series(X_df, slice(4))
        assert_frame_equal(
            model.predict(4, shorter, level=None),
            every_series(expected, slice(4)).iloc[:, :3],
            check_exact=True,
        )


@pytest.mark.parametrize("name", [name for name in CONFIGURATIONS if name != "paper"])
def test_libraries_threads_and_the_order_of_rows_do_not_matter(name):
    parameters, columns = CONFIGURATIONS[name]
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
@pytest.mark.parametrize("name", ["default", "fast", "global", "inputs"])
def test_units_do_not_matter(name, unit):
    parameters, columns = CONFIGURATIONS[name]
    df = make_panel(n=100, columns=columns)
    X_df = future_of(RBFDiffNet("D", **parameters).fit(df), 5, columns)
    expected = unit * forecast(df, 5, X_df, [80], **parameters)[LEVELS[:3]]
    scaled = df.assign(y=df["y"] * unit)
    found = forecast(scaled, 5, X_df, [80], **parameters)[LEVELS[:3]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_local_forecasts_do_not_depend_on_the_other_series():
    df = make_panel("bac", n=100)
    alone = forecast(df[df["unique_id"] == "a"])
    together = forecast(df)
    np.testing.assert_array_equal(alone[NAME], together.loc[together["unique_id"] == "a", NAME])


@pytest.mark.parametrize("dtype", ["float32", "int64", "Int64", "int8"])
def test_numbers_of_any_type(dtype):
    df = make_panel("a", n=80).assign(y=lambda d: d["y"].round())
    expected = forecast(df, level=[80])
    assert_frame_equal(forecast(df.astype({"y": dtype}), level=[80]), expected, check_exact=True)


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
    ],
    ids=["integers", "int32", "month ends", "hours", "seconds", "zone"],
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


# Looking inside -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_contributions_add_up_to_the_forecast(name):
    parameters, columns = CONFIGURATIONS[name]
    df = make_panel(n=120, columns=columns)
    df = pd.concat([df, df.head(4).assign(unique_id="short")])
    model = RBFDiffNet("D", **parameters).fit(df, h=4)
    X_df = future_of(model, 9, columns)
    terms = model.explain(9, X_df)
    total = terms.groupby(["unique_id", "ds"], sort=False)["contribution"].sum()
    expected = model.predict(9, X_df).set_index(["unique_id", "ds"])[NAME]
    np.testing.assert_allclose(total.loc[expected.index], expected, rtol=1e-9)
    parts = set(terms["part"])
    assert {"linear", "exemplar", "fallback"} <= parts or "global" in name or "every" in name
    assert ("effect" in parts) == bool(columns or "calendar" in parameters)
    assert not terms.duplicated(["unique_id", "ds", "part", "term"]).any()
    only = model.explain(9, X_df, ids=["c"])
    same = terms[terms["unique_id"] == "c"].reset_index(drop=True)
    assert_frame_equal(only, same)


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_contributions_add_up_in_any_unit(unit):
    df = make_panel("a", n=100).assign(y=lambda d: unit * d["y"])
    model = RBFDiffNet("D", lower=60.0 * unit).fit(df)
    terms = model.explain(7)
    total = terms.groupby("ds")["contribution"].sum()
    np.testing.assert_allclose(total, model.predict(7)[NAME], rtol=1e-9)
    assert set(terms["part"]) == {"history", "level", "bias", "linear", "exemplar", "bound"}


def test_linear_terms_are_value_times_weight():
    df = make_panel("a", n=120)
    model = RBFDiffNet("D", lags=[1, 2, 7]).fit(df)
    terms = model.explain(1)
    linear = terms[terms["part"] == "linear"].set_index("term")
    y = df["y"].to_numpy()
    assert linear.index.to_list() == ["lag 7", "lag 2", "lag 1"]
    np.testing.assert_allclose(linear["value"], y[[-7, -2, -1]], rtol=1e-12)
    exemplars = terms[terms["part"] == "exemplar"]
    assert exemplars["activation"].between(0.0, 1.0).all()
    dates = exemplars["nearest"].str.split(", ").explode()
    assert pd.to_datetime(dates).isin(df["ds"]).all()
    # Between steps, contributions change by weight times value relative to the level.
    terms = model.explain(3)
    level = terms.loc[terms["part"] == "level", "contribution"].to_numpy()
    for _, lag in terms[terms["part"] == "linear"].groupby("term"):
        change = np.diff(lag["weight"] * (lag["value"] - level))
        np.testing.assert_allclose(np.diff(lag["contribution"]), change, atol=1e-9)


def test_the_equation_has_a_coefficient_for_each_order_and_input():
    df = make_panel("ba", n=120)
    regressor = RBFDiffNetRegressor(n_centers=6, order=2, metric="standard")
    table = RBFDiffNet("D", lags=3, regressor=regressor).fit(df).equation()
    assert list(table) == ["unique_id", "order", "input", "coefficient"]
    one = table[table["unique_id"] == "a"]
    lags = ["lag 3", "lag 2", "lag 1"]
    assert one.loc[one["order"] > 0, "input"].to_list() == lags * 2
    assert np.isfinite(table["coefficient"]).all()
    only = RBFDiffNet("D", lags=3, regressor=regressor).fit(df).equation(ids=["a"])
    assert_frame_equal(only, one.reset_index(drop=True))


def test_one_series_may_be_named_by_itself():
    df = make_panel(["north", "south"], n=60)
    model = RBFDiffNet("D", **QUICK).fit(df)
    assert_frame_equal(model.explain(2, ids="south"), model.explain(2, ids=["south"]))
    assert_frame_equal(model.equation("north"), model.equation(["north"]))
    with pytest.raises(ValueError, match="no series 'east'"):
        model.explain(ids="east")
    numbered = RBFDiffNet("D", **QUICK).fit(df.assign(unique_id=np.repeat([7, 3], 60)))
    assert_frame_equal(numbered.equation("7"), numbered.equation([7]))


def test_plot_equation_draws_the_coefficients_of_one_series():
    pytest.importorskip("matplotlib")
    df = make_panel("ba", n=60)
    regressor = RBFDiffNetRegressor(n_centers=6, order=2)
    model = RBFDiffNet("D", lags=3, regressor=regressor).fit(df)
    ax = model.plot_equation("a")
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_array_equal(heights, model.equation(["a"])["coefficient"])
    assert model.plot_equation("b", ax) is ax
    numbered = RBFDiffNet("D", lags=3, regressor=regressor)
    numbered.fit(df.assign(unique_id=np.repeat([7, 3], 60)))
    assert len(numbered.plot_equation(3).patches) == len(heights)
    with pytest.raises(ValueError, match="no series 'z'"):
        model.plot_equation("z")


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_fitted_values_are_one_step_forecasts(name):
    parameters, columns = CONFIGURATIONS[name]
    df = make_panel(n=120, columns=columns)
    model = RBFDiffNet("D", **parameters).fit(every_series(df, slice(-1)), h=3)
    X_df = last_part(df, 1, columns, model)
    direct = parameters.get("strategy") == "direct"
    if direct and X_df is None:
        expected = every_series(model.predict(3), slice(1))
    else:
        expected = model.predict(1, X_df)
    fitted = model.update(every_series(df, slice(-1, None))).fitted_values()
    assert list(fitted) == ["unique_id", "ds", "y", NAME]
    last = every_series(fitted, slice(-1, None))
    np.testing.assert_array_equal(last["y"], every_series(df, slice(-1, None))["y"])
    assert last["ds"].to_list() == expected["ds"].to_list()
    np.testing.assert_allclose(last[NAME], expected[NAME], rtol=1e-9)
    assert (np.abs(fitted[NAME] - fitted["y"]) < 25.0).all()


def test_fitted_values_start_with_the_first_full_window():
    df = make_panel("ba", n=60)
    df = pd.concat([df, df.head(3).assign(unique_id="short")])
    fitted = RBFDiffNet("D", **QUICK, transforms=["difference"]).fit(df).fitted_values()
    assert fitted["unique_id"].to_list() == ["b"] * 52 + ["a"] * 52
    assert fitted["ds"].iloc[0] == df["ds"].iloc[8]


# New observations ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["default", "global", "direct", "differences", "past"])
def test_update_keeps_the_networks_and_moves_on(name):
    parameters, columns = CONFIGURATIONS[name]
    df = make_panel(n=130, columns=columns)
    model = RBFDiffNet("D", **parameters).fit(every_series(df, slice(-10)), h=5)
    model.update(every_series(df, slice(-10, -5)))
    X_df = last_part(df, 5, columns, model)
    found = model.predict(5, X_df, level=[80])
    # Another way to forecast later dates with the same networks.
    windows = RBFDiffNet("D", **parameters).cross_validation(
        df, 5, n_windows=2, level=[80], refit=False
    )
    expected = windows[windows["ds"].isin(found["ds"])]
    names = [NAME, f"{NAME}-lo-80", f"{NAME}-hi-80"]
    np.testing.assert_allclose(found[names], expected[names], rtol=1e-9)
    refitted = RBFDiffNet("D", **parameters).fit(every_series(df, slice(-5)), h=5).predict(5, X_df)
    assert not np.allclose(found[NAME], refitted[NAME], rtol=1e-6)
    model.update(every_series(df, slice(-5, None)), refit=True)
    anew = RBFDiffNet("D", **parameters).fit(df, h=5)
    X_df = future_of(anew, 5, columns)
    expected = anew.predict(5, X_df, level=[80])
    assert_frame_equal(model.predict(5, X_df, level=[80]), expected, check_exact=True)


def test_update_refuses_what_does_not_continue_the_series():
    df = make_panel("ab", n=60)
    model = RBFDiffNet("D", **QUICK).fit(df)
    before = model.predict(3)
    with pytest.raises(ValueError, match=r"'a'.*2023-03-01.*last known date"):
        model.update(every_series(df, slice(-1, None)))
    with pytest.raises(ValueError, match="'new' were not there"):
        model.update(make_panel(["new"], n=5, start="2023-03-02"))
    with pytest.raises(ValueError, match="no column 'y'"):
        model.update(make_panel("a", n=5, start="2023-03-02").drop(columns="y"))
    with pytest.raises(RuntimeError, match="fit"):
        RBFDiffNet("D").update(df)
    assert_frame_equal(model.predict(3), before)
    later = make_panel(["a", "new"], n=30, start="2023-03-02")
    found = model.update(later, refit=True).predict(1)
    assert found["unique_id"].to_list() == ["a", "b", "new"]
    assert found["ds"].dt.strftime("%m-%d").to_list() == ["04-01", "03-02", "04-01"]


def test_update_renews_the_report():
    df = make_panel("ab", n=60)
    model = RBFDiffNet("D", **QUICK).fit(df)
    model.predict(1)
    assert len(model.report_) == 0
    model.update(make_panel("a", n=9, start="2023-03-04"))
    assert model.report_["problem"].to_list() == ["2 missing dates, first 2023-03-02"]


def test_a_global_model_takes_on_new_series():
    df = make_panel("ab", n=90)
    model = RBFDiffNet("D", scope="global").fit(df)
    twin = df[df["unique_id"] == "a"].assign(unique_id="twin")
    expected = model.predict(5, level=[80])
    found = model.predict(5, new_df=twin)
    assert found["unique_id"].unique().tolist() == ["twin"]
    own = expected.loc[expected["unique_id"] == "a", NAME]
    np.testing.assert_allclose(found[NAME], own, rtol=1e-9)
    assert_frame_equal(model.predict(5, level=[80]), expected)
    bands = model.predict(5, new_df=twin.tail(30), level=[80])
    assert (bands[f"{NAME}-lo-80"] < bands[f"{NAME}-hi-80"]).all()
    # Those without anything to learn from get the fallback, and a line in the report.
    flat = twin.assign(unique_id="flat", y=3.0)
    assert len(model.report_) == 0
    assert (model.predict(5, new_df=flat)[NAME] == 3.0).all()
    assert model.report_["unique_id"].to_list() == ["flat"]
    assert model.report_["problem"].to_list() == ["all values are the same"]
    model.predict(5)
    assert len(model.report_) == 0
    grown = model.update(twin).predict(5)
    assert grown["unique_id"].unique().tolist() == ["a", "b", "twin"]
    np.testing.assert_allclose(grown[NAME].to_numpy()[-5:], own, rtol=1e-9)


def test_new_series_bring_their_inputs():
    parameters, columns = CONFIGURATIONS["everything"]
    df = make_panel(n=90, columns=columns)
    model = RBFDiffNet("D", **parameters).fit(df)
    X_df = future_of(model, 5, columns)
    twin, future = (
        frame[frame["unique_id"] == "c"].assign(unique_id="twin") for frame in (df, X_df)
    )
    expected = model.predict(5, X_df)
    assert_frame_equal(
        model.make_future_frame(5, new_df=twin),
        future[["unique_id", "ds"]].reset_index(drop=True),
    )
    found = model.predict(5, future, new_df=twin)
    np.testing.assert_allclose(
        found[NAME], expected.loc[expected["unique_id"] == "c", NAME], rtol=1e-9
    )
    with pytest.raises(ValueError, match="no column 'size'"):
        model.predict(5, future, new_df=twin.drop(columns="size"))
    with pytest.raises(ValueError, match="no row for series 'twin' on 2023-04-01"):
        model.predict(5, future.iloc[1:], new_df=twin)


def test_a_local_model_refuses_other_series():
    model = RBFDiffNet("D", **QUICK).fit(make_panel("a", n=60))
    with pytest.raises(ValueError, match="scope='global'"):
        model.predict(3, new_df=make_panel("b", n=60))
    with pytest.raises(ValueError, match="scope='global'"):
        model.make_future_frame(3, new_df=make_panel("b", n=60))


@pytest.mark.parametrize("new", ["text", "number", "fraction", "calendar", "static"])
@pytest.mark.parametrize("scope", ["local", "global"])
def test_cross_validation_does_not_look_into_the_test_window(scope, new):
    # The last window ends after 62 days: long enough for days of the month, but not without it.
    df = make_panel("ba", n=62, columns=["offer"]).assign(rate=lambda d: d.index % 3 * 1.0)
    df["y"] += 9.0 * (df["rate"] == 1.0)
    parameters, late = {"scope": scope}, df["ds"] > df["ds"].max() - pd.Timedelta(days=4)
    if new == "text":
        df.loc[late & (df.index % 2 == 0), "offer"] = "radio"
    elif new == "number":
        df.loc[late, "rate"] = 7.0
    elif new == "fraction":  # with it, the numbers would not be codes
        df.loc[late, "rate"] = 1.5
    elif new == "calendar":
        parameters["calendar"] = "auto"
    else:  # a series that begins in the window
        parameters["static_exog"] = ["size"]
        df = pd.concat([df, df[late].head(3).assign(unique_id="z")])
        df["size"] = df["unique_id"].map({"a": 1.5, "b": 2.0, "z": 3.25})
    found = RBFDiffNet("D", **parameters).cross_validation(df, 5, level=[80])
    model = RBFDiffNet("D", **parameters)
    window = df[df["ds"] > "2023-02-26"]
    X_df = window.loc[window["unique_id"] != "z", ["unique_id", "ds", "offer", "rate"]]
    expected = model.forecast(df[df["ds"] <= "2023-02-26"], 5, X_df, [80])
    assert_frame_equal(found[["unique_id", "ds"]], expected[["unique_id", "ds"]])
    np.testing.assert_allclose(found[LEVELS[:3]], expected[LEVELS[:3]], rtol=1e-9)


# Cross-validation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["default", "global", "direct", "inputs", "everything", "adf"])
def test_cross_validation_equals_forecasts_of_truncated_frames(name):
    parameters, columns = CONFIGURATIONS[name]
    parameters = {key: value for key, value in parameters.items() if key != "calendar"}
    df = make_panel("ba", n=100, columns=columns)
    model = RBFDiffNet("D", **parameters)
    found = model.cross_validation(df, 6, n_windows=3, step_size=4, level=[80])
    assert list(found) == ["unique_id", "ds", "cutoff", "y", *LEVELS[:3]]
    assert len(found) == 2 * 3 * 6
    for cut in (14, 10, 6):
        seen = every_series(df, slice(-cut))
        rows = every_series(df, slice(-cut, -cut + 6 or None))
        X_df = last_part(rows, 6, columns, model)
        expected = RBFDiffNet("D", **parameters).forecast(seen, 6, X_df, [80])
        part = found[found["cutoff"] == seen["ds"].max()].reset_index(drop=True)
        assert_frame_equal(part[["unique_id", "ds"]], expected[["unique_id", "ds"]])
        np.testing.assert_array_equal(part["y"], rows["y"])
        np.testing.assert_allclose(part[LEVELS[:3]], expected[LEVELS[:3]], rtol=1e-9)


def test_cross_validation_refits_as_often_as_asked():
    df = make_panel("ab", n=110)
    arguments = {"h": 4, "n_windows": 4, "step_size": 4}
    always, never, seldom, once = (
        RBFDiffNet("D", preset="fast").cross_validation(df, refit=refit, **arguments)
        for refit in (True, False, 2, 1)
    )
    assert_frame_equal(always, once)
    order = np.unique(always["cutoff"], return_inverse=True)[1]
    same = [
        [
            np.array_equal(other.loc[order == w, NAME], always.loc[order == w, NAME])
            for w in range(4)
        ]
        for other in (never, seldom)
    ]
    assert same == [[True, False, False, False], [True, False, True, False]]
    # What precedes a window is known to the models even where they are not fitted anew.
    model = RBFDiffNet("D", preset="fast").fit(every_series(df, slice(-8)))
    expected = model.update(every_series(df, slice(-8, -4))).predict(4)
    np.testing.assert_allclose(seldom.loc[order == 3, NAME], expected[NAME], rtol=1e-9)


def test_windows_without_a_past_are_left_out():
    df = make_panel("ab", n=60)
    df = pd.concat([df.head(7).assign(unique_id="short"), df.head(3).assign(unique_id="tiny"), df])
    model = RBFDiffNet("D", **QUICK)
    found = model.cross_validation(df, 3, n_windows=3, level=[80])
    counts = found.groupby("unique_id", sort=False).size()
    assert counts.to_dict() == {"short": 6, "a": 9, "b": 9}
    assert np.isfinite(found[LEVELS[:3]]).all(axis=None)
    assert "short" in model.report_["unique_id"].to_list()


def test_cross_validation_takes_numbers_and_polars():
    df = make_panel("ab", n=60).assign(ds=np.tile(np.arange(60), 2))
    pandas = RBFDiffNet(1, **QUICK).cross_validation(df, 3, n_windows=2)
    polars = RBFDiffNet(1, **QUICK).cross_validation(to_polars(df), 3, n_windows=2)
    assert polars.columns == list(pandas)
    assert (
        polars["cutoff"].to_list()
        == pandas["cutoff"].to_list()
        == [53] * 3 + [56] * 3 + [53] * 3 + [56] * 3
    )
    np.testing.assert_array_equal(polars[NAME].to_numpy(), pandas[NAME].to_numpy())


# Inputs known in the future -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_price():
    df = make_panel("ba", n=80, columns=["price", "offer"])
    model = RBFDiffNet("D", **QUICK).fit(df)
    return model, future_of(model, 3, ["price", "offer"])


def test_the_future_frame_has_the_rows_of_the_forecast(with_price):
    model, X_df = with_price
    empty = model.make_future_frame(3)
    found = model.predict(3, X_df)
    assert_frame_equal(empty, found[["unique_id", "ds"]])
    # In any order.
    assert_frame_equal(model.predict(3, X_df.iloc[::-1]), found, check_exact=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: None, r"price, offer.*make_future_frame"),
        (lambda x: x.drop(index=1), r"no row for series 'b' on 2023-03-23.*price"),
        (lambda x: pd.concat([x, x.tail(1)]), r"2 rows for series 'a' on 2023-03-24.*price"),
        (
            lambda x: x.assign(price=x["price"].where(x.index != 4)),
            r"'price' has no value for series 'a' on 2023-03-23",
        ),
        (
            lambda x: x.assign(price=x["price"].where(x.index != 4, np.inf)),
            r"'price' is infinite for series 'a' on 2023-03-23",
        ),
        (
            lambda x: pd.concat([x, x.tail(1).assign(ds=pd.Timestamp("2023-03-30"))]),
            r"not needed, series 'a' on 2023-03-30",
        ),
        (
            lambda x: pd.concat([x, x.tail(1).assign(ds=pd.Timestamp("2023-03-01"))]),
            r"not needed, series 'a' on 2023-03-01",
        ),
        (
            lambda x: pd.concat([x, x.tail(1).assign(unique_id="z")]),
            r"not needed, series 'z' on 2023-03-24",
        ),
        (lambda x: x.drop(columns="price"), r"no column 'price'"),
        (lambda x: x.assign(prize=1.0), r"a column 'prize' that was not there in training"),
        (lambda x: x.drop(columns="ds"), r"no column 'ds'"),
        (lambda x: x.assign(price="dear"), r"'price' held numbers in training and holds text now"),
        (lambda x: x.assign(ds=range(len(x))), r"'ds'.*int64"),
    ],
    ids=[
        "none",
        "missing row",
        "twice",
        "missing value",
        "infinite",
        "too late",
        "past",
        "unknown series",
        "no column",
        "unknown column",
        "no dates",
        "text",
        "integers",
    ],
)
def test_odd_future_values_are_named(with_price, change, message):
    model, X_df = with_price
    with pytest.raises(ValueError, match=message):
        model.predict(3, change(X_df))


def test_inputs_known_ahead_matter(with_price):
    model, X_df = with_price
    base = model.predict(3, X_df.assign(price=2.0, offer="none"))[NAME]
    dear = model.predict(3, X_df.assign(price=3.0, offer="none"))[NAME]
    flyer = model.predict(3, X_df.assign(price=2.0, offer="flyer"))[NAME]
    assert (dear - base).between(-6.0, -1.5).all()
    assert (flyer - base).between(9.0, 18.0).all()
    new = model.predict(3, X_df.assign(price=2.0, offer="never seen"))[NAME]
    assert np.isfinite(new).all()


def test_missing_inputs_in_the_past_are_named():
    df = make_panel("ba", n=60, columns=["price"])
    df.loc[70, "price"] = np.nan
    with pytest.raises(ValueError, match="'price' has no value for series 'a' on 2023-01-11"):
        RBFDiffNet("D").fit(df)
    df.loc[70, "price"] = np.inf
    with pytest.raises(ValueError, match="errors='fallback'"):
        RBFDiffNet("D", errors="raise").fit(df)
    # Where there is no target, nothing is learned from the input either.
    df.loc[70, ["y", "price"]] = np.nan
    assert np.isfinite(RBFDiffNet("D", **QUICK, past_exog=["price"]).forecast(df, 2)[NAME]).all()


def test_inputs_of_the_past_need_no_future():
    df = make_panel("ba", n=120)
    rng = np.random.default_rng(4)
    signal = rng.normal(size=len(df))
    # The signal says what happens on the next day.
    df = df.assign(signal=signal, y=df["y"] + 5.0 * np.roll(signal, 1))
    with_signal = RBFDiffNet("D", past_exog=["signal"]).cross_validation(df, 1, n_windows=10)
    without = RBFDiffNet("D").cross_validation(df.drop(columns="signal"), 1, n_windows=10)
    errors = [np.abs(frame[NAME] - frame["y"]).mean() for frame in (with_signal, without)]
    assert errors[0] < 0.6 * errors[1]


def test_static_inputs():
    df = make_panel("bac", n=80, columns=["region"])
    model = RBFDiffNet("D", scope="global", static_exog=["region"]).fit(df)
    found = model.predict(3)
    assert np.isfinite(found[NAME]).all()
    # Local models have no use for them.
    local = forecast(df, 3, static_exog=["region"])
    assert_frame_equal(local, forecast(df.drop(columns="region"), 3), check_exact=True)
    df.loc[5, "region"] = "east"
    with pytest.raises(ValueError, match=r"'region' is said to be static, but changes within.*'b'"):
        RBFDiffNet("D", scope="global", static_exog=["region"]).fit(df)
    for columns in ({"past_exog": ["wind"]}, {"static_exog": ["wind"]}):
        with pytest.raises(ValueError, match="'wind' is not in the frame"):
            RBFDiffNet("D", **columns).fit(df)


def test_unseen_amounts_follow_the_slope():
    parts = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        discount = rng.choice([0, 10, 20, 40], 300, p=[0.7, 0.1, 0.1, 0.1])
        y = 100.0 * (1.0 + discount / 50.0) + rng.normal(size=300)
        part = make_panel([f"s{seed}"], n=300).assign(y=y, discount=discount)
        parts.append(part)
    model = RBFDiffNet("D").fit(pd.concat(parts))
    X_df = model.make_future_frame(4)
    X_df["discount"] = np.tile([0, 40, 30, 50], 6)
    found = model.predict(4, X_df)[NAME].to_numpy().reshape(6, 4).mean(axis=0)
    # What was seen is known better than what was not.
    np.testing.assert_allclose(found[:2], [100.0, 180.0], rtol=0.01)
    assert found[2] == pytest.approx(160.0, rel=0.05)
    assert found[3] == pytest.approx(200.0, rel=0.06)


@pytest.mark.parametrize("days", [1, 3, 5])
def test_an_input_switched_on_a_few_times_keeps_its_effect(days):
    df = make_panel("a", n=150).assign(opening=0)
    on = [40, 80, 95, 110, 125][:days]
    df.loc[on, "opening"] = 1
    df.loc[on, "y"] += 200.0
    model = RBFDiffNet("D").fit(df)
    X_df = model.make_future_frame(3).assign(opening=0)
    closed = model.predict(3, X_df)[NAME]
    X_df.loc[1, "opening"] = 1
    difference = (model.predict(3, X_df)[NAME] - closed).to_numpy()
    # Few days say little, so their effect is taken for somewhat smaller.
    assert 120.0 < difference[1] < 220.0
    np.testing.assert_array_equal(difference[[0, 2]], 0.0)
    plain = forecast(make_panel("a", n=150), 3)[NAME]
    assert np.abs(closed - plain).max() < 6.0


@pytest.mark.parametrize("freq", ["W", "MS", "QS", "2D"])
def test_events_and_holidays_are_days(freq):
    df = make_panel("a", n=60, freq=freq)
    for parameters in ({"events": [Event("fair", ["2023-02-10"])]}, {"holidays": "US"}):
        with pytest.raises(ValueError, match="are days, but the dates here are further apart"):
            RBFDiffNet(freq, **parameters).fit(df)
        with pytest.raises(ValueError, match="are days, but the dates here are further apart"):
            RBFDiffNet(freq, **parameters).cross_validation(df, 2)


@pytest.mark.parametrize("freq", ["h", "D", "B"])
def test_events_of_days_and_hours(freq):
    df = make_panel("a", n=60, freq=freq)
    found = forecast(df, 3, freq=freq, events=[Event("fair", ["2023-01-02"])], **QUICK)
    assert np.isfinite(found[NAME]).all()


def test_calendar_needs_dates():
    df = make_panel("a", n=60).assign(ds=np.arange(60))
    for parameters in ({"calendar": "auto"}, {"events": [Event("x", ["2023-01-04"])]}):
        with pytest.raises(ValueError, match="need dates"):
            RBFDiffNet(1, **parameters).fit(df)
    with pytest.raises(ValueError, match="calendar must be"):
        RBFDiffNet("D", calendar="dayofweek").fit(make_panel("a", n=60))


def test_an_event_moves_its_days_only():
    df = make_panel("a", n=150)
    days = ["2023-01-20", "2023-02-21", "2023-03-25", "2023-04-29", "2023-06-02"]
    df.loc[df["ds"].isin(pd.to_datetime(days)), "y"] += 40.0
    plain = forecast(df, 7)
    found = forecast(df, 7, events=[Event("fair", days)])
    difference = (found[NAME] - plain[NAME]).to_numpy()
    assert found["ds"].iloc[3] == pd.Timestamp("2023-06-03")
    assert difference[2] > 25.0
    assert np.abs(np.delete(difference, 2)).max() < 6.0


def test_holidays():
    pytest.importorskip("holidays")
    df = make_panel("a", n=330)
    found = forecast(df, 5, holidays="US", **QUICK)
    assert np.isfinite(found[NAME]).all()


def test_days_around_holidays():
    pytest.importorskip("holidays")
    df = make_panel("a", n=3 * 365)
    fourth = (df["ds"].dt.month == 7) & (df["ds"].dt.day == 4)
    df.loc[fourth.shift(-2, fill_value=False), "y"] += 40.0  # two days before
    df.loc[fourth.shift(1, fill_value=False), "y"] -= 30.0  # the day after
    df = df[df["ds"] < "2025-07-01"]
    plain = forecast(df, 7, holidays="US", **QUICK)[NAME]
    found = forecast(df, 7, holidays="US", holiday_lead=2, holiday_lag=1, **QUICK)[NAME]
    difference = (found - plain).to_numpy()  # from the first to the seventh of July
    assert difference[1] > 20.0
    assert difference[4] < -15.0
    assert np.abs(np.delete(difference, [1, 4])).max() < 6.0
    for name in ("holiday_lead", "holiday_lag"):
        with pytest.raises(ValueError, match="Holidays"):
            RBFDiffNet("D", holidays="US", **{name: -1}).fit(df)


# Series without a network, bounds, outliers -------------------------------------------------------


def odd_panel():
    a = make_panel("a", n=60)
    return pd.concat(
        [
            a.head(3).assign(unique_id="short"),
            a.assign(unique_id="constant", y=4.0),
            a.assign(unique_id="zero", y=0.0),
            a.assign(unique_id="empty", y=np.nan),
            a.assign(unique_id="spike", y=a["y"].where(a.index != 40, 900.0)),
            a.assign(unique_id="spikes", y=a["y"].where(~a.index.isin([30, 50]), 900.0)),
            a.drop(index=[20, 21]).assign(unique_id="gap"),
            pd.concat([a, a.tail(1)]).assign(unique_id="twice"),
            a.assign(unique_id="infinite", y=a["y"].where(a.index != 9, -np.inf)),
            a,
        ]
    )


def test_the_report_has_a_line_for_everything_unusual():
    model = RBFDiffNet("D", **QUICK, outliers=True)
    found = model.forecast(odd_panel(), 2)
    report = model.report_
    assert list(report) == ["unique_id", "problem", "action"]
    lines = {row.unique_id: (row.problem, row.action) for row in report.itertuples()}
    fallback = "forecast by the last season, or the last value"
    assert lines == {
        "short": ("too short (known values: 3, needed: 8)", fallback),
        "constant": ("all values are the same", fallback),
        "zero": ("all values are zero", fallback),
        "empty": ("no values", "forecast 0"),
        "spike": ("1 outlier, first 2023-02-10", "treated as missing"),
        "spikes": ("2 outliers, first 2023-01-31", "treated as missing"),
        "gap": ("2 missing dates, first 2023-01-21", "treated as missing"),
        "twice": (
            "1 repeated date, first 2023-03-01",
            "identical rows counted once, others averaged",
        ),
        "infinite": ("1 infinite 'y' value, first 2023-01-10", "treated as missing"),
    }
    values = found.set_index("unique_id")[NAME]
    assert (values.loc["constant"] == 4.0).all()
    assert (values.loc[["zero", "empty"]] == 0.0).all()
    assert (values.loc["short"] == odd_panel()["y"].iloc[2]).all()
    np.testing.assert_array_equal(values.loc["twice"], values.loc["a"])
    assert_frame_equal(RBFDiffNet("D", **QUICK, outliers=True).fit(odd_panel()).report_, report)
    assert len(RBFDiffNet("D", **QUICK).fit(make_panel("a", n=60)).report_) == 0


def test_a_series_too_short_for_its_lags_gets_the_fallback():
    model = RBFDiffNet("D", lags=30)
    model.fit(make_panel("a", n=33))
    assert model.report_["problem"].item() == "too short for lag 30 (windows: 3, needed: 6)"
    y = make_panel("a", n=33)["y"].to_numpy()
    np.testing.assert_array_equal(model.predict(9)[NAME], [*y[-7:], *y[-7:-5]])


def test_a_panel_without_anything_to_learn_from():
    df = make_panel("ab", n=9).assign(y=[1.0] * 9 + [2.0] * 9)
    for scope in ("local", "global"):
        model = RBFDiffNet("D", scope=scope).fit(df)
        assert model.predict(2, level=[90])[NAME].to_list() == [1.0, 1.0, 2.0, 2.0]
        assert len(model.fitted_values()) == 0
        assert len(model.equation()) == 0
        assert set(model.explain(1)["part"]) == {"fallback"}


def test_intervals_with_too_few_errors_are_reported():
    model = RBFDiffNet("D", **QUICK).fit(make_panel("a", n=20))
    model.predict(2, level=[99])
    assert "too few errors for the intervals" in model.report_["problem"].to_list()


@pytest.mark.parametrize("name", ["short", "constant", "zero", "empty", "gap", "twice", "infinite"])
def test_odd_series_can_be_refused(name):
    df = odd_panel()
    df = df[df["unique_id"].isin(["a", name])]
    model = RBFDiffNet("D", **QUICK, errors="raise")
    with pytest.raises(ValueError, match=f"Series '{name}'.*errors='fallback'"):
        model.fit(df)
    assert len(model.forecast(df[df["unique_id"] == "a"], 2)) == 2


def test_a_lower_bound_holds_for_forecasts_and_intervals():
    rng = np.random.default_rng(2)
    df = make_panel("ab", n=100).assign(y=rng.poisson(0.4, 200).astype(float))
    free = forecast(df, 10, level=[80, 95])
    assert free[f"{NAME}-lo-95"].min() < 0.0
    bound = forecast(df, 10, level=[80, 95], lower=0)
    np.testing.assert_array_equal(bound[LEVELS], np.maximum(free[LEVELS], 0.0))
    model = RBFDiffNet("D", lower=0.5).fit(df)
    assert model.fitted_values()[NAME].min() >= 0.5
    assert model.cross_validation(df, 5, level=[80])[LEVELS[:3]].min(axis=None) >= 0.5


@pytest.mark.parametrize("days_ago", [1, 4, 7])
@pytest.mark.parametrize("value", [0.0, 1e3, 1e9, -400.0])
@pytest.mark.parametrize("parameters", [{}, {"scope": "global"}, {"calendar": "auto"}])
def test_a_closure_or_an_outlier_does_not_move_the_next_days(days_ago, value, parameters):
    df = make_panel("ab", n=200)
    clean = forecast(df, 7, **parameters)
    df.loc[200 - days_ago, "y"] = value
    spoiled = forecast(df, 7, **parameters)
    # The noise has standard deviation 1, the week an amplitude of 8, the level is 60.
    difference = np.abs(spoiled[NAME] - clean[NAME])
    assert difference.max() < 2.0
    assert difference.mean() < 0.75


def test_a_new_level_is_followed():
    df = make_panel("a", n=200)
    df.loc[df.index[-21:], "y"] += 60.0
    found = forecast(df, 7)[NAME]
    assert found.mean() > 100.0


@pytest.mark.parametrize("steps", [3, 5, 8, 12])
@pytest.mark.parametrize("size", [-60.0, 60.0])
@pytest.mark.parametrize(
    ("freq", "n"), [("W", 150), ("MS", 120), ("h", 190), ("D", 190), ("YS", 60)]
)
def test_the_latest_level_is_followed(freq, n, size, steps):
    rng = np.random.default_rng(1)
    walk = 200.0 + 0.3 * rng.normal(size=n).cumsum() + 0.5 * rng.normal(size=n)
    df = make_panel("a", n=n, start="1960-01-01", freq=freq)
    clean = RBFDiffNet(freq)
    before = clean.forecast(df.assign(y=walk), 4)[NAME].mean()
    assert len(clean.report_) == 0
    walk[-steps:] += size
    model = RBFDiffNet(freq)
    found = model.forecast(df.assign(y=walk), 4)
    assert found[NAME].mean() == pytest.approx(before + size, abs=0.25 * abs(size))
    if freq != "YS":  # where a season has no length, the edge of a level may look odd
        assert len(model.report_) == 0
        kept = RBFDiffNet(freq, outliers=False).forecast(df.assign(y=walk), 4)
        assert_frame_equal(found, kept, check_exact=True)


@pytest.mark.parametrize("scope", ["local", "global"])
def test_negative_values_have_no_logarithm(scope):
    df = make_panel("abc", n=60)
    df.loc[70, "y"] = -3.0
    model = RBFDiffNet("D", scope=scope, transforms=["log1p"], **QUICK)
    found = model.forecast(df, 7, level=[80]).set_index("unique_id")
    assert model.report_["unique_id"].to_list() == ["b"]
    assert model.report_["problem"].item() == ("log1p needs values that are not negative, found -3")
    assert model.report_["action"].item() == "forecast by the last season, or the last value"
    np.testing.assert_array_equal(found.loc["b", NAME], df["y"].iloc[113:120])
    others = forecast(
        df[df["unique_id"] != "b"], 7, scope=scope, transforms=["log1p"], **QUICK
    ).set_index("unique_id")
    for name in "ac":
        np.testing.assert_array_equal(found.loc[name, NAME], others.loc[name, NAME])
    with pytest.raises(ValueError, match=r"Series 'b' cannot be fitted: log1p"):
        RBFDiffNet("D", scope=scope, transforms=["log1p"], errors="raise", **QUICK).fit(df)


@pytest.mark.parametrize("seed", range(7))
def test_two_nearly_identical_series_share_a_network(seed):
    rng = np.random.default_rng(seed)
    t = np.arange(314)
    truth = 100.0 + 20.0 * np.sin(2 * np.pi * t / 7)
    first = truth[:300] + 4.0 * rng.normal(size=300)
    second = first + 0.1 * rng.normal(size=300)
    df = make_panel("ab", n=300).assign(y=np.concatenate([first, second]))
    found = forecast(df, 14, scope="global")
    error = np.abs(found[NAME].to_numpy().reshape(2, 14) - truth[300:])
    assert error.mean(axis=1).max() < 3.0


def test_a_shared_network_needs_eight_values_of_a_series():
    df = make_panel("ab", n=60)
    short, enough = (df.tail(n).assign(unique_id=str(n)) for n in (7, 8))
    model = RBFDiffNet("D", scope="global").fit(pd.concat([short, df, enough]))
    assert model.report_["unique_id"].to_list() == ["7"]
    assert model.report_["problem"].item() == "too short (known values: 7, needed: 8)"
    parts = model.explain(1).groupby("unique_id")["part"].unique()
    assert ["fallback" in parts[name] for name in ("7", "8", "a")] == [True, False, False]
    # Where that is all there is, each series says what it lacks.
    model.fit(pd.concat([short, df.head(9).assign(y=np.nan)]))
    assert model.report_["problem"].to_list() == [
        "too short (known values: 7, needed: 8)",
        "no values",
    ]
    assert model.report_["action"].to_list()[1] == "forecast 0"


# Parameters ---------------------------------------------------------------------------------------


def test_lags_as_a_number_or_a_list():
    df = make_panel("ab", n=80)
    by_number = forecast(df, lags=3)
    assert_frame_equal(forecast(df, lags=[3, 1, 2, 2]), by_number, check_exact=True)
    assert_frame_equal(forecast(df, lags=np.arange(1, 4)), by_number, check_exact=True)
    assert not np.array_equal(forecast(df, lags=[1, 7])[NAME], by_number[NAME])


@pytest.mark.parametrize("preset", ["default", "paper", "fast", "best"])
def test_presets_beat_the_mean(preset):
    df = make_panel("a", n=150)
    found = RBFDiffNet("D", preset=preset).cross_validation(df, 7, n_windows=2)
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
    ("parameters", "message"),
    [
        ({"preset": "quick"}, "preset must be one of default"),
        ({"scope": "both"}, "scope must be one of local, global"),
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
        ({"season_length": 0}, "season_length must be a positive integer"),
        ({"season_length": 7.5}, "season_length must be a positive integer"),
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


def test_bad_arguments_are_named():
    df = make_panel("a", n=60)
    model = RBFDiffNet("D", **QUICK).fit(df)
    for h in (0, -1, 2.5, True, None):
        with pytest.raises(ValueError, match="h must be a positive integer"):
            model.predict(h)
    for arguments in ({"n_windows": 0}, {"step_size": 0}, {"h": 0}, {"refit": 0}):
        with pytest.raises(ValueError, match="must be a positive integer"):
            model.cross_validation(df, **{"h": 2, **arguments})
    for level in ([0], [100], [80, -5], [np.nan], [0.8], 0.95):
        with pytest.raises(ValueError, match="percentages from 1 to 100, such as 80"):
            model.predict(2, level=level)
        with pytest.raises(ValueError, match="percentages from 1 to 100, such as 80"):
            model.cross_validation(df, 2, level=level)
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
    with pytest.raises(RuntimeError, match=re.escape("call fit(df) first")):
        call(RBFDiffNet("D"))


def test_forecast_keeps_no_model():
    df = make_panel("a", n=60)
    model = RBFDiffNet("D", **QUICK)
    model.forecast(df, 2)
    with pytest.raises(RuntimeError, match="not fitted"):
        model.predict(2)
    before = model.fit(df).predict(2)
    model.forecast(df.head(40), 2)
    assert_frame_equal(model.predict(2), before)


def test_the_frame_is_left_as_it_is():
    df = make_panel("ab", n=60, columns=["price"]).sample(frac=1.0, random_state=0)
    df.iloc[5, 2] = np.inf
    before = df.copy()
    model = RBFDiffNet("D", **QUICK).fit(df)
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
    for parameters in ({}, {"scope": "global"}):
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
    assert 0.75 < inside.mean() < 0.9


def test_plot_draws_the_widest_band():
    pytest.importorskip("matplotlib")
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    df = make_panel("abcdef", n=60)
    figure = RBFDiffNet("D", **QUICK).fit(df).plot(5, level=[80, 95])
    assert len(figure.axes) == 4
    plt.close(figure)


def test_columns_of_the_future_frame_are_known_ones_even_without_inputs():
    df = make_panel().assign(region="north")
    model = RBFDiffNet("D", static_exog="region").fit(df)
    future = model.make_future_frame(2)
    expected = model.predict(2)
    assert model.predict(2, X_df=future.assign(region="north")).equals(expected)
    with pytest.raises(ValueError, match="column 'price' that was not there in training"):
        model.predict(2, X_df=future.assign(price=1.0))


def test_the_fast_preset_shares_a_network_like_the_others():
    model = RBFDiffNet("D", preset="fast", scope="global").fit(make_panel())
    assert np.all(np.isfinite(model.predict(7, level=None)["RBFDiffNet"]))
    assert not model._state.model.plan.quick
