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
