"""Series that are hard on arithmetic get sound forecasts, and leave those of others alone.

What is promised stands in docs/forecaster.md, under "Numbers of any size" and "The stability rule".
"""

import tracemalloc
from itertools import product

import numpy as np
import pytest

from hard_series import CONFIGURATIONS, NAME, forecasts_of, frame_of, hard_series, panel_of
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.support.stability import LARGEST, forecast_bounds

HARD = hard_series()


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


CHEAP = ("stack", "global", "fast", "log1p")
ALL = [c if c in CHEAP else slow(c) for c in CONFIGURATIONS]
LONE = ("spike", "subnormal", "all sizes", "one sale at the end", "gap at the end", "largest")
EXACT = ("local", "fast", "paper", "direct", "noise", "differences", "adf")  # for powers of two
NETWORKS = ("local", "fast", "global")


def check(found, series, *, log=False, lower=None):
    """Finite, ordered, nested, not below the lower bound, and within those of the rule."""
    assert np.isfinite(found).all()
    forecast, low, high, lowest, highest = np.moveaxis(found, 2, 0)
    for inner, outer in ((low, lowest), (forecast, low), (highest, high), (high, forecast)):
        assert (outer <= inner).all()
    assert lower is None or found.min() >= lower
    for (name, y), values in zip(series.items(), forecast, strict=True):
        y = y[np.isfinite(y) & (np.abs(np.asarray(y, dtype=float)) <= LARGEST)].astype(float)
        if not y.size and len(series) > 1:  # nothing is known of it: it is forecast like others
            continue
        y = y if y.size else np.zeros(1)
        u, v = (np.log1p(np.maximum(z, 0.0)) for z in (y, values)) if log else (y, values)
        least, most = forecast_bounds(u.min(), u.max())
        slack = 1e-9 * (np.abs(u).max() + most - least)
        assert least - slack <= v.min(), name
        assert v.max() <= most + slack, name


# Every hard series --------------------------------------------------------------------------------


@pytest.mark.parametrize("c", ALL)
def test_hard_series_together(c):
    log = c == "log1p"
    found = forecasts_of(HARD, 14, **CONFIGURATIONS[c])
    check(found, HARD, log=log)


@pytest.mark.parametrize("name", [n if n in LONE else slow(n) for n in HARD])
def test_a_hard_series_alone(name):
    series = {name: HARD[name]}
    for c in ("stack", "fast", "global"):
        found = forecasts_of(series, 14, **CONFIGURATIONS[c])
        check(found, series)


@pytest.mark.parametrize("name", ["fast", "global"])
def test_a_lower_bound_holds_for_hard_series(name):
    found = forecasts_of(HARD, 14, lower=-2.5, **CONFIGURATIONS[name])
    assert np.isfinite(found).all()
    assert found.min() == -2.5


@pytest.mark.parametrize(
    ("c", "h"),
    [*product(["fast", "global"], [1, 500]), ("stack", 1), slow("stack", 500), slow("log1p", 500)],
)
def test_near_and_far(c, h):
    names = ("walk", "growth", "growing swings", "line", "two values", "integers", "spike", "gap")
    series = {name: HARD[name][-60:] for name in names}
    check(forecasts_of(series, h, **CONFIGURATIONS[c]), series, log=c == "log1p")


def test_inputs_beside_hard_series():
    for c in ("global", "stack", "fast"):
        found = forecasts_of(HARD, 3, calendar=["dayofweek"], **CONFIGURATIONS[c])
        assert np.isfinite(found).all()


# Units --------------------------------------------------------------------------------------------


def changes(panel):
    return np.array([np.std(np.diff(y)) for y in panel.values()])[:, None, None]


def moved(panel, scale=1.0, shift=0.0):
    return {name: scale * y + shift for name, y in panel.items()}


