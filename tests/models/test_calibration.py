"""Scores of any scale, tail and skewness become normal; anomalies hardly change that."""

import numpy as np
import pytest
from scipy import stats

from rbfdiffnet.models.calibration import (
    _LAST,
    _SIDES,
    Calibration,
    _compare_sides,
    _fit_curves,
    _leave_themselves_out,
)

LEVELS = {0.95: 1.959964, 0.99: 2.575829}


def flagged(scores, sparse=False):
    """Shares of scores beyond normal limits, once they are made normal."""
    calibration = Calibration.of(scores, np.full(len(scores), sparse))
    owner = np.repeat(np.arange(len(scores)), [own.size for own in scores])
    normal = np.abs(calibration.to_normal(np.concatenate(scores), owner))
    return {level: float((normal > z).mean()) for level, z in LEVELS.items()}


@pytest.mark.parametrize("heavy", [-0.18, -0.05, 0.0, 1e-9, 0.1, 0.3])
@pytest.mark.parametrize("side", [0.0, 0.3])
def test_to_normal_is_the_inverse_of_from_normal(heavy, side):
    scale, tails = np.array([[0.2 - side], [0.2 + side]]), np.array([[heavy], [-0.1]])
    calibration = Calibration(scale, tails)
    for z in (0.01, 0.5, 1.0, 2.0, 2.5, 3.5):
        below, above = calibration.from_normal(z)
        scores = np.concatenate([-below, above])
        np.testing.assert_allclose(calibration.to_normal(scores, np.zeros(2, int)), [-z, z])


def test_scores_are_bounded_and_keep_their_order():
    for heavy in (-0.18, -0.05, 0.0, 0.2):
        calibration = Calibration(np.zeros((2, 1)), np.full((2, 1), heavy))
        scores = np.array([-np.inf, -50.0, -3.0, 0.0, 2.0, 4.0, 9.0, np.inf])
        normal = calibration.to_normal(scores, np.zeros(scores.size, int))
        assert (np.diff(normal) >= 0.0).all()
        assert np.abs(normal).max() == 40.0
        assert normal[3] == 0.0


def test_curves_are_those_of_generalized_least_squares(rng):
    """Precision against the spread of what is found in many samples, and no bias."""
    a, h, n = 0.3, 0.1, 400
    z = rng.normal(size=(1500, n))
    sizes = np.exp(a) * np.abs(z) * np.exp(h * z**2 / 2.0)
    counts = np.full(1500, n)
    found, precision, _ = _fit_curves(list(sizes), counts)
    np.testing.assert_allclose(found.mean(axis=0), [a, h], atol=0.01)
    plain, _, _ = _fit_curves(list(np.abs(z)), counts)
    np.testing.assert_allclose(np.linalg.inv(precision[0]), np.cov(plain.T), rtol=0.25, atol=2e-4)


def test_sides_are_compared_by_generalized_least_squares(rng):
    """Half the differences of a and h are found, as precisely as is said."""
    b, k, n = 0.2, 0.05, 400
    counts, z = np.full(1500, n), rng.normal(size=(1500, n))
    sign = np.sign(z)
    found, precision, _ = _compare_sides(list(z * np.exp(sign * (b + k * z**2 / 2.0))), counts)
    np.testing.assert_allclose(found.mean(axis=0), [b, k], atol=0.01)
    plain, _, _ = _compare_sides(list(z), counts)
    np.testing.assert_allclose(np.linalg.inv(precision[0]), np.cov(plain.T), rtol=0.25, atol=2e-4)


def test_one_value_moves_the_sides_apart_as_is_said(rng):
    """What one far value tells, against many values with a few more there."""
    z, few = np.sort(rng.normal(size=200_001)), 400
    more = np.concatenate([z, np.full(few, LEVELS[0.99])])
    counts = np.array([z.size, more.size])
    found, precision, pull = _compare_sides([z, more], counts)
    told = precision[0] / z.size @ (found[1] - found[0]) * more.size / few
    np.testing.assert_allclose(told, pull[0][1], rtol=0.05)
    assert _SIDES[-1] < 0.975  # values in 1 % of one side hardly count


