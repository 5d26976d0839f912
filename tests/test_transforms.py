import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rbfdiffnet.transforms import Compose, Difference, Log, RemoveMean

positive = st.floats(0.1, 1e3)
# Steps that know the future from the past: the transformed future depends on values only.
causal = st.one_of(
    st.just(Compose()),
    st.builds(Difference, st.integers(1, 7)),
    st.just(Log()),
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
    with pytest.raises(ValueError, match="lag must be at least 1, got 0"):
        Difference(0)
    with pytest.raises(ValueError, match="at least 5 values, it has 3"):
        Difference(5).apply([1.0, 2.0, 3.0])
