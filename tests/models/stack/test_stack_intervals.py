"""Intervals of the stack: how wide they are, and how often they hold."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from panels import NAME
from rbfdiffnet import RBFDiffNet
from stacks import auto, frame


def test_intervals_of_growing_series_grow(rng):
    """The latest errors count by how much larger the changes of a series have become since."""
    series = {f"s{k}": np.exp(0.15 * np.arange(24) + 0.1 * rng.normal(size=24)) for k in range(40)}
    found = auto("YS").cross_validation(frame(series, freq="YS"), 4, level=[80])
    inside = found["y"].between(found[f"{NAME}-lo-80"], found[f"{NAME}-hi-80"])
    assert 0.7 < inside.mean() < 0.95


@pytest.mark.parametrize(("h", "walk"), [(1, True), (3, False)])
def test_intervals_of_few_steps_are_covered_as_often_as_said(rng, h, walk):
    y = rng.normal(size=(150, 60 + h))
    y = y.cumsum(axis=1) if walk else y
    panel = frame({i: own[:60] for i, own in enumerate(y)}, freq="YS")
    found = auto("YS").forecast(panel, h, level=[80, 95])
    for level, least, most in ((80, 0.69, 0.88), (95, 0.89, 0.995)):
        low, high = (found[f"{NAME}-{side}-{level}"].to_numpy() for side in ("lo", "hi"))
        inside = (low <= y[:, 60:].ravel()) & (y[:, 60:].ravel() <= high)
        assert least < inside.mean() < most


def test_a_single_value_gets_a_width_of_its_own_size(rng):
    series = {i: 5e7 + 1e6 * rng.normal(size=40) for i in range(10)} | {"one": np.array([0.5])}
    found = auto().forecast(frame(series), 3, level=[80]).set_index("unique_id").loc["one"]
    assert (found[f"{NAME}-hi-80"] < 1.0).all()


def test_a_spike_at_the_end_of_one_series_leaves_the_others_their_intervals(rng):
    series = {f"s{i}": rng.normal(50, 2, 150) for i in range(6)}
    spiked = {**series, "odd": np.r_[rng.normal(50, 2, 149), 1e12]}
    found = auto("D").forecast(frame(spiked, freq="D"), 7, level=[95])
    width = found[f"{NAME}-hi-95"] - found[f"{NAME}-lo-95"]
    assert width.max() < 40.0


def test_intervals_do_not_vanish_where_no_error_is_known(rng):
    series = {f"s{i}": rng.normal(100, 5, 20) for i in range(10)}
    found = auto("MS").forecast(frame(series, freq="MS"), 24, level=[80])
    width = (found[f"{NAME}-hi-80"] - found[f"{NAME}-lo-80"]).to_numpy().reshape(10, 24)
    assert (width > 5.0).all()


def test_intervals_of_series_that_never_were_negative_end_at_zero(rng):
    series = {f"s{i}": rng.poisson(2, 90).astype(float) for i in range(5)}
    series["below"] = rng.normal(size=90)
    found = auto("D").forecast(frame(series, freq="D"), 7, level=[95]).set_index("unique_id")
    low = found[f"{NAME}-lo-95"]
    assert low.drop("below").min() >= 0.0
    assert low["below"].min() < 0.0


@pytest.mark.slow
@pytest.mark.parametrize(("n_series", "length"), [(120, 60), (60, 120)])
def test_intervals_cover_about_as_often_as_they_say(rng, n_series, length):
    from scipy.signal import lfilter

    y = 20.0 + lfilter([1.0], [1.0, -0.7], rng.normal(size=(n_series, length + 50)), axis=1)
    df = frame({f"s{k}": row[50:] for k, row in enumerate(y)}, freq="YS" if length < 100 else "MS")
    found = auto("YS" if length < 100 else "MS").cross_validation(
        df, 6, n_windows=3, level=[80, 95]
    )
    for level in (80, 95):
        inside = found["y"].between(found[f"{NAME}-lo-{level}"], found[f"{NAME}-hi-{level}"])
        assert abs(inside.mean() - level / 100) < 0.08
    errors = np.abs(found["y"] - found[NAME]).mean()
    assert errors < 1.3  # of the true conditional mean 0.8 to 1.1


@pytest.mark.parametrize("settings", [{}, {"scope": "local"}, {"scope": "global"}])
def test_series_without_a_model_borrow_errors_of_naive_forecasts(rng, settings):
    """A week that networks know well, and new series which repeat a single day of it."""
    t = np.arange(150)
    week = {f"{i:02}": 1500.0 + 300.0 * np.sin(2 * np.pi * t / 7 + i) for i in range(45)}
    week = {name: y + 30.0 * rng.normal(size=150) for name, y in week.items()}
    new = [name for name in week if int(name) >= 25]
    seen = {name: y[-13:-7] if name in new else y[:-7] for name, y in week.items()}
    frames = [
        pd.DataFrame({"unique_id": name, "ds": np.arange(143 - y.size, 143), "y": y})
        for name, y in seen.items()
    ]
    model = RBFDiffNet(1, season_length=7, **settings)
    found = model.forecast(pd.concat(frames), 7, level=[80]).set_index("unique_id")
    low, high = (found.loc[new, f"RBFDiffNet-{side}-80"].to_numpy() for side in ("lo", "hi"))
    actual = np.concatenate([week[name][-7:] for name in new])
    # Of six values the default knows how little they say.
    assert 0.6 < np.mean((low <= actual) & (actual <= high)) < (0.95 if settings else 1.0)


def covered(found, truth, level=80):
    low, high = (found[f"{NAME}-{side}-{level}"] for side in ("lo", "hi"))
    return float(np.mean((low <= truth) & (truth <= high)))


@pytest.mark.parametrize("preset", ["default", "instant"])
def test_gaps_do_not_make_intervals_narrow(rng, preset):
    y = rng.normal(10.0, 1.0, (30, 220))
    seen = np.where(rng.random((30, 200)) < 0.9, np.nan, y[:, :200])
    df = frame({f"{i:02}": row for i, row in enumerate(seen)}, freq="D").dropna()
    ends = pd.DataFrame(
        {"unique_id": [f"{i:02}" for i in range(30)], "ds": df["ds"].max(), "y": y[:, 199]}
    )
    df = pd.concat([df, ends]).drop_duplicates(["unique_id", "ds"]).sort_values(["unique_id", "ds"])
    found = RBFDiffNet("D", preset=preset).forecast(df, 20, level=[80])
    assert 0.5 < covered(found, y[:, 200:].ravel()) < 0.95


def test_two_values_far_apart_have_a_width():
    df = pd.DataFrame({"unique_id": "a", "ds": [1, 50], "y": [9.0, 11.0]})
    found = RBFDiffNet(1, season_length=7).forecast(df, 10, level=[80])
    assert (found[f"{NAME}-hi-80"] - found[f"{NAME}-lo-80"]).min() > 1.0


def test_intervals_grow_and_shrink_with_relative_effects(rng):
    promotion = (rng.random((20, 330)) < 0.2).astype(float)
    level = rng.uniform(50.0, 200.0, (20, 1))
    y = level * (1.0 + 1.5 * promotion) * (1.0 + 0.05 * rng.normal(size=(20, 330)))
    names = [f"{i:02}" for i in range(20)]
    df = frame(dict(zip(names, y[:, :300], strict=True)), freq="D")
    model = auto("D").fit(df.assign(promotion=promotion[:, :300].ravel()))
    future = model.make_future_frame(30).assign(promotion=promotion[:, 300:].ravel())
    found = model.predict(30, future, level=[80])
    truth, is_promoted = y[:, 300:].ravel(), promotion[:, 300:].ravel() > 0.0
    for days in (is_promoted, ~is_promoted):
        assert 0.65 < covered(found[days], truth[days]) < 0.92


def test_one_series_that_stopped_does_not_widen_the_others(rng):
    y = {f"{i}": 100.0 + rng.normal(size=120) for i in range(9)}
    stopped = {"stopped": np.r_[100.0 + rng.normal(size=114), np.zeros(6)]}
    alone, beside = (
        auto().forecast(frame(series), 12, level=[95]).set_index("unique_id")
        for series in (y, y | stopped)
    )
    widths = [
        (f[f"{NAME}-hi-95"] - f[f"{NAME}-lo-95"]).loc[list(y)].mean() for f in (alone, beside)
    ]
    assert widths[1] < 2.0 * widths[0]


def test_kinds_of_series_in_one_panel_are_covered_each(rng):
    walks_ = {f"walk{i:02}": 100.0 + rng.normal(size=132).cumsum() for i in range(40)}
    noise = {f"noise{i:02}": 100.0 + rng.normal(size=132) for i in range(40)}
    both = walks_ | noise
    found = auto().forecast(frame({name: y[:120] for name, y in both.items()}), 12, level=[80])
    for kind in (walks_, noise):
        own = found[found["unique_id"].isin(list(kind))]
        truth = np.concatenate([both[name][120:] for name in own["unique_id"].unique()])
        assert 0.68 < covered(own, truth) < 0.92


def test_quantiles_and_paths_of_rare_counts_are_as_high_as_their_values(rng):
    """The quantiles of Poisson(.3) are 0 up to 74 %, 1 up to 96 %, 2 up to 99.6 %."""
    y = {f"{i:02}": rng.poisson(0.3, 150) for i in range(60)}
    model = auto("D").fit(frame(y, freq="D"), 14)
    found = model.predict(14, level=None, quantiles=[0.5, 0.7, 0.8, 0.9, 0.95])
    means = found[[f"{NAME}-q-{p}" for p in ("50", "70", "80", "90", "95")]].mean()
    assert_allclose(means, [0.0, 0.0, 1.0, 1.0, 1.0], atol=0.45)
    paths = model.simulate(14, 100)[NAME]
    assert abs((paths >= 1.0).mean() - (1.0 - np.exp(-0.3))) < 0.05
    assert abs(paths.mean() - 0.3) < 0.05
    sums = model.predict(14, level=[80], totals=14)
    again = rng.poisson(0.3 * 14, (1000, 60)).ravel()
    low, high = (np.tile(sums[f"{NAME}-{side}-80"], 1000) for side in ("lo", "hi"))
    assert 0.8 < ((low <= again) & (again <= high)).mean() < 0.96  # whole numbers: .83 at best
    assert 0.02 < (again > high).mean() < 0.12


def test_intervals_of_skewed_series_are_skewed(rng):
    y = {f"{i:02}": rng.exponential(10.0, 150) for i in range(60)}
    found = auto("D").forecast(frame(y, freq="D"), 14, level=[80])
    low, high = (found[f"{NAME}-{side}-80"] for side in ("lo", "hi"))
    assert abs((1.0 - np.exp(-low / 10.0)).mean() - 0.1) < 0.03
    assert abs(np.exp(-high / 10.0).mean() - 0.1) < 0.03


def test_intervals_of_a_panel_that_rose_together_do_not_lie_above_alone(rng):
    """The steps of a walk that all series share say little of which side comes next."""
    together = 100.0 + np.append(rng.normal(size=106), np.full(14, 1.0)).cumsum()
    y = {f"{i:02}": together + 0.4 * rng.normal(size=120).cumsum() for i in range(30)}
    found = auto("D").forecast(frame(y, freq="D"), 7, level=[80])
    below, above = (abs(found[f"{NAME}-{side}-80"] - found[NAME]).mean() for side in ("lo", "hi"))
    assert 0.4 < below / above < 2.5
