"""When intervals are said to have held much less than they promise."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from panels import to_polars
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.evaluation import BacktestRows, Holding, find_models, score_models
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.support.text import format_percent

MODEL = find_models(["M", "M-lo-80", "M-hi-80", "M-lo-95", "M-hi-95"], "backtest")[0]


def backtest(errors, widths=(1.28, 1.96), step=None, zeros=()):
    """Holding of errors (n, n_windows, h) under intervals of these half-widths.

    Windows begin `step` steps apart. Series in `zeros` are often zero.
    """
    n, windows, h = errors.shape
    step = h if step is None else step
    length = 20 + (windows - 1) * step + h
    past = np.ones((n, length))
    past[list(zeros), ::2] = 0.0
    ids = np.array([f"s{i:03}" for i in range(n)])
    history = pd.DataFrame(
        {"unique_id": np.repeat(ids, length), "ds": np.tile(range(length), n), "y": past.ravel()}
    )
    starts = 20 + step * np.arange(windows)
    times = np.tile((starts[:, None] + np.arange(h)).ravel(), n)
    folds = pd.DataFrame({"unique_id": np.repeat(ids, windows * h), "ds": times})
    folds["cutoff"] = np.tile(np.repeat(starts - 1, h), n)
    panel = Panel.from_frame(history, freq=1)
    columns = {"y": errors.ravel(), "M": np.zeros(errors.size)}
    for level, width in zip(MODEL.levels, widths, strict=True):
        for end, sign in zip(MODEL.ends(level), (-1, 1), strict=True):
            columns[end] = np.full(errors.size, sign * width)
    rows = BacktestRows.locate(panel, folds)
    return panel, rows, columns, Holding.count(panel, rows, columns, "y", MODEL)


def test_windows_signs_and_shares_are_counted_as_by_hand():
    errors = np.random.default_rng(0).normal(size=(5, 3, 4))
    errors[1, 2, 3] = np.nan
    *_, found = backtest(errors, zeros=[0, 3])
    assert found.sparse.tolist() == [True, False, False, True, False]
    assert found.windows.tolist() == [3] * 5
    for level, width in (("80", 1.28), ("95", 1.96)):
        inside = np.where(np.isnan(errors), np.nan, np.abs(errors) <= width)
        np.testing.assert_allclose(found.held[level], np.nanmean(inside, axis=2).sum(axis=1))
    for kind, (products, pairs) in zip(([1, 2, 4], [0, 3]), found.together, strict=True):
        both = [np.sign(errors[i] * errors[j]) for i, j in itertools.permutations(kind, 2)]
        assert products == pytest.approx(np.nansum(both))
        assert pairs == np.isfinite(both).sum()


def test_the_rule_is_a_binomial_bound():
    """Of 40 series with one window of one step each, so many outside are too many."""
    alarms = []
    for outside in range(30):
        errors = np.where(np.arange(40) % 2, 1.0, -1.0)[:, None, None] * 0.1
        errors[:outside] *= 1000
        *_, found = backtest(errors)
        alarms.append(any("80" in short.shares for short in found.find_shortfalls()))
    bound = [2 * math.e * binom.cdf(40 - outside, 40, 0.8) < 0.01 for outside in range(30)]
    assert alarms == bound
    assert sum(alarms) > 5


def test_windows_that_overlap_count_once():
    errors = np.random.default_rng(0).normal(size=(2, 9, 4))
    *_, found = backtest(errors, step=1)
    assert found.windows.tolist() == [3, 3]  # 12 steps
    mean = (np.abs(errors) <= 1.28).mean(axis=(1, 2))
    np.testing.assert_allclose(found.held["80"], 3 * mean)


def alarms(errors, widths=(1.2816, 1.96), **more):
    return [bool(backtest(own, widths, **more)[3].find_shortfalls()) for own in errors]


def test_calibrated_intervals_are_hardly_ever_blamed():
    """Steps of a window that are all alike, and errors of series that go together."""
    rng = np.random.default_rng(1)
    alike = np.repeat(rng.normal(size=(300, 20, 3, 1)), 5, axis=3)
    assert sum(alarms(alike)) <= 3
    common = np.repeat(rng.normal(size=(100, 1, 1, 1)), 5, axis=3)
    together = np.sqrt(0.5) * (rng.normal(size=(100, 60, 1, 5)) + common)
    assert sum(alarms(together)) <= 1


def test_narrow_intervals_of_one_kind_are_found_and_named():
    rng = np.random.default_rng(2)
    errors = rng.normal(size=(80, 3, 7))
    errors[40:] *= 2.0
    panel, rows, columns, found = backtest(errors, (1.2816, 1.96), zeros=range(40, 80))
    (short,) = found.find_shortfalls()
    assert (short.often_zero, short.n_series) == (True, 40)
    shares = [(np.abs(errors[40:]) <= width).mean() for width in (1.2816, 1.96)]
    assert list(short.shares) == ["80", "95"]
    np.testing.assert_allclose(list(short.shares.values()), shares)
    first, second = map(format_percent, shares)
    assert short.describe() == (
        f"the 80 % intervals of 40 series that are often zero held {first} of the values "
        f"in backtests, the 95 % ones {second}"
    )
    inside = (np.abs(errors) <= 1.2816).mean(axis=(1, 2))
    assert list(short.lowest) == np.flatnonzero(inside == inside[40:].min()).tolist()

    scores = score_models(panel, rows, columns, "y", [MODEL], 1)
    assert scores.holdings["M"].find_shortfalls() == [short]
    parts = [backtest(errors[:50], zeros=range(40, 50))[3]]
    parts.append(backtest(errors[50:], zeros=range(30))[3])
    (joined,) = Holding.concatenate(parts).find_shortfalls()
    np.testing.assert_allclose(joined.shares["80"], (np.abs(errors[40:]) <= 1.28).mean())


def test_a_backtest_notes_narrow_intervals():
    """Series that become ten times as noisy in the window."""
    rng = np.random.default_rng(3)
    y = rng.normal(size=(60, 80)) * np.where(np.arange(80) < 73, 1.0, 10.0)
    ids = np.repeat([f"s{i:02}" for i in range(60)], 80)
    df = pd.DataFrame({"unique_id": ids, "ds": np.tile(range(80), 60), "y": y.ravel()})
    model = RBFDiffNet(1, preset="instant")
    folds = model.cross_validation(df, 7, level=[80])
    (row,) = model.report_.to_dict("records")
    inside = folds["y"].between(folds["RBFDiffNet-lo-80"], folds["RBFDiffNet-hi-80"])
    said = f"the 80 % intervals of 60 series held {100 * inside.mean():.0f} % of the values"
    assert row["problem"] == f"{said} in backtests; of this series the fewest"
    assert row["action"] == "kept; expect more values outside than promised"
    by_series = inside.groupby(folds["unique_id"]).mean()
    assert by_series[row["unique_id"]] == by_series.min()
    model.cross_validation(df[::-1], 7, level=[80])
    assert model.report_.to_dict("records") == [row]
    model.cross_validation(to_polars(df), 7, level=[80])
    assert model.report_.rows(named=True) == [row]
    model.cross_validation(df, 7)
    assert len(model.report_) == 0
    model.cross_validation(df[df["ds"] < 73], 7, n_windows=2, level=[80])
    assert len(model.report_) == 0
