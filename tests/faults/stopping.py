"""Ctrl-C and SIGTERM at any moment: commands and calls from Python end soon, files are whole."""

import os
import random
import signal
import threading

import numpy as np
import pandas as pd
from children import ended, forked
from writes import panel

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.cli import main
from rbfdiffnet.datasets import mackey_glass

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
SOON = 20.0  # seconds; the jobs take minutes


def many(n):
    """Long frame of 2 n series of days."""
    parts = [
        panel(seed, 400).replace({"unique_id": {"a": f"a{seed}", "b": f"b{seed}"}})
        for seed in range(n)
    ]
    return pd.concat(parts)


def noisy(n):
    """Long frame of n chaotic series, observed with noise."""
    rng = np.random.default_rng(0)
    y = [mackey_glass(1500, step=6.0) + 0.05 * rng.normal(size=1500) for _ in range(n)]
    ids, ds = np.repeat(np.arange(n), 1500), np.tile(np.arange(1500), n)
    return pd.DataFrame({"unique_id": ids, "ds": ds, "y": np.concatenate(y)})


def calls(path):
    """Calls from Python, given the number of threads; one writes a file."""
    df, chaos = many(1000), noisy(30)
    model = RBFDiffNet("D").fit(many(200))
    return {
        "forecast": lambda n_jobs: RBFDiffNet("D", n_jobs=n_jobs).forecast(df, 28, level=[80]),
        "cross_validation": lambda n_jobs: RBFDiffNet("D", n_jobs=n_jobs).cross_validation(
            df, 28, n_windows=5
        ),
        "fit, a network for each": lambda n_jobs: RBFDiffNet("D", scope="local", n_jobs=n_jobs).fit(
            df
        ),
        "forecast of noisy series": lambda n_jobs: RBFDiffNet(
            1, noise="auto", n_jobs=n_jobs
        ).forecast(chaos, 12, level=[80]),
        "fast": lambda n_jobs: RBFDiffNet("D", preset="fast", n_jobs=n_jobs).forecast(
            df, 14, level=[80]
        ),
        "explain": lambda _: model.explain(14),
        "save": lambda _: model.save(path),
    }


def interrupted(call, n_jobs):
    """Return 130 if Ctrl-C ends a call, made over and over, and all of its threads."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it in the background
    try:
        while True:
            call(n_jobs)
    except (KeyboardInterrupt, ValueError) as error:  # zip files complain of not being closed
        stopped = KeyboardInterrupt in (type(error), type(error.__context__))
        return 130 if stopped and threading.active_count() == 1 else 1


def check_interrupts(folder, stops, seed):
    """Stop every call so many times; return the seconds that each end took."""
    random_, path = random.Random(seed), folder / "model.npz"
    took = {}
    for name, call in calls(path).items():
        for n_jobs in (1, 2):
            for _ in range(stops):
                process = forked(lambda call=call, n=n_jobs: interrupted(call, n), folder / "log")
                code, seconds = ended(process, signal.SIGINT, random_.uniform(0.5, 4.0), SOON)
                assert code == 130, (name, n_jobs, code, (folder / "log").read_text())
                took.setdefault(f"{name}, {n_jobs} thread{'s' * (n_jobs > 1)}", []).append(seconds)
                left = {file for file in os.listdir(folder) if file != "log"}
                assert left <= {"model.npz"}, (name, left)
    RBFDiffNet.load(path).predict(2)
    return took


def commands(folder):
    """Long runs of every command, and the file that each has to leave as it was."""
    data = folder / "history.csv"
    many(100).to_csv(data, index=False)
    common = [str(data), "--horizon", "14"]
    out, page = str(folder / "out.csv"), str(folder / "page.html")
    return {
        "forecast": ["forecast", *common, "--out", out, "--report", page],
        "forecast --jobs 2": ["forecast", *common, "--jobs", "2", "--scope", "local", "--out", out],
        "evaluate": ["evaluate", *common, "--rival-seconds", "0", "--out", out],
        "explain": ["explain", *common, "--id", "a0"],
        "reproduce": ["reproduce", "logistic", "--out", str(folder / "runs")],
        "reproduce --jobs 2": ["reproduce", "logistic", "--jobs", "2", "--out", str(folder / "r2")],
    }


def check_stopping(folder, stops, seed):
    """Stop every command so many times by each signal; return the seconds that each end took."""
    random_ = random.Random(seed)
    out, log = folder / "out.csv", folder / "log"
    took = {}
    for name, arguments in commands(folder).items():
        for kind, code in CODES.items():
            for _ in range(stops):
                out.write_text("old")
                process = forked(lambda arguments=arguments: main(arguments), log)
                found, seconds = ended(process, kind, random_.uniform(0.1, 1.5))
                said = log.read_text()
                if found == 0:  # it was done already
                    continue
                took.setdefault(name, []).append(seconds)
                assert found == code, (name, found, said)
                assert "Traceback" not in said, (name, said)
                assert said.count("rbfdiffnet: stopped") == 1, (name, said)
                last = said.splitlines()[-1]
                if str(out) in arguments:
                    assert f"'{out}' is as it was" in last or "is complete" in last, last
                    assert out.read_text() == "old" or "is complete" in last
                if name.startswith("reproduce"):
                    assert "the same command goes on from there" in last, last
                hidden = [file for file in os.listdir(folder) if file.startswith(".")]
                assert not hidden, (name, hidden)
    return took
