"""Numbers of any size: tiny ones are learned from, those too far from training are refused."""

import warnings

import numpy as np
import pytest

from rbfdiffnet import RBFDiffNetRegressor
from test_refusals import refused


def test_inputs_too_far_from_training_are_refused():
    X, y = np.array([[1.0], [2.0], [4.0]]), [1.0, 2.0, 3.0]
    model = RBFDiffNetRegressor(2).fit(X * 1e-310, y)
    assert np.isfinite(model.predict(X * 1e-310)).all()
    refused("X is so far from", lambda: model.predict(X))
    refused("centers lie too far", lambda: RBFDiffNetRegressor(centers=X).fit(X * 1e-310, y))


@pytest.mark.parametrize("n_lags", [2, "auto"])
def test_histories_too_far_from_training_are_refused(n_lags):
    s = np.sin(np.arange(120.0)) + 0.1 * np.random.default_rng(0).normal(size=120)
    model = RBFDiffNetRegressor(noise="auto").fit_series(s * 1e-138, n_lags)
    assert np.isfinite(model.forecast(3, history=s * 1e-60)).all()
    refused("The history is more than", lambda: model.forecast(3, history=s))


def test_values_too_small_to_choose_lags_by_are_refused():
    s = np.sin(np.arange(80.0)) * 1e-200
    refused("rescale the series", lambda: RBFDiffNetRegressor().fit_series(s))
    refused("0 values", lambda: RBFDiffNetRegressor().fit_series(s[:0]))


def test_trajectories_alike_but_for_a_spike():
    s = np.sin(np.arange(30.0)) + 0.1 * np.random.default_rng(30).normal(size=30)
    s[15] = 1e12
    assert np.isfinite(RBFDiffNetRegressor().fit_series([s, s]).forecast(3)).all()


@pytest.mark.parametrize("options", [{"metric": "common"}, {"fit_intercept": False}])
@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-200])
def test_regressors_of_tiny_numbers(options, size):
    t = np.linspace(-2.0, 2.0, 30)[:, None]
    X, y = np.hstack([t, np.cos(t)]) * size, 10.0 * np.sin(t[:, 0]) * size
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = RBFDiffNetRegressor(4, **options).fit(X, y).predict(X)
    assert np.isfinite(found).all()
    assert size < 1e-300 or np.abs(found - y).max() < size


@pytest.mark.parametrize("n_lags", [2, "auto"])
def test_delays_of_small_types_do_not_overflow(n_lags):
    s = np.sin(np.arange(120.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        message = "too few, or too much alike"
        refused(message, lambda: RBFDiffNetRegressor().fit_series(s, n_lags, np.uint8(200)))
