"""Regressors on data that is hard on arithmetic: sound predictions, whatever the units."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rbfdiffnet import RBFDiffNetRegressor, RBFNetworkRegressor

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

ESTIMATORS = {
    "differential": RBFDiffNetRegressor(random_state=0),
    "squared": RBFDiffNetRegressor(8, metric="standard", width_factor=4.0, loss="squared"),
    "order 2": RBFDiffNetRegressor(8, order=2, random_state=0),
    "plain": RBFNetworkRegressor(random_state=0),
    "normalized": RBFNetworkRegressor(normalize=True, random_state=0),
    "lasso": RBFNetworkRegressor(penalty="lasso", random_state=0),
    "paper": RBFDiffNetRegressor.paper(order=1),
}
SOME = [pytest.param(n, marks=pytest.mark.slow) if n == "order 2" else n for n in ESTIMATORS]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=80)


def predicted(name, X, y):
    return ESTIMATORS[name].fit(X, y).predict(X)


@pytest.mark.parametrize("name", SOME)
def test_units_of_the_target_are_those_of_the_predictions(name, data):
    X, y = data
    found = predicted(name, X, y)
    for scale in (2.0**40, 2.0**-40):
        np.testing.assert_array_equal(predicted(name, X, scale * y), scale * found)
    for scale in (1e-100, 1e-6, 1e12):
        assert_allclose(predicted(name, X, scale * y), scale * found, rtol=1e-9, atol=1e-9 * scale)


@pytest.mark.parametrize("name", SOME)
def test_units_of_the_inputs_do_not_matter(name, data):
    X, y = data
    found = predicted(name, X, y)
    for scale in (1e-100, 1e-6, 1e12, 1e100):
        assert_allclose(predicted(name, scale * X, y), found, atol=1e-4)


@pytest.mark.parametrize("name", ["differential", "squared", "plain", "normalized"])
def test_levels_far_from_zero_do_not_matter(name, data):
    X, y = data
    found = predicted(name, X, y)
    assert_allclose(predicted(name, X, y + 1e9) - 1e9, found, atol=1e-5)
    assert_allclose(predicted(name, X + 1e6, y), found, atol=1e-5)


def hard(X, y):
    rng = np.random.default_rng(1)
    ten = np.repeat(X[:10], 8, axis=0)
    with_outlier = np.vstack([X, np.full((1, 3), 1e12)]), np.append(y, 0.0)
    return {
        "copies": (ten, np.repeat(y[:10], 8)),
        "copies with other targets": (ten, y),
        "collinear": (np.column_stack([X, X @ [1.0, 1.0, 0.0], X[:, 0] * (1 + 1e-14)]), y),
        "fewer rows than inputs": (rng.normal(size=(6, 12)), rng.normal(size=6)),
        "two rows": (X[:2], y[:2]),
        "one row": (X[:1], y[:1]),
        "constant inputs": (np.column_stack([X, np.zeros(80), np.full(80, 1e12)]), y),
        "nothing but constants": (np.ones((80, 3)), y),
        "constant target": (X, np.full(80, 3.3)),
        "almost constant target": (X, 1.0 + 1e-13 * y),
        "almost constant inputs": (1.0 + 1e-13 * X, y),
        "no target": (X, np.zeros(80)),
        "outlying row": with_outlier,
        "outlying target": (X, np.where(np.arange(80) == 7, 1e12, y)),
        "integers": ((10 * X).astype(int), (10 * y).astype(int)),
        "large": (1e149 * X / np.abs(X).max(), 1e149 * y / np.abs(y).max()),
        "small": (1e-140 * X, 1e-140 * y),
    }


@pytest.mark.parametrize("name", SOME)
def test_hard_rows_give_finite_predictions_no_farther_than_the_targets(name, data):
    for case, (X, y) in hard(*data).items():
        found = predicted(name, X, y)
        assert np.isfinite(found).all(), case
        assert np.abs(found).max() <= 2.0 * np.abs(y).max(), case


@pytest.mark.parametrize("name", ["differential", "plain", "normalized"])
def test_a_constant_target_is_predicted(name, data):
    assert_allclose(predicted(name, data[0], np.full(80, 3.3)), 3.3, rtol=1e-12)


def test_one_outlying_target_does_not_ruin_the_others(data):
    X, y = data
    found = predicted("differential", X, np.where(np.arange(80) == 7, 1e12, y))
    keep = np.arange(80) != 7
    assert np.abs(found - y)[keep].mean() < 0.5


@pytest.mark.parametrize("name", ["differential", "plain"])
def test_squares_that_overflow_are_refused(name, data):
    X, y = data
    with pytest.raises(ValueError, match=r"y holds 1e\+300; values must lie between"):
        predicted(name, X, np.where(y == y.max(), 1e300, y))
    with pytest.raises(ValueError, match="X holds"):
        predicted(name, 1e200 * X, y)
