"""Inputs besides the lags: future, past, static, calendar."""

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from panels import LOCAL, NAME, QUICK, forecast, future_of, make_panel
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.panel.calendar import Event, Holidays


@pytest.fixture(scope="module", params=[QUICK, {}], ids=["networks", "stack"])
def with_price(request):
    df = make_panel("ba", n=80, columns=["price", "offer"])
    model = RBFDiffNet("D", **request.param).fit(df)
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
        (lambda x: x.drop(columns="price"), r"X_df has no column 'price'.*make_future_frame"),
        (lambda x: x.assign(prize=1.0), r"a column 'prize' that was not there in training"),
        (lambda x: x.drop(columns="ds"), r"X_df has no column 'ds'"),
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
    model = RBFDiffNet("D", **LOCAL, past_exog=["signal"])
    with_signal = model.cross_validation(df, 1, n_windows=10)
    without = RBFDiffNet("D", **LOCAL).cross_validation(df.drop(columns="signal"), 1, n_windows=10)
    errors = [np.abs(frame[NAME] - frame["y"]).mean() for frame in (with_signal, without)]
    assert errors[0] < 0.6 * errors[1]


@pytest.mark.parametrize("parameters", [{}, QUICK], ids=str)
def test_inputs_of_the_past_that_end_are_said(parameters):
    df = make_panel("abc", n=60, columns=["visitors"])
    late = df["ds"] >= "2023-02-20"
    df.loc[(df["unique_id"] == "b") & late | (df["unique_id"] == "c"), "visitors"] = np.nan
    df.loc[5, "visitors"] = np.nan  # a gap is no end
    model = RBFDiffNet("D", **parameters, past_exog=["visitors"]).fit(df)
    found = model.report_[model.report_["problem"].str.startswith("'visitors'")]
    assert found.to_numpy().tolist() == [
        ["b", "'visitors' has no value from 2023-02-20 on", "forecast without them"],
        ["c", "'visitors' has no value at all", "forecast without them"],
    ]


def test_inputs_of_groups_do_not_end():
    df = make_panel("ab", n=60, columns=["visitors"]).assign(shop="x")
    df.loc[59, "visitors"] = np.nan
    model = RBFDiffNet("D", **QUICK, past_exog=["visitors"], hierarchy=["shop"]).fit(df)
    lines = model.report_["problem"].str.contains("'visitors' has no value")
    assert model.report_.loc[lines, "unique_id"].tolist() == ["a"]


def test_static_inputs():
    df = make_panel("bac", n=80, columns=["region"])
    model = RBFDiffNet("D", scope="global", static_exog=["region"]).fit(df)
    found = model.predict(3)
    assert np.isfinite(found[NAME]).all()
    # The others have no use for them.
    for scope in (None, "local"):
        local = forecast(df, 3, static_exog=["region"], scope=scope)
        without = forecast(df.drop(columns="region"), 3, scope=scope)
        assert_frame_equal(local, without, check_exact=True)
    df.loc[5, "region"] = "east"
    with pytest.raises(ValueError, match=r"'region' is said to be static, but changes within.*'b'"):
        RBFDiffNet("D", scope="global", static_exog=["region"]).fit(df)
    for columns in ({"past_exog": ["wind"]}, {"static_exog": ["wind"]}):
        with pytest.raises(ValueError, match="'wind' is not in the frame"):
            RBFDiffNet("D", **columns).fit(df)


@pytest.mark.parametrize("scope", ["local", pytest.param(None, marks=pytest.mark.slow)])
def test_unseen_amounts_follow_the_slope(scope):
    parts = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        discount = rng.choice([0, 10, 20, 40], 300, p=[0.7, 0.1, 0.1, 0.1])
        y = 100.0 * (1.0 + discount / 50.0) + rng.normal(size=300)
        part = make_panel([f"s{seed}"], n=300).assign(y=y, discount=discount)
        parts.append(part)
    model = RBFDiffNet("D", scope=scope).fit(pd.concat(parts))
    X_df = model.make_future_frame(4)
    X_df["discount"] = np.tile([0, 40, 30, 50], 6)
    found = model.predict(4, X_df)[NAME].to_numpy().reshape(6, 4).mean(axis=0)
    # What was seen is known better than what was not.
    np.testing.assert_allclose(found[:2], [100.0, 180.0], rtol=0.01)
    assert found[2] == pytest.approx(160.0, rel=0.05)
    assert found[3] == pytest.approx(200.0, rel=0.07)


