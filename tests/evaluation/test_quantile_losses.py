"""Losses of quantiles, intervals and samples: by hand, and as another library has them."""

import numpy as np
import pytest
from scipy.special import erf
from scipy.stats import norm

from rbfdiffnet.evaluation.losses import ensemble_crps, interval_score, pinball, quantile_crps


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_losses_by_hand():
    y, forecast = np.array([5.0, 5.0, 5.0]), np.array([3.0, 5.0, 8.0])
    np.testing.assert_allclose(pinball(y, forecast, 0.9), [1.8, 0.0, 0.3])
    low, high = np.array([1.0, 6.0, 1.0]), np.array([6.0, 9.0, 3.0])
    np.testing.assert_allclose(interval_score(y, low, high, 0.8), [5.0, 13.0, 22.0])


@pytest.mark.parametrize("shape", [(), (7,), (4, 3)])
def test_they_are_those_of_scoringrules(rng, shape):
    theirs = pytest.importorskip("scoringrules")
    y, samples = rng.normal(size=shape), rng.normal(size=(*shape, 11))
    p = np.array([0.05, 0.3, 0.5, 0.8])
    quantiles = np.quantile(samples, p, axis=-1)
    quantiles = np.moveaxis(quantiles, 0, -1)
    found = quantile_crps(y, quantiles, p)
    np.testing.assert_allclose(found, theirs.crps_quantile(y, quantiles, p), rtol=1e-12)
    for fair, estimator in ((False, "nrg"), (True, "fair")):
        expected = theirs.crps_ensemble(y, samples, estimator=estimator)
        np.testing.assert_allclose(ensemble_crps(y, samples, fair), expected, rtol=1e-9, atol=1e-12)
    low, high = quantiles[..., 0], quantiles[..., -1]
    expected = theirs.interval_score(y, low, high, 0.25)
    np.testing.assert_allclose(interval_score(y, low, high, 0.75), expected, rtol=1e-12)
    np.testing.assert_allclose(
        pinball(y, low, 0.05), theirs.quantile_score(y, low, 0.05), rtol=1e-12
    )


@pytest.mark.parametrize("fair", [True, False])
def test_samples_score_as_the_sum_over_all_pairs(rng, fair):
    y, x = rng.normal(size=5), rng.normal(size=(5, 6)).round(1)  # with ties
    pairs = np.abs(x[:, :, None] - x[:, None, :]).sum(axis=(1, 2))
    expected = np.abs(x - y[:, None]).mean(axis=1) - pairs / (2 * 6 * (5 if fair else 6))
    np.testing.assert_allclose(ensemble_crps(y, x, fair), expected, rtol=1e-12)
    np.testing.assert_allclose(ensemble_crps(y, x[:, ::-1], fair), expected, rtol=1e-12)


def test_both_tend_to_the_crps_of_the_distribution(rng):
    y = np.array([-1.3, 0.0, 2.0])
    exact = y * erf(y / np.sqrt(2)) + 2 * norm.pdf(y) - 1 / np.sqrt(np.pi)
    p = (np.arange(2000) + 0.5) / 2000
    np.testing.assert_allclose(quantile_crps(y, np.tile(norm.ppf(p), (3, 1)), p), exact, atol=1e-4)
    few = rng.normal(size=(200_000, 3, 2))  # the fair one needs many tries, not many samples
    found = ensemble_crps(np.tile(y, (200_000, 1)), few).mean(axis=0)
    np.testing.assert_allclose(found, exact, atol=0.01)
    assert (ensemble_crps(np.tile(y, (200_000, 1)), few, fair=False).mean(axis=0) > exact).all()


def test_missing_values_have_missing_scores():
    assert np.isnan(quantile_crps([np.nan], [[1.0, 2.0]], [0.1, 0.9])).all()
    assert np.isnan(ensemble_crps([1.0], [[1.0, np.nan]])).all()


def test_bad_shapes_and_probabilities_are_named():
    with pytest.raises(ValueError, match=r"forecasts must have the shape.*\(1, 2\) and \(1,\)"):
        quantile_crps([1.0], [[1.0, 2.0]], [0.5])
    with pytest.raises(ValueError, match=r"samples must have the shape.*\(2,\) and \(2,\)"):
        ensemble_crps([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"between 0 and 1; got \[10.0, 90.0\]"):
        quantile_crps([1.0], [[1.0, 2.0]], [10, 90])
    with pytest.raises(ValueError, match=r"fair=True needs at least 2 samples.*got 1"):
        ensemble_crps([1.0], [[1.0]])
    with pytest.raises(ValueError, match="fair must be True or False"):
        ensemble_crps([1.0], [[1.0, 2.0]], fair="yes")
    assert ensemble_crps([1.0], [[3.0]], fair=False) == [2.0]
