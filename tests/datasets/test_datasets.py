import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.integrate import solve_ivp

from rbfdiffnet.datasets import (
    daily_demand,
    henon_map,
    load_air_passengers,
    load_nile,
    load_sunspots,
    logistic_map,
    lorenz,
    mackey_glass,
)


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


@pytest.mark.parametrize(
    ("load", "name", "first", "reference"),
    [
        (load_nile, "nile", 1871, lambda: sm.datasets.nile.load_pandas().data["volume"]),
        (
            *(load_sunspots, "sunspots", 1700),
            lambda: sm.datasets.sunspots.load_pandas().data["SUNACTIVITY"],
        ),
    ],
)
def test_yearly_series_are_those_of_statsmodels(load, name, first, reference):
    frame, expected = load(), reference()
    assert frame.columns.tolist() == ["unique_id", "ds", "y"]
    assert frame["unique_id"].unique().tolist() == [name]
    assert frame["ds"].dt.strftime("%m-%d").unique().tolist() == ["01-01"]
    assert frame["ds"].dt.year.tolist() == list(range(first, first + len(expected)))
    np.testing.assert_array_equal(frame["y"], expected)


def test_henon_map_is_that_of_the_plane():
    # (x, y) -> (1 - a x^2 + y, b x), in extended precision where there is one.
    point = np.zeros(2, dtype=np.longdouble)
    expected = []
    for _ in range(30):
        point = np.array([1 - 1.4 * point[0] ** 2 + point[1], 0.3 * point[0]])
        expected.append(float(point[0]))
    np.testing.assert_allclose(henon_map(30, discard=0), expected, atol=1e-9)


def test_henon_map_goes_on_from_its_start():
    series = henon_map(500)
    assert np.abs(series).max() < 1.3
    np.testing.assert_array_equal(henon_map(498, start=tuple(series[:2]), discard=0), series[2:])
    np.testing.assert_array_equal(henon_map(100, discard=1400), series[400:])


def test_henon_map_settles_at_its_fixed_point_for_a_small_coefficient():
    # s = 1 - a s^2 + b s
    fixed = (-0.7 + np.sqrt(0.49 + 4 * 0.2)) / (2 * 0.2)
    assert henon_map(1, a=0.2)[0] == pytest.approx(fixed)


def lorenz_step(point, step=0.05, sigma=10.0, rho=28.0, beta=8 / 3):
    def slope(_, p):
        x, y, z = p
        return [sigma * (y - x), x * (rho - z) - y, x * y - beta * z]

    return solve_ivp(slope, (0, step), point, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]


@pytest.mark.parametrize(
    "settings", [{}, {"step": 0.2}, {"sigma": 16.0, "rho": 45.92, "beta": 4.0}]
)
def test_lorenz_moves_from_point_to_point_as_solve_ivp_does(settings):
    points = lorenz(40, **settings)
    assert points.shape == (40, 3)
    expected = [lorenz_step(point, **settings) for point in points[:-1]]
    np.testing.assert_allclose(points[1:], expected, atol=2e-7)


def test_lorenz_is_off_by_less_than_documented():
    points = lorenz(200)
    expected = [lorenz_step(point) for point in points[:-1]]
    assert np.abs(points[1:] - expected).max() < 1e-8


def test_lorenz_stays_on_its_attractor():
    points = lorenz(2000)
    x, _, z = points.T
    assert np.abs(x).max() < 21
    assert (z.min() > 0, z.max() < 50) == (True, True)
    assert (x > 0).mean() == pytest.approx(0.5, abs=0.1)  # both wings
    np.testing.assert_array_equal(lorenz(10, start=tuple(points[0]), discard=0), points[:10])
    # Below rho = 1 everything comes to rest.
    np.testing.assert_allclose(lorenz(1, rho=0.5), 0.0, atol=1e-6)


