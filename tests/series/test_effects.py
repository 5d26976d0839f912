import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.panel.panel import _find_typos as find_typos
from rbfdiffnet.series.effects import (
    RIDGE,
    Effects,
    _moving_mean,
    _window_length,
    fit_effects,
    without_typos,
)


def panel(rng, n_series=3, n=300):
    """Series that are never negative, with a switch and a price, on different levels."""
    series, inputs, known = [], [], []
    for i in range(n_series):
        X = np.column_stack([rng.uniform(size=n) < 0.15, 5.0 + rng.normal(size=n)]).astype(float)
        level = 10.0 ** (i + 1) * (1.0 + 0.2 * np.sin(np.arange(n) / 60.0))
        noise = 1.0 + 0.05 * rng.normal(size=n)
        series.append(level * (1.0 + X @ [0.4, -0.1] + 0.5) * noise)
        inputs.append(X)
        known.append(rng.uniform(size=n) < 0.9)
    return series, inputs, known


def looped_mean(values, window):
    half = window // 2
    at = range(len(values))
    return np.array([values[max(t - half, 0) : t + half + 1].mean(axis=0) for t in at])


@given(st.integers(1, 60), st.integers(0, 30), st.integers(0, 2**32 - 1))
def test_moving_mean_equals_a_loop(n, half, seed):
    values = np.random.default_rng(seed).normal(size=(n, 2))
    window = 2 * half + 1
    np.testing.assert_allclose(_moving_mean(values, window), looped_mean(values, window), atol=1e-9)


@given(st.integers(1, 400), st.integers(1, 3000))
def test_windows_are_odd_and_reach_over_two_seasons(season_length, n):
    window = _window_length(season_length, n)
    assert window % 2 == 1
    assert window <= max(n // 2 + 1, 1)
    assert window > 2 * season_length or window >= n // 2


@pytest.mark.parametrize("relative", [True, False])
def test_effects_are_a_ridge_regression_of_swings(relative, rng):
    series, inputs, known = panel(rng)
    effects = fit_effects(series, inputs, known, season_length=7, relative=relative)
    assert effects.relative is relative
    everything = np.concatenate(inputs)
    unit = np.array([1.0, everything[:, 1].std()])  # switches keep their unit
    Z, swings = [], []
    for s, X, mask in zip(series, inputs, known, strict=True):
        level = looped_mean(s, 57)
        swing = (s - level) / level if relative else s - level
        Z.append(((X - looped_mean(X, 57)) / unit)[mask])
        swings.append(swing[mask])
    ridge = Ridge(alpha=RIDGE, fit_intercept=False).fit(np.concatenate(Z), np.concatenate(swings))
    np.testing.assert_allclose(effects.gamma, ridge.coef_ / unit, rtol=1e-8)
    np.testing.assert_allclose(effects.center, everything.mean(axis=0))


def test_relative_effects_are_found_on_any_scale(rng):
    series, inputs, known = panel(rng)
    effects = fit_effects(series, inputs, known, season_length=7)
    # Shares of the mean, which a price of 5 and a switch at 15 % bring to 1.06.
    np.testing.assert_allclose(effects.gamma * 1.06, [0.4, -0.1], atol=0.02)
    scaled = fit_effects(
        [s * 10.0**i for i, s in enumerate(series)], inputs, known, season_length=7
    )
    np.testing.assert_allclose(scaled.gamma, effects.gamma, rtol=1e-9)


def test_a_negative_value_makes_effects_additive(rng):
    series, inputs, known = panel(rng, n_series=1)
    series[0][5] = -1.0
    assert not fit_effects(series, inputs, known, season_length=7).relative


def test_slow_changes_are_no_effect(rng):
    n = 400
    trend = 100.0 + np.arange(n)
    late = (rng.uniform(size=n) < np.linspace(0.0, 0.6, n)).astype(float)[:, None]
    effects = fit_effects([trend], [late], [np.ones(n, bool)], season_length=7)
    assert abs(effects.gamma[0]) < 0.01


def test_a_constant_input_and_an_unknown_series_have_no_effect(rng):
    series, inputs, _ = panel(rng, n_series=1)
    constant = [np.column_stack([inputs[0], np.ones(300)])]
    effects = fit_effects(series, constant, [np.ones(300, bool)], season_length=7)
    assert effects.gamma[2] == pytest.approx(0.0, abs=1e-12)
    nothing = fit_effects(series, inputs, [np.zeros(300, bool)], season_length=7)
    np.testing.assert_array_equal(nothing.gamma, 0.0)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_restoring_undoes_removing(seed, relative):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 3))
    effects = Effects(rng.normal(scale=0.3, size=3), rng.normal(size=3), relative)
    series = rng.uniform(1.0, 100.0, size=20)
    bare = effects.remove(series, X)
    left = 1.0 + effects.parts(X).sum(axis=1)
    kept = left >= 0.2 if relative else np.ones(20, bool)
    np.testing.assert_array_equal(np.isfinite(bare), kept)
    np.testing.assert_allclose(effects.restore(bare, X)[kept], series[kept], rtol=1e-9)


