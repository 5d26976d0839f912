import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog, minimize

from rbfdiffnet.models.stack.direct import _NEAR, fit_least_absolute


def by_linear_program(X, y, weight):
    """Least absolute errors, exactly."""
    n, p = X.shape
    cost = np.r_[np.zeros(p), weight, weight]
    equal = np.c_[X, np.eye(n), -np.eye(n)]
    bounds = [(None, None)] * p + [(0.0, None)] * (2 * n)
    return linprog(cost, A_eq=equal, b_eq=y, bounds=bounds).x[:p]


def noisy_problem(rng, n=80, p=3):
    X = np.c_[rng.normal(size=(n, p - 1)), np.ones(n)]
    return X, X @ rng.normal(size=p) + rng.standard_t(2, size=n), rng.uniform(0.2, 2.0, n)


@pytest.mark.parametrize("seed", range(6))
def test_least_absolute_comes_close_to_a_linear_program(seed):
    X, y, weight = noisy_problem(np.random.default_rng(seed))
    exact = by_linear_program(X, y, weight)

    def loss(b):
        return weight @ np.abs(y - X @ b)

    squares = fit_least_absolute(X, y, weight, np.zeros(3), steps=0)
    losses = [
        loss(b) / loss(exact)
        for b in (
            squares,
            fit_least_absolute(X, y, weight, np.zeros(3)),
            fit_least_absolute(X, y, weight, np.zeros(3), steps=60),
        )
    ]
    assert 1.0 - 1e-9 <= losses[2] < 1.003
    assert losses[1] < 1.03
    assert losses[1] <= losses[0]


def test_no_reweighted_solve_leaves_ridge_regression(rng):
    X, y, weight = noisy_problem(rng)
    penalty = np.array([0.3, 0.1, 0.0])
    rooted = np.sqrt(weight)[:, None] * X
    more = np.diag(np.sqrt(weight.sum() * penalty))
    expected = np.linalg.lstsq(np.r_[rooted, more], np.r_[np.sqrt(weight) * y, np.zeros(3)])[0]
    found = fit_least_absolute(X, y, weight, penalty, steps=0)
    assert_allclose(found, expected, rtol=1e-7)


def test_many_solves_minimize_the_penalized_loss(rng):
    X, y, weight = noisy_problem(rng)
    penalty = np.array([0.3, 0.1, 0.0])
    found = fit_least_absolute(X, y, weight, penalty, steps=500)
    away = np.abs(y - X @ found)
    near = _NEAR * np.median(away)
    size = weight.sum() / (weight / np.maximum(away, near)).sum()

    def loss(b):
        r = np.abs(y - X @ b)
        bent = np.where(r > near, r - near / 2, r**2 / (2 * near))
        return weight @ bent + weight.sum() / (2 * size) * penalty @ b**2

    best = minimize(loss, found + 0.1, method="BFGS", options={"gtol": 1e-9})
    assert_allclose(found, best.x, atol=1e-4)


def test_least_absolute_follows_the_units_of_the_targets(rng):
    X, y, weight = noisy_problem(rng)
    penalty = np.array([0.3, 0.1, 0.0])
    once = fit_least_absolute(X, y, weight, penalty)
    assert_allclose(fit_least_absolute(X, 1e6 * y, 7.0 * weight, penalty), 1e6 * once, rtol=1e-9)
    assert_allclose(fit_least_absolute(X, 0.0 * y, weight, penalty), 0.0, atol=1e-12)
    twice = fit_least_absolute(np.r_[X, X], np.r_[y, y], np.r_[weight, weight], penalty)
    assert_allclose(twice, once, rtol=1e-9)
