import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog, minimize

from rbfdiffnet.models.stack import direct
from rbfdiffnet.models.stack.direct import _NEAR


def fit_least_absolute(X, y, weight, penalty, **options):
    """The coefficients of a single target."""
    return direct.fit_least_absolute(X, y[None], weight, penalty[None], **options)[0]


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
    right = np.r_[np.sqrt(weight) * y, np.zeros(3)]
    expected = np.linalg.lstsq(np.r_[rooted, more], right, rcond=None)[0]
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


def several_targets(rng, n=60, k=4):
    """Inputs of all targets, inputs of each, and targets of which the last rows know the first."""
    X, ahead = np.c_[rng.normal(size=(n, 3)), np.ones(n)], rng.normal(size=(k, n, 2))
    Y = X @ rng.normal(size=(4, 1)) + rng.standard_t(2, size=(n, k)) * np.arange(1, k + 1)
    Y = Y.T + ahead.sum(axis=2)
    for late in range(k - 1):
        Y[late + 1 :, n - 1 - late :] = np.nan
    return X, Y, rng.uniform(0.2, 2.0, n), rng.uniform(0.0, 0.3, (k, 6)), ahead


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_several_targets_by_hand(rng, steps):
    """Rows that err much count less for all targets: regressions one by one give the same."""
    X, Y, weight, penalty, ahead = several_targets(rng)
    known, now = np.isfinite(Y), weight
    for step in range(steps + 1):
        b, away = np.empty((4, 6)), np.full(Y.shape, np.nan)
        for k, use in enumerate(known):
            Z, y = np.c_[X, ahead[k]][use], Y[k, use]
            root = np.sqrt(now[use])
            more = np.diag(np.sqrt(weight[use].sum() * penalty[k]))
            rows, right = np.r_[root[:, None] * Z, more], np.r_[root * y, np.zeros(6)]
            b[k] = np.linalg.lstsq(rows, right, rcond=None)[0]
            away[k, use] = np.abs(y - Z @ b[k])
            away[k] /= np.median(away[k, use])
        if step < steps:
            size = np.sqrt(np.nanmean(away**2, axis=0))
            now = weight / np.maximum(size, _NEAR * np.median(size))
            now *= weight.sum() / now.sum()
    found = direct.fit_least_absolute(X, Y, weight, penalty, ahead, steps=steps)
    assert_allclose(found, b, rtol=1e-6)


def test_the_order_of_rows_does_not_matter(rng):
    X, Y, weight, penalty, ahead = several_targets(rng)
    order = rng.permutation(len(X))
    once = direct.fit_least_absolute(X, Y, weight, penalty, ahead)
    again = direct.fit_least_absolute(
        X[order], Y[:, order], weight[order], penalty, ahead[:, order]
    )
    assert_allclose(again, once, rtol=1e-9)
