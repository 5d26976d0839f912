import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.models.stack.histories import Histories
from rbfdiffnet.models.stack.seasons import move_to_present_level
from rbfdiffnet.series.naive import naive_forecast, repeat_last_season
from stacks import frame


@pytest.mark.parametrize("h", [1, 5, 12, 30])
def test_it_is_the_naive_forecast(rng, h):
    series = [rng.normal(size=n) for n in (12, 13, 20, 31)]
    found = repeat_last_season(Histories.of(series, 12).values, h, 12)
    for row, y in zip(found, series, strict=True):
        expected = naive_forecast(y, np.array([y.size]), h, 12, n_seasons=1)[0]
        assert_array_equal(row, expected)


def test_levels_are_those_of_the_last_quarter(rng):
    positive, other, short = rng.uniform(1.0, 2.0, 20), rng.normal(size=20), rng.uniform(size=13)
    histories = Histories.of([positive, other, short], 12)
    repeated = repeat_last_season(histories.values, 4, 12)
    found = move_to_present_level(histories, repeated)
    ratio = positive[-3:].mean() / positive[5:8].mean()
    assert_allclose(found[0], ratio * repeated[0])
    assert_allclose(found[1], repeated[1] + other[-3:].mean() - other[5:8].mean())
    assert_array_equal(found[2], repeated[2])  # nothing is known of a season before


@pytest.mark.parametrize(("length", "there"), [(14, False), (15, True), (29, True), (30, False)])
def test_it_is_a_member_of_one_or_two_seasons(rng, length, there):
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
