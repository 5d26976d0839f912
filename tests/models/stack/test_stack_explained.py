"""What the forecaster with scope="auto" shows of itself: weights, explanations, plots."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from panels import NAME
from rbfdiffnet import RBFDiffNet
from stacks import auto, frame, walks


def test_the_weights_of_the_latest_forecasts(rng):
    model = auto().fit(frame(walks(rng, [60] * 9)))
    with pytest.raises(AttributeError, match="predict first"):
        model.weights_  # noqa: B018
    model.predict(6)
    assert sum(model.weights_.values()) == pytest.approx(1.0)
    assert "direct" in model.weights_
    with pytest.raises(AttributeError, match="scope='auto'"):
        RBFDiffNet(freq="MS", scope="local").fit(frame({0: rng.normal(size=60)})).weights_  # noqa: B018


def test_explanations_name_the_members(rng):
    series = {**walks(rng, [60] * 9), "constant": np.full(60, 3.0)}
    model = auto(lower=79.0).fit(frame(series))
    found = model.predict(6, level=None)
    table = model.explain(6)
    total = table.groupby(["unique_id", "ds"])["contribution"].sum().reset_index()
    together = found.merge(total, on=["unique_id", "ds"])
    assert len(together) == len(found)
    assert_allclose(together["contribution"], together[NAME], rtol=1e-9)
    members = table[table["part"] == "member"]
    others = set(model.weights_) - {"pretrained", "corrected"}
    assert set(members["term"]) <= others | {"what the panel's rows correct"}
    assert_allclose(members["contribution"], members["weight"] * members["value"])
    some = model.explain(6, ids=["s3", "constant"])
    assert some["unique_id"].unique().tolist() == ["s3", "constant"]
    assert_allclose(
        some[some["unique_id"] == "s3"]["contribution"],
        table[table["unique_id"] == "s3"]["contribution"],
    )
    assert (some[some["unique_id"] == "constant"]["part"] != "member").all()


def test_without_errors_the_pretrained_network_is_explained(rng):
    model = auto().fit(frame(walks(rng, [8])))
    table = model.explain(10)
    assert "member" not in set(table["part"])
    total = table.groupby("ds")["contribution"].sum()
    assert_allclose(total, model.predict(10, level=None)[NAME], rtol=1e-9)


def test_the_effect_of_an_input_is_what_it_changes(rng):
    promotion = [(rng.random(90) < 0.3).astype(float) for _ in range(4)]
    noise = [rng.normal(size=90).cumsum() for _ in range(4)]
    series = {
        f"s{i}": 50.0 + y + 9.0 * x for i, (y, x) in enumerate(zip(noise, promotion, strict=True))
    }
    df = frame(series, freq="D").assign(promotion=np.concatenate(promotion))
    model = auto("D").fit(df)
    future = model.make_future_frame(3)
    found, effects = [], []
    for x in (1.0, 0.0):
        plan = future.assign(promotion=x)
        found.append(model.predict(3, X_df=plan)[NAME].to_numpy())
        terms = model.explain(3, X_df=plan)
        effects.append(terms.loc[terms["part"] == "effect", "contribution"].to_numpy())
    assert_allclose(effects[0] - effects[1], found[0] - found[1], rtol=1e-6)


def test_logarithms_have_a_term_of_their_own(rng):
    model = auto(transforms=["log1p"]).fit(frame(walks(rng, [60] * 4)))
    table = model.explain(4)
    assert "logarithm" in set(table["part"])
    assert not (table["term"] == "never negative").any()
    total = table.groupby(["unique_id", "ds"])["contribution"].sum()
    assert_allclose(total, model.predict(4, level=None)[NAME], rtol=1e-9)


def test_plots_show_what_is_predicted(rng):
    plt = pytest.importorskip("matplotlib.pyplot")
    model = auto().fit(frame(walks(rng, (40, 50, 30, 60, 45))))
    expected = model.predict(5, level=None)
    figure = model.plot(5, ids=["s4", "s1"], level=[80])
    for axes, name in zip(figure.axes, ("s4", "s1"), strict=True):
        drawn = [line.get_ydata() for line in axes.lines if len(line.get_ydata()) in (5, 6)]
        values = expected.loc[expected["unique_id"] == name, NAME]
        assert any(np.allclose(y[-5:], values) for y in drawn)
    assert len(model.plot(5).axes) == 4
    plt.close("all")


@pytest.mark.parametrize("season", [4, 7, 12, 24])
def test_contributions_add_up_for_series_of_which_members_know_nothing(rng, season):
    series = {n: 20.0 + rng.normal(size=n).cumsum() for n in range(8, 31, 2)}
    for n, y in series.items():
        model = auto(season_length=season).fit(frame({"a": y}))
        terms = model.explain(3)
        assert terms["contribution"].notna().all()
        total = terms.groupby("ds")["contribution"].sum()
        assert_allclose(total, model.predict(3)[NAME], rtol=1e-9, err_msg=f"{n} values")
