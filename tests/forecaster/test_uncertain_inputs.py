"""Future values of inputs that are known with an error."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal

from panels import NAME, QUICK, make_panel, to_polars
from rbfdiffnet import Event, RBFDiffNet
from rbfdiffnet.series.effects import Effects

H = 4
QUANTILES = [0.025, 0.1, 0.3, 0.5, 0.7, 0.9, 0.975]
MODELS = {
    "stack": {},
    "instant": {"preset": "instant"},
    "local": {"scope": "local"},
    "fast": QUICK,
    "global": {"scope": "global"},
}


def demand(shift=0.0):
    df = make_panel("bac", n=120, columns=["price", "offer"])
    return df.assign(y=df["y"] + shift, warm=np.random.default_rng(3).normal(size=len(df)))


def plan_of(model):
    return model.make_future_frame(H).assign(price=2.2, offer="none", warm=0.3)


def quantiles_of(model, X_df):
    found = model.predict(H, X_df, level=None, quantiles=QUANTILES)
    return found[NAME].to_numpy(), found.iloc[:, 3:].to_numpy()


@pytest.mark.parametrize("shift", [0.0, -80.0], ids=["relative", "additive"])
@pytest.mark.parametrize("parameters", MODELS.values(), ids=MODELS)
def test_quantiles_are_those_of_forecasts_with_sampled_inputs(parameters, shift):
    model = RBFDiffNet("D", **parameters).fit(demand(shift))
    plan, std = plan_of(model), 0.4
    points, plain = quantiles_of(model, plan)
    same, wide = quantiles_of(model, plan.assign(price_std=std))
    np.testing.assert_array_equal(points, same)
    # Draw inputs, forecast with each of them, and draw from every forecast around its point.
    dearer = model.predict(H, plan.assign(price=3.2), level=None)[NAME].to_numpy()
    slope = dearer - points
    assert (np.abs(slope) > 0.5).all()
    rng = np.random.default_rng(0)
    smooth = 0.15 if "lags" in parameters or "scope" in parameters else 0.05  # few errors: steps
    fine = list(np.linspace(0.001, 0.999, 999).round(6))
    grid = model.predict(H, plan, level=None, quantiles=fine).iloc[:, 3:].to_numpy()
    for row in range(len(points)):
        drawn = np.interp(rng.random(100_000), fine, grid[row])
        drawn += slope[row] * rng.normal(0.0, std, drawn.size)
        expected = np.quantile(drawn, QUANTILES)
        assert_allclose(wide[row], expected, atol=smooth * drawn.std())
    wider, before = (np.mean(q[:, -2] - q[:, 1]) for q in (wide, plain))
    assert wider > 1.02 * before


def test_two_uncertain_inputs_add_their_variances_and_zero_changes_nothing():
    model = RBFDiffNet("D").fit(demand())
    plan = plan_of(model)
    _, plain = quantiles_of(model, plan)
    _, sure = quantiles_of(model, plan.assign(price_std=0.0))
    np.testing.assert_array_equal(plain, sure)
    _, some = quantiles_of(model, plan.assign(price_std=np.where(plan.index % H == 1, 0.5, 0.0)))
    np.testing.assert_array_equal(some[plan.index % H != 1], plain[plan.index % H != 1])
    assert (some[1::H, 0] < plain[1::H, 0]).all()
    both = plan.assign(price_std=30.0, warm_std=40.0)  # so much that nothing else matters

    def spread(X_df):
        _, found = quantiles_of(model, X_df)
        return (found[:, 5] - found[:, 3]) ** 2

    each = spread(both.drop(columns="warm_std")) + spread(both.drop(columns="price_std"))
    assert_allclose(spread(both), each, rtol=0.05)


def test_paths_and_totals_are_wider_too():
    model = RBFDiffNet("D").fit(demand())
    plan = plan_of(model)
    wide = plan.assign(price_std=0.8)
    by = ["unique_id", "ds"]
    paths = [model.simulate(H, 400, 1, X).groupby(by)[NAME].std() for X in (plan, wide)]
    assert (paths[1] > 1.1 * paths[0]).all()
    _, expected = quantiles_of(model, wide)
    drawn = model.simulate(H, 400, 1, wide).groupby(by, sort=False)[NAME].quantile(0.9)
    assert_allclose(drawn, expected[:, 5], rtol=0.01)
    sums = [model.predict(H, X, level=[80], totals=H) for X in (plan, wide)]
    plain, wider = (s[f"{NAME}-hi-80"] - s[f"{NAME}-lo-80"] for s in sums)
    assert (wider > plain).all()


@pytest.mark.parametrize("later", [-3, 2, 6])
def test_paths_of_a_newcomer_on_other_dates_are_as_wide_as_its_quantiles(later):
    df = make_panel("bac", n=120, columns=["price"])
    last = df[df["unique_id"] == "a"].tail(1)
    date = last["ds"] + pd.Timedelta(days=later)
    model = RBFDiffNet("D").fit(pd.concat([df, last.assign(unique_id="new", ds=date, y=np.nan)]))
    plan = model.make_future_frame(H).assign(price=2.0)
    plan["price_std"] = np.where(plan["ds"] <= df["ds"].max() + pd.Timedelta(days=2), 0.0, 8.0)
    own = model.predict(H, plan, level=[80]).query("unique_id == 'new'")
    paths = model.simulate(H, 1000, X_df=plan).query("unique_id == 'new'").groupby("ds")[NAME]
    for end, p in (("lo", 0.1), ("hi", 0.9)):
        away = paths.quantile(p).to_numpy() - own[f"{NAME}-{end}-80"].to_numpy()
        width = (own[f"{NAME}-hi-80"] - own[f"{NAME}-lo-80"]).to_numpy()
        assert (np.abs(away) < 0.05 * width).all()


def test_forecast_scenarios_files_and_polars(tmp_path):
    df = demand()
    model = RBFDiffNet("D").fit(df)
    plan = plan_of(model)
    wide = plan.assign(price_std=0.4)
    found = model.predict(H, wide)
    assert_frame_equal(RBFDiffNet("D").forecast(df, H, wide, level=[80, 95]), found)
    model.save(tmp_path / "model")
    assert_frame_equal(RBFDiffNet.load(tmp_path / "model").predict(H, wide), found)
    assert len(model.report_) == 0
    polars = RBFDiffNet("D").fit(to_polars(df)).predict(H, to_polars(wide))
    assert_allclose(polars[f"{NAME}-lo-80"], found[f"{NAME}-lo-80"], rtol=1e-12)
    both = pd.concat([plan.assign(scenario="sure", price_std=0.0), wide.assign(scenario="unsure")])
    several = model.predict(H, both)
    unsure = several[several["scenario"] == "unsure"].drop(columns="scenario")
    assert_frame_equal(unsure.reset_index(drop=True), found)
    assert_frame_equal(several, RBFDiffNet("D").forecast(df, H, both, level=[80, 95]))


def test_quantiles_stay_within_what_is_possible():
    counts = demand().assign(y=lambda d: np.maximum((d["y"] - 60.0) // 10.0, 0.0))
    model = RBFDiffNet("D").fit(counts)
    _, found = quantiles_of(model, plan_of(model).assign(price_std=50.0))
    assert found.min() == 0.0
    assert (found == np.rint(found)).all()
    bounded = RBFDiffNet("D", lower=55.0, upper=80.0).fit(demand())
    _, found = quantiles_of(bounded, plan_of(bounded).assign(price_std=50.0))
    assert (found.min(), found.max()) == (55.0, 80.0)


def test_logarithms_are_widened_as_logarithms():
    model = RBFDiffNet("D", scope="auto", transforms=["log1p"]).fit(demand())
    plan = plan_of(model)
    points, plain = quantiles_of(model, plan)
    _, wide = quantiles_of(model, plan.assign(price_std=20.0))
    dearer = model.predict(H, plan.assign(price=3.2), level=None)[NAME].to_numpy()
    slope = np.log1p(dearer) - np.log1p(points)
    expected = np.hypot(1.2816 * 20.0 * slope, np.log1p(plain[:, 5]) - np.log1p(points))
    assert_allclose(np.log1p(wide[:, 5]) - np.log1p(points), expected, rtol=0.05)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"offer_std": 1.0}, r"'offer_std', but 'offer' holds text.*leave 'offer_std' out"),
        ({"code_std": 1.0}, r"'code_std', but 'code' holds text, or whole numbers"),
        ({"prize_std": 1.0}, r"'prize_std' that was not there in training"),
        ({"price_std": -1.0}, r"'price_std' is negative for series 'b' on 2023-05-01"),
        ({"price_std": np.nan}, r"'price_std' has no value for series 'b' on 2023-05-01"),
        ({"price_std": np.inf}, r"'price_std' is infinite for series 'b' on 2023-05-01"),
        ({"price_std": "much"}, r"'price_std' of X_df holds text"),
    ],
)
def test_what_is_refused(columns, message):
    df = demand()
    df = df.assign(code=np.arange(len(df)) % 5)
    model = RBFDiffNet("D", **QUICK).fit(df)
    with pytest.raises(ValueError, match=message):
        model.predict(H, plan_of(model).assign(code=1, **columns))


def test_a_column_of_the_series_with_that_name_is_an_input():
    df = demand().assign(price_std=np.random.default_rng(0).normal(size=360))
    model = RBFDiffNet("D", preset="instant").fit(df)
    plan = plan_of(model)
    low, high = (quantiles_of(model, plan.assign(price_std=x)) for x in (-5.0, 5.0))
    assert_allclose(high[1] - high[0][:, None], low[1] - low[0][:, None], rtol=0.3)


def no_deviation(effects, X, past):
    del effects, past
    return np.zeros(len(X))


def closings(n_days, n_series=1):
    """Return series that are closed on some days and on the second one ahead, and that event."""
    rng = np.random.default_rng(0)
    ds = pd.date_range("2023-01-01", periods=400)
    days = ds[np.linspace(60, 330, n_days).astype(int)]
    y = rng.normal(100.0, 8.0, (n_series, 400))
    y[:, ds.isin(days)] = 0.0
    names = np.repeat([f"s{i}" for i in range(n_series)], 400)
    df = pd.DataFrame({"unique_id": names, "ds": np.tile(ds, n_series), "y": y.ravel()})
    return df, Event("closed", [*days, ds[-1] + pd.Timedelta(days=2)])


@pytest.mark.parametrize("parameters", MODELS.values(), ids=MODELS)
def test_effects_seen_few_times_are_uncertain(parameters, tmp_path):
    widths = []
    for n_days in (2, 6):
        df, event = closings(n_days)
        model = RBFDiffNet("D", lower=0, events=[event], **parameters).fit(df)
        found = model.predict(3, level=[80])
        low, high = (found[f"{NAME}-{end}-80"].to_numpy() for end in ("lo", "hi"))
        assert low[1] == 0.0
        widths.append(high[1])
        model.save(tmp_path / "model")
        assert_frame_equal(RBFDiffNet.load(tmp_path / "model").predict(3, level=[80]), found)
    assert widths[0] > 1.2 * widths[1]


@pytest.mark.parametrize("n_series", [1, 5])
def test_errors_of_effects_widen_the_days_of_events_only(n_series, monkeypatch):
    df, event = closings(3, n_series)
    model = RBFDiffNet("D", events=[event]).fit(df)

    def tell():
        sums = model.predict(H, level=[80], totals=H)
        return quantiles_of(model, None), model.simulate(H, 400, 1), sums

    (points, wide), paths, sums = tell()
    monkeypatch.setattr(Effects, "deviation", no_deviation)
    (same, plain), certain, narrow = tell()
    np.testing.assert_array_equal(points, same)
    event_day = np.arange(len(wide)) % H == 1
    np.testing.assert_array_equal(wide[~event_day], plain[~event_day])
    assert (wide[event_day, -1] - wide[event_day, 0] > np.ptp(plain[event_day], axis=1)).all()
    drawn, before = (
        p.groupby(["unique_id", "ds"])[NAME].std()[event_day] for p in (paths, certain)
    )
    assert (drawn > before).all()
    more, less = (s[f"{NAME}-hi-80"] - s[f"{NAME}-lo-80"] for s in (sums, narrow))
    assert more.mean() > less.mean()


@pytest.mark.parametrize("parameters", MODELS.values(), ids=MODELS)
def test_inputs_that_are_often_used_do_not_widen_forecasts(parameters, monkeypatch):
    df, _ = closings(3)
    df["weekend"] = (df["ds"].dt.dayofweek >= 5).astype(float)
    df["price"] = np.random.default_rng(1).normal(2.0, 0.2, len(df))
    model = RBFDiffNet("D", **parameters).fit(df)
    plan = model.make_future_frame(H).assign(price=2.2, weekend=1.0)
    _, found = quantiles_of(model, plan)
    monkeypatch.setattr(Effects, "deviation", no_deviation)
    np.testing.assert_array_equal(quantiles_of(model, plan)[1], found)
