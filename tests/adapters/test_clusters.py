"""Panels that are spread over groups and machines: the numbers stay those of one machine."""

import importlib.util
import os
import pickle
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import rbfdiffnet
from cluster_runs import CASES, INPUTS, run
from panels import CONFIGURATIONS, NAME, future_of, make_panel
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.adapters.clusters import cross_validation, forecast
from rbfdiffnet.adapters.clusters.cluster import Cluster
from rbfdiffnet.adapters.clusters.groups import (
    Failure,
    Pending,
    Replay,
    choose_rows,
    combine_contributions,
    find_cuts,
    find_groups,
    find_split,
)
from rbfdiffnet.datasets import logistic_map
from rbfdiffnet.models import sampled
from rbfdiffnet.models.sampled import hash_names
from rbfdiffnet.support.parallel import SINGLE_MACHINE

HERE = Path(__file__).parents[1]
GUIDE = HERE.parent / "docs" / "clusters.md"
SOME = [f"s{i}" for i in range(5)]
fugue = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("fugue", "cloudpickle")),
    reason="needs the extra [distributed]",
)
LOCAL = {"freq": "D", "preset": "fast", "lags": 7}


def in_order(frame):
    keys = [name for name in ("unique_id", "ds", "cutoff", "problem") if name in frame]
    return frame.sort_values(keys).reset_index(drop=True)


def assert_same(found, expected, rtol=1e-9):
    """Compare frames in which the order of rows and the kinds of columns may differ."""
    found, expected = in_order(found), in_order(expected)
    assert list(found) == list(expected)
    for name in expected:
        if name in ("unique_id", "problem", "action"):
            assert found[name].astype(str).tolist() == expected[name].astype(str).tolist()
        elif name in ("ds", "cutoff") and not pd.api.types.is_integer_dtype(expected[name]):
            assert pd.to_datetime(found[name]).tolist() == expected[name].tolist()
        else:
            a, b = found[name].to_numpy(dtype=float), expected[name].to_numpy(dtype=float)
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol, err_msg=name)


@pytest.mark.parametrize("name", ["fast", "global", "global direct", "everything"])
def test_groups_give_the_numbers_of_one_machine(name):
    parameters, columns = CONFIGURATIONS[name]
    df = make_panel(SOME, n=90, columns=columns)
    model = RBFDiffNet("D", **parameters)
    X_df = future_of(RBFDiffNet("D", **parameters).fit(df, h=3), 3, columns)
    expected = model.forecast(df, 3, X_df, [80])
    found, report = forecast(
        df, 3, X_df=X_df, level=[80], model=model, group_size=2, with_report=True
    )
    assert_same(found, expected)
    assert_same(report, model.report_)
    assert found.dtypes.equals(expected.dtypes)


@pytest.mark.parametrize("parameters", [{}, {"preset": "fast"}, {"scope": "global"}], ids=str)
def test_groups_know_what_inputs_of_all_others_were(parameters):
    df = make_panel(SOME, n=90, columns=["price"])
    df["promotion"] = np.where(df["unique_id"] == "s3", 0, df["ds"].dt.day % 2)
    model = RBFDiffNet("D", **parameters)
    X_df = model.fit(df).make_future_frame(2).assign(price=2.0, promotion=1)
    X_df.loc[X_df["unique_id"] == "s1", "price"] = 2e6
    expected = model.forecast(df, 2, X_df, [80])
    options = {"X_df": X_df, "level": [80], "model": model, "group_size": 2}
    found, report = forecast(df, 2, **options, with_report=True)
    assert_same(found, expected)
    assert_same(report, model.report_)
    assert report["problem"].str.contains("'price' is 2e.06 .* and on 1 more, far from").sum() == 1
    alone = "fast" in parameters.values()
    assert report["problem"].str.contains("'promotion' is 1 .* but was always 0").sum() == alone


