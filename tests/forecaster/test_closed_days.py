"""Weekdays on which a series has no values, for ever or for a while."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preparations import prepare
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.series.prepare import latest_values

WEEK = np.array([100.0, 90.0, 95.0, 110.0, 140.0, 180.0, 40.0])
NETWORKS = [{"preset": "fast"}, {"scope": "local"}, {"scope": "global"}]
EVERY_SCOPE = pytest.mark.parametrize("settings", [*NETWORKS, {}])
SLOW_STACK = pytest.mark.parametrize(
    "settings", [*NETWORKS, pytest.param({}, marks=pytest.mark.slow)]
)


def shop(rng, weeks, closed=slice(None), names="abcd"):
    """Sales of so many weeks, some of whose Sundays have no value."""
    days = pd.date_range("2020-01-06", periods=7 * weeks)
    frames = []
    for name in names:
        y = rng.poisson(WEEK[days.day_of_week]).astype(float)
        y[6::7][closed] = np.nan
        frames.append(pd.DataFrame({"unique_id": name, "ds": days, "y": y}))
    return pd.concat(frames, ignore_index=True)


@SLOW_STACK
def test_closed_weekdays_do_as_little_harm_as_zeros(settings, rng):
    df = shop(rng, 40).fillna(0.0)
    last = df["ds"].max() - pd.Timedelta(days=14)
    past, future = df[df["ds"] <= last], df[df["ds"] > last]
    open_ = future[future["ds"].dt.day_of_week != 6]

    def error(rows):
        forecast = RBFDiffNet("D", **settings).fit(rows).predict(15, level=None)
        both = open_.merge(forecast, on=["unique_id", "ds"])
        assert len(both) == len(open_)
        return np.abs(both["y"] - both["RBFDiffNet"]).mean()

    is_open = past["ds"].dt.day_of_week != 6
    expected = error(past)
    assert error(past.assign(y=past["y"].where(is_open))) < 1.15 * expected
    assert error(past[is_open]) < 1.15 * expected


@SLOW_STACK
def test_saved_models_know_what_is_closed(settings, rng, tmp_path):
    df = shop(rng, 200, closed=slice(45, None), names="ab")
    model = RBFDiffNet("D", **settings).fit(df)
    model.save(tmp_path / "model.npz")
    expected = model.predict(7)
    assert RBFDiffNet.load(tmp_path / "model.npz").predict(7).equals(expected)


@EVERY_SCOPE
def test_outliers_on_days_that_were_closed_are_reported(settings, rng):
    df = shop(rng, 60, closed=slice(None, -2), names="a")
    df.loc[df.index[[-8, -1]], "y"] = [5_000.0, 100_000.0]
    report = RBFDiffNet("D", **settings).fit(df).report_
    assert report["problem"].str.split(",").str[0].tolist() == ["58 missing values", "2 outliers"]


@given(
    st.lists(st.integers(0, 146), max_size=12),
    st.lists(st.integers(0, 20), max_size=3),
    st.integers(40, 146),
    st.integers(1, 21),
)
def test_windows_are_as_they_looked_then(missing, opened, origin, size):
    rng = np.random.default_rng(0)
    y = rng.poisson(np.tile(WEEK, 21)).astype(float)
    sundays = y[6::7].copy()
    y[6::7] = np.nan
    y[6::7][opened] = sundays[opened]
    y[missing] = np.nan
    preparation = prepare(y, np.zeros((y.size, 0)), season_length=7)
    origins = np.array([origin])
    ((values, known),) = latest_values([preparation], [y], [origins], [size])
    ((then, seen),) = latest_values([preparation], [y[:origin]], [origins], [size])
    np.testing.assert_array_equal(values, then)
    np.testing.assert_array_equal(known, seen)


def add_up(rows, totals):
    """Sum up the open days of each period, one after the other: the brute force of totals."""
    sums = {}
    for name, own in rows.groupby("unique_id"):
        for k, row in enumerate(own.itertuples(index=False)):
            period = row.ds.to_period("W").start_time if totals == "W" else k // totals
            total, count = sums.get((name, period), (0.0, 0))
            is_open = name in "cd" or row.ds.day_of_week != 6
            sums[name, period] = total + row.RBFDiffNet * is_open, count + is_open
    return np.array(list(sums.values()))


@EVERY_SCOPE
@pytest.mark.parametrize("totals", ["W", 7])
def test_totals_are_sums_of_open_days(settings, totals, rng):
    """Series end on a Saturday, so their first period of seven days begins with a closed one."""
    closed, full = shop(rng, 30, names="ab"), shop(rng, 30, closed=slice(0), names="cd")
    df = pd.concat([closed.dropna(), full])[lambda own: own["ds"] < "2020-08-02"]
    model = RBFDiffNet("D", lower=0, **settings).fit(df)
    days, found = model.predict(14, level=None), model.predict(14, level=None, totals=totals)
    expected = add_up(days, totals)
    np.testing.assert_allclose(found[["RBFDiffNet", "steps"]].to_numpy(), expected, rtol=1e-12)
    again = RBFDiffNet("D", lower=0, **settings).forecast(df, 14, totals=totals)
    pd.testing.assert_frame_equal(again, found)


def test_totals_of_paths_are_sums_of_open_days(rng, monkeypatch):
    monkeypatch.setattr("rbfdiffnet.forecaster.N_PATHS", 101)
    df = pd.concat([shop(rng, 30, names="ab"), shop(rng, 30, closed=slice(0), names="cd")])
    model = RBFDiffNet("D", preset="fast").fit(df.dropna())
    paths = model.simulate(14, n_paths=101, seed=0)
    sums = [add_up(own, "W")[:, 0] for _, own in paths.groupby("sample_id")]
    found = model.predict(14, level=None, quantiles=[0.1, 0.5, 0.9], totals="W")
    expected = np.quantile(sums, [0.1, 0.5, 0.9], axis=0, method="nearest").T
    np.testing.assert_allclose(found.filter(like="-q-").to_numpy(), expected, rtol=1e-12)


def test_a_period_without_open_days_is_zero(rng):
    model = RBFDiffNet("D", preset="fast").fit(shop(rng, 20, names="a"))
    found = model.predict(7, level=None, totals="D")
    assert found["steps"].tolist() == [1] * 6 + [0]
    assert found["RBFDiffNet"].iloc[-1] == 0.0


def test_closed_weekdays_have_a_line(rng, tmp_path):
    df = shop(rng, 30, names="ab")
    df = df[(df["unique_id"] == "a") | df["ds"].lt("2020-02-01")]
    df.loc[df["unique_id"] == "b", "y"] = 1.0  # less than four weeks
    model = RBFDiffNet("D", preset="fast").fit(df)
    line = ("a", "no values on Sundays", "they repeat the day before; totals leave them out")

    def lines():
        assert model.notes_["kind"].tolist().count("closed") == 1
        return [*model.report_.itertuples(index=False, name=None)]

    assert line in lines()
    model.predict(7)
    assert line in lines()
    model.save(tmp_path / "model.npz")
    assert line in [*RBFDiffNet.load(tmp_path / "model.npz").report_.itertuples(index=False)]
    model.forecast(df, 7)
    assert line in lines()
    model.cross_validation(df, 7)
    assert line in lines()
    model.update(pd.DataFrame({"unique_id": "a", "ds": [pd.Timestamp("2020-08-09")], "y": 1.0}))
    assert "closed" not in model.notes_["kind"].tolist()


@pytest.mark.parametrize("all_closed", [True, False])
def test_totals_of_a_hierarchy_add_up(all_closed, rng):
    """A day on which every series is closed is left out, the closed days of some are 0."""
    df = shop(rng, 20, closed=slice(None) if all_closed else slice(0), names="ab")
    df = pd.concat([df, shop(rng, 20, names="cd")])
    df = df.assign(town=df["unique_id"].map(dict(zip("abcd", "xxyy", strict=True))))
    model = RBFDiffNet("D", preset="fast", hierarchy=["town"], lower=0).fit(df)
    found = model.predict(14, level=None, totals="W")
    assert set(found["steps"]) == {6 if all_closed else 7}
    weeks = found.pivot(index="ds", columns="unique_id", values="RBFDiffNet")
    np.testing.assert_allclose(weeks["x"] + weeks["y"], weeks["Total"])
    np.testing.assert_allclose(weeks["c"] + weeks["d"], weeks["y"])
    days = model.predict(14, level=None)
    days = days[(not all_closed) | (days["ds"].dt.day_of_week != 6)]
    sums = days.groupby(["unique_id", days["ds"].dt.to_period("W")])["RBFDiffNet"].sum()
    np.testing.assert_allclose(sums.unstack(0)[weeks.columns], weeks)


@pytest.mark.parametrize("settings", [{"preset": "fast"}, {"preset": "instant"}])
def test_days_that_were_always_zero_are_held_at_zero_as_far_as_that_is_sure(settings, rng):
    df = shop(rng, 20).fillna(0.0)
    wanted = {"level": None, "quantiles": [0.1, 0.9, 0.95, 0.97]}  # 20 zeros: 1 - 1 / 22 is .955
    model = RBFDiffNet("D", lower=0, **settings).fit(df)
    found = model.predict(14, **wanted)
    sunday = found["ds"].dt.day_of_week == 6
    held = found.loc[sunday].set_index("unique_id")
    assert (held[["RBFDiffNet-q-10", "RBFDiffNet-q-90", "RBFDiffNet-q-95"]] == 0.0).all(axis=None)
    assert (held["RBFDiffNet-q-97"] > 0.0).all()
    assert (found.loc[~sunday, "RBFDiffNet-q-10"] > 0.0).all()
    paths = model.simulate(14, 100)
    of_sundays = paths.loc[paths["ds"].dt.day_of_week == 6, "RBFDiffNet"]
    assert (of_sundays == 0.0).mean() > 0.9


def test_series_that_are_often_zero_and_days_that_were_not_always_are_not_held(rng):
    df = shop(rng, 20, names="a").fillna(0.0)
    rare = df.assign(y=rng.poisson(0.3, len(df)).astype(float), unique_id="rare")
    rare.loc[rare["ds"].dt.day_of_week == 6, "y"] = 0.0
    opened = df.assign(unique_id="opened")
    opened.loc[opened["ds"] == opened["ds"].max() - pd.Timedelta(days=14), "y"] = 50.0
    short = df.tail(21).assign(unique_id="short")
    model = RBFDiffNet("D", preset="instant", lower=0).fit(pd.concat([rare, opened, short]))
    found = model.predict(7, level=None, quantiles=[0.99])
    sundays = found[found["ds"].dt.day_of_week == 6]
    assert (sundays["RBFDiffNet-q-99"] > 0.0).all()


@pytest.mark.parametrize("scope", ["local", "auto"])
def test_a_day_on_which_a_shop_will_be_open_is_not_held_at_zero(scope, rng):
    df = shop(rng, 30, names="ab").fillna(0.0)
    df["open"] = (df["ds"].dt.day_of_week != 6).astype(float)
    model = RBFDiffNet("D", lower=0, scope=scope).fit(df)
    future = model.make_future_frame(14)
    second = future["ds"].max()  # a Sunday
    future["open"] = ((future["ds"].dt.day_of_week != 6) | (future["ds"] == second)).astype(float)
    found = model.predict(14, future, level=None, quantiles=[0.9])
    sundays = found[found["ds"].dt.day_of_week == 6]
    is_open = sundays["ds"] == second
    assert (sundays.loc[is_open, "RBFDiffNet-q-90"] > 10.0).all()
    assert (sundays.loc[~is_open, "RBFDiffNet-q-90"] == 0.0).all()


def test_a_closed_day_of_one_shop_is_zero_in_a_hierarchy(rng):
    df = shop(rng, 30)
    df.loc[df["unique_id"] != "a", "y"] = df["y"].fillna(60.0)
    df["town"] = np.where(df["unique_id"].isin(["a", "b"]), "north", "south")
    model = RBFDiffNet("D", preset="instant", hierarchy=["town"], reconcile="structural").fit(df)
    found = model.predict(7, level=None, quantiles=[0.5, 0.9]).set_index(["unique_id", "ds"])
    own = found.loc["a"].iloc[-1]
    other = found.loc["b"].iloc[-1]
    assert own["RBFDiffNet-q-90"] < 0.1 * other["RBFDiffNet-q-90"]
    paths = model.simulate(7, 50)
    sunday = paths["ds"] == paths["ds"].max()
    values = paths[sunday].groupby("unique_id")["RBFDiffNet"].mean()
    assert values["a"] < 0.1 * values["b"]
