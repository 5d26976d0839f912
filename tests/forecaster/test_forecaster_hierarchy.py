"""Forecasts of a hierarchy: they add up, in every way to make them."""

import numpy as np
import pandas as pd
import pytest

from panels import NAME, make_stores, to_polars
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.forecasting import reconcile

METHODS = ["variance", "mint", "structural", "bottom_up"]
FAST = {"preset": "instant"}
CROSSED = [["state"], ["kind"], ["state", "kind"]]


def stores(n=90):
    return make_stores(n).drop(columns="kind")


def model_of(method="mint", hierarchy=("state", "store"), **parameters):
    settings = {**FAST, **parameters}
    return RBFDiffNet("D", hierarchy=list(hierarchy), reconcile=method, **settings)


def wide_of(found, column=NAME):
    return found.pivot(index="ds", columns="unique_id", values=column)


def assert_adds_up(found, df, columns=("state", "store"), column=NAME):
    """Every group is the sum of its series, to 1e-9."""
    wide = wide_of(found, column)
    series = df.drop_duplicates("unique_id").set_index("unique_id")
    own = series.index.intersection(wide.columns)
    np.testing.assert_allclose(wide["Total"], wide[own].sum(axis=1), rtol=1e-9)
    for k in range(1, len(columns) + 1):
        names = series.loc[own, list(columns[:k])].agg("/".join, axis=1)
        for name, members in names.groupby(names):
            np.testing.assert_allclose(wide[name], wide[members.index].sum(axis=1), rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_forecasts_add_up(method):
    df = stores()
    found = model_of(method).forecast(df, 5, level=[80])
    assert len(found) == 18 * 5
    assert_adds_up(found, df)
    assert (found[f"{NAME}-lo-80"] <= found[NAME]).all()
    assert (found[NAME] <= found[f"{NAME}-hi-80"]).all()


def test_without_reconciliation_levels_are_forecast_alone():
    df = stores()
    found = wide_of(model_of("none").forecast(df, 5))
    assert np.abs(found["Total"] / found[df["unique_id"].unique()].sum(axis=1) - 1).max() > 1e-6


def test_levels_are_forecast_as_the_sums_would_be():
    df = stores()
    whole = df.groupby("ds", as_index=False)["y"].sum().assign(unique_id="Total")
    alone = RBFDiffNet("D", **FAST).forecast(whole, 5)
    found = model_of("none").forecast(df, 5)
    together = found[found["unique_id"] == "Total"]
    np.testing.assert_allclose(together[NAME], alone[NAME], rtol=1e-9)


def test_bottom_up_leaves_the_series_as_they_are():
    df = stores()
    found = wide_of(model_of("bottom_up").forecast(df, 5))
    alone = wide_of(model_of("none").forecast(df, 5))
    own = list(df["unique_id"].unique())
    pd.testing.assert_frame_equal(found[own], alone[own])


def test_crossed_groups_add_up_and_are_named():
    df = make_stores().drop(columns="store")
    model = model_of(hierarchy=CROSSED).fit(df)
    levels = model.hierarchy_.set_index("unique_id")["level"]
    assert levels[["Total", "CA", "toys", "TX/food", "toys@TX_3"]].tolist() == [
        *("Total", "state", "kind", "state/kind", "series")
    ]
    wide = wide_of(model.predict(3))
    for one, parts in (("CA", ["CA/food", "CA/toys"]), ("toys", ["CA/toys", "TX/toys"])):
        np.testing.assert_allclose(wide[one], wide[parts].sum(axis=1), rtol=1e-9)


@pytest.mark.parametrize("parameters", [{}, {"preset": "default"}, {"preset": "fast"}])
def test_forecast_is_fit_and_predict(parameters):
    df = stores()
    found = model_of(**parameters).forecast(df, 4, level=[80])
    again = model_of(**parameters).fit(df).predict(4, level=[80])
    pd.testing.assert_frame_equal(found, again, rtol=1e-9)
    assert_adds_up(found, df)


def test_the_order_of_rows_does_not_matter_nor_the_library():
    df = stores()
    found = wide_of(model_of().forecast(df, 4))
    shuffled = model_of().forecast(df.sample(frac=1.0, random_state=1), 4)
    pd.testing.assert_frame_equal(wide_of(shuffled), found, rtol=1e-12)
    frame = model_of().forecast(to_polars(df), 4)
    np.testing.assert_array_equal(wide_of(frame.to_pandas()), found)
    model = model_of().fit(to_polars(df))
    assert model.hierarchy_.columns == ["unique_id", "level"]


def test_a_lower_bound_holds_and_forecasts_still_add_up():
    rng = np.random.default_rng(0)
    df = stores(120)
    df["y"] = rng.poisson(0.3, len(df)) * (rng.random(len(df)) < 0.5)
    found = model_of(lower=0.0).forecast(df, 6, level=[80])
    assert found[[NAME, f"{NAME}-lo-80"]].to_numpy().min() >= 0.0
    assert_adds_up(found, df)


@pytest.mark.parametrize("method", METHODS)
def test_windows_of_a_backtest_add_up_and_are_forecasts_from_their_starts(method):
    df = stores(150)
    late = (df["store"] == "CA_2") & (df["ds"] < df["ds"].max() - pd.Timedelta(days=6))
    df = df[~late]
    found = model_of(method).cross_validation(df, 5, n_windows=3, level=[80])
    for cutoff, window in found.groupby("cutoff"):
        before = df[df["ds"] <= cutoff]
        assert_adds_up(window, before)
        alone = model_of(method).forecast(before, 5, level=[80])
        both = window.merge(alone, on=["unique_id", "ds"], suffixes=("", "_alone"))
        assert len(both) == len(alone)
        for name in (NAME, f"{NAME}-lo-80", f"{NAME}-hi-80"):
            np.testing.assert_allclose(both[name], both[f"{name}_alone"], rtol=1e-9)
    actual = found.pivot(index="ds", columns="unique_id", values="y")
    np.testing.assert_allclose(actual["TX"], actual.filter(like="@TX").sum(axis=1))


def test_missing_values_and_late_series_and_short_ones():
    df = stores()
    rng = np.random.default_rng(0)
    df = df[(rng.random(len(df)) > 0.1) | (df["ds"] == df["ds"].max())]
    df = df[(df["unique_id"] != "toys@TX_2") | (df["ds"] > df["ds"].max() - pd.Timedelta(days=3))]
    found = model_of().forecast(df, 5)
    assert_adds_up(found, df)
    short = model_of().forecast(df[df["ds"] > df["ds"].max() - pd.Timedelta(days=5)], 5)
    assert_adds_up(short, df)


@pytest.mark.parametrize(("method", "n_windows"), [("variance", 1), ("mint", 4)])
def test_weights_come_from_held_out_errors(monkeypatch, method, n_windows):
    df = stores()
    model = model_of(method)
    seen = []

    def keep(*arguments):
        seen.append(find(*arguments))
        return seen[-1]

    find = reconcile.find_held_out_errors
    monkeypatch.setattr(reconcile, "find_held_out_errors", keep)
    model.fit(df).predict(14, level=None)
    (errors,) = seen
    assert errors.shape == (18, n_windows * 14)
    wide = model_of("none").cross_validation(df, 14, n_windows=n_windows)
    wide = wide.assign(error=wide["y"] - wide[NAME]).pivot(
        index="unique_id", columns="ds", values="error"
    )
    names = list(model.fitted_panel.panel.names)
    np.testing.assert_allclose(errors, wide.loc[names], rtol=1e-9, atol=1e-9)


def test_small_series_beside_large_ones_keep_their_forecasts():
    """The gap of the total is a thousand times the values of the small ones."""
    df = stores(120)
    small = df["store"] == "CA_1"
    df["y"] = np.where(small, df["y"] / 1e3, df["y"] * 1e3)
    names = df.loc[small, "unique_id"].unique()
    alone, found, even = (
        wide_of(model_of(method).forecast(df, 5))[names]
        for method in ("none", "variance", "structural")
    )
    np.testing.assert_allclose(found, alone, rtol=0.05)
    assert np.abs(even / alone - 1.0).to_numpy().max() > 1.0


def test_a_constant_series_keeps_its_value():
    df = stores()
    df.loc[df["unique_id"] == "toys@TX_2", "y"] = 7.0
    found = wide_of(model_of("variance").forecast(df, 5))
    np.testing.assert_allclose(found["toys@TX_2"], 7.0, rtol=1e-9)
    assert_adds_up(model_of("variance").forecast(df, 5), df)


@pytest.mark.parametrize("parameters", [{}, {"scope": "local", "preset": "fast"}])
def test_a_saved_model_forecasts_and_is_updated_the_same(tmp_path, parameters):
    df = stores(100)
    old, new = df[df["ds"] < "2023-04-05"], df[df["ds"] >= "2023-04-05"]
    model = model_of(**parameters).fit(old)
    model.save(tmp_path / "stores.model")
    loaded = RBFDiffNet.load(tmp_path / "stores.model")
    assert loaded.hierarchy == (("state",), ("state", "store"))
    pd.testing.assert_frame_equal(loaded.hierarchy_, model.hierarchy_)
    pd.testing.assert_frame_equal(loaded.predict(4), model.predict(4))
    model.update(new), loaded.update(new)
    pd.testing.assert_frame_equal(loaded.predict(4), model.predict(4))
    assert_adds_up(model.predict(4), df)


def test_an_update_is_a_fit_to_everything():
    df = stores(100)
    begins = (df["store"] == "TX_3") & (df["ds"] < "2023-04-06")  # after the first fit
    df = df[~begins]
    model = model_of("structural").fit(df[df["ds"] < "2023-04-05"])
    assert "TX/TX_3" not in model.fitted_panel.panel.names
    found = wide_of(model.update(df[df["ds"] >= "2023-04-05"]).predict(4))
    expected = wide_of(model_of("structural").fit(df).predict(4))
    pd.testing.assert_frame_equal(found, expected, rtol=1e-9)
    assert model.hierarchy_["level"].tolist()[-1] == "series"


def test_one_network_for_all_learns_from_groups_and_static_inputs():
    df = stores(100).assign(size=lambda d: pd.factorize(d["unique_id"])[0] * 1.5)
    new = df["ds"] >= "2023-04-08"
    model = RBFDiffNet("D", scope="global", static_exog=["size"], hierarchy=["state", "store"])
    model.fit(df[~new]).update(df[new], refit="weights")
    assert_adds_up(model.predict(4), df)
    others = df[df["state"] == "CA"].assign(unique_id=lambda d: "new " + d["unique_id"])
    assert_adds_up(model.predict(4, new_df=others), others)


def test_a_series_cannot_move_to_another_group():
    df = stores(100)
    model = model_of().fit(df[df["ds"] < "2023-04-05"])
    with pytest.raises(ValueError, match=r"column 'store' is 'X' in the new rows, but was 'CA_1'"):
        model.update(df[df["ds"] >= "2023-04-05"].assign(store="X"))


def test_inputs_known_ahead_are_those_of_series():
    df = stores().assign(promotion=lambda d: (d["ds"].dt.day % 5 == 0) & (d["state"] == "CA"))
    df["y"] += 50.0 * df["promotion"]
    model = model_of(calendar=["dayofweek"]).fit(df)
    future = model.make_future_frame(6)
    assert set(future["unique_id"]) == set(df["unique_id"])
    plans = [future.assign(promotion=p, state="CA") for p in (0.0, 1.0)]
    without, promoted = (wide_of(model.predict(6, X_df=plan)) for plan in plans)
    assert_adds_up(model.predict(6, X_df=plans[1]), df)
    assert (promoted["CA/CA_1"] > without["CA/CA_1"] + 50.0).all()
    pd.testing.assert_frame_equal(
        model.forecast(df, 6, X_df=plans[1]), model.predict(6, X_df=plans[1], level=None), rtol=1e-9
    )


@pytest.mark.parametrize("preset", ["instant", "fast"])
def test_panels_in_chunks_are_forecast_as_in_one(monkeypatch, preset):
    df = stores().assign(promotion=lambda d: (d["ds"].dt.day % 5 == 0) * 1.0)
    model = model_of(preset=preset)
    future = model.fit(df).make_future_frame(4).assign(promotion=0.0)
    found = model.forecast(df, 4, X_df=future, level=[80])
    halves = [np.arange(9), np.arange(9, 18)]
    monkeypatch.setattr("rbfdiffnet.forecasting.chunks._split", lambda *_: halves)
    # All series are learned from, so nothing depends on chunks but what is in memory.
    monkeypatch.setattr("rbfdiffnet.forecasting.chunks.find_limit", lambda _: 2**64 - 1)
    chunks = model.forecast(df, 4, X_df=future, level=[80])
    assert_adds_up(chunks, df)
    tolerance = 0.2 if preset == "instant" else 1e-9  # effects are learned from the first half
    np.testing.assert_allclose(chunks[NAME], found[NAME], rtol=tolerance)


def test_explanations_add_up_to_reconciled_forecasts():
    df = stores()
    model = model_of().fit(df)
    terms = model.explain(2, ids=["CA", "food@CA_1"])
    assert "hierarchy" in set(terms["part"])
    found = model.predict(2, level=None).set_index(["unique_id", "ds"])[NAME]
    total = terms.groupby(["unique_id", "ds"])["contribution"].sum()
    np.testing.assert_allclose(total, found[total.index], rtol=1e-9)


def test_plots_show_groups():
    pytest.importorskip("matplotlib")
    figure = model_of().fit(stores()).plot(4, ids=["Total", "CA"])
    assert [ax.get_title(loc="left") for ax in figure.axes[:2]] == ["Total", "CA"]


def test_levels_without_a_hierarchy_are_refused():
    df = stores().drop(columns=["state", "store"])
    with pytest.raises(AttributeError, match="There is no hierarchy"):
        _ = RBFDiffNet("D", **FAST).fit(df).hierarchy_


@pytest.mark.parametrize("convert", [lambda df: df, to_polars])
def test_frames_go_through_hierarchicalforecast(convert):
    utils = pytest.importorskip("hierarchicalforecast.utils", reason="extra [ecosystem]")
    core = pytest.importorskip("hierarchicalforecast.core", reason="extra [ecosystem]")
    methods = pytest.importorskip("hierarchicalforecast.methods", reason="extra [ecosystem]")
    df = make_stores()
    df["unique_id"] = df["state"] + "/" + df["store"] + "/" + df["kind"]
    levels = ["state", "store", "kind"]
    spec = [levels[: k + 1] for k in range(3)]
    _, S, tags = utils.aggregate(df.drop(columns="unique_id"), spec)
    total = {"unique_id": "Total", **dict.fromkeys(tags["state/store/kind"], 1.0)}
    S, tags = convert(pd.concat([pd.DataFrame([total]), S])), {"Total": ["Total"], **tags}
    frame = convert(df)
    alone = model_of("none", levels).forecast(frame, 4)
    ways = {
        "structural": methods.MinTrace(method="wls_struct"),
        "bottom_up": methods.BottomUp(),
    }
    for name, theirs in ways.items():
        done = core.HierarchicalReconciliation([theirs]).reconcile(
            Y_hat_df=alone, S_df=S, tags=tags
        )
        ours = model_of(name, levels).forecast(frame, 4)
        done, ours = (getattr(f, "to_pandas", lambda f=f: f)() for f in (done, ours))
        column = next(c for c in done.columns if c.startswith(f"{NAME}/"))
        pd.testing.assert_frame_equal(
            wide_of(done, column), wide_of(ours), rtol=1e-8, check_names=False
        )


def test_every_path_adds_up_and_totals_with_them():
    df = stores()
    model = model_of("structural").fit(df)
    paths = model.simulate(5, 30, seed=1)
    wide = paths.pivot(index=["sample_id", "ds"], columns="unique_id", values=NAME)
    levels = model.hierarchy_.set_index("unique_id")["level"]
    bottom = wide[[name for name in wide if levels[name] == "series"]].sum(axis=1)
    np.testing.assert_allclose(wide["Total"], bottom, rtol=1e-9)
    weeks = model.predict(14, level=[80], totals=7)
    points = weeks.pivot(index="ds", columns="unique_id", values=NAME)
    own = points[[name for name in points if levels[name] == "series"]].sum(axis=1)
    np.testing.assert_allclose(points["Total"], own, rtol=1e-9)
    assert (weeks[f"{NAME}-lo-80"] < weeks[f"{NAME}-hi-80"]).all()


@pytest.mark.parametrize("way", [*METHODS, "none"])
def test_what_was_never_negative_stays_so(way):
    y = np.random.default_rng(0).poisson([[0.3], [0.5], [40.0], [90.0]], (4, 120))
    days = pd.date_range("2024-01-01", periods=120)
    df = pd.concat(
        pd.DataFrame({"unique_id": f"s{i}", "ds": days, "y": own, "half": "ab"[i % 2]})
        for i, own in enumerate(y)
    )
    model = model_of(way, ["half"]).fit(df)
    found = model.predict(5, level=[80, 99])
    assert found.drop(columns=["unique_id", "ds"]).min().min() >= 0.0
    assert model.simulate(5, 50)[NAME].min() >= 0.0


def test_hidden_windows_are_forecast_once(monkeypatch):
    calls, before = [], reconcile.find_held_out_errors

    def count(*args):
        calls.append(args)
        return before(*args)

    monkeypatch.setattr(reconcile, "find_held_out_errors", count)
    df = stores().assign(price=1.0)
    model = model_of("variance").fit(df)
    future = model.make_future_frame(3).assign(price=1.0)
    both = pd.concat([future.assign(scenario="low"), future.assign(scenario="high", price=2.0)])
    for ask in (
        lambda: model.predict(3, both, level=[80]),
        lambda: model.predict(3, both, level=[80], totals=3),
        lambda: model.simulate(3, 5, X_df=both),
        lambda: model.forecast(df, 3, both, level=[80], totals=3),
    ):
        calls.clear()
        ask()
        assert len(calls) == 1


@pytest.mark.parametrize("method", [*METHODS, "none"])
def test_bounds_are_those_of_series_not_of_groups(method):
    df = stores()
    free = model_of(method).forecast(df, 5, level=[80])
    top = 1.001 * float(free.loc[~free["unique_id"].isin(groups_of(free)), f"{NAME}-hi-80"].max())
    bound = model_of(method, upper=top, lower=-top).forecast(df, 5, level=[80])
    np.testing.assert_allclose(bound[NAME], free[NAME], rtol=1e-9)
    np.testing.assert_allclose(bound[f"{NAME}-hi-80"], free[f"{NAME}-hi-80"], rtol=1e-9)


def test_bounds_of_groups_in_backtests_count_series_that_have_begun():
    df = stores(120)
    late = ~df["store"].isin(["CA_1", "TX_1"]) & (df["ds"] < df["ds"].max() - pd.Timedelta(days=40))
    df = df[~late]
    found = model_of(lower=50).cross_validation(df, 5, n_windows=10, step_size=5, level=[80])
    for cutoff, window in found.groupby("cutoff"):
        n = 4 if cutoff < df["ds"].max() - pd.Timedelta(days=40) else 10
        assert window["unique_id"].nunique() == n + len(groups_of(window))
        assert_adds_up(window, df)
        assert window.loc[window["unique_id"] == "Total", f"{NAME}-lo-80"].min() >= 50 * n


def groups_of(found):
    names = found["unique_id"].unique()
    return [name for name in names if "@" not in name]


def test_paths_of_a_total_spread_as_much_as_sums_of_independent_series_do():
    rng = np.random.default_rng(0)
    n, T = 12, 200
    df = pd.DataFrame(
        {
            "unique_id": np.repeat([f"s{i:02d}" for i in range(n)], T),
            "ds": np.tile(pd.date_range("2023-01-01", periods=T), n),
            "y": rng.poisson(20.0, n * T).astype(float),
            "state": np.repeat(["A", "B"], n * T // 2),
        }
    )
    model = model_of("structural", ("state",), preset="default").fit(df)
    paths = model.simulate(7, 400)
    total = paths[paths["unique_id"] == "Total"].groupby("ds")[NAME]
    width = (total.quantile(0.9) - total.quantile(0.1)).mean()
    assert width == pytest.approx(2.0 * 1.2816 * np.sqrt(20.0 * n), rel=0.2)


def with_newcomer(df, **columns):
    row = {**df.iloc[-1].to_dict(), "unique_id": "new", "ds": df["ds"].max(), "y": np.nan}
    return pd.concat([df, pd.DataFrame([row | columns])], ignore_index=True)


@pytest.mark.parametrize("method", METHODS)
def test_a_series_without_values_adds_to_its_groups_and_moves_no_one(method):
    df = stores()
    new = with_newcomer(df)
    bottom_up = wide_of(model_of("bottom_up", preset="default").forecast(new, 3))
    model = model_of(method, preset="default")
    forecasts = model.forecast(new, 3, level=[80])
    assert_adds_up(forecasts, new)
    found, upper = wide_of(forecasts), wide_of(forecasts, f"{NAME}-hi-80")
    np.testing.assert_allclose(found["new"], bottom_up["new"])
    others = df["unique_id"].unique()
    np.testing.assert_allclose(found[others], bottom_up[others], rtol=0.1)
    own = (upper - found)["new"]
    assert (own > 0).all()
    assert ((upper - found)["Total"] >= own * (1 - 1e-9)).all()
    (problem,) = model.report_["problem"]
    assert problem == "no values; 2 series of the same state, store"


def test_a_group_of_newcomers_only_is_their_sum():
    df = with_newcomer(stores(), state="NY", store="NY_1")
    forecasts = model_of("mint", preset="default").forecast(df, 2, level=[80])
    assert_adds_up(forecasts, df)
    found = wide_of(forecasts)
    assert (found["NY"] > 0).all()
    assert (wide_of(forecasts, f"{NAME}-hi-80")["NY"] > found["NY"]).all()


def test_series_without_any_value_still_add_up():
    df = stores().assign(y=np.nan)
    assert_adds_up(model_of("mint").forecast(df, 2), df)


def priced(n=90):
    df = stores(n)
    price = np.random.default_rng(0).uniform(1.0, 3.0, len(df))
    return df.assign(price=price, y=df["y"] - 2.0 * price)


@pytest.mark.parametrize("method", METHODS)
def test_an_input_far_out_moves_only_its_series_and_the_sums(method):
    df = priced()
    model = model_of(method).fit(df)
    usual = model.make_future_frame(3).assign(price=2.0)
    far = usual.assign(price=usual["price"].where(usual.index != 1, 200.0))  # the second step
    flagged, day = far.loc[1, ["unique_id", "ds"]]
    before, after = (model.predict(3, X_df=X, level=[80]) for X in (usual, far))
    assert_adds_up(after, df)
    one, other = wide_of(before), wide_of(after)
    others = df["unique_id"].unique()
    others = others[others != flagged]
    np.testing.assert_allclose(other.loc[day, others], one.loc[day, others], rtol=0.05)
    np.testing.assert_allclose(other.drop(index=day), one.drop(index=day))
    alone = RBFDiffNet("D", **FAST).fit(df.drop(columns=["state", "store"]))
    alone = alone.predict(3, X_df=far, level=[80])
    np.testing.assert_allclose(other.loc[day, flagged], wide_of(alone).loc[day, flagged])
    for forecasts in (alone, after):
        low, high = (wide_of(forecasts, f"{NAME}-{end}-80").loc[day] for end in ("lo", "hi"))
        width = high - low
        assert width[flagged] > 10 * width[others].median()
        if forecasts is after:
            state = df.set_index("unique_id")["state"][flagged].iloc[0]
            for group in ("Total", state):
                assert width[group] >= 0.7 * width[flagged]


def test_windows_of_a_backtest_know_of_inputs_far_out():
    df = priced()
    last = df["ds"].max()
    at = (df["unique_id"] == "food@CA_1") & (df["ds"] == last)
    found = [
        model_of("variance").cross_validation(own, h=2, n_windows=1, level=[80])
        for own in (df, df.assign(price=df["price"].mask(at, 200.0)))
    ]
    one, other = (wide_of(own).loc[last] for own in found)
    others = df["unique_id"].unique()[1:]
    np.testing.assert_allclose(other[others], one[others], rtol=0.05)
    low, high = (wide_of(found[1], f"{NAME}-{end}-80").loc[last] for end in ("lo", "hi"))
    assert (high - low)["Total"] >= 0.7 * (high - low)["food@CA_1"] > 0


def test_counts_stay_whole_where_forecasts_of_series_do_not_move():
    df = stores()
    df["y"] = (df["y"] / 20.0).round()
    model = model_of("bottom_up", preset="default", lower=0).fit(df)
    level = model.hierarchy_.set_index("unique_id")["level"]
    found = model.predict(5, level=[80], quantiles=[0.3, 0.9])
    own = found.loc[found["unique_id"].map(level) == "series"]
    for name in (f"{NAME}-q-30", f"{NAME}-q-90"):
        assert (own[name] == own[name].round()).all()
    paths = model.simulate(5, 20)[NAME]
    assert (paths == paths.round()).all()


@pytest.mark.parametrize("reconcile", ["none", "bottom_up"])
def test_bounds_do_not_move_quantiles_that_are_inside(reconcile):
    df = stores()
    wide, narrow = (
        model_of(reconcile, preset="instant", lower=lower).forecast(df, 3, level=[99])
        for lower in (None, 90.0)
    )
    series = wide["unique_id"].isin(df["unique_id"])
    expected = wide.loc[series, f"{NAME}-hi-99"].clip(lower=90.0)
    np.testing.assert_allclose(narrow.loc[series, f"{NAME}-hi-99"], expected)


def test_what_was_asked_before_does_not_matter():
    df = stores()
    fresh, used = (model_of("variance", preset="default").fit(df) for _ in range(2))
    used.simulate(3, 2)
    pd.testing.assert_frame_equal(used.predict(3, totals=3), fresh.predict(3, totals=3))


def test_another_hierarchy_needs_another_fit():
    df = stores()
    plain = df.drop(columns=["state", "store"])
    for fitted, now in ((None, ["state"]), (["state"], ["store"]), (["state"], None)):
        model = RBFDiffNet("D", hierarchy=fitted, **FAST).fit(df if fitted else plain)
        model.set_params(hierarchy=now)
        with pytest.raises(RuntimeError, match=r"call fit\(df\) first"):
            model.predict(2)
    df = df.drop(columns="store")
    model.set_params(hierarchy=["state"]).fit(df)
    assert_adds_up(model.predict(2), df, columns=("state",))
    assert len(model.hierarchy_) == 13


@pytest.mark.parametrize("reconcile", ["structural", "variance", "mint"])
def test_a_series_with_a_single_value_does_not_ruin_the_others_of_its_group(reconcile):
    rng, n = np.random.default_rng(0), 60
    week, days = 10.0 * np.sin(2 * np.pi * np.arange(n) / 7), pd.date_range("2024-01-01", periods=n)
    parts = [
        pd.DataFrame({"unique_id": f"g{i}", "ds": days, "y": 50.0 + week + rng.normal(0, 3, n)})
        for i in range(4)
    ]
    new = pd.DataFrame({"unique_id": ["new"], "ds": days[-1:], "y": [5000.0]})
    found = []
    for df in (pd.concat(parts), pd.concat([*parts, new])):
        df["store"] = np.where(df["unique_id"] < "g2", "A", "B")
        model = RBFDiffNet("D", hierarchy=["store"], reconcile=reconcile)
        found.append(model.forecast(df, 5).set_index(["unique_id", "ds"])["RBFDiffNet"])
    good = [f"g{i}" for i in range(4)]
    assert (found[1].loc[good] - found[0].loc[good]).abs().max() < 1.0
    whole = found[1].loc[[*good, "new"]].groupby("ds").sum()
    np.testing.assert_allclose(found[1].loc["Total"], whole)
    np.testing.assert_allclose(found[1].loc["new"], 5000.0)
