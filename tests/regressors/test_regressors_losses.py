"""Losses of the regressors: robust ones, quantiles, and one's own."""

import numpy as np
import pytest
from sklearn.base import clone

from rbfdiffnet import RBFDiffNetRegressor
from regressions import QUICK, r2


@pytest.mark.parametrize("solver", ["varpro", "als", "bfgs"])
def test_robust_losses_resist_outliers(solver, friedman):
    X, y = friedman
    rng = np.random.default_rng(0)
    spoiled = y.copy()
    spoiled[rng.choice(200, 20, replace=False)] += 100.0
    clean = RBFDiffNetRegressor(10, solver=solver, loss="squared", **QUICK).fit(X[:200], y[:200])

    def distance(loss):
        model = RBFDiffNetRegressor(10, solver=solver, loss=loss, **QUICK)
        model.fit(X[:200], spoiled[:200])
        return np.abs(model.predict(X[200:]) - clean.predict(X[200:])).mean()

    assert distance("huber") < 0.5 * distance("squared")
    assert distance("absolute") < 0.5 * distance("squared")


def test_automatic_loss_is_robust_but_keeps_the_mean():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    heavy = X[:, 0] + 0.3 * rng.standard_t(2, size=400)
    skewed = X[:, 0] + rng.exponential(size=400) ** 2
    assert RBFDiffNetRegressor().fit(X, heavy).loss_ == "huber"
    model = RBFDiffNetRegressor().fit(X, skewed)
    assert model.loss_ == "squared"
    assert model.predict(X).mean() == pytest.approx(skewed.mean(), rel=0.02)


@pytest.mark.parametrize("solver", ["varpro", "bfgs"])
@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_quantile_loss_covers_its_level(solver, level):
    rng = np.random.default_rng(2)
    X = rng.uniform(-1.0, 1.0, size=(1000, 1))
    y = np.sin(3.0 * X.ravel()) + rng.gumbel(size=1000) * (1.2 + X.ravel())
    model = RBFDiffNetRegressor(6, solver=solver, loss="quantile", quantile=level, **QUICK)
    covered = np.mean(y <= model.fit(X, y).predict(X))
    assert covered == pytest.approx(level, abs=0.02)


def test_own_loss_equals_the_built_in_one(friedman):
    X, y = friedman

    def squared(y_true, y_pred):
        return 0.5 * (y_true - y_pred) ** 2, y_pred - y_true

    own = RBFDiffNetRegressor(8, loss=squared, **QUICK).fit(X, y)
    built_in = RBFDiffNetRegressor(8, loss="squared", **QUICK).fit(X, y)
    np.testing.assert_allclose(own.predict(X), built_in.predict(X), atol=1e-3)
    assert own.loss_ == "user"


def test_own_loss_moves_the_prediction_and_follows_units(friedman):
    X, y = friedman

    def asymmetric(y_true, y_pred):
        r = y_true - y_pred
        weight = np.where(r > 0, 10.0, 1.0)
        return weight * r**2, -2.0 * weight * r

    model = RBFDiffNetRegressor(8, loss=asymmetric, **QUICK)
    high = clone(model).fit(X, y).predict(X)
    assert np.mean(high > y) > 0.7
    np.testing.assert_allclose(clone(model).fit(X, 1e4 * y).predict(X), 1e4 * high, rtol=1e-2)


@pytest.mark.parametrize("size", [1e2, 1e6])
@pytest.mark.parametrize("loss", ["auto", "huber", "absolute"])
def test_one_gross_outlier_does_no_harm(loss, size, friedman):
    X, y = friedman
    spoiled = y.copy()
    spoiled[7] += size
    model = RBFDiffNetRegressor(loss=loss)
    clean = r2(clone(model), X, y)
    assert clean > 0.9
    model.fit(X[:200], spoiled[:200])
    assert model.score(X[200:], y[200:]) > clean - 0.03


def test_own_loss_must_be_finite(friedman):
    def broken(y_true, y_pred):
        return np.full_like(y_true, np.nan), np.zeros_like(y_pred)

    with pytest.raises(ValueError, match="not finite"):
        RBFDiffNetRegressor(loss=broken, **QUICK).fit(*friedman)


@pytest.mark.parametrize("loss", ["absolute", "quantile"])
@pytest.mark.parametrize("penalty", ["ridge", "lasso"])
def test_several_outputs_with_robust_loss(loss, penalty, friedman):
    X, y = friedman
    Y = np.column_stack([y, X[:, 0] * X[:, 1]])
    model = RBFDiffNetRegressor(10, loss=loss, penalty=penalty, **{**QUICK, "alpha": 1e-4})
    assert model.fit(X, Y).score(X, Y) > 0.7
