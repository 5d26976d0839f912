"""The metric of the basis functions: learned, or given."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1

from rbfdiffnet import RBFDiffNetRegressor
from regressions import QUICK


def test_learned_metric_finds_the_nonlinear_inputs():
    X, y = make_friedman1(500, n_features=10, noise=0.3, random_state=1)
    learned = RBFDiffNetRegressor().fit(X[:300], y[:300])
    standard = RBFDiffNetRegressor(metric="standard").fit(X[:300], y[:300])
    assert np.all(learned.network_.metric[5:] == 0.0)  # they do not enter the target
    assert learned.score(X[300:], y[300:]) > standard.score(X[300:], y[300:]) + 0.02


def test_a_given_metric_of_ones_is_the_standard_one(friedman):
    X, y = friedman
    standard = RBFDiffNetRegressor(8, **QUICK).fit(X, y)
    given = RBFDiffNetRegressor(8, **{**QUICK, "metric": np.ones(6)}).fit(X, y)
    np.testing.assert_array_equal(given.predict(X), standard.predict(X))


def test_a_given_metric_is_used_and_zeros_leave_inputs_out(friedman):
    X, y = friedman
    metric = [1.0, 1.0, 2.0, 0.0, 0.5, 0.0]
    model = clone(RBFDiffNetRegressor(8, n_lags=0, **{**QUICK, "metric": metric})).fit(X, y)
    np.testing.assert_array_equal(model.network_.metric, metric)
    other = X.copy()
    other[:, [3, 5]] = 0.0
    np.testing.assert_array_equal(model.predict(other), model.predict(X))


def test_a_given_metric_scales_inputs_of_the_basis_functions(friedman):
    X, y = friedman
    spread = np.array([1.0, 3.0, 0.5, 1.0, 1.0, 2.0])
    # Without linear part, a metric on inputs is the same as "common" units stretched by it.
    rng = np.random.default_rng(3)
    X = rng.normal(size=X.shape)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    centers = X[:7]
    options = {"n_lags": 0, "centers": centers, "width_factor": 2.0, "alpha": 1e-3}
    given = RBFDiffNetRegressor(metric=spread, **options).fit(X, y)
    options["centers"] = centers * spread
    common = RBFDiffNetRegressor(metric="common", **options).fit(X * spread, y)
    np.testing.assert_allclose(common.predict(X * spread), given.predict(X), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "metric", [np.ones(5), np.zeros(6), -np.ones(6), np.full(6, np.nan), np.ones((6, 1))]
)
def test_a_metric_that_does_not_fit_is_refused(metric, friedman):
    with pytest.raises(ValueError, match="or 6 numbers that are not negative, huge, nor all zero"):
        RBFDiffNetRegressor(metric=metric).fit(*friedman)
