"""Noise in the observations, from a frame to its forecasts."""

import re

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from panels import NAME
from rbfdiffnet import RBFDiffNet, RBFDiffNetRegressor
from rbfdiffnet.datasets import henon_map, mackey_glass
from rbfdiffnet.noise import learn_trajectory

N, LEVEL = 300, 0.05
CLEAN = mackey_glass(N + 20, step=6.0)


def shocks(seed, n):
    return np.random.default_rng(seed).normal(size=n)


def autoregression(seed, n):
    s, noise = np.zeros(n), shocks(seed, n)
    for t in range(2, n):
        s[t] = 1.2 * s[t - 1] - 0.6 * s[t - 2] + noise[t]
    return s


def make_frame(**series):
    parts = [
        pd.DataFrame({"unique_id": name, "ds": np.arange(1, len(y) + 1), "y": y})
        for name, y in series.items()
    ]
    return pd.concat(parts, ignore_index=True)


NOISY = CLEAN + LEVEL * shocks(0, N + 20)
SERIES = {
    "noisy": NOISY[:N],
    "process": autoregression(1, N),
    "short": autoregression(2, 60),
    "constant": np.full(N, 3.0),
}
PANEL = make_frame(**SERIES)
ALONE = make_frame(noisy=NOISY[:N])
LATER = make_frame(noisy=NOISY).iloc[N:]
FAR = RBFDiffNetRegressor(basis="inverse_quadratic")

pytestmark = pytest.mark.usefixtures("remembered_trajectories")


@pytest.fixture(scope="module")
def plain():
    return RBFDiffNet(freq=1, scope="local").fit(PANEL)


@pytest.fixture(scope="module")
def auto():
    return RBFDiffNet(freq=1, noise="auto").fit(PANEL)


def of(frame, *names):
    return frame[frame["unique_id"].isin(names)].reset_index(drop=True)


def noise_notes(model):
    """Standard deviation and signal-to-noise by series, as the report has them."""
    pattern = r"noise.* of standard deviation (\S+), signal-to-noise (\S+)"
    found = {}
    for name, text in zip(model.report_["unique_id"], model.report_["problem"], strict=True):
        if match := re.fullmatch(pattern, text):
            found[name] = tuple(float(number) for number in match.groups())
    return found


def test_only_the_noisy_series_gets_a_note(auto, plain):
    notes = noise_notes(auto)
    assert list(notes) == ["noisy"]
    std, ratio = notes["noisy"]
    assert std == pytest.approx(LEVEL, rel=0.2)
    assert ratio == pytest.approx(CLEAN.var() / LEVEL**2, rel=0.4)
    others = auto.report_[auto.report_["unique_id"] != "noisy"].reset_index(drop=True)
    assert_frame_equal(others, plain.report_)
    assert others["unique_id"].to_list() == ["constant"]


def test_a_table_has_the_noise_of_every_series_or_why_there_is_none(auto, plain, tmp_path):
    table = auto.noise_.set_index("unique_id")
    assert list(table.index) == ["noisy", "process", "short"]  # the constant one has no network
    notes = noise_notes(auto)["noisy"]
    np.testing.assert_allclose(table.loc["noisy"].iloc[:2].astype(float), notes, rtol=0.01)
    assert table["noise_std"].isna().to_list() == [False, True, True]
    assert table.loc["noisy", "reason"] == ""
    assert "process" in table.loc["process", "reason"]
    assert "too few" in table.loc["short", "reason"]
    auto.save(tmp_path / "model")
    assert_frame_equal(RBFDiffNet.load(tmp_path / "model").noise_, auto.noise_)
    with pytest.raises(AttributeError, match="noise='auto'"):
        plain.noise_  # noqa: B018


@pytest.mark.slow
def test_the_other_series_are_forecast_as_before(auto, plain):
    others = ["process", "short", "constant"]
    found, expected = auto.predict(5), plain.predict(5)
    names = ["unique_id", "ds", NAME]
    assert_frame_equal(of(found, *others)[names], of(expected, *others)[names], check_exact=True)
    # Short series borrow errors from all of the panel for their intervals.
    assert_frame_equal(of(found, "process"), of(expected, "process"), check_exact=True)
    assert not np.allclose(of(found, "noisy")[NAME], of(expected, "noisy")[NAME], rtol=0.01)


def test_the_other_series_are_forecast_as_before_by_quick_networks():
    df = of(PANEL, "process", "short", "constant")
    found, expected = (
        RBFDiffNet(freq=1, preset="fast", noise=noise).forecast(df, 5) for noise in ("auto", None)
    )
    np.testing.assert_allclose(found[NAME], expected[NAME], rtol=1e-7)


