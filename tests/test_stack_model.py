"""The forecaster with scope="auto": odd series, inputs, intervals, backtests, updates, files."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal

from panels import EVENTS, LEVELS, NAME, every_series, future_of, make_panel, to_polars
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.fallback import naive_forecast
from rbfdiffnet.plan import Plan
from rbfdiffnet.series import Series
from rbfdiffnet.stack import model as model_module
from rbfdiffnet.stack import windows as windows_module
from rbfdiffnet.stack.histories import Histories
from rbfdiffnet.stack.members import member_forecasts
from rbfdiffnet.stack.mixing import mixing_weights
from rbfdiffnet.stack.model import StackModel
from rbfdiffnet.training import Settings


def frame(series, freq="MS"):
    """A frame of monthly series by name."""
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "unique_id": name,
                    "ds": pd.date_range("2010-01-01", periods=len(y), freq=freq),
                    "y": np.asarray(y, dtype=float),
                }
            )
            for name, y in series.items()
        ],
        ignore_index=True,
    )


def walks(rng, lengths, m=12):
    return {
        f"s{k}": 80.0 + 5.0 * np.sin(2 * np.pi * np.arange(n) / m) + rng.normal(size=n).cumsum()
        for k, n in enumerate(lengths)
    }


def auto(freq="MS", **parameters):
    return RBFDiffNet(freq, scope="auto", **parameters)


def check(found, n, h):
    """Forecasts and intervals are there, finite and in order."""
    assert len(found) == n * h
    values = found[LEVELS].to_numpy()
    assert np.isfinite(values).all()
    ordered = values[:, [3, 1, 0, 2, 4]]
    assert (np.diff(ordered, axis=1) >= 0.0).all()


def arrays(series):
    """The panel and the plan that a model takes."""
    panel = [Series(y, np.zeros((y.size, 0)), np.zeros((y.size, 0))) for y in series]
    return panel, np.array([y.size for y in series])


PLAN = Plan(lambda _: Settings(5), clean=False)


# The mixture --------------------------------------------------------------------------------------


def test_the_mixture_by_hand(rng):
    h, series = 6, list(walks(rng, [40] * 12).values())
    panel, origins = arrays(series)
    plan = Plan(lambda _: Settings(5), season_length=1, clean=False)
    mixture = StackModel.of(panel, plan).mixture(panel, origins, h, [np.zeros((h, 0))] * 12)
    errors = []
    for k in (1, 2):
        past = member_forecasts(Histories.of([y[: 40 - k * h] for y in series], 1), h)
        actual = np.array([y[40 - k * h :][:h] for y in series])
        errors.append(np.stack([forecast - actual for forecast in past.values()]))
    wrong = np.stack(errors, axis=2)
    units = np.array([np.abs(np.diff(y)).mean() for y in series])
    weights = mixing_weights((wrong / units[:, None, None]).reshape(len(wrong), -1))
    now = member_forecasts(Histories.of(series, 1), h)
    assert list(mixture.weights) == list(now)
    for own, weight in zip(mixture.weights.values(), weights, strict=True):
        assert_allclose(own, weight, atol=1e-9)
    expected = sum(v * forecast for v, forecast in zip(weights, now.values(), strict=True))
    assert_allclose(mixture.values, expected, rtol=1e-9)
    growth = np.log(
        [
            [_mean_change(y[-13:]) / _mean_change(y[: 40 - k * h][-13:]) for k in (1, 2)]
            for y in series
        ]
    )
    common, noise = growth.mean(axis=0), 1.7 / 12  # of 12 changes
    growth = common * 0.4 / (0.4 + noise / 12) + (growth - common) * 0.4 / (0.4 + noise)
    growth = np.clip(np.exp(growth), 1.0 / 3.0, 3.0)
    sizes = np.abs(np.tensordot(weights, wrong, axes=1))
    assert_allclose(mixture.errors, sizes * growth[:, :, None], atol=1e-9)


def _mean_change(y):
    return np.abs(np.diff(y)).mean()


def test_intervals_of_growing_series_grow(rng):
    """The latest errors count by how much larger the changes of a series have become since."""
    series = {f"s{k}": np.exp(0.15 * np.arange(24) + 0.1 * rng.normal(size=24)) for k in range(40)}
    found = auto("YS").cross_validation(frame(series, freq="YS"), 4, level=[80])
    inside = found["y"].between(found[f"{NAME}-lo-80"], found[f"{NAME}-hi-80"])
    assert 0.7 < inside.mean() < 0.95


@pytest.mark.parametrize("h", [1, 3])
@pytest.mark.parametrize("walk", [False, True])
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


def test_zeros_before_the_first_sale_do_not_count():
    late = np.append(np.zeros(60), np.arange(1.0, 41.0))
    rare = np.tile([0.0, 0.0, 3.0], 30)
    panel, origins = arrays([late, rare, np.zeros(5)])
    assert model_module._is_sparse(panel, origins).tolist() == [False, True, False]


def test_without_errors_the_median_of_the_members_is_left(rng):
    y = walks(rng, [12])["s0"]
    panel, origins = arrays([y])
    mixture = StackModel.of(panel, PLAN).mixture(panel, origins, 10, [np.zeros((10, 0))])
    assert not any(weight.any() for weight in mixture.weights.values())
    middle = np.median([forecast[0] for forecast in mixture.members.values()], axis=0)
    assert_allclose(mixture.values[0], middle)


def test_with_time_noise_in_long_series_is_treated(rng):
    x = np.empty((4, 300))
    x[:, 0] = rng.uniform(0.2, 0.4, 4)
    for t in range(299):
        x[:, t + 1] = 3.8 * x[:, t] * (1.0 - x[:, t])
    panel, origins = arrays(list(x[:, :296] + 0.02 * rng.normal(size=(4, 296))))
    usual, more = (
        StackModel.of(panel, plan).mixture(panel, origins, 4, [np.zeros((4, 0))] * 4)
        for plan in (PLAN, replace(PLAN, thorough=True))
    )
    assert list(more.members) == list(usual.members)
    errors = [np.abs(m.members["network"] - x[:, 296:]).mean() for m in (usual, more)]
    assert errors[1] < errors[0]
    for name in set(usual.members) - {"network"}:
        assert_allclose(more.members[name], usual.members[name])


def test_trends_go_on_farther_than_rows_reach(rng):
    """Two years of months: no row has a target twelve steps ahead, and forecasts are fed back."""
    t = np.arange(24)
    series = {f"s{i}": 100.0 + 3.0 * (i + 1) * t + rng.normal(0, 2, 24) for i in range(5)}
    for h in (6, 12, 18):
        found = auto("MS").forecast(frame(series, freq="MS"), h)[NAME].to_numpy().reshape(5, h)
        truth = [100.0 + 3.0 * (i + 1) * np.arange(24, 24 + h) for i in range(5)]
        assert_allclose(found, truth, rtol=0.12)


def test_members_that_could_not_forecast_earlier_have_no_weight(rng):
    t = np.arange(40)
    season = 20.0 * np.sin(t * np.pi / 6)
    series = [100.0 + season + t + rng.normal(0, 5, 40) for _ in range(20)]
    panel, origins = arrays(series)
    plan = Plan(lambda _: Settings(5), season_length=12)
    mixture = StackModel.of(panel, plan).mixture(panel, origins, 12, [np.zeros((12, 0))] * 20)
    assert_allclose(mixture.weights["direct"] + mixture.weights["direct, log"], 1.0)
    assert not mixture.weights["theta"].any()


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


def test_members_that_were_not_there_yet_leave_the_errors_of_the_others(rng):
    """Forty months have three seasons; thirty-four, when the last six are held back, do not."""
    panel, origins = arrays(list(walks(rng, [40, 40]).values()))
    plan = Plan(lambda _: Settings(5), season_length=12)
    mixture = StackModel.of(panel, plan).mixture(panel, origins, 6, [np.zeros((6, 0))] * 2)
    assert np.isfinite(mixture.errors).all()
    assert (mixture.errors > 0.0).all()


def test_the_future_is_not_seen(rng):
    series = list(walks(rng, [70] * 6).values())
    panel, _ = arrays(series)
    origins, ahead = np.full(6, 60), [np.zeros((5, 0))] * 6
    known = StackModel.of(panel, PLAN).mixture(panel, origins, 5, ahead)
    spoiled, _ = arrays([np.r_[y[:60], 1e4 * rng.normal(size=10)] for y in series])
    found = StackModel.of(spoiled, PLAN).mixture(spoiled, origins, 5, ahead)
    assert_array_equal(found.values, known.values)
    assert_array_equal(found.errors, known.errors)


def test_what_two_mixtures_rest_on_is_remembered(rng, monkeypatch):
    inputs = [rng.normal(size=(30, 1)) for _ in range(3)]
    series = walks(rng, [30] * 3).values()
    panel = [Series(y, X, np.zeros((30, 0))) for y, X in zip(series, inputs, strict=True)]
    origins, model, calls = np.full(3, 30), StackModel.of(panel, PLAN), []
    learned = model_module._learned
    monkeypatch.setattr(
        model_module, "_learned", lambda *args: calls.append(args[2]) or learned(*args)
    )
    for h in (1, 2, 2, 1, 3, 2, 3, 1, 4, 5, 6):
        low, high = (model.mixture(panel, origins, h, [x * np.ones((h, 1))] * 3) for x in (0, 1))
        assert model.latest is high
        np.testing.assert_equal(low.weights, high.weights)
        assert not np.isclose(low.values, high.values).any()
        assert len(model._known) <= 2
    assert calls == [1, 2, 3, 1, 4, 5, 6]


def test_a_series_starts_at_its_first_known_value(rng):
    series = walks(rng, [40] * 8)
    plain = frame(series)
    late = plain.copy()
    late.loc[late["unique_id"] == "s3", "y"] = np.where(np.arange(40) < 15, np.nan, series["s3"])
    cut = late[late["y"].notna()]
    assert_allclose(auto().forecast(late, 5)[NAME], auto().forecast(cut, 5)[NAME], rtol=1e-9)


def test_long_series_have_a_network_among_the_members(rng, monkeypatch):
    monkeypatch.setattr(windows_module, "_LONG", 40)
    panel, origins = arrays(list(walks(rng, [80] * 4, m=7).values()))
    plan = Plan(lambda _: Settings(5), season_length=7)
    model = StackModel.of(panel, plan)
    mixture = model.mixture(panel, origins, 10, [np.zeros((10, 0))] * 4)
    assert list(mixture.weights)[-1] == "network"
    assert np.isfinite(mixture.values).all()
    monkeypatch.setattr(windows_module, "_MOST_VALUES", 319)
    assert "network" not in model.mixture(panel, origins, 9, [np.zeros((9, 0))] * 4).weights


# Odd series ---------------------------------------------------------------------------------------


def odd_series(rng):
    walk = 100.0 + rng.normal(size=60).cumsum()
    steps = np.arange(60)
    return {
        "constant": np.full(60, 5.0),
        "zeros": np.zeros(60),
        "empty": np.full(60, np.nan),
        "one": np.array([7.0]),
        "two": np.array([7.0, 8.0]),
        "five": np.array([7.0, 8.0, 6.0, 9.0, 5.0]),
        "eight": walk[:8],
        "short": walk[:20],
        "gaps": np.where(steps % 7 == 3, np.nan, walk),
        "late": np.where(steps < 45, np.nan, walk),
        "ended": np.where(steps > 50, np.nan, walk),
        "outlier": np.where(steps == 30, 1e9, walk),
        "last": np.where(steps == 59, 1e9, walk),
        "huge": np.where(steps == 30, 1e300, walk),
        "jump": np.where(steps < 40, walk, 10.0 * walk),
        "intermittent": np.where(rng.random(60) < 0.7, 0.0, rng.poisson(3.0, 60)),
        "negative": walk - 100.0,
        "line": 2.0 * steps,
        "periodic": np.tile(np.arange(12.0), 5),
        "tiny": 1e-200 * walk,
        "giant": 1e200 * walk,
    }


NAMES = list(odd_series(np.random.default_rng(0)))


@pytest.mark.parametrize("h", [1, 14])
@pytest.mark.parametrize("name", NAMES)
def test_any_series_alone_is_forecast(rng, name, h):
    y = odd_series(rng)[name]
    check(auto().fit(frame({name: y})).predict(h), 1, h)


def test_series_that_were_never_negative_are_not_forecast_below_zero(rng):
    falling = [np.maximum(60.0 - 2.0 * np.arange(36) + rng.normal(size=36), 0.0) for _ in range(9)]
    found = auto().forecast(frame(dict(enumerate(falling))), 24)
    assert found["RBFDiffNet"].min() >= 0.0
    moved = auto().forecast(frame({i: y - 1.0 for i, y in enumerate(falling)}), 24)
    assert moved["RBFDiffNet"].min() < -1.0


def test_squared_errors_count_where_most_values_are_zero(rng, monkeypatch):
    asked = []

    def weights(errors, *, squared):
        asked.append(squared)
        return mixing_weights(errors, squared=squared)

    monkeypatch.setattr("rbfdiffnet.stack.model.mixing_weights", weights)
    often = [rng.poisson(3.0, 60).astype(float) for _ in range(9)]
    rarely = [y * (rng.random(60) < 0.3) for y in often]
    for series in (often, rarely):
        auto().forecast(frame(dict(enumerate(series))), 6)
    assert asked == [False, True]
    asked.clear()
    model = auto().fit(frame(dict(enumerate(often + rarely))))
    model.predict(6)
    assert sorted(asked) == [False, True]
    for own in model._state.model.latest.weights.values():
        assert len(set(own[:9])) == len(set(own[9:])) == 1


def test_the_weights_of_the_latest_forecasts(rng):
    model = auto().fit(frame(walks(rng, [60] * 9)))
    with pytest.raises(ValueError, match="predict first"):
        model.weights_  # noqa: B018
    model.predict(6)
    assert sum(model.weights_.values()) == pytest.approx(1.0)
    assert "direct" in model.weights_
    with pytest.raises(ValueError, match="scope='auto'"):
        RBFDiffNet(freq="MS", scope="local").fit(frame({0: rng.normal(size=60)})).weights_  # noqa: B018


def test_a_horizon_longer_than_the_series(rng):
    for lengths in ([30], [12, 30, 9], [300]):
        check(auto().fit(frame(walks(rng, lengths))).predict(100), len(lengths), 100)


@pytest.mark.parametrize("parameters", [{}, {"transforms": ["log1p"]}, {"outliers": False}])
def test_odd_series_together(rng, parameters):
    df = frame(odd_series(rng) | walks(rng, rng.integers(30, 90, 10)))
    df["y"] = df["y"].where(df["unique_id"] != "negative", df["y"] + 200.0)
    found = auto(**parameters).fit(df).predict(8)
    check(found, df["unique_id"].nunique(), 8)


@pytest.mark.parametrize("n_good", [2, 8])
def test_unfit_series_get_the_fallback_and_do_not_disturb_others(rng, n_good):
    good, odd = walks(rng, rng.integers(40, 80, n_good)), odd_series(rng)
    unfit = {name: odd[name] for name in ("constant", "zeros", "empty", "one", "two", "five")}
    alone = auto().fit(frame(good)).predict(6).set_index("unique_id")
    model = auto().fit(frame(unfit | good))
    found = model.predict(6).set_index("unique_id")
    for name in good:
        assert_allclose(found.loc[name, NAME], alone.loc[name, NAME], rtol=1e-9)
    for name, y in unfit.items():
        expected = naive_forecast(y, np.array([y.size]), 6, 12)[0]
        assert_allclose(found.loc[name, NAME], expected, rtol=1e-12)
    for name in ("constant", "zeros"):
        assert_allclose(found.loc[name, LEVELS], np.tile(found.loc[name, [NAME]], 5))
    fallback = "forecast by the last season, or the last value"
    report = model.report_
    problems = report[report["problem"] != "too few errors for the intervals"]
    assert list(problems.itertuples(index=False, name=None)) == [
        ("constant", "all values are the same", fallback),
        ("zeros", "all values are zero", fallback),
        ("empty", "no values", "forecast 0"),
        ("one", "all values are the same", fallback),
        ("two", "too short (known values: 2, needed: 8)", fallback),
        ("five", "too short (known values: 5, needed: 8)", fallback),
    ]


def test_an_outlier_is_reported_and_moves_nothing_much(rng):
    series = walks(rng, [80] * 8)
    clean = auto().fit(frame(series)).predict(4).set_index("unique_id")
    series["s2"] = np.where(np.arange(80) == 40, 1e6, series["s2"])
    model = auto().fit(frame(series))
    found = model.predict(4).set_index("unique_id")
    report = model.report_
    assert ("s2", "1 outlier, first 2013-05-01", "treated as missing") in list(
        report.itertuples(index=False, name=None)
    )
    assert np.abs(found.loc["s2", NAME] - clean.loc["s2", NAME]).max() < 2.0
    others = [name for name in series if name != "s2"]
    assert np.abs(found.loc[others, NAME] - clean.loc[others, NAME]).max() < 1.0
    width = f"{NAME}-hi-95"
    assert np.abs(found[width] - found[NAME]).max() < 3 * (clean[width] - clean[NAME]).max()


def test_odd_series_can_be_refused(rng):
    model = auto(errors="raise")
    with pytest.raises(ValueError, match="'five' cannot be fitted: too short"):
        model.fit(frame({"five": np.arange(5.0)} | walks(rng, [40])))


def test_frames_without_rows():
    df = frame({"a": np.arange(30.0)})
    model = auto().fit(df.iloc[:0])
    assert model.predict(3).columns.tolist() == ["unique_id", "ds", *LEVELS]
    assert len(model.predict(3)) == 0


# Frames, inputs, threads --------------------------------------------------------------------------


def test_pandas_and_polars_agree(rng):
    df = frame(walks(rng, rng.integers(30, 60, 6)))
    expected = auto().fit(df).predict(4)
    found = auto("1mo").fit(to_polars(df)).predict(4)
    assert type(found).__module__.startswith("polars")
    assert found["unique_id"].to_list() == expected["unique_id"].to_list()
    assert_allclose(found[LEVELS].to_numpy(), expected[LEVELS], rtol=1e-9)


def test_the_order_of_rows_and_series_does_not_matter(rng):
    df = frame(walks(rng, rng.integers(30, 60, 9)))
    expected = auto().fit(df).predict(4).set_index(["unique_id", "ds"])
    shuffled = df.sample(frac=1.0, random_state=0)
    found = auto().fit(shuffled).predict(4).set_index(["unique_id", "ds"])
    assert_allclose(found.loc[expected.index], expected, rtol=1e-8)


def test_the_order_of_series_does_not_matter_where_rows_are_left_out(rng, monkeypatch):
    monkeypatch.setattr("rbfdiffnet.stack.direct._MOST_ROWS", 60)
    series = list(walks(rng, [40, 50, 60, 45, 55]).values())
    plan = Plan(lambda _: Settings(5), season_length=12)
    found = []
    for ordered in (series, series[::-1]):
        panel, origins = arrays(ordered)
        mixture = StackModel.of(panel, plan).mixture(panel, origins, 6, [np.zeros((6, 0))] * 5)
        found.append(mixture.members["direct"])
    assert_allclose(found[0], found[1][::-1], rtol=1e-9)


def test_units_of_the_panel_do_not_matter(rng):
    df = frame(walks(rng, [50] * 7))
    expected = auto().fit(df).predict(4)[LEVELS]
    found = auto().fit(df.assign(y=1e4 * df["y"])).predict(4)[LEVELS]
    assert_allclose(found, 1e4 * expected, rtol=1e-5)


def test_the_same_again_and_by_more_threads():
    df = make_panel("ab", n=203)
    quick = {"preset": "fast", "lags": 7}
    expected = auto("D", **quick).fit(df).predict(7)
    model = auto("D", **quick, n_jobs=2).fit(df)
    assert_frame_equal(model.predict(7), expected, check_exact=True)
    assert_frame_equal(model.predict(7), expected, check_exact=True)
    model.predict(3)
    model.predict(4)
    assert_frame_equal(model.predict(7), expected, check_exact=True)
    levels = [column for column in expected if "-95" not in column]
    at_once = auto("D", **quick).forecast(df, 7, level=[80])
    assert_frame_equal(at_once, expected[levels], check_exact=True)


@pytest.mark.parametrize(
    ("parameters", "columns"),
    [
        ({"calendar": "auto"}, ()),
        ({"events": EVENTS, "calendar": ["dayofweek"], "lower": 0.0}, ()),
        ({}, ("price", "offer")),
        ({"past_exog": ["visitors"], "static_exog": ["region"]}, ("price", "visitors", "region")),
        ({"transforms": ["log1p"], "strategy": "direct"}, ("price",)),
        ({"preset": "fast", "lags": 7}, ("price",)),
        ({"preset": "paper"}, ()),
    ],
)
def test_settings_and_inputs_go_together_with_the_stack(parameters, columns):
    df = make_panel(n=205, columns=columns)
    model = auto("D", **parameters).fit(df, h=6)
    found = model.predict(6, future_of(model, 6, columns))
    check(found, 3, 6)
    backtest = auto("D", **parameters).cross_validation(df, 6)
    assert np.abs(backtest[NAME] - backtest["y"]).mean() < 6.0


def test_an_input_known_ahead_moves_the_forecasts():
    df = make_panel(n=120, columns=("price", "offer"))
    model = auto("D").fit(df)
    future = future_of(model, 5, ("price", "offer"))
    low = model.predict(5, future.assign(price=1.0, offer="none"), level=None)[NAME]
    high = model.predict(5, future.assign(price=3.0, offer="none"), level=None)[NAME]
    flyer = model.predict(5, future.assign(price=1.0, offer="flyer"), level=None)[NAME]
    assert_allclose(high - low, -8.0, atol=3.5)  # four for a unit of price
    assert_allclose(flyer - low, 15.0, atol=5.0)
    with pytest.raises(ValueError, match="X_df"):
        model.predict(5)


def test_a_lower_bound_holds(rng):
    df = frame({f"s{k}": rng.poisson(0.4, 60) for k in range(6)})
    found = auto(lower=0.0).fit(df).predict(6)
    assert found[LEVELS].min(axis=None) == 0.0


# Intervals, backtests, updates, files -------------------------------------------------------------


@pytest.mark.parametrize(("n_series", "length"), [(120, 60), (60, 120)])
def test_intervals_cover_about_as_often_as_they_say(rng, n_series, length):
    from scipy.signal import lfilter

    y = 20.0 + lfilter([1.0], [1.0, -0.7], rng.normal(size=(n_series, length + 50)), axis=1)
    df = frame({f"s{k}": row[50:] for k, row in enumerate(y)}, freq="YS" if length < 100 else "MS")
    found = auto("YS" if length < 100 else "MS").cross_validation(df, 6, level=[80, 95])
    for level in (80, 95):
        inside = found["y"].between(found[f"{NAME}-lo-{level}"], found[f"{NAME}-hi-{level}"])
        assert abs(inside.mean() - level / 100) < 0.08
    errors = np.abs(found["y"] - found[NAME]).mean()
    assert errors < 1.3  # of the true conditional mean 0.8 to 1.1


@pytest.mark.parametrize("refit", [True, False, 2])
def test_backtests_are_forecasts_of_cut_series(rng, refit):
    df = frame(walks(rng, (60, 45, 70, 50)) | {"short": np.arange(7.0)})
    found = auto().cross_validation(df, 4, n_windows=3, step_size=3, level=[80], refit=refit)
    ends = df.groupby("unique_id")["ds"].max()
    for back in (10, 7, 4):
        expected = auto().forecast(every_series(df, slice(-back)), 4, level=[80])
        cutoffs = found["unique_id"].map(ends) - found["cutoff"]
        months = (cutoffs.dt.days / 30.44).round()
        both = found[months == back].merge(expected, on=["unique_id", "ds"])
        assert len(both) == (months == back).sum() == 16 + 4 * (back == 4)
        for column in (NAME, f"{NAME}-lo-80", f"{NAME}-hi-80"):
            assert_allclose(both[f"{column}_x"], both[f"{column}_y"], rtol=1e-9)


def test_weights_cannot_go_on_learning(rng):
    df = frame(walks(rng, (60, 45)))
    with pytest.raises(ValueError, match=r"needs scope='global'.*learns anew"):
        auto().cross_validation(df, 4, refit="weights")
    with pytest.raises(ValueError, match=r"needs scope='global'.*learns anew"):
        auto().fit(df).update(df, refit="weights")


@pytest.mark.parametrize("refit", [True, False])
def test_update_takes_the_new_data(rng, refit):
    df = frame(walks(rng, (60, 45, 70, 50)))
    new = frame({"new": 5.0 + rng.normal(size=30)})
    model = auto().fit(every_series(df, slice(-5)))
    before = model.predict(4)
    model.update(pd.concat([every_series(df, slice(-5, None)), new]), refit=refit)
    expected = auto().fit(pd.concat([df, new])).predict(4)
    found = model.predict(4)
    assert_frame_equal(found, expected, check_exact=True)
    assert "new" not in before["unique_id"].to_list()
    model.update(frame({"none": np.full(3, 2.0)}), refit=refit)
    assert "all values are the same" in model.report_["problem"].to_list()
    assert len(model.predict(4)) == 24


@pytest.mark.parametrize(
    ("parameters", "columns", "ids", "n"),
    [
        pytest.param({"outliers": False}, (), "b", 1010, marks=pytest.mark.slow),
        ({"calendar": "auto", "lower": 0.0}, ("price", "offer"), "bac", 150),
        ({"strategy": "direct", "past_exog": ["visitors"]}, ("visitors",), "ab", 150),
    ],
)
def test_a_saved_model_forecasts_the_same(tmp_path, monkeypatch, parameters, columns, ids, n):
    monkeypatch.setattr(windows_module, "_MOST_VALUES", 0)  # networks take their time
    df = make_panel(ids, n=n, columns=columns)
    odd = make_panel(["odd"], n=40, columns=columns).assign(y=1.0)
    model = auto("D", **parameters).fit(pd.concat([df, odd], ignore_index=True), h=5)
    model.save(tmp_path / "model")
    again = RBFDiffNet.load(tmp_path / "model")
    assert again.scope == "auto"
    X_df = future_of(model, 5, columns)
    expected = model.predict(5, X_df)
    assert_frame_equal(again.predict(5, X_df), expected, check_exact=True)
    assert_frame_equal(again.report_, model.report_)
    newer = make_panel(ids, n=3, columns=columns, start=df["ds"].max() + pd.Timedelta("1D"), seed=3)
    X_df = future_of(model.update(newer), 2, columns)
    assert_frame_equal(again.update(newer).predict(2, X_df), model.predict(2, X_df))
    again.save(tmp_path / "model")
    assert_frame_equal(RBFDiffNet.load(tmp_path / "model").predict(2, X_df), model.predict(2, X_df))


def test_a_saved_polars_model_stays_one(tmp_path, rng):
    df = to_polars(frame(walks(rng, (40, 30))))
    model = auto("1mo").fit(df)
    model.save(tmp_path / "model")
    assert RBFDiffNet.load(tmp_path / "model").predict(3).equals(model.predict(3))


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
    assert set(members["term"]) == set(model.weights_)
    assert_allclose(members["contribution"], members["weight"] * members["value"])
    some = model.explain(6, ids=["s3", "constant"])
    assert some["unique_id"].unique().tolist() == ["s3", "constant"]
    assert_allclose(
        some[some["unique_id"] == "s3"]["contribution"],
        table[table["unique_id"] == "s3"]["contribution"],
    )
    assert (some[some["unique_id"] == "constant"]["part"] != "member").all()


def test_a_median_is_one_term(rng):
    model = auto().fit(frame(walks(rng, [12])))
    table = model.explain(10)
    assert table["term"].tolist() == ["median of the members"] * 10
    assert_allclose(table["contribution"], model.predict(10, level=None)[NAME])


# What there is not --------------------------------------------------------------------------------


def test_what_needs_networks_says_so(rng):
    model = auto().fit(frame(walks(rng, [30])))
    with pytest.raises(ValueError, match=r"fitted_values.*scope='auto' keeps none.*scope='local'"):
        model.fitted_values()
    with pytest.raises(ValueError, match=r"Noise was not looked for.*noise='auto'.*scope='local'"):
        model.noise_  # noqa: B018


def test_other_settings_that_a_stack_does_not_take(rng):
    with pytest.raises(ValueError, match="scope='local'"):
        auto(noise="auto")
    with pytest.raises(ValueError, match="scope='local'"):
        auto(preset="fast", device="cuda")
    df = frame(walks(rng, [30]))
    with pytest.raises(ValueError, match="scope='global'"):
        auto().fit(df).predict(2, new_df=df)


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
