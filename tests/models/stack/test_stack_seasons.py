import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.models.stack.histories import Histories, Seasons, move_to_present_level
from rbfdiffnet.series.naive import naive_forecast, repeat_last_season
from stacks import frame


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


# The last season, repeated


@pytest.mark.parametrize("h", [1, 5, 12, 30])
def test_the_last_season_is_the_naive_forecast(rng, h):
    series = [rng.normal(size=n) for n in (12, 13, 20, 31)]
    found = repeat_last_season(Histories.of(series, 12).values, h, 12)
    for row, y in zip(found, series, strict=True):
        expected = naive_forecast(y, np.array([y.size]), h, 12, n_seasons=1)[0]
        assert_array_equal(row, expected)


def test_levels_of_a_repeated_season_are_those_of_the_last_quarter(rng):
    positive, other, short = rng.uniform(1.0, 2.0, 20), rng.normal(size=20), rng.uniform(size=13)
    histories = Histories.of([positive, other, short], 12)
    repeated = repeat_last_season(histories.values, 4, 12)
    found = move_to_present_level(histories, repeated)
    ratio = positive[-3:].mean() / positive[5:8].mean()
    assert_allclose(found[0], ratio * repeated[0])
    assert_allclose(found[1], repeated[1] + other[-3:].mean() - other[5:8].mean())
    assert_array_equal(found[2], repeated[2])  # nothing is known of a season before


@pytest.mark.parametrize(("length", "there"), [(16, False), (17, True), (29, True), (30, False)])
def test_the_last_season_is_a_member_for_one_or_two_seasons(rng, length, there):
    series = {f"s{i}": rng.uniform(1.0, 2.0, length) for i in range(5)}
    model = RBFDiffNet("D", season_length=12).fit(frame(series, freq="D"))
    names = set(model.explain(3)["term"])
    assert ("last season" in names) == ("last season, grown" in names) == there


def test_yearly_swings_are_forecast_from_less_than_two_years(rng):
    t = np.arange(98)
    swing = 100.0 * np.sin(2 * np.pi * t / 52)
    series = {f"s{i}": 300.0 + swing + 10.0 * rng.normal(size=98) for i in range(8)}
    seen = frame({name: y[:90] for name, y in series.items()}, freq="W")
    found = RBFDiffNet("W").forecast(seen, 8)["RBFDiffNet"].to_numpy()
    error = np.abs(found.reshape(8, 8) - [y[90:] for y in series.values()]).mean()
    assert error < 20.0
