"""The same numbers, however they are asked for."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd

from attack_parts.registry import SETTINGS, Cases, Group
from panels import NAME, make_panel
from rbfdiffnet import RBFDiffNet

GROUP = Group("agreement", "The same numbers")
promise = GROUP.promise
PANELS = "random odd panels, settings and horizons"


@promise("The order of rows and of series does not matter", "versions.md", f"{PANELS}, shuffled")
def order(cases: Cases) -> None:
    cases.fuzz("ways that agree", 40, way="reordered")


@promise("pandas and polars have the same bits", "versions.md", f"{PANELS}, in both")
def frame_libraries(cases: Cases) -> None:
    cases.fuzz("ways that agree", 40, way="polars")


@promise(
    "Chunks do not matter (local: the same bits; others: up to rounding)",
    "scaling.md",
    f"{PANELS}, one series after the other",
)
def chunks(cases: Cases) -> None:
    cases.fuzz("ways that agree", 40, way="in_chunks")


@promise("`n_jobs` does not matter", "versions.md", f"{PANELS}, with three threads")
def n_jobs(cases: Cases) -> None:
    cases.fuzz("ways that agree", 40, way="in_threads")


@promise("`forecast` has the bits of `fit` and `predict`", "versions.md", f"{PANELS}, both ways")
def fit_and_predict(cases: Cases) -> None:
    cases.fuzz("ways that agree", 40, way="fitted")


@promise("Saved and loaded models have the same bits", "versions.md", f"{PANELS}, by a file")
def saved_and_loaded(cases: Cases) -> None:
    cases.fuzz("ways that agree", 40, way="saved")


SCRIPT = """
import hashlib
from panels import make_panel
from rbfdiffnet import RBFDiffNet
for parameters in ({}, {"preset": "fast"}, {"scope": "local"}, {"scope": "global"}):
    found = RBFDiffNet("D", **parameters).forecast(make_panel("abc", n=60), 5, level=[80])
    print(hashlib.sha256(found.iloc[:, 2:].to_numpy().tobytes()).hexdigest())
"""


@promise(
    "Processes, hash seeds, time zones, locales and threads of the linear algebra do not matter",
    "versions.md",
    "forecasts of four settings in four fresh processes",
)
def processes(cases: Cases) -> None:
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    surroundings = {
        "plain": {},
        "hash seed 7": {"PYTHONHASHSEED": "7"},
        "two threads": dict.fromkeys(threads, "2"),
        "elsewhere": {"TZ": "Pacific/Chatham", "LC_ALL": "C", "PYTHONUTF8": "0"},
    }
    expected = None
    for name, settings in surroundings.items():
        with cases(name):
            done = subprocess.run(
                [sys.executable, "-c", SCRIPT],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | settings,
                capture_output=True,
                text=True,
                check=True,
            )
            expected = expected or done.stdout
            assert done.stdout == expected, "other bits"
            assert len(done.stdout.split()) == 4


@promise(
    "The global random state of NumPy is neither used nor changed",
    "versions.md",
    "another state before each of five calls, looked at afterwards, in four settings",
)
def global_random_state(cases: Cases) -> None:
    df = make_panel("ab", n=60)
    for name, parameters in SETTINGS.items():
        model = RBFDiffNet("D", **parameters).fit(df)
        calls = {
            "fit": lambda p=parameters: RBFDiffNet("D", **p).fit(df).predict(3),
            "predict": lambda m=model: m.predict(3, level=[80]),
            "simulate": lambda m=model: m.simulate(3, n_paths=5, seed=0),
            "cross_validation": lambda m=model: m.cross_validation(df, 3),
            "explain": lambda m=model: m.explain(3),
        }
        for call_name, call in calls.items():
            with cases(f"{call_name}, {name}"):
                found = []
                for seed in (1, 2):
                    np.random.seed(seed)  # noqa: NPY002
                    before = np.random.get_state()[1].copy()  # noqa: NPY002
                    found.append(call())
                    assert (np.random.get_state()[1] == before).all(), "it was changed"  # noqa: NPY002
                pd.testing.assert_frame_equal(*found, check_exact=True)


@promise(
    "Copies and pickles of a fitted model have the same bits, and are independent",
    "versions.md",
    "copy, deepcopy, pickle and cloudpickle, then an update of the copy, in four settings",
)
def copies(cases: Cases) -> None:
    import copy

    import cloudpickle

    df, newer = make_panel("ab", n=60), make_panel("ab", n=5, start="2023-03-02", seed=9)
    ways = {
        "deepcopy": copy.deepcopy,
        "pickle": lambda m: pickle.loads(pickle.dumps(m)),
        "cloudpickle": lambda m: pickle.loads(cloudpickle.dumps(m)),
        "copy": copy.copy,
    }
    for name, parameters in SETTINGS.items():
        model = RBFDiffNet("D", **parameters).fit(df)
        expected = model.predict(4, level=[80])
        for way_name, way in ways.items():
            with cases(f"{way_name}, {name}"):
                other = way(model)
                pd.testing.assert_frame_equal(other.predict(4, level=[80]), expected)
                other.update(newer)
                assert not np.array_equal(other.predict(4)[NAME], expected[NAME])
                pd.testing.assert_frame_equal(model.predict(4, level=[80]), expected)


@promise(
    "Forecasts change only on purpose",
    "versions.md",
    "forecasts of every scope and preset, explanations and regressors against those on record",
)
def golden_numbers(cases: Cases) -> None:
    cases.tests("test_golden.py")
