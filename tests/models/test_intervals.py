import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rbfdiffnet.models.intervals import (
    calibration_length,
    conformal_quantiles,
    error_quantiles,
    take_evenly,
)


def conformal_quantile(scores, level):
    """The bound that the next score stays below."""
    return conformal_quantiles(np.reshape(scores, (-1, 1)), [level])[0, 0]


def rank_by_hand(n, percent):
    """Smallest k with k / (n + 1) >= percent / 100, in whole numbers."""
    return next(k for k in range(1, n + 3) if 100 * k >= percent * (n + 1))


@given(st.integers(0, 300), st.integers(51, 99), st.integers(0, 2**32 - 1))
def test_quantile_is_the_score_of_the_smallest_sufficient_rank(n, percent, seed):
    scores = np.random.default_rng(seed).exponential(size=n)
    rank = rank_by_hand(n, percent)
    expected = sorted(scores)[rank - 1] if rank <= n else np.inf
    assert conformal_quantile(scores, percent / 100.0) == expected
    below = conformal_quantiles(-scores[:, None], [1.0 - percent / 100.0])[0, 0]
    assert below == -expected


@pytest.mark.parametrize("n", [9, 19, 40, 99])
@pytest.mark.parametrize("level", [0.6, 0.8, 0.9])
def test_coverage_of_exchangeable_scores_is_within_the_exact_bounds(n, level, rng):
    draws = 20_000
    scores = rng.standard_t(2, size=(draws, n + 1)) ** 2
    # Exchangeable but not independent: all scores of a draw share a scale.
    scores *= rng.exponential(size=(draws, 1))
    covered = np.mean([row[-1] <= conformal_quantile(row[:-1], level) for row in scores])
    noise = 4.0 * np.sqrt(level * (1.0 - level) / draws)
    assert level - noise <= covered <= level + 1.0 / (n + 1) + noise


def test_quantiles_of_one_long_series_are_its_own(rng):
    errors = rng.exponential(size=(120, 3)) - 0.5
    errors[-2:, 2] = np.nan  # not seen yet
    levels = [0.1, 0.5, 0.9]
    found, enough = error_quantiles([errors], np.array([7.0]), levels)
    for k in range(3):
        scores = errors[np.isfinite(errors[:, k]), k]
        assert found[0, k, 2] == conformal_quantile(scores, 0.9)
        assert found[0, k, 0] == -conformal_quantile(-scores, 0.9)
        assert found[0, k, 1] == pytest.approx(np.median(scores), abs=0.05)
    assert enough.tolist() == [[True, True, True]]
    assert (found[0, :, 2] > -found[0, :, 0]).all()  # as skewed as the errors


def test_short_series_borrow_from_the_panel_on_their_own_scale(rng):
    scales = np.array([1.0, 10.0, 100.0])
    errors = [
        scale * rng.exponential(size=(n, 2)) for scale, n in zip(scales, (15, 8, 60), strict=True)
    ]
    found, enough = error_quantiles(errors, scales, [0.8])
    shares = [take_evenly(e) / s for e, s in zip(errors, scales, strict=True)]
    for k in range(2):
        pooled = conformal_quantile(np.concatenate(shares)[:, k], 0.8)
        np.testing.assert_allclose(found[:2, k, 0], pooled * scales[:2])
        assert found[2, k, 0] == conformal_quantile(errors[2][:, k], 0.8)
    assert enough.all()


@pytest.mark.slow
def test_borrowed_quantiles_cover_on_average_over_a_panel(rng):
    covered = []
    for _ in range(300):
        scales = 10.0 ** rng.uniform(-2.0, 2.0, size=20)
        errors = [scale * rng.normal(size=(11, 1)) for scale in scales]
        found, enough = error_quantiles([e[:-1] for e in errors], scales, [0.05, 0.95])
        assert enough.all()
        covered += [w[0, 0] <= e[-1, 0] <= w[0, 1] for e, w in zip(errors, found, strict=True)]
    assert np.mean(covered) == pytest.approx(0.9, abs=0.02)


def test_too_few_errors_give_the_largest_and_no_guarantee():
    errors = [np.array([[1.0], [-3.0]]), np.array([[40.0]])]
    found, enough = error_quantiles(errors, np.array([1.0, 10.0]), [0.025, 0.975])
    # The pool is 1, -3 and 4 in steps.
    np.testing.assert_array_equal(found[:, 0, 0], [-4.0, -40.0])
    np.testing.assert_array_equal(found[:, 0, 1], [4.0, 40.0])
    assert not enough.any()


def test_quantiles_are_finite_and_do_not_cross_whatever_is_unknown(rng):
    errors = [
        rng.normal(size=(80, 2)),
        np.empty((0, 2)),
        np.full((5, 2), np.nan),
        np.zeros((60, 2)),
    ]
    levels = [0.01, 0.1, 0.5, 0.9, 0.99]
    found, _ = error_quantiles(errors, np.array([1.0, 2.0, 0.0, 0.0]), levels)
    assert found.shape == (4, 2, 5)
    assert np.all(np.isfinite(found))
    assert np.all(np.diff(found, axis=2) >= 0.0)
    assert np.all(found[3] == 0.0)


def test_no_series_and_no_errors():
    found, enough = error_quantiles([], np.empty(0), [0.9])
    assert found.shape[0] == enough.size == 0
    found, enough = error_quantiles([np.empty((0, 2))], np.ones(1), [0.9])
    assert np.all(found == 0.0)
    assert not enough.any()


@given(st.integers(0, 200))
def test_thinning_spreads_evenly_over_all_rows(n):
    kept = take_evenly(np.arange(n, dtype=float)[:, None])[:, 0]
    assert kept.size == min(n, 20)
    if n > 20:
        assert kept[0] == 0
        assert kept[-1] == n - 1
        steps = np.diff(kept)
        assert steps.max() - steps.min() <= 1


@given(st.integers(0, 2000))
def test_a_third_is_held_out_but_no_more_than_200(n):
    assert calibration_length(n) == min(n // 3, 200)


@pytest.mark.parametrize("sizes", [(100, 100), (60, 30, 12), (200, 5)])
def test_a_quantile_does_not_depend_on_which_others_are_asked_for(sizes, rng):
    scales = 10.0 ** np.arange(len(sizes))
    errors = [s * (rng.exponential(size=(n, 3)) - 0.5) for s, n in zip(scales, sizes, strict=True)]
    every = [0.0005, 0.01, 0.025, 0.1, 0.5, 0.9, 0.975, 0.99, 0.9995]
    whole, _ = error_quantiles(errors, scales, every)
    assert (np.diff(whole, axis=2) >= 0.0).all()
    for k, p in enumerate(every):
        alone, _ = error_quantiles(errors, scales, [p])
        np.testing.assert_array_equal(alone[:, :, 0], whole[:, :, k])
