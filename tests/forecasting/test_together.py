"""Series are found to be alike as they were surprised together, and no more."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import lsq_linear

from rbfdiffnet.forecasting.together import find_likeness, find_surprises
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
    monkeypatch.setattr("rbfdiffnet.forecasting.together._VALUES_AT_ONCE", 1)
    assert_allclose(find_surprises(panel, 7), found, atol=1e-6)
