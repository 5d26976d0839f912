"""Series without any value yet are forecast like those that resemble them."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal

from panels import NAME, QUICK, make_panel, to_polars
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.forecasting import chunks
from rbfdiffnet.models import sampled

H = 4
FINE = [round(p, 3) for p in np.linspace(0.005, 0.995, 199)]
SAMPLED = {"stack": {}, "instant": {"preset": "instant"}}
MODELS = {**SAMPLED, "local": QUICK, "fast": {"preset": "fast"}, "global": {"scope": "global"}}
every = pytest.mark.parametrize("parameters", MODELS.values(), ids=MODELS)


def panel_with(*new, n=90, ids="bacdef"):
    """Series of two regions, and rows without values of new ones: names, regions and dates."""
    df = make_panel(ids, n=n, columns=["region"])
    rows = [
        {"unique_id": name, "ds": df["ds"].max() + pd.Timedelta(days=later), "y": np.nan}
        | {"region": region}
        for name, region, later in new
    ]
    return pd.concat([df, pd.DataFrame(rows)], ignore_index=True)


def fit(df, **parameters):
    return RBFDiffNet("D", static_exog=["region"], **parameters).fit(df)


@every
def test_forecasts_are_medians_and_quantiles_those_of_the_mixture(parameters):
    df = panel_with(("new", "north", 0), ("odd", "west", 0))
    model = fit(df, **parameters)
    found = model.predict(H, level=None, quantiles=FINE)
    of = {"new": ["a", "d", "f"], "odd": list("bacdef")}
    assert set(df.loc[df["region"] == "north", "unique_id"]) == {"a", "d", "f", "new"}
    rng = np.random.default_rng(0)
    for name, peers in of.items():
        own = found[found["unique_id"] == name]
        theirs = found[found["unique_id"].isin(peers)]
        expected = theirs.groupby("ds")[NAME].median()
        assert_allclose(own[NAME], expected, rtol=1e-12)
        for date, step in own.groupby("ds"):
            rows = theirs[theirs["ds"] == date].iloc[:, 3:].to_numpy()
            drawn = [np.interp(rng.random(50_000), FINE, row) for row in rows]
            for p in (0.1, 0.5, 0.9):
                got = step[f"{NAME}-q-{100 * p:g}"].item()
                assert abs(np.mean(np.array(drawn) < got) - p) < 0.01
    report = model.report_.set_index("unique_id")
    assert report.loc["new", "problem"] == "no values; 3 series of the same region"
    assert report.loc["odd", "problem"] == "no values; 6 other series"
    assert (report["action"] == "forecast like these series").all()


@every
def test_others_are_forecast_as_without_them(parameters):
    df = panel_with(("new", "north", 0))
    found = fit(df, **parameters).predict(H)
    old = fit(df[df["unique_id"] != "new"], **parameters).predict(H)
    assert_frame_equal(found[found["unique_id"] != "new"], old, check_exact=True)


@every
def test_every_way_to_forecast_agrees(parameters, tmp_path):
    df = panel_with(("new", "north", 0))
    model = fit(df, **parameters)
    found = model.predict(H)
    again = RBFDiffNet("D", static_exog=["region"], **parameters)
    assert_frame_equal(again.forecast(df, H, level=[80, 95]), found)
    assert_frame_equal(again.report_, model.report_)
    model.save(tmp_path / "model")
    loaded = RBFDiffNet.load(tmp_path / "model")
    assert_frame_equal(loaded.predict(H), found)
    assert_frame_equal(loaded.report_, model.report_)
    shuffled = fit(df.sample(frac=1.0, random_state=0), **parameters).predict(H)
    by = ["unique_id", "ds"]
    assert_allclose(
        shuffled.sort_values(by).iloc[:, 2:], found.sort_values(by).iloc[:, 2:], rtol=1e-9
    )
    polars = fit(to_polars(df), **parameters).predict(H)
    assert_allclose(polars[NAME], found[NAME], rtol=1e-12)
    terms = model.explain(H, ids=["new"])
    assert_allclose(terms["contribution"], found.loc[found["unique_id"] == "new", NAME])
    assert terms["term"].unique().tolist() == ["median of 3 series of the same region"]
    paths = model.simulate(H, 400).query("unique_id == 'new'").groupby("ds")[NAME]
    own = found[found["unique_id"] == "new"]
    assert_allclose(paths.quantile(0.9), own[f"{NAME}-hi-80"], rtol=0.02)
    total = model.predict(H, level=[80], totals=H).query("unique_id == 'new'")
    assert_allclose(total[NAME], own[NAME].sum())


@pytest.mark.parametrize(
    ("apart", "noise", "inside"), [(1.0, 1.0, (0.73, 0.87)), (0.0, 10.0, (0.75, 1.0))]
)
def test_totals_hold_those_of_peers_whether_these_are_apart_or_alike(apart, noise, inside):
    rng = np.random.default_rng(0)
    levels = 100.0 + apart * rng.uniform(-50.0, 50.0, 30)
    days = pd.date_range("2024-01-01", periods=100)
    df = pd.concat(
        pd.DataFrame({"unique_id": f"s{i}", "ds": days, "y": level + noise * rng.normal(size=100)})
        for i, level in enumerate(levels)
    )
    df = pd.concat([df, df.tail(1).assign(unique_id="new", y=np.nan)])
    model = RBFDiffNet("D", preset="instant").fit(df)
    own = model.predict(14, level=[80], totals=14).query("unique_id == 'new'")
    low, high = own[f"{NAME}-lo-80"].item(), own[f"{NAME}-hi-80"].item()
    sums = 14.0 * levels + np.sqrt(14.0) * noise * rng.normal(size=(1000, 30))
    least, most = inside
    assert least < np.mean((sums > low) & (sums < high)) < most
    assert high - low < 1.6 * np.ptp(np.quantile(sums, [0.1, 0.9]))


@pytest.mark.parametrize("name", ["local", "fast", "global"])
def test_only_chosen_series_and_their_peers_are_asked_for(name):
    df = panel_with(("new", "north", 0), ("odd", "west", 0))
    df["price"] = np.random.default_rng(0).uniform(1.0, 3.0, len(df))
    model = fit(df, **MODELS[name])
    plan = model.make_future_frame(H).assign(price=2.0)
    found = model.predict(H, plan).set_index("unique_id")[NAME]
    for ids, needed in ((["b"], ["b"]), (["new", "b"], [*"abdf", "new"]), (["odd"], None)):
        rows = plan if needed is None else plan[plan["unique_id"].isin(needed)]
        terms = model.explain(H, rows, ids=ids)
        assert terms["unique_id"].drop_duplicates().tolist() == ids
        sums = terms.groupby(["unique_id", "ds"])["contribution"].sum()
        for own in ids:
            assert_allclose(sums[own], found[own], rtol=1e-9)
        assert_frame_equal(terms, model.explain(H, plan, ids=ids))
    with pytest.raises(ValueError, match="X_df has no row for series 'd'"):
        model.explain(H, plan[plan["unique_id"].isin([*"abf", "new"])], ids=["new"])


def test_chunks_do_not_matter(monkeypatch):
    df = panel_with(("new", "north", 0), ("odd", "west", 0), ("late", "north", 2))
    for parameters in SAMPLED.values():
        whole = RBFDiffNet("D", static_exog=["region"], **parameters)
        expected = whole.forecast(df, H, level=[80])
        with monkeypatch.context() as patch:
            patch.setattr(sampled, "MOST_LEARNED_FROM", 4)
            learned = RBFDiffNet("D", static_exog=["region"], **parameters)
            together = learned.forecast(df, H, level=[80])
            patch.setattr(sampled, "_BYTES", 2 * 10**9 // 100)
            apart = RBFDiffNet("D", static_exog=["region"], **parameters)
            found = apart.forecast(df, H, level=[80])
        assert_allclose(found.iloc[:, 2:], together.iloc[:, 2:], rtol=1e-9)
        assert_frame_equal(apart.report_, learned.report_)
        assert_frame_equal(whole.report_, learned.report_)
        assert list(found["ds"]) == list(expected["ds"])


@pytest.mark.parametrize("name", ["local", "fast", "global"])
def test_chunks_of_networks_do_not_matter(name, monkeypatch):
    df = panel_with(("new", "north", 0), ("odd", "west", 0), ("late", "north", 2))
    whole, apart = (RBFDiffNet("D", static_exog=["region"], **MODELS[name]) for _ in range(2))
    expected = whole.forecast(df, H, level=[80])
    monkeypatch.setattr(chunks, "_SHARE", 3e-5)
    found = apart.forecast(df, H, level=[80])
    assert_allclose(found.iloc[:, 2:], expected.iloc[:, 2:], rtol=1e-9)
    assert_frame_equal(apart.report_, whole.report_)


def test_dates_are_those_of_the_newcomer():
    df = panel_with(("late", "north", 2))
    found = fit(df).predict(H, level=None).set_index(["unique_id", "ds"])[NAME]
    north = df.loc[df["region"] == "north", "unique_id"].unique().tolist()[:3]
    late = found["late"]
    for date in late.index[:2]:
        assert_allclose(late[date], np.median([found[name, date] for name in north]))
    known = df.set_index(["unique_id", "ds"])["y"]
    for date in late.index[2:]:  # beyond all others: their last season goes on
        ago = date - pd.Timedelta(days=7)
        assert_allclose(late[date], np.median([known[name, ago] for name in north]))


@every
@pytest.mark.parametrize("later", [-10, 30])
def test_other_dates_keep_level_and_shape(parameters, later):
    df = panel_with(("new", "north", later))
    weekly = 20.0 * np.sin(2.0 * np.pi * df["ds"].dt.day_of_year / 7.0)
    df["y"] = 100.0 + weekly + 0.5 * np.random.default_rng(0).normal(size=len(df))
    df.loc[df["unique_id"] == "new", "y"] = np.nan
    model = fit(df, **parameters)
    found = model.predict(14, level=[80]).query("unique_id == 'new'")
    expected = 100.0 + 20.0 * np.sin(2.0 * np.pi * found["ds"].dt.day_of_year / 7.0)
    assert_allclose(found[NAME], expected, atol=2.5)
    assert (found[f"{NAME}-hi-80"] > found[f"{NAME}-lo-80"]).all()
    said = model.report_.query("unique_id == 'new'")["problem"].item()
    how = (
        "(ended 30 steps before; their last season goes on)"
        if later > 0
        else "(end 10 steps later; until then their past values count)"
    )
    assert said == f"no values; 3 series of the same region {how}"


def test_counts_bounds_and_values_that_arrive():
    df = panel_with(("new", "north", 0))
    counts = df.assign(y=(df["y"] / 20.0).round())
    found = fit(counts).predict(H).query("unique_id == 'new'").iloc[:, 3:]
    assert (found == found.round()).all(axis=None)
    bounded = fit(df, lower=90.0, upper=95.0).predict(H).query("unique_id == 'new'").iloc[:, 2:]
    assert (bounded.min(axis=None), bounded.max(axis=None)) == (90.0, 95.0)
    model = fit(df)
    days = pd.date_range(df["ds"].max(), periods=11)[1:]
    fresh = pd.DataFrame({"unique_id": "new", "ds": days, "y": np.arange(10.0), "region": "north"})
    model.update(fresh)
    assert "no values" not in " ".join(model.report_["problem"])
    assert model.predict(H).query("unique_id == 'new'")[NAME].max() < 40.0


def test_groups_of_a_hierarchy_tell_who_is_like_a_newcomer():
    df = panel_with(("new", "north", 0))
    df["y"] *= np.where(df["region"] == "north", 1.0, 100.0)
    model = RBFDiffNet("D", hierarchy=["region"]).fit(df)
    found = model.predict(H, level=None).pivot(index="ds", columns="unique_id", values=NAME)
    assert_allclose(found["new"], found[["a", "d", "f"]].median(axis=1), rtol=0.01)
    assert_allclose(found["north"], found[["a", "d", "f", "new"]].sum(axis=1))
    said = model.report_.query("unique_id == 'new'")["problem"].item()
    assert said == "no values; 3 series of the same region"


def test_where_nobody_can_be_asked_forecasts_are_zero():
    df = panel_with(("new", "north", 0))
    nothing = df.assign(y=np.nan)
    model = fit(nothing)
    assert (model.predict(H)[NAME] == 0.0).all()
    assert (model.report_["action"] == "forecast 0").all()
    with pytest.raises(ValueError, match=r"'new' cannot be fitted: no values"):
        fit(df, errors="raise")


def test_backtests_leave_them_out():
    df = panel_with(("new", "north", 0))
    found = RBFDiffNet("D", static_exog=["region"]).cross_validation(df, H, n_windows=2)
    old = df[df["unique_id"] != "new"]
    expected = RBFDiffNet("D", static_exog=["region"]).cross_validation(old, H, n_windows=2)
    assert_frame_equal(found, expected)
