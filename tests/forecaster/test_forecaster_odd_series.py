"""Series without a network, bounds, outliers."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from panels import LEVELS, LOCAL, NAME, QUICK, forecast, make_panel
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.report import write_report


def odd_panel():
    a = make_panel("a", n=60)
    return pd.concat(
        [
            a.head(3).assign(unique_id="short"),
            a.assign(unique_id="constant", y=4.0),
            a.assign(unique_id="zero", y=0.0),
            a.assign(unique_id="empty", y=np.nan),
            a.assign(unique_id="spike", y=a["y"].where(a.index != 40, 900.0)),
            a.assign(unique_id="spikes", y=a["y"].where(~a.index.isin([30, 50]), 900.0)),
            a.drop(index=[20, 21]).assign(unique_id="gap"),
            pd.concat([a, a.tail(1)]).assign(unique_id="twice"),
            a.assign(unique_id="infinite", y=a["y"].where(a.index != 9, -np.inf)),
            a,
        ]
    )


@pytest.mark.parametrize("parameters", [QUICK, {}])
def test_the_report_has_a_line_for_everything_unusual(parameters):
    model = RBFDiffNet("D", **parameters, outliers=True)
    found = model.forecast(odd_panel(), 2)
    report = model.report_
    assert list(report) == ["unique_id", "problem", "action"]
    lines = {row.unique_id: (row.problem, row.action) for row in report.itertuples()}
    fallback = "forecast by the last season, or the last value"
    short = {"short": ("too short (known values: 3, needed: 8)", fallback)} if parameters else {}
    assert lines == {
        **short,  # enough for the pretrained network in the default
        "constant": ("all values are the same", fallback),
        "zero": ("all values are zero", fallback),
        "empty": ("no values; 9 other series", "forecast like these series"),
        "spike": ("1 outlier, first 2023-02-10", "treated as missing"),
        "spikes": ("2 outliers, first 2023-01-31", "treated as missing"),
        "gap": ("2 missing dates, first 2023-01-21", "treated as missing"),
        "twice": (
            "1 repeated date, first 2023-03-01",
            "identical rows counted once, others averaged",
        ),
        "infinite": ("1 infinite 'y' value, first 2023-01-10", "treated as missing"),
    }
    values = found.set_index("unique_id")[NAME]
    assert (values.loc["constant"] == 4.0).all()
    assert (values.loc["zero"] == 0.0).all()
    assert (values.loc["empty"] > 0.0).all()
    assert (values.loc["short"] == odd_panel()["y"].iloc[2]).all() or not parameters
    # Rounding of products of matrices may depend on the place of a series, on some processors.
    np.testing.assert_allclose(values.loc["twice"], values.loc["a"], rtol=1e-13)
    again = RBFDiffNet("D", **parameters, outliers=True).fit(odd_panel())
    assert_frame_equal(again.report_, report)
    assert len(RBFDiffNet("D", **parameters).fit(make_panel("a", n=60)).report_) == 0


@pytest.mark.parametrize(
    ("parameters", "bounds", "named", "text"),
    [
        ({}, {"lower": 0.0}, ["low"], "lower=0 cuts off all forecasts; values go down to -"),
        (QUICK, {"upper": 5.0}, ["high"], "upper=5 cuts off all forecasts; values go up to "),
        ({"hierarchy": ["kind"]}, {"lower": 0.0}, ["low"], "lower=0 cuts off all forecasts"),
    ],
)
def test_bounds_that_cut_off_all_forecasts_are_told(parameters, bounds, named, text):
    df = make_panel(["low", "high"], n=60).assign(kind="A")
    noise = np.random.default_rng(0).normal(size=len(df))
    df["y"] = np.where(df["unique_id"] == "low", -10.0, 10.0) + noise
    df = df if "hierarchy" in parameters else df.drop(columns="kind")
    model = RBFDiffNet("D", **parameters, **bounds)
    for call in (
        lambda: model.fit(df).predict(3),
        lambda: model.predict(4, totals=2),
        lambda: model.forecast(df, 3),
        lambda: model.cross_validation(df, 3),
    ):
        call()
        report = model.report_
        assert report["unique_id"].tolist() == named
        assert report["problem"].str.startswith(text).all()
        assert report["action"].str.startswith("forecast at the bound; check ").all()
    falling = df.assign(y=60.0 - df["ds"].dt.dayofyear)  # as a bound is meant
    model.fit(falling).predict(3)
    assert "cuts off" not in " ".join(model.report_["problem"])


def test_a_series_too_short_for_its_lags_gets_the_fallback():
    model = RBFDiffNet("D", lags=30)
    model.fit(make_panel("a", n=33))
    assert model.report_["problem"].item() == "too short for lag 30 (windows: 3, needed: 6)"
    y = make_panel("a", n=33)["y"].to_numpy()
    np.testing.assert_array_equal(model.predict(9)[NAME], [*y[-7:], *y[-7:-5]])


def test_a_panel_without_anything_to_learn_from():
    df = make_panel("ab", n=9).assign(y=[1.0] * 9 + [2.0] * 9)
    for scope in (None, "local", "global"):
        model = RBFDiffNet("D", scope=scope).fit(df)
        assert model.predict(2, level=[90])[NAME].to_list() == [1.0, 1.0, 2.0, 2.0]
        assert scope is None or len(model.fitted_values()) == 0
        assert len(model.equation()) == 0
        assert set(model.explain(1)["part"]) == {"fallback"}


def test_intervals_with_too_few_errors_are_reported():
    model = RBFDiffNet("D", **QUICK).fit(make_panel("a", n=20))
    model.predict(2, level=[99])
    assert "too few errors for the intervals" in model.report_["problem"].to_list()


@pytest.mark.parametrize("name", ["short", "constant", "zero", "empty", "gap", "twice", "infinite"])
@pytest.mark.parametrize("parameters", [QUICK, {}])
def test_odd_series_can_be_refused(name, parameters):
    if name == "short" and not parameters:
        pytest.skip("three values are enough for the default")
    df = odd_panel()
    df = df[df["unique_id"].isin(["a", name])]
    model = RBFDiffNet("D", **parameters, errors="raise")
    with pytest.raises(ValueError, match=f"Series '{name}'.*errors='fallback'"):
        model.fit(df)
    assert len(model.forecast(df[df["unique_id"] == "a"], 2)) == 2


def test_a_lower_bound_holds_for_forecasts_and_intervals():
    rng = np.random.default_rng(2)
    df = make_panel("ab", n=100).assign(y=rng.poisson(0.4, 200) / 2.0)
    free = forecast(df, 10, level=[80, 95], **LOCAL)
    assert free[f"{NAME}-lo-95"].min() < 0.0
    bound = forecast(df, 10, level=[80, 95], lower=0, **LOCAL)
    np.testing.assert_array_equal(bound[LEVELS], np.maximum(free[LEVELS], 0.0))
    model = RBFDiffNet("D", lower=0.5, **LOCAL).fit(df)
    assert model.fitted_values()[NAME].min() >= 0.5
    assert model.cross_validation(df, 5, level=[80])[LEVELS[:3]].min(axis=None) >= 0.5


NETWORKS = [LOCAL, {"scope": "global"}, {**LOCAL, "calendar": "auto"}]


@pytest.mark.parametrize(
    ("days_ago", "value", "parameters"),
    [
        *product([1, 7], [0.0, 1e9], NETWORKS),
        *((4, value, LOCAL) for value in (1e3, -400.0)),
        (1, 0.0, {}),
        (4, 1e9, {}),
    ],
)
def test_a_closure_or_an_outlier_does_not_move_the_next_days(days_ago, value, parameters):
    df = make_panel("ab", n=200)
    clean = forecast(df, 7, **parameters)
    df.loc[200 - days_ago, "y"] = value
    spoiled = forecast(df, 7, **parameters)
    # The noise has standard deviation 1, the week an amplitude of 8, the level is 60.
    difference = np.abs(spoiled[NAME] - clean[NAME])
    assert difference.max() < 2.0
    assert difference.mean() < 0.75


@pytest.mark.parametrize("scope", [None, "local"])
def test_a_new_level_is_followed(scope):
    df = make_panel("a", n=200)
    df.loc[df.index[-21:], "y"] += 60.0
    found = forecast(df, 7, scope=scope)[NAME]
    assert found.mean() > 100.0


@pytest.mark.parametrize(("size", "steps"), [(-60.0, 3), (60.0, 5), (60.0, 12)])
@pytest.mark.parametrize(
    ("freq", "n"), [("W", 150), ("MS", 120), ("h", 190), ("D", 190), ("YS", 60)]
)
def test_the_latest_level_is_followed(freq, n, size, steps):
    rng = np.random.default_rng(1)
    walk = 200.0 + 0.3 * rng.normal(size=n).cumsum() + 0.5 * rng.normal(size=n)
    df = make_panel("a", n=n, start="1960-01-01", freq=freq)
    clean = RBFDiffNet(freq, **LOCAL)
    before = clean.forecast(df.assign(y=walk), 4)[NAME].mean()
    assert len(clean.report_) == 0
    walk[-steps:] += size
    model = RBFDiffNet(freq, **LOCAL)
    found = model.forecast(df.assign(y=walk), 4)
    assert found[NAME].mean() == pytest.approx(before + size, abs=0.25 * abs(size))
    if freq != "YS":  # where a season has no length, the edge of a level may look odd
        assert len(model.report_) == 0
        kept = RBFDiffNet(freq, **LOCAL, outliers=False).forecast(df.assign(y=walk), 4)
        assert_frame_equal(found, kept, check_exact=True)


@pytest.mark.parametrize("scope", ["local", "global"])
def test_negative_values_have_no_logarithm(scope):
    df = make_panel("abc", n=60)
    df.loc[70, "y"] = -3.0
    model = RBFDiffNet("D", scope=scope, transforms=["log1p"], **QUICK)
    found = model.forecast(df, 7, level=[80]).set_index("unique_id")
    assert model.report_["unique_id"].to_list() == ["b"]
    assert model.report_["problem"].item() == ("log1p needs values that are not negative, found -3")
    assert model.report_["action"].item() == "forecast by the last season, or the last value"
    np.testing.assert_array_equal(found.loc["b", NAME], df["y"].iloc[113:120])
    others = forecast(
        df[df["unique_id"] != "b"], 7, scope=scope, transforms=["log1p"], **QUICK
    ).set_index("unique_id")
    for name in "ac":
        np.testing.assert_array_equal(found.loc[name, NAME], others.loc[name, NAME])
    with pytest.raises(ValueError, match=r"Series 'b' cannot be fitted: log1p"):
        RBFDiffNet("D", scope=scope, transforms=["log1p"], errors="raise", **QUICK).fit(df)


@pytest.mark.parametrize("seed", range(3))
def test_two_nearly_identical_series_share_a_network(seed):
    rng = np.random.default_rng(seed)
    t = np.arange(314)
    truth = 100.0 + 20.0 * np.sin(2 * np.pi * t / 7)
    first = truth[:300] + 4.0 * rng.normal(size=300)
    second = first + 0.1 * rng.normal(size=300)
    df = make_panel("ab", n=300).assign(y=np.concatenate([first, second]))
    found = forecast(df, 14, scope="global")
    error = np.abs(found[NAME].to_numpy().reshape(2, 14) - truth[300:])
    assert error.mean(axis=1).max() < 3.0


def test_a_shared_network_needs_eight_values_of_a_series():
    df = make_panel("ab", n=60)
    short, enough = (df.tail(n).assign(unique_id=str(n)) for n in (7, 8))
    model = RBFDiffNet("D", scope="global").fit(pd.concat([short, df, enough]))
    assert model.report_["unique_id"].to_list() == ["7"]
    assert model.report_["problem"].item() == "too short (known values: 7, needed: 8)"
    parts = model.explain(1).groupby("unique_id")["part"].unique()
    assert ["fallback" in parts[name] for name in ("7", "8", "a")] == [True, False, False]
    # Where that is all there is, each series says what it lacks.
    model.fit(pd.concat([short, df.head(9).assign(y=np.nan)]))
    short, empty = model.report_["problem"]
    assert short == "too short (known values: 7, needed: 8)"
    assert empty.startswith("no values; 1 other series")


@pytest.mark.parametrize("parameters", [QUICK, {}])
def test_an_unfinished_last_period_costs_its_row_alone(parameters):
    df = make_panel("ab", n=60, freq="W-MON")
    last = (df["unique_id"] == "a") & (df["ds"] == df["ds"].max())
    moved = df.assign(ds=df["ds"].where(~last, df["ds"] - pd.Timedelta(days=3)))
    model, clean = (RBFDiffNet("W-MON", **parameters).fit(rows) for rows in (moved, df[~last]))
    assert_frame_equal(model.predict(3), clean.predict(3))
    date = f"{moved.loc[last, 'ds'].iloc[0]:%Y-%m-%d}"
    assert model.report_.values.tolist()[0] == ["a", f"1 off-grid date, first {date}", "ignored"]
    assert model.report_.values.tolist()[1:] == clean.report_.values.tolist()
    model.update(df[last])
    assert model.predict(1, level=None)["ds"].nunique() == 1


def test_none_is_a_missing_value_everywhere(tmp_path):
    """As rows of databases have it, in columns of objects."""
    df = make_panel("ab", n=60)
    holes = df["y"].where(~df.index.isin([7, 30, 59, 80]))
    none = df.assign(y=holes.astype(object).where(holes.notna(), None))
    nan = df.assign(y=holes)
    last = df["ds"].max() - pd.Timedelta(days=3)

    def results(frame):
        past, new = frame[frame["ds"] <= last], frame[frame["ds"] > last]
        model, shared = RBFDiffNet("D", **QUICK), RBFDiffNet("D", scope="global").fit(df)
        yield model.fit(frame).predict(2)
        yield model.fit(past).update(new).predict(2)
        yield model.fit(past).update(new, refit=True).predict(2)
        yield model.forecast(frame, 2)
        yield model.cross_validation(frame, 2, 2)
        yield model.detect_anomalies(frame)
        yield shared.predict(2, new_df=frame)
        write_report(tmp_path / "a.html", frame, model.forecast(frame, 2))
        yield pd.DataFrame([(tmp_path / "a.html").read_text(encoding="utf-8")])

    assert none["y"].isna().sum() == 4
    assert none["y"].dtype == object
    for found, expected in zip(results(none), results(nan), strict=True):
        assert_frame_equal(found, expected)
