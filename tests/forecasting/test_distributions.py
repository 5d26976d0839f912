"""Sums and mixtures of distributions against samples and against formulas."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from rbfdiffnet.forecasting.distributions import add_normal, mix_quantiles
from rbfdiffnet.forecasting.paths import GRID_PROBABILITIES

WANTED = [0.01, 0.1, 0.3, 0.5, 0.9, 0.975]


@pytest.mark.parametrize("std", [1e-6, 0.3, 2.0, 1e4])
def test_the_sum_of_normal_variables_is_normal(std):
    quantiles = 5.0 + 3.0 * stats.norm.ppf([GRID_PROBABILITIES])
    found = add_normal(quantiles, GRID_PROBABILITIES, np.array([std]), WANTED)
    spread = np.hypot(3.0, std)
    assert_allclose(found[0], stats.norm.ppf(WANTED, 5.0, spread), atol=5e-3 * spread)


@pytest.mark.parametrize("std", [0.05, 0.5, 3.0])
@pytest.mark.parametrize("variable", [stats.expon(), stats.t(4), stats.gamma(0.4)])
def test_sums_have_the_quantiles_of_samples(variable, std):
    rng = np.random.default_rng(0)
    sums = variable.rvs(400_000, random_state=rng) + std * rng.normal(size=400_000)
    quantiles = variable.ppf([GRID_PROBABILITIES])
    found = add_normal(quantiles, GRID_PROBABILITIES, np.array([std]), WANTED)
    assert_allclose(found[0], np.quantile(sums, WANTED), atol=0.03 * sums.std())


def test_the_sum_with_a_constant_or_with_steps():
    flat = np.full((1, len(GRID_PROBABILITIES)), 7.0)
    found = add_normal(flat, GRID_PROBABILITIES, np.array([2.0]), WANTED)
    assert_allclose(found[0], stats.norm.ppf(WANTED, 7.0, 2.0), atol=1e-3)
    steps = np.where(np.array([GRID_PROBABILITIES]) < 0.45, 0.0, 10.0)
    low, high = add_normal(steps, GRID_PROBABILITIES, np.array([0.1]), [0.1, 0.9])[0]
    assert abs(low) < 0.2
    assert abs(high - 10.0) < 0.2


def test_rows_do_not_depend_on_one_another():
    rng = np.random.default_rng(1)
    quantiles = np.sort(rng.normal(size=(50, len(GRID_PROBABILITIES))), axis=1)
    std = rng.uniform(0.1, 2.0, 50)
    together = add_normal(quantiles, GRID_PROBABILITIES, std, WANTED)
    assert (np.diff(together, axis=1) > 0.0).all()
    alone = [
        add_normal(q[None], GRID_PROBABILITIES, s[None], WANTED)[0]
        for q, s in zip(quantiles, std, strict=True)
    ]
    assert_allclose(together, alone, rtol=1e-12)


def test_mixtures_have_the_quantiles_of_samples():
    parts = [stats.norm(0.0, 1.0), stats.norm(8.0, 2.0), stats.expon(3.0)]
    rng = np.random.default_rng(0)
    samples = [part.rvs(200_000, random_state=rng) for part in parts]
    quantiles = np.stack([part.ppf([GRID_PROBABILITIES] * 2) for part in parts])
    counts = np.array([[True, True], [True, False], [True, False]])
    found = mix_quantiles(quantiles, counts, GRID_PROBABILITIES, WANTED)
    assert_allclose(found[0], np.quantile(np.concatenate(samples), WANTED), atol=0.05)
    assert_allclose(found[1], parts[0].ppf(WANTED), atol=0.01)
