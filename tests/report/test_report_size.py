"""Reports of many and long series show some of them, and score all."""

import numpy as np
import pandas as pd
import pytest

from rbfdiffnet.panel.frames import ColumnNames
from rbfdiffnet.report import data
from report_files import assert_close, frames, written


def test_of_too_many_series_some_are_shown_and_all_are_scored(tmp_path, monkeypatch):
    history, forecasts, backtest = frames(n_series=60)
    backtest.loc[backtest["unique_id"] == "item 41", "RBFDiffNet"] += 100.0
    terms = forecasts[forecasts["unique_id"] == "item 33"][["unique_id", "ds"]].assign(
        **{"part": "level", "term": "a", "nearest": "", "value": 1.0, "weight": 1.0},
        **{"activation": 1.0, "contribution": 1.0},
    )
    whole = data.payload(history, forecasts, columns=ColumnNames(), backtest=backtest)[0]
    monkeypatch.setattr(data, "MOST_SERIES", 40)
    report = written(tmp_path, history, forecasts, backtest=backtest, explanations={"terms": terms})
    facts = report.facts
    assert (len(facts["ids"]), facts["n_series"]) == (40, 60)
    assert facts["scores"] == whole["scores"]
    assert facts["scores"]["series"] == 60
    shown = facts["ids"]
    assert {"item 33", "item 41"} <= set(shown)
    assert [shown[i] for i in facts["explained"]["series"]] == ["item 33"]
    for name, frame, column in (("history", history, "y"), ("backtest", backtest, "RBFDiffNet")):
        keys = ["unique_id", "ds"]
        both = report.table(name).merge(frame, on=keys, suffixes=("", "_given"))
        assert len(both) == 40 * len(frame) / 60
        np.testing.assert_allclose(both[column], both[f"{column}_given"], rtol=2.0**-16)
    assert shown[np.argmax(report.numbers("mase/RBFDiffNet"))] == "item 41"


def test_series_are_chosen_by_their_errors(monkeypatch):
    monkeypatch.setattr(data, "MOST_SERIES", 100)
    errors = np.random.default_rng(0).permutation(500).astype(float)
    errors[::7] = np.nan
    chosen = data.choose_series(500, errors, wanted=[123])
    assert len(chosen) == len(set(chosen)) == 100
    order = np.argsort(errors)[: np.isfinite(errors).sum()]
    assert {123, *order[:10], *order[-10:]} <= set(chosen)
    np.testing.assert_array_equal(chosen, data.choose_series(500, errors, wanted=[123]))


def test_long_histories_lose_their_beginnings(tmp_path, monkeypatch):
    history, forecasts, _ = frames(n_days=200)
    monkeypatch.setattr(data, "_MOST_BYTES", 2000)
    report = written(tmp_path, history, forecasts)
    cut = report.facts["cut"]
    assert 60 < cut < 200
    assert_close(report.table("history"), history.groupby("unique_id").tail(cut), ["y"])
    assert report.facts["span"][0] == history["ds"].min().timestamp() * 1000


@pytest.mark.slow
def test_thousands_of_series_stay_below_15_megabytes(tmp_path):
    n, length, h = 5000, 1000, 28
    rng = np.random.default_rng(0)
    ids = [f"store_{i:05d}" for i in range(n)]
    days = pd.date_range("2021-01-01", periods=length + h)

    def frame(part, columns):
        size = len(part)
        values = {name: rng.lognormal(3.0, 1.0, size=n * size) for name in columns}
        return pd.DataFrame({"unique_id": np.repeat(ids, size), "ds": np.tile(part, n), **values})

    ends = [f"M-{side}-{level}" for level in (80, 95) for side in ("lo", "hi")]
    history, forecasts = frame(days[:length], ["y"]), frame(days[length:], ["M", *ends])
    backtest = frame(days[length - h : length], ["y", "M", *ends]).assign(
        cutoff=days[length - h - 1]
    )
    report = written(tmp_path, history, forecasts, backtest=backtest)
    assert len(report.html) < 15e6
    assert 400 < report.facts["cut"] < length  # these numbers are noise, and do not compress
