"""Maps with windows of many kinds: how they roll, are fitted, weighed, and give quantiles."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from rbfdiffnet import RBFDiffNetRegressor
from rbfdiffnet.datasets import henon_map, logistic_map, mackey_glass
from rbfdiffnet.noise import committee as committee_module
from rbfdiffnet.noise import series_model
from rbfdiffnet.noise.cleaning import quarter_period
from rbfdiffnet.noise.committee import (
    Committee,
    fit_lagged,
    horizon_of,
    learn_committee,
    mean_error,
    origins_of,
    values_ahead,
    weighted_median,
)
from rbfdiffnet.noise.members import Analogs, LaggedMap
from rbfdiffnet.noise.series_model import learn_series


def wave(n: int, period: float = 40.0) -> np.ndarray:
    t = np.arange(n) / period
    return np.sin(2.0 * np.pi * t) + 0.5 * np.cos(6.0 * np.pi * t)


def ones(n: int) -> np.ndarray:
    """All values belong to one trajectory."""
    return np.ones(n, dtype=np.int64)


def fit(z: np.ndarray, n_lags: int = 4, delay: int = 3, decay: float = 0.3) -> LaggedMap:
    found = fit_lagged(z.reshape(len(z), -1), ones(len(z)), n_lags, delay, decay)
    assert found is not None
    return found


def test_a_map_rolls_on_as_by_hand() -> None:
    z = wave(200)
    found = fit(z)
    h, size = 11, found.network.n_lags
    values = list(z)
    for _ in range(h):
        window = [values[len(values) - found.delay * (size - k)] for k in range(size)]
        values.append(float(np.clip(found.network.predict(np.array([window]))[0, 0], -1.2, 1.2)))
    bounds = np.array([-1.2]), np.array([1.2])
    rolled = found.roll(np.stack([z, z])[:, :, None], h, *bounds)
    np.testing.assert_allclose(rolled[:, :, 0], [values[200:]] * 2, rtol=1e-9, atol=1e-9)


def test_the_weights_are_those_of_a_gaussian_process() -> None:
    """Beside the linear part, the map is the mean of a process with the same kernel."""
    rng = np.random.default_rng(0)
    z = wave(150) + 0.1 * rng.normal(size=150)
    found = fit(z, n_lags=3, delay=2)
    network = found.network
    start = np.arange(150 - 6)
    X = z[start[:, None] + 2 * np.arange(3)]
    y = z[start + 6]
    rest = y - X @ network.linear[:3, 0] - network.linear[3, 0]
    width = np.sqrt(0.5 / network.beta[0])
    kernel = RBF(width, "fixed") + WhiteKernel(found.penalty, "fixed")
    process = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0)
    process.fit(X * network.metric, rest)
    at = rng.normal(size=(5, 3))
    linear = at @ network.linear[:3, 0] + network.linear[3, 0]
    expected = process.predict(at * network.metric) + linear
    np.testing.assert_allclose(network.predict(at)[:, 0], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("n", "width"), [(2, 1), (25, 1), (60, 3)])
def test_all_penalties_are_solved_for_as_one_by_one(n: int, width: int) -> None:
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n, 4)), rng.normal(size=(n, width))
    kernel = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))
    total, sizes = committee_module._solve_for_all(kernel, y)
    for j, penalty in enumerate(committee_module._PENALTIES):
        matrix = kernel + penalty * np.eye(n)
        np.testing.assert_allclose(total[:, j], (y * np.linalg.solve(matrix, y)).sum(0), rtol=1e-5)
        np.testing.assert_allclose(sizes[j], np.linalg.slogdet(matrix)[1], atol=1e-5)


def test_the_linear_part_leaves_nothing_that_is_linear() -> None:
    z = wave(150) + 0.1 * np.random.default_rng(1).normal(size=150)
    network = fit(z, n_lags=3, delay=2).network
    X = network.centers / network.metric
    np.testing.assert_allclose(X.T @ network.w[:, 0], 0.0, atol=1e-6)
    np.testing.assert_allclose(network.w.sum(), 0.0, atol=1e-6)


def test_values_that_are_not_usable_take_no_part() -> None:
    z, runs = wave(150)[:, None], ones(150)
    runs[60:64] = 0
    spoiled = np.where(runs[:, None] > 0, z, 1e3)
    one = fit_lagged(z, runs, 3, 2, 1.0)
    other = fit_lagged(spoiled, runs, 3, 2, 1.0)
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one.network.w, other.network.w)


def test_analogs_copy_what_came_after_the_most_similar_past() -> None:
    past = np.array([0.0, 1.0, 5.0, 7.0, 9.0, 2.0, 3.0, 4.0, 8.0, 6.0])[:, None]
    bounds = np.array([-1.0]), np.array([10.0])
    histories = np.array([[9.0, 1.1, 4.9], [0.0, 0.0, 1.0]])[:, :, None]
    paths = Analogs(past, 2).roll(histories, 3, *bounds)
    np.testing.assert_array_equal(paths[:, :, 0], [[7.0, 9.0, 2.0], [5.0, 7.0, 9.0]])
    longer = Analogs(past, 2).roll(np.array([[[2.0], [3.0]]]), 5, *bounds)
    assert longer.shape == (1, 5, 1)


def test_the_weighted_median_is_that_of_repeated_values() -> None:
    rng = np.random.default_rng(2)
    values, counts = rng.normal(size=(5, 7)), np.array([1, 4, 2, 1, 3])
    expected = np.median(np.repeat(values, counts, axis=0), axis=0)
    np.testing.assert_array_equal(weighted_median(values, counts.astype(float)), expected)


def test_errors_count_by_the_logarithm_of_time_ahead() -> None:
    paths = np.array([[1.0, 1.0, 9.0], [0.0, 2.0, np.nan]])
    ahead = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, np.nan]])
    expected = (1.0 + 0.5 * 1.0 + 2.0 / 3.0 + 0.0 + 0.5 * 2.0) / (1 + 0.5 + 1 / 3 + 1 + 0.5)
    assert mean_error(paths[:, :, None], ahead[:, :, None]) == pytest.approx(expected)


def test_what_came_is_missing_after_the_end() -> None:
    found = values_ahead(np.arange(5.0)[:, None], np.array([2, 4]), 3)
    np.testing.assert_array_equal(found[:, :, 0], [[2.0, 3.0, 4.0], [4.0, np.nan, np.nan]])


def test_quantiles_are_those_of_the_errors_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committee_module, "_WIDER", 1.0)

    class Flat:
        reach = 1

        def roll(self, histories: np.ndarray, h: int, *bounds: np.ndarray) -> np.ndarray:
            return np.clip(np.zeros((len(histories), h, 1)), *bounds)

    errors = np.linspace(-1.0, 1.0, 201)[:, None] * np.array([1.0, 2.0])
    bounds = np.array([-9.0]), np.array([9.0])
    committee = Committee((Flat(),), np.ones(1), 0.5, errors[:, :, None], np.ones(1), *bounds)
    middle = committee.forecast(np.zeros((3, 1)), 4)
    found = committee.around(middle, np.array([0.1, 0.5, 0.9]))[:, 0]
    np.testing.assert_allclose(found[:, 1], 0.0, atol=1e-12)
    np.testing.assert_allclose(found[0], [-0.804, 0.0, 0.804], atol=2e-3)
    np.testing.assert_allclose(found[1:], [[-1.608, 0.0, 1.608]] * 3, atol=4e-3)


def test_quantiles_beyond_the_measured_steps_grow_as_errors_did() -> None:
    rng = np.random.default_rng(0)
    steps = np.arange(1, 41)
    errors = rng.normal(size=(400, 1)) * 0.01 * np.exp(0.1 * steps)  # .55 at the end
    bounds = np.array([-99.0]), np.array([99.0])
    committee = Committee((), np.ones(1), 0.5, errors[:, :, None], np.ones(1), *bounds)
    found = committee.around(np.zeros((60, 1)), np.array([0.1, 0.5, 0.9]))[:, 0]
    np.testing.assert_allclose(committee.growth, 0.1, rtol=1e-6)
    np.testing.assert_allclose(found[44, [0, 2]] / found[39, [0, 2]], np.exp(0.5), rtol=1e-6)
    of_difference = 1.2816 * np.sqrt(2.0)  # of two unrelated values
    np.testing.assert_allclose(found[59], [-of_difference, 0.0, of_difference], atol=1e-3)


@pytest.mark.parametrize("make", [henon_map, lambda n: logistic_map(n, s1=0.3)])
def test_quantiles_of_clean_maps_hold_what_they_promise_far_ahead(make) -> None:  # type: ignore[no-untyped-def]
    """Errors double every other step, long after the 20 steps on which maps are compared."""
    inside = []
    for first in range(0, 600, 100):
        s = np.asarray(make(1040))[first : first + 440]
        low, high = (
            RBFDiffNetRegressor(noise=None).fit_series(s[:400]).forecast(40, quantiles=[0.1, 0.9]).T
        )
        inside.append((s[400:] >= low) & (s[400:] <= high))
    for steps in np.split(np.mean(inside, axis=0), 4):
        assert steps.mean() >= 0.6


def test_held_out_forecasts_see_nothing_that_comes_later() -> None:
    """Members are compared from the histories they are given, learned from what is before them."""
    s = mackey_glass(300, step=6.0)
    quarter = quarter_period(s)
    origins = origins_of(s.size, quarter)
    assert origins[0] >= 0.7 * s.size - 1
    assert horizon_of(s.size, quarter) <= 60
    histories = np.stack([s[origin - 40 : origin] for origin in origins])[:, :, None]
    z, h = s[:, None], horizon_of(s.size, quarter)
    committee = learn_committee(z, ones(s.size), z, histories, origins, h, quarter)
    assert np.all(np.diff(committee.weight) <= 0.0)
    assert committee.error < 0.05 * s.std()


def test_a_map_of_several_sensors_is_one_map_of_each_with_the_same_kernel() -> None:
    """Outputs share windows, width and penalty, and are otherwise fitted alone."""
    rng = np.random.default_rng(4)
    z = np.stack([wave(150), np.roll(wave(150), 7)], axis=1) + 0.1 * rng.normal(size=(150, 2))
    found = fit(z, n_lags=3, delay=2)
    assert (found.n_lags, found.reach) == (3, 6)
    start = np.arange(150 - 6)
    X = z[start[:, None] + 2 * np.arange(3)].reshape(144, 6)
    network = found.network
    squares = ((X[:, None] - X[None]) * network.metric) ** 2
    kernel = np.exp(-network.beta[0] * squares.sum(axis=2)) + found.penalty * np.eye(144)
    flat = np.c_[X, np.ones(144)]
    for k in (0, 1):
        y = z[start + 6, k]
        inverse = np.linalg.inv(kernel)
        linear = np.linalg.solve(flat.T @ inverse @ flat, flat.T @ inverse @ y)
        np.testing.assert_allclose(network.linear[:, k], linear, rtol=1e-5, atol=1e-6)
        w = inverse @ (y - flat @ linear)
        np.testing.assert_allclose(network.w[:, k], w, rtol=1e-4, atol=1e-5)
    bounds = np.full(2, -9.0), np.full(2, 9.0)
    first = found.roll(z[None], 2, *bounds)[0]
    expected = network.predict(z[[144, 146, 148, 145, 147, 149]].reshape(2, 6))
    np.testing.assert_allclose(first, expected, rtol=1e-9)


def test_windows_do_not_reach_from_one_trajectory_into_another() -> None:
    z, runs = np.concatenate([wave(80), 5.0 - wave(90)])[:, None], np.repeat([1, 2], [80, 90])
    found = fit_lagged(z, runs, 3, 2, 1.0)
    assert found is not None
    assert len(found.network.centers) == (80 - 6) + (90 - 6)
    jumps = np.abs(np.diff(found.network.centers, axis=1)).max()
    assert jumps <= np.abs(wave(90)[2:] - wave(90)[:-2]).max()


def test_errors_at_values_that_were_not_observed_do_not_count() -> None:
    s = mackey_glass(400, step=6.0)
    holes = s.copy()
    holes[3:390:7] = np.nan
    quantiles = RBFDiffNetRegressor().fit_series(holes).forecast(5, quantiles=[0.1, 0.9])
    assert np.ptp(quantiles, axis=1).max() < 0.3 * np.ptp(s)


def test_hopeless_maps_are_left_out_after_a_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """All maps roll on from a few origins, and only those close to the best from all of them."""
    rolled: list[int] = []
    roll = LaggedMap.roll

    def count(self: LaggedMap, histories: np.ndarray, *given: object) -> np.ndarray:
        rolled.append(len(histories))
        return roll(self, histories, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(LaggedMap, "roll", count)
    monkeypatch.setattr(series_model, "told_of", lambda *_: 0)  # members roll no farther
    model = learn_series(henon_map(400)[:, None], None)
    few, others = min(rolled), max(rolled)
    assert few == 8
    assert others == 32 - 8
    assert 0 < rolled.count(others) < rolled.count(few)
    assert len(model.committee.members) <= rolled.count(others) + 3  # analogs