@pytest.mark.slow
def test_forecasts_are_those_of_the_regressor():
    found = RBFDiffNet(freq=1, lags=4, noise=LEVEL).forecast(ALONE, 6)
    expected = RBFDiffNetRegressor(noise=LEVEL).fit_series(NOISY[:N], 4).forecast(6)
    np.testing.assert_allclose(found[NAME], expected, rtol=1e-9)


@pytest.fixture(scope="module")
def windows():
    """Forecasts from eight cutoffs, without noise treated and with it."""
    return {
        noise: RBFDiffNet(freq=1, scope="local", noise=noise).cross_validation(
            ALONE, h=5, n_windows=8, step_size=7, level=[80], refit=False
        )
        for noise in (None, "auto")
    }


@pytest.mark.slow
def test_forecasts_of_the_noisy_series_are_better_than_before(windows):
    clean = CLEAN[windows[None]["ds"] - 1]
    errors = {noise: np.abs(frame[NAME] - clean).mean() for noise, frame in windows.items()}
    assert errors["auto"] < 0.5 * errors[None]
    misses = {noise: np.abs(frame[NAME] - frame["y"]).mean() for noise, frame in windows.items()}
    assert misses["auto"] < 0.7 * misses[None]
    assert misses["auto"] < 1.2 * LEVEL  # hardly more than the noise of the values to come


@pytest.mark.slow
def test_intervals_cover_observations(windows):
    frame = windows["auto"]
    low, high = frame[f"{NAME}-lo-80"], frame[f"{NAME}-hi-80"]
    assert np.all((low <= frame[NAME]) & (frame[NAME] <= high))
    assert 0.65 < np.mean((low <= frame["y"]) & (frame["y"] <= high)) < 0.95
    width, least = (high - low).mean(), 2.0 * 1.28 * LEVEL  # least: that of the noise alone
    assert 0.9 * least < width < 1.5 * least
    before = windows[None]
    assert width < 0.8 * (before[f"{NAME}-hi-80"] - before[f"{NAME}-lo-80"]).mean()


@pytest.mark.slow
def test_every_window_may_be_fitted_anew():
    model = RBFDiffNet(freq=1, noise="auto")
    found = model.cross_validation(ALONE, h=4, n_windows=2, refit=True)
    assert noise_notes(model)["noisy"][0] == pytest.approx(LEVEL, rel=0.2)
    for cutoff, window in found.groupby("cutoff"):
        expected = RBFDiffNet(freq=1, noise="auto").forecast(ALONE.iloc[:cutoff], 4)
        np.testing.assert_array_equal(window[NAME], expected[NAME])


@pytest.mark.slow
def test_a_saved_model_forecasts_the_same(auto, tmp_path):
    auto.save(tmp_path / "model.npz")
    loaded = RBFDiffNet.load(tmp_path / "model.npz")
    assert loaded.noise == "auto"
    assert_frame_equal(loaded.predict(5, level=[80]), auto.predict(5, level=[80]))
    assert noise_notes(loaded) == noise_notes(auto)
    assert_frame_equal(loaded.explain(2), auto.explain(2))


@pytest.mark.slow
def test_a_loaded_model_is_fitted_anew_as_it_was(tmp_path):
    RBFDiffNet(freq=1, noise="auto").fit(ALONE).save(tmp_path / "model.npz")
    refitted = RBFDiffNet.load(tmp_path / "model.npz").update(LATER, refit=True)
    anew = RBFDiffNet(freq=1, noise="auto").fit(make_frame(noisy=NOISY))
    assert_frame_equal(refitted.predict(3), anew.predict(3), check_exact=True)
    assert noise_notes(refitted)["noisy"][0] == pytest.approx(LEVEL, rel=0.2)


