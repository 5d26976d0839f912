"""Intervals of a stack cover what they say, for every kind of series."""

from __future__ import annotations

import numpy as np
import pytest

from rbfdiffnet.models.intervals import (
    ErrorScale,
    _nearest_columns,
    conformal_quantiles,
    error_quantiles,
)

LEVELS = [0.8, 0.95]


def half_widths(errors, changes, levels):
    return ErrorScale.of(errors, changes).half_widths(errors, changes, levels)


def drawn(n, n_windows, h, scale, seed=0):
    """Absolute errors of normal series whose spread grows with the root of the step."""
    rng = np.random.default_rng(seed)
    steps = np.sqrt(np.arange(1.0, h + 1.0))
    return np.abs(rng.normal(size=(n, n_windows, h))) * steps * np.reshape(scale, (-1, 1, 1))


@pytest.mark.parametrize("n_windows", [1, 2, 5])
def test_new_errors_are_covered_as_often_as_said(n_windows):
    widths, enough = half_widths(drawn(400, n_windows, 6, np.ones(400)), np.ones(400), LEVELS)
    new = drawn(400, 50, 6, np.ones(400), seed=1)
    covered = (new[..., None] <= widths[:, None]).mean(axis=(0, 1, 2))
    np.testing.assert_allclose(covered, LEVELS, atol=0.015)
    assert enough.all()


def test_series_that_are_not_wild_have_the_same_widths_in_their_units():
    # A few errors of a series say nothing of its own: two kinds are covered as one.
    scale = np.repeat([2.0, 1.0], 100)
    widths, _ = half_widths(drawn(200, 3, 12, scale), np.ones(200), LEVELS)
    np.testing.assert_array_equal(widths, np.broadcast_to(widths[0], widths.shape))
    covered = drawn(200, 50, 12, scale, seed=1)[..., None] <= widths[:, None]
    np.testing.assert_allclose(covered.mean(axis=(0, 1, 2)), LEVELS, atol=0.015)


def test_units_do_not_matter():
    errors, changes = drawn(30, 2, 4, np.ones(30)), np.ones(30)
    units = 10.0 ** np.arange(-15, 15)
    ours, _ = half_widths(errors, changes, LEVELS)
    scaled, _ = half_widths(errors * units[:, None, None], changes * units, LEVELS)
    np.testing.assert_allclose(scaled, ours * units[:, None, None], rtol=1e-9)


def test_the_order_of_series_does_not_matter():
    rng = np.random.default_rng(0)
    errors, changes = drawn(60, 3, 5, rng.uniform(0.1, 9.0, 60)), rng.uniform(0.1, 9.0, 60)
    errors[5, 1] = errors[7] = np.nan
    widths, enough = half_widths(errors, changes, LEVELS)
    for _ in range(5):
        order = rng.permutation(60)
        found = half_widths(errors[order], changes[order], LEVELS)
        np.testing.assert_array_equal(found[0], widths[order])
        np.testing.assert_array_equal(found[1], enough[order])


def test_a_lone_series_borrows_from_steps_nearby():
    coverage = []
    for seed in range(40):
        widths, _ = half_widths(drawn(1, 5, 12, [1.0], seed), np.ones(1), LEVELS)
        new = drawn(1, 200, 12, [1.0], seed + 100)
        coverage.append((new[0, ..., None] <= widths).mean(axis=(0, 1)))
    means = np.mean(coverage, axis=0)
    assert (means >= np.array(LEVELS) - 0.01).all()
    assert (means <= [0.88, 0.99]).all()


def test_too_few_errors_are_told_and_the_largest_grows():
    errors = np.array([[[1.0], [3.0]]])
    widths, enough = half_widths(errors, np.ones(1), [0.6, *LEVELS, 0.99])
    assert enough.tolist() == [[True, False, False, False]]
    assert widths[0, 0, 0] >= 3.0 - 1e-12
    assert (np.diff(widths[0, 0]) > 0.0).all()