@pytest.mark.parametrize(("days", "scope"), [(1, "local"), (3, "local"), (5, "local"), (3, None)])
def test_an_input_switched_on_a_few_times_keeps_its_effect(days, scope):
    df = make_panel("a", n=150).assign(opening=0)
    on = [40, 80, 95, 110, 125][:days]
    df.loc[on, "opening"] = 1
    df.loc[on, "y"] += 200.0
    model = RBFDiffNet("D", scope=scope).fit(df)
    X_df = model.make_future_frame(3).assign(opening=0)
    closed = model.predict(3, X_df)[NAME]
    X_df.loc[1, "opening"] = 1
    difference = (model.predict(3, X_df)[NAME] - closed).to_numpy()
    # Few days say little, so their effect is taken for somewhat smaller.
    assert 120.0 < difference[1] < 220.0
    np.testing.assert_array_equal(difference[[0, 2]], 0.0)
    plain = forecast(make_panel("a", n=150), 3, scope=scope)[NAME]
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


@pytest.mark.parametrize(
    ("name", "given"), [("calendar", ["dayofweek", "month"]), ("lags", [1, 7])]
)
def test_lists_may_be_arrays_or_columns(name, given, tmp_path):
    df = make_panel("a", n=60)
    expected = RBFDiffNet("D", **QUICK | {name: given}).forecast(df, 3)
    for other in (np.array(given), pd.Series(given)):
        model = RBFDiffNet("D", **QUICK | {name: other}).fit(df)
        model.save(tmp_path / "model.npz")
        found = RBFDiffNet.load(tmp_path / "model.npz").predict(3, level=None)
        assert found.equals(expected)


def test_calendar_needs_dates():
    df = make_panel("a", n=60).assign(ds=np.arange(60))
    for parameters in ({"calendar": "auto"}, {"events": [Event("x", ["2023-01-04"])]}):
        with pytest.raises(ValueError, match="need dates"):
            RBFDiffNet(1, **parameters).fit(df)
    with pytest.raises(ValueError, match="calendar must be"):
        RBFDiffNet("D", calendar="dayofweek").fit(make_panel("a", n=60))


@pytest.mark.parametrize("scope", [None, "local"])
def test_an_event_moves_its_days_only(scope):
    df = make_panel("a", n=150)
    days = ["2023-01-20", "2023-02-21", "2023-03-25", "2023-04-29", "2023-06-02"]
    df.loc[df["ds"].isin(pd.to_datetime(days)), "y"] += 40.0
    plain = forecast(df, 7, scope=scope)
    found = forecast(df, 7, scope=scope, events=[Event("fair", days)])
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
    found = forecast(df, 7, holidays=Holidays("US", lead=2, lag=1), **QUICK)[NAME]
    difference = (found - plain).to_numpy()  # from the first to the seventh of July
    assert difference[1] > 20.0
    assert difference[4] < -15.0
    assert np.abs(np.delete(difference, [1, 4])).max() < 6.0
    for name in ("lead", "lag"):
        with pytest.raises(ValueError, match=f"Holidays: {name} counts days"):
            Holidays("US", **{name: -1})


def test_columns_of_the_future_frame_are_known_ones_even_without_inputs():
    df = make_panel().assign(region="north")
    model = RBFDiffNet("D", static_exog="region").fit(df)
    future = model.make_future_frame(2)
    expected = model.predict(2)
    assert model.predict(2, X_df=future.assign(region="north")).equals(expected)
    with pytest.raises(ValueError, match="column 'price' that was not there in training"):
        model.predict(2, X_df=future.assign(price=1.0))


SCOPES = [{}, {"preset": "instant"}, {"preset": "fast"}, LOCAL, {"scope": "global"}]