@pytest.mark.slow
def test_explanations_add_up(auto):
    table, forecast = auto.explain(6), auto.predict(6, level=None)
    total = table.groupby(["unique_id", "ds"], sort=False)["contribution"].sum()
    np.testing.assert_allclose(total, forecast[NAME], rtol=1e-9)
    assert set(table.loc[table["part"] == "noise", "unique_id"]) == {"noisy"}
    own = of(table, "noisy")
    first = own[own["ds"] == N + 1]
    lags = first[first["part"] == "linear"]
    assert lags["term"].to_list() == ["lag 4", "lag 3", "lag 2", "lag 1"]
    # Lags are the filtered state, which is closer to the clean values than the observed ones are.
    assert np.abs(lags["value"] - CLEAN[N - 4 : N]).mean() < np.abs(NOISY - CLEAN)[N - 4 : N].mean()
    noise = first.loc[first["part"] == "noise", "contribution"].abs().sum()
    assert noise < 0.2 * np.std(CLEAN)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{"transforms": ["log1p"]}, {"inputs": True}],
    ids=str,
)
def test_explanations_add_up_on_other_scales(options):
    df, X_df = ALONE, None
    if options.pop("inputs", False):
        offer = (np.arange(N + 3) % 11 == 0) * 1.0
        df = ALONE.assign(offer=offer[:N], y=ALONE["y"] * (1.0 + 0.3 * offer[:N]))
        X_df = pd.DataFrame({"unique_id": "noisy", "ds": np.arange(N + 1, N + 4), "offer": 1.0})
    model = RBFDiffNet(freq=1, noise=0.05, **options).fit(df)
    assert list(noise_notes(model)) == ["noisy"]
    total = model.explain(3, X_df).groupby("ds")["contribution"].sum()
    np.testing.assert_allclose(total, model.predict(3, X_df, level=None)[NAME], rtol=1e-9)


