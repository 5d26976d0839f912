import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rbfdiffnet.models.stack.mixing import (
    _FEW_ERRORS,
    _MEDIAN,
    _PULL,
    find_medians,
    fit_weights,
    weigh_in_two_steps,
    weigh_members,
)


def mixing_loss(v, errors, usual, squared):
    mixed = np.abs(v @ errors) / np.abs(errors).mean()
    toward = ((v - usual / usual.sum()) ** 2).sum()
    pull = max(_PULL, _FEW_ERRORS / mixed.size)
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
    usual = rng.uniform(0.5, 3.0, n_members)
    losses = [mixing_loss(v, errors, usual, squared) for v in grid]
    found = fit_weights(errors, usual, squared=squared)
    assert_allclose(found.sum(), 1.0)
    assert found.min() >= 0.0
    assert mixing_loss(found, errors, usual, squared) <= min(losses) + 1e-4
    assert_allclose(found, grid[int(np.argmin(losses))], atol=0.03)


def test_weights_do_not_depend_on_units_and_order(rng):
    errors = rng.normal(size=(4, 300)) * np.array([[1.0], [2.0], [3.0], [1.5]])
    found, equal = fit_weights(errors, np.ones(4)), np.ones(4)
    assert_allclose(fit_weights(1e6 * errors, 5.0 * equal), found, atol=1e-4)
    assert_allclose(fit_weights(errors[::-1], equal), found[::-1], atol=1e-3)


def test_weights_are_the_usual_ones_where_nothing_tells_members_apart():
    same = np.random.default_rng(0).normal(size=50)
    for errors in (np.zeros((3, 20)), np.empty((3, 0)), np.tile(same, (3, 1))):
        assert_allclose(fit_weights(errors, np.array([1.0, 3.0, 1.0])), [0.2, 0.6, 0.2])
    assert_array_equal(fit_weights(same[None], np.ones(1)), 1.0)


def test_members_that_never_err_count_alone(rng):
    errors = rng.normal(size=(4, 30))
    errors[1:3] *= 1e-14
    assert_array_equal(fit_weights(errors, np.ones(4)), [0.0, 0.5, 0.5, 0.0])


def test_few_errors_say_little(rng):
    errors = rng.normal(size=(2, 5_000)) * [[1.0], [2.0]]
    better = [fit_weights(errors[:, :n], np.ones(2))[0] for n in (10, 100, 5_000)]
    assert 0.5 < better[0] < 0.6 < better[1] < better[2]


def test_medians_are_sums_of_members(rng):
    for n_members in range(1, 6):
        members = rng.normal(size=(n_members, 7, 4))
        members[0, 2] = np.nan if n_members > 1 else members[0, 2]
        shares = find_medians(members)
        assert_allclose(shares.sum(axis=0), 1.0)
        found = (shares * np.nan_to_num(members)).sum(axis=0)
        assert_allclose(found, np.nanmedian(members, axis=0))
    assert not find_medians(np.full((3, 2, 2), np.nan)).any()
    assert_allclose(find_medians(np.ones((4, 1, 1))).sum(), 1.0)  # ties


def test_the_median_counts_like_a_further_member(rng):
    errors = rng.normal(size=(4, 10, 2, 3)) * np.array([1.0, 2.0, 3.0, 4.0])[:, None, None, None]
    none = np.zeros(10, dtype=bool)
    weights, of_median = weigh_in_two_steps(errors, none, 2)
    assert_allclose(weights.sum(axis=0) + of_median, 1.0)
    flat = errors.reshape(4, -1)
    others = fit_weights(flat[2:], np.ones(2))
    first = [*flat[:2], others @ flat[2:], np.median(flat, axis=0)]
    expected = fit_weights(np.stack(first), np.array([1.0, 1.0, 1.0, _MEDIAN]))
    assert_allclose(weights[:2], np.repeat(expected[:2, None], 2, axis=1), atol=1e-5)
    assert_allclose(weights[2:, 0], expected[2] * others, atol=1e-5)
    assert_allclose(of_median, expected[3], atol=1e-5)


def test_a_member_that_goes_astray_hardly_moves_the_mixture_of_few_series(rng):
    errors = rng.normal(size=(4, 1, 2, 6))
    errors[3] *= 50.0
    weights, of_median = weigh_in_two_steps(errors, np.zeros(1, dtype=bool), 2)
    assert weights[3, 0] < 0.05
    assert of_median[0] > 0.3


def test_many_poor_members_do_not_outnumber_a_good_one(rng):
    errors = rng.normal(size=(6, 10, 2, 3)) * np.array([1.0, 2, 2, 2, 2, 2])[:, None, None, None]
    none = np.zeros(10, dtype=bool)
    weights, of_median = weigh_in_two_steps(errors, none, 1)
    assert_allclose(weights.sum(axis=0) + of_median, 1.0)
    assert (weights[0] > 3.0 * weights[1:]).all()
    two, of_median = weigh_in_two_steps(errors[:2], none, 1)
    assert_array_equal(two, weigh_members(errors[:2], none))
    assert not of_median.any()


def test_members_that_say_nothing_do_not_count(rng):
    errors = rng.normal(size=(4, 10, 2, 3))
    errors[2:] = np.nan
    weights, of_median = weigh_in_two_steps(errors, np.zeros(10, dtype=bool), 2)
    assert not weights[2:].any()
    assert_allclose(weights.sum(axis=0) + of_median, 1.0)


def test_each_kind_of_series_has_weights_of_its_own(rng):
    errors = rng.normal(size=(2, 400, 2, 3)) * np.array([1.0, 3.0])[:, None, None, None]
    sparse = np.arange(400) >= 200
    errors[:, sparse] = errors[::-1, sparse]
    weights = weigh_members(errors, sparse)
    assert weights[0, 0] > 0.7
    assert weights[1, 1] > 0.7
    alone = weigh_members(errors[:, :200], sparse[:200])
    assert_allclose(alone[:, 0], weights[:, 0], rtol=0.1)
    assert_array_equal(alone[:, 1], alone[:, 0])  # nothing is known of the other kind
