"""Scores of errors by the quantiles of a network, and the way back."""

from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr, ndtri

from rbfdiffnet.models.intervals import (
    ErrorScale,
    count_errors,
    count_signed_errors,
    mean_scores,
)
from rbfdiffnet.models.scores import spread_scores, to_errors, to_scores
from rbfdiffnet.pretrained.network import PROBABILITIES

NORMAL = ndtri(np.array(PROBABILITIES))


def test_errors_of_a_normal_variable_are_their_own_scores(rng):
    away, unit = 3.0 * rng.normal(size=(5, 7)), rng.uniform(0.5, 4.0, (5, 7))
    scores = to_scores(away, unit[:, :, None] * NORMAL)
    assert_allclose(scores, away / unit, rtol=1e-12)
    back = to_errors(scores[:, :, None], unit[:, :, None] * NORMAL)[:, :, 0]
    assert_allclose(back, away, rtol=1e-12)


def test_a_score_has_the_probability_of_its_quantile(rng):
    distances = np.cumsum(rng.uniform(0.1, 2.0, (4, NORMAL.size)), axis=1)
    distances -= distances[:, [6]]  # skewed, around the median
    for k, z in enumerate(NORMAL):
        assert_allclose(to_scores(distances[:, k], distances), z, atol=1e-12)
        found = to_errors(np.full((4, 1), z), distances)[:, 0]
        assert_allclose(found, distances[:, k], rtol=1e-12, atol=1e-12)


def test_without_distances_or_errors_there_are_no_scores():
    nothing = np.full((2, NORMAL.size), np.nan)
    assert np.isnan(to_scores(np.array([1.0, -1.0]), nothing)).all()
    assert np.isnan(to_scores(np.array([np.nan]), NORMAL[None])).all()


def test_scores_of_a_forecast_above_the_median():
    """A mean of 1 where most values are 0."""
    quantiles = np.array([0, 0, 0, 0, 0, 0, 0, 0.5, 1.5, 2, 3, 4, 6.0])
    distances = (quantiles - 1.0)[None]
    assert to_errors(np.array([[-0.1]]), distances)[0, 0] == -1.0
    assert_allclose(to_scores(np.array([2.0]), distances), NORMAL[-3])


def test_scores_of_a_count_are_those_of_all_that_it_stands_for(rng):
    """By brute force: values that round to the count have scores between two ends."""
    unit = 0.8
    distances = unit * NORMAL[None]
    for low, high in ((-2.5, -1.5), (-0.5, 0.5), (0.5, 1.5), (2.5, 3.5), (-np.inf, 0.0)):
        scores = ndtri(rng.uniform(*ndtr(np.array([low, high]) / unit), size=200_000))
        found = spread_scores(np.array([low]), np.array([high]), distances, 9)[0]
        assert_allclose(found, np.quantile(scores, (np.arange(9) + 0.5) / 9), atol=0.02)


def test_scores_of_counts_as_the_network_says_are_normal_together(rng):
    points = rng.uniform(-0.5, 1.5, 20_000)
    counts = np.maximum(np.floor(points + rng.normal(scale=0.7, size=20_000) + 0.5), 0.0)
    low = np.where(counts == 0.0, -np.inf, counts - 0.5 - points)
    distances = np.broadcast_to(0.7 * NORMAL, (20_000, NORMAL.size))
    scores = spread_scores(low, counts + 0.5 - points, distances, 9)
    p = np.arange(1, 10) / 10
    assert_allclose(np.quantile(scores, p), ndtri(p), atol=0.03)


def test_a_value_that_stands_for_itself_has_its_own_score(rng):
    away = 20.0 * rng.normal(size=(5, 3))
    distances = np.broadcast_to(NORMAL, (5, 3, NORMAL.size))
    own = to_scores(away, distances)
    assert_array_equal(spread_scores(away, away, distances, 1)[..., 0], own)
    nothing = np.full_like(away, np.nan)
    assert np.isnan(spread_scores(nothing, nothing, distances, 4)).all()
    never = spread_scores(np.array([-np.inf]), np.array([-30.0]), NORMAL[None], 2)
    assert_allclose(never, -30.0)  # the network holds it for impossible


def correct(scores, levels, count, side=1.0):
    found = ErrorScale.of_scores(scores)
    found = replace(found, count=count, count_signed=count)
    return found.correct(mean_scores(scores), levels, side)


def test_without_errors_scores_are_those_of_real_series_and_one_broken_series_widens_no_others():
    levels = [0.8, 0.95]
    normal = np.array([1.2816, 1.96])
    nothing, far = np.full((1, 2, 3, 1), np.nan), np.full((9, 20, 3, 1), 40.0)
    assert_allclose(correct(nothing, levels, 0.0)[0, 0], 1.1 * normal, rtol=1e-4)
    assert_allclose(correct(far, levels, 5000.0)[0, 0], 2.5 * normal, rtol=0.02)
    usual = np.tile([1.5, -1.5], (9, 10, 3))[..., None].reshape(9, 20, 3, 1)
    for side in (-1.0, 1.0):
        assert_allclose(correct(usual, levels, 5000.0, side), 1.5, rtol=0.02)


