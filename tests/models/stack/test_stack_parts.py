"""Histories, seasons, rows, least absolute errors and weights, each against another way."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog, minimize

from rbfdiffnet.models.stack.absolute import _NEAR, fit_least_absolute
from rbfdiffnet.models.stack.histories import Histories
from rbfdiffnet.models.stack.mixing import _FEW_ERRORS, _TOWARD_EQUAL, fit_weights
from rbfdiffnet.models.stack.rows import RowMaker, choose_lags
from rbfdiffnet.models.stack.seasons import Seasons


def walk(rng, n, level=50.0):
    return level + rng.normal(size=n).cumsum()


# Histories ----------------------------------------------------------------------------------------


def test_histories_end_in_the_last_column(rng):
    series = [walk(rng, n) for n in (5, 1, 9)]
    histories = Histories.of(series, season=4)
    assert_array_equal(histories.lengths, [5, 1, 9])
    assert_array_equal(histories.starts, [4, 8, 0])
    assert histories.usual_length == 5
    for row, y in zip(histories.values, series, strict=True):
        assert_array_equal(row[np.isfinite(row)], y)
        assert_array_equal(row[-y.size :], y)
    for row, y in zip(histories.fill_start(), series, strict=True):
        assert_array_equal(row, [y[0]] * (9 - y.size) + list(y))
    assert histories.with_values(-histories.values).season == 4


def test_a_series_with_a_zero_is_not_positive():
    series = [np.array([1.0, 2.0]), np.array([0.0, 1.0]), np.array([3.0]), np.array([-1.0, 2.0])]
    assert Histories.of(series, 1).positive.tolist() == [True, False, True, False]


# Seasons ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [4, 7, 12])
@pytest.mark.parametrize("multiplicative", [True, False])
def test_a_season_is_recovered_whatever_the_length(rng, m, multiplicative):
    true = rng.normal(scale=0.3, size=m)
    true -= true.mean()
    series = []
    for n in (10 * m, 8 * m + 3, 6 * m + 1):
        t = np.arange(-n, 0)
        if multiplicative:
            series.append(np.exp(3.0 + 0.01 * t + true[t % m]))
        else:
            series.append(0.01 * t + true[t % m])
    histories = Histories.of(series, m)
    seasons = Seasons.fit(histories)
    assert seasons.positive.tolist() == [multiplicative] * 3
    k = np.arange(m)  # the steps ahead, whose phases are k
    found = seasons.restore(np.full((3, m), 1.0))
    found = np.log(found) if multiplicative else found - 1.0
    assert_allclose(found, np.tile(true[k], (3, 1)), atol=1e-8)
    bare = seasons.remove(histories).values
    bare = np.log(bare) if multiplicative else bare
    assert_allclose(np.diff(bare)[np.isfinite(np.diff(bare))], 0.01, atol=1e-8)


def test_indices_are_means_around_a_moving_average_shrunk_by_chance(rng):
    m, n = 4, 30
    y = np.tile([1.0, -1.0, 2.0, -2.0], 8)[:n] + rng.normal(size=n)
    away = {phase: [] for phase in range(m)}
    for t in range(2, n - 2):
        around = (0.5 * y[t - 2] + y[t - 1 : t + 2].sum() + 0.5 * y[t + 2]) / m
        away[t % m].append(y[t] - around)
    means = np.array([np.mean(away[phase]) for phase in range(m)])
    within = sum(((np.array(v) - np.mean(v)) ** 2).sum() for v in away.values())
    free = sum(len(v) - 1 for v in away.values())
    chance = within / free / np.mean([len(v) for v in away.values()])
    means -= means.mean()
    share = 1.0 - (m - 3) / m * chance / np.mean(means**2)
    assert 0.0 < share < 1.0
    assert_allclose(Seasons.fit(Histories.of([y], m)).indices, [share * means], rtol=1e-12)


def test_noise_has_hardly_a_season(rng):
    m = 12
    noise = rng.normal(size=(300, 10 * m))
    indices = Seasons.fit(Histories.of(list(noise), m)).indices
    unshrunk = 1.0 / 9.0  # variance of a mean of nine or ten values
    assert (indices**2).mean() < 0.2 * unshrunk
    assert (indices == 0.0).all(axis=1).mean() > 0.2
    clear = noise + 3.0 * np.sin(2 * np.pi * np.arange(10 * m) / m)
    found = Seasons.fit(Histories.of(list(clear), m)).indices
    assert_allclose(found.mean(axis=0), 3.0 * np.sin(2 * np.pi * np.arange(m) / m), atol=0.15)


def test_series_without_three_seasons_have_none():
    long, short = np.tile([5.0, 1.0, 3.0, 9.0], 6), np.tile([5.0, 1.0, 3.0, 9.0], 2)
    seasons = Seasons.fit(Histories.of([long, short], 4))
    assert np.abs(seasons.indices[0]).min() > 0.0
    assert_array_equal(seasons.indices[1], 0.0)
    for histories in (Histories.of([short], 4), Histories.of([long], 1)):
        alone = Seasons.fit(histories)
        assert_array_equal(alone.indices, 0.0)
        assert_allclose(alone.remove(histories).values, histories.values)


def test_seasons_come_back(rng):
    values = np.exp(rng.normal(size=(5, 40)))
    values[3:] -= 1.0
    histories = Histories.of(list(values), 4)
    seasons = Seasons.fit(histories)
    bare = seasons.remove(histories).values
    assert_allclose(seasons.restore(bare), values)  # 40 steps are whole seasons


# Rows ---------------------------------------------------------------------------------------------


def exponential_mean(values, alpha):
    """Mean of a list of values, the latest of which counts alpha."""
    mean = values[0]
    for value in values[1:]:
        mean = (1.0 - alpha) * mean + alpha * value
    return mean


def row_by_hand(y, t, m, n_lags, h, n_long):
    """Base, unit, X, ahead and targets of one series at the origin t, value by value."""
    past = y[: t + 1]

    def at(s):
        return past[max(s, 0)]  # before its start a series repeats its first value

    def phase_mean(s, alpha):
        if s < 0:
            return past[0]
        return exponential_mean(past[s % m : s + 1 : m], alpha)

    lag = m if t >= m else 1
    unit = np.mean([abs(past[s] - past[s - lag]) for s in range(lag, t + 1)])
    base = past[t]
    X = [at(t - i) - base for i in range(1, n_lags)]
    X += [exponential_mean(past, alpha) - base for alpha in (0.01, 0.05, 0.15, 0.4)]
    X = [x / unit for x in X] + [np.clip(base / unit, -10.0, 10.0)]
    ahead = []
    long = {7: 364, 24: 168}.get(m, 0)
    for k in range(1, h + 1):
        inputs = []
        if m > 1:
            last = t + k
            while last > t:
                last -= m
            inputs += [(phase_mean(last, alpha) - base) / unit for alpha in (0.2, 0.5)]
        for j in range(n_long):
            turns = j + 1
            while t + k - turns * long > t - j * long:
                turns += 1
            then = t + k - turns * long
            level = exponential_mean(past[: max(t - (j + 1) * long, 0) + 1], 0.05)
            inputs.append((past[then] - level) / unit if then >= 0 else 0.0)
            if m == 7:
                then = t + k - round(turns * 365.25)
                usual = phase_mean(then - 7, 0.2)
                inputs.append((past[then] - usual) / unit if then >= 0 else 0.0)
        ahead.append(inputs)
    targets = [(y[t + k] - base) / unit if t + k < y.size else np.nan for k in range(1, h + 1)]
    return base, unit, X, ahead, targets


@pytest.mark.parametrize(
    ("m", "lengths", "n_lags", "h", "n_long"),
    [
        (1, (30, 12, 3), 5, 4, 0),
        (4, (40, 9, 23), 6, 6, 0),
        (12, (60, 40, 30), 3, 15, 0),
        (7, (4 * 364 + 3, 3 * 364 + 50, 1200), 15, 10, 1),
        (7, (5 * 364 + 100, 5 * 364 + 33, 500), 8, 380, 3),
        (24, (900, 850, 600), 25, 30, 3),
    ],
)
def test_rows_by_hand(rng, m, lengths, n_lags, h, n_long):
    series = [walk(rng, n) for n in lengths]
    histories = Histories.of(series, m)
    maker = RowMaker.of(histories, n_lags, h)
    assert maker.long_seasons == n_long
    T = max(lengths)
    for i, y in enumerate(series):
        for t in {1, y.size // 2, y.size - h - 1, y.size - 2, y.size - 1} & set(range(1, y.size)):
            rows = maker.cut(np.array([i]), np.array([T - y.size + t]))
            found = (rows.base[0], rows.unit[0], rows.X[0], rows.ahead[0], rows.targets[0])
            if n_long:
                assert rows.ahead.shape == (1, h, 2 + n_long * (2 if m == 7 else 1))
            for value, expected in zip(found, row_by_hand(y, t, m, n_lags, h, n_long), strict=True):
                expected = np.reshape(expected, np.shape(value))
                assert_allclose(value, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("m", "n", "h"), [(1, 40, 5), (12, 60, 14), (7, 1500, 20), (24, 760, 30)])
def test_no_value_after_the_origin_enters_a_row(rng, m, n, h):
    before = Histories.of([walk(rng, n), walk(rng, n - 9)], m)
    at = n - h - 3
    values = before.values.copy()
    values[:, at + 1 :] = 1e6 * rng.normal(size=(2, n - at - 1))
    cut = Histories(before.values[:, : at + 1], m)
    makers = [RowMaker.of(x, 6, h) for x in (before, before.with_values(values), cut)]
    rows = [maker.cut(np.arange(2), np.full(2, at)) for maker in makers]
    for name in ("base", "unit", "X", "ahead"):
        for other in rows[1:]:
            assert_allclose(getattr(rows[0], name), getattr(other, name), rtol=1e-12)
    assert not np.isclose(rows[0].targets, rows[1].targets).any()
    assert np.isnan(rows[2].targets).all()
    usable = [np.isfinite(maker.units[:, : at + 1]) for maker in makers]
    assert_array_equal(usable[0], usable[1])


def test_training_rows_have_a_target_and_all_their_lags(rng):
    histories = Histories.of([walk(rng, 30), walk(rng, 12), walk(rng, 5)], 4)
    rows = RowMaker.of(histories, 6, 3).training_rows(10_000)
    expected = [(0, t) for t in range(5, 29)] + [(1, t) for t in range(23, 29)]
    assert list(zip(rows.series, rows.at, strict=True)) == expected
    assert np.isfinite(rows.targets[:, 0]).all()
    for k in (1, 2):
        assert_array_equal(np.isfinite(rows.targets[:, k]), rows.at + k + 1 < 30)
    few = RowMaker.of(histories, 6, 3).training_rows(10)
    assert 8 <= len(few.at) <= 10
    assert set(zip(few.series, few.at, strict=True)) <= set(expected)


def test_series_that_never_changed_have_no_rows():
    still, later = np.full(20, 3.0), np.r_[np.full(15, 3.0), [4.0, 5.0, 4.0, 6.0, 5.0]]
    maker = RowMaker.of(Histories.of([still, later], 1), 3, 2)
    assert set(maker.training_rows(100).series) == {1}
    assert maker.training_rows(100).at.min() == 15
    assert maker.latest_rows().series.tolist() == [1]


def test_usual_lags():
    def lags(m, n, n_series=1):
        return choose_lags(Histories.of([np.arange(float(n))] * n_series, m))

    assert [lags(m, 10_000) for m in (1, 4, 7, 12, 24, 52)] == [12, 32, 56, 36, 169, 110]
    assert [lags(12, n, 3) for n in (1, 2, 9, 40)] == [1, 1, 4, 20]
    assert [lags(12, n) for n in (1, 9, 40, 120)] == [1, 1, 6, 20]


# Least absolute errors ----------------------------------------------------------------------------


def by_linear_program(X, y, weight):
    """Least absolute errors, exactly."""
    n, p = X.shape
    cost = np.r_[np.zeros(p), weight, weight]
    equal = np.c_[X, np.eye(n), -np.eye(n)]
    bounds = [(None, None)] * p + [(0.0, None)] * (2 * n)
    return linprog(cost, A_eq=equal, b_eq=y, bounds=bounds).x[:p]


def noisy_problem(rng, n=80, p=3):
    X = np.c_[rng.normal(size=(n, p - 1)), np.ones(n)]
    return X, X @ rng.normal(size=p) + rng.standard_t(2, size=n), rng.uniform(0.2, 2.0, n)


@pytest.mark.parametrize("seed", range(6))
def test_least_absolute_comes_close_to_a_linear_program(seed):
    X, y, weight = noisy_problem(np.random.default_rng(seed))
    exact = by_linear_program(X, y, weight)

    def loss(b):
        return weight @ np.abs(y - X @ b)

    squares = fit_least_absolute(X, y, weight, np.zeros(3), steps=0)
    losses = [
        loss(b) / loss(exact)
        for b in (
            squares,
            fit_least_absolute(X, y, weight, np.zeros(3)),
            fit_least_absolute(X, y, weight, np.zeros(3), steps=60),
        )
    ]
    assert 1.0 - 1e-9 <= losses[2] < 1.003
    assert losses[1] < 1.03
    assert losses[1] <= losses[0]


def test_no_reweighted_solve_leaves_ridge_regression(rng):
    X, y, weight = noisy_problem(rng)
    penalty = np.array([0.3, 0.1, 0.0])
    rooted = np.sqrt(weight)[:, None] * X
    more = np.diag(np.sqrt(weight.sum() * penalty))
    expected = np.linalg.lstsq(np.r_[rooted, more], np.r_[np.sqrt(weight) * y, np.zeros(3)])[0]
    found = fit_least_absolute(X, y, weight, penalty, steps=0)
    assert_allclose(found, expected, rtol=1e-7)


def test_many_solves_minimize_the_penalized_loss(rng):
    X, y, weight = noisy_problem(rng)
    penalty = np.array([0.3, 0.1, 0.0])
    found = fit_least_absolute(X, y, weight, penalty, steps=500)
    away = np.abs(y - X @ found)
    near = _NEAR * np.median(away)
    size = weight.sum() / (weight / np.maximum(away, near)).sum()

    def loss(b):
        r = np.abs(y - X @ b)
        bent = np.where(r > near, r - near / 2, r**2 / (2 * near))
        return weight @ bent + weight.sum() / (2 * size) * penalty @ b**2

    best = minimize(loss, found + 0.1, method="BFGS", options={"gtol": 1e-9})
    assert_allclose(found, best.x, atol=1e-4)


def test_least_absolute_follows_the_units_of_the_targets(rng):
    X, y, weight = noisy_problem(rng)
    penalty = np.array([0.3, 0.1, 0.0])
    once = fit_least_absolute(X, y, weight, penalty)
    assert_allclose(fit_least_absolute(X, 1e6 * y, 7.0 * weight, penalty), 1e6 * once, rtol=1e-9)
    assert_allclose(fit_least_absolute(X, 0.0 * y, weight, penalty), 0.0, atol=1e-12)
    twice = fit_least_absolute(np.r_[X, X], np.r_[y, y], np.r_[weight, weight], penalty)
    assert_allclose(twice, once, rtol=1e-9)


# Weights ------------------------------------------------------------------------------------------


def mixing_loss(v, errors, squared):
    mixed = np.abs(v @ errors) / np.abs(errors).mean()
    toward = ((v - 1.0 / len(v)) ** 2).sum()
    pull = max(_TOWARD_EQUAL, _FEW_ERRORS / mixed.size)
    return (mixed**2 if squared else mixed).mean() + pull * toward


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("n_members", [2, 3])
@pytest.mark.parametrize(("seed", "n"), [(0, 400), (1, 3_000), (2, 400), (3, 3_000)])
def test_weights_are_the_best_of_a_fine_grid(n_members, seed, n, squared):
    rng = np.random.default_rng(seed)
    errors = rng.normal(size=(n_members, n)) * rng.uniform(0.5, 3.0, (n_members, 1))
    errors += rng.normal(size=n) + rng.normal(size=(n_members, 1))
    steps = np.linspace(0.0, 1.0, 101)
    grid = [
        np.array([*v, 1.0 - sum(v)])
        for v in itertools.product(steps, repeat=n_members - 1)
        if sum(v) <= 1.0 + 1e-9
    ]
    losses = [mixing_loss(v, errors, squared) for v in grid]
    found = fit_weights(errors, squared=squared)
    assert_allclose(found.sum(), 1.0)
    assert found.min() >= 0.0
    assert mixing_loss(found, errors, squared) <= min(losses) + 1e-4
    assert_allclose(found, grid[int(np.argmin(losses))], atol=0.03)


def test_weights_do_not_depend_on_units_and_order(rng):
    errors = rng.normal(size=(4, 300)) * np.array([[1.0], [2.0], [3.0], [1.5]])
    found = fit_weights(errors)
    assert_allclose(fit_weights(1e6 * errors), found, atol=1e-4)
    assert_allclose(fit_weights(errors[::-1]), found[::-1], atol=1e-3)


def test_weights_are_equal_where_nothing_tells_members_apart():
    same = np.random.default_rng(0).normal(size=50)
    for errors in (np.zeros((3, 20)), np.empty((3, 0)), np.tile(same, (3, 1))):
        assert_allclose(fit_weights(errors), 1 / 3)
    assert_array_equal(fit_weights(same[None]), 1.0)


def test_few_errors_say_little(rng):
    errors = rng.normal(size=(2, 5_000)) * [[1.0], [2.0]]
    better = [fit_weights(errors[:, :n])[0] for n in (10, 100, 5_000)]
    assert 0.5 < better[0] < 0.6 < better[1] < better[2]
