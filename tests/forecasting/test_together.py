"""Series are found to be alike as they were surprised together, and no more."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import lsq_linear

from rbfdiffnet.forecasting.together import (
    Likeness,
    _fill,
    _find_chance,
    _foretell,
    _Groups,
    find_likeness,
    find_surprises,
)
from rbfdiffnet.series.series import Series


def whole(n):
    """One group of all series."""
    return np.zeros((1, n), dtype=np.int64)


def correlations(found):
    """R (n, n) by what a likeness holds."""
    ties = found.ties.toarray()
    return found.loads @ found.loads.T + ties @ ties.T + np.diag(found.alone)


def series_of(y, inputs=None):
    none = np.empty((len(y), 0))
    return Series(np.asarray(y, dtype=float), none if inputs is None else inputs, none)


def mean_between(matrix, codes):
    """The mean over pairs of different series of the same group."""
    same = np.equal.outer(codes, codes) & ~np.eye(len(codes), dtype=bool)
    return matrix[same].mean()


def crossed(rng, n, days):
    """Surprises of series in crossed groups, and the groups."""
    codes = np.stack([np.zeros(n, dtype=int), np.arange(n) % 4, np.arange(n) // 4 % 3])
    known = rng.normal(size=(n, days))
    known += rng.normal(size=(4, days))[codes[1]] + 0.5 * rng.normal(size=(3, days))[codes[2]]
    return known, codes


@pytest.mark.parametrize("days", [15, 60, 250])
def test_correlations_are_the_shrunken_ones_by_brute_force(rng, days):
    known, codes = crossed(rng, 24, days)
    found = find_likeness(known, codes)
    e = known / np.sqrt((known**2).sum(axis=1, keepdims=True))
    chance = np.empty(24)
    for i in range(24):
        above = below = 0.0
        for j in set(range(24)) - {i}:
            r = (e[i] * e[j]).sum()
            above += (days * (e[i] ** 2 * e[j] ** 2).sum() - r**2) / (days - 1)
            below += r**2
        chance[i] = min(1.0, above / below) ** 2
    past, kept = e @ e.T, np.sqrt(np.outer(1.0 - chance, 1.0 - chance)) * (e @ e.T)
    rest = np.sqrt(np.outer(chance, chance))
    same = [np.equal.outer(own, own) & ~np.eye(24, dtype=bool) for own in codes]
    matrix = [[(rest * one)[own].sum() / rest[own].sum() for one in same] for own in same]
    left = [(past - kept)[own].sum() / rest[own].sum() for own in same]
    shares = lsq_linear(matrix, left, bounds=(0.0, np.inf), tol=1e-14).x
    expected = kept + rest * sum(a * own for a, own in zip(shares, same, strict=True))
    np.fill_diagonal(expected, 1.0)
    assert_allclose(correlations(found), expected, atol=1e-4)


def test_sums_over_groups_vary_as_they_did(rng):
    """Means of correlations within groups are kept, whatever is taken to be chance."""
    for days in (30, 250):
        known, codes = crossed(rng, 24, days)
        found, past = correlations(find_likeness(known, codes)), np.zeros((24, 24))
        e = known / np.sqrt((known**2).sum(axis=1, keepdims=True))
        past = e @ e.T
        for own in codes:
            assert mean_between(found, own) == pytest.approx(mean_between(past, own), abs=0.01)


@pytest.mark.parametrize("days", [60, 250])
def test_independent_series_stay_independent(rng, days):
    found = correlations(find_likeness(rng.normal(size=(50, days)), whole(50)))
    away = found[~np.eye(50, dtype=bool)]
    assert np.abs(away).max() < 0.25
    assert np.sqrt((away**2).mean()) < 0.03
    assert_allclose(found.diagonal(), 1.0, atol=1e-6)


def test_twins_and_mirrors_are_found_among_many(rng):
    known = rng.normal(size=(60, 250))
    known[1], known[2] = known[0], -known[0]
    found = correlations(find_likeness(known, whole(60)))
    assert found[0, 1] > 0.95
    assert found[0, 2] < -0.95
    assert np.abs(found[0, 3:]).max() < 0.25


def test_series_without_a_past_are_like_others_of_their_group(rng):
    codes = np.stack([np.zeros(40, dtype=int), np.arange(40) % 2])
    known = rng.normal(size=(40, 250)) + 2.0 * rng.normal(size=(2, 250))[codes[1]]
    known[-8:] = 0.0
    found = correlations(find_likeness(known, codes))
    for other in (found[:-8, -1], found[-8:, -1]):
        alike = codes[1, : other.size] == codes[1, -1]
        alike[-1] = other[-1] != other.max()  # not with itself
        assert other[alike].mean() == pytest.approx(0.8, abs=0.07)
        assert np.abs(other[codes[1, : other.size] != codes[1, -1]]).max() < 0.3


def test_series_that_began_late_are_alike_all_the_same(rng):
    known = rng.normal(size=(30, 200)) + rng.normal(size=200)
    known[::2, :120] = 0.0
    found = correlations(find_likeness(known, whole(30)))
    assert mean_between(found, np.zeros(30)) == pytest.approx(0.5, abs=0.06)


def test_chance_of_short_rows_by_brute_force(rng):
    """Rows are shorter than 1 where a series has no past, and some know few days."""
    n, days = 9, 40
    rows = rng.normal(size=(n, days)) + rng.normal(size=days)
    rows *= rng.uniform(0.2, 1.0, size=(n, 1)) / np.sqrt((rows**2).sum(axis=1, keepdims=True))
    counts = np.array([40, 40, 40, 20, 20, 10, 10, 0, 0])
    n_known = np.where(counts > 0, counts, days)
    expected = np.empty(n)
    for i in range(n):
        above = below = 0.0
        for j in set(range(n)) - {i}:
            r, usual = (rows[i] * rows[j]).sum(), np.sqrt(n_known[i] * n_known[j])
            above += (days**2 / usual * (rows[i] ** 2 * rows[j] ** 2).sum() - r**2) / (days - 1)
            below += r**2
        expected[i] = min(1.0, above / below) ** 2
    assert 0.0 < expected.min() < expected[expected < 1.0].max()
    assert_allclose(_find_chance(rows, counts), expected)


def test_what_groups_have_in_common_is_the_mean_of_normal_variables_given_the_known(rng):
    share, codes = 0.4, np.array([0, 0, 0, 0, 1, 1, 1])
    known = rng.random((7, 5)) < 0.6
    rows = known * rng.normal(size=(7, 5))
    (found,) = _foretell(rows, known, [_Groups(codes)], np.array([share]))
    cover = share * np.equal.outer(codes, codes) + (1.0 - share) * np.eye(7)
    for day in range(5):
        seen = known[:, day]
        inverse = np.linalg.inv(cover[np.ix_(seen, seen)])
        for group in (0, 1):
            with_group = share * (codes[seen] == group)
            assert found[group, day] == pytest.approx(with_group @ inverse @ rows[seen, day])


def test_a_group_that_began_late_has_its_days_again(rng):
    """Nothing else is known, so days are whole copies of later ones, each as often."""
    rows = np.zeros((3, 16))
    rows[:, 12:] = rng.normal(size=(3, 4))
    found = _fill(rows, [_Groups(np.zeros(3, dtype=int))])
    unit = np.sqrt((rows**2).sum(axis=1, keepdims=True) / 4)
    assert_allclose(found, np.tile(rows[:, 12:] / unit, 4))


def forget(known, how, rng):
    """Surprises of which the first series know some days only: late, at gaps, in turn."""
    n, days = known.shape
    if how == "late":
        known[:, : days - 64] = 0.0
    elif how == "gaps":
        known[rng.random((n, days)) < 0.3] = 0.0
    else:
        for i, row in enumerate(known):
            row[: (days - 50) * i // n] = 0.0


@pytest.mark.parametrize("strangers", [0, 1, 20])
@pytest.mark.parametrize("how", ["late", "gaps", "in turn"])
def test_series_remain_alike_where_they_are_unknown(rng, how, strangers):
    """Two blocks that go against each other, whatever other series know all days."""
    sign = np.repeat([1.0, -1.0], 5)
    known = np.sqrt(0.8) * sign[:, None] * rng.normal(size=256)
    known += np.sqrt(0.2) * rng.normal(size=(10, 256))
    forget(known, how, rng)
    known = np.concatenate([known, rng.normal(size=(strangers, 256))])
    found = correlations(find_likeness(known, whole(10 + strangers)))
    alike = sign[:, None] * found[:10, :10] * sign
    assert mean_between(alike, np.zeros(10)) == pytest.approx(0.8, abs=0.07)
    assert np.abs(found[:10, 10:]).sum() <= 0.2 * 10 * strangers
    assert_allclose(found.diagonal(), 1.0, atol=1e-9)


@pytest.mark.parametrize("days", [200, 64])
def test_a_twin_that_began_late_remains_a_twin(rng, days):
    known = rng.normal(size=(40, 256))
    known[1], known[2] = known[0] + 0.2 * known[1], 0.2 * known[2] - known[0]
    known[1:3, :-days] = 0.0
    found = correlations(find_likeness(known, whole(40)))
    assert found[0, 1:3] == pytest.approx([0.98, -0.98], abs=0.07)
    assert np.abs(found[:3, 3:]).max() < 0.2


def test_groups_that_began_late_are_like_themselves_and_others(rng):
    codes = np.stack([np.zeros(40, dtype=int), np.arange(40) // 10])
    known = np.sqrt(0.2) * rng.normal(size=256) + np.sqrt(0.4) * rng.normal(size=(40, 256))
    known += np.sqrt(0.4) * rng.normal(size=(4, 256))[codes[1]]
    known[:20, :-60] = 0.0
    found = correlations(find_likeness(known, codes))
    for first in (0, 10, 20, 30):
        own = found[first : first + 10, first : first + 10]
        assert mean_between(own, np.zeros(10)) == pytest.approx(0.6, abs=0.08)
    assert found[:20, 20:].mean() == pytest.approx(0.2, abs=0.1)


def test_shocks_have_variance_one_whatever_is_known(rng):
    for days in (1, 2, 7, 100):
        known, codes = crossed(rng, 24, days)
        known[rng.random(known.shape) < 0.5] = 0.0
        known[::3] = 0.0
        assert_allclose(correlations(find_likeness(known, codes)).diagonal(), 1.0)


def copy_next(rows, out):
    out[:] = next(rows)


@pytest.mark.parametrize("n", [3, 30])
def test_what_is_shared_is_the_sum_of_shocks_of_days_and_groups(rng, monkeypatch, n):
    """Few series keep their sums, many series the shocks; chunks change nothing."""
    loads, ties = rng.normal(size=(n, 10)), sparse.csr_array(rng.normal(size=(n, 4)))
    shocks = rng.normal(size=(14, 5, 20))
    expected = loads @ shocks[:10].reshape(10, 100) + ties @ shocks[10:].reshape(4, 100)
    for size in (2**22, 300, 1):
        monkeypatch.setattr("rbfdiffnet.forecasting.together._VALUES_AT_ONCE", size)
        fill = partial(copy_next, iter(shocks))
        shared = Likeness(loads, ties, np.ones(n)).draw(fill, 5, 20)
        assert_allclose(shared(slice(1, 3)), expected[1:3])


def test_series_that_are_left_aside_change_nothing(rng):
    known, codes = crossed(rng, 24, 100)
    found = find_likeness(known, codes)
    more = np.concatenate([rng.normal(size=(3, 100)), known])
    beside = find_likeness(more, np.concatenate([np.full((3, 3), -1), codes], axis=1))
    assert_array_equal(beside.loads[3:], found.loads)
    assert_array_equal(beside.ties.toarray()[3:], found.ties.toarray())
    assert_array_equal(beside.alone[:3], 1.0)


def test_the_order_of_series_does_not_matter(rng):
    known, codes = crossed(rng, 24, 100)
    for how in ("whole", "late", "gaps", "in turn"):
        if how != "whole":
            forget(known[:12], how, rng)
        turned = find_likeness(known[::-1], codes[:, ::-1])
        expected = correlations(find_likeness(known, codes))
        assert_allclose(correlations(turned)[::-1, ::-1], expected, atol=1e-5)


def test_a_surprise_is_what_nothing_before_it_foretold(rng):
    """Noise, walks, weeks and prices that all series have: only the shocks are alike, or not."""
    n, days = 20, 300
    shocks = rng.normal(size=(n, days)) + rng.normal(size=days)
    week, price = 3.0 * np.sin(np.arange(days) * 2.0 * np.pi / 7.0), rng.normal(size=(days, 1))
    for own, expected in ((shocks, 0.5), (rng.normal(size=(n, days)), 0.0)):
        for y in (own, np.cumsum(own, axis=1)):
            panel = [series_of(row + week + 4.0 * price[:, 0], price) for row in y]
            found = find_surprises(panel, 7)
            assert found.shape == (n, 256)
            matrix = np.corrcoef(found)
            assert mean_between(matrix, np.zeros(n)) == pytest.approx(expected, abs=0.07)


def ridge(y, x):
    """Weights (q,) of y (T,) on x (T, q), by least squares with a row more for each of x."""
    rows, values = np.vstack([x, np.eye(x.shape[1])]), np.append(y, np.zeros(x.shape[1]))
    return np.linalg.lstsq(rows, values, rcond=None)[0]


def test_surprises_are_residuals_of_ridge_regression(rng):
    y, price = rng.normal(size=40), rng.normal(size=(40, 1))
    found = find_surprises([series_of(y, price)], 1)[0]
    unit, cost = (y - y.mean()) / y.std(), (price[:, 0] - price.mean()) / price.std()
    unit -= cost * ridge(np.diff(unit), np.diff(cost)[:, None])
    before = np.append(np.zeros(5), unit)
    past = [before[5 - lag : 45 - lag] for lag in (1, 2, 3, 4, 5)]
    x = np.column_stack([*past[:3], np.mean(past[:4], axis=0), np.mean(past[1:], axis=0)])
    away = unit - x @ ridge(unit, x)
    assert_allclose(found, away / np.sqrt((away**2).mean()), rtol=1e-4, atol=1e-5)


def test_what_is_unknown_or_never_changes_says_nothing(rng):
    late, gaps = rng.normal(size=20), rng.normal(size=100)
    gaps[::3] = np.nan
    short, constant, empty = rng.normal(size=5), np.full(100, 0.1), np.full(50, np.nan)
    found = find_surprises([series_of(y) for y in (late, gaps, short, constant, empty)], 7)
    assert_array_equal(found[0, :80], 0.0)
    assert (found[0, 80:] != 0.0).all()
    assert_array_equal(found[1] == 0.0, np.isnan(gaps))
    assert_array_equal(found[2:], 0.0)
    assert find_surprises([], 7).shape == (0, 0)
    assert find_surprises([series_of([])], 7).shape == (1, 0)


def test_chunks_change_nothing(rng, monkeypatch):
    panel = [series_of(rng.normal(size=rng.integers(30, 90))) for _ in range(7)]
    found = find_surprises(panel, 7)
    likeness = find_likeness(found, whole(7))
    monkeypatch.setattr("rbfdiffnet.forecasting.together._VALUES_AT_ONCE", 1)
    monkeypatch.setattr("rbfdiffnet.forecasting.together._FILLED_AT_ONCE", 1)
    assert_allclose(find_surprises(panel, 7), found, atol=1e-6)
    assert_allclose(find_likeness(found, whole(7)).loads, likeness.loads, atol=1e-6)
