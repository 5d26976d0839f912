import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rbfdiffnet.models.stack.mixing import (
    _FEW_ERRORS,
    _TOWARD_EQUAL,
    fit_weights,
    weigh_in_two_steps,
    weigh_members,
)


def mixing_loss(v, errors, squared):
    mixed = np.abs(v @ errors) / np.abs(errors).mean()
    toward = ((v - 1.0 / len(v)) ** 2).sum()
    pull = max(_TOWARD_EQUAL, _FEW_ERRORS / mixed.size)
    return (mixed**2 if squared else mixed).mean() + pull * toward


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("n_members", [2, 3])
@pytest.mark.parametrize(("seed", "n"), [(0, 400), (1, 3_000), (2, 400), (3, 3_000)])
def test_weights_are_the_best_of_a_fine_grid(n_members, seed, n, squared):
    rng = np.random.default_rng(seed)
    errors = rng.normal(size=(n_members, n)) * rng.uniform(0.5, 3.0, (n_members, 1))
    errors += rng.normal(size=n) + rng.normal(size=(n_members, 1))
    steps = np.linspace(0.0, 1.0, 101)
    grid = [
        np.array([*v, 1.0 - sum(v)])
        for v in itertools.product(steps, repeat=n_members - 1)
        if sum(v) <= 1.0 + 1e-9
    ]
    losses = [mixing_loss(v, errors, squared) for v in grid]
    found = fit_weights(errors, squared=squared)
    assert_allclose(found.sum(), 1.0)
    assert found.min() >= 0.0
    assert mixing_loss(found, errors, squared) <= min(losses) + 1e-4
    assert_allclose(found, grid[int(np.argmin(losses))], atol=0.03)


def test_weights_do_not_depend_on_units_and_order(rng):
    errors = rng.normal(size=(4, 300)) * np.array([[1.0], [2.0], [3.0], [1.5]])
    found = fit_weights(errors)
    assert_allclose(fit_weights(1e6 * errors), found, atol=1e-4)
    assert_allclose(fit_weights(errors[::-1]), found[::-1], atol=1e-3)


def test_weights_are_equal_where_nothing_tells_members_apart():
    same = np.random.default_rng(0).normal(size=50)
    for errors in (np.zeros((3, 20)), np.empty((3, 0)), np.tile(same, (3, 1))):
        assert_allclose(fit_weights(errors), 1 / 3)
    assert_array_equal(fit_weights(same[None]), 1.0)


def test_members_that_never_err_count_alone(rng):
    errors = rng.normal(size=(4, 30))
    errors[1:3] *= 1e-14
    assert_array_equal(fit_weights(errors), [0.0, 0.5, 0.5, 0.0])


def test_few_errors_say_little(rng):
    errors = rng.normal(size=(2, 5_000)) * [[1.0], [2.0]]
    better = [fit_weights(errors[:, :n])[0] for n in (10, 100, 5_000)]
    assert 0.5 < better[0] < 0.6 < better[1] < better[2]


def test_many_poor_members_do_not_outnumber_a_good_one(rng):
    errors = rng.normal(size=(6, 10, 2, 3)) * np.array([1.0, 2, 2, 2, 2, 2])[:, None, None, None]
    none = np.zeros(10, dtype=bool)
    weights = weigh_in_two_steps(errors, none, 1)
    assert_allclose(weights.sum(axis=0), 1.0)
    assert (weights[0] > weigh_members(errors, none)[0]).all()
    assert_array_equal(weigh_in_two_steps(errors[:2], none, 1), weigh_members(errors[:2], none))


def test_members_that_say_nothing_leave_the_weights_to_the_first(rng):
    errors = rng.normal(size=(4, 10, 2, 3))
    errors[2:] = np.nan
    none = np.zeros(10, dtype=bool)
    weights = weigh_in_two_steps(errors, none, 2)
    assert_allclose(weights[:2], weigh_members(errors[:2], none))
    assert not weights[2:].any()