@pytest.mark.parametrize("c", [slow(c) if c in ("paper", "direct") else c for c in EXACT])
def test_powers_of_two_change_nothing_but_the_units(c):
    panel = panel_of(2, n=70)
    found = forecasts_of(panel, 7, **CONFIGURATIONS[c])
    for scale in (2.0**-40, 2.0**400):
        other = forecasts_of(moved(panel, scale), 7, **CONFIGURATIONS[c])
        np.testing.assert_array_equal(other, scale * found)
    # Each in a unit of its own; with few errors intervals borrow, and add up in other orders.
    first, second = panel
    mixed = {first: 2.0**30 * panel[first], second: 2.0**-9 * panel[second]}
    other = forecasts_of(mixed, 7, **CONFIGURATIONS[c])
    unit = np.array([2.0**30, 2.0**-9])[:, None, None]
    np.testing.assert_allclose(other, unit * found, rtol=1e-12)


@pytest.mark.parametrize("c", [*NETWORKS, "stack", "global direct"])
def test_units_do_not_matter(c):
    panel = panel_of(3, n=70)
    found = forecasts_of(panel, 7, **CONFIGURATIONS[c])
    for scale in (1e-100, 1e12):
        other = forecasts_of(moved(panel, scale), 7, **CONFIGURATIONS[c])
        assert np.abs((other / scale - found) / changes(panel)).max() < 1e-9
    units = np.array([1e-12, 7.0, 1e12])[:, None, None]
    mixed = {name: unit * y for unit, (name, y) in zip(units.ravel(), panel.items(), strict=True)}
    other = forecasts_of(mixed, 7, **CONFIGURATIONS[c])
    assert np.abs((other / units - found) / changes(panel)).max() < 1e-9


@pytest.mark.parametrize("c", [*NETWORKS, "global direct", "differences"])
def test_networks_see_noise_of_size_one_on_a_level_of_1e9(c):
    panel = panel_of(3, n=70)
    found = forecasts_of(panel, 7, **CONFIGURATIONS[c])
    other = forecasts_of(moved(panel, shift=1e9), 7, **CONFIGURATIONS[c])
    assert np.abs((other - 1e9 - found) / changes(panel)).max() < 1e-5


def test_a_stack_sees_noise_of_size_one_on_a_level_of_1e9():
    panel = panel_of(6, n=120)
    found = forecasts_of(panel)
    # Logarithms are lines there, growth is none, and zero is far.
    other = forecasts_of(moved(panel, shift=1e9)) - 1e9
    assert np.abs((other - found) / changes(panel))[:, :, 0].max() < 0.3
    widths = [values[:, :, 2] - values[:, :, 1] for values in (found, other)]
    assert np.abs(np.log(widths[0] / widths[1])).max() < np.log(1.5)
    below = {name: y - 1e4 for name, y in panel.items()}  # no logarithms
    found = forecasts_of(below)
    other = forecasts_of(moved(below, shift=-1e9))
    assert np.abs((other + 1e9 - found) / changes(panel)).max() < 1e-5


def test_integers_are_forecast_as_the_numbers_they_are():
    counts = np.random.default_rng(0).poisson(9.0, 60)
    for c in NETWORKS:
        found, other = (
            forecasts_of({"a": y}, 3, **CONFIGURATIONS[c]) for y in (counts, counts.astype(float))
        )
        np.testing.assert_array_equal(found, other)
    large = 2**60 + counts * 2**50  # each of them a floating point number
    found = forecasts_of({"a": large}, 3, scope="local")
    expected = forecasts_of({"a": large.astype(float)}, 3, scope="local")
    np.testing.assert_array_equal(found, expected)


# Series with one special feature ------------------------------------------------------------------


@pytest.mark.parametrize("c", [*NETWORKS, "stack", "log1p"])
@pytest.mark.parametrize("place", [30, 69])
def test_a_spike_counts_as_missing(c, place):
    ((name, y),) = panel_of(1, n=70).items()
    spike, gap = y.copy(), y.copy()
    spike[place], gap[place] = 1e12, np.nan
    found = forecasts_of({name: spike}, 7, **CONFIGURATIONS[c])
    expected = forecasts_of({name: gap}, 7, **CONFIGURATIONS[c])
    np.testing.assert_allclose(found[:, :, 0], expected[:, :, 0], atol=0.3 * np.std(y))


