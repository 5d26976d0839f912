import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rbfdiffnet.models.networks.window_model import LEVELS, WindowModel, fit_windows, window_rows
from rbfdiffnet.network.train import Settings

QUICK = Settings(6, width_factor=2.0, alpha=1e-6, alpha_linear=1e-6)

lag_sets = st.sets(st.integers(1, 9), min_size=1, max_size=5).map(lambda s: tuple(sorted(s)))


def level_by_hand(lags, level):
    return {"mean": sum(lags) / len(lags), "last": lags[-1], "none": 0.0}[level]


@given(
    lag_sets,
    st.sampled_from(LEVELS),
    st.integers(1, 6),
    st.integers(0, 25),
    st.integers(0, 2),
    st.integers(0, 2**32 - 1),
)
def test_rows_equal_a_loop(lags, level, block, n, n_extra, seed):
    rng = np.random.default_rng(seed)
    z, extra = rng.normal(size=n), rng.normal(size=(n, n_extra))
    known = rng.uniform(size=n) < 0.8
    inputs, targets = [], []
    for t in range(n):  # the latest value of the window
        if t - max(lags) + 1 < 0 or t + block >= n:
            continue
        if sum(not known[t + k] for k in range(1, block + 1)) > block / 4:
            continue
        values = [z[t + 1 - age] for age in reversed(lags)]
        base = level_by_hand(values, level)
        inputs.append([*extra[t], *(v - base for v in values)])
        targets.append([z[t + k] - base for k in range(1, block + 1)])
    X, Y = window_rows(z, known, extra, lags=lags, level=level, block=block)
    assert X.shape == (len(inputs), n_extra + len(lags))
    assert Y.shape == (len(inputs), block)
    np.testing.assert_allclose(X.ravel(), np.ravel(inputs), atol=1e-12)
    np.testing.assert_allclose(Y.ravel(), np.ravel(targets), atol=1e-12)


def test_rows_with_a_missing_target_are_dropped_but_not_those_with_a_filled_input():
    z = np.arange(10.0)
    known = z != 5
    none = np.zeros((10, 0))
    X, Y = window_rows(z, known, none, lags=(1, 2), level="none", block=1)
    assert Y.ravel().tolist() == [2.0, 3.0, 4.0, 6.0, 7.0, 8.0, 9.0]
    assert [4.0, 5.0] in X.tolist()