@pytest.mark.parametrize("refit", [False, "weights", pytest.param(True, marks=pytest.mark.slow)])
def test_backtests_of_groups_are_those_of_one_machine(refit):
    df = make_panel(SOME, n=80)
    df = df[(df["unique_id"] != "s1") | (df["ds"] > "2023-03-15")]  # begins after a window
    model = RBFDiffNet("D", scope="global", calendar=["dayofweek"])
    expected = model.cross_validation(df, 3, 2, 2, level=[80], refit=refit)
    found = cross_validation(df, 3, 2, 2, level=[80], refit=refit, model=model, group_size=1)
    assert_same(found, expected)


def test_what_statistics_do_not_cover_is_trained_from_the_rows_of_all_groups():
    df = make_panel(SOME, n=60)
    regressor = rbfdiffnet.RBFDiffNetRegressor(5, loss="huber", alpha=0.1, width_factor=4.0)
    model = RBFDiffNet("D", scope="global", lags=4, regressor=regressor)
    assert_same(forecast(df, 3, model=model, group_size=2), model.forecast(df, 3))


def test_series_that_cannot_be_fitted_lose_nobody():
    df = make_panel(SOME, n=60)
    df["y"] = df["y"].where(df["unique_id"] != "s3", 4.0)
    for scope in ("local", "global"):
        model = RBFDiffNet("D", scope=scope, lags=5)
        found, report = forecast(df, 2, model=model, group_size=1, level=[80], with_report=True)
        assert_same(found, model.forecast(df, 2, level=[80]))
        assert_same(report, model.report_)
        assert "s3" in report["unique_id"].tolist()
    constant = df[df["unique_id"] == "s3"]
    assert (forecast(constant, 2, model=model)[NAME] == 4.0).all()


@pytest.mark.parametrize(
    ("freq", "lengths"),
    [("MS", (26, 13, 14, 10, 11, 37)), ("W", (100, 55, 60, 25, 40)), ("D", (100, 20, 22, 9))],
)
def test_a_series_is_forecast_alike_alone_and_beside_longer_ones(monkeypatch, freq, lengths):
    """Groups of one series, some shorter than a season, against one machine."""
    monkeypatch.setattr(sampled, "MOST_LEARNED_FROM", 3)
    rng = np.random.default_rng(2)
    names = [f"n{i}" for i in range(3 + len(lengths))]
    order = [names[i] for i in np.argsort(hash_names(names))]
    sizes = dict(zip(order, [lengths[0]] * 3 + list(lengths), strict=True))
    frames = [
        pd.DataFrame(
            {
                "unique_id": name,
                "ds": pd.date_range("2020-01-01", periods=n, freq=freq),
                "y": 50.0 + 9.0 * np.sin(np.arange(n)) + rng.normal(size=n).cumsum(),
            }
        )
        for name, n in sizes.items()
    ]
    df, model = pd.concat(frames, ignore_index=True), RBFDiffNet(freq)
    expected = model.forecast(df, 13, level=[80])
    assert_same(forecast(df, 13, level=[80], model=model, group_size=1), expected)


@pytest.mark.slow
def test_own_maps_are_those_of_one_machine():
    df, model = make_panel(SOME, n=210), RBFDiffNet("D", preset="best")
    df["y"] = np.concatenate([logistic_map(210, s1=0.11 + 0.1 * k) for k in range(len(SOME))])
    expected = model.forecast(df, 3)
    assert_same(forecast(df, 3, model=model, group_size=2), expected)


@pytest.mark.parametrize("preset", ["default", "instant"])
@pytest.mark.parametrize("learned_from", [1000, 3])
def test_a_stack_is_that_of_one_machine(monkeypatch, preset, learned_from):
    """Some groups have none of the series that are learned from."""
    monkeypatch.setattr(sampled, "MOST_LEARNED_FROM", learned_from)
    names = [f"s{i}" for i in range(9)]
    df = make_panel(names, n=60, columns=INPUTS)
    X_df = future_of(RBFDiffNet("D", preset=preset).fit(df, h=3), 3, INPUTS)
    model = RBFDiffNet("D", preset=preset)
    expected = model.forecast(df, 3, X_df, [80])
    found, report = forecast(
        df, 3, X_df=X_df, level=[80], model=model, group_size=2, with_report=True
    )
    assert_same(found, expected)
    assert_same(report, model.report_)
    plain = df[["unique_id", "ds", "y"]]
    assert_same(forecast(plain, 3, model=model, group_size=4), model.forecast(plain, 3))
    arguments = {"n_windows": 2, "step_size": 5, "level": [80]}
    tested = cross_validation(plain, 3, model=model, group_size=4, **arguments)
    assert_same(tested, model.cross_validation(plain, 3, **arguments))


