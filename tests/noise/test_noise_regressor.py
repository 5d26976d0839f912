"""Series in, forecasts out: the noise of a regressor, from its settings to its forecasts."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from rbfdiffnet import RBFDiffNetRegressor
from rbfdiffnet.datasets import henon_map, logistic_map
from rbfdiffnet.noise.regressor import series_of
from rbfdiffnet.series.windows import lag_windows

N, LEVEL = 400, 0.1
CLEAN = henon_map(N + 100)
NOISY = CLEAN + LEVEL * np.random.default_rng(0).normal(size=CLEAN.size)
WHITE = np.random.default_rng(1).normal(size=N)  # no noise is found here with 4 lags
SERIES = NOISY[:N]


@pytest.fixture(scope="module")
def model():
    return RBFDiffNetRegressor(noise="auto").fit_series(SERIES, n_lags=2)


@pytest.fixture(scope="module")
def plain():
    return RBFDiffNetRegressor().fit_series(SERIES, n_lags=2)


def rms(x):
    return np.sqrt(np.mean(np.square(x)))


def same_network(one, other):
    for name in ("centers", "beta", "a", "w", "linear", "metric"):
        np.testing.assert_array_equal(getattr(one.network_, name), getattr(other.network_, name))


def test_what_is_known_of_the_noise(model):
    assert model.noise_reason_ == ""
    assert model.noise_std_ == pytest.approx(LEVEL, rel=0.15)
    assert model.signal_to_noise_ == pytest.approx(CLEAN.var() / LEVEL**2, rel=0.2)
    assert model.latent_.shape == (N,)
    assert rms(model.latent_ - CLEAN[:N]) < 0.5 * LEVEL
    assert model.n_features_in_ == 2
    assert model.centers_.shape == (len(model.network_.centers), 2)


def test_without_noise_only_the_windows_count(plain):
    assert plain.noise_reason_ == "noise is not treated"
    assert plain.noise_std_ == 0.0
    assert plain.signal_to_noise_ == np.inf
    np.testing.assert_array_equal(plain.latent_, SERIES)
    same_network(plain, RBFDiffNetRegressor().fit(*lag_windows(SERIES, 2)))
    same_network(plain, RBFDiffNetRegressor(noise=0.0).fit_series(SERIES, 2))
    X = lag_windows(NOISY[N:], 2)[0]
    np.testing.assert_array_equal(plain.predict_noisy(X), plain.predict(X))


def test_where_no_noise_is_found_the_network_is_the_usual_one():
    auto = RBFDiffNetRegressor(noise="auto").fit_series(WHITE, 4)
    assert "noise in the process" in auto.noise_reason_
    usual = RBFDiffNetRegressor().fit_series(WHITE, 4)
    same_network(auto, usual)
    np.testing.assert_allclose(auto.forecast(5), usual.forecast(5), rtol=1e-12)
    np.testing.assert_allclose(auto.latent_, WHITE, rtol=1e-12)


@pytest.mark.parametrize("s", [logistic_map(N + 100), CLEAN], ids=["logistic", "Henon"])
def test_clean_series_get_a_larger_network_where_it_is_better(s):
    auto, usual = (RBFDiffNetRegressor(noise=n).fit_series(s[:N], 2) for n in ("auto", None))
    assert auto.noise_reason_ == "the series is clean"
    X, y = lag_windows(s[N:], 2)
    assert rms(auto.predict(X) - y) <= rms(usual.predict(X) - y)
    np.testing.assert_array_equal(auto.predict_noisy(X), auto.predict(X))
    for o in (N, N + 40):
        np.testing.assert_allclose(auto.forecast(3, s[:o]), s[o : o + 3], atol=0.01)


def test_noisy_windows_are_predicted_better_than_without(model, plain):
    X, y = lag_windows(NOISY[N - 2 :], 2)[0], CLEAN[N:]
    error = rms(model.predict_noisy(X) - y)
    assert error < 0.85 * rms(plain.predict(X) - y)
    assert error < 0.85 * rms(model.predict(X) - y)


@pytest.mark.slow
def test_the_network_is_that_of_clean_windows(model, plain):
    X, y = lag_windows(CLEAN[N - 2 :], 2)
    ratios = [rms(model.predict(X) - y) / rms(plain.predict(X) - y)]
    for seed in (1, 2):
        s = CLEAN[:N] + LEVEL * np.random.default_rng(seed).normal(size=N)
        errors = [
            rms(RBFDiffNetRegressor(noise=noise).fit_series(s, 2).predict(X) - y)
            for noise in ("auto", None)
        ]
        ratios.append(errors[0] / errors[1])
    assert np.mean(ratios) < 0.5
    assert max(ratios) < 0.75


def test_forecasts_are_better_than_without(model, plain):
    away = [
        [m.forecast(3, NOISY[:o]) - CLEAN[o : o + 3] for o in range(N, N + 97, 3)]
        for m in (model, plain)
    ]
    sizes = [np.abs(each).mean() for each in away]  # forecasts are medians
    assert sizes[0] < 0.9 * sizes[1]


def test_rows_of_a_series_are_the_series(model):
    other = RBFDiffNetRegressor(noise="auto").fit(*lag_windows(SERIES, 2))
    same_network(other, model)
    np.testing.assert_array_equal(other.latent_, model.latent_)
    np.testing.assert_array_equal(other.forecast(5), model.forecast(5))


def test_other_rows_are_refused(rng):
    X, y = lag_windows(SERIES, 2)
    order = rng.permutation(len(X))
    message = "rows must be consecutive windows of one series"
    with pytest.raises(ValueError, match=message):
        RBFDiffNetRegressor(noise="auto").fit(X[order], y[order])
    with pytest.raises(ValueError, match=message):
        RBFDiffNetRegressor(noise="auto").fit(X, y, sample_weight=np.ones(len(X)))
    with pytest.raises(ValueError, match="1d array"):
        RBFDiffNetRegressor(noise="auto").fit(X, np.column_stack([y, y]))


@pytest.mark.parametrize("noise", [-0.1, np.nan, np.inf, "yes", "0.1", True, [0.1]], ids=str)
def test_a_noise_that_makes_no_sense_is_refused(noise):
    with pytest.raises(ValueError, match="noise must be"):
        RBFDiffNetRegressor(noise=noise).fit_series(SERIES, 2)
    with pytest.raises(ValueError, match="noise must be"):
        RBFDiffNetRegressor(noise=noise).fit(*lag_windows(SERIES, 2))


@pytest.mark.parametrize("noise", ["auto", 0.01])
def test_noise_is_not_treated_with_other_basis_functions(noise):
    model = RBFDiffNetRegressor(basis="inverse_quadratic", noise=noise)
    with pytest.raises(ValueError, match=r"Gaussian basis functions only.*or noise=None"):
        model.fit(*lag_windows(SERIES, 2))
    with pytest.raises(ValueError, match=r"Gaussian basis functions only.*or noise=None"):
        model.fit_series(SERIES, 2)
    model.set_params(noise=0).fit_series(SERIES, 2)
    assert model.network_.basis == "inverse_quadratic"


def test_a_given_noise_is_used():
    model = RBFDiffNetRegressor(noise=0.15).fit_series(SERIES, 2)
    assert model.noise_std_ == pytest.approx(0.15)
    assert model.noise_reason_ == ""
    with pytest.raises(ValueError, match="50 observations are too few"):
        RBFDiffNetRegressor(noise=0.15).fit_series(SERIES[:50], 2)
    with pytest.raises(ValueError, match="Most observations are the same"):
        RBFDiffNetRegressor(noise=0.15).fit_series(np.ones(N), 2)


@pytest.mark.parametrize(
    ("s", "reason"), [(SERIES[:50], "too few"), (np.ones(N), "Most observations are the same")]
)
def test_where_noise_cannot_be_sought_the_network_is_the_usual_one(s, reason):
    auto = RBFDiffNetRegressor(noise="auto").fit_series(s, 2)
    assert reason in auto.noise_reason_
    same_network(auto, RBFDiffNetRegressor().fit_series(s, 2))
    assert np.isfinite(auto.forecast(3)).all()


@pytest.mark.parametrize(
    ("s", "n_lags", "message"),
    [
        (np.append(SERIES, [np.inf, 1.0]), 2, "infinite at position 400"),
        (np.append(SERIES[:7], -np.inf), 2, "infinite at position 7"),
        (SERIES[:, None], 2, "give one series of shape"),
        (SERIES[:, None, None], "auto", r"k sensors; got \(400, 1, 1\)"),
        (np.full(N, np.nan), 2, "no 3 values in a row: 400 values, 0 of them known"),
        (np.where(np.arange(N) % 3, SERIES, np.nan), 4, "no 5 values in a row"),
        (SERIES[:2], 2, "no 3 values in a row"),
        ([], 2, "no 3 values in a row"),
        (SERIES, 0, "n_lags must be an integer of at least 1"),
        (SERIES, 2.5, "n_lags must be an integer of at least 1"),
    ],
)
def test_a_series_that_cannot_be_fitted_is_refused(s, n_lags, message):
    with pytest.raises(ValueError, match=message):
        RBFDiffNetRegressor(noise="auto").fit_series(s, n_lags)


@pytest.mark.parametrize(
    "as_input",
    [
        list,
        lambda s: pd.Series(s, index=pd.date_range("2024", periods=len(s))),
        lambda s: pd.Series(s, dtype="Float64"),
        lambda s: s.astype(np.float64)[::-1].copy()[::-1],
    ],
    ids=["list", "pandas", "nullable", "strided"],
)
def test_any_series_will_do(as_input, plain):
    same_network(RBFDiffNetRegressor().fit_series(as_input(SERIES), 2), plain)
    np.testing.assert_array_equal(plain.forecast(3, history=as_input(SERIES)), plain.forecast(3))


def test_missing_values_of_any_kind_leave_rows_out():
    s = SERIES.copy()
    s[[50, 51, 200]] = np.nan
    model = RBFDiffNetRegressor().fit_series(s, 2)
    rows = np.lib.stride_tricks.sliding_window_view(s, 3)
    rows = rows[np.isfinite(rows).all(axis=1)]
    same_network(model, RBFDiffNetRegressor().fit(rows[:, :2], rows[:, 2]))
    nullable = pd.Series(s, dtype="Float64").where(~np.isnan(s), pd.NA)
    same_network(model, RBFDiffNetRegressor().fit_series(nullable, 2))
    steps = np.arange(N)
    known = np.isfinite(s)
    np.testing.assert_array_equal(model.latent_, np.interp(steps, steps[known], s[known]))
    assert np.isfinite(model.forecast(3)).all()


def test_copies_and_clones(model):
    X = lag_windows(NOISY[N:], 2)[0]
    copied = pickle.loads(pickle.dumps(model))
    same_network(copied, model)
    np.testing.assert_array_equal(copied.predict_noisy(X), model.predict_noisy(X))
    np.testing.assert_array_equal(copied.forecast(4), model.forecast(4))
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    assert fresh.noise == "auto"
    with pytest.raises(NotFittedError):
        fresh.forecast(1)
    with pytest.raises(NotFittedError):
        fresh.predict_noisy(X)
    assert fresh.set_params(noise=None).noise is None


@pytest.mark.parametrize("name", ["model", "plain"])
def test_forecasts_have_the_shape_of_what_is_asked(name, request):
    fitted = request.getfixturevalue(name)
    assert fitted.forecast(6).shape == (6,)
    assert fitted.forecast(6, quantiles=[0.5]).shape == (6, 1)
    paths = fitted.forecast(6, quantiles=[0.1, 0.5, 0.9])
    assert paths.shape == (6, 3)
    np.testing.assert_array_equal(paths[:, 1], fitted.forecast(6))
    assert np.all(np.diff(paths, axis=1) >= 0.0)
    np.testing.assert_array_equal(fitted.forecast(6, history=SERIES), fitted.forecast(6))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"h": 0}, "h must be an integer of at least 1"),
        ({"h": 2.5}, "h must be an integer of at least 1"),
        ({"h": 1, "history": [1.0]}, "history has 1 values; 2 are needed"),
        ({"h": 1, "history": [1.0, np.inf]}, "The history is infinite at position 1"),
        ({"h": 1, "quantiles": [0.5, 1.5]}, "quantiles must lie between 0 and 1"),
        ({"h": 1, "quantiles": [np.nan]}, "quantiles must lie between 0 and 1"),
        ({"h": 1, "quantiles": [[0.5]]}, "quantiles must be a sequence"),
        ({"h": 1, "quantiles": 0.5}, "quantiles must be a sequence"),
    ],
)
def test_forecasts_that_make_no_sense_are_refused(arguments, message, model, plain):
    for fitted in (model, plain):
        with pytest.raises(ValueError, match=message):
            fitted.forecast(**arguments)


def test_forecasts_need_a_series():
    fitted = RBFDiffNetRegressor().fit(*lag_windows(SERIES, 2))
    with pytest.raises(ValueError, match="forecast needs a model of a series"):
        fitted.forecast(1)
    X = lag_windows(NOISY[N:], 2)[0]
    np.testing.assert_array_equal(fitted.predict_noisy(X), fitted.predict(X))


def test_windows_must_fit(model):
    with pytest.raises(ValueError, match="3 features"):
        model.predict_noisy(np.ones((2, 3)))
    with pytest.raises(ValueError, match="infinity"):
        model.predict_noisy(np.full((2, 2), np.inf))


def test_gaps_in_windows_are_no_observations(model):
    X, _ = lag_windows(SERIES[-60:], 2)
    gaps = X.copy()
    gaps[30, 1] = gaps[31, 0] = np.nan
    found, whole = model.predict_noisy(gaps), model.predict_noisy(X)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[:30], whole[:30])
    assert found[30] != whole[30]


@pytest.mark.parametrize("noise", [None, 0.1])
def test_fit_forgets_an_earlier_series(noise):
    fitted = RBFDiffNetRegressor(noise=noise).fit_series(SERIES, 2)
    X, y = lag_windows(1e3 * logistic_map(100), 3)
    fitted.set_params(noise=None).fit(X, y)
    for name in ("latent_", "noise_std_", "signal_to_noise_", "noise_reason_"):
        assert not hasattr(fitted, name)
    with pytest.raises(ValueError, match="forecast needs a model of a series"):
        fitted.forecast(1)
    same_network(fitted, RBFDiffNetRegressor().fit(X, y))
    np.testing.assert_array_equal(fitted.predict_noisy(X), fitted.predict(X))


def test_a_later_series_is_another_one(model):
    fitted = RBFDiffNetRegressor().fit_series(1e3 * logistic_map(100), 3)
    fitted.set_params(noise="auto").fit_series(SERIES, 2)
    same_network(fitted, model)
    np.testing.assert_array_equal(fitted.forecast(4), model.forecast(4))
    fitted.set_params(noise=None).fit_series(WHITE, 4)
    assert (fitted.noise_std_, fitted.signal_to_noise_) == (0.0, np.inf)
    expected = RBFDiffNetRegressor().fit_series(WHITE, 4)
    np.testing.assert_array_equal(fitted.forecast(4), expected.forecast(4))


def test_lags_of_the_linear_part_are_not_those_of_the_windows():
    fitted = RBFDiffNetRegressor(n_lags=2).fit_series(SERIES, n_lags=4)
    assert fitted.forecast(3).shape == (3,)


def test_gaps_in_a_history_are_stepped_over_without_noise(plain):
    history = SERIES.copy()
    history[10] = np.nan
    np.testing.assert_array_equal(plain.forecast(3, history), plain.forecast(3))
    history[-2] = np.nan  # within the window: a line across the gap
    filled = np.append(SERIES[:-2], [(SERIES[-3] + SERIES[-1]) / 2.0, SERIES[-1]])
    np.testing.assert_allclose(plain.forecast(3, history), plain.forecast(3, filled), rtol=1e-9)
    assert not np.allclose(plain.forecast(3, history), plain.forecast(3))


def test_gaps_in_a_history_are_gaps_to_the_filter(model):
    """Lines across them would be taken for observations."""
    errors = {"gaps": [], "lines": []}
    for o in range(N + 10, N + 97, 5):
        history = NOISY[:o].copy()
        history[[-2, -5]] = np.nan
        known = np.flatnonzero(np.isfinite(history))
        lines = np.interp(np.arange(o), known, history[known])
        for name, values in (("gaps", history), ("lines", lines)):
            errors[name].append(model.forecast(2, values) - CLEAN[o : o + 2])
    assert rms(errors["gaps"]) < 0.6 * rms(errors["lines"])


def test_names_of_columns_are_kept():
    X, y = lag_windows(CLEAN[:N], 2)
    frame = pd.DataFrame(X, columns=["before", "now"])
    fitted = RBFDiffNetRegressor(noise="auto").fit(frame, y)
    assert list(fitted.feature_names_in_) == ["before", "now"]


def test_names_of_an_earlier_frame_are_forgotten(plain):
    X, y = lag_windows(SERIES, 2)
    fitted = clone(plain).fit(pd.DataFrame(X, columns=["before", "now"]), y)
    assert list(fitted.feature_names_in_) == ["before", "now"]
    fitted.fit_series(SERIES, 2)
    assert not hasattr(fitted, "feature_names_in_")


@pytest.mark.parametrize("n_lags", [1, 2, 5])
def test_series_and_their_windows(n_lags, rng):
    s = rng.normal(size=30)
    X, y = lag_windows(s, n_lags)
    np.testing.assert_array_equal(series_of(X, y), s)
    assert series_of(X[::-1], y[::-1]) is None
    assert series_of(X[::2], y[::2]) is None
