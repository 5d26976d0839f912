"""Plain networks: scikit-learn goes through the rows, to the same end."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso, LassoCV

from problems import make_objective
from rbfdiffnet.network.basis import gaussian
from rbfdiffnet.network.objective import TRACE
from rbfdiffnet.network.trainers import assign_folds, lasso, ridge


def problem(seed, n=300, c=12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    features = gaussian(X, X[:c], np.full(c, 1.5)).T.copy()
    target = np.stack([np.sin(2.0 * X[:, 0]), X[:, 1] * X[:, 2]]) + 0.3 * rng.normal(size=(2, n))
    return features, target + 5.0, rng.uniform(0.2, 3.0, n), assign_folds(X)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_same_strength_and_weights_as_cross_validation_by_scikit_learn(seed, weighted):
    features, target, weight, folds = problem(seed)
    weight = weight if weighted else np.ones_like(weight)
    w, bias, alpha = lasso(features, target, weight, folds=folds)
    splits = [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(5)]
    for o in range(2):
        chosen = LassoCV(cv=splits).fit(features.T, target[o], sample_weight=weight).alpha_
        assert alpha[o] == pytest.approx(chosen, rel=1e-9)
        exact = Lasso(chosen, tol=1e-10, max_iter=100_000)
        exact.fit(features.T, target[o], sample_weight=weight)
        np.testing.assert_allclose(w[:, o], exact.coef_, atol=1e-6)
        assert bias[o] == pytest.approx(exact.intercept_, abs=1e-6)


def test_given_strength():
    features, target, weight, _ = problem(5)
    w, bias, alpha = lasso(features, target, weight, alpha=0.02)
    for o in range(2):
        exact = Lasso(0.02, tol=1e-10, max_iter=100_000)
        exact.fit(features.T, target[o], sample_weight=weight)
        np.testing.assert_allclose(w[:, o], exact.coef_, atol=1e-6)
        assert bias[o] == pytest.approx(exact.intercept_, abs=1e-6)
    np.testing.assert_array_equal(alpha, 0.02)


def test_functions_that_never_fire_and_copies_do_no_harm():
    features, target, weight, folds = problem(6)
    more = np.vstack([features, np.zeros((2, 300)), features[:1], np.where(folds == 2, 1.0, 0.0)])
    w, bias, _ = lasso(more, target, weight, folds=folds)
    assert np.all(np.isfinite(w))
    assert np.all(np.isfinite(bias))
    np.testing.assert_array_equal(w[12:14], 0.0)


def test_a_constant_target_is_its_own_bias():
    features, _, weight, folds = problem(7)
    w, bias, _ = lasso(features, np.full((1, 300), 0.1), weight, folds=folds)
    np.testing.assert_allclose(w, 0.0, atol=1e-12)
    np.testing.assert_allclose(bias, 0.1)


def test_a_single_row():
    w, bias, alpha = lasso(
        np.ones((2, 3)), np.full((1, 3), 4.0), np.ones(3), folds=np.zeros(3, int)
    )
    np.testing.assert_array_equal(w, 0.0)
    assert (bias[0], alpha[0]) == (4.0, 1e-3)


def test_ridge_is_the_closed_form():
    objective = make_objective(3, order=0, order_zero=True, weighted=True, alpha=0.02)
    weights = ridge(objective)
    features = np.concatenate([objective.basis.phi, objective.linear])
    linear = np.full(len(objective.linear), objective.alpha_linear)
    linear[-1] = 0.0  # the bias
    penalty = np.concatenate([np.full(len(objective.basis.phi), 0.02), linear]) + TRACE
    gram = (features * objective.weight) @ features.T + np.diag(objective.total * penalty)
    expected = np.linalg.solve(gram, (features * objective.weight) @ objective.target.T)
    np.testing.assert_allclose(np.concatenate([weights.w, weights.linear]), expected, rtol=1e-6)
