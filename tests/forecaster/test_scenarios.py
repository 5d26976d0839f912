"""Several futures of the inputs, forecast at once."""

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from panels import LOCAL, NAME, QUICK, future_of, make_panel, to_polars
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.models.stack import model as stack_model

COLUMNS = ["price", "offer"]
WANTED = {"level": [80], "quantiles": [0.3]}
MODELS = {
    "stack": {},
    "instant": {"preset": "instant"},
    "networks": QUICK,
    "lower": {"lower": 70.0},
}


@pytest.fixture(scope="module")
def df():
    return make_panel("ba", n=80, columns=COLUMNS)


@pytest.fixture(scope="module")
def plans(df):
    plan = future_of(RBFDiffNet("D", **QUICK).fit(df), 3, COLUMNS)
    return {"dear": plan.assign(price=3.0), "as planned": plan, "offer": plan.assign(offer="flyer")}


def join(plans):
    return pd.concat([own.assign(scenario=name) for name, own in plans.items()])


@pytest.mark.parametrize("parameters", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("totals", [None, 2])
def test_each_scenario_is_a_forecast_of_its_own(df, plans, parameters, totals):
    model = RBFDiffNet("D", **parameters).fit(df)
    found = model.predict(3, join(plans), **WANTED, totals=totals)
    assert list(found)[:3] == ["unique_id", "ds", "scenario"]
    assert found["scenario"].unique().tolist() == list(plans)
    for name, plan in plans.items():
        own = found[found["scenario"] == name].drop(columns="scenario").reset_index(drop=True)
        alone = RBFDiffNet("D", **parameters).fit(df).predict(3, plan, **WANTED, totals=totals)
        assert_frame_equal(own, alone, check_exact=True)
    again = RBFDiffNet("D", **parameters)
    assert_frame_equal(again.forecast(df, 3, join(plans), **WANTED, totals=totals), found)
    assert_frame_equal(again.report_, model.report_)


def test_nothing_is_learned_twice(df, plans, monkeypatch):
    learned = []
    learn = stack_model.learn
    monkeypatch.setattr(stack_model, "learn", lambda *args: learned.append(1) or learn(*args))
    model = RBFDiffNet("D").fit(df)
    model.predict(3, join(plans), **WANTED)
    model.predict(3, join(plans), **WANTED, totals=3)
    assert len(learned) == 1
    RBFDiffNet("D").forecast(df, 3, join(plans), **WANTED)
    assert len(learned) == 2


def test_the_same_shocks_strike_every_scenario(df, plans):
    model = RBFDiffNet("D").fit(df)
    same = {"one": plans["dear"], "two": plans["dear"]}
    paths = model.simulate(3, 20, 5, join(same | plans))
    keys = ["unique_id", "ds", "sample_id"]
    assert list(paths) == ["unique_id", "ds", "scenario", "sample_id", NAME]
    table = paths.pivot(index=keys, columns="scenario", values=NAME)
    np.testing.assert_array_equal(table["one"], table["two"])
    expected = model.simulate(3, 20, 5, plans["offer"]).set_index(keys)[NAME].sort_index()
    np.testing.assert_array_equal(table["offer"], expected)


@pytest.mark.parametrize("names", [["north", "south"], [2, 1], [0.5, 0.25]])
def test_names_and_order_of_rows(df, plans, names):
    model = RBFDiffNet("D", **QUICK).fit(df)
    rows = join(dict(zip(names, plans.values(), strict=False)))
    found = model.predict(3, rows)
    assert found["scenario"].unique().tolist() == names
    assert found["scenario"].to_numpy().dtype == np.array(names, dtype=rows["scenario"].dtype).dtype
    shuffled = rows.sample(frac=1.0, random_state=1)
    first = shuffled["scenario"].unique().tolist()
    again = model.predict(3, shuffled)
    assert again["scenario"].unique().tolist() == first
    by = ["scenario", "unique_id", "ds"]
    assert_frame_equal(
        again.sort_values(by, ignore_index=True), found.sort_values(by, ignore_index=True)
    )


def test_polars_frames_give_the_same(df, plans):
    model = RBFDiffNet("D").fit(to_polars(df))
    found = model.predict(3, to_polars(join(plans)), **WANTED)
    assert found.columns[:3] == ["unique_id", "ds", "scenario"]
    expected = RBFDiffNet("D").fit(df).predict(3, join(plans), **WANTED)
    for name in expected.columns[2:]:
        assert found[name].to_list() == expected[name].tolist()


def test_a_saved_model_knows_scenarios(df, plans, tmp_path):
    model = RBFDiffNet("D", **LOCAL).fit(df)
    model.save(tmp_path / "model")
    again = RBFDiffNet.load(tmp_path / "model")
    assert_frame_equal(again.predict(3, join(plans)), model.predict(3, join(plans)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x.iloc[:-1], r"Scenario 'offer': X_df has no row for series 'a' on 2023-03-24"),
        (lambda x: pd.concat([x, x.head(1)]), r"Scenario 'dear': X_df has 2 rows for series 'b'"),
        (lambda x: x.assign(prize=1.0), r"Scenario 'dear': .*'prize' that was not there"),
        (
            lambda x: x.assign(scenario=x["scenario"].where(x["offer"] == "none")),
            r"'scenario' of X_df has no value in row",
        ),
        (lambda x: x.head(0), r"'scenario', but no rows"),
    ],
)
def test_errors_name_the_scenario(df, plans, change, message):
    model = RBFDiffNet("D", **QUICK).fit(df)
    with pytest.raises(ValueError, match=message):
        model.predict(3, change(join(plans)))


def test_a_column_of_the_series_with_that_name_is_an_input(df):
    rng = np.random.default_rng(0)
    known = df.assign(scenario=rng.normal(size=len(df))).drop(columns=COLUMNS)
    model = RBFDiffNet("D", **QUICK).fit(known)
    found = model.predict(3, model.make_future_frame(3).assign(scenario=1.0))
    assert len(found) == 6
    assert "scenario" not in found


def test_series_without_inputs_are_the_same_in_every_scenario():
    df = make_panel("ba", n=60)
    model = RBFDiffNet("D", **QUICK).fit(df)
    rows = model.make_future_frame(2)
    found = model.predict(2, join({"x": rows, "y": rows}))
    assert (found[NAME].to_numpy()[:4] == found[NAME].to_numpy()[4:]).all()


@pytest.mark.parametrize("library", [lambda frame: frame, to_polars])
def test_what_is_about_one_future_says_so(df, plans, library):
    model = RBFDiffNet("D", preset="instant").fit(library(df))
    for call in (model.explain, model.plot):
        with pytest.raises(
            ValueError, match=r"'scenario', but only predict, .* give one at a time"
        ):
            call(3, library(join(plans)))
    assert len(model.explain(3, library(plans["dear"])))