@pytest.mark.parametrize("parameters", [{}, {"preset": "instant"}])
def test_groups_cannot_tell_who_a_series_without_values_is_like(parameters):
    df = make_panel("abcdef", n=40)
    df = df.assign(y=df["y"].where(df["unique_id"] != "c"))
    for size in (2, 6):
        found, report = forecast(df, 2, freq="D", group_size=size, with_report=True, **parameters)
        assert (found.loc[found["unique_id"] == "c", "RBFDiffNet"] == 0.0).all()
        assert report["action"].tolist() == ["forecast 0"]


def test_neither_partitions_nor_order_matter():
    df = make_panel(SOME, n=60)
    expected = forecast(df, 3, level=[80], group_size=2, freq="D", scope="global")
    shuffled = df.sample(frac=1.0, random_state=3)
    for size, number in ((2, 1), (3, 7)):
        settings = {"freq": "D", "scope": "global", "num_partitions": number}
        assert_same(forecast(shuffled, 3, level=[80], group_size=size, **settings), expected)


def test_names_and_kinds_of_columns_stay():
    df = make_panel(["7", "11", "2"], n=60).rename(
        columns={"unique_id": "item", "ds": "step", "y": "sold"}
    )
    df["item"] = df["item"].astype(int)
    df["step"] = np.tile(np.arange(60), 3)
    df["sold"] = df["sold"].round().astype(int)
    names = {"id_col": "item", "time_col": "step", "target_col": "sold"}
    model = RBFDiffNet(1, season_length=7, preset="fast", **names)
    pd.testing.assert_frame_equal(
        forecast(df, 2, model=model, group_size=1).sort_values(["item", "step"], ignore_index=True),
        model.forecast(df, 2).sort_values(["item", "step"], ignore_index=True),
    )
    found = cross_validation(df, 2, model=model, group_size=2)
    expected = model.cross_validation(df, 2)
    assert found.dtypes.equals(expected.dtypes)


def test_two_seasons():
    df = make_panel(SOME[:3], n=90)
    model = RBFDiffNet("D", preset="instant", season_length=[7, 28])
    assert_same(forecast(df, 2, model=model, group_size=1), model.forecast(df, 2))
    assert_same(cross_validation(df, 2, model=model), model.cross_validation(df, 2))


def test_errors_say_what_to_do():
    df = make_panel(SOME[:3], n=40, columns=("price",))
    future = pd.DataFrame({"unique_id": ["s0"], "ds": ["2023-02-10"], "price": [2.0]})
    future["ds"] = pd.to_datetime(future["ds"])
    with pytest.raises(ValueError, match="freq"):
        forecast(df, 2)
    with pytest.raises(ValueError, match="on one machine"):
        forecast(df, 2, freq="D", hierarchy=["region"])
    with pytest.raises(ValueError, match="not both"):
        forecast(df, 2, model=RBFDiffNet("D"), lags=3)
    with pytest.raises(ValueError, match="There is no column 'unique_id'"):
        forecast(df.drop(columns="unique_id"), 2, **LOCAL)
    with pytest.raises(ValueError, match="h must be"):
        forecast(df, 0, **LOCAL)
    with pytest.raises(ValueError, match="group_size must be"):
        forecast(df, 1, group_size=0, **LOCAL)
    with pytest.raises(ValueError, match="refit='weights' needs scope='global'"):
        cross_validation(df, 2, refit="weights", **LOCAL)
    with pytest.raises(ValueError, match="X_df has a column 'color'"):
        forecast(df, 1, X_df=future.assign(color="red"), **LOCAL)
    with pytest.raises(ValueError, match="X_df has no row for series 's"):
        forecast(df, 1, X_df=future, group_size=1, **LOCAL)
    df.loc[3, "price"] = np.nan
    with pytest.raises(ValueError, match="Column 'price' has no value for series 's0'"):
        forecast(df, 1, X_df=future, group_size=1, **LOCAL)