@pytest.mark.parametrize("sentinel", [-1e300, np.inf])
def test_numbers_beyond_1e150_count_as_missing(sentinel):
    ((name, y),) = panel_of(1, n=70).items()
    marked, gap = y.copy(), y.copy()
    marked[[20, 69]], gap[[20, 69]] = sentinel, np.nan
    for c in ("fast", "global"):
        np.testing.assert_array_equal(
            forecasts_of({name: marked}, 7, **CONFIGURATIONS[c]),
            forecasts_of({name: gap}, 7, **CONFIGURATIONS[c]),
        )
    model = RBFDiffNet("D", preset="fast").fit(frame_of({name: marked}))
    kind = "infinite" if np.isinf(sentinel) else "huge"
    assert model.report_["problem"].to_list() == [f"2 {kind} 'y' values, first 2023-01-21"]


@pytest.mark.parametrize("c", ["local", "fast", "global", "direct", "log1p", "noise"])
@pytest.mark.parametrize("period", [3, 7])
def test_what_repeats_itself_is_repeated(c, period):
    cycle = np.array([3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.6])[:period]
    y, h = np.resize(cycle, 98), 28
    found = forecasts_of({"a": y}, h, **CONFIGURATIONS[c])[0, :, 0]
    np.testing.assert_allclose(found, np.resize(np.roll(cycle, -98 % -period), h), atol=1e-3)


def test_a_stack_repeats_a_season_exactly():
    y = np.resize([3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.6], 98)
    found = forecasts_of({"a": y}, 28)[0, :, 0]
    np.testing.assert_allclose(found, np.resize(y[:7], 28), rtol=1e-12)


@pytest.mark.parametrize("c", ["local", "fast", "global", "direct", "stack", "differences"])
@pytest.mark.parametrize("slope", [-7.0, 1e9])
def test_a_line_is_continued(c, slope):
    line = 200.0 * abs(slope) + slope * np.arange(94.0)
    found = forecasts_of({"a": line[:80]}, 14, **CONFIGURATIONS[c])[0, :, 0]
    np.testing.assert_allclose(found, line[80:], atol=0.2 * abs(slope))


def test_a_stack_continues_growth():
    y = np.exp(np.arange(100.0) / 20.0)
    found = forecasts_of({"a": y[:90]}, 10)[0, :, 0]
    np.testing.assert_allclose(found, y[90:], rtol=0.05)


@pytest.mark.parametrize("c", [*NETWORKS, "stack"])
def test_intervals_have_a_width_unless_nothing_ever_changed(c):
    y = panel_of(1, n=80)["s00"]
    series = {
        "two values": np.array([3.0, 5.0]),
        "three values": np.array([3.0, 5.0, 4.0]),
        "gap at the end": np.where(np.arange(80) < 50, y, np.nan),
    }
    for name, values in series.items():
        found = forecasts_of({name: values}, 5, **CONFIGURATIONS[c])
        assert (found[0, :, 2] - found[0, :, 1]).min() > 0.5 * np.nanstd(values), name
    found = forecasts_of({"same": np.full(20, 3.0)}, 5, **CONFIGURATIONS[c])
    assert np.all(found == 3.0)


# Beside ordinary series ---------------------------------------------------------------------------

MONSTERS = ("spike", "large", "subnormal", "one sale")
MORE = ("jump at the end", "extremes", "all sizes", "fast growth")


@pytest.mark.parametrize("c", ["fast", "local", "log1p", "adf"])
def test_local_forecasts_do_not_depend_on_other_series(c):
    panel = panel_of(2, n=70)
    found = forecasts_of(panel, 7, **CONFIGURATIONS[c])[:, :, 0]
    others = {name: HARD[name] for name in (*MONSTERS, *MORE)}
    beside = forecasts_of({**panel, **others}, 7, only=panel, **CONFIGURATIONS[c])[:, :, 0]
    np.testing.assert_array_equal(beside, found)


