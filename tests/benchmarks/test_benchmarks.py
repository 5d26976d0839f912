"""The benchmarks run, on tiny data; how long anything takes is not tested."""

import sys
from argparse import Namespace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
if not BENCHMARKS.exists():
    pytest.skip("the tests run without the repository", allow_module_level=True)
sys.path.append(str(BENCHMARKS))

import speed  # noqa: E402
import speed_child  # noqa: E402
from speed_parts import contenders, data, peers, plot, scaling, timing, trainers, unit  # noqa: E402


@pytest.fixture(scope="module")
def panel():
    values = data.made_up(3, 228) + 1.0
    return values, ["b", "a", "c"]


def naive(df):
    """Repeat the last week."""
    week = df.groupby("unique_id", sort=False)["y"].apply(lambda y: np.tile(y.tail(7), 4))
    frame = data.long_frame(np.stack(week.tolist()), list(week.index), first=200)
    return frame.rename(columns={"y": "naive"})


def test_peers_have_the_errors_of_their_forecasts(panel, monkeypatch):
    monkeypatch.setattr(unit, "_SIZE", 32)
    values, names = panel
    job = contenders.Job("m5", "three series", values, names, 28)
    field = [
        contenders.contenders(job)[0],
        contenders.Contender("naive", naive),
        contenders.Contender("naive, one series", naive, n_series=1),
        contenders.Contender("absent", naive, ("no_such_library",)),
    ]
    product, ours, all_three, one, absent = peers.compare(job, field, repeats=2)
    scale = np.sqrt(np.mean(np.diff(values[:, :-28], axis=1) ** 2, axis=1))
    wrong = values[:, -28:] - np.tile(values[:, -35:-28], 4)
    errors = np.sqrt(np.mean(wrong**2, axis=1)) / scale
    assert all_three["rmsse"] == pytest.approx(errors.mean())
    assert one["rmsse"] == pytest.approx(errors[0])
    assert one["seconds"] == pytest.approx(3 * one["ms_per_series"] / 1e3)
    assert "1 of 3 series" in one["note"]
    assert product["units"] == 1.0
    assert one["units"] == pytest.approx(one["seconds"] / product["seconds"])
    assert ours["times_ours"] == 1.0
    assert ours["rmsse"] == all_three["ours_rmsse"]
    assert absent["note"] == "pip install no_such_library"
    assert absent["seconds"] is None


def test_slow_contenders_get_some_of_the_series(panel, monkeypatch):
    job = contenders.Job("m5", "three series", *panel, 28)
    assert contenders.contenders(job)[0].name == contenders.OURS
    assert contenders.slow_contenders(job, 0, 0, 0) == []
    assert len(contenders.slow_contenders(job, 6, 6, 1)) == 3
    train, names = data.long_frame(data.made_up(9, 60)), [f"item_{i:05d}" for i in range(9)]
    patient = contenders.Contender("patient", naive, alone=True)
    assert peers._affordable(patient, train, names) is train
    monkeypatch.setattr(peers, "LONG", 0.0)  # any time is too much
    assert list(peers._affordable(patient, train, names)["unique_id"].unique()) == names[::3]


@pytest.mark.parametrize("name", speed.JOBS)
def test_jobs_of_peers(name):
    options = Namespace(m5=None, quick=True)
    job = peers.make_job(name, options)
    n, length = job.values.shape
    assert n == len(job.names)
    assert n <= 4
    ends = data.long_frame(job.values[:, -job.h :], job.names, length - job.h, job.freq)["ds"]
    whole = data.long_frame(job.values, job.names, freq=job.freq)["ds"]
    assert ends.iloc[0] == whole.iloc[length - job.h]
    assert ends.iloc[-1] == whole.iloc[-1]


def test_trainers_fit_the_same_rows():
    rows = trainers.compare("a", data.made_up(2, 150)[1], repeats=1)
    ways = [row["way"].split()[0] for row in rows]
    assert ways == ["ours", "ours,", "authors'", "paper's", "authors'", "paper's"]
    assert all(0.0 < row["training_rmse"] < 1.0 for row in rows)


def test_units_are_ratios_to_the_product(panel, monkeypatch):
    monkeypatch.setattr(unit, "_SIZE", 32)
    product, forecaster, arrays = unit.measure(*panel, rounds=2)
    assert product["units"] == 1.0
    assert forecaster["units"] == pytest.approx(forecaster["ms"] / product["ms"])
    assert arrays["job"] == "arrays, each series"


def test_sweeps_grow(panel):
    rows = scaling.sweep("centers", (2, 4), lambda x: (scaling._fit(panel[0], x), 3), repeats=1)
    assert [row["size"] for row in rows] == [2, 4]
    assert rows[0]["growth"] is None
    assert np.isfinite(rows[1]["growth"])
    job = scaling._forecast(panel[0], lags=7)
    assert len(job()) == 3 * 28


