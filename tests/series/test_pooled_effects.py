import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from rbfdiffnet.series import effects
from rbfdiffnet.series.effects import fit_effects, fit_pooled_effects


def holidays(n=400, every=100):
    """A switch for one day in so many."""
    return (np.arange(n) % every == every // 2).astype(float)


def make_panel(rng, gammas, X, noise=0.1, level=100.0):
    """Series with relative effects, shape (n_series, q), of shared inputs."""
    return [level * (1.0 + X @ g + noise * rng.normal(size=len(X))) for g in gammas]


def pooled(series, inputs):
    return fit_pooled_effects(series, inputs, season_length=7)[0]


def own_effects(series, X):
    everything = [np.ones(len(X), dtype=bool)]
    return [fit_effects([y], [X], everything, season_length=7).gamma for y in series]


def test_rare_effects_all_series_share_are_found_better_together(rng):
    X = holidays()[:, None]
    truth = 0.5 + 0.02 * rng.normal(size=(30, 1))
    series = make_panel(rng, truth, X)
    together = np.array([e.gamma for e in pooled(series, [X] * 30)])
    alone = np.array(own_effects(series, X))
    assert np.abs(together - truth).mean() < 0.5 * np.abs(alone - truth).mean()


def test_effects_that_differ_between_series_stay_their_own(rng):
    weekend = (np.arange(700) % 7 < 2).astype(float)
    X = np.column_stack([weekend, holidays(700)])
    truth = np.column_stack([rng.uniform(-0.6, 0.6, size=20), np.full(20, 0.4)])
    series = make_panel(rng, truth, X)
    found = np.array([e.gamma for e in pooled(series, [X] * 20)])
    assert_allclose(found[:, 0], np.array(own_effects(series, X))[:, 0], atol=0.03)
    assert np.ptp(found[:, 1]) < 0.1


def test_the_prior_is_that_of_greatest_likelihood(rng, monkeypatch):
    monkeypatch.setattr(effects, "_DEPENDENT", 1.0)
    monkeypatch.setattr(effects, "_PRIOR_SERIES", 0.0)
    monkeypatch.setattr(effects, "_FAR_APART", np.inf)
    monkeypatch.setattr(effects, "_ROUNDS", 300)
    n, rows, sd = 60, 40, 1.3
    Z = rng.normal(size=(n, rows))
    gamma = 2.0 + 0.7 * rng.normal(size=n)
    r = gamma[:, None] * Z + sd * rng.normal(size=(n, rows))
    evidence = [
        effects._Evidence(np.array([[z @ z]]), np.array([z @ v]), float(v @ v), rows)
        for z, v in zip(Z, r, strict=True)
    ]
    found = np.array([effects.find_prior(evidence, 1).shrink(e)[0][0] for e in evidence])

    def surprise(parameters):
        """Minus twice the logarithm of the likelihood, effects integrated out."""
        mean, log_tau, log_sd = parameters
        size = (Z**2).sum(axis=1)
        best = (Z * r).sum(axis=1) / size
        rest = ((r - best[:, None] * Z) ** 2).sum(axis=1)
        s2, t2 = np.exp(2 * log_sd), np.exp(2 * log_tau)
        spread = s2 / size + t2
        own = (best - mean) ** 2 / spread + np.log(spread) + rest / s2 + (rows - 1) * 2 * log_sd
        return own.sum()

    mean, log_tau, log_sd = minimize(surprise, [0.0, 0.0, 0.0], method="Nelder-Mead").x
    penalty = np.exp(2 * (log_sd - log_tau))
    size, moment = (Z**2).sum(axis=1), (Z * r).sum(axis=1)
    expected = (moment + penalty * mean) / (size + penalty)
    assert_allclose(found, expected, atol=0.03)


def test_scales_of_series_and_of_their_inputs_do_not_matter(rng):
    price = 5.0 + rng.normal(size=(400, 1))
    truth = np.full((6, 1), -0.1) + 0.02 * rng.normal(size=(6, 1))
    series = make_panel(rng, truth, price - 5.0)
    before = pooled(series, [price] * 6)
    larger = [series[0] * 1000.0, *series[1:]]
    dearer = [price, price * 50.0, *[price] * 4]
    after = pooled(larger, dearer)
    for k, (old, new) in enumerate(zip(before, after, strict=True)):
        assert_allclose(new.gamma * (50.0 if k == 1 else 1.0), old.gamma, rtol=1e-9)


def test_series_below_zero_have_effects_in_their_own_units(rng):
    X = holidays(every=20)[:, None]
    positive = make_panel(rng, np.full((5, 1), 0.5), X)
    mixed = [scale * (3.0 * X[:, 0] + rng.normal(size=400)) for scale in (1.0, 10.0, 100.0)]
    found = pooled([*positive, *mixed], [X] * 8)
    assert [e.relative for e in found] == [True] * 5 + [False] * 3
    assert_allclose([e.gamma[0] for e in found[5:]], [3.0, 30.0, 300.0], rtol=0.2)
    alone = pooled(positive, [X] * 5)
    assert_allclose([e.gamma for e in found[:5]], [e.gamma for e in alone], rtol=1e-12)


def test_gaps_outliers_and_inputs_that_never_change_do_no_harm(rng):
    X = np.column_stack([holidays(every=20), np.full(400, 7.0)])
    series = make_panel(rng, np.tile([0.5, 0.0], (6, 1)), X)
    before = pooled(series, [X] * 6)
    series[0][100:110] = np.nan
    series[1][205] = 1e6
    after = pooled(series, [X] * 6)
    for old, new in zip(before, after, strict=True):
        assert np.isfinite(new.gamma).all()
        assert_allclose(new.gamma, old.gamma, atol=0.05)


def test_many_series_follow_what_some_have_in_common(rng, monkeypatch):
    X = holidays()[:, None]
    series = make_panel(rng, np.full((40, 1), 0.5), X)
    everything = pooled(series, [X] * 40)
    monkeypatch.setattr(effects, "_MOST_SERIES", 20)
    some = pooled(series, [X] * 40)
    assert len(some) == 40
    assert_allclose([e.gamma for e in some], [e.gamma for e in everything], atol=0.05)


@pytest.mark.parametrize(("n", "q"), [(2, 1), (5, 0), (0, 0)])
def test_nothing_is_pooled_without_inputs_or_with_few_series(n, q, rng):
    series = [rng.normal(size=50) for _ in range(n)]
    inputs = [np.zeros((50, q))] * n
    assert pooled(series, inputs) is None


def test_a_quiet_series_does_not_keep_the_others_from_sharing(rng):
    X = holidays(every=40)[:, None]
    series = make_panel(rng, np.full((10, 1), 0.5), X, noise=0.15)
    quiet = 1000.0 + 1e-3 * rng.normal(size=400)
    found = pooled([*series, quiet], [X] * 11)
    shared, alone = [e.gamma[0] for e in found[:-1]], own_effects(series, X)
    assert np.ptp(shared) < 0.7 * np.ptp(alone)
    assert abs(found[-1].gamma[0]) < 0.05


def test_what_some_series_have_in_common_serves_others(rng):
    X = np.column_stack([holidays(), rng.normal(size=400)])
    series = make_panel(rng, np.full((40, 2), [0.5, 0.1]), X)
    series[30] -= 150.0  # sometimes negative: effects are no shares of its level
    some, common = fit_pooled_effects(series[:30], [X] * 30, season_length=7)
    again, same = fit_pooled_effects(series[:30], [X] * 30, season_length=7, common=common)
    for one, other in zip(some, again, strict=True):
        assert_allclose(one.gamma, other.gamma)
    assert same == common
    others, _ = fit_pooled_effects(series[30:], [X] * 10, season_length=7, common=common)
    found = np.array([e.gamma for e in others[1:]])
    alone = np.array(own_effects(series[31:], X))
    assert np.abs(found - [0.5, 0.1]).mean() < 0.7 * np.abs(alone - [0.5, 0.1]).mean()
    assert np.isfinite(others[0].gamma).all()
