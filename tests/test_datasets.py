import numpy as np
import pandas as pd
import pytest

from rbfdiffnet.datasets import load_air_passengers, logistic_map


def test_air_passengers_is_series_g():
    frame = load_air_passengers()
    assert frame.columns.tolist() == ["unique_id", "ds", "y"]
    assert frame["unique_id"].unique().tolist() == ["air_passengers"]
    assert frame["ds"].tolist() == pd.date_range("1949-01-01", "1960-12-01", freq="MS").tolist()
    y = frame["y"]
    assert y.dtype == np.float64
    assert (len(y), y.sum(), y.min(), y.max(), y.iloc[-1]) == (144, 40363, 104, 622, 432)
    assert y.groupby(frame["ds"].dt.year).sum().tolist() == [
        *(1520, 1676, 2042, 2364, 2700, 2867, 3408, 3939, 4421, 4572, 5140, 5714)
    ]


def test_logistic_map_follows_its_closed_form():
    # For r = 4: s_t = sin^2(2^(t-1) arcsin sqrt(s_1)); rounding errors double at every step.
    t = np.arange(25)
    closed = np.sin(2.0**t * np.arcsin(np.sqrt(0.1))) ** 2
    np.testing.assert_allclose(logistic_map(25), closed, atol=1e-7)


def test_logistic_map_settles_at_its_fixed_point_for_a_small_rate():
    assert logistic_map(500, r=2.5, s1=0.3)[-1] == pytest.approx(1 - 1 / 2.5)


def test_logistic_map_stays_in_the_unit_interval():
    series = logistic_map()
    assert len(series) == 1000
    assert series.min() >= 0
    assert series.max() <= 1
    assert logistic_map(1, s1=0.7).tolist() == [0.7]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"n": 0}, "n must be"), ({"r": 4.1}, "r must lie"), ({"s1": -0.1}, "s1 must lie")],
)
def test_logistic_map_rejects(arguments, message):
    with pytest.raises(ValueError, match=message):
        logistic_map(**arguments)
