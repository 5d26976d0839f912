"""Scores of errors by the quantiles of a network, and the way back."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.special import ndtri

from rbfdiffnet.models.intervals import correct_scores, to_distances, to_scores
from rbfdiffnet.pretrained.network import PROBABILITIES

NORMAL = ndtri(np.array(PROBABILITIES))


def test_errors_of_a_normal_variable_are_their_own_scores(rng):
    away, unit = 3.0 * rng.normal(size=(5, 7)), rng.uniform(0.5, 4.0, (5, 7))
    scores = to_scores(away, unit[:, :, None] * NORMAL)
    assert_allclose(scores, away / unit, rtol=1e-12)
    back = to_distances(scores[:, :, None], unit[:, :, None] * NORMAL)[:, :, 0]
    assert_allclose(back, np.abs(away), rtol=1e-12)


def test_a_score_has_the_probability_of_its_quantile(rng):
    distances = np.cumsum(rng.uniform(0.1, 2.0, (4, NORMAL.size)), axis=1)
    distances -= distances[:, [6]]  # skewed, around the median
    for k, z in enumerate(NORMAL):
        assert_allclose(to_scores(distances[:, k], distances), z, atol=1e-12)
        if k != 6:
            found = to_distances(np.full((4, 1), z), distances)[:, 0]
            assert_allclose(found, np.abs(distances[:, k]), rtol=1e-12)


def test_a_forecast_above_the_median_has_errors_below_it_without_surprise():
    """A mean of 1 where most values are 0: a value of 0 is what was expected."""
    quantiles = np.array([0, 0, 0, 0, 0, 0, 0, 0.5, 1.5, 2, 3, 4, 6.0])
    distances = (quantiles - 1.0)[None]
    assert to_scores(np.array([-1.0]), distances)[0] == 0.0
    assert to_distances(np.array([[-0.1]]), distances)[0, 0] == 1.0
    assert_allclose(to_scores(np.array([2.0]), distances), NORMAL[-3])


def test_without_errors_scores_are_normal_and_one_broken_series_widens_no_others():
    levels = [0.8, 0.95]
    normal = np.array([1.2816, 1.96])
    nothing, far = np.zeros((1, 3, 2)), np.full((9, 3, 2), 40.0)
    assert_allclose(correct_scores(nothing, nothing, 0, levels)[0, 0], normal, rtol=1e-4)
    assert_allclose(correct_scores(far, far, 5000, levels)[0, 0], 2.5 * normal, rtol=0.02)
    usual = np.full((9, 3, 2), 1.5)
    own = correct_scores(usual, usual, 5000, levels)
    assert_allclose(own, 1.5, rtol=0.02)