@pytest.mark.parametrize("n", [9, 19, 39, 40, 60])
@pytest.mark.parametrize("level", [0.6, 0.8, 0.9])
def test_one_step_of_series_alike_is_conformal(n, level):
    errors = np.random.default_rng(n).uniform(size=(n, 1, 1))
    widths, _ = half_widths(errors, np.ones(n), [level])
    expected = conformal_quantiles(errors[:, 0], [level])[0, 0]
    np.testing.assert_allclose(widths[:, 0, 0], expected)


def test_series_without_windows_take_the_usual_spread():
    errors = np.concatenate(
        [np.full((1, 2, 1), np.nan), np.arange(1.0, 9.0).repeat(2).reshape(8, 2, 1)]
    )
    widths, _ = half_widths(errors, np.ones(9), LEVELS)
    assert 0.0 < widths[0, 0, 0] < np.inf


def test_steps_without_errors_take_those_of_the_nearest_and_grow():
    errors = drawn(300, 2, 6, np.ones(300))
    errors[:, :, 3:] = np.nan
    widths, _ = half_widths(errors, np.ones(300), LEVELS)
    assert (np.diff(widths[:, 2:, 0], axis=1) > 0.0).all()


def test_series_that_never_change_have_no_width_and_do_not_disturb():
    errors = drawn(50, 2, 3, np.ones(50))
    alone, _ = half_widths(errors[1:], np.ones(49), LEVELS)
    changes = np.ones(50)
    changes[0] = 0.0
    widths, _ = half_widths(errors, changes, LEVELS)
    assert not widths[0].any()
    np.testing.assert_array_equal(widths[1:], alone)


def test_nothing_known_gives_no_width():
    widths, enough = half_widths(np.full((2, 1, 3), np.nan), np.ones(2), LEVELS)
    assert not widths.any()
    assert not enough.any()


def test_a_wild_series_has_wider_intervals_and_leaves_those_of_others_alone():
    errors, changes = drawn(10, 2, 6, np.ones(10)), np.ones(11)
    wild = drawn(1, 2, 6, np.full(1, 100.0), seed=1)
    alone, _ = half_widths(errors, changes[:10], LEVELS)
    beside, _ = half_widths(np.concatenate([errors, wild]), changes, LEVELS)
    np.testing.assert_array_equal(beside[:10], alone)
    ratio = wild.mean() / np.median([*errors.mean(axis=(1, 2)), wild.mean()])
    np.testing.assert_allclose(beside[10], ratio**0.2 * alone[0])


def test_a_wild_lender_lends_nothing_and_borrows_in_units_of_its_own_errors():
    rng = np.random.default_rng(0)
    errors, scales, p = list(rng.normal(size=(10, 12, 3))), np.ones(11), [0.1, 0.9]
    wild = 100.0 * rng.normal(size=(12, 3))
    alone, _ = error_quantiles(errors, scales[:10], p)
    beside, _ = error_quantiles([*errors, wild], scales, p)
    np.testing.assert_array_equal(beside[:10], alone)
    ratio = np.abs(wild).mean() / np.median([np.abs(own).mean() for own in (*errors, wild)])
    np.testing.assert_allclose(beside[10], ratio * alone[0])


@pytest.mark.parametrize("share", [0.02, 0.3, 1.0])
def test_the_nearest_columns_are_those_of_a_search(share):
    rng = np.random.default_rng(0)
    for h in (1, 7, 40):
        counts = np.where(rng.random(h) < share, rng.integers(1, 80, h), 0)
        counts[rng.integers(h)] = 5
        at = np.flatnonzero(counts)
        for k, (first, last) in enumerate(_nearest_columns(at, counts[at], h)):
            near = np.abs(np.arange(h) - k)
            reach = next((r for r in range(h) if counts[near <= r].sum() >= 100), h - 1)
            expected = np.flatnonzero((near <= reach) & (counts > 0))
            np.testing.assert_array_equal(at[first:last], expected)
