"""The same bits for the same data, seed and versions of other packages.

Whatever the process, its hash seed and the threads of the linear algebra library; with any
`n_jobs`, beside other series, and in every file. `test_forecaster` has pandas and polars, the order
of rows and of series, `forecast` and `fit`; `test_persistence` files; `test_stack_parts_of_panels`
parts of panels; and, up to rounding, `test_fast` forecasts with and without numba. `test_golden`
compares versions of other packages.
"""

import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from threadpoolctl import threadpool_limits

from golden import make
from panels import NAME, make_panel
from rbfdiffnet import RBFDiffNet, RBFDiffNetRegressor, RBFNetworkRegressor
from rbfdiffnet.datasets import henon_map
from rbfdiffnet.models.stack.model import FittedStack
from rbfdiffnet.series.windows import lag_windows

HERE = Path(__file__).parent
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
NUMBERS = """
import json, sys, warnings
from golden import make
warnings.simplefilter("ignore")
cases = [case.split(": ") for case in sys.argv[1:]]
print(json.dumps([make.FILES[name][case].rows() for name, case in cases]))
"""
EVERY = [f"{name}: {case}" for name, cases in make.FILES.items() for case in cases]


def in_a_process(*command, hash_seed, threads):
    """What a command prints in a process of its own."""
    paths = [str(HERE), os.environ.get("PYTHONPATH", "")]
    settings = dict.fromkeys(THREADS, str(threads)) | {
        "PYTHONHASHSEED": str(hash_seed),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_fresh_processes_hash_seeds_and_threads_of_blas_do_not_matter():
    one, two = (in_a_process("-c", NUMBERS, *EVERY, hash_seed=k, threads=k) for k in (1, 2))
    for case, found, expected in zip(EVERY, json.loads(two), json.loads(one), strict=True):
        assert found == expected, case


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "regressor",
    [
        *(RBFDiffNetRegressor(), RBFDiffNetRegressor.paper(), RBFDiffNetRegressor(centers="som")),
        *(RBFDiffNetRegressor(n_starts=3, random_state=7), RBFNetworkRegressor(random_state=7)),
    ],
    ids=str,
)
def test_a_regressor_fitted_again_is_the_same(regressor):
    X, y = lag_windows(henon_map(150), 3)
    expected = regressor.fit(X, y).predict(X)
    np.random.seed(3)  # noqa: NPY002 -- the global state must not matter
    np.testing.assert_array_equal(regressor.fit(X, y).predict(X), expected)
    # The rounding of a product of matrices depends on the place of a row in it.
    np.testing.assert_allclose(regressor.predict(X[::-1])[::-1], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_jobs", [3, -1])
@pytest.mark.parametrize("preset", ["default", "fast", "paper"])
def test_the_number_of_threads_does_not_matter(preset, n_jobs):
    df = make_panel("abcd", 90)
    expected = RBFDiffNet("D", scope="local", preset=preset).forecast(df, 5, level=[80])
    found = RBFDiffNet("D", scope="local", preset=preset, n_jobs=n_jobs).forecast(df, 5, level=[80])
    assert_frame_equal(found, expected, check_exact=True)


def calls_of(model):
    """Everything that several users may ask of one fitted model at once, for several horizons."""
    calls = (model.predict, model.explain, lambda h: model.simulate(h, n_paths=5))
    return [partial(call, h) for h in range(1, 6) for call in calls]


def test_users_of_one_model_do_not_disturb_each_other():
    calls = calls_of(RBFDiffNet("D").fit(make_panel("ab", 14)))
    expected, usual = [call() for call in calls], sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda call: call(), 4 * calls))
    finally:
        sys.setswitchinterval(usual)
    # Of some processors, rounding of products of matrices depends on where in memory they lie.
    for one, other in zip(found, 4 * expected, strict=True):
        assert_frame_equal(one, other, rtol=1e-12, atol=1e-12)


def test_calls_do_not_depend_on_the_threads_of_blas():
    """The limit is that of the process: another call may change it at any time."""
    calls, found = calls_of(RBFDiffNet("D").fit(make_panel("ab", 14))), []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"):
            found.append([call() for call in calls])
    for one, other in zip(*found, strict=True):
        assert_frame_equal(one, other, check_exact=True)


