"""The paper's first experiment: what the networks must show on the logistic map."""

import numpy as np
import pytest

from rbfdiffnet import RBFDiffNetRegressor, RBFNetworkRegressor
from rbfdiffnet.datasets import logistic_map
from rbfdiffnet.experiments.logistic import LAGS, NOISE_LEVELS
from rbfdiffnet.experiments.results import paper_mae
from rbfdiffnet.series.windows import lag_windows

SEEDS = range(5)  # the defaults were tuned on these draws, see docs/reproduction.md
CELLS = [(omega, lag) for omega in NOISE_LEVELS for lag in LAGS]


def printed(omega, lag):
    """Mean absolute error printed in the paper."""
    return [paper_mae(omega, lag, model) for model in ("RBF-DiffNet", "u-RBFN", "n-RBFN")]


def experiment(omega, lag, seed):
    """Noisy training windows, clean test windows, training mean removed."""
    clean = logistic_map(1000)
    rng = np.random.default_rng(seed)
    noisy = clean[:900] + omega * rng.normal(size=900)
    mean = noisy.mean()
    X, y = lag_windows(noisy - mean, lag)
    X_test, y_test = lag_windows(clean[900 - lag :] - mean, lag)
    return X, y, X_test, y_test


def mean_error(make, omega, lag):
    errors = []
    for seed in SEEDS:
        X, y, X_test, y_test = experiment(omega, lag, seed)
        errors.append(np.abs(make(seed).fit(X, y).predict(X_test) - y_test).mean())
    return float(np.mean(errors))


@pytest.mark.slow
@pytest.mark.parametrize(("omega", "lag"), CELLS)
def test_plain_networks_reproduce_the_paper(omega, lag):
    for position, normalize in ((1, False), (2, True)):
        error = mean_error(
            lambda seed, normalize=normalize: RBFNetworkRegressor(
                max(5, 2 * lag), normalize=normalize, penalty="lasso", random_state=seed
            ),
            omega,
            lag,
        )
        expected = printed(omega, lag)[position]
        assert abs(error - expected) <= max(0.2 * expected, 0.03)


@pytest.mark.slow
@pytest.mark.parametrize(("omega", "lag"), CELLS)
def test_differential_network_reproduces_the_paper(omega, lag):
    error = mean_error(
        lambda seed: RBFDiffNetRegressor.paper(
            order=2, n_centers=max(5, 2 * lag), random_state=seed
        ),
        omega,
        lag,
    )
    expected = printed(omega, lag)[0]
    assert abs(error - expected) <= max(0.5 * expected, 0.03)
    assert error <= expected + 0.03


@pytest.mark.slow
@pytest.mark.parametrize(("omega", "lag"), CELLS)
def test_default_settings_beat_every_network_of_the_paper(omega, lag):
    error = mean_error(lambda seed: RBFDiffNetRegressor(random_state=seed), omega, lag)
    assert error < min(printed(omega, lag))
    if omega == 0.0:
        assert error < 0.01