@pytest.mark.parametrize("parameters", SCOPES, ids=str)
def test_a_typo_in_a_future_input_is_said_and_widens_intervals(parameters):
    df = make_panel("ab", n=90)
    df["price"] = np.random.default_rng(1).uniform(1.0, 3.0, len(df))
    df["y"] += 5.0 * df["price"]
    model = RBFDiffNet("D", **parameters).fit(df)
    good = model.make_future_frame(2).assign(price=2.0)
    typo = good.assign(price=[2.0, 2e6, 2.0, 2.0])
    expected, found = model.predict(2, good, level=[95]), model.predict(2, typo, level=[95])
    lines = model.report_[model.report_["action"] == "extrapolated, and not to be trusted"]
    assert lines["unique_id"].tolist() == ["a"]
    assert (
        lines["problem"].str.contains(r"'price' is 2e\+06 on 2023-04-02, far from 1.* to 2.9").all()
    )
    same = [0, 2, 3]
    assert_frame_equal(found.iloc[same], expected.iloc[same], check_exact=True)
    width = found[f"{NAME}-hi-95"] - found[f"{NAME}-lo-95"]
    assert width[1] > 0.5 * abs(found[NAME][1])
    forecast = RBFDiffNet("D", **parameters)
    assert_frame_equal(forecast.forecast(df, 2, typo, level=[95]), found, rtol=1e-6)
    assert forecast.report_["problem"].isin(lines["problem"]).sum() == 1


@pytest.mark.parametrize("parameters", [{}, LOCAL], ids=str)
def test_intervals_widen_from_the_edge_of_the_range_on(parameters):
    df = make_panel("ab", n=90)
    df["price"] = np.random.default_rng(1).uniform(1.0, 3.0, len(df))
    df["y"] += 5.0 * df["price"]
    model = RBFDiffNet("D", **parameters).fit(df)
    top = df.loc[df["unique_id"] == "a", "price"].max()

    def predict(price):
        X_df = model.make_future_frame(2).assign(price=[2.0, price, 2.0, 2.0])
        return model.predict(2, X_df, level=[95])

    found = [predict(top + more) for more in (0.0, 1e-6, 0.5, 1.0, 1.9)]
    assert not any("far from" in problem for problem in model.report_["problem"])
    widths = [own.loc[1, f"{NAME}-hi-95"] - own.loc[1, f"{NAME}-lo-95"] for own in found]
    assert widths[1] == pytest.approx(widths[0], rel=1e-4)
    assert widths[0] < widths[2] < widths[3] < widths[4]
    for own in found:
        assert_frame_equal(own.iloc[[0, 2, 3]], found[0].iloc[[0, 2, 3]], check_exact=True)


@pytest.mark.parametrize("parameters", SCOPES, ids=str)
def test_an_input_that_never_changed_before_is_said_to_be_new(parameters):
    df = make_panel("ab", n=60).assign(closed=0)
    model = RBFDiffNet("D", **parameters).fit(df)
    days = model.make_future_frame(2)
    model.predict(2, days.assign(closed=[0, 0, 0, 1], scenario="fair"))
    row = ["b", "scenario 'fair': 'closed' is 1 on 2023-03-03, but was always 0 in training"]
    assert [*row, "its effect is not known, and left out"] in model.report_.to_numpy().tolist()
    model.predict(2, days.assign(closed=0))
    assert not any("closed" in problem for problem in model.report_["problem"])
    model.predict(2, days.assign(closed=[0, 1, 0, 0]), totals=2)
    assert model.report_["problem"].str.contains("'closed' is 1 on 2023-03-03").sum() == 1


def test_backtests_look_at_inputs_too():
    df = make_panel("ab", n=60).assign(closed=0.0)
    df.loc[[58, 119], "closed"] = [1.0, 1.0]
    model = RBFDiffNet("D", **QUICK)
    model.cross_validation(df, 2, n_windows=2)
    lines = [row for row in model.report_["problem"] if "closed" in row]
    days = ("2023-02-28", "2023-03-01")
    assert lines == [f"'closed' is 1 on {day}, but was always 0 in training" for day in days]


def test_inputs_of_a_hierarchy_are_looked_at_too():
    df = make_panel("ab", n=60).assign(closed=0.0, state="CA")
    model = RBFDiffNet("D", hierarchy=["state"], preset="instant").fit(df)
    model.predict(1, model.make_future_frame(1).assign(closed=[0.0, 1.0]), level=[80])
    found = model.report_[model.report_["problem"].str.contains("always 0")]
    assert found["unique_id"].tolist() == ["b"]
