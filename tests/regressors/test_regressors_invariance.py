"""What does not change predictions: units, shifts, the order and copies of rows."""

import numpy as np
import pytest
from sklearn.base import clone

from rbfdiffnet import RBFDiffNetRegressor
from regressions import QUICK, VARIANTS


@pytest.mark.slow
@pytest.mark.parametrize("estimator", VARIANTS, ids=str)
@pytest.mark.parametrize(
    "name", ["constant", "duplicated", "rank deficient", "badly scaled", "two rows", "one column"]
)
def test_hard_inputs_give_finite_predictions(estimator, name):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] ** 2 + X[:, 1]
    if name == "constant":
        X, y = np.ones((60, 3)), np.full(60, 7.0)
    elif name == "duplicated":
        X, y = np.repeat(X[:4], 15, axis=0), np.repeat(y[:4], 15)
    elif name == "rank deficient":
        X = np.column_stack([X, X[:, 0] + X[:, 1], X[:, 0], np.zeros(60)])
    elif name == "badly scaled":
        X = X * [1e8, 1e-8, 1.0]
        y = 1e-8 * y
    elif name == "two rows":
        X, y = X[:2], y[:2]
    else:
        X = X[:, :1]
    model = clone(estimator).fit(X, y)
    for points in (X, 1e3 * X, X[:1] - 5.0):
        assert np.all(np.isfinite(model.predict(points)))
    if name == "constant" and estimator.penalty == "ridge":
        np.testing.assert_allclose(model.predict(X), y, atol=1e-6)
    assert np.sqrt(np.mean((model.predict(X) - y) ** 2)) <= 1.1 * np.sqrt(np.mean(y**2))


@pytest.mark.parametrize("estimator", VARIANTS, ids=str)
@pytest.mark.parametrize(
    ("x_scale", "y_scale"), [(1e-8, 1e8), pytest.param(7.0, 0.3, marks=pytest.mark.slow)]
)
def test_predictions_follow_a_rescaling(estimator, x_scale, y_scale, friedman):
    X, y = friedman[0][:120] - 0.5, friedman[1][:120] - friedman[1][:120].mean()
    before = clone(estimator).fit(X, y).predict(X)
    after = clone(estimator).fit(x_scale * X, y_scale * y).predict(x_scale * X)
    np.testing.assert_allclose(after / y_scale, before, atol=1e-3 * np.ptp(y))


@pytest.mark.parametrize("order", [1, 2])
def test_predictions_follow_a_shift(order, friedman):
    X, y = friedman
    model = RBFDiffNetRegressor(10, order=order)
    before = clone(model).fit(X, y).predict(X)
    after = clone(model).fit(X + 1e4, y - 1e4).predict(X + 1e4)
    np.testing.assert_allclose(after + 1e4, before, atol=1e-4)


def test_row_order_does_not_change_a_bit(friedman):
    X, y = friedman
    order = np.random.default_rng(4).permutation(len(X))
    before, after = (RBFDiffNetRegressor().fit(X[i], y[i]).network_ for i in (slice(None), order))
    np.testing.assert_array_equal(before.w, after.w)
    np.testing.assert_array_equal(before.a, after.a)


@pytest.mark.parametrize("weight", [np.ones(300), np.arange(1.0, 301.0)], ids=["equal", "rising"])
def test_only_ratios_of_weights_count(weight, friedman):
    X, y = friedman
    once, tenfold, hundredth = (
        RBFDiffNetRegressor().fit(X, y, sample_weight=factor * weight).predict(X)
        for factor in (1.0, 10.0, 0.01)
    )
    np.testing.assert_allclose(tenfold, once, rtol=1e-6)
    np.testing.assert_allclose(hundredth, once, rtol=1e-6)


def test_copies_of_all_rows_change_nothing(friedman):
    X, y = friedman
    once = RBFDiffNetRegressor().fit(X, y).predict(X)
    copied = RBFDiffNetRegressor().fit(np.repeat(X, 5, axis=0), np.repeat(y, 5)).predict(X)
    np.testing.assert_array_equal(copied, once)


def test_random_state_none_is_repeatable_and_seeds_differ(friedman):
    X, y = friedman
    first, second = (RBFDiffNetRegressor(**QUICK).fit(X, y).predict(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    other = RBFDiffNetRegressor(random_state=1, **QUICK).fit(X, y).predict(X)
    assert not np.array_equal(first, other)