def test_windows_of_a_sweep_are_those_of_the_package(panel, monkeypatch):
    from rbfdiffnet.series.windows import lag_windows

    seen = []
    monkeypatch.setattr(scaling, "train", lambda *arrays, **_: seen.append(arrays))
    scaling._fit(panel[0], 4)()
    z = np.diff(panel[0][1])
    X, y = lag_windows(z - z.mean(), scaling.N_LAGS)
    np.testing.assert_allclose(seen[1][0][0], X.T)
    np.testing.assert_allclose(seen[1][1][0], y)


@pytest.mark.slow
def test_children_measure_themselves():
    row = timing.in_child("memory", n_series=2, length=100)
    assert row["series"] == 2
    assert row["imports_mb"] > 10.0 or np.isnan(row["imports_mb"])
    assert set(speed_child.jobs(2, 100, repeats=1)) >= {"frame_s_1", "arrays_times_faster"}


def test_the_bottom_level_is_scored_in_the_order_of_its_series(tmp_path):
    values = data.made_up(3, 60).astype(np.int16)
    wide = pd.DataFrame(values, columns=[f"d_{day}" for day in range(60)])
    wide.insert(0, "id", ["z", "y", "x"])
    wide.to_parquet(tmp_path / data.BOTTOM)
    row = speed_child.bottom(str(tmp_path), None)
    turned = tmp_path / "turned"
    turned.mkdir()
    wide.iloc[::-1].to_parquet(turned / data.BOTTOM)
    assert row["series"] == 3
    assert row["days"] == 32
    assert row["rmsse"] == pytest.approx(speed_child.bottom(str(turned), None)["rmsse"])


def test_built_in_series_stand_in_for_m5(monkeypatch, tmp_path):
    monkeypatch.setenv("RBFDIFFNET_M5", str(tmp_path / "nowhere"))
    assert data.m5_folder(None) is None
    values, names, about = data.daily_panel(None)
    assert values.shape == (30, 1941)
    assert len(names) == 30
    assert "made-up" in about
    with pytest.raises(SystemExit, match="no folder"):
        data.m5_folder(tmp_path / "nowhere")


def test_jobs_take_turns(monkeypatch):
    order = []
    jobs = {name: partial(order.append, name) for name in "ab"}
    timings = timing.in_turn(jobs, 2)
    assert order == ["a", "b", "a", "b"]
    assert timings["a"].low <= timings["a"].median <= timings["a"].high
    monkeypatch.setattr(timing, "LONG", 0.0)
    assert len(timing.in_turn(jobs, 2)["a"].seconds) == 1


def test_tables_are_printed_written_and_drawn(tmp_path):
    assert plot.draw(tmp_path) is None
    peer = {"contender": "ours, fast", "ms_per_series": 2.0, "rmsse": 0.5, "ours_rmsse": 0.5}
    other = {"contender": "other", "ms_per_series": 9.0, "rmsse": 0.6, "ours_rmsse": 0.5}
    table = timing.Table(
        "peers", "peers: two", [{**peer, "note": ""}, {**other, "note": "1 of 3 series"}]
    )
    assert str(table).splitlines()[0] == "peers: two"
    assert str(table).splitlines()[2].split() == ["contender", *list(peer)[1:], "note"]
    sizes = [
        {"sweep": "lags", "size": n, "seconds": 0.1 * n, "low": 0.1 * n, "high": 0.2 * n}
        for n in (1, 2)
    ]
    fit = {"series": "mean", "way": "ours", "ms": 3.0, "training_rmse": 0.5}
    for each in (table, timing.Table("scaling", "", sizes), timing.Table("trainers", "", [fit])):
        each.write(tmp_path)
    assert plot.draw(tmp_path).stat().st_size > 1000


@pytest.mark.slow
@pytest.mark.usefixtures("limits_of_threads")
def test_the_command_prints_and_writes(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(unit, "_SIZE", 32)
    before = timing.cores()
    speed.main(["--only", "unit", "--quick", "--repeats", "1", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert printed.startswith("processor")
    assert "matrix product" in printed
    assert len(pd.read_csv(tmp_path / "speed_unit.csv")) == 3
    assert timing.cores() == before


def test_every_part_can_be_named(capsys):
    options = speed.parse(["--only", *speed.PARTS])
    assert isinstance(options, Namespace)
    for part in speed.PARTS:
        assert (BENCHMARKS / "speed_parts" / f"{part}.py").exists()
    with pytest.raises(SystemExit):
        speed.parse(["--only", "nothing"])
    assert "nothing" in capsys.readouterr().err
