import numpy as np
from numpy.testing import assert_array_equal

from rbfdiffnet.models.stack.histories import Histories


def walk(rng, n, level=50.0):
    return level + rng.normal(size=n).cumsum()


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