def test_an_empty_frame_has_an_empty_forecast():
    df = make_panel(SOME[:1], n=40)[:0]
    for scope in ("local", "global"):
        found = forecast(df, 2, freq="D", scope=scope, level=[80])
        assert list(found) == ["unique_id", "ds", NAME, f"{NAME}-lo-80", f"{NAME}-hi-80"]
        assert len(found) == 0


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("rbfdiffnet.adapters.clusters.cluster.missing", ImportError("no fugue"))
    with pytest.raises(ImportError, match=r"no fugue.*rbfdiffnet\[distributed\]"):
        forecast(make_panel("a", n=20), 1, engine="dask", **LOCAL)


@pytest.mark.slow
@fugue
@pytest.mark.parametrize("name", ["fast", "global", "inputs"])
def test_fugue_gives_the_numbers_of_one_machine(name):
    parameters, columns = CONFIGURATIONS[name]
    df = make_panel(SOME, n=50, columns=columns).sample(frac=1.0, random_state=1)
    X_df = future_of(RBFDiffNet("D", **parameters).fit(df), 2, columns)
    model = RBFDiffNet("D", **parameters)
    options = {"X_df": X_df, "level": [80], "model": model, "group_size": 2, "with_report": True}
    expected, report = forecast(df, 2, **options)
    for number in (None, 1):
        found, words = forecast(df, 2, engine="native", num_partitions=number, **options)
        assert_same(found, expected)
        assert_same(words, report)
    plain = df[["unique_id", "ds", "y"]]
    lazy = forecast(plain, 2, engine="native", **LOCAL)
    assert_same(lazy, RBFDiffNet(**LOCAL).forecast(plain, 2))


@fugue
def test_errors_of_groups_come_back_from_fugue():
    df = make_panel(SOME[:3], n=40, columns=("price",))
    with pytest.raises(ValueError, match="There is no column 'y'"):
        forecast(df.drop(columns="y"), 2, engine="native", **LOCAL)
    with pytest.raises(ValueError, match="X_df has a column 'color'"):
        forecast(df, 1, X_df=df.assign(color="red"), engine="native", **LOCAL)
    with pytest.raises(ValueError, match="predict needs their future values"):
        forecast(df, 1, engine="native", group_size=1, **LOCAL)
    nothing, report = forecast(df[:0], 2, engine="native", with_report=True, **LOCAL)
    assert list(nothing) == ["unique_id", "ds", NAME]
    assert list(report) == ["unique_id", "problem", "action"]


def converse(program, owns):
    """Let parts run until nobody has a question; count how often each ran."""
    states, rounds = [{} for _ in owns], 0
    while True:
        rounds += 1
        questions, results = [], []
        for own, known in zip(owns, states, strict=True):
            try:
                results.append(program(Replay(known), own))
            except Pending as question:
                questions.append(question)
        if not questions:
            return results, rounds
        (key,) = {question.key for question in questions}
        for known in states:
            known[key] = combine_contributions(
                [q.contribution for q in questions], questions[0].combine
            )


def test_parts_agree_as_one_would_alone():
    made = []

    def program(collective, values):
        def inner():
            made.append(values)
            lowest = collective.all_reduce(lambda: min(values), min)
            return [value - lowest for value in values]

        shifted = collective.memoize(inner)
        again = collective.memoize(lambda: collective.all_reduce(lambda: sum(shifted), sum))
        return again, collective.all_reduce(lambda: max(shifted), max)

    results, rounds = converse(program, [[3, 5], [4], [9, 8]])
    assert results == [program(SINGLE_MACHINE, [3, 5, 4, 9, 8])] * 3
    assert rounds == 4
    assert made.count([4]) == 2  # up to its question, and once more with the answer


