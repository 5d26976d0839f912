"""Series that follow a rule of their own, forecast by it."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter

from panels import NAME
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.datasets import logistic_map
from rbfdiffnet.models.stack import lesson as lesson_module
from rbfdiffnet.models.stack import own_maps
from rbfdiffnet.models.stack.own_maps import OWN_MAP, forecast_own
from rbfdiffnet.noise.series_model import learn_series
from stacks import frame


@pytest.fixture(scope="module")
def mixed():
    """Three chaotic series of 120 values, two ordinary ones, and what came then."""
    rng = np.random.default_rng(3)
    maps = {f"map{k}": logistic_map(126, r=3.9, s1=0.1 * k) for k in (1, 2, 3)}
    others = {
        "noise": rng.normal(size=126),
        "cycle": lfilter([1.0], [1.0, -1.6, 0.9], rng.normal(size=126)),
    }
    whole = frame(maps | others)
    late = whole.groupby("unique_id").cumcount() >= 120
    return whole[~late], whole[late]


def test_chaotic_series_are_forecast_by_their_rules_and_others_are_not(mixed, monkeypatch):
    df, ahead = mixed
    model = RBFDiffNet("MS", season_length=1).fit(df)
    found = model.predict(6, level=[80])
    chosen = model.chosen_.set_index("unique_id")
    assert chosen[OWN_MAP].to_dict() == {name: float("map" in name) for name in chosen.index}
    weights = chosen.drop(columns="season_length").sum(axis=1)
    assert_allclose(weights, 1.0)
    own = ahead["unique_id"].str.startswith("map").to_numpy()
    errors = np.abs(found[NAME].to_numpy() - ahead["y"].to_numpy())
    assert errors[own].mean() < 0.02
    inside = found[f"{NAME}-lo-80"] <= found[NAME]
    assert (inside & (found[NAME] <= found[f"{NAME}-hi-80"])).all()

    terms = model.explain(6)
    total = terms.groupby(["unique_id", "ds"], sort=False)["contribution"].sum()
    assert_allclose(total, found[NAME], rtol=1e-9)

    monkeypatch.setattr(lesson_module, "seeks_maps", lambda *_: False)
    plain = RBFDiffNet("MS", season_length=1).forecast(df, 6)
    assert_array_equal(plain[NAME][~own], found[NAME][~own])
    assert errors[own].mean() < 0.1 * np.abs(plain[NAME] - ahead["y"].to_numpy())[own].mean()


def test_the_first_steps_and_backtests_do_not_look_ahead(mixed):
    df, _ = mixed
    df = df[df["unique_id"].isin(["map1", "noise"])]
    model = RBFDiffNet("MS", season_length=1)
    long, short = model.forecast(df, 6), model.forecast(df, 2)
    first = long.groupby("unique_id").head(2)
    assert_array_equal(first[NAME], short[NAME])
    backtest = model.cross_validation(df, h=3)
    cut = df[df.groupby("unique_id").cumcount(ascending=False) >= 3]
    assert_array_equal(backtest[NAME], model.forecast(cut, 3)[NAME])


def test_series_with_a_season_are_looked_at_with_time_only(mixed):
    df, _ = mixed
    df = df[df["unique_id"].isin(["map1", "noise"])]
    for preset, sought in (("default", False), ("best", True)):
        model = RBFDiffNet("MS", season_length=7, preset=preset).fit(df)
        model.predict(2)
        assert (OWN_MAP in model.weights_) == sought


def test_of_a_large_panel_some_series_are_looked_at_first(rng, monkeypatch):
    looked = []

    def is_nonlinear(u, _):
        looked.append(u)
        return False

    monkeypatch.setattr(own_maps, "_is_nonlinear", is_nonlinear)
    df = frame({f"s{i:02}": rng.normal(size=70) for i in range(40)})
    RBFDiffNet("MS", season_length=1).forecast(df, 2)
    assert len(looked) == 32


def test_intervals_of_observations_have_the_noise(rng):
    s = logistic_map(300, r=3.8, s1=0.3)
    model = learn_series((s + 0.03 * rng.normal(size=300))[:, None])
    assert model.noise[0] > 0.02
    clean = model.forecast(None, 3, np.array([0.1, 0.5, 0.9]))[:, 0]
    noisy = forecast_own(model, 3, (0.1, 0.5, 0.9))
    assert_allclose(noisy[:, 1], clean[:, 1])
    spread = 1.2815515655446004 * model.noise[0]
    assert_allclose(noisy[:, 2] - clean[:, 1], np.hypot(clean[:, 2] - clean[:, 1], spread))
    assert (np.diff(noisy, axis=1) > 0.0).all()


def test_inputs_act_on_own_maps(rng):
    """The effect of an input is taken out before, and put back."""
    s, promotion = logistic_map(204, r=3.9, s1=0.2), (rng.random(204) < 0.2).astype(float)
    df = pd.DataFrame({"unique_id": "a", "ds": range(204), "y": s, "promotion": promotion})
    df["y"] += 3.0 * promotion
    model = RBFDiffNet(1, season_length=1).fit(df[:200])
    ahead = df[200:][["unique_id", "ds", "promotion"]]
    found, plain = (model.predict(4, X_df=ahead.assign(promotion=x))[NAME] for x in (1.0, 0.0))
    assert model.weights_[OWN_MAP] == 1.0
    ratio = (found / plain).to_numpy()  # effects are relative
    assert_allclose(ratio, ratio[0], rtol=1e-9)
    assert ratio[0] > 3.0


def test_a_series_that_rests_loses_no_other(rng):
    """More than half of its windows are the same."""
    pulse = np.r_[np.full(20, 5.0), 5.0 + 3.0 * np.sin(np.pi * np.arange(1, 5) / 5.0)]
    df = frame({"pulse": np.tile(pulse, 17)[:400], "noise": rng.normal(size=400)})
    found = RBFDiffNet("MS", season_length=1).forecast(df, 3, level=[80])
    assert np.isfinite(found.drop(columns=["unique_id", "ds"]).to_numpy()).all()


@pytest.mark.parametrize("spoiled", [np.nan, 50.0], ids=["gap", "outlier"])
def test_series_whose_latest_values_are_not_known_have_no_own_map(spoiled):
    s = logistic_map(200, r=3.9, s1=0.2)
    s[-2] = spoiled
    model = RBFDiffNet("MS", season_length=1).fit(frame({"a": s}))
    assert np.isfinite(model.predict(3)[NAME]).all()
    assert OWN_MAP not in model.weights_


def test_in_a_hierarchy_there_are_no_own_maps(mixed):
    df, _ = mixed
    df = df[df["unique_id"].isin(["map1", "map2"])].assign(group="all")
    model = RBFDiffNet("MS", season_length=1, hierarchy=["group"], reconcile="bottom_up").fit(df)
    model.predict(2)
    assert OWN_MAP not in model.weights_