def mackey_glass_by_solve_ivp(n, tau, beta, gamma, power, step, start):
    """Integrate one delay after the other, each from the dense output of the one before."""
    pieces, times = [lambda _: np.array([start])], step * np.arange(n)
    series = np.full(n, start)
    for k in range(int(times[-1] // tau) + 1):

        def slope(t, s, past=pieces[-1]):
            delayed = past(t - tau)
            return beta * delayed / (1 + delayed**power) - gamma * s

        span = (k * tau, (k + 1) * tau)
        begin = pieces[-1](span[0])
        solution = solve_ivp(
            *(slope, span, begin, "DOP853"), rtol=1e-11, atol=1e-12, max_step=tau / 8,
            dense_output=True,
        )  # fmt: skip
        inside = (times >= span[0]) & (times < span[1])
        series[inside] = solution.sol(times[inside])[0]
        pieces.append(solution.sol)
    return series


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"tau": 30.0, "step": 0.7},
        {"tau": 2.0, "beta": 2.0, "gamma": 1.0, "power": 9.65, "step": 0.31, "start": 0.5},
    ],
)
def test_mackey_glass_is_that_of_solve_ivp(settings):
    defaults = {"tau": 17.0, "beta": 0.2, "gamma": 0.1, "power": 10.0, "step": 1.0, "start": 1.2}
    expected = mackey_glass_by_solve_ivp(300, **(defaults | settings))
    np.testing.assert_allclose(mackey_glass(300, discard=0, **settings), expected, atol=1e-7)


def test_mackey_glass_is_that_of_a_finer_integration(monkeypatch):
    series = mackey_glass(500)
    monkeypatch.setattr("rbfdiffnet.datasets.chaotic._MACKEY_GLASS_STEP", 0.0004)
    np.testing.assert_allclose(series, mackey_glass(500), atol=1e-8)


def test_mackey_glass_knows_no_unit_of_time():
    faster = mackey_glass(50, tau=1.7, beta=2.0, gamma=1.0, step=0.1, discard=100)
    np.testing.assert_allclose(mackey_glass(50, discard=100), faster, rtol=1e-9)


def test_mackey_glass_discards_a_transient():
    series = mackey_glass(1500, discard=0)
    assert series[0] == 1.2
    np.testing.assert_allclose(mackey_glass(500), series[1000:], rtol=1e-9)
    assert series[1000:].min() > 0.2
    assert series[1000:].max() < 1.4


@pytest.mark.parametrize("make", [henon_map, lorenz, mackey_glass])
def test_chaotic_series_reject(make):
    for wrong in ({"n": 0}, {"discard": -1}):
        with pytest.raises(ValueError, match="n must be at least 1 and discard"):
            make(**wrong)
    if make is not henon_map:
        with pytest.raises(ValueError, match="step must be positive and finite, got 0"):
            make(step=0)
    if make is not mackey_glass:
        far = {henon_map: (0.0, 9.0), lorenz: (1e9, 1e9, 1e9)}[make]
        with pytest.raises(ValueError, match=r"runs off to infinity with .*start"):
            make(100, start=far)


def test_daily_demand_has_what_it_promises():
    frame = daily_demand()
    assert frame.columns.tolist() == ["unique_id", "ds", "y", "promotion"]
    assert frame.groupby("unique_id").size().tolist() == [730] * 5 + [60]
    assert frame["ds"].max() == pd.Timestamp("2023-12-31")
    assert frame.groupby("unique_id")["ds"].max().nunique() == 1
    assert not frame.isna().any().any()
    assert (frame["y"] >= 0).all()
    assert (frame["y"] % 1 == 0).all()
    closed = frame["ds"].dt.strftime("%m-%d").isin(["12-25", "01-01"])
    assert (frame.loc[closed, "y"] == 0).all()
    rare = frame["unique_id"] == "item_005"
    assert 0.6 < (frame.loc[rare, "y"] == 0).mean() < 0.9
    assert (frame.loc[~rare & ~closed, "y"] > 0).all()


def test_daily_demand_has_a_week_and_promotions():
    frame = daily_demand()
    frame = frame[frame["unique_id"] == "item_001"]
    by_day = frame[frame["promotion"] == 0].groupby(frame["ds"].dt.day_of_week)["y"].mean()
    assert by_day.idxmax() == 5
    lift = frame.groupby("promotion")["y"].mean()
    assert lift[1] > 1.15 * lift[0]
    weeks = frame.groupby(frame["ds"].dt.to_period("W"))["promotion"]
    assert (weeks.nunique() == 1).all()


def test_daily_demand_follows_its_seed():
    frame = daily_demand(8, 100)
    pd.testing.assert_frame_equal(daily_demand(8, 100), frame)
    first = frame[frame["unique_id"] <= "item_003"]
    pd.testing.assert_frame_equal(daily_demand(3, 100), first)
    assert not daily_demand(8, 100, seed=1)["y"].equals(frame["y"])
    assert len(daily_demand(6, 30)) == 180
    for wrong in ({"n_series": 0}, {"n_days": 0}):
        with pytest.raises(ValueError, match="n_series and n_days must be at least 1"):
            daily_demand(**wrong)
