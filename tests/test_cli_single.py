import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge

from rbfdiffnet.cli.single import Settings, _forecast_after, forecast_series, seasonal_naive
from rbfdiffnet.recursion import forecast_recursive
from rbfdiffnet.transforms import Compose, Difference, Log
from rbfdiffnet.windows import lag_windows

MONTHLY = Settings(lambda: Ridge(1e-2), season_length=12)


def growing_season(n):
    t = np.arange(n)
    return np.exp(0.02 * t + 0.3 * np.sin(2 * np.pi * t / 12))


@pytest.mark.parametrize("shift", [0.0, -2.0])
def test_forecast_is_the_median_over_the_preprocessings(shift):
    series = growing_season(52) + shift
    paths = []
    for log in [(), (Log(),)] if shift == 0.0 else [()]:
        for difference in [(), (Difference(1),), (Difference(12),)]:
            step = Compose((*log, *difference))
            z = step.apply(series)
            n_lags = MONTHLY.lags_for(len(z))
            model = MONTHLY.make_model().fit(*lag_windows(z, n_lags))
            paths.append(
                step.invert(forecast_recursive(model.predict, z, 9, n_lags=n_lags), series)
            )
    forecast = forecast_series(series, 9, MONTHLY)
    np.testing.assert_allclose(forecast.values, np.median(paths, axis=0))
    assert forecast.note.startswith(f"median of {len(paths)} networks, 13 to 15 lags")
    assert ("logarithms" in forecast.note) == (shift == 0.0)


def test_a_network_that_runs_away_is_held():
    class Runaway:
        def fit(self, X, y):
            pass

        def predict(self, X):
            return X[:, -1] + 1e6

    forecast = forecast_series(np.sin(np.arange(40.0)), 30, Settings(Runaway))
    assert np.abs(forecast.values).max() < 8.0  # range 2, and three times that on either side


def test_trend_and_growing_season_are_continued():
    forecast = forecast_series(growing_season(120), 12, MONTHLY)
    np.testing.assert_allclose(forecast.values, growing_season(132)[120:], rtol=0.02)


def test_series_that_is_constant_after_a_difference_is_continued():
    broken = Settings(lambda: pytest.fail("there is nothing to fit"), season_length=1)
    step = Compose((Difference(),))
    line = np.arange(20.0)
    np.testing.assert_array_equal(_forecast_after(step, line, 3, broken), [20.0, 21.0, 22.0])


def test_lags_are_a_season_and_a_quarter_as_far_as_the_length_allows():
    assert [MONTHLY.lags_for(n) for n in (300, 45, 30)] == [15, 15, 10]
    assert Settings(Ridge).lags_for(100) == 4
    assert Settings(Ridge, season_length=52).lags_for(1000) == 65
    assert Settings(Ridge, season_length=12, n_lags=5).lags_for(10) == 5


@pytest.mark.parametrize("n", range(12, 40))
@pytest.mark.parametrize("season_length", [1, 4, 12])
def test_every_length_gives_a_finite_forecast(n, season_length):
    rng = np.random.default_rng(n)
    series = rng.uniform(1, 2, size=n)
    forecast = forecast_series(series, 3, Settings(LinearRegression, season_length))
    assert not forecast.is_fallback
    assert np.isfinite(forecast.values).all()


def test_seasonal_naive_repeats_the_last_season_or_value():
    assert seasonal_naive([1, 2, 3], 5, 2).tolist() == [2, 3, 2, 3, 2]
    assert seasonal_naive([1, 2, 3], 2, 4).tolist() == [3, 3]
