"""New observations, new series and backtests."""

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from panels import (
    CONFIGURATIONS,
    LEVELS,
    NAME,
    QUICK,
    STACKS,
    every_series,
    future_of,
    last_part,
    make_panel,
    to_polars,
)
from rbfdiffnet import RBFDiffNet


@pytest.mark.parametrize("name", ["local", "global", "direct", "differences", "past"])
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
    with pytest.raises(ValueError, match="'new' was not there"):
        model.update(make_panel(["new"], n=5, start="2023-03-02"))
    with pytest.raises(ValueError, match="'new', 'old' were not there"):
        model.update(make_panel(["new", "old"], n=5, start="2023-03-02"))
    with pytest.raises(ValueError, match="no column 'y'"):
        model.update(make_panel("a", n=5, start="2023-03-02").drop(columns="y"))
    with pytest.raises(RuntimeError, match="fit"):
        RBFDiffNet("D").update(df)
    assert_frame_equal(model.predict(3), before)
    later = make_panel(["a", "new"], n=30, start="2023-03-02")
    found = model.update(later, refit=True).predict(1)
    assert found["unique_id"].to_list() == ["a", "b", "new"]
    assert found["ds"].dt.strftime("%m-%d").to_list() == ["04-01", "03-02", "04-01"]


@pytest.mark.parametrize("parameters", [QUICK, {}])
def test_update_renews_the_report(parameters):
    df = make_panel("ab", n=60)
    model = RBFDiffNet("D", **parameters).fit(df)
    model.predict(1, level=None)
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


@pytest.mark.parametrize("parameters", [QUICK, {}])
def test_only_a_global_model_takes_other_series(parameters):
    model = RBFDiffNet("D", **parameters).fit(make_panel("a", n=60))
    with pytest.raises(ValueError, match="scope='global'"):
        model.predict(3, new_df=make_panel("b", n=60))
    with pytest.raises(ValueError, match="scope='global'"):
        model.make_future_frame(3, new_df=make_panel("b", n=60))


@pytest.mark.parametrize("new", ["text", "number", "fraction", "calendar", "static"])
@pytest.mark.parametrize("scope", [None, "local", "global"])
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


@pytest.mark.parametrize(
    "name", ["local", "global", "direct", "inputs", "everything", "adf", "default inputs"]
)
def test_cross_validation_equals_forecasts_of_truncated_frames(name):
    parameters, columns = (CONFIGURATIONS | STACKS)[name]
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


@pytest.mark.parametrize("parameters", [QUICK, {}])
def test_windows_without_a_past_are_left_out(parameters):
    df = make_panel("ab", n=60)
    df = pd.concat([df.head(7).assign(unique_id="short"), df.head(3).assign(unique_id="tiny"), df])
    model = RBFDiffNet("D", **parameters)
    found = model.cross_validation(df, 3, n_windows=3, level=[80])
    counts = found.groupby("unique_id", sort=False).size()
    assert counts.to_dict() == {"short": 6, "a": 9, "b": 9}
    assert np.isfinite(found[LEVELS[:3]]).all(axis=None)
    assert "short" in model.report_["unique_id"].to_list()


def test_the_report_of_a_backtest_says_of_which_windows():
    df = make_panel("ab", n=60)
    df = df[(df["unique_id"] == "a") | (df.groupby("unique_id").cumcount() >= 53)]
    model = RBFDiffNet("D", **QUICK)
    model.cross_validation(df, h=5, n_windows=3)
    notes = model.report_[model.report_["unique_id"] == "b"]
    first, last = (df.loc[df["unique_id"] == "b", "ds"].iloc[i].date() for i in (0, 2))
    assert notes["problem"].to_list() == [
        f"too short (known values: 2, needed: 8) before the window from {last}",
        f"begins {first}, too late for 2 of 3 windows",
    ]
    assert notes["action"].to_list()[1] == "left out of these"


@pytest.mark.parametrize("parameters", [QUICK, {}])
def test_cross_validation_takes_numbers_and_polars(parameters):
    df = make_panel("ab", n=60).assign(ds=np.tile(np.arange(60), 2))
    pandas = RBFDiffNet(1, **parameters).cross_validation(df, 3, n_windows=2)
    polars = RBFDiffNet(1, **parameters).cross_validation(to_polars(df), 3, n_windows=2)
    assert polars.columns == list(pandas)
    assert (
        polars["cutoff"].to_list()
        == pandas["cutoff"].to_list()
        == [53] * 3 + [56] * 3 + [53] * 3 + [56] * 3
    )
    np.testing.assert_array_equal(polars[NAME].to_numpy(), pandas[NAME].to_numpy())
