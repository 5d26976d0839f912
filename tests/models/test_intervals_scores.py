"""Scores of errors by the quantiles of a network, and the way back."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.special import ndtr, ndtri

from rbfdiffnet.models.intervals import correct_scores, count_errors
from rbfdiffnet.models.scores import to_errors, to_scores
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


def test_the_score_of_a_count_is_the_mean_size_of_all_that_it_stands_for(rng):
    """By brute force: values that round to the count have scores between two ends."""
    unit = 0.8
    distances = unit * NORMAL[None]
    for away in (-2.0, -1.0, 0.0, 1.0, 3.0):
        ends = ndtr((away + np.array([-0.5, 0.5])) / unit)
        sizes = np.abs(ndtri(rng.uniform(*ends, size=200_000)))
        found = to_scores(np.array([away]), distances, 0.5)[0]
        assert_allclose(np.abs(found), sizes.mean(), rtol=0.01)
        assert np.sign(found) == np.sign(away) or away == 0.0


def test_without_errors_scores_are_those_of_real_series_and_one_broken_series_widens_no_others():
    levels = [0.8, 0.95]
    normal = np.array([1.2816, 1.96])
    nothing, far = np.zeros((1, 3, 2)), np.full((9, 3, 2), 40.0)
    assert_allclose(correct_scores(nothing, nothing[0], 0, levels)[0, 0], 1.1 * normal, rtol=1e-4)
    assert_allclose(correct_scores(far, far[0], 5000, levels)[0, 0], 2.5 * normal, rtol=0.02)
    usual = np.full((9, 3, 2), 1.5)
    own = correct_scores(usual, usual[0], 5000, levels)
    assert_allclose(own, 1.5, rtol=0.02)


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
    levels, count = [0.8], 40.0
    far, usual = np.array([[[11.0]], [[0.11]]]), np.array([[1.0]])
    normal = float(ndtri(0.9))
    expected = np.sqrt(far * 1.1 * normal)
    assert_allclose(correct_scores(far, usual, count, levels), expected)


def test_scores_where_all_quantiles_lie_on_one_side_of_the_forecast():
    above, below = (NORMAL + 5.0)[None], (NORMAL - 5.0)[None]
    for distances in (above, below):
        scores = to_scores(np.array([-9.0]), distances), to_scores(np.array([9.0]), distances)
        assert np.isfinite(scores).all()
    assert_allclose(to_scores(np.array([5.0]), above), 0.0, atol=1e-12)