def test_a_model_may_forget_what_a_call_rests_on_before_it_ends(monkeypatch):
    """Between any two steps of a call, others may ask for so much that nothing is remembered."""
    model = RBFDiffNet("D").fit(make_panel("ab", 14))
    calls, mix, others = calls_of(model)[:3], FittedStack.mix, []
    expected = [call() for call in calls]

    def mix_and_forget(self, *args):
        result = mix(self, *args)
        if not others:
            others.append(None)
            for h in (4, 5):
                model.predict(h)
            others.clear()
        return result

    monkeypatch.setattr(FittedStack, "mix", mix_and_forget)
    for call, one in zip(calls, expected, strict=True):
        assert_frame_equal(call(), one, check_exact=True)


@pytest.mark.parametrize(
    "parameters",
    [
        *({"preset": "default"}, {"preset": "fast"}, {"preset": "paper"}),
        pytest.param({"preset": "best"}, marks=pytest.mark.slow),
        *({"strategy": "direct"}, {"transforms": ["log1p"], "calendar": "auto"}),
    ],
    ids=str,
)
def test_a_series_of_its_own_network_does_not_depend_on_others(parameters):
    """Intervals neither, where a series has errors enough of its own."""
    df = make_panel("abcd", 220)
    df = df[(df["unique_id"] != "b") | (df["ds"] >= "2023-02-20")]
    model = RBFDiffNet("D", scope="local", **parameters)
    together = model.forecast(df, 5, level=[80])
    for name, group in df.groupby("unique_id"):
        alone = model.forecast(group, 5, level=[80])
        among = together[together["unique_id"] == name].reset_index(drop=True)
        assert_frame_equal(among, alone, check_exact=True)


def test_short_series_borrow_intervals_but_not_forecasts():
    df = make_panel("ab", 70)
    model = RBFDiffNet("D", scope="local")
    alone, together = model.forecast(df.iloc[:70], 5, level=[80]), model.forecast(df, 5, level=[80])
    np.testing.assert_array_equal(alone[NAME], together[NAME][:5])
    assert not np.array_equal(alone[f"{NAME}-hi-80"], together[f"{NAME}-hi-80"][:5])


def test_a_saved_model_has_the_same_bytes_at_any_time(tmp_path, monkeypatch):
    df = make_panel("ab", 60)
    RBFDiffNet("D", scope="local").fit(df).save(tmp_path / "one.npz")
    then = time.localtime(1e9)
    monkeypatch.setattr(time, "localtime", lambda *_: then)
    RBFDiffNet("D", scope="local").fit(df).save(tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


@pytest.mark.slow
def test_files_of_the_command_line_have_the_same_bytes(tmp_path):
    """In its JSON, on standard output, only the seconds differ."""
    make_panel("ab", 60).to_csv(tmp_path / "data.csv", index=False)
    told = []
    for k in (1, 2):
        (folder := tmp_path / str(k)).mkdir()
        for out, plot in (("f.csv", "f.png"), ("f.csv.gz", "f.svg"), ("f.parquet", "f.pdf")):
            files = ("--out", folder / out, "--plot", folder / plot)
            report = ("--report", folder / "report.html", "--json")
            command = ("forecast", tmp_path / "data.csv", "--horizon", 4, "--preset", "fast")
            told.append(
                in_a_process("-m", "rbfdiffnet", *command, *files, *report, hash_seed=k, threads=k)
            )
    one, two = (sorted((tmp_path / str(k)).iterdir()) for k in (1, 2))
    assert [path.name for path in one] == [path.name for path in two]
    assert len(one) == 7
    for first, second in zip(one, two, strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name
    facts = [re.sub(r'"seconds": [\d.e-]+', '"seconds": 0', text) for text in told]
    assert all(json.loads(text)["seconds"] == 0 for text in facts)
    assert facts[:3] == facts[3:]


def test_a_frame_is_left_as_it_was():
    df = make_panel("ab", 60, ("price", "offer"))
    before = df.copy()
    RBFDiffNet("D", scope="local").fit(df)
    pd.testing.assert_frame_equal(df, before)
