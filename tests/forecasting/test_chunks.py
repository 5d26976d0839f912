import re

import numpy as np
import pandas as pd
import pytest

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.forecasting import chunks
from rbfdiffnet.forecasting.options import bytes_of
from rbfdiffnet.forecasting.pipeline import Pipeline
from rbfdiffnet.models import intervals
from rbfdiffnet.models.stack import lesson


def panel(n=23, shortest=4, seed=0):
    rng = np.random.default_rng(seed)
    frames = []
    for i in range(n):
        length = int(rng.integers(shortest, 70))
        y = rng.poisson(5, length) * (1.0 + 0.3 * np.sin(np.arange(length) * 2 * np.pi / 7))
        y[rng.random(length) < 0.05] = np.nan
        y[rng.integers(length)] = 500.0 if i % 4 == 0 else y[0]
        dates = pd.date_range("2024-01-01", periods=length)
        frames.append(pd.DataFrame({"unique_id": f"s{i}", "ds": dates, "y": y}))
    return pd.concat(frames, ignore_index=True)


def by_fives(lengths, *_):
    return np.split(np.arange(lengths.size), range(5, lengths.size, 5))


@pytest.mark.parametrize(
    "settings",
    [
        {"preset": "fast"},
        {"scope": "local"},
        {"scope": "global"},
        pytest.param(
            {"scope": "local", "calendar": ["dayofweek"], "strategy": "direct"},
            marks=pytest.mark.slow,
        ),
        pytest.param({"scope": "local", "noise": "auto"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_chunks_change_nothing(monkeypatch, settings):
    monkeypatch.setattr(intervals, "MOST_POOLED", 9)
    df = panel()
    forecaster_ = RBFDiffNet("D", **settings)
    whole = forecaster_.forecast(df, 6, level=[80, 95])
    report = forecaster_.report_
    windows = forecaster_.cross_validation(df, 4, n_windows=2, level=[80])
    unusual = forecaster_.report_
    fitted = RBFDiffNet("D", **settings).fit(df, 6)
    assert fitted.predict(6, level=[80, 95]).equals(whole)
    monkeypatch.setattr(chunks, "split_by_memory", by_fives)
    assert forecaster_.forecast(df, 6, level=[80, 95]).equals(whole)
    assert forecaster_.report_.equals(report)
    assert len(report)
    assert forecaster_.cross_validation(df, 4, n_windows=2, level=[80]).equals(windows)
    assert forecaster_.report_.equals(unusual)


@pytest.mark.parametrize("settings", [{"preset": "fast"}, {"scope": "global"}], ids=str)
def test_every_piece_has_its_own_inputs(monkeypatch, settings):
    df = panel(12, shortest=40)
    rng = np.random.default_rng(1)
    df["price"] = rng.random(len(df))
    df["y"] = df["y"].ffill() * (1 - 0.5 * df["price"])
    model_ = RBFDiffNet("D", **settings).fit(df)
    future = model_.make_future_frame(5)
    future["price"] = rng.random(len(future))
    expected = model_.predict(5, X_df=future)
    monkeypatch.setattr(chunks, "split_by_memory", by_fives)
    mixed = future.sample(frac=1.0, random_state=0)
    found = RBFDiffNet("D", **settings).forecast(df, 5, X_df=mixed, level=[80, 95])
    assert found.equals(expected)


def test_missing_future_inputs_are_said_before_anything_is_fitted(monkeypatch):
    monkeypatch.setattr(Pipeline, "fit_model", lambda *_, **__: pytest.fail("it was fitted"))
    df = panel(3, shortest=30).assign(price=1.0)
    with pytest.raises(ValueError, match="price"):
        RBFDiffNet("D").forecast(df, 3)


def test_inputs_make_pieces_smaller():
    lengths = np.full(5_000, 300)
    sizes = [max(p.size for p in chunks.split_by_memory(lengths, q, 42, 10**9)) for q in (0, 40)]
    assert 0 < 2 * sizes[1] < sizes[0]


@pytest.mark.parametrize("level", [None, [80]])
def test_the_first_bad_series_is_named_whatever_the_pieces(monkeypatch, level):
    df = panel(12, shortest=40)
    df.loc[df["unique_id"].isin(["s1", "s7"]), "y"] = 1.0
    monkeypatch.setattr(chunks, "split_by_memory", by_fives)
    with pytest.raises(ValueError, match="'s1'"):
        RBFDiffNet("D", preset="fast", errors="raise").forecast(df, 3, level=level)


def test_series_are_in_pieces_once_and_in_order():
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 3_000, size=5_000)
    cut = chunks.split_by_memory(lengths, 0, 42, 10**9)
    assert len(cut) > 3
    np.testing.assert_array_equal(np.concatenate(cut), np.arange(5_000))
    assert chunks.split_by_memory(lengths[:0], 0, 42, 10**9) == []


def test_chunks_shrink_with_the_limit_but_not_below_a_series():
    lengths = np.full(1_000, 100_000)
    sizes = [
        max(p.size for p in chunks.split_by_memory(lengths, 0, 72, limit))
        for limit in (10**9, 4 * 10**9)
    ]
    assert 1 < sizes[0] < sizes[1]
    assert [p.size for p in chunks.split_by_memory(np.full(2, 10**9), 0, 72, 10**9)] == [1, 1]


def test_a_huge_series_among_small_ones_does_not_stop_the_cuts():
    lengths = np.full(20_000, 60)
    lengths[3] = 10**9
    assert max(p.size for p in chunks.split_by_memory(lengths, 0, 28, 10**9)) < 10_000


@pytest.mark.parametrize(
    ("limit", "expected"),
    [("2GB", 2 * 10**9), ("1.5 gb", 1.5 * 10**9), (3 * 10**9, 3 * 10**9), ("4000M", 4 * 10**9)],
)
def test_limits_in_words(limit, expected):
    assert bytes_of(limit) == expected


@pytest.mark.parametrize(
    "limit", ["much", "", None, True, -1, "2XB", np.nan, "0.5GB", 10**8, "2GiB", "9" * 400]
)
def test_other_limits_are_refused(limit):
    with pytest.raises(ValueError, match=re.escape("memory_limit must be")):
        RBFDiffNet("D", memory_limit=limit)


def test_a_stack_learns_from_the_latest_values_of_long_series(monkeypatch):
    monkeypatch.setattr(lesson, "_MOST_VALUES", 140)
    monkeypatch.setattr(lesson, "_MOVE", 1)
    rng = np.random.default_rng(0)
    y = 20 + 5 * np.sin(np.arange(400) * 2 * np.pi / 7) + rng.normal(size=400)
    df = pd.DataFrame({"unique_id": "a", "ds": pd.date_range("2024-01-01", periods=400), "y": y})
    forecast = RBFDiffNet("D").forecast(df, 7, level=[80])
    earlier = df.assign(y=df["y"].where(df.index >= 260, 25.0 - df["y"]))
    pd.testing.assert_frame_equal(RBFDiffNet("D").forecast(earlier, 7, level=[80]), forecast)
    assert (
        not RBFDiffNet("D")
        .forecast(df.assign(y=df["y"].where(df.index >= 270, 25.0 - df["y"])), 7)
        .equals(forecast.iloc[:, :3])
    )


@pytest.mark.parametrize("gap", [100, 200])
def test_a_stack_learns_from_known_values_before_a_long_gap(monkeypatch, gap):
    monkeypatch.setattr(lesson, "_MOST_VALUES", 140)
    monkeypatch.setattr(lesson, "_MOVE", 1)
    rng = np.random.default_rng(0)
    y = 50 + rng.normal(size=400)
    y[-gap:] = np.nan
    df = pd.DataFrame({"unique_id": "a", "ds": pd.date_range("2024-01-01", periods=400), "y": y})
    assert RBFDiffNet("D").forecast(df, 3)["RBFDiffNet"].between(45, 55).all()
