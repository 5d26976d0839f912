import numpy as np
import pytest

from preparations import clean_series, prepare
from rbfdiffnet.series.effects import Effects
from rbfdiffnet.series.gaps import fill_missing
from rbfdiffnet.series.outliers import NO_OUTLIERS
from rbfdiffnet.series.transforms import Compose, Difference


@pytest.fixture
def sales(rng):
    """Sales with a weekly season, a promotion, two gaps, a closed day and a spike."""
    n = 280
    promotion = (rng.uniform(size=(n, 1)) < 0.1).astype(float)
    week = np.tile([1.0, 1.1, 1.05, 1.2, 1.6, 2.0, 0.8], n // 7)
    clean = 100.0 * week * (1.0 + 0.5 * promotion[:, 0]) * np.exp(0.05 * rng.normal(size=n))
    y = clean.copy()
    y[[50, 51]] = np.nan
    y[100], y[150] = 0.0, 3000.0
    return y, promotion, clean


def test_base_is_finite_and_tells_what_was_observed(sales):
    y, promotion, clean = sales
    preparation = prepare(y, promotion, season_length=7)
    u, known = clean_series(preparation, y, promotion)
    assert np.flatnonzero(~known).tolist() == [50, 51, 100, 150]
    bare = preparation.effects.remove(clean, promotion)
    np.testing.assert_allclose(u[known], bare[known])
    np.testing.assert_allclose(u[~known], bare[~known], rtol=0.35)


@pytest.mark.parametrize("log", [False, True])
def test_restoring_gives_the_observations_back(log, sales):
    y, promotion, _ = sales
    preparation = prepare(y, promotion, season_length=7, log=log)
    u, known = clean_series(preparation, y, promotion)
    np.testing.assert_allclose(preparation.restore(u, promotion)[known], y[known], rtol=1e-9)


def test_effects_are_those_of_the_days_that_are_no_outliers(sales):
    y, promotion, clean = sales
    spoiled = y.copy()
    on = np.flatnonzero(promotion)[:3]
    spoiled[on] = 5000.0
    effect = prepare(clean, promotion, season_length=7).effects.gamma[0]
    robust = prepare(spoiled, promotion, season_length=7).effects.gamma[0]
    naive = prepare(spoiled, promotion, season_length=7, clean=False).effects.gamma[0]
    assert effect == pytest.approx(0.5, abs=0.15)
    assert abs(robust - effect) < 0.5 * abs(naive - effect)


def test_without_cleaning_only_gaps_are_filled(sales):
    y, _, _ = sales
    none = np.zeros((y.size, 0))
    preparation = prepare(y, none, season_length=7, clean=False)
    assert preparation.rule is NO_OUTLIERS
    assert preparation.effects is None
    u, known = clean_series(preparation, y, none)
    np.testing.assert_array_equal(u, fill_missing(y, 7))
    np.testing.assert_array_equal(known, np.isfinite(y))


def test_given_effects_are_used(sales):
    y, promotion, _ = sales
    given = Effects(np.array([0.25]), np.zeros(1), relative=True)
    assert prepare(y, promotion, season_length=7, effects=given).effects is given


def test_steps_are_fitted_to_the_base_after_logarithms(sales):
    y, _, _ = sales
    none = np.zeros((y.size, 0))
    names = ("difference", "standardize")
    preparation = prepare(y, none, season_length=7, log=True, transforms=names)
    u, known = clean_series(preparation, y, none)
    np.testing.assert_allclose(u[known], np.log1p(y[known]))
    z = preparation.steps.apply(u)
    assert preparation.steps.steps[0] == Difference()
    assert z.mean() == pytest.approx(0.0, abs=1e-12)
    assert z.std() == pytest.approx(1.0)


def test_bounds_are_three_spans_beyond_the_observations_without_outliers(sales):
    y, promotion, _ = sales
    y = y / (1.0 + 0.5 * promotion[:, 0])
    preparation = prepare(y, np.zeros((y.size, 0)), season_length=7)
    seen = np.delete(y, [50, 51, 100, 150])
    low, high = seen.min(), seen.max()
    assert preparation.low == pytest.approx(low - 3.0 * (high - low))
    assert preparation.high == pytest.approx(high + 3.0 * (high - low))


def test_logarithms_of_runaway_forecasts_stay_finite():
    y = np.array([0.0, 1e300] * 20)
    none = np.zeros((40, 0))
    preparation = prepare(y, none, season_length=1, log=True)
    assert np.all(np.isfinite(preparation.restore(np.array([1e9, -1e9]), none[:2])))


def test_negative_values_have_no_logarithm():
    y = np.array([3.0, np.nan, -1.0, 5.0, 4.0] * 4)
    none = np.zeros((20, 0))
    with pytest.raises(ValueError, match="log1p needs values that are not negative, found -1"):
        prepare(y, none, season_length=1, log=True)
    # Those that arrive later count as zero.
    preparation = prepare(np.abs(y), none, season_length=1, log=True, clean=False)
    u, known = clean_series(preparation, y, none)
    restored = preparation.restore(u, none)[known]
    np.testing.assert_allclose(restored, np.maximum(y[known], 0.0), atol=1e-12)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("days", [1, 3, 5])
def test_a_rare_input_keeps_its_effect(log, days, rng):
    y = 100.0 + rng.normal(size=280)
    on = np.arange(40, 280, 50)[:days]
    inputs = np.zeros((280, 2))
    inputs[on, 0] = 1.0
    inputs[:, 1] = rng.normal(size=280)  # what is no switch is never rare
    y[on] *= 4.0
    robust, naive = (
        prepare(y, inputs, season_length=7, log=log, clean=clean).effects for clean in (True, False)
    )
    np.testing.assert_allclose(robust.gamma[0], naive.gamma[0], rtol=0.05)
    assert robust.gamma[0] > (0.7 * np.log(4.0) if log else 2.0)
    # Without the input, the same days are outliers.
    rule = prepare(y, inputs[:, 1:], season_length=7, log=log).rule
    assert set(on) <= set(np.flatnonzero(rule.find(np.log1p(y) if log else y)))


def test_the_base_of_nothing_is_zero():
    none = np.zeros((5, 0))
    preparation = prepare(np.arange(5.0), none, season_length=1)
    u, known = clean_series(preparation, np.full(5, np.nan), none)
    np.testing.assert_array_equal(u, 0.0)
    assert not known.any()
    assert preparation.steps == Compose()


def test_preparation_of_later_values_does_not_change(sales):
    """Only the neighborhood of a value matters: the start of a series has the same base."""
    y, promotion, _ = sales
    preparation = prepare(y, promotion, season_length=7)
    whole, _ = clean_series(preparation, y, promotion)
    part, _ = clean_series(preparation, y[:200], promotion[:200])
    np.testing.assert_array_equal(part[:170], whole[:170])


def test_many_are_cleaned_as_one_by_one(rng):
    from rbfdiffnet.series.prepare import clean_many

    preparations, panel = [], []
    for i in range(40):
        y = np.round(
            20.0
            + 5.0 * np.sin(np.arange(60 + 7 * (i % 3)) * 0.9)
            + rng.normal(size=60 + 7 * (i % 3)),
            2,
        )
        y[rng.integers(60)] = rng.choice([0.0, 300.0])
        y[rng.integers(60, size=i % 4)] = np.nan
        preparations.append(prepare(y, np.zeros((y.size, 0)), season_length=1 + 6 * (i % 2)))
        panel.append(y)
    panel[5] = np.full(60, np.nan)
    for p, y, (u, known) in zip(preparations, panel, clean_many(preparations, panel), strict=True):
        expected = clean_series(p, y, np.zeros((y.size, 0)))
        np.testing.assert_array_equal(u, expected[0])
        np.testing.assert_array_equal(known, expected[1])
    assert clean_many([], []) == []