def test_relative_effects_leave_no_less_than_nothing():
    closed = Effects(np.array([-3.0]), np.zeros(1), relative=True)
    X = np.array([[0.0], [1.0]])
    np.testing.assert_array_equal(closed.total(X), [0.0, -1.0])
    np.testing.assert_array_equal(closed.restore(np.array([8.0, 8.0]), X), [8.0, 0.0])
    np.testing.assert_array_equal(closed.remove(np.array([8.0, 0.0]), X), [8.0, np.nan])


def test_batches_equal_one_by_one(rng):
    effects = Effects(rng.normal(size=2), rng.normal(size=2), relative=True)
    base, X = rng.uniform(size=(5, 4)), rng.normal(size=(5, 4, 2))
    one_by_one = [effects.restore(b, x) for b, x in zip(base, X, strict=True)]
    np.testing.assert_array_equal(effects.restore(base, X), one_by_one)


def test_a_value_far_from_all_others_of_an_input_counts_as_its_median():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(1.0, 3.0, 90), rng.random(90) < 0.1, np.full(90, 7.0)])
    wrong = X.copy()
    wrong[40, 0] = -1e6
    fixed = without_typos(wrong)
    assert fixed[40, 0] == np.median(wrong[:, 0])
    fixed[40, 0] = X[40, 0]
    np.testing.assert_array_equal(fixed, X)
    assert without_typos(X) is X
    often = X.copy()
    often[::10, 0] = 1e6  # what is common is no typo
    assert without_typos(often) is often


def test_rare_discounts_are_no_typos_but_absurd_ones_are():
    rng = np.random.default_rng(0)
    rare = np.where(rng.random(400) < 0.04, rng.uniform(0.05, 0.5, 400), 0.0)
    price = np.where(np.arange(400) == 7, 1.5, 2.0)
    X = np.column_stack([rare, price])
    assert without_typos(X) is X
    wrong = X.copy()
    wrong[[3, 9], [0, 1]] = 30.0, 1e6
    fixed = X.copy()
    fixed[[3, 9], [0, 1]] = 0.0, 2.0
    np.testing.assert_array_equal(without_typos(wrong), fixed)
    same = find_typos(wrong.T.ravel(), np.repeat([0, 1], 400)).reshape(2, 400).T  # of ranges
    np.testing.assert_array_equal(same, wrong != fixed)


def test_a_rare_discount_has_its_effect():
    rng = np.random.default_rng(0)
    discount = np.where(rng.random(400) < 0.04, rng.uniform(0.1, 0.5, 400), 0.0)
    days = pd.date_range("2023-01-01", periods=400)
    y = 50.0 + 60.0 * discount + rng.normal(size=400)
    df = pd.DataFrame({"unique_id": "a", "ds": days, "y": y, "discount": discount})
    model = RBFDiffNet("D").fit(df)
    plain, promoted = (
        model.predict(3, model.make_future_frame(3).assign(discount=d), level=None)
        for d in (0.0, 0.3)
    )
    assert (promoted["RBFDiffNet"] - plain["RBFDiffNet"]).between(12.0, 24.0).all()