def fitted(rng, *, lags=(1, 2, 5), level="mean", block=1, n_extra=2, settings=QUICK):
    z = np.sin(np.arange(300) / 4.0) + 0.1 * rng.normal(size=300).cumsum()
    extra = rng.normal(size=(300, n_extra))
    known = np.ones(300, dtype=bool)
    X, Y = window_rows(z, known, extra, lags=lags, level=level, block=block)
    return fit_windows(X, Y, settings, lags=lags, level=level), z, extra


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("block", [1, 4])
def test_forecasts_equal_a_loop_over_blocks(level, block, rng):
    model, z, extra = fitted(rng, level=level, block=block)
    h = 10
    path, rows = model.forecast(z[None], h, extra[-1:])
    values = list(z)
    for k in range(-(-h // block)):
        lags = [values[-age] for age in (5, 2, 1)]
        base = level_by_hand(lags, level)
        row = np.array([[*extra[-1], *((v - base) / model.unit for v in lags)]])
        np.testing.assert_allclose(rows[k], row, atol=1e-9)
        values += (base + model.unit * model.network.predict(row)[0]).tolist()
    np.testing.assert_allclose(path[0], values[300 : 300 + h], atol=1e-9)


def test_batches_equal_one_by_one(rng):
    model, z, _ = fitted(rng, block=3)
    windows = np.lib.stride_tricks.sliding_window_view(z, 8)[::40]
    extra = rng.normal(size=(len(windows), 2))
    batch, rows = model.forecast(windows, 7, extra)
    for i, window in enumerate(windows):
        alone, own = model.forecast(window[None], 7, extra[i : i + 1])
        np.testing.assert_allclose(batch[i], alone[0], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose([r[i] for r in rows], [r[0] for r in own], atol=1e-10)


def test_values_before_the_oldest_lag_do_not_matter(rng):
    model, z, extra = fitted(rng)
    assert model.reach == 5
    whole, _ = model.forecast(z[None], 6, extra[-1:])
    part, _ = model.forecast(z[None, -5:], 6, extra[-1:])
    np.testing.assert_array_equal(whole, part)


@pytest.mark.parametrize("level", ["mean", "last"])
def test_a_level_makes_forecasts_follow_shifts(level, rng):
    model, z, extra = fitted(rng, level=level)
    here, _ = model.forecast(z[None], 6, extra[-1:])
    there, _ = model.forecast(z[None] + 1000.0, 6, extra[-1:])
    np.testing.assert_allclose(there - 1000.0, here, atol=1e-9)


def test_units_of_the_series_do_not_matter(rng):
    z = np.sin(np.arange(200) / 4.0) + 0.1 * rng.normal(size=200)
    none, known = np.zeros((200, 0)), np.ones(200, dtype=bool)
    paths = []
    for unit in (1.0, 1e8, 1e-8):
        X, Y = window_rows(unit * z, known, none, lags=(1, 2, 3), level="last", block=1)
        model = fit_windows(X, Y, QUICK, lags=(1, 2, 3), level="last")
        paths.append(model.forecast(unit * z[None], 8, none[:1])[0] / unit)
    np.testing.assert_allclose(paths[1], paths[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(paths[2], paths[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("level", LEVELS)
def test_a_runaway_recursion_stays_in_bounds(level, rng):
    model, z, extra = fitted(rng, level=level)
    explosive = dataclasses.replace(model.network, linear=1e6 * model.network.linear)
    wild = dataclasses.replace(model, source=explosive)
    path, rows = wild.forecast(z[None], 50, extra[-1:])
    full = np.append(z, path[0])
    assert np.all(np.isfinite(path))
    for k in range(50):
        _, base = wild.inputs(full[None, : 300 + k], extra[-1:])
        assert abs(path[0, k] - base[0, 0]) <= 2.0 * model.largest * model.unit * (1 + 1e-9)
    assert len(rows) == 50


def test_largest_and_unit_describe_the_targets(rng):
    z = rng.normal(size=100).cumsum()
    none, known = np.zeros((100, 0)), np.ones(100, dtype=bool)
    X, Y = window_rows(z, known, none, lags=(1, 2), level="last", block=2)
    model = fit_windows(X, Y, QUICK, lags=(1, 2), level="last")
    assert model.unit == pytest.approx(Y.std())
    assert model.largest * model.unit == pytest.approx(np.abs(Y).max())
    assert (model.block, model.lags, model.level) == (2, (1, 2), "last")


@pytest.mark.parametrize(("n", "most"), [(12, 1), (34, 4), (300, 6)])
def test_short_series_get_fewer_basis_functions(n, most, rng):
    z, none = rng.normal(size=n), np.zeros((n, 0))
    X, Y = window_rows(z, z < 99, none, lags=(1, 2), level="none", block=1)
    model = fit_windows(X, Y, QUICK, lags=(1, 2), level="none")
    assert len(model.network.centers) == most


def test_constant_targets_are_continued():
    X, Y = np.zeros((20, 2)), np.zeros((20, 1))
    model = fit_windows(X, Y, QUICK, lags=(1, 2), level="last")
    assert isinstance(model, WindowModel)
    path, _ = model.forecast(np.full((1, 2), 7.0), 5, np.zeros((1, 0)))
    np.testing.assert_allclose(path, 7.0)


def test_a_direct_block_beats_nothing_and_knows_a_sine():
    z = np.sin(np.arange(200) / 5.0)
    none = np.zeros((200, 0))
    X, Y = window_rows(z, z < 2, none, lags=(1, 2, 3), level="none", block=12)
    model = fit_windows(X, Y, QUICK, lags=(1, 2, 3), level="none")
    path, rows = model.forecast(z[None], 12, none[:1])
    assert len(rows) == 1
    np.testing.assert_allclose(path[0], np.sin(np.arange(200, 212) / 5.0), atol=1e-2)
