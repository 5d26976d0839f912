"""The quick look that tells nonlinear series from linear ones."""

import numpy as np
import pytest
from scipy.signal import lfilter
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression

from rbfdiffnet.datasets import henon_map, logistic_map, lorenz, mackey_glass
from rbfdiffnet.noise import nonlinear
from rbfdiffnet.noise.nonlinear import nonlinear_error
from rbfdiffnet.series.windows import lag_windows


@pytest.mark.parametrize("make", [logistic_map, henon_map, lorenz, mackey_glass])
def test_chaotic_series_are_nonlinear(make):
    s = make(800)
    assert nonlinear_error(s if s.ndim == 1 else s[:, 0]) < 0.75


@pytest.mark.parametrize("a", [[1.0], [1.0, -0.8], [1.0, -1.6, 0.9], [1.0, 0.5]])
def test_linear_series_are_not(rng, a):
    assert nonlinear_error(lfilter([1.0], a, rng.normal(size=400))) > 0.85


def test_slow_short_and_constant_series_cannot_be_told(rng):
    assert nonlinear_error(np.cumsum(rng.normal(size=300))) == 1.0
    assert nonlinear_error(logistic_map(59)) == 1.0
    assert nonlinear_error(np.ones(100)) == 1.0


def test_a_season_is_not_nonlinear(rng):
    shape = np.array([0.0, 0.0, 5.0, 1.0, 9.0, 2.0, 2.0])
    s = np.tile(shape, 40) + 0.3 * rng.normal(size=280)
    assert nonlinear_error(s, [7]) > 2.0 * nonlinear_error(s)  # it is a line from last week's value


def test_errors_are_those_of_other_libraries(monkeypatch):
    """With one penalty and the lags of a map, by scikit-learn."""
    monkeypatch.setattr(nonlinear, "_PENALTIES", np.array([1e-3]))
    s = logistic_map(150)
    X, y = lag_windows((s - s.mean()) / s.std(), n_lags=4)
    n = 105 - 4
    linear = LinearRegression().fit(X[:n], y[:n])
    rest = y - linear.predict(X)
    squares = ((X[:n, None] - X[None, :n]) ** 2).sum(axis=2)
    kernel = RBF(np.sqrt(np.median(squares)))
    ridge = KernelRidge(alpha=1e-3, kernel=kernel).fit(X[:n], rest[:n])
    errors = np.abs(rest[n:] - ridge.predict(X[n:])).mean(), np.abs(rest[n:]).mean()
    assert nonlinear_error(s) == pytest.approx(errors[0] / errors[1], rel=1e-6)
