"""The paper's first experiment: what the networks must show on the logistic map."""

import numpy as np
import pytest

from rbfdiffnet import RBFDiffNetRegressor, RBFNetworkRegressor
from rbfdiffnet.datasets import logistic_map
from rbfdiffnet.windows import lag_windows

LAGS = (1, 2, 4, 8, 16)
SEEDS = range(5)

# Mean absolute error printed in the paper: RBF-DiffNet, u-RBFN, n-RBFN for each noise and lag.
PAPER = {
    0.0: [
        (0.277, 0.146, 0.0994),
        (0.133, 0.16, 0.166),
        (0.0879, 0.277, 0.311),
        (0.0717, 0.223, 0.313),
        (0.0542, 0.236, 0.314),
    ],
    0.02: [
        (0.286, 0.152, 0.103),
        (0.124, 0.162, 0.167),
        (0.082, 0.283, 0.312),
        (0.0648, 0.199, 0.308),
        (0.0517, 0.221, 0.315),
    ],
    0.04: [
        (0.286, 0.14, 0.0987),
        (0.143, 0.161, 0.157),
        (0.0582, 0.291, 0.313),
        (0.063, 0.216, 0.315),
        (0.0631, 0.244, 0.314),
    ],
    0.08: [
        (0.3, 0.109, 0.0916),
        (0.151, 0.139, 0.132),
        (0.0659, 0.301, 0.309),
        (0.107, 0.248, 0.312),
        (0.11, 0.293, 0.315),
    ],
    0.12: [
        (0.295, 0.138, 0.106),
        (0.18, 0.15, 0.144),
        (0.0852, 0.299, 0.31),
        (0.141, 0.275, 0.309),
        (0.162, 0.293, 0.314),
    ],
}
CELLS = [(omega, lag) for omega in PAPER for lag in LAGS]


def printed(omega, lag):
    return PAPER[omega][LAGS.index(lag)]


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