def test_bounds_lie_as_far_above_and_below_as_errors_did(rng):
    """Scores of an exponential variable, as a network that holds it for normal sees them."""
    scores = rng.exponential(size=(400, 5, 2, 1)) - np.log(2.0)
    levels = [0.5, 0.8, 0.9]
    for side in (-1.0, 1.0):
        p = 0.5 + side * np.array(levels) / 2
        expected = side * (-np.log(1.0 - p) - np.log(2.0))
        assert_allclose(correct(scores, levels, 1e6, side)[0, 0], expected, rtol=0.05)


def test_the_fewer_errors_the_more_alike_are_sides(rng):
    scores = np.abs(rng.normal(size=(50, 2, 4, 1)))  # all above
    gaps = []
    for count in (1.0, 100.0, 1e4):
        below, above = (correct(scores, [0.8], count, side)[0, 0, 0] for side in (-1.0, 1.0))
        gaps.append(above / below)
    assert 1.0 < gaps[0] < 1.1
    assert gaps[0] < gaps[1] < gaps[2]


def test_scores_that_lie_on_the_same_side_count_as_few_with_their_signs(rng):
    noise = rng.normal(size=(100, 2, 9, 1))
    assert_allclose(count_signed_errors(noise), 600.0 / (1.0 + 99.0 * 0.02))
    assert count_signed_errors(np.full((3, 2, 4, 1), np.nan)) == 0.0
    steps = np.broadcast_to(noise[:, :, :1], noise.shape)  # a window is one error
    assert_allclose(count_signed_errors(steps), 200.0 / (1.0 + 99.0 * 0.02), rtol=0.01)
    series = np.broadcast_to(noise[:1], noise.shape)
    assert_allclose(count_signed_errors(series), 6.0, rtol=0.01)
    every = np.sqrt(0.5) * (noise + series)
    found, order = count_signed_errors(every), rng.permutation(100)
    assert count_signed_errors(every[order]) == found
    # By brute force: the mean product of two series by the mean square.
    u = (2.0 * ndtr(every) - 1.0).reshape(100, 18)
    pairs = u @ u.T
    rho = pairs[~np.eye(100, dtype=bool)].mean() / np.diag(pairs).mean()
    assert_allclose(found, 600.0 / (1.0 + 99.0 * rho))


def test_errors_that_go_together_count_as_few(rng):
    lone = np.abs(rng.normal(size=(1, 5, 9)))
    assert count_errors(lone) == 15.0
    assert count_errors(np.full((3, 2, 4), np.nan)) == 0.0
    noise = np.abs(rng.normal(size=(300, 6, 4)))
    common = noise * np.exp(rng.normal(size=(1, 6, 1)))
    apart, together = count_errors(noise), count_errors(common)
    assert 1.0 < 300 * 6 * 2 / apart < 4.0  # the usual share alone: 1 + 299 * .02 / 6 = 2
    assert 6.0 < together < 60.0  # about as many as six windows of one series
    order = rng.permutation(300)
    assert count_errors(common[order]) == together
    known = np.where(np.arange(300)[:, None, None] < 150, common, np.nan)
    assert_allclose(count_errors(known), together, rtol=0.2)


def test_windows_that_are_not_known_say_nothing_of_what_errors_have_in_common(rng):
    one = np.abs(rng.normal(size=(300, 1, 9)))
    unknown = np.full_like(one, np.nan)
    assert_allclose(count_errors(one), 900.0 / (1.0 + 299.0 * 0.02))
    assert count_errors(np.concatenate([one, unknown], axis=1)) == count_errors(one)
    noise = np.abs(rng.normal(size=(300, 5, 9)))
    common = noise * np.exp(rng.normal(size=(1, 5, 1)))
    together = count_errors(common)
    lacking = common.copy()
    lacking[np.arange(300), np.arange(300) % 5] = np.nan  # another window of each series
    assert 0.5 < count_errors(lacking) / together < 2.0
    lacking = common.copy()
    lacking[1:, -1] = np.nan  # only one series knows the last window
    assert 0.5 < count_errors(lacking) / count_errors(common[:, :-1]) < 2.0


def test_scores_of_few_errors_are_drawn_to_the_usual_ones_by_their_logarithms():
    scores = np.array([-1.7, 1.7] * 50)[:, None, None, None]
    found = correct(scores, [0.8], 40.0)
    assert_allclose(found, np.sqrt(1.7 * 1.1 * float(ndtri(0.9))))


def test_scores_where_all_quantiles_lie_on_one_side_of_the_forecast():
    above, below = (NORMAL + 5.0)[None], (NORMAL - 5.0)[None]
    for distances in (above, below):
        scores = to_scores(np.array([-9.0]), distances), to_scores(np.array([9.0]), distances)
        assert np.isfinite(scores).all()
    assert_allclose(to_scores(np.array([5.0]), above), 0.0, atol=1e-12)