@pytest.mark.slow
@pytest.mark.parametrize("calendar", [None, ["dayofweek"]])
@pytest.mark.parametrize("monsters", [MONSTERS, MORE], ids=["monsters", "more"])
@pytest.mark.parametrize("c", ["global", "stack"])
def test_one_monster_hardly_moves_the_forecasts_of_others(c, monsters, calendar):
    panel = panel_of(20, n=70)
    spread = np.array([np.std(y) for y in panel.values()])[:, None]
    parameters = {**CONFIGURATIONS[c], "calendar": calendar}
    found = forecasts_of(panel, 7, **parameters)[:, :, 0]
    for name in monsters:
        other = {name: HARD[name][-70:]}
        beside = forecasts_of({**panel, **other}, 7, only=panel, **parameters)[:, :, 0]
        assert np.abs((beside - found) / spread).max() < 0.5, name
        assert np.abs((beside - found) / spread).mean() < 0.1, name


LEARN_TOGETHER = {"stack": {}, "instant": {"preset": "instant"}, "global": {"scope": "global"}}
BORROW = {**LEARN_TOGETHER, "fast": {"preset": "fast"}, "local": {"scope": "local"}}


def weekly(k, rng, n=84):
    """Series alike but for the phase of the week and noise of size 3."""
    t = np.arange(n)
    shape = [50.0 + 10.0 * np.sin(2 * np.pi * (t + i) / 7) for i in range(k)]
    return {f"g{i}": own + rng.normal(0.0, 3.0, n) for i, own in enumerate(shape)}


def broken(rng, n=84):
    """Series that broke with their ways two or four weeks before their end."""
    t = np.arange(n)
    level, growth = np.where(t < n - 14, 1.0, 20.0), 1.4 ** np.maximum(t - (n - 28), 0)
    (y,) = weekly(1, rng, n).values()
    return {
        "stopped": np.where(t < n - 14, rng.poisson(1000, n), 0.0),
        "twenty times": y * level,
        "growth": y * growth,
    }


def widths(found):
    return (found[:, :, 4] - found[:, :, 3]).mean()


@pytest.mark.parametrize("c", [slow(c) if c == "local" else c for c in BORROW])
def test_one_broken_series_leaves_the_intervals_of_nine_others_alone(c):
    rng = np.random.default_rng(0)
    panel, others = weekly(9, rng), broken(rng)
    found = forecasts_of(panel, **BORROW[c])
    for name, y in others.items():
        beside = forecasts_of({**panel, name: y}, only=panel, **BORROW[c])
        assert 0.9 < widths(beside) / widths(found) < 1.1, name


@pytest.mark.parametrize("c", LEARN_TOGETHER)
def test_broken_series_move_the_forecasts_of_others_less_than_one_more_ordinary_series(c):
    moved = {name: [] for name in ("stopped", "twenty times", "growth", "ordinary")}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        panel, others = weekly(9, rng), broken(rng)
        others["ordinary"] = weekly(1, rng)["g0"]
        found = forecasts_of(panel, **LEARN_TOGETHER[c])[:, :, 0]
        for name, y in others.items():
            beside = forecasts_of({**panel, name: y}, only=panel, **LEARN_TOGETHER[c])[:, :, 0]
            moved[name].append(np.abs(beside - found).mean())
    for name in ("stopped", "twenty times", "growth"):
        assert np.mean(moved[name]) <= np.mean(moved["ordinary"]), name


def test_four_series_beside_seven_broken_ones_move_as_beside_seven_ordinary_ones():
    rng = np.random.default_rng(0)
    panel = weekly(4, rng)
    names = ("jump at the end", "one sale", "extremes", "spike")
    others = broken(rng) | {name: HARD[name][-84:] for name in names}
    ordinary = {f"o{i}": y for i, y in enumerate(weekly(7, rng).values())}
    found = forecasts_of(panel)[:, :, 0]
    beside, usual = (
        np.abs(forecasts_of({**panel, **more}, only=panel)[:, :, 0] / found - 1.0)
        for more in (others, ordinary)
    )
    assert beside.mean() < 2.0 * usual.mean()
    assert beside.mean() < 0.015


