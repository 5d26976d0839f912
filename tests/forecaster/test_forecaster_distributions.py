"""Quantiles, sample paths and totals of the forecaster."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal
from scipy.stats import spearmanr

from panels import make_panel
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.datasets import logistic_map
from rbfdiffnet.forecasting import pipeline
from rbfdiffnet.forecasting.options import name_quantiles
from rbfdiffnet.models.base import ForecastRequest
from rbfdiffnet.series.series import find_sparse

NAME = "RBFDiffNet"
MODELS = [{}, {"preset": "instant"}, {"preset": "fast"}, {"scope": "local"}, {"scope": "global"}]


@pytest.fixture(scope="module")
def df():
    return make_panel("abc", n=120)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_quantiles_are_the_ends_of_intervals_and_never_cross(df, model):
    found = RBFDiffNet("D", **model).forecast(
        df, 9, level=[80, 95], quantiles=[0.5, 0.025, 0.9, 0.1, 0.975]
    )
    names = [f"{NAME}-q-{p}" for p in ("2.5", "10", "50", "90", "97.5")]
    assert found.columns[-5:].tolist() == names
    assert (np.diff(found[names].to_numpy(), axis=1) >= 0.0).all()
    for side, quantile, outermost in (
        ("lo-80", "q-10", np.minimum),
        ("hi-80", "q-90", np.maximum),
        ("lo-95", "q-2.5", np.minimum),
        ("hi-95", "q-97.5", np.maximum),
    ):
        expected = outermost(found[f"{NAME}-{quantile}"], found[NAME])
        assert_array_equal(found[f"{NAME}-{side}"], expected)


@pytest.mark.parametrize("wrong", [[0.0], [1.0], [90], ["a"], [np.nan], [True]])
def test_wrong_quantiles_are_refused(df, wrong):
    with pytest.raises(ValueError, match="quantiles must hold probabilities between 0 and 1"):
        RBFDiffNet("D", preset="instant").forecast(df, 2, quantiles=wrong)


def test_quantiles_in_backtests_and_of_a_fitted_model_are_the_same(df):
    model = RBFDiffNet("D")
    cut = df.groupby("unique_id").head(113)
    backtest = model.cross_validation(df, 7, quantiles=[0.2, 0.8])
    fitted = model.fit(cut).predict(7, level=None, quantiles=[0.2, 0.8])
    columns = [f"{NAME}-q-20", f"{NAME}-q-80"]
    assert_allclose(backtest[columns], fitted[columns], rtol=1e-9)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_distributions_of_counts_are_counts(model):
    rng = np.random.default_rng(0)
    df = make_panel("ab", n=120).assign(y=rng.poisson(1.5, 240))
    fitted = RBFDiffNet("D", **model).fit(df)
    values = fitted.predict(5, level=None, quantiles=[0.1, 0.5, 0.9]).iloc[:, 3:].to_numpy()
    assert_array_equal(values, np.rint(values))
    assert values.min() >= 0.0
    paths = fitted.simulate(5, 20)[NAME]
    assert_array_equal(paths, np.rint(paths))
    assert paths.min() >= 0.0


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_nothing_leaves_the_bounds(df, model):
    low, high = df["y"].quantile([0.4, 0.6])
    fitted = RBFDiffNet("D", lower=low, upper=high, **model).fit(df)
    forecasts = fitted.predict(7, quantiles=[0.01, 0.99]).iloc[:, 2:]
    for values in (forecasts, fitted.simulate(7, 9)[NAME]):
        assert np.min(values) >= low
        assert np.max(values) <= high


def test_bounds_that_exclude_each_other_are_refused():
    with pytest.raises(ValueError, match="lower must not be above upper"):
        RBFDiffNet("D", lower=2, upper=1)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_paths_have_the_quantiles_of_the_forecast(df, model):
    fitted = RBFDiffNet("D", **model).fit(df)
    paths = fitted.simulate(6, 400)
    assert paths.columns.tolist() == ["unique_id", "ds", "sample_id", NAME]
    assert len(paths) == 3 * 400 * 6
    expected = fitted.predict(6, level=None, quantiles=[0.1, 0.5, 0.9])
    found = paths.groupby(["unique_id", "ds"])[NAME].quantile([0.1, 0.5, 0.9]).unstack()
    spread = expected[f"{NAME}-q-90"] - expected[f"{NAME}-q-10"]
    for p in (0.1, 0.5, 0.9):
        away = found[p].to_numpy() - expected[f"{NAME}-q-{100 * p:g}"].to_numpy()
        assert (np.abs(away) < 0.05 * spread).all()


def test_the_same_seed_gives_the_same_paths_whatever_the_order(df):
    model = RBFDiffNet("D")
    found = model.fit(df).simulate(4, 5, seed=3)
    assert_frame_equal(model.fit(df).simulate(4, 5, seed=3), found)
    assert not model.simulate(4, 5, seed=4)[NAME].equals(found[NAME])
    mixed = model.fit(df.sample(frac=1.0, random_state=0)).simulate(4, 5, seed=3)
    both = mixed.merge(found, on=["unique_id", "ds", "sample_id"])
    assert len(both) == len(found)
    assert_allclose(both[f"{NAME}_x"], both[f"{NAME}_y"], rtol=1e-9)


def test_paths_and_totals_of_polars_frames(df):
    given = pl.from_pandas(df)
    model, other = RBFDiffNet("D").fit(df), RBFDiffNet("D").fit(given)
    paths = other.simulate(4, 5)
    assert isinstance(paths, pl.DataFrame)
    assert_allclose(paths[NAME], model.simulate(4, 5)[NAME], rtol=1e-12)
    weeks = other.predict(9, level=[80], totals="W")
    assert isinstance(weeks, pl.DataFrame)
    assert_allclose(weeks[NAME], model.predict(9, level=[80], totals="W")[NAME], rtol=1e-12)


def test_totals_are_sums_and_their_quantiles_those_of_sums_of_paths(df):
    model = RBFDiffNet("D").fit(df)
    steps = model.predict(10, level=None)
    found = model.predict(10, level=[80], quantiles=[0.5], totals=4)
    assert found["steps"].tolist() == [4, 4, 2] * 3
    number = np.tile(np.arange(10) // 4, 3)
    expected = steps.groupby(["unique_id", number])[NAME].sum()
    assert_allclose(found[NAME], expected, rtol=1e-12)
    assert_array_equal(found["ds"], steps.groupby(["unique_id", number])["ds"].min())
    paths = model.simulate(10, 1000, seed=0)
    number = np.tile(np.arange(10) // 4, 3000)
    sums = paths.groupby(["unique_id", number, "sample_id"])[NAME].sum()
    expected = sums.groupby(level=[0, 1]).quantile(0.9, interpolation="nearest")
    assert_allclose(found[f"{NAME}-hi-80"], expected, rtol=1e-12)


def test_periods_of_the_calendar_and_labels_of_a_function(df):
    model = RBFDiffNet("D", preset="instant").fit(df)
    weeks = model.predict(20, level=None, totals="W")
    days = model.predict(20, level=None)
    expected = days.groupby(["unique_id", days["ds"].dt.to_period("W")])[NAME].sum()
    assert_allclose(weeks[NAME], expected, rtol=1e-12)
    named = model.predict(20, level=None, totals=lambda dates: dates.to_period("W").astype(str))
    assert_frame_equal(named, weeks)
    assert_frame_equal(RBFDiffNet("D", preset="instant").forecast(df, 20, totals="W"), weeks)


def test_a_broken_series_does_not_move_totals_of_networks():
    """The last series breaks off where errors are found; the others are forecast as without it."""
    y = 10.0 + np.random.default_rng(0).normal(size=(8, 90))
    y[7, 65:] += 1e4 * np.arange(25)
    index = pd.MultiIndex.from_product([list("abcdefgh"), pd.date_range("2024-01-01", periods=90)])
    df = pd.DataFrame({"y": y.ravel()}, index=index.set_names(["unique_id", "ds"])).reset_index()
    model = RBFDiffNet("D", season_length=1, preset="fast")
    beside = model.forecast(df, 6, level=[80], totals=6)
    without = model.forecast(df[df["unique_id"] != "h"], 6, level=[80], totals=6)
    assert_frame_equal(beside[beside["unique_id"] != "h"], without)


def test_paths_know_which_series_are_often_zero(monkeypatch):
    """Errors of zeros do not tell what stays: paths are others than if all series were ordinary."""
    rng = np.random.default_rng(0)
    y = 10.0 + rng.normal(size=(6, 90))
    y[0] = 5.0 * (rng.random(90) < 0.1)
    index = pd.MultiIndex.from_product([list("abcdef"), pd.date_range("2024-01-01", periods=90)])
    df = pd.DataFrame({"y": y.ravel()}, index=index.set_names(["unique_id", "ds"])).reset_index()
    model = RBFDiffNet("D", season_length=1, preset="fast").fit(df)
    paths = model.simulate(12, 50).query("unique_id == 'a'")[NAME]
    found = []
    monkeypatch.setattr(pipeline, "find_sparse", lambda some: found.extend(find_sparse(some)))
    ordinary = model.simulate(12, 50).query("unique_id == 'a'")[NAME]
    assert found == [True] + [False] * 5
    assert (np.sort(paths) == np.sort(ordinary)).all()  # in another order
    assert not paths.equals(ordinary)


@pytest.mark.parametrize("totals", ["X7", "2W", 0, 2.5, ["W"], lambda dates: dates[:1]])
def test_wrong_totals_are_refused(df, totals):
    with pytest.raises(ValueError, match="totals"):
        RBFDiffNet("D", preset="instant").fit(df).predict(4, totals=totals)


def test_periods_need_dates():
    df = pd.DataFrame({"unique_id": "a", "ds": range(50), "y": np.arange(50.0) % 7})
    with pytest.raises(ValueError, match="give a number of steps"):
        RBFDiffNet(1, preset="instant").fit(df).predict(4, totals="W")


@pytest.mark.parametrize(
    ("freq", "totals", "message"),
    [
        ("MS", "W", r"totals='W' is shorter than a step of freq='MS'.*give a longer period"),
        ("D", "h", r"totals='h' is shorter than a step of freq='D'"),
        ("D", lambda dates: dates.dt.month, r"the function failed with the pandas DatetimeIndex"),
    ],
)
def test_totals_that_cannot_be_say_why(freq, totals, message):
    df = make_panel("ab", n=40, freq=freq)
    model = RBFDiffNet(freq, preset="instant").fit(df)
    with pytest.raises(ValueError, match=message):
        model.predict(4, totals=totals)
    steps = model.predict(4, level=None)
    alone = model.predict(4, level=None, totals="M" if freq == "MS" else "D")
    assert_allclose(alone[NAME], steps[NAME])


def test_totals_of_walks_spread_more_than_those_of_noise():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(20, 200))
    for shape, expected in ((noise, 12**0.5), (np.cumsum(noise, axis=1), None)):
        df = make_panel([f"s{i:02d}" for i in range(20)], n=200).assign(y=shape.ravel())
        model = RBFDiffNet("D", season_length=1).fit(df)
        last = model.predict(12, level=[80])
        width = (last[f"{NAME}-hi-80"] - last[f"{NAME}-lo-80"]).to_numpy().reshape(20, 12)
        sums = model.predict(12, level=[80], totals=12)
        ratio = ((sums[f"{NAME}-hi-80"] - sums[f"{NAME}-lo-80"]) / width.mean(axis=1)).mean()
        ideal = expected or np.sqrt(12 * 13 * 25 / 6) / np.sqrt(np.arange(1, 13)).mean()
        assert ratio == pytest.approx(ideal, rel=0.2)


def test_paths_of_filtered_series_are_ordered_like_their_cloud():
    """Of a noisy map: what is high now is low next, which no share of a shock can say."""
    noisy = logistic_map(400) + 0.02 * np.random.default_rng(0).normal(size=400)
    df = pd.DataFrame({"unique_id": "a", "ds": np.arange(400), "y": noisy})
    model = RBFDiffNet(1, noise="auto").fit(df)
    assert np.isfinite(model.noise_["noise_std"]).all()
    h, state = 5, model.fitted_panel
    cloud = state.model.state_paths(ForecastRequest.after(state.series, h))[0]
    paths = model.simulate(h, 2000)[NAME].to_numpy().reshape(2000, h)
    expected, found = (spearmanr(own).statistic for own in (cloud, paths))
    assert np.abs(expected - np.eye(h)).max() > 0.3
    assert_allclose(found, expected, atol=0.1)


@pytest.mark.parametrize("parameters", [{}, {"preset": "instant"}, {"scope": "global"}], ids=str)
def test_whoever_writes_into_a_frame_changes_nothing_else(df, parameters):
    model = RBFDiffNet("D", **parameters).fit(df)
    for ask in (lambda: model.predict(3, level=[80]), lambda: model.simulate(3, 5)):
        first, expected = ask(), ask()
        for name in (own for own in first if first[own].dtype == np.float64):
            first.loc[:, name] = 0.0
        assert_frame_equal(ask(), expected)


def test_many_paths_take_less_than_four_times_the_memory_of_their_frame(df):
    model = RBFDiffNet("D", preset="instant").fit(df)
    model.simulate(28, 2)
    tracemalloc.start()
    try:
        paths = model.simulate(28, 5000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3.9 * paths.shape[0] * paths.shape[1] * 8


def test_series_of_different_lengths_share_their_shocks():
    rng = np.random.default_rng(0)
    common = np.cumsum(rng.normal(size=300))
    lengths = {"a": 300, "b": 290, "c": 280}
    parts = [
        pd.DataFrame(
            {
                "unique_id": name,
                "ds": pd.date_range("2023-01-01", periods=300)[-n:],
                "y": (common + 0.05 * rng.normal(size=300))[-n:],
            }
        )
        for name, n in lengths.items()
    ]
    model = RBFDiffNet("D", preset="fast").fit(pd.concat(parts))
    paths = model.simulate(3, 300, joint=True)
    wide = paths.pivot(index=["sample_id", "ds"], columns="unique_id", values=NAME)
    last = wide.xs(wide.index.get_level_values("ds").max(), level="ds")
    assert last.corr().to_numpy()[np.triu_indices(3, 1)].min() > 0.7


@pytest.mark.parametrize("column", ["steps", "sample_id"])
def test_columns_of_results_are_not_overwritten(df, column):
    model = RBFDiffNet("D", preset="instant", time_col=column).fit(
        df.rename(columns={"ds": column})
    )
    with pytest.raises(ValueError, match=f"column '{column}' of its own"):
        model.simulate(2, 2) if column == "sample_id" else model.predict(2, totals=2)


def test_names_of_quantiles_are_exact():
    names = name_quantiles([99.999], [0.000001, 0.12345678, 0.12345679])
    assert list(names)[2:] == [
        f"{NAME}-q-0.0001",
        f"{NAME}-q-12.345678",
        f"{NAME}-q-12.345679",
    ]
    assert next(iter(names)) == f"{NAME}-lo-99.999"
    for wrong in ({"quantiles": [1e-300]}, {"level": [99.9999999]}):
        with pytest.raises(ValueError, match="must hold"):
            name_quantiles(**wrong)


def test_joint_paths_of_twins_and_mirrors_whatever_the_order(rng):
    shocks, days = rng.normal(size=(3, 120)), pd.date_range("2024-01-01", periods=120)
    values = {"a": shocks[0], "b": shocks[0] + 0.1 * shocks[1], "c": -shocks[0], "d": shocks[2]}
    parts = [pd.DataFrame({"unique_id": i, "ds": days, "y": y}) for i, y in values.items()]
    by, tables = ["unique_id", "ds", "sample_id"], []
    for own in (parts, parts[::-1]):
        model = RBFDiffNet("D", preset="instant").fit(pd.concat(own))
        tables.append(model.simulate(3, 400, joint=True).sort_values(by, ignore_index=True))
    assert_frame_equal(*tables)
    paths = tables[0].pivot(index=by[1:], columns="unique_id", values="RBFDiffNet")
    assert_allclose(paths.corr()["a"], [1.0, 0.99, -1.0, 0.0], atol=0.1)


def test_report_names_totals_that_are_far_from_the_middle_of_their_distribution() -> None:
    """The sum of medians of values with a long tail is below nearly all sums."""
    rng = np.random.default_rng(0)
    days = pd.date_range("2023-01-01", periods=300)
    values = {f"skewed {k}": rng.lognormal(2.0, 1.0, 300) for k in range(9)}
    values["normal"] = 100.0 + rng.normal(size=300)
    frames = [pd.DataFrame({"unique_id": k, "ds": days, "y": y}) for k, y in values.items()]
    model = RBFDiffNet(freq="D", preset="instant", lower=0).fit(pd.concat(frames))
    total = model.predict(28, quantiles=[0.1], totals=28).set_index("unique_id")
    named = set(model.notes_.loc[model.notes_["kind"] == "skewed_total", "unique_id"])
    assert named == set(total.index[total[NAME] < total[f"{NAME}-q-10"]])
    assert len(named) > 4
    assert "normal" not in named


def test_totals_take_newer_names_of_periods() -> None:
    days = pd.date_range("2023-01-01", periods=100)
    model = RBFDiffNet(freq="D", preset="instant").fit(
        pd.DataFrame({"unique_id": "a", "ds": days, "y": np.arange(100.0)})
    )
    for old, new in (("M", "ME"), ("W", "w"), ("Y", "YE")):
        pd.testing.assert_frame_equal(model.predict(40, totals=old), model.predict(40, totals=new))
