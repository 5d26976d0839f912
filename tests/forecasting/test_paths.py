"""Sample paths have the margins that were forecast, and go on as errors did."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from scipy.special import ndtr, ndtri

from rbfdiffnet.forecasting import paths as paths_module
from rbfdiffnet.forecasting.paths import (
    _SHARES,
    GRID,
    Dependence,
    _find_likelihood,
    _find_shocks,
    find_dependence,
    find_lasting_share,
    find_means,
    seeds_of,
)
from rbfdiffnet.forecasting.together import Likeness


def normal_quantiles(widths):
    """Quantiles (n, h, P) of normal variables with standard deviations (n, h)."""
    return np.asarray(widths)[:, :, None] * GRID


def errors_of(rng, stays, fades, n, h):
    """Errors (n, h) by the definition: shocks, of which a share stays and fades."""
    shocks, found = rng.normal(size=(n, h)), np.empty((n, h))
    for k in range(h):
        found[:, k] = shocks[:, k]
        for j in range(k):
            found[:, k] += stays * fades ** (k - 1 - j) * shocks[:, j]
    return found


def width(stays, fades, h):
    """Standard deviations (h,) of such errors."""
    squares = [1.0 + stays**2 * sum(fades ** (2 * j) for j in range(k)) for k in range(h)]
    return np.sqrt(squares)


def correlation(stays, fades, h):
    """The mean correlation of two different steps of such errors."""
    weights = np.eye(h) + [
        [stays * fades ** (k - 1 - j) if j < k else 0.0 for j in range(h)] for k in range(h)
    ]
    cover = weights @ weights.T / np.outer(width(stays, fades, h), width(stays, fades, h))
    return (cover.sum() - h) / (h * (h - 1))


def mean_of_paths(paths):
    """The mean correlation of two different steps of paths (h, n_paths)."""
    h = len(paths)
    return (np.corrcoef(paths).sum() - h) / (h * (h - 1))


def test_every_step_has_the_quantiles_that_were_forecast(rng):
    quantiles = np.cumsum(rng.exponential(size=(3, 5, GRID.size)), axis=2)
    dependence = Dependence(np.full((3, 1), 0.5), np.full(3, 0.9), None, seeds_of("abc"))
    paths = dependence.draw(quantiles, 1000, seed=0)
    for p, z in ((0.1, -1.2815515655), (0.5, 0.0), (0.95, 1.644853627)):
        expected = [[np.interp(z, GRID, own) for own in series] for series in quantiles]
        assert_allclose(np.quantile(paths, p, axis=2), expected, rtol=0.03)


def test_latin_hypercube_puts_one_path_between_any_two_neighbors():
    paths = Dependence(np.ones((1, 1)), np.ones(1), None, [7]).draw(
        normal_quantiles(np.ones((1, 4))), 50, seed=3
    )
    assert_array_equal(np.sort((ndtr(paths) * 50).astype(int), axis=2)[0], [range(50)] * 4)


@pytest.mark.parametrize(("stays", "fades"), [(0.0, 1.0), (0.4, 1.0), (1.0, 1.0), (0.7, 0.7)])
def test_paths_are_correlated_like_the_errors_they_stand_for(rng, stays, fades):
    h = 6
    quantiles = normal_quantiles([width(stays, fades, h)])
    drawn = Dependence(np.array([[stays]]), np.array([fades]), None, [1])
    paths = drawn.draw(quantiles, 20_000, seed=0)[0]
    errors = errors_of(rng, stays, fades, 20_000, h).T
    assert_allclose(np.corrcoef(paths), np.corrcoef(errors), atol=0.04)
    assert_allclose(paths.sum(axis=0).std(), errors.sum(axis=0).std(), rtol=0.03)
    assert_allclose(mean_of_paths(paths), correlation(stays, fades, h), atol=0.02)


def test_of_a_newcomer_the_levels_of_its_peers_last(rng):
    """Peers that are apart keep their order; of those that are alike nothing lasts."""
    noise, counts = normal_quantiles(np.ones((40, 6))), np.ones((40, 6), dtype=bool)
    levels = rng.normal(size=(40, 1, 1))
    assert find_lasting_share(noise, counts) == 0.0
    assert find_lasting_share(0.0 * noise, counts) == 0.0
    assert find_lasting_share(noise + 1e3 * levels, counts) == pytest.approx(1.0, abs=1e-4)
    assert find_lasting_share(1e300 * (noise + 1e3 * levels), counts) > 0.999
    assert find_lasting_share(noise + levels / levels.std(), counts) == pytest.approx(0.5)
    turns = np.cos(np.pi * (np.arange(6) + np.arange(40)[:, None]))[:, :, None]  # sums are 0
    assert find_lasting_share(noise + 5.0 * turns, counts) == pytest.approx(0.0, abs=1e-12)
    some = counts & (np.arange(6) < 3)
    some[:20] = True
    assert find_lasting_share(noise + levels / levels.std(), some) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_levels_that_last_correlate_all_steps_alike(share):
    stays, fades, seeds = np.zeros((2, 1)), np.ones(2), seeds_of("ab")
    dependence = Dependence(stays, fades, None, seeds, lasting={1: share})
    quantiles = normal_quantiles(np.ones((2, 5)))
    plain, found = dependence.draw(quantiles, 4_000, seed=0)
    assert abs(mean_of_paths(plain)) < 0.02
    assert mean_of_paths(found) == pytest.approx(share, abs=0.03)
    assert_array_equal(dependence.draw(quantiles[1:], 4_000, seed=0, first=1)[0], found)


@pytest.mark.parametrize(("stays", "fades"), [(0.4, 1.0), (1.0, 1.0), (0.7, 0.7)])
def test_what_stays_is_read_off_the_widths(stays, fades):
    """Squares of widths grow by the mean square of what may stay."""
    quantiles = normal_quantiles([width(stays, fades, 12)])
    found = find_dependence(quantiles, [np.empty((0, 12))], [1])
    assert_allclose(np.sqrt((found.stays**2).mean()), stays, rtol=0.06)
    assert_allclose(found.fades, fades)


def test_little_may_stay_for_certain_or_much_seldom(rng):
    """Without errors both are possible. Errors that were apart, or went together, tell which."""
    quantiles = normal_quantiles([width(0.3, 1.0, 12)])
    errors = {
        "none": np.empty((0, 12)),
        "apart": rng.normal(size=(6, 12)),
        "together": errors_of(rng, 0.3, 1.0, 200, 12),
    }
    found = {name: find_dependence(quantiles, [own], [1]).stays for name, own in errors.items()}
    assert found["none"].min() < 0.05
    assert found["none"].max() > 0.6
    assert found["apart"].mean() < 0.6 * found["none"].mean()
    assert_allclose(found["together"], 0.3, atol=0.15)


def test_series_of_a_mixed_panel_keep_their_own_dependence(rng):
    """Half are walks and half are noise, and the quantiles of all spread the same."""
    walks = [errors_of(rng, 1.0, 1.0, 5, 12) / width(1.0, 1.0, 12) for _ in range(20)]
    errors = [*walks, *rng.normal(size=(20, 5, 12))]
    quantiles = normal_quantiles(np.tile(width(0.5, 1.0, 12), (40, 1)))
    found = find_dependence(quantiles, errors, seeds_of(range(40)))
    paths = found.draw(quantiles, 500, seed=0)
    own = np.array([mean_of_paths(series) for series in paths])
    assert own[:20].mean() > correlation(0.8, 1.0, 12)
    assert own[20:].mean() < correlation(0.2, 1.0, 12)


def test_errors_of_zeros_do_not_tell_what_stays(rng):
    """Rows of equal errors look like new levels; in a series that is often zero they are none."""
    quantiles = normal_quantiles(np.tile(width(0.3, 1.0, 12), (2, 1)))
    errors, sparse = [np.full((3, 12), -0.3), rng.normal(size=(3, 12))], np.array([True, False])
    found = find_dependence(quantiles, errors, [1, 2], sparse=sparse)
    other = find_dependence(quantiles, [np.empty((0, 12)), errors[1]], [1, 2], sparse=sparse)
    assert_array_equal(found.stays[0], other.stays[0])
    assert np.ptp(found.stays[0]) == 0.0 < np.ptp(found.stays[1])
    misled = find_dependence(quantiles, errors, [1, 2]).stays
    assert misled[0].mean() > 1.5 * found.stays[0].mean()


def test_what_stays_at_least_is_learned_from_the_panel(rng):
    """Widths do not grow, and all errors go together a little: so do those of a series without."""
    quantiles = normal_quantiles(np.ones((101, 12)))
    errors = [own / width(0.2, 1.0, 12) for own in np.split(errors_of(rng, 0.2, 1.0, 200, 12), 100)]
    with_errors = find_dependence(quantiles, [*errors, np.empty((0, 12))], seeds_of(range(101)))
    without = find_dependence(quantiles, [np.empty((0, 12))] * 101, seeds_of(range(101)))
    assert np.sqrt((with_errors.stays[-1] ** 2).mean()) == pytest.approx(0.2, abs=0.06)
    assert without.stays[-1].mean() < 0.05


def test_errors_correct_what_the_widths_say(rng):
    """Widths do not grow, but errors were those of a walk; and the other way round."""
    flat, steep = np.ones((50, 8)), np.tile(width(1.0, 1.0, 8), (50, 1))
    walks = [np.cumsum(rng.normal(size=(20, 8)), axis=1) for _ in range(50)]
    noise = [rng.normal(size=(20, 8)) for _ in range(50)]
    for widths, errors, expected in ((flat, walks, 1.0), (steep, noise, 0.0)):
        quantiles = normal_quantiles(widths)
        found = find_dependence(quantiles, errors, range(1, 51))
        own = [mean_of_paths(series) for series in found.draw(quantiles, 500, seed=0)]
        assert_allclose(np.mean(own), correlation(expected, 1.0, 8), atol=0.08)


def alike(n, shared):
    """Series of one group, whose shocks share so much of their variance."""
    ties = sparse.csr_array(np.full((n, 1), shared**0.5))
    return Likeness(np.zeros((n, 0)), ties, np.full(n, 1.0 - shared))


def mixed(n, likeness=None):
    """Series in which a shock is gone, or stays for good, with the same probability."""
    return Dependence(np.tile([0.0, 1.0], (n, 1)), np.ones(n), likeness, seeds_of(range(n)))


def test_paths_are_as_alike_as_series_were_surprised_together(rng):
    """Twins, a mirror and groups: correlations of paths are those of shocks, by brute force."""
    n, days = 12, 200
    known = rng.normal(size=(n, days)) + np.repeat(rng.normal(size=(3, days)), 4, axis=0)
    known[1], known[2] = known[0], -known[0]
    codes = np.stack([np.zeros(n, dtype=int), np.arange(n) // 4])
    quantiles = normal_quantiles(np.ones((n, 5)))
    errors = [rng.normal(size=(2, 5)) for _ in range(n)]
    together = known, codes
    found = find_dependence(quantiles, errors, seeds_of(range(n)), together=together)
    loads, ties = found.likeness.loads, found.likeness.ties.toarray()
    expected = loads @ loads.T + ties @ ties.T + np.diag(found.likeness.alone)
    paths = found.draw(quantiles, 20_000, seed=0)
    for step in (0, 4):
        assert_allclose(np.corrcoef(paths[:, step]), expected, atol=0.04)
    assert np.corrcoef(paths[:3, 0])[0] == pytest.approx([1.0, 1.0, -1.0], abs=0.06)
    assert find_dependence(quantiles, errors, seeds_of(range(n))).likeness is None


def test_series_remain_alike_where_what_stays_differs_between_paths(rng):
    """A path is noise in all series, or a walk in all; the truth is drawn by the definition."""
    n, h, m = 20, 12, 4000
    quantiles = normal_quantiles(np.ones((n, h)))
    paths = mixed(n, alike(n, 0.6)).draw(quantiles, m, seed=0)
    last = np.corrcoef(paths[:, -1])[np.triu_indices(n, 1)]
    assert last.mean() == pytest.approx(0.6, abs=0.04)
    common, own = rng.normal(size=(h, m)), rng.normal(size=(n, h, m))
    shocks = np.sqrt(0.6) * common + np.sqrt(0.4) * own
    z = np.where(np.arange(m) < m // 2, shocks, np.cumsum(shocks, axis=1))
    truth = np.argsort(np.argsort(z, axis=2), axis=2)
    truth = ndtri((truth + 0.5) / m).sum(axis=(0, 1)).std()
    assert paths.sum(axis=(0, 1)).std() == pytest.approx(truth, rel=0.03)


def test_series_that_are_drawn_together_do_not_depend_on_chunks(rng):
    quantiles = np.cumsum(rng.exponential(size=(4, 3, GRID.size)), axis=2)
    found = mixed(4, alike(4, 0.5))
    whole = found.draw(quantiles, 20, 5)
    for common in (None, found.draw_common(3, 20, 5)):
        assert_array_equal(found.draw(quantiles[2:], 20, 5, 2, common), whole[2:])


def test_errors_of_inputs_are_independent_from_step_to_step(rng):
    """Walks plus inputs: paths have the wider quantiles, and sums the variances of both."""
    h, m, std = 8, 20_000, 3.0
    walk = Dependence(np.ones((1, 1)), np.ones(1), None, [1])
    sure = normal_quantiles([width(1.0, 1.0, h)])
    paths = walk.draw(sure, m, seed=0)
    wide = normal_quantiles([np.hypot(width(1.0, 1.0, h), std)])
    found = walk.add_errors(paths, np.full((1, h), std), wide, seed=0)
    assert_allclose(np.quantile(found, 0.9, axis=2), wide[:, :, GRID.searchsorted(1.28)], rtol=0.01)
    truth = np.cumsum(rng.normal(size=(h, m)), axis=0) + rng.normal(0.0, std, size=(h, m))
    assert_allclose(np.corrcoef(found[0]), np.corrcoef(truth), atol=0.03)
    added = found[0].sum(axis=0).var() - paths[0].sum(axis=0).var()
    assert np.sqrt(added) == pytest.approx(std * h**0.5, rel=0.05)


def test_every_path_draws_what_stays():
    """Half of the paths are noise and half are walks, which the mean share would not be."""
    paths = mixed(1).draw(normal_quantiles(np.ones((1, 12))), 4000, seed=0)[0]
    mean = Dependence(np.array([[0.5]]), np.ones(1), None, [1])
    one = mean.draw(normal_quantiles(np.ones((1, 12))), 4000, seed=0)[0]
    rough, even = (np.abs(np.diff(own, axis=0)).mean(axis=0) for own in (paths, one))
    assert rough.std() > 1.3 * even.std()


@pytest.mark.parametrize("n_paths", [1, 2, 10])
@pytest.mark.parametrize("joint", [False, True])
def test_few_paths_have_shares_like_many(monkeypatch, n_paths, joint):
    used = []
    monkeypatch.setattr(
        paths_module, "_accumulate", lambda z, stays, _fades: [used.append(stays), z][1]
    )
    shares = np.linspace(0.0, 1.0, 32)[None] ** 3
    dependence = Dependence(shares, np.ones(1), alike(1, 0.5) if joint else None, [1])
    for seed in range(4000 // n_paths):
        dependence.draw(np.zeros((1, 1, GRID.size)), n_paths, seed)
    assert np.mean(used) == pytest.approx(shares.mean(), abs=0.02)
    assert np.mean(np.square(used)) == pytest.approx(np.mean(shares**2), abs=0.02)


def multivariate_likelihood(scores, stays, fades):
    """Log likelihood of windows (m, h): normal, over an inverse gamma variance, by a sum."""
    h = scores.shape[1]
    weights = np.eye(h) + [
        [stays * fades ** (k - 1 - j) if j < k else 0.0 for j in range(h)] for k in range(h)
    ]
    cover = weights @ weights.T / np.outer(width(stays, fades, h), width(stays, fades, h))
    logs = np.linspace(-5.0, 5.0, 401)
    found = stats.invgamma(2.0, scale=2.0).logpdf(np.exp(logs)) + logs
    for own in scores:
        known = np.isfinite(own)
        cut = cover[np.ix_(known, known)]
        found += [stats.multivariate_normal(cov=np.exp(v) * cut).logpdf(own[known]) for v in logs]
    return np.logaddexp.reduce(found)


@pytest.mark.parametrize("last", [8, 5])
def test_likelihood_is_that_of_normal_windows_with_an_unknown_variance(rng, last):
    """Also where the end of a window is unknown."""
    scores = rng.normal(size=(2, 8))
    scores[0, last:] = np.nan
    at = [0, 8, 16, 24, 31]
    found = np.log(_find_likelihood(np.array([0.9]), [scores])[0])[at]
    expected = np.array([multivariate_likelihood(scores, _SHARES[j], 0.9) for j in at])
    assert_allclose(found - found[0], expected - expected[0], atol=1e-6)


def test_paths_of_a_series_depend_on_neither_its_place_nor_its_neighbors(rng):
    quantiles = np.cumsum(rng.exponential(size=(4, 3, GRID.size)), axis=2)
    names = ["a", "b", "c", "d"]
    whole = Dependence(np.full((4, 1), 0.3), np.ones(4), None, seeds_of(names)).draw(
        quantiles, 20, 5
    )
    turned = Dependence(np.full((4, 1), 0.3), np.ones(4), None, seeds_of(names[::-1]))
    assert_array_equal(turned.draw(quantiles[::-1], 20, 5)[::-1], whole)
    part = Dependence(np.full((4, 1), 0.3), np.ones(4), None, seeds_of(names))
    assert_array_equal(part.draw(quantiles[2:], 20, 5, first=2), whole[2:])


@pytest.mark.parametrize(("stays", "fades"), [(0.0, 1.0), (0.4, 0.9), (1.0, 1.0)])
def test_shocks_are_those_that_made_the_errors(stays, fades):
    """The errors are made by the definition, one shock after the other."""
    errors = errors_of(np.random.default_rng(1), stays, fades, 7, 5)
    shocks = np.random.default_rng(1).normal(size=(7, 5))
    scores = [*np.split(errors / width(stays, fades, 5), [3]), np.empty((0, 5))]
    found = _find_shocks(scores, np.full(3, stays), np.full(3, fades), [1, 2, 0])
    expected = np.concatenate([shocks[3:], shocks[:3]])
    assert_allclose(found[:7], expected)
    assert np.isnan(found[7:]).all()


def test_rare_new_levels_stay_rare_in_sums(rng):
    """One path of ten finds a new level; sums have two parts, which no normal shocks have."""

    def draw(n):
        jump = (rng.random((n, 1)) < 0.1) * rng.normal(0.0, 5.0, size=(n, 1))
        return jump * (np.arange(12) >= rng.integers(12, size=(n, 1))) + rng.normal(size=(n, 12))

    quantiles = np.quantile(draw(200_000), ndtr(GRID), axis=0).T[None]
    errors, truth = [*draw(600).reshape(300, 2, 12)], draw(200_000).sum(axis=1)
    found = find_dependence(np.repeat(quantiles, 300, axis=0), errors, seeds_of(range(300)))
    normal = Dependence(found.stays, found.fades, None, found.seeds)
    middle, most = np.quantile(np.abs(truth), [0.5, 0.95])
    sums = np.abs(found.draw(quantiles, 20_000, seed=0).sum(axis=1))
    assert np.mean(sums < middle) == pytest.approx(0.5, abs=0.06)
    assert np.mean(sums < most) == pytest.approx(0.95, abs=0.02)
    assert np.mean(np.abs(normal.draw(quantiles, 20_000, seed=0).sum(axis=1)) < middle) < 0.4


def test_a_wild_series_does_not_move_the_sums_of_others(rng):
    quantiles, seeds = normal_quantiles(np.ones((11, 12))), seeds_of(range(11))
    errors = [rng.normal(size=(2, 12)) for _ in range(11)]
    alone = find_dependence(quantiles, [*errors[:10], np.empty((0, 12))], seeds)
    beside = find_dependence(quantiles, [*errors[:10], np.full((2, 12), 100.0)], seeds)
    assert_array_equal(beside.draw(quantiles, 50, seed=0), alone.draw(quantiles, 50, seed=0))


def test_errors_of_zero_are_known_errors():
    """Four windows of five were just as forecast: shocks of zero stay as common as they were."""
    errors = [np.where(np.arange(100)[:, None] % 5 == 0, 2.0, np.zeros((100, 6)))]
    found = find_dependence(normal_quantiles(np.ones((1, 6))), errors, [1])
    known = found.seen[np.isfinite(found.seen).all(axis=1)]
    assert len(known) == 100
    assert np.mean(known[:, 0] == 0.0) == pytest.approx(0.8)


def test_few_windows_are_mixed_with_normal_shocks(rng):
    quantiles = normal_quantiles(np.ones((1, 6)))
    found = find_dependence(quantiles, [rng.normal(size=(5, 6))], [1])
    assert np.isnan(found.seen).all(axis=1).mean() == pytest.approx(0.8)
    mostly_unknown = np.where(np.arange(6) < 2, 1.0, np.nan)
    none = find_dependence(quantiles, [np.tile(mostly_unknown, (5, 1))], [1])
    assert np.isnan(none.seen).all()


def test_windows_may_be_shorter_than_paths_and_have_gaps(rng):
    errors = [np.cumsum(rng.normal(size=(30, 4)), axis=1) for _ in range(20)]
    for own in errors:
        own[::3, 1] = np.nan
    quantiles = normal_quantiles(np.tile(width(1.0, 1.0, 10), (20, 1)))
    found = find_dependence(quantiles, errors, seeds_of(range(20)))
    paths = found.draw(quantiles, 4000, seed=0)[0]
    walks = np.cumsum(rng.normal(size=(10, 4000)), axis=0)
    assert_allclose(np.corrcoef(paths), np.corrcoef(walks), atol=0.12)


def test_what_was_seen_depends_on_no_order(rng):
    quantiles = normal_quantiles(np.tile(width(0.5, 0.9, 6), (5, 1)))
    errors, seeds = [rng.normal(size=(3, 6)) for _ in range(5)], seeds_of("abcde")
    found = find_dependence(quantiles, errors, seeds)
    turned = find_dependence(quantiles, errors[::-1], seeds[::-1])
    assert_array_equal(turned.stays[::-1], found.stays)
    assert_array_equal(turned.seen, found.seen)
    paths = turned.draw(quantiles, 20, seed=0)[::-1]
    assert_array_equal(paths, found.draw(quantiles, 20, seed=0))


def test_no_width_and_no_series():
    dependence = find_dependence(np.zeros((1, 4, GRID.size)), [np.full((2, 4), np.nan)], [1])
    assert_array_equal(dependence.draw(np.zeros((1, 4, GRID.size)), 3, 0), np.zeros((1, 4, 3)))
    none = find_dependence(
        np.empty((0, 4, GRID.size)),
        [],
        [],
        together=(np.empty((0, 0)), np.empty((1, 0), int)),
    )
    assert none.draw(np.empty((0, 4, GRID.size)), 3, 0).shape == (0, 4, 3)


def test_means_are_those_of_values_between_the_quantiles(rng):
    quantiles = np.sort(rng.lognormal(size=(2, 3, GRID.size)), axis=2)
    scores = ndtri((np.arange(200_000) + 0.5) / 200_000)
    expected = [[np.interp(scores, GRID, own).mean() for own in rows] for rows in quantiles]
    assert_allclose(find_means(quantiles), expected, rtol=1e-5)
    assert_allclose(find_means(normal_quantiles([[1.0, 2.0]]) + 3.0), 3.0)