@pytest.mark.parametrize("c", LEARN_TOGETHER)
@pytest.mark.parametrize("typo", [20.0, 1e6])
def test_a_typo_in_an_input_costs_no_more_than_one_value_of_its_series(c, typo):
    rng = np.random.default_rng(0)
    prices = {name: rng.uniform(1.0, 3.0, 91) for name in weekly(6, rng)}
    panel = {name: y - 6.0 * prices[name][:84] for name, y in weekly(6, rng).items()}
    frame, ahead = frame_of(panel), frame_of({name: p[84:] for name, p in prices.items()})
    ahead = ahead.rename(columns={"y": "price"})
    ahead["ds"] += frame["ds"].max() - frame["ds"].min() + np.timedelta64(1, "D")
    frame["price"] = np.concatenate([p[:84] for p in prices.values()])
    wrong, gap = frame.copy(), frame.copy()
    wrong.loc[40, "price"], gap.loc[40, "y"] = typo, np.nan  # of the first series
    found, expected = (
        RBFDiffNet("D", **LEARN_TOGETHER[c]).forecast(df, 7, X_df=ahead)[NAME].to_numpy()
        for df in (wrong, gap)
    )
    assert np.abs(found - expected).max() < 0.1 * np.std(panel["g1"])


# Far ahead ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("c", ["stack", "global", "fast"])
def test_memory_far_ahead_grows_with_the_horizon(c):
    panel, peaks = panel_of(2, n=60), []
    forecasts_of(panel, 2, **CONFIGURATIONS[c])  # what is loaded once
    for h in (500, 2_000):
        tracemalloc.start()
        assert np.isfinite(forecasts_of(panel, h, **CONFIGURATIONS[c])).all()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 4.5 * peaks[0]
    assert peaks[1] < 40e6


@pytest.mark.parametrize("c", ["stack", "global", "fast"])
def test_near_steps_do_not_depend_on_how_far_is_asked(c):
    panel = panel_of(3, n=70)
    near = forecasts_of(panel, 40, **CONFIGURATIONS[c])[:, :, 0]
    far = forecasts_of(panel, 400, **CONFIGURATIONS[c])[:, :, 0]
    np.testing.assert_allclose(far[:, :40], near, rtol=1e-9)


# The stability rule -------------------------------------------------------------------------------


def said(c, y, h=40):
    model = RBFDiffNet("D", **CONFIGURATIONS[c])
    found = model.forecast(frame_of({"a": y}), h)
    report = model.report_
    return found[NAME].to_numpy(), report.loc[report["action"] == "held within bounds", "problem"]


@pytest.mark.parametrize("c", ["local", "fast", "global", "stack", "differences"])
def test_a_recursion_that_runs_away_is_held_and_reported(c):
    y = np.exp(np.arange(100.0) / 10.0)
    forecast, (problem,) = said(c, y)
    low, high = forecast_bounds(y.min(), y.max())
    assert low <= forecast.min()
    assert forecast.max() <= high
    far = np.flatnonzero(forecast > y.max() + 2.0 * np.ptp(y))
    text = "forecasts leave the range of the series by more than twice its span from step {} on"
    assert problem == text.format(far[0] + 1)


@pytest.mark.parametrize("c", ["local", "fast", "global"])
def test_steps_held_back_are_reported_also_within_the_range(c):
    y = (-1.15) ** np.arange(80.0)  # swings that grow, of a map that is plainly unstable
    forecast, (problem,) = said(c, y, 6)
    assert problem.startswith("the recursion reaches its bound at step ")
    step = int(problem.split()[-1])
    expected = (-1.15) ** np.arange(80.0, 86.0)
    np.testing.assert_allclose(forecast[: step - 1], expected[: step - 1], rtol=0.01)
    assert abs(forecast[step - 1]) < abs(expected[step - 1])


@pytest.mark.parametrize("c", ["stack", "local", "fast", "global", "log1p"])
def test_ordinary_forecasts_are_not_held(c):
    model = RBFDiffNet("D", **CONFIGURATIONS[c])
    names = ("walk", "integers", "two values", "periodic", "line", "spike", "noise on 1e9")
    model.forecast(frame_of({**panel_of(2), **{name: HARD[name] for name in names}}), 60)
    assert "held within bounds" not in model.report_["action"].to_list()
