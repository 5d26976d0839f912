"""The forecaster with scope="auto" on odd series."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from panels import LEVELS, NAME
from rbfdiffnet.series.naive import naive_forecast
from stacks import auto, check, frame, walks


def odd_series(rng):
    walk = 100.0 + rng.normal(size=60).cumsum()
    steps = np.arange(60)
    return {
        "constant": np.full(60, 5.0),
        "zeros": np.zeros(60),
        "empty": np.full(60, np.nan),
        "one": np.array([7.0]),
        "two": np.array([7.0, 8.0]),
        "five": np.array([7.0, 8.0, 6.0, 9.0, 5.0]),
        "eight": walk[:8],
        "short": walk[:20],
        "gaps": np.where(steps % 7 == 3, np.nan, walk),
        "late": np.where(steps < 45, np.nan, walk),
        "ended": np.where(steps > 50, np.nan, walk),
        "outlier": np.where(steps == 30, 1e9, walk),
        "last": np.where(steps == 59, 1e9, walk),
        "huge": np.where(steps == 30, 1e300, walk),
        "jump": np.where(steps < 40, walk, 10.0 * walk),
        "intermittent": np.where(rng.random(60) < 0.7, 0.0, rng.poisson(3.0, 60)),
        "negative": walk - 100.0,
        "line": 2.0 * steps,
        "periodic": np.tile(np.arange(12.0), 5),
        "tiny": 1e-200 * walk,
        "giant": 1e200 * walk,
    }


NAMES = list(odd_series(np.random.default_rng(0)))


@pytest.mark.parametrize("h", [1, 14])
@pytest.mark.parametrize("name", NAMES)
def test_any_series_alone_is_forecast(rng, name, h):
    y = odd_series(rng)[name]
    check(auto().fit(frame({name: y})).predict(h), 1, h)


def test_series_that_were_never_negative_are_not_forecast_below_zero(rng):
    falling = [np.maximum(60.0 - 2.0 * np.arange(36) + rng.normal(size=36), 0.0) for _ in range(9)]
    found = auto().forecast(frame(dict(enumerate(falling))), 24)
    assert found["RBFDiffNet"].min() >= 0.0
    moved = auto().forecast(frame({i: y - 1.0 for i, y in enumerate(falling)}), 24)
    assert moved["RBFDiffNet"].min() < -1.0


def test_a_horizon_longer_than_the_series(rng):
    for lengths in ([30], [12, 30, 9], [300]):
        check(auto().fit(frame(walks(rng, lengths))).predict(100), len(lengths), 100)


@pytest.mark.parametrize("parameters", [{}, {"transforms": ["log1p"]}, {"outliers": False}])
def test_odd_series_together(rng, parameters):
    df = frame(odd_series(rng) | walks(rng, rng.integers(30, 90, 10)))
    df["y"] = df["y"].where(df["unique_id"] != "negative", df["y"] + 200.0)
    found = auto(**parameters).fit(df).predict(8)
    check(found, df["unique_id"].nunique(), 8)


@pytest.mark.parametrize("n_good", [2, 8])
def test_unfit_series_get_the_fallback_and_do_not_disturb_others(rng, n_good):
    good, odd = walks(rng, rng.integers(40, 80, n_good)), odd_series(rng)
    unfit = {name: odd[name] for name in ("constant", "zeros", "empty", "one")}
    alone = auto().fit(frame(good)).predict(6).set_index("unique_id")
    model = auto().fit(frame(unfit | good))
    found = model.predict(6).set_index("unique_id")
    for name in good:
        assert_allclose(found.loc[name, NAME], alone.loc[name, NAME], rtol=1e-9)
    for name, y in unfit.items():
        expected = naive_forecast(y, np.array([y.size]), 6, 12)[0]
        if name != "empty":  # that one is forecast like the others
            assert_allclose(found.loc[name, NAME], expected, rtol=1e-12)
    for name in ("constant", "zeros"):
        assert_allclose(found.loc[name, LEVELS], np.tile(found.loc[name, [NAME]], 5))
    fallback = "forecast by the last season, or the last value"
    report = model.report_
    problems = report[report["problem"] != "too few errors for the intervals"]
    assert list(problems.itertuples(index=False, name=None)) == [
        ("constant", "all values are the same", fallback),
        ("zeros", "all values are zero", fallback),
        ("empty", f"no values; {n_good + 3} other series", "forecast like these series"),
        ("one", "one value only", fallback),
    ]


def test_short_series_get_the_pretrained_network_and_do_not_disturb_others(rng):
    good = walks(rng, rng.integers(40, 80, 6))
    short = {"two": np.array([3.0, 5.0]), "five": np.arange(5.0), "seven": rng.normal(size=7)}
    alone = auto().fit(frame(good)).predict(6).set_index("unique_id")
    model = auto().fit(frame(short | good))
    found = model.predict(6).set_index("unique_id")
    instant = auto(preset="instant").fit(frame(short)).predict(6).set_index("unique_id")
    for name in good:
        assert_allclose(found.loc[name, NAME], alone.loc[name, NAME], rtol=1e-9)
    for name in short:
        assert_allclose(found.loc[name, NAME], instant.loc[name, NAME], rtol=1e-9)
        table = model.explain(6, ids=[name])
        assert_allclose(table.groupby("ds")["contribution"].sum(), found.loc[name, NAME])
    only = auto().fit(frame(short)).predict(6).set_index("unique_id")
    assert_allclose(only[NAME], instant[NAME], rtol=1e-9)


def test_an_outlier_is_reported_and_moves_nothing_much(rng):
    series = walks(rng, [80] * 8)
    clean = auto().fit(frame(series)).predict(4).set_index("unique_id")
    series["s2"] = np.where(np.arange(80) == 40, 1e6, series["s2"])
    model = auto().fit(frame(series))
    found = model.predict(4).set_index("unique_id")
    report = model.report_
    assert ("s2", "1 outlier, first 2013-05-01", "treated as missing") in list(
        report.itertuples(index=False, name=None)
    )
    assert np.abs(found.loc["s2", NAME] - clean.loc["s2", NAME]).max() < 2.0
    others = [name for name in series if name != "s2"]
    assert np.abs(found.loc[others, NAME] - clean.loc[others, NAME]).max() < 1.0
    width = f"{NAME}-hi-95"
    assert np.abs(found[width] - found[NAME]).max() < 3 * (clean[width] - clean[NAME]).max()


def test_odd_series_can_be_refused(rng):
    model = auto(errors="raise")
    with pytest.raises(ValueError, match="'one' cannot be fitted: one value only"):
        model.fit(frame({"one": np.array([5.0])} | walks(rng, [40])))


def test_frames_without_rows_are_refused():
    df = frame({"a": np.arange(30.0)})
    with pytest.raises(ValueError, match="The frame has no rows"):
        auto().fit(df.iloc[:0])
