import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rbfdiffnet.series.differences import n_differences
from rbfdiffnet.series.transforms import (
    TRANSFORMS,
    Compose,
    Difference,
    Log,
    Log1p,
    RemoveMean,
    Rescale,
    fit_transforms,
)

positive = st.floats(0.1, 1e3)
# Steps that know the future from the past: the transformed future depends on values only.
causal = st.one_of(
    st.just(Compose()),
    st.builds(Difference, st.integers(1, 7)),
    st.just(Log()),
    st.just(Log1p()),
    st.builds(Rescale, st.floats(-10, 10), st.floats(0.1, 10)),
    st.builds(
        lambda log, first, second: Compose((*log, Difference(first), Difference(second))),
        st.sampled_from([(), (Log(),)]),
        st.integers(1, 7),
        st.integers(1, 3),
    ),
)


@given(causal, arrays(np.float64, st.tuples(st.integers(1, 3), st.just(30)), elements=positive))
def test_inverse_restores_a_held_out_future(transform, series):
    future = transform.apply(series)[..., -12:]
    np.testing.assert_allclose(transform.invert(future, series[..., :18]), series[..., 18:])


@given(
    arrays(np.float64, st.tuples(st.integers(1, 3), st.just(20)), elements=positive),
    arrays(np.float64, st.tuples(st.just(1), st.integers(1, 9)), elements=st.floats(-1, 1)),
    st.integers(1, 5),
)
def test_inverse_with_a_mean_continues_the_series(series, forecast, lag):
    transform = Compose((Log(), Difference(lag), RemoveMean()))
    z = transform.apply(series)
    assert z.shape[-1] == series.shape[-1] - transform.lost
    np.testing.assert_allclose(z.mean(axis=-1), 0.0, atol=1e-12)
    continued = np.concatenate([series, transform.invert(forecast, series)], axis=-1)
    growth = Compose((Log(), Difference(lag)))
    mean = growth.apply(series).mean(axis=-1, keepdims=True)
    h = forecast.shape[-1]
    np.testing.assert_allclose(
        growth.apply(continued)[..., -h:] - mean, np.repeat(forecast, len(series), 0), atol=1e-9
    )


@given(st.integers(0, 10), arrays(np.int64, st.just(60), elements=st.integers(0, 10_000)))
def test_up_to_ten_differences_of_counts_are_undone_exactly(count, series):
    # Differences of whole numbers are whole numbers, so not even rounding is allowed.
    transform = Compose((Difference(),) * count)
    future = transform.apply(series)[-28:]
    np.testing.assert_array_equal(transform.invert(future, series[:32]), series[32:])


@given(
    st.integers(0, 10),
    st.integers(1, 28),
    arrays(np.float64, st.just(60), elements=st.floats(-1e3, 1e3)),
)
def test_up_to_ten_differences_and_a_mean_are_undone_up_to_rounding(count, h, series):
    past = series[:-h]
    differences = Compose((Difference(),) * count)
    transform = Compose((*differences.steps, RemoveMean()))
    future = differences.apply(series)[-h:] - differences.apply(past).mean()
    # An error in a difference is summed up ``count`` times over ``h`` steps.
    rounding = np.finfo(float).eps * 1e3 * 2.0**count * math.comb(h + count, count)
    np.testing.assert_allclose(
        transform.invert(future, past), series[-h:], rtol=0.0, atol=60 * rounding
    )