@pytest.mark.slow
def test_results_do_not_depend_on_threads(auto, monkeypatch):
    monkeypatch.setattr(
        "rbfdiffnet.models.networks.series_model.learn_trajectory", learn_trajectory
    )  # not remembered
    model = RBFDiffNet(freq=1, noise="auto", n_jobs=2).fit(PANEL)
    assert_frame_equal(model.predict(5), auto.predict(5), check_exact=True)
    assert_frame_equal(model.report_, auto.report_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": "x"}, "noise must be None, 'auto' or a standard deviation, got 'x'"),
        ({"noise": -0.1}, "noise must be a number of at least 0; got -0.1"),
        ({"noise": np.nan}, "noise must be a number of at least 0"),
        ({"noise": np.inf}, "noise must be a number of at least 0"),
        ({"noise": True}, "noise must be a number of at least 0"),
        ({"noise": [0.1]}, "noise must be a number of at least 0"),
        ({"noise": "auto", "scope": "global"}, "noise needs scope='local'"),
        ({"noise": 0.1, "scope": "global"}, "noise needs scope='local'"),
        ({"noise": "auto", "strategy": "direct"}, "strategy='recursive'"),
        (
            {"noise": "auto", "regressor": FAR},
            "noise is treated with Gaussian basis functions only",
        ),
        ({"noise": "auto", "device": "cuda"}, "use these, or device='cpu'"),
        ({"noise": "auto", "device": "cuda", "preset": "fast"}, "use device='cpu'"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        RBFDiffNet(freq=1, **options)


def test_a_noise_of_zero_is_none(plain):
    model = RBFDiffNet(freq=1, noise=0.0).fit(PANEL)
    assert_frame_equal(model.predict(5), plain.predict(5), check_exact=True)
    assert_frame_equal(model.report_, plain.report_)


@pytest.mark.parametrize("noise", ["auto", 0.1])
@pytest.mark.parametrize("options", [{"transforms": ["difference"]}, {"past_exog": ["visitors"]}])
def test_differences_and_inputs_of_the_past_leave_no_place_for_noise(options, noise):
    df = ALONE.assign(visitors=shocks(3, N)) if "past_exog" in options else ALONE
    model = RBFDiffNet(freq=1, noise=noise, **options)
    expected = RBFDiffNet(freq=1, scope="local", **options).forecast(df, 5)
    assert_frame_equal(model.forecast(df, 5), expected, check_exact=True)
    assert not noise_notes(model)


@pytest.mark.slow
def test_a_given_noise_is_in_units_of_the_series():
    unit = 1e4
    df = ALONE.assign(y=unit * (ALONE["y"] + 7.0))
    found = {}
    for transforms in (None, ["standardize"]):
        model = RBFDiffNet(freq=1, noise=unit * 0.06, transforms=transforms).fit(df)
        assert noise_notes(model)["noisy"][0] == pytest.approx(unit * 0.06, rel=1e-2)
        found[str(transforms)] = model.predict(5, level=[80])
    for frame in found.values():
        away = frame.iloc[:, 2:] - found["None"].iloc[:, 2:]
        assert away[NAME].abs().max() < 1e-5 * unit
        # Filters over long histories draw differently where numbers differ by rounding.
        assert away.abs().max(axis=None) < 0.1 * LEVEL * unit


@pytest.mark.slow
def test_found_noise_is_in_units_of_the_series():
    df = ALONE.assign(y=1e4 * ALONE["y"])
    for transforms in (None, ["standardize"]):
        model = RBFDiffNet(freq=1, noise="auto", transforms=transforms).fit(df)
        assert noise_notes(model)["noisy"][0] == pytest.approx(1e4 * LEVEL, rel=0.2)


@pytest.mark.slow
def test_noise_of_logarithms_is_named_so():
    model = RBFDiffNet(freq=1, noise="auto", transforms=["log1p"]).fit(ALONE)
    (text,) = model.report_["problem"]
    assert text.startswith("noise of the logarithms of standard deviation")
    # One plus the values is about 2, so a logarithm is half as noisy as its value.
    expected = LEVEL * np.mean(1.0 / (1.0 + CLEAN))
    assert noise_notes(model)["noisy"][0] == pytest.approx(expected, rel=0.2)
    path = model.predict(5, level=None)[NAME]
    assert np.abs(path - CLEAN[N : N + 5]).mean() < LEVEL


def with_gaps(df, share, seed=9):
    """Some dates left out, and of those that remain some values."""
    u = np.random.default_rng(seed).random(len(df))
    u[[0, -1]] = 1.0
    return df.assign(y=df["y"].where(u > share / 2.0))[(u < share / 2.0) | (u > share)]


@pytest.mark.slow
def test_missing_dates_and_values_do_not_matter():
    df = with_gaps(ALONE, 0.1)
    assert len(df) < N
    assert df["y"].isna().any()
    model, usual = (RBFDiffNet(freq=1, scope="local", noise=each) for each in ("auto", None))
    options = {"h": 5, "n_windows": 4, "step_size": 7, "refit": False}
    found, before = model.cross_validation(df, **options), usual.cross_validation(df, **options)
    assert noise_notes(model)["noisy"][0] == pytest.approx(LEVEL, rel=0.2)
    clean = CLEAN[found["ds"] - 1]
    assert np.abs(found[NAME] - clean).mean() < 0.6 * np.abs(before[NAME] - clean).mean()


@pytest.mark.slow
def test_gaps_are_gaps_to_the_filter():
    s = henon_map(N) + 0.1 * shocks(0, N)
    model = RBFDiffNet(freq=1, lags=4, noise=0.1).fit(make_frame(henon=s[:-20]))
    history = s.copy()
    history[[-3, -8]] = np.nan
    model.update(make_frame(henon=history).iloc[-20:])
    regressor = RBFDiffNetRegressor(noise=0.1).fit_series(s[:-20], 4)
    found = model.predict(2, level=None)[NAME]
    np.testing.assert_allclose(found, regressor.forecast(2, history), rtol=1e-6)


@pytest.mark.slow
def test_later_values_move_the_state_on():
    model = RBFDiffNet(freq=1, lags=4, noise=LEVEL).fit(ALONE)
    first = model.predict(3, level=None)[NAME]
    found = model.update(LATER).predict(3, level=[80])
    assert np.all(found[f"{NAME}-lo-80"] < found[f"{NAME}-hi-80"])
    assert found["ds"].to_list() == [N + 21, N + 22, N + 23]
    assert noise_notes(model)["noisy"][0] == LEVEL
    regressor = RBFDiffNetRegressor(noise=LEVEL).fit_series(NOISY[:N], 4)
    np.testing.assert_allclose(found[NAME], regressor.forecast(3, NOISY), rtol=1e-9)
    assert not np.allclose(found[NAME], first)
    refitted = RBFDiffNet(freq=1, lags=4, noise=LEVEL).fit(ALONE).update(LATER, refit=True)
    anew = RBFDiffNet(freq=1, lags=4, noise=LEVEL).fit(make_frame(noisy=NOISY))
    assert_frame_equal(
        refitted.predict(3, level=None), anew.predict(3, level=None), check_exact=True
    )


@pytest.mark.slow
def test_fitted_values_are_predictions_of_clean_values(auto, plain):
    found, before = auto.fitted_values(), plain.fitted_values()
    for name in ("process", "short"):
        assert_frame_equal(of(found, name), of(before, name), check_exact=True)
    own, usual = of(found, "noisy"), of(before, "noisy")
    assert own["ds"].to_list() == list(range(65, N + 1))  # 60 values and 4 lags are looked back
    np.testing.assert_array_equal(own["y"], NOISY[64:N])
    usual = usual[usual["ds"] >= 65]
    errors = [np.abs(frame[NAME] - CLEAN[64:N]).mean() for frame in (own, usual)]
    assert errors[0] < 0.75 * errors[1]
    assert np.abs(own[NAME] - own["y"]).mean() < np.abs(usual[NAME] - usual["y"]).mean()


def test_a_noisy_series_has_no_equation(auto):
    """Its network is a plain one."""
    table = auto.equation()
    assert set(table["unique_id"]) == {"process", "short"}
