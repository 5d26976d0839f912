"""Explanations, operators, fitted values and plots."""

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from panels import (
    CONFIGURATIONS,
    KINDS,
    LOCAL,
    NAME,
    QUICK,
    every_series,
    future_of,
    last_part,
    make_panel,
)
from rbfdiffnet import RBFDiffNet, RBFDiffNetRegressor


@pytest.mark.parametrize("name", KINDS)
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
    model = RBFDiffNet("D", **LOCAL, lower=60.0 * unit).fit(df)
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


@pytest.mark.parametrize(
    "parameters", [{}, {"calendar": ["dayofweek"]}, {"preset": "fast"}], ids=str
)
def test_a_stack_has_the_equations_of_local_networks(parameters, tmp_path):
    df = make_panel("bac", n=70)
    df = pd.concat([df, df.head(4).assign(unique_id="short")])
    local = RBFDiffNet("D", **LOCAL, **parameters).fit(df)
    stack = RBFDiffNet("D", scope="auto", **parameters).fit(df)
    assert len(stack.equation()) > 0
    assert_frame_equal(stack.equation(), local.equation(), check_exact=True)
    assert_frame_equal(stack.equation(["c", "b"]), local.equation(["c", "b"]), check_exact=True)
    assert len(stack.equation("short")) == 0
    stack.save(tmp_path / "model")
    loaded = RBFDiffNet.load(tmp_path / "model")
    assert_frame_equal(loaded.equation("a"), local.equation("a"), check_exact=True)
    with pytest.raises(ValueError, match="no series 'z'"):
        stack.equation("z")
    if not parameters:
        pytest.importorskip("matplotlib")
        heights = [bar.get_height() for bar in stack.plot_equation("a").patches]
        np.testing.assert_array_equal(heights, local.equation("a")["coefficient"])


@pytest.mark.parametrize("parameters", [QUICK, {}])
def test_one_series_may_be_named_by_itself(parameters):
    df = make_panel(["north", "south"], n=60)
    model = RBFDiffNet("D", **parameters).fit(df)
    assert_frame_equal(model.explain(2, ids="south"), model.explain(2, ids=["south"]))
    assert_frame_equal(model.equation("north"), model.equation(["north"]))
    with pytest.raises(ValueError, match="no series 'east'"):
        model.explain(ids="east")
    numbered = RBFDiffNet("D", **parameters).fit(df.assign(unique_id=np.repeat([7, 3], 60)))
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


@pytest.mark.parametrize("name", KINDS)
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
