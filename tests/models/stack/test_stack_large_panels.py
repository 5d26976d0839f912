"""Large panels are forecast in parts, as if each part were a panel of its own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.models import by_chunk

NAME = "RBFDiffNet"


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of 300 values."""
    monkeypatch.setattr(by_chunk, "_LARGEST_CHUNK", 300)


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


def numbers_of(panel):
    names = panel["unique_id"].unique()
    return {
        names[i]: k
        for k, part in enumerate(by_chunk.split_by_name(names, len(panel)))
        for i in part
    }


@pytest.mark.usefixtures("small_parts")
def test_every_part_is_forecast_as_a_panel_of_its_own(panel, monkeypatch):
    found = RBFDiffNet("MS").forecast(panel, 6, level=[80])
    numbers = numbers_of(panel)
    assert len(set(numbers.values())) == 2
    monkeypatch.setattr(by_chunk, "_LARGEST_CHUNK", 10**9)
    for part in (0, 1):
        members = [name for name, number in numbers.items() if number == part]
        alone = RBFDiffNet("MS").forecast(panel[panel["unique_id"].isin(members)], 6, level=[80])
        among = found[found["unique_id"].isin(members)].reset_index(drop=True)
        pd.testing.assert_frame_equal(among, alone)


@pytest.mark.slow
@pytest.mark.usefixtures("small_parts")
def test_everything_else_works_in_parts(panel, tmp_path):
    model = RBFDiffNet("MS").fit(panel)
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


@pytest.mark.usefixtures("small_parts")
def test_neither_order_nor_other_parts_matter(panel):
    forecast = RBFDiffNet("MS").forecast(panel, 3)
    mixed = RBFDiffNet("MS").forecast(panel.iloc[::-1], 3)
    mixed = mixed.set_index(["unique_id", "ds"]).loc[forecast.set_index(["unique_id", "ds"]).index]
    pd.testing.assert_frame_equal(forecast, mixed.reset_index())


def test_the_number_of_parts_doubles():
    names = [f"item {i}" for i in range(2000)]
    one, two, four = (by_chunk.split_by_name(names, n) for n in (4_000_000, 5_000_000, 9_000_000))
    assert [len(one), len(two), len(four)] == [1, 2, 4]
    assert all(part.size > 0.8 * 2000 / len(parts) for parts in (one, two, four) for part in parts)
    for k, part in enumerate(two):
        assert set(part) == {*four[k], *four[k + 2]}