@given(st.integers(1, 8), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_difference_inverse_equals_a_loop(lag, h, seed):
    rng = np.random.default_rng(seed)
    series, forecast = rng.normal(size=lag + 2), rng.normal(size=h)
    values = list(series)
    for step in forecast:
        values.append(step + values[-lag])
    np.testing.assert_allclose(Difference(lag).invert(forecast, series), values[lag + 2 :])


def test_batch_equals_one_series_at_a_time():
    rng = np.random.default_rng(0)
    series, forecast = rng.uniform(1, 2, size=(4, 15)), rng.normal(size=(4, 6))
    transform = Compose((Log(), Difference(3), RemoveMean()))
    np.testing.assert_array_equal(transform.apply(series), [transform.apply(s) for s in series])
    np.testing.assert_allclose(
        transform.invert(forecast, series),
        [transform.invert(f, s) for f, s in zip(forecast, series, strict=True)],
    )


def test_seasonal_difference_removes_a_season_and_first_difference_a_trend():
    season = np.tile([3.0, 1.0, 4.0, 1.0], 5)
    np.testing.assert_array_equal(Difference(4).apply(season), np.zeros(16))
    np.testing.assert_array_equal(Difference().apply(np.arange(6.0)), np.ones(5))


def test_lost_counts_the_values_taken():
    assert Compose().lost == Log().lost == RemoveMean().lost == 0
    assert Compose((Log(), Difference(12), Difference())).lost == 13


@pytest.mark.parametrize("bad", [0.0, -2.0, np.nan])
def test_log_names_the_first_value_without_a_logarithm(bad):
    with pytest.raises(ValueError, match=rf"found {bad} at position 2"):
        Log().apply([1.0, 2.0, bad, -1.0])


def test_log_inverse_stays_finite():
    assert np.isfinite(Log().invert([1e6, 0.0], [1.0])).all()


def test_difference_errors():
    with pytest.raises(ValueError, match="lag must be an integer of at least 1; got 0"):
        Difference(0)
    with pytest.raises(ValueError, match="at least 5 values, it has 3"):
        Difference(5).apply([1.0, 2.0, 3.0])


@given(
    st.lists(st.sampled_from([n for n in TRANSFORMS if n != "log1p"]), max_size=3),
    st.booleans(),
    arrays(np.float64, st.just(60), elements=positive),
    st.integers(1, 12),
)
def test_fitted_steps_restore_a_future_they_have_not_seen(names, log, series, season_length):
    # Logarithms come first: what other steps leave may be negative.
    transform = fit_transforms((*["log1p"] * log, *names), series[:45], season_length)
    # Every difference multiplies rounding errors.
    assume(sum(isinstance(step, Difference) for step in transform.steps) <= 10)
    future = transform.apply(series)[-15:]
    size = np.abs(transform.apply(series[:45])).max()
    np.testing.assert_allclose(
        transform.invert(future, series[:45]), series[45:], rtol=1e-6, atol=1e-6 * (1.0 + size)
    )


def test_fitted_steps_see_what_those_before_have_left(rng):
    series = 50.0 + np.tile([0.0, 9.0, 4.0, 2.0], 20) + rng.normal(size=80).cumsum()
    transform = fit_transforms(("log1p", "seasonal", "adf", "standardize"), series, 4)
    left = np.log1p(series)
    left = left[4:] - left[:-4]
    count = n_differences(left)
    left = np.diff(left, n=count)
    expected = (
        Log1p(),
        Difference(4),
        *[Difference()] * count,
        Rescale(left.mean(), left.std()),
    )
    assert transform.steps == expected
    np.testing.assert_allclose(transform.apply(series).std(), 1.0)


def test_fitted_steps_apply_to_parts_of_a_series(rng):
    series = rng.uniform(1.0, 2.0, size=50).cumsum()
    transform = fit_transforms(("log1p", "difference", "standardize"), series)
    np.testing.assert_allclose(transform.apply(series)[-10:], transform.apply(series[-11:]))


def test_own_steps_are_taken_and_unknown_ones_named():
    step = Difference(3)
    assert fit_transforms((step, "mean"), np.arange(9.0)).steps == (step, Rescale(3.0, 1.0))
    with pytest.raises(ValueError, match="Unknown transform 'boxcox'; known are adf"):
        fit_transforms(("boxcox",), np.arange(9.0))


def test_a_constant_series_keeps_its_unit_and_a_short_one_its_season():
    assert fit_transforms(("standardize",), np.full(5, 3.0)).steps == (Rescale(3.0, 1.0),)
    assert fit_transforms(("seasonal",), np.arange(14.0), season_length=7).steps == ()
    assert fit_transforms(("seasonal",), np.arange(15.0), season_length=7).steps != ()


def test_log1p_counts_negative_values_as_zero_and_stays_finite():
    np.testing.assert_array_equal(Log1p().apply([-3.0, 0.0]), [0.0, 0.0])
    restored = Log1p().invert([1e6, -1e6], [1.0])
    assert np.isfinite(restored).all()
    assert restored[1] == -1.0


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan])
def test_rescale_needs_a_positive_scale(scale):
    with pytest.raises(ValueError, match="scale must be a number above 0"):
        Rescale(0.0, scale)


def test_nothing_has_no_mean():
    for call in (lambda: RemoveMean().apply([]), lambda: RemoveMean().invert([1.0], [])):
        with pytest.raises(ValueError, match="has no values"):
            call()