@pytest.mark.parametrize("n", [120, 200])
def test_values_that_found_their_own_limits_pass_them_as_often_as_the_level_says(rng, n):
    """Without the change of order 1/n fewer values pass the limit of the level 99."""
    sizes = np.abs(rng.normal(size=(600_000 // n, n)))
    found, precision, pull = _fit_curves(list(sizes), np.full(len(sizes), n))
    changed = found + _leave_themselves_out(np.linalg.inv(precision), pull)

    def share(a, h, z):
        return (sizes > (z * np.exp(a + h * z**2 / 2.0))[:, None]).mean()

    z = LEVELS[0.99]
    assert share(*changed.T, z) == pytest.approx(0.01, abs=0.0004)
    assert share(*found.T, z) < 0.0097
    assert share(*changed.T, LEVELS[0.95]) == pytest.approx(0.05, abs=0.002)


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
@pytest.mark.parametrize(
    ("draw", "most"),
    [
        (lambda rng, size: rng.normal(size=size), 0.013),
        (lambda rng, size: rng.standard_t(4, size), 0.013),
        (lambda rng, size: np.where((z := rng.normal(size=size)) > 0.0, 2.0 * z, z), 0.013),
        (lambda rng, size: rng.exponential(size=size) - np.log(2.0), 0.013),
        (lambda rng, size: np.log(2.0) - rng.exponential(size=size), 0.013),
        (lambda rng, size: rng.lognormal(size=size) - 1.0, 0.016),
    ],
    ids=["normal", "heavy tails", "asymmetric", "exponential", "mirrored", "lognormal"],
)
def test_clean_scores_are_flagged_as_often_as_the_level_says(rng, draw, most, scale):
    panel = list(scale * draw(rng, (200, 200)))
    found = flagged(panel)
    assert 0.03 < found[0.95] < 0.065
    assert 0.007 < found[0.99] < most
    alone = [flagged([own]) for own in panel[:60]]
    assert 0.03 < np.mean([own[0.95] for own in alone]) < 0.065
    assert 0.007 < np.mean([own[0.99] for own in alone]) < most + 0.002


def test_each_side_has_its_own_threshold(rng):
    z = rng.normal(size=(50, 200))
    calibration = Calibration.of(list(np.where(z > 0.0, 3.0 * z, z)), np.zeros(50, bool))
    below, above = calibration.from_normal(2.0)
    np.testing.assert_allclose(np.median(above / below), 3.0, rtol=0.15)


def test_each_side_has_a_tail_of_its_own(rng):
    """Exponential above, uniform below: limits are quantiles up to 97.5 % of sizes."""
    scores = rng.exponential(size=(60, 400)) - np.log(2.0)
    found = Calibration.of(list(scores), np.zeros(60, bool))
    below, above = found.from_normal(LEVELS[0.95])
    assert np.median(above) == pytest.approx(-np.log(0.025) - np.log(2.0), rel=0.2)
    assert np.median(below) == pytest.approx(np.log(2.0) + np.log(0.975), rel=0.3)
    assert (found.heavy[1] > found.heavy[0] + 0.1).all()


def test_beyond_the_last_quantile_both_sides_have_the_same_tail():
    found = Calibration(np.array([[-0.2], [0.3]]), np.array([[-0.1], [0.3]]))
    (low, high), (below, above) = found.from_normal(_LAST - 1e-9), found.from_normal(_LAST)
    np.testing.assert_allclose([below, above], [low, high])  # without a step
    for z in (2.5, 3.0, 4.0):
        tail = z / _LAST * np.exp(0.1 * (z**2 - _LAST**2) / 2.0)
        np.testing.assert_allclose(found.from_normal(z), [tail * below, tail * above])


def test_anomalies_above_are_found_among_skewed_values(rng):
    scores = rng.exponential(size=(60, 400)) - np.log(2.0)
    scores[:, :4] += 6.0
    found = Calibration.of(list(scores), np.zeros(60, bool))
    owner = np.repeat(np.arange(60), 400)
    is_far = np.abs(found.to_normal(scores.ravel(), owner)).reshape(60, 400) > LEVELS[0.99]
    assert is_far[:, :4].mean() > 0.97
    assert 0.005 < is_far[:, 4:].mean() < 0.012


def test_values_spread_over_their_units_count_once(rng):
    """Five copies of each value are as sure as the values: the same limits."""
    scores = [rng.standard_t(5, 150) for _ in range(20)]
    once = Calibration.of(scores, np.zeros(20, bool))
    copies = Calibration.of([np.tile(own, (5, 1)) for own in scores], np.zeros(20, bool))
    for name in ("scale", "heavy"):  # but a value at the limit of those that count may move both
        apart = np.abs(getattr(copies, name) - getattr(once, name))
        assert np.quantile(apart, 0.9) < 0.03


def test_anomalies_hardly_move_the_thresholds(rng):
    clean = rng.normal(size=(50, 200))
    spoiled = clean.copy()
    spoiled[:, :4] = rng.choice([-1.0, 1.0], (50, 4)) * rng.uniform(8.0, 1e6, (50, 4))
    before, after = (
        Calibration.of(list(own), np.zeros(50, bool)).from_normal(2.575829)[1].mean()
        for own in (clean, spoiled)
    )
    assert before == pytest.approx(2.576, rel=0.06)
    assert after < 1.15 * before  # quantiles of 99 % of the spoiled scores would be 1e5


def test_a_short_series_is_drawn_to_the_panel(rng):
    panel = [2.0 * rng.normal(size=200) for _ in range(50)]
    short = 0.1 * rng.normal(size=4)
    nothing = np.empty(0)
    found = Calibration.of([*panel, short, nothing], np.zeros(52, bool))
    short, nothing = found.scale.mean(axis=0)[50:]
    assert (np.log(2.0) + np.log(0.1)) / 2.0 < short < np.log(2.0)
    assert nothing == pytest.approx(np.log(2.0), abs=0.1)


def test_zeros_of_sparse_series_say_nothing_about_the_scale(rng):
    sizes = 0.7 + np.abs(rng.normal(size=(60, 300)))
    scores = [own * (rng.uniform(size=300) < 0.3) for own in sizes]
    found = flagged(scores, sparse=True)
    assert 0.03 < found[0.95] < 0.07
    assert 0.006 < found[0.99] < 0.014


def test_the_order_of_series_does_not_matter(rng):
    scores = [rng.standard_t(3, n) for n in rng.integers(0, 200, 30)]
    sparse = rng.uniform(size=30) < 0.3
    order = rng.permutation(30)
    a = Calibration.of(scores, sparse)
    b = Calibration.of([scores[i] for i in order], sparse[order])
    for name in ("scale", "heavy"):
        np.testing.assert_allclose(
            getattr(b, name), getattr(a, name)[:, order], rtol=1e-12, atol=1e-14
        )


def test_heavy_tails_of_a_known_distribution_are_followed(rng):
    panel = list(rng.standard_t(3, (80, 300)))
    below, above = Calibration.of(panel, np.zeros(80, bool)).from_normal(LEVELS[0.99])
    expected = stats.t(3).ppf(0.995)
    assert np.median((below + above) / 2.0) == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize(("n", "low", "high"), [(12, 0.0, 0.013), (120, 0.007, 0.013)])
def test_shares_beyond_the_level_99_hold_in_panels_and_are_small_where_scores_are_few(n, low, high):
    rng = np.random.default_rng(n)
    shares = []
    for _ in range(5):
        scores = [rng.normal(size=n) for _ in range(200)]
        found = Calibration.of(scores, np.zeros(200, dtype=bool))
        normal = found.to_normal(np.concatenate(scores), np.repeat(np.arange(200), n))
        shares.append(np.mean(np.abs(normal) > stats.norm.ppf(0.995)))
    assert low <= np.mean(shares) <= high