def test_an_error_of_one_part_is_everybodys():
    def program(collective, value):
        try:
            collective.all_reduce(lambda: 1 / value, sum)
        except ZeroDivisionError:
            return "caught"

    assert converse(program, [1.0, 0.0])[0] == ["caught"] * 2
    assert isinstance(combine_contributions([], max), Failure)


def test_groups_depend_on_ids_alone():
    ids = [f"item {i}" for i in range(1000)]
    hashes = hash_names(ids)
    between = find_cuts(hashes, 64)
    group = find_groups(hashes, between)
    assert np.ptp(np.bincount(group)) <= 1
    assert np.bincount(group).max() <= 64
    again = find_groups(hash_names(ids[::-1]), find_cuts(hashes[::-1], 64))[::-1]
    assert group.tolist() == again.tolist()
    assert hash_names([7]).tolist() == hash_names(["7"]).tolist()
    assert hash_names(["a", "b"]).tolist() == [4681665781835383343, 9543904841865449333]


def test_series_on_several_partitions_are_found():
    ids = [["a", "b"], ["b", "c"], [], ["d"]]
    hashes, split = find_split([hash_names(own) for own in ids])
    assert hashes.tolist() == sorted(hash_names("abcd").tolist())
    assert split.tolist() == hash_names(["b"]).tolist()
    assert not find_split([])[0].size
    rows = choose_rows(pd.Series(["a", "b", None, "b", "c"]), lambda own: np.isin(own, split))
    assert rows.tolist() == [False, True, False, True, False]


@fugue
def test_rows_stay_where_few_series_are_split():
    frame = type("DataFrame", (), {"__module__": "dask.dataframe"})()
    engine = SimpleNamespace(get_current_parallelism=lambda: 2)
    cluster = Cluster(engine, None, None, None, None)
    names = [f"s{i}" for i in range(600)]
    thirds = [hash_names(names[k : k + 205]) for k in (0, 200, 400)]  # ten series are on two
    assert cluster.can_stay(frame, thirds)
    assert not replace(cluster, num_partitions=3).can_stay(frame, thirds)
    assert not cluster.can_stay(pd.DataFrame(), thirds)
    assert not cluster.can_stay(frame, thirds[:1])  # one worker would have nothing to do
    assert not cluster.can_stay(frame, [hash_names(names)] * 12)  # a part for each month
    assert not cluster.can_stay(frame, [hash_names([name]) for name in names])  # tiny ones


ENGINES = {"dask": "distributed", "ray": "ray", "spark": "pyspark"}


def in_process(engine, folder, *arguments):
    """Run Python with a local cluster of an engine, or skip the test."""
    needed = ("fugue", ENGINES[engine], *(("duckdb",) if engine == "ray" else ()))
    for package in needed:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    if engine == "spark" and not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("Spark needs Java")
    source = Path(rbfdiffnet.__file__).parent.parent
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(source), str(HERE)]),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    return done.stdout


run_here = cache(run)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_engines_give_the_numbers_of_one_machine(engine, tmp_path):
    path = tmp_path / "frames.pickle"
    in_process(engine, tmp_path, str(HERE / "cluster_runs.py"), engine, str(path), *CASES)
    for case, (kind, found, words) in pickle.loads(path.read_bytes()).items():
        assert kind == {"dask": "dask", "ray": "ray", "spark": "pyspark"}[engine]
        expected, report = run_here(case)
        assert_same(found, expected)
        if report is not None and (
            len(words) or len(report)
        ):  # an empty Dataset of Ray has no columns
            assert_same(words, report)
        if case.startswith("many"):
            make, method, options, settings, _ = CASES[case]
            alone = getattr(RBFDiffNet("D", **settings), method)(make(), 4, **options)
            assert_same(found, alone)


@pytest.mark.slow
@pytest.mark.skipif(not GUIDE.exists(), reason="the tests run without the repository")
@pytest.mark.parametrize("engine", ENGINES)
def test_the_guide_runs(engine, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    (code,) = [block for block in blocks if f"import {engine}" in block or f"py{engine}" in block]
    assert f"{6 * 14} rows" in in_process(engine, tmp_path, "-c", code)
