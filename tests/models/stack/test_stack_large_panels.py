"""Large panels: what some series teach serves all others, chunk by chunk."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.forecasting.pipeline import Pipeline
from rbfdiffnet.models import sampled
from rbfdiffnet.models.stack.histories import Histories
from rbfdiffnet.models.stack.members import forecast_members
from rbfdiffnet.series.series import SeriesPanel
from rbfdiffnet.support.parallel import SINGLE_MACHINE
from stacks import arrays, learn_from

NAME = "RBFDiffNet"


@pytest.fixture
def small(monkeypatch):
    """Five series are learned from, and chunks of others have up to 130 values."""
    monkeypatch.setattr(sampled, "MOST_LEARNED_FROM", 5)
    monkeypatch.setattr(sampled, "_LARGEST_CHUNK", 130)


@pytest.fixture
def panel(rng):
    """Twelve series of 40 to 62 values, one too short, one never changing."""
    frames = []
    for i in range(12):
        y = 20.0 + rng.normal(size=40 + 2 * i).cumsum()
        y = y[:2] if i == 5 else np.full(30, 4.0) if i == 7 else y
        ds = pd.date_range("2020-01-01", periods=y.size, freq="MS")
        frames.append(pd.DataFrame({"unique_id": f"s{i}", "ds": ds, "y": y}))
    return pd.concat(frames, ignore_index=True)


def learned_from(panel):
    names = panel["unique_id"].unique()
    order = np.argsort(sampled.hash_names(names))
    return sorted(names[order[:5]])


def test_members_forecast_series_that_they_did_not_learn_from_as_their_own(rng):
    """A series is forecast alike alone and among those that were learned from."""
    t = np.arange(90)
    series = [50.0 + 9.0 * np.sin(t / 2 + k) + rng.normal(size=90).cumsum() for k in range(8)]
    series[3] = series[3][30:]
    for m, h in ((1, 5), (12, 30)):
        histories = Histories.of(series, m)
        lesson, found = learn_from(histories, h, repeats=True)
        pretrained = found["pretrained"]
        for i in (0, 3, 7):
            alone = Histories.of([series[i]], m)
            again = forecast_members(alone, h, pretrained[[i]], lesson)
            assert list(again) == list(found)
            for name, values in again.items():
                assert_allclose(values[0], found[name][i], rtol=1e-9, err_msg=name)


@pytest.mark.usefixtures("small")
def test_series_learned_from_are_forecast_as_a_panel_of_their_own(panel):
    found = RBFDiffNet("MS").forecast(panel, 6, level=[80])
    some = panel["unique_id"].isin(learned_from(panel))
    alone = RBFDiffNet("MS").forecast(panel[some], 6, level=[80])
    among = found[found["unique_id"].isin(learned_from(panel))].reset_index(drop=True)
    pd.testing.assert_frame_equal(among, alone)


@pytest.mark.usefixtures("small")
def test_a_twin_of_a_series_learned_from_is_forecast_like_it(panel):
    """The others are forecast by what was learned: a copy under another name gets the same."""
    name = next(n for n in learned_from(panel) if n not in ("s5", "s7"))
    for twin in ("x", "y", "z", "u", "v", "w"):
        copy = panel[panel["unique_id"] == name].assign(unique_id=twin)
        both = pd.concat([panel, copy], ignore_index=True)
        if twin in learned_from(both):
            continue
        found = RBFDiffNet("MS").forecast(both, 6, level=[80, 95]).set_index("unique_id")
        numbers = found.columns[1:]
        assert_allclose(found.loc[twin, numbers], found.loc[name, numbers], rtol=1e-9)
        return
    pytest.fail("every twin was learned from")


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_everything_else_works_in_chunks(panel, tmp_path):
    model = RBFDiffNet("MS").fit(panel)
    assert len(model.fitted_panel.model.chunks) > 2
    assert set(model.report_["unique_id"]) >= {"s7"}
    forecast = model.predict(4)
    assert sum(model.weights_.values()) == pytest.approx(1.0, abs=0.3)  # two have no members
    explained = model.explain(4)
    total = explained.groupby(["unique_id", "ds"], sort=False)["contribution"].sum()
    np.testing.assert_allclose(total.to_numpy(), forecast[NAME].to_numpy(), rtol=1e-9)
    model.save(tmp_path / "model.rbf")
    again = RBFDiffNet.load(tmp_path / "model.rbf").predict(4)
    pd.testing.assert_frame_equal(again, forecast)
    tested = RBFDiffNet("MS").cross_validation(panel, 4, n_windows=2, level=[80])
    assert tested[NAME].notna().all()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("preset", ["default", "instant"])
def test_forecasts_made_chunk_by_chunk_are_those_of_a_fitted_model(panel, monkeypatch, preset):
    panel["promotion"] = np.arange(len(panel)) % 7 == 0
    panel["y"] += 3.0 * panel["promotion"] * (panel["unique_id"] != "s7")
    model = RBFDiffNet("MS", preset=preset).fit(panel)
    future = model.make_future_frame(3).assign(promotion=1.0)
    expected = model.predict(3, X_df=future, level=[80])
    windows = RBFDiffNet("MS", preset=preset).cross_validation(panel, 3, n_windows=2, level=[80])
    monkeypatch.setattr(sampled, "_BYTES", 2 * 10**9 // 150)
    fitted = []
    original = Pipeline.fit_model

    def fit_model(self, series, *, calibrate):
        fitted.append(len(series))
        return original(self, series, calibrate=calibrate)

    monkeypatch.setattr(Pipeline, "fit_model", fit_model)
    found = RBFDiffNet("MS", preset=preset).forecast(panel, 3, X_df=future, level=[80])
    pd.testing.assert_frame_equal(found, expected, rtol=1e-9)
    assert fitted[0] == 5  # those that are learned from
    n_chunks = len(fitted)
    assert n_chunks > 2
    assert sum(fitted) == 12
    limited = RBFDiffNet("MS", preset=preset, memory_limit="1GB")
    found = limited.cross_validation(panel, 3, n_windows=2, level=[80])
    pd.testing.assert_frame_equal(found, windows, rtol=1e-9)
    assert sum(fitted) == 3 * 12
    assert len(fitted) > 3 * n_chunks  # of two windows, in smaller ones


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("preset", ["default", "instant"])
def test_neither_order_nor_chunks_nor_threads_matter(panel, monkeypatch, preset):
    panel["promotion"] = np.arange(len(panel)) % 7 == 0
    panel["y"] += 3.0 * panel["promotion"] * (panel["unique_id"] != "s7")
    model = RBFDiffNet("MS", preset=preset).fit(panel)
    future = model.make_future_frame(3).assign(promotion=1.0)
    forecast = model.predict(3, X_df=future, level=[80])
    index = ["unique_id", "ds"]
    for size, n_jobs in ((50, 1), (10**6, 1), (130, 2)):
        monkeypatch.setattr(sampled, "_LARGEST_CHUNK", size)
        other = RBFDiffNet("MS", preset=preset, n_jobs=n_jobs).fit(panel.iloc[::-1])
        mixed = other.predict(3, X_df=future, level=[80]).set_index(index)
        mixed = mixed.loc[forecast.set_index(index).index].reset_index()
        pd.testing.assert_frame_equal(forecast, mixed, rtol=1e-9)


def test_names_decide_which_series_are_learned_from(rng, monkeypatch):
    monkeypatch.setattr(sampled, "MOST_LEARNED_FROM", 20)
    monkeypatch.setattr(sampled, "_LARGEST_CHUNK", 100)
    names = [f"item {i}" for i in rng.permutation(60)]
    panel = SeriesPanel.of(arrays([np.arange(10.0 + i % 3) for i in range(60)]), names)
    first, *others = sampled.split_panel(panel, SINGLE_MACHINE)
    hashes = dict(zip(names, sampled.hash_names(names), strict=True))
    assert {names[i] for i in first} == set(sorted(names, key=hashes.__getitem__)[:20])
    assert_array_equal(np.concatenate(others), np.setdiff1d(np.arange(60), first))
    assert all(0 < chunk.size <= 8 for chunk in others)
    assert [c.size for c in sampled.split_panel(panel.select(range(20)), SINGLE_MACHINE)] == [20]
